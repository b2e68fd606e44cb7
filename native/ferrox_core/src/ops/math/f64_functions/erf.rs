//! `erf` and `erfc` of f64.

use crate::ops::math::f32_functions::{Arithmetic, polynomial, two_sum};
use crate::ops::math::f64_functions::exponential::{exp_negative, scale_down};
use crate::ops::math::f64_functions::{SUBNORMAL_SCALE, fast_two_sum, quotient};

/// Arguments of smaller magnitude are near zero.
const ERF_NEAR_ZERO_LIMIT: f64 = 0.5;

/// `2 / sqrt(pi)`, and its rounding error.
const ERF_SLOPE_AT_ZERO: f64 = std::f64::consts::FRAC_2_SQRT_PI;
const ERF_SLOPE_AT_ZERO_LOW: f64 = 1.533545961316588e-17;

/// Coefficients of `(erf(x) / x - 2 / sqrt(pi)) / x^2` in powers of `x^2`, for `|x| <=
/// ERF_NEAR_ZERO_LIMIT`; the error of `erf(x)` is 2^-58.
const ERF: [f64; 9] = [
    -0.37612638903183754,
    0.112837916709551,
    -0.026866170645104014,
    0.0052239776243227015,
    -0.0008548326792781157,
    0.00012055306252594572,
    -1.4923827486228955e-05,
    1.6389390291205426e-06,
    -1.4786787853202602e-07,
];

/// Returns `erf(x) / x` near zero as the sum of two numbers. The first one is `2 / sqrt(pi)`.
#[inline(always)]
fn erf_ratio_near_zero<A: Arithmetic>(x: f64) -> (f64, f64) {
    let z = x * x;
    (ERF_SLOPE_AT_ZERO, A::fma(z, polynomial::<A, _>(z, ERF), ERF_SLOPE_AT_ZERO_LOW))
}

/// The argument `a` for which the variable of the polynomial [`ERFC_TAIL`] is zero.
const ERFC_TAIL_CENTER: f64 = 3.5;

/// `ERFC_TAIL` has the coefficients of `(1 + 2 a) exp(a^2) erfc(a) - ERFC_TAIL_OFFSET` in powers of
/// `(a - ERFC_TAIL_CENTER) / (a + ERFC_TAIL_CENTER)`, for `0 <= a <= 28`; the error of `erfc(a)` is
/// 2^-56. The factor `1 + 2 a` makes the function almost constant. It is from Shepherd and
/// Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x" (1981).
const ERFC_TAIL_OFFSET: f64 = 1.125;
const ERFC_TAIL: [f64; 24] = [
    0.11734924487115438,
    -0.1400091801376194,
    -0.01055559633221672,
    0.0975190951532564,
    -0.11508959816029005,
    0.08798315382496273,
    -0.04882332582549299,
    0.019099330940569065,
    -0.004215019938415131,
    -0.0003022678590732155,
    0.0005643846469939224,
    -0.00012151253078729825,
    -4.2783309692173314e-05,
    2.426135327666471e-05,
    2.331582282314354e-06,
    -3.815475922801578e-06,
    -5.063489253619096e-08,
    6.020760226252401e-07,
    -1.5499690462950355e-10,
    -9.52273777109586e-08,
    -4.77568259240498e-09,
    1.1900522717370351e-08,
    1.5919191796770944e-09,
    -4.5715906580257253e-10,
];

/// Coefficients of the derivative of [`ERFC_TAIL`], for `ERF_NEAR_ZERO_LIMIT <= a <= 28`. The error
/// is 4% of the largest value.
const ERFC_TAIL_SLOPE: [f64; 4] = [-0.160, -0.0085, 0.577, -0.635];

/// Returns `(1 + 2 a) exp(a^2) erfc(a)` as the sum of two numbers, for `ERF_NEAR_ZERO_LIMIT <= a <=
/// 28`.
#[inline(always)]
fn factor<A: Arithmetic>(a: f64) -> (f64, f64) {
    let (sum, sum_low) = two_sum(a, ERFC_TAIL_CENTER);
    let (difference, difference_low) = two_sum(a, -ERFC_TAIL_CENTER);
    let (t, t_low) = quotient::<A>((difference, difference_low), (sum, sum_low));
    let rest = A::fma(t_low, polynomial::<A, _>(t, ERFC_TAIL_SLOPE), polynomial::<A, _>(t, ERFC_TAIL));
    fast_two_sum(ERFC_TAIL_OFFSET, rest)
}

/// Returns the product of two unevaluated sums as an unevaluated sum.
#[inline(always)]
fn product<A: Arithmetic>((a, a_low): (f64, f64), (b, b_low): (f64, f64)) -> (f64, f64) {
    let high = a * b;
    (high, A::fma(a, b_low, A::fma(a_low, b, A::fma(a, b, -high))))
}

/// Returns `erfc(a)` as the sum of two numbers and an exponent of two, for `ERF_NEAR_ZERO_LIMIT <=
/// a <= 28`, given `factor`.
#[inline(always)]
fn tail<A: Arithmetic>(a: f64, factor: (f64, f64)) -> (f64, f64, f64) {
    let square = a * a;
    let (power, power_low, k) = exp_negative::<A>(square, A::fma(a, a, -square));
    let (high, low) = quotient::<A>(product::<A>((power, power_low), factor), two_sum(1.0, a + a));
    (high, low, k)
}

/// Returns `erfc(a)` with the roundings of fdlibm, whose digits Nx's documentation shows. The
/// result is `exp(-z^2 - 9/16)` times a second factor, divided by `a`. The number `z` has only the
/// upper bits of `a`, so that `z^2 + 9/16` is exact, and the second factor is `a erfc(a) / exp(-z^2
/// - 9/16)`.
#[inline(always)]
fn tail_as_fdlibm<A: Arithmetic>(a: f64, factor: (f64, f64)) -> f64 {
    const NINE_SIXTEENTHS: f64 = 0.5625;
    let z = f64::from_bits(a.to_bits() & !0xffff_ffff);
    let (power, power_low, k) = exp_negative::<A>(z * z + NINE_SIXTEENTHS, 0.0);
    let (inverse, inverse_low, inverse_k) = exp_negative::<A>(-NINE_SIXTEENTHS, (a - z) * (a + z));
    let scaled_erfc = quotient::<A>(product::<A>(factor, (a, 0.0)), two_sum(1.0, a + a));
    let (high, low) = product::<A>(scaled_erfc, (inverse, inverse_low));
    scale_down((power + power_low) * (high + low) / a, k + inverse_k)
}

/// Error function. From `|x| = 5.93` on, the nearest f64 is 1.
#[inline(always)]
#[must_use]
pub fn erf<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    let small = a < 1.0 / SUBNORMAL_SCALE;
    let (slope, slope_low) = erf_ratio_near_zero::<A>(x);
    let scaled = x * if small { SUBNORMAL_SCALE } else { 1.0 };
    let line = scaled * slope;
    let line = line + A::fma(scaled, slope_low, A::fma(scaled, slope, -line));
    let line = (line * if small { 1.0 / SUBNORMAL_SCALE } else { 1.0 }).copysign(x);

    let limited = if a > 6.0 { 6.0 } else { a };
    let (high, low, k) = tail::<A>(limited, factor::<A>(limited));
    let (high, low) = (scale_down(high, k), scale_down(low, k));
    let (sum, rest) = fast_two_sum(1.0, -high);
    let far = (sum + (rest - low)).copysign(x);
    if a < ERF_NEAR_ZERO_LIMIT { line } else { far }
}

/// From this argument on, Nx's documentation shows the digits of `erfc` that fdlibm computes.
const ERFC_FDLIBM_LIMIT: f64 = 1.25;

/// `1 - erf(x)`, without cancellation. The result is zero from 27.3 on.
#[inline(always)]
#[must_use]
pub fn erfc<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    let (slope, slope_low) = erf_ratio_near_zero::<A>(x);
    let line = x * slope;
    let line_low = A::fma(x, slope_low, A::fma(x, slope, -line));
    let (sum, rest) = fast_two_sum(1.0, -line);
    let line = sum + (rest - line_low);

    let limited = if a > 28.0 { 28.0 } else { a };
    let factor = factor::<A>(limited);
    let (high, low, k) = tail::<A>(limited, factor);
    let as_fdlibm = tail_as_fdlibm::<A>(limited, factor);
    let positive = if a < ERFC_FDLIBM_LIMIT { scale_down(high + low, k) } else { as_fdlibm };
    let (sum, rest) = fast_two_sum(2.0, -scale_down(high, k));
    let negative = sum + (rest - scale_down(low, k));
    let far = if x > 0.0 { positive } else { negative };
    if a < ERF_NEAR_ZERO_LIMIT { line } else { far }
}
