//! The Cholesky factorization.

use super::matrix::{Matrix, dot, noise};
use super::scalar::{Precision, Scalar};
use crate::Error;

/// Nx adds this to what it divides by; here it stands in for zeros only, so that
/// small pivots keep their accuracy.
const EPS: f64 = 1e-10;

/// Up to this size sums are added up in order, as Nx adds them.
const IN_ORDER: usize = 32;

/// The lower triangular `L` with `L Lᴴ = A`, of which only the lower triangle is
/// read. Where `A` is not positive definite there are NaN from the first pivot
/// that is negative on.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn cholesky<T: Scalar>(a: &Matrix<T>, precision: Precision) -> Result<Matrix<T>, Error> {
    let n = a.rows;
    let mut l = Matrix::zeros("cholesky", n, n)?;
    for i in 0..n {
        let (done, rest) = l.data.split_at_mut(i * n);
        let row = &mut rest[..n];
        for j in 0..i {
            let above = &done[j * n..][..=j];
            let sum = precision.round(sum(&row[..j], &above[..j], n));
            let pivot = if above[j] == T::ZERO { T::real(EPS) } else { above[j] };
            row[j] = precision.round(precision.round(a.at(i, j) - sum).over(pivot));
        }
        let sum = precision.round(sum(&row[..i], &row[..i], n));
        let square = precision.round(a.at(i, i) - sum).re();
        row[i] = precision.round(T::real(square.sqrt()));
    }
    // What rounding has left of zeros.
    let noise = l.norm() * noise(n, n);
    if noise.is_finite() {
        l.map(|value| value.clean(noise.min(EPS)));
    }
    Ok(l)
}

/// The sum of `a conj(b)`.
fn sum<T: Scalar>(a: &[T], b: &[T], n: usize) -> T {
    if n > IN_ORDER {
        return dot(b, a);
    }
    a.iter().zip(b).fold(T::ZERO, |sum, (&a, &b)| a * b.conj() + sum)
}
