//! Extremes of numbers, and where they are.
//!
//! Problem: floats have NaN, which counts as more extreme than any number, and two
//! zeros that are one, which takes comparisons that the compiler makes no good vectors
//! of, for every type anew. Technique: seen as integers of their width, and with the other
//! bits of negative ones flipped, floats are in the order of their values.

use crate::dtype::{Element, Lane, cast};
use crate::exec::convert::CastOf;
#[cfg(target_arch = "x86_64")]
use crate::exec::reduce::argminmax_simd;
use crate::exec::reduce::fold::{Fold, by_halves, fold_chunks, fold_columns, fold_row, is_far, next_four};
use crate::exec::simd::{Vectorized, dispatch as vectorize, prefetch_row};
use crate::{DType, Kind, dispatch};

/// Elements among which an extreme is found before it is looked for.
const CHUNK: usize = 4096;

/// Elements that are compared with it at once.
const FEW: usize = 64;

/// Rows of f32 and f64 of so many elements and more are searched in one pass, where there is one.
const ONE_PASS: usize = 32;

/// Rows shorter than this are folded from left to right.
const SHORT: usize = 64;

/// Elements as integers.
pub(crate) trait Word: Lane + Ord + Default {
    /// The least and the greatest.
    const BOUNDS: (Self, Self);
    /// The lowest of these bits.
    fn from_bits(bits: u64) -> Self;
    /// In the order of how extreme values are, NaN of either sign last. Zeros are two.
    fn key<const FLOAT: bool>(self, flip: Self, limit: Self) -> Self;
    /// What has a key.
    fn word<const FLOAT: bool>(key: Self, flip: Self, limit: Self) -> Self;
    /// In the order of how extreme values are, and zeros are one. Every NaN, which is above
    /// `limit` but for its sign, has the greatest rank.
    fn rank<const FLOAT: bool>(self, flip: Self, limit: Self) -> Self;
    /// What is looked for where a rank is that.
    fn wanted<const FLOAT: bool>(self, flip: Self, limit: Self) -> Wanted<Self>;
    /// Whether its size, whatever its sign, is from `first` on, up to `span` further.
    fn is_of_size(self, first: Self, span: Self) -> bool;
}

/// Words that are looked for.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<K> {
    /// That one.
    Word(K),
    /// Of either sign, from `first` on, up to `span` further.
    Sizes { first: K, span: K },
}

macro_rules! words {
    ($($t:ident, $unsigned:ident;)*) => {$(
        impl Word for $t {
            const BOUNDS: ($t, $t) = ($t::MIN, $t::MAX);

            #[inline(always)]
            fn from_bits(bits: u64) -> $t {
                bits as $t
            }
            #[inline(always)]
            fn key<const FLOAT: bool>(self, flip: $t, limit: $t) -> $t {
                if !FLOAT {
                    return self ^ flip;
                }
                // From the least infinity on: NaN below it comes around to the end.
                let value = self ^ (self >> ($t::BITS - 1) & $t::MAX);
                (value ^ flip).wrapping_add($t::MIN.wrapping_add(limit + 1))
            }
            #[inline(always)]
            fn word<const FLOAT: bool>(key: $t, flip: $t, limit: $t) -> $t {
                if !FLOAT {
                    return key ^ flip;
                }
                let value = key.wrapping_sub($t::MIN.wrapping_add(limit + 1)) ^ flip;
                value ^ (value >> ($t::BITS - 1) & $t::MAX)
            }
            #[inline(always)]
            fn rank<const FLOAT: bool>(self, flip: $t, limit: $t) -> $t {
                if !FLOAT {
                    return self ^ flip;
                }
                let (size, sign) = (self & $t::MAX, self >> ($t::BITS - 1) ^ flip);
                if size > limit { $t::MAX } else { (size ^ sign).wrapping_sub(sign) }
            }
            #[inline(always)]
            fn wanted<const FLOAT: bool>(self, flip: $t, limit: $t) -> Wanted<$t> {
                if !FLOAT {
                    Wanted::Word(self ^ flip)
                } else if self == $t::MAX {
                    Wanted::Sizes { first: limit + 1, span: $t::MAX - (limit + 1) }
                } else if self == 0 {
                    Wanted::Sizes { first: 0, span: 0 }
                } else {
                    let sign = if (self < 0) == (flip == 0) { $t::MIN } else { 0 };
                    Wanted::Word(self.wrapping_abs() | sign)
                }
            }
            #[inline(always)]
            fn is_of_size(self, first: $t, span: $t) -> bool {
                (self & $t::MAX).wrapping_sub(first) as $unsigned <= span as $unsigned
            }
        }
    )*};
}
words! {
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
/// Which extreme of a type is looked for, and which of several that are equal: of NaN,
/// always the last.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    width: usize,
    float: bool,
    /// Bits that change to bring words into the order of how extreme they are.
    flip: u64,
    limit: u64,
    last: bool,
}

impl Search {
    /// None for complex numbers.
    #[must_use]
    pub fn new(dtype: DType, largest: bool, last: bool) -> Option<Self> {
        let (width, float) = (dtype.width(), !dtype.is_integer());
        let high_bit = 1 << (8 * width.min(8) - 1);
        let order = if dtype.kind() == Kind::Unsigned { high_bit } else { 0 };
        let flip = if largest { order } else { !order };
        let limit = if float { dispatch!(float dtype, T => infinity::<T>(), else => return None) } else { 0 };
        Some(Search { width, float, flip, limit, last })
    }

    /// The place of the extreme of each row of some length, which is not zero, as u64.
    pub fn rows(self, elements: &[u8], length: usize, places: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if self.float && length >= ONE_PASS {
            let which = (self.flip == 0, self.last);
            let otherwise = |row: &[u8], place: &mut [u8]| self.rows_of_any(row, length, place);
            let done = match self.width {
                4 => argminmax_simd::rows::<f32, 16, 8>(elements, length, which, places, otherwise),
                8 => argminmax_simd::rows::<f64, 8, 4>(elements, length, which, places, otherwise),
                _ => false,
            };
            if done {
                return;
            }
        }
        self.rows_of_any(elements, length, places);
    }

    fn rows_of_any(self, elements: &[u8], length: usize, places: &mut [u8]) {
        by_width!(self, K, FLOAT => vectorize(InRows::<K, FLOAT> {
            search: self,
            rows: K::view(elements).chunks_exact(length),
            places: u64::view_mut(places),
        }));
    }

    /// The place of the extreme of each column, as u32: from the first element of the first
    /// column, with so many elements from one row to the next.
    pub fn columns(self, elements: &[u8], stride: usize, places: &mut [u8]) {
        by_width!(self, K, FLOAT => vectorize(InColumns::<K, FLOAT> {
            search: self,
            elements: K::view(elements),
            stride,
            places: u32::view_mut(places),
        }));
    }
}

/// The bits of the greatest value of a type.
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

struct InRows<'a, K: Word, const FLOAT: bool> {
    search: Search,
    rows: std::slice::ChunksExact<'a, K::Bytes>,
    places: &'a mut [[u8; 8]],
}

impl<K: Word, const FLOAT: bool> Vectorized for InRows<'_, K, FLOAT> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let last = self.search.last;
        let (flip, limit) = (K::from_bits(self.search.flip), K::from_bits(self.search.limit));
        for (place, row) in self.places.iter_mut().zip(self.rows) {
            let (mut best, mut chunk) = (K::BOUNDS.0, 0);
            for (i, elements) in row.chunks(CHUNK).enumerate() {
                let rank = most::<K, FLOAT>(elements, flip, limit);
                if rank > best || rank == best && (last || FLOAT && rank == K::BOUNDS.1) {
                    (best, chunk) = (rank, i);
                }
            }
            let first = chunk * CHUNK;
            let elements = &row[first..row.len().min(first + CHUNK)];
            let last = last || FLOAT && best == K::BOUNDS.1;
            *place = ((first + find(elements, best.wanted::<FLOAT>(flip, limit), last)) as u64).store();
        }
    }
}

/// The rank of the most extreme of some elements.
#[inline(always)]
fn most<K: Word, const FLOAT: bool>(elements: &[K::Bytes], flip: K, limit: K) -> K {
    let fold = |most: K, x| most.max(K::load(x).key::<FLOAT>(flip, limit));
    // So many side by side that the compiler keeps their keys in vectors.
    let key = if FLOAT { most_of::<K, 16>(elements, fold) } else { most_of::<K, 32>(elements, fold) };
    K::word::<FLOAT>(key, flip, limit).rank::<FLOAT>(flip, limit)
}

/// The greatest key of elements, the last of which may be folded twice.
#[inline(always)]
fn most_of<K: Word, const SIDE_BY_SIDE: usize>(
    elements: &[K::Bytes],
    fold: impl Fn(K, K::Bytes) -> K + Copy,
) -> K {
    let mut most = [K::BOUNDS.0; SIDE_BY_SIDE];
    let Some(end) = elements.last_chunk::<SIDE_BY_SIDE>() else {
        return elements.iter().fold(K::BOUNDS.0, |most, &x| fold(most, x));
    };
    fold_chunks(&mut most, elements, fold);
    fold_chunks(&mut most, end, fold);
    by_halves(most, K::max)
}

/// The first or the last place of what is wanted, which is there.
#[inline(always)]
fn find<K: Word>(elements: &[K::Bytes], wanted: Wanted<K>, last: bool) -> usize {
    match wanted {
        Wanted::Word(word) => find_if::<K>(elements, last, |x| x == word),
        Wanted::Sizes { first, span } => find_if::<K>(elements, last, |x| x.is_of_size(first, span)),
    }
}

#[inline(always)]
fn find_if<K: Word>(elements: &[K::Bytes], last: bool, is: impl Fn(K) -> bool + Copy) -> usize {
    // Without an early exit, so that they vectorize.
    let found = |few: &[K::Bytes]| few.iter().fold(false, |any, &x| any | is(K::load(x)));
    let start = if elements.len() <= FEW {
        0
    } else if last {
        let few = elements.rchunks(FEW).position(found).unwrap_or(0);
        elements.len().saturating_sub((few + 1) * FEW)
    } else {
        elements.chunks(FEW).position(found).unwrap_or(0) * FEW
    };
    let few = &elements[start..elements.len().min(start + FEW)];
    start + if last { place::<K, true>(few, is) } else { place::<K, false>(few, is) }
}

#[inline(always)]
#[allow(clippy::explicit_counter_loop, reason = "with an iterator of numbers, it doesn't vectorize")]
fn place<K: Word, const LAST: bool>(few: &[K::Bytes], is: impl Fn(K) -> bool) -> usize {
    let (mut place, mut i) = (u32::MAX, 0_u32);
    for &x in few {
        // Of the last, how far it is from there.
        let at = if LAST { FEW as u32 - i } else { i };
        place = place.min(if is(K::load(x)) { at } else { u32::MAX });
        i += 1;
    }
    if LAST { FEW - place as usize } else { place as usize }
}

struct InColumns<'a, K: Word, const FLOAT: bool> {
    search: Search,
    elements: &'a [K::Bytes],
    stride: usize,
    places: &'a mut [[u8; 4]],
}

impl<K: Word, const FLOAT: bool> Vectorized for InColumns<'_, K, FLOAT> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let last = self.search.last;
        let (flip, limit) = (K::from_bits(self.search.flip), K::from_bits(self.search.limit));
        self.places.fill(0u32.store());
        let mut best = vec![K::BOUNDS.0; self.places.len()];
        let further = |(best, place): (K, u32), i: u32, x: K::Bytes| {
            let rank = K::load(x).rank::<FLOAT>(flip, limit);
            let further = (rank > best) | (last & (rank == best)) | (FLOAT & (rank == K::BOUNDS.1));
            if further { (rank, i) } else { (best, place) }
        };
        let far = is_far(self.elements);
        let (mut rows, mut i) = (self.elements, 0);
        while let Some(four) = next_four(&mut rows, self.stride, best.len()) {
            if far {
                (0..4).for_each(|row| prefetch_row(rows, row * self.stride, best.len()));
            }
            search_four::<K>(&mut best, self.places, i, four, further);
            i += 4;
        }
        for (i, row) in (i..).zip(rows.chunks(self.stride)) {
            for ((best, place), &x) in best.iter_mut().zip(&mut *self.places).zip(row) {
                let found = further((*best, u32::load(*place)), i, x);
                (*best, *place) = (found.0, found.1.store());
            }
        }
    }
}

/// What is further of each column of four rows.
#[inline(always)]
fn search_four<K: Word>(
    best: &mut [K],
    places: &mut [[u8; 4]],
    i: u32,
    [a, b, c, d]: [&[K::Bytes]; 4],
    further: impl Fn((K, u32), u32, K::Bytes) -> (K, u32),
) {
    let four = a.iter().zip(b).zip(c).zip(d);
    for ((best, place), (((&a, &b), &c), &d)) in best.iter_mut().zip(places).zip(four) {
        let mut found = (*best, u32::load(*place));
        found = further(found, i, a);
        found = further(found, i + 1, b);
        found = further(found, i + 2, c);
        found = further(found, i + 3, d);
        (*best, *place) = (found.0, found.1.store());
    }
}

/// `fold::Rows` for the extremes of floats `S`, whose words are `K`, in lanes `L`. Of zeros, the
/// first counts.
pub(crate) fn rows<S: Element, K: Word, L: Element, F: Fold<L>, const LARGEST: bool>(
    elements: &[u8],
    length: usize,
    lanes: &mut [u8],
) {
    vectorize(ExtremeRows::<S, K, L, F, LARGEST> {
        elements,
        length,
        lanes,
        kinds: std::marker::PhantomData,
    });
}

struct ExtremeRows<'a, S, K, L, F, const LARGEST: bool> {
    elements: &'a [u8],
    length: usize,
    lanes: &'a mut [u8],
    kinds: std::marker::PhantomData<(S, K, L, F)>,
}

impl<S: Element, K: Word, L: Element, F: Fold<L>, const LARGEST: bool> Vectorized
    for ExtremeRows<'_, S, K, L, F, LARGEST>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let lanes = L::view_mut(self.lanes).iter_mut();
        if self.length < SHORT {
            for (lane, row) in lanes.zip(S::view(self.elements).chunks_exact(self.length)) {
                *lane = fold_row::<S, L, CastOf, F>(row).store();
            }
            return;
        }
        let (flip, limit) = order::<S, K, LARGEST>();
        for (lane, row) in lanes.zip(K::view(self.elements).chunks_exact(self.length)) {
            let rank = most::<K, true>(row, flip, limit);
            let word = match rank.wanted::<true>(flip, limit) {
                Wanted::Word(word) => word,
                _ if rank == K::BOUNDS.1 => rank,
                zeros @ Wanted::Sizes { .. } => K::load(row[find(row, zeros, false)]),
            };
            *lane = lane_of::<S, K, L>(word).store();
        }
    }
}

/// `flip` and `limit` of the floats whose words are `K`.
#[inline(always)]
fn order<S: Element, K: Word, const LARGEST: bool>() -> (K, K) {
    (K::from_bits(if LARGEST { 0 } else { u64::MAX }), K::from_bits(infinity::<S>()))
}

/// A word as the lane of its value.
#[inline(always)]
fn lane_of<S: Element, K: Word, L: Element>(word: K) -> L {
    let mut bytes = [0; 8];
    K::view_mut(&mut bytes)[0] = word.store();
    cast::<S, L>(S::load(S::view(&bytes)[0]))
}

/// `fold::Columns` for the extremes of floats `S`, whose words are `K`, in lanes `L`. Of zeros, the
/// first counts.
pub(crate) fn columns<S: Element, K: Word, L: Element, F: Fold<L>, const LARGEST: bool>(
    elements: &[u8],
    stride: usize,
    lanes: &mut [u8],
) {
    vectorize(ExtremeColumns::<S, K, L, F, LARGEST> {
        elements,
        stride,
        lanes,
        kinds: std::marker::PhantomData,
    });
}

struct ExtremeColumns<'a, S, K, L, F, const LARGEST: bool> {
    elements: &'a [u8],
    stride: usize,
    lanes: &'a mut [u8],
    kinds: std::marker::PhantomData<(S, K, L, F)>,
}

impl<S: Element, K: Word, L: Element, F: Fold<L>, const LARGEST: bool> Vectorized
    for ExtremeColumns<'_, S, K, L, F, LARGEST>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (elements, lanes) = (K::view(self.elements), L::view_mut(self.lanes));
        if elements.is_empty() {
            lanes.fill(F::start().store());
            return;
        }
        let (flip, limit) = order::<S, K, LARGEST>();
        let mut words = vec![K::BOUNDS.0; lanes.len()];
        fold_columns(&mut words, elements, self.stride, is_far(elements), |best, x| {
            best.max(K::load(x).key::<true>(flip, limit))
        });
        let is_zero = |word: K| word.is_of_size(K::default(), K::default());
        let mut zeros = false;
        for word in &mut words {
            *word = K::word::<true>(*word, flip, limit);
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
            *lane = lane_of::<S, K, L>(word).store();
        }
    }
}
