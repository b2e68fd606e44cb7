//! One call of a NIF: the scheduler it runs on, and what it answers.

use ferrox_core::cost::Work;
use ferrox_core::exec::threads::{cooperative_yield, parallel};
use ferrox_core::{DType, Error, Output, tensor};
use rustler::schedule::consume_timeslice;
use rustler::{Encoder, Env, OwnedBinary, Term};

use crate::entry::binary;

mod atoms {
    rustler::atoms! { dirty, error }
}

/// The schedulers of the VM that a NIF may run on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scheduler {
    /// One that other processes wait for.
    Normal,
    /// One for long work; getting there costs 1 to 10 us.
    Dirty,
}

/// Where the terms of a call live, and where it runs.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    env: Env<'a>,
    on: Scheduler,
}

/// Picoseconds that a process may run before others do, as the VM counts.
const TIMESLICE: Work = 1_000_000_000;

/// Work that is left out of the count: the VM has one for the call itself.
const UNNOTICED: Work = TIMESLICE / 200;

/// Results up to this size are allocated at once, those of up to 64 bytes on the heap of the
/// calling process. A VM without memory for so little can't go on in any case.
const SMALL_BINARY: usize = 1 << 14;

impl<'a> Call<'a> {
    pub fn new(env: Env<'a>, on: Scheduler) -> Self {
        Call { env, on }
    }

    /// What `run` answers; `{:error, message}`, which `Ferrox.Native` raises as an
    /// ArgumentError; or `:dirty` where that is too much work for this scheduler,
    /// and nothing has been done.
    #[inline(always)]
    pub fn run(self, work: Work, run: impl FnOnce(Env<'a>) -> Result<Term<'a>, Error>) -> Term<'a> {
        if work > UNNOTICED {
            if self.on == Scheduler::Normal {
                if parallel::is_long(work) {
                    return atoms::dirty().encode(self.env);
                }
                // So that a process which makes many such calls lets others go on in between.
                let percent = parallel::duration(work) / (TIMESLICE / 100);
                consume_timeslice(self.env, i32::try_from(percent).unwrap_or(100).clamp(1, 100));
            }
            cooperative_yield::begin();
        }
        let answer = run(self.env);
        if work > UNNOTICED {
            cooperative_yield::end();
        }
        answer.unwrap_or_else(|error| self.error(&error))
    }

    /// `{:error, message}`
    #[cold]
    pub fn error(self, error: &Error) -> Term<'a> {
        (atoms::error(), error.to_string()).encode(self.env)
    }

    /// `run` with one tensor as the answer: `fill` writes its data.
    #[inline(always)]
    pub fn tensor(
        self,
        work: Work,
        op: &'static str,
        dtype: DType,
        shape: &[usize],
        fill: impl FnOnce(Output<'_>) -> Result<(), Error>,
    ) -> Term<'a> {
        match tensor::byte_size(op, dtype, shape) {
            Ok(length) => self
                .bytes(work, (op, dtype, shape), length, |bytes| fill(Output::new(op, dtype, shape, bytes)?)),
            Err(error) => self.error(&error),
        }
    }

    /// `run` with `size` elements in whole bytes as the answer: `fill` writes them.
    #[inline(always)]
    pub fn elements(
        self,
        work: Work,
        op: &'static str,
        dtype: DType,
        size: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Error>,
    ) -> Term<'a> {
        // What overflows is refused as too large.
        let length = size.saturating_mul(dtype.width());
        self.bytes(work, (op, dtype, &[size]), length, fill)
    }

    /// `run` with a binary as the answer, the data of a tensor of some type and shape.
    #[inline(always)]
    fn bytes(
        self,
        work: Work,
        (op, dtype, shape): (&'static str, DType, &[usize]),
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Error>,
    ) -> Term<'a> {
        if work <= UNNOTICED && length <= SMALL_BINARY {
            let (filled, binary) = binary(self.env, length, fill);
            return match filled {
                Ok(()) => binary,
                Err(error) => self.error(&error),
            };
        }
        self.run(work, |env| {
            if length <= SMALL_BINARY {
                let (filled, binary) = binary(env, length, fill);
                return filled.map(|()| binary);
            }
            // Allocating at once would take the VM down when there is no memory; growing from
            // nothing answers false, at twice the price.
            let mut binary = OwnedBinary::new(0);
            if length > isize::MAX as usize || !binary.realloc(length) {
                return Err(Error::TooLarge { op, dtype, shape: shape.to_vec() });
            }
            fill(binary.as_mut_slice())?;
            Ok(binary.release(env).into())
        })
    }

    /// `run` with a list of tensors as the answer: `fill` writes the data of all.
    pub fn tensors<const N: usize>(
        self,
        work: Work,
        op: &'static str,
        results: [(DType, &[usize]); N],
        fill: impl FnOnce([Output<'_>; N]) -> Result<(), Error>,
    ) -> Term<'a> {
        self.run(work, |env| {
            let mut binaries: [OwnedBinary; N] = std::array::from_fn(|_| OwnedBinary::new(0));
            let mut outs = Vec::with_capacity(N);
            for (binary, (dtype, shape)) in binaries.iter_mut().zip(results) {
                if !binary.realloc(tensor::byte_size(op, dtype, shape)?) {
                    return Err(Error::TooLarge { op, dtype, shape: shape.to_vec() });
                }
                outs.push(Output::new(op, dtype, shape, binary.as_mut_slice())?);
            }
            let Ok(outs) = outs.try_into() else { unreachable!("one for each result") };
            fill(outs)?;
            let terms: Vec<Term<'_>> =
                binaries.into_iter().map(|binary| binary.release(env).into()).collect();
            Ok(terms.encode(env))
        })
    }
}
