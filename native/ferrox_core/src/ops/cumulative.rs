//! Cumulative sums, products, minima and maxima along an axis (scans), from left to right.
//!
//! Floats narrower than 64 bits are accumulated in f64, and each result is rounded once. Sums of
//! f64 and c128 are compensated: the rounding errors are summed separately (T. Ogita, S. M. Rump,
//! S. Oishi, Accurate Sum and Dot Product, 2005: Sum2). Integers wrap around, and all results from
//! a NaN on are NaN.

use num_complex::Complex;

use crate::cost::{self, Cost, SCAN_ELEMENT_COST};
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

/// The cost of an element: each result depends on the result before.
#[must_use]
pub fn cost(dtype: DType) -> Cost {
    let width = if dtype.is_complex() { 2 } else { 1 };
    width * SCAN_ELEMENT_COST + sub_byte::cost(&[dtype])
}

/// Accumulates along `axis`, from its end if `reverse`. The result has the type and the shape of
/// the tensor.
///
/// # Errors
///
/// `Error::UnsupportedType` for minima and maxima of complex numbers, `Error::Argument` for an axis
/// out of range, and `Error::TooLarge` if there is no memory for an intermediate copy.
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
            scan(&bytes[first * block * width..], ScanAxis { length, after, reverse }, out);
        });
        Ok(())
    })
}

#[derive(Clone, Copy)]
struct ScanAxis {
    /// The number of elements along the axis.
    length: usize,
    /// The number of elements along the axes after it.
    after: usize,
    reverse: bool,
}

/// Scans whole blocks of `length * after` elements.
type Scan = fn(&[u8], ScanAxis, &mut [u8]);

fn scan_of(op: CumulativeOp, dtype: DType) -> Option<Scan> {
    use CumulativeOp::{Max, Min, Product, Sum};
    Some(match (op, dtype) {
        (Sum, DType::F64) => scan::<f64, Sums>,
        (Sum, DType::C64) => scan::<Complex<f32>, Sums>,
        (Sum, DType::C128) => scan::<Complex<f64>, Sums>,
        (Product, DType::C64) => scan::<Complex<f32>, Products>,
        (Product, DType::C128) => scan::<Complex<f64>, Products>,
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

/// An accumulation of elements `S`.
trait Accumulate<S: Element>: 'static {
    type State: Copy;
    fn first(element: S) -> Self::State;
    fn next(state: Self::State, element: S) -> Self::State;
    fn value(state: Self::State) -> S;
}

/// The number of columns that are scanned side by side, with states on the stack.
const SCAN_TILE_COLUMNS: usize = 128;

fn scan<S: Element, A: Accumulate<S>>(elements: &[u8], axis: ScanAxis, out: &mut [u8]) {
    let (elements, out) = (S::view(elements), S::view_mut(out));
    let block = axis.length * axis.after;
    for (elements, out) in elements.chunks_exact(block).zip(out.chunks_exact_mut(block)) {
        match (axis.after, axis.reverse) {
            (1, false) => scan_row::<S, A>(elements.iter().zip(out)),
            (1, true) => scan_row::<S, A>(elements.iter().zip(out).rev()),
            _ => scan_columns::<S, A>(elements, axis, out),
        }
    }
}

/// Scans one row. Each state depends on the one before, so the loop is the same for every
/// instruction set.
fn scan_row<'a, S: Element, A: Accumulate<S>>(
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

fn scan_columns<S: Element, A: Accumulate<S>>(elements: &[S::Bytes], axis: ScanAxis, out: &mut [S::Bytes]) {
    let ScanAxis { length, after, reverse } = axis;
    let mut states = [A::first(S::load(elements[0])); SCAN_TILE_COLUMNS];
    for left in (0..after).step_by(SCAN_TILE_COLUMNS) {
        let states = &mut states[..SCAN_TILE_COLUMNS.min(after - left)];
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
                vectorize(ScanStepLoop::<S, A> { states, elements, out });
            }
        }
    }
}

/// Adds one row to columns side by side.
struct ScanStepLoop<'a, S: Element, A: Accumulate<S>> {
    states: &'a mut [A::State],
    elements: &'a [S::Bytes],
    out: &'a mut [S::Bytes],
}

impl<S: Element, A: Accumulate<S>> Vectorized for ScanStepLoop<'_, S, A> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for ((state, &element), slot) in self.states.iter_mut().zip(self.elements).zip(self.out) {
            *state = A::next(*state, S::load(element));
            *slot = A::value(*state).store();
        }
    }
}

/// Implements `Accumulate` for all elements with a trait; the state is a lane.
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

/// Integers, compared as themselves.
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

/// A sum and the sum of its rounding errors.
#[derive(Clone, Copy)]
struct CompensatedSum {
    sum: f64,
    rest: f64,
}

impl CompensatedSum {
    #[inline(always)]
    fn new(x: f64) -> Self {
        CompensatedSum { sum: x, rest: 0.0 }
    }

    /// `lost` is the exact rounding error, by Knuth's two-sum, unless the sum has overflowed.
    #[inline(always)]
    fn add(self, x: f64) -> Self {
        let sum = self.sum + x;
        let part = sum - self.sum;
        let lost = (self.sum - (sum - part)) + (x - part);
        CompensatedSum { sum, rest: self.rest + if lost.is_finite() { lost } else { 0.0 } }
    }

    #[inline(always)]
    fn value(self) -> f64 {
        let exact = self.sum + self.rest;
        // Without errors the sum stays as it is: a zero keeps its sign.
        if self.rest == 0.0 || !self.sum.is_finite() { self.sum } else { exact }
    }
}

struct Sums;
impl Accumulate<f64> for Sums {
    type State = CompensatedSum;
    #[inline(always)]
    fn first(element: f64) -> CompensatedSum {
        CompensatedSum::new(element)
    }
    #[inline(always)]
    fn next(state: CompensatedSum, element: f64) -> CompensatedSum {
        state.add(element)
    }
    #[inline(always)]
    fn value(state: CompensatedSum) -> f64 {
        state.value()
    }
}
impl Accumulate<Complex<f64>> for Sums {
    type State = (CompensatedSum, CompensatedSum);
    #[inline(always)]
    fn first(element: Complex<f64>) -> Self::State {
        (CompensatedSum::new(element.re), CompensatedSum::new(element.im))
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

/// Implements `Accumulate` for complex elements; the state is a complex number in f64.
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
struct Products;
accumulate_complex!(Products; Complex<f32>, Complex<f64>; a, b => a * b);
