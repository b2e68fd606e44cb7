//! Copies of elements that aren't adjacent in memory.
//!
//! A copy depends on the width of an element, not on its type. If the next element of a row is
//! near, rows are copied by strided loops (`strided`), many at a time if they are short (`short_rows`). If
//! it is far away, but the element of the next row is near, planes are transposed in blocks
//! (`transpose`).

pub mod short_rows;
pub mod strided;
pub mod transpose;

use std::borrow::Cow;
use std::convert::Infallible;

use self::transpose::Plane;
use crate::Error;
use crate::cost::{
    self, Cost, FAR_ELEMENT_COST, MAX_DIRECT_TRANSPOSE_BYTES, MAX_UNCOLLAPSED_SIZE, MEMORY_BYTE_COST,
    MIN_PLANE_ELEMENTS, TRANSPOSED_ELEMENT_COST,
};
use crate::dispatch;
use crate::exec::memory::{scratch, streaming_stores};
use crate::exec::simd;
use crate::exec::threads::parallel;
use crate::layout::{Layout, Shape, collapse, index_of, next_row};
use crate::tensor::Tensor;

/// The elements of a tensor in row-major order without gaps, borrowed if they are stored that way.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory for a copy.
pub fn dense<'a>(op: &'static str, tensor: &'a Tensor<'_>) -> Result<Cow<'a, [u8]>, Error> {
    if let Some(bytes) = tensor.contiguous() {
        return Ok(Cow::Borrowed(bytes));
    }
    let width = tensor.dtype().width();
    let mut out = scratch(op, tensor.dtype(), tensor.shape(), tensor.size() * width)?;
    gather_all(width, tensor.bytes(), &tensor.layout(), &mut out);
    Ok(Cow::Owned(out))
}

/// Copies all elements of a layout, `width` bytes each, in row-major order, in parallel if that
/// pays.
pub fn gather_all(width: usize, bytes: &[u8], layout: &Layout, out: &mut [u8]) {
    let size = layout.size();
    if size == 0 {
        return;
    }
    if size <= MAX_UNCOLLAPSED_SIZE {
        return gather(width, bytes, layout, 0, out);
    }
    let (shape, strides) = collapse(&layout.shape, &layout.strides);
    let layout = Layout { shape, strides, offset: layout.offset };
    let step = layout.strides.last().map_or(1, |step| step.unsigned_abs());
    let unit = transpose_unit(width, &layout);
    if unit == 1 && step <= strided::MAX_STEP {
        // The gaps between the elements are read, too.
        let cost = MEMORY_BYTE_COST * ((step.max(1) + 1) * width) as Cost;
        let Ok(()) = streaming_stores::try_fill::<Infallible>(out, size, cost, 0, |start, part| {
            gather(width, bytes, &layout, start, part);
            Ok(())
        });
        return;
    }
    if unit == 1 {
        let cost =
            if has_interleaved_rows(width, &layout) { TRANSPOSED_ELEMENT_COST } else { FAR_ELEMENT_COST };
        return parallel::fill(out, size, cost, |start, part| gather(width, bytes, &layout, start, part));
    }
    let elements_per_line = (simd::CACHE_LINE_BYTES / width).max(1);
    parallel::fill_in_multiples(
        out,
        size / unit,
        cost::work(unit, TRANSPOSED_ELEMENT_COST),
        elements_per_line,
        |start, part| {
            gather(width, bytes, &layout, start * unit, part);
        },
    );
}

/// Transposes planes: the dense elements of shape `[planes, rows, columns]` become elements of
/// shape `[planes, columns, rows]`.
pub fn transpose_planes(width: usize, bytes: &[u8], sizes: [usize; 3], out: &mut [u8]) {
    if bytes.len() <= MAX_DIRECT_TRANSPOSE_BYTES {
        dispatch!(width width, N => transpose_planes_width::<N>(bytes, sizes, out));
    } else {
        gather_all(width, bytes, &Layout::contiguous(&sizes).transpose(&[0, 2, 1]), out);
    }
}

fn transpose_planes_width<const N: usize>(bytes: &[u8], [_, rows, columns]: [usize; 3], out: &mut [u8]) {
    let (elements, out) = (bytes.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    let transposed = Plane { shape: (columns, rows), first: 0, row: 1, column: columns as isize };
    let planes = elements.chunks_exact(rows * columns).zip(out.chunks_exact_mut(rows * columns));
    for (plane, out) in planes {
        transpose::plane(plane, transposed, out, rows);
    }
}

/// Copies the elements of a layout in row-major order, from the `start`-th on until `out` is full.
pub fn gather(width: usize, bytes: &[u8], layout: &Layout, start: usize, out: &mut [u8]) {
    dispatch!(width width, N => gather_width::<N>(bytes, layout, start, out));
}

/// Copies a dense tensor that is broadcast from shape `from` to shape `to`, without making a
/// layout, if all axes that repeat are before or after the other axes, as for a row or a column.
/// Returns whether it has copied the tensor.
#[must_use]
pub fn broadcast_dense(width: usize, bytes: &[u8], from: &[usize], to: &[usize], out: &mut [u8]) -> bool {
    dispatch!(width width, N => broadcast_dense_width::<N>(bytes, from, to, out))
}

/// The opposite of `gather`: writes elements, given in row-major order, to the indices of a layout.
pub fn scatter(width: usize, elements: &[u8], out: &mut [u8], layout: &Layout) {
    dispatch!(width width, N => scatter_width::<N>(elements, out, layout));
}

fn broadcast_dense_width<const N: usize>(bytes: &[u8], from: &[usize], to: &[usize], out: &mut [u8]) -> bool {
    let (elements, out) = (bytes.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    let Some(lead) = to.len().checked_sub(from.len()) else { return false };
    let own = &to[lead..];
    let repeats = |axis: &usize| from[*axis] != own[*axis];
    let after = (0..from.len()).rev().take_while(repeats).count();
    let kept = (0..from.len() - after).rev().take_while(|axis| !repeats(axis)).count();
    let before = from.len() - after - kept;
    let ones = |axes: &[usize]| axes.iter().all(|&dim| dim == 1);
    if !ones(&from[..before]) || !ones(&from[from.len() - after..]) {
        return false;
    }
    let each: usize = own[own.len() - after..].iter().product();
    if elements.is_empty() || out.len() % (elements.len() * each).max(1) != 0 {
        return false;
    }
    if each == 1 {
        repeat_row(elements, out);
    } else {
        out.chunks_exact_mut(elements.len() * each)
            .for_each(|out| short_rows::repeat_each(elements, each, out));
    }
    true
}

/// Copies a few bytes to as many. A copy of a number that is not known costs a call of the C library.
#[inline]
pub fn few(from: &[u8], to: &mut [u8]) {
    /// Copies the first `N` and the last `N` bytes, which may overlap.
    #[inline(always)]
    fn ends<const N: usize>(from: &[u8], to: &mut [u8]) {
        let last = to.len() - N;
        to[..N].copy_from_slice(&from[..N]);
        to[last..].copy_from_slice(&from[last..]);
    }
    let from = &from[..to.len()];
    match to.len() {
        0 => {}
        1 => to[0] = from[0],
        2..4 => ends::<2>(from, to),
        4..8 => ends::<4>(from, to),
        8..16 => ends::<8>(from, to),
        16..32 => ends::<16>(from, to),
        32..=64 => ends::<32>(from, to),
        _ => to.copy_from_slice(from),
    }
}

/// Fills `out` with copies of a row.
pub fn repeat_row<const N: usize>(row: &[[u8; N]], out: &mut [[u8; N]]) {
    if !short_rows::try_repeat_row(row, out) {
        out.chunks_exact_mut(row.len()).for_each(|out| out.copy_from_slice(row));
    }
}

fn scatter_width<const N: usize>(elements: &[u8], out: &mut [u8], layout: &Layout) {
    let mut elements = elements.as_chunks::<N>().0;
    let out = out.as_chunks_mut::<N>().0;
    let Layout { shape, strides, offset } = layout;
    let Some(last) = shape.len().checked_sub(1) else {
        out[*offset] = elements[0];
        return;
    };
    let mut counts = Shape::from_elem(0, shape.len());
    let mut row = *offset as isize;
    while !elements.is_empty() {
        let (head, tail) = elements.split_at(shape[last]);
        if strides[last] == 1 {
            out[row as usize..row as usize + head.len()].copy_from_slice(head);
        } else {
            for (i, element) in head.iter().enumerate() {
                out[(row + i as isize * strides[last]) as usize] = *element;
            }
        }
        elements = tail;
        next_row(layout, &mut counts, &mut row);
    }
}

/// Whether rows are so short that their elements are interleaved, not transposed in blocks.
fn has_interleaved_rows(width: usize, Layout { shape, .. }: &Layout) -> bool {
    let length = shape.last().map_or(0, |&length| length);
    length < 8 || length == 8 && (2..=4).contains(&width)
}

/// The axis with the smallest stride, if it isn't the last axis, and the last axis has a large
/// stride: both axes form a plane to transpose.
fn near_axis(width: usize, layout: &Layout) -> Option<usize> {
    let Layout { shape, strides, .. } = layout;
    let (&step, outer) = strides.split_last()?;
    if step.unsigned_abs() <= strided::MAX_STEP || has_interleaved_rows(width, layout) {
        return None;
    }
    let repeated = |axis: &usize| strides[*axis] == 0 || shape[*axis] == 1;
    let axis = (0..outer.len()).filter(|axis| !repeated(axis)).min_by_key(|&a| strides[a].unsigned_abs())?;
    let size = shape[axis] * shape[outer.len()];
    (strides[axis].unsigned_abs() < step.unsigned_abs() && size >= MIN_PLANE_ELEMENTS).then_some(axis)
}

/// The number of elements that are best copied together: all elements of the axes after the one
/// that `near_axis` finds, or one element.
fn transpose_unit(width: usize, layout: &Layout) -> usize {
    near_axis(width, layout).map_or(1, |axis| layout.shape[axis + 1..].iter().product())
}

fn gather_width<const N: usize>(bytes: &[u8], layout: &Layout, start: usize, out: &mut [u8]) {
    let (source, mut out) = (bytes.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    let Some(axis) = near_axis(N, layout) else {
        strided::rows(source, layout, start, out);
        return;
    };
    let Layout { shape, strides, offset } = layout;
    let last = shape.len() - 1;
    let inner: usize = shape[axis + 1..].iter().product();
    // The elements before the first whole row of the axis.
    let head = (start.next_multiple_of(inner) - start).min(out.len());
    let (rows, rest) = out.split_at_mut(head);
    strided::rows(source, layout, start, rows);
    out = rest;
    let mut row = (start + head) / inner;
    while out.len() >= inner {
        let (place, block) = (row % shape[axis], row / shape[axis]);
        let rows = (shape[axis] - place).min(out.len() / inner);
        let first =
            index_of(&shape[..axis], &strides[..axis], *offset, block) + place as isize * strides[axis];
        for (i, left) in (0..inner).step_by(shape[last]).enumerate() {
            let between = index_of(&shape[axis + 1..last], &strides[axis + 1..last], 0, i);
            let shape = (rows, shape[last]);
            let plane = Plane { shape, first: first + between, row: strides[axis], column: strides[last] };
            transpose::plane(source, plane, &mut out[left..], inner);
        }
        out = &mut out[rows * inner..];
        row += rows;
    }
    strided::rows(source, layout, row * inner, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_gives_what_broadcasting_does() {
        let dims = [1, 2, 3];
        let (mut broadcasts, mut others) = (0, 0);
        for rank in 0..4 {
            for code in 0..6_usize.pow(rank as u32) {
                // Axes of sizes 1 to 3 that stay as they are, axes of size 1 that become 1 to 3,
                // and new axes before them.
                let axes: Vec<_> = (0..rank).map(|axis| code / 6_usize.pow(axis as u32) % 6).collect();
                let from: Vec<usize> =
                    axes.iter().map(|&code| if code < 3 { dims[code] } else { 1 }).collect();
                let to: Vec<usize> = axes.iter().map(|&code| dims[code % 3]).collect();
                for lead in 0..=rank {
                    let to = [vec![2; lead], to.clone()].concat();
                    let bytes: Vec<u8> = (1..=from.iter().product::<usize>() as u8).collect();
                    let layout = Layout::contiguous(&from).broadcast_right(&to).expect("goes together");
                    let mut expected = vec![0; to.iter().product()];
                    gather(1, &bytes, &layout, 0, &mut expected);
                    let mut out = vec![0; expected.len()];
                    if broadcast_dense(1, &bytes, &from, &to, &mut out) {
                        broadcasts += 1;
                        assert_eq!(out, expected, "{from:?} to {to:?}");
                    } else {
                        others += 1;
                    }
                }
            }
        }
        assert!(broadcasts > others && others > 0, "{broadcasts}, {others}");
    }

    #[test]
    fn gather_reads_every_layout_from_any_start() {
        let data: Vec<u8> = (0..60).collect();
        let base = Layout::contiguous(&[3, 4, 5]);
        let layouts = [
            base.clone(),
            base.transpose(&[2, 0, 1]),
            base.reverse(&[0, 2]),
            base.slice(&[1, 0, 1], &[2, 2, 2], &[1, 2, 2]),
            Layout::contiguous(&[4, 1]).broadcast(&[3, 4, 5], &[1, 2]).expect("fits"),
        ];
        for layout in layouts {
            let expected: Vec<u8> = (0..layout.size())
                .map(|i| data[index_of(&layout.shape, &layout.strides, layout.offset, i) as usize])
                .collect();
            for start in 0..layout.size() {
                let mut out = vec![0; layout.size() - start];
                gather(1, &data, &layout, start, &mut out);
                assert_eq!(out, expected[start..], "{layout:?} from {start}");
            }
            // Scattering and gathering again gives the elements, unless axes repeat elements.
            if !layout.strides.contains(&0) {
                let elements: Vec<u8> = (100..).take(layout.size()).collect();
                let (mut out, mut back) = (vec![0; data.len()], vec![0; layout.size()]);
                scatter(1, &elements, &mut out, &layout);
                gather(1, &out, &layout, 0, &mut back);
                assert_eq!(back, elements, "{layout:?}");
            }
        }
    }

    #[test]
    fn gather_transposes_planes_of_every_width() {
        let base = Layout::contiguous(&[5, 70, 133]);
        let matrix = Layout::contiguous(&[70, 133]);
        let layouts = [
            matrix.transpose(&[1, 0]),
            matrix.reverse(&[0]).transpose(&[1, 0]),
            matrix.reverse(&[1]).transpose(&[1, 0]),
            matrix.slice(&[1, 2], &[30, 60], &[2, 2]).transpose(&[1, 0]),
            Layout::contiguous(&[133, 3]).transpose(&[1, 0]),
            Layout::contiguous(&[3, 133]).transpose(&[1, 0]),
            base.transpose(&[0, 2, 1]),
            base.transpose(&[2, 1, 0]),
            base.transpose(&[1, 2, 0]),
            base.transpose(&[2, 0, 1]),
            base.slice(&[0, 3, 2], &[5, 22, 40], &[1, 3, 3]),
            base.reverse(&[2]).slice(&[0, 3, 2], &[5, 60, 25], &[1, 1, 4]),
        ];
        for width in [1, 2, 4, 8, 16] {
            let data: Vec<u8> = (0..base.size() * width).map(|i| (i * 31 % 251) as u8).collect();
            for layout in &layouts {
                let size = layout.size();
                let expected: Vec<u8> = (0..size)
                    .map(|i| index_of(&layout.shape, &layout.strides, layout.offset, i) as usize * width)
                    .flat_map(|place| data[place..place + width].iter().copied())
                    .collect();
                for (start, end) in [(0, size), (0, size / 2), (size / 3, size - 1), (7, 9)] {
                    let mut out = vec![0; (end - start) * width];
                    gather(width, &data, layout, start, &mut out);
                    assert_eq!(out, expected[start * width..end * width], "{width} {layout:?} from {start}");
                }
            }
        }
    }
}
