//! Sorting algorithms for unsigned integer keys.

pub mod radix;
#[cfg(target_arch = "x86_64")]
pub(in crate::exec) mod simd_quicksort;
