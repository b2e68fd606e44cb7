//! Reductions over axes.
//!
//! Sums and products accumulate in 64 bits (128 for complex) and round once;
//! minima and maxima propagate NaN.

use std::borrow::Cow;

use num_complex::Complex;
use smallvec::{SmallVec, smallvec};

use crate::dtype::{Element, Lane};
use crate::exec::elementwise::{Conversion, FEW_BYTES, TILE};
use crate::exec::fold::{self, BLOCK, Columns, Fold, Rows};
use crate::exec::parallel::{self, Cost, Work};
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::lane::{CastOf, Compute, TruthOf, conversion};
use crate::layout::Shape;
use crate::tensor::{Output, Tensor, scratch};
use crate::{DType, Error, Kind, dispatch, packed};

named! {
    /// A reduction, named as Nx names it.
    pub enum ReduceOp {
        Sum, "sum";
        Product, "product";
        ReduceMax, "reduce_max";
        ReduceMin, "reduce_min";
        All, "all";
        Any, "any";
    }
}

/// What folding an element costs.
#[must_use]
pub fn cost(dtype: DType) -> Cost {
    15 * dtype.width() as Cost + 20 + packed::cost(&[dtype])
}

/// What searching an element for an extreme costs, and a row of them.
const ARG_COST: Cost = 60;
const ARG_ROW: Cost = 30_000;

/// The work of `arg_reduce`, of so many elements to so many.
#[must_use]
pub fn arg_work(elements: usize, rows: usize) -> Work {
    parallel::work(elements, ARG_COST).saturating_add(parallel::work(rows, ARG_ROW))
}

/// Folds the elements along `axes`, which are distinct; `out` has the other
/// axes, with or without ones in the place of those.
///
/// # Errors
///
/// `Error::UnsupportedType`, `Error::Argument` for an axis out of range, and
/// `Error::TooLarge` if there is no memory for an intermediate result.
pub fn reduce(op: ReduceOp, out: Output<'_>, input: &Tensor<'_>, axes: &[usize]) -> Result<(), Error> {
    let name = op.name();
    let dtype = input.dtype();
    let kernels = Kernels::new(op, dtype)
        .filter(|kernels| kernels.lane.is_complex() <= out.dtype.is_complex())
        .ok_or_else(|| Error::UnsupportedType { op: name, dtypes: vec![dtype] })?;
    let store =
        conversion(kernels.lane, out.dtype).map(|convert| Conversion { lane: kernels.lane.width(), convert });
    // For a few elements, planning would take most of the time.
    if let (&[length], [0], Some(bytes)) = (input.shape(), axes, input.contiguous())
        && (1..=FEW_BYTES).contains(&bytes.len())
        && out.shape.iter().all(|&dim| dim == 1)
        && !out.dtype.is_packed()
    {
        let mut lanes = [0; 16];
        let computed = &mut lanes[..kernels.lane.width()];
        (kernels.rows)(bytes, length, computed);
        positive_nan(kernels.lane, computed);
        match store {
            Some(Conversion { convert, .. }) => convert(computed, out.bytes),
            None => out.bytes.copy_from_slice(computed),
        }
        return Ok(());
    }
    let split = Split::new(name, input.shape(), axes, false)?;
    let Split { before, reduced, after, .. } = split;
    check_size(name, &out, input, before * after)?;
    let bytes = split.dense(name, input)?;
    out.write(name, |out| fold_all(name, kernels, &bytes, dtype, View { before, reduced, after, store }, out))
}

fn check_size(op: &'static str, out: &Output<'_>, input: &Tensor<'_>, size: usize) -> Result<(), Error> {
    if out.shape.iter().product::<usize>() == size {
        return Ok(());
    }
    let shapes = vec![input.shape().to_vec(), out.shape.to_vec()];
    Err(Error::Shape { op, shapes, problem: "differ in the axes that are kept".into() })
}

/// The axes in an order where, collapsed, they are `before` kept ones, `reduced`
/// ones and `after` kept ones.
struct Split {
    /// None for the order they are in.
    order: Option<Shape>,
    before: usize,
    reduced: usize,
    after: usize,
}

impl Split {
    /// Brings the reduced axes together. Where kept axes lie between them, or
    /// after them if `rows` are wanted, the kept ones come first.
    fn new(op: &'static str, shape: &[usize], axes: &[usize], rows: bool) -> Result<Self, Error> {
        let rank = shape.len();
        if let Some(axis) = axes.iter().find(|&&axis| axis >= rank) {
            let problem = format!("axis {axis} is out of range for rank {rank}");
            return Err(Error::Argument { op, problem });
        }
        // Axes of size one are kept or reduced as it suits.
        let reduced = |axis: &usize| axes.contains(axis) && shape[*axis] != 1;
        let kept = |axis: &usize| !axes.contains(axis) && shape[*axis] != 1;
        let first = (0..rank).find(reduced).unwrap_or(rank);
        let last = (0..rank).rfind(reduced).map_or(first, |last| last + 1);
        let [before, between, after] =
            [0..first, first..last, last..rank].map(|axes| shape[axes].iter().product::<usize>());
        if (first..last).any(|axis| kept(&axis)) || rows && after != 1 {
            let rest = (0..rank).filter(|a| !axes.contains(a));
            let order: Shape = rest.chain(axes.iter().copied()).collect();
            let product = |axes: &[usize]| axes.iter().map(|&axis| shape[axis]).product();
            let (rest, along) = order.split_at(rank.saturating_sub(axes.len()));
            return Ok(Split {
                before: product(rest),
                reduced: product(along),
                after: 1,
                order: Some(order),
            });
        }
        Ok(Split { order: None, before, reduced: between, after })
    }

    /// The elements in that order.
    fn dense<'a>(&self, op: &'static str, input: &'a Tensor<'_>) -> Result<Cow<'a, [u8]>, Error> {
        match &self.order {
            None => input.dense(op),
            Some(order) => {
                Ok(Cow::Owned(input.view(input.layout().transpose(order)).dense(op)?.into_owned()))
            }
        }
    }
}

/// How many of which axes, and what becomes of the lanes.
struct View {
    before: usize,
    reduced: usize,
    after: usize,
    store: Option<Conversion>,
}

/// The loops of an operation for a type, if it is defined for that.
type Loops = fn(DType) -> Option<(Rows, Columns)>;

/// The loops of an operation for a type, and the type of their lanes.
#[derive(Clone, Copy)]
struct Kernels {
    rows: Rows,
    columns: Columns,
    lane: DType,
    /// The loops that fold lanes further.
    again: Loops,
    cost: Cost,
}

impl Kernels {
    fn new(op: ReduceOp, dtype: DType) -> Option<Self> {
        let (lane, again): (DType, Loops) = match op {
            ReduceOp::Sum => (total_lane(dtype), total::<Sum>),
            ReduceOp::Product => (total_lane(dtype), total::<Product>),
            ReduceOp::ReduceMax => (extreme_lane(dtype), extreme::<Largest>),
            ReduceOp::ReduceMin => (extreme_lane(dtype), extreme::<Smallest>),
            ReduceOp::All => (DType::U8, truth::<AllOf>),
            ReduceOp::Any => (DType::U8, truth::<AnyOf>),
        };
        let (rows, columns) = again(dtype)?;
        Some(Kernels { rows, columns, lane, again, cost: cost(dtype) })
    }

    /// The loops that fold the lanes.
    fn next(self) -> Self {
        let (rows, columns) = (self.again)(self.lane).unwrap_or((self.rows, self.columns));
        Kernels { rows, columns, ..self }
    }
}

/// Folds `[before, reduced, after]` dense elements into `[before, after]`.
fn fold_all(
    op: &'static str,
    kernels: Kernels,
    bytes: &[u8],
    dtype: DType,
    view: View,
    out: &mut [u8],
) -> Result<(), Error> {
    let View { before, reduced, after, store } = view;
    let width = dtype.width();
    let lane = kernels.lane.width();
    let size = before * after;
    if size == 0 {
        return Ok(());
    }
    let cost = kernels.cost.saturating_mul(reduced.max(1) as Cost);
    // Blocks of a fixed number of elements, whoever folds them.
    let block = if after == 1 { BLOCK } else { (BLOCK / after).max(64) };
    let blocks = reduced.div_ceil(block);
    // Few results of many elements each: the blocks are the work to share.
    if blocks > 1 && (after == 1 || after < TILE && before < 16) {
        let partial = |bytes: &[u8], out: &mut [u8]| {
            if after == 1 {
                (kernels.rows)(bytes, bytes.len() / width, out)
            } else {
                (kernels.columns)(bytes, after, out)
            }
        };
        let shape = [before, blocks, after];
        let mut partials = scratch(op, kernels.lane, &shape, before * blocks * after * lane)?;
        let chunk = after * lane;
        parallel::fill(
            &mut partials,
            before * blocks,
            cost / blocks as Cost * after as Cost,
            |start, part| {
                for (i, lanes) in part.chunks_mut(chunk).enumerate() {
                    let (row, index) = ((start + i) / blocks, (start + i) % blocks);
                    let first = row * reduced + index * block;
                    let length = block.min(reduced - index * block);
                    partial(&bytes[first * after * width..][..length * after * width], lanes);
                }
            },
        );
        let view = View { before, reduced: blocks, after, store };
        return fold_all(op, kernels.next(), &partials, kernels.lane, view, out);
    }
    let width_out = out.len() / size;
    parallel::fill(out, size, cost, |start, part| {
        let mut lanes: SmallVec<[u8; 64]> = smallvec![0; TILE.min(size) * lane];
        let mut position = start;
        let mut rest = part;
        while !rest.is_empty() {
            // A tile of results, within one of the `before`s.
            let column = position % after;
            let length = if after == 1 { TILE } else { TILE.min(after - column) }.min(rest.len() / width_out);
            let (head, tail) = rest.split_at_mut(length * width_out);
            let computed = if store.is_some() { &mut lanes[..length * lane] } else { &mut *head };
            if reduced == 0 {
                // The neutral element: a column loop over no rows.
                (kernels.columns)(&[], 1, computed);
            } else if after == 1 {
                (kernels.rows)(
                    &bytes[position * reduced * width..][..length * reduced * width],
                    reduced,
                    computed,
                );
            } else {
                let first = position / after * reduced * after + column;
                let last = first + (reduced - 1) * after + length;
                (kernels.columns)(&bytes[first * width..last * width], after, computed);
            }
            positive_nan(kernels.lane, computed);
            if let Some(Conversion { convert, .. }) = store {
                convert(&lanes[..length * lane], head);
            }
            position += length;
            rest = tail;
        }
    });
    Ok(())
}

/// The sign of a NaN that arithmetic makes differs among processors: what has
/// been folded gets the one that Nx writes.
pub(super) fn positive_nan(lane: DType, results: &mut [u8]) {
    macro_rules! lanes {
        ($t:ty) => {
            for slot in <$t>::view_mut(results) {
                if <$t>::load(*slot).is_nan() {
                    *slot = <$t>::NAN.store();
                }
            }
        };
    }
    match lane {
        DType::F64 | DType::C128 => lanes!(f64),
        DType::F32 => lanes!(f32),
        _ => (),
    }
}

/// Integers are summed modulo 2^64, whose low bits are right for every type.
/// The sign counts where the result is a float.
fn total_lane(dtype: DType) -> DType {
    match dtype {
        _ if dtype.kind() == Kind::Signed => DType::S64,
        _ if dtype.is_integer() => DType::U64,
        _ if dtype.is_complex() => DType::C128,
        _ => DType::F64,
    }
}

fn total<F: Fold<u64> + Fold<f64> + Fold<Complex<f64>>>(dtype: DType) -> Option<(Rows, Columns)> {
    Some(match dtype {
        DType::C64 => loops::<Complex<f32>, Complex<f64>, CastOf, F>(),
        DType::C128 => loops::<Complex<f64>, Complex<f64>, CastOf, F>(),
        real => dispatch!(real real, S => total_real::<S, F>(), else => return None),
    })
}

fn total_real<S: Element, F: Fold<u64> + Fold<f64>>() -> (Rows, Columns) {
    match S::CLASS {
        crate::dtype::Class::Integer => loops::<S, u64, CastOf, F>(),
        _ => loops::<S, f64, CastOf, F>(),
    }
}

/// Narrow floats are compared as f32.
fn extreme_lane(dtype: DType) -> DType {
    match dtype.storage() {
        DType::F8 | DType::F8E4M3FN | DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// A fold that is defined for every real lane.
trait Extreme:
    Fold<u8>
    + Fold<u16>
    + Fold<u32>
    + Fold<u64>
    + Fold<i8>
    + Fold<i16>
    + Fold<i32>
    + Fold<i64>
    + Fold<f32>
    + Fold<f64>
{
}
impl Extreme for Largest {}
impl Extreme for Smallest {}

fn extreme<F: Extreme>(dtype: DType) -> Option<(Rows, Columns)> {
    Some(match dtype.storage() {
        DType::F64 => loops::<f64, f64, CastOf, F>(),
        DType::F32 => loops::<f32, f32, CastOf, F>(),
        DType::F16 => loops::<crate::narrow::F16, f32, CastOf, F>(),
        DType::BF16 => loops::<crate::narrow::BF16, f32, CastOf, F>(),
        DType::F8 => loops::<crate::narrow::F8, f32, CastOf, F>(),
        DType::F8E4M3FN => loops::<crate::narrow::F8E4M3FN, f32, CastOf, F>(),
        integer => dispatch!(integer integer, S => loops::<S, S, CastOf, F>(), else => return None),
    })
}

fn truth<F: Fold<u8>>(dtype: DType) -> Option<(Rows, Columns)> {
    Some(dispatch!(bits dtype, S => loops::<S, u8, TruthOf, F>(), else => {
        dispatch!(float dtype, S => loops::<S, u8, TruthOf, F>(), else => match dtype {
            DType::C64 => loops::<Complex<f32>, u8, TruthOf, F>(),
            _ => loops::<Complex<f64>, u8, TruthOf, F>(),
        })
    }))
}

fn loops<S: Element, L: Lane, M: crate::lane::Map<S, L>, F: Fold<L>>() -> (Rows, Columns) {
    (fold::rows::<S, L, M, F>, fold::columns::<S, L, M, F>)
}

macro_rules! meaning {
    ($name:ident, $any_order:literal, $start:expr, $a:ident, $b:ident => $body:expr; $($t:ty),*) => {$(
        impl Fold<$t> for $name {
            const ANY_ORDER: bool = $any_order;
            #[inline(always)]
            fn start() -> $t { $start.into() }
            #[inline(always)]
            fn fold($a: $t, $b: $t) -> $t { $body }
        }
    )*};
}

struct Sum;
meaning!(Sum, true, 0u32, a, b => a.wrapping_add(b); u64);
meaning!(Sum, false, 0.0, a, b => a + b; f64, Complex<f64>);
struct Product;
meaning!(Product, true, 1u32, a, b => a.wrapping_mul(b); u64);
meaning!(Product, false, 1.0, a, b => a * b; f64, Complex<f64>);
struct AllOf;
meaning!(AllOf, true, 1u8, a, b => a & b; u8);
struct AnyOf;
meaning!(AnyOf, true, 0u8, a, b => a | b; u8);

macro_rules! extremes {
    ($($t:ty),*) => {$(
        meaning!(Largest, true, <$t>::MIN, a, b => a.max(b); $t);
        meaning!(Smallest, true, <$t>::MAX, a, b => a.min(b); $t);
    )*};
}
struct Largest;
struct Smallest;
extremes!(u8, u16, u32, u64, i8, i16, i32, i64);
meaning!(Largest, false, f32::NEG_INFINITY, a, b => if b > a || b.is_nan() { b } else { a }; f32, f64);
meaning!(Smallest, false, f32::INFINITY, a, b => if b < a || b.is_nan() { b } else { a }; f32, f64);

/// Which of several equal extremes counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieBreak {
    /// The first.
    Low,
    /// The last.
    High,
}

/// The index of the largest element along `axis`, or in all of the tensor; of
/// the smallest for `ReduceOp::ReduceMin`. NaN counts as more extreme than
/// any number, and the last NaN wins, as in `Nx.BinaryBackend`.
///
/// # Errors
///
/// As `reduce`.
pub fn arg_reduce(
    op: ReduceOp,
    out: Output<'_>,
    input: &Tensor<'_>,
    axis: Option<usize>,
    tie_break: TieBreak,
) -> Result<(), Error> {
    let name = if op == ReduceOp::ReduceMin { "argmin" } else { "argmax" };
    let unsupported = || Error::UnsupportedType { op: name, dtypes: vec![input.dtype()] };
    let lane = extreme_lane(input.dtype());
    let find: Find = match op {
        _ if out.dtype.is_complex() => return Err(unsupported()),
        ReduceOp::ReduceMin => finder::<Smallest>(lane, tie_break).ok_or_else(unsupported)?,
        _ => finder::<Largest>(lane, tie_break).ok_or_else(unsupported)?,
    };
    let axes: Shape = axis.map_or_else(|| (0..input.rank()).collect(), |axis| Shape::from_slice(&[axis]));
    let split = Split::new(name, input.shape(), &axes, true)?;
    let Split { before, reduced, .. } = split;
    check_size(name, &out, input, before)?;
    if reduced == 0 {
        return Err(Error::Argument { op: name, problem: "an empty axis has no extreme".into() });
    }
    let bytes = split.dense(name, input)?;
    let load = conversion(input.dtype(), lane);
    let width = input.dtype().width();
    let result = out.dtype;
    let store = Compute::As(DType::U64).store(result);
    out.write(name, |out| {
        let cost = ARG_COST * reduced as Cost + ARG_ROW;
        parallel::fill(out, before, cost, |start, part| {
            let mut converted = vec![0; if load.is_some() { BLOCK.min(reduced) * lane.width() } else { 0 }];
            for (i, slot) in part.chunks_mut(result.width()).enumerate() {
                let row = &bytes[(start + i) * reduced * width..][..reduced * width];
                let mut best = Best { value: [0; 16], index: 0 };
                // A block at a time, so that a conversion needs little memory.
                for (block, raw) in row.chunks(BLOCK * width).enumerate() {
                    let block_of = match load {
                        Some(convert) => {
                            let converted = &mut converted[..raw.len() / width * lane.width()];
                            convert(raw, converted);
                            &*converted
                        }
                        None => raw,
                    };
                    find(block_of, block * BLOCK, &mut best);
                }
                let index = (best.index as u64).to_ne_bytes();
                match store {
                    Some(Conversion { convert, .. }) => convert(&index, slot),
                    None => slot.copy_from_slice(&index),
                }
            }
        });
        Ok(())
    })
}

/// The extreme of the blocks of a row that were searched, and its index.
struct Best {
    value: [u8; 16],
    index: usize,
}

/// Searches a block of a row, given the index of its first element.
type Find = fn(&[u8], usize, &mut Best);

fn finder<F: Extreme>(lane: DType, tie_break: TieBreak) -> Option<Find> {
    let high = tie_break == TieBreak::High;
    Some(match lane {
        DType::F32 if high => find::<f32, F, true>,
        DType::F32 => find::<f32, F, false>,
        DType::F64 if high => find::<f64, F, true>,
        DType::F64 => find::<f64, F, false>,
        integer => {
            dispatch!(integer integer, S => if high { find::<S, F, true> } else { find::<S, F, false> }, else => return None)
        }
    })
}

/// The extreme first, then where it is: two passes that vectorize.
#[allow(clippy::eq_op, reason = "NaN is what differs from itself")]
fn find<L: Element + PartialEq, F: Fold<L>, const HIGH: bool>(block: &[u8], first: usize, best: &mut Best) {
    let mut value = [0; 16];
    fold::rows::<L, L, CastOf, F>(block, block.len() / size_of::<L>(), &mut value[..size_of::<L>()]);
    let extreme = L::load(L::view(&value)[0]);
    let before = L::load(L::view(&best.value)[0]);
    let better = if first == 0 || extreme != extreme {
        true
    } else if before != before {
        false
    } else {
        extreme != before && F::fold(before, extreme) == extreme || extreme == before && HIGH
    };
    if better {
        *best = Best { value, index: first + vectorize(Search::<L, HIGH> { row: block, extreme }) };
    }
}

struct Search<'a, L, const HIGH: bool> {
    row: &'a [u8],
    extreme: L,
}

impl<L: Lane + PartialEq, const HIGH: bool> Vectorized for Search<'_, L, HIGH> {
    type Output = usize;

    #[inline(always)]
    #[allow(clippy::eq_op, reason = "NaN is what differs from itself")]
    fn run(self) -> usize {
        const CHUNK: usize = 64;
        let elements = L::view(self.row);
        let nan = self.extreme != self.extreme;
        let hit = |&x: &L::Bytes| {
            let x = L::load(x);
            if nan { x != x } else { x == self.extreme }
        };
        // Whole chunks without an early exit, so that they vectorize.
        let found = |chunk: &[L::Bytes]| chunk.iter().fold(false, |any, x| any | hit(x));
        if HIGH || nan {
            let chunk = elements.rchunks(CHUNK).position(found).unwrap_or(0);
            let end = elements.len() - chunk * CHUNK;
            let start = end.saturating_sub(CHUNK);
            start + elements[start..end].iter().rposition(hit).unwrap_or(0)
        } else {
            let start = elements.chunks(CHUNK).position(found).unwrap_or(0) * CHUNK;
            start + elements[start..].iter().position(hit).unwrap_or(0)
        }
    }
}
