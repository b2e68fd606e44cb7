//! Singular values and vectors of upper bidiagonal matrices. What is below a rounding of the
//! largest singular value may be as large as that.

use crate::Error;
use crate::ops::linalg::divide_and_conquer::{
    Half, LEAF, Roots, SingularValues, deflate, rotate_rows, solve, tiny,
};
use crate::ops::linalg::implicit_ql::negligible;
use crate::ops::linalg::implicit_qr::diagonalize;
use crate::ops::linalg::matrix::{Matrix, Scaling, TINY, hypotenuse, largest};
use crate::ops::linalg::rotations::Rotated;

const OP: &str = "svd";

/// Overwrites the diagonal `d` with the singular values, which are not negative, in no order;
/// `e[k]` is beside `d[k]`, its last element is not read. The left and the right vectors as rows.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory, `Error::Argument` if QR steps don't converge.
pub fn singular_vectors(d: &mut [f64], e: &[f64]) -> Result<[Matrix<f64>; 2], Error> {
    let n = d.len();
    let mut vectors = [Matrix::zeros(OP, n, n)?, Matrix::zeros(OP, n, n)?];
    let mut start = 0;
    // Each block by itself, so that one is as accurate as if there were no larger ones.
    while start < n {
        let end = (start + 1..n).find(|&i| negligible(e[i - 1], d[i - 1], d[i])).unwrap_or(n);
        let d = &mut d[start..end];
        let scaling = Scaling::of(largest(d).max(largest(&e[start..end - 1])));
        let e: Vec<f64> = e[start..end].iter().map(|&e| scaling.down(e)).collect();
        d.iter_mut().for_each(|d| *d = scaling.down(*d));
        conquer(d, &e, &mut vectors, start, end - start)?;
        d.iter_mut().for_each(|d| *d = scaling.up(*d));
        start = end;
    }
    Ok(vectors)
}

/// The same of rows and columns from `at` on, in blocks of the vectors on their diagonals.
/// Where there is a column more than rows, which has the last of `e`, a right vector more is
/// what the matrix maps to zero.
fn conquer(
    d: &mut [f64],
    e: &[f64],
    vectors: &mut [Matrix<f64>; 2],
    at: usize,
    columns: usize,
) -> Result<(), Error> {
    let n = d.len();
    if n <= LEAF {
        return leaf(d, e, vectors, at, columns);
    }
    // Without its middle row the matrix falls apart.
    let middle = n / 2;
    conquer(&mut d[..middle], &e[..middle], vectors, at, middle + 1)?;
    conquer(&mut d[middle + 1..], &e[middle + 1..], vectors, at + middle + 1, columns - middle - 1)?;
    join(d, e[middle], vectors, at, columns)
}

fn leaf(
    d: &mut [f64],
    e: &[f64],
    [u, v]: &mut [Matrix<f64>; 2],
    at: usize,
    columns: usize,
) -> Result<(), Error> {
    let n = d.len();
    // With a row of zeros where there is a column more: its singular value is zero, and stays
    // the last.
    let (mut values, mut beside) = (d.to_vec(), e.to_vec());
    values.resize(columns, 0.0);
    beside.resize(columns, 0.0);
    if let Some(last) = beside.last_mut() {
        *last = 0.0;
    }
    let eye = || Rotated::new(OP, Matrix::eye(OP, columns, columns)?);
    let (mut left, mut right) = (eye()?, eye()?);
    diagonalize(&mut values, &mut beside, &mut left, &mut right)?;
    let (left, right) = (left.finish()?.transpose(OP)?, right.finish()?.transpose(OP)?);
    for i in 0..n {
        d[i] = values[i].abs();
        u.row_mut(at + i)[at..at + n].copy_from_slice(&left.row(i)[..n]);
    }
    for (i, value) in values.into_iter().enumerate() {
        let row = &mut v.row_mut(at + i)[at..at + columns];
        row.copy_from_slice(right.row(i));
        if value.is_sign_negative() {
            row.iter_mut().for_each(|x| *x = -*x);
        }
    }
    Ok(())
}

/// Adds the middle row, `d` of it on the diagonal and `beside` beside it, to halves with the
/// singular values and vectors that are there.
fn join(
    d: &mut [f64],
    beside: f64,
    vectors: &mut [Matrix<f64>; 2],
    at: usize,
    columns: usize,
) -> Result<(), Error> {
    let (n, middle) = (d.len(), d.len() / 2);
    let on = std::mem::take(&mut d[middle]);
    let [u, v] = vectors;
    *u.at_mut(at + middle, at + middle) = 1.0;
    // Scaled by a power of two, so that no square underflows.
    let largest = largest(d).max(on.abs()).max(beside.abs());
    if largest == 0.0 {
        return Ok(());
    }
    let scaling = Scaling::of(largest);
    d.iter_mut().for_each(|d| *d = scaling.down(*d));
    let (on, beside) = (scaling.down(on), scaling.down(beside));
    // The row in terms of the right vectors. It takes the place of the singular value of the
    // one that the first half maps to zero.
    let share = |v: &Matrix<f64>, j: usize| {
        let row = &v.row(at + j)[at..];
        if j <= middle { on * row[middle] } else { beside * row[middle + 1] }
    };
    let mut z: Vec<f64> = (0..n).map(|j| share(v, j)).collect();
    let half = |j: usize| if j <= middle { Half::First } else { Half::Second };
    let mut halves: Vec<Half> = (0..n).map(half).collect();
    // Of two vectors that the halves map to zero, one is made that the row does, too.
    if columns > n {
        let other = share(v, n);
        let length = hypotenuse(z[middle], other);
        if length > TINY {
            rotate_rows(v, at..at + columns, [middle, n], z[middle] / length, other / length);
            (z[middle], halves[middle]) = (length, Half::Both);
        }
    }
    let tiny = tiny(d, &z);
    // So are those of singular values that are zero but for rounding.
    for j in 0..n {
        if j != middle && d[j] <= tiny && z[j].abs() > tiny {
            let length = hypotenuse(z[middle], z[j]);
            rotate_rows(v, at..at + columns, [middle, j], z[middle] / length, z[j] / length);
            (z[middle], z[j]) = (length, 0.0);
            if halves[j] != Half::First {
                halves[middle] = Half::Both;
            }
        }
    }
    let kept = deflate(d, &mut z, 1.0, &mut halves, vec![middle], |i, j, c, s| {
        rotate_rows(v, at..at + columns, [i, j], c, s);
        rotate_rows(u, at..at + n, [i, j], c, s);
    });
    if kept.len() == 1 {
        // Its singular value is all there is of the row.
        d[middle] = z[middle].abs();
        if z[middle] < 0.0 {
            v.row_mut(at + middle)[at..at + columns].iter_mut().for_each(|x| *x = -*x);
        }
    } else {
        // So far from zero that the vectors are.
        z[middle] = z[middle].abs().max(tiny).copysign(z[middle]);
        let (turn, Roots { poles, z, distances }) =
            solve::<SingularValues>(OP, at, (d, &z), 1.0, kept, &halves)?;
        let right = turn.matrix(&distances, |j, distance| z[j] / distance)?;
        // A right vector times the matrix, whose first row is z and whose diagonal has what the
        // poles are the squares of.
        let left =
            turn.matrix(&distances, |j, distance| if j == 0 { -1.0 } else { poles[j] * (z[j] / distance) })?;
        drop(distances);
        turn.vectors(v, [middle + 1, columns], &right)?;
        turn.vectors(u, [middle + 1, n], &left)?;
    }
    d.iter_mut().for_each(|d| *d = scaling.up(*d));
    Ok(())
}
