//! Nx's own steps for the few rows and columns whose last digits, and signs, its
//! documentation shows: those of Nx since 0.10 and those of Nx 0.9.
//!
//! Each is tried first, where it applies, and its result is only taken if it is as
//! good as Nx's documentation needs; so what calls these has another algorithm at
//! hand.

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

/// Whose steps small matrices of single precision go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// Those of Nx since 0.10.
    Current,
    /// The same, and those of a singular value decomposition without full matrices: a
    /// square one looks alike either way.
    Thin,
    /// Those of Nx 0.9.
    Former,
}

/// Eigenvalues and singular values of at most so many columns, or rows if there
/// are fewer of them ...
const SHORT: usize = 3;
/// ... and at most so many of the others.
const LONG: usize = 4;

/// What Nx's functions take for `:eps` if they call `Nx.LinAlg.eigh/2` themselves.
const EPS: f64 = 1e-4;

/// How many times as far from orthogonal left singular vectors may be if they come from `AᵀA`, whose
/// condition is the square of that of `A`. Only those of integers with two columns may: Nx's documentation
/// shows what that costs them.
const SQUARED: f64 = 8.0;

/// How far from right a result of Nx 0.9 may be: its documentation shows some whose
/// third digit is wrong ...
const FORMER: f64 = 4e-3;
/// ... and how many times the least the greatest eigenvalue may be then.
const CONDITION: f64 = 100.0;

/// How much greater than its pivot an element may be, in Nx 0.9.
const GROWTH: f64 = 4.0;

/// A few roundings for each row and column: what any algorithm leaves.
pub fn roundings<T>(a: &Matrix<T>) -> f64 {
    f64::from(f32::EPSILON) * 4.0 * (a.rows + a.columns) as f64
}

/// The eigenvalues, and the eigenvectors as columns, of a Hermitian matrix; none if
/// there are no steps for it.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn eigh<T: Scalar>(a: &Matrix<T>, eps: f64, steps: Steps) -> Result<Option<[Matrix<T>; 2]>, Error> {
    const OP: &str = "eigh";
    let n = a.rows;
    if T::COMPLEX || !(2..=SHORT).contains(&n) {
        return Ok(None);
    }
    let at = |i: usize| single(0.5 * (a.at(i / n, i % n).re() + a.at(i % n, i / n).re()));
    let a = Matrix { rows: n, columns: n, data: (0..n * n).map(at).collect() };
    let (values, vectors) = eigenvectors(&a, eps, steps);
    let vectors = vectors.transpose(OP)?;
    if !fits(&a, &vectors, &values, &vectors, steps, false)? {
        return Ok(None);
    }
    let real = |rows, data: Vec<f64>| {
        let data = data.into_iter().map(T::real).collect();
        Matrix { rows, columns: n, data }
    };
    Ok(Some([real(1, values), real(n, vectors.transpose(OP)?.data)]))
}

/// The same for a symmetric matrix of f32, whether it is any good or not.
fn eigenvectors(a: &Matrix<f64>, eps: f64, steps: Steps) -> (Vec<f64>, Matrix<f64>) {
    let (mut values, mut vectors) = match steps {
        Steps::Current | Steps::Thin => jacobi::eigh(a, eps),
        Steps::Former => qr_iteration::eigh(a, eps),
    };
    values.iter_mut().for_each(|value| *value = single(*value));
    vectors.map(single);
    (values, vectors)
}

/// Singular values and vectors, `columns` left ones; none if there are no steps for
/// the matrix, which is at least as high as wide. Whether it comes as `whole` numbers.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn svd(a: &Matrix<f64>, columns: usize, steps: Steps, whole: bool) -> Result<Option<Svd>, Error> {
    if !(2..=SHORT).contains(&a.columns) || a.rows > LONG || a.data.iter().all(|&a| a == 0.0) {
        return Ok(None);
    }
    let mut a = a.copy("svd")?;
    a.map(single);
    let svd = match steps {
        Steps::Thin => gram::svd(&a)?,
        Steps::Current | Steps::Former => polar::svd(&a, columns, steps)?,
    };
    Ok(if fits(&a, &svd.u, &svd.s, &svd.v, steps, whole)? { Some(svd) } else { None })
}

/// `P`, `L` and `U`, with the pivots of Nx 0.9: the largest elements of the columns
/// of the matrix itself. None if there are no steps for it, or other pivots are
/// called for.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn lu<T: Scalar>(a: &Matrix<T>, steps: Steps) -> Result<Option<Lu<T>>, Error> {
    let n = a.rows;
    if steps != Steps::Former || !(2..=LONG).contains(&n) {
        return Ok(None);
    }
    let lu = crate::ops::linalg::lu::by_columns(a.copy("lu")?);
    let factors = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
    let greatest = factors.fold(0.0, |m: f64, (i, j)| m.max(lu.packed.at(i, j).abs()));
    Ok(if lu.packed.is_finite() && greatest <= GROWTH { Some(lu) } else { None })
}

/// Whether `A = U S Vᵀ`, and the rows of vectors are orthonormal.
fn fits(
    a: &Matrix<f64>,
    u: &Matrix<f64>,
    s: &[f64],
    v: &Matrix<f64>,
    steps: Steps,
    whole: bool,
) -> Result<bool, Error> {
    let mut stretched = v.copy("svd")?;
    for (i, &s) in s.iter().enumerate() {
        stretched.row_mut(i).iter_mut().for_each(|v| *v *= s);
    }
    let u_part = Matrix { rows: s.len(), columns: u.columns, data: u.data[..s.len() * u.columns].to_vec() };
    let mut rest = u_part.transpose("svd")?.times("svd", &stretched)?;
    rest.data.iter_mut().zip(&a.data).for_each(|(rest, a)| *rest -= a);
    let (least, greatest) = s.iter().fold((f64::INFINITY, 0.0), |(least, greatest): (f64, f64), s| {
        (least.min(s.abs()), greatest.max(s.abs()))
    });
    let (bound, left) = match steps {
        Steps::Current => (roundings(a), roundings(a)),
        Steps::Thin if whole && a.columns == 2 => (roundings(a), SQUARED * roundings(a)),
        Steps::Thin => (roundings(a), roundings(a)),
        Steps::Former if greatest <= least * CONDITION => (FORMER, FORMER),
        Steps::Former => return Ok(false),
    };
    let fits = match steps {
        // Graded matrices take another way.
        Steps::Former => rest.norm() <= bound * a.norm(),
        Steps::Current | Steps::Thin => is_rounding(&rest, a, bound),
    };
    Ok(fits && oblique(v)? <= bound && oblique(u)? <= left)
}

/// How far from orthonormal rows are.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn oblique<T: Scalar>(vectors: &Matrix<T>) -> Result<f64, Error> {
    let mut gram = vectors.times("svd", &vectors.adjoint("svd")?)?;
    (0..gram.rows).for_each(|i| *gram.at_mut(i, i) = gram.at(i, i) - T::ONE);
    Ok(gram.norm())
}

/// Whether a residual is no more than a rounding of every row and every column of the matrix; rows and
/// columns of zeros are measured by all of it.
pub fn is_rounding<T: Scalar>(rest: &Matrix<T>, a: &Matrix<T>, bound: f64) -> bool {
    let (rest, sizes) = (norms(rest), norms(a));
    let total = a.norm();
    let fits = |(&rest, &size): (&f64, &f64)| rest <= bound * if size > 0.0 { size } else { total };
    rest[0].iter().zip(&sizes[0]).all(fits) && rest[1].iter().zip(&sizes[1]).all(fits)
}

/// The norms of the rows, and of the columns, of a matrix of f32, whose squares f64 has room for.
pub fn norms<T: Scalar>(a: &Matrix<T>) -> [Vec<f64>; 2] {
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

/// Rounded to single precision.
fn single(value: f64) -> f64 {
    value.single()
}

/// The product of matrices of f32, each element rounded once.
fn times(a: &Matrix<f64>, b: &Matrix<f64>) -> Result<Matrix<f64>, Error> {
    let mut product = a.times("svd", b)?;
    product.map(single);
    Ok(product)
}
