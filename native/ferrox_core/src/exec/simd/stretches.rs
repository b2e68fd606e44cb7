//! Loops that the compiler doesn't find by itself, of stretches of elements. Those that write
//! compute as many of the first as fill vectors, and say how many these are: none where there are no
//! instructions for it.

#[cfg(target_arch = "x86_64")]
use super::arch;
#[cfg(target_arch = "x86_64")]
use super::{Level, level, read_ahead};

/// Truncates floats to bytes, up to the first that are not below 2^31.
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
    // What the instruction makes of values that it can't truncate.
    let failed = arch::_mm256_set1_epi32(i32::MIN);
    // Packing goes by halves of the vectors.
    let in_order = arch::_mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let mut done = 0;
    for (from, to) in from.as_chunks::<LANES>().0.iter().zip(to.as_chunks_mut::<LANES>().0) {
        let quarters = from.as_chunks::<8>().0;
        let numbers: [arch::__m256i; 4] = std::array::from_fn(|i| {
            // SAFETY: it is borrowed, and as long as the vector.
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

/// Multiplies complex numbers, pairs of f32, each part rounded once. `out` is as long as both.
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
            // SAFETY: they are borrowed, and as long as the vector.
            arch::_mm256_cvtps_pd(unsafe { arch::_mm_loadu_ps(pairs.as_ptr().cast()) })
        });
        // Products of f32 are exact in f64, so that a fused sum of two is rounded as any other.
        let crossed =
            arch::_mm256_mul_pd(arch::_mm256_permute_pd(a, 0b0101), arch::_mm256_permute_pd(b, 0b1111));
        let product = arch::_mm256_fmaddsub_pd(a, arch::_mm256_movedup_pd(b), crossed);
        // SAFETY: as above.
        unsafe { arch::_mm_storeu_ps(out.as_mut_ptr().cast(), arch::_mm256_cvtpd_ps(product)) };
        done += LANES;
    }
    done
}

/// The place of the largest or smallest of floats: the first of several, or the last. None where
/// there are no instructions for it, or where one is NaN, or there are few.
#[must_use]
pub fn place_of_extreme(floats: &[[u8; 4]], largest: bool, last: bool) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    return match (largest, last) {
        (true, false) => place::<{ arch::_CMP_GT_OQ }>(floats),
        (true, true) => place::<{ arch::_CMP_GE_OQ }>(floats),
        (false, false) => place::<{ arch::_CMP_LT_OQ }>(floats),
        (false, true) => place::<{ arch::_CMP_LE_OQ }>(floats),
    };
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (floats, largest, last);
        None
    }
}

/// `FURTHER` compares an element with what comes before it. Of what fills vectors with their
/// instructions, of the rest one by one.
#[cfg(target_arch = "x86_64")]
fn place<const FURTHER: i32>(floats: &[[u8; 4]]) -> Option<usize> {
    i32::try_from(floats.len()).ok()?;
    let (mut place, done) = match level() {
        Level::Baseline => None,
        // SAFETY: as in `dispatch`.
        Level::V4 if floats.len() >= WIDE => unsafe { place_v4::<FURTHER>(floats) },
        // SAFETY: as in `dispatch`.
        Level::V3 | Level::V4 => unsafe { place_v3::<FURTHER>(floats) },
    }?;
    let mut extreme = f32::from_ne_bytes(*floats.get(place)?);
    for (i, &x) in floats.iter().enumerate().skip(done) {
        let x = f32::from_ne_bytes(x);
        if x.is_nan() {
            return None;
        }
        let further = match FURTHER {
            arch::_CMP_GT_OQ => x > extreme,
            arch::_CMP_GE_OQ => x >= extreme,
            arch::_CMP_LT_OQ => x < extreme,
            _ => x <= extreme,
        };
        if further {
            (extreme, place) = (x, i);
        }
    }
    Some(place)
}

/// Of fewer, too many are left by vectors of 64 bytes. (`kernels`: argmax_of_rows_f32.)
#[cfg(target_arch = "x86_64")]
const WIDE: usize = 128;

/// Each lane of so many vectors has an extreme, and which vector it was in.
#[cfg(target_arch = "x86_64")]
const SIDE_BY_SIDE: usize = 2;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn place_v4<const FURTHER: i32>(floats: &[[u8; 4]]) -> Option<(usize, usize)> {
    const LANES: usize = 16;
    let largest = matches!(FURTHER, arch::_CMP_GT_OQ | arch::_CMP_GE_OQ);
    let last = matches!(FURTHER, arch::_CMP_GE_OQ | arch::_CMP_LE_OQ);
    let load = |few: &[[u8; 4]; LANES]| {
        // SAFETY: it is borrowed, and as long as the vector.
        unsafe { arch::_mm512_loadu_ps(few.as_ptr().cast()) }
    };
    let (vectors, _) = floats.as_chunks::<LANES>();
    let (first, rest) = vectors.split_first()?;
    let mut best = [load(first); SIDE_BY_SIDE];
    let mut at = [arch::_mm512_setzero_si512(); SIDE_BY_SIDE];
    let mut nan = arch::_mm512_cmp_ps_mask::<{ arch::_CMP_UNORD_Q }>(best[0], best[0]);
    let mut i = 0;
    let mut step = |few: &[[u8; 4]; LANES], side: usize| {
        i += 1;
        let x = load(few);
        let further = arch::_mm512_cmp_ps_mask::<FURTHER>(x, best[side]);
        nan |= arch::_mm512_cmp_ps_mask::<{ arch::_CMP_UNORD_Q }>(x, x);
        best[side] = arch::_mm512_mask_mov_ps(best[side], further, x);
        at[side] = arch::_mm512_mask_mov_epi32(at[side], further, arch::_mm512_set1_epi32(i));
    };
    let (groups, alone) = rest.as_chunks::<SIDE_BY_SIDE>();
    for group in groups {
        read_ahead(group);
        (0..SIDE_BY_SIDE).for_each(|side| step(&group[side], side));
    }
    alone.iter().for_each(|few| step(few, 0));
    if nan != 0 {
        return None;
    }
    // The extreme in all lanes, and the place of those that are equal to it.
    let extreme = if largest {
        arch::_mm512_reduce_max_ps(arch::_mm512_max_ps(best[0], best[1]))
    } else {
        arch::_mm512_reduce_min_ps(arch::_mm512_min_ps(best[0], best[1]))
    };
    let none = arch::_mm512_set1_epi32(if last { -1 } else { i32::MAX });
    let lanes = arch::_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let [a, b] = [0, 1].map(|side| {
        let equal =
            arch::_mm512_cmp_ps_mask::<{ arch::_CMP_EQ_OQ }>(best[side], arch::_mm512_set1_ps(extreme));
        let places = arch::_mm512_add_epi32(arch::_mm512_slli_epi32::<4>(at[side]), lanes);
        arch::_mm512_mask_mov_epi32(none, equal, places)
    });
    let place = if last {
        arch::_mm512_reduce_max_epi32(arch::_mm512_max_epi32(a, b))
    } else {
        arch::_mm512_reduce_min_epi32(arch::_mm512_min_epi32(a, b))
    };
    Some((usize::try_from(place).ok()?, vectors.len() * LANES))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn place_v3<const FURTHER: i32>(floats: &[[u8; 4]]) -> Option<(usize, usize)> {
    const LANES: usize = 8;
    let largest = matches!(FURTHER, arch::_CMP_GT_OQ | arch::_CMP_GE_OQ);
    let last = matches!(FURTHER, arch::_CMP_GE_OQ | arch::_CMP_LE_OQ);
    let load = |few: &[[u8; 4]; LANES]| {
        // SAFETY: it is borrowed, and as long as the vector.
        unsafe { arch::_mm256_loadu_ps(few.as_ptr().cast()) }
    };
    let (vectors, _) = floats.as_chunks::<LANES>();
    let (first, rest) = vectors.split_first()?;
    let mut best = [load(first); SIDE_BY_SIDE];
    let mut at = [arch::_mm256_setzero_si256(); SIDE_BY_SIDE];
    let mut nan = arch::_mm256_cmp_ps::<{ arch::_CMP_UNORD_Q }>(best[0], best[0]);
    let mut i = 0;
    let mut step = |few: &[[u8; 4]; LANES], side: usize| {
        i += 1;
        let x = load(few);
        let further = arch::_mm256_cmp_ps::<FURTHER>(x, best[side]);
        nan = arch::_mm256_or_ps(nan, arch::_mm256_cmp_ps::<{ arch::_CMP_UNORD_Q }>(x, x));
        best[side] = arch::_mm256_blendv_ps(best[side], x, further);
        let further = arch::_mm256_castps_si256(further);
        at[side] = arch::_mm256_blendv_epi8(at[side], arch::_mm256_set1_epi32(i), further);
    };
    let (groups, alone) = rest.as_chunks::<SIDE_BY_SIDE>();
    for group in groups {
        read_ahead(group);
        (0..SIDE_BY_SIDE).for_each(|side| step(&group[side], side));
    }
    alone.iter().for_each(|few| step(few, 0));
    if arch::_mm256_movemask_ps(nan) != 0 {
        return None;
    }
    // The extreme in all lanes, and the place of those that are equal to it.
    let pick = |a, b| if largest { arch::_mm256_max_ps(a, b) } else { arch::_mm256_min_ps(a, b) };
    let mut all = pick(best[0], best[1]);
    all = pick(all, arch::_mm256_permute2f128_ps::<1>(all, all));
    all = pick(all, arch::_mm256_permute_ps::<0b0100_1110>(all));
    all = pick(all, arch::_mm256_permute_ps::<0b1011_0001>(all));
    let choose = |a, b| if last { arch::_mm256_max_epi32(a, b) } else { arch::_mm256_min_epi32(a, b) };
    let none = arch::_mm256_set1_epi32(if last { -1 } else { i32::MAX });
    let lanes = arch::_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let [a, b] = [0, 1].map(|side| {
        let equal = arch::_mm256_cmp_ps::<{ arch::_CMP_EQ_OQ }>(best[side], all);
        let places = arch::_mm256_add_epi32(arch::_mm256_slli_epi32::<3>(at[side]), lanes);
        arch::_mm256_blendv_epi8(none, places, arch::_mm256_castps_si256(equal))
    });
    let mut places = choose(a, b);
    places = choose(places, arch::_mm256_permute2x128_si256::<1>(places, places));
    places = choose(places, arch::_mm256_shuffle_epi32::<0b0100_1110>(places));
    places = choose(places, arch::_mm256_shuffle_epi32::<0b1011_0001>(places));
    let place = usize::try_from(arch::_mm256_cvtsi256_si32(places)).ok()?;
    Some((place, vectors.len() * LANES))
}
