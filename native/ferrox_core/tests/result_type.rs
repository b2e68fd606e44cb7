//! The types of results under each system's rules. `test/ferrox/promotion_results_test.exs` compares
//! them with what the libraries themselves give.

use ferrox_core::DType::{self, BF16, C64, C128, F8E4M3FN, F16, F32, F64, S8, S16, S32, S64, U8, U32, U64};
use ferrox_core::ops::binary::BinaryOp;
use ferrox_core::ops::reduce::ReduceOp;
use ferrox_core::ops::result_type::{Operation, Resolved, Undefined};
use ferrox_core::ops::unary::UnaryOp;
use ferrox_core::promotion::{Mode, Node, Number, PromotionOperand, Refusal, SYSTEMS, System};

fn mode(name: &str) -> &'static Mode {
    System::named(name).expect("a system").mode(0).expect("its first mode")
}

/// The results under `nx`, `jax`, `numpy`, `array_api` and `ivy`.
fn results(operation: Operation, operand: impl Into<Node>) -> [Option<Node>; 5] {
    let operand = operand.into();
    ["nx", "jax", "numpy", "array_api", "ivy"].map(|system| {
        if !mode(system).knows(operand) {
            return None;
        }
        operation.of(mode(system), operand).map(|resolved| resolved.result)
    })
}

fn types<const N: usize>(dtypes: [DType; N]) -> [Option<Node>; N] {
    dtypes.map(|dtype| Some(dtype.into()))
}

#[test]
fn truth_values_are_bools_except_in_nx() {
    let expected = [Some(U8.into()), Some(Node::Bool), Some(Node::Bool), Some(Node::Bool), Some(Node::Bool)];
    assert_eq!(results(Operation::Binary(BinaryOp::Less), S32), expected);
    assert_eq!(results(Operation::Unary(UnaryOp::IsNan), F32), expected);
    assert_eq!(results(Operation::Reduce(ReduceOp::All), F32), expected);
}

#[test]
fn functions_of_integers_give_floats() {
    let exp = Operation::Unary(UnaryOp::Exp);
    let some = |nodes: [DType; 3]| nodes.map(|dtype| Some(dtype.into()));
    for (integer, [jax, numpy, ivy]) in [
        (S8, some([F32, F16, F32])),
        (S16, some([F32, F32, F32])),
        (S32, some([F32, F64, F32])),
        (S64, some([F64, F64, F32])),
    ] {
        assert_eq!(results(exp, integer), [Some(F32.into()), jax, numpy, None, ivy]);
    }
    for float in [F16, F32, F64, C64, C128] {
        let kept = results(exp, float);
        assert!(kept.iter().flatten().all(|&node| node == float.into()), "{float:?}: {kept:?}");
    }
    let divide = results(Operation::Binary(BinaryOp::Divide), S32);
    assert_eq!(divide, [Some(F32.into()), Some(F32.into()), Some(F64.into()), None, Some(F32.into())]);
}

#[test]
fn sums_of_integers_are_widened() {
    let sum = |integer| results(Operation::Reduce(ReduceOp::Sum), integer);
    assert_eq!(sum(S8), types([S32, S64, S64, S64, S8]));
    assert_eq!(sum(U8), types([U32, U64, U64, U64, U8]));
    assert_eq!(sum(U64), types([S64, U64, U64, U64, U64]));
    let product = |dtype| results(Operation::Reduce(ReduceOp::Product), dtype);
    assert_eq!(product(S8)[4], Some(S32.into()));
    assert_eq!(product(BF16)[4], Some(F32.into()));
    assert_eq!(results(Operation::Reduce(ReduceOp::ReduceMax), S8), types([S8; 5]));
}

#[test]
fn bools_are_added_as_truth_values() {
    let logical = |operation, result: Node| Resolved { operation, result, operand: result };
    for (op, computed) in [
        (BinaryOp::Add, BinaryOp::LogicalOr),
        (BinaryOp::Multiply, BinaryOp::LogicalAnd),
        (BinaryOp::BitwiseXor, BinaryOp::LogicalXor),
    ] {
        let resolved = Operation::Binary(op).of(mode("numpy"), Node::Bool);
        assert_eq!(resolved, Some(logical(Operation::Binary(computed), Node::Bool)));
    }
    let counted = Operation::Binary(BinaryOp::Pow);
    assert_eq!(
        results(counted, Node::Bool),
        [None, Some(S32.into()), Some(S8.into()), None, Some(S8.into())]
    );
    assert_eq!(results(Operation::Binary(BinaryOp::Subtract), Node::Bool), [None; 5]);
}

#[test]
fn parts_of_complex_numbers_are_floats() {
    for op in [UnaryOp::Abs, UnaryOp::Real, UnaryOp::Imag, UnaryOp::Phase] {
        for (complex, part) in [(C64, F32), (C128, F64)] {
            assert_eq!(results(Operation::Unary(op), complex)[0], Some(part.into()));
        }
    }
    for (operand, conjugate) in [(S32, C64), (F64, C128), (C64, C64), (C128, C128)] {
        assert_eq!(results(Operation::Unary(UnaryOp::Conjugate), operand)[0], Some(conjugate.into()));
    }
    // Refused where the angle is that of real numbers only.
    let angle = results(Operation::Binary(BinaryOp::Atan2), C64);
    assert_eq!(angle, [Some(C64.into()), Some(C64.into()), None, None, None]);
}

#[test]
fn a_mean_says_what_it_sums_in() {
    let mean = |system, dtype: DType| Operation::Mean.of(mode(system), dtype.into()).expect("a mean");
    assert_eq!((mean("nx", S8).operand, mean("nx", S8).result), (S32.into(), F32.into()));
    assert_eq!((mean("numpy", F16).operand, mean("numpy", F16).result), (F32.into(), F16.into()));
    // As Nx divides it by a number.
    assert_eq!(mean("nx", F8E4M3FN).result, F32.into());
    assert_eq!(mean("nx", F16).result, F16.into());
}

#[test]
fn comparisons_take_numbers_of_any_size() {
    let huge = PromotionOperand::Number(Number::Integer(1 << 70));
    let operands = [PromotionOperand::Type(S8.into()), huge];
    for system in ["jax", "numpy", "ivy"] {
        let less = Operation::Binary(BinaryOp::Less).resolve(mode(system), &operands);
        assert_eq!(less.map(|resolved| resolved.result), Ok(Node::Bool), "{system}");
        let add = Operation::Binary(BinaryOp::Add).resolve(mode(system), &operands);
        assert!(matches!(add, Err(Undefined::Operands(Refusal::Range(..)))), "{system}: {add:?}");
    }
}

#[test]
fn numpy_takes_the_smallest_float_for_each_side_of_an_angle() {
    let angle = |left: DType, right: DType| {
        let operands = [PromotionOperand::Array(left.into()), PromotionOperand::Array(right.into())];
        Operation::Binary(BinaryOp::Atan2).resolve(mode("numpy"), &operands).map(|resolved| resolved.result)
    };
    // Together s8 and u8 are s16, whose float is an f32.
    assert_eq!(angle(S8, U8), Ok(F16.into()));
    assert_eq!(angle(S8, S32), Ok(F64.into()));
}

#[test]
fn every_mode_answers_for_all_its_types() {
    let operations = (BinaryOp::ALL.iter().map(|&op| Operation::Binary(op)))
        .chain(UnaryOp::ALL.iter().map(|&op| Operation::Unary(op)))
        .chain(ReduceOp::ALL.iter().map(|&op| Operation::Reduce(op)))
        .chain([Operation::Mean, Operation::ArgReduce, Operation::Dot, Operation::Clip, Operation::Join]);
    let operations: Vec<_> = operations.collect();
    let mut answers = 0;
    for mode in SYSTEMS.iter().flat_map(|system| (0..).map_while(|options| system.mode(options))) {
        for node in mode.types() {
            for operation in &operations {
                let Some(resolved) = operation.of(mode, node) else { continue };
                answers += 1;
                // A result has a type that can be stored, and only Nx's truth values are numbers.
                let concrete = mode.concrete(resolved.result);
                assert!(!concrete.is_weak());
                assert!(concrete != Node::Bool || mode.predicate() == Node::Bool, "{operation:?} of {node}");
            }
        }
    }
    assert!(answers > 10_000, "{answers}");
}
