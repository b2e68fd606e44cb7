//! Estimates of work, in picoseconds of one thread, and constants that many operations share.
//!
//! The work of an operation is estimated as the number of elements times the cost of an element.
//! The estimate decides how many threads and which scheduler of the VM an operation uses; it never
//! changes a result.

/// The estimated cost of one element, in picoseconds.
pub type Cost = u64;

/// Estimated work, in picoseconds of one thread.
pub type Work = u64;

/// The work of an operation on `elements` elements.
#[inline]
#[must_use]
pub fn work(elements: usize, cost: Cost) -> Work {
    (elements as Work).saturating_mul(cost)
}

/// The cost of a byte that a memory-bound operation reads or writes, if its data don't fit into the
/// cache of a core. (`kernels`: add_f32.)
pub const MEMORY_BYTE_COST: Cost = 25;

/// The number of elements in a tile, for which a kernel is called once: four buffers of 8-byte
/// elements fill 32 KB. The parts of an elementwise operation that threads share begin at a tile.
/// (`kernels`: add_mixed.)
pub const TILE_ELEMENTS: usize = 1024;
