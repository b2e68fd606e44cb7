//! `exp`, `log` and `pow` of f64, with the steps of glibc's `exp.c`, `log.c` and `pow.c`, which are
//! those of Arm's Optimized Routines:
//!
//! Copyright (c) 2018-2026, Arm Limited.
//! SPDX-License-Identifier: MIT OR Apache-2.0 WITH LLVM-exception
//!
//! Each has a row of a table for its argument, and a short polynomial. The errors are below 0.52
//! units in the last place.

#![allow(
    clippy::excessive_precision,
    clippy::unreadable_literal,
    reason = "coefficients are written as the shortest digits that give back the same f64"
)]
#![allow(clippy::inline_always, reason = "the loops vectorize only when the whole function is in their body")]

use super::tables::{EXP_TABLE, LOG_TABLE, POW_LOG_TABLE};
use super::{Chunks, FRACTION_BITS, Function, TableRows, replace_nans, row};
use crate::dtype::Lane;
use crate::exec::elementwise::KERNEL_CHUNK_ELEMENTS;
use crate::exec::simd::Aligned;
use crate::ops::math::f32_functions::{Arithmetic, HardwareFma, INF, ROUNDING_SHIFT, TWO_52};
use crate::ops::math::f64_functions::{LN_2_HIGH_42, LN_2_LOW_42};

// Exponentials

/// The reciprocal of the step of the table, `128 / ln(2)`, and the step `ln(2) / 128` as the sum of
/// two numbers.
const INVERSE_EXP_STEP: f64 = 184.6649652337873;
const EXP_STEP_HIGH: f64 = 0.005415212348111709;
const EXP_STEP_LOW: f64 = 1.2864023111638346e-14;

/// Coefficients of `(expm1(r) - r) / r^2` for `|r| < ln(2) / 256`.
const EXPM1_GLIBC: [f64; 4] =
    [0.49999999999996786, 0.16666666666665886, 0.0416666808410674, 0.008333335853059549];

/// From this magnitude of the argument on, the result or its scale may be out of range. From the
/// second number on, the result is zero or infinite.
const EXP_LIMITS: [f64; 2] = [512.0, 1024.0];

/// Returns the nearest integer to `x / (ln(2) / 128)`, plus `ROUNDING_SHIFT`.
#[inline(always)]
fn exp_steps<A: Arithmetic>(x: f64) -> f64 {
    A::fma(x, INVERSE_EXP_STEP, ROUNDING_SHIFT)
}

/// Returns `(scale, p)` with `e^(x + tail) = scale (1 + p)`, given the table row for `exp_steps(x)`. The
/// scale is given by its bits, which are wrong if it is out of range.
#[inline(always)]
fn exp_parts<A: Arithmetic>(x: f64, tail: Option<f64>, [scale_error, scale]: [u64; 2]) -> (u64, f64) {
    let shifted = exp_steps::<A>(x);
    let k = shifted - ROUNDING_SHIFT;
    let r = A::fma(k, -EXP_STEP_LOW, A::fma(k, -EXP_STEP_HIGH, x));
    let r = tail.map_or(r, |tail| r + tail);
    let square = r * r;
    let low = A::fma(r, EXPM1_GLIBC[1], EXPM1_GLIBC[0]);
    let high = A::fma(r, EXPM1_GLIBC[3], EXPM1_GLIBC[2]);
    let p = A::fma(square, low, f64::from_bits(scale_error) + r);
    (scale.wrapping_add(shifted.to_bits() << 45), A::fma(square * square, high, p))
}

/// Returns `e^(x + tail)`, given the table row for `exp_steps(x)`, or NaN from the first of
/// [`EXP_LIMITS`] on.
#[inline(always)]
fn exp_with_row<A: Arithmetic>(x: f64, tail: Option<f64>, row: [u64; 2]) -> f64 {
    let (scale, p) = exp_parts::<A>(x, tail, row);
    let scale = f64::from_bits(scale);
    let result = A::fma(scale, p, scale);
    if x.abs() < EXP_LIMITS[0] { result } else { f64::NAN }
}

/// Returns `e^(x + tail)` of any `x`.
#[inline(always)]
fn exp_of_any<A: Arithmetic>(x: f64, tail: Option<f64>) -> f64 {
    /// 2^1009 and 2^-1022, and 1022 in the place of an exponent.
    const DOWN: f64 = f64::from_bits((1009 + 1023) << FRACTION_BITS);
    const UP_BITS: u64 = 1022 << FRACTION_BITS;
    if x.is_nan() {
        return x;
    }
    if x.abs() >= EXP_LIMITS[1] {
        return if x < 0.0 { 0.0 } else { INF };
    }
    let row = row(&EXP_TABLE.0, exp_steps::<A>(x).to_bits());
    if x.abs() < EXP_LIMITS[0] {
        return exp_with_row::<A>(x, tail, row);
    }
    let (scale, p) = exp_parts::<A>(x, tail, row);
    if x > 0.0 {
        let scale = f64::from_bits(scale.wrapping_sub(1009 << FRACTION_BITS));
        return DOWN * A::fma(scale, p, scale);
    }
    // The result may be subnormal, and is rounded once: to a multiple of the least number, which is a
    // rounding of this sum beside 1, and then there is nothing left to round. glibc fuses nothing here.
    let scale = f64::from_bits(scale.wrapping_add(UP_BITS));
    let product = scale * p;
    let mut result = scale + product;
    if result < 1.0 {
        let low = scale - result + product;
        let high = 1.0 + result;
        result = (high + (1.0 - high + result + low)) - 1.0;
    }
    f64::MIN_POSITIVE * result
}

/// The exponential.
pub(in crate::ops) struct Exp;

impl Function for Exp {
    #[inline(always)]
    fn apply<A: Arithmetic>(x: f64, _: f64) -> f64 {
        exp_of_any::<A>(x, None)
    }

    #[inline(always)]
    fn compute_chunks(chunks: Chunks<'_, Self>) {
        let mut rows = TableRows::new([0; 2]);
        for (x, y, out) in chunks.into_chunks() {
            let rows = rows
                .look_up(&EXP_TABLE.0, x.iter().map(|&x| exp_steps::<HardwareFma>(f64::load(x)).to_bits()));
            for ((out, &x), &row) in out.iter_mut().zip(x).zip(rows) {
                *out = exp_with_row::<HardwareFma>(f64::load(x), None, row).store();
            }
            replace_nans::<Self>(x, y, out);
        }
    }
}

// Logarithms

/// Coefficients of `(log1p(r) - r) / r^2` for the small `r` of a table row, and more precise ones
/// for `|r| < 0.07`.
const LOG1P: [f64; 5] = [
    -0.5000000000000001,
    0.33333333331825593,
    -0.2499999999622955,
    0.20000304511814496,
    -0.16667054827627667,
];
const LOG1P_NEAR_ONE: [f64; 11] = [
    -0.5,
    0.3333333333333352,
    -0.24999999999998432,
    0.19999999999320328,
    -0.16666666669929706,
    0.14285715076560868,
    -0.12499997863982555,
    0.11110712032936046,
    -0.10000486757818193,
    0.09181994006195467,
    -0.08328363062289341,
];

/// Arguments from the first number up to, but excluding, the second one are near one.
const LOG_NEAR_ONE: [f64; 2] = [0.9375, 1.064697265625];

/// The bits of the least significand of `LOG_TABLE` and of `POW_LOG_TABLE`.
const LOG_MIN_SIGNIFICAND: u64 = 0.6875_f64.to_bits();
const POW_LOG_MIN_SIGNIFICAND: u64 = 0x3fe6_9555_0000_0000;

/// A factor that makes normal numbers of subnormal ones, and its exponent of two.
const SUBNORMAL_FACTOR: (f64, f64) = (TWO_52, 52.0);

/// Returns the index of the table row for `x` in the low bits.
#[inline(always)]
fn log_row_index(x: f64, min_significand: u64) -> u64 {
    x.to_bits().wrapping_sub(min_significand) >> (FRACTION_BITS - 7)
}

/// Returns `(k, z)` with `x = 2^k z`, for normal `x`. The significand `z` is from `min_significand`
/// to twice that number.
#[inline(always)]
fn split_significand(x: f64, min_significand: u64) -> (f64, f64) {
    let t = x.to_bits().wrapping_sub(min_significand);
    // The shifted integer is k + 1024, so that the shift is logical. It is written into the
    // fraction of 2^52.
    let k = t.wrapping_add(1024 << FRACTION_BITS) >> FRACTION_BITS;
    let k = f64::from_bits(k | TWO_52.to_bits()) - (TWO_52 + 1024.0);
    (k, f64::from_bits(x.to_bits().wrapping_sub(t & (0xfff << FRACTION_BITS))))
}

#[inline(always)]
fn is_positive_normal(x: f64) -> bool {
    (f64::MIN_POSITIVE..=f64::MAX).contains(&x)
}

/// Returns the logarithm of `2^k z`, given the table row of `z`.
#[inline(always)]
fn log_of_parts<A: Arithmetic>((k, z): (f64, f64), [inverse, log]: [u64; 2]) -> f64 {
    let c = LOG1P;
    let r = A::fma(z, f64::from_bits(inverse), -1.0);
    let w = A::fma(k, LN_2_HIGH_42, f64::from_bits(log));
    let high = w + r;
    let low = A::fma(k, LN_2_LOW_42, w - high + r);
    let square = r * r;
    let p = A::fma(square, A::fma(r, c[4], c[3]), A::fma(r, c[2], c[1]));
    A::fma(r * square, p, A::fma(square, c[0], low)) + high
}

/// Returns the logarithm of an `x` near one.
#[inline(always)]
fn log_near<A: Arithmetic>(x: f64) -> f64 {
    const SPLITTER: f64 = 134217728.0;
    let c = LOG1P_NEAR_ONE;
    let r = x - 1.0;
    let (square, cube) = (r * r, r * (r * r));
    let p = A::fma(cube, c[10], A::fma(square, c[9], A::fma(r, c[8], c[7])));
    let p = A::fma(cube, p, A::fma(square, c[6], A::fma(r, c[5], c[4])));
    let p = A::fma(cube, p, A::fma(square, c[3], A::fma(r, c[2], c[1])));
    // Half of the square of r, without rounding error.
    let w = r * SPLITTER;
    let r_high = r + w - w;
    let r_low = r - r_high;
    let w = r_high * r_high * c[0];
    let high = r + w;
    let low = A::fma(c[0] * r_low, r_high + r, r - high + w);
    A::fma(cube, p, low) + high
}

#[inline(always)]
fn is_near_one(x: f64) -> bool {
    (LOG_NEAR_ONE[0]..LOG_NEAR_ONE[1]).contains(&x)
}

/// The natural logarithm.
pub(in crate::ops) struct Log;

impl Function for Log {
    #[inline(always)]
    fn apply<A: Arithmetic>(x: f64, _: f64) -> f64 {
        if is_near_one(x) {
            return log_near::<A>(x);
        }
        let row = |x| row(&LOG_TABLE.0, log_row_index(x, LOG_MIN_SIGNIFICAND));
        if is_positive_normal(x) {
            log_of_parts::<A>(split_significand(x, LOG_MIN_SIGNIFICAND), row(x))
        } else if x > 0.0 && x < f64::MIN_POSITIVE {
            let x = x * SUBNORMAL_FACTOR.0;
            let (k, z) = split_significand(x, LOG_MIN_SIGNIFICAND);
            log_of_parts::<A>((k - SUBNORMAL_FACTOR.1, z), row(x))
        } else if x == 0.0 {
            -INF
        } else if x < 0.0 {
            f64::NAN
        } else {
            x
        }
    }

    #[inline(always)]
    fn compute_chunks(chunks: Chunks<'_, Self>) {
        let mut rows = TableRows::new([0; 2]);
        for (x, y, out) in chunks.into_chunks() {
            let rows = rows
                .look_up(&LOG_TABLE.0, x.iter().map(|&x| log_row_index(f64::load(x), LOG_MIN_SIGNIFICAND)));
            let mut any_near = false;
            for ((out, &x), &row) in out.iter_mut().zip(x).zip(rows) {
                let x = f64::load(x);
                any_near |= is_near_one(x);
                let result = log_of_parts::<HardwareFma>(split_significand(x, LOG_MIN_SIGNIFICAND), row);
                // A select between two results would be compiled so that rows are loaded one by one.
                // Adding a positive zero changes nothing, because no result is a negative zero.
                *out = (result + if is_positive_normal(x) { 0.0 } else { f64::NAN }).store();
            }
            if any_near {
                for (out, &x) in out.iter_mut().zip(x) {
                    let x = f64::load(x);
                    let (near, far) = (log_near::<HardwareFma>(x), f64::load(*out));
                    *out = if is_near_one(x) { near } else { far }.store();
                }
            }
            replace_nans::<Self>(x, y, out);
        }
    }
}

// Powers

/// Coefficients of `(log1p(r) - r) / r^2`, as factors of powers of `-r / 2` where the algorithm
/// uses these.
const LOG1P_POW: [f64; 7] = [
    -0.5,
    -0.6666666666666679,
    0.5000000000000007,
    0.7999999995323976,
    -0.6666666663487739,
    -1.142909628459501,
    1.0000415263675542,
];

/// The loop computes powers for exponents `y` whose magnitude is at least the first number and
/// below the second one. These are 2^-65 and 2^63.
const POW_EXPONENT_RANGE: [f64; 2] = [2.710505431213761e-20, 9223372036854775808.0];

/// Returns `y log(2^k z)` as the sum of two numbers, given the table row of `z`.
#[inline(always)]
fn times_log<A: Arithmetic>(
    (k, z): (f64, f64),
    y: f64,
    [inverse, log, log_low, minus_one]: [f64; 4],
) -> (f64, f64) {
    let c = LOG1P_POW;
    let r = A::fma(z, inverse, minus_one);
    let w = A::fma(k, LN_2_HIGH_42, log);
    let sum = w + r;
    let low = A::fma(k, LN_2_LOW_42, log_low) + (w - sum + r);
    let half = c[0] * r;
    let square = r * half;
    let high = sum + square;
    let p = A::fma(square, A::fma(r, c[6], c[5]), A::fma(r, c[4], c[3]));
    let p = A::fma(square, p, A::fma(r, c[2], c[1]));
    let low = low + A::fma(half, r, -square) + (sum - high + square);
    let low = A::fma(r * square, p, low);
    let log = high + low;
    let log_low = high - log + low;
    let product = y * log;
    (product, A::fma(y, log_low, A::fma(y, log, -product)))
}

/// Returns whether the loop computes the power of these numbers: `x` is positive and normal, and the
/// magnitude of `y` is in [`POW_EXPONENT_RANGE`], and no exponent of [`simple_power`].
#[inline(always)]
fn is_plain_power(x: f64, y: f64) -> bool {
    is_positive_normal(x)
        & (y.abs() >= POW_EXPONENT_RANGE[0])
        & (y.abs() < POW_EXPONENT_RANGE[1])
        & simple_power(x, y).is_none()
}

/// The square, the inverse or the square root of `x`, which are correctly rounded, if that is its power.
#[inline(always)]
fn simple_power(x: f64, y: f64) -> Option<f64> {
    if y == 2.0 {
        Some(x * x)
    } else if y == -1.0 {
        Some(1.0 / x)
    } else if y == 0.5 {
        // The power of minus infinity is infinite, and that of -0 is 0.
        Some(if x == -INF { INF } else { x.sqrt() + 0.0 })
    } else {
        None
    }
}

/// Whether `y` is an integer, and whether it is an odd one.
fn is_integer(y: f64) -> (bool, bool) {
    (y.trunc() == y, y.abs() < 2.0 * TWO_52 && (0.5 * y).trunc() != 0.5 * y && y.trunc() == y)
}

/// The power.
pub(in crate::ops) struct Pow;

impl Function for Pow {
    /// Special cases are those of C's Annex F.
    #[inline(always)]
    fn apply<A: Arithmetic>(x: f64, y: f64) -> f64 {
        if y == 0.0 || x == 1.0 {
            return 1.0;
        }
        if x.is_nan() || y.is_nan() {
            return x + y;
        }
        if let Some(power) = simple_power(x, y) {
            return power;
        }
        let size = x.abs();
        if y.is_infinite() {
            return match size.total_cmp(&1.0) {
                std::cmp::Ordering::Equal => 1.0,
                order => {
                    if (order == std::cmp::Ordering::Greater) == (y > 0.0) {
                        INF
                    } else {
                        0.0
                    }
                }
            };
        }
        let (is_integer, is_odd) = is_integer(y);
        let sign = if x.is_sign_negative() && is_odd { -1.0 } else { 1.0 };
        if size == 0.0 || size == INF {
            return sign * if (size == INF) == (y > 0.0) { INF } else { 0.0 };
        }
        if x < 0.0 && !is_integer {
            return f64::NAN;
        }
        if size == 1.0 || y.abs() < POW_EXPONENT_RANGE[0] {
            return sign;
        }
        if y.abs() >= POW_EXPONENT_RANGE[1] {
            return if (size > 1.0) == (y > 0.0) { INF } else { 0.0 };
        }
        let (factor, exponent) = if size < f64::MIN_POSITIVE { SUBNORMAL_FACTOR } else { (1.0, 0.0) };
        let size = size * factor;
        let (k, z) = split_significand(size, POW_LOG_MIN_SIGNIFICAND);
        let row = row(&POW_LOG_TABLE.0, log_row_index(size, POW_LOG_MIN_SIGNIFICAND));
        let (high, low) = times_log::<A>((k - exponent, z), y, row);
        sign * exp_of_any::<A>(high, Some(low))
    }

    #[inline(always)]
    fn compute_chunks(chunks: Chunks<'_, Self>) {
        let (mut log_rows, mut rows) = (TableRows::new([0.0; 4]), TableRows::new([0; 2]));
        let (Aligned(high), Aligned(low)) =
            (&mut Aligned([[0; 8]; KERNEL_CHUNK_ELEMENTS]), &mut Aligned([0.0; KERNEL_CHUNK_ELEMENTS]));
        for (x, y, out) in chunks.into_chunks() {
            let exponent = f64::load(y[0]);
            if simple_power(1.0, exponent).is_some() && y.iter().all(|&y| f64::load(y) == exponent) {
                for (out, &x) in out.iter_mut().zip(x) {
                    *out = simple_power(f64::load(x), exponent).unwrap_or(f64::NAN).store();
                }
                continue;
            }
            let (high, low) = (&mut high[..x.len()], &mut low[..x.len()]);
            let log_rows = log_rows.look_up(
                &POW_LOG_TABLE.0,
                x.iter().map(|&x| log_row_index(f64::load(x), POW_LOG_MIN_SIGNIFICAND)),
            );
            for ((((high, low), &x), &y), &row) in high.iter_mut().zip(&mut *low).zip(x).zip(y).zip(log_rows)
            {
                let (x, y) = (f64::load(x), f64::load(y));
                let parts = split_significand(x, POW_LOG_MIN_SIGNIFICAND);
                let (product, rest) = times_log::<HardwareFma>(parts, y, row);
                (*high, *low) = (if is_plain_power(x, y) { product } else { f64::NAN }.store(), rest);
            }
            let rows = rows.look_up(
                &EXP_TABLE.0,
                high.iter().map(|&x| exp_steps::<HardwareFma>(f64::load(x)).to_bits()),
            );
            for (((out, &high), &low), &row) in out.iter_mut().zip(&*high).zip(&*low).zip(rows) {
                *out = exp_with_row::<HardwareFma>(f64::load(high), Some(low), row).store();
            }
            replace_nans::<Self>(x, y, out);
        }
    }
}
