//! Singular values from the polar decomposition `A = U H` and the eigenvalues of `H`, as in the
//! full decompositions of `Nx.LinAlg.SVD`, and in all decompositions before Nx 0.12.1. The polar
//! decomposition comes from the QDWH iteration (QR-based dynamically weighted Halley), as in JAX's
//! `svd` (Nakatsukasa and Higham, "Stable and Efficient Spectral Divide and Conquer Algorithms for
//! the Symmetric Eigenvalue Decomposition and the SVD", SIAM Journal on Scientific Computing 35,
//! 2013).
//!
//! Nx's special cases for matrices of lower rank are left out: matrices of lower rank are computed
//! by another algorithm.

use super::householder;
use super::{NX_EIGH_EPS, NxAlgorithm, eigenvectors, round_to_f32, times};
use crate::Error;
use crate::ops::linalg::cholesky::cholesky;
use crate::ops::linalg::factors::Svd;
use crate::ops::linalg::matrix::Matrix;
use crate::ops::linalg::scalar::Precision;
use crate::ops::linalg::triangular::{Diagonal, back_substitution, forward_substitution};
use crate::ops::math::f64_loops;

const OP: &str = "svd";

/// The default `:eps` of `Nx.LinAlg.qr/2`.
const NX_QR_EPS: f64 = 1e-10;

/// The limit of steps, the same as in Nx. Six are usual.
const MAX_QDWH_STEPS: usize = 100;

/// The relative spacing of f32 numbers, which Nx's code takes for the rounding unit.
const F32_UNIT: f32 = f32::EPSILON;

/// `A = U S Vᵀ` of a matrix with at least two columns and at least as many rows; `columns` is the
/// number of left vectors.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn svd(a: &Matrix<f64>, columns: usize, algorithm: NxAlgorithm) -> Result<Svd, Error> {
    let (m, n) = (a.rows, a.columns);
    if m == n {
        return square(a, algorithm);
    }
    let (q, mut r) = householder::qr(a, columns, NX_QR_EPS, Precision::Single, algorithm)?;
    r.data.truncate(n * n);
    r.rows = n;
    let inner = square(&r, algorithm)?;
    // The first columns of Q are multiplied by the left vectors of R, the others stay.
    let mut q = q.transpose(OP)?;
    let rotated = Matrix { rows: n, columns: m, data: q.data[..n * m].to_vec() }.transpose(OP)?;
    let rotated = times(&rotated, &inner.u.transpose(OP)?)?.transpose(OP)?;
    q.data[..n * m].copy_from_slice(&rotated.data);
    Ok(Svd { u: q, ..inner })
}

fn square(a: &Matrix<f64>, algorithm: NxAlgorithm) -> Result<Svd, Error> {
    let n = a.rows;
    let (u, h) = polar_decomposition(a, algorithm)?;
    let (mut s, vectors) = eigenvectors(&h, NX_EIGH_EPS, algorithm);
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

/// The orthogonal factor `U` and the symmetric factor `H` of a square matrix.
fn polar_decomposition(x: &Matrix<f64>, algorithm: NxAlgorithm) -> Result<(Matrix<f64>, Matrix<f64>), Error> {
    let n = x.rows;
    let max_abs_sum = |at: &dyn Fn(usize, usize) -> f64| {
        let sum = |i: usize| round_to_f32((0..n).fold(0.0, |sum, j| sum + at(i, j).abs()));
        (0..n).map(sum).fold(0.0, f64::max) as f32
    };
    let alpha = f64::from(max_abs_sum(&|i, j| x.at(j, i)).sqrt() * max_abs_sum(&|i, j| x.at(i, j)).sqrt());
    let mut u = x.copy(OP)?;
    u.map(|value| round_to_f32(value / alpha));
    let mut least = F32_UNIT;
    for _ in 1..MAX_QDWH_STEPS {
        let before = u.copy(OP)?;
        let square = if least * least < F32_UNIT { F32_UNIT } else { least * least };
        let d = cube_root(4.0 * (1.0 / square - 1.0) / square);
        let sqd = (1.0 + d).sqrt();
        let a = sqd + (8.0 - 4.0 * d + 8.0 * (2.0 - square) / (square * sqd)).sqrt() / 2.0;
        let b = (a - 1.0) * (a - 1.0) / 4.0;
        let c = a + b - 1.0;
        least = least * (a + b * square) / (1.0 + c * square);
        let weights = (f64::from(b / c), c, a - b / c);
        u = if c > 100.0 { qdwh_qr_step(&u, weights, algorithm)? } else { qdwh_cholesky_step(&u, weights)? };
        let mut change = u.copy(OP)?;
        change.data.iter_mut().zip(&before.data).for_each(|(u, b)| *u = round_to_f32(*u - b));
        if (1.0 - least).abs() <= 5.0 * F32_UNIT && frobenius(&change) <= cube_root(5.0 * F32_UNIT) {
            break;
        }
    }
    let uh = u.transpose(OP)?;
    let mut polished = times(&u, &times(&uh, &u)?)?;
    for (p, u) in polished.data.iter_mut().zip(&u.data) {
        *p = round_to_f32(round_to_f32(1.5 * u) - round_to_f32(0.5 * *p));
    }
    let mut h = times(&polished.transpose(OP)?, x)?;
    for i in 0..n {
        for j in 0..=i {
            let mean = round_to_f32(h.at(i, j) + h.at(j, i)) / 2.0;
            (*h.at_mut(i, j), *h.at_mut(j, i)) = (mean, mean);
        }
    }
    Ok((polished, h))
}

/// The weights of a step: `b / c`, `c` and `a - b / c`.
type QdwhWeights = (f64, f32, f32);

/// `b / c U + (a - b / c) / sqrt(c) Q₁ Q₂ᵀ`, where `Q₁` above `Q₂` is the `Q` of `sqrt(c) U` above
/// the identity.
fn qdwh_qr_step(
    u: &Matrix<f64>,
    (e, c, rest): QdwhWeights,
    algorithm: NxAlgorithm,
) -> Result<Matrix<f64>, Error> {
    let n = u.rows;
    let scale = f64::from(c.sqrt());
    let mut stacked = Matrix::zeros(OP, 2 * n, n)?;
    for (to, &u) in stacked.data.iter_mut().zip(&u.data) {
        *to = round_to_f32(scale * u);
    }
    for i in 0..n {
        *stacked.at_mut(n + i, i) = 1.0;
    }
    let (q, _) = householder::qr(&stacked, n, NX_QR_EPS, Precision::Single, algorithm)?;
    let half = |first: usize| Matrix { rows: n, columns: n, data: q.data[first..][..n * n].to_vec() };
    weighted_sum(u, e, &times(&half(0), &half(n * n).transpose(OP)?)?, f64::from(rest / c.sqrt()))
}

/// `b / c U + (a - b / c) U (c UᵀU + I)⁻¹`
fn qdwh_cholesky_step(u: &Matrix<f64>, (e, c, rest): QdwhWeights) -> Result<Matrix<f64>, Error> {
    let n = u.rows;
    let uh = u.transpose(OP)?;
    let mut x = times(&uh, u)?;
    x.map(|value| round_to_f32(f64::from(c) * value));
    for i in 0..n {
        *x.at_mut(i, i) = round_to_f32(x.at(i, i) + 1.0);
    }
    let y = cholesky(x, Precision::Single)?;
    let mut z = uh;
    forward_substitution(&y, &mut z, Diagonal::Stored)?;
    z.map(round_to_f32);
    back_substitution(y.transpose(OP)?, &mut z)?;
    z.map(round_to_f32);
    weighted_sum(u, e, &z.transpose(OP)?, f64::from(rest))
}

/// `e U + f Z`
fn weighted_sum(u: &Matrix<f64>, e: f64, z: &Matrix<f64>, f: f64) -> Result<Matrix<f64>, Error> {
    let mut sum = u.copy(OP)?;
    for (u, z) in sum.data.iter_mut().zip(&z.data) {
        *u = round_to_f32(round_to_f32(e * *u) + round_to_f32(f * z));
    }
    Ok(sum)
}

/// The cube root as Nx computes it.
fn cube_root(value: f32) -> f32 {
    f64_loops::element::<f64_loops::Pow>(f64::from(value), 1.0 / 3.0) as f32
}

/// `Nx.LinAlg.norm/2`
fn frobenius(a: &Matrix<f64>) -> f32 {
    let largest = a.data.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let largest = if largest > 0.0 { largest } else { 1.0 };
    let squares = a.data.iter().map(|v| round_to_f32(v.abs() / largest)).map(|v| round_to_f32(v * v));
    (round_to_f32(round_to_f32(squares.fold(0.0, |sum, v| sum + v)).sqrt()) * largest) as f32
}
