//! Systems of equations and factorizations: `Nx.LinAlg`.
//!
//! Everything is computed in f64, or in complex numbers of two f64, and rounded once. The matrices
//! of a batch are shared between the threads, and so are the matrix products inside the
//! factorization of a large matrix. Small matrices of single precision go through Nx's own
//! algorithms, each step rounded as Nx rounds it, where the result is as accurate as any algorithm
//! can make it: then the last digits are Nx's.

mod cholesky;
mod determinant;
mod divide_and_conquer;
mod eigh;
mod factors;
mod implicit_ql;
mod implicit_qr;
mod lu;
mod matrix;
mod nx_compat;
mod qr;
mod reflectors;
mod rotations;
mod scalar;
mod scaled;
mod svd;
mod triangular;

use std::borrow::Cow;

use num_complex::Complex;

pub use self::nx_compat::NxAlgorithm;
pub use self::triangular::{MatrixTransform, Triangular};

use self::matrix::{Matrix, hypotenuse, noise};
use self::scalar::{Precision, Scalar};
use crate::cost::{
    self, Cost, EIGH_ELEMENT_COST, FACTORIZATION_PRODUCT_COST, LINALG_ELEMENT_COST, LINALG_MATRIX_COST,
    QR_ELEMENT_COST, SVD_ELEMENT_COST, Work,
};
use crate::error::ShapeDisplay;
use crate::exec::convert::conversion;
use crate::exec::gemm::blocked::Update;
use crate::exec::memory::scratch;
use crate::exec::simd::vector_cost;
use crate::exec::threads::parallel;
use crate::ops::cast::elements;
use crate::tensor::{Output, Tensor, byte_size};
use crate::{DType, Error};

/// Matrices with at most this number of rows and of columns go through Nx's own algorithms, and
/// have eigenvalues within rounding errors of zero flushed to zero.
const MAX_NX_COMPAT_SIZE: usize = 8;

/// Picoseconds of a multiplication and an addition in a factorization. (`linalg`.)
fn multiply_add_cost() -> Cost {
    vector_cost(FACTORIZATION_PRODUCT_COST)
}

/// The factorization that solves a system of equations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `A = P L U`, as in Nx since 0.11.
    Lu,
    /// `A = Q R`, as in Nx up to 0.10.
    Qr,
}

/// A batch of matrices, converted to the type that the operation computes with.
struct Batch<'a> {
    bytes: Cow<'a, [u8]>,
    rows: usize,
    columns: usize,
    count: usize,
}

impl<'a> Batch<'a> {
    /// Reads a tensor as a batch: its last two axes are the rows and columns of the matrices.
    fn new<T: Scalar>(op: &'static str, tensor: &'a Tensor<'_>) -> Result<Self, Error> {
        let [batch @ .., rows, columns] = tensor.shape() else {
            let problem = "are not those of matrices".to_string();
            return Err(Error::Shape { op, shapes: vec![tensor.shape().to_vec()], problem });
        };
        Self::of::<T>(op, tensor, batch.iter().product(), *rows, *columns)
    }

    /// `new`, which refuses matrices that are not square.
    fn square<T: Scalar>(op: &'static str, tensor: &'a Tensor<'_>) -> Result<Self, Error> {
        let batch = Self::new::<T>(op, tensor)?;
        if batch.rows != batch.columns {
            let problem = "are not those of square matrices".to_string();
            return Err(Error::Shape { op, shapes: vec![tensor.shape().to_vec()], problem });
        }
        Ok(batch)
    }

    fn of<T: Scalar>(
        op: &'static str,
        tensor: &'a Tensor<'_>,
        count: usize,
        rows: usize,
        columns: usize,
    ) -> Result<Self, Error> {
        Ok(Batch { bytes: elements(op, tensor, T::DTYPE)?, rows, columns, count })
    }

    fn matrix<T: Scalar>(&self, op: &'static str, index: usize) -> Result<Matrix<T>, Error> {
        let (rows, columns, width) = (self.rows, self.columns, T::DTYPE.width());
        let length = rows * columns;
        let bytes = T::view(&self.bytes[index * length * width..][..length * width]);
        let mut data = Vec::new();
        let error = || Error::TooLarge { op, dtype: T::DTYPE, shape: vec![rows, columns] };
        data.try_reserve_exact(length).map_err(|_| error())?;
        data.extend(bytes.iter().map(|&bytes| T::load(bytes)));
        Ok(Matrix { rows, columns, data })
    }
}

/// Computes `N` matrices for each matrix of a batch, and rounds them to the results; `cost` is the
/// estimated cost of one matrix of the batch.
fn compute_batch<T: Scalar, const N: usize>(
    op: &'static str,
    count: usize,
    cost: Cost,
    outs: [Output<'_>; N],
    compute: impl Fn(usize) -> Result<[Matrix<T>; N], Error> + Sync,
) -> Result<(), Error> {
    if count == 0 {
        return Ok(());
    }
    let width = T::DTYPE.width();
    let sizes = outs.each_ref().map(|out| out.shape.iter().product::<usize>() / count);
    let record = sizes.iter().try_fold(0usize, |sum, size| sum.checked_add(*size));
    let record = record.ok_or_else(|| Error::TooLarge { op, dtype: T::DTYPE, shape: sizes.to_vec() })?;
    let length = byte_size(op, T::DTYPE, &[count, record])?;
    let mut f64_results = scratch(op, T::DTYPE, &[count, record], length)?;
    if record == 0 {
        return Ok(());
    }
    let fill = |first: usize, part: &mut [u8]| {
        for (i, part) in part.chunks_exact_mut(record * width).enumerate() {
            let mut slots = T::view_mut(part).iter_mut();
            for matrix in compute(first + i)? {
                // The value comes first: `zip` takes a slot only if there is a value for it.
                for (value, slot) in matrix.data.into_iter().zip(slots.by_ref()) {
                    *slot = value.store();
                }
            }
        }
        Ok(())
    };
    parallel::try_fill(&mut f64_results, count, cost.max(1), fill)?;
    let mut start = 0;
    for (out, size) in outs.into_iter().zip(sizes) {
        let to = out.dtype.storage();
        out.write(op, |bytes| {
            if size == 0 {
                return Ok(());
            }
            let parts = bytes.chunks_exact_mut(size * to.width());
            for (part, record) in parts.zip(f64_results.chunks_exact(record * width)) {
                let values = &record[start * width..][..size * width];
                match conversion(T::DTYPE, to) {
                    Some(convert) => convert(values, part),
                    None => part.copy_from_slice(values),
                }
            }
            Ok(())
        })?;
        start += size;
    }
    Ok(())
}

/// Refuses a result whose shape is not the one that the operands ask for.
fn check_shape(op: &'static str, out: &Output<'_>, shape: &[usize]) -> Result<(), Error> {
    if out.shape == shape {
        return Ok(());
    }
    let problem = format!("differ: the result is of shape {}", ShapeDisplay(shape));
    Err(Error::Shape { op, shapes: vec![out.shape.to_vec()], problem })
}

/// The shape of the batch, followed by `sizes`.
fn batch_shape(input: &Tensor<'_>, sizes: &[usize]) -> Vec<usize> {
    let batch = input.shape().len().saturating_sub(2);
    [&input.shape()[..batch], sizes].concat()
}

/// The precision in which matrices with at most `size` rows and columns are computed for a result
/// of this type.
fn precision(dtype: DType, size: usize) -> Precision {
    let single = matches!(dtype, DType::F32 | DType::C64) && size <= MAX_NX_COMPAT_SIZE;
    if single { Precision::Single } else { Precision::Double }
}

/// The operation on each matrix of a batch, from which its cost is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A triangular system; the number counts the elements of the right-hand side.
    Triangular(usize),
    /// A system of equations; the number counts the elements of the right-hand side.
    Solve(usize),
    /// A determinant.
    Determinant,
    /// A Cholesky factorization.
    Cholesky,
    /// An LU factorization.
    Lu,
    /// A QR factorization.
    Qr,
    /// An eigenvalue decomposition.
    Eigh,
    /// A singular value decomposition.
    Svd,
}

impl Problem {
    /// The cost of one matrix of real or complex numbers.
    fn cost(self, complex: bool, rows: usize, columns: usize) -> Cost {
        let (m, n) = (rows.max(columns) as u64, rows.min(columns) as u64);
        let (size, square) = (m.saturating_mul(n), m.saturating_mul(m));
        let cube = size.saturating_mul(n);
        // The number of multiply-adds; the cost of an element besides the multiply-adds, which
        // dominates up to some hundred rows; and the number of elements of the right-hand side or
        // of the largest result.
        let (multiply_adds, element_cost, extra_elements) = match self {
            Problem::Triangular(right) => (n.saturating_mul(right as u64), LINALG_ELEMENT_COST, right as u64),
            Problem::Solve(right) => {
                (n.saturating_mul(right as u64).saturating_add(cube), LINALG_ELEMENT_COST, right as u64)
            }
            Problem::Determinant | Problem::Cholesky => (cube / 3, LINALG_ELEMENT_COST, 0),
            Problem::Lu => (cube, LINALG_ELEMENT_COST, 0),
            Problem::Qr => (m.saturating_mul(size).saturating_mul(2), QR_ELEMENT_COST, square),
            Problem::Eigh => (cube.saturating_mul(6), EIGH_ELEMENT_COST, 0),
            Problem::Svd => (m.saturating_mul(size).saturating_mul(10), SVD_ELEMENT_COST, square),
        };
        let elements = size
            .saturating_mul(element_cost)
            .saturating_add(extra_elements.saturating_mul(LINALG_ELEMENT_COST));
        let cost = multiply_adds
            .saturating_mul(multiply_add_cost())
            .saturating_add(elements)
            .saturating_add(LINALG_MATRIX_COST);
        // A product of complex numbers is four real products.
        if complex { cost.saturating_mul(4) } else { cost }
    }

    /// The work for all matrices of a batch, whose shape ends with the two axes of the matrices.
    #[must_use]
    pub fn work(self, dtype: DType, shape: &[usize]) -> Work {
        let [batch @ .., rows, columns] = shape else { return 0 };
        let matrices = batch.iter().fold(1, |n: usize, &size| n.saturating_mul(size));
        cost::work(matrices, self.cost(dtype.is_complex(), *rows, *columns))
    }
}

/// The number of elements on the right side of each system of a batch, given the shape of the matrices
/// and the size of the right-hand sides.
#[must_use]
pub fn right_size(matrices: &[usize], size: usize) -> usize {
    let batch: usize = matrices.iter().rev().skip(2).product();
    size / batch.max(1)
}

fn require_float(op: &'static str, dtype: DType) -> Result<(), Error> {
    if dtype.is_integer() {
        return Err(Error::UnsupportedType { op, dtypes: vec![dtype] });
    }
    Ok(())
}

/// Evaluates an expression that is generic over `Scalar`, with complex numbers for `$T` if the
/// condition is true and with f64 otherwise.
macro_rules! with_scalar {
    ($complex:expr, $T:ident => $body:expr) => {
        if $complex {
            type $T = Complex<f64>;
            $body
        } else {
            type $T = f64;
            $body
        }
    };
}

/// The right-hand sides for a batch of matrices: where `a` has the shape `{..., n, n}`, a `b` of
/// the shape `{..., n}`, with one axis less, holds vectors.
fn right_hand_sides<'a, T: Scalar>(
    op: &'static str,
    a: &Tensor<'_>,
    b: &'a Tensor<'_>,
    left_side: bool,
) -> Result<Batch<'a>, Error> {
    let mismatch = || {
        let shapes = vec![a.shape().to_vec(), b.shape().to_vec()];
        Error::Shape { op, shapes, problem: "do not go together".to_string() }
    };
    let [batch @ .., n, _] = a.shape() else { return Err(mismatch()) };
    let count = batch.iter().product();
    let (rows, columns) = match b.shape().strip_prefix(batch) {
        Some([size]) if left_side => (*size, 1),
        Some([size]) => (1, *size),
        Some([rows, columns]) => (*rows, *columns),
        _ => return Err(mismatch()),
    };
    if *n != if left_side { rows } else { columns } {
        return Err(mismatch());
    }
    Batch::of::<T>(op, b, count, rows, columns)
}

/// `Nx.LinAlg.triangular_solve/3`
///
/// # Errors
///
/// `Error::Singular`, `Error::Shape`, and `Error::TooLarge` if there is no memory.
pub fn triangular_solve(
    out: Output<'_>,
    a: &Tensor<'_>,
    b: &Tensor<'_>,
    system: Triangular,
) -> Result<(), Error> {
    const OP: &str = "triangular_solve";
    check_shape(OP, &out, b.shape())?;
    require_float(OP, out.dtype)?;
    with_scalar!(a.dtype().is_complex() || b.dtype().is_complex(), T => {
        let left = Batch::square::<T>(OP, a)?;
        let right = right_hand_sides::<T>(OP, a, b, system.left_side)?;
        let cost = Problem::Triangular(right.rows * right.columns).cost(T::COMPLEX, left.rows, left.rows);
        compute_batch::<T, 1>(OP, left.count, cost, [out], |i| {
            Ok([triangular::solve(system, left.matrix(OP, i)?, right.matrix(OP, i)?)?])
        })
    })
}

/// `Nx.LinAlg.solve/2`
///
/// # Errors
///
/// The errors of `triangular_solve`.
pub fn solve(out: Output<'_>, a: &Tensor<'_>, b: &Tensor<'_>, method: Method) -> Result<(), Error> {
    const OP: &str = "solve";
    check_shape(OP, &out, b.shape())?;
    require_float(OP, out.dtype)?;
    let dtype = out.dtype;
    with_scalar!(a.dtype().is_complex() || b.dtype().is_complex(), T => {
        let left = Batch::square::<T>(OP, a)?;
        let right = right_hand_sides::<T>(OP, a, b, true)?;
        let n = left.rows;
        let precision = precision(dtype, n);
        let cost = Problem::Solve(right.rows * right.columns).cost(T::COMPLEX, n, n);
        compute_batch::<T, 1>(OP, left.count, cost, [out], |i| {
            let (a, mut b) = (left.matrix::<T>(OP, i)?, right.matrix::<T>(OP, i)?);
            if method == Method::Lu {
                return Ok([lu::lu(a, precision)?.solve(&b, precision)?]);
            }
            let (q, r) = factor_qr(a, n, 1e-10, precision, NxAlgorithm::V0_9)?;
            b = q.adjoint(OP)?.times(OP, &b)?;
            b.map(|value| precision.round(value));
            triangular::back_substitution(r, &mut b)?;
            Ok([b])
        })
    })
}

/// `Nx.LinAlg.determinant/1`. No intermediate value over- or underflows: the result does only if
/// the determinant is out of the range of its type.
///
/// # Errors
///
/// `Error::Shape`, and `Error::TooLarge` if there is no memory.
pub fn determinant(out: Output<'_>, a: &Tensor<'_>) -> Result<(), Error> {
    const OP: &str = "determinant";
    check_shape(OP, &out, &batch_shape(a, &[]))?;
    require_float(OP, out.dtype)?;
    let dtype = out.dtype;
    with_scalar!(a.dtype().is_complex(), T => {
        let batch = Batch::square::<T>(OP, a)?;
        let cost = Problem::Determinant.cost(T::COMPLEX, batch.rows, batch.rows);
        let precision = precision(dtype, batch.rows);
        compute_batch::<T, 1>(OP, batch.count, cost, [out], |i| {
            let value = determinant::determinant(batch.matrix::<T>(OP, i)?, precision)?;
            Ok([Matrix { rows: 1, columns: 1, data: vec![value] }])
        })
    })
}

/// `Nx.LinAlg.cholesky/1`. Reads only the lower triangle. If a matrix is not positive definite, the
/// result holds NaN from the row of the failing pivot on.
///
/// # Errors
///
/// `Error::Shape`, and `Error::TooLarge` if there is no memory.
pub fn cholesky(out: Output<'_>, a: &Tensor<'_>) -> Result<(), Error> {
    const OP: &str = "cholesky";
    check_shape(OP, &out, a.shape())?;
    require_float(OP, out.dtype)?;
    let dtype = out.dtype;
    with_scalar!(a.dtype().is_complex(), T => {
        let batch = Batch::square::<T>(OP, a)?;
        let precision = precision(dtype, batch.rows);
        compute_batch::<T, 1>(OP, batch.count, Problem::Cholesky.cost(T::COMPLEX, batch.rows, batch.rows), [out], |i| {
            Ok([cholesky::cholesky(batch.matrix::<T>(OP, i)?, precision)?])
        })
    })
}

/// `Nx.LinAlg.lu/1`: `P`, `L` and `U`.
///
/// # Errors
///
/// `Error::Shape`, and `Error::TooLarge` if there is no memory.
pub fn lu(outs: [Output<'_>; 3], a: &Tensor<'_>, algorithm: NxAlgorithm) -> Result<(), Error> {
    const OP: &str = "lu";
    for out in &outs {
        check_shape(OP, out, a.shape())?;
    }
    require_float(OP, outs[1].dtype)?;
    let dtype = outs[1].dtype;
    with_scalar!(a.dtype().is_complex(), T => {
        let batch = Batch::square::<T>(OP, a)?;
        let n = batch.rows;
        let precision = precision(dtype, n);
        compute_batch::<T, 3>(OP, batch.count, Problem::Lu.cost(T::COMPLEX, n, n), outs, |i| {
            let a = batch.matrix::<T>(OP, i)?;
            let nx_result = if precision == Precision::Single { nx_compat::lu(&a, algorithm)? } else { None };
            let lu = match nx_result {
                Some(lu) => lu,
                None => lu::lu(a, precision)?,
            };
            let mut p = Matrix::zeros(OP, n, n)?;
            for (column, &row) in lu.rows.iter().enumerate() {
                *p.at_mut(row, column) = T::ONE;
            }
            let (l, u) = lu.split()?;
            Ok([p, l, u])
        })
    })
}

/// `Nx.LinAlg.qr/2`: `Q` and `R`, reduced or complete as the shape of `Q` asks for. Elements no
/// greater than `eps` become zero if they are as small as rounding errors.
///
/// # Errors
///
/// `Error::Shape`, and `Error::TooLarge` if there is no memory.
pub fn qr([q, r]: [Output<'_>; 2], a: &Tensor<'_>, eps: f64, algorithm: NxAlgorithm) -> Result<(), Error> {
    const OP: &str = "qr";
    require_float(OP, q.dtype)?;
    let dtype = q.dtype;
    let columns = q.shape.last().copied().unwrap_or_default();
    with_scalar!(a.dtype().is_complex(), T => {
        let batch = Batch::new::<T>(OP, a)?;
        let (m, n) = (batch.rows, batch.columns);
        if columns != m && columns != n.min(m) {
            check_shape(OP, &q, &batch_shape(a, &[m, n.min(m)]))?;
        }
        check_shape(OP, &q, &batch_shape(a, &[m, columns]))?;
        check_shape(OP, &r, &batch_shape(a, &[columns, n]))?;
        let precision = precision(dtype, m.max(n));
        compute_batch::<T, 2>(OP, batch.count, Problem::Qr.cost(T::COMPLEX, m, n), [q, r], |i| {
            let (q, r) = factor_qr(batch.matrix::<T>(OP, i)?, columns, eps, precision, algorithm)?;
            Ok([q, r])
        })
    })
}

/// Factors a matrix with Nx's algorithm if its result is as accurate as the type allows, and with
/// `qr::qr` otherwise.
fn factor_qr<T: Scalar>(
    a: Matrix<T>,
    columns: usize,
    eps: f64,
    precision: Precision,
    algorithm: NxAlgorithm,
) -> Result<factors::Qr<T>, Error> {
    const OP: &str = "qr";
    if !a.is_finite() {
        let nan = |rows, columns| -> Result<Matrix<T>, Error> {
            let mut matrix = Matrix::zeros(OP, rows, columns)?;
            matrix.map(|_| T::real(f64::NAN));
            Ok(matrix)
        };
        return Ok((nan(a.rows, columns)?, nan(columns.min(a.rows), a.columns)?));
    }
    if precision == Precision::Single {
        let (q, r) = nx_compat::householder::qr(&a, columns, eps, precision, algorithm)?;
        let bound = nx_compat::rounding_bound(&a);
        let mut residual = q.times(OP, &r)?;
        residual.data.iter_mut().zip(&a.data).for_each(|(residual, &a)| *residual = *residual - a);
        let orthonormality_error = nx_compat::orthonormality_error(&q.adjoint(OP)?)?;
        if nx_compat::is_within_rounding(&residual, &a, bound)
            && orthonormality_error <= bound
            && norm_below_diagonal(&r)? <= bound * a.norm()
        {
            return Ok((q, r));
        }
    }
    qr::qr(a, columns, eps)
}

/// The norm of the elements below the diagonal.
fn norm_below_diagonal<T: Scalar>(a: &Matrix<T>) -> Result<f64, Error> {
    const OP: &str = "qr";
    let mut below = Matrix::zeros(OP, 1, (0..a.rows).map(|i| i.min(a.columns)).sum())?;
    let elements = (0..a.rows).flat_map(|i| &a.row(i)[..i.min(a.columns)]);
    below.data.iter_mut().zip(elements).for_each(|(to, &from)| *to = from);
    Ok(below.norm())
}

/// `Nx.LinAlg.eigh/2`: the eigenvalues, descending by magnitude, and the eigenvectors as columns,
/// of the Hermitian part of each matrix. A matrix with an element that is not finite gives NaN.
///
/// The largest component of each eigenvector is real and positive, except where Nx's algorithm
/// chooses another sign.
///
/// # Errors
///
/// `Error::Shape`, `Error::TooLarge` if there is no memory, and `Error::Argument` if the algorithm
/// does not converge.
pub fn eigh(
    [values, vectors]: [Output<'_>; 2],
    a: &Tensor<'_>,
    eps: f64,
    algorithm: NxAlgorithm,
) -> Result<(), Error> {
    const OP: &str = "eigh";
    require_float(OP, values.dtype)?;
    let dtype = vectors.dtype;
    with_scalar!(a.dtype().is_complex(), T => {
        let batch = Batch::square::<T>(OP, a)?;
        let n = batch.rows;
        check_shape(OP, &values, &batch_shape(a, &[n]))?;
        check_shape(OP, &vectors, a.shape())?;
        let precision = precision(dtype, n);
        compute_batch::<T, 2>(OP, batch.count, Problem::Eigh.cost(T::COMPLEX, n, n), [values, vectors], |i| {
            let a = batch.matrix::<T>(OP, i)?;
            let (mut values, mut vectors) = (Matrix::zeros(OP, 1, n)?, Matrix::zeros(OP, n, n)?);
            if !a.is_finite() {
                values.map(|_| T::real(f64::NAN));
                vectors.map(|_| T::real(f64::NAN));
                return Ok([values, vectors]);
            }
            if precision == Precision::Single && let Some(found) = nx_compat::eigh(&a, eps, algorithm)? {
                return Ok(found);
            }
            let (d, found) = eigh::eigh(&a)?;
            let mut order = matrix::vector(OP, 0..n)?;
            order.sort_unstable_by(|&a, &b| {
                d[b].abs().total_cmp(&d[a].abs()).then(d[b].total_cmp(&d[a])).then(a.cmp(&b))
            });
            // The norm of the matrix `|A|` of magnitudes is at most `n` times the norm of `A`.
            let tiny = noise(n, n) * n as f64 * order.first().map_or(0.0, |&from| d[from].abs());
            for (index, &from) in order.iter().enumerate() {
                let row = found.row(from);
                values.data[index] = T::real(if d[from].abs() <= tiny && is_zero_within_rounding(&a, row, d[from]) { 0.0 } else { d[from] });
                let phase = first_largest_component(row);
                let phase = phase.conj().scale(1.0 / phase.abs());
                for (value, &found) in vectors.row_mut(index).iter_mut().zip(row) {
                    // Makes a negative zero positive.
                    *value = (found * phase).flush_to_zero(0.0);
                }
            }
            let vectors = vectors.transpose(OP)?;
            Ok([values, vectors])
        })
    })
}

/// Whether an eigenvalue can't be told from zero because the elements of the matrix are rounded:
/// `|vᴴ| |A| |v|` bounds the effect of their rounding errors. Only small matrices, for which Nx's
/// documentation shows these zeros, are tested; larger matrices keep their small eigenvalues.
fn is_zero_within_rounding<T: Scalar>(a: &Matrix<T>, vector: &[T], value: f64) -> bool {
    let n = vector.len();
    if n > MAX_NX_COMPAT_SIZE {
        return false;
    }
    let weights = vector.iter().map(|v| v.abs());
    let total = weights.clone().enumerate().map(|(i, weight)| {
        let row = a.row(i).iter().zip(weights.clone());
        weight * row.map(|(a, weight)| noise(n, n) * a.abs() * weight).sum::<f64>()
    });
    value.abs() <= total.sum::<f64>()
}

/// The first of the largest components of a vector. Components that differ from the largest only by
/// rounding errors count as equally large.
fn first_largest_component<T: Scalar>(row: &[T]) -> T {
    let max_abs = matrix::max_abs(row);
    let first = row.iter().copied().find(|v| v.abs() >= max_abs * (1.0 - 1e-6));
    first.filter(|v| v.abs() > 0.0).unwrap_or(T::ONE)
}

/// `Nx.LinAlg.svd/2` of real matrices: `U`, `S` and `Vᵀ`, full or thin as the shape of `U` asks
/// for. A matrix with an element that is not finite gives NaN.
///
/// The largest component of each right vector is positive, except where Nx's algorithm chooses
/// another sign.
///
/// # Errors
///
/// `Error::UnsupportedType` for complex matrices, and the errors of `eigh`.
pub fn svd([u, s, vt]: [Output<'_>; 3], a: &Tensor<'_>, algorithm: NxAlgorithm) -> Result<(), Error> {
    const OP: &str = "svd";
    require_float(OP, s.dtype)?;
    if a.dtype().is_complex() {
        return Err(Error::UnsupportedType { op: OP, dtypes: vec![a.dtype()] });
    }
    let batch = Batch::new::<f64>(OP, a)?;
    let (m, n) = (batch.rows, batch.columns);
    let k = m.min(n);
    let (u_columns, v_rows) = match (u.shape.last(), vt.shape.len().checked_sub(2).map(|i| vt.shape[i])) {
        (Some(&u), Some(v)) if (u, v) == (m, n) => (m, n),
        _ => (k, k),
    };
    check_shape(OP, &u, &batch_shape(a, &[m, u_columns]))?;
    check_shape(OP, &s, &batch_shape(a, &[k]))?;
    check_shape(OP, &vt, &batch_shape(a, &[v_rows, n]))?;
    let (dtype, from_integers) = (s.dtype, a.dtype().is_integer());
    let precision = precision(dtype, m.max(n));
    compute_batch::<f64, 3>(OP, batch.count, Problem::Svd.cost(false, m, n), [u, s, vt], |i| {
        let mut a = batch.matrix::<f64>(OP, i)?;
        if !a.is_finite() {
            let nan = |rows, columns| {
                Matrix::zeros(OP, rows, columns).map(|mut matrix| {
                    matrix.map(|_: f64| f64::NAN);
                    matrix
                })
            };
            return Ok([nan(m, u_columns)?, nan(1, k)?, nan(v_rows, n)?]);
        }
        let is_wide = m < n;
        if is_wide {
            a = a.transpose(OP)?;
        }
        let columns = if is_wide { v_rows } else { u_columns };
        let single = precision == Precision::Single;
        let nx_result = if single { nx_compat::svd(&a, columns, algorithm, from_integers)? } else { None };
        let factors::Svd { u, s, v } = match nx_result {
            Some(found) => found,
            None => normalize_signs(&a, svd::svd(&a, columns)?, is_wide, dtype)?,
        };
        let s = Matrix { rows: 1, columns: k, data: s };
        if is_wide { Ok([v.transpose(OP)?, s, u]) } else { Ok([u.transpose(OP)?, s, v]) }
    })
}

/// Chooses signs so that the largest component of each right singular vector is positive; the right
/// vectors are in `u` if the matrix was wide. Flushes singular values to zero that come from the
/// rounding of the matrix to f32, so that `Nx.LinAlg.pinv/2`, whose limit is lower, doesn't divide
/// by them.
fn normalize_signs(
    a: &Matrix<f64>,
    mut svd: factors::Svd,
    is_wide: bool,
    dtype: DType,
) -> Result<factors::Svd, Error> {
    for row in 0..svd.s.len() {
        let sign = first_largest_component(if is_wide { svd.u.row(row) } else { svd.v.row(row) }).signum();
        for row in [svd.u.row_mut(row), svd.v.row_mut(row)] {
            // Makes negative zeros positive.
            row.iter_mut().for_each(|x| *x = (*x * sign).flush_to_zero(0.0));
        }
    }
    if dtype == DType::F32 {
        flush_rounding_noise(a, &mut svd)?;
    }
    Ok(svd)
}

/// Sets singular values to zero that can't be told from the effect of rounding the elements of the
/// matrix to f32, which `|uᵀ| |A| |v|` bounds. Small singular values of a small row or of a small
/// block stay.
fn flush_rounding_noise(a: &Matrix<f64>, svd: &mut factors::Svd) -> Result<(), Error> {
    const OP: &str = "svd";
    let unit = 2.0 * f64::from(f32::EPSILON);
    let limit = unit * svd.s.first().copied().unwrap_or_default();
    // The small values are compared by the norm of all of them, so that many small ones together
    // are not lost.
    let mut total = 0.0f64;
    let small = svd.s.iter().rev().take_while(|s| {
        total = hypotenuse(total, **s);
        total <= limit
    });
    let (k, count) = (svd.s.len(), small.count());
    if count == 0 {
        return Ok(());
    }
    let abs_rows = |matrix: &Matrix<f64>, rows: std::ops::Range<usize>| {
        let mut magnitudes = matrix.some_rows(OP, rows)?;
        magnitudes.map(f64::abs);
        Ok::<_, Error>(magnitudes)
    };
    let left = abs_rows(&svd.u, k - count..k)?;
    let mut sums = Matrix::zeros(OP, count, a.columns)?;
    let (magnitudes, n) = (abs_rows(a, 0..a.rows)?, a.columns);
    let (sizes, out) = ([count, a.rows, n], (&mut sums.data[..], [n, 1]));
    matrix::multiply(OP, sizes, Update::Replace, left.view(), magnitudes.view(), out)?;
    for (i, sums) in sums.data.chunks_exact(n).enumerate() {
        let max_sum: f64 = sums.iter().zip(svd.v.row(k - count + i)).map(|(sum, v)| sum * v.abs()).sum();
        if svd.s[k - count + i] <= unit * max_sum {
            svd.s[k - count + i] = 0.0;
        }
    }
    // Restores the descending order of the values, and of the vectors with them.
    svd::sort_descending(&mut svd.s, &mut svd.u, &mut svd.v)
}
