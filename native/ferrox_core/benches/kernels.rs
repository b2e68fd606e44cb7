//! Benchmarks of kernels without the VM: one or two operations of each main family, for sizes
//! within and beyond the caches. `cargo bench -p ferrox_core [-- FILTER]`; bench/compare.exs
//! compares with other backends.
//!
//! Costs, and thresholds between two algorithms, come from measurements: src/cost.rs names the
//! benchmark of each. Sizes of blocks and of register tiles that change the order of a sum, or the
//! size of a buffer on the stack, are in the file of their algorithm. To repeat their measurements,
//! change the constant and run:
//!
//! | Files | Benchmark |
//! | --- | --- |
//! | exec/elementwise.rs, exec/memory/streaming_stores.rs | `add_`, `exp` |
//! | exec/reduce/fold.rs | `sum`, `max` |
//! | exec/gemm | `dot`, `vector_with_matrix` |
//! | exec/window.rs | `window` |
//! | exec/sort/simd_quicksort.rs | `sort` |
//! | ops/conv.rs, exec/gemm/indirect.rs | `conv` |
//! | ops/linalg | benches/linalg.rs |
//! | ferrox_nif/src/scheduling.rs | bench/add.exs, bench/timer.exs |

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use ferrox_core::exec::memory::recycling_allocator::Recycler;
use ferrox_core::exec::threads::parallel;
use ferrox_core::ops::binary::{BinaryOp, binary};
use ferrox_core::ops::cast::as_type;
use ferrox_core::ops::conv::{Options, conv};
use ferrox_core::ops::cumulative::{CumulativeOp, cumulative};
use ferrox_core::ops::dot::{Side, dot};
use ferrox_core::ops::fft::{Transform, fft};
use ferrox_core::ops::indexed::{Update, gather, indexed, take};
use ferrox_core::ops::pad::{Padding, pad};
use ferrox_core::ops::reduce::{ReduceOp, TieBreak, arg_reduce, reduce};
use ferrox_core::ops::shape::{concatenate, reverse, slice, transpose};
use ferrox_core::ops::sort::{Direction, argsort, sort, top_k};
use ferrox_core::ops::unary::{UnaryOp, unary};
use ferrox_core::ops::window::{SlidingWindows, WindowOp, window};
use ferrox_core::ops::window_scatter::{Choice, window_scatter};
use ferrox_core::{DType, Error, Output, Tensor};

/// The allocator of the library.
#[global_allocator]
static MEMORY: Recycler = Recycler::new();

const SIZES: [usize; 5] = [16, 1_000, 100_000, 1_000_000, 10_000_000];
const SIDES: [usize; 4] = [16, 64, 256, 1_024];
/// Shapes with the numbers of elements in `SIZES`, except the first; bench/compare.exs uses the
/// same shapes.
const SHAPES: [[usize; 2]; 4] = [[25, 40], [250, 400], [1_000, 1_000], [2_500, 4_000]];

fn main() {
    // The library sets the number of threads when it is loaded, too.
    parallel::set_threads(std::thread::available_parallelism().map_or(1, usize::from));
    divan::main();
}

/// Pseudo-random numbers between 1 and 2, the same in every run; pseudo-random bytes for integers.
fn numbers(dtype: DType, shape: &[usize]) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        1.0 + f64::from(state >> 8) / f64::from(1_u32 << 24)
    };
    let count = shape.iter().product::<usize>();
    #[expect(clippy::cast_possible_truncation, reason = "24 bits fit, and any byte will do")]
    match dtype.width() {
        8 => (0..count).flat_map(|_| next().to_ne_bytes()).collect(),
        4 => (0..count).flat_map(|_| (next() as f32).to_ne_bytes()).collect(),
        _ if dtype == DType::BF16 => {
            (0..count).flat_map(|_| (((next() as f32).to_bits() >> 16) as u16).to_ne_bytes()).collect()
        }
        _ => (0..count * dtype.width()).map(|_| (next() * 256.0) as u32 as u8).collect(),
    }
}

/// Times a call that computes a tensor of a type and shape from input tensors of other shapes.
fn run(
    bencher: Bencher,
    dtype: DType,
    shapes: (&[usize], &[&[usize]]),
    call: impl FnMut(Output<'_>, &[Tensor<'_>]) -> Result<(), Error>,
) {
    run_as(bencher, dtype, dtype, shapes, call);
}

/// `run` with another type for the result.
fn run_as(
    bencher: Bencher,
    dtype: DType,
    result: DType,
    (shape, inputs): (&[usize], &[&[usize]]),
    call: impl FnMut(Output<'_>, &[Tensor<'_>]) -> Result<(), Error>,
) {
    let data: Vec<Vec<u8>> = inputs.iter().map(|shape| numbers(dtype, shape)).collect();
    run_on(bencher, dtype, result, (shape, inputs), &data, call);
}

/// `run_as` with given input bytes.
fn run_on(
    bencher: Bencher,
    dtype: DType,
    result: DType,
    (shape, inputs): (&[usize], &[&[usize]]),
    data: &[Vec<u8>],
    mut call: impl FnMut(Output<'_>, &[Tensor<'_>]) -> Result<(), Error>,
) {
    let tensors: Vec<Tensor<'_>> = (inputs.iter().zip(data))
        .map(|(shape, bytes)| Tensor::new("bench", dtype, shape, bytes).expect("sound"))
        .collect();
    let mut bytes = numbers(result, shape);
    let elements = inputs.iter().map(|shape| shape.iter().product::<usize>()).max();
    bencher.counter(ItemsCount::new(elements.unwrap_or(0))).bench_local(|| {
        let out = Output::new("bench", result, shape, black_box(&mut bytes)).expect("sound");
        call(out, black_box(&tensors)).expect("supported");
    });
}

/// `run` with an input of u8.
fn run_bytes(
    bencher: Bencher,
    (shape, input): (&[usize], &[usize]),
    mut call: impl FnMut(Output<'_>, &Tensor<'_>) -> Result<(), Error>,
) {
    let data: Vec<u8> = (0..input.iter().product::<usize>()).map(|i| i.to_le_bytes()[0]).collect();
    let tensor = Tensor::new("bench", DType::U8, input, &data).expect("sound");
    let mut bytes = vec![0; shape.iter().product()];
    bencher.counter(ItemsCount::new(data.len())).bench_local(|| {
        let out = Output::new("bench", DType::U8, shape, black_box(&mut bytes)).expect("sound");
        call(out, black_box(&tensor)).expect("supported");
    });
}

/// Defines benchmarks with the same arguments.
macro_rules! benches {
    ($args:expr, $bencher:ident, $argument:tt: $t:ty; $($name:ident => $body:expr;)*) => {$(
        #[divan::bench(args = $args)]
        fn $name($bencher: Bencher, $argument: $t) {
            $body;
        }
    )*};
}

fn map(bencher: Bencher, op: UnaryOp, dtype: DType, n: usize) {
    run(bencher, dtype, (&[n], &[&[n]]), |out, x| unary(op, out, &x[0]));
}

/// A binary operation on two tensors of `shapes`, which are broadcast to the first of them.
fn zip(bencher: Bencher, op: BinaryOp, dtype: DType, shapes: [&[usize]; 2]) {
    run(bencher, dtype, (shapes[0], &shapes), |out, x| binary(op, out, &x[0], &x[1]));
}

benches! { SIZES, bencher, n: usize;
    add_f32 => zip(bencher, BinaryOp::Add, DType::F32, [&[n]; 2]);
    add_f64 => zip(bencher, BinaryOp::Add, DType::F64, [&[n]; 2]);
    pow_f32 => zip(bencher, BinaryOp::Pow, DType::F32, [&[n]; 2]);
    pow_f64 => zip(bencher, BinaryOp::Pow, DType::F64, [&[n]; 2]);
    remainder_f32 => zip(bencher, BinaryOp::Remainder, DType::F32, [&[n]; 2]);
    exp_f32 => map(bencher, UnaryOp::Exp, DType::F32, n);
    exp_f64 => map(bencher, UnaryOp::Exp, DType::F64, n);
    log_f32 => map(bencher, UnaryOp::Log, DType::F32, n);
    log_f64 => map(bencher, UnaryOp::Log, DType::F64, n);
    sin_f64 => map(bencher, UnaryOp::Sin, DType::F64, n);
    tanh_f32 => map(bencher, UnaryOp::Tanh, DType::F32, n);
    tanh_f64 => map(bencher, UnaryOp::Tanh, DType::F64, n);
    sum_f32 => reduced(bencher, ReduceOp::Sum, DType::F32, &[n], &[0]);
    sum_s32 => reduced(bencher, ReduceOp::Sum, DType::S32, &[n], &[0]);
    max_s32 => reduced(bencher, ReduceOp::ReduceMax, DType::S32, &[n], &[0]);
    argmax_s32 => argmax(bencher, DType::S32, &[n], 0);
    cumulative_sum_f32 => accumulated(bencher, CumulativeOp::Sum, &[n]);
    sort_f32 => sorted(bencher, DType::F32, n);
    sort_f64 => sorted(bencher, DType::F64, n);
}

/// Sizes around the one from which two threads are faster than one.
const SHARED: [usize; 6] = [5_000, 10_000, 20_000, 40_000, 80_000, 160_000];

benches! { SHARED, bencher, n: usize;
    share_exp_f32 => map(bencher, UnaryOp::Exp, DType::F32, n);
    share_erfc_f32 => map(bencher, UnaryOp::Erfc, DType::F32, n);
}

/// Rows around the shortest that are folded as columns.
const SHORT_ROWS: [[usize; 2]; 4] = [[1024, 8], [1024, 16], [1024, 32], [1024, 63]];

benches! { SHORT_ROWS, bencher, shape: [usize; 2];
    sum_of_short_rows_f32 => reduced(bencher, ReduceOp::Sum, DType::F32, &shape, &[1]);
    sum_of_short_rows_f64 => reduced(bencher, ReduceOp::Sum, DType::F64, &shape, &[1]);
    max_of_short_rows_f32 => reduced(bencher, ReduceOp::ReduceMax, DType::F32, &shape, &[1]);
    max_of_short_rows_f64 => reduced(bencher, ReduceOp::ReduceMax, DType::F64, &shape, &[1]);
    max_of_short_rows_bf16 => reduced(bencher, ReduceOp::ReduceMax, DType::BF16, &shape, &[1]);
}

/// Reduces along axes of a tensor.
fn reduced(bencher: Bencher, op: ReduceOp, dtype: DType, shape: &[usize], axes: &[usize]) {
    let kept: Vec<usize> =
        (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect();
    run(bencher, dtype, (&kept, &[shape]), |out, x| reduce(op, out, &x[0], axes));
}

fn argmax(bencher: Bencher, dtype: DType, shape: &[usize], axis: usize) {
    let kept = [&shape[..axis], &shape[axis + 1..]].concat();
    run_as(bencher, dtype, DType::S32, (&kept, &[shape]), |out, x| {
        arg_reduce(ReduceOp::ReduceMax, out, &x[0], Some(axis), TieBreak::Low)
    });
}

fn accumulated(bencher: Bencher, op: CumulativeOp, shape: &[usize]) {
    run(bencher, DType::F32, (shape, &[shape]), |out, x| cumulative(op, out, &x[0], 0, false));
}

fn sorted(bencher: Bencher, dtype: DType, n: usize) {
    run(bencher, dtype, (&[n], &[&[n]]), |out, x| sort(out, &x[0], 0, Direction::Ascending));
}

benches! { SHAPES, bencher, shape: [usize; 2];
    add_row_f32 => zip(bencher, BinaryOp::Add, DType::F32, [&shape, &[1, shape[1]]]);
    add_column_f32 => zip(bencher, BinaryOp::Add, DType::F32, [&shape, &[shape[0], 1]]);
    cumulative_sum_of_columns_f32 => accumulated(bencher, CumulativeOp::Sum, &shape);
    cumulative_max_of_columns_f32 => accumulated(bencher, CumulativeOp::Max, &shape);
    sum_of_columns_f32 => reduced(bencher, ReduceOp::Sum, DType::F32, &shape, &[0]);
    sum_of_columns_bf16 => reduced(bencher, ReduceOp::Sum, DType::BF16, &shape, &[0]);
    sum_of_all_bf16 => reduced(bencher, ReduceOp::Sum, DType::BF16, &shape, &[0, 1]);
    max_of_columns_f32 => reduced(bencher, ReduceOp::ReduceMax, DType::F32, &shape, &[0]);
    max_of_columns_bf16 => reduced(bencher, ReduceOp::ReduceMax, DType::BF16, &shape, &[0]);
    max_of_rows_bf16 => reduced(bencher, ReduceOp::ReduceMax, DType::BF16, &shape, &[1]);
    max_of_all_f32 => reduced(bencher, ReduceOp::ReduceMax, DType::F32, &shape, &[0, 1]);
    max_of_all_bf16 => reduced(bencher, ReduceOp::ReduceMax, DType::BF16, &shape, &[0, 1]);
    argmax_of_columns_f32 => argmax(bencher, DType::F32, &shape, 0);
    argmax_of_columns_u8 => argmax(bencher, DType::U8, &shape, 0);
    argmax_of_rows_f32 => argmax(bencher, DType::F32, &shape, 1);
    argmax_of_rows_f64 => argmax(bencher, DType::F64, &shape, 1);
    argmax_of_rows_s32 => argmax(bencher, DType::S32, &shape, 1);
    argmax_of_rows_bf16 => argmax(bencher, DType::BF16, &shape, 1);
    reverse_f32 => run(bencher, DType::F32, (&shape, &[&shape]), |out, x| reverse(out, &x[0], &[0, 1]));
    reverse_u8 => run_bytes(bencher, (&shape, &shape), |out, x| reverse(out, x, &[0, 1]));
}

benches! { SHAPES, bencher, [rows, columns]: [usize; 2];
    transpose_f32 => run(bencher, DType::F32, (&[columns, rows], &[&[rows, columns]]), |out, x| {
        transpose(out, &x[0], &[1, 0])
    });
    transpose_u8 => run_bytes(bencher, (&[columns, rows], &[rows, columns]), |out, x| {
        transpose(out, x, &[1, 0])
    });
}

/// Numbers between -3 and 3, which cover all ranges of the functions.
#[divan::bench(args = SIZES)]
fn erf_f64(bencher: Bencher, n: usize) {
    let data: Vec<u8> = numbers(DType::F64, &[n])
        .as_chunks()
        .0
        .iter()
        .flat_map(|&x| ((f64::from_ne_bytes(x) - 1.5) * 6.0).to_ne_bytes())
        .collect();
    run_on(bencher, DType::F64, DType::F64, (&[n], &[&[n]]), &[data], |out, x| {
        unary(UnaryOp::Erf, out, &x[0])
    });
}

/// The bits of f32 numbers read as bf16: every other element is noise.
#[divan::bench(args = SIZES)]
fn tanh_bf16(bencher: Bencher, n: usize) {
    let mut data = numbers(DType::F32, &[n.div_ceil(2)]);
    data.truncate(2 * n);
    run_on(bencher, DType::BF16, DType::BF16, (&[n], &[&[n]]), &[data], |out, x| {
        unary(UnaryOp::Tanh, out, &x[0])
    });
}

/// Pseudo-random numbers, converted to a type.
fn numbers_in(dtype: DType, n: usize) -> Vec<u8> {
    let (numbers, shape) = (numbers(DType::F32, &[n]), [n]);
    let mut bytes = vec![0; n * dtype.width()];
    let numbers = Tensor::new("bench", DType::F32, &shape, &numbers).expect("sound");
    as_type(Output::new("bench", dtype, &shape, &mut bytes).expect("sound"), &numbers).expect("supported");
    bytes
}

/// Times a binary operation on operands of two types, with a result of a third.
fn mixed(bencher: Bencher, n: usize, op: BinaryOp, types: [DType; 2], result: DType) {
    let data = types.map(|dtype| numbers_in(dtype, n));
    let shape = [n];
    let mut bytes = vec![1; n * result.width()];
    bencher.counter(ItemsCount::new(n)).bench_local(|| {
        let [a, b] =
            [0, 1].map(|i| Tensor::new("bench", types[i], &shape, black_box(&data[i])).expect("sound"));
        let out = Output::new("bench", result, &shape, black_box(&mut bytes)).expect("sound");
        binary(op, out, &a, &b).expect("supported");
    });
}

/// Pairs of operand types, and the result type of Nx.
const MIXED: [[DType; 3]; 9] = [
    [DType::U8, DType::F32, DType::F32],
    [DType::S8, DType::U8, DType::S16],
    [DType::BF16, DType::F16, DType::F32],
    [DType::S64, DType::F32, DType::F32],
    [DType::F32, DType::F64, DType::F64],
    [DType::BF16, DType::BF16, DType::BF16],
    [DType::F16, DType::F16, DType::F16],
    [DType::C64, DType::C64, DType::C64],
    [DType::S32, DType::F32, DType::F32],
];
const MIXED_SIZES: [usize; 4] = [1_000, 100_000, 1_000_000, 10_000_000];

#[divan::bench(args = 0..MIXED.len(), consts = MIXED_SIZES)]
fn add_mixed<const N: usize>(bencher: Bencher, types: usize) {
    let [left, right, result] = MIXED[types];
    mixed(bencher, N, BinaryOp::Add, [left, right], result);
}

#[divan::bench(consts = SIZES)]
fn multiply_c64<const N: usize>(bencher: Bencher) {
    mixed(bencher, N, BinaryOp::Multiply, [DType::C64; 2], DType::C64);
}

#[divan::bench(consts = SIZES)]
fn divide_c64<const N: usize>(bencher: Bencher) {
    mixed(bencher, N, BinaryOp::Divide, [DType::C64; 2], DType::C64);
}

#[divan::bench(consts = SIZES)]
fn divide_s32<const N: usize>(bencher: Bencher) {
    mixed(bencher, N, BinaryOp::Divide, [DType::S32; 2], DType::F32);
}

/// Pairs of types to cast from and to.
const CASTS: [[DType; 2]; 10] = [
    [DType::U8, DType::F32],
    [DType::F32, DType::U8],
    [DType::F32, DType::S32],
    [DType::F32, DType::F16],
    [DType::F16, DType::F32],
    [DType::F32, DType::S64],
    [DType::S64, DType::F32],
    [DType::S64, DType::F64],
    [DType::S32, DType::BF16],
    [DType::S32, DType::F16],
];

#[divan::bench(args = 0..CASTS.len(), consts = MIXED_SIZES)]
fn cast<const N: usize>(bencher: Bencher, types: usize) {
    let [from, to] = CASTS[types];
    let (data, shape) = (numbers_in(from, N), [N]);
    let mut bytes = vec![1; N * to.width()];
    bencher.counter(ItemsCount::new(N)).bench_local(|| {
        let x = Tensor::new("bench", from, &shape, black_box(&data)).expect("sound");
        let out = Output::new("bench", to, &shape, black_box(&mut bytes)).expect("sound");
        as_type(out, &x).expect("supported");
    });
}

#[divan::bench(args = SIZES)]
fn argsort_f32(bencher: Bencher, n: usize) {
    run(bencher, DType::F32, (&[n], &[&[n]]), |out, x| {
        let out = Output::new("bench", DType::S32, out.shape, out.bytes).expect("as wide");
        argsort(out, &x[0], 0, Direction::Ascending)
    });
}

#[divan::bench(args = SIZES)]
fn argsort_f64(bencher: Bencher, n: usize) {
    run(bencher, DType::F64, (&[n], &[&[n]]), |out, x| {
        let out = Output::new("bench", DType::S64, out.shape, out.bytes).expect("as wide");
        argsort(out, &x[0], 0, Direction::Ascending)
    });
}

#[divan::bench(args = SIZES)]
fn top_k_f32(bencher: Bencher, n: usize) {
    run(bencher, DType::F32, (&[10], &[&[n]]), |out, x| {
        top_k(Output::new("bench", DType::S32, out.shape, out.bytes).expect("as wide"), &x[0], 10)
    });
}

#[divan::bench(args = SHAPES)]
fn slice_with_strides_f32(bencher: Bencher, [rows, columns]: [usize; 2]) {
    let kept = [rows.div_ceil(2), columns.div_ceil(3)];
    run(bencher, DType::F32, (&kept, &[&[rows, columns]]), |out, x| {
        slice(out, &x[0], &[0, 0], &[rows, columns], &[2, 3])
    });
}

#[divan::bench(args = SHAPES)]
fn slice_with_strides_u8(bencher: Bencher, [rows, columns]: [usize; 2]) {
    let kept = [rows.div_ceil(2), columns.div_ceil(3)];
    run_bytes(bencher, (&kept, &[rows, columns]), |out, x| slice(out, x, &[0, 0], &[rows, columns], &[2, 3]));
}

#[divan::bench(args = SHAPES)]
fn concatenate_columns_f32(bencher: Bencher, [rows, columns]: [usize; 2]) {
    let shape: &[usize] = &[rows, columns];
    run(bencher, DType::F32, (&[rows, 2 * columns], &[shape; 2]), |out, x| concatenate(out, x, 1));
}

#[divan::bench(args = SIZES)]
fn concatenate_f32(bencher: Bencher, n: usize) {
    run(bencher, DType::F32, (&[2 * n], &[&[n], &[n]]), |out, x| concatenate(out, x, 0));
}

#[divan::bench(args = SHAPES)]
fn pad_f32(bencher: Bencher, [rows, columns]: [usize; 2]) {
    let padding = [Padding { low: 1, high: 1, interior: 0 }; 2];
    run(bencher, DType::F32, (&[rows + 2, columns + 2], &[&[rows, columns], &[]]), |out, x| {
        pad(out, &x[0], &x[1], &padding)
    });
}

/// Pseudo-random indices below `n`, as s32.
/// Numbers of elements around the one up to which a function is computed one by one.
#[divan::bench(args = [1, 2, 4, 5, 8])]
fn exp_few_f32(bencher: Bencher, n: usize) {
    map(bencher, UnaryOp::Exp, DType::F32, n);
}

fn random_indices(n: usize) -> Vec<u8> {
    random_indices_below(n, n)
}

fn random_indices_below(limit: usize, n: usize) -> Vec<u8> {
    let scattered = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let index = |i: usize| i32::try_from(scattered(i) % limit as u64).expect("small");
    (0..n).flat_map(|i| index(i).to_ne_bytes()).collect()
}

#[divan::bench(args = SIZES)]
fn gather_f32(bencher: Bencher, n: usize) {
    let (shape, indices) = ([n, 1], random_indices(n));
    let indices = Tensor::new("bench", DType::S32, &shape, &indices).expect("sound");
    run(bencher, DType::F32, (&[n], &[&[n]]), |out, x| gather(out, &x[0], &indices, &[0]));
}

#[divan::bench(args = SIZES)]
fn gather_u8(bencher: Bencher, n: usize) {
    let (shape, indices) = ([n, 1], random_indices(n));
    let indices = Tensor::new("bench", DType::S32, &shape, &indices).expect("sound");
    run_bytes(bencher, (&[n], &[n]), |out, x| gather(out, x, &indices, &[0]));
}

#[divan::bench(args = SHAPES)]
fn take_columns_f32(bencher: Bencher, shape: [usize; 2]) {
    let (count, indices) = ([shape[1]], random_indices(shape[1]));
    let indices = Tensor::new("bench", DType::S32, &count, &indices).expect("sound");
    run(bencher, DType::F32, (&shape, &[&shape]), |out, x| take(out, &x[0], &indices, 1));
}

#[divan::bench(args = SHAPES)]
fn take_columns_u8(bencher: Bencher, shape: [usize; 2]) {
    let (count, indices) = ([shape[1]], random_indices(shape[1]));
    let indices = Tensor::new("bench", DType::S32, &count, &indices).expect("sound");
    run_bytes(bencher, (&shape, &shape), |out, x| take(out, x, &indices, 1));
}

#[divan::bench(args = SIZES)]
fn indexed_add_f32(bencher: Bencher, n: usize) {
    let (shape, indices) = ([n, 1], random_indices(n));
    let indices = Tensor::new("bench", DType::S32, &shape, &indices).expect("sound");
    run(bencher, DType::F32, (&[n], &[&[n], &[n]]), |out, x| {
        indexed(Update::Add, out, &x[0], &indices, &x[1], &[0])
    });
}

/// 2^20 elements of updates in rows of some length, to a target of 1,000 rows.
#[divan::bench(args = [4, 8, 16, 32, 64, 128])]
fn indexed_add_rows(bencher: Bencher, length: usize) {
    let count = (1 << 20) / length;
    let (shape, indices) = ([count, 1], random_indices_below(1_000, count));
    let indices = Tensor::new("bench", DType::S32, &shape, &indices).expect("sound");
    let target = [1_000, length];
    run(bencher, DType::F32, (&target, &[&target, &[count, length]]), |out, x| {
        indexed(Update::Add, out, &x[0], &indices, &x[1], &[0])
    });
}

#[divan::bench(args = SIZES)]
fn indexed_add_u8(bencher: Bencher, n: usize) {
    let (shape, indices) = ([n, 1], random_indices(n));
    let indices = Tensor::new("bench", DType::S32, &shape, &indices).expect("sound");
    let numbers = numbers_in(DType::U8, n);
    let count = [n];
    let updates = Tensor::new("bench", DType::U8, &count, &numbers).expect("sound");
    run_bytes(bencher, (&count, &count), |out, x| indexed(Update::Add, out, x, &indices, &updates, &[0]));
}

fn product(bencher: Bencher, dtype: DType, left: &[usize], right: &[usize], out: &[usize]) {
    run(bencher, dtype, (out, &[left, right]), |out, x| {
        let [left, right] =
            [(&x[0], &[1]), (&x[1], &[0])].map(|(tensor, contract)| Side { tensor, contract, batch: &[] });
        dot(out, left, right)
    });
}

/// Sixteen products of small matrices.
fn small_products(bencher: Bencher, dtype: DType, n: usize) {
    run(bencher, dtype, (&[16, n, n], &[&[16, n, n], &[16, n, n]]), |out, x| {
        let [left, right] =
            [(&x[0], &[2]), (&x[1], &[1])].map(|(tensor, contract)| Side { tensor, contract, batch: &[0] });
        dot(out, left, right)
    });
}

benches! { SIDES, bencher, n: usize;
    dot_f32 => product(bencher, DType::F32, &[n, n], &[n, n], &[n, n]);
    dot_bf16 => product(bencher, DType::BF16, &[n, n], &[n, n], &[n, n]);
    dot_s32 => product(bencher, DType::S32, &[n, n], &[n, n], &[n, n]);
    dot_with_vector_f32 => product(bencher, DType::F32, &[n, n], &[n], &[n]);
    dot_with_vector_bf16 => product(bencher, DType::BF16, &[n, n], &[n], &[n]);
    dot_with_vector_s32 => product(bencher, DType::S32, &[n, n], &[n], &[n]);
    dot_with_vector_s8 => product(bencher, DType::S8, &[n, n], &[n], &[n]);
}

benches! { [128, 2_048, 32_768], bencher, n: usize;
    dot_of_tall_f32 => product(bencher, DType::F32, &[n, 32], &[32, 32], &[n, 32]);
    dot_of_tall_f64 => product(bencher, DType::F64, &[n, 32], &[32, 32], &[n, 32]);
    dot_of_tall_s8 => product(bencher, DType::S8, &[n, 32], &[32, 32], &[n, 32]);
}

benches! { [4, 16, 64], bencher, n: usize;
    dot_of_batches_f32 => small_products(bencher, DType::F32, n);
    dot_of_batches_f64 => small_products(bencher, DType::F64, n);
}

#[divan::bench(args = SIDES)]
fn vector_with_matrix_f32(bencher: Bencher, n: usize) {
    run(bencher, DType::F32, (&[n], &[&[n], &[n, n]]), |out, x| {
        let [left, right] = [&x[0], &x[1]].map(|tensor| Side { tensor, contract: &[0], batch: &[] });
        dot(out, left, right)
    });
}

#[divan::bench(args = [1_024, 16_384, 65_536, 262_144, 1_048_576])]
fn fft_c128(bencher: Bencher, n: usize) {
    let data = numbers(DType::F64, &[2 * n]);
    run_on(bencher, DType::C128, DType::C128, (&[n], &[&[n]]), &[data], |out, x| {
        fft(Transform::Forward, out, &x[0], (0, n), 1e-10)
    });
}

#[divan::bench(args = [8, 16, 32, 64, 256, 1_024])]
fn dot_with_vector_f64(bencher: Bencher, n: usize) {
    product(bencher, DType::F64, &[n, n], &[n], &[n]);
}

/// Layers of a small ResNet: channels and side of the image, filters, side of the kernel, stride.
const LAYERS: [[usize; 5]; 8] = [
    [1, 28, 8, 3, 1],
    [256, 14, 256, 1, 1],
    [128, 28, 128, 3, 1],
    [3, 224, 64, 7, 2],
    [64, 56, 64, 3, 1],
    [64, 56, 128, 3, 2],
    [64, 56, 128, 1, 2],
    [512, 7, 512, 3, 1],
];

#[divan::bench(args = LAYERS)]
fn conv_f32(bencher: Bencher, [channels, side, filters, kernel_side, stride]: [usize; 5]) {
    convolve(bencher, [1, channels, side, filters, kernel_side, stride], 1);
}

#[divan::bench]
fn conv_of_batch_f32(bencher: Bencher) {
    convolve(bencher, [8, 64, 56, 64, 3, 1], 1);
}

#[divan::bench]
fn conv_depthwise_f32(bencher: Bencher) {
    convolve(bencher, [1, 32, 112, 32, 3, 1], 32);
}

/// The gradient of a kernel of 3 x 3 taps, by a batch of 8: its channels are the batch, and its
/// kernel is the gradient of the result.
#[divan::bench]
fn conv_kernel_gradient_f32(bencher: Bencher) {
    let options = Options {
        strides: &[1; 2],
        padding: &[(1, 1); 2],
        input_dilation: &[1; 2],
        kernel_dilation: &[1; 2],
        feature_groups: 1,
        batch_groups: 1,
        input_permutation: &[1, 0, 2, 3],
        kernel_permutation: &[1, 0, 2, 3],
        output_permutation: &[1, 0, 2, 3],
    };
    let (input, out) = ([8, 64, 16, 16], [64, 64, 3, 3]);
    run(bencher, DType::F32, (&out, &[&input, &input]), |out, x| conv(out, &x[0], &x[1], options));
}

fn convolve(
    bencher: Bencher,
    [batch, channels, side, filters, kernel_side, stride]: [usize; 6],
    groups: usize,
) {
    let pad = kernel_side / 2;
    let out = (side + 2 * pad - kernel_side) / stride + 1;
    let axes = [0, 1, 2, 3];
    let options = Options {
        strides: &[stride; 2],
        padding: &[(pad as i64, pad as i64); 2],
        input_dilation: &[1; 2],
        kernel_dilation: &[1; 2],
        feature_groups: groups,
        batch_groups: 1,
        input_permutation: &axes,
        kernel_permutation: &axes,
        output_permutation: &axes,
    };
    let (input, kernel) =
        ([batch, channels, side, side], [filters, channels / groups, kernel_side, kernel_side]);
    run(bencher, DType::F32, (&[batch, filters, out, out], &[&input, &kernel]), |out, x| {
        conv(out, &x[0], &x[1], options)
    });
}

/// Batch, channels, side of the image, side of the window, stride.
const POOLS: [[usize; 5]; 4] = [[1, 8, 28, 2, 2], [1, 512, 7, 7, 1], [1, 64, 112, 3, 2], [1, 64, 112, 2, 2]];

benches! { POOLS, bencher, pool: [usize; 5];
    window_max_f32 => slide(bencher, WindowOp::Max, pool);
    window_sum_f32 => slide(bencher, WindowOp::Sum, pool);
}

#[divan::bench(args = POOLS)]
fn window_scatter_max_f32(bencher: Bencher, pool: [usize; 5]) {
    slid(pool, |windows, input, pooled| {
        run(bencher, DType::F32, (input, &[input, pooled, &[]]), |out, x| {
            window_scatter(Choice::Max, out, &x[0], &x[1], &x[2], windows)
        });
    });
}

fn slide(bencher: Bencher, op: WindowOp, pool: [usize; 5]) {
    slid(pool, |windows, input, pooled| {
        run(bencher, DType::F32, (pooled, &[input]), |out, x| window(op, out, &x[0], windows));
    });
}

/// Calls `call` with the windows of a pooling, the shape of the input, and the shape of the output.
fn slid(
    [batch, channels, side, pool_side, stride]: [usize; 5],
    call: impl FnOnce(SlidingWindows<'_>, &[usize], &[usize]),
) {
    let pad = if pool_side == 3 { 1 } else { 0 };
    let out = (side + 2 * pad - pool_side) / stride + 1;
    let edge = (pad as i64, pad as i64);
    let windows = SlidingWindows {
        shape: &[1, 1, pool_side, pool_side],
        strides: &[1, 1, stride, stride],
        padding: &[(0, 0), (0, 0), edge, edge],
        dilations: &[1; 4],
    };
    call(windows, &[batch, channels, side, side], &[batch, channels, out, out]);
}
