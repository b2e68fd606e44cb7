//! Functions of f64 with glibc's steps give its bits, for any number of elements and in every loop, and
//! others are within an ulp of the C library's.

mod common;

use std::collections::BTreeMap;

use common::Random;
use ferrox_core::DType::F64;
use ferrox_core::ops::binary::{BinaryOp, binary};
use ferrox_core::ops::unary::{UnaryOp, unary};
use ferrox_core::{Output, Tensor};

const SPECIAL: [f64; 31] = [
    0.0,
    -0.0,
    0.5,
    1.0,
    -1.0,
    2.0,
    -2.0,
    3.0,
    -3.0,
    512.0,
    -512.0,
    1e-9,
    1e300,
    0.9375,
    1.064_697_265_625,
    0.126,
    0.855_468_75,
    2.426_263_809_204_101_6,
    105_414_336.0,
    0.25,
    1e7,
    std::f64::consts::FRAC_PI_2,
    -std::f64::consts::PI,
    f64::MAX,
    f64::MIN_POSITIVE,
    5e-324,
    -5e-324,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    f64::EPSILON,
];

/// Returns a number with random bits, a special value, or a number of one of several ranges.
fn number(random: &mut Random) -> f64 {
    let unit = random.unit();
    match random.below(6) {
        0 => f64::from_bits(random.next()),
        1 => *random.pick(&SPECIAL),
        2 => 0.9 + 0.2 * unit,
        3 => 1500.0 * unit - 750.0,
        4 => (unit - 0.5) * 2_f64.powi(-(random.below(60) as i32)),
        _ => 20.0 * unit - 10.0,
    }
}

fn numbers(count: usize, random: &mut Random) -> Vec<f64> {
    (0..count).map(|_| number(random)).collect()
}

fn bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_ne_bytes()).collect()
}

/// Functions whose steps are not glibc's.
const OWN: [&str; 5] = ["tan", "asin", "acos", "atan", "atan2"];

/// How many results were compared with those of the C library, and how many differ.
#[derive(Default)]
struct Differences(BTreeMap<&'static str, (usize, usize)>);

impl Differences {
    /// Compares a result, which must be within an ulp, and have the same sign if it is a zero.
    fn compare(&mut self, what: &'static str, arguments: &[f64], expected: f64, got: &[u8]) {
        let got = f64::from_ne_bytes(got.try_into().expect("eight bytes"));
        let equal = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
        let near = got.to_bits().abs_diff(expected.to_bits()) == 1;
        assert!(equal || near, "{what} of {arguments:?}: {got:e} for {expected:e}");
        let (compared, different) = self.0.entry(what).or_default();
        *compared += 1;
        *different += usize::from(!equal);
    }

    /// Checks that those with glibc's steps have its bits, but for a few: other releases of glibc, or
    /// without fused multiply-add, may have other digits. The loops of this test show a wrong step
    /// in far more.
    fn check(&self) {
        for (what, &(compared, different)) in &self.0 {
            println!("{what}: {different} of {compared} differ from the C library's");
            if cfg!(all(target_os = "linux", target_env = "gnu")) && !OWN.contains(what) {
                assert!(1_000 * different <= compared, "{what}: {different} of {compared} differ");
            }
        }
    }
}

type Function = fn(f64) -> f64;
type Binary = fn(f64, f64) -> f64;

const LENGTHS: [usize; 8] = [0, 1, 31, 32, 255, 256, 257, 20_011];

#[test]
fn unary_functions() {
    let functions: [(UnaryOp, Function); 8] = [
        (UnaryOp::Exp, f64::exp),
        (UnaryOp::Log, f64::ln),
        (UnaryOp::Sin, f64::sin),
        (UnaryOp::Cos, f64::cos),
        (UnaryOp::Tan, f64::tan),
        (UnaryOp::Asin, f64::asin),
        (UnaryOp::Acos, f64::acos),
        (UnaryOp::Atan, f64::atan),
    ];
    let (mut random, mut differences) = (Random(1), Differences::default());
    for (op, function) in functions {
        for length in LENGTHS {
            let x = numbers(length, &mut random);
            let mut out = vec![0; 8 * length];
            let shape = [length];
            let data = bytes(&x);
            let tensor = Tensor::new("test", F64, &shape, &data).expect("sound");
            unary(op, Output::new("test", F64, &shape, &mut out).expect("sound"), &tensor)
                .expect("supported");
            for (&x, got) in x.iter().zip(out.chunks(8)) {
                differences.compare(op.name(), &[x], function(x), got);
            }
        }
    }
    differences.check();
}

#[test]
fn binary_functions() {
    let (mut random, mut differences) = (Random(2), Differences::default());
    let functions: [(BinaryOp, Binary); 3] =
        [(BinaryOp::Pow, f64::powf), (BinaryOp::Remainder, |x, y| x % y), (BinaryOp::Atan2, f64::atan2)];
    for (length, (op, function)) in LENGTHS.iter().flat_map(|&n| functions.map(|f| (n, f))) {
        for scalar in [None, Some(0), Some(1)] {
            let [x, y] = [0, 1].map(|side| {
                if scalar == Some(side) {
                    vec![number(&mut random); length]
                } else {
                    numbers(length, &mut random)
                }
            });
            let shape = [length];
            let data = [&x, &y].map(|numbers| bytes(numbers));
            let [left, right] = [0, 1].map(|side| {
                if scalar == Some(side) && length > 0 {
                    Tensor::new("test", F64, &[], &data[side][..8]).expect("sound")
                } else {
                    Tensor::new("test", F64, &shape, &data[side]).expect("sound")
                }
            });
            let mut out = vec![0; 8 * length];
            let output = Output::new("test", F64, &shape, &mut out).expect("sound");
            binary(op, output, &left, &right).expect("supported");
            for ((&x, &y), got) in x.iter().zip(&y).zip(out.chunks(8)) {
                differences.compare(op.name(), &[x, y], function(x, y), got);
            }
        }
    }
    differences.check();
}
