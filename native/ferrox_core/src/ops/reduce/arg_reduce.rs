//! `Nx.argmax/2` and `Nx.argmin/2`: the index of the extreme of each row or column. Rows and
//! columns of many elements are searched in blocks, which threads share, and then the extremes of
//! the blocks.

use std::ops::Range;

use smallvec::SmallVec;

use crate::cost::{self, ARG_ROW_COST, Cost, MIN_ARG_COLUMNS, TILE_ELEMENTS, Work};
use crate::dtype::Lane;
use crate::exec::convert::conversion;
use crate::exec::copy;
use crate::exec::memory::scratch;
use crate::exec::reduce::argminmax::ArgMinMaxSearch;
use crate::exec::reduce::fold::REDUCTION_BLOCK_ELEMENTS;
use crate::exec::threads::parallel;
use crate::layout::{Shape, check_axes};
use crate::ops::reduce::{ReduceOp, ReductionSizes, check_size, compare_cost, dense_sizes};
use crate::tensor::{Output, Tensor};
use crate::{DType, Error};

/// The number of columns up to which threads share blocks of rows; else threads share the columns.
const MAX_BLOCKED_COLUMNS: usize = 256;

/// The number of bytes up to which elements are transposed on the stack.
const TRANSPOSED_STACK_BYTES: usize = 1024;

/// The number of bytes in an index of an element in its block.
const BLOCK_INDEX_BYTES: usize = 8;

/// The number of rows that are searched before their indices are converted.
const ROWS_PER_INDEX_TILE: usize = 64;

/// The work of `arg_reduce` of `elements` elements in `rows` rows or columns.
#[must_use]
pub fn arg_work(dtype: DType, elements: usize, rows: usize) -> Work {
    cost::work(elements, compare_cost(dtype)).saturating_add(cost::work(rows, ARG_ROW_COST))
}

/// The cost of an element of a row of some elements that is searched.
#[must_use]
pub fn arg_cost(dtype: DType, reduced: usize) -> Cost {
    compare_cost(dtype).saturating_add(ARG_ROW_COST / reduced.max(1) as Cost)
}

/// The choice among equal extremes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieBreak {
    /// The first.
    Low,
    /// The last.
    High,
}

/// The index of the largest element along `axis`, or in the whole tensor; of the smallest for
/// `ReduceOp::ReduceMin`. NaN counts as more extreme than any number, and the last NaN wins, as in
/// `Nx.BinaryBackend`.
///
/// # Errors
///
/// The errors of [`reduce`](super::reduce).
pub fn arg_reduce(
    op: ReduceOp,
    out: Output<'_>,
    input: &Tensor<'_>,
    axis: Option<usize>,
    tie_break: TieBreak,
) -> Result<(), Error> {
    let name = arg_name(op);
    let axes: Shape = axis.map_or_else(|| (0..input.rank()).collect(), |axis| Shape::from_slice(&[axis]));
    check_axes(name, &axes, input.rank())?;
    let sizes = dense_sizes(input.shape(), &axes)
        .ok_or_else(|| Error::Argument { op: name, problem: "the axes have others between them".into() })?;
    check_size(name, &out, input, sizes.results())?;
    let bytes = copy::dense(name, input)?;
    let dtype = out.dtype;
    out.write(name, |out| arg_reduce_dense(op, (input.dtype(), &bytes), sizes, tie_break, dtype, out))
}

/// The name of the operation that returns the index of the extreme that `op` returns.
#[must_use]
pub fn arg_name(op: ReduceOp) -> &'static str {
    if op == ReduceOp::ReduceMin { "argmin" } else { "argmax" }
}

/// `arg_reduce` along the middle axis of dense elements in whole bytes; `out` has an index of type
/// `to` for each element of the other axes.
///
/// # Errors
///
/// `Error::UnsupportedType`, `Error::Argument` if there are no elements to search, and
/// `Error::TooLarge` if there is no memory for an intermediate result.
pub fn arg_reduce_dense(
    op: ReduceOp,
    (dtype, mut bytes): (DType, &[u8]),
    mut sizes: ReductionSizes,
    tie_break: TieBreak,
    to: DType,
    out: &mut [u8],
) -> Result<(), Error> {
    let name = arg_name(op);
    let search = ArgMinMaxSearch::new(dtype, op != ReduceOp::ReduceMin, tie_break == TieBreak::High)
        .filter(|_| !to.is_complex())
        .ok_or_else(|| Error::UnsupportedType { op: name, dtypes: vec![dtype] })?;
    if sizes.reduced == 0 {
        return Err(Error::Argument { op: name, problem: "an empty axis has no extreme".into() });
    }
    if sizes.results() == 0 {
        return Ok(());
    }
    let mut transposed = SmallVec::<[u8; TRANSPOSED_STACK_BYTES]>::new();
    if sizes.after > 1 && (sizes.after < MIN_ARG_COLUMNS || u32::try_from(sizes.reduced).is_err()) {
        if bytes.len() > TRANSPOSED_STACK_BYTES {
            transposed = SmallVec::from_vec(scratch(name, dtype, &sizes.shape(), bytes.len())?);
        } else {
            transposed.resize(bytes.len(), 0);
        }
        copy::transpose_planes(dtype.width(), bytes, sizes.shape(), &mut transposed);
        bytes = &transposed;
        sizes = ReductionSizes { before: sizes.results(), reduced: sizes.reduced, after: 1 };
    }
    let ReductionSizes { before, reduced, after } = sizes;
    let arg_search = ArgSearch { search, bytes, width: dtype.width(), reduced, after, result: to };
    let cost = compare_cost(dtype).saturating_mul(reduced as Cost);
    let block = REDUCTION_BLOCK_ELEMENTS / after.min(REDUCTION_BLOCK_ELEMENTS);
    if reduced > block && after <= MAX_BLOCKED_COLUMNS {
        // For a small number of results of many elements each, threads share the blocks.
        let blocks = reduced.div_ceil(block);
        let record = after * (BLOCK_INDEX_BYTES + dtype.width());
        let mut found = scratch(name, dtype, &[before, blocks, after], before * blocks * record)?;
        let cost = cost / blocks as Cost * after as Cost;
        parallel::fill(&mut found, before * blocks, cost, |start, part| {
            for (i, found) in (start..).zip(part.chunks_mut(record)) {
                arg_search.block(
                    i / blocks,
                    i % blocks * block..reduced.min((i % blocks + 1) * block),
                    found,
                );
            }
        });
        let found = |before: usize| &found[before * blocks * record..][..blocks * record];
        let cost = compare_cost(dtype) * (blocks * after) as Cost;
        parallel::fill(out, before, cost + ARG_ROW_COST, |start, part| {
            for (before, out) in (start..).zip(part.chunks_mut(after * to.width())) {
                arg_search.best(block, found(before), out);
            }
        });
    } else if after == 1 {
        if parallel::is_worth_sharing(before, cost + ARG_ROW_COST) {
            parallel::fill(out, before, cost + ARG_ROW_COST, |start, part| arg_search.rows(start, part));
        } else {
            arg_search.rows(0, out);
        }
    } else {
        // Up to this many adjacent columns stay together.
        let unit = if after <= MAX_BLOCKED_COLUMNS { after } else { 1 };
        parallel::fill(out, before * after / unit, cost * unit as Cost, |start, part| {
            arg_search.columns(start * unit, part);
        });
    }
    Ok(())
}

struct ArgSearch<'a> {
    search: ArgMinMaxSearch,
    bytes: &'a [u8],
    width: usize,
    reduced: usize,
    after: usize,
    result: DType,
}

impl ArgSearch<'_> {
    /// Searches the rows from `start` on.
    fn rows(&self, start: usize, out: &mut [u8]) {
        let (length, width) = (self.reduced * self.width, self.result.width());
        let mut indices = [0; ROWS_PER_INDEX_TILE * 8];
        let rows = self.bytes[start * length..].chunks(ROWS_PER_INDEX_TILE * length);
        for (out, rows) in out.chunks_mut(ROWS_PER_INDEX_TILE * width).zip(rows) {
            let count = out.len() / width;
            let indices = &mut indices[..count * 8];
            self.search.rows(&rows[..count * length], self.reduced, indices);
            store_indices(DType::U64, self.result, indices, out);
        }
    }

    /// Searches a block, a range of indices along the axis. Writes the index in the block of each
    /// column's extreme, followed by the extremes.
    fn block(&self, before: usize, block: Range<usize>, found: &mut [u8]) {
        let (after, width) = (self.after, self.width);
        let first = (before * self.reduced + block.start) * after;
        let elements = &self.bytes[first * width..][..block.len() * after * width];
        let (indices, extremes) = found.split_at_mut(after * BLOCK_INDEX_BYTES);
        if after == 1 {
            self.search.rows(elements, block.len(), indices);
        } else {
            self.search.columns(elements, after, &mut indices[..after * 4]);
        }
        for (column, extreme) in extremes.chunks_exact_mut(width).enumerate() {
            let at = self.index(indices, column) as usize * after + column;
            extreme.copy_from_slice(&elements[at * width..][..width]);
        }
    }

    /// The index in the block of a column's extreme.
    fn index(&self, indices: &[u8], column: usize) -> u64 {
        if self.after == 1 {
            u64::load(u64::view(indices)[column])
        } else {
            u32::load(u32::view(indices)[column]).into()
        }
    }

    /// Searches the extremes that `block` has found in all blocks of `block` elements.
    fn best(&self, block: usize, found: &[u8], out: &mut [u8]) {
        let record = self.after * (BLOCK_INDEX_BYTES + self.width);
        let (mut best, mut indices) =
            ([0; MAX_BLOCKED_COLUMNS * 4], [0; MAX_BLOCKED_COLUMNS * BLOCK_INDEX_BYTES]);
        let (best, indices) = (&mut best[..self.after * 4], &mut indices[..self.after * BLOCK_INDEX_BYTES]);
        self.search.columns(&found[self.after * BLOCK_INDEX_BYTES..], record / self.width, best);
        for (column, (slot, &best)) in u64::view_mut(indices).iter_mut().zip(u32::view(best)).enumerate() {
            let best = u32::load(best) as usize;
            *slot = ((best * block) as u64 + self.index(&found[best * record..], column)).store();
        }
        store_indices(DType::U64, self.result, indices, out);
    }

    /// Searches the columns from `start` on.
    fn columns(&self, start: usize, mut out: &mut [u8]) {
        let width = self.result.width();
        let mut indices = vec![0; TILE_ELEMENTS.min(out.len() / width) * 4];
        let mut position = start;
        while !out.is_empty() {
            // A tile of columns in one plane.
            let column = position % self.after;
            let count = TILE_ELEMENTS.min(self.after - column).min(out.len() / width);
            let first = position / self.after * self.reduced * self.after + column;
            let last = first + (self.reduced - 1) * self.after + count;
            let indices = &mut indices[..count * 4];
            self.search.columns(&self.bytes[first * self.width..last * self.width], self.after, indices);
            let (head, tail) = out.split_at_mut(count * width);
            store_indices(DType::U32, self.result, indices, head);
            position += count;
            out = tail;
        }
    }
}

fn store_indices(dtype: DType, result: DType, indices: &[u8], out: &mut [u8]) {
    match conversion(dtype, result) {
        Some(convert) => convert(indices, out),
        None => out.copy_from_slice(indices),
    }
}
