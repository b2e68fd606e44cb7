//! How loops run: over tiles, on how many threads, with which instructions.

mod apart;
pub mod blocks;
pub mod conv;
pub mod copy;
pub mod elementwise;
pub mod extreme;
pub mod fold;
#[cfg(target_arch = "x86_64")]
mod lines;
pub mod matmul;
pub mod matvec;
pub mod memory;
pub mod narrow;
mod offer;
pub mod panels;
pub mod parallel;
pub mod past;
pub mod pause;
#[cfg(target_arch = "x86_64")]
mod place;
#[cfg(target_arch = "x86_64")]
mod quick;
pub mod radix;
pub mod simd;
pub mod small;
#[cfg(target_arch = "x86_64")]
mod tiles;
pub mod turn;
pub mod window;
