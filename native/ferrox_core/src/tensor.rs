//! A borrowed tensor: bytes with a type and a layout, and the place for a result.

use std::borrow::Cow;

use crate::dtype::sub_byte;
use crate::layout::{self, Layout};
use crate::{DType, Error};

/// A tensor that an operation reads.
///
/// Types of 2 and 4 bits are widened when it is made, so that kernels see
/// whole bytes.
#[derive(Clone, Debug)]
pub struct Tensor<'a> {
    bytes: Cow<'a, [u8]>,
    dtype: DType,
    geometry: Geometry<'a>,
}

/// Most tensors are dense; a layout is only made for those that aren't, since
/// making one costs as much as a small operation.
#[derive(Clone, Debug)]
enum Geometry<'a> {
    /// Row-major, over all of the bytes.
    Dense(&'a [usize]),
    Strided(Box<Layout>),
}

/// The bytes of a tensor of the given type and size, as Nx stores it.
///
/// # Errors
///
/// `Error::TooLarge` where the number overflows.
#[inline(always)]
pub fn byte_size(op: &'static str, dtype: DType, shape: &[usize]) -> Result<usize, Error> {
    layout::size(shape)
        .and_then(|n| n.checked_mul(dtype.bits()))
        .map(|bits| bits.div_ceil(8))
        .filter(|&bytes| bytes <= isize::MAX as usize)
        .ok_or_else(|| Error::TooLarge { op, dtype, shape: shape.to_vec() })
}

impl<'a> Tensor<'a> {
    /// A dense tensor over `bytes`, which must be exactly as many as type and
    /// shape ask for.
    ///
    /// # Errors
    ///
    /// `Error::DataSize` if they are not, `Error::TooLarge` if nothing could be.
    #[inline(always)]
    pub fn new(op: &'static str, dtype: DType, shape: &'a [usize], bytes: &'a [u8]) -> Result<Self, Error> {
        let expected = byte_size(op, dtype, shape)?;
        if bytes.len() != expected {
            let shape = shape.to_vec();
            return Err(Error::DataSize { op, dtype, shape, expected, actual: bytes.len() });
        }
        let bytes = if dtype.is_packed() {
            Cow::Owned(sub_byte::unpack(op, dtype, shape, bytes)?)
        } else {
            Cow::Borrowed(bytes)
        };
        Ok(Tensor { bytes, dtype, geometry: Geometry::Dense(shape) })
    }

    /// A dense tensor over bytes that an operation has computed, in the
    /// storage type of `dtype`.
    pub(crate) fn computed(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Tensor<'static> {
        let layout = Layout::contiguous(shape);
        debug_assert_eq!(bytes.len(), layout.size() * dtype.width());
        Tensor { bytes: Cow::Owned(bytes), dtype, geometry: Geometry::Strided(Box::new(layout)) }
    }

    /// The type of the elements.
    #[inline]
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Where the elements are.
    #[must_use]
    pub fn layout(&self) -> Cow<'_, Layout> {
        match &self.geometry {
            Geometry::Dense(shape) => Cow::Owned(Layout::contiguous(shape)),
            Geometry::Strided(layout) => Cow::Borrowed(layout),
        }
    }

    /// The sizes of the axes.
    #[inline]
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        match &self.geometry {
            Geometry::Dense(shape) => shape,
            Geometry::Strided(layout) => &layout.shape,
        }
    }

    /// The number of axes.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape().len()
    }

    /// The number of elements.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.shape().iter().product()
    }

    /// The bytes that the layout points into, in the storage type.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same elements seen through another layout, which must stay within
    /// the bytes.
    #[must_use]
    pub fn view(&self, layout: Layout) -> Tensor<'_> {
        Tensor {
            bytes: Cow::Borrowed(&self.bytes),
            dtype: self.dtype,
            geometry: Geometry::Strided(Box::new(layout)),
        }
    }

    /// The bytes of its elements, if they lie in row-major order without gaps.
    #[inline]
    #[must_use]
    pub fn contiguous(&self) -> Option<&[u8]> {
        match &self.geometry {
            Geometry::Dense(_) => Some(&self.bytes),
            // The offset of a view of nothing may lie anywhere.
            Geometry::Strided(layout) if layout.size() == 0 => Some(&[]),
            Geometry::Strided(layout) if layout.is_contiguous() => {
                let width = self.dtype.width();
                Some(&self.bytes[layout.offset * width..][..layout.size() * width])
            }
            Geometry::Strided(_) => None,
        }
    }

    /// Its one element's bytes, if it has exactly one.
    #[inline]
    #[must_use]
    pub fn scalar(&self) -> Option<&[u8]> {
        if self.size() != 1 {
            return None;
        }
        let width = self.dtype.width();
        let index = match &self.geometry {
            Geometry::Dense(_) => 0,
            Geometry::Strided(layout) => layout.offset,
        };
        Some(&self.bytes[index * width..(index + 1) * width])
    }
}

/// The memory that a result is written to: exactly `byte_size` of its type and
/// shape, whose contents an operation overwrites and never reads.
#[derive(Debug)]
pub struct Output<'a> {
    /// The type of the result.
    pub dtype: DType,
    /// The shape of the result.
    pub shape: &'a [usize],
    /// Where it goes.
    pub bytes: &'a mut [u8],
}

impl<'a> Output<'a> {
    /// # Errors
    ///
    /// `Error::DataSize` if `bytes` is not as long as type and shape ask for.
    #[inline(always)]
    pub fn new(
        op: &'static str,
        dtype: DType,
        shape: &'a [usize],
        bytes: &'a mut [u8],
    ) -> Result<Self, Error> {
        let expected = byte_size(op, dtype, shape)?;
        if bytes.len() != expected {
            let shape = shape.to_vec();
            return Err(Error::DataSize { op, dtype, shape, expected, actual: bytes.len() });
        }
        Ok(Output { dtype, shape, bytes })
    }

    /// Lets `fill` write the elements in the storage type, and packs them
    /// where several share a byte.
    ///
    /// # Errors
    ///
    /// Those of `fill`, or `Error::TooLarge`.
    #[inline]
    pub fn write(
        self,
        op: &'static str,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if !self.dtype.is_packed() {
            return fill(self.bytes);
        }
        let mut wide = sub_byte::zeroed(op, self.dtype, self.shape)?;
        fill(&mut wide)?;
        sub_byte::pack(self.dtype, &wide, self.bytes);
        Ok(())
    }
}
