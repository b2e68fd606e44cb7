//! Floats that are compared and chosen between in vectors.

use crate::exec::simd::{Avx2, Avx512, Fused, InstructionSet, Products, arch};

/// Floats that are compared and chosen between in vectors of an instruction set.
pub trait Compared<S: InstructionSet>: Fused<S> {
    /// For each lane, whether something holds.
    type Mask: Copy;

    /// Where `a` is to `b` as one of the `_CMP` constants of `std::arch` says.
    fn compare<const HOW: i32>(set: S, a: Self::Vector, b: Self::Vector) -> Self::Mask;
    /// Where either holds.
    fn or(set: S, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Whether it holds of any lane.
    fn any(set: S, mask: Self::Mask) -> bool;
    /// The smaller of each pair; of what can't be compared, either.
    fn smaller(set: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The larger of each pair; of what can't be compared, either.
    fn larger(set: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `b` where the mask holds, and else `a`.
    fn choose(set: S, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Vector;
}

/// What is compared.
type Vector<T, S> = <T as Products<S>>::Vector;

macro_rules! compared {
    ($($t:ty, $mask:ty, $compare:ident, $min:ident, $max:ident, $choose:ident;)*) => {$(
        // SAFETY, of each call: an `Avx512` is only made where the processor has the
        // instructions.
        impl Compared<Avx512> for $t {
            type Mask = $mask;

            #[inline(always)]
            fn compare<const HOW: i32>(_: Avx512, a: Vector<$t, Avx512>, b: Vector<$t, Avx512>) -> $mask {
                // SAFETY: as above.
                unsafe { arch::$compare::<HOW>(a, b) }
            }
            #[inline(always)]
            fn or(_: Avx512, a: $mask, b: $mask) -> $mask {
                a | b
            }
            #[inline(always)]
            fn any(_: Avx512, mask: $mask) -> bool {
                mask != 0
            }
            #[inline(always)]
            fn smaller(_: Avx512, a: Vector<$t, Avx512>, b: Vector<$t, Avx512>) -> Vector<$t, Avx512> {
                // SAFETY: as above.
                unsafe { arch::$min(a, b) }
            }
            #[inline(always)]
            fn larger(_: Avx512, a: Vector<$t, Avx512>, b: Vector<$t, Avx512>) -> Vector<$t, Avx512> {
                // SAFETY: as above.
                unsafe { arch::$max(a, b) }
            }
            #[inline(always)]
            fn choose(
                _: Avx512,
                mask: $mask,
                a: Vector<$t, Avx512>,
                b: Vector<$t, Avx512>,
            ) -> Vector<$t, Avx512> {
                // SAFETY: as above.
                unsafe { arch::$choose(a, mask, b) }
            }
        }
    )*};
}
compared! {
    f32, u16, _mm512_cmp_ps_mask, _mm512_min_ps, _mm512_max_ps, _mm512_mask_mov_ps;
    f64, u8, _mm512_cmp_pd_mask, _mm512_min_pd, _mm512_max_pd, _mm512_mask_mov_pd;
}

macro_rules! compared_in_32_bytes {
    ($($t:ty, $compare:ident, $or:ident, $any:ident, $min:ident, $max:ident, $choose:ident;)*) => {$(
        // SAFETY, of each call: an `Avx2` is only made where the processor has the
        // instructions.
        impl Compared<Avx2> for $t {
            type Mask = Vector<$t, Avx2>;

            #[inline(always)]
            fn compare<const HOW: i32>(_: Avx2, a: Self::Mask, b: Self::Mask) -> Self::Mask {
                // SAFETY: as above.
                unsafe { arch::$compare::<HOW>(a, b) }
            }
            #[inline(always)]
            fn or(_: Avx2, a: Self::Mask, b: Self::Mask) -> Self::Mask {
                // SAFETY: as above.
                unsafe { arch::$or(a, b) }
            }
            #[inline(always)]
            fn any(_: Avx2, mask: Self::Mask) -> bool {
                // SAFETY: as above.
                unsafe { arch::$any(mask) != 0 }
            }
            #[inline(always)]
            fn smaller(_: Avx2, a: Self::Mask, b: Self::Mask) -> Self::Mask {
                // SAFETY: as above.
                unsafe { arch::$min(a, b) }
            }
            #[inline(always)]
            fn larger(_: Avx2, a: Self::Mask, b: Self::Mask) -> Self::Mask {
                // SAFETY: as above.
                unsafe { arch::$max(a, b) }
            }
            #[inline(always)]
            fn choose(_: Avx2, mask: Self::Mask, a: Self::Mask, b: Self::Mask) -> Self::Mask {
                // SAFETY: as above.
                unsafe { arch::$choose(a, b, mask) }
            }
        }
    )*};
}
compared_in_32_bytes! {
    f32, _mm256_cmp_ps, _mm256_or_ps, _mm256_movemask_ps, _mm256_min_ps, _mm256_max_ps, _mm256_blendv_ps;
    f64, _mm256_cmp_pd, _mm256_or_pd, _mm256_movemask_pd, _mm256_min_pd, _mm256_max_pd, _mm256_blendv_pd;
}
