//! Elements by their indices: `Nx.gather/3`, `Nx.take/3`, `Nx.take_along_axis/3`,
//! `Nx.indexed_add/4`, `Nx.indexed_put/4` and `Nx.put_slice/3`.
//!
//! Indices first become offsets, whose bounds are checked on the way; then
//! windows, which are what remains of a tensor where some of its axes are fixed,
//! are copied from or to these offsets.

use std::borrow::Cow;

use num_complex::Complex;

use crate::dtype::{Element, Lane};
use crate::exec::elementwise::TILE;
use crate::exec::parallel::{self, Cost, Work};
use crate::exec::radix::{self, Indexed};
use crate::lane::conversion;
use crate::layout::{Layout, Shape, Strides, collapse, gather as gather_layout, index_of, scatter};
use crate::ops::cast::{self, convert};
use crate::ops::shape;
use crate::tensor::{Output, Tensor, scratch, scratch_of};
use crate::{DType, Error, dispatch};

/// A read or write anywhere in memory, with what finds the place.
const FAR: Cost = 2_500;

/// Adding up an update with others of its element, which have to be found.
const ADDED: Cost = 12_000;

/// Rows of indices whose offsets are computed at once.
const ROWS: usize = 256;

/// Totals that are added to elements at once.
const TOTALS: usize = 512;

/// Up to so many elements of the target for each of the updates, `indexed_add`
/// keeps a total for all of them; from there on, it sorts the updates.
const DENSE: usize = 4;

/// A row of so many bytes.
fn row_cost(bytes: usize) -> Cost {
    FAR.saturating_add(50 * bytes as Cost)
}

/// The work of reading so many elements of a type by so many rows of indices.
#[must_use]
pub fn read_work(dtype: DType, elements: usize, rows: usize) -> Work {
    parallel::work(rows, FAR).saturating_add(parallel::work(elements, shape::cost(dtype)))
}

/// The work of `indexed` and `put_slice`: so many elements of a target and of
/// updates become those of a type.
#[must_use]
pub fn write_work(update: Update, target: (DType, usize), updates: (DType, usize), dtype: DType) -> Work {
    let added = if update == Update::Add && !dtype.is_integer() { ADDED } else { FAR };
    let cast = |(from, size): (DType, usize)| parallel::work(size, cast::cost(from, dtype));
    cast(target).saturating_add(cast(updates)).saturating_add(parallel::work(updates.1, added))
}

/// What is at each offset: the axes that are not indexed.
#[derive(Clone, Debug)]
struct Window {
    layout: Layout,
    size: usize,
}

impl Window {
    fn new(shape: &[usize], strides: &[isize]) -> Self {
        let size = shape.iter().product();
        let (shape, strides) = if size == 0 {
            (Shape::from_slice(&[0]), Strides::from_slice(&[1]))
        } else {
            let (shape, mut strides) = collapse(shape, &[strides]);
            (shape, strides.swap_remove(0))
        };
        Window { layout: Layout { shape, strides, offset: 0 }, size }
    }

    /// Whether its elements are next to each other.
    fn is_dense(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// Copies the windows at some offsets, one after the other.
    fn read(&self, width: usize, source: &[u8], offsets: impl Iterator<Item = isize>, out: &mut [u8]) {
        let bytes = self.size * width;
        if self.size == 1 {
            read_each(width, source, offsets, out);
        } else if self.is_dense() {
            for (slots, offset) in out.chunks_mut(bytes).zip(offsets) {
                slots.copy_from_slice(&source[offset as usize * width..][..bytes]);
            }
        } else {
            let mut layout = self.layout.clone();
            for (slots, offset) in out.chunks_mut(bytes).zip(offsets) {
                layout.offset = offset as usize;
                gather_layout(width, source, &layout, 0, slots);
            }
        }
    }

    /// Writes windows to some offsets, one after the other.
    fn write(&self, width: usize, elements: &[u8], offsets: impl Iterator<Item = isize>, out: &mut [u8]) {
        let bytes = self.size * width;
        if self.size == 1 {
            write_each(width, elements, offsets, out);
        } else if self.is_dense() {
            for (elements, offset) in elements.chunks(bytes).zip(offsets) {
                out[offset as usize * width..][..bytes].copy_from_slice(elements);
            }
        } else {
            let mut layout = self.layout.clone();
            for (elements, offset) in elements.chunks(bytes).zip(offsets) {
                layout.offset = offset as usize;
                scatter(width, elements, out, &layout);
            }
        }
    }
}

fn read_each(width: usize, source: &[u8], offsets: impl Iterator<Item = isize>, out: &mut [u8]) {
    fn of<const N: usize>(source: &[u8], offsets: impl Iterator<Item = isize>, out: &mut [u8]) {
        let source = source.as_chunks::<N>().0;
        for (slot, offset) in out.as_chunks_mut::<N>().0.iter_mut().zip(offsets) {
            *slot = source[offset as usize];
        }
    }
    match width {
        1 => of::<1>(source, offsets, out),
        2 => of::<2>(source, offsets, out),
        4 => of::<4>(source, offsets, out),
        8 => of::<8>(source, offsets, out),
        _ => of::<16>(source, offsets, out),
    }
}

fn write_each(width: usize, elements: &[u8], offsets: impl Iterator<Item = isize>, out: &mut [u8]) {
    fn of<const N: usize>(elements: &[u8], offsets: impl Iterator<Item = isize>, out: &mut [u8]) {
        let out = out.as_chunks_mut::<N>().0;
        for (&element, offset) in elements.as_chunks::<N>().0.iter().zip(offsets) {
            out[offset as usize] = element;
        }
    }
    match width {
        1 => of::<1>(elements, offsets, out),
        2 => of::<2>(elements, offsets, out),
        4 => of::<4>(elements, offsets, out),
        8 => of::<8>(elements, offsets, out),
        _ => of::<16>(elements, offsets, out),
    }
}

/// A tensor of indices, and what they index: some axes of a tensor.
struct Indices<'a> {
    op: &'static str,
    dtype: DType,
    bytes: Cow<'a, [u8]>,
    /// Of the tensor that they index.
    shape: &'a [usize],
    axes: &'a [usize],
    strides: Strides,
    /// How many rows of one index for each of the axes.
    count: usize,
}

impl<'a> Indices<'a> {
    fn new(
        op: &'static str,
        tensor: &'a Tensor<'_>,
        shape: &'a [usize],
        axes: &'a [usize],
        strides: &[isize],
        count: usize,
    ) -> Result<Self, Error> {
        let dtype = tensor.dtype();
        if !dtype.is_integer() {
            let problem = format!("indices must be integers, got {dtype}");
            return Err(Error::Argument { op, problem });
        }
        if !axes.is_sorted_by(|a, b| a < b) || axes.iter().any(|&axis| axis >= shape.len()) {
            let problem = format!("axes {axes:?} must ascend and be less than the rank, {}", shape.len());
            return Err(Error::Argument { op, problem });
        }
        let strides = axes.iter().map(|&axis| strides[axis]).collect();
        Ok(Indices { op, dtype, bytes: tensor.dense(op)?, shape, axes, strides, count })
    }

    /// The offset of each row from the first element, or the first index that is
    /// out of bounds.
    fn offsets(&self, first: usize) -> Result<Vec<isize>, Error> {
        let mut offsets = scratch_of::<isize>(self.op, self.dtype, &[self.count], self.count)?;
        for (tile, offsets) in offsets.chunks_mut(ROWS).enumerate() {
            if !self.tile(first, tile * ROWS, offsets) {
                return Err(self.outside(tile * ROWS));
            }
        }
        Ok(offsets)
    }

    /// The offsets of up to `ROWS` rows from one on, and whether all are in bounds.
    fn tile(&self, first: usize, start: usize, offsets: &mut [isize]) -> bool {
        offsets.fill(first as isize);
        let (depth, width) = (self.axes.len(), self.dtype.width());
        let load = conversion(self.dtype, DType::S64);
        let mut lanes = [0; ROWS * 8];
        let mut inside = true;
        if depth == 0 {
            return inside;
        }
        // As many rows at once as have their indices in the lanes.
        let step = (ROWS / depth).max(1);
        for (i, offsets) in offsets.chunks_mut(step).enumerate() {
            let count = offsets.len() * depth;
            let bytes = &self.bytes[(start + i * step) * depth * width..][..count * width];
            let mut deep = Vec::new();
            let lanes = match load {
                Some(convert) if count <= ROWS => {
                    convert(bytes, &mut lanes[..count * 8]);
                    &lanes[..count * 8]
                }
                // A rank past all reason.
                Some(convert) => {
                    deep.resize(count * 8, 0);
                    convert(bytes, &mut deep);
                    &deep[..]
                }
                None => bytes,
            };
            let lanes = i64::view(lanes);
            for (axis, (&of, &stride)) in self.axes.iter().zip(&self.strides).enumerate() {
                let dim = self.shape[of] as u64;
                for (offset, &index) in offsets.iter_mut().zip(lanes[axis..].iter().step_by(depth)) {
                    let index = i64::load(index);
                    // A negative index is a large number.
                    inside &= (index as u64) < dim;
                    *offset = offset.wrapping_add((index as isize).wrapping_mul(stride));
                }
            }
        }
        inside
    }

    /// What is wrong with the first index that is out of bounds, from a row on.
    #[cold]
    fn outside(&self, row: usize) -> Error {
        let (depth, width) = (self.axes.len().max(1), self.dtype.width());
        let bytes = &self.bytes[row * depth * width..];
        for (i, index) in bytes.chunks_exact(width).enumerate() {
            let index = dispatch!(integer self.dtype, I => {
                let index = I::load(I::view(index)[0]).to_i64();
                if I::SIGNED { i128::from(index) } else { i128::from(index as u64) }
            }, else => unreachable!("indices are integers"));
            let axis = self.axes[i % depth];
            if usize::try_from(index).map_or(true, |index| index >= self.shape[axis]) {
                return Error::Index { op: self.op, index, axis, shape: self.shape.to_vec() };
            }
        }
        Error::Argument { op: self.op, problem: "an index is out of bounds".into() }
    }
}

/// The axes of a shape that are not among some.
fn other(rank: usize, axes: &[usize]) -> Shape {
    (0..rank).filter(|axis| !axes.contains(axis)).collect()
}

fn of<T: Copy>(values: &[T], axes: &[usize]) -> smallvec::SmallVec<[T; 4]> {
    axes.iter().map(|&axis| values[axis]).collect()
}

fn same_type(op: &'static str, out: &Output<'_>, input: &Tensor<'_>) -> Result<(), Error> {
    if out.dtype == input.dtype() {
        return Ok(());
    }
    Err(Error::UnsupportedType { op, dtypes: vec![input.dtype(), out.dtype] })
}

fn shapes(op: &'static str, shapes: &[&[usize]], problem: &str) -> Error {
    Error::Shape { op, shapes: shapes.iter().map(|s| s.to_vec()).collect(), problem: problem.into() }
}

/// `Nx.gather/3`: for each row along the last axis of `indices`, the elements at
/// these indices of `axes`. The shape of the result is that of the rows, then that
/// of the other axes.
///
/// # Errors
///
/// `Error::Index` for an index out of bounds, `Error::Shape` if shapes don't go
/// together, `Error::UnsupportedType` if `out` has another type than the tensor,
/// `Error::Argument` for axes that don't ascend or indices that aren't integers.
pub fn gather(
    out: Output<'_>,
    input: &Tensor<'_>,
    indices: &Tensor<'_>,
    axes: &[usize],
) -> Result<(), Error> {
    const OP: &str = "gather";
    same_type(OP, &out, input)?;
    let layout = input.layout();
    let count = indices.shape().iter().rev().skip(1).product();
    let rows = Indices::new(OP, indices, input.shape(), axes, &layout.strides, count)?;
    let rest = other(input.rank(), axes);
    let fits = indices.shape().split_last().is_some_and(|(&depth, batch)| {
        depth == axes.len() && batch.iter().chain(&of(&layout.shape, &rest)).eq(out.shape)
    });
    if !fits {
        let given = [input.shape(), indices.shape(), out.shape];
        return Err(shapes(OP, &given, &format!("don't go together with axes {axes:?}")));
    }
    let window = Window::new(&of(&layout.shape, &rest), &of(&layout.strides, &rest));
    read_windows(out, input, &window, &rows)
}

fn depth_of(indices: &Tensor<'_>) -> usize {
    indices.shape().last().copied().unwrap_or(0)
}

/// Writes the windows at rows of indices as the result.
fn read_windows(
    out: Output<'_>,
    input: &Tensor<'_>,
    window: &Window,
    rows: &Indices<'_>,
) -> Result<(), Error> {
    let width = input.dtype().width();
    let row = window.size * width;
    let first = input.layout().offset;
    out.write(rows.op, |out| {
        if out.is_empty() {
            return Ok(());
        }
        let read = parallel::try_fill(out, rows.count, row_cost(row), |start, part| {
            let mut offsets = [0; ROWS];
            for (i, slots) in part.chunks_mut(ROWS * row).enumerate() {
                let offsets = &mut offsets[..slots.len() / row];
                if !rows.tile(first, start + i * ROWS, offsets) {
                    return Err(());
                }
                window.read(width, input.bytes(), offsets.iter().copied(), slots);
            }
            Ok(())
        });
        // The first index that is out of bounds, whichever thread has met one.
        read.map_err(|()| rows.outside(0))
    })
}

/// `Nx.take/3`: the axis becomes those of `indices`, with the elements at them.
///
/// # Errors
///
/// As `gather`.
pub fn take(out: Output<'_>, input: &Tensor<'_>, indices: &Tensor<'_>, axis: usize) -> Result<(), Error> {
    const OP: &str = "take";
    same_type(OP, &out, input)?;
    let Layout { shape, strides, offset } = &*input.layout();
    let axes = [axis];
    let rows = Indices::new(OP, indices, input.shape(), &axes, strides, indices.size())?;
    let (before, after) = (&shape[..axis], &shape[axis + 1..]);
    if !before.iter().chain(indices.shape()).chain(after).eq(out.shape) {
        let given = [input.shape(), indices.shape(), out.shape];
        return Err(shapes(OP, &given, &format!("don't go together along axis {axis}")));
    }
    let window = Window::new(after, &strides[axis + 1..]);
    if axis == 0 {
        return read_windows(out, input, &window, &rows);
    }
    let offsets = rows.offsets(*offset)?;
    let width = input.dtype().width();
    let row = window.size * width;
    out.write(OP, |out| {
        if out.is_empty() {
            return Ok(());
        }
        let count = offsets.len();
        let rows = out.len() / row;
        parallel::fill(out, rows, row_cost(row), |start, part| {
            let mut rest = part;
            let mut position = start;
            while !rest.is_empty() {
                // To the end of the indices, for one place on the axes before.
                let skipped = position % count;
                let run = (count - skipped).min(rest.len() / row);
                let base = index_of(before, &strides[..axis], 0, position / count);
                let (head, tail) = rest.split_at_mut(run * row);
                window.read(width, input.bytes(), offsets[skipped..].iter().map(|o| o + base), head);
                position += run;
                rest = tail;
            }
        });
        Ok(())
    })
}

/// `Nx.take_along_axis/3`: each element of the result is at the same place of the
/// tensor, but for the axis, where it is at its index.
///
/// # Errors
///
/// As `gather`.
pub fn take_along_axis(
    out: Output<'_>,
    input: &Tensor<'_>,
    indices: &Tensor<'_>,
    axis: usize,
) -> Result<(), Error> {
    const OP: &str = "take_along_axis";
    same_type(OP, &out, input)?;
    let shape = input.shape();
    let axes = [axis];
    let rows = Indices::new(OP, indices, shape, &axes, &input.layout().strides, indices.size())?;
    let wanted = indices.shape();
    let fits = wanted.len() == shape.len() && (0..shape.len()).all(|a| a == axis || wanted[a] == shape[a]);
    if !fits || out.shape != wanted {
        let given = [shape, wanted, out.shape];
        return Err(shapes(OP, &given, &format!("differ in another axis than {axis}")));
    }
    let (dim, after) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    let (width, picked) = (input.dtype().width(), wanted[axis]);
    let bytes = input.dense(OP)?;
    let job = Along { source: &bytes, dim, after, picked };
    let size = rows.count;
    out.write(OP, |out| {
        let index_width = rows.dtype.width();
        let picked = parallel::try_fill(out, size, FAR, |start, part| {
            let indices = &rows.bytes[start * index_width..];
            let mut pick = || {
                dispatch!(integer rows.dtype, I => match width {
                    1 => job.pick::<1, I>(start, indices, part),
                    2 => job.pick::<2, I>(start, indices, part),
                    4 => job.pick::<4, I>(start, indices, part),
                    8 => job.pick::<8, I>(start, indices, part),
                    _ => job.pick::<16, I>(start, indices, part),
                }, else => unreachable!("indices are integers"))
            };
            if pick() { Ok(()) } else { Err(()) }
        });
        // The first index that is out of bounds, whichever thread has met one.
        picked.map_err(|()| rows.outside(0))
    })
}

/// What `take_along_axis` reads from.
struct Along<'a> {
    source: &'a [u8],
    dim: usize,
    after: usize,
    picked: usize,
}

impl Along<'_> {
    /// Whether all indices are within bounds.
    fn pick<const N: usize, I: Element>(&self, start: usize, indices: &[u8], out: &mut [u8]) -> bool {
        let source = self.source.as_chunks::<N>().0;
        let (mut indices, mut slots) = (I::view(indices), out.as_chunks_mut::<N>().0);
        let mut position = start;
        while !slots.is_empty() {
            // A run of places that share all but the last of the axes.
            let (row, column) = (position / self.after, position % self.after);
            let base = row / self.picked * self.dim * self.after;
            let (run, same) =
                if self.after == 1 { (self.picked - row % self.picked, 0) } else { (self.after - column, 1) };
            let run = run.min(slots.len());
            let (head, tail) = slots.split_at_mut(run);
            for (i, (slot, &index)) in head.iter_mut().zip(indices).enumerate() {
                let index = I::load(index).to_i64() as u64;
                if index >= self.dim as u64 {
                    return false;
                }
                *slot = source[base + index as usize * self.after + column + i * same];
            }
            indices = &indices[run..];
            position += run;
            slots = tail;
        }
        true
    }
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
    let offsets = rows.offsets(0)?;
    let source = target.dense(op)?;
    let dtype = out.dtype;
    let size = target.size();
    out.write(op, |out| {
        convert(target.dtype(), &source, dtype, size, out);
        if window.size == 0 || offsets.is_empty() {
            return Ok(());
        }
        let target = Target { op, source: &source, from: target.dtype(), to: dtype, window: &window };
        match update {
            Update::Put => {
                let updates = elements(op, updates, dtype)?;
                window.write(dtype.width(), &updates, offsets.iter().copied(), out);
                Ok(())
            }
            Update::Add if dtype.is_integer() => {
                let updates = elements(op, updates, dtype)?;
                dispatch!(integer dtype, T => add_integers::<T>(&window, &offsets, &updates, out), else => ());
                Ok(())
            }
            Update::Add if dtype.is_complex() => {
                target.add::<Complex<f64>>(&offsets, updates, DType::C128, out)
            }
            Update::Add => target.add::<f64>(&offsets, updates, DType::F64, out),
        }
    })
}

/// The elements of a tensor as another type, dense.
fn elements<'a>(op: &'static str, tensor: &'a Tensor<'_>, dtype: DType) -> Result<Cow<'a, [u8]>, Error> {
    let dense = tensor.dense(op)?;
    if tensor.dtype() == dtype {
        return Ok(dense);
    }
    let mut out = scratch(op, dtype, tensor.shape(), tensor.size() * dtype.width())?;
    convert(tensor.dtype(), &dense, dtype, tensor.size(), &mut out);
    Ok(Cow::Owned(out))
}

/// Calls `update(place, index)` for every element of the updates in turn.
#[inline(always)]
fn each_update(window: &Window, offsets: &[isize], mut update: impl FnMut(usize, usize)) {
    if window.size == 1 {
        for (i, &offset) in offsets.iter().enumerate() {
            update(offset as usize, i);
        }
        return;
    }
    let Layout { shape, strides, .. } = &window.layout;
    // Rows along the last of the window's axes.
    let (&run, outer) = shape.split_last().unwrap_or((&1, &[]));
    let step = strides.last().copied().unwrap_or(1);
    let mut i = 0;
    for &offset in offsets {
        for row in 0..window.size / run {
            let first = index_of(outer, strides, offset as usize, row);
            for j in 0..run as isize {
                update((first + j * step) as usize, i);
                i += 1;
            }
        }
    }
}

/// Sums of integers wrap, so that their order doesn't matter.
fn add_integers<T: Element>(window: &Window, offsets: &[isize], updates: &[u8], out: &mut [u8]) {
    let (updates, out) = (T::view(updates), T::view_mut(out));
    each_update(window, offsets, |place, i| {
        let sum = T::load(out[place]).to_i64().wrapping_add(T::load(updates[i]).to_i64());
        out[place] = T::from_i64(sum).store();
    });
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
    /// A number plus zero, which is no negative zero.
    fn first(self) -> Self;
}

impl Total for f64 {
    #[inline(always)]
    fn first(self) -> Self {
        self + 0.0
    }
}

impl Total for Complex<f64> {
    #[inline(always)]
    fn first(self) -> Self {
        Complex::new(self.re + 0.0, self.im)
    }
}

impl Target<'_> {
    /// Adds up updates in lanes of `L`, those of one offset after the other.
    fn add<L: Total>(
        &self,
        offsets: &[isize],
        updates: &Tensor<'_>,
        lane: DType,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let updates = elements(self.op, updates, lane)?;
        let updates = L::view(&updates);
        if self.source.len() / self.from.width() <= DENSE * updates.len() {
            return self.add_dense::<L>(offsets, updates, lane, out);
        }
        let size = self.window.size;
        let tile = (TILE / size).clamp(1, offsets.len());
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
                    let update = L::load(update);
                    *sum = if next { update.first() } else { L::load(*sum) + update }.store();
                }
                rows.next();
            }
            let count = places.len() * size;
            let from = &mut from[..count * self.from.width()];
            self.window.read(self.from.width(), self.source, places.iter().copied(), from);
            convert(self.from, from, lane, count, &mut lanes[..count * lane.width()]);
            for (lane, &sum) in L::view_mut(&mut lanes)[..count].iter_mut().zip(L::view(&sums)) {
                *lane = (L::load(*lane) + L::load(sum)).store();
            }
            let to = &mut to[..count * self.to.width()];
            convert(lane, &lanes[..count * lane.width()], self.to, count, to);
            self.window.write(self.to.width(), to, places.iter().copied(), out);
        }
        Ok(())
    }

    /// `add` with a total for every element of the target.
    fn add_dense<L: Total>(
        &self,
        offsets: &[isize],
        updates: &[L::Bytes],
        lane: DType,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let (from, to, wide) = (self.from.width(), self.to.width(), lane.width());
        let size = self.source.len() / from;
        let mut totals = scratch(self.op, lane, &[size], size * wide)?;
        let mut touched = scratch_of::<bool>(self.op, DType::U8, &[size], size)?;
        {
            let totals = L::view_mut(&mut totals);
            each_update(self.window, offsets, |place, i| {
                let (update, total) = (L::load(updates[i]), L::load(totals[place]));
                let first = !std::mem::replace(&mut touched[place], true);
                totals[place] = if first { update.first() } else { total + update }.store();
            });
        }
        let cost = cast::cost(self.from, lane) + cast::cost(lane, self.to);
        parallel::fill(out, size, cost, |start, part| {
            let mut lanes = [0; TOTALS * 16];
            let mut rounded = [0; TOTALS * 16];
            for (i, slots) in part.chunks_mut(TOTALS * to).enumerate() {
                let (first, count) = (start + i * TOTALS, slots.len() / to);
                let touched = &touched[first..first + count];
                if !touched.contains(&true) {
                    continue;
                }
                let (lanes, rounded) = (&mut lanes[..count * wide], &mut rounded[..count * to]);
                let source = &self.source[first * from..][..count * from];
                match conversion(self.from, lane) {
                    Some(convert) => convert(source, lanes),
                    None => lanes.copy_from_slice(source),
                }
                let totals = L::view(&totals[first * wide..]);
                for (lane, &total) in L::view_mut(lanes).iter_mut().zip(totals) {
                    *lane = (L::load(*lane) + L::load(total)).store();
                }
                match conversion(lane, self.to) {
                    Some(convert) => convert(lanes, rounded),
                    None => rounded.copy_from_slice(lanes),
                }
                for ((slot, rounded), &touched) in
                    slots.chunks_exact_mut(to).zip(rounded.chunks_exact(to)).zip(touched)
                {
                    if touched {
                        slot.copy_from_slice(rounded);
                    }
                }
            }
        });
        Ok(())
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

    fn order_by<C: Indexed>(&self, offsets: &[isize]) -> Result<Vec<usize>, Error> {
        let bytes = C::BYTES / 2..C::BYTES;
        let length = offsets.len();
        let memory = |length| scratch_of::<C>(self.op, DType::U64, &[length], length);
        let mut entries = memory(length)?;
        for (i, (entry, &offset)) in entries.iter_mut().zip(offsets).enumerate() {
            *entry = C::join(offset as u64, i);
        }
        radix::sort(&mut entries, &mut memory(radix::spare(length, &bytes))?, bytes);
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
    let source = input.dense(OP)?;
    let (dtype, size) = (out.dtype, input.size());
    let slice = elements(OP, slice, dtype)?;
    out.write(OP, |out| {
        convert(input.dtype(), &source, dtype, size, out);
        if window.size > 0 {
            window.write(dtype.width(), &slice, std::iter::once(offset), out);
        }
        Ok(())
    })
}
