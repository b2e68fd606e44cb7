//! Eigenvalues by cyclic Jacobi rotations of disjoint pairs of rows, as in `Nx.LinAlg.BlockEigh`
//! since Nx 0.10, after XLA's `eigh_expander` (Brent and Luk, "The Solution of Singular-Value and
//! Symmetric Eigenvalue Problems on Multiprocessor Arrays", SIAM Journal on Scientific and
//! Statistical Computing 6, 1985).
//!
//! The rows are in two halves; a rotation pairs a row of the first half with its counterpart in the
//! second. After each round the rows move on by one place, like the teams of a round-robin
//! tournament, so that each row is paired with every other.

use crate::ops::linalg::matrix::Matrix;

/// The largest number of rows and columns.
const MAX_JACOBI_SIZE: usize = 4;

/// The limit of sweeps, each of which pairs all rows with each other; Nx has the same limit.
const MAX_JACOBI_SWEEPS: usize = 1_000;

type SmallSquare = [[f32; MAX_JACOBI_SIZE]; MAX_JACOBI_SIZE];

/// A rotation of a pair of rows, and the diagonal elements of the pair after it.
struct JacobiRotation {
    cos: f32,
    sin: f32,
    diagonal: (f32, f32),
}

impl JacobiRotation {
    /// The rotation that makes the off-diagonal element of a pair zero, whose diagonal elements are
    /// `first` and `second`.
    fn new(first: f32, second: f32, off_diagonal: f32) -> JacobiRotation {
        let tau = if off_diagonal == 0.0 { 0.0 } else { (second - first) / (2.0 * off_diagonal) };
        let root = (1.0 + tau * tau).sqrt();
        let mut tan = 1.0 / (tau + if tau >= 0.0 { root } else { -root });
        if off_diagonal.abs() <= 1e-5 * second.abs().min(first.abs()) {
            tan = 0.0;
        }
        let root = (1.0 + tan * tan).sqrt();
        let diagonal = (first - tan * off_diagonal, second + tan * off_diagonal);
        JacobiRotation { cos: 1.0 / root, sin: tan / root, diagonal }
    }

    fn rotate(&self, a: f32, b: f32) -> (f32, f32) {
        (a * self.cos - b * self.sin, a * self.sin + b * self.cos)
    }
}

/// The eigenvalues, descending by magnitude, and the eigenvectors as columns, of a symmetric matrix
/// with two to `MAX_JACOBI_SIZE` rows.
pub fn eigh(a: &Matrix<f64>, eps: f64) -> (Vec<f64>, Matrix<f64>) {
    let n = a.rows;
    let half = n.div_ceil(2);
    let mut reduced: SmallSquare = [[0.0; MAX_JACOBI_SIZE]; MAX_JACOBI_SIZE];
    for (i, row) in reduced.iter_mut().enumerate().take(n) {
        for (value, &a) in row.iter_mut().zip(a.row(i)) {
            *value = a as f32;
        }
    }
    let mut vectors = std::array::from_fn(|i| std::array::from_fn(|j| f32::from(u8::from(i == j))));
    let limit = (eps * eps) as f32;
    for _ in 0..MAX_JACOBI_SWEEPS {
        let (all, off) = squared_norms(&reduced, 2 * half);
        if off <= limit * all {
            break;
        }
        for _ in 0..n {
            rotate_all_pairs(&mut reduced, &mut vectors, half);
        }
    }
    let values: Vec<f32> = (0..n).map(|i| reduced[i][i]).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| values[b].abs().total_cmp(&values[a].abs()));
    let flush_small = |value: f32| if value.abs() <= eps as f32 { 0.0 } else { f64::from(value) };
    let rows = (0..n).flat_map(|i| order.iter().map(move |&j| (i, j)));
    let data = rows.map(|(i, j)| flush_small(vectors[j][i])).collect();
    (order.iter().map(|&i| flush_small(values[i])).collect(), Matrix { rows: n, columns: n, data })
}

/// The sums of the squares of all elements, and of the off-diagonal elements.
fn squared_norms(reduced: &SmallSquare, size: usize) -> (f32, f32) {
    let half = size / 2;
    let sum = |all: bool| {
        let at = |i: usize, j: usize| if i == j && !all { 0.0 } else { reduced[i][j] * reduced[i][j] };
        let corners =
            |i: usize, j: usize| at(i, j) + at(i, j + half) + at(i + half, j) + at(i + half, j + half);
        let indices = (0..half).flat_map(|i| (0..half).map(move |j| (i, j)));
        indices.fold(0.0, |sum, (i, j)| sum + f64::from(corners(i, j))) as f32
    };
    (sum(true), sum(false))
}

/// Rotates each row with its counterpart, then moves the rows on.
fn rotate_all_pairs(reduced: &mut SmallSquare, vectors: &mut SmallSquare, half: usize) {
    let pairs: [JacobiRotation; MAX_JACOBI_SIZE / 2] = std::array::from_fn(|i| {
        let (i, j) = (i, (i + half).min(MAX_JACOBI_SIZE - 1));
        JacobiRotation::new(reduced[i][i], reduced[j][j], reduced[i][j])
    });
    for (i, pair) in pairs.iter().enumerate().take(half) {
        for matrix in [&mut *reduced, &mut *vectors] {
            let (above, below) = matrix.split_at_mut(i + half);
            for (a, b) in above[i].iter_mut().zip(&mut below[0]) {
                (*a, *b) = pair.rotate(*a, *b);
            }
        }
    }
    for (i, pair) in pairs.iter().enumerate().take(half) {
        for row in reduced.iter_mut() {
            (row[i], row[i + half]) = pair.rotate(row[i], row[i + half]);
        }
    }
    for (i, pair) in pairs.iter().enumerate().take(half) {
        (reduced[i][i], reduced[i + half][i + half]) = pair.diagonal;
        (reduced[i][i + half], reduced[i + half][i]) = (0.0, 0.0);
    }
    if half == 2 {
        // The first row stays in its place.
        let from = |i: usize| [0, 2, 3, 1][i];
        *reduced = std::array::from_fn(|i| std::array::from_fn(|j| reduced[from(i)][from(j)]));
        *vectors = std::array::from_fn(|i| vectors[from(i)]);
    }
}
