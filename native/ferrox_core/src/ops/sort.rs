//! Sorting along an axis: `Nx.sort/2`, `Nx.argsort/2` and `Nx.top_k/2`.
//!
//! Elements become unsigned integers in the same order, so that no comparison
//! looks at a type: NaN above infinity, and all zeros and all NaN alike. For a
//! descending order the keys are inverted, and equal elements keep their order
//! in both. Where a result tells equal elements apart (zeros of either sign, the
//! bits of NaN), they are put back in the order in which they came.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytemuck::Pod;
use smallvec::SmallVec;

use crate::cost::{self, Cost};
use crate::dtype::minifloat::{BF16, F8, F8E4M3FN, F16};
use crate::dtype::{Element, Lane, sub_byte};
use crate::exec::convert::conversion;
use crate::exec::copy;
use crate::exec::copy::FAR_ELEMENT_COST;
use crate::exec::memory::{scratch, scratch_of};
use crate::exec::simd::{Level, Vectorized, dispatch as vectorize, level};
use crate::exec::sort::radix;
use crate::exec::sort::radix::{Digits, Indexed, STRETCH};
use crate::exec::threads::{cooperative_yield, parallel};
use crate::layout::{Layout, Shape, index_of};
use crate::ops::shape;
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, dispatch};

/// What sorting an element costs, in a long row; in a short one less.
#[must_use]
pub fn cost(dtype: DType) -> Cost {
    // Where vectors sort the keys.
    if u64::vectors(0, 1).is_some() && matches!(dtype.width(), 4 | 8) {
        let byte = if level() == Level::V4 { 650 } else { 1_700 };
        return byte * dtype.width() as Cost;
    }
    2_000 + 2_500 * dtype.width() as Cost + sub_byte::cost(&[dtype])
}

/// What an element costs of which the largest are looked for.
#[must_use]
pub fn top_cost(dtype: DType) -> Cost {
    2_000 + sub_byte::cost(&[dtype])
}

/// Which elements come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The smallest.
    Ascending,
    /// The largest.
    Descending,
}

/// An element in the order of an unsigned integer.
trait Sortable: Element {
    type Key: Digits + Lane + Pod + std::ops::BitXor<Output = Self::Key> + Into<u64> + TryFrom<u64>;
    /// What inverts the order.
    const ALL: Self::Key;
    /// What zero becomes.
    const ZERO: Self::Key;
    /// Whether a key and a 32-bit index take more than 64 bits.
    const WIDE: bool = Self::Key::BYTES > 4;

    fn key(self) -> Self::Key;
    /// The bits of an element of that key.
    fn bits(key: Self::Key) -> Self::Key;
    /// Whether another element has the same key, and this one hasn't those bits.
    fn is_odd(self) -> bool;
}

macro_rules! integers {
    ($($t:ty, $key:ty;)*) => {$(
        impl Sortable for $t {
            type Key = $key;
            const ALL: $key = <$key>::MAX;
            const ZERO: $key = <$t>::MIN as $key;

            #[inline(always)]
            fn key(self) -> $key { self as $key ^ <$t>::MIN as $key }
            #[inline(always)]
            fn bits(key: $key) -> $key { key ^ <$t>::MIN as $key }
            #[inline(always)]
            fn is_odd(self) -> bool { false }
        }
    )*};
}

integers! { u8, u8; u16, u16; u32, u32; u64, u64; i8, u8; i16, u16; i32, u32; i64, u64; }

macro_rules! floats {
    ($($t:ty, $key:ty, $sign:literal, $largest:literal, $bits:expr;)*) => {$(
        impl Sortable for $t {
            type Key = $key;
            const ALL: $key = <$key>::MAX;
            const ZERO: $key = $sign;

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
            fn is_odd(self) -> bool {
                let bits: $key = ($bits)(self);
                bits == $sign || bits & !$sign > $largest
            }
        }
    )*};
}

// The sign, and the largest magnitude that is no NaN.
floats! {
    f32, u32, 0x8000_0000, 0x7f80_0000, f32::to_bits;
    f64, u64, 0x8000_0000_0000_0000, 0x7ff0_0000_0000_0000, f64::to_bits;
    F16, u16, 0x8000, 0x7c00, |x: F16| x.0;
    BF16, u16, 0x8000, 0x7f80, |x: BF16| x.0;
    F8, u8, 0x80, 0x7c, |x: F8| x.0;
    F8E4M3FN, u8, 0x80, 0x7e, |x: F8E4M3FN| x.0;
}

/// What is sorted for places: keys in 64 bits, or keys with the places of their elements.
trait Entries<T: Sortable>: 'static {
    type Entry: Digits + Pod;
    fn entry(key: T::Key, index: usize) -> Self::Entry;
}

/// The keys, in 64 bits.
struct Widened;
impl<T: Sortable> Entries<T> for Widened {
    type Entry = u64;

    #[inline(always)]
    fn entry(key: T::Key, _index: usize) -> u64 {
        key.into()
    }
}

struct Places<C>(std::marker::PhantomData<C>);
impl<T: Sortable, C: Indexed + Pod> Entries<T> for Places<C> {
    type Entry = C;

    #[inline(always)]
    fn entry(key: T::Key, index: usize) -> C {
        C::join(key.into(), index)
    }
}

/// The rows to sort: elements of a tensor along an axis, for every index of the
/// other axes.
struct Rows<'a> {
    op: &'static str,
    dtype: DType,
    bytes: &'a [u8],
    /// Of the tensor, the axis last.
    layout: Layout,
    axis: usize,
    count: usize,
    length: usize,
    descending: bool,
}

impl<'a> Rows<'a> {
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
            input.layout().transpose(&last(axis, rank))
        };
        let length = *layout.shape.last().unwrap_or(&1);
        let count = layout.shape.iter().rev().skip(1).product();
        let descending = direction == Direction::Descending;
        Ok(Rows { op, dtype, bytes: input.bytes(), layout, axis, count, length, descending })
    }

    /// Whether indices fit into 32 bits.
    fn is_short(&self) -> bool {
        u32::try_from(self.length).is_ok()
    }

    fn row<T: Sortable>(&self, row: usize) -> Row<'_, T> {
        let Layout { shape, strides, offset } = &self.layout;
        let outer = shape.len() - 1;
        Row {
            elements: T::view(self.bytes),
            first: index_of(&shape[..outer], &strides[..outer], *offset, row),
            step: strides[outer],
            length: self.length,
            flip: if self.descending { T::ALL } else { T::Key::default() },
        }
    }

    /// What a row costs.
    fn cost(&self) -> Cost {
        cost::work(self.length, cost(self.dtype))
    }

    /// Whether threads have rows of their own.
    fn are_many(&self) -> bool {
        self.count >= parallel::threads()
    }

    /// Calls `run(first element, part of a row)` for all of a row of so many, on all threads if they
    /// have none of their own.
    fn pass(&self, out: &mut [u8], length: usize, run: impl Fn(usize, &mut [u8]) + Sync) {
        let cost = shape::cost(self.dtype);
        if !self.are_many() {
            return parallel::fill(out, length, cost, run);
        }
        for (i, part) in out.chunks_mut(STRETCH * (out.len() / length)).enumerate() {
            run(i * STRETCH, part);
            cooperative_yield::after(cost::work(STRETCH.min(length), cost));
        }
    }

    /// `pass` over entries.
    fn pass_entries<C: Pod>(&self, entries: &mut [C], run: impl Fn(usize, &mut [C]) + Sync) {
        let length = entries.len();
        self.pass(bytemuck::cast_slice_mut(entries), length, |start, part| {
            run(start, bytemuck::cast_slice_mut(part));
        });
    }

    /// Sorts what is alike, but for the places, among sorted entries: by the elements there.
    fn sort_alike<T: Sortable>(&self, row: &Row<'_, T>, entries: &mut [u64], spare: &mut [u64], places: u64) {
        let cost = shape::cost(self.dtype);
        let mut stretches = Vec::new();
        let mut rest = entries;
        while !rest.is_empty() {
            // None ends among those that are alike.
            let mut end = STRETCH.min(rest.len());
            let last = rest[end - 1] & !places;
            let start = rest[..end].partition_point(|&entry| entry & !places < last);
            end += rest[end..].partition_point(|&entry| entry & !places == last);
            let (mut stretch, later) = std::mem::take(&mut rest).split_at_mut(end);
            rest = later;
            if end - start > STRETCH {
                let (shorter, run) = stretch.split_at_mut(start);
                self.sort_run(row, run, spare, places);
                stretch = shorter;
            }
            if self.are_many() {
                row.sort_alike(stretch, places);
                cooperative_yield::after(cost::work(stretch.len(), cost));
            } else {
                stretches.push(stretch);
            }
        }
        let Ok(()) =
            parallel::try_each::<_, Infallible>(self.length, cost, stretches.into_iter(), |stretch| {
                row.sort_alike(stretch, places);
                Ok(())
            });
    }

    /// Sorts many entries that are alike, as `sort_prefixes` does all: from the highest bit in
    /// which any of these differ.
    fn sort_run<T: Sortable>(&self, row: &Row<'_, T>, run: &mut [u64], spare: &mut [u64], places: u64) {
        let key = |entry| row.key((entry & places) as usize).into();
        let span = Span::default();
        self.pass_entries(run, |_, part| span.include(bounds(part.iter().map(|&entry| key(entry)))));
        let (least, up) = span.prefix();
        self.pass_entries(run, |_, part| {
            for entry in part {
                *entry = ((key(*entry) - least) << up) & !places | *entry & places;
            }
        });
        self.sort_prefixed(row, run, spare, (up, places));
    }

    /// Sorts entries that are prefixes of keys, moved up by so many bits, and places.
    fn sort_prefixed<T: Sortable>(
        &self,
        row: &Row<'_, T>,
        entries: &mut [u64],
        spare: &mut [u64],
        (up, places): (u32, u64),
    ) {
        self.sort_row(entries, spare, &prefix_bytes(places));
        if up < places.count_ones() {
            self.sort_alike(row, entries, spare, places);
        }
    }

    /// What `sort_row` needs to spare.
    fn spare<K: Digits>(&self, bytes: &Range<usize>) -> usize {
        let threads = if self.are_many() { 1 } else { parallel::threads() };
        radix::spare::<K>(self.length, bytes, threads)
    }

    fn sort_row<K: Digits>(&self, entries: &mut [K], spare: &mut [K], bytes: &Range<usize>) {
        if self.are_many() || spare.is_empty() {
            radix::sort(entries, spare, bytes.clone());
        } else {
            radix::sort_long(entries, spare, bytes, cost(self.dtype));
        }
    }

    /// Calls `run(first row, part of the result, bytes of a row)` for parts of the
    /// result, `kept` elements a row, and moves the axis back to its place.
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
            if !self.are_many() {
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
            let order = last(self.axis, shape.len());
            let moved: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
            let mut back = vec![0; order.len()];
            order.iter().enumerate().for_each(|(i, &axis)| back[axis] = i);
            let layout = Layout::contiguous(&moved).transpose(&back);
            copy::gather_all(width, &sorted, &layout, bytes);
            Ok(())
        })
    }
}

/// The axes of a tensor, one of them moved to the end.
fn last(axis: usize, rank: usize) -> Shape {
    (0..rank).filter(|&a| a != axis).chain([axis]).collect()
}

/// One row: where its elements are.
struct Row<'a, T: Sortable> {
    elements: &'a [T::Bytes],
    first: isize,
    step: isize,
    length: usize,
    /// What turns the keys around for a descending order.
    flip: T::Key,
}

impl<T: Sortable> Row<'_, T> {
    fn element(&self, place: usize) -> T {
        T::load(self.elements[(self.first + place as isize * self.step) as usize])
    }

    /// How many elements, from a place on, no key is below a limit among, if they
    /// are next to each other; a multiple of `BLOCK`, and no more than `STRETCH`.
    fn above(&self, start: usize, limit: T::Key) -> usize {
        if self.step != 1 {
            return 0;
        }
        let elements = &self.elements[self.first as usize..][start..self.length.min(start + STRETCH)];
        vectorize(Above::<T> { elements, flip: self.flip, limit })
    }

    /// Fills in the entries from one on.
    fn load<E: Entries<T>>(&self, start: usize, entries: &mut [E::Entry]) {
        if self.step == 1 {
            let elements = &self.elements[self.first as usize + start..][..entries.len()];
            return vectorize(Load::<T, E> { elements, start, flip: self.flip, entries });
        }
        for (entry, place) in entries.iter_mut().zip(start..) {
            *entry = E::entry(self.key(place), place);
        }
    }

    /// What the element at a place is sorted by.
    fn key(&self, place: usize) -> T::Key {
        self.element(place).key() ^ self.flip
    }

    /// Sorts entries that are alike but for their places by the elements there.
    fn sort_alike(&self, entries: &mut [u64], places: u64) {
        // Of a short row, they are on the stack.
        let mut alike = SmallVec::<[(T::Key, u64); FEW]>::new();
        for run in entries.chunk_by_mut(|a, b| (a ^ b) & !places == 0).filter(|run| run.len() > 1) {
            alike.clear();
            alike.extend(run.iter().map(|&entry| (self.key((entry & places) as usize), entry)));
            alike.sort_unstable();
            run.iter_mut().zip(&alike).for_each(|(entry, &(_, sorted))| *entry = sorted);
        }
    }

    /// Writes the keys of elements from one on; whether any of these is odd.
    fn keys(&self, start: usize, keys: &mut [u8]) -> bool {
        let keys = T::Key::view_mut(keys);
        if self.step == 1 {
            let elements = &self.elements[self.first as usize + start..][..keys.len()];
            return vectorize(Keys::<T> { elements, flip: self.flip, keys });
        }
        let mut odd = false;
        for (slot, place) in keys.iter_mut().zip(start..) {
            let element = self.element(place);
            odd |= element.is_odd();
            *slot = (element.key() ^ self.flip).store();
        }
        odd
    }

    /// The keys of elements that may be equal but not the same, and where they begin among
    /// sorted ones.
    fn doubtful(&self, keys: &[u8]) -> [(T::Key, usize); 2] {
        let keys = T::Key::view(keys);
        [T::ZERO, T::ALL].map(|key| (key, keys.partition_point(|&k| T::Key::load(k) < key ^ self.flip)))
    }

    /// Puts these into the sorted elements, in the order in which they are in the row.
    fn restore(&self, doubtful: [(T::Key, usize); 2], sorted: &mut [u8]) {
        for (key, first) in doubtful {
            let mut slots = T::view_mut(sorted)[first..].iter_mut();
            for start in (0..self.length).step_by(STRETCH) {
                let end = self.length.min(start + STRETCH);
                let stretch = (start..end).map(|place| self.element(place));
                for element in stretch.filter(|element| element.key() == key) {
                    let Some(slot) = slots.next() else { break };
                    *slot = element.store();
                }
                cooperative_yield::after(cost::work(end - start, FAR_ELEMENT_COST));
            }
        }
    }
}

/// Entries that are sorted on the stack.
const FEW: usize = 32;

/// Elements that are compared at once.
const BLOCK: usize = 64;

struct Above<'a, T: Sortable> {
    elements: &'a [T::Bytes],
    flip: T::Key,
    limit: T::Key,
}

impl<T: Sortable> Vectorized for Above<'_, T> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let blocks = self.elements.chunks_exact(BLOCK).take_while(|block| {
            let below = |&element: &T::Bytes| T::load(element).key() ^ self.flip < self.limit;
            !block.iter().fold(false, |any, element| any | below(element))
        });
        blocks.count() * BLOCK
    }
}

struct Load<'a, T: Sortable, E: Entries<T>> {
    elements: &'a [T::Bytes],
    /// The place of the first.
    start: usize,
    flip: T::Key,
    entries: &'a mut [E::Entry],
}

impl<T: Sortable, E: Entries<T>> Vectorized for Load<'_, T, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (i, (&element, entry)) in self.elements.iter().zip(self.entries).enumerate() {
            *entry = E::entry(T::load(element).key() ^ self.flip, self.start + i);
        }
    }
}

/// The least and the greatest of some keys.
struct Bounds<'a>(&'a [u64]);

impl Vectorized for Bounds<'_> {
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

/// From the least to the greatest key of a row, as its parts are looked at.
struct Span {
    least: AtomicU64,
    most: AtomicU64,
}

impl Default for Span {
    fn default() -> Self {
        Span { least: AtomicU64::new(u64::MAX), most: AtomicU64::new(0) }
    }
}

impl Span {
    fn include(&self, (least, most): (u64, u64)) {
        self.least.fetch_min(least, Ordering::Relaxed);
        self.most.fetch_max(most, Ordering::Relaxed);
    }

    /// What is left out of keys, and by how many bits the rest moves up: then the highest bit in
    /// which any differ is the highest of all.
    fn prefix(self) -> (u64, u32) {
        let (least, most) = (self.least.into_inner(), self.most.into_inner());
        (least, (most - least).leading_zeros().min(63))
    }
}

/// The bytes of an entry that a prefix is in.
fn prefix_bytes(places: u64) -> Range<usize> {
    places.count_ones() as usize / 8..8
}

struct Keys<'a, T: Sortable> {
    elements: &'a [T::Bytes],
    flip: T::Key,
    keys: &'a mut [<T::Key as Lane>::Bytes],
}

impl<T: Sortable> Vectorized for Keys<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let mut odd = false;
        for (&element, slot) in self.elements.iter().zip(self.keys) {
            let element = T::load(element);
            odd |= element.is_odd();
            *slot = (element.key() ^ self.flip).store();
        }
        odd
    }
}

/// Makes elements of keys, in their place.
struct Elements<'a, T: Sortable> {
    keys: &'a mut [<T::Key as Lane>::Bytes],
    flip: T::Key,
}

impl<T: Sortable> Vectorized for Elements<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for slot in self.keys {
            *slot = T::bits(T::Key::load(*slot) ^ self.flip).store();
        }
    }
}

/// `Nx.sort/2`: the elements along an axis in order, NaN above infinity. Equal
/// elements keep their order.
///
/// # Errors
///
/// `Error::UnsupportedType` for complex numbers or if `out` has another type,
/// `Error::Shape` if it has another shape, `Error::Argument` for an axis out of
/// range, `Error::TooLarge` if there is no memory to sort in.
pub fn sort(out: Output<'_>, input: &Tensor<'_>, axis: usize, direction: Direction) -> Result<(), Error> {
    const OP: &str = "sort";
    let rows = Rows::new(OP, input, axis, direction)?;
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

/// The keys are sorted where the elements will be: they are as wide.
fn sort_values<T: Sortable>(out: Output<'_>, rows: &Rows<'_>) -> Result<(), Error> {
    let (length, bytes) = (rows.length, 0..T::Key::BYTES);
    rows.write(out, length, rows.cost(), |first, part, row_bytes| {
        let memory = |length| scratch_of::<T::Key>(rows.op, rows.dtype, &[length], length);
        let mut spare = memory(rows.spare::<T::Key>(&bytes))?;
        for (i, out) in part.chunks_mut(row_bytes).enumerate() {
            let row = rows.row::<T>(first + i);
            let odd = AtomicBool::new(false);
            rows.pass(out, length, |start, part| {
                if row.keys(start, part) {
                    odd.store(true, Ordering::Relaxed);
                }
            });
            if let Ok(keys) = bytemuck::try_cast_slice_mut(out) {
                rows.sort_row::<T::Key>(keys, &mut spare, &bytes);
            } else {
                // Not where such keys may be.
                let mut keys = memory(length)?;
                bytemuck::cast_slice_mut(&mut keys).copy_from_slice(out);
                rows.sort_row::<T::Key>(&mut keys, &mut spare, &bytes);
                out.copy_from_slice(bytemuck::cast_slice(&keys));
            }
            let doubtful = odd.into_inner().then(|| row.doubtful(out));
            rows.pass(out, length, |_, part| {
                vectorize(Elements::<T> { keys: T::Key::view_mut(part), flip: row.flip })
            });
            if let Some(doubtful) = doubtful {
                row.restore(doubtful, out);
            }
            cooperative_yield::after(rows.cost());
        }
        Ok(())
    })
}

/// `Nx.argsort/2`: the places along an axis that sorted elements come from, as
/// numbers of the result's type.
///
/// # Errors
///
/// Those of `sort`, but for the type of `out`.
pub fn argsort(out: Output<'_>, input: &Tensor<'_>, axis: usize, direction: Direction) -> Result<(), Error> {
    const OP: &str = "argsort";
    let rows = Rows::new(OP, input, axis, direction)?;
    check_shape(OP, &out, input, input.shape())?;
    if rows.length == 1 {
        // Zero has no bits in any type.
        out.bytes.fill(0);
        return Ok(());
    }
    dispatch!(real input.dtype(), T => first_places::<T>(out, &rows, rows.length), else => unsupported(OP, input))
}

/// The places that the first of the sorted elements come from, `kept` of each row.
fn first_places<T: Sortable>(out: Output<'_>, rows: &Rows<'_>, kept: usize) -> Result<(), Error> {
    if !rows.is_short() {
        sort_places::<T, u128>(out, rows, kept)
    } else if T::WIDE {
        sort_prefixes::<T>(out, rows, kept)
    } else {
        sort_places::<T, u64>(out, rows, kept)
    }
}

fn sort_places<T: Sortable, C: Indexed + Pod>(
    out: Output<'_>,
    rows: &Rows<'_>,
    kept: usize,
) -> Result<(), Error> {
    let (dtype, length) = (out.dtype, rows.length);
    // The keys, above the places, which ascend as they are.
    let bytes = C::BYTES / 2..C::BYTES / 2 + T::Key::BYTES;
    rows.write(out, kept, rows.cost(), |first, part, row_bytes| {
        let memory = |length| scratch_of::<C>(rows.op, rows.dtype, &[length], length);
        let (mut entries, mut spare) = (memory(length)?, memory(rows.spare::<C>(&bytes))?);
        for (i, out) in part.chunks_mut(row_bytes).enumerate() {
            let row = rows.row::<T>(first + i);
            rows.pass_entries(&mut entries, |start, part| row.load::<Places<C>>(start, part));
            rows.sort_row(&mut entries, &mut spare, &bytes);
            rows.pass(out, kept, |start, part| write_places(&entries[start..], C::index, dtype, part));
            cooperative_yield::after(rows.cost());
        }
        Ok(())
    })
}

/// `sort_places` of 64-bit keys: of as much of a key as fits beside an index, from
/// the highest bit in which any differ; then of those alike in that by the rest.
fn sort_prefixes<T: Sortable>(out: Output<'_>, rows: &Rows<'_>, kept: usize) -> Result<(), Error> {
    let (dtype, length) = (out.dtype, rows.length);
    let places = (1 << (usize::BITS - length.saturating_sub(1).leading_zeros())) - 1;
    rows.write(out, kept, rows.cost(), |first, part, row_bytes| {
        let memory = |length| scratch_of::<u64>(rows.op, rows.dtype, &[length], length);
        let (mut entries, mut spare) = (memory(length)?, memory(rows.spare::<u64>(&prefix_bytes(places)))?);
        for (i, out) in part.chunks_mut(row_bytes).enumerate() {
            let row = rows.row::<T>(first + i);
            let span = Span::default();
            rows.pass_entries(&mut entries, |start, part| {
                row.load::<Widened>(start, part);
                span.include(vectorize(Bounds(part)));
            });
            let (least, up) = span.prefix();
            rows.pass_entries(&mut entries, |start, part| {
                for (entry, place) in part.iter_mut().zip(start..) {
                    *entry = ((*entry - least) << up) & !places | place as u64;
                }
            });
            rows.sort_prefixed(&row, &mut entries, &mut spare, (up, places));
            cooperative_yield::after(rows.cost());
            rows.pass(out, kept, |start, part| {
                write_places(&entries[start..], |entry| entry & places, dtype, part);
            });
        }
        Ok(())
    })
}

/// Writes the places of the first entries as elements of a type.
fn write_places<C: Copy>(entries: &[C], place: impl Fn(C) -> u64, dtype: DType, out: &mut [u8]) {
    const TILE: usize = 512;
    let width = dtype.width();
    let entries = &entries[..out.len() / width];
    let mut places = [0; TILE * 8];
    for (entries, out) in entries.chunks(TILE).zip(out.chunks_mut(TILE * width)) {
        let places = &mut places[..entries.len() * 8];
        for (slot, &entry) in u64::view_mut(places).iter_mut().zip(entries) {
            *slot = place(entry).store();
        }
        match conversion(DType::U64, dtype) {
            Some(convert) => convert(places, out),
            None => out.copy_from_slice(places),
        }
    }
}

/// The places of the `k` largest elements along the last axis, the largest first:
/// the start of a descending `argsort`. `Nx.top_k/2` gives them and their elements.
///
/// # Errors
///
/// Those of `argsort`, and `Error::Argument` for a scalar or if there are fewer than `k`.
pub fn top_k(out: Output<'_>, input: &Tensor<'_>, k: usize) -> Result<(), Error> {
    const OP: &str = "top_k";
    let Some(axis) = input.rank().checked_sub(1) else {
        return Err(Error::Argument { op: OP, problem: "a scalar has no axis to take elements of".into() });
    };
    let rows = Rows::new(OP, input, axis, Direction::Descending)?;
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
        if k > rows.length / 4 {
            // Most of the row has to be sorted anyway.
            first_places::<T>(out, &rows, k)
        } else if T::WIDE || !rows.is_short() {
            top_places::<T, u128>(out, &rows, k)
        } else {
            top_places::<T, u64>(out, &rows, k)
        }
    }, else => unsupported(OP, input))
}

/// The places of the first of the sorted elements, a few of each row.
fn top_places<T: Sortable, C: Indexed + Pod>(
    out: Output<'_>,
    rows: &Rows<'_>,
    k: usize,
) -> Result<(), Error> {
    let dtype = out.dtype;
    // Entries that may be among the first, and the last one that still is.
    let capacity = (2 * k).max(256).min(rows.length);
    let cost = cost::work(rows.length, top_cost(rows.dtype));
    rows.write(out, k, cost, |first, part, row_bytes| {
        let mut best = scratch_of::<C>(rows.op, rows.dtype, &[capacity], capacity)?;
        for (i, out) in part.chunks_mut(row_bytes).enumerate() {
            let row = rows.row::<T>(first + i);
            let (mut filled, mut limit, mut start) = (0, None, 0);
            while start < rows.length {
                let first = start;
                // Of equal keys the first counts, so that the limit's own is none.
                if let Some(limit) = limit.map(C::key).and_then(|key| T::Key::try_from(key).ok()) {
                    start += row.above(start, limit);
                }
                let end = (start + BLOCK).min(rows.length);
                for index in start..end {
                    let entry = <Places<C> as Entries<T>>::entry(row.key(index), index);
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
            write_places(&best[..k], C::index, dtype, out);
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
