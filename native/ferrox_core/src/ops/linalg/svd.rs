//! Singular values and vectors of real matrices: reflections to bidiagonal
//! form, and for what is small implicit QR steps (Golub and Kahan).

use super::conquer::singular_vectors;
use super::matrix::{
    Matrix, Scaling, TINY, add_rows, add_scaled, hypotenuse, largest, pause_after, reflect_rows, reflector,
};
use super::qr::qr;
use super::reflectors::Reflectors;
use super::rotations::Rotated;
use crate::Error;

const OP: &str = "svd";

/// Steps for each singular value; a few are the rule.
const STEPS: usize = 200;

/// After so many of them, what is beside the diagonal is compared with the whole
/// matrix and no longer with its neighbours only.
const PATIENT: usize = 12;

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
    let largest = largest(&a.data);
    if largest == 0.0 || n == 0 {
        return Ok(Svd { u: Matrix::eye(OP, columns, m)?, s: vec![0.0; n], v: Matrix::eye(OP, n, n)? });
    }
    let scaling = Scaling::of(largest);
    let mut b = a.copy(OP)?;
    b.map(|value| scaling.down(value));
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

/// A rotation that maps `(f, g)` to `(r, 0)`: `(c, s, r)`.
fn rotation(f: f64, g: f64) -> (f64, f64, f64) {
    let r = hypotenuse(f, g);
    if r == 0.0 { (1.0, 0.0, 0.0) } else { (f / r, g / r, r) }
}

/// Diagonalizes what has magnitudes up to about one; `e[k]` is beside `d[k]`, its last element is
/// zero.
///
/// # Errors
///
/// `Error::Argument` if the steps don't converge, `Error::TooLarge` if there is no memory.
pub fn steps(d: &mut [f64], e: &mut [f64], u: &mut Rotated<f64>, v: &mut Rotated<f64>) -> Result<(), Error> {
    let norm = largest(d).max(largest(e));
    let mut count = 0;
    let mut end = d.len();
    while end > 1 {
        let last = end - 1;
        // From `start` on nothing beside the diagonal is negligible.
        let tiny = TINY + if count > PATIENT { f64::EPSILON * norm } else { 0.0 };
        let negligible = |k: usize, d: &[f64], e: &[f64]| {
            e[k].abs() <= tiny + f64::EPSILON * (d[k].abs() + d[k + 1].abs())
        };
        let start = (0..last).rev().find(|&k| negligible(k, d, e)).map_or(0, |k| k + 1);
        if start > 0 {
            e[start - 1] = 0.0;
        }
        if start == last {
            end -= 1;
            count = 0;
            continue;
        }
        let beside = |k: usize, e: &[f64]| {
            let before = if k > start { e[k - 1].abs() } else { 0.0 };
            before + if k < last { e[k].abs() } else { 0.0 }
        };
        let zero = (start..end).rev().find(|&k| d[k].abs() <= TINY + f64::EPSILON * beside(k, e));
        if let Some(k) = zero {
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
        // The shift comes from the last two rows and columns.
        let scale = [d[last], d[last - 1], e[last - 1], d[start], e[start]];
        let scale = scale.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let (sp, spm1, epm1) = (d[last] / scale, d[last - 1] / scale, e[last - 1] / scale);
        let (sk, ek) = (d[start] / scale, e[start] / scale);
        let b = ((spm1 + sp) * (spm1 - sp) + epm1 * epm1) / 2.0;
        let c = (sp * epm1) * (sp * epm1);
        let mut shift = 0.0;
        if b != 0.0 || c != 0.0 {
            shift = c / (b + (b * b + c).sqrt().copysign(b));
        }
        let mut f = (sk + sp) * (sk - sp) + shift;
        let mut g = sk * ek;
        for j in start..last {
            let (c, s, r) = rotation(f, g);
            if j > start {
                e[j - 1] = r;
            }
            f = c * d[j] + s * e[j];
            e[j] = c * e[j] - s * d[j];
            g = s * d[j + 1];
            d[j + 1] *= c;
            v.rotate(j, j + 1, c, s)?;
            let (c, s, r) = rotation(f, g);
            d[j] = r;
            f = c * e[j] + s * d[j + 1];
            d[j + 1] = c * d[j + 1] - s * e[j];
            g = s * e[j + 1];
            e[j + 1] *= c;
            u.rotate(j, j + 1, c, s)?;
        }
        e[last - 1] = f;
    }
    Ok(())
}

/// Makes the values descending.
fn sort(d: &mut [f64], u: &mut Matrix<f64>, v: &mut Matrix<f64>) -> Result<(), Error> {
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
