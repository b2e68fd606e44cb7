//! Functions of f64 have errors of at most one unit in the last place, except those whose last
//! digits Nx's documentation shows. In all float types, zeros keep their sign.

#![allow(clippy::unreadable_literal, reason = "digits as the documentation shows them")]

mod common;

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use common::number::{Number, cast, landmarks, value};
use common::{Random, Source, contiguous, output};
use ferrox_core::DType::{self, *};
use ferrox_core::ops::binary::{BinaryOp, binary};
use ferrox_core::ops::math::f64_functions::cbrt;
use ferrox_core::ops::unary::{UnaryOp, unary};
use ferrox_core::{Output, Tensor};

/// A line with the name of a function is followed by a line for each list of arguments. This line has
/// the bits of the arguments and of the f64 nearest to the result, which mpmath computed with at least
/// 400 bits.
const EXACT: &str = include_str!("fixtures/f64_functions.txt");

const FLOATS: [DType; 6] = [F8, F8E4M3FN, F16, BF16, F32, F64];

/// A function of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Unary(UnaryOp),
    Binary(BinaryOp),
}

impl Function {
    fn named(name: &str) -> Self {
        let unary = UnaryOp::ALL.iter().find(|op| op.name() == name).map(|op| Function::Unary(*op));
        let binary = || BinaryOp::ALL.iter().find(|op| op.name() == name).map(|op| Function::Binary(*op));
        unary.or_else(binary).expect("a function")
    }

    fn name(self) -> &'static str {
        match self {
            Function::Unary(op) => op.name(),
            Function::Binary(op) => op.name(),
        }
    }

    /// Computes the function for each list of arguments.
    fn compute(self, arguments: &[Vec<f64>]) -> Vec<f64> {
        let shape = [arguments.len()];
        let sides: Vec<Vec<u8>> = (0..arguments.first().map_or(0, Vec::len))
            .map(|side| arguments.iter().flat_map(|x| x[side].to_ne_bytes()).collect())
            .collect();
        let tensor = |side: usize| Tensor::new("test", F64, &shape, &sides[side]).expect("sound");
        let mut out = vec![0; 8 * arguments.len()];
        let output = Output::new("test", F64, &shape, &mut out).expect("sound");
        match self {
            Function::Unary(op) => unary(op, output, &tensor(0)),
            Function::Binary(op) => binary(op, output, &tensor(0), &tensor(1)),
        }
        .expect("supported");
        out.as_chunks().0.iter().map(|&bytes| f64::from_ne_bytes(bytes)).collect()
    }

    /// The largest distance of a result from the nearest f64, in numbers. Results of some functions
    /// have the digits of Nx's documentation, with the errors of its formulas.
    fn bound(self) -> u64 {
        match self {
            Function::Unary(UnaryOp::Erfc) => 3,
            Function::Unary(
                UnaryOp::Sinh | UnaryOp::Sigmoid | UnaryOp::Acosh | UnaryOp::Atanh | UnaryOp::Rsqrt,
            ) => 2,
            _ => 1,
        }
    }
}

fn compute(op: UnaryOp, arguments: &[f64]) -> Vec<f64> {
    let arguments: Vec<_> = arguments.iter().map(|&x| vec![x]).collect();
    Function::Unary(op).compute(&arguments)
}

/// The functions of the record, each with lists of arguments and results.
fn exact() -> Vec<(Function, Vec<Vec<f64>>, Vec<f64>)> {
    let mut functions: Vec<(Function, Vec<Vec<f64>>, Vec<f64>)> = Vec::new();
    for line in EXACT.lines() {
        let bits = |text| f64::from_bits(u64::from_str_radix(text, 16).expect("bits"));
        match (line.rsplit_once(' '), functions.last_mut()) {
            (Some((arguments, result)), Some((_, all_arguments, results))) => {
                all_arguments.push(arguments.split(' ').map(bits).collect());
                results.push(bits(result));
            }
            _ => functions.push((Function::named(line), Vec::new(), Vec::new())),
        }
    }
    functions
}

/// Returns the position of an f64 in the order of all f64. Adjacent numbers differ by one, and so
/// do the two zeros.
fn place(x: f64) -> i64 {
    let bits = x.to_bits().cast_signed();
    if bits < 0 { i64::MIN - bits - 1 } else { bits }
}

#[test]
fn near_the_exact_result() {
    let mut compared = 0;
    for (function, arguments, expected) in exact() {
        for ((arguments, expected), got) in arguments.iter().zip(expected).zip(function.compute(&arguments)) {
            let apart = place(got).abs_diff(place(expected));
            let same_sign = got.is_sign_negative() == expected.is_sign_negative();
            assert!(
                apart <= function.bound() && same_sign,
                "{} of {arguments:?}: {got:e} for {expected:e}, {apart} apart",
                function.name()
            );
            compared += 1;
        }
    }
    println!("double: {compared} results compared");
}

/// Most results are the nearest f64.
#[test]
fn nearly_all_are_the_nearest() {
    for (function, arguments, expected) in exact().into_iter().filter(|(f, ..)| f.bound() == 1) {
        let got = function.compute(&arguments);
        let different = got.iter().zip(&expected).filter(|(got, expected)| got != expected).count();
        println!("{}: {different} of {} differ", function.name(), got.len());
        assert!(20 * different <= got.len(), "{}: {different} of {} differ", function.name(), got.len());
    }
}

#[test]
fn alone_and_in_any_number_the_same() {
    let mut random = Random(1);
    for (function, mut arguments, _) in exact() {
        let sides = arguments[0].len();
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0] {
            arguments.push(vec![x; sides]);
        }
        let together = function.compute(&arguments);
        for _ in 0..40 {
            let start = random.below(arguments.len());
            let end = start + 1 + random.below((arguments.len() - start).min(70));
            let apart = function.compute(&arguments[start..end]);
            for ((x, apart), together) in arguments[start..end].iter().zip(apart).zip(&together[start..]) {
                let same = apart.to_bits() == together.to_bits() || apart.is_nan() && together.is_nan();
                assert!(same, "{} of {x:?}: {apart:e} or {together:e}", function.name());
            }
        }
    }
}

#[test]
fn cubes_have_whole_roots() {
    for i in 0..=2_000_u32 {
        for root in [f64::from(i), -f64::from(i), f64::from(i) * 2_f64.powi(300)] {
            let cube = root * root * root;
            assert_eq!(compute(UnaryOp::Cbrt, &[cube]), [root]);
            assert_eq!(cbrt(cube).to_bits(), root.to_bits());
        }
    }
}

/// The digits of f64 results in Nx's documentation, except those of `erf_inv`, of which only seven
/// are right.
#[test]
fn digits_of_the_documentation() {
    use UnaryOp::*;
    for (op, x, expected) in [
        (Expm1, [1.0, 2.0, 3.0], [1.718281828459045, 6.38905609893065, 19.085536923187668]),
        (Rsqrt, [1.0, 2.0, 3.0], [1.0, 0.7071067811865475, 0.5773502691896258]),
        (Sigmoid, [1.0, 2.0, 3.0], [0.7310585786300049, 0.8807970779778823, 0.9525741268224334]),
        (Sinh, [1.0, 2.0, 3.0], [1.1752011936438014, 3.626860407847019, 10.017874927409903]),
        (Acosh, [1.0, 2.0, 3.0], [0.0, 1.3169578969248166, 1.762747174039086]),
        (Atanh, [0.1, 0.5, 0.9], [0.10033534773107558, 0.5493061443340548, 1.4722194895832204]),
        (Erfc, [1.0, 2.0, 3.0], [0.15729920705028513, 0.004677734981047265, 2.2090496998585438e-05]),
    ] {
        assert_eq!(compute(op, &x), expected, "{}", op.name());
    }
}

/// Results for zeros, ones, infinities and NaN are as in C99 and IEEE 754. `round` of -0.3 is as in
/// Nx.
#[test]
fn special_values_of_every_type() {
    use UnaryOp::*;
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    let x = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN];
    let (e, log_2) = (std::f64::consts::E, std::f64::consts::LN_2);
    let expected = [
        (Exp, [1.0, 1.0, e, 1.0 / e, INF, 0.0, NAN]),
        (Log, [-INF, -INF, 0.0, NAN, INF, NAN, NAN]),
        (Sin, [0.0, -0.0, 1f64.sin(), -1f64.sin(), NAN, NAN, NAN]),
        (Cos, [1.0, 1.0, 1f64.cos(), 1f64.cos(), NAN, NAN, NAN]),
        (Tan, [0.0, -0.0, 1f64.tan(), -1f64.tan(), NAN, NAN, NAN]),
        (Asin, [0.0, -0.0, FRAC_PI_2, -FRAC_PI_2, NAN, NAN, NAN]),
        (Acos, [FRAC_PI_2, FRAC_PI_2, 0.0, PI, NAN, NAN, NAN]),
        (Atan, [0.0, -0.0, FRAC_PI_4, -FRAC_PI_4, FRAC_PI_2, -FRAC_PI_2, NAN]),
        (Expm1, [0.0, -0.0, e - 1.0, 1.0 / e - 1.0, INF, -1.0, NAN]),
        (Log1p, [0.0, -0.0, log_2, -INF, INF, NAN, NAN]),
        (Cbrt, [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN]),
        (Rsqrt, [INF, -INF, 1.0, NAN, 0.0, NAN, NAN]),
        (Sinh, [0.0, -0.0, 1f64.sinh(), -1f64.sinh(), INF, -INF, NAN]),
        (Cosh, [1.0, 1.0, 1f64.cosh(), 1f64.cosh(), INF, INF, NAN]),
        (Tanh, [0.0, -0.0, 1f64.tanh(), -1f64.tanh(), 1.0, -1.0, NAN]),
        (Sigmoid, [0.5, 0.5, 1.0 / (1.0 + 1.0 / e), 1.0 / (1.0 + e), 1.0, 0.0, NAN]),
        (Asinh, [0.0, -0.0, 1f64.asinh(), -1f64.asinh(), INF, -INF, NAN]),
        (Acosh, [NAN, NAN, 0.0, NAN, INF, NAN, NAN]),
        (Atanh, [0.0, -0.0, INF, -INF, NAN, NAN, NAN]),
        (Erf, [0.0, -0.0, 0.842_700_792_949_714_9, -0.842_700_792_949_714_9, 1.0, -1.0, NAN]),
        (Erfc, [1.0, 1.0, 0.157_299_207_050_285_13, 1.842_700_792_949_715, 0.0, 2.0, NAN]),
        (ErfInv, [0.0, -0.0, INF, -INF, NAN, NAN, NAN]),
        (Round, [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN]),
    ];
    for dtype in FLOATS {
        let bits = |x: f64| cast(Number::Real(x), dtype);
        for (op, results) in expected {
            for (&x, result) in x.iter().zip(results) {
                // One of the types has no infinities.
                if value(bits(x), dtype).re().is_infinite() != x.is_infinite() {
                    continue;
                }
                let [got, result] = [run(op, dtype, x), value(bits(result), dtype).re()];
                let same = got.to_bits() == result.to_bits() || got.is_nan() && result.is_nan();
                let near = got != 0.0 && result != 0.0 && (got - result).abs() <= 3e-16 * result.abs();
                assert!(same || near, "{} of {x} of {dtype}: {got:e} for {result:e}", op.name());
            }
        }
        assert_eq!(run(Round, dtype, -0.3).to_bits(), 0.0_f64.to_bits());
        // The slope of these functions at zero is one, so small arguments are also the results.
        let [_, normal, smallest] = landmarks(dtype);
        for x in [normal, smallest, -normal, -smallest] {
            for op in [Sin, Tan, Asin, Atan, Expm1, Log1p, Sinh, Tanh, Asinh, Atanh]
                .into_iter()
                .filter(|_| normal < 1e-3)
            {
                assert_eq!(run(op, dtype, x).to_bits(), x.to_bits(), "{} of {x:e} of {dtype}", op.name());
            }
        }
    }
}

/// Returns the result for one element.
fn run(op: UnaryOp, dtype: DType, x: f64) -> f64 {
    let source = Source::new(dtype, contiguous(&[]), &[Number::Real(x)]);
    let got = output(dtype, &[], |out| unary(op, out, &source.buffer())).expect("supported");
    value(got[0], dtype).re()
}
