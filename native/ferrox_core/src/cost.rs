//! Estimates of work, in picoseconds of one thread, and all constants that were chosen by
//! measurements: costs, thresholds between two algorithms, and sizes of blocks.
//!
//! The work of an operation is estimated as the number of elements times the cost of an element.
//! The estimate decides how many threads and which scheduler of the VM an operation uses.
//!
//! No constant here changes a result: block sizes that decide the order of a sum are in the file of
//! their algorithm, as are the sizes of register tiles and of buffers on the stack. To repeat a
//! measurement, change the constant and run the benchmark in brackets: a prefix of names in
//! benches/kernels.rs (`kernels`) or benches/linalg.rs (`linalg`), or a script for the VM.

use std::time::Duration;

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

// Shared by several modules.

/// The cost of a byte that a memory-bound operation reads or writes, if its data don't fit into the
/// cache of a core. (`kernels`: add_f32.)
pub const MEMORY_BYTE_COST: Cost = 25;

/// The number of elements in a tile, for which a kernel is called once: four buffers of 8-byte
/// elements fill 32 KB. The parts of an elementwise operation that threads share begin at a tile.
/// (`kernels`: add_mixed.)
pub const TILE_ELEMENTS: usize = 1024;

// Threads: exec/threads.

/// The maximum estimated duration of a short call. The VM asks that a call takes at most a
/// millisecond: this is half of it, and estimates tend to be too high, so that the limit also holds
/// on slower machines. Long calls pay for changing to another scheduler and back. (bench/timer.exs;
/// `bin/bench --group unary`.)
pub(crate) const MAX_SHORT_WORK: Work = 500_000_000;

/// The minimum work of each thread that shares an operation, so that two threads share twice this
/// work or more: with less, the calling thread is done sooner alone, since it takes time to wake up
/// another thread. (`kernels`: share_exp_f32, share_erfc_f32: with a value of 1 and of
/// `Work::MAX / 2`, they show from which size on two threads are faster than one.)
pub(crate) const MIN_WORK_PER_THREAD: Work = 27_500_000;

/// The work of a program after which it has a team of threads that wait for its next operations.
/// (`bin/bench --group programs`.)
pub(crate) const MIN_WORK_BEFORE_TEAM: Work = 50_000_000;

/// The work of a program's next operations from which on it has a team from the first of them on. (No
/// benchmark: it was three products of one row with 768 x 768.)
pub(crate) const MIN_WORK_AHEAD_OF_TEAM: Work = 100_000_000;

/// The minimum work of each thread that shares an operation of a program while it waits for it: some
/// times what it takes to hand over the work and the data. (`bin/bench --group programs`: gru,
/// generation.)
pub(crate) const MIN_WORK_PER_TEAM_MEMBER: Work = 3_000_000;

/// How long a member of a team waits for the next operation. (`bin/bench --group programs`: gru,
/// generation.)
pub(crate) const TEAM_WAIT_DURATION: Duration = Duration::from_micros(100);

/// How long a member of a team spins before it lets other threads have its core between two looks.
/// (`bin/bench --group programs`: gru, generation.)
pub(crate) const TEAM_SPIN_DURATION: Duration = Duration::from_micros(10);

/// The number of parts for each thread: enough to balance the load when threads start late.
/// (`kernels`: share_exp_f32, share_erfc_f32.)
pub(crate) const PARTS_PER_THREAD: usize = 4;

/// The maximum work of a part: a time slice, so that a thread can pause between two parts.
/// (bench/timer.exs.)
pub(crate) const MAX_PART_WORK: Work = MIN_TIME_SLICE.as_nanos() as Work * 1_000;

/// Elements that cost less than this are split into parts that begin at a multiple of
/// `TILE_ELEMENTS`; of more expensive elements, a tile may be too much work for one part.
/// (`kernels`: share_exp_f32, share_erfc_f32.)
pub(crate) const MIN_COST_OF_UNALIGNED_PARTS: Cost = 20_000;

/// How long the owner of shared work spins before it sleeps until the other threads are done: about
/// as long as it takes to wake up. (`kernels`: dot_with_vector_f32; `linalg`: qr and eigh, which
/// share hundreds of products, take a tenth longer without spinning.)
pub(crate) const SPIN_DURATION: Duration = Duration::from_micros(50);

/// The maximum number of threads in a pool whose affinity is set. Every thread takes a system call
/// when the caller's core changes, and in a larger pool one late thread costs little.
/// (bench/timer.exs.)
#[cfg(target_os = "linux")]
pub(crate) const MAX_PINNED_THREADS: usize = 8;

/// The shortest time slice: how long a thread computes between two pauses. (bench/timer.exs.)
pub(crate) const MIN_TIME_SLICE: Duration = Duration::from_millis(1);

/// The longest time slice: another thread may have used the last pause for its work while a
/// scheduler is still waiting, and a time slice in proportion to that pause would delay timers. The
/// price is paid where every core runs a loop of Elixir: a product of two 2048 by 2048 matrices
/// takes a tenth longer than without this limit. (bench/timer.exs.)
pub(crate) const MAX_TIME_SLICE: Duration = Duration::from_millis(2);

/// The time slice before the first pause of a call. Shorter calls don't pause: the VM's schedulers
/// run between them anyway, even if there are many. (bench/timer.exs.)
pub(crate) const FIRST_TIME_SLICE: Duration = Duration::from_millis(3);

/// The ratio of a time slice to the pause before it. A scheduler that runs out of work spins for up
/// to half a millisecond before it sleeps: with a ratio of 2, calls of a millisecond or two take up
/// to 30% longer; with a ratio of 16, timers are several times as late. (bench/timer.exs.)
pub(crate) const TIME_SLICE_TO_PAUSE_RATIO: u32 = 8;

/// The number of bytes of a result that are written between pauses (at most twice as many), however
/// cheap the computation is: the system provides new memory page by page at the first write, which
/// takes up to forty times as long where a virtual machine has to ask its host for the pages. A
/// quarter of this size makes casts slower by a tenth. (`kernels`: cast; bench/timer.exs.)
pub(crate) const BYTES_PER_PAUSE: usize = 1 << 20;

/// The work between two reads of the clock, so that reading it takes a thousandth of the time.
/// (bench/timer.exs.)
pub(crate) const WORK_PER_CLOCK_CHECK: Work = 50_000_000;

/// The maximum number of yields in one pause. (bench/timer.exs.)
pub(crate) const MAX_YIELDS_PER_PAUSE: usize = 1000;

/// The number of consecutive unanswered yields that end a pause. The first of them doesn't prove
/// that no thread is waiting: Linux may only have evened out the threads' shares of the core.
/// (bench/timer.exs.)
pub(crate) const MAX_UNANSWERED_YIELDS: usize = 8;

/// A yield is answered if it takes more than this many times as long as the fastest yield.
/// (bench/timer.exs.)
pub(crate) const ANSWERED_YIELD_RATIO: u64 = 4;

/// A thread that keeps the core for longer than this is working, not spinning. (bench/timer.exs.)
pub(crate) const MIN_BUSY_DURATION: Duration = Duration::from_micros(200);

// Memory: exec/memory.

/// The size in bytes of the smallest block that the allocator keeps: the system's allocator reuses
/// smaller blocks itself. (`kernels`: sort_f32, dot_f32, conv_f32; bench/memory.exs.)
pub(crate) const MIN_KEPT_BLOCK_BYTES: usize = 1 << 16;

/// The size in bytes of the largest block that is kept: computations on larger blocks take much
/// longer than the system takes to provide their pages. (As above.)
pub const MAX_KEPT_BLOCK_BYTES: usize = MAX_KEPT_BYTES / 2;

/// The maximum total size of the kept blocks, in bytes. (As above.)
pub(crate) const MAX_KEPT_BYTES: usize = 64 << 20;

/// The maximum number of kept blocks. (As above.)
pub(crate) const MAX_KEPT_BLOCKS: usize = 64;

/// Results of fewer bytes are written by normal stores, larger ones by streaming stores.
/// (`kernels`: add_.)
pub(crate) const MIN_STREAMED_BYTES: usize = 1 << 25;

/// Results of fewer bytes are computed without aligning them to cache lines: it makes no
/// difference. (`kernels`: add_.)
pub(crate) const MIN_BYTES_TO_ALIGN: usize = 1 << 14;

/// The distance in bytes between the element that a sequential loop reads and the memory that it
/// prefetches. Hardware prefetchers do the same, but not past the end of a page. (`kernels`: sum,
/// max.)
pub(crate) const PREFETCH_DISTANCE_BYTES: usize = 1 << 11;

// Conversions: exec/convert.rs, dtype/sub_byte.rs.

/// The cost of converting an element, for each byte of both types. (`kernels`: cast.)
pub(crate) const CAST_BYTE_COST: Cost = 40;

/// The number of elements that are converted by vectors, and one by one if one of them is a special
/// case. (`kernels`: cast.)
pub(crate) const CAST_CHUNK_ELEMENTS: usize = 256;

/// The cost of packing or unpacking an element of 2 or 4 bits. (No benchmark; `kernels`: cast is
/// the nearest.)
pub(crate) const PACKED_ELEMENT_COST: Cost = 2_500;

// Copies: exec/copy.

/// The cost of each byte of a result: the system provides the memory of a large one page by page.
/// (test/ferrox/scheduling_test.exs.)
pub const RESULT_BYTE_COST: Cost = 100;

/// Results of programs with fewer bytes than this are in memory that the system has provided before.
/// (test/ferrox/scheduling_test.exs.)
pub(crate) const MIN_NEW_MEMORY_BYTES: usize = 1 << 14;

/// The cost of each byte of a value that is copied to new memory without other work. (As above.)
pub const COPIED_BYTE_COST: Cost = 3 * RESULT_BYTE_COST;

/// The cost of an axis of a tensor that has many. (test/ferrox/scheduling_test.exs.)
const AXIS_COST: Cost = 100_000;

/// The number of axes whose cost doesn't count.
const MAX_FEW_AXES: usize = 64;

/// The work of looking at the axes of a shape, where there are many.
#[inline(always)]
#[must_use]
pub fn axes_work(shape: &[usize]) -> Work {
    if shape.len() > MAX_FEW_AXES { work(shape.len(), AXIS_COST) } else { 0 }
}

/// The cost of an element of a tensor that is broadcast to short rows, besides the operation.
/// (test/ferrox/scheduling_test.exs.)
pub const SHORT_ROW_ELEMENT_COST: Cost = 3_000;

/// Rows of fewer elements are short for estimates of broadcasts and moves.
/// (test/ferrox/scheduling_test.exs.)
pub(crate) const MIN_LONG_ROW_ELEMENTS: usize = 32;

/// The cost of an element that is far from the elements before and after it. (`kernels`: transpose,
/// slice_with_strides.)
pub const FAR_ELEMENT_COST: Cost = 600;

/// The cost of copying an element of a transposed plane. (`kernels`: transpose.)
pub(crate) const TRANSPOSED_ELEMENT_COST: Cost = 250;

/// Layouts of at most this many elements are copied without collapsing their axes first.
/// (`kernels`: transpose, slice_with_strides, reverse.)
pub(crate) const MAX_UNCOLLAPSED_SIZE: usize = 256;

/// `transpose_planes` transposes tensors of at most this many bytes without making a layout.
/// (`kernels`: transpose.)
pub(crate) const MAX_DIRECT_TRANSPOSE_BYTES: usize = 1024;

/// Planes of fewer elements are copied row by row instead of being transposed. (`kernels`:
/// transpose, slice_with_strides.)
pub(crate) const MIN_PLANE_ELEMENTS: usize = 32;

/// The maximum size in bytes of a plane that is transposed directly to the result. A larger plane
/// is transposed in strips through a buffer, so that its rows are written in longer runs than
/// registers hold. (`kernels`: transpose.)
pub(crate) const MAX_DIRECT_PLANE_BYTES: usize = 1 << 15;

/// The number of bytes in a column of a strip, which are read in one run. (`kernels`: transpose.)
pub(crate) const STRIP_COLUMN_BYTES: usize = 128;

/// The number of bytes in a row of a strip, which are written in one run. (`kernels`: transpose.)
pub(crate) const STRIP_ROW_BYTES: usize = 1024;

/// The number of rows, and of columns, of the tiles in which planes are transposed without SIMD
/// vectors. (`kernels`: transpose.)
pub(crate) const TRANSPOSE_TILE_SIDE: usize = 64;

// Elementwise operations: exec/elementwise.

/// The maximum period, in elements, of a broadcast operand that is copied and converted only once.
/// (`kernels`: add_row_f32.)
pub(crate) const MAX_PERIOD_ELEMENTS: usize = 8192;

/// Rows of a strided operand with at least this many elements are passed to the kernel one by one;
/// shorter rows are gathered into tiles. (`kernels`: add_column_f32.)
pub(crate) const MIN_UNGATHERED_ROW_ELEMENTS: usize = 128;

// Products: exec/gemm.

/// The cost of a multiplication and addition of f32 in a blocked product, with vectors of 64 bytes.
/// (`kernels`: dot.)
pub(crate) const BLOCKED_F32_PRODUCT_COST: Cost = 16;

/// The cost of a multiplication and addition in an indirect product, for each byte of an element,
/// with vectors of 64 bytes. (`kernels`: conv.)
pub(crate) const INDIRECT_PRODUCT_BYTE_COST: Cost = 3;

/// The cost of multiplying and adding eight bytes in order. (`kernels`: dot.)
pub(crate) const ORDERED_WORD_COST: Cost = 60;

/// The cost of reading and multiplying a byte of a complex matrix, in a product with a vector.
/// (test/ferrox/scheduling_test.exs.)
pub(crate) const COMPLEX_GEMV_BYTE_COST: Cost = 100;

/// The cost of writing a byte of a complex element of a blocked product, whose real and imaginary parts
/// are multiplied separately. (test/ferrox/scheduling_test.exs.)
pub(crate) const SEPARATED_BYTE_COST: Cost = 500;

/// The cost of a row of a result that is added up in order, in addition to its products.
/// (`kernels`: dot.)
pub(crate) const ORDERED_ROW_COST: Cost = 2_000;

/// The cost of reading and multiplying one byte of a matrix, in a product with a vector.
/// (`kernels`: dot_with_vector, vector_with_matrix.)
pub(crate) const GEMV_BYTE_COST: Cost = 20;

/// The cost of converting and multiplying an element of a narrower matrix. (`kernels`: dot_bf16,
/// dot_with_vector_bf16.)
pub(crate) const MIXED_ELEMENT_COST: Cost = 100;

/// The cost of writing an element of the result. (`kernels`: dot_of_tall_f32, conv_f32.)
pub(crate) const PRODUCT_WRITE_COST: Cost = 200;

/// The cost of an element of an operand that may have to be copied first. (`kernels`: dot.)
pub(crate) const OPERAND_MOVE_COST: Cost = 100;

/// The cost of an element of an operand that is converted first. (`kernels`: dot.)
pub(crate) const OPERAND_CONVERT_COST: Cost = 500;

/// The cost of each matrix of a batch, in addition to its elements. (`kernels`: dot_of_batches.)
pub(crate) const BATCH_MATRIX_COST: Cost = 100_000;

/// The maximum work of a part of a blocked product over the steps of one call of gemm, so that a
/// thread can pause between two parts. Every part packs its rows and columns of both operands, so
/// that fewer parts are faster: the parts of a product of 2048 rows and columns take 5% longer than
/// the whole product, parts of half the size 8% longer. (`kernels`: dot_f32; bench/timer.exs.)
pub(crate) const MAX_GEMM_PART_WORK: Work = 1_500_000_000;

/// A part with more columns than rows is split by rows only if it has more than this many rows:
/// gemm packs a larger share of the columns. (`kernels`: dot.)
pub(crate) const MIN_GEMM_ROWS_TO_SPLIT: usize = 128;

/// The maximum number of columns of a product with a vector that are added up together, which is
/// the length of the stretch that is read of each row. (`kernels`: vector_with_matrix.)
pub(crate) const GEMV_BLOCK_COLUMNS: usize = 2048;

/// The number of columns of the result that a sum of scaled rows adds up in one pass over the rows,
/// such that they stay in the first-level cache. (`kernels`: dot, vector_with_matrix.)
pub(crate) const COLUMNS_PER_PASS: usize = 1024;

/// The number of rows of the left matrix for which the right matrix of integers is packed once, so
/// that packing takes a small part of the time. (`kernels`: dot_s32, dot_of_tall_s8.)
pub(crate) const INTEGER_ROWS_PER_PACKING: usize = 512;

/// The maximum number of rows of the right matrix of integers in a packed strip. (`kernels`:
/// dot_s32, dot_of_tall_s8.)
#[cfg(target_arch = "x86_64")]
pub(crate) const INTEGER_STRIP_ROWS: usize = 256;

/// The number of steps of the sums of an indirect product that are added up for all rows before the
/// next steps. (`kernels`: conv.)
pub(crate) const INDIRECT_BLOCK_STEPS: usize = 256;

/// The number of elements of a narrower matrix that are converted at a time, as whole rows: their
/// f32 fill half of a first-level cache. A longer row is converted as a whole. (`kernels`:
/// dot_with_vector_bf16.)
pub(crate) const MAX_CONVERTED_ELEMENTS: usize = 4096;

/// The minimum number of elements in the right matrix for which a small product of f32 widens the
/// rows of the left matrix only once. (`kernels`: dot.)
pub(crate) const MIN_RIGHT_ELEMENTS_TO_WIDEN: usize = 64;

// Reductions: exec/reduce.

/// The size in bytes from which elements are prefetched for folds of columns: they come from
/// memory, and the rows are too far apart for hardware prefetchers. (`kernels`: sum_of_columns,
/// max_of_columns.)
pub(crate) const MIN_BYTES_FOR_COLUMN_PREFETCH: usize = 1 << 20;

/// The smallest number of elements in a short row that is folded as a column. (`kernels`:
/// sum_of_short_rows, max_of_short_rows.)
pub(crate) const MIN_TRANSPOSED_ROW_ELEMENTS: usize = 16;

/// The smallest number of such rows. (`kernels`: sum_of_short_rows.)
pub(crate) const MIN_TRANSPOSED_ROWS: usize = 16;

/// The smallest number of elements in a row whose minimum or maximum is found by integer keys;
/// shorter rows are folded from left to right. (`kernels`: max_of_rows.)
pub(crate) const MIN_ROW_ELEMENTS_FOR_MINMAX_KEYS: usize = 64;

/// The number of elements of a row whose minimum or maximum is found at once; its index is then
/// searched in the best chunk only. (`kernels`: argmax.)
pub(crate) const ARGMINMAX_CHUNK_ELEMENTS: usize = 4096;

/// The number of elements that are compared at once with the value whose index is searched.
/// (`kernels`: argmax.)
pub(crate) const INDEX_SEARCH_BLOCK_ELEMENTS: usize = 64;

/// The smallest number of elements in a row of f32 or f64 whose index is found in one pass.
/// (`kernels`: argmax_of_rows.)
#[cfg(target_arch = "x86_64")]
pub(crate) const MIN_ROW_ELEMENTS_FOR_ONE_PASS: usize = 32;

/// The smallest row, in vectors of 64 bytes, whose index is found with such vectors; shorter rows
/// take vectors of 32 bytes. (`kernels`: argmax_of_rows_f32, argmax_of_rows_f64.)
#[cfg(target_arch = "x86_64")]
pub(crate) const MIN_VECTORS_FOR_AVX512_ARGMINMAX: usize = 8;

// Sorts: exec/sort.

/// The cost of moving a key of a radix sort or a merge. (`kernels`: sort, argsort.)
pub(crate) const KEY_MOVE_COST: Cost = 2_000;

/// The smallest row, in keys per byte that the keys are sorted by, that is sorted by radix; shorter
/// rows are sorted by comparisons. (`kernels`: sort, argsort.)
pub(crate) const MIN_KEYS_PER_BYTE_FOR_RADIX_SORT: usize = 100;

/// The number of keys, or elements of a row, that are handled before a thread yields: they take a
/// fraction of a millisecond. (`kernels`: sort, top_k; bench/timer.exs.)
pub(crate) const ELEMENTS_PER_YIELD: usize = 1 << 16;

/// The smallest number of keys of a part when a row is divided to be sorted, or merged, in
/// parallel. (`kernels`: sort, argsort.)
pub(crate) const MIN_KEYS_PER_MERGE: usize = 1 << 14;

/// The smallest number of keys that a quicksort hands to another thread. (`kernels`: sort.)
#[cfg(target_arch = "x86_64")]
pub(crate) const MIN_KEYS_FOR_TASK: usize = 1 << 13;

/// The most bytes of keys that a quicksort partitions into a buffer of the same size; longer rows
/// are partitioned in place. So keys and buffer stay in the cache. (`kernels`: sort.)
#[cfg(target_arch = "x86_64")]
pub(crate) const MAX_BUFFERED_BYTES: usize = 1 << 19;

/// The number of blocks after which a partition in place yields: they take a fraction of a
/// millisecond. (`kernels`: sort; bench/timer.exs.)
#[cfg(target_arch = "x86_64")]
pub(crate) const PARTITION_BLOCKS_PER_YIELD: usize = 1 << 12;

// Windows: exec/window.rs, ops/window.rs, ops/window_elements.rs, ops/window_scatter.rs.

/// The cost of folding a byte. (`kernels`: window.)
pub(crate) const FOLD_BYTE_COST: Cost = 12;

/// The number of folds that an element takes in long windows, whatever their length. (`kernels`:
/// window.)
pub(crate) const LONG_WINDOW_FOLDS: Cost = 12;

/// The factor by which a fold costs more in windows that are two elements apart. (`kernels`: window.)
pub(crate) const STRIDE_2_FOLD_FACTOR: Cost = 2;

/// The factor by which a fold costs more in windows that are further apart. (`kernels`: window.)
pub(crate) const STRIDED_FOLD_FACTOR: Cost = 4;

/// The cost of copying a byte of the input of windows. (`kernels`: window.)
pub(crate) const WINDOW_LOAD_BYTE_COST: Cost = 5;

/// The cost of converting an element of the input of windows. (`kernels`: window.)
pub(crate) const WINDOW_CONVERT_COST: Cost = 100;

/// The cost of copying an element of a window to the result. (`kernels`: window.)
pub(crate) const WINDOW_ELEMENT_COST: Cost = 3_000;

/// The cost of a window that is folded, besides its elements. (test/ferrox/scheduling_test.exs.)
pub(crate) const FOLDED_WINDOW_COST: Cost = 1_000;

/// The cost of a row of a window that is copied, besides its elements. (test/ferrox/scheduling_test.exs.)
pub(crate) const WINDOW_ROW_COST: Cost = 20_000;

/// The cost of finding the index that a window's value is added to. (`kernels`: window_scatter.)
pub(crate) const WINDOW_RESOLVE_COST: Cost = 5_000;

/// The cost of adding the value of a window. (`kernels`: window_scatter.)
pub(crate) const WINDOW_SCATTER_COST: Cost = 2_000;

/// The cost of comparing an element of a window with the one that is chosen so far. (`kernels`:
/// window_scatter.)
pub(crate) const WINDOW_SCAN_ELEMENT_COST: Cost = 1_000;

/// The number of elements of a result of windows that are folded at a time, so that they stay in
/// the first-level cache. (`kernels`: window.)
pub(crate) const WINDOW_TILE_LANES: usize = 1024;

/// The number of lanes in a block of folds along several axes, so that they stay in the
/// second-level cache. (`kernels`: window.)
pub(crate) const LANES_PER_WINDOW_BLOCK: usize = 1 << 15;

// Indexing: ops/indexed.

/// The cost of reading from anywhere in memory at an index, with the computation of the offset.
/// (`kernels`: gather.)
pub(crate) const GATHER_COST: Cost = 700;

/// The cost of a run of adjacent elements that are taken along an axis, besides the elements.
/// (test/ferrox/scheduling_test.exs.)
pub(crate) const TAKEN_RUN_COST: Cost = 20_000;

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

/// The number of totals up to which one thread adds all rows of updates.
pub(crate) const MIN_ROW_TOTALS_TO_SHARE: usize = 1 << 10;

/// The number of elements in a row of updates from which threads share rows whose totals stay in the cache:
/// each reads all rows, and which of them are in its share can't be predicted, which takes the time of some
/// elements. (`kernels`: indexed_add_rows.)
pub(crate) const MIN_ROW_ELEMENTS_TO_SHARE: usize = 32;

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

/// The cost of folding a row or a column, besides its elements. (test/ferrox/scheduling_test.exs.)
pub(crate) const REDUCED_ROW_COST: Cost = 1_500;

/// The cost of moving a byte of an element of a view before it is folded. (test/ferrox/scheduling_test.exs.)
pub(crate) const MOVED_REDUCED_BYTE_COST: Cost = 600;

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

/// How much longer it takes to sort indices by elements of eight bytes than these: an entry of eight bytes
/// holds the index and a part of the element, and ties are sorted again. (test/ferrox/scheduling_test.exs:
/// argsort of f64.)
pub(crate) const PREFIX_ARGSORT_FACTOR: Work = 3;

/// The cost of sorting a row, besides its elements. (test/ferrox/scheduling_test.exs.)
pub(crate) const SORTED_ROW_COST: Cost = 60_000;

/// The cost of an element of which `top_k` selects the largest. (`kernels`: top_k.)
pub(crate) const SELECTED_ELEMENT_COST: Cost = 2_000;

/// `top_k` sorts whole rows if `k` is more than this part of their length. (`kernels`: top_k.)
pub(crate) const TOP_K_SORT_RATIO: usize = 4;

/// The least number of candidates that `top_k` collects before it selects the best. (`kernels`:
/// top_k.)
pub(crate) const MIN_TOP_CANDIDATES: usize = 256;

// Other operations: ops/cumulative.rs, ops/shape.rs, ops/create.rs, ops/all_close.rs,
// ops/ternary.rs.

/// The cost of an element of a cumulative operation. (`kernels`: cumulative_sum.)
pub(crate) const SCAN_ELEMENT_COST: Cost = 1_500;

/// The number of tensors up to which a concatenation is written by streaming stores. (`kernels`:
/// concatenate.)
pub(crate) const MAX_STREAMED_INPUTS: usize = 16;

/// The cost of an element that is counted. (test/ferrox/scheduling_test.exs.)
pub const IOTA_ELEMENT_COST: Cost = 1_000;

/// The cost of a one on a diagonal. (test/ferrox/scheduling_test.exs.)
pub(crate) const DIAGONAL_ELEMENT_COST: Cost = 6_000;

/// The cost of a row of a tensor that is padded, besides its elements. (test/ferrox/scheduling_test.exs.)
pub(crate) const PADDED_ROW_COST: Cost = 25_000;

/// The cost of a row of a tensor in a concatenation, besides its elements.
/// (test/ferrox/scheduling_test.exs.)
pub(crate) const CONCATENATED_ROW_COST: Cost = 3_000;

/// The cost of a tensor in a concatenation, besides its elements. (test/ferrox/scheduling_test.exs.)
pub(crate) const CONCATENATED_TENSOR_COST: Cost = 350_000;

/// The cost of an axis of a tensor whose axes are moved. (test/ferrox/scheduling_test.exs.)
pub(crate) const MOVED_AXIS_COST: Cost = 30_000;

/// The cost of comparing a pair of real floats within a tolerance. (test/ferrox/scheduling_test.exs.)
pub(crate) const CLOSE_PAIR_COST: Cost = 1_000;

/// The cost of comparing a pair of integers, whose distance is exact, or of complex numbers within a
/// tolerance. (test/ferrox/scheduling_test.exs.)
pub(crate) const CLOSE_OTHER_PAIR_COST: Cost = 12_000;

/// The cost of each byte of an element of `select`. (bench/callbacks.exs: select, clip.)
pub(crate) const SELECTED_BYTE_COST: Cost = 80;

/// The cost of an element of `clip`. (bench/callbacks.exs: select, clip.)
pub(crate) const CLIP_COST: Cost = 300;

// Convolutions: ops/conv.rs, ops/conv/planes.rs.

/// The cost of reading an element of the input or of a filter. (`kernels`: conv.)
pub(crate) const CONV_READ_COST: Cost = 200;

/// The cost of an image's channel in addition to its elements. (test/ferrox/scheduling_test.exs.)
pub(crate) const CONV_CHANNEL_COST: Cost = 500_000;

/// The cost of converting an element of the input or of a filter. (`kernels`: conv.)
pub(crate) const CONV_CONVERT_COST: Cost = 2_000;

/// The cost of writing an element of a padded plane. (`kernels`: conv.)
pub(crate) const PADDED_ELEMENT_COST: Cost = 500;

/// The cost of writing an element of a patch. (`kernels`: conv.)
pub(crate) const PATCH_ELEMENT_COST: Cost = 100;

/// The cost of finding the elements of a patch that are copied at a time: those of a tap or a
/// position along the last axis. (`kernels`: conv_kernel_gradient_f32.)
pub(crate) const PATCH_SEGMENT_COST: Cost = 10_000;

/// The cost of a product of a convolution without patches, for each byte of an element. (`kernels`:
/// conv_depthwise_f32.)
pub(crate) const DIRECT_CONV_BYTE_COST: Cost = 30;

/// The cost of a product of a patch of integers, for each byte of an element. (`kernels`: conv.)
pub(crate) const INTEGER_PATCH_BYTE_COST: Cost = 12;

/// The cost of a product of a patch of floats, for each byte of an element. (`kernels`: conv.)
pub(crate) const FLOAT_PATCH_BYTE_COST: Cost = 6;

/// The most rows of the result in a task of an indirect product, whose partial sums of a few
/// columns are kept in memory. (`kernels`: conv.)
pub(crate) const MAX_CONV_ROWS_PER_TASK: usize = 512;

// Binary operations: ops/binary.rs. Costs are in addition to those of reading and writing.

/// The cost of converting the operands of an element, for each byte of the widest type. (`kernels`:
/// add_mixed.)
pub(crate) const OPERAND_CONVERT_BYTE_COST: Cost = 50;

/// The cost of a power or an arctangent of f32 and of narrower floats. (`kernels`: pow_f32.)
pub(crate) const F32_POW_COST: Cost = 2_500;

/// The cost of a power or an arctangent of f64. (`kernels`: pow_f64.)
pub(crate) const F64_POW_COST: Cost = 4_000;

/// The cost of a power of c64 whose operands are exact in f32. (No benchmark.)
pub(crate) const C64_POW_COST: Cost = 6_000;

/// The cost of any other power of complex numbers. (No benchmark.)
pub(crate) const COMPLEX_POW_COST: Cost = 100_000;

/// The cost of a power of integers, for each byte. (No benchmark.)
pub(crate) const INTEGER_POW_BYTE_COST: Cost = 150;

/// The cost of a remainder of floats. (`kernels`: remainder_f32.)
pub(crate) const FLOAT_REMAINDER_COST: Cost = 2_000;

/// The cost of a quotient or a remainder of integers. (No benchmark.)
pub(crate) const INTEGER_DIVISION_COST: Cost = 1_000;

/// The cost of a product of complex numbers, with vectors of 64 bytes. (`kernels`: multiply_c64.)
pub(crate) const COMPLEX_MULTIPLY_COST: Cost = 100;

/// The cost of a quotient of complex numbers, with vectors of 64 bytes. (`kernels`: divide_c64.)
pub(crate) const COMPLEX_DIVIDE_COST: Cost = 400;

// Functions: ops/math.

/// The cost of a function of f16 or bf16 that is looked up. (`kernels`: tanh_bf16.)
pub(crate) const F16_LOOKUP_COST: Cost = 300;

/// The cost of an exponential of f64. (`kernels`: exp_f64.)
pub(crate) const F64_EXP_COST: Cost = 700;

/// The cost of a logarithm of f64. (`kernels`: log_f64.)
pub(crate) const F64_LOG_COST: Cost = 900;

/// The cost of a sine or cosine of f64. (`kernels`: sin_f64.)
pub(crate) const F64_SINE_COST: Cost = 2_000;

/// For fewer elements, functions of f64 are faster one by one than in chunks. (`kernels`: exp_f64,
/// log_f64, sin_f64, pow_f64.)
pub(crate) const MIN_ELEMENTS_FOR_F64_CHUNKS: usize = 32;

// Linear algebra: ops/linalg.

/// The cost of a multiplication and an addition in a factorization, with vectors of 64 bytes.
/// (`linalg`.)
pub(crate) const FACTORIZATION_PRODUCT_COST: Cost = 16;

/// The cost of an element that is only copied, converted and divided. (`linalg`: cholesky, solve.)
pub(crate) const LINALG_ELEMENT_COST: Cost = 5_000;

/// The cost of an element of a QR decomposition besides its multiplications. (`linalg`: qr.)
pub(crate) const QR_ELEMENT_COST: Cost = 20_000;

/// The cost of an element of an eigenvalue decomposition besides its multiplications. (`linalg`:
/// eigh.)
pub(crate) const EIGH_ELEMENT_COST: Cost = 105_000;

/// The cost of an element of a singular value decomposition besides its multiplications. (`linalg`:
/// svd.)
pub(crate) const SVD_ELEMENT_COST: Cost = 140_000;

/// The cost of each matrix of a batch, besides its elements: even the smallest matrix takes memory
/// from the heap. (`linalg`: cholesky of 8 rows.)
pub(crate) const LINALG_MATRIX_COST: Cost = 500_000;

/// The cost of multiplying an element of a matrix and adding it to another, at most: in algorithms
/// that pass over the whole matrix for each row or column. (`linalg`: eigh, svd; bench/timer.exs.)
pub(crate) const MATRIX_PASS_ELEMENT_COST: Cost = 500;

/// The cost of a term of the secular equation in all steps for a root: about six divisions.
/// (`linalg`: eigh, svd.)
pub(crate) const SECULAR_TERM_COST: Cost = 5_000;

/// The cost of rotating a pair of elements. (`linalg`: eigh, svd.)
pub(crate) const ROTATED_PAIR_COST: Cost = 100;

/// The number of columns of rotated rows that are transposed at once: one cache line of f64.
/// (`linalg`: eigh, svd.)
pub(crate) const ROTATED_COLUMNS_PER_TRANSPOSE: usize = 8;

/// The number of rotations per column that are queued before they are applied, so many that the
/// cost of reading and writing the matrix is small. (`linalg`: eigh, svd.)
pub(crate) const QUEUED_ROTATIONS_PER_COLUMN: usize = 128;

// Unary operations: ops/unary.rs. The costs of its functions are in the table there.

/// The cost of converting an element before or after an operation. (`kernels`: exp.)
pub(crate) const UNARY_CONVERSION_COST: Cost = 200;

/// The cost of a sine, cosine or tangent of an f32, by vectors of 64 bytes. (`kernels`: sin.)
pub(crate) const F32_TRIGONOMETRIC_COST: Cost = 600;

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

/// Picoseconds of an instruction of a program besides the work of its kernel. (`bin/bench --group
/// programs`: scalar loop.)
pub(crate) const INSTRUCTION_WORK: Work = 50_000;

/// The work of trips of a loop that are computed at once for a block of rows, so that the loop is asked
/// often enough whether it may go on. (`bin/bench --group programs`: mandelbrot.)
pub(crate) const TRIPS_AT_ONCE_WORK: Work = 4_000_000_000;

/// The least number of trips that are computed at once: so often less are the arrays of a loop read and
/// written. (`bin/bench --group programs`: mandelbrot.)
pub(crate) const MIN_TRIPS_AT_ONCE: usize = 4;

/// The greatest number of trips that are computed at once. (`bin/bench --group programs`: mandelbrot.)
pub(crate) const MAX_TRIPS_AT_ONCE: usize = 256;

/// The maximum number of elements of an array of which each has a register: a kernel computes more of them in
/// less time.
pub(crate) const MAX_ELEMENTS_IN_REGISTERS: usize = 4;

/// The maximum number of bytes of all small arrays of a loop: with the operands around, they must stay in a
/// cache.
pub(crate) const MAX_SMALL_LOOP_BYTES: usize = 1 << 17;

/// The maximum work of an operation of a loop over small values: for longer ones, which threads could share,
/// it doesn't matter how they are called. (`bin/bench --group programs`: GRU.)
pub(crate) const MAX_SMALL_LOOP_KERNEL_WORK: Work = 5_000_000;

/// Picoseconds of an instruction on registers. (`bin/bench --group programs`: scalar loop.)
pub(crate) const SMALL_LOOP_CODE_WORK: Work = 2_000;

/// The number of bytes of a result, or of the operand of a fold, from which operations of a program are
/// computed together: smaller tensors stay in the first-level cache anyway. (`bin/bench --group
/// programs`: chain.)
pub(crate) const MIN_CLUSTER_BYTES: usize = 1 << 14;

/// The same for operations that one call of machine code computes together, without blocks and buffers. (No benchmark:
/// steps of an ordinary differential equation of 400 numbers, and of a descent along a gradient.)
pub(crate) const MIN_SMALL_CLUSTER_BYTES: usize = 1 << 10;

/// The number of bytes of a cluster's values from which an operand may be repeated after as many rows:
/// blocks of rows end there. (`bin/bench --group programs`: resnet block, causal attention.)
pub(crate) const MIN_CLUSTER_PERIOD_BYTES: usize = 1 << 13;

/// The number of bytes from which on a result of a cluster takes the memory of an operand that nothing reads
/// later: its rows are computed elsewhere and copied, block by block. (No benchmark: this saves memory.)
pub(crate) const MIN_OVERWRITTEN_BYTES: usize = 1 << 16;

/// The number of bytes of adjacent rows from which on a vector kernel reads them where they are, in place of a
/// copy: each run takes a call. (No benchmark: runs of 512 bytes of one input were slower, of 1,016 of five
/// inputs faster.)
pub(crate) const MIN_CLUSTER_RUN_BYTES: usize = 768;

/// The minimum number of adjacent bytes, in the mean, that a cluster copies from each part of an assembled value. (No
/// benchmark: steps of the heat equation and of an Ising model, whose grids are moved by one place.)
pub(crate) const MIN_ASSEMBLED_RUN_BYTES: usize = 128;

/// The maximum number of bytes that an operation of a program moves by loops that were made with the
/// program, and the maximum number of stretches of them: more are moved by kernels that share them among
/// threads, or go by tiles. (`bin/bench --group programs`: GRU, generation.)
pub(crate) const MAX_PREPARED_MOVE_BYTES: usize = 1 << 14;
/// See [`MAX_PREPARED_MOVE_BYTES`].
pub(crate) const MAX_PREPARED_MOVE_RUNS: usize = 256;

/// The maximum number of bytes of an operand whose elements are repeated once before a cluster, which reads it in the
/// first-level or second-level cache. (No benchmark: bilinear interpolation of an image of three channels took a
/// third of the time.)
pub(crate) const MAX_REPEATED_BYTES: usize = 1 << 16;

/// How often such an operand is read at least.
pub(crate) const MIN_REPETITIONS: usize = 8;

/// The maximum number of bytes of a value that a program keeps as a literal because it depends on no
/// argument.
pub(crate) const MAX_CONSTANT_BYTES: usize = 1 << 12;

/// The maximum number of bytes of a loop's values that its gradient keeps, all trips together. With more,
/// trips are computed again: what is kept of a large loop should still fit into a small computer.
pub(crate) const MAX_LOOP_HISTORY_BYTES: usize = 1 << 28;

/// The maximum number of bytes in a row of a cluster: several rows must stay in a cache. (`bin/bench
/// --group programs`: softmax.)
pub(crate) const MAX_CLUSTER_ROW_BYTES: usize = 1 << 16;

/// The minimum number of vectors of each call of a vector kernel that is called for some rows after the
/// other, where rows are whole vectors, and where the last elements don't fill one: these are copied. A call
/// takes the time of a few vectors. (`bin/bench --group programs`: layer norm, k-means step.)
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) const MIN_KERNEL_VECTORS: usize = 8;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) const MIN_UNEVEN_KERNEL_VECTORS: usize = 64;

/// The cost of an instruction of a vector kernel for a byte of an element, and that of a division or a square root. (No
/// benchmark: `explain` with times, of chains of additions and of divisions.)
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) const VECTOR_BYTE_COST: Cost = 8;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) const VECTOR_DIVISION_BYTE_COST: Cost = 60;

/// The cost of a byte that a vector kernel reads or writes, if all that the cluster reads and writes fits into the cache
/// of a core, and the number of bytes up to which it does. (No benchmark: shortest paths between 128 points by Floyd and
/// Warshall, for which a second thread cost more than it saved.)
pub(crate) const CACHED_BYTE_COST: Cost = 10;
pub(crate) const MAX_CACHED_CLUSTER_BYTES: usize = 1 << 19;

/// The number of bytes in a block of rows of all values of a cluster: those that an operation reads and
/// writes stay in the first-level cache, the others in the second-level cache. (`bin/bench --group
/// programs`: adam, layer norm, softmax, mandelbrot.)
pub(crate) const CLUSTER_BLOCK_BYTES: usize = 1 << 16;

/// The number of blocks of a fold of rows from which a cluster computes it: threads share its rows by whole
/// blocks, of which each must get about as many.
pub(crate) const MIN_CLUSTER_FOLD_BLOCKS: usize = 4;

/// The number of blocks of a cluster that a thread computes at a time. (`bin/bench --group programs`:
/// adam.)
pub(crate) const CLUSTER_BLOCKS_PER_PART: usize = 4;

/// The number of bytes of a product's rows that a cluster computes at a time, with others from them: they stay in
/// the second-level cache. (`bin/bench --group programs`: causal attention.)
pub(crate) const JOINED_PRODUCT_BLOCK_BYTES: usize = 1 << 18;

/// The minimum number of rows of a product that a cluster computes at a time, of which it computes multiples: a
/// matrix is packed for each of these blocks.
pub(crate) const MIN_JOINED_PRODUCT_ROWS: usize = 64;

/// The number of blocks of rows that a product has at least, if these are not too small: threads share them.
/// (`bin/bench --group programs`: k-means step.)
pub(crate) const MIN_JOINED_PRODUCT_BLOCKS: usize = 16;

/// The minimum number of bytes of a product that a cluster computes by rows, which would be written to memory
/// otherwise. (`bin/bench --group programs`: attention.)
pub(crate) const MIN_JOINED_PRODUCT_BYTES: usize = 1 << 18;

/// The maximum number of elements of a matrix that is packed for a block of a cluster's rows, for each element of
/// the block that need not be written to memory.
pub(crate) const MAX_PACKED_FOR_JOINED_ELEMENT: usize = 2;

/// The number of elements in the copies of a row that is the same for all rows of a cluster: a kernel reads
/// them beside as many rows, and they must stay in the first-level cache. (`bin/bench --group programs`:
/// k-means step, layer norm.)
pub(crate) const COPIED_ROW_ELEMENTS: usize = 1024;

/// The number of elements in a row from which the rows of a cluster of which an operand has one element each
/// are computed one by one; else such operands are repeated first. (`bin/bench --group programs`: softmax,
/// k-means step.)
pub(crate) const MIN_SINGLE_ROW_ELEMENTS: usize = 96;
