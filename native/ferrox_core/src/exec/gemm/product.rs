//! Runs the strategy that was chosen for a product.

use num_complex::Complex;

use crate::exec::convert;
use crate::exec::gemm::matrix::{MatrixBytes, ProductTarget, TypedMatrix, is_lane};
use crate::exec::gemm::strategy::{Method, Strategy};
use crate::exec::gemm::{blocked, gemv, in_order, mixed, small};
use crate::{DType, Error};

/// Multiplies two matrices and writes the result in row-major order. With `alone`, the product
/// keeps to the calling thread, because other threads compute other products.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory for an intermediate copy.
pub fn multiply(
    op: &'static str,
    strategy: &Strategy,
    left: TypedMatrix<'_>,
    right: TypedMatrix<'_>,
    out: &mut [u8],
    alone: bool,
) -> Result<(), Error> {
    let Strategy { lane, sizes: [m, k, n], .. } = *strategy;
    let too_large = |_| Error::TooLarge { op, dtype: lane, shape: vec![m, k, n] };
    let mut method = strategy.method;
    if method == Method::MatrixVector {
        if n == 1 && with_vector(op, lane, [m, k], left, right, out, alone)? {
            return Ok(());
        }
        if m == 1 && with_vector(op, lane, [n, k], right.transposed(), left.transposed(), out, alone)? {
            return Ok(());
        }
        method = strategy.without_vectors();
    }
    match method {
        Method::Mixed => {
            if let Some(matrix) = right.unconverted([k, n], lane) {
                let out = ProductTarget { bytes: out, strides: [n, 1], alone };
                return mixed::product([m, k, n], left.matrix, matrix, out).map_err(too_large);
            }
            if let Some(matrix) = left.transposed().unconverted([k, m], lane) {
                let out = ProductTarget { bytes: out, strides: [1, n], alone };
                return mixed::product([n, k, m], right.matrix.transposed(), matrix, out).map_err(too_large);
            }
            // Neither rows nor columns are dense: the whole matrix is converted first.
            let (wide_left, wide_right) =
                (converted(op, left, [m, k], lane)?, converted(op, right, [k, n], lane)?);
            let [left, right] =
                [(left, &wide_left, k), (right, &wide_right, n)].map(|(narrow, wide, columns)| {
                    wide.as_ref().map_or(narrow, |bytes| TypedMatrix {
                        dtype: lane,
                        matrix: MatrixBytes { bytes, strides: [columns, 1] },
                    })
                });
            let Some(strategy) = Strategy::choose(lane, [lane; 2], [m, k, n]) else {
                unreachable!("a lane multiplies itself")
            };
            return multiply(op, &strategy, left, right, out, alone);
        }
        Method::Blocked => {
            let out = ProductTarget { bytes: out, strides: [n, 1], alone };
            blocked::multiply_floats(lane, [m, k, n], left.matrix, right.matrix, out).map_err(too_large)?;
        }
        Method::Integers => {
            let (left, right) = (left.dense(op, [m, k])?, right.dense(op, [k, n])?);
            in_order::integers(lane, [m, k, n], &left, &right, out, alone);
        }
        Method::InOrder => {
            let (left, right) = (left.dense(op, [m, k])?, right.dense(op, [k, n])?);
            in_order_loop(lane, n)([m, k, n], &left, &right, out);
        }
        Method::MatrixVector => unreachable!("`without_vectors` names another"),
    }
    Ok(())
}

/// The elements of a matrix, converted to a lane in row-major order. Returns `None` if they need no
/// conversion.
fn converted(
    op: &'static str,
    matrix: TypedMatrix<'_>,
    [rows, columns]: [usize; 2],
    lane: DType,
) -> Result<Option<Vec<u8>>, Error> {
    if is_lane(matrix.dtype, lane) {
        return Ok(None);
    }
    let dense = matrix.dense(op, [rows, columns])?;
    convert::converted(op, (matrix.dtype, &dense), lane, &[rows, columns]).map(Some)
}

/// Multiplies dense matrices of `[m, k]` and `[k, n]`, one pair after the other, until the result
/// is full: sizes, left matrices, right matrices, results.
pub type DenseProductFn = fn([usize; 3], &[u8], &[u8], &mut [u8]);

/// The function for small products that are added up in order, for a right matrix of `n` columns.
#[must_use]
pub fn in_order_loop(lane: DType, n: usize) -> DenseProductFn {
    macro_rules! each_matrix {
        ($width:expr, $multiply:expr) => {
            |sizes, left, right, out| each_matrix($width, sizes, [left, right], out, $multiply)
        };
    }
    match lane {
        DType::C128 => each_matrix!(16, in_order::multiply_in_order::<Complex<f64>>),
        DType::F32 if n == 1 => {
            each_matrix!(4, |[_, k, _], left, right, out| small::with_vector::<f32>(k, left, right, out))
        }
        DType::F32 => small::multiply::<f32>,
        DType::F64 if n == 1 => each_matrix!(8, small::with_vector_in_order),
        _ => small::multiply::<f64>,
    }
}

/// Calls `multiply` for each pair of matrices, whose elements have `width` bytes.
#[inline]
fn each_matrix(
    width: usize,
    [m, k, n]: [usize; 3],
    [left, right]: [&[u8]; 2],
    out: &mut [u8],
    multiply: impl Fn([usize; 3], &[u8], &[u8], &mut [u8]),
) {
    let operands = left.chunks_exact(m * k * width).zip(right.chunks_exact(k * n * width));
    for ((left, right), out) in operands.zip(out.chunks_exact_mut(m * n * width)) {
        multiply([m, k, n], left, right, out);
    }
}

/// Multiplies a matrix of `[m, k]` with a vector, if the rows or the columns of the matrix are
/// dense. Returns whether they are.
fn with_vector(
    op: &'static str,
    lane: DType,
    [m, k]: [usize; 2],
    matrix: TypedMatrix<'_>,
    vector: TypedMatrix<'_>,
    out: &mut [u8],
    alone: bool,
) -> Result<bool, Error> {
    let Some((by_rows, stride)) = matrix.lines([m, k]) else { return Ok(false) };
    let bytes = matrix.matrix.bytes;
    let vector = vector.dense(op, [k, 1])?;
    let too_large = |_| Error::TooLarge { op, dtype: lane, shape: vec![m, k] };
    if let Some(matrix) = matrix.unconverted([m, k], lane) {
        let multiply = if by_rows { mixed::rows } else { mixed::columns };
        return multiply(matrix, &vector, out, alone).map(|()| true).map_err(too_large);
    }
    macro_rules! multiply {
        ($t:ty) => {
            if by_rows {
                gemv::rows::<$t>(stride, bytes, &vector, out, alone);
            } else {
                gemv::columns::<$t>(stride, bytes, &vector, out, alone).map_err(too_large)?;
            }
        };
    }
    match lane {
        DType::U8 => multiply!(u8),
        DType::U16 => multiply!(u16),
        DType::U32 => multiply!(u32),
        DType::U64 => multiply!(u64),
        DType::F32 => multiply!(f32),
        DType::F64 => multiply!(f64),
        DType::C64 => multiply!(Complex<f32>),
        _ => multiply!(Complex<f64>),
    }
    Ok(true)
}
