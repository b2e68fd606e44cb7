//! Tensors that operations read (bytes with a type and a layout), and the memory for a result.

use std::borrow::Cow;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::dtype::sub_byte;
use crate::layout::{self, Layout};
use crate::{DType, Error};

/// A tensor that an operation reads.
///
/// Elements of 2 and 4 bits are unpacked when the tensor is made, so that kernels read whole bytes.
#[derive(Clone, Debug)]
pub struct Tensor<'a> {
    bytes: Cow<'a, [u8]>,
    dtype: DType,
    geometry: Geometry<'a>,
}

/// The shape or layout of a tensor. Dense tensors, which most are, have no layout, since making one
/// takes as long as a small operation.
#[derive(Clone, Debug)]
enum Geometry<'a> {
    /// The shape of row-major elements without gaps, which are all of the bytes.
    Dense(&'a [usize]),
    Strided(Box<Layout>),
}

/// The number of bytes in a tensor of the given type and shape, as Nx stores it.
///
/// # Errors
///
/// `Error::TooLarge` if the number overflows, or if that of the axes that aren't empty does: the number of
/// bytes of any axes is safe to compute.
#[inline(always)]
pub fn byte_size(op: &'static str, dtype: DType, shape: &[usize]) -> Result<usize, Error> {
    layout::nonempty_size(shape)
        .and_then(|(size, empty)| {
            let bytes = size.checked_mul(dtype.bits())?.div_ceil(8);
            (bytes <= isize::MAX as usize).then_some(if empty { 0 } else { bytes })
        })
        .ok_or_else(|| Error::TooLarge { op, dtype, shape: shape.to_vec() })
}

/// The most bytes of a result.
static MAX_RESULT_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Limits the bytes of a result, and of each value of a program that is compiled from now on.
pub fn set_max_result_bytes(limit: usize) {
    MAX_RESULT_BYTES.store(limit, Relaxed);
}

/// Checks that a result is not larger than results may be.
///
/// # Errors
///
/// `Error::Limit` if it is.
#[inline]
pub fn check_result(op: &'static str, dtype: DType, shape: &[usize], bytes: usize) -> Result<(), Error> {
    let limit = MAX_RESULT_BYTES.load(Relaxed);
    if bytes > limit {
        return Err(Error::Limit { op, dtype, shape: shape.to_vec(), bytes, limit });
    }
    Ok(())
}

impl<'a> Tensor<'a> {
    /// A dense tensor of `bytes`, which must have the length `byte_size` of the type and shape.
    ///
    /// # Errors
    ///
    /// `Error::DataSize` if `bytes` has another length, `Error::TooLarge` if the size overflows or
    /// there is no memory to unpack the elements.
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

    /// A dense tensor of bytes that an operation has computed in the storage type of `dtype`.
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

    /// The layout of the elements.
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

    /// The bytes that the layout refers to, in the storage type.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A tensor of the same bytes with another layout, which must stay within the bytes.
    #[must_use]
    pub fn view(&self, layout: Layout) -> Tensor<'_> {
        Tensor {
            bytes: Cow::Borrowed(&self.bytes),
            dtype: self.dtype,
            geometry: Geometry::Strided(Box::new(layout)),
        }
    }

    /// The bytes of the elements, if they are in row-major order without gaps.
    #[inline]
    #[must_use]
    pub fn contiguous(&self) -> Option<&[u8]> {
        match &self.geometry {
            Geometry::Dense(_) => Some(&self.bytes),
            // The offset of a layout without elements may be out of bounds.
            Geometry::Strided(layout) if layout.size() == 0 => Some(&[]),
            Geometry::Strided(layout) if layout.is_contiguous() => {
                let width = self.dtype.width();
                Some(&self.bytes[layout.offset * width..][..layout.size() * width])
            }
            Geometry::Strided(_) => None,
        }
    }

    /// The bytes of the only element, if the tensor has exactly one.
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

/// The memory that a result is written to. Its length is the `byte_size` of the type and shape, and
/// an operation overwrites it and never reads its previous contents.
#[derive(Debug)]
pub struct Output<'a> {
    /// The type of the result.
    pub dtype: DType,
    /// The shape of the result.
    pub shape: &'a [usize],
    /// The memory of the result.
    pub bytes: &'a mut [u8],
}

impl<'a> Output<'a> {
    /// An output in `bytes`, which must have the length `byte_size` of the type and shape.
    ///
    /// # Errors
    ///
    /// `Error::DataSize` if `bytes` has another length, `Error::TooLarge` if the size overflows.
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

    /// Calls `fill` to write the elements in the storage type, and packs them if several elements
    /// share a byte.
    ///
    /// # Errors
    ///
    /// The errors of `fill`, or `Error::TooLarge` if there is no memory for unpacked elements.
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
