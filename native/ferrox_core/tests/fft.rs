//! Fourier transforms, compared with their definition as sums of products.

mod common;

use std::f64::consts::TAU;
use std::thread;
use std::time::{Duration, Instant};

use common::number::{Number, cast};
use common::{Bound, Random, Source, check, contiguous, indices, output, views};
use ferrox_core::DType::{self, *};
use ferrox_core::ops::fft::{Transform, fft, fft2};
use ferrox_core::{Error, Output, Tensor};

type Complex = (f64, f64);

/// The transform of a line, cut off or padded with zeros to `n`, by its definition.
fn naive(transform: Transform, line: &[Complex], n: usize) -> Vec<Complex> {
    let at = |i: usize| line.get(i).copied().unwrap_or((0.0, 0.0));
    let half = n / 2 + 1;
    let full: Vec<(usize, Complex)> = (0..n)
        .map(|i| match transform {
            Transform::RealInverse if i >= half => {
                let (re, im) = at(n - i);
                (re, -im)
            }
            _ => at(i),
        })
        .enumerate()
        .filter(|(_, z)| *z != (0.0, 0.0))
        .collect();
    let inverse = matches!(transform, Transform::Inverse | Transform::RealInverse);
    let (sign, scale) = if inverse { (1.0, 1.0 / n as f64) } else { (-1.0, 1.0) };
    let count = if transform == Transform::RealForward { half } else { n };
    (0..count)
        .map(|k| {
            let mut sum = (0.0, 0.0);
            for &(i, (re, im)) in &full {
                let turns = (i as u64 * k as u64 % n as u64) as f64 / n as f64;
                let (s, c) = (sign * TAU * turns).sin_cos();
                sum = (sum.0 + re * c - im * s, sum.1 + re * s + im * c);
            }
            (sum.0 * scale, sum.1 * scale)
        })
        .collect()
}

fn to_type(transform: Transform, dtype: DType) -> DType {
    match (transform, dtype) {
        (Transform::RealInverse, C64) => F32,
        (Transform::RealInverse, C128) => F64,
        (Transform::RealInverse, d) if d.is_integer() => F32,
        (Transform::RealInverse, d) => d,
        (_, F64 | C128) => C128,
        _ => C64,
    }
}

fn random_values(dtype: DType, random: &mut Random) -> Vec<Number> {
    let mut one = || {
        let whole = if dtype.is_integer() { random.below(2) as f64 } else { random.unit() };
        match dtype {
            C64 | C128 => Number::Complex(whole, random.unit()),
            _ if dtype.is_integer() => Number::Integer(whole as i128),
            _ => Number::Real(whole),
        }
    };
    (0..997).map(|_| one()).collect()
}

/// Transforms the elements along an axis, for each index of the other axes.
fn transformed(
    transform: Transform,
    elements: &[Complex],
    shape: &[usize],
    axis: usize,
    n: usize,
) -> (Vec<usize>, Vec<Complex>) {
    let mut out_shape = shape.to_vec();
    out_shape[axis] = if transform == Transform::RealForward { n / 2 + 1 } else { n };
    let position = |shape: &[usize], index: &[usize]| index.iter().zip(shape).fold(0, |p, (i, n)| p * n + i);
    let mut values = vec![(0.0, 0.0); out_shape.iter().product()];
    let mut others = shape.to_vec();
    others[axis] = usize::from(shape[axis] > 0);
    for mut index in indices(&others) {
        let line: Vec<Complex> = (0..shape[axis])
            .map(|i| {
                index[axis] = i;
                elements[position(shape, &index)]
            })
            .collect();
        for (i, value) in naive(transform, &line, n).into_iter().enumerate() {
            index[axis] = i;
            values[position(&out_shape, &index)] = value;
        }
    }
    (out_shape, values)
}

/// Results of single precision are those of f64, rounded once, but for the errors of f64.
fn bound(out: DType) -> Bound {
    match out {
        F32 | C64 => Bound::Relative(1.3e-7),
        F64 | C128 => Bound::Relative(1e-12),
        F16 => Bound::Relative(1e-3),
        BF16 => Bound::Relative(8e-3),
        _ => Bound::Relative(0.26),
    }
}

fn number((re, im): Complex, out: DType) -> u128 {
    cast(if out.is_complex() { Number::Complex(re, im) } else { Number::Real(re) }, out)
}

fn run(transform: Transform, source: &Source, axis: usize, n: usize, eps: f64) -> usize {
    let out = to_type(transform, source.dtype);
    let elements: Vec<Complex> = source.elements().iter().map(|e| (e.re(), e.im())).collect();
    let (shape, expected) = transformed(transform, &elements, source.shape(), axis, n);
    let what = || format!("{transform:?} of {source} along {axis} to {n}");
    let buffer = source.buffer();
    let got = output(out, &shape, |out| fft(transform, out, &source.see(&buffer), (axis, n), eps));
    let got = got.unwrap_or_else(|e| panic!("{}: {e}", what()));
    compare(what, out, &shape, &got, &expected)
}

/// The error of small parts is relative to the largest part.
fn compare(
    what: impl Fn() -> String,
    out: DType,
    shape: &[usize],
    got: &[u128],
    expected: &[Complex],
) -> usize {
    let scale = expected.iter().fold(1e-300, |m: f64, z| m.max(z.0.abs()).max(z.1.abs()));
    let tiny = if matches!(out, F64 | C128) { 1e-13 } else { 1e-10 } * scale;
    let wanted = |position: usize| {
        let (e, g) = (expected[position], common::number::value(got[position], out));
        let close = |e: f64, g: f64| if (e - g).abs() <= tiny { g } else { e };
        number((close(e.0, g.re()), close(e.1, g.im())), out)
    };
    check(what, out, shape, Ok(got.to_vec()), wanted, bound(out))
}

const ALL: [Transform; 4] =
    [Transform::Forward, Transform::Inverse, Transform::RealForward, Transform::RealInverse];

#[test]
fn every_type_and_transform() {
    let (mut compared, mut random) = (0, Random(1));
    for &dtype in DType::ALL {
        for transform in ALL {
            for n in [1, 2, 3, 4, 5, 7, 8, 12, 17] {
                let source = Source::new(dtype, contiguous(&[3, 7]), &random_values(dtype, &mut random));
                if transform != Transform::RealForward || !dtype.is_complex() {
                    compared += run(transform, &source, 1, n, 0.0);
                    compared += run(transform, &source, 0, n, 0.0);
                }
            }
        }
    }
    println!("fft, types: {compared} elements compared");
}

#[test]
fn every_view_and_axis() {
    let mut random = Random(2);
    for shape in [&[5][..], &[2, 6], &[3, 1, 4], &[2, 3, 2, 2]] {
        for view in views(shape) {
            for axis in 0..shape.len() {
                for dtype in [F32, C128, S32] {
                    let source = Source::new(dtype, view.clone(), &random_values(dtype, &mut random));
                    run(Transform::Forward, &source, axis, random.below(6) + 1, 0.0);
                    run(Transform::Inverse, &source, axis, random.below(6) + 1, 0.0);
                }
            }
        }
    }
}

/// Powers of two, powers of other primes, and large primes have different algorithms.
#[test]
fn every_length_up_to_a_hundred_and_some_large_ones() {
    let mut random = Random(3);
    for n in (1..=100).chain([128, 243, 256, 499, 512, 509, 600, 625, 997]) {
        for (transform, dtype) in [(Transform::Forward, C128), (Transform::Inverse, C64)] {
            let source = Source::new(dtype, contiguous(&[1, n]), &random_values(dtype, &mut random));
            run(transform, &source, 1, n, 0.0);
        }
    }
}

#[test]
fn long_sparse_rows() {
    let mut random = Random(5);
    // Lengths with a square matrix, with a matrix of odd sizes, and without a matrix.
    for n in [512 * 512, 481 * 545, 262_147] {
        for (transform, dtype, rows, given) in [
            (Transform::Forward, C128, 1, n),
            (Transform::Forward, C64, 3, n - 1_000),
            (Transform::Inverse, C64, 1, n + 3),
            (Transform::RealForward, F64, 1, n),
            (Transform::RealForward, U8, 2, n - 3),
            (Transform::RealInverse, C128, 1, n / 2 + 1),
            (Transform::RealInverse, C64, 2, n / 3),
        ] {
            let mut elements = vec![zero(dtype); rows * given];
            for i in [0, 1, given - 1, given / 2, n / 2 - 1] {
                elements[i.min(given - 1)] = random_values(dtype, &mut random)[i % 7];
            }
            for _ in 0..6 {
                elements[random.below(rows * given)] = random_values(dtype, &mut random)[3];
            }
            let source = Source::new(dtype, contiguous(&[rows, given]), &elements);
            run(transform, &source, 1, n, 0.0);
        }
    }
}

/// Planning a transform of a large prime length takes a good part of a second.
#[test]
fn a_short_transform_waits_for_no_plan() {
    const LONG: usize = 4_000_037;
    let transform = |length: usize| {
        let (shape, bytes) = ([length], vec![0; 4 * length]);
        let input = Tensor::new("fft", F32, &shape, &bytes).expect("the size");
        let mut result = vec![0; 8 * length];
        let out = Output::new("fft", C64, &shape, &mut result).expect("the size");
        let start = Instant::now();
        fft(Transform::Forward, out, &input, (0, length), 0.0).expect("a transform");
        start.elapsed()
    };
    transform(64);
    let (slowest, took) = thread::scope(|scope| {
        let long = scope.spawn(|| transform(LONG));
        let mut slowest = Duration::ZERO;
        while !long.is_finished() {
            slowest = slowest.max(transform(64));
        }
        (slowest, long.join().expect("no panic"))
    });
    assert!(slowest < took / 10, "a short transform took {slowest:?} beside one of {took:?}");
}

fn zero(dtype: DType) -> Number {
    match dtype {
        C64 | C128 => Number::Complex(0.0, 0.0),
        _ if dtype.is_integer() => Number::Integer(0),
        _ => Number::Real(0.0),
    }
}

#[test]
fn two_axes() {
    let mut random = Random(4);
    for transform in [Transform::Forward, Transform::Inverse] {
        for (axes, lengths) in [([0, 2], [4, 3]), ([2, 0], [5, 6]), ([1, 2], [3, 4])] {
            for dtype in [U8, F32, F64, C64, C128] {
                let source = Source::new(dtype, contiguous(&[4, 3, 5]), &random_values(dtype, &mut random));
                let elements: Vec<Complex> = source.elements().iter().map(|e| (e.re(), e.im())).collect();
                let (shape, once) = transformed(transform, &elements, source.shape(), axes[1], lengths[1]);
                let (shape, expected) = transformed(transform, &once, &shape, axes[0], lengths[0]);
                let out = to_type(transform, dtype);
                let pairs = [(axes[0], lengths[0]), (axes[1], lengths[1])];
                let buffer = source.buffer();
                let got = output(out, &shape, |out| fft2(transform, out, &source.see(&buffer), pairs, 1e-10));
                let got = got.expect("a transform");
                compare(|| format!("{source}"), out, &shape, &got, &expected);
            }
        }
    }
}

#[test]
fn parts_below_eps_become_zero() {
    let line = [1.0, 0.0, 1.0, 0.0].map(Number::Real);
    let source = Source::new(F32, contiguous(&[4]), &line);
    let got = |eps| output(C64, &[4], |out| fft(Transform::Forward, out, &source.buffer(), (0, 4), eps));
    let wanted = |values: [f64; 4]| values.map(|re| cast(Number::Complex(re, 0.0), C64)).to_vec();
    assert_eq!(got(1e-10).expect("a transform"), wanted([2.0, 0.0, 2.0, 0.0]));
    assert_eq!(got(2.0).expect("a transform"), wanted([0.0; 4]));
}

#[test]
fn nan_spreads() {
    let line = [1.0, f64::NAN, 1.0].map(Number::Real);
    let source = Source::new(F64, contiguous(&[3]), &line);
    let got = output(C128, &[3], |out| fft(Transform::Forward, out, &source.buffer(), (0, 3), 1e-10));
    assert!(got.expect("a transform").iter().all(|&bits| common::number::value(bits, C128).is_nan()));
}

#[test]
fn empty_tensors() {
    for (shape, out) in [([0, 4], [0, 4]), ([3, 0], [3, 2])] {
        let source = Source::new(F32, contiguous(&shape), &[Number::Real(1.0)]);
        let got = output(C64, &out, |o| fft(Transform::Forward, o, &source.buffer(), (1, out[1]), 0.0));
        assert!(got.expect("zeros").iter().all(|&bits| bits == 0));
    }
}

#[test]
fn refuses_invalid_arguments() {
    let source = Source::new(F32, contiguous(&[2, 3]), &[Number::Real(1.0)]);
    let buffer = source.buffer();
    let run = |dtype, shape: &[usize], axis, n| {
        output(dtype, shape, |out| fft(Transform::Forward, out, &buffer, (axis, n), 0.0)).map(|_| ())
    };
    assert!(matches!(run(C64, &[2, 3], 2, 3), Err(Error::Argument { .. })));
    assert!(matches!(run(C64, &[2, 4], 1, 3), Err(Error::Shape { .. })));
    assert!(matches!(run(F32, &[2, 3], 1, 3), Err(Error::UnsupportedType { .. })));
    let pairs = [(1, 3), (1, 3)];
    let twice = output(C64, &[2, 3], |out| fft2(Transform::Forward, out, &buffer, pairs, 0.0));
    assert!(matches!(twice, Err(Error::Argument { .. })));
}
