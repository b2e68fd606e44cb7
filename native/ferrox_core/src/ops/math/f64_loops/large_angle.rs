//! Angles of f64 that are so large that multiples of `pi / 2` can't be subtracted in a few operations.
//!
//! The method is that of Payne and Hanek, "Radian Reduction for Trigonometric Functions" (1983): the
//! angle is multiplied by those bits of `2 / pi` that decide on the quotient modulo four. What comes
//! before them adds multiples of four, and what comes after them too little to be seen.

use crate::ops::math::f32_functions::Arithmetic;
use crate::ops::math::f64_functions::circular::HALF_PI;
use crate::ops::math::f64_functions::fast_two_sum;

use super::FRACTION_BITS;

/// The bits of `2 / pi` after 64 zeros: the first bit of the second number stands for 1/2.
#[rustfmt::skip]
const TWO_OVER_PI_BITS: [u64; 21] = [
    0x0000_0000_0000_0000, 0xa2f9_836e_4e44_1529, 0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041, 0xfe51_63ab_debb_c561, 0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c, 0xfe1d_eb1c_b129_a73e, 0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41, 0x3991_d639_8353_39f4, 0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f, 0xef2f_118b_5a0a_6d1f, 0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d, 0x7527_bac7_ebe5_f17b, 0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08, 0x5603_3046_fc7b_6bab, 0xf0cf_bc20_9af4_361d,
];

/// Returns `(r, r_low, k)` with `x = (k + 4n) pi / 2 + r + r_low` for some integer `n` and `|r| <= pi
/// / 4`, or NaN if `x` is not finite. The magnitude of `x` is at least one.
pub(super) fn reduce<A: Arithmetic>(x: f64) -> (f64, f64, u64) {
    if !x.is_finite() {
        return (f64::NAN, f64::NAN, 0);
    }
    // x = significand * 2^exponent. The bits of the window stand for 2^(1 - exponent) and less.
    let significand = x.to_bits() & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS;
    let exponent = (x.to_bits() >> FRACTION_BITS & 0x7ff) as usize;
    let first_bit = exponent + 64 - 2 - (1023 + FRACTION_BITS as usize);
    let window = |limb: usize| {
        let (word, shift) = (first_bit / 64 + limb, first_bit % 64);
        let pair = u128::from(TWO_OVER_PI_BITS[word]) << 64 | u128::from(TWO_OVER_PI_BITS[word + 1]);
        u128::from((pair << shift >> 64) as u64)
    };
    // The product modulo 2^192, whose first two bits are before the point.
    let low = window(2) * u128::from(significand);
    let middle = window(1) * u128::from(significand) + (low >> 64);
    let high = (window(0) * u128::from(significand) + (middle >> 64)) as u64;
    let quadrant = high >> 62;
    let fraction =
        [high << 2 | middle as u64 >> 62, (middle as u64) << 2 | low as u64 >> 62, (low as u64) << 2];
    // The distance from the nearest integer: more than a half is less than the next one.
    let above = fraction[0] >> 63;
    let distance = if above == 1 { fraction.map(|limb| !limb) } else { fraction };
    let upper = u128::from(distance[0]) << 64 | u128::from(distance[1]);
    // No f64 is so close to a multiple of pi / 2 that the first 64 bits are all zero.
    let zeros = upper.leading_zeros();
    let digits = upper << zeros | u128::from(distance[2]) << zeros >> 64;
    let power = |bits: u32| f64::from_bits(u64::from(1023 - bits) << FRACTION_BITS);
    let turns = (digits >> 75) as f64 * power(53 + zeros);
    let turns_low = (digits << 53 >> 64) as f64 * power(53 + 64) * power(zeros);
    let [high, low] = HALF_PI;
    let r = turns * high;
    let r_low = A::fma(turns, high, -r) + A::fma(turns, low, turns_low * high);
    let (r, r_low) = fast_two_sum(r, r_low);
    let quadrant = quadrant.wrapping_add(above);
    let negate = (above == 1) != x.is_sign_negative();
    let quadrant = if x.is_sign_negative() { quadrant.wrapping_neg() } else { quadrant };
    if negate { (-r, -r_low, quadrant) } else { (r, r_low, quadrant) }
}
