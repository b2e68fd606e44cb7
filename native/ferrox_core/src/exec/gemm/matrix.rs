//! Matrices in memory, by their bytes and strides.

use std::borrow::Cow;

use crate::exec::convert::{Convert, conversion};
use crate::exec::copy;
use crate::exec::memory::scratch;
use crate::layout::Layout;
use crate::{DType, Error};

/// A matrix in memory: the element at (row, column) is
/// `row * strides[0] + column * strides[1]` elements from the first.
#[derive(Clone, Copy, Debug)]
pub struct MatrixBytes<'a> {
    /// From the first element on.
    pub bytes: &'a [u8],
    /// From a row to the next and from a column to the next, in elements, not negative.
    pub strides: [usize; 2],
}

impl MatrixBytes<'_> {
    /// The transpose.
    #[must_use]
    pub fn transposed(self) -> Self {
        let [row, column] = self.strides;
        MatrixBytes { strides: [column, row], ..self }
    }

    /// Whether every element of `rows` by `columns` lies within the bytes.
    pub(in crate::exec) fn holds(&self, rows: usize, columns: usize, width: usize) -> bool {
        let bytes = self.extent(rows, columns).and_then(|elements| elements.checked_mul(width));
        bytes.is_some_and(|bytes| bytes <= self.bytes.len())
    }

    /// Elements from the first to the last of `rows` by `columns`.
    fn extent(&self, rows: usize, columns: usize) -> Option<usize> {
        let last = (rows - 1).checked_mul(self.strides[0])?;
        last.checked_add((columns - 1).checked_mul(self.strides[1])?)?.checked_add(1)
    }
}

/// Where a product goes, as `MatrixBytes` to write to.
#[derive(Debug)]
pub struct ProductTarget<'a> {
    /// From the first element on. What lies between elements is left alone.
    pub bytes: &'a mut [u8],
    /// From a row to the next and from a column to the next; no two elements may be the same.
    pub strides: [usize; 2],
    /// Whether to keep to the calling thread, which is one of several.
    pub alone: bool,
}

/// A matrix of elements of a type.
#[derive(Clone, Copy, Debug)]
pub struct TypedMatrix<'a> {
    /// The type of the elements.
    pub dtype: DType,
    /// Where they are.
    pub matrix: MatrixBytes<'a>,
}

/// A matrix of narrower elements than f32 whose rows, or else columns, lie densely, which is
/// converted while it is multiplied.
#[derive(Clone, Copy, Debug)]
pub struct UnconvertedMatrix<'a> {
    /// From the first element on.
    pub bytes: &'a [u8],
    /// Bytes of an element.
    pub width: usize,
    /// Elements from a dense row or column to the next.
    pub stride: usize,
    /// Whether rows lie densely, not columns.
    pub by_rows: bool,
    /// Makes f32 of its elements.
    pub convert: Convert,
}

impl<'a> TypedMatrix<'a> {
    /// The transpose.
    #[must_use]
    pub fn transposed(self) -> Self {
        TypedMatrix { matrix: self.matrix.transposed(), ..self }
    }

    /// Whether the rows lie densely, or else the columns, and the elements from one to the next;
    /// `None` if neither do.
    #[must_use]
    pub fn lines(&self, [rows, columns]: [usize; 2]) -> Option<(bool, usize)> {
        let [row, column] = self.matrix.strides;
        // A line of one element, or a single line, may have any stride.
        if (column == 1 || columns == 1) && (row >= columns || rows == 1) {
            return Some((true, row.max(columns)));
        }
        let by_columns = (row == 1 || rows == 1) && (column >= rows || columns == 1);
        by_columns.then(|| (false, column.max(rows)))
    }

    /// The matrix to be converted to a lane, if its elements aren't of that and lie densely.
    #[must_use]
    pub fn unconverted(&self, sizes: [usize; 2], lane: DType) -> Option<UnconvertedMatrix<'a>> {
        if is_lane(self.dtype, lane) {
            return None;
        }
        let ((by_rows, stride), convert) = (self.lines(sizes)?, conversion(self.dtype, lane)?);
        let (bytes, width) = (self.matrix.bytes, self.dtype.width());
        Some(UnconvertedMatrix { bytes, width, stride, by_rows, convert })
    }

    /// The elements row by row without gaps.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory for a copy.
    pub fn dense(self, op: &'static str, [rows, columns]: [usize; 2]) -> Result<Cow<'a, [u8]>, Error> {
        let TypedMatrix { dtype, matrix: MatrixBytes { bytes, strides } } = self;
        let length = rows * columns * dtype.width();
        if is_dense(strides, [rows, columns]) {
            return Ok(Cow::Borrowed(&bytes[..length]));
        }
        let layout = Layout {
            shape: [rows, columns].as_slice().into(),
            strides: strides.map(|stride| stride as isize).as_slice().into(),
            offset: 0,
        };
        let mut out = scratch(op, dtype, &layout.shape, length)?;
        copy::gather_all(dtype.width(), bytes, &layout, &mut out);
        Ok(Cow::Owned(out))
    }
}

/// Whether elements lie row by row without gaps.
#[must_use]
pub fn is_dense([row, column]: [usize; 2], [rows, columns]: [usize; 2]) -> bool {
    (column == 1 || columns == 1) && (row == columns || rows == 1)
}

/// Whether elements can be multiplied in a lane as they are.
#[must_use]
pub fn is_lane(dtype: DType, lane: DType) -> bool {
    dtype.storage() == lane || dtype.is_integer() && lane.is_integer() && dtype.width() == lane.width()
}
