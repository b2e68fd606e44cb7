//! Singular values and vectors of real matrices: Householder reflections to bidiagonal form (Golub
//! and Kahan, "Calculating the Singular Values and Pseudo-Inverse of a Matrix", 1965), and divide
//! and conquer from there (LAPACK's `dgesdd`).

use super::matrix::{
    Matrix, Scaling, add_rows, add_scaled, descending_order, filled_vector, max_abs, reflect_rows, reflector,
    vector, yield_after,
};
use crate::Error;
use crate::ops::linalg::divide_and_conquer::singular_vectors;
use crate::ops::linalg::factors::Svd;
use crate::ops::linalg::qr::qr;
use crate::ops::linalg::reflectors::Reflectors;

const OP: &str = "svd";

/// Decomposes a finite matrix with at least as many rows as columns. `columns` is the number of
/// left vectors: as large as the number of rows of the matrix, or as the number of its singular
/// values.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory, `Error::Argument` if the steps don't converge.
pub fn svd(a: &Matrix<f64>, columns: usize) -> Result<Svd, Error> {
    let (m, n) = (a.rows, a.columns);
    let sizes = vector(OP, (0..m).map(|i| max_abs(a.row(i))))?;
    let largest_of_all = max_abs(&sizes);
    if largest_of_all == 0.0 || n == 0 {
        let (u, v) = (Matrix::eye(OP, columns, m)?, Matrix::eye(OP, n, n)?);
        return Ok(Svd { u, s: filled_vector(OP, n, 0.0)?, v });
    }
    let scaling = Scaling::to_high(largest_of_all);
    let mut b = a.copy(OP)?;
    b.map(|value| scaling.down(value));
    let mut column_sizes = filled_vector(OP, n, 0.0)?;
    for row in b.data.chunks_exact(n) {
        column_sizes.iter_mut().zip(row).for_each(|(size, x): (&mut f64, _)| *size = size.max(x.abs()));
    }
    let orders = [descending_order(OP, &sizes)?, descending_order(OP, &column_sizes)?];
    if let [Some(rows), _] = &orders {
        let old = b.copy(OP)?;
        rows.iter().enumerate().for_each(|(i, &from)| b.row_mut(i).copy_from_slice(old.row(from)));
    }
    if let [_, Some(order)] = &orders {
        let mut old = filled_vector(OP, n, 0.0)?;
        for row in b.data.chunks_exact_mut(n) {
            old.copy_from_slice(row);
            row.iter_mut().zip(order).for_each(|(x, &from)| *x = old[from]);
        }
    }
    let mut svd = if m > 2 * n {
        // R has the same singular values, and fewer rows.
        let (q, r) = qr(b, columns, 0.0)?;
        let mut u = q.transpose(OP)?;
        drop(q);
        let mut square = Matrix::zeros(OP, n, n)?;
        square.data.copy_from_slice(&r.data[..n * n]);
        drop(r);
        let inner = svd_by_bidiagonalization(square, n)?;
        // The first columns of Q are multiplied by the left vectors of R, the others stay.
        let rotated = inner.u.times(OP, &u.some_rows(OP, 0..n)?)?;
        u.data[..n * m].copy_from_slice(&rotated.data);
        Svd { u, ..inner }
    } else {
        svd_by_bidiagonalization(b, columns)?
    };
    svd.s.iter_mut().for_each(|s| *s = scaling.up(*s));
    for (order, vectors) in orders.iter().zip([&mut svd.u, &mut svd.v]) {
        if let Some(order) = order {
            undo_order(order, vectors)?;
        }
    }
    Ok(svd)
}

/// Reduces a matrix to bidiagonal form and solves that; the elements must be scaled.
fn svd_by_bidiagonalization(mut a: Matrix<f64>, columns: usize) -> Result<Svd, Error> {
    let (m, n) = (a.rows, a.columns);
    let (mut d, mut e) = (filled_vector(OP, n, 0.0)?, filled_vector(OP, n, 0.0)?);
    let mut lefts = Reflectors::new(OP, n, m, 0)?;
    let mut rights = Reflectors::new(OP, n - 1, n, 1)?;
    let mut along = filled_vector(OP, n, 0.0)?;
    let beta = |first: f64, norm: f64| if first > 0.0 { -norm } else { norm };
    for k in 0..n {
        let mut v = vector(OP, (k..m).map(|row| a.at(row, k)))?;
        d[k] = v[0];
        let is_reduced = v[1..].iter().all(|&v| v == 0.0);
        let left = if is_reduced { None } else { reflector(&mut v, beta) };
        lefts.push(left.map(|(tau, _)| (&v[..], tau)));
        // The left reflection subtracts a multiple of this row from each row.
        let along = &mut along[k + 1..];
        along.fill(0.0);
        let mut left_tau = 0.0;
        if let Some((tau, beta)) = left {
            (d[k], left_tau) = (beta, tau);
            if k + 1 < n {
                add_rows(along, &v, &a.data[k * n + k + 1..], n);
            }
        }
        if k + 1 >= n {
            continue;
        }
        let row = &mut a.row_mut(k)[k + 1..];
        add_scaled(row, along, -left_tau * v[0]);
        let mut right = vector(OP, row.iter().copied())?;
        e[k] = right[0];
        let is_reduced = right[1..].iter().all(|&v| v == 0.0);
        let found = if is_reduced { None } else { reflector(&mut right, beta) };
        rights.push(found.map(|(tau, _)| (&right[..], tau)));
        let tau = found.map_or(0.0, |(tau, beta)| {
            e[k] = beta;
            tau
        });
        v.iter_mut().for_each(|v| *v *= -left_tau);
        let rows = a.data.get_mut((k + 1) * n + k + 1..).unwrap_or_default();
        reflect_rows(rows, n, (&v[1..], along), (&right, tau));
        yield_after(m - k, n - k);
    }
    let [inner, mut v] = singular_vectors(&mut d, &e)?;
    // Rows after the first `n` are orthogonal to the columns, and stay rows of the identity.
    let mut u = Matrix::eye(OP, columns, m)?;
    for (row, inner) in u.data.chunks_exact_mut(m).zip(inner.data.chunks_exact(n)) {
        row[..n].copy_from_slice(inner);
    }
    lefts.apply_to_rows(OP, &mut u)?;
    rights.apply_to_rows(OP, &mut v)?;
    sort_descending(&mut d, &mut u, &mut v)?;
    Ok(Svd { u, s: d, v })
}

/// Restores the order that the components of vectors, which are rows, had before the matrix was
/// sorted.
fn undo_order(order: &[usize], vectors: &mut Matrix<f64>) -> Result<(), Error> {
    let mut old = filled_vector(OP, order.len(), 0.0)?;
    for row in vectors.data.chunks_exact_mut(order.len()) {
        old.copy_from_slice(row);
        order.iter().zip(&old).for_each(|(&to, &value)| row[to] = value);
    }
    Ok(())
}

/// Sorts the singular values in descending order, and the vectors with them.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn sort_descending(d: &mut [f64], u: &mut Matrix<f64>, v: &mut Matrix<f64>) -> Result<(), Error> {
    let mut order = vector(OP, 0..d.len())?;
    order.sort_unstable_by(|&a, &b| d[b].total_cmp(&d[a]).then(a.cmp(&b)));
    let values = vector(OP, order.iter().map(|&k| d[k]))?;
    d.copy_from_slice(&values);
    for matrix in [u, v] {
        let old = matrix.copy(OP)?;
        for (k, &from) in order.iter().enumerate() {
            matrix.row_mut(k).copy_from_slice(old.row(from));
        }
    }
    Ok(())
}
