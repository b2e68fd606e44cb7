//! A call of a NIF: the scheduler that it runs on, and its answer.

use ferrox_core::cost::{self, RESULT_BYTE_COST, Work, axes_work};
use ferrox_core::exec::threads::{cooperative_yield, parallel};
use ferrox_core::{DType, Error, Output, tensor};
use rustler::schedule::consume_timeslice;
use rustler::{Encoder, Env, NifResult, OwnedBinary, Term};

use crate::MEMORY;
use crate::entry::{NO_MEMORY, bad_argument, binary};

mod atoms {
    rustler::atoms! { dirty, error }
}

/// Adds the two NIFs of a family of operations to the library: `NAME_normal` for the normal
/// schedulers of the VM, which answers `:dirty` if the work is too long for them, and `NAME_dirty`
/// for the dirty CPU schedulers. The expression is a `Result<Term, Failure>`, computed from the
/// [`Call`] and the decoded arguments.
macro_rules! family {
    ($name:ident, |$call:ident, $($arg:ident: $type:ty),*| $answer:expr) => {
        const _: () = {
            use $crate::scheduling::Scheduler;

            #[inline(always)]
            #[allow(clippy::too_many_arguments, reason = "an array of arguments is not kept in registers")]
            fn $name<'a>(
                $call: $crate::scheduling::Call<'a>,
                $($arg: rustler::Term<'a>),*
            ) -> Result<rustler::Term<'a>, $crate::scheduling::Failure> {
                $(let $arg: $type = $arg.decode()?;)*
                $answer
            }
            $crate::entry::nif!(concat!(stringify!($name), "_normal"), Normal, |env, [$($arg),*]| {
                $crate::scheduling::answer(env, stringify!($name), Scheduler::Normal, |call| $name(call, $($arg),*))
            });
            $crate::entry::nif!(concat!(stringify!($name), "_dirty"), DirtyCpu, |env, [$($arg),*]| {
                $crate::scheduling::answer(env, stringify!($name), Scheduler::Dirty, |call| $name(call, $($arg),*))
            });
        };
    };
}
pub(crate) use family;

/// Why a call has no result. The error is boxed: a `Result<Term, Failure>` that fits into registers is
/// not moved through memory.
pub enum Failure {
    /// An argument is a term of the wrong kind.
    BadArgument,
    /// There is no memory to decode an argument.
    NoMemory,
    /// The core returned an error.
    Operation(Box<Error>),
}

impl From<rustler::Error> for Failure {
    fn from(error: rustler::Error) -> Self {
        match error {
            rustler::Error::Atom(NO_MEMORY) => Failure::NoMemory,
            _ => Failure::BadArgument,
        }
    }
}

impl From<Error> for Failure {
    #[cold]
    fn from(error: Error) -> Self {
        Failure::Operation(Box::new(error))
    }
}

/// Returns the result of `compute`, or `{:error, message}`, from which `Ferrox.Native` raises an
/// ArgumentError.
#[inline(always)]
pub fn answer<'a>(
    env: Env<'a>,
    op: &'static str,
    scheduler: Scheduler,
    compute: impl FnOnce(Call<'a>) -> Result<Term<'a>, Failure>,
) -> NifResult<Term<'a>> {
    match compute(Call { env, op, scheduler }) {
        Ok(term) => Ok(term),
        Err(Failure::Operation(error)) => Ok(encode_error(env, &error)),
        Err(Failure::NoMemory) => Ok(encode_error(env, &no_memory(op))),
        Err(Failure::BadArgument) => Err(bad_argument()),
    }
}

#[cold]
fn no_memory(op: &'static str) -> Error {
    Error::Argument { op, problem: "there is not enough memory for the arguments".into() }
}

#[cold]
fn encode_error<'a>(env: Env<'a>, error: &Error) -> Term<'a> {
    (atoms::error(), error.to_string()).encode(env)
}

/// The scheduler that a call runs on. It has the size of a word: the processor waits where a call is
/// copied word by word and one of the words has been written as a byte.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Scheduler {
    /// A normal scheduler, on which other processes wait.
    Normal,
    /// A dirty CPU scheduler, for long work. Moving a call there takes 1 to 10 us.
    Dirty,
}

/// A call of a NIF.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The environment of the call.
    pub env: Env<'a>,
    /// The name of the operation in error messages.
    pub op: &'static str,
    /// The scheduler.
    pub scheduler: Scheduler,
}

/// Picoseconds that a process may run before others do, as the VM counts.
pub const TIMESLICE: Work = 1_000_000_000;

/// Work that is left out of the count: the VM has one for the call itself.
pub const UNNOTICED: Work = TIMESLICE / 200;

/// Results up to this size are allocated at once, those of up to 64 bytes on the heap of the
/// calling process. A VM without memory for so little can't go on in any case.
const SMALL_BINARY: usize = 1 << 14;

impl<'a> Call<'a> {
    /// The call with another name of the operation in error messages.
    #[inline(always)]
    pub fn named(self, op: &'static str) -> Self {
        Call { op, ..self }
    }

    /// Whether some work is too long for the scheduler of this call.
    #[inline]
    pub fn is_too_long(self, work: Work) -> bool {
        self.scheduler == Scheduler::Normal && parallel::is_long(work)
    }

    /// The answer that leaves the call to a dirty scheduler.
    pub fn dirty(self) -> Term<'a> {
        atoms::dirty().encode(self.env)
    }

    /// Returns the result of `run`, or `:dirty` without running it if the work is too long for the
    /// scheduler of this call.
    #[inline(always)]
    fn run(self, work: Work, run: impl FnOnce() -> Result<Term<'a>, Failure>) -> Result<Term<'a>, Failure> {
        let _pausing = if work > UNNOTICED {
            if self.scheduler == Scheduler::Normal {
                if parallel::is_long(work) {
                    return Ok(self.dirty());
                }
                // A process that makes many calls of this length lets other processes run in between.
                let percent = parallel::duration(work) / (TIMESLICE / 100);
                consume_timeslice(self.env, i32::try_from(percent).unwrap_or(100).clamp(1, 100));
            }
            Some(cooperative_yield::begin())
        } else {
            None
        };
        run()
    }

    /// Returns the data of a tensor, which `fill` writes.
    #[inline(always)]
    pub fn tensor(
        self,
        work: Work,
        dtype: DType,
        shape: &[usize],
        fill: impl FnOnce(Output<'_>) -> Result<(), Error>,
    ) -> Result<Term<'a>, Failure> {
        let length = tensor::byte_size(self.op, dtype, shape)?;
        let work = work.saturating_add(axes_work(shape));
        self.bytes(work, (dtype, shape), length, |bytes| fill(Output { dtype, shape, bytes }))
    }

    /// Returns `size` elements in whole bytes, which `fill` writes.
    #[inline(always)]
    pub fn elements(
        self,
        work: Work,
        dtype: DType,
        size: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Error>,
    ) -> Result<Term<'a>, Failure> {
        // A length that overflows is refused as too large.
        self.bytes(work, (dtype, &[size]), size.saturating_mul(dtype.width()), fill)
    }

    /// Returns a binary of `length` bytes: the data of a tensor of the given type and shape.
    #[inline(always)]
    fn bytes(
        self,
        work: Work,
        (dtype, shape): (DType, &[usize]),
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Error>,
    ) -> Result<Term<'a>, Failure> {
        if work <= UNNOTICED && length <= SMALL_BINARY {
            return binary(self.env, length, |bytes| fill(bytes).map_err(Failure::from));
        }
        self.many_bytes(work, (dtype, shape), length, fill)
    }

    /// `bytes` for much work or a large binary. A function of its own, so that the variables of `bytes`
    /// stay in registers.
    #[inline(never)]
    fn many_bytes(
        self,
        work: Work,
        (dtype, shape): (DType, &[usize]),
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Error>,
    ) -> Result<Term<'a>, Failure> {
        let work = work.saturating_add(cost::work(length, RESULT_BYTE_COST));
        self.run(work, || {
            if length <= SMALL_BINARY {
                return binary(self.env, length, |bytes| fill(bytes).map_err(Failure::from));
            }
            let mut binary = self.allocate(dtype, shape, length)?;
            fill(binary.as_mut_slice())?;
            Ok(binary.release(self.env).into())
        })
    }

    /// Allocates a binary of any size.
    fn allocate(self, dtype: DType, shape: &[usize], length: usize) -> Result<OwnedBinary, Error> {
        tensor::check_result(self.op, dtype, shape, length)?;
        allocate(length).ok_or_else(|| Error::TooLarge { op: self.op, dtype, shape: shape.to_vec() })
    }

    /// Returns a list of the data of several tensors, which `fill` writes.
    pub fn tensors<const N: usize>(
        self,
        work: Work,
        results: [(DType, &[usize]); N],
        fill: impl FnOnce([Output<'_>; N]) -> Result<(), Error>,
    ) -> Result<Term<'a>, Failure> {
        self.run(work, || {
            let mut binaries = Vec::with_capacity(N);
            for (dtype, shape) in results {
                let length = tensor::byte_size(self.op, dtype, shape)?;
                binaries.push(self.allocate(dtype, shape, length)?);
            }
            let mut filled = binaries.iter_mut().zip(results);
            fill(std::array::from_fn(|_| {
                let (binary, (dtype, shape)) = filled.next().expect("one for each result");
                Output { dtype, shape, bytes: binary.as_mut_slice() }
            }))?;
            let terms: Vec<Term<'_>> =
                binaries.into_iter().map(|binary| binary.release(self.env).into()).collect();
            Ok(terms.encode(self.env))
        })
    }
}

/// A binary with a copy of some bytes.
pub fn copy<'a>(env: Env<'a>, op: &'static str, bytes: &[u8]) -> Result<Term<'a>, Failure> {
    if bytes.len() <= SMALL_BINARY {
        return binary(env, bytes.len(), |out| {
            out.copy_from_slice(bytes);
            Ok(())
        });
    }
    let error = || Error::TooLarge { op, dtype: DType::U8, shape: vec![bytes.len()] };
    let mut binary = allocate(bytes.len()).ok_or_else(error)?;
    binary.as_mut_slice().copy_from_slice(bytes);
    Ok(binary.release(env).into())
}

/// Allocates a binary of any size; `None` without enough memory. `OwnedBinary::new` would take the VM
/// down then, but growing an empty binary returns false, at twice the price.
pub fn allocate(length: usize) -> Option<OwnedBinary> {
    let mut binary = OwnedBinary::new(0);
    if length > isize::MAX as usize {
        return None;
    }
    if !binary.realloc(length) {
        // The blocks that our allocator keeps may be the memory that the VM's lacks.
        MEMORY.release();
        return binary.realloc(length).then_some(binary);
    }
    Some(binary)
}
