//! Nx's own algorithms for small matrices of single precision, whose last digits and signs its
//! documentation shows: the algorithms of Nx since 0.10 and of Nx 0.9.
//!
//! Where one of these algorithms applies, it is tried first. Its result is only returned if it is
//! as accurate as Nx's documentation requires; otherwise the caller computes the result with
//! another algorithm.

mod gram;
pub mod householder;
mod jacobi;
mod polar;
mod qr_iteration;

use crate::Error;
use crate::ops::linalg::factors::Svd;
use crate::ops::linalg::lu::Lu;
use crate::ops::linalg::matrix::Matrix;
use crate::ops::linalg::scalar::Scalar;

/// The version of Nx whose algorithms compute small matrices of single precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NxAlgorithm {
    /// The algorithms of Nx since 0.10.
    Current,
    /// `Current` for a singular value decomposition without full matrices, which Nx computes in
    /// another way; the shapes of the results don't tell this for a square matrix.
    ThinSvd,
    /// The algorithms of Nx 0.9.
    V0_9,
}

/// The largest size of the shorter side of a matrix whose eigenvalues or singular values are
/// computed here.
const MAX_NX_SHORT_SIDE: usize = 3;
/// The largest size of its longer side, and of a matrix with an LU factorization.
const MAX_NX_LONG_SIDE: usize = 4;

/// The `:eps` with which Nx's own functions call `Nx.LinAlg.eigh/2`.
const NX_EIGH_EPS: f64 = 1e-4;

/// The factor by which the orthonormality error of left singular vectors may be larger if they come
/// from `AᵀA`, whose condition number is the square of the condition number of `A`. Only for
/// matrices of integers with two columns: Nx's documentation shows vectors with this error.
const THIN_SVD_ERROR_FACTOR: f64 = 8.0;

/// The largest relative error of a result of Nx 0.9: the third digit of some in its documentation
/// is wrong.
const NX_0_9_MAX_ERROR: f64 = 4e-3;
/// The largest ratio of the largest to the smallest eigenvalue or singular value with which a
/// result of Nx 0.9 is accepted.
const NX_0_9_MAX_CONDITION: f64 = 100.0;

/// The largest magnitude of an element of `L` with which the pivots of Nx 0.9 are accepted.
const NX_0_9_MAX_MULTIPLIER: f64 = 4.0;

/// The relative error that any algorithm has: a few rounding errors for each row and column.
pub fn rounding_bound<T>(a: &Matrix<T>) -> f64 {
    f64::from(f32::EPSILON) * 4.0 * (a.rows + a.columns) as f64
}

/// The eigenvalues, and the eigenvectors as columns, of a Hermitian matrix. Returns `None` if there
/// is no algorithm of Nx for it, or its result is not accurate.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn eigh<T: Scalar>(
    a: &Matrix<T>,
    eps: f64,
    algorithm: NxAlgorithm,
) -> Result<Option<[Matrix<T>; 2]>, Error> {
    const OP: &str = "eigh";
    let n = a.rows;
    if T::COMPLEX || !(2..=MAX_NX_SHORT_SIDE).contains(&n) {
        return Ok(None);
    }
    let at = |i: usize| round_to_f32(0.5 * (a.at(i / n, i % n).re() + a.at(i % n, i / n).re()));
    let a = Matrix { rows: n, columns: n, data: (0..n * n).map(at).collect() };
    let (values, vectors) = eigenvectors(&a, eps, algorithm);
    let vectors = vectors.transpose(OP)?;
    if !is_accurate(&a, &vectors, &values, &vectors, algorithm, false)? {
        return Ok(None);
    }
    let real = |rows, data: Vec<f64>| {
        let data = data.into_iter().map(T::real).collect();
        Matrix { rows, columns: n, data }
    };
    Ok(Some([real(1, values), real(n, vectors.transpose(OP)?.data)]))
}

/// `eigh` for a symmetric matrix of f32, without a test of its accuracy.
fn eigenvectors(a: &Matrix<f64>, eps: f64, algorithm: NxAlgorithm) -> (Vec<f64>, Matrix<f64>) {
    let (mut values, mut vectors) = match algorithm {
        NxAlgorithm::Current | NxAlgorithm::ThinSvd => jacobi::eigh(a, eps),
        NxAlgorithm::V0_9 => qr_iteration::eigh(a, eps),
    };
    values.iter_mut().for_each(|value| *value = round_to_f32(*value));
    vectors.map(round_to_f32);
    (values, vectors)
}

/// Singular values and vectors, with `columns` left vectors, of a matrix with at least as many rows
/// as columns; `from_integers` says whether the tensor was one of integers. Returns `None` if there
/// is no algorithm of Nx for it, or its result is not accurate.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn svd(
    a: &Matrix<f64>,
    columns: usize,
    algorithm: NxAlgorithm,
    from_integers: bool,
) -> Result<Option<Svd>, Error> {
    if !(2..=MAX_NX_SHORT_SIDE).contains(&a.columns)
        || a.rows > MAX_NX_LONG_SIDE
        || a.data.iter().all(|&a| a == 0.0)
    {
        return Ok(None);
    }
    let mut a = a.copy("svd")?;
    a.map(round_to_f32);
    let svd = match algorithm {
        NxAlgorithm::ThinSvd => gram::svd(&a)?,
        NxAlgorithm::Current | NxAlgorithm::V0_9 => polar::svd(&a, columns, algorithm)?,
    };
    Ok(if is_accurate(&a, &svd.u, &svd.s, &svd.v, algorithm, from_integers)? { Some(svd) } else { None })
}

/// The LU factorization with the pivots of Nx 0.9: the largest elements of the columns of the
/// matrix itself. Returns `None` if another version or size is asked for, or other pivots are
/// needed for an accurate result.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn lu<T: Scalar>(a: &Matrix<T>, algorithm: NxAlgorithm) -> Result<Option<Lu<T>>, Error> {
    let n = a.rows;
    if algorithm != NxAlgorithm::V0_9 || !(2..=MAX_NX_LONG_SIDE).contains(&n) {
        return Ok(None);
    }
    let lu = crate::ops::linalg::lu::lu_with_input_pivots(a.copy("lu")?);
    let factors = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
    let largest_multiplier = factors.fold(0.0, |m: f64, (i, j)| m.max(lu.packed.at(i, j).abs()));
    Ok(if lu.packed.is_finite() && largest_multiplier <= NX_0_9_MAX_MULTIPLIER { Some(lu) } else { None })
}

/// Whether `A = U S Vᵀ`, and the rows of both matrices of vectors are orthonormal.
fn is_accurate(
    a: &Matrix<f64>,
    u: &Matrix<f64>,
    s: &[f64],
    v: &Matrix<f64>,
    algorithm: NxAlgorithm,
    from_integers: bool,
) -> Result<bool, Error> {
    let mut scaled_v = v.copy("svd")?;
    for (i, &s) in s.iter().enumerate() {
        scaled_v.row_mut(i).iter_mut().for_each(|v| *v *= s);
    }
    let u_part = Matrix { rows: s.len(), columns: u.columns, data: u.data[..s.len() * u.columns].to_vec() };
    let mut residual = u_part.transpose("svd")?.times("svd", &scaled_v)?;
    residual.data.iter_mut().zip(&a.data).for_each(|(residual, a)| *residual -= a);
    let (least, greatest) = s.iter().fold((f64::INFINITY, 0.0), |(least, greatest): (f64, f64), s| {
        (least.min(s.abs()), greatest.max(s.abs()))
    });
    let (bound, left_bound) = match algorithm {
        NxAlgorithm::Current => (rounding_bound(a), rounding_bound(a)),
        NxAlgorithm::ThinSvd if from_integers && a.columns == 2 => {
            (rounding_bound(a), THIN_SVD_ERROR_FACTOR * rounding_bound(a))
        }
        NxAlgorithm::ThinSvd => (rounding_bound(a), rounding_bound(a)),
        NxAlgorithm::V0_9 if greatest <= least * NX_0_9_MAX_CONDITION => (NX_0_9_MAX_ERROR, NX_0_9_MAX_ERROR),
        NxAlgorithm::V0_9 => return Ok(false),
    };
    let is_accurate = match algorithm {
        // Graded matrices are refused by their condition.
        NxAlgorithm::V0_9 => residual.norm() <= bound * a.norm(),
        NxAlgorithm::Current | NxAlgorithm::ThinSvd => is_within_rounding(&residual, a, bound),
    };
    Ok(is_accurate && orthonormality_error(v)? <= bound && orthonormality_error(u)? <= left_bound)
}

/// The distance of rows from being orthonormal: the norm of their Gram matrix minus the identity.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn orthonormality_error<T: Scalar>(vectors: &Matrix<T>) -> Result<f64, Error> {
    let mut gram = vectors.times("svd", &vectors.adjoint("svd")?)?;
    (0..gram.rows).for_each(|i| *gram.at_mut(i, i) = gram.at(i, i) - T::ONE);
    Ok(gram.norm())
}

/// Whether a residual is within `bound` times the norm of each row and of each column of the
/// matrix. Rows and columns of zeros are compared with the norm of the matrix.
pub fn is_within_rounding<T: Scalar>(residual: &Matrix<T>, a: &Matrix<T>, bound: f64) -> bool {
    let (residual, sizes) = (row_and_column_norms(residual), row_and_column_norms(a));
    let total = a.norm();
    let within = |(&residual, &size): (&f64, &f64)| residual <= bound * if size > 0.0 { size } else { total };
    residual[0].iter().zip(&sizes[0]).all(within) && residual[1].iter().zip(&sizes[1]).all(within)
}

/// The norms of the rows, and of the columns, of a matrix of f32, whose squares are in the range of
/// f64.
pub fn row_and_column_norms<T: Scalar>(a: &Matrix<T>) -> [Vec<f64>; 2] {
    let (mut rows, mut columns) = (vec![0.0; a.rows], vec![0.0; a.columns]);
    for (i, total) in rows.iter_mut().enumerate() {
        for (value, column) in a.row(i).iter().zip(&mut columns) {
            let square = value.abs_sq();
            *total += square;
            *column += square;
        }
    }
    [rows, columns].map(|mut squares| {
        squares.iter_mut().for_each(|square| *square = square.sqrt());
        squares
    })
}

/// The value rounded to f32.
fn round_to_f32(value: f64) -> f64 {
    value.round_to_f32()
}

/// The product of matrices of f32, each element rounded once.
fn times(a: &Matrix<f64>, b: &Matrix<f64>) -> Result<Matrix<f64>, Error> {
    let mut product = a.times("svd", b)?;
    product.map(round_to_f32);
    Ok(product)
}
