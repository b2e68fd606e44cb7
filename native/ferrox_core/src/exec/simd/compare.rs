//! Comparisons, minima, maxima and blends of vectors of floats.

use crate::exec::simd::{Avx2, Avx512, FloatVector, InstructionSet, MulAddVector, arch};

/// A float whose vectors of the instruction set `S` can be compared and blended.
pub trait CompareVector<S: InstructionSet>: FloatVector<S> {
    /// One truth value per lane.
    type Mask: Copy;

    /// The mask of the lanes where the comparison of `a` with `b` holds. `PREDICATE` is one of the
    /// `_CMP` constants of `std::arch`.
    fn compare<const PREDICATE: i32>(set: S, a: Self::Vector, b: Self::Vector) -> Self::Mask;
    /// The lanes that are set in either mask.
    fn or(set: S, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Whether any lane of the mask is set.
    fn any(set: S, mask: Self::Mask) -> bool;
    /// The smaller float of each pair of lanes; either of the two if they are equal or one is NaN.
    fn smaller(set: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The larger float of each pair of lanes; either of the two if they are equal or one is NaN.
    fn larger(set: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The lane of `b` where the mask is set, else the lane of `a`.
    fn blend(set: S, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Vector;
}

/// The vector of `T` with the instruction set `S`.
type Vector<T, S> = <T as MulAddVector<S>>::Vector;

/// The items of [`CompareVector`] that are alike for both instruction sets.
macro_rules! shared_compare_items {
    ($t:ty, $set:ident, $compare:ident, $min:ident, $max:ident) => {
        #[inline(always)]
        fn compare<const PREDICATE: i32>(_: $set, a: Vector<$t, $set>, b: Vector<$t, $set>) -> Self::Mask {
            // SAFETY: a `$set` exists only if the processor has the instructions.
            unsafe { arch::$compare::<PREDICATE>(a, b) }
        }
        #[inline(always)]
        fn smaller(_: $set, a: Vector<$t, $set>, b: Vector<$t, $set>) -> Vector<$t, $set> {
            // SAFETY: as above.
            unsafe { arch::$min(a, b) }
        }
        #[inline(always)]
        fn larger(_: $set, a: Vector<$t, $set>, b: Vector<$t, $set>) -> Vector<$t, $set> {
            // SAFETY: as above.
            unsafe { arch::$max(a, b) }
        }
    };
}

macro_rules! compare_vector_avx512 {
    ($($t:ty, $mask:ty, $compare:ident, $min:ident, $max:ident, $blend:ident;)*) => {$(
        // SAFETY of each call: an `Avx512` exists only if the processor has the instructions.
        impl CompareVector<Avx512> for $t {
            type Mask = $mask;

            shared_compare_items!($t, Avx512, $compare, $min, $max);

            #[inline(always)]
            fn or(_: Avx512, a: $mask, b: $mask) -> $mask {
                a | b
            }
            #[inline(always)]
            fn any(_: Avx512, mask: $mask) -> bool {
                mask != 0
            }
            #[inline(always)]
            fn blend(
                _: Avx512,
                mask: $mask,
                a: Vector<$t, Avx512>,
                b: Vector<$t, Avx512>,
            ) -> Vector<$t, Avx512> {
                // SAFETY: as above.
                unsafe { arch::$blend(a, mask, b) }
            }
        }
    )*};
}
compare_vector_avx512! {
    f32, u16, _mm512_cmp_ps_mask, _mm512_min_ps, _mm512_max_ps, _mm512_mask_mov_ps;
    f64, u8, _mm512_cmp_pd_mask, _mm512_min_pd, _mm512_max_pd, _mm512_mask_mov_pd;
}

macro_rules! compare_vector_avx2 {
    ($($t:ty, $compare:ident, $or:ident, $any:ident, $min:ident, $max:ident, $blend:ident;)*) => {$(
        // SAFETY of each call: an `Avx2` exists only if the processor has the instructions.
        impl CompareVector<Avx2> for $t {
            type Mask = Vector<$t, Avx2>;

            shared_compare_items!($t, Avx2, $compare, $min, $max);

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
            fn blend(_: Avx2, mask: Self::Mask, a: Self::Mask, b: Self::Mask) -> Self::Mask {
                // SAFETY: as above.
                unsafe { arch::$blend(a, b, mask) }
            }
        }
    )*};
}
compare_vector_avx2! {
    f32, _mm256_cmp_ps, _mm256_or_ps, _mm256_movemask_ps, _mm256_min_ps, _mm256_max_ps, _mm256_blendv_ps;
    f64, _mm256_cmp_pd, _mm256_or_pd, _mm256_movemask_pd, _mm256_min_pd, _mm256_max_pd, _mm256_blendv_pd;
}
