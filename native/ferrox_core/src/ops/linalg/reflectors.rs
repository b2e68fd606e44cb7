//! Reflections one after the other, applied several at a time (Schreiber and Van Loan,
//! "A Storage-Efficient WY Representation for Products of Householder
//! Transformations", 1989).

use super::matrix::Matrix;
use super::scalar::Scalar;
use crate::Error;
use crate::exec::blocks::{Update, View, multiply};

/// Reflections that are applied together.
pub const TOGETHER: usize = 32;

/// Reflections `I - tau v vᴴ` with real `tau`. The first of them leaves some rows alone,
/// each of the others one more.
#[derive(Debug)]
pub struct Reflectors<T> {
    /// A `v` in each row, zero in the rows that it leaves alone.
    vectors: Matrix<T>,
    taus: Vec<T>,
    first: usize,
}

impl<T: Scalar> Reflectors<T> {
    /// None yet, of at most `count` for vectors of `size` elements, the first of which
    /// leaves `first` alone.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn new(op: &'static str, count: usize, size: usize, first: usize) -> Result<Self, Error> {
        let vectors = Matrix::zeros(op, count, size)?;
        Ok(Reflectors { vectors, taus: Vec::with_capacity(count), first })
    }

    /// Adds one, `v` being what is not zero; none for the identity.
    pub fn push(&mut self, reflection: Option<(&[T], T)>) {
        let index = self.taus.len();
        let row = &mut self.vectors.row_mut(index)[self.first + index..];
        let tau = match reflection {
            Some((v, tau)) => {
                row.copy_from_slice(v);
                tau
            }
            None => T::ZERO,
        };
        self.taus.push(tau);
    }

    /// Applies the last of them, from `from` on, to the columns from `column` on: the first
    /// of them first.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn apply_from(
        &self,
        op: &'static str,
        from: usize,
        a: &mut Matrix<T>,
        column: usize,
    ) -> Result<(), Error> {
        self.apply(op, from, self.taus.len(), a, column, true)
    }

    /// Multiplies a matrix with the product of all, the first on the left.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn apply_all(&self, op: &'static str, a: &mut Matrix<T>) -> Result<(), Error> {
        let count = self.taus.len();
        for from in (0..count).step_by(TOGETHER).rev() {
            self.apply(op, from, (from + TOGETHER).min(count), a, 0, false)?;
        }
        Ok(())
    }

    /// The product of all, the first on the left: its first columns.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn product(&self, op: &'static str, columns: usize) -> Result<Matrix<T>, Error> {
        let mut product = Matrix::eye(op, self.vectors.columns, columns)?;
        let count = self.taus.len();
        for from in (0..count).step_by(TOGETHER).rev() {
            // To the left of it there is nothing but the identity yet.
            let to = (from + TOGETHER).min(count);
            self.apply(op, from, to, &mut product, self.first + from, false)?;
        }
        Ok(product)
    }

    /// `A -= V T Vᴴ A` for some of the reflections, with `Tᴴ` for `T` if they are applied
    /// the first of them first.
    fn apply(
        &self,
        op: &'static str,
        from: usize,
        to: usize,
        a: &mut Matrix<T>,
        column: usize,
        adjoint: bool,
    ) -> Result<(), Error> {
        let (size, top, k) = (self.vectors.columns, self.first + from, to - from);
        let (n, rows) = (a.columns, size.saturating_sub(top));
        if column >= n || rows == 0 || k == 0 {
            return Ok(());
        }
        let width = n - column;
        let v = View::rows(&self.vectors.data[from * size + top..], size);
        let t = self.triangle(op, from, to, v)?;
        let t = View::rows(&t.data, k);
        let t = if adjoint { t.transposed().conjugated() } else { t };
        let a = &mut a.data[top * n + column..];
        let mut along = Matrix::zeros(op, k, width)?;
        multiply(
            [k, rows, width],
            Update::Add,
            v.conjugated(),
            View::rows(a, n),
            (&mut along.data, [width, 1]),
        );
        let mut turned = Matrix::zeros(op, k, width)?;
        multiply(
            [k, k, width],
            Update::Add,
            t,
            View::rows(&along.data, width),
            (&mut turned.data, [width, 1]),
        );
        let turned = View::rows(&turned.data, width);
        multiply([rows, k, width], Update::Subtract, v.transposed(), turned, (a, [n, 1]));
        Ok(())
    }

    /// The upper triangular `T` with `I - V T Vᴴ` for their product.
    fn triangle(&self, op: &'static str, from: usize, to: usize, v: View<'_, T>) -> Result<Matrix<T>, Error> {
        let (k, rows) = (to - from, self.vectors.columns - self.first - from);
        let mut products = Matrix::zeros(op, k, k)?;
        multiply([k, rows, k], Update::Add, v.conjugated(), v.transposed(), (&mut products.data, [k, 1]));
        let mut t = Matrix::zeros(op, k, k)?;
        for (j, &tau) in self.taus[from..to].iter().enumerate() {
            for i in 0..j {
                let sum = (i..j).fold(T::ZERO, |sum, p| sum + t.at(i, p) * products.at(p, j));
                *t.at_mut(i, j) = -(tau * sum);
            }
            *t.at_mut(j, j) = tau;
        }
        Ok(t)
    }
}
