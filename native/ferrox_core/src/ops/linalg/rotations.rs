//! Rotations of the columns of a matrix, many at a time: a pass for each would read
//! all of the matrix from memory again and again.

use std::mem;

use crate::Error;
use crate::cost::Cost;
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::parallel;
use crate::ops::linalg::matrix::Matrix;
use crate::ops::linalg::scalar::Scalar;

/// Rows that are rotated together: enough to hide the latency of an addition, and few
/// enough for the caches.
const ROWS: usize = 16;

/// Columns that are turned into rows together: a line of the cache.
const COLUMNS: usize = 8;

/// Rotations for each column that are kept before they are applied, so that what is
/// read and written for them doesn't count.
const KEPT: usize = 128;

/// Picoseconds to rotate two elements.
const ELEMENT: Cost = 100;

/// `(x, y)` becomes `(c x + s y, c y - s x)`.
#[derive(Clone, Copy, Debug)]
struct Rotation {
    first: usize,
    second: usize,
    c: f64,
    s: f64,
}

/// A matrix, and rotations of its columns that are still to be applied.
#[derive(Debug)]
pub struct Rotated<T> {
    op: &'static str,
    matrix: Matrix<T>,
    waiting: Vec<Rotation>,
}

impl<T: Scalar> Rotated<T> {
    /// None yet.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn new(op: &'static str, matrix: Matrix<T>) -> Result<Self, Error> {
        let mut waiting = Vec::new();
        let count = matrix.columns.saturating_mul(KEPT);
        waiting.try_reserve_exact(count).map_err(|_| too_large(op, &matrix))?;
        Ok(Rotated { op, matrix, waiting })
    }

    /// Rotates two different columns: `(x, y)` becomes `(c x + s y, c y - s x)`. It is
    /// fastest where the first is the second of the rotation before.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn rotate(&mut self, first: usize, second: usize, c: f64, s: f64) -> Result<(), Error> {
        if self.waiting.len() == self.waiting.capacity() {
            self.apply()?;
        }
        self.waiting.push(Rotation { first, second, c, s });
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
        let waiting = mem::take(&mut self.waiting);
        if columns > 0 {
            let elements = self.matrix.rows.saturating_mul(waiting.len());
            let error = too_large(op, &self.matrix);
            parallel::try_each(elements, ELEMENT, self.matrix.data.chunks_mut(ROWS * columns), |rows| {
                let mut turned = Vec::new();
                turned.try_reserve_exact(columns).map_err(|_| error.clone())?;
                turned.resize(columns, [T::ZERO; ROWS]);
                for (block, turned) in turned.chunks_mut(COLUMNS).enumerate() {
                    for (i, row) in rows.chunks_exact(columns).enumerate() {
                        for (turned, &value) in turned.iter_mut().zip(&row[block * COLUMNS..]) {
                            turned[i] = value;
                        }
                    }
                }
                vectorize(Rotate { turned: &mut turned, rotations: &waiting });
                for (block, turned) in turned.chunks(COLUMNS).enumerate() {
                    for (i, row) in rows.chunks_exact_mut(columns).enumerate() {
                        for (turned, value) in turned.iter().zip(&mut row[block * COLUMNS..]) {
                            *value = turned[i];
                        }
                    }
                }
                Ok(())
            })?;
        }
        self.waiting = waiting;
        self.waiting.clear();
        Ok(())
    }
}

fn too_large<T: Scalar>(op: &'static str, matrix: &Matrix<T>) -> Error {
    Error::TooLarge { op, dtype: T::DTYPE, shape: vec![matrix.rows, matrix.columns] }
}

struct Rotate<'a, T> {
    /// For each column the elements of some rows.
    turned: &'a mut [[T; ROWS]],
    rotations: &'a [Rotation],
}

impl<T: Scalar> Vectorized for Rotate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // The second of a rotation, which is mostly the first of the next: so it stays in
        // registers.
        let (mut held, mut place) = ([T::ZERO; ROWS], None);
        for &Rotation { first, second, c, s } in self.rotations {
            if place != Some(first) {
                if let Some(place) = place {
                    self.turned[place] = held;
                }
                held = self.turned[first];
            }
            let y = self.turned[second];
            for ((x, y), out) in held.iter_mut().zip(y).zip(&mut self.turned[first]) {
                *out = x.scale(c) + y.scale(s);
                *x = y.scale(c) - x.scale(s);
            }
            place = Some(second);
        }
        if let Some(place) = place {
            self.turned[place] = held;
        }
    }
}
