//! The NIFs that say what the library is, for reports of errors, and how much memory it takes.

use ferrox_core::exec::simd;
use ferrox_core::exec::threads::parallel;
use ferrox_core::graph;

/// The version of the library, the instruction set that its loops run with, the number of threads, whether
/// compiled functions get machine code, and whether the library has been built without
/// optimizations.
#[rustler::nif]
fn library() -> (&'static str, &'static str, usize, &'static str, bool) {
    let is_debug = cfg!(debug_assertions);
    let version = env!("CARGO_PKG_VERSION");
    (version, simd::instruction_set(), parallel::threads(), graph::machine_code(), is_debug)
}

/// The most bytes that the library has had in use at one time, in blocks of at least 64 KB: intermediate
/// results, and the constants of programs. `forget` begins with what is in use now.
#[rustler::nif]
fn scratch_memory(forget: bool) -> usize {
    if forget {
        crate::MEMORY.forget_most_in_use();
    }
    crate::MEMORY.most_in_use()
}
