//! Loops over numbers and small arrays, as code for a register machine.
//!
//! Problem: a loop whose values are small, such as a counter, a sum or the state of a simulation, takes
//! longer to prepare each operation than to compute it. Technique: each element of a number or an array of
//! a few elements is in a register of eight bytes, a larger array in a part of one memory that the loop has
//! (`code`), so that no instruction allocates, counts references or looks up a slot. Operations on registers
//! are instructions of their own (`ops::binary::scalar` has most of the kernels), and where elements only
//! change their places, there is none. On x86-64 and AArch64, the instructions become those of the processor
//! (`machine_code`); elsewhere they are interpreted (`machine`). Other operations are prepared kernels
//! (`kernel`) that know where their operands are. Larger arrays can be passed through and read, and elements
//! and parts of them can be replaced (`put_slice`), in memory that belongs to the loop. A loop that has
//! anything else stays as it is (`assembler`).
//!
//! An array of which parts are replaced has one memory for all its values, which come one after the other:
//! a program that reads a value after a part of it has been replaced keeps the array as a small one, or has
//! no such loop.

mod assembler;
mod code;
mod folds;
mod homes;
mod machine;
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "small_loop/no_machine_code.rs")]
mod machine_code;
mod operations;

pub(super) use self::code::{Arrays, Stop};
pub(super) use self::homes::is_few;
pub(super) use self::machine::{Output, SmallLoop, State};
