//! Sorting unsigned integers, which stand for whatever is to be sorted.
//!
//! Problem: sort keys of 1 to 16 bytes fast, from rows of three to rows of
//! millions, with the same result however many threads. Technique: a comparison
//! sort for short rows; for longer ones a radix sort from the lowest byte up,
//! which leaves out bytes that all keys share; for the longest, chunks sorted
//! side by side and merged. Keys that are equal are the same bits, so that it
//! makes no difference which of them comes first.

use std::ops::Range;

use crate::cost::{Cost, work};
#[cfg(target_arch = "x86_64")]
use crate::exec::simd::{Avx2, Avx512, InstructionSet};
#[cfg(target_arch = "x86_64")]
use crate::exec::sort::simd_quicksort;
use crate::exec::threads::{cooperative_yield, parallel};

/// Rows shorter than this, times the bytes of a key that count, are compared.
const SHORT: usize = 100;

/// Keys, or elements of a row, that are handled between pauses: they take a fraction of a millisecond.
pub const STRETCH: usize = 1 << 16;

/// What moving one costs.
const MOVE: Cost = 2_000;

/// Parts of a merge shorter than this aren't split.
const MERGED: usize = 1 << 14;

/// An unsigned integer, and its bytes from the lowest.
pub trait Digits: Copy + Ord + Default + Send + Sync + 'static {
    /// How many.
    const BYTES: usize;
    /// One of them.
    fn digit(self, byte: usize) -> u8;

    /// How many keys `by_vectors` needs to spare for so many, on so many threads, if
    /// the processor has the vectors.
    #[inline]
    fn vectors(_length: usize, _threads: usize) -> Option<usize> {
        None
    }
    /// Sorts keys where there are `vectors`.
    #[inline]
    fn by_vectors(_keys: &mut [Self], _spare: &mut [Self], _threads: usize) {}
}

macro_rules! digits {
    ($($t:ty $({$($vectors:item)*})?),*) => {$(
        impl Digits for $t {
            const BYTES: usize = size_of::<$t>();

            #[inline(always)]
            #[allow(trivial_numeric_casts, clippy::unnecessary_cast, reason = "u8 is one of them")]
            fn digit(self, byte: usize) -> u8 {
                (self >> (8 * byte)) as u8
            }

            $($(#[cfg(target_arch = "x86_64")] $vectors)*)?
        }
    )*};
}

macro_rules! vector_digits {
    ($($t:ty),*) => {
        digits!($($t {
            #[inline]
            fn vectors(length: usize, threads: usize) -> Option<usize> {
                Avx512::detect()
                    .map(|_| simd_quicksort::spare::<Avx512, $t>(length, threads))
                    .or_else(|| Avx2::detect().map(|_| simd_quicksort::spare::<Avx2, $t>(length, threads)))
            }
            fn by_vectors(keys: &mut [Self], spare: &mut [Self], threads: usize) {
                if let Some(set) = Avx512::detect() {
                    simd_quicksort::sort(set, keys, spare, threads, sort_all_digits);
                } else if let Some(set) = Avx2::detect() {
                    simd_quicksort::sort(set, keys, spare, threads, sort_all_digits);
                }
            }
        }),*);
    };
}

digits!(u8, u16, u128);
vector_digits!(u32, u64);

/// A key in the upper half and an index in the lower, so that equal keys stay in
/// the order of their indices.
pub trait Indexed: Digits {
    /// The two as one. The index fits into half of the bits, and so does the key.
    fn join(key: u64, index: usize) -> Self;
    /// The index.
    fn index(self) -> u64;
    /// The key.
    fn key(self) -> u64;
}

impl Indexed for u64 {
    #[inline(always)]
    fn join(key: u64, index: usize) -> u64 {
        key << 32 | index as u64
    }
    #[inline(always)]
    fn index(self) -> u64 {
        self & 0xffff_ffff
    }
    #[inline(always)]
    fn key(self) -> u64 {
        self >> 32
    }
}

impl Indexed for u128 {
    #[inline(always)]
    fn join(key: u64, index: usize) -> u128 {
        u128::from(key) << 64 | index as u128
    }
    #[inline(always)]
    fn index(self) -> u64 {
        self as u64
    }
    #[inline(always)]
    fn key(self) -> u64 {
        (self >> 64) as u64
    }
}

/// How many keys `sort` needs to spare for so many, whose `bytes` count, and
/// `sort_long` on so many threads.
#[must_use]
pub fn spare<K: Digits>(length: usize, bytes: &Range<usize>, threads: usize) -> usize {
    let digits = || if length < SHORT * bytes.len() { 0 } else { length };
    K::vectors(length, threads).unwrap_or_else(digits)
}

/// Sorts keys whose bytes below `bytes` ascend among those that are alike in
/// `bytes`, and whose bytes above are zero. `spare` is as long as `spare()`
/// says, or longer.
pub fn sort<K: Digits>(keys: &mut [K], spare: &mut [K], bytes: Range<usize>) {
    if K::vectors(0, 1).is_some() {
        K::by_vectors(keys, spare, 1);
    } else {
        sort_digits(keys, spare, bytes);
    }
}

/// `sort` by all digits of the keys.
#[cfg(target_arch = "x86_64")]
pub(in crate::exec) fn sort_all_digits<K: Digits>(keys: &mut [K], spare: &mut [K]) {
    sort_digits(keys, spare, 0..K::BYTES);
}

/// `sort` by the digits.
pub(in crate::exec) fn sort_digits<K: Digits>(keys: &mut [K], spare: &mut [K], bytes: Range<usize>) {
    let length = keys.len();
    if length < SHORT * bytes.len() {
        keys.sort_unstable();
        return;
    }
    let mut counts = [[0usize; 256]; 8];
    for stretch in keys.chunks(STRETCH) {
        for &key in stretch {
            for (counts, byte) in counts.iter_mut().zip(bytes.clone()) {
                counts[usize::from(key.digit(byte))] += 1;
            }
        }
        cooperative_yield::after(work(stretch.len(), MOVE));
    }
    let (mut from, mut to) = (keys, &mut spare[..length]);
    let mut swapped = false;
    for (counts, byte) in counts.iter_mut().zip(bytes) {
        if counts[usize::from(from[0].digit(byte))] == length {
            continue;
        }
        let mut next = 0;
        for count in counts.iter_mut() {
            next += std::mem::replace(count, next);
        }
        for stretch in from.chunks(STRETCH) {
            for &key in stretch {
                let place = &mut counts[usize::from(key.digit(byte))];
                to[*place] = key;
                *place += 1;
            }
            cooperative_yield::after(work(stretch.len(), MOVE));
        }
        (from, to) = (to, from);
        swapped = !swapped;
    }
    if swapped {
        to.copy_from_slice(from);
    }
}

/// `sort` of one long row, by several threads if it pays and there is enough to
/// spare.
pub fn sort_long<K: Digits>(keys: &mut [K], spare: &mut [K], bytes: &Range<usize>, cost: Cost) {
    let threads = parallel::threads_for(keys.len(), cost);
    if K::vectors(0, 1).is_some() {
        K::by_vectors(keys, spare, threads);
    } else {
        sort_parallel(keys, spare, bytes, threads);
    }
}

fn sort_parallel<K: Digits>(keys: &mut [K], spare: &mut [K], bytes: &Range<usize>, threads: usize) {
    let length = keys.len();
    if threads < 2 || length < 2 * MERGED || spare.len() < length {
        sort_digits(keys, spare, bytes.clone());
        return;
    }
    let middle = length / 2;
    {
        let (low, high) = keys.split_at_mut(middle);
        let (spare_low, spare_high) = spare[..length].split_at_mut(middle);
        parallel::join(
            || sort_parallel(low, spare_low, bytes, threads / 2),
            || sort_parallel(high, spare_high, bytes, threads - threads / 2),
        );
    }
    let (low, high) = keys.split_at(middle);
    if low.last() <= high.first() {
        return;
    }
    merge_parallel(low, high, &mut spare[..length], threads);
    keys.copy_from_slice(&spare[..length]);
}

fn merge_parallel<K: Digits>(left: &[K], right: &[K], out: &mut [K], threads: usize) {
    if threads < 2 || out.len() < 2 * MERGED {
        merge_stretches(left, right, out);
        return;
    }
    let first = out.len() * (threads / 2) / threads;
    let from_left = taken(left, right, first);
    let (left, left_rest) = left.split_at(from_left);
    let (right, right_rest) = right.split_at(first - from_left);
    let (out, out_rest) = out.split_at_mut(first);
    parallel::join(
        || merge_parallel(left, right, out, threads / 2),
        || merge_parallel(left_rest, right_rest, out_rest, threads - threads / 2),
    );
}

fn merge_stretches<K: Digits>(mut left: &[K], mut right: &[K], out: &mut [K]) {
    for stretch in out.chunks_mut(STRETCH) {
        let from_left = taken(left, right, stretch.len());
        let (first, rest) = left.split_at(from_left);
        let (second, others) = right.split_at(stretch.len() - from_left);
        merge(first, second, stretch);
        cooperative_yield::after(work(stretch.len(), MOVE));
        (left, right) = (rest, others);
    }
}

/// How many of the first `count` of two sorted rows, merged, are of the left.
fn taken<K: Digits>(left: &[K], right: &[K], count: usize) -> usize {
    let (mut low, mut high) = (count.saturating_sub(right.len()), count.min(left.len()));
    while low < high {
        let middle = low + (high - low) / 2;
        // With too few of the left, the first left out is below the last of the right.
        if left[middle] < right[count - middle - 1] { low = middle + 1 } else { high = middle }
    }
    low
}

fn merge<K: Digits>(left: &[K], right: &[K], out: &mut [K]) {
    let (mut i, mut j) = (0, 0);
    let mut slots = out.iter_mut();
    while i < left.len()
        && j < right.len()
        && let Some(slot) = slots.next()
    {
        let (a, b) = (left[i], right[j]);
        let takes_left = a <= b;
        *slot = if takes_left { a } else { b };
        i += usize::from(takes_left);
        j += usize::from(!takes_left);
    }
    for (slot, &key) in slots.zip(left[i..].iter().chain(&right[j..])) {
        *slot = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys<K: Digits>(length: usize, key: impl Fn(u64) -> K) -> Vec<K> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 20
        };
        (0..length).map(|_| key(next())).collect()
    }

    fn check<K: Digits + std::fmt::Debug>(bytes: &Range<usize>, key: impl Fn(u64) -> K) {
        for length in [0, 1, 2, 50, 99, 100, 999, 1000, 5000, 70_001] {
            let keys = keys(length, &key);
            let mut expected = keys.clone();
            expected.sort_unstable();
            let mut alone = keys.clone();
            sort(&mut alone, &mut vec![K::default(); spare::<K>(length, bytes, 1)], bytes.clone());
            assert_eq!(alone, expected, "{length}");
            for threads in 1..6 {
                let mut shared = keys.clone();
                sort_parallel(&mut shared, &mut vec![K::default(); length], bytes, threads);
                assert_eq!(shared, expected, "{length} by {threads}");
            }
        }
    }

    #[test]
    fn sorts_keys_of_every_width() {
        check(&(0..1), |x| x as u8);
        check(&(0..2), |x| x as u16);
        check(&(0..4), |x| x as u32);
        check(&(0..8), |x| x.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // Bytes that all share, and few values.
        check(&(0..8), |x| x & 0x00ff_0000_00ff_0000 | 0xab00);
        check(&(0..4), |x| (x % 3) as u32);
        check(&(8..16), |x| u128::from(x % 7) << 64);
    }

    #[test]
    fn merges_anything() {
        for (left, right) in [(0, 5), (5, 0), (1, 7), (40_000, 3), (30_000, 30_000)] {
            let (mut left, mut right) = (keys(left, |x| x as u32 % 999), keys(right, |x| x as u32 % 1234));
            left.sort_unstable();
            right.sort_unstable();
            let mut expected = [left.clone(), right.clone()].concat();
            expected.sort_unstable();
            for threads in 1..5 {
                let mut out = vec![0; expected.len()];
                merge_parallel(&left, &right, &mut out, threads);
                assert_eq!(out, expected);
            }
        }
    }
}
