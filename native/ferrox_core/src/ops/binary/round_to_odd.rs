//! Sums, products, quotients, remainders, minima and maxima that are rounded to types of at most 24
//! bits, where the operands have more bits: integers of 32 and 64 bits with floats, and quotients
//! of integers.
//!
//! Problem: a result that is rounded to f64 and then to f32 is wrong if the first rounding gives a
//! midpoint of two f32 values. Technique: results in f64 are rounded to odd, which means towards
//! zero, and then the last bit is set if the result is inexact. Rounding such a number again gives
//! the same value as rounding the exact result once (Boldo and Melquiond, "Emulation of a FMA and
//! correctly rounded sums: proved algorithms using rounding to odd", 2008). 64-bit integers are the
//! sum of two f64, see [`Exact`].

use std::marker::PhantomData;

use super::{Add, Binary, BinaryOp, Divide, Max, Min, Multiply, Remainder, Subtract, tile};
use crate::DType;
use crate::dtype::Exact;
use crate::exec::convert::Compute;
use crate::exec::elementwise::Kernel;
use crate::exec::simd;
use crate::ops::math::f32_functions::{Arithmetic, HardwareFma, SoftwareFma, two_sum};

/// An operation whose result is rounded to odd, with fused multiply-add by `A`.
pub struct RoundedToOdd<F, A>(PhantomData<(F, A)>);

/// Quotients. Quotients of integers are rounded to f32.
pub type Quotient = RoundedToOdd<Divide, HardwareFma>;
/// The same for processors without fused multiply-add.
pub type QuotientUnfused = RoundedToOdd<Divide, SoftwareFma>;

/// Returns a kernel that computes f64 numbers rounded to odd, from f64 or exact values. Returns
/// `None` where the plain kernel is exact, or for other operations.
pub fn kernel(op: BinaryOp, compute: Compute) -> Option<Kernel> {
    macro_rules! with_fma {
        ($F:ident, $T:ty) => {
            if simd::has_fma() {
                tile::<RoundedToOdd<$F, HardwareFma>, $T>
            } else {
                tile::<RoundedToOdd<$F, SoftwareFma>, $T>
            }
        };
    }
    Some(match (op, compute) {
        (BinaryOp::Add, Compute::As(DType::F64)) => tile::<RoundedToOdd<Add, HardwareFma>, f64>,
        (BinaryOp::Subtract, Compute::As(DType::F64)) => tile::<RoundedToOdd<Subtract, HardwareFma>, f64>,
        (BinaryOp::Multiply, Compute::As(DType::F64)) => with_fma!(Multiply, f64),
        (BinaryOp::Divide, Compute::As(DType::F64)) => with_fma!(Divide, f64),
        (BinaryOp::Add, Compute::Exact) => tile::<RoundedToOdd<Add, HardwareFma>, Exact>,
        (BinaryOp::Subtract, Compute::Exact) => tile::<RoundedToOdd<Subtract, HardwareFma>, Exact>,
        (BinaryOp::Multiply, Compute::Exact) => with_fma!(Multiply, Exact),
        (BinaryOp::Divide, Compute::Exact) => with_fma!(Divide, Exact),
        (BinaryOp::Min, Compute::Exact) => tile::<RoundedToOdd<Min, HardwareFma>, Exact>,
        (BinaryOp::Max, Compute::Exact) => tile::<RoundedToOdd<Max, HardwareFma>, Exact>,
        (BinaryOp::Remainder, Compute::Exact) => tile::<RoundedToOdd<Remainder, HardwareFma>, Exact>,
        _ => return None,
    })
}

/// Returns `nearest + error` rounded to odd, where `nearest` is that sum rounded to nearest. Only
/// the sign of the error matters. An error that is NaN counts as zero.
#[inline(always)]
fn to_odd(nearest: f64, error: f64) -> f64 {
    let away = (error > 0.0) == (nearest > 0.0);
    let bits = nearest.to_bits();
    let other = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let inexact = error.abs() > 0.0;
    f64::from_bits(if inexact && bits & 1 == 0 { other } else { bits })
}

/// Returns the rounded difference of `a` and `b`, and its rounding error. `two_sum` of `-b` would
/// change the sign of a NaN.
#[inline(always)]
fn two_difference(a: f64, b: f64) -> (f64, f64) {
    let difference = a - b;
    let b_virtual = a - difference;
    (difference, (a - (difference + b_virtual)) - (b - b_virtual))
}

/// Returns `high + rest + low` rounded to odd, where `high` is `high + rest` rounded to nearest.
#[inline(always)]
fn sum_to_odd(high: f64, rest: f64, low: f64) -> f64 {
    let (upper, lower) = two_sum(rest, low);
    let (sum, middle) = two_sum(high, upper);
    let (middle, error) = two_sum(middle, lower);
    let (sum, error) = two_sum(sum, to_odd(middle, error));
    let result = to_odd(sum, error);
    // Infinities and NaN have no rounding error, and a zero keeps its sign.
    let regular = high.abs() < f64::INFINITY && (high != 0.0 || low != 0.0);
    if regular { result } else { high }
}

/// Returns whether the rounding errors of products of this magnitude are the same with each
/// implementation of fused multiply-add. Other products have only operands of f64, and are rounded
/// as they are.
#[inline(always)]
fn is_ordinary(x: f64) -> bool {
    const MAX_ORDINARY: f64 = f64::from_bits((1023 + 900) << 52);
    (x.abs() < MAX_ORDINARY) & (x.abs() > 1.0 / MAX_ORDINARY)
}

/// Returns the quotient rounded to odd, given the operands, the quotient rounded to nearest, and
/// its rounding error.
#[inline(always)]
fn quotient_to_odd(operands: [f64; 2], nearest: f64, rest: f64) -> f64 {
    /// The least relative distance of a quotient of 64-bit integers, or of a 64-bit integer and an
    /// f32, from a midpoint of two f32 values, unless it is a midpoint. A smaller error comes from
    /// the rounding of `rest`.
    const MIN_HALFWAY_DISTANCE: f64 = 1.0 / (1_u128 << 75) as f64;
    let rest = if is_ordinary(operands[0]) & is_ordinary(operands[1]) { rest } else { 0.0 };
    let sum = nearest + rest;
    let error = rest - (sum - nearest);
    let error = if error.abs() > MIN_HALFWAY_DISTANCE * sum.abs() { error } else { 0.0 };
    let regular = nearest != 0.0 && nearest.abs() < f64::INFINITY;
    if regular { to_odd(sum, error) } else { nearest }
}

macro_rules! rounded_to_odd {
    ($A:ident: $op:ident, $t:ty, $a:ident, $b:ident => $body:expr) => {
        impl<$A: Arithmetic> Binary<$t> for RoundedToOdd<$op, $A> {
            type Out = f64;
            #[inline(always)]
            fn apply($a: $t, $b: $t) -> f64 {
                $body
            }
        }
    };
}
rounded_to_odd!(A: Add, f64, a, b => {
    let (sum, error) = two_sum(a, b);
    to_odd(sum, error)
});

rounded_to_odd!(A: Subtract, f64, a, b => {
    let (difference, error) = two_difference(a, b);
    to_odd(difference, error)
});

rounded_to_odd!(A: Multiply, f64, a, b => {
    let product = a * b;
    to_odd(product, if is_ordinary(product) { A::fma(a, b, -product) } else { 0.0 })
});

rounded_to_odd!(A: Divide, f64, a, b => {
    let quotient = a / b;
    quotient_to_odd([a, b], quotient, A::fma(-quotient, b, a) / b)
});

impl<A: Arithmetic> Binary<i32> for RoundedToOdd<Divide, A> {
    type Out = f32;
    #[inline(always)]
    fn apply(a: i32, b: i32) -> f32 {
        <Self as Binary<f64>>::apply(f64::from(a), f64::from(b)) as f32
    }
}

impl<A: Arithmetic> Binary<i64> for RoundedToOdd<Divide, A> {
    type Out = f32;
    #[inline(always)]
    fn apply(a: i64, b: i64) -> f32 {
        <Self as Binary<Exact>>::apply(Exact::of(a), Exact::of(b)) as f32
    }
}

rounded_to_odd!(A: Add, Exact, a, b => {
    let (high, rest) = two_sum(a.high, b.high);
    sum_to_odd(high, rest, a.low + b.low)
});

rounded_to_odd!(A: Subtract, Exact, a, b => {
    let (high, rest) = two_difference(a.high, b.high);
    sum_to_odd(high, rest, a.low - b.low)
});

rounded_to_odd!(A: Multiply, Exact, a, b => {
    let high = a.high * b.high;
    let rest = A::fma(a.high, b.high, -high);
    // The result is exact unless both operands are integers that f64 can't represent. In Nx, no
    // such product has a type of at most 24 bits.
    sum_to_odd(high, rest, a.high * b.low + a.low * b.high)
});

rounded_to_odd!(A: Divide, Exact, a, b => {
    let quotient = a.high / b.high;
    let rest = A::fma(-quotient, b.high, a.high) + A::fma(-quotient, b.low, a.low);
    quotient_to_odd([a.high, b.high], quotient, rest / b.high)
});

rounded_to_odd!(A: Max, Exact, a, b => {
    let larger = if b > a || b.is_nan() { b } else { a };
    to_odd(larger.high, larger.low)
});

rounded_to_odd!(A: Min, Exact, a, b => {
    let smaller = if b < a || b.is_nan() { b } else { a };
    to_odd(smaller.high, smaller.low)
});

rounded_to_odd!(A: Remainder, Exact, a, b => remainder(a, b));

/// Returns the remainder of `a` divided by `b`, with the sign of `a`. One of the operands is an
/// integer, the other one may be an f32.
fn remainder(a: Exact, b: Exact) -> f64 {
    let exact = a.low == 0.0 && b.low == 0.0;
    if exact || b.high == 0.0 || !a.high.is_finite() || b.is_nan() {
        return a.high % b.high;
    }
    let is_whole = |x: Exact| x.high.fract() == 0.0;
    // If `a` has a fraction, it has less than 24 bits before the point. The other operand is
    // larger, because some of its bits are in `low`.
    if b.high.is_infinite() || !is_whole(a) {
        return to_odd(a.high, a.low);
    }
    if is_whole(b) {
        let magnitude = |x: Exact| {
            let high = x.high.abs() as u128;
            high.wrapping_add_signed((x.low * x.high.signum()) as i128)
        };
        let rest = magnitude(a) % magnitude(b);
        let nearest = rest as f64;
        let error = (rest as i128 - nearest as i128) as f64;
        return to_odd(nearest, error).copysign(a.high);
    }
    // Both remainders are multiples of the last bit of `b`, and each is less than 2^24 times this
    // bit, so that their sum is exact.
    let rest = (a.high % b.high + a.low % b.high) % b.high;
    let other_side = rest != 0.0 && (rest > 0.0) != (a.high > 0.0);
    if other_side { rest + b.high.abs().copysign(a.high) } else { rest.copysign(a.high) }
}
