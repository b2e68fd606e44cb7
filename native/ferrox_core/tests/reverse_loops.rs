//! Gradients of loops have the bits of their trips written out one by one, and values that nothing reads
//! are not computed.

mod common;

use common::programs::{Builder, TestHost, add, f32s, literal, run, run_with};
use ferrox_core::DType::*;
use ferrox_core::Error;
use ferrox_core::graph::source::{Operand, Place, Region, ReverseLoop, Slot, Step, Target};
use ferrox_core::graph::{Operation, Program};
use ferrox_core::layout::Shape;
use ferrox_core::ops::binary::BinaryOp;

const MULTIPLY: Operation = Operation::Binary(BinaryOp::Multiply);

/// Steps of a builder, on values of a loop, which give as many values.
type Trip = fn(&mut Builder, &[Operand]) -> Vec<Operand>;

/// The values `[number, x, constant]` after a trip; the last one is passed on.
fn forward(builder: &mut Builder, values: &[Operand]) -> Vec<Operand> {
    let [number, x, constant] = values else { unreachable!("three values") };
    let next = builder.add(add(), &[number, constant], F32, &[]);
    let product = builder.add(MULTIPLY, &[x, number], F32, &x.shape);
    let x = builder.add(Operation::Binary(BinaryOp::Subtract), &[&product, x], F32, &x.shape);
    vec![next, x, constant.clone()]
}

/// The gradients `[of number, of x]` before a trip.
fn backward(builder: &mut Builder, values: &[Operand]) -> Vec<Operand> {
    let [number, x, constant, of_number, of_x] = values else { unreachable!("five values") };
    let scaled = builder.add(MULTIPLY, &[of_x, number], F32, &x.shape);
    let of_x_before = builder.add(add(), &[&scaled, x], F32, &x.shape);
    let of_number = builder.add(MULTIPLY, &[of_number, constant], F32, &[]);
    vec![builder.add(add(), &[&of_number, number], F32, &[]), of_x_before]
}

fn inner(parameters: &[&Operand], trip: Trip) -> Region {
    let mut region = Builder::default();
    let values: Vec<Operand> =
        parameters.iter().map(|value| region.parameter(value.dtype, &value.shape)).collect();
    let results = trip(&mut region, &values);
    region.region(&results.iter().collect::<Vec<_>>())
}

/// The gradient of `trips` trips, and its results that are read; all in one region if `is_written_out`.
fn program(size: usize, trips: i32, read: &[usize], is_written_out: bool) -> (Vec<Region>, Vec<Vec<u8>>) {
    let mut root = Builder::default();
    let values = [root.parameter(F32, &[]), root.parameter(F32, &[size]), root.parameter(F32, &[])];
    let gradients = [root.parameter(F32, &[]), root.parameter(F32, &[size])];
    let mut regions = Vec::new();
    let results = if is_written_out {
        let mut history = vec![values.to_vec()];
        for trip in 1..trips.max(0) as usize {
            let next = forward(&mut root, &history[trip - 1]);
            history.push(next);
        }
        history.truncate(trips.max(0) as usize);
        let mut gradients = gradients.to_vec();
        for values in history.into_iter().rev() {
            gradients = backward(&mut root, &[values, gradients].concat());
        }
        gradients
    } else {
        let outputs: Vec<Slot> = gradients.iter().map(|_| root.slot()).collect();
        let at = |(&slot, value): (&Slot, &Operand)| Operand { place: Place::Slot(slot), ..value.clone() };
        let results = outputs.iter().zip(&gradients).map(at).collect();
        regions.push(inner(&values.iter().collect::<Vec<_>>(), forward));
        regions.push(inner(&values.iter().chain(&gradients).collect::<Vec<_>>(), backward));
        root.steps.push(Step::ReverseLoop(Box::new(ReverseLoop {
            forward: 1,
            backward: 2,
            trips: literal(0, S32, &[]),
            initial: values.to_vec(),
            gradients: gradients.to_vec(),
            invariants: Vec::new(),
            outputs,
        })));
        results
    };
    let read: Vec<&Operand> = read.iter().map(|&index| &results[index]).collect();
    regions.insert(0, root.region(&read));
    (regions, vec![trips.to_ne_bytes().to_vec()])
}

fn check(size: usize, trips: i32, read: &[usize], pauses: bool) {
    let x: Vec<f32> = (0..size).map(|index| (index % 7) as f32 * 0.25 - 0.75).collect();
    let arguments = [f32s(&[0.875]), f32s(&x), f32s(&[0.001]), f32s(&[1.5]), f32s(&x)];
    let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
    let (regions, literals) = program(size, trips, read, true);
    let expected = run(&Program::without_fusion(&regions, literals).expect("a program"), &arguments);
    let (regions, literals) = program(size, trips, read, false);
    let program = Program::new(&regions, literals).expect("a program");
    let mut host = TestHost { pauses, paused: false, allocated: 0 };
    let results = run_with(&program, &arguments, &mut host, |_, _| unreachable!("no calls"));
    assert!(results == expected, "{trips} trips of {size} elements, {read:?}:\n{program}");
}

#[test]
fn gradients_of_loops_have_the_bits_of_their_trips_in_reverse_order() {
    for trips in [-1, 0, 1, 2, 3, 10, 100] {
        for read in [&[0, 1][..], &[0], &[1]] {
            for pauses in [false, true] {
                check(1_000, trips, read, pauses);
            }
        }
    }
}

/// All trips together have more bytes than are kept.
#[test]
fn gradients_of_loops_with_large_values_compute_them_twice() {
    for trips in [64, 65, 72, 73, 100] {
        check(1 << 20, trips, &[1], false);
    }
}

#[test]
fn malformed_gradients_of_loops_are_refused() {
    let change = |change: fn(&mut ReverseLoop)| {
        let (mut regions, literals) = program(10, 3, &[0], false);
        let last = regions[0].steps.last_mut();
        let Some(Step::ReverseLoop(reverse)) = last else { unreachable!("a loop") };
        change(reverse);
        match Program::new(&regions, literals) {
            Err(Error::Argument { op: "program", problem }) => problem,
            other => panic!("{other:?}"),
        }
    };
    let problems = [
        change(|reverse| reverse.forward = 0),
        change(|reverse| reverse.backward = 3),
        change(|reverse| reverse.trips.shape = Shape::from_slice(&[0])),
        change(|reverse| reverse.trips.dtype = F32),
        change(|reverse| drop(reverse.initial.pop())),
        change(|reverse| drop(reverse.gradients.pop())),
        change(|reverse| reverse.outputs.truncate(1)),
        change(|reverse| reverse.invariants.push(reverse.trips.clone())),
        change(|reverse| std::mem::swap(&mut reverse.forward, &mut reverse.backward)),
    ];
    for problem in problems {
        assert!(!problem.is_empty());
    }
}

/// A loop that counts, and computes something beside it.
fn counting(beside: Operation) -> (Vec<Region>, Vec<Vec<u8>>) {
    let literals = [0, 1, 5].map(|number: i32| number.to_ne_bytes().to_vec()).to_vec();
    let mut root = Builder::default();
    let x = root.parameter(S32, &[100]);
    let ends = root.repeat(vec![literal(0, S32, &[]), x]);
    let mut condition = Builder::default();
    let i = condition.parameter(S32, &[]);
    condition.parameter(S32, &[100]);
    let less = condition.add(Operation::Binary(BinaryOp::Less), &[&i, &literal(2, S32, &[])], U8, &[]);
    let mut body = Builder::default();
    let i = body.parameter(S32, &[]);
    let x = body.parameter(S32, &[100]);
    let next = body.add(add(), &[&i, &literal(1, S32, &[])], S32, &[]);
    let x = body.add(beside, &[&x, &i], S32, &[100]);
    (vec![root.region(&[&ends[0]]), condition.region(&[&less]), body.region(&[&next, &x])], literals)
}

#[test]
fn values_of_loops_that_nothing_reads_are_not_computed() {
    let argument = [1; 100].map(i32::to_ne_bytes).concat();
    let (regions, literals) = counting(MULTIPLY);
    let program = Program::new(&regions, literals).expect("a program");
    assert!(!program.to_string().contains("multiply"), "{program}");
    assert_eq!(run(&program, &[&argument]), Ok(vec![5_i32.to_ne_bytes().to_vec()]));
    // A division by zero is an error, whether or not its result is read.
    let (regions, literals) = counting(Operation::Binary(BinaryOp::Quotient));
    let program = Program::new(&regions, literals).expect("a program");
    assert!(matches!(run(&program, &[&argument]), Err(Error::Element { op: "quotient", .. })), "{program}");
}

/// A fold of a row with a function that reads both arguments or fewer, in a loop or by itself.
fn folding(reads: [bool; 2], operation: Operation, is_read: bool) -> (Vec<Region>, Vec<Vec<u8>>) {
    let (mut regions, literals) = counting(MULTIPLY);
    let mut body = Builder::default();
    let i = body.parameter(S32, &[]);
    let x = body.parameter(S32, &[100]);
    let next = body.add(add(), &[&i, &literal(1, S32, &[])], S32, &[]);
    let slot = body.slot();
    let output = Target { slot, dtype: S32, shape: Shape::new() };
    let row = Operand { shape: Shape::from_slice(&[1, 100]), ..x.clone() };
    body.steps.push(Step::Fold { body: 3, input: row, initial: literal(0, S32, &[]), output });
    let fold = Operand { place: Place::Slot(slot), dtype: S32, shape: Shape::new() };
    let added = if is_read { fold } else { literal(0, S32, &[]) };
    let i = body.add(add(), &[&next, &added], S32, &[]);
    regions[2] = body.region(&[&i, &x]);
    let mut function = Builder::default();
    let arguments = [function.parameter(S32, &[]), function.parameter(S32, &[])];
    let one = literal(1, S32, &[]);
    let [a, b] = [0, 1].map(|index| if reads[index] { &arguments[index] } else { &one });
    let result = function.add(operation, &[a, b], S32, &[]);
    regions.push(function.region(&[&result]));
    (regions, literals)
}

#[test]
fn folds_stay_whole_and_fail_if_they_are_not_read() {
    let argument = [1; 100].map(i32::to_ne_bytes).concat();
    for reads in [[true, true], [true, false], [false, true], [false, false]] {
        for (operation, is_read) in [
            (add(), true),
            (add(), false),
            (Operation::Binary(BinaryOp::Quotient), false),
            (Operation::Binary(BinaryOp::Quotient), true),
        ] {
            let (regions, literals) = folding(reads, operation, is_read);
            let plain = Program::without_fusion(&regions, literals.clone()).expect("a program");
            let program = Program::new(&regions, literals).expect("a program");
            assert_eq!(run(&program, &[&argument]), run(&plain, &[&argument]), "{reads:?}: {program}");
        }
    }
}
