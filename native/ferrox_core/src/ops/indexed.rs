//! Elements by their indices: `Nx.gather/3`, `Nx.take/3`, `Nx.take_along_axis/3`,
//! `Nx.indexed_add/4`, `Nx.indexed_put/4` and `Nx.put_slice/3`.
//!
//! Indices first become offsets, whose bounds are checked on the way; then
//! windows, which are what remains of a tensor where some of its axes are fixed,
//! are copied from or to these offsets.

mod parts;
mod update;

use std::borrow::Cow;
use std::ops::Range;

pub use self::update::{Update, indexed, put_slice, write_work};
use crate::cost::{self, Cost, Work};
use crate::dtype::{Element, Lane};
use crate::exec::copy;
use crate::exec::memory::scratch_of;
use crate::exec::simd::{self, Vectorized};
use crate::exec::threads::{cooperative_yield, parallel};
use crate::layout::{Layout, Shape, Strides, collapse, index_of};
use crate::ops::shape;
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, dispatch};

/// A read anywhere in memory, with what finds the place.
const READ: Cost = 700;

/// A write anywhere in memory, with what finds the place.
const WRITE: Cost = 1_500;

/// Rows of indices whose offsets are computed at once.
const ROWS: usize = 256;

/// A source of more bytes is in no cache, wherever it is read. (`kernels`: gather; of 10 MB, which a
/// third-level cache holds, looking ahead takes a third longer, and of 40 MB half as long.)
const FAR: usize = 16 << 20;

/// Rows that elements are taken from side by side.
const SIDE_BY_SIDE: usize = 4;

/// A row of so many bytes.
fn row_cost(bytes: usize) -> Cost {
    READ.saturating_add(50 * bytes as Cost)
}

/// The work of reading so many elements of a type by so many rows of indices.
#[must_use]
pub fn read_work(dtype: DType, elements: usize, rows: usize) -> Work {
    cost::work(rows, READ).saturating_add(cost::work(elements, shape::cost(dtype)))
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
            collapse(shape, strides)
        };
        Window { layout: Layout { shape, strides, offset: 0 }, size }
    }

    /// To be called after updates of so many, in a call that goes on.
    fn pause_after(&self, count: usize) {
        cooperative_yield::after(cost::work(count * self.size, WRITE));
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
                copy::gather(width, source, &layout, 0, slots);
            }
        }
    }

    /// Writes windows to some offsets, one after the other.
    fn write(&self, width: usize, elements: &[u8], offsets: impl Iterator<Item = isize>, out: &mut [u8]) {
        let bytes = self.size * width;
        if self.size == 1 {
            write_each(width, elements, offsets, out);
        } else if self.is_dense() {
            for (elements, offset) in elements.chunks(bytes.max(1)).zip(offsets) {
                out[offset as usize * width..][..bytes].copy_from_slice(elements);
            }
        } else {
            let mut layout = self.layout.clone();
            for (elements, offset) in elements.chunks(bytes).zip(offsets) {
                layout.offset = offset as usize;
                copy::scatter(width, elements, out, &layout);
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
        Ok(Indices { op, dtype, bytes: copy::dense(op, tensor)?, shape, axes, strides, count })
    }

    /// The offset of each row from the first element, or the first index that is
    /// out of bounds.
    fn offsets(&self, first: usize) -> Result<Vec<isize>, Error> {
        let mut offsets = scratch_of::<isize>(self.op, self.dtype, &[self.count], self.count)?;
        if self.tile(first, 0, &mut offsets) { Ok(offsets) } else { Err(self.outside(0)) }
    }

    /// Calls `each(row, offsets, next)` for up to `ROWS` of some rows at a time, until an
    /// index is out of bounds: the offsets, from `first`, of `row` and those behind it, and
    /// those that come next, so that what they are for can be on its way.
    fn each_tile(
        &self,
        first: usize,
        rows: Range<usize>,
        mut each: impl FnMut(usize, &[isize], &[isize]),
    ) -> Result<(), Error> {
        let tile = |start: usize, offsets: &mut [isize; ROWS]| {
            let count = ROWS.min(rows.end - start);
            let inside = count == 0 || self.tile(first, start, &mut offsets[..count]);
            if inside { Ok(count) } else { Err(self.outside(start)) }
        };
        let (mut offsets, mut next) = (&mut [0; ROWS], &mut [0; ROWS]);
        let (mut start, mut count) = (rows.start, tile(rows.start, offsets)?);
        while count > 0 {
            let following = tile(start + count, next)?;
            each(start, &offsets[..count], &next[..following]);
            std::mem::swap(&mut offsets, &mut next);
            (start, count) = (start + count, following);
        }
        Ok(())
    }

    /// The offsets of rows from one on, and whether all are in bounds.
    fn tile(&self, first: usize, start: usize, offsets: &mut [isize]) -> bool {
        offsets.fill(first as isize);
        let (depth, width) = (self.axes.len(), self.dtype.width());
        let bytes = &self.bytes[start * depth * width..];
        simd::prefetch_ahead(&bytes[..offsets.len() * depth * width]);
        self.axes.iter().zip(&self.strides).enumerate().fold(true, |inside, (axis, (&of, &stride))| {
            let dim = self.shape[of] as u64;
            inside
                & dispatch!(integer self.dtype, I => {
                    let indices = &I::view(bytes)[axis..];
                    simd::dispatch(Steps::<I> { indices, depth, dim, stride, offsets: &mut *offsets })
                }, else => unreachable!("indices are integers"))
        })
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

/// Adds every `depth`-th index, times the stride of its axis, to an offset.
struct Steps<'a, I: Element> {
    indices: &'a [I::Bytes],
    depth: usize,
    dim: u64,
    stride: isize,
    offsets: &'a mut [isize],
}

impl<I: Element> Vectorized for Steps<'_, I> {
    /// Whether all indices are in bounds.
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let (indices, depth) = (self.indices, self.depth);
        // The compiler makes vectors of the first, and fewer steps where nothing is multiplied.
        match (depth, self.stride) {
            (1, 1) => Steps { stride: 1, ..self }.add(indices.iter()),
            (1, _) => self.add(indices.iter()),
            _ => self.add(indices.iter().step_by(depth)),
        }
    }
}

impl<'a, I: Element> Steps<'a, I> {
    #[inline(always)]
    fn add(self, indices: impl Iterator<Item = &'a I::Bytes>) -> bool {
        let mut inside = true;
        for (offset, &index) in self.offsets.iter_mut().zip(indices) {
            let index = I::load(index).to_i64();
            // A negative index is a large number.
            inside &= (index as u64) < self.dim;
            *offset = offset.wrapping_add((index as isize).wrapping_mul(self.stride));
        }
        inside
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
        let bytes = input.bytes();
        let far = bytes.len() > FAR && row <= simd::CACHE_LINE_BYTES;
        let read = parallel::try_fill(out, rows.count, row_cost(row), |start, part| {
            rows.each_tile(first, start..start + part.len() / row, |at, offsets, next| {
                if far {
                    next.iter().for_each(|&offset| simd::prefetch(bytes, offset as usize * width));
                }
                let slots = &mut part[(at - start) * row..][..offsets.len() * row];
                window.read(width, bytes, offsets.iter().copied(), slots);
            })
        });
        // The first index that is out of bounds, whichever thread has met one.
        read.map_err(|_| rows.outside(0))
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
        let dim = shape[axis];
        if window.size == 1 && *offset == 0 && rows >= SIDE_BY_SIDE * count && input.contiguous().is_some() {
            let cost = READ.saturating_mul(count as Cost);
            parallel::fill(out, rows / count, cost, |start, part| {
                let source = &input.bytes()[start * dim * width..];
                match width {
                    1 => take_columns::<1>(source, dim, &offsets, part),
                    2 => take_columns::<2>(source, dim, &offsets, part),
                    4 => take_columns::<4>(source, dim, &offsets, part),
                    8 => take_columns::<8>(source, dim, &offsets, part),
                    _ => take_columns::<16>(source, dim, &offsets, part),
                }
            });
            return Ok(());
        }
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

/// Takes elements of rows of `dim`, of several rows for each place.
fn take_columns<const N: usize>(source: &[u8], dim: usize, places: &[isize], out: &mut [u8]) {
    let (source, out) = (source.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    let mut rows = source.chunks_exact(dim);
    for out in out.chunks_mut(SIDE_BY_SIDE * places.len()) {
        if out.len() == SIDE_BY_SIDE * places.len()
            && let (Some(a), Some(b), Some(c), Some(d)) = (rows.next(), rows.next(), rows.next(), rows.next())
        {
            let (a, b, c, d) = (&a[..dim], &b[..dim], &c[..dim], &d[..dim]);
            let (head, tail) = out.split_at_mut(2 * places.len());
            let (to_a, to_b) = head.split_at_mut(places.len());
            let (to_c, to_d) = tail.split_at_mut(places.len());
            let slots = to_a.iter_mut().zip(to_b).zip(to_c.iter_mut().zip(to_d));
            for (((to_a, to_b), (to_c, to_d)), &place) in slots.zip(places) {
                let place = place as usize;
                (*to_a, *to_b, *to_c, *to_d) = (a[place], b[place], c[place], d[place]);
            }
            continue;
        }
        for (out, row) in out.chunks_mut(places.len()).zip(&mut rows) {
            for (slot, &place) in out.iter_mut().zip(places) {
                *slot = row[place as usize];
            }
        }
    }
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
    let bytes = copy::dense(OP, input)?;
    let job = Along { source: &bytes, dim, after, picked };
    let size = rows.count;
    out.write(OP, |out| {
        let index_width = rows.dtype.width();
        let picked = parallel::try_fill(out, size, READ, |start, part| {
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

/// Calls `update(place, index)` for every element of the updates in turn.
#[inline(always)]
fn each_update(window: &Window, offsets: &[isize], mut update: impl FnMut(usize, usize)) {
    if window.size == 1 {
        for (i, &offset) in offsets.iter().enumerate() {
            update(offset as usize, i);
        }
        return;
    }
    if window.size == 0 {
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
