//! Processors' caches of instructions, where these don't see what is written to memory (AArch64).
//!
//! Reference: Arm Architecture Reference Manual for A-profile architecture, section B2.7.4.2 (the sequence of
//! instructions after which what has been written can be executed).

#![allow(unsafe_code, reason = "there are instructions and functions of the system for this only")]

use std::arch::asm;

/// Lets all processors see instructions that have been written to memory, once each has gone through
/// [`begin`].
#[cfg(not(any(target_vendor = "apple", windows)))]
pub(super) fn synchronize(instructions: &[u8]) {
    let lines: u64;
    // SAFETY: reads a register that says how long the lines of caches are, and nothing else.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) lines, options(nomem, nostack, preserves_flags)) };
    let [data_line, instruction_line] = [lines >> 16, lines].map(|words| 4_usize << (words & 0xf));
    let bytes = instructions.as_ptr_range();
    let [start, end] = [bytes.start as usize, bytes.end as usize];
    for line in (start / data_line * data_line..end).step_by(data_line) {
        // SAFETY: changes no memory: it only makes what is in the cache of data visible to others. The line
        // has a byte of `instructions`, so it may be read.
        unsafe { asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: waits.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
    for line in (start / instruction_line * instruction_line..end).step_by(instruction_line) {
        // SAFETY: changes no memory, but lets the line be read again into the caches of instructions.
        unsafe { asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: waits.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
}

#[cfg(target_vendor = "apple")]
pub(super) fn synchronize(instructions: &[u8]) {
    unsafe extern "C" {
        fn sys_icache_invalidate(start: *const u8, length: usize);
    }
    // SAFETY: the function of the system reads nothing, and the memory is there.
    unsafe { sys_icache_invalidate(instructions.as_ptr(), instructions.len()) };
}

#[cfg(windows)]
pub(super) fn synchronize(instructions: &[u8]) {
    /// The process itself.
    const CURRENT_PROCESS: isize = -1;
    unsafe extern "system" {
        fn FlushInstructionCache(process: isize, start: *const u8, length: usize) -> i32;
    }
    // SAFETY: the function of the system reads nothing, and the memory is there. It fails only for a process
    // that is not there.
    unsafe { FlushInstructionCache(CURRENT_PROCESS, instructions.as_ptr(), instructions.len()) };
}

/// Has this processor read instructions anew from here on.
pub(super) fn begin() {
    // SAFETY: it has no other effect.
    unsafe { asm!("isb", options(nostack, preserves_flags)) };
}
