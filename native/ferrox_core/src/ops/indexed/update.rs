//! Operations that write at indices.

use std::hint::select_unpredictable;
use std::marker::PhantomData;

use num_complex::Complex;

use super::parts::{PART, Parts};
use super::{Indices, ROWS, WRITE, Window, depth_of, each_update, of, other, shapes};
use crate::cost::{self, Cost, Work};
use crate::dtype::{Element, Lane};
use crate::exec::convert::{conversion, convert_all};
use crate::exec::copy;
use crate::exec::elementwise::TILE_ELEMENTS;
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

/// Adding up an update with others of its element, which sorting finds.
const SORTED: Cost = 12_000;

/// Totals that are added to elements at once.
const TOTALS: usize = 128;

/// Up to so many elements of the target for each of the updates, `indexed_add`
/// keeps a total for all of them; from there on, it sorts the updates.
const DENSE: usize = 4;

/// Totals of up to so many elements stay in the cache of a core, wherever updates are; of more,
/// the next ones are asked for ahead.
const CACHED: usize = 1 << 17;

/// Totals of up to so many are added to by one thread.
const NEAR: usize = 1 << 14;

/// So many sums are added to others in the time of an update. (`kernels`: indexed_add_u8.)
const UPDATE: usize = 10;

/// Totals that nobody wants, where updates of another thread's half go: so many that few of those
/// that the processor has begun meet in one.
const SPARE: usize = 1024;

/// Totals of up to so many are near enough for two threads to add up updates as fast as they
/// distribute them first.
const SHARED: usize = 1 << 21;

/// The work of `indexed` and `put_slice`: so many elements of a target and of
/// updates become those of a type.
#[must_use]
pub fn write_work(update: Update, target: (DType, usize), updates: (DType, usize), dtype: DType) -> Work {
    let sorts = update == Update::Add && !dtype.is_integer() && target.1 > DENSE.saturating_mul(updates.1);
    let added = if sorts { SORTED } else { WRITE };
    cost::work(target.1, cast::cost(target.0, dtype))
        .saturating_add(cost::work(updates.1, added + cast::operand_cost(updates.0, dtype)))
}

/// What becomes of the elements that are indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// The sum of the updates is added to them: `Nx.indexed_add/4`.
    Add,
    /// The last update replaces them: `Nx.indexed_put/4`.
    Put,
}

impl Update {
    /// The name of the operation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Update::Add => "indexed_add",
            Update::Put => "indexed_put",
        }
    }
}

/// `Nx.indexed_add/4` and `Nx.indexed_put/4`: for each row of `indices`, a row of
/// `updates` for the elements at these indices of `axes`. Updates smaller than the
/// other axes are for their first elements.
///
/// Updates of one element are added up in their order in 64 bits (128 for complex
/// numbers), then to the element, and rounded once.
///
/// # Errors
///
/// As `gather`, but the types may differ: they become that of the result.
pub fn indexed(
    update: Update,
    out: Output<'_>,
    target: &Tensor<'_>,
    indices: &Tensor<'_>,
    updates: &Tensor<'_>,
    axes: &[usize],
) -> Result<(), Error> {
    let op = update.name();
    let shape = target.shape();
    let layout = Layout::contiguous(shape);
    let count = indices.shape().first().copied().unwrap_or(0);
    let rows = Indices::new(op, indices, shape, axes, &layout.strides, count)?;
    let rest = other(shape.len(), axes);
    let fits = out.shape == shape
        && indices.rank() == 2
        && depth_of(indices) == axes.len()
        && updates.rank() == rest.len() + 1
        && updates.shape()[0] == indices.shape()[0]
        && updates.shape()[1..].iter().zip(&rest).all(|(&dim, &axis)| dim <= shape[axis]);
    if !fits {
        let given = [shape, indices.shape(), updates.shape(), out.shape];
        return Err(shapes(op, &given, &format!("don't go together with axes {axes:?}")));
    }
    let complex = target.dtype().is_complex() || updates.dtype().is_complex();
    if complex && !out.dtype.is_complex() {
        let dtypes = vec![target.dtype(), updates.dtype(), out.dtype];
        return Err(Error::UnsupportedType { op, dtypes });
    }
    let window = Window::new(&updates.shape()[1..], &of(&layout.strides, &rest));
    let source = copy::dense(op, target)?;
    let dtype = out.dtype;
    let size = target.size();
    out.write(op, |out| {
        if update == Update::Add && !dtype.is_integer() && updates.size() > 0 {
            let target = Target { op, source: &source, from: target.dtype(), to: dtype, window: &window };
            return if dtype.is_complex() {
                target.add::<Complex<f64>>(&rows, updates, DType::C128, out)
            } else {
                target.add::<f64>(&rows, updates, DType::F64, out)
            };
        }
        convert_all(target.dtype(), &source, dtype, size, out);
        let updates = elements(op, updates, dtype)?;
        // Of floats, there are none to add here.
        if update == Update::Add && dtype.is_integer() {
            return dispatch!(integer dtype, T => {
                add_integers::<T>((op, dtype), &rows, &window, &updates, T::view_mut(out))
            }, else => unreachable!("{dtype} is an integer"));
        }
        rows.each_tile(0, 0..rows.count, |start, offsets, _| {
            let updates = &updates[start * window.size * dtype.width()..];
            window.write(dtype.width(), updates, offsets.iter().copied(), out);
            window.pause_after(offsets.len());
        })
    })
}

/// Elements as another type, in `memory` unless they are of that type already.
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

/// Adds updates to integers. Their sums wrap, so that the order doesn't matter: each thread has a
/// share of the updates, and all but one add theirs up in memory of their own.
fn add_integers<T: Element>(
    (op, dtype): (&'static str, DType),
    rows: &Indices<'_>,
    window: &Window,
    updates: &[u8],
    out: &mut [T::Bytes],
) -> Result<(), Error> {
    let (size, count) = (out.len(), rows.count * window.size);
    // The time of all is least where a thread's updates take as long as adding up the sums does.
    let most = (UPDATE.saturating_mul(count) / size.max(1)).isqrt().max(1);
    let shares = parallel::threads_for(count, WRITE).min(most);
    let mut own = filled(op, dtype, &[shares - 1, size], (shares - 1) * size, T::from_i64(0).store())?;
    let slots = [&mut *out].into_iter().chain(own.chunks_mut(size.max(1)));
    let slots: Vec<(usize, &mut [T::Bytes])> = slots.enumerate().collect();
    let each = rows.count.div_ceil(slots.len());
    let added = parallel::try_each(count, WRITE, slots.into_iter(), |(share, out)| {
        let range = (share * each).min(rows.count)..((share + 1) * each).min(rows.count);
        rows.each_tile(0, range, |start, offsets, _| {
            let updates = &T::view(updates)[start * window.size..];
            each_update(window, offsets, |place, i| out[place] = added_integers::<T>(out[place], updates[i]));
            window.pause_after(offsets.len());
        })
    });
    // The first index that is out of bounds, whichever thread has met one.
    added.map_err(|_| rows.outside(0))?;
    simd::dispatch(Sums::<T> { out, sums: &own });
    Ok(())
}

#[inline(always)]
fn added_integers<T: Element>(total: T::Bytes, update: T::Bytes) -> T::Bytes {
    T::from_i64(T::load(total).to_i64().wrapping_add(T::load(update).to_i64())).store()
}

/// Adds sums to others, which are as many or fewer.
struct Sums<'a, T: Element> {
    out: &'a mut [T::Bytes],
    sums: &'a [T::Bytes],
}

impl<T: Element> Vectorized for Sums<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let size = self.out.len().max(1);
        fold_columns(self.out, self.sums, size, needs_prefetch(self.sums), added_integers::<T>);
    }
}

/// Replaces some elements by others.
fn replace<const N: usize>(slots: &mut [u8], by: &[u8], some: impl Iterator<Item = bool>) {
    for ((slot, &new), some) in slots.as_chunks_mut::<N>().0.iter_mut().zip(by.as_chunks().0).zip(some) {
        let old = *slot;
        *slot = if some { new } else { old };
    }
}

/// Where `indexed_add` of floats takes elements from, and what they become.
struct Target<'a> {
    op: &'static str,
    source: &'a [u8],
    from: DType,
    to: DType,
    window: &'a Window,
}

/// What updates are added up in.
trait Total: Element + std::ops::Add<Output = Self> {
    /// What a total is before the first update: a negative zero, which added to
    /// anything leaves it as it is.
    const NONE: Self;

    /// A number plus zero. That is no negative zero, and no sum of such is one.
    fn positive(self) -> Self;

    /// Whether updates have been added, each plus zero.
    fn is_some(self) -> bool;

    /// Writes elements of a type with their totals added, in one loop; none for other types.
    fn adding(_dtype: DType) -> Option<Adding<Self>> {
        None
    }

    /// Adds an update to a total.
    #[inline(always)]
    fn add_to(total: &mut Self::Bytes, update: Self::Bytes) {
        *total = (Self::load(*total) + Self::load(update).positive()).store();
    }
}

/// Writes a slice of elements, the first, with totals added to them.
type Adding<L> = fn(&[u8], &[<L as Lane>::Bytes], &mut [u8]);

impl Total for f64 {
    const NONE: f64 = -0.0;

    fn adding(dtype: DType) -> Option<Adding<f64>> {
        match dtype {
            DType::F32 => Some(added::<f32>),
            DType::F64 => Some(added::<f64>),
            _ => None,
        }
    }

    #[inline(always)]
    fn positive(self) -> f64 {
        self + 0.0
    }
    #[inline(always)]
    fn is_some(self) -> bool {
        self.to_bits() != Self::NONE.to_bits()
    }
}

impl Total for Complex<f64> {
    const NONE: Self = Complex::new(-0.0, -0.0);

    #[inline(always)]
    fn positive(self) -> Self {
        Complex::new(self.re + 0.0, self.im)
    }
    #[inline(always)]
    fn is_some(self) -> bool {
        self.re.is_some()
    }
}

/// Elements with totals added to those that have one.
struct Added<'a, T> {
    elements: &'a [u8],
    totals: &'a [<f64 as Lane>::Bytes],
    out: &'a mut [u8],
    of: PhantomData<T>,
}

impl<T: SmallFloat> Vectorized for Added<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let elements = T::view(self.elements).iter().zip(self.totals);
        for (slot, (&element, &total)) in T::view_mut(self.out).iter_mut().zip(elements) {
            let (element, total) = (T::load(element), f64::load(total));
            let sum = T::round(element.widen() + total);
            *slot = if total.is_some() { sum } else { element }.store();
        }
    }
}

fn added<T: SmallFloat>(elements: &[u8], totals: &[<f64 as Lane>::Bytes], out: &mut [u8]) {
    simd::dispatch(Added::<T> { elements, totals, out, of: PhantomData });
}

impl Target<'_> {
    /// Adds up updates in lanes of `L`, those of one offset after the other.
    fn add<L: Total>(
        &self,
        rows: &Indices<'_>,
        updates: &Tensor<'_>,
        lane: DType,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let size = self.source.len() / self.from.width();
        if size <= DENSE * updates.size() {
            let bytes = copy::dense(self.op, updates)?;
            let most = if parallel::threads() > 2 { CACHED } else { SHARED };
            let add = if size <= most { Self::add_dense::<L> } else { Self::add_parts::<L> };
            add(self, rows, (updates.dtype(), &bytes), lane, out)
        } else {
            convert_all(self.from, self.source, self.to, size, out);
            self.add_sorted::<L>(&rows.offsets(0)?, &elements(self.op, updates, lane)?, lane, out)
        }
    }

    /// `add` with the updates sorted by their places.
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
        let mut places: Vec<isize> = Vec::with_capacity(tile);
        let order = self.order(offsets)?;
        let mut rows = order.iter().copied().peekable();
        while rows.peek().is_some() {
            places.clear();
            while let Some(&row) = rows.peek() {
                let offset = offsets[row];
                let update = &updates[row * size..][..size];
                let next = places.last() != Some(&offset);
                if next {
                    if places.len() == tile {
                        break;
                    }
                    places.push(offset);
                }
                let sums = &mut L::view_mut(&mut sums)[(places.len() - 1) * size..][..size];
                for (sum, &update) in sums.iter_mut().zip(update) {
                    if next {
                        *sum = L::NONE.store();
                    }
                    L::add_to(sum, update);
                }
                rows.next();
            }
            let count = places.len() * size;
            let from = &mut from[..count * self.from.width()];
            self.window.read(self.from.width(), self.source, places.iter().copied(), from);
            convert_all(self.from, from, lane, count, &mut lanes[..count * lane.width()]);
            for (lane, &sum) in L::view_mut(&mut lanes)[..count].iter_mut().zip(L::view(&sums)) {
                *lane = (L::load(*lane) + L::load(sum)).store();
            }
            let to = &mut to[..count * self.to.width()];
            convert_all(lane, &lanes[..count * lane.width()], self.to, count, to);
            self.window.write(self.to.width(), to, places.iter().copied(), out);
        }
        Ok(())
    }

    /// `add` with a total for every element of the target. Of two threads, each has half of them,
    /// and leaves the updates of the other's.
    fn add_dense<L: Total>(
        &self,
        rows: &Indices<'_>,
        (dtype, updates): (DType, &[u8]),
        lane: DType,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let (size, row) = (self.source.len() / self.from.width(), self.window.size * dtype.width());
        let count = rows.count * self.window.size;
        let halves = size > NEAR && parallel::pays(count, WRITE);
        let share = if halves { size.div_ceil(2) } else { size };
        let cost = cast::cost(self.from, lane) + cast::cost(lane, self.to);
        let slots = out.chunks_mut(share * self.to.width()).enumerate();
        parallel::try_each(count, WRITE, slots, |(i, out)| {
            let (first, length) = (i * share, share.min(size - i * share));
            let spare = if halves { SPARE } else { 0 };
            let mut totals = filled(self.op, lane, &[size], length + spare, L::NONE.store())?;
            let tile = rows.count.min(ROWS) * self.window.size;
            let mut lanes = scratch(self.op, lane, &[tile], tile * lane.width())?;
            rows.each_tile(0, 0..rows.count, |start, offsets, next| {
                // Of its own, so that the compiler sees that no total overwrites them.
                let (totals, first, length) = (&mut *totals, first, length);
                let slot = |place: usize| {
                    let slot = place.wrapping_sub(first);
                    select_unpredictable(slot < length, slot, length + place % SPARE)
                };
                if length > CACHED {
                    next.iter().for_each(|&offset| simd::prefetch(totals, slot(offset as usize)));
                }
                let updates = &updates[start * row..][..offsets.len() * row];
                let updates = L::view(converted((dtype, updates), lane, &mut lanes));
                each_update(self.window, offsets, |place, i| L::add_to(&mut totals[slot(place)], updates[i]));
                self.window.pause_after(offsets.len());
            })?;
            if halves {
                self.round::<L>(&totals[..length], lane, first, out);
            } else {
                parallel::fill(out, size, cost, |start, part| {
                    self.round::<L>(&totals[start..], lane, start, part);
                });
            }
            Ok(())
        })
    }

    /// `add_dense` of parts of the target, side by side.
    fn add_parts<L: Total>(
        &self,
        rows: &Indices<'_>,
        (dtype, updates): (DType, &[u8]),
        lane: DType,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let (size, width) = (self.source.len() / self.from.width(), dtype.width());
        let parts = Parts::new(rows, self.window, (dtype, updates), size)?;
        let slots = out.chunks_mut(PART * self.to.width()).enumerate();
        parallel::try_each(size, WRITE, slots, |(part, slots)| {
            let mut totals = filled(self.op, lane, &[PART], PART, L::NONE.store())?;
            let mut lanes = [0; ROWS * 16];
            let (places, updates) = parts.get(part);
            for (places, updates) in places.chunks(ROWS).zip(updates.chunks(ROWS * width)) {
                let updates = converted((dtype, updates), lane, &mut lanes);
                for (&place, &update) in places.iter().zip(L::view(updates)) {
                    L::add_to(&mut totals[usize::from(place)], update);
                }
            }
            self.round::<L>(&totals, lane, part * PART, slots);
            Ok(())
        })
    }

    /// Writes elements from one on, with the totals added to them.
    fn round<L: Total>(&self, totals: &[L::Bytes], lane: DType, start: usize, out: &mut [u8]) {
        let (from, to) = (self.from.width(), self.to.width());
        if self.from == self.to
            && let Some(add) = L::adding(self.to)
        {
            return add(&self.source[start * from..], totals, out);
        }
        let (mut lanes, mut rounded) = ([0; TOTALS * 16], [0; TOTALS * 16]);
        let source = self.source[start * from..].chunks(TOTALS * from);
        for ((slots, source), totals) in out.chunks_mut(TOTALS * to).zip(source).zip(totals.chunks(TOTALS)) {
            let count = slots.len() / to;
            let (source, totals) = (&source[..count * from], &totals[..count]);
            convert_all(self.from, source, self.to, count, slots);
            convert_all(self.from, source, lane, count, &mut lanes[..count * lane.width()]);
            for (lane, &total) in L::view_mut(&mut lanes).iter_mut().zip(totals) {
                *lane = (L::load(*lane) + L::load(total)).store();
            }
            convert_all(lane, &lanes[..count * lane.width()], self.to, count, &mut rounded[..slots.len()]);
            let some = totals.iter().map(|&total| L::load(total).is_some());
            match to {
                1 => replace::<1>(slots, &rounded, some),
                2 => replace::<2>(slots, &rounded, some),
                4 => replace::<4>(slots, &rounded, some),
                8 => replace::<8>(slots, &rounded, some),
                _ => replace::<16>(slots, &rounded, some),
            }
        }
    }

    /// The rows in the order of their offsets, those of one in their own order.
    fn order(&self, offsets: &[isize]) -> Result<Vec<usize>, Error> {
        let short = |n: usize| u32::try_from(n).is_ok();
        if offsets.is_sorted() {
            let mut order = scratch_of::<usize>(self.op, DType::U64, &[offsets.len()], offsets.len())?;
            order.iter_mut().enumerate().for_each(|(i, row)| *row = i);
            Ok(order)
        } else if short(offsets.len()) && offsets.iter().all(|&offset| short(offset as usize)) {
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

/// `Nx.put_slice/3`: the elements of a slice, from an index of each axis, in the
/// place of those that are there. Types become that of the result.
///
/// # Errors
///
/// `Error::Argument` if the slice reaches past an axis, `Error::Shape` if ranks or
/// the shape of `out` differ, `Error::TooLarge` if there is no memory for an
/// intermediate copy.
pub fn put_slice(
    out: Output<'_>,
    input: &Tensor<'_>,
    starts: &[usize],
    slice: &Tensor<'_>,
) -> Result<(), Error> {
    const OP: &str = "put_slice";
    let shape = input.shape();
    if out.shape != shape || slice.rank() != shape.len() || starts.len() != shape.len() {
        let given = [shape, slice.shape(), out.shape];
        return Err(shapes(OP, &given, "must have one rank, a start for each axis, and the result's shape"));
    }
    for (axis, ((&dim, &length), &start)) in shape.iter().zip(slice.shape()).zip(starts).enumerate() {
        if start.checked_add(length).is_none_or(|end| end > dim) {
            let problem =
                format!("start {start} with length {length} reaches past axis {axis} of size {dim}");
            return Err(Error::Argument { op: OP, problem });
        }
    }
    if (input.dtype().is_complex() || slice.dtype().is_complex()) && !out.dtype.is_complex() {
        let dtypes = vec![input.dtype(), slice.dtype(), out.dtype];
        return Err(Error::UnsupportedType { op: OP, dtypes });
    }
    let layout = Layout::contiguous(shape);
    let window = Window::new(slice.shape(), &layout.strides);
    let offset: isize =
        starts.iter().zip(&layout.strides).map(|(&start, &stride)| start as isize * stride).sum();
    let source = copy::dense(OP, input)?;
    let (dtype, size) = (out.dtype, input.size());
    let slice = elements(OP, slice, dtype)?;
    out.write(OP, |out| {
        convert_all(input.dtype(), &source, dtype, size, out);
        if window.size > 0 {
            window.write(dtype.width(), &slice, std::iter::once(offset), out);
        }
        Ok(())
    })
}
