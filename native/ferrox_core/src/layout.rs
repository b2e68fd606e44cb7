//! Shapes and strides: the indices of a tensor's elements in memory.
//!
//! Strides count elements, and may be zero (broadcast) or negative (reversed). Operations that only
//! rearrange elements change the layout; `exec::copy` copies the elements of any layout in
//! row-major order.

use smallvec::SmallVec;

use crate::Error;

/// The sizes of the axes. Most ranks are small, so that the sizes are on the stack.
pub type Shape = SmallVec<[usize; 4]>;
/// The distance between neighbours along each axis, in elements.
pub type Strides = SmallVec<[isize; 4]>;

/// The maximum size of padded or dilated axes. Larger sizes are refused, so that the sum of a few
/// sizes doesn't overflow.
pub(crate) const MAX_EXTENT: i128 = 1 << (usize::BITS - 4);

/// The number of elements of a shape; `None` if it overflows. It also overflows if the product of
/// all axes except the empty ones does, so that the product of any axes is safe later.
#[inline]
#[must_use]
pub fn size(shape: &[usize]) -> Option<usize> {
    let (size, empty) = nonempty_size(shape)?;
    Some(if empty { 0 } else { size })
}

/// The product of all axes except the empty ones, and whether there are empty ones; `None` if the product
/// overflows.
#[inline]
pub(crate) fn nonempty_size(shape: &[usize]) -> Option<(usize, bool)> {
    let (mut size, mut empty) = (1usize, false);
    for &dim in shape {
        empty |= dim == 0;
        size = size.checked_mul(dim.max(1))?;
    }
    Some((size, empty))
}

/// The row-major strides of a dense shape.
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

/// A shape, the strides of its axes and the index of its first element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The sizes of the axes.
    pub shape: Shape,
    /// The distance between neighbours along each axis, in elements.
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

    /// The layout of one element that is repeated for all elements of a shape.
    #[must_use]
    pub fn scalar(shape: &[usize]) -> Self {
        Layout { shape: Shape::from_slice(shape), strides: Strides::from_elem(0, shape.len()), offset: 0 }
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

    /// Returns whether the elements are in row-major order without gaps, from any offset on.
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

    /// Returns whether the elements are in row-major order, each `step` elements after the one
    /// before.
    pub(crate) fn is_regular(&self, mut step: isize) -> bool {
        self.shape.iter().zip(&self.strides).rev().all(|(&dim, &stride)| {
            let fits = dim == 1 || stride == step;
            step = step.wrapping_mul(dim as isize);
            fits
        }) || self.size() == 0
    }

    /// The layout with its axes in another order. `axes` must be a permutation.
    #[must_use]
    pub fn transpose(&self, axes: &[usize]) -> Self {
        Layout {
            shape: axes.iter().map(|&axis| self.shape[axis]).collect(),
            strides: axes.iter().map(|&axis| self.strides[axis]).collect(),
            offset: self.offset,
        }
    }

    /// The layout, broadcast to a larger shape: axis `i` becomes axis `axes[i]`; axes of size one
    /// and new axes repeat their elements. Every axis is named once. Returns `None` if the size of an axis
    /// doesn't match.
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

    /// `broadcast` with the axes aligned at the last one, as binary operations do.
    #[must_use]
    pub fn broadcast_right(&self, shape: &[usize]) -> Option<Self> {
        let lead = shape.len().checked_sub(self.rank())?;
        let axes: Shape = (lead..shape.len()).collect();
        self.broadcast(shape, &axes)
    }

    /// The layout of a slice: `lengths[i]` elements of axis `i`, every `steps[i]`-th one from
    /// `starts[i]` on. The caller has checked the bounds.
    #[must_use]
    pub fn slice(&self, starts: &[usize], lengths: &[usize], steps: &[usize]) -> Self {
        let offset: isize =
            starts.iter().zip(&self.strides).map(|(&start, &stride)| start as isize * stride).sum();
        Layout {
            shape: Shape::from_slice(lengths),
            // The stride of an axis of one element has no effect, and the step may be of any size.
            strides: (self.strides.iter().zip(steps).zip(lengths))
                .map(|((&stride, &step), &length)| if length > 1 { stride * step as isize } else { stride })
                .collect(),
            offset: (self.offset as isize + offset) as usize,
        }
    }

    /// The layout with its elements, in row-major order, in another shape of as many elements. Returns
    /// `None` if they would have to be copied.
    ///
    /// ```
    /// use ferrox_core::layout::Layout;
    /// let columns = Layout::contiguous(&[4, 6]).slice(&[0, 2], &[4, 3], &[1, 1]);
    /// assert_eq!(columns.reshape(&[2, 2, 1, 3]).unwrap().strides.as_slice(), [12, 6, 0, 1]);
    /// assert_eq!(columns.reshape(&[12]), None);
    /// ```
    #[must_use]
    pub fn reshape(&self, shape: &[usize]) -> Option<Self> {
        let (dims, steps) = collapse(&self.shape, &self.strides);
        let mut merged = dims.iter().zip(&steps).rev();
        let mut strides = Strides::from_elem(0, shape.len());
        // What is left of a merged axis, and the distance of its parts.
        let (mut rest, mut step) = (1, 0);
        for (&dim, stride) in shape.iter().zip(&mut strides).rev().filter(|(dim, _)| **dim != 1) {
            if rest == 1 {
                (rest, step) = merged.next().map(|(&dim, &step)| (dim, step))?;
            }
            if !rest.is_multiple_of(dim) {
                return None;
            }
            *stride = step;
            (rest, step) = (rest / dim, step * dim as isize);
        }
        let is_complete = rest == 1 && merged.next().is_none();
        is_complete.then(|| Layout { shape: Shape::from_slice(shape), strides, offset: self.offset })
    }

    /// The layout with the elements of the given axes, each named once, in reverse order.
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

/// Checks that no axis is named twice, and that each is within the rank. Takes time in proportion to the
/// rank and the number of axes.
///
/// # Errors
///
/// `Error::Argument`.
pub(crate) fn check_axes<'a>(
    op: &'static str,
    axes: impl IntoIterator<Item = &'a usize>,
    rank: usize,
) -> Result<(), Error> {
    let mut seen: SmallVec<[bool; 8]> = SmallVec::from_elem(false, rank);
    for &axis in axes {
        let problem = match seen.get_mut(axis) {
            Some(seen) if !*seen => {
                *seen = true;
                continue;
            }
            Some(_) => format!("axis {axis} is named twice"),
            None => format!("axis {axis} is out of range for rank {rank}"),
        };
        return Err(Error::Argument { op, problem });
    }
    Ok(())
}

/// For each axis of a tensor of some rank, whether it is among `axes`.
#[must_use]
pub(crate) fn among_axes<'a>(rank: usize, axes: impl IntoIterator<Item = &'a usize>) -> SmallVec<[bool; 8]> {
    let mut among = SmallVec::from_elem(false, rank);
    for &axis in axes {
        if let Some(is_among) = among.get_mut(axis) {
            *is_among = true;
        }
    }
    among
}

/// The axes of a tensor of some rank that are not among `axes`.
#[must_use]
pub fn other_axes<'a>(rank: usize, axes: impl IntoIterator<Item = &'a usize>) -> Shape {
    let among = among_axes(rank, axes);
    (0..rank).filter(|&axis| !among[axis]).collect()
}

/// Merges adjacent axes that can be traversed as one axis, and drops axes of size one. The shape
/// must have at least one element.
#[must_use]
pub fn collapse(shape: &[usize], strides: &[isize]) -> (Shape, Strides) {
    let mut merged = [Strides::new()];
    let dims = merge(shape, &[strides], &mut merged);
    let [merged] = merged;
    (dims, merged)
}

/// `collapse` for several layouts of one shape, which merges axes that all layouts can traverse as
/// one.
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

/// The index of the `position`-th element in row-major order.
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

/// Advances to the next row of a layout: `counts` is the position on the axes before the last,
/// `row` the index of the first element of the row.
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
}
