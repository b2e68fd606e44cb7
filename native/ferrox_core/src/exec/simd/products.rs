//! Numbers that are multiplied and added up in vectors of AVX-512.

use super::{Avx512, Lanes, arch};
use crate::dtype::Lane;

/// Numbers that are multiplied and added up in vectors of 64 bytes.
pub trait Products: Copy + Default + Send + Sync + 'static {
    /// The vector.
    type Vector: Copy;
    /// How many it holds.
    const LANES: usize;

    /// The lanes that a slice starts with; panics if it is shorter.
    fn load(wide: Avx512, from: &[Self]) -> Self::Vector;
    /// Writes the first lanes of a slice; panics if it is shorter.
    fn store(wide: Avx512, vector: Self::Vector, to: &mut [Self]);
    /// The same in all lanes.
    fn splat(wide: Avx512, value: Self) -> Self::Vector;
    /// `sum + a * b`: integers wrap, floats round the product first.
    fn add_product(wide: Avx512, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;
}

macro_rules! products {
    ($($t:ty, $lanes:literal, $vector:ident, $load:ident, $store:ident, $splat:ident, $multiply:ident, $add:ident;)*) => {$(
        // SAFETY, of each call: a `Avx512` is only made where the processor has the
        // instructions. Loads and stores are of arrays that are borrowed.
        impl Products for $t {
            type Vector = arch::$vector;
            const LANES: usize = $lanes;

            #[inline(always)]
            fn load(_: Avx512, from: &[$t]) -> arch::$vector {
                let from = &from[..$lanes];
                // SAFETY: as above.
                unsafe { arch::$load(from.as_ptr().cast()) }
            }
            #[inline(always)]
            fn store(_: Avx512, vector: arch::$vector, to: &mut [$t]) {
                let to = &mut to[..$lanes];
                // SAFETY: as above.
                unsafe { arch::$store(to.as_mut_ptr().cast(), vector) }
            }
            #[inline(always)]
            fn splat(_: Avx512, value: $t) -> arch::$vector {
                // SAFETY: as above.
                unsafe { arch::$splat(value as _) }
            }
            #[inline(always)]
            fn add_product(_: Avx512, sum: arch::$vector, a: arch::$vector, b: arch::$vector) -> arch::$vector {
                // SAFETY: as above.
                unsafe { arch::$add(sum, arch::$multiply(a, b)) }
            }
        }
    )*};
}
products! {
    u16, 32, __m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi16, _mm512_mullo_epi16, _mm512_add_epi16;
    u32, 16, __m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi32, _mm512_mullo_epi32, _mm512_add_epi32;
    u64, 8, __m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi64, _mm512_mullo_epi64, _mm512_add_epi64;
    f32, 16, __m512, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_mul_ps, _mm512_add_ps;
    f64, 8, __m512d, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_mul_pd, _mm512_add_pd;
}

/// Floats of products, as bytes at any address. A mask has a bit for each lane, the lowest
/// for the first.
pub trait Fused: Products + Lane {
    /// `sum + a * b`, rounded once.
    fn add_fused(wide: Avx512, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `add_product` in the lanes of the mask, and the sum in the others.
    fn add_product_where(
        wide: Avx512,
        mask: u16,
        sum: Self::Vector,
        a: Self::Vector,
        b: Self::Vector,
    ) -> Self::Vector;
    /// The sum.
    fn sum(wide: Avx512, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The lanes that a slice starts with; panics if it is shorter.
    fn read(wide: Avx512, from: &[Self::Bytes]) -> Self::Vector;
    /// Writes the lanes of the mask side by side; panics if the slice is shorter.
    fn write_where(wide: Avx512, mask: u16, vector: Self::Vector, to: &mut [Self::Bytes]);
}

macro_rules! fused {
    ($($t:ty, $mask:ty, $fuse:ident, $multiply:ident, $add:ident, $add_where:ident, $load:ident, $compress:ident, $store:ident;)*) => {$(
        // SAFETY, of each call: as for `Products`.
        impl Fused for $t {
            #[inline(always)]
            fn add_fused(_: Avx512, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                // SAFETY: as above.
                unsafe { arch::$fuse(a, b, sum) }
            }
            #[inline(always)]
            fn add_product_where(
                _: Avx512,
                mask: u16,
                sum: Self::Vector,
                a: Self::Vector,
                b: Self::Vector,
            ) -> Self::Vector {
                // SAFETY: as above.
                unsafe { arch::$add_where(sum, mask as $mask, sum, arch::$multiply(a, b)) }
            }
            #[inline(always)]
            fn sum(_: Avx512, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                // SAFETY: as above.
                unsafe { arch::$add(a, b) }
            }
            #[inline(always)]
            fn read(_: Avx512, from: &[Self::Bytes]) -> Self::Vector {
                let from = &from[..Self::LANES];
                // SAFETY: as above; `Bytes` are as many bytes as a lane.
                unsafe { arch::$load(from.as_ptr().cast()) }
            }
            #[inline(always)]
            fn write_where(_: Avx512, mask: u16, vector: Self::Vector, to: &mut [Self::Bytes]) {
                let mask = mask as $mask;
                let count = mask.count_ones() as usize;
                let to = &mut to[..count];
                let first = ((1u32 << count) - 1) as $mask;
                // SAFETY: as above; only `count` lanes are written.
                unsafe { arch::$store(to.as_mut_ptr().cast(), first, arch::$compress(mask, vector)) }
            }
        }
    )*};
}
fused! {
    f32, u16, _mm512_fmadd_ps, _mm512_mul_ps, _mm512_add_ps, _mm512_mask_add_ps, _mm512_loadu_ps, _mm512_maskz_compress_ps, _mm512_mask_storeu_ps;
    f64, u8, _mm512_fmadd_pd, _mm512_mul_pd, _mm512_add_pd, _mm512_mask_add_pd, _mm512_loadu_pd, _mm512_maskz_compress_pd, _mm512_mask_storeu_pd;
}

/// The floats whose bits these are.
#[inline(always)]
pub fn floats(_: Avx512, bits: <u64 as Lanes<Avx512>>::Vector) -> <f64 as Products>::Vector {
    // SAFETY: as for `Products`.
    unsafe { arch::_mm512_castsi512_pd(bits) }
}

/// Floats in vectors of f64, at most as many as one holds; panics if there are more.
pub trait Part: Lane {
    /// The values, and zero in the lanes after them.
    fn read_part(wide: Avx512, from: &[Self::Bytes]) -> arch::__m512d;
    /// Rounds the first lanes.
    fn write_part(wide: Avx512, vector: arch::__m512d, to: &mut [Self::Bytes]);
}

const fn first_of_eight(lanes: usize) -> u8 {
    assert!(lanes <= 8);
    ((1 << lanes) - 1) as u8
}

// SAFETY, of each call: a `Avx512` is only made where the processor has the instructions, and
// what the mask leaves out is not read or written.
impl Part for f64 {
    #[inline(always)]
    fn read_part(_: Avx512, from: &[Self::Bytes]) -> arch::__m512d {
        let mask = first_of_eight(from.len());
        // SAFETY: as above.
        unsafe { arch::_mm512_maskz_loadu_pd(mask, from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn write_part(_: Avx512, vector: arch::__m512d, to: &mut [Self::Bytes]) {
        let mask = first_of_eight(to.len());
        // SAFETY: as above.
        unsafe { arch::_mm512_mask_storeu_pd(to.as_mut_ptr().cast(), mask, vector) }
    }
}

impl Part for f32 {
    #[inline(always)]
    fn read_part(_: Avx512, from: &[Self::Bytes]) -> arch::__m512d {
        let mask = first_of_eight(from.len());
        // SAFETY: as above.
        unsafe { arch::_mm512_cvtps_pd(arch::_mm256_maskz_loadu_ps(mask, from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn write_part(_: Avx512, vector: arch::__m512d, to: &mut [Self::Bytes]) {
        let mask = first_of_eight(to.len());
        // SAFETY: as above.
        unsafe { arch::_mm256_mask_storeu_ps(to.as_mut_ptr().cast(), mask, arch::_mm512_cvtpd_ps(vector)) }
    }
}
