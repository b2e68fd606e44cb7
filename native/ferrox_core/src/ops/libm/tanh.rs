//! Hyperbolic tangent of f64, with the steps of fdlibm.
//!
//! `tanh` is derived from `s_tanh.c` and `s_expm1.c` of fdlibm:
//!
//! Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
//! Developed at SunPro, a Sun Microsystems, Inc. business.
//! Permission to use, copy, modify, and distribute this software is freely
//! granted, provided that this notice is preserved.

use super::{Bytes, CHUNK, FRACTION_BITS, SHIFT};
use crate::dtype::Lane;

/// `ln(2)` in two parts, as fdlibm has it, and one over it.
const LN_2_LONG: f64 = 0.6931471803691238;
const LN_2_REST: f64 = 1.9082149292705877e-10;
const LOG2_E: f64 = std::f64::consts::LOG2_E;

/// Over `r^2 / 2`, of the quotient that `expm1` is made of.
const QUOTIENT: [f64; 5] = [
    -0.03333333333333313,
    0.0015873015872548146,
    -7.93650757867488e-05,
    4.008217827329362e-06,
    -2.0109921818362437e-07,
];

/// From here on, the result is one.
const TANH_LIMIT: f64 = 22.0;

/// `ln(2) / 2` and `3 ln(2) / 2` in the bits that fdlibm looks at.
const HALF: f64 = 0.3465733528137207;
const THREE_HALVES: f64 = 1.0397205352783203;

/// `2^k`
#[inline(always)]
fn power_of_two(k: f64) -> f64 {
    f64::from_bits(((k + SHIFT).to_bits() << FRACTION_BITS).wrapping_add(1.0_f64.to_bits()))
}

/// What `tanh(x)` is computed from: `expm1` of this.
#[inline(always)]
fn doubled(x: f64) -> f64 {
    let a = x.abs();
    let a = if a < TANH_LIMIT { a } else { TANH_LIMIT };
    // By its bits, since all that follows would be compiled once for each choice.
    let negative = u64::from(a < 1.0) << 63;
    f64::from_bits((a + a).to_bits() | negative)
}

/// `(k, r, rest)` with `y = k ln(2) + r + rest`, for `-2 < y <= 0` and `2 <= y <= 44`.
#[inline(always)]
fn reduce(y: f64) -> (f64, f64, f64) {
    let a = f64::from_bits(y.abs().to_bits() & !0xffff_ffff);
    let k = y.mul_add(LOG2_E, 0.5_f64.copysign(y)).trunc();
    let k = if a < THREE_HALVES { -1.0 } else { k };
    let k = if a > HALF { k } else { 0.0 };
    let high = (-k).mul_add(LN_2_LONG, y);
    let low = k * LN_2_REST;
    let r = high - low;
    (k, r, (high - r) - low)
}

/// `r^2 / 2`, and what `expm1(r)` lacks of `r + r^2 / 2`, over `r`.
#[inline(always)]
fn quotient(r: f64) -> (f64, f64) {
    let half = 0.5 * r;
    let square = r * half;
    let fourth = square * square;
    let c = QUOTIENT;
    let sum = square.mul_add(c[0], 1.0);
    let sum = fourth.mul_add(square.mul_add(c[2], c[1]), sum);
    let sum = (fourth * fourth).mul_add(square.mul_add(c[4], c[3]), sum);
    let t = (-sum).mul_add(half, 3.0);
    (square, square * ((sum - t) / (-r).mul_add(t, 6.0)))
}

/// `expm1`, given `reduce` of the argument and `quotient` of what is left of it.
#[inline(always)]
fn expm1(k: f64, r: f64, rest: f64, square: f64, e: f64) -> f64 {
    let whole = r - r.mul_add(e, -square);
    let e = r.mul_add(e - rest, -rest) - square;
    let (up, down) = (power_of_two(k), power_of_two(-k));
    let once = 0.5_f64.mul_add(r - e, -0.5);
    let small = (1.0 - (e - r)) * up - 1.0;
    let middle = ((1.0 - down) - (e - r)) * up;
    let large = ((r - (e + down)) + 1.0) * up;
    let result = if k >= 20.0 { large } else { middle };
    let result = if k <= -2.0 || k > 56.0 { small } else { result };
    let result = if k == -1.0 { once } else { result };
    if k == 0.0 { whole } else { result }
}

/// `tanh(x)`, given the `expm1`.
#[inline(always)]
fn tanh_by(x: f64, t: f64) -> f64 {
    let a = x.abs();
    let large = a >= 1.0;
    let quotient = (if large { 2.0 } else { -t }) / (t + 2.0);
    let result = if large { 1.0 - quotient } else { quotient };
    let result = if a < TANH_LIMIT { result } else { 1.0 };
    if x.is_nan() { x } else { result.copysign(x) }
}

/// In steps, since a processor overlaps few passes of a long loop.
#[inline(always)]
pub(super) fn tanh(x: &[Bytes], out: &mut [Bytes]) {
    let n = x.len();
    let [mut ks, mut rs, mut rests, mut squares] = [[0.0; CHUNK]; 4];
    let (ks, rs, rests, squares) = (&mut ks[..n], &mut rs[..n], &mut rests[..n], &mut squares[..n]);
    for (((k, r), rest), &x) in ks.iter_mut().zip(&mut *rs).zip(&mut *rests).zip(x) {
        (*k, *r, *rest) = reduce(doubled(f64::load(x)));
    }
    for ((out, square), &r) in out.iter_mut().zip(&mut *squares).zip(&*rs) {
        let (half, e) = quotient(r);
        (*square, *out) = (half, e.store());
    }
    let reduced = ks.iter().zip(&*rs).zip(&*rests).zip(&*squares);
    for (out, (((&k, &r), &rest), &square)) in out.iter_mut().zip(reduced) {
        *out = expm1(k, r, rest, square, f64::load(*out)).store();
    }
    for (out, &x) in out.iter_mut().zip(x) {
        *out = tanh_by(f64::load(x), f64::load(*out)).store();
    }
}
