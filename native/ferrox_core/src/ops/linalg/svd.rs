//! Singular values and vectors of real matrices: reflections to bidiagonal
//! form, and for what is small implicit QR steps (Golub and Kahan).

use super::matrix::{
    Matrix, Scaling, add_rows, add_scaled, descending, largest, pause_after, reflect_rows, reflector,
};
use crate::Error;
use crate::ops::linalg::divide_and_conquer::singular_vectors;
use crate::ops::linalg::factors::Svd;
use crate::ops::linalg::qr::qr;
use crate::ops::linalg::reflectors::Reflectors;

const OP: &str = "svd";

/// Decomposes a finite matrix that is at least as high as wide; `columns` is
/// how many left vectors are wanted, all or as many as singular values.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory, `Error::Argument` if the steps don't
/// converge.
pub fn svd(a: &Matrix<f64>, columns: usize) -> Result<Svd, Error> {
    let (m, n) = (a.rows, a.columns);
    let sizes: Vec<f64> = (0..m).map(|i| largest(a.row(i))).collect();
    let largest_of_all = largest(&sizes);
    if largest_of_all == 0.0 || n == 0 {
        return Ok(Svd { u: Matrix::eye(OP, columns, m)?, s: vec![0.0; n], v: Matrix::eye(OP, n, n)? });
    }
    let scaling = Scaling::high(largest_of_all);
    let mut b = a.copy(OP)?;
    b.map(|value| scaling.down(value));
    let mut of_columns = vec![0.0; n];
    for row in b.data.chunks_exact(n) {
        of_columns.iter_mut().zip(row).for_each(|(most, x): (&mut f64, _)| *most = most.max(x.abs()));
    }
    let orders = [descending(&sizes), descending(&of_columns)];
    if let [Some(rows), _] = &orders {
        let old = b.copy(OP)?;
        rows.iter().enumerate().for_each(|(i, &from)| b.row_mut(i).copy_from_slice(old.row(from)));
    }
    if let [_, Some(order)] = &orders {
        let mut old = vec![0.0; n];
        for row in b.data.chunks_exact_mut(n) {
            old.copy_from_slice(row);
            row.iter_mut().zip(order).for_each(|(x, &from)| *x = old[from]);
        }
    }
    let mut svd = if m > 2 * n {
        // R has the same singular values, and fewer rows.
        let (q, r) = qr(&b, columns, 0.0)?;
        let mut square = Matrix::zeros(OP, n, n)?;
        square.data.copy_from_slice(&r.data[..n * n]);
        let inner = bidiagonal(square, n)?;
        // The first columns of Q are turned, the others stay.
        let q = q.transpose(OP)?;
        let mut u = inner.u.times(OP, &Matrix { rows: n, columns: m, data: q.data[..n * m].to_vec() })?;
        u.data.extend_from_slice(&q.data[n * m..]);
        u.rows = columns;
        Svd { u, ..inner }
    } else {
        bidiagonal(b, columns)?
    };
    svd.s.iter_mut().for_each(|s| *s = scaling.up(*s));
    for (order, vectors) in orders.iter().zip([&mut svd.u, &mut svd.v]) {
        if let Some(order) = order {
            put_back(order, vectors);
        }
    }
    Ok(svd)
}

/// Both phases, for a matrix of moderate elements.
fn bidiagonal(mut a: Matrix<f64>, columns: usize) -> Result<Svd, Error> {
    let (m, n) = (a.rows, a.columns);
    let (mut d, mut e) = (vec![0.0; n], vec![0.0; n]);
    let mut lefts = Reflectors::new(OP, n, m, 0)?;
    let mut rights = Reflectors::new(OP, n - 1, n, 1)?;
    let mut along = vec![0.0; n];
    let beta = |first: f64, norm: f64| if first > 0.0 { -norm } else { norm };
    for k in 0..n {
        let mut v: Vec<f64> = (k..m).map(|row| a.at(row, k)).collect();
        d[k] = v[0];
        let nothing = v[1..].iter().all(|&v| v == 0.0);
        let left = if nothing { None } else { reflector(&mut v, beta) };
        lefts.push(left.map(|(tau, _)| (&v[..], tau)));
        // What the left reflection takes from each row: a multiple of this.
        let along = &mut along[k + 1..];
        along.fill(0.0);
        let mut by = 0.0;
        if let Some((tau, beta)) = left {
            (d[k], by) = (beta, tau);
            if k + 1 < n {
                add_rows(along, &v, &a.data[k * n + k + 1..], n);
            }
        }
        if k + 1 >= n {
            continue;
        }
        let row = &mut a.row_mut(k)[k + 1..];
        add_scaled(row, along, -by * v[0]);
        let mut right = row.to_vec();
        e[k] = right[0];
        let nothing = right[1..].iter().all(|&v| v == 0.0);
        let found = if nothing { None } else { reflector(&mut right, beta) };
        rights.push(found.map(|(tau, _)| (&right[..], tau)));
        let tau = found.map_or(0.0, |(tau, beta)| {
            e[k] = beta;
            tau
        });
        v.iter_mut().for_each(|v| *v *= -by);
        let rows = a.data.get_mut((k + 1) * n + k + 1..).unwrap_or_default();
        reflect_rows(rows, n, (&v[1..], along), (&right, tau));
        pause_after(m - k, n - k);
    }
    let [inner, mut v] = singular_vectors(&mut d, &e)?;
    // What is orthogonal to the columns stays so.
    let mut u = Matrix::eye(OP, columns, m)?;
    for (row, inner) in u.data.chunks_exact_mut(m).zip(inner.data.chunks_exact(n)) {
        row[..n].copy_from_slice(inner);
    }
    lefts.apply_to_rows(OP, &mut u)?;
    rights.apply_to_rows(OP, &mut v)?;
    sort(&mut d, &mut u, &mut v)?;
    Ok(Svd { u, s: d, v })
}

/// Puts the components of vectors, which are rows, where they were before they were put in order.
fn put_back(order: &[usize], vectors: &mut Matrix<f64>) {
    let mut old = vec![0.0; order.len()];
    for row in vectors.data.chunks_exact_mut(order.len()) {
        old.copy_from_slice(row);
        order.iter().zip(&old).for_each(|(&to, &value)| row[to] = value);
    }
}

/// Makes the values descending.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn sort(d: &mut [f64], u: &mut Matrix<f64>, v: &mut Matrix<f64>) -> Result<(), Error> {
    let mut order: Vec<usize> = (0..d.len()).collect();
    order.sort_by(|&a, &b| d[b].total_cmp(&d[a]));
    let values: Vec<f64> = order.iter().map(|&k| d[k]).collect();
    d.copy_from_slice(&values);
    for matrix in [u, v] {
        let old = matrix.copy(OP)?;
        for (k, &from) in order.iter().enumerate() {
            matrix.row_mut(k).copy_from_slice(old.row(from));
        }
    }
    Ok(())
}
