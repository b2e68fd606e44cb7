//! How loops run: over tiles, on how many threads, with which instructions.

pub mod convert;
pub mod copy;
pub mod elementwise;
pub mod gemm;
pub mod im2col;
pub mod memory;
pub mod reduce;
pub mod simd;
pub mod sort;
pub mod threads;
pub mod window;
