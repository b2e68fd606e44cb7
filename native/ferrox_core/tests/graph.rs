//! Programs: fused programs have the bits of programs without fusion, for every number of threads;
//! control flow, calls, pauses, memory, and what a program must not be.

mod common;

use std::fmt::Display;

use common::programs::{Builder, TestHost, add, f32s, host, literal, run, run_with, without_nan};
use common::{Random, process_of};
use ferrox_core::DType::{self, *};
use ferrox_core::exec::threads::parallel;
use ferrox_core::graph::source::{Branch, Clause, Operand, Place, Region, Slot, Step, Target};
use ferrox_core::graph::{Execution, Operation, Program, Start, set_machine_code};
use ferrox_core::layout::{self, Shape};
use ferrox_core::ops::binary::BinaryOp;
use ferrox_core::ops::indexed::Update;
use ferrox_core::ops::math::Math;
use ferrox_core::ops::pad::Padding;
use ferrox_core::ops::reduce::{ReduceOp, TieBreak};
use ferrox_core::ops::sort::Direction;
use ferrox_core::ops::unary::UnaryOp;
use ferrox_core::{Error, Fault, tensor};

/// A shape that two shapes broadcast to.
fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let size =
        |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis]);
    (0..rank)
        .map(|axis| match (size(a, axis), size(b, axis)) {
            (a, b) if a == b || b == 1 => Some(a),
            (1, b) => Some(b),
            _ => None,
        })
        .collect()
}

/// The bytes of small numbers of a type: integers, or multiples of 0.37 in f32 and f64.
fn small_numbers(random: &mut Random, dtype: DType, shape: &[usize]) -> Vec<u8> {
    let length = tensor::byte_size("test", dtype, shape).expect("fits");
    let numbers = (0..length / dtype.width()).flat_map(|_| {
        let number = random.below(7) as i32 - if dtype == U8 { 0 } else { 3 };
        match dtype {
            F32 => (number as f32 * 0.37).to_ne_bytes().to_vec(),
            F64 => (f64::from(number) * 0.37).to_ne_bytes().to_vec(),
            S32 => number.to_ne_bytes().to_vec(),
            BF16 => half::bf16::from_f32(number as f32).to_ne_bytes().to_vec(),
            _ => vec![number as u8],
        }
    });
    numbers.collect()
}

/// A random program of elementwise operations and folds, and its arguments.
fn random_program(seed: u64) -> (Region, Vec<Vec<u8>>) {
    let random = &mut Random(seed);
    let families: [[&[usize]; 8]; 5] = [
        [&[50, 120], &[50, 1], &[120], &[1, 120], &[], &[3, 50, 120], &[6000], &[50, 120, 3]],
        // Short rows.
        [&[900, 9], &[900, 1], &[9], &[1, 9], &[], &[30, 30, 9], &[30, 1, 9], &[30, 30, 1]],
        // Channels of images.
        [
            &[4, 16, 12, 12],
            &[16, 1, 1],
            &[1, 16, 1, 1],
            &[4, 1, 1, 1],
            &[16, 12, 12],
            &[12, 12],
            &[],
            &[4, 16, 1, 1],
        ],
        // Pairs of points.
        [&[70, 1, 8], &[1, 70, 8], &[70, 70, 1], &[70, 1, 1], &[1, 70, 1], &[8], &[70, 70, 8], &[70, 8]],
        // Many rows.
        [&[600, 700], &[1, 700], &[600, 1], &[420_000], &[], &[42_000, 10], &[10], &[42_000, 1]],
    ];
    // The largest one less often.
    let shapes = *random.pick(if seed.is_multiple_of(8) { &families } else { &families[..4] });
    let mut builder = Builder::default();
    let mut values = Vec::new();
    let mut arguments = Vec::new();
    for _ in 0..3 {
        let dtype = *random.pick(&[F32, F32, F64, S32, BF16, U8]);
        let shape = *random.pick(&shapes);
        values.push(builder.parameter(dtype, shape));
        arguments.push(small_numbers(random, dtype, shape));
    }
    for _ in 0..random.below(14) + 2 {
        let pick = |random: &mut Random| {
            let last = values.len() - 1;
            values[last - random.below(values.len().min(5))].clone()
        };
        let (a, b, c) = (pick(random), pick(random), pick(random));
        let float = if a.dtype.is_float() { a.dtype } else { F32 };
        let value = match random.below(16) {
            14 | 15 if a.shape.iter().any(|&size| size > 1) => {
                let number = builder.add(Operation::AsType, &[&c], a.dtype, &c.shape);
                moved(random, &mut builder, &a, &number)
            }
            10 if !a.shape.is_empty() => {
                // Differences of neighbours along an axis.
                let axis = random.below(a.shape.len());
                if a.shape[axis] < 3 || layout::size(&a.shape).is_none_or(|size| size < 3) {
                    continue;
                }
                let distance = random.below(2) + 1;
                let mut lengths = a.shape.clone();
                lengths[axis] -= distance;
                let starts = |first: usize| -> Vec<Start> {
                    let start = |other| Start::At(if other == axis { first } else { 0 });
                    (0..a.shape.len()).map(start).collect()
                };
                let strides = Shape::from_elem(1, a.shape.len());
                let mut part = |first: usize| {
                    let (starts, lengths) = (starts(first), lengths.clone());
                    let slice =
                        Operation::Slice { starts, lengths: lengths.clone(), strides: strides.clone() };
                    builder.add(slice, &[&a], a.dtype, &lengths)
                };
                let (left, right) = (part(0), part(distance));
                builder.add(Operation::Binary(BinaryOp::Max), &[&left, &right], a.dtype, &lengths)
            }
            11 if !a.shape.is_empty() => {
                let axes = (0..a.shape.len()).filter(|_| random.below(2) == 0).collect();
                builder.add(Operation::Reverse(axes), &[&a], a.dtype, &a.shape)
            }
            13 if a.shape.last().is_some_and(|&last| last > 1) => {
                let (axis, op) =
                    (a.shape.len() - 1, *random.pick(&[ReduceOp::ReduceMax, ReduceOp::ReduceMin]));
                let operation =
                    Operation::ArgReduce(op, Some(axis), *random.pick(&[TieBreak::Low, TieBreak::High]));
                let index = builder.add(operation, &[&a], S32, &a.shape[..axis]);
                let shape = [&a.shape[..axis], &[1]].concat();
                Operand { shape: Shape::from_slice(&shape), ..index }
            }
            12 if a.shape.len() > 1 => {
                // Most often the first axes.
                let mut axes: Shape = (0..a.shape.len()).collect();
                let last = random.below(axes.len() - 1);
                axes.swap(last, (last + 1) % a.shape.len());
                let shape: Vec<usize> = axes.iter().map(|&axis| a.shape[axis]).collect();
                builder.add(Operation::Transpose(axes), &[&a], a.dtype, &shape)
            }
            0 => builder.add(
                Operation::Unary(UnaryOp::Tanh, *random.pick(&[Math::Exact, Math::Fast])),
                &[&a],
                float,
                &a.shape,
            ),
            1 => builder.add(Operation::Unary(UnaryOp::Negate, Math::Exact), &[&a], a.dtype, &a.shape),
            2 => builder.add(Operation::AsType, &[&a], *random.pick(&[F32, F64, S32]), &a.shape),
            3 if a.shape.len() > 1 || layout::size(&a.shape).is_some_and(|size| size > 100_000) => {
                // A fold of the first axes, or of all.
                let op = *random.pick(&[ReduceOp::Sum, ReduceOp::Product, ReduceOp::Any]);
                let count = random.below(a.shape.len()) + 1;
                let dtype = if op == ReduceOp::Any { U8 } else { a.dtype };
                let shape = a.shape[count..].to_vec();
                builder.add(Operation::Reduce(op, (0..count).collect()), &[&a], dtype, &shape)
            }
            3 | 4 if !a.shape.is_empty() => {
                let op = *random.pick(&[ReduceOp::Sum, ReduceOp::ReduceMax, ReduceOp::All]);
                let last = a.shape.len() - 1;
                let first = random.below(last + 1);
                let keeps = random.below(2) == 0;
                let mut shape = a.shape.to_vec();
                if keeps {
                    shape[first..].fill(1);
                } else {
                    shape.truncate(first);
                }
                let dtype = if op == ReduceOp::All { U8 } else { a.dtype };
                let sum = builder.add(Operation::Reduce(op, (first..=last).collect()), &[&a], dtype, &shape);
                // The same value with another shape, as a reshape gives it.
                let mut reshaped = a.shape.to_vec();
                reshaped[first..].fill(1);
                Operand { shape: Shape::from_slice(&reshaped), ..sum }
            }
            5 => {
                let Some(shape) = broadcast(&a.shape, &b.shape).and_then(|shape| broadcast(&shape, &c.shape))
                else {
                    continue;
                };
                builder.add(Operation::Select, &[&a, &b, &c], b.dtype, &shape)
            }
            _ => {
                let Some(shape) = broadcast(&a.shape, &b.shape) else { continue };
                let op = *random.pick(&[BinaryOp::Add, BinaryOp::Multiply, BinaryOp::Max, BinaryOp::Less]);
                let dtype = match op {
                    BinaryOp::Less => U8,
                    _ if a.dtype == b.dtype => a.dtype,
                    _ => F64,
                };
                builder.add(Operation::Binary(op), &[&a, &b], dtype, &shape)
            }
        };
        values.push(value);
    }
    let mut results = vec![values[values.len() - 1].clone()];
    for _ in 0..random.below(3) {
        results.push(random.pick(&values).clone());
    }
    (builder.region(&results.iter().collect::<Vec<_>>()), arguments)
}

/// A tensor whose elements are moved along an axis that has several: around, or with a number, if that is one, in the
/// place of those that were there.
fn moved(random: &mut Random, builder: &mut Builder, tensor: &Operand, number: &Operand) -> Operand {
    let (shape, dtype) = (tensor.shape.clone(), tensor.dtype);
    let axes: Vec<usize> = (0..shape.len()).filter(|&axis| shape[axis] > 1).collect();
    let axis = *random.pick(&axes);
    let distance = random.below(shape[axis] - 1) + 1;
    let mut part = |start: usize, end: usize| {
        let (mut starts, mut lengths) = (vec![Start::At(0); shape.len()], shape.clone());
        (starts[axis], lengths[axis]) = (Start::At(start), end - start);
        let strides = Shape::from_elem(1, shape.len());
        builder.add(
            Operation::Slice { starts, lengths: lengths.clone(), strides },
            &[tensor],
            dtype,
            &lengths,
        )
    };
    let rest = part(distance, shape[axis]);
    if layout::size(&number.shape) == Some(1) {
        let mut padding = vec![Padding { low: 0, high: 0, interior: 0 }; shape.len()];
        let low = random.below(distance + 1);
        padding[axis] = Padding { low: low as i64, high: (distance - low) as i64, interior: 0 };
        let number = Operand { shape: Shape::new(), ..number.clone() };
        return builder.add(Operation::Pad(padding), &[&rest, &number], dtype, &shape);
    }
    let first = part(0, distance);
    let parts = if random.below(2) == 0 { [&rest, &first] } else { [&first, &rest] };
    builder.add(Operation::Concatenate(axis), &parts, dtype, &shape)
}

/// The number of threads of a process that only computes.
const THREADS: &str = "FERROX_TEST_THREADS";

/// Runs the test `name` in processes of its own with 1, 2 and 4 threads, each of which calls `check`. The one
/// with four has no machine code.
fn with_threads(name: &str, check: impl FnOnce()) {
    if let Ok(threads) = std::env::var(THREADS) {
        parallel::set_threads(threads.parse().expect("a number"));
        set_machine_code(threads != "4");
        return check();
    }
    for threads in ["1", "2", "4"] {
        let status = process_of(name).arg("--nocapture").env(THREADS, threads).status().expect("a process");
        assert!(status.success(), "{threads} threads");
    }
}

/// A value that is made with machine code, and one that is made without.
fn with_and_without_machine_code<T>(make: impl Fn() -> T) -> [T; 2] {
    let with = make();
    set_machine_code(false);
    let without = make();
    set_machine_code(true);
    [with, without]
}

#[test]
fn fused_programs_have_the_bits_of_programs_without_fusion() {
    with_threads("fused_programs_have_the_bits_of_programs_without_fusion", || {
        let mut fused_programs = 0;
        for seed in 0..1_600 {
            let (region, arguments) = random_program(seed);
            let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
            let regions = [region];
            let fused = Program::new(&regions, Vec::new()).expect("a program");
            let plain = Program::without_fusion(&regions, Vec::new()).expect("a program");
            fused_programs += usize::from(format!("{fused:?}").contains("Cluster"));
            let (ours, theirs) = (run(&fused, &arguments), run(&plain, &arguments));
            assert!(ours == theirs, "program {seed}: {regions:?}");
        }
        println!("{fused_programs} programs were fused");
        assert!(fused_programs > 600, "{fused_programs}");
    });
}

/// Results that are copied past the cache: one that the cluster reads again, and another.
#[test]
fn results_that_are_larger_than_the_caches() {
    let shape = [10, 1 << 20];
    let mut builder = Builder::default();
    let x = builder.parameter(F32, &shape);
    let sum = builder.add(add(), &[&x, &x], F32, &shape);
    let product = builder.add(Operation::Binary(BinaryOp::Multiply), &[&sum, &x], F32, &shape);
    let regions = [builder.region(&[&sum, &product])];
    let fused = Program::new(&regions, Vec::new()).expect("a program");
    assert!(fused.to_string().contains("together"), "{fused}");
    let numbers: Vec<f32> = (0..10 << 20).map(|i| (i % 1000) as f32).collect();
    let expected = [numbers.iter().map(|x| x + x).collect(), numbers.iter().map(|x| (x + x) * x).collect()];
    let results = run(&fused, &[&f32s(&numbers)]).expect("results");
    assert!(results == expected.map(|numbers: Vec<f32>| f32s(&numbers)));
}

/// The fused program of a region, whose results have the bits of the program without fusion.
fn fused_alike(region: Region, literals: Vec<Vec<u8>>, arguments: &[&[u8]]) -> Program {
    let regions = [region];
    let fused = Program::new(&regions, literals.clone()).expect("a program");
    let plain = Program::without_fusion(&regions, literals).expect("a program");
    assert!(run(&fused, arguments) == run(&plain, arguments), "{fused}");
    fused
}

/// The product of two operands, both of which are transposes of parameters, or its transpose; and
/// arguments.
fn random_product(random: &mut Random) -> (Region, Vec<Vec<u8>>) {
    let dtype = *random.pick(&[F32, F32, F32, F64, C64, BF16, S32]);
    let most = *random.pick(&[5, 20, 25]);
    let sizes = |random: &mut Random, count: usize| -> Vec<usize> {
        (0..count).map(|_| random.below(most) + 1).collect()
    };
    let batch_rank = random.below(3);
    let batch: Vec<usize> = (0..batch_rank).map(|_| random.below(3) + 1).collect();
    let contract_rank = random.below(2) + 1;
    let mut contract = sizes(random, contract_rank);
    if most == 5 {
        // Long sums, of a few results.
        contract[0] *= 60;
    }
    let mut builder = Builder::default();
    let mut arguments = Vec::new();
    let mut kept = Vec::new();
    // The axes of an operand: those of the batch, those that it keeps, those that are summed over.
    let sides = [(); 2].map(|()| {
        let rank = random.below(2) + 1;
        let own = sizes(random, rank);
        let whole = [&batch[..], &own, &contract].concat();
        let mut order: Vec<usize> = (0..whole.len()).collect();
        for _ in 0..random.below(3) {
            let (a, b) = (random.below(order.len()), random.below(order.len()));
            order.swap(a, b);
        }
        // The axis of the operand with the number `i` of those above.
        let axis = |i: usize| order.iter().position(|&axis| axis == i).expect("there");
        let shape: Vec<usize> = order.iter().map(|&axis| whole[axis]).collect();
        let mut axes: Shape = (0..shape.len()).collect();
        for _ in 0..random.below(3) {
            let (a, b) = (random.below(axes.len()), random.below(axes.len()));
            axes.swap(a, b);
        }
        // The parameter is such that the transpose has `shape`.
        let mut from = vec![0; shape.len()];
        axes.iter().zip(&shape).for_each(|(&axis, &size)| from[axis] = size);
        let parameter = builder.parameter(dtype, &from);
        let length = tensor::byte_size("test", dtype, &from).expect("fits");
        arguments.push(match dtype {
            F32 | C64 => {
                f32s(&(0..length / 4).map(|_| random.below(1 << 20) as f32 * 1e-5).collect::<Vec<_>>())
            }
            F64 => {
                (0..length / 8).flat_map(|_| (random.below(1 << 20) as f64 * 1e-5).to_ne_bytes()).collect()
            }
            dtype => small_numbers(random, dtype, &from),
        });
        let start = whole.len() - contract.len();
        let summed: Shape = (start..whole.len()).map(axis).collect();
        let batch: Shape = (0..batch.len()).map(axis).collect();
        // The order in which the result has the axes that the operand keeps.
        let mut own: Vec<usize> = (batch.len()..start).map(axis).collect();
        own.sort_unstable();
        let own: Vec<usize> = own.iter().map(|&axis| shape[axis]).collect();
        (parameter, axes, shape, summed, batch, own)
    });
    let sides = sides.map(|(parameter, axes, shape, summed, batch, own)| {
        let operand = builder.add(Operation::Transpose(axes), &[&parameter], dtype, &shape);
        if random.below(6) == 0 {
            kept.push(operand.clone());
        }
        (operand, summed, batch, own)
    });
    let [(left, left_summed, left_batch, left_free), (right, right_summed, right_batch, right_free)] = sides;
    let shape = [&batch[..], &left_free, &right_free].concat();
    let operation =
        Operation::Dot { contract: [left_summed, right_summed], batch: [left_batch, right_batch] };
    let product = builder.add(operation, &[&left, &right], dtype, &shape);
    let mut axes: Shape = (0..shape.len()).collect();
    match random.below(4) {
        0 => {}
        1 | 2 => axes[batch.len()..].rotate_left(left_free.len()),
        _ => axes.rotate_left(1),
    }
    let turned: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
    let turned = builder.add(Operation::Transpose(axes), &[&product], dtype, &turned);
    kept.push(turned);
    if random.below(6) == 0 {
        kept.push(product);
    }
    (builder.region(&kept.iter().collect::<Vec<_>>()), arguments)
}

#[test]
fn products_of_transposes_have_the_bits_of_transposed_copies() {
    with_threads("products_of_transposes_have_the_bits_of_transposed_copies", || {
        let [mut operands, mut results] = [0; 2];
        for seed in 0..6_000 {
            let (region, arguments) = random_product(&mut Random(seed));
            let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
            let program = fused_alike(region, Vec::new(), &arguments).to_string();
            let transposes = program.matches("= transpose(").count();
            operands += usize::from(transposes < 2);
            results += usize::from(transposes == 0);
        }
        println!("{operands} programs without transposes of operands, {results} without any");
        assert!(operands > 700 && results > 100, "{operands} and {results}");
    });
}

/// Products that read the same transpose, of which one could read its operand only if the terms of its sums
/// were not next to each other, or on one side alone.
#[test]
fn a_transpose_is_read_in_place_by_all_products_or_by_none() {
    let mut builder = Builder::default();
    let [x, y] = [(); 2].map(|()| builder.parameter(F32, &[16, 500]));
    let [left, right] = [&x, &y]
        .map(|x| builder.add(Operation::Transpose(Shape::from_slice(&[1, 0])), &[x], F32, &[500, 16]));
    let pairs = [(&left, &left), (&left, &right), (&right, &x), (&y, &left)];
    let contract = |operand: &Operand| Shape::from_elem(usize::from(operand.shape[1] == 500), 1);
    let mut products = Vec::new();
    for count in 1..=pairs.len() {
        let mut builder = builder.clone();
        for &(a, b) in &pairs[..count] {
            let operation =
                Operation::Dot { contract: [contract(a), contract(b)], batch: Default::default() };
            products.push(builder.add(operation, &[a, b], F32, &[16, 16]));
        }
        let region = builder.region(&products.iter().collect::<Vec<_>>());
        let numbers = |seed: u64| {
            let random = &mut Random(seed);
            f32s(&(0..16 * 500).map(|_| random.unit() as f32).collect::<Vec<_>>())
        };
        fused_alike(region, Vec::new(), &[&numbers(1), &numbers(2)]);
        products.clear();
    }
}

/// What is left of the mean of columns, which a fold reads, and what comes after it: no memory is written for
/// it.
#[test]
fn cheap_values_are_computed_again() {
    const ROWS: usize = 1 << 16;
    let shape = [ROWS, 8];
    let mut builder = Builder::default();
    let [x, mean] = [&shape[..], &[1, 8]].map(|shape| builder.parameter(F32, shape));
    let binary = Operation::Binary;
    let rest = builder.add(binary(BinaryOp::Subtract), &[&x, &mean], F32, &shape);
    let scaled = builder.add(binary(BinaryOp::Multiply), &[&rest, &mean], F32, &shape);
    let square = builder.add(binary(BinaryOp::Multiply), &[&scaled, &rest], F32, &shape);
    let sum = Operation::Reduce(ReduceOp::Sum, Shape::from_slice(&[0]));
    let sum = builder.add(sum, &[&square], F32, &[1, 8]);
    let quotient = builder.add(binary(BinaryOp::Divide), &[&scaled, &sum], F32, &shape);
    let region = builder.region(&[&quotient]);
    let numbers = |count: usize| f32s(&(0..count).map(|i| (i % 1000) as f32 * 0.37).collect::<Vec<_>>());
    let arguments = [numbers(ROWS * 8), numbers(8)];
    let program = fused_alike(region, Vec::new(), &arguments.each_ref().map(|bytes| &bytes[..])).to_string();
    assert_eq!(program.matches("= f32 subtract(").count(), 2, "{program}");
    let stored = program.lines().filter(|line| line.contains("f32[65536][8]") && line.contains(" = "));
    let stored: Vec<&str> = stored.filter(|line| !line.contains("together(%0 f32[65536][8]")).collect();
    assert!(stored.is_empty(), "{stored:#?}");
    let results = program.lines().filter(|line| line.contains("= together(")).count();
    assert!(results == 2 && program.contains("%6 f32[65536][8] = together("), "{program}");
}

/// Operations that read a cluster's values join it, also where another step needs one of these before.
#[test]
fn later_operations_join_a_cluster_before_it_is_needed() {
    const ROWS: usize = 1 << 14;
    let shape = [ROWS, 16];
    let mut builder = Builder::default();
    let [x, scale] = [&shape[..], &[1, 16]].map(|shape| builder.parameter(F32, shape));
    let (binary, reduce) =
        (Operation::Binary, |axes: &[usize]| Operation::Reduce(ReduceOp::Sum, Shape::from_slice(axes)));
    let scaled = builder.add(binary(BinaryOp::Multiply), &[&x, &scale], F32, &shape);
    let root = builder.add(Operation::Unary(UnaryOp::Sqrt, Math::Exact), &[&scaled], F32, &shape);
    let sum = builder.add(reduce(&[0]), &[&root], F32, &[1, 16]);
    // Needs the end of the cluster.
    let inverse = builder.add(binary(BinaryOp::Divide), &[&scale, &sum], F32, &[1, 16]);
    let square = builder.add(binary(BinaryOp::Multiply), &[&root, &scaled], F32, &shape);
    let squares = builder.add(reduce(&[0]), &[&square], F32, &[1, 16]);
    // Depends on the end of the cluster.
    let result = builder.add(binary(BinaryOp::Add), &[&squares, &inverse], F32, &[1, 16]);
    let region = builder.region(&[&result]);
    let numbers = |count: usize| f32s(&(0..count).map(|i| (i % 1000) as f32 * 0.37).collect::<Vec<_>>());
    let arguments = [numbers(ROWS * 16), numbers(16)];
    let program = fused_alike(region, Vec::new(), &arguments.each_ref().map(|bytes| &bytes[..])).to_string();
    assert_eq!(program.matches("= together(").count(), 1, "{program}");
    assert!(!program.contains("f32[16384][16] = "), "{program}");
}

/// Operands whose rows are repeated after numbers of rows of which none divides the other, between them a
/// reshape.
#[test]
fn operands_repeat_after_different_numbers_of_rows() {
    let mut builder = Builder::default();
    let x = builder.parameter(F32, &[3, 4, 1024]);
    let y = builder.parameter(F32, &[4, 1024]);
    let z = builder.parameter(F32, &[3, 1024]);
    let sum = builder.add(add(), &[&x, &y], F32, &[3, 4, 1024]);
    let sum = Operand { shape: Shape::from_slice(&[4, 3, 1024]), ..sum };
    let result = builder.add(add(), &[&sum, &z], F32, &[4, 3, 1024]);
    let regions = [builder.region(&[&result])];
    let fused = Program::new(&regions, Vec::new()).expect("a program");
    assert!(fused.to_string().contains("together"), "{fused}");
    let numbers = |rows: usize| (0..rows * 1024).map(|i| i as f32).collect::<Vec<_>>();
    let (x, y, z) = (numbers(12), numbers(4), numbers(3));
    let expected: Vec<f32> = (0..x.len()).map(|i| x[i] + y[i % y.len()] + z[i % z.len()]).collect();
    assert_eq!(run(&fused, &[&f32s(&x), &f32s(&y), &f32s(&z)]), Ok(vec![f32s(&expected)]));
}

/// Folds of rows whose result has as many elements as there are rows, and operands that are no values of
/// their slots.
#[test]
fn results_of_folds_are_read_after_their_cluster() {
    let square = [600, 600];
    let column_sums = |read: &[usize], dtype: DType| -> Region {
        let mut builder = Builder::default();
        let x = builder.parameter(F32, &square);
        let y = builder.add(add(), &[&x, &x], F32, &square);
        let y = Operand { dtype, shape: Shape::from_slice(read), ..y };
        let kept = &read[1..];
        let sums = builder.add(Operation::Reduce(ReduceOp::Sum, Shape::from_slice(&[0])), &[&y], dtype, kept);
        let doubled = builder.add(add(), &[&sums, &sums], dtype, kept);
        builder.region(&[&doubled])
    };
    let x = f32s(&(0..360_000).map(|i| (i % 977) as f32 * 0.01).collect::<Vec<_>>());
    let fused = fused_alike(column_sums(&square, F32), Vec::new(), &[&x]);
    assert!(fused.to_string().contains("rows each"), "{fused}");
    // Without columns, with twice as many, and of twice the width.
    for (shape, dtype) in [(&[600, 0][..], F32), (&[600, 1_200], F32), (&square, F64)] {
        let regions = [column_sums(shape, dtype)];
        let fused = Program::new(&regions, Vec::new());
        let plain = Program::without_fusion(&regions, Vec::new());
        assert_eq!(fused.map(|_| ()), plain.map(|_| ()), "{shape:?}");
    }
}

/// A mask of the last axes is computed before a cluster of all axes, which goes on.
#[test]
fn a_smaller_cluster_does_not_end_a_larger_one() {
    let (small, large) = ([200, 200], [4, 200, 200]);
    let mut builder = Builder::default();
    let x = builder.parameter(F32, &large);
    let y = builder.parameter(F32, &small);
    let mask = builder.add(Operation::Binary(BinaryOp::Less), &[&y, &literal(0, F32, &[])], U8, &small);
    let half = builder.add(Operation::Binary(BinaryOp::Divide), &[&x, &literal(0, F32, &[])], F32, &large);
    let chosen = builder.add(Operation::Select, &[&mask, &half, &literal(0, F32, &[])], F32, &large);
    let sum =
        builder.add(Operation::Reduce(ReduceOp::Sum, Shape::from_slice(&[2])), &[&chosen], F32, &[4, 200]);
    let (x, y) = (f32s(&(0..160_000).map(|i| i as f32 * 0.01).collect::<Vec<_>>()), f32s(&[1.0; 40_000]));
    let fused = fused_alike(builder.region(&[&sum]), vec![f32s(&[2.0])], &[&x, &y]);
    assert_eq!(fused.to_string().matches("together").count(), 1, "{fused}");
}

/// Folds of all elements and of columns of a value that is computed with them.
#[test]
fn clusters_fold_rows_by_blocks() {
    for (rows, columns) in [(300, 1_000), (40_000, 10), (299_999, 1)] {
        let shape = [rows, columns];
        let mut builder = Builder::default();
        let x = builder.parameter(F32, &shape);
        let square = builder.add(Operation::Binary(BinaryOp::Multiply), &[&x, &x], F32, &shape);
        let tanh = builder.add(Operation::Unary(UnaryOp::Tanh, Math::Exact), &[&square], F32, &shape);
        let sum = |axes: &[usize]| Operation::Reduce(ReduceOp::Sum, Shape::from_slice(axes));
        let total = builder.add(sum(&[0, 1]), &[&tanh], F32, &[]);
        let other = builder.add(sum(&[0]), &[&square], F32, &[columns]);
        let numbers: Vec<f32> = (0..rows * columns).map(|i| (i % 1_013) as f32 * 1e-3).collect();
        let fused = fused_alike(builder.region(&[&total, &other]), Vec::new(), &[&f32s(&numbers)]);
        assert!(fused.to_string().contains("rows each"), "{fused}");
    }
}

/// Differences of all pairs of rows, and of neighbours, are computed without the tensors between.
#[test]
fn clusters_read_repeated_rows_and_parts_in_place() {
    let mut builder = Builder::default();
    let x = builder.parameter(F32, &[300, 20]);
    let (rows, columns) = ([300, 1, 20], [1, 300, 20]);
    let [left, right] =
        [rows, columns].map(|shape| Operand { shape: Shape::from_slice(&shape), ..x.clone() });
    let shape = [300, 300, 20];
    let difference = builder.add(Operation::Binary(BinaryOp::Subtract), &[&left, &right], F32, &shape);
    let square = builder.add(Operation::Binary(BinaryOp::Multiply), &[&difference, &difference], F32, &shape);
    let sum = Operation::Reduce(ReduceOp::Sum, Shape::from_slice(&[2]));
    let distances = builder.add(sum, &[&square], F32, &[300, 300]);
    let mut part = |first: usize| {
        let lengths = Shape::from_slice(&[299, 300]);
        let strides = Shape::from_slice(&[1, 1]);
        let starts = vec![Start::At(first), Start::At(0)];
        let slice = Operation::Slice { starts, lengths, strides };
        builder.add(slice, &[&distances], F32, &[299, 300])
    };
    let (upper, lower) = (part(0), part(1));
    let neighbours = builder.add(Operation::Binary(BinaryOp::Subtract), &[&upper, &lower], F32, &[299, 300]);
    let numbers: Vec<f32> = (0..6_000).map(|i| (i * i % 1_013) as f32 * 0.37).collect();
    let fused = fused_alike(builder.region(&[&neighbours]), Vec::new(), &[&f32s(&numbers)]);
    assert_eq!(fused.to_string().matches("together").count(), 2, "{fused}");
    assert!(!fused.to_string().contains("slice"), "{fused}");
}

/// A stencil: parts of one array, in runs of any length, beside an array that is read as a whole.
#[test]
fn clusters_read_runs_of_parts_in_place() {
    let mut random = Random(9);
    for [planes, rows, columns] in
        [[1, 254, 254], [1, 90, 131], [1, 2_000, 128], [3, 40, 300], [5, 9, 129], [1, 130, 33], [2, 3, 5_000]]
    {
        let mut builder = Builder::default();
        let whole = [planes + 2, rows + 2, columns + 2];
        let shape = [planes, rows, columns];
        let x = builder.parameter(F32, &whole);
        let y = builder.parameter(F32, &shape);
        let row = builder.parameter(F32, &[1, 1, columns]);
        let mut sum = builder.add(Operation::Binary(BinaryOp::Multiply), &[&y, &row], F32, &shape);
        for _ in 0..5 {
            let starts = (0..3).map(|_| Start::At(random.below(3))).collect();
            let (lengths, strides) = (Shape::from_slice(&shape), Shape::from_slice(&[1; 3]));
            let part = builder.add(Operation::Slice { starts, lengths, strides }, &[&x], F32, &shape);
            let op = Operation::Binary(*random.pick(&[BinaryOp::Add, BinaryOp::Subtract, BinaryOp::Max]));
            sum = builder.add(op, &[&sum, &part], F32, &shape);
        }
        let mut numbers =
            |count: usize| f32s(&(0..count).map(|_| random.below(1_000) as f32).collect::<Vec<_>>());
        let arguments = [numbers(whole.iter().product()), numbers(planes * rows * columns), numbers(columns)];
        let arguments: Vec<&[u8]> = arguments.iter().map(|bytes| &bytes[..]).collect();
        let fused = fused_alike(builder.region(&[&sum]), Vec::new(), &arguments);
        assert!(!fused.to_string().contains("slice"), "{fused}");
    }
}

/// Values that come from operations which are in no cluster, each read by some elementwise operations and
/// folds, in a shape of which a row may be longer than a block.
fn random_chains(random: &mut Random, shape: &[usize], dtype: DType) -> (Region, Vec<Vec<u8>>) {
    let mut builder = Builder::default();
    let x = builder.parameter(dtype, shape);
    let row = builder.parameter(dtype, &[1, shape[1]]);
    let mut values = vec![x];
    let mut results = Vec::new();
    for _ in 0..random.below(4) + 1 {
        let whole = values[random.below(values.len())].clone();
        let sort = Operation::Sort(random.below(2), Direction::Ascending);
        values.push(builder.add(sort, &[&whole], dtype, shape));
        for _ in 0..random.below(4) + 2 {
            let op = *random.pick(&[BinaryOp::Add, BinaryOp::Subtract, BinaryOp::Max, BinaryOp::Min]);
            let last = values.len() - 1 - random.below(values.len().min(2));
            let a = values[last].clone();
            let b = if random.below(3) == 0 { &row } else { random.pick(&values) }.clone();
            values.push(builder.add(Operation::Binary(op), &[&a, &b], dtype, shape));
        }
        if random.below(3) == 0 {
            let (axis, value) = (random.below(2), random.pick(&values).clone());
            let mut folded = shape.to_vec();
            folded[axis] = 1;
            let sum = Operation::Reduce(ReduceOp::Sum, Shape::from_slice(&[axis]));
            results.push(builder.add(sum, &[&value], dtype, &folded));
        }
    }
    results.push(values[values.len() - 1].clone());
    let mut bytes = |elements: usize| -> Vec<u8> {
        (0..elements)
            .flat_map(|_| match dtype {
                F32 => (random.below(1_000) as f32).to_ne_bytes().to_vec(),
                _ => (random.below(100) as i64).to_ne_bytes()[..dtype.width()].to_vec(),
            })
            .collect()
    };
    let arguments = vec![bytes(shape.iter().product()), bytes(shape[1])];
    (builder.region(&results.iter().collect::<Vec<_>>()), arguments)
}

#[test]
fn results_are_written_over_operands_that_nothing_reads_later() {
    with_threads("results_are_written_over_operands_that_nothing_reads_later", || {
        let mut overwritten = 0;
        for seed in 0..200 {
            let mut random = Random(seed);
            let shape = *random.pick(&[[1, 40_000], [130, 129], [20_000, 3], [40_000, 1], [2_000, 200]]);
            let dtype = *random.pick(&[F32, F32, S32, U8]);
            let (region, arguments) = random_chains(&mut random, &shape, dtype);
            let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
            let program = fused_alike(region, Vec::new(), &arguments);
            overwritten += program.to_string().matches("written over").count();
        }
        assert!(overwritten >= 100, "{overwritten}");
    });
}

/// Truths that are read and written beside floats and integers, and bytes as numbers.
#[test]
fn clusters_read_and_write_truths() {
    with_threads("clusters_read_and_write_truths", || {
        let mut in_kernels = 0;
        for seed in 0..600 {
            let mut random = Random(seed);
            let shape: &[usize] =
                random.pick::<&[usize]>(&[&[5_001], &[70, 90], &[700, 9], &[90, 50, 3], &[3, 2_000]]);
            let dtype = *random.pick(&[F32, F32, S32, F64]);
            let mut builder = Builder::default();
            let mut arguments = Vec::new();
            let mut parameter = |builder: &mut Builder, random: &mut Random, dtype, shape: &[usize]| {
                let bytes = small_numbers(random, dtype, shape);
                let thinned = bytes.iter().map(|&byte| if dtype == U8 && byte < 4 { 0 } else { byte });
                arguments.push(thinned.collect::<Vec<u8>>());
                builder.parameter(dtype, shape)
            };
            let mut numbers = vec![parameter(&mut builder, &mut random, dtype, shape)];
            let mut truths = vec![parameter(&mut builder, &mut random, U8, shape)];
            let last = shape[shape.len() - 1];
            let mut column = shape.to_vec();
            column[shape.len() - 1] = 1;
            for other in [&[][..], &[last], &column] {
                truths.push(parameter(&mut builder, &mut random, U8, other));
            }
            numbers.push(parameter(&mut builder, &mut random, dtype, &column));
            for _ in 0..random.below(8) + 4 {
                let (a, b) = (random.pick(&numbers).clone(), random.pick(&numbers).clone());
                let truth = random.pick(&truths).clone();
                match random.below(6) {
                    0 | 1 => {
                        let ops = [BinaryOp::Less, BinaryOp::Equal, BinaryOp::GreaterEqual];
                        let op = Operation::Binary(*random.pick(&ops));
                        truths.push(builder.add(op, &[&numbers[0], &a], U8, shape));
                    }
                    2 => {
                        let ops = [BinaryOp::LogicalAnd, BinaryOp::LogicalOr, BinaryOp::LogicalXor];
                        let op = Operation::Binary(*random.pick(&ops));
                        truths.push(builder.add(op, &[&truths[0], &truth], U8, shape));
                    }
                    3 => {
                        numbers.push(builder.add(Operation::Select, &[&truth, &numbers[0], &a], dtype, shape))
                    }
                    4 => numbers.push(builder.add(add(), &[&numbers[0], &truth], dtype, shape)),
                    _ => numbers.push(builder.add(
                        Operation::Binary(BinaryOp::Multiply),
                        &[&numbers[0], &b],
                        dtype,
                        shape,
                    )),
                }
                // The newest whole value comes first.
                for values in [&mut numbers, &mut truths] {
                    let newest = values.len() - 1;
                    if *values[newest].shape == *shape && random.below(2) == 0 {
                        values.swap(0, newest);
                    }
                }
            }
            let results: Vec<Operand> = [&numbers, &truths]
                .into_iter()
                .flat_map(|values| [values[0].clone(), values[values.len() - 1].clone()])
                .collect();
            let region = builder.region(&results.iter().collect::<Vec<_>>());
            let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
            let program = fused_alike(region, Vec::new(), &arguments).to_string();
            let is_select = |line: &str| line.starts_with("            ") && line.contains("select(%");
            in_kernels += usize::from(program.lines().any(is_select));
        }
        println!("{in_kernels} programs whose machine code reads truths");
        // Some processors have no machine code.
        assert!(in_kernels == 0 || in_kernels > 100, "{in_kernels}");
    });
}

/// Conversions and scalings of a tensor that is only read by its slices.
#[test]
fn slices_are_taken_before_elementwise_operations() {
    with_threads("slices_are_taken_before_elementwise_operations", || {
        for seed in 0..150 {
            let mut random = Random(seed);
            let shape = *random.pick(&[[90, 70, 3], [3, 80, 90], [4, 20, 300]]);
            let mut builder = Builder::default();
            let mut value = builder.parameter(U8, &shape);
            let image = small_numbers(&mut random, U8, &shape);
            value = builder.add(Operation::AsType, &[&value], F32, &shape);
            for _ in 0..random.below(3) {
                let op = Operation::Binary(*random.pick(&[BinaryOp::Multiply, BinaryOp::Subtract]));
                let operands = [value.clone(), literal(0, F32, &[])];
                let [a, b] = if random.below(2) == 0 { [0, 1] } else { [1, 0] };
                value = builder.add(op, &[&operands[a], &operands[b]], F32, &shape);
            }
            let axis = (0..3).min_by_key(|&axis| shape[axis]).expect("an axis");
            // Slices of another shape of the tensor stay after the operations.
            let is_reshaped = axis == 2 && random.below(3) == 0;
            let whole = value.clone();
            let shape = if is_reshaped { [shape[0] * shape[1], 1, shape[2]] } else { shape };
            let value = Operand { shape: Shape::from_slice(&shape), ..value };
            let mut sliced = Shape::from_slice(&shape);
            sliced[axis] = 1;
            let mut kept = sliced.clone();
            kept.remove(axis);
            let mut parts = Vec::new();
            for at in 0..shape[axis] {
                let mut starts = vec![Start::At(0); 3];
                starts[axis] = Start::At(at);
                let slice =
                    Operation::Slice { starts, lengths: sliced.clone(), strides: Shape::from_elem(1, 3) };
                let part = builder.add(slice, &[&value], F32, &sliced);
                parts.push(Operand { shape: kept.clone(), ..part });
            }
            // Now and then the whole is a result too, so that nothing moves.
            let is_read = random.below(4) == 0;
            let mut sum = parts[0].clone();
            for part in &parts[1..] {
                sum = builder.add(add(), &[&sum, part], F32, &kept);
            }
            let results = if is_read { vec![&sum, &whole] } else { vec![&sum] };
            let (literals, arguments) = (vec![f32s(&[0.3])], [&image[..]]);
            let program = fused_alike(builder.region(&results), literals, &arguments).to_string();
            let name = whole.shape.iter().map(|dim| format!("[{dim}]")).collect::<String>();
            let is_converted_whole = program.lines().any(|line| line.contains(&format!("f32{name} = ")));
            assert_eq!(is_converted_whole, is_read || is_reshaped, "{program}");
        }
    });
}

/// Chains that begin with one tensor, or with another one of its shape.
#[test]
fn clusters_that_read_one_tensor_are_one() {
    with_threads("clusters_that_read_one_tensor_are_one", || {
        for seed in 0..50 {
            let mut random = Random(seed);
            let mut builder = Builder::default();
            let shape = *random.pick(&[[30_000, 1], [300, 100]]);
            let [x, y] = [(); 2].map(|()| builder.parameter(F32, &shape));
            let arguments = [(); 2].map(|()| small_numbers(&mut random, F32, &shape));
            let ends: Vec<Operand> = (0..3)
                .map(|chain| {
                    let first = if chain == 2 { &y } else { &x };
                    let op = *random.pick(&[UnaryOp::Negate, UnaryOp::Exp, UnaryOp::Sqrt]);
                    let value = builder.add(Operation::Unary(op, Math::Exact), &[first], F32, &shape);
                    let op = *random.pick(&[BinaryOp::Add, BinaryOp::Max, BinaryOp::Divide]);
                    builder.add(Operation::Binary(op), &[&value, first], F32, &shape)
                })
                .collect();
            let arguments = arguments.each_ref().map(|bytes| &bytes[..]);
            let region = builder.region(&ends.iter().collect::<Vec<_>>());
            let program = fused_alike(region, Vec::new(), &arguments).to_string();
            assert_eq!(program.matches("together").count(), 2, "{program}");
        }
    });
}

/// A loop over a vector of `k` numbers, which is passed a matrix of `[m, k]` and the number of trips, and whose body
/// multiplies the matrix with several vectors.
fn random_descent(random: &mut Random, dtype: DType) -> ([Region; 3], Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (m, k) = (*random.pick(&[70, 1000, 1500]), *random.pick(&[1, 20, 31, 32, 40]));
    let shapes: [&[usize]; 2] = [&[m, k], &[k]];
    let mut condition = Builder::default();
    let i = condition.parameter(S32, &[]);
    let trips = condition.parameter(S32, &[]);
    shapes.iter().for_each(|shape| drop(condition.parameter(dtype, shape)));
    let less = condition.add(Operation::Binary(BinaryOp::Less), &[&i, &trips], U8, &[]);
    let mut body = Builder::default();
    let (i, trips) = (body.parameter(S32, &[]), body.parameter(S32, &[]));
    let [x, w] = shapes.map(|shape| body.parameter(dtype, shape));
    let dot = |a: usize, b: usize| Operation::Dot {
        contract: [Shape::from_elem(a, 1), Shape::from_elem(b, 1)],
        batch: [Shape::new(), Shape::new()],
    };
    let tanh = || Operation::Unary(UnaryOp::Tanh, Math::Exact);
    let mut end = w;
    for _ in 0..random.below(3) + 1 {
        let mut rows = body.add(dot(1, 0), &[&x, &end], dtype, &[m]);
        if random.below(2) == 0 {
            rows = body.add(tanh(), &[&rows], dtype, &[m]);
        }
        let sums = body.add(dot(0, 0), &[&rows, &x], dtype, &[k]);
        end = body.add(tanh(), &[&sums], dtype, &[k]);
    }
    let next = body.add(add(), &[&i, &literal(1, S32, &[])], S32, &[]);
    // Now and then the matrix changes.
    let changes = random.below(4) == 0;
    let same = if changes { body.add(tanh(), &[&x], dtype, shapes[0]) } else { x };
    let mut root = Builder::default();
    let all_trips = root.parameter(S32, &[]);
    let initial = shapes.map(|shape| root.parameter(dtype, shape));
    let ends = root.repeat([vec![literal(0, S32, &[]), all_trips], initial.to_vec()].concat());
    let regions = [
        root.region(&ends.iter().collect::<Vec<_>>()),
        condition.region(&[&less]),
        body.region(&[&next, &trips, &same, &end]),
    ];
    let literals = [0, 1].map(|number: i32| number.to_ne_bytes().to_vec()).to_vec();
    let mut arguments = vec![(random.below(4) as i32).to_ne_bytes().to_vec()];
    arguments.extend(shapes.map(|shape| small_numbers(random, dtype, shape)));
    (regions, literals, arguments)
}

#[test]
fn matrices_of_loops_are_transposed_once() {
    with_threads("matrices_of_loops_are_transposed_once", || {
        let mut transposed = 0;
        for seed in 0..300 {
            let random = &mut Random(seed);
            let dtype = *random.pick(&[F32, F32, F64]);
            let (regions, literals, arguments) = random_descent(random, dtype);
            let arguments: Vec<&[u8]> = arguments.iter().map(|bytes| &bytes[..]).collect();
            let fused = Program::new(&regions, literals.clone()).expect("a program");
            let plain = Program::without_fusion(&regions, literals).expect("a program");
            let expected = run(&plain, &arguments);
            let dtypes = [S32, S32, dtype, dtype];
            assert_same(&fused, &arguments, &expected, &dtypes, &format_args!("loop {seed}"));
            let text = fused.to_string();
            let before = text.split("while region").next().expect("what is before the loop");
            transposed += usize::from(before.contains("transpose("));
        }
        assert!(transposed > 40, "{transposed} loops with transposed matrices");
    });
}

/// Grids that are moved, turned, padded and put side by side, and what is computed of their elements.
#[test]
fn clusters_assemble_concatenations_and_paddings() {
    with_threads("clusters_assemble_concatenations_and_paddings", || {
        let mut assembled = 0;
        for seed in 0..150 {
            let mut random = Random(seed);
            let shapes: [&[usize]; 4] = [&[200, 300], &[30_000], &[20, 30, 64], &[3, 9000]];
            let shape = *random.pick(&shapes);
            let dtype = *random.pick(&[F32, F32, F64, U8, BF16, C64]);
            let mut builder = Builder::default();
            let (x, y) = (builder.parameter(dtype, shape), builder.parameter(dtype, shape));
            let number = builder.parameter(dtype, &[]);
            let arguments = [shape, shape, &[]].map(|shape| small_numbers(&mut random, dtype, shape));
            let mut sum = builder.add(add(), &[&x, &y], dtype, shape);
            let mut values = vec![x.clone(), y, sum.clone()];
            for _ in 0..random.below(4) + 1 {
                let mut from = random.pick(&values).clone();
                if random.below(4) == 0 {
                    let axes = Shape::from_elem(random.below(shape.len()), 1);
                    from = builder.add(Operation::Reverse(axes), &[&from], dtype, shape);
                }
                let other = if random.below(2) == 0 { &number } else { &from };
                let value = moved(&mut random, &mut builder, &from, other);
                sum = builder.add(add(), &[&sum, &value], dtype, shape);
                values.push(value);
                // Rows of several elements.
                if random.below(3) == 0 {
                    let row = builder.add(
                        Operation::Reduce(ReduceOp::Sum, Shape::from_elem(shape.len() - 1, 1)),
                        &[&sum],
                        dtype,
                        &shape[..shape.len() - 1],
                    );
                    let shape = [&shape[..shape.len() - 1], &[1]].concat();
                    let row = Operand { shape: Shape::from_slice(&shape), ..row };
                    sum = builder.add(add(), &[&sum, &row], dtype, &sum.shape.clone());
                }
            }
            // Side by side, and read by one cluster alone. Now and then one of them is assembled itself, or in rows of
            // another length.
            let axis = random.below(shape.len());
            let mut wide = shape.to_vec();
            wide[axis] *= 2;
            let first = match random.below(3) {
                0 => moved(&mut random, &mut builder, &x, &number),
                1 => {
                    let size = shape.iter().product();
                    let flat = Operand { shape: Shape::from_elem(size, 1), ..x.clone() };
                    let flat = moved(&mut random, &mut builder, &flat, &flat);
                    Operand { shape: Shape::from_slice(shape), ..flat }
                }
                _ => x.clone(),
            };
            let both = builder.add(Operation::Concatenate(axis), &[&first, &sum], dtype, &wide);
            let both = builder.add(add(), &[&both, &number], dtype, &wide);
            // Now and then a moved value is a result itself.
            let results = if random.below(3) == 0 { vec![&both, random.pick(&values)] } else { vec![&both] };
            let arguments = arguments.each_ref().map(|bytes| &bytes[..]);
            let program = fused_alike(builder.region(&results), Vec::new(), &arguments).to_string();
            assembled += usize::from(program.contains(" | "));
        }
        assert!(assembled > 120, "only {assembled} programs, not those with runs of a few bytes");
    });
}

/// Factors for the columns of an image, whose elements are repeated for its channels.
#[test]
fn operands_of_short_rows_are_repeated_once() {
    with_threads("operands_of_short_rows_are_repeated_once", || {
        for seed in 0..150 {
            let mut random = Random(seed);
            let shape = *random.pick(&[[60, 50, 3], [40, 90, 4], [500, 7, 2]]);
            let mut builder = Builder::default();
            let x = builder.parameter(F32, &shape);
            let dtype = *random.pick(&[F32, U8, BF16]);
            let [a, b, c] = shape;
            let shapes = [vec![1, b, 1], vec![b, 1], vec![1, 1, c], vec![a, 1, 1]];
            let factors = &random.pick(&shapes)[..];
            let y = builder.parameter(dtype, factors);
            let product = builder.add(Operation::Binary(BinaryOp::Multiply), &[&x, &y], F32, &shape);
            let sum = builder.add(add(), &[&y, &product], F32, &shape);
            let arguments = [(F32, &shape[..]), (dtype, factors)]
                .map(|(dtype, shape)| small_numbers(&mut random, dtype, shape));
            let arguments = [&arguments[0][..], &arguments[1]];
            let repeats = factors.len() >= 2 && factors[factors.len() - 2] == shape[1];
            let text = if repeats { "= broadcast(%1" } else { "together" };
            let program = fused_alike(builder.region(&[&sum]), Vec::new(), &arguments).to_string();
            assert!(program.contains(text), "no {text:?} in {program}");
        }
    });
}

/// One tensor that is read with two shapes, whose elements are repeated in two orders.
#[test]
fn a_tensor_is_repeated_for_each_of_its_shapes() {
    let shape = [600, 2, 2, 2];
    let mut builder = Builder::default();
    let x = builder.parameter(F32, &shape);
    let y = builder.parameter(F32, &[4]);
    let [first, second] =
        [[2, 1, 2], [2, 2, 1]].map(|shape| Operand { shape: Shape::from_slice(&shape), ..y.clone() });
    let product = builder.add(Operation::Binary(BinaryOp::Multiply), &[&x, &first], F32, &shape);
    let sum = builder.add(add(), &[&product, &second], F32, &shape);
    let arguments = [f32s(&vec![1.0; 4_800]), f32s(&[1.0, 2.0, 4.0, 8.0])];
    let arguments = [&arguments[0][..], &arguments[1]];
    let program = fused_alike(builder.region(&[&sum]), Vec::new(), &arguments).to_string();
    assert_eq!(program.matches("= broadcast(%1").count(), 2, "{program}");
}

/// Folds along axes that have others between them: the first step is computed with what comes before.
#[test]
fn folds_along_axes_apart_are_computed_in_steps() {
    with_threads("folds_along_axes_apart_are_computed_in_steps", || {
        let mut in_clusters = 0;
        for seed in 0..300 {
            let mut random = Random(seed);
            let (shape, axes) = *random.pick::<(&[usize], &[usize])>(&[
                (&[6, 5, 20, 30], &[0, 2, 3]),
                (&[70, 5, 20], &[0, 2]),
                (&[40, 1, 9, 30], &[0, 3]),
                (&[5, 6, 7, 8, 9], &[0, 2, 4]),
                (&[2, 9, 3, 400], &[1, 3]),
            ]);
            let dtype = *random.pick(&[F32, F32, F64, BF16, S32, U8]);
            let op = *random.pick(&[
                ReduceOp::Sum,
                ReduceOp::Sum,
                ReduceOp::ReduceMax,
                ReduceOp::ReduceMin,
                ReduceOp::Product,
                ReduceOp::Any,
            ]);
            let mut builder = Builder::default();
            let x = builder.parameter(dtype, shape);
            let doubled = builder.add(add(), &[&x, &x], dtype, shape);
            let product = builder.add(Operation::Binary(BinaryOp::Multiply), &[&doubled, &x], dtype, shape);
            let keeps = random.below(2) == 0;
            let mut folded: Vec<usize> = shape.to_vec();
            axes.iter().for_each(|&axis| folded[axis] = 1);
            if !keeps {
                folded =
                    (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect();
            }
            let out = match op {
                ReduceOp::Any => U8,
                _ => dtype,
            };
            let fold = builder.add(Operation::Reduce(op, Shape::from_slice(axes)), &[&product], out, &folded);
            let argument = small_numbers(&mut random, dtype, shape);
            let program = fused_alike(builder.region(&[&fold]), Vec::new(), &[&argument]);
            let text = program.to_string();
            let folds = text.lines().filter(|line| line.contains(&format!("{}(buffer", op.name())));
            in_clusters += folds.count();
        }
        println!("{in_clusters} folds in clusters");
        assert!(in_clusters > 100, "{in_clusters}");
    });
}

/// Loops over arrays of some kilobytes, whose elementwise operations are computed together.
#[test]
fn loops_over_small_arrays_have_clusters() {
    let mut with_clusters = 0;
    for seed in 0..400 {
        let random = &mut Random(seed);
        let size = *random.pick(&[256, 300, 511, 999, 1_000, 1_024]);
        let dtype = *random.pick(&[F32, F32, F64, S32, U8]);
        let shape = [size];
        let trips = random.below(6) as i32;
        let mut condition = Builder::default();
        let counter = condition.parameter(S32, &[]);
        for _ in 0..2 {
            condition.parameter(dtype, &shape);
        }
        let less =
            condition.add(Operation::Binary(BinaryOp::Less), &[&counter, &literal(2, S32, &[])], U8, &[]);
        let mut body = Builder::default();
        let counter = body.parameter(S32, &[]);
        let mut values = vec![body.parameter(dtype, &shape), body.parameter(dtype, &shape)];
        values.push(literal(3, dtype, &[]));
        values.push(literal(4, dtype, &shape));
        for _ in 0..random.below(12) + 3 {
            let whole = |value: &&Operand| value.shape.len() == 1;
            let wholes: Vec<Operand> = values.iter().filter(whole).cloned().collect();
            let a = random.pick(&wholes).clone();
            let b = random.pick(&values).clone();
            let value = match random.below(8) {
                // The array without its first element, and before it its last one.
                0 => {
                    let part = |start, length| Operation::Slice {
                        starts: vec![Start::At(start)],
                        lengths: Shape::from_slice(&[length]),
                        strides: Shape::from_slice(&[1]),
                    };
                    let first = body.add(part(0, 1), &[&a], dtype, &[1]);
                    let rest = body.add(part(1, size - 1), &[&a], dtype, &[size - 1]);
                    let twice = body.add(add(), &[&rest, &rest], dtype, &[size - 1]);
                    let rest = body.add(add(), &[&twice, &rest], dtype, &[size - 1]);
                    body.add(Operation::Concatenate(0), &[&rest, &first], dtype, &shape)
                }
                1 => body.add(Operation::Sort(0, Direction::Ascending), &[&a], dtype, &shape),
                _ => {
                    let ops = [BinaryOp::Add, BinaryOp::Subtract, BinaryOp::Multiply, BinaryOp::Max];
                    body.add(Operation::Binary(*random.pick(&ops)), &[&a, &b], dtype, &shape)
                }
            };
            values.push(value);
        }
        let next = body.add(add(), &[&counter, &literal(1, S32, &[])], S32, &[]);
        let is_whole = |value: &&Operand| value.shape.len() == 1;
        let wholes: Vec<Operand> = values.iter().filter(is_whole).cloned().collect();
        let results = [&next, &wholes[wholes.len() - 1], random.pick(&wholes)];
        let mut root = Builder::default();
        let initial = [root.parameter(dtype, &shape), root.parameter(dtype, &shape)];
        let ends = root.repeat([vec![literal(0, S32, &[])], initial.to_vec()].concat());
        let regions = [
            root.region(&ends.iter().collect::<Vec<_>>()),
            condition.region(&[&less]),
            body.region(&results),
        ];
        let mut literals: Vec<Vec<u8>> =
            [0, 1, trips].map(|number: i32| number.to_ne_bytes().to_vec()).to_vec();
        literals.push(small_numbers(random, dtype, &[]));
        literals.push(small_numbers(random, dtype, &shape));
        let arguments = [(); 2].map(|()| small_numbers(random, dtype, &shape));
        let arguments = [&arguments[0][..], &arguments[1]];
        let [fast, interpreted] =
            with_and_without_machine_code(|| Program::new(&regions, literals.clone()).expect("a program"));
        let plain = Program::without_fusion(&regions, literals).expect("a program");
        let text = fast.to_string();
        with_clusters += usize::from(text.contains("together") && text.contains("small arrays"));
        let expected = run(&plain, &arguments);
        let dtypes = [S32, dtype, dtype];
        assert_same(&fast, &arguments, &expected, &dtypes, &format_args!("loop {seed}: {regions:#?}"));
        assert_same(&interpreted, &arguments, &expected, &dtypes, &format_args!("loop {seed}, interpreted"));
    }
    println!("{with_clusters} loops with clusters");
    assert!(
        with_clusters > 150 || cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))),
        "{with_clusters}"
    );
}

#[test]
fn a_result_over_an_operand_takes_no_memory() {
    let shape = [300, 200];
    let mut builder = Builder::default();
    let x = builder.parameter(F32, &shape);
    let mut y = x.clone();
    for _ in 0..5 {
        y = builder.add(Operation::Sort(1, Direction::Ascending), &[&y], F32, &shape);
        y = builder.add(add(), &[&y, &x], F32, &shape);
        y = builder.add(Operation::Binary(BinaryOp::Max), &[&y, &x], F32, &shape);
    }
    let program = Program::new(&[builder.region(&[&y])], Vec::new()).expect("a program");
    let mut host = host();
    let argument = f32s(&vec![1.0; 60_000]);
    let results = run_with(&program, &[&argument], &mut host, |_, _| unreachable!());
    assert_eq!(results, Ok(vec![f32s(&vec![6.0; 60_000])]));
    // A sorted value and the one that it is made from take turns, and one of them is the result.
    assert_eq!(host.allocated, 2, "{program}");
}

/// A loop over rows of an array that the program computes: one block for it and for the result.
#[test]
fn loops_over_rows_write_over_their_arrays() {
    let size = 50_000;
    let mut condition = Builder::default();
    let counter = condition.parameter(S32, &[]);
    condition.parameter(F32, &[size]);
    let less = condition.add(Operation::Binary(BinaryOp::Less), &[&counter, &literal(1, S32, &[])], U8, &[]);
    let mut body = Builder::default();
    let (counter, x) = (body.parameter(S32, &[]), body.parameter(F32, &[size]));
    let next = body.add(add(), &[&counter, &literal(2, S32, &[])], S32, &[]);
    let shifted = body.add(add(), &[&x, &literal(3, F32, &[])], F32, &[size]);
    let halved =
        body.add(Operation::Binary(BinaryOp::Multiply), &[&shifted, &literal(4, F32, &[])], F32, &[size]);
    let mut root = Builder::default();
    let start = root.parameter(F32, &[size]);
    let start = root.add(Operation::Sort(0, Direction::Descending), &[&start], F32, &[size]);
    let ends = root.repeat(vec![literal(0, S32, &[]), start]);
    let regions = [root.region(&[&ends[1]]), condition.region(&[&less]), body.region(&[&next, &halved])];
    let literals = [0_i32, 1_000, 1].map(|number| number.to_ne_bytes().to_vec());
    let literals = [&literals[..], &[f32s(&[1.0]), f32s(&[0.5])]].concat();
    let program = Program::new(&regions, literals).expect("a program");
    assert!(program.to_string().contains("trips at a time"), "{program}");
    let mut host = host();
    let argument = f32s(&vec![3.0; size]);
    let results = run_with(&program, &[&argument], &mut host, |_, _| unreachable!("no calls"));
    assert_eq!(results, Ok(vec![f32s(&vec![1.0; size])]));
    assert_eq!(host.allocated, 1, "{program}");
}

/// Two rows of different lengths that begin one tensor, each the same for all rows.
#[test]
fn the_begin_of_a_row_is_not_the_row() {
    let mut builder = Builder::default();
    let (b, x, y) = (
        builder.parameter(F32, &[10]),
        builder.parameter(F32, &[4_000, 10]),
        builder.parameter(F32, &[4_000, 5]),
    );
    let slice = Operation::Slice {
        starts: vec![Start::At(0)],
        lengths: Shape::from_slice(&[5]),
        strides: Shape::from_slice(&[1]),
    };
    let begin = builder.add(slice, &[&b], F32, &[5]);
    let whole = builder.add(add(), &[&x, &b], F32, &[4_000, 10]);
    let sum = Operation::Reduce(ReduceOp::Sum, Shape::from_slice(&[1]));
    let sums = builder.add(sum, &[&whole], F32, &[4_000, 1]);
    let shifted = builder.add(add(), &[&y, &begin], F32, &[4_000, 5]);
    let product = builder.add(Operation::Binary(BinaryOp::Multiply), &[&shifted, &sums], F32, &[4_000, 5]);
    let arguments =
        [10, 40_000, 20_000].map(|size| f32s(&(0..size).map(|i| (i % 97) as f32).collect::<Vec<_>>()));
    let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
    fused_alike(builder.region(&[&product]), Vec::new(), &arguments);
}

/// Division by a number, of types that are converted and of one that is not.
#[test]
fn clusters_divide_by_numbers() {
    let size = 100_000_usize;
    let binary = Operation::Binary;
    let mut builder = Builder::default();
    let x = builder.parameter(U8, &[size]);
    let remainder = builder.add(binary(BinaryOp::Remainder), &[&x, &literal(0, S32, &[])], S32, &[size]);
    let quotient = builder.add(binary(BinaryOp::Quotient), &[&remainder, &literal(1, U8, &[])], S32, &[size]);
    let sum = builder.add(add(), &[&quotient, &remainder], S32, &[size]);
    let regions = [builder.region(&[&sum])];
    let literals = vec![7_i32.to_ne_bytes().to_vec(), vec![2]];
    let fused = Program::new(&regions, literals.clone()).expect("a program");
    assert!(fused.to_string().contains("together"), "{fused}");
    let numbers: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
    let expected = numbers.iter().flat_map(|&x| i32::from(x % 7 / 2 + x % 7).to_ne_bytes()).collect();
    assert_eq!(run(&fused, &[&numbers]), Ok(vec![expected]));
    // Zero is refused.
    let zero = Program::new(&regions, vec![7_i32.to_ne_bytes().to_vec(), vec![0]]).expect("a program");
    let fault = Fault::DivisionByZero;
    let dtypes = vec![S32, U8];
    assert_eq!(run(&zero, &[&numbers]), Err(Error::Element { op: "quotient", dtypes, fault }));
}

/// A product, operations on its rows, and perhaps a product of these, with the arguments.
fn random_attention(random: &mut Random) -> (Region, Vec<Vec<u8>>) {
    let dtype = *random.pick(&[F32, F32, F32, F64]);
    let batch_rank = random.below(3);
    let batch: Vec<usize> = (0..batch_rank).map(|_| random.below(3) + 1).collect();
    let [m, n] = [(); 2].map(|()| random.below(250) + 40);
    let [k, columns] = [(); 2].map(|()| *random.pick(&[1, 2, 17, 64, 90]));
    let with = |sizes: &[usize]| [&batch[..], sizes].concat();
    let axes = |axis: usize| Shape::from_elem(batch.len() + axis, 1);
    let leading: Shape = (0..batch.len()).collect();
    let dot = |right_axis: usize| Operation::Dot {
        contract: [axes(1), axes(right_axis)],
        batch: [leading.clone(), leading.clone()],
    };
    let mut builder = Builder::default();
    let queries = builder.parameter(dtype, &with(&[m, k]));
    let is_transposed = random.below(2) == 0;
    let keys = builder.parameter(dtype, &with(&if is_transposed { [n, k] } else { [k, n] }));
    let is_second_transposed = random.below(3) == 0;
    let second = if is_second_transposed { [columns, n] } else { [n, columns] };
    let values = builder.parameter(dtype, &with(&second));
    let rows = with(&[m, n]);
    let mask = match random.below(3) {
        0 => builder.parameter(U8, &rows),
        1 => builder.parameter(U8, &[m, n]),
        _ => builder.parameter(U8, &[n]),
    };
    let scores = builder.add(dot(usize::from(is_transposed)), &[&queries, &keys], dtype, &rows);
    let binary = Operation::Binary;
    let scaled = builder.add(binary(BinaryOp::Divide), &[&scores, &literal(0, dtype, &[])], dtype, &rows);
    let masked = builder.add(Operation::Select, &[&mask, &scaled, &literal(1, dtype, &[])], dtype, &rows);
    let last = Shape::from_elem(rows.len() - 1, 1);
    let of_rows = with(&[m, 1]);
    let fold = |builder: &mut Builder, op, input: &Operand| {
        builder.add(Operation::Reduce(op, last.clone()), &[input], dtype, &of_rows)
    };
    let rows_of =
        |builder: &mut Builder, op, a: &Operand, b: &Operand| builder.add(binary(op), &[a, b], dtype, &rows);
    let most = fold(&mut builder, ReduceOp::ReduceMax, &masked);
    let shifted = rows_of(&mut builder, BinaryOp::Subtract, &masked, &most);
    let exponential = Operation::Unary(UnaryOp::Exp, Math::Exact);
    let weights = builder.add(exponential, &[&shifted], dtype, &rows);
    let total = fold(&mut builder, ReduceOp::Sum, &weights);
    let weights = rows_of(&mut builder, BinaryOp::Divide, &weights, &total);
    let mut results = Vec::new();
    match random.below(8) {
        // What each of these reads is written.
        0 => results.push(scores),
        1 => results.push(weights.clone()),
        2 => results.push(total),
        _ => {}
    }
    results.push(match random.below(4) {
        0 => weights,
        _ => builder.add(
            dot(usize::from(is_second_transposed)),
            &[&weights, &values],
            dtype,
            &with(&[m, columns]),
        ),
    });
    let parameters = builder.parameters.clone();
    let arguments = parameters.iter().map(|(dtype, shape)| {
        let elements = 0..shape.iter().product();
        match dtype {
            F32 => f32s(&elements.map(|_| random.unit() as f32).collect::<Vec<_>>()),
            F64 => elements.flat_map(|_| random.unit().to_ne_bytes()).collect(),
            _ => elements.map(|_| u8::from(random.below(4) > 0)).collect(),
        }
    });
    let arguments = arguments.collect();
    (builder.region(&results.iter().collect::<Vec<_>>()), arguments)
}

#[test]
fn products_of_rows_in_clusters_have_the_bits_of_whole_products() {
    with_threads("products_of_rows_in_clusters_have_the_bits_of_whole_products", || {
        let mut counts = [0; 3];
        for seed in 0..300 {
            let (region, arguments) = random_attention(&mut Random(seed));
            let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
            let numbers = |number: f64| match region.parameters[0].0 {
                F32 => (number as f32).to_ne_bytes().to_vec(),
                _ => number.to_ne_bytes().to_vec(),
            };
            let program = fused_alike(region.clone(), vec![numbers(8.0), numbers(-1e9)], &arguments);
            let text = program.to_string();
            counts[usize::from(text.contains("product ")) + usize::from(text.contains("dot(rows"))] += 1;
        }
        println!("clusters with no, one and two products: {counts:?}");
        assert!(counts.iter().all(|&count| count >= 20), "{counts:?}");
    });
}

/// Arrays of ones, with a zero at one place.
fn zero_at(place: usize, size: usize) -> Vec<u8> {
    (0..size).flat_map(|at| i32::from(at != place).to_ne_bytes()).collect()
}

#[test]
fn the_first_operation_that_fails_is_reported() {
    let size = 20_000;
    let divide = |builder: &mut Builder, op, a: &Operand, b: &Operand| {
        builder.add(Operation::Binary(op), &[a, b], S32, &[size])
    };
    // The last row of the remainder fails, and the first one of the quotient in the same cluster.
    let mut builder = Builder::default();
    let [x, y, z] = [(); 3].map(|()| builder.parameter(S32, &[size]));
    let remainder = divide(&mut builder, BinaryOp::Remainder, &x, &y);
    let mut together = builder.clone();
    let quotient = divide(&mut together, BinaryOp::Quotient, &remainder, &z);
    let program = Program::new(&[together.region(&[&quotient])], Vec::new()).expect("a program");
    assert_eq!(program.to_string().matches("together").count(), 1, "{program}");
    let arguments = [zero_at(size, size), zero_at(size - 1, size), zero_at(0, size)];
    let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
    let fails = |result: Result<Vec<Vec<u8>>, Error>, op: &str| {
        assert!(matches!(result, Err(Error::Element { op: found, .. }) if found == op), "{result:?}");
    };
    with_threads("the_first_operation_that_fails_is_reported", || {
        fails(run(&program, &arguments), "remainder")
    });
    // A sum, which nothing needs before the end, holds back the remainder, and a quotient that fails follows.
    let sum = builder.add(add(), &[&remainder, &x], S32, &[size]);
    let mut other = builder.clone();
    let alone = divide(&mut other, BinaryOp::Quotient, &x, &z);
    let twice = other.add(add(), &[&alone, &x], S32, &[size]);
    let program = Program::new(&[other.region(&[&sum, &twice])], Vec::new()).expect("a program");
    fails(run(&program, &arguments), "remainder");
    // So does an element out of range, or a loop with effects.
    let mut taken = builder.clone();
    let take = taken.add(Operation::Take(0), &[&x, &literal(0, S32, &[1])], S32, &[1]);
    let literals = vec![i32::MAX.to_ne_bytes().to_vec(), vec![1]];
    let program = Program::new(&[taken.region(&[&sum, &take])], literals.clone()).expect("a program");
    fails(run(&program, &arguments), "remainder");
    let ends = builder.repeat(vec![literal(1, U8, &[])]);
    let mut condition = Builder::default();
    let going = condition.parameter(U8, &[]);
    let mut body = Builder::default();
    body.parameter(U8, &[]);
    let next = Operand { place: Place::Slot(body.slot()), ..going.clone() };
    let target = Target { slot: 1, dtype: U8, shape: Shape::new() };
    body.steps.push(Step::Call { callback: 0, inputs: Vec::new(), outputs: vec![target] });
    let regions = [builder.region(&[&sum, &ends[0]]), condition.region(&[&going]), body.region(&[&next])];
    fails(run(&Program::new(&regions, literals).expect("a program"), &arguments), "remainder");
}

#[test]
fn constants_are_computed_once_and_errors_stay() {
    let mut builder = Builder::default();
    let x = builder.parameter(S32, &[64]);
    let counts = builder.add(Operation::Iota(None), &[], S32, &[64]);
    let ten = literal(0, S32, &[]);
    let scaled = builder.add(Operation::Binary(BinaryOp::Multiply), &[&counts, &ten], S32, &[64]);
    let small = builder.add(Operation::Binary(BinaryOp::Less), &[&scaled, &ten], U8, &[64]);
    let sum = builder.add(add(), &[&x, &scaled], S32, &[64]);
    let large = builder.add(Operation::Iota(None), &[], S32, &[5000]);
    let results = [&small, &sum, &counts, &large];
    let region = builder.clone().region(&results);
    let (argument, literals) = (vec![1; 256], vec![10_i32.to_ne_bytes().to_vec()]);
    let program = fused_alike(region, literals.clone(), &[&argument]);
    let text = program.to_string();
    assert_eq!(text.matches("iota").count(), 1, "{text}");
    assert_eq!(text.matches("multiply").count(), 0, "{text}");
    // A quotient by zero is an error of the run.
    let quotient =
        builder.add(Operation::Binary(BinaryOp::Quotient), &[&ten, &literal(1, S32, &[])], S32, &[]);
    let literals = [literals, vec![vec![0; 4]]].concat();
    let program = Program::new(&[builder.region(&[&quotient])], literals).expect("is well-formed");
    let error = run(&program, &[&argument]).expect_err("divides by zero");
    assert!(matches!(error, Error::Element { op: "quotient", .. }), "{error:?}");
}

#[test]
fn intermediate_results_of_a_chain_take_no_memory() {
    let mut builder = Builder::default();
    let x = builder.parameter(F32, &[100_000]);
    let mut y = x.clone();
    for _ in 0..20 {
        y = builder.add(add(), &[&y, &x], F32, &[100_000]);
    }
    let regions = [builder.region(&[&y])];
    let arguments = [&f32s(&vec![1.0; 100_000])[..]];
    let allocated = |program: Program| {
        let mut host = host();
        let results = run_with(&program, &arguments, &mut host, |_, _| unreachable!());
        assert_eq!(results, Ok(vec![f32s(&vec![21.0; 100_000])]));
        host.allocated
    };
    assert_eq!(allocated(Program::new(&regions, Vec::new()).expect("a program")), 1);
    // Without fusion, two blocks take turns, and one of them is the result.
    assert_eq!(allocated(Program::without_fusion(&regions, Vec::new()).expect("a program")), 2);
}

/// The steps of a random computation of numbers, in which `tensor` is a vector of 5 f32. `depth` bounds
/// conditions within conditions.
fn random_numbers(random: &mut Random, builder: &mut Builder, values: &mut Vec<Operand>, depth: usize) {
    for _ in 0..random.below(5) + 1 {
        let (a, b, c) =
            (random.pick(values).clone(), random.pick(values).clone(), random.pick(values).clone());
        let float = if a.dtype.is_float() { a.dtype } else { F32 };
        let both = match (a.dtype.is_float(), b.dtype.is_float()) {
            _ if a.dtype == b.dtype => a.dtype,
            (false, false) => S64,
            (true, true) if a.dtype.width() < 8 && b.dtype.width() < 8 => F32,
            (true, false) => a.dtype,
            (false, true) => b.dtype,
            _ => F64,
        };
        let value = match random.below(12) {
            0 => builder.add(
                Operation::Unary(UnaryOp::Tanh, *random.pick(&[Math::Exact, Math::Fast])),
                &[&a],
                float,
                &[],
            ),
            1 => builder.add(Operation::Unary(UnaryOp::Negate, Math::Exact), &[&a], a.dtype, &[]),
            2 => builder.add(Operation::AsType, &[&a], *random.pick(&[F32, F64, S32, U8, BF16]), &[]),
            3 => builder.add(Operation::Select, &[&a, &b, &c], b.dtype, &[]),
            4 if a.dtype.is_integer() && b.dtype.is_integer() => {
                let op = *random.pick(&[BinaryOp::BitwiseXor, BinaryOp::Quotient, BinaryOp::Remainder]);
                builder.add(Operation::Binary(op), &[&a, &b], both, &[])
            }
            5 if a.dtype.is_integer() => {
                let operation = Operation::Slice {
                    starts: vec![Start::Input(1)],
                    lengths: Shape::from_slice(&[1]),
                    strides: Shape::from_slice(&[1]),
                };
                let tensor = Operand { place: Place::Slot(0), dtype: F32, shape: Shape::from_slice(&[5]) };
                builder.add(operation, &[&tensor, &a], F32, &[1]);
                let slot = builder.slots - 1;
                Operand { place: Place::Slot(slot), dtype: F32, shape: Shape::new() }
            }
            6 if depth > 0 => {
                let outer = std::mem::take(&mut builder.steps);
                let branches = [0; 2].map(|_| {
                    let mut inner = values.clone();
                    random_numbers(random, builder, &mut inner, depth - 1);
                    let last = inner[inner.len() - 1].clone();
                    let result = builder.add(Operation::AsType, &[&last], F32, &[]);
                    Branch { steps: std::mem::take(&mut builder.steps), results: vec![result] }
                });
                builder.steps = outer;
                let [branch, otherwise] = branches;
                let clauses = vec![Clause { steps: Vec::new(), predicate: a, branch }];
                let slot = builder.slot();
                builder.steps.push(Step::Cond { clauses, otherwise, outputs: vec![slot] });
                Operand { place: Place::Slot(slot), dtype: F32, shape: Shape::new() }
            }
            _ => {
                let op = *random.pick(&[
                    BinaryOp::Add,
                    BinaryOp::Subtract,
                    BinaryOp::Multiply,
                    BinaryOp::Max,
                    BinaryOp::Less,
                    BinaryOp::Equal,
                    BinaryOp::LogicalAnd,
                    BinaryOp::LogicalXor,
                ]);
                builder.add(Operation::Binary(op), &[&a, &b], if op.is_predicate() { U8 } else { both }, &[])
            }
        };
        values.push(value);
    }
}

/// A loop of some trips over a vector, a counter and random numbers; `inner` is the number of a loop that
/// its body has in it.
fn random_loop(random: &mut Random, carried: &[DType], inner: Option<usize>) -> [Region; 2] {
    let parameters = |builder: &mut Builder| {
        let tensor = builder.parameter(F32, &[5]);
        let numbers = carried.iter().map(|&dtype| builder.parameter(dtype, &[]));
        (tensor, numbers.collect::<Vec<_>>())
    };
    let mut condition = Builder::default();
    let (_, numbers) = parameters(&mut condition);
    let less =
        condition.add(Operation::Binary(BinaryOp::Less), &[&numbers[0], &literal(2, S32, &[])], U8, &[]);
    let mut body = Builder::default();
    let (tensor, numbers) = parameters(&mut body);
    let mut values = numbers.clone();
    values.extend([literal(1, S32, &[]), literal(3, F32, &[])]);
    random_numbers(random, &mut body, &mut values, 2);
    if let Some(inner) = inner {
        let outputs: Vec<Slot> = (0..numbers.len() + 1).map(|_| body.slot()).collect();
        let initial = [&tensor, &literal(0, S32, &[])].into_iter().chain(&numbers[1..]).cloned().collect();
        let results = outputs[2..].iter().zip(&carried[1..]);
        values.extend(results.map(|(&slot, &dtype)| Operand {
            place: Place::Slot(slot),
            dtype,
            shape: Shape::new(),
        }));
        body.steps.push(Step::While { condition: inner, body: inner + 1, initial, outputs });
        random_numbers(random, &mut body, &mut values, 1);
    }
    let next = body.add(add(), &[&numbers[0], &literal(1, S32, &[])], S32, &[]);
    let mut results = vec![tensor, next];
    for &dtype in &carried[1..] {
        let same: Vec<&Operand> = values.iter().filter(|value| value.dtype == dtype).collect();
        // Often a value that another result has, too, or a number of the trip before.
        let value =
            if same.is_empty() { random.pick(&values).clone() } else { (*random.pick(&same)).clone() };
        results.push(match value.dtype == dtype {
            true => value,
            false => body.add(Operation::AsType, &[&value], dtype, &[]),
        });
    }
    let [less, results] = [vec![less], results];
    let [condition, body] = [(condition, less), (body, results)]
        .map(|(builder, results)| builder.region(&results.iter().collect::<Vec<_>>()));
    [condition, body]
}

#[test]
fn loops_over_numbers_have_the_bits_of_loops_with_tensors() {
    let (mut in_registers, mut failed) = (0, 0);
    for seed in 0..3_000 {
        let random = &mut Random(seed);
        let trips = *random.pick(&[0, 1, 2, 5, 40, 3_000]);
        let is_nested = random.below(3) == 0 && trips < 100;
        let mut carried = vec![S32];
        carried.extend((0..random.below(4) + 1).map(|_| *random.pick(&[F32, F64, S32, S64, U8, BF16])));
        let literals = [0, 1, trips].map(|number: i32| number.to_ne_bytes().to_vec());
        let literals: Vec<Vec<u8>> = literals.into_iter().chain([f32s(&[0.75])]).collect();
        let mut root = Builder::default();
        let initial = vec![root.parameter(F32, &[5]), literal(0, S32, &[])];
        let numbers = carried[1..].iter().map(|&dtype| root.parameter(dtype, &[]));
        let initial: Vec<Operand> = initial.into_iter().chain(numbers.collect::<Vec<_>>()).collect();
        let results = root.repeat(initial);
        // What is not read is not computed, unless it fails.
        let mut read: Vec<&Operand> = results.iter().filter(|_| random.below(4) > 0).collect();
        read.extend(read.is_empty().then_some(&results[0]));
        let mut regions = vec![root.region(&read)];
        regions.extend(random_loop(random, &carried, is_nested.then_some(3)));
        if is_nested {
            regions.extend(random_loop(random, &carried, None));
        }
        let mut arguments = vec![f32s(&[0.5, -1.5, 2.0, 3.25, -0.0])];
        arguments.extend(carried[1..].iter().map(|dtype| match dtype {
            F32 => f32s(&[1.25]),
            F64 => (-0.3_f64).to_ne_bytes().to_vec(),
            BF16 => half::bf16::from_f32(1.5).to_ne_bytes().to_vec(),
            dtype => (0..dtype.width()).map(|_| random.below(256) as u8).collect(),
        }));
        let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        let fast = Program::new(&regions, literals.clone()).expect("a program");
        let plain = Program::without_fusion(&regions, literals).expect("a program");
        in_registers += usize::from(fast.to_string().contains("on registers"));
        let expected = run(&plain, &arguments);
        failed += usize::from(expected.is_err());
        assert_same(&fast, &arguments, &expected, &[], &format_args!("loop {seed}: {regions:#?}"));
    }
    assert!(in_registers == 3_000, "{in_registers}");
    assert!((50..2_000).contains(&failed), "{failed}");
}

/// Asserts that a program has results up to the bits of NaN, also if it pauses before each operation.
fn assert_same(
    program: &Program,
    arguments: &[&[u8]],
    expected: &Result<Vec<Vec<u8>>, Error>,
    dtypes: &[DType],
    name: &dyn Display,
) {
    for pauses in [false, true] {
        let mut host = TestHost { pauses, paused: false, allocated: 0 };
        let results = run_with(program, arguments, &mut host, |_, _| unreachable!("no calls"));
        let [ours, theirs] = [&results, expected].map(|results| without_nan(results, dtypes));
        assert!(ours == theirs, "{name}\n{results:?}\n{expected:?}");
    }
}

/// The values of a body that reads and replaces elements of two arrays, and their earlier values.
#[derive(Clone)]
struct ArrayValues {
    arrays: [Operand; 2],
    earlier: Vec<Operand>,
    floats: Vec<Operand>,
    integers: Vec<Operand>,
}

/// Adds steps that read and replace single elements, in conditions too.
fn random_stores(random: &mut Random, builder: &mut Builder, values: &mut ArrayValues, depth: usize) {
    for _ in 0..random.below(6) + 1 {
        let is_stale = random.below(60) == 0 && !values.earlier.is_empty();
        let which = random.below(2);
        let array =
            if is_stale { random.pick(&values.earlier).clone() } else { values.arrays[which].clone() };
        let rank = array.shape.len();
        let indices: Vec<Operand> = (0..rank).map(|_| random.pick(&values.integers).clone()).collect();
        let float = random.pick(&values.floats).clone();
        match random.below(if depth > 0 { 7 } else { 6 }) {
            0 | 1 => {
                let ones = Shape::from_elem(1, rank);
                let starts = (1..=rank).map(Start::Input).collect();
                let operation = Operation::Slice { starts, lengths: ones.clone(), strides: ones.clone() };
                let inputs: Vec<&Operand> = [&array].into_iter().chain(&indices).collect();
                let element = builder.add(operation, &inputs, F32, &ones);
                values.floats.push(Operand { shape: Shape::new(), ..element });
            }
            2 => {
                let op = *random.pick(&[BinaryOp::Add, BinaryOp::Multiply, BinaryOp::Subtract]);
                let other = random.pick(&values.floats).clone();
                values.floats.push(builder.add(Operation::Binary(op), &[&float, &other], F32, &[]));
            }
            3 => {
                let other = random.pick(&values.integers).clone();
                values.integers.push(builder.add(add(), &[&indices[0], &other], S32, &[]));
            }
            4 | 5 => {
                let slice = Operand { shape: Shape::from_elem(1, rank), ..float };
                let starts = (2..rank + 2).map(Start::Input).collect();
                let inputs: Vec<&Operand> = [&array, &slice].into_iter().chain(&indices).collect();
                let next = builder.add(Operation::PutSlice(starts), &inputs, F32, &array.shape);
                values.earlier.push(array.clone());
                values.arrays[usize::from(rank == 1)] = next;
            }
            _ => {
                let outer = std::mem::take(&mut builder.steps);
                let branches = [0; 2].map(|_| {
                    let mut inner = values.clone();
                    random_stores(random, builder, &mut inner, depth - 1);
                    let float = random.pick(&inner.floats).clone();
                    let [a, b] = inner.arrays;
                    Branch { steps: std::mem::take(&mut builder.steps), results: vec![float, a, b] }
                });
                builder.steps = outer;
                let [branch, otherwise] = branches;
                let predicate = random.pick(&values.integers).clone();
                let clauses = vec![Clause { steps: Vec::new(), predicate, branch }];
                let outputs: Vec<Slot> = (0..3).map(|_| builder.slot()).collect();
                let [float, a, b] = [0, 1, 2].map(|i| Place::Slot(outputs[i]));
                values.floats.push(Operand { place: float, dtype: F32, shape: Shape::new() });
                values.earlier.extend(values.arrays.clone());
                values.arrays[0].place = a;
                values.arrays[1].place = b;
                builder.steps.push(Step::Cond { clauses, otherwise, outputs });
            }
        }
    }
}

#[test]
fn what_each_branch_computes_for_itself_is_not_written() {
    let mut root = Builder::default();
    let (x, predicate) = (root.parameter(F32, &[100, 100]), root.parameter(U8, &[]));
    let half = literal(0, F32, &[]);
    let mut chain = x;
    for _ in 0..4 {
        chain = root.add(add(), &[&chain, &half], F32, &[100, 100]);
    }
    let common = std::mem::take(&mut root.steps);
    let mut branch = |op| {
        root.steps = common.clone();
        let result = root.add(Operation::Binary(op), &[&chain, &half], F32, &[100, 100]);
        Branch { steps: std::mem::take(&mut root.steps), results: vec![result] }
    };
    let (doubled, halved) = (branch(BinaryOp::Subtract), branch(BinaryOp::Multiply));
    let slot = root.slot();
    let clauses = vec![Clause { steps: vec![], predicate, branch: doubled }];
    root.steps.push(Step::Cond { clauses, otherwise: halved, outputs: vec![slot] });
    let result = Operand { place: Place::Slot(slot), dtype: F32, shape: Shape::from_slice(&[100, 100]) };
    let mut regions = [root.clone().region(&[&result])];
    let literals = vec![f32s(&[0.5])];
    let text = Program::new(&regions, literals.clone()).expect("a program").to_string();
    // Two clusters, of each of which one value is read.
    assert!(text.contains("writes 80 KB"), "{text}");

    // A step after the condition finds the end of the chain computed.
    regions[0].results.push(chain.clone());
    let text = Program::new(&regions, literals).expect("a program").to_string();
    assert!(text.contains("writes 160 KB"), "{text}");
}

#[test]
fn the_condition_of_a_loop_may_be_its_value() {
    let mut root = Builder::default();
    let initial = vec![root.parameter(U8, &[])];
    let end = root.repeat(initial);
    let mut condition = Builder::default();
    let value = condition.parameter(U8, &[]);
    let mut body = Builder::default();
    let number = body.parameter(U8, &[]);
    let less = Operation::Binary(BinaryOp::Less);
    let next = body.add(less, &[&literal(0, U8, &[]), &number], U8, &[]);
    let regions = [root.region(&[&end[0]]), condition.region(&[&value]), body.region(&[&next])];
    let program = Program::new(&regions, vec![vec![5]]).expect("a program");
    assert!(program.to_string().contains("on registers"));
    for start in [7, 1, 0] {
        assert_same(&program, &[&[start]], &Ok(vec![vec![0]]), &[], &format_args!("from {start}"));
    }
}

/// A loop over a counter, a number and two arrays.
fn random_store_loop(random: &mut Random, inner: Option<usize>) -> [Region; 2] {
    let parameters = |builder: &mut Builder| {
        let [counter, float] = [S32, F32].map(|dtype| builder.parameter(dtype, &[]));
        (counter, float, [builder.parameter(F32, &[3, 5]), builder.parameter(F32, &[7])])
    };
    let mut condition = Builder::default();
    let (counter, ..) = parameters(&mut condition);
    let less = condition.add(Operation::Binary(BinaryOp::Less), &[&counter, &literal(2, S32, &[])], U8, &[]);
    let mut body = Builder::default();
    let (counter, float, arrays) = parameters(&mut body);
    let integers = vec![counter.clone(), literal(0, S32, &[]), literal(1, S32, &[])];
    let floats = vec![float, literal(3, F32, &[])];
    let mut values = ArrayValues { arrays, earlier: Vec::new(), floats, integers };
    random_stores(random, &mut body, &mut values, 2);
    if let Some(inner) = inner {
        let outputs: Vec<Slot> = (0..4).map(|_| body.slot()).collect();
        let [a, b] = values.arrays.clone();
        let float = random.pick(&values.floats).clone();
        values.floats.push(Operand { place: Place::Slot(outputs[1]), ..float.clone() });
        values.earlier.extend(values.arrays.clone());
        values.arrays[0].place = Place::Slot(outputs[2]);
        values.arrays[1].place = Place::Slot(outputs[3]);
        let initial = vec![literal(0, S32, &[]), float, a, b];
        body.steps.push(Step::While { condition: inner, body: inner + 1, initial, outputs });
        random_stores(random, &mut body, &mut values, 1);
    }
    let next = body.add(add(), &[&counter, &literal(1, S32, &[])], S32, &[]);
    let float = random.pick(&values.floats).clone();
    let body = body.region(&[&next, &float, &values.arrays[0], &values.arrays[1]]);
    [condition.region(&[&less]), body]
}

#[test]
fn loops_that_replace_elements_have_the_bits_of_loops_with_tensors() {
    let mut in_registers = 0;
    for seed in 0..6_000 {
        let random = &mut Random(seed);
        let trips = *random.pick(&[0, 1, 2, 5, 40]);
        let is_nested = random.below(3) == 0;
        let literals = [0, 1, trips].map(|number: i32| number.to_ne_bytes().to_vec());
        let literals: Vec<Vec<u8>> = literals.into_iter().chain([f32s(&[0.75])]).collect();
        let mut root = Builder::default();
        let float = root.parameter(F32, &[]);
        let arrays = [root.parameter(F32, &[3, 5]), root.parameter(F32, &[7])];
        let [a, b] = arrays.clone();
        let mut results = root.repeat(vec![literal(0, S32, &[]), float, a, b]);
        // The arrays at the start are still there.
        results.extend(arrays);
        let mut regions = vec![root.region(&results.iter().collect::<Vec<_>>())];
        regions.extend(random_store_loop(random, is_nested.then_some(3)));
        if is_nested {
            regions.extend(random_store_loop(random, None));
        }
        let numbers: Vec<f32> = (0..22).map(|i| i as f32 / 3.0 - 2.5).collect();
        let arguments = [&f32s(&[1.5])[..], &f32s(&numbers[..15]), &f32s(&numbers[15..])];
        let fast = Program::new(&regions, literals.clone()).expect("a program");
        let plain = Program::without_fusion(&regions, literals).expect("a program");
        in_registers += usize::from(fast.to_string().contains("on registers"));
        let expected = run(&plain, &arguments);
        assert_same(&fast, &arguments, &expected, &[], &format_args!("loop {seed}: {regions:#?}"));
    }
    println!("{in_registers} loops on registers");
    assert!(in_registers > 1_900, "{in_registers}");
}

/// The shapes of small arrays: those of a few elements, whose elements are in registers, and others.
const SMALL_SHAPES: [&[usize]; 9] = [&[], &[1], &[3], &[2, 2], &[1, 4], &[7], &[3, 5], &[40], &[2, 3, 4]];

/// Adds steps that compute small arrays of other ones. `depth` bounds conditions within conditions.
fn random_small_steps(random: &mut Random, builder: &mut Builder, values: &mut Vec<Operand>, depth: usize) {
    for _ in 0..random.below(6) + 1 {
        let (a, b) = (random.pick(values).clone(), random.pick(values).clone());
        let rank = a.shape.len();
        let float = if a.dtype.is_float() { a.dtype } else { F32 };
        let both = match (a.dtype.is_float(), b.dtype.is_float()) {
            _ if a.dtype == b.dtype => a.dtype,
            (false, false) => *random.pick(&[S64, S32, U8]),
            (true, true) if a.dtype.width() < 8 && b.dtype.width() < 8 => F32,
            (true, false) => a.dtype,
            (false, true) => b.dtype,
            _ => F64,
        };
        let index = |random: &mut Random| {
            let number = |value: &&Operand| value.dtype == S32 && value.shape.is_empty();
            let numbers: Vec<&Operand> = values.iter().filter(number).collect();
            (*random.pick(&numbers)).clone()
        };
        let value = match random.below(15) {
            0 => {
                let op = *random.pick(&[UnaryOp::Tanh, UnaryOp::Negate, UnaryOp::Exp]);
                let dtype = if op == UnaryOp::Negate { a.dtype } else { float };
                builder.add(Operation::Unary(op, Math::Exact), &[&a], dtype, &a.shape)
            }
            1 => {
                builder.add(Operation::AsType, &[&a], *random.pick(&[F32, F64, S32, U8, BF16, C64]), &a.shape)
            }
            2 if rank > 0 && !a.dtype.is_complex() => {
                let op = *random.pick(&[ReduceOp::Sum, ReduceOp::ReduceMax, ReduceOp::Product]);
                let axis = random.below(rank);
                let mut shape = a.shape.clone();
                shape.remove(axis);
                builder.add(Operation::Reduce(op, Shape::from_slice(&[axis])), &[&a], a.dtype, &shape)
            }
            3 if rank > 0 => {
                // A part, from starts that are known or computed.
                let lengths: Shape = a.shape.iter().map(|&dim| random.below(dim) + 1).collect();
                let strides: Shape = (0..rank).map(|_| random.below(2) + 1).collect();
                let (mut inputs, mut starts) = (vec![a.clone()], Vec::new());
                for axis in 0..rank {
                    starts.push(match random.below(3) {
                        0 => Start::Input(inputs.len()),
                        _ => Start::At(random.below(a.shape[axis] - lengths[axis] + 1)),
                    });
                    if let Start::Input(_) = starts[axis] {
                        inputs.push(index(random));
                    }
                }
                let dims = lengths.iter().zip(&strides).map(|(&length, &stride)| length.div_ceil(stride));
                let shape: Shape = dims.collect();
                let inputs: Vec<&Operand> = inputs.iter().collect();
                builder.add(Operation::Slice { starts, lengths, strides }, &inputs, a.dtype, &shape)
            }
            4 if rank > 0 => {
                let lengths: Shape = a.shape.iter().map(|&dim| random.below(dim) + 1).collect();
                let zeros = vec![Start::At(0); rank];
                let strides = Shape::from_elem(1, rank);
                let slice = Operation::Slice { starts: zeros, lengths: lengths.clone(), strides };
                let part = builder.add(slice, &[&a], a.dtype, &lengths);
                let starts = (2..rank + 2).map(Start::Input).collect();
                let indices: Vec<Operand> = (0..rank).map(|_| index(random)).collect();
                let inputs: Vec<&Operand> = [&a, &part].into_iter().chain(&indices).collect();
                builder.add(Operation::PutSlice(starts), &inputs, a.dtype, &a.shape)
            }
            5 if rank > 0 => {
                let axes = (0..rank).filter(|_| random.below(2) == 0).collect();
                builder.add(Operation::Reverse(axes), &[&a], a.dtype, &a.shape)
            }
            6 if rank > 1 => {
                let axes: Shape = (0..rank).rev().collect();
                let shape: Shape = a.shape.iter().rev().copied().collect();
                builder.add(Operation::Transpose(axes), &[&a], a.dtype, &shape)
            }
            7 if rank > 0
                && a.dtype == b.dtype
                && b.shape == a.shape
                && layout::size(&a.shape) < Some(30) =>
            {
                let axis = random.below(rank);
                let mut shape = a.shape.clone();
                shape[axis] *= 2;
                builder.add(Operation::Concatenate(axis), &[&a, &b], a.dtype, &shape)
            }
            8 if a.dtype == F32 && b.dtype == F32 && rank == 1 && b.shape == a.shape => {
                let first = Shape::from_slice(&[0]);
                let contract = [first.clone(), first];
                builder.add(Operation::Dot { contract, batch: Default::default() }, &[&a, &b], F32, &[])
            }
            8 if a.shape == b.shape
                && a.shape[..] == [2, 2]
                && a.dtype == b.dtype
                && [F32, F64].contains(&a.dtype) =>
            {
                let contract = [(); 2].map(|()| Shape::from_slice(&[random.below(2)]));
                let operation = Operation::Dot { contract, batch: Default::default() };
                builder.add(operation, &[&a, &b], a.dtype, &[2, 2])
            }
            9 if depth > 0 => {
                let outer = std::mem::take(&mut builder.steps);
                let branches = [0; 2].map(|_| {
                    let mut inner = values.clone();
                    random_small_steps(random, builder, &mut inner, depth - 1);
                    let alike: Vec<&Operand> = inner
                        .iter()
                        .filter(|value| (value.dtype, &value.shape) == (a.dtype, &a.shape))
                        .collect();
                    let result = (*random.pick(&alike)).clone();
                    Branch { steps: std::mem::take(&mut builder.steps), results: vec![result] }
                });
                builder.steps = outer;
                let [branch, otherwise] = branches;
                let clauses = vec![Clause { steps: Vec::new(), predicate: index(random), branch }];
                let slot = builder.slot();
                builder.steps.push(Step::Cond { clauses, otherwise, outputs: vec![slot] });
                Operand { place: Place::Slot(slot), dtype: a.dtype, shape: a.shape.clone() }
            }
            10 if !a.dtype.is_complex() && !b.dtype.is_complex() => {
                let Some(shape) = broadcast(&a.shape, &b.shape) else { continue };
                let p = index(random);
                builder.add(Operation::Select, &[&p, &a, &b], both, &shape)
            }
            11 if a.dtype.is_integer() && b.dtype.is_integer() => {
                let Some(shape) = broadcast(&a.shape, &b.shape) else { continue };
                let op = *random.pick(&[
                    BinaryOp::BitwiseXor,
                    BinaryOp::BitwiseOr,
                    BinaryOp::Remainder,
                    BinaryOp::LeftShift,
                    BinaryOp::RightShift,
                ]);
                builder.add(Operation::Binary(op), &[&a, &b], both, &shape)
            }
            _ => {
                let Some(shape) = broadcast(&a.shape, &b.shape) else { continue };
                if a.dtype.is_complex() != b.dtype.is_complex() {
                    continue;
                }
                let op =
                    *random.pick(&[BinaryOp::Add, BinaryOp::Subtract, BinaryOp::Multiply, BinaryOp::Less]);
                if op == BinaryOp::Less && a.dtype.is_complex() {
                    continue;
                }
                let dtype = if op.is_predicate() { U8 } else { both };
                builder.add(Operation::Binary(op), &[&a, &b], dtype, &shape)
            }
        };
        values.push(value);
    }
}

/// A loop over a counter and small arrays; `inner` is the number of a loop that its body has in it.
fn random_small_loop(
    random: &mut Random,
    carried: &[(DType, &[usize])],
    inner: Option<usize>,
) -> [Region; 2] {
    let parameters = |builder: &mut Builder| {
        let counter = builder.parameter(S32, &[]);
        let arrays = carried.iter().map(|&(dtype, shape)| builder.parameter(dtype, shape));
        [counter].into_iter().chain(arrays.collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let mut condition = Builder::default();
    let values = parameters(&mut condition);
    let less =
        condition.add(Operation::Binary(BinaryOp::Less), &[&values[0], &literal(2, S32, &[])], U8, &[]);
    let mut body = Builder::default();
    let parameters = parameters(&mut body);
    let mut values = parameters.clone();
    values.extend([literal(1, S32, &[]), literal(3, F32, &[]), literal(4, F32, &[3])]);
    random_small_steps(random, &mut body, &mut values, 2);
    if let Some(inner) = inner {
        let outputs: Vec<Slot> = parameters.iter().map(|_| body.slot()).collect();
        let mut initial = vec![literal(0, S32, &[])];
        for parameter in &parameters[1..] {
            let is_alike =
                |value: &&Operand| (value.dtype, &value.shape) == (parameter.dtype, &parameter.shape);
            let alike: Vec<&Operand> = values.iter().filter(is_alike).collect();
            initial.push((*random.pick(&alike)).clone());
        }
        for (&slot, parameter) in outputs.iter().zip(&parameters).skip(1) {
            values.push(Operand { place: Place::Slot(slot), ..parameter.clone() });
        }
        body.steps.push(Step::While { condition: inner, body: inner + 1, initial, outputs });
        random_small_steps(random, &mut body, &mut values, 1);
    }
    let next = body.add(add(), &[&parameters[0], &literal(1, S32, &[])], S32, &[]);
    let mut results = vec![next];
    for parameter in &parameters[1..] {
        // Often a value of another position.
        let is_alike = |value: &&Operand| (value.dtype, &value.shape) == (parameter.dtype, &parameter.shape);
        let alike: Vec<&Operand> = values.iter().filter(is_alike).collect();
        let last = alike.len() - 1;
        let index = if random.below(3) == 0 { random.below(alike.len()) } else { last };
        results.push(alike[index].clone());
    }
    [condition.region(&[&less]), body.region(&results.iter().collect::<Vec<_>>())]
}

#[test]
fn loops_over_small_arrays_have_the_bits_of_loops_with_tensors() {
    let (mut in_registers, mut with_arrays, mut failed) = (0, 0, 0);
    for seed in 0..4_000 {
        let random = &mut Random(seed);
        let trips = *random.pick(&[0, 1, 2, 5, 40, 300]);
        let is_nested = random.below(3) == 0 && trips < 100;
        let carried: Vec<(DType, &[usize])> = (0..random.below(5) + 1)
            .map(|_| (*random.pick(&[F32, F32, F64, S32, U8, BF16]), *random.pick(&SMALL_SHAPES)))
            .collect();
        let numbers = [0, 1, trips].map(|number: i32| number.to_ne_bytes().to_vec());
        let numbers = numbers.into_iter().chain([f32s(&[0.75]), f32s(&[-1.5, 0.25, 3.0])]);
        let literals: Vec<Vec<u8>> = numbers.collect();
        let mut root = Builder::default();
        let mut initial = vec![literal(0, S32, &[])];
        initial.extend(carried.iter().map(|&(dtype, shape)| root.parameter(dtype, shape)));
        let results = root.repeat(initial);
        let mut regions = vec![root.region(&results.iter().collect::<Vec<_>>())];
        regions.extend(random_small_loop(random, &carried, is_nested.then_some(3)));
        if is_nested {
            regions.extend(random_small_loop(random, &carried, None));
        }
        let arguments: Vec<Vec<u8>> =
            carried.iter().map(|&(dtype, shape)| small_numbers(random, dtype, shape)).collect();
        let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        let [fast, interpreted] =
            with_and_without_machine_code(|| Program::new(&regions, literals.clone()).expect("a program"));
        let plain = Program::without_fusion(&regions, literals).expect("a program");
        let text = fast.to_string();
        in_registers += usize::from(text.contains("on registers"));
        with_arrays += usize::from(text.contains("small arrays"));
        let expected = run(&plain, &arguments);
        failed += usize::from(expected.is_err());
        let dtypes: Vec<DType> = [S32].into_iter().chain(carried.iter().map(|value| value.0)).collect();
        assert_same(&fast, &arguments, &expected, &dtypes, &format_args!("loop {seed}: {regions:#?}"));
        assert_same(&interpreted, &arguments, &expected, &dtypes, &format_args!("loop {seed}, interpreted"));
    }
    println!("{in_registers} loops on registers, {with_arrays} with small arrays; {failed} failed");
    assert!(in_registers > 3_900 && with_arrays > 1_500, "{in_registers}, {with_arrays}");
    assert!((50..3_000).contains(&failed), "{failed}");
}

#[test]
fn an_array_is_not_read_while_it_is_replaced() {
    // A condition whose result is the array either way, which is then written over the array.
    let mut condition = Builder::default();
    let counter = condition.parameter(S32, &[]);
    condition.parameter(F32, &[7]);
    let less = condition.add(Operation::Binary(BinaryOp::Less), &[&counter, &literal(2, S32, &[])], U8, &[]);
    let mut body = Builder::default();
    let (counter, array) = (body.parameter(S32, &[]), body.parameter(F32, &[7]));
    let branch = || Branch { steps: Vec::new(), results: vec![array.clone()] };
    let clauses = vec![Clause { steps: Vec::new(), predicate: counter.clone(), branch: branch() }];
    let same = body.slot();
    body.steps.push(Step::Cond { clauses, otherwise: branch(), outputs: vec![same] });
    let same = Operand { place: Place::Slot(same), ..array.clone() };
    let put = Operation::PutSlice(vec![Start::Input(2)]);
    let array = body.add(put, &[&array, &same, &counter], F32, &[7]);
    let next = body.add(add(), &[&counter, &literal(1, S32, &[])], S32, &[]);
    let mut root = Builder::default();
    let array = [root.parameter(F32, &[7]), array];
    let ends = root.repeat(vec![literal(0, S32, &[]), array[0].clone()]);
    let regions = [root.region(&[&ends[1]]), condition.region(&[&less]), body.region(&[&next, &array[1]])];
    let literals =
        vec![0_i32.to_ne_bytes().to_vec(), 1_i32.to_ne_bytes().to_vec(), 3_i32.to_ne_bytes().to_vec()];
    let program = Program::new(&regions, literals).expect("a program");
    let argument = f32s(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    assert_eq!(run(&program, &[&argument]), Ok(vec![argument.clone()]));
}

#[test]
fn numbers_in_a_wider_type_are_not_those_in_memory() {
    // Two numbers that stay as they are, of which the body takes three as s64.
    let mut condition = Builder::default();
    let counter = condition.parameter(S32, &[]);
    condition.parameter(S64, &[3]);
    condition.parameter(U32, &[2]);
    let less = condition.add(Operation::Binary(BinaryOp::Less), &[&counter, &literal(2, S32, &[])], U8, &[]);
    let mut body = Builder::default();
    let counter = body.parameter(S32, &[]);
    body.parameter(S64, &[3]);
    let numbers = body.parameter(U32, &[2]);
    let next = body.add(add(), &[&counter, &literal(1, S32, &[])], S32, &[]);
    let wide = body.add(Operation::AsType, &[&numbers], S64, &[2]);
    let taken = body.add(Operation::Take(0), &[&wide, &literal(3, S32, &[3])], S64, &[3]);
    let mut root = Builder::default();
    let [array, given] = [root.parameter(S64, &[3]), root.parameter(U32, &[2])];
    let ends = root.repeat(vec![literal(0, S32, &[]), array, given]);
    let regions =
        [root.region(&[&ends[1]]), condition.region(&[&less]), body.region(&[&next, &taken, &numbers])];
    let bytes = |numbers: &[i32]| numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>();
    let wide = |numbers: &[i64]| numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>();
    let literals = vec![bytes(&[0]), bytes(&[1]), bytes(&[2]), bytes(&[1, 0, 1])];
    let program = Program::new(&regions, literals).expect("a program");
    let results = run(&program, &[&wide(&[0; 3]), &bytes(&[8, 9])]);
    assert_eq!(results, Ok(vec![wide(&[9, 8, 9])]));
}

/// A loop over arrays of these sizes and a counter, whose body is random, and its arguments.
fn random_row_loop(seed: u64) -> ([Region; 3], Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let random = &mut Random(seed);
    let shapes: [&[usize]; 8] =
        [&[7], &[5000], &[20_000], &[50, 120], &[170, 130], &[3, 4, 5], &[600, 9], &[3, 50, 60]];
    let shape = *random.pick(&shapes);
    let row: Vec<usize> = [&[1], &shape[1..]].concat();
    let trips = *random.pick(&[0, 1, 2, 5, 40, 300]);
    let literals = [0, 1, trips].map(|number: i32| number.to_ne_bytes().to_vec());
    let literals: Vec<Vec<u8>> = literals.into_iter().chain([f32s(&[0.75])]).collect();
    let mut carried: Vec<(DType, &[usize])> = vec![(S32, &[]), (F32, &[])];
    carried.extend((0..random.below(3) + 1).map(|_| (*random.pick(&[F32, F32, F64, S32]), shape)));
    let arrays = carried.len();
    // Two arrays that do not change, one of which is the same for all rows.
    carried.extend([(F32, shape), (F32, &row[..])]);
    let mut condition = Builder::default();
    let numbers: Vec<Operand> =
        carried.iter().map(|&(dtype, shape)| condition.parameter(dtype, shape)).collect();
    let less =
        condition.add(Operation::Binary(BinaryOp::Less), &[&numbers[0], &literal(2, S32, &[])], U8, &[]);
    let mut body = Builder::default();
    let parameters: Vec<Operand> =
        carried.iter().map(|&(dtype, shape)| body.parameter(dtype, shape)).collect();
    let next = body.add(add(), &[&parameters[0], &literal(1, S32, &[])], S32, &[]);
    let number =
        body.add(Operation::Binary(BinaryOp::Multiply), &[&parameters[1], &literal(3, F32, &[])], F32, &[]);
    let mut values = parameters[1..].to_vec();
    values.push(number.clone());
    for _ in 0..random.below(6) + 2 {
        let (a, b) = (random.pick(&values).clone(), random.pick(&values).clone());
        let float = if a.dtype.is_float() { a.dtype } else { F32 };
        let value = match random.below(8) {
            0 => body.add(
                Operation::Unary(UnaryOp::Tanh, *random.pick(&[Math::Exact, Math::Fast])),
                &[&a],
                float,
                &a.shape,
            ),
            1 => body.add(Operation::AsType, &[&a], *random.pick(&[F32, F64, S32]), &a.shape),
            2 if a.shape.len() == 2 && a.shape[1] > 1 => {
                let shape = [a.shape[0], 1];
                body.add(
                    Operation::Reduce(ReduceOp::ReduceMax, Shape::from_slice(&[1])),
                    &[&a],
                    a.dtype,
                    &shape,
                )
            }
            _ => {
                let Some(shape) = broadcast(&a.shape, &b.shape) else { continue };
                let op = *random.pick(&[BinaryOp::Add, BinaryOp::Multiply, BinaryOp::Max, BinaryOp::Less]);
                let dtype = match op {
                    BinaryOp::Less => U8,
                    _ if a.dtype == b.dtype => a.dtype,
                    _ => F64,
                };
                body.add(Operation::Binary(op), &[&a, &b], dtype, &shape)
            }
        };
        values.push(value);
    }
    let mut results = vec![next, number];
    for (position, &(dtype, shape)) in carried.iter().enumerate().take(arrays).skip(2) {
        let same: Vec<&Operand> = values.iter().filter(|value| value.shape[..] == *shape).collect();
        let value =
            if random.below(8) == 0 { parameters[position].clone() } else { (*random.pick(&same)).clone() };
        results.push(match value.dtype == dtype {
            true => value,
            false => body.add(Operation::AsType, &[&value], dtype, shape),
        });
    }
    results.extend_from_slice(&parameters[arrays..]);
    let mut root = Builder::default();
    let initial = carried.iter().enumerate().map(|(position, &(dtype, shape))| match position {
        0 => literal(0, S32, &[]),
        1 => literal(3, F32, &[]),
        _ => root.parameter(dtype, shape),
    });
    let initial: Vec<Operand> = initial.collect();
    let arguments = initial[2..].iter().map(|operand| small_numbers(random, operand.dtype, &operand.shape));
    let arguments = arguments.collect();
    // Arrays that the program computes may be written over.
    let initial = initial.into_iter().map(|operand| match random.below(2) {
        0 if operand.shape[..] == *shape => root.add(add(), &[&operand, &operand], operand.dtype, shape),
        _ => operand,
    });
    let initial = initial.collect();
    let ends = root.repeat(initial);
    let [root, body] = [(root, ends), (body, results)]
        .map(|(builder, results)| builder.region(&results.iter().collect::<Vec<_>>()));
    ([root, condition.region(&[&less]), body], literals, arguments)
}

#[test]
fn loops_over_rows_have_the_bits_of_loops_trip_by_trip() {
    with_threads("loops_over_rows_have_the_bits_of_loops_trip_by_trip", || {
        let [mut by_rows, mut unrolled] = [0; 2];
        for seed in 0..1_800 {
            let (regions, literals, arguments) = random_row_loop(seed);
            let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
            let fast = Program::new(&regions, literals.clone()).expect("a program");
            let plain = Program::without_fusion(&regions, literals).expect("a program");
            let text = fast.to_string();
            by_rows += usize::from(text.contains("trips at a time"));
            unrolled += usize::from(!text.contains("= while"));
            let expected = run(&plain, &arguments);
            for pauses in [false, true] {
                let mut host = TestHost { pauses, paused: false, allocated: 0 };
                let results = run_with(&fast, &arguments, &mut host, |_, _| unreachable!("no calls"));
                assert!(results == expected, "loop {seed}: {regions:#?}");
            }
        }
        println!("{by_rows} loops were computed by rows, {unrolled} became the steps of their trips");
        assert!(by_rows > 300 && unrolled > 300, "{by_rows} and {unrolled}");
    });
}

#[test]
fn the_first_error_of_a_loop_over_rows_is_reported() {
    // An array is divided by an array that becomes zero in a trip, and a number by one that becomes zero in
    // another trip.
    let divide = |builder: &mut Builder, op, a: &Operand, b: &Operand| {
        builder.add(Operation::Binary(op), &[a, b], S32, &a.shape)
    };
    let mut condition = Builder::default();
    let parameters = |builder: &mut Builder| {
        let numbers = [builder.parameter(S32, &[]), builder.parameter(S32, &[])];
        (numbers, [builder.parameter(S32, &[10_000]), builder.parameter(S32, &[10_000])])
    };
    let ([i, _], _) = parameters(&mut condition);
    let less = condition.add(Operation::Binary(BinaryOp::Less), &[&i, &literal(2, S32, &[])], U8, &[]);
    let mut body = Builder::default();
    let ([i, by], [x, y]) = parameters(&mut body);
    let remainder = divide(&mut body, BinaryOp::Remainder, &i, &by);
    let next_by = divide(&mut body, BinaryOp::Subtract, &by, &literal(1, S32, &[]));
    let quotient = divide(&mut body, BinaryOp::Quotient, &x, &y);
    let next_y = divide(&mut body, BinaryOp::Subtract, &y, &literal(1, S32, &[]));
    let next = divide(&mut body, BinaryOp::Add, &i, &literal(1, S32, &[]));
    let zero = divide(&mut body, BinaryOp::Multiply, &remainder, &literal(0, S32, &[]));
    let next = divide(&mut body, BinaryOp::Add, &next, &zero);
    let mut root = Builder::default();
    let initial = vec![literal(0, S32, &[])];
    let ([by, _], [x, y]) = parameters(&mut root);
    let initial = [initial, vec![by, x, y]].concat();
    let ends = root.repeat(initial);
    let regions = [
        root.region(&[&ends[2]]),
        condition.region(&[&less]),
        body.region(&[&next, &next_by, &quotient, &next_y]),
    ];
    let int = |value: i32| value.to_ne_bytes().to_vec();
    let program = Program::new(&regions, vec![int(0), int(1), int(1_000)]).expect("a program");
    assert!(program.to_string().contains("trips at a time"), "{program}");
    for (by, y, op) in [(3, 8, "remainder"), (8, 3, "quotient")] {
        let arguments = [int(by), int(0), int(7).repeat(10_000), int(y).repeat(10_000)];
        let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        let result = run(&program, &arguments);
        assert!(matches!(result, Err(Error::Element { op: found, .. }) if found == op), "{result:?}");
    }
}

/// A loop that doubles a tensor `trips` times.
fn doubling(trips: i32, size: usize) -> ([Region; 3], Vec<Vec<u8>>) {
    let literals =
        vec![0_i32.to_ne_bytes().to_vec(), 1_i32.to_ne_bytes().to_vec(), trips.to_ne_bytes().to_vec()];
    let mut condition = Builder::default();
    let i = condition.parameter(S32, &[]);
    condition.parameter(F32, &[size]);
    let less = condition.add(Operation::Binary(BinaryOp::Less), &[&i, &literal(2, S32, &[])], U8, &[]);
    let mut body = Builder::default();
    let i = body.parameter(S32, &[]);
    let x = body.parameter(F32, &[size]);
    let next = body.add(add(), &[&i, &literal(1, S32, &[])], S32, &[]);
    let twice = body.add(add(), &[&x, &x], F32, &[size]);
    let mut root = Builder::default();
    let x = root.parameter(F32, &[size]);
    let ends = root.repeat(vec![literal(0, S32, &[]), x]);
    ([root.region(&[&ends[1]]), condition.region(&[&less]), body.region(&[&next, &twice])], literals)
}

#[test]
fn loops_run_their_trips_and_take_two_blocks() {
    for trips in [0, 1, 2, 100] {
        let (regions, literals) = doubling(trips, 1000);
        let program = Program::new(&regions, literals).expect("a program");
        let mut host = host();
        let results = run_with(&program, &[&f32s(&[1.0; 1000])], &mut host, |_, _| unreachable!());
        assert_eq!(results, Ok(vec![f32s(&vec![2_f32.powi(trips); 1000])]), "{trips} trips");
        assert!(host.allocated <= 2, "{} blocks for {trips} trips", host.allocated);
    }
}

#[test]
fn a_loop_that_is_not_written_out_leaves_no_constants() {
    // Forty trips are too many, and the two of the second loop, whose counter comes last, get the same slots.
    let size = 5000;
    let ([mut root, condition, body], mut literals) = doubling(40, size);
    literals.push(2_i32.to_ne_bytes().to_vec());
    let mut less = Builder::default();
    let i = less.parameter(S32, &[]);
    less.parameter(F32, &[size]);
    let few = less.add(Operation::Binary(BinaryOp::Less), &[&i, &literal(3, S32, &[])], U8, &[]);
    let mut later = Builder::default();
    let i = later.parameter(S32, &[]);
    let x = later.parameter(F32, &[size]);
    let twice = later.add(add(), &[&x, &x], F32, &[size]);
    let next = later.add(add(), &[&i, &literal(1, S32, &[])], S32, &[]);
    let outputs = vec![root.slots, root.slots + 1];
    let initial = vec![literal(0, S32, &[]), root.results[0].clone()];
    root.results[0].place = Place::Slot(outputs[1]);
    root.slots += 2;
    root.steps.push(Step::While { condition: 3, body: 4, initial, outputs });
    let regions = [root, condition, body, less.region(&[&few]), later.region(&[&next, &twice])];
    let program = Program::new(&regions, literals).expect("a program");
    assert_eq!(run(&program, &[&f32s(&vec![1.0; size])]), Ok(vec![f32s(&vec![2_f32.powi(42); size])]));
}

#[test]
fn a_loop_of_each_branch_may_give_the_same_slots() {
    let size = 5000;
    let ([_, condition, body], literals) = doubling(2, size);
    let mut root = Builder::default();
    let predicate = root.parameter(S32, &[]);
    let x = root.parameter(F32, &[size]);
    let y = root.add(add(), &[&x, &x], F32, &[size]);
    let ends = root.repeat(vec![literal(0, S32, &[]), x.clone()]);
    let Some(Step::While { condition: 1, body: 2, initial, outputs }) = root.steps.pop() else {
        unreachable!("the loop")
    };
    let branch = |start: &Operand| {
        let initial = vec![initial[0].clone(), start.clone()];
        let steps = vec![Step::While { condition: 1, body: 2, initial, outputs: outputs.clone() }];
        Branch { steps, results: vec![predicate.clone()] }
    };
    let clause = Clause { steps: Vec::new(), predicate: predicate.clone(), branch: branch(&x) };
    let outputs = vec![root.slot()];
    root.steps.push(Step::Cond { clauses: vec![clause], otherwise: branch(&y), outputs });
    let program = Program::new(&[root.region(&[&ends[1]]), condition, body], literals).expect("a program");
    for (predicate, expected) in [(1_i32, 4.0), (0, 8.0)] {
        let results = run(&program, &[&predicate.to_ne_bytes(), &f32s(&vec![1.0; size])]);
        assert_eq!(results, Ok(vec![f32s(&vec![expected; size])]));
    }
}

#[test]
fn a_program_that_pauses_before_each_operation_gives_the_same() {
    let (regions, literals) = doubling(10, 1000);
    let program = Program::new(&regions, literals).expect("a program");
    let mut host = TestHost { pauses: true, paused: false, allocated: 0 };
    let results = run_with(&program, &[&f32s(&[1.0; 1000])], &mut host, |_, _| unreachable!());
    assert_eq!(results, Ok(vec![f32s(&[1024.0; 1000])]));
}

#[test]
fn conditions_compute_the_branch_that_is_taken_and_nothing_else() {
    // Each branch divides by the operand, which is zero where the branch is not taken.
    let mut root = Builder::default();
    let p = root.parameter(S32, &[]);
    let x = root.parameter(S32, &[4]);
    let y = root.parameter(S32, &[4]);
    let output = root.slot();
    let branch = |root: &mut Builder, by: &Operand| {
        let outer = std::mem::take(&mut root.steps);
        let quotient = root.add(Operation::Binary(BinaryOp::Quotient), &[by, by], S32, &[4]);
        let steps = std::mem::replace(&mut root.steps, outer);
        Branch { steps, results: vec![quotient] }
    };
    let clause = Clause { steps: Vec::new(), predicate: p, branch: branch(&mut root, &x) };
    let otherwise = branch(&mut root, &y);
    root.steps.push(Step::Cond { clauses: vec![clause], otherwise, outputs: vec![output] });
    let result = Operand { place: Place::Slot(output), dtype: S32, shape: Shape::from_slice(&[4]) };
    let program = Program::new(&[root.region(&[&result])], Vec::new()).expect("a program");
    let ints = |values: [i32; 4]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
    let (one, none) = (ints([5; 4]), ints([0; 4]));
    let truth = |value: i32| value.to_ne_bytes();
    assert_eq!(run(&program, &[&truth(1), &one, &none]), Ok(vec![ints([1; 4])]));
    assert_eq!(run(&program, &[&truth(0), &none, &one]), Ok(vec![ints([1; 4])]));
    assert!(matches!(run(&program, &[&truth(0), &one, &none]), Err(Error::Element { op: "quotient", .. })));
}

#[test]
fn calls_are_answered_and_checked() {
    let mut root = Builder::default();
    let x = root.parameter(F32, &[3]);
    let sum = root.add(add(), &[&x, &x], F32, &[3]);
    let slot = root.slot();
    let outputs = vec![Target { slot, dtype: F32, shape: Shape::from_slice(&[3]) }];
    root.steps.push(Step::Call { callback: 7, inputs: vec![sum], outputs });
    let answer = Operand { place: Place::Slot(slot), dtype: F32, shape: Shape::from_slice(&[3]) };
    let result = root.add(add(), &[&answer, &x], F32, &[3]);
    let program = Program::new(&[root.region(&[&result])], Vec::new()).expect("a program");
    let argument = f32s(&[1.0, 2.0, 3.0]);
    let results = run_with(&program, &[&argument], &mut host(), |callback, values| {
        assert_eq!((callback, values), (7, vec![f32s(&[2.0, 4.0, 6.0])]));
        vec![f32s(&[10.0, 20.0, 30.0])]
    });
    assert_eq!(results, Ok(vec![f32s(&[11.0, 22.0, 33.0])]));
    for wrong in [vec![], vec![vec![0; 8]], vec![vec![0; 12], vec![0; 12]]] {
        let results = run_with(&program, &[&argument], &mut host(), |_, _| wrong.clone());
        assert!(matches!(results, Err(Error::Argument { .. })), "{results:?}");
    }
    let mut execution = Execution::<Vec<u8>>::new(&program, &[&argument]).expect("a run");
    assert!(execution.answer(&program, vec![argument.clone()]).is_err(), "it does not wait yet");
}

#[test]
fn slices_start_where_an_operand_says_and_stay_inside() {
    let mut root = Builder::default();
    let x = root.parameter(F32, &[5]);
    let start = root.parameter(S64, &[]);
    let operation = Operation::Slice {
        starts: vec![Start::Input(1)],
        lengths: Shape::from_slice(&[2]),
        strides: Shape::from_slice(&[1]),
    };
    let result = root.add(operation, &[&x, &start], F32, &[2]);
    let program = Program::new(&[root.region(&[&result])], Vec::new()).expect("a program");
    let argument = f32s(&[0.0, 1.0, 2.0, 3.0, 4.0]);
    for (start, expected) in [(-9, [0.0, 1.0]), (1, [1.0, 2.0]), (i64::MAX, [3.0, 4.0])] {
        assert_eq!(run(&program, &[&argument, &start.to_ne_bytes()]), Ok(vec![f32s(&expected)]), "{start}");
    }
}

#[test]
fn malformed_programs_are_refused() {
    let mut builder = Builder::default();
    let x = builder.parameter(F32, &[2]);
    let sum = builder.add(add(), &[&x, &x], F32, &[2]);
    let region = builder.region(&[&sum]);
    let refused = |change: &dyn Fn(&mut Region)| {
        let mut region = region.clone();
        change(&mut region);
        assert!(Program::new(&[region.clone()], Vec::new()).is_err(), "{region:?}");
    };
    assert!(Program::new(std::slice::from_ref(&region), Vec::new()).is_ok());
    assert!(Program::new(&[], Vec::new()).is_err());
    refused(&|region| region.slots = 1);
    refused(&|region| region.results[0].place = Place::Slot(9));
    refused(&|region| region.results[0].place = Place::Literal(0));
    refused(&|region| region.results[0].shape = Shape::from_slice(&[3]));
    refused(&|region| region.parameters[0].1 = Shape::from_slice(&[usize::MAX, 2]));
    refused(&|region| {
        let outputs = vec![1];
        region.steps.push(Step::While { condition: 0, body: 5, initial: vec![x.clone()], outputs });
    });
    // More slots than values, which may be more than memory.
    refused(&|region| region.slots = 3);
    refused(&|region| region.slots = usize::MAX);
    refused(&|region| region.slots = 1 << (usize::BITS - 24));
    refused(&|region| region.steps.push(Step::Unless { computed: 2, steps: Vec::new() }));
    // A region that runs itself.
    refused(&|region| {
        let parameter = (F32, Shape::from_slice(&[]));
        region.parameters = vec![parameter.clone(), parameter];
        let scalar = |slot| Operand { place: Place::Slot(slot), dtype: F32, shape: Shape::new() };
        let row = Operand { shape: Shape::from_slice(&[1, 1]), ..scalar(0) };
        let output = Target { slot: 2, dtype: F32, shape: Shape::from_slice(&[1]) };
        (region.slots, region.results) = (3, vec![scalar(2)]);
        region.steps = vec![Step::Fold { body: 0, input: row, initial: scalar(1), output }];
    });
    let program = Program::new(&[region], Vec::new()).expect("a program");
    assert!(run(&program, &[&[0; 4]]).is_err());
    assert!(run(&program, &[]).is_err());
    // Axes that an operand hasn't are an error of the run.
    for contract in [[1, 7], [usize::MAX, 0], [1, usize::MAX / 16]] {
        let mut builder = Builder::default();
        let x = builder.parameter(F32, &[30, 40]);
        let contract = contract.map(|axis| Shape::from_elem(axis, 1));
        let operation = Operation::Dot { contract, batch: Default::default() };
        let product = builder.add(operation, &[&x, &x], F32, &[30, 30]);
        let program = Program::new(&[builder.region(&[&product])], Vec::new()).expect("a program");
        assert!(matches!(run(&program, &[&f32s(&[1.0; 1200])]), Err(Error::Argument { .. })));
    }
}

#[test]
fn what_is_computed_together_is_checked_one_by_one() {
    let mut builder = Builder::default();
    let x = builder.parameter(F32, &[70, 100]);
    let sum = builder.add(add(), &[&x, &x], F32, &[70, 100]);
    let root = builder.add(Operation::Unary(UnaryOp::Exp, Math::Exact), &[&sum], F32, &[70, 100]);
    let region = builder.region(&[&root]);
    assert!(Program::new(std::slice::from_ref(&region), Vec::new()).is_ok());
    let refused = |slot: Slot, read: &[usize]| {
        let mut region = region.clone();
        let [Step::Operation { outputs, .. }, Step::Operation { inputs, .. }] = &mut region.steps[..] else {
            unreachable!("two operations");
        };
        (outputs[0].slot, inputs[0].place) = (slot, Place::Slot(slot));
        inputs[0].shape = Shape::from_slice(read);
        assert!(Program::new(&[region.clone()], Vec::new()).is_err(), "{region:?}");
    };
    refused(3, &[70, 100]);
    refused(1, &[70, 99]);
    refused(1, &[71, 100]);
}

#[test]
fn a_carry_is_copied_once_and_then_written_in_place() {
    let trips = 50_i32;
    let literals = vec![
        0_i32.to_ne_bytes().to_vec(),
        1_i32.to_ne_bytes().to_vec(),
        trips.to_ne_bytes().to_vec(),
        f32s(&[7.0]),
    ];
    for operation in ["put_slice", "indexed_put"] {
        let mut condition = Builder::default();
        let i = condition.parameter(S32, &[]);
        condition.parameter(F32, &[100]);
        let less = condition.add(Operation::Binary(BinaryOp::Less), &[&i, &literal(2, S32, &[])], U8, &[]);
        let mut body = Builder::default();
        let i = body.parameter(S32, &[]);
        let x = body.parameter(F32, &[100]);
        let next = body.add(add(), &[&i, &literal(1, S32, &[])], S32, &[]);
        let written = match operation {
            "put_slice" => {
                let operation = Operation::PutSlice(vec![Start::Input(2)]);
                body.add(operation, &[&x, &literal(3, F32, &[1]), &i], F32, &[100])
            }
            _ => {
                let index = Operand { shape: Shape::from_slice(&[1, 1]), ..i.clone() };
                let operation = Operation::Indexed(Update::Put, Shape::from_slice(&[0]));
                body.add(operation, &[&x, &index, &literal(3, F32, &[1])], F32, &[100])
            }
        };
        let mut root = Builder::default();
        let x = root.parameter(F32, &[100]);
        let outputs = vec![root.slot(), root.slot()];
        let initial = vec![literal(0, S32, &[]), x];
        root.steps.push(Step::While { condition: 1, body: 2, initial, outputs: outputs.clone() });
        let result = Operand { place: Place::Slot(outputs[1]), dtype: F32, shape: Shape::from_slice(&[100]) };
        let regions = [root.region(&[&result]), condition.region(&[&less]), body.region(&[&next, &written])];
        let program = Program::new(&regions, literals.clone()).expect("a program");
        let argument = f32s(&[1.0; 100]);
        let mut host = host();
        let results = run_with(&program, &[&argument], &mut host, |_, _| unreachable!());
        let expected: Vec<f32> = (0..100).map(|i| if i < trips { 7.0 } else { 1.0 }).collect();
        assert_eq!(results, Ok(vec![f32s(&expected)]), "{operation}");
        assert_eq!(argument, f32s(&[1.0; 100]), "an argument is never written to");
        assert_eq!(host.allocated, 1, "{operation}");
    }
}
