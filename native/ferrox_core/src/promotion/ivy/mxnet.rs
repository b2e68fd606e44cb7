//! Ivy's frontend of MXNet. Some pairs are undefined: `s8` with `u8`, and `bf16` with most other
//! types.

use super::super::table::{Table, grid};
use super::super::{Mode, Scalars, System};
use super::{frontend, frontend_mode};

const IVY_MXNET_TABLE: Table = grid(
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

const IVY_MXNET_MODES: &[Mode] = &[frontend_mode(IVY_MXNET_TABLE, Scalars::Types)];

pub(in super::super) const IVY_MXNET: System = frontend("ivy_mxnet", IVY_MXNET_MODES);
