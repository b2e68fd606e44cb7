//! Products of Householder reflections, applied in blocks (Schreiber and Van Loan, "A
//! Storage-Efficient WY Representation for Products of Householder Transformations", 1989).

use std::ops::Range;

use crate::Error;
use crate::exec::gemm::blocked::{Update, View};
use crate::ops::linalg::matrix::{Matrix, multiply};
use crate::ops::linalg::scalar::Scalar;

/// The number of reflections that are applied as one block.
pub const REFLECTORS_PER_BLOCK: usize = 32;

/// Reflections `I - tau v vᴴ` with real `tau`. The first one leaves the rows before `first_row`
/// unchanged, and each further one leaves one more row unchanged.
#[derive(Debug)]
pub struct Reflectors<T> {
    /// A vector `v` in each row; zero for the rows that its reflection leaves unchanged.
    vectors: Matrix<T>,
    taus: Vec<T>,
    first_row: usize,
}

/// The columns that reflections are applied to: the elements from the first one on, and the strides
/// of rows and of columns.
struct TargetColumns<'a, T> {
    data: &'a mut [T],
    strides: [usize; 2],
    width: usize,
}

/// Memory for two products with a block of reflections.
struct Workspace<T>(Matrix<T>);

impl<T: Scalar> Workspace<T> {
    fn new(op: &'static str, width: usize) -> Result<Self, Error> {
        Matrix::zeros(op, 2 * REFLECTORS_PER_BLOCK, width).map(Workspace)
    }

    fn buffers(&mut self, size: usize) -> [&mut [T]; 2] {
        let (first, second) = self.0.data.split_at_mut(REFLECTORS_PER_BLOCK * self.0.columns);
        [&mut first[..size], &mut second[..size]]
    }
}

impl<T: Scalar> Reflectors<T> {
    /// No reflections yet, with room for `count` on vectors of `size` elements, the first of which
    /// leaves `first_row` rows unchanged.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn new(op: &'static str, count: usize, size: usize, first_row: usize) -> Result<Self, Error> {
        let vectors = Matrix::zeros(op, count, size)?;
        Ok(Reflectors { vectors, taus: Vec::with_capacity(count), first_row })
    }

    /// Adds a reflection by its `tau` and the part of `v` that is not zero, or the identity for
    /// `None`.
    pub fn push(&mut self, reflection: Option<(&[T], T)>) {
        let index = self.taus.len();
        let row = &mut self.vectors.row_mut(index)[self.first_row + index..];
        let tau = match reflection {
            Some((v, tau)) => {
                row.copy_from_slice(v);
                tau
            }
            None => T::ZERO,
        };
        self.taus.push(tau);
    }

    /// Applies the reflections from `from` on to the columns from `column` on, in the order in
    /// which they were added.
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
        let mut workspace = Workspace::new(op, width)?;
        let columns =
            TargetColumns { data: a.data.get_mut(column..).unwrap_or_default(), strides: [stride, 1], width };
        self.apply(op, from..self.taus.len(), columns, true, &mut workspace)
    }

    /// Multiplies vectors, which are rows, by the product of all reflections, in which the first is
    /// on the left.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn apply_to_rows(&self, op: &'static str, vectors: &mut Matrix<T>) -> Result<(), Error> {
        let (width, strides) = (vectors.rows, [1, vectors.columns]);
        let mut workspace = Workspace::new(op, width)?;
        for block in self.blocks().rev() {
            let columns = TargetColumns { data: &mut vectors.data, strides, width };
            self.apply(op, block, columns, false, &mut workspace)?;
        }
        Ok(())
    }

    /// The first columns of the product of all reflections, in which the first is on the left.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn product(&self, op: &'static str, columns: usize) -> Result<Matrix<T>, Error> {
        let mut product = Matrix::eye(op, self.vectors.columns, columns)?;
        let mut workspace = Workspace::new(op, columns)?;
        for block in self.blocks().rev() {
            // The columns to the left are still columns of the identity.
            let column = self.first_row + block.start;
            let width = columns.saturating_sub(column);
            let data = product.data.get_mut(column..).unwrap_or_default();
            self.apply(
                op,
                block,
                TargetColumns { data, strides: [columns, 1], width },
                false,
                &mut workspace,
            )?;
        }
        Ok(product)
    }

    fn blocks(&self) -> impl DoubleEndedIterator<Item = Range<usize>> + use<T> {
        let count = self.taus.len();
        (0..count.div_ceil(REFLECTORS_PER_BLOCK))
            .map(move |i| i * REFLECTORS_PER_BLOCK..((i + 1) * REFLECTORS_PER_BLOCK).min(count))
    }

    /// `A -= V T Vᴴ A` for a block of reflections; with `Tᴴ` for `T` if `adjoint`, which applies
    /// the first reflection first.
    fn apply(
        &self,
        op: &'static str,
        block: Range<usize>,
        a: TargetColumns<'_, T>,
        adjoint: bool,
        workspace: &mut Workspace<T>,
    ) -> Result<(), Error> {
        let TargetColumns { data, strides, width } = a;
        let (size, top, k) = (self.vectors.columns, self.first_row + block.start, block.len());
        let rows = size.saturating_sub(top);
        if width == 0 || rows == 0 || k == 0 {
            return Ok(());
        }
        let v = View::rows(&self.vectors.data[block.start * size + top..], size);
        let t = self.triangular_factor(op, block, v)?;
        let t = View::rows(&t.data, k);
        let t = if adjoint { t.transposed().conjugated() } else { t };
        let data = &mut data[top * strides[0]..];
        // The products have the order of the columns in memory, so that they are written in the
        // order in which they are read.
        let inner = if strides[1] == 1 { [width, 1] } else { [1, k] };
        let [vh_a, t_vh_a] = workspace.buffers(k * width);
        let product_view = |data| View { data, strides: inner, conjugate: false };
        let a = View { data: &*data, strides, conjugate: false };
        multiply(op, [k, rows, width], Update::Replace, v.conjugated(), a, (vh_a, inner))?;
        multiply(op, [k, k, width], Update::Replace, t, product_view(vh_a), (t_vh_a, inner))?;
        let (v, t_vh_a) = (v.transposed(), product_view(t_vh_a));
        multiply(op, [rows, k, width], Update::Subtract, v, t_vh_a, (data, strides))
    }

    /// The upper triangular `T` such that `I - V T Vᴴ` is the product of the block (LAPACK's
    /// `dlarft`).
    fn triangular_factor(
        &self,
        op: &'static str,
        block: Range<usize>,
        v: View<'_, T>,
    ) -> Result<Matrix<T>, Error> {
        let (k, rows) = (block.len(), self.vectors.columns - self.first_row - block.start);
        let mut products = Matrix::zeros(op, k, k)?;
        let out = (&mut products.data[..], [k, 1]);
        multiply(op, [k, rows, k], Update::Add, v.conjugated(), v.transposed(), out)?;
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
