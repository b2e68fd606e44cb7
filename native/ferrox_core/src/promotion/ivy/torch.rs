//! Ivy's frontend of PyTorch: the type of the highest kind is the result, and of types of one kind
//! the widest. Where neither type holds the other, as of `u8` and `s8` or `bf16` and `f16`, a wider
//! type is.

use super::super::table::{Table, grid};
use super::super::{Mode, Scalars, System};
use super::{frontend, frontend_mode};

pub(super) const IVY_TORCH_TABLE: Table = grid(
    "
        b1  u1  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16
    b1  b1  u1  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16
    u1  u1  u1  i2  i2  i4  i8  bf  f2  f4  f8  c8  c16
    i1  i1  i2  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16
    i2  i2  i2  i2  i2  i4  i8  bf  f2  f4  f8  c8  c16
    i4  i4  i4  i4  i4  i4  i8  bf  f2  f4  f8  c8  c16
    i8  i8  i8  i8  i8  i8  i8  bf  f2  f4  f8  c8  c16
    bf  bf  bf  bf  bf  bf  bf  bf  f4  f4  f8  c8  c16
    f2  f2  f2  f2  f2  f2  f2  f4  f2  f4  f8  c8  c16
    f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f8  c8  c16
    f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16
    c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c16 c8  c16
    c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
",
);

const IVY_TORCH_MODES: &[Mode] = &[frontend_mode(IVY_TORCH_TABLE, Scalars::Adopt)];

pub(in super::super) const IVY_TORCH: System = frontend("ivy_torch", IVY_TORCH_MODES);
