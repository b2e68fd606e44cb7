//! Memory with instructions, and calls of them.

#![allow(unsafe_code, reason = "calls instructions that were written to memory")]

use memmap2::{Mmap, MmapMut};

#[cfg(target_arch = "aarch64")]
use super::instruction_cache;

/// A function made of instructions, with arguments where `processor::ARGUMENTS` has them.
#[cfg(target_arch = "x86_64")]
type Function = unsafe extern "sysv64" fn(*const u8, *mut u64, *mut (), i64) -> u64;
#[cfg(target_arch = "aarch64")]
type Function = unsafe extern "C" fn(*const u8, *mut u64, *mut (), i64) -> u64;

/// Instructions in memory of their own, which is never writable and executable at the same time.
#[derive(Debug)]
pub(super) struct Executable(Mmap);

impl Executable {
    /// `None` if the system allows no such memory.
    pub(super) fn new(instructions: &[u8]) -> Option<Self> {
        let mut memory = MmapMut::map_anon(instructions.len()).ok()?;
        memory.get_mut(..instructions.len())?.copy_from_slice(instructions);
        let memory = memory.make_exec().ok()?;
        #[cfg(target_arch = "aarch64")]
        instruction_cache::synchronize(&memory);
        Some(Executable(memory))
    }

    /// Calls the function that begins with the first instruction. Its arguments are the address of the
    /// instruction at the distance `entry`, and the others.
    ///
    /// # Safety
    ///
    /// The instructions are such a function, which keeps its ABI. With these arguments, it reads and writes only
    /// what the caller of this function may, through `registers` and `context`.
    pub(super) unsafe fn call(
        &self,
        entry: usize,
        registers: *mut u64,
        context: *mut (),
        left: i64,
    ) -> Option<u64> {
        let entry = self.0.get(entry..)?.as_ptr();
        // SAFETY: function pointers and pointers to data have the same size, and the caller promises that there
        // is such a function.
        let function = unsafe { std::mem::transmute::<*const u8, Function>(self.0.as_ptr()) };
        #[cfg(target_arch = "aarch64")]
        instruction_cache::begin();
        // SAFETY: the caller promises what the function needs.
        Some(unsafe { function(entry, registers, context, left) })
    }
}
