//! Products of matrices and vectors, one technique a file.

pub mod blocked;
pub mod gemv;
#[cfg(target_arch = "x86_64")]
mod gemv_simd;
pub mod in_order;
pub mod indirect;
#[cfg(target_arch = "x86_64")]
mod integer;
pub mod mixed;
pub mod small;
