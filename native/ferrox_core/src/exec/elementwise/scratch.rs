//! Memory for tiles and blocks, which a thread keeps from one operation to the next.

use std::cell::Cell;
use std::thread::LocalKey;

use crate::exec::simd::CACHE_LINE_BYTES;

/// Memory that a thread keeps: filling new memory with zeros would take longer than many an operation.
pub(crate) type Kept = LocalKey<Cell<Vec<u8>>>;

thread_local! {
    /// The memory in which a thread computed its last tiles.
    static TILES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// `length` rounded up to whole cache lines.
pub(crate) fn aligned(length: usize) -> usize {
    length.next_multiple_of(CACHE_LINE_BYTES)
}

/// [`with_kept`] in the memory for tiles.
pub(super) fn with_scratch<T>(length: usize, run: impl FnOnce(&mut [u8]) -> T) -> T {
    with_kept(&TILES, length, run)
}

/// Calls `run` with at least `length` bytes that start with a cache line, whose contents are
/// unspecified. What runs meanwhile has to use other memory.
pub(crate) fn with_kept<T>(kept: &'static Kept, length: usize, run: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut memory = kept.take();
    if memory.len() < length + CACHE_LINE_BYTES {
        memory.resize(length + CACHE_LINE_BYTES, 0);
    }
    let first = memory.as_ptr().align_offset(CACHE_LINE_BYTES).min(CACHE_LINE_BYTES);
    let result = run(&mut memory[first..]);
    kept.set(memory);
    result
}

/// Splits `length` bytes off the start of some memory, in whole cache lines.
pub(crate) fn take<'b>(memory: &mut &'b mut [u8], length: usize) -> &'b mut [u8] {
    let (taken, rest) = std::mem::take(memory).split_at_mut(aligned(length));
    *memory = rest;
    &mut taken[..length]
}
