//! What runs for a few elements, against what runs for many: the same bits and the same faults.

mod common;

use common::number::{Number, cast, to_bytes};
use common::{Random, result_type, values};
use ferrox_core::DType::{self, *};
use ferrox_core::exec::elementwise::Operand;
use ferrox_core::ops::binary::{self, BinaryOp, binary};
use ferrox_core::ops::plan::Direct;
use ferrox_core::ops::unary::{self, UnaryOp, unary};
use ferrox_core::{Error, Output, Tensor};

/// Elements of which the operations plan how to compute them, and of which nothing is planned.
const MANY: usize = 5000;
const FEW: usize = 32;

/// Both ways to compute `out` from operands of `dtype`.
fn same<const N: usize>(
    name: &str,
    direct: &Direct<N>,
    out: DType,
    operands: [(DType, &[u8]); N],
    run: impl Fn(Output<'_>, [&Tensor<'_>; N]) -> Result<(), Error>,
) {
    let what = || format!("{name} of {:?} to {out}", operands.map(|(dtype, _)| dtype.name()));
    let shape = [MANY];
    let mut expected = vec![0; MANY * out.width()];
    let tensors = operands.map(|(dtype, bytes)| Tensor::new("test", dtype, &shape, bytes).expect("as many"));
    let answer = run(Output::new("test", out, &shape, &mut expected).expect("as many"), tensors.each_ref());
    let size = if direct.takes(MANY) { MANY } else { FEW };
    assert!(direct.takes(size));
    for start in (0..MANY).step_by(size).take(8) {
        let size = size.min(MANY - start);
        let part = |dtype: DType| start * dtype.width()..(start + size) * dtype.width();
        let mut bytes = vec![0; size * out.width()];
        let elements = operands.map(|operand| Operand::Slice(&operand.1[part(operand.0)]));
        match (direct.run(size, &mut bytes, elements), &answer) {
            (Ok(()), Ok(())) => assert!(bytes == expected[part(out)], "{}", what()),
            (Err(fault), Err(Error::Element { fault: expected, .. })) => assert_eq!(fault, *expected),
            // All others have none.
            (Ok(()), Err(Error::Element { .. })) if size == FEW => {}
            (run, answer) => panic!("{}: {run:?}, not {answer:?}", what()),
        }
    }
}

/// Whether an operation has a meaning for operands of these types.
fn computes(op: BinaryOp, out: DType, operands: [(DType, &[u8]); 2]) -> bool {
    let shape = [FEW];
    let mut bytes = vec![0; FEW * out.width()];
    let [left, right] = operands.map(|(dtype, bytes)| {
        Tensor::new("test", dtype, &shape, &bytes[..FEW * dtype.width()]).expect("as many")
    });
    let out = Output::new("test", out, &shape, &mut bytes).expect("as many");
    !matches!(binary(op, out, &left, &right), Err(Error::UnsupportedType { .. }))
}

fn bytes(dtype: DType, numbers: &[Number]) -> Vec<u8> {
    let elements: Vec<u128> = numbers.iter().map(|&number| cast(number, dtype)).collect();
    to_bytes(&elements, dtype)
}

#[test]
fn of_two_operands() {
    let mut random = Random(1);
    let (mut found, mut by_value) = (0, 0);
    let dtypes = || DType::ALL.iter().copied().filter(|dtype| !dtype.is_packed());
    let operands: Vec<_> = dtypes().map(|dtype| bytes(dtype, &values(dtype, MANY, &mut random))).collect();
    // Which integers may be divided by, and shifted.
    let small: Vec<_> = (0..MANY).map(|i| Number::Integer(1 + (i % 7) as i128)).collect();
    for (left, a) in dtypes().zip(&operands) {
        for (right, b) in dtypes().zip(&operands) {
            for b in [b, &bytes(right, &small)] {
                for &op in BinaryOp::ALL {
                    let out = result_type(op, left, right);
                    let Some(direct) = binary::direct(op, out, [left, right]) else {
                        // Most have no meaning, and two depend on the value of a number.
                        if computes(op, out, [(left, a), (right, b)]) {
                            assert!(matches!(op, BinaryOp::Pow | BinaryOp::Atan2), "{}", op.name());
                            by_value += 1;
                        }
                        continue;
                    };
                    found += 1;
                    same(op.name(), direct, out, [(left, a), (right, b)], |out, [left, right]| {
                        binary(op, out, left, right)
                    });
                }
            }
        }
    }
    assert!(found + by_value > 9_000, "{found} and {by_value}");
}

#[test]
fn of_one_operand() {
    let mut random = Random(2);
    let mut found = 0;
    for &dtype in DType::ALL.iter().filter(|dtype| !dtype.is_packed()) {
        let input = bytes(dtype, &values(dtype, MANY, &mut random));
        for &op in UnaryOp::ALL {
            for &out in DType::ALL {
                if let Some(direct) = unary::direct(op, out, dtype) {
                    found += 1;
                    same(op.name(), direct, out, [(dtype, &input)], |out, [input]| unary(op, out, input));
                }
            }
        }
    }
    assert!(found > 500, "{found}");
}

#[test]
fn one_element_stands_for_all() {
    let [left, right] = [3.0_f32, 1.5].map(|x| x.to_ne_bytes());
    let rights = right.repeat(4);
    let direct = binary::direct(BinaryOp::Subtract, F32, [F32, F32]).expect("f32");
    let mut bytes = [0; 16];
    direct.run(4, &mut bytes, [Operand::Scalar(&left), Operand::Slice(&rights)]).expect("no faults");
    assert_eq!(bytes.as_slice(), right.repeat(4));
    let direct = binary::direct(BinaryOp::Subtract, F32, [U8, F32]).expect("f32");
    direct.run(4, &mut bytes, [Operand::Scalar(&[3]), Operand::Slice(&rights)]).expect("no faults");
    assert_eq!(bytes.as_slice(), right.repeat(4));
}

#[test]
fn a_number_beside_few_or_many() {
    let mut random = Random(3);
    let mut compared = 0;
    let dtypes = || DType::ALL.iter().copied().filter(|dtype| !dtype.is_packed());
    let many: Vec<_> = dtypes().map(|dtype| bytes(dtype, &values(dtype, MANY, &mut random))).collect();
    for (dtype, elements) in dtypes().zip(&many) {
        for number in dtypes() {
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

#[test]
fn what_has_no_kernel() {
    // Elements that share a byte are taken apart first.
    assert!(binary::direct(BinaryOp::Add, U4, [U4, U4]).is_none());
    assert!(unary::direct(UnaryOp::Negate, S2, S2).is_none());
    // And some have no meaning.
    assert!(binary::direct(BinaryOp::BitwiseAnd, F32, [F32, F32]).is_none());
    assert!(binary::direct(BinaryOp::Less, U8, [C64, C64]).is_none());
    assert!(unary::direct(UnaryOp::Exp, S32, S32).is_none());
}
