//! Ivy's frontend of JAX: JAX without its weak types. `u64` with signed types gives `f64`.

use super::super::table::{Table, grid};
use super::super::{Mode, Scalars, System};
use super::{frontend, frontend_mode};

const IVY_JAX_TABLE: Table = grid(
    "
        b1  u1  u2  u4  u8  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16
    b1  b1  u1  u2  u4  u8  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16
    u1  u1  u1  u2  u4  u8  i2  i2  i4  i8  bf  f2  f4  f8  c8  c16
    u2  u2  u2  u2  u4  u8  i4  i4  i4  i8  bf  f2  f4  f8  c8  c16
    u4  u4  u4  u4  u4  u8  i8  i8  i8  i8  bf  f2  f4  f8  c8  c16
    u8  u8  u8  u8  u8  u8  f8  f8  f8  f8  bf  f2  f4  f8  c8  c16
    i1  i1  i2  i4  i8  f8  i1  i2  i4  i8  bf  f2  f4  f8  c8  c16
    i2  i2  i2  i4  i8  f8  i2  i2  i4  i8  bf  f2  f4  f8  c8  c16
    i4  i4  i4  i4  i8  f8  i4  i4  i4  i8  bf  f2  f4  f8  c8  c16
    i8  i8  i8  i8  i8  f8  i8  i8  i8  i8  bf  f2  f4  f8  c8  c16
    bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  f4  f4  f8  c8  c16
    f2  f2  f2  f2  f2  f2  f2  f2  f2  f2  f4  f2  f4  f8  c8  c16
    f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f8  c8  c16
    f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16
    c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c16 c8  c16
    c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
",
);

const IVY_JAX_MODES: &[Mode] = &[frontend_mode(IVY_JAX_TABLE, Scalars::Types)];

pub(in super::super) const IVY_JAX: System = frontend("ivy_jax", IVY_JAX_MODES);
