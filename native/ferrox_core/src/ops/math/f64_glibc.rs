//! Functions of f64 with the bits that glibc gives, in loops that vectorize: those of which glibc has
//! the result within an ulp, and the remainder, which is exact.
//!
//! Problem: these functions must be those of the C library, which `:math` calls, but a call an
//! element takes ten times as long as NumPy or XLA. Technique: the algorithms of glibc, with the
//! same steps in the same order and fused where it fuses, on a chunk of elements at a time: a
//! vector loop finds the rows of a table, a scalar one copies them, a vector loop computes.
//! Arguments that need a branch there come out as NaN, and are asked of the C library one by one.
//!
//! Fused multiply-add is what glibc has from x86-64-v3 on. Below that, and where the C library
//! turns out to be another one ([`agrees`] compares results once), `kernel` gives none and the
//! caller asks the C library for each element, so that results are the library's in any case.
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

use self::tables::{EXP, LOG, LOG_FINE};
use crate::Fault;
use crate::dtype::Lane;
use crate::exec::elementwise::{CHUNK, Kernel, Operand};
use crate::exec::simd::{self, Aligned, Vectorized, dispatch as vectorize};
use crate::exec::threads::parallel::Cost;
use crate::ops::binary::BinaryOp;
use crate::ops::unary::UnaryOp;

/// For fewer, calls are faster.
const FEW: usize = 32;

/// An f64 as tensors hold it.
type Bytes = <f64 as Lane>::Bytes;

/// A function of one or two f64; the second argument of the former is ignored.
trait Function: Sized + 'static {
    /// Where the arguments lie that are compared with the C library's.
    const SAMPLES: [(f64, f64); 2];

    /// By the C library.
    fn one(x: f64, y: f64) -> f64;

    /// The same for many; NaN where `one` has to say.
    fn many(chunks: Chunks<'_, Self>);
}

/// Arguments, or one for all, and results.
struct Chunks<'a, F> {
    x: &'a [Bytes],
    y: &'a [Bytes],
    all: [&'a [Bytes; CHUNK]; 2],
    out: &'a mut [Bytes],
    function: PhantomData<F>,
}

impl<'a, F: Function> Chunks<'a, F> {
    /// `x`, `y` and `out` of a chunk after the other, to be settled when computed. Loops over
    /// elements can't be in closures, which don't get the instructions of who calls them.
    #[inline(always)]
    fn each(self) -> impl Iterator<Item = (&'a [Bytes], &'a [Bytes], &'a mut [Bytes])> {
        let Chunks { x, y, all, out, .. } = self;
        out.chunks_mut(CHUNK).enumerate().map(move |(k, out)| {
            let range = k * CHUNK..k * CHUNK + out.len();
            let [x, y] =
                [(x, all[0]), (y, all[1])].map(|(x, all)| x.get(range.clone()).unwrap_or(&all[..out.len()]));
            (x, y, out)
        })
    }
}

/// Asks the C library where a chunk says NaN.
#[inline(always)]
fn settle<F: Function>(x: &[Bytes], y: &[Bytes], out: &mut [Bytes]) {
    // Without an early exit, so that it vectorizes.
    if out.iter().fold(false, |any, &out| any | f64::load(out).is_nan()) {
        for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
            if f64::load(*out).is_nan() {
                *out = F::one(f64::load(x), f64::load(y)).store();
            }
        }
    }
}

/// Rows of a table that the elements of a chunk need, and which ones.
struct Rows<R> {
    rows: Aligned<[R; CHUNK]>,
    indices: Aligned<[u32; CHUNK]>,
}

impl<R: Copy> Rows<R> {
    #[inline(always)]
    fn new(row: R) -> Self {
        Rows { rows: Aligned([row; CHUNK]), indices: Aligned([0; CHUNK]) }
    }

    /// Those at the low bits of indices.
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

struct Loop<'a, 'b, F> {
    out: &'a mut [u8],
    operands: &'a [Operand<'b>],
    function: PhantomData<F>,
}

impl<F: Function> Vectorized for Loop<'_, '_, F> {
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
        let one = |x: Bytes, y: Bytes| F::one(f64::load(x), f64::load(y)).store();
        if x.is_empty() && y.is_empty() {
            out.fill(one(scalar[0], scalar[1]));
        } else if out.len() < FEW {
            for (i, out) in out.iter_mut().enumerate() {
                *out = one(*x.get(i).unwrap_or(&scalar[0]), *y.get(i).unwrap_or(&scalar[1]));
            }
        } else {
            let all = scalar.map(|value| [value; CHUNK]);
            F::many(Chunks { x, y, all: [&all[0], &all[1]], out, function: PhantomData });
        }
    }
}

fn tile<F: Function>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    vectorize(Loop::<F> { out, operands, function: PhantomData });
    Ok(())
}

/// Whether the C library gives the same bits: with another glibc, without fused multiply-add, or
/// in another library, some of the samples differ.
fn agrees<F: Function>() -> bool {
    const CHUNKS: usize = 16;
    /// Whose logarithms differ if nothing is fused, and whose sines and cosines if other steps are,
    /// which is rare.
    const RARE: [f64; 9] = [
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
    (0..CHUNKS).all(|_| {
        let mut bytes = [[0; 8 * CHUNK]; 3];
        let [out, left, right] = &mut bytes;
        for (x, y) in f64::view_mut(left).iter_mut().zip(f64::view_mut(right)) {
            (*x, *y) = (next(F::SAMPLES[0]).store(), next(F::SAMPLES[1]).store());
        }
        for (x, &rare) in f64::view_mut(left).iter_mut().zip(&RARE) {
            *x = rare.store();
        }
        vectorize(Loop::<F> {
            out,
            operands: &[Operand::Slice(left), Operand::Slice(right)],
            function: PhantomData,
        });
        let [out, left, right] = [out, left, right].map(|bytes| f64::view(bytes));
        out.iter().zip(left).zip(right).all(|((&out, &x), &y)| {
            let (out, expected) = (f64::load(out), F::one(f64::load(x), f64::load(y)));
            out.to_bits() == expected.to_bits() || out.is_nan() && expected.is_nan()
        })
    })
}

/// Whether loops made of the one for `exp` can be had here; the same for others.
macro_rules! known {
    ($($name:ident, $F:ident;)*) => {$(
        fn $name() -> bool {
            static AGREES: OnceLock<bool> = OnceLock::new();
            simd::has_fma() && *AGREES.get_or_init(agrees::<$F>)
        }
    )*};
}
known! {
    knows_exp, Exp;
    knows_log, Log;
    knows_sin, Sin;
    knows_cos, Cos;
    knows_pow, Pow;
}

/// The kernel of a unary function of f64 and what an element costs; none where the C library
/// must be asked.
pub(in crate::ops) fn unary(op: UnaryOp) -> Option<(Kernel, Cost)> {
    let (known, kernel, cost): (_, Kernel, _) = match op {
        UnaryOp::Exp => (knows_exp(), tile::<Exp>, 700),
        UnaryOp::Log => (knows_log(), tile::<Log>, 900),
        UnaryOp::Sin => (knows_sin(), tile::<Sin>, 2_000),
        UnaryOp::Cos => (knows_cos(), tile::<Cos>, 2_000),
        _ => return None,
    };
    known.then_some((kernel, cost))
}

/// The same of a binary one.
pub(in crate::ops) fn binary(op: BinaryOp) -> Option<Kernel> {
    match op {
        BinaryOp::Pow => knows_pow().then_some(tile::<Pow>),
        // Exact in any library.
        BinaryOp::Remainder => simd::has_fma().then_some(tile::<Remainder>),
        _ => None,
    }
}

macro_rules! function {
    (
        $name:ident, $samples:expr, |$x:ident, $y:ident| $one:expr, |$chunks:ident| $many:expr
    ) => {
        struct $name;
        impl Function for $name {
            const SAMPLES: [(f64, f64); 2] = $samples;
            #[inline(always)]
            fn one($x: f64, $y: f64) -> f64 {
                $one
            }
            #[inline(always)]
            fn many($chunks: Chunks<'_, Self>) {
                $many
            }
        }
    };
}

const ANY: (f64, f64) = (0.0, 1.0);

function!(Exp, [(-30.0, 30.0), ANY], |x, _y| x.exp(), |chunks| exp(chunks));
function!(Log, [(0.01, 3.0), ANY], |x, _y| x.ln(), |chunks| log(chunks));
function!(Sin, [(-20.0, 20.0), ANY], |x, _y| x.sin(), |chunks| sine::sine::<false, _>(chunks));
function!(Cos, [(-20.0, 20.0), ANY], |x, _y| x.cos(), |chunks| sine::sine::<true, _>(chunks));
function!(Pow, [(0.1, 10.0), (-20.0, 20.0)], |x, y| x.powf(y), |chunks| pow(chunks));
function!(Remainder, [(-10.0, 10.0), (-1.0, 1.0)], |x, y| x % y, |chunks| {
    for (x, y, out) in chunks.each() {
        for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
            *out = remainder(f64::load(x), f64::load(y)).store();
        }
        settle::<Self>(x, y, out);
    }
});

// Exponentials

/// Adding this rounds to an integer, which the low bits of the sum then hold (1.5 * 2^52).
const SHIFT: f64 = 6755399441055744.0;

/// `128 / ln(2)`, and `ln(2) / 128` in two parts.
const PARTS: f64 = 184.6649652337873;
const PART_HIGH: f64 = 0.005415212348111709;
const PART_LOW: f64 = 1.2864023111638346e-14;

/// `(expm1(r) - r) / r^2` for `|r| < ln(2) / 256`.
const EXPM1: [f64; 4] = [0.49999999999996786, 0.16666666666665886, 0.0416666808410674, 0.008333335853059549];

/// Beyond this, the result or its scale may leave the range.
const EXP_LIMIT: f64 = 512.0;

/// The nearest whole multiple of `ln(2) / 128`, plus `SHIFT`.
#[inline(always)]
fn parts(x: f64) -> f64 {
    x.mul_add(PARTS, SHIFT)
}

/// `e^(x + tail)`, given the row for `parts(x)`.
#[inline(always)]
fn exp_by(x: f64, tail: Option<f64>, [missing, scale]: [u64; 2]) -> f64 {
    let shifted = parts(x);
    let k = shifted - SHIFT;
    let r = k.mul_add(-PART_LOW, k.mul_add(-PART_HIGH, x));
    let r = tail.map_or(r, |tail| r + tail);
    let scale = f64::from_bits(scale.wrapping_add(shifted.to_bits() << 45));
    let square = r * r;
    let low = r.mul_add(EXPM1[1], EXPM1[0]);
    let high = r.mul_add(EXPM1[3], EXPM1[2]);
    let sum = square.mul_add(low, f64::from_bits(missing) + r);
    let sum = (square * square).mul_add(high, sum);
    let result = scale.mul_add(sum, scale);
    if x.abs() < EXP_LIMIT { result } else { f64::NAN }
}

/// The exponential of each element.
#[inline(always)]
fn exp<F: Function>(chunks: Chunks<'_, F>) {
    let mut rows = Rows::new([0; 2]);
    for (x, y, out) in chunks.each() {
        let rows = rows.look_up(&EXP.0, x.iter().map(|&x| parts(f64::load(x)).to_bits()));
        for ((out, &x), &row) in out.iter_mut().zip(x).zip(rows) {
            *out = exp_by(f64::load(x), None, row).store();
        }
        settle::<F>(x, y, out);
    }
}

// Logarithms

/// `ln(2)` in two parts.
const LN_2_HIGH: f64 = 0.6931471805598903;
const LN_2_LOW: f64 = 5.497923018708371e-14;

/// `(log1p(r) - r) / r^2` for small `r`, and to more digits for `|r| < 0.07`.
const LOG1P: [f64; 5] = [
    -0.5000000000000001,
    0.33333333331825593,
    -0.2499999999622955,
    0.20000304511814496,
    -0.16667054827627667,
];
const LOG1P_NEAR: [f64; 11] = [
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

/// Arguments from here on, up to the second, are near one.
const NEAR: [f64; 2] = [0.9375, 1.064697265625];

/// The least significands for `LOG` and `LOG_FINE`.
const LEAST: u64 = 0.6875_f64.to_bits();
const LEAST_FINE: u64 = 0x3fe6_9555_0000_0000;

const FRACTION_BITS: u32 = 52;
const TWO_52: f64 = 4503599627370496.0;

/// The index of the row for `x`, in the low bits.
#[inline(always)]
fn part(x: f64, least: u64) -> u64 {
    x.to_bits().wrapping_sub(least) >> (FRACTION_BITS - 7)
}

/// `(k, z)` with `x = 2^k z` and `z` from the least significand to twice that, for normal `x`.
#[inline(always)]
fn split(x: f64, least: u64) -> (f64, f64) {
    let t = x.to_bits().wrapping_sub(least);
    // k is counted from -1024 to keep the shift logical, and written into the fraction of 2^52.
    let k = t.wrapping_add(1024 << FRACTION_BITS) >> FRACTION_BITS;
    let k = f64::from_bits(k | TWO_52.to_bits()) - (TWO_52 + 1024.0);
    (k, f64::from_bits(x.to_bits().wrapping_sub(t & (0xfff << FRACTION_BITS))))
}

#[inline(always)]
fn is_positive_normal(x: f64) -> bool {
    (f64::MIN_POSITIVE..=f64::MAX).contains(&x)
}

/// The logarithm, given the row for `x`.
#[inline(always)]
fn log_by(x: f64, inverse: f64, log: f64) -> f64 {
    let c = LOG1P;
    let (k, z) = split(x, LEAST);
    let r = z.mul_add(inverse, -1.0);
    let w = k.mul_add(LN_2_HIGH, log);
    let high = w + r;
    let low = k.mul_add(LN_2_LOW, w - high + r);
    let square = r * r;
    let p = square.mul_add(r.mul_add(c[4], c[3]), r.mul_add(c[2], c[1]));
    let result = (r * square).mul_add(p, square.mul_add(c[0], low)) + high;
    // A choice of results would be compiled so that rows are loaded one by one. No result
    // is a negative zero.
    result + if is_positive_normal(x) { 0.0 } else { f64::NAN }
}

/// The logarithm near one.
#[inline(always)]
fn log_near(x: f64) -> f64 {
    const SPLIT: f64 = 134217728.0;
    let c = LOG1P_NEAR;
    let r = x - 1.0;
    let (square, cube) = (r * r, r * (r * r));
    let p = cube.mul_add(c[10], square.mul_add(c[9], r.mul_add(c[8], c[7])));
    let p = cube.mul_add(p, square.mul_add(c[6], r.mul_add(c[5], c[4])));
    let p = cube.mul_add(p, square.mul_add(c[3], r.mul_add(c[2], c[1])));
    // Half of the square, exactly.
    let w = r * SPLIT;
    let r_high = r + w - w;
    let r_low = r - r_high;
    let w = r_high * r_high * c[0];
    let high = r + w;
    let low = (c[0] * r_low).mul_add(r_high + r, r - high + w);
    cube.mul_add(p, low) + high
}

#[inline(always)]
fn is_near_one(x: f64) -> bool {
    (NEAR[0]..NEAR[1]).contains(&x)
}

/// The logarithm of each element.
#[inline(always)]
fn log<F: Function>(chunks: Chunks<'_, F>) {
    let mut rows = Rows::new([0; 2]);
    for (x, y, out) in chunks.each() {
        let rows = rows.look_up(&LOG.0, x.iter().map(|&x| part(f64::load(x), LEAST)));
        let mut any_near = false;
        for ((out, &x), &[inverse, log]) in out.iter_mut().zip(x).zip(rows) {
            let x = f64::load(x);
            any_near |= is_near_one(x);
            *out = log_by(x, f64::from_bits(inverse), f64::from_bits(log)).store();
        }
        if any_near {
            for (out, &x) in out.iter_mut().zip(x) {
                let x = f64::load(x);
                let (near, far) = (log_near(x), f64::load(*out));
                *out = if is_near_one(x) { near } else { far }.store();
            }
        }
        settle::<F>(x, y, out);
    }
}

// Powers

/// `(log1p(r) - r) / r^2` over `-r / 2` where that is squared.
const LOG1P_FINE: [f64; 7] = [
    -0.5,
    -0.6666666666666679,
    0.5000000000000007,
    0.7999999995323976,
    -0.6666666663487739,
    -1.142909628459501,
    1.0000415263675542,
];

/// Exponents from here on, up to the second, in magnitude, and powers of theirs.
const EXPONENTS: [f64; 2] = [2.710505431213761e-20, 9223372036854775808.0];

/// `y log(x)` in two parts, given the row for `x`; NaN where `x` or `y` needs a branch.
#[inline(always)]
fn log_times(x: f64, y: f64, [inverse, log, log_low, less]: [f64; 4]) -> (f64, f64) {
    let c = LOG1P_FINE;
    let (k, z) = split(x, LEAST_FINE);
    let r = z.mul_add(inverse, less);
    let w = k.mul_add(LN_2_HIGH, log);
    let sum = w + r;
    let low = k.mul_add(LN_2_LOW, log_low) + (w - sum + r);
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
    let regular = is_positive_normal(x) & (y.abs() >= EXPONENTS[0]) & (y.abs() < EXPONENTS[1]);
    (if regular { product } else { f64::NAN }, y.mul_add(log_low, y.mul_add(log, -product)))
}

/// The power of each element to the other.
#[inline(always)]
fn pow<F: Function>(chunks: Chunks<'_, F>) {
    let (mut fine, mut rows) = (Rows::new([0.0; 4]), Rows::new([0; 2]));
    let (Aligned(high), Aligned(low)) = (&mut Aligned([[0; 8]; CHUNK]), &mut Aligned([0.0; CHUNK]));
    for (x, y, out) in chunks.each() {
        let (high, low) = (&mut high[..x.len()], &mut low[..x.len()]);
        let fine = fine.look_up(&LOG_FINE.0, x.iter().map(|&x| part(f64::load(x), LEAST_FINE)));
        for ((((high, low), &x), &y), &row) in high.iter_mut().zip(&mut *low).zip(x).zip(y).zip(fine) {
            let (product, rest) = log_times(f64::load(x), f64::load(y), row);
            (*high, *low) = (product.store(), rest);
        }
        let rows = rows.look_up(&EXP.0, high.iter().map(|&x| parts(f64::load(x)).to_bits()));
        for (((out, &high), &low), &row) in out.iter_mut().zip(&*high).zip(&*low).zip(rows) {
            *out = exp_by(f64::load(high), Some(low), row).store();
        }
        settle::<F>(x, y, out);
    }
}

// Remainder

/// What is left of `x` after whole multiples of `y`, exactly; NaN where these don't fit an f64.
#[inline(always)]
fn remainder(x: f64, y: f64) -> f64 {
    let (a, b) = (x.abs(), y.abs());
    // One too many, if the quotient was rounded up to it.
    let count = (a / b).trunc();
    let rest = (-count).mul_add(b, a);
    let rest = if rest < 0.0 { rest + b } else { rest };
    let rest = if a < b { a } else { rest };
    if count < TWO_52 { rest.copysign(x) } else { f64::NAN }
}
