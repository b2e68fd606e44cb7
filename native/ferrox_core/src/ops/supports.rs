//! Whether an operation is defined on some types.
//!
//! The operation is run on tensors of one element: a list apart from the kernels would drift from
//! them.

use crate::exec::convert::conversion;
use crate::ops::binary::BinaryOp;
use crate::ops::dot::Side;
use crate::ops::reduce::{ReduceOp, TieBreak};
use crate::ops::unary::UnaryOp;
use crate::{DType, Error, Output, Tensor};

/// An operation of any family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// An elementwise operation on two tensors.
    Binary(BinaryOp),
    /// An elementwise operation on one tensor.
    Unary(UnaryOp),
    /// A reduction.
    Reduce(ReduceOp),
    /// The index of the largest or smallest element.
    ArgReduce(ReduceOp),
    /// The dot product.
    Dot,
    /// A choice between two tensors.
    Select,
    /// Bounds for each element.
    Clip,
    /// Conversion to another type.
    AsType,
}

impl Operation {
    /// The operation of this name in Nx.
    ///
    /// ```
    /// use ferrox_core::ops::supports::Operation;
    /// assert_eq!(Operation::named("dot"), Some(Operation::Dot));
    /// assert_eq!(Operation::named("dots"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let binary = || BinaryOp::ALL.iter().find(|op| op.name() == name).map(|op| Self::Binary(*op));
        let unary = || UnaryOp::ALL.iter().find(|op| op.name() == name).map(|op| Self::Unary(*op));
        let reduce = || ReduceOp::ALL.iter().find(|op| op.name() == name).map(|op| Self::Reduce(*op));
        let other = || {
            Some(match name {
                "argmax" => Self::ArgReduce(ReduceOp::ReduceMax),
                "argmin" => Self::ArgReduce(ReduceOp::ReduceMin),
                "dot" => Self::Dot,
                "select" => Self::Select,
                "clip" => Self::Clip,
                "as_type" => Self::AsType,
                _ => return None,
            })
        };
        binary().or_else(unary).or_else(reduce).or_else(other)
    }

    /// The number of tensors that the operation takes.
    #[must_use]
    pub const fn arity(self) -> usize {
        match self {
            Self::Unary(_) | Self::Reduce(_) | Self::ArgReduce(_) | Self::AsType => 1,
            Self::Binary(_) | Self::Dot => 2,
            Self::Select | Self::Clip => 3,
        }
    }
}

/// Returns whether `op` is defined on tensors of some types, with a result of type `out`, or `None`
/// if it takes another number of tensors.
///
/// ```
/// use ferrox_core::DType::{F32, S32};
/// use ferrox_core::ops::supports::{Operation, supports};
/// let op = Operation::named("bitwise_and").unwrap();
/// assert_eq!(supports(op, S32, &[S32, S32]), Some(true));
/// assert_eq!(supports(op, F32, &[F32, F32]), Some(false));
/// assert_eq!(supports(op, S32, &[S32]), None);
/// ```
#[must_use]
pub fn supports(op: Operation, out: DType, operands: &[DType]) -> Option<bool> {
    if operands.len() != op.arity() {
        return None;
    }
    Some(!matches!(run(op, out, operands), Err(Error::UnsupportedType { .. })))
}

/// The number one, on which every operation is defined that is defined on the type.
fn one(dtype: DType) -> Vec<u8> {
    let mut bytes = vec![0; dtype.width()];
    match conversion(DType::U8, dtype) {
        Some(convert) => convert(&[1], &mut bytes),
        None => bytes.fill(1),
    }
    bytes
}

fn run(op: Operation, out: DType, operands: &[DType]) -> Result<(), Error> {
    const OP: &str = "supports";
    const SHAPE: &[usize] = &[1];
    let ones: Vec<Vec<u8>> = operands.iter().map(|&dtype| one(dtype)).collect();
    let tensors = operands
        .iter()
        .zip(&ones)
        .map(|(&dtype, one)| Tensor::new(OP, dtype, SHAPE, one))
        .collect::<Result<Vec<_>, _>>()?;
    let mut bytes = vec![0; out.width()];
    let shape = match op {
        Operation::Reduce(_) | Operation::ArgReduce(_) | Operation::Dot => &[],
        _ => SHAPE,
    };
    let out = Output::new(OP, out, shape, &mut bytes)?;
    match (op, tensors.as_slice()) {
        (Operation::Unary(op), [input]) => crate::ops::unary::unary(op, out, input),
        (Operation::Binary(op), [left, right]) => crate::ops::binary::binary(op, out, left, right),
        (Operation::Reduce(op), [input]) => crate::ops::reduce::reduce(op, out, input, &[0]),
        (Operation::ArgReduce(op), [input]) => {
            crate::ops::reduce::arg_reduce(op, out, input, None, TieBreak::Low)
        }
        (Operation::Dot, [left, right]) => {
            let side = |tensor| Side { tensor, contract: &[0], batch: &[] };
            crate::ops::dot::dot(out, side(left), side(right))
        }
        (Operation::Select, [predicate, on_true, on_false]) => {
            crate::ops::ternary::select(out, predicate, on_true, on_false)
        }
        (Operation::Clip, [input, min, max]) => crate::ops::ternary::clip(out, input, min, max),
        (Operation::AsType, [input]) => crate::ops::cast::as_type(out, input),
        // The number of tensors has been checked.
        _ => Ok(()),
    }
}
