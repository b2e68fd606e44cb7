//! Windows against folds of their elements, one by one.

mod common;

use common::number::{Number, bounds};
use common::{Bound, Random, Source, check_numbers, contiguous, indices, output, values, views};
use ferrox_core::DType::{self, *};
use ferrox_core::ops::window::{SlidingWindows, WindowOp, window};
use ferrox_core::ops::window_scatter::{Choice, window_scatter};
use ferrox_core::{Error, Kind};

/// Windows over a shape, owned.
#[derive(Clone, Debug)]
struct Spec {
    shape: Vec<usize>,
    window: Vec<usize>,
    padding: Vec<(i64, i64)>,
    strides: Vec<usize>,
    dilations: Vec<usize>,
}

impl Spec {
    fn windows(&self) -> SlidingWindows<'_> {
        SlidingWindows {
            shape: &self.window,
            padding: &self.padding,
            strides: &self.strides,
            dilations: &self.dilations,
        }
    }

    /// The shape of the result, if the windows fit.
    fn result(&self) -> Option<Vec<usize>> {
        (0..self.shape.len())
            .map(|a| {
                let (low, high) = self.padding[a];
                let padded = self.shape[a] as i64 + low + high;
                let extent = ((self.window[a] - 1) * self.dilations[a] + 1) as i64;
                (padded >= extent).then(|| ((padded - extent) as usize) / self.strides[a] + 1)
            })
            .collect()
    }

    /// The elements that a window meets in row-major order, none for padding.
    fn met(&self, at: &[usize]) -> Vec<Option<Vec<usize>>> {
        let inside = |place: &Vec<usize>| {
            let index = |a: usize| {
                let i = (at[a] * self.strides[a] + place[a] * self.dilations[a]) as i64 - self.padding[a].0;
                usize::try_from(i).ok().filter(|&i| i < self.shape[a])
            };
            (0..at.len()).map(index).collect()
        };
        indices(&self.window).map(|place| inside(&place)).collect()
    }
}

fn spec(
    shape: &[usize],
    window: &[usize],
    padding: &[(i64, i64)],
    strides: &[usize],
    dilations: &[usize],
) -> Spec {
    Spec {
        shape: shape.to_vec(),
        window: window.to_vec(),
        padding: padding.to_vec(),
        strides: strides.to_vec(),
        dilations: dilations.to_vec(),
    }
}

/// Windows of all sorts over a shape, that fit.
fn random_spec(shape: &[usize], random: &mut Random, dilated: bool) -> Spec {
    loop {
        let mut list = |pick: &mut dyn FnMut(&mut Random, usize) -> usize| -> Vec<usize> {
            shape.iter().map(|&dim| pick(random, dim)).collect()
        };
        let window = list(&mut |r, dim| if r.below(3) == 0 { 1 } else { 1 + r.below(dim + 3) });
        let strides = list(&mut |r, _| 1 + r.below(2) * r.below(4));
        let dilations = list(&mut |r, _| if dilated { 1 + r.below(2) * r.below(3) } else { 1 });
        let mut pad = || match random.below(4) {
            0 => random.below(3) as i64 - 1,
            1 => random.below(12) as i64,
            _ => 0,
        };
        let padding = shape.iter().map(|_| (pad(), pad())).collect();
        let spec = Spec { shape: shape.to_vec(), window, padding, strides, dilations };
        if spec.result().is_some_and(|result| result.iter().product::<usize>() < 5000) {
            return spec;
        }
    }
}

fn start(op: WindowOp, dtype: DType) -> Number {
    let extreme = |sign: f64| match dtype {
        F8E4M3FN => Number::Real(sign * 448.0),
        _ if dtype.is_integer() => {
            Number::Integer(if sign > 0.0 { bounds(dtype).1 } else { bounds(dtype).0 })
        }
        _ => Number::Real(sign * f64::INFINITY),
    };
    let whole = |i: i128| if dtype.is_integer() { Number::Integer(i) } else { Number::Real(i as f64) };
    match op {
        WindowOp::Sum => whole(0),
        WindowOp::Product => whole(1),
        WindowOp::Max => extreme(-1.0),
        WindowOp::Min => extreme(1.0),
    }
}

fn fold(op: WindowOp, a: Number, b: Number) -> Number {
    let extreme = |later: bool| if a.is_nan() || !b.is_nan() && !later { a } else { b };
    match (op, a, b) {
        (WindowOp::Sum, Number::Integer(a), Number::Integer(b)) => Number::Integer(a.wrapping_add(b)),
        (WindowOp::Product, Number::Integer(a), Number::Integer(b)) => Number::Integer(a.wrapping_mul(b)),
        (WindowOp::Max, Number::Integer(a), Number::Integer(b)) => Number::Integer(a.max(b)),
        (WindowOp::Min, Number::Integer(a), Number::Integer(b)) => Number::Integer(a.min(b)),
        (WindowOp::Sum, Number::Real(a), Number::Real(b)) => Number::Real(a + b),
        (WindowOp::Product, Number::Real(a), Number::Real(b)) => Number::Real(a * b),
        (WindowOp::Max, ..) => extreme(b.re() >= a.re()),
        (WindowOp::Min, ..) => extreme(b.re() <= a.re()),
        (WindowOp::Sum, ..) => Number::Complex(a.re() + b.re(), a.im() + b.im()),
        (WindowOp::Product, ..) => {
            Number::Complex(a.re() * b.re() - a.im() * b.im(), a.re() * b.im() + a.im() * b.re())
        }
    }
}

fn run(op: WindowOp, source: &Source, spec: &Spec, bound: Bound) -> usize {
    let dtype = source.dtype;
    let shape = spec.result().expect("windows that fit");
    let buffer = source.buffer();
    let tensor = source.see(&buffer);
    let what = || format!("{} of {source}, {spec:?}", op.name());
    let got = output(dtype, &shape, |out| window(op, out, &tensor, spec.windows()));
    let expected = |at: Vec<usize>| {
        let met = spec.met(&at).into_iter().flatten();
        met.fold(start(op, dtype), |total, index| fold(op, total, source.at(&index)))
    };
    check_numbers(what, dtype, &shape, got, expected, bound)
}

/// Few whole numbers, so that sums and products are exact in any order.
fn whole(op: WindowOp, dtype: DType, random: &mut Random) -> Vec<Number> {
    let mut one = || match op {
        _ if dtype.is_integer() => common::number::value(random.bits(dtype), dtype),
        WindowOp::Product => {
            let one = *random.pick(&[1.0, 1.0, 1.0, 2.0, -1.0, 0.5, -2.0, 0.25]);
            if dtype.is_complex() && random.below(2) == 0 {
                Number::Complex(0.0, one)
            } else {
                Number::Real(one)
            }
        }
        _ if dtype.is_complex() => {
            Number::Complex((random.unit() * 4.0).round(), (random.unit() * 4.0).round())
        }
        _ => Number::Real((random.unit() * 4.0).round()),
    };
    (0..997).map(|_| one()).collect()
}

const SHAPES: [&[usize]; 9] =
    [&[], &[1], &[7], &[40], &[3, 5], &[5, 3, 4], &[2, 6, 5, 3], &[1, 9, 1, 8], &[33, 17]];

fn defined(op: WindowOp, dtype: DType) -> bool {
    !dtype.is_complex() || matches!(op, WindowOp::Sum | WindowOp::Product)
}

#[test]
fn every_operation_and_type() {
    let (mut compared, mut random) = (0, Random(1));
    for &op in WindowOp::ALL {
        for &dtype in DType::ALL.iter().filter(|&&dtype| defined(op, dtype)) {
            for shape in SHAPES {
                for _ in 0..5 {
                    let spec = random_spec(shape, &mut random, true);
                    let source = match op {
                        WindowOp::Sum | WindowOp::Product => {
                            Source::new(dtype, contiguous(shape), &whole(op, dtype, &mut random))
                        }
                        // NaN, infinities, zeros of both signs.
                        _ => Source::random(dtype, contiguous(shape), &mut random),
                    };
                    // A product may leave the range of its type, which the
                    // oracle does not compute in f64.
                    let bound = if op == WindowOp::Product { Bound::Value } else { Bound::Bits };
                    compared += run(op, &source, &spec, bound);
                }
            }
        }
    }
    println!("windows, types: {compared} elements compared");
}

#[test]
fn every_view() {
    let (mut compared, mut random) = (0, Random(2));
    for shape in SHAPES {
        for view in views(shape) {
            for &op in WindowOp::ALL {
                let dtype = *random.pick(&[U8, S4, S32, U64, F16, F32, F64]);
                let source = Source::new(dtype, view.clone(), &whole(op, dtype, &mut random));
                let spec = random_spec(shape, &mut random, true);
                compared += run(op, &source, &spec, Bound::Value);
            }
        }
    }
    println!("windows, views: {compared} elements compared");
}

/// Long ones are cut, and long axes are split into pieces.
#[test]
fn long_windows_and_long_axes() {
    let mut compared = 0;
    let mut random = Random(3);
    let specs = [
        spec(&[300], &[20], &[(0, 0)], &[1], &[1]),
        spec(&[300], &[20], &[(19, 0)], &[1], &[3]),
        spec(&[300], &[300], &[(299, 0)], &[1], &[1]),
        spec(&[300], &[300], &[(0, 299)], &[1], &[1]),
        spec(&[200, 3], &[200, 1], &[(199, 0), (0, 0)], &[1, 1], &[1, 1]),
        spec(&[3, 200], &[1, 50], &[(0, 0), (10, 30)], &[1, 2], &[1, 2]),
        spec(&[90, 5, 2], &[16, 2, 1], &[(7, 8), (0, 1), (0, 0)], &[1, 1, 1], &[2, 1, 1]),
        spec(&[4, 90, 5], &[1, 30, 9], &[(0, 0), (2, 1), (4, 4)], &[1, 3, 1], &[1, 1, 1]),
        // Cut at multiples of their length.
        spec(&[60, 20], &[12, 1], &[(5, 3), (0, 0)], &[1, 1], &[1, 1]),
        spec(&[2, 60, 17], &[1, 10, 2], &[(0, 0), (9, 0), (0, 1)], &[1, 2, 1], &[1, 2, 1]),
        spec(&[4500], &[4200], &[(4199, 0)], &[100], &[1]),
        // Several pieces.
        spec(&[35_000], &[3], &[(1, 1)], &[1], &[1]),
        spec(&[35_000], &[4], &[(0, 0)], &[3], &[2]),
        spec(&[33_001], &[12], &[(5, 6)], &[1], &[1]),
        spec(&[230, 150], &[3, 3], &[(1, 1), (1, 1)], &[1, 1], &[1, 1]),
        spec(&[230, 150], &[2, 2], &[(0, 0), (0, 0)], &[2, 2], &[1, 1]),
        spec(&[2, 150, 40, 3], &[1, 5, 9, 1], &[(0, 0), (2, 2), (4, 4), (0, 0)], &[1, 2, 1, 1], &[1; 4]),
        spec(&[4000, 3, 3], &[1, 3, 3], &[(0, 0); 3], &[1; 3], &[1; 3]),
        spec(&[700, 8], &[1, 3], &[(0, 0); 2], &[1, 3], &[1; 2]),
        spec(&[90, 4, 7], &[1, 4, 7], &[(0, 0); 3], &[1; 3], &[1; 3]),
        // Pieces of padding alone.
        spec(&[2, 40_000], &[1, 40_000], &[(1, 0), (0, 0)], &[1, 1], &[1, 1]),
        spec(&[2, 40_000], &[1, 2], &[(1, 1), (0, 0)], &[1, 2], &[1, 1]),
        spec(&[0, 4], &[1, 4], &[(1, 1), (0, 0)], &[1, 1], &[1, 1]),
    ];
    for (i, spec) in specs.into_iter().enumerate() {
        let all = [
            (WindowOp::Sum, S32),
            (WindowOp::Sum, F32),
            (WindowOp::Sum, U4),
            (WindowOp::Max, F32),
            (WindowOp::Min, S4),
            (WindowOp::Max, BF16),
            (WindowOp::Product, U16),
        ];
        for (op, dtype) in [0, 2, 4].map(|step| all[(i + step) % all.len()]) {
            let source = Source::new(dtype, contiguous(&spec.shape), &whole(op, dtype, &mut random));
            compared += run(op, &source, &spec, Bound::Value);
        }
    }
    println!("windows, long: {compared} elements compared");
}

/// In another order than the oracle's, but accumulated wide and rounded once.
#[test]
fn sums_of_floats_are_close() {
    let (mut compared, mut random) = (0, Random(4));
    for (dtype, bound) in [
        (F64, Bound::Relative(2e-15)),
        (F32, Bound::Ulps(1)),
        (BF16, Bound::Ulps(1)),
        (F16, Bound::Ulps(1)),
        (C64, Bound::Relative(1e-6)),
    ] {
        for spec in [
            spec(&[40, 41], &[3, 3], &[(1, 1), (1, 1)], &[1, 1], &[1, 1]),
            spec(&[40, 41], &[11, 17], &[(0, 0), (0, 0)], &[1, 1], &[1, 1]),
            spec(&[900], &[300], &[(150, 149)], &[1], &[1]),
            spec(&[12, 12, 12], &[4, 4, 4], &[(0, 0); 3], &[4; 3], &[1; 3]),
        ] {
            let numbers: Vec<Number> = (0..5003)
                .map(|_| match dtype {
                    C64 => Number::Complex(1.0 + random.unit(), 1.0 + random.unit()),
                    _ => Number::Real(1.0 + random.unit()),
                })
                .collect();
            let source = Source::new(dtype, contiguous(&spec.shape), &numbers);
            compared += run(WindowOp::Sum, &source, &spec, bound);
        }
    }
    println!("windows, sums of floats: {compared} elements compared");
}

#[test]
fn windows_that_are_almost_all_padding() {
    const FAR: usize = 1 << if usize::BITS == 64 { 45 } else { 28 };
    let far = FAR as i64;
    let specs = [
        spec(&[3], &[FAR], &[(far, 0)], &[1], &[1]),
        spec(&[3], &[FAR / 2], &[(far, far)], &[FAR / 2], &[2]),
        spec(&[2, 3], &[FAR, 2], &[(0, far - 1), (0, 0)], &[5, 1], &[1, 1]),
    ];
    for spec in specs {
        let shape = spec.result().expect("they fit");
        let source = Source::new(S32, contiguous(&spec.shape), &[1, 2, 3, 4, 5, 6].map(Number::Integer));
        let buffer = source.buffer();
        for &op in WindowOp::ALL {
            output(S32, &shape, |out| window(op, out, &buffer, spec.windows())).expect("it ends");
        }
    }
    let negative = spec(&[9], &[2], &[(-3, -4)], &[1], &[1]);
    let source = Source::new(S32, contiguous(&[9]), &(0..9).map(Number::Integer).collect::<Vec<_>>());
    assert_eq!(run(WindowOp::Sum, &source, &negative, Bound::Bits), 1);
}

#[test]
fn what_does_not_fit_is_refused() {
    let source = Source::new(F32, contiguous(&[3, 3]), &[Number::Real(1.0)]);
    let buffer = source.buffer();
    let good = spec(&[3, 3], &[2, 2], &[(0, 0), (0, 0)], &[1, 1], &[1, 1]);
    let refused = |spec: &Spec, shape: &[usize]| {
        output(F32, shape, |out| window(WindowOp::Sum, out, &buffer, spec.windows())).expect_err("refused")
    };
    let larger = refused(&Spec { window: vec![4, 2], ..good.clone() }, &[1, 2]);
    assert_eq!(
        larger.to_string(),
        "window_sum: window {4, 2} is larger than the padded tensor of shape {3, 3} in axis 0"
    );
    for spec in [
        Spec { dilations: vec![3, 1], ..good.clone() },
        Spec { padding: vec![(-2, 0), (0, 0)], ..good.clone() },
        Spec { padding: vec![(i64::MAX, i64::MAX), (0, 0)], ..good.clone() },
        Spec { padding: vec![(i64::MIN, i64::MAX), (0, 0)], ..good.clone() },
        Spec { padding: vec![(i64::MAX, i64::MIN), (0, 0)], ..good.clone() },
        Spec { window: vec![usize::MAX, 2], ..good.clone() },
        Spec { dilations: vec![usize::MAX, 1], ..good.clone() },
        Spec { strides: vec![0, 1], ..good.clone() },
        Spec { dilations: vec![0, 1], ..good.clone() },
        Spec { window: vec![0, 2], ..good.clone() },
        Spec { window: vec![2], ..good.clone() },
        Spec { strides: vec![1, 1, 1], ..good.clone() },
    ] {
        assert!(matches!(refused(&spec, &[1, 2]), Error::Argument { .. }), "{spec:?}");
    }
    assert!(matches!(refused(&good, &[2, 3]), Error::Shape { .. }));
    let far = Spec { strides: vec![usize::MAX, 1], ..good.clone() };
    assert!(output(F32, &[1, 2], |out| window(WindowOp::Sum, out, &buffer, far.windows())).is_ok());
    let other = output(F64, &[2, 2], |out| window(WindowOp::Sum, out, &buffer, good.windows()));
    assert!(matches!(other, Err(Error::UnsupportedType { .. })));
    let complex = Source::new(C64, contiguous(&[3, 3]), &[Number::Real(1.0)]);
    let complex = complex.buffer();
    for op in [WindowOp::Max, WindowOp::Min] {
        let got = output(C64, &[2, 2], |out| window(op, out, &complex, good.windows()));
        assert!(matches!(got, Err(Error::UnsupportedType { .. })));
    }
}

#[test]
fn nothing_to_fold() {
    for (shape, spec_of) in [
        (vec![0, 3], spec(&[0, 3], &[1, 2], &[(1, 1), (0, 0)], &[1, 1], &[1, 1])),
        (vec![3, 0], spec(&[3, 0], &[2, 1], &[(0, 0), (2, 0)], &[1, 1], &[1, 1])),
    ] {
        for &op in WindowOp::ALL {
            let source = Source::new(S8, contiguous(&shape), &[Number::Integer(1)]);
            assert_eq!(run(op, &source, &spec_of, Bound::Bits), 4);
        }
    }
}

/// The naive choice of a window, and where its value goes.
fn chosen(choice: Choice, spec: &Spec, at: &[usize], source: &Source, init: Number) -> Option<Vec<usize>> {
    let met = spec.met(at);
    let value = |place: &Option<Vec<usize>>| place.as_ref().map_or(init, |index| source.at(index));
    let not_before = |a: Number, b: Number| match (a, b) {
        (Number::Integer(a), Number::Integer(b)) if choice == Choice::Max => a >= b,
        (Number::Integer(a), Number::Integer(b)) => a <= b,
        _ if choice == Choice::Max => a.re() >= b.re(),
        _ => a.re() <= b.re(),
    };
    let best = met[1..]
        .iter()
        .fold(&met[0], |best, place| if not_before(value(place), value(best)) { place } else { best });
    best.clone()
}

fn scatter(
    choice: Choice,
    input: &Source,
    out: DType,
    source: DType,
    init: DType,
    spec: &Spec,
    random: &mut Random,
) -> usize {
    let shape = spec.result().expect("windows that fit");
    let whole = whole(WindowOp::Sum, source, random);
    let values = Source::new(source, contiguous(&shape), &whole);
    let init_value = match init {
        _ if init.is_integer() => common::number::value(random.bits(init), init),
        _ => {
            *random.pick(&[Number::Real(0.0), Number::Real(-3.0), Number::Real(2.0), Number::Real(f64::NAN)])
        }
    };
    let init = Source::new(init, contiguous(&[]), &[init_value]);
    let init_value = init.at(&[]);
    let (in_buffer, values_buffer, init_buffer) = (input.buffer(), values.buffer(), init.buffer());
    let tensor = input.see(&in_buffer);
    let what = || format!("{} of {input}, {values}, {init} {init_value:?}, {spec:?}", choice.name());
    let got = output(out, &spec.shape, |out| {
        window_scatter(choice, out, &tensor, &values_buffer, &init_buffer, spec.windows())
    });
    let mut totals: std::collections::HashMap<Vec<usize>, Number> = std::collections::HashMap::new();
    let float = |n: Number| if out.is_integer() { n } else { Number::Real(n.re()) };
    for at in indices(&shape) {
        if let Some(index) = chosen(choice, spec, &at, input, init_value) {
            let total = totals.entry(index).or_insert(float(init_value));
            *total = fold(WindowOp::Sum, *total, float(values.at(&at)));
        }
    }
    let expected = |index| totals.get(&index).copied().unwrap_or(init_value);
    check_numbers(what, out, &spec.shape, got, expected, Bound::Value)
}

#[test]
fn scatters_of_every_type() {
    let (mut compared, mut random) = (0, Random(5));
    let real: Vec<DType> = DType::ALL.iter().copied().filter(|d| !d.is_complex()).collect();
    for choice in [Choice::Max, Choice::Min] {
        for &dtype in &real {
            for shape in SHAPES {
                for round in 0..3 {
                    let spec = random_spec(shape, &mut random, false);
                    // Many ties, or values of all sorts.
                    let numbers = match round % 2 {
                        0 => values(dtype, 200, &mut random),
                        _ => (0..97)
                            .map(|_| {
                                let i =
                                    random.below(4) as i128 - i128::from(dtype.kind() != Kind::Unsigned) * 2;
                                if dtype.is_integer() { Number::Integer(i) } else { Number::Real(i as f64) }
                            })
                            .collect(),
                    };
                    let input = Source::new(dtype, contiguous(shape), &numbers);
                    let (source, init) = match round % 3 {
                        0 => (F32, *random.pick(&[F32, S32, BF16])),
                        1 => (*random.pick(&[S32, U8, S64]), *random.pick(&[S32, U8, U64])),
                        _ => (F64, S64),
                    };
                    let out = match round % 3 {
                        0 => F32,
                        1 => *random.pick(&[S64, S32, U8, S4]),
                        _ => F64,
                    };
                    compared += scatter(choice, &input, out, source, init, &spec, &mut random);
                }
            }
        }
    }
    println!("window scatters: {compared} elements compared");
}

#[test]
fn scatters_over_views_and_large_ones() {
    let (mut compared, mut random) = (0, Random(6));
    for shape in [&[7][..], &[5, 6], &[3, 4, 5]] {
        for view in views(shape) {
            let input = Source::random(*random.pick(&[F32, S32, F64, U8]), view, &mut random);
            let spec = random_spec(shape, &mut random, false);
            compared += scatter(Choice::Max, &input, F32, F32, F32, &spec, &mut random);
        }
    }
    for spec in [
        spec(&[4, 64, 50], &[1, 2, 2], &[(0, 0); 3], &[1, 2, 2], &[1; 3]),
        spec(&[100, 101], &[3, 3], &[(1, 1), (1, 1)], &[2, 2], &[1, 1]),
        spec(&[5000], &[16], &[(0, 0)], &[1], &[1]),
        // Windows of a pooling: without padding, with removed elements, apart from each other, with
        // a few elements in common, and with the last elements in none.
        spec(&[9, 3, 28, 28], &[1, 1, 2, 2], &[(0, 0); 4], &[1, 1, 2, 2], &[1; 4]),
        spec(&[7, 20, 31], &[1, 3, 2], &[(0, 0), (-2, -1), (-1, 0)], &[1, 2, 3], &[1, 2, 1]),
        spec(&[40, 5, 17], &[2, 1, 4], &[(0, 0); 3], &[2, 1, 5], &[1, 1, 1]),
    ] {
        for (i, choice) in [Choice::Min, Choice::Max].into_iter().enumerate() {
            let dtype = [F32, S8, BF16, U64][(compared + i) % 4];
            let input = Source::random(dtype, contiguous(&spec.shape), &mut random);
            compared += scatter(choice, &input, F32, F32, F32, &spec, &mut random);
            compared += scatter(choice, &input, F32, BF16, S8, &spec, &mut random);
        }
    }
    println!("window scatters, views: {compared} elements compared");
}

#[test]
fn distances_of_any_size() {
    const MAX: usize = usize::MAX;
    let mut random = Random(7);
    let source = Source::random(F32, contiguous(&[4]), &mut random);
    let values = Source::random(F32, contiguous(&[2]), &mut random);
    let init = Source::new(F32, contiguous(&[]), &[Number::Integer(0)]);
    let (input, values, init) = (source.buffer(), values.buffer(), init.buffer());
    // The distance from the first to the last element of these windows overflows.
    const HALF: usize = MAX / 2 + 1;
    const ROOT: usize = 1 << (usize::BITS / 2 + 1);
    for (taps, dilation) in [(MAX, MAX), (HALF, MAX), (MAX, 2), (2, MAX), (ROOT, ROOT)] {
        let spec = spec(&[4], &[taps], &[(0, 0)], &[1], &[dilation]);
        for windows in [1, 2, 4] {
            let folded = output(F32, &[windows], |out| window(WindowOp::Sum, out, &input, spec.windows()));
            assert!(matches!(folded, Err(Error::Argument { .. })), "{spec:?}: {folded:?}");
        }
        let scattered =
            output(F32, &[4], |out| window_scatter(Choice::Max, out, &input, &values, &init, spec.windows()));
        assert!(matches!(scattered, Err(Error::Argument { .. })), "{spec:?}: {scattered:?}");
    }
    // The distance of the elements of a window of one, or of the windows if there is one, has no effect.
    let folded = |taps: usize, dilation: usize, stride: usize, windows: usize| {
        let spec = spec(&[4], &[taps], &[(0, 0)], &[stride], &[dilation]);
        let folded = output(F32, &[windows], |out| window(WindowOp::Max, out, &input, spec.windows()));
        let values = Source::random(F32, contiguous(&[windows]), &mut Random(8));
        let scattered = output(F32, &[4], |out| {
            window_scatter(Choice::Min, out, &input, &values.buffer(), &init, spec.windows())
        });
        (folded.expect("valid"), scattered.expect("valid"))
    };
    assert_eq!(folded(1, MAX, 1, 4), folded(1, 1, 1, 4));
    assert_eq!(folded(4, 1, MAX, 1), folded(4, 1, 1, 1));
    assert_eq!(folded(1, MAX, MAX, 1), folded(1, 1, 4, 1));
}

#[test]
fn scatters_that_are_refused() {
    let spec = spec(&[4], &[2], &[(0, 0)], &[2], &[1]);
    let one = |dtype| Source::new(dtype, contiguous(&[4]), &[Number::Integer(1)]);
    let values = |dtype, size: usize| Source::new(dtype, contiguous(&[size]), &[Number::Integer(1)]);
    let try_it = |input: DType, source: (DType, usize), init: &[usize], out: (DType, &[usize])| {
        let (input, source) = (one(input), values(source.0, source.1));
        let init = Source::new(S32, contiguous(init), &[Number::Integer(0)]);
        let (input, source, init) = (input.buffer(), source.buffer(), init.buffer());
        output(out.0, out.1, |out| window_scatter(Choice::Max, out, &input, &source, &init, spec.windows()))
    };
    assert!(try_it(F32, (F32, 2), &[], (F32, &[4])).is_ok());
    assert!(matches!(try_it(C64, (F32, 2), &[], (F32, &[4])), Err(Error::UnsupportedType { .. })));
    assert!(matches!(try_it(F32, (C64, 2), &[], (C64, &[4])), Err(Error::UnsupportedType { .. })));
    assert!(matches!(try_it(F32, (F32, 2), &[], (S32, &[4])), Err(Error::UnsupportedType { .. })));
    assert!(matches!(try_it(F32, (F32, 3), &[], (F32, &[4])), Err(Error::Shape { .. })));
    assert!(matches!(try_it(F32, (F32, 2), &[], (F32, &[5])), Err(Error::Shape { .. })));
    assert!(matches!(try_it(F32, (F32, 2), &[2], (F32, &[4])), Err(Error::Argument { .. })));
}
