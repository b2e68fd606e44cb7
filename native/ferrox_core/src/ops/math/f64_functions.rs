//! Functions of f64 within one unit in the last place, and far less in most cases. Those of which
//! Nx's documentation shows digits that come of rounding each step do so too, where they must, and
//! are within one to two and a half units: `sinh`, `acosh`, `atanh`, `sigmoid` and `erfc`.
//!
//! Problem: to round but once, a function must know more of its result than an f64 holds, and a loop
//! of it must vectorize. Technique: what makes up most of a result is computed as a sum of two, the
//! second of which is what rounding took from the first, and what is left, some percent of the
//! result, is a polynomial. A few operations get the former exactly if multiply-add is rounded once.
//!
//! Everything here is plain arithmetic, as in `f32_functions`, and so has the same bits under all instruction
//! sets and beside any C library; functions are generic over how multiply-add is rounded once. The
//! functions that aren't here are the C library's, whose own steps `f64_glibc` follows in its loops.
//!
//! Arguments of the functions are all of f64. The sign and payload of a NaN are unspecified.
//!
//! Coefficients were made for these files in 60-digit arithmetic: they interpolate at Chebyshev nodes
//! of the interval that the constant's comment states, with the relative error that it states.

#![allow(
    clippy::excessive_precision,
    clippy::unreadable_literal,
    reason = "coefficients are written as the shortest digits that give back the same f64"
)]
#![allow(clippy::float_cmp, reason = "special cases are single values")]
#![allow(clippy::inline_always, reason = "the loops vectorize only when the whole function is in their body")]

mod erf;
mod erf_inv;
mod exponential;
mod logarithm;
mod roots;

use std::marker::PhantomData;

pub(in crate::ops) use self::erf::{erf, erfc};
pub(in crate::ops) use self::erf_inv::erf_inv;
pub(in crate::ops) use self::exponential::{cosh, expm1, sigmoid, sinh, tanh};
pub(in crate::ops) use self::logarithm::{acosh, asinh, atanh, log1p};
use crate::Fault;
use crate::dtype::Lane;
use crate::exec::elementwise::Operand;
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::ops::math::f32_functions::{Arithmetic, Fused, Software};

/// Cube root, for loops of their own and for single numbers.
#[inline(always)]
#[must_use]
pub fn cbrt(x: f64) -> f64 {
    roots::cbrt::<Fused>(x)
}

/// The same by any arithmetic.
pub(in crate::ops) use self::roots::cbrt as cbrt_by;

/// `ln(2)` in two parts; the first has 42 bits, so that its product with an exponent is exact.
const LN_2_HIGH: f64 = 0.6931471805598903;
const LN_2_LOW: f64 = 5.497923018708371e-14;

/// Below this magnitude, odd functions of slope one, but for the error functions, are their
/// argument: 2^-54.
const TINY: f64 = f64::from_bits((1023 - 54) << 52);

/// What takes the smallest arguments to where the rest of a product is no subnormal number: 2^200.
const SCALE: f64 = f64::from_bits((1023 + 200) << 52);

/// The sum of `a` and `b`, and what it lacks, for `b` of no larger magnitude than `a`, or `a` zero.
#[inline(always)]
fn add_smaller(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, (a - sum) + b)
}

/// The quotient of two sums of two as another.
#[inline(always)]
fn quotient<A: Arithmetic>((n, n_low): (f64, f64), (d, d_low): (f64, f64)) -> (f64, f64) {
    let inverse = 1.0 / d;
    let q = n * inverse;
    let rest = A::fma(-q, d, n) + A::fma(-q, d_low, n_low);
    (q, rest * inverse)
}

/// A function of one f64.
pub(in crate::ops) trait Function: 'static {
    /// Its value.
    fn apply<A: Arithmetic>(x: f64) -> f64;
}

struct Loop<'a, 'b, F> {
    out: &'a mut [u8],
    operand: Operand<'b>,
    function: PhantomData<F>,
}

impl<F: Function> Loop<'_, '_, F> {
    #[inline(always)]
    fn run_by<A: Arithmetic>(self) {
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

impl<F: Function> Vectorized for Loop<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.run_by::<Fused>();
    }

    #[inline(always)]
    fn run_unfused(self) {
        self.run_by::<Software>();
    }
}

/// The kernel of a function.
pub(in crate::ops) fn tile<F: Function>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    vectorize(Loop::<F> { out, operand: operands[0], function: PhantomData });
    Ok(())
}
