//! Elements by their indices: `Nx.gather/3`, `Nx.take/3`, `Nx.take_along_axis/3`,
//! `Nx.indexed_add/4`, `Nx.indexed_put/4` and `Nx.put_slice/3`.
//!
//! Indices are checked and converted to offsets of windows in the tensor, which are then copied
//! from or to these offsets. A window has the axes that are not indexed, as in XLA's gather and
//! scatter.

mod parts;
mod update;

use std::borrow::Cow;
use std::ops::Range;

pub use self::update::{
    Update, indexed, indexed_in_place, is_in_place, put_slice, put_slice_in_place, write_work,
};
use crate::cost::{
    self, Cost, GATHER_COST, GATHERED_BYTE_COST, MIN_SOURCE_BYTES_TO_PREFETCH, SCATTER_COST, TAKEN_RUN_COST,
    Work,
};
use crate::dtype::{Element, Lane};
use crate::exec::copy;
use crate::exec::memory::scratch_of;
use crate::exec::simd::{self, Vectorized};
use crate::exec::threads::{cooperative_yield, parallel};
use crate::layout::{Layout, Shape, Strides, collapse, index_of, other_axes};
use crate::ops::shape;
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, dispatch};

/// The number of rows of indices whose offsets are computed at once.
const OFFSET_TILE_ROWS: usize = 256;

/// The number of rows that `take_columns` takes elements from side by side.
const INTERLEAVED_ROWS: usize = 4;

/// The cost of reading a window of `bytes` bytes.
fn window_cost(bytes: usize) -> Cost {
    GATHER_COST.saturating_add(GATHERED_BYTE_COST * bytes as Cost)
}

/// The work of reading `elements` elements by `rows` rows of indices.
#[must_use]
pub fn read_work(dtype: DType, elements: usize, rows: usize) -> Work {
    cost::work(rows, GATHER_COST).saturating_add(cost::work(elements, shape::cost(dtype)))
}

/// The work of taking rows of an axis of a tensor of some type and shape at `indices` indices, to a result
/// of `elements` elements.
#[must_use]
pub fn take_work((dtype, shape): (DType, &[usize]), indices: usize, axis: usize, elements: usize) -> Work {
    let rows = shape.iter().take(axis).fold(indices, |rows, &dim| rows.saturating_mul(dim));
    read_work(dtype, elements, rows)
}

/// The work of taking elements along an axis, to a result of some shape.
#[must_use]
pub fn take_along_work(dtype: DType, shape: &[usize], axis: usize) -> Work {
    let product = |axes: &[usize]| axes.iter().fold(1, |size: usize, &dim| size.saturating_mul(dim));
    let elements = product(shape);
    let after = product(shape.get(axis.saturating_add(1)..).unwrap_or_default());
    let run = if after == 1 { shape.get(axis).copied().unwrap_or(1) } else { after };
    let runs = cost::work(elements / run.max(1), TAKEN_RUN_COST);
    read_work(dtype, elements, elements).saturating_add(runs)
}

/// The axes that are not indexed: the elements at each offset.
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

    /// Lets the VM's threads in, after `count` windows have been written.
    fn yield_after(&self, count: usize) {
        cooperative_yield::after(cost::work(count * self.size, SCATTER_COST));
    }

    fn is_dense(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// Copies the windows at `offsets` to `out`, one after the other.
    fn read(&self, width: usize, source: &[u8], offsets: impl Iterator<Item = isize>, out: &mut [u8]) {
        let bytes = self.size * width;
        if self.size == 1 {
            dispatch!(width width, N => read_elements::<N>(source, offsets, out));
        } else if self.is_dense() {
            for (slots, offset) in out.chunks_mut(bytes).zip(offsets) {
                copy::few(&source[offset as usize * width..], slots);
            }
        } else {
            let mut layout = self.layout.clone();
            for (slots, offset) in out.chunks_mut(bytes).zip(offsets) {
                layout.offset = offset as usize;
                copy::gather(width, source, &layout, 0, slots);
            }
        }
    }

    /// Writes windows, which follow each other in `elements`, to `offsets`.
    fn write(&self, width: usize, elements: &[u8], offsets: impl Iterator<Item = isize>, out: &mut [u8]) {
        let bytes = self.size * width;
        if self.size == 1 {
            dispatch!(width width, N => write_elements::<N>(elements, offsets, out));
        } else if self.is_dense() {
            for (elements, offset) in elements.chunks(bytes.max(1)).zip(offsets) {
                copy::few(elements, &mut out[offset as usize * width..][..bytes]);
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

fn read_elements<const N: usize>(source: &[u8], offsets: impl Iterator<Item = isize>, out: &mut [u8]) {
    let source = source.as_chunks::<N>().0;
    for (slot, offset) in out.as_chunks_mut::<N>().0.iter_mut().zip(offsets) {
        *slot = source[offset as usize];
    }
}

fn write_elements<const N: usize>(elements: &[u8], offsets: impl Iterator<Item = isize>, out: &mut [u8]) {
    let out = out.as_chunks_mut::<N>().0;
    for (&element, offset) in elements.as_chunks::<N>().0.iter().zip(offsets) {
        out[offset as usize] = element;
    }
}

/// Rows of indices, one for each of some axes of a tensor.
struct Indices<'a> {
    op: &'static str,
    dtype: DType,
    bytes: Cow<'a, [u8]>,
    /// The shape of the tensor.
    shape: &'a [usize],
    axes: &'a [usize],
    /// The strides of the indexed axes.
    strides: Strides,
    /// The number of rows.
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

    /// The offset of each row, where `first` is the offset of the tensor's first element.
    fn offsets(&self, first: usize) -> Result<Vec<isize>, Error> {
        let mut offsets = scratch_of::<isize>(self.op, self.dtype, &[self.count], self.count)?;
        if self.compute_offsets(first, 0, &mut offsets) { Ok(offsets) } else { Err(self.out_of_bounds(0)) }
    }

    /// Calls `each(row, offsets, next)` for tiles of at most `OFFSET_TILE_ROWS` rows, until an
    /// index is out of bounds. `row` is the first row of the tile, `offsets` are the offsets of its
    /// rows, and `next` the offsets of the next tile, whose windows may be prefetched.
    fn for_each_tile(
        &self,
        first: usize,
        rows: Range<usize>,
        mut each: impl FnMut(usize, &[isize], &[isize]),
    ) -> Result<(), Error> {
        let next_tile = |start: usize, offsets: &mut [isize; OFFSET_TILE_ROWS]| {
            let count = OFFSET_TILE_ROWS.min(rows.end - start);
            let inside = count == 0 || self.compute_offsets(first, start, &mut offsets[..count]);
            if inside { Ok(count) } else { Err(self.out_of_bounds(start)) }
        };
        let (mut offsets, mut next) = (&mut [0; OFFSET_TILE_ROWS], &mut [0; OFFSET_TILE_ROWS]);
        let (mut start, mut count) = (rows.start, next_tile(rows.start, offsets)?);
        while count > 0 {
            let following = next_tile(start + count, next)?;
            each(start, &offsets[..count], &next[..following]);
            std::mem::swap(&mut offsets, &mut next);
            (start, count) = (start + count, following);
        }
        Ok(())
    }

    /// Computes the offsets of rows from `start` on. Returns whether all indices are in bounds.
    fn compute_offsets(&self, first: usize, start: usize, offsets: &mut [isize]) -> bool {
        offsets.fill(first as isize);
        let (depth, width) = (self.axes.len(), self.dtype.width());
        let bytes = &self.bytes[start * depth * width..];
        simd::prefetch_ahead(&bytes[..offsets.len() * depth * width]);
        self.axes.iter().zip(&self.strides).enumerate().fold(true, |inside, (i, (&axis, &stride))| {
            let dim = self.shape[axis] as u64;
            inside
                & dispatch!(integer self.dtype, I => {
                    let indices = &I::view(bytes)[i..];
                    simd::dispatch(OffsetLoop::<I> { indices, depth, dim, stride, offsets: &mut *offsets })
                }, else => unreachable!("indices are integers"))
        })
    }

    /// The error for the first index, from a row on, that is out of bounds. Where threads share the
    /// rows, the error is that of all rows, whichever thread has found an index.
    #[cold]
    fn out_of_bounds(&self, row: usize) -> Error {
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

/// Adds every `depth`-th index, multiplied by the stride of its axis, to an offset. The output is
/// whether all indices are in bounds.
struct OffsetLoop<'a, I: Element> {
    indices: &'a [I::Bytes],
    depth: usize,
    dim: u64,
    stride: isize,
    offsets: &'a mut [isize],
}

impl<I: Element> Vectorized for OffsetLoop<'_, I> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let (indices, depth) = (self.indices, self.depth);
        // Separate loops: the compiler vectorizes the first one, and drops the multiplication by 1.
        match (depth, self.stride) {
            (1, 1) => OffsetLoop { stride: 1, ..self }.add(indices.iter()),
            (1, _) => self.add(indices.iter()),
            _ => self.add(indices.iter().step_by(depth)),
        }
    }
}

impl<'a, I: Element> OffsetLoop<'a, I> {
    #[inline(always)]
    fn add(self, indices: impl Iterator<Item = &'a I::Bytes>) -> bool {
        let mut inside = true;
        for (offset, &index) in self.offsets.iter_mut().zip(indices) {
            let index = I::load(index).to_i64();
            // A negative index becomes a large number.
            inside &= (index as u64) < self.dim;
            *offset = offset.wrapping_add((index as isize).wrapping_mul(self.stride));
        }
        inside
    }
}

fn values_at<T: Copy>(values: &[T], axes: &[usize]) -> smallvec::SmallVec<[T; 4]> {
    axes.iter().map(|&axis| values[axis]).collect()
}

fn check_same_type(op: &'static str, out: &Output<'_>, input: &Tensor<'_>) -> Result<(), Error> {
    if out.dtype == input.dtype() {
        return Ok(());
    }
    Err(Error::UnsupportedType { op, dtypes: vec![input.dtype(), out.dtype] })
}

fn shape_error(op: &'static str, shapes: &[&[usize]], problem: &str) -> Error {
    Error::Shape { op, shapes: shapes.iter().map(|s| s.to_vec()).collect(), problem: problem.into() }
}

/// `Nx.gather/3`: for each row of indices along the last axis of `indices`, the elements at these
/// indices of `axes`. The shape of the result is that of `indices` without its last axis, followed
/// by the axes of the tensor that are not in `axes`.
///
/// # Errors
///
/// `Error::Index` for an index out of bounds, `Error::Shape` if the shapes don't match,
/// `Error::UnsupportedType` if `out` has another type than the tensor, `Error::Argument` for axes
/// that don't ascend or indices that aren't integers.
pub fn gather(
    out: Output<'_>,
    input: &Tensor<'_>,
    indices: &Tensor<'_>,
    axes: &[usize],
) -> Result<(), Error> {
    const OP: &str = "gather";
    check_same_type(OP, &out, input)?;
    let layout = input.layout();
    let count = indices.shape().iter().rev().skip(1).product();
    let rows = Indices::new(OP, indices, input.shape(), axes, &layout.strides, count)?;
    let others = other_axes(input.rank(), axes);
    let fits = indices.shape().split_last().is_some_and(|(&depth, batch)| {
        depth == axes.len() && batch.iter().chain(&values_at(&layout.shape, &others)).eq(out.shape)
    });
    if !fits {
        let given = [input.shape(), indices.shape(), out.shape];
        return Err(shape_error(OP, &given, &format!("don't go together with axes {axes:?}")));
    }
    let window = Window::new(&values_at(&layout.shape, &others), &values_at(&layout.strides, &others));
    read_windows(out, input, &window, &rows)
}

fn depth_of(indices: &Tensor<'_>) -> usize {
    indices.shape().last().copied().unwrap_or(0)
}

/// Writes the window at each row of indices to `out`.
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
        let prefetches = bytes.len() > MIN_SOURCE_BYTES_TO_PREFETCH && row <= simd::CACHE_LINE_BYTES;
        let read = parallel::try_fill(out, rows.count, window_cost(row), |start, part| {
            rows.for_each_tile(first, start..start + part.len() / row, |at, offsets, next| {
                if prefetches {
                    next.iter().for_each(|&offset| simd::prefetch(bytes, offset as usize * width));
                }
                let slots = &mut part[(at - start) * row..][..offsets.len() * row];
                window.read(width, bytes, offsets.iter().copied(), slots);
            })
        });
        read.map_err(|_| rows.out_of_bounds(0))
    })
}

/// `Nx.take/3`: the elements at `indices` of the axis, which is replaced by the axes of `indices`.
///
/// # Errors
///
/// The errors of [`gather`].
pub fn take(out: Output<'_>, input: &Tensor<'_>, indices: &Tensor<'_>, axis: usize) -> Result<(), Error> {
    const OP: &str = "take";
    check_same_type(OP, &out, input)?;
    let Layout { shape, strides, offset } = &*input.layout();
    let axes = [axis];
    let rows = Indices::new(OP, indices, input.shape(), &axes, strides, indices.size())?;
    let (before, after) = (&shape[..axis], &shape[axis + 1..]);
    if !before.iter().chain(indices.shape()).chain(after).eq(out.shape) {
        let given = [input.shape(), indices.shape(), out.shape];
        return Err(shape_error(OP, &given, &format!("don't go together along axis {axis}")));
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
        if window.size == 1
            && *offset == 0
            && rows >= INTERLEAVED_ROWS * count
            && input.contiguous().is_some()
        {
            let cost = GATHER_COST.saturating_mul(count as Cost);
            parallel::fill(out, rows / count, cost, |start, part| {
                let source = &input.bytes()[start * dim * width..];
                dispatch!(width width, N => take_columns::<N>(source, dim, &offsets, part));
            });
            return Ok(());
        }
        parallel::fill(out, rows, window_cost(row), |start, part| {
            let mut rest = part;
            let mut position = start;
            while !rest.is_empty() {
                // The rest of the indices, for one index of the axes before.
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

/// Takes the elements at `columns` of each row of `dim` elements, of several rows side by side.
fn take_columns<const N: usize>(source: &[u8], dim: usize, columns: &[isize], out: &mut [u8]) {
    let (source, out) = (source.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    let mut rows = source.chunks_exact(dim);
    for out in out.chunks_mut(INTERLEAVED_ROWS * columns.len()) {
        if out.len() == INTERLEAVED_ROWS * columns.len()
            && let (Some(a), Some(b), Some(c), Some(d)) = (rows.next(), rows.next(), rows.next(), rows.next())
        {
            let (a, b, c, d) = (&a[..dim], &b[..dim], &c[..dim], &d[..dim]);
            let (head, tail) = out.split_at_mut(2 * columns.len());
            let (to_a, to_b) = head.split_at_mut(columns.len());
            let (to_c, to_d) = tail.split_at_mut(columns.len());
            let slots = to_a.iter_mut().zip(to_b).zip(to_c.iter_mut().zip(to_d));
            for (((to_a, to_b), (to_c, to_d)), &column) in slots.zip(columns) {
                let column = column as usize;
                (*to_a, *to_b, *to_c, *to_d) = (a[column], b[column], c[column], d[column]);
            }
            continue;
        }
        for (out, row) in out.chunks_mut(columns.len()).zip(&mut rows) {
            for (slot, &column) in out.iter_mut().zip(columns) {
                *slot = row[column as usize];
            }
        }
    }
}

/// `Nx.take_along_axis/3`: each element of the result has the same position in the tensor, except
/// along the axis, where it is at its index.
///
/// # Errors
///
/// The errors of [`gather`].
pub fn take_along_axis(
    out: Output<'_>,
    input: &Tensor<'_>,
    indices: &Tensor<'_>,
    axis: usize,
) -> Result<(), Error> {
    const OP: &str = "take_along_axis";
    check_same_type(OP, &out, input)?;
    let shape = input.shape();
    let axes = [axis];
    let rows = Indices::new(OP, indices, shape, &axes, &input.layout().strides, indices.size())?;
    let wanted = indices.shape();
    let fits = wanted.len() == shape.len() && (0..shape.len()).all(|a| a == axis || wanted[a] == shape[a]);
    if !fits || out.shape != wanted {
        let given = [shape, wanted, out.shape];
        return Err(shape_error(OP, &given, &format!("differ in another axis than {axis}")));
    }
    let (dim, after) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    let (width, taken) = (input.dtype().width(), wanted[axis]);
    let bytes = copy::dense(OP, input)?;
    let source = TakeAlongAxis { source: &bytes, dim, after, taken };
    let size = rows.count;
    out.write(OP, |out| {
        let index_width = rows.dtype.width();
        let taken = parallel::try_fill(out, size, GATHER_COST, |start, part| {
            let indices = &rows.bytes[start * index_width..];
            let in_bounds = dispatch!(integer rows.dtype, I => {
                dispatch!(width width, N => source.take::<N, I>(start, indices, part))
            }, else => unreachable!("indices are integers"));
            if in_bounds { Ok(()) } else { Err(()) }
        });
        taken.map_err(|()| rows.out_of_bounds(0))
    })
}

/// A dense tensor `[before, dim, after]` of which `taken` elements are taken along the middle axis.
struct TakeAlongAxis<'a> {
    source: &'a [u8],
    dim: usize,
    after: usize,
    taken: usize,
}

impl TakeAlongAxis<'_> {
    /// Takes elements from position `start` of the result on. Returns whether all indices are in
    /// bounds.
    fn take<const N: usize, I: Element>(&self, start: usize, indices: &[u8], out: &mut [u8]) -> bool {
        let source = self.source.as_chunks::<N>().0;
        let (mut indices, mut slots) = (I::view(indices), out.as_chunks_mut::<N>().0);
        let mut position = start;
        while !slots.is_empty() {
            // A run of positions that differ only in the last axis.
            let (row, column) = (position / self.after, position % self.after);
            let base = row / self.taken * self.dim * self.after;
            let (run, step) =
                if self.after == 1 { (self.taken - row % self.taken, 0) } else { (self.after - column, 1) };
            let run = run.min(slots.len());
            let (head, tail) = slots.split_at_mut(run);
            for (i, (slot, &index)) in head.iter_mut().zip(indices).enumerate() {
                let index = I::load(index).to_i64() as u64;
                if index >= self.dim as u64 {
                    return false;
                }
                *slot = source[base + index as usize * self.after + column + i * step];
            }
            indices = &indices[run..];
            position += run;
            slots = tail;
        }
        true
    }
}

/// Calls `update(offset, i)` for every element of the updates in order: element `i` of the updates
/// is for the element of the target at `offset`.
#[inline(always)]
fn for_each_update(window: &Window, offsets: &[isize], mut update: impl FnMut(usize, usize)) {
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
    // Rows along the last axis of the window.
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
