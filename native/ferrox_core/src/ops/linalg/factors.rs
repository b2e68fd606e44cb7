//! What factorizations answer.

use super::matrix::Matrix;

/// `Q`, of as many columns as asked for, and `R`, of as many rows.
pub type Qr<T> = (Matrix<T>, Matrix<T>);

/// `A = U S Vᵀ`, with `U` and `V` as rows of vectors, and `S` descending.
#[derive(Debug)]
pub struct Svd {
    /// The left vectors as rows.
    pub u: Matrix<f64>,
    /// The singular values.
    pub s: Vec<f64>,
    /// The right vectors as rows.
    pub v: Matrix<f64>,
}
