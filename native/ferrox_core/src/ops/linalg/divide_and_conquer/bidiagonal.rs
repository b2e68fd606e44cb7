//! Singular values and vectors of upper bidiagonal matrices. A singular value that is smaller than
//! a rounding error of the largest one of its block has an error of up to that size.

use crate::Error;
use crate::ops::linalg::divide_and_conquer::{
    DIVIDE_AND_CONQUER_LEAF_SIZE, SecularRoots, SingularValues, Support, deflate, deflation_tolerance,
    rotate_rows, solve,
};
use crate::ops::linalg::implicit_ql::is_negligible;
use crate::ops::linalg::implicit_qr::diagonalize;
use crate::ops::linalg::matrix::{Matrix, Scaling, UNDERFLOW_THRESHOLD, hypotenuse, max_abs, vector};
use crate::ops::linalg::rotations::RotatedMatrix;

const OP: &str = "svd";

/// Overwrites the diagonal `d` with the singular values, which are not negative and in no order,
/// and returns the left and the right vectors as rows. `e[k]` is the superdiagonal element in the
/// row of `d[k]`; the last element of `e` is not read.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory, `Error::Argument` if the QR steps don't converge.
pub fn singular_vectors(d: &mut [f64], e: &[f64]) -> Result<[Matrix<f64>; 2], Error> {
    let n = d.len();
    let mut vectors = [Matrix::zeros(OP, n, n)?, Matrix::zeros(OP, n, n)?];
    let mut start = 0;
    // Each unreduced block is solved by itself, so that a block of small elements is as accurate as
    // if there were no larger ones.
    while start < n {
        let end = (start + 1..n).find(|&i| is_negligible(e[i - 1], d[i - 1], d[i])).unwrap_or(n);
        let d = &mut d[start..end];
        let scaling = Scaling::to_unit(max_abs(d).max(max_abs(&e[start..end - 1])));
        let e = vector(OP, e[start..end].iter().map(|&e| scaling.down(e)))?;
        d.iter_mut().for_each(|d| *d = scaling.down(*d));
        solve_block(d, &e, &mut vectors, start, end - start)?;
        d.iter_mut().for_each(|d| *d = scaling.up(*d));
        start = end;
    }
    Ok(vectors)
}

/// Solves the block of rows and columns from `block_start` on; its vectors are in the same block of
/// both matrices of vectors. If the block has one column more than rows, whose element is the last
/// of `e`, there is one more right vector, which the block maps to zero.
fn solve_block(
    d: &mut [f64],
    e: &[f64],
    vectors: &mut [Matrix<f64>; 2],
    block_start: usize,
    columns: usize,
) -> Result<(), Error> {
    let n = d.len();
    if n <= DIVIDE_AND_CONQUER_LEAF_SIZE {
        return solve_leaf(d, e, vectors, block_start, columns);
    }
    // Without its middle row the matrix is two independent blocks.
    let middle = n / 2;
    solve_block(&mut d[..middle], &e[..middle], vectors, block_start, middle + 1)?;
    solve_block(
        &mut d[middle + 1..],
        &e[middle + 1..],
        vectors,
        block_start + middle + 1,
        columns - middle - 1,
    )?;
    merge(d, e[middle], vectors, block_start, columns)
}

fn solve_leaf(
    d: &mut [f64],
    e: &[f64],
    [u, v]: &mut [Matrix<f64>; 2],
    block_start: usize,
    columns: usize,
) -> Result<(), Error> {
    let n = d.len();
    // If there is one more column, a row of zeros makes the block square: its singular value is
    // zero and stays the last.
    let (mut values, mut superdiagonal) = (d.to_vec(), e.to_vec());
    values.resize(columns, 0.0);
    superdiagonal.resize(columns, 0.0);
    if let Some(last) = superdiagonal.last_mut() {
        *last = 0.0;
    }
    let eye = || RotatedMatrix::new(OP, Matrix::eye(OP, columns, columns)?);
    let (mut left, mut right) = (eye()?, eye()?);
    diagonalize(&mut values, &mut superdiagonal, &mut left, &mut right)?;
    let (left, right) = (left.finish()?.transpose(OP)?, right.finish()?.transpose(OP)?);
    for i in 0..n {
        d[i] = values[i].abs();
        u.row_mut(block_start + i)[block_start..block_start + n].copy_from_slice(&left.row(i)[..n]);
    }
    for (i, value) in values.into_iter().enumerate() {
        let row = &mut v.row_mut(block_start + i)[block_start..block_start + columns];
        row.copy_from_slice(right.row(i));
        if value.is_sign_negative() {
            row.iter_mut().for_each(|x| *x = -*x);
        }
    }
    Ok(())
}

/// Merges two halves by the row between them, which has `d[middle]` on the diagonal and
/// `superdiagonal` beside it. `d` and `vectors` hold the singular values and vectors of the halves.
fn merge(
    d: &mut [f64],
    superdiagonal: f64,
    vectors: &mut [Matrix<f64>; 2],
    block_start: usize,
    columns: usize,
) -> Result<(), Error> {
    let (n, middle) = (d.len(), d.len() / 2);
    let diagonal = std::mem::take(&mut d[middle]);
    let [u, v] = vectors;
    *u.at_mut(block_start + middle, block_start + middle) = 1.0;
    // Scaled by a power of two, so that no square underflows.
    let max_abs = max_abs(d).max(diagonal.abs()).max(superdiagonal.abs());
    if max_abs == 0.0 {
        return Ok(());
    }
    let scaling = Scaling::to_unit(max_abs);
    d.iter_mut().for_each(|d| *d = scaling.down(*d));
    let (diagonal, superdiagonal) = (scaling.down(diagonal), scaling.down(superdiagonal));
    // The components of the row with respect to the right vectors. The row takes the place of the
    // vector that the first half maps to zero.
    let component = |v: &Matrix<f64>, j: usize| {
        let row = &v.row(block_start + j)[block_start..];
        if j <= middle { diagonal * row[middle] } else { superdiagonal * row[middle + 1] }
    };
    let mut z = vector(OP, (0..n).map(|j| component(v, j)))?;
    let support_of = |j: usize| if j <= middle { Support::First } else { Support::Second };
    let mut supports = vector(OP, (0..n).map(support_of))?;
    // Each half has a vector that it maps to zero. A rotation of the two makes one of them a vector
    // that the row maps to zero as well.
    if columns > n {
        let other = component(v, n);
        let length = hypotenuse(z[middle], other);
        if length > UNDERFLOW_THRESHOLD {
            rotate_rows(
                v,
                block_start..block_start + columns,
                [middle, n],
                z[middle] / length,
                other / length,
            );
            (z[middle], supports[middle]) = (length, Support::Both);
        }
    }
    let deflation_tolerance = deflation_tolerance(d, &z);
    // The same for each vector whose singular value is zero within rounding errors.
    for j in 0..n {
        if j != middle && d[j] <= deflation_tolerance && z[j].abs() > deflation_tolerance {
            let length = hypotenuse(z[middle], z[j]);
            rotate_rows(
                v,
                block_start..block_start + columns,
                [middle, j],
                z[middle] / length,
                z[j] / length,
            );
            (z[middle], z[j]) = (length, 0.0);
            if supports[j] != Support::First {
                supports[middle] = Support::Both;
            }
        }
    }
    let mut undeflated = vector(OP, 0..n)?;
    undeflated.clear();
    undeflated.push(middle);
    let undeflated = deflate(OP, d, &mut z, 1.0, &mut supports, undeflated, |i, j, c, s| {
        rotate_rows(v, block_start..block_start + columns, [i, j], c, s);
        rotate_rows(u, block_start..block_start + n, [i, j], c, s);
    })?;
    if undeflated.len() == 1 {
        // The row has no other component, so its length is the singular value.
        d[middle] = z[middle].abs();
        if z[middle] < 0.0 {
            v.row_mut(block_start + middle)[block_start..block_start + columns]
                .iter_mut()
                .for_each(|x| *x = -*x);
        }
    } else {
        // Large enough for the vectors to be accurate.
        z[middle] = z[middle].abs().max(deflation_tolerance).copysign(z[middle]);
        let (update, SecularRoots { poles, z, distances }) =
            solve::<SingularValues>(OP, block_start, (d, &z), 1.0, undeflated, &supports)?;
        let right = update.coefficients(&distances, |j, distance| z[j] / distance)?;
        // A left vector is the product of a right vector and the matrix whose first row is `z` and
        // whose other diagonal elements are `poles`.
        let left =
            update.coefficients(
                &distances,
                |j, distance| if j == 0 { -1.0 } else { poles[j] * (z[j] / distance) },
            )?;
        drop(distances);
        update.combine(v, [middle + 1, columns], &right)?;
        update.combine(u, [middle + 1, n], &left)?;
    }
    d.iter_mut().for_each(|d| *d = scaling.up(*d));
    Ok(())
}
