//! TensorFlow: all operands have one type, or it is an error.

use super::super::table::{Table, grid};
use super::super::{Mode, System};
use super::{frontend, frontend_mode};

const TABLE: Table = grid(
    "
        b1  u1  u2  u4  u8  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16
    b1  b1  --  --  --  --  --  --  --  --  --  --  --  --  --  --
    u1  --  u1  --  --  --  --  --  --  --  --  --  --  --  --  --
    u2  --  --  u2  --  --  --  --  --  --  --  --  --  --  --  --
    u4  --  --  --  u4  --  --  --  --  --  --  --  --  --  --  --
    u8  --  --  --  --  u8  --  --  --  --  --  --  --  --  --  --
    i1  --  --  --  --  --  i1  --  --  --  --  --  --  --  --  --
    i2  --  --  --  --  --  --  i2  --  --  --  --  --  --  --  --
    i4  --  --  --  --  --  --  --  i4  --  --  --  --  --  --  --
    i8  --  --  --  --  --  --  --  --  i8  --  --  --  --  --  --
    bf  --  --  --  --  --  --  --  --  --  bf  --  --  --  --  --
    f2  --  --  --  --  --  --  --  --  --  --  f2  --  --  --  --
    f4  --  --  --  --  --  --  --  --  --  --  --  f4  --  --  --
    f8  --  --  --  --  --  --  --  --  --  --  --  --  f8  --  --
    c8  --  --  --  --  --  --  --  --  --  --  --  --  --  c8  --
    c16 --  --  --  --  --  --  --  --  --  --  --  --  --  --  c16
",
);

const MODES: &[Mode] = &[frontend_mode(TABLE)];

pub(in super::super) const IVY_TENSORFLOW: System = frontend("ivy_tensorflow", MODES);
