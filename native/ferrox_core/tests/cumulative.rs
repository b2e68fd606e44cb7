//! Cumulative operations on every type, along every axis of every view.

mod common;

use common::number::{Number, cast};
use common::{Bound, Random, Source, check, contiguous, indices, output, views};
use ferrox_core::DType::{self, *};
use ferrox_core::Error;
use ferrox_core::ops::cumulative::{CumulativeOp, cumulative};

fn defined(op: CumulativeOp, dtype: DType) -> bool {
    !dtype.is_complex() || matches!(op, CumulativeOp::Sum | CumulativeOp::Product)
}

/// The total after one more element.
fn next(op: CumulativeOp, total: Number, x: Number) -> Number {
    use CumulativeOp::*;
    use Number::*;
    match (op, total, x) {
        // Casts keep the low bits, which are right for every integer type.
        (Sum, Integer(a), Integer(b)) => Integer(i128::from((a as i64).wrapping_add(b as i64))),
        (Product, Integer(a), Integer(b)) => Integer(i128::from((a as i64).wrapping_mul(b as i64))),
        (Min, Integer(a), Integer(b)) => Integer(a.min(b)),
        (Max, Integer(a), Integer(b)) => Integer(a.max(b)),
        (Sum, Complex(a, b), Complex(c, d)) => Complex(a + c, b + d),
        (Product, Complex(a, b), Complex(c, d)) => {
            let z = num_complex::Complex::new(a, b) * num_complex::Complex::new(c, d);
            Complex(z.re, z.im)
        }
        (Sum, Real(a), Real(b)) => Real(a + b),
        (Product, Real(a), Real(b)) => Real(a * b),
        (_, Real(a), Real(b)) if a.is_nan() || b.is_nan() => Real(f64::NAN),
        (Min, Real(a), Real(b)) => Real(if b < a { b } else { a }),
        (Max, Real(a), Real(b)) => Real(if b > a { b } else { a }),
        _ => panic!("{op:?} of {total:?} and {x:?}"),
    }
}

fn run(op: CumulativeOp, source: &Source, axis: usize, reverse: bool) -> usize {
    let (dtype, shape) = (source.dtype, source.shape());
    let buffer = source.buffer();
    let what = || format!("{} of {source} along {axis}, reverse {reverse}", op.name());
    let got = output(dtype, shape, |out| cumulative(op, out, &source.see(&buffer), axis, reverse));
    let index: Vec<Vec<usize>> = indices(shape).collect();
    let mut expected = vec![0; index.len()];
    for start in index.iter().filter(|index| index[axis] == 0) {
        let mut total = None;
        for step in 0..shape[axis] {
            let mut element_index = start.clone();
            element_index[axis] = if reverse { shape[axis] - 1 - step } else { step };
            let x = source.at(&element_index);
            let sum = total.map_or(x, |total| next(op, total, x));
            total = Some(sum);
            let position = element_index.iter().zip(shape).fold(0, |position, (i, dim)| position * dim + i);
            expected[position] = cast(sum, dtype);
        }
    }
    check(what, dtype, shape, got, |position| expected[position], Bound::Bits)
}

#[test]
fn every_operation_type_and_view() {
    let (mut compared, mut random) = (0, Random(1));
    for &op in CumulativeOp::ALL {
        for &dtype in DType::ALL {
            for shape in [&[1][..], &[7], &[2, 3, 4], &[1, 5, 1], &[0, 3], &[3, 0], &[3, 70], &[2, 5, 130]] {
                let view = random.pick(&views(shape)).clone();
                let source = Source::random(dtype, view, &mut random);
                for axis in 0..shape.len() {
                    let reverse = random.below(2) == 1;
                    if defined(op, dtype) && op == CumulativeOp::Sum && matches!(dtype, F64 | C128) {
                        // Sums and products of whole numbers are exact in any order.
                        let numbers: Vec<Number> = (0..shape.iter().product::<usize>().max(1))
                            .map(|_| {
                                Number::Complex((random.unit() * 1e9).round(), (random.unit() * 1e9).round())
                            })
                            .map(|n| if dtype == F64 { Number::Real(n.re()) } else { n })
                            .collect();
                        let source = Source::new(dtype, contiguous(shape), &numbers);
                        compared += run(op, &source, axis, reverse);
                    } else if defined(op, dtype) {
                        compared += run(op, &source, axis, reverse);
                    } else {
                        let buffer = source.buffer();
                        let error = output(dtype, shape, |out| {
                            cumulative(op, out, &source.see(&buffer), axis, reverse)
                        });
                        assert_eq!(error, Err(Error::UnsupportedType { op: op.name(), dtypes: vec![dtype] }));
                    }
                }
            }
        }
    }
    println!("cumulative: {compared} elements compared");
}

#[test]
fn every_view() {
    let mut random = Random(2);
    for view in views(&[5, 4, 3]) {
        for &op in CumulativeOp::ALL {
            for axis in 0..3 {
                for dtype in [S32, F32, U4, BF16] {
                    run(op, &Source::random(dtype, view.clone(), &mut random), axis, true);
                }
            }
        }
    }
    // The tensor is large enough for several threads.
    for shape in [[400, 700], [3, 100_000]] {
        for axis in 0..2 {
            run(CumulativeOp::Max, &Source::random(S16, contiguous(&shape), &mut random), axis, false);
        }
    }
}

/// The last of a million running sums is as exact as the first.
#[test]
fn sums_of_64_bits_are_compensated() {
    let count = 1_000_000;
    let tenths = vec![Number::Complex(0.1, -0.1); count];
    for dtype in [F64, C128] {
        let source = Source::new(dtype, contiguous(&[count]), &tenths);
        let got =
            output(dtype, &[count], |out| cumulative(CumulativeOp::Sum, out, &source.buffer(), 0, false))
                .expect("defined");
        for (i, bits) in got.into_iter().enumerate() {
            let re = f64::from_bits(bits as u64);
            // A tenth is 0.1 + 5.551115123125783e-18.
            let n = (i + 1) as f64;
            let exact = n / 10.0;
            assert!((re - exact).abs() <= exact * 3e-16, "{dtype}: {re} of {n} tenths");
        }
    }
}

#[test]
fn zeros_infinities_and_overflow() {
    let max = f64::MAX;
    let inf = f64::INFINITY;
    let cases: [(&[f64], &[f64]); 4] = [
        (&[-0.0, -0.0, 0.0], &[-0.0, -0.0, 0.0]),
        (&[1.0, inf, 2.0, -inf, 1.0], &[1.0, inf, inf, f64::NAN, f64::NAN]),
        (&[max, max, -max], &[max, inf, inf]),
        (&[1e16, 1.0, 1.0, -1e16], &[1e16, 1e16, 10_000_000_000_000_002.0, 2.0]),
    ];
    for (input, expected) in cases {
        let numbers: Vec<Number> = input.iter().map(|&x| Number::Real(x)).collect();
        let source = Source::new(F64, contiguous(&[input.len()]), &numbers);
        let got =
            output(F64, &[input.len()], |out| cumulative(CumulativeOp::Sum, out, &source.buffer(), 0, false))
                .expect("defined");
        let expected: Vec<u128> = expected.iter().map(|&x| cast(Number::Real(x), F64)).collect();
        let same = got.iter().zip(&expected).all(|(&a, &b)| common::number::same(a, b, F64));
        assert!(same, "{input:?}: {got:x?} is not {expected:x?}");
    }
}

#[test]
fn wrong_arguments() {
    let source = Source::new(F32, contiguous(&[2, 3]), &[Number::Real(1.0)]);
    let run = |shape: &[usize], dtype, axis| {
        let buffer = source.buffer();
        let got = output(dtype, shape, |out| cumulative(CumulativeOp::Sum, out, &buffer, axis, false));
        got.expect_err("wrong").to_string()
    };
    assert_eq!(run(&[2, 3], F32, 2), "cumulative_sum: axis 2 is out of range for rank 2");
    assert_eq!(run(&[3, 2], F32, 0), "cumulative_sum: shapes {2, 3} and {3, 2} differ");
    assert_eq!(run(&[2, 3], F64, 0), "cumulative_sum is not defined for f32");
}
