//! The generalized dot product of `Nx.dot/6`: batched, over any axes.

use std::borrow::Cow;

use num_complex::Complex;
use smallvec::SmallVec;

use crate::dtype::convert::conversion;
use crate::error::ShapeDisplay;
use crate::exec::copy::strided;
use crate::exec::gemm::in_order::{Matrix, Target};
use crate::exec::gemm::mixed::Narrow;
use crate::exec::gemm::{gemv, in_order, mixed, small};
use crate::exec::threads::parallel;
use crate::exec::threads::parallel::{Cost, Work};
use crate::layout::{Layout, Shape, Strides, index_of};
use crate::ops::cast::elements;
use crate::tensor::{Output, Tensor, scratch};
use crate::{DType, Error};

const OP: &str = "dot";

/// Products of at most this many multiplications are added up in order, in
/// f64 for floats, and rounded once: gemm would not be faster.
pub(crate) const SMALL: usize = 4096;

/// One side of a product: its axes to sum over, in order, and those that are
/// multiplied pairwise.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The tensor.
    pub tensor: &'a Tensor<'a>,
    /// The axes to sum over.
    pub contract: &'a [usize],
    /// The axes of the batch.
    pub batch: &'a [usize],
}

impl Side<'_> {
    /// The sizes of some axes.
    fn sizes<'b>(&'b self, axes: &'b [usize]) -> impl Iterator<Item = usize> + 'b {
        let shape = self.tensor.shape();
        axes.iter().map(move |&axis| shape[axis])
    }

    /// The axes that the result keeps.
    fn free(&self) -> Shape {
        let mut axes = Shape::new();
        for axis in 0..self.tensor.rank() {
            if !self.contract.contains(&axis) && !self.batch.contains(&axis) {
                axes.push(axis);
            }
        }
        axes
    }

    /// Distinct axes within the rank.
    fn check(&self) -> Result<(), Error> {
        let rank = self.tensor.rank();
        let mut seen: SmallVec<[bool; 8]> = SmallVec::from_elem(false, rank);
        for &axis in self.contract.iter().chain(self.batch) {
            match seen.get_mut(axis) {
                Some(seen) if !*seen => *seen = true,
                Some(_) => {
                    return Err(Error::Argument { op: OP, problem: format!("axis {axis} is named twice") });
                }
                None => {
                    let problem = format!("axis {axis} is out of range for rank {rank}");
                    return Err(Error::Argument { op: OP, problem });
                }
            }
        }
        Ok(())
    }
}

/// The work of a product of `elements`, each the sum of `summed` products, of
/// operands of `read` elements together, of which some are of another type.
#[must_use]
pub fn work(
    out: DType,
    elements: usize,
    summed: usize,
    [read, converted]: [usize; 2],
    batches: usize,
) -> Work {
    /// What an element costs that may have to be moved or converted first, and a batch.
    const MOVED: Cost = 100;
    const CONVERTED: Cost = 500;
    const BATCH: Cost = 100_000;
    // What is multiplied a few times only is converted on the way.
    let is_few = elements.saturating_mul(summed) / mixed::FEW <= converted;
    let conversion = if is_few { mixed::ELEMENT } else { CONVERTED };
    // What is converted may be multiplied in another type.
    let large = converted == 0 && is_large([elements / batches.max(1), summed, 1]);
    let element = if large {
        // Written while others are multiplied.
        in_order::large_cost(out).saturating_mul(summed as Cost).max(in_order::WRITTEN)
    } else {
        in_order::cost(out).saturating_mul(summed as Cost).saturating_add(in_order::WRITTEN)
    };
    parallel::work(elements, element)
        .saturating_add(parallel::work(read, MOVED))
        .saturating_add(parallel::work(converted, conversion))
        .saturating_add(parallel::work(batches, BATCH))
}

/// Sums products over the contracted axes. The shape of `out` is that of the
/// batch, then the other axes of the left side, then those of the right.
///
/// # Errors
///
/// `Error::Shape` or `Error::Argument` if the axes don't go together,
/// `Error::UnsupportedType`, and `Error::TooLarge` if there is no memory for
/// an intermediate copy.
pub fn dot(out: Output<'_>, left: Side<'_>, right: Side<'_>) -> Result<(), Error> {
    left.check()?;
    right.check()?;
    let shapes = || vec![left.tensor.shape().to_vec(), right.tensor.shape().to_vec()];
    let mismatch = |problem: &str| Error::Shape { op: OP, shapes: shapes(), problem: problem.to_string() };
    if !left.sizes(left.batch).eq(right.sizes(right.batch))
        || !left.sizes(left.contract).eq(right.sizes(right.contract))
    {
        return Err(mismatch("differ in the sizes of the axes to sum over or of the batch"));
    }
    let (left_free, right_free) = (left.free(), right.free());
    let expected = || left.sizes(left.batch).chain(left.sizes(&left_free)).chain(right.sizes(&right_free));
    if expected().product::<usize>() != out.shape.iter().product() {
        let expected: Vec<usize> = expected().collect();
        let (expected, given) = (ShapeDisplay(&expected), ShapeDisplay(out.shape));
        return Err(mismatch(&format!("give a product of shape {expected}, not {given}")));
    }
    let sizes = [
        left.sizes(&left_free).product(),
        left.sizes(left.contract).product(),
        right.sizes(&right_free).product(),
    ];
    let batches = left.sizes(left.batch).product();
    multiply(out, batches, sizes, [left.tensor, right.tensor], |[left_lane, right_lane]| {
        let left = Prepared::new(left.tensor, left_lane, [left.batch, &left_free, left.contract])?;
        Ok([left, Prepared::new(right.tensor, right_lane, [right.batch, right.contract, &right_free])?])
    })
}

/// A product of each of the matrices of `[batches, m, k]` with one of `[batches, k, n]`: what
/// most products are, and without a search for axes.
///
/// # Errors
///
/// `Error::Shape` if the shapes are not these, and as `dot`.
pub fn matmul(out: Output<'_>, left: &Tensor<'_>, right: &Tensor<'_>) -> Result<(), Error> {
    let shapes = (left.shape(), right.shape(), out.shape);
    let (&[batches, m, k], &[b, l, n], &[c, rows, columns]) = shapes else {
        return Err(not_matrices(left, right));
    };
    if [b, c, l, rows, columns] != [batches, batches, k, m, n] {
        return Err(not_matrices(left, right));
    }
    multiply(out, batches, [m, k, n], [left, right], |[left_lane, right_lane]| {
        Ok([Prepared::matrices(left, left_lane, [m, k])?, Prepared::matrices(right, right_lane, [k, n])?])
    })
}

/// The product of a few elements of one type, without the planning that takes most of their time.
pub struct Few<'a> {
    multiply: InOrder,
    sizes: [usize; 3],
    width: usize,
    left: &'a [u8],
    right: &'a [u8],
}

impl<'a> Few<'a> {
    /// Of `[batches, m, k]` and `[batches, k, n]` elements, if they are few, none share a byte, and
    /// they are multiplied in their type.
    #[inline]
    #[must_use]
    pub fn new(
        dtype: DType,
        batches: usize,
        [m, k, n]: [usize; 3],
        left: &'a [u8],
        right: &'a [u8],
    ) -> Option<Self> {
        let product = |sizes: [usize; 4]| sizes.into_iter().try_fold(1, usize::checked_mul);
        let width = dtype.width();
        let fit = product([batches, m, k, width]) == Some(left.len())
            && product([batches, k, n, width]) == Some(right.len());
        if !fit || dtype.is_packed() || !(1..=SMALL).contains(&product([batches, m, k, n])?) {
            return None;
        }
        let lane = read_as(dtype, [dtype; 2], [m, k, n])?;
        let few = Few { multiply: in_order(lane, n), sizes: [m, k, n], width, left, right };
        is_lane(dtype, lane).then_some(few)
    }

    /// How many elements it has.
    #[inline]
    #[must_use]
    pub fn results(&self) -> usize {
        let [_, k, n] = self.sizes;
        self.left.len() / (k * self.width) * n
    }

    /// Writes them to `out`, which is as long.
    pub fn run(&self, out: &mut [u8]) {
        (self.multiply)(self.sizes, self.left, self.right, out);
    }
}

#[cold]
fn not_matrices(left: &Tensor<'_>, right: &Tensor<'_>) -> Error {
    let shapes = vec![left.shape().to_vec(), right.shape().to_vec()];
    Error::Shape { op: OP, shapes, problem: "are not batches of matrices that go together".to_string() }
}

/// Products of sides that `prepare` gives in lanes.
fn multiply<'a>(
    out: Output<'_>,
    batches: usize,
    sizes: [usize; 3],
    tensors: [&Tensor<'_>; 2],
    prepare: impl FnOnce([DType; 2]) -> Result<[Prepared<'a>; 2], Error>,
) -> Result<(), Error> {
    let dtype = out.dtype;
    let dtypes = tensors.map(Tensor::dtype);
    let Some(lane) = read_as(dtype, dtypes, sizes) else {
        return Err(Error::UnsupportedType { op: OP, dtypes: dtypes.to_vec() });
    };
    let [left, right] = prepare(prepared_as(lane, dtypes, sizes))?;
    let out_shape = out.shape;
    out.write(OP, |bytes| {
        if lane == dtype.storage() {
            return products(lane, batches, sizes, &left, &right, bytes);
        }
        let length = out_shape.iter().product::<usize>() * lane.width();
        let mut wide = scratch(OP, lane, out_shape, length)?;
        products(lane, batches, sizes, &left, &right, &mut wide)?;
        crate::ops::cast::convert(lane, &wide, dtype, out_shape.iter().product(), bytes);
        Ok(())
    })
}

/// What the operands are converted to before they are multiplied: few of f32 are on the way.
fn read_as(out: DType, dtypes: [DType; 2], sizes: [usize; 3]) -> Option<DType> {
    match lane(out, dtypes, sizes)? {
        DType::F64 if [out, dtypes[0], dtypes[1]] == [DType::F32; 3] => Some(DType::F32),
        lane => Some(lane),
    }
}

/// The same of each: the larger one, if it is much larger and takes less memory than f32, is
/// converted while it is multiplied.
fn prepared_as(lane: DType, dtypes: [DType; 2], [m, k, n]: [usize; 3]) -> [DType; 2] {
    let mut lanes = [lane; 2];
    let (larger, few, many) = if m > n { (0, n, m) } else { (1, m, n) };
    let dtype = dtypes[larger];
    let narrow = lane == DType::F32 && !dtype.is_packed() && dtype.width() < lane.width();
    if narrow && mixed::pays([few, k, many]) {
        lanes[larger] = dtype;
    }
    lanes
}

/// Whether a product needn't be added up in order.
fn is_large([m, k, n]: [usize; 3]) -> bool {
    m.saturating_mul(k).saturating_mul(n) > SMALL
}

/// What the operands are converted to and multiplied in.
pub(crate) fn lane(out: DType, dtypes: [DType; 2], [m, k, n]: [usize; 3]) -> Option<DType> {
    let complex = dtypes.iter().any(|d| d.is_complex());
    let integers = dtypes.iter().all(|d| d.is_integer());
    let small = !is_large([m, k, n]);
    match out {
        _ if out.is_integer() => integers.then(|| match out.width() {
            1 => DType::U8,
            2 => DType::U16,
            4 => DType::U32,
            _ => DType::U64,
        }),
        _ if complex && !out.is_complex() => None,
        DType::C64 if small => Some(DType::C128),
        DType::C64 | DType::C128 | DType::F64 => Some(out),
        _ if small || dtypes.iter().any(|d| d.precision() > 24) => Some(DType::F64),
        _ => Some(DType::F32),
    }
}

/// A side as batches of matrices.
struct Prepared<'a> {
    dtype: DType,
    bytes: Cow<'a, [u8]>,
    /// The axes of the batch.
    batch: Layout,
    /// Of rows and columns.
    strides: [usize; 2],
}

impl<'a> Prepared<'a> {
    /// Of a dense tensor whose axes are the batch, `rows` and `columns`.
    fn matrices(tensor: &'a Tensor<'a>, lane: DType, [rows, columns]: [usize; 2]) -> Result<Self, Error> {
        let bytes =
            if is_lane(tensor.dtype(), lane) { tensor.dense(OP)? } else { elements(OP, tensor, lane)? };
        let batch = Layout {
            shape: Shape::from_slice(&tensor.shape()[..1]),
            strides: Strides::from_slice(&[(rows * columns) as isize]),
            offset: 0,
        };
        Ok(Prepared { dtype: lane, bytes, batch, strides: [columns, 1] })
    }

    /// The axes are those of the batch, of the rows and of the columns.
    fn new(tensor: &'a Tensor<'a>, lane: DType, axes: [&[usize]; 3]) -> Result<Self, Error> {
        let (bytes, layout) = if is_lane(tensor.dtype(), lane) {
            (Cow::Borrowed(tensor.bytes()), tensor.layout())
        } else {
            (elements(OP, tensor, lane)?, Cow::Owned(Layout::contiguous(tensor.shape())))
        };
        let [batch, rows, columns] = axes;
        if let (Some(row), Some(column)) = (stride(&layout, rows), stride(&layout, columns)) {
            let batch = layout.transpose(batch);
            return Ok(Prepared { dtype: lane, bytes, batch, strides: [row, column] });
        }
        let mut order = Shape::new();
        axes.iter().for_each(|axes| order.extend_from_slice(axes));
        let view = layout.transpose(&order);
        let mut dense = scratch(OP, lane, &view.shape, view.size() * lane.width())?;
        strided::arrange(lane.width(), &bytes, &view, &mut dense);
        let row = view.shape[batch.len() + rows.len()..].iter().product();
        let mut batches = Layout::contiguous(&view.shape);
        batches.shape.truncate(batch.len());
        batches.strides.truncate(batch.len());
        Ok(Prepared { dtype: lane, bytes: Cow::Owned(dense), batch: batches, strides: [row, 1] })
    }

    /// Whether elements of a lane lie row by row without gaps, in each matrix and from one to the
    /// next.
    fn is_dense(&self, lane: DType, sizes: [usize; 2]) -> bool {
        let size = sizes.iter().product::<usize>() as isize;
        is_lane(self.dtype, lane) && is_dense(self.strides, sizes) && self.batch.is_regular(size)
    }

    fn matrix(&self, index: usize) -> Operand<'_> {
        let Layout { shape, strides, offset } = &self.batch;
        let first = index_of(shape, strides, *offset, index) as usize;
        let bytes = &self.bytes[first * self.dtype.width()..];
        Operand { dtype: self.dtype, matrix: Matrix { bytes, strides: self.strides } }
    }
}

/// A matrix of elements of a type.
#[derive(Clone, Copy)]
struct Operand<'a> {
    dtype: DType,
    matrix: Matrix<'a>,
}

impl<'a> Operand<'a> {
    fn transposed(self) -> Self {
        Operand { matrix: self.matrix.transposed(), ..self }
    }

    /// Whether rows lie densely, or else columns, and the elements from one to the next.
    fn lines(&self, [rows, columns]: [usize; 2]) -> Option<(bool, usize)> {
        let [row, column] = self.matrix.strides;
        // A line of one element, or a single line, may have any stride.
        if (column == 1 || columns == 1) && (row >= columns || rows == 1) {
            return Some((true, row.max(columns)));
        }
        let by_columns = (row == 1 || rows == 1) && (column >= rows || columns == 1);
        by_columns.then(|| (false, column.max(rows)))
    }

    /// To be converted, if the elements aren't those of a lane and lie densely.
    fn narrow(&self, sizes: [usize; 2], lane: DType) -> Option<Narrow<'a>> {
        if is_lane(self.dtype, lane) {
            return None;
        }
        let ((by_rows, stride), convert) = (self.lines(sizes)?, conversion(self.dtype, lane)?);
        Some(Narrow { bytes: self.matrix.bytes, width: self.dtype.width(), stride, by_rows, convert })
    }

    /// Row by row without gaps.
    fn dense(self, rows: usize, columns: usize) -> Result<Cow<'a, [u8]>, Error> {
        let Operand { dtype, matrix: Matrix { bytes, strides } } = self;
        let length = rows * columns * dtype.width();
        if is_dense(strides, [rows, columns]) {
            return Ok(Cow::Borrowed(&bytes[..length]));
        }
        let layout = Layout {
            shape: [rows, columns].as_slice().into(),
            strides: strides.map(|stride| stride as isize).as_slice().into(),
            offset: 0,
        };
        let mut out = scratch(OP, dtype, &layout.shape, length)?;
        strided::arrange(dtype.width(), bytes, &layout, &mut out);
        Ok(Cow::Owned(out))
    }
}

/// Whether elements lie row by row without gaps.
fn is_dense([row, column]: [usize; 2], [rows, columns]: [usize; 2]) -> bool {
    (column == 1 || columns == 1) && (row == columns || rows == 1)
}

/// Whether elements can be multiplied as they are.
fn is_lane(dtype: DType, lane: DType) -> bool {
    dtype.storage() == lane || dtype.is_integer() && lane.is_integer() && dtype.width() == lane.width()
}

/// The stride of some axes that are traversed as one; `None` if they aren't.
fn stride(layout: &Layout, axes: &[usize]) -> Option<usize> {
    // Of the last axis, and that which makes one with it.
    let mut found: Option<(isize, isize)> = None;
    for &axis in axes.iter().rev() {
        let (dim, stride) = (layout.shape[axis], layout.strides[axis]);
        if dim == 1 {
            continue;
        }
        let (last, joins) = found.unwrap_or((stride, stride));
        if stride != joins {
            return None;
        }
        found = Some((last, stride * dim as isize));
    }
    usize::try_from(found.map_or(0, |(last, _)| last)).ok()
}

/// One product a batch.
fn products(
    lane: DType,
    batches: usize,
    sizes: [usize; 3],
    left: &Prepared<'_>,
    right: &Prepared<'_>,
    out: &mut [u8],
) -> Result<(), Error> {
    let [m, k, n] = sizes;
    let width = lane.width();
    if m == 0 || n == 0 || k == 0 || batches == 0 {
        // Sums of nothing.
        out.fill(0);
        return Ok(());
    }
    let dense = batches > 1 && left.is_dense(lane, [m, k]) && right.is_dense(lane, [k, n]);
    let in_order = (dense && !is_large([m, k, n]) && !lane.is_integer()).then(|| in_order(lane, n));
    let some = |first: usize, out: &mut [u8], alone: bool| {
        if let Some(multiply) = in_order {
            multiply(sizes, left.matrix(first).matrix.bytes, right.matrix(first).matrix.bytes, out);
            return Ok(());
        }
        out.chunks_mut(m * n * width).enumerate().try_for_each(|(i, out)| {
            product(lane, sizes, left.matrix(first + i), right.matrix(first + i), out, alone)
        })
    };
    // Many products are shared out; of few, each is.
    if batches > 1 && batches >= 2 * parallel::threads() {
        let cost = in_order::cost(lane).saturating_mul((m * n) as Cost).saturating_mul(k as Cost);
        return parallel::try_fill(out, batches, cost, |first, out| some(first, out, true));
    }
    some(0, out, false)
}

/// One product of matrices; `alone` if others run beside it.
fn product(
    lane: DType,
    [m, k, n]: [usize; 3],
    left: Operand<'_>,
    right: Operand<'_>,
    out: &mut [u8],
    alone: bool,
) -> Result<(), Error> {
    let large = is_large([m, k, n]);
    // The order makes no difference to integers.
    let vectors = large || lane.is_integer();
    if vectors && n == 1 && with_vector(lane, [m, k], left, right, out, alone)? {
        return Ok(());
    }
    if vectors && m == 1 && with_vector(lane, [n, k], right.transposed(), left.transposed(), out, alone)? {
        return Ok(());
    }
    let too_large = |_| Error::TooLarge { op: OP, dtype: lane, shape: vec![m, k, n] };
    if let Some(matrix) = right.narrow([k, n], lane) {
        let out = Target { bytes: out, strides: [n, 1], alone };
        return mixed::product([m, k, n], left.matrix, matrix, out).map_err(too_large);
    }
    if let Some(matrix) = left.transposed().narrow([k, m], lane) {
        let out = Target { bytes: out, strides: [1, n], alone };
        return mixed::product([n, k, m], right.matrix.transposed(), matrix, out).map_err(too_large);
    }
    for (side, operand, [rows, columns]) in [(0, left, [m, k]), (1, right, [k, n])] {
        if !is_lane(operand.dtype, lane) {
            let narrow = operand.dense(rows, columns)?;
            let mut wide = scratch(OP, lane, &[rows, columns], rows * columns * lane.width())?;
            crate::ops::cast::convert(operand.dtype, &narrow, lane, rows * columns, &mut wide);
            let wide = Operand { dtype: lane, matrix: Matrix { bytes: &wide, strides: [columns, 1] } };
            let [left, right] = if side == 0 { [wide, right] } else { [left, wide] };
            return product(lane, [m, k, n], left, right, out, alone);
        }
    }
    if large && !lane.is_integer() {
        let out = Target { bytes: out, strides: [n, 1], alone };
        return in_order::float(lane, [m, k, n], left.matrix, right.matrix, out).map_err(too_large);
    }
    let (left, right) = (left.dense(m, k)?, right.dense(k, n)?);
    if lane.is_integer() {
        in_order::integers(lane, [m, k, n], &left, &right, out, alone);
    } else {
        in_order(lane, n)([m, k, n], &left, &right, out);
    }
    Ok(())
}

/// Multiplies dense matrices of `[m, k]` by `[k, n]`, one after the other, as many as the result
/// holds.
type InOrder = fn([usize; 3], &[u8], &[u8], &mut [u8]);

/// What adds the products up in order, for `n` columns.
fn in_order(lane: DType, n: usize) -> InOrder {
    macro_rules! each {
        ($width:expr, $multiply:expr) => {
            |sizes, left, right, out| each($width, sizes, [left, right], out, $multiply)
        };
    }
    match lane {
        DType::U8 => each!(1, in_order::ordered::<u8>),
        DType::U16 => each!(2, in_order::ordered::<u16>),
        DType::U32 => each!(4, in_order::ordered::<u32>),
        DType::U64 => each!(8, in_order::ordered::<u64>),
        DType::C128 => each!(16, in_order::ordered::<Complex<f64>>),
        DType::F32 if n == 1 => {
            each!(4, |[_, k, _], left, right, out| small::with_vector::<f32>(k, left, right, out))
        }
        DType::F32 => small::multiply::<f32>,
        DType::F64 if n == 1 => each!(8, small::with_vector_in_order),
        _ => small::multiply::<f64>,
    }
}

/// Multiplies one matrix after the other, of elements of a width.
#[inline]
fn each(
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

/// The product of a matrix of `[m, k]` with a vector, if the elements of its rows or
/// of its columns lie densely.
fn with_vector(
    lane: DType,
    [m, k]: [usize; 2],
    operand: Operand<'_>,
    vector: Operand<'_>,
    out: &mut [u8],
    alone: bool,
) -> Result<bool, Error> {
    let Some((by_rows, stride)) = operand.lines([m, k]) else { return Ok(false) };
    let bytes = operand.matrix.bytes;
    let vector = vector.dense(k, 1)?;
    let too_large = |_| Error::TooLarge { op: OP, dtype: lane, shape: vec![m, k] };
    if let Some(matrix) = operand.narrow([m, k], lane) {
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
