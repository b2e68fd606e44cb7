//! Functions of f64 that Rust's standard library hasn't or computes otherwise
//! than the C library, which Elixir's `:math` calls: by the algorithms of
//! fdlibm that glibc has, with the same steps in the same order, so that they
//! give the same bits. Also the formulas of Elixir's `complex` package for what
//! `:math` hasn't.
//!
//! The error functions are derived from `s_erf.c` of fdlibm:
//!
//! Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
//! Developed at SunPro, a Sun Microsystems, Inc. business.
//! Permission to use, copy, modify, and distribute this software is freely
//! granted, provided that this notice is preserved.

use std::f64::consts::LN_2;

/// Pairs of terms first, which is the order that glibc adds in.
#[inline(always)]
pub(super) fn by_pairs<const N: usize>(x: f64, c: [f64; N]) -> f64 {
    let (square, fourth) = (x * x, x * x * (x * x));
    let powers = [1.0, square, fourth, fourth * square, fourth * fourth];
    let pair = |i: usize| if 2 * i + 1 < N { c[2 * i] + x * c[2 * i + 1] } else { c[2 * i] };
    (1..N.div_ceil(2)).fold(pair(0), |sum, i| sum + powers[i] * pair(i))
}

// Inverse hyperbolic functions

/// Below this, and one over it, squares vanish against one.
pub(super) const TINY: f64 = 3.725290298461914e-09;
/// From here on, one vanishes against squares.
const HUGE: f64 = 268435456.0;

/// Inverse hyperbolic sine.
#[must_use]
pub fn asinh(x: f64) -> f64 {
    let a = x.abs();
    if a < TINY || !a.is_finite() {
        return x;
    }
    let result = if a > HUGE {
        a.ln() + LN_2
    } else if a > 2.0 {
        (2.0 * a + 1.0 / ((a * a + 1.0).sqrt() + a)).ln()
    } else {
        let square = a * a;
        (a + square / (1.0 + (1.0 + square).sqrt())).ln_1p()
    };
    result.copysign(x)
}

/// Inverse hyperbolic cosine; NaN below 1.
#[must_use]
pub fn acosh(x: f64) -> f64 {
    if x > HUGE {
        x.ln() + LN_2
    } else if x > 2.0 {
        (2.0 * x - 1.0 / (x + (x * x - 1.0).sqrt())).ln()
    } else if x >= 1.0 {
        let t = x - 1.0;
        (t + (2.0 * t + t * t).sqrt()).ln_1p()
    } else {
        f64::NAN
    }
}

/// Inverse hyperbolic tangent; infinities at -1 and 1, NaN beyond.
#[must_use]
pub fn atanh(x: f64) -> f64 {
    let a = x.abs();
    if a < TINY {
        return x;
    }
    let result = if a < 0.5 {
        let t = a + a;
        0.5 * (t + t * a / (1.0 - a)).ln_1p()
    } else {
        0.5 * ((a + a) / (1.0 - a)).ln_1p()
    };
    if a > 1.0 { f64::NAN } else { result.copysign(x) }
}

// Powers

/// Cube root, as `complex` has it: not quite exact, and of a negative zero
/// positive.
#[inline(always)]
#[must_use]
pub fn cbrt(x: f64) -> f64 {
    let root = x.abs().powf(1.0 / 3.0);
    if x < 0.0 { -root } else { root }
}

// Error functions

/// Where the ranges begin whose polynomials are about 1, and about zero of `1 / x^2`.
pub(super) const MIDDLE: f64 = 0.84375;
pub(super) const FAR: f64 = 1.25;

/// `erf(x) / x - 1` over `x^2`, for `|x| < MIDDLE`.
pub(super) const NEAR_NUMERATOR: [f64; 5] = [
    0.12837916709551256,
    -0.3250421072470015,
    -0.02848174957559851,
    -0.005770270296489442,
    -2.3763016656650163e-05,
];
pub(super) const NEAR_DENOMINATOR: [f64; 6] = [
    1.0,
    0.39791722395915535,
    0.0650222499887673,
    0.005081306281875766,
    0.00013249473800432164,
    -3.960228278775368e-06,
];

/// `erf(x) - ERF_ONE` over `|x| - 1`, for `MIDDLE <= |x| < FAR`.
pub(super) const MIDDLE_NUMERATOR: [f64; 7] = [
    -0.0023621185607526594,
    0.41485611868374833,
    -0.3722078760357013,
    0.31834661990116175,
    -0.11089469428239668,
    0.035478304325618236,
    -0.002166375594868791,
];
pub(super) const MIDDLE_DENOMINATOR: [f64; 7] = [
    1.0,
    0.10642088040084423,
    0.540397917702171,
    0.07182865441419627,
    0.12617121980876164,
    0.01363708391202905,
    0.011984499846799107,
];

/// `log(x erfc(x)) + x^2 + 0.5625` over `1 / x^2`, for `FAR <= |x| < 1 / 0.35`.
pub(super) const FAR_NUMERATOR: [f64; 8] = [
    -0.009864944034847148,
    -0.6938585727071818,
    -10.558626225323291,
    -62.375332450326006,
    -162.39666946257347,
    -184.60509290671104,
    -81.2874355063066,
    -9.814329344169145,
];
pub(super) const FAR_DENOMINATOR: [f64; 9] = [
    1.0,
    19.651271667439257,
    137.65775414351904,
    434.56587747522923,
    645.3872717332679,
    429.00814002756783,
    108.63500554177944,
    6.570249770319282,
    -0.0604244152148581,
];

/// The same from there to 28.
pub(super) const REMOTE_NUMERATOR: [f64; 7] = [
    -0.0098649429247001,
    -0.799283237680523,
    -17.757954917754752,
    -160.63638485582192,
    -637.5664433683896,
    -1025.0951316110772,
    -483.5191916086514,
];
pub(super) const REMOTE_DENOMINATOR: [f64; 8] = [
    1.0,
    30.33806074348246,
    325.7925129965739,
    1536.729586084437,
    3199.8582195085955,
    2553.0504064331644,
    474.52854120695537,
    -22.44095244658582,
];

/// `erf(1)` in few bits.
pub(super) const ERF_ONE: f64 = 0.8450629115104675;

/// `2 / sqrt(pi) - 1`
pub(super) const SLOPE: f64 = 0.1283791670955126;

/// Below this, `SLOPE` of it may be subnormal: 2^-1015.
pub(super) const SMALL: f64 = f64::from_bits(0x0080_0000_0000_0000);

/// `1 / 0.35`, in the bits that fdlibm looks at, for `erf` and for `erfc`.
pub(super) const REMOTE: [f64; 2] =
    [f64::from_bits(0x4006_db6e_0000_0000), f64::from_bits(0x4006_db6d_0000_0000)];

#[inline]
fn near(x: f64) -> f64 {
    let square = x * x;
    by_pairs(square, NEAR_NUMERATOR) / by_pairs(square, NEAR_DENOMINATOR)
}

#[inline]
fn middle(a: f64) -> f64 {
    let s = a - 1.0;
    by_pairs(s, MIDDLE_NUMERATOR) / by_pairs(s, MIDDLE_DENOMINATOR)
}

/// So few bits of a number that their square is exact.
#[inline(always)]
pub(super) fn few_bits(a: f64) -> f64 {
    f64::from_bits(a.to_bits() & !0xffff_ffff)
}

/// `a erfc(a)`, for `FAR <= a < 28`.
fn far(a: f64, remote: f64) -> f64 {
    let s = 1.0 / (a * a);
    let quotient = if a < remote {
        by_pairs(s, FAR_NUMERATOR) / by_pairs(s, FAR_DENOMINATOR)
    } else {
        by_pairs(s, REMOTE_NUMERATOR) / by_pairs(s, REMOTE_DENOMINATOR)
    };
    let z = few_bits(a);
    (-z * z - 0.5625).exp() * ((z - a) * (z + a) + quotient).exp()
}

/// Error function.
#[must_use]
pub fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a < TINY {
        // Without an underflow in between.
        return if a < SMALL { 0.0625 * (16.0 * x + 16.0 * SLOPE * x) } else { x + SLOPE * x };
    }
    let result = if a < MIDDLE {
        return x + x * near(x);
    } else if a < FAR {
        ERF_ONE + middle(a)
    } else if a < 6.0 {
        1.0 - far(a, REMOTE[0]) / a
    } else if a.is_nan() {
        a
    } else {
        1.0
    };
    result.copysign(x)
}

/// `1 - erf(x)`, without cancellation.
#[must_use]
pub fn erfc(x: f64) -> f64 {
    let a = x.abs();
    if a < 1.0 / (1u64 << 56) as f64 {
        1.0 - x
    } else if a < MIDDLE {
        let y = near(x);
        if x < 0.25 { 1.0 - (x + x * y) } else { 0.5 - (x * y + (x - 0.5)) }
    } else if a < FAR {
        if x > 0.0 { 1.0 - ERF_ONE - middle(a) } else { 1.0 + (ERF_ONE + middle(a)) }
    } else if x < -6.0 {
        2.0
    } else if a < 28.0 {
        let tail = far(a, REMOTE[1]) / a;
        if x > 0.0 { tail } else { 2.0 - tail }
    } else if x.is_nan() {
        x
    } else {
        0.0
    }
}

/// Inverse of `erf`, as `complex` has it, to some 6 digits: by the polynomials
/// over `-log(1 - x^2)` of M. Giles, "Approximating the erfinv function".
#[inline(always)]
#[must_use]
pub fn erf_inv(x: f64) -> f64 {
    erf_inv_by(x, -((1.0 - x) * (1.0 + x)).ln())
}

/// The same, given the logarithm.
#[inline(always)]
pub(crate) fn erf_inv_by(x: f64, w: f64) -> f64 {
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
    let central = w < 5.0;
    let t = if central { w - 2.5 } else { w.sqrt() - 3.0 };
    let mut sum = if central { CENTRAL[0] } else { TAIL[0] };
    for i in 1..9 {
        sum = sum * t + if central { CENTRAL[i] } else { TAIL[i] };
    }
    // Also positive for a negative zero.
    let result = if x == 0.0 { 0.0 } else { sum * x };
    let result = if x.abs() == 1.0 { x * f64::INFINITY } else { result };
    if x.abs() > 1.0 { f64::NAN } else { result }
}
