//! Products of a matrix of narrower elements than f32 with a vector or a few rows of f32.
//!
//! Problem: to convert a matrix takes longer than to multiply it, and twice or four times its
//! memory. Technique: a part at a time is converted and multiplied, before it leaves the
//! cache. With a vector, the bits are those of a matrix that is converted before.

use std::collections::TryReserveError;

use crate::DType;
use crate::dtype::Lane;
use crate::exec::elementwise::Convert;
use crate::exec::gemm::gemv::ROWS;
use crate::exec::gemm::in_order::{Matrix, STEPS, Target};
use crate::exec::gemm::{gemv, in_order};
use crate::exec::memory::recycling_allocator::filled;
use crate::exec::simd::{CACHE_LINE_BYTES, Vectorized, dispatch as vectorize};
use crate::exec::threads::parallel;
use crate::exec::threads::parallel::Cost;

const WIDTH: usize = size_of::<f32>();

/// Elements that are converted at a time, rows permitting: half of a first-level cache.
const TOGETHER: usize = 4096;

/// Elements of a row that are converted before those of the next.
const PIECE: usize = 512;

/// What converting and multiplying an element costs.
pub const ELEMENT: Cost = 100;

/// A matrix to convert.
#[derive(Clone, Copy)]
pub struct Narrow<'a> {
    /// From the first element on.
    pub bytes: &'a [u8],
    /// Bytes of an element.
    pub width: usize,
    /// Elements from a row or a column, which lies densely, to the next.
    pub stride: usize,
    /// Whether rows lie densely, not columns.
    pub by_rows: bool,
    /// Makes f32 of its elements.
    pub convert: Convert,
}

impl Narrow<'_> {
    /// Converts as many elements as `out` holds.
    fn load(&self, first: usize, out: &mut [u8]) {
        (self.convert)(&self.bytes[first * self.width..][..out.len() / WIDTH * self.width], out);
    }
}

/// `out[i]` is the sum of `matrix[i, j] * vector[j]`, for a matrix whose rows lie densely. `alone`
/// if others run beside it.
///
/// # Errors
///
/// If there is no memory for a few rows.
pub fn rows(matrix: Narrow<'_>, vector: &[u8], out: &mut [u8], alone: bool) -> Result<(), TryReserveError> {
    // Rows that begin with a line are read faster.
    let (length, apart) = (vector.len(), vector.len().next_multiple_of(CACHE_LINE_BYTES));
    let together = (TOGETHER * WIDTH / apart).max(1).next_multiple_of(ROWS);
    parallel::try_fill(out, out.len() / WIDTH, cost(vector, alone), |first, out| {
        let mut memory = filled(together * apart + CACHE_LINE_BYTES, 0)?;
        let start = memory.as_ptr().align_offset(CACHE_LINE_BYTES).min(CACHE_LINE_BYTES);
        let buffer = &mut memory[start..][..together * apart];
        for (group, out) in out.chunks_mut(together * WIDTH).enumerate() {
            let first = first + group * together;
            for (i, row) in buffer.chunks_exact_mut(apart).take(out.len() / WIDTH).enumerate() {
                matrix.load((first + i) * matrix.stride, &mut row[..length]);
            }
            gemv::rows_alone::<f32>(apart / WIDTH, buffer, vector, out);
        }
        Ok(())
    })
}

/// As `rows`, for a matrix whose columns lie densely.
///
/// # Errors
///
/// As `rows`.
pub fn columns(
    matrix: Narrow<'_>,
    vector: &[u8],
    out: &mut [u8],
    alone: bool,
) -> Result<(), TryReserveError> {
    gemv::in_chunks::<f32>(vector, out, cost(vector, alone), |first, factors, column, out| {
        let mut buffer = [[0; PIECE * WIDTH]; STEPS];
        out.fill(0);
        for (group, factors) in factors.chunks(STEPS * WIDTH).enumerate() {
            for (piece, out) in out.chunks_mut(PIECE * WIDTH).enumerate() {
                for (i, row) in buffer.iter_mut().take(factors.len() / WIDTH).enumerate() {
                    let start = (first + group * STEPS + i) * matrix.stride;
                    matrix.load(start + column + piece * PIECE, &mut row[..out.len()]);
                }
                vectorize(Add { factors, rows: buffer.as_flattened(), out });
            }
        }
    })
}

/// Elements of a part to convert, for each `FEW` rows that it is multiplied with.
const PART: usize = 1 << 18;

/// So many rows take about as long as the conversion.
pub const FEW: usize = 16;

/// Columns of a part, of `k` elements each, that is multiplied with `m` rows: of more rows more, as
/// these are laid out for each part.
fn part(m: usize, k: usize) -> usize {
    (PART / k).saturating_mul(m.div_ceil(FEW)).max(1).next_multiple_of(64)
}

/// Lines of so many elements are long: a call for each is not what takes time.
const LONG: usize = 128;

/// A matrix of so many times the elements of the result is much larger.
const MANY: usize = 8;

/// Whether to convert a matrix of `[k, n]` while it is multiplied with `m` rows: if its lines are
/// long, so that a call for each is not what takes time, and for several rows, if the matrix is much
/// larger than the result and has several parts.
#[must_use]
pub fn pays([m, k, n]: [usize; 3]) -> bool {
    k.min(n) >= LONG && (m == 1 || m <= k / MANY && n >= 2 * part(m, k))
}

/// `out = left * matrix`: `[m, k]` by `[k, n]`, in parts.
///
/// # Errors
///
/// If there is no memory for parts.
pub fn product(
    [m, k, n]: [usize; 3],
    left: Matrix<'_>,
    matrix: Narrow<'_>,
    out: Target<'_>,
) -> Result<(), TryReserveError> {
    let columns = part(m, k);
    let mut results = filled(n.div_ceil(columns) * m * columns * WIDTH, 0)?;
    let parts = results.chunks_exact_mut(m * columns * WIDTH).enumerate();
    let one = (ELEMENT + in_order::cost(DType::F32).saturating_mul(m as Cost)).saturating_mul(k as Cost);
    parallel::try_each(n, if out.alone { 0 } else { one }, parts, |(part, result)| {
        let first = part * columns;
        let columns = columns.min(n - first);
        let mut wide = filled(k * columns * WIDTH, 0)?;
        let line = if matrix.by_rows { columns } else { k };
        for (i, line) in wide.chunks_exact_mut(line * WIDTH).enumerate() {
            let by_rows = i * matrix.stride + first;
            matrix.load(if matrix.by_rows { by_rows } else { (first + i) * matrix.stride }, line);
        }
        let right = Matrix { bytes: &wide, strides: if matrix.by_rows { [columns, 1] } else { [1, k] } };
        let bytes = &mut result[..m * columns * WIDTH];
        in_order::float(
            DType::F32,
            [m, k, columns],
            left,
            right,
            Target { bytes, strides: [columns, 1], alone: true },
        )
    })?;
    let out_elements = f32::view_mut(out.bytes);
    for (part, result) in results.chunks_exact(m * columns * WIDTH).enumerate() {
        let first = part * columns;
        let columns = columns.min(n - first);
        for (i, row) in f32::view(result).chunks_exact(columns).take(m).enumerate() {
            for (j, &value) in row.iter().enumerate() {
                out_elements[i * out.strides[0] + (first + j) * out.strides[1]] = value;
            }
        }
    }
    Ok(())
}

/// What an element of the product with a vector costs.
fn cost(vector: &[u8], alone: bool) -> Cost {
    if alone { 0 } else { ELEMENT * (vector.len() / WIDTH) as Cost }
}

/// Adds up rows `PIECE` elements apart, each times its factor.
struct Add<'a> {
    factors: &'a [u8],
    rows: &'a [u8],
    out: &'a mut [u8],
}

impl Vectorized for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (factors, rows, out) = (f32::view(self.factors), f32::view(self.rows), f32::view_mut(self.out));
        in_order::add_to::<f32>(factors, rows, PIECE, out);
    }
}
