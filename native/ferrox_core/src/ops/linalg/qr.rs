//! The QR factorization by Householder's reflections.
//!
//! Signs are those of Nx: a real diagonal of R is positive, except where nothing
//! was left to eliminate; a complex one is opposite to what it comes from.

use super::matrix::{
    Matrix, Scaling, add_scaled, clean, direction, dot, largest, norm, pause_after, reflector,
};
use super::reflectors::{Reflectors, TOGETHER};
use super::scalar::{Precision, Scalar};
use super::steps::{Steps, norms};
use crate::Error;

/// `Q`, of as many columns as asked for, and `R`, of as many rows.
pub type Qr<T> = (Matrix<T>, Matrix<T>);

/// Factors a matrix; `columns` is how many columns of `Q` are wanted: all, or
/// the smaller of both sizes.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn qr<T: Scalar>(a: &Matrix<T>, columns: usize, eps: f64) -> Result<Qr<T>, Error> {
    const OP: &str = "qr";
    let (m, n) = (a.rows, a.columns);
    let mut r = a.copy(OP)?;
    // Scaled by a power of two, so that no square over- or underflows.
    let greatest = largest(&a.data);
    let scaling = Scaling::high(greatest);
    r.map(|value| scaling.down(value));
    // A complex column is turned even where nothing is left below, unless the
    // matrix is square.
    let last = if T::COMPLEX && m != n { m.min(n) } else { m.min(n.min(m.saturating_sub(1))) };
    let mut reflectors = Reflectors::new(OP, last, m, 0)?;
    let mut scratch = Matrix::zeros(OP, TOGETHER.min(last), m)?;
    for start in (0..last).step_by(TOGETHER) {
        let (end, rows) = ((start + TOGETHER).min(last), m - start);
        // With rows for columns, so that the elements of a column lie side by side.
        let turned = &mut scratch.data[..rows * (end - start)];
        for (i, row) in r.data[start * n..].chunks_exact(n).enumerate() {
            for (j, &value) in row[start..end].iter().enumerate() {
                turned[j * rows + i] = value;
            }
        }
        for j in 0..end - start {
            let (done, rest) = turned.split_at_mut((j + 1) * rows);
            let v = &mut done[j * rows + j..];
            let below = scaling.up(norm(&v[1..]));
            let beta = |first: T, norm: f64| {
                if T::COMPLEX {
                    return if first == T::ZERO { T::real(-norm) } else { -direction(first).scale(norm) };
                }
                T::real(if below * below < eps && first.re() < 0.0 { -norm } else { norm })
            };
            let nothing = !T::COMPLEX && v[1..].iter().all(|&v| v == T::ZERO);
            let found = if nothing { None } else { reflector(v, beta) };
            reflectors.push(found.map(|(tau, _)| (&*v, tau)));
            if let Some((tau, beta)) = found {
                for column in rest.chunks_exact_mut(rows) {
                    let along = dot(v, &column[j..]);
                    add_scaled(&mut column[j..], v, -(tau * along));
                }
                v[0] = beta;
            }
            v[1..].fill(T::ZERO);
            pause_after(rows, end - start - j);
        }
        for (i, row) in r.data[start * n..].chunks_exact_mut(n).enumerate() {
            for (j, value) in row[start..end].iter_mut().enumerate() {
                *value = turned[j * rows + i];
            }
        }
        reflectors.apply_from(OP, start, &mut r, end)?;
    }
    let mut q = reflectors.product(OP, columns)?;
    // Zeros without their signs.
    clean(&mut q.data, 0.0);
    r.map(|value| scaling.up(value).clean(0.0));
    r.data.truncate(columns * n);
    r.rows = columns.min(m);
    Ok((q, r))
}

/// `Q H` and `H R` for the reflection `H = I - scale v vᴴ` in the rows from `top` on.
fn products<T: Scalar>(
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
    let (mut q, mut r) = (in_order(&q, &h)?, in_order(&h, &r)?);
    q.map(|value| precision.round(value));
    r.map(|value| precision.round(value));
    Ok((q, r))
}

/// The product, every sum added up in order.
fn in_order<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>) -> Result<Matrix<T>, Error> {
    let mut product = Matrix::zeros("qr", a.rows, b.columns)?;
    for i in 0..a.rows {
        for j in 0..b.columns {
            *product.at_mut(i, j) =
                a.row(i).iter().enumerate().fold(T::ZERO, |sum, (k, &a)| a * b.at(k, j) + sum);
        }
    }
    Ok(product)
}

/// The same in Nx's own steps, each rounded as Nx rounds it, for the few rows
/// and columns whose last digits its documentation shows.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn stepwise<T: Scalar>(
    a: &Matrix<T>,
    columns: usize,
    eps: f64,
    precision: Precision,
    steps: Steps,
) -> Result<Qr<T>, Error> {
    const OP: &str = "qr";
    let round = |value: T| precision.round(value);
    let (m, n) = (a.rows, a.columns);
    // A wide matrix is filled up to a square one.
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
            v.iter_mut().for_each(|v| *v = round(v.over(u)));
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
            v.iter_mut().for_each(|v| *v = round(v.over(T::real(v0))));
            T::real(precision.round(2.0 / square(&v)))
        };
        let conjugates: Vec<T> = v.iter().map(|v| v.conj()).collect();
        if steps == Steps::Former {
            (q, r) = products(q, r, &v, scale, i, precision)?;
            continue;
        }
        let along: Vec<T> = (0..n)
            .map(|j| round((0..side).fold(T::ZERO, |sum, k| conjugates[k] * r.at(k, j) + sum)))
            .collect();
        for (row, &v) in v.iter().enumerate() {
            for (value, &w) in r.row_mut(row).iter_mut().zip(&along) {
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
    // What can't be told from a rounding of its row and column, and all that should be zero.
    let unit = f64::from(f32::EPSILON);
    let [rows, across] = norms(a);
    let cleaned = |from: &Matrix<T>, limit: &dyn Fn(usize, usize) -> f64, rows: usize, columns: usize| {
        let mut part = Matrix::zeros(OP, rows, columns)?;
        for row in 0..rows {
            for (column, (to, value)) in part.row_mut(row).iter_mut().zip(from.row(row)).enumerate() {
                *to = value.clean(eps.min(limit(row, column)));
            }
        }
        Ok::<_, Error>(part)
    };
    let of_r = |row: usize, column: usize| match rows.get(row) {
        Some(&size) if row <= column => unit * size.min(across[column]),
        _ => f64::INFINITY,
    };
    debug_assert!(size == side);
    Ok((cleaned(&q, &|_, _| unit, m, columns)?, cleaned(&r, &of_r, columns.min(m), n)?))
}
