//! The type of an operation's result under a promotion system.
//!
//! Promotion finds one type for the operands of an operation. Which type the operation gives for it
//! ("`divide` gives a float, `less` a bool") is part of the system, too: the rules of a system are
//! one of [`Rules`]. The table in the documentation of `Ferrox.Promotion.Results` says where they
//! come from. Nx computes the types itself before it calls its backend, so only the direct API of
//! Ferrox asks here.

use crate::ops::binary::BinaryOp;
use crate::ops::reduce::ReduceOp;
use crate::ops::unary::UnaryOp;
use crate::promotion::{Mode, Node, Number, PromotionOperand, Refusal, Rules};
use crate::{DType, Kind};

/// An operation, as far as the type of its result is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// An elementwise operation on two operands.
    Binary(BinaryOp),
    /// An elementwise operation on one operand.
    Unary(UnaryOp),
    /// A reduction.
    Reduce(ReduceOp),
    /// The mean.
    Mean,
    /// The index of an extreme element.
    ArgReduce,
    /// A product of matrices.
    Dot,
    /// The limits of a range: an operand, its minimum and its maximum.
    Clip,
    /// Elements of several operands, such as `select` and `concatenate`.
    Join,
}

/// What a system computes for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The operation that is computed: `logical_or` for `add` of bools.
    pub operation: Operation,
    /// The type of the result, which may be weak.
    pub result: Node,
    /// The type that operands are computed in, if they have to be converted: that of the operand of
    /// a function, of the sum of a mean, and the type beside which a number is written.
    pub operand: Node,
}

/// Why an operation has no result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Undefined {
    /// The operands have no common type.
    Operands(Refusal),
    /// The system does not define the operation for the type.
    Type(Node),
}

impl From<Refusal> for Undefined {
    fn from(refusal: Refusal) -> Self {
        Undefined::Operands(refusal)
    }
}

impl Operation {
    /// What `mode` computes for the operation on some operands.
    ///
    /// ```
    /// use ferrox_core::DType::{F32, F64, S32};
    /// use ferrox_core::ops::binary::BinaryOp;
    /// use ferrox_core::ops::result_type::Operation;
    /// use ferrox_core::promotion::{PromotionOperand, System};
    /// let integers = [PromotionOperand::Type(S32.into()); 2];
    /// for (name, quotient) in [("nx", F32), ("numpy", F64)] {
    ///     let mode = System::named(name).unwrap().mode(0).unwrap();
    ///     let divide = Operation::Binary(BinaryOp::Divide).resolve(mode, &integers);
    ///     assert_eq!(divide.unwrap().result, quotient.into());
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// If the operands have no common type, or the operation is not defined for it.
    pub fn resolve(self, mode: &Mode, operands: &[PromotionOperand]) -> Result<Resolved, Undefined> {
        let merged = self.merge(mode, operands)?;
        self.of(mode, merged).ok_or(Undefined::Type(merged))
    }

    /// What `mode` computes for the operation on operands that have a type together. Returns `None` if
    /// the operation is not defined for it.
    ///
    /// ```
    /// use ferrox_core::DType::{S32, U8};
    /// use ferrox_core::ops::binary::BinaryOp;
    /// use ferrox_core::ops::result_type::Operation;
    /// use ferrox_core::promotion::System;
    /// let nx = System::named("nx").unwrap().mode(0).unwrap();
    /// let less = Operation::Binary(BinaryOp::Less).of(nx, S32.into()).unwrap();
    /// assert_eq!((less.result, less.operand), (U8.into(), S32.into()));
    /// ```
    #[must_use]
    #[inline]
    pub fn of(self, mode: &Mode, merged: Node) -> Option<Resolved> {
        let resolved = |operation, result| Resolved { operation, result, operand: result };
        match self {
            Operation::Binary(op) => {
                let (op, result) = binary(mode, op, merged)?;
                let operand = if op.is_predicate() { merged } else { result };
                Some(Resolved { operation: Operation::Binary(op), result, operand })
            }
            Operation::Unary(op) => {
                let (op, result) = unary(mode, op, merged)?;
                // A bool is rounded as the number that it becomes.
                let operand = if op == UnaryOp::Round { result } else { merged };
                Some(Resolved { operation: Operation::Unary(op), result, operand })
            }
            Operation::Reduce(op) => Some(resolved(self, reduce(mode, op, merged)?)),
            // In Nx, the sum divided by a number, in other systems a float.
            Operation::Mean if mode.rules() == Rules::Nx => {
                let sum = reduce(mode, ReduceOp::Sum, merged)?;
                let divided = mode.merge_number(sum, Number::Integer(1)).ok()?;
                Some(Resolved { operation: self, result: quotient(mode, divided)?, operand: sum })
            }
            Operation::Mean => {
                let result = quotient(mode, mode.concrete(merged))?;
                let narrow = matches!(result, Node::Type(dtype) if dtype.bits() < 32);
                let operand = if narrow { DType::F32.into() } else { result };
                Some(Resolved { operation: self, result, operand })
            }
            Operation::ArgReduce | Operation::Dot | Operation::Clip
                if merged == Node::Bool && mode.rules() == Rules::ArrayApi =>
            {
                None
            }
            Operation::ArgReduce => Some(resolved(self, mode.index())),
            Operation::Dot | Operation::Clip | Operation::Join => Some(resolved(self, merged)),
        }
    }

    /// The type that the operands of the operation have together.
    fn merge(self, mode: &Mode, operands: &[PromotionOperand]) -> Result<Node, Refusal> {
        let operands = operands.iter().copied();
        match self {
            // Comparisons look only at the kind of a number, so that they take numbers of any size.
            Operation::Binary(op) if op.is_predicate() && mode.rules() != Rules::Nx => {
                mode.result_type(operands.map(|operand| match operand {
                    PromotionOperand::Number(number) => PromotionOperand::Type(number.weak()),
                    operand => operand,
                }))
            }
            // NumPy takes the smallest float that holds either integer, all other systems the float
            // for the integer type that holds both.
            Operation::Binary(BinaryOp::Atan2) if mode.rules() == Rules::NumPy => {
                let merged = mode.result_type(operands.clone())?;
                let mut nodes = operands.map(|operand| match operand {
                    PromotionOperand::Type(node) | PromotionOperand::Array(node) => float(mode, node),
                    PromotionOperand::Number(_) | PromotionOperand::Absent => None,
                });
                match (nodes.next().flatten(), nodes.next().flatten()) {
                    (Some(left), Some(right)) if is_integer(merged) => mode.merge(left, right),
                    _ => Ok(merged),
                }
            }
            // Nx promotes the operand with each limit, and then the two types.
            Operation::Clip if mode.rules() == Rules::Nx => {
                let mut limits = operands.clone().skip(1);
                let mut next = || mode.result_type(operands.clone().take(1).chain(limits.next()));
                mode.merge(next()?, next()?)
            }
            _ => mode.result_type(operands),
        }
    }
}

#[inline]
fn is_integer(node: Node) -> bool {
    node == Node::Int || matches!(node, Node::Type(dtype) if dtype.is_integer())
}

#[inline]
fn is_complex(node: Node) -> bool {
    node == Node::Complex || matches!(node, Node::Type(dtype) if dtype.is_complex())
}

/// The type of this kind and size. Returns `None` if there is none.
fn sized(kind: Kind, bits: usize) -> Option<Node> {
    DType::ALL.iter().find(|dtype| dtype.kind() == kind && dtype.bits() == bits).map(|&dtype| dtype.into())
}

/// The operation and its result for operands of a common type.
#[inline]
fn binary(mode: &Mode, op: BinaryOp, merged: Node) -> Option<(BinaryOp, Node)> {
    use BinaryOp::*;
    let (rules, is_bool) = (mode.rules(), merged == Node::Bool);
    Some(match op {
        LogicalAnd | LogicalOr | LogicalXor if rules == Rules::ArrayApi && !is_bool => return None,
        Greater | Less | GreaterEqual | LessEqual if rules == Rules::ArrayApi && is_bool => return None,
        _ if op.is_predicate() => (op, mode.predicate()),
        Divide => (op, quotient(mode, merged)?),
        Atan2 if is_complex(merged) && !matches!(rules, Rules::Nx | Rules::Jax) => return None,
        Atan2 => (op, float(mode, merged)?),
        _ if !is_bool => (op, merged),
        BitwiseOr => (LogicalOr, merged),
        BitwiseAnd => (LogicalAnd, merged),
        BitwiseXor => (LogicalXor, merged),
        _ if rules == Rules::ArrayApi => return None,
        Add | Max => (LogicalOr, merged),
        Multiply | Min => (LogicalAnd, merged),
        Pow | Remainder | Quotient | LeftShift | RightShift if rules == Rules::Jax => (op, DType::S32.into()),
        Pow | Remainder | Quotient | LeftShift | RightShift => (op, DType::S8.into()),
        _ => return None,
    })
}

/// The operation and its result for an operand of a type.
#[inline]
fn unary(mode: &Mode, op: UnaryOp, node: Node) -> Option<(UnaryOp, Node)> {
    use UnaryOp::*;
    let (rules, is_bool) = (mode.rules(), node == Node::Bool);
    Some(match op {
        LogicalNot if rules == Rules::ArrayApi && !is_bool => return None,
        LogicalNot | BitwiseNot if is_bool => (LogicalNot, mode.predicate()),
        _ if rules == Rules::ArrayApi && is_bool => return None,
        IsNan | IsInfinity | LogicalNot => (op, mode.predicate()),
        Abs | Real | Imag | Phase if is_complex(node) => (op, part(node)),
        Real | Imag | Phase => (op, float(mode, node)?),
        Conjugate if is_complex(node) => (op, node),
        Conjugate => (op, if node == DType::F64.into() { DType::C128 } else { DType::C64 }.into()),
        Abs | Floor | Ceil => (op, node),
        Round if is_bool && matches!(rules, Rules::NumPy | Rules::Ivy) => (op, DType::F16.into()),
        Negate | Sign | Round | PopulationCount | CountLeadingZeros if is_bool => return None,
        Negate | Sign | Round | BitwiseNot | PopulationCount | CountLeadingZeros => (op, node),
        _ => (op, float(mode, node)?),
    })
}

/// The type of the real and of the imaginary part of a complex type.
fn part(node: Node) -> Node {
    match node {
        Node::Type(DType::C64) => DType::F32.into(),
        Node::Type(_) => DType::F64.into(),
        _ => Node::Float,
    }
}

/// The type that a function of real numbers gives: floats and complex types stay what they are.
#[inline]
fn float(mode: &Mode, node: Node) -> Option<Node> {
    let bits = match node {
        Node::Int | Node::Float => return Some(Node::Float),
        Node::Type(dtype) if dtype.is_integer() => dtype.bits(),
        Node::Bool => 1,
        _ => return Some(node),
    };
    match mode.rules() {
        Rules::Nx => Some(DType::F32.into()),
        Rules::Jax if bits == 64 => Some(mode.concrete(Node::Float)),
        Rules::Jax => Some(DType::F32.into()),
        Rules::NumPy => sized(Kind::Float, (2 * bits).clamp(16, 64)),
        Rules::ArrayApi => None,
        Rules::Ivy => Some(mode.concrete(Node::Float)),
    }
}

/// The type that a division gives.
#[inline]
fn quotient(mode: &Mode, node: Node) -> Option<Node> {
    let is_strong_integer = node == Node::Bool || node != Node::Int && is_integer(node);
    if mode.rules() == Rules::NumPy && is_strong_integer {
        return Some(DType::F64.into());
    }
    float(mode, node)
}

/// The type of a reduction, which is never weak.
#[inline]
fn reduce(mode: &Mode, op: ReduceOp, node: Node) -> Option<Node> {
    let (rules, node) = (mode.rules(), mode.concrete(node));
    let Node::Type(default_integer) = mode.concrete(Node::Int) else { return None };
    let dtype = match node {
        _ if matches!(op, ReduceOp::All | ReduceOp::Any) => return Some(mode.predicate()),
        Node::Bool if rules == Rules::ArrayApi => return None,
        _ if matches!(op, ReduceOp::ReduceMax | ReduceOp::ReduceMin) => return Some(node),
        Node::Type(dtype) => dtype,
        _ => return Some(default_integer.into()),
    };
    match rules {
        Rules::Nx if dtype == DType::U64 => Some(DType::S64.into()),
        Rules::Nx if dtype.is_integer() => sized(dtype.kind(), dtype.bits().max(32)),
        Rules::Ivy if op == ReduceOp::Product => {
            let default = match dtype.kind() {
                Kind::Signed | Kind::Unsigned => default_integer.into(),
                Kind::Float | Kind::BFloat => mode.concrete(Node::Float),
                Kind::Complex => mode.concrete(Node::Complex),
            };
            match default {
                Node::Type(default) if dtype.bits() >= default.bits() => Some(node),
                Node::Type(default) if dtype.is_integer() => sized(dtype.kind(), default.bits()),
                default => Some(default),
            }
        }
        Rules::Jax | Rules::NumPy | Rules::ArrayApi if dtype.is_integer() => {
            sized(dtype.kind(), default_integer.bits())
        }
        _ => Some(node),
    }
}
