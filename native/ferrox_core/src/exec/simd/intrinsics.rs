//! Loops for which the compiler does not generate good vector code, written with intrinsics. Each
//! handles the leading elements that fill whole vectors and returns their number, which is zero on
//! processors without the instructions.

#[cfg(target_arch = "x86_64")]
use crate::exec::simd::arch;
#[cfg(target_arch = "x86_64")]
use crate::exec::simd::{Level, level};

/// Truncates f32 to integers and keeps their lowest byte. Stops before the first group of vectors
/// with a value that is NaN, or whose magnitude is 2^31 or more.
#[must_use]
pub fn truncate_to_bytes(from: &[[u8; 4]], to: &mut [[u8; 1]]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if level() == Level::V3 {
        // SAFETY: as in `dispatch`.
        return unsafe { truncate_v3(from, to) };
    }
    let _ = (from, to);
    0
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn truncate_v3(from: &[[u8; 4]], to: &mut [[u8; 1]]) -> usize {
    const LANES: usize = 32;
    let low = arch::_mm256_set1_epi32(0xff);
    // The result of the instruction for values that it can't truncate.
    let failed = arch::_mm256_set1_epi32(i32::MIN);
    // The packing instructions work on each 128-bit half separately: this restores the order.
    let in_order = arch::_mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let mut done = 0;
    for (from, to) in from.as_chunks::<LANES>().0.iter().zip(to.as_chunks_mut::<LANES>().0) {
        let quarters = from.as_chunks::<8>().0;
        let numbers: [arch::__m256i; 4] = std::array::from_fn(|i| {
            // SAFETY: the elements are borrowed, and as many as fill the vector.
            let floats = unsafe { arch::_mm256_loadu_ps(quarters[i].as_ptr().cast()) };
            arch::_mm256_cvttps_epi32(floats)
        });
        let [a, b, c, d] = numbers.map(|x| arch::_mm256_cmpeq_epi32(x, failed));
        let any = arch::_mm256_or_si256(arch::_mm256_or_si256(a, b), arch::_mm256_or_si256(c, d));
        if arch::_mm256_testz_si256(any, any) == 0 {
            break;
        }
        let [a, b, c, d] = numbers.map(|x| arch::_mm256_and_si256(x, low));
        let bytes =
            arch::_mm256_packus_epi16(arch::_mm256_packus_epi32(a, b), arch::_mm256_packus_epi32(c, d));
        let bytes = arch::_mm256_permutevar8x32_epi32(bytes, in_order);
        // SAFETY: as above.
        unsafe { arch::_mm256_storeu_si256(to.as_mut_ptr().cast(), bytes) };
        done += LANES;
    }
    done
}

/// Multiplies complex numbers, pairs of f32, and rounds each part once. `left`, `right` and `out`
/// have the same length.
#[must_use]
pub fn multiply_pairs(left: &[[u8; 8]], right: &[[u8; 8]], out: &mut [[u8; 8]]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if level() == Level::V3 {
        // SAFETY: as in `dispatch`.
        return unsafe { multiply_v3(left, right, out) };
    }
    let _ = (left, right, out);
    0
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn multiply_v3(left: &[[u8; 8]], right: &[[u8; 8]], out: &mut [[u8; 8]]) -> usize {
    const LANES: usize = 2;
    let operands = left.as_chunks::<LANES>().0.iter().zip(right.as_chunks::<LANES>().0);
    let mut done = 0;
    for (out, (left, right)) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(operands) {
        let [a, b] = [left, right].map(|pairs| {
            // SAFETY: the elements are borrowed, and as many as fill the vector.
            arch::_mm256_cvtps_pd(unsafe { arch::_mm_loadu_ps(pairs.as_ptr().cast()) })
        });
        // Products of f32 are exact in f64, so fusing one of them into the sum changes no bits.
        let crossed =
            arch::_mm256_mul_pd(arch::_mm256_permute_pd(a, 0b0101), arch::_mm256_permute_pd(b, 0b1111));
        let product = arch::_mm256_fmaddsub_pd(a, arch::_mm256_movedup_pd(b), crossed);
        // SAFETY: as above.
        unsafe { arch::_mm_storeu_ps(out.as_mut_ptr().cast(), arch::_mm256_cvtpd_ps(product)) };
        done += LANES;
    }
    done
}
