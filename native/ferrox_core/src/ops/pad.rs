//! `Nx.pad/3`.

use crate::Error;
use crate::cost::Cost;
use crate::exec::threads::parallel;
use crate::layout::size;
use crate::ops::cast::elements;
pub use crate::ops::shape::cost;
use crate::tensor::{Output, Tensor};

/// What goes around the elements of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Padding {
    /// Elements before the first; fewer than none cut off as many.
    pub low: i64,
    /// Elements after the last; fewer than none cut off as many.
    pub high: i64,
    /// Elements between any two.
    pub interior: usize,
}

impl Padding {
    /// The size of an axis of `dim` with this around it, if there is such a size.
    fn around(self, dim: usize) -> Option<usize> {
        let between = (dim.saturating_sub(1) as i128).checked_mul(self.interior as i128)?;
        usize::try_from(dim as i128 + between + i128::from(self.low) + i128::from(self.high)).ok()
    }

    fn is_none(self) -> bool {
        self == Padding { low: 0, high: 0, interior: 0 }
    }

    /// The index that an element at `position` of the result comes from.
    fn source(self, position: usize, dim: usize) -> Option<usize> {
        let distance = u64::try_from(position as i128 - i128::from(self.low)).ok()?;
        let step = (self.interior as u64).saturating_add(1);
        let index = usize::try_from(distance / step).ok()?;
        (distance % step == 0 && index < dim).then_some(index)
    }
}

/// Puts `value`, one element, around those of a tensor; both become the type of
/// the result. What is cut off is cut off after the interior is filled in.
///
/// # Errors
///
/// `Error::Shape` if `out` has another shape than the padded tensor,
/// `Error::Argument` if `value` is no scalar or an axis lacks its padding,
/// `Error::TooLarge` if there is no memory for an intermediate copy.
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
    let padded = paddings.iter().zip(shape).map(|(p, &dim)| p.around(dim));
    if !padded.eq(out.shape.iter().map(|&dim| Some(dim))) {
        let shapes = vec![shape.to_vec(), out.shape.to_vec()];
        return Err(Error::Shape { op: OP, shapes, problem: "don't go together with the padding".into() });
    }
    if value.size() != 1 {
        return Err(Error::Argument { op: OP, problem: "the padding value must be a scalar".into() });
    }
    let value = elements(OP, value, out.dtype)?;
    let bytes = elements(OP, input, out.dtype)?;
    // Rows along the last axis with a padding, of elements that are the axes after it.
    let last = paddings.iter().rposition(|p| !p.is_none()).unwrap_or(0);
    let inner: usize = shape.iter().skip(last + 1).product();
    let dim = shape.get(last).copied().unwrap_or(1);
    let padding = paddings.get(last).copied().unwrap_or(Padding { low: 0, high: 0, interior: 0 });
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
        parallel::fill(out, rows, cost(dtype).saturating_mul((row / width) as Cost), |first, part| {
            for (i, slots) in part.chunks_mut(row).enumerate() {
                let source = row_of(first + i, outer, shape, paddings);
                let elements = source.map(|source| &bytes[source * dim * element..][..dim * element]);
                pad_row(width, slots, elements.unwrap_or(&[]), element, padding, &value);
            }
        });
        Ok(())
    })
}

/// The row of the tensor that a row of the result has the elements of.
fn row_of(row: usize, outer: &[usize], shape: &[usize], paddings: &[Padding]) -> Option<usize> {
    let (mut rest, mut source, mut step) = (row, 0, 1);
    for axis in (0..outer.len()).rev() {
        source += paddings[axis].source(rest % outer[axis], shape[axis])? * step;
        rest /= outer[axis];
        step *= shape[axis];
    }
    Some(source)
}

/// Writes a row of `elements`, each of so many bytes, with the padding around
/// them; one without elements is padding throughout.
fn pad_row(width: usize, out: &mut [u8], elements: &[u8], element: usize, padding: Padding, value: &[u8]) {
    let step = padding.interior + 1;
    // Where elements are next to each other, they are copied as one.
    let (slots, dim) = (out.len() / element, elements.len() / element);
    let cut = usize::try_from(-padding.low).unwrap_or(0);
    let start = usize::try_from(padding.low).unwrap_or(0);
    // The first element that is not cut off, and its place.
    let first = cut.div_ceil(step);
    let place = start + (first * step - cut);
    let kept = slots.saturating_sub(place).div_ceil(step).min(dim.saturating_sub(first));
    if kept == 0 {
        fill(width, out, value);
        return;
    }
    let end = (place + (kept - 1) * step + 1) * element;
    fill(width, &mut out[..place * element], value);
    fill(width, &mut out[end..], value);
    let elements = &elements[first * element..(first + kept) * element];
    let out = &mut out[place * element..end];
    if step == 1 {
        out.copy_from_slice(elements);
    } else {
        fill(width, out, value);
        spread(width, out, elements, element, step);
    }
}

fn fill(width: usize, out: &mut [u8], value: &[u8]) {
    fn of<const N: usize>(out: &mut [u8], value: &[u8]) {
        if let Some(&value) = value.as_chunks::<N>().0.first() {
            out.as_chunks_mut::<N>().0.fill(value);
        }
    }
    match width {
        1 => of::<1>(out, value),
        2 => of::<2>(out, value),
        4 => of::<4>(out, value),
        8 => of::<8>(out, value),
        _ => of::<16>(out, value),
    }
}

/// Writes every `step`-th element.
fn spread(width: usize, out: &mut [u8], elements: &[u8], element: usize, step: usize) {
    fn of<const N: usize>(out: &mut [u8], elements: &[u8], step: usize) {
        for (slot, element) in out.as_chunks_mut::<N>().0.iter_mut().step_by(step).zip(elements.as_chunks().0)
        {
            *slot = *element;
        }
    }
    match element {
        1 => of::<1>(out, elements, step),
        2 => of::<2>(out, elements, step),
        4 => of::<4>(out, elements, step),
        8 => of::<8>(out, elements, step),
        16 if width == 16 => of::<16>(out, elements, step),
        _ => {
            for (slots, element) in out.chunks_mut(step * element).zip(elements.chunks(element)) {
                slots[..element.len()].copy_from_slice(element);
            }
        }
    }
}
