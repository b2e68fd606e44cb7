//! The NIF that says what the library is, for reports of errors.

use ferrox_core::exec::simd;
use ferrox_core::exec::threads::parallel;

/// The version of the library, the instruction set that its loops run with, the number of threads, and
/// whether it has been built without optimizations.
#[rustler::nif]
fn library() -> (&'static str, &'static str, usize, bool) {
    (env!("CARGO_PKG_VERSION"), simd::instruction_set(), parallel::threads(), cfg!(debug_assertions))
}
