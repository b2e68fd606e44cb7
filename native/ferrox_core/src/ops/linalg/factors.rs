//! The results of factorizations.

use super::matrix::Matrix;

/// `Q`, with the requested number of columns, and `R`, with the same number of rows.
pub type Qr<T> = (Matrix<T>, Matrix<T>);

/// `A = U S Vᵀ`, with the vectors of `U` and `V` as rows, and `S` descending.
#[derive(Debug)]
pub struct Svd {
    /// The left vectors as rows.
    pub u: Matrix<f64>,
    /// The singular values.
    pub s: Vec<f64>,
    /// The right vectors as rows.
    pub v: Matrix<f64>,
}
