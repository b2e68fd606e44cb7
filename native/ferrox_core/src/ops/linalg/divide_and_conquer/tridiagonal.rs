//! Eigenvalues and eigenvectors of symmetric tridiagonal matrices.

use crate::Error;
use crate::ops::linalg::divide_and_conquer::{Eigenvalues, Half, LEAF, deflate, rotate_rows, solve};
use crate::ops::linalg::implicit_ql::{implicit_ql, negligible};
use crate::ops::linalg::matrix::{Matrix, Scaling, largest};
use crate::ops::linalg::rotations::Rotated;

const OP: &str = "eigh";

/// Overwrites the diagonal `d` with the eigenvalues, in no order, and `e`, what is beside
/// it, the last of which is not read; the eigenvectors as rows.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory, `Error::Argument` if QL steps don't converge.
pub fn eigenvectors(d: &mut [f64], e: &mut [f64]) -> Result<Matrix<f64>, Error> {
    let n = d.len();
    let mut rows = Matrix::zeros(OP, n, n)?;
    let mut start = 0;
    // Each block by itself, so that one is as accurate as if there were no larger ones.
    while start < n {
        let end = (start + 1..n).find(|&i| negligible(e[i - 1], d[i - 1], d[i])).unwrap_or(n);
        if end == start + 1 {
            *rows.at_mut(start, start) = 1.0;
        } else {
            let (d, e) = (&mut d[start..end], &mut e[start..end]);
            let scaling = Scaling::of(largest(d).max(largest(&e[..end - start - 1])));
            d.iter_mut().chain(&mut *e).for_each(|x| *x = scaling.down(*x));
            conquer(d, e, &mut rows, start)?;
            d.iter_mut().for_each(|d| *d = scaling.up(*d));
        }
        start = end;
    }
    Ok(rows)
}

/// The same in a block of `rows` on its diagonal.
fn conquer(d: &mut [f64], e: &mut [f64], rows: &mut Matrix<f64>, at: usize) -> Result<(), Error> {
    let n = d.len();
    if n <= LEAF {
        return leaf(d, e, rows, at);
    }
    // Without what is beside the diagonal in the middle, and with as much taken from the
    // diagonal, the matrix falls apart.
    let middle = n / 2;
    let beside = std::mem::take(&mut e[middle - 1]);
    d[middle - 1] -= beside.abs();
    d[middle] -= beside.abs();
    let ((first, second), (e_first, e_second)) = (d.split_at_mut(middle), e.split_at_mut(middle));
    conquer(first, e_first, rows, at)?;
    conquer(second, e_second, rows, at + middle)?;
    if beside == 0.0 {
        return Ok(());
    }
    // What was taken is rho z zᵀ, in terms of the eigenvectors.
    let z = (0..n).map(|j| {
        let row = &rows.row(at + j)[at..at + n];
        let value = if j < middle { row[middle - 1] } else { row[middle] * beside.signum() };
        value * std::f64::consts::FRAC_1_SQRT_2
    });
    let z = z.collect();
    join(d, z, 2.0 * beside.abs(), rows, (at, middle))
}

fn leaf(d: &mut [f64], e: &mut [f64], rows: &mut Matrix<f64>, at: usize) -> Result<(), Error> {
    let n = d.len();
    let mut columns = Rotated::new(OP, Matrix::eye(OP, n, n)?)?;
    implicit_ql(d, e, &mut columns)?;
    let found = columns.finish()?.transpose(OP)?;
    for i in 0..n {
        rows.row_mut(at + i)[at..at + n].copy_from_slice(found.row(i));
    }
    Ok(())
}

/// Adds `rho z zᵀ` to what has the eigenvalues `d`, and the eigenvectors in the rows from
/// `at` on, the first `middle` of which are zero in the second half, the others in the
/// first.
fn join(
    d: &mut [f64],
    mut z: Vec<f64>,
    rho: f64,
    rows: &mut Matrix<f64>,
    (at, middle): (usize, usize),
) -> Result<(), Error> {
    let n = d.len();
    let mut halves: Vec<Half> = (0..n).map(|j| if j < middle { Half::First } else { Half::Second }).collect();
    let kept = deflate(d, &mut z, rho, &mut halves, Vec::with_capacity(n), |i, j, c, s| {
        rotate_rows(rows, at..at + n, [i, j], c, s);
    });
    if kept.is_empty() {
        return Ok(());
    }
    let (turn, roots) = solve::<Eigenvalues>(OP, at, (d, &z), rho, kept, &halves)?;
    let turned = turn.matrix(&roots.distances, |j, distance| roots.z[j] / distance)?;
    drop(roots);
    turn.vectors(rows, [middle, n], &turned)
}
