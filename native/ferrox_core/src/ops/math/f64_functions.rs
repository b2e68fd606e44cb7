//! Functions of f64 with errors below one unit in the last place, and far less in most cases.
//! `sinh`, `acosh`, `atanh`, `sigmoid` and `erfc` have errors of up to one to two and a half units:
//! Nx's documentation shows their digits as computed with a rounding after each step, so these
//! functions round after each step where this is necessary to give the same digits.
//!
//! Problem: to round only once, a function must compute its result to more digits than an f64 has,
//! and its loop must vectorize. Technique: the greater part of a result is computed as an
//! unevaluated sum of two numbers, where the second one is the rounding error of the first one. The
//! remainder, a few percent of the result, is a polynomial. Fused multiply-add makes the sum exact
//! in a few operations.
//!
//! Everything here is plain arithmetic, as in `f32_functions`, and so has the same bits with every
//! instruction set and every C library. The functions are generic over the implementation of fused
//! multiply-add. The functions that are missing here are in `f64_loops`.
//!
//! The arguments may be any f64. The sign and the payload of a NaN are unspecified.
//!
//! The coefficients were made for these files in 60-digit arithmetic. They interpolate at the
//! Chebyshev nodes of the interval, and have the relative error, that the comment of each constant
//! states.

#![allow(
    clippy::excessive_precision,
    clippy::unreadable_literal,
    reason = "coefficients are written as the shortest digits that give back the same f64"
)]
#![allow(clippy::float_cmp, reason = "special cases are single values")]
#![allow(clippy::inline_always, reason = "the loops vectorize only when the whole function is in their body")]

pub(super) mod circular;
mod erf;
mod erf_inv;
mod exponential;
mod logarithm;
mod roots;

use std::marker::PhantomData;

pub(in crate::ops) use self::circular::{acos, asin, atan};
pub(in crate::ops) use self::erf::{erf, erfc};
pub(in crate::ops) use self::erf_inv::erf_inv;
pub(in crate::ops) use self::exponential::{cosh, expm1, sigmoid, sinh, tanh};
pub(in crate::ops) use self::logarithm::{acosh, asinh, atanh, log1p};
use crate::Fault;
use crate::dtype::Lane;
use crate::exec::elementwise::Operand;
use crate::exec::simd::{Vectorized, dispatch as vectorize, dispatch_element};
use crate::ops::math::f32_functions::{Arithmetic, HardwareFma, SoftwareFma};
use crate::ops::scalar::{element_of, word_of};

/// Cube root, for callers that aren't generic over fused multiply-add.
#[inline(always)]
#[must_use]
pub fn cbrt(x: f64) -> f64 {
    roots::cbrt::<HardwareFma>(x)
}

/// Cube root for loops, generic over the implementation of fused multiply-add.
pub(in crate::ops) use self::roots::cbrt as cbrt_by;

/// `ln(2)` as the sum of two numbers. The first one has 42 bits, so that its product with an
/// exponent is exact.
pub(super) const LN_2_HIGH_42: f64 = 0.6931471805598903;
pub(super) const LN_2_LOW_42: f64 = 5.497923018708371e-14;

/// 2^-54. For smaller magnitudes, an odd function whose slope at zero is one returns its argument.
/// The error functions have another slope.
const IDENTITY_LIMIT: f64 = f64::from_bits((1023 - 54) << 52);

/// 2^200. It scales the smallest arguments so that the rounding error of a product isn't subnormal.
const SUBNORMAL_SCALE: f64 = f64::from_bits((1023 + 200) << 52);

/// Returns the rounded sum of `a` and `b`, and its rounding error, if `b` has no larger magnitude
/// than `a`, or `a` is zero (Dekker's Fast2Sum).
#[inline(always)]
pub(super) fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, (a - sum) + b)
}

/// The binary exponent of a positive number.
pub(in crate::ops) fn exponent_of_two(x: f64) -> i32 {
    let of_normal = |x: f64| (x.to_bits() >> 52) as i32 - 1023;
    if x >= f64::MIN_POSITIVE { of_normal(x) } else { of_normal(x * 2f64.powi(64)) - 64 }
}

/// Returns the quotient of two unevaluated sums as an unevaluated sum.
#[inline(always)]
fn quotient<A: Arithmetic>((n, n_low): (f64, f64), (d, d_low): (f64, f64)) -> (f64, f64) {
    let inverse = 1.0 / d;
    let q = n * inverse;
    let rest = A::fma(-q, d, n) + A::fma(-q, d_low, n_low);
    (q, rest * inverse)
}

/// A function of one f64.
pub(in crate::ops) trait Function: 'static {
    /// Returns the value of the function.
    fn apply<A: Arithmetic>(x: f64) -> f64;
}

/// Computes a function of one element.
#[inline]
pub(in crate::ops) fn element<F: Function>(x: f64) -> f64 {
    dispatch_element(F64Element::<F> { x, function: PhantomData })
}

/// The kernel of a function of one element.
pub(in crate::ops) fn scalar<F: Function>(x: u64, _: u64) -> u64 {
    word_of(element::<F>(element_of(x)))
}

struct F64Element<F> {
    x: f64,
    function: PhantomData<F>,
}

impl<F: Function> Vectorized for F64Element<F> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        F::apply::<HardwareFma>(self.x)
    }

    #[inline(always)]
    fn run_unfused(self) -> f64 {
        F::apply::<SoftwareFma>(self.x)
    }
}

struct F64FunctionLoop<'a, 'b, F> {
    out: &'a mut [u8],
    operand: Operand<'b>,
    function: PhantomData<F>,
}

impl<F: Function> F64FunctionLoop<'_, '_, F> {
    #[inline(always)]
    fn run_with<A: Arithmetic>(self) {
        let out = f64::view_mut(self.out);
        match self.operand {
            Operand::Slice(input) => {
                for (out, &x) in out.iter_mut().zip(f64::view(input)) {
                    *out = F::apply::<A>(f64::load(x)).store();
                }
            }
            Operand::Scalar(input) => out.fill(F::apply::<A>(f64::load(f64::view(input)[0])).store()),
        }
    }
}

impl<F: Function> Vectorized for F64FunctionLoop<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.run_with::<HardwareFma>();
    }

    #[inline(always)]
    fn run_unfused(self) {
        self.run_with::<SoftwareFma>();
    }
}

/// The kernel of a function.
pub(in crate::ops) fn tile<F: Function>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    vectorize(F64FunctionLoop::<F> { out, operand: operands[0], function: PhantomData });
    Ok(())
}
