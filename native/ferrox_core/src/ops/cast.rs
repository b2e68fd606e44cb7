//! Conversion between types: `Nx.as_type/2`.

use std::borrow::Cow;

use crate::cost::Cost;
pub use crate::exec::convert::cost;
use crate::exec::{convert, copy};
use crate::tensor::{Output, Tensor};
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
    let bytes = copy::dense("as_type", input)?;
    out.write("as_type", |out| {
        convert::convert_all(input.dtype(), &bytes, dtype, size, out);
        Ok(())
    })
}

/// What an element costs of an operand that is converted unless it has the type.
#[must_use]
pub fn operand_cost(from: DType, to: DType) -> Cost {
    if from == to { 0 } else { convert::cost(from, to) }
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
    let bytes = copy::dense(op, input)?;
    if input.dtype() == to {
        return Ok(bytes);
    }
    convert::converted(op, (input.dtype(), &bytes), to, input.shape()).map(Cow::Owned)
}

/// `elements` in memory of their own.
///
/// # Errors
///
/// `Error::TooLarge` if there is none.
pub(crate) fn cast_tensor(op: &'static str, input: &Tensor<'_>, to: DType) -> Result<Tensor<'static>, Error> {
    Ok(Tensor::computed(to, input.shape(), elements(op, input, to)?.into_owned()))
}
