//! The entry points of NIFs, and access to their arguments.
//!
//! Problem: the function that `#[rustler::nif]` generates allocates a vector for the arguments of
//! each call, and encodes the returned term once more: a tenth of the time of a small operation.
//! rustler's access to binaries and tuples goes through memory and takes as much time again.
//! Technique: NIFs are registered in rustler's list in the same way, but their arguments are read
//! where the VM has them, and access to them is inlined. The memory for the VM's answers is not
//! initialized: with zeros written there first, each call took up to 10 ns longer on Zen 5. Probably the
//! processor forwards the zero to the load after the call, and starts again when it finds the VM's store.

use std::any::type_name;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::{ptr, slice};

use rustler::codegen_runtime::{
    ErlNifEntry, ResourceRegistration, c_void, handle_nif_init_call, handle_nif_result,
};
pub use rustler::codegen_runtime::{ErlNifEnv, ErlNifTerm, c_int, c_uint, inventory};
use rustler::sys::{
    ErlNifBinary, ErlNifResourceDtor, ErlNifResourceFlags, ErlNifResourceTypeInit, enif_get_list_cell,
    enif_get_tuple, enif_get_uint64, enif_inspect_binary, enif_make_new_binary, enif_open_resource_type_x,
};
use rustler::{Env, NifResult, Resource, Term};

/// Adds a NIF to the library: its name, the scheduler that it runs on, and the expression that
/// computes its answer, a `NifResult<Term>`, from the terms of its arguments.
macro_rules! nif {
    ($name:expr, $schedule:ident, |$env:ident, [$($arg:ident),*]| $answer:expr) => {
        const _: () = {
            const ARITY: usize = [$(stringify!($arg)),*].len();
            #[inline(always)]
            fn run<'a>(
                $env: rustler::Env<'a>,
                arguments: $crate::entry::Tuple<'a>,
            ) -> rustler::NifResult<rustler::Term<'a>> {
                let mut arguments = arguments.terms();
                $(let $arg = arguments.next().ok_or_else($crate::entry::bad_argument)?;)*
                $answer
            }
            unsafe extern "C" fn function(
                env: *mut $crate::entry::ErlNifEnv,
                _count: $crate::entry::c_int,
                arguments: *const $crate::entry::ErlNifTerm,
            ) -> $crate::entry::ErlNifTerm {
                // SAFETY: the VM calls this function with `arity` arguments, see below.
                unsafe { $crate::entry::enter::<ARITY>(env, arguments, run) }
            }
            $crate::entry::inventory::submit!(rustler::Nif {
                name: concat!($name, "\0").as_ptr().cast(),
                arity: ARITY as $crate::entry::c_uint,
                flags: rustler::SchedulerFlags::$schedule as $crate::entry::c_uint,
                raw_func: function,
            });
        };
    };
}
pub(crate) use nif;

/// The library of a module.
///
/// The VM loads it again for a new version of the module, beside the old one. What rustler generates
/// refuses that, and then a module that has been deleted never comes back while processes still run its
/// code. Here, the new version takes over the resources.
pub trait Library {
    /// The module.
    const MODULE: &'static CStr;

    /// Prepares the library, the first time and for every new version of the module. Returns whether that
    /// has succeeded.
    fn load(env: Env<'_>, info: Term<'_>) -> bool;

    /// Calls `take_over` for every type of resources. Returns whether all have succeeded.
    fn take_over(env: Env<'_>) -> bool;
}

/// What the VM finds in the library: its NIFs, and the functions that it calls when it loads it.
pub fn library<L: Library>() -> *const ErlNifEntry {
    static ENTRY: AtomicPtr<ErlNifEntry> = AtomicPtr::new(ptr::null_mut());
    // The VM loads one library at a time.
    if ENTRY.load(Ordering::Acquire).is_null() {
        let nifs: Vec<_> = inventory::iter::<rustler::Nif>().map(rustler::Nif::get_def).collect();
        let entry = ErlNifEntry::new(L::MODULE, nifs.leak(), load::<L>);
        let entry = Box::new(ErlNifEntry { upgrade: Some(upgrade::<L>), ..entry });
        ENTRY.store(Box::into_raw(entry), Ordering::Release);
    }
    ENTRY.load(Ordering::Acquire)
}

/// Whether the resource types are those of this library: another one, which lies in the file of this one by
/// now, has no part in them.
static HAS_TYPES: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn load<L: Library>(
    env: *mut ErlNifEnv,
    _data: *mut *mut c_void,
    info: ErlNifTerm,
) -> c_int {
    let call = ();
    // SAFETY: the VM calls this function with the env of a library that it loads.
    let env = unsafe { Env::new_init_env(&call, env) };
    if ResourceRegistration::register_all_collected(env).is_err() {
        return 1;
    }
    HAS_TYPES.store(true, Ordering::Relaxed);
    // SAFETY: a term of the env.
    unsafe { handle_nif_init_call(L::load, env, Term::new(env, info)) }
}

unsafe extern "C" fn upgrade<L: Library>(
    env: *mut ErlNifEnv,
    _data: *mut *mut c_void,
    _old_data: *mut *mut c_void,
    info: ErlNifTerm,
) -> c_int {
    let call = ();
    // SAFETY: the VM calls this function with the env of a library that it loads.
    let env = unsafe { Env::new_init_env(&call, env) };
    if !HAS_TYPES.load(Ordering::Relaxed) || !L::take_over(env) {
        return 1;
    }
    // SAFETY: a term of the env.
    unsafe { handle_nif_init_call(L::load, env, Term::new(env, info)) }
}

/// Makes the new version of the module the owner of a type of resources: the VM frees the types of a
/// version that it unloads. Returns whether that has succeeded; it can't outside of an upgrade.
pub fn take_over<T: Resource>(env: Env<'_>) -> bool {
    const { assert!(!T::IMPLEMENTS_DESTRUCTOR && !T::IMPLEMENTS_DOWN, "resources are only dropped") };
    let Ok(name) = CString::new(type_name::<T>()) else { return false };
    let destructor: *const ErlNifResourceDtor = drop_resource::<T> as *const ErlNifResourceDtor;
    let init = ErlNifResourceTypeInit { dtor: destructor, stop: ptr::null(), down: ptr::null() };
    let flags = ErlNifResourceFlags::ERL_NIF_RT_TAKEOVER;
    let mut tried = MaybeUninit::uninit();
    // SAFETY: the env of the library that the VM loads, a name that ends with a zero, and memory for the
    // answer. The type keeps its address, which rustler knows.
    !unsafe { enif_open_resource_type_x(env.as_c_arg(), name.as_ptr(), &init, flags, tried.as_mut_ptr()) }
        .is_null()
}

/// Drops a resource.
unsafe extern "C" fn drop_resource<T: Resource>(_env: *mut ErlNifEnv, memory: *mut c_void) {
    // As rustler places them: at the first aligned address behind the start of the memory.
    let offset = align_of::<T>() - memory.addr() % align_of::<T>();
    // SAFETY: the VM calls this function once for a resource that rustler has made of a `T`.
    let _ = catch_unwind(|| unsafe { memory.byte_add(offset).cast::<T>().drop_in_place() });
}

/// The error for a term of the wrong kind. A function and not a value, as dropping an unused error
/// takes a function call.
pub fn bad_argument() -> rustler::Error {
    rustler::Error::BadArg
}

/// The name of the error `no_memory`.
pub const NO_MEMORY: &str = "no_memory";

/// The error for an argument that there is no memory to decode.
#[cold]
pub fn no_memory() -> rustler::Error {
    rustler::Error::Atom(NO_MEMORY)
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
    run: impl for<'a> FnOnce(Env<'a>, Tuple<'a>) -> NifResult<Term<'a>>,
) -> ErlNifTerm {
    const { assert!(N > 0, "without arguments there may be no array of them") };
    let call = ();
    // SAFETY: the env belongs to this call, as the caller promises, and no other `Env` of the call
    // exists.
    let env = unsafe { Env::new(&call, env) };
    // SAFETY: the VM's array of `N` arguments, as the caller promises; it lives as long as the call.
    let elements = unsafe { &*arguments.cast::<[ErlNifTerm; N]>() };
    match catch_unwind(AssertUnwindSafe(|| run(env, Tuple { env, elements }))) {
        Ok(Ok(term)) => term.as_c_arg(),
        // SAFETY: the result is returned from the NIF of this env.
        failed => unsafe { handle_nif_result(failed, env).apply(env) },
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
    let mut number = MaybeUninit::uninit();
    // SAFETY: a term of this env, and memory for the answer.
    if unsafe { enif_get_uint64(term.get_env().as_c_arg(), term.as_c_arg(), number.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: the call has succeeded, so the VM has written the number.
    unsafe { number.assume_init() }.try_into().ok()
}

/// The first element of a list and the list of the others. Returns `None` for other terms.
#[inline(always)]
pub fn list_cell(term: Term<'_>) -> Option<(Term<'_>, Term<'_>)> {
    let env = term.get_env();
    let (mut head, mut tail) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: a term of this env, and memory for the answers.
    if unsafe { enif_get_list_cell(env.as_c_arg(), term.as_c_arg(), head.as_mut_ptr(), tail.as_mut_ptr()) }
        == 0
    {
        return None;
    }
    // SAFETY: the call has succeeded, so the VM has written both; they live in the env of the list.
    Some(unsafe { (Term::new(env, head.assume_init()), Term::new(env, tail.assume_init())) })
}

/// Makes a binary of `length` bytes that `fill` writes. Without enough memory the VM aborts: larger ones are
/// made by `scheduling::allocate`.
#[inline(always)]
pub fn binary<'a, E>(
    env: Env<'a>,
    length: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
) -> Result<Term<'a>, E> {
    let mut term = MaybeUninit::uninit();
    // SAFETY: the env of this call, and memory for the term.
    let data = unsafe { enif_make_new_binary(env.as_c_arg(), length, term.as_mut_ptr()) };
    // SAFETY: the data of the new binary, to which nothing else refers yet.
    fill(if length == 0 { &mut [] } else { unsafe { slice::from_raw_parts_mut(data, length) } })?;
    // SAFETY: the VM has made the term in this env.
    Ok(unsafe { Term::new(env, term.assume_init()) })
}

/// The elements of a tuple of any size, or the arguments of a call, in the memory of the VM.
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
        let (mut arity, mut elements) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: a term of this env, and memory for the answers.
        let is_tuple = unsafe {
            enif_get_tuple(env.as_c_arg(), term.as_c_arg(), arity.as_mut_ptr(), elements.as_mut_ptr())
        };
        if is_tuple == 0 {
            return None;
        }
        // SAFETY: the call has succeeded, so the VM has written both.
        let (arity, elements) = unsafe { (arity.assume_init(), elements.assume_init()) };
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
