//! Ivy: the table of the array API standard, with its undefined results filled in in two ways. The
//! precise table chooses a float that holds every integer of the type exactly, where there is one;
//! the other table keeps the type of the float. Neither is associative.
//!
//! The tables of Ivy's frontends, each of which follows the library that it imitates, are in
//! `ivy/`.

mod jax;
mod mxnet;
mod numpy;
mod onnx;
mod paddle;
mod tensorflow;
mod torch;

pub(super) use self::jax::IVY_JAX;
pub(super) use self::mxnet::IVY_MXNET;
pub(super) use self::numpy::IVY_NUMPY;
pub(super) use self::onnx::IVY_ONNX;
pub(super) use self::paddle::IVY_PADDLE;
pub(super) use self::tensorflow::IVY_TENSORFLOW;
pub(super) use self::torch::IVY_TORCH;

use super::node::{Node, Number};
use super::table::{Table, grid};
use super::{Absent, Fit, FoldOrder, Mode, Rules, Scalars, Switch, System};
use crate::DType::{self, C64, C128, F32, F64, S32, S64, U64};
use crate::Kind;

const PRECISE_TABLE: Table = grid(
    "
        b1  u1  u2  u4  u8  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16 i*  f*  c*
    b1  b1  u1  u2  u4  u8  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16 i4  f4  c8
    u1  u1  u1  u2  u4  u8  i2  i2  i4  i8  bf  f2  f4  f8  c8  c16 u1  f8  c16
    u2  u2  u2  u2  u4  u8  i4  i4  i4  i8  f4  f4  f4  f8  c8  c16 u2  f8  c16
    u4  u4  u4  u4  u4  u8  i8  i8  i8  i8  f8  f8  f8  f8  c16 c16 u4  f8  c16
    u8  u8  u8  u8  u8  u8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16 u8  f8  c16
    i1  i1  i2  i4  i8  f8  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16 i1  f8  c16
    i2  i2  i2  i4  i8  f8  i2  i2  i4  i8  f4  f4  f4  f8  c8  c16 i2  f8  c16
    i4  i4  i4  i4  i8  f8  i4  i4  i4  i8  f8  f8  f8  f8  c16 c16 i4  f8  c16
    i8  i8  i8  i8  i8  f8  i8  i8  i8  i8  f8  f8  f8  f8  c16 c16 i8  f8  c16
    bf  bf  bf  f4  f8  f8  bf  f4  f8  f8  bf  f4  f4  f8  c8  c16 bf  bf  c16
    f2  f2  f2  f4  f8  f8  f2  f4  f8  f8  f4  f2  f4  f8  c8  c16 f2  f2  c16
    f4  f4  f4  f4  f8  f8  f4  f4  f8  f8  f4  f4  f4  f8  c8  c16 f4  f4  c16
    f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16 f8  f8  c16
    c8  c8  c8  c8  c16 c16 c8  c8  c16 c16 c8  c8  c8  c16 c8  c16 c8  c8  c8
    c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
    i*  i4  u1  u2  u4  u8  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16 i4  f8  c16
    f*  f4  f8  f8  f8  f8  f8  f8  f8  f8  bf  f2  f4  f8  c8  c16 f8  f4  c8
    c*  c8  c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c8  c16 c16 c8  c8
",
);

const NONPRECISE_TABLE: Table = grid(
    "
        b1  u1  u2  u4  u8  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16 i*  f*  c*
    b1  b1  u1  u2  u4  u8  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16 i4  f4  c8
    u1  u1  u1  u2  u4  u8  i2  i2  i4  i8  bf  f2  f4  f8  c8  c16 u1  f8  c16
    u2  u2  u2  u2  u4  u8  i4  i4  i4  i8  bf  f2  f4  f8  c8  c16 u2  f8  c16
    u4  u4  u4  u4  u4  u8  i8  i8  i8  i8  bf  f2  f4  f8  c8  c16 u4  f8  c16
    u8  u8  u8  u8  u8  u8  f8  f8  f8  f8  bf  f2  f4  f8  c8  c16 u8  f8  c16
    i1  i1  i2  i4  i8  f8  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16 i1  f8  c16
    i2  i2  i2  i4  i8  f8  i2  i2  i4  i8  bf  f2  f4  f8  c8  c16 i2  f8  c16
    i4  i4  i4  i4  i8  f8  i4  i4  i4  i8  bf  f2  f4  f8  c8  c16 i4  f8  c16
    i8  i8  i8  i8  i8  f8  i8  i8  i8  i8  bf  f2  f4  f8  c8  c16 i8  f8  c16
    bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  f4  f4  f8  c8  c16 bf  bf  c16
    f2  f2  f2  f2  f2  f2  f2  f2  f2  f2  f4  f2  f4  f8  c8  c16 f2  f2  c16
    f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f8  c8  c16 f4  f4  c16
    f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16 f8  f8  c16
    c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c16 c8  c16 c8  c8  c8
    c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
    i*  i4  u1  u2  u4  u8  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16 i4  f4  c8
    f*  f4  f8  f8  f8  f8  f8  f8  f8  f8  bf  f2  f4  f8  c8  c16 f4  f4  c8
    c*  c8  c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c8  c16 c8  c8  c8
",
);

const IVY_ARRAY_API_TABLE: Table = grid(
    "
        b1  u1  u2  u4  u8  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16
    b1  b1  --  --  --  --  --  --  --  --  --  --  --  --  --  --
    u1  --  u1  u2  u4  u8  i2  i2  i4  i8  --  --  --  --  --  --
    u2  --  u2  u2  u4  u8  i4  i4  i4  i8  --  --  --  --  --  --
    u4  --  u4  u4  u4  u8  i8  i8  i8  i8  --  --  --  --  --  --
    u8  --  u8  u8  u8  u8  --  --  --  --  --  --  --  --  --  --
    i1  --  i2  i4  i8  --  i1  i2  i4  i8  --  --  --  --  --  --
    i2  --  i2  i4  i8  --  i2  i2  i4  i8  --  --  --  --  --  --
    i4  --  i4  i4  i8  --  i4  i4  i4  i8  --  --  --  --  --  --
    i8  --  i8  i8  i8  --  i8  i8  i8  i8  --  --  --  --  --  --
    bf  --  --  --  --  --  --  --  --  --  --  --  --  --  --  --
    f2  --  --  --  --  --  --  --  --  --  --  f2  f4  f8  --  --
    f4  --  --  --  --  --  --  --  --  --  --  f4  f4  f8  --  --
    f8  --  --  --  --  --  --  --  --  --  --  f8  f8  f8  --  --
    c8  --  --  --  --  --  --  --  --  --  --  --  --  --  --  --
    c16 --  --  --  --  --  --  --  --  --  --  --  --  --  --  --
",
);

const fn mode(table: Table) -> Mode {
    Mode {
        table,
        lattice: None,
        fold: FoldOrder::Left,
        with_number,
        alone,
        defaults: IVY_DEFAULTS,
        fit: Fit::Result,
        absent: Absent::Nothing,
        rules: Rules::Ivy,
        scalars: Scalars::Types,
    }
}

const IVY_DEFAULTS: [DType; 3] = [S32, F32, C64];

pub(super) const IVY: System = System {
    name: "ivy",
    options: &[
        Switch { flag: "nonprecise", key: "precise", values: ["true", "false"] },
        Switch { flag: "array_api", key: "array_api", values: ["false", "true"] },
    ],
    modes: &[
        mode(PRECISE_TABLE),
        mode(NONPRECISE_TABLE),
        mode(IVY_ARRAY_API_TABLE),
        mode(IVY_ARRAY_API_TABLE),
    ],
};

/// With a bool, the number alone determines the type.
fn with_number(mode: &Mode, node: Node, number: Number) -> Option<Node> {
    if node == Node::Bool && mode.table[node.index()][number.weak().index()].is_some() {
        alone(number)
    } else {
        mode.weak(node, number)
    }
}

/// The default type of the number's kind, or a wider type that holds the number. Negative integers
/// do not widen the default type.
fn alone(number: Number) -> Option<Node> {
    let wide = |x: f64| x.is_finite() && x != 0.0 && (x.abs() > 3.402_823_5e38 || x.abs() < 2f64.powi(-127));
    Some(Node::Type(match number {
        Number::Integer(n) if n >= 1 << 64 => return None,
        Number::Integer(n) if n >= 1 << 63 => U64,
        Number::Integer(n) if n >= 1 << 31 => S64,
        Number::Integer(_) => S32,
        Number::Float(x) if wide(x) => F64,
        Number::Float(_) => F32,
        Number::Complex(re, im) if wide(re) && wide(im) => C128,
        Number::Complex(..) => C64,
    }))
}

/// The promotion system of a frontend of Ivy: a number takes the type of an operand of its own
/// kind, and has its default type beside all other types. `bf16` counts as a kind of its own, as it
/// does in Ivy itself.
const fn frontend(name: &'static str, modes: &'static [Mode]) -> System {
    System { name, options: &[], modes }
}

const fn frontend_mode(mut table: Table, scalars: Scalars) -> Mode {
    let weak = [(Node::Int, S32), (Node::Float, F32), (Node::Complex, C64)];
    let mut i = 0;
    while i < Node::ALL.len() {
        let mut j = 0;
        while j < 3 {
            let (number, default) = weak[j];
            let result = match Node::ALL[i] {
                node @ Node::Type(dtype) if table[i][i].is_some() && same_kind(dtype, number) => Some(node),
                Node::Type(_) | Node::Bool => table[i][default as usize],
                _ => None,
            };
            table[i][number.index()] = result;
            table[number.index()][i] = result;
            j += 1;
        }
        i += 1;
    }
    let mut i = 0;
    while i < 3 {
        let mut j = 0;
        while j < 3 {
            table[weak[i].0.index()][weak[j].0.index()] = table[weak[i].1 as usize][weak[j].1 as usize];
            j += 1;
        }
        i += 1;
    }
    Mode {
        table,
        lattice: None,
        fold: FoldOrder::Left,
        with_number: Mode::weak,
        alone,
        defaults: IVY_DEFAULTS,
        fit: Fit::Result,
        absent: Absent::Nothing,
        rules: Rules::Ivy,
        scalars,
    }
}

const fn same_kind(dtype: DType, number: Node) -> bool {
    matches!(
        (dtype.kind(), number),
        (Kind::Signed | Kind::Unsigned, Node::Int)
            | (Kind::Float, Node::Float)
            | (Kind::Complex, Node::Complex)
    )
}
