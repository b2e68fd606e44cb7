//! The elements of every window over a tensor, one window after the other, which
//! `Nx.window_reduce/5` passes to its function.

use std::ops::Range;

use smallvec::SmallVec;

use crate::cost::{self, Cost, WINDOW_ELEMENT_COST, WINDOW_ROW_COST, Work};
use crate::dtype::sub_byte;
use crate::exec::copy;
use crate::exec::threads::parallel;
use crate::layout::{MAX_EXTENT, row_major, size};
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

/// The work of copying windows to a result of some type and shape.
#[must_use]
pub fn work(dtype: DType, shape: &[usize]) -> Work {
    let size = |shape: &[usize]| size(shape).unwrap_or(usize::MAX);
    let rows = &shape[..shape.len().saturating_sub(1)];
    cost::work(size(shape), cost(dtype)).saturating_add(cost::work(size(rows), WINDOW_ROW_COST))
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
    let axes: SmallVec<[AxisWindows; 4]> = (0..shape.len())
        .map(|axis| AxisWindows {
            dim: shape[axis],
            positions: positions[axis],
            size: windows.sizes[axis],
            // Between one window or element and the next there is a distance only if there are two.
            stride: if positions[axis] == 1 { 1 } else { windows.strides[axis] },
            dilation: if windows.sizes[axis] == 1 { 1 } else { windows.dilations[axis] },
            low: windows.padding[axis].0,
            distance: strides[axis] as usize,
        })
        .collect();
    let bytes = copy::dense(OP, input)?;
    let fill = dispatch!(width input.dtype().width(), N => copy_windows::<N> as CopyWindows);
    out.write(OP, |out| {
        let cost = cost::work(window, cost(input.dtype()));
        parallel::fill(out, count, cost, |first, out| fill(&bytes, pad, &axes, first, out));
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
    // Indices count from the first element, to which the padding is added.
    if low.unsigned_abs() as i128 > MAX_EXTENT {
        return None;
    }
    let span = size.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
    if stride == 0 || dilation == 0 {
        return None;
    }
    Some(usize::try_from(padded).ok()?.checked_sub(span)? / stride + 1)
}

/// The windows along an axis. All positions and elements of them are within the padded axis, whose size
/// is an `isize`.
struct AxisWindows {
    /// The number of elements of the axis, and the distance from one to the next in memory.
    dim: usize,
    distance: usize,
    /// The number of windows, and the distance from one to the next.
    positions: usize,
    stride: usize,
    /// The number of elements of a window, and the distance from one to the next.
    size: usize,
    dilation: usize,
    /// The padding before the axis; a negative number removes elements.
    low: isize,
}

impl AxisWindows {
    /// The index of the first element of a window, which is negative in the padding.
    fn start(&self, position: usize) -> isize {
        (position * self.stride) as isize - self.low
    }

    /// The offset of an element of a window that starts at an index, or `None` in the padding.
    fn offset(&self, start: isize, step: usize) -> Option<usize> {
        let index = usize::try_from(start + (step * self.dilation) as isize).ok()?;
        (index < self.dim).then(|| index * self.distance)
    }

    /// The elements of a window that starts at an index which are not in the padding.
    fn inside(&self, start: isize) -> Range<usize> {
        let Some(last) =
            (self.dim as isize).checked_sub(start).and_then(|left| usize::try_from(left - 1).ok())
        else {
            return 0..0;
        };
        let end = (last / self.dilation + 1).min(self.size);
        let before = if start < 0 { start.unsigned_abs().div_ceil(self.dilation) } else { 0 };
        before.min(end)..end
    }
}

/// Copies windows. The arguments are the elements, the padding element, the windows along each axis,
/// the number of the first window, and the bytes to fill.
type CopyWindows = fn(&[u8], &[u8], &[AxisWindows], usize, &mut [u8]);

fn copy_windows<const N: usize>(
    bytes: &[u8],
    pad: &[u8],
    axes: &[AxisWindows],
    first: usize,
    out: &mut [u8],
) {
    let (elements, pad) = (bytes.as_chunks::<N>().0, pad.as_chunks::<N>().0[0]);
    let out = out.as_chunks_mut::<N>().0;
    let Some((last, outer)) = axes.split_last() else {
        out.fill(elements[0]);
        return;
    };
    let window: usize = axes.iter().map(|axis| axis.size).product();
    // Where the window starts on the other axes, the last axis first.
    let mut starts = SmallVec::<[isize; 4]>::from_elem(0, outer.len());
    for (number, out) in out.chunks_exact_mut(window).enumerate() {
        let mut rest = first + number;
        let inner = last.start(rest % last.positions);
        let inside = last.inside(inner);
        rest /= last.positions;
        for (slot, axis) in starts.iter_mut().zip(outer.iter().rev()) {
            *slot = axis.start(rest % axis.positions);
            rest /= axis.positions;
        }
        for (row, out) in out.chunks_exact_mut(last.size).enumerate() {
            let mut rest = row;
            let offset = starts.iter().zip(outer.iter().rev()).try_fold(0, |offset, (&start, axis)| {
                let step = rest % axis.size;
                rest /= axis.size;
                Some(offset + axis.offset(start, step)?)
            });
            let Some(offset) = offset.filter(|_| !inside.is_empty()) else {
                out.fill(pad);
                continue;
            };
            out[..inside.start].fill(pad);
            out[inside.end..].fill(pad);
            let row = &elements[offset..][..last.dim];
            let mut index = (inner + (inside.start * last.dilation) as isize) as usize;
            for slot in &mut out[inside.clone()] {
                *slot = row[index];
                index += last.dilation;
            }
        }
    }
}
