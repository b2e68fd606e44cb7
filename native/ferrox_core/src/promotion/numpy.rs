//! NumPy, which always avoids a loss of precision. Its table is not a lattice: `u8` and `s8` give
//! `s16`, which gives `f32` with `f16`, although `f16` holds `u8` and `s8`. So a rule of its own
//! fixes the order in which operands are combined.

use super::node::{Node, Number};
use super::table::{Table, grid, replace_nodes};
use super::{Absent, Fit, FoldOrder, Mode, Rules, Scalars, SmallestType, Switch, System};
use crate::DType::{self, C64, C128, F16, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};

const NEP50: Table = grid(
    "
        b1  u1  u2  u4  u8  i1  i2  i4  i8  f2  f4  f8  c8  c16 i*  f*  c*
    b1  b1  u1  u2  u4  u8  i1  i2  i4  i8  f2  f4  f8  c8  c16 i8  f8  c16
    u1  u1  u1  u2  u4  u8  i2  i2  i4  i8  f2  f4  f8  c8  c16 u1  f8  c16
    u2  u2  u2  u2  u4  u8  i4  i4  i4  i8  f4  f4  f8  c8  c16 u2  f8  c16
    u4  u4  u4  u4  u4  u8  i8  i8  i8  i8  f8  f8  f8  c16 c16 u4  f8  c16
    u8  u8  u8  u8  u8  u8  f8  f8  f8  f8  f8  f8  f8  c16 c16 u8  f8  c16
    i1  i1  i2  i4  i8  f8  i1  i2  i4  i8  f2  f4  f8  c8  c16 i1  f8  c16
    i2  i2  i2  i4  i8  f8  i2  i2  i4  i8  f4  f4  f8  c8  c16 i2  f8  c16
    i4  i4  i4  i4  i8  f8  i4  i4  i4  i8  f8  f8  f8  c16 c16 i4  f8  c16
    i8  i8  i8  i8  i8  f8  i8  i8  i8  i8  f8  f8  f8  c16 c16 i8  f8  c16
    f2  f2  f2  f4  f8  f8  f2  f4  f8  f8  f2  f4  f8  c8  c16 f2  f2  c8
    f4  f4  f4  f4  f8  f8  f4  f4  f8  f8  f4  f4  f8  c8  c16 f4  f4  c8
    f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16 f8  f8  c16
    c8  c8  c8  c8  c16 c16 c8  c8  c16 c16 c8  c8  c16 c8  c16 c8  c8  c8
    c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
    i*  i8  u1  u2  u4  u8  i1  i2  i4  i8  f2  f4  f8  c8  c16 i8  f8  c16
    f*  f8  f8  f8  f8  f8  f8  f8  f8  f8  f2  f4  f8  c8  c16 f8  f8  c16
    c*  c16 c16 c16 c16 c16 c16 c16 c16 c16 c8  c8  c16 c8  c16 c16 c16 c16
",
);

/// The rules before NumPy 2: a number has its default type, unless there is an array; this case is
/// `FoldOrder::ByValue`.
const LEGACY: Table = replace_nodes!(NEP50, strong);

const fn strong(node: Node) -> Node {
    match node {
        Node::Int => Node::Type(S64),
        Node::Float => Node::Type(F64),
        Node::Complex => Node::Type(C128),
        other => other,
    }
}

const NUMPY_DEFAULTS: [DType; 3] = [S64, F64, C128];

pub(super) const NUMPY: System = System {
    name: "numpy",
    options: &[Switch { flag: "legacy", key: "scalar", values: ["nep50", "legacy"] }],
    modes: &[
        Mode {
            table: NEP50,
            lattice: None,
            fold: FoldOrder::HighestKindFirst,
            with_number: Mode::weak,
            alone: |number| Some(strong(number.weak())),
            defaults: NUMPY_DEFAULTS,
            fit: Fit::Result,
            absent: Absent::Float,
            rules: Rules::NumPy,
            scalars: Scalars::Types,
        },
        Mode {
            table: LEGACY,
            lattice: None,
            fold: FoldOrder::ByValue(smallest),
            with_number: legacy_with_number,
            alone: legacy_alone,
            defaults: NUMPY_DEFAULTS,
            fit: Fit::Result,
            absent: Absent::Float,
            rules: Rules::NumPy,
            scalars: Scalars::Values,
        },
    ],
};

fn legacy_with_number(mode: &Mode, node: Node, number: Number) -> Option<Node> {
    mode.table[node.index()][legacy_alone(number)?.index()]
}

/// The default type of a number before NumPy 2: integers above the range of `s64` are `u64`.
fn legacy_alone(number: Number) -> Option<Node> {
    match number {
        Number::Integer(integer) if i64::try_from(integer).is_err() => {
            u64::try_from(integer).is_ok().then_some(Node::Type(U64))
        }
        number => Some(strong(number.weak())),
    }
}

/// The smallest type that holds a number. For a non-negative integer it is an unsigned type, along
/// with the signed type of the same size if that also holds it.
fn smallest(number: Number) -> Option<SmallestType> {
    const INTEGER_TYPES: [(u32, DType, DType); 4] =
        [(8, U8, S8), (16, U16, S16), (32, U32, S32), (64, U64, S64)];
    let only = |dtype| Some(SmallestType { node: Node::Type(dtype), signed: None });
    match number {
        Number::Integer(n) if n < 0 => INTEGER_TYPES
            .into_iter()
            .find(|(bits, _, _)| n >= -(1 << (bits - 1)))
            .and_then(|(_, _, signed)| only(signed)),
        Number::Integer(n) => {
            INTEGER_TYPES.into_iter().find(|(bits, _, _)| n < 1 << bits).map(|(bits, unsigned, signed)| {
                let signed = (n < 1 << (bits - 1)).then_some(Node::Type(signed));
                SmallestType { node: Node::Type(unsigned), signed }
            })
        }
        Number::Float(float) => match float.abs() {
            x if x < 65000.0 || !x.is_finite() => only(F16),
            x if x < 3.4e38 => only(F32),
            _ => only(F64),
        },
        Number::Complex(re, im) => {
            let small = |x: f64| x.abs() < 3.4e38 || !x.is_finite();
            only(if small(re) && small(im) { C64 } else { C128 })
        }
    }
}
