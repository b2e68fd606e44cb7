//! How the VM gets into a NIF.
//!
//! Problem: what `#[rustler::nif]` makes allocates a vector for the arguments of each call, and
//! encodes the term that it answers once more, a tenth of what a small operation takes.
//! Technique: the same entry in rustler's list of NIFs, with the arguments where the VM has them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rustler::codegen_runtime::handle_nif_result;
pub use rustler::codegen_runtime::{ErlNifEnv, ErlNifTerm, c_int, c_uint, inventory};
use rustler::{Env, NifResult, Term};

/// Adds a NIF to those that the library has: its name, the scheduler it runs on, and what it
/// answers, given its arguments decoded.
macro_rules! nif {
    ($name:ident, $schedule:ident, |$env:ident, $($arg:ident: $type:ty),*| $answer:expr) => {
        const _: () = {
            unsafe extern "C" fn function(
                env: *mut $crate::entry::ErlNifEnv,
                _count: $crate::entry::c_int,
                arguments: *const $crate::entry::ErlNifTerm,
            ) -> $crate::entry::ErlNifTerm {
                // SAFETY: the VM calls it, with as many arguments as `arity` says below.
                unsafe {
                    $crate::entry::enter(env, arguments, |$env, [$($arg),*]| {
                        $(let $arg: $type = $arg.decode()?;)*
                        Ok($answer)
                    })
                }
            }
            $crate::entry::inventory::submit!(rustler::Nif {
                name: concat!(stringify!($name), "\0").as_ptr().cast(),
                arity: [$(stringify!($arg)),*].len() as $crate::entry::c_uint,
                flags: rustler::SchedulerFlags::$schedule as $crate::entry::c_uint,
                raw_func: function,
            });
        };
    };
}
pub(crate) use nif;

/// What `run` answers; badarg where it can't decode an argument, and the error `nif_panicked`
/// where it panics.
///
/// # Safety
///
/// `env` and `arguments` are those of a call of the VM with `N` arguments.
#[inline(always)]
pub unsafe fn enter<const N: usize>(
    env: *mut ErlNifEnv,
    arguments: *const ErlNifTerm,
    run: impl for<'a> FnOnce(Env<'a>, [Term<'a>; N]) -> NifResult<Term<'a>>,
) -> ErlNifTerm {
    const { assert!(N > 0, "without arguments there may be no array of them") };
    let call = ();
    // SAFETY: the only one of this call, as the caller says.
    let env = unsafe { Env::new(&call, env) };
    // SAFETY: the VM's array of the arguments, as the caller says.
    let terms = unsafe { *arguments.cast::<[ErlNifTerm; N]>() };
    // SAFETY: they live as long as the call does.
    let terms = terms.map(|term| unsafe { Term::new(env, term) });
    match catch_unwind(AssertUnwindSafe(|| run(env, terms))) {
        Ok(Ok(term)) => term.as_c_arg(),
        // SAFETY: of the NIF that answers with it.
        other => unsafe { handle_nif_result(other, env).apply(env) },
    }
}
