//! What runs for a few elements, against what runs for many: the same bits and the same faults.

mod common;

use common::number::{Number, cast, to_bytes};
use common::{Random, values};
use ferrox_core::DType::{self, *};
use ferrox_core::ops::binary::{self, BinaryOp, binary};
use ferrox_core::ops::direct::Direct;
use ferrox_core::ops::unary::{self, UnaryOp, unary};
use ferrox_core::{Error, Output, Tensor};

/// Elements of which the operations plan how to compute them.
const MANY: usize = 5000;

/// Both ways to compute `out` from operands of `dtype`.
fn same<const N: usize>(
    name: &str,
    direct: &Direct,
    [out, dtype]: [DType; 2],
    operands: [&[u8]; N],
    run: impl Fn(Output<'_>, [&Tensor<'_>; N]) -> Result<(), Error>,
) {
    let shape = [MANY];
    let mut expected = vec![0; MANY * out.width()];
    let tensors = operands.map(|bytes| Tensor::new("test", dtype, &shape, bytes).expect("as many"));
    let answer = run(Output::new("test", out, &shape, &mut expected).expect("as many"), tensors.each_ref());
    let mut bytes = vec![0; expected.len()];
    match (direct.run(&mut bytes, operands), answer) {
        (Ok(()), Ok(())) => assert!(bytes == expected, "{name} of {dtype} to {out}"),
        (Err(fault), Err(Error::Element { fault: expected, .. })) => assert_eq!(fault, expected, "{name}"),
        (run, answer) => panic!("{name} of {dtype} to {out}: {run:?}, not {answer:?}"),
    }
}

fn bytes(dtype: DType, numbers: &[Number]) -> Vec<u8> {
    let elements: Vec<u128> = numbers.iter().map(|&number| cast(number, dtype)).collect();
    to_bytes(&elements, dtype)
}

#[test]
fn of_two_operands() {
    let mut random = Random(1);
    let mut found = 0;
    for &dtype in DType::ALL.iter().filter(|dtype| !dtype.is_packed()) {
        let [left, right] = [(); 2].map(|()| bytes(dtype, &values(dtype, MANY, &mut random)));
        // Which integers may be divided by, and shifted.
        let small: Vec<_> = (0..MANY).map(|i| Number::Integer(1 + (i % 7) as i128)).collect();
        for right in [right, bytes(dtype, &small)] {
            for &op in BinaryOp::ALL {
                for &out in DType::ALL {
                    if let Some(direct) = binary::direct(op, out, dtype) {
                        found += 1;
                        same(op.name(), direct, [out, dtype], [&left, &right], |out, [left, right]| {
                            binary(op, out, left, right)
                        });
                    }
                }
            }
        }
    }
    assert!(found > 400, "{found}");
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
                    same(op.name(), direct, [out, dtype], [&input], |out, [input]| unary(op, out, input));
                }
            }
        }
    }
    assert!(found > 150, "{found}");
}

#[test]
fn most_that_is_computed_is_found() {
    for dtype in [U8, S32, S64, F16, BF16, F32, F64, C64] {
        for op in [BinaryOp::Add, BinaryOp::Subtract, BinaryOp::Multiply] {
            assert!(binary::direct(op, dtype, dtype).is_some(), "{} of {dtype}", op.name());
        }
        let less = binary::direct(BinaryOp::Less, U8, dtype);
        assert_eq!(less.is_some(), !dtype.is_complex(), "less of {dtype}");
    }
    for dtype in [F32, F64] {
        for op in [UnaryOp::Exp, UnaryOp::Tanh, UnaryOp::Negate, UnaryOp::Sin] {
            assert!(unary::direct(op, dtype, dtype).is_some(), "{} of {dtype}", op.name());
        }
    }
    // Elements that share a byte are taken apart first.
    assert!(binary::direct(BinaryOp::Add, U4, U4).is_none());
    assert!(unary::direct(UnaryOp::Negate, S2, S2).is_none());
    // And not what would have to be converted.
    assert!(binary::direct(BinaryOp::Add, F32, S32).is_none());
}
