//! Reductions over axes.
//!
//! Sums and products accumulate in 64 bits (128 for complex) and round once;
//! minima and maxima propagate NaN.

mod accumulation;
mod arg_reduce;

use num_complex::Complex;
use smallvec::{SmallVec, smallvec};

pub(crate) use self::accumulation::Accumulation;
pub use self::arg_reduce::{TieBreak, arg_cost, arg_name, arg_reduce, arg_reduce_dense, arg_work};
use crate::cost::{
    self, Cost, MOVED_REDUCED_BYTE_COST, REDUCED_BYTE_COST, REDUCED_ELEMENT_COST, REDUCED_ROW_COST,
    TILE_ELEMENTS, WIDENED_ELEMENT_COST, WIDENED_F8_COST, Work,
};
use crate::dtype::minifloat::{BF16, F8, F8E4M3FN, F16};
use crate::dtype::{Element, Lane, sub_byte};
use crate::exec::convert::{CastOf, Conversion, NarrowFloat, TruthOf, conversion};
use crate::exec::copy;
use crate::exec::memory::scratch;
use crate::exec::reduce::argminmax::SignedBits;
use crate::exec::reduce::fold::{Fold, FoldColumns, FoldRows, REDUCTION_BLOCK_ELEMENTS};
use crate::exec::reduce::{argminmax, fold};
use crate::exec::threads::parallel;
use crate::layout::{self, Shape, among_axes, check_axes, other_axes};
use crate::tensor::{Output, Tensor, byte_size};
use crate::{DType, Error, Kind, dispatch};

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

/// The cost of folding an element.
#[must_use]
pub fn cost(dtype: DType) -> Cost {
    let widening = match dtype {
        DType::F8 | DType::F8E4M3FN => WIDENED_F8_COST,
        DType::F16 | DType::BF16 | DType::C64 => WIDENED_ELEMENT_COST,
        _ => 0,
    };
    compare_cost(dtype) + widening
}

/// The work of reducing `elements` elements to some number of results.
#[inline]
#[must_use]
pub fn work(dtype: DType, elements: usize, results: usize) -> Work {
    cost::work(elements, cost(dtype)).saturating_add(cost::work(results, REDUCED_ROW_COST))
}

/// The work of `reduce` along some axes of a shape.
#[must_use]
pub fn work_along(op: ReduceOp, dtype: DType, shape: &[usize], axes: &[usize]) -> Work {
    match Split::of(op, dtype, shape, axes) {
        Some(Split::Dense(sizes)) => work(dtype, sizes.size(), sizes.results()),
        Some(Split::Moved { sizes, .. }) => {
            work(dtype, sizes.size(), sizes.results()).saturating_add(work_of_moving(dtype, sizes.size()))
        }
        Some(Split::Stage(stage)) => {
            let [elements, results] = [shape, &stage.shape].map(elements_of);
            let rest = work_along(op, stage.lane, &stage.shape, &stage.rest);
            work(dtype, elements, results).saturating_add(rest)
        }
        None => 0,
    }
}

/// The work of `reduce` along some axes of a tensor whose elements are moved first.
#[must_use]
pub fn work_of_view(op: ReduceOp, dtype: DType, shape: &[usize], axes: &[usize]) -> Work {
    work_along(op, dtype, shape, axes).saturating_add(work_of_moving(dtype, elements_of(shape)))
}

/// The number of elements of a shape; the largest number if it overflows.
fn elements_of(shape: &[usize]) -> usize {
    layout::size(shape).unwrap_or(usize::MAX)
}

/// The work of moving elements before they are folded.
fn work_of_moving(dtype: DType, elements: usize) -> Work {
    cost::work(elements, MOVED_REDUCED_BYTE_COST.saturating_mul(dtype.width() as Cost))
}

/// The sizes of a fold along some axes of a shape; `None` if other axes are between these.
pub(crate) fn dense_sizes(shape: &[usize], axes: &[usize]) -> Option<ReductionSizes> {
    dense(shape, &groups(shape, axes)?)
}

/// The same, given the groups of neighbours among the axes.
fn dense(shape: &[usize], groups: &[(usize, usize)]) -> Option<ReductionSizes> {
    match *groups {
        [] => Some(ReductionSizes { before: shape.iter().product(), reduced: 1, after: 1 }),
        [(first, last)] => {
            let [before, reduced, after] =
                [0..first, first..last, last..shape.len()].map(|axes| shape[axes].iter().product());
            Some(ReductionSizes { before, reduced, after })
        }
        _ => None,
    }
}

/// The fold along some axes of a shape, if its elements can come in parts and it has at least `least` blocks.
pub(crate) fn accumulation(
    op: ReduceOp,
    (dtype, shape): (DType, &[usize]),
    axes: &[usize],
    least: usize,
) -> Option<Accumulation> {
    Accumulation::new(op, dtype, dense_sizes(shape, axes)?, least)
}

/// The cost of comparing an element without widening it.
fn compare_cost(dtype: DType) -> Cost {
    REDUCED_BYTE_COST * dtype.width() as Cost + REDUCED_ELEMENT_COST + sub_byte::cost(&[dtype])
}

/// The least number of rows in a block of columns. It fixes the order of sums.
const MIN_REDUCTION_BLOCK_ROWS: usize = 64;

/// The number of planes `[reduced, after]` from which columns are not folded by blocks. It fixes
/// the order of sums.
const MIN_PLANES_WITHOUT_BLOCKS: usize = 16;

/// The number of groups of axes up to which a fold is one in stages. It fixes the order of sums.
const MAX_STAGES: usize = 8;

/// Folds the elements along `axes`, which are distinct; `out` has the other axes, and may have axes
/// of size one in the place of `axes`. Axes that have others between them are folded one group of neighbours after
/// the other, in the wider type of sums, unless there are few elements for a result, or many groups.
///
/// # Errors
///
/// `Error::UnsupportedType`, `Error::Argument` for an axis out of range, and
/// `Error::TooLarge` if there is no memory for an intermediate result.
pub fn reduce(op: ReduceOp, out: Output<'_>, input: &Tensor<'_>, axes: &[usize]) -> Result<(), Error> {
    let (name, dtype) = (op.name(), out.dtype);
    check_axes(name, axes, input.rank())?;
    match Split::of(op, input.dtype(), input.shape(), axes) {
        Some(Split::Dense(sizes)) => {
            check_size(name, &out, input, sizes.results())?;
            let bytes = copy::dense(name, input)?;
            out.write(name, |out| reduce_dense(op, (input.dtype(), &bytes), sizes, dtype, out))
        }
        Some(Split::Moved { sizes, order }) => {
            check_size(name, &out, input, sizes.results())?;
            let moved = input.view(input.layout().transpose(&order));
            let bytes = copy::dense(name, &moved)?;
            out.write(name, |out| reduce_dense(op, (input.dtype(), &bytes), sizes, dtype, out))
        }
        Some(Split::Stage(Stage { axes, lane, shape, rest })) => {
            let mut lanes = scratch(name, lane, &shape, byte_size(name, lane, &shape)?)?;
            reduce(op, Output::new(name, lane, &shape, &mut lanes)?, input, &axes)?;
            reduce(op, out, &Tensor::new(name, lane, &shape, &lanes)?, &rest)
        }
        None => Err(Error::UnsupportedType { op: name, dtypes: vec![input.dtype()] }),
    }
}

/// `reduce` of the middle axis of dense elements in whole bytes; `out` has a result of type `to`
/// for each element of the other axes.
///
/// # Errors
///
/// `Error::UnsupportedType`, and `Error::TooLarge` if there is no memory for an intermediate
/// result.
pub fn reduce_dense(
    op: ReduceOp,
    (dtype, bytes): (DType, &[u8]),
    sizes: ReductionSizes,
    to: DType,
    out: &mut [u8],
) -> Result<(), Error> {
    let (kernels, store) = resolve(op, to, dtype)
        .ok_or_else(|| Error::UnsupportedType { op: op.name(), dtypes: vec![dtype] })?;
    fold_all(op.name(), kernels, bytes, dtype, FoldTarget { sizes, store, width: to.width() }, out)
}

/// The loops, and the conversion of their lanes to the type of the result.
fn resolve(op: ReduceOp, out: DType, dtype: DType) -> Option<(FoldKernels, Option<Conversion>)> {
    let kernels = FoldKernels::new(op, dtype)?;
    if kernels.lane.is_complex() && !out.is_complex() {
        return None;
    }
    let lane = kernels.lane.width();
    Some((kernels, conversion(kernels.lane, out).map(|convert| Conversion { lane, convert })))
}

/// The sizes of dense elements `[before, reduced, after]`, whose middle axis is reduced.
#[derive(Clone, Copy, Debug)]
pub struct ReductionSizes {
    /// The number of elements along the kept axes before the reduced axis.
    pub before: usize,
    /// The number of elements along the reduced axis.
    pub reduced: usize,
    /// The number of elements along the kept axes after the reduced axis.
    pub after: usize,
}

impl ReductionSizes {
    fn shape(self) -> [usize; 3] {
        [self.before, self.reduced, self.after]
    }

    /// The number of elements.
    #[inline]
    #[must_use]
    pub fn size(self) -> usize {
        self.before * self.reduced * self.after
    }

    /// The number of results.
    #[inline]
    #[must_use]
    pub fn results(self) -> usize {
        self.before * self.after
    }

    /// The number of elements along the reduced axis that are folded together first, before the results of
    /// such blocks are folded; `None` if all are folded at once. Blocks let threads share a small number of
    /// results of many elements each. They don't depend on the number of threads, so that no result does.
    #[inline]
    fn block(self) -> Option<usize> {
        let ReductionSizes { before, reduced, after } = self;
        let block = if after == 1 {
            REDUCTION_BLOCK_ELEMENTS
        } else {
            (REDUCTION_BLOCK_ELEMENTS / after.max(1)).max(MIN_REDUCTION_BLOCK_ROWS)
        };
        let pays = after == 1 || after < TILE_ELEMENTS && before < MIN_PLANES_WITHOUT_BLOCKS;
        (reduced > block && pays).then_some(block)
    }
}

fn check_size(op: &'static str, out: &Output<'_>, input: &Tensor<'_>, size: usize) -> Result<(), Error> {
    if out.shape.iter().product::<usize>() == size {
        return Ok(());
    }
    let shapes = vec![input.shape().to_vec(), out.shape.to_vec()];
    Err(Error::Shape { op, shapes, problem: "differ in the axes that are kept".into() })
}

/// How a shape is folded along some axes.
pub(crate) enum Split {
    /// At once.
    Dense(ReductionSizes),
    /// At once after a copy with this order of the axes: few elements for a result, from left to right, or axes in many
    /// groups.
    Moved { sizes: ReductionSizes, order: Shape },
    /// Axes that have others between them, one group of neighbours after the other.
    Stage(Stage),
}

/// The fold of one of several groups of axes. It fixes the order of sums.
pub(crate) struct Stage {
    /// The axes.
    pub(crate) axes: Shape,
    /// The type of the results.
    pub(crate) lane: DType,
    /// The shape of the results: the other axes.
    pub(crate) shape: Shape,
    /// The axes of this shape that are folded afterwards.
    pub(crate) rest: Shape,
}

impl Split {
    /// `None` if the axes are not axes of the shape, or the operation is not defined for the type.
    pub(crate) fn of(op: ReduceOp, dtype: DType, shape: &[usize], axes: &[usize]) -> Option<Self> {
        let groups = groups(shape, axes)?;
        if let Some(sizes) = dense(shape, &groups) {
            return Some(Split::Dense(sizes));
        }
        let among = among_axes(shape.len(), axes);
        let mut order = other_axes(shape.len(), axes);
        let kept = order.len();
        order.extend((0..shape.len()).filter(|&axis| among[axis]));
        let [before, reduced] = [&order[..kept], &order[kept..]]
            .map(|axes| axes.iter().map(|&axis| shape[axis]).product::<usize>());
        if reduced < fold::MIN_STRIPED_ELEMENTS || groups.len() > MAX_STAGES {
            return Some(Split::Moved { sizes: ReductionSizes { before, reduced, after: 1 }, order });
        }
        let size = |&(first, last): &(usize, usize)| shape[first..last].iter().product::<usize>();
        // The larger group leaves fewer results.
        let (first, last) = (groups.first()?, groups.last()?);
        let &(first, last) = if size(first) >= size(last) { first } else { last };
        let kept = || (0..shape.len()).filter(|&axis| !(first..last).contains(&axis) || !among[axis]);
        Some(Split::Stage(Stage {
            axes: (first..last).filter(|&axis| among[axis]).collect(),
            lane: FoldKernels::new(op, dtype)?.lane,
            shape: kept().map(|axis| shape[axis]).collect(),
            rest: kept().enumerate().filter(|&(_, axis)| among[axis]).map(|(place, _)| place).collect(),
        }))
    }
}

/// The first axis and the end of each group of neighbours among some axes, apart from axes of size one, which count
/// as neither folded nor kept. `None` if they are not axes of the shape.
fn groups(shape: &[usize], axes: &[usize]) -> Option<SmallVec<[(usize, usize); 2]>> {
    check_axes("reduce", axes, shape.len()).ok()?;
    let among = among_axes(shape.len(), axes);
    let mut groups: SmallVec<[(usize, usize); 2]> = SmallVec::new();
    let mut is_open = false;
    for axis in (0..shape.len()).filter(|&axis| shape[axis] != 1) {
        match groups.last_mut() {
            Some((_, last)) if among[axis] && is_open => *last = axis + 1,
            _ if among[axis] => groups.push((axis, axis + 1)),
            _ => {}
        }
        is_open = among[axis];
    }
    Some(groups)
}

/// The sizes of a fold, and the conversion of its lanes to the result.
struct FoldTarget {
    sizes: ReductionSizes,
    store: Option<Conversion>,
    /// The number of bytes in an element of the result.
    width: usize,
}

/// The loops of an operation for a type.
#[derive(Clone, Copy)]
struct FoldLoops {
    rows: FoldRows,
    columns: FoldColumns,
    /// The loops that fold columns, and the stripes of a row, further from what is in the lanes, if there
    /// are any.
    onto: Option<[FoldColumns; 2]>,
}

/// Returns the loops of an operation for a type, or `None` if it is not defined on the type.
type LoopsForType = fn(DType) -> Option<FoldLoops>;

/// The loops of an operation for a type, and the type of their lanes.
#[derive(Clone, Copy)]
struct FoldKernels {
    loops: FoldLoops,
    lane: DType,
    loops_for_type: LoopsForType,
    /// Whether short rows are folded faster as columns.
    transposes: bool,
    cost: Cost,
}

impl FoldKernels {
    fn new(op: ReduceOp, dtype: DType) -> Option<Self> {
        let (lane, loops_for_type): (DType, LoopsForType) = match op {
            ReduceOp::Sum => (total_lane(dtype), total_loops::<Sum>),
            ReduceOp::Product => (total_lane(dtype), total_loops::<Product>),
            ReduceOp::ReduceMax => (extreme_lane(dtype), extreme_loops::<Largest>),
            ReduceOp::ReduceMin => (extreme_lane(dtype), extreme_loops::<Smallest>),
            ReduceOp::All => (DType::U8, truth_loops::<AllOf>),
            ReduceOp::Any => (DType::U8, truth_loops::<AnyOf>),
        };
        // Folds of integers and truths need not go from left to right, and other floats are widened or
        // transposed more slowly than they are added. (`kernels`: sum_of_short_rows, max_of_short_rows.)
        let transposes = match op {
            ReduceOp::Sum | ReduceOp::Product => dtype == DType::F32,
            ReduceOp::ReduceMax | ReduceOp::ReduceMin => dtype.is_float(),
            ReduceOp::All | ReduceOp::Any => false,
        };
        let loops = loops_for_type(dtype)?;
        Some(FoldKernels { loops, lane, loops_for_type, transposes, cost: cost(dtype) })
    }

    /// The loops that fold lanes further.
    fn for_lanes(self) -> Self {
        let loops = (self.loops_for_type)(self.lane).unwrap_or(self.loops);
        FoldKernels { loops, transposes: false, ..self }
    }
}

/// Folds `[before, reduced, after]` dense elements into `[before, after]`.
fn fold_all(
    op: &'static str,
    kernels: FoldKernels,
    bytes: &[u8],
    dtype: DType,
    target: FoldTarget,
    out: &mut [u8],
) -> Result<(), Error> {
    let FoldTarget { sizes: ReductionSizes { before, reduced, after }, store, .. } = target;
    let width = dtype.width();
    let lane = kernels.lane.width();
    let size = before * after;
    if size == 0 {
        return Ok(());
    }
    let cost = kernels.cost.saturating_mul(reduced.max(1) as Cost);
    if let Some(block) = target.sizes.block() {
        let blocks = reduced.div_ceil(block);
        let partial = |bytes: &[u8], out: &mut [u8]| {
            if after == 1 {
                (kernels.loops.rows)(bytes, bytes.len() / width, out)
            } else {
                (kernels.loops.columns)(bytes, after, out)
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
        let target = FoldTarget { sizes: ReductionSizes { before, reduced: blocks, after }, ..target };
        return fold_all(op, kernels.for_lanes(), &partials, kernels.lane, target, out);
    }
    let out_width = target.width;
    let fold_part = |start: usize, part: &mut [u8]| {
        let buffered = if store.is_some() { TILE_ELEMENTS.min(size) * lane } else { 0 };
        let mut lanes: SmallVec<[u8; 64]> = smallvec![0; buffered];
        let mut position = start;
        let mut rest = part;
        while !rest.is_empty() {
            // A tile of results in one plane.
            let column = if after == 1 { 0 } else { position % after };
            // The width is a power of two; a division would take as long as several elements.
            let remaining = rest.len() >> out_width.trailing_zeros();
            let length =
                if after == 1 { TILE_ELEMENTS } else { TILE_ELEMENTS.min(after - column) }.min(remaining);
            let (head, tail) = rest.split_at_mut(length * out_width);
            let computed = if store.is_some() { &mut lanes[..length * lane] } else { &mut *head };
            if reduced == 0 {
                // The neutral element: a column loop over zero rows.
                (kernels.loops.columns)(&[], 1, computed);
            } else if after == 1 {
                let rows = &bytes[position * reduced * width..][..length * reduced * width];
                if kernels.transposes && fold::are_rows_short((length, reduced)) {
                    fold::short_rows(kernels.loops.columns, rows, (length, reduced), computed);
                } else {
                    (kernels.loops.rows)(rows, reduced, computed);
                }
            } else {
                let first = position / after * reduced * after + column;
                let last = first + (reduced - 1) * after + length;
                (kernels.loops.columns)(&bytes[first * width..last * width], after, computed);
            }
            positive_nan(kernels.lane, computed);
            if let Some(Conversion { convert, .. }) = store {
                convert(&lanes[..length * lane], head);
            }
            position += length;
            rest = tail;
        }
    };
    if parallel::is_worth_sharing(size, cost) {
        parallel::fill(out, size, cost, fold_part);
    } else {
        fold_part(0, out);
    }
    Ok(())
}

/// Replaces NaN by the positive NaN that Nx writes: the sign of NaN results differs among
/// processors.
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

/// The lane of sums and products. Integers are added modulo 2^64: the low bits are right for every
/// integer type. Signed lanes matter where the result is a float.
fn total_lane(dtype: DType) -> DType {
    match dtype {
        _ if dtype.kind() == Kind::Signed => DType::S64,
        _ if dtype.is_integer() => DType::U64,
        _ if dtype.is_complex() => DType::C128,
        _ => DType::F64,
    }
}

fn total_loops<F: Fold<u64> + Fold<f64> + Fold<Complex<f64>>>(dtype: DType) -> Option<FoldLoops> {
    Some(match dtype {
        DType::C64 => loops::<Complex<f32>, Complex<f64>, CastOf, F>(),
        DType::C128 => loops::<Complex<f64>, Complex<f64>, CastOf, F>(),
        DType::BF16 => FoldLoops {
            rows: fold::bf16_rows::<F>,
            columns: fold::bf16_columns::<F>,
            onto: Some([fold::bf16_columns_onto::<F>; 2]),
        },
        DType::F16 => narrow_loops::<F16, F>(),
        DType::F8 => narrow_loops::<F8, F>(),
        DType::F8E4M3FN => narrow_loops::<F8E4M3FN, F>(),
        real => dispatch!(real real, S => total_real::<S, F>(), else => return None),
    })
}

/// `loops` of minifloats in f64.
fn narrow_loops<S: NarrowFloat, F: Fold<f64>>() -> FoldLoops {
    FoldLoops { rows: fold::widened_rows::<S, F>, ..loops::<S, f64, CastOf, F>() }
}

fn total_real<S: Element, F: Fold<u64> + Fold<f64>>() -> FoldLoops {
    match S::CLASS {
        crate::dtype::Class::Integer => loops::<S, u64, CastOf, F>(),
        _ => loops::<S, f64, CastOf, F>(),
    }
}

/// The lane of minima and maxima: minifloats are compared as f32.
fn extreme_lane(dtype: DType) -> DType {
    match dtype.storage() {
        DType::F8 | DType::F8E4M3FN | DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// A minimum or maximum of every real lane.
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
    const LARGEST: bool;
}
impl Extreme for Largest {
    const LARGEST: bool = true;
}
impl Extreme for Smallest {
    const LARGEST: bool = false;
}

fn extreme_loops<F: Extreme>(dtype: DType) -> Option<FoldLoops> {
    Some(match dtype.storage() {
        DType::F64 => loops::<f64, f64, CastOf, F>(),
        // Columns of f32 need no integer comparison: this loop is as short.
        DType::F32 => FoldLoops { rows: float_rows::<f32, i32, F>(), ..loops::<f32, f32, CastOf, F>() },
        DType::F16 => float_loops::<F16, F>(),
        DType::BF16 => float_loops::<BF16, F>(),
        DType::F8 => loops::<F8, f32, CastOf, F>(),
        DType::F8E4M3FN => loops::<F8E4M3FN, f32, CastOf, F>(),
        integer => dispatch!(integer integer, S => loops::<S, S, CastOf, F>(), else => return None),
    })
}

/// The loops of floats of 16 bits.
fn float_loops<S: Element, F: Extreme>() -> FoldLoops {
    let (rows, columns) = (float_rows::<S, i16, F>(), float_columns::<S, i16, F>());
    FoldLoops { rows, columns, onto: None }
}

/// The loop over rows of floats, which are compared as signed integers `K`, with lanes of f32.
fn float_rows<S: Element, K: SignedBits, F: Extreme>() -> FoldRows {
    if F::LARGEST { argminmax::rows::<S, K, f32, F, true> } else { argminmax::rows::<S, K, f32, F, false> }
}

/// The loop over columns of floats, like `float_rows`.
fn float_columns<S: Element, K: SignedBits, F: Extreme>() -> FoldColumns {
    if F::LARGEST {
        argminmax::columns::<S, K, f32, F, true>
    } else {
        argminmax::columns::<S, K, f32, F, false>
    }
}

fn truth_loops<F: Fold<u8>>(dtype: DType) -> Option<FoldLoops> {
    Some(dispatch!(bits dtype, S => loops::<S, u8, TruthOf, F>(), else => {
        dispatch!(float dtype, S => loops::<S, u8, TruthOf, F>(), else => match dtype {
            DType::C64 => loops::<Complex<f32>, u8, TruthOf, F>(),
            _ => loops::<Complex<f64>, u8, TruthOf, F>(),
        })
    }))
}

fn loops<S: Element, L: Lane, M: crate::exec::convert::Map<S, L>, F: Fold<L>>() -> FoldLoops {
    FoldLoops {
        rows: fold::rows::<S, L, M, F>,
        columns: fold::columns::<S, L, M, F>,
        onto: Some([fold::columns_onto::<S, L, M, F>, fold::stripes_onto::<S, L, M, F>]),
    }
}

macro_rules! impl_fold {
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
pub(super) use impl_fold;

pub(super) struct Sum;
impl_fold!(Sum, true, 0u8, a, b => a.wrapping_add(b); u8, u16, u32, u64);
impl_fold!(Sum, false, 0.0, a, b => a + b; f64, Complex<f64>);
pub(super) struct Product;
impl_fold!(Product, true, 1u8, a, b => a.wrapping_mul(b); u8, u16, u32, u64);
impl_fold!(Product, false, 1.0, a, b => a * b; f64, Complex<f64>);
struct AllOf;
impl_fold!(AllOf, true, 1u8, a, b => a & b; u8);
struct AnyOf;
impl_fold!(AnyOf, true, 0u8, a, b => a | b; u8);

macro_rules! impl_integer_extremes {
    ($largest:ident, $smallest:ident) => {
        impl_integer_extremes!($largest, $smallest: u8, u16, u32, u64, i8, i16, i32, i64);
    };
    ($largest:ident, $smallest:ident: $($t:ty),*) => {$(
        impl_fold!($largest, true, <$t>::MIN, a, b => a.max(b); $t);
        impl_fold!($smallest, true, <$t>::MAX, a, b => a.min(b); $t);
    )*};
}
pub(super) use impl_integer_extremes;

struct Largest;
struct Smallest;
impl_integer_extremes!(Largest, Smallest);
impl_fold!(Largest, false, f32::NEG_INFINITY, a, b => if b > a || b.is_nan() { b } else { a }; f32, f64);
impl_fold!(Smallest, false, f32::INFINITY, a, b => if b < a || b.is_nan() { b } else { a }; f32, f64);
