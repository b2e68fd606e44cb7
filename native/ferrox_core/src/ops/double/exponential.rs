//! `expm1`, the hyperbolic functions and the logistic function of f64.
//!
//! All are made of `exp(x) = 2^k (1 + expm1(r))`, where `|r| <= ln(2) / 2`, with `expm1(r)` as a sum
//! of two.

use std::f64::consts::LOG2_E;

use super::{LN_2_HIGH, LN_2_LOW, TINY, add_smaller, quotient};
use crate::ops::math::{Arithmetic, BIASED_SHIFT, SHIFT, polynomial, power_of_two, two_sum};

/// `(expm1(r) - r - r^2 / 2) / r^3` for `|r| <= ln(2) / 2`; error 2^-58 of `expm1(r)`.
const EXPM1: [f64; 10] = [
    0.16666666666666669,
    0.041666666666666664,
    0.008333333333330062,
    0.0013888888888886552,
    0.00019841269863053618,
    2.4801587317144498e-05,
    2.7557268459997064e-06,
    2.755728296954995e-07,
    2.510038549551032e-08,
    2.0911236630261545e-09,
];

/// `(k, r, r_low)` with `x = k ln(2) + r + r_low`, `|r| <= ln(2) / 2` and `r_low` below half a unit
/// in the last place of `r`, or of 2^-85 where `k` isn't zero; for `|x| < 750`.
#[inline(always)]
fn reduce<A: Arithmetic>(x: f64) -> (f64, f64, f64) {
    let k = A::fma(x, LOG2_E, SHIFT) - SHIFT;
    let rest = A::fma(-k, LN_2_HIGH, x);
    let r = A::fma(-k, LN_2_LOW, rest);
    (k, r, A::fma(-k, LN_2_LOW, rest - r))
}

/// `expm1(r + r_low)` as a sum of two, for `|r| <= ln(2) / 2`.
#[inline(always)]
fn expm1_reduced<A: Arithmetic>(r: f64, r_low: f64) -> (f64, f64) {
    let half = 0.5 * r;
    let square = half * r;
    let (high, low) = add_smaller(r, square);
    let low = low + A::fma(half, r, -square) + A::fma(r_low, r, r_low);
    (high, A::fma(r * (square + square), polynomial::<A, _>(r, EXPM1), low))
}

/// Half of `e^x - 1` as a sum of two, for `-40 <= x <= 709.8`.
#[inline(always)]
fn half_expm1<A: Arithmetic>(x: f64) -> (f64, f64) {
    let (k, r, r_low) = reduce::<A>(x);
    let (high, low) = expm1_reduced::<A>(r, r_low);
    // Halves, since 2^1024 is none of the numbers.
    let scale = power_of_two(k + (BIASED_SHIFT - 1.0));
    let (whole, whole_low) = two_sum(scale, -0.5);
    let (sum, rest) = add_smaller(whole, scale * high);
    (sum, rest + (whole_low + scale * low))
}

/// `e^x - 1`.
#[inline(always)]
#[must_use]
pub fn expm1<A: Arithmetic>(x: f64) -> f64 {
    let (high, low) = half_expm1::<A>(x.clamp(-40.0, 709.79));
    let result = 2.0 * (high + low);
    if x.abs() < TINY { x } else { result }
}

/// Hyperbolic tangent: `e / (e + 1)` with `2 e = expm1(2 x)`.
#[inline(always)]
#[must_use]
pub fn tanh<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    // The result is one from 19.1 on.
    let limited = if a > 20.0 { 20.0 } else { a };
    let (high, low) = half_expm1::<A>(2.0 * limited);
    let (e, e_low) = add_smaller(high, low);
    let (sum, sum_low) = two_sum(e, 1.0);
    let (high, low) = quotient::<A>((e, e_low), (sum, sum_low + e_low));
    let result = (high + low).copysign(x);
    if a < TINY { x } else { result }
}

/// `1 / (1 + e^-x)`, or for negative `x` `e^x / (1 + e^x)`, which may be subnormal.
#[inline(always)]
#[must_use]
pub fn sigmoid<A: Arithmetic>(x: f64) -> f64 {
    let (k, r, r_low) = reduce::<A>((-x.abs()).clamp(-746.0, 0.0));
    let (high, low) = expm1_reduced::<A>(r, r_low);
    let (power, rest) = add_smaller(1.0, high);
    let (power, power_low) = add_smaller(power, rest + low);
    // Less makes no difference to one.
    let scale = power_of_two(if k < -1000.0 { -1000.0 } else { k } + BIASED_SHIFT);
    let (sum, rest) = add_smaller(1.0, scale * power);
    let negative = x < 0.0;
    let numerator = if negative { (power, power_low) } else { (1.0, 0.0) };
    let (high, low) = quotient::<A>(numerator, (sum, rest + scale * power_low));
    scale_down(high + low, if negative { k } else { 0.0 })
}

/// `(sinh(r) / r - 1) / r^2` over `r^2`, for `|r| <= ln(2) / 2`; error 2^-58 of `sinh(r)`.
const SINH: [f64; 5] = [
    0.16666666666666669,
    0.008333333333330062,
    0.00019841269863053618,
    2.7557268459997064e-06,
    2.510038549551032e-08,
];

/// `(cosh(r) - 1 - r^2 / 2) / r^4` over `r^2`, for `|r| <= ln(2) / 2`; error 2^-64 of `cosh(r)`.
const COSH: [f64; 5] = [
    0.041666666666666664,
    0.0013888888888886552,
    2.4801587317144498e-05,
    2.755728296954995e-07,
    2.0911236630261545e-09,
];

/// `sinh(a)`, or `cosh(a)`, for `a` not negative, by the addition theorem: with `a = k ln(2) + r`,
/// `sinh(k ln(2)) cosh(r) + cosh(k ln(2)) sinh(r)`, or the same with the first factors exchanged.
#[inline(always)]
fn hyperbolic<A: Arithmetic>(a: f64, is_cosh: bool) -> f64 {
    // Past the point where the result is infinite.
    let (k, r, r_low) = reduce::<A>(if a > 711.0 { 711.0 } else { a });
    // 2^-k times the hyperbolic functions of k ln(2).
    let less = if k > 60.0 { 60.0 } else { k };
    let down = power_of_two((BIASED_SHIFT - 1.0) - (less + less));
    let (difference, difference_low) = add_smaller(0.5, -down);
    let (sum, sum_low) = add_smaller(0.5, down);
    let (of_cosh, of_cosh_low) = if is_cosh { (sum, sum_low) } else { (difference, difference_low) };
    let (of_sinh, of_sinh_low) = if is_cosh { (difference, difference_low) } else { (sum, sum_low) };
    let z = r * r;
    let sinh = A::fma(r * z, polynomial::<A, _>(z, SINH), r_low);
    let cosh = A::fma(z, A::fma(z, polynomial::<A, _>(z, COSH), 0.5), r * r_low);
    let product = of_sinh * r;
    let product_low = A::fma(of_sinh, r, -product) + A::fma(of_sinh_low, r, of_cosh_low);
    let (high, low) = add_smaller(of_cosh, product);
    let low = low + product_low + A::fma(of_cosh, cosh, of_sinh * sinh);
    // In two steps, for 2^1024 is none of the numbers.
    (high + low) * power_of_two(k + (BIASED_SHIFT - 2.0)) * 4.0
}

/// Hyperbolic sine.
#[inline(always)]
#[must_use]
pub fn sinh<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    let result = hyperbolic::<A>(a, false).copysign(x);
    if a < TINY { x } else { result }
}

/// Hyperbolic cosine.
#[inline(always)]
#[must_use]
pub fn cosh<A: Arithmetic>(x: f64) -> f64 {
    hyperbolic::<A>(x.abs(), true)
}

/// `e^-(x + x_low)` as a sum of two and an exponent of two, for `0 <= x <= 750` and `x_low` of
/// rounding `x`.
#[inline(always)]
pub(super) fn exp_negative<A: Arithmetic>(x: f64, x_low: f64) -> (f64, f64, f64) {
    let (k, r, r_low) = reduce::<A>(-x);
    let (r, r_low) = two_sum(r, r_low - x_low);
    let (high, low) = expm1_reduced::<A>(r, r_low);
    let (power, rest) = add_smaller(1.0, high);
    let (power, power_low) = add_smaller(power, rest + low);
    (power, power_low, k)
}

/// `x 2^k` for `x` of about one and `-1100 <= k <= 0`; rounded once where that is subnormal.
#[inline(always)]
pub(super) fn scale_down(x: f64, k: f64) -> f64 {
    let limited = if k < -1000.0 { -1000.0 } else { k };
    x * power_of_two(limited + BIASED_SHIFT) * power_of_two((k - limited) + BIASED_SHIFT)
}
