//! Quicksort of 32- and 64-bit keys with vectors.
//!
//! Problem: a radix sort moves each key four to eight times, one after the other.
//! Technique: each step compares a vector of keys with a pivot, and packs those
//! below and the others into two rows; short rows go through a sorting
//! network of whole vectors. What is still long after many steps is left to the
//! radix sort, so that no order of keys takes quadratic time.

use crate::exec::simd::{InstructionSet, Lanes, Vectorized, prefetch};
use crate::exec::threads::cooperative_yield::pause;
use crate::exec::threads::parallel;
use crate::exec::threads::parallel::Tasks;

/// Vectors that a network sorts: of more, the registers don't hold all.
const VECTORS: usize = 8;

/// Rows shorter than this are sorted by one thread.
const SHARED: usize = 1 << 13;

/// Rows up to this length are sorted by a network, without any to spare.
pub const fn base<S: InstructionSet, K: Lanes<S>>() -> usize {
    VECTORS * K::LANES
}

/// Rows of more bytes than this are partitioned in their place, so that what is spared
/// for the rest stays in the cache.
const LONG: usize = 1 << 19;

/// The keys of `LONG`.
const fn long<K>() -> usize {
    LONG / size_of::<K>()
}

/// How many keys `sort` needs to spare for so many.
pub fn spare<S: InstructionSet, K: Lanes<S>>(length: usize, threads: usize) -> usize {
    if length <= base::<S, K>() {
        0
    } else if length <= long::<K>() {
        length
    } else {
        long::<K>().saturating_mul(threads)
    }
}

/// Sorts keys, given as much memory, in time that doesn't depend on their order.
pub type Fallback<K> = fn(&mut [K], &mut [K]);

/// Sorts keys; `spare` is as long as `spare()` says, or longer; on fewer threads if
/// it is only long enough for them.
pub fn sort<S: InstructionSet, K: Lanes<S>>(
    set: S,
    keys: &mut [K],
    spare: &mut [K],
    threads: usize,
    fallback: Fallback<K>,
) {
    let (steps, long) = (2 * keys.len().max(1).ilog2(), long::<K>());
    if keys.len() > long {
        let (own, spare) = spare.split_at_mut(long);
        let mut spare = spare.chunks_exact_mut(long).take(threads - 1);
        parallel::divide((keys, steps), own, &mut spare, &|spare, (keys, steps), tasks| {
            split(set, keys, spare, steps, tasks, fallback);
        });
        return;
    }
    let shared = keys.len() >= SHARED && threads > 1;
    let row = Row { keys, other: spare, stay: true, steps };
    if shared {
        parallel::divide(row, (), &mut (1..threads).map(|_| ()), &|(), row, tasks| {
            quick(set, row, Some(tasks), fallback);
        });
    } else {
        quick(set, row, None, fallback);
    }
}

/// Sorts `keys` in their place, but for those that it leaves to others, with little to spare.
fn split<'a, S: InstructionSet, K: Lanes<S>>(
    set: S,
    mut keys: &'a mut [K],
    spare: &mut [K],
    mut steps: u32,
    tasks: &Tasks<(&'a mut [K], u32)>,
    fallback: Fallback<K>,
) {
    while keys.len() > long::<K>() {
        if steps == 0 {
            keys.sort_unstable();
            return;
        }
        steps -= 1;
        pause();
        let pivot = set.run(Pivot { set, keys });
        let low = set.run(Split { set, keys, pivot });
        if low == 0 {
            // None is below the pivot: what equals it comes first.
            let Some(above) = pivot.next() else { return };
            let equal = set.run(Split { set, keys, pivot: above });
            keys = &mut keys[equal..];
            continue;
        }
        let (below, above) = keys.split_at_mut(low);
        tasks.push((above, steps));
        keys = below;
    }
    let other = if keys.len() <= base::<S, K>() { spare } else { &mut spare[..keys.len()] };
    quick(set, Row { keys, other, stay: true, steps }, None, fallback);
}

/// Keys to be sorted in their place if they stay, or else into the other row; both are
/// overwritten.
struct Row<'a, K> {
    keys: &'a mut [K],
    other: &'a mut [K],
    stay: bool,
    steps: u32,
}

/// Sorts a row, but for what it leaves to others.
fn quick<'a, S: InstructionSet, K: Lanes<S>>(
    set: S,
    row: Row<'a, K>,
    tasks: Option<&Tasks<Row<'a, K>>>,
    fallback: Fallback<K>,
) {
    let Row { mut keys, mut other, mut stay, steps } = row;
    let mut length = keys.len();
    let mut low;
    loop {
        if length <= base::<S, K>() {
            set.run(Network { set, keys, to: if stay { None } else { Some(other) } });
            return;
        }
        if steps == 0 {
            fallback(keys, other);
            if !stay {
                other.copy_from_slice(keys);
            }
            return;
        }
        let pivot = set.run(Pivot { set, keys });
        low = if stay {
            set.run(Partition::<S, K, true> { set, keys, other, pivot })
        } else {
            set.run(Partition::<S, K, false> { set, keys, other, pivot })
        };
        if low > 0 {
            break;
        }
        // None is below the pivot: what equals it comes first.
        if stay {
            (keys, other) = (other, keys);
        }
        let Some(above) = pivot.next() else {
            other.copy_from_slice(keys);
            return;
        };
        let equal = set.run(Partition::<S, K, false> { set, keys, other, pivot: above });
        length -= equal;
        (keys, other, stay) = (&mut keys[..length], &mut other[equal..], false);
    }
    // What has stayed and what has moved are at the starts of their rows, and each
    // goes on with what the other has left free.
    let kept = if stay { low } else { length - low };
    let (kept, free) = keys.split_at_mut(kept);
    let (moved, left) = other.split_at_mut(free.len());
    let steps = steps - 1;
    let moved = Row { keys: moved, other: free, stay: !stay, steps };
    match tasks {
        Some(tasks) if length >= SHARED => tasks.push(moved),
        _ => quick(set, moved, tasks, fallback),
    }
    quick(set, Row { keys: kept, other: left, stay, steps }, tasks, fallback);
}

/// A key near the middle: the median of three medians of three.
struct Pivot<'a, S, K> {
    set: S,
    keys: &'a [K],
}

impl<S: InstructionSet, K: Lanes<S>> Vectorized for Pivot<'_, S, K> {
    type Output = K;

    #[inline(always)]
    fn run(self) -> K {
        let Pivot { set, keys } = self;
        let step = (keys.len() - K::LANES) / 8;
        let mut at = [K::splat(set, K::LAST); 9];
        for (i, at) in at.iter_mut().enumerate() {
            *at = K::load(set, &keys[i * step..]);
        }
        for i in 0..3 {
            at[i] = middle::<S, K>(set, at[i], at[i + 3], at[i + 6]);
        }
        let mut medians = [K::default(); 16];
        K::store(set, middle::<S, K>(set, at[0], at[1], at[2]), &mut medians);
        let lane = |third: usize| medians[3 * third * K::LANES.min(8) / 8];
        let (a, b, c) = (lane(0), lane(1), lane(2));
        a.min(b).max(a.max(b).min(c))
    }
}

/// The median of each three.
#[inline(always)]
fn middle<S: InstructionSet, K: Lanes<S>>(set: S, a: K::Vector, b: K::Vector, c: K::Vector) -> K::Vector {
    let (low, high) = (K::smaller(set, a, b), K::larger(set, a, b));
    K::larger(set, low, K::smaller(set, high, c))
}

/// Moves the keys below the pivot, or those that aren't, to the start of the other
/// row, and the rest to the start of their own; how many are below.
struct Partition<'a, S, K, const LOW_STAYS: bool> {
    set: S,
    keys: &'a mut [K],
    other: &'a mut [K],
    pivot: K,
}

impl<S: InstructionSet, K: Lanes<S>, const LOW_STAYS: bool> Vectorized for Partition<'_, S, K, LOW_STAYS> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let Partition { set, keys, other, pivot } = self;
        let length = keys.len();
        let other = &mut other[..length];
        let pivots = K::splat(set, pivot);
        let all = u16::MAX >> (16 - K::LANES);
        let turn = if LOW_STAYS { 0 } else { all };
        // What has been read but has not stayed has moved.
        let (mut read, mut kept) = (0, 0);
        while read + K::LANES <= length {
            let vector = K::load(set, &keys[read..]);
            let stays = K::less(set, vector, pivots) ^ turn;
            K::store(set, K::compress(set, stays, vector), &mut keys[kept..]);
            K::store(set, K::compress(set, stays ^ all, vector), &mut other[read - kept..]);
            kept += stays.count_ones() as usize;
            read += K::LANES;
        }
        // The rest, less than a vector.
        let rest = (1 << (length - read)) - 1;
        let vector = K::load_part(set, &keys[read..]);
        let stays = (K::less(set, vector, pivots) ^ turn) & rest;
        let more = stays.count_ones() as usize;
        K::store_part(set, K::compress(set, stays, vector), &mut keys[kept..kept + more]);
        K::store_part(
            set,
            K::compress(set, stays ^ rest, vector),
            &mut other[read - kept..length - kept - more],
        );
        kept += more;
        if LOW_STAYS { kept } else { length - kept }
    }
}

/// Moves the keys below the pivot to the start of the row, and the rest to its
/// end; how many are below.
///
/// A block at either end is read ahead. From then on, the next block is read at
/// the end that has less room between what is read and what is written: that is
/// at most a block, so that the other end has room for a whole one.
struct Split<'a, S, K> {
    set: S,
    keys: &'a mut [K],
    pivot: K,
}

/// Keys that are read at once: a whole number of vectors.
const BLOCK: usize = 128;

/// How far to look ahead: the processor doesn't guess at which end it goes on.
const AHEAD: usize = 4 * BLOCK;

/// Blocks between pauses: they take a fraction of a millisecond.
const TURN: usize = 1 << 12;

impl<S: InstructionSet, K: Lanes<S>> Vectorized for Split<'_, S, K> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let Split { set, keys, pivot } = self;
        let length = keys.len();
        if length < 2 * BLOCK {
            // Nothing as short is split here.
            keys.sort_unstable();
            return keys.partition_point(|&key| key < pivot);
        }
        let pivots = K::splat(set, pivot);
        let all = u16::MAX >> (16 - K::LANES);
        let mut ahead = [K::default(); 3 * BLOCK];
        ahead[..BLOCK].copy_from_slice(&keys[..BLOCK]);
        ahead[BLOCK..2 * BLOCK].copy_from_slice(&keys[length - BLOCK..]);
        // What is left to be read, and to be written.
        let (mut from, mut to) = (BLOCK, length - BLOCK);
        let (mut low, mut high) = (0, length);
        let mut turn = TURN;
        while to - from >= BLOCK {
            turn -= 1;
            if turn == 0 {
                turn = TURN;
                pause();
            }
            let start = if from - low <= high - to {
                from += BLOCK;
                from - BLOCK
            } else {
                to -= BLOCK;
                to
            };
            // From the low end on, vectors are read upwards, from the other downwards.
            let upwards = start < from;
            for i in 0..BLOCK / K::LANES {
                let i = if upwards { i } else { BLOCK / K::LANES - 1 - i };
                let place = start + i * K::LANES;
                prefetch(keys, if upwards { place + AHEAD } else { place.wrapping_sub(AHEAD) });
                let vector = K::load(set, &keys[place..]);
                let below = K::less(set, vector, pivots);
                let count = below.count_ones() as usize;
                // There is room for a vector at either end: at that which is read from, for what
                // has just been read, and at the other, for what is left to be read of the block.
                K::store_apart(set, below, vector, &mut keys[low..], high - low);
                low += count;
                high -= K::LANES - count;
            }
        }
        let left = to - from;
        ahead[2 * BLOCK..2 * BLOCK + left].copy_from_slice(&keys[from..to]);
        for keys_ahead in ahead[..2 * BLOCK + left].chunks(K::LANES) {
            let vector = K::load_part(set, keys_ahead);
            let valid = all >> (K::LANES - keys_ahead.len());
            let below = K::less(set, vector, pivots) & valid;
            let count = below.count_ones() as usize;
            let rest = keys_ahead.len() - count;
            K::store_part(set, K::compress(set, below, vector), &mut keys[low..low + count]);
            K::store_part(set, K::compress(set, below ^ valid, vector), &mut keys[high - rest..high]);
            low += count;
            high -= rest;
        }
        low
    }
}

/// Sorts at most `base` keys, into another row if there is one.
struct Network<'a, S, K> {
    set: S,
    keys: &'a mut [K],
    to: Option<&'a mut [K]>,
}

impl<S: InstructionSet, K: Lanes<S>> Vectorized for Network<'_, S, K> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Network { set, keys, to } = self;
        if keys.len() < 2 {
            if let Some(to) = to {
                to.copy_from_slice(keys);
            }
            return;
        }
        match keys.len().div_ceil(K::LANES) {
            ..=4 => network::<S, K, 4>(set, keys, to),
            _ => network::<S, K, VECTORS>(set, keys, to),
        }
    }
}

/// Bitonic merges of columns, first within them, then of one with the next: a
/// step over a distance within a column takes whole vectors, and one over columns
/// permutes their lanes. In the end, columns become rows.
#[inline(always)]
fn network<S: InstructionSet, K: Lanes<S>, const ROWS: usize>(set: S, keys: &mut [K], to: Option<&mut [K]>) {
    let mut v = [K::splat(set, K::LAST); ROWS];
    for (v, keys) in v.iter_mut().zip(keys.chunks(K::LANES)) {
        *v = K::load_part(set, keys);
    }
    let mut size = 2;
    while size <= ROWS {
        for row in 0..ROWS {
            let mirrored = row ^ (size - 1);
            if row < mirrored {
                (v[row], v[mirrored]) = K::sorted(set, v[row], v[mirrored]);
            }
        }
        clean::<S, K, ROWS>(set, &mut v, size / 4);
        size *= 2;
    }
    let mut columns = 2;
    while columns <= K::LANES {
        let mirror = &K::FLIPPED[columns - 1];
        let larger = K::lanes_with(columns / 2);
        for row in 0..ROWS / 2 {
            let (a, b) = (v[row], v[ROWS - 1 - row]);
            v[row] = K::min_or_max(set, larger, a, K::permute(set, b, mirror));
            v[ROWS - 1 - row] = K::min_or_max(set, larger, b, K::permute(set, a, mirror));
        }
        let mut distance = columns / 4;
        while distance > 0 {
            let (swap, larger) = (&K::FLIPPED[distance], K::lanes_with(distance));
            for v in &mut v {
                *v = K::min_or_max(set, larger, *v, K::permute(set, *v, swap));
            }
            distance /= 2;
        }
        clean::<S, K, ROWS>(set, &mut v, ROWS / 2);
        columns *= 2;
    }
    turn::<S, K, ROWS>(set, &mut v);
    let to = to.unwrap_or(keys);
    // Of more rows than lanes, each column has become several.
    let planes = (ROWS / K::LANES).max(1);
    for (i, to) in to.chunks_mut(K::LANES).enumerate() {
        K::store_part(set, v[i % planes * K::LANES + i / planes], to);
    }
}

/// The rest of a merge, whose steps are over fewer rows each.
#[inline(always)]
fn clean<S: InstructionSet, K: Lanes<S>, const ROWS: usize>(
    set: S,
    v: &mut [K::Vector; ROWS],
    mut distance: usize,
) {
    while distance > 0 {
        for row in 0..ROWS {
            if row & distance == 0 {
                (v[row], v[row + distance]) = K::sorted(set, v[row], v[row + distance]);
            }
        }
        distance /= 2;
    }
}

/// Turns columns into rows: bits of a row's number and of a lane's change places. Of more rows than
/// lanes, each as many are turned by themselves.
#[inline(always)]
pub(in crate::exec) fn turn<S: InstructionSet, K: Lanes<S>, const ROWS: usize>(
    set: S,
    v: &mut [K::Vector; ROWS],
) {
    const { assert!(ROWS <= 16 && K::LANES <= 16) };
    let (rows, lanes) = (ROWS.ilog2(), K::LANES.ilog2());
    swap::<S, K, ROWS, 8>(set, v);
    swap::<S, K, ROWS, 4>(set, v);
    swap::<S, K, ROWS, 2>(set, v);
    swap::<S, K, ROWS, 1>(set, v);
    if rows < lanes {
        // The bits of rows come to be the lowest.
        let order = &K::ROTATED[rows as usize];
        for v in v {
            *v = K::permute(set, *v, order);
        }
    }
}

/// Lets a bit of a row's number and one of a lane's change places. The bit is a constant, so
/// that rows stay in registers.
#[inline(always)]
fn swap<S: InstructionSet, K: Lanes<S>, const ROWS: usize, const BIT: usize>(
    set: S,
    v: &mut [K::Vector; ROWS],
) {
    if BIT >= ROWS.min(K::LANES) {
        return;
    }
    let lane = K::LANES.ilog2() - ROWS.min(K::LANES).ilog2() + BIT.ilog2();
    let [first, second] = &K::TURNED[lane as usize];
    for pair in 0..ROWS / 2 {
        let row = pair / BIT * 2 * BIT + pair % BIT;
        let (a, b) = (v[row], v[row + BIT]);
        v[row] = K::pick(set, a, b, first);
        v[row + BIT] = K::pick(set, a, b, second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::simd::{Avx2, Avx512};
    use crate::exec::sort::radix::{Digits, sort_all_digits};

    fn check<S: InstructionSet, K: Lanes<S> + Digits + std::fmt::Debug>(key: impl Fn(u64) -> K) {
        let Some(set) = S::detect() else { return };
        let lengths = (0..600).chain([1_000, 4_095, 4_096, 10_001, long::<K>() + 1, 3 * long::<K>() + 77]);
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
                sort(set, &mut sorted, &mut keys.clone(), threads, sort_all_digits);
                assert_eq!(sorted, expected, "{length}");
            }
            // Left to the radix sort, in either row.
            for (steps, stay) in [(0, true), (0, false), (1, true), (1, false)] {
                let (mut sorted, mut other) = (keys.clone(), keys.clone());
                quick(set, Row { keys: &mut sorted, other: &mut other, stay, steps }, None, sort_all_digits);
                assert_eq!(if stay { sorted } else { other }, expected, "{length} {steps} {stay}");
            }
            expected.reverse();
            let mut sorted = expected.clone();
            sort(set, &mut sorted, &mut keys.clone(), 1, sort_all_digits);
            expected.reverse();
            assert_eq!(sorted, expected, "{length} from the end");
            sort(set, &mut sorted, &mut keys.clone(), 1, sort_all_digits);
            assert_eq!(sorted, expected, "{length} sorted");
        }
    }

    fn check_all<S: InstructionSet>()
    where
        u32: Lanes<S>,
        u64: Lanes<S>,
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
