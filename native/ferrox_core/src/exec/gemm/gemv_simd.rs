//! Products of rows of floats with a vector, with reads that are aligned to cache lines.
//!
//! Problem: the memory of the VM's binaries doesn't begin at a cache line, so that SIMD vectors
//! cross lines and take two accesses each.
//! Technique: each row is read from the start of the line in which it begins; the lanes before the
//! row and after its last stripe are masked off. The stripes of the sum are rotated to other lanes
//! than in `gemv`, which doesn't change the order in which they are combined: the bits of the total
//! are the same.

use std::ops::Range;

use crate::dtype::Lane;
use crate::exec::gemm::ring::{Ring, with_rests};
use crate::exec::reduce::fold::{STRIPES, fold_halves};
use crate::exec::simd::{FloatVector, InstructionSet, MulAddVector, Vectorized, prefetch_ahead};

/// Multiplies rows, which begin `stride` elements apart, with a vector, and returns which rows it
/// has multiplied: all rows for which aligned reads are possible and pay. A chunk of stripes is
/// `VECTORS` SIMD vectors of `LANES` elements, and `ROWS` rows are multiplied side by side.
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
    // The size of a SIMD vector in bytes: a cache line or half of one.
    let line = LANES * size_of::<T>();
    let (width, bytes) = (size_of::<T>(), matrix.as_ptr().addr() % line);
    if vector.len() < STRIPES || out.len() < ROWS {
        return NONE;
    }
    let alike = (stride * width).is_multiple_of(line) && bytes.is_multiple_of(width);
    let line_offset = if alike { bytes / width } else { 0 };
    let (striped, skipped) = (vector.len() / STRIPES * STRIPES, if line_offset == 0 { 0 } else { ROWS });
    // The lines of the first rows may begin before the matrix, and the lines of the last rows may
    // end after it.
    let end = (ROWS - 1) * stride + (striped + LANES - line_offset).max(vector.len());
    let groups = matrix.len().checked_sub(end).map_or(0, |rest| rest / (ROWS * stride) + 1);
    let rows = skipped..groups.min(out.len() / ROWS) * ROWS;
    let Some(out) = out.get_mut(rows.clone()) else { return NONE };
    let mut ends = [[T::ZERO.store(); LANES]; 2];
    ends[0][line_offset..].copy_from_slice(&vector[..LANES - line_offset]);
    ends[1][..line_offset].copy_from_slice(&vector[striped - line_offset..striped]);
    let matrix = &matrix[skipped * stride - line_offset..];
    set.run(CacheLineGemvLoop::<S, T, LANES, VECTORS, ROWS> {
        set,
        line_offset,
        stride,
        matrix,
        vector,
        ends,
        out,
    });
    rows
}

struct CacheLineGemvLoop<
    'a,
    S: InstructionSet,
    T: FloatVector<S>,
    const LANES: usize,
    const VECTORS: usize,
    const ROWS: usize,
> {
    set: S,
    /// The number of elements from the start of a line to the first element of each row.
    line_offset: usize,
    stride: usize,
    /// The matrix from the start of the first row's line on.
    matrix: &'a [T::Bytes],
    vector: &'a [T::Bytes],
    /// The factors for the first line of a row, and for the last line of its stripes.
    ends: [[T::Bytes; LANES]; 2],
    out: &'a mut [T::Bytes],
}

impl<S: InstructionSet, T: FloatVector<S> + Ring, const LANES: usize, const VECTORS: usize, const ROWS: usize>
    Vectorized for CacheLineGemvLoop<'_, S, T, LANES, VECTORS, ROWS>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let CacheLineGemvLoop { set, line_offset, stride, matrix, vector, ends, out } = self;
        let lines = vector.len() / STRIPES * VECTORS;
        let ends = [T::read(set, &ends[0]), T::read(set, &ends[1])];
        let before = (1_u16 << line_offset) - 1;
        let zero = <T as MulAddVector<S>>::splat(set, T::ZERO);
        let middle = &vector[LANES - line_offset..].as_chunks::<LANES>().0[..lines - 1];
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
            // Consecutive vectors belong to consecutive stripes.
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
            let mut totals = [T::ZERO; ROWS];
            for i in 0..ROWS {
                let last = T::read(set, &chunks[i][lines]);
                sums[i][0] = T::add_product_where(set, before, sums[i][0], last, ends[1]);
                // Adding by halves gives the same bits for rotated stripes.
                let mut lanes = [T::ZERO; LANES];
                <T as MulAddVector<S>>::store(
                    set,
                    fold_halves(sums[i], |a, b| T::sum(set, a, b)),
                    &mut lanes,
                );
                totals[i] = fold_halves(lanes, Ring::add);
            }
            let rows = rows.map(|row| &row[line_offset..][..vector.len()]);
            *out = with_rests::<T, T, T::Bytes, STRIPES, ROWS>(totals, rows, Lane::load, vector);
        }
    }
}
