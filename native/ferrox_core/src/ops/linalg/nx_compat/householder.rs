//! The QR factorization by Householder reflections as Nx computes it.

use super::{NxAlgorithm, row_and_column_norms};
use crate::Error;
use crate::ops::linalg::factors::Qr;
use crate::ops::linalg::matrix::Matrix;
use crate::ops::linalg::scalar::{Precision, Scalar};

/// `Q H` and `H R` for the reflection `H = I - scale v vᴴ` in the rows from `top` on.
fn multiply_by_reflection<T: Scalar>(
    q: Matrix<T>,
    r: Matrix<T>,
    v: &[T],
    scale: T,
    top: usize,
    precision: Precision,
) -> Result<Qr<T>, Error> {
    const OP: &str = "qr";
    let mut h = Matrix::<T>::eye(OP, v.len(), v.len())?;
    for (i, &a) in v.iter().enumerate().skip(top) {
        for (value, &b) in h.row_mut(i)[top..].iter_mut().zip(&v[top..]) {
            *value = precision.round(*value - precision.round(scale * precision.round(a * b.conj())));
        }
    }
    let (mut q, mut r) = (multiply_in_order(&q, &h)?, multiply_in_order(&h, &r)?);
    q.map(|value| precision.round(value));
    r.map(|value| precision.round(value));
    Ok((q, r))
}

/// The product of two matrices; each sum is added up in order.
fn multiply_in_order<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>) -> Result<Matrix<T>, Error> {
    let mut product = Matrix::zeros("qr", a.rows, b.columns)?;
    for i in 0..a.rows {
        for j in 0..b.columns {
            *product.at_mut(i, j) =
                a.row(i).iter().enumerate().fold(T::ZERO, |sum, (k, &a)| a * b.at(k, j) + sum);
        }
    }
    Ok(product)
}

/// The QR factorization with Nx's steps, each rounded as Nx rounds it, for matrices with few rows
/// and columns, whose last digits Nx's documentation shows.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn qr<T: Scalar>(
    a: &Matrix<T>,
    columns: usize,
    eps: f64,
    precision: Precision,
    algorithm: NxAlgorithm,
) -> Result<Qr<T>, Error> {
    const OP: &str = "qr";
    let round = |value: T| precision.round(value);
    let (m, n) = (a.rows, a.columns);
    // A wide matrix is padded to a square one.
    let size = m.max(n);
    let side = if m < n { n } else { m };
    let mut r = Matrix::zeros(OP, side, n)?;
    r.data[..m * n].copy_from_slice(&a.data);
    let mut q = Matrix::<T>::eye(OP, side, side)?;
    let last = if m == n { n.saturating_sub(1) } else { n };
    let eps = precision.round(eps);
    for i in 0..last {
        let x: Vec<T> = (0..side).map(|row| if row < i { T::ZERO } else { r.at(row, i) }).collect();
        let square = |v: &[T]| precision.round(v.iter().fold(0.0, |sum, v| v.abs_sq() + sum));
        let (norm_sq, first) = (square(&x), x[i]);
        let norm = precision.round(norm_sq.sqrt());
        let mut v = x;
        let scale = if T::COMPLEX {
            let size = first.abs();
            let phase = if size == 0.0 { T::ONE } else { first.scale(1.0 / size) };
            v[i] = round(first + round(round(phase).scale(norm)));
            let u_sq = square(&v);
            if u_sq < eps {
                continue;
            }
            let u = T::real(precision.round(u_sq.sqrt()));
            v.iter_mut().for_each(|v| *v = round(v.divided_by(u)));
            T::real(2.0)
        } else {
            let first = first.re();
            let below = precision.round(norm_sq - precision.round(first * first));
            if below < eps {
                continue;
            }
            let v0 = if first <= 0.0 {
                precision.round(first - norm)
            } else {
                precision.round(-below / precision.round(first + norm))
            };
            v[i] = T::real(v0);
            v.iter_mut().for_each(|v| *v = round(v.divided_by(T::real(v0))));
            T::real(precision.round(2.0 / square(&v)))
        };
        let conjugates: Vec<T> = v.iter().map(|v| v.conj()).collect();
        if algorithm == NxAlgorithm::V0_9 {
            (q, r) = multiply_by_reflection(q, r, &v, scale, i, precision)?;
            continue;
        }
        let projections: Vec<T> = (0..n)
            .map(|j| round((0..side).fold(T::ZERO, |sum, k| conjugates[k] * r.at(k, j) + sum)))
            .collect();
        for (row, &v) in v.iter().enumerate() {
            for (value, &w) in r.row_mut(row).iter_mut().zip(&projections) {
                *value = round(*value - round(scale * round(v * w)));
            }
        }
        for row in 0..side {
            let row = q.row_mut(row);
            let qv = round(row.iter().zip(&v).fold(T::ZERO, |sum, (&q, &v)| q * v + sum));
            for (value, &v) in row.iter_mut().zip(&conjugates) {
                *value = round(*value - round(scale * round(qv * v)));
            }
        }
    }
    // Flushes elements that can't be told from a rounding error of their row and column, and
    // elements below the diagonal of R.
    let unit = f64::from(f32::EPSILON);
    let [rows, column_norms] = row_and_column_norms(a);
    let flushed = |from: &Matrix<T>, limit: &dyn Fn(usize, usize) -> f64, rows: usize, columns: usize| {
        let mut part = Matrix::zeros(OP, rows, columns)?;
        for row in 0..rows {
            for (column, (to, value)) in part.row_mut(row).iter_mut().zip(from.row(row)).enumerate() {
                *to = value.flush_to_zero(eps.min(limit(row, column)));
            }
        }
        Ok::<_, Error>(part)
    };
    let r_limit = |row: usize, column: usize| match rows.get(row) {
        Some(&size) if row <= column => unit * size.min(column_norms[column]),
        _ => f64::INFINITY,
    };
    debug_assert!(size == side);
    Ok((flushed(&q, &|_, _| unit, m, columns)?, flushed(&r, &r_limit, columns.min(m), n)?))
}
