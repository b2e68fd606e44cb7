//! Singular values and vectors of real matrices: reflections to bidiagonal
//! form, and for what is small implicit QR steps (Golub and Kahan).

use super::matrix::{
    Matrix, Scaling, TINY, add_rows, add_scaled, descending, largest, pause_after, reflect_rows, reflector,
    rotation,
};
use crate::Error;
use crate::ops::linalg::divide_and_conquer::singular_vectors;
use crate::ops::linalg::qr::qr;
use crate::ops::linalg::reflectors::Reflectors;
use crate::ops::linalg::rotations::Rotated;

const OP: &str = "svd";

/// Steps for each singular value; a few are the rule.
const STEPS: usize = 300;

/// After so many of them, what is beside the diagonal is compared with the whole
/// matrix and no longer with its neighbours only.
const PATIENT: usize = 60;

/// After so many of them they go on from the other end.
const TURN: usize = 100;

/// The least singular value over the greatest, times how many there are, up to which shifts are done without.
const FAR_APART: f64 = 0.03;

/// The share of a singular value that may be neglected.
const TOLERANCE: f64 = 16.0 * f64::EPSILON;

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

/// Diagonalizes what has magnitudes up to about one; `e[k]` is beside `d[k]`, its last element is
/// zero. A zero at the end of `d` stays there.
///
/// All singular values are as accurate as the elements (Demmel and Kahan, "Accurate Singular Values of
/// Bidiagonal Matrices", 1990; LAPACK's `dbdsqr`).
///
/// # Errors
///
/// `Error::Argument` if the steps don't converge, `Error::TooLarge` if there is no memory.
pub fn steps(d: &mut [f64], e: &mut [f64], u: &mut Rotated<f64>, v: &mut Rotated<f64>) -> Result<(), Error> {
    let norm = largest(d).max(largest(e));
    let mut count = 0;
    let mut end = d.len();
    // Which part the steps are in, and whether they go from its first row to its last.
    let (mut part, mut forward) = (0..0, true);
    while end > 1 {
        let last = end - 1;
        let tiny = if count > PATIENT { 4.0 * f64::EPSILON * norm } else { TINY };
        // From `start` on nothing beside the diagonal is zero.
        let start = (0..last).rev().find(|&k| e[k].abs() <= tiny).map_or(0, |k| k + 1);
        if start > 0 {
            e[start - 1] = 0.0;
        }
        if start == last {
            end -= 1;
            count = 0;
            continue;
        }
        if let Some(k) = (start..end).rev().find(|&k| d[k].abs() <= TINY) {
            d[k] = 0.0;
            if k == last {
                // The last column is turned away.
                let mut f = e[last - 1];
                e[last - 1] = 0.0;
                for j in (start..last).rev() {
                    let (c, s, r) = rotation(d[j], f);
                    d[j] = r;
                    if j > start {
                        f = -s * e[j - 1];
                        e[j - 1] *= c;
                    }
                    v.rotate(j, last, c, s)?;
                }
            } else {
                // The row of the zero is turned away.
                let mut f = e[k];
                e[k] = 0.0;
                for j in k + 1..end {
                    let (c, s, r) = rotation(d[j], f);
                    d[j] = r;
                    f = -s * e[j];
                    e[j] *= c;
                    u.rotate(j, k, c, s)?;
                }
            }
            continue;
        }
        count += 1;
        if count > STEPS {
            return Err(Error::Argument { op: OP, problem: "the steps do not converge".to_string() });
        }
        if part != (start..end) {
            if start >= part.end || end <= part.start {
                // From the large end to the small one.
                forward = d[start].abs() >= d[last].abs();
            }
            (part, count) = (start..end, 0);
        } else if count % TURN == 0 {
            forward = !forward;
        }
        let (d, e) = (&mut d[start..end], &mut e[start..last]);
        if forward {
            step(d, e, |i| start + i, [&mut *u, &mut *v])?;
        } else {
            // The transpose with rows and columns in reverse order is of the same form.
            d.reverse();
            e.reverse();
            step(d, e, |i| last - i, [&mut *v, &mut *u])?;
            d.reverse();
            e.reverse();
        }
    }
    Ok(())
}

/// A step for a part without zeros, or the last of it if something beside the diagonal is negligible;
/// `place` says which columns of the vectors are turned.
fn step(
    d: &mut [f64],
    e: &mut [f64],
    place: impl Fn(usize) -> usize,
    [u, v]: [&mut Rotated<f64>; 2],
) -> Result<(), Error> {
    let last = d.len() - 1;
    if e[last - 1].abs() <= TOLERANCE * d[last].abs() {
        e[last - 1] = 0.0;
        return Ok(());
    }
    // What is no greater than the least singular value of the rows up to there.
    let mut bound = d[0].abs();
    let mut least = bound;
    for k in 0..last {
        if e[k].abs() <= TOLERANCE * bound {
            e[k] = 0.0;
            return Ok(());
        }
        bound = d[k + 1].abs() * (bound / (bound + e[k].abs()));
        least = least.min(bound);
    }
    let most = largest(d).max(largest(e));
    // A shift would cost small values their digits where it is nothing beside the large ones.
    let mut shift = 0.0;
    if d.len() as f64 * (least / most) > FAR_APART {
        shift = least_of_two(d[last - 1].abs(), e[last - 1].abs(), d[last].abs());
        if (shift / d[0]).powi(2) < f64::EPSILON / 2.0 {
            shift = 0.0;
        }
    }
    if shift == 0.0 {
        let (mut c, mut old_c, mut old_s) = (1.0, 1.0, 0.0);
        for i in 0..last {
            let (new_c, s, r) = rotation(d[i] * c, e[i]);
            if i > 0 {
                e[i - 1] = old_s * r;
            }
            v.rotate(place(i), place(i + 1), new_c, s)?;
            (old_c, old_s, d[i]) = rotation(old_c * r, d[i + 1] * s);
            u.rotate(place(i), place(i + 1), old_c, old_s)?;
            c = new_c;
        }
        let rest = d[last] * c;
        d[last] = rest * old_c;
        e[last - 1] = rest * old_s;
        return Ok(());
    }
    let mut f = (d[0].abs() - shift) * (1f64.copysign(d[0]) + shift / d[0]);
    let mut g = e[0];
    for i in 0..last {
        let (c, s, r) = rotation(f, g);
        if i > 0 {
            e[i - 1] = r;
        }
        f = c * d[i] + s * e[i];
        e[i] = c * e[i] - s * d[i];
        g = s * d[i + 1];
        d[i + 1] *= c;
        v.rotate(place(i), place(i + 1), c, s)?;
        let (c, s, r) = rotation(f, g);
        d[i] = r;
        f = c * e[i] + s * d[i + 1];
        d[i + 1] = c * d[i + 1] - s * e[i];
        if i + 1 < last {
            g = s * e[i + 1];
            e[i + 1] *= c;
        }
        u.rotate(place(i), place(i + 1), c, s)?;
    }
    e[last - 1] = f;
    Ok(())
}

/// The least singular value of `[[f, g], [0, h]]`, none of which is negative (LAPACK's `dlas2`).
fn least_of_two(f: f64, g: f64, h: f64) -> f64 {
    let (less, greater) = (f.min(h), f.max(h));
    if less == 0.0 {
        return 0.0;
    }
    let (sum, difference) = (1.0 + less / greater, (greater - less) / greater);
    if g < greater {
        let square = (g / greater).powi(2);
        return less * (2.0 / ((sum * sum + square).sqrt() + (difference * difference + square).sqrt()));
    }
    let ratio = greater / g;
    if ratio == 0.0 {
        return less * greater / g;
    }
    let (sum, difference) = (sum * ratio, difference * ratio);
    2.0 * (less * (1.0 / ((1.0 + sum * sum).sqrt() + (1.0 + difference * difference).sqrt()))) * ratio
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
