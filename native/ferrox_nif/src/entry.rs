//! The entry points of NIFs, and access to their arguments.
//!
//! Problem: the function that `#[rustler::nif]` generates allocates a vector for the arguments of
//! each call, and encodes the returned term once more: a tenth of the time of a small operation.
//! rustler's access to binaries and tuples goes through memory and takes as much time again.
//! Technique: NIFs are registered in rustler's list in the same way, but their arguments are read
//! where the VM has them, and access to them is inlined.

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

use rustler::codegen_runtime::handle_nif_result;
pub use rustler::codegen_runtime::{ErlNifEnv, ErlNifTerm, c_int, c_uint, inventory};
use rustler::sys::{
    ErlNifBinary, enif_get_tuple, enif_get_uint64, enif_inspect_binary, enif_make_new_binary,
    enif_make_tuple_from_array,
};
use rustler::{Env, NifResult, Term};

/// Adds a NIF to the library: its name, the scheduler that it runs on, and the expression that
/// computes its answer from the decoded arguments.
macro_rules! nif {
    ($name:ident, $schedule:ident, |$env:ident, $($arg:ident: $type:ty),*| $answer:expr) => {
        const _: () = {
            const COUNT: usize = [$(stringify!($arg)),*].len();
            unsafe extern "C" fn function(
                env: *mut $crate::entry::ErlNifEnv,
                _count: $crate::entry::c_int,
                arguments: *const $crate::entry::ErlNifTerm,
            ) -> $crate::entry::ErlNifTerm {
                let run = $crate::entry::nif_closure(|$env, mut arguments| {
                    $(let $arg: $type = arguments.next()?.decode()?;)*
                    $crate::entry::Answer::answer($answer)
                });
                // SAFETY: the VM calls this function with `arity` arguments, see below.
                unsafe { $crate::entry::enter::<COUNT>(env, arguments, run) }
            }
            $crate::entry::inventory::submit!(rustler::Nif {
                name: concat!(stringify!($name), "\0").as_ptr().cast(),
                arity: COUNT as $crate::entry::c_uint,
                flags: rustler::SchedulerFlags::$schedule as $crate::entry::c_uint,
                raw_func: function,
            });
        };
    };
}
pub(crate) use nif;

/// Returns its argument. Its bounds make the compiler infer the lifetimes of the closure that
/// [`enter`] takes.
#[inline(always)]
pub fn nif_closure<F>(run: F) -> F
where
    F: for<'a> FnOnce(Env<'a>, Arguments<'a>) -> NifResult<ErlNifTerm>,
{
    run
}

/// The arguments of a call, one after the other.
pub struct Arguments<'a> {
    env: Env<'a>,
    rest: slice::Iter<'a, ErlNifTerm>,
}

impl<'a> Arguments<'a> {
    #[inline(always)]
    pub fn next(&mut self) -> NifResult<Term<'a>> {
        let argument = self.rest.next().ok_or_else(bad_argument)?;
        // SAFETY: an argument lives as long as the call, and the env belongs to the call.
        Ok(unsafe { Term::new(self.env, *argument) })
    }
}

/// The error for a term of the wrong kind. A function and not a value, as dropping an unused error
/// takes a function call.
pub fn bad_argument() -> rustler::Error {
    rustler::Error::BadArg
}

/// The results that a NIF may return.
pub trait Answer {
    fn answer(self) -> NifResult<ErlNifTerm>;
}
impl Answer for Term<'_> {
    #[inline(always)]
    fn answer(self) -> NifResult<ErlNifTerm> {
        Ok(self.as_c_arg())
    }
}
impl Answer for NifResult<Term<'_>> {
    #[inline(always)]
    fn answer(self) -> NifResult<ErlNifTerm> {
        self.map(|term| term.as_c_arg())
    }
}

/// Calls `run` and returns its answer. Raises `badarg` if `run` can't decode an argument, and the
/// error `nif_panicked` if it panics.
///
/// # Safety
///
/// `env` and `arguments` must come from a call by the VM with `N` arguments.
#[inline(always)]
pub unsafe fn enter<const N: usize>(
    env: *mut ErlNifEnv,
    arguments: *const ErlNifTerm,
    run: impl for<'a> FnOnce(Env<'a>, Arguments<'a>) -> NifResult<ErlNifTerm>,
) -> ErlNifTerm {
    const { assert!(N > 0, "without arguments there may be no array of them") };
    let call = ();
    // SAFETY: the env belongs to this call, as the caller promises, and no other `Env` of the call
    // exists.
    let env = unsafe { Env::new(&call, env) };
    // SAFETY: the VM's array of `N` arguments, as the caller promises; it lives as long as the call.
    let rest = unsafe { &*arguments.cast::<[ErlNifTerm; N]>() }.iter();
    match catch_unwind(AssertUnwindSafe(|| run(env, Arguments { env, rest }))) {
        Ok(Ok(term)) => term,
        // SAFETY: the result is returned from the NIF of this env.
        Ok(Err(error)) => unsafe { handle_nif_result::<Term<'_>>(Ok(Err(error)), env).apply(env) },
        // SAFETY: as above.
        Err(panic) => unsafe { handle_nif_result::<Term<'_>>(Err(panic), env).apply(env) },
    }
}

/// The data of a binary. Returns `None` if the term is not a binary, or is a bitstring whose number
/// of bits is not a multiple of eight.
#[inline(always)]
pub fn bytes(term: Term<'_>) -> Option<&[u8]> {
    let mut binary = MaybeUninit::<ErlNifBinary>::uninit();
    // SAFETY: a term of this env, and memory for the answer.
    if unsafe { enif_inspect_binary(term.get_env().as_c_arg(), term.as_c_arg(), binary.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: the call has succeeded, so the VM has written the binary.
    let ErlNifBinary { data, size, .. } = unsafe { binary.assume_init() };
    // SAFETY: the binary's data, which live as long as the term and don't change. The address of an
    // empty binary may be null, so it is not used.
    Some(if size == 0 { &[] } else { unsafe { slice::from_raw_parts(data, size) } })
}

/// Decodes a non-negative integer. Returns `None` for other terms.
#[inline(always)]
pub fn natural(term: Term<'_>) -> Option<usize> {
    let mut number = 0;
    // SAFETY: a term of this env, and memory for the answer.
    let is_integer = unsafe { enif_get_uint64(term.get_env().as_c_arg(), term.as_c_arg(), &mut number) } != 0;
    is_integer.then_some(number)?.try_into().ok()
}

/// The tuple `{left, right}`.
#[inline(always)]
pub fn pair<'a>(left: Term<'a>, right: Term<'a>) -> Term<'a> {
    let (env, terms) = (left.get_env(), [left.as_c_arg(), right.as_c_arg()]);
    // SAFETY: an array of two terms, and the env of the first. The second term has the same env:
    // terms in this crate live as long as their call, and no call has terms of another call.
    unsafe { Term::new(env, enif_make_tuple_from_array(env.as_c_arg(), terms.as_ptr(), 2)) }
}

/// Makes a binary of `length` bytes that `fill` writes. Without enough memory the VM aborts.
#[inline(always)]
pub fn binary<'a, T>(env: Env<'a>, length: usize, fill: impl FnOnce(&mut [u8]) -> T) -> (T, Term<'a>) {
    let mut term = MaybeUninit::uninit();
    // SAFETY: the env of this call, and memory for the term.
    let data = unsafe { enif_make_new_binary(env.as_c_arg(), length, term.as_mut_ptr()) };
    // SAFETY: the data of the new binary, to which nothing else refers yet.
    let filled = fill(if length == 0 { &mut [] } else { unsafe { slice::from_raw_parts_mut(data, length) } });
    // SAFETY: the VM has made the term in this env.
    (filled, unsafe { Term::new(env, term.assume_init()) })
}

/// The elements of a tuple of any size, in the memory of the VM.
#[derive(Clone, Copy)]
pub struct Tuple<'a> {
    env: Env<'a>,
    elements: &'a [ErlNifTerm],
}

impl<'a> Tuple<'a> {
    /// Returns `None` if the term is not a tuple.
    #[inline(always)]
    pub fn of(term: Term<'a>) -> Option<Self> {
        let env = term.get_env();
        let (mut arity, mut elements) = (0, ptr::null());
        // SAFETY: a term of this env, and memory for the answers.
        if unsafe { enif_get_tuple(env.as_c_arg(), term.as_c_arg(), &mut arity, &mut elements) } == 0 {
            return None;
        }
        // For an empty tuple the VM may return a null pointer.
        let length = usize::try_from(arity).ok()?;
        // SAFETY: the tuple's elements, which live as long as the term and don't change.
        let elements = if length == 0 { &[] } else { unsafe { slice::from_raw_parts(elements, length) } };
        Some(Tuple { env, elements })
    }

    /// The elements as terms.
    #[inline(always)]
    pub fn terms(self) -> impl ExactSizeIterator<Item = Term<'a>> {
        // SAFETY: an element of a term lives in the env of the term.
        self.elements.iter().map(move |&element| unsafe { Term::new(self.env, element) })
    }

    /// The elements as an array. Returns `None` if their number is not `N`.
    #[inline(always)]
    pub fn array<const N: usize>(self) -> Option<[Term<'a>; N]> {
        let elements: &[ErlNifTerm; N] = self.elements.try_into().ok()?;
        // SAFETY: as above.
        Some(elements.map(|element| unsafe { Term::new(self.env, element) }))
    }
}
