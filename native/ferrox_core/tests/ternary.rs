//! `select` and `clip` on every mix of types and views.

mod common;

use common::number::{Number, cast};
use common::{Bound, Random, Source, check, contiguous, merge, output, values, views};
use ferrox_core::DType::{self, *};
use ferrox_core::Error;
use ferrox_core::ops::ternary::{clip, select};

fn run_select(dtype: DType, shape: &[usize], [predicate, yes, no]: &[Source; 3]) -> usize {
    let buffers = [predicate.buffer(), yes.buffer(), no.buffer()];
    let what = || format!("select by {predicate} of {yes} and {no}");
    let got = output(dtype, shape, |out| {
        select(out, &predicate.see(&buffers[0]), &yes.see(&buffers[1]), &no.see(&buffers[2]))
    });
    let [p, y, n] = [predicate, yes, no].map(|s| s.broadcast_to(shape));
    let expected = |i: usize| cast(if p[i].is_zero() { n[i] } else { y[i] }, dtype);
    check(what, dtype, shape, got, expected, Bound::Bits)
}

/// Clips to at least `low`, then to at most `high`; NaN stays NaN.
fn clipped(x: Number, low: Number, high: Number) -> Number {
    if let (Number::Integer(x), Number::Integer(low), Number::Integer(high)) = (x, low, high) {
        return Number::Integer(x.max(low).min(high));
    }
    let (x, low, high) = (x.re(), low.re(), high.re());
    if x.is_nan() || low.is_nan() || high.is_nan() {
        return Number::Real(f64::NAN);
    }
    // Between equal zeros, Nx returns the bound.
    let raised = if x > low { x } else { low };
    Number::Real(if raised < high { raised } else { high })
}

fn run_clip(dtype: DType, [tensor, low, high]: &[Source; 3]) -> usize {
    let shape = tensor.shape();
    let buffers = [tensor.buffer(), low.buffer(), high.buffer()];
    let what = || format!("clip of {tensor} to {low} and {high}");
    let got = output(dtype, shape, |out| {
        clip(out, &tensor.see(&buffers[0]), &low.see(&buffers[1]), &high.see(&buffers[2]))
    });
    let [x, l, h] = [tensor, low, high].map(|s| s.broadcast_to(shape));
    check(what, dtype, shape, got, |i| cast(clipped(x[i], l[i], h[i]), dtype), Bound::Bits)
}

fn with_special_values(dtype: DType, shape: &[usize], random: &mut Random) -> Source {
    Source::new(dtype, contiguous(shape), &values(dtype, shape.iter().product(), random))
}

/// A random tensor of the shape, or of a shape that is broadcast to it.
fn broadcast_source(dtype: DType, shape: &[usize], random: &mut Random) -> Source {
    let mut view_shape = shape.to_vec();
    for dim in &mut view_shape {
        if random.below(4) == 0 {
            *dim = 1;
        }
    }
    let view = random.pick(&views(&view_shape)).clone();
    Source::random(dtype, view, random)
}

const SHAPES: &[&[usize]] =
    &[&[], &[1], &[7], &[2, 3, 4], &[0, 3], &[9, 131], &[127, 9], &[3, 1030], &[2, 9000]];

#[test]
fn select_of_every_pair_of_types() {
    let (mut compared, mut random) = (0, Random(1));
    for &yes in DType::ALL {
        for &no in DType::ALL {
            for predicate in [U8, *random.pick(DType::ALL)] {
                let types = [predicate, yes, no];
                let sources = types.map(|d| with_special_values(d, &[64], &mut random));
                compared += run_select(merge(yes, no), &[64], &sources);
                // The type is not the one that Nx would choose.
                compared += run_select(*random.pick(DType::ALL), &[64], &sources);
            }
        }
    }
    println!("select, types: {compared} elements compared");
}

#[test]
fn select_of_every_view() {
    let (mut compared, mut random) = (0, Random(2));
    for shape in SHAPES {
        for _ in 0..150 {
            let types = [U8, *random.pick(DType::ALL), *random.pick(DType::ALL)];
            let sources = types.map(|d| broadcast_source(d, shape, &mut random));
            compared += run_select(merge(types[1], types[2]), shape, &sources);
        }
    }
    let large = [3, 100_003];
    for view in views(&large) {
        let sources = [U8, F32, S32].map(|d| Source::random(d, view.clone(), &mut random));
        compared += run_select(F32, &large, &sources);
    }
    println!("select, views: {compared} elements compared");
}

#[test]
fn clip_of_every_mix_of_types() {
    let (mut compared, mut random) = (0, Random(3));
    let real = || DType::ALL.iter().copied().filter(|d| !d.is_complex());
    for tensor in real() {
        for low in real() {
            for high in [low, *random.pick(&real().collect::<Vec<_>>())] {
                // All combinations: the bounds are a column and a row.
                let sources = [(tensor, &[24, 24][..]), (low, &[24, 1]), (high, &[24])]
                    .map(|(d, shape)| with_special_values(d, shape, &mut random));
                compared += run_clip(merge(merge(tensor, low), high), &sources);
            }
        }
    }
    println!("clip, types: {compared} elements compared");
}

#[test]
fn clip_of_every_view() {
    let (mut compared, mut random) = (0, Random(4));
    for shape in SHAPES {
        for _ in 0..100 {
            let types = [F32, S32, U8, S64, F64, BF16, U4];
            let dtype = *random.pick(&types);
            let tensor = random.pick(&views(shape)).clone();
            let tensor = Source::random(dtype, tensor, &mut random);
            let [low, high] = [*random.pick(&types), dtype].map(|d| broadcast_source(d, shape, &mut random));
            let out = merge(dtype, low.dtype);
            compared += run_clip(out, &[tensor, low, high]);
        }
    }
    println!("clip, views: {compared} elements compared");
}

/// Bounds and result may be integers where the tensor has floats, and the other way around.
#[test]
fn clip_of_integers_and_floats() {
    let mut random = Random(5);
    for (types, out) in
        [([S32, U8, U8], F32), ([U64, S8, S8], F16), ([F32, F32, F32], S4), ([U4, F32, S2], U8)]
    {
        let sources = types.map(|d| with_special_values(d, &[500], &mut random));
        run_clip(out, &sources);
    }
}

#[test]
fn refuses_invalid_arguments() {
    let one = |dtype, shape: &[usize]| Source::new(dtype, contiguous(shape), &[Number::Integer(1)]);
    let (wide, narrow, complex) = (one(F32, &[2, 3]), one(F32, &[2]), one(C64, &[]));
    let (wide_buffer, narrow_buffer, complex_buffer) = (wide.buffer(), narrow.buffer(), complex.buffer());
    let message = |result: Result<Vec<u128>, Error>| result.expect_err("refused").to_string();
    let problem =
        "shapes {2} and {2, 3} don't broadcast: each axis, counted from the last, must be equal or one";
    let got = output(F32, &[2, 3], |out| select(out, &wide_buffer, &narrow_buffer, &wide_buffer));
    assert_eq!(message(got), format!("select: {problem}"));
    let got = output(F32, &[2, 3], |out| clip(out, &wide_buffer, &wide_buffer, &narrow_buffer));
    assert_eq!(message(got), format!("clip: {problem}"));
    let got = output(C64, &[2, 3], |out| clip(out, &wide_buffer, &complex_buffer, &wide_buffer));
    assert_eq!(message(got), "clip is not defined for f32, c64 and f32");
}
