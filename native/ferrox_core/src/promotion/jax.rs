//! JAX: the joins (least upper bounds) of a lattice in which the weak types of plain numbers are
//! nodes of their own, and of a second lattice with fewer edges for strict promotion.

use super::node::Node;
use super::table::{Lattice, Table, replace_nodes};
use super::{Absent, Fit, FoldOrder, Mode, Rules, Scalars, Switch, System};
use crate::DType::{self, BF16, C64, C128, F16, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};

use Node::{Bool, Complex, Float, Int, Type};

const EDGES: [(Node, &[Node]); 18] = [
    (Bool, &[Int]),
    (Int, &[Type(U8), Type(S8)]),
    (Type(U8), &[Type(U16), Type(S16)]),
    (Type(U16), &[Type(U32), Type(S32)]),
    (Type(U32), &[Type(U64), Type(S64)]),
    (Type(U64), &[Float]),
    (Type(S8), &[Type(S16)]),
    (Type(S16), &[Type(S32)]),
    (Type(S32), &[Type(S64)]),
    (Type(S64), &[Float]),
    (Float, &[Type(BF16), Type(F16), Complex]),
    (Type(BF16), &[Type(F32)]),
    (Type(F16), &[Type(F32)]),
    (Type(F32), &[Type(F64), Type(C64)]),
    (Type(F64), &[Type(C128)]),
    (Complex, &[Type(C64)]),
    (Type(C64), &[Type(C128)]),
    (Type(C128), &[]),
];

const LATTICE: Lattice = Lattice { edges: &EDGES, positions: POSITIONS };

/// The lattice without 64-bit types: the join of `u32` and `s32` is `s32`, as there is no wider
/// type.
const LATTICE_X32: Lattice = Lattice {
    edges: &{
        let mut edges = EDGES;
        edges[4] = (Type(U32), &[Type(U64), Type(S32)]);
        edges
    },
    positions: POSITIONS,
};

/// The lattice of strict promotion: only weak types are promoted, and only to types that hold their
/// kind.
const STRICT: Lattice = Lattice {
    edges: &[
        (Bool, &[]),
        (Int, &[Type(U8), Type(U16), Type(U32), Type(U64), Type(S8), Type(S16), Type(S32), Type(S64), Float]),
        (Float, &[Type(BF16), Type(F16), Type(F32), Type(F64), Complex]),
        (Complex, &[Type(C64), Type(C128)]),
        (Type(U8), &[]),
        (Type(U16), &[]),
        (Type(U32), &[]),
        (Type(U64), &[]),
        (Type(S8), &[]),
        (Type(S16), &[]),
        (Type(S32), &[]),
        (Type(S64), &[]),
        (Type(BF16), &[]),
        (Type(F16), &[]),
        (Type(F32), &[]),
        (Type(F64), &[]),
        (Type(C64), &[]),
        (Type(C128), &[]),
    ],
    positions: POSITIONS,
};

const POSITIONS: &[(Node, f64, f64)] = &[
    (Bool, 0.0, 0.0),
    (Type(U8), 2.0, 0.0),
    (Type(U16), 3.0, 0.0),
    (Type(U32), 4.0, 0.0),
    (Type(U64), 5.0, 0.0),
    (Int, 1.0, 1.0),
    (Type(S8), 2.0, 2.0),
    (Type(S16), 3.0, 2.0),
    (Type(S32), 4.0, 2.0),
    (Type(S64), 5.0, 2.0),
    (Float, 6.0, 1.0),
    (Type(BF16), 7.5, 0.6),
    (Type(F16), 7.5, 1.4),
    (Type(F32), 9.0, 1.0),
    (Type(F64), 10.0, 1.0),
    (Complex, 7.0, 2.0),
    (Type(C64), 10.0, 2.0),
    (Type(C128), 11.0, 2.0),
];

/// A table in which types of 64 bits are narrowed to types of 32 bits before they are looked up.
const fn narrowed(wide: &Table) -> Table {
    replace_nodes!(wide, narrow)
}

const fn narrow(node: Node) -> Node {
    match node {
        Type(U64) => Type(U32),
        Type(S64) => Type(S32),
        Type(F64) => Type(F32),
        Type(C128) => Type(C64),
        other => other,
    }
}

const fn mode(lattice: &'static Lattice, table: Table, defaults: [DType; 3]) -> Mode {
    Mode {
        table,
        lattice: Some(lattice),
        fold: FoldOrder::Left,
        with_number: Mode::weak,
        alone: |number| Some(number.weak()),
        defaults,
        fit: Fit::Default,
        absent: Absent::Float,
        rules: Rules::Jax,
        scalars: Scalars::Types,
    }
}

const X64_DEFAULTS: [DType; 3] = [S64, F64, C128];
const X32_DEFAULTS: [DType; 3] = [S32, F32, C64];

pub(super) const JAX: System = System {
    name: "jax",
    options: &[
        Switch { flag: "strict", key: "strict", values: ["false", "true"] },
        Switch { flag: "x32", key: "x64", values: ["true", "false"] },
    ],
    modes: &[
        mode(&LATTICE, LATTICE.joins(), X64_DEFAULTS),
        mode(&STRICT, STRICT.joins(), X64_DEFAULTS),
        mode(&LATTICE_X32, narrowed(&LATTICE_X32.joins()), X32_DEFAULTS),
        mode(&STRICT, narrowed(&STRICT.joins()), X32_DEFAULTS),
    ],
};
