//! Error functions of f64, with the steps of those in `double`, which are derived from fdlibm.
//!
//! Problem: there is a quotient of polynomials for each of four ranges, and elements of all of them
//! lie beside each other. Technique: the coefficients are chosen for each element, those that a
//! range hasn't being zero, which changes no bit of a sum; what follows is chosen in turn.

use super::{CHUNK, Chunks, EXP, Function, Rows, exp_by, parts, settle};
use crate::dtype::Lane;
use crate::exec::simd::Aligned;
use crate::ops::double::{
    ERF_ONE, FAR, FAR_DENOMINATOR, FAR_NUMERATOR, MIDDLE, MIDDLE_DENOMINATOR, MIDDLE_NUMERATOR,
    NEAR_DENOMINATOR, NEAR_NUMERATOR, REMOTE_DENOMINATOR, REMOTE_NUMERATOR, SLOPE, SMALL, TINY, by_pairs,
    few_bits,
};

/// Coefficients of the last range, and by which bits those of the ones before differ from those of
/// the next: to choose by bits is no branch, and no choice of where to load from.
const fn differences<const LENGTH: usize>(ranges: [&[f64]; 4]) -> [[u64; LENGTH]; 4] {
    let mut bits = [[0; LENGTH]; 4];
    let mut range = 4;
    while range > 0 {
        range -= 1;
        let mut i = 0;
        while i < LENGTH {
            if i < ranges[range].len() {
                bits[range][i] = ranges[range][i].to_bits();
            }
            if range < 3 && i < ranges[range + 1].len() {
                bits[range][i] ^= ranges[range + 1][i].to_bits();
            }
            i += 1;
        }
    }
    bits
}

const NUMERATORS: [[u64; 8]; 4] =
    differences([&NEAR_NUMERATOR, &MIDDLE_NUMERATOR, &FAR_NUMERATOR, &REMOTE_NUMERATOR]);
const DENOMINATORS: [[u64; 9]; 4] =
    differences([&NEAR_DENOMINATOR, &MIDDLE_DENOMINATOR, &FAR_DENOMINATOR, &REMOTE_DENOMINATOR]);

/// The quotient of polynomials of the range of `a`.
#[inline(always)]
fn quotient(a: f64, remote: f64) -> f64 {
    let square = a * a;
    let t = if a < FAR { a - 1.0 } else { 1.0 / square };
    let t = if a < MIDDLE { square } else { t };
    let below = [MIDDLE, FAR, remote].map(|end| u64::from(a < end).wrapping_neg());
    by_pairs(t, chosen(below, &NUMERATORS)) / by_pairs(t, chosen(below, &DENOMINATORS))
}

/// The coefficients of the range that ends above, and where none does of the last.
#[inline(always)]
fn chosen<const N: usize>(below: [u64; 3], [near, middle, far, last]: &[[u64; N]; 4]) -> [f64; N] {
    std::array::from_fn(|i| {
        f64::from_bits(last[i] ^ far[i] & below[2] ^ middle[i] & below[1] ^ near[i] & below[0])
    })
}

/// `erf(x)` of a small argument, given the quotient of its range; NaN where products may be
/// subnormal.
#[inline(always)]
fn near(x: f64, quotient: f64) -> f64 {
    let a = x.abs();
    let sum = x + x * quotient;
    let line = x + SLOPE * x;
    let line = if a < SMALL && a > 0.0 { f64::NAN } else { line };
    if a < TINY { line } else { sum }
}

/// `erf(x)`, given the quotient of its range, and `erfc(a)` for arguments that are far.
#[inline(always)]
pub(super) fn erf_by(x: f64, quotient: f64, tail: f64) -> f64 {
    let a = x.abs();
    let far = if a < 6.0 { 1.0 - tail } else { 1.0 };
    let large = if a < FAR { ERF_ONE + quotient } else { far };
    let result = if a < MIDDLE { near(x, quotient) } else { large.copysign(x) };
    if a.is_nan() { a } else { result }
}

/// `erfc(x)`, given the same.
#[inline(always)]
pub(super) fn erfc_by(x: f64, quotient: f64, tail: f64) -> f64 {
    let a = x.abs();
    let far = if x > 0.0 { tail } else { 2.0 - tail };
    let far = if x < -6.0 { 2.0 } else { far };
    let far = if a < 28.0 { far } else { 1.0 - x.signum() };
    let middle = if x > 0.0 { 1.0 - ERF_ONE - quotient } else { 1.0 + (ERF_ONE + quotient) };
    let y = x * quotient;
    let near = if x < 0.25 { 1.0 - (x + y) } else { 0.5 - (y + (x - 0.5)) };
    // As it comes out without a quotient.
    let near = if a < 1.0 / (1_u64 << 56) as f64 { 1.0 - x } else { near };
    let result = if a < FAR { middle } else { far };
    let result = if a < MIDDLE { near } else { result };
    if a.is_nan() { a } else { result }
}

/// `by` of each element, of the quotient of its range, and of `erfc` of its magnitude if that is far.
#[inline(always)]
pub(super) fn erfs<F: Function>(chunks: Chunks<'_, F>, remote: f64, by: impl Fn(f64, f64, f64) -> f64) {
    let mut rows = [Rows::new([0; 2]), Rows::new([0; 2])];
    let Aligned([quotients, tails]) = &mut Aligned([[0.0; CHUNK]; 2]);
    for (x, y, out) in chunks.each() {
        for (quotient, &x) in quotients.iter_mut().zip(x) {
            *quotient = self::quotient(f64::load(x).abs(), remote);
        }
        let is_far = |x: f64| x.abs() >= FAR;
        if x.iter().fold(false, |any, &x| any | is_far(f64::load(x))) {
            // Of its magnitude, what `exp` is taken of.
            let square = |x: f64| {
                let z = few_bits(x.abs());
                -z * z - 0.5625
            };
            let rest = |x: f64, quotient: f64| {
                let (a, z) = (x.abs(), few_bits(x.abs()));
                (z - a) * (z + a) + quotient
            };
            let [first, second] = &mut rows;
            let first = first.look_up(&EXP.0, x.iter().map(|&x| parts(square(f64::load(x))).to_bits()));
            let both = x.iter().zip(&*quotients);
            let second = second.look_up(&EXP.0, both.map(|(&x, &q)| parts(rest(f64::load(x), q)).to_bits()));
            let rows = first.iter().zip(second);
            for (((tail, &x), &q), (&first, &second)) in tails.iter_mut().zip(x).zip(&*quotients).zip(rows) {
                let x = f64::load(x);
                let product = exp_by(square(x), None, first) * exp_by(rest(x, q), None, second);
                *tail = product / x.abs();
            }
        }
        for (((out, &x), &quotient), &tail) in out.iter_mut().zip(x).zip(&*quotients).zip(&*tails) {
            *out = by(f64::load(x), quotient, tail).store();
        }
        settle::<F>(x, y, out);
    }
}
