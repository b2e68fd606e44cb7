//! Eigenvalues by the QR algorithm without shifts, as in `Nx.BinaryBackend.Matrix.eigh/5` of Nx
//! 0.9. It ends when the vectors change by no more than `eps`, which may be long before they are
//! accurate.

use crate::ops::linalg::matrix::Matrix;

/// The limit of factorizations, the same as in Nx.
const MAX_QR_FACTORIZATIONS: usize = 1_000;

/// The eigenvalues in the order in which they are found, and the eigenvectors as columns, of a
/// symmetric matrix with at least two rows.
pub fn eigh(a: &Matrix<f64>, eps: f64) -> (Vec<f64>, Matrix<f64>) {
    let n = a.rows;
    let (mut a, mut q) = (a.clone(), eye(n));
    for i in 0..n - 1 {
        let h = reflection(&a, i + 1, i, eps);
        a = product(&product(&h, &a), &transpose(&h));
        q = if i == 0 { h } else { product(&q, &h) };
    }
    for matrix in [&mut a, &mut q] {
        flush_small(&mut matrix.data, eps);
    }
    for _ in 0..MAX_QR_FACTORIZATIONS {
        let (step_q, r) = factor(&a, eps);
        let next_q = product(&q, &step_q);
        let done = q.data.iter().zip(&next_q.data).all(|(a, b)| (a - b).abs() <= eps);
        (a, q) = (product(&r, &step_q), next_q);
        if done {
            break;
        }
    }
    let mut values: Vec<f64> = (0..n).map(|i| a.at(i, i)).collect();
    flush_small(&mut values, eps);
    flush_small(&mut q.data, eps);
    (values, q)
}

/// `A = Q R`
fn factor(a: &Matrix<f64>, eps: f64) -> (Matrix<f64>, Matrix<f64>) {
    let n = a.rows;
    let (mut q, mut r) = (eye(n), a.clone());
    for i in 0..n - 1 {
        let h = reflection(&r, i, i, eps);
        r = product(&h, &r);
        q = if i == 0 { h } else { product(&q, &h) };
    }
    flush_small(&mut q.data, eps);
    flush_small(&mut r.data, eps);
    (q, r)
}

/// The Householder reflection that makes the elements of a column below a row zero, or the identity
/// if they are small.
fn reflection(a: &Matrix<f64>, row: usize, column: usize, eps: f64) -> Matrix<f64> {
    let n = a.rows;
    let mut h = eye(n);
    let x: Vec<f64> = (row..n).map(|i| a.at(i, column)).collect();
    let square = x.iter().fold(0.0, |sum, x| x * x + sum);
    let below = square - x[0] * x[0];
    if below < eps {
        return h;
    }
    let first = if x[0] <= 0.0 { x[0] - square.sqrt() } else { -below / (x[0] + square.sqrt()) };
    let scale = 2.0 * (first * first) / (below + first * first);
    let v = |i: usize| if i == 0 { 1.0 } else { x[i] / first };
    for i in 0..x.len() {
        for j in 0..x.len() {
            let value = h.at(row + i, row + j);
            *h.at_mut(row + i, row + j) = value - scale * v(i) * v(j);
        }
    }
    h
}

fn eye(n: usize) -> Matrix<f64> {
    let data = (0..n * n).map(|i| f64::from(u8::from(i % (n + 1) == 0))).collect();
    Matrix { rows: n, columns: n, data }
}

fn transpose(a: &Matrix<f64>) -> Matrix<f64> {
    let n = a.rows;
    Matrix { rows: n, columns: n, data: (0..n * n).map(|i| a.at(i % n, i / n)).collect() }
}

fn product(a: &Matrix<f64>, b: &Matrix<f64>) -> Matrix<f64> {
    let n = a.rows;
    let at = |i: usize, j: usize| (0..n).fold(0.0, |sum, k| sum + a.at(i, k) * b.at(k, j));
    Matrix { rows: n, columns: n, data: (0..n * n).map(|i| at(i / n, i % n)).collect() }
}

fn flush_small(values: &mut [f64], eps: f64) {
    values.iter_mut().filter(|value| value.abs() < eps).for_each(|value| *value *= 0.0);
}
