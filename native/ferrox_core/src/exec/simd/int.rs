//! Unsigned integers in vectors, for sorting and moving elements.

use crate::exec::simd::{Avx2, Avx512, InstructionSet, arch};

/// Unsigned integers in vectors of an instruction set. A mask has a bit for each lane, the
/// lowest for the first.
pub trait Lanes<S: InstructionSet>: Copy + Ord + Default + Send + Sync + 'static {
    /// As many as a vector holds.
    type Array: Copy;
    /// One, as bytes at any address.
    type Bytes;
    /// The vector.
    type Vector: Copy;
    /// How many it holds.
    const LANES: usize;
    /// The largest.
    const LAST: Self;

    /// The array that a slice starts with; panics if the slice is shorter.
    fn load(set: S, from: &[Self]) -> Self::Vector;
    /// Writes the first lanes of a slice; panics if it is shorter.
    fn store(set: S, vector: Self::Vector, to: &mut [Self]);
    /// At most a vector of keys, and `LAST` in the lanes after them; panics if
    /// there are more.
    fn load_part(set: S, from: &[Self]) -> Self::Vector;
    /// Fills a slice with the first lanes; panics if it has more.
    fn store_part(set: S, vector: Self::Vector, to: &mut [Self]);
    /// Writes the lanes of the mask to the start of a slice, and the others to the end of its first
    /// `length`. What is a vector from either may be overwritten; panics if it is not in the slice.
    fn store_apart(set: S, mask: u16, vector: Self::Vector, to: &mut [Self], length: usize);
    /// `load_part` of bytes.
    fn read(set: S, from: &[Self::Bytes]) -> Self::Vector;
    /// `store_part` of bytes.
    fn write(set: S, vector: Self::Vector, to: &mut [Self::Bytes]);
    /// The same in all lanes.
    fn splat(set: S, value: Self) -> Self::Vector;
    /// The smaller of each pair.
    fn smaller(set: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The larger of each pair.
    fn larger(set: S, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The smaller and the larger of each pair.
    fn sorted(set: S, a: Self::Vector, b: Self::Vector) -> (Self::Vector, Self::Vector);
    /// The larger of each pair where the mask says so, else the smaller.
    fn min_or_max(set: S, larger: u16, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Where `a < b`.
    fn less(set: S, a: Self::Vector, b: Self::Vector) -> u16;
    /// The lanes of the mask, moved to the front; what the others hold is not said.
    fn compress(set: S, mask: u16, vector: Self::Vector) -> Self::Vector;
    /// Lane `i` is lane `from[i]` of `a`, or of `b` from `LANES` on.
    fn pick(set: S, a: Self::Vector, b: Self::Vector, from: &Self::Array) -> Self::Vector;
    /// Lane `i` is lane `from[i]`.
    fn permute(set: S, vector: Self::Vector, from: &Self::Array) -> Self::Vector;

    /// The next larger key.
    fn next(self) -> Option<Self>;
    /// In row `i`, the number of each lane with the bits of `i` flipped.
    const FLIPPED: [Self::Array; 16];
    /// What `pick` takes for the first and for the second of two vectors, so that
    /// lanes with a bit in their number go to the one and from the other: in row
    /// `i`, of bit `i`.
    const TURNED: [[Self::Array; 2]; 4];
    /// In row `i`, the number of each lane with its lowest `i` bits at the top.
    const ROTATED: [Self::Array; 4];
    /// Which lanes have a bit in their number.
    #[inline(always)]
    fn lanes_with(bit: usize) -> u16 {
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

/// What doesn't depend on the vectors but for how many lanes they have.
macro_rules! numbers {
    ($t:ty, $lanes:literal, $bytes:literal, $vector:ident) => {
        type Array = [$t; $lanes];
        type Bytes = [u8; $bytes];
        type Vector = arch::$vector;
        const LANES: usize = $lanes;
        const LAST: $t = <$t>::MAX;

        #[inline(always)]
        fn next(self) -> Option<$t> {
            self.checked_add(1)
        }
        const FLIPPED: [[$t; $lanes]; 16] = {
            let mut table = [[0; $lanes]; 16];
            let mut i = 0;
            while i < 16 * $lanes {
                table[i / $lanes][i % $lanes] = (i % $lanes ^ i / $lanes % $lanes) as $t;
                i += 1;
            }
            table
        };
        const TURNED: [[[$t; $lanes]; 2]; 4] = {
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
        const ROTATED: [[$t; $lanes]; 4] = {
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
    // `slow` where minima and maxima take several instructions each within many a processor.
    ($t:ty, $lanes:literal, $bytes:literal, $mask:ty, $splat:ident, $int:ty, $min:ident, $max:ident, $mask_max:ident, $blend:ident, $slow:literal, $less:ident,
     $compress:ident, $pick:ident, $permute:ident, $load_part:ident, $store_part:ident) => {
        // SAFETY, of each call: a `Avx512` is only made where the processor has the
        // instructions. Loads and stores are of arrays that are borrowed.
        impl Lanes<Avx512> for $t {
            numbers!($t, $lanes, $bytes, __m512i);

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
            fn load_part(set: Avx512, from: &[$t]) -> arch::__m512i {
                assert!(from.len() <= $lanes);
                let mask = ((1u32 << from.len()) - 1) as $mask;
                let last = <$t as Lanes<Avx512>>::splat(set, <$t>::MAX);
                // SAFETY: as above; what the mask leaves out isn't read.
                unsafe { arch::$load_part(last, mask, from.as_ptr().cast()) }
            }
            #[inline(always)]
            fn store_part(_: Avx512, vector: arch::__m512i, to: &mut [$t]) {
                assert!(to.len() <= $lanes);
                let mask = ((1u32 << to.len()) - 1) as $mask;
                // SAFETY: as above; what the mask leaves out isn't written.
                unsafe { arch::$store_part(to.as_mut_ptr().cast(), mask, vector) }
            }
            #[inline(always)]
            fn store_apart(set: Avx512, mask: u16, vector: arch::__m512i, to: &mut [$t], length: usize) {
                let count = mask.count_ones() as usize;
                let first = <$t as Lanes<Avx512>>::compress(set, mask, vector);
                <$t as Lanes<Avx512>>::store_part(set, first, &mut to[..count]);
                let others = <$t as Lanes<Avx512>>::compress(set, !mask, vector);
                <$t as Lanes<Avx512>>::store_part(set, others, &mut to[length + count - $lanes..length]);
            }
            #[inline(always)]
            fn read(set: Avx512, from: &[[u8; $bytes]]) -> arch::__m512i {
                if from.len() == $lanes {
                    // SAFETY: as above.
                    return unsafe { arch::_mm512_loadu_si512(from.as_ptr().cast()) };
                }
                assert!(from.len() < $lanes);
                let mask = ((1u32 << from.len()) - 1) as $mask;
                let last = <$t as Lanes<Avx512>>::splat(set, <$t>::MAX);
                // SAFETY: as above; what the mask leaves out isn't read.
                unsafe { arch::$load_part(last, mask, from.as_ptr().cast()) }
            }
            #[inline(always)]
            fn write(_: Avx512, vector: arch::__m512i, to: &mut [[u8; $bytes]]) {
                if to.len() == $lanes {
                    // SAFETY: as above.
                    return unsafe { arch::_mm512_storeu_si512(to.as_mut_ptr().cast(), vector) };
                }
                assert!(to.len() < $lanes);
                let mask = ((1u32 << to.len()) - 1) as $mask;
                // SAFETY: as above; what the mask leaves out isn't written.
                unsafe { arch::$store_part(to.as_mut_ptr().cast(), mask, vector) }
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
            fn sorted(_: Avx512, a: arch::__m512i, b: arch::__m512i) -> (arch::__m512i, arch::__m512i) {
                // SAFETY: as above.
                unsafe {
                    let smaller = arch::$min(a, b);
                    // The one that the smaller isn't.
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
            fn pick(set: Avx512, a: arch::__m512i, b: arch::__m512i, from: &[$t; $lanes]) -> arch::__m512i {
                let from = <$t as Lanes<Avx512>>::load(set, from);
                // SAFETY: as above.
                unsafe { arch::$pick(a, from, b) }
            }
            #[inline(always)]
            fn permute(set: Avx512, vector: arch::__m512i, from: &[$t; $lanes]) -> arch::__m512i {
                let from = <$t as Lanes<Avx512>>::load(set, from);
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

/// Lanes of a mask first, and then the others: for each mask their numbers, those of the 32-bit
/// halves where lanes have two.
const fn apart<const MASKS: usize>(lanes: usize) -> [[u8; 8]; MASKS] {
    let halves = 8 / lanes;
    let mut table = [[0; 8]; MASKS];
    let mut mask = 0;
    while mask < MASKS {
        let (mut lane, mut first) = (0, 0);
        let mut other = mask.count_ones() as usize;
        while lane < lanes {
            let place = if mask >> lane & 1 == 1 { &mut first } else { &mut other };
            let mut half = 0;
            while half < halves {
                table[mask][*place * halves + half] = (lane * halves + half) as u8;
                half += 1;
            }
            *place += 1;
            lane += 1;
        }
        mask += 1;
    }
    table
}

static APART_8: [[u8; 8]; 256] = apart(8);
static APART_4: [[u8; 8]; 16] = apart(4);

macro_rules! avx2 {
    ($t:ty, $lanes:literal, $bytes:literal, $splat:ident, $int:ty, $lanes_of:ident, $float:ident, $apart:ident,
     // To what is compared, and back.
     $ordered:ident, $sorted:ident, $min_or_max:ident, $less:ident, $halves:expr) => {
        // SAFETY, of each call: an `Avx2` is only made where the processor has the
        // instructions. Loads and stores are of arrays that are borrowed.
        impl Lanes<Avx2> for $t {
            numbers!($t, $lanes, $bytes, __m256i);

            #[inline(always)]
            fn load(_: Avx2, from: &[$t]) -> arch::__m256i {
                let from = &from[..$lanes];
                // SAFETY: as above.
                unsafe { $ordered(arch::_mm256_loadu_si256(from.as_ptr().cast())) }
            }
            #[inline(always)]
            fn store(_: Avx2, vector: arch::__m256i, to: &mut [$t]) {
                let to = &mut to[..$lanes];
                // SAFETY: as above.
                unsafe { arch::_mm256_storeu_si256(to.as_mut_ptr().cast(), $ordered(vector)) }
            }
            // Stores of parts take some twenty steps within many a processor: parts are copied.
            #[inline(always)]
            fn load_part(set: Avx2, from: &[$t]) -> arch::__m256i {
                if from.len() == $lanes {
                    return <$t as Lanes<Avx2>>::load(set, from);
                }
                let mut all = [<$t>::MAX; $lanes];
                all[..from.len()].copy_from_slice(from);
                <$t as Lanes<Avx2>>::load(set, &all)
            }
            #[inline(always)]
            fn store_part(set: Avx2, vector: arch::__m256i, to: &mut [$t]) {
                if to.len() == $lanes {
                    return <$t as Lanes<Avx2>>::store(set, vector, to);
                }
                let mut all = [0; $lanes];
                <$t as Lanes<Avx2>>::store(set, vector, &mut all);
                to.copy_from_slice(&all[..to.len()]);
            }
            #[inline(always)]
            fn store_apart(set: Avx2, mask: u16, vector: arch::__m256i, to: &mut [$t], length: usize) {
                let apart = <$t as Lanes<Avx2>>::compress(set, mask, vector);
                <$t as Lanes<Avx2>>::store(set, apart, to);
                <$t as Lanes<Avx2>>::store(set, apart, &mut to[length - $lanes..]);
            }
            #[inline(always)]
            fn read(set: Avx2, from: &[[u8; $bytes]]) -> arch::__m256i {
                if from.len() == $lanes {
                    // SAFETY: as above.
                    return unsafe { $ordered(arch::_mm256_loadu_si256(from.as_ptr().cast())) };
                }
                let mut all = [<$t>::MAX; $lanes];
                for (all, &from) in all[..from.len()].iter_mut().zip(from) {
                    *all = <$t>::from_ne_bytes(from);
                }
                <$t as Lanes<Avx2>>::load(set, &all)
            }
            #[inline(always)]
            fn write(set: Avx2, vector: arch::__m256i, to: &mut [[u8; $bytes]]) {
                if to.len() == $lanes {
                    // SAFETY: as above.
                    return unsafe { arch::_mm256_storeu_si256(to.as_mut_ptr().cast(), $ordered(vector)) };
                }
                let mut all = [0; $lanes];
                <$t as Lanes<Avx2>>::store(set, vector, &mut all);
                assert!(to.len() < $lanes);
                for (to, from) in to.iter_mut().zip(all) {
                    *to = from.to_ne_bytes();
                }
            }
            #[inline(always)]
            fn splat(_: Avx2, value: $t) -> arch::__m256i {
                // SAFETY: as above.
                unsafe { $ordered(arch::$splat(value as $int)) }
            }
            #[inline(always)]
            fn smaller(_: Avx2, a: arch::__m256i, b: arch::__m256i) -> arch::__m256i {
                // SAFETY: as above.
                unsafe { $sorted(a, b).0 }
            }
            #[inline(always)]
            fn larger(_: Avx2, a: arch::__m256i, b: arch::__m256i) -> arch::__m256i {
                // SAFETY: as above.
                unsafe { $sorted(a, b).1 }
            }
            #[inline(always)]
            fn sorted(_: Avx2, a: arch::__m256i, b: arch::__m256i) -> (arch::__m256i, arch::__m256i) {
                // SAFETY: as above.
                unsafe { $sorted(a, b) }
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
                unsafe { arch::$lanes_of(arch::$float($less(a, b))) as u16 }
            }
            #[inline(always)]
            fn compress(_: Avx2, mask: u16, vector: arch::__m256i) -> arch::__m256i {
                let from = &$apart[usize::from(mask) % $apart.len()];
                // SAFETY: as above.
                unsafe {
                    let from = arch::_mm256_cvtepu8_epi32(arch::_mm_loadl_epi64(from.as_ptr().cast()));
                    arch::_mm256_permutevar8x32_epi32(vector, from)
                }
            }
            #[inline(always)]
            fn pick(set: Avx2, a: arch::__m256i, b: arch::__m256i, from: &[$t; $lanes]) -> arch::__m256i {
                let of_a = <$t as Lanes<Avx2>>::permute(set, a, &from.map(|lane| lane % $lanes));
                let of_b = <$t as Lanes<Avx2>>::permute(set, b, &from.map(|lane| lane % $lanes));
                let which = from.map(|lane| if lane < $lanes { 0 } else { <$t>::MAX });
                // SAFETY: as above.
                unsafe {
                    arch::_mm256_blendv_epi8(of_a, of_b, arch::_mm256_loadu_si256(which.as_ptr().cast()))
                }
            }
            #[inline(always)]
            fn permute(_: Avx2, vector: arch::__m256i, from: &[$t; $lanes]) -> arch::__m256i {
                let from = from.map($halves);
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
    APART_8,
    same,
    sorted_u32,
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
    APART_4,
    signed_u64,
    sorted_u64,
    min_or_max_u64,
    less_u64,
    |lane| (2 * lane) | ((2 * lane + 1) << 32)
);

#[inline]
#[target_feature(enable = "avx2")]
fn same(vector: arch::__m256i) -> arch::__m256i {
    vector
}

#[inline]
#[target_feature(enable = "avx2")]
fn sorted_u32(a: arch::__m256i, b: arch::__m256i) -> (arch::__m256i, arch::__m256i) {
    (arch::_mm256_min_epu32(a, b), arch::_mm256_max_epu32(a, b))
}

#[inline]
#[target_feature(enable = "avx2")]
fn min_or_max_u32(larger: arch::__m256i, a: arch::__m256i, b: arch::__m256i) -> arch::__m256i {
    let (low, high) = sorted_u32(a, b);
    arch::_mm256_blendv_epi8(low, high, larger)
}

#[inline]
#[target_feature(enable = "avx2")]
fn less_u32(a: arch::__m256i, b: arch::__m256i) -> arch::__m256i {
    let sign = arch::_mm256_set1_epi32(i32::MIN);
    arch::_mm256_cmpgt_epi32(arch::_mm256_xor_si256(b, sign), arch::_mm256_xor_si256(a, sign))
}

/// Integers in the order of unsigned ones: of 64 bits only signed ones can be compared.
#[inline]
#[target_feature(enable = "avx2")]
fn signed_u64(vector: arch::__m256i) -> arch::__m256i {
    arch::_mm256_xor_si256(vector, arch::_mm256_set1_epi64x(i64::MIN))
}

#[inline]
#[target_feature(enable = "avx2")]
fn sorted_u64(a: arch::__m256i, b: arch::__m256i) -> (arch::__m256i, arch::__m256i) {
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

/// Turns sixteen rows of up to 64 bytes: column `16 * i + j` is in quarter `i` of row `j`
/// of the result.
#[inline(always)]
pub fn turn_bytes<'a>(_: Avx512, row: impl Fn(usize) -> &'a [u8]) -> [[u8; 64]; 16] {
    type Vector = arch::__m512i;

    // SAFETY, of each call: a `Avx512` is only made where the processor has the instructions.
    #[inline(always)]
    fn load(row: &[u8]) -> Vector {
        assert!(row.len() <= 64);
        let mask = u64::MAX.checked_shr(64 - row.len() as u32).unwrap_or(0);
        // SAFETY: as above; what the mask leaves out isn't read.
        unsafe { arch::_mm512_maskz_loadu_epi8(mask, row.as_ptr().cast()) }
    }
    // The highest bit of a row's number becomes the lowest of a byte's, and the highest of
    // that, in every quarter of a vector, the lowest of the row's.
    #[inline(always)]
    fn low(v: &[Vector; 16], i: usize) -> Vector {
        // SAFETY: as above.
        unsafe { arch::_mm512_unpacklo_epi8(v[i], v[i + 8]) }
    }
    #[inline(always)]
    fn high(v: &[Vector; 16], i: usize) -> Vector {
        // SAFETY: as above.
        unsafe { arch::_mm512_unpackhi_epi8(v[i], v[i + 8]) }
    }
    // Without a loop, so that all stays in registers.
    macro_rules! step {
        ($v:expr, $($i:literal)*) => {{
            let v = $v;
            [$(low(&v, $i), high(&v, $i)),*]
        }};
    }
    macro_rules! rows {
        ($($i:literal)*) => { [$(load(row($i))),*] };
    }

    let v = rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    let v = step!(v, 0 1 2 3 4 5 6 7);
    let v = step!(v, 0 1 2 3 4 5 6 7);
    let v = step!(v, 0 1 2 3 4 5 6 7);
    let v = step!(v, 0 1 2 3 4 5 6 7);
    // SAFETY: both are sixteen times 64 bytes, and any bytes will do.
    unsafe { std::mem::transmute(v) }
}
