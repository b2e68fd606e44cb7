//! Singular values by a polar decomposition `A = U H`, as Nx finds those of full
//! decompositions, and those of all up to 0.9: `Nx.LinAlg.SVD`, after JAX's `svd` and
//! Nakatsukasa and Higham, Stable and efficient spectral divide and conquer
//! algorithms for the symmetric eigenvalue decomposition and the SVD, SIAM Journal on
//! Scientific Computing 35 (2013). What Nx does for matrices of lower rank is left
//! out: they take another way.

use super::householder;
use super::{EPS, Steps, eigenvectors, single, times};
use crate::Error;
use crate::ops::linalg::cholesky::cholesky;
use crate::ops::linalg::factors::Svd;
use crate::ops::linalg::matrix::Matrix;
use crate::ops::linalg::scalar::Precision;
use crate::ops::linalg::triangular::{Diagonal, backward, forward};

const OP: &str = "svd";

/// `Nx.LinAlg.qr/2`'s, by default.
const QR_EPS: f64 = 1e-10;

/// After so many steps Nx gives up; six are the rule.
const STEPS: usize = 100;

const UNIT: f32 = f32::EPSILON;

/// `A = U S Vᵀ` of a matrix at least as high as wide, of two columns or more;
/// `columns` is how many left vectors are wanted.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn svd(a: &Matrix<f64>, columns: usize, steps: Steps) -> Result<Svd, Error> {
    let (m, n) = (a.rows, a.columns);
    if m == n {
        return square(a, steps);
    }
    let (q, mut r) = householder::qr(a, columns, QR_EPS, Precision::Single, steps)?;
    r.data.truncate(n * n);
    r.rows = n;
    let inner = square(&r, steps)?;
    // The first columns of Q are turned, the others stay.
    let mut q = q.transpose(OP)?;
    let turned = Matrix { rows: n, columns: m, data: q.data[..n * m].to_vec() }.transpose(OP)?;
    let turned = times(&turned, &inner.u.transpose(OP)?)?.transpose(OP)?;
    q.data[..n * m].copy_from_slice(&turned.data);
    Ok(Svd { u: q, ..inner })
}

fn square(a: &Matrix<f64>, steps: Steps) -> Result<Svd, Error> {
    let n = a.rows;
    let (u, h) = polar(a, steps)?;
    let (mut s, vectors) = eigenvectors(&h, EPS, steps);
    let mut vectors = vectors.transpose(OP)?;
    for (i, s) in s.iter_mut().enumerate() {
        let sign = if *s < 0.0 { -1.0 } else { 1.0 };
        *s *= sign;
        vectors.row_mut(i).iter_mut().for_each(|v| *v *= sign);
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| s[b].total_cmp(&s[a]));
    let mut v = Matrix::zeros(OP, n, n)?;
    for (row, &from) in order.iter().enumerate() {
        v.row_mut(row).copy_from_slice(vectors.row(from));
    }
    let u = times(&u, &v.transpose(OP)?)?.transpose(OP)?;
    Ok(Svd { u, s: order.iter().map(|&i| s[i]).collect(), v })
}

/// The orthogonal and the symmetric factor of a square matrix.
fn polar(x: &Matrix<f64>, steps: Steps) -> Result<(Matrix<f64>, Matrix<f64>), Error> {
    let n = x.rows;
    let sums = |at: &dyn Fn(usize, usize) -> f64| {
        let sum = |i: usize| single((0..n).fold(0.0, |sum, j| sum + at(i, j).abs()));
        (0..n).map(sum).fold(0.0, f64::max) as f32
    };
    let alpha = f64::from(sums(&|i, j| x.at(j, i)).sqrt() * sums(&|i, j| x.at(i, j)).sqrt());
    let mut u = x.copy(OP)?;
    u.map(|value| single(value / alpha));
    let mut least = UNIT;
    for _ in 1..STEPS {
        let before = u.copy(OP)?;
        let square = if least * least < UNIT { UNIT } else { least * least };
        let d = root(4.0 * (1.0 / square - 1.0) / square);
        let sqd = (1.0 + d).sqrt();
        let a = sqd + (8.0 - 4.0 * d + 8.0 * (2.0 - square) / (square * sqd)).sqrt() / 2.0;
        let b = (a - 1.0) * (a - 1.0) / 4.0;
        let c = a + b - 1.0;
        least = least * (a + b * square) / (1.0 + c * square);
        let weights = (f64::from(b / c), c, a - b / c);
        u = if c > 100.0 { by_qr(&u, weights, steps)? } else { by_cholesky(&u, weights)? };
        let mut change = u.copy(OP)?;
        change.data.iter_mut().zip(&before.data).for_each(|(u, b)| *u = single(*u - b));
        if (1.0 - least).abs() <= 5.0 * UNIT && frobenius(&change) <= root(5.0 * UNIT) {
            break;
        }
    }
    let uh = u.transpose(OP)?;
    let mut polished = times(&u, &times(&uh, &u)?)?;
    for (p, u) in polished.data.iter_mut().zip(&u.data) {
        *p = single(single(1.5 * u) - single(0.5 * *p));
    }
    let mut h = times(&polished.transpose(OP)?, x)?;
    for i in 0..n {
        for j in 0..=i {
            let mean = single(h.at(i, j) + h.at(j, i)) / 2.0;
            (*h.at_mut(i, j), *h.at_mut(j, i)) = (mean, mean);
        }
    }
    Ok((polished, h))
}

/// The weights of a step: `b / c`, `c` and `a - b / c`.
type Weights = (f64, f32, f32);

/// `b / c U + (a - b / c) / sqrt(c) Q₁ Q₂ᵀ`, where the `Q` are the halves of that of
/// `sqrt(c) U` above the identity.
fn by_qr(u: &Matrix<f64>, (e, c, rest): Weights, steps: Steps) -> Result<Matrix<f64>, Error> {
    let n = u.rows;
    let scale = f64::from(c.sqrt());
    let mut stacked = Matrix::zeros(OP, 2 * n, n)?;
    for (to, &u) in stacked.data.iter_mut().zip(&u.data) {
        *to = single(scale * u);
    }
    for i in 0..n {
        *stacked.at_mut(n + i, i) = 1.0;
    }
    let (q, _) = householder::qr(&stacked, n, QR_EPS, Precision::Single, steps)?;
    let half = |first: usize| Matrix { rows: n, columns: n, data: q.data[first..][..n * n].to_vec() };
    weigh(u, e, &times(&half(0), &half(n * n).transpose(OP)?)?, f64::from(rest / c.sqrt()))
}

/// `b / c U + (a - b / c) U (c UᵀU + I)⁻¹`
fn by_cholesky(u: &Matrix<f64>, (e, c, rest): Weights) -> Result<Matrix<f64>, Error> {
    let n = u.rows;
    let uh = u.transpose(OP)?;
    let mut x = times(&uh, u)?;
    x.map(|value| single(f64::from(c) * value));
    for i in 0..n {
        *x.at_mut(i, i) = single(x.at(i, i) + 1.0);
    }
    let y = cholesky(x, Precision::Single);
    let mut z = uh;
    forward(&y, &mut z, Diagonal::Own)?;
    z.map(single);
    backward(y.transpose(OP)?, &mut z)?;
    z.map(single);
    weigh(u, e, &z.transpose(OP)?, f64::from(rest))
}

/// `e U + f Z`
fn weigh(u: &Matrix<f64>, e: f64, z: &Matrix<f64>, f: f64) -> Result<Matrix<f64>, Error> {
    let mut sum = u.copy(OP)?;
    for (u, z) in sum.data.iter_mut().zip(&z.data) {
        *u = single(single(e * *u) + single(f * z));
    }
    Ok(sum)
}

/// The cube root as Nx has it.
fn root(value: f32) -> f32 {
    f64::from(value).powf(1.0 / 3.0) as f32
}

/// `Nx.LinAlg.norm/2`
fn frobenius(a: &Matrix<f64>) -> f32 {
    let largest = a.data.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let largest = if largest > 0.0 { largest } else { 1.0 };
    let squares = a.data.iter().map(|v| single(v.abs() / largest)).map(|v| single(v * v));
    (single(single(squares.fold(0.0, |sum, v| sum + v)).sqrt()) * largest) as f32
}
