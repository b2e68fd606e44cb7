//! Vector kernels: operations that machine code computes together have the bits of the operations one by one.

mod common;

use common::Random;
use common::programs::{Builder, run, without_nan};
use ferrox_core::DType::{self, *};
use ferrox_core::exec::simd::has_fma;
use ferrox_core::graph::source::{Operand, Place, Region};
use ferrox_core::graph::{Operation, Program, machine_code};
use ferrox_core::layout::Shape;
use ferrox_core::ops::binary::BinaryOp;
use ferrox_core::ops::math::Math;
use ferrox_core::ops::reduce::ReduceOp;
use ferrox_core::ops::unary::UnaryOp;

/// What the explanation of a program says of a vector kernel.
const KERNEL: &str = "in one loop of machine code";

/// A number of a type, often a special one.
fn number(random: &mut Random, dtype: DType) -> Vec<u8> {
    let floats =
        [0.0, -0.0, 1.0, -1.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-40, -1e-310, 3e38, 1e300];
    let integers = [0, 1, u64::MAX, 1 << 31, (1 << 31) - 1, 127, 128, 31, 32, 64, 200];
    let is_special = random.below(8) == 0;
    let float = if is_special { *random.pick(&floats) } else { (random.below(2001) as f64 - 1000.0) / 64.0 };
    let integer = if is_special { *random.pick(&integers) } else { random.below(40) as u64 };
    match dtype {
        F32 => (float as f32).to_ne_bytes().to_vec(),
        F64 => float.to_ne_bytes().to_vec(),
        S32 | U32 => (integer as u32).to_ne_bytes().to_vec(),
        _ => vec![integer as u8],
    }
}

fn numbers(random: &mut Random, dtype: DType, shape: &[usize]) -> Vec<u8> {
    (0..shape.iter().product()).flat_map(|_| number(random, dtype)).collect()
}

/// A random program of operations that vector kernels have, with some others among them, and its arguments.
fn random_program(random: &mut Random) -> (Region, Vec<Vec<u8>>) {
    let (rows, columns) = *random.pick(&[(1, 5_003), (40, 128), (33, 600), (700, 16), (2_000, 3), (9, 517)]);
    let dtype = *random.pick(&[F32, F32, F32, F64, S32, U32]);
    let mut builder = Builder::default();
    let (mut values, mut truths, mut arguments) = (Vec::new(), Vec::new(), Vec::new());
    let shapes = [[rows, columns], [rows, columns], [rows, 1], [1, columns], [1, 1]];
    for shape in [[rows, columns], *random.pick(&shapes), *random.pick(&shapes), *random.pick(&shapes)] {
        values.push(builder.parameter(dtype, &shape));
        arguments.push(numbers(random, dtype, &shape));
    }
    // Sometimes more arrays and numbers than there are registers.
    for _ in 0..[0, 0, 3, 9, 20][random.below(5)] {
        let shape = *random.pick(&[[rows, columns], [1, 1], [1, 1]]);
        values.push(builder.parameter(dtype, &shape));
        arguments.push(numbers(random, dtype, &shape));
    }
    let count = builder.parameter(U8, &[1, 1]);
    arguments.push(number(random, U8));
    let is_float = dtype.is_float();
    let width = dtype.width();
    for _ in 0..random.below(16) + 3 {
        let a = random.pick(&values).clone();
        let recent = values.len() - random.below(values.len().min(4)) - 1;
        let b = values[recent].clone();
        let mut binary = |op, a: &Operand, b: &Operand, to| {
            let shape = [a.shape[0].max(b.shape[0]), a.shape[1].max(b.shape[1])];
            builder.add(Operation::Binary(op), &[a, b], to, &shape)
        };
        let value = match random.below(if is_float { 18 } else { 15 }) {
            13 if !is_float => builder.add(Operation::AsType, &[&a], dtype, &a.shape),
            14 => {
                let (min, max) = (random.pick(&values[1..4]).clone(), random.pick(&values[1..4]).clone());
                let size = |axis: usize| a.shape[axis];
                let fits = |bound: &Operand| (0..2).all(|axis| [1, size(axis)].contains(&bound.shape[axis]));
                if !fits(&min) || !fits(&max) {
                    continue;
                }
                builder.add(Operation::Clip, &[&a, &min, &max], dtype, &a.shape)
            }
            0 | 1 => binary(BinaryOp::Add, &a, &b, dtype),
            2 => binary(BinaryOp::Subtract, &a, &b, dtype),
            3 | 4 => binary(BinaryOp::Multiply, &a, &b, dtype),
            5 => binary(BinaryOp::Max, &a, &b, dtype),
            6 => binary(BinaryOp::Min, &a, &b, dtype),
            7 => {
                use BinaryOp::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
                let op = *random.pick(&[Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual]);
                truths.push(binary(op, &a, &b, U8));
                continue;
            }
            8 if truths.len() == 1 => {
                let not = Operation::Unary(UnaryOp::LogicalNot, Math::Exact);
                truths.push(builder.add(not, &[&truths[0]], U8, &truths[0].shape));
                continue;
            }
            8 if truths.len() > 1 => {
                let op = *random.pick(&[BinaryOp::LogicalAnd, BinaryOp::LogicalOr, BinaryOp::LogicalXor]);
                let (a, b) = (random.pick(&truths).clone(), random.pick(&truths).clone());
                truths.push(binary(op, &a, &b, U8));
                continue;
            }
            9 if !truths.is_empty() => {
                let truth = random.pick(&truths).clone();
                binary(*random.pick(&[BinaryOp::Add, BinaryOp::Multiply]), &a, &truth, dtype)
            }
            8..=10 if !truths.is_empty() => {
                let truth = random.pick(&truths).clone();
                if random.below(3) == 0 {
                    builder.add(Operation::AsType, &[&truth], dtype, &truth.shape)
                } else {
                    let size =
                        |axis: usize| [&truth, &a, &b].map(|operand| operand.shape[axis]).into_iter().max();
                    let shape = [0, 1].map(|axis| size(axis).unwrap_or(0));
                    builder.add(Operation::Select, &[&truth, &a, &b], dtype, &shape)
                }
            }
            11 if !is_float => {
                let op = *random.pick(&[BinaryOp::BitwiseAnd, BinaryOp::BitwiseOr, BinaryOp::BitwiseXor]);
                binary(op, &a, &b, dtype)
            }
            12 if dtype == U32 => {
                // Of one number too, whose shape is not that of the result.
                let op = Operation::Binary(*random.pick(&[BinaryOp::LeftShift, BinaryOp::RightShift]));
                builder.add(op, &[&a, &count], dtype, &[rows, columns])
            }
            12 if dtype == S32 => {
                // A cluster goes on with another type of the same width.
                let float = builder.add(Operation::AsType, &[&a], F32, &a.shape);
                let sum = builder.add(Operation::Binary(BinaryOp::Add), &[&float, &float], F32, &a.shape);
                Operand { dtype, ..sum }
            }
            // A row's sum, beside all elements.
            12 if columns > 1 => {
                let shape = [rows, 1];
                let sum = Operation::Reduce(ReduceOp::Sum, Shape::from_slice(&[1]));
                let whole = binary(BinaryOp::Add, &a, &values[0], dtype);
                builder.add(sum, &[&whole], dtype, &shape)
            }
            13 => {
                let (op, math) = *random.pick(&[
                    (UnaryOp::Negate, Math::Exact),
                    (UnaryOp::Abs, Math::Exact),
                    (UnaryOp::Sqrt, Math::Exact),
                    (UnaryOp::Rsqrt, Math::Fast),
                    (UnaryOp::Tanh, Math::Fast),
                ]);
                builder.add(Operation::Unary(op, math), &[&a], dtype, &a.shape)
            }
            _ if is_float => binary(BinaryOp::Divide, &a, &b, dtype),
            _ => binary(BinaryOp::Add, &a, &b, dtype),
        };
        assert_eq!(value.dtype.width(), width);
        values.push(value);
    }
    let mut results = vec![values[values.len() - 1].clone()];
    for _ in 0..random.below(3) {
        results.push(random.pick(&values).clone());
        if let Some(truth) = truths.last()
            && random.below(4) == 0
        {
            results.push(truth.clone());
        }
    }
    (builder.region(&results.iter().collect::<Vec<_>>()), arguments)
}

#[test]
fn vector_kernels_have_the_bits_of_their_operations() {
    let (mut with_kernels, count) = (0_u64, 3_000);
    for seed in 0..count {
        let (region, arguments) = random_program(&mut Random(seed));
        let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        let dtypes: Vec<DType> = region.results.iter().map(|result| result.dtype).collect();
        let regions = [region];
        let fused = Program::new(&regions, Vec::new()).expect("a program");
        let plain = Program::without_fusion(&regions, Vec::new()).expect("a program");
        with_kernels += u64::from(fused.to_string().contains(KERNEL));
        let [ours, theirs] = [&fused, &plain].map(|program| without_nan(&run(program, &arguments), &dtypes));
        assert!(ours.is_ok(), "program {seed}: {ours:?}");
        assert!(ours == theirs, "program {seed}: {fused}");
    }
    println!("{with_kernels} programs have vector kernels");
    if machine_code() == "used" && has_fma() {
        assert!(with_kernels > count / 2, "{with_kernels}");
    }
}

/// Numbers of other types: a program has no kernel for operations on them, but for such numbers in the code.
#[test]
fn numbers_of_other_types_are_converted_before() {
    let mut builder = Builder::default();
    let x = builder.parameter(F32, &[5_003]);
    let y = builder.parameter(U32, &[5_003]);
    let literals: Vec<Vec<u8>> = [0_i32, 6, 5].iter().map(|number| number.to_ne_bytes().to_vec()).collect();
    let number = |index| Operand { place: Place::Literal(index), dtype: S32, shape: Shape::new() };
    let zero = number(0);
    let clipped = builder.add(Operation::Clip, &[&x, &zero, &number(1)], F32, &[5_003]);
    let is_less = builder.add(Operation::Binary(BinaryOp::Less), &[&x, &clipped], U8, &[5_003]);
    let selected = builder.add(Operation::Select, &[&is_less, &clipped, &zero], F32, &[5_003]);
    let shifted = builder.add(Operation::Binary(BinaryOp::LeftShift), &[&y, &number(2)], U32, &[5_003]);
    let sum = builder.add(Operation::Binary(BinaryOp::Add), &[&shifted, &y], U32, &[5_003]);
    let regions = [builder.region(&[&selected, &sum])];
    let fused = Program::new(&regions, literals.clone()).expect("a program");
    let plain = Program::without_fusion(&regions, literals).expect("a program");
    let mut random = Random(7);
    let arguments = [F32, U32].map(|dtype| numbers(&mut random, dtype, &[5_003]));
    let arguments = [&arguments[0][..], &arguments[1][..]];
    assert!(run(&fused, &arguments).expect("results") == run(&plain, &arguments).expect("results"));
    if machine_code() == "used" && has_fma() {
        for name in ["clip", "select", "left_shift"] {
            let in_kernel = |line: &str| line.starts_with("            ") && line.contains(name);
            assert!(fused.to_string().lines().any(in_kernel), "{fused}");
        }
    }
}
