//! Eigenvalues and eigenvectors of symmetric tridiagonal matrices.

use crate::Error;
use crate::ops::linalg::divide_and_conquer::{
    DIVIDE_AND_CONQUER_LEAF_SIZE, Eigenvalues, Support, deflate, rotate_rows, solve,
};
use crate::ops::linalg::implicit_ql::{implicit_ql, is_negligible};
use crate::ops::linalg::matrix::{Matrix, Scaling, max_abs, vector};
use crate::ops::linalg::rotations::RotatedMatrix;

const OP: &str = "eigh";

/// Overwrites the diagonal `d` with the eigenvalues, in no order, and returns the eigenvectors as
/// rows. `e` holds the off-diagonal elements, and is overwritten; its last element is not read.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory, `Error::Argument` if the QL steps don't converge.
pub fn eigenvectors(d: &mut [f64], e: &mut [f64]) -> Result<Matrix<f64>, Error> {
    let n = d.len();
    let mut rows = Matrix::zeros(OP, n, n)?;
    let mut start = 0;
    // Each unreduced block is solved by itself, so that a block of small elements is as accurate as
    // if there were no larger ones.
    while start < n {
        let end = (start + 1..n).find(|&i| is_negligible(e[i - 1], d[i - 1], d[i])).unwrap_or(n);
        if end == start + 1 {
            *rows.at_mut(start, start) = 1.0;
        } else {
            let (d, e) = (&mut d[start..end], &mut e[start..end]);
            let scaling = Scaling::to_unit(max_abs(d).max(max_abs(&e[..end - start - 1])));
            d.iter_mut().chain(&mut *e).for_each(|x| *x = scaling.down(*x));
            solve_block(d, e, &mut rows, start)?;
            d.iter_mut().for_each(|d| *d = scaling.up(*d));
        }
        start = end;
    }
    Ok(rows)
}

/// Solves a block, whose vectors are in the block of `rows` that starts at `block_start` on the
/// diagonal.
fn solve_block(
    d: &mut [f64],
    e: &mut [f64],
    rows: &mut Matrix<f64>,
    block_start: usize,
) -> Result<(), Error> {
    let n = d.len();
    if n <= DIVIDE_AND_CONQUER_LEAF_SIZE {
        return solve_leaf(d, e, rows, block_start);
    }
    // Without the off-diagonal element in the middle, whose magnitude is subtracted from both
    // neighbors on the diagonal, the matrix is two independent blocks.
    let middle = n / 2;
    let off_diagonal = std::mem::take(&mut e[middle - 1]);
    d[middle - 1] -= off_diagonal.abs();
    d[middle] -= off_diagonal.abs();
    let ((first, second), (e_first, e_second)) = (d.split_at_mut(middle), e.split_at_mut(middle));
    solve_block(first, e_first, rows, block_start)?;
    solve_block(second, e_second, rows, block_start + middle)?;
    if off_diagonal == 0.0 {
        return Ok(());
    }
    // The difference is `rho z zᵀ`, with `z` in terms of the eigenvectors.
    let z = (0..n).map(|j| {
        let row = &rows.row(block_start + j)[block_start..block_start + n];
        let value = if j < middle { row[middle - 1] } else { row[middle] * off_diagonal.signum() };
        value * std::f64::consts::FRAC_1_SQRT_2
    });
    let z = vector(OP, z)?;
    merge(d, z, 2.0 * off_diagonal.abs(), rows, (block_start, middle))
}

fn solve_leaf(d: &mut [f64], e: &mut [f64], rows: &mut Matrix<f64>, block_start: usize) -> Result<(), Error> {
    let n = d.len();
    let mut columns = RotatedMatrix::new(OP, Matrix::eye(OP, n, n)?)?;
    implicit_ql(d, e, &mut columns)?;
    let found = columns.finish()?.transpose(OP)?;
    for i in 0..n {
        rows.row_mut(block_start + i)[block_start..block_start + n].copy_from_slice(found.row(i));
    }
    Ok(())
}

/// Merges two halves: adds `rho z zᵀ` to the matrix with the eigenvalues `d` and the eigenvectors
/// in the rows from `block_start` on. The first `middle` eigenvectors are zero in the second half,
/// the others in the first half.
fn merge(
    d: &mut [f64],
    mut z: Vec<f64>,
    rho: f64,
    rows: &mut Matrix<f64>,
    (block_start, middle): (usize, usize),
) -> Result<(), Error> {
    let n = d.len();
    let supports = (0..n).map(|j| if j < middle { Support::First } else { Support::Second });
    let mut supports = vector(OP, supports)?;
    let mut undeflated = vector(OP, 0..n)?;
    undeflated.clear();
    let undeflated = deflate(OP, d, &mut z, rho, &mut supports, undeflated, |i, j, c, s| {
        rotate_rows(rows, block_start..block_start + n, [i, j], c, s);
    })?;
    if undeflated.is_empty() {
        return Ok(());
    }
    let (update, roots) = solve::<Eigenvalues>(OP, block_start, (d, &z), rho, undeflated, &supports)?;
    let coefficients = update.coefficients(&roots.distances, |j, distance| roots.z[j] / distance)?;
    drop(roots);
    update.combine(rows, [middle, n], &coefficients)
}
