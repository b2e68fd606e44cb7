//! What work costs, in picoseconds of one thread, and the thresholds that were chosen by measurement.
//!
//! An operation's work is estimated as elements times the cost of an element. The estimate decides
//! on threads and on the VM's scheduler, never on a result.

/// Estimated picoseconds for one element.
pub type Cost = u64;

/// Estimated picoseconds of one thread.
pub type Work = u64;

/// The work of an operation on a number of elements.
#[inline]
#[must_use]
pub fn work(elements: usize, cost: Cost) -> Work {
    (elements as Work).saturating_mul(cost)
}

/// Cost of a byte that an operation which does little else reads or writes, where its data don't
/// fit into the cache of a core. Two threads, whose caches hold twice as much, take a half or a third
/// of the time from there on. (`kernels`: add_f32.)
pub const MEMORY_BYTE_COST: Cost = 25;

/// Elements of a tile, for which a kernel is called once: four buffers of 8-byte elements fill 32 KB.
/// Parts of elementwise operations that threads share start where a tile does. (`kernels`:
/// add_mixed.)
pub const TILE_ELEMENTS: usize = 1024;
