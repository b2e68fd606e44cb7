//! Loops that reduce many elements to one: folds, minima and maxima, and their indices.

pub mod argminmax;
#[cfg(target_arch = "x86_64")]
pub(in crate::exec) mod argminmax_simd;
pub mod fold;
