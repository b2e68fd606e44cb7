//! Scatters a value for each window to the index of its largest or smallest element.
//!
//! The semantics are those of `Nx.BinaryBackend`: of equal elements the last one is chosen; NaN is
//! only chosen if a window starts with it; padding has the initial value and is chosen like an
//! element, but then the window's value is dropped. Elements are compared exactly, for every
//! combination of types. Values for the same element are added in order, in 64 bits, and rounded
//! once.
//!
//! Small windows without padding are compared element by element (`ops/window_scatter/scan.rs`). For
//! others, choosing is a fold of windows: a lane holds an integer with the order of the elements,
//! followed by the index of the element, and the result is the maximum.

use crate::cost::{self, Cost, WINDOW_RESOLVE_COST, WINDOW_SCATTER_COST, Work};
use crate::dtype::{Class, Element, Exact, Lane};
use crate::error::ShapeDisplay;
use crate::exec::convert::{Compute, convert_all};
use crate::exec::copy;
use crate::exec::memory::{filled, scratch};
use crate::exec::reduce::fold::Fold;
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::{cooperative_yield, parallel};
use crate::exec::window::{self, WindowAxis};
use crate::layout::row_major;
use crate::ops::cast;
use crate::ops::window::{LaneLoad, SlidingWindows, WindowPasses, check_shape};
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, dispatch};

mod scan;

use scan::{ScanOperands, WindowScan};

named! {
    /// The element of a window that is chosen, with the name of the operation in Nx.
    pub enum Choice {
        Max, "window_scatter_max";
        Min, "window_scatter_min";
    }
}

/// A type as wide as the lanes, which are i128.
const SCATTER_LANE_DTYPE: DType = DType::C128;

/// The index that marks a window whose value is dropped.
const DROPPED_INDEX: u64 = u64::MAX;
/// The lane of NaN and of padding, which is less than that of any other element.
const NO_ELEMENT_LANE: i128 = i128::MIN;

/// Returns the work of a scatter over a shape; 0 if the windows don't fit.
#[must_use]
pub fn work(choice: Choice, dtype: DType, shape: &[usize], windows: SlidingWindows<'_>) -> Work {
    let Ok(axes) = windows.axes(choice.name(), shape) else { return 0 };
    let size =
        |dim: fn(&WindowAxis) -> usize| axes.iter().fold(1usize, |size, axis| size.saturating_mul(dim(axis)));
    if let Some(scan) = WindowScan::new(choice, &axes) {
        return scan.work();
    }
    let passes = choice_passes(choice.name(), &axes);
    let load = LaneLoad::WithIndex(indexed_lanes::<u8, false>);
    passes
        .work(load, dtype.width())
        .saturating_add(cost::work(size(|axis| axis.windows), WINDOW_RESOLVE_COST + WINDOW_SCATTER_COST))
        .saturating_add(cost::work(size(|axis| axis.size), WINDOW_SCATTER_COST))
}

/// The passes that choose the greatest lane of each window.
fn choice_passes(op: &'static str, axes: &[WindowAxis]) -> WindowPasses {
    let fold_loops = window::fold::<i128, MaxLane>;
    WindowPasses::new(op, axes, SCATTER_LANE_DTYPE, fold_loops, NO_ELEMENT_LANE.store())
}

/// Adds each element of `source` to the element of the result where its window of `input` has its
/// maximum or minimum; the result starts as `init` everywhere. `out` has the shape of `input`.
///
/// # Errors
///
/// `Error::UnsupportedType` for complex numbers or integers made of floats, `Error::Shape` or
/// `Error::Argument` for windows that don't fit, and `Error::TooLarge` if there is no memory for an
/// intermediate result.
pub fn window_scatter(
    choice: Choice,
    out: Output<'_>,
    input: &Tensor<'_>,
    source: &Tensor<'_>,
    init: &Tensor<'_>,
    windows: SlidingWindows<'_>,
) -> Result<(), Error> {
    let op = choice.name();
    let dtypes = [input.dtype(), source.dtype(), init.dtype()];
    let integers = dtypes[1].is_integer() && dtypes[2].is_integer();
    if dtypes.iter().any(|d| d.is_complex()) || out.dtype.is_complex() || out.dtype.is_integer() && !integers
    {
        return Err(Error::UnsupportedType { op, dtypes: dtypes.to_vec() });
    }
    let axes = windows.axes(op, input.shape())?;
    check_shape(op, &axes, source.shape(), input.shape())?;
    if out.shape != input.shape() {
        let shapes = vec![input.shape().to_vec(), out.shape.to_vec()];
        return Err(Error::Shape { op, shapes, problem: "differ; the result is like the tensor".into() });
    }
    let Some(init_bytes) = init.scalar() else {
        let problem = format!("the initial value must be a scalar, got shape {}", ShapeDisplay(init.shape()));
        return Err(Error::Argument { op, problem });
    };
    let elements = copy::dense(op, input)?;
    let lane = if out.dtype.is_integer() { DType::U64 } else { DType::F64 };
    let start = u64::view(&cast::elements(op, init, lane)?)[0];
    if let Some(scan) = WindowScan::new(choice, &axes)
        && !out.dtype.is_packed()
    {
        let values = cast::elements(op, source, lane)?;
        let operands = ScanOperands { dtype: input.dtype(), elements: &elements, values: &values, start };
        let dtype = out.dtype;
        return out.write(op, |out| match lane {
            DType::U64 => scan.run::<u64>(operands, lane, dtype, out),
            _ => scan.run::<f64>(operands, lane, dtype, out),
        });
    }
    let passes = choice_passes(op, &axes);
    let count = source.size();
    let mut chosen = scratch(op, DType::U64, source.shape(), count * 16)?;
    let indexed_lanes = match choice {
        Choice::Max => dispatch!(real input.dtype(), T => indexed_lanes::<T, false>, else => return Ok(())),
        Choice::Min => dispatch!(real input.dtype(), T => indexed_lanes::<T, true>, else => return Ok(())),
    };
    passes.run(&elements, input.dtype().width(), LaneLoad::WithIndex(indexed_lanes), None, &mut chosen)?;
    let resolver = WindowResolver {
        axes: &axes,
        strides: row_major(input.shape()).iter().map(|&stride| stride as usize).collect(),
        elements: &elements,
        init: exact(init.dtype(), init_bytes),
        exact: Compute::Exact.load(input.dtype()).map(|load| load.convert),
        width: input.dtype().width(),
        smallest: choice == Choice::Min,
    };
    let mut indices = scratch(op, DType::U64, source.shape(), count * 8)?;
    parallel::fill(&mut indices, count, WINDOW_RESOLVE_COST, |start, part| {
        dispatch!(real input.dtype(), T => resolver.run::<T>(start, &chosen[start * 16..], part), else => {});
    });
    drop(chosen);

    let source = cast::elements(op, source, lane)?;
    let mut total = filled(op, lane, out.shape, input.size(), start)?;
    // Windows of different slabs have no element in common.
    let slabs = passes.before().max(1);
    let (size, count) = (input.size() / slabs, count / slabs);
    if size > 0 {
        parallel::fill(
            total.as_flattened_mut(),
            slabs,
            WINDOW_SCATTER_COST * count as Cost,
            |start, part| {
                for (slab, part) in part.chunks_mut(size * 8).enumerate() {
                    let (slab, range) = (start + slab, (start + slab) * count..(start + slab + 1) * count);
                    let indices = &u64::view(&indices)[range.clone()];
                    let source = &u64::view(&source)[range];
                    match lane {
                        DType::U64 => add_values::<u64>(indices, source, slab * size, part),
                        _ => add_values::<f64>(indices, source, slab * size, part),
                    }
                    cooperative_yield::after(cost::work(count, WINDOW_SCATTER_COST));
                }
            },
        );
    }
    let dtype = out.dtype;
    out.write(op, |out| {
        convert_all(lane, total.as_flattened(), dtype, total.len(), out);
        Ok(())
    })
}

fn exact(dtype: DType, element: &[u8]) -> Exact {
    let mut bytes = [0; 16];
    if let Some(load) = Compute::Exact.load(dtype) {
        (load.convert)(element, &mut bytes);
    }
    Exact::load(bytes)
}

struct MaxLane;
impl Fold<i128> for MaxLane {
    #[inline(always)]
    fn start() -> i128 {
        NO_ELEMENT_LANE
    }
    #[inline(always)]
    fn fold(accumulated: i128, next: i128) -> i128 {
        accumulated.max(next)
    }
}

/// Returns an integer with the order of the elements, or `None` for NaN.
#[inline(always)]
fn key<T: Element>(element: T) -> Option<i64> {
    match T::CLASS {
        Class::Integer if T::SIGNED => Some(element.to_i64()),
        Class::Integer => Some(element.to_i64() ^ i64::MIN),
        Class::Float | Class::Complex => {
            // The addition makes 0.0 of -0.0: the two are equal.
            let value = element.to_f64() + 0.0;
            let bits = value.to_bits().cast_signed();
            if value.is_nan() { None } else { Some(bits ^ (bits >> 63 & i64::MAX)) }
        }
    }
}

/// Converts elements to lanes: the key, inverted if the smallest element is chosen, in the high
/// bits, and the index plus one in the low bits.
fn indexed_lanes<T: Element, const SMALLEST: bool>(first: usize, elements: &[u8], lanes: &mut [u8]) {
    vectorize(IndexedLanesLoop::<T, SMALLEST> { first, elements, lanes, kind: std::marker::PhantomData });
}

struct IndexedLanesLoop<'a, T, const SMALLEST: bool> {
    first: usize,
    elements: &'a [u8],
    lanes: &'a mut [u8],
    kind: std::marker::PhantomData<T>,
}

impl<T: Element, const SMALLEST: bool> Vectorized for IndexedLanesLoop<'_, T, SMALLEST> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let elements = T::view(self.elements).iter();
        for ((index, &x), lane) in (self.first + 1..).zip(elements).zip(i128::view_mut(self.lanes)) {
            let indexed_lane = match key(T::load(x)) {
                Some(key) => i128::from(if SMALLEST { !key } else { key }) << 64 | index as i128,
                None => NO_ELEMENT_LANE,
            };
            *lane = indexed_lane.store();
        }
    }
}

/// Finds the index that the value of a window is added to, given the window's greatest lane.
struct WindowResolver<'a> {
    axes: &'a [WindowAxis],
    strides: Vec<usize>,
    elements: &'a [u8],
    init: Exact,
    exact: Option<crate::exec::convert::Convert>,
    width: usize,
    smallest: bool,
}

impl WindowResolver<'_> {
    fn run<T: Element>(&self, start: usize, chosen: &[u8], indices: &mut [u8]) {
        let mut position = vec![0; self.axes.len()];
        let mut rest = start;
        for (axis, slot) in self.axes.iter().zip(&mut position).rev() {
            *slot = rest % axis.windows;
            rest /= axis.windows;
        }
        for (index, &lane) in u64::view_mut(indices).iter_mut().zip(i128::view(chosen)) {
            *index = self.chosen_index::<T>(&position, i128::load(lane)).store();
            advance(self.axes, &mut position);
        }
    }

    /// Returns the index of the element that a window chooses.
    fn chosen_index<T: Element>(&self, window: &[usize], lane: i128) -> u64 {
        let starts =
            || self.axes.iter().zip(window).map(|(axis, &window)| (window * axis.stride) as isize - axis.low);
        let (mut low, mut high) = (false, false);
        for (axis, start) in self.axes.iter().zip(starts()) {
            low |= start < 0;
            high |= start + axis.taps as isize > axis.size as isize;
        }
        let index_unless = |padding_is_chosen: bool| {
            if padding_is_chosen { DROPPED_INDEX } else { (lane as u64).wrapping_sub(1) }
        };
        if low {
            // The window starts with padding.
            if self.init.is_nan() {
                return DROPPED_INDEX;
            }
        } else if T::CLASS != Class::Integer
            && starts().zip(self.axes).all(|(s, axis)| s < axis.size as isize)
        {
            let first: usize =
                starts().zip(&self.strides).map(|(start, &stride)| start as usize * stride).sum();
            if T::load(T::view(self.elements)[first]).to_f64().is_nan() {
                return first as u64;
            }
        }
        if lane == NO_ELEMENT_LANE {
            return DROPPED_INDEX;
        }
        if !low && !high || self.init.is_nan() {
            return index_unless(false);
        }
        // The padding is compared with the greatest element.
        let index = (lane as u64 - 1) as usize;
        let element = self.value(index);
        let (element, init) = if self.smallest { (self.init, element) } else { (element, self.init) };
        if element != init {
            return index_unless(element < init);
        }
        // The last of equal elements is chosen. Padding after the elements is last. Padding before
        // them follows the element unless that is the last one of the window on every axis before
        // the last axis that starts with padding.
        if high {
            return DROPPED_INDEX;
        }
        let last = starts().rposition(|start| start < 0).unwrap_or(0);
        let mut within = self.axes.iter().zip(starts()).zip(&self.strides).take(last);
        let ends = within.all(|((axis, start), &stride)| {
            let axis_index = index / stride % axis.size;
            start + axis.taps as isize - 1 == axis_index as isize
        });
        index_unless(!ends)
    }

    fn value(&self, index: usize) -> Exact {
        let mut bytes = [0; 16];
        if let Some(convert) = self.exact {
            convert(&self.elements[index * self.width..][..self.width], &mut bytes);
        }
        Exact::load(bytes)
    }
}

/// Advances the position of a window to the next one in row-major order.
#[inline]
fn advance(axes: &[WindowAxis], position: &mut [usize]) {
    for (axis, slot) in axes.iter().zip(position).rev() {
        *slot += 1;
        if *slot < axis.windows {
            break;
        }
        *slot = 0;
    }
}

/// A lane type that values are added in.
trait ScatterTotal: Lane<Bytes = [u8; 8]> {
    fn plus(self, other: Self) -> Self;
}
impl ScatterTotal for u64 {
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}
impl ScatterTotal for f64 {
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

/// Adds values to the totals at their indices; `first` is the index of the first total.
fn add_values<T: ScatterTotal>(indices: &[[u8; 8]], source: &[[u8; 8]], first: usize, total: &mut [u8]) {
    let total = T::view_mut(total);
    for (&index, &value) in indices.iter().zip(source) {
        let index = u64::load(index);
        if index != DROPPED_INDEX {
            let slot = &mut total[index as usize - first];
            *slot = T::load(*slot).plus(T::load(value)).store();
        }
    }
}
