//! Floats of 8 and 16 bits, converted by bit operations that vectorize.
//!
//! They are storage only: kernels compute in `f32` or `f64` and round once, to
//! nearest with ties to even. `Nx.BinaryBackend` truncates bf16 and f8 instead;
//! rounding is the better answer, and what hardware and other backends give.

/// The nearest `f32` rounded to odd, from which a second rounding to at most
/// 22 bits gives the same result as rounding the `f64` once.
/// (Boldo and Melquiond, "When double rounding is odd", 2005.)
#[inline(always)]
fn round_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let bits = nearest.to_bits();
    let back = f64::from(nearest);
    let inexact = back != value && bits & 1 == 0 && nearest.is_finite() && !value.is_nan();
    // Step towards the value: away from zero when the nearest fell short of it.
    let away = back.abs() < value.abs();
    let odd = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    // The nearest of a value that overflows is an infinity, and stays one.
    if inexact { f32::from_bits(odd) } else { nearest }
}

/// Decodes a float of `MANTISSA` explicit bits and exponent bias `BIAS`.
/// The all-ones exponent is decoded as finite; callers treat it.
#[inline(always)]
fn decode<const MANTISSA: u32, const BIAS: u32>(magnitude: u32) -> f32 {
    let shifted = magnitude << (23 - MANTISSA);
    let normal = shifted + ((127 - BIAS) << 23);
    // A zero exponent: the implicit one is put in and subtracted again.
    let offset = f32::from_bits((128 - BIAS) << 23);
    let subnormal = f32::from_bits(shifted + ((128 - BIAS) << 23)) - offset;
    if magnitude >> MANTISSA == 0 { subnormal } else { f32::from_bits(normal) }
}

/// Rounds the bits of a non-negative finite `f32` to `MANTISSA` explicit bits
/// and exponent bias `BIAS`. A result past the largest finite value carries
/// into the exponent; callers treat it.
#[inline(always)]
fn encode<const MANTISSA: u32, const BIAS: u32>(magnitude: u32) -> u32 {
    let shift = 23 - MANTISSA;
    let odd = (magnitude >> shift) & 1;
    let normal =
        magnitude.wrapping_sub((127 - BIAS) << 23).wrapping_add((1 << (shift - 1)) - 1 + odd) >> shift;
    // Adding a power of two whose last place is the smallest subnormal makes
    // the adder round.
    let magic = (127 - BIAS + shift + 1) << 23;
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(magic)).to_bits().wrapping_sub(magic);
    if magnitude < (128 - BIAS) << 23 { subnormal } else { normal }
}

const INFINITY: u32 = 0x7f80_0000;

macro_rules! narrow {
    ($($(#[$doc:meta])* $name:ident($bits:ty), |$d:ident| $decode:expr, |$e:ident| $encode:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub $bits);

        impl $name {
            /// The same value in 32 bits.
            #[inline(always)]
            #[must_use]
            pub fn to_f32(self) -> f32 {
                const SIGN: u32 = <$bits>::BITS - 1;
                let bits = u32::from(self.0);
                let $d = bits & ((1 << SIGN) - 1);
                let magnitude: f32 = $decode;
                f32::from_bits(magnitude.to_bits() | (bits >> SIGN) << 31)
            }

            /// The nearest value.
            #[inline(always)]
            #[must_use]
            pub fn from_f32(value: f32) -> Self {
                const SIGN: u32 = <$bits>::BITS - 1;
                let bits = value.to_bits();
                let $e = bits & 0x7fff_ffff;
                let magnitude: u32 = $encode;
                Self((magnitude | (bits >> 31) << SIGN) as $bits)
            }

            /// The nearest value.
            #[inline(always)]
            #[must_use]
            pub fn from_f64(value: f64) -> Self {
                Self::from_f32(round_to_odd(value))
            }
        }
    )*};
}

narrow! {
    /// IEEE 754 half precision: 5 bits of exponent, 10 of mantissa.
    F16(u16),
    |x| if x >= 0x7c00 { f32::from_bits(x << 13 | INFINITY) } else { decode::<10, 15>(x) },
    |x| if x > INFINITY { x >> 13 & 0x3ff | 0x7e00 } else { encode::<10, 15>(x.min(0x4780_0000)).min(0x7c00) };

    /// The upper half of an `f32`.
    BF16(u16),
    |x| f32::from_bits(x << 16),
    |x| if x > INFINITY { 0x7fc0 } else { (x + 0x7fff + ((x >> 16) & 1)) >> 16 };

    /// E5M2: the upper half of an `F16`.
    F8(u8),
    |x| if x >= 0x7c { f32::from_bits(x << 21 | INFINITY) } else { decode::<2, 15>(x) },
    |x| if x > INFINITY { 0x7e } else { encode::<2, 15>(x.min(0x4780_0000)).min(0x7c) };

    /// E4M3FN: no infinities, and one NaN a sign. Values past the largest
    /// finite one, 448, and infinities become it, as in Nx.
    F8E4M3FN(u8),
    |x| if x == 0x7f { f32::NAN } else { decode::<3, 7>(x) },
    |x| if x > INFINITY { 0x7f } else { encode::<3, 7>(x.min(0x43e0_0000)).min(0x7e) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_agree_with_the_half_crate_on_every_value() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (F16(bits).to_f32(), half::f16::from_bits(bits).to_f32());
            assert!(ours == theirs || ours.is_nan() && theirs.is_nan(), "f16 {bits:#x}: {ours} {theirs}");
            let (ours, theirs) = (BF16(bits).to_f32(), half::bf16::from_bits(bits).to_f32());
            assert!(ours == theirs || ours.is_nan() && theirs.is_nan(), "bf16 {bits:#x}: {ours} {theirs}");
        }
    }

    #[test]
    fn rounding_to_halves_agrees_with_the_half_crate() {
        // Every 251st value (a prime, so that the low bits vary) and NaNs.
        for bits in (0..=u32::MAX).step_by(251) {
            let x = f32::from_bits(bits);
            let (ours, theirs) = (F16::from_f32(x).0, half::f16::from_f32(x).to_bits());
            assert!(
                ours == theirs || x.is_nan() && F16(ours).to_f32().is_nan(),
                "f16 {x} {ours:#x} {theirs:#x}"
            );
            let (ours, theirs) = (BF16::from_f32(x).0, half::bf16::from_f32(x).to_bits());
            assert!(
                ours == theirs || x.is_nan() && BF16(ours).to_f32().is_nan(),
                "bf16 {x} {ours:#x} {theirs:#x}"
            );
        }
    }

    /// Nearest by search over all 256 values, ties to even.
    fn nearest(value: f64, decode: impl Fn(u8) -> f32, largest: u8) -> u8 {
        let (mut best, mut distance) = (0u8, f64::INFINITY);
        for bits in 0..=largest {
            let d = (f64::from(decode(bits)) - value.abs()).abs();
            if d < distance || d == distance && bits & 1 == 0 {
                (best, distance) = (bits, d);
            }
        }
        best | if value.is_sign_negative() { 0x80 } else { 0 }
    }

    #[test]
    fn eight_bit_floats_round_to_the_nearest_of_their_values() {
        for bits in (0..=u32::MAX).step_by(9973) {
            let x = f32::from_bits(bits);
            if x.is_nan() {
                assert!(F8::from_f32(x).to_f32().is_nan() && F8E4M3FN::from_f32(x).to_f32().is_nan());
                continue;
            }
            assert_eq!(F8E4M3FN::from_f32(x).0, nearest(f64::from(x), |b| F8E4M3FN(b).to_f32(), 0x7e), "{x}");
            // Half way from the largest E5M2 value, 57344, to the next power of two is infinity.
            if x.abs() < 61440.0 {
                assert_eq!(F8::from_f32(x).0, nearest(f64::from(x), |b| F8(b).to_f32(), 0x7b), "{x}");
            } else {
                assert!(F8::from_f32(x).to_f32().is_infinite());
            }
        }
    }

    #[test]
    fn rounding_from_f64_rounds_once() {
        // Just above a tie of f16 that the nearest f32 falls on.
        let tie = 1.0 + f64::from(2.0f32.powi(-11));
        assert_eq!(F16::from_f64(tie).to_f32(), 1.0);
        assert_eq!(F16::from_f64(tie + 1e-12).to_f32(), 1.0 + 2.0f32.powi(-10));
        assert_eq!(BF16::from_f64(-(1.0 + 2.0f64.powi(-8) + 1e-13)).to_f32(), -(1.0 + 2.0f32.powi(-7)));
        assert_eq!(F16::from_f64(1e300).to_f32(), f32::INFINITY);
        assert_eq!(F16::from_f64(2f64.powi(-25) * 1.000_000_2).to_f32(), 2f32.powi(-24));
    }
}
