//! Checks the functions of `ops::math`, the unary ones on all 2^32 f32 values.
//!
//! `cargo run --release --example ulp -- [--step N] [function ...]` compares each result, rounded
//! to f32, with that of a reference in f64, and prints: how many inputs were tried, how many gave
//! another f32 than the reference, the share that agree, the largest error in units in the last
//! place of f32 (of the rounded result, so 0.5 is the best there is), the largest relative error
//! of the result before rounding as a power of two, and the inputs where these two occur. With
//! `--step N` every Nth input is tried. `pow` and `atan2` are tried on 2^32 pairs of f32 values,
//! which a hash makes and which meet every pair of special values.
//!
//! The references are the system libm or, where std has no such function, formulas kept to about
//! two f64 ulps. That makes a few hundred of 2^32 inputs differ for no fault of ours: their exact
//! result is that close to halfway between two f32 values.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "indices become bit patterns, counts become percentages"
)]

use ferrox_core::ops::math::Fused;
use ferrox_core::ops::{double, math};
use rayon::prelude::*;

/// Two arguments; unary functions ignore the second.
type Pair = (f32, f32);

/// A function, where its inputs come from, and what it should give.
struct Entry {
    name: &'static str,
    block: fn(&[Pair], &mut [f64]),
    input: fn(u32) -> Pair,
    reference: fn(f64, f64) -> f64,
}

macro_rules! unary {
    ($name:ident, $function:expr, $reference:expr) => {
        Entry {
            name: stringify!($name),
            block: |x, y| {
                for (&(x, _), y) in x.iter().zip(y) {
                    *y = $function(f64::from(x));
                }
            },
            input: |index| (f32::from_bits(index), 0.0),
            reference: |x, _| $reference(x),
        }
    };
}

macro_rules! binary {
    ($name:ident, $input:expr, $reference:expr) => {
        Entry {
            name: stringify!($name),
            block: |x, y| {
                for (&(x0, x1), y) in x.iter().zip(y) {
                    *y = math::$name(f64::from(x0), f64::from(x1));
                }
            },
            input: $input,
            reference: $reference,
        }
    };
}

const ENTRIES: [Entry; 25] = [
    unary!(exp, math::exp::<Fused>, f64::exp),
    unary!(expm1, math::expm1::<Fused>, f64::exp_m1),
    unary!(log, math::log::<Fused>, f64::ln),
    unary!(log1p, math::log1p::<Fused>, f64::ln_1p),
    unary!(sqrt, math::sqrt::<Fused>, f64::sqrt),
    unary!(rsqrt, math::rsqrt::<Fused>, |x: f64| 1.0 / x.sqrt()),
    unary!(cbrt, math::cbrt::<Fused>, |x: f64| x.cbrt() + 0.0),
    unary!(sin, math::sin_any::<Fused>, f64::sin),
    unary!(cos, math::cos_any::<Fused>, f64::cos),
    unary!(tan, math::tan_any::<Fused>, f64::tan),
    unary!(asin, math::asin::<Fused>, f64::asin),
    unary!(acos, math::acos::<Fused>, f64::acos),
    unary!(atan, math::atan::<Fused>, f64::atan),
    unary!(sinh, math::sinh::<Fused>, f64::sinh),
    unary!(cosh, math::cosh::<Fused>, f64::cosh),
    unary!(tanh, math::tanh::<Fused>, f64::tanh),
    unary!(asinh, math::asinh::<Fused>, asinh),
    unary!(acosh, math::acosh::<Fused>, acosh),
    unary!(atanh, math::atanh::<Fused>, atanh),
    unary!(sigmoid, math::sigmoid::<Fused>, |x: f64| 1.0 / (1.0 + (-x).exp())),
    unary!(erf, math::erf::<Fused>, erf),
    unary!(erfc, math::erfc::<Fused>, erfc),
    unary!(erf_inv, math::erf_inv::<Fused>, double::erf_inv),
    binary!(pow, power_input, f64::powf),
    binary!(atan2, any_input, f64::atan2),
];

/// Mixes the bits of an index (the finalizer of splitmix64).
fn hash(index: u32) -> u64 {
    let mut h = u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    h ^ (h >> 31)
}

const SPECIAL: [f32; 16] = [
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

/// A value by 32 random bits: one time in eight a special one of either sign.
fn any_value(bits: u32) -> f32 {
    if bits.is_multiple_of(8) {
        let special = SPECIAL[(bits >> 3) as usize % SPECIAL.len()];
        special.copysign(f32::from_bits(bits))
    } else {
        f32::from_bits(bits)
    }
}

fn any_input(index: u32) -> Pair {
    let h = hash(index);
    (any_value(h as u32), any_value((h >> 32) as u32))
}

/// Half of the pairs are any; the others are bases from 2^-32 to 2^32 with an exponent that
/// keeps the power in range, half of those whole numbers.
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

fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let root = 1.0 + (a * a + 1.0).sqrt();
    let result = if a > 1.0e10 { a.ln() + std::f64::consts::LN_2 } else { (a + a * (a / root)).ln_1p() };
    result.copysign(x)
}

fn acosh(x: f64) -> f64 {
    let t = x - 1.0;
    if x > 1.0e10 {
        x.ln() + std::f64::consts::LN_2
    } else if x < 1.0 {
        f64::NAN
    } else {
        (t + (t * (x + 1.0)).sqrt()).ln_1p()
    }
}

fn atanh(x: f64) -> f64 {
    let a = x.abs();
    (0.5 * (2.0 * a / (1.0 - a)).ln_1p()).copysign(x)
}

/// `2 / sqrt(pi) exp(-x^2)`, the derivative of `erf`.
fn erf_slope(x: f64) -> f64 {
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp()
}

/// The series of positive terms, as long as 1 is not the f64 nearest to the result.
fn erf(x: f64) -> f64 {
    let square = x * x;
    if square.is_nan() || square > 36.0 {
        return if x.is_nan() { x } else { x.signum() };
    }
    let (mut sum, mut term, mut odd) = (0.0, x, 1.0);
    while sum + term != sum {
        sum += term;
        odd += 2.0;
        term *= 2.0 * square / odd;
    }
    (sum * erf_slope(x)).copysign(x)
}

/// `1 - erf`, or from 1/2 the continued fraction, deep enough for its start.
fn erfc(x: f64) -> f64 {
    if x.is_nan() || x < 0.5 {
        return 1.0 - erf(x);
    }
    if x > 20.0 {
        return 0.0;
    }
    let depth = (200.0 / (x * x)) as u32 + 20;
    let tail = (1..=depth).rev().fold(x, |tail, k| x + 0.5 * f64::from(k) / tail);
    0.5 * erf_slope(x) / tail
}

/// What is known about a function after some inputs.
#[derive(Clone, Copy, Default)]
struct Tally {
    inputs: u64,
    different: u64,
    ulps: Worst,
    relative: Worst,
}

#[derive(Clone, Copy, Default)]
struct Worst {
    error: f64,
    input: Pair,
}

impl Worst {
    /// NaN, from a result that is infinite or NaN out of place, counts as infinite.
    fn new(error: f64, input: Pair) -> Self {
        let error = if error.is_nan() { f64::INFINITY } else { error };
        Self { error, input }
    }

    fn max(self, other: Self) -> Self {
        if other.error > self.error { other } else { self }
    }
}

impl Tally {
    fn merge(self, other: Self) -> Self {
        Self {
            inputs: self.inputs + other.inputs,
            different: self.different + other.different,
            ulps: self.ulps.max(other.ulps),
            relative: self.relative.max(other.relative),
        }
    }

    fn add(&mut self, input: Pair, result: f64, expected: f64) {
        self.inputs += 1;
        let (rounded, best) = (result as f32, expected as f32);
        let same = rounded.to_bits() == best.to_bits() || rounded.is_nan() && best.is_nan();
        self.different += u64::from(!same);
        // Past the range of f32 only the rounded result counts.
        if same && (!best.is_normal() || best.abs() == f32::MAX) {
            return;
        }
        let ulps = (f64::from(rounded) - expected).abs() / ulp(best);
        let relative = ((result - expected) / expected).abs();
        self.ulps = self.ulps.max(Worst::new(ulps, input));
        self.relative = self.relative.max(Worst::new(relative, input));
    }
}

/// The distance from `x` to the next f32 away from zero.
fn ulp(x: f32) -> f64 {
    let magnitude = x.abs().min(f32::MAX.next_down());
    f64::from(magnitude.next_up()) - f64::from(magnitude)
}

fn check(entry: &Entry, step: usize) -> Tally {
    const BLOCK: usize = 1 << 12;
    let inputs = (1_usize << 32).div_ceil(step);
    (0..inputs.div_ceil(BLOCK))
        .into_par_iter()
        .map(|block| {
            let indices = block * BLOCK..inputs.min((block + 1) * BLOCK);
            let x: Vec<Pair> = indices.map(|i| (entry.input)((i * step) as u32)).collect();
            let mut y = vec![0.0; x.len()];
            (entry.block)(&x, &mut y);
            let mut tally = Tally::default();
            for (&x, &y) in x.iter().zip(&y) {
                tally.add(x, y, (entry.reference)(f64::from(x.0), f64::from(x.1)));
            }
            tally
        })
        .reduce(Tally::default, Tally::merge)
}

fn main() {
    let mut step = 1;
    let mut names = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--step" {
            let value = arguments.next().and_then(|value| value.parse().ok());
            step = value.expect("--step takes a number");
        } else {
            names.push(argument);
        }
    }
    println!(
        "{:8} {:>10} {:>9} {:>12} {:>9} {:>9}  worst ulp, worst relative",
        "function", "inputs", "different", "identical %", "max ulp", "log2 rel"
    );
    for entry in &ENTRIES {
        if !names.is_empty() && !names.iter().any(|name| name == entry.name) {
            continue;
        }
        let tally = check(entry, step);
        println!(
            "{:8} {:10} {:9} {:12.7} {:9.6} {:9.2}  {:e} {:e}, {:e} {:e}",
            entry.name,
            tally.inputs,
            tally.different,
            100.0 * (1.0 - tally.different as f64 / tally.inputs as f64),
            tally.ulps.error,
            tally.relative.error.log2(),
            tally.ulps.input.0,
            tally.ulps.input.1,
            tally.relative.input.0,
            tally.relative.input.1,
        );
    }
}
