//! Functions of f32, evaluated in f32.
//!
//! Problem: the functions of `f32_functions` are evaluated in f64, with half as many lanes, so that
//! nearly every result is the nearest f32. Technique: range reduction and minimax polynomials (Remez
//! algorithm) in f32, without branches, so that the compiler makes vector instructions of them. The
//! forms are those of Cephes (S. Moshier, Methods and Programs for Mathematical Functions, 1989), but
//! for `erf` of large arguments, whose complement is the exponential of a polynomial. Chunks of plain
//! arguments, whose results need no special cases, take a shorter loop with the same results. Limits:
//! the errors are those of the table in `guides/compiler.md`, which `tests/f32_fast.rs` measures;
//! processors without fused multiply-add give other bits.

use std::f32::consts::LOG2_E;
use std::marker::PhantomData;

use crate::Fault;
use crate::dtype::Lane;
use crate::exec::elementwise::{KERNEL_CHUNK_ELEMENTS, Operand};
use crate::exec::simd::{Vectorized, dispatch as vectorize, dispatch_element};
use crate::ops::math::plain_range::PlainRange;
use crate::ops::scalar::{element_of, word_of};

/// How `a * b + c` is computed and rounded.
pub trait MultiplyAdd: 'static {
    /// Returns `a * b + c`.
    fn fma(a: f32, b: f32, c: f32) -> f32;
}

/// The fused multiply-add instruction, which rounds once. Without the instruction this is a slow call
/// of the C library.
#[derive(Debug)]
pub struct Fused;

impl MultiplyAdd for Fused {
    #[inline(always)]
    fn fma(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

/// A product and a sum that are both rounded.
#[derive(Debug)]
pub struct Separate;

impl MultiplyAdd for Separate {
    #[inline(always)]
    fn fma(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }
}

/// A function of f32.
pub trait Function: 'static {
    /// The arguments for which [`Function::plain`] is right.
    const PLAIN: PlainRange;
    /// The function of plain arguments.
    fn plain<M: MultiplyAdd>(x: f32) -> f32;
    /// The function of any argument; the same as [`Function::plain`] for those.
    fn any<M: MultiplyAdd>(x: f32) -> f32;
}

/// The kernel of a function.
///
/// # Errors
///
/// None.
pub fn kernel<F: Function>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    vectorize(FunctionLoop::<F> { out, operand: operands[0], function: PhantomData });
    Ok(())
}

/// Computes a function of one element.
pub(in crate::ops) fn scalar<F: Function>(x: u64, _: u64) -> u64 {
    word_of(dispatch_element(FunctionElement::<F> { x: element_of(x), function: PhantomData }))
}

struct FunctionElement<F> {
    x: f32,
    function: PhantomData<F>,
}

impl<F: Function> Vectorized for FunctionElement<F> {
    type Output = f32;

    #[inline(always)]
    fn run(self) -> f32 {
        F::any::<Fused>(self.x)
    }

    #[inline(always)]
    fn run_unfused(self) -> f32 {
        F::any::<Separate>(self.x)
    }
}

struct FunctionLoop<'a, 'b, F> {
    out: &'a mut [u8],
    operand: Operand<'b>,
    function: PhantomData<F>,
}

impl<F: Function> Vectorized for FunctionLoop<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.run_with::<Fused>();
    }

    #[inline(always)]
    fn run_unfused(self) {
        self.run_with::<Separate>();
    }
}

impl<F: Function> FunctionLoop<'_, '_, F> {
    #[inline(always)]
    fn run_with<M: MultiplyAdd>(self) {
        let out = f32::view_mut(self.out);
        let input = match self.operand {
            Operand::Slice(input) => f32::view(input),
            Operand::Scalar(input) => return out.fill(F::any::<M>(f32::load(f32::view(input)[0])).store()),
        };
        for (out, input) in out.chunks_mut(KERNEL_CHUNK_ELEMENTS).zip(input.chunks(KERNEL_CHUNK_ELEMENTS)) {
            if F::PLAIN.contains_all(input) {
                for (out, &x) in out.iter_mut().zip(input) {
                    *out = F::plain::<M>(f32::load(x)).store();
                }
            } else {
                for (out, &x) in out.iter_mut().zip(input) {
                    *out = F::any::<M>(f32::load(x)).store();
                }
            }
        }
    }
}

/// Adding this number to a small one rounds it to an integer, which is in the low bits of the sum.
const ROUNDING: f32 = 12_582_912.0;

/// The natural logarithm of 2 in two parts; products of the first part with an exponent are exact.
const LN_2_HIGH: f32 = 355.0 / 512.0;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// The polynomial with these coefficients, of which the last is that of the highest power.
#[inline(always)]
fn polynomial<M: MultiplyAdd, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    for i in (0..N - 1).rev() {
        sum = M::fma(sum, x, coefficients[i]);
    }
    sum
}

/// The exponential function as `power * 2^n`, where `power` is near 1, and `n` is in the low bits of
/// the second result.
#[inline(always)]
fn split_exp<M: MultiplyAdd>(x: f32) -> (f32, i32) {
    let shifted = M::fma(x, LOG2_E, ROUNDING);
    let n = shifted - ROUNDING;
    let high = M::fma(n, -LN_2_HIGH, x);
    let r = M::fma(n, -LN_2_LOW, high);
    let p = polynomial::<M, 5>(r, [0.5, 0.166_665_2, 0.041_668_393, 0.008_368_781, 0.001_381_446_3]);
    // The rest makes up for the rounding errors of `r` and of this sum.
    let sum = 1.0 + high;
    let rest = M::fma(n, -LN_2_LOW, high - (sum - 1.0));
    (sum + M::fma(r * r, p, rest), shifted.to_bits().cast_signed())
}

/// `2^n` for exponents of normal numbers.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) << 23).cast_unsigned())
}

/// The exponential function, for results that are normal numbers.
#[inline(always)]
fn exp_plain<M: MultiplyAdd>(x: f32) -> f32 {
    let (power, n) = split_exp::<M>(x);
    f32::from_bits((power.to_bits().cast_signed().wrapping_add(n << 23)).cast_unsigned())
}

#[inline(always)]
fn exp_any<M: MultiplyAdd>(x: f32) -> f32 {
    // Results are zero below these bounds, and infinite above; NaN stays.
    let x = if x < -104.0 { -104.0 } else { x };
    let x = if x > 89.0 { 89.0 } else { x };
    let (power, n) = split_exp::<M>(x);
    // In two steps, since 2^n itself may not be a normal number.
    let n = n.wrapping_sub(ROUNDING.to_bits().cast_signed());
    let half = n >> 1;
    power * power_of_two(half) * power_of_two(n - half)
}

/// The exponential function.
#[derive(Debug)]
pub struct Exp;

impl Function for Exp {
    const PLAIN: PlainRange = PlainRange::up_to(87.0);
    #[inline(always)]
    fn plain<M: MultiplyAdd>(x: f32) -> f32 {
        exp_plain::<M>(x)
    }
    #[inline(always)]
    fn any<M: MultiplyAdd>(x: f32) -> f32 {
        exp_any::<M>(x)
    }
}

/// The natural logarithm.
#[derive(Debug)]
pub struct Log;

impl Function for Log {
    const PLAIN: PlainRange = PlainRange::finite_from(f32::MIN_POSITIVE);
    #[inline(always)]
    fn plain<M: MultiplyAdd>(x: f32) -> f32 {
        let (mantissa, exponent) = split_exponent(x);
        log_of_parts::<M>(mantissa, exponent)
    }
    #[inline(always)]
    fn any<M: MultiplyAdd>(x: f32) -> f32 {
        let is_subnormal = x < f32::MIN_POSITIVE;
        let (mantissa, exponent) = split_exponent(if is_subnormal { x * 8_388_608.0 } else { x });
        let exponent = exponent - if is_subnormal { 23.0 } else { 0.0 };
        let result = log_of_parts::<M>(mantissa, exponent);
        let special = if x < 0.0 { f32::NAN } else { x };
        let special = if x == 0.0 { f32::NEG_INFINITY } else { special };
        if (x > 0.0) & (x < f32::INFINITY) { result } else { special }
    }
}

/// A normal number as `mantissa * 2^exponent`, where the mantissa is between the root of a half and the
/// root of two.
#[inline(always)]
fn split_exponent(x: f32) -> (f32, f32) {
    let bits = x.to_bits().cast_signed();
    let exponent = bits.wrapping_sub(std::f32::consts::FRAC_1_SQRT_2.to_bits().cast_signed()) >> 23;
    let mantissa = f32::from_bits(bits.wrapping_sub(exponent << 23).cast_unsigned());
    (mantissa, exponent as f32)
}

/// The logarithm of `mantissa * 2^exponent`.
#[inline(always)]
fn log_of_parts<M: MultiplyAdd>(mantissa: f32, exponent: f32) -> f32 {
    let f = mantissa - 1.0;
    let square = f * f;
    let p = polynomial::<M, 9>(
        f,
        [
            0.333_333_13,
            -0.250_000_1,
            0.200_021_19,
            -0.166_679_96,
            0.142_195_55,
            -0.124_055_89,
            0.118_881_45,
            -0.116_756_4,
            0.067_466_63,
        ],
    );
    let tail = M::fma(f * square, p, exponent * LN_2_LOW);
    let tail = M::fma(square, -0.5, tail);
    M::fma(exponent, LN_2_HIGH, f + tail)
}

/// The hyperbolic tangent.
#[derive(Debug)]
pub struct Tanh;

impl Function for Tanh {
    const PLAIN: PlainRange = PlainRange::up_to(43.0);
    #[inline(always)]
    fn plain<M: MultiplyAdd>(x: f32) -> f32 {
        tanh_by::<M>(x, exp_plain::<M>(2.0 * x.abs()))
    }
    #[inline(always)]
    fn any<M: MultiplyAdd>(x: f32) -> f32 {
        tanh_by::<M>(x, exp_any::<M>(2.0 * x.abs()))
    }
}

/// The hyperbolic tangent of `x`, given the exponential function of `2 * |x|`.
#[inline(always)]
fn tanh_by<M: MultiplyAdd>(x: f32, power: f32) -> f32 {
    let (square, magnitude) = (x * x, x.abs());
    let p = [-0.333_332_8, 0.133_314_2, -0.053_737_793, 0.020_632_537, -0.005_697_374_7];
    let small = M::fma(magnitude * square, polynomial::<M, 5>(square, p), magnitude);
    let large = 1.0 - 2.0 / (power + 1.0);
    (if magnitude < 0.625 { small } else { large }).copysign(x)
}

/// The logistic function.
#[derive(Debug)]
pub struct Sigmoid;

impl Function for Sigmoid {
    const PLAIN: PlainRange = PlainRange::up_to(87.0);
    #[inline(always)]
    fn plain<M: MultiplyAdd>(x: f32) -> f32 {
        sigmoid_by(x, exp_plain::<M>(-x.abs()))
    }
    #[inline(always)]
    fn any<M: MultiplyAdd>(x: f32) -> f32 {
        sigmoid_by(x, exp_any::<M>(-x.abs()))
    }
}

/// The logistic function of `x`, given the exponential function of `-|x|`.
#[inline(always)]
fn sigmoid_by(x: f32, power: f32) -> f32 {
    let numerator = if x < 0.0 { power } else { 1.0 };
    let denominator = 1.0 + power;
    let quotient = numerator / denominator;
    // The rounding error of the denominator, and its reciprocal.
    let error = (1.0 - denominator) + power;
    let reciprocal = if x < 0.0 { 1.0 - quotient } else { quotient };
    quotient - quotient * (error * reciprocal)
}

/// The error function.
#[derive(Debug)]
pub struct Erf;

impl Function for Erf {
    const PLAIN: PlainRange = PlainRange::ALL;
    #[inline(always)]
    fn plain<M: MultiplyAdd>(x: f32) -> f32 {
        let (square, magnitude) = (x * x, x.abs());
        let p = [0.128_379_15, -0.376_124_9, 0.112_817_66, -0.026_764_756, 0.004_990_413_3, -5.976_592_7e-4];
        let small = M::fma(x, polynomial::<M, 6>(square, p), x);
        // Results are 1 from here on.
        let t = if magnitude > 3.95 { 3.95 } else { magnitude };
        let p = [
            0.128_648_49,
            0.635_151_3,
            0.106_236_88,
            -0.023_762_07,
            0.003_642_462_2,
            -3.228_046_7e-4,
            1.123_139e-5,
        ];
        let complement = exp_plain::<M>(-M::fma(t, polynomial::<M, 7>(t, p), t));
        let large = (1.0 - complement).copysign(x);
        if magnitude > 0.92 { large } else { small }
    }
    #[inline(always)]
    fn any<M: MultiplyAdd>(x: f32) -> f32 {
        Self::plain::<M>(x)
    }
}

/// The reciprocal of the square root.
#[derive(Debug)]
pub struct Rsqrt;

impl Function for Rsqrt {
    const PLAIN: PlainRange = PlainRange::ALL;
    #[inline(always)]
    fn plain<M: MultiplyAdd>(x: f32) -> f32 {
        1.0 / x.sqrt()
    }
    #[inline(always)]
    fn any<M: MultiplyAdd>(x: f32) -> f32 {
        Self::plain::<M>(x)
    }
}
