//! Conversion between types: `Nx.as_type/2`.

use std::borrow::Cow;

use crate::cost::Cost;
pub use crate::exec::convert::cost;
use crate::exec::{convert, copy};
use crate::tensor::{Output, Tensor};
use crate::{DType, Error};

/// Converts every element: integers wrap, floats are rounded to nearest even, or truncated towards
/// zero if they become integers.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory for an intermediate copy, `Error::Shape` if the shapes
/// differ.
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

/// The cost of converting an element of an operand; zero if it already has the type.
#[must_use]
pub fn operand_cost(from: DType, to: DType) -> Cost {
    if from == to { 0 } else { convert::cost(from, to) }
}

/// The elements of a tensor in another type, dense and row-major; borrowed if they are so already.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory for a copy.
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

/// `elements` as a tensor that owns them.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory for them.
pub(crate) fn cast_tensor(op: &'static str, input: &Tensor<'_>, to: DType) -> Result<Tensor<'static>, Error> {
    Ok(Tensor::computed(to, input.shape(), elements(op, input, to)?.into_owned()))
}
