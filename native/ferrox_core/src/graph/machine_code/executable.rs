//! Memory with instructions, and calls of them.

#![allow(unsafe_code, reason = "calls instructions that were written to memory")]

use memmap2::{Mmap, MmapMut};

#[cfg(target_arch = "aarch64")]
use super::instruction_cache;

/// A function of a loop, with arguments where `processor::ARGUMENTS` has them.
#[cfg(target_arch = "x86_64")]
type Function = unsafe extern "sysv64" fn(*const u8, *mut u64, *mut (), i64) -> u64;
#[cfg(target_arch = "aarch64")]
type Function = unsafe extern "C" fn(*const u8, *mut u64, *mut (), i64) -> u64;

/// A function on vectors, with arguments in `processor::POINTER_MEMORY` and `processor::ALL_BYTES`.
#[cfg(target_arch = "x86_64")]
type WideFunction = unsafe extern "sysv64" fn(*const u64, usize);
#[cfg(target_arch = "aarch64")]
type WideFunction = unsafe extern "C" fn(*const u64, usize);

/// Has this processor see all instructions that are in memory.
pub(in crate::graph) fn begin() {
    #[cfg(target_arch = "aarch64")]
    instruction_cache::begin();
}

/// Instructions in memory of their own, which is never writable and executable at the same time.
#[derive(Debug)]
pub(in crate::graph) struct Executable(Mmap);

impl Executable {
    /// `None` if the system allows no such memory.
    pub(in crate::graph) fn new(instructions: &[u8]) -> Option<Self> {
        let mut memory = MmapMut::map_anon(instructions.len()).ok()?;
        memory.get_mut(..instructions.len())?.copy_from_slice(instructions);
        let memory = memory.make_exec().ok()?;
        #[cfg(target_arch = "aarch64")]
        instruction_cache::synchronize(&memory);
        Some(Executable(memory))
    }

    /// Calls the function on vectors that begins with the first instruction, after [`begin`].
    ///
    /// # Safety
    ///
    /// The instructions are such a function, which keeps its ABI. With these arguments, it reads and writes only
    /// what the caller of this function may.
    pub(in crate::graph) unsafe fn call_wide(&self, pointers: *const u64, bytes: usize) {
        // SAFETY: function pointers and pointers to data have the same size, and the caller promises that there
        // is such a function.
        let function = unsafe { std::mem::transmute::<*const u8, WideFunction>(self.0.as_ptr()) };
        // SAFETY: the caller promises what the function needs.
        unsafe { function(pointers, bytes) };
    }

    /// Calls the function that begins with the first instruction. Its arguments are the address of the
    /// instruction at the distance `entry`, and the others.
    ///
    /// # Safety
    ///
    /// The instructions are such a function, which keeps its ABI. With these arguments, it reads and writes only
    /// what the caller of this function may, through `registers` and `context`.
    pub(in crate::graph) unsafe fn call(
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
        begin();
        // SAFETY: the caller promises what the function needs.
        Some(unsafe { function(entry, registers, context, left) })
    }
}
