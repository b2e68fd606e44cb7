//! Triangular systems.

use std::ops::Range;

use super::matrix::{Matrix, add_rows, pause_after};
use crate::Error;
use crate::exec::gemm::blocked::{Update, View, multiply};
use crate::ops::linalg::scalar::Scalar;

/// What is solved: `op(A) X = B`, or `X op(A) = B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triangular {
    /// Whether `A` is lower triangular; the other triangle isn't read.
    pub lower: bool,
    /// Whether `A` is on the left side.
    pub left_side: bool,
    /// What is done to `A` first.
    pub transform: Transform,
}

/// What is done to a matrix first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// Nothing.
    None,
    /// It is transposed, without being conjugated.
    Transpose,
    /// It is conjugated, without being transposed.
    Conjugate,
}

/// What is on the diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagonal {
    /// What the matrix has there.
    Own,
    /// Ones, which the matrix doesn't show.
    Ones,
}

/// Rows that are solved for one by one.
const LEAF: usize = 32;

/// Overwrites `b` with the solution of a lower triangular system `A X = B`.
///
/// # Errors
///
/// `Error::Singular` if an element of the diagonal is zero.
pub fn forward<T: Scalar>(a: &Matrix<T>, b: &mut Matrix<T>, diagonal: Diagonal) -> Result<(), Error> {
    if diagonal == Diagonal::Own && (0..a.rows).any(|i| a.at(i, i).abs() == 0.0) {
        return Err(Error::Singular);
    }
    let mut sums = vec![T::ZERO; b.columns];
    solve_rows(a, b, 0..a.rows, diagonal, &mut sums);
    Ok(())
}

/// The same for some rows, from which those above are subtracted already.
fn solve_rows<T: Scalar>(
    a: &Matrix<T>,
    b: &mut Matrix<T>,
    rows: Range<usize>,
    diagonal: Diagonal,
    sums: &mut [T],
) {
    let (n, Range { start, end }) = (b.columns, rows);
    if end - start > LEAF {
        let middle = start + (end - start) / 2;
        solve_rows(a, b, start..middle, diagonal, sums);
        let (solved, rest) = b.data.split_at_mut(middle * n);
        let left = View::rows(&a.data[middle * a.columns + start..], a.columns);
        let right = View::rows(&solved[start * n..], n);
        multiply([end - middle, middle - start, n], Update::Subtract, left, right, (rest, [n, 1]));
        return solve_rows(a, b, middle..end, diagonal, sums);
    }
    for i in start..end {
        let (solved, rest) = b.data[start * n..].split_at_mut((i - start) * n);
        let (row, factors) = (&mut rest[..n], &a.row(i)[start..i]);
        // The sum first, as Nx does, so that it rounds alike.
        if n == 1 {
            sums[0] = factors.iter().zip(solved.iter()).fold(T::ZERO, |sum, (&a, &x)| a * x + sum);
        } else {
            sums.fill(T::ZERO);
            add_rows(sums, factors, solved, n);
        }
        let pivot = a.at(i, i);
        for (value, &sum) in row.iter_mut().zip(sums.iter()) {
            *value = *value - sum;
            if diagonal == Diagonal::Own {
                *value = value.over(pivot);
            }
        }
        pause_after(n, i - start);
    }
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
/// Those of `forward`.
pub fn backward<T: Scalar>(a: Matrix<T>, b: &mut Matrix<T>) -> Result<(), Error> {
    let a = reversed(a);
    b.data.reverse();
    forward(&a, b, Diagonal::Own)?;
    b.data.reverse();
    Ok(())
}

/// The solution of a triangular system.
///
/// # Errors
///
/// `Error::Singular`, and `Error::TooLarge` if there is no memory for copies.
pub fn solve<T: Scalar>(how: Triangular, a: Matrix<T>, mut b: Matrix<T>) -> Result<Matrix<T>, Error> {
    const OP: &str = "triangular_solve";
    let mut a = a;
    if T::COMPLEX && how.transform == Transform::Conjugate {
        a.map(T::conj);
    }
    // X A = B is Aᵀ Xᵀ = Bᵀ.
    let transpose = how.left_side == (how.transform == Transform::Transpose);
    if transpose {
        a = a.transpose(OP)?;
    }
    if !how.left_side {
        b = b.transpose(OP)?;
    }
    if how.lower == transpose {
        backward(a, &mut b)?;
    } else {
        forward(&a, &mut b, Diagonal::Own)?;
    }
    if how.left_side { Ok(b) } else { b.transpose(OP) }
}
