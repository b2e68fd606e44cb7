//! The LU factorization by Gaussian elimination with partial pivoting, and the determinants and
//! solutions of systems that follow from it.

use std::ops::Range;

use super::matrix::{
    Matrix, add_rows, add_scaled, divide, max_abs, noise, subtract_within, vector, yield_after,
};
use super::scalar::{Precision, Scalar};
use super::triangular::{Diagonal, back_substitution, forward_substitution};
use crate::Error;
use crate::exec::gemm::blocked::{Block, Right};
use crate::ops::linalg::scaled::ScaledNumber;

const OP: &str = "lu";

/// The size up to which a matrix is eliminated column by column.
const MAX_UNBLOCKED_LU_SIZE: usize = 32;

/// The number of columns of a panel, which larger matrices factor column by column.
const LU_PANEL_COLUMNS: usize = 16;

/// The number of rows of `U` up to which they are solved for one by one.
const MAX_UNBLOCKED_LU_SOLVE_ROWS: usize = 32;

/// `A = P L U`
#[derive(Debug)]
pub struct Lu<T> {
    /// `rows[i]` is the row of `A` that became row `i` of `L U`.
    pub rows: Vec<usize>,
    /// `U`, and below its diagonal `L` without its unit diagonal.
    pub packed: Matrix<T>,
    /// Whether the number of row exchanges is odd.
    pub odd_permutation: bool,
}

/// Factors a square matrix. The pivot of a column is its largest element, the first of several.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn lu<T: Scalar>(a: Matrix<T>, precision: Precision) -> Result<Lu<T>, Error> {
    let n = a.rows;
    let mut lu = Lu { rows: vector(OP, 0..n)?, packed: a, odd_permutation: false };
    if n <= MAX_UNBLOCKED_LU_SIZE {
        lu.factor_unblocked(precision);
    } else {
        lu.factor(0..n, &mut Matrix::zeros(OP, LU_PANEL_COLUMNS, n)?.data)?;
    }
    Ok(lu)
}

/// Factors a square matrix as Nx 0.9 does: the pivot of a column is chosen from the elements of the
/// matrix itself rather than from the elements that elimination leaves, and sums are in Nx's order.
/// A pivot may be zero.
pub fn lu_with_input_pivots<T: Scalar>(mut a: Matrix<T>) -> Lu<T> {
    let n = a.rows;
    let mut rows: Vec<usize> = (0..n).collect();
    let mut odd_permutation = false;
    for k in 0..n {
        let larger = |pivot: usize, i: usize| if a.at(i, k).abs() > a.at(pivot, k).abs() { i } else { pivot };
        let pivot = (k..n).fold(k, larger);
        if pivot != k {
            a.swap_rows(k, pivot);
            rows.swap(k, pivot);
            odd_permutation = !odd_permutation;
        }
    }
    for i in 0..n {
        for j in 0..n {
            let terms = (0..i.min(j)).map(|k| a.at(k, j) * a.at(i, k));
            let magnitude = a.at(i, j).abs() + terms.clone().map(T::abs).sum::<f64>();
            let sum = terms.fold(T::ZERO, |sum, term| term + sum);
            // Rounding errors of zeros become zero.
            let rest = (a.at(i, j) - sum).flush_to_zero(noise(n, n) * magnitude);
            *a.at_mut(i, j) = if j < i { rest.divided_by(a.at(j, j)) } else { rest };
        }
        yield_after(n, n);
    }
    Lu { rows, packed: a, odd_permutation }
}

impl<T: Scalar> Lu<T> {
    /// Eliminates column by column, and rounds each element after every step.
    fn factor_unblocked(&mut self, precision: Precision) {
        let n = self.packed.rows;
        for k in 0..n {
            let a = &self.packed;
            let sizes = (k..n).map(|i| precision.round(a.at(i, k).abs()));
            let larger =
                |best: (usize, f64), (i, size): (usize, f64)| if size > best.1 { (i, size) } else { best };
            let (pivot, _) = sizes.enumerate().fold((0, f64::NEG_INFINITY), larger);
            self.exchange_rows(k, k + pivot);
            let a = &mut self.packed;
            let diagonal = a.at(k, k);
            let (head, tail) = a.data.split_at_mut((k + 1) * n);
            let pivot_row = &head[k * n..][k + 1..];
            for row in tail.chunks_exact_mut(n) {
                if diagonal != T::ZERO {
                    row[k] = precision.round(row[k].divided_by(diagonal));
                }
                let factor = row[k];
                for (value, &u) in row[k + 1..].iter_mut().zip(pivot_row) {
                    *value = precision.round(*value - precision.round(factor * u));
                }
            }
        }
    }

    fn exchange_rows(&mut self, row: usize, pivot: usize) {
        if pivot != row {
            self.packed.swap_rows(row, pivot);
            self.rows.swap(row, pivot);
            self.odd_permutation = !self.odd_permutation;
        }
    }

    /// Factors these columns, in the rows from the first of them on, by halves (Toledo, "Locality
    /// of Reference in LU Decomposition with Partial Pivoting", 1997).
    fn factor(&mut self, columns: Range<usize>, scratch: &mut [T]) -> Result<(), Error> {
        if columns.len() <= LU_PANEL_COLUMNS {
            self.factor_panel(columns, scratch);
            return Ok(());
        }
        let Range { start, end } = columns;
        let middle = start + (columns.len() / 2).next_multiple_of(LU_PANEL_COLUMNS);
        self.factor(start..middle, scratch)?;
        self.solve_block_row(start..middle, middle..end)?;
        let n = self.packed.rows;
        let (left, above) = (Block::new(middle..n, start..middle), Block::new(start..middle, middle..end));
        let out = Block::new(middle..n, middle..end);
        subtract_within(OP, &mut self.packed.data, n, &out, &left, (&above, Right::Plain))?;
        self.factor(middle..end, scratch)
    }

    /// Factors a panel, in a transposed copy in which the elements of a column are adjacent.
    fn factor_panel(&mut self, columns: Range<usize>, scratch: &mut [T]) {
        let (n, start) = (self.packed.rows, columns.start);
        let m = n - start;
        let transposed = &mut scratch[..m * columns.len()];
        for (i, row) in self.packed.data[start * n..].chunks_exact(n).enumerate() {
            for (j, &value) in row[columns.clone()].iter().enumerate() {
                transposed[j * m + i] = value;
            }
        }
        for j in 0..columns.len() {
            let column = &transposed[j * m..][j..m];
            let pivot_abs = max_abs(column);
            // The first of several equal ones, and the diagonal if all are NaN.
            let pivot = j + column.iter().position(|value| value.abs() == pivot_abs).unwrap_or(0);
            if pivot != j {
                transposed.chunks_exact_mut(m).for_each(|column| column.swap(j, pivot));
            }
            self.exchange_rows(start + j, start + pivot);
            let (done, rest) = transposed.split_at_mut((j + 1) * m);
            let (diagonal, factors) = done[j * m + j..].split_at_mut(1);
            if diagonal[0] != T::ZERO {
                divide(factors, diagonal[0]);
            }
            for column in rest.chunks_exact_mut(m) {
                let factor = -column[j];
                add_scaled(&mut column[j + 1..], factors, factor);
            }
            yield_after(m, columns.len() - j);
        }
        for (i, row) in self.packed.data[start * n..].chunks_exact_mut(n).enumerate() {
            for (j, value) in row[columns.clone()].iter_mut().enumerate() {
                *value = transposed[j * m + i];
            }
        }
    }

    /// Solves `L X = B` in place, where `B` is the block of these rows and columns, and `L` the
    /// square block on the diagonal of the same rows.
    fn solve_block_row(&mut self, rows: Range<usize>, columns: Range<usize>) -> Result<(), Error> {
        let n = self.packed.rows;
        let Range { start, end } = rows;
        if rows.len() > MAX_UNBLOCKED_LU_SOLVE_ROWS {
            let middle = start + rows.len() / 2;
            self.solve_block_row(start..middle, columns.clone())?;
            let (left, above) =
                (Block::new(middle..end, start..middle), Block::new(start..middle, columns.clone()));
            let out = Block::new(middle..end, columns.clone());
            subtract_within(OP, &mut self.packed.data, n, &out, &left, (&above, Right::Plain))?;
            return self.solve_block_row(middle..end, columns);
        }
        let mut factors = [T::ZERO; MAX_UNBLOCKED_LU_SOLVE_ROWS];
        for i in start + 1..end {
            let (above, rest) = self.packed.data.split_at_mut(i * n);
            let row = &mut rest[..n];
            let count = i - start;
            for (factor, &l) in factors.iter_mut().zip(&row[start..i]) {
                *factor = -l;
            }
            add_rows(&mut row[columns.clone()], &factors[..count], &above[start * n + columns.start..], n);
        }
        Ok(())
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

    /// The product of the diagonal, with the sign of the permutation.
    pub fn determinant(&self) -> ScaledNumber<T> {
        let n = self.rows.len();
        let diagonal = || (0..n).map(|i| self.packed.at(i, i));
        if diagonal().any(|value| value == T::ZERO) {
            let value = if self.packed.is_finite() { T::ZERO } else { T::real(f64::NAN) };
            return ScaledNumber::product(std::iter::once(value));
        }
        let product = ScaledNumber::product(diagonal());
        if self.odd_permutation { product.negative() } else { product }
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
        forward_substitution(&self.packed, &mut x, Diagonal::Unit)?;
        x.map(|value| precision.round(value));
        back_substitution(self.packed, &mut x)?;
        Ok(x)
    }
}
