//! Operations that write at indices. `indexed_add` of floats adds up the updates of each element
//! before it rounds, in totals for all elements of the target or after sorting the updates by their
//! elements.

use std::hint::select_unpredictable;
use std::marker::PhantomData;

use num_complex::Complex;

use super::parts::{PARTITION_ELEMENTS, PartitionedUpdates};
use super::{
    Indices, OFFSET_TILE_ROWS, Window, depth_of, for_each_update, other_axes, shape_error, values_at,
};
use crate::cost::{
    self, DISCARDED_TOTALS, MAX_CACHED_TOTALS, MAX_TOTALS_OF_ONE_THREAD, MAX_TOTALS_PER_UPDATE,
    MAX_UNPARTITIONED_TOTALS, MIN_ROW_ELEMENTS_TO_SHARE, MIN_ROW_TOTALS_TO_SHARE, SCATTER_COST,
    SORTED_UPDATE_COST, SUMS_PER_UPDATE_TIME, TILE_ELEMENTS, Work,
};
use crate::dtype::{Element, Lane};
use crate::exec::convert::{conversion, convert_all};
use crate::exec::copy;
use crate::exec::gemm::small::SmallFloat;
use crate::exec::memory::{filled, scratch, scratch_of};
use crate::exec::reduce::fold::{fold_columns, needs_prefetch};
use crate::exec::simd::{self, Vectorized};
use crate::exec::sort::radix;
use crate::exec::sort::radix::IndexedKey;
use crate::exec::threads::parallel;
use crate::layout::Layout;
use crate::ops::cast::{self, elements};
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, dispatch};

/// The number of totals that are added to elements at once, in buffers on the stack.
const TOTALS_PER_TILE: usize = 128;

/// The work of `indexed` and `put_slice`: `target` and `updates`, given as types and numbers of
/// elements, are converted to `dtype`.
#[must_use]
pub fn write_work(update: Update, target: (DType, usize), updates: (DType, usize), dtype: DType) -> Work {
    let sorts = update == Update::Add
        && !dtype.is_integer()
        && target.1 > MAX_TOTALS_PER_UPDATE.saturating_mul(updates.1);
    let update_cost = if sorts { SORTED_UPDATE_COST } else { SCATTER_COST };
    cost::work(target.1, cast::cost(target.0, dtype))
        .saturating_add(cost::work(updates.1, update_cost + cast::operand_cost(updates.0, dtype)))
}

named! {
    /// The effect of updates on the elements that are indexed, with the name of the operation in Nx:
    /// the sum of the updates is added to them, or the last update replaces them.
    pub enum Update {
        Add, "indexed_add";
        Put, "indexed_put";
    }
}

/// `Nx.indexed_add/4` and `Nx.indexed_put/4`: for each row of `indices`, a row of `updates` for the
/// elements at these indices of `axes`. Updates that are smaller than the other axes are for the
/// first elements of these axes.
///
/// The updates of one element are added up in their order in 64 bits (128 for complex numbers),
/// then to the element, and rounded once.
///
/// # Errors
///
/// The errors of [`gather`](super::gather), but the types may differ: all are converted to that of
/// the result.
pub fn indexed(
    update: Update,
    out: Output<'_>,
    target: &Tensor<'_>,
    indices: &Tensor<'_>,
    updates: &Tensor<'_>,
    axes: &[usize],
) -> Result<(), Error> {
    if out.shape != target.shape() {
        let given = [target.shape(), indices.shape(), updates.shape(), out.shape];
        return Err(shape_error(update.name(), &given, "must have the result's shape"));
    }
    update_elements(update, out, Some(target), indices, updates, axes)
}

/// [`indexed`] where `out` already has the elements of the target.
///
/// # Errors
///
/// As `indexed`, and `Error::UnsupportedType` for what [`is_in_place`] says can't be written there.
pub fn indexed_in_place(
    update: Update,
    out: Output<'_>,
    indices: &Tensor<'_>,
    updates: &Tensor<'_>,
    axes: &[usize],
) -> Result<(), Error> {
    let size = out.shape.iter().product();
    if !is_in_place(update, (out.dtype, size), updates.size()) {
        let dtypes = vec![out.dtype, updates.dtype()];
        return Err(Error::UnsupportedType { op: update.name(), dtypes });
    }
    update_elements(update, out, None, indices, updates, axes)
}

/// Whether updates can be written in the place of a tensor, given its type and size, and the number of their
/// elements. Many floats can't be added there: their totals are added to elements that are still as they were.
#[must_use]
pub fn is_in_place(update: Update, (dtype, size): (DType, usize), updates: usize) -> bool {
    !dtype.is_packed() && (update == Update::Put || dtype.is_integer() || is_sparse(size, updates))
}

/// Whether updates are so few that they are added to their own elements alone, in the order of these.
fn is_sparse(size: usize, updates: usize) -> bool {
    size > MAX_TOTALS_PER_UPDATE.saturating_mul(updates)
}

/// Writes updates to the elements of a target, or to those that `out` has already.
fn update_elements(
    update: Update,
    out: Output<'_>,
    target: Option<&Tensor<'_>>,
    indices: &Tensor<'_>,
    updates: &Tensor<'_>,
    axes: &[usize],
) -> Result<(), Error> {
    let (op, dtype, shape) = (update.name(), out.dtype, out.shape);
    let layout = Layout::contiguous(shape);
    let count = indices.shape().first().copied().unwrap_or(0);
    let rows = Indices::new(op, indices, shape, axes, &layout.strides, count)?;
    let others = other_axes(shape.len(), axes);
    let fits = indices.rank() == 2
        && depth_of(indices) == axes.len()
        && updates.rank() == others.len() + 1
        && updates.shape()[0] == indices.shape()[0]
        && updates.shape()[1..].iter().zip(&others).all(|(&dim, &axis)| dim <= shape[axis]);
    if !fits {
        let given = [shape, indices.shape(), updates.shape(), out.shape];
        return Err(shape_error(op, &given, &format!("don't go together with axes {axes:?}")));
    }
    let from = target.map_or(dtype, Tensor::dtype);
    if (from.is_complex() || updates.dtype().is_complex()) && !dtype.is_complex() {
        let dtypes = vec![from, updates.dtype(), dtype];
        return Err(Error::UnsupportedType { op, dtypes });
    }
    let window = Window::new(&updates.shape()[1..], &values_at(&layout.strides, &others));
    let source = target.map(|target| copy::dense(op, target)).transpose()?;
    let size = layout.size();
    out.write(op, |out| {
        if update == Update::Add && !dtype.is_integer() && updates.size() > 0 && size > 0 {
            let target = FloatTarget { op, source: source.as_deref(), from, to: dtype, window: &window };
            return if dtype.is_complex() {
                target.add::<Complex<f64>>(&rows, updates, DType::C128, out)
            } else {
                target.add::<f64>(&rows, updates, DType::F64, out)
            };
        }
        if let Some(source) = &source {
            convert_all(from, source, dtype, size, out);
        }
        let updates = elements(op, updates, dtype)?;
        // Updates of floats have been added above; if there are none, nothing is written, and any index
        // of an empty target is out of bounds.
        if update == Update::Add && dtype.is_integer() {
            return dispatch!(integer dtype, T => {
                add_integers::<T>((op, dtype), &rows, &window, &updates, T::view_mut(out))
            }, else => unreachable!("{dtype} is an integer"));
        }
        rows.for_each_tile(0, 0..rows.count, |start, offsets, _| {
            let updates = &updates[start * window.size * dtype.width()..];
            window.write(dtype.width(), updates, offsets.iter().copied(), out);
            window.yield_after(offsets.len());
        })
    })
}

/// The elements as type `to`, written to `memory` unless they have this type already.
fn converted<'a>((from, bytes): (DType, &'a [u8]), to: DType, memory: &'a mut [u8]) -> &'a [u8] {
    match conversion(from, to) {
        Some(convert) => {
            let memory = &mut memory[..bytes.len() / from.width() * to.width()];
            convert(bytes, memory);
            memory
        }
        None => bytes,
    }
}

/// Adds updates to integers. Integer sums wrap, so that the order doesn't matter: each thread has a
/// share of the updates. The first adds to the result, the others to sums of their own.
fn add_integers<T: Element>(
    (op, dtype): (&'static str, DType),
    rows: &Indices<'_>,
    window: &Window,
    updates: &[u8],
    out: &mut [T::Bytes],
) -> Result<(), Error> {
    let (size, count) = (out.len(), rows.count * window.size);
    // With s shares, the time is proportional to count / s + s * size / ratio, which is least for
    // this s.
    let best = (SUMS_PER_UPDATE_TIME.saturating_mul(count) / size.max(1)).isqrt().max(1);
    let shares = parallel::threads_for(count, SCATTER_COST).min(best);
    let mut sums = filled(op, dtype, &[shares - 1, size], (shares - 1) * size, T::from_i64(0).store())?;
    let slots = [&mut *out].into_iter().chain(sums.chunks_mut(size.max(1)));
    let slots: Vec<(usize, &mut [T::Bytes])> = slots.enumerate().collect();
    let share_rows = rows.count.div_ceil(slots.len());
    let added = parallel::try_each(count, SCATTER_COST, slots.into_iter(), |(share, out)| {
        let range = (share * share_rows).min(rows.count)..((share + 1) * share_rows).min(rows.count);
        rows.for_each_tile(0, range, |start, offsets, _| {
            let updates = &T::view(updates)[start * window.size..];
            for_each_update(window, offsets, |offset, i| {
                out[offset] = wrapping_sum::<T>(out[offset], updates[i])
            });
            window.yield_after(offsets.len());
        })
    });
    added.map_err(|_| rows.out_of_bounds(0))?;
    simd::dispatch(AddSumsLoop::<T> { out, sums: &sums });
    Ok(())
}

#[inline(always)]
fn wrapping_sum<T: Element>(total: T::Bytes, update: T::Bytes) -> T::Bytes {
    T::from_i64(T::load(total).to_i64().wrapping_add(T::load(update).to_i64())).store()
}

/// Adds rows of sums, each as long as `out`, to `out`.
struct AddSumsLoop<'a, T: Element> {
    out: &'a mut [T::Bytes],
    sums: &'a [T::Bytes],
}

impl<T: Element> Vectorized for AddSumsLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let size = self.out.len().max(1);
        fold_columns(self.out, self.sums, size, needs_prefetch(self.sums), wrapping_sum::<T>);
    }
}

/// Replaces the elements where `mask` is true.
fn replace_where<const N: usize>(slots: &mut [u8], by: &[u8], mask: impl Iterator<Item = bool>) {
    for ((slot, &new), replaces) in slots.as_chunks_mut::<N>().0.iter_mut().zip(by.as_chunks().0).zip(mask) {
        let old = *slot;
        *slot = if replaces { new } else { old };
    }
}

/// The target of `indexed_add` of floats: elements of type `from` that become elements of type
/// `to`.
struct FloatTarget<'a> {
    op: &'static str,
    /// The elements; `None` if the result has them already.
    source: Option<&'a [u8]>,
    from: DType,
    to: DType,
    window: &'a Window,
}

/// A number that updates are added up in.
trait Total: Element + std::ops::Add<Output = Self> {
    /// A total without updates: negative zero, which changes nothing that it is added to.
    const EMPTY: Self;

    /// A number plus positive zero. The result is never a negative zero, nor is a sum of such
    /// numbers.
    fn plus_zero(self) -> Self;

    /// Whether updates have been added, each plus positive zero.
    fn has_updates(self) -> bool;

    /// A loop that adds totals to elements of a type; `None` for other types.
    fn add_totals_loop(_dtype: DType) -> Option<AddTotals<Self>> {
        None
    }

    /// A loop that adds rows of updates of a type to totals; `None` for other types.
    fn add_rows_loop(_dtype: DType) -> Option<AddRows<Self>> {
        None
    }

    /// A loop that adds sorted rows of updates of a type to elements of this type; `None` for other types.
    fn add_sorted_rows_loop(_dtype: DType) -> Option<AddSortedRows> {
        None
    }

    #[inline(always)]
    fn add_update(total: &mut Self::Bytes, update: Self::Bytes) {
        *total = (Self::load(*total) + Self::load(update).plus_zero()).store();
    }
}

/// Writes elements, given as the first argument, with totals added to those that have updates.
type AddTotals<L> = fn(&[u8], &[<L as Lane>::Bytes], &mut [u8]);

/// Adds rows of updates, given as offsets and elements, of some number of elements each, to the totals of
/// all elements, or of a part, given its first element.
type AddRows<L> = fn(&mut [<L as Lane>::Bytes], Option<usize>, (&[isize], &[u8]), usize);

/// Adds rows of updates to elements, given as the last argument: the rows whose numbers the first has, of which those of
/// one offset come one after the other, with the offset of each row, the updates, and the number of elements in a row.
type AddSortedRows = fn(&[usize], &[isize], &[u8], usize, &mut [u8]);

impl Total for f64 {
    const EMPTY: f64 = -0.0;

    fn add_sorted_rows_loop(dtype: DType) -> Option<AddSortedRows> {
        match dtype {
            DType::F32 => Some(add_sorted_rows::<f32>),
            DType::F64 => Some(add_sorted_rows::<f64>),
            _ => None,
        }
    }

    fn add_rows_loop(dtype: DType) -> Option<AddRows<f64>> {
        match dtype {
            DType::F32 => Some(add_rows::<f32>),
            DType::F64 => Some(add_rows::<f64>),
            _ => None,
        }
    }

    fn add_totals_loop(dtype: DType) -> Option<AddTotals<f64>> {
        match dtype {
            DType::F32 => Some(add_totals::<f32>),
            DType::F64 => Some(add_totals::<f64>),
            _ => None,
        }
    }

    #[inline(always)]
    fn plus_zero(self) -> f64 {
        self + 0.0
    }
    #[inline(always)]
    fn has_updates(self) -> bool {
        self.to_bits() != Self::EMPTY.to_bits()
    }
}

impl Total for Complex<f64> {
    const EMPTY: Self = Complex::new(-0.0, -0.0);

    #[inline(always)]
    fn plus_zero(self) -> Self {
        Complex::new(self.re + 0.0, self.im)
    }
    #[inline(always)]
    fn has_updates(self) -> bool {
        self.re.has_updates()
    }
}

/// The number of elements of a window from which each is a row that is added at once.
const MIN_ROW_ELEMENTS: usize = 4;

/// Adds rows of updates to totals: of all elements, or of a part of them. What is outside of the part is left
/// out.
struct AddRowsLoop<'a, T> {
    totals: &'a mut [<f64 as Lane>::Bytes],
    /// The first element of the part.
    part: Option<usize>,
    offsets: &'a [isize],
    updates: &'a [u8],
    /// The number of elements in a row.
    size: usize,
    of: PhantomData<T>,
}

impl<T: SmallFloat> Vectorized for AddRowsLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let AddRowsLoop { totals, part, offsets, updates, size, .. } = self;
        let add = |totals: &mut [<f64 as Lane>::Bytes], row: &[T::Bytes]| {
            for (total, &update) in totals.iter_mut().zip(row) {
                f64::add_update(total, T::load(update).widen().store());
            }
        };
        let rows = offsets.iter().zip(T::view(updates).chunks_exact(size));
        let Some(first) = part else {
            for (&offset, row) in rows {
                add(&mut totals[offset as usize..], row);
            }
            return;
        };
        for (&offset, row) in rows {
            let offset = offset as usize;
            let skipped = first.saturating_sub(offset).min(size);
            let start = (offset + skipped).saturating_sub(first).min(totals.len());
            add(&mut totals[start..], &row[skipped..]);
        }
    }
}

fn add_rows<T: SmallFloat>(
    totals: &mut [<f64 as Lane>::Bytes],
    part: Option<usize>,
    (offsets, updates): (&[isize], &[u8]),
    size: usize,
) {
    simd::dispatch(AddRowsLoop::<T> { totals, part, offsets, updates, size, of: PhantomData });
}

/// Adds rows of updates, sorted by their offsets, to elements: as [`AddSortedRows`].
struct AddSortedRowsLoop<'a, T> {
    order: &'a [usize],
    offsets: &'a [isize],
    updates: &'a [u8],
    size: usize,
    out: &'a mut [u8],
    of: PhantomData<T>,
}

impl<T: SmallFloat> Vectorized for AddSortedRowsLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let AddSortedRowsLoop { order, offsets, updates, size, out, .. } = self;
        let (updates, out) = (T::view(updates), T::view_mut(out));
        for rows in order.chunk_by(|&a, &b| offsets[a] == offsets[b]) {
            let Some(&first) = rows.first() else { continue };
            let elements = out[offsets[first] as usize..][..size].chunks_mut(TOTALS_PER_TILE);
            for (tile, elements) in elements.enumerate() {
                let mut totals = [f64::EMPTY; TOTALS_PER_TILE];
                let totals = &mut totals[..elements.len()];
                for &row in rows {
                    let updates = &updates[row * size + tile * TOTALS_PER_TILE..];
                    for (total, &update) in totals.iter_mut().zip(updates) {
                        *total += T::load(update).widen().plus_zero();
                    }
                }
                for (element, &total) in elements.iter_mut().zip(&*totals) {
                    *element = T::round(T::load(*element).widen() + total).store();
                }
            }
        }
    }
}

fn add_sorted_rows<T: SmallFloat>(
    order: &[usize],
    offsets: &[isize],
    updates: &[u8],
    size: usize,
    out: &mut [u8],
) {
    simd::dispatch(AddSortedRowsLoop::<T> { order, offsets, updates, size, out, of: PhantomData });
}

struct AddTotalsLoop<'a, T> {
    elements: &'a [u8],
    totals: &'a [<f64 as Lane>::Bytes],
    out: &'a mut [u8],
    of: PhantomData<T>,
}

impl<T: SmallFloat> Vectorized for AddTotalsLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let elements = T::view(self.elements).iter().zip(self.totals);
        for (slot, (&element, &total)) in T::view_mut(self.out).iter_mut().zip(elements) {
            let (element, total) = (T::load(element), f64::load(total));
            let sum = T::round(element.widen() + total);
            *slot = if total.has_updates() { sum } else { element }.store();
        }
    }
}

fn add_totals<T: SmallFloat>(elements: &[u8], totals: &[<f64 as Lane>::Bytes], out: &mut [u8]) {
    simd::dispatch(AddTotalsLoop::<T> { elements, totals, out, of: PhantomData });
}

impl FloatTarget<'_> {
    /// Adds up the updates of each element in lanes of `L`, in their order.
    fn add<L: Total>(
        &self,
        rows: &Indices<'_>,
        updates: &Tensor<'_>,
        lane: DType,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let size = out.len() / self.to.width();
        if let (Some(source), false) = (self.source, is_sparse(size, updates.size())) {
            let bytes = copy::dense(self.op, updates)?;
            let max_size = if parallel::threads() > 2 { MAX_CACHED_TOTALS } else { MAX_UNPARTITIONED_TOTALS };
            let by_rows = self.rows_loop::<L>(updates.dtype()).is_some();
            let add =
                if by_rows || size <= max_size { Self::add_dense::<L> } else { Self::add_partitioned::<L> };
            add(self, source, rows, (updates.dtype(), &bytes), lane, out)
        } else {
            if let Some(source) = self.source {
                convert_all(self.from, source, self.to, size, out);
            }
            let offsets = rows.offsets(0)?;
            let has_one_type = self.from == self.to && updates.dtype() == self.to;
            match self.rows_loop::<L>(updates.dtype()).and_then(|_| L::add_sorted_rows_loop(self.to)) {
                Some(add) if has_one_type => {
                    self.add_sorted_rows(add, &offsets, &copy::dense(self.op, updates)?, out)
                }
                _ => self.add_sorted::<L>(&offsets, &elements(self.op, updates, lane)?, lane, out),
            }
        }
    }

    /// `add` with rows of updates sorted by their elements.
    fn add_sorted_rows(
        &self,
        add: AddSortedRows,
        offsets: &[isize],
        updates: &[u8],
        out: &mut [u8],
    ) -> Result<(), Error> {
        let order = self.order(offsets)?;
        let mut rest = &order[..];
        while !rest.is_empty() {
            // Rows of one offset stay together.
            let is_last = |at: usize| rest.get(at).is_none_or(|&row| offsets[row] != offsets[rest[at - 1]]);
            let end = (OFFSET_TILE_ROWS.min(rest.len())..).find(|&end| is_last(end)).unwrap_or(rest.len());
            let (rows, after) = rest.split_at(end);
            add(rows, offsets, updates, self.window.size, out);
            self.window.yield_after(rows.len());
            rest = after;
        }
        Ok(())
    }

    /// `add` with the updates sorted by their elements.
    fn add_sorted<L: Total>(
        &self,
        offsets: &[isize],
        updates: &[u8],
        lane: DType,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let updates = L::view(updates);
        let size = self.window.size;
        let tile = (TILE_ELEMENTS / size).clamp(1, offsets.len());
        let memory = |dtype: DType| scratch(self.op, dtype, &[tile, size], tile * size * dtype.width());
        let (mut sums, mut lanes) = (memory(lane)?, memory(lane)?);
        let (mut from, mut to) = (memory(self.from)?, memory(self.to)?);
        let mut targets: Vec<isize> = Vec::with_capacity(tile);
        let order = self.order(offsets)?;
        let mut rows = order.iter().copied().peekable();
        while rows.peek().is_some() {
            targets.clear();
            while let Some(&row) = rows.peek() {
                let offset = offsets[row];
                let update = &updates[row * size..][..size];
                let is_new = targets.last() != Some(&offset);
                if is_new {
                    if targets.len() == tile {
                        break;
                    }
                    targets.push(offset);
                }
                let sums = &mut L::view_mut(&mut sums)[(targets.len() - 1) * size..][..size];
                for (sum, &update) in sums.iter_mut().zip(update) {
                    if is_new {
                        *sum = L::EMPTY.store();
                    }
                    L::add_update(sum, update);
                }
                rows.next();
            }
            let count = targets.len() * size;
            let from = &mut from[..count * self.from.width()];
            // Elements that have been converted have lost digits.
            let source = self.source.filter(|_| self.from != self.to).unwrap_or(out);
            self.window.read(self.from.width(), source, targets.iter().copied(), from);
            convert_all(self.from, from, lane, count, &mut lanes[..count * lane.width()]);
            for (lane, &sum) in L::view_mut(&mut lanes)[..count].iter_mut().zip(L::view(&sums)) {
                *lane = (L::load(*lane) + L::load(sum)).store();
            }
            let to = &mut to[..count * self.to.width()];
            convert_all(lane, &lanes[..count * lane.width()], self.to, count, to);
            self.window.write(self.to.width(), to, targets.iter().copied(), out);
        }
        Ok(())
    }

    /// The loop that adds updates of a type as rows; `None` if they are none.
    fn rows_loop<L: Total>(&self, dtype: DType) -> Option<AddRows<L>> {
        L::add_rows_loop(dtype).filter(|_| self.window.is_dense() && self.window.size >= MIN_ROW_ELEMENTS)
    }

    /// `add` with a total for every element of the target. If threads share the work, each has a share of
    /// the totals and reads all updates. Rows are cut to the share. Two threads share single updates: those
    /// for the other half are added to totals that are discarded, which takes less time than to tell them
    /// apart.
    fn add_dense<L: Total>(
        &self,
        source: &[u8],
        rows: &Indices<'_>,
        (dtype, updates): (DType, &[u8]),
        lane: DType,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let (size, row) = (source.len() / self.from.width(), self.window.size * dtype.width());
        let count = rows.count * self.window.size;
        let rows_loop = self.rows_loop::<L>(dtype);
        let (min_size, most) = match rows_loop {
            Some(_) if self.window.size < MIN_ROW_ELEMENTS_TO_SHARE => {
                (MAX_CACHED_TOTALS, parallel::threads())
            }
            Some(_) => (MIN_ROW_TOTALS_TO_SHARE, parallel::threads()),
            None => (MAX_TOTALS_OF_ONE_THREAD, 2),
        };
        let shares = if size > min_size && parallel::pays(count, SCATTER_COST) { most } else { 1 };
        let share = size.div_ceil(shares);
        let cost = cast::cost(self.from, lane) + cast::cost(lane, self.to);
        let slots = out.chunks_mut(share * self.to.width()).enumerate();
        parallel::try_each(count, SCATTER_COST, slots, |(i, out)| {
            let (first, length) = (i * share, share.min(size - i * share));
            let discarded = if shares > 1 && rows_loop.is_none() { DISCARDED_TOTALS } else { 0 };
            let mut totals = filled(self.op, lane, &[size], length + discarded, L::EMPTY.store())?;
            let tile = if rows_loop.is_some() { 0 } else { rows.count.min(OFFSET_TILE_ROWS) };
            let tile = tile * self.window.size;
            let mut lanes = scratch(self.op, lane, &[tile], tile * lane.width())?;
            rows.for_each_tile(0, 0..rows.count, |start, offsets, next| {
                // Local copies: the compiler sees that no write to a total changes them.
                let (totals, first, length) = (&mut *totals, first, length);
                let slot = |offset: usize| {
                    let slot = offset.wrapping_sub(first);
                    select_unpredictable(slot < length, slot, length + offset % DISCARDED_TOTALS)
                };
                let updates = &updates[start * row..][..offsets.len() * row];
                if let Some(add_rows) = rows_loop {
                    let part = (shares > 1).then_some(first);
                    add_rows(&mut totals[..length], part, (offsets, updates), self.window.size);
                } else {
                    if length > MAX_CACHED_TOTALS {
                        next.iter().for_each(|&offset| simd::prefetch(totals, slot(offset as usize)));
                    }
                    let updates = L::view(converted((dtype, updates), lane, &mut lanes));
                    for_each_update(self.window, offsets, |offset, i| {
                        L::add_update(&mut totals[slot(offset)], updates[i]);
                    });
                }
                self.window.yield_after(offsets.len());
            })?;
            if shares > 1 {
                self.round::<L>(source, (&totals[..length], lane), first, out);
            } else {
                parallel::fill(out, size, cost, |start, part| {
                    self.round::<L>(source, (&totals[start..], lane), start, part);
                });
            }
            Ok(())
        })
    }

    /// `add_dense` of one part of the target at a time, with partitioned updates.
    fn add_partitioned<L: Total>(
        &self,
        source: &[u8],
        rows: &Indices<'_>,
        (dtype, updates): (DType, &[u8]),
        lane: DType,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let (size, width) = (source.len() / self.from.width(), dtype.width());
        let parts = PartitionedUpdates::new(rows, self.window, (dtype, updates), size)?;
        let slots = out.chunks_mut(PARTITION_ELEMENTS * self.to.width()).enumerate();
        parallel::try_each(size, SCATTER_COST, slots, |(part, slots)| {
            let mut totals =
                filled(self.op, lane, &[PARTITION_ELEMENTS], PARTITION_ELEMENTS, L::EMPTY.store())?;
            let mut lanes = [0; OFFSET_TILE_ROWS * 16];
            let (positions, updates) = parts.get(part);
            for (positions, updates) in
                positions.chunks(OFFSET_TILE_ROWS).zip(updates.chunks(OFFSET_TILE_ROWS * width))
            {
                let updates = converted((dtype, updates), lane, &mut lanes);
                for (&position, &update) in positions.iter().zip(L::view(updates)) {
                    L::add_update(&mut totals[usize::from(position)], update);
                }
            }
            self.round::<L>(source, (&totals, lane), part * PARTITION_ELEMENTS, slots);
            Ok(())
        })
    }

    /// Writes the elements from `start` on, with the totals added to those that have updates.
    fn round<L: Total>(
        &self,
        source: &[u8],
        (totals, lane): (&[L::Bytes], DType),
        start: usize,
        out: &mut [u8],
    ) {
        let (from, to) = (self.from.width(), self.to.width());
        if self.from == self.to
            && let Some(add) = L::add_totals_loop(self.to)
        {
            return add(&source[start * from..], totals, out);
        }
        let (mut lanes, mut rounded) = ([0; TOTALS_PER_TILE * 16], [0; TOTALS_PER_TILE * 16]);
        let source = source[start * from..].chunks(TOTALS_PER_TILE * from);
        for ((slots, source), totals) in
            out.chunks_mut(TOTALS_PER_TILE * to).zip(source).zip(totals.chunks(TOTALS_PER_TILE))
        {
            let count = slots.len() / to;
            let (source, totals) = (&source[..count * from], &totals[..count]);
            convert_all(self.from, source, self.to, count, slots);
            convert_all(self.from, source, lane, count, &mut lanes[..count * lane.width()]);
            for (lane, &total) in L::view_mut(&mut lanes).iter_mut().zip(totals) {
                *lane = (L::load(*lane) + L::load(total)).store();
            }
            convert_all(lane, &lanes[..count * lane.width()], self.to, count, &mut rounded[..slots.len()]);
            let has_updates = totals.iter().map(|&total| L::load(total).has_updates());
            dispatch!(width to, N => replace_where::<N>(slots, &rounded, has_updates));
        }
    }

    /// The rows in the order of their offsets, and rows of equal offsets in their own order.
    fn order(&self, offsets: &[isize]) -> Result<Vec<usize>, Error> {
        let fits_u32 = |n: usize| u32::try_from(n).is_ok();
        if offsets.is_sorted() {
            let mut order = scratch_of::<usize>(self.op, DType::U64, &[offsets.len()], offsets.len())?;
            order.iter_mut().enumerate().for_each(|(i, row)| *row = i);
            Ok(order)
        } else if fits_u32(offsets.len()) && offsets.iter().all(|&offset| fits_u32(offset as usize)) {
            self.order_by::<u64>(offsets)
        } else {
            self.order_by::<u128>(offsets)
        }
    }

    fn order_by<C: IndexedKey>(&self, offsets: &[isize]) -> Result<Vec<usize>, Error> {
        let bytes = C::BYTES / 2..C::BYTES;
        let length = offsets.len();
        let memory = |length| scratch_of::<C>(self.op, DType::U64, &[length], length);
        let mut entries = memory(length)?;
        for (i, (entry, &offset)) in entries.iter_mut().zip(offsets).enumerate() {
            *entry = C::join(offset as u64, i);
        }
        radix::sort(&mut entries, &mut memory(radix::buffer_length::<C>(length, &bytes, 1))?, bytes);
        let mut order = scratch_of::<usize>(self.op, DType::U64, &[length], length)?;
        order.iter_mut().zip(entries).for_each(|(row, entry)| *row = entry.index() as usize);
        Ok(order)
    }
}

/// `Nx.put_slice/3`: the tensor with some elements replaced by those of a slice, from a start index
/// of each axis on. Types are converted to that of the result.
///
/// # Errors
///
/// `Error::Argument` if the slice reaches past an axis, `Error::Shape` if ranks or the shape of
/// `out` differ, `Error::TooLarge` if there is no memory for an intermediate copy.
pub fn put_slice(
    out: Output<'_>,
    input: &Tensor<'_>,
    starts: &[usize],
    slice: &Tensor<'_>,
) -> Result<(), Error> {
    if out.shape != input.shape() {
        let given = [input.shape(), slice.shape(), out.shape];
        return Err(shape_error(PUT_SLICE, &given, "must have the result's shape"));
    }
    write_slice(out, Some(input), starts, slice)
}

/// [`put_slice`] where `out` already has the elements of the tensor.
///
/// # Errors
///
/// As `put_slice`, and `Error::UnsupportedType` for types below a byte.
pub fn put_slice_in_place(out: Output<'_>, starts: &[usize], slice: &Tensor<'_>) -> Result<(), Error> {
    if out.dtype.is_packed() {
        return Err(Error::UnsupportedType { op: PUT_SLICE, dtypes: vec![out.dtype, slice.dtype()] });
    }
    write_slice(out, None, starts, slice)
}

const PUT_SLICE: &str = "put_slice";

/// Writes a slice over the elements of a tensor, or over those that `out` has already.
fn write_slice(
    out: Output<'_>,
    input: Option<&Tensor<'_>>,
    starts: &[usize],
    slice: &Tensor<'_>,
) -> Result<(), Error> {
    let (dtype, shape) = (out.dtype, out.shape);
    if slice.rank() != shape.len() || starts.len() != shape.len() {
        let given = [shape, slice.shape(), out.shape];
        return Err(shape_error(PUT_SLICE, &given, "must have one rank, and a start for each axis"));
    }
    for (axis, ((&dim, &length), &start)) in shape.iter().zip(slice.shape()).zip(starts).enumerate() {
        if start.checked_add(length).is_none_or(|end| end > dim) {
            let problem =
                format!("start {start} with length {length} reaches past axis {axis} of size {dim}");
            return Err(Error::Argument { op: PUT_SLICE, problem });
        }
    }
    let from = input.map_or(dtype, Tensor::dtype);
    if (from.is_complex() || slice.dtype().is_complex()) && !dtype.is_complex() {
        return Err(Error::UnsupportedType { op: PUT_SLICE, dtypes: vec![from, slice.dtype(), dtype] });
    }
    let layout = Layout::contiguous(shape);
    let window = Window::new(slice.shape(), &layout.strides);
    let offset: isize =
        starts.iter().zip(&layout.strides).map(|(&start, &stride)| start as isize * stride).sum();
    let source = input.map(|input| copy::dense(PUT_SLICE, input)).transpose()?;
    let slice = elements(PUT_SLICE, slice, dtype)?;
    out.write(PUT_SLICE, |out| {
        if let Some(source) = &source {
            convert_all(from, source, dtype, layout.size(), out);
        }
        if window.size > 0 {
            window.write(dtype.width(), &slice, std::iter::once(offset), out);
        }
        Ok(())
    })
}
