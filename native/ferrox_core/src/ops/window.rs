//! Sums, products, maxima and minima of windows that slide over a tensor.
//!
//! As in reductions, sums and products of floats are accumulated in 64 bits (128 for complex
//! numbers) and rounded once. Minima and maxima propagate NaN; of equal elements the last one is
//! the result, as in `Nx.BinaryBackend`. Axes are folded from the last to the first, so floats are
//! added along the last axis first. The loops are in `exec/window.rs`.

use std::borrow::Cow;

use num_complex::Complex;

use crate::cost::{
    self, Cost, FOLD_BYTE_COST, FOLDED_WINDOW_COST, LANES_PER_WINDOW_BLOCK, LONG_WINDOW_FOLDS,
    STRIDE_2_FOLD_FACTOR, STRIDED_FOLD_FACTOR, WINDOW_CONVERT_COST, WINDOW_LOAD_BYTE_COST, Work,
};
use crate::error::ShapeDisplay;
use crate::exec::convert::{Convert, conversion};
use crate::exec::copy;
use crate::exec::memory::scratch;
use crate::exec::reduce::fold::{Fold, OrNan};
use crate::exec::threads::cooperative_yield::pause;
use crate::exec::threads::parallel;
use crate::exec::window::{self, FoldWindows, INTERLEAVED_WINDOWS, Pass, WindowAxis};
use crate::layout::MAX_EXTENT;
use crate::ops::reduce::{Product, Sum, impl_fold, impl_integer_extremes, positive_nan};
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, Kind, dispatch};

named! {
    /// A fold of windows, with its name in Nx.
    pub enum WindowOp {
        Sum, "window_sum";
        Product, "window_product";
        Max, "window_max";
        Min, "window_min";
    }
}

/// Windows over a tensor. Lists have an entry for each axis.
#[derive(Clone, Copy, Debug)]
pub struct SlidingWindows<'a> {
    /// The number of elements of a window.
    pub shape: &'a [usize],
    /// The padding before and after the elements; a negative number removes elements.
    pub padding: &'a [(i64, i64)],
    /// The distance from one window to the next.
    pub strides: &'a [usize],
    /// The distance from one element of a window to the next.
    pub dilations: &'a [usize],
}

impl SlidingWindows<'_> {
    /// Returns the windows along each axis of a shape.
    ///
    /// # Errors
    ///
    /// `Error::Argument` if a list doesn't have an entry for each axis, for a stride, dilation or
    /// window of zero, or if the window is larger than the padded axis.
    pub(crate) fn axes(&self, op: &'static str, shape: &[usize]) -> Result<Vec<WindowAxis>, Error> {
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
            let (taps, stride, dilation) = (self.shape[axis], self.strides[axis], self.dilations[axis]);
            let padded = size as i128 + i128::from(low) + i128::from(high);
            // An extent that overflows is larger than any axis.
            let extent = (taps as i128 - 1).checked_mul(dilation as i128).map_or(i128::MAX, |e| e + 1);
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
            // Between one window or tap and the next there is a distance only if there are two, and it
            // may be of any size.
            let stride = if windows == 1 { 1 } else { stride };
            let dilation = if taps == 1 { 1 } else { dilation };
            axes.push(WindowAxis { size, windows, taps, stride, dilation, low: low as isize });
        }
        Ok(axes)
    }
}

/// The shape of the result.
pub(crate) fn result_shape(axes: &[WindowAxis]) -> Vec<usize> {
    axes.iter().map(|axis| axis.windows).collect()
}

pub(crate) fn check_shape(
    op: &'static str,
    axes: &[WindowAxis],
    given: &[usize],
    input: &[usize],
) -> Result<(), Error> {
    let expected = result_shape(axes);
    if expected == given {
        return Ok(());
    }
    let shapes = vec![input.to_vec(), given.to_vec()];
    let problem = format!("differ from windows of shape {}", ShapeDisplay(&expected));
    Err(Error::Shape { op, shapes, problem })
}

/// Returns the work of folding windows over a shape; 0 if they don't fit.
#[must_use]
pub fn work(op: WindowOp, dtype: DType, shape: &[usize], windows: SlidingWindows<'_>) -> Work {
    let Some((lane, fold_loops)) = fold_loops(op, dtype) else { return 0 };
    let Ok(axes) = windows.axes(op.name(), shape) else { return 0 };
    let load = conversion(dtype, lane).map_or(LaneLoad::Same, LaneLoad::Convert);
    let results = axes.iter().fold(1_usize, |results, axis| results.saturating_mul(axis.windows));
    WindowPasses::new(op.name(), &axes, lane, fold_loops, [0; 16])
        .work(load, dtype.width())
        .saturating_add(cost::work(results, FOLDED_WINDOW_COST))
}

/// Folds each window of a tensor. `out` has the type of the tensor.
///
/// # Errors
///
/// `Error::UnsupportedType` for maxima and minima of complex numbers or if the types differ,
/// `Error::Argument` for windows that don't fit, `Error::Shape` if `out` doesn't have one element
/// for each window, and `Error::TooLarge` if there is no memory for an intermediate result.
pub fn window(
    op: WindowOp,
    out: Output<'_>,
    input: &Tensor<'_>,
    windows: SlidingWindows<'_>,
) -> Result<(), Error> {
    let name = op.name();
    let dtype = input.dtype();
    let unsupported = || Error::UnsupportedType { op: name, dtypes: vec![dtype, out.dtype] };
    if out.dtype != dtype {
        return Err(unsupported());
    }
    let (lane, fold_loops) = fold_loops(op, dtype).ok_or_else(unsupported)?;
    let axes = windows.axes(name, input.shape())?;
    check_shape(name, &axes, out.shape, input.shape())?;
    let neutral = neutral(op, dtype, lane);
    let passes = WindowPasses::new(name, &axes, lane, fold_loops, neutral);
    let load = conversion(dtype, lane).map_or(LaneLoad::Same, LaneLoad::Convert);
    let store = conversion(lane, dtype);
    let bytes = copy::dense(name, input)?;
    out.write(name, |out| passes.run(&bytes, dtype.width(), load, store, out))
}

/// Returns the lane type and the loops of an operation, or `None` if it has none for the type.
fn fold_loops(op: WindowOp, dtype: DType) -> Option<(DType, FoldWindows)> {
    match op {
        WindowOp::Sum => Some(total_fold::<Sum>(dtype)),
        WindowOp::Product => Some(total_fold::<Product>(dtype)),
        WindowOp::Max => extreme_fold::<WindowMax>(dtype),
        WindowOp::Min => extreme_fold::<WindowMin>(dtype),
    }
}

/// Integers wrap at their own width; floats are accumulated in 64 bits.
fn total_fold<F>(dtype: DType) -> (DType, FoldWindows)
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

/// Floats narrower than 32 bits are compared as f32.
fn extreme_fold<F>(dtype: DType) -> Option<(DType, FoldWindows)>
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

/// The lane that padding counts as, which is the result of an empty window.
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
    // A type without infinities has its largest values instead.
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

struct WindowMax;
struct WindowMin;
impl_integer_extremes!(WindowMax, WindowMin);
// Of two zeros the last one is the result, whatever its sign.
impl_fold!(WindowMax, false, f32::NEG_INFINITY, a, b => (if a > b { a } else { b }).or_nan(a); f32, f64);
impl_fold!(WindowMin, false, f32::INFINITY, a, b => (if a < b { a } else { b }).or_nan(a); f32, f64);

/// How elements are converted to lanes.
#[derive(Clone, Copy)]
pub(crate) enum LaneLoad {
    /// Elements are lanes.
    Same,
    /// Each element is converted.
    Convert(Convert),
    /// Each element is converted together with its index. The arguments are the index of the first
    /// element, the elements, and the lanes to write.
    WithIndex(fn(usize, &[u8], &mut [u8])),
}

/// The passes over the axes, from the last to the first.
pub(crate) struct WindowPasses {
    op: &'static str,
    lane: DType,
    fold_loops: FoldWindows,
    neutral: [u8; 16],
    /// The number of elements of the axes before the first axis that is folded, and of those after
    /// the last one.
    before: usize,
    after: usize,
    axes: Vec<WindowAxis>,
}

/// Joins adjacent axes whose only window has all their elements into one axis, which saves a pass.
/// Such a window is folded from its first element to its last, so that axes are joined only if
/// there are enough windows to interleave.
fn join_whole_axes(before: usize, axes: Vec<WindowAxis>) -> Vec<WindowAxis> {
    let is_whole = |axis: &WindowAxis| {
        WindowAxis { windows: 1, taps: axis.size, stride: 1, dilation: 1, low: 0, ..*axis } == *axis
    };
    let mut joined: Vec<WindowAxis> = Vec::with_capacity(axes.len());
    let mut windows = before;
    for axis in axes {
        match joined.last_mut() {
            Some(last) if windows >= INTERLEAVED_WINDOWS && is_whole(last) && is_whole(&axis) => {
                last.size *= axis.size;
                last.taps = last.size;
            }
            _ => {
                windows = windows.saturating_mul(axis.windows);
                joined.push(axis);
            }
        }
    }
    joined
}

impl WindowPasses {
    pub(crate) fn new(
        op: &'static str,
        axes: &[WindowAxis],
        lane: DType,
        fold_loops: FoldWindows,
        neutral: [u8; 16],
    ) -> Self {
        let axes: Vec<WindowAxis> = axes.iter().map(|axis| axis.trimmed()).collect();
        let folded = |axis: &WindowAxis| !axis.is_trivial();
        // At least one axis is folded, since a fold makes 0.0 of -0.0 in a sum.
        let last = axes.iter().rposition(folded).or_else(|| axes.len().checked_sub(1));
        let first = axes.iter().position(folded).or(last);
        let size = |axes: &[WindowAxis]| axes.iter().map(|axis| axis.size).product();
        let (before, after, axes) = match (first, last) {
            (Some(first), Some(last)) => {
                (size(&axes[..first]), size(&axes[last + 1..]), axes[first..=last].to_vec())
            }
            _ => {
                let one = WindowAxis { size: 1, windows: 1, taps: 1, stride: 1, dilation: 1, low: 0 };
                (1, 1, vec![one])
            }
        };
        WindowPasses { op, lane, fold_loops, neutral, before, after, axes: join_whole_axes(before, axes) }
    }

    /// The number of elements of the axes before those that are folded.
    pub(crate) fn before(&self) -> usize {
        self.before
    }

    /// The cost of a row of windows of the first axis.
    fn cost(&self, load: LaneLoad, width: usize) -> Cost {
        let lane = self.lane.width() as Cost;
        let product = |sizes: &mut dyn Iterator<Item = usize>| {
            sizes.fold(1, |product: Cost, size| product.saturating_mul(size as Cost))
        };
        let mut size = product(&mut self.axes.iter().map(|axis| axis.size).chain([self.after]));
        let load = match load {
            LaneLoad::Same => WINDOW_LOAD_BYTE_COST * width as Cost,
            _ => WINDOW_CONVERT_COST,
        };
        let mut total = size.saturating_mul(load);
        for axis in self.axes.iter().rev() {
            size = (size / axis.size.max(1) as Cost).saturating_mul(axis.windows as Cost);
            let steps = if axis.is_long() { LONG_WINDOW_FOLDS } else { axis.taps as Cost + 1 };
            let strided = match axis.stride {
                2 if self.after == 1 => STRIDE_2_FOLD_FACTOR,
                2.. if self.after == 1 => STRIDED_FOLD_FACTOR,
                _ => 1,
            };
            total = total
                .saturating_add(size.saturating_mul(steps).saturating_mul(lane * FOLD_BYTE_COST * strided));
        }
        total / self.axes[0].windows.max(1) as Cost + 1
    }

    /// The work of all rows.
    pub(crate) fn work(&self, load: LaneLoad, width: usize) -> Work {
        cost::work(self.before, self.cost(load, width).saturating_mul(self.axes[0].windows as Cost))
    }

    /// Folds dense elements of `width` bytes, and converts the results with `store`.
    pub(crate) fn run(
        &self,
        bytes: &[u8],
        width: usize,
        load: LaneLoad,
        store: Option<Convert>,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let first = self.axes[0];
        let inner = &self.axes[1..];
        let product = |dim: fn(&WindowAxis) -> usize| inner.iter().map(dim).product::<usize>() * self.after;
        let size = self.before * first.windows;
        if size * product(|axis| axis.windows) == 0 {
            return Ok(());
        }
        let elements = product(|axis| axis.size);
        let row = out.len() / size;
        let window_fold = WindowFold { passes: self, bytes, width, load, store, elements, row };
        let cost = self.cost(load, width);
        // The axis can be split between threads if the elements that two of them read are few.
        let can_split_axis =
            first.extent().saturating_mul(8 * parallel::threads()) <= first.windows * first.stride;
        if can_split_axis {
            return parallel::try_fill_shares(out, size, cost, |start, part| window_fold.run(start, part));
        }
        let cost = cost.saturating_mul(first.windows as Cost);
        parallel::try_fill_shares(out, self.before, cost, |start, part| {
            window_fold.run(start * first.windows, part)
        })
    }
}

/// The passes over one tensor.
struct WindowFold<'a> {
    passes: &'a WindowPasses,
    bytes: &'a [u8],
    width: usize,
    load: LaneLoad,
    store: Option<Convert>,
    /// The number of elements in a row of the first axis, and of bytes in a row of the result.
    elements: usize,
    row: usize,
}

/// Some windows of the first axis, in some slabs; a slab is one index of the axes before it.
struct WindowBlock {
    slabs: usize,
    /// As in `Pass`.
    rows: (usize, usize),
    windows: (usize, usize),
}

impl WindowFold<'_> {
    /// Folds the rows from `start` on that fill `out`, block by block.
    fn run(&self, start: usize, out: &mut [u8]) -> Result<(), Error> {
        let (first, elements) = (self.passes.axes[0], self.elements);
        // Windows of the first axis in a block. Adjacent blocks both read the elements of the
        // windows between them: these should be few compared with the block.
        let windows_per_block =
            (LANES_PER_WINDOW_BLOCK / elements.max(1)).saturating_sub(first.extent()) / first.stride;
        let windows_per_block =
            windows_per_block.max((4 * first.extent()).div_ceil(first.stride)).clamp(1, first.windows);
        let slabs_per_block = (LANES_PER_WINDOW_BLOCK / (elements * first.size).max(1)).max(1);
        let mut memory = Vec::new();
        let (mut position, mut rest) = (start, out);
        while !rest.is_empty() {
            let (slab, window) = (position / first.windows, position % first.windows);
            let left = rest.len() / self.row;
            let (slabs, windows) =
                if window == 0 && windows_per_block == first.windows && left >= windows_per_block {
                    ((left / first.windows).min(slabs_per_block), first.windows)
                } else {
                    (1, windows_per_block.min(left).min(first.windows - window))
                };
            // A block of several slabs has all elements of each slab.
            let is_partial = windows < first.windows;
            let (from, to) =
                if is_partial { first.elements(window, window + windows) } else { (0, first.size) };
            let begin = (slab * first.size + from) * elements;
            let length = ((slabs - 1) * first.size + to - from) * elements;
            let (head, tail) = rest.split_at_mut(slabs * windows * self.row);
            let block = WindowBlock { slabs, rows: (to - from, from), windows: (windows, window) };
            self.fold_block(&block, begin, length, &mut memory, head)?;
            pause();
            position += slabs * windows;
            rest = tail;
        }
        Ok(())
    }

    /// Folds one block, which reads `length` elements from `begin` on. `memory` holds the buffers
    /// of earlier blocks.
    fn fold_block(
        &self,
        block: &WindowBlock,
        begin: usize,
        length: usize,
        memory: &mut Vec<Vec<u8>>,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let WindowPasses { op, lane, fold_loops, neutral, ref axes, .. } = *self.passes;
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
        if !matches!(self.load, LaneLoad::Same) {
            let mut buffer = sized(memory, length)?;
            match self.load {
                LaneLoad::Same => {}
                LaneLoad::Convert(convert) => convert(bytes, &mut buffer),
                LaneLoad::WithIndex(number) => number(begin, bytes, &mut buffer),
            }
            current = Cow::Owned(buffer);
        }
        let mut after = self.passes.after;
        for (index, &axis) in axes.iter().enumerate().rev() {
            if index > 0 && axis.is_trivial() {
                after *= axis.windows;
                continue;
            }
            let (rows, windows) =
                if index == 0 { (block.rows, block.windows) } else { ((axis.size, 0), (axis.windows, 0)) };
            let pass = Pass { axis, rows, windows, after, neutral };
            let mut work = sized(memory, pass.workspace())?;
            if index == 0 && self.store.is_none() {
                fold_loops(&pass, &current, out, &mut work);
            } else {
                let between: usize = axes[1..index.max(1)].iter().map(|axis| axis.size).product();
                let before = block.slabs * if index == 0 { 1 } else { block.rows.0 * between };
                let mut buffer = sized(memory, before * windows.0 * after)?;
                fold_loops(&pass, &current, &mut buffer, &mut work);
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
