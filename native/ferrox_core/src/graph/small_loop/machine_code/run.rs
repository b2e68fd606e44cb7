//! What machine code shares with the functions around it: how it ends, and what it calls.

#![allow(unsafe_code, reason = "machine code calls a function with the address of what they share")]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::code::{Code, Context, misplaced};
use crate::Error;
use crate::ops::scalar::ScalarKernel;

/// How the machine code of a loop ends: the low bits of its result, before the number of the next instruction.
pub(super) const END: u64 = 0;
pub(super) const LOOK: u64 = 1;
pub(super) const YIELD: u64 = 2;
pub(super) const FAILURE: u64 = 3;

/// What machine code, and the function that it calls, know of a run.
#[repr(C)]
pub(super) struct Run<'r, 'c, 'a, 'b> {
    // Machine code reads these two.
    pub(super) arrays: *const *mut u8,
    pub(super) small: *mut u8,
    pub(super) codes: &'r [Code],
    pub(super) context: Context<'c, 'a, 'b>,
    pub(super) failure: Option<Failure>,
}

/// Why a loop ends early.
pub(super) enum Failure {
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

/// The address of the function that runs an instruction for machine code. Its arguments are the address of a
/// `Run`, and the number of the instruction.
pub(super) fn function() -> u64 {
    callee as *const () as u64
}

/// [`run_code`], with its arguments and its result where machine code has them.
///
/// # Safety
///
/// As for `run_code`.
#[cfg(target_arch = "x86_64")]
unsafe extern "sysv64" fn callee(run: *mut (), index: usize) -> u64 {
    // SAFETY: the caller promises it.
    unsafe { run_code(run, index) }
}

/// [`run_code`], with its arguments and its result where machine code has them.
///
/// # Safety
///
/// As for `run_code`.
#[cfg(target_arch = "aarch64")]
unsafe extern "C" fn callee(run: *mut (), index: usize) -> u64 {
    // SAFETY: the caller promises it.
    unsafe { run_code(run, index) }
}

/// The address of the function that calls a kernel of numbers for machine code. Its arguments are the kernel and
/// two numbers.
pub(super) fn scalar_kernel_function() -> u64 {
    call_scalar_kernel as *const () as u64
}

/// Calls a kernel of numbers, which does not panic, with its arguments and its result where machine code has them.
#[allow(improper_ctypes_definitions, reason = "machine code only passes the address of the kernel on")]
#[cfg(target_arch = "x86_64")]
extern "sysv64" fn call_scalar_kernel(kernel: ScalarKernel, a: u64, b: u64) -> u64 {
    kernel(a, b)
}

/// Calls a kernel of numbers, which does not panic, with its arguments and its result where machine code has them.
#[allow(improper_ctypes_definitions, reason = "machine code only passes the address of the kernel on")]
#[cfg(target_arch = "aarch64")]
extern "C" fn call_scalar_kernel(kernel: ScalarKernel, a: u64, b: u64) -> u64 {
    kernel(a, b)
}

/// Runs an instruction for machine code. Returns zero, or one after a failure.
///
/// # Safety
///
/// `run` points to the run that machine code was called with.
#[inline]
unsafe fn run_code(run: *mut (), index: usize) -> u64 {
    // SAFETY: the caller promises it, and waits.
    let run = unsafe { &mut *run.cast::<Run<'_, '_, '_, '_>>() };
    let Run { codes, context, .. } = run;
    // A panic may not leave through machine code. It goes on when that has returned.
    let outcome = catch_unwind(AssertUnwindSafe(|| codes.get(index).ok_or_else(misplaced)?.run(context)));
    run.failure = match outcome {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => Some(Failure::Error(error)),
        Err(payload) => Some(Failure::Panic(payload)),
    };
    1
}
