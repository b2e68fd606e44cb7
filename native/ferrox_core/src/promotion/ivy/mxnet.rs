//! MXNet, whose table has holes: `s8` with `u8`, and `bf16` with most others.

use super::super::table::{Table, grid};
use super::super::{Mode, System};
use super::{frontend, frontend_mode};

const TABLE: Table = grid(
    "
        b1  u1  i1  i4  i8  bf  f2  f4  f8
    b1  b1  u1  i1  i4  i8  bf  f2  f4  f8
    u1  u1  u1  --  i4  i8  bf  f2  f4  f8
    i1  i1  --  i1  i4  i8  bf  f2  f4  f8
    i4  i4  i4  i4  i4  i8  --  f8  f8  f8
    i8  i8  i8  i8  i8  i8  --  f8  f8  f8
    bf  --  bf  bf  --  --  bf  --  f4  f8
    f2  f2  f2  f2  f8  f8  --  f2  f4  f8
    f4  f4  f4  f4  f8  f8  f4  f4  f4  f8
    f8  f8  f8  f8  f8  f8  f8  f8  f8  f8
",
);

const MODES: &[Mode] = &[frontend_mode(TABLE)];

pub(in super::super) const IVY_MXNET: System = frontend("ivy_mxnet", MODES);
