//! Reflections one after the other, applied several at a time (Schreiber and Van Loan,
//! "A Storage-Efficient WY Representation for Products of Householder
//! Transformations", 1989).

use std::ops::Range;

use crate::Error;
use crate::exec::gemm::blocked::{Update, View, multiply};
use crate::ops::linalg::matrix::Matrix;
use crate::ops::linalg::scalar::Scalar;

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

/// What reflections are applied to: from the first element on, with the strides of rows and
/// columns.
struct Columns<'a, T> {
    data: &'a mut [T],
    strides: [usize; 2],
    width: usize,
}

/// Room for two products of the reflections that are applied together.
struct Memory<T>(Matrix<T>);

impl<T: Scalar> Memory<T> {
    fn new(op: &'static str, width: usize) -> Result<Self, Error> {
        Matrix::zeros(op, 2 * TOGETHER, width).map(Memory)
    }

    fn parts(&mut self, size: usize) -> [&mut [T]; 2] {
        let (first, second) = self.0.data.split_at_mut(TOGETHER * self.0.columns);
        [&mut first[..size], &mut second[..size]]
    }
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
        let (width, stride) = (a.columns.saturating_sub(column), a.columns);
        let mut memory = Memory::new(op, width)?;
        let columns =
            Columns { data: a.data.get_mut(column..).unwrap_or_default(), strides: [stride, 1], width };
        self.apply(op, from..self.taus.len(), columns, true, &mut memory)
    }

    /// Multiplies vectors, which are rows, with the product of all, the first on the left.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn apply_to_rows(&self, op: &'static str, vectors: &mut Matrix<T>) -> Result<(), Error> {
        let (width, strides) = (vectors.rows, [1, vectors.columns]);
        let mut memory = Memory::new(op, width)?;
        for block in self.blocks().rev() {
            let columns = Columns { data: &mut vectors.data, strides, width };
            self.apply(op, block, columns, false, &mut memory)?;
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
        let mut memory = Memory::new(op, columns)?;
        for block in self.blocks().rev() {
            // To the left of it there is nothing but the identity yet.
            let column = self.first + block.start;
            let width = columns.saturating_sub(column);
            let data = product.data.get_mut(column..).unwrap_or_default();
            self.apply(op, block, Columns { data, strides: [columns, 1], width }, false, &mut memory)?;
        }
        Ok(product)
    }

    fn blocks(&self) -> impl DoubleEndedIterator<Item = Range<usize>> + use<T> {
        let count = self.taus.len();
        (0..count.div_ceil(TOGETHER)).map(move |i| i * TOGETHER..((i + 1) * TOGETHER).min(count))
    }

    /// `A -= V T Vᴴ A` for some of the reflections, with `Tᴴ` for `T` if they are applied
    /// the first of them first.
    fn apply(
        &self,
        op: &'static str,
        block: Range<usize>,
        a: Columns<'_, T>,
        adjoint: bool,
        memory: &mut Memory<T>,
    ) -> Result<(), Error> {
        let Columns { data, strides, width } = a;
        let (size, top, k) = (self.vectors.columns, self.first + block.start, block.len());
        let rows = size.saturating_sub(top);
        if width == 0 || rows == 0 || k == 0 {
            return Ok(());
        }
        let v = View::rows(&self.vectors.data[block.start * size + top..], size);
        let t = self.triangle(op, block, v)?;
        let t = View::rows(&t.data, k);
        let t = if adjoint { t.transposed().conjugated() } else { t };
        let data = &mut data[top * strides[0]..];
        // What is multiplied lies as the columns do, so that a product is written as it is read.
        let inner = if strides[1] == 1 { [width, 1] } else { [1, k] };
        let [along, turned] = memory.parts(k * width);
        let part = |data| View { data, strides: inner, conjugate: false };
        let a = View { data: &*data, strides, conjugate: false };
        multiply([k, rows, width], Update::Replace, v.conjugated(), a, (along, inner));
        multiply([k, k, width], Update::Replace, t, part(along), (turned, inner));
        multiply([rows, k, width], Update::Subtract, v.transposed(), part(turned), (data, strides));
        Ok(())
    }

    /// The upper triangular `T` with `I - V T Vᴴ` for their product.
    fn triangle(&self, op: &'static str, block: Range<usize>, v: View<'_, T>) -> Result<Matrix<T>, Error> {
        let (k, rows) = (block.len(), self.vectors.columns - self.first - block.start);
        let mut products = Matrix::zeros(op, k, k)?;
        multiply([k, rows, k], Update::Add, v.conjugated(), v.transposed(), (&mut products.data, [k, 1]));
        let mut t = Matrix::zeros(op, k, k)?;
        for (j, &tau) in self.taus[block].iter().enumerate() {
            for i in 0..j {
                let sum = (i..j).fold(T::ZERO, |sum, p| sum + t.at(i, p) * products.at(p, j));
                *t.at_mut(i, j) = -(tau * sum);
            }
            *t.at_mut(j, j) = tau;
        }
        Ok(t)
    }
}
