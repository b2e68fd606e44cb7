//! Operations with too little memory: they give an error, or the same bits as with enough of it, and
//! don't abort the process.
//!
//! The allocator of this test refuses large blocks while those that are in use together would exceed a
//! limit. Each operation runs with limits from none of the memory that it takes to almost all of it.

#![allow(unsafe_code, reason = "allocators are unsafe to call")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use common::Random;
use ferrox_core::DType::{self, *};
use ferrox_core::cost::Work;
use ferrox_core::exec::threads::parallel;
use ferrox_core::graph::source::{Operand, Place, Region, ReverseLoop, Step, Target};
use ferrox_core::graph::{Execution, Host, Operation, Outcome, Program, Wish};
use ferrox_core::layout::Shape;
use ferrox_core::ops::all_close::{Tolerance, all_close};
use ferrox_core::ops::binary::{BinaryOp, binary};
use ferrox_core::ops::cast::as_type;
use ferrox_core::ops::conv::{Options, conv};
use ferrox_core::ops::cumulative::{CumulativeOp, cumulative};
use ferrox_core::ops::dot::{Side, dot};
use ferrox_core::ops::fft::{Transform, fft, fft2};
use ferrox_core::ops::indexed::{Update, gather, indexed, put_slice, take, take_along_axis};
use ferrox_core::ops::linalg::{self, MatrixTransform, Method, NxAlgorithm, Triangular};
use ferrox_core::ops::math::Math;
use ferrox_core::ops::pad::{Padding, pad};
use ferrox_core::ops::reduce::{ReduceOp, TieBreak, arg_reduce, reduce};
use ferrox_core::ops::shape::{broadcast, concatenate, reverse, transpose};
use ferrox_core::ops::sort::{Direction, argsort, sort, top_k};
use ferrox_core::ops::unary::UnaryOp;
use ferrox_core::ops::window::{SlidingWindows, WindowOp, window};
use ferrox_core::ops::window_elements::{Windows, window_elements};
use ferrox_core::ops::window_scatter::{Choice, window_scatter};
use ferrox_core::tensor::byte_size;
use ferrox_core::{Error, Output, Tensor};

/// The allocator of the system, with a limit on the sum of all blocks of `COUNTED_BYTES` and more.
struct Limited;

/// Smaller blocks aren't counted: they don't hold a tensor's data.
const COUNTED_BYTES: usize = 1 << 12;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

impl Limited {
    /// Whether a block may be allocated.
    fn takes(size: usize) -> bool {
        if size < COUNTED_BYTES {
            return true;
        }
        let used = USED.fetch_add(size, SeqCst) + size;
        if used > LIMIT.load(SeqCst) {
            USED.fetch_sub(size, SeqCst);
            return false;
        }
        MOST.fetch_max(used, SeqCst);
        true
    }

    fn gives_back(size: usize) {
        if size >= COUNTED_BYTES {
            USED.fetch_sub(size, SeqCst);
        }
    }
}

// SAFETY: the system's allocator serves all blocks. The default `realloc` allocates, copies and frees.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::takes(layout.size()) {
            // SAFETY: the caller's contract is the same.
            unsafe { System.alloc(layout) }
        } else {
            std::ptr::null_mut()
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::gives_back(layout.size());
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(pointer, layout) };
    }
}

#[global_allocator]
static MEMORY: Limited = Limited;

/// A tensor's type, shape and bytes.
struct Data {
    dtype: DType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Data {
    /// Random numbers from -1 to 1, or small integers.
    fn random(dtype: DType, shape: &[usize]) -> Data {
        let mut random = Random(40);
        let size: usize = shape.iter().product();
        let parts = if dtype.is_complex() { 2 * size } else { size };
        let numbers: Vec<u8> = (0..parts).flat_map(|_| (2.0 * random.unit() - 1.0).to_ne_bytes()).collect();
        Data::of(if dtype.is_complex() { C128 } else { F64 }, shape, &numbers).converted(dtype)
    }

    /// Indices of an axis of some size.
    fn indices(dim: usize, shape: &[usize]) -> Data {
        let mut random = Random(41);
        let size: usize = shape.iter().product();
        let bytes: Vec<u8> = (0..size).flat_map(|_| (random.below(dim) as i64).to_ne_bytes()).collect();
        Data::of(S64, shape, &bytes)
    }

    fn of(dtype: DType, shape: &[usize], bytes: &[u8]) -> Data {
        Data { dtype, shape: shape.to_vec(), bytes: bytes.to_vec() }
    }

    fn converted(&self, dtype: DType) -> Data {
        let from =
            if dtype.is_integer() { self.scaled() } else { Data::of(self.dtype, &self.shape, &self.bytes) };
        let mut bytes = vec![0; byte_size("test", dtype, &self.shape).expect("small")];
        let out = Output::new("test", dtype, &self.shape, &mut bytes).expect("the size");
        as_type(out, &from.see().expect("the size")).expect("converted");
        Data { dtype, shape: self.shape.clone(), bytes }
    }

    fn scaled(&self) -> Data {
        let numbers =
            self.bytes.as_chunks::<8>().0.iter().map(|&bytes| f64::from_ne_bytes(bytes).abs() * 3.0);
        Data::of(self.dtype, &self.shape, &numbers.flat_map(f64::to_ne_bytes).collect::<Vec<u8>>())
    }

    /// The tensor, if there is memory to unpack it.
    fn see(&self) -> Result<Tensor<'_>, Error> {
        Tensor::new("test", self.dtype, &self.shape, &self.bytes)
    }
}

/// Runs an operation whose results have these types and shapes with less and less memory.
fn check<const N: usize>(
    what: &str,
    results: [(DType, &[usize]); N],
    run: impl Fn([Output<'_>; N]) -> Result<(), Error>,
) {
    let mut bytes = results.map(|(dtype, shape)| vec![0; byte_size("test", dtype, shape).expect("small")]);
    let attempt = |bytes: &mut [Vec<u8>; N]| {
        bytes.iter_mut().for_each(|bytes| bytes.fill(0xa5));
        let mut outs =
            bytes.iter_mut().zip(results).map(|(bytes, (dtype, shape))| Output { dtype, shape, bytes });
        run(std::array::from_fn(|_| outs.next().expect("one for each result")))
    };
    // The first run fills tables and caches.
    attempt(&mut bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    let before = USED.load(SeqCst);
    MOST.store(before, SeqCst);
    assert_eq!(attempt(&mut bytes), Ok(()), "{what}");
    let (expected, took) = (bytes.clone(), MOST.load(SeqCst) - before);
    let base = USED.load(SeqCst);
    let (mut refused, mut same) = (0, 0);
    for part in 0..24 {
        println!("{what}, {part} of 24 of {took} bytes");
        LIMIT.store(base + took * part / 24, SeqCst);
        let result = attempt(&mut bytes);
        LIMIT.store(usize::MAX, SeqCst);
        match result {
            Ok(()) => {
                same += 1;
                assert!(bytes == expected, "{what} has other bits with {part} of 24 of {took} bytes");
            }
            Err(Error::TooLarge { .. }) => refused += 1,
            Err(error) => panic!("{what}: {error}"),
        }
    }
    println!("{what}: {refused} times refused, {same} times the same");
}

/// `check` of an operation with one result.
fn check_one(what: &str, dtype: DType, shape: &[usize], run: impl Fn(Output<'_>) -> Result<(), Error>) {
    check(what, [(dtype, shape)], |[out]| run(out));
}

fn products() {
    for (l, r, to, [m, k, n]) in [
        (F32, F32, F32, [300, 200, 150]),
        (F64, F64, F64, [150, 700, 170]),
        (C64, C64, C64, [90, 80, 100]),
        (C128, C128, C128, [60, 70, 80]),
        (C64, F32, C64, [64, 65, 66]),
        (BF16, F32, F32, [100, 200, 300]),
        (BF16, BF16, BF16, [10, 600, 5000]),
        (S32, S8, S32, [100, 120, 140]),
        (U8, U8, U8, [100, 120, 140]),
        (F32, F32, F32, [1, 5000, 30]),
        (F16, F32, F32, [1, 500, 300]),
        (S4, S4, S4, [50, 60, 70]),
    ] {
        let (left, right) = (Data::random(l, &[m, k]), Data::random(r, &[k, n]));
        check_one(&format!("dot of {l} and {r}, {m} {k} {n}"), to, &[m, n], |out| {
            let (left, right) = (left.see()?, right.see()?);
            let left = Side { tensor: &left, contract: &[1], batch: &[] };
            dot(out, left, Side { tensor: &right, contract: &[0], batch: &[] })
        });
    }
    let (left, right) = (Data::random(C64, &[7, 30, 40]), Data::random(C64, &[40, 7, 30]));
    check_one("dot of batches", C64, &[7, 30, 30], |out| {
        let (left, right) = (left.see()?, right.see()?);
        let left = Side { tensor: &left, contract: &[2], batch: &[0] };
        dot(out, left, Side { tensor: &right, contract: &[0], batch: &[1] })
    });
}

fn factorizations() {
    for dtype in [F32, F64, C64, C128] {
        let n = 160;
        let matrix = Data::random(dtype, &[n, n]);
        let a = matrix.see().expect("the size");
        // The product of the matrix and its transpose, which is positive definite if it is real.
        let (square, mut bytes) = ([n, n], vec![0; n * n * dtype.width()]);
        let side = Side { tensor: &a, contract: &[1], batch: &[] };
        dot(Output { dtype, shape: &square, bytes: &mut bytes }, side, side).expect("a product");
        let positive = Data::of(dtype, &square, &bytes);
        let tall = Data::random(dtype, &[500, 70]);
        let b = Data::random(dtype, &[n, 90]);
        check_one(&format!("cholesky of {dtype}"), dtype, &square, |out| {
            linalg::cholesky(out, &positive.see()?)
        });
        check_one(&format!("determinant of {dtype}"), dtype, &[], |out| linalg::determinant(out, &a));
        for method in [Method::Lu, Method::Qr] {
            check_one(&format!("solve of {dtype}"), dtype, &[n, 90], |out| {
                linalg::solve(out, &a, &b.see()?, method)
            });
        }
        let triangular = Triangular { lower: true, left_side: true, transform: MatrixTransform::None };
        check_one(&format!("triangular_solve of {dtype}"), dtype, &[n, 90], |out| {
            linalg::triangular_solve(out, &positive.see()?, &b.see()?, triangular)
        });
        check(&format!("lu of {dtype}"), [(dtype, &square[..]); 3], |outs| {
            linalg::lu(outs, &a, NxAlgorithm::Current)
        });
        let shapes: [(_, &[usize]); 2] = [(dtype, &[500, 70]), (dtype, &[70, 70])];
        check(&format!("qr of {dtype}"), shapes, |outs| {
            linalg::qr(outs, &tall.see()?, 1e-10, NxAlgorithm::Current)
        });
        let real = if matches!(dtype, F32 | C64) { F32 } else { F64 };
        let lengths = [n];
        check(&format!("eigh of {dtype}"), [(real, &lengths[..]), (dtype, &square)], |outs| {
            linalg::eigh(outs, &positive.see()?, 1e-10, NxAlgorithm::Current)
        });
        if !dtype.is_complex() {
            let shapes = [(dtype, &square[..]), (dtype, &lengths), (dtype, &square)];
            check(&format!("svd of {dtype}"), shapes, |outs| linalg::svd(outs, &a, NxAlgorithm::Current));
            let shapes: [(_, &[usize]); 3] = [(dtype, &[500, 70]), (dtype, &[70]), (dtype, &[70, 70])];
            check(&format!("thin svd of {dtype}"), shapes, |outs| {
                linalg::svd(outs, &tall.see()?, NxAlgorithm::ThinSvd)
            });
        }
    }
}

/// Factorizations of which vectors, and not only matrices, are large.
fn long_sides() {
    for (rows, scale) in [(20_000, 1.0), (20_000, 1e-3)] {
        let mut tall = Data::random(F64, &[rows, 2]);
        // Rows of other sizes are sorted.
        for element in tall.bytes.as_chunks_mut::<8>().0.iter_mut().step_by(10) {
            *element = (f64::from_ne_bytes(*element) * scale).powi(3).to_ne_bytes();
        }
        let shapes: [(_, &[usize]); 3] = [(F64, &[rows, 2]), (F64, &[2]), (F64, &[2, 2])];
        check("svd of a tall matrix", shapes, |outs| linalg::svd(outs, &tall.see()?, NxAlgorithm::ThinSvd));
    }
    let n = 520;
    let (matrix, lengths) = (Data::random(F64, &[n, n]), [n]);
    let (square, a) = ([n, n], matrix.see().expect("the size"));
    check("eigh of a large matrix", [(F64, &lengths[..]), (F64, &square)], |outs| {
        linalg::eigh(outs, &a, 1e-10, NxAlgorithm::Current)
    });
    let shapes = [(F64, &square[..]), (F64, &lengths), (F64, &square)];
    check("svd of a large matrix", shapes, |outs| linalg::svd(outs, &a, NxAlgorithm::Current));
    check("lu of a large matrix", [(F64, &square[..]); 3], |outs| linalg::lu(outs, &a, NxAlgorithm::Current));
    let scaled = Data::of(F64, &square, &{
        let mut bytes = matrix.bytes.clone();
        for row in bytes.chunks_exact_mut(8 * n).step_by(7) {
            for element in row.as_chunks_mut::<8>().0 {
                *element = (f64::from_ne_bytes(*element) * 1e200).to_ne_bytes();
            }
        }
        bytes
    });
    check_one("determinant of a large matrix", F64, &[], |out| linalg::determinant(out, &scaled.see()?));
}

/// Operations on so many tensors or rows that what they know of each is large.
fn many_parts() {
    let one = Data::random(U8, &[1]);
    let tensors: Vec<_> = (0..20_000).map(|_| one.see().expect("small")).collect();
    check_one("concatenate of many tensors", U8, &[20_000], |out| concatenate(out, &tensors, 0));
    check_conv("conv with many filters", F32, [[1, 1, 3, 3], [9000, 1, 2, 2], [1, 9000, 2, 2]], 0);
}

/// Checks a convolution, given the shapes of the input, the kernel and the result.
fn check_conv(name: &str, dtype: DType, [input, kernel, shape]: [[usize; 4]; 3], padding: i64) {
    let (input, kernel) = (Data::random(dtype, &input), Data::random(dtype, &kernel));
    let axes = [0, 1, 2, 3];
    let options = Options {
        strides: &[1, 1],
        padding: &[(padding, padding); 2],
        input_dilation: &[1, 1],
        kernel_dilation: &[1, 1],
        feature_groups: 1,
        batch_groups: 1,
        input_permutation: &axes,
        kernel_permutation: &axes,
        output_permutation: &axes,
    };
    check_one(name, dtype, &shape, |out| conv(out, &input.see()?, &kernel.see()?, options));
}

/// A host of programs with the memory of this test.
struct Plain;

impl Host for Plain {
    type Block = Vec<u8>;

    fn allocate(&mut self, bytes: usize, _is_result: bool) -> Option<Vec<u8>> {
        let mut block = Vec::new();
        block.try_reserve_exact(bytes).ok()?;
        block.resize(bytes, 0);
        Some(block)
    }

    fn before(&mut self, _work: Work) -> Wish {
        Wish::Continue
    }
}

/// `check_one` of a program with one argument.
fn check_program(
    what: &str,
    regions: &[Region],
    literals: Vec<Vec<u8>>,
    argument: &Data,
    result: (DType, &[usize]),
) {
    let program = Program::new(regions, literals).unwrap_or_else(|error| panic!("{what}: {error}"));
    check_one(what, result.0, result.1, |out| {
        let arguments = [&argument.bytes[..]];
        let mut execution = Execution::new(&program, &arguments)?;
        let Outcome::Done(values) = execution.resume(&program, &arguments, &mut Plain)? else {
            panic!("{what} pauses");
        };
        out.bytes.copy_from_slice(values[0].bytes(&arguments, program.literals()));
        Ok(())
    });
}

fn programs() {
    let at = |slot, dtype, shape: &[usize]| Operand {
        place: Place::Slot(slot),
        dtype,
        shape: Shape::from_slice(shape),
    };
    let to = |slot, dtype, shape: &[usize]| Target { slot, dtype, shape: Shape::from_slice(shape) };
    let literal = |index, dtype| Operand { place: Place::Literal(index), dtype, shape: Shape::new() };
    // The sums of the rows of a matrix.
    let rows = Data::random(F32, &[20_000, 2]);
    let add = Step::Operation {
        operation: Operation::Binary(BinaryOp::Add),
        inputs: vec![at(0, F32, &[]), at(1, F32, &[])],
        outputs: vec![to(2, F32, &[])],
    };
    let body = Region {
        parameters: vec![(F32, Shape::new()); 2],
        slots: 3,
        steps: vec![add.clone()],
        results: vec![at(2, F32, &[])],
    };
    let fold = Step::Fold {
        body: 1,
        input: at(0, F32, &[20_000, 2]),
        initial: literal(0, F32),
        output: to(1, F32, &[20_000]),
    };
    let first = Region {
        parameters: vec![(F32, Shape::from_slice(&[20_000, 2]))],
        slots: 2,
        steps: vec![fold],
        results: vec![at(1, F32, &[20_000])],
    };
    check_program("fold", &[first, body.clone()], vec![vec![0; 4]], &rows, (F32, &[20_000]));
    // The gradient of a loop of many trips.
    let start = Data::random(F32, &[]);
    let forward = Region {
        parameters: vec![(F32, Shape::new())],
        slots: 2,
        steps: vec![Step::Operation {
            operation: Operation::Unary(UnaryOp::Sin, Math::Exact),
            inputs: vec![at(0, F32, &[])],
            outputs: vec![to(1, F32, &[])],
        }],
        results: vec![at(1, F32, &[])],
    };
    let reverse = ReverseLoop {
        forward: 1,
        backward: 2,
        trips: literal(0, S32),
        initial: vec![at(0, F32, &[])],
        gradients: vec![literal(1, F32)],
        invariants: vec![],
        outputs: vec![1],
    };
    let first = Region {
        parameters: vec![(F32, Shape::new())],
        slots: 2,
        steps: vec![Step::ReverseLoop(Box::new(reverse))],
        results: vec![at(1, F32, &[])],
    };
    let literals = vec![2000_i32.to_ne_bytes().to_vec(), 1_f32.to_ne_bytes().to_vec()];
    check_program("gradient of a loop", &[first, forward, body], literals, &start, (F32, &[]));
}

fn windows() {
    let input = Data::random(F32, &[30, 4000]);
    let one = Data::random(F32, &[]);
    for (taps, windows) in [([3, 5], [28, 3996]), ([2, 300], [29, 3701])] {
        let sliding =
            SlidingWindows { shape: &taps, padding: &[(0, 0); 2], strides: &[1; 2], dilations: &[1; 2] };
        for op in [WindowOp::Sum, WindowOp::Max] {
            check_one(op.name(), F32, &windows, |out| window(op, out, &input.see()?, sliding));
        }
        let source = Data::random(F32, &windows);
        check_one("window_scatter", F32, &[30, 4000], |out| {
            window_scatter(Choice::Max, out, &input.see()?, &source.see()?, &one.see()?, sliding)
        });
    }
    let (bytes, zero) = (Data::random(U8, &[100_000]), Data::random(U8, &[]));
    check_one("window_elements", U8, &[99_994, 7], |out| {
        let windows = Windows { sizes: &[7], strides: &[1], dilations: &[1], padding: &[(0, 0)] };
        window_elements(out, &bytes.see()?, &zero.see()?, windows)
    });
    for (dtype, input, kernel, shape, padding) in [
        (F32, [2, 8, 40, 40], [16, 8, 3, 3], [2, 16, 40, 40], 1),
        (F32, [1, 1, 300, 300], [1, 1, 5, 5], [1, 1, 296, 296], 0),
        (F64, [2, 8, 40, 40], [16, 8, 3, 3], [2, 16, 38, 38], 0),
        (C64, [2, 4, 30, 30], [8, 4, 3, 3], [2, 8, 28, 28], 0),
        (BF16, [2, 8, 40, 40], [16, 8, 3, 3], [2, 16, 38, 38], 0),
        (S32, [2, 8, 40, 40], [16, 8, 3, 3], [2, 16, 38, 38], 0),
        (F32, [4, 2000, 3, 3], [2, 2000, 2, 2], [4, 2, 2, 2], 0),
    ] {
        check_conv(&format!("conv of {dtype}"), dtype, [input, kernel, shape], padding);
    }
}

fn orders() {
    for (dtype, shape) in [
        (F32, [1, 100_000]),
        (F32, [500, 200]),
        (BF16, [2, 50_000]),
        (F64, [1, 60_000]),
        (S64, [3, 30_000]),
        (U8, [2, 60_000]),
        (U4, [2, 60_000]),
    ] {
        let input = Data::random(dtype, &shape);
        for axis in [0, 1] {
            let name = format!("{dtype} {shape:?} along {axis}");
            for direction in [Direction::Ascending, Direction::Descending] {
                check_one(&format!("sort of {name}"), dtype, &shape, |out| {
                    sort(out, &input.see()?, axis, direction)
                });
                check_one(&format!("argsort of {name}"), S64, &shape, |out| {
                    argsort(out, &input.see()?, axis, direction)
                });
            }
            check_one(&format!("cumulative_sum of {name}"), dtype, &shape, |out| {
                cumulative(CumulativeOp::ALL[0], out, &input.see()?, axis, axis == 0)
            });
        }
        for k in [10, shape[1] / 2] {
            check_one(&format!("top_k of {dtype}"), S32, &[shape[0], k], |out| top_k(out, &input.see()?, k));
        }
    }
}

fn elements() {
    let (a, b) = (Data::random(F32, &[300, 400]), Data::random(BF16, &[400]));
    for dtype in [F32, U4, C64] {
        check_one(&format!("as_type to {dtype}"), dtype, &[300, 400], |out| as_type(out, &a.see()?));
    }
    check_one("add", F32, &[300, 400], |out| binary(BinaryOp::ALL[0], out, &a.see()?, &b.see()?));
    let packed = Data::random(S4, &[300, 401]);
    for axes in [&[0][..], &[1], &[0, 1]] {
        let size = |axis: usize| if axes.contains(&axis) { None } else { Some([300, 400][axis]) };
        let shape: Vec<usize> = [0, 1].into_iter().filter_map(size).collect();
        for op in [ReduceOp::Sum, ReduceOp::Product, ReduceOp::ReduceMax] {
            check_one(op.name(), F32, &shape, |out| reduce(op, out, &a.see()?, axes));
        }
    }
    for axis in [0, 1] {
        let mut shape = [300, 400];
        shape[axis] = 1;
        check_one("argmax", S64, &shape, |out| {
            arg_reduce(ReduceOp::ReduceMax, out, &a.see()?, Some(axis), TieBreak::Low)
        });
    }
    check_one("transpose", F32, &[400, 300], |out| transpose(out, &a.see()?, &[1, 0]));
    check_one("transpose of s4", S4, &[401, 300], |out| transpose(out, &packed.see()?, &[1, 0]));
    check_one("reverse", F32, &[300, 400], |out| reverse(out, &a.see()?, &[1]));
    check_one("broadcast", F32, &[3, 300, 400], |out| broadcast(out, &a.see()?, &[1, 2]));
    check_one("concatenate", F32, &[300, 800], |out| concatenate(out, &[a.see()?, a.see()?], 1));
    let paddings = [Padding { low: 1, high: 2, interior: 1 }, Padding { low: -1, high: 2, interior: 0 }];
    let one = Data::random(S32, &[]);
    check_one("pad", F32, &[602, 401], |out| pad(out, &a.see()?, &one.see()?, &paddings));
    check_one("all_close", U8, &[], |out| {
        let tolerance = Tolerance { relative: 0.1, absolute: 0.1, equal_nan: false };
        all_close(out, &a.see()?, &b.see()?, tolerance)
    });
}

fn places() {
    for dtype in [F32, BF16, S32, C64] {
        let target = Data::random(dtype, &[300, 100]);
        let rows = Data::indices(300, &[1000, 1]);
        let updates = Data::random(F32, &[1000, 100]);
        let to = if dtype == S32 { S32 } else { dtype };
        let updates = if dtype == S32 { updates.converted(S32) } else { updates };
        for update in [Update::Add, Update::Put] {
            check_one(update.name(), to, &[300, 100], |out| {
                indexed(update, out, &target.see()?, &rows.see()?, &updates.see()?, &[0])
            });
            let (few, some) = (Data::indices(300, &[5, 1]), Data::random(dtype, &[5, 100]));
            check_one(update.name(), to, &[300, 100], |out| {
                indexed(update, out, &target.see()?, &few.see()?, &some.see()?, &[0])
            });
        }
        check_one("gather", dtype, &[1000, 100], |out| gather(out, &target.see()?, &rows.see()?, &[0]));
        let columns = Data::indices(100, &[1000, 1]);
        check_one("take", dtype, &[300, 1000, 1], |out| take(out, &target.see()?, &columns.see()?, 1));
        let along = Data::indices(300, &[200, 100]);
        check_one("take_along_axis", dtype, &[200, 100], |out| {
            take_along_axis(out, &target.see()?, &along.see()?, 0)
        });
        let slice = Data::random(F32, &[100, 50]);
        let slice = if dtype == S32 { slice.converted(S32) } else { slice };
        check_one("put_slice", dtype, &[300, 100], |out| {
            put_slice(out, &target.see()?, &[3, 7], &slice.see()?)
        });
    }
    let (large, rows) = (Data::random(F32, &[400_000]), Data::indices(400_000, &[300_000, 1]));
    let updates = Data::random(F32, &[300_000]);
    check_one("indexed_add of many", F32, &[400_000], |out| {
        indexed(Update::Add, out, &large.see()?, &rows.see()?, &updates.see()?, &[0])
    });
}

fn transforms() {
    for length in [1000, 1 << 14, 40_009, 1 << 17] {
        let input = Data::random(F32, &[3, length]);
        check_one(&format!("fft of {length}"), C64, &[3, length], |out| {
            fft(Transform::Forward, out, &input.see()?, (1, length), 0.0)
        });
        let columns = Data::random(C64, &[length, 2]);
        check_one(&format!("ifft of {length}"), C64, &[length, 2], |out| {
            fft(Transform::Inverse, out, &columns.see()?, (0, length), 0.0)
        });
    }
    let input = Data::random(C64, &[100, 120]);
    check_one("fft2", C64, &[100, 120], |out| {
        fft2(Transform::Forward, out, &input.see()?, [(0, 100), (1, 120)], 0.0)
    });
}

// One test: the limit holds for all threads.
#[test]
fn without_memory() {
    // Two threads may both find room for a buffer that only one of them gets.
    parallel::set_threads(1);
    let all: [(&str, fn()); 10] = [
        ("products", products),
        ("factorizations", factorizations),
        ("long_sides", long_sides),
        ("many_parts", many_parts),
        ("programs", programs),
        ("windows", windows),
        ("orders", orders),
        ("elements", elements),
        ("places", places),
        ("transforms", transforms),
    ];
    let chosen = std::env::var("FERROX_TEST_MEMORY_OF").ok();
    for (name, run) in all {
        if chosen.as_ref().is_none_or(|chosen| chosen == name) {
            run();
        }
    }
}
