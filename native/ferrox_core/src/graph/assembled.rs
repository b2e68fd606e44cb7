//! Assembled values: concatenations and paddings that clusters read from their operands.
//!
//! Problem: a grid that is moved by one place, or padded, is copied to memory as a whole before a cheap operation reads
//! it. Technique: the cluster that reads it copies the elements of a block of rows from the operands, into memory that
//! stays in the cache. The value is made of boxes of elements, one over the other; adjacent axes that are whole in each
//! of them are one.

use smallvec::SmallVec;

use crate::cost::MIN_ASSEMBLED_RUN_BYTES;
use crate::dispatch;
use crate::exec::copy;
use crate::layout::{self, Layout, Shape};

/// A value that is made of parts of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assembled {
    /// The sizes of the axes.
    shape: Shape,
    /// The number of bytes in an element.
    width: usize,
    /// The parts; later ones lie over earlier ones.
    parts: SmallVec<[Part; 4]>,
}

/// A part of an assembled value: a box of elements of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The number of the source.
    source: usize,
    /// The index of the part's first element.
    starts: Shape,
    /// The elements in the source.
    layout: Layout,
}

impl Part {
    /// A part whose first element has some index, with the elements that a layout gives of a source.
    pub(super) fn new(source: usize, starts: Shape, layout: Layout) -> Self {
        Part { source, starts, layout }
    }

    /// Whether the part has all elements along an axis.
    fn is_whole(&self, axis: usize, shape: &[usize]) -> bool {
        self.starts[axis] == 0 && self.layout.shape[axis] == shape[axis]
    }

    /// Whether an axis and the one after it can be one axis.
    fn can_join(&self, axis: usize, shape: &[usize]) -> bool {
        let Layout { shape: own, strides, .. } = &self.layout;
        self.is_whole(axis + 1, shape) && strides[axis] == strides[axis + 1] * own[axis + 1] as isize
    }

    /// Makes an axis and the one after it one axis.
    fn join(&mut self, axis: usize) {
        let Layout { shape, strides, .. } = &mut self.layout;
        let inner = shape.remove(axis + 1);
        shape[axis] *= inner;
        strides.remove(axis);
        self.starts.remove(axis + 1);
        self.starts[axis] *= inner;
    }

    /// Copies what lies in some elements of a line, those from `column` on; `outer` is the index of the line.
    fn copy<const N: usize>(&self, outer: &[usize], column: usize, source: &[[u8; N]], line: &mut [[u8; N]]) {
        let Layout { shape, strides, offset } = &self.layout;
        let mut from = *offset as isize;
        for (axis, (&index, &start)) in outer.iter().zip(&self.starts).enumerate() {
            if index < start || index - start >= shape[axis] {
                return;
            }
            from += (index - start) as isize * strides[axis];
        }
        let last = outer.len();
        let (start, step) = (self.starts[last], strides[last]);
        let (first, end) = (column.max(start), (column + line.len()).min(start + shape[last]));
        if first >= end {
            return;
        }
        let out = &mut line[first - column..end - column];
        from += (first - start) as isize * step;
        match step {
            1 => {
                let elements = &source[from as usize..][..out.len()];
                copy::few(elements.as_flattened(), out.as_flattened_mut());
            }
            0 => out.fill(source[from as usize]),
            _ => {
                for out in out {
                    *out = source[from as usize];
                    from += step;
                }
            }
        }
    }
}

impl Assembled {
    /// A value of some shape, with elements of `width` bytes, that is made of parts. Returns `None` if there are no
    /// elements, or so few adjacent ones are of the same part that copies of them don't pay.
    pub(super) fn new(shape: &[usize], width: usize, parts: SmallVec<[Part; 4]>) -> Option<Self> {
        let size = layout::size(shape).filter(|&size| size > 0 && !shape.is_empty())?;
        let (mut shape, mut parts) = (Shape::from_slice(shape), parts);
        for axis in (0..shape.len() - 1).rev() {
            if parts.iter().all(|part| part.can_join(axis, &shape)) {
                shape[axis] *= shape.remove(axis + 1);
                parts.iter_mut().for_each(|part| part.join(axis));
            }
        }
        let lines = size / shape.last()?;
        let run = size.checked_mul(width)? / lines.checked_mul(parts.len())?.max(1);
        (run >= MIN_ASSEMBLED_RUN_BYTES).then_some(Assembled { shape, width, parts })
    }

    /// Copies the elements from the byte `first` on, as many as `out` has room for, given the bytes of each source.
    pub(super) fn gather(&self, sources: &[&[u8]], first: usize, out: &mut [u8]) {
        dispatch!(width self.width, N => {
            self.gather_elements::<N>(sources, first / N, out.as_chunks_mut::<N>().0);
        });
    }

    fn gather_elements<const N: usize>(&self, sources: &[&[u8]], first: usize, mut out: &mut [[u8; N]]) {
        let Some((&length, outer)) = self.shape.split_last() else { return };
        let (mut index, mut column) = (index_of_line(outer, first / length), first % length);
        while !out.is_empty() {
            let count = (length - column).min(out.len());
            let (line, rest) = std::mem::take(&mut out).split_at_mut(count);
            for part in &self.parts {
                part.copy(&index, column, sources[part.source].as_chunks::<N>().0, line);
            }
            go_to_next_line(outer, &mut index);
            (column, out) = (0, rest);
        }
    }
}

/// The index of a line among others, which have the shape `outer`.
fn index_of_line(outer: &[usize], mut line: usize) -> Shape {
    let mut index = Shape::from_elem(0, outer.len());
    for (index, size) in index.iter_mut().zip(outer).rev() {
        (*index, line) = (line % size, line / size);
    }
    index
}

fn go_to_next_line(outer: &[usize], index: &mut [usize]) {
    for (index, &size) in index.iter_mut().zip(outer).rev() {
        *index += 1;
        if *index < size {
            return;
        }
        *index = 0;
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    /// Numbers as the bytes of elements of `N` bytes.
    fn elements<const N: usize>(first: usize, count: usize) -> Vec<u8> {
        (first..first + count).flat_map(|number| [number as u8; N]).collect()
    }

    /// The same value element by element.
    fn expected<const N: usize>(shape: &[usize], parts: &[Part], sources: &[&[u8]]) -> Vec<u8> {
        let size: usize = shape.iter().product();
        let mut out = vec![0; size * N];
        for (position, out) in out.chunks_exact_mut(N).enumerate() {
            let index = index_of_line(shape, position);
            for Part { source, starts, layout } in parts {
                let place = index.iter().zip(starts).map(|(index, start)| index.checked_sub(*start));
                let Some(place) = place.collect::<Option<Shape>>() else { continue };
                if place.iter().zip(&layout.shape).all(|(place, size)| place < size) {
                    let steps = place.iter().zip(&layout.strides).map(|(&at, step)| at as isize * step);
                    let from = (layout.offset as isize + steps.sum::<isize>()) as usize;
                    out.copy_from_slice(&sources[*source][from * N..][..N]);
                }
            }
        }
        out
    }

    fn check<const N: usize>(shape: &[usize], parts: &[Part], axes: usize) {
        let (a, b) = (elements::<N>(1, 6000), elements::<N>(100, 6000));
        let sources: [&[u8]; 2] = [&a, &b];
        let assembled = Assembled::new(shape, N, parts.into()).expect("has long runs");
        assert_eq!(assembled.shape.len(), axes, "{parts:?}");
        let expected = expected::<N>(shape, parts, &sources);
        let size = expected.len() / N;
        for (first, end) in [(0, size), (1, size), (0, size - 1), (size / 2, size), (size / 3 + 1, size / 2)]
        {
            let mut out = vec![0; (end - first) * N];
            assembled.gather(&sources, first * N, &mut out);
            assert_eq!(out, expected[first * N..end * N], "from {first} to {end} of {parts:?}");
        }
    }

    #[test]
    fn blocks_of_rows_have_the_elements_of_all_parts() {
        let part = |source, starts: &[usize], layout| Part::new(source, starts.into(), layout);
        let whole = Layout::contiguous(&[4, 5, 200]);
        let slice = |starts: &[usize], lengths: &[usize]| whole.slice(starts, lengths, &[1, 1, 1]);
        // Moved by one along each axis.
        let moved = |axis: usize| {
            let (mut one, mut rest, mut starts) = ([4, 5, 200], [4, 5, 200], [0, 0, 0]);
            (one[axis], rest[axis]) = (1, rest[axis] - 1);
            let last = {
                let mut last = [0, 0, 0];
                last[axis] = rest[axis];
                slice(&last, &one)
            };
            starts[axis] = 1;
            [part(0, &[0, 0, 0], last), part(0, &starts, slice(&[0, 0, 0], &rest))]
        };
        for (axis, axes) in [(0, 1), (1, 2), (2, 2)] {
            check::<8>(&[4, 5, 200], &moved(axis), axes);
        }
        // Two values one after the other, of bytes.
        let after =
            [part(0, &[0, 0, 0], whole.clone()), part(1, &[0, 0, 200], Layout::contiguous(&[4, 5, 100]))];
        check::<1>(&[4, 5, 300], &after, 2);
        // Padded by a number, turned, and every second column.
        let number = || part(1, &[0, 0, 0], Layout::scalar(&[5, 7, 202]));
        check::<4>(&[5, 7, 202], &[number(), part(0, &[1, 1, 1], whole.clone())], 3);
        check::<4>(&[5, 7, 202], &[number(), part(0, &[1, 1, 1], whole.reverse(&[0, 2]))], 3);
        let apart = whole.slice(&[0, 0, 1], &[4, 5, 199], &[1, 1, 2]);
        check::<16>(&[5, 7, 202], &[number(), part(0, &[0, 2, 50], apart)], 3);
        let short = smallvec![
            part(0, &[0, 0], Layout::contiguous(&[40, 2])),
            part(0, &[0, 2], Layout::contiguous(&[40, 3]))
        ];
        assert_eq!(Assembled::new(&[40, 5], 8, short), None, "runs of a few bytes");
    }
}
