//! The types that operations are defined on.

use ferrox_core::DType::{self, *};
use ferrox_core::ops::binary::BinaryOp;
use ferrox_core::ops::reduce::ReduceOp;
use ferrox_core::ops::supports::{Operation, supports};
use ferrox_core::ops::unary::UnaryOp;

fn supports_one_type(name: &str, dtype: DType) -> bool {
    let op = Operation::named(name).expect("a name");
    supports(op, dtype, &vec![dtype; op.arity()]).expect("its arity")
}

#[test]
fn every_operation_has_its_name_and_arity() {
    for op in BinaryOp::ALL {
        assert_eq!(Operation::named(op.name()), Some(Operation::Binary(*op)));
    }
    for op in UnaryOp::ALL {
        assert_eq!(Operation::named(op.name()), Some(Operation::Unary(*op)));
    }
    for op in ReduceOp::ALL {
        assert_eq!(Operation::named(op.name()), Some(Operation::Reduce(*op)));
    }
    for (name, arity) in
        [("argmax", 1), ("argmin", 1), ("dot", 2), ("select", 3), ("clip", 3), ("as_type", 1)]
    {
        let op = Operation::named(name).expect("a name");
        assert_eq!(op.arity(), arity);
        assert_eq!(supports(op, F32, &vec![F32; arity + 1]), None);
    }
    assert_eq!(Operation::named("nothing"), None);
}

#[test]
fn arithmetic_takes_every_type() {
    for &dtype in DType::ALL {
        for name in [
            "add",
            "multiply",
            "equal",
            "logical_and",
            "negate",
            "sum",
            "product",
            "dot",
            "select",
            "as_type",
        ] {
            assert!(supports_one_type(name, dtype), "{name} of {dtype}");
        }
    }
}

#[test]
fn undefined_operations_are_reported() {
    for &dtype in DType::ALL {
        for name in ["bitwise_and", "left_shift", "bitwise_not", "quotient"] {
            assert_eq!(supports_one_type(name, dtype), dtype.is_integer(), "{name} of {dtype}");
        }
        for name in ["floor", "reduce_max", "clip"] {
            assert_eq!(supports_one_type(name, dtype), !dtype.is_complex(), "{name} of {dtype}");
        }
        let exp = Operation::named("exp").expect("a name");
        let out = if dtype.is_integer() { F32 } else { dtype };
        assert_eq!(supports(exp, out, &[dtype]), Some(true));
    }
}

/// Operations with errors for some elements, such as a division by zero, are defined.
#[test]
fn integers_divide() {
    for dtype in [U2, S4, U8, S64] {
        assert!(
            supports_one_type("quotient", dtype)
                && supports_one_type("remainder", dtype)
                && supports_one_type("pow", dtype)
        );
    }
}
