//! Sources: the ways in which the elements of an operand can be stored.

use super::MAX_ELEMENT_BYTES;
use super::scratch::aligned;
use crate::cost::{MAX_PERIOD_ELEMENTS, TILE_ELEMENTS};
use crate::exec::convert::Conversion;
use crate::exec::copy::{broadcast_dense, gather};
use crate::exec::memory::try_filled;
use crate::layout::Layout;
use crate::tensor::Tensor;

/// The elements of an operand, one for each element of the result.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// All elements in the order of the result, `width` bytes each.
    Dense {
        /// The bytes of all elements, without gaps.
        bytes: &'a [u8],
        /// The number of bytes in an element.
        width: usize,
    },
    /// One element for all elements of the result.
    Scalar(&'a [u8]),
    /// The elements of a tensor, broadcast to the shape of the result.
    Broadcast(&'a Tensor<'a>),
    /// Elements that repeat periodically, already converted.
    Periodic(&'a Pattern),
    /// Elements with a collapsed layout of the shape of the result.
    Strided(&'a Strided<'a>),
}

/// Converted elements that repeat periodically.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The elements of a period and of one tile after it, so that a tile may begin anywhere in the
    /// period.
    elements: Vec<u8>,
    /// The number of bytes in a converted element.
    lane: usize,
    /// The number of elements in a period.
    period: usize,
}

impl Pattern {
    /// The `length` elements from `position` on.
    pub(super) fn at(&self, position: usize, length: usize) -> &[u8] {
        &self.elements[position % self.period * self.lane..][..length * self.lane]
    }
}

/// Elements with a collapsed layout.
#[derive(Clone, Debug)]
pub struct Strided<'a> {
    /// The bytes that the layout refers to.
    pub(super) bytes: &'a [u8],
    /// The number of bytes in an element.
    pub(super) width: usize,
    /// The indices of the elements.
    pub(super) layout: Layout,
}

/// Memory for what is prepared of an operand once, before its tiles: a scalar in the kernel's type,
/// a pattern, or a layout.
#[derive(Default)]
pub(super) struct Prepared<'a> {
    scalar: [u8; MAX_ELEMENT_BYTES],
    pattern: Option<Pattern>,
    strided: Option<Strided<'a>>,
}

impl<'a> Source<'a> {
    /// The elements of a tensor for a result of the given shape. Returns `None` if the tensor
    /// doesn't broadcast to this shape.
    #[inline]
    #[must_use]
    pub fn new(tensor: &'a Tensor<'a>, shape: &[usize]) -> Option<Self> {
        let own = tensor.shape();
        if std::ptr::eq(own, shape) || same_but_leading_ones(own, shape) {
            return Some(match tensor.contiguous() {
                Some(bytes) => Source::Dense { bytes, width: tensor.dtype().width() },
                None => Source::Broadcast(tensor),
            });
        }
        if tensor.rank() <= shape.len()
            && let Some(element) = tensor.scalar()
        {
            return Some(Source::Scalar(element));
        }
        broadcasts(own, shape).then_some(Source::Broadcast(tensor))
    }

    /// Returns whether the source is one element for all elements of the result.
    #[inline]
    #[must_use]
    pub fn is_scalar(self) -> bool {
        self.scalar().is_some()
    }

    /// The one element, if the source is one element for all elements of the result.
    #[inline]
    #[must_use]
    pub fn scalar(self) -> Option<&'a [u8]> {
        match self {
            Source::Scalar(element) => Some(element),
            Source::Dense { bytes, width } if bytes.len() == width => Some(bytes),
            _ => None,
        }
    }

    /// The number of bytes that `gathered` needs for `size` elements.
    #[inline]
    pub(super) fn gathered_bytes(self, size: usize) -> usize {
        match self {
            Source::Broadcast(tensor) => aligned(size * tensor.dtype().width()),
            _ => 0,
        }
    }

    /// The source, except that the elements of a broadcast tensor are copied to `buffer`.
    pub(super) fn gathered<'b>(self, shape: &[usize], buffer: &'b mut [u8]) -> Source<'b>
    where
        'a: 'b,
    {
        let Source::Broadcast(tensor) = self else { return self };
        let width = tensor.dtype().width();
        let size: usize = shape.iter().product();
        let out = &mut buffer[..size * width];
        let is_copied = tensor
            .contiguous()
            .is_some_and(|bytes| broadcast_dense(width, bytes, tensor.shape(), shape, out));
        if !is_copied {
            gather(width, tensor.bytes(), &broadcast_layout(tensor, shape), 0, out);
        }
        Source::Dense { bytes: out, width }
    }

    /// The layout of the elements for a result of the given shape.
    pub(super) fn layout(self, shape: &[usize]) -> Layout {
        match self {
            Source::Dense { .. } => Layout::contiguous(shape),
            Source::Broadcast(tensor) => broadcast_layout(tensor, shape),
            _ => Layout::scalar(shape),
        }
    }

    /// The fastest source for elements with a collapsed layout of `size` elements. `load` converts
    /// the elements of scalars and patterns to the kernel's type.
    pub(super) fn collapsed<'b>(
        self,
        layout: Layout,
        size: usize,
        load: Option<Conversion>,
        prepared: &'b mut Prepared<'a>,
    ) -> Source<'b>
    where
        'a: 'b,
    {
        let (bytes, width) = match self {
            Source::Dense { bytes, width } => (bytes, width),
            Source::Broadcast(tensor) => (tensor.bytes(), tensor.dtype().width()),
            other => return other.converted(load, prepared),
        };
        if layout.strides.iter().all(|&stride| stride == 0) {
            let element = &bytes[layout.offset * width..][..width];
            return Source::Scalar(element).converted(load, prepared);
        }
        if layout.is_contiguous() {
            return Source::Dense { bytes: &bytes[layout.offset * width..][..size * width], width };
        }
        let repeated = layout.strides.iter().take_while(|&&stride| stride == 0).count();
        let period = layout.shape[repeated..].iter().product::<usize>();
        if !(1..layout.rank()).contains(&repeated)
            || period > MAX_PERIOD_ELEMENTS
            || period + TILE_ELEMENTS > size
        {
            return Source::Strided(prepared.strided.insert(Strided { bytes, width, layout }));
        }
        let count = period + TILE_ELEMENTS;
        let lane = load.map_or(width, |conversion| conversion.lane);
        let (Ok(mut elements), Ok(mut converted)) =
            (try_filled(count * width, 0), try_filled(if load.is_some() { count * lane } else { 0 }, 0))
        else {
            return Source::Strided(prepared.strided.insert(Strided { bytes, width, layout }));
        };
        let mut repetitions = Layout {
            shape: layout.shape[repeated..].into(),
            strides: layout.strides[repeated..].into(),
            offset: layout.offset,
        };
        repetitions.shape.insert(0, TILE_ELEMENTS.div_ceil(period) + 1);
        repetitions.strides.insert(0, 0);
        gather(width, bytes, &repetitions, 0, &mut elements);
        if let Some(conversion) = load {
            (conversion.convert)(&elements, &mut converted);
            elements = converted;
        }
        Source::Periodic(prepared.pattern.insert(Pattern { elements, lane, period }))
    }

    /// Converts a scalar to the kernel's type; returns other sources unchanged.
    #[inline]
    pub(super) fn converted<'b>(self, load: Option<Conversion>, prepared: &'b mut Prepared<'a>) -> Source<'b>
    where
        'a: 'b,
    {
        match (self, load) {
            (Source::Scalar(element), Some(Conversion { lane, convert })) => {
                let converted = &mut prepared.scalar[..lane];
                convert(element, converted);
                Source::Scalar(converted)
            }
            (source, _) => source,
        }
    }
}

/// The layout of a tensor that `Source::new` has found to broadcast to a shape.
fn broadcast_layout(tensor: &Tensor<'_>, shape: &[usize]) -> Layout {
    tensor.layout().broadcast_right(shape).unwrap_or_else(|| unreachable!("it broadcasts to {shape:?}"))
}

/// Returns whether each axis of `from`, counted from the last axis, has size one or the size of the
/// axis of `to`.
#[inline]
fn broadcasts(from: &[usize], to: &[usize]) -> bool {
    let axes = from.iter().rev().zip(to.iter().rev());
    from.len() <= to.len() && axes.into_iter().all(|(&from, &to)| from == to || from == 1)
}

/// Returns whether `shape` is `inner` after any number of ones.
#[inline]
fn same_but_leading_ones(inner: &[usize], shape: &[usize]) -> bool {
    shape
        .len()
        .checked_sub(inner.len())
        .is_some_and(|lead| shape[..lead].iter().all(|&dim| dim == 1) && shape[lead..].iter().eq(inner))
}
