//! Conversion between types: `Nx.as_type/2`.

use std::borrow::Cow;
use std::convert::Infallible;

use crate::dtype::convert::conversion;
use crate::dtype::sub_byte;
use crate::exec::elementwise::Convert;
use crate::exec::memory::streaming_stores;
use crate::exec::threads::parallel::Cost;
use crate::tensor::{Output, Tensor, scratch};
use crate::{DType, Error};

/// Converts every element: integers wrap, floats round to nearest even, and
/// truncate towards zero on their way to integers.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory for an intermediate copy,
/// `Error::Shape` if the shapes differ.
pub fn as_type(out: Output<'_>, input: &Tensor<'_>) -> Result<(), Error> {
    if input.shape() != out.shape {
        let shapes = vec![input.shape().to_vec(), out.shape.to_vec()];
        return Err(Error::Shape { op: "as_type", shapes, problem: "differ".into() });
    }
    let dtype = out.dtype;
    let size = input.size();
    let bytes = input.dense("as_type")?;
    out.write("as_type", |out| {
        convert(input.dtype(), &bytes, dtype, size, out);
        Ok(())
    })
}

/// What converts elements from memory to memory, unless their bits are the same or some share a byte.
#[inline]
#[must_use]
pub fn direct(from: DType, to: DType) -> Option<Convert> {
    if from.is_packed() || to.is_packed() { None } else { conversion(from, to) }
}

/// What converting an element costs.
#[must_use]
pub fn cost(from: DType, to: DType) -> Cost {
    40 * (from.width() + to.width()) as Cost + sub_byte::cost(&[from, to])
}

/// What an element costs of an operand that is converted unless it has the type.
#[must_use]
pub fn operand_cost(from: DType, to: DType) -> Cost {
    if from == to { 0 } else { cost(from, to) }
}

/// Converts `size` dense elements, in parallel if that pays.
pub(crate) fn convert(from: DType, bytes: &[u8], to: DType, size: usize, out: &mut [u8]) {
    let (width, lane) = (from.width(), to.width());
    let lead = streaming_stores::lead([(&*out, lane), (bytes, width)]);
    let filled: Result<(), Infallible> =
        streaming_stores::try_fill(out, size, cost(from, to), lead, |start, part| {
            let source = &bytes[start * width..][..part.len() / lane * width];
            match conversion(from, to) {
                Some(convert) => convert(source, part),
                None => part.copy_from_slice(source),
            }
            Ok(())
        });
    let Ok(()) = filled;
}

/// A tensor's elements in another type, dense and row-major; where they are so
/// already, without a copy.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory for one.
pub(crate) fn elements<'a>(
    op: &'static str,
    input: &'a Tensor<'_>,
    to: DType,
) -> Result<Cow<'a, [u8]>, Error> {
    let bytes = input.dense(op)?;
    if input.dtype() == to {
        return Ok(bytes);
    }
    let mut out = scratch(op, to, input.shape(), input.size() * to.width())?;
    convert(input.dtype(), &bytes, to, input.size(), &mut out);
    Ok(Cow::Owned(out))
}

/// `elements` in memory of their own.
///
/// # Errors
///
/// `Error::TooLarge` if there is none.
pub(crate) fn cast_tensor(op: &'static str, input: &Tensor<'_>, to: DType) -> Result<Tensor<'static>, Error> {
    Ok(Tensor::computed(to, input.shape(), elements(op, input, to)?.into_owned()))
}
