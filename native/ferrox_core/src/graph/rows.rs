//! The rows of an operand of a cluster: where in memory each of them is.
//!
//! An operand is read in place where the rows of a block are adjacent, or are one and the same row.
//! Others are gathered first, block by block, into memory that stays in the cache: parts of larger
//! tensors, and rows that are repeated after short distances.

use crate::cost::{COPIED_ROW_ELEMENTS, MIN_CLUSTER_PERIOD_BYTES, MIN_CLUSTER_RUN_BYTES};
use crate::dispatch;
use crate::exec::copy;
use crate::layout::{self, Layout, Shape};

/// What of an operand belongs to a row of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// A row of as many elements.
    Row,
    /// One element.
    Element,
    /// The same row for all rows.
    SameRow,
    /// The same row for all rows of a block.
    BlockRow,
    /// The same element for all rows.
    SameElement,
}

/// The rows of an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InputRows {
    /// The number of bytes in a row.
    pub(super) width: usize,
    /// Where the rows are, with one element for each row. Strides and offset are in bytes, and no two axes
    /// could be one.
    places: Layout,
    /// Whether the rows are gathered.
    pub(super) is_gathered: bool,
}

impl InputRows {
    /// The rows of a tensor that has no others, one after the other.
    pub(super) fn adjacent(width: usize, rows: usize) -> Self {
        InputRows::new(width, width, &[rows], &[width as isize], 0)
    }

    /// Rows of a value that is assembled for each block.
    pub(super) fn gathered(width: usize, rows: usize) -> Self {
        InputRows { is_gathered: true, ..InputRows::adjacent(width, rows) }
    }

    /// Rows of `width` bytes, as far as the shape and the strides say, that belong to rows of `row_bytes`
    /// bytes.
    fn new(width: usize, row_bytes: usize, shape: &[usize], strides: &[isize], offset: usize) -> Self {
        let (shape, strides) = layout::collapse(shape, strides);
        let mut rows = InputRows { width, places: Layout { shape, strides, offset }, is_gathered: false };
        let (span, step) = (rows.span(), rows.step());
        let are_blocks_long = span == rows.places.size() || span * row_bytes >= MIN_CLUSTER_PERIOD_BYTES;
        rows.is_gathered = !are_blocks_long || (step != 0 && step != width as isize);
        rows
    }

    /// What of an operand belongs to a row of a result of some shape, and the rows, unless all rows
    /// read the same from the operand's first byte on. The operand is read with a layout, and its elements
    /// have `width` bytes. The axes of a result before the one with the number `leading` make up its rows.
    /// Returns `None` if the elements that belong to a row are not adjacent.
    pub(super) fn of(
        operand: &Layout,
        result: &[usize],
        leading: usize,
        width: usize,
    ) -> Option<(Extent, Option<Self>)> {
        let Layout { strides, offset, .. } = operand.broadcast_right(result)?;
        let (elements, steps) = layout::collapse(&result[leading..], &strides[leading..]);
        let is_row = match (&elements[..], &steps[..]) {
            ([], _) | ([_], [1]) => true,
            ([_], [0]) => false,
            _ => return None,
        };
        let shape = &result[..leading];
        let strides: layout::Strides =
            strides[..leading].iter().map(|&stride| stride * width as isize).collect();
        if offset == 0 && shape.iter().zip(&strides).all(|(&size, &step)| size == 1 || step == 0) {
            let is_element = operand.size() == 1;
            return Some((if is_element { Extent::SameElement } else { Extent::SameRow }, None));
        }
        let row_elements: usize = if is_row { elements.iter().product() } else { 1 };
        let row_bytes = result[leading..].iter().product::<usize>() * width;
        let mut rows = InputRows::new(row_elements * width, row_bytes, shape, &strides, offset * width);
        // One element that several rows share is copied for each.
        rows.is_gathered |= rows.step() == 0 && row_elements == 1;
        let extent = match is_row {
            true if rows.are_one_in_block() => Extent::BlockRow,
            true => Extent::Row,
            false => Extent::Element,
        };
        Some((extent, Some(rows)))
    }

    /// Whether these are all rows of a tensor, one after the other.
    pub(super) fn are_adjacent(&self) -> bool {
        *self == InputRows::adjacent(self.width, self.places.size())
    }

    /// Whether all rows of a block are the same one.
    pub(super) fn are_one_in_block(&self) -> bool {
        !self.is_gathered && self.step() == 0
    }

    /// The number of rows at equal distances.
    fn span(&self) -> usize {
        self.places.shape.last().copied().unwrap_or(1)
    }

    /// The distance of these, in bytes.
    fn step(&self) -> isize {
        self.places.strides.last().copied().unwrap_or(self.width as isize)
    }

    /// The number of rows from a row on that are read in place together.
    pub(super) fn rows_in_place(&self, first: usize) -> usize {
        if self.is_gathered { usize::MAX } else { self.span() - first % self.span() }
    }

    /// Whether rows that have to be gathered are adjacent in long runs.
    pub(super) fn have_long_runs(&self) -> bool {
        self.is_gathered && self.step() != 0 && self.rows_in_run(0) * self.width >= MIN_CLUSTER_RUN_BYTES
    }

    /// The number of rows from a row on that are adjacent.
    pub(super) fn rows_in_run(&self, first: usize) -> usize {
        if self.step() == self.width as isize { self.span() - first % self.span() } else { 1 }
    }

    /// The first byte of a row.
    pub(super) fn start(&self, row: usize) -> usize {
        let Layout { shape, strides, offset } = &self.places;
        layout::index_of(shape, strides, *offset, row) as usize
    }

    /// Copies the rows from the row `first` on, as many as `out` has room for.
    pub(super) fn gather(&self, bytes: &[u8], mut first: usize, mut out: &mut [u8]) {
        if let Some(elements) = self.elements() {
            return copy::gather(self.width, bytes, &elements, first, out);
        }
        let span = self.span();
        while !out.is_empty() {
            let rows = (span - first % span).min(out.len() / self.width);
            let (run, rest) = std::mem::take(&mut out).split_at_mut(rows * self.width);
            self.gather_run(bytes, self.start(first), run);
            (first, out) = (first + rows, rest);
        }
    }

    /// Where the rows are in numbers of elements, if each is one that there are copies for.
    fn elements(&self) -> Option<Layout> {
        let Layout { shape, strides, offset } = &self.places;
        let width = self.width as isize;
        let is_whole = offset.is_multiple_of(self.width) && strides.iter().all(|stride| stride % width == 0);
        (matches!(width, 1 | 2 | 4 | 8 | 16) && is_whole).then(|| Layout {
            shape: shape.clone(),
            strides: strides.iter().map(|stride| stride / width).collect(),
            offset: offset / self.width,
        })
    }

    /// Copies rows at equal distances.
    fn gather_run(&self, bytes: &[u8], start: usize, out: &mut [u8]) {
        let (width, step) = (self.width, self.step());
        if step == width as isize {
            out.copy_from_slice(&bytes[start..][..out.len()]);
            return;
        }
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            let at = (start as isize + row as isize * step) as usize;
            out.copy_from_slice(&bytes[at..][..width]);
        }
    }

    /// How the rows differ from those of a tensor that has no others, for people.
    pub(super) fn note(&self) -> Option<String> {
        let Layout { shape, strides, offset } = &self.places;
        let width = self.width as isize;
        match (&shape[..], &strides[..]) {
            ([_], &[step]) if step == width && *offset == 0 => None,
            ([_, period], &[0, step]) if step == width && *offset == 0 => {
                Some(format!("repeated after {period} rows"))
            }
            ([_, count], &[step, 0]) if step == width && *offset == 0 => {
                Some(format!("each for {count} rows"))
            }
            _ => Some("a part".into()),
        }
    }
}

/// The number of leading axes whose elements are the rows.
pub(super) fn leading_axes(shape: &[usize], rows: usize) -> Option<usize> {
    let mut product = 1;
    for (axis, &size) in shape.iter().enumerate() {
        if product == rows {
            return Some(axis);
        }
        product *= size;
    }
    (product == rows).then_some(shape.len())
}

/// The numbers of rows that a shape can have, the largest first.
pub(super) fn possible_rows(shape: &[usize]) -> Shape {
    let mut products = Shape::new();
    let mut product = 1;
    for &size in shape {
        product *= size;
        if products.last() != Some(&product) {
            products.push(product);
        }
    }
    products.reverse();
    products
}

/// The number of copies of a row of some elements, the same for all rows, that a kernel reads at once.
pub(super) fn copies_of_row(elements: usize) -> usize {
    (COPIED_ROW_ELEMENTS / elements.max(1)).max(1)
}

/// Copies each element to `count` adjacent ones.
pub(super) fn repeat_elements(width: usize, elements: &[u8], count: usize, out: &mut [u8]) {
    dispatch!(width width, N => {
        copy::short_rows::repeat_each(elements.as_chunks::<N>().0, count, out.as_chunks_mut::<N>().0);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The elements of u32 that a result of some shape reads, gathered by rows.
    fn gathered(operand: &Layout, result: &[usize], leading: usize) -> Option<Vec<u32>> {
        let bytes: Vec<u8> = (0..240_u32).flat_map(u32::to_ne_bytes).collect();
        let (_, rows) = InputRows::of(operand, result, leading, 4)?;
        let rows = rows?;
        let count: usize = result[..leading].iter().product();
        let mut out = vec![0; count * rows.width];
        rows.gather(&bytes, 0, &mut out);
        // A block that begins anywhere has the same rows.
        let first = count / 2;
        let mut rest = vec![0; (count - first) * rows.width];
        rows.gather(&bytes, first, &mut rest);
        assert_eq!(rest, out[first * rows.width..]);
        assert_eq!(
            rows.start(first),
            u32::from_ne_bytes(*out[first * rows.width..].first_chunk()?) as usize * 4
        );
        Some(out.as_chunks::<4>().0.iter().map(|&element| u32::from_ne_bytes(element)).collect())
    }

    /// The same by the index of each element.
    fn expected(operand: &Layout, result: &[usize], is_element: bool) -> Vec<u32> {
        let Layout { strides, offset, .. } = operand.broadcast_right(result).expect("broadcasts");
        let row = if is_element { result[result.len() - 1] } else { 1 };
        let size: usize = result.iter().product();
        let index = |position| layout::index_of(result, &strides, offset, position) as u32;
        (0..size).step_by(row).map(index).collect()
    }

    #[test]
    fn rows_are_where_the_layout_says() {
        let whole = Layout::contiguous(&[4, 5, 6]);
        let slice = whole.slice(&[1, 0, 2], &[2, 5, 3], &[1, 1, 1]);
        let cases = [
            (Layout::contiguous(&[5, 6]), false),
            (Layout::contiguous(&[4, 1, 6]), false),
            (Layout::contiguous(&[1, 5, 1]), true),
            (Layout::contiguous(&[4, 1, 1]), true),
            (Layout::contiguous(&[4, 5, 1]), true),
            (whole.transpose(&[1, 0, 2]).transpose(&[1, 0, 2]), false),
            (whole.reverse(&[0, 1]), false),
        ];
        for (operand, is_element) in cases {
            assert_eq!(
                gathered(&operand, &[4, 5, 6], 2).as_ref(),
                Some(&expected(&operand, &[4, 5, 6], is_element)),
                "{operand:?}"
            );
        }
        assert_eq!(gathered(&slice, &[2, 5, 3], 2), Some(expected(&slice, &[2, 5, 3], false)));
        assert_eq!(gathered(&slice, &[2, 5, 3], 1), None, "rows with gaps");
        let turned = Layout::contiguous(&[5, 4, 6]).transpose(&[1, 0, 2]);
        assert_eq!(gathered(&turned, &[4, 5, 6], 2), Some(expected(&turned, &[4, 5, 6], false)));
        let columns = whole.transpose(&[0, 2, 1]);
        assert_eq!(gathered(&columns, &[4, 6, 5], 2), None, "rows of a transposed matrix");
    }

    #[test]
    fn what_all_rows_share_has_no_rows() {
        let same = |shape: &[usize]| InputRows::of(&Layout::contiguous(shape), &[4, 5, 6], 2, 4);
        assert_eq!(same(&[6]), Some((Extent::SameRow, None)));
        assert_eq!(same(&[1, 1, 1]), Some((Extent::SameElement, None)));
        assert_eq!(same(&[4, 5, 6]), Some((Extent::Row, Some(InputRows::adjacent(24, 20)))));
    }
}
