//! Measures the errors of unary and binary functions, called as a tensor operation calls them.
//!
//! `cargo run --release --example ulp -- [--step N] [--type T] [function ...]` compares each result
//! with a reference in f64, and prints a line for each function and type: the number of inputs, the
//! number of results that differ from the reference rounded to the type, the percentage of equal
//! results, the largest error in units in the last place (of the rounded result, so 0.5 is the best
//! possible error), and the input that has it.
//!
//! Types of 8 and 16 bits are tested with all inputs, and `f32` with all 2^32 inputs, or every Nth
//! with `--step N`. `pow` and `atan2` are tested with all pairs of 8-bit values, with all 2^32
//! pairs of 16-bit values, or every Nth, and with the same number of pairs of f32. These pairs are
//! made by a hash, and include each pair of special values. For f64 and complex types, whose
//! reference needs more digits than f64 has, there is `bench/ulp.exs`.
//!
//! The references are the system libm or, where std has no such function, formulas with an error of
//! about two f64 ulps. So a few hundred of 2^32 results differ although they are right: the exact
//! result is too close to a midpoint of two f32 values for the reference.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "indices become bit patterns, counts become percentages"
)]

#[path = "../tests/common/real_functions.rs"]
mod real_functions;

use ferrox_core::exec::threads::parallel;
use ferrox_core::ops::binary::{BinaryOp, binary};
use ferrox_core::ops::cast::as_type;
use ferrox_core::ops::unary::{UnaryOp, unary};
use ferrox_core::{DType, Error, Output, Tensor};
use rayon::prelude::*;
use real_functions::{acosh, asinh, atanh, erf, erf_inv, erfc};

/// Two arguments. Unary functions ignore the second one.
type Pair = (f32, f32);

/// A function of one element, and its reference.
type UnaryFunction = (UnaryOp, fn(f64) -> f64);

const UNARY_FUNCTIONS: [UnaryFunction; 23] = [
    (UnaryOp::Exp, f64::exp),
    (UnaryOp::Expm1, f64::exp_m1),
    (UnaryOp::Log, f64::ln),
    (UnaryOp::Log1p, f64::ln_1p),
    (UnaryOp::Sqrt, f64::sqrt),
    (UnaryOp::Rsqrt, |x| 1.0 / x.sqrt()),
    (UnaryOp::Cbrt, f64::cbrt),
    (UnaryOp::Sin, f64::sin),
    (UnaryOp::Cos, f64::cos),
    (UnaryOp::Tan, f64::tan),
    (UnaryOp::Asin, f64::asin),
    (UnaryOp::Acos, f64::acos),
    (UnaryOp::Atan, f64::atan),
    (UnaryOp::Sinh, f64::sinh),
    (UnaryOp::Cosh, f64::cosh),
    (UnaryOp::Tanh, f64::tanh),
    (UnaryOp::Asinh, asinh),
    (UnaryOp::Acosh, acosh),
    (UnaryOp::Atanh, atanh),
    (UnaryOp::Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
    (UnaryOp::Erf, erf),
    (UnaryOp::Erfc, erfc),
    (UnaryOp::ErfInv, erf_inv),
];

/// A function of two elements, its reference, and the function that makes its arguments.
type BinaryFunction = (BinaryOp, fn(f64, f64) -> f64, fn(u32) -> Pair);

const BINARY_FUNCTIONS: [BinaryFunction; 2] =
    [(BinaryOp::Pow, f64::powf, power_input), (BinaryOp::Atan2, f64::atan2, any_input)];

/// The types, and the exponent of the smallest normal number of each.
const TYPES: [(DType, i32); 5] =
    [(DType::F8, -14), (DType::F8E4M3FN, -6), (DType::F16, -14), (DType::BF16, -126), (DType::F32, -126)];

/// Mixes the bits of an index (the finalizer of splitmix64).
fn hash(index: u32) -> u64 {
    let mut h = u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    h ^ (h >> 31)
}

const SPECIAL_VALUES: [f32; 16] = [
    0.0,
    1.0,
    2.0,
    3.0,
    0.5,
    1.5,
    f32::EPSILON,
    1.0 + f32::EPSILON,
    1.0 - f32::EPSILON / 2.0,
    16_777_215.0,
    16_777_216.0,
    f32::MIN_POSITIVE,
    1.0e-45,
    f32::MAX,
    f32::INFINITY,
    f32::NAN,
];

/// Makes a value from 32 random bits. One of eight values is a special one with either sign.
fn any_value(bits: u32) -> f32 {
    if bits.is_multiple_of(8) {
        let special = SPECIAL_VALUES[(bits >> 3) as usize % SPECIAL_VALUES.len()];
        special.copysign(f32::from_bits(bits))
    } else {
        f32::from_bits(bits)
    }
}

fn any_input(index: u32) -> Pair {
    let h = hash(index);
    (any_value(h as u32), any_value((h >> 32) as u32))
}

/// Half of the pairs are arbitrary. The others have bases from 2^-32 to 2^32 and exponents that
/// keep the power in range. Half of these exponents are integers.
fn power_input(index: u32) -> Pair {
    if index.is_multiple_of(2) {
        return any_input(index);
    }
    let h = hash(index);
    let sign_and_fraction = h as u32 & 0x807f_ffff;
    let x = f32::from_bits(sign_and_fraction | ((127 - 32 + (h >> 58) as u32) << 23));
    let y = 150.0 * f32::from_bits(0x3f80_0000 | ((h >> 32) as u32 & 0x007f_ffff)) - 225.0;
    let y = y / x.abs().log2().abs().max(0.01);
    if h & 1 << 57 == 0 { (x, y.round()) } else { (x.abs(), y) }
}

/// The errors of a function for some inputs.
#[derive(Clone, Copy, Default)]
struct Tally {
    inputs: u64,
    different: u64,
    /// The largest error. It is infinite if a result is infinite or NaN and should not be.
    ulps: f64,
    at: (f64, f64),
}

impl Tally {
    fn merge(self, other: Self) -> Self {
        let worse = if other.ulps > self.ulps { other } else { self };
        Self { inputs: self.inputs + other.inputs, different: self.different + other.different, ..worse }
    }
}

/// Elements of a type, native-endian.
struct Elements {
    dtype: DType,
    bytes: Vec<u8>,
}

impl Elements {
    fn of_f64(values: &[f64]) -> Self {
        Elements { dtype: DType::F64, bytes: values.iter().flat_map(|x| x.to_ne_bytes()).collect() }
    }

    fn len(&self) -> usize {
        self.bytes.len() / self.dtype.width()
    }

    fn tensor<'a>(&'a self, shape: &'a [usize; 1]) -> Result<Tensor<'a>, Error> {
        Tensor::new("ulp", self.dtype, shape, &self.bytes)
    }

    /// Returns the elements that an operation writes to an output of the given length.
    fn filled(
        dtype: DType,
        length: usize,
        fill: impl FnOnce(Output<'_>) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut bytes = vec![0; length * dtype.width()];
        fill(Output::new("ulp", dtype, &[length], &mut bytes)?)?;
        Ok(Elements { dtype, bytes })
    }

    fn cast(&self, to: DType) -> Result<Self, Error> {
        let shape = [self.len()];
        Self::filled(to, self.len(), |out| as_type(out, &self.tensor(&shape)?))
    }

    fn values(&self) -> Result<Vec<f64>, Error> {
        let wide = self.cast(DType::F64)?;
        Ok(wide.bytes.as_chunks().0.iter().map(|&bytes| f64::from_ne_bytes(bytes)).collect())
    }
}

/// Compares results with the exact ones for pairs of arguments.
fn compare(
    min_exponent: i32,
    arguments: &[(f64, f64)],
    results: &Elements,
    exact: &[f64],
) -> Result<Tally, Error> {
    let best = Elements::of_f64(exact).cast(results.dtype)?.values()?;
    let precision = results.dtype.precision() as i32;
    let overflow = Elements::of_f64(&[f64::MAX]).cast(results.dtype)?.values()?[0];
    let mut tally = Tally { inputs: arguments.len() as u64, ..Tally::default() };
    for (((&at, &exact), best), result) in arguments.iter().zip(exact).zip(best).zip(results.values()?) {
        let same = result.to_bits() == best.to_bits() || result.is_nan() && best.is_nan();
        tally.different += u64::from(!same);
        // Where the result overflows or underflows, only the rounded result matters.
        if same && (!best.is_finite() || best.abs() == overflow || best == 0.0) {
            continue;
        }
        let exponent = exact.abs().log2().floor().max(f64::from(min_exponent)) as i32;
        let ulps = (result - exact).abs() / 2f64.powi(exponent + 1 - precision);
        let ulps = if ulps.is_nan() { f64::INFINITY } else { ulps };
        if ulps > tally.ulps {
            (tally.ulps, tally.at) = (ulps, at);
        }
    }
    Ok(tally)
}

/// The number of elements that are compared together.
const INDICES_PER_BLOCK: usize = 1 << 16;

/// Merges the tallies that `check` returns for blocks of every `step`th of `count` indices.
fn tally(
    count: usize,
    step: usize,
    check: impl Fn(&[u32]) -> Result<Tally, Error> + Sync,
) -> Result<Tally, Error> {
    let inputs = count.div_ceil(step);
    (0..inputs.div_ceil(INDICES_PER_BLOCK))
        .into_par_iter()
        .map(|block| {
            let indices = block * INDICES_PER_BLOCK..inputs.min((block + 1) * INDICES_PER_BLOCK);
            check(&indices.map(|i| (i * step) as u32).collect::<Vec<u32>>())
        })
        .try_reduce(Tally::default, |a, b| Ok(a.merge(b)))
}

fn check_unary(
    (op, reference): UnaryFunction,
    (dtype, min_exponent): (DType, i32),
    step: usize,
) -> Result<Tally, Error> {
    let bits = 8 * dtype.width();
    let step = if bits < 32 { 1 } else { step };
    tally(1 << bits, step, |indices| {
        let bytes = indices.iter().flat_map(|i| i.to_le_bytes().into_iter().take(dtype.width()));
        let inputs = Elements { dtype, bytes: bytes.collect() };
        let shape = [indices.len()];
        let results = Elements::filled(dtype, indices.len(), |out| unary(op, out, &inputs.tensor(&shape)?))?;
        let arguments: Vec<(f64, f64)> = inputs.values()?.into_iter().map(|x| (x, 0.0)).collect();
        let exact: Vec<f64> = arguments.iter().map(|&(x, _)| reference(x)).collect();
        compare(min_exponent, &arguments, &results, &exact)
    })
}

fn check_binary(
    (op, reference, pair): BinaryFunction,
    (dtype, min_exponent): (DType, i32),
    step: usize,
) -> Result<Tally, Error> {
    let width = dtype.width();
    // An index has the bits of both arguments if the type has at most 16 bits.
    let (count, step) = if width == 1 { (1 << 16, 1) } else { (1 << 32, step) };
    tally(count, step, |indices| {
        let side = |wide: fn(Pair) -> f32, skipped: usize| {
            let bits = |&i| if width == 4 { wide(pair(i)).to_bits() } else { i >> (8 * skipped) };
            let bytes = indices.iter().map(bits).flat_map(|bits| bits.to_le_bytes().into_iter().take(width));
            Elements { dtype, bytes: bytes.collect() }
        };
        let (left, right, shape) = (side(|pair| pair.0, 0), side(|pair| pair.1, width), [indices.len()]);
        let results = Elements::filled(dtype, indices.len(), |out| {
            binary(op, out, &left.tensor(&shape)?, &right.tensor(&shape)?)
        })?;
        let arguments: Vec<(f64, f64)> = left.values()?.into_iter().zip(right.values()?).collect();
        let exact: Vec<f64> = arguments.iter().map(|&(x, y)| reference(x, y)).collect();
        compare(min_exponent, &arguments, &results, &exact)
    })
}

fn report(name: &str, dtype: DType, tally: Tally) {
    let Tally { inputs, different, ulps, at: (x, y) } = tally;
    let share = 100.0 * (1.0 - different as f64 / inputs as f64);
    println!("{name:8} {dtype:9} {inputs:10} {different:9} {share:12.7} {ulps:9.6}  {x:e} {y:e}");
}

fn main() -> Result<(), Error> {
    let (mut step, mut only, mut names) = (1, None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--step" => {
                let value = arguments.next().and_then(|value| value.parse().ok());
                step = value.filter(|&step| step > 0).expect("--step takes a number");
            }
            "--type" => only = Some(arguments.next().expect("--type takes a type")),
            _ => names.push(argument),
        }
    }
    // Blocks are distributed here. A thread that waited for the pool in an operation would start
    // another block.
    parallel::set_threads(1);
    let asked = |name: &str| names.is_empty() || names.iter().any(|asked| asked == name);
    println!(
        "{:8} {:9} {:>10} {:>9} {:>12} {:>9}  worst at",
        "function", "type", "inputs", "different", "identical %", "max ulp"
    );
    for target in
        TYPES.into_iter().filter(|(dtype, _)| only.as_ref().is_none_or(|only| *only == dtype.to_string()))
    {
        for function in UNARY_FUNCTIONS.into_iter().filter(|(op, _)| asked(op.name())) {
            report(function.0.name(), target.0, check_unary(function, target, step)?);
        }
        for function in BINARY_FUNCTIONS.into_iter().filter(|(op, ..)| asked(op.name())) {
            report(function.0.name(), target.0, check_binary(function, target, step)?);
        }
    }
    Ok(())
}
