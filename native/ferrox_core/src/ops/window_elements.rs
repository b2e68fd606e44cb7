//! The elements of every window over a tensor, one window after the other, which
//! `Nx.window_reduce/5` passes to its function.

use crate::cost::{self, Cost, WINDOW_ELEMENT_COST};
use crate::dtype::sub_byte;
use crate::exec::copy;
use crate::exec::threads::parallel;
use crate::layout::row_major;
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, dispatch};

const OP: &str = "window_reduce";

/// Windows over the axes of a tensor. Lists have an entry for each axis.
#[derive(Clone, Copy, Debug)]
pub struct Windows<'a> {
    /// The number of elements of a window along each axis.
    pub sizes: &'a [usize],
    /// The distance from one window to the next.
    pub strides: &'a [usize],
    /// The distance from one element of a window to the next.
    pub dilations: &'a [usize],
    /// The padding before and after each axis; a negative number removes elements.
    pub padding: &'a [(isize, isize)],
}

/// The cost of copying an element of a window.
#[must_use]
pub fn cost(dtype: DType) -> Cost {
    WINDOW_ELEMENT_COST + sub_byte::cost(&[dtype])
}

/// Writes the elements of each window in row-major order, and `pad` where a window reaches past the
/// tensor. The shape of `out` is the number of windows along each axis, followed by the sizes of a
/// window.
///
/// # Errors
///
/// `Error::Argument` if the windows are not given for each axis or don't fit, `Error::Shape` if
/// `out` has another shape, `Error::UnsupportedType` if types differ.
pub fn window_elements(
    out: Output<'_>,
    input: &Tensor<'_>,
    pad: &Tensor<'_>,
    windows: Windows<'_>,
) -> Result<(), Error> {
    let shape = input.shape();
    let (Some(pad), true) = (pad.scalar(), pad.dtype() == input.dtype() && out.dtype == input.dtype()) else {
        return Err(Error::UnsupportedType { op: OP, dtypes: vec![input.dtype(), pad.dtype()] });
    };
    let positions = (0..shape.len())
        .map(|axis| positions(shape, axis, windows))
        .collect::<Option<Vec<_>>>()
        .filter(|positions| windows.fit(positions.len()))
        .ok_or_else(|| Error::Argument {
            op: OP,
            problem: format!("{windows:?} don't go together with a tensor of {} axes", shape.len()),
        })?;
    if !out.shape.iter().eq(positions.iter().chain(windows.sizes)) {
        let shapes = vec![shape.to_vec(), out.shape.to_vec()];
        return Err(Error::Shape { op: OP, shapes, problem: "don't go together with the windows".into() });
    }
    let window: usize = windows.sizes.iter().product();
    let count: usize = positions.iter().product();
    if window * count == 0 {
        return Ok(());
    }
    let strides = row_major(shape);
    let axis_offsets: Vec<WindowOffsets> = (0..shape.len())
        .map(|axis| WindowOffsets::new(shape[axis], positions[axis], strides[axis], axis, windows))
        .collect();
    let bytes = copy::dense(OP, input)?;
    let fill = dispatch!(width input.dtype().width(), N => copy_windows::<N> as CopyWindows);
    out.write(OP, |out| {
        let cost = cost::work(window, cost(input.dtype()));
        parallel::fill(out, count, cost, |first, out| fill(&bytes, pad, &axis_offsets, first, out));
        Ok(())
    })
}

impl Windows<'_> {
    fn fit(&self, rank: usize) -> bool {
        [self.sizes.len(), self.strides.len(), self.dilations.len(), self.padding.len()] == [rank; 4]
    }
}

/// Returns the number of windows that fit along an axis, or `None` if none do.
fn positions(shape: &[usize], axis: usize, windows: Windows<'_>) -> Option<usize> {
    let (low, high) = *windows.padding.get(axis)?;
    let (size, stride) = (*windows.sizes.get(axis)?, *windows.strides.get(axis)?);
    let dilation = *windows.dilations.get(axis)?;
    let padded = isize::try_from(shape[axis]).ok()?.checked_add(low)?.checked_add(high)?;
    let span = size.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
    if stride == 0 || dilation == 0 {
        return None;
    }
    Some(usize::try_from(padded).ok()?.checked_sub(span)? / stride + 1)
}

/// The offsets of the elements of all windows along an axis: for each position of a window, the
/// offset of each of its elements, or `PADDING_OFFSET`.
struct WindowOffsets {
    size: usize,
    positions: usize,
    offsets: Vec<usize>,
}

/// The offset of elements of the padding.
const PADDING_OFFSET: usize = usize::MAX;

impl WindowOffsets {
    fn new(dim: usize, positions: usize, distance: isize, axis: usize, windows: Windows<'_>) -> Self {
        let (size, low) = (windows.sizes[axis], windows.padding[axis].0);
        let offset = |position: usize, step: usize| {
            let index = (position * windows.strides[axis] + step * windows.dilations[axis]) as isize - low;
            let inside = (0..dim as isize).contains(&index);
            if inside { (index * distance) as usize } else { PADDING_OFFSET }
        };
        let offsets =
            (0..positions).flat_map(|position| (0..size).map(move |step| offset(position, step))).collect();
        WindowOffsets { size, positions, offsets }
    }

    fn at(&self, position: usize) -> &[usize] {
        &self.offsets[position * self.size..(position + 1) * self.size]
    }
}

/// Copies windows. The arguments are the elements, the padding element, the offsets for each axis,
/// the number of the first window, and the bytes to fill.
type CopyWindows = fn(&[u8], &[u8], &[WindowOffsets], usize, &mut [u8]);

fn copy_windows<const N: usize>(
    bytes: &[u8],
    pad: &[u8],
    axis_offsets: &[WindowOffsets],
    first: usize,
    out: &mut [u8],
) {
    let (elements, pad) = (bytes.as_chunks::<N>().0, pad.as_chunks::<N>().0[0]);
    let out = out.as_chunks_mut::<N>().0;
    let Some((last, outer)) = axis_offsets.split_last() else {
        out.fill(elements[0]);
        return;
    };
    let window: usize = axis_offsets.iter().map(|axis_offsets| axis_offsets.size).product();
    for (number, out) in out.chunks_exact_mut(window).enumerate() {
        let mut rest = first + number;
        let inner = last.at(rest % last.positions);
        rest /= last.positions;
        // The offsets for the other axes, the last axis first.
        let rows: Vec<&[usize]> = outer
            .iter()
            .rev()
            .map(|axis_offsets| {
                let position = rest % axis_offsets.positions;
                rest /= axis_offsets.positions;
                axis_offsets.at(position)
            })
            .collect();
        for (row, out) in out.chunks_exact_mut(last.size).enumerate() {
            let mut rest = row;
            let start = rows.iter().try_fold(0, |start, offsets| {
                let offset = offsets[rest % offsets.len()];
                rest /= offsets.len();
                (offset != PADDING_OFFSET).then(|| start + offset)
            });
            match start {
                None => out.fill(pad),
                Some(start) => {
                    for (slot, &offset) in out.iter_mut().zip(inner) {
                        *slot = if offset == PADDING_OFFSET { pad } else { elements[start + offset] };
                    }
                }
            }
        }
    }
}
