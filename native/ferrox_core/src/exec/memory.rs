//! Memory for intermediate results, and stores of large results.

pub mod recycling_allocator;
pub mod streaming_stores;

use std::collections::TryReserveError;

use crate::cost::BYTES_PER_PAUSE;
use crate::exec::threads::cooperative_yield::pause;
use crate::{DType, Error};

/// Allocates `length` zeroed bytes for an intermediate result.
///
/// # Errors
///
/// `Error::TooLarge`, with the given operation, type and shape, if there is not enough memory.
pub fn scratch(op: &'static str, dtype: DType, shape: &[usize], length: usize) -> Result<Vec<u8>, Error> {
    scratch_of(op, dtype, shape, length)
}

/// `scratch` for values of any type.
///
/// # Errors
///
/// As `scratch`.
pub(crate) fn scratch_of<T: Copy + Default>(
    op: &'static str,
    dtype: DType,
    shape: &[usize],
    length: usize,
) -> Result<Vec<T>, Error> {
    filled(op, dtype, shape, length, T::default())
}

/// Allocates `length` copies of a value.
///
/// # Errors
///
/// As `scratch`.
pub(crate) fn filled<T: Copy>(
    op: &'static str,
    dtype: DType,
    shape: &[usize],
    length: usize,
    value: T,
) -> Result<Vec<T>, Error> {
    try_filled(length, value).map_err(|_| Error::TooLarge { op, dtype, shape: shape.to_vec() })
}

/// Checks that there is memory for what another crate is about to allocate infallibly: without it, the
/// process aborts.
///
/// The memory is free again when that crate allocates it; in between, another thread may take it. Nothing
/// simple prevents that. To hold the memory meanwhile takes twice as much of it; to count what threads have
/// looked for lets each look for the sum, but while one looks, another one doesn't find what it was
/// promised; and nothing tells when a crate has allocated what it needs, so that the next thread could go on.
///
/// # Errors
///
/// If there is not enough memory.
pub(crate) fn check_available(bytes: usize) -> Result<(), TryReserveError> {
    Vec::<u8>::new().try_reserve_exact(bytes)
}

/// Allocates `length` copies of a value, pausing after every `BYTES_PER_PAUSE` bytes, for callers
/// that don't know the tensor.
///
/// # Errors
///
/// If there is not enough memory.
pub(crate) fn try_filled<T: Clone>(length: usize, value: T) -> Result<Vec<T>, TryReserveError> {
    let mut values = Vec::new();
    values.try_reserve_exact(length)?;
    let piece = (BYTES_PER_PAUSE / size_of::<T>().max(1)).max(1);
    while length - values.len() > piece {
        values.resize(values.len() + piece, value.clone());
        pause();
    }
    values.resize(length, value);
    Ok(values)
}
