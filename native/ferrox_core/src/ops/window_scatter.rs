//! Scatters a value for each window to the place of its largest or smallest
//! element.
//!
//! The semantics of `Nx.BinaryBackend`: of equal elements the last one is
//! chosen, NaN is never chosen but where a window starts with it, and padding,
//! which holds the initial value, is chosen like an element and its value
//! dropped. Elements are compared exactly, in whatever types; values that meet
//! are added up in order, in 64 bits, and rounded once.
//!
//! Choosing is a fold of windows too: lanes hold an integer that orders as the
//! element does, followed by the element's place, and the greatest one wins.

use crate::cost::{self, Cost, Work};
use crate::dtype::{Class, Element, Exact, Lane};
use crate::error::ShapeDisplay;
use crate::exec::convert::{Compute, convert_all};
use crate::exec::copy;
use crate::exec::memory::{filled, scratch};
use crate::exec::reduce::fold::Fold;
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::{cooperative_yield, parallel};
use crate::exec::window::{self, Axis};
use crate::layout::row_major;
use crate::ops::cast;
use crate::ops::window::{Load, Plan, Windows, check_shape};
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, dispatch};

/// Which element of a window is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// `Nx.window_scatter_max/5`
    Max,
    /// `Nx.window_scatter_min/5`
    Min,
}

impl Choice {
    /// Both.
    pub const ALL: &'static [Choice] = &[Choice::Max, Choice::Min];

    /// The operation's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Choice::Max => "window_scatter_max",
            Choice::Min => "window_scatter_min",
        }
    }
}

/// As wide as the lanes are.
const LANE: DType = DType::C128;

/// Marks a window whose value is dropped; and the lane of NaN.
const NOWHERE: u64 = u64::MAX;
const NONE: i128 = i128::MIN;

/// Finding the place of a window, and adding its value.
const PLACE: Cost = 5_000;
const ADD: Cost = 2_000;

/// The work of a scatter over a shape; none where windows don't fit.
#[must_use]
pub fn work(choice: Choice, dtype: DType, shape: &[usize], windows: Windows<'_>) -> Work {
    let Ok(axes) = windows.axes(choice.name(), shape) else { return 0 };
    let size =
        |dim: fn(&Axis) -> usize| axes.iter().fold(1usize, |size, axis| size.saturating_mul(dim(axis)));
    let plan = Plan::new(choice.name(), &axes, LANE, window::fold::<i128, Greatest>, NONE.store());
    let load = Load::Numbered(number::<u8, false>);
    plan.work(load, dtype.width())
        .saturating_add(cost::work(size(|axis| axis.windows), PLACE + ADD))
        .saturating_add(cost::work(size(|axis| axis.size), ADD))
}

/// Adds each element of `source` to where its window of `input` has its
/// extreme, `init` being everywhere before. `out` has the shape of `input`.
///
/// # Errors
///
/// `Error::UnsupportedType` for complex numbers or integers made of floats,
/// `Error::Shape` or `Error::Argument` for windows that don't fit, and
/// `Error::TooLarge` if there is no memory for an intermediate result.
pub fn window_scatter(
    choice: Choice,
    out: Output<'_>,
    input: &Tensor<'_>,
    source: &Tensor<'_>,
    init: &Tensor<'_>,
    windows: Windows<'_>,
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
    let plan = Plan::new(op, &axes, LANE, window::fold::<i128, Greatest>, NONE.store());
    let count = source.size();
    let mut chosen = scratch(op, DType::U64, source.shape(), count * 16)?;
    let number = match choice {
        Choice::Max => dispatch!(real input.dtype(), T => number::<T, false>, else => return Ok(())),
        Choice::Min => dispatch!(real input.dtype(), T => number::<T, true>, else => return Ok(())),
    };
    plan.run(&elements, input.dtype().width(), Load::Numbered(number), None, &mut chosen)?;
    let resolve = Resolve {
        axes: &axes,
        strides: row_major(input.shape()).iter().map(|&stride| stride as usize).collect(),
        elements: &elements,
        init: exact(init.dtype(), init_bytes),
        exact: Compute::Exact.load(input.dtype()).map(|load| load.convert),
        width: input.dtype().width(),
        smallest: choice == Choice::Min,
    };
    let mut places = scratch(op, DType::U64, source.shape(), count * 8)?;
    parallel::fill(&mut places, count, PLACE, |start, part| {
        dispatch!(real input.dtype(), T => resolve.run::<T>(start, &chosen[start * 16..], part), else => {});
    });
    drop(chosen);

    let lane = if out.dtype.is_integer() { DType::U64 } else { DType::F64 };
    let source = cast::elements(op, source, lane)?;
    let start = u64::view(&cast::elements(op, init, lane)?)[0];
    let mut total = filled(op, lane, out.shape, input.size(), start)?;
    // Windows of different slabs meet no element in common.
    let slabs = plan.before().max(1);
    let (size, count) = (input.size() / slabs, count / slabs);
    if size > 0 {
        parallel::fill(total.as_flattened_mut(), slabs, ADD * count as Cost, |start, part| {
            for (slab, part) in part.chunks_mut(size * 8).enumerate() {
                let (slab, range) = (start + slab, (start + slab) * count..(start + slab + 1) * count);
                let places = &u64::view(&places)[range.clone()];
                let source = &u64::view(&source)[range];
                match lane {
                    DType::U64 => add::<u64>(places, source, slab * size, part),
                    _ => add::<f64>(places, source, slab * size, part),
                }
                cooperative_yield::after(cost::work(count, ADD));
            }
        });
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

struct Greatest;
impl Fold<i128> for Greatest {
    #[inline(always)]
    fn start() -> i128 {
        NONE
    }
    #[inline(always)]
    fn fold(accumulated: i128, next: i128) -> i128 {
        accumulated.max(next)
    }
}

/// An integer that orders as the element does; none for NaN.
#[inline(always)]
fn key<T: Element>(element: T) -> Option<i64> {
    match T::CLASS {
        Class::Integer if T::SIGNED => Some(element.to_i64()),
        Class::Integer => Some(element.to_i64() ^ i64::MIN),
        Class::Float | Class::Complex => {
            // A sum, so that both zeros are the same one.
            let value = element.to_f64() + 0.0;
            let bits = value.to_bits().cast_signed();
            if value.is_nan() { None } else { Some(bits ^ (bits >> 63 & i64::MAX)) }
        }
    }
}

/// Elements as lanes: the key, reversed if the smallest is wanted, above the
/// place, which is counted from one.
fn number<T: Element, const SMALLEST: bool>(first: usize, elements: &[u8], lanes: &mut [u8]) {
    vectorize(Number::<T, SMALLEST> { first, elements, lanes, kind: std::marker::PhantomData });
}

struct Number<'a, T, const SMALLEST: bool> {
    first: usize,
    elements: &'a [u8],
    lanes: &'a mut [u8],
    kind: std::marker::PhantomData<T>,
}

impl<T: Element, const SMALLEST: bool> Vectorized for Number<'_, T, SMALLEST> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let elements = T::view(self.elements).iter();
        for ((place, &x), lane) in (self.first + 1..).zip(elements).zip(i128::view_mut(self.lanes)) {
            let numbered = match key(T::load(x)) {
                Some(key) => i128::from(if SMALLEST { !key } else { key }) << 64 | place as i128,
                None => NONE,
            };
            *lane = numbered.store();
        }
    }
}

/// Where the value of a window goes, given its greatest element.
struct Resolve<'a> {
    axes: &'a [Axis],
    strides: Vec<usize>,
    elements: &'a [u8],
    init: Exact,
    exact: Option<crate::exec::convert::Convert>,
    width: usize,
    smallest: bool,
}

impl Resolve<'_> {
    fn run<T: Element>(&self, start: usize, chosen: &[u8], places: &mut [u8]) {
        let mut position = vec![0; self.axes.len()];
        let mut rest = start;
        for (axis, slot) in self.axes.iter().zip(&mut position).rev() {
            *slot = rest % axis.windows;
            rest /= axis.windows;
        }
        for (place, &lane) in u64::view_mut(places).iter_mut().zip(i128::view(chosen)) {
            *place = self.place::<T>(&position, i128::load(lane)).store();
            for (axis, slot) in self.axes.iter().zip(&mut position).rev() {
                *slot += 1;
                if *slot < axis.windows {
                    break;
                }
                *slot = 0;
            }
        }
    }

    /// The place of the element that a window chooses.
    fn place<T: Element>(&self, window: &[usize], lane: i128) -> u64 {
        let starts =
            || self.axes.iter().zip(window).map(|(axis, &window)| (window * axis.stride) as isize - axis.low);
        let (mut low, mut high) = (false, false);
        for (axis, start) in self.axes.iter().zip(starts()) {
            low |= start < 0;
            high |= start + axis.places as isize > axis.size as isize;
        }
        let nowhere = |chosen: bool| if chosen { NOWHERE } else { (lane as u64).wrapping_sub(1) };
        if low {
            // It starts with padding.
            if self.init.is_nan() {
                return NOWHERE;
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
        if lane == NONE {
            return NOWHERE;
        }
        if !low && !high || self.init.is_nan() {
            return nowhere(false);
        }
        // Padding against the greatest element.
        let place = (lane as u64 - 1) as usize;
        let element = self.value(place);
        let (element, init) = if self.smallest { (self.init, element) } else { (element, self.init) };
        if element != init {
            return nowhere(element < init);
        }
        // The last of equal ones: all that is behind the elements, or before
        // the last axis that starts with padding.
        if high {
            return NOWHERE;
        }
        let last = starts().rposition(|start| start < 0).unwrap_or(0);
        let mut within = self.axes.iter().zip(starts()).zip(&self.strides).take(last);
        let ends = within.all(|((axis, start), &stride)| {
            let index = place / stride % axis.size;
            start + axis.places as isize - 1 == index as isize
        });
        nowhere(!ends)
    }

    fn value(&self, place: usize) -> Exact {
        let mut bytes = [0; 16];
        if let Some(convert) = self.exact {
            convert(&self.elements[place * self.width..][..self.width], &mut bytes);
        }
        Exact::load(bytes)
    }
}

/// A lane that values are added up in.
trait Total: Lane<Bytes = [u8; 8]> {
    fn plus(self, other: Self) -> Self;
}
impl Total for u64 {
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}
impl Total for f64 {
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

/// Adds values to their places, counted from `first`.
fn add<T: Total>(places: &[[u8; 8]], source: &[[u8; 8]], first: usize, total: &mut [u8]) {
    let total = T::view_mut(total);
    for (&place, &value) in places.iter().zip(source) {
        let place = u64::load(place);
        if place != NOWHERE {
            let slot = &mut total[place as usize - first];
            *slot = T::load(*slot).plus(T::load(value)).store();
        }
    }
}
