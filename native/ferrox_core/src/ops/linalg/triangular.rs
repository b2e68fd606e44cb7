//! Triangular systems of equations by substitution; blocks of rows are subtracted by matrix
//! products.

use std::ops::Range;

use super::matrix::{Matrix, add_rows, multiply, yield_after};
use crate::Error;
use crate::exec::gemm::blocked::{Update, View};
use crate::exec::memory::filled;
use crate::ops::linalg::scalar::Scalar;

/// A triangular system: `op(A) X = B`, or `X op(A) = B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triangular {
    /// Whether `A` is lower triangular. The other triangle is not read.
    pub lower: bool,
    /// Whether `A` is on the left of `X`.
    pub left_side: bool,
    /// The function `op`, which is applied to `A` first.
    pub transform: MatrixTransform,
}

/// A function of a matrix, applied before the system is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixTransform {
    /// The matrix itself.
    None,
    /// The transpose, without conjugation.
    Transpose,
    /// The conjugate, without transposition.
    Conjugate,
}

/// The diagonal of a triangular matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagonal {
    /// The elements that are stored there.
    Stored,
    /// Ones, which are not stored.
    Unit,
}

const OP: &str = "triangular_solve";

/// The number of rows up to which they are solved for one by one.
const TRIANGULAR_LEAF_ROWS: usize = 32;

/// Overwrites `b` with the solution of a lower triangular system `A X = B`.
///
/// # Errors
///
/// `Error::Singular` if an element of the diagonal is zero, `Error::TooLarge` if there is no memory.
pub fn forward_substitution<T: Scalar>(
    a: &Matrix<T>,
    b: &mut Matrix<T>,
    diagonal: Diagonal,
) -> Result<(), Error> {
    if diagonal == Diagonal::Stored && (0..a.rows).any(|i| a.at(i, i).abs() == 0.0) {
        return Err(Error::Singular);
    }
    let mut sums = filled(OP, T::DTYPE, &[b.columns], b.columns, T::ZERO)?;
    solve_rows(a, b, 0..a.rows, diagonal, &mut sums)
}

/// Solves for these rows of `b`, from which the products with the rows above them are already
/// subtracted.
fn solve_rows<T: Scalar>(
    a: &Matrix<T>,
    b: &mut Matrix<T>,
    rows: Range<usize>,
    diagonal: Diagonal,
    sums: &mut [T],
) -> Result<(), Error> {
    let (n, Range { start, end }) = (b.columns, rows);
    if end - start > TRIANGULAR_LEAF_ROWS {
        let middle = start + (end - start) / 2;
        solve_rows(a, b, start..middle, diagonal, sums)?;
        let (solved, rest) = b.data.split_at_mut(middle * n);
        let left = View::rows(&a.data[middle * a.columns + start..], a.columns);
        let right = View::rows(&solved[start * n..], n);
        let sizes = [end - middle, middle - start, n];
        multiply(OP, sizes, Update::Subtract, left, right, (rest, [n, 1]))?;
        return solve_rows(a, b, middle..end, diagonal, sums);
    }
    for i in start..end {
        let (solved, rest) = b.data[start * n..].split_at_mut((i - start) * n);
        let (row, factors) = (&mut rest[..n], &a.row(i)[start..i]);
        // Adds up the products before it subtracts them, as Nx does, for the same rounding.
        if n == 1 {
            sums[0] = factors.iter().zip(solved.iter()).fold(T::ZERO, |sum, (&a, &x)| a * x + sum);
        } else {
            sums.fill(T::ZERO);
            add_rows(sums, factors, solved, n);
        }
        let pivot = a.at(i, i);
        for (value, &sum) in row.iter_mut().zip(sums.iter()) {
            *value = *value - sum;
            if diagonal == Diagonal::Stored {
                *value = value.divided_by(pivot);
            }
        }
        yield_after(n, i - start);
    }
    Ok(())
}

/// The matrix with its rows and columns in reverse order.
fn reversed<T: Scalar>(mut matrix: Matrix<T>) -> Matrix<T> {
    matrix.data.reverse();
    matrix
}

/// Overwrites `b` with the solution of an upper triangular system `A X = B`.
///
/// # Errors
///
/// The errors of `forward_substitution`.
pub fn back_substitution<T: Scalar>(a: Matrix<T>, b: &mut Matrix<T>) -> Result<(), Error> {
    let a = reversed(a);
    b.data.reverse();
    forward_substitution(&a, b, Diagonal::Stored)?;
    b.data.reverse();
    Ok(())
}

/// The solution of a triangular system.
///
/// # Errors
///
/// `Error::Singular`, and `Error::TooLarge` if there is no memory for copies.
pub fn solve<T: Scalar>(system: Triangular, a: Matrix<T>, mut b: Matrix<T>) -> Result<Matrix<T>, Error> {
    const OP: &str = "triangular_solve";
    let mut a = a;
    if T::COMPLEX && system.transform == MatrixTransform::Conjugate {
        a.map(T::conj);
    }
    // X A = B is Aᵀ Xᵀ = Bᵀ.
    let transpose = system.left_side == (system.transform == MatrixTransform::Transpose);
    if transpose {
        a = a.transpose(OP)?;
    }
    if !system.left_side {
        b = b.transpose(OP)?;
    }
    if system.lower == transpose {
        back_substitution(a, &mut b)?;
    } else {
        forward_substitution(&a, &mut b, Diagonal::Stored)?;
    }
    if system.left_side { Ok(b) } else { b.transpose(OP) }
}
