//! f16 to f32 and back, by the instructions that processors have for that and for
//! nothing else of f16.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as arch;

#[cfg(target_arch = "x86_64")]
use super::{Avx512, Level, level};

type Half = [u8; 2];
type Single = [u8; 4];

/// Widens f16 to f32, as many of the first as fill vectors: how many, and none without
/// instructions for it.
#[must_use]
pub fn widen_halves(from: &[Half], to: &mut [Single]) -> usize {
    #[cfg(target_arch = "x86_64")]
    match level() {
        Level::Baseline => {}
        // SAFETY: as in `dispatch`.
        Level::V3 => return unsafe { widen_v3(from, to) },
        // SAFETY: as in `dispatch`.
        Level::V4 => return unsafe { widen_v4(from, to) },
    }
    let _ = (from, to);
    0
}

/// Rounds f32 to f16, as many of the first as fill vectors: how many, and none without
/// instructions for it.
#[must_use]
pub fn round_to_halves(from: &[Single], to: &mut [Half]) -> usize {
    #[cfg(target_arch = "x86_64")]
    match level() {
        Level::Baseline => {}
        // SAFETY: as in `dispatch`.
        Level::V3 => return unsafe { round_v3(from, to) },
        // SAFETY: as in `dispatch`.
        Level::V4 => return unsafe { round_v4(from, to) },
    }
    let _ = (from, to);
    0
}

#[cfg(target_arch = "x86_64")]
macro_rules! by_vectors {
    ($name:ident, $features:literal, $lanes:literal, $From:ty, $To:ty, |$from:ident, $to:ident| $one:expr) => {
        #[target_feature(enable = $features)]
        fn $name(from: &[$From], to: &mut [$To]) -> usize {
            let (from, to) = (from.as_chunks::<$lanes>().0, to.as_chunks_mut::<$lanes>().0);
            for (from, to) in from.iter().zip(&mut *to) {
                let ($from, $to) = (from.as_ptr().cast(), to.as_mut_ptr().cast());
                // SAFETY: both are borrowed, and as long as the vectors.
                unsafe { $one };
            }
            $lanes * from.len().min(to.len())
        }
    };
}

#[cfg(target_arch = "x86_64")]
by_vectors!(widen_v3, "avx,f16c", 8, Half, Single, |from, to| arch::_mm256_storeu_ps(
    to,
    arch::_mm256_cvtph_ps(arch::_mm_loadu_si128(from))
));
#[cfg(target_arch = "x86_64")]
by_vectors!(widen_v4, "avx512f", 16, Half, Single, |from, to| arch::_mm512_storeu_ps(
    to,
    arch::_mm512_cvtph_ps(arch::_mm256_loadu_si256(from))
));
// To the nearest.
#[cfg(target_arch = "x86_64")]
by_vectors!(round_v3, "avx,f16c", 8, Single, Half, |from, to| arch::_mm_storeu_si128(
    to,
    arch::_mm256_cvtps_ph::<0>(arch::_mm256_loadu_ps(from))
));
#[cfg(target_arch = "x86_64")]
by_vectors!(round_v4, "avx512f", 16, Single, Half, |from, to| arch::_mm256_storeu_si256(
    to,
    arch::_mm512_cvtps_ph::<0>(arch::_mm512_loadu_ps(from))
));

/// As many as a vector of f32 holds.
#[cfg(target_arch = "x86_64")]
pub const HALVES: usize = 16;
/// Those.
#[cfg(target_arch = "x86_64")]
pub type Halves = [Half; HALVES];
/// Those, widened.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Singles(arch::__m512);

/// Masks have a bit for each lane, the lowest for the first.
#[cfg(target_arch = "x86_64")]
macro_rules! singles {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $Arg:ty),*) -> $Out:ty = $body:expr;)*) => {
        impl Avx512 {$(
            $(#[$doc])*
            #[inline(always)]
            #[must_use]
            pub fn $name(self, $($arg: $Arg),*) -> $Out {
                // SAFETY: a `Avx512` is only made where the processor has the instructions,
                // and arrays are as long as the vectors.
                unsafe { $body }
            }
        )*}
    };
}

#[cfg(target_arch = "x86_64")]
singles! {
    /// f16 as f32.
    fn widen(halves: &Halves) -> Singles =
        Singles(arch::_mm512_cvtph_ps(arch::_mm256_loadu_si256(halves.as_ptr().cast())));
    /// f32 to the nearest f16.
    fn round(a: Singles) -> Halves = std::mem::transmute(arch::_mm512_cvtps_ph::<0>(a.0));
    /// Sums.
    fn add(a: Singles, b: Singles) -> Singles = Singles(arch::_mm512_add_ps(a.0, b.0));
    /// Differences.
    fn subtract(a: Singles, b: Singles) -> Singles = Singles(arch::_mm512_sub_ps(a.0, b.0));
    /// Products.
    fn multiply(a: Singles, b: Singles) -> Singles = Singles(arch::_mm512_mul_ps(a.0, b.0));
    /// Quotients.
    fn divide(a: Singles, b: Singles) -> Singles = Singles(arch::_mm512_div_ps(a.0, b.0));
    /// Where `a == b`.
    fn equal(a: Singles, b: Singles) -> u16 = arch::_mm512_cmp_ps_mask::<{ arch::_CMP_EQ_OQ }>(a.0, b.0);
    /// Where `a < b`.
    fn less(a: Singles, b: Singles) -> u16 = arch::_mm512_cmp_ps_mask::<{ arch::_CMP_LT_OQ }>(a.0, b.0);
    /// Where `a <= b`.
    fn less_equal(a: Singles, b: Singles) -> u16 = arch::_mm512_cmp_ps_mask::<{ arch::_CMP_LE_OQ }>(a.0, b.0);
    /// `a` where the mask says so, else `b`.
    fn choose(mask: u16, a: Singles, b: Singles) -> Singles = Singles(arch::_mm512_mask_blend_ps(mask, b.0, a.0));
    /// Ones where the mask says so, else zeros.
    fn truths(mask: u16) -> [u8; HALVES] = std::mem::transmute(arch::_mm_maskz_set1_epi8(mask, 1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::narrow::F16;

    #[test]
    fn instructions_agree_with_bit_operations() {
        let halves: Vec<Half> = (0..=u16::MAX).map(u16::to_ne_bytes).collect();
        let mut widened = vec![[0; 4]; halves.len()];
        let done = widen_halves(&halves, &mut widened);
        for (bits, widened) in (0..=u16::MAX).zip(&widened[..done]) {
            let (expected, got) = (F16(bits).to_f32(), f32::from_ne_bytes(*widened));
            assert!(got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(), "{bits:#x}");
        }
        // A prime, so that the low bits vary.
        let singles: Vec<u32> = (0..=u32::MAX).step_by(4_099).collect();
        let bytes: Vec<Single> = singles.iter().map(|bits| bits.to_ne_bytes()).collect();
        let mut rounded = vec![[0; 2]; bytes.len()];
        let done = round_to_halves(&bytes, &mut rounded);
        for (&bits, rounded) in singles.iter().zip(&rounded[..done]) {
            assert_eq!(u16::from_ne_bytes(*rounded), F16::from_f32(f32::from_bits(bits)).0, "{bits:#x}");
        }
    }
}
