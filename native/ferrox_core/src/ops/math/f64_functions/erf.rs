//! `erf` and `erfc` of f64.

use crate::ops::math::f32_functions::{Arithmetic, polynomial, two_sum};
use crate::ops::math::f64_functions::exponential::{exp_negative, scale_down};
use crate::ops::math::f64_functions::{SCALE, add_smaller, quotient};

/// Arguments below this in magnitude are near zero.
const NEAR: f64 = 0.5;

/// `2 / sqrt(pi)`, and what it lacks.
const SLOPE: f64 = std::f64::consts::FRAC_2_SQRT_PI;
const SLOPE_LOW: f64 = 1.533545961316588e-17;

/// `(erf(x) / x - 2 / sqrt(pi)) / x^2` over `x^2`, for `|x| <= NEAR`; error 2^-58 of `erf(x)`.
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

/// `erf(x) / x` near zero as a sum of two, of which `2 / sqrt(pi)` is the first.
#[inline(always)]
fn near<A: Arithmetic>(x: f64) -> (f64, f64) {
    let z = x * x;
    (SLOPE, A::fma(z, polynomial::<A, _>(z, ERF), SLOPE_LOW))
}

/// What the argument of [`TAIL`] is zero for.
const CENTRE: f64 = 3.5;

/// `(1 + 2 a) exp(a^2) erfc(a)`, less `ABOUT`, over `(a - CENTRE) / (a + CENTRE)`, for
/// `0 <= a <= 28`; error 2^-56 of `erfc(a)`. The factor `1 + 2 a`, which leaves so little to be
/// approximated, is that of Shepherd and Laframboise, "Chebyshev approximation of
/// (1 + 2x) exp(x^2) erfc x" (1981).
const ABOUT: f64 = 1.125;
const TAIL: [f64; 24] = [
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

/// The derivative of [`TAIL`], for `NEAR <= a <= 28`, to 4% of its largest value.
const TAIL_SLOPE: [f64; 4] = [-0.160, -0.0085, 0.577, -0.635];

/// `(1 + 2 a) exp(a^2) erfc(a)` as a sum of two, for `NEAR <= a <= 28`.
#[inline(always)]
fn factor<A: Arithmetic>(a: f64) -> (f64, f64) {
    let (sum, sum_low) = two_sum(a, CENTRE);
    let (difference, difference_low) = two_sum(a, -CENTRE);
    let (t, t_low) = quotient::<A>((difference, difference_low), (sum, sum_low));
    let rest = A::fma(t_low, polynomial::<A, _>(t, TAIL_SLOPE), polynomial::<A, _>(t, TAIL));
    add_smaller(ABOUT, rest)
}

/// The product of two sums of two as another.
#[inline(always)]
fn product<A: Arithmetic>((a, a_low): (f64, f64), (b, b_low): (f64, f64)) -> (f64, f64) {
    let high = a * b;
    (high, A::fma(a, b_low, A::fma(a_low, b, A::fma(a, b, -high))))
}

/// `erfc(a)` as a sum of two and an exponent of two, for `NEAR <= a <= 28`, given `factor`.
#[inline(always)]
fn tail<A: Arithmetic>(a: f64, factor: (f64, f64)) -> (f64, f64, f64) {
    let square = a * a;
    let (power, power_low, k) = exp_negative::<A>(square, A::fma(a, a, -square));
    let (high, low) = quotient::<A>(product::<A>((power, power_low), factor), two_sum(1.0, a + a));
    (high, low, k)
}

/// The same rounded in the steps of fdlibm, whose digits Nx's documentation shows: as
/// `exp(-z^2 - 9/16)`, where `z` has so few bits of `a` that this is exact, times the rest of
/// `a erfc(a)`, over `a`.
#[inline(always)]
fn tail_in_steps<A: Arithmetic>(a: f64, factor: (f64, f64)) -> f64 {
    const PART: f64 = 0.5625;
    let z = f64::from_bits(a.to_bits() & !0xffff_ffff);
    let (power, power_low, k) = exp_negative::<A>(z * z + PART, 0.0);
    let (inverse, inverse_low, less) = exp_negative::<A>(-PART, (a - z) * (a + z));
    let share = quotient::<A>(product::<A>(factor, (a, 0.0)), two_sum(1.0, a + a));
    let (high, low) = product::<A>(share, (inverse, inverse_low));
    scale_down((power + power_low) * (high + low) / a, k + less)
}

/// Error function; from `|x| = 5.93` on the nearest f64 is 1.
#[inline(always)]
#[must_use]
pub fn erf<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    let small = a < 1.0 / SCALE;
    let (slope, slope_low) = near::<A>(x);
    let scaled = x * if small { SCALE } else { 1.0 };
    let line = scaled * slope;
    let line = line + A::fma(scaled, slope_low, A::fma(scaled, slope, -line));
    let line = (line * if small { 1.0 / SCALE } else { 1.0 }).copysign(x);

    let limited = if a > 6.0 { 6.0 } else { a };
    let (high, low, k) = tail::<A>(limited, factor::<A>(limited));
    let (high, low) = (scale_down(high, k), scale_down(low, k));
    let (sum, rest) = add_smaller(1.0, -high);
    let far = (sum + (rest - low)).copysign(x);
    if a < NEAR { line } else { far }
}

/// Where the range of fdlibm begins whose digits of `erfc` Nx's documentation shows.
const STEPWISE: f64 = 1.25;

/// `1 - erf(x)`, without cancellation; zero from 27.3 on.
#[inline(always)]
#[must_use]
pub fn erfc<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    let (slope, slope_low) = near::<A>(x);
    let line = x * slope;
    let line_low = A::fma(x, slope_low, A::fma(x, slope, -line));
    let (sum, rest) = add_smaller(1.0, -line);
    let line = sum + (rest - line_low);

    let limited = if a > 28.0 { 28.0 } else { a };
    let factor = factor::<A>(limited);
    let (high, low, k) = tail::<A>(limited, factor);
    let stepwise = tail_in_steps::<A>(limited, factor);
    let positive = if a < STEPWISE { scale_down(high + low, k) } else { stepwise };
    let (sum, rest) = add_smaller(2.0, -scale_down(high, k));
    let negative = sum + (rest - scale_down(low, k));
    let far = if x > 0.0 { positive } else { negative };
    if a < NEAR { line } else { far }
}
