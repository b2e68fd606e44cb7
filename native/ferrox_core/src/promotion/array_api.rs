//! The Python array API standard. It does not define results for types of different kinds, nor for
//! `u64` with signed types: a library may define them, or refuse.

use super::table::{Table, grid};
use super::{Absent, Fit, FoldOrder, Mode, Rules, Scalars, System};
use crate::DType::{C128, F64, S64};

const ARRAY_API_TABLE: Table = grid(
    "
        b1  u1  u2  u4  u8  i1  i2  i4  i8  f4  f8  c8  c16 i*  f*  c*
    b1  b1  --  --  --  --  --  --  --  --  --  --  --  --  --  --  --
    u1  --  u1  u2  u4  u8  i2  i2  i4  i8  --  --  --  --  u1  --  --
    u2  --  u2  u2  u4  u8  i4  i4  i4  i8  --  --  --  --  u2  --  --
    u4  --  u4  u4  u4  u8  i8  i8  i8  i8  --  --  --  --  u4  --  --
    u8  --  u8  u8  u8  u8  --  --  --  --  --  --  --  --  u8  --  --
    i1  --  i2  i4  i8  --  i1  i2  i4  i8  --  --  --  --  i1  --  --
    i2  --  i2  i4  i8  --  i2  i2  i4  i8  --  --  --  --  i2  --  --
    i4  --  i4  i4  i8  --  i4  i4  i4  i8  --  --  --  --  i4  --  --
    i8  --  i8  i8  i8  --  i8  i8  i8  i8  --  --  --  --  i8  --  --
    f4  --  --  --  --  --  --  --  --  --  f4  f8  c8  c16 f4  f4  c8
    f8  --  --  --  --  --  --  --  --  --  f8  f8  c16 c16 f8  f8  c16
    c8  --  --  --  --  --  --  --  --  --  c8  c16 c8  c16 c8  c8  c8
    c16 --  --  --  --  --  --  --  --  --  c16 c16 c16 c16 c16 c16 c16
    i*  --  u1  u2  u4  u8  i1  i2  i4  i8  f4  f8  c8  c16 --  --  --
    f*  --  --  --  --  --  --  --  --  --  f4  f8  c8  c16 --  --  --
    c*  --  --  --  --  --  --  --  --  --  c8  c16 c8  c16 --  --  --
",
);

pub(super) const ARRAY_API: System = System {
    name: "array_api",
    options: &[],
    modes: &[Mode {
        table: ARRAY_API_TABLE,
        lattice: None,
        fold: FoldOrder::HighestKindFirst,
        with_number: Mode::weak,
        alone: |_| None,
        defaults: [S64, F64, C128],
        fit: Fit::Result,
        absent: Absent::Refused,
        rules: Rules::ArrayApi,
        scalars: Scalars::Types,
    }],
};
