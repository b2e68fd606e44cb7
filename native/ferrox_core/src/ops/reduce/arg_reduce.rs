//! `Nx.argmax/2` and `Nx.argmin/2`.

use std::ops::Range;

use smallvec::SmallVec;

use crate::cost::{self, Cost, Work};
use crate::dtype::Lane;
use crate::exec::convert::conversion;
use crate::exec::copy;
use crate::exec::elementwise::TILE_ELEMENTS;
use crate::exec::memory::scratch;
use crate::exec::reduce::argminmax::ArgMinMaxSearch;
use crate::exec::reduce::fold::REDUCTION_BLOCK_ELEMENTS;
use crate::exec::threads::parallel;
use crate::layout::Shape;
use crate::ops::reduce::{Along, ReduceOp, Split, check_size, compare_cost};
use crate::tensor::{Output, Tensor};
use crate::{DType, Error};

/// What searching a row costs, beside its elements.
const ROW: Cost = 20_000;

/// Fewer columns than this are turned into rows, as are longer ones than 32 bits count.
const COLUMNS: usize = 16;

/// Up to so many columns are searched by one thread, a block of their rows at a time.
const SHARED: usize = 256;

/// Up to this many bytes are transposed on the stack.
const TRANSPOSED_STACK_BYTES: usize = 1024;

/// Bytes of a place in a block.
const PLACE: usize = 8;

/// The work of `arg_reduce`, of so many elements of a type to so many.
#[must_use]
pub fn arg_work(dtype: DType, elements: usize, rows: usize) -> Work {
    cost::work(elements, compare_cost(dtype)).saturating_add(cost::work(rows, ROW))
}

/// Which of several equal extremes counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieBreak {
    /// The first.
    Low,
    /// The last.
    High,
}

/// The index of the largest element along `axis`, or in all of the tensor; of
/// the smallest for `ReduceOp::ReduceMin`. NaN counts as more extreme than
/// any number, and the last NaN wins, as in `Nx.BinaryBackend`.
///
/// # Errors
///
/// As `reduce`.
pub fn arg_reduce(
    op: ReduceOp,
    out: Output<'_>,
    input: &Tensor<'_>,
    axis: Option<usize>,
    tie_break: TieBreak,
) -> Result<(), Error> {
    let name = arg_name(op);
    let axes: Shape = axis.map_or_else(|| (0..input.rank()).collect(), |axis| Shape::from_slice(&[axis]));
    let split = Split::new(name, input.shape(), &axes)?;
    check_size(name, &out, input, split.along.results())?;
    let bytes = split.dense(name, input)?;
    let dtype = out.dtype;
    out.write(name, |out| arg_reduce_dense(op, (input.dtype(), &bytes), split.along, tie_break, dtype, out))
}

/// The name of the operation that searches what `op` folds.
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
    mut along: Along,
    tie_break: TieBreak,
    to: DType,
    out: &mut [u8],
) -> Result<(), Error> {
    let name = arg_name(op);
    let search = ArgMinMaxSearch::new(dtype, op != ReduceOp::ReduceMin, tie_break == TieBreak::High)
        .filter(|_| !to.is_complex())
        .ok_or_else(|| Error::UnsupportedType { op: name, dtypes: vec![dtype] })?;
    if along.reduced == 0 {
        return Err(Error::Argument { op: name, problem: "an empty axis has no extreme".into() });
    }
    if along.results() == 0 {
        return Ok(());
    }
    let mut transposed = SmallVec::<[u8; TRANSPOSED_STACK_BYTES]>::new();
    if along.after > 1 && (along.after < COLUMNS || u32::try_from(along.reduced).is_err()) {
        if bytes.len() > TRANSPOSED_STACK_BYTES {
            transposed = SmallVec::from_vec(scratch(name, dtype, &along.shape(), bytes.len())?);
        } else {
            transposed.resize(bytes.len(), 0);
        }
        copy::transpose_planes(dtype.width(), bytes, along.shape(), &mut transposed);
        bytes = &transposed;
        along = Along { before: along.results(), reduced: along.reduced, after: 1 };
    }
    let Along { before, reduced, after } = along;
    let job = Job { search, bytes, width: dtype.width(), reduced, after, result: to };
    let cost = compare_cost(dtype).saturating_mul(reduced as Cost);
    let block = REDUCTION_BLOCK_ELEMENTS / after.min(REDUCTION_BLOCK_ELEMENTS);
    if reduced > block && after <= SHARED {
        // Results of many elements each: the blocks are the work to share.
        let blocks = reduced.div_ceil(block);
        let record = after * (PLACE + dtype.width());
        let mut found = scratch(name, dtype, &[before, blocks, after], before * blocks * record)?;
        let cost = cost / blocks as Cost * after as Cost;
        parallel::fill(&mut found, before * blocks, cost, |start, part| {
            for (i, found) in (start..).zip(part.chunks_mut(record)) {
                job.block(i / blocks, i % blocks * block..reduced.min((i % blocks + 1) * block), found);
            }
        });
        let found = |before: usize| &found[before * blocks * record..][..blocks * record];
        let cost = compare_cost(dtype) * (blocks * after) as Cost;
        parallel::fill(out, before, cost + ROW, |start, part| {
            for (before, out) in (start..).zip(part.chunks_mut(after * to.width())) {
                job.best(block, found(before), out);
            }
        });
    } else if after == 1 {
        if parallel::is_worth_sharing(before, cost + ROW) {
            parallel::fill(out, before, cost + ROW, |start, part| job.rows(start, part));
        } else {
            job.rows(0, out);
        }
    } else {
        // Columns that are next to each other are searched together.
        let unit = if after <= SHARED { after } else { 1 };
        parallel::fill(out, before * after / unit, cost * unit as Cost, |start, part| {
            job.columns(start * unit, part);
        });
    }
    Ok(())
}

struct Job<'a> {
    search: ArgMinMaxSearch,
    bytes: &'a [u8],
    width: usize,
    reduced: usize,
    after: usize,
    result: DType,
}

impl Job<'_> {
    /// Searches rows from one on.
    fn rows(&self, start: usize, out: &mut [u8]) {
        let (length, width) = (self.reduced * self.width, self.result.width());
        let mut places = [0; 64 * 8];
        let rows = self.bytes[start * length..].chunks(64 * length);
        for (out, rows) in out.chunks_mut(64 * width).zip(rows) {
            let count = out.len() / width;
            let places = &mut places[..count * 8];
            self.search.rows(&rows[..count * length], self.reduced, places);
            store(DType::U64, self.result, places, out);
        }
    }

    /// Searches a block, some of the elements along the axis: writes the place of each of its
    /// extremes, counted in the block, and then what is there.
    fn block(&self, before: usize, block: Range<usize>, found: &mut [u8]) {
        let (after, width) = (self.after, self.width);
        let first = (before * self.reduced + block.start) * after;
        let elements = &self.bytes[first * width..][..block.len() * after * width];
        let (places, extremes) = found.split_at_mut(after * PLACE);
        if after == 1 {
            self.search.rows(elements, block.len(), places);
        } else {
            self.search.columns(elements, after, &mut places[..after * 4]);
        }
        for (column, extreme) in extremes.chunks_exact_mut(width).enumerate() {
            let at = self.place(places, column) as usize * after + column;
            extreme.copy_from_slice(&elements[at * width..][..width]);
        }
    }

    /// A place in a block.
    fn place(&self, places: &[u8], column: usize) -> u64 {
        if self.after == 1 {
            u64::load(u64::view(places)[column])
        } else {
            u32::load(u32::view(places)[column]).into()
        }
    }

    /// Searches what has been found in the blocks of some length, of which each counts by its place.
    fn best(&self, block: usize, found: &[u8], out: &mut [u8]) {
        let record = self.after * (PLACE + self.width);
        let (mut best, mut places) = ([0; SHARED * 4], [0; SHARED * PLACE]);
        let (best, places) = (&mut best[..self.after * 4], &mut places[..self.after * PLACE]);
        self.search.columns(&found[self.after * PLACE..], record / self.width, best);
        for (column, (slot, &best)) in u64::view_mut(places).iter_mut().zip(u32::view(best)).enumerate() {
            let best = u32::load(best) as usize;
            *slot = ((best * block) as u64 + self.place(&found[best * record..], column)).store();
        }
        store(DType::U64, self.result, places, out);
    }

    /// Searches columns from one on.
    fn columns(&self, start: usize, mut out: &mut [u8]) {
        let width = self.result.width();
        let mut places = vec![0; TILE_ELEMENTS.min(out.len() / width) * 4];
        let mut position = start;
        while !out.is_empty() {
            // Within one of the axes before.
            let column = position % self.after;
            let count = TILE_ELEMENTS.min(self.after - column).min(out.len() / width);
            let first = position / self.after * self.reduced * self.after + column;
            let last = first + (self.reduced - 1) * self.after + count;
            let places = &mut places[..count * 4];
            self.search.columns(&self.bytes[first * self.width..last * self.width], self.after, places);
            let (head, tail) = out.split_at_mut(count * width);
            store(DType::U32, self.result, places, head);
            position += count;
            out = tail;
        }
    }
}

fn store(dtype: DType, result: DType, places: &[u8], out: &mut [u8]) {
    match conversion(dtype, result) {
        Some(convert) => convert(places, out),
        None => out.copy_from_slice(places),
    }
}
