//! Gaussian elimination with row exchanges, and what follows from it.

use super::matrix::{Matrix, add_rows, noise};
use super::scalar::{Precision, Scalar};
use super::triangular::{backward, forward};
use crate::Error;

/// Columns that are eliminated before the rest of the matrix is touched.
const PANEL: usize = 32;

/// `A = P L U`
#[derive(Debug)]
pub struct Lu<T> {
    /// Which row of `A` is which row of `L U`.
    pub rows: Vec<usize>,
    /// `U`, and below its diagonal `L` without the ones on its own.
    pub packed: Matrix<T>,
    /// Whether the rows were exchanged an odd number of times.
    pub odd: bool,
}

/// Factors a square matrix; pivots are the largest of their columns, the first
/// of several.
pub fn lu<T: Scalar>(mut a: Matrix<T>, precision: Precision) -> Lu<T> {
    let n = a.rows;
    let mut rows: Vec<usize> = (0..n).collect();
    let mut odd = false;
    for start in (0..n).step_by(PANEL) {
        let end = (start + PANEL).min(n);
        for k in start..end {
            let (mut pivot, mut largest) = (k, f64::NEG_INFINITY);
            for i in k..n {
                let size = precision.round(a.at(i, k).abs());
                if size > largest {
                    (pivot, largest) = (i, size);
                }
            }
            if pivot != k {
                a.swap_rows(k, pivot);
                rows.swap(k, pivot);
                odd = !odd;
            }
            let diagonal = a.at(k, k);
            let (head, tail) = a.data.split_at_mut((k + 1) * n);
            let pivot_row = &head[k * n..][k + 1..end];
            for row in tail.chunks_exact_mut(n) {
                if diagonal != T::ZERO {
                    row[k] = precision.round(row[k].over(diagonal));
                }
                let factor = row[k];
                for (value, &u) in row[k + 1..end].iter_mut().zip(pivot_row) {
                    *value = precision.round(*value - precision.round(factor * u));
                }
            }
        }
        if end < n {
            update(&mut a, start, end, precision);
        }
    }
    Lu { rows, packed: a, odd }
}

/// The same, with the largest elements of the columns of the matrix itself as pivots,
/// in the order of Nx 0.9; they may be zero.
pub fn by_columns<T: Scalar>(mut a: Matrix<T>) -> Lu<T> {
    let n = a.rows;
    let mut rows: Vec<usize> = (0..n).collect();
    let mut odd = false;
    for k in 0..n {
        let larger = |pivot: usize, i: usize| if a.at(i, k).abs() > a.at(pivot, k).abs() { i } else { pivot };
        let pivot = (k..n).fold(k, larger);
        if pivot != k {
            a.swap_rows(k, pivot);
            rows.swap(k, pivot);
            odd = !odd;
        }
    }
    let noise = noise(n, n) * a.norm();
    for i in 0..n {
        for j in 0..n {
            let count = i.min(j);
            let sum = (0..count).fold(T::ZERO, |sum, k| a.at(k, j) * a.at(i, k) + sum);
            let rest = (a.at(i, j) - sum).clean(noise);
            *a.at_mut(i, j) = if j < i { rest.over(a.at(j, j)) } else { rest };
        }
    }
    Lu { rows, packed: a, odd }
}

/// Subtracts what the columns from `start` to `end` contribute to those after.
fn update<T: Scalar>(a: &mut Matrix<T>, start: usize, end: usize, precision: Precision) {
    debug_assert_eq!(precision, Precision::Double, "single steps are for matrices of one panel");
    let n = a.columns;
    let mut factors = [T::ZERO; PANEL];
    for i in start + 1..n {
        let (above, rest) = a.data.split_at_mut(i * n);
        let row = &mut rest[..n];
        let count = end.min(i) - start;
        for (factor, &l) in factors.iter_mut().zip(&row[start..start + count]) {
            *factor = -l;
        }
        add_rows(&mut row[end..], &factors[..count], &above[start * n + end..], n);
    }
}

impl<T: Scalar> Lu<T> {
    /// `L` and `U`.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn split(self) -> Result<(Matrix<T>, Matrix<T>), Error> {
        let (mut u, n) = (self.packed, self.rows.len());
        let mut l = Matrix::eye("lu", n, n)?;
        for i in 0..n {
            l.row_mut(i)[..i].copy_from_slice(&u.row(i)[..i]);
            u.row_mut(i)[..i].fill(T::ZERO);
        }
        Ok((l, u))
    }

    /// The product of the diagonal, with the sign of the exchanges.
    pub fn determinant(&self, precision: Precision) -> T {
        let n = self.rows.len();
        let diagonal = || (0..n).map(|i| self.packed.at(i, i));
        if diagonal().any(|value| value == T::ZERO) {
            // Whatever the order, a product that overflows doesn't matter.
            return if self.packed.is_finite() { T::ZERO } else { T::real(f64::NAN) };
        }
        let product = precision.round(diagonal().fold(T::ONE, |product, value| product * value));
        if self.odd { -product } else { product }
    }

    /// The solution of `A X = B`.
    ///
    /// # Errors
    ///
    /// `Error::Singular`, and `Error::TooLarge` if there is no memory.
    pub fn solve(self, b: &Matrix<T>, precision: Precision) -> Result<Matrix<T>, Error> {
        let mut x = Matrix::zeros("solve", b.rows, b.columns)?;
        for (i, &row) in self.rows.iter().enumerate() {
            x.row_mut(i).copy_from_slice(b.row(row));
        }
        let (l, u) = self.split()?;
        forward(&l, &mut x)?;
        x.map(|value| precision.round(value));
        backward(u, &mut x)?;
        Ok(x)
    }
}

/// The determinant of two or three rows, by the formula.
pub fn small_determinant<T: Scalar>(a: &Matrix<T>, precision: Precision) -> T {
    let n = a.rows;
    // Along the diagonals that go down to the right, and to the left.
    let diagonal = |offset: usize, left: bool| {
        let column = |i: usize| if left { (2 * n - 1 - i - offset) % n } else { (i + offset) % n };
        precision.round((0..n).fold(T::ONE, |product, i| product * a.at(i, column(i))))
    };
    if n == 2 {
        return precision.round(diagonal(0, false) - diagonal(1, false));
    }
    let added = (1..3).fold(diagonal(0, false), |sum, k| precision.round(sum + diagonal(k, false)));
    (0..3).fold(added, |sum, k| precision.round(sum - diagonal(k, true)))
}
