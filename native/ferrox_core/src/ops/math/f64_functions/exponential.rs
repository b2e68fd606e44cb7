//! `expm1`, the hyperbolic functions and the logistic function of f64.
//!
//! All are computed from `exp(x) = 2^k (1 + expm1(r))`, where `|r| <= ln(2) / 2` and `expm1(r)` is
//! the sum of two numbers.

use std::f64::consts::LOG2_E;

use crate::ops::math::f32_functions::{
    Arithmetic, BIASED_SHIFT, INF, ROUNDING_SHIFT, polynomial, power_of_two, two_sum,
};
use crate::ops::math::f64_functions::{IDENTITY_LIMIT, LN_2_HIGH_42, LN_2_LOW_42, fast_two_sum, quotient};

/// Coefficients of `(expm1(r) - r - r^2 / 2) / r^3` for `|r| <= ln(2) / 2`; the error of `expm1(r)`
/// is 2^-58.
const EXPM1_F64: [f64; 10] = [
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

/// Returns `(k, r, r_low)` with `x = k ln(2) + r + r_low` and `|r| <= ln(2) / 2`, for `|x| < 750`.
/// The magnitude of `r_low` is below half a unit in the last place of `r`, or of 2^-85 if `k` isn't
/// zero.
#[inline(always)]
fn reduce_exp<A: Arithmetic>(x: f64) -> (f64, f64, f64) {
    let k = A::fma(x, LOG2_E, ROUNDING_SHIFT) - ROUNDING_SHIFT;
    let rest = A::fma(-k, LN_2_HIGH_42, x);
    let r = A::fma(-k, LN_2_LOW_42, rest);
    (k, r, A::fma(-k, LN_2_LOW_42, rest - r))
}

/// Returns `expm1(r + r_low)` as the sum of two numbers, for `|r| <= ln(2) / 2`.
#[inline(always)]
fn expm1_reduced<A: Arithmetic>(r: f64, r_low: f64) -> (f64, f64) {
    let half = 0.5 * r;
    let square = half * r;
    let (high, low) = fast_two_sum(r, square);
    let low = low + A::fma(half, r, -square) + A::fma(r_low, r, r_low);
    (high, A::fma(r * (square + square), polynomial::<A, _>(r, EXPM1_F64), low))
}

/// Returns a quarter of `2^k (1 + p + p_low) - 1` as the sum of two numbers, for `-60 <= k <=
/// 1025`. The quarter is in range even if half of the number, or the whole number, is not.
#[inline(always)]
fn quarter_expm1(k: f64, p: f64, p_low: f64) -> (f64, f64) {
    let scale = power_of_two(k + (BIASED_SHIFT - 2.0));
    let (whole, whole_low) = two_sum(scale, -0.25);
    let (sum, rest) = fast_two_sum(whole, scale * p);
    (sum, rest + (whole_low + scale * p_low))
}

/// `e^x - 1`.
///
/// The rounding error of a positive `expm1(r)` is left out, which is at most a quarter of an ulp.
/// So the result has the digits that Nx's documentation shows, which are those of fdlibm.
#[inline(always)]
#[must_use]
pub fn expm1<A: Arithmetic>(x: f64) -> f64 {
    let (k, r, r_low) = reduce_exp::<A>(x.clamp(-40.0, 709.79));
    let (high, low) = expm1_reduced::<A>(r, r_low);
    let (p, p_low) = fast_two_sum(high, low);
    let (high, low) = quarter_expm1(k, p, if p > 0.0 { 0.0 } else { p_low });
    let result = 4.0 * (high + low);
    if x.abs() < IDENTITY_LIMIT { x } else { result }
}

/// Hyperbolic tangent: `e / (e + 1 / 2)` with `4 e = expm1(2 x)`.
#[inline(always)]
#[must_use]
pub fn tanh<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    // The result is one from 19.1 on.
    let limited = if a > 20.0 { 20.0 } else { a };
    let (k, r, r_low) = reduce_exp::<A>(2.0 * limited);
    let (high, low) = expm1_reduced::<A>(r, r_low);
    let (high, low) = quarter_expm1(k, high, low);
    let (e, e_low) = fast_two_sum(high, low);
    let (sum, sum_low) = two_sum(e, 0.5);
    let (high, low) = quotient::<A>((e, e_low), (sum, sum_low + e_low));
    let result = (high + low).copysign(x);
    if a < IDENTITY_LIMIT { x } else { result }
}

/// `1 / (1 + e^-x)`, or for negative `x` `e^x / (1 + e^x)`, which may be subnormal.
///
/// The first formula is rounded after each step, with an error of up to an ulp, because Nx's
/// documentation shows these digits.
#[inline(always)]
#[must_use]
pub fn sigmoid<A: Arithmetic>(x: f64) -> f64 {
    let (k, r, r_low) = reduce_exp::<A>((-x.abs()).clamp(-746.0, 0.0));
    let (high, low) = expm1_reduced::<A>(r, r_low);
    let (power, rest) = fast_two_sum(1.0, high);
    let (power, power_low) = fast_two_sum(power, rest + low);
    // A smaller scale doesn't change its sum with one.
    let scale = power_of_two(if k < -1000.0 { -1000.0 } else { k } + BIASED_SHIFT);
    let (sum, rest) = fast_two_sum(1.0, scale * power);
    let negative = x < 0.0;
    let numerator = if negative { (power, power_low) } else { (1.0, 0.0) };
    let sum_low = if negative { rest + scale * power_low } else { 0.0 };
    let (high, low) = quotient::<A>(numerator, (sum, sum_low));
    scale_down(high + low, if negative { k } else { 0.0 })
}

/// Hyperbolic sine: `t + t / (2 t + 1)`, or for magnitudes below one `2 t - 2 t^2 / (2 t + 1)`,
/// where `2 t = expm1(a)` of the magnitude `a`. Each step is rounded: Nx's documentation shows
/// these digits, which are those of fdlibm.
#[inline(always)]
#[must_use]
pub fn sinh<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    // The result is infinite at the limit.
    let (k, r, r_low) = reduce_exp::<A>(if a > 710.6 { 710.6 } else { a });
    let (high, low) = expm1_reduced::<A>(r, r_low);
    let (high, low) = quarter_expm1(k, high, low);
    let half = 2.0 * (high + low);
    let whole = half + half;
    let is_small = a < 1.0;
    let start = if is_small { whole } else { half };
    let numerator = if is_small { -whole * half } else { half };
    let sum = start + numerator / (whole + 1.0);
    let result = if half < INF { sum } else { half };
    if a < IDENTITY_LIMIT { x } else { result.copysign(x) }
}

/// Coefficients of `(sinh(r) / r - 1) / r^2` in powers of `r^2`, for `|r| <= ln(2) / 2`; the error
/// of `sinh(r)` is 2^-58.
const SINH_F64: [f64; 5] = [
    0.16666666666666669,
    0.008333333333330062,
    0.00019841269863053618,
    2.7557268459997064e-06,
    2.510038549551032e-08,
];

/// Coefficients of `(cosh(r) - 1 - r^2 / 2) / r^4` in powers of `r^2`, for `|r| <= ln(2) / 2`; the
/// error of `cosh(r)` is 2^-64.
const COSH_F64: [f64; 5] = [
    0.041666666666666664,
    0.0013888888888886552,
    2.4801587317144498e-05,
    2.755728296954995e-07,
    2.0911236630261545e-09,
];

/// Hyperbolic cosine, by the addition theorem: with `|x| = k ln(2) + r`, `cosh(k ln(2)) cosh(r) +
/// sinh(k ln(2)) sinh(r)`.
#[inline(always)]
#[must_use]
pub fn cosh<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    // The result is infinite at the limit.
    let (k, r, r_low) = reduce_exp::<A>(if a > 711.0 { 711.0 } else { a });
    // 2^-k times the hyperbolic functions of k ln(2).
    let less = if k > 60.0 { 60.0 } else { k };
    let down = power_of_two((BIASED_SHIFT - 1.0) - (less + less));
    let (sinh_k, sinh_k_low) = fast_two_sum(0.5, -down);
    let (cosh_k, cosh_k_low) = fast_two_sum(0.5, down);
    let z = r * r;
    let sinh = A::fma(r * z, polynomial::<A, _>(z, SINH_F64), r_low);
    let cosh = A::fma(z, A::fma(z, polynomial::<A, _>(z, COSH_F64), 0.5), r * r_low);
    let product = sinh_k * r;
    let product_low = A::fma(sinh_k, r, -product) + A::fma(sinh_k_low, r, cosh_k_low);
    let (high, low) = fast_two_sum(cosh_k, product);
    let low = low + product_low + A::fma(cosh_k, cosh, sinh_k * sinh);
    // There are two factors, because 2^1024 is not an f64.
    (high + low) * power_of_two(k + (BIASED_SHIFT - 2.0)) * 4.0
}

/// Returns `e^-(x + x_low)` as the sum of two numbers and an exponent of two, for `-1 <= x <= 785`
/// and an `x_low` of at most a thousandth.
#[inline(always)]
pub(super) fn exp_negative<A: Arithmetic>(x: f64, x_low: f64) -> (f64, f64, f64) {
    let (k, r, r_low) = reduce_exp::<A>(-x);
    let (r, r_low) = two_sum(r, r_low - x_low);
    let (high, low) = expm1_reduced::<A>(r, r_low);
    let (power, rest) = fast_two_sum(1.0, high);
    let (power, power_low) = fast_two_sum(power, rest + low);
    (power, power_low, k)
}

/// Returns `x 2^k` for `x` of about one and `-1100 <= k <= 0`. A subnormal result is rounded once.
#[inline(always)]
pub(super) fn scale_down(x: f64, k: f64) -> f64 {
    let limited = if k < -1000.0 { -1000.0 } else { k };
    x * power_of_two(limited + BIASED_SHIFT) * power_of_two((k - limited) + BIASED_SHIFT)
}
