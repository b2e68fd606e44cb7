//! Benchmarks of factorizations in Rust, without the VM: `cargo bench -p ferrox_core --bench linalg
//! [-- FILTER]`. bench/linalg.exs measures their accuracy, bench/compare.exs compares them with
//! other libraries.

use divan::{Bencher, black_box};
use ferrox_core::exec::memory::recycling_allocator::Recycler;
use ferrox_core::exec::threads::parallel;
use ferrox_core::ops::linalg::{self, Method, NxAlgorithm};
use ferrox_core::{DType, Error, Output, Tensor};

/// The allocator of the NIF library.
#[global_allocator]
static MEMORY: Recycler = Recycler::new();

const SIDES: [usize; 6] = [8, 32, 128, 256, 512, 1_024];
const TYPES: [(&str, DType); 2] = [("f32", DType::F32), ("f64", DType::F64)];

fn main() {
    parallel::set_threads(std::thread::available_parallelism().map_or(1, usize::from));
    divan::main();
}

/// The bytes of pseudo-random numbers between -1 and 1, the same in every run. With `shift`, the
/// numbers are a symmetric matrix with `shift` on its diagonal.
fn numbers(dtype: DType, n: usize, columns: usize, shift: Option<f64>) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1_u32 << 23) - 1.0
    };
    let mut values: Vec<f64> = (0..n * columns).map(|_| next()).collect();
    if let Some(shift) = shift {
        for i in 0..n {
            (0..i).for_each(|j| values[j * n + i] = values[i * n + j]);
            values[i * n + i] = shift;
        }
    }
    #[expect(clippy::cast_possible_truncation, reason = "24 bits fit")]
    if dtype == DType::F64 {
        values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    } else {
        values.iter().flat_map(|value| (*value as f32).to_ne_bytes()).collect()
    }
}

/// Times an operation that fills tensors of these shapes from a matrix of `n` rows and columns.
fn run<const N: usize>(
    bencher: Bencher,
    (name, n): (&str, usize),
    shapes: [&[usize]; N],
    shift: Option<f64>,
    mut call: impl FnMut([Output<'_>; N], &Tensor<'_>) -> Result<(), Error>,
) {
    let dtype = TYPES.iter().find(|(other, _)| *other == name).expect("a type").1;
    let bytes = numbers(dtype, n, n, shift);
    let shape = [n, n];
    let input = Tensor::new("bench", dtype, &shape, &bytes).expect("sound");
    let mut outs = shapes.map(|shape| vec![0; shape.iter().product::<usize>() * dtype.width()]);
    bencher.bench_local(|| {
        let mut parts = outs.iter_mut().zip(shapes);
        let outs = std::array::from_fn(|_| {
            let (bytes, shape) = parts.next().expect("one part for each shape");
            Output::new("bench", dtype, shape, bytes).expect("sound")
        });
        call(outs, black_box(&input)).expect("sound");
    });
}

#[divan::bench(args = SIDES, consts = [0, 1])]
fn cholesky<const TYPE: usize>(bencher: Bencher, n: usize) {
    run(bencher, (TYPES[TYPE].0, n), [&[n, n]], Some(n as f64), |[out], a| linalg::cholesky(out, a));
}

#[divan::bench(args = SIDES, consts = [0, 1])]
fn solve<const TYPE: usize>(bencher: Bencher, n: usize) {
    let (name, dtype) = TYPES[TYPE];
    let (bytes, shape) = (numbers(dtype, n, 1, None), [n]);
    let right = Tensor::new("bench", dtype, &shape, &bytes).expect("sound");
    run(bencher, (name, n), [&[n]], None, |[out], a| linalg::solve(out, a, &right, Method::Lu));
}

#[divan::bench(args = SIDES, consts = [0, 1])]
fn qr<const TYPE: usize>(bencher: Bencher, n: usize) {
    run(bencher, (TYPES[TYPE].0, n), [&[n, n], &[n, n]], None, |outs, a| {
        linalg::qr(outs, a, 1e-10, NxAlgorithm::Current)
    });
}

#[divan::bench(args = SIDES, consts = [0, 1])]
fn eigh<const TYPE: usize>(bencher: Bencher, n: usize) {
    run(bencher, (TYPES[TYPE].0, n), [&[n], &[n, n]], Some(0.0), |outs, a| {
        linalg::eigh(outs, a, 1e-4, NxAlgorithm::Current)
    });
}

#[divan::bench(args = SIDES, consts = [0, 1])]
fn svd<const TYPE: usize>(bencher: Bencher, n: usize) {
    run(bencher, (TYPES[TYPE].0, n), [&[n, n], &[n], &[n, n]], None, |outs, a| {
        linalg::svd(outs, a, NxAlgorithm::Current)
    });
}
