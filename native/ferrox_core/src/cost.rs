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

// Indexing: ops/indexed.

/// The cost of reading from anywhere in memory at an index, with the computation of the offset.
/// (`kernels`: gather.)
pub(crate) const GATHER_COST: Cost = 700;

/// The cost of reading a byte of a window at an index. (`kernels`: take.)
pub(crate) const GATHERED_BYTE_COST: Cost = 50;

/// The cost of writing an element anywhere in memory at an index. (`kernels`: indexed_add.)
pub(crate) const SCATTER_COST: Cost = 1_500;

/// Small windows of a larger source are prefetched: the source is in no cache. (`kernels`: gather.)
pub(crate) const MIN_SOURCE_BYTES_TO_PREFETCH: usize = 16 << 20;

/// The cost of an update that `indexed_add` sorts. (`kernels`: indexed_add.)
pub(crate) const SORTED_UPDATE_COST: Cost = 12_000;

/// The number of target elements for each update up to which `indexed_add` keeps a total for every
/// element; for more it sorts the updates. (`kernels`: indexed_add.)
pub(crate) const MAX_TOTALS_PER_UPDATE: usize = 4;

/// The number of totals that stay in the cache of a core: those of larger targets are prefetched,
/// or partitioned for more than two threads. (`kernels`: indexed_add.)
pub(crate) const MAX_CACHED_TOTALS: usize = 1 << 17;

/// The number of totals up to which one thread adds all updates. (`kernels`: indexed_add.)
pub(crate) const MAX_TOTALS_OF_ONE_THREAD: usize = 1 << 14;

/// The number of totals up to which two threads add updates without partitioning them first.
/// (`kernels`: indexed_add.)
pub(crate) const MAX_UNPARTITIONED_TOTALS: usize = 1 << 21;

/// The number of integer sums that are added to others in the time of an update. (`kernels`:
/// indexed_add_u8.)
pub(crate) const SUMS_PER_UPDATE_TIME: usize = 10;

/// The number of totals for updates of another thread's elements, which are discarded: enough that
/// updates in flight seldom meet in one. (`kernels`: indexed_add.)
pub(crate) const DISCARDED_TOTALS: usize = 1024;

// Fourier transforms: ops/fft.

/// The cost of each of an element's log2(n) levels in a transform of length n. (`kernels`: fft.)
pub(crate) const FFT_LEVEL_COST: Cost = 300;

/// The cost of reading, converting and writing an element of a transform. (`kernels`: fft.)
pub(crate) const FFT_ELEMENT_COST: Cost = 5_000;

/// The cost of finding the plan of a transform, and of its memory. (`kernels`: fft.)
pub(crate) const FFT_ROW_COST: Cost = 200_000;

/// The sum of the lengths of cached plans above which the cache is emptied; it bounds the memory of
/// the plans. (No benchmark.)
pub(crate) const MAX_CACHED_FFT_ELEMENTS: usize = 1 << 20;

// Reductions: ops/reduce.

/// The cost of folding or comparing an element, besides its bytes. (`kernels`: sum, max, argmax.)
pub(crate) const REDUCED_ELEMENT_COST: Cost = 20;

/// The cost of each byte of an element that is folded or compared. (`kernels`: sum, max, argmax.)
pub(crate) const REDUCED_BYTE_COST: Cost = 15;

/// The cost of widening an element of 8-bit floats for a fold. (`kernels`: sum.)
pub(crate) const WIDENED_F8_COST: Cost = 140;

/// The cost of widening an f16, bf16 or c64 element for a fold. (`kernels`: sum.)
pub(crate) const WIDENED_ELEMENT_COST: Cost = 40;

/// The cost of searching a row for its extreme, besides its elements. (`kernels`: argmax_of_rows.)
pub(crate) const ARG_ROW_COST: Cost = 20_000;

/// The number of columns below which argmax and argmin transpose columns to rows. (`kernels`:
/// argmax_of_columns.)
pub(crate) const MIN_ARG_COLUMNS: usize = 16;

// Sorting: ops/sort.rs.

/// The cost of sorting a byte of an element by vectors of 64 bytes. (`kernels`: sort, argsort.)
pub(crate) const SIMD_SORT_BYTE_COST_AVX512: Cost = 650;

/// The cost of sorting a byte of an element by vectors of 32 bytes. (`kernels`: sort, argsort.)
pub(crate) const SIMD_SORT_BYTE_COST_AVX2: Cost = 1_700;

/// The cost of sorting an element by radix, besides its bytes. (`kernels`: sort, argsort.)
pub(crate) const RADIX_SORT_ELEMENT_COST: Cost = 2_000;

/// The cost of sorting a byte of an element by radix. (`kernels`: sort, argsort.)
pub(crate) const RADIX_SORT_BYTE_COST: Cost = 2_500;

/// The cost of an element of which `top_k` selects the largest. (`kernels`: top_k.)
pub(crate) const SELECTED_ELEMENT_COST: Cost = 2_000;

/// `top_k` sorts whole rows if `k` is more than this part of their length. (`kernels`: top_k.)
pub(crate) const TOP_K_SORT_RATIO: usize = 4;

/// The least number of candidates that `top_k` collects before it selects the best. (`kernels`:
/// top_k.)
pub(crate) const MIN_TOP_CANDIDATES: usize = 256;

// Other operations: ops/cumulative.rs, ops/shape.rs, ops/create.rs, ops/all_close.rs,
// ops/ternary.rs, ops/window_scatter.rs, ops/window_elements.rs.

/// The cost of an element of a cumulative operation. (`kernels`: cumulative_sum.)
pub(crate) const SCAN_ELEMENT_COST: Cost = 1_500;

/// The number of tensors up to which a concatenation is written by streaming stores. (`kernels`:
/// concatenate.)
pub(crate) const MAX_STREAMED_INPUTS: usize = 16;

/// The cost of an element that is counted. (No benchmark.)
pub const IOTA_ELEMENT_COST: Cost = 400;

/// The cost of comparing a pair of elements within a tolerance. (No benchmark.)
pub(crate) const CLOSE_PAIR_COST: Cost = 1_000;

/// The cost of each byte of an element of `select`. (bench/callbacks.exs: select, clip.)
pub(crate) const SELECTED_BYTE_COST: Cost = 80;

/// The cost of an element of `clip`. (bench/callbacks.exs: select, clip.)
pub(crate) const CLIP_COST: Cost = 300;

/// The cost of finding the index that a window's value is added to. (`kernels`: window_scatter.)
pub(crate) const WINDOW_RESOLVE_COST: Cost = 5_000;

/// The cost of adding the value of a window. (`kernels`: window_scatter.)
pub(crate) const WINDOW_SCATTER_COST: Cost = 2_000;

/// The cost of copying an element of a window. (No benchmark.)
pub(crate) const WINDOW_ELEMENT_COST: Cost = 3_000;

// Unary operations: ops/unary.rs. The costs of its functions are in the table there.

/// The cost of converting an element before or after an operation. (`kernels`: exp.)
pub(crate) const UNARY_CONVERSION_COST: Cost = 200;

/// The cost of a call of a function of the C library. (`kernels`: exp_f64, log_f64.)
pub(crate) const LIBRARY_CALL_COST: Cost = 8_000;

/// The cost of a sine, cosine or tangent of an f32, by vectors of 64 bytes. (`kernels`: sin.)
pub(crate) const F32_TRIGONOMETRIC_COST: Cost = 600;

/// The cost of a sine, cosine or tangent of an f64. (`kernels`: sin_f64.)
pub(crate) const F64_TRIGONOMETRIC_COST: Cost = 10_000;

/// The cost of a function of a complex number. (No benchmark.)
pub(crate) const COMPLEX_FUNCTION_COST: Cost = 40_000;

/// The cost of the magnitude of a complex number. (No benchmark.)
pub(crate) const COMPLEX_ABS_COST: Cost = 3_000;

/// The cost of the phase of a complex number. (No benchmark.)
pub(crate) const PHASE_COST: Cost = 20_000;

/// The cost of testing an element for NaN or infinity. (No benchmark.)
pub(crate) const UNARY_TEST_COST: Cost = 100;

/// The cost of a logical not. (No benchmark.)
pub(crate) const LOGICAL_NOT_COST: Cost = 50;

/// The cost of an operation on a bf16 element that is computed in f32. (`bin/bench --group unary`.)
pub(crate) const BF16_UNARY_COST: Cost = 100;
