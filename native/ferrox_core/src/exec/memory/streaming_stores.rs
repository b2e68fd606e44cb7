//! Streaming (non-temporal) stores for large results, and cache-line alignment for smaller ones.
//!
//! Problem: a normal store first reads its cache line from memory, which is wasted where the whole
//! line is overwritten, and evicts data that the cache could keep.
//! Technique: a result that is too large to stay in a cache is computed tile by tile in a buffer
//! that stays in the first-level cache, and written from there by non-temporal stores, which don't
//! read (Intel 64 and IA-32 Architectures Optimization Reference Manual, on non-temporal stores).
//! Of smaller results, the elements before the first cache line boundary are computed first, so
//! that no vector after them crosses a boundary.
//!
//! Limits: streaming stores are only used on x86-64, and if the first cache line boundary and the
//! tiles are at whole elements.

#![allow(unsafe_code, reason = "calls what stores past the caches")]

use crate::cost::{Cost, MIN_BYTES_TO_ALIGN, MIN_STREAMED_BYTES};
use crate::exec::simd::CACHE_LINE_BYTES;
use crate::exec::threads::parallel;

/// The size of the buffer for a tile, in bytes.
const STREAMED_TILE_BYTES: usize = 1 << 13;

/// Returns whether a result of some bytes is written by streaming stores.
#[inline]
#[must_use]
pub fn is_large(bytes: usize) -> bool {
    bytes >= MIN_STREAMED_BYTES
}

/// Copies bytes of equal number by streaming stores, all but those of cache lines that belong to others.
pub fn copy(from: &[u8], to: &mut [u8]) {
    let start = to.as_ptr().align_offset(CACHE_LINE_BYTES).min(to.len());
    let lines = (to.len() - start) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
    if !cfg!(target_arch = "x86_64") || lines == 0 {
        return to.copy_from_slice(from);
    }
    let (head, body) = to.split_at_mut(start);
    let (body, tail) = body.split_at_mut(lines);
    head.copy_from_slice(&from[..start]);
    let _fence = Fence;
    store_streaming(&from[start..start + lines], body);
    tail.copy_from_slice(&from[start + lines..]);
}

/// The number of elements to compute first, so that the following elements of the stream with the
/// widest elements begin at a cache line: a vector that crosses a line takes two accesses. Each
/// stream is its bytes and the width of an element. Returns zero if no element begins at a line.
#[must_use]
pub fn elements_before_line<'a>(streams: impl IntoIterator<Item = (&'a [u8], usize)>) -> usize {
    let (mut widest, mut bytes) = (0, 0);
    for (stream, width) in streams {
        if width > widest {
            (widest, bytes) = (width, stream.as_ptr().align_offset(CACHE_LINE_BYTES));
        }
    }
    if bytes < CACHE_LINE_BYTES && bytes.is_multiple_of(widest.max(1)) { bytes / widest.max(1) } else { 0 }
}

/// `parallel::try_fill` for elements that may be computed in parts of any size, the first
/// `head_length` elements before all others.
///
/// # Errors
///
/// One of the errors of `fill`.
pub fn try_fill<E: Send>(
    out: &mut [u8],
    size: usize,
    cost: Cost,
    head_length: usize,
    fill: impl Fn(usize, &mut [u8]) -> Result<(), E> + Sync,
) -> Result<(), E> {
    if !is_large(out.len()) {
        if head_length == 0 || head_length >= size || out.len() < MIN_BYTES_TO_ALIGN {
            return parallel::try_fill(out, size, cost, fill);
        }
        let (head, body) = out.split_at_mut(out.len() / size * head_length);
        fill(0, head)?;
        return parallel::try_fill(body, size - head_length, cost, |start, part| {
            fill(head_length + start, part)
        });
    }
    let width = out.len() / size;
    parallel::try_fill(out, size, cost, |start, part| {
        stream_tiles(part, width, |at, tile| fill(start + at, tile))
    })
}

/// Fills elements of `width` bytes by calling `fill(first element, tile)`, and copies each tile to
/// `out` by streaming stores.
fn stream_tiles<E>(
    out: &mut [u8],
    width: usize,
    mut fill: impl FnMut(usize, &mut [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.as_ptr().align_offset(CACHE_LINE_BYTES).min(out.len());
    if !cfg!(target_arch = "x86_64")
        || !start.is_multiple_of(width)
        || !STREAMED_TILE_BYTES.is_multiple_of(width)
    {
        return fill(0, out);
    }
    let (head, body) = out.split_at_mut(start);
    if !head.is_empty() {
        fill(0, head)?;
    }
    let mut tile = [0; STREAMED_TILE_BYTES];
    let _fence = Fence;
    body.chunks_mut(STREAMED_TILE_BYTES).enumerate().try_for_each(|(i, out)| {
        let tile = &mut tile[..out.len()];
        fill((start + i * STREAMED_TILE_BYTES) / width, tile)?;
        store_streaming(tile, out);
        Ok(())
    })
}

/// Copies bytes to a destination that begins at a cache line.
#[cfg(target_arch = "x86_64")]
fn store_streaming(from: &[u8], to: &mut [u8]) {
    use std::arch::x86_64 as arch;

    const VECTOR: usize = size_of::<arch::__m128i>();
    let (vectors, rest) = from.as_chunks::<VECTOR>();
    let (slots, last) = to.as_chunks_mut::<VECTOR>();
    assert!(slots.as_ptr().cast::<arch::__m128i>().is_aligned(), "starts with a line");
    for (vector, slot) in vectors.iter().zip(slots) {
        // SAFETY: the instructions are in the baseline of x86-64, and both arrays have the size of
        // a vector; the first slot is aligned, and so are the slots after it. `stream_tiles`, which
        // borrows the slots mutably, only returns them after its `Fence` has been dropped.
        unsafe {
            let vector = arch::_mm_loadu_si128(vector.as_ptr().cast());
            arch::_mm_stream_si128(slot.as_mut_ptr().cast(), vector);
        }
    }
    last.copy_from_slice(rest);
}

#[cfg(not(target_arch = "x86_64"))]
fn store_streaming(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

/// Makes the streaming stores visible to other threads when it is dropped.
struct Fence;

impl Drop for Fence {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instruction is in the baseline of x86-64.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_all_from_any_address() {
        for width in [1, 2, 4, 8, 16] {
            for (start, length) in [
                (0, 3 * STREAMED_TILE_BYTES),
                (16, STREAMED_TILE_BYTES + 16),
                (1, 5000),
                (48, 16),
                (0, 0),
                (60, 20_004),
            ] {
                let elements = length / width;
                let mut memory = vec![0xff; start + elements * width + CACHE_LINE_BYTES];
                let first = memory.as_ptr().align_offset(CACHE_LINE_BYTES) + start;
                let count = elements.min((memory.len() - first) / width);
                let out = &mut memory[first..first + count * width];
                let done: Result<(), ()> = stream_tiles(out, width, |at, tile| {
                    for (i, element) in tile.chunks_mut(width).enumerate() {
                        element.fill((at + i) as u8);
                    }
                    Ok(())
                });
                assert_eq!(done, Ok(()));
                for (i, element) in out.chunks(width).enumerate() {
                    assert!(element.iter().all(|&byte| byte == i as u8), "{width} {start} {length} {i}");
                }
            }
        }
    }

    #[test]
    fn stops_at_an_error() {
        let mut out = vec![0; 3 * STREAMED_TILE_BYTES];
        let end = 2 * STREAMED_TILE_BYTES;
        let mut errors = 0;
        // Where nothing is streamed, there is one tile.
        let done = stream_tiles(&mut out, 1, |at, tile| {
            errors += usize::from(at + tile.len() > end);
            if errors > 0 { Err(at) } else { Ok(()) }
        });
        assert!(done.is_err());
        assert_eq!(errors, 1);
    }
}
