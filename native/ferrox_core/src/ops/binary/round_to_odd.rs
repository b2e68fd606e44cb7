//! Sums, products, quotients and extremes for a result of at most 24 bits, of operands that have
//! more: integers of 32 and 64 bits with floats, and quotients of integers.
//!
//! Problem: what f64 rounds, f32 rounds again, which goes wrong where the first rounding ends
//! halfway between two numbers of f32. Technique: results are rounded to odd in f64, that is
//! towards zero with the last bit set if anything was lost, so that rounding them again is as
//! good as rounding once (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums:
//! proved algorithms using rounding to odd", 2008). 64-bit integers come as two f64,
//! see [`Exact`].

use std::marker::PhantomData;

use super::{Add, Binary, BinaryOp, Divide, Max, Min, Multiply, Remainder, Subtract, tile};
use crate::DType;
use crate::dtype::convert::{Compute, Exact};
use crate::exec::elementwise::Kernel;
use crate::exec::simd;
use crate::ops::math::f32_functions::{Arithmetic, Fused, Software, two_sum};

/// An operation with its result rounded to odd.
pub struct Odd<F, A>(PhantomData<(F, A)>);

/// Quotients, of integers rounded to f32.
pub type Quotient = Odd<Divide, Fused>;
/// The same where no instruction fuses a product and a sum.
pub type QuotientUnfused = Odd<Divide, Software>;

/// Computes f64 rounded to odd, from f64 or exact values; `None` where the plain kernel rounds
/// nothing, or the operation is none of these.
pub fn kernel(op: BinaryOp, compute: Compute) -> Option<Kernel> {
    macro_rules! either {
        ($F:ident, $T:ty) => {
            if simd::has_fma() { tile::<Odd<$F, Fused>, $T> } else { tile::<Odd<$F, Software>, $T> }
        };
    }
    Some(match (op, compute) {
        (BinaryOp::Add, Compute::As(DType::F64)) => tile::<Odd<Add, Fused>, f64>,
        (BinaryOp::Subtract, Compute::As(DType::F64)) => tile::<Odd<Subtract, Fused>, f64>,
        (BinaryOp::Multiply, Compute::As(DType::F64)) => either!(Multiply, f64),
        (BinaryOp::Divide, Compute::As(DType::F64)) => either!(Divide, f64),
        (BinaryOp::Add, Compute::Exact) => tile::<Odd<Add, Fused>, Exact>,
        (BinaryOp::Subtract, Compute::Exact) => tile::<Odd<Subtract, Fused>, Exact>,
        (BinaryOp::Multiply, Compute::Exact) => either!(Multiply, Exact),
        (BinaryOp::Divide, Compute::Exact) => either!(Divide, Exact),
        (BinaryOp::Min, Compute::Exact) => tile::<Odd<Min, Fused>, Exact>,
        (BinaryOp::Max, Compute::Exact) => tile::<Odd<Max, Fused>, Exact>,
        (BinaryOp::Remainder, Compute::Exact) => tile::<Odd<Remainder, Fused>, Exact>,
        _ => return None,
    })
}

/// `nearest + error` rounded to odd, where `nearest` is that sum rounded to nearest; only the
/// sign of the error counts, and if it is not a number it is none.
#[inline(always)]
fn to_odd(nearest: f64, error: f64) -> f64 {
    let away = (error > 0.0) == (nearest > 0.0);
    let bits = nearest.to_bits();
    let other = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let inexact = error.abs() > 0.0;
    f64::from_bits(if inexact && bits & 1 == 0 { other } else { bits })
}

/// The difference of `a` and `b`, and what it lacks: `two_sum` would turn the sign of a NaN.
#[inline(always)]
fn two_difference(a: f64, b: f64) -> (f64, f64) {
    let difference = a - b;
    let b_there = a - difference;
    (difference, (a - (difference + b_there)) - (b - b_there))
}

/// `high + rest + low` rounded to odd, where `high` is `high + rest` rounded to nearest.
#[inline(always)]
fn sum_to_odd(high: f64, rest: f64, low: f64) -> f64 {
    let (upper, lower) = two_sum(rest, low);
    let (sum, middle) = two_sum(high, upper);
    let (middle, error) = two_sum(middle, lower);
    let (sum, error) = two_sum(sum, to_odd(middle, error));
    let result = to_odd(sum, error);
    // Infinities and NaN have no rest, and a zero keeps its sign.
    let regular = high.abs() < f64::INFINITY && (high != 0.0 || low != 0.0);
    if regular { result } else { high }
}

/// Whether products about this number are ordinary ones, whose rest all arithmetic finds alike;
/// others come of operands of f64 alone, and are rounded as they are.
#[inline(always)]
fn is_ordinary(x: f64) -> bool {
    const GREAT: f64 = f64::from_bits((1023 + 900) << 52);
    (x.abs() < GREAT) & (x.abs() > 1.0 / GREAT)
}

/// The quotient of two numbers rounded to nearest, and what it lacks, rounded to odd.
#[inline(always)]
fn quotient_to_odd(of: [f64; 2], nearest: f64, rest: f64) -> f64 {
    /// A quotient of 64-bit integers, or of one and an f32, that isn't halfway between two
    /// numbers of f32 is further from there: what is less comes from the rounding of `rest`.
    const NEAR: f64 = 1.0 / (1_u128 << 75) as f64;
    let rest = if is_ordinary(of[0]) & is_ordinary(of[1]) { rest } else { 0.0 };
    let sum = nearest + rest;
    let error = rest - (sum - nearest);
    let error = if error.abs() > NEAR * sum.abs() { error } else { 0.0 };
    let regular = nearest != 0.0 && nearest.abs() < f64::INFINITY;
    if regular { to_odd(sum, error) } else { nearest }
}

impl<A: Arithmetic> Binary<f64> for Odd<Add, A> {
    type Out = f64;
    #[inline(always)]
    fn apply(a: f64, b: f64) -> f64 {
        let (sum, error) = two_sum(a, b);
        to_odd(sum, error)
    }
}

impl<A: Arithmetic> Binary<f64> for Odd<Subtract, A> {
    type Out = f64;
    #[inline(always)]
    fn apply(a: f64, b: f64) -> f64 {
        let (difference, error) = two_difference(a, b);
        to_odd(difference, error)
    }
}

impl<A: Arithmetic> Binary<f64> for Odd<Multiply, A> {
    type Out = f64;
    #[inline(always)]
    fn apply(a: f64, b: f64) -> f64 {
        let product = a * b;
        to_odd(product, if is_ordinary(product) { A::fma(a, b, -product) } else { 0.0 })
    }
}

impl<A: Arithmetic> Binary<f64> for Odd<Divide, A> {
    type Out = f64;
    #[inline(always)]
    fn apply(a: f64, b: f64) -> f64 {
        let quotient = a / b;
        quotient_to_odd([a, b], quotient, A::fma(-quotient, b, a) / b)
    }
}

impl<A: Arithmetic> Binary<i32> for Odd<Divide, A> {
    type Out = f32;
    #[inline(always)]
    fn apply(a: i32, b: i32) -> f32 {
        <Self as Binary<f64>>::apply(f64::from(a), f64::from(b)) as f32
    }
}

impl<A: Arithmetic> Binary<i64> for Odd<Divide, A> {
    type Out = f32;
    #[inline(always)]
    fn apply(a: i64, b: i64) -> f32 {
        <Self as Binary<Exact>>::apply(Exact::of(a), Exact::of(b)) as f32
    }
}

impl<A: Arithmetic> Binary<Exact> for Odd<Add, A> {
    type Out = f64;
    #[inline(always)]
    fn apply(a: Exact, b: Exact) -> f64 {
        let (high, rest) = two_sum(a.high, b.high);
        sum_to_odd(high, rest, a.low + b.low)
    }
}

impl<A: Arithmetic> Binary<Exact> for Odd<Subtract, A> {
    type Out = f64;
    #[inline(always)]
    fn apply(a: Exact, b: Exact) -> f64 {
        let (high, rest) = two_difference(a.high, b.high);
        sum_to_odd(high, rest, a.low - b.low)
    }
}

impl<A: Arithmetic> Binary<Exact> for Odd<Multiply, A> {
    type Out = f64;
    #[inline(always)]
    fn apply(a: Exact, b: Exact) -> f64 {
        let high = a.high * b.high;
        let rest = A::fma(a.high, b.high, -high);
        // Exact, unless both are integers that f64 doesn't hold, which no type of at most 24
        // bits results from in Nx.
        sum_to_odd(high, rest, a.high * b.low + a.low * b.high)
    }
}

impl<A: Arithmetic> Binary<Exact> for Odd<Divide, A> {
    type Out = f64;
    #[inline(always)]
    fn apply(a: Exact, b: Exact) -> f64 {
        let quotient = a.high / b.high;
        let rest = A::fma(-quotient, b.high, a.high) + A::fma(-quotient, b.low, a.low);
        quotient_to_odd([a.high, b.high], quotient, rest / b.high)
    }
}

impl<A: Arithmetic> Binary<Exact> for Odd<Max, A> {
    type Out = f64;
    #[inline(always)]
    fn apply(a: Exact, b: Exact) -> f64 {
        let larger = if b > a || b.is_nan() { b } else { a };
        to_odd(larger.high, larger.low)
    }
}

impl<A: Arithmetic> Binary<Exact> for Odd<Min, A> {
    type Out = f64;
    #[inline(always)]
    fn apply(a: Exact, b: Exact) -> f64 {
        let smaller = if b < a || b.is_nan() { b } else { a };
        to_odd(smaller.high, smaller.low)
    }
}

impl<A: Arithmetic> Binary<Exact> for Odd<Remainder, A> {
    type Out = f64;
    #[inline(always)]
    fn apply(a: Exact, b: Exact) -> f64 {
        remainder(a, b)
    }
}

/// What is left of `a` after whole multiples of `b`, with the sign of `a`; one of them is an
/// integer, the other may be an f32.
fn remainder(a: Exact, b: Exact) -> f64 {
    let exact = a.low == 0.0 && b.low == 0.0;
    if exact || b.high == 0.0 || !a.high.is_finite() || b.is_nan() {
        return a.high % b.high;
    }
    let is_whole = |x: Exact| x.high.fract() == 0.0;
    // A fraction means that there are less than 24 bits before the point, and that the other, of
    // which some are in `low`, is larger.
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
    // All of these are multiples of the last bit of `b`, and less than 2^24 of it twice.
    let rest = (a.high % b.high + a.low % b.high) % b.high;
    let other_side = rest != 0.0 && (rest > 0.0) != (a.high > 0.0);
    if other_side { rest + b.high.abs().copysign(a.high) } else { rest.copysign(a.high) }
}
