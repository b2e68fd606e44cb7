//! Errors, with the data that explains them.

use crate::DType;

/// The reason why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The operation is not defined on these types.
    #[error("{op} is not defined for {}", join(dtypes.iter()))]
    UnsupportedType {
        /// The operation, as Nx names it.
        op: &'static str,
        /// The operands' types.
        dtypes: Vec<DType>,
    },
    /// The shapes don't match each other or the options.
    #[error("{op}: shapes {} {problem}", join(shapes.iter().map(|s| ShapeDisplay(s))))]
    Shape {
        /// The operation, as Nx names it.
        op: &'static str,
        /// The operands' shapes.
        shapes: Vec<Vec<usize>>,
        /// The problem.
        problem: String,
    },
    /// The bytes of a tensor do not match its type and shape.
    #[error(
        "{op}: a tensor of type {dtype} and shape {} takes {expected} bytes, got {actual}",
        ShapeDisplay(shape)
    )]
    DataSize {
        /// The operation, as Nx names it.
        op: &'static str,
        /// The tensor's type.
        dtype: DType,
        /// The tensor's shape.
        shape: Vec<usize>,
        /// The number of bytes for this type and shape.
        expected: usize,
        /// The number of bytes given.
        actual: usize,
    },
    /// The number of bytes of a tensor is not a `usize`.
    #[error("{op}: a tensor of type {dtype} and shape {} does not fit into memory", ShapeDisplay(shape))]
    TooLarge {
        /// The operation, as Nx names it.
        op: &'static str,
        /// The tensor's type.
        dtype: DType,
        /// The tensor's shape.
        shape: Vec<usize>,
    },
    /// A result would be larger than results may be.
    #[error(
        "{op}: a result of type {dtype} and shape {} takes {bytes} bytes, and results may take {limit} at most",
        ShapeDisplay(shape)
    )]
    Limit {
        /// The operation, as Nx names it.
        op: &'static str,
        /// The result's type.
        dtype: DType,
        /// The result's shape.
        shape: Vec<usize>,
        /// The number of its bytes.
        bytes: usize,
        /// The most bytes of a result.
        limit: usize,
    },
    /// The operation is not defined on an element.
    #[error("{op} on {}: {fault}", join(dtypes.iter()))]
    Element {
        /// The operation, as Nx names it.
        op: &'static str,
        /// The operands' types.
        dtypes: Vec<DType>,
        /// The problem of the element.
        fault: Fault,
    },
    /// A system of equations without a solution, or with several.
    #[error("can't solve for singular matrix")]
    Singular,
    /// An index past the end of its axis; the message is that of Nx.
    #[error("index {index} is out of bounds for axis {axis} in shape {}", ShapeDisplay(shape))]
    Index {
        /// The operation, as Nx names it.
        op: &'static str,
        /// The index.
        index: i128,
        /// The indexed axis.
        axis: usize,
        /// The shape of the indexed tensor.
        shape: Vec<usize>,
    },
    /// An option out of its range.
    #[error("{op}: {problem}")]
    Argument {
        /// The operation, as Nx names it.
        op: &'static str,
        /// The problem of the option.
        problem: String,
    },
}

/// An element for which an operation is not defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An integer divided by zero.
    #[error("integer division by zero")]
    DivisionByZero,
    /// An integer raised to a negative power.
    #[error("an integer can't be raised to a negative exponent; cast the base to a float")]
    NegativeExponent,
    /// The angle of a point with an imaginary coordinate.
    #[error("the operands must be real: one has an imaginary part")]
    ImaginaryAngle,
    /// A shift by a negative number of bits.
    #[error("can't shift by a negative number of bits")]
    NegativeShift,
}

/// Joins items as in `a, b and c`.
fn join<T: std::fmt::Display>(items: impl Iterator<Item = T>) -> String {
    let items: Vec<String> = items.map(|i| i.to_string()).collect();
    match items.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "no operands".to_string(),
    }
}

/// Displays a shape in Elixir's notation: `{2, 3}`.
pub(crate) struct ShapeDisplay<'a>(pub &'a [usize]);

impl std::fmt::Display for ShapeDisplay<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dims: Vec<String> = self.0.iter().map(usize::to_string).collect();
        write!(f, "{{{}}}", dims.join(", "))
    }
}
