//! Singular values from the eigenvalues of the Gram matrix `AᵀA`, as in the thin decompositions of
//! `Nx.LinAlg.SVD` since Nx 0.12.1. Small ones lose half of their digits.

use super::{NX_EIGH_EPS, jacobi, round_to_f32, times};
use crate::Error;
use crate::ops::linalg::factors::Svd;
use crate::ops::linalg::matrix::Matrix;

/// `A = U S Vᵀ` of a matrix with at least two columns and at least as many rows.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn svd(a: &Matrix<f64>) -> Result<Svd, Error> {
    const OP: &str = "svd";
    let n = a.columns;
    let (squares, vectors) = jacobi::eigh(&times(&a.transpose(OP)?, a)?, NX_EIGH_EPS);
    let roots: Vec<f64> = squares.iter().map(|&square| round_to_f32(square.max(0.0).sqrt())).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| roots[b].total_cmp(&roots[a]));
    let s: Vec<f64> = order.iter().map(|&i| roots[i]).collect();
    let mut v = Matrix::zeros(OP, n, n)?;
    for (row, &from) in order.iter().enumerate() {
        for j in 0..n {
            *v.at_mut(row, j) = vectors.at(j, from);
        }
    }
    let zero = round_to_f32(round_to_f32(n as f64 * f64::from(f32::EPSILON)) * s[0]);
    let mut u = times(a, &v.transpose(OP)?)?.transpose(OP)?;
    for (i, &s) in s.iter().enumerate() {
        let inverse = if s > zero { round_to_f32(1.0 / s) } else { 0.0 };
        u.row_mut(i).iter_mut().for_each(|u| *u = round_to_f32(*u * inverse));
    }
    Ok(Svd { u, s, v })
}
