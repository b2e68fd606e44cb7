//! Vectors of unsigned integers, for sorting and for moving elements.

use crate::exec::simd::{Avx2, Avx512, InstructionSet, arch};

/// An unsigned integer that fills the lanes of a vector of the instruction set `S`. A mask has one
/// bit per lane, the lowest bit for the first lane.
pub trait IntVector<S: InstructionSet>: Copy + Ord + Default + Send + Sync + 'static {
    /// An array with one element per lane.
    type Array: Copy;
    /// The bytes of one integer, without alignment.
    type Bytes;
    /// The vector.
    type Vector: Copy;
    /// The number of lanes of a vector.
    const LANES: usize;
    /// The largest integer.
    const LARGEST: Self;

    /// Loads the first `LANES` elements of a slice. Panics if the slice is shorter.
    fn load(set: S, from: &[Self]) -> Self::Vector;
    /// Stores a vector at the start of a slice. Panics if the slice is shorter.
    fn store(set: S, vector: Self::Vector, to: &mut [Self]);
    /// Loads a slice of at most `LANES` elements; the lanes after them hold `LARGEST`. Panics if
    /// the slice is longer.
    fn load_first(set: S, from: &[Self]) -> Self::Vector;
    /// Fills a slice with the first lanes. Panics if the slice is longer than a vector.
    fn store_first(set: S, vector: Self::Vector, to: &mut [Self]);
    /// Stores the lanes of the mask at the start of `to[..length]`, and the other lanes at its end.
    /// May overwrite the first and the last `LANES` elements of `to[..length]`. Panics if these are
    /// not in the slice.
    fn store_left_right(set: S, mask: u16, vector: Self::Vector, to: &mut [Self], length: usize);
    /// `load_first` from bytes.
    fn read(set: S, from: &[Self::Bytes]) -> Self::Vector;
    /// `store_first` to bytes.
    fn write(set: S, vector: Self::Vector, to: &mut [Self::Bytes]);
    /// Puts the value into all lanes.
    fn splat(set: S, value: Self) -> Self::Vector;
    /// The smaller integer of each pair of lanes.
    fn smaller(set: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The larger integer of each pair of lanes.
    fn larger(set: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The smaller and the larger integer of each pair of lanes.
    fn sort_pair(set: S, a: Self::Vector, b: Self::Vector) -> (Self::Vector, Self::Vector);
    /// The larger integer of each pair in the lanes of the mask, the smaller one in the others.
    fn min_or_max(set: S, larger: u16, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The mask of the lanes where `a < b`.
    fn less(set: S, a: Self::Vector, b: Self::Vector) -> u16;
    /// Moves the lanes of the mask to the front; the contents of the other lanes are unspecified.
    fn compress(set: S, mask: u16, vector: Self::Vector) -> Self::Vector;
    /// Lane `i` of the result is lane `from[i]` of `a`, or lane `from[i] - LANES` of `b` if
    /// `from[i]` is `LANES` or more.
    fn permute_two(set: S, a: Self::Vector, b: Self::Vector, from: &Self::Array) -> Self::Vector;
    /// Lane `i` of the result is lane `from[i]` of the vector.
    fn permute(set: S, vector: Self::Vector, from: &Self::Array) -> Self::Vector;

    /// The integer plus one. Returns `None` for the largest integer.
    fn next(self) -> Option<Self>;
    /// Row `i` holds `lane ^ i` for each lane.
    const XOR_LANES: [Self::Array; 16];
    /// Row `i` holds the indices with which `permute_two` makes the first and the second vector of
    /// one step of a transposition: the lanes of the first vector whose number has bit `i` change
    /// places with the lanes of the second vector whose number does not.
    const TRANSPOSE_LANES: [[Self::Array; 2]; 4];
    /// Row `i` holds the number of each lane, its bits rotated to the right by `i`.
    const ROTATED_LANES: [Self::Array; 4];
    /// The mask of the lanes whose number has this bit set.
    #[inline(always)]
    fn lanes_with_bit(bit: usize) -> u16 {
        const { assert!(Self::LANES <= 16) };
        let lanes = match bit {
            1 => 0xaaaa,
            2 => 0xcccc,
            4 => 0xf0f0,
            _ => 0xff00,
        };
        lanes & u16::MAX >> (16 - Self::LANES)
    }
}

/// The items of [`IntVector`] that depend only on the integer and the number of lanes.
macro_rules! shared_items {
    ($t:ty, $lanes:literal, $bytes:literal, $vector:ident) => {
        type Array = [$t; $lanes];
        type Bytes = [u8; $bytes];
        type Vector = arch::$vector;
        const LANES: usize = $lanes;
        const LARGEST: $t = <$t>::MAX;

        #[inline(always)]
        fn next(self) -> Option<$t> {
            self.checked_add(1)
        }
        const XOR_LANES: [[$t; $lanes]; 16] = {
            let mut table = [[0; $lanes]; 16];
            let mut i = 0;
            while i < 16 * $lanes {
                table[i / $lanes][i % $lanes] = (i % $lanes ^ i / $lanes % $lanes) as $t;
                i += 1;
            }
            table
        };
        const TRANSPOSE_LANES: [[[$t; $lanes]; 2]; 4] = {
            let mut table = [[[0; $lanes]; 2]; 4];
            let mut i = 0;
            while i < 4 * $lanes {
                let (bit, lane) = (1 << (i / $lanes), i % $lanes);
                let other = (lane ^ bit) % $lanes;
                let (first, second) =
                    if lane & bit == 0 { (lane, other) } else { ($lanes + other, $lanes + lane) };
                table[i / $lanes][0][lane] = first as $t;
                table[i / $lanes][1][lane] = second as $t;
                i += 1;
            }
            table
        };
        const ROTATED_LANES: [[$t; $lanes]; 4] = {
            let mut table = [[0; $lanes]; 4];
            let mut i = 0;
            while i < 4 * $lanes {
                let (by, lane) = (i / $lanes, i % $lanes);
                let top = lane << ($lanes as usize).ilog2() >> by;
                table[by][lane] = ((lane >> by | top) % $lanes) as $t;
                i += 1;
            }
            table
        };
    };
}

macro_rules! avx512 {
    // `$slow`: minima and maxima take several micro-operations each on many processors.
    ($t:ty, $lanes:literal, $bytes:literal, $mask:ty, $splat:ident, $int:ty, $min:ident, $max:ident, $mask_max:ident, $blend:ident, $slow:literal, $less:ident,
     $compress:ident, $permute_two:ident, $permute:ident, $load_first:ident, $store_first:ident) => {
        // SAFETY of each call: an `Avx512` exists only if the processor has the instructions.
        // Loads and stores access borrowed arrays, within their bounds.
        impl IntVector<Avx512> for $t {
            shared_items!($t, $lanes, $bytes, __m512i);

            #[inline(always)]
            fn load(_: Avx512, from: &[$t]) -> arch::__m512i {
                let from = &from[..$lanes];
                // SAFETY: as above.
                unsafe { arch::_mm512_loadu_si512(from.as_ptr().cast()) }
            }
            #[inline(always)]
            fn store(_: Avx512, vector: arch::__m512i, to: &mut [$t]) {
                let to = &mut to[..$lanes];
                // SAFETY: as above.
                unsafe { arch::_mm512_storeu_si512(to.as_mut_ptr().cast(), vector) }
            }
            #[inline(always)]
            fn load_first(set: Avx512, from: &[$t]) -> arch::__m512i {
                assert!(from.len() <= $lanes);
                let mask = ((1u32 << from.len()) - 1) as $mask;
                let last = <$t as IntVector<Avx512>>::splat(set, <$t>::MAX);
                // SAFETY: as above; lanes outside the mask are not read.
                unsafe { arch::$load_first(last, mask, from.as_ptr().cast()) }
            }
            #[inline(always)]
            fn store_first(_: Avx512, vector: arch::__m512i, to: &mut [$t]) {
                assert!(to.len() <= $lanes);
                let mask = ((1u32 << to.len()) - 1) as $mask;
                // SAFETY: as above; lanes outside the mask are not written.
                unsafe { arch::$store_first(to.as_mut_ptr().cast(), mask, vector) }
            }
            #[inline(always)]
            fn store_left_right(set: Avx512, mask: u16, vector: arch::__m512i, to: &mut [$t], length: usize) {
                let count = mask.count_ones() as usize;
                let first = <$t as IntVector<Avx512>>::compress(set, mask, vector);
                <$t as IntVector<Avx512>>::store_first(set, first, &mut to[..count]);
                let others = <$t as IntVector<Avx512>>::compress(set, !mask, vector);
                <$t as IntVector<Avx512>>::store_first(set, others, &mut to[length + count - $lanes..length]);
            }
            #[inline(always)]
            fn read(set: Avx512, from: &[[u8; $bytes]]) -> arch::__m512i {
                if from.len() == $lanes {
                    // SAFETY: as above.
                    return unsafe { arch::_mm512_loadu_si512(from.as_ptr().cast()) };
                }
                assert!(from.len() < $lanes);
                let mask = ((1u32 << from.len()) - 1) as $mask;
                let last = <$t as IntVector<Avx512>>::splat(set, <$t>::MAX);
                // SAFETY: as above; lanes outside the mask are not read.
                unsafe { arch::$load_first(last, mask, from.as_ptr().cast()) }
            }
            #[inline(always)]
            fn write(_: Avx512, vector: arch::__m512i, to: &mut [[u8; $bytes]]) {
                if to.len() == $lanes {
                    // SAFETY: as above.
                    return unsafe { arch::_mm512_storeu_si512(to.as_mut_ptr().cast(), vector) };
                }
                assert!(to.len() < $lanes);
                let mask = ((1u32 << to.len()) - 1) as $mask;
                // SAFETY: as above; lanes outside the mask are not written.
                unsafe { arch::$store_first(to.as_mut_ptr().cast(), mask, vector) }
            }
            #[inline(always)]
            fn splat(_: Avx512, value: $t) -> arch::__m512i {
                // SAFETY: as above.
                unsafe { arch::$splat(value as $int) }
            }
            #[inline(always)]
            fn smaller(_: Avx512, a: arch::__m512i, b: arch::__m512i) -> arch::__m512i {
                // SAFETY: as above.
                unsafe { arch::$min(a, b) }
            }
            #[inline(always)]
            fn larger(_: Avx512, a: arch::__m512i, b: arch::__m512i) -> arch::__m512i {
                // SAFETY: as above.
                unsafe { arch::$max(a, b) }
            }
            #[inline(always)]
            fn sort_pair(_: Avx512, a: arch::__m512i, b: arch::__m512i) -> (arch::__m512i, arch::__m512i) {
                // SAFETY: as above.
                unsafe {
                    let smaller = arch::$min(a, b);
                    // `a ^ b ^ smaller`, the element of the pair that is not the smaller one.
                    let other = || arch::_mm512_ternarylogic_epi64::<0x96>(a, b, smaller);
                    (smaller, if $slow { other() } else { arch::$max(a, b) })
                }
            }
            #[inline(always)]
            fn min_or_max(_: Avx512, larger: u16, a: arch::__m512i, b: arch::__m512i) -> arch::__m512i {
                let larger = larger as $mask;
                // SAFETY: as above.
                unsafe {
                    if $slow {
                        arch::$blend(arch::$less(a, b) ^ larger, b, a)
                    } else {
                        arch::$mask_max(arch::$min(a, b), larger, a, b)
                    }
                }
            }
            #[inline(always)]
            #[allow(clippy::useless_conversion, reason = "one of the masks has 16 bits")]
            fn less(_: Avx512, a: arch::__m512i, b: arch::__m512i) -> u16 {
                // SAFETY: as above.
                u16::from(unsafe { arch::$less(a, b) })
            }
            #[inline(always)]
            fn compress(_: Avx512, mask: u16, vector: arch::__m512i) -> arch::__m512i {
                // SAFETY: as above.
                unsafe { arch::$compress(mask as $mask, vector) }
            }
            #[inline(always)]
            fn permute_two(
                set: Avx512,
                a: arch::__m512i,
                b: arch::__m512i,
                from: &[$t; $lanes],
            ) -> arch::__m512i {
                let from = <$t as IntVector<Avx512>>::load(set, from);
                // SAFETY: as above.
                unsafe { arch::$permute_two(a, from, b) }
            }
            #[inline(always)]
            fn permute(set: Avx512, vector: arch::__m512i, from: &[$t; $lanes]) -> arch::__m512i {
                let from = <$t as IntVector<Avx512>>::load(set, from);
                // SAFETY: as above.
                unsafe { arch::$permute(from, vector) }
            }
        }
    };
}

avx512!(
    u32,
    16,
    4,
    u16,
    _mm512_set1_epi32,
    i32,
    _mm512_min_epu32,
    _mm512_max_epu32,
    _mm512_mask_max_epu32,
    _mm512_mask_blend_epi32,
    false,
    _mm512_cmplt_epu32_mask,
    _mm512_maskz_compress_epi32,
    _mm512_permutex2var_epi32,
    _mm512_permutexvar_epi32,
    _mm512_mask_loadu_epi32,
    _mm512_mask_storeu_epi32
);
avx512!(
    u64,
    8,
    8,
    u8,
    _mm512_set1_epi64,
    i64,
    _mm512_min_epu64,
    _mm512_max_epu64,
    _mm512_mask_max_epu64,
    _mm512_mask_blend_epi64,
    true,
    _mm512_cmplt_epu64_mask,
    _mm512_maskz_compress_epi64,
    _mm512_permutex2var_epi64,
    _mm512_permutexvar_epi64,
    _mm512_mask_loadu_epi64,
    _mm512_mask_storeu_epi64
);

/// For each mask, the permutation that moves the lanes of the mask to the front and the others
/// behind them, as indices of 32-bit words: a lane of 64 bits has two.
const fn compress_lanes<const MASKS: usize>(lanes: usize) -> [[u8; 8]; MASKS] {
    let words = 8 / lanes;
    let mut table = [[0; 8]; MASKS];
    let mut mask = 0;
    while mask < MASKS {
        let (mut lane, mut first) = (0, 0);
        let mut other = mask.count_ones() as usize;
        while lane < lanes {
            let slot = if mask >> lane & 1 == 1 { &mut first } else { &mut other };
            let mut word = 0;
            while word < words {
                table[mask][*slot * words + word] = (lane * words + word) as u8;
                word += 1;
            }
            *slot += 1;
            lane += 1;
        }
        mask += 1;
    }
    table
}

static COMPRESS_LANES_8: [[u8; 8]; 256] = compress_lanes(8);
static COMPRESS_LANES_4: [[u8; 8]; 16] = compress_lanes(4);

macro_rules! avx2 {
    ($t:ty, $lanes:literal, $bytes:literal, $splat:ident, $int:ty, $movemask:ident, $cast_to_float:ident, $compress_lanes:ident,
     // `$to_signed_order` converts a vector to the order of signed comparisons, and back.
     $to_signed_order:ident, $sort_pair:ident, $min_or_max:ident, $less:ident, $words:expr) => {
        // SAFETY of each call: an `Avx2` exists only if the processor has the instructions.
        // Loads and stores access borrowed arrays, within their bounds.
        impl IntVector<Avx2> for $t {
            shared_items!($t, $lanes, $bytes, __m256i);

            #[inline(always)]
            fn load(_: Avx2, from: &[$t]) -> arch::__m256i {
                let from = &from[..$lanes];
                // SAFETY: as above.
                unsafe { $to_signed_order(arch::_mm256_loadu_si256(from.as_ptr().cast())) }
            }
            #[inline(always)]
            fn store(_: Avx2, vector: arch::__m256i, to: &mut [$t]) {
                let to = &mut to[..$lanes];
                // SAFETY: as above.
                unsafe { arch::_mm256_storeu_si256(to.as_mut_ptr().cast(), $to_signed_order(vector)) }
            }
            // AVX2's masked stores take about twenty micro-operations on many processors, so
            // partial vectors are copied through an array.
            #[inline(always)]
            fn load_first(set: Avx2, from: &[$t]) -> arch::__m256i {
                if from.len() == $lanes {
                    return <$t as IntVector<Avx2>>::load(set, from);
                }
                let mut all = [<$t>::MAX; $lanes];
                all[..from.len()].copy_from_slice(from);
                <$t as IntVector<Avx2>>::load(set, &all)
            }
            #[inline(always)]
            fn store_first(set: Avx2, vector: arch::__m256i, to: &mut [$t]) {
                if to.len() == $lanes {
                    return <$t as IntVector<Avx2>>::store(set, vector, to);
                }
                let mut all = [0; $lanes];
                <$t as IntVector<Avx2>>::store(set, vector, &mut all);
                to.copy_from_slice(&all[..to.len()]);
            }
            #[inline(always)]
            fn store_left_right(set: Avx2, mask: u16, vector: arch::__m256i, to: &mut [$t], length: usize) {
                let partitioned = <$t as IntVector<Avx2>>::compress(set, mask, vector);
                <$t as IntVector<Avx2>>::store(set, partitioned, to);
                <$t as IntVector<Avx2>>::store(set, partitioned, &mut to[length - $lanes..]);
            }
            #[inline(always)]
            fn read(set: Avx2, from: &[[u8; $bytes]]) -> arch::__m256i {
                if from.len() == $lanes {
                    // SAFETY: as above.
                    return unsafe { $to_signed_order(arch::_mm256_loadu_si256(from.as_ptr().cast())) };
                }
                let mut all = [<$t>::MAX; $lanes];
                for (all, &from) in all[..from.len()].iter_mut().zip(from) {
                    *all = <$t>::from_ne_bytes(from);
                }
                <$t as IntVector<Avx2>>::load(set, &all)
            }
            #[inline(always)]
            fn write(set: Avx2, vector: arch::__m256i, to: &mut [[u8; $bytes]]) {
                if to.len() == $lanes {
                    // SAFETY: as above.
                    return unsafe {
                        arch::_mm256_storeu_si256(to.as_mut_ptr().cast(), $to_signed_order(vector))
                    };
                }
                let mut all = [0; $lanes];
                <$t as IntVector<Avx2>>::store(set, vector, &mut all);
                assert!(to.len() < $lanes);
                for (to, from) in to.iter_mut().zip(all) {
                    *to = from.to_ne_bytes();
                }
            }
            #[inline(always)]
            fn splat(_: Avx2, value: $t) -> arch::__m256i {
                // SAFETY: as above.
                unsafe { $to_signed_order(arch::$splat(value as $int)) }
            }
            #[inline(always)]
            fn smaller(_: Avx2, a: arch::__m256i, b: arch::__m256i) -> arch::__m256i {
                // SAFETY: as above.
                unsafe { $sort_pair(a, b).0 }
            }
            #[inline(always)]
            fn larger(_: Avx2, a: arch::__m256i, b: arch::__m256i) -> arch::__m256i {
                // SAFETY: as above.
                unsafe { $sort_pair(a, b).1 }
            }
            #[inline(always)]
            fn sort_pair(_: Avx2, a: arch::__m256i, b: arch::__m256i) -> (arch::__m256i, arch::__m256i) {
                // SAFETY: as above.
                unsafe { $sort_pair(a, b) }
            }
            #[inline(always)]
            fn min_or_max(_: Avx2, larger: u16, a: arch::__m256i, b: arch::__m256i) -> arch::__m256i {
                let mut all = [0; $lanes];
                for (lane, all) in all.iter_mut().enumerate() {
                    *all = if larger >> lane & 1 == 1 { <$t>::MAX } else { 0 };
                }
                // SAFETY: as above.
                unsafe { $min_or_max(arch::_mm256_loadu_si256(all.as_ptr().cast()), a, b) }
            }
            #[inline(always)]
            fn less(_: Avx2, a: arch::__m256i, b: arch::__m256i) -> u16 {
                // SAFETY: as above.
                unsafe { arch::$movemask(arch::$cast_to_float($less(a, b))) as u16 }
            }
            #[inline(always)]
            fn compress(_: Avx2, mask: u16, vector: arch::__m256i) -> arch::__m256i {
                let from = &$compress_lanes[usize::from(mask) % $compress_lanes.len()];
                // SAFETY: as above.
                unsafe {
                    let from = arch::_mm256_cvtepu8_epi32(arch::_mm_loadl_epi64(from.as_ptr().cast()));
                    arch::_mm256_permutevar8x32_epi32(vector, from)
                }
            }
            #[inline(always)]
            fn permute_two(
                set: Avx2,
                a: arch::__m256i,
                b: arch::__m256i,
                from: &[$t; $lanes],
            ) -> arch::__m256i {
                let of_a = <$t as IntVector<Avx2>>::permute(set, a, &from.map(|lane| lane % $lanes));
                let of_b = <$t as IntVector<Avx2>>::permute(set, b, &from.map(|lane| lane % $lanes));
                let which = from.map(|lane| if lane < $lanes { 0 } else { <$t>::MAX });
                // SAFETY: as above.
                unsafe {
                    arch::_mm256_blendv_epi8(of_a, of_b, arch::_mm256_loadu_si256(which.as_ptr().cast()))
                }
            }
            #[inline(always)]
            fn permute(_: Avx2, vector: arch::__m256i, from: &[$t; $lanes]) -> arch::__m256i {
                let from = from.map($words);
                // SAFETY: as above.
                unsafe {
                    arch::_mm256_permutevar8x32_epi32(vector, arch::_mm256_loadu_si256(from.as_ptr().cast()))
                }
            }
        }
    };
}

avx2!(
    u32,
    8,
    4,
    _mm256_set1_epi32,
    i32,
    _mm256_movemask_ps,
    _mm256_castsi256_ps,
    COMPRESS_LANES_8,
    identity,
    sort_pair_u32,
    min_or_max_u32,
    less_u32,
    |lane| lane
);
avx2!(
    u64,
    4,
    8,
    _mm256_set1_epi64x,
    i64,
    _mm256_movemask_pd,
    _mm256_castsi256_pd,
    COMPRESS_LANES_4,
    flip_sign_u64,
    sort_pair_u64,
    min_or_max_u64,
    less_u64,
    |lane| (2 * lane) | ((2 * lane + 1) << 32)
);

#[inline]
#[target_feature(enable = "avx2")]
fn identity(vector: arch::__m256i) -> arch::__m256i {
    vector
}

#[inline]
#[target_feature(enable = "avx2")]
fn sort_pair_u32(a: arch::__m256i, b: arch::__m256i) -> (arch::__m256i, arch::__m256i) {
    (arch::_mm256_min_epu32(a, b), arch::_mm256_max_epu32(a, b))
}

#[inline]
#[target_feature(enable = "avx2")]
fn min_or_max_u32(larger: arch::__m256i, a: arch::__m256i, b: arch::__m256i) -> arch::__m256i {
    let (low, high) = sort_pair_u32(a, b);
    arch::_mm256_blendv_epi8(low, high, larger)
}

#[inline]
#[target_feature(enable = "avx2")]
fn less_u32(a: arch::__m256i, b: arch::__m256i) -> arch::__m256i {
    let sign = arch::_mm256_set1_epi32(i32::MIN);
    arch::_mm256_cmpgt_epi32(arch::_mm256_xor_si256(b, sign), arch::_mm256_xor_si256(a, sign))
}

/// Maps the order of unsigned integers to that of signed ones, and back: AVX2 compares 64-bit
/// integers only as signed ones.
#[inline]
#[target_feature(enable = "avx2")]
fn flip_sign_u64(vector: arch::__m256i) -> arch::__m256i {
    arch::_mm256_xor_si256(vector, arch::_mm256_set1_epi64x(i64::MIN))
}

#[inline]
#[target_feature(enable = "avx2")]
fn sort_pair_u64(a: arch::__m256i, b: arch::__m256i) -> (arch::__m256i, arch::__m256i) {
    let greater = arch::_mm256_cmpgt_epi64(a, b);
    (arch::_mm256_blendv_epi8(a, b, greater), arch::_mm256_blendv_epi8(b, a, greater))
}

#[inline]
#[target_feature(enable = "avx2")]
fn min_or_max_u64(larger: arch::__m256i, a: arch::__m256i, b: arch::__m256i) -> arch::__m256i {
    arch::_mm256_blendv_epi8(a, b, arch::_mm256_xor_si256(arch::_mm256_cmpgt_epi64(a, b), larger))
}

#[inline]
#[target_feature(enable = "avx2")]
fn less_u64(a: arch::__m256i, b: arch::__m256i) -> arch::__m256i {
    arch::_mm256_cmpgt_epi64(b, a)
}
