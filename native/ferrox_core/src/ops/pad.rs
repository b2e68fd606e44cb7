//! `Nx.pad/3`.

use crate::cost::{self, Cost, PADDED_ROW_COST, Work};
use crate::exec::copy::short_rows::{self, MAX_LENGTH};
use crate::exec::threads::parallel;
use crate::layout::size;
use crate::ops::cast::{elements, operand_cost};
use crate::ops::shape::cost;
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, dispatch};

/// The padding of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Padding {
    /// The number of elements before the first; a negative number removes elements.
    pub low: i64,
    /// The number of elements after the last; a negative number removes elements.
    pub high: i64,
    /// The number of elements between adjacent elements.
    pub interior: usize,
}

impl Padding {
    const NONE: Padding = Padding { low: 0, high: 0, interior: 0 };

    /// The padded size of an axis, or `None` if it is negative or too large.
    fn padded_size(self, dim: usize) -> Option<usize> {
        let between = (dim.saturating_sub(1) as i128).checked_mul(self.interior as i128)?;
        usize::try_from(dim as i128 + between + i128::from(self.low) + i128::from(self.high)).ok()
    }

    /// The index of the element at `position` of the result, or `None` for the padding value.
    fn source_index(self, position: usize, dim: usize) -> Option<usize> {
        let distance = u64::try_from(position as i128 - i128::from(self.low)).ok()?;
        let step = (self.interior as u64).saturating_add(1);
        let index = usize::try_from(distance / step).ok()?;
        (distance % step == 0 && index < dim).then_some(index)
    }
}

/// The work of padding a tensor, given the types and shapes of the result and of the tensor.
#[must_use]
pub fn work((dtype, shape): (DType, &[usize]), (from, input): (DType, &[usize])) -> Work {
    let of = |shape: &[usize], cost| cost::work(size(shape).unwrap_or(usize::MAX), cost);
    // Rows end where the last axis does that is padded, or that may be: its size can stay the same.
    let changed = shape.iter().zip(input).rposition(|(padded, dim)| padded != dim);
    let rows = &shape[..changed.unwrap_or(shape.len().saturating_sub(1))];
    of(shape, cost(dtype))
        .saturating_add(of(input, operand_cost(from, dtype)))
        .saturating_add(of(rows, PADDED_ROW_COST))
}

/// Pads a tensor with `value`, a scalar; both are converted to the type of the result. Negative
/// paddings remove elements after interior padding has been added.
///
/// # Errors
///
/// `Error::Shape` if `out` has another shape than the padded tensor, `Error::Argument` if `value`
/// is no scalar or an axis lacks its padding, `Error::TooLarge` if there is no memory for an
/// intermediate copy.
pub fn pad(
    out: Output<'_>,
    input: &Tensor<'_>,
    value: &Tensor<'_>,
    paddings: &[Padding],
) -> Result<(), Error> {
    const OP: &str = "pad";
    let shape = input.shape();
    if paddings.len() != shape.len() {
        let problem = format!("needs a padding for each of {} axes, got {}", shape.len(), paddings.len());
        return Err(Error::Argument { op: OP, problem });
    }
    let padded = paddings.iter().zip(shape).map(|(p, &dim)| p.padded_size(dim));
    if !padded.eq(out.shape.iter().map(|&dim| Some(dim))) {
        let shapes = vec![shape.to_vec(), out.shape.to_vec()];
        return Err(Error::Shape { op: OP, shapes, problem: "don't go together with the padding".into() });
    }
    if value.size() != 1 {
        return Err(Error::Argument { op: OP, problem: "the padding value must be a scalar".into() });
    }
    let value = elements(OP, value, out.dtype)?;
    let bytes = elements(OP, input, out.dtype)?;
    // Rows along the last axis that is padded. An element of a row has all elements of the axes
    // after it.
    let last = paddings.iter().rposition(|p| *p != Padding::NONE).unwrap_or(0);
    let inner: usize = shape.iter().skip(last + 1).product();
    let dim = shape.get(last).copied().unwrap_or(1);
    let padding = paddings.get(last).copied().unwrap_or(Padding::NONE);
    let dtype = out.dtype;
    let width = dtype.width();
    let element = inner * width;
    let Output { shape: padded, .. } = out;
    let row = padded.get(last).copied().unwrap_or(1) * element;
    let outer: &[usize] = &padded[..last.min(padded.len())];
    let rows = size(outer).unwrap_or(0);
    out.write(OP, |out| {
        if out.is_empty() {
            return Ok(());
        }
        let cost = cost(dtype).saturating_mul((row / width) as Cost).saturating_add(PADDED_ROW_COST);
        let grows = padding.low >= 0 && padding.high >= 0 && padding.interior == 0;
        let is_short =
            row <= MAX_LENGTH * width && grows && paddings[..last].iter().all(|&p| p == Padding::NONE);
        parallel::fill(out, rows, cost, |first, part| {
            if is_short {
                let (before, length) = (padding.low as usize * inner, dim * inner);
                let bytes = &bytes[first * length * width..];
                return pad_short_rows(width, (bytes, length), part, (row / width, before), &value);
            }
            for (i, slots) in part.chunks_mut(row).enumerate() {
                let source = source_row(first + i, outer, shape, paddings);
                let elements = source.map(|source| &bytes[source * dim * element..][..dim * element]);
                pad_row(width, slots, elements.unwrap_or(&[]), element, padding, &value);
            }
        });
        Ok(())
    })
}

/// Writes rows of `pitch` elements, which have some before and after the `length` elements of a row of the
/// tensor.
fn pad_short_rows(
    width: usize,
    (bytes, length): (&[u8], usize),
    out: &mut [u8],
    (pitch, before): (usize, usize),
    value: &[u8],
) {
    fill(width, out, value);
    dispatch!(width width, N => {
        short_rows::copy_apart(bytes.as_chunks::<N>().0, length, &mut out.as_chunks_mut().0[before..], pitch);
    });
}

/// The row of the tensor that a row of the result is made of, or `None` for a row of padding.
fn source_row(row: usize, outer: &[usize], shape: &[usize], paddings: &[Padding]) -> Option<usize> {
    let (mut rest, mut source, mut step) = (row, 0, 1);
    for axis in (0..outer.len()).rev() {
        source += paddings[axis].source_index(rest % outer[axis], shape[axis])? * step;
        rest /= outer[axis];
        step *= shape[axis];
    }
    Some(source)
}

/// Writes a row of padded elements of `element` bytes; without elements, the whole row is padding.
fn pad_row(width: usize, out: &mut [u8], elements: &[u8], element: usize, padding: Padding, value: &[u8]) {
    let step = padding.interior.saturating_add(1);
    let (slots, dim) = (out.len() / element, elements.len() / element);
    let magnitude = usize::try_from(padding.low.unsigned_abs()).unwrap_or(usize::MAX);
    let (start, cut) = if padding.low < 0 { (0, magnitude) } else { (magnitude, 0) };
    // The first element that is kept, and its position in the result. A position that overflows is past
    // the end of any row.
    let first = cut.div_ceil(step);
    let position = first.saturating_mul(step).saturating_sub(cut).saturating_add(start);
    let kept = slots.saturating_sub(position).div_ceil(step).min(dim.saturating_sub(first));
    if kept == 0 {
        fill(width, out, value);
        return;
    }
    let end = (position + (kept - 1) * step + 1) * element;
    fill(width, &mut out[..position * element], value);
    fill(width, &mut out[end..], value);
    let elements = &elements[first * element..(first + kept) * element];
    let out = &mut out[position * element..end];
    if step == 1 {
        out.copy_from_slice(elements);
    } else {
        fill(width, out, value);
        spread(out, elements, element, step);
    }
}

fn fill(width: usize, out: &mut [u8], value: &[u8]) {
    dispatch!(width width, N => if let Some(&value) = value.as_chunks::<N>().0.first() {
        out.as_chunks_mut::<N>().0.fill(value);
    })
}

/// Writes elements of `element` bytes to every `step`-th position.
fn spread(out: &mut [u8], elements: &[u8], element: usize, step: usize) {
    match element {
        1 | 2 | 4 | 8 | 16 => dispatch!(width element, N => {
            let slots = out.as_chunks_mut::<N>().0.iter_mut().step_by(step);
            slots.zip(elements.as_chunks::<N>().0).for_each(|(slot, element)| *slot = *element);
        }),
        _ => {
            for (slots, element) in out.chunks_mut(step * element).zip(elements.chunks(element)) {
                slots[..element.len()].copy_from_slice(element);
            }
        }
    }
}
