//! Minima and maxima of numbers, and their indices (argmin and argmax).
//!
//! Problem: NaN wins over any number, and the two zeros are equal. This takes comparisons for which
//! the compiler generates poor vector code, and different ones for each type. Technique: the bits
//! of a float, read as a signed integer (a *word*) with all bits but the sign flipped if it is
//! negative, are in the order of the values (M. Herf, "Radix Tricks", 2001). So loops compare
//! integers of four widths. A first pass over a row finds the best value, a second one its index.

use std::marker::PhantomData;

#[cfg(target_arch = "x86_64")]
use crate::cost::MIN_ROW_ELEMENTS_FOR_ONE_PASS;
use crate::cost::{ARGMINMAX_CHUNK_ELEMENTS, INDEX_SEARCH_BLOCK_ELEMENTS, MIN_ROW_ELEMENTS_FOR_MINMAX_KEYS};
use crate::dtype::{Element, Lane, cast};
use crate::exec::convert::CastOf;
use crate::exec::copy::transpose::{self, ROWS_PER_BLOCK};
#[cfg(target_arch = "x86_64")]
use crate::exec::reduce::argminmax_simd;
use crate::exec::reduce::fold::{
    Fold, ReductionLoop, fold_chunks, fold_columns, fold_halves, fold_row, needs_prefetch, next_four_rows,
};
use crate::exec::simd::{Vectorized, dispatch as vectorize, prefetch_row};
use crate::{DType, Kind, dispatch};

/// A word: the bits of an element as a signed integer. `flip` has all bits set for a minimum, and
/// none for a maximum (for unsigned integers, the highest bit is the other way round). `limit` is
/// the word of infinity.
pub(crate) trait SignedBits: Lane + Ord + Default {
    /// The least and the greatest word.
    const BOUNDS: (Self, Self);
    /// The word in the lowest bits.
    fn from_low_bits(bits: u64) -> Self;
    /// A key that is the greater the better the element is. NaN of either sign is above all other
    /// elements, and the two zeros have different keys.
    fn order_key<const FLOAT: bool>(self, flip: Self, limit: Self) -> Self;
    /// The word with a key: the inverse of `order_key`.
    fn bits_of_key<const FLOAT: bool>(order_key: Self, flip: Self, limit: Self) -> Self;
    /// A number that is the greater the better the element is. The two zeros have the same rank,
    /// and every NaN, whose magnitude is above `limit`, has the greatest one.
    fn rank<const FLOAT: bool>(self, flip: Self, limit: Self) -> Self;
    /// The words that have this rank.
    fn pattern_of_rank<const FLOAT: bool>(self, flip: Self, limit: Self) -> BitPattern<Self>;
    /// Whether the magnitude, the bits without the sign, is in `first..=first + span`.
    fn has_magnitude(self, first: Self, span: Self) -> bool;
}

/// The words that a search looks for.
#[derive(Clone, Copy)]
pub(crate) enum BitPattern<K> {
    /// One word.
    Exact(K),
    /// Words of either sign whose magnitude is in `first..=first + span`.
    Magnitudes { first: K, span: K },
}

macro_rules! signed_bits {
    ($($t:ident, $unsigned:ident;)*) => {$(
        impl SignedBits for $t {
            const BOUNDS: ($t, $t) = ($t::MIN, $t::MAX);

            #[inline(always)]
            fn from_low_bits(bits: u64) -> $t {
                bits as $t
            }
            #[inline(always)]
            fn order_key<const FLOAT: bool>(self, flip: $t, limit: $t) -> $t {
                if !FLOAT {
                    return self ^ flip;
                }
                // Keys count from the worse infinity on, so that NaN below it wraps around to the
                // end.
                let value = self ^ (self >> ($t::BITS - 1) & $t::MAX);
                (value ^ flip).wrapping_add($t::MIN.wrapping_add(limit + 1))
            }
            #[inline(always)]
            fn bits_of_key<const FLOAT: bool>(order_key: $t, flip: $t, limit: $t) -> $t {
                if !FLOAT {
                    return order_key ^ flip;
                }
                let value = order_key.wrapping_sub($t::MIN.wrapping_add(limit + 1)) ^ flip;
                value ^ (value >> ($t::BITS - 1) & $t::MAX)
            }
            #[inline(always)]
            fn rank<const FLOAT: bool>(self, flip: $t, limit: $t) -> $t {
                if !FLOAT {
                    return self ^ flip;
                }
                let (magnitude, sign) = (self & $t::MAX, self >> ($t::BITS - 1) ^ flip);
                if magnitude > limit { $t::MAX } else { (magnitude ^ sign).wrapping_sub(sign) }
            }
            #[inline(always)]
            fn pattern_of_rank<const FLOAT: bool>(self, flip: $t, limit: $t) -> BitPattern<$t> {
                if !FLOAT {
                    BitPattern::Exact(self ^ flip)
                } else if self == $t::MAX {
                    BitPattern::Magnitudes { first: limit + 1, span: $t::MAX - (limit + 1) }
                } else if self == 0 {
                    BitPattern::Magnitudes { first: 0, span: 0 }
                } else {
                    let sign = if (self < 0) == (flip == 0) { $t::MIN } else { 0 };
                    BitPattern::Exact(self.wrapping_abs() | sign)
                }
            }
            #[inline(always)]
            fn has_magnitude(self, first: $t, span: $t) -> bool {
                (self & $t::MAX).wrapping_sub(first) as $unsigned <= span as $unsigned
            }
        }
    )*};
}
signed_bits! {
    i8, u8;
    i16, u16;
    i32, u32;
    i64, u64;
}

macro_rules! by_width {
    ($search:expr, $K:ident, $FLOAT:ident => $body:expr) => {{
        macro_rules! of {
            ($t:ty, $float:literal) => {{
                type $K = $t;
                const $FLOAT: bool = $float;
                $body
            }};
        }
        match ($search.width, $search.float) {
            (1, false) => of!(i8, false),
            (2, false) => of!(i16, false),
            (4, false) => of!(i32, false),
            (_, false) => of!(i64, false),
            (1, true) => of!(i8, true),
            (2, true) => of!(i16, true),
            (4, true) => of!(i32, true),
            (_, true) => of!(i64, true),
        }
    }};
}
/// The maximum number of elements in a row that is transposed with others.
const MAX_TRANSPOSED_ROW_ELEMENTS: usize = 32;

/// A search for the index of the minimum or maximum of elements of one type, and for the first or
/// the last of several equal ones. If there are NaN, the result is always the last of them.
#[derive(Clone, Copy, Debug)]
pub struct ArgMinMaxSearch {
    width: usize,
    float: bool,
    /// The bits to flip so that better words are greater.
    flip: u64,
    limit: u64,
    last: bool,
}

impl ArgMinMaxSearch {
    /// A search for the largest element or the smallest one, and for the last one of several or the
    /// first. Returns `None` for complex numbers.
    #[must_use]
    pub fn new(dtype: DType, largest: bool, last: bool) -> Option<Self> {
        let (width, float) = (dtype.width(), !dtype.is_integer());
        let high_bit = 1 << (8 * width.min(8) - 1);
        let unsigned_flip = if dtype.kind() == Kind::Unsigned { high_bit } else { 0 };
        let flip = if largest { unsigned_flip } else { !unsigned_flip };
        let limit = if float { dispatch!(float dtype, T => infinity::<T>(), else => return None) } else { 0 };
        Some(ArgMinMaxSearch { width, float, flip, limit, last })
    }

    /// Writes the index of the minimum or maximum of each row as u64. `length` is the number of
    /// elements in a row, which is not zero.
    pub fn rows(self, elements: &[u8], length: usize, indices: &mut [u8]) {
        if length <= MAX_TRANSPOSED_ROW_ELEMENTS && matches!(self.width, 4 | 8) {
            return self.short_rows(elements, length, indices);
        }
        #[cfg(target_arch = "x86_64")]
        if self.float && length >= MIN_ROW_ELEMENTS_FOR_ONE_PASS {
            let which = (self.flip == 0, self.last);
            let fallback = |row: &[u8], index: &mut [u8]| self.rows_in_two_passes(row, length, index);
            let done = match self.width {
                4 => argminmax_simd::rows::<f32, 16, 8>(elements, length, which, indices, fallback),
                8 => argminmax_simd::rows::<f64, 8, 4>(elements, length, which, indices, fallback),
                _ => false,
            };
            if done {
                return;
            }
        }
        self.rows_in_two_passes(elements, length, indices);
    }

    /// `rows` of few elements, by columns.
    fn short_rows(self, elements: &[u8], length: usize, indices: &mut [u8]) {
        let indices = u64::view_mut(indices);
        let mut found = [0; ROWS_PER_BLOCK * size_of::<u32>()];
        let sizes = (indices.len(), length, length);
        transpose::for_blocks_of_rows(self.width, elements, sizes, |rows, columns| {
            let found = &mut found[..rows.len() * size_of::<u32>()];
            self.columns(columns, ROWS_PER_BLOCK, found);
            for (index, &found) in indices[rows].iter_mut().zip(u32::view(found)) {
                *index = u64::from(u32::load(found)).store();
            }
        });
    }

    fn rows_in_two_passes(self, elements: &[u8], length: usize, indices: &mut [u8]) {
        by_width!(self, K, FLOAT => vectorize(ArgRowLoop::<K, FLOAT> {
            search: self,
            rows: K::view(elements).chunks_exact(length),
            indices: u64::view_mut(indices),
        }));
    }

    /// Writes the index of the minimum or maximum of each column as u32. `elements` begin with the
    /// first one of the first column, and `stride` is the number of elements from one row to the
    /// next.
    pub fn columns(self, elements: &[u8], stride: usize, indices: &mut [u8]) {
        by_width!(self, K, FLOAT => vectorize(ArgColumnLoop::<K, FLOAT> {
            search: self,
            elements: K::view(elements),
            stride,
            indices: u32::view_mut(indices),
        }));
    }
}

/// The bits of infinity, or of the greatest value of a type without it.
#[inline(always)]
fn infinity<T: Element>() -> u64 {
    let mut bytes = [0; 8];
    T::view_mut(&mut bytes)[0] = T::from_f64(f64::INFINITY).store();
    if cfg!(target_endian = "little") {
        u64::from_le_bytes(bytes)
    } else {
        u64::from_be_bytes(bytes) >> (64 - 8 * size_of::<T::Bytes>())
    }
}

struct ArgRowLoop<'a, K: SignedBits, const FLOAT: bool> {
    search: ArgMinMaxSearch,
    rows: std::slice::ChunksExact<'a, K::Bytes>,
    indices: &'a mut [[u8; 8]],
}

impl<K: SignedBits, const FLOAT: bool> Vectorized for ArgRowLoop<'_, K, FLOAT> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let last = self.search.last;
        let (flip, limit) = (K::from_low_bits(self.search.flip), K::from_low_bits(self.search.limit));
        for (index, row) in self.indices.iter_mut().zip(self.rows) {
            let (mut best, mut chunk) = (K::BOUNDS.0, 0);
            for (i, elements) in row.chunks(ARGMINMAX_CHUNK_ELEMENTS).enumerate() {
                let rank = max_rank::<K, FLOAT>(elements, flip, limit);
                if rank > best || rank == best && (last || FLOAT && rank == K::BOUNDS.1) {
                    (best, chunk) = (rank, i);
                }
            }
            let first = chunk * ARGMINMAX_CHUNK_ELEMENTS;
            let elements = &row[first..row.len().min(first + ARGMINMAX_CHUNK_ELEMENTS)];
            let last = last || FLOAT && best == K::BOUNDS.1;
            *index = ((first + find_pattern(elements, best.pattern_of_rank::<FLOAT>(flip, limit), last))
                as u64)
                .store();
        }
    }
}

/// The greatest rank of some elements.
#[inline(always)]
fn max_rank<K: SignedBits, const FLOAT: bool>(elements: &[K::Bytes], flip: K, limit: K) -> K {
    let fold = |maximum: K, x| maximum.max(K::load(x).order_key::<FLOAT>(flip, limit));
    // So many accumulators that the compiler keeps them in vectors.
    let order_key = if FLOAT { max_key::<K, 16>(elements, fold) } else { max_key::<K, 32>(elements, fold) };
    K::bits_of_key::<FLOAT>(order_key, flip, limit).rank::<FLOAT>(flip, limit)
}

/// The greatest key of elements, the last of which may be folded twice: the order and repetitions
/// make no difference.
#[inline(always)]
fn max_key<K: SignedBits, const ACCUMULATORS: usize>(
    elements: &[K::Bytes],
    fold: impl Fn(K, K::Bytes) -> K + Copy,
) -> K {
    let mut maximum = [K::BOUNDS.0; ACCUMULATORS];
    let Some(end) = elements.last_chunk::<ACCUMULATORS>() else {
        return elements.iter().fold(K::BOUNDS.0, |maximum, &x| fold(maximum, x));
    };
    fold_chunks(&mut maximum, elements, fold);
    fold_chunks(&mut maximum, end, fold);
    fold_halves(maximum, K::max)
}

/// The index of the first or the last element with this pattern. There must be one.
#[inline(always)]
fn find_pattern<K: SignedBits>(elements: &[K::Bytes], pattern: BitPattern<K>, last: bool) -> usize {
    match pattern {
        BitPattern::Exact(word) => find_index::<K>(elements, last, |x| x == word),
        BitPattern::Magnitudes { first, span } => {
            find_index::<K>(elements, last, |x| x.has_magnitude(first, span))
        }
    }
}

/// The index of the first or the last match. There must be one.
#[inline(always)]
fn find_index<K: SignedBits>(
    elements: &[K::Bytes],
    last: bool,
    is_match: impl Fn(K) -> bool + Copy,
) -> usize {
    // Without an early exit, so that the loop vectorizes.
    let found = |block: &[K::Bytes]| block.iter().fold(false, |any, &x| any | is_match(K::load(x)));
    let start = if elements.len() <= INDEX_SEARCH_BLOCK_ELEMENTS {
        0
    } else if last {
        let block = elements.rchunks(INDEX_SEARCH_BLOCK_ELEMENTS).position(found).unwrap_or(0);
        elements.len().saturating_sub((block + 1) * INDEX_SEARCH_BLOCK_ELEMENTS)
    } else {
        elements.chunks(INDEX_SEARCH_BLOCK_ELEMENTS).position(found).unwrap_or(0)
            * INDEX_SEARCH_BLOCK_ELEMENTS
    };
    let block = &elements[start..elements.len().min(start + INDEX_SEARCH_BLOCK_ELEMENTS)];
    start
        + if last {
            index_in_block::<K, true>(block, is_match)
        } else {
            index_in_block::<K, false>(block, is_match)
        }
}

/// The index of the first or the last match in a block.
#[inline(always)]
#[allow(clippy::explicit_counter_loop, reason = "with an iterator of numbers, it doesn't vectorize")]
fn index_in_block<K: SignedBits, const LAST: bool>(
    block: &[K::Bytes],
    is_match: impl Fn(K) -> bool,
) -> usize {
    let (mut index, mut i) = (u32::MAX, 0_u32);
    for &x in block {
        // The last match has the least distance from `INDEX_SEARCH_BLOCK_ELEMENTS`.
        let candidate = if LAST { INDEX_SEARCH_BLOCK_ELEMENTS as u32 - i } else { i };
        index = index.min(if is_match(K::load(x)) { candidate } else { u32::MAX });
        i += 1;
    }
    if LAST { INDEX_SEARCH_BLOCK_ELEMENTS - index as usize } else { index as usize }
}

struct ArgColumnLoop<'a, K: SignedBits, const FLOAT: bool> {
    search: ArgMinMaxSearch,
    elements: &'a [K::Bytes],
    stride: usize,
    indices: &'a mut [[u8; 4]],
}

impl<K: SignedBits, const FLOAT: bool> Vectorized for ArgColumnLoop<'_, K, FLOAT> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let last = self.search.last;
        let (flip, limit) = (K::from_low_bits(self.search.flip), K::from_low_bits(self.search.limit));
        self.indices.fill(0u32.store());
        let mut best = vec![K::BOUNDS.0; self.indices.len()];
        let update = |(best, index): (K, u32), i: u32, x: K::Bytes| {
            let rank = K::load(x).rank::<FLOAT>(flip, limit);
            let better = (rank > best) | (last & (rank == best)) | (FLOAT & (rank == K::BOUNDS.1));
            if better { (rank, i) } else { (best, index) }
        };
        let prefetches = needs_prefetch(self.elements);
        let (mut rows, mut i) = (self.elements, 0);
        while let Some(four) = next_four_rows(&mut rows, self.stride, best.len()) {
            if prefetches {
                (0..4).for_each(|row| prefetch_row(rows, row * self.stride, best.len()));
            }
            update_four_rows::<K>(&mut best, self.indices, i, four, update);
            i += 4;
        }
        for (i, row) in (i..).zip(rows.chunks(self.stride)) {
            for ((best, index), &x) in best.iter_mut().zip(&mut *self.indices).zip(row) {
                let found = update((*best, u32::load(*index)), i, x);
                (*best, *index) = (found.0, found.1.store());
            }
        }
    }
}

/// Updates the best rank and the index of each column with the elements of four rows.
#[inline(always)]
fn update_four_rows<K: SignedBits>(
    best: &mut [K],
    indices: &mut [[u8; 4]],
    i: u32,
    [a, b, c, d]: [&[K::Bytes]; 4],
    update: impl Fn((K, u32), u32, K::Bytes) -> (K, u32),
) {
    let four = a.iter().zip(b).zip(c).zip(d);
    for ((best, index), (((&a, &b), &c), &d)) in best.iter_mut().zip(indices).zip(four) {
        let mut found = (*best, u32::load(*index));
        found = update(found, i, a);
        found = update(found, i + 1, b);
        found = update(found, i + 2, c);
        found = update(found, i + 3, d);
        (*best, *index) = (found.0, found.1.store());
    }
}

/// `fold::FoldRows` for the minima or maxima of floats `S`, whose words are `K`, in lanes `L`. If
/// the result is a zero, it is the first zero.
pub(crate) fn rows<S: Element, K: SignedBits, L: Element, F: Fold<L>, const LARGEST: bool>(
    elements: &[u8],
    length: usize,
    lanes: &mut [u8],
) {
    ReductionLoop::<MinMaxRowFold<S, K, L, F, LARGEST>>::fold(elements, length, lanes);
}

struct MinMaxRowFold<S, K, L, F, const LARGEST: bool>(PhantomData<(S, K, L, F)>);

impl<S: Element, K: SignedBits, L: Element, F: Fold<L>, const LARGEST: bool> Vectorized
    for ReductionLoop<'_, MinMaxRowFold<S, K, L, F, LARGEST>>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let lanes = L::view_mut(self.lanes).iter_mut();
        if self.stride < MIN_ROW_ELEMENTS_FOR_MINMAX_KEYS {
            for (lane, row) in lanes.zip(S::view(self.elements).chunks_exact(self.stride)) {
                *lane = fold_row::<S, L, CastOf, F>(row).store();
            }
            return;
        }
        let (flip, limit) = flip_and_limit::<S, K, LARGEST>();
        for (lane, row) in lanes.zip(K::view(self.elements).chunks_exact(self.stride)) {
            let rank = max_rank::<K, true>(row, flip, limit);
            let word = match rank.pattern_of_rank::<true>(flip, limit) {
                BitPattern::Exact(word) => word,
                _ if rank == K::BOUNDS.1 => rank,
                zeros @ BitPattern::Magnitudes { .. } => K::load(row[find_pattern(row, zeros, false)]),
            };
            *lane = lane_from_bits::<S, K, L>(word).store();
        }
    }
}

/// `flip` and `limit` for floats `S` whose words are `K`.
#[inline(always)]
fn flip_and_limit<S: Element, K: SignedBits, const LARGEST: bool>() -> (K, K) {
    (K::from_low_bits(if LARGEST { 0 } else { u64::MAX }), K::from_low_bits(infinity::<S>()))
}

/// The value of a word, as a lane.
#[inline(always)]
fn lane_from_bits<S: Element, K: SignedBits, L: Element>(word: K) -> L {
    let mut bytes = [0; 8];
    K::view_mut(&mut bytes)[0] = word.store();
    cast::<S, L>(S::load(S::view(&bytes)[0]))
}

/// `fold::FoldColumns` for the minima or maxima of floats `S`, whose words are `K`, in lanes `L`.
/// If the result is a zero, it is the first zero.
pub(crate) fn columns<S: Element, K: SignedBits, L: Element, F: Fold<L>, const LARGEST: bool>(
    elements: &[u8],
    stride: usize,
    lanes: &mut [u8],
) {
    ReductionLoop::<MinMaxColumnFold<S, K, L, F, LARGEST>>::fold(elements, stride, lanes);
}

struct MinMaxColumnFold<S, K, L, F, const LARGEST: bool>(PhantomData<(S, K, L, F)>);

impl<S: Element, K: SignedBits, L: Element, F: Fold<L>, const LARGEST: bool> Vectorized
    for ReductionLoop<'_, MinMaxColumnFold<S, K, L, F, LARGEST>>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (elements, lanes) = (K::view(self.elements), L::view_mut(self.lanes));
        if elements.is_empty() {
            lanes.fill(F::start().store());
            return;
        }
        let (flip, limit) = flip_and_limit::<S, K, LARGEST>();
        let mut words = vec![K::BOUNDS.0; lanes.len()];
        fold_columns(&mut words, elements, self.stride, needs_prefetch(elements), |best, x| {
            best.max(K::load(x).order_key::<true>(flip, limit))
        });
        let is_zero = |word: K| word.has_magnitude(K::default(), K::default());
        let mut zeros = false;
        for word in &mut words {
            *word = K::bits_of_key::<true>(*word, flip, limit);
            zeros |= is_zero(*word);
        }
        if zeros {
            for row in elements.chunks(self.stride).rev() {
                for (word, &x) in words.iter_mut().zip(row) {
                    let x = K::load(x);
                    *word = if is_zero(*word) & is_zero(x) { x } else { *word };
                }
            }
        }
        for (lane, &word) in lanes.iter_mut().zip(&words) {
            *lane = lane_from_bits::<S, K, L>(word).store();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares transposed rows of every length with rows one by one: of numbers many of which are
    /// equal, zeros of both signs, infinities and NaN.
    #[test]
    fn transposed_rows_have_the_indices_of_rows_one_by_one() {
        const SPECIAL: [f64; 8] = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0, -1.0, 2.0];
        for length in 1..=MAX_TRANSPOSED_ROW_ELEMENTS {
            let rows = 2 * ROWS_PER_BLOCK + 5;
            let number = |i: usize| match i * 7919 % 1013 % 16 {
                special @ 0..8 => SPECIAL[special],
                other => other as f64 - 11.0,
            };
            let numbers: Vec<f64> = (0..rows * length).map(number).collect();
            let f32s: Vec<u8> = numbers.iter().flat_map(|&x| (x as f32).to_ne_bytes()).collect();
            let f64s: Vec<u8> = numbers.iter().flat_map(|&x| x.to_ne_bytes()).collect();
            for (dtype, bytes) in
                [(DType::F32, &f32s), (DType::S32, &f32s), (DType::F64, &f64s), (DType::U64, &f64s)]
            {
                for (largest, last) in [(false, false), (false, true), (true, false), (true, true)] {
                    let search = ArgMinMaxSearch::new(dtype, largest, last).expect("a real type");
                    let (mut got, mut expected) = (vec![0; rows * 8], vec![0; rows * 8]);
                    search.short_rows(bytes, length, &mut got);
                    search.rows_in_two_passes(bytes, length, &mut expected);
                    assert_eq!(got, expected, "{dtype}, rows of {length}, {largest}, {last}");
                }
            }
        }
    }
}
