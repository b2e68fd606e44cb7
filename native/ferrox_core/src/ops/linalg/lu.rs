//! Gaussian elimination with row exchanges, and what follows from it.

use std::ops::Range;

use super::matrix::{Matrix, add_rows, add_scaled, divide, largest, noise, pause_after};
use super::scalar::{Precision, Scalar};
use super::triangular::{Diagonal, backward, forward};
use crate::Error;
use crate::exec::gemm::blocked::{Block, Right, subtract_within};
use crate::ops::linalg::scaled::Scaled;

/// Matrices of at most so many columns are eliminated one column after the other.
const SMALL: usize = 32;

/// Columns that are eliminated side by side in others.
const LEAF: usize = 16;

/// Rows of `U` that are solved for one by one.
const ROWS: usize = 32;

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
pub fn lu<T: Scalar>(a: Matrix<T>, precision: Precision) -> Lu<T> {
    let n = a.rows;
    let mut lu = Lu { rows: (0..n).collect(), packed: a, odd: false };
    if n <= SMALL {
        lu.eliminate(precision);
    } else {
        lu.factor(0..n, &mut vec![T::ZERO; n * LEAF]);
    }
    lu
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
    for i in 0..n {
        for j in 0..n {
            let terms = (0..i.min(j)).map(|k| a.at(k, j) * a.at(i, k));
            let size = a.at(i, j).abs() + terms.clone().map(T::abs).sum::<f64>();
            let sum = terms.fold(T::ZERO, |sum, term| term + sum);
            // What rounding has left of zeros.
            let rest = (a.at(i, j) - sum).clean(noise(n, n) * size);
            *a.at_mut(i, j) = if j < i { rest.over(a.at(j, j)) } else { rest };
        }
        pause_after(n, n);
    }
    Lu { rows, packed: a, odd }
}

impl<T: Scalar> Lu<T> {
    /// Column by column, each element rounded after every step.
    fn eliminate(&mut self, precision: Precision) {
        let n = self.packed.rows;
        for k in 0..n {
            let a = &self.packed;
            let sizes = (k..n).map(|i| precision.round(a.at(i, k).abs()));
            let larger =
                |most: (usize, f64), (i, size): (usize, f64)| if size > most.1 { (i, size) } else { most };
            let (pivot, _) = sizes.enumerate().fold((0, f64::NEG_INFINITY), larger);
            self.exchange(k, k + pivot);
            let a = &mut self.packed;
            let diagonal = a.at(k, k);
            let (head, tail) = a.data.split_at_mut((k + 1) * n);
            let pivot_row = &head[k * n..][k + 1..];
            for row in tail.chunks_exact_mut(n) {
                if diagonal != T::ZERO {
                    row[k] = precision.round(row[k].over(diagonal));
                }
                let factor = row[k];
                for (value, &u) in row[k + 1..].iter_mut().zip(pivot_row) {
                    *value = precision.round(*value - precision.round(factor * u));
                }
            }
        }
    }

    fn exchange(&mut self, row: usize, pivot: usize) {
        if pivot != row {
            self.packed.swap_rows(row, pivot);
            self.rows.swap(row, pivot);
            self.odd = !self.odd;
        }
    }

    /// Factors these columns of the rows from the first of them on, half of them at a time
    /// (Toledo, "Locality of Reference in LU Decomposition with Partial Pivoting", 1997).
    fn factor(&mut self, columns: Range<usize>, scratch: &mut [T]) {
        if columns.len() <= LEAF {
            return self.leaf(columns, scratch);
        }
        let Range { start, end } = columns;
        let middle = start + (columns.len() / 2).next_multiple_of(LEAF);
        self.factor(start..middle, scratch);
        self.divide(start..middle, middle..end);
        let n = self.packed.rows;
        let (left, above) = (Block::new(middle..n, start..middle), Block::new(start..middle, middle..end));
        let out = Block::new(middle..n, middle..end);
        subtract_within(&mut self.packed.data, n, &out, &left, (&above, Right::Plain));
        self.factor(middle..end, scratch);
    }

    /// The same with rows for columns, so that the elements of a column lie side by side.
    fn leaf(&mut self, columns: Range<usize>, scratch: &mut [T]) {
        let (n, start) = (self.packed.rows, columns.start);
        let m = n - start;
        let turned = &mut scratch[..m * columns.len()];
        for (i, row) in self.packed.data[start * n..].chunks_exact(n).enumerate() {
            for (j, &value) in row[columns.clone()].iter().enumerate() {
                turned[j * m + i] = value;
            }
        }
        for j in 0..columns.len() {
            let column = &turned[j * m..][j..m];
            let most = largest(column);
            // The first of several; none if all are NaN.
            let pivot = j + column.iter().position(|value| value.abs() == most).unwrap_or(0);
            if pivot != j {
                turned.chunks_exact_mut(m).for_each(|column| column.swap(j, pivot));
            }
            self.exchange(start + j, start + pivot);
            let (done, rest) = turned.split_at_mut((j + 1) * m);
            let (diagonal, factors) = done[j * m + j..].split_at_mut(1);
            if diagonal[0] != T::ZERO {
                divide(factors, diagonal[0]);
            }
            for column in rest.chunks_exact_mut(m) {
                let by = -column[j];
                add_scaled(&mut column[j + 1..], factors, by);
            }
            pause_after(m, columns.len() - j);
        }
        for (i, row) in self.packed.data[start * n..].chunks_exact_mut(n).enumerate() {
            for (j, value) in row[columns.clone()].iter_mut().enumerate() {
                *value = turned[j * m + i];
            }
        }
    }

    /// `L X = B` in place, `B` being these rows and columns and `L` the square block on
    /// the diagonal of the same rows.
    fn divide(&mut self, rows: Range<usize>, columns: Range<usize>) {
        let n = self.packed.rows;
        let Range { start, end } = rows;
        if rows.len() > ROWS {
            let middle = start + rows.len() / 2;
            self.divide(start..middle, columns.clone());
            let (left, above) =
                (Block::new(middle..end, start..middle), Block::new(start..middle, columns.clone()));
            let out = Block::new(middle..end, columns.clone());
            subtract_within(&mut self.packed.data, n, &out, &left, (&above, Right::Plain));
            return self.divide(middle..end, columns);
        }
        let mut by = [T::ZERO; ROWS];
        for i in start + 1..end {
            let (above, rest) = self.packed.data.split_at_mut(i * n);
            let row = &mut rest[..n];
            let count = i - start;
            for (by, &l) in by.iter_mut().zip(&row[start..i]) {
                *by = -l;
            }
            add_rows(&mut row[columns.clone()], &by[..count], &above[start * n + columns.start..], n);
        }
    }

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
    pub fn determinant(&self) -> Scaled<T> {
        let n = self.rows.len();
        let diagonal = || (0..n).map(|i| self.packed.at(i, i));
        if diagonal().any(|value| value == T::ZERO) {
            let value = if self.packed.is_finite() { T::ZERO } else { T::real(f64::NAN) };
            return Scaled::product(std::iter::once(value));
        }
        let product = Scaled::product(diagonal());
        if self.odd { product.negative() } else { product }
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
        forward(&self.packed, &mut x, Diagonal::Ones)?;
        x.map(|value| precision.round(value));
        backward(self.packed, &mut x)?;
        Ok(x)
    }
}
