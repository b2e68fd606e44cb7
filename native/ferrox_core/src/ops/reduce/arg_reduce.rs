//! `Nx.argmax/2` and `Nx.argmin/2`.

use std::ops::Range;

use crate::dtype::Lane;
use crate::dtype::convert::conversion;
use crate::exec::copy::transpose;
use crate::exec::copy::transpose::Plane;
use crate::exec::elementwise::TILE;
use crate::exec::reduce::argminmax::ArgMinMaxSearch;
use crate::exec::reduce::fold::REDUCTION_BLOCK_ELEMENTS;
use crate::exec::threads::parallel;
use crate::exec::threads::parallel::{Cost, Work};
use crate::layout::Shape;
use crate::ops::reduce::{Along, ReduceOp, Split, check_size, compare_cost};
use crate::tensor::{Output, Tensor, scratch};
use crate::{DType, Error};

/// What searching a row costs, beside its elements.
const ROW: Cost = 20_000;

/// Fewer columns than this are turned into rows, as are longer ones than 32 bits count.
const COLUMNS: usize = 16;

/// Up to so many columns are searched by one thread, a block of their rows at a time.
const SHARED: usize = 256;

/// Bytes of a place in a block.
const PLACE: usize = 8;

/// The work of `arg_reduce`, of so many elements of a type to so many.
#[must_use]
pub fn arg_work(dtype: DType, elements: usize, rows: usize) -> Work {
    parallel::work(elements, compare_cost(dtype)).saturating_add(parallel::work(rows, ROW))
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
    let largest = op != ReduceOp::ReduceMin;
    let name = if largest { "argmax" } else { "argmin" };
    let search = ArgMinMaxSearch::new(input.dtype(), largest, tie_break == TieBreak::High)
        .filter(|_| !out.dtype.is_complex())
        .ok_or_else(|| Error::UnsupportedType { op: name, dtypes: vec![input.dtype()] })?;
    let axes: Shape = axis.map_or_else(|| (0..input.rank()).collect(), |axis| Shape::from_slice(&[axis]));
    let mut split = Split::new(name, input.shape(), &axes)?;
    let Along { before, reduced, after } = split.along;
    check_size(name, &out, input, before * after)?;
    if reduced == 0 {
        return Err(Error::Argument { op: name, problem: "an empty axis has no extreme".into() });
    }
    if before * after == 0 {
        return Ok(());
    }
    if after > 1 && (after < COLUMNS || u32::try_from(reduced).is_err()) {
        split = Split::rows(input.shape(), &axes);
    }
    let bytes = split.dense(name, input)?;
    let Along { before, reduced, after } = split.along;
    let (dtype, result) = (input.dtype(), out.dtype);
    out.write(name, |out| {
        let job = Job { search, bytes: &bytes, width: dtype.width(), reduced, after, result };
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
                for (before, out) in (start..).zip(part.chunks_mut(after * result.width())) {
                    job.best(block, found(before), out);
                }
            });
        } else if after == 1 {
            parallel::fill(out, before, cost + ROW, |start, part| job.rows(start, part));
        } else {
            // Columns that are next to each other are searched together.
            let unit = if after <= SHARED { after } else { 1 };
            parallel::fill(out, before * after / unit, cost * unit as Cost, |start, part| {
                job.columns(start * unit, part);
            });
        }
        Ok(())
    })
}

/// The same of a few elements, without the planning that takes most of their time.
pub struct FewSearched<'a> {
    search: ArgMinMaxSearch,
    bytes: &'a [u8],
    width: usize,
    along: Along,
    result: DType,
}

/// So many are found at once.
const FEW_FOUND: usize = 32;

impl<'a> FewSearched<'a> {
    /// As `Few::new`.
    #[inline]
    #[must_use]
    pub fn new(
        op: ReduceOp,
        out: DType,
        dtype: DType,
        bytes: &'a [u8],
        along: Along,
        tie_break: TieBreak,
    ) -> Option<Self> {
        let turns = along.after > 1;
        if out.is_complex()
            || !along.is_few(out, dtype, bytes)
            || along.results() > FEW_FOUND
            || turns && bytes.len() > TURNED
        {
            return None;
        }
        let search = ArgMinMaxSearch::new(dtype, op != ReduceOp::ReduceMin, tie_break == TieBreak::High)?;
        Some(FewSearched { search, bytes, width: dtype.width(), along, result: out })
    }

    /// How many places there are.
    #[inline]
    #[must_use]
    pub fn results(&self) -> usize {
        self.along.results()
    }

    /// Writes them to `out`, which is as long.
    #[inline]
    pub fn run(&self, out: &mut [u8]) {
        let Along { reduced, after, .. } = self.along;
        let mut places = [0; FEW_FOUND * 8];
        let places = &mut places[..self.results() * 8];
        if after == 1 {
            self.search.rows(self.bytes, reduced, places);
        } else {
            let mut turned = [0; TURNED];
            let turned = &mut turned[..self.bytes.len()];
            match self.width {
                1 => turn::<1>(self.bytes, self.along, turned),
                2 => turn::<2>(self.bytes, self.along, turned),
                4 => turn::<4>(self.bytes, self.along, turned),
                _ => turn::<8>(self.bytes, self.along, turned),
            }
            self.search.rows(turned, reduced, places);
        }
        store(DType::U64, self.result, places, out);
    }
}

/// Columns of so many bytes at most are turned into rows on the stack.
const TURNED: usize = 1024;

fn turn<const N: usize>(bytes: &[u8], Along { reduced, after, .. }: Along, turned: &mut [u8]) {
    let (elements, turned) = (bytes.as_chunks::<N>().0, turned.as_chunks_mut::<N>().0);
    let columns = Plane { shape: (after, reduced), first: 0, row: 1, column: after as isize };
    let planes = elements.chunks_exact(reduced * after);
    for (plane, turned) in planes.zip(turned.chunks_exact_mut(reduced * after)) {
        transpose::plane(plane, columns, turned, reduced);
    }
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
        let mut places = vec![0; TILE.min(out.len() / width) * 4];
        let mut position = start;
        while !out.is_empty() {
            // Within one of the axes before.
            let column = position % self.after;
            let count = TILE.min(self.after - column).min(out.len() / width);
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
