//! `log1p` and the inverse hyperbolic functions of f64.
//!
//! All are computed as `log(2^k (1 + f))`, where `1 + f` is from `sqrt(1/2)` to `sqrt(2)`. The
//! argument of the logarithm is the sum of two numbers.

use crate::ops::math::f32_functions::{
    Arithmetic, BIASED_SHIFT, INF, polynomial, power_of_two, split_exponent, two_sum,
};
use crate::ops::math::f64_functions::{IDENTITY_LIMIT, LN_2_HIGH_42, LN_2_LOW_42, fast_two_sum, quotient};

/// Coefficients of `(log((1 + s) / (1 - s)) / s - 2) / s^2` in powers of `s^2`, for `|s| <= 3 -
/// sqrt(8)`; the error of the logarithm is 2^-60.
const LOG_F64: [f64; 8] = [
    0.6666666666666666,
    0.4000000000000088,
    0.2857142857080285,
    0.22222222391887064,
    0.18181795621632782,
    0.15386240708969665,
    0.13268746195596595,
    0.13086907887965027,
];

/// Returns `k ln(2) + log(1 + f + f_low)` as the sum of two numbers, for `1 + f` from `sqrt(1/2)`
/// to `sqrt(2)`.
///
/// As in fdlibm, `log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + R(s^2))` with `s = f / (2 + f)`. The last
/// term is below 6% of the sum, and the other terms are exact.
#[inline(always)]
fn log_sum<A: Arithmetic>(k: f64, f: f64, f_low: f64) -> (f64, f64) {
    let half = 0.5 * f;
    let square = half * f;
    let square_low = A::fma(half, f, -square);
    let s = f / (2.0 + f);
    let z = s * s;
    let (sum, first) = fast_two_sum(k * LN_2_HIGH_42, f);
    let (high, second) = fast_two_sum(sum, -square);
    // f_low (1 - f + f^2) is nearly f_low / (1 + f).
    let rest = A::fma(f_low, A::fma(f, f - 1.0, 1.0), A::fma(k, LN_2_LOW_42, -square_low));
    let low = (first + second) + rest;
    (high, A::fma(s, A::fma(z, polynomial::<A, _>(z, LOG_F64), square), low))
}

/// Returns `log(1 + a + a_low)`, or `log(2 a)` if `large`, as the sum of two numbers. `a` is at
/// least `2^-53 - 1`, and `a_low` is its rounding error.
#[inline(always)]
fn log_one_plus<A: Arithmetic>(a: f64, a_low: f64, large: bool) -> (f64, f64) {
    let (sum, sum_low) = two_sum(if large { 0.0 } else { 1.0 }, a);
    let (k, m) = split_exponent(sum);
    // Larger sums have no low part.
    let limited = if k > 1000.0 { 1000.0 } else { k };
    let unscale = power_of_two(BIASED_SHIFT - limited);
    // If 1 + a needs no scaling, a is exact.
    let near = k == 0.0;
    let f = if near { a } else { m - 1.0 };
    let f_low = if near { a_low } else { (sum_low + a_low) * unscale };
    log_sum::<A>(if large { k + 1.0 } else { k }, f, f_low)
}

/// Natural logarithm of `1 + x`. The result is -infinity for -1 and NaN below -1.
#[inline(always)]
#[must_use]
pub fn log1p<A: Arithmetic>(x: f64) -> f64 {
    let (high, low) = log_one_plus::<A>(x, 0.0, false);
    let result = (high + low).copysign(x);
    let result = if x < INF { result } else { x };
    let special = if x == -1.0 { -INF } else { f64::NAN };
    if x <= -1.0 { special } else { result }
}

/// Returns `-log(t)` as the sum of two numbers, for positive normal `t`.
#[inline(always)]
pub(super) fn minus_log<A: Arithmetic>(t: f64) -> (f64, f64) {
    let (k, m) = split_exponent(t);
    let (high, low) = log_sum::<A>(k, m - 1.0, 0.0);
    let (sum, rest) = fast_two_sum(high, low);
    (-sum, -rest)
}

/// 2^28. Above it, the square of an argument plus or minus one rounds to the square, and `asinh`
/// and `acosh` are `log(2 x)`.
const ASINH_LOG_LIMIT: f64 = 268435456.0;

/// Inverse hyperbolic sine: `log1p(a + a^2 / (1 + sqrt(1 + a^2)))` of the magnitude `a`, or `log(2
/// a)` if `a` is large.
#[inline(always)]
#[must_use]
pub fn asinh<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    let large = a > ASINH_LOG_LIMIT;
    let limited = if large { 1.0 } else { a };
    let square = limited * limited;
    let square_low = A::fma(limited, limited, -square);
    let root = (1.0 + square).sqrt();
    let (divisor, divisor_low) = fast_two_sum(root, 1.0);
    let (q, q_low) = quotient::<A>((square, square_low), (divisor, divisor_low));
    let (f, rest) = fast_two_sum(limited, q);
    let (high, low) = log_one_plus::<A>(if large { a } else { f }, rest + q_low, large);
    let result = (high + low).copysign(x);
    if a > IDENTITY_LIMIT && a < INF { result } else { x }
}

/// Inverse hyperbolic cosine: `log1p(t + sqrt(t (t + 2)))` with `t = x - 1`, or `log(2 x)` if `x`
/// is large. The result is NaN below 1.
///
/// From 2 on, the rounding error of the argument of `log1p` is left out: Nx's documentation shows
/// these digits, which are those of fdlibm.
#[inline(always)]
#[must_use]
pub fn acosh<A: Arithmetic>(x: f64) -> f64 {
    /// It prevents a division by zero if the root is zero, and is negligible beside any other root.
    const MIN_DIVISOR: f64 = f64::MIN_POSITIVE;
    let large = x > ASINH_LOG_LIMIT;
    let t = if large { 1.0 } else { x - 1.0 };
    let square = t * t;
    let (product, rest) = two_sum(2.0 * t, square);
    let product_low = rest + A::fma(t, t, -square);
    let root = product.sqrt();
    let root_low = (A::fma(-root, root, product) + product_low) * (0.5 / (root + MIN_DIVISOR));
    let (f, rest) = fast_two_sum(root, t);
    let f_low = if x < 2.0 { rest + root_low } else { 0.0 };
    let (high, low) = log_one_plus::<A>(if large { x } else { f }, f_low, large);
    let result = high + low;
    let result = if x < INF { result } else { x };
    if x < 1.0 { f64::NAN } else { result }
}

/// Inverse hyperbolic tangent: `(log1p(a) - log1p(-a)) / 2` of the magnitude `a`. The results are
/// infinities at -1 and 1, and NaN outside. Each step is rounded: Nx's documentation shows these
/// digits.
#[inline(always)]
#[must_use]
pub fn atanh<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    let result = (0.5 * (log1p::<A>(a) - log1p::<A>(-a))).copysign(x);
    if a < IDENTITY_LIMIT { x } else { result }
}
