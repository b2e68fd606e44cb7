//! The NIF library of Ferrox: decodes Elixir terms, calls `ferrox_core`, and encodes the results.

#![allow(unsafe_code, reason = "what the macros of rustler expand to, and the name that the VM looks for")]

mod atom_table;
mod entry;
mod families;
mod graph;
mod library;
mod linalg;
mod promotion;
mod scheduling;
mod supports;
mod term;

use std::ffi::CStr;

use rustler::codegen_runtime::ErlNifEntry;
#[cfg(not(windows))]
use rustler::codegen_runtime::internal_write_symbols;
use rustler::{Env, Term};

#[global_allocator]
static MEMORY: ferrox_core::exec::memory::recycling_allocator::Recycler =
    ferrox_core::exec::memory::recycling_allocator::Recycler::new();

struct Native;

impl entry::Library for Native {
    const MODULE: &'static CStr = c"Elixir.Ferrox.Native";

    fn load(env: Env<'_>, options: Term<'_>) -> bool {
        families::load(env, options)
    }

    fn take_over(env: Env<'_>) -> bool {
        graph::take_over(env)
    }
}

/// Called by the VM when it opens the library.
#[cfg(not(windows))]
#[unsafe(no_mangle)]
extern "C" fn nif_init() -> *const ErlNifEntry {
    // SAFETY: the functions of the VM are found before any of them is called.
    unsafe { internal_write_symbols() };
    entry::library::<Native>()
}

/// Called by the VM when it opens the library, with its functions.
#[cfg(windows)]
#[unsafe(no_mangle)]
extern "C" fn nif_init(callbacks: *mut rustler::codegen_runtime::DynNifCallbacks) -> *const ErlNifEntry {
    // SAFETY: the functions come from the VM.
    unsafe { rustler::codegen_runtime::internal_set_symbols(callbacks) };
    entry::library::<Native>()
}
