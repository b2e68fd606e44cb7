//! The same bits on every instruction set and with any number of threads (what
//! instructions the gemm crate uses for large products is its own affair), and on
//! every processor: those that an x86-64 with AVX2 gave are recorded in
//! `fixtures/same_bits.txt`. `FERROX_UPDATE=1` records them again where results
//! are meant to change.
//!
//! One test alone in its process: the instruction set is chosen for all of it,
//! and the number of threads once.

mod common;

use common::number::{Number, cast, from_bytes, to_bytes, value};
use common::{Random, Source, output, process_of, views};
use ferrox_core::DType::{self, *};
use ferrox_core::exec::gemm::strategy::MAX_ORDERED_PRODUCTS;
use ferrox_core::exec::simd::{self, Level};
use ferrox_core::exec::threads::parallel;
use ferrox_core::ops::all_close::{Tolerance, all_close};
use ferrox_core::ops::binary::{BinaryOp, binary};
use ferrox_core::ops::cast::as_type;
use ferrox_core::ops::create::iota;
use ferrox_core::ops::cumulative::{CumulativeOp, cumulative};
use ferrox_core::ops::dot::{Side, dot};
use ferrox_core::ops::fft::{Transform, fft};
use ferrox_core::ops::indexed::{Update, indexed};
use ferrox_core::ops::reduce::{ReduceOp, TieBreak, arg_reduce, reduce};
use ferrox_core::ops::shape::transpose;
use ferrox_core::ops::ternary::{clip, select};
use ferrox_core::ops::unary::{UnaryOp, unary};
use ferrox_core::ops::window::{SlidingWindows, WindowOp, window};
use ferrox_core::ops::window_scatter::{Choice, window_scatter};
use ferrox_core::{Error, Output, Tensor};

/// Set for a process that only computes: the number of threads, and the file
/// to write the results to.
const THREADS: &str = "FERROX_TEST_THREADS";
const FILE: &str = "FERROX_TEST_FILE";

/// What was computed, and the bytes that came out, the same ones for every NaN.
type Results = Vec<(String, DType, Vec<u8>)>;

fn keep(
    results: &mut Results,
    what: String,
    dtype: DType,
    shape: &[usize],
    op: impl FnOnce(Output<'_>) -> Result<(), Error>,
) {
    match output(dtype, shape, op) {
        Ok(bits) => {
            let nan = cast(Number::Complex(f64::NAN, f64::NAN), dtype);
            let bits: Vec<u128> =
                bits.into_iter().map(|b| if value(b, dtype).is_nan() { nan } else { b }).collect();
            results.push((what, dtype, to_bytes(&bits, dtype)));
        }
        Err(Error::UnsupportedType { .. } | Error::Element { .. }) => {}
        Err(error) => panic!("{what}: {error}"),
    }
}

/// Operations of all families: all of them small, some large enough to be split.
fn compute() -> Results {
    let mut results = Results::new();
    let mut random = Random(1);
    for (shape, one_of) in [(&[1031][..], 1), (&[3, 100_003], 24), (&[700, 421], 24)] {
        for &dtype in &[U8, S4, S32, U64, F8, F16, BF16, F32, F64, C64, C128] {
            let mut chosen = || random.below(one_of) == 0;
            let binaries: Vec<BinaryOp> = BinaryOp::ALL.iter().copied().filter(|_| chosen()).collect();
            let unaries: Vec<UnaryOp> = UnaryOp::ALL.iter().copied().filter(|_| chosen()).collect();
            let targets: Vec<DType> = DType::ALL.iter().copied().filter(|_| chosen()).collect();
            let view = random.pick(&views(shape)).clone();
            let source = Source::random(dtype, view, &mut random);
            for op in binaries {
                two(&mut results, op, &source, &mut random);
            }
            let buffer = source.buffer();
            let tensor = source.see(&buffer);
            for op in unaries {
                for out in [dtype, F32, U8] {
                    keep(&mut results, format!("{} of {source}", op.name()), out, shape, |out| {
                        unary(op, out, &tensor)
                    });
                }
            }
            for to in targets {
                keep(&mut results, format!("as_type of {source}"), to, shape, |out| as_type(out, &tensor));
            }
            // With an infinity or NaN among the elements, sums would not depend
            // on the order.
            let fractions: Vec<Number> = (0..5003).map(|_| Number::Real(random.unit() * 9.0)).collect();
            let view = random.pick(&views(shape)[..5]).clone();
            folds(&mut results, &Source::new(dtype, view, &fractions));
            if random.below(one_of) < 2 {
                moves(&mut results, &source, &tensor);
            }
        }
    }
    multiply(&mut results, &mut random);
    slide(&mut results, &mut random);
    add(&mut results, &mut random);
    // Shared out by elements, and by rows.
    for rows in [1, 3] {
        let values: Vec<Number> = (0..991).map(|_| Number::Real(random.unit())).collect();
        let source = Source::new(F32, views(&[rows, 481 * 545]).swap_remove(0), &values);
        let buffer = source.buffer();
        keep(&mut results, format!("fft of {rows} rows"), C64, &[rows, 481 * 545], |out| {
            fft(Transform::Forward, out, &source.see(&buffer), (1, 481 * 545), 1e-10)
        });
    }
    results
}

/// Products: of integers, of floats too few for gemm, with vectors, and in parts and steps.
fn multiply(results: &mut Results, random: &mut Random) {
    // What is contracted: the columns of the left with the rows of the right, or with its columns.
    for (dtype, [batches, m, k, n], turned) in [
        (S32, [1, 130, 70, 90], false),
        (U8, [1, 33, 200, 65], false),
        (S64, [1, 64, 64, 64], false),
        (F32, [1, 16, 16, 16], false),
        (C64, [1, 7, 31, 16], false),
        (F32, [1, 301, 1111, 1], false),
        (F32, [1, 300, 1_120, 1], false),
        (F64, [1, 302, 77, 1], false),
        (F64, [1, 301, 88, 1], false),
        (C128, [1, 303, 70, 1], false),
        (F64, [1, 1, 700, 333], false),
        (F32, [1, 131, 1_300, 701], false),
        (F64, [1, 257, 600, 130], false),
        (C64, [1, 100, 1_100, 91], false),
        (F32, [1, 20_001, 17, 19], false),
        (F32, [1, 9, 2_000, 3_001], false),
        (F32, [1, 1, 1_003, 4_099], false),
        (BF16, [1, 1, 1_003, 4_099], false),
        (BF16, [1, 2_051, 1_003, 1], false),
        (BF16, [1, 9, 1_003, 3_001], false),
        (F32, [1, 100, 1_000, 100], false),
        (F32, [1, 256, 1_000, 256], false),
        (F32, [1, 17, 12_000, 33], false),
        (F32, [1, 20, 30_000, 20], true),
        (F64, [1, 65, 128, 387], true),
        (F32, [4, 100, 1_000, 100], false),
        (F64, [4, 40, 1_030, 60], true),
    ] {
        let mut side = |shape: &[usize]| {
            // Of infinities and NaN, all sums would be the same.
            let number = |random: &mut Random| match dtype.is_complex() {
                true => Number::Complex(random.unit(), random.unit() * 9.0),
                false => Number::Real(random.unit() * 9.0),
            };
            let numbers: Vec<Number> = (0..5003).map(|_| number(random)).collect();
            Source::new(dtype, views(shape)[0].clone(), &numbers)
        };
        let l = side(&[batches, m, k]);
        let r = side(&if turned { [batches, n, k] } else { [batches, k, n] });
        let (l_buffer, r_buffer) = (l.buffer(), r.buffer());
        let left = Side { tensor: &l_buffer, contract: &[2], batch: &[0] };
        let right = Side { tensor: &r_buffer, contract: &[if turned { 2 } else { 1 }], batch: &[0] };
        let with_vector = m == 1 || n == 1;
        let by_gemm = !dtype.is_integer() && !with_vector && m * k * n > MAX_ORDERED_PRODUCTS;
        let what = format!("{} of {l} and {r}", if by_gemm { "gemm" } else { "dot" });
        keep(results, what, dtype, &[batches, m, n], |out| dot(out, left, right));
    }
}

/// Updates of few elements and of more than a core's cache has totals for, several
/// for some of them.
fn add(results: &mut Results, random: &mut Random) {
    for (size, count) in [(70_001, 90_001), (200_003, 150_001)] {
        let [target, updates] = [size, count].map(|n| Source::random(F32, views(&[n])[0].clone(), random));
        let places: Vec<Number> = (0..count).map(|_| Number::Integer(random.below(size) as i128)).collect();
        let places = Source::new(S32, views(&[count, 1])[0].clone(), &places);
        let (to, at, by) = (target.buffer(), places.buffer(), updates.buffer());
        keep(results, format!("indexed_add of {updates} to {target}"), F32, &[size], |out| {
            indexed(Update::Add, out, &to, &at, &by, &[0])
        });
    }
}

/// Windows short and long, and scatters; long axes are split.
fn slide(results: &mut Results, random: &mut Random) {
    for (shape, size, strides) in [
        (vec![80_003], vec![3], vec![1]),
        (vec![40_003], vec![50], vec![1]),
        (vec![300, 121], vec![3, 20], vec![1, 2]),
        (vec![4, 60, 100], vec![1, 9, 2], vec![1, 1, 1]),
        (vec![700, 130], vec![1, 5], vec![1, 3]),
    ] {
        let ones = vec![1; shape.len()];
        let padding = vec![(1, 2); shape.len()];
        let over = SlidingWindows { shape: &size, padding: &padding, strides: &strides, dilations: &ones };
        let windows: Vec<usize> =
            (0..shape.len()).map(|a| (shape[a] + 3 - size[a]) / strides[a] + 1).collect();
        for (op, dtype) in [
            (WindowOp::Sum, F32),
            (WindowOp::Sum, F64),
            (WindowOp::Product, U16),
            (WindowOp::Max, F32),
            (WindowOp::Min, BF16),
        ] {
            let fractions: Vec<Number> = (0..5003).map(|_| Number::Real(random.unit() * 9.0)).collect();
            let source = Source::new(dtype, views(&shape)[0].clone(), &fractions);
            let tensor = source.buffer();
            keep(results, format!("{} of {source}", op.name()), dtype, &windows, |out| {
                window(op, out, &tensor, over)
            });
        }
        let input = Source::random(F32, views(&shape)[0].clone(), random);
        let source = Source::random(S16, views(&windows)[0].clone(), random);
        let init = Source::random(F32, views(&[])[0].clone(), random);
        let (input, source, init) = (input.buffer(), source.buffer(), init.buffer());
        keep(results, format!("scatter over {shape:?}"), F32, &shape, |out| {
            window_scatter(Choice::Max, out, &input, &source, &init, over)
        });
    }
}

/// A binary operation with another operand, of the same type half of the time.
fn two(results: &mut Results, op: BinaryOp, left: &Source, random: &mut Random) {
    let (dtype, shape) = (left.dtype, left.shape());
    let other = if random.below(2) == 0 { dtype } else { *random.pick(DType::ALL) };
    let right = random.pick(&views(shape)).clone();
    let right = Source::random(other, right, random);
    let out = match (op.is_predicate(), dtype.is_integer() && other.is_integer()) {
        (true, _) => U8,
        (_, true) => S64,
        _ if dtype.is_complex() || other.is_complex() => C64,
        _ => *random.pick(&[F32, F64, BF16]),
    };
    let (l, r) = (left.buffer(), right.buffer());
    let what = format!("{} of {left} and {right}", op.name());
    keep(results, what, out, shape, |out| binary(op, out, &left.see(&l), &right.see(&r)));
}

/// Reductions along each axis and over all.
fn folds(results: &mut Results, source: &Source) {
    let (dtype, shape) = (source.dtype, source.shape());
    let buffer = source.buffer();
    let tensor = &source.see(&buffer);
    for axis in 0..shape.len() {
        let kept: Vec<usize> = (0..shape.len()).filter(|&a| a != axis).map(|a| shape[a]).collect();
        for &op in ReduceOp::ALL {
            let what = format!("{} of {source} over {axis}", op.name());
            keep(results, what, dtype, &kept, |out| reduce(op, out, tensor, &[axis]));
        }
        for tie_break in [TieBreak::Low, TieBreak::High] {
            let what = format!("argmax of {source} along {axis}, {tie_break:?}");
            keep(results, what, S64, &kept, |out| {
                arg_reduce(ReduceOp::ReduceMax, out, tensor, Some(axis), tie_break)
            });
        }
    }
    let all: Vec<usize> = (0..shape.len()).collect();
    // Of large tensors one, which takes long enough.
    let operations = if shape.len() == 1 { CumulativeOp::ALL } else { &[CumulativeOp::Sum] };
    for &op in operations {
        for (axis, reverse) in [(0, true), (shape.len() - 1, false)] {
            keep(results, format!("{} of {source} along {axis}", op.name()), dtype, shape, |out| {
                cumulative(op, out, tensor, axis, reverse)
            });
        }
    }
    let tolerance = Tolerance { relative: 1e-5, absolute: 1e-8, equal_nan: true };
    keep(results, format!("all_close of {source}"), U8, &[], |out| all_close(out, tensor, tensor, tolerance));
    keep(results, format!("sum of {source}"), dtype, &[], |out| reduce(ReduceOp::Sum, out, tensor, &all));
}

fn moves(results: &mut Results, source: &Source, tensor: &Tensor<'_>) {
    let (dtype, shape) = (source.dtype, source.shape());
    let turned: Vec<usize> = shape.iter().rev().copied().collect();
    let axes: Vec<usize> = (0..shape.len()).rev().collect();
    keep(results, format!("transpose of {source}"), dtype, &turned, |out| transpose(out, tensor, &axes));
    keep(results, format!("select by {source}"), F32, shape, |out| select(out, tensor, tensor, tensor));
    keep(results, format!("clip of {source}"), dtype, shape, |out| clip(out, tensor, tensor, tensor));
    keep(results, "iota".into(), dtype, shape, |out| iota(out, None));
}

fn compare(how: &str, expected: &Results, got: &Results) {
    assert_eq!(expected.len(), got.len(), "{how}");
    for ((what, dtype, expected), (_, _, got)) in expected.iter().zip(got) {
        if expected == got {
            continue;
        }
        let size = expected.len() * 8 / dtype.bits();
        let (expected, got) = (from_bytes(expected, *dtype, size), from_bytes(got, *dtype, size));
        let position = expected.iter().zip(&got).position(|(a, b)| a != b).expect("the bytes differ");
        let show = |bits: u128| format!("{:?} ({bits:#x})", value(bits, *dtype));
        let (expected, got) = (show(expected[position]), show(got[position]));
        panic!("{how}, {what} -> {dtype}, element {position} of {size}: {expected} against {got}");
    }
}

/// A number that two lists of bytes rarely share (FNV-1a), the lowest byte of each part first.
fn digest(dtype: DType, bytes: &[u8]) -> u64 {
    let part = match dtype {
        _ if dtype.is_packed() || cfg!(target_endian = "little") => 1,
        _ if dtype.is_complex() => dtype.bits() / 16,
        _ => dtype.bits() / 8,
    };
    let step = |digest: u64, byte: &u8| (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.chunks(part).flat_map(|part| part.iter().rev()).fold(0xcbf2_9ce4_8422_2325, step)
}

/// Compares the results with those of the record.
fn compare_with_record(results: &Results) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/same_bits.txt");
    let digests: Vec<String> =
        results.iter().map(|(_, dtype, bytes)| format!("{:016x}", digest(*dtype, bytes))).collect();
    if std::env::var_os("FERROX_UPDATE").is_some() {
        std::fs::write(file, digests.join("\n") + "\n").expect("a file to write to");
    }
    let record = std::fs::read_to_string(file).expect("the record");
    let record: Vec<&str> = record.lines().collect();
    assert_eq!(record.len(), results.len(), "other results than are recorded in {file}");
    let differ =
        results.iter().zip(digests.iter().zip(record)).filter(|(_, (got, recorded))| got != recorded);
    let (mine, others): (Vec<_>, Vec<_>) = differ
        .map(|((what, dtype, _), _)| format!("{what} -> {dtype}"))
        .partition(|what| !is_of_another_crate(what));
    println!("same bits as recorded: all but {}, of which none is Ferrox's own: {others:#?}", others.len());
    assert!(mine.is_empty(), "{} results differ from those in {file}: {mine:#?}", mine.len());
}

/// Whether the result depends on the instructions that the crates gemm and rustfft choose.
fn is_of_another_crate(what: &str) -> bool {
    what.starts_with("fft") || what.starts_with("gemm")
}

/// The results as another process, with this number of threads, computes them.
fn with_threads(threads: usize, like: &Results) -> Results {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("same_bits_{threads}"));
    // Else a process that computes nothing would pass with an old one.
    let _ = std::fs::remove_file(&file);
    let child = process_of("instruction_sets_and_threads_give_the_same_bits")
        .env(THREADS, threads.to_string())
        .env(FILE, &file)
        .output()
        .expect("a process");
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let bytes = std::fs::read(&file).expect("its results");
    std::fs::remove_file(&file).expect("a file that was just read");
    let mut rest = &bytes[..];
    let results = like.iter().map(|(what, dtype, bytes)| {
        let (head, tail) = rest.split_at(bytes.len());
        rest = tail;
        (what.clone(), *dtype, head.to_vec())
    });
    let results = results.collect();
    assert!(rest.is_empty(), "more results than expected");
    results
}

#[test]
fn instruction_sets_and_threads_give_the_same_bits() {
    if let Ok(threads) = std::env::var(THREADS) {
        let threads = threads.parse().expect("a number");
        parallel::set_threads(threads);
        assert_eq!(parallel::threads(), threads);
        let bytes: Vec<u8> = compute().into_iter().flat_map(|(_, _, bytes)| bytes).collect();
        let file = std::env::var(FILE).expect("set with the threads");
        std::fs::write(file, bytes).expect("a file to write to");
        return;
    }
    let best = simd::level();
    let expected = compute();
    compare_with_record(&expected);
    let mut compared = 0;
    for level in [Level::Baseline, Level::V3, Level::V4] {
        simd::limit(level);
        if level < best {
            assert_eq!(simd::level(), level, "the test is of another level than it says");
            compare(&format!("{best:?} against {level:?}"), &expected, &compute());
            compared += 1;
        }
    }
    let bytes: usize = expected.iter().map(|(_, _, bytes)| bytes.len()).sum();
    println!("same bits: {} results of {bytes} bytes, {compared} lower levels than {best:?}", expected.len());
    // An emulator takes minutes for each.
    let numbers_of_threads =
        if std::env::var_os("FERROX_TEST_SHORT").is_some() { &[][..] } else { &[1, 3, 8] };
    for &threads in numbers_of_threads {
        compare(&format!("{threads} threads"), &expected, &with_threads(threads, &expected));
    }
}
