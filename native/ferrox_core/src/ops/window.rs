//! Sums, products, maxima and minima of windows that slide over a tensor.
//!
//! As reductions do, sums and products of floats accumulate in 64 bits (128 for
//! complex) and round once; minima and maxima propagate NaN, and of equal
//! elements the last one counts, as in `Nx.BinaryBackend`. Axes are folded from
//! the last to the first: floats are added up along the last axis first.

use std::borrow::Cow;

use num_complex::Complex;

use crate::cost::{self, Cost, Work};
use crate::error::ShapeDisplay;
use crate::exec::convert::{Convert, conversion};
use crate::exec::copy;
use crate::exec::memory::scratch;
use crate::exec::reduce::fold::{Fold, OrNan};
use crate::exec::threads::cooperative_yield::pause;
use crate::exec::threads::parallel;
use crate::exec::window::{self, Axis, BYTE, Folder, Pass, SIDE_BY_SIDE};
use crate::layout::MAX_EXTENT;
use crate::ops::reduce::positive_nan;
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, Kind, dispatch};

macro_rules! window_ops {
    ($($variant:ident, $name:literal;)*) => {
        /// A fold of windows, named as Nx names it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum WindowOp {
            $(#[doc = concat!("`Nx.", $name, "/3`")] $variant,)*
        }

        impl WindowOp {
            /// Every fold.
            pub const ALL: &'static [WindowOp] = &[$(WindowOp::$variant,)*];

            /// The name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(WindowOp::$variant => $name,)* }
            }
        }
    };
}

window_ops! {
    Sum, "window_sum";
    Product, "window_product";
    Max, "window_max";
    Min, "window_min";
}

/// Windows over a tensor, one entry an axis.
#[derive(Clone, Copy, Debug)]
pub struct Windows<'a> {
    /// Places of a window.
    pub shape: &'a [usize],
    /// Padding before and behind, negative to leave elements out.
    pub padding: &'a [(i64, i64)],
    /// From one window to the next.
    pub strides: &'a [usize],
    /// From one place of a window to the next.
    pub dilations: &'a [usize],
}

impl Windows<'_> {
    /// The axes over elements of a shape.
    ///
    /// # Errors
    ///
    /// `Error::Argument` if the lists don't have an entry for each axis, for a
    /// stride, dilation or window of zero, or where the window is larger than
    /// the padded axis.
    pub(crate) fn axes(&self, op: &'static str, shape: &[usize]) -> Result<Vec<Axis>, Error> {
        let problem = |problem: String| Err(Error::Argument { op, problem });
        let lengths = [self.shape.len(), self.padding.len(), self.strides.len(), self.dilations.len()];
        if lengths.iter().any(|&length| length != shape.len()) {
            return problem(format!(
                "window, padding, strides and dilations must have an entry for each of {} axes",
                shape.len()
            ));
        }
        if [self.shape, self.strides, self.dilations].iter().any(|list| list.contains(&0)) {
            return problem("window sizes, strides and dilations must be at least 1".into());
        }
        let mut axes = Vec::with_capacity(shape.len());
        for (axis, &size) in shape.iter().enumerate() {
            let (low, high) = self.padding[axis];
            let (places, stride, dilation) = (self.shape[axis], self.strides[axis], self.dilations[axis]);
            let padded = size as i128 + i128::from(low) + i128::from(high);
            let extent = (places as i128 - 1) * dilation as i128 + 1;
            if padded > MAX_EXTENT || i128::from(low).abs() > MAX_EXTENT {
                return problem(format!("padding {{{low}, {high}}} is out of range"));
            }
            if extent > padded {
                let (window, shape) = (ShapeDisplay(self.shape), ShapeDisplay(shape));
                return problem(format!(
                    "window {window} is larger than the padded tensor of shape {shape} in axis {axis}"
                ));
            }
            let windows = (padded - extent) as usize / stride + 1;
            axes.push(Axis { size, windows, places, stride, dilation, low: low as isize });
        }
        Ok(axes)
    }
}

/// The shape of what windows over a shape give.
pub(crate) fn shape_of(axes: &[Axis]) -> Vec<usize> {
    axes.iter().map(|axis| axis.windows).collect()
}

pub(crate) fn check_shape(
    op: &'static str,
    axes: &[Axis],
    given: &[usize],
    input: &[usize],
) -> Result<(), Error> {
    let expected = shape_of(axes);
    if expected == given {
        return Ok(());
    }
    let shapes = vec![input.to_vec(), given.to_vec()];
    let problem = format!("differ from windows of shape {}", ShapeDisplay(&expected));
    Err(Error::Shape { op, shapes, problem })
}

/// The work of folding windows over a shape; none where they don't fit.
#[must_use]
pub fn work(op: WindowOp, dtype: DType, shape: &[usize], windows: Windows<'_>) -> Work {
    let Some((lane, folder)) = folder(op, dtype) else { return 0 };
    let Ok(axes) = windows.axes(op.name(), shape) else { return 0 };
    let load = conversion(dtype, lane).map_or(Load::Same, Load::Convert);
    Plan::new(op.name(), &axes, lane, folder, [0; 16]).work(load, dtype.width())
}

/// Folds each window of a tensor. `out` has its type.
///
/// # Errors
///
/// `Error::UnsupportedType` for extremes of complex numbers or if the types
/// differ, `Error::Argument` for windows that don't fit, `Error::Shape` if
/// `out` has not one element for each, and `Error::TooLarge` if there is no
/// memory for an intermediate result.
pub fn window(op: WindowOp, out: Output<'_>, input: &Tensor<'_>, windows: Windows<'_>) -> Result<(), Error> {
    let name = op.name();
    let dtype = input.dtype();
    let unsupported = || Error::UnsupportedType { op: name, dtypes: vec![dtype, out.dtype] };
    if out.dtype != dtype {
        return Err(unsupported());
    }
    let (lane, folder) = folder(op, dtype).ok_or_else(unsupported)?;
    let axes = windows.axes(name, input.shape())?;
    check_shape(name, &axes, out.shape, input.shape())?;
    let neutral = neutral(op, dtype, lane);
    let plan = Plan::new(name, &axes, lane, folder, neutral);
    let load = conversion(dtype, lane).map_or(Load::Same, Load::Convert);
    let store = conversion(lane, dtype);
    let bytes = copy::dense(name, input)?;
    out.write(name, |out| plan.run(&bytes, dtype.width(), load, store, out))
}

/// What windows are folded in, and how; none if the type has no such fold.
fn folder(op: WindowOp, dtype: DType) -> Option<(DType, Folder)> {
    match op {
        WindowOp::Sum => Some(total::<Sum>(dtype)),
        WindowOp::Product => Some(total::<Product>(dtype)),
        WindowOp::Max => extreme::<Largest>(dtype),
        WindowOp::Min => extreme::<Smallest>(dtype),
    }
}

/// Integers wrap, in any width; floats accumulate wide.
fn total<F>(dtype: DType) -> (DType, Folder)
where
    F: Fold<u8> + Fold<u16> + Fold<u32> + Fold<u64> + Fold<f64> + Fold<Complex<f64>>,
{
    match dtype.kind() {
        Kind::Complex => (DType::C128, window::fold::<Complex<f64>, F>),
        Kind::Float | Kind::BFloat => (DType::F64, window::fold::<f64, F>),
        Kind::Unsigned | Kind::Signed => match dtype.width() {
            1 => (DType::U8, window::fold::<u8, F>),
            2 => (DType::U16, window::fold::<u16, F>),
            4 => (DType::U32, window::fold::<u32, F>),
            _ => (DType::U64, window::fold::<u64, F>),
        },
    }
}

/// Narrow floats are compared as f32.
fn extreme<F>(dtype: DType) -> Option<(DType, Folder)>
where
    F: Fold<u8> + Fold<u16> + Fold<u32> + Fold<u64>,
    F: Fold<i8> + Fold<i16> + Fold<i32> + Fold<i64> + Fold<f32> + Fold<f64>,
{
    Some(match dtype {
        DType::F64 => (dtype, window::fold::<f64, F>),
        _ if dtype.is_float() => (DType::F32, window::fold::<f32, F>),
        _ => dispatch!(integer dtype, T => (dtype.storage(), window::fold::<T, F>), else => return None),
    })
}

/// The lane that padding counts as: that of an empty window.
fn neutral(op: WindowOp, dtype: DType, lane: DType) -> [u8; 16] {
    let unused = 64 - dtype.bits().min(64) as u32;
    let (integer, real) = match op {
        WindowOp::Sum => (0, 0.0),
        WindowOp::Product => (1, 1.0),
        WindowOp::Max if dtype.kind() == Kind::Unsigned => (0, 0.0),
        WindowOp::Max => (i64::MIN >> unused, f64::NEG_INFINITY),
        WindowOp::Min if dtype.kind() == Kind::Unsigned => ((u64::MAX >> unused).cast_signed(), 0.0),
        WindowOp::Min => (i64::MAX >> unused, f64::INFINITY),
    };
    // Infinities of the type, or the largest value if it has none.
    let real = if dtype == DType::F8E4M3FN { real.clamp(-448.0, 448.0) } else { real };
    let (from, value) = if dtype.is_integer() {
        (DType::S64, integer.to_ne_bytes())
    } else {
        (DType::F64, real.to_ne_bytes())
    };
    let mut bytes = [0; 16];
    match conversion(from, lane) {
        Some(convert) => convert(&value, &mut bytes[..lane.width()]),
        None => bytes[..8].copy_from_slice(&value),
    }
    bytes
}

macro_rules! meaning {
    ($name:ident, $start:expr, $a:ident, $b:ident => $body:expr; $($t:ty),*) => {$(
        impl Fold<$t> for $name {
            #[inline(always)]
            fn start() -> $t { $start.into() }
            #[inline(always)]
            fn fold($a: $t, $b: $t) -> $t { $body }
        }
    )*};
}

struct Sum;
meaning!(Sum, 0u8, a, b => a.wrapping_add(b); u8, u16, u32, u64);
meaning!(Sum, 0.0, a, b => a + b; f64, Complex<f64>);
struct Product;
meaning!(Product, 1u8, a, b => a.wrapping_mul(b); u8, u16, u32, u64);
meaning!(Product, 1.0, a, b => a * b; f64, Complex<f64>);

macro_rules! extremes {
    ($($t:ty),*) => {$(
        meaning!(Largest, <$t>::MIN, a, b => a.max(b); $t);
        meaning!(Smallest, <$t>::MAX, a, b => a.min(b); $t);
    )*};
}
struct Largest;
struct Smallest;
extremes!(u8, u16, u32, u64, i8, i16, i32, i64);
// Of zeros the last one counts, whatever its sign.
meaning!(Largest, f32::NEG_INFINITY, a, b => (if a > b { a } else { b }).or_nan(a); f32, f64);
meaning!(Smallest, f32::INFINITY, a, b => (if a < b { a } else { b }).or_nan(a); f32, f64);

/// How elements become lanes.
#[derive(Clone, Copy)]
pub(crate) enum Load {
    /// They are lanes.
    Same,
    /// Each by itself.
    Convert(Convert),
    /// Each with its place among all: the place of the first, elements, lanes.
    Numbered(fn(usize, &[u8], &mut [u8])),
}

/// The passes over the axes, from the last to the first.
pub(crate) struct Plan {
    op: &'static str,
    lane: DType,
    folder: Folder,
    neutral: [u8; 16],
    /// Sizes before the first axis that is folded, and behind the last one.
    before: usize,
    after: usize,
    axes: Vec<Axis>,
}

/// Lanes that a piece of the work should fit into, so that they stay in the
/// second-level cache.
const PIECE: usize = 1 << 15;

/// Axes with windows of all their elements as one axis: that takes a pass less. They are folded
/// from the first element to the last, so that there must be windows enough to do so side by side.
fn joined(before: usize, axes: Vec<Axis>) -> Vec<Axis> {
    let is_whole = |axis: &Axis| {
        Axis { windows: 1, places: axis.size, stride: 1, dilation: 1, low: 0, ..*axis } == *axis
    };
    let mut joined: Vec<Axis> = Vec::with_capacity(axes.len());
    let mut windows = before;
    for axis in axes {
        match joined.last_mut() {
            Some(last) if windows >= SIDE_BY_SIDE && is_whole(last) && is_whole(&axis) => {
                last.size *= axis.size;
                last.places = last.size;
            }
            _ => {
                windows = windows.saturating_mul(axis.windows);
                joined.push(axis);
            }
        }
    }
    joined
}

impl Plan {
    pub(crate) fn new(
        op: &'static str,
        axes: &[Axis],
        lane: DType,
        folder: Folder,
        neutral: [u8; 16],
    ) -> Self {
        let axes: Vec<Axis> = axes.iter().map(|axis| axis.trimmed()).collect();
        let folded = |axis: &Axis| !axis.is_trivial();
        // Something is folded in any case: that makes a zero of -0.0 in a sum.
        let last = axes.iter().rposition(folded).or_else(|| axes.len().checked_sub(1));
        let first = axes.iter().position(folded).or(last);
        let size = |axes: &[Axis]| axes.iter().map(|axis| axis.size).product();
        let (before, after, axes) = match (first, last) {
            (Some(first), Some(last)) => {
                (size(&axes[..first]), size(&axes[last + 1..]), axes[first..=last].to_vec())
            }
            _ => {
                let one = Axis { size: 1, windows: 1, places: 1, stride: 1, dilation: 1, low: 0 };
                (1, 1, vec![one])
            }
        };
        Plan { op, lane, folder, neutral, before, after, axes: joined(before, axes) }
    }

    /// The product of the axes before those that are folded.
    pub(crate) fn before(&self) -> usize {
        self.before
    }

    /// Picoseconds for a row of windows of the first axis.
    fn cost(&self, load: Load, width: usize) -> Cost {
        let lane = self.lane.width() as Cost;
        let product = |sizes: &mut dyn Iterator<Item = usize>| {
            sizes.fold(1, |product: Cost, size| product.saturating_mul(size as Cost))
        };
        let mut size = product(&mut self.axes.iter().map(|axis| axis.size).chain([self.after]));
        let load = if matches!(load, Load::Same) { 5 * width as Cost } else { 100 };
        let mut total = size.saturating_mul(load);
        for axis in self.axes.iter().rev() {
            size = (size / axis.size.max(1) as Cost).saturating_mul(axis.windows as Cost);
            let steps = if axis.is_long() { 12 } else { axis.places as Cost + 1 };
            let strided = match axis.stride {
                2 if self.after == 1 => 2,
                2.. if self.after == 1 => 4,
                _ => 1,
            };
            total = total.saturating_add(size.saturating_mul(steps).saturating_mul(lane * BYTE * strided));
        }
        total / self.axes[0].windows.max(1) as Cost + 1
    }

    /// The work of all rows.
    pub(crate) fn work(&self, load: Load, width: usize) -> Work {
        cost::work(self.before, self.cost(load, width).saturating_mul(self.axes[0].windows as Cost))
    }

    /// Folds dense elements of `width` bytes, and hands the lanes to `store`.
    pub(crate) fn run(
        &self,
        bytes: &[u8],
        width: usize,
        load: Load,
        store: Option<Convert>,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let first = self.axes[0];
        let inner = &self.axes[1..];
        let product = |dim: fn(&Axis) -> usize| inner.iter().map(dim).product::<usize>() * self.after;
        let size = self.before * first.windows;
        if size * product(|axis| axis.windows) == 0 {
            return Ok(());
        }
        let elements = product(|axis| axis.size);
        let row = out.len() / size;
        let job = Job { plan: self, bytes, width, load, store, elements, row };
        let cost = self.cost(load, width);
        // Rows that a thread takes need the elements next to them as well.
        let apart = first.extent().saturating_mul(8 * parallel::threads()) <= first.windows * first.stride;
        if apart {
            return parallel::try_fill_shares(out, size, cost, |start, part| job.run(start, part));
        }
        let cost = cost.saturating_mul(first.windows as Cost);
        parallel::try_fill_shares(out, self.before, cost, |start, part| job.run(start * first.windows, part))
    }
}

/// A plan with what it is for.
struct Job<'a> {
    plan: &'a Plan,
    bytes: &'a [u8],
    width: usize,
    load: Load,
    store: Option<Convert>,
    /// Elements of one row of the first axis, and bytes of the result's.
    elements: usize,
    row: usize,
}

/// Some windows of the first axis, in some of the slabs before it.
struct Piece {
    slabs: usize,
    /// As in `Pass`.
    rows: (usize, usize),
    windows: (usize, usize),
}

impl Job<'_> {
    /// Folds the rows from `start` on, as many as fit `out`, piece by piece.
    fn run(&self, start: usize, out: &mut [u8]) -> Result<(), Error> {
        let (first, elements) = (self.plan.axes[0], self.elements);
        // Windows of the first axis in one piece: they are read a few elements
        // further, which should be little next to the piece.
        let fitting = (PIECE / elements.max(1)).saturating_sub(first.extent()) / first.stride;
        let fitting = fitting.max((4 * first.extent()).div_ceil(first.stride)).clamp(1, first.windows);
        let whole = (PIECE / (elements * first.size).max(1)).max(1);
        let mut memory = Vec::new();
        let (mut position, mut rest) = (start, out);
        while !rest.is_empty() {
            let (slab, window) = (position / first.windows, position % first.windows);
            let left = rest.len() / self.row;
            let (slabs, windows) = if window == 0 && fitting == first.windows && left >= fitting {
                ((left / first.windows).min(whole), first.windows)
            } else {
                (1, fitting.min(left).min(first.windows - window))
            };
            // All elements of a slab, if there may be several.
            let part = windows < first.windows;
            let (from, to) = if part { first.elements(window, window + windows) } else { (0, first.size) };
            let begin = (slab * first.size + from) * elements;
            let length = ((slabs - 1) * first.size + to - from) * elements;
            let (head, tail) = rest.split_at_mut(slabs * windows * self.row);
            let piece = Piece { slabs, rows: (to - from, from), windows: (windows, window) };
            self.piece(&piece, begin, length, &mut memory, head)?;
            pause();
            position += slabs * windows;
            rest = tail;
        }
        Ok(())
    }

    /// Folds one piece, made of so many elements; `memory` holds buffers of
    /// the pieces before.
    fn piece(
        &self,
        piece: &Piece,
        begin: usize,
        length: usize,
        memory: &mut Vec<Vec<u8>>,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let Plan { op, lane, folder, neutral, ref axes, .. } = *self.plan;
        let sized = |memory: &mut Vec<Vec<u8>>, lanes: usize| {
            let length = lanes * lane.width();
            let mut buffer = memory.pop().unwrap_or_default();
            if buffer.capacity() < length {
                return scratch(op, lane, &[lanes], length);
            }
            buffer.resize(length, 0);
            Ok(buffer)
        };
        let bytes = &self.bytes[begin * self.width..][..length * self.width];
        let mut current = Cow::Borrowed(bytes);
        if !matches!(self.load, Load::Same) {
            let mut buffer = sized(memory, length)?;
            match self.load {
                Load::Same => {}
                Load::Convert(convert) => convert(bytes, &mut buffer),
                Load::Numbered(number) => number(begin, bytes, &mut buffer),
            }
            current = Cow::Owned(buffer);
        }
        let mut after = self.plan.after;
        for (index, &axis) in axes.iter().enumerate().rev() {
            if index > 0 && axis.is_trivial() {
                after *= axis.windows;
                continue;
            }
            let (rows, windows) =
                if index == 0 { (piece.rows, piece.windows) } else { ((axis.size, 0), (axis.windows, 0)) };
            let pass = Pass { axis, rows, windows, after, neutral };
            let mut work = sized(memory, pass.workspace())?;
            if index == 0 && self.store.is_none() {
                folder(&pass, &current, out, &mut work);
            } else {
                let between: usize = axes[1..index.max(1)].iter().map(|axis| axis.size).product();
                let before = piece.slabs * if index == 0 { 1 } else { piece.rows.0 * between };
                let mut buffer = sized(memory, before * windows.0 * after)?;
                folder(&pass, &current, &mut buffer, &mut work);
                if let Cow::Owned(used) = std::mem::replace(&mut current, Cow::Owned(buffer)) {
                    memory.push(used);
                }
            }
            memory.push(work);
            after *= axis.windows;
        }
        match self.store {
            Some(convert) => {
                positive_nan(lane, current.to_mut());
                convert(&current, out);
            }
            None => positive_nan(lane, out),
        }
        if let Cow::Owned(used) = current {
            memory.push(used);
        }
        Ok(())
    }
}
