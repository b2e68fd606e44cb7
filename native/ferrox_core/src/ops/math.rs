//! Mathematical functions, by the type that they are evaluated in.

pub(super) mod complex;
pub(super) mod f16_lookup;
pub mod f32_functions;
pub(super) mod f32_loops;
pub mod f64_functions;
pub(super) mod f64_glibc;
