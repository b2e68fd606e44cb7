//! Plans of elementwise operations: an element of a result doesn't depend on the number of
//! elements, and a plan doesn't depend on the plans that were requested before.

mod common;

use common::number::{Number, cast, to_bytes};
use common::{Random, result_type, values};
use ferrox_core::DType::{self, *};
use ferrox_core::ops::binary::{self, BinaryOp, binary};
use ferrox_core::ops::math::Math;
use ferrox_core::ops::unary::{self, UnaryOp, unary};
use ferrox_core::{Error, Output, Tensor};

/// The number of elements in a result of several tiles.
const MANY: usize = 5000;
/// The number of elements in a small part of the result.
const FEW: usize = 32;

type Computed = Result<Vec<u8>, Error>;

/// Computes the `size` elements from `start` on of an operation on operands of given types and
/// bytes.
fn part<const N: usize>(
    out: DType,
    operands: [(DType, &[u8]); N],
    start: usize,
    size: usize,
    run: &impl Fn(Output<'_>, [&Tensor<'_>; N]) -> Result<(), Error>,
) -> Computed {
    let shape = [size];
    let mut bytes = vec![0; size * out.width()];
    let tensors = operands.map(|(dtype, bytes)| {
        let part = start * dtype.width()..(start + size) * dtype.width();
        Tensor::new("test", dtype, &shape, &bytes[part]).expect("as many")
    });
    run(Output::new("test", out, &shape, &mut bytes).expect("as many"), tensors.each_ref())?;
    Ok(bytes)
}

/// Compares parts of a result with the whole result; returns whether the operation is defined.
fn compare<const N: usize>(
    name: &str,
    out: DType,
    operands: [(DType, &[u8]); N],
    run: impl Fn(Output<'_>, [&Tensor<'_>; N]) -> Result<(), Error>,
) -> bool {
    let what = || format!("{name} of {:?} to {out}", operands.map(|(dtype, _)| dtype.name()));
    let whole = part(out, operands, 0, MANY, &run);
    if matches!(whole, Err(Error::UnsupportedType { .. })) {
        return false;
    }
    for start in (0..MANY).step_by(FEW).take(8) {
        match (part(out, operands, start, FEW, &run), &whole) {
            (Ok(few), Ok(many)) => {
                let expected = &many[start * out.width()..][..few.len()];
                assert!(few == expected, "{} at {start}", what());
            }
            (Err(Error::Element { fault, .. }), Err(Error::Element { fault: expected, .. })) => {
                assert_eq!(fault, *expected, "{}", what());
            }
            // Another element has the fault.
            (Ok(_), Err(Error::Element { .. })) => {}
            (few, many) => panic!("{}: {few:?}, not {many:?}", what()),
        }
    }
    true
}

fn bytes(dtype: DType, numbers: &[Number]) -> Vec<u8> {
    let elements: Vec<u128> = numbers.iter().map(|&number| cast(number, dtype)).collect();
    to_bytes(&elements, dtype)
}

fn whole_bytes() -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|dtype| !dtype.is_packed())
}

#[test]
fn binary_results_do_not_depend_on_their_number() {
    let mut random = Random(1);
    let mut defined = 0;
    let operands: Vec<_> =
        whole_bytes().map(|dtype| bytes(dtype, &values(dtype, MANY, &mut random))).collect();
    // Integers to divide by, and to shift by.
    let small: Vec<_> = (0..MANY).map(|i| Number::Integer(1 + (i % 7) as i128)).collect();
    for (left, a) in whole_bytes().zip(&operands) {
        for (right, b) in whole_bytes().zip(&operands) {
            for b in [b, &bytes(right, &small)] {
                for &op in BinaryOp::ALL {
                    let out = result_type(op, left, right);
                    let run = |out: Output<'_>, [left, right]: [&Tensor<'_>; 2]| binary(op, out, left, right);
                    defined += usize::from(compare(op.name(), out, [(left, a), (right, b)], run));
                }
            }
        }
    }
    assert!(defined > 9_000, "{defined}");
}

#[test]
fn unary_results_do_not_depend_on_their_number() {
    let mut random = Random(2);
    let mut defined = 0;
    for dtype in whole_bytes() {
        let input = bytes(dtype, &values(dtype, MANY, &mut random));
        for &op in UnaryOp::ALL {
            for &out in DType::ALL.iter().filter(|out| !out.is_packed()) {
                let run = |out: Output<'_>, [input]: [&Tensor<'_>; 1]| unary(op, out, input);
                defined += usize::from(compare(op.name(), out, [(dtype, &input)], run));
            }
        }
    }
    assert!(defined > 500, "{defined}");
}

#[test]
fn a_number_beside_few_or_many() {
    let mut random = Random(3);
    let mut compared = 0;
    let many: Vec<_> = whole_bytes().map(|dtype| bytes(dtype, &values(dtype, MANY, &mut random))).collect();
    for (dtype, elements) in whole_bytes().zip(&many) {
        for number in whole_bytes() {
            for value in [3, -8, 0, 100] {
                let scalar = bytes(number, &[Number::Integer(value)]);
                for &op in BinaryOp::ALL {
                    for flipped in [false, true] {
                        let types = if flipped { [number, dtype] } else { [dtype, number] };
                        let out = result_type(op, types[0], types[1]);
                        let run = |size: usize| {
                            let mut computed = vec![0; size * out.width()];
                            let shape = [size];
                            let elements = &elements[..size * dtype.width()];
                            let tensor = Tensor::new("test", dtype, &shape, elements).expect("as many");
                            let scalar = Tensor::new("test", number, &[], &scalar).expect("one");
                            let out = Output::new("test", out, &shape, &mut computed).expect("as many");
                            let (left, right) = if flipped { (&scalar, &tensor) } else { (&tensor, &scalar) };
                            binary(op, out, left, right).map(|()| computed)
                        };
                        if let (Ok(few), Ok(many)) = (run(8), run(600)) {
                            compared += 1;
                            let name = op.name();
                            assert!(few == many[..few.len()], "{name} of {types:?} to {out}, {value}");
                        }
                    }
                }
            }
        }
    }
    assert!(compared > 10_000, "{compared}");
}

/// Every type of the result has a separate plan, whichever type was requested first.
#[test]
fn plans_do_not_depend_on_history() {
    let address = |op, out, operands| binary::plan(op, out, operands).map(std::ptr::from_ref);
    for outs in [[F64, F32], [F32, F64]] {
        // Operand types that no other test uses in this order.
        let operands = if outs[0] == F64 { [S32, F32] } else { [S16, F32] };
        let first = outs.map(|out| address(BinaryOp::Add, out, operands).expect("defined"));
        let again = outs.map(|out| address(BinaryOp::Add, out, operands).expect("defined"));
        assert_eq!(first, again, "found once");
        assert_ne!(first[0], first[1], "one for each type of the result");
    }
    let f32_plan = binary::plan(BinaryOp::Add, F32, [S32, F32]).expect("defined");
    let f64_plan = binary::plan(BinaryOp::Add, F64, [S32, F32]).expect("defined");
    assert!(f32_plan.narrowing.is_some() && f64_plan.narrowing.is_none());
}

#[test]
fn operations_without_meaning_have_no_plan() {
    assert!(binary::plan(BinaryOp::BitwiseAnd, F32, [F32, F32]).is_err());
    assert!(binary::plan(BinaryOp::Less, U8, [C64, C64]).is_err());
    assert!(unary::plan(UnaryOp::Exp, Math::Exact, S32, S32).is_err());
    // A second request gives the same answer.
    assert!(unary::plan(UnaryOp::Exp, Math::Exact, S32, S32).is_err());
}
