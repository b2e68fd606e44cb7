//! Products of rows of floats with a vector, read a line of memory at a time.
//!
//! Problem: the memory of the VM begins within a line, so that a vector lies in two of them and
//! takes two reads. Technique: rows are read from the beginning of a line, and
//! lanes before the row and after its last stripe left alone. Stripes are in other lanes than in
//! `gemv`, but as far apart, which is what their total depends on: its bits are the same.

use std::ops::Range;

use crate::exec::gemm::gemv::with_rest;
use crate::exec::gemm::in_order::Ring;
use crate::exec::reduce::fold::{STRIPES, fold_halves};
use crate::exec::simd::{FloatVector, InstructionSet, MulAddVector, Vectorized, prefetch_ahead};

/// Multiplies those rows, `stride` elements apart, for which this pays: which they are. A chunk of
/// stripes is `VECTORS` of so many `LANES`, and so many `ROWS` are multiplied side by side.
pub fn multiply<
    S: InstructionSet,
    T: FloatVector<S> + Ring,
    const LANES: usize,
    const VECTORS: usize,
    const ROWS: usize,
>(
    set: S,
    stride: usize,
    matrix: &[T::Bytes],
    vector: &[T::Bytes],
    out: &mut [T::Bytes],
) -> Range<usize> {
    const { assert!(VECTORS * LANES == STRIPES && LANES == <T as MulAddVector<S>>::LANES) };
    const NONE: Range<usize> = 0..0;
    // What a vector takes: a line, or half of one.
    let line = LANES * size_of::<T>();
    let (width, bytes) = (size_of::<T>(), matrix.as_ptr().addr() % line);
    if vector.len() < STRIPES || out.len() < ROWS {
        return NONE;
    }
    let alike = (stride * width).is_multiple_of(line) && bytes.is_multiple_of(width);
    let past = if alike { bytes / width } else { 0 };
    let (striped, skipped) = (vector.len() / STRIPES * STRIPES, if past == 0 { 0 } else { ROWS });
    // Lines of the first rows may begin before the matrix, and those of the last end after it.
    let end = (ROWS - 1) * stride + (striped + LANES - past).max(vector.len());
    let groups = matrix.len().checked_sub(end).map_or(0, |rest| rest / (ROWS * stride) + 1);
    let rows = skipped..groups.min(out.len() / ROWS) * ROWS;
    let Some(out) = out.get_mut(rows.clone()) else { return NONE };
    let mut ends = [[T::ZERO.store(); LANES]; 2];
    ends[0][past..].copy_from_slice(&vector[..LANES - past]);
    ends[1][..past].copy_from_slice(&vector[striped - past..striped]);
    let matrix = &matrix[skipped * stride - past..];
    set.run(Lines::<S, T, LANES, VECTORS, ROWS> { set, past, stride, matrix, vector, ends, out });
    rows
}

struct Lines<
    'a,
    S: InstructionSet,
    T: FloatVector<S>,
    const LANES: usize,
    const VECTORS: usize,
    const ROWS: usize,
> {
    set: S,
    /// Elements from the beginning of a line to the first of each row.
    past: usize,
    stride: usize,
    /// From the line of the first row on.
    matrix: &'a [T::Bytes],
    vector: &'a [T::Bytes],
    /// What goes with the first line of a row, and with the last one of its stripes.
    ends: [[T::Bytes; LANES]; 2],
    out: &'a mut [T::Bytes],
}

impl<S: InstructionSet, T: FloatVector<S> + Ring, const LANES: usize, const VECTORS: usize, const ROWS: usize>
    Vectorized for Lines<'_, S, T, LANES, VECTORS, ROWS>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Lines { set, past, stride, matrix, vector, ends, out } = self;
        let lines = vector.len() / STRIPES * VECTORS;
        let ends = [T::read(set, &ends[0]), T::read(set, &ends[1])];
        let before = (1_u16 << past) - 1;
        let zero = <T as MulAddVector<S>>::splat(set, T::ZERO);
        let middle = &vector[LANES - past..].as_chunks::<LANES>().0[..lines - 1];
        for (group, out) in out.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
            let mut rows = [matrix; ROWS];
            for (i, row) in rows.iter_mut().enumerate() {
                *row = &row[(group * ROWS + i) * stride..];
            }
            let mut chunks: [&[[T::Bytes; LANES]]; ROWS] = [&[]; ROWS];
            for (chunks, row) in chunks.iter_mut().zip(rows) {
                *chunks = &row.as_chunks::<LANES>().0[..=lines];
            }
            let mut sums = [[zero; VECTORS]; ROWS];
            for (sums, row) in sums.iter_mut().zip(chunks) {
                sums[0] = T::add_product_where(set, !before, sums[0], T::read(set, &row[0]), ends[0]);
            }
            let mut inner = chunks;
            for row in &mut inner {
                *row = &row[1..lines];
            }
            // Each vector belongs to the stripes after those of the one before.
            let mut line = 0;
            while line < middle.len() {
                for v in 0..VECTORS {
                    if line + v < middle.len() {
                        let factor = T::read(set, &middle[line + v]);
                        for i in 0..ROWS {
                            prefetch_ahead(&inner[i][line + v]);
                            let element = T::read(set, &inner[i][line + v]);
                            let sum = &mut sums[i][(v + 1) % VECTORS];
                            *sum = <T as MulAddVector<S>>::add_product(set, *sum, element, factor);
                        }
                    }
                }
                line += VECTORS;
            }
            for i in 0..ROWS {
                let last = T::read(set, &chunks[i][lines]);
                sums[i][0] = T::add_product_where(set, before, sums[i][0], last, ends[1]);
                // Whose order is the same wherever among them the first stripe is.
                let mut lanes = [T::ZERO; LANES];
                <T as MulAddVector<S>>::store(
                    set,
                    fold_halves(sums[i], |a, b| T::sum(set, a, b)),
                    &mut lanes,
                );
                let row = &rows[i][past..][..vector.len()];
                out[i] = with_rest::<T, T, STRIPES>(fold_halves(lanes, Ring::add), row, vector);
            }
        }
    }
}
