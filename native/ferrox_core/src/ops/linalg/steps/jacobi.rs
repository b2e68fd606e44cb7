//! Eigenvalues by rotations of all pairs of rows at once, as Nx finds them since
//! 0.11: `Nx.LinAlg.BlockEigh`, after XLA's `eigh_expander` and Brent and Luk, The
//! solution of singular-value and symmetric eigenvalue problems on multiprocessor
//! arrays, SIAM Journal on Computing 6 (1985).
//!
//! The rows are two halves, and a rotation is for a row of one half and its
//! counterpart in the other. After each round the rows move on by one, like the
//! teams of a tournament, so that each has met every other in the end.

use crate::ops::linalg::matrix::Matrix;

/// Rows and columns that there is space for.
const SPACE: usize = 4;

/// Rounds of a tournament of all, after which even Nx gives up.
const SWEEPS: usize = 1_000;

type Square = [[f32; SPACE]; SPACE];

/// A rotation of a pair of rows, and their elements of the diagonal after it.
struct Rotation {
    cos: f32,
    sin: f32,
    diagonal: (f32, f32),
}

impl Rotation {
    /// The one that makes zero of what is beside `(first, second)` on the diagonal.
    fn new(first: f32, second: f32, beside: f32) -> Rotation {
        let tau = if beside == 0.0 { 0.0 } else { (second - first) / (2.0 * beside) };
        let root = (1.0 + tau * tau).sqrt();
        let mut tan = 1.0 / (tau + if tau >= 0.0 { root } else { -root });
        if beside.abs() <= 1e-5 * second.abs().min(first.abs()) {
            tan = 0.0;
        }
        let root = (1.0 + tan * tan).sqrt();
        let diagonal = (first - tan * beside, second + tan * beside);
        Rotation { cos: 1.0 / root, sin: tan / root, diagonal }
    }

    fn turn(&self, a: f32, b: f32) -> (f32, f32) {
        (a * self.cos - b * self.sin, a * self.sin + b * self.cos)
    }
}

/// The eigenvalues, descending by magnitude, and the eigenvectors as columns, of a
/// symmetric matrix of two to `SPACE` rows.
pub fn eigh(a: &Matrix<f64>, eps: f64) -> (Vec<f64>, Matrix<f64>) {
    let n = a.rows;
    let half = n.div_ceil(2);
    let mut rest: Square = [[0.0; SPACE]; SPACE];
    for (i, row) in rest.iter_mut().enumerate().take(n) {
        for (value, &a) in row.iter_mut().zip(a.row(i)) {
            *value = a as f32;
        }
    }
    let mut vectors = std::array::from_fn(|i| std::array::from_fn(|j| f32::from(u8::from(i == j))));
    let limit = (eps * eps) as f32;
    for _ in 0..SWEEPS {
        let (all, off) = norms(&rest, 2 * half);
        if off <= limit * all {
            break;
        }
        for _ in 0..n {
            round(&mut rest, &mut vectors, half);
        }
    }
    let values: Vec<f32> = (0..n).map(|i| rest[i][i]).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| values[b].abs().total_cmp(&values[a].abs()));
    let clean = |value: f32| if value.abs() <= eps as f32 { 0.0 } else { f64::from(value) };
    let rows = (0..n).flat_map(|i| order.iter().map(move |&j| (i, j)));
    let data = rows.map(|(i, j)| clean(vectors[j][i])).collect();
    (order.iter().map(|&i| clean(values[i])).collect(), Matrix { rows: n, columns: n, data })
}

/// The sums of the squares of all elements, and of those beside the diagonal.
fn norms(rest: &Square, size: usize) -> (f32, f32) {
    let half = size / 2;
    let sum = |all: bool| {
        let at = |i: usize, j: usize| if i == j && !all { 0.0 } else { rest[i][j] * rest[i][j] };
        let corners =
            |i: usize, j: usize| at(i, j) + at(i, j + half) + at(i + half, j) + at(i + half, j + half);
        let places = (0..half).flat_map(|i| (0..half).map(move |j| (i, j)));
        places.fold(0.0, |sum, (i, j)| sum + f64::from(corners(i, j))) as f32
    };
    (sum(true), sum(false))
}

/// Rotates each row with its counterpart, and moves all of them on.
fn round(rest: &mut Square, vectors: &mut Square, half: usize) {
    let pairs: [Rotation; SPACE / 2] = std::array::from_fn(|i| {
        let (i, j) = (i, (i + half).min(SPACE - 1));
        Rotation::new(rest[i][i], rest[j][j], rest[i][j])
    });
    for (i, pair) in pairs.iter().enumerate().take(half) {
        for matrix in [&mut *rest, &mut *vectors] {
            let (above, below) = matrix.split_at_mut(i + half);
            for (a, b) in above[i].iter_mut().zip(&mut below[0]) {
                (*a, *b) = pair.turn(*a, *b);
            }
        }
    }
    for (i, pair) in pairs.iter().enumerate().take(half) {
        for row in rest.iter_mut() {
            (row[i], row[i + half]) = pair.turn(row[i], row[i + half]);
        }
    }
    for (i, pair) in pairs.iter().enumerate().take(half) {
        (rest[i][i], rest[i + half][i + half]) = pair.diagonal;
        (rest[i][i + half], rest[i + half][i]) = (0.0, 0.0);
    }
    if half == 2 {
        // The first row stays where it is.
        let from = |i: usize| [0, 2, 3, 1][i];
        *rest = std::array::from_fn(|i| std::array::from_fn(|j| rest[from(i)][from(j)]));
        *vectors = std::array::from_fn(|i| vectors[from(i)]);
    }
}
