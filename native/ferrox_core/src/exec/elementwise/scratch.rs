//! Memory for tiles, which a thread keeps from one operation to the next.

use std::cell::Cell;

use crate::exec::simd::CACHE_LINE_BYTES;

thread_local! {
    /// The memory in which a thread computed its last tiles: filling new memory with zeros would
    /// take longer than many an operation.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// `length` rounded up to whole cache lines.
pub(super) fn aligned(length: usize) -> usize {
    length.next_multiple_of(CACHE_LINE_BYTES)
}

/// Calls `run` with at least `length` bytes that start with a cache line, whose contents are
/// unspecified.
pub(super) fn with_scratch<T>(length: usize, run: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut scratch = SCRATCH.take();
    if scratch.len() < length + CACHE_LINE_BYTES {
        scratch.resize(length + CACHE_LINE_BYTES, 0);
    }
    let first = scratch.as_ptr().align_offset(CACHE_LINE_BYTES).min(CACHE_LINE_BYTES);
    let result = run(&mut scratch[first..]);
    SCRATCH.set(scratch);
    result
}

/// Splits `length` bytes off the start of some memory, in whole cache lines.
pub(super) fn take<'b>(memory: &mut &'b mut [u8], length: usize) -> &'b mut [u8] {
    let (taken, rest) = std::mem::take(memory).split_at_mut(aligned(length));
    *memory = rest;
    &mut taken[..length]
}
