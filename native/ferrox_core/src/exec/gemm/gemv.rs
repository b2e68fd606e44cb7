//! Products of a matrix with a vector.
//!
//! Problem: each element of the matrix is read once, so that memory sets the pace,
//! and packing, as gemm does it for whole matrices, takes longer than the product.
//! Technique: where the rows of the matrix lie densely, each is folded with the
//! vector in a fixed number of stripes, added up in order; where its columns do, they
//! are added up one after the other, in chunks that the sizes alone decide. The bits are
//! the same for any number of threads and any instruction set.

use std::collections::TryReserveError;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::Range;

use crate::dtype::Lane;
use crate::exec::gemm::in_order;
use crate::exec::gemm::in_order::{Ring, STEPS};
use crate::exec::memory::recycling_allocator::filled;
use crate::exec::reduce::fold::{STRIPES, fold_halves, through_memory};
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::parallel;
use crate::exec::threads::parallel::Cost;

/// What reading an element and multiplying it costs, by its bytes.
const BYTE: Cost = 20;

/// `out[i]` is the sum of `matrix[i, j] * vector[j]`, for a matrix whose rows lie
/// densely, `stride` elements apart. `alone` if others run beside it.
pub fn rows<T: Ring>(stride: usize, matrix: &[u8], vector: &[u8], out: &mut [u8], alone: bool) {
    let width = size_of::<T>();
    parallel::fill(out, out.len() / width, cost(vector, alone), |first, out| {
        rows_alone::<T>(stride, &matrix[first * stride * width..], vector, out);
    });
}

/// The same on the calling thread.
pub(in crate::exec) fn rows_alone<T: Ring>(stride: usize, matrix: &[u8], vector: &[u8], out: &mut [u8]) {
    vectorize(Product::<T, true> { stride, matrix, vector, out, lane: PhantomData });
}

/// As `rows`, for a matrix whose columns lie densely, `stride` elements apart.
///
/// # Errors
///
/// If there is no memory for sums of parts.
pub fn columns<T: Ring>(
    stride: usize,
    matrix: &[u8],
    vector: &[u8],
    out: &mut [u8],
    alone: bool,
) -> Result<(), TryReserveError> {
    in_chunks::<T>(vector, out, cost(vector, alone), |first, vector, column, out| {
        let matrix = &matrix[(first * stride + column) * size_of::<T>()..];
        vectorize(Product::<T, false> { stride, matrix, vector, out, lane: PhantomData });
    })
}

/// What an element of the result costs.
fn cost(vector: &[u8], alone: bool) -> Cost {
    if alone { 0 } else { BYTE * vector.len() as Cost }
}

struct Product<'a, T, const BY_ROWS: bool> {
    stride: usize,
    matrix: &'a [u8],
    vector: &'a [u8],
    out: &'a mut [u8],
    lane: PhantomData<T>,
}

impl<T: Ring, const BY_ROWS: bool> Vectorized for Product<'_, T, BY_ROWS> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (matrix, vector) = (T::view(self.matrix), T::view(self.vector));
        let out = T::view_mut(self.out);
        if BY_ROWS {
            fold_rows::<T>(matrix, vector, self.stride, out);
        } else {
            in_order::add_rows::<T>(vector, matrix, self.stride, out);
        }
    }
}

/// Columns that are added up at a time: so much of each row is read at once.
const COLUMNS: usize = 2048;

/// Factors of a chunk, at least and at most, and how many chunks there are if that allows it.
const FACTORS: Range<usize> = 64..4096;
const CHUNKS: usize = 16;

/// Sums of products with the elements of a vector, each for many columns: chunks of the vector are
/// shared out rather than few columns, which would be read piece by piece, and their sums added up
/// in order. `add(first, factors, column, out)` adds up one for columns from that on, `factors`
/// being those from the first one on.
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
    let chunks = (k / FACTORS.start).clamp(1, CHUNKS).max(k / FACTORS.end);
    let factors = k.div_ceil(chunks).next_multiple_of(STEPS);
    let (chunks, columns) = (k.div_ceil(factors), n.div_ceil(n.div_ceil(COLUMNS)));
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
    let mut memory = filled(n.div_ceil(columns) * chunks * columns * width, 0)?;
    let parts = memory.chunks_exact_mut(columns * width).enumerate();
    let Ok(()) = parallel::try_each::<_, Infallible>(n, cost, parts, |(part, sums)| {
        let (column, chunk) = (part / chunks * columns, part % chunks);
        add(chunk, column, &mut sums[..columns.min(n - column) * width])
    });
    for (out, sums) in out.chunks_mut(columns * width).zip(memory.chunks_exact(chunks * columns * width)) {
        vectorize(Total::<T> { sums, columns, out, lane: PhantomData });
    }
    Ok(())
}

/// Adds up the sums of chunks, `columns` elements apart.
struct Total<'a, T> {
    sums: &'a [u8],
    columns: usize,
    out: &'a mut [u8],
    lane: PhantomData<T>,
}

impl<T: Ring> Vectorized for Total<'_, T> {
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
fn fold_rows<T: Ring>(matrix: &[T::Bytes], vector: &[T::Bytes], stride: usize, out: &mut [T::Bytes]) {
    if T::ANY_ORDER {
        // The compiler finds better stripes.
        for (slot, row) in out.iter_mut().zip(matrix.chunks(stride)) {
            let products = row.iter().zip(vector);
            *slot = products.fold(T::ZERO, |sum, (&a, &b)| sum.add_product(T::load(a), T::load(b))).store();
        }
        return;
    }
    let done = T::lines(stride, matrix, vector, out);
    let (before, after) = out.split_at_mut(done.start);
    striped::<T, T, STRIPES>(matrix, vector, stride, before);
    let rest = matrix.get(done.end * stride..).unwrap_or(&[]);
    striped::<T, T, STRIPES>(rest, vector, stride, &mut after[done.len()..]);
}

/// Sums of products of elements `T`.
pub(in crate::exec) trait Sum<T: Lane>: Copy {
    /// The sum of none.
    const NONE: Self;
    /// One more.
    fn add_product(self, a: T, b: T) -> Self;
    /// Two sums together.
    fn add(self, other: Self) -> Self;
    /// As an element.
    fn element(self) -> T;
}

impl<T: Ring> Sum<T> for T {
    const NONE: T = T::ZERO;
    #[inline(always)]
    fn add_product(self, a: T, b: T) -> T {
        Ring::add_product(self, a, b)
    }
    #[inline(always)]
    fn add(self, other: T) -> T {
        Ring::add(self, other)
    }
    #[inline(always)]
    fn element(self) -> T {
        self
    }
}

/// Rows that are folded side by side, so that one doesn't wait for itself.
pub(in crate::exec) const ROWS: usize = 4;

/// The products of rows, `stride` elements apart, with a vector, in so many stripes.
#[inline(always)]
pub(in crate::exec) fn striped<T: Lane, S: Sum<T>, const STRIPES: usize>(
    matrix: &[T::Bytes],
    vector: &[T::Bytes],
    stride: usize,
    out: &mut [T::Bytes],
) {
    // Registers hold the sums of as many rows of no more than eight bytes.
    let together = if size_of::<S>() <= 8 { out.len() / ROWS * ROWS } else { 0 };
    let (grouped, rest) = out.split_at_mut(together);
    let groups = grouped.as_chunks_mut::<ROWS>().0;
    let (most, last) = matrix.split_at((together * stride).min(matrix.len()));
    for (slots, rows) in groups.iter_mut().zip(most.chunks(ROWS * stride)) {
        let rows = std::array::from_fn(|i| &rows[i * stride..][..vector.len()]);
        fold_together::<T, S, STRIPES, ROWS>(rows, vector, slots);
    }
    for (slot, row) in rest.iter_mut().zip(last.chunks(stride)) {
        fold_together::<T, S, STRIPES, 1>([&row[..vector.len()]], vector, std::array::from_mut(slot));
    }
}

#[inline(always)]
fn fold_together<T: Lane, S: Sum<T>, const STRIPES: usize, const N: usize>(
    rows: [&[T::Bytes]; N],
    vector: &[T::Bytes],
    out: &mut [T::Bytes; N],
) {
    let chunks = vector.as_chunks::<STRIPES>().0;
    let row_chunks = rows.map(|row| &row.as_chunks::<STRIPES>().0[..chunks.len()]);
    let mut sums = [[S::NONE; STRIPES]; N];
    for (i, vector) in chunks.iter().enumerate() {
        for (sums, row) in sums.iter_mut().zip(&row_chunks) {
            for ((sum, &a), &b) in sums.iter_mut().zip(&row[i]).zip(vector) {
                *sum = sum.add_product(T::load(a), T::load(b));
            }
        }
    }
    for ((slot, row), stripes) in out.iter_mut().zip(rows).zip(through_memory(sums)) {
        *slot = with_rest::<T, S, STRIPES>(fold_halves(stripes, S::add), row, vector);
    }
}

/// The total with what comes after the last stripe of a row, as an element.
#[inline(always)]
pub(in crate::exec) fn with_rest<T: Lane, S: Sum<T>, const STRIPES: usize>(
    total: S,
    row: &[T::Bytes],
    vector: &[T::Bytes],
) -> T::Bytes {
    let rest = vector.as_chunks::<STRIPES>().1;
    let rest = row[row.len() - rest.len()..].iter().zip(rest);
    rest.fold(total, |total, (&a, &b)| total.add_product(T::load(a), T::load(b))).element().store()
}
