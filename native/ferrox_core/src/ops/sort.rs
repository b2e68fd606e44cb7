//! Sorting along an axis: `Nx.sort/2`, `Nx.argsort/2` and `Nx.top_k/2`.
//!
//! Elements are mapped to unsigned integers, their keys, in the same order: so the sorting
//! algorithms don't depend on the type. NaN is above infinity; all NaN have one key, and so have
//! both zeros. For a descending order the bits of the keys are inverted. Equal elements keep their
//! order in both directions: where their bits differ (zeros of both signs, NaN), they are written
//! back in the order of the input.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytemuck::Pod;
use smallvec::SmallVec;

use crate::cost::{
    self, Cost, ELEMENTS_PER_YIELD, FAR_ELEMENT_COST, MIN_TOP_CANDIDATES, PREFIX_ARGSORT_FACTOR,
    RADIX_SORT_BYTE_COST, RADIX_SORT_ELEMENT_COST, SELECTED_ELEMENT_COST, SIMD_SORT_BYTE_COST_AVX2,
    SIMD_SORT_BYTE_COST_AVX512, SORTED_ROW_COST, TOP_K_SORT_RATIO, Work,
};
use crate::dtype::minifloat::{BF16, F8, F8E4M3FN, F16};
use crate::dtype::{Element, Lane, sub_byte};
use crate::exec::convert::conversion;
use crate::exec::copy;
use crate::exec::memory::{scratch, scratch_of};
use crate::exec::simd::{Level, Vectorized, dispatch as vectorize, level};
use crate::exec::sort::radix;
use crate::exec::sort::radix::{IndexedKey, RadixKey};
use crate::exec::threads::{cooperative_yield, parallel};
use crate::layout::{self, Layout, Shape, index_of};
use crate::ops::shape;
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, dispatch};

/// The cost of sorting one element of a long row. In a short row it is lower.
#[must_use]
pub fn cost(dtype: DType) -> Cost {
    // Keys of this width are sorted with vectors.
    if u64::simd_buffer_length(0, 1).is_some() && matches!(dtype.width(), 4 | 8) {
        let byte_cost =
            if level() == Level::V4 { SIMD_SORT_BYTE_COST_AVX512 } else { SIMD_SORT_BYTE_COST_AVX2 };
        return byte_cost * dtype.width() as Cost;
    }
    RADIX_SORT_ELEMENT_COST + RADIX_SORT_BYTE_COST * dtype.width() as Cost + sub_byte::cost(&[dtype])
}

/// The work of sorting a tensor along an axis.
#[must_use]
pub fn work(dtype: DType, shape: &[usize], axis: usize) -> Work {
    let size = layout::size(shape).unwrap_or(usize::MAX);
    let rows = size / shape.get(axis).map_or(1, |&dim| dim.max(1));
    cost::work(size, cost(dtype)).saturating_add(cost::work(rows, SORTED_ROW_COST))
}

/// The work of sorting the indices of a tensor's elements along an axis.
#[must_use]
pub fn argsort_work(dtype: DType, shape: &[usize], axis: usize) -> Work {
    let factor = if dtype.width() > 4 { PREFIX_ARGSORT_FACTOR } else { 1 };
    work(dtype, shape, axis).saturating_mul(factor)
}

/// The work of selecting the largest `k` elements along the last axis of a tensor.
#[must_use]
pub fn top_work(dtype: DType, shape: &[usize], k: usize) -> Work {
    let size = layout::size(shape).unwrap_or(usize::MAX);
    let rows = size / shape.last().map_or(1, |&dim| dim.max(1));
    cost::work(size, top_cost(dtype))
        .saturating_add(cost::work(rows, SORTED_ROW_COST))
        .saturating_add(cost::work(rows.saturating_mul(k), cost(dtype)))
}

/// The cost of one element of a row whose largest elements are selected.
#[must_use]
pub fn top_cost(dtype: DType) -> Cost {
    SELECTED_ELEMENT_COST + sub_byte::cost(&[dtype])
}

/// The direction of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The smallest element comes first.
    Ascending,
    /// The largest element comes first.
    Descending,
}

/// An element that is sorted by an unsigned integer, its key.
trait Sortable: Element {
    type Key: RadixKey + Lane + Pod + std::ops::BitXor<Output = Self::Key> + Into<u64> + TryFrom<u64>;
    /// All bits of a key. Exclusive-or with it inverts the order; for floats it is the key of NaN.
    const ALL_BITS: Self::Key;
    /// The key of zero.
    const ZERO_KEY: Self::Key;
    /// Whether a key and a 32-bit index together take more than 64 bits.
    const ENTRY_EXCEEDS_64_BITS: bool = Self::Key::BYTES > 4;

    fn key(self) -> Self::Key;
    /// The bits of one element with this key.
    fn bits(key: Self::Key) -> Self::Key;
    /// Whether `bits` may not restore this element from its key: it is a negative zero or NaN.
    fn is_ambiguous(self) -> bool;
}

macro_rules! integers {
    ($($t:ty, $key:ty;)*) => {$(
        impl Sortable for $t {
            type Key = $key;
            const ALL_BITS: $key = <$key>::MAX;
            const ZERO_KEY: $key = <$t>::MIN as $key;

            #[inline(always)]
            fn key(self) -> $key { self as $key ^ <$t>::MIN as $key }
            #[inline(always)]
            fn bits(key: $key) -> $key { key ^ <$t>::MIN as $key }
            #[inline(always)]
            fn is_ambiguous(self) -> bool { false }
        }
    )*};
}

integers! { u8, u8; u16, u16; u32, u32; u64, u64; i8, u8; i16, u16; i32, u32; i64, u64; }

macro_rules! floats {
    ($($t:ty, $key:ty, $sign:literal, $largest:literal, $bits:expr;)*) => {$(
        impl Sortable for $t {
            type Key = $key;
            const ALL_BITS: $key = <$key>::MAX;
            const ZERO_KEY: $key = $sign;

            #[inline(always)]
            fn key(self) -> $key {
                let bits: $key = ($bits)(self);
                let ordered = if bits >= $sign { !bits } else { bits | $sign };
                let zero_or = if bits == $sign { $sign } else { ordered };
                if bits & !$sign > $largest { <$key>::MAX } else { zero_or }
            }
            #[inline(always)]
            fn bits(key: $key) -> $key {
                if key >= $sign { key & !$sign } else { !key }
            }
            #[inline(always)]
            fn is_ambiguous(self) -> bool {
                let bits: $key = ($bits)(self);
                bits == $sign || bits & !$sign > $largest
            }
        }
    )*};
}

// The sign bit, and the largest magnitude that is not NaN.
floats! {
    f32, u32, 0x8000_0000, 0x7f80_0000, f32::to_bits;
    f64, u64, 0x8000_0000_0000_0000, 0x7ff0_0000_0000_0000, f64::to_bits;
    F16, u16, 0x8000, 0x7c00, |x: F16| x.0;
    BF16, u16, 0x8000, 0x7f80, |x: BF16| x.0;
    F8, u8, 0x80, 0x7c, |x: F8| x.0;
    F8E4M3FN, u8, 0x80, 0x7e, |x: F8E4M3FN| x.0;
}

/// The kind of entries that are sorted: keys in 64 bits, or keys with the indices of their
/// elements.
trait EntryKind<T: Sortable>: 'static {
    type Entry: RadixKey + Pod;
    fn entry(key: T::Key, index: usize) -> Self::Entry;
}

/// Entries that are keys in 64 bits.
struct KeyEntries;
impl<T: Sortable> EntryKind<T> for KeyEntries {
    type Entry = u64;

    #[inline(always)]
    fn entry(key: T::Key, _index: usize) -> u64 {
        key.into()
    }
}

/// Entries that are a key and an index, joined in a `C`.
struct IndexedEntries<C>(std::marker::PhantomData<C>);
impl<T: Sortable, C: IndexedKey + Pod> EntryKind<T> for IndexedEntries<C> {
    type Entry = C;

    #[inline(always)]
    fn entry(key: T::Key, index: usize) -> C {
        C::join(key.into(), index)
    }
}

/// The rows to sort: the elements of a tensor along an axis, for every index of the other axes.
struct SortRows<'a> {
    op: &'static str,
    dtype: DType,
    bytes: &'a [u8],
    /// The layout of the tensor, with the axis moved to the end.
    layout: Layout,
    axis: usize,
    count: usize,
    length: usize,
    descending: bool,
}

impl<'a> SortRows<'a> {
    fn new(
        op: &'static str,
        input: &'a Tensor<'_>,
        axis: usize,
        direction: Direction,
    ) -> Result<Self, Error> {
        let (dtype, rank) = (input.dtype(), input.rank());
        if dtype.is_complex() {
            return Err(Error::UnsupportedType { op, dtypes: vec![dtype] });
        }
        if axis >= rank.max(1) {
            let problem = format!("axis {axis} is out of range for rank {rank}");
            return Err(Error::Argument { op, problem });
        }
        let layout = if rank == 0 {
            Layout { offset: input.layout().offset, ..Layout::contiguous(&[1]) }
        } else {
            input.layout().transpose(&axis_last(axis, rank))
        };
        let length = *layout.shape.last().unwrap_or(&1);
        let count = layout.shape.iter().rev().skip(1).product();
        let descending = direction == Direction::Descending;
        Ok(SortRows { op, dtype, bytes: input.bytes(), layout, axis, count, length, descending })
    }

    /// Whether the indices of a row fit into 32 bits.
    fn has_u32_indices(&self) -> bool {
        u32::try_from(self.length).is_ok()
    }

    fn row<T: Sortable>(&self, row: usize) -> SortRow<'_, T> {
        let Layout { shape, strides, offset } = &self.layout;
        let outer = shape.len() - 1;
        SortRow {
            elements: T::view(self.bytes),
            first: index_of(&shape[..outer], &strides[..outer], *offset, row),
            step: strides[outer],
            length: self.length,
            flip: if self.descending { T::ALL_BITS } else { T::Key::default() },
        }
    }

    /// The cost of a row.
    fn cost(&self) -> Cost {
        cost::work(self.length, cost(self.dtype))
    }

    /// Whether there are enough rows for each thread to sort whole rows; else the threads share
    /// each row.
    fn has_row_per_thread(&self) -> bool {
        self.count >= parallel::threads()
    }

    /// Calls `run(first element, part of the row)` for all parts of a row of `length` elements, on
    /// all threads if they share each row.
    fn for_each_part(&self, out: &mut [u8], length: usize, run: impl Fn(usize, &mut [u8]) + Sync) {
        let cost = shape::cost(self.dtype);
        if !self.has_row_per_thread() {
            return parallel::fill(out, length, cost, run);
        }
        for (i, part) in out.chunks_mut(ELEMENTS_PER_YIELD * (out.len() / length)).enumerate() {
            run(i * ELEMENTS_PER_YIELD, part);
            cooperative_yield::after(cost::work(ELEMENTS_PER_YIELD.min(length), cost));
        }
    }

    /// `for_each_part` of a row of entries.
    fn for_each_entry_part<C: Pod>(&self, entries: &mut [C], run: impl Fn(usize, &mut [C]) + Sync) {
        let length = entries.len();
        self.for_each_part(bytemuck::cast_slice_mut(entries), length, |start, part| {
            run(start, bytemuck::cast_slice_mut(part));
        });
    }

    /// Finds the ties among sorted entries, which are equal except for their indices, and sorts
    /// each by the whole keys of its elements.
    fn sort_ties<T: Sortable>(
        &self,
        row: &SortRow<'_, T>,
        entries: &mut [u64],
        buffer: &mut [u64],
        index_mask: u64,
    ) {
        let cost = shape::cost(self.dtype);
        let mut tiles = Vec::new();
        let mut rest = entries;
        while !rest.is_empty() {
            // No tile ends within a tie.
            let mut end = ELEMENTS_PER_YIELD.min(rest.len());
            let last_prefix = rest[end - 1] & !index_mask;
            let start = rest[..end].partition_point(|&entry| entry & !index_mask < last_prefix);
            end += rest[end..].partition_point(|&entry| entry & !index_mask == last_prefix);
            let (mut tile, later) = std::mem::take(&mut rest).split_at_mut(end);
            rest = later;
            if end - start > ELEMENTS_PER_YIELD {
                let (shorter, run) = tile.split_at_mut(start);
                self.sort_tie_run(row, run, buffer, index_mask);
                tile = shorter;
            }
            if self.has_row_per_thread() {
                row.sort_ties(tile, index_mask);
                cooperative_yield::after(cost::work(tile.len(), cost));
            } else {
                tiles.push(tile);
            }
        }
        let Ok(()) = parallel::try_each::<_, Infallible>(self.length, cost, tiles.into_iter(), |tile| {
            row.sort_ties(tile, index_mask);
            Ok(())
        });
    }

    /// Sorts a long tie, as `sort_prefixes` sorts a row: by the bits of the keys from the highest
    /// one in which any of these keys differ.
    fn sort_tie_run<T: Sortable>(
        &self,
        row: &SortRow<'_, T>,
        run: &mut [u64],
        buffer: &mut [u64],
        index_mask: u64,
    ) {
        let key = |entry| row.key((entry & index_mask) as usize).into();
        let range = KeyRange::default();
        self.for_each_entry_part(run, |_, part| range.include(bounds(part.iter().map(|&entry| key(entry)))));
        let (least, shift) = range.base_and_shift();
        self.for_each_entry_part(run, |_, part| {
            for entry in part {
                *entry = ((key(*entry) - least) << shift) & !index_mask | *entry & index_mask;
            }
        });
        self.sort_prefixed(row, run, buffer, (shift, index_mask));
    }

    /// Sorts entries that consist of a prefix of the key, whose bits have been shifted up by
    /// `shift`, and of an index.
    fn sort_prefixed<T: Sortable>(
        &self,
        row: &SortRow<'_, T>,
        entries: &mut [u64],
        buffer: &mut [u64],
        (shift, index_mask): (u32, u64),
    ) {
        self.sort_row(entries, buffer, &prefix_bytes(index_mask));
        if shift < index_mask.count_ones() {
            self.sort_ties(row, entries, buffer, index_mask);
        }
    }

    /// The length of the buffer that `sort_row` needs.
    fn buffer_length<K: RadixKey>(&self, bytes: &Range<usize>) -> usize {
        let threads = if self.has_row_per_thread() { 1 } else { parallel::threads() };
        radix::buffer_length::<K>(self.length, bytes, threads)
    }

    fn sort_row<K: RadixKey>(&self, entries: &mut [K], buffer: &mut [K], bytes: &Range<usize>) {
        if self.has_row_per_thread() || buffer.is_empty() {
            radix::sort(entries, buffer, bytes.clone());
        } else {
            radix::sort_with_threads(entries, buffer, bytes, cost(self.dtype));
        }
    }

    /// Calls `run(first row, part of the result, bytes of a row)` for parts of the result, which
    /// has `kept` elements per row, and moves the axis back to its position in the tensor.
    fn write(
        &self,
        out: Output<'_>,
        kept: usize,
        cost: Cost,
        run: impl Fn(usize, &mut [u8], usize) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let (dtype, shape) = (out.dtype, out.shape);
        let (width, count) = (dtype.width(), self.count);
        let row_bytes = kept * width;
        let all = |bytes: &mut [u8]| {
            if !self.has_row_per_thread() {
                run(0, bytes, row_bytes)
            } else {
                parallel::try_fill_shares(bytes, count, cost, |first, part| run(first, part, row_bytes))
            }
        };
        out.write(self.op, |bytes| {
            if bytes.is_empty() {
                return Ok(());
            }
            if shape.iter().skip(self.axis + 1).all(|&dim| dim == 1) {
                return all(bytes);
            }
            let mut sorted = scratch(self.op, dtype, shape, bytes.len())?;
            all(&mut sorted)?;
            let order = axis_last(self.axis, shape.len());
            let moved: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
            let mut back = vec![0; order.len()];
            order.iter().enumerate().for_each(|(i, &axis)| back[axis] = i);
            let layout = Layout::contiguous(&moved).transpose(&back);
            copy::gather_all(width, &sorted, &layout, bytes);
            Ok(())
        })
    }
}

/// The axes of a tensor, with one of them moved to the end.
fn axis_last(axis: usize, rank: usize) -> Shape {
    (0..rank).filter(|&a| a != axis).chain([axis]).collect()
}

/// The elements of one row.
struct SortRow<'a, T: Sortable> {
    elements: &'a [T::Bytes],
    first: isize,
    step: isize,
    length: usize,
    /// Exclusive-or of a key with these bits reverses the order if it is descending.
    flip: T::Key,
}

impl<T: Sortable> SortRow<'_, T> {
    fn element(&self, index: usize) -> T {
        T::load(self.elements[(self.first + index as isize * self.step) as usize])
    }

    /// The number of elements from `start` on that can be skipped, because no key among them is
    /// below `limit`. Zero if the elements are not next to each other; a multiple of
    /// `FILTER_BLOCK_ELEMENTS`, and at most `ELEMENTS_PER_YIELD`.
    fn count_not_below(&self, start: usize, limit: T::Key) -> usize {
        if self.step != 1 {
            return 0;
        }
        let elements =
            &self.elements[self.first as usize..][start..self.length.min(start + ELEMENTS_PER_YIELD)];
        vectorize(NotBelowLoop::<T> { elements, flip: self.flip, limit })
    }

    /// Fills in the entries of the elements from `start` on.
    fn load<E: EntryKind<T>>(&self, start: usize, entries: &mut [E::Entry]) {
        if self.step == 1 {
            let elements = &self.elements[self.first as usize + start..][..entries.len()];
            return vectorize(EntryLoop::<T, E> { elements, start, flip: self.flip, entries });
        }
        for (entry, index) in entries.iter_mut().zip(start..) {
            *entry = E::entry(self.key(index), index);
        }
    }

    /// The key of an element, in the direction of the order.
    fn key(&self, index: usize) -> T::Key {
        self.element(index).key() ^ self.flip
    }

    /// Sorts each tie, entries that are equal except for their indices, by the whole keys of the
    /// elements.
    fn sort_ties(&self, entries: &mut [u64], index_mask: u64) {
        // Short ties are sorted on the stack.
        let mut ties = SmallVec::<[(T::Key, u64); STACK_TIE_ENTRIES]>::new();
        for run in entries.chunk_by_mut(|a, b| (a ^ b) & !index_mask == 0).filter(|run| run.len() > 1) {
            ties.clear();
            if ties.try_reserve(run.len()).is_err() {
                run.sort_unstable_by_key(|&entry| (self.key((entry & index_mask) as usize), entry));
                continue;
            }
            ties.extend(run.iter().map(|&entry| (self.key((entry & index_mask) as usize), entry)));
            ties.sort_unstable();
            run.iter_mut().zip(&ties).for_each(|(entry, &(_, sorted))| *entry = sorted);
        }
    }

    /// Writes the keys of the elements from `start` on. Returns whether any element is ambiguous.
    fn keys(&self, start: usize, keys: &mut [u8]) -> bool {
        let keys = T::Key::view_mut(keys);
        if self.step == 1 {
            let elements = &self.elements[self.first as usize + start..][..keys.len()];
            return vectorize(KeyLoop::<T> { elements, flip: self.flip, keys });
        }
        let mut any_ambiguous = false;
        for (slot, index) in keys.iter_mut().zip(start..) {
            let element = self.element(index);
            any_ambiguous |= element.is_ambiguous();
            *slot = (element.key() ^ self.flip).store();
        }
        any_ambiguous
    }

    /// The keys that elements with different bits share, and where they begin among the sorted
    /// keys.
    fn ambiguous(&self, keys: &[u8]) -> [(T::Key, usize); 2] {
        let keys = T::Key::view(keys);
        [T::ZERO_KEY, T::ALL_BITS]
            .map(|key| (key, keys.partition_point(|&k| T::Key::load(k) < key ^ self.flip)))
    }

    /// Writes the elements with these keys over the sorted ones, in the order of the row.
    fn restore(&self, ambiguous: [(T::Key, usize); 2], sorted: &mut [u8]) {
        for (key, first) in ambiguous {
            let mut slots = T::view_mut(sorted)[first..].iter_mut();
            for start in (0..self.length).step_by(ELEMENTS_PER_YIELD) {
                let end = self.length.min(start + ELEMENTS_PER_YIELD);
                let tile = (start..end).map(|index| self.element(index));
                for element in tile.filter(|element| element.key() == key) {
                    let Some(slot) = slots.next() else { break };
                    *slot = element.store();
                }
                cooperative_yield::after(cost::work(end - start, FAR_ELEMENT_COST));
            }
        }
    }
}

/// The number of entries of a tie that are sorted on the stack.
const STACK_TIE_ENTRIES: usize = 32;

/// The number of elements that are compared with the limit at once.
const FILTER_BLOCK_ELEMENTS: usize = 64;

struct NotBelowLoop<'a, T: Sortable> {
    elements: &'a [T::Bytes],
    flip: T::Key,
    limit: T::Key,
}

impl<T: Sortable> Vectorized for NotBelowLoop<'_, T> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let blocks = self.elements.chunks_exact(FILTER_BLOCK_ELEMENTS).take_while(|block| {
            let below = |&element: &T::Bytes| T::load(element).key() ^ self.flip < self.limit;
            !block.iter().fold(false, |any, element| any | below(element))
        });
        blocks.count() * FILTER_BLOCK_ELEMENTS
    }
}

struct EntryLoop<'a, T: Sortable, E: EntryKind<T>> {
    elements: &'a [T::Bytes],
    /// The index of the first element in its row.
    start: usize,
    flip: T::Key,
    entries: &'a mut [E::Entry],
}

impl<T: Sortable, E: EntryKind<T>> Vectorized for EntryLoop<'_, T, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (i, (&element, entry)) in self.elements.iter().zip(self.entries).enumerate() {
            *entry = E::entry(T::load(element).key() ^ self.flip, self.start + i);
        }
    }
}

/// Computes the least and the greatest of some keys.
struct BoundsLoop<'a>(&'a [u64]);

impl Vectorized for BoundsLoop<'_> {
    type Output = (u64, u64);

    #[inline(always)]
    fn run(self) -> (u64, u64) {
        bounds(self.0.iter().copied())
    }
}

#[inline(always)]
fn bounds(keys: impl Iterator<Item = u64>) -> (u64, u64) {
    keys.fold((u64::MAX, 0), |(least, most), key| (least.min(key), most.max(key)))
}

/// The least and the greatest key of a row, updated by several threads.
struct KeyRange {
    least: AtomicU64,
    most: AtomicU64,
}

impl Default for KeyRange {
    fn default() -> Self {
        KeyRange { least: AtomicU64::new(u64::MAX), most: AtomicU64::new(0) }
    }
}

impl KeyRange {
    fn include(&self, (least, most): (u64, u64)) {
        self.least.fetch_min(least, Ordering::Relaxed);
        self.most.fetch_max(most, Ordering::Relaxed);
    }

    /// The number to subtract from each key, and the number of bits to shift the difference up by:
    /// then the largest difference has the highest bit set.
    fn base_and_shift(self) -> (u64, u32) {
        let (least, most) = (self.least.into_inner(), self.most.into_inner());
        (least, (most - least).leading_zeros().min(63))
    }
}

/// The bytes of an entry that its prefix is in.
fn prefix_bytes(index_mask: u64) -> Range<usize> {
    index_mask.count_ones() as usize / 8..8
}

struct KeyLoop<'a, T: Sortable> {
    elements: &'a [T::Bytes],
    flip: T::Key,
    keys: &'a mut [<T::Key as Lane>::Bytes],
}

impl<T: Sortable> Vectorized for KeyLoop<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let mut any_ambiguous = false;
        for (&element, slot) in self.elements.iter().zip(self.keys) {
            let element = T::load(element);
            any_ambiguous |= element.is_ambiguous();
            *slot = (element.key() ^ self.flip).store();
        }
        any_ambiguous
    }
}

/// Converts keys to elements, in place.
struct ElementLoop<'a, T: Sortable> {
    keys: &'a mut [<T::Key as Lane>::Bytes],
    flip: T::Key,
}

impl<T: Sortable> Vectorized for ElementLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for slot in self.keys {
            *slot = T::bits(T::Key::load(*slot) ^ self.flip).store();
        }
    }
}

/// `Nx.sort/2`: sorts the elements along an axis. NaN is above infinity, and equal elements keep
/// their order.
///
/// # Errors
///
/// `Error::UnsupportedType` for complex numbers or if `out` has another type than `input`,
/// `Error::Shape` if it has another shape, `Error::Argument` for an axis out of range,
/// `Error::TooLarge` if there is not enough memory for buffers.
pub fn sort(out: Output<'_>, input: &Tensor<'_>, axis: usize, direction: Direction) -> Result<(), Error> {
    const OP: &str = "sort";
    let rows = SortRows::new(OP, input, axis, direction)?;
    check_shape(OP, &out, input, input.shape())?;
    if out.dtype != input.dtype() {
        return Err(Error::UnsupportedType { op: OP, dtypes: vec![input.dtype(), out.dtype] });
    }
    if rows.length == 1 {
        return out.write(OP, |out| {
            out.copy_from_slice(&copy::dense(OP, input)?);
            Ok(())
        });
    }
    dispatch!(real input.dtype(), T => sort_values::<T>(out, &rows), else => unsupported(OP, input))
}

/// Sorts the keys in the memory of the result: keys are as wide as elements.
fn sort_values<T: Sortable>(out: Output<'_>, rows: &SortRows<'_>) -> Result<(), Error> {
    let (length, bytes) = (rows.length, 0..T::Key::BYTES);
    rows.write(out, length, rows.cost(), |first, part, row_bytes| {
        let memory = |length| scratch_of::<T::Key>(rows.op, rows.dtype, &[length], length);
        let mut buffer = memory(rows.buffer_length::<T::Key>(&bytes))?;
        for (i, out) in part.chunks_mut(row_bytes).enumerate() {
            let row = rows.row::<T>(first + i);
            let any_ambiguous = AtomicBool::new(false);
            rows.for_each_part(out, length, |start, part| {
                if row.keys(start, part) {
                    any_ambiguous.store(true, Ordering::Relaxed);
                }
            });
            if let Ok(keys) = bytemuck::try_cast_slice_mut(out) {
                rows.sort_row::<T::Key>(keys, &mut buffer, &bytes);
            } else {
                // The memory of the result is not aligned for keys.
                let mut keys = memory(length)?;
                bytemuck::cast_slice_mut(&mut keys).copy_from_slice(out);
                rows.sort_row::<T::Key>(&mut keys, &mut buffer, &bytes);
                out.copy_from_slice(bytemuck::cast_slice(&keys));
            }
            let ambiguous = any_ambiguous.into_inner().then(|| row.ambiguous(out));
            rows.for_each_part(out, length, |_, part| {
                vectorize(ElementLoop::<T> { keys: T::Key::view_mut(part), flip: row.flip })
            });
            if let Some(ambiguous) = ambiguous {
                row.restore(ambiguous, out);
            }
            cooperative_yield::after(rows.cost());
        }
        Ok(())
    })
}

/// `Nx.argsort/2`: the indices along an axis that sort the elements, as numbers of the result's
/// type.
///
/// # Errors
///
/// The errors of [`sort`], except that `out` may have any type.
pub fn argsort(out: Output<'_>, input: &Tensor<'_>, axis: usize, direction: Direction) -> Result<(), Error> {
    const OP: &str = "argsort";
    let rows = SortRows::new(OP, input, axis, direction)?;
    check_shape(OP, &out, input, input.shape())?;
    if rows.length == 1 {
        // Zero has no bits set in any type.
        out.bytes.fill(0);
        return Ok(());
    }
    dispatch!(real input.dtype(), T => first_indices::<T>(out, &rows, rows.length), else => unsupported(OP, input))
}

/// The indices of the first `kept` elements of each row in sorted order.
fn first_indices<T: Sortable>(out: Output<'_>, rows: &SortRows<'_>, kept: usize) -> Result<(), Error> {
    if !rows.has_u32_indices() {
        sort_indices::<T, u128>(out, rows, kept)
    } else if T::ENTRY_EXCEEDS_64_BITS {
        sort_prefixes::<T>(out, rows, kept)
    } else {
        sort_indices::<T, u64>(out, rows, kept)
    }
}

fn sort_indices<T: Sortable, C: IndexedKey + Pod>(
    out: Output<'_>,
    rows: &SortRows<'_>,
    kept: usize,
) -> Result<(), Error> {
    let (dtype, length) = (out.dtype, rows.length);
    // The bytes of the keys. The indices below them already ascend.
    let bytes = C::BYTES / 2..C::BYTES / 2 + T::Key::BYTES;
    rows.write(out, kept, rows.cost(), |first, part, row_bytes| {
        let memory = |length| scratch_of::<C>(rows.op, rows.dtype, &[length], length);
        let (mut entries, mut buffer) = (memory(length)?, memory(rows.buffer_length::<C>(&bytes))?);
        for (i, out) in part.chunks_mut(row_bytes).enumerate() {
            let row = rows.row::<T>(first + i);
            rows.for_each_entry_part(&mut entries, |start, part| row.load::<IndexedEntries<C>>(start, part));
            rows.sort_row(&mut entries, &mut buffer, &bytes);
            rows.for_each_part(out, kept, |start, part| {
                write_indices(&entries[start..], C::index, dtype, part)
            });
            cooperative_yield::after(rows.cost());
        }
        Ok(())
    })
}

/// `sort_indices` of 64-bit keys, in entries of 64 bits. An entry has as many bits of its key as
/// fit beside an index, from the highest bit in which any keys of the row differ. Ties are then
/// sorted by the whole keys.
fn sort_prefixes<T: Sortable>(out: Output<'_>, rows: &SortRows<'_>, kept: usize) -> Result<(), Error> {
    let (dtype, length) = (out.dtype, rows.length);
    let index_mask = (1 << (usize::BITS - length.saturating_sub(1).leading_zeros())) - 1;
    rows.write(out, kept, rows.cost(), |first, part, row_bytes| {
        let memory = |length| scratch_of::<u64>(rows.op, rows.dtype, &[length], length);
        let (mut entries, mut buffer) =
            (memory(length)?, memory(rows.buffer_length::<u64>(&prefix_bytes(index_mask)))?);
        for (i, out) in part.chunks_mut(row_bytes).enumerate() {
            let row = rows.row::<T>(first + i);
            let range = KeyRange::default();
            rows.for_each_entry_part(&mut entries, |start, part| {
                row.load::<KeyEntries>(start, part);
                range.include(vectorize(BoundsLoop(part)));
            });
            let (least, shift) = range.base_and_shift();
            rows.for_each_entry_part(&mut entries, |start, part| {
                for (entry, index) in part.iter_mut().zip(start..) {
                    *entry = ((*entry - least) << shift) & !index_mask | index as u64;
                }
            });
            rows.sort_prefixed(&row, &mut entries, &mut buffer, (shift, index_mask));
            cooperative_yield::after(rows.cost());
            rows.for_each_part(out, kept, |start, part| {
                write_indices(&entries[start..], |entry| entry & index_mask, dtype, part);
            });
        }
        Ok(())
    })
}

/// Writes the indices of the first entries as elements of a type.
fn write_indices<C: Copy>(entries: &[C], index: impl Fn(C) -> u64, dtype: DType, out: &mut [u8]) {
    const INDEX_TILE: usize = 512;
    let width = dtype.width();
    let entries = &entries[..out.len() / width];
    let mut indices = [0; INDEX_TILE * 8];
    for (entries, out) in entries.chunks(INDEX_TILE).zip(out.chunks_mut(INDEX_TILE * width)) {
        let indices = &mut indices[..entries.len() * 8];
        for (slot, &entry) in u64::view_mut(indices).iter_mut().zip(entries) {
            *slot = index(entry).store();
        }
        match conversion(DType::U64, dtype) {
            Some(convert) => convert(indices, out),
            None => out.copy_from_slice(indices),
        }
    }
}

/// The indices of the `k` largest elements along the last axis, the largest first: the start of a
/// descending [`argsort`]. `Nx.top_k/2` returns the elements as well.
///
/// # Errors
///
/// The errors of [`argsort`], and `Error::Argument` for a scalar or if the axis has fewer than `k`
/// elements.
pub fn top_k(out: Output<'_>, input: &Tensor<'_>, k: usize) -> Result<(), Error> {
    const OP: &str = "top_k";
    let Some(axis) = input.rank().checked_sub(1) else {
        return Err(Error::Argument { op: OP, problem: "a scalar has no axis to take elements of".into() });
    };
    let rows = SortRows::new(OP, input, axis, Direction::Descending)?;
    if k > rows.length {
        let problem = format!("k is {k}, but the last axis has a size of {}", rows.length);
        return Err(Error::Argument { op: OP, problem });
    }
    let mut shape = input.shape().to_vec();
    if let Some(dim) = shape.last_mut() {
        *dim = k;
    }
    check_shape(OP, &out, input, &shape)?;
    dispatch!(real input.dtype(), T => {
        if k > rows.length / TOP_K_SORT_RATIO {
            // Most of the row has to be sorted anyway.
            first_indices::<T>(out, &rows, k)
        } else if T::ENTRY_EXCEEDS_64_BITS || !rows.has_u32_indices() {
            top_indices::<T, u128>(out, &rows, k)
        } else {
            top_indices::<T, u64>(out, &rows, k)
        }
    }, else => unsupported(OP, input))
}

/// The indices of the first `k` elements of each row in sorted order, for a small `k`: a buffer of
/// candidates is reduced to the best `k` by quickselect whenever it is full, and from then on only
/// elements that come before the `k`-th of these are candidates.
fn top_indices<T: Sortable, C: IndexedKey + Pod>(
    out: Output<'_>,
    rows: &SortRows<'_>,
    k: usize,
) -> Result<(), Error> {
    let dtype = out.dtype;
    // The number of candidates that the buffer holds.
    let capacity = (2 * k).max(MIN_TOP_CANDIDATES).min(rows.length);
    let cost = cost::work(rows.length, top_cost(rows.dtype));
    rows.write(out, k, cost, |first, part, row_bytes| {
        let mut best = scratch_of::<C>(rows.op, rows.dtype, &[capacity], capacity)?;
        for (i, out) in part.chunks_mut(row_bytes).enumerate() {
            let row = rows.row::<T>(first + i);
            let (mut filled, mut limit, mut start) = (0, None, 0);
            while start < rows.length {
                let first = start;
                // The first of equal keys wins, so that a later key must be below the limit's.
                if let Some(limit) = limit.map(C::key).and_then(|key| T::Key::try_from(key).ok()) {
                    start += row.count_not_below(start, limit);
                }
                let end = (start + FILTER_BLOCK_ELEMENTS).min(rows.length);
                for index in start..end {
                    let entry = <IndexedEntries<C> as EntryKind<T>>::entry(row.key(index), index);
                    if limit.is_none_or(|limit| entry < limit) {
                        best[filled] = entry;
                        filled += 1;
                        if filled == capacity {
                            limit = Some(*best.select_nth_unstable(k - 1).1);
                            filled = k;
                        }
                    }
                }
                cooperative_yield::after(cost::work(end - first, top_cost(rows.dtype)));
                start = end;
            }
            best[..filled].sort_unstable();
            write_indices(&best[..k], C::index, dtype, out);
        }
        Ok(())
    })
}

fn unsupported(op: &'static str, input: &Tensor<'_>) -> Result<(), Error> {
    Err(Error::UnsupportedType { op, dtypes: vec![input.dtype()] })
}

fn check_shape(op: &'static str, out: &Output<'_>, input: &Tensor<'_>, shape: &[usize]) -> Result<(), Error> {
    if out.shape == shape {
        return Ok(());
    }
    let shapes = vec![input.shape().to_vec(), out.shape.to_vec()];
    Err(Error::Shape { op, shapes, problem: "differ".into() })
}
