//! Sorting of unsigned integers, to which the elements of tensors are mapped.
//!
//! Problem: sort keys of 1 to 16 bytes fast, in rows of three to millions of keys, with the same
//! result for any number of threads. Technique: keys of 4 and 8 bytes are left to `simd_quicksort`
//! if the processor has its vectors. Other short rows are left to a comparison sort, and longer
//! ones to an LSD radix sort (Knuth, "The Art of Computer Programming", vol. 3, 5.2.5), which skips
//! the bytes that all keys share. On several threads, parts of a row are sorted in parallel and
//! merged in parallel, divided by their merge path (Odeh, Green, Mwassi, Shmueli and Birk, "Merge
//! Path: Parallel Merging Made Simple", 2012). Equal keys have equal bits, so that stability makes
//! no difference.

use std::ops::Range;

use crate::cost::{
    Cost, ELEMENTS_PER_YIELD, KEY_MOVE_COST, MIN_KEYS_PER_BYTE_FOR_RADIX_SORT, MIN_KEYS_PER_MERGE, work,
};
#[cfg(target_arch = "x86_64")]
use crate::exec::simd::{Avx2, Avx512, InstructionSet};
#[cfg(target_arch = "x86_64")]
use crate::exec::sort::simd_quicksort;
use crate::exec::threads::{cooperative_yield, parallel};

/// An unsigned integer with access to its bytes.
pub trait RadixKey: Copy + Ord + Default + Send + Sync + 'static {
    /// The number of bytes.
    const BYTES: usize;
    /// A byte, counted from the lowest one.
    fn digit(self, byte: usize) -> u8;

    /// The length of the buffer that `simd_sort` needs for `length` keys on `threads` threads.
    /// Returns `None` if the processor has no vectors for `simd_sort`.
    #[inline]
    fn simd_buffer_length(_length: usize, _threads: usize) -> Option<usize> {
        None
    }
    /// Sorts keys with vectors. Does nothing if `simd_buffer_length` returns `None`.
    #[inline]
    fn simd_sort(_keys: &mut [Self], _buffer: &mut [Self], _threads: usize) {}
}

macro_rules! radix_keys {
    ($($t:ty $({$($simd_items:item)*})?),*) => {$(
        impl RadixKey for $t {
            const BYTES: usize = size_of::<$t>();

            #[inline(always)]
            #[allow(trivial_numeric_casts, clippy::unnecessary_cast, reason = "u8 is one of them")]
            fn digit(self, byte: usize) -> u8 {
                (self >> (8 * byte)) as u8
            }

            $($(#[cfg(target_arch = "x86_64")] $simd_items)*)?
        }
    )*};
}

macro_rules! simd_keys {
    ($($t:ty),*) => {
        radix_keys!($($t {
            #[inline]
            fn simd_buffer_length(length: usize, threads: usize) -> Option<usize> {
                Avx512::detect()
                    .map(|_| simd_quicksort::buffer_length::<Avx512, $t>(length, threads))
                    .or_else(|| Avx2::detect().map(|_| simd_quicksort::buffer_length::<Avx2, $t>(length, threads)))
            }
            fn simd_sort(keys: &mut [Self], buffer: &mut [Self], threads: usize) {
                if let Some(set) = Avx512::detect() {
                    simd_quicksort::sort(set, keys, buffer, threads, lsd_radix_sort_all);
                } else if let Some(set) = Avx2::detect() {
                    simd_quicksort::sort(set, keys, buffer, threads, lsd_radix_sort_all);
                }
            }
        }),*);
    };
}

radix_keys!(u8, u16, u128);
simd_keys!(u32, u64);

/// An integer with a key in its upper half and an index in its lower half, so that equal keys are
/// sorted by their indices.
pub trait IndexedKey: RadixKey {
    /// Joins a key and an index, each of which fits into half of the bits.
    fn join(key: u64, index: usize) -> Self;
    /// The lower half.
    fn index(self) -> u64;
    /// The upper half.
    fn key(self) -> u64;
}

impl IndexedKey for u64 {
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

impl IndexedKey for u128 {
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

/// The length of the buffer that [`sort`], or [`sort_with_threads`] with `threads`, needs for
/// `length` keys that are sorted by `bytes`.
#[must_use]
pub fn buffer_length<K: RadixKey>(length: usize, bytes: &Range<usize>, threads: usize) -> usize {
    let radix_buffer_length =
        || if length < MIN_KEYS_PER_BYTE_FOR_RADIX_SORT * bytes.len() { 0 } else { length };
    K::simd_buffer_length(length, threads).unwrap_or_else(radix_buffer_length)
}

/// Sorts keys. The bytes above `bytes` are zero, and keys that are equal in `bytes` are already in
/// the order of the bytes below. `buffer` has the length that [`buffer_length`] returns, or more.
pub fn sort<K: RadixKey>(keys: &mut [K], buffer: &mut [K], bytes: Range<usize>) {
    if K::simd_buffer_length(0, 1).is_some() {
        K::simd_sort(keys, buffer, 1);
    } else {
        lsd_radix_sort(keys, buffer, bytes);
    }
}

/// [`lsd_radix_sort`] by all bytes of the keys.
#[cfg(target_arch = "x86_64")]
pub(in crate::exec) fn lsd_radix_sort_all<K: RadixKey>(keys: &mut [K], buffer: &mut [K]) {
    lsd_radix_sort(keys, buffer, 0..K::BYTES);
}

/// [`sort`] by an LSD radix sort, or by comparisons if the row is short.
pub(in crate::exec) fn lsd_radix_sort<K: RadixKey>(keys: &mut [K], buffer: &mut [K], bytes: Range<usize>) {
    let length = keys.len();
    if length < MIN_KEYS_PER_BYTE_FOR_RADIX_SORT * bytes.len() {
        keys.sort_unstable();
        return;
    }
    let mut counts = [[0usize; 256]; 8];
    for tile in keys.chunks(ELEMENTS_PER_YIELD) {
        for &key in tile {
            for (counts, byte) in counts.iter_mut().zip(bytes.clone()) {
                counts[usize::from(key.digit(byte))] += 1;
            }
        }
        cooperative_yield::after(work(tile.len(), KEY_MOVE_COST));
    }
    let (mut from, mut to) = (keys, &mut buffer[..length]);
    let mut swapped = false;
    for (counts, byte) in counts.iter_mut().zip(bytes) {
        if counts[usize::from(from[0].digit(byte))] == length {
            continue;
        }
        let mut next = 0;
        for count in counts.iter_mut() {
            next += std::mem::replace(count, next);
        }
        for tile in from.chunks(ELEMENTS_PER_YIELD) {
            for &key in tile {
                let position = &mut counts[usize::from(key.digit(byte))];
                to[*position] = key;
                *position += 1;
            }
            cooperative_yield::after(work(tile.len(), KEY_MOVE_COST));
        }
        (from, to) = (to, from);
        swapped = !swapped;
    }
    if swapped {
        to.copy_from_slice(from);
    }
}

/// [`sort`] of one long row, by several threads if that is faster and the buffer is long enough.
pub fn sort_with_threads<K: RadixKey>(keys: &mut [K], buffer: &mut [K], bytes: &Range<usize>, cost: Cost) {
    let threads = parallel::threads_for(keys.len(), cost);
    if K::simd_buffer_length(0, 1).is_some() {
        K::simd_sort(keys, buffer, threads);
    } else {
        parallel_merge_sort(keys, buffer, bytes, threads);
    }
}

fn parallel_merge_sort<K: RadixKey>(keys: &mut [K], buffer: &mut [K], bytes: &Range<usize>, threads: usize) {
    let length = keys.len();
    if threads < 2 || length < 2 * MIN_KEYS_PER_MERGE || buffer.len() < length {
        lsd_radix_sort(keys, buffer, bytes.clone());
        return;
    }
    let middle = length / 2;
    {
        let (low, high) = keys.split_at_mut(middle);
        let (buffer_low, buffer_high) = buffer[..length].split_at_mut(middle);
        parallel::join(
            || parallel_merge_sort(low, buffer_low, bytes, threads / 2),
            || parallel_merge_sort(high, buffer_high, bytes, threads - threads / 2),
        );
    }
    let (low, high) = keys.split_at(middle);
    if low.last() <= high.first() {
        return;
    }
    parallel_merge(low, high, &mut buffer[..length], threads);
    keys.copy_from_slice(&buffer[..length]);
}

fn parallel_merge<K: RadixKey>(left: &[K], right: &[K], out: &mut [K], threads: usize) {
    if threads < 2 || out.len() < 2 * MIN_KEYS_PER_MERGE {
        merge_in_tiles(left, right, out);
        return;
    }
    let first = out.len() * (threads / 2) / threads;
    let from_left = merge_path(left, right, first);
    let (left, left_rest) = left.split_at(from_left);
    let (right, right_rest) = right.split_at(first - from_left);
    let (out, out_rest) = out.split_at_mut(first);
    parallel::join(
        || parallel_merge(left, right, out, threads / 2),
        || parallel_merge(left_rest, right_rest, out_rest, threads - threads / 2),
    );
}

fn merge_in_tiles<K: RadixKey>(mut left: &[K], mut right: &[K], out: &mut [K]) {
    for tile in out.chunks_mut(ELEMENTS_PER_YIELD) {
        let from_left = merge_path(left, right, tile.len());
        let (first, rest) = left.split_at(from_left);
        let (second, second_rest) = right.split_at(tile.len() - from_left);
        merge(first, second, tile);
        cooperative_yield::after(work(tile.len(), KEY_MOVE_COST));
        (left, right) = (rest, second_rest);
    }
}

/// The number of keys from the left row among the first `count` keys of the merge of two sorted
/// rows: a binary search on the merge path.
fn merge_path<K: RadixKey>(left: &[K], right: &[K], count: usize) -> usize {
    let (mut low, mut high) = (count.saturating_sub(right.len()), count.min(left.len()));
    while low < high {
        let middle = low + (high - low) / 2;
        // If `middle` keys from the left are too few, the next key on the left is below the last
        // key that is taken from the right.
        if left[middle] < right[count - middle - 1] { low = middle + 1 } else { high = middle }
    }
    low
}

fn merge<K: RadixKey>(left: &[K], right: &[K], out: &mut [K]) {
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

    fn keys<K: RadixKey>(length: usize, key: impl Fn(u64) -> K) -> Vec<K> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 20
        };
        (0..length).map(|_| key(next())).collect()
    }

    fn check<K: RadixKey + std::fmt::Debug>(bytes: &Range<usize>, key: impl Fn(u64) -> K) {
        for length in [0, 1, 2, 50, 99, 100, 999, 1000, 5000, 70_001] {
            let keys = keys(length, &key);
            let mut expected = keys.clone();
            expected.sort_unstable();
            let mut alone = keys.clone();
            sort(&mut alone, &mut vec![K::default(); buffer_length::<K>(length, bytes, 1)], bytes.clone());
            assert_eq!(alone, expected, "{length}");
            for threads in 1..6 {
                let mut shared = keys.clone();
                parallel_merge_sort(&mut shared, &mut vec![K::default(); length], bytes, threads);
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
        // Bytes that all keys share, and few different keys.
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
                parallel_merge(&left, &right, &mut out, threads);
                assert_eq!(out, expected);
            }
        }
    }
}
