//! Products of a matrix with a vector (BLAS: gemv).
//!
//! Problem: each element of the matrix is read once, so that the product is bound by memory, and
//! packing, as gemm does for matrices, takes longer than the product.
//! Technique: if the rows of the matrix are dense, each row is multiplied with the vector in
//! striped sums: a fixed number of accumulators, which are combined in a fixed order. Rows that are
//! too short for stripes are transposed, some at a time, and then treated as columns. If the
//! columns are dense, they are scaled and added up one after the other, in chunks that only depend
//! on the sizes. The bits are the same for any number of threads and any instruction set.

use std::collections::TryReserveError;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::Range;

use num_complex::Complex;

use crate::cost::{Cost, GEMV_BLOCK_COLUMNS, GEMV_BYTE_COST};
use crate::dtype::Lane;
use crate::exec::copy::transpose::{self, ROWS_PER_BLOCK};
#[cfg(target_arch = "x86_64")]
use crate::exec::gemm::gemv_simd;
use crate::exec::gemm::ring::{ROWS_PER_PASS, Ring, Sum, sum_rows, with_rests};
use crate::exec::memory::try_filled;
use crate::exec::reduce::fold::{STRIPES, fold_halves_of_rows};
#[cfg(target_arch = "x86_64")]
use crate::exec::simd::{Avx2, Avx512, InstructionSet};
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::parallel;

/// A lane for which matrices are multiplied with vectors.
pub trait MatrixVectorLane: Ring {
    /// Multiplies rows, which begin `stride` elements apart, with a vector, reading the matrix by
    /// whole cache lines. Returns the rows that are done, which may be none.
    fn by_cache_lines(
        _stride: usize,
        _matrix: &[Self::Bytes],
        _vector: &[Self::Bytes],
        _out: &mut [Self::Bytes],
    ) -> Range<usize> {
        0..0
    }
}
impl MatrixVectorLane for u8 {}
impl MatrixVectorLane for u16 {}
impl MatrixVectorLane for u32 {}
impl MatrixVectorLane for u64 {}
impl MatrixVectorLane for Complex<f32> {}
impl MatrixVectorLane for Complex<f64> {}

/// Implements `MatrixVectorLane` for floats: the lanes of a SIMD vector, the vectors of a chunk of
/// stripes, and the rows whose sums fit into registers, for vectors of 64 and of 32 bytes.
macro_rules! rows_by_cache_lines {
    ($t:ty, [$($wide:literal),*], [$($narrow:literal),*]) => {
        impl MatrixVectorLane for $t {
            #[cfg(target_arch = "x86_64")]
            fn by_cache_lines(
                stride: usize,
                matrix: &[Self::Bytes],
                vector: &[Self::Bytes],
                out: &mut [Self::Bytes],
            ) -> Range<usize> {
                if let Some(set) = Avx512::detect() {
                    gemv_simd::multiply::<_, Self, $($wide),*>(set, stride, matrix, vector, out)
                } else if let Some(set) = Avx2::detect() {
                    gemv_simd::multiply::<_, Self, $($narrow),*>(set, stride, matrix, vector, out)
                } else {
                    0..0
                }
            }
        }
    };
}
rows_by_cache_lines!(f32, [16, 2, 4], [8, 4, 2]);
rows_by_cache_lines!(f64, [8, 4, 4], [4, 8, 1]);

/// `out[i]` is the sum of `matrix[i, j] * vector[j]`, for a matrix with dense rows that begin
/// `stride` elements apart. With `alone`, the product keeps to the calling thread.
pub fn rows<T: MatrixVectorLane>(stride: usize, matrix: &[u8], vector: &[u8], out: &mut [u8], alone: bool) {
    let width = size_of::<T>();
    parallel::fill(out, out.len() / width, cost(vector, alone), |first, out| {
        rows_alone::<T>(stride, &matrix[first * stride * width..], vector, out);
    });
}

/// `rows` on the calling thread.
pub(in crate::exec) fn rows_alone<T: MatrixVectorLane>(
    stride: usize,
    matrix: &[u8],
    vector: &[u8],
    out: &mut [u8],
) {
    vectorize(GemvLoop::<T, true> { stride, matrix, vector, out, lane: PhantomData });
}

/// `rows` for a matrix with dense columns that begin `stride` elements apart.
///
/// # Errors
///
/// If there is no memory for the sums of chunks.
pub fn columns<T: MatrixVectorLane>(
    stride: usize,
    matrix: &[u8],
    vector: &[u8],
    out: &mut [u8],
    alone: bool,
) -> Result<(), TryReserveError> {
    in_chunks::<T>(vector, out, cost(vector, alone), |first, vector, column, out| {
        let matrix = &matrix[(first * stride + column) * size_of::<T>()..];
        vectorize(GemvLoop::<T, false> { stride, matrix, vector, out, lane: PhantomData });
    })
}

/// Whether the product of a dense matrix of floats, of some rows and columns, with a vector has the bits of the product
/// of its dense columns, each sum added up in the order of its terms, which takes less time.
pub(crate) fn has_bits_of_columns([rows, columns]: [usize; 2]) -> bool {
    columns < STRIPES.min(GEMV_CHUNK_FACTORS.start) && rows >= ROWS_PER_BLOCK
}

/// The cost of an element of the result; zero with `alone`, so that the work isn't shared.
fn cost(vector: &[u8], alone: bool) -> Cost {
    if alone { 0 } else { GEMV_BYTE_COST * vector.len() as Cost }
}

struct GemvLoop<'a, T, const BY_ROWS: bool> {
    stride: usize,
    matrix: &'a [u8],
    vector: &'a [u8],
    out: &'a mut [u8],
    lane: PhantomData<T>,
}

impl<T: MatrixVectorLane, const BY_ROWS: bool> Vectorized for GemvLoop<'_, T, BY_ROWS> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (matrix, vector) = (T::view(self.matrix), T::view(self.vector));
        let out = T::view_mut(self.out);
        if BY_ROWS && !T::ANY_ORDER && vector.len() < STRIPES && out.len() >= ROWS_PER_BLOCK {
            fold_transposed_rows::<T>(self.matrix, vector, self.stride, out);
        } else if BY_ROWS {
            fold_rows::<T>(matrix, vector, self.stride, out);
        } else {
            sum_rows::<T>(vector, matrix, self.stride, out);
        }
    }
}

/// The minimum and maximum number of factors (elements of the vector) in a chunk.
const GEMV_CHUNK_FACTORS: Range<usize> = 64..4096;
/// The number of chunks if `GEMV_CHUNK_FACTORS` allows it.
const GEMV_CHUNKS: usize = 16;

/// Adds up rows, each scaled by an element of a vector. Threads share chunks of the vector instead
/// of narrow blocks of columns, which would read memory in short stretches; the sums of the chunks
/// are added up in order. `add(first, factors, column, out)` writes the sum of the rows from
/// `first` on, scaled by `factors`, for the columns from `column` on, to `out`.
///
/// # Errors
///
/// If there is no memory for the sums.
pub(in crate::exec) fn in_chunks<T: Ring>(
    vector: &[u8],
    out: &mut [u8],
    cost: Cost,
    add: impl Fn(usize, &[u8], usize, &mut [u8]) + Sync,
) -> Result<(), TryReserveError> {
    let width = size_of::<T>();
    let (k, n) = (vector.len() / width, out.len() / width);
    let chunks = (k / GEMV_CHUNK_FACTORS.start).clamp(1, GEMV_CHUNKS).max(k / GEMV_CHUNK_FACTORS.end);
    let factors = k.div_ceil(chunks).next_multiple_of(ROWS_PER_PASS);
    let (chunks, columns) = (k.div_ceil(factors), n.div_ceil(n.div_ceil(GEMV_BLOCK_COLUMNS)));
    let add = |chunk: usize, column: usize, out: &mut [u8]| {
        let (start, end) = (chunk * factors, ((chunk + 1) * factors).min(k));
        add(start, &vector[start * width..end * width], column, out);
        Ok(())
    };
    if chunks == 1 {
        let blocks = out.chunks_mut(columns * width).enumerate();
        let Ok(()) =
            parallel::try_each::<_, Infallible>(n, cost, blocks, |(block, out)| add(0, block * columns, out));
        return Ok(());
    }
    let mut memory = try_filled(n.div_ceil(columns) * chunks * columns * width, 0)?;
    let parts = memory.chunks_exact_mut(columns * width).enumerate();
    let Ok(()) = parallel::try_each::<_, Infallible>(n, cost, parts, |(part, sums)| {
        let (column, chunk) = (part / chunks * columns, part % chunks);
        add(chunk, column, &mut sums[..columns.min(n - column) * width])
    });
    for (out, sums) in out.chunks_mut(columns * width).zip(memory.chunks_exact(chunks * columns * width)) {
        vectorize(ChunkTotalLoop::<T> { sums, columns, out, lane: PhantomData });
    }
    Ok(())
}

/// Adds up the sums of chunks, which begin `columns` elements apart.
struct ChunkTotalLoop<'a, T> {
    sums: &'a [u8],
    columns: usize,
    out: &'a mut [u8],
    lane: PhantomData<T>,
}

impl<T: Ring> Vectorized for ChunkTotalLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (first, rest) = T::view(self.sums).split_at(self.columns);
        let out = T::view_mut(self.out);
        out.copy_from_slice(&first[..out.len()]);
        for sums in rest.chunks_exact(self.columns) {
            for (total, &sum) in out.iter_mut().zip(sums) {
                *total = Ring::add(T::load(*total), T::load(sum)).store();
            }
        }
    }
}

#[inline(always)]
fn fold_rows<T: MatrixVectorLane>(
    matrix: &[T::Bytes],
    vector: &[T::Bytes],
    stride: usize,
    out: &mut [T::Bytes],
) {
    if T::ANY_ORDER {
        // The compiler chooses the best order.
        for (slot, row) in out.iter_mut().zip(matrix.chunks(stride)) {
            let products = row.iter().zip(vector);
            *slot = products.fold(T::ZERO, |sum, (&a, &b)| sum.add_product(T::load(a), T::load(b))).store();
        }
        return;
    }
    let done = T::by_cache_lines(stride, matrix, vector, out);
    let (before, after) = out.split_at_mut(done.start);
    striped::<T, T, STRIPES>(matrix, vector, stride, before);
    let rest = matrix.get(done.end * stride..).unwrap_or(&[]);
    striped::<T, T, STRIPES>(rest, vector, stride, &mut after[done.len()..]);
}

/// Multiplies rows of fewer elements than there are stripes with a vector, which is the sum of scaled
/// columns. Each sum is added up in order, as by [`striped`].
#[inline(always)]
fn fold_transposed_rows<T: Ring>(matrix: &[u8], vector: &[T::Bytes], stride: usize, out: &mut [T::Bytes]) {
    let sizes = (out.len(), vector.len(), stride);
    transpose::for_blocks_of_rows(size_of::<T>(), matrix, sizes, |rows, columns| {
        sum_rows::<T>(vector, T::view(columns), ROWS_PER_BLOCK, &mut out[rows]);
    });
}

/// The number of rows that are multiplied side by side, to hide the latency of additions.
pub(in crate::exec) const GEMV_ROWS_SIDE_BY_SIDE: usize = 4;

/// The number of rows without a whole chunk of stripes that are multiplied side by side.
const SHORT_ROWS_SIDE_BY_SIDE: usize = 8;

/// Multiplies rows, which begin `stride` elements apart, with a vector, in sums of `STRIPES`
/// stripes.
#[inline(always)]
pub(in crate::exec) fn striped<T: Lane, S: Sum<T>, const STRIPES: usize>(
    matrix: &[T::Bytes],
    vector: &[T::Bytes],
    stride: usize,
    out: &mut [T::Bytes],
) {
    striped_of::<T, S, T::Bytes, STRIPES>(matrix, T::load, vector, stride, out);
}

/// [`striped`] of rows with elements of another type, which `load` converts.
#[inline(always)]
pub(in crate::exec) fn striped_of<T: Lane, S: Sum<T>, B: Copy, const STRIPES: usize>(
    matrix: &[B],
    load: impl Fn(B) -> T + Copy,
    vector: &[T::Bytes],
    stride: usize,
    out: &mut [T::Bytes],
) {
    // Sums in order take the time of their additions, one after the other, unless there are many sums.
    if vector.len() < STRIPES {
        return in_groups::<T, S, B, STRIPES, SHORT_ROWS_SIDE_BY_SIDE>(matrix, load, vector, stride, out);
    }
    in_groups::<T, S, B, STRIPES, GEMV_ROWS_SIDE_BY_SIDE>(matrix, load, vector, stride, out);
}

/// [`striped_of`] with `ROWS` rows side by side.
#[inline(always)]
fn in_groups<T: Lane, S: Sum<T>, B: Copy, const STRIPES: usize, const ROWS: usize>(
    matrix: &[B],
    load: impl Fn(B) -> T + Copy,
    vector: &[T::Bytes],
    stride: usize,
    out: &mut [T::Bytes],
) {
    // The registers hold the sums of several rows only if a sum has at most eight bytes.
    let grouped_rows = if size_of::<S>() <= 8 { out.len() / ROWS * ROWS } else { 0 };
    let (grouped, rest) = out.split_at_mut(grouped_rows);
    let groups = grouped.as_chunks_mut::<ROWS>().0;
    let (most, last) = matrix.split_at((grouped_rows * stride).min(matrix.len()));
    for (slots, rows) in groups.iter_mut().zip(most.chunks(ROWS * stride)) {
        let rows = std::array::from_fn(|i| &rows[i * stride..][..vector.len()]);
        fold_side_by_side::<T, S, B, STRIPES, ROWS>(rows, load, vector, slots);
    }
    for (slot, row) in rest.iter_mut().zip(last.chunks(stride)) {
        let (rows, slot) = ([&row[..vector.len()]], std::array::from_mut(slot));
        fold_side_by_side::<T, S, B, STRIPES, 1>(rows, load, vector, slot);
    }
}

#[inline(always)]
fn fold_side_by_side<T: Lane, S: Sum<T>, B: Copy, const STRIPES: usize, const N: usize>(
    rows: [&[B]; N],
    load: impl Fn(B) -> T + Copy,
    vector: &[T::Bytes],
    out: &mut [T::Bytes; N],
) {
    let chunks = vector.as_chunks::<STRIPES>().0;
    let mut totals = [S::EMPTY; N];
    if !chunks.is_empty() {
        let row_chunks = rows.map(|row| &row.as_chunks::<STRIPES>().0[..chunks.len()]);
        let mut sums = [[S::EMPTY; STRIPES]; N];
        for (i, vector) in chunks.iter().enumerate() {
            for (sums, row) in sums.iter_mut().zip(&row_chunks) {
                for ((sum, &a), &b) in sums.iter_mut().zip(&row[i]).zip(vector) {
                    *sum = sum.add_product(load(a), T::load(b));
                }
            }
        }
        totals = fold_halves_of_rows(sums, S::add);
    }
    *out = with_rests::<T, S, B, STRIPES, N>(totals, rows, load, vector);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares transposed rows of every length with rows one by one.
    #[test]
    fn transposed_rows_have_the_sums_of_rows_in_order() {
        for k in 1..STRIPES {
            let (stride, rows) = (k + k % 3, 2 * ROWS_PER_BLOCK + 5);
            let numbers = |count: usize, seed: usize| -> Vec<u8> {
                let number = |i: usize| ((i * 7919 + seed) % 1013) as f32 / 7.0 - 70.0;
                (0..count).flat_map(|i| number(i).to_ne_bytes()).collect()
            };
            let (matrix, vector) = (numbers(rows * stride, 1), numbers(k, 2));
            let (mut got, mut expected) = (vec![0; rows * 4], vec![0; rows * 4]);
            let (matrix_view, vector_view) = (f32::view(&matrix), f32::view(&vector));
            fold_transposed_rows::<f32>(&matrix, vector_view, stride, f32::view_mut(&mut got));
            striped::<f32, f32, STRIPES>(matrix_view, vector_view, stride, f32::view_mut(&mut expected));
            assert_eq!(got, expected, "{k} columns");
        }
    }
}
