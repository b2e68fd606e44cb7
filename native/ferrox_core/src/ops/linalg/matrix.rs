//! Dense matrices in row-major order, and vectorized loops over their rows.

use num_complex::Complex;

use crate::cost::{self, MATRIX_PASS_ELEMENT_COST};
use crate::exec::gemm::blocked::{self, Block, Right, Update, View};
use crate::exec::memory::filled;
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::cooperative_yield;
use crate::ops::linalg::scalar::Scalar;
use crate::ops::math::complex;
use crate::ops::math::f64_functions::exponent_of_two;
use crate::{DType, Error};

/// A matrix in row-major order.
#[derive(Clone, Debug)]
pub struct Matrix<T> {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// The elements, row after row.
    pub data: Vec<T>,
}

/// Lets the thread yield, if it is time to, after `rows * columns` multiply-adds of a long
/// factorization.
pub fn yield_after(rows: usize, columns: usize) {
    cooperative_yield::after(cost::work(rows.saturating_mul(columns), MATRIX_PASS_ELEMENT_COST));
}

/// `blocked::multiply` for an operation.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory for copies of the operands.
pub fn multiply<T: Scalar>(
    op: &'static str,
    sizes: [usize; 3],
    update: Update,
    left: View<'_, T>,
    right: View<'_, T>,
    out: (&mut [T], [usize; 2]),
) -> Result<(), Error> {
    blocked::multiply(sizes, update, left, right, out).map_err(|_| Error::TooLarge {
        op,
        dtype: T::DTYPE,
        shape: sizes.to_vec(),
    })
}

/// `blocked::subtract_within` for an operation.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory for copies of the operands.
pub fn subtract_within<T: Scalar>(
    op: &'static str,
    data: &mut [T],
    stride: usize,
    out: &Block,
    left: &Block,
    right: (&Block, Right),
) -> Result<(), Error> {
    let shape = [left, right.0].map(|block| block.rows.len()).to_vec();
    blocked::subtract_within(data, stride, out, left, right).map_err(|_| Error::TooLarge {
        op,
        dtype: T::DTYPE,
        shape,
    })
}

/// A vector of these values.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn vector<T>(op: &'static str, values: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, Error> {
    let mut vector = Vec::new();
    let shape = [values.len()];
    vector.try_reserve_exact(shape[0]).map_err(|_| Error::TooLarge {
        op,
        dtype: DType::F64,
        shape: shape.to_vec(),
    })?;
    vector.extend(values);
    Ok(vector)
}

/// A vector of `length` copies of a value.
///
/// # Errors
///
/// As `vector`.
pub fn filled_vector<T: Scalar>(op: &'static str, length: usize, value: T) -> Result<Vec<T>, Error> {
    filled(op, T::DTYPE, &[length], length, value)
}

/// The number of rows and columns of the square blocks that a transpose reads and writes at once:
/// 64 bytes of f64, a cache line, in each row.
const MATRIX_TRANSPOSE_BLOCK_SIDE: usize = 8;

impl<T: Scalar> Matrix<T> {
    /// A matrix of zeros.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn zeros(op: &'static str, rows: usize, columns: usize) -> Result<Self, Error> {
        let error = || Error::TooLarge { op, dtype: T::DTYPE, shape: vec![rows, columns] };
        let length = rows.checked_mul(columns).ok_or_else(error)?;
        let data = filled(op, T::DTYPE, &[rows, columns], length, T::ZERO)?;
        Ok(Matrix { rows, columns, data })
    }

    /// A matrix with ones on its diagonal and zeros elsewhere.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn eye(op: &'static str, rows: usize, columns: usize) -> Result<Self, Error> {
        let mut eye = Self::zeros(op, rows, columns)?;
        for i in 0..rows.min(columns) {
            *eye.at_mut(i, i) = T::ONE;
        }
        Ok(eye)
    }

    /// A copy of some rows.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn some_rows(&self, op: &'static str, rows: std::ops::Range<usize>) -> Result<Self, Error> {
        let mut copy = Self::zeros(op, rows.len(), self.columns)?;
        copy.data.copy_from_slice(&self.data[rows.start * self.columns..rows.end * self.columns]);
        Ok(copy)
    }

    /// A copy of the matrix.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn copy(&self, op: &'static str) -> Result<Self, Error> {
        self.some_rows(op, 0..self.rows)
    }

    /// The transpose.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn transpose(&self, op: &'static str) -> Result<Self, Error> {
        let mut transpose = Self::zeros(op, self.columns, self.rows)?;
        vectorize(TransposeLoop { from: self, out: &mut transpose.data });
        Ok(transpose)
    }

    /// The conjugate transpose.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn adjoint(&self, op: &'static str) -> Result<Self, Error> {
        let mut adjoint = self.transpose(op)?;
        adjoint.map(T::conj);
        Ok(adjoint)
    }

    /// The product of two matrices.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn times(&self, op: &'static str, other: &Self) -> Result<Self, Error> {
        let mut product = Self::zeros(op, self.rows, other.columns)?;
        for i in 0..self.rows {
            let (row, out) = (self.row(i), product.row_mut(i));
            add_rows(out, row, &other.data, other.columns);
        }
        Ok(product)
    }

    /// The whole matrix as an operand of a blocked product.
    pub fn view(&self) -> View<'_, T> {
        View::rows(&self.data, self.columns)
    }

    /// An element.
    #[inline(always)]
    pub fn at(&self, row: usize, column: usize) -> T {
        self.data[row * self.columns + column]
    }

    /// An element, to write to.
    #[inline(always)]
    pub fn at_mut(&mut self, row: usize, column: usize) -> &mut T {
        &mut self.data[row * self.columns + column]
    }

    /// A row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &[T] {
        &self.data[row * self.columns..][..self.columns]
    }

    /// A row, to write to.
    #[inline(always)]
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        &mut self.data[row * self.columns..][..self.columns]
    }

    /// Two different rows, to write to.
    pub fn two_rows(&mut self, first: usize, second: usize) -> (&mut [T], &mut [T]) {
        let n = self.columns;
        if first < second {
            let (head, tail) = self.data.split_at_mut(second * n);
            (&mut head[first * n..][..n], &mut tail[..n])
        } else {
            let (head, tail) = self.data.split_at_mut(first * n);
            (&mut tail[..n], &mut head[second * n..][..n])
        }
    }

    /// Swaps two rows.
    pub fn swap_rows(&mut self, first: usize, second: usize) {
        if first != second {
            let (a, b) = self.two_rows(first, second);
            a.swap_with_slice(b);
        }
    }

    /// Replaces every element by a function of it.
    pub fn map(&mut self, change: impl Fn(T) -> T) {
        self.data.iter_mut().for_each(|value| *value = change(*value));
    }

    /// Whether all elements are finite.
    pub fn is_finite(&self) -> bool {
        self.data.iter().all(|value| value.is_finite())
    }

    /// The Frobenius norm, computed without overflow.
    pub fn norm(&self) -> f64 {
        norm(&self.data)
    }
}

struct TransposeLoop<'a, T> {
    from: &'a Matrix<T>,
    out: &'a mut [T],
}

impl<T: Scalar> Vectorized for TransposeLoop<'_, T> {
    type Output = ();

    /// Transposes block by block, so that each cache line is read and written once.
    #[inline(always)]
    fn run(self) {
        let TransposeLoop { from: &Matrix { rows, columns, ref data }, out } = self;
        let (full_rows, full_columns) = (
            rows / MATRIX_TRANSPOSE_BLOCK_SIDE * MATRIX_TRANSPOSE_BLOCK_SIDE,
            columns / MATRIX_TRANSPOSE_BLOCK_SIDE * MATRIX_TRANSPOSE_BLOCK_SIDE,
        );
        for first in (0..full_rows).step_by(MATRIX_TRANSPOSE_BLOCK_SIDE) {
            for start in (0..full_columns).step_by(MATRIX_TRANSPOSE_BLOCK_SIDE) {
                let mut block = [[T::ZERO; MATRIX_TRANSPOSE_BLOCK_SIDE]; MATRIX_TRANSPOSE_BLOCK_SIDE];
                for (i, block_row) in block.iter_mut().enumerate() {
                    block_row.copy_from_slice(
                        &data[(first + i) * columns + start..][..MATRIX_TRANSPOSE_BLOCK_SIDE],
                    );
                }
                for j in 0..MATRIX_TRANSPOSE_BLOCK_SIDE {
                    let block_row = block.map(|block_row| block_row[j]);
                    out[(start + j) * rows + first..][..MATRIX_TRANSPOSE_BLOCK_SIDE]
                        .copy_from_slice(&block_row);
                }
            }
        }
        for i in 0..rows {
            for j in if i < full_rows { full_columns } else { 0 }..columns {
                out[j * rows + i] = data[i * columns + j];
            }
        }
    }
}

/// The magnitude up to which an element counts as zero in a matrix whose largest magnitude is about
/// one. Products of a smaller number with a rounding error would be subnormal or zero.
pub const UNDERFLOW_THRESHOLD: f64 = 1e-290;

/// Multiplies by a power of two, so that squares of the elements neither over- nor underflow.
#[derive(Clone, Copy, Debug)]
pub struct Scaling {
    /// Each power of two as two factors, which are in the range of f64.
    down: [f64; 2],
    up: [f64; 2],
}

/// The binary exponent of the largest magnitude after `Scaling::to_high`. Sums of its square are
/// far from overflow, and a number that is smaller than it by the factor 1e400 is still normal.
const HIGH_SCALING_EXPONENT: i32 = 330;

impl Scaling {
    /// Scales this largest magnitude to about one. Zero and numbers that are not finite are not
    /// scaled.
    pub fn to_unit(max_abs: f64) -> Self {
        Self::to_exponent(0, max_abs)
    }

    /// Scales this largest magnitude to a high one, which leaves room for elements that are far
    /// smaller.
    pub fn to_high(max_abs: f64) -> Self {
        Self::to_exponent(HIGH_SCALING_EXPONENT, max_abs)
    }

    fn to_exponent(exponent: i32, max_abs: f64) -> Self {
        let has_exponent = max_abs > 0.0 && max_abs.is_finite();
        let exponent = if has_exponent { exponent_of_two(max_abs) - exponent } else { 0 };
        let factors = |exponent: i32| [2f64.powi(exponent / 2), 2f64.powi(exponent - exponent / 2)];
        Scaling { down: factors(-exponent), up: factors(exponent) }
    }

    /// The scaled value.
    #[inline(always)]
    pub fn down<T: Scalar>(self, value: T) -> T {
        value.scale(self.down[0]).scale(self.down[1])
    }

    /// The value before it was scaled.
    #[inline(always)]
    pub fn up<T: Scalar>(self, value: T) -> T {
        value.scale(self.up[0]).scale(self.up[1])
    }
}

/// The ratio of the largest to the smallest row from which the rows of a matrix count as graded.
const GRADED_SIZE_RATIO: f64 = 1e4;

/// The order of rows that makes their `sizes` descending. Returns `None` if all sizes that are not
/// zero are about the same.
///
/// A reflection mixes the remaining rows with the first of them. If the first is the largest, its
/// rounding errors don't drown the others.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn descending_order(op: &'static str, sizes: &[f64]) -> Result<Option<Vec<usize>>, Error> {
    let max_abs = max_abs(sizes);
    let least = sizes.iter().copied().filter(|&size| size > 0.0).fold(max_abs, f64::min);
    if max_abs / GRADED_SIZE_RATIO <= least {
        return Ok(None);
    }
    let mut order = vector(op, 0..sizes.len())?;
    order.sort_unstable_by(|&a, &b| sizes[b].total_cmp(&sizes[a]).then(a.cmp(&b)));
    Ok(Some(order))
}

/// The magnitude up to which an element of a matrix of norm one counts as the rounding error of a
/// zero: at most a rounding error of the norm, and less in larger matrices, where all elements
/// together stay within a few of these.
pub fn noise(rows: usize, columns: usize) -> f64 {
    f64::EPSILON * (16.0 / (rows * columns) as f64).min(1.0)
}

/// Neither the squares of these magnitudes nor sums of the squares over- or underflow.
const SAFE_SQUARE_RANGE: std::ops::RangeInclusive<f64> = 1e-120..=1e120;

/// The number of magnitude one with the direction of `value`, which is not zero.
pub fn direction<T: Scalar>(value: T) -> T {
    // Scales first: the reciprocal of a subnormal number may be infinite.
    let up = if value.abs() < *SAFE_SQUARE_RANGE.start() { 2f64.powi(500) } else { 1.0 };
    let value = value.scale(up);
    value.scale(1.0 / value.abs())
}

/// The Euclidean norm, computed without overflow.
pub fn norm<T: Scalar>(values: &[T]) -> f64 {
    let max_abs = max_abs(values);
    if max_abs == 0.0 || !max_abs.is_finite() {
        return max_abs;
    }
    if SAFE_SQUARE_RANGE.contains(&max_abs) {
        return vectorize(SquaresLoop { values }).sqrt();
    }
    // Divides rather than multiplies: the reciprocal of a subnormal number may be infinite.
    max_abs * values.iter().map(|v| (v.abs() / max_abs).powi(2)).sum::<f64>().sqrt()
}

/// The number of accumulators of a sum of squares or of a maximum.
const NORM_STRIPES: usize = 16;

struct SquaresLoop<'a, T> {
    values: &'a [T],
}

impl<T: Scalar> Vectorized for SquaresLoop<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut sums = [0.0; NORM_STRIPES];
        let (chunks, rest) = self.values.as_chunks::<NORM_STRIPES>();
        for chunk in chunks {
            for (sum, value) in sums.iter_mut().zip(chunk) {
                *sum += value.abs_sq();
            }
        }
        rest.iter().map(|value| value.abs_sq()).sum::<f64>() + sums.iter().sum::<f64>()
    }
}

struct MaxAbsLoop<'a, T> {
    values: &'a [T],
}

impl<T: Scalar> Vectorized for MaxAbsLoop<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut maxima = [0.0; NORM_STRIPES];
        let (chunks, rest) = self.values.as_chunks::<NORM_STRIPES>();
        for chunk in chunks {
            for (maxima, value) in maxima.iter_mut().zip(chunk) {
                let size = value.abs();
                *maxima = if size > *maxima { size } else { *maxima };
            }
        }
        maxima.into_iter().chain(rest.iter().map(|value| value.abs())).fold(0.0, f64::max)
    }
}

/// The largest magnitude, which ignores NaN; zero if there are no values.
pub fn max_abs<T: Scalar>(values: &[T]) -> f64 {
    vectorize(MaxAbsLoop { values })
}

struct DivideLoop<'a, T> {
    values: &'a mut [T],
    divisor: T,
}

impl<T: Scalar> Vectorized for DivideLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.values.iter_mut().for_each(|value| *value = value.divided_by(self.divisor));
    }
}

/// Divides every value by `divisor`.
pub fn divide<T: Scalar>(values: &mut [T], divisor: T) {
    vectorize(DivideLoop { values, divisor });
}

struct FlushToZeroLoop<'a, T> {
    values: &'a mut [T],
    eps: f64,
}

impl<T: Scalar> Vectorized for FlushToZeroLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.values.iter_mut().for_each(|value| *value = value.flush_to_zero(self.eps));
    }
}

/// Applies `Scalar::flush_to_zero` to every value.
pub fn flush_to_zero<T: Scalar>(values: &mut [T], eps: f64) {
    vectorize(FlushToZeroLoop { values, eps });
}

/// The square root of `a² + b²`, without overflow of the squares. Unlike `f64::hypot` it needs no C
/// library, and has the same bits everywhere.
#[inline]
pub fn hypotenuse(a: f64, b: f64) -> f64 {
    let squares = a * a + b * b;
    if SAFE_SQUARE_RANGE.contains(&squares) { squares.sqrt() } else { complex::abs(Complex::new(a, b)) }
}

/// The Givens rotation that maps `(f, g)` to `(r, 0)`, as `(c, s, r)`.
#[inline]
pub fn givens_rotation(f: f64, g: f64) -> (f64, f64, f64) {
    let r = hypotenuse(f, g);
    if r > UNDERFLOW_THRESHOLD {
        return (f / r, g / r, r);
    }
    if r == 0.0 {
        return (1.0, 0.0, 0.0);
    }
    // Scales first: subnormal numbers have few digits.
    let up = 2f64.powi(500);
    let (f, g) = (f * up, g * up);
    let scaled = hypotenuse(f, g);
    (f / scaled, g / scaled, r)
}

struct AddScaledLoop<'a, T> {
    out: &'a mut [T],
    row: &'a [T],
    factor: T,
}

impl<T: Scalar> Vectorized for AddScaledLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (out, &value) in self.out.iter_mut().zip(self.row) {
            *out = *out + value * self.factor;
        }
    }
}

/// `out += row * factor`
#[inline]
pub fn add_scaled<T: Scalar>(out: &mut [T], row: &[T], factor: T) {
    vectorize(AddScaledLoop { out, row, factor });
}

struct AddRowsLoop<'a, T> {
    out: &'a mut [T],
    factors: &'a [T],
    rows: &'a [T],
    stride: usize,
}

impl<T: Scalar> Vectorized for AddRowsLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let AddRowsLoop { out, factors, rows, stride } = self;
        let n = out.len();
        let mut k = 0;
        // Four rows at a time, in order, so that each element of `out` is read and written once for
        // four rows.
        while k + 4 <= factors.len() {
            let (a, b, c, d) = (factors[k], factors[k + 1], factors[k + 2], factors[k + 3]);
            let r0 = &rows[k * stride..][..n];
            let r1 = &rows[(k + 1) * stride..][..n];
            let r2 = &rows[(k + 2) * stride..][..n];
            let r3 = &rows[(k + 3) * stride..][..n];
            for ((((out, &r0), &r1), &r2), &r3) in out.iter_mut().zip(r0).zip(r1).zip(r2).zip(r3) {
                *out = *out + r0 * a + r1 * b + r2 * c + r3 * d;
            }
            k += 4;
        }
        for (k, &factor) in factors.iter().enumerate().skip(k) {
            for (out, &value) in out.iter_mut().zip(&rows[k * stride..]) {
                *out = *out + value * factor;
            }
        }
    }
}

/// `out += factors[0] * rows[0] + factors[1] * rows[1] + ...`, in this order; `stride` is the
/// distance between the starts of two rows.
#[inline]
pub fn add_rows<T: Scalar>(out: &mut [T], factors: &[T], rows: &[T], stride: usize) {
    vectorize(AddRowsLoop { out, factors, rows, stride });
}

struct RotateLoop<'a, T> {
    a: &'a mut [T],
    b: &'a mut [T],
    c: f64,
    s: f64,
}

impl<T: Scalar> Vectorized for RotateLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (c, s) = (self.c, self.s);
        for (a, b) in self.a.iter_mut().zip(self.b) {
            let (x, y) = (*a, *b);
            *a = x.scale(c) + y.scale(s);
            *b = y.scale(c) - x.scale(s);
        }
    }
}

/// `(a, b) = (c a + s b, c b - s a)`
pub fn rotate<T: Scalar>(a: &mut [T], b: &mut [T], c: f64, s: f64) {
    vectorize(RotateLoop { a, b, c, s });
}

struct UpdateAndMultiplyLoop<'a, T> {
    rows: &'a mut [T],
    stride: usize,
    pairs: [(&'a [T], &'a [T]); 2],
    v: (&'a [T], &'a [T]),
    out: &'a mut [T],
}

/// The number of rows, and of elements of each row, that `update_and_multiply` and `reflect_rows`
/// process at once.
const MATRIX_ROWS_PER_STEP: usize = 4;
const MATRIX_COLUMNS_PER_STEP: usize = 8;

impl<T: Scalar> Vectorized for UpdateAndMultiplyLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let UpdateAndMultiplyLoop { rows, stride, pairs: [(a, p), (b, q)], v: (v, conj), out } = self;
        let n = out.len();
        let (a, b, p, q, v, conj) = (&a[..n], &b[..n], &p[..n], &q[..n], &v[..n], &conj[..n]);
        for (group, rows) in rows.chunks_mut(MATRIX_ROWS_PER_STEP * stride).enumerate() {
            let (first, mut sums) = (group * MATRIX_ROWS_PER_STEP, [T::ZERO; MATRIX_ROWS_PER_STEP]);
            let count = MATRIX_ROWS_PER_STEP.min(n - first);
            let corner = if count == MATRIX_ROWS_PER_STEP { first + MATRIX_ROWS_PER_STEP } else { n };
            let mut rows = rows.chunks_mut(stride);
            let mut rows: [&mut [T]; MATRIX_ROWS_PER_STEP] =
                std::array::from_fn(|_| rows.next().unwrap_or_default());
            for (i, (row, sum)) in rows.iter_mut().zip(&mut sums).take(count).enumerate() {
                let i = first + i;
                for j in i..corner {
                    row[j] = row[j] - a[i] * p[j] - b[i] * q[j];
                    out[j] = out[j] + conj[i] * row[j];
                    if j > i {
                        *sum = *sum + v[j] * row[j];
                    }
                }
            }
            if count == MATRIX_ROWS_PER_STEP {
                let rows = rows.map(|row| &mut row[corner..n]);
                let factors = std::array::from_fn(|i| [a[first + i], b[first + i], conj[first + i]]);
                let more = update_four_rows(
                    rows,
                    factors,
                    [&p[corner..], &q[corner..], &v[corner..]],
                    &mut out[corner..],
                );
                sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = *sum + more);
            }
            for (out, sum) in out[first..].iter_mut().zip(sums) {
                *out = *out + sum.conj();
            }
        }
    }
}

/// Updates four rows, adds multiples of them to `out`, and returns their products with `v`.
#[inline(always)]
fn update_four_rows<T: Scalar>(
    rows: [&mut [T]; MATRIX_ROWS_PER_STEP],
    factors: [[T; 3]; MATRIX_ROWS_PER_STEP],
    [p, q, v]: [&[T]; 3],
    out: &mut [T],
) -> [T; MATRIX_ROWS_PER_STEP] {
    let [a, b, c] = [0, 1, 2].map(|k| factors.map(|factors| factors[k]));
    let mut sums = [[T::ZERO; MATRIX_COLUMNS_PER_STEP]; MATRIX_ROWS_PER_STEP];
    let [r0, r1, r2, r3] = rows.map(|row| row.as_chunks_mut::<MATRIX_COLUMNS_PER_STEP>());
    let (outs, out) = out.as_chunks_mut::<MATRIX_COLUMNS_PER_STEP>();
    let [p, q, v] = [p, q, v].map(|values| values.as_chunks::<MATRIX_COLUMNS_PER_STEP>());
    let operands = outs.iter_mut().zip(p.0).zip(q.0).zip(v.0);
    let rows = r0.0.iter_mut().zip(r1.0).zip(r2.0).zip(r3.0);
    for ((((out, p), q), v), (((r0, r1), r2), r3)) in operands.zip(rows) {
        // Copies the arrays, which the compiler then keeps in vector registers.
        let (p, q, v, mut total) = (*p, *q, *v, *out);
        for (i, row) in [r0, r1, r2, r3].into_iter().enumerate() {
            let mut values = *row;
            for k in 0..MATRIX_COLUMNS_PER_STEP {
                values[k] = values[k] - a[i] * p[k] - b[i] * q[k];
            }
            for k in 0..MATRIX_COLUMNS_PER_STEP {
                total[k] = total[k] + values[k] * c[i];
            }
            for k in 0..MATRIX_COLUMNS_PER_STEP {
                sums[i][k] = sums[i][k] + values[k] * v[k];
            }
            *row = values;
        }
        *out = total;
    }
    let mut totals = sums.map(|sums| sums.into_iter().fold(T::ZERO, |total, sum| total + sum));
    for (i, row) in [r0.1, r1.1, r2.1, r3.1].into_iter().enumerate() {
        for ((((value, &p), &q), &v), out) in row.iter_mut().zip(p.1).zip(q.1).zip(v.1).zip(out.iter_mut()) {
            *value = *value - a[i] * p - b[i] * q;
            *out = *out + *value * c[i];
            totals[i] = totals[i] + *value * v;
        }
    }
    totals
}

/// Updates a Hermitian matrix `A`, whose upper triangle alone is stored, and multiplies a vector by
/// it in the same pass: `row[i] -= a[i] p + b[i] q` for the pairs `(a, p)` and `(b, q)`, then `out
/// += vᴴ A`. `v` comes with its conjugate; `stride` is the distance between the starts of two rows.
pub fn update_and_multiply<T: Scalar>(
    rows: &mut [T],
    stride: usize,
    pairs: [(&[T], &[T]); 2],
    v: (&[T], &[T]),
    out: &mut [T],
) {
    vectorize(UpdateAndMultiplyLoop { rows, stride, pairs, v, out });
}

struct ReflectRowsLoop<'a, T> {
    rows: &'a mut [T],
    stride: usize,
    along: (&'a [T], &'a [T]),
    right: (&'a [T], T),
}

impl<T: Scalar> Vectorized for ReflectRowsLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let ReflectRowsLoop { rows, stride, along: (factors, along), right } = self;
        let (groups, rest) = factors.as_chunks::<MATRIX_ROWS_PER_STEP>();
        let mut rows = rows.chunks_mut(stride);
        let mut next = || &mut rows.next().unwrap_or_default()[..along.len()];
        for factors in groups {
            reflect_row_group(
                std::array::from_fn::<_, MATRIX_ROWS_PER_STEP, _>(|_| next()),
                factors,
                along,
                right,
            );
        }
        for &factor in rest {
            reflect_row_group([next()], &[factor], along, right);
        }
    }
}

/// `reflect_rows` for `N` rows.
#[inline(always)]
fn reflect_row_group<T: Scalar, const N: usize>(
    rows: [&mut [T]; N],
    factors: &[T; N],
    along: &[T],
    (right, tau): (&[T], T),
) {
    let mut sums = [[T::ZERO; MATRIX_COLUMNS_PER_STEP]; N];
    let ((alongs, last_along), (rights, last_right)) =
        (along.as_chunks::<MATRIX_COLUMNS_PER_STEP>(), right.as_chunks::<MATRIX_COLUMNS_PER_STEP>());
    for (chunk_index, (along, right)) in alongs.iter().zip(rights).enumerate() {
        for i in 0..N {
            let row = &mut rows[i][chunk_index * MATRIX_COLUMNS_PER_STEP..][..MATRIX_COLUMNS_PER_STEP];
            let mut values = *along;
            for k in 0..MATRIX_COLUMNS_PER_STEP {
                values[k] = row[k] + along[k] * factors[i];
                sums[i][k] = sums[i][k] + right[k].conj() * values[k];
            }
            row.copy_from_slice(&values);
        }
    }
    for i in 0..N {
        let row = &mut rows[i][alongs.len() * MATRIX_COLUMNS_PER_STEP..];
        let mut sum = sums[i].into_iter().fold(T::ZERO, |sum, value| sum + value);
        for ((value, &along), &right) in row.iter_mut().zip(last_along).zip(last_right) {
            *value = *value + along * factors[i];
            sum = sum + right.conj() * *value;
        }
        let factor = -(tau * sum);
        for (value, &right) in rows[i].iter_mut().zip(right) {
            *value = *value + right * factor;
        }
    }
}

/// Updates each row and applies a reflection to it from the right: `row[i] += factors[i] along`,
/// then `row[i] -= tau (rightᴴ row[i]) right`. The arguments are `along: (factors, along)` and
/// `right: (right, tau)`; `stride` is the distance between the starts of two rows.
pub fn reflect_rows<T: Scalar>(rows: &mut [T], stride: usize, along: (&[T], &[T]), right: (&[T], T)) {
    vectorize(ReflectRowsLoop { rows, stride, along, right });
}

struct DotLoop<'a, T> {
    a: &'a [T],
    b: &'a [T],
}

impl<T: Scalar> Vectorized for DotLoop<'_, T> {
    type Output = T;

    #[inline(always)]
    fn run(self) -> T {
        let mut sums = [T::ZERO; 8];
        let (a, b) = (self.a.chunks_exact(8), self.b.chunks_exact(8));
        let rest = a.remainder().iter().zip(b.remainder());
        let rest = rest.fold(T::ZERO, |sum, (&a, &b)| sum + a.conj() * b);
        for (a, b) in a.zip(b) {
            for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
                *sum = *sum + a.conj() * b;
            }
        }
        let [a, b, c, d, e, f, g, h] = sums;
        ((a + b) + (c + d)) + ((e + f) + (g + h)) + rest
    }
}

/// The sum of `conj(a) b`.
#[inline]
pub fn dot<T: Scalar>(a: &[T], b: &[T]) -> T {
    vectorize(DotLoop { a, b })
}

/// The largest norm of the elements of `v` below the first one, which is 1: `tau` is about twice
/// the reciprocal of the square of the norm.
const MAX_REFLECTOR_RATIO: f64 = 1e140;

/// A Householder reflection `I - tau v vᴴ` with `v[0] = 1` that maps `x` to `beta e₁`, as `(tau,
/// beta)`; overwrites `x` by `v`. Returns `None`, and leaves `x` as it is, if `x` is `beta e₁`
/// already or the elements below the first are negligible.
///
/// The function `beta` gets the first element and the norm of `x`; it returns a number whose
/// magnitude is the norm and whose ratio to `x[0]` is real.
pub fn reflector<T: Scalar>(x: &mut [T], beta: impl FnOnce(T, f64) -> T) -> Option<(T, T)> {
    let largest = max_abs(x);
    if largest > 0.0 && largest < *SAFE_SQUARE_RANGE.start() {
        // Rounding errors of zeros may be so small that they are subnormal and have few digits;
        // then `v` would have few digits as well.
        let (up, down) = (2f64.powi(500), 2f64.powi(-500));
        x.iter_mut().for_each(|value| *value = value.scale(up));
        let reflection = scaled_reflector(x, beta).map(|(tau, beta)| (tau, beta.scale(down)));
        if reflection.is_none() {
            x.iter_mut().for_each(|value| *value = value.scale(down));
        }
        return reflection;
    }
    scaled_reflector(x, beta)
}

/// `reflector` of numbers that are not too small.
fn scaled_reflector<T: Scalar>(x: &mut [T], beta: impl FnOnce(T, f64) -> T) -> Option<(T, T)> {
    let (&first, tail) = x.split_first()?;
    let tail_norm = norm(tail);
    let full_norm = hypotenuse(first.abs(), tail_norm);
    let beta = beta(first, full_norm);
    // The first element of x - beta e₁. Where the signs agree, cancellation is avoided by |x₀|² -
    // |beta|² = -(norm of the elements below)².
    let v0 = if (beta * first.conj()).re() > 0.0 {
        -(T::real((tail_norm / (first.abs() + full_norm)) * tail_norm)) * beta.scale(1.0 / full_norm)
    } else {
        first - beta
    };
    let v0_abs = v0.abs();
    if v0_abs == 0.0 || full_norm == 0.0 || !full_norm.is_finite() {
        return None;
    }
    // tau = 2 |v₀|² / |v|², and v is divided by v₀, so that its first element is one.
    let ratio = tail_norm / v0_abs;
    if ratio > MAX_REFLECTOR_RATIO {
        return None;
    }
    let tau = 2.0 / (1.0 + ratio * ratio);
    for value in &mut x[1..] {
        *value = value.divided_by(v0);
    }
    x[0] = T::ONE;
    Some((T::real(tau), beta))
}
