//! Floats of 16 bits in vectors: conversions of slices between f16 and f32, and vectors of f16 and
//! bf16 that are computed with in f32.
//!
//! x86-64 processors with F16C convert f16 to f32 and back, and have no other instructions for f16. All
//! AArch64 processors convert; what some of them compute in f16 isn't used, because the results here
//! are those of f32, rounded.

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use std::arch::asm;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as arch;

#[cfg(target_arch = "x86_64")]
use crate::dtype::minifloat::{BF16, F16};
#[cfg(target_arch = "x86_64")]
use crate::exec::simd::{Avx2, Avx512, InstructionSet, Level, level};

type HalfBytes = [u8; 2];
type SingleBytes = [u8; 4];

/// Calls the conversion by the processor's vectors, if it has the instructions, and gives the number of
/// converted elements.
macro_rules! by_vectors {
    ($from:ident, $to:ident, $v3:ident, $v4:ident, $neon:ident) => {{
        #[cfg(target_arch = "x86_64")]
        let done = match level() {
            Level::Baseline => 0,
            // SAFETY: as in `dispatch`.
            Level::V3 => unsafe { $v3($from, $to) },
            // SAFETY: as in `dispatch`.
            Level::V4 => unsafe { $v4($from, $to) },
        };
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        let done = $neon($from, $to);
        #[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
        let done = {
            let _ = ($from, $to);
            0
        };
        done
    }};
}

/// Converts the leading f16 that fill whole vectors to f32. Returns their number, which is zero on
/// processors without the instructions.
#[must_use]
pub fn widen_halves(from: &[HalfBytes], to: &mut [SingleBytes]) -> usize {
    by_vectors!(from, to, widen_v3, widen_v4, widen_neon)
}

/// Rounds the leading f32 that fill whole vectors to f16. Returns their number, which is zero on
/// processors without the instructions.
#[must_use]
pub fn round_to_halves(from: &[SingleBytes], to: &mut [HalfBytes]) -> usize {
    by_vectors!(from, to, round_v3, round_v4, round_neon)
}

#[cfg(target_arch = "x86_64")]
macro_rules! convert_by_vectors {
    ($name:ident, $features:literal, $lanes:literal, $From:ty, $To:ty, |$from:ident, $to:ident| $one:expr) => {
        #[target_feature(enable = $features)]
        fn $name(from: &[$From], to: &mut [$To]) -> usize {
            let (from, to) = (from.as_chunks::<$lanes>().0, to.as_chunks_mut::<$lanes>().0);
            for (from, to) in from.iter().zip(&mut *to) {
                let ($from, $to) = (from.as_ptr().cast(), to.as_mut_ptr().cast());
                // SAFETY: both arrays are borrowed, and as long as the vectors.
                unsafe { $one };
            }
            $lanes * from.len().min(to.len())
        }
    };
}

#[cfg(target_arch = "x86_64")]
convert_by_vectors!(widen_v3, "avx,f16c", 8, HalfBytes, SingleBytes, |from, to| arch::_mm256_storeu_ps(
    to,
    arch::_mm256_cvtph_ps(arch::_mm_loadu_si128(from))
));
#[cfg(target_arch = "x86_64")]
convert_by_vectors!(widen_v4, "avx512f", 16, HalfBytes, SingleBytes, |from, to| arch::_mm512_storeu_ps(
    to,
    arch::_mm512_cvtph_ps(arch::_mm256_loadu_si256(from))
));
// The rounding mode `0` is to nearest, ties to even.
#[cfg(target_arch = "x86_64")]
convert_by_vectors!(round_v3, "avx,f16c", 8, SingleBytes, HalfBytes, |from, to| arch::_mm_storeu_si128(
    to,
    arch::_mm256_cvtps_ph::<0>(arch::_mm256_loadu_ps(from))
));
#[cfg(target_arch = "x86_64")]
convert_by_vectors!(round_v4, "avx512f", 16, SingleBytes, HalfBytes, |from, to| arch::_mm256_storeu_si256(
    to,
    arch::_mm512_cvtps_ph::<0>(arch::_mm512_loadu_ps(from))
));

/// The number of f16 in a NEON vector.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
const NEON_HALVES: usize = 8;

/// Defines a conversion by NEON, whose instructions `std::arch` has no stable functions for: of the
/// elements at `from` to those at `to`, with three vectors.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
macro_rules! convert_by_neon {
    ($name:ident, $From:ty, $To:ty, $($instruction:literal),*) => {
        fn $name(from: &[$From], to: &mut [$To]) -> usize {
            let (from, to) = (from.as_chunks::<NEON_HALVES>().0, to.as_chunks_mut::<NEON_HALVES>().0);
            for (from, to) in from.iter().zip(&mut *to) {
                // SAFETY: both arrays are borrowed, and as long as the vectors. All AArch64 targets of
                // Rust have NEON, and no instruction needs an alignment.
                unsafe {
                    asm!(
                        $($instruction),*,
                        from = in(reg) from.as_ptr(),
                        to = in(reg) to.as_mut_ptr(),
                        halves = out(vreg) _,
                        low = out(vreg) _,
                        high = out(vreg) _,
                        options(nostack, preserves_flags),
                    );
                }
            }
            NEON_HALVES * from.len().min(to.len())
        }
    };
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
convert_by_neon!(
    widen_neon,
    HalfBytes,
    SingleBytes,
    "ldr {halves:q}, [{from}]",
    "fcvtl {low:v}.4s, {halves:v}.4h",
    "fcvtl2 {high:v}.4s, {halves:v}.8h",
    "stp {low:q}, {high:q}, [{to}]"
);
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
convert_by_neon!(
    round_neon,
    SingleBytes,
    HalfBytes,
    "ldp {low:q}, {high:q}, [{from}]",
    "fcvtn {halves:v}.4h, {low:v}.4s",
    "fcvtn2 {halves:v}.8h, {high:v}.4s",
    "str {halves:q}, [{to}]"
);

/// The number of floats of 16 bits in a [`HalfVector`].
#[cfg(target_arch = "x86_64")]
pub const HALF_LANES: usize = 16;
/// The floats of 16 bits that are computed with together.
#[cfg(target_arch = "x86_64")]
pub type HalfVector = [HalfBytes; HALF_LANES];

/// Operations of an instruction set on [`HALF_LANES`] f32, in the order in which [`WidenToF32`]
/// puts them.
#[cfg(target_arch = "x86_64")]
pub trait F32VectorOps: InstructionSet {
    /// The f32, in one vector or two.
    type Vector: Copy;
    /// One truth value per f32.
    type Mask: Copy;

    /// The sum of each pair of lanes.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The difference of each pair of lanes.
    fn subtract(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The product of each pair of lanes.
    fn multiply(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The quotient of each pair of lanes.
    fn divide(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The mask of the lanes where `a == b`.
    fn equal(self, a: Self::Vector, b: Self::Vector) -> Self::Mask;
    /// The mask of the lanes where `a != b`.
    fn not_equal(self, a: Self::Vector, b: Self::Vector) -> Self::Mask;
    /// The mask of the lanes where `a < b`.
    fn less(self, a: Self::Vector, b: Self::Vector) -> Self::Mask;
    /// The mask of the lanes where `a <= b`.
    fn less_equal(self, a: Self::Vector, b: Self::Vector) -> Self::Mask;
    /// The lanes that are set in either mask.
    fn or(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// The lane of `a` where the mask is set, else the lane of `b`.
    fn select(self, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Vector;
}

/// A float of 16 bits that an instruction set converts to f32 and back.
#[cfg(target_arch = "x86_64")]
pub trait WidenToF32<S: F32VectorOps>: 'static {
    /// The floats as f32, in an order that depends on the implementation.
    fn widen(set: S, halves: &HalfVector) -> S::Vector;
    /// Rounds to the nearest float of 16 bits, and restores the order.
    fn round(set: S, singles: S::Vector) -> HalfVector;
    /// One byte per float, in the order of the floats: one where the mask is set, else zero.
    fn mask_to_bytes(set: S, mask: S::Mask) -> [u8; HALF_LANES];
}

/// Defines operations on two vectors.
#[cfg(target_arch = "x86_64")]
macro_rules! binary_ops {
    ($(fn $name:ident($a:ident, $b:ident) -> Self::$Out:ident = $body:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $a: Self::Vector, $b: Self::Vector) -> Self::$Out {
            // SAFETY: as above.
            unsafe { $body }
        }
    )*};
}

// SAFETY of each block below: an instruction set's value exists only if the processor has the
// instructions, and arrays are as long as the vectors.

/// Masks have one bit per lane, the lowest bit for the first lane.
#[cfg(target_arch = "x86_64")]
impl F32VectorOps for Avx512 {
    type Vector = arch::__m512;
    type Mask = u16;

    binary_ops! {
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
    fn or(self, a: u16, b: u16) -> u16 {
        a | b
    }
    #[inline(always)]
    fn select(self, mask: u16, a: arch::__m512, b: arch::__m512) -> arch::__m512 {
        // SAFETY: as above.
        unsafe { arch::_mm512_mask_blend_ps(mask, b, a) }
    }
}

#[cfg(target_arch = "x86_64")]
impl WidenToF32<Avx512> for F16 {
    #[inline(always)]
    fn widen(_: Avx512, halves: &HalfVector) -> arch::__m512 {
        // SAFETY: as above.
        unsafe { arch::_mm512_cvtph_ps(arch::_mm256_loadu_si256(halves.as_ptr().cast())) }
    }
    #[inline(always)]
    fn round(_: Avx512, singles: arch::__m512) -> HalfVector {
        // SAFETY: as above.
        unsafe { std::mem::transmute(arch::_mm512_cvtps_ph::<0>(singles)) }
    }
    #[inline(always)]
    fn mask_to_bytes(_: Avx512, mask: u16) -> [u8; HALF_LANES] {
        // SAFETY: as above.
        unsafe { std::mem::transmute(arch::_mm_maskz_set1_epi8(mask, 1)) }
    }
}

/// Masks have all bits of a lane set, or none.
#[cfg(target_arch = "x86_64")]
impl F32VectorOps for Avx2 {
    type Vector = [arch::__m256; 2];
    type Mask = [arch::__m256; 2];

    binary_ops! {
        fn add(a, b) -> Self::Vector = [arch::_mm256_add_ps(a[0], b[0]), arch::_mm256_add_ps(a[1], b[1])];
        fn subtract(a, b) -> Self::Vector = [arch::_mm256_sub_ps(a[0], b[0]), arch::_mm256_sub_ps(a[1], b[1])];
        fn multiply(a, b) -> Self::Vector = [arch::_mm256_mul_ps(a[0], b[0]), arch::_mm256_mul_ps(a[1], b[1])];
        fn divide(a, b) -> Self::Vector = [arch::_mm256_div_ps(a[0], b[0]), arch::_mm256_div_ps(a[1], b[1])];
        fn equal(a, b) -> Self::Mask = [arch::_mm256_cmp_ps::<{ arch::_CMP_EQ_OQ }>(a[0], b[0]), arch::_mm256_cmp_ps::<{ arch::_CMP_EQ_OQ }>(a[1], b[1])];
        fn not_equal(a, b) -> Self::Mask = [arch::_mm256_cmp_ps::<{ arch::_CMP_NEQ_UQ }>(a[0], b[0]), arch::_mm256_cmp_ps::<{ arch::_CMP_NEQ_UQ }>(a[1], b[1])];
        fn less(a, b) -> Self::Mask = [arch::_mm256_cmp_ps::<{ arch::_CMP_LT_OQ }>(a[0], b[0]), arch::_mm256_cmp_ps::<{ arch::_CMP_LT_OQ }>(a[1], b[1])];
        fn less_equal(a, b) -> Self::Mask = [arch::_mm256_cmp_ps::<{ arch::_CMP_LE_OQ }>(a[0], b[0]), arch::_mm256_cmp_ps::<{ arch::_CMP_LE_OQ }>(a[1], b[1])];
        fn or(a, b) -> Self::Mask = [arch::_mm256_or_ps(a[0], b[0]), arch::_mm256_or_ps(a[1], b[1])];
    }
    #[inline(always)]
    fn select(self, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: as above.
        unsafe { [arch::_mm256_blendv_ps(b[0], a[0], mask[0]), arch::_mm256_blendv_ps(b[1], a[1], mask[1])] }
    }
}

/// The first vector holds the first eight floats, the second vector the other eight.
#[cfg(target_arch = "x86_64")]
impl WidenToF32<Avx2> for F16 {
    #[inline(always)]
    fn widen(_: Avx2, halves: &HalfVector) -> [arch::__m256; 2] {
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
    fn round(_: Avx2, [first, second]: [arch::__m256; 2]) -> HalfVector {
        // SAFETY: as above.
        unsafe {
            std::mem::transmute([arch::_mm256_cvtps_ph::<0>(first), arch::_mm256_cvtps_ph::<0>(second)])
        }
    }
    #[inline(always)]
    fn mask_to_bytes(_: Avx2, [first, second]: [arch::__m256; 2]) -> [u8; HALF_LANES] {
        // SAFETY: as above.
        unsafe {
            let (first, second) = (arch::_mm256_castps_si256(first), arch::_mm256_castps_si256(second));
            let words = arch::_mm256_packs_epi32(first, second);
            mask_to_bytes(arch::_mm256_permute4x64_epi64::<0b11_01_10_00>(words))
        }
    }
}

/// Two neighbours are one 32-bit word: a shift makes the even float an f32, and a mask the odd one.
/// The first vector holds the even floats, the second vector the odd ones.
#[cfg(target_arch = "x86_64")]
impl WidenToF32<Avx2> for BF16 {
    #[inline(always)]
    fn widen(_: Avx2, halves: &HalfVector) -> [arch::__m256; 2] {
        // SAFETY: as above.
        unsafe {
            let words = arch::_mm256_loadu_si256(halves.as_ptr().cast());
            let even = arch::_mm256_slli_epi32::<16>(words);
            let odd = arch::_mm256_and_si256(words, arch::_mm256_set1_epi32(HIGH_HALF_MASK));
            [arch::_mm256_castsi256_ps(even), arch::_mm256_castsi256_ps(odd)]
        }
    }
    #[inline(always)]
    fn round(_: Avx2, [even, odd]: [arch::__m256; 2]) -> HalfVector {
        // SAFETY: as above.
        unsafe {
            let even = arch::_mm256_srli_epi32::<16>(round_to_high_half(even));
            std::mem::transmute(arch::_mm256_blend_epi16::<0b1010_1010>(even, round_to_high_half(odd)))
        }
    }
    #[inline(always)]
    fn mask_to_bytes(_: Avx2, [even, odd]: [arch::__m256; 2]) -> [u8; HALF_LANES] {
        // SAFETY: as above.
        unsafe {
            let (even, odd) = (arch::_mm256_castps_si256(even), arch::_mm256_castps_si256(odd));
            mask_to_bytes(arch::_mm256_blend_epi16::<0b1010_1010>(even, odd))
        }
    }
}

/// Rounds f32 to bf16, to nearest with ties to even. The results are the upper halves of the lanes;
/// the lower halves are unspecified.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn round_to_high_half(single: arch::__m256) -> arch::__m256i {
    let bits = arch::_mm256_castps_si256(single);
    let last = arch::_mm256_and_si256(arch::_mm256_srli_epi32::<16>(bits), arch::_mm256_set1_epi32(1));
    let bias = arch::_mm256_add_epi32(last, arch::_mm256_set1_epi32(0x7fff));
    let nearest = arch::_mm256_castsi256_ps(arch::_mm256_add_epi32(bits, bias));
    // Every NaN becomes the default NaN with its sign.
    let sign = arch::_mm256_and_ps(single, arch::_mm256_set1_ps(-0.0));
    let nan = arch::_mm256_or_ps(sign, arch::_mm256_set1_ps(f32::NAN));
    let is_nan = arch::_mm256_cmp_ps::<{ arch::_CMP_UNORD_Q }>(single, single);
    arch::_mm256_castps_si256(arch::_mm256_blendv_ps(nearest, nan, is_nan))
}

/// The bits of the odd one of two neighbours in a 32-bit word.
#[cfg(target_arch = "x86_64")]
const HIGH_HALF_MASK: i32 = -1 << 16;

/// One byte per 16-bit word: one for a word with all bits set, zero for a zero word.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn mask_to_bytes(words: arch::__m256i) -> [u8; HALF_LANES] {
    let (first, second) = (arch::_mm256_castsi256_si128(words), arch::_mm256_extracti128_si256::<1>(words));
    let ones = arch::_mm_and_si128(arch::_mm_packs_epi16(first, second), arch::_mm_set1_epi8(1));
    // SAFETY: both types have 16 bytes, and every bit pattern is valid.
    unsafe { std::mem::transmute(ones) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::minifloat::F16;

    #[test]
    fn instructions_agree_with_bit_operations() {
        let halves: Vec<HalfBytes> = (0..=u16::MAX).map(u16::to_ne_bytes).collect();
        let mut widened = vec![[0; 4]; halves.len()];
        let done = widen_halves(&halves, &mut widened);
        for (bits, widened) in (0..=u16::MAX).zip(&widened[..done]) {
            let (expected, got) = (F16(bits).to_f32(), f32::from_ne_bytes(*widened));
            assert!(got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(), "{bits:#x}");
        }
        // The step is a prime, so that the low bits vary.
        let singles: Vec<u32> = (0..=u32::MAX).step_by(4_099).collect();
        let bytes: Vec<SingleBytes> = singles.iter().map(|bits| bits.to_ne_bytes()).collect();
        let mut rounded = vec![[0; 2]; bytes.len()];
        let done = round_to_halves(&bytes, &mut rounded);
        for (&bits, rounded) in singles.iter().zip(&rounded[..done]) {
            assert_eq!(u16::from_ne_bytes(*rounded), F16::from_f32(f32::from_bits(bits)).0, "{bits:#x}");
        }
    }
}
