//! Binary operations on single elements.

use super::compare::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
use super::{
    Add, Binary, BinaryOp, BitwiseAnd, BitwiseOr, BitwiseXor, Divide, LeftShift, Max, Min, Multiply,
    Quotient, Remainder, RightShift, Subtract,
};
use crate::dtype::Lane;
use crate::ops::math::{f32_loops, f64_loops};
use crate::ops::scalar::{ScalarKernel, element_of, word_of};
use crate::{DType, Fault, Kind};

/// Whether an operation is not defined for a right operand.
pub type IsFaulty = fn(u64) -> bool;

fn apply<F: Binary<T>, T: Lane>(left: u64, right: u64) -> u64 {
    word_of(F::apply(element_of(left), element_of(right)))
}

fn is_faulty<F: Binary<T>, T: Lane>(right: u64) -> bool {
    F::faulty(element_of(right))
}

/// An operation on truth values, which are one or zero.
fn apply_truth<F: Binary<u8, Out = u8>>(left: u64, right: u64) -> u64 {
    word_of(F::apply(u8::from(left != 0), u8::from(right != 0)))
}

/// The kernel of an operation on two elements of a type, whose result has the type `out`: those that are
/// computed in this type without a conversion. `None` for others.
#[must_use]
pub fn scalar_kernel(
    op: BinaryOp,
    out: DType,
    dtype: DType,
) -> Option<(ScalarKernel, Option<(IsFaulty, Fault)>)> {
    if out != if op.is_predicate() { DType::U8 } else { dtype } {
        return None;
    }
    macro_rules! ring {
        ($F:ident) => {
            match dtype {
                DType::U8 | DType::S8 => apply::<$F, u8>,
                DType::U16 | DType::S16 => apply::<$F, u16>,
                DType::U32 | DType::S32 => apply::<$F, u32>,
                DType::U64 | DType::S64 => apply::<$F, u64>,
                _ => return None,
            }
        };
    }
    macro_rules! number {
        ($F:ident) => {
            match dtype {
                DType::F32 => apply::<$F, f32>,
                DType::F64 => apply::<$F, f64>,
                _ => ring!($F),
            }
        };
    }
    macro_rules! integer {
        ($function:ident, $F:ident) => {
            match dtype {
                DType::U8 => $function::<$F, u8>,
                DType::U16 => $function::<$F, u16>,
                DType::U32 => $function::<$F, u32>,
                DType::U64 => $function::<$F, u64>,
                DType::S8 => $function::<$F, i8>,
                DType::S16 => $function::<$F, i16>,
                DType::S32 => $function::<$F, i32>,
                DType::S64 => $function::<$F, i64>,
                _ => return None,
            }
        };
    }
    macro_rules! faulty {
        ($F:ident, $fault:expr) => {
            Some((integer!(is_faulty, $F), $fault))
        };
    }
    macro_rules! signed {
        ($F:ident) => {
            if dtype.kind() == Kind::Signed { faulty!($F, Fault::NegativeShift) } else { None }
        };
    }
    macro_rules! real {
        ($F:ident) => {
            match dtype {
                DType::F32 => apply::<$F, f32>,
                DType::F64 => apply::<$F, f64>,
                _ => integer!(apply, $F),
            }
        };
    }
    let kernel: ScalarKernel = match op {
        BinaryOp::Add => number!(Add),
        BinaryOp::Subtract => number!(Subtract),
        BinaryOp::Multiply => number!(Multiply),
        BinaryOp::Divide => match dtype {
            DType::F32 => apply::<Divide, f32>,
            DType::F64 => apply::<Divide, f64>,
            _ => return None,
        },
        BinaryOp::Quotient => {
            return Some((integer!(apply, Quotient), faulty!(Quotient, Fault::DivisionByZero)));
        }
        BinaryOp::Remainder => {
            return Some((integer!(apply, Remainder), faulty!(Remainder, Fault::DivisionByZero)));
        }
        BinaryOp::LeftShift => {
            return Some((integer!(apply, LeftShift), signed!(LeftShift)));
        }
        BinaryOp::RightShift => {
            return Some((integer!(apply, RightShift), signed!(RightShift)));
        }
        BinaryOp::Pow if dtype == DType::F32 => f32_loops::scalar::<f32_loops::Pow>,
        BinaryOp::Pow if dtype == DType::F64 => f64_loops::scalar::<f64_loops::Pow>,
        BinaryOp::Atan2 if dtype == DType::F32 => f32_loops::scalar::<f32_loops::Atan2>,
        BinaryOp::Atan2 if dtype == DType::F64 => f64_loops::scalar::<f64_loops::Atan2>,
        BinaryOp::Min => real!(Min),
        BinaryOp::Max => real!(Max),
        BinaryOp::BitwiseAnd => ring!(BitwiseAnd),
        BinaryOp::BitwiseOr => ring!(BitwiseOr),
        BinaryOp::BitwiseXor => ring!(BitwiseXor),
        BinaryOp::Equal => real!(Equal),
        BinaryOp::NotEqual => real!(NotEqual),
        BinaryOp::Greater => real!(Greater),
        BinaryOp::Less => real!(Less),
        BinaryOp::GreaterEqual => real!(GreaterEqual),
        BinaryOp::LessEqual => real!(LessEqual),
        BinaryOp::LogicalAnd if dtype.is_integer() => apply_truth::<BitwiseAnd>,
        BinaryOp::LogicalOr if dtype.is_integer() => apply_truth::<BitwiseOr>,
        BinaryOp::LogicalXor if dtype.is_integer() => apply_truth::<BitwiseXor>,
        _ => return None,
    };
    Some((kernel, None))
}
