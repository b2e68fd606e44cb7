//! The generalized dot product of `Nx.dot/6`: batched, over any axes.
//!
//! Each side is viewed as a batch of matrices, without a copy if its axes allow that. `exec::gemm`
//! chooses the loops that multiply them.

use std::borrow::Cow;

use crate::cost::{Cost, Work};
use crate::error::ShapeDisplay;
use crate::exec::gemm::matrix::{MatrixBytes, TypedMatrix, is_dense, is_lane};
use crate::exec::gemm::product::{in_order_loop, multiply};
use crate::exec::gemm::strategy::{Method, Strategy};
use crate::exec::memory::scratch;
use crate::exec::threads::parallel;
use crate::exec::{convert, copy};
use crate::layout::{Layout, Shape, check_axes, index_of, other_axes};
use crate::ops::cast::elements;
use crate::tensor::{Output, Tensor};
use crate::{DType, Error};

const OP: &str = "dot";

/// One side of a product, with its contracted axes and its batch axes, both in the order of the
/// other side's.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The tensor.
    pub tensor: &'a Tensor<'a>,
    /// The axes to sum over.
    pub contract: &'a [usize],
    /// The axes of the batch.
    pub batch: &'a [usize],
}

/// The work of a product of tensors of some types and shapes, given the axes of the left one; zero
/// if no product is defined.
#[must_use]
pub fn work(out: DType, operands: [(DType, &[usize]); 2], contract: &[usize], batch: &[usize]) -> Work {
    let [left, right] = operands.map(|(_, shape)| shape.iter().copied().fold(1, usize::saturating_mul));
    let size_along = |axes: &[usize]| {
        axes.iter().filter_map(|&axis| operands[0].1.get(axis).copied()).fold(1, usize::saturating_mul)
    };
    let (batches, k) = (size_along(batch), size_along(contract));
    let free = |size: usize| size / batches.saturating_mul(k).max(1);
    let dtypes = operands.map(|(dtype, _)| dtype);
    let strategy = Strategy::choose(out, dtypes, [free(left), k, free(right)]);
    strategy.map_or(0, |strategy| strategy.work(batches, dtypes))
}

/// Sums products over the contracted axes. The axes of `out` are the batch axes, then the other
/// axes of the left side, then the other axes of the right side.
///
/// # Errors
///
/// `Error::Shape` or `Error::Argument` if the axes don't match, `Error::UnsupportedType`, and
/// `Error::TooLarge` if there is no memory for an intermediate copy.
pub fn dot(out: Output<'_>, left: Side<'_>, right: Side<'_>) -> Result<(), Error> {
    let (left_axes, right_axes) = (SideAxes::new(left)?, SideAxes::new(right)?);
    let shapes = || vec![left.tensor.shape().to_vec(), right.tensor.shape().to_vec()];
    let mismatch = |problem: &str| Error::Shape { op: OP, shapes: shapes(), problem: problem.to_string() };
    if !left.sizes(left.batch).eq(right.sizes(right.batch))
        || !left.sizes(left.contract).eq(right.sizes(right.contract))
    {
        return Err(mismatch("differ in the sizes of the axes to sum over or of the batch"));
    }
    let [batches, m, k] = left_axes.sizes;
    let n = right_axes.sizes[1];
    if batches.saturating_mul(m).saturating_mul(n) != out.shape.iter().product() {
        let free =
            |side: Side<'_>| side.free().iter().map(|&axis| side.tensor.shape()[axis]).collect::<Shape>();
        let expected: Vec<usize> = left.sizes(left.batch).chain(free(left)).chain(free(right)).collect();
        let (expected, given) = (ShapeDisplay(&expected), ShapeDisplay(out.shape));
        return Err(mismatch(&format!("give a product of shape {expected}, not {given}")));
    }
    let dtypes = [left, right].map(|side| side.tensor.dtype());
    let strategy = strategy(out.dtype, dtypes, [m, k, n])?;
    let [left_lane, right_lane] = strategy.reads;
    let left = Matrices::new(left, &left_axes, left_lane, false)?;
    let right = Matrices::new(right, &right_axes, right_lane, true)?;
    let dtype = out.dtype;
    out.write(OP, |bytes| multiply_all(&strategy, dtype, batches, &left, &right, bytes))
}

/// The strategy for matrices of some types and sizes, and a result of type `to`.
///
/// # Errors
///
/// `Error::UnsupportedType` if there is no product of the types.
pub fn strategy(to: DType, dtypes: [DType; 2], sizes: [usize; 3]) -> Result<Strategy, Error> {
    Strategy::choose(to, dtypes, sizes)
        .ok_or_else(|| Error::UnsupportedType { op: OP, dtypes: dtypes.to_vec() })
}

/// Multiplies batches of dense matrices in whole bytes, `[m, k]` by `[k, n]`, by the strategy for
/// their types and sizes. `out` has the matrices of the result, of type `to`.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory for an intermediate copy.
pub fn matmul(
    strategy: &Strategy,
    to: DType,
    out: &mut [u8],
    batches: usize,
    operands: [(DType, &[u8]); 2],
) -> Result<(), Error> {
    let ([m, k, n], lane) = (strategy.sizes, strategy.lane);
    // A single small product needs no batch and no conversion.
    if strategy.method == Method::InOrder
        && batches == 1
        && lane == to
        && operands[0].0 == to
        && operands[1].0 == to
        && m * k * n > 0
    {
        in_order_loop(to, n)([m, k, n], operands[0].1, operands[1].1, out);
        return Ok(());
    }
    let left = Matrices::dense(operands[0], [batches, m, k], strategy.reads[0])?;
    let right = Matrices::dense(operands[1], [batches, k, n], strategy.reads[1])?;
    multiply_all(strategy, to, batches, &left, &right, out)
}

/// Multiplies batches of matrices, and converts the result to type `to`.
fn multiply_all(
    strategy: &Strategy,
    to: DType,
    batches: usize,
    left: &Matrices<'_>,
    right: &Matrices<'_>,
    out: &mut [u8],
) -> Result<(), Error> {
    let (lane, [m, _, n]) = (strategy.lane, strategy.sizes);
    // Integers are multiplied without a sign in the width of the result, which gives the bits of the
    // signed product as well.
    if lane == to.storage() || lane.is_integer() {
        return products(strategy, batches, left, right, out);
    }
    let size = batches * m * n;
    let mut wide = scratch(OP, lane, &[batches, m, n], size * lane.width())?;
    products(strategy, batches, left, right, &mut wide)?;
    convert::convert_all(lane, &wide, to, size, out);
    Ok(())
}

impl Side<'_> {
    fn sizes<'b>(&'b self, axes: &'b [usize]) -> impl Iterator<Item = usize> + 'b {
        let shape = self.tensor.shape();
        axes.iter().map(move |&axis| shape[axis])
    }

    /// The axes that the result keeps.
    fn free(&self) -> Shape {
        let Side { contract, batch, .. } = self;
        other_axes(self.tensor.rank(), contract.iter().chain(*batch))
    }
}

/// A side's tensor as a batch of matrices with a free and a contracted axis.
struct SideAxes {
    /// The sizes of the batch, of the free axes, which the result keeps, and of the contracted
    /// axes.
    sizes: [usize; 3],
    /// The strides of the free and of the contracted axis in a dense tensor; `None` unless its axes
    /// are the batch axes, followed by the free and the contracted axes, or by the contracted and
    /// the free axes.
    strides: Option<[usize; 2]>,
}

impl SideAxes {
    /// Checks that the axes are distinct and within the rank.
    #[inline]
    fn new(side: Side<'_>) -> Result<Self, Error> {
        let (shape, contract, batch) = (side.tensor.shape(), side.contract, side.batch);
        let rank = shape.len();
        let batch_leads = batch.iter().enumerate().all(|(i, &axis)| axis == i);
        let start = contract.first().map_or(rank, |&axis| axis);
        let contract_is_range =
            contract.iter().enumerate().all(|(i, &axis)| axis.checked_sub(start) == Some(i));
        let end = start.saturating_add(contract.len());
        if batch_leads && contract_is_range && start >= batch.len() && end <= rank {
            let product = |axes: std::ops::Range<usize>| shape[axes].iter().product::<usize>();
            let (before, k, after) = (product(batch.len()..start), product(start..end), product(end..rank));
            let strides = if end == rank {
                Some([k, 1])
            } else if start == batch.len() {
                Some([1, after])
            } else {
                None
            };
            return Ok(SideAxes { sizes: [product(0..batch.len()), before * after, k], strides });
        }
        check_axes(OP, contract.iter().chain(batch), rank)?;
        let product = |axes: &[usize]| axes.iter().map(|&axis| shape[axis]).product();
        let sizes = [product(batch), product(&side.free()), product(contract)];
        Ok(SideAxes { sizes, strides: None })
    }
}

/// The first elements of the matrices of a batch.
enum Starts {
    /// At multiples of this many elements.
    Regular(usize),
    /// The layout of the batch axes.
    Irregular(Box<Layout>),
}

/// A side as a batch of matrices.
struct Matrices<'a> {
    dtype: DType,
    bytes: Cow<'a, [u8]>,
    starts: Starts,
    /// The distances from one row to the next and from one column to the next, in elements.
    strides: [usize; 2],
}

impl<'a> Matrices<'a> {
    /// Dense matrices converted to a lane.
    fn dense(
        (dtype, bytes): (DType, &'a [u8]),
        shape @ [_, rows, columns]: [usize; 3],
        lane: DType,
    ) -> Result<Self, Error> {
        let bytes = if is_lane(dtype, lane) {
            Cow::Borrowed(bytes)
        } else {
            Cow::Owned(convert::converted(OP, (dtype, bytes), lane, &shape)?)
        };
        let starts = Starts::Regular(rows * columns);
        Ok(Matrices { dtype: lane, bytes, starts, strides: [columns, 1] })
    }

    /// A side converted to a lane. The rows are the free axes, or the contracted axes if
    /// `is_right`.
    fn new(side: Side<'a>, axes: &SideAxes, lane: DType, is_right: bool) -> Result<Self, Error> {
        let tensor = side.tensor;
        let in_order =
            |[free, contract]: [usize; 2]| if is_right { [contract, free] } else { [free, contract] };
        let keeps_type = is_lane(tensor.dtype(), lane);
        if let Some(strides) = axes.strides {
            let bytes = if keeps_type { copy::dense(OP, tensor)? } else { elements(OP, tensor, lane)? };
            let starts = Starts::Regular(axes.sizes[1] * axes.sizes[2]);
            return Ok(Matrices { dtype: lane, bytes, starts, strides: in_order(strides) });
        }
        let (bytes, layout) = if keeps_type {
            (Cow::Borrowed(tensor.bytes()), tensor.layout())
        } else {
            (elements(OP, tensor, lane)?, Cow::Owned(Layout::contiguous(tensor.shape())))
        };
        let (free, contract, batch) = (side.free(), side.contract, side.batch);
        if let (Some(free), Some(contract)) =
            (collapsed_stride(&layout, &free), collapsed_stride(&layout, contract))
        {
            let starts = Starts::Irregular(Box::new(layout.transpose(batch)));
            return Ok(Matrices { dtype: lane, bytes, starts, strides: in_order([free, contract]) });
        }
        let [rows, columns] = if is_right { [contract, &*free] } else { [&*free, contract] };
        let order: Shape = batch.iter().chain(rows).chain(columns).copied().collect();
        let view = layout.transpose(&order);
        let mut dense = scratch(OP, lane, &view.shape, view.size() * lane.width())?;
        copy::gather_all(lane.width(), &bytes, &view, &mut dense);
        let columns = view.shape[batch.len() + rows.len()..].iter().product();
        let starts = Starts::Regular(axes.sizes[1] * axes.sizes[2]);
        Ok(Matrices { dtype: lane, bytes: Cow::Owned(dense), starts, strides: [columns, 1] })
    }

    /// Whether the elements are of a lane and row-major without gaps, within the matrices and
    /// between them.
    fn is_dense(&self, lane: DType, sizes: [usize; 2]) -> bool {
        self.has_dense_rows(lane, self.strides, sizes)
    }

    /// [`Matrices::is_dense`] of the transposed matrices, whose sizes are given.
    fn is_dense_transposed(&self, lane: DType, sizes: [usize; 2]) -> bool {
        let [row, column] = self.strides;
        self.has_dense_rows(lane, [column, row], sizes)
    }

    fn has_dense_rows(&self, lane: DType, strides: [usize; 2], sizes: [usize; 2]) -> bool {
        let size = sizes.iter().product::<usize>();
        let is_regular = match &self.starts {
            Starts::Regular(step) => *step == size,
            Starts::Irregular(layout) => layout.is_regular(size as isize),
        };
        is_lane(self.dtype, lane) && is_dense(strides, sizes) && is_regular
    }

    fn matrix(&self, index: usize) -> TypedMatrix<'_> {
        let first = match &self.starts {
            Starts::Regular(step) => index * step,
            Starts::Irregular(layout) => {
                index_of(&layout.shape, &layout.strides, layout.offset, index) as usize
            }
        };
        let bytes = &self.bytes[first * self.dtype.width()..];
        TypedMatrix { dtype: self.dtype, matrix: MatrixBytes { bytes, strides: self.strides } }
    }
}

/// The stride of some axes that can be traversed as one axis, or `None` if they can't.
pub(crate) fn collapsed_stride(layout: &Layout, axes: &[usize]) -> Option<usize> {
    // The stride of the last axis, and the stride of an axis that collapses with the axes after it.
    let mut found: Option<(isize, isize)> = None;
    for &axis in axes.iter().rev() {
        let (dim, stride) = (layout.shape[axis], layout.strides[axis]);
        if dim == 1 {
            continue;
        }
        let (last, collapsing) = found.unwrap_or((stride, stride));
        if stride != collapsing {
            return None;
        }
        found = Some((last, stride * dim as isize));
    }
    usize::try_from(found.map_or(0, |(last, _)| last)).ok()
}

/// Writes the product of each pair of matrices.
fn products(
    strategy: &Strategy,
    batches: usize,
    left: &Matrices<'_>,
    right: &Matrices<'_>,
    out: &mut [u8],
) -> Result<(), Error> {
    let Strategy { lane, sizes: [m, k, n], .. } = *strategy;
    if m == 0 || n == 0 || k == 0 || batches == 0 {
        // Sums without terms.
        out.fill(0);
        return Ok(());
    }
    let in_order = if strategy.method != Method::InOrder || !left.is_dense(lane, [m, k]) {
        None
    } else if right.is_dense(lane, [k, n]) {
        Some((left, right, [m, k, n]))
    } else if m == 1 && right.is_dense_transposed(lane, [n, k]) {
        // A row by dense columns is a matrix of these as rows by a vector.
        Some((right, left, [n, k, 1]))
    } else {
        None
    };
    let multiply_from = |first: usize, out: &mut [u8], alone: bool| {
        if let Some((left, right, sizes)) = in_order {
            let operands = [left, right].map(|matrices| matrices.matrix(first).matrix.bytes);
            in_order_loop(lane, sizes[2])(sizes, operands[0], operands[1], out);
            return Ok(());
        }
        let (left, right) = (|i| left.matrix(first + i), |i| right.matrix(first + i));
        let width = lane.width();
        out.chunks_mut(m * n * width)
            .enumerate()
            .try_for_each(|(i, out)| multiply(OP, strategy, left(i), right(i), out, alone))
    };
    // Threads share whole products if there are enough of them, else each product.
    if batches > 1 && batches >= 2 * parallel::threads() {
        let cost = strategy.product_cost().saturating_mul((m * n) as Cost).saturating_mul(k as Cost);
        return parallel::try_fill(out, batches, cost, |first, out| multiply_from(first, out, true));
    }
    multiply_from(0, out, false)
}
