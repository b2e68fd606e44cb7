//! Hyperbolic tangent of f64, with the steps of fdlibm.
//!
//! `tanh` is derived from `s_tanh.c` and `s_expm1.c` of fdlibm:
//!
//! Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
//! Developed at SunPro, a Sun Microsystems, Inc. business.
//! Permission to use, copy, modify, and distribute this software is freely
//! granted, provided that this notice is preserved.

use super::{Chunks, FRACTION_BITS, Function, SHIFT, settle};
use crate::dtype::Lane;
use crate::exec::simd::Aligned;

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

/// From here on, the result is one, as what follows finds by itself.
const TANH_LIMIT: f64 = 22.0;

/// The first number that fdlibm, which looks at the upper half of its bits, takes to be above
/// `ln(2) / 2`.
const HALF: f64 = 0.34657359123229980;

/// Elements that are computed together.
const BLOCK: usize = 32;

/// What `tanh(x)` is computed from: `expm1` of this, which is in `(-2, 0]` or `[2, 44]`, or NaN.
#[inline(always)]
fn doubled(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > TANH_LIMIT { TANH_LIMIT } else { a };
    // By its bits, since all that follows would be compiled once for each choice.
    let negative = u64::from(a < 1.0) << 63;
    f64::from_bits((a + a).to_bits() | negative)
}

/// `(k, r, rest)` with `y = k ln(2) + r + rest`.
///
/// fdlibm has `k = -1` for `y` from `-HALF` to `-1.5 ln(2)` without asking, as comes out here.
#[inline(always)]
fn reduce(y: f64) -> (f64, f64, f64) {
    let k = y.mul_add(LOG2_E, 0.5_f64.copysign(y)).trunc();
    let k = if y.abs() < HALF { 0.0 } else { k };
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
///
/// fdlibm has a formula for each range of `k`. All are `(.. - (e - r)) 2^k - ..` but those of zero
/// and of 20 to 56; above, where the result of `tanh` is one, any will do.
#[inline(always)]
fn expm1(k: f64, r: f64, rest: f64, square: f64, e: f64) -> f64 {
    let whole = r - r.mul_add(e, -square);
    let e = r.mul_add(e - rest, -rest) - square;
    // 2^k and 2^-k, by their exponents.
    let shifted = (k + SHIFT).to_bits() << FRACTION_BITS;
    let up = f64::from_bits(1.0_f64.to_bits().wrapping_add(shifted));
    let down = f64::from_bits(1.0_f64.to_bits().wrapping_sub(shifted));
    let (plus, minus) = if k > 0.0 { (1.0 - down, 0.0) } else { (1.0, 1.0) };
    let (plus, minus) = if k == -1.0 { (0.0, 0.5) } else { (plus, minus) };
    let less = plus - (e - r);
    let large = (r - (e + down)) + 1.0;
    // Fused without a difference, since a product with 2^k is exact.
    let result = (if k >= 20.0 { large } else { less }).mul_add(up, -minus);
    if k == 0.0 { whole } else { result }
}

/// `tanh(x)`, given the `expm1`.
#[inline(always)]
fn tanh_by(x: f64, t: f64) -> f64 {
    // `t` is negative, or above six: one less a quotient, or a quotient of any sign. Without a
    // condition that both depend on, since there would be a division for each.
    let one = f64::from_bits(u64::from(t > 1.0).wrapping_neg() & 1.0_f64.to_bits());
    let over = if t > 2.0 { 2.0 } else { t };
    (one - over / (t + 2.0)).copysign(x)
}

/// `reduce` of what the elements of a block are computed from.
#[derive(Clone, Copy)]
struct Reduced {
    k: [f64; BLOCK],
    r: [f64; BLOCK],
    rest: [f64; BLOCK],
}

/// In two loops, since a processor overlaps few passes of a long one, with a division in each. The
/// first prepares the next block too, which shortens what waits for its division.
#[inline(always)]
pub(super) fn tanh<F: Function>(chunks: Chunks<'_, F>) {
    let zero = [0.0; BLOCK];
    let Aligned(reduced) = &mut Aligned([Reduced { k: zero, r: zero, rest: zero }; 2]);
    let Aligned((square, e)) = &mut Aligned((zero, zero));
    let [mut last, mut last_out] = [[[0; 8]; BLOCK]; 2];
    for (x, y, out) in chunks.each() {
        let ((blocks, tail), (outs, tail_out)) = (x.as_chunks::<BLOCK>(), out.as_chunks_mut::<BLOCK>());
        last[..tail.len()].copy_from_slice(tail);
        let all = || blocks.iter().chain((!tail.is_empty()).then_some(&last));
        if let Some(first) = all().next() {
            let [Reduced { k, r, rest }, _] = &mut *reduced;
            for i in 0..BLOCK {
                (k[i], r[i], rest[i]) = reduce(doubled(f64::load(first[i])));
            }
        }
        let mut following = all().skip(1);
        for (b, (x, out)) in all().zip(outs.iter_mut().chain([&mut last_out])).enumerate() {
            let next_x = following.next().unwrap_or(x);
            let [even, odd] = &mut *reduced;
            let (now, next) = if b % 2 == 0 { (even, odd) } else { (odd, even) };
            let Reduced { k, r, rest } = next;
            for i in 0..BLOCK {
                (square[i], e[i]) = quotient(now.r[i]);
                (k[i], r[i], rest[i]) = reduce(doubled(f64::load(next_x[i])));
            }
            for i in 0..BLOCK {
                let t = expm1(now.k[i], now.r[i], now.rest[i], square[i], e[i]);
                out[i] = tanh_by(f64::load(x[i]), t).store();
            }
        }
        tail_out.copy_from_slice(&last_out[..tail_out.len()]);
        settle::<F>(x, y, out);
    }
}
