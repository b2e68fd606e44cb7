//! Unary operations on every type and every view.

mod common;

use std::sync::Mutex;

use common::number::{Number, cast, to_floating, value};
use common::real_functions::{acosh, asinh, atanh, erf, erf_inv, erfc};
use common::{Bound, Random, Source, all_or_some_values, check, contiguous, output, views};
use ferrox_core::DType::{self, *};
use ferrox_core::exec::simd::{self, Level};
use ferrox_core::ops::math::Math;
use ferrox_core::ops::unary::{UnaryOp, plan, run_tensor, scalar_kernel, unary};
use ferrox_core::{Error, Output, Tensor};
use num_complex::Complex;

/// Returns whether Nx defines the operation for the type.
fn defined(op: UnaryOp, dtype: DType) -> bool {
    use UnaryOp::*;
    match op {
        BitwiseNot | PopulationCount | CountLeadingZeros => dtype.is_integer(),
        Sign | Floor | Ceil | Round | Erf | Erfc | ErfInv => !dtype.is_complex(),
        // Nx doesn't define these for real numbers.
        Real | Imag => dtype.is_complex(),
        _ => true,
    }
}

/// Returns whether the operation is a function such as `exp`, whose result is a float.
fn is_function(op: UnaryOp) -> bool {
    use UnaryOp::*;
    !matches!(
        op,
        Negate
            | Abs
            | Sign
            | Floor
            | Ceil
            | Round
            | IsNan
            | IsInfinity
            | LogicalNot
            | BitwiseNot
            | Conjugate
            | Real
            | Imag
            | Phase
            | PopulationCount
            | CountLeadingZeros
    )
}

/// The type that Nx gives to the result.
fn result_type(op: UnaryOp, dtype: DType) -> DType {
    use UnaryOp::*;
    match op {
        IsNan | IsInfinity | LogicalNot => U8,
        Abs | Real | Imag | Phase if dtype == C64 => F32,
        Abs | Real | Imag | Phase if dtype == C128 => F64,
        Phase => to_floating(dtype),
        Conjugate if matches!(dtype, C128 | F64) => C128,
        Conjugate => C64,
        _ if is_function(op) => to_floating(dtype),
        _ => dtype,
    }
}

/// The result before it is rounded or truncated to its type.
fn expected(op: UnaryOp, x: Number, dtype: DType) -> Number {
    use UnaryOp::*;
    let truth = |holds: bool| Number::Integer(i128::from(holds));
    match (op, x) {
        (IsNan, _) => truth(x.is_nan()),
        (IsInfinity, _) => truth(x.re().is_infinite() || x.im().is_infinite()),
        (LogicalNot, _) => truth(x.is_zero()),
        (Abs, Number::Complex(re, im)) => Number::Real(re.hypot(im)),
        (Real, _) => Number::Real(x.re()),
        (Imag, _) => Number::Real(x.im()),
        (Phase, _) if x.is_nan() => Number::Real(f64::NAN),
        (Phase, _) => Number::Real(x.im().atan2(x.re())),
        (Conjugate, Number::Complex(re, im)) => Number::Complex(re, -im),
        // BinaryBackend's imaginary part is a positive zero for real numbers that aren't finite.
        (Conjugate, _) => Number::Complex(x.re(), if x.re().is_finite() { -0.0 } else { 0.0 }),
        (PopulationCount, _) => Number::Integer(i128::from(cast(x, dtype).count_ones())),
        (CountLeadingZeros, _) => {
            Number::Integer(i128::from(cast(x, dtype).leading_zeros()) - (128 - dtype.bits() as i128))
        }
        (Negate, Number::Complex(re, im)) => Number::Complex(-re, -im),
        (_, Number::Complex(re, im)) => complex(op, Complex::new(re, im)),
        (_, Number::Integer(i)) if !is_function(op) => Number::Integer(match op {
            Negate => -i,
            Abs => i.abs(),
            Sign => i.signum(),
            BitwiseNot => !i,
            _ => i,
        }),
        _ => Number::Real(real(op, x.re())),
    }
}

fn real(op: UnaryOp, x: f64) -> f64 {
    use UnaryOp::*;
    match op {
        Negate => -x,
        Abs => x.abs(),
        Sign if x.is_nan() || x == 0.0 => x,
        Sign => x.signum(),
        Floor => x.floor(),
        Ceil => x.ceil(),
        Round => x.round() + if x == 0.0 { x } else { 0.0 },
        Sin => x.sin(),
        Cos => x.cos(),
        Tan => x.tan(),
        Exp => x.exp(),
        Expm1 => x.exp_m1(),
        Log => x.ln(),
        Log1p => x.ln_1p(),
        Sqrt => x.sqrt(),
        Rsqrt => 1.0 / x.sqrt(),
        Tanh => x.tanh(),
        Sigmoid => 1.0 / (1.0 + (-x).exp()),
        // The C library's, called by Rust's standard library.
        Asin => x.asin(),
        Acos => x.acos(),
        Atan => x.atan(),
        Sinh => x.sinh(),
        Cosh => x.cosh(),
        Asinh => asinh(x),
        Acosh => acosh(x),
        Atanh => atanh(x),
        Cbrt => x.cbrt(),
        Erf => erf(x),
        Erfc => erfc(x),
        ErfInv => erf_inv(x),
        other => panic!("{other:?} of floats is no float"),
    }
}

fn complex(op: UnaryOp, z: Complex<f64>) -> Number {
    use UnaryOp::*;
    let one = Complex::ONE;
    let w = match op {
        Exp => z.exp(),
        Expm1 => z.exp() - one,
        Log => z.ln(),
        Log1p => (z + one).ln(),
        Sqrt => z.sqrt(),
        Rsqrt => z.sqrt().inv(),
        Sin => z.sin(),
        Cos => z.cos(),
        Tan => z.sin() / z.cos(),
        Tanh => z.tanh(),
        Sigmoid => (one + (-z).exp()).inv(),
        Sinh => z.sinh(),
        Cosh => z.cosh(),
        Asin => z.asin(),
        Acos => z.acos(),
        Atan => z.atan(),
        Asinh => z.asinh(),
        Acosh => z.acosh(),
        Atanh => z.atanh(),
        Cbrt => z.cbrt(),
        other => panic!("{other:?} of complex numbers is not complex"),
    };
    Number::Complex(w.re, w.im)
}

fn bound(op: UnaryOp, dtype: DType) -> Bound {
    use UnaryOp::*;
    match dtype {
        C64 | C128 if matches!(op, Real | Imag | Conjugate) => Bound::Bits,
        C64 | C128 if op == Phase => Bound::Ulps(1),
        // The bounds include the errors of the oracle. The test `f64_functions` has exact results.
        F64 if matches!(op, Asinh | Acosh | Atanh) => Bound::Ulps(4),
        F64 if matches!(op, Erf | Erfc | ErfInv) => Bound::Relative(1e-12),
        F64 if matches!(op, Expm1 | Log1p | Cbrt | Rsqrt | Sigmoid | Sinh | Cosh | Tanh) => Bound::Ulps(3),
        F64 if matches!(op, Exp | Log | Sin | Cos | Tan | Asin | Acos | Atan) => Bound::Ulps(1),
        // The formula has some 6 correct digits.
        F32 if op == ErfInv => Bound::Relative(1e-6),
        _ if op == ErfInv && dtype.is_float() => Bound::Ulps(1),
        C64 if is_function(op) => Bound::Relative(2e-7),
        C128 if is_function(op) => Bound::Relative(1e-12),
        C64 | C128 if op == UnaryOp::Abs => Bound::Ulps(2),
        // The functions are computed in f64 and rounded once. So an error of half an f64 ulp
        // changes one of some million results.
        F64 => Bound::Bits,
        _ if is_function(op) && dtype.bits() > 16 => Bound::Ulps(1),
        _ => Bound::Bits,
    }
}

/// Returns whether the oracle's complex formulas are valid. They aren't at infinities, and for
/// large arguments, for which they overflow earlier.
fn regular(op: UnaryOp, x: Number) -> bool {
    // The results are subnormal, and the oracle has few correct digits of them.
    if op == UnaryOp::Erfc && (26.0..=28.0).contains(&x.re()) {
        return false;
    }
    let Number::Complex(re, im) = x else { return true };
    use UnaryOp::*;
    // On a branch cut the sign of a zero decides, near a cut a rounding error does.
    if matches!(op, Asin | Acos | Atan | Asinh | Acosh | Atanh) && re.abs().min(im.abs()) < 1e-3 {
        return false;
    }
    !is_function(op) || (1e-3..=20.0).contains(&re.hypot(im))
}

fn run(op: UnaryOp, source: &Source) -> usize {
    let dtype = result_type(op, source.dtype);
    let shape = source.shape();
    let buffer = source.buffer();
    let what = || format!("{} of {source}", op.name());
    let got = output(dtype, shape, |out| unary(op, out, &source.see(&buffer)))
        .unwrap_or_else(|e| panic!("{}: {e}", what()));
    let elements = source.elements();
    let expected = |position: usize| {
        let x = elements[position];
        if regular(op, x) { cast(expected(op, x, source.dtype), dtype) } else { got[position] }
    };
    check(what, dtype, shape, Ok(got.clone()), expected, bound(op, source.dtype))
}

#[test]
fn every_operation_on_every_type() {
    let (mut compared, mut random) = (0, Random(1));
    for &dtype in DType::ALL {
        let numbers = all_or_some_values(dtype, 20_000, &mut random);
        let source = Source::new(dtype, contiguous(&[numbers.len()]), &numbers);
        for &op in UnaryOp::ALL {
            if defined(op, dtype) {
                compared += run(op, &source);
                continue;
            }
            let buffer = source.buffer();
            let error =
                output(dtype, source.shape(), |out| unary(op, out, &buffer)).expect_err("not defined");
            assert_eq!(error, Error::UnsupportedType { op: op.name(), dtypes: vec![dtype] });
            assert_eq!(error.to_string(), format!("{} is not defined for {dtype}", op.name()));
        }
    }
    println!("unary, types: {compared} elements compared");
}

#[test]
fn every_view() {
    let (mut compared, mut random) = (0, Random(2));
    for &op in UnaryOp::ALL {
        for shape in [&[][..], &[1], &[2, 3, 4], &[1, 5, 1], &[0, 3], &[3, 1030], &[9, 131], &[127, 9]] {
            for view in views(shape) {
                for _ in 0..3 {
                    let dtype = *random.pick(DType::ALL);
                    if defined(op, dtype) {
                        compared += run(op, &Source::random(dtype, view.clone(), &mut random));
                    }
                }
            }
        }
    }
    // The view is large enough for several threads.
    for view in views(&[3, 100_003]) {
        for (op, dtype) in
            [(UnaryOp::Negate, F32), (UnaryOp::Exp, U8), (UnaryOp::Cos, BF16), (UnaryOp::LogicalNot, F64)]
        {
            compared += run(op, &Source::random(dtype, view.clone(), &mut random));
        }
    }
    println!("unary, views: {compared} elements compared");
}

/// The results of an operation whose results have the type of its operands.
fn results(op: UnaryOp, dtype: DType, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; bytes.len()];
    let shape = [bytes.len() / dtype.width()];
    let tensor = Tensor::new("test", dtype, &shape, bytes).expect("sound");
    unary(op, Output::new("test", dtype, &shape, &mut out).expect("sound"), &tensor).expect("supported");
    out
}

/// Functions of 16-bit types have the same results with and without a lookup table.
#[test]
fn sixteen_bits_by_table_as_without() {
    let arguments: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect();
    for &op in UnaryOp::ALL.iter().filter(|&&op| is_function(op)) {
        for dtype in [F16, BF16] {
            // Half of the arguments, in parts that are too small for a table.
            let apart: Vec<u8> =
                arguments.chunks(1_000).step_by(2).flat_map(|part| results(op, dtype, part)).collect();
            let whole = results(op, dtype, &arguments);
            let again: Vec<u8> = whole.chunks(1_000).step_by(2).flatten().copied().collect();
            for (k, (apart, whole)) in apart.chunks(2).zip(again.chunks(2)).enumerate() {
                let [apart, whole] = [apart, whole].map(|b| u128::from(u16::from_ne_bytes([b[0], b[1]])));
                let nan = [apart, whole].map(|bits| value(bits, dtype).is_nan());
                assert!(apart == whole || nan == [true, true], "{} of {dtype}, {k}", op.name());
            }
        }
    }
    // Views that are not contiguous.
    let mut random = Random(5);
    for view in views(&[300, 230]) {
        run(UnaryOp::Tanh, &Source::random(BF16, view, &mut random));
    }
}

/// Held by a test that limits the instruction set, which is the same for all tests.
static LEVELS: Mutex<()> = Mutex::new(());

/// Functions of a few f32, which are computed one by one, have the results of many, with and without fused
/// multiply-add.
#[test]
fn few_elements_as_many() {
    let _levels = LEVELS.lock().expect("no other test has failed");
    let mut random = Random(6);
    let numbers = (0..20_000).map(|i| match i % 4 {
        0 => f32::from_bits(random.next() as u32),
        1 => random.unit() as f32,
        2 => (random.unit() * 100.0) as f32,
        _ => [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::MAX, f32::MIN_POSITIVE, 1e-45][random.below(8)],
    });
    let arguments: Vec<u8> = numbers.flat_map(f32::to_ne_bytes).collect();
    for level in [Level::V4, Level::Baseline] {
        simd::limit(level);
        for &op in UnaryOp::ALL.iter().filter(|&&op| is_function(op)) {
            let many = results(op, F32, &arguments);
            for (count, start) in [(1, 0), (2, 10_000), (3, 20_000), (4, 30_000), (5, 40_000)] {
                let part = start..start + count * 4 * 2_000;
                let few: Vec<u8> =
                    arguments[part.clone()].chunks(4 * count).flat_map(|few| results(op, F32, few)).collect();
                for (k, (few, many)) in few.chunks(4).zip(many[part].chunks(4)).enumerate() {
                    let [few, many] = [few, many].map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
                    let is_same = few.to_bits() == many.to_bits() || few.is_nan() && many.is_nan();
                    assert!(is_same, "{}, {count} elements, {level:?}, {k}: {few}, {many}", op.name());
                }
            }
        }
    }
}

/// Kernels of one element have the results of those of many, with and without fused multiply-add.
#[test]
fn one_element_as_many() {
    let _levels = LEVELS.lock().expect("no other test has failed");
    let mut random = Random(7);
    let floats: Vec<f64> = (0..4_000)
        .map(|i| match i % 4 {
            0 => f64::from(f32::from_bits(random.next() as u32)),
            1 => random.unit(),
            2 => random.unit() * 100.0,
            _ => [0.0, -0.0, 1.0, -1.0, f64::INFINITY, 3e38, 1e-38, 1e-310, 0.5, 2.5][random.below(10)],
        })
        .collect();
    for level in [Level::V4, Level::Baseline] {
        simd::limit(level);
        let mut kernels = 0;
        for (&op, dtype, math) in UnaryOp::ALL
            .iter()
            .flat_map(|op| [F32, F64].map(|dtype| (op, dtype)))
            .flat_map(|(op, dtype)| [Math::Exact, Math::Fast].map(|math| (op, dtype, math)))
        {
            let Some(kernel) = scalar_kernel(op, math, dtype) else { continue };
            kernels += 1;
            let bytes = |&x: &f64| {
                if dtype == F32 { (x as f32).to_ne_bytes().to_vec() } else { x.to_ne_bytes().to_vec() }
            };
            let arguments: Vec<Vec<u8>> = floats.iter().map(bytes).collect();
            let (all, shape) = (arguments.concat(), [floats.len()]);
            let tensor = Tensor::new("test", dtype, &shape, &all).expect("sound");
            let mut many = vec![0; all.len()];
            let plan = plan(op, math, dtype, dtype).expect("supported");
            let out = Output::new("test", dtype, &shape, &mut many).expect("sound");
            run_tensor(op, plan, out, &tensor).expect("defined");
            for (argument, many) in arguments.iter().zip(many.chunks(dtype.width())) {
                let mut word = [0; 8];
                word[..dtype.width()].copy_from_slice(argument);
                let one = kernel(u64::from_ne_bytes(word), 0).to_ne_bytes();
                let number = |bytes: &[u8]| match bytes {
                    &[a, b, c, d] => f64::from(f32::from_ne_bytes([a, b, c, d])),
                    _ => f64::from_ne_bytes(bytes.try_into().expect("eight bytes")),
                };
                let [x, one, many] = [argument, &one[..dtype.width()], many].map(number);
                let is_same = one.to_bits() == many.to_bits() || one.is_nan() && many.is_nan();
                assert!(is_same, "{} of {x} as {dtype}, {math:?}, {level:?}: {one}, {many}", op.name());
            }
        }
        assert!(kernels > 90, "{kernels} kernels");
    }
}

/// A tile with a large angle takes another loop.
#[test]
fn large_angles_between_small_ones() {
    let mut random = Random(3);
    for op in [UnaryOp::Sin, UnaryOp::Cos, UnaryOp::Tan] {
        for exponent in [10, 20, 30, 60, 127] {
            let mut angles: Vec<Number> = (0..3000).map(|_| Number::Real(random.unit() * 10.0)).collect();
            angles[random.below(3000)] = Number::Real(random.unit() * 2f64.powi(exponent));
            let view = random.pick(&views(&[3000])).clone();
            run(op, &Source::new(F32, view, &angles));
        }
    }
}

#[test]
fn shapes_must_be_the_same() {
    let source = Source::new(F32, contiguous(&[2, 3]), &[Number::Real(1.0)]);
    let buffer = source.buffer();
    let error = output(F32, &[3, 2], |out| unary(UnaryOp::Exp, out, &buffer)).expect_err("another shape");
    assert_eq!(error.to_string(), "exp: shapes {2, 3} and {3, 2} differ");
}

/// Known results, for errors that the oracle could have too.
#[test]
fn known_answers() {
    let cases = [
        (UnaryOp::Round, F32, Number::Real(2.5), Number::Real(3.0)),
        (UnaryOp::Round, F32, Number::Real(-0.4), Number::Real(0.0)),
        (UnaryOp::Round, F32, Number::Real(-0.0), Number::Real(-0.0)),
        (UnaryOp::Ceil, F32, Number::Real(-0.4), Number::Real(-0.0)),
        (UnaryOp::Abs, S8, Number::Integer(-128), Number::Integer(-128)),
        (UnaryOp::Abs, C64, Number::Complex(3.0, -4.0), Number::Real(5.0)),
        (UnaryOp::Negate, U8, Number::Integer(1), Number::Integer(255)),
        (UnaryOp::Negate, S4, Number::Integer(-8), Number::Integer(-8)),
        (UnaryOp::BitwiseNot, U2, Number::Integer(1), Number::Integer(2)),
        (UnaryOp::Sqrt, C128, Number::Complex(-4.0, 0.0), Number::Complex(0.0, 2.0)),
        (UnaryOp::Tan, C128, Number::Complex(-0.5, 1.0e8), Number::Complex(-0.0, 1.0)),
        (UnaryOp::Tan, C64, Number::Complex(2.0, -400.0), Number::Complex(-0.0, -1.0)),
        (UnaryOp::Sigmoid, C128, Number::Complex(-1000.0, 0.5), Number::Complex(0.0, 0.0)),
        (UnaryOp::Exp, F32, Number::Real(1000.0), Number::Real(f64::INFINITY)),
        (UnaryOp::Exp, S32, Number::Integer(0), Number::Real(1.0)),
        (UnaryOp::Log, U8, Number::Integer(0), Number::Real(f64::NEG_INFINITY)),
        (UnaryOp::Rsqrt, F64, Number::Real(4.0), Number::Real(0.5)),
        (UnaryOp::Sigmoid, F16, Number::Real(0.0), Number::Real(0.5)),
        (UnaryOp::IsInfinity, F8E4M3FN, Number::Real(f64::INFINITY), Number::Integer(0)),
    ];
    for (op, dtype, x, expected) in cases {
        let source = Source::new(dtype, contiguous(&[]), &[x]);
        let out = result_type(op, dtype);
        let got = output(out, &[], |out| unary(op, out, &source.buffer()));
        assert_eq!(got, Ok(vec![cast(expected, out)]), "{} of {x:?} of {dtype}", op.name());
    }
}
