//! How the VM gets into a NIF, and its arguments.
//!
//! Problem: what `#[rustler::nif]` makes allocates a vector for the arguments of each call, and
//! encodes the term that it answers once more, a tenth of what a small operation takes; binaries
//! and tuples pass through memory on their way, where they are read before they have been
//! written, for as much again. Technique: the same entry in rustler's list of NIFs, with the
//! arguments where the VM has them, and what is asked of them inlined.

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

/// Adds a NIF to those that the library has: its name, the scheduler it runs on, and what it
/// answers, given its arguments decoded.
macro_rules! nif {
    ($name:ident, $schedule:ident, |$env:ident, $($arg:ident: $type:ty),*| $answer:expr) => {
        const _: () = {
            const COUNT: usize = [$(stringify!($arg)),*].len();
            unsafe extern "C" fn function(
                env: *mut $crate::entry::ErlNifEnv,
                _count: $crate::entry::c_int,
                arguments: *const $crate::entry::ErlNifTerm,
            ) -> $crate::entry::ErlNifTerm {
                let run = $crate::entry::of(|$env, mut arguments| {
                    $(let $arg: $type = arguments.next()?.decode()?;)*
                    $crate::entry::Answer::answer($answer)
                });
                // SAFETY: the VM calls it, with as many arguments as `arity` says below.
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

/// A function of what `enter` gives it, which says to the compiler that it is one.
#[inline(always)]
pub fn of<F>(run: F) -> F
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
        // SAFETY: an argument lives as long as the call that the env is of.
        Ok(unsafe { Term::new(self.env, *argument) })
    }
}

/// What a term that isn't what it should be raises. Made only then, as it takes a call to drop.
pub fn bad_argument() -> rustler::Error {
    rustler::Error::BadArg
}

/// What a NIF may answer.
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
    run: impl for<'a> FnOnce(Env<'a>, Arguments<'a>) -> NifResult<ErlNifTerm>,
) -> ErlNifTerm {
    const { assert!(N > 0, "without arguments there may be no array of them") };
    let call = ();
    // SAFETY: the only one of this call, as the caller says.
    let env = unsafe { Env::new(&call, env) };
    // SAFETY: the VM's array of the arguments, as the caller says, which lives as long as the call.
    let rest = unsafe { &*arguments.cast::<[ErlNifTerm; N]>() }.iter();
    match catch_unwind(AssertUnwindSafe(|| run(env, Arguments { env, rest }))) {
        Ok(Ok(term)) => term,
        // SAFETY: of the NIF that answers with it.
        Ok(Err(error)) => unsafe { handle_nif_result::<Term<'_>>(Ok(Err(error)), env).apply(env) },
        // SAFETY: as above.
        Err(panic) => unsafe { handle_nif_result::<Term<'_>>(Err(panic), env).apply(env) },
    }
}

/// The data of a binary; none if the term is none, or has bits past its last byte.
#[inline(always)]
pub fn bytes(term: Term<'_>) -> Option<&[u8]> {
    let mut binary = MaybeUninit::<ErlNifBinary>::uninit();
    // SAFETY: a term of this env, and a place for what it answers with.
    if unsafe { enif_inspect_binary(term.get_env().as_c_arg(), term.as_c_arg(), binary.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: written, as the answer says.
    let ErlNifBinary { data, size, .. } = unsafe { binary.assume_init() };
    // SAFETY: the binary's data, which live and don't change as long as the term; there may be no
    // address of no data.
    Some(if size == 0 { &[] } else { unsafe { slice::from_raw_parts(data, size) } })
}

/// A non-negative integer.
#[inline(always)]
pub fn natural(term: Term<'_>) -> Option<usize> {
    let mut number = 0;
    // SAFETY: a term of this env, and a place for what it answers with.
    let is = unsafe { enif_get_uint64(term.get_env().as_c_arg(), term.as_c_arg(), &mut number) } != 0;
    is.then_some(number)?.try_into().ok()
}

/// `{left, right}`
#[inline(always)]
pub fn pair<'a>(left: Term<'a>, right: Term<'a>) -> Term<'a> {
    let (env, terms) = (left.get_env(), [left.as_c_arg(), right.as_c_arg()]);
    // SAFETY: two terms, and the env of one. That of the other is the same: terms of this crate
    // live as long as the call that they are of, and no call has those of another.
    unsafe { Term::new(env, enif_make_tuple_from_array(env.as_c_arg(), terms.as_ptr(), 2)) }
}

/// A binary of so many bytes that `fill` writes. Without memory for it the VM goes down.
#[inline(always)]
pub fn binary<'a, T>(env: Env<'a>, length: usize, fill: impl FnOnce(&mut [u8]) -> T) -> (T, Term<'a>) {
    let mut term = MaybeUninit::uninit();
    // SAFETY: an env of this call, and a place for the term.
    let data = unsafe { enif_make_new_binary(env.as_c_arg(), length, term.as_mut_ptr()) };
    // SAFETY: the new binary's data, which nothing else knows of yet.
    let filled = fill(if length == 0 { &mut [] } else { unsafe { slice::from_raw_parts_mut(data, length) } });
    // SAFETY: the VM has made the term in this env.
    (filled, unsafe { Term::new(env, term.assume_init()) })
}

/// The elements of a tuple of whatever size, where the VM has them.
#[derive(Clone, Copy)]
pub struct Tuple<'a> {
    env: Env<'a>,
    elements: &'a [ErlNifTerm],
}

impl<'a> Tuple<'a> {
    /// None if the term is no tuple.
    #[inline(always)]
    pub fn of(term: Term<'a>) -> Option<Self> {
        let env = term.get_env();
        let (mut arity, mut elements) = (0, ptr::null());
        // SAFETY: a term of this env, and places for what it answers with.
        if unsafe { enif_get_tuple(env.as_c_arg(), term.as_c_arg(), &mut arity, &mut elements) } == 0 {
            return None;
        }
        // The VM may have no array of no elements.
        let length = usize::try_from(arity).ok()?;
        // SAFETY: the tuple's elements, which live and don't change as long as the term.
        let elements = if length == 0 { &[] } else { unsafe { slice::from_raw_parts(elements, length) } };
        Some(Tuple { env, elements })
    }

    /// The elements.
    #[inline(always)]
    pub fn terms(self) -> impl ExactSizeIterator<Item = Term<'a>> {
        // SAFETY: an element of a term lives in its env.
        self.elements.iter().map(move |&element| unsafe { Term::new(self.env, element) })
    }

    /// The elements, if they are so many.
    #[inline(always)]
    pub fn array<const N: usize>(self) -> Option<[Term<'a>; N]> {
        let elements: &[ErlNifTerm; N] = self.elements.try_into().ok()?;
        // SAFETY: as above.
        Some(elements.map(|element| unsafe { Term::new(self.env, element) }))
    }
}
