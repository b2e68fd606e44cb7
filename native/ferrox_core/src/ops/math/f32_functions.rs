//! Unary functions, `pow` and `atan2` for the float types of 32 bits and fewer.
//!
//! The caller widens each element to f64, calls one of these functions and rounds the result
//! once to the element's type. Results (but those of `erf_inv`, which has a formula of Nx's to
//! follow) are within 2^-47 of the exact value, relatively, near
//! zeros of the function and for subnormal arguments too, so that the rounding gives the correctly
//! rounded value except about once in some million inputs (`examples/ulp.rs` counts). Past the
//! point where f32 overflows or keeps its last value, only the rounded result is right. An
//! argument must be an f32 value, and not merely of that range: `pow` needs its 24 bits, `erfc`
//! an exact square. Exceptions, for the loops of complex numbers, are `exp_wide`, `log_regular`,
//! and `sin` and `cos` of small angles, which take any f64; of these, zeros of the latter two have
//! the precision of the angle.
//!
//! Everything here is plain arithmetic (`+ - * /`, square root, bit operations, selects) and
//! multiply-add with one rounding, so a loop over one function vectorizes under whatever
//! instruction set its caller is compiled for, and has the same bits under all of them. Hence no
//! call into libm, no `round` (a libm call without SSE4.1) and no branches; the exceptions are the
//! `_any` forms of `sin`, `cos` and `tan`, which `f32_loops` uses where [`angle_is_small`] doesn't
//! hold. The sign and payload of a NaN are unspecified.
//!
//! Multiply-add takes a third off the work, and is [`Fused`] for instruction sets that have it. For
//! others the caller computes with [`Separate`] roundings, and where the result is not [`settled`]
//! by that, which is one time in some hundred thousand, again with [`Software`]. `atan2` does
//! without.
//!
//! f64 elements don't belong here: theirs are in `f64_functions`, or the C library's.
//!
//! Coefficients are minimax fits made for this file: Remez exchange in 60-digit arithmetic, on
//! the interval and for the relative error that the constant's comment states.

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

/// Adding this rounds to an integer, ties to even, which the low bits of the sum then hold in
/// two's complement (1.5 * 2^52, good for integers of up to 51 bits).
pub(in crate::ops) const SHIFT: f64 = 6755399441055744.0;

/// An integer below this, written into its fraction bits, is added to it.
pub(in crate::ops) const TWO_52: f64 = 4503599627370496.0;

const FRACTION_BITS: u32 = 52;
const FRACTION_MASK: u64 = (1 << FRACTION_BITS) - 1;
const ONE_BITS: u64 = 1.0_f64.to_bits();

/// How a product and a sum are rounded once.
pub trait Arithmetic: 'static {
    /// `a * b + c`, rounded once.
    fn fma(a: f64, b: f64, c: f64) -> f64;
}

/// By an instruction, where the loop is compiled for a set that has it, and else by a slow call.
#[derive(Debug)]
pub struct Fused;

impl Arithmetic for Fused {
    #[inline(always)]
    fn fma(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}

/// Rounded twice, which gives results within 2^-44.4 of the others'.
#[derive(Debug)]
pub struct Separate;

impl Arithmetic for Separate {
    #[inline(always)]
    fn fma(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
}

/// By some 40 operations; exact unless the product is below 2^-960 or above 2^960.
#[derive(Debug)]
pub struct Software;

impl Arithmetic for Software {
    /// As Boldo and Melquiond show ("Emulation of a FMA and correctly rounded sums", 2008): the
    /// exact product and sum as three parts, of which the lesser two are added with rounding to
    /// odd, so that the last sum rounds as if it were the only one.
    #[inline(always)]
    fn fma(a: f64, b: f64, c: f64) -> f64 {
        let product = a * b;
        let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
        let rest = (a_high * b_high - product) + a_high * b_low + a_low * b_high + a_low * b_low;
        let (upper, lower) = two_sum(c, rest);
        let (high, middle) = two_sum(product, upper);
        let (sum, error) = two_sum(middle, lower);
        // Towards the error, if the last bit is even.
        let away = (error > 0.0) == (sum > 0.0);
        let odd = if away { sum.to_bits().wrapping_add(1) } else { sum.to_bits().wrapping_sub(1) };
        let exact = error == 0.0 || sum.to_bits() & 1 == 1;
        let result = high + if exact { sum } else { f64::from_bits(odd) };
        // The sign of a zero, infinities and NaN.
        let plain = product + c;
        if plain.abs() < INF && result != 0.0 { result } else { plain }
    }
}

/// Whether everything within 2^-44 of `y` rounds to the same f32, bf16, f16 and f8 as `y`: `y` is
/// far from all of 25 bits, among which is what lies halfway between two of these, or at one of
/// three bits, which doesn't unless it is small.
#[inline(always)]
#[must_use]
pub fn settled(y: f64) -> bool {
    const NEAR: f64 = f64::from_bits(ONE_BITS - (44 << FRACTION_BITS));
    const SMALL: f64 = f64::from_bits(ONE_BITS - (14 << FRACTION_BITS));
    // Rounds to 25 bits, as Veltkamp splits.
    let multiple = y * 268435457.0;
    let short = multiple - (multiple - y);
    let a = y.abs();
    let far = (y - short).abs() > NEAR * a;
    let simple = short.to_bits() & (FRACTION_MASK >> 2) == 0 && a >= SMALL;
    far || simple || a == 0.0 || a == INF || a.is_nan()
}

/// 26 bits of `x`, and the rest.
#[inline(always)]
fn halves(x: f64) -> (f64, f64) {
    let multiple = x * 134217729.0;
    let high = multiple - (multiple - x);
    (high, x - high)
}

/// The sum of `a` and `b`, and what it lacks.
#[inline(always)]
pub(in crate::ops) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_there = sum - a;
    (sum, (a - (sum - b_there)) + (b - b_there))
}

/// `c[0] + c[1] x + c[2] x^2 + ...`
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

/// `ln(2)` in two parts; the first has 38 bits, so its product with an exponent is exact.
const LN_2_HIGH: f64 = 0.6931471805582987;
const LN_2_LOW: f64 = 1.6465949582897082e-12;

/// `(expm1(r) - r) / r^2` for `|r| <= ln(2) / 2`; error 2^-49 of `expm1(r)`.
const EXPM1: [f64; 9] = [
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

/// [`SHIFT`] for an exponent of two, with the bias that it has in an f64.
pub(in crate::ops) const BIASED_SHIFT: f64 = SHIFT + 1023.0;

/// `2^k`, where `shifted` is `k + BIASED_SHIFT` and `-1022 <= k <= 1023`.
#[inline(always)]
pub(in crate::ops) fn power_of_two(shifted: f64) -> f64 {
    f64::from_bits(shifted.to_bits() << FRACTION_BITS)
}

/// `expm1(r)` for `|r| <= ln(2) / 2`.
#[inline(always)]
fn expm1_reduced<A: Arithmetic>(r: f64) -> f64 {
    A::fma(r * r, polynomial::<A, _>(r, EXPM1), r)
}

/// `(s, r)` with `exp(x) = 2^k exp(r)`, `s` being `k + BIASED_SHIFT` and `|r| <= ln(2) / 2`, for
/// `|x| <= 700`.
#[inline(always)]
fn reduce_exp<A: Arithmetic>(x: f64) -> (f64, f64) {
    let shifted = A::fma(x, LOG2_E, BIASED_SHIFT);
    let k = shifted - BIASED_SHIFT;
    (shifted, A::fma(-k, LN_2_LOW, A::fma(-k, LN_2_HIGH, x)))
}

/// `(s, q)` with `exp(x) = s + s q` and `q` small; `|x| <= 700`.
#[inline(always)]
fn exp_parts<A: Arithmetic>(x: f64) -> (f64, f64) {
    let (shifted, r) = reduce_exp::<A>(x);
    (power_of_two(shifted), expm1_reduced::<A>(r))
}

/// `e^x`: `2^k (1 + expm1(r))` with `x = k ln(2) + r`. Infinity above the range of f32, zero
/// below that of its subnormals.
#[inline(always)]
#[must_use]
pub fn exp<A: Arithmetic>(x: f64) -> f64 {
    let (scale, q) = exp_parts::<A>(x.clamp(-110.0, 90.0));
    A::fma(scale, q, scale)
}

/// `e^x` from -700 to 700, and beyond as there.
#[inline(always)]
#[must_use]
pub fn exp_wide<A: Arithmetic>(x: f64) -> f64 {
    let (scale, q) = exp_parts::<A>(x.clamp(-700.0, 700.0));
    A::fma(scale, q, scale)
}

/// `e^x - 1` without cancellation near zero: as `exp`, with `2^k - 1` formed first.
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

/// [`EXPM1`] for half of `r`, and halved.
const HALF_EXPM1: [f64; 9] = {
    let (mut c, mut factor, mut i) = (EXPM1, 1.0, 0);
    while i < c.len() {
        factor *= 2.0;
        c[i] *= factor;
        i += 1;
    }
    c
};

/// Up to this magnitude [`tanh_regular`] is all there is to it.
pub(in crate::ops) const TANH_REGULAR: f32 = 30.0;

/// Hyperbolic tangent up to `TANH_REGULAR`: `e / (e + 1)` with `2 e = expm1(2 x)`. By powers of
/// two, which round nothing, a multiplication is saved.
#[inline(always)]
pub(in crate::ops) fn tanh_regular<A: Arithmetic>(x: f64) -> f64 {
    let shifted = A::fma(x, 2.0 * LOG2_E, BIASED_SHIFT);
    let k = shifted - BIASED_SHIFT;
    let r = A::fma(-k, 0.5 * LN_2_LOW, A::fma(-k, 0.5 * LN_2_HIGH, x));
    let q = A::fma(r * r, polynomial::<A, _>(r, HALF_EXPM1), r);
    let scale = power_of_two(shifted);
    let e = A::fma(scale, q, A::fma(scale, 0.5, -0.5));
    (e / (e + 1.0)).copysign(x)
}

/// Hyperbolic tangent.
#[inline(always)]
#[must_use]
pub fn tanh<A: Arithmetic>(x: f64) -> f64 {
    let limit = f64::from(TANH_REGULAR);
    tanh_regular::<A>(x.clamp(-limit, limit))
}

// Logarithms

/// `(log((1 + s) / (1 - s)) / s - 2) / s^2` over `s^2`, for `|s| <= 3 - sqrt(8)`; error 2^-52 of
/// the logarithm.
const LOG: [f64; 6] = [
    0.6666666666658734,
    0.4000000005222439,
    0.2857141713560367,
    0.22223371422951704,
    0.18123646559837464,
    0.16819819595851623,
];

/// `(k, m)` with `x = 2^k m` and `m` from `sqrt(1/2)` to `sqrt(2)`, for positive normal `x`.
#[inline(always)]
pub(in crate::ops) fn split_exponent(x: f64) -> (f64, f64) {
    const SQRT_HALF_BITS: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    // k is counted from -1024 to keep the shift logical: AVX2 has no arithmetic one.
    let t = x.to_bits().wrapping_sub(SQRT_HALF_BITS).wrapping_add(1024 << FRACTION_BITS);
    // 2^52 + k + 1024: an integer written into the fraction of 2^52.
    let k = f64::from_bits((t >> FRACTION_BITS) | TWO_52.to_bits()) - (TWO_52 + 1024.0);
    (k, f64::from_bits((t & FRACTION_MASK).wrapping_add(SQRT_HALF_BITS)))
}

/// `k ln(2) + log(1 + f)` for `1 + f` from `sqrt(1/2)` to `sqrt(2)`, by
/// `log(1 + f) = 2 atanh(f / (2 + f))`.
#[inline(always)]
fn log_sum<A: Arithmetic>(k: f64, f: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    A::fma(k, LN_2, s * A::fma(z, polynomial::<A, _>(z, LOG), 2.0))
}

/// Natural logarithm of `1 + x` for any f64 `x` of at least 2^-1000 or zero in magnitude,
/// without the special cases of [`log1p`]; takes infinity to infinity.
#[inline(always)]
fn log1p_regular<A: Arithmetic>(x: f64) -> f64 {
    let (k, m) = split_exponent(1.0 + x);
    // Where 1 + x needs no scaling, x itself is exact and the rounded 1 + x isn't.
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

/// Natural logarithm; -infinity at zeros, NaN below.
#[inline(always)]
#[must_use]
pub fn log<A: Arithmetic>(x: f64) -> f64 {
    let result = log_regular::<A>(x);
    // A comparison with infinity would become a test of bit patterns that vectorizes worse.
    let result = if x > F32_MAX { INF } else { result };
    let special = if x == 0.0 { -INF } else { f64::NAN };
    if x > 0.0 { result } else { special }
}

/// Natural logarithm of `1 + x`, without cancellation near zero; -infinity at -1, NaN below.
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

/// `1 / sqrt(x)`; infinity with the sign of `x` at zeros.
#[inline(always)]
#[must_use]
pub fn rsqrt<A: Arithmetic>(x: f64) -> f64 {
    1.0 / x.sqrt()
}

// Circular functions

/// Largest magnitude that [`sin`], [`cos`] and [`tan`] accept.
pub const SMALL_ANGLE: f32 = 67108864.0;

/// Whether [`sin`], [`cos`] and [`tan`] accept `x`. A caller asks this of a chunk, then runs
/// the vector loop, or else a scalar loop of [`sin_any`], [`cos_any`] or [`tan_any`]; these have
/// the same bits where both apply. NaN and infinities count as small.
#[inline(always)]
#[must_use]
pub fn angle_is_small(x: f32) -> bool {
    let magnitude = x.abs();
    !(magnitude > SMALL_ANGLE && magnitude < f32::INFINITY)
}

/// `pi / 2` in three parts. The first two have 27 bits, so that their products with the quotients
/// of small angles are exact, and what is left of an f32 after each subtraction is too.
const HALF_PI: [f64; 3] = [1.570796325802803, 9.920935739593517e-10, 5.721188726109832e-18];

/// `(sin(r) / r - 1) / r^2` over `r^2`, for `|r| <= pi / 2`; error 2^-52 of `sin(r)`.
const SIN: [f64; 7] = [
    -0.16666666666666186,
    0.008333333333285552,
    -0.00019841269825058568,
    2.755731660073146e-06,
    -2.5051880277199714e-08,
    1.6048095251843936e-10,
    -7.373339616527262e-13,
];

/// `tan(r) / r` over `r^2` as a quotient of polynomials, for `|r| <= pi / 4`; error 2^-55.
const TAN_NUMERATOR: [f64; 4] = [1.0, -0.1282834779686127, 0.002805919083135288, -7.483643106285119e-06];
const TAN_DENOMINATOR: [f64; 4] = [1.0, -0.4616168113019432, 0.02334485618371343, -0.00020844816503627481];

/// `x - n pi / 2`, for `|n| < 2^26`.
#[inline(always)]
fn subtract_quarter_turns<A: Arithmetic>(x: f64, n: f64) -> f64 {
    A::fma(-n, HALF_PI[2], A::fma(-n, HALF_PI[1], A::fma(-n, HALF_PI[0], x)))
}

/// Sine of `|r| <= pi / 2`.
#[inline(always)]
fn sin_reduced<A: Arithmetic>(r: f64) -> f64 {
    let z = r * r;
    // Which keeps the sign of a zero.
    r * A::fma(z, polynomial::<A, _>(z, SIN), 1.0)
}

/// Tangent of `r` plus `quarter_turns` quarter turns, for `|r| <= pi / 4`.
#[inline(always)]
fn tan_reduced<A: Arithmetic>(r: f64, quarter_turns: u64) -> f64 {
    let z = r * r;
    let p = r * polynomial::<A, _>(z, TAN_NUMERATOR);
    let q = polynomial::<A, _>(z, TAN_DENOMINATOR);
    let odd = quarter_turns & 1 == 1;
    let numerator = if odd { -q } else { p };
    let denominator = if odd { p } else { q };
    numerator / denominator
}

/// Sine of a small angle (see [`angle_is_small`]): `(-1)^n sin(x - n pi)`, reduced as Cody and
/// Waite do.
#[inline(always)]
#[must_use]
pub fn sin<A: Arithmetic>(x: f64) -> f64 {
    let shifted = A::fma(x, FRAC_1_PI, SHIFT);
    let n = shifted - SHIFT;
    negate_if_odd(sin_reduced::<A>(subtract_quarter_turns::<A>(x, n + n)), shifted.to_bits())
}

/// Cosine of a small angle (see [`angle_is_small`]): as `sin`, from the nearest zero of the
/// cosine, an odd number of quarter turns away.
#[inline(always)]
#[must_use]
pub fn cos<A: Arithmetic>(x: f64) -> f64 {
    let shifted = A::fma(x, FRAC_1_PI, -0.5) + SHIFT;
    let n = shifted - SHIFT;
    let r = subtract_quarter_turns::<A>(x, n + n + 1.0);
    negate_if_odd(sin_reduced::<A>(r), !shifted.to_bits())
}

/// Tangent of a small angle (see [`angle_is_small`]): `tan(r)` or `-1 / tan(r)`, `r` the distance
/// from the nearest multiple of `pi / 2`.
#[inline(always)]
#[must_use]
pub fn tan<A: Arithmetic>(x: f64) -> f64 {
    let shifted = A::fma(x, FRAC_2_PI, SHIFT);
    let r = subtract_quarter_turns::<A>(x, shifted - SHIFT);
    tan_reduced::<A>(r, shifted.to_bits())
}

/// Sine of any angle; branches.
#[inline(always)]
#[must_use]
pub fn sin_any<A: Arithmetic>(x: f64) -> f64 {
    if angle_is_small(x as f32) {
        return sin::<A>(x);
    }
    let magnitude = sin_of_turns::<A>(turns(x.abs()));
    if x < 0.0 { -magnitude } else { magnitude }
}

/// Cosine of any angle; branches.
#[inline(always)]
#[must_use]
pub fn cos_any<A: Arithmetic>(x: f64) -> f64 {
    if angle_is_small(x as f32) {
        return cos::<A>(x);
    }
    sin_of_turns::<A>(turns(x.abs()).wrapping_add(1 << 126))
}

/// Tangent of any angle; branches.
#[inline(always)]
#[must_use]
pub fn tan_any<A: Arithmetic>(x: f64) -> f64 {
    if angle_is_small(x as f32) {
        return tan::<A>(x);
    }
    let turns = turns(x.abs());
    let quarters = turns.wrapping_add(1 << 125) >> 126;
    let r = fraction(turns << 2) * (FRAC_PI_2);
    let magnitude = tan_reduced::<A>(r, quarters as u64);
    if x < 0.0 { -magnitude } else { magnitude }
}

/// `x / (2 pi)` modulo 1, in units of 2^-128, for finite f32 `x > SMALL_ANGLE`. As Payne and Hanek
/// do: only those bits of `1 / (2 pi)` are multiplied that don't make whole turns. The error is
/// below 2^24 units, and no f32 is nearer than 2^90 units to a zero.
fn turns(x: f64) -> u128 {
    /// The first 256 bits of `2 / pi`.
    const TWO_OVER_PI: [u64; 4] =
        [0xa2f9_836e_4e44_1529, 0xfc27_57d1_f534_ddc0, 0xdb62_9599_3c43_9041, 0xfe51_63ab_debb_c561];
    let bits = x.to_bits();
    let significand = ((bits & FRACTION_MASK) | (1 << FRACTION_BITS)) >> 29;
    // x = significand * 2^exponent, and 2 / pi is four times 1 / (2 pi).
    let exponent = (bits >> FRACTION_BITS) as usize - 1023 - 23;
    let skipped = exponent - 2;
    let word = |i: usize| u128::from(TWO_OVER_PI.get(i).copied().unwrap_or(0));
    let (first, offset) = (skipped / 64, skipped % 64);
    let window = (word(first) << 64) | word(first + 1);
    let window = (window << offset) | ((word(first + 2) << offset) >> 64);
    window.wrapping_mul(u128::from(significand))
}

/// `x * 2^-128`, `x` read as a signed integer: from -1/2 to 1/2.
#[allow(clippy::cast_precision_loss, reason = "the one rounding of the reduction")]
fn fraction(x: u128) -> f64 {
    const TWO_MINUS_128: f64 = f64::from_bits(ONE_BITS - (128 << FRACTION_BITS));
    let numerator = x.cast_signed() as f64;
    numerator * TWO_MINUS_128
}

/// Sine of an angle in units of 2^-128 turns.
fn sin_of_turns<A: Arithmetic>(turns: u128) -> f64 {
    let half_turns = turns.wrapping_add(1 << 126) >> 127;
    negate_if_odd(sin_reduced::<A>(fraction(turns << 1) * PI), half_turns as u64)
}

// Hyperbolic functions

/// `(sinh(r) / r - 1) / r^2` over `r^2`, for `|r| <= ln(2) / 2`; error 2^-49 of `sinh(r)`.
const SINH: [f64; 4] =
    [0.16666666666630212, 0.008333333362830129, 0.0001984119568706013, 2.7630762675402552e-06];

/// `(cosh(r) - 1 - r^2 / 2) / r^4` over `r^2`, for `|r| <= ln(2) / 2`; error 2^-57 of `cosh(r)`.
const COSH: [f64; 4] =
    [0.041666666666603375, 0.0013888888927054129, 2.48015083432453e-05, 2.762532495032102e-07];

/// `(sinh(k ln(2)), cosh(k ln(2)), sinh(r), cosh(r))` with `x = k ln(2) + r`.
#[inline(always)]
fn hyperbolic_parts<A: Arithmetic>(x: f64) -> (f64, f64, f64, f64) {
    let (shifted, r) = reduce_exp::<A>(x.clamp(-100.0, 100.0));
    let up = 0.5 * power_of_two(shifted);
    let down = 0.5 * power_of_two(2.0 * BIASED_SHIFT - shifted);
    let z = r * r;
    let sinh = r * A::fma(z, polynomial::<A, _>(z, SINH), 1.0);
    let cosh = A::fma(z, A::fma(z, polynomial::<A, _>(z, COSH), 0.5), 1.0);
    (up - down, up + down, sinh, cosh)
}

/// Hyperbolic sine, by the addition theorem from `k ln(2)` and `|r| <= ln(2) / 2`.
#[inline(always)]
#[must_use]
pub fn sinh<A: Arithmetic>(x: f64) -> f64 {
    let (sinh_k, cosh_k, sinh_r, cosh_r) = hyperbolic_parts::<A>(x);
    A::fma(sinh_r, cosh_k, cosh_r * sinh_k).copysign(x)
}

/// Hyperbolic cosine, as `sinh`.
#[inline(always)]
#[must_use]
pub fn cosh<A: Arithmetic>(x: f64) -> f64 {
    let (sinh_k, cosh_k, sinh_r, cosh_r) = hyperbolic_parts::<A>(x);
    A::fma(cosh_r, cosh_k, sinh_r * sinh_k)
}

/// Inverse hyperbolic sine: `log1p(a + a^2 / (1 + sqrt(1 + a^2)))` of the magnitude `a`; the
/// squares of f32 values don't overflow.
#[inline(always)]
#[must_use]
pub fn asinh<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    let square = a * a;
    let argument = a + square / (1.0 + (1.0 + square).sqrt());
    log1p_regular::<A>(if a < INF { argument } else { a }).copysign(x)
}

/// Inverse hyperbolic cosine: `log1p(t + sqrt(t (x + 1)))` with `t = x - 1`; NaN below 1.
#[inline(always)]
#[must_use]
pub fn acosh<A: Arithmetic>(x: f64) -> f64 {
    let t = x - 1.0;
    let result = log1p_regular::<A>(t + (t * (x + 1.0)).sqrt());
    if x < 1.0 { f64::NAN } else { result }
}

/// Inverse hyperbolic tangent: `log1p(2 a / (1 - a)) / 2` of the magnitude `a`; infinities at -1
/// and 1, NaN beyond.
#[inline(always)]
#[must_use]
pub fn atanh<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    let result = (0.5 * log1p_regular::<A>(2.0 * a / (1.0 - a))).copysign(x);
    if a > 1.0 { f64::NAN } else { result }
}

// Inverse circular functions

/// `(atan(t) / t - 1) / t^2` over `t^2`, for `|t| <= tan(pi / 8)`; error 2^-54 of `atan(t)`.
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

/// `atan(a / b)` for `a` and `b` not negative and neither both zero nor both infinite: the angle
/// to the nearest of 0, `pi / 4` and `pi / 2`, by one division.
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

/// Inverse sine: the angle with opposite side `x` and adjacent side `sqrt((1 - x) (1 + x))`; NaN
/// beyond -1 and 1.
#[inline(always)]
#[must_use]
pub fn asin<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    first_quadrant::<A>(a, ((1.0 - a) * (1.0 + a)).sqrt()).copysign(x)
}

/// Inverse cosine, as `asin` with the sides exchanged; NaN beyond -1 and 1.
#[inline(always)]
#[must_use]
pub fn acos<A: Arithmetic>(x: f64) -> f64 {
    let angle = first_quadrant::<A>(((1.0 - x) * (1.0 + x)).sqrt(), x.abs());
    if x < 0.0 { PI - angle } else { angle }
}

/// Angle of the point `(x, y)`, from `-pi` to `pi`, for f32 values of `y` and `x`. Signed zeros
/// and infinities as IEEE 754 says: a zero `y` gives a zero or `pi`, two infinities an odd
/// multiple of `pi / 4`.
#[inline(always)]
#[must_use]
pub fn atan2(y: f64, x: f64) -> f64 {
    let (a, b) = (y.abs(), x.abs());
    let both_infinite = a == INF && b == INF;
    let both_zero = a == 0.0 && b == 0.0;
    let a = if both_infinite { 1.0 } else { a };
    let b = if both_infinite || both_zero { 1.0 } else { b };
    let angle = first_quadrant::<Separate>(a, b);
    let angle = if x.is_sign_negative() { PI - angle } else { angle };
    angle.copysign(y)
}

// Powers

/// Cube root: `a w^2`, where `w`, the inverse cube root of the magnitude `a`, starts from a third
/// of its exponent and fraction bits (3% off) and is refined twice by the first terms of
/// `(1 - h)^(-1/3)` with `h = 1 - a w^3`.
#[inline(always)]
#[must_use]
pub fn cbrt<A: Arithmetic>(x: f64) -> f64 {
    /// `4 / 3` of the exponent bias, in the upper half of the bits, less what balances the error.
    const START: f64 = 1430186364.0;
    /// Binomial coefficients of `(1 - h)^(-1/3)`, after the first.
    const REFINE: [f64; 3] = [1.0 / 3.0, 2.0 / 9.0, 14.0 / 81.0];
    let a = x.abs();
    let upper = f64::from_bits((a.to_bits() >> 32) | TWO_52.to_bits()) - TWO_52;
    let start = (START - upper * (1.0 / 3.0)) + TWO_52;
    let mut w = f64::from_bits(start.to_bits() << 32);
    for _ in 0..2 {
        let h = A::fma(-(a * w), w * w, 1.0);
        w = A::fma(w * h, polynomial::<A, _>(h, REFINE), w);
    }
    let root = (a * w * w).copysign(x);
    if a > 0.0 && a < INF { root } else { x }
}

/// `(log2((1 + s) / (1 - s)) / s - 2 / ln(2)) / s^2` over `s^2`, for `|s| <= 3 - sqrt(8)`; error
/// 2^-59 of the logarithm.
const LOG2: [f64; 7] = [
    0.9617966939259853,
    0.5770780163471391,
    0.4121985855781941,
    0.32059855670770754,
    0.26233338596003064,
    0.2209348975153586,
    0.2134621012997521,
];

/// `(2^r - 1) / r` for `|r| <= 1/2`; error of the product with `r` 2^-58.
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

/// A binary logarithm as the sum of three: an integer, most of the rest, and 1% of it with what
/// rounding took from the other two.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Log2 {
    pub exponent: f64,
    pub high: f64,
    pub low: f64,
}

/// `log2(|x|)` to 2^-58 of it, for finite f32 `x` but zero: as `log`, with what the quotient and
/// the leading product lack.
#[inline(always)]
pub(in crate::ops) fn log2<A: Arithmetic>(x: f64) -> Log2 {
    /// `2 / ln(2)`, and what it lacks.
    const SCALE: f64 = 2.8853900817779268;
    const SCALE_LOW: f64 = 4.0710547481862066e-17;
    let (exponent, m) = split_exponent(x.abs());
    let difference = m - 1.0;
    let sum = m + 1.0;
    let inverse = 1.0 / sum;
    let s = difference * inverse;
    let s_low = A::fma(-s, sum, difference) * inverse;
    let square = s * s;
    let high = SCALE * s;
    let low = A::fma(SCALE, s_low, A::fma(SCALE_LOW, s, A::fma(SCALE, s, -high)));
    let low = A::fma(s * square, polynomial::<A, _>(square, LOG2), low);
    Log2 { exponent, high, low }
}

/// Past this exponent of 2 the result is zero or infinite in f32.
const POW_LIMIT: f64 = 200.0;

/// `2^(whole + y (high + low))`, where `limited`, which rounds the exponent, is within
/// [`POW_LIMIT`].
///
/// A power that lies halfway between two f32 values (4097 squared, say) gives exactly that.
#[inline(always)]
fn exp2<A: Arithmetic>(limited: f64, whole: f64, y: f64, high: f64, low: f64) -> f64 {
    let shifted = limited + BIASED_SHIFT;
    // Exact, or rounded once.
    let r = A::fma(y, low, A::fma(y, high, whole - (shifted - BIASED_SHIFT)));
    let scale = power_of_two(shifted);
    let magnitude = A::fma(scale, r * polynomial::<A, _>(r, EXP2), scale);
    // Of 25 bits, which hold what is halfway, the next ones are all the same if the error of the
    // power (below `NEAR`) could be what separates the two.
    const NEAR: u64 = 2;
    const REST: u64 = (1 << 28) - 1;
    let bits = magnitude.to_bits().wrapping_add(NEAR);
    let is_near = bits & (REST & !(2 * NEAR - 1)) == 0;
    if is_near { f64::from_bits(bits & !REST) } else { magnitude }
}

/// `x` to the power of `y`, given `log2` of `x`, and whether that is all there is to it: if `x`
/// is positive and finite, it has the bits of [`pow`].
#[inline(always)]
pub(in crate::ops) fn pow_regular<A: Arithmetic>(y: f64, Log2 { exponent, high, low }: Log2) -> (f64, bool) {
    let whole = y * exponent;
    let product = A::fma(y, low, A::fma(y, high, whole));
    (exp2::<A>(product, whole, y, high, low), product.abs() <= POW_LIMIT)
}

/// `x` to the power of `y`, for f32 values of both: `2^(y log2(x))`. Special cases as IEEE 754
/// says: `pow(1, y)` and `pow(x, 0)` are 1 even for NaN; a negative finite `x` gives NaN unless
/// `y` is an integer, and the sign of `x` is kept where `y` is odd.
#[inline(always)]
#[must_use]
pub fn pow<A: Arithmetic>(x: f64, y: f64) -> f64 {
    pow_by::<A>(x, y, log2::<A>(x))
}

/// The same, given `log2` of `x`.
#[inline(always)]
pub(in crate::ops) fn pow_by<A: Arithmetic>(x: f64, y: f64, Log2 { exponent, high, low }: Log2) -> f64 {
    /// Past this exponent (2^65) the power of any f32 but 1 is one of these.
    const LARGE: f64 = 36893488147419103232.0;
    /// Stands for the logarithm of infinity: its product with any exponent passes `POW_LIMIT`.
    const LARGE_LOG2: f64 = 1e80;
    let a = x.abs();
    let endless = a == 0.0 || a == INF;
    let at_end = if a == 0.0 { -LARGE_LOG2 } else { LARGE_LOG2 };
    let exponent = if endless { at_end } else { exponent };
    let [high, low] = [high, low].map(|part| if endless { 0.0 } else { part });

    let factor = y.clamp(-LARGE, LARGE);
    let whole = factor * exponent;
    let product = A::fma(factor, low, A::fma(factor, high, whole));
    let limited = product.clamp(-POW_LIMIT, POW_LIMIT);
    let regular = product == limited;
    let whole = if regular { whole } else { limited };
    let [high, low] = [high, low].map(|part| if regular { part } else { 0.0 });
    let magnitude = exp2::<A>(limited, whole, factor, high, low);

    // From 2^24 up every f32 is even.
    let count = y.abs();
    let count = if count > 33554432.0 { 33554432.0 } else { count };
    let shifted = count + SHIFT;
    let whole = shifted - SHIFT == count;
    let odd = if whole { shifted.to_bits() & 1 } else { 0 };
    let result = negate_if_odd(magnitude, odd & (x.to_bits() >> 63));
    let result = if x < 0.0 && x > -INF && !whole { f64::NAN } else { result };
    let result = if x.is_nan() { x } else { result };
    if x == 1.0 || y == 0.0 { 1.0 } else { result }
}

// Error functions

/// `erf(x) / x` over `x^2` as a quotient of polynomials, for `|x| <= 4`; error 2^-47. Interpolates
/// at Chebyshev nodes, stretched to have the first at zero.
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

/// `erfc(x) exp(x^2)` over `(x - 4) / (x + 4)`, for `0 <= x <= 10.2`; error 2^-48.
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

/// Error function; from `|x| = 4` on the nearest f32 is 1.
#[inline(always)]
#[must_use]
pub fn erf<A: Arithmetic>(x: f64) -> f64 {
    let x = x.clamp(-4.0, 4.0);
    let z = x * x;
    x * (polynomial::<A, _>(z, ERF_NUMERATOR) / polynomial::<A, _>(z, ERF_DENOMINATOR))
}

/// `1 - erf(x)` without cancellation: `exp(-x^2)` (the square of an f32 is exact) by a smooth
/// factor, mirrored for negative `x`. Zero above 10.1.
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

/// Inverse of `erf` to some 6 digits: by the polynomials over `-log(1 - x^2)` of M. Giles,
/// "Approximating the erfinv function", so that random numbers are those of other backends;
/// infinities at -1 and 1, NaN beyond.
#[inline(always)]
#[must_use]
pub fn erf_inv<A: Arithmetic>(x: f64) -> f64 {
    const CENTRAL: [f64; 9] = [
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
    const TAIL: [f64; 9] = [
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
    let mut sum = if central { CENTRAL[0] } else { TAIL[0] };
    for i in 1..9 {
        sum = sum * t + if central { CENTRAL[i] } else { TAIL[i] };
    }
    let result = if x == 0.0 { x } else { sum * x };
    let result = if x.abs() == 1.0 { x * INF } else { result };
    if x.abs() > 1.0 { f64::NAN } else { result }
}
