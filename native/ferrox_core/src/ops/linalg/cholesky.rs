//! The Cholesky factorization, recursive by halves (Gustavson, "Recursion Leads to Automatic
//! Variable Blocking for Dense Linear-Algebra Algorithms", 1997).

use std::ops::Range;

use super::matrix::{self, Matrix, add_rows, subtract_within};
use super::scalar::{Precision, Scalar};
use crate::Error;
use crate::exec::gemm::blocked::{Block, Right};

const OP: &str = "cholesky";

/// The size of the blocks at which the recursion ends. Matrices up to this size add up sums in the
/// order of Nx.
const CHOLESKY_LEAF_SIZE: usize = 32;

/// The number of rows that are solved for at once.
const CHOLESKY_SOLVE_ROWS: usize = 64;

/// The number of rows of a block that are updated at once. An update also computes some elements
/// above the diagonal, which are not needed; few rows keep these few.
const CHOLESKY_UPDATE_ROWS: usize = 128;

/// The lower triangular `L` with `L Lᴴ = A`. Only the lower triangle of `A` is read. If `A` is not
/// positive definite, the result holds NaN from the first negative pivot on.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn cholesky<T: Scalar>(mut a: Matrix<T>, precision: Precision) -> Result<Matrix<T>, Error> {
    let n = a.rows;
    let unit = if precision == Precision::Single { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let noise = (0..n).map(|i| (4.0 * unit * n as f64).sqrt() * a.at(i, i).re().sqrt());
    let noise = matrix::vector(OP, noise)?;
    factor(&mut a, 0, n, precision, &noise)?;
    for i in 0..n {
        a.row_mut(i)[i + 1..].fill(T::ZERO);
    }
    Ok(a)
}

/// Factors the square block that starts at a diagonal element, in place. `noise[i] * noise[j]`
/// bounds the rounding error of a zero in row i and column j.
fn factor<T: Scalar>(
    a: &mut Matrix<T>,
    from: usize,
    size: usize,
    precision: Precision,
    noise: &[f64],
) -> Result<(), Error> {
    if size <= CHOLESKY_LEAF_SIZE {
        factor_leaf(a, from, size, precision, noise);
        return Ok(());
    }
    let (middle, end) = (from + first_half_size(size), from + size);
    factor(a, from, first_half_size(size), precision, noise)?;
    for first in (middle..end).step_by(CHOLESKY_UPDATE_ROWS) {
        let rows = first..(first + CHOLESKY_UPDATE_ROWS).min(end);
        solve_from_right(a, rows.clone(), from..middle, noise)?;
        let (stride, done) = (a.columns, Block::new(rows.clone(), from..middle));
        let above = Block::new(middle..rows.end, from..middle);
        let out = Block::new(rows.clone(), middle..rows.end);
        subtract_within(OP, &mut a.data, stride, &out, &done, (&above, Right::Adjoint))?;
    }
    factor(a, middle, size - first_half_size(size), precision, noise)
}

/// The size of the first half of a block, in whole leaves.
fn first_half_size(size: usize) -> usize {
    (size / 2).next_multiple_of(CHOLESKY_LEAF_SIZE)
}

/// Factors a leaf: row by row, in the order of Nx, if it is the whole matrix, and column by column
/// otherwise.
fn factor_leaf<T: Scalar>(a: &mut Matrix<T>, from: usize, size: usize, precision: Precision, noise: &[f64]) {
    let n = a.columns;
    if n > CHOLESKY_LEAF_SIZE {
        return factor_leaf_by_columns(&mut a.data[from * n..], n, from..from + size, noise);
    }
    for i in 0..n {
        let (done, rest) = a.data.split_at_mut(i * n);
        let row = &mut rest[..n];
        for j in 0..i {
            let above = &done[j * n..][..=j];
            let sum = precision.round(conjugate_dot(&row[..j], &above[..j]));
            let rest = precision.round(row[j] - sum);
            row[j] = precision.round(divide_by_pivot(rest, above[j], noise[i] * noise[j]));
        }
        let sum = precision.round(conjugate_dot(&row[..i], &row[..i]));
        let square = precision.round(row[i] - sum).re();
        row[i] = precision.round(T::real(square.sqrt()));
    }
}

/// The sum of `a conj(b)`.
fn conjugate_dot<T: Scalar>(a: &[T], b: &[T]) -> T {
    a.iter().zip(b).fold(T::ZERO, |sum, (&a, &b)| a * b.conj() + sum)
}

/// Factors a leaf column by column. The block has these columns of `rows`, each of `n` elements.
fn factor_leaf_by_columns<T: Scalar>(rows: &mut [T], n: usize, columns: Range<usize>, noise: &[f64]) {
    let size = columns.len();
    let mut transposed = [T::ZERO; CHOLESKY_LEAF_SIZE * CHOLESKY_LEAF_SIZE];
    for (i, row) in rows.chunks_exact(n).take(size).enumerate() {
        for (j, &value) in row[columns.clone()][..=i].iter().enumerate() {
            transposed[j * CHOLESKY_LEAF_SIZE + i] = value;
        }
    }
    for j in 0..size {
        let (done, rest) = transposed.split_at_mut(j * CHOLESKY_LEAF_SIZE);
        let column = &mut rest[j..size];
        subtract_columns(
            column,
            done.chunks_exact(CHOLESKY_LEAF_SIZE).map(|done| done[j]),
            &done[j.min(done.len())..],
            CHOLESKY_LEAF_SIZE,
        );
        let root = T::real(column[0].re().sqrt());
        column[0] = root;
        let noise = &noise[columns.start + j..];
        divide_column_by_pivot(&mut column[1..], root, (&noise[1..], noise[0]));
    }
    for (i, row) in rows.chunks_exact_mut(n).take(size).enumerate() {
        for (j, value) in row[columns.clone()][..=i].iter_mut().enumerate() {
            *value = transposed[j * CHOLESKY_LEAF_SIZE + i];
        }
    }
}

/// Subtracts columns, each times the conjugate of a factor; `stride` is the distance between the
/// starts of two columns.
fn subtract_columns<T: Scalar>(
    out: &mut [T],
    factors: impl Iterator<Item = T>,
    columns: &[T],
    stride: usize,
) {
    let mut negated_factors = [T::ZERO; CHOLESKY_LEAF_SIZE];
    let mut count = 0;
    for (negated, factor) in negated_factors.iter_mut().zip(factors) {
        *negated = -factor.conj();
        count += 1;
    }
    add_rows(out, &negated_factors[..count], columns, stride);
}

/// Divides by an element of the diagonal. Where that is zero, a value within rounding errors of
/// zero gives zero, and any other value gives NaN: the matrix is not positive definite.
fn divide_by_pivot<T: Scalar>(value: T, pivot: T, noise: f64) -> T {
    if pivot != T::ZERO {
        value.divided_by(pivot)
    } else if value.abs() <= noise {
        T::ZERO
    } else {
        T::real(f64::NAN)
    }
}

/// `divide_by_pivot` for each element of a column, with the noise of each row and of the column.
fn divide_column_by_pivot<T: Scalar>(column: &mut [T], pivot: T, (row_noises, column_noise): (&[f64], f64)) {
    if pivot != T::ZERO {
        return matrix::divide(column, pivot);
    }
    column
        .iter_mut()
        .zip(row_noises)
        .for_each(|(value, noise)| *value = divide_by_pivot(*value, pivot, noise * column_noise));
}

/// Solves `X Lᴴ = B` in place, where `B` is the block of these rows and columns, and `L` the square
/// block on the diagonal of the same columns.
fn solve_from_right<T: Scalar>(
    a: &mut Matrix<T>,
    rows: Range<usize>,
    columns: Range<usize>,
    noise: &[f64],
) -> Result<(), Error> {
    if columns.len() > CHOLESKY_LEAF_SIZE {
        let middle = columns.start + first_half_size(columns.len());
        solve_from_right(a, rows.clone(), columns.start..middle, noise)?;
        let (stride, done) = (a.columns, Block::new(rows.clone(), columns.start..middle));
        let (out, below) = (
            Block::new(rows.clone(), middle..columns.end),
            Block::new(middle..columns.end, columns.start..middle),
        );
        subtract_within(OP, &mut a.data, stride, &out, &done, (&below, Right::Adjoint))?;
        return solve_from_right(a, rows, middle..columns.end, noise);
    }
    // Works on a transposed copy, in which the elements of a column are adjacent.
    let (n, width) = (a.columns, columns.len());
    let mut transposed = [T::ZERO; CHOLESKY_LEAF_SIZE * CHOLESKY_SOLVE_ROWS];
    let (above, below) = a.data.split_at_mut(rows.start * n);
    let row_blocks = below[..rows.len() * n].chunks_mut(CHOLESKY_SOLVE_ROWS * n);
    for (row_block, row_noise) in row_blocks.zip(noise[rows.start..].chunks(CHOLESKY_SOLVE_ROWS)) {
        for (i, row) in row_block.chunks_exact(n).enumerate() {
            for (j, &value) in row[columns.clone()].iter().enumerate() {
                transposed[j * CHOLESKY_SOLVE_ROWS + i] = value;
            }
        }
        for j in 0..width {
            let factors = &above[(columns.start + j) * n + columns.start..][..=j];
            let (done, rest) = transposed.split_at_mut(j * CHOLESKY_SOLVE_ROWS);
            let column = &mut rest[..CHOLESKY_SOLVE_ROWS];
            subtract_columns(column, factors[..j].iter().copied(), done, CHOLESKY_SOLVE_ROWS);
            divide_column_by_pivot(column, factors[j], (row_noise, noise[columns.start + j]));
        }
        for (i, row) in row_block.chunks_exact_mut(n).enumerate() {
            for (j, value) in row[columns.clone()].iter_mut().enumerate() {
                *value = transposed[j * CHOLESKY_SOLVE_ROWS + i];
            }
        }
    }
    Ok(())
}
