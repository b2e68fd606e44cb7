//! Ivy's frontend of Paddle: PyTorch's table without `bf16`.

use super::super::table::{Table, grid};
use super::super::{Mode, Scalars, System};
use super::{frontend, frontend_mode};

const IVY_PADDLE_TABLE: Table = grid(
    "
        b1  u1  i1  i2  i4  i8  f2  f4  f8  c8  c16
    b1  b1  u1  i1  i2  i4  i8  f2  f4  f8  c8  c16
    u1  u1  u1  i2  i2  i4  i8  f2  f4  f8  c8  c16
    i1  i1  i2  i1  i2  i4  i8  f2  f4  f8  c8  c16
    i2  i2  i2  i2  i2  i4  i8  f2  f4  f8  c8  c16
    i4  i4  i4  i4  i4  i4  i8  f2  f4  f8  c8  c16
    i8  i8  i8  i8  i8  i8  i8  f2  f4  f8  c8  c16
    f2  f2  f2  f2  f2  f2  f2  f2  f4  f8  c8  c16
    f4  f4  f4  f4  f4  f4  f4  f4  f4  f8  c8  c16
    f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16
    c8  c8  c8  c8  c8  c8  c8  c8  c8  c16 c8  c16
    c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
",
);

const IVY_PADDLE_MODES: &[Mode] = &[frontend_mode(IVY_PADDLE_TABLE, Scalars::Types)];

pub(in super::super) const IVY_PADDLE: System = frontend("ivy_paddle", IVY_PADDLE_MODES);
