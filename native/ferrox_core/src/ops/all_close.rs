//! `Nx.all_close/3`: whether two tensors are equal within a tolerance.

use num_complex::Complex;

use crate::cost::{self, CLOSE_OTHER_PAIR_COST, CLOSE_PAIR_COST, Cost, Work};
use crate::dtype::{Lane, sub_byte};
use crate::exec::convert::Compute;
use crate::exec::elementwise::{self, Kernel, Operand, Plan, Source};
use crate::exec::memory::scratch;
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::layout::{Shape, size};
use crate::ops::math::complex;
use crate::tensor::{Output, Tensor};
use crate::{DType, Error};

const OP: &str = "all_close";

/// The tolerance in `|a - b| <= absolute + relative |b|`.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// The factor of the right element's magnitude.
    pub relative: f64,
    /// The distance that is allowed between any two elements.
    pub absolute: f64,
    /// Whether NaN equals NaN.
    pub equal_nan: bool,
}

/// The work of comparing tensors of some types and shapes.
#[must_use]
pub fn work(dtypes: [DType; 2], left: &[usize], right: &[usize]) -> Work {
    let pairs = broadcast(left, right).and_then(|shape| size(&shape));
    cost::work(pairs.unwrap_or(0), cost(dtypes))
}

/// The cost of a pair of elements.
fn cost(dtypes: [DType; 2]) -> Cost {
    let real = dtypes.iter().any(|dtype| dtype.is_float()) && !dtypes.iter().any(|dtype| dtype.is_complex());
    let pair = if real { CLOSE_PAIR_COST } else { CLOSE_OTHER_PAIR_COST };
    pair + sub_byte::cost(&dtypes)
}

/// Writes 1 if all pairs of elements, broadcast to one shape, are close to each other, else 0.
/// Infinities are close to equal infinities only; two NaN are close if the tolerance says so.
/// Distances of integers are exact; distances of floats are computed in f64.
///
/// # Errors
///
/// `Error::Shape` if the shapes can't be broadcast to one, `Error::TooLarge` if there is no memory
/// for one byte per pair, and `Error::UnsupportedType` if `out` is not one u8.
pub fn all_close(
    out: Output<'_>,
    left: &Tensor<'_>,
    right: &Tensor<'_>,
    tolerance: Tolerance,
) -> Result<(), Error> {
    if out.dtype != DType::U8 || out.shape.iter().product::<usize>() != 1 {
        return Err(Error::UnsupportedType { op: OP, dtypes: vec![out.dtype] });
    }
    let unfit = || Error::Shape {
        op: OP,
        shapes: vec![left.shape().to_vec(), right.shape().to_vec()],
        problem: "can't be broadcast to one".into(),
    };
    let shape = broadcast(left.shape(), right.shape()).ok_or_else(unfit)?;
    let size =
        size(&shape).ok_or_else(|| Error::TooLarge { op: OP, dtype: DType::U8, shape: shape.to_vec() })?;
    let dtypes = [left.dtype(), right.dtype()];
    let (lane, kernel): (Compute, Kernel) = if dtypes.iter().any(|dtype| dtype.is_complex()) {
        (Compute::As(DType::C128), tile::<Complex<f64>>)
    } else if dtypes.iter().all(|dtype| dtype.is_integer()) {
        (Compute::Wide, tile::<i128>)
    } else {
        (Compute::As(DType::F64), tile::<f64>)
    };
    let Tolerance { relative, absolute, equal_nan } = tolerance;
    let parameters = [relative, absolute, f64::from(equal_nan)].map(Lane::store);
    let parameters = parameters.as_flattened();
    let sources = [
        Source::new(left, &shape).ok_or_else(unfit)?,
        Source::new(right, &shape).ok_or_else(unfit)?,
        Source::Scalar(parameters),
    ];
    let loads = [lane.load(dtypes[0]), lane.load(dtypes[1]), None];
    let plan = Plan { kernel, loads, store: None, width: 1, narrowing: None, cost: cost(dtypes) };
    let mut close = scratch(OP, DType::U8, &shape, size)?;
    elementwise::run(&plan, &shape, &mut close, &sources).map_err(|fault| Error::Element {
        op: OP,
        dtypes: dtypes.to_vec(),
        fault,
    })?;
    out.bytes.fill(vectorize(AllOf(&close)));
    Ok(())
}

/// The shape that both shapes are broadcast to, or `None` if there is none.
fn broadcast(left: &[usize], right: &[usize]) -> Option<Shape> {
    let rank = left.len().max(right.len());
    let dim = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
    (0..rank)
        .map(|axis| match (dim(left, axis), dim(right, axis)) {
            (1, right) => Some(right),
            (left, right) => (left == right || right == 1).then_some(left),
        })
        .collect()
}

struct AllOf<'a>(&'a [u8]);

impl Vectorized for AllOf<'_> {
    type Output = u8;

    #[inline(always)]
    fn run(self) -> u8 {
        // Blocks without an early exit, so that they vectorize.
        let all = |block: &[u8]| block.iter().fold(1, |all, close| all & close);
        u8::from(self.0.chunks(4096).all(|block| all(block) == 1))
    }
}

/// A lane that is compared within a tolerance.
trait Close: Lane {
    fn is_close(self, other: Self, tolerance: &Tolerance) -> bool;
}

fn within(distance: f64, magnitude: f64, tolerance: &Tolerance) -> bool {
    distance <= tolerance.absolute + tolerance.relative * magnitude
}

impl Close for i128 {
    #[inline(always)]
    fn is_close(self, other: Self, tolerance: &Tolerance) -> bool {
        within((self - other).unsigned_abs() as f64, other.unsigned_abs() as f64, tolerance)
    }
}

impl Close for f64 {
    #[inline(always)]
    fn is_close(self, other: Self, tolerance: &Tolerance) -> bool {
        let finite = within((self - other).abs(), other.abs(), tolerance);
        let close = if self.is_infinite() | other.is_infinite() { self == other } else { finite };
        close | (tolerance.equal_nan & self.is_nan() & other.is_nan())
    }
}

impl Close for Complex<f64> {
    #[inline(always)]
    fn is_close(self, other: Self, tolerance: &Tolerance) -> bool {
        let infinite = |z: Self| z.re.is_infinite() || z.im.is_infinite();
        let nan = |z: Self| z.re.is_nan() || z.im.is_nan();
        if tolerance.equal_nan && nan(self) && nan(other) {
            true
        } else if infinite(self) || infinite(other) {
            self == other
        } else {
            let distance = self - other;
            // `complex::abs` returns 1 for NaN.
            !nan(distance) && within(complex::abs(distance), complex::abs(other), tolerance)
        }
    }
}

struct CloseLoop<'a, 'b, T> {
    out: &'a mut [u8],
    operands: &'a [Operand<'b>],
    lane: std::marker::PhantomData<T>,
}

impl<T: Close> Vectorized for CloseLoop<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (Operand::Slice(parameters) | Operand::Scalar(parameters)) = self.operands[2];
        let parameters = f64::view(parameters);
        let tolerance = Tolerance {
            relative: f64::load(parameters[0]),
            absolute: f64::load(parameters[1]),
            equal_nan: f64::load(parameters[2]) != 0.0,
        };
        let close = |a: T::Bytes, b: T::Bytes| u8::from(T::load(a).is_close(T::load(b), &tolerance));
        match (self.operands[0], self.operands[1]) {
            (Operand::Slice(left), Operand::Slice(right)) => {
                for ((out, &a), &b) in self.out.iter_mut().zip(T::view(left)).zip(T::view(right)) {
                    *out = close(a, b);
                }
            }
            (Operand::Slice(left), Operand::Scalar(right)) => {
                let b = T::view(right)[0];
                for (out, &a) in self.out.iter_mut().zip(T::view(left)) {
                    *out = close(a, b);
                }
            }
            (Operand::Scalar(left), Operand::Slice(right)) => {
                let a = T::view(left)[0];
                for (out, &b) in self.out.iter_mut().zip(T::view(right)) {
                    *out = close(a, b);
                }
            }
            (Operand::Scalar(left), Operand::Scalar(right)) => {
                self.out.fill(close(T::view(left)[0], T::view(right)[0]));
            }
        }
    }
}

fn tile<T: Close>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), crate::Fault> {
    vectorize(CloseLoop::<T> { out, operands, lane: std::marker::PhantomData });
    Ok(())
}
