//! Arguments for which functions of f32 have a shorter form.
//!
//! Problem: a comparison of each argument gives truths, which take as long to put together as some steps of the
//! function. Technique: the bits of arguments are moved such that those of a range come first among integers.
//! Then all arguments are in the range if their maximum is.

use crate::dtype::Lane;

/// A range of f32.
#[derive(Clone, Copy, Debug)]
pub struct PlainRange {
    /// The bits that are compared.
    mask: i32,
    /// What is added to them.
    shift: i32,
    /// The last number of the range, after that.
    last: i32,
}

/// All bits of an f32 but its sign.
const MAGNITUDE: i32 = i32::MAX;

/// The distance from infinity to the next power of two, if there were one.
const EXPONENT_STEP: i32 = 1 << 23;

const fn bits(x: f32) -> i32 {
    x.to_bits().cast_signed()
}

impl PlainRange {
    /// All numbers, infinities and NaN.
    pub const ALL: Self = PlainRange { mask: 0, shift: 0, last: 0 };

    /// Numbers up to a magnitude, which is not negative.
    pub const fn up_to(magnitude: f32) -> Self {
        assert!(magnitude >= 0.0);
        PlainRange { mask: MAGNITUDE, shift: 0, last: bits(magnitude) }
    }

    /// Numbers up to a magnitude, infinities and NaN.
    pub const fn up_to_or_infinite(magnitude: f32) -> Self {
        assert!(magnitude >= 0.0);
        // The sum overflows for infinities and NaN, and is negative.
        PlainRange { mask: MAGNITUDE, shift: EXPONENT_STEP, last: bits(magnitude) + EXPONENT_STEP }
    }

    /// Finite numbers from a positive one on.
    pub const fn finite_from(first: f32) -> Self {
        assert!(first > 0.0);
        let numbers = bits(f32::INFINITY) - 1 - bits(first);
        PlainRange { mask: -1, shift: i32::MIN.wrapping_sub(bits(first)), last: i32::MIN + numbers }
    }

    /// Whether all numbers are in the range.
    #[inline(always)]
    pub fn contains_all(self, x: &[<f32 as Lane>::Bytes]) -> bool {
        let place = |x| (bits(f32::load(x)) & self.mask).wrapping_add(self.shift);
        // The loop has no early exit, so that it vectorizes.
        x.iter().fold(i32::MIN, |most, &x| most.max(place(x))) <= self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::math::f32_functions::{MAX_SMALL_ANGLE, angle_is_small};

    #[test]
    fn small_angles_are_a_range() {
        let range = PlainRange::up_to_or_infinite(MAX_SMALL_ANGLE);
        for x in (0..=u32::MAX).step_by(1009).map(f32::from_bits) {
            assert_eq!(range.contains_all(&[x.store()]), angle_is_small(x), "{x}");
        }
    }

    #[test]
    fn ranges_contain_what_their_names_say() {
        let all = (0..=u32::MAX).step_by(977).map(f32::from_bits);
        let limits = [0.0, f32::from_bits(1), f32::MIN_POSITIVE, 1.0, 30.0, 87.0, 67_108_864.0, f32::MAX];
        let near = limits.iter().flat_map(|&x| [x, -x, x.next_up(), x.next_down(), -x.next_up()]);
        for x in all.chain(near).chain([f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN]) {
            let contains = |range: PlainRange| range.contains_all(&[x.store(), 1.0_f32.store(), x.store()]);
            assert!(contains(PlainRange::ALL), "{x}");
            for &limit in &limits[3..] {
                assert_eq!(contains(PlainRange::up_to(limit)), x.abs() <= limit, "{x} up to {limit}");
                let expected = x.abs() <= limit || !x.is_finite();
                assert_eq!(contains(PlainRange::up_to_or_infinite(limit)), expected, "{x} up to {limit}");
            }
            for &first in &limits[1..4] {
                let expected = x >= first && x < f32::INFINITY;
                assert_eq!(contains(PlainRange::finite_from(first)), expected, "{x} from {first}");
            }
        }
    }
}
