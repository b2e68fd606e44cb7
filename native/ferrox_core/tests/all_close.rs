//! `all_close` of every pair of types and of views that are broadcast.

mod common;

use common::number::Number;
use common::{Random, Source, contiguous, indices, output, views};
use ferrox_core::DType::{self, *};
use ferrox_core::ops::all_close::{Tolerance, all_close};

fn close(a: Number, b: Number, tolerance: Tolerance) -> bool {
    let Tolerance { relative, absolute, equal_nan } = tolerance;
    let infinite = |x: Number| x.re().is_infinite() || x.im().is_infinite();
    if equal_nan && a.is_nan() && b.is_nan() {
        return true;
    }
    if infinite(a) || infinite(b) {
        return a.re() == b.re() && a.im() == b.im();
    }
    if a.is_nan() || b.is_nan() {
        return false;
    }
    if let (Number::Integer(a), Number::Integer(b)) = (a, b) {
        return (a - b).abs() as f64 <= absolute + relative * b.abs() as f64;
    }
    let distance = (a.re() - b.re()).hypot(a.im() - b.im());
    distance <= absolute + relative * b.re().hypot(b.im())
}

fn run(left: &Source, right: &Source, shape: &[usize], tolerance: Tolerance) -> bool {
    let (a, b) = (left.buffer(), right.buffer());
    let got =
        output(U8, &[], |out| all_close(out, &left.see(&a), &right.see(&b), tolerance)).expect("defined");
    let expected =
        indices(shape).all(|index| close(left.broadcast_at(&index), right.broadcast_at(&index), tolerance));
    assert_eq!(got, [u128::from(expected)], "{left} against {right}, {tolerance:?}");
    expected
}

const TOLERANCES: [Tolerance; 4] = [
    Tolerance { relative: 1e-5, absolute: 1e-8, equal_nan: false },
    Tolerance { relative: 0.0, absolute: 0.0, equal_nan: true },
    Tolerance { relative: 0.5, absolute: 3.0, equal_nan: true },
    Tolerance { relative: 0.0, absolute: f64::INFINITY, equal_nan: false },
];

#[test]
fn every_pair_of_types() {
    let (mut random, mut both) = (Random(1), [0; 2]);
    for &left in DType::ALL {
        for &right in DType::ALL {
            for tolerance in TOLERANCES {
                let one = contiguous(&[1]);
                let (a, b) =
                    (Source::random(left, one.clone(), &mut random), Source::random(right, one, &mut random));
                both[usize::from(run(&a, &b, &[1], tolerance))] += 1;
                let rows = contiguous(&[5]);
                let a = Source::random(left, rows.clone(), &mut random);
                both[usize::from(run(&a, &a, &[5], tolerance))] += 1;
                run(&a, &Source::random(right, rows, &mut random), &[5], tolerance);
            }
        }
    }
    assert!(both.iter().all(|&n| n > 100), "{both:?}");
}

#[test]
fn broadcast_views() {
    let mut random = Random(2);
    let shapes: [(&[usize], &[usize], &[usize]); 7] = [
        (&[], &[], &[]),
        (&[], &[2, 3], &[2, 3]),
        (&[2, 3], &[3], &[2, 3]),
        (&[2, 1, 4], &[3, 1], &[2, 3, 4]),
        (&[0, 3], &[3], &[0, 3]),
        (&[5000], &[5000], &[5000]),
        (&[300, 1000], &[1000], &[300, 1000]),
    ];
    for (left, right, shape) in shapes {
        for view in views(left) {
            for dtype in [F32, S8, C64] {
                let numbers: Vec<Number> = (0..7).map(Number::Integer).collect();
                let a = if dtype == S8 {
                    Source::new(dtype, view.clone(), &numbers)
                } else {
                    Source::random(dtype, view.clone(), &mut random)
                };
                let b = Source::random(dtype, contiguous(right), &mut random);
                run(&a, &b, shape, TOLERANCES[random.below(4)]);
            }
        }
    }
}

/// Only the last elements differ, in a bit that an f64 doesn't have.
#[test]
fn distances_of_integers_are_exact() {
    let exact = Tolerance { relative: 0.0, absolute: 0.0, equal_nan: false };
    let mut numbers = vec![Number::Integer((1 << 53) + 1); 10_000];
    let a = Source::new(S64, contiguous(&[10_000]), &numbers);
    numbers[9_999] = Number::Integer(1 << 53);
    let b = Source::new(U64, contiguous(&[10_000]), &numbers);
    assert!(run(&a, &a, &[10_000], exact));
    assert!(!run(&a, &b, &[10_000], exact));
    // In u8 the difference would wrap around.
    let one = Source::new(U8, contiguous(&[]), &[Number::Integer(1)]);
    let two = Source::new(U8, contiguous(&[]), &[Number::Integer(2)]);
    assert!(run(&one, &two, &[], Tolerance { absolute: 1.0, ..exact }));
}

#[test]
fn refuses_shapes_that_do_not_broadcast() {
    let a = Source::new(F32, contiguous(&[2, 3]), &[Number::Real(1.0)]);
    let b = Source::new(F32, contiguous(&[2]), &[Number::Real(1.0)]);
    let (a, b) = (a.buffer(), b.buffer());
    let error = output(U8, &[], |out| all_close(out, &a, &b, TOLERANCES[0])).expect_err("don't broadcast");
    assert_eq!(error.to_string(), "all_close: shapes {2, 3} and {2} can't be broadcast to one");
}
