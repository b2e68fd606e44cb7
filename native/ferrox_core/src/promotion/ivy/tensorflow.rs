//! Ivy's frontend of TensorFlow: all operands must have the same type.

use super::super::table::{Table, grid};
use super::super::{Mode, Scalars, System};
use super::{frontend, frontend_mode};

const IVY_TENSORFLOW_TABLE: Table = grid(
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

const IVY_TENSORFLOW_MODES: &[Mode] = &[frontend_mode(IVY_TENSORFLOW_TABLE, Scalars::Types)];

pub(in super::super) const IVY_TENSORFLOW: System = frontend("ivy_tensorflow", IVY_TENSORFLOW_MODES);
