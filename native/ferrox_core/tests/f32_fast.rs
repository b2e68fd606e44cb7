//! Functions evaluated in f32, against those evaluated in f64.

use ferrox_core::exec::elementwise::{Kernel, Operand};
use ferrox_core::exec::simd::{self, Level};
use ferrox_core::ops::math::f32_fast::{self, Function, Fused, Separate};
use ferrox_core::ops::math::f32_functions::{self, SoftwareFma};
use ferrox_core::ops::unary::UnaryOp;

/// The kernel of a function, the function with and without fused multiply-add, of plain arguments too, whether an argument is
/// one, and the function evaluated in f64.
struct Row {
    op: UnaryOp,
    kernel: Kernel,
    any: [fn(f32) -> f32; 2],
    plain: [fn(f32) -> f32; 2],
    is_plain: fn(f32) -> bool,
    exact: fn(f64) -> f64,
}

impl Row {
    fn new<F: Function>(op: UnaryOp, exact: fn(f64) -> f64) -> Self {
        let any = [F::any::<Fused>, F::any::<Separate>];
        let kernel = f32_fast::kernel::<F>;
        Row {
            op,
            kernel,
            any,
            plain: [F::plain::<Fused>, F::plain::<Separate>],
            is_plain: |x| F::PLAIN.contains_all(&[x.to_ne_bytes()]),
            exact,
        }
    }
}

fn functions() -> [Row; 6] {
    [
        Row::new::<f32_fast::Exp>(UnaryOp::Exp, f32_functions::exp::<SoftwareFma>),
        Row::new::<f32_fast::Log>(UnaryOp::Log, f32_functions::log::<SoftwareFma>),
        Row::new::<f32_fast::Tanh>(UnaryOp::Tanh, f32_functions::tanh::<SoftwareFma>),
        Row::new::<f32_fast::Sigmoid>(UnaryOp::Sigmoid, f32_functions::sigmoid::<SoftwareFma>),
        Row::new::<f32_fast::Erf>(UnaryOp::Erf, f32_functions::erf::<SoftwareFma>),
        Row::new::<f32_fast::Rsqrt>(UnaryOp::Rsqrt, |x| 1.0 / x.sqrt()),
    ]
}

/// The error of `got` in units in the last place of the f32 nearest to `expected`.
fn error(got: f32, expected: f64) -> f64 {
    let nearest = expected as f32;
    if got.to_bits() == nearest.to_bits() || got.is_nan() && nearest.is_nan() {
        return 0.0;
    }
    if !nearest.is_finite() || !got.is_finite() || nearest == 0.0 {
        // The last finite number is a unit below infinity, and the first subnormal one above zero.
        let distance = got.to_bits().cast_signed().wrapping_sub(nearest.to_bits().cast_signed());
        return f64::from(distance.unsigned_abs());
    }
    let exponent = (nearest.to_bits() >> 23 & 0xFF).max(1) as i32 - 150;
    (f64::from(got) - expected).abs() / f64::from(exponent).exp2()
}

/// The greatest error, with and without fused multiply-add, for every `step`-th f32.
fn check(step: usize) {
    for Row { op, any, plain, is_plain, exact, .. } in functions() {
        let mut most = [0.0_f64; 2];
        for bits in (0..=u32::MAX).step_by(step) {
            let x = f32::from_bits(bits);
            let expected = exact(f64::from(x));
            for (i, most) in most.iter_mut().enumerate() {
                let got = any[i](x);
                *most = most.max(error(got, expected));
                assert!(!is_plain(x) || is_same(plain[i](x), got), "{}({x:e})", op.name());
            }
        }
        let [fused, separate] = most;
        println!("| `{}` | {fused:.2} | {separate:.2} |", op.name());
        assert!(fused.max(separate) <= 2.0, "{}: {most:?}", op.name());
    }
}

fn is_same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

#[test]
fn errors_are_at_most_two_units() {
    check(997);
}

/// Prints the table of `guides/compiler.md`: every f32, or with `FERROX_STEP=n` every `n`-th one.
#[test]
#[ignore = "takes up to an hour"]
fn table_of_errors() {
    let step = std::env::var("FERROX_STEP").map_or(1, |step| step.parse().expect("a number"));
    check(step);
}

#[test]
fn special_values() {
    let infinity = f32::INFINITY;
    for Row { op, any, exact, .. } in functions() {
        for x in [0.0, -0.0, infinity, -infinity, f32::NAN, f32::MAX, f32::MIN, 1e-45, -1e-45, 1.0, -1.0] {
            let expected = exact(f64::from(x)) as f32;
            for got in any.map(|function| function(x)) {
                let what = format!("{}({x}): {got}, not {expected}", op.name());
                assert!(is_same(got, expected) || error(got, f64::from(expected)) <= 2.0, "{what}");
                assert!(got.is_nan() || got.is_sign_negative() == expected.is_sign_negative(), "{what}");
            }
        }
    }
}

/// The kernels give the bits of the functions, with all instruction sets that this machine has, and
/// with plain arguments and others.
#[test]
fn kernels_have_the_bits_of_the_functions() {
    let any = (0..10_007_u32).map(|i| f32::from_bits(i.wrapping_mul(429_137)));
    let plain = (0..10_007_u32).map(|i| (i as f32 - 3_000.0) * 0.01);
    let numbers: Vec<f32> = any.chain(plain).collect();
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_ne_bytes()).collect();
    for level in [Level::Baseline, Level::V3, Level::V4] {
        simd::limit(level);
        for Row { op, kernel, any, .. } in functions() {
            let mut out = vec![0; bytes.len()];
            kernel(&mut out, &[Operand::Slice(&bytes)]).expect("results");
            let function = any[usize::from(!simd::has_fma())];
            for (x, got) in numbers.iter().zip(out.as_chunks::<4>().0) {
                let (got, expected) = (f32::from_ne_bytes(*got), function(*x));
                assert!(is_same(got, expected), "{}({x:e}): {got:e}, not {expected:e}", op.name());
            }
        }
    }
}
