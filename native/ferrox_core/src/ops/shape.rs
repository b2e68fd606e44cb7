//! Operations that only move elements.

use smallvec::SmallVec;

use crate::cost::{
    self, CONCATENATED_ROW_COST, CONCATENATED_TENSOR_COST, Cost, FAR_ELEMENT_COST, MAX_STREAMED_INPUTS,
    MEMORY_BYTE_COST, MIN_LONG_ROW_ELEMENTS, MOVED_AXIS_COST, SHORT_ROW_ELEMENT_COST, Work,
};
use crate::dtype::sub_byte;
use crate::error::ShapeDisplay;
use crate::exec::copy::{
    self,
    short_rows::{MAX_LENGTH as MAX_SHORT_ROW, join},
};
use crate::exec::memory::streaming_stores;
use crate::exec::threads::parallel;
use crate::layout::{self, Layout, Shape, check_axes};
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, dispatch};

/// The cost of moving an element whose neighbours are moved too.
#[must_use]
pub fn cost(dtype: DType) -> Cost {
    2 * MEMORY_BYTE_COST * dtype.width() as Cost + sub_byte::cost(&[dtype])
}

/// Whether the last axis of a shape is short, so that loops over it begin often.
#[must_use]
pub fn has_short_rows(shape: &[usize]) -> bool {
    shape.last().is_some_and(|&row| row < MIN_LONG_ROW_ELEMENTS)
}

/// The work of moving the elements of a tensor to a result of some shape, far from each other.
#[must_use]
pub fn rearrange_work(shape: &[usize]) -> Work {
    let element = if has_short_rows(shape) { SHORT_ROW_ELEMENT_COST } else { FAR_ELEMENT_COST };
    cost::work(layout::size(shape).unwrap_or(usize::MAX), element)
        .saturating_add(cost::work(shape.len(), MOVED_AXIS_COST))
}

/// The work of decoding and of keeping the tensors of a concatenation.
#[must_use]
pub fn tensors_work(tensors: usize) -> Work {
    cost::work(tensors, CONCATENATED_TENSOR_COST)
}

/// The work of concatenating tensors along an axis to a result of some type and shape.
#[must_use]
pub fn concatenate_work(dtype: DType, shape: &[usize], axis: usize, tensors: usize) -> Work {
    let size = |shape: &[usize]| layout::size(shape).unwrap_or(usize::MAX);
    let rows = size(&shape[..axis.min(shape.len())]).saturating_mul(tensors);
    cost::work(size(shape), cost(dtype))
        .saturating_add(cost::work(rows, CONCATENATED_ROW_COST))
        .saturating_add(tensors_work(tensors))
}

/// Writes the elements that `layout` selects in row-major order.
fn rearrange(op: &'static str, out: Output<'_>, input: &Tensor<'_>, layout: Layout) -> Result<(), Error> {
    if out.shape != layout.shape.as_slice() {
        let shapes = vec![layout.shape.to_vec(), out.shape.to_vec()];
        return Err(Error::Shape { op, shapes, problem: "differ".into() });
    }
    if out.dtype != input.dtype() {
        return Err(Error::UnsupportedType { op, dtypes: vec![input.dtype(), out.dtype] });
    }
    out.write(op, |out| {
        copy::gather_all(input.dtype().width(), input.bytes(), &layout, out);
        Ok(())
    })
}

/// `Nx.transpose/2`: axis `i` of the result is axis `axes[i]` of the tensor.
///
/// # Errors
///
/// `Error::Argument` if `axes` is not a permutation, `Error::Shape` if `out` has another shape.
pub fn transpose(out: Output<'_>, input: &Tensor<'_>, axes: &[usize]) -> Result<(), Error> {
    rearrange("transpose", out, input, transpose_layout(&input.layout(), axes)?)
}

/// [`transpose`] of a layout.
///
/// # Errors
///
/// `Error::Argument` if `axes` is not a permutation.
pub fn transpose_layout(input: &Layout, axes: &[usize]) -> Result<Layout, Error> {
    let rank = input.rank();
    if axes.len() != rank || check_axes("transpose", axes, rank).is_err() {
        let problem = format!("{axes:?} is not a permutation of the axes of rank {rank}");
        return Err(Error::Argument { op: "transpose", problem });
    }
    Ok(input.transpose(axes))
}

/// `Nx.broadcast/3`: axis `i` of the tensor becomes axis `axes[i]` of the result.
///
/// # Errors
///
/// `Error::Shape` if an axis has neither its new size nor size one, `Error::Argument` if two axes become
/// the same.
pub fn broadcast(out: Output<'_>, input: &Tensor<'_>, axes: &[usize]) -> Result<(), Error> {
    let layout = broadcast_layout(&input.layout(), out.shape, axes)?;
    rearrange("broadcast", out, input, layout)
}

/// [`broadcast`] of a layout.
///
/// # Errors
///
/// As `broadcast`.
pub fn broadcast_layout(input: &Layout, shape: &[usize], axes: &[usize]) -> Result<Layout, Error> {
    let layout =
        (axes.len() == input.rank()).then(|| input.broadcast(shape, axes)).flatten().ok_or_else(|| {
            Error::Shape {
                op: "broadcast",
                shapes: vec![input.shape.to_vec(), shape.to_vec()],
                problem: format!("don't go together with axes {axes:?}"),
            }
        })?;
    check_axes("broadcast", axes, shape.len())?;
    Ok(layout)
}

/// `Nx.reverse/2`.
///
/// # Errors
///
/// `Error::Argument` for an axis out of range or named twice.
pub fn reverse(out: Output<'_>, input: &Tensor<'_>, axes: &[usize]) -> Result<(), Error> {
    rearrange("reverse", out, input, reverse_layout(&input.layout(), axes)?)
}

/// [`reverse`] of a layout.
///
/// # Errors
///
/// As `reverse`.
pub fn reverse_layout(input: &Layout, axes: &[usize]) -> Result<Layout, Error> {
    check_axes("reverse", axes, input.rank())?;
    Ok(input.reverse(axes))
}

/// `Nx.slice/4`: every `strides[i]`-th of the `lengths[i]` elements of axis `i` from `starts[i]`
/// on.
///
/// # Errors
///
/// `Error::Argument` if the elements reach past an axis.
pub fn slice(
    out: Output<'_>,
    input: &Tensor<'_>,
    starts: &[usize],
    lengths: &[usize],
    strides: &[usize],
) -> Result<(), Error> {
    rearrange("slice", out, input, slice_layout(&input.layout(), starts, lengths, strides)?)
}

/// [`slice`] of a layout.
///
/// # Errors
///
/// As `slice`.
pub fn slice_layout(
    input: &Layout,
    starts: &[usize],
    lengths: &[usize],
    strides: &[usize],
) -> Result<Layout, Error> {
    let shape = &input.shape;
    let argument = |problem| Error::Argument { op: "slice", problem };
    if [starts.len(), lengths.len(), strides.len()] != [shape.len(); 3] {
        return Err(argument(format!("needs one start, length and stride for each of {} axes", shape.len())));
    }
    for (axis, &dim) in shape.iter().enumerate() {
        let (start, length, stride) = (starts[axis], lengths[axis], strides[axis]);
        if stride == 0 || start.checked_add(length).is_none_or(|end| end > dim) {
            return Err(argument(format!(
                "start {start} with length {length} and stride {stride} reaches past axis {axis} of size {dim}"
            )));
        }
    }
    let kept: Shape = lengths.iter().zip(strides).map(|(&l, &s)| l.div_ceil(s)).collect();
    Ok(input.slice(starts, &kept, strides))
}

/// `Nx.concatenate/2` of tensors of the result's type.
///
/// # Errors
///
/// `Error::Shape` if shapes differ in another axis than `axis`, `Error::UnsupportedType` if types
/// differ.
pub fn concatenate(out: Output<'_>, inputs: &[Tensor<'_>], axis: usize) -> Result<(), Error> {
    const OP: &str = "concatenate";
    let rank = out.shape.len();
    let sizes = inputs.iter().filter_map(|t| t.shape().get(axis));
    let total = sizes.fold(0_usize, |total, &size| total.saturating_add(size));
    let fits = |t: &Tensor<'_>| {
        t.shape().len() == rank && (0..rank).all(|a| a == axis || t.shape()[a] == out.shape[a])
    };
    if axis >= rank || !inputs.iter().all(fits) || out.shape[axis] != total {
        let shapes = inputs.iter().map(|t| t.shape().to_vec()).collect();
        let problem = format!("can't be joined along axis {axis} into {}", ShapeDisplay(out.shape));
        return Err(Error::Shape { op: OP, shapes, problem });
    }
    if inputs.iter().any(|t| t.dtype() != out.dtype) {
        return Err(Error::UnsupportedType { op: OP, dtypes: inputs.iter().map(Tensor::dtype).collect() });
    }
    let width = out.dtype.width();
    let outer: usize = out.shape[..axis].iter().product();
    let inner: usize = out.shape[axis + 1..].iter().product::<usize>() * width;
    let row = total * inner;
    let mut parts = SmallVec::<[_; 4]>::new();
    let (dtype, shape) = (out.dtype, out.shape);
    let error = |_| Error::TooLarge { op: OP, dtype, shape: shape.to_vec() };
    parts.try_reserve_exact(inputs.len()).map_err(error)?;
    for tensor in inputs {
        parts.push((copy::dense(OP, tensor)?, tensor.shape()[axis] * inner));
    }
    let (size, cost) = (outer * row / width, cost(out.dtype));
    // A row of the result consists of a row of each tensor; the first row may start in the middle.
    let copy_parts = |start: usize, mut out: &mut [u8]| {
        let mut skipped = start * width % row;
        for i in start * width / row.. {
            if out.is_empty() {
                break;
            }
            for (bytes, length) in &parts {
                let first = skipped.min(*length);
                skipped -= first;
                let (head, tail) = out.split_at_mut(out.len().min(length - first));
                head.copy_from_slice(&bytes[i * length + first..][..head.len()]);
                out = tail;
            }
        }
    };
    let has_short_parts = parts.iter().all(|part| part.1 <= MAX_SHORT_ROW * width);
    let copy_rows = |start: usize, out: &mut [u8]| {
        if !has_short_parts {
            copy_parts(start, out);
            return Ok(());
        }
        let first = (start * width).next_multiple_of(row);
        let (head, rest) = out.split_at_mut(out.len().min(first - start * width));
        let (rows, tail) = rest.split_at_mut(rest.len() - rest.len() % row);
        copy_parts(start, head);
        copy_parts((first + rows.len()) / width, tail);
        dispatch!(width width, N => {
            let mut rest = SmallVec::<[_; 4]>::new();
            rest.try_reserve_exact(parts.len()).map_err(error)?;
            rest.extend(parts.iter().map(|(bytes, length)| {
                (&bytes.as_chunks::<N>().0[first / row * length / N..], length / N)
            }));
            join::<N>(&rest, rows.as_chunks_mut().0);
        });
        Ok(())
    };
    out.write(OP, |out| {
        // Every tile of streaming stores skips the tensors before its first element.
        if parts.len() <= MAX_STREAMED_INPUTS {
            streaming_stores::try_fill(out, size, cost, 0, copy_rows)
        } else {
            parallel::try_fill(out, size, cost, copy_rows)
        }
    })
}
