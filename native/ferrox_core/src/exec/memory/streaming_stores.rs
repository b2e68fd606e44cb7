//! Writes results in lines of the caches, and large ones past them.
//!
//! Problem: a store reads its line of memory before it changes it, which is for nothing
//! where the whole line is overwritten, and takes the place of what the cache could keep.
//! Technique: what is too large to be found in a cache later on is computed a tile at a
//! time in memory that stays in the first-level cache, and written from there by stores
//! that don't read. Of smaller results a few elements are computed first, so that the vectors
//! after them lie on one line each, wherever the memory begins.

#![allow(unsafe_code, reason = "calls what stores past the caches")]

use crate::exec::simd::CACHE_LINE_BYTES;
use crate::exec::threads::parallel;
use crate::exec::threads::parallel::Cost;

/// Results of fewer bytes are left to the caches.
const LARGE: usize = 1 << 25;

/// Bytes of a tile.
const TILE: usize = 1 << 13;

/// Whether a result is written past the caches.
#[inline]
#[must_use]
pub fn is_large(out: &[u8]) -> bool {
    out.len() >= LARGE
}

/// Less than this is read and written before it would matter where lines begin.
pub const LINED: usize = 1 << 14;

/// How many elements to compute first, so that those of the widest of some memory start with a
/// line: a vector that lies on two takes two accesses. None where they never do.
#[must_use]
pub fn lead<'a>(streams: impl IntoIterator<Item = (&'a [u8], usize)>) -> usize {
    let (mut widest, mut bytes) = (0, 0);
    for (stream, width) in streams {
        if width > widest {
            (widest, bytes) = (width, stream.as_ptr().align_offset(CACHE_LINE_BYTES));
        }
    }
    if bytes < CACHE_LINE_BYTES && bytes.is_multiple_of(widest.max(1)) { bytes / widest.max(1) } else { 0 }
}

/// `parallel::try_fill` for elements that may be computed in any parts, `lead` of them first.
///
/// # Errors
///
/// One of the errors of `fill`.
pub fn try_fill<E: Send>(
    out: &mut [u8],
    size: usize,
    cost: Cost,
    lead: usize,
    fill: impl Fn(usize, &mut [u8]) -> Result<(), E> + Sync,
) -> Result<(), E> {
    if !is_large(out) {
        if lead == 0 || lead >= size || out.len() < LINED {
            return parallel::try_fill(out, size, cost, fill);
        }
        let (head, body) = out.split_at_mut(out.len() / size * lead);
        fill(0, head)?;
        return parallel::try_fill(body, size - lead, cost, |start, part| fill(lead + start, part));
    }
    let width = out.len() / size;
    parallel::try_fill(out, size, cost, |start, part| tiles(part, width, |at, tile| fill(start + at, tile)))
}

/// Fills elements of `width` bytes by calling `fill(first element, tile)`.
fn tiles<E>(
    out: &mut [u8],
    width: usize,
    mut fill: impl FnMut(usize, &mut [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.as_ptr().align_offset(CACHE_LINE_BYTES).min(out.len());
    if !cfg!(target_arch = "x86_64") || !start.is_multiple_of(width) || !TILE.is_multiple_of(width) {
        return fill(0, out);
    }
    let (head, body) = out.split_at_mut(start);
    if !head.is_empty() {
        fill(0, head)?;
    }
    let mut tile = [0; TILE];
    let _fence = Fence;
    body.chunks_mut(TILE).enumerate().try_for_each(|(i, out)| {
        let tile = &mut tile[..out.len()];
        fill((start + i * TILE) / width, tile)?;
        write(tile, out);
        Ok(())
    })
}

/// Copies bytes to a place that starts with a line.
#[cfg(target_arch = "x86_64")]
fn write(from: &[u8], to: &mut [u8]) {
    use std::arch::x86_64 as arch;

    const VECTOR: usize = size_of::<arch::__m128i>();
    let (vectors, rest) = from.as_chunks::<VECTOR>();
    let (slots, last) = to.as_chunks_mut::<VECTOR>();
    assert!(slots.as_ptr().cast::<arch::__m128i>().is_aligned(), "starts with a line");
    for (vector, slot) in vectors.iter().zip(slots) {
        // SAFETY: the instructions are in the baseline, and both arrays have as many bytes;
        // the slots follow one another from an aligned one. `tiles`, which has them borrowed,
        // lets others see them when its `Fence` is dropped, and not before.
        unsafe {
            let vector = arch::_mm_loadu_si128(vector.as_ptr().cast());
            arch::_mm_stream_si128(slot.as_mut_ptr().cast(), vector);
        }
    }
    last.copy_from_slice(rest);
}

#[cfg(not(target_arch = "x86_64"))]
fn write(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

/// Lets others see what has been written, when it is dropped.
struct Fence;

impl Drop for Fence {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instruction is in the baseline.
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
            for (start, length) in [(0, 3 * TILE), (16, TILE + 16), (1, 5000), (48, 16), (0, 0), (60, 20_004)]
            {
                let elements = length / width;
                let mut memory = vec![0xff; start + elements * width + CACHE_LINE_BYTES];
                let first = memory.as_ptr().align_offset(CACHE_LINE_BYTES) + start;
                let count = elements.min((memory.len() - first) / width);
                let out = &mut memory[first..first + count * width];
                let done: Result<(), ()> = tiles(out, width, |at, tile| {
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
        let mut out = vec![0; 3 * TILE];
        let done = tiles(&mut out, 1, |at, _| if at > TILE { Err(at) } else { Ok(()) });
        assert!(done.is_err());
    }
}
