//! Functions of complex numbers: special values as in Annex G of C99, symmetries, branch cuts, and
//! the error of each part compared with values of many digits.

mod common;

use common::number::{Number, value};
use common::{Random, Source, contiguous, output};
use ferrox_core::DType::{self, C64, C128};
use ferrox_core::ops::binary::{BinaryOp, binary};
use ferrox_core::ops::unary::{UnaryOp, unary};
use std::f64::consts::PI;

type Parts = [f64; 2];

const FUNCTIONS: [UnaryOp; 20] = [
    UnaryOp::Exp,
    UnaryOp::Expm1,
    UnaryOp::Log,
    UnaryOp::Log1p,
    UnaryOp::Sqrt,
    UnaryOp::Rsqrt,
    UnaryOp::Cbrt,
    UnaryOp::Sigmoid,
    UnaryOp::Sin,
    UnaryOp::Cos,
    UnaryOp::Tan,
    UnaryOp::Sinh,
    UnaryOp::Cosh,
    UnaryOp::Tanh,
    UnaryOp::Asin,
    UnaryOp::Acos,
    UnaryOp::Atan,
    UnaryOp::Asinh,
    UnaryOp::Acosh,
    UnaryOp::Atanh,
];

fn named(name: &str) -> UnaryOp {
    *FUNCTIONS.iter().find(|op| op.name() == name).expect("a function")
}

fn source(dtype: DType, arguments: &[Parts]) -> Source {
    let numbers: Vec<_> = arguments.iter().map(|&[re, im]| Number::Complex(re, im)).collect();
    Source::new(dtype, contiguous(&[arguments.len()]), &numbers)
}

fn parts(elements: Vec<u128>, dtype: DType) -> Vec<Parts> {
    let parts = |bits| {
        let z = value(bits, dtype);
        [z.re(), z.im()]
    };
    elements.into_iter().map(parts).collect()
}

fn apply(op: UnaryOp, dtype: DType, arguments: &[Parts]) -> Vec<Parts> {
    let source = source(dtype, arguments);
    let shape = [arguments.len()];
    parts(output(dtype, &shape, |out| unary(op, out, &source.buffer())).expect("a function"), dtype)
}

fn pow(dtype: DType, left: &[Parts], right: &[Parts]) -> Vec<Parts> {
    let [left, right] = [left, right].map(|arguments| source(dtype, arguments));
    let shape = [left.elements().len()];
    let result = output(dtype, &shape, |out| binary(BinaryOp::Pow, out, &left.buffer(), &right.buffer()));
    parts(result.expect("a power"), dtype)
}

/// The special values of Annex G for imaginary parts that aren't negative, and for functions that
/// Annex G doesn't have, the values that follow from it. A `~` marks parts whose sign is
/// unspecified.
const SPECIAL: &str = "
    exp 0 0 = 1 0; exp -0 0 = 1 0; exp 1 inf = nan nan; exp 1 nan = nan nan; exp inf 0 = inf 0;
    exp -inf 0 = 0 0; exp -inf 1 = 0 0; exp -inf 3 = -0 0; exp inf 1 = inf inf; exp inf 3 = -inf inf;
    exp -inf inf = ~0 ~0; exp inf inf = ~inf nan; exp -inf nan = ~0 ~0; exp inf nan = ~inf nan;
    exp nan 0 = nan 0; exp nan 1 = nan nan; exp nan nan = nan nan;

    expm1 0 0 = 0 0; expm1 -0 0 = -0 0; expm1 1 inf = nan nan; expm1 1 nan = nan nan;
    expm1 inf 0 = inf 0; expm1 -inf 0 = -1 0; expm1 -inf 1 = -1 0; expm1 inf 1 = inf inf;
    expm1 inf 3 = -inf inf; expm1 -inf inf = -1 ~0; expm1 inf inf = ~inf nan; expm1 -inf nan = -1 ~0;
    expm1 inf nan = ~inf nan; expm1 nan 0 = nan 0; expm1 nan 1 = nan nan; expm1 nan nan = nan nan;

    log -0 0 = -inf pi; log 0 0 = -inf 0; log 1 inf = inf pi/2; log -1 inf = inf pi/2;
    log 1 nan = nan nan; log -inf 1 = inf pi; log inf 1 = inf 0; log -inf inf = inf 3pi/4;
    log inf inf = inf pi/4; log inf nan = inf nan; log -inf nan = inf nan; log nan 1 = nan nan;
    log nan inf = inf nan; log nan nan = nan nan; log 1 0 = 0 0; log -1 0 = 0 pi;

    log1p -1 0 = -inf 0; log1p 0 0 = 0 0; log1p -0 0 = ~0 0; log1p -2 0 = 0 pi; log1p 1 inf = inf pi/2;
    log1p 1 nan = nan nan; log1p -inf 1 = inf pi; log1p inf 1 = inf 0; log1p -inf inf = inf 3pi/4;
    log1p inf inf = inf pi/4; log1p inf nan = inf nan; log1p -inf nan = inf nan;
    log1p nan 1 = nan nan; log1p nan inf = inf nan; log1p nan nan = nan nan;

    sqrt 0 0 = 0 0; sqrt -0 0 = 0 0; sqrt 1 inf = inf inf; sqrt -1 inf = inf inf; sqrt nan inf = inf inf;
    sqrt inf inf = inf inf; sqrt -inf inf = inf inf; sqrt 1 nan = nan nan; sqrt -inf 1 = 0 inf;
    sqrt inf 1 = inf 0; sqrt -inf nan = nan ~inf; sqrt inf nan = inf nan; sqrt nan 1 = nan nan;
    sqrt nan nan = nan nan; sqrt -1 0 = 0 1; sqrt -4 0 = 0 2; sqrt 4 0 = 2 0;

    rsqrt 0 0 = inf nan; rsqrt 1 inf = 0 -0; rsqrt -inf 1 = 0 -0; rsqrt inf 1 = 0 -0; rsqrt 4 0 = 0.5 -0;
    rsqrt -4 0 = 0 -0.5; rsqrt inf inf = 0 -0; rsqrt 1 nan = nan nan; rsqrt nan nan = nan nan;

    cbrt 0 0 = 0 0; cbrt -0 0 = 0 0; cbrt 8 0 = 2 0; cbrt inf 0 = inf 0; cbrt inf 1 = inf 0;
    cbrt inf inf = inf inf; cbrt -inf 0 = inf inf; cbrt 1 inf = inf inf; cbrt inf nan = inf nan;
    cbrt 1 nan = nan nan; cbrt nan nan = nan nan;

    sigmoid 0 0 = 0.5 0; sigmoid -0 0 = 0.5 0; sigmoid inf 0 = 1 0; sigmoid inf 1 = 1 0;
    sigmoid inf inf = 1 ~0; sigmoid inf nan = 1 ~0; sigmoid -inf 0 = 0 0; sigmoid -inf 1 = 0 0;
    sigmoid -inf inf = ~0 ~0; sigmoid -inf nan = ~0 ~0; sigmoid 1 inf = nan nan; sigmoid 1 nan = nan nan;
    sigmoid nan 0 = nan 0; sigmoid nan 1 = nan nan; sigmoid nan nan = nan nan;

    cosh 0 0 = 1 0; cosh 0 inf = nan ~0; cosh 0 nan = nan ~0; cosh 1 inf = nan nan; cosh 1 nan = nan nan;
    cosh inf 0 = inf 0; cosh inf 1 = inf inf; cosh inf 3 = -inf inf; cosh inf inf = ~inf nan;
    cosh inf nan = inf nan; cosh nan 0 = nan ~0; cosh nan 1 = nan nan; cosh nan nan = nan nan;

    sinh 0 0 = 0 0; sinh 0 inf = ~0 nan; sinh 0 nan = ~0 nan; sinh 1 inf = nan nan; sinh 1 nan = nan nan;
    sinh inf 0 = inf 0; sinh inf 1 = inf inf; sinh inf 3 = -inf inf; sinh inf inf = ~inf nan;
    sinh inf nan = ~inf nan; sinh nan 0 = nan 0; sinh nan 1 = nan nan; sinh nan nan = nan nan;

    tanh 0 0 = 0 0; tanh 1 inf = nan nan; tanh 1 nan = nan nan; tanh inf 1 = 1 0; tanh inf 2 = 1 -0;
    tanh inf inf = 1 ~0; tanh inf nan = 1 ~0; tanh nan 0 = nan 0; tanh nan 1 = nan nan;
    tanh nan nan = nan nan;

    acos 0 0 = pi/2 -0; acos -0 0 = pi/2 -0; acos 0 nan = pi/2 nan; acos -0 nan = pi/2 nan;
    acos 1 inf = pi/2 -inf; acos 2 nan = nan nan; acos -inf 1 = pi -inf; acos inf 1 = 0 -inf;
    acos -inf inf = 3pi/4 -inf; acos inf inf = pi/4 -inf; acos inf nan = nan ~inf; acos -inf nan = nan ~inf;
    acos nan 1 = nan nan; acos nan inf = nan -inf; acos nan nan = nan nan; acos 1 0 = 0 -0;

    acosh 0 0 = 0 pi/2; acosh -0 0 = 0 pi/2; acosh 1 inf = inf pi/2; acosh 1 nan = nan nan;
    acosh -inf 1 = inf pi; acosh inf 1 = inf 0; acosh -inf inf = inf 3pi/4; acosh inf inf = inf pi/4;
    acosh inf nan = inf nan; acosh -inf nan = inf nan; acosh nan 1 = nan nan; acosh nan inf = inf nan;
    acosh nan nan = nan nan; acosh 1 0 = 0 0; acosh -1 0 = 0 pi;

    asinh 0 0 = 0 0; asinh 1 inf = inf pi/2; asinh 1 nan = nan nan; asinh inf 1 = inf 0;
    asinh inf inf = inf pi/4; asinh inf nan = inf nan; asinh nan 0 = nan 0; asinh nan 1 = nan nan;
    asinh nan inf = ~inf nan; asinh nan nan = nan nan;

    atanh 0 0 = 0 0; atanh 0 nan = 0 nan; atanh 1 0 = inf 0; atanh 1 inf = 0 pi/2; atanh 1 nan = nan nan;
    atanh inf 1 = 0 pi/2; atanh inf inf = 0 pi/2; atanh inf nan = 0 nan; atanh nan 1 = nan nan;
    atanh nan inf = ~0 pi/2; atanh nan nan = nan nan;
";

fn number(word: &str) -> f64 {
    match word {
        "pi" => PI,
        "pi/2" => PI / 2.0,
        "pi/4" => PI / 4.0,
        "3pi/4" => PI * 0.75,
        _ => word.parse().expect("a number"),
    }
}

fn is(got: f64, expected: &str, dtype: DType) -> bool {
    let number = number(expected.trim_start_matches('~'));
    let number = if dtype == C64 { f64::from(number as f32) } else { number };
    if number.is_nan() {
        return got.is_nan();
    }
    got.abs() == number.abs()
        && (expected.starts_with('~') || got.is_sign_negative() == number.is_sign_negative())
}

#[test]
fn special_values() {
    for dtype in [C64, C128] {
        for row in SPECIAL.split(';').filter(|row| !row.trim().is_empty()) {
            let words: Vec<_> = row.split_whitespace().collect();
            let [name, x, y, "=", re, im] = words[..] else { panic!("{row}") };
            let argument = [number(x), number(y)];
            let [got] = apply(named(name), dtype, &[argument])[..] else { panic!("one element") };
            assert!(is(got[0], re, dtype) && is(got[1], im, dtype), "{row} of {dtype}: {got:?}");
        }
    }
}

const ENDS: [f64; 13] =
    [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 1e-30, -1e-30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

fn everywhere() -> Vec<Parts> {
    ENDS.iter().flat_map(|&x| ENDS.map(|y| [x, y])).collect()
}

/// Returns whether the parts are the same. Signs of zeros are ignored if an argument is NaN,
/// because C leaves some of them unspecified.
fn same(got: Parts, expected: Parts, argument: Parts) -> bool {
    let open = argument.iter().any(|part| part.is_nan());
    got.iter().zip(&expected).all(|(got, expected)| {
        got.to_bits() == expected.to_bits()
            || got.is_nan() && expected.is_nan()
            || open && got.abs() == expected.abs()
    })
}

/// Conjugate arguments have conjugate values, with the signs of zeros. Negative arguments have
/// negative values for odd functions, and the same values for even functions.
#[test]
fn symmetries() {
    for dtype in [C64, C128] {
        let arguments = everywhere();
        for op in FUNCTIONS {
            let values = apply(op, dtype, &arguments);
            let holds = |argument: fn(Parts) -> Parts, result: fn(Parts) -> Parts| {
                let others: Vec<_> = arguments.iter().map(|&z| argument(z)).collect();
                for ((&z, &w), other) in arguments.iter().zip(&values).zip(apply(op, dtype, &others)) {
                    assert!(same(other, result(w), z), "{} at {z:?} of {dtype}: {w:?}, {other:?}", op.name());
                }
            };
            // The direction of the infinity at zero is unspecified.
            if op != UnaryOp::Rsqrt {
                holds(|[x, y]| [x, -y], |[re, im]| [re, -im]);
            }
            match op {
                UnaryOp::Sin | UnaryOp::Tan | UnaryOp::Sinh | UnaryOp::Tanh => {
                    holds(|[x, y]| [-x, -y], |[re, im]| [-re, -im]);
                }
                UnaryOp::Asin | UnaryOp::Atan | UnaryOp::Asinh | UnaryOp::Atanh => {
                    holds(|[x, y]| [-x, -y], |[re, im]| [-re, -im]);
                }
                UnaryOp::Cos | UnaryOp::Cosh => holds(|[x, y]| [-x, -y], |z| z),
                _ => {}
            }
        }
        // A circular function of z is the hyperbolic function of i z, divided by i.
        let turned: Vec<_> = arguments.iter().map(|&[x, y]| [y, x]).collect();
        for (circular, hyperbolic) in [
            (UnaryOp::Sin, UnaryOp::Sinh),
            (UnaryOp::Tan, UnaryOp::Tanh),
            (UnaryOp::Asin, UnaryOp::Asinh),
            (UnaryOp::Atan, UnaryOp::Atanh),
        ] {
            let pairs = apply(circular, dtype, &arguments).into_iter().zip(apply(hyperbolic, dtype, &turned));
            for (&z, (got, [im, re])) in arguments.iter().zip(pairs) {
                assert!(same(got, [re, im], z), "{} at {z:?} of {dtype}", circular.name());
            }
        }
    }
}

/// On a branch cut, the sign of the zero selects the side. The value is the limit from this side.
#[test]
fn branch_cuts() {
    // A function, whether its branch cuts are on the imaginary axis, and points on the cuts.
    let cuts: [(UnaryOp, bool, &[f64]); 12] = [
        (UnaryOp::Log, false, &[-0.5, -1.0, -3.0]),
        (UnaryOp::Log1p, false, &[-1.5, -3.0]),
        (UnaryOp::Sqrt, false, &[-0.5, -1.0, -3.0]),
        (UnaryOp::Rsqrt, false, &[-0.5, -1.0, -3.0]),
        (UnaryOp::Cbrt, false, &[-0.5, -1.0, -3.0]),
        (UnaryOp::Asin, false, &[-3.0, -1.5, 1.5, 3.0]),
        (UnaryOp::Acos, false, &[-3.0, -1.5, 1.5, 3.0]),
        (UnaryOp::Acosh, false, &[-3.0, -1.5, -0.5, 0.5]),
        (UnaryOp::Atanh, false, &[-3.0, -1.5, 1.5, 3.0]),
        (UnaryOp::Asinh, true, &[-3.0, -1.5, 1.5, 3.0]),
        (UnaryOp::Atan, true, &[-3.0, -1.5, 1.5, 3.0]),
        (UnaryOp::Log, false, &[-1e-30, -1e30]),
    ];
    for (op, imaginary, places) in cuts {
        for &place in places {
            for side in [1.0, -1.0] {
                let turn = |[x, y]: Parts| if imaginary { [y, x] } else { [x, y] };
                let near = 1e-17 * side * place.abs();
                for (dtype, bound) in [(C64, 3e-7), (C128, 1e-15)] {
                    let arguments = [[place, 0.0 * side], [place, near]].map(turn);
                    let values = apply(op, dtype, &arguments);
                    for part in 0..2 {
                        let (on, beside) = (values[0][part], values[1][part]);
                        let close = (on - beside).abs() <= bound * (1.0 + beside.abs());
                        let signs = on.is_sign_negative() == beside.is_sign_negative();
                        assert!(close && signs, "{} at {arguments:?} of {dtype}: {values:?}", op.name());
                    }
                }
            }
        }
    }
}

/// The distance of two numbers in units in the last place.
fn ulps(a: f64, b: f64, dtype: DType) -> u64 {
    let place = |x: f64| {
        let (bits, sign) = if dtype == C64 {
            let bits = (x as f32).to_bits();
            (i64::from(bits & 0x7fff_ffff), bits >> 31 == 1)
        } else {
            ((x.to_bits() & (u64::MAX >> 1)) as i64, x.is_sign_negative())
        };
        if sign { -bits } else { bits }
    };
    if a.is_nan() || b.is_nan() { u64::MAX } else { place(a).abs_diff(place(b)) }
}

/// Tests each part, and the signs of zeros, for arguments of every magnitude and direction.
#[test]
fn errors() {
    let path = format!("{}/../../test/fixtures/complex/functions.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the fixture");
    for op in FUNCTIONS {
        let rows: Vec<[f64; 4]> = text
            .lines()
            .filter_map(|line| line.strip_prefix(op.name())?.strip_prefix(' '))
            .map(|row| {
                let mut parts = row.split(' ').map(|bits| u64::from_str_radix(bits, 16).expect("bits"));
                [(); 4].map(|()| f64::from_bits(parts.next().expect("a part")))
            })
            .collect();
        assert!(rows.len() > 150, "{}", op.name());
        let arguments: Vec<_> = rows.iter().map(|row| [row[0], row[1]]).collect();
        let mut worst = 0;
        for (row, got) in rows.iter().zip(apply(op, C128, &arguments)) {
            let size = row[2].hypot(row[3]);
            for (got, &expected) in got.iter().zip(&row[2..]) {
                // Near a curve where the real part is zero, double-double arithmetic has fewer
                // correct digits of it.
                let vanishing = matches!(op, UnaryOp::Expm1 | UnaryOp::Sigmoid)
                    && (got - expected).abs() <= 2f64.powi(-100) * size;
                let error = if vanishing { 0 } else { ulps(*got, expected, C128) };
                let signs = got.is_sign_negative() == expected.is_sign_negative();
                assert!(error <= 4 && signs, "{}: {row:?}, {got:e}", op.name());
                worst = worst.max(error);
            }
        }
        println!("complex, {}: {} arguments, {worst} ulp", op.name(), arguments.len());
    }
}

/// The value for a c64 argument of any magnitude is the rounded value of c128.
#[test]
fn single_precision_is_rounded() {
    let mut random = Random(11);
    let mut part = || {
        let magnitude = 2f64.powf(random.unit() * if random.below(2) == 0 { 148.0 } else { 8.0 });
        f64::from((magnitude * random.unit()) as f32)
    };
    let arguments: Vec<Parts> = (0..2_000).map(|_| [part(), part()]).collect();
    for op in FUNCTIONS {
        let pairs = apply(op, C64, &arguments).into_iter().zip(apply(op, C128, &arguments));
        for (z, (got, expected)) in arguments.iter().zip(pairs) {
            assert!(same(got, expected.map(|part| f64::from(part as f32)), *z), "{} at {z:?}", op.name());
        }
    }
}

/// Ordinary arguments, and arguments for which textbook formulas fail.
#[test]
fn known_answers() {
    let cases: [(UnaryOp, &[DType], Parts, Parts); 21] = [
        (UnaryOp::Acosh, &[C128], [-2.0, 0.5], [1.361_800_900_857_845_8, 2.863_838_397_032_079]),
        (UnaryOp::Acosh, &[C128], [-2.0, -0.5], [1.361_800_900_857_845_8, -2.863_838_397_032_079]),
        (UnaryOp::Acosh, &[C128], [2.0, -0.5], [1.361_800_900_857_845_8, -0.277_754_256_557_713_96]),
        (UnaryOp::Acosh, &[C128], [-0.5, 3.0], [1.830_194_762_337_508_8, 1.727_800_921_583_838_8]),
        (UnaryOp::Exp, &[C64], [501.0, 0.0], [f64::INFINITY, 0.0]),
        (UnaryOp::Exp, &[C64, C128], [1001.0, 0.0], [f64::INFINITY, 0.0]),
        (UnaryOp::Exp, &[C128], [710.0, 1.57], [1.778_989_703_932_881e305, f64::INFINITY]),
        (UnaryOp::Sinh, &[C64], [1e-20, 1e-20], [1e-20, 1e-20]),
        (UnaryOp::Sin, &[C64], [1e-20, 1e-20], [1e-20, 1e-20]),
        (UnaryOp::Tanh, &[C64], [1e-20, 1e-20], [1e-20, 1e-20]),
        (UnaryOp::Expm1, &[C64], [1e-20, 1e-20], [1e-20, 1e-20]),
        (UnaryOp::Log1p, &[C64], [1e-20, 1e-20], [1e-20, 1e-20]),
        (UnaryOp::Asinh, &[C64], [1e-20, 1e-20], [1e-20, 1e-20]),
        (UnaryOp::Atanh, &[C64], [1e-20, 1e-20], [1e-20, 1e-20]),
        (UnaryOp::Asinh, &[C64], [-1.0, -101_999.0], [-12.225_865_468_880_756, -1.570_786_522_777_21]),
        (UnaryOp::Asinh, &[C64], [-3.0, -3_498_384.0], [-15.760_958_886_111_359, -1.570_795_469_256_101_6]),
        (UnaryOp::Asinh, &[C64], [-1e10, 1.0], [-23.718_998_110_500_4, 1e-10]),
        (UnaryOp::Sqrt, &[C64, C128], [-1.0, -0.0], [0.0, -1.0]),
        (UnaryOp::Sqrt, &[C64, C128], [-4.0, 0.0], [0.0, 2.0]),
        (UnaryOp::Tanh, &[C64, C128], [f64::INFINITY, f64::NAN], [1.0, 0.0]),
        (UnaryOp::Log, &[C128], [0.6, 0.8], [2.220_446_049_250_313e-17, 0.927_295_218_001_612_3]),
    ];
    for (op, dtypes, argument, expected) in cases {
        for &dtype in dtypes {
            let [got] = apply(op, dtype, &[argument])[..] else { panic!("one element") };
            for (got, expected) in got.iter().zip(expected) {
                let error = ulps(*got, expected, dtype);
                assert!(error <= 1, "{} at {argument:?} of {dtype}: {got:e}, {expected:e}", op.name());
            }
        }
    }
}

/// Powers with small integer exponents are products. They are exact if all digits fit.
#[test]
fn integer_powers() {
    let mut random = Random(12);
    for dtype in [C64, C128] {
        let (mut bases, mut exponents, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..3_000 {
            let [a, b] = [(); 2].map(|()| random.below(11) as f64 - 5.0);
            let n = random.below(8);
            // The parts have less than 24 bits.
            let power = (0..n).fold([1.0, 0.0], |[re, im], _| [re * a - im * b, re * b + im * a]);
            if [a, b] == [0.0; 2] || power.iter().any(|part: &f64| part.abs() >= 2f64.powi(24)) {
                continue;
            }
            bases.push([a, b]);
            exponents.push([n as f64, 0.0]);
            expected.push(power);
        }
        for (i, got) in pow(dtype, &bases, &exponents).into_iter().enumerate() {
            assert_eq!(got, expected[i], "{:?} to {:?} of {dtype}", bases[i], exponents[i]);
        }
    }
    // Powers of a root of unity are exact, whatever other elements are in the chunk.
    let bases = [[0.0, 1.0], [2.0, 3.0], [0.0, 1.0], [f64::INFINITY, 1.0], [1e30, 1e30], [1e-10, 1e-10]];
    let exponents = [[4.0, 0.0], [0.3, 2.0], [-2.0, 0.0], [2.0, 0.0], [64.0, 0.0], [-3.0, 0.0]];
    let values = pow(C64, &bases, &exponents);
    assert_eq!([values[0], values[2]], [[1.0, 0.0], [-1.0, 0.0]]);
    for i in 0..bases.len() {
        let alone = pow(C64, &bases[i..=i], &exponents[i..=i])[0];
        assert!(same(values[i], alone, [0.0; 2]), "{:?} to {:?}", bases[i], exponents[i]);
    }
}
