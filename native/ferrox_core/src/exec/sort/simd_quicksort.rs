//! Vectorized quicksort of 32- and 64-bit keys.
//!
//! Problem: a radix sort moves each key four to eight times, one key after the other. Technique:
//! each step compares a vector of keys with a pivot and compresses the keys below it to one place,
//! and the others to another. Rows up to `MAX_BUFFERED_BYTES` are partitioned into a second row;
//! longer ones in place, from both ends. A few vectors of keys are sorted in registers by a bitonic
//! sorting network. As in introsort, the depth is limited: after `2 * log2(n)` levels another sort
//! takes over, so that no order of keys takes quadratic time.
//!
//! The partition in place, the network of whole vectors and the transposition in registers follow
//! these models:
//! * B. Bramas, "A Novel Hybrid Quicksort Algorithm Vectorized using AVX-512 on Intel Skylake",
//!   2017;
//! * M. Blacher, J. Giesen, L. Kühne, "Fast and Robust Vectorized In-Place Sorting of Primitive
//!   Types", SEA 2021;
//! * J. Wassenberg, M. Blacher, J. Giesen, P. Sanders, "Vectorized and performance-portable
//!   Quicksort", 2022, which is `vqsort` of Google's library Highway;
//! * K. E. Batcher, "Sorting networks and their applications", 1968, for the network;
//! * D. R. Musser, "Introspective Sorting and Selection Algorithms", 1997, for the limit.

use crate::cost::{MAX_BUFFERED_BYTES, MIN_KEYS_FOR_TASK, PARTITION_BLOCKS_PER_YIELD};
use crate::exec::simd::{InstructionSet, IntVector, Vectorized, prefetch, transpose_vectors};
use crate::exec::threads::cooperative_yield::pause;
use crate::exec::threads::parallel;
use crate::exec::threads::parallel::Tasks;

/// The number of vectors that the sorting network sorts. More would not fit into the registers.
const NETWORK_VECTORS: usize = 8;

/// The largest number of keys that the sorting network sorts. Needs no buffer.
pub const fn network_keys<S: InstructionSet, K: IntVector<S>>() -> usize {
    NETWORK_VECTORS * K::LANES
}

/// `MAX_BUFFERED_BYTES` as a number of keys.
const fn max_buffered_keys<K>() -> usize {
    MAX_BUFFERED_BYTES / size_of::<K>()
}

/// The length of the buffer that [`sort`] needs for `length` keys.
pub fn buffer_length<S: InstructionSet, K: IntVector<S>>(length: usize, threads: usize) -> usize {
    if length <= network_keys::<S, K>() {
        0
    } else if length <= max_buffered_keys::<K>() {
        length
    } else {
        max_buffered_keys::<K>().saturating_mul(threads)
    }
}

/// Sorts keys with a buffer of the same length, in time that doesn't depend on their order.
pub type Fallback<K> = fn(&mut [K], &mut [K]);

/// Sorts keys on up to `threads` threads. `buffer` has the length that [`buffer_length`] returns
/// for some number of threads, or more; if that number is smaller than `threads`, only as many
/// threads are used. `fallback` sorts rows whose partitions are too uneven.
pub fn sort<S: InstructionSet, K: IntVector<S>>(
    set: S,
    keys: &mut [K],
    buffer: &mut [K],
    threads: usize,
    fallback: Fallback<K>,
) {
    let (levels_left, max_buffered_keys) = (2 * keys.len().max(1).ilog2(), max_buffered_keys::<K>());
    if keys.len() > max_buffered_keys {
        let (own, buffer) = buffer.split_at_mut(max_buffered_keys);
        let mut buffer = buffer.chunks_exact_mut(max_buffered_keys).take(threads - 1);
        parallel::divide((keys, levels_left), own, &mut buffer, &|buffer, (keys, levels_left), tasks| {
            sort_in_place(set, keys, buffer, levels_left, tasks, fallback);
        });
        return;
    }
    let shared = keys.len() >= MIN_KEYS_FOR_TASK && threads > 1;
    let row = BufferedRow { keys, other: buffer, ends_in_keys: true, levels_left };
    if shared {
        parallel::divide(row, (), &mut (1..threads).map(|_| ()), &|(), row, tasks| {
            sort_buffered(set, row, Some(tasks), fallback);
        });
    } else {
        sort_buffered(set, row, None, fallback);
    }
}

/// Partitions `keys` in place until `buffer` suffices for the keys at the start, and sorts these.
/// Leaves the partitions above the pivots, with the levels that they have left, to `tasks`.
fn sort_in_place<'a, S: InstructionSet, K: IntVector<S>>(
    set: S,
    mut keys: &'a mut [K],
    buffer: &mut [K],
    mut levels_left: u32,
    tasks: &Tasks<(&'a mut [K], u32)>,
    fallback: Fallback<K>,
) {
    while keys.len() > max_buffered_keys::<K>() {
        if levels_left == 0 {
            keys.sort_unstable();
            return;
        }
        levels_left -= 1;
        pause();
        let pivot = set.run(ChoosePivot { set, keys });
        let low = set.run(InPlacePartition { set, keys, pivot });
        if low == 0 {
            // No key is below the pivot: the keys that equal it come first.
            let Some(above) = pivot.next() else { return };
            let equal = set.run(InPlacePartition { set, keys, pivot: above });
            keys = &mut keys[equal..];
            continue;
        }
        let (below, above) = keys.split_at_mut(low);
        tasks.push((above, levels_left));
        keys = below;
    }
    let other = if keys.len() <= network_keys::<S, K>() { buffer } else { &mut buffer[..keys.len()] };
    sort_buffered(set, BufferedRow { keys, other, ends_in_keys: true, levels_left }, None, fallback);
}

/// Keys to be sorted with a second row of the same length. The sorted keys end in `keys` if
/// `ends_in_keys`, else in `other`; the contents of the other row are then unspecified.
struct BufferedRow<'a, K> {
    keys: &'a mut [K],
    other: &'a mut [K],
    ends_in_keys: bool,
    levels_left: u32,
}

/// Sorts a row, except for the partitions that it leaves to `tasks`.
fn sort_buffered<'a, S: InstructionSet, K: IntVector<S>>(
    set: S,
    row: BufferedRow<'a, K>,
    tasks: Option<&Tasks<BufferedRow<'a, K>>>,
    fallback: Fallback<K>,
) {
    let BufferedRow { mut keys, mut other, mut ends_in_keys, levels_left } = row;
    let mut length = keys.len();
    let mut low;
    loop {
        if length <= network_keys::<S, K>() {
            set.run(SortingNetwork { set, keys, to: if ends_in_keys { None } else { Some(other) } });
            return;
        }
        if levels_left == 0 {
            fallback(keys, other);
            if !ends_in_keys {
                other.copy_from_slice(keys);
            }
            return;
        }
        let pivot = set.run(ChoosePivot { set, keys });
        low = if ends_in_keys {
            set.run(BufferedPartition::<S, K, true> { set, keys, other, pivot })
        } else {
            set.run(BufferedPartition::<S, K, false> { set, keys, other, pivot })
        };
        if low > 0 {
            break;
        }
        // No key is below the pivot: the keys that equal it come first.
        if ends_in_keys {
            (keys, other) = (other, keys);
        }
        let Some(above) = pivot.next() else {
            other.copy_from_slice(keys);
            return;
        };
        let equal = set.run(BufferedPartition::<S, K, false> { set, keys, other, pivot: above });
        length -= equal;
        (keys, other, ends_in_keys) = (&mut keys[..length], &mut other[equal..], false);
    }
    // The keys that stayed and the keys that moved are at the starts of their rows. Each partition
    // is sorted with the part of the other row that it has left free, or that is free there.
    let kept = if ends_in_keys { low } else { length - low };
    let (kept, free) = keys.split_at_mut(kept);
    let (moved, other_rest) = other.split_at_mut(free.len());
    let levels_left = levels_left - 1;
    let moved = BufferedRow { keys: moved, other: free, ends_in_keys: !ends_in_keys, levels_left };
    match tasks {
        Some(tasks) if length >= MIN_KEYS_FOR_TASK => tasks.push(moved),
        _ => sort_buffered(set, moved, tasks, fallback),
    }
    sort_buffered(
        set,
        BufferedRow { keys: kept, other: other_rest, ends_in_keys, levels_left },
        tasks,
        fallback,
    );
}

/// Chooses a key near the median: in each lane, the median of three medians of three keys (Tukey's
/// ninther); then the median of three lanes.
struct ChoosePivot<'a, S, K> {
    set: S,
    keys: &'a [K],
}

impl<S: InstructionSet, K: IntVector<S>> Vectorized for ChoosePivot<'_, S, K> {
    type Output = K;

    #[inline(always)]
    fn run(self) -> K {
        let ChoosePivot { set, keys } = self;
        let step = (keys.len() - K::LANES) / 8;
        let mut samples = [K::splat(set, K::LARGEST); 9];
        for (i, samples) in samples.iter_mut().enumerate() {
            *samples = K::load(set, &keys[i * step..]);
        }
        for i in 0..3 {
            samples[i] = median_of_three::<S, K>(set, samples[i], samples[i + 3], samples[i + 6]);
        }
        let mut medians = [K::default(); 16];
        K::store(set, median_of_three::<S, K>(set, samples[0], samples[1], samples[2]), &mut medians);
        let lane = |third: usize| medians[3 * third * K::LANES.min(8) / 8];
        let (a, b, c) = (lane(0), lane(1), lane(2));
        a.min(b).max(a.max(b).min(c))
    }
}

/// The median of three vectors in each lane.
#[inline(always)]
fn median_of_three<S: InstructionSet, K: IntVector<S>>(
    set: S,
    a: K::Vector,
    b: K::Vector,
    c: K::Vector,
) -> K::Vector {
    let (low, high) = (K::smaller(set, a, b), K::larger(set, a, b));
    K::larger(set, low, K::smaller(set, high, c))
}

/// Partitions a row into two. If `LOW_STAYS`, moves the keys below the pivot to the start of `keys`
/// and the others to the start of `other`; else the reverse. Returns the number of keys below the
/// pivot.
struct BufferedPartition<'a, S, K, const LOW_STAYS: bool> {
    set: S,
    keys: &'a mut [K],
    other: &'a mut [K],
    pivot: K,
}

impl<S: InstructionSet, K: IntVector<S>, const LOW_STAYS: bool> Vectorized
    for BufferedPartition<'_, S, K, LOW_STAYS>
{
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let BufferedPartition { set, keys, other, pivot } = self;
        let length = keys.len();
        let other = &mut other[..length];
        let pivots = K::splat(set, pivot);
        let all = u16::MAX >> (16 - K::LANES);
        let invert = if LOW_STAYS { 0 } else { all };
        // `read - kept` keys have moved to `other`.
        let (mut read, mut kept) = (0, 0);
        while read + K::LANES <= length {
            let vector = K::load(set, &keys[read..]);
            let stays = K::less(set, vector, pivots) ^ invert;
            K::store(set, K::compress(set, stays, vector), &mut keys[kept..]);
            K::store(set, K::compress(set, stays ^ all, vector), &mut other[read - kept..]);
            kept += stays.count_ones() as usize;
            read += K::LANES;
        }
        // The last keys, fewer than a vector has lanes.
        let rest = (1 << (length - read)) - 1;
        let vector = K::load_first(set, &keys[read..]);
        let stays = (K::less(set, vector, pivots) ^ invert) & rest;
        let more = stays.count_ones() as usize;
        K::store_first(set, K::compress(set, stays, vector), &mut keys[kept..kept + more]);
        K::store_first(
            set,
            K::compress(set, stays ^ rest, vector),
            &mut other[read - kept..length - kept - more],
        );
        kept += more;
        if LOW_STAYS { kept } else { length - kept }
    }
}

/// Partitions a row in place: moves the keys below the pivot to the start, and the others to the
/// end. Returns the number of keys below the pivot.
///
/// First copies one block of each end, which leaves room for two blocks. Then always reads the next
/// block at the end with less room between the keys that are written and the keys that are not yet
/// read: at most one block. So after the read, both ends have room for all keys of a block.
struct InPlacePartition<'a, S, K> {
    set: S,
    keys: &'a mut [K],
    pivot: K,
}

/// The number of keys that a partition in place reads from one end at once: a whole number of
/// vectors.
const PARTITION_BLOCK_KEYS: usize = 128;

/// The distance in keys at which a partition in place prefetches: hardware prefetchers don't
/// predict from which end the next block is read.
const PARTITION_PREFETCH_KEYS: usize = 4 * PARTITION_BLOCK_KEYS;

impl<S: InstructionSet, K: IntVector<S>> Vectorized for InPlacePartition<'_, S, K> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let InPlacePartition { set, keys, pivot } = self;
        let length = keys.len();
        if length < 2 * PARTITION_BLOCK_KEYS {
            // Unreachable: rows as short are not partitioned in place.
            keys.sort_unstable();
            return keys.partition_point(|&key| key < pivot);
        }
        let pivots = K::splat(set, pivot);
        let all = u16::MAX >> (16 - K::LANES);
        let mut saved = [K::default(); 3 * PARTITION_BLOCK_KEYS];
        saved[..PARTITION_BLOCK_KEYS].copy_from_slice(&keys[..PARTITION_BLOCK_KEYS]);
        saved[PARTITION_BLOCK_KEYS..2 * PARTITION_BLOCK_KEYS]
            .copy_from_slice(&keys[length - PARTITION_BLOCK_KEYS..]);
        // Keys in `from..to` are not yet read; places in `low..high` are not yet written.
        let (mut from, mut to) = (PARTITION_BLOCK_KEYS, length - PARTITION_BLOCK_KEYS);
        let (mut low, mut high) = (0, length);
        let mut blocks_until_yield = PARTITION_BLOCKS_PER_YIELD;
        while to - from >= PARTITION_BLOCK_KEYS {
            blocks_until_yield -= 1;
            if blocks_until_yield == 0 {
                blocks_until_yield = PARTITION_BLOCKS_PER_YIELD;
                pause();
            }
            let start = if from - low <= high - to {
                from += PARTITION_BLOCK_KEYS;
                from - PARTITION_BLOCK_KEYS
            } else {
                to -= PARTITION_BLOCK_KEYS;
                to
            };
            // Vectors are read upwards from the low end, and downwards from the high end.
            let upwards = start < from;
            for i in 0..PARTITION_BLOCK_KEYS / K::LANES {
                let i = if upwards { i } else { PARTITION_BLOCK_KEYS / K::LANES - 1 - i };
                let position = start + i * K::LANES;
                prefetch(
                    keys,
                    if upwards {
                        position + PARTITION_PREFETCH_KEYS
                    } else {
                        position.wrapping_sub(PARTITION_PREFETCH_KEYS)
                    },
                );
                let vector = K::load(set, &keys[position..]);
                let below = K::less(set, vector, pivots);
                let count = below.count_ones() as usize;
                // Either end has room for a vector: the end of this block, as the vector has just
                // been read there, and the other end, for the whole rest of the block.
                K::store_left_right(set, below, vector, &mut keys[low..], high - low);
                low += count;
                high -= K::LANES - count;
            }
        }
        let remaining = to - from;
        saved[2 * PARTITION_BLOCK_KEYS..2 * PARTITION_BLOCK_KEYS + remaining]
            .copy_from_slice(&keys[from..to]);
        for saved_keys in saved[..2 * PARTITION_BLOCK_KEYS + remaining].chunks(K::LANES) {
            let vector = K::load_first(set, saved_keys);
            let valid = all >> (K::LANES - saved_keys.len());
            let below = K::less(set, vector, pivots) & valid;
            let count = below.count_ones() as usize;
            let rest = saved_keys.len() - count;
            K::store_first(set, K::compress(set, below, vector), &mut keys[low..low + count]);
            K::store_first(set, K::compress(set, below ^ valid, vector), &mut keys[high - rest..high]);
            low += count;
            high -= rest;
        }
        low
    }
}

/// Sorts at most `network_keys` keys, into another row if there is one, else in place.
struct SortingNetwork<'a, S, K> {
    set: S,
    keys: &'a mut [K],
    to: Option<&'a mut [K]>,
}

impl<S: InstructionSet, K: IntVector<S>> Vectorized for SortingNetwork<'_, S, K> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let SortingNetwork { set, keys, to } = self;
        if keys.len() < 2 {
            if let Some(to) = to {
                to.copy_from_slice(keys);
            }
            return;
        }
        match keys.len().div_ceil(K::LANES) {
            ..=4 => sorting_network::<S, K, 4>(set, keys, to),
            _ => sorting_network::<S, K, NETWORK_VECTORS>(set, keys, to),
        }
    }
}

/// Batcher's bitonic merge sort of a matrix of `ROWS` vectors, in the order of its columns: merges
/// parts of columns until columns are sorted, and then neighbouring columns. A comparison within a
/// column takes whole vectors; one between columns permutes lanes. In the end the matrix is
/// transposed, so that columns become rows.
#[inline(always)]
fn sorting_network<S: InstructionSet, K: IntVector<S>, const ROWS: usize>(
    set: S,
    keys: &mut [K],
    to: Option<&mut [K]>,
) {
    let mut v = [K::splat(set, K::LARGEST); ROWS];
    for (v, keys) in v.iter_mut().zip(keys.chunks(K::LANES)) {
        *v = K::load_first(set, keys);
    }
    let mut size = 2;
    while size <= ROWS {
        for row in 0..ROWS {
            let mirrored = row ^ (size - 1);
            if row < mirrored {
                (v[row], v[mirrored]) = K::sort_pair(set, v[row], v[mirrored]);
            }
        }
        half_clean::<S, K, ROWS>(set, &mut v, size / 4);
        size *= 2;
    }
    let mut columns = 2;
    while columns <= K::LANES {
        let mirror = &K::XOR_LANES[columns - 1];
        let larger = K::lanes_with_bit(columns / 2);
        for row in 0..ROWS / 2 {
            let (a, b) = (v[row], v[ROWS - 1 - row]);
            v[row] = K::min_or_max(set, larger, a, K::permute(set, b, mirror));
            v[ROWS - 1 - row] = K::min_or_max(set, larger, b, K::permute(set, a, mirror));
        }
        let mut distance = columns / 4;
        while distance > 0 {
            let (partners, larger) = (&K::XOR_LANES[distance], K::lanes_with_bit(distance));
            for v in &mut v {
                *v = K::min_or_max(set, larger, *v, K::permute(set, *v, partners));
            }
            distance /= 2;
        }
        half_clean::<S, K, ROWS>(set, &mut v, ROWS / 2);
        columns *= 2;
    }
    transpose_vectors::<S, K, ROWS>(set, &mut v);
    let to = to.unwrap_or(keys);
    // With more rows than lanes, each column has become several rows.
    let row_groups = (ROWS / K::LANES).max(1);
    for (i, to) in to.chunks_mut(K::LANES).enumerate() {
        K::store_first(set, v[i % row_groups * K::LANES + i / row_groups], to);
    }
}

/// The half-cleaners of a bitonic merge from `distance` rows down to one.
#[inline(always)]
fn half_clean<S: InstructionSet, K: IntVector<S>, const ROWS: usize>(
    set: S,
    v: &mut [K::Vector; ROWS],
    mut distance: usize,
) {
    while distance > 0 {
        for row in 0..ROWS {
            if row & distance == 0 {
                (v[row], v[row + distance]) = K::sort_pair(set, v[row], v[row + distance]);
            }
        }
        distance /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::simd::{Avx2, Avx512};
    use crate::exec::sort::radix::{RadixKey, lsd_radix_sort_all};

    fn check<S: InstructionSet, K: IntVector<S> + RadixKey + std::fmt::Debug>(key: impl Fn(u64) -> K) {
        let Some(set) = S::detect() else { return };
        let lengths = (0..600).chain([
            1_000,
            4_095,
            4_096,
            10_001,
            max_buffered_keys::<K>() + 1,
            3 * max_buffered_keys::<K>() + 77,
        ]);
        for length in lengths {
            let mut state = 1u64;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 20 ^ state << 44
            };
            let keys: Vec<K> = (0..length).map(|_| key(next())).collect();
            let mut expected = keys.clone();
            expected.sort_unstable();
            for threads in 1..4 {
                let mut sorted = keys.clone();
                sort(set, &mut sorted, &mut keys.clone(), threads, lsd_radix_sort_all);
                assert_eq!(sorted, expected, "{length}");
            }
            // Left to the radix sort, with the result in either row.
            for (levels_left, ends_in_keys) in [(0, true), (0, false), (1, true), (1, false)] {
                let (mut sorted, mut other) = (keys.clone(), keys.clone());
                sort_buffered(
                    set,
                    BufferedRow { keys: &mut sorted, other: &mut other, ends_in_keys, levels_left },
                    None,
                    lsd_radix_sort_all,
                );
                assert_eq!(
                    if ends_in_keys { sorted } else { other },
                    expected,
                    "{length} {levels_left} {ends_in_keys}"
                );
            }
            expected.reverse();
            let mut sorted = expected.clone();
            sort(set, &mut sorted, &mut keys.clone(), 1, lsd_radix_sort_all);
            expected.reverse();
            assert_eq!(sorted, expected, "{length} from the end");
            sort(set, &mut sorted, &mut keys.clone(), 1, lsd_radix_sort_all);
            assert_eq!(sorted, expected, "{length} sorted");
        }
    }

    fn check_all<S: InstructionSet>()
    where
        u32: IntVector<S>,
        u64: IntVector<S>,
    {
        check::<S, _>(|x| x as u32);
        check::<S, _>(|x| x);
        check::<S, _>(|x| (x % 3) as u32);
        check::<S, _>(|x| u64::MAX - x % 2);
        check::<S, _>(|_| 7u64);
        check::<S, _>(|_| u32::MAX);
        check::<S, _>(|x| if x.is_multiple_of(10) { x as u32 } else { 1 << 31 });
    }

    #[test]
    fn sorts_any_keys() {
        check_all::<Avx2>();
        check_all::<Avx512>();
    }
}
