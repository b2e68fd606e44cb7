//! Vectors of numbers that are multiplied and added, and vectors of floats.

use crate::dtype::Lane;
use crate::exec::simd::{Avx2, Avx512, InstructionSet, IntVector, arch};

/// A number that fills the lanes of a vector of the instruction set `S`, with products and sums.
pub trait MulAddVector<S: InstructionSet>: Copy + Default + Send + Sync + 'static {
    /// The vector.
    type Vector: Copy;
    /// The number of lanes of a vector.
    const LANES: usize;

    /// Loads the first `LANES` elements of a slice. Panics if the slice is shorter.
    fn load(set: S, from: &[Self]) -> Self::Vector;
    /// Stores a vector at the start of a slice. Panics if the slice is shorter.
    fn store(set: S, vector: Self::Vector, to: &mut [Self]);
    /// Puts the value into all lanes.
    fn splat(set: S, value: Self) -> Self::Vector;
    /// `sum + a * b`, not fused: integers wrap, floats round the product and then the sum.
    fn add_product(set: S, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;
}

macro_rules! mul_add_vector {
    ($set:ident, $($t:ty, $lanes:literal, $vector:ident, $load:ident, $store:ident, $splat:ident, $multiply:ident, $add:ident;)*) => {$(
        // SAFETY of each call: a `$set` exists only if the processor has the instructions.
        // Loads and stores access borrowed arrays, within their bounds.
        impl MulAddVector<$set> for $t {
            type Vector = arch::$vector;
            const LANES: usize = $lanes;

            #[inline(always)]
            fn load(_: $set, from: &[$t]) -> arch::$vector {
                let from = &from[..$lanes];
                // SAFETY: as above.
                unsafe { arch::$load(from.as_ptr().cast()) }
            }
            #[inline(always)]
            fn store(_: $set, vector: arch::$vector, to: &mut [$t]) {
                let to = &mut to[..$lanes];
                // SAFETY: as above.
                unsafe { arch::$store(to.as_mut_ptr().cast(), vector) }
            }
            #[inline(always)]
            fn splat(_: $set, value: $t) -> arch::$vector {
                // SAFETY: as above.
                unsafe { arch::$splat(value as _) }
            }
            #[inline(always)]
            fn add_product(_: $set, sum: arch::$vector, a: arch::$vector, b: arch::$vector) -> arch::$vector {
                // SAFETY: as above.
                unsafe { arch::$add(sum, arch::$multiply(a, b)) }
            }
        }
    )*};
}
mul_add_vector! {
    Avx512,
    u16, 32, __m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi16, _mm512_mullo_epi16, _mm512_add_epi16;
    u32, 16, __m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi32, _mm512_mullo_epi32, _mm512_add_epi32;
    u64, 8, __m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi64, _mm512_mullo_epi64, _mm512_add_epi64;
    f32, 16, __m512, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_mul_ps, _mm512_add_ps;
    f64, 8, __m512d, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_mul_pd, _mm512_add_pd;
}
mul_add_vector! {
    Avx2,
    u16, 16, __m256i, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_set1_epi16, _mm256_mullo_epi16, _mm256_add_epi16;
    u32, 8, __m256i, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_set1_epi32, _mm256_mullo_epi32, _mm256_add_epi32;
    f32, 8, __m256, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_mul_ps, _mm256_add_ps;
    f64, 4, __m256d, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_mul_pd, _mm256_add_pd;
}

// SAFETY of each call: as in `mul_add_vector!`.
impl MulAddVector<Avx2> for u64 {
    type Vector = arch::__m256i;
    const LANES: usize = 4;

    #[inline(always)]
    fn load(_: Avx2, from: &[u64]) -> arch::__m256i {
        let from = &from[..4];
        // SAFETY: as above.
        unsafe { arch::_mm256_loadu_si256(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store(_: Avx2, vector: arch::__m256i, to: &mut [u64]) {
        let to = &mut to[..4];
        // SAFETY: as above.
        unsafe { arch::_mm256_storeu_si256(to.as_mut_ptr().cast(), vector) }
    }
    #[inline(always)]
    fn splat(_: Avx2, value: u64) -> arch::__m256i {
        // SAFETY: as above.
        unsafe { arch::_mm256_set1_epi64x(value as i64) }
    }
    // AVX2 has no product of 64-bit integers: the product is made of products of 32-bit halves.
    #[inline(always)]
    fn add_product(_: Avx2, sum: arch::__m256i, a: arch::__m256i, b: arch::__m256i) -> arch::__m256i {
        // SAFETY: as above.
        unsafe {
            let (a_high, b_high) = (arch::_mm256_srli_epi64::<32>(a), arch::_mm256_srli_epi64::<32>(b));
            let high =
                arch::_mm256_add_epi64(arch::_mm256_mul_epu32(a, b_high), arch::_mm256_mul_epu32(a_high, b));
            let low = arch::_mm256_add_epi64(sum, arch::_mm256_mul_epu32(a, b));
            arch::_mm256_add_epi64(low, arch::_mm256_slli_epi64::<32>(high))
        }
    }
}

/// The vector of `T` with the instruction set `S`.
type Vector<T, S> = <T as MulAddVector<S>>::Vector;

/// A float whose vectors have fused multiply-adds and masks, and are read from unaligned bytes. A
/// mask has one bit per lane, the lowest bit for the first lane.
pub trait FloatVector<S: InstructionSet>: MulAddVector<S> + Lane {
    /// `sum + a * b`, rounded once.
    fn add_fused(set: S, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `add_product` in the lanes of the mask, `sum` in the others.
    fn add_product_where(
        set: S,
        mask: u16,
        sum: Self::Vector,
        a: Self::Vector,
        b: Self::Vector,
    ) -> Self::Vector;
    /// The sum of each pair of lanes.
    fn sum(set: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Loads the first `LANES` elements of a slice. Panics if the slice is shorter.
    fn read(set: S, from: &[Self::Bytes]) -> Self::Vector;
    /// Stores the lanes of the mask next to each other at the start of a slice (a compressing
    /// store). Panics if the slice is shorter than their number.
    fn write_where(set: S, mask: u16, vector: Self::Vector, to: &mut [Self::Bytes]);
}

/// The items of [`FloatVector`] that are alike for both instruction sets.
macro_rules! shared_float_items {
    ($t:ty, $set:ident, $fuse:ident, $add:ident, $load:ident) => {
        #[inline(always)]
        fn add_fused(
            _: $set,
            sum: Vector<$t, $set>,
            a: Vector<$t, $set>,
            b: Vector<$t, $set>,
        ) -> Vector<$t, $set> {
            // SAFETY: as for `MulAddVector`.
            unsafe { arch::$fuse(a, b, sum) }
        }
        #[inline(always)]
        fn sum(_: $set, a: Vector<$t, $set>, b: Vector<$t, $set>) -> Vector<$t, $set> {
            // SAFETY: as for `MulAddVector`.
            unsafe { arch::$add(a, b) }
        }
        #[inline(always)]
        fn read(_: $set, from: &[Self::Bytes]) -> Vector<$t, $set> {
            let from = &from[..<$t as MulAddVector<$set>>::LANES];
            // SAFETY: as for `MulAddVector`; `Bytes` is as wide as a lane.
            unsafe { arch::$load(from.as_ptr().cast()) }
        }
    };
}

macro_rules! float_vector_avx512 {
    ($($t:ty, $mask:ty, $fuse:ident, $multiply:ident, $add:ident, $add_where:ident, $load:ident, $compress:ident, $store:ident;)*) => {$(
        // SAFETY of each call: as for `MulAddVector`.
        impl FloatVector<Avx512> for $t {
            shared_float_items!($t, Avx512, $fuse, $add, $load);

            #[inline(always)]
            fn add_product_where(
                _: Avx512,
                mask: u16,
                sum: Vector<$t, Avx512>,
                a: Vector<$t, Avx512>,
                b: Vector<$t, Avx512>,
            ) -> Vector<$t, Avx512> {
                // SAFETY: as above.
                unsafe { arch::$add_where(sum, mask as $mask, sum, arch::$multiply(a, b)) }
            }
            #[inline(always)]
            fn write_where(_: Avx512, mask: u16, vector: Vector<$t, Avx512>, to: &mut [Self::Bytes]) {
                let mask = mask as $mask;
                let count = mask.count_ones() as usize;
                let to = &mut to[..count];
                let first = ((1u32 << count) - 1) as $mask;
                // SAFETY: as above; only `count` lanes are written, the length of `to`.
                unsafe { arch::$store(to.as_mut_ptr().cast(), first, arch::$compress(mask, vector)) }
            }
        }
    )*};
}
float_vector_avx512! {
    f32, u16, _mm512_fmadd_ps, _mm512_mul_ps, _mm512_add_ps, _mm512_mask_add_ps, _mm512_loadu_ps, _mm512_maskz_compress_ps, _mm512_mask_storeu_ps;
    f64, u8, _mm512_fmadd_pd, _mm512_mul_pd, _mm512_add_pd, _mm512_mask_add_pd, _mm512_loadu_pd, _mm512_maskz_compress_pd, _mm512_mask_storeu_pd;
}

macro_rules! float_vector_avx2 {
    ($($t:ty, $lanes:literal, $bits:ty, $fuse:ident, $add:ident, $load:ident, $blend:ident, $cast:ident;)*) => {$(
        // SAFETY of each call: as for `MulAddVector`.
        impl FloatVector<Avx2> for $t {
            shared_float_items!($t, Avx2, $fuse, $add, $load);

            #[inline(always)]
            fn add_product_where(
                set: Avx2,
                mask: u16,
                sum: Vector<$t, Avx2>,
                a: Vector<$t, Avx2>,
                b: Vector<$t, Avx2>,
            ) -> Vector<$t, Avx2> {
                let total = <$t as MulAddVector<Avx2>>::add_product(set, sum, a, b);
                let mut lanes: [$bits; $lanes] = [0; $lanes];
                for (i, lane) in lanes.iter_mut().enumerate() {
                    *lane = if mask >> i & 1 == 1 { <$bits>::MAX } else { 0 };
                }
                // SAFETY: as above.
                unsafe {
                    let lanes = arch::_mm256_loadu_si256(lanes.as_ptr().cast());
                    arch::$blend(sum, total, arch::$cast(lanes))
                }
            }
            #[inline(always)]
            fn write_where(set: Avx2, mask: u16, vector: Vector<$t, Avx2>, to: &mut [Self::Bytes]) {
                let mut lanes = [0.0; $lanes];
                <$t as MulAddVector<Avx2>>::store(set, vector, &mut lanes);
                let chosen = lanes.iter().enumerate().filter(|(i, _)| mask >> i & 1 == 1);
                let to = &mut to[..chosen.clone().count()];
                for (to, (_, lane)) in to.iter_mut().zip(chosen) {
                    *to = Lane::store(*lane);
                }
            }
        }
    )*};
}
float_vector_avx2! {
    f32, 8, u32, _mm256_fmadd_ps, _mm256_add_ps, _mm256_loadu_ps, _mm256_blendv_ps, _mm256_castsi256_ps;
    f64, 4, u64, _mm256_fmadd_pd, _mm256_add_pd, _mm256_loadu_pd, _mm256_blendv_pd, _mm256_castsi256_pd;
}

/// The floats with these bits.
#[inline(always)]
pub fn bitcast_to_f64(
    _: Avx512,
    bits: <u64 as IntVector<Avx512>>::Vector,
) -> <f64 as MulAddVector<Avx512>>::Vector {
    // SAFETY: as for `MulAddVector`.
    unsafe { arch::_mm512_castsi512_pd(bits) }
}

/// A float that is computed with in vectors of f64. The functions panic if a slice has more
/// elements than a vector has lanes.
pub trait AsF64Vector: Lane {
    /// The values of a slice; the lanes after them hold zero.
    fn load_first(wide: Avx512, from: &[Self::Bytes]) -> arch::__m512d;
    /// Fills a slice with the first lanes, rounded to the float.
    fn store_first(wide: Avx512, vector: arch::__m512d, to: &mut [Self::Bytes]);
}

const fn first_lanes(lanes: usize) -> u8 {
    assert!(lanes <= 8);
    ((1 << lanes) - 1) as u8
}

// SAFETY of each call: an `Avx512` exists only if the processor has the instructions, and lanes
// outside the mask are neither read nor written.
impl AsF64Vector for f64 {
    #[inline(always)]
    fn load_first(_: Avx512, from: &[Self::Bytes]) -> arch::__m512d {
        let mask = first_lanes(from.len());
        // SAFETY: as above.
        unsafe { arch::_mm512_maskz_loadu_pd(mask, from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store_first(_: Avx512, vector: arch::__m512d, to: &mut [Self::Bytes]) {
        let mask = first_lanes(to.len());
        // SAFETY: as above.
        unsafe { arch::_mm512_mask_storeu_pd(to.as_mut_ptr().cast(), mask, vector) }
    }
}

impl AsF64Vector for f32 {
    #[inline(always)]
    fn load_first(_: Avx512, from: &[Self::Bytes]) -> arch::__m512d {
        let mask = first_lanes(from.len());
        // SAFETY: as above.
        unsafe { arch::_mm512_cvtps_pd(arch::_mm256_maskz_loadu_ps(mask, from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn store_first(_: Avx512, vector: arch::__m512d, to: &mut [Self::Bytes]) {
        let mask = first_lanes(to.len());
        // SAFETY: as above.
        unsafe { arch::_mm256_mask_storeu_ps(to.as_mut_ptr().cast(), mask, arch::_mm512_cvtpd_ps(vector)) }
    }
}
