//! Shapes and strides: where the elements of a tensor lie.
//!
//! Strides count elements and may be zero (broadcast) or negative (reversed).
//! Everything that only rearranges elements is a change of layout; `gather`
//! reads any layout in row-major order.

use smallvec::SmallVec;

use crate::exec::copy::transpose::Plane;
use crate::exec::copy::{strided, transpose};

/// The sizes of the axes. Ranks are small, so they live on the stack.
pub type Shape = SmallVec<[usize; 4]>;
/// The distance between neighbours along each axis, in elements.
pub type Strides = SmallVec<[isize; 4]>;

/// Extents of padded or dilated axes beyond this are refused; so no sum of a few of them overflows.
pub(crate) const MAX_EXTENT: i128 = 1 << 60;

/// The number of elements of a shape, unless it overflows. An empty axis does
/// not hide that the others do, so that a product of any axes is safe later.
#[inline]
#[must_use]
pub fn size(shape: &[usize]) -> Option<usize> {
    let (mut size, mut empty) = (1usize, false);
    for &dim in shape {
        empty |= dim == 0;
        size = size.checked_mul(dim.max(1))?;
    }
    Some(if empty { 0 } else { size })
}

/// Row-major strides of a dense shape.
#[must_use]
pub fn row_major(shape: &[usize]) -> Strides {
    let mut strides = Strides::from_elem(0, shape.len());
    let mut step = 1isize;
    for axis in (0..shape.len()).rev() {
        strides[axis] = step;
        step = step.saturating_mul(shape[axis] as isize);
    }
    strides
}

/// A shape, the strides of its axes and the place of its first element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The sizes of the axes.
    pub shape: Shape,
    /// The distance between neighbours along each axis.
    pub strides: Strides,
    /// The index of the first element.
    pub offset: usize,
}

impl Layout {
    /// The row-major dense layout of a shape.
    #[must_use]
    pub fn contiguous(shape: &[usize]) -> Self {
        Layout { shape: Shape::from_slice(shape), strides: row_major(shape), offset: 0 }
    }

    /// The number of axes.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether its elements lie in row-major order without gaps, from wherever
    /// it starts.
    ///
    /// ```
    /// use ferrox_core::layout::Layout;
    /// assert!(Layout::contiguous(&[2, 3]).is_contiguous());
    /// assert!(!Layout::contiguous(&[2, 3]).transpose(&[1, 0]).is_contiguous());
    /// ```
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.is_regular(1)
    }

    /// Whether its elements lie in row-major order, each so many from the one before.
    pub(crate) fn is_regular(&self, mut step: isize) -> bool {
        self.shape.iter().zip(&self.strides).rev().all(|(&dim, &stride)| {
            let fits = dim == 1 || stride == step;
            step = step.wrapping_mul(dim as isize);
            fits
        }) || self.size() == 0
    }

    /// The axes in another order. `axes` must be a permutation.
    #[must_use]
    pub fn transpose(&self, axes: &[usize]) -> Self {
        Layout {
            shape: axes.iter().map(|&axis| self.shape[axis]).collect(),
            strides: axes.iter().map(|&axis| self.strides[axis]).collect(),
            offset: self.offset,
        }
    }

    /// The layout seen as a larger shape: axis `i` becomes `axes[i]`, axes of
    /// size one and new axes repeat. `None` if an axis does not fit.
    #[must_use]
    pub fn broadcast(&self, shape: &[usize], axes: &[usize]) -> Option<Self> {
        let mut strides = Strides::from_elem(0, shape.len());
        for ((&axis, &dim), &stride) in axes.iter().zip(&self.shape).zip(&self.strides) {
            if dim == *shape.get(axis)? {
                strides[axis] = stride;
            } else if dim != 1 {
                return None;
            }
        }
        Some(Layout { shape: Shape::from_slice(shape), strides, offset: self.offset })
    }

    /// `broadcast` with the axes aligned at the right, as binary operations do.
    #[must_use]
    pub fn broadcast_right(&self, shape: &[usize]) -> Option<Self> {
        let lead = shape.len().checked_sub(self.rank())?;
        let axes: Shape = (lead..shape.len()).collect();
        self.broadcast(shape, &axes)
    }

    /// Every `steps[i]`-th element of each axis from `starts[i]`, `lengths[i]`
    /// of them. The caller has checked the bounds.
    #[must_use]
    pub fn slice(&self, starts: &[usize], lengths: &[usize], steps: &[usize]) -> Self {
        let offset: isize =
            starts.iter().zip(&self.strides).map(|(&start, &stride)| start as isize * stride).sum();
        Layout {
            shape: Shape::from_slice(lengths),
            strides: self.strides.iter().zip(steps).map(|(&stride, &step)| stride * step as isize).collect(),
            offset: (self.offset as isize + offset) as usize,
        }
    }

    /// The given axes in reverse order.
    #[must_use]
    pub fn reverse(&self, axes: &[usize]) -> Self {
        let mut reversed = Layout {
            shape: Shape::from_slice(&self.shape),
            strides: Strides::from_slice(&self.strides),
            offset: self.offset,
        };
        for &axis in axes {
            let last = self.shape[axis].saturating_sub(1) as isize;
            reversed.offset = (reversed.offset as isize + last * self.strides[axis]) as usize;
            reversed.strides[axis] = -self.strides[axis];
        }
        reversed
    }
}

/// Merges axes that are traversed as one, and drops axes of size one. The shape
/// must be of size at least one.
#[must_use]
pub fn collapse(shape: &[usize], strides: &[isize]) -> (Shape, Strides) {
    let mut merged = [Strides::new()];
    let dims = merge(shape, &[strides], &mut merged);
    let [merged] = merged;
    (dims, merged)
}

/// `collapse` of layouts of one shape, by axes that all of them traverse as one.
#[must_use]
pub fn collapse_all(shape: &[usize], strides: &[&[isize]]) -> (Shape, SmallVec<[Strides; 4]>) {
    let mut merged: SmallVec<[Strides; 4]> = strides.iter().map(|_| Strides::new()).collect();
    (merge(shape, strides, &mut merged), merged)
}

#[inline(always)]
fn merge(shape: &[usize], strides: &[&[isize]], merged: &mut [Strides]) -> Shape {
    let mut dims = Shape::new();
    for axis in 0..shape.len() {
        if shape[axis] == 1 {
            continue;
        }
        let dim = shape[axis] as isize;
        let joins =
            !dims.is_empty() && merged.iter().zip(strides).all(|(m, s)| m.last() == Some(&(s[axis] * dim)));
        if joins {
            *dims.last_mut().expect("not empty") *= shape[axis];
            for (m, s) in merged.iter_mut().zip(strides) {
                *m.last_mut().expect("as long as dims") = s[axis];
            }
        } else {
            dims.push(shape[axis]);
            for (m, s) in merged.iter_mut().zip(strides) {
                m.push(s[axis]);
            }
        }
    }
    dims
}

/// The index of the element that comes `position`-th in row-major order.
#[inline]
#[must_use]
pub fn index_of(shape: &[usize], strides: &[isize], offset: usize, position: usize) -> isize {
    let mut rest = position;
    let mut index = offset as isize;
    for axis in (0..shape.len()).rev() {
        index += (rest % shape[axis]) as isize * strides[axis];
        rest /= shape[axis];
    }
    index
}

/// Copies elements `start..` of a layout, in row-major order, until `out` is full.
pub fn gather(width: usize, bytes: &[u8], layout: &Layout, start: usize, out: &mut [u8]) {
    match width {
        1 => gather_width::<1>(bytes, layout, start, out),
        2 => gather_width::<2>(bytes, layout, start, out),
        4 => gather_width::<4>(bytes, layout, start, out),
        8 => gather_width::<8>(bytes, layout, start, out),
        16 => gather_width::<16>(bytes, layout, start, out),
        _ => unreachable!("no type is {width} bytes wide"),
    }
}

/// A dense tensor's elements broadcast to `to`, if all that repeats is before or after the axes
/// that don't, as in a row or a column: without the planning that a layout asks for.
///
/// Answers whether it did.
#[must_use]
pub fn spread(width: usize, bytes: &[u8], from: &[usize], to: &[usize], out: &mut [u8]) -> bool {
    match width {
        1 => spread_width::<1>(bytes, from, to, out),
        2 => spread_width::<2>(bytes, from, to, out),
        4 => spread_width::<4>(bytes, from, to, out),
        8 => spread_width::<8>(bytes, from, to, out),
        16 => spread_width::<16>(bytes, from, to, out),
        _ => unreachable!("no type is {width} bytes wide"),
    }
}

fn spread_width<const N: usize>(bytes: &[u8], from: &[usize], to: &[usize], out: &mut [u8]) -> bool {
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
    for out in out.chunks_exact_mut(elements.len() * each) {
        if each == 1 {
            out.copy_from_slice(elements);
        } else {
            for (out, &element) in out.chunks_exact_mut(each).zip(elements) {
                out.fill(element);
            }
        }
    }
    true
}

/// The opposite of `gather`: writes elements, in row-major order, where a layout has them.
pub fn scatter(width: usize, elements: &[u8], out: &mut [u8], layout: &Layout) {
    match width {
        1 => scatter_width::<1>(elements, out, layout),
        2 => scatter_width::<2>(elements, out, layout),
        4 => scatter_width::<4>(elements, out, layout),
        8 => scatter_width::<8>(elements, out, layout),
        16 => scatter_width::<16>(elements, out, layout),
        _ => unreachable!("no type is {width} bytes wide"),
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

/// Goes on to the next row of a layout: where among the rows it is, and its first element.
#[inline(always)]
pub(crate) fn next_row(Layout { shape, strides, .. }: &Layout, counts: &mut [usize], row: &mut isize) {
    for axis in (0..shape.len() - 1).rev() {
        counts[axis] += 1;
        *row += strides[axis];
        if counts[axis] < shape[axis] {
            break;
        }
        *row -= counts[axis] as isize * strides[axis];
        counts[axis] = 0;
    }
}

/// Planes smaller than this are read in rows.
const PLANE: usize = 32;

/// The axis whose neighbours are nearest, if that isn't the last one and those of
/// the last one are far away: with that, it makes a plane to turn.
fn turned(Layout { shape, strides, .. }: &Layout) -> Option<usize> {
    let (&step, outer) = strides.split_last()?;
    if step.unsigned_abs() <= strided::NEAR {
        return None;
    }
    let repeated = |axis: &usize| strides[*axis] == 0 || shape[*axis] == 1;
    let axis = (0..outer.len()).filter(|axis| !repeated(axis)).min_by_key(|&a| strides[a].unsigned_abs())?;
    let size = shape[axis] * shape[outer.len()];
    (strides[axis].unsigned_abs() < step.unsigned_abs() && size >= PLANE).then_some(axis)
}

/// How many elements of a layout are best read together: all that share the
/// axes before and on which planes are.
#[must_use]
pub fn unit(layout: &Layout) -> usize {
    turned(layout).map_or(1, |axis| layout.shape[axis + 1..].iter().product())
}

fn gather_width<const N: usize>(bytes: &[u8], layout: &Layout, start: usize, out: &mut [u8]) {
    let (source, mut out) = (bytes.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    let Some(axis) = turned(layout) else {
        strided::rows(source, layout, start, out);
        return;
    };
    let Layout { shape, strides, offset } = layout;
    let last = shape.len() - 1;
    let inner: usize = shape[axis + 1..].iter().product();
    // To the first whole row of the axis.
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
    fn collapse_joins_what_all_traverse_as_one() {
        let a = row_major(&[2, 3, 4]);
        let (dims, strides) = collapse_all(&[2, 3, 4], &[&a, &a]);
        assert_eq!((dims.as_slice(), strides[0].as_slice()), (&[24][..], &[1][..]));
        // A row broadcast against a matrix stays two-dimensional.
        let (dims, strides) = collapse_all(&[2, 3, 4], &[&a, &[0, 4, 1]]);
        assert_eq!(dims.as_slice(), &[2, 12]);
        assert_eq!((strides[0].as_slice(), strides[1].as_slice()), (&[12, 1][..], &[0, 1][..]));
        let (dims, _) = collapse(&[1, 1], &[0, 0]);
        assert!(dims.is_empty());
    }

    #[test]
    fn spread_gives_what_broadcasting_does() {
        let dims = [1, 2, 3];
        let (mut spreads, mut others) = (0, 0);
        for rank in 0..4 {
            for code in 0..6_usize.pow(rank as u32) {
                // Axes of 1 to 3 that stay, and of 1 that become 2 or 3; then some without.
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
                    if spread(1, &bytes, &from, &to, &mut out) {
                        spreads += 1;
                        assert_eq!(out, expected, "{from:?} to {to:?}");
                    } else {
                        others += 1;
                    }
                }
            }
        }
        assert!(spreads > others && others > 0, "{spreads}, {others}");
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
            // What is scattered is gathered again, where no two elements are one.
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
    fn gather_turns_planes_of_every_width() {
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
