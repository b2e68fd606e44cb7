//! Matrices in memory, described by their bytes and strides.

use std::borrow::Cow;

use crate::exec::convert::{Convert, conversion};
use crate::exec::copy;
use crate::exec::memory::scratch;
use crate::layout::Layout;
use crate::{DType, Error};

/// A matrix in memory: the element at (row, column) has the index
/// `row * strides[0] + column * strides[1]`.
#[derive(Clone, Copy, Debug)]
pub struct MatrixBytes<'a> {
    /// The bytes from the first element on.
    pub bytes: &'a [u8],
    /// The distance between rows and between columns, in elements; not negative.
    pub strides: [usize; 2],
}

impl MatrixBytes<'_> {
    /// The transpose.
    #[must_use]
    pub fn transposed(self) -> Self {
        let [row, column] = self.strides;
        MatrixBytes { strides: [column, row], ..self }
    }

    /// Returns whether all elements of `rows` rows and `columns` columns are within the bytes.
    pub(in crate::exec) fn holds(&self, rows: usize, columns: usize, width: usize) -> bool {
        let bytes = self.extent(rows, columns).and_then(|elements| elements.checked_mul(width));
        bytes.is_some_and(|bytes| bytes <= self.bytes.len())
    }

    /// The number of elements from the first to the last of `rows` rows and `columns` columns;
    /// `None` if it overflows.
    fn extent(&self, rows: usize, columns: usize) -> Option<usize> {
        let last = (rows - 1).checked_mul(self.strides[0])?;
        last.checked_add((columns - 1).checked_mul(self.strides[1])?)?.checked_add(1)
    }
}

/// The memory of a product's result, as `MatrixBytes` that can be written.
#[derive(Debug)]
pub struct ProductTarget<'a> {
    /// The bytes from the first element on. Bytes between the elements aren't written.
    pub bytes: &'a mut [u8],
    /// The distance between rows and between columns, in elements; no two elements may overlap.
    pub strides: [usize; 2],
    /// Whether the product keeps to the calling thread, because the other threads are busy.
    pub alone: bool,
}

/// A matrix of elements of a type.
#[derive(Clone, Copy, Debug)]
pub struct TypedMatrix<'a> {
    /// The type of the elements.
    pub dtype: DType,
    /// The memory of the elements.
    pub matrix: MatrixBytes<'a>,
}

/// A matrix of narrower elements than f32, with dense rows or dense columns, that is converted to
/// f32 while it is multiplied.
#[derive(Clone, Copy, Debug)]
pub struct UnconvertedMatrix<'a> {
    /// The bytes from the first element on.
    pub bytes: &'a [u8],
    /// The type of the elements.
    pub dtype: DType,
    /// The number of bytes in an element.
    pub width: usize,
    /// The distance between dense rows or columns, in elements.
    pub stride: usize,
    /// Whether the rows are dense, rather than the columns.
    pub by_rows: bool,
    /// Converts elements to f32.
    pub convert: Convert,
}

impl<'a> TypedMatrix<'a> {
    /// The transpose.
    #[must_use]
    pub fn transposed(self) -> Self {
        TypedMatrix { matrix: self.matrix.transposed(), ..self }
    }

    /// Returns whether the rows are dense (`true`) or the columns (`false`), and the distance
    /// between them in elements. Returns `None` if neither are dense.
    #[must_use]
    pub fn lines(&self, [rows, columns]: [usize; 2]) -> Option<(bool, usize)> {
        let [row, column] = self.matrix.strides;
        // The stride of an axis of size one doesn't matter.
        if (column == 1 || columns == 1) && (row >= columns || rows == 1) {
            return Some((true, row.max(columns)));
        }
        let by_columns = (row == 1 || rows == 1) && (column >= rows || columns == 1);
        by_columns.then(|| (false, column.max(rows)))
    }

    /// The matrix to be converted to `lane`. Returns `None` if its elements need no conversion, or
    /// if neither its rows nor its columns are dense.
    #[must_use]
    pub fn unconverted(&self, sizes: [usize; 2], lane: DType) -> Option<UnconvertedMatrix<'a>> {
        if is_lane(self.dtype, lane) {
            return None;
        }
        let ((by_rows, stride), convert) = (self.lines(sizes)?, conversion(self.dtype, lane)?);
        let (bytes, dtype, width) = (self.matrix.bytes, self.dtype, self.dtype.width());
        Some(UnconvertedMatrix { bytes, dtype, width, stride, by_rows, convert })
    }

    /// The elements in row-major order without gaps, borrowed if they are stored that way.
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

/// Returns whether elements are stored in row-major order without gaps.
#[must_use]
pub fn is_dense([row, column]: [usize; 2], [rows, columns]: [usize; 2]) -> bool {
    (column == 1 || columns == 1) && (row == columns || rows == 1)
}

/// Returns whether elements can be multiplied in a lane without a conversion.
#[must_use]
pub fn is_lane(dtype: DType, lane: DType) -> bool {
    dtype.storage() == lane || dtype.is_integer() && lane.is_integer() && dtype.width() == lane.width()
}
