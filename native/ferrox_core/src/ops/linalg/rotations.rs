//! Givens rotations of the columns of a matrix, applied many at a time: one pass per rotation would
//! read the whole matrix from memory each time.

use std::mem;

use crate::Error;
use crate::cost::{QUEUED_ROTATIONS_PER_COLUMN, ROTATED_COLUMNS_PER_TRANSPOSE, ROTATED_PAIR_COST};
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::parallel;
use crate::ops::linalg::matrix::Matrix;
use crate::ops::linalg::scalar::Scalar;

/// The number of rows that are rotated at once: enough to hide the latency of an addition, and few
/// enough for the caches.
const ROTATED_ROWS_PER_BLOCK: usize = 16;

/// Maps the columns `(x, y)` to `(c x + s y, c y - s x)`.
#[derive(Clone, Copy, Debug)]
struct GivensRotation {
    first: usize,
    second: usize,
    c: f64,
    s: f64,
}

/// A matrix, and a queue of rotations of its columns that are not yet applied.
#[derive(Debug)]
pub struct RotatedMatrix<T> {
    op: &'static str,
    matrix: Matrix<T>,
    queue: Vec<GivensRotation>,
}

impl<T: Scalar> RotatedMatrix<T> {
    /// A matrix without rotations.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn new(op: &'static str, matrix: Matrix<T>) -> Result<Self, Error> {
        let mut queue = Vec::new();
        let count = matrix.columns.saturating_mul(QUEUED_ROTATIONS_PER_COLUMN);
        queue.try_reserve_exact(count).map_err(|_| too_large(op, &matrix))?;
        Ok(RotatedMatrix { op, matrix, queue })
    }

    /// Rotates two different columns: `(x, y)` becomes `(c x + s y, c y - s x)`. Fastest if `first`
    /// is the `second` of the previous rotation.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn rotate(&mut self, first: usize, second: usize, c: f64, s: f64) -> Result<(), Error> {
        if self.queue.len() == self.queue.capacity() {
            self.apply()?;
        }
        self.queue.push(GivensRotation { first, second, c, s });
        Ok(())
    }

    /// The matrix with all rotations applied.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn finish(mut self) -> Result<Matrix<T>, Error> {
        self.apply()?;
        Ok(self.matrix)
    }

    fn apply(&mut self) -> Result<(), Error> {
        let (op, columns) = (self.op, self.matrix.columns);
        let queue = mem::take(&mut self.queue);
        if columns > 0 {
            let elements = self.matrix.rows.saturating_mul(queue.len());
            let error = too_large(op, &self.matrix);
            parallel::try_each(
                elements,
                ROTATED_PAIR_COST,
                self.matrix.data.chunks_mut(ROTATED_ROWS_PER_BLOCK * columns),
                |rows| {
                    let mut transposed = Vec::new();
                    transposed.try_reserve_exact(columns).map_err(|_| error.clone())?;
                    transposed.resize(columns, [T::ZERO; ROTATED_ROWS_PER_BLOCK]);
                    for (block, transposed) in
                        transposed.chunks_mut(ROTATED_COLUMNS_PER_TRANSPOSE).enumerate()
                    {
                        for (i, row) in rows.chunks_exact(columns).enumerate() {
                            for (transposed, &value) in
                                transposed.iter_mut().zip(&row[block * ROTATED_COLUMNS_PER_TRANSPOSE..])
                            {
                                transposed[i] = value;
                            }
                        }
                    }
                    vectorize(ApplyRotationsLoop { transposed: &mut transposed, rotations: &queue });
                    for (block, transposed) in transposed.chunks(ROTATED_COLUMNS_PER_TRANSPOSE).enumerate() {
                        for (i, row) in rows.chunks_exact_mut(columns).enumerate() {
                            for (transposed, value) in
                                transposed.iter().zip(&mut row[block * ROTATED_COLUMNS_PER_TRANSPOSE..])
                            {
                                *value = transposed[i];
                            }
                        }
                    }
                    Ok(())
                },
            )?;
        }
        self.queue = queue;
        self.queue.clear();
        Ok(())
    }
}

fn too_large<T: Scalar>(op: &'static str, matrix: &Matrix<T>) -> Error {
    Error::TooLarge { op, dtype: T::DTYPE, shape: vec![matrix.rows, matrix.columns] }
}

struct ApplyRotationsLoop<'a, T> {
    /// The elements of a block of rows, column by column.
    transposed: &'a mut [[T; ROTATED_ROWS_PER_BLOCK]],
    rotations: &'a [GivensRotation],
}

impl<T: Scalar> Vectorized for ApplyRotationsLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // The second column of a rotation, which stays in registers: it is usually the first column
        // of the next rotation.
        let (mut carried, mut carried_column) = ([T::ZERO; ROTATED_ROWS_PER_BLOCK], None);
        for &GivensRotation { first, second, c, s } in self.rotations {
            if carried_column != Some(first) {
                if let Some(carried_column) = carried_column {
                    self.transposed[carried_column] = carried;
                }
                carried = self.transposed[first];
            }
            let y = self.transposed[second];
            for ((x, y), out) in carried.iter_mut().zip(y).zip(&mut self.transposed[first]) {
                *out = x.scale(c) + y.scale(s);
                *x = y.scale(c) - x.scale(s);
            }
            carried_column = Some(second);
        }
        if let Some(carried_column) = carried_column {
            self.transposed[carried_column] = carried;
        }
    }
}
