//! Systems of equations and factorizations: `Nx.LinAlg`.
//!
//! Everything is computed in f64, or in pairs of it, and rounded once. A batch is
//! spread over the threads, and so are the products of blocks that large matrices
//! are factored with. Matrices of single precision with few rows go through Nx's own
//! steps, each rounded as Nx rounds it, where those steps are as accurate as any: so
//! the last digits are Nx's too.

mod cholesky;
mod determinant;
mod divide_and_conquer;
mod eigh;
mod lu;
mod matrix;
mod qr;
mod reflectors;
mod rotations;
mod scalar;
mod steps;
mod svd;
mod triangular;

use std::borrow::Cow;

use num_complex::Complex;

pub use self::steps::Steps;
pub use self::triangular::{Transform, Triangular};

use self::matrix::{Matrix, noise};
use self::scalar::{Precision, Scalar};
use crate::dtype::convert::conversion;
use crate::error::ShapeDisplay;
use crate::exec::gemm::blocked::{Update, multiply};
use crate::exec::simd::vector_cost;
use crate::exec::threads::parallel;
use crate::exec::threads::parallel::{Cost, Work};
use crate::ops::cast::elements;
use crate::tensor::{Output, Tensor, byte_size, scratch};
use crate::{DType, Error};

/// Matrices with at most so many rows and columns go through Nx's steps.
const FEW: usize = 8;

/// Picoseconds of a multiplication and an addition in a factorization. (`linalg`.)
fn step() -> Cost {
    vector_cost(16)
}

/// Picoseconds of an element that is only copied, converted and divided.
const OTHER: Cost = 5_000;

/// How a system of equations is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By `A = P L U`, as Nx does since 0.11.
    Lu,
    /// By `A = Q R`, as Nx did up to 0.10.
    Qr,
}

/// A batch of matrices, converted to what is computed with.
struct Batch<'a> {
    bytes: Cow<'a, [u8]>,
    rows: usize,
    columns: usize,
    count: usize,
}

impl<'a> Batch<'a> {
    /// The last two axes of a tensor are those of the matrices.
    fn new<T: Scalar>(op: &'static str, tensor: &'a Tensor<'_>) -> Result<Self, Error> {
        let [batch @ .., rows, columns] = tensor.shape() else {
            let problem = "are not those of matrices".to_string();
            return Err(Error::Shape { op, shapes: vec![tensor.shape().to_vec()], problem });
        };
        Self::of::<T>(op, tensor, batch.iter().product(), *rows, *columns)
    }

    /// The same for square matrices.
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

/// Computes several matrices for each of a batch, and rounds them to the
/// results; `cost` is the estimate for one of the batch.
fn each<T: Scalar, const N: usize>(
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
    let mut wide = scratch(op, T::DTYPE, &[count, record], length)?;
    if record == 0 {
        return Ok(());
    }
    let fill = |first: usize, part: &mut [u8]| {
        for (i, part) in part.chunks_exact_mut(record * width).enumerate() {
            let mut slots = T::view_mut(part).iter_mut();
            for matrix in compute(first + i)? {
                // In this order, a slot is only taken where there is a value.
                for (value, slot) in matrix.data.into_iter().zip(slots.by_ref()) {
                    *slot = value.store();
                }
            }
        }
        Ok(())
    };
    parallel::try_fill(&mut wide, count, cost.max(1), fill)?;
    let mut start = 0;
    for (out, size) in outs.into_iter().zip(sizes) {
        let to = out.dtype.storage();
        out.write(op, |bytes| {
            if size == 0 {
                return Ok(());
            }
            let parts = bytes.chunks_exact_mut(size * to.width());
            for (part, record) in parts.zip(wide.chunks_exact(record * width)) {
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

/// Whether a result has the shape that the operands ask for.
fn expect(op: &'static str, out: &Output<'_>, shape: &[usize]) -> Result<(), Error> {
    if out.shape == shape {
        return Ok(());
    }
    let problem = format!("differ: the result is of shape {}", ShapeDisplay(shape));
    Err(Error::Shape { op, shapes: vec![out.shape.to_vec()], problem })
}

/// The shape of the batch, then the sizes.
fn shaped(input: &Tensor<'_>, sizes: &[usize]) -> Vec<usize> {
    let batch = input.shape().len().saturating_sub(2);
    [&input.shape()[..batch], sizes].concat()
}

/// How to compute matrices of that many rows and columns for that result.
fn precision(dtype: DType, size: usize) -> Precision {
    let single = matches!(dtype, DType::F32 | DType::C64) && size <= FEW;
    if single { Precision::Single } else { Precision::Double }
}

/// What is done with each matrix of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A triangular system with so many elements on the right side.
    Triangular(usize),
    /// A system of equations with so many elements on the right side.
    Solve(usize),
    /// A determinant.
    Determinant,
    /// A factorization.
    Cholesky,
    /// A factorization.
    Lu,
    /// A factorization.
    Qr,
    /// Eigenvalues and eigenvectors.
    Eigh,
    /// Singular values and vectors.
    Svd,
}

impl Problem {
    /// The work for one matrix, of real numbers or complex ones.
    fn cost(self, complex: bool, rows: usize, columns: usize) -> Cost {
        let (m, n) = (rows.max(columns) as u64, rows.min(columns) as u64);
        let (size, square) = (m.saturating_mul(n), m.saturating_mul(m));
        let cube = size.saturating_mul(n);
        // What is multiplied and added up, what the elements cost besides, which is most of it up
        // to some hundred rows, and how many there are on the right or in the largest result.
        let (steps, element, others) = match self {
            Problem::Triangular(right) => (n.saturating_mul(right as u64), OTHER, right as u64),
            Problem::Solve(right) => {
                (n.saturating_mul(right as u64).saturating_add(cube), OTHER, right as u64)
            }
            Problem::Determinant | Problem::Cholesky => (cube / 3, OTHER, 0),
            Problem::Lu => (cube, OTHER, 0),
            Problem::Qr => (m.saturating_mul(size).saturating_mul(2), 20_000, square),
            Problem::Eigh => (cube.saturating_mul(6), 105_000, 0),
            Problem::Svd => (m.saturating_mul(size).saturating_mul(10), 140_000, square),
        };
        let elements = size.saturating_mul(element).saturating_add(others.saturating_mul(OTHER));
        // Even the smallest takes memory from the heap.
        let cost = steps.saturating_mul(step()).saturating_add(elements).saturating_add(500_000);
        // Each product of complex numbers is four.
        if complex { cost.saturating_mul(4) } else { cost }
    }

    /// The work for all of a batch, of a shape whose last two axes are those of
    /// the matrices.
    #[must_use]
    pub fn work(self, dtype: DType, shape: &[usize]) -> Work {
        let [batch @ .., rows, columns] = shape else { return 0 };
        let matrices = batch.iter().fold(1, |n: usize, &size| n.saturating_mul(size));
        parallel::work(matrices, self.cost(dtype.is_complex(), *rows, *columns))
    }
}

fn floating(op: &'static str, dtype: DType) -> Result<(), Error> {
    if dtype.is_integer() {
        return Err(Error::UnsupportedType { op, dtypes: vec![dtype] });
    }
    Ok(())
}

/// Calls a function generic over `Scalar` with the type that an operation on
/// these types computes with.
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

/// Right sides beside their matrices: those of `{..., n}` are vectors where
/// `{..., n, n}` has one axis more.
fn right_sides<'a, T: Scalar>(
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
/// `Error::Singular`, `Error::Shape`, and `Error::TooLarge` if there is no
/// memory.
pub fn triangular_solve(
    out: Output<'_>,
    a: &Tensor<'_>,
    b: &Tensor<'_>,
    how: Triangular,
) -> Result<(), Error> {
    const OP: &str = "triangular_solve";
    expect(OP, &out, b.shape())?;
    floating(OP, out.dtype)?;
    with_scalar!(a.dtype().is_complex() || b.dtype().is_complex(), T => {
        let left = Batch::square::<T>(OP, a)?;
        let right = right_sides::<T>(OP, a, b, how.left_side)?;
        let cost = Problem::Triangular(right.rows * right.columns).cost(T::COMPLEX, left.rows, left.rows);
        each::<T, 1>(OP, left.count, cost, [out], |i| {
            Ok([triangular::solve(how, left.matrix(OP, i)?, right.matrix(OP, i)?)?])
        })
    })
}

/// `Nx.LinAlg.solve/2`
///
/// # Errors
///
/// As those of `triangular_solve`.
pub fn solve(out: Output<'_>, a: &Tensor<'_>, b: &Tensor<'_>, method: Method) -> Result<(), Error> {
    const OP: &str = "solve";
    expect(OP, &out, b.shape())?;
    floating(OP, out.dtype)?;
    let dtype = out.dtype;
    with_scalar!(a.dtype().is_complex() || b.dtype().is_complex(), T => {
        let left = Batch::square::<T>(OP, a)?;
        let right = right_sides::<T>(OP, a, b, true)?;
        let n = left.rows;
        let precision = precision(dtype, n);
        let cost = Problem::Solve(right.rows * right.columns).cost(T::COMPLEX, n, n);
        each::<T, 1>(OP, left.count, cost, [out], |i| {
            let (a, mut b) = (left.matrix::<T>(OP, i)?, right.matrix::<T>(OP, i)?);
            if method == Method::Lu {
                return Ok([lu::lu(a, precision).solve(&b, precision)?]);
            }
            let (q, r) = factor_qr(&a, n, 1e-10, precision, Steps::Former)?;
            b = q.adjoint(OP)?.times(OP, &b)?;
            b.map(|value| precision.round(value));
            triangular::backward(r, &mut b)?;
            Ok([b])
        })
    })
}

/// `Nx.LinAlg.determinant/1`: it over- or underflows only where the result does.
///
/// # Errors
///
/// `Error::Shape`, and `Error::TooLarge` if there is no memory.
pub fn determinant(out: Output<'_>, a: &Tensor<'_>) -> Result<(), Error> {
    const OP: &str = "determinant";
    expect(OP, &out, &shaped(a, &[]))?;
    floating(OP, out.dtype)?;
    let dtype = out.dtype;
    with_scalar!(a.dtype().is_complex(), T => {
        let batch = Batch::square::<T>(OP, a)?;
        let cost = Problem::Determinant.cost(T::COMPLEX, batch.rows, batch.rows);
        let precision = precision(dtype, batch.rows);
        each::<T, 1>(OP, batch.count, cost, [out], |i| {
            let value = determinant::determinant(batch.matrix::<T>(OP, i)?, precision);
            Ok([Matrix { rows: 1, columns: 1, data: vec![value] }])
        })
    })
}

/// `Nx.LinAlg.cholesky/1`: reads the lower triangle, and gives NaN from where a
/// matrix isn't positive definite.
///
/// # Errors
///
/// `Error::Shape`, and `Error::TooLarge` if there is no memory.
pub fn cholesky(out: Output<'_>, a: &Tensor<'_>) -> Result<(), Error> {
    const OP: &str = "cholesky";
    expect(OP, &out, a.shape())?;
    floating(OP, out.dtype)?;
    let dtype = out.dtype;
    with_scalar!(a.dtype().is_complex(), T => {
        let batch = Batch::square::<T>(OP, a)?;
        let precision = precision(dtype, batch.rows);
        each::<T, 1>(OP, batch.count, Problem::Cholesky.cost(T::COMPLEX, batch.rows, batch.rows), [out], |i| {
            Ok([cholesky::cholesky(batch.matrix::<T>(OP, i)?, precision)])
        })
    })
}

/// `Nx.LinAlg.lu/1`: `P`, `L` and `U`.
///
/// # Errors
///
/// `Error::Shape`, and `Error::TooLarge` if there is no memory.
pub fn lu(outs: [Output<'_>; 3], a: &Tensor<'_>, steps: Steps) -> Result<(), Error> {
    const OP: &str = "lu";
    for out in &outs {
        expect(OP, out, a.shape())?;
    }
    floating(OP, outs[1].dtype)?;
    let dtype = outs[1].dtype;
    with_scalar!(a.dtype().is_complex(), T => {
        let batch = Batch::square::<T>(OP, a)?;
        let n = batch.rows;
        let precision = precision(dtype, n);
        each::<T, 3>(OP, batch.count, Problem::Lu.cost(T::COMPLEX, n, n), outs, |i| {
            let a = batch.matrix::<T>(OP, i)?;
            let small = if precision == Precision::Single { steps::lu(&a, steps)? } else { None };
            let lu = small.unwrap_or_else(|| lu::lu(a, precision));
            let mut p = Matrix::zeros(OP, n, n)?;
            for (column, &row) in lu.rows.iter().enumerate() {
                *p.at_mut(row, column) = T::ONE;
            }
            let (l, u) = lu.split()?;
            Ok([p, l, u])
        })
    })
}

/// `Nx.LinAlg.qr/2`: `Q` and `R`, reduced or complete as the shape of `Q` asks
/// for. Elements no greater than `eps` become zero if they are as small as
/// rounding errors.
///
/// # Errors
///
/// `Error::Shape`, and `Error::TooLarge` if there is no memory.
pub fn qr([q, r]: [Output<'_>; 2], a: &Tensor<'_>, eps: f64, steps: Steps) -> Result<(), Error> {
    const OP: &str = "qr";
    floating(OP, q.dtype)?;
    let dtype = q.dtype;
    let columns = q.shape.last().copied().unwrap_or_default();
    with_scalar!(a.dtype().is_complex(), T => {
        let batch = Batch::new::<T>(OP, a)?;
        let (m, n) = (batch.rows, batch.columns);
        if columns != m && columns != n.min(m) {
            expect(OP, &q, &shaped(a, &[m, n.min(m)]))?;
        }
        expect(OP, &q, &shaped(a, &[m, columns]))?;
        expect(OP, &r, &shaped(a, &[columns, n]))?;
        let precision = precision(dtype, m.max(n));
        each::<T, 2>(OP, batch.count, Problem::Qr.cost(T::COMPLEX, m, n), [q, r], |i| {
            let (q, r) = factor_qr(&batch.matrix::<T>(OP, i)?, columns, eps, precision, steps)?;
            Ok([q, r])
        })
    })
}

/// By Nx's steps where they are wanted and as accurate as they can be.
fn factor_qr<T: Scalar>(
    a: &Matrix<T>,
    columns: usize,
    eps: f64,
    precision: Precision,
    steps: Steps,
) -> Result<qr::Qr<T>, Error> {
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
        let (q, r) = qr::stepwise(a, columns, eps, precision, steps)?;
        let bound = steps::roundings(a);
        let mut rest = q.times(OP, &r)?;
        rest.data.iter_mut().zip(&a.data).for_each(|(rest, &a)| *rest = *rest - a);
        let oblique = steps::oblique(&q.adjoint(OP)?)?;
        if steps::is_rounding(&rest, a, bound) && oblique <= bound && triangular_below(&r) <= bound * a.norm()
        {
            return Ok((q, r));
        }
    }
    qr::qr(a, columns, eps)
}

/// The norm of what is below the diagonal.
fn triangular_below<T: Scalar>(a: &Matrix<T>) -> f64 {
    let below: Vec<T> = (0..a.rows).flat_map(|i| a.row(i)[..i.min(a.columns)].iter().copied()).collect();
    matrix::norm(&below)
}

/// `Nx.LinAlg.eigh/2`: the eigenvalues, descending by magnitude, and the
/// eigenvectors as columns, of the Hermitian part; NaN for what isn't finite.
///
/// The largest component of each vector is real and positive, except where Nx's steps
/// give another.
///
/// # Errors
///
/// `Error::Shape`, `Error::TooLarge` if there is no memory, and
/// `Error::Argument` if the algorithm does not converge.
pub fn eigh([values, vectors]: [Output<'_>; 2], a: &Tensor<'_>, eps: f64, steps: Steps) -> Result<(), Error> {
    const OP: &str = "eigh";
    floating(OP, values.dtype)?;
    let dtype = vectors.dtype;
    with_scalar!(a.dtype().is_complex(), T => {
        let batch = Batch::square::<T>(OP, a)?;
        let n = batch.rows;
        expect(OP, &values, &shaped(a, &[n]))?;
        expect(OP, &vectors, a.shape())?;
        let precision = precision(dtype, n);
        each::<T, 2>(OP, batch.count, Problem::Eigh.cost(T::COMPLEX, n, n), [values, vectors], |i| {
            let a = batch.matrix::<T>(OP, i)?;
            let (mut values, mut vectors) = (Matrix::zeros(OP, 1, n)?, Matrix::zeros(OP, n, n)?);
            if !a.is_finite() {
                values.map(|_| T::real(f64::NAN));
                vectors.map(|_| T::real(f64::NAN));
                return Ok([values, vectors]);
            }
            if precision == Precision::Single && let Some(found) = steps::eigh(&a, eps, steps)? {
                return Ok(found);
            }
            let (d, found) = eigh::eigh(&a)?;
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by(|&a, &b| d[b].abs().total_cmp(&d[a].abs()).then(d[b].total_cmp(&d[a])));
            // `|A|` is at most so many times as large as `A`.
            let tiny = noise(n, n) * n as f64 * order.first().map_or(0.0, |&from| d[from].abs());
            for (place, &from) in order.iter().enumerate() {
                let row = found.row(from);
                values.data[place] = T::real(if d[from].abs() <= tiny && is_rounding(&a, row, d[from]) { 0.0 } else { d[from] });
                let by = largest(row);
                let by = by.conj().scale(1.0 / by.abs());
                for (value, &found) in vectors.row_mut(place).iter_mut().zip(row) {
                    // A zero without its sign.
                    *value = (found * by).clean(0.0);
                }
            }
            let vectors = vectors.transpose(OP)?;
            Ok([values, vectors])
        })
    })
}

/// Whether an eigenvalue can't be told from zero, the elements that it comes from being rounded: `|vᴴ| |A|
/// |v|` is the most that they add up to. Only of matrices no larger than those which Nx's documentation
/// shows such zeros of; others keep what there is.
fn is_rounding<T: Scalar>(a: &Matrix<T>, vector: &[T], value: f64) -> bool {
    let n = vector.len();
    if n > FEW {
        return false;
    }
    let weights = vector.iter().map(|v| v.abs());
    let total = weights.clone().enumerate().map(|(i, weight)| {
        let row = a.row(i).iter().zip(weights.clone());
        weight * row.map(|(a, weight)| noise(n, n) * a.abs() * weight).sum::<f64>()
    });
    value.abs() <= total.sum::<f64>()
}

/// The first of the largest components, those that rounding may have made
/// different being as large.
fn largest<T: Scalar>(row: &[T]) -> T {
    let largest = matrix::largest(row);
    let first = row.iter().copied().find(|v| v.abs() >= largest * (1.0 - 1e-6));
    first.filter(|v| v.abs() > 0.0).unwrap_or(T::ONE)
}

/// `Nx.LinAlg.svd/2` of real matrices: `U`, `S` and `Vᵀ`, full or thin as the shape
/// of `U` asks for; NaN for what isn't finite.
///
/// The largest component of each right vector is positive, except where Nx's steps give
/// another.
///
/// # Errors
///
/// `Error::UnsupportedType` for complex ones, and as those of `eigh`.
pub fn svd([u, s, vt]: [Output<'_>; 3], a: &Tensor<'_>, steps: Steps) -> Result<(), Error> {
    const OP: &str = "svd";
    floating(OP, s.dtype)?;
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
    expect(OP, &u, &shaped(a, &[m, u_columns]))?;
    expect(OP, &s, &shaped(a, &[k]))?;
    expect(OP, &vt, &shaped(a, &[v_rows, n]))?;
    let (dtype, whole) = (s.dtype, a.dtype().is_integer());
    let precision = precision(dtype, m.max(n));
    each::<f64, 3>(OP, batch.count, Problem::Svd.cost(false, m, n), [u, s, vt], |i| {
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
        let wide = m < n;
        if wide {
            a = a.transpose(OP)?;
        }
        let columns = if wide { v_rows } else { u_columns };
        let single = precision == Precision::Single;
        let small = if single { steps::svd(&a, columns, steps, whole)? } else { None };
        let svd::Svd { u, s, v } = match small {
            Some(found) => found,
            None => signed(&a, svd::svd(&a, columns)?, wide, dtype)?,
        };
        let s = Matrix { rows: 1, columns: k, data: s };
        if wide { Ok([v.transpose(OP)?, s, u]) } else { Ok([u.transpose(OP)?, s, v]) }
    })
}

/// With signs that make the largest component of each right vector positive; those are
/// in `u` if the matrix was wide. What the rounding of a matrix to f32 has left of
/// singular values is zero, so that `Nx.LinAlg.pinv/2`, whose limit is lower, doesn't
/// divide by it.
fn signed(a: &Matrix<f64>, mut svd: svd::Svd, wide: bool, dtype: DType) -> Result<svd::Svd, Error> {
    for row in 0..svd.s.len() {
        let sign = largest(if wide { svd.u.row(row) } else { svd.v.row(row) }).signum();
        for row in [svd.u.row_mut(row), svd.v.row_mut(row)] {
            // Zeros without their signs.
            row.iter_mut().for_each(|x| *x = (*x * sign).clean(0.0));
        }
    }
    if dtype == DType::F32 {
        drop_roundings(a, &mut svd)?;
    }
    Ok(svd)
}

/// Makes those singular values zero that can't be told from what rounding the elements of the matrix to
/// f32 has left: `|uᵀ| |A| |v|` is the most that these add up to. A small value of a small row, or of a
/// block, stays.
fn drop_roundings(a: &Matrix<f64>, svd: &mut svd::Svd) -> Result<(), Error> {
    const OP: &str = "svd";
    let unit = 2.0 * f64::from(f32::EPSILON);
    let limit = unit * svd.s.first().copied().unwrap_or_default();
    // All together, so that many small ones are not lost.
    let mut total = 0.0f64;
    let small = svd.s.iter().rev().take_while(|s| {
        total = total.hypot(**s);
        total <= limit
    });
    let (k, count) = (svd.s.len(), small.count());
    if count == 0 {
        return Ok(());
    }
    let sizes = |matrix: &Matrix<f64>, rows: std::ops::Range<usize>| {
        let data = matrix.data[rows.start * matrix.columns..rows.end * matrix.columns].iter();
        Matrix { rows: rows.len(), columns: matrix.columns, data: data.map(|x| x.abs()).collect() }
    };
    let left = sizes(&svd.u, k - count..k);
    let mut sums = Matrix::zeros(OP, count, a.columns)?;
    let (whole, n) = (sizes(a, 0..a.rows), a.columns);
    multiply([count, a.rows, n], Update::Replace, left.view(), whole.view(), (&mut sums.data, [n, 1]));
    for (i, sums) in sums.data.chunks_exact(n).enumerate() {
        let most: f64 = sums.iter().zip(svd.v.row(k - count + i)).map(|(sum, v)| sum * v.abs()).sum();
        if svd.s[k - count + i] <= unit * most {
            svd.s[k - count + i] = 0.0;
        }
    }
    // Still descending, with the vectors.
    svd::sort(&mut svd.s, &mut svd.u, &mut svd.v)
}
