//! Cumulative sums, products, minima and maxima along an axis.
//!
//! Each result is that of the elements before and its own, from left to right:
//! floats narrower than 64 bits are accumulated in f64 and rounded once an
//! element; sums of 64 bits carry along what rounding takes from them, so that
//! the last of a million is as good as the first. Integers wrap around, NaN
//! stays once it has been met.

use num_complex::Complex;

use crate::cost::{self, Cost};
use crate::dtype::{Element, sub_byte};
use crate::exec::copy;
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::parallel;
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, dispatch};

named! {
    /// A cumulative operation, named as Nx names it.
    pub enum CumulativeOp {
        Sum, "cumulative_sum";
        Product, "cumulative_product";
        Min, "cumulative_min";
        Max, "cumulative_max";
    }
}

/// What an element costs: results wait for those before them.
#[must_use]
pub fn cost(dtype: DType) -> Cost {
    1_500 + sub_byte::cost(&[dtype])
}

/// Accumulates along `axis`, from its end if `reverse`. The result has the type
/// and the shape of the tensor.
///
/// # Errors
///
/// `Error::UnsupportedType` for minima and maxima of complex numbers,
/// `Error::Argument` for an axis out of range, and `Error::TooLarge` if there is
/// no memory for an intermediate copy.
pub fn cumulative(
    op: CumulativeOp,
    out: Output<'_>,
    input: &Tensor<'_>,
    axis: usize,
    reverse: bool,
) -> Result<(), Error> {
    let (name, dtype, shape) = (op.name(), input.dtype(), input.shape());
    let scan = scan_of(op, dtype)
        .filter(|_| out.dtype == dtype)
        .ok_or_else(|| Error::UnsupportedType { op: name, dtypes: vec![dtype] })?;
    if out.shape != shape {
        let shapes = vec![shape.to_vec(), out.shape.to_vec()];
        return Err(Error::Shape { op: name, shapes, problem: "differ".into() });
    }
    let Some(&length) = shape.get(axis) else {
        let problem = format!("axis {axis} is out of range for rank {}", shape.len());
        return Err(Error::Argument { op: name, problem });
    };
    let after: usize = shape[axis + 1..].iter().product();
    let block = length * after;
    if input.size() == 0 {
        return Ok(());
    }
    let bytes = copy::dense(name, input)?;
    let width = dtype.width();
    out.write(name, |out| {
        let cost = cost::work(block, cost(dtype));
        parallel::fill(out, input.size() / block, cost, |first, out| {
            scan(&bytes[first * block * width..], Axis { length, after, reverse }, out);
        });
        Ok(())
    })
}

/// Elements along the axis, and along those after it.
#[derive(Clone, Copy)]
struct Axis {
    length: usize,
    after: usize,
    reverse: bool,
}

/// Fills whole blocks of `length * after` elements.
type Scan = fn(&[u8], Axis, &mut [u8]);

fn scan_of(op: CumulativeOp, dtype: DType) -> Option<Scan> {
    use CumulativeOp::{Max, Min, Product, Sum};
    Some(match (op, dtype) {
        (Sum, DType::F64) => scan::<f64, Sums>,
        (Sum, DType::C64) => scan::<Complex<f32>, Sums>,
        (Sum, DType::C128) => scan::<Complex<f64>, Sums>,
        (Product, DType::C64) => scan::<Complex<f32>, MulAddVector>,
        (Product, DType::C128) => scan::<Complex<f64>, MulAddVector>,
        (_, DType::C64 | DType::C128) => return None,
        (Sum, _) if dtype.is_integer() => {
            dispatch!(bits dtype, S => scan::<S, WrappingSums>, else => return None)
        }
        (Product, _) if dtype.is_integer() => {
            dispatch!(bits dtype, S => scan::<S, WrappingProducts>, else => return None)
        }
        (Min, _) if dtype.is_integer() => {
            dispatch!(integer dtype, S => scan::<S, Least>, else => return None)
        }
        (Max, _) if dtype.is_integer() => {
            dispatch!(integer dtype, S => scan::<S, Greatest>, else => return None)
        }
        (Sum, _) => dispatch!(float dtype, S => scan::<S, WideSums>, else => return None),
        (Product, _) => dispatch!(float dtype, S => scan::<S, WideProducts>, else => return None),
        (Min, _) => dispatch!(float dtype, S => scan::<S, LeastOrNan>, else => return None),
        (Max, _) => dispatch!(float dtype, S => scan::<S, GreatestOrNan>, else => return None),
    })
}

/// What is accumulated of elements `S`.
trait Accumulate<S: Element>: 'static {
    type State: Copy;
    fn first(element: S) -> Self::State;
    fn next(state: Self::State, element: S) -> Self::State;
    fn value(state: Self::State) -> S;
}

/// Columns that are accumulated side by side.
const COLUMNS: usize = 128;

fn scan<S: Element, A: Accumulate<S>>(elements: &[u8], axis: Axis, out: &mut [u8]) {
    let (elements, out) = (S::view(elements), S::view_mut(out));
    let block = axis.length * axis.after;
    for (elements, out) in elements.chunks_exact(block).zip(out.chunks_exact_mut(block)) {
        match (axis.after, axis.reverse) {
            (1, false) => along::<S, A>(elements.iter().zip(out)),
            (1, true) => along::<S, A>(elements.iter().zip(out).rev()),
            _ => columns::<S, A>(elements, axis, out),
        }
    }
}

/// Each element waits for the one before: no level has instructions for that.
fn along<'a, S: Element, A: Accumulate<S>>(
    mut pairs: impl Iterator<Item = (&'a S::Bytes, &'a mut S::Bytes)>,
) {
    let Some((&first, slot)) = pairs.next() else { return };
    let mut state = A::first(S::load(first));
    *slot = first;
    for (&element, slot) in pairs {
        state = A::next(state, S::load(element));
        *slot = A::value(state).store();
    }
}

fn columns<S: Element, A: Accumulate<S>>(elements: &[S::Bytes], axis: Axis, out: &mut [S::Bytes]) {
    let Axis { length, after, reverse } = axis;
    let mut states = [A::first(S::load(elements[0])); COLUMNS];
    for left in (0..after).step_by(COLUMNS) {
        let states = &mut states[..COLUMNS.min(after - left)];
        for row in 0..length {
            let first = if reverse { length - 1 - row } else { row } * after + left;
            let columns = first..first + states.len();
            let (elements, out) = (&elements[columns.clone()], &mut out[columns]);
            if row == 0 {
                for (state, &element) in states.iter_mut().zip(elements) {
                    *state = A::first(S::load(element));
                }
                out.copy_from_slice(elements);
            } else {
                vectorize(Step::<S, A> { states, elements, out });
            }
        }
    }
}

/// One more row for columns side by side.
struct Step<'a, S: Element, A: Accumulate<S>> {
    states: &'a mut [A::State],
    elements: &'a [S::Bytes],
    out: &'a mut [S::Bytes],
}

impl<S: Element, A: Accumulate<S>> Vectorized for Step<'_, S, A> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for ((state, &element), slot) in self.states.iter_mut().zip(self.elements).zip(self.out) {
            *state = A::next(*state, S::load(element));
            *slot = A::value(*state).store();
        }
    }
}

/// `impl Accumulate` for all elements of a kind, whose state is a lane.
macro_rules! accumulate {
    ($name:ident, $state:ty, $bound:path, $load:path, $store:expr; $a:ident, $b:ident => $body:expr) => {
        struct $name;
        impl<S: $bound> Accumulate<S> for $name {
            type State = $state;
            #[inline(always)]
            fn first(element: S) -> $state {
                $load(element)
            }
            #[inline(always)]
            fn next($a: $state, element: S) -> $state {
                let $b = $load(element);
                $body
            }
            #[inline(always)]
            fn value(state: $state) -> S {
                $store(state)
            }
        }
    };
}

/// Integers in their own order.
trait Ordered: Element + Ord {}
impl<S: Element + Ord> Ordered for S {}

accumulate!(WrappingSums, i64, Element, S::to_i64, S::from_i64; a, b => a.wrapping_add(b));
accumulate!(WrappingProducts, i64, Element, S::to_i64, S::from_i64; a, b => a.wrapping_mul(b));
accumulate!(WideSums, f64, Element, S::to_f64, S::from_f64; a, b => a + b);
accumulate!(WideProducts, f64, Element, S::to_f64, S::from_f64; a, b => a * b);
accumulate!(LeastOrNan, f64, Element, S::to_f64, S::from_f64; a, b => if b < a || b.is_nan() { b } else { a });
accumulate!(GreatestOrNan, f64, Element, S::to_f64, S::from_f64; a, b => if b > a || b.is_nan() { b } else { a });
accumulate!(Least, S, Ordered, std::convert::identity, std::convert::identity; a, b => a.min(b));
accumulate!(Greatest, S, Ordered, std::convert::identity, std::convert::identity; a, b => a.max(b));

/// A sum and what was rounded off it.
#[derive(Clone, Copy)]
struct Carried {
    sum: f64,
    rest: f64,
}

impl Carried {
    #[inline(always)]
    fn new(x: f64) -> Self {
        Carried { sum: x, rest: 0.0 }
    }

    /// The rest is exact, by Knuth's two-sum, unless the sum has overflowed.
    #[inline(always)]
    fn add(self, x: f64) -> Self {
        let sum = self.sum + x;
        let part = sum - self.sum;
        let lost = (self.sum - (sum - part)) + (x - part);
        Carried { sum, rest: self.rest + if lost.is_finite() { lost } else { 0.0 } }
    }

    #[inline(always)]
    fn value(self) -> f64 {
        let exact = self.sum + self.rest;
        // Zero has nothing to carry, and keeps its sign.
        if self.rest == 0.0 || !self.sum.is_finite() { self.sum } else { exact }
    }
}

struct Sums;
impl Accumulate<f64> for Sums {
    type State = Carried;
    #[inline(always)]
    fn first(element: f64) -> Carried {
        Carried::new(element)
    }
    #[inline(always)]
    fn next(state: Carried, element: f64) -> Carried {
        state.add(element)
    }
    #[inline(always)]
    fn value(state: Carried) -> f64 {
        state.value()
    }
}
impl Accumulate<Complex<f64>> for Sums {
    type State = (Carried, Carried);
    #[inline(always)]
    fn first(element: Complex<f64>) -> Self::State {
        (Carried::new(element.re), Carried::new(element.im))
    }
    #[inline(always)]
    fn next((re, im): Self::State, element: Complex<f64>) -> Self::State {
        (re.add(element.re), im.add(element.im))
    }
    #[inline(always)]
    fn value((re, im): Self::State) -> Complex<f64> {
        Complex::new(re.value(), im.value())
    }
}

/// `impl Accumulate` for complex elements, whose state is one of f64.
macro_rules! accumulate_complex {
    ($name:ident; $($t:ty),*; $a:ident, $b:ident => $body:expr) => {$(
        impl Accumulate<$t> for $name {
            type State = Complex<f64>;
            #[inline(always)]
            fn first(element: $t) -> Complex<f64> {
                Complex::new(element.to_f64(), element.imag())
            }
            #[inline(always)]
            fn next($a: Complex<f64>, element: $t) -> Complex<f64> {
                let $b = <Self as Accumulate<$t>>::first(element);
                $body
            }
            #[inline(always)]
            fn value(state: Complex<f64>) -> $t {
                <$t>::from_parts(state.re, state.im)
            }
        }
    )*};
}

accumulate_complex!(Sums; Complex<f32>; a, b => a + b);
struct MulAddVector;
accumulate_complex!(MulAddVector; Complex<f32>, Complex<f64>; a, b => a * b);
