//! Unary functions, `pow` and `atan2` for the float types of at most 32 bits.
//!
//! The caller converts each element to f64, calls one of these functions, and rounds the result
//! once to the element's type. The relative error of a result is at most 2^-47, also near zeros of
//! the function and for subnormal arguments. Hence the rounded result is the correctly rounded
//! value for all but about one in some million inputs (`examples/ulp.rs` counts them). `erf_inv` is
//! an exception: it follows a formula of Nx. Where the f32 result overflows, or no longer changes,
//! only the rounded result is right.
//!
//! An argument must be an f32 value, not only a number in the range of f32: `pow` needs the 24-bit
//! significand, and `erfc` needs an exact square. Four functions, which the loops of complex
//! numbers use, accept any f64: `exp_wide`, `log_regular`, and `sin` and `cos` of small angles.
//! Near a zero of `sin` or `cos`, the result for such an f64 is only as precise as the angle.
//!
//! The functions consist of plain arithmetic (`+ - * /`, square root, bit operations, selects) and
//! of multiply-add with one rounding. So a loop over one function vectorizes for the instruction
//! set that its caller is compiled for, and gives the same bits with every instruction set. For
//! this reason there are no calls of libm, no `round` (a libm call without SSE4.1) and no branches.
//! The exceptions are `sin_any`, `cos_any` and `tan_any`, which `f32_loops` uses where
//! [`angle_is_small`] is false. The sign and the payload of a NaN are unspecified.
//!
//! Multiply-add saves a third of the operations. [`HardwareFma`] is for instruction sets that have
//! it. For other instruction sets, the caller computes with [`SeparateRounding`], and if
//! [`rounding_is_certain`] is false for the result, which is the case for about one in a hundred
//! thousand, it computes the result again with [`SoftwareFma`]. `atan2` uses no fused multiply-add.
//!
//! The functions of f64 elements are in `f64_functions` and `f64_loops`.
//!
//! The coefficients are minimax fits, made for this file by Remez exchange in 60-digit arithmetic,
//! for the interval and the relative error that the comment of each constant states.

#![allow(
    clippy::excessive_precision,
    clippy::unreadable_literal,
    reason = "coefficients are written as the shortest digits that give back the same f64"
)]
#![allow(clippy::float_cmp, reason = "special cases are single values")]
#![allow(
    clippy::inline_always,
    reason = "the callers' loops vectorize only when the whole function is in their body"
)]

use std::f64::consts::{FRAC_1_PI, FRAC_2_PI, FRAC_2_SQRT_PI, FRAC_PI_2, FRAC_PI_4, LN_2, LOG2_E, PI};

pub(in crate::ops) const INF: f64 = f64::INFINITY;
const F32_MAX: f64 = f32::MAX as f64;

/// Adding this number (1.5 * 2^52) rounds to an integer, ties to even. The low bits of the sum are
/// that integer in two's complement, if it has at most 51 bits.
pub(in crate::ops) const ROUNDING_SHIFT: f64 = 6755399441055744.0;

/// 2^52. An integer below it that is written into its fraction bits is added to it.
pub(in crate::ops) const TWO_52: f64 = 4503599627370496.0;

const FRACTION_BITS: u32 = 52;
const FRACTION_MASK: u64 = (1 << FRACTION_BITS) - 1;
const ONE_BITS: u64 = 1.0_f64.to_bits();

/// How `a * b + c` is computed and rounded.
pub trait Arithmetic: 'static {
    /// Returns `a * b + c`, rounded once, or twice by [`SeparateRounding`].
    fn fma(a: f64, b: f64, c: f64) -> f64;
}

/// The fused multiply-add instruction. Without the instruction this is a slow call of the C
/// library.
#[derive(Debug)]
pub struct HardwareFma;

impl Arithmetic for HardwareFma {
    #[inline(always)]
    fn fma(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}

/// A product and a sum that are both rounded. The functions' results are within 2^-44.4 of the
/// results with one rounding.
#[derive(Debug)]
pub struct SeparateRounding;

impl Arithmetic for SeparateRounding {
    #[inline(always)]
    fn fma(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
}

/// A fused multiply-add made of some 40 operations. It is exact unless the product is below 2^-960
/// or above 2^960.
#[derive(Debug)]
pub struct SoftwareFma;

impl Arithmetic for SoftwareFma {
    /// The algorithm of Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved
    /// algorithms using rounding to odd" (2008): the exact product and sum are represented by three
    /// numbers. The two smaller ones are added with rounding to odd, so that the last sum has the
    /// value that a single rounding gives.
    #[inline(always)]
    fn fma(a: f64, b: f64, c: f64) -> f64 {
        let product = a * b;
        let ((a_high, a_low), (b_high, b_low)) = (veltkamp_split(a), veltkamp_split(b));
        let rest = (a_high * b_high - product) + a_high * b_low + a_low * b_high + a_low * b_low;
        let (upper, lower) = two_sum(c, rest);
        let (high, middle) = two_sum(product, upper);
        let (sum, error) = two_sum(middle, lower);
        // If the last bit is even, the result is the next number in the direction of the error.
        let away = (error > 0.0) == (sum > 0.0);
        let odd = if away { sum.to_bits().wrapping_add(1) } else { sum.to_bits().wrapping_sub(1) };
        let exact = error == 0.0 || sum.to_bits() & 1 == 1;
        let result = high + if exact { sum } else { f64::from_bits(odd) };
        // Zeros (for their sign), infinities and NaN come from the plain expression.
        let plain = product + c;
        if plain.abs() < INF && result != 0.0 { result } else { plain }
    }
}

/// Returns whether all numbers within a relative distance of 2^-44 from `y` round to the same f32,
/// bf16, f16 and f8 value as `y`. This is Ziv's rounding test for these types.
///
/// A midpoint of two values of these types has at most 25 significant bits. So the rounding is
/// certain if `y` is far enough from the nearest number of 25 bits. It is also certain if that
/// number has at most three significant bits and is at least 2^-7, because such a number is a value
/// of each type and not a midpoint: the small values of f8_e4m3fn are the multiples of 2^-9.
#[inline(always)]
#[must_use]
pub fn rounding_is_certain(y: f64) -> bool {
    const MAX_ERROR: f64 = f64::from_bits(ONE_BITS - (44 << FRACTION_BITS));
    const MIN_FEW_BITS: f64 = f64::from_bits(ONE_BITS - (7 << FRACTION_BITS));
    // Rounds to 25 bits by Veltkamp's splitting.
    let multiple = y * 268435457.0;
    let rounded_to_25_bits = multiple - (multiple - y);
    let a = y.abs();
    let far = (y - rounded_to_25_bits).abs() > MAX_ERROR * a;
    let few_bits = rounded_to_25_bits.to_bits() & (FRACTION_MASK >> 2) == 0 && a >= MIN_FEW_BITS;
    far || few_bits || a == 0.0 || a == INF || a.is_nan()
}

/// Splits `x` into its upper 26 bits and the remainder (Veltkamp's splitting).
#[inline(always)]
fn veltkamp_split(x: f64) -> (f64, f64) {
    let multiple = x * 134217729.0;
    let high = multiple - (multiple - x);
    (high, x - high)
}

/// Returns the rounded sum of `a` and `b`, and its rounding error (Knuth's TwoSum).
#[inline(always)]
pub(in crate::ops) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_virtual = sum - a;
    (sum, (a - (sum - b_virtual)) + (b - b_virtual))
}

/// Returns `c[0] + c[1] x + c[2] x^2 + ...` (Horner's method).
#[inline(always)]
pub(in crate::ops) fn polynomial<A: Arithmetic, const N: usize>(x: f64, c: [f64; N]) -> f64 {
    let mut sum = c[N - 1];
    for i in (0..N - 1).rev() {
        sum = A::fma(sum, x, c[i]);
    }
    sum
}

/// Flips the sign of `x` if the lowest bit of `parity` is set.
#[inline(always)]
fn negate_if_odd(x: f64, parity: u64) -> f64 {
    f64::from_bits(x.to_bits() ^ (parity << 63))
}

// Exponentials

/// `ln(2)` as the sum of two numbers. The first one has 38 bits, so that its product with an
/// exponent is exact.
const LN_2_HIGH_38: f64 = 0.6931471805582987;
const LN_2_LOW_38: f64 = 1.6465949582897082e-12;

/// Coefficients of `(expm1(r) - r) / r^2` for `|r| <= ln(2) / 2`; the error of `expm1(r)` is 2^-49.
const EXPM1_F32: [f64; 9] = [
    0.5000000000000008,
    0.16666666666630295,
    0.041666666666542874,
    0.008333333362789163,
    0.0013888888943170133,
    0.00019841195746329594,
    2.4801491478052732e-05,
    2.7630736629586747e-06,
    2.7631360494664737e-07,
];

/// [`ROUNDING_SHIFT`] for an exponent of two, plus the exponent bias of f64.
pub(in crate::ops) const BIASED_SHIFT: f64 = ROUNDING_SHIFT + 1023.0;

/// Returns `2^k`, where `shifted` is `k + BIASED_SHIFT` and `-1022 <= k <= 1023`.
#[inline(always)]
pub(in crate::ops) fn power_of_two(shifted: f64) -> f64 {
    f64::from_bits(shifted.to_bits() << FRACTION_BITS)
}

/// Returns `expm1(r)` for `|r| <= ln(2) / 2`.
#[inline(always)]
fn expm1_reduced<A: Arithmetic>(r: f64) -> f64 {
    A::fma(r * r, polynomial::<A, _>(r, EXPM1_F32), r)
}

/// Returns `(s, r)` with `exp(x) = 2^k exp(r)`, where `s` is `k + BIASED_SHIFT` and `|r| <= ln(2) /
/// 2`, for `|x| <= 700`.
#[inline(always)]
fn reduce_exp<A: Arithmetic>(x: f64) -> (f64, f64) {
    let shifted = A::fma(x, LOG2_E, BIASED_SHIFT);
    let k = shifted - BIASED_SHIFT;
    (shifted, A::fma(-k, LN_2_LOW_38, A::fma(-k, LN_2_HIGH_38, x)))
}

/// Returns `(s, q)` with `exp(x) = s + s q`, where `s` is a power of two and `q` is small, for `|x|
/// <= 700`.
#[inline(always)]
fn exp_parts<A: Arithmetic>(x: f64) -> (f64, f64) {
    let (shifted, r) = reduce_exp::<A>(x);
    (power_of_two(shifted), expm1_reduced::<A>(r))
}

/// `e^x` as `2^k (1 + expm1(r))` with `x = k ln(2) + r`. The result rounds to infinity above the
/// range of f32, and to zero below the range of its subnormal numbers.
#[inline(always)]
#[must_use]
pub fn exp<A: Arithmetic>(x: f64) -> f64 {
    let (scale, q) = exp_parts::<A>(x.clamp(-110.0, 90.0));
    A::fma(scale, q, scale)
}

/// `e^x` for `x` from -700 to 700. Arguments outside are replaced by the nearer bound.
#[inline(always)]
#[must_use]
pub fn exp_wide<A: Arithmetic>(x: f64) -> f64 {
    let (scale, q) = exp_parts::<A>(x.clamp(-700.0, 700.0));
    A::fma(scale, q, scale)
}

/// `e^x - 1` without cancellation near zero. It is computed like `exp`, but `2^k - 1` is formed
/// first.
#[inline(always)]
#[must_use]
pub fn expm1<A: Arithmetic>(x: f64) -> f64 {
    let (scale, q) = exp_parts::<A>(x.clamp(-60.0, 90.0));
    A::fma(scale, q, scale - 1.0).copysign(x)
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
#[must_use]
pub fn sigmoid<A: Arithmetic>(x: f64) -> f64 {
    let (scale, q) = exp_parts::<A>((-x).clamp(-60.0, 120.0));
    1.0 / (1.0 + A::fma(scale, q, scale))
}

/// [`EXPM1_F32`] as coefficients for `r / 2`, with half of the values.
const HALF_EXPM1_F32: [f64; 9] = {
    let (mut c, mut factor, mut i) = (EXPM1_F32, 1.0, 0);
    while i < c.len() {
        factor *= 2.0;
        c[i] *= factor;
        i += 1;
    }
    c
};

/// For arguments up to this magnitude, [`tanh_regular`] gives the same result as [`tanh`].
pub(in crate::ops) const TANH_REGULAR_LIMIT: f32 = 30.0;

/// Hyperbolic tangent for magnitudes up to `TANH_REGULAR_LIMIT`: `e / (e + 1)` with `2 e = expm1(2
/// x)`. The coefficients and constants are scaled by powers of two, which is exact and saves a
/// multiplication.
#[inline(always)]
pub(in crate::ops) fn tanh_regular<A: Arithmetic>(x: f64) -> f64 {
    let shifted = A::fma(x, 2.0 * LOG2_E, BIASED_SHIFT);
    let k = shifted - BIASED_SHIFT;
    let r = A::fma(-k, 0.5 * LN_2_LOW_38, A::fma(-k, 0.5 * LN_2_HIGH_38, x));
    let q = A::fma(r * r, polynomial::<A, _>(r, HALF_EXPM1_F32), r);
    let scale = power_of_two(shifted);
    let e = A::fma(scale, q, A::fma(scale, 0.5, -0.5));
    (e / (e + 1.0)).copysign(x)
}

/// Hyperbolic tangent.
#[inline(always)]
#[must_use]
pub fn tanh<A: Arithmetic>(x: f64) -> f64 {
    let limit = f64::from(TANH_REGULAR_LIMIT);
    tanh_regular::<A>(x.clamp(-limit, limit))
}

// Logarithms

/// Coefficients of `(log((1 + s) / (1 - s)) / s - 2) / s^2` in powers of `s^2`, for `|s| <= 3 -
/// sqrt(8)`; the error of the logarithm is 2^-52.
const LOG_F32: [f64; 6] = [
    0.6666666666658734,
    0.4000000005222439,
    0.2857141713560367,
    0.22223371422951704,
    0.18123646559837464,
    0.16819819595851623,
];

/// Returns `(k, m)` with `x = 2^k m` and `m` from `sqrt(1/2)` to `sqrt(2)`, for positive normal
/// `x`.
#[inline(always)]
pub(in crate::ops) fn split_exponent(x: f64) -> (f64, f64) {
    const SQRT_HALF_BITS: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    // The exponent is k + 1024, which is not negative, because AVX2 has no arithmetic shift of
    // 64-bit integers.
    let t = x.to_bits().wrapping_sub(SQRT_HALF_BITS).wrapping_add(1024 << FRACTION_BITS);
    // The bits of 2^52 with the integer k + 1024 in the fraction are the float 2^52 + k + 1024.
    let k = f64::from_bits((t >> FRACTION_BITS) | TWO_52.to_bits()) - (TWO_52 + 1024.0);
    (k, f64::from_bits((t & FRACTION_MASK).wrapping_add(SQRT_HALF_BITS)))
}

/// Returns `k ln(2) + log(1 + f)` for `1 + f` from `sqrt(1/2)` to `sqrt(2)`, with `log(1 + f) = 2
/// atanh(f / (2 + f))`.
#[inline(always)]
fn log_sum<A: Arithmetic>(k: f64, f: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    A::fma(k, LN_2, s * A::fma(z, polynomial::<A, _>(z, LOG_F32), 2.0))
}

/// Natural logarithm of `1 + x` for any f64 `x` that is zero or has a magnitude of at least
/// 2^-1000, without the special cases of [`log1p`]. The result for infinity is infinity.
#[inline(always)]
fn log1p_regular<A: Arithmetic>(x: f64) -> f64 {
    let (k, m) = split_exponent(1.0 + x);
    // If 1 + x needs no scaling, x is exact, whereas 1 + x has been rounded.
    let f = if k == 0.0 { x } else { m - 1.0 };
    let result = log_sum::<A>(k, f);
    if x < INF { result } else { x }
}

/// Natural logarithm of any positive normal f64.
#[inline(always)]
pub(in crate::ops) fn log_regular<A: Arithmetic>(x: f64) -> f64 {
    let (k, m) = split_exponent(x);
    log_sum::<A>(k, m - 1.0)
}

/// Natural logarithm. The result is -infinity for zeros and NaN for negative numbers.
#[inline(always)]
#[must_use]
pub fn log<A: Arithmetic>(x: f64) -> f64 {
    let result = log_regular::<A>(x);
    // A comparison with infinity would be compiled to a test of bit patterns, which vectorizes
    // worse.
    let result = if x > F32_MAX { INF } else { result };
    let special = if x == 0.0 { -INF } else { f64::NAN };
    if x > 0.0 { result } else { special }
}

/// Natural logarithm of `1 + x`, without cancellation near zero. The result is -infinity for -1 and
/// NaN below -1.
#[inline(always)]
#[must_use]
pub fn log1p<A: Arithmetic>(x: f64) -> f64 {
    let result = log1p_regular::<A>(x).copysign(x);
    let result = if x < -1.0 { f64::NAN } else { result };
    if x == -1.0 { -INF } else { result }
}

// Roots

/// Square root.
#[inline(always)]
#[must_use]
pub fn sqrt<A: Arithmetic>(x: f64) -> f64 {
    x.sqrt()
}

/// `1 / sqrt(x)`. The result for a zero is infinity with the sign of the zero.
#[inline(always)]
#[must_use]
pub fn rsqrt<A: Arithmetic>(x: f64) -> f64 {
    1.0 / x.sqrt()
}

// Circular functions

/// The largest magnitude that [`sin`], [`cos`] and [`tan`] accept.
pub const MAX_SMALL_ANGLE: f32 = 67108864.0;

/// Returns whether [`sin`], [`cos`] and [`tan`] accept `x`. NaN and infinities count as small.
///
/// A caller tests each chunk (`plain_range`). If all angles are small it runs the vector loop, otherwise a scalar
/// loop of [`sin_any`], [`cos_any`] or [`tan_any`]. Both loops give the same bits for small angles.
#[inline(always)]
#[must_use]
pub fn angle_is_small(x: f32) -> bool {
    let magnitude = x.abs();
    !(magnitude > MAX_SMALL_ANGLE && magnitude < f32::INFINITY)
}

/// `pi / 2` as the sum of three numbers. The first two have 27 bits, so that their products with
/// the quotients of small angles are exact. If the angle is an f32 value, the differences are exact
/// too.
const HALF_PI_27_BIT_PARTS: [f64; 3] = [1.570796325802803, 9.920935739593517e-10, 5.721188726109832e-18];

/// Coefficients of `(sin(r) / r - 1) / r^2` in powers of `r^2`, for `|r| <= pi / 2`; the error of
/// `sin(r)` is 2^-52.
const SIN: [f64; 7] = [
    -0.16666666666666186,
    0.008333333333285552,
    -0.00019841269825058568,
    2.755731660073146e-06,
    -2.5051880277199714e-08,
    1.6048095251843936e-10,
    -7.373339616527262e-13,
];

/// `tan(r) / r` as a quotient of polynomials in `r^2`, for `|r| <= pi / 4`; the error is 2^-55.
const TAN_NUMERATOR: [f64; 4] = [1.0, -0.1282834779686127, 0.002805919083135288, -7.483643106285119e-06];
const TAN_DENOMINATOR: [f64; 4] = [1.0, -0.4616168113019432, 0.02334485618371343, -0.00020844816503627481];

/// Returns `x - n pi / 2`, for `|n| < 2^26`.
#[inline(always)]
fn subtract_half_pi_multiple<A: Arithmetic>(x: f64, n: f64) -> f64 {
    A::fma(
        -n,
        HALF_PI_27_BIT_PARTS[2],
        A::fma(-n, HALF_PI_27_BIT_PARTS[1], A::fma(-n, HALF_PI_27_BIT_PARTS[0], x)),
    )
}

/// Sine of `r`, for `|r| <= pi / 2`.
#[inline(always)]
fn sin_reduced<A: Arithmetic>(r: f64) -> f64 {
    let z = r * r;
    // A product with r keeps the sign of a zero.
    r * A::fma(z, polynomial::<A, _>(z, SIN), 1.0)
}

/// Tangent of `r + quadrant pi / 2`, for `|r| <= pi / 4`.
#[inline(always)]
fn tan_reduced<A: Arithmetic>(r: f64, quadrant: u64) -> f64 {
    let z = r * r;
    let p = r * polynomial::<A, _>(z, TAN_NUMERATOR);
    let q = polynomial::<A, _>(z, TAN_DENOMINATOR);
    let odd = quadrant & 1 == 1;
    let numerator = if odd { -q } else { p };
    let denominator = if odd { p } else { q };
    numerator / denominator
}

/// Sine of a small angle (see [`angle_is_small`]): `(-1)^n sin(x - n pi)`, with the argument
/// reduction of Cody and Waite.
#[inline(always)]
#[must_use]
pub fn sin<A: Arithmetic>(x: f64) -> f64 {
    let shifted = A::fma(x, FRAC_1_PI, ROUNDING_SHIFT);
    let n = shifted - ROUNDING_SHIFT;
    negate_if_odd(sin_reduced::<A>(subtract_half_pi_multiple::<A>(x, n + n)), shifted.to_bits())
}

/// Cosine of a small angle (see [`angle_is_small`]). It is computed like `sin`, from the distance
/// to the nearest zero of the cosine, which is an odd multiple of `pi / 2`.
#[inline(always)]
#[must_use]
pub fn cos<A: Arithmetic>(x: f64) -> f64 {
    let shifted = A::fma(x, FRAC_1_PI, -0.5) + ROUNDING_SHIFT;
    let n = shifted - ROUNDING_SHIFT;
    let r = subtract_half_pi_multiple::<A>(x, n + n + 1.0);
    negate_if_odd(sin_reduced::<A>(r), !shifted.to_bits())
}

/// Tangent of a small angle (see [`angle_is_small`]): `tan(r)` or `-1 / tan(r)`, where `r` is the
/// distance from the nearest multiple of `pi / 2`.
#[inline(always)]
#[must_use]
pub fn tan<A: Arithmetic>(x: f64) -> f64 {
    let shifted = A::fma(x, FRAC_2_PI, ROUNDING_SHIFT);
    let r = subtract_half_pi_multiple::<A>(x, shifted - ROUNDING_SHIFT);
    tan_reduced::<A>(r, shifted.to_bits())
}

/// Sine of any angle. This function has branches.
#[inline(always)]
#[must_use]
pub fn sin_any<A: Arithmetic>(x: f64) -> f64 {
    if angle_is_small(x as f32) {
        return sin::<A>(x);
    }
    let magnitude = sin_of_revolutions::<A>(revolutions(x.abs()));
    if x < 0.0 { -magnitude } else { magnitude }
}

/// Cosine of any angle. This function has branches.
#[inline(always)]
#[must_use]
pub fn cos_any<A: Arithmetic>(x: f64) -> f64 {
    if angle_is_small(x as f32) {
        return cos::<A>(x);
    }
    sin_of_revolutions::<A>(revolutions(x.abs()).wrapping_add(1 << 126))
}

/// Tangent of any angle. This function has branches.
#[inline(always)]
#[must_use]
pub fn tan_any<A: Arithmetic>(x: f64) -> f64 {
    if angle_is_small(x as f32) {
        return tan::<A>(x);
    }
    let revolutions = revolutions(x.abs());
    let quadrants = revolutions.wrapping_add(1 << 125) >> 126;
    let r = signed_fraction(revolutions << 2) * (FRAC_PI_2);
    let magnitude = tan_reduced::<A>(r, quadrants as u64);
    if x < 0.0 { -magnitude } else { magnitude }
}

/// Returns `x / (2 pi)` modulo 1, in units of 2^-128, for finite f32 `x > MAX_SMALL_ANGLE`.
///
/// This is the reduction of Payne and Hanek: bits of `1 / (2 pi)` whose product with `x` is a whole
/// number of revolutions are skipped. The error is below 2^24 units, and every f32 is at least 2^90
/// units away from a zero of the functions.
fn revolutions(x: f64) -> u128 {
    /// The first 256 bits of `2 / pi`.
    const TWO_OVER_PI_BITS: [u64; 4] =
        [0xa2f9_836e_4e44_1529, 0xfc27_57d1_f534_ddc0, 0xdb62_9599_3c43_9041, 0xfe51_63ab_debb_c561];
    let bits = x.to_bits();
    let significand = ((bits & FRACTION_MASK) | (1 << FRACTION_BITS)) >> 29;
    // x = significand * 2^exponent, and 2 / pi is four times 1 / (2 pi).
    let exponent = (bits >> FRACTION_BITS) as usize - 1023 - 23;
    let skipped_bits = exponent - 2;
    let word = |i: usize| u128::from(TWO_OVER_PI_BITS.get(i).copied().unwrap_or(0));
    let (first, offset) = (skipped_bits / 64, skipped_bits % 64);
    let window = (word(first) << 64) | word(first + 1);
    let window = (window << offset) | ((word(first + 2) << offset) >> 64);
    window.wrapping_mul(u128::from(significand))
}

/// Returns `x * 2^-128`, where `x` is read as a signed integer. The result is from -1/2 to 1/2.
#[allow(clippy::cast_precision_loss, reason = "the one rounding of the reduction")]
fn signed_fraction(x: u128) -> f64 {
    const TWO_MINUS_128: f64 = f64::from_bits(ONE_BITS - (128 << FRACTION_BITS));
    let numerator = x.cast_signed() as f64;
    numerator * TWO_MINUS_128
}

/// Sine of an angle in units of 2^-128 revolutions.
fn sin_of_revolutions<A: Arithmetic>(revolutions: u128) -> f64 {
    let half_revolutions = revolutions.wrapping_add(1 << 126) >> 127;
    negate_if_odd(sin_reduced::<A>(signed_fraction(revolutions << 1) * PI), half_revolutions as u64)
}

// Hyperbolic functions

/// Coefficients of `(sinh(r) / r - 1) / r^2` in powers of `r^2`, for `|r| <= ln(2) / 2`; the error
/// of `sinh(r)` is 2^-49.
const SINH_F32: [f64; 4] =
    [0.16666666666630212, 0.008333333362830129, 0.0001984119568706013, 2.7630762675402552e-06];

/// Coefficients of `(cosh(r) - 1 - r^2 / 2) / r^4` in powers of `r^2`, for `|r| <= ln(2) / 2`; the
/// error of `cosh(r)` is 2^-57.
const COSH_F32: [f64; 4] =
    [0.041666666666603375, 0.0013888888927054129, 2.48015083432453e-05, 2.762532495032102e-07];

/// Returns `(sinh(k ln(2)), cosh(k ln(2)), sinh(r), cosh(r))` with `x = k ln(2) + r`.
#[inline(always)]
fn hyperbolic_parts<A: Arithmetic>(x: f64) -> (f64, f64, f64, f64) {
    let (shifted, r) = reduce_exp::<A>(x.clamp(-100.0, 100.0));
    let up = 0.5 * power_of_two(shifted);
    let down = 0.5 * power_of_two(2.0 * BIASED_SHIFT - shifted);
    let z = r * r;
    let sinh = r * A::fma(z, polynomial::<A, _>(z, SINH_F32), 1.0);
    let cosh = A::fma(z, A::fma(z, polynomial::<A, _>(z, COSH_F32), 0.5), 1.0);
    (up - down, up + down, sinh, cosh)
}

/// Hyperbolic sine, by the addition theorem for `k ln(2) + r` with `|r| <= ln(2) / 2`.
#[inline(always)]
#[must_use]
pub fn sinh<A: Arithmetic>(x: f64) -> f64 {
    let (sinh_k, cosh_k, sinh_r, cosh_r) = hyperbolic_parts::<A>(x);
    A::fma(sinh_r, cosh_k, cosh_r * sinh_k).copysign(x)
}

/// Hyperbolic cosine, computed like `sinh`.
#[inline(always)]
#[must_use]
pub fn cosh<A: Arithmetic>(x: f64) -> f64 {
    let (sinh_k, cosh_k, sinh_r, cosh_r) = hyperbolic_parts::<A>(x);
    A::fma(cosh_r, cosh_k, sinh_r * sinh_k)
}

/// Inverse hyperbolic sine: `log1p(a + a^2 / (1 + sqrt(1 + a^2)))` of the magnitude `a`. The square
/// of an f32 value does not overflow.
#[inline(always)]
#[must_use]
pub fn asinh<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    let square = a * a;
    let argument = a + square / (1.0 + (1.0 + square).sqrt());
    log1p_regular::<A>(if a < INF { argument } else { a }).copysign(x)
}

/// Inverse hyperbolic cosine: `log1p(t + sqrt(t (x + 1)))` with `t = x - 1`. The result is NaN
/// below 1.
#[inline(always)]
#[must_use]
pub fn acosh<A: Arithmetic>(x: f64) -> f64 {
    let t = x - 1.0;
    let result = log1p_regular::<A>(t + (t * (x + 1.0)).sqrt());
    if x < 1.0 { f64::NAN } else { result }
}

/// Inverse hyperbolic tangent: `log1p(2 a / (1 - a)) / 2` of the magnitude `a`. The results are
/// infinities at -1 and 1, and NaN outside.
#[inline(always)]
#[must_use]
pub fn atanh<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    let result = (0.5 * log1p_regular::<A>(2.0 * a / (1.0 - a))).copysign(x);
    if a > 1.0 { f64::NAN } else { result }
}

// Inverse circular functions

/// Coefficients of `(atan(t) / t - 1) / t^2` in powers of `t^2`, for `|t| <= tan(pi / 8)`; the
/// error of `atan(t)` is 2^-54.
const ATAN: [f64; 10] = [
    -0.33333333333330156,
    0.1999999999908953,
    -0.14285714195285615,
    0.11111106653923283,
    -0.0909078240889762,
    0.07690068126277012,
    -0.06641118820557028,
    0.05692522932762064,
    -0.04359040115646044,
    0.02125907896380275,
];

/// Returns `atan(a / b)`, where `a` and `b` are not negative, and neither both zero nor both
/// infinite. The result is the nearest of 0, `pi / 4` and `pi / 2` plus the angle from there, with
/// one division.
#[inline(always)]
fn first_quadrant<A: Arithmetic>(a: f64, b: f64) -> f64 {
    const TAN_EIGHTH_PI: f64 = 0.41421356237309503;
    const TAN_THREE_EIGHTHS_PI: f64 = 2.414213562373095;
    let flat = a <= TAN_EIGHTH_PI * b;
    let steep = a > TAN_THREE_EIGHTHS_PI * b;
    let numerator = if steep { -b } else { a - b };
    let numerator = if flat { a } else { numerator };
    let denominator = if steep { a } else { a + b };
    let denominator = if flat { b } else { denominator };
    let start = if steep { FRAC_PI_2 } else { FRAC_PI_4 };
    let start = if flat { 0.0 } else { start };
    let t = numerator / denominator;
    let z = t * t;
    start + A::fma(t * z, polynomial::<A, _>(z, ATAN), t)
}

/// Inverse tangent.
#[inline(always)]
#[must_use]
pub fn atan<A: Arithmetic>(x: f64) -> f64 {
    first_quadrant::<A>(x.abs(), 1.0).copysign(x)
}

/// Inverse sine: the angle whose opposite side is `x` and whose adjacent side is `sqrt((1 - x) (1 +
/// x))`. The result is NaN outside of -1 to 1.
#[inline(always)]
#[must_use]
pub fn asin<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    first_quadrant::<A>(a, ((1.0 - a) * (1.0 + a)).sqrt()).copysign(x)
}

/// Inverse cosine, computed like `asin` with exchanged sides. The result is NaN outside of -1 to 1.
#[inline(always)]
#[must_use]
pub fn acos<A: Arithmetic>(x: f64) -> f64 {
    let angle = first_quadrant::<A>(((1.0 - x) * (1.0 + x)).sqrt(), x.abs());
    if x < 0.0 { PI - angle } else { angle }
}

/// The angle of the point `(x, y)`, from `-pi` to `pi`, for f32 values `y` and `x`. Signed zeros
/// and infinities are treated as in IEEE 754: the result for a zero `y` is a zero or `pi`, and for
/// two infinities an odd multiple of `pi / 4`.
#[inline(always)]
#[must_use]
pub fn atan2(y: f64, x: f64) -> f64 {
    let (a, b) = (y.abs(), x.abs());
    let both_infinite = a == INF && b == INF;
    let both_zero = a == 0.0 && b == 0.0;
    let a = if both_infinite { 1.0 } else { a };
    let b = if both_infinite || both_zero { 1.0 } else { b };
    let angle = first_quadrant::<SeparateRounding>(a, b);
    let angle = if x.is_sign_negative() { PI - angle } else { angle };
    angle.copysign(y)
}

// Powers

/// Cube root: `a w^2`, where `w` is the inverse cube root of the magnitude `a`.
#[inline(always)]
#[must_use]
pub fn cbrt<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    let w = inverse_cbrt::<A>(a);
    let root = (a * w * w).copysign(x);
    if a > 0.0 && a < INF { root } else { x }
}

/// Returns `a^(-1/3)` for positive normal `a`.
///
/// The bits of the first approximation `w` (3% off) are computed from a third of the exponent and
/// fraction bits of `a`. Two steps refine it by the first terms of `(1 - h)^(-1/3)` with `h = 1 - a
/// w^3`.
#[inline(always)]
pub(in crate::ops) fn inverse_cbrt<A: Arithmetic>(a: f64) -> f64 {
    /// The upper half of the bits that stand for `4 / 3` of the exponent bias, minus a correction
    /// that balances the errors of the approximation.
    const INVERSE_CBRT_SEED: f64 = 1430186364.0;
    /// The binomial coefficients of `(1 - h)^(-1/3)` after the first one.
    const INVERSE_CBRT_BINOMIALS: [f64; 3] = [1.0 / 3.0, 2.0 / 9.0, 14.0 / 81.0];
    let upper = f64::from_bits((a.to_bits() >> 32) | TWO_52.to_bits()) - TWO_52;
    let start = (INVERSE_CBRT_SEED - upper * (1.0 / 3.0)) + TWO_52;
    let mut w = f64::from_bits(start.to_bits() << 32);
    for _ in 0..2 {
        let h = A::fma(-(a * w), w * w, 1.0);
        w = A::fma(w * h, polynomial::<A, _>(h, INVERSE_CBRT_BINOMIALS), w);
    }
    w
}

/// Coefficients of `(log2((1 + s) / (1 - s)) / s - 2 / ln(2)) / s^2` in powers of `s^2`, for `|s|
/// <= 3 - sqrt(8)`; the error of the logarithm is 2^-59.
const LOG2: [f64; 7] = [
    0.9617966939259853,
    0.5770780163471391,
    0.4121985855781941,
    0.32059855670770754,
    0.26233338596003064,
    0.2209348975153586,
    0.2134621012997521,
];

/// Coefficients of `(2^r - 1) / r` for `|r| <= 1/2`; the error of the product with `r` is 2^-58.
const EXP2: [f64; 11] = [
    LN_2,
    0.24022650695910133,
    0.05550410866482174,
    0.009618129107593333,
    0.0013333558146379073,
    0.00015403530458078362,
    1.5252733867502282e-05,
    1.3215434817494808e-06,
    1.0178046478540588e-07,
    7.0738600842729336e-09,
    4.4573845484852803e-10,
];

/// A binary logarithm as the sum of three numbers: an integer, the greater part of the fraction,
/// and the remainder, which is about 1% of the fraction and includes the rounding errors of the
/// other two.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Log2 {
    pub exponent: f64,
    pub high: f64,
    pub low: f64,
}

/// Returns `log2(|x|)` with a relative error of 2^-58, for finite f32 `x` except zero. It is
/// computed like `log`, plus the rounding errors of the quotient and of the leading product.
#[inline(always)]
pub(in crate::ops) fn log2<A: Arithmetic>(x: f64) -> Log2 {
    /// `2 / ln(2)`, and its rounding error.
    const TWO_OVER_LN_2: f64 = 2.8853900817779268;
    const TWO_OVER_LN_2_LOW: f64 = 4.0710547481862066e-17;
    let (exponent, m) = split_exponent(x.abs());
    let difference = m - 1.0;
    let sum = m + 1.0;
    let inverse = 1.0 / sum;
    let s = difference * inverse;
    let s_low = A::fma(-s, sum, difference) * inverse;
    let square = s * s;
    let high = TWO_OVER_LN_2 * s;
    let low = A::fma(TWO_OVER_LN_2, s_low, A::fma(TWO_OVER_LN_2_LOW, s, A::fma(TWO_OVER_LN_2, s, -high)));
    let low = A::fma(s * square, polynomial::<A, _>(square, LOG2), low);
    Log2 { exponent, high, low }
}

/// Where the binary logarithm of a power has a larger magnitude, the f32 result is zero or
/// infinite.
const MAX_POW_LOG2: f64 = 200.0;

/// Returns `2^(whole + y (high + low))`. The integer next to `limited`, whose magnitude is at most
/// [`MAX_POW_LOG2`], becomes the exponent.
///
/// If the exact power is halfway between two f32 values (the square of 4097, for example), the
/// result is exact.
#[inline(always)]
fn exp2<A: Arithmetic>(limited: f64, whole: f64, y: f64, high: f64, low: f64) -> f64 {
    let shifted = limited + BIASED_SHIFT;
    // The difference is exact; each multiply-add rounds once.
    let r = A::fma(y, low, A::fma(y, high, whole - (shifted - BIASED_SHIFT)));
    let scale = power_of_two(shifted);
    let magnitude = A::fma(scale, r * polynomial::<A, _>(r, EXP2), scale);
    // A midpoint of two f32 values has at most 25 significant bits. If the other bits differ from
    // zero by at most the error of the power, in units in the last place, the exact power may have
    // 25 bits. The result is then rounded to 25 bits.
    const MAX_ERROR: u64 = 2;
    const DROPPED_BITS: u64 = (1 << 28) - 1;
    let bits = magnitude.to_bits().wrapping_add(MAX_ERROR);
    let is_near = bits & (DROPPED_BITS & !(2 * MAX_ERROR - 1)) == 0;
    if is_near { f64::from_bits(bits & !DROPPED_BITS) } else { magnitude }
}

/// Returns `x` to the power of `y`, given `log2` of `x`, and whether the power is in range. If it
/// is, and `x` is positive and finite, the result has the bits of [`pow`].
#[inline(always)]
pub(in crate::ops) fn pow_regular<A: Arithmetic>(y: f64, Log2 { exponent, high, low }: Log2) -> (f64, bool) {
    let whole = y * exponent;
    let product = A::fma(y, low, A::fma(y, high, whole));
    (exp2::<A>(product, whole, y, high, low), product.abs() <= MAX_POW_LOG2)
}

/// `x` to the power of `y` for f32 values: `2^(y log2(x))`. Special cases are as in IEEE 754:
/// `pow(1, y)` and `pow(x, 0)` are 1 even for NaN; the result for a negative finite `x` is NaN
/// unless `y` is an integer; if `y` is an odd integer, the result has the sign of `x`.
#[inline(always)]
#[must_use]
pub fn pow<A: Arithmetic>(x: f64, y: f64) -> f64 {
    pow_with_log2::<A>(x, y, log2::<A>(x))
}

/// Returns the same as [`pow`], given `log2` of `x`.
#[inline(always)]
pub(in crate::ops) fn pow_with_log2<A: Arithmetic>(
    x: f64,
    y: f64,
    Log2 { exponent, high, low }: Log2,
) -> f64 {
    /// 2^65. If the magnitude of the exponent is larger, the power of an f32 is zero, one or
    /// infinite.
    const MAX_POW_EXPONENT: f64 = 36893488147419103232.0;
    /// A finite substitute for the logarithm of infinity: its product with any exponent is beyond
    /// `MAX_POW_LOG2`.
    const LOG2_OF_INFINITY: f64 = 1e80;
    let a = x.abs();
    let is_zero_or_infinite = a == 0.0 || a == INF;
    let log2_at_end = if a == 0.0 { -LOG2_OF_INFINITY } else { LOG2_OF_INFINITY };
    let exponent = if is_zero_or_infinite { log2_at_end } else { exponent };
    let [high, low] = [high, low].map(|part| if is_zero_or_infinite { 0.0 } else { part });

    let factor = y.clamp(-MAX_POW_EXPONENT, MAX_POW_EXPONENT);
    let whole = factor * exponent;
    let product = A::fma(factor, low, A::fma(factor, high, whole));
    let limited = product.clamp(-MAX_POW_LOG2, MAX_POW_LOG2);
    let regular = product == limited;
    let whole = if regular { whole } else { limited };
    let [high, low] = [high, low].map(|part| if regular { part } else { 0.0 });
    let magnitude = exp2::<A>(limited, whole, factor, high, low);

    // Every f32 from 2^24 on is an even integer.
    let y_magnitude = y.abs();
    let y_magnitude = if y_magnitude > 33554432.0 { 33554432.0 } else { y_magnitude };
    let shifted = y_magnitude + ROUNDING_SHIFT;
    let whole = shifted - ROUNDING_SHIFT == y_magnitude;
    let odd = if whole { shifted.to_bits() & 1 } else { 0 };
    let result = negate_if_odd(magnitude, odd & (x.to_bits() >> 63));
    let result = if x < 0.0 && x > -INF && !whole { f64::NAN } else { result };
    let result = if x.is_nan() { x } else { result };
    if x == 1.0 || y == 0.0 { 1.0 } else { result }
}

// Error functions

/// `erf(x) / x` as a quotient of polynomials in `x^2`, for `|x| <= 4`; the error is 2^-47. It
/// interpolates at Chebyshev nodes that are stretched so that the first one is zero.
const ERF_NUMERATOR: [f64; 11] = [
    FRAC_2_SQRT_PI,
    0.20376482490827882,
    0.06183162234799493,
    0.005726109330448047,
    0.0006954239865123005,
    3.879768327569093e-05,
    2.4082928028796973e-06,
    7.567821014738412e-08,
    2.2260214714682426e-09,
    1.6081666291899527e-11,
    1.7448385620129447e-15,
];
const ERF_DENOMINATOR: [f64; 11] = [
    1.0,
    0.51391520762738,
    0.12610191777644408,
    0.01952660791376871,
    0.0021214277125511808,
    0.00016963065581872313,
    1.0141206585138734e-05,
    4.474418140915258e-07,
    1.3751174135492104e-08,
    2.480462477928905e-10,
    4.743599490831073e-13,
];

/// Coefficients of `erfc(x) exp(x^2)` in powers of `(x - 4) / (x + 4)`, for `0 <= x <= 10.2`; the
/// error is 2^-48.
const ERFC: [f64; 18] = [
    0.1369994576250617,
    -0.2590680487601678,
    0.21871967891814384,
    -0.16425781669774944,
    0.10896317740678989,
    -0.06310781562075957,
    0.03129905633133518,
    -0.012843946470847373,
    0.004060265641755709,
    -0.0007991211831142179,
    -2.1771051258713574e-05,
    7.894476405936165e-05,
    -2.2553467342705922e-05,
    -1.778943791098404e-06,
    3.0615017442255227e-06,
    -5.173793181752961e-07,
    -5.516099831801575e-07,
    -7.841206338034629e-08,
];

/// Error function. From `|x| = 4` on, the nearest f32 is 1.
#[inline(always)]
#[must_use]
pub fn erf<A: Arithmetic>(x: f64) -> f64 {
    let x = x.clamp(-4.0, 4.0);
    let z = x * x;
    x * (polynomial::<A, _>(z, ERF_NUMERATOR) / polynomial::<A, _>(z, ERF_DENOMINATOR))
}

/// `1 - erf(x)` without cancellation: the product of `exp(-x^2)` (the square of an f32 is exact)
/// and a smooth factor, subtracted from 2 for negative `x`. The result rounds to zero above 10.1.
#[inline(always)]
#[must_use]
pub fn erfc<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 10.2 { 10.2 } else { a };
    let (scale, q) = exp_parts::<A>(-(a * a));
    let factor = polynomial::<A, _>((a - 4.0) / (a + 4.0), ERFC);
    let tail = A::fma(scale, q, scale) * factor;
    if x < 0.0 { 2.0 - tail } else { tail }
}

/// Inverse of `erf` with some 6 correct digits, by the polynomials in `-log(1 - x^2)` of M. Giles,
/// "Approximating the erfinv function". Other backends use them too, so random numbers are the
/// same. The results are infinities at -1 and 1, and NaN outside.
#[inline(always)]
#[must_use]
pub fn erf_inv<A: Arithmetic>(x: f64) -> f64 {
    const CENTRAL_COEFFICIENTS: [f64; 9] = [
        2.81022636e-08,
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ];
    const TAIL_COEFFICIENTS: [f64; 9] = [
        -0.000200214257,
        0.000100950558,
        0.00134934322,
        -0.00367342844,
        0.00573950773,
        -0.0076224613,
        0.00943887047,
        1.00167406,
        2.83297682,
    ];
    let w = -log_regular::<A>((1.0 - x) * (1.0 + x));
    let central = w < 5.0;
    let t = if central { w - 2.5 } else { w.sqrt() - 3.0 };
    let mut sum = if central { CENTRAL_COEFFICIENTS[0] } else { TAIL_COEFFICIENTS[0] };
    for i in 1..9 {
        sum = sum * t + if central { CENTRAL_COEFFICIENTS[i] } else { TAIL_COEFFICIENTS[i] };
    }
    let result = if x == 0.0 { x } else { sum * x };
    let result = if x.abs() == 1.0 { x * INF } else { result };
    if x.abs() > 1.0 { f64::NAN } else { result }
}
