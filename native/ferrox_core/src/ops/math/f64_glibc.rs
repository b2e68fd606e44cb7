//! Functions of f64 with the bits that glibc gives, in loops that vectorize. These are the
//! functions whose results glibc computes within an ulp, and the remainder, which is exact.
//!
//! Problem: the results must be those of the C library, because `:math` calls it, but a call for
//! each element takes ten times as long as the loops of NumPy or XLA. Technique: the algorithms of
//! glibc, with the same steps in the same order, and with fused multiply-add where glibc fuses, on
//! a chunk of elements at a time. A vector loop finds the index of each element's table row, a
//! scalar loop copies the rows, and a vector loop computes the results. If glibc takes a branch for
//! an argument, the result is NaN, and the C library is then called for this element.
//!
//! Limits: glibc uses fused multiply-add from x86-64-v3 on. On older processors, and where the C
//! library is not such a glibc ([`matches_c_library`] compares results once), [`unary`] and
//! [`binary`] return `None`, and the caller calls the C library for each element. So the results
//! are always those of the C library.
//!
//! `exp`, `log` and `pow` are derived from `exp.c`, `log.c` and `pow.c` of Arm's Optimized
//! Routines, from which glibc has them:
//!
//! Copyright (c) 2018-2026, Arm Limited.
//! SPDX-License-Identifier: MIT OR Apache-2.0 WITH LLVM-exception

#![allow(
    clippy::excessive_precision,
    clippy::unreadable_literal,
    reason = "coefficients are written as the shortest digits that give back the same f64"
)]
#![allow(clippy::inline_always, reason = "the loops vectorize only when the whole function is in their body")]

mod sine;
mod tables;

use std::marker::PhantomData;
use std::sync::OnceLock;

use self::tables::{EXP_TABLE, LOG_TABLE, POW_LOG_TABLE};
use crate::Fault;
use crate::cost::{Cost, GLIBC_EXP_COST, GLIBC_LOG_COST, GLIBC_SIN_COST, MIN_ELEMENTS_FOR_GLIBC_LOOP};
use crate::dtype::Lane;
use crate::exec::elementwise::{KERNEL_CHUNK_ELEMENTS, Kernel, Operand};
use crate::exec::simd::{self, Aligned, Vectorized, dispatch as vectorize};

/// An f64 as tensors store it.
type F64Bytes = <f64 as Lane>::Bytes;

/// A function of one or two f64. A function of one argument ignores the second one.
trait GlibcFunction: Sized + 'static {
    /// The ranges of the two arguments whose results are compared with those of the C library.
    const SAMPLE_RANGES: [(f64, f64); 2];

    /// Returns the result of the C library.
    fn call_library(x: f64, y: f64) -> f64;

    /// Computes the same results for all elements.
    fn compute_chunks(chunks: ChunkedOperands<'_, Self>);
}

/// The arguments and the results of a loop. A scalar argument has an empty slice in `x` or `y`, and
/// fills a chunk in `repeated`.
struct ChunkedOperands<'a, F> {
    x: &'a [F64Bytes],
    y: &'a [F64Bytes],
    repeated: [&'a [F64Bytes; KERNEL_CHUNK_ELEMENTS]; 2],
    out: &'a mut [F64Bytes],
    function: PhantomData<F>,
}

impl<'a, F: GlibcFunction> ChunkedOperands<'a, F> {
    /// Iterates over the chunks of `x`, `y` and `out`. When a chunk is computed, the caller calls
    /// [`replace_nans`]. Loops over elements can't be in closures, because a closure is not
    /// compiled for the instruction set of its caller.
    #[inline(always)]
    fn into_chunks(self) -> impl Iterator<Item = (&'a [F64Bytes], &'a [F64Bytes], &'a mut [F64Bytes])> {
        let ChunkedOperands { x, y, repeated, out, .. } = self;
        out.chunks_mut(KERNEL_CHUNK_ELEMENTS).enumerate().map(move |(k, out)| {
            let range = k * KERNEL_CHUNK_ELEMENTS..k * KERNEL_CHUNK_ELEMENTS + out.len();
            let [x, y] = [(x, repeated[0]), (y, repeated[1])]
                .map(|(x, repeated)| x.get(range.clone()).unwrap_or(&repeated[..out.len()]));
            (x, y, out)
        })
    }
}

/// Replaces each NaN in `out` by the result of the C library.
#[inline(always)]
fn replace_nans<F: GlibcFunction>(x: &[F64Bytes], y: &[F64Bytes], out: &mut [F64Bytes]) {
    // The loop has no early exit, so that it vectorizes.
    if out.iter().fold(false, |any, &out| any | f64::load(out).is_nan()) {
        for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
            if f64::load(*out).is_nan() {
                *out = F::call_library(f64::load(x), f64::load(y)).store();
            }
        }
    }
}

/// The table rows for the elements of a chunk, and the index of each row.
struct TableRows<R> {
    rows: Aligned<[R; KERNEL_CHUNK_ELEMENTS]>,
    indices: Aligned<[u32; KERNEL_CHUNK_ELEMENTS]>,
}

impl<R: Copy> TableRows<R> {
    #[inline(always)]
    fn new(row: R) -> Self {
        TableRows {
            rows: Aligned([row; KERNEL_CHUNK_ELEMENTS]),
            indices: Aligned([0; KERNEL_CHUNK_ELEMENTS]),
        }
    }

    /// Copies the rows of `table` whose indices are the low bits of `needed`.
    #[inline(always)]
    fn look_up<const ROWS: usize>(
        &mut self,
        table: &[R; ROWS],
        needed: impl ExactSizeIterator<Item = u64>,
    ) -> &[R] {
        let n = needed.len();
        let (indices, rows) = (&mut self.indices.0[..n], &mut self.rows.0[..n]);
        for (to, index) in indices.iter_mut().zip(needed) {
            *to = (index % ROWS as u64) as u32;
        }
        for (row, &i) in rows.iter_mut().zip(&*indices) {
            *row = table[i as usize % ROWS];
        }
        rows
    }
}

struct GlibcLoop<'a, 'b, F> {
    out: &'a mut [u8],
    operands: &'a [Operand<'b>],
    function: PhantomData<F>,
}

impl<F: GlibcFunction> Vectorized for GlibcLoop<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let out = f64::view_mut(self.out);
        let [left, .., right] = [self.operands[0], self.operands[self.operands.len() - 1]];
        let [x, y] = [left, right].map(|operand| match operand {
            Operand::Slice(bytes) => f64::view(bytes),
            Operand::Scalar(_) => &[],
        });
        let scalar = [left, right].map(|operand| match operand {
            Operand::Slice(_) => [0; 8],
            Operand::Scalar(bytes) => f64::view(bytes)[0],
        });
        let call_library = |x: F64Bytes, y: F64Bytes| F::call_library(f64::load(x), f64::load(y)).store();
        if x.is_empty() && y.is_empty() {
            out.fill(call_library(scalar[0], scalar[1]));
        } else if out.len() < MIN_ELEMENTS_FOR_GLIBC_LOOP {
            for (i, out) in out.iter_mut().enumerate() {
                *out = call_library(*x.get(i).unwrap_or(&scalar[0]), *y.get(i).unwrap_or(&scalar[1]));
            }
        } else {
            let repeated = scalar.map(|value| [value; KERNEL_CHUNK_ELEMENTS]);
            F::compute_chunks(ChunkedOperands {
                x,
                y,
                repeated: [&repeated[0], &repeated[1]],
                out,
                function: PhantomData,
            });
        }
    }
}

fn tile<F: GlibcFunction>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    vectorize(GlibcLoop::<F> { out, operands, function: PhantomData });
    Ok(())
}

/// Returns whether the loop gives the bits of the C library. If it is another library or another
/// version of glibc, or if it uses no fused multiply-add, some of the samples differ.
fn matches_c_library<F: GlibcFunction>() -> bool {
    const SAMPLE_CHUNKS: usize = 16;
    /// Arguments that detect differences which the samples rarely show: some have another logarithm
    /// if nothing is fused, the others another sine or cosine if other steps are fused.
    const DISCRIMINATING_ARGUMENTS: [f64; 9] = [
        1.0815401457372928,
        1.2899388999846302,
        1.5119848685780752,
        9.231343333361874,
        19.284132112416476,
        9.100739367778289,
        11.438014448904303,
        14.37627959856855,
        16.916897982228047,
    ];
    let mut state = 1_u64;
    let mut next = |(low, high): (f64, f64)| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        low + (high - low) * ((state >> 11) as f64 / (1_u64 << 53) as f64)
    };
    (0..SAMPLE_CHUNKS).all(|_| {
        let mut bytes = [[0; 8 * KERNEL_CHUNK_ELEMENTS]; 3];
        let [out, left, right] = &mut bytes;
        for (x, y) in f64::view_mut(left).iter_mut().zip(f64::view_mut(right)) {
            (*x, *y) = (next(F::SAMPLE_RANGES[0]).store(), next(F::SAMPLE_RANGES[1]).store());
        }
        for (x, &rare) in f64::view_mut(left).iter_mut().zip(&DISCRIMINATING_ARGUMENTS) {
            *x = rare.store();
        }
        vectorize(GlibcLoop::<F> {
            out,
            operands: &[Operand::Slice(left), Operand::Slice(right)],
            function: PhantomData,
        });
        let [out, left, right] = [out, left, right].map(|bytes| f64::view(bytes));
        out.iter().zip(left).zip(right).all(|((&out, &x), &y)| {
            let (out, expected) = (f64::load(out), F::call_library(f64::load(x), f64::load(y)));
            out.to_bits() == expected.to_bits() || out.is_nan() && expected.is_nan()
        })
    })
}

/// Defines functions that return whether the loop of a function can be used on this machine.
macro_rules! library_matches {
    ($($name:ident, $F:ident;)*) => {$(
        fn $name() -> bool {
            static AGREES: OnceLock<bool> = OnceLock::new();
            simd::has_fma() && *AGREES.get_or_init(matches_c_library::<$F>)
        }
    )*};
}
library_matches! {
    exp_matches, Exp;
    log_matches, Log;
    sin_matches, Sin;
    cos_matches, Cos;
    pow_matches, Pow;
}

/// The loop of a function and its cost for an element; `None` if the C library's results are
/// others, and it has to be asked for each element.
type Loop = Option<(Kernel, Cost)>;

pub(in crate::ops) fn exp_kernel() -> Loop {
    exp_matches().then_some((tile::<Exp>, GLIBC_EXP_COST))
}

pub(in crate::ops) fn log_kernel() -> Loop {
    log_matches().then_some((tile::<Log>, GLIBC_LOG_COST))
}

pub(in crate::ops) fn sin_kernel() -> Loop {
    sin_matches().then_some((tile::<Sin>, GLIBC_SIN_COST))
}

pub(in crate::ops) fn cos_kernel() -> Loop {
    cos_matches().then_some((tile::<Cos>, GLIBC_SIN_COST))
}

/// The loop of powers, as `exp_kernel`.
pub(in crate::ops) fn pow_kernel() -> Option<Kernel> {
    pow_matches().then_some(tile::<Pow>)
}

/// The loop of the remainder, which is exact in every library.
pub(in crate::ops) fn remainder_kernel() -> Option<Kernel> {
    simd::has_fma().then_some(tile::<Remainder>)
}

macro_rules! function {
    (
        $name:ident, $sample_ranges:expr, |$x:ident, $y:ident| $call_library:expr, |$chunks:ident| $compute_chunks:expr
    ) => {
        struct $name;
        impl GlibcFunction for $name {
            const SAMPLE_RANGES: [(f64, f64); 2] = $sample_ranges;
            #[inline(always)]
            fn call_library($x: f64, $y: f64) -> f64 {
                $call_library
            }
            #[inline(always)]
            fn compute_chunks($chunks: ChunkedOperands<'_, Self>) {
                $compute_chunks
            }
        }
    };
}

const UNUSED_RANGE: (f64, f64) = (0.0, 1.0);

function!(Exp, [(-30.0, 30.0), UNUSED_RANGE], |x, _y| x.exp(), |chunks| exp(chunks));
function!(Log, [(0.01, 3.0), UNUSED_RANGE], |x, _y| x.ln(), |chunks| log(chunks));
function!(Sin, [(-20.0, 20.0), UNUSED_RANGE], |x, _y| x.sin(), |chunks| sine::sine::<false, _>(chunks));
function!(Cos, [(-20.0, 20.0), UNUSED_RANGE], |x, _y| x.cos(), |chunks| sine::sine::<true, _>(chunks));
function!(Pow, [(0.1, 10.0), (-20.0, 20.0)], |x, y| x.powf(y), |chunks| pow(chunks));
function!(Remainder, [(-10.0, 10.0), (-1.0, 1.0)], |x, y| x % y, |chunks| {
    for (x, y, out) in chunks.into_chunks() {
        for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
            *out = remainder(f64::load(x), f64::load(y)).store();
        }
        replace_nans::<Self>(x, y, out);
    }
});

// Exponentials

/// Adding this number (1.5 * 2^52) rounds to an integer, which is then in the low bits of the sum.
const ROUNDING_SHIFT: f64 = 6755399441055744.0;

/// The reciprocal of the step of the table, `128 / ln(2)`, and the step `ln(2) / 128` as the sum of
/// two numbers.
const INVERSE_EXP_STEP: f64 = 184.6649652337873;
const EXP_STEP_HIGH: f64 = 0.005415212348111709;
const EXP_STEP_LOW: f64 = 1.2864023111638346e-14;

/// Coefficients of `(expm1(r) - r) / r^2` for `|r| < ln(2) / 256`.
const EXPM1_GLIBC: [f64; 4] =
    [0.49999999999996786, 0.16666666666665886, 0.0416666808410674, 0.008333335853059549];

/// For arguments of a larger magnitude, the result or its scale may be out of range.
const MAX_EXP_MAGNITUDE: f64 = 512.0;

/// Returns the nearest integer to `x / (ln(2) / 128)`, plus `ROUNDING_SHIFT`.
#[inline(always)]
fn exp_steps(x: f64) -> f64 {
    x.mul_add(INVERSE_EXP_STEP, ROUNDING_SHIFT)
}

/// Returns `e^(x + tail)`, given the table row for `exp_steps(x)`.
#[inline(always)]
fn exp_with_row(x: f64, tail: Option<f64>, [scale_error, scale]: [u64; 2]) -> f64 {
    let shifted = exp_steps(x);
    let k = shifted - ROUNDING_SHIFT;
    let r = k.mul_add(-EXP_STEP_LOW, k.mul_add(-EXP_STEP_HIGH, x));
    let r = tail.map_or(r, |tail| r + tail);
    let scale = f64::from_bits(scale.wrapping_add(shifted.to_bits() << 45));
    let square = r * r;
    let low = r.mul_add(EXPM1_GLIBC[1], EXPM1_GLIBC[0]);
    let high = r.mul_add(EXPM1_GLIBC[3], EXPM1_GLIBC[2]);
    let sum = square.mul_add(low, f64::from_bits(scale_error) + r);
    let sum = (square * square).mul_add(high, sum);
    let result = scale.mul_add(sum, scale);
    if x.abs() < MAX_EXP_MAGNITUDE { result } else { f64::NAN }
}

/// Computes the exponential of each element.
#[inline(always)]
fn exp<F: GlibcFunction>(chunks: ChunkedOperands<'_, F>) {
    let mut rows = TableRows::new([0; 2]);
    for (x, y, out) in chunks.into_chunks() {
        let rows = rows.look_up(&EXP_TABLE.0, x.iter().map(|&x| exp_steps(f64::load(x)).to_bits()));
        for ((out, &x), &row) in out.iter_mut().zip(x).zip(rows) {
            *out = exp_with_row(f64::load(x), None, row).store();
        }
        replace_nans::<F>(x, y, out);
    }
}

// Logarithms

/// `ln(2)` as the sum of two numbers. The first one has 42 bits, so that its product with an
/// exponent is exact.
const LN_2_HIGH_42: f64 = 0.6931471805598903;
const LN_2_LOW_42: f64 = 5.497923018708371e-14;

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

const FRACTION_BITS: u32 = 52;
const TWO_52: f64 = 4503599627370496.0;

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

/// Returns the logarithm of `x`, given its table row.
#[inline(always)]
fn log_with_row(x: f64, inverse: f64, log: f64) -> f64 {
    let c = LOG1P;
    let (k, z) = split_significand(x, LOG_MIN_SIGNIFICAND);
    let r = z.mul_add(inverse, -1.0);
    let w = k.mul_add(LN_2_HIGH_42, log);
    let high = w + r;
    let low = k.mul_add(LN_2_LOW_42, w - high + r);
    let square = r * r;
    let p = square.mul_add(r.mul_add(c[4], c[3]), r.mul_add(c[2], c[1]));
    let result = (r * square).mul_add(p, square.mul_add(c[0], low)) + high;
    // A select between two results would be compiled so that rows are loaded one by one. Adding a
    // positive zero changes nothing, because no result is a negative zero.
    result + if is_positive_normal(x) { 0.0 } else { f64::NAN }
}

/// Returns the logarithm of an `x` near one.
#[inline(always)]
fn log_near(x: f64) -> f64 {
    const SPLITTER: f64 = 134217728.0;
    let c = LOG1P_NEAR_ONE;
    let r = x - 1.0;
    let (square, cube) = (r * r, r * (r * r));
    let p = cube.mul_add(c[10], square.mul_add(c[9], r.mul_add(c[8], c[7])));
    let p = cube.mul_add(p, square.mul_add(c[6], r.mul_add(c[5], c[4])));
    let p = cube.mul_add(p, square.mul_add(c[3], r.mul_add(c[2], c[1])));
    // Half of the square of r, without rounding error.
    let w = r * SPLITTER;
    let r_high = r + w - w;
    let r_low = r - r_high;
    let w = r_high * r_high * c[0];
    let high = r + w;
    let low = (c[0] * r_low).mul_add(r_high + r, r - high + w);
    cube.mul_add(p, low) + high
}

#[inline(always)]
fn is_near_one(x: f64) -> bool {
    (LOG_NEAR_ONE[0]..LOG_NEAR_ONE[1]).contains(&x)
}

/// Computes the logarithm of each element.
#[inline(always)]
fn log<F: GlibcFunction>(chunks: ChunkedOperands<'_, F>) {
    let mut rows = TableRows::new([0; 2]);
    for (x, y, out) in chunks.into_chunks() {
        let rows =
            rows.look_up(&LOG_TABLE.0, x.iter().map(|&x| log_row_index(f64::load(x), LOG_MIN_SIGNIFICAND)));
        let mut any_near = false;
        for ((out, &x), &[inverse, log]) in out.iter_mut().zip(x).zip(rows) {
            let x = f64::load(x);
            any_near |= is_near_one(x);
            *out = log_with_row(x, f64::from_bits(inverse), f64::from_bits(log)).store();
        }
        if any_near {
            for (out, &x) in out.iter_mut().zip(x) {
                let x = f64::load(x);
                let (near, far) = (log_near(x), f64::load(*out));
                *out = if is_near_one(x) { near } else { far }.store();
            }
        }
        replace_nans::<F>(x, y, out);
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

/// Returns `y log(x)` as the sum of two numbers, given the table row for `x`. The first number is
/// NaN if `x` or `y` needs a branch.
#[inline(always)]
fn times_log(x: f64, y: f64, [inverse, log, log_low, minus_one]: [f64; 4]) -> (f64, f64) {
    let c = LOG1P_POW;
    let (k, z) = split_significand(x, POW_LOG_MIN_SIGNIFICAND);
    let r = z.mul_add(inverse, minus_one);
    let w = k.mul_add(LN_2_HIGH_42, log);
    let sum = w + r;
    let low = k.mul_add(LN_2_LOW_42, log_low) + (w - sum + r);
    let half = c[0] * r;
    let square = r * half;
    let high = sum + square;
    let p = square.mul_add(r.mul_add(c[6], c[5]), r.mul_add(c[4], c[3]));
    let p = square.mul_add(p, r.mul_add(c[2], c[1]));
    let low = low + half.mul_add(r, -square) + (sum - high + square);
    let low = (r * square).mul_add(p, low);
    let log = high + low;
    let log_low = high - log + low;
    let product = y * log;
    let regular =
        is_positive_normal(x) & (y.abs() >= POW_EXPONENT_RANGE[0]) & (y.abs() < POW_EXPONENT_RANGE[1]);
    (if regular { product } else { f64::NAN }, y.mul_add(log_low, y.mul_add(log, -product)))
}

/// Computes the power of each element of `x` to the element of `y`.
#[inline(always)]
fn pow<F: GlibcFunction>(chunks: ChunkedOperands<'_, F>) {
    let (mut log_rows, mut rows) = (TableRows::new([0.0; 4]), TableRows::new([0; 2]));
    let (Aligned(high), Aligned(low)) =
        (&mut Aligned([[0; 8]; KERNEL_CHUNK_ELEMENTS]), &mut Aligned([0.0; KERNEL_CHUNK_ELEMENTS]));
    for (x, y, out) in chunks.into_chunks() {
        let (high, low) = (&mut high[..x.len()], &mut low[..x.len()]);
        let log_rows = log_rows.look_up(
            &POW_LOG_TABLE.0,
            x.iter().map(|&x| log_row_index(f64::load(x), POW_LOG_MIN_SIGNIFICAND)),
        );
        for ((((high, low), &x), &y), &row) in high.iter_mut().zip(&mut *low).zip(x).zip(y).zip(log_rows) {
            let (product, rest) = times_log(f64::load(x), f64::load(y), row);
            (*high, *low) = (product.store(), rest);
        }
        let rows = rows.look_up(&EXP_TABLE.0, high.iter().map(|&x| exp_steps(f64::load(x)).to_bits()));
        for (((out, &high), &low), &row) in out.iter_mut().zip(&*high).zip(&*low).zip(rows) {
            *out = exp_with_row(f64::load(high), Some(low), row).store();
        }
        replace_nans::<F>(x, y, out);
    }
}

// Remainder

/// Returns the exact remainder of `x` divided by `y`, with the sign of `x`, or NaN if the truncated
/// quotient is not below 2^52.
#[inline(always)]
fn remainder(x: f64, y: f64) -> f64 {
    let (a, b) = (x.abs(), y.abs());
    // The count is too large by one if the quotient was rounded up to an integer.
    let count = (a / b).trunc();
    let rest = (-count).mul_add(b, a);
    let rest = if rest < 0.0 { rest + b } else { rest };
    let rest = if a < b { a } else { rest };
    if count < TWO_52 { rest.copysign(x) } else { f64::NAN }
}
