//! f16 to f32 and back, by the instructions that processors have for that and for
//! nothing else of f16.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as arch;

#[cfg(target_arch = "x86_64")]
use crate::dtype::minifloat::{BF16, F16};
#[cfg(target_arch = "x86_64")]
use crate::exec::simd::{Avx2, Avx512, InstructionSet, Level, level};

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

/// As many floats of 16 bits as are computed with together.
#[cfg(target_arch = "x86_64")]
pub const HALVES: usize = 16;
/// Those.
#[cfg(target_arch = "x86_64")]
pub type Halves = [Half; HALVES];

/// What a set computes with as many f32, in whatever order `Widened` has them.
#[cfg(target_arch = "x86_64")]
pub trait Singles: InstructionSet {
    /// Them.
    type Vector: Copy;
    /// What holds for which of them.
    type Mask: Copy;

    /// Sums.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Differences.
    fn subtract(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Products.
    fn multiply(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Quotients.
    fn divide(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Where `a == b`.
    fn equal(self, a: Self::Vector, b: Self::Vector) -> Self::Mask;
    /// Where `a != b`.
    fn not_equal(self, a: Self::Vector, b: Self::Vector) -> Self::Mask;
    /// Where `a < b`.
    fn less(self, a: Self::Vector, b: Self::Vector) -> Self::Mask;
    /// Where `a <= b`.
    fn less_equal(self, a: Self::Vector, b: Self::Vector) -> Self::Mask;
    /// Where either mask says so.
    fn either(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// `a` where the mask says so, else `b`.
    fn choose(self, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Vector;
}

/// Floats of 16 bits that a set makes f32 of, and back.
#[cfg(target_arch = "x86_64")]
pub trait Widened<S: Singles>: 'static {
    /// As f32.
    fn widen(set: S, halves: &Halves) -> S::Vector;
    /// To the nearest.
    fn round(set: S, singles: S::Vector) -> Halves;
    /// Ones where the mask says so, else zeros.
    fn truths(set: S, mask: S::Mask) -> [u8; HALVES];
}

/// Of two vectors.
#[cfg(target_arch = "x86_64")]
macro_rules! singles {
    ($(fn $name:ident($a:ident, $b:ident) -> Self::$Out:ident = $body:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $a: Self::Vector, $b: Self::Vector) -> Self::$Out {
            // SAFETY: as above.
            unsafe { $body }
        }
    )*};
}

// SAFETY, of each block in what follows: a set is only made where the processor has the
// instructions, and arrays are as long as the vectors.

/// Masks have a bit for each lane, the lowest for the first.
#[cfg(target_arch = "x86_64")]
impl Singles for Avx512 {
    type Vector = arch::__m512;
    type Mask = u16;

    singles! {
        fn add(a, b) -> Self::Vector = arch::_mm512_add_ps(a, b);
        fn subtract(a, b) -> Self::Vector = arch::_mm512_sub_ps(a, b);
        fn multiply(a, b) -> Self::Vector = arch::_mm512_mul_ps(a, b);
        fn divide(a, b) -> Self::Vector = arch::_mm512_div_ps(a, b);
        fn equal(a, b) -> Self::Mask = arch::_mm512_cmp_ps_mask::<{ arch::_CMP_EQ_OQ }>(a, b);
        fn not_equal(a, b) -> Self::Mask = !arch::_mm512_cmp_ps_mask::<{ arch::_CMP_EQ_OQ }>(a, b);
        fn less(a, b) -> Self::Mask = arch::_mm512_cmp_ps_mask::<{ arch::_CMP_LT_OQ }>(a, b);
        fn less_equal(a, b) -> Self::Mask = arch::_mm512_cmp_ps_mask::<{ arch::_CMP_LE_OQ }>(a, b);
    }
    #[inline(always)]
    fn either(self, a: u16, b: u16) -> u16 {
        a | b
    }
    #[inline(always)]
    fn choose(self, mask: u16, a: arch::__m512, b: arch::__m512) -> arch::__m512 {
        // SAFETY: as above.
        unsafe { arch::_mm512_mask_blend_ps(mask, b, a) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Widened<Avx512> for F16 {
    #[inline(always)]
    fn widen(_: Avx512, halves: &Halves) -> arch::__m512 {
        // SAFETY: as above.
        unsafe { arch::_mm512_cvtph_ps(arch::_mm256_loadu_si256(halves.as_ptr().cast())) }
    }
    #[inline(always)]
    fn round(_: Avx512, singles: arch::__m512) -> Halves {
        // SAFETY: as above.
        unsafe { std::mem::transmute(arch::_mm512_cvtps_ph::<0>(singles)) }
    }
    #[inline(always)]
    fn truths(_: Avx512, mask: u16) -> [u8; HALVES] {
        // SAFETY: as above.
        unsafe { std::mem::transmute(arch::_mm_maskz_set1_epi8(mask, 1)) }
    }
}

/// Masks have all bits of a lane.
#[cfg(target_arch = "x86_64")]
impl Singles for Avx2 {
    type Vector = [arch::__m256; 2];
    type Mask = [arch::__m256; 2];

    singles! {
        fn add(a, b) -> Self::Vector = [arch::_mm256_add_ps(a[0], b[0]), arch::_mm256_add_ps(a[1], b[1])];
        fn subtract(a, b) -> Self::Vector = [arch::_mm256_sub_ps(a[0], b[0]), arch::_mm256_sub_ps(a[1], b[1])];
        fn multiply(a, b) -> Self::Vector = [arch::_mm256_mul_ps(a[0], b[0]), arch::_mm256_mul_ps(a[1], b[1])];
        fn divide(a, b) -> Self::Vector = [arch::_mm256_div_ps(a[0], b[0]), arch::_mm256_div_ps(a[1], b[1])];
        fn equal(a, b) -> Self::Mask = [arch::_mm256_cmp_ps::<{ arch::_CMP_EQ_OQ }>(a[0], b[0]), arch::_mm256_cmp_ps::<{ arch::_CMP_EQ_OQ }>(a[1], b[1])];
        fn not_equal(a, b) -> Self::Mask = [arch::_mm256_cmp_ps::<{ arch::_CMP_NEQ_UQ }>(a[0], b[0]), arch::_mm256_cmp_ps::<{ arch::_CMP_NEQ_UQ }>(a[1], b[1])];
        fn less(a, b) -> Self::Mask = [arch::_mm256_cmp_ps::<{ arch::_CMP_LT_OQ }>(a[0], b[0]), arch::_mm256_cmp_ps::<{ arch::_CMP_LT_OQ }>(a[1], b[1])];
        fn less_equal(a, b) -> Self::Mask = [arch::_mm256_cmp_ps::<{ arch::_CMP_LE_OQ }>(a[0], b[0]), arch::_mm256_cmp_ps::<{ arch::_CMP_LE_OQ }>(a[1], b[1])];
        fn either(a, b) -> Self::Mask = [arch::_mm256_or_ps(a[0], b[0]), arch::_mm256_or_ps(a[1], b[1])];
    }
    #[inline(always)]
    fn choose(self, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: as above.
        unsafe { [arch::_mm256_blendv_ps(b[0], a[0], mask[0]), arch::_mm256_blendv_ps(b[1], a[1], mask[1])] }
    }
}

/// Halves of the sixteen, one after the other.
#[cfg(target_arch = "x86_64")]
impl Widened<Avx2> for F16 {
    #[inline(always)]
    fn widen(_: Avx2, halves: &Halves) -> [arch::__m256; 2] {
        let (first, second) = (halves.as_ptr(), halves[8..].as_ptr());
        // SAFETY: as above.
        unsafe {
            [
                arch::_mm256_cvtph_ps(arch::_mm_loadu_si128(first.cast())),
                arch::_mm256_cvtph_ps(arch::_mm_loadu_si128(second.cast())),
            ]
        }
    }
    #[inline(always)]
    fn round(_: Avx2, [first, second]: [arch::__m256; 2]) -> Halves {
        // SAFETY: as above.
        unsafe {
            std::mem::transmute([arch::_mm256_cvtps_ph::<0>(first), arch::_mm256_cvtps_ph::<0>(second)])
        }
    }
    #[inline(always)]
    fn truths(_: Avx2, [first, second]: [arch::__m256; 2]) -> [u8; HALVES] {
        // SAFETY: as above.
        unsafe {
            let (first, second) = (arch::_mm256_castps_si256(first), arch::_mm256_castps_si256(second));
            let words = arch::_mm256_packs_epi32(first, second);
            truths(arch::_mm256_permute4x64_epi64::<0b11_01_10_00>(words))
        }
    }
}

/// Two neighbours are a word of 32 bits, of which a shift makes one of them an f32, and a mask
/// the other: the even ones, and then the odd ones.
#[cfg(target_arch = "x86_64")]
impl Widened<Avx2> for BF16 {
    #[inline(always)]
    fn widen(_: Avx2, halves: &Halves) -> [arch::__m256; 2] {
        // SAFETY: as above.
        unsafe {
            let words = arch::_mm256_loadu_si256(halves.as_ptr().cast());
            let even = arch::_mm256_slli_epi32::<16>(words);
            let odd = arch::_mm256_and_si256(words, arch::_mm256_set1_epi32(HIGH));
            [arch::_mm256_castsi256_ps(even), arch::_mm256_castsi256_ps(odd)]
        }
    }
    #[inline(always)]
    fn round(_: Avx2, [even, odd]: [arch::__m256; 2]) -> Halves {
        // SAFETY: as above.
        unsafe {
            let even = arch::_mm256_srli_epi32::<16>(to_upper(even));
            std::mem::transmute(arch::_mm256_blend_epi16::<0b1010_1010>(even, to_upper(odd)))
        }
    }
    #[inline(always)]
    fn truths(_: Avx2, [even, odd]: [arch::__m256; 2]) -> [u8; HALVES] {
        // SAFETY: as above.
        unsafe {
            let (even, odd) = (arch::_mm256_castps_si256(even), arch::_mm256_castps_si256(odd));
            truths(arch::_mm256_blend_epi16::<0b1010_1010>(even, odd))
        }
    }
}

/// Rounded to bf16, in the upper bits.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn to_upper(single: arch::__m256) -> arch::__m256i {
    let bits = arch::_mm256_castps_si256(single);
    let last = arch::_mm256_and_si256(arch::_mm256_srli_epi32::<16>(bits), arch::_mm256_set1_epi32(1));
    let bias = arch::_mm256_add_epi32(last, arch::_mm256_set1_epi32(0x7fff));
    let nearest = arch::_mm256_castsi256_ps(arch::_mm256_add_epi32(bits, bias));
    // Of NaN the sign stays.
    let sign = arch::_mm256_and_ps(single, arch::_mm256_set1_ps(-0.0));
    let nan = arch::_mm256_or_ps(sign, arch::_mm256_set1_ps(f32::NAN));
    let is_nan = arch::_mm256_cmp_ps::<{ arch::_CMP_UNORD_Q }>(single, single);
    arch::_mm256_castps_si256(arch::_mm256_blendv_ps(nearest, nan, is_nan))
}

/// The upper of two neighbours.
#[cfg(target_arch = "x86_64")]
const HIGH: i32 = -1 << 16;

/// Ones for words of all bits.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn truths(words: arch::__m256i) -> [u8; HALVES] {
    let (first, second) = (arch::_mm256_castsi256_si128(words), arch::_mm256_extracti128_si256::<1>(words));
    let ones = arch::_mm_and_si128(arch::_mm_packs_epi16(first, second), arch::_mm_set1_epi8(1));
    // SAFETY: both have as many bytes, and any will do.
    unsafe { std::mem::transmute(ones) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::minifloat::F16;

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
