//! Products of mixed types: a matrix of narrower elements than f32 with a vector or a few rows of
//! f32.
//!
//! Problem: converting the whole matrix first takes longer than multiplying it, and two or four
//! times its memory.
//! Technique: the matrix is converted part by part, and each part is multiplied while it is in the
//! cache; bf16 is converted in registers. A product with a vector has the same bits as if the whole
//! matrix was converted first.

use std::collections::TryReserveError;

use crate::DType;
use crate::cost::{Cost, MAX_CONVERTED_ELEMENTS, MIXED_ELEMENT_COST};
use crate::dtype::Lane;
use crate::exec::gemm::blocked::product_cost;
use crate::exec::gemm::gemv::GEMV_ROWS_SIDE_BY_SIDE;
use crate::exec::gemm::matrix::{MatrixBytes, ProductTarget, UnconvertedMatrix};
use crate::exec::gemm::ring::{ROWS_PER_PASS, add_rows, sum_rows_of};
use crate::exec::gemm::{blocked, gemv};
use crate::exec::memory::try_filled;
use crate::exec::reduce::fold::STRIPES;
use crate::exec::simd::{CACHE_LINE_BYTES, Vectorized, dispatch as vectorize};
use crate::exec::threads::parallel;

/// The number of bytes in an f32, which the narrower elements are converted to.
const F32_BYTES: usize = size_of::<f32>();

/// The number of elements that are converted of one row before the next row.
const ROW_PART_ELEMENTS: usize = 512;

impl UnconvertedMatrix<'_> {
    /// Converts the elements from `first` on until `out` is full.
    fn load(&self, first: usize, out: &mut [u8]) {
        (self.convert)(&self.bytes[first * self.width..][..out.len() / F32_BYTES * self.width], out);
    }
}

/// `out[i]` is the sum of `matrix[i, j] * vector[j]`, for a matrix with dense rows. With `alone`,
/// the product keeps to the calling thread.
///
/// # Errors
///
/// If there is no memory for a few converted rows.
pub fn rows(
    matrix: UnconvertedMatrix<'_>,
    vector: &[u8],
    out: &mut [u8],
    alone: bool,
) -> Result<(), TryReserveError> {
    if matrix.dtype == DType::BF16 {
        return parallel::try_fill(out, out.len() / F32_BYTES, cost(vector, alone), |first, out| {
            let UnconvertedMatrix { bytes, width, stride, .. } = matrix;
            vectorize(Bf16Loop::<true> { matrix: &bytes[first * stride * width..], vector, stride, out });
            Ok(())
        });
    }
    // Rows that begin at a cache line are read faster.
    let (length, row_pitch) = (vector.len(), vector.len().next_multiple_of(CACHE_LINE_BYTES));
    let rows_per_group =
        (MAX_CONVERTED_ELEMENTS * F32_BYTES / row_pitch).max(1).next_multiple_of(GEMV_ROWS_SIDE_BY_SIDE);
    parallel::try_fill(out, out.len() / F32_BYTES, cost(vector, alone), |first, out| {
        let mut memory = try_filled(rows_per_group * row_pitch + CACHE_LINE_BYTES, 0)?;
        let start = memory.as_ptr().align_offset(CACHE_LINE_BYTES).min(CACHE_LINE_BYTES);
        let buffer = &mut memory[start..][..rows_per_group * row_pitch];
        for (group, out) in out.chunks_mut(rows_per_group * F32_BYTES).enumerate() {
            let (first, rows) = (first + group * rows_per_group, out.len() / F32_BYTES);
            if matrix.stride * F32_BYTES == length && length == row_pitch {
                matrix.load(first * matrix.stride, &mut buffer[..rows * length]);
            } else {
                for (i, row) in buffer.chunks_exact_mut(row_pitch).take(rows).enumerate() {
                    matrix.load((first + i) * matrix.stride, &mut row[..length]);
                }
            }
            gemv::rows_alone::<f32>(row_pitch / F32_BYTES, buffer, vector, out);
        }
        Ok(())
    })
}

/// `rows` for a matrix with dense columns.
///
/// # Errors
///
/// As `rows`.
pub fn columns(
    matrix: UnconvertedMatrix<'_>,
    vector: &[u8],
    out: &mut [u8],
    alone: bool,
) -> Result<(), TryReserveError> {
    if matrix.dtype == DType::BF16 {
        return gemv::in_chunks::<f32>(vector, out, cost(vector, alone), |first, factors, column, out| {
            let UnconvertedMatrix { bytes, width, stride, .. } = matrix;
            let matrix = &bytes[(first * stride + column) * width..];
            vectorize(Bf16Loop::<false> { matrix, vector: factors, stride, out });
        });
    }
    gemv::in_chunks::<f32>(vector, out, cost(vector, alone), |first, factors, column, out| {
        let mut buffer = [[0; ROW_PART_ELEMENTS * F32_BYTES]; ROWS_PER_PASS];
        out.fill(0);
        for (group, factors) in factors.chunks(ROWS_PER_PASS * F32_BYTES).enumerate() {
            for (tile, out) in out.chunks_mut(ROW_PART_ELEMENTS * F32_BYTES).enumerate() {
                for (i, row) in buffer.iter_mut().take(factors.len() / F32_BYTES).enumerate() {
                    let start = (first + group * ROWS_PER_PASS + i) * matrix.stride;
                    matrix.load(start + column + tile * ROW_PART_ELEMENTS, &mut row[..out.len()]);
                }
                vectorize(AddRowsLoop { factors, rows: buffer.as_flattened(), out });
            }
        }
    })
}

/// The number of elements in a part that is multiplied with up to [`ROWS_PER_CONVERSION`] rows; with
/// more rows, parts are larger in proportion.
const MIXED_PART_ELEMENTS: usize = 1 << 18;

/// The number of rows with which multiplying a part takes about as long as converting it.
pub const ROWS_PER_CONVERSION: usize = 16;

/// The number of columns, of `k` elements each, in a part that is multiplied with `m` rows: parts
/// are larger for more rows, since gemm packs the rows again for each part.
fn part(m: usize, k: usize) -> usize {
    (MIXED_PART_ELEMENTS / k).saturating_mul(m.div_ceil(ROWS_PER_CONVERSION)).max(1).next_multiple_of(64)
}

/// The minimum length of the dense rows or columns that are multiplied with a vector, and with several
/// rows: a conversion call for each shorter one would take longer than the elements.
const MIN_MIXED_LINE_ELEMENTS: [usize; 2] = [32, 128];

/// The minimum ratio of the elements of the matrix to the elements of the result, for several rows.
const MIN_MIXED_SIZE_RATIO: usize = 8;

/// Returns whether a matrix of `[k, n]` should be converted while it is multiplied with `m` rows:
/// its dense rows or columns must be long, and for several rows, it must be much larger than the
/// result and have several parts.
#[must_use]
pub fn pays([m, k, n]: [usize; 3]) -> bool {
    let [for_vector, for_rows] = MIN_MIXED_LINE_ELEMENTS.map(|elements| k.min(n) >= elements);
    if m == 1 { for_vector } else { for_rows && m <= k / MIN_MIXED_SIZE_RATIO && n >= 2 * part(m, k) }
}

/// `out = left * matrix` for matrices of `[m, k]` and `[k, n]`, in parts of several columns.
///
/// # Errors
///
/// If there is no memory for parts.
pub fn product(
    [m, k, n]: [usize; 3],
    left: MatrixBytes<'_>,
    matrix: UnconvertedMatrix<'_>,
    out: ProductTarget<'_>,
) -> Result<(), TryReserveError> {
    let columns = part(m, k);
    let mut results = try_filled(n.div_ceil(columns) * m * columns * F32_BYTES, 0)?;
    let parts = results.chunks_exact_mut(m * columns * F32_BYTES).enumerate();
    let column_cost =
        (MIXED_ELEMENT_COST + product_cost(DType::F32).saturating_mul(m as Cost)).saturating_mul(k as Cost);
    parallel::try_each(n, if out.alone { 0 } else { column_cost }, parts, |(part, result)| {
        let first = part * columns;
        let columns = columns.min(n - first);
        let mut wide = try_filled(k * columns * F32_BYTES, 0)?;
        let line = if matrix.by_rows { columns } else { k };
        for (i, line) in wide.chunks_exact_mut(line * F32_BYTES).enumerate() {
            let by_rows = i * matrix.stride + first;
            matrix.load(if matrix.by_rows { by_rows } else { (first + i) * matrix.stride }, line);
        }
        let right = MatrixBytes { bytes: &wide, strides: if matrix.by_rows { [columns, 1] } else { [1, k] } };
        let bytes = &mut result[..m * columns * F32_BYTES];
        blocked::multiply_floats(
            DType::F32,
            [m, k, columns],
            left,
            right,
            ProductTarget { bytes, strides: [columns, 1], alone: true },
        )
    })?;
    let out_elements = f32::view_mut(out.bytes);
    for (part, result) in results.chunks_exact(m * columns * F32_BYTES).enumerate() {
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

/// The cost of an element of the product with a vector; zero with `alone`, so that the work isn't
/// shared.
fn cost(vector: &[u8], alone: bool) -> Cost {
    if alone { 0 } else { MIXED_ELEMENT_COST * (vector.len() / F32_BYTES) as Cost }
}

/// Adds up rows, which begin `ROW_PART_ELEMENTS` elements apart, each scaled by a factor.
struct AddRowsLoop<'a> {
    factors: &'a [u8],
    rows: &'a [u8],
    out: &'a mut [u8],
}

impl Vectorized for AddRowsLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (factors, rows, out) = (f32::view(self.factors), f32::view(self.rows), f32::view_mut(self.out));
        add_rows::<f32>(factors, rows, ROW_PART_ELEMENTS, out);
    }
}

/// Multiplies a matrix of bf16, whose dense rows or columns begin `stride` elements apart, with a vector.
struct Bf16Loop<'a, const BY_ROWS: bool> {
    matrix: &'a [u8],
    vector: &'a [u8],
    stride: usize,
    out: &'a mut [u8],
}

impl<const BY_ROWS: bool> Vectorized for Bf16Loop<'_, BY_ROWS> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (matrix, vector) = (self.matrix.as_chunks::<2>().0, f32::view(self.vector));
        let out = f32::view_mut(self.out);
        if BY_ROWS {
            gemv::striped_of::<f32, f32, [u8; 2], STRIPES>(matrix, load_bf16, vector, self.stride, out);
        } else {
            sum_rows_of::<f32, [u8; 2]>(vector, matrix, load_bf16, self.stride, out);
        }
    }
}

/// The value of a bf16, which is the upper half of an f32: a vector is converted in a register.
#[inline(always)]
fn load_bf16(bytes: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_ne_bytes(bytes)) << 16)
}
