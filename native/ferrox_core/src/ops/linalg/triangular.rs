//! Triangular systems.

use super::matrix::{Matrix, add_rows};
use super::scalar::Scalar;
use crate::Error;

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

/// Overwrites `b` with the solution of a lower triangular system `A X = B`.
///
/// # Errors
///
/// `Error::Singular` if an element of the diagonal is zero.
pub fn forward<T: Scalar>(a: &Matrix<T>, b: &mut Matrix<T>) -> Result<(), Error> {
    let n = b.columns;
    let mut sums = Matrix::zeros("triangular_solve", 1, n)?;
    for i in 0..a.rows {
        let pivot = a.at(i, i);
        if pivot.abs() == 0.0 {
            return Err(Error::Singular);
        }
        let (solved, rest) = b.data.split_at_mut(i * n);
        let row = &mut rest[..n];
        // The sum first, as Nx does, so that it rounds alike.
        if n == 1 {
            let sum = a.row(i)[..i].iter().zip(solved.iter());
            let sum = sum.fold(T::ZERO, |sum, (&a, &x)| a * x + sum);
            row[0] = (row[0] - sum).over(pivot);
        } else {
            sums.data.fill(T::ZERO);
            add_rows(&mut sums.data, &a.row(i)[..i], solved, n);
            for (value, &sum) in row.iter_mut().zip(&sums.data) {
                *value = (*value - sum).over(pivot);
            }
        }
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
/// Those of `forward`.
pub fn backward<T: Scalar>(a: Matrix<T>, b: &mut Matrix<T>) -> Result<(), Error> {
    let a = reversed(a);
    b.data.reverse();
    forward(&a, b)?;
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
        forward(&a, &mut b)?;
    }
    if how.left_side { Ok(b) } else { b.transpose(OP) }
}
