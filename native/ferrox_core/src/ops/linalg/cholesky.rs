//! The Cholesky factorization.

use std::ops::Range;

use super::matrix::{self, Matrix, add_rows};
use super::scalar::{Precision, Scalar};
use crate::exec::gemm::blocked::{Block, Right, subtract_within};

/// Up to this size sums are added up in order, as Nx adds them, and above it a matrix
/// is halved.
const LEAF: usize = 32;

/// Rows that are solved for side by side.
const ROWS: usize = 64;

/// Rows of a block that are updated at a time: so little above the diagonal is
/// computed in vain.
const UPDATE: usize = 128;

/// The lower triangular `L` with `L Lᴴ = A`, of which only the lower triangle is
/// read. Where `A` is not positive definite there are NaN from the first pivot
/// that is negative on.
pub fn cholesky<T: Scalar>(mut a: Matrix<T>, precision: Precision) -> Matrix<T> {
    let n = a.rows;
    let unit = if precision == Precision::Single { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let noise: Vec<f64> = (0..n).map(|i| (4.0 * unit * n as f64).sqrt() * a.at(i, i).re().sqrt()).collect();
    factor(&mut a, 0, n, precision, &noise);
    for i in 0..n {
        a.row_mut(i)[i + 1..].fill(T::ZERO);
    }
    a
}

/// Factors the square block from a diagonal element on, in place. The product of the `noise` of two rows
/// is what rounding leaves of a zero beside the diagonal of both.
fn factor<T: Scalar>(a: &mut Matrix<T>, from: usize, size: usize, precision: Precision, noise: &[f64]) {
    if size <= LEAF {
        return leaf(a, from, size, precision, noise);
    }
    let (middle, end) = (from + half(size), from + size);
    factor(a, from, half(size), precision, noise);
    for first in (middle..end).step_by(UPDATE) {
        let rows = first..(first + UPDATE).min(end);
        divide(a, rows.clone(), from..middle, noise);
        let (stride, done) = (a.columns, Block::new(rows.clone(), from..middle));
        let above = Block::new(middle..rows.end, from..middle);
        let out = Block::new(rows.clone(), middle..rows.end);
        subtract_within(&mut a.data, stride, &out, &done, (&above, Right::Adjoint));
    }
    factor(a, middle, size - half(size), precision, noise);
}

/// Half of a size that is more than a leaf, in whole leaves.
fn half(size: usize) -> usize {
    (size / 2).next_multiple_of(LEAF)
}

/// Row by row, or column by column where the order of sums is free.
fn leaf<T: Scalar>(a: &mut Matrix<T>, from: usize, size: usize, precision: Precision, noise: &[f64]) {
    let n = a.columns;
    if n > LEAF {
        return by_columns(&mut a.data[from * n..], n, from..from + size, noise);
    }
    for i in 0..n {
        let (done, rest) = a.data.split_at_mut(i * n);
        let row = &mut rest[..n];
        for j in 0..i {
            let above = &done[j * n..][..=j];
            let sum = precision.round(sum(&row[..j], &above[..j]));
            let rest = precision.round(row[j] - sum);
            row[j] = precision.round(quotient(rest, above[j], noise[i] * noise[j]));
        }
        let sum = precision.round(sum(&row[..i], &row[..i]));
        let square = precision.round(row[i] - sum).re();
        row[i] = precision.round(T::real(square.sqrt()));
    }
}

/// The sum of `a conj(b)`.
fn sum<T: Scalar>(a: &[T], b: &[T]) -> T {
    a.iter().zip(b).fold(T::ZERO, |sum, (&a, &b)| a * b.conj() + sum)
}

/// `leaf` for rows of `n` elements of which these columns are the block.
fn by_columns<T: Scalar>(rows: &mut [T], n: usize, columns: Range<usize>, noise: &[f64]) {
    let size = columns.len();
    let mut turned = [T::ZERO; LEAF * LEAF];
    for (i, row) in rows.chunks_exact(n).take(size).enumerate() {
        for (j, &value) in row[columns.clone()][..=i].iter().enumerate() {
            turned[j * LEAF + i] = value;
        }
    }
    for j in 0..size {
        let (done, rest) = turned.split_at_mut(j * LEAF);
        let column = &mut rest[j..size];
        subtract(column, done.chunks_exact(LEAF).map(|done| done[j]), &done[j.min(done.len())..], LEAF);
        let root = T::real(column[0].re().sqrt());
        column[0] = root;
        let noise = &noise[columns.start + j..];
        quotients(&mut column[1..], root, (&noise[1..], noise[0]));
    }
    for (i, row) in rows.chunks_exact_mut(n).take(size).enumerate() {
        for (j, value) in row[columns.clone()][..=i].iter_mut().enumerate() {
            *value = turned[j * LEAF + i];
        }
    }
}

/// Subtracts columns that begin `stride` elements apart, each times the conjugate of a
/// factor.
fn subtract<T: Scalar>(out: &mut [T], factors: impl Iterator<Item = T>, columns: &[T], stride: usize) {
    let mut by = [T::ZERO; LEAF];
    let mut count = 0;
    for (by, factor) in by.iter_mut().zip(factors) {
        *by = -factor.conj();
        count += 1;
    }
    add_rows(out, &by[..count], columns, stride);
}

/// The quotient by an element of the diagonal. If that is zero so must be what it divides, but for
/// rounding; otherwise the matrix is not positive definite.
fn quotient<T: Scalar>(value: T, pivot: T, noise: f64) -> T {
    if pivot != T::ZERO {
        value.over(pivot)
    } else if value.abs() <= noise {
        T::ZERO
    } else {
        T::real(f64::NAN)
    }
}

/// `quotient` of each of a column, given the noise of the rows and that of the column.
fn quotients<T: Scalar>(column: &mut [T], pivot: T, (rows, own): (&[f64], f64)) {
    if pivot != T::ZERO {
        return matrix::divide(column, pivot);
    }
    column.iter_mut().zip(rows).for_each(|(value, noise)| *value = quotient(*value, pivot, noise * own));
}

/// `X Lᴴ = B` in place, `B` being these rows and columns and `L` the square block on
/// the diagonal of the same columns.
fn divide<T: Scalar>(a: &mut Matrix<T>, rows: Range<usize>, columns: Range<usize>, noise: &[f64]) {
    if columns.len() > LEAF {
        let middle = columns.start + half(columns.len());
        divide(a, rows.clone(), columns.start..middle, noise);
        let (stride, done) = (a.columns, Block::new(rows.clone(), columns.start..middle));
        let (out, below) = (
            Block::new(rows.clone(), middle..columns.end),
            Block::new(middle..columns.end, columns.start..middle),
        );
        subtract_within(&mut a.data, stride, &out, &done, (&below, Right::Adjoint));
        return divide(a, rows, middle..columns.end, noise);
    }
    // With rows for columns, so that the elements of a column lie side by side.
    let (n, width) = (a.columns, columns.len());
    let mut turned = [T::ZERO; LEAF * ROWS];
    let (above, below) = a.data.split_at_mut(rows.start * n);
    let parts = below[..rows.len() * n].chunks_mut(ROWS * n);
    for (part, row_noise) in parts.zip(noise[rows.start..].chunks(ROWS)) {
        for (i, row) in part.chunks_exact(n).enumerate() {
            for (j, &value) in row[columns.clone()].iter().enumerate() {
                turned[j * ROWS + i] = value;
            }
        }
        for j in 0..width {
            let factors = &above[(columns.start + j) * n + columns.start..][..=j];
            let (done, rest) = turned.split_at_mut(j * ROWS);
            let column = &mut rest[..ROWS];
            subtract(column, factors[..j].iter().copied(), done, ROWS);
            quotients(column, factors[j], (row_noise, noise[columns.start + j]));
        }
        for (i, row) in part.chunks_exact_mut(n).enumerate() {
            for (j, value) in row[columns.clone()].iter_mut().enumerate() {
                *value = turned[j * ROWS + i];
            }
        }
    }
}
