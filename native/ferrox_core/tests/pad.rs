//! `pad`, compared with a naive computation of each element.

mod common;

use common::number::Number;
use common::{Bound, Random, Source, check_numbers, contiguous, output, views};
use ferrox_core::DType::{self, *};
use ferrox_core::ops::pad::{Padding, pad};

/// The index in the tensor of each element along an axis of the result; `None` for the padding.
fn source_indices(dim: usize, padding: Padding) -> Vec<Option<usize>> {
    let mut axis: Vec<Option<usize>> = Vec::new();
    axis.resize(usize::try_from(padding.low).unwrap_or(0), None);
    let mut inner: Vec<Option<usize>> = Vec::new();
    for i in 0..dim {
        if i > 0 {
            inner.resize(inner.len() + padding.interior, None);
        }
        inner.push(Some(i));
    }
    inner.resize(inner.len() + usize::try_from(padding.high).unwrap_or(0), None);
    let cut = usize::try_from(-padding.low).unwrap_or(0);
    axis.extend(inner.into_iter().skip(cut));
    axis
}

fn run(source: &Source, value: &Source, dtype: DType, paddings: &[Padding]) -> Option<usize> {
    let size = |(&dim, padding): (&usize, &Padding)| {
        let inner = dim + dim.saturating_sub(1) * padding.interior;
        usize::try_from(inner as i64 + padding.low + padding.high).ok()
    };
    let shape: Vec<usize> = source.shape().iter().zip(paddings).map(size).collect::<Option<_>>()?;
    let (buffer, value_buffer) = (source.buffer(), value.buffer());
    let (tensor, scalar) = (source.see(&buffer), value.see(&value_buffer));
    let what = || format!("pad of {source} with {paddings:?}");
    let got = output(dtype, &shape, |out| pad(out, &tensor, &scalar, paddings));
    let axes: Vec<Vec<Option<usize>>> =
        source.shape().iter().zip(paddings).map(|(&dim, &padding)| source_indices(dim, padding)).collect();
    // If more elements are removed than there are, the axis is all padding.
    let source_index = |axis: usize, i: usize| axes[axis].get(i).copied().flatten();
    let expected = |index: Vec<usize>| {
        let source_element: Option<Vec<usize>> =
            index.iter().enumerate().map(|(axis, &i)| source_index(axis, i)).collect();
        source_element.map_or_else(|| value.elements()[0], |source_element| source.at(&source_element))
    };
    Some(check_numbers(what, dtype, &shape, got, expected, Bound::Bits))
}

fn random_padding(random: &mut Random) -> Padding {
    let edge = |random: &mut Random| random.below(8) as i64 - 4;
    match random.below(4) {
        0 => Padding { low: 0, high: 0, interior: 0 },
        1 => Padding { low: edge(random), high: edge(random), interior: 0 },
        _ => Padding { low: edge(random), high: edge(random), interior: random.below(4) },
    }
}

#[test]
fn pads_every_view() {
    let (mut compared, mut random) = (0, Random(1));
    let shapes: &[&[usize]] =
        &[&[], &[1], &[7], &[2, 3, 4], &[3, 1, 2, 5], &[0, 3], &[2, 0, 4], &[9, 131], &[4, 4, 3]];
    for _ in 0..6 {
        for shape in shapes {
            for view in views(shape) {
                let dtype = *random.pick(DType::ALL);
                let source = Source::random(dtype, view, &mut random);
                let value = Source::random(dtype, contiguous(&[]), &mut random);
                let paddings: Vec<Padding> = shape.iter().map(|_| random_padding(&mut random)).collect();
                compared += run(&source, &value, dtype, &paddings).unwrap_or(0);
            }
        }
    }
    // Many rows of few elements.
    for length in 1..=17 {
        for (low, high) in [(0, 1), (1, 0), (3, 2), (0, -1)] {
            let dtype = *random.pick(&[U8, BF16, F32, C64, C128]);
            let source = Source::random(dtype, contiguous(&[1_003, length]), &mut random);
            let value = Source::random(dtype, contiguous(&[]), &mut random);
            let none = Padding { low: 0, high: 0, interior: 0 };
            let paddings = [none, Padding { low, high, interior: 0 }];
            compared += run(&source, &value, dtype, &paddings).unwrap_or(0);
        }
    }
    // The tensors are large enough for several threads.
    let around = Padding { low: 2, high: -3, interior: 1 };
    for dtype in [U4, F16, F32, C128] {
        let source = Source::random(dtype, contiguous(&[300, 700]), &mut random);
        let value = Source::random(dtype, contiguous(&[]), &mut random);
        compared += run(&source, &value, dtype, &[around, around]).expect("a size");
    }
    println!("pad: {compared} elements compared");
}

#[test]
fn both_become_the_type_of_the_result() {
    let mut random = Random(2);
    for (from, of_value, to) in [(S32, F32, F32), (U8, S32, S32), (F32, C64, C64), (BF16, S64, BF16)] {
        let numbers = [1, 2, 3].map(Number::Integer);
        let source = Source::new(from, contiguous(&[3]), &numbers);
        let value = Source::new(of_value, contiguous(&[]), &[Number::Integer(random.below(9) as i128)]);
        run(&source, &value, to, &[Padding { low: 1, high: 2, interior: 1 }]);
    }
}

#[test]
fn paddings_of_any_size() {
    let numbers = [1, 2, 3].map(Number::Integer);
    let value = Source::new(F32, contiguous(&[]), &[Number::Integer(9)]);
    let padded = |size: usize, padding: Padding, result: usize| {
        let source = Source::new(F32, contiguous(&[size]), &numbers[..size]);
        output(F32, &[result], |out| pad(out, &source.buffer(), &value.buffer(), &[padding]))
            .expect("valid")
            .into_iter()
            .map(|bits| f32::from_bits(bits as u32))
            .collect::<Vec<_>>()
    };
    // There is nothing between a single element and others.
    let interior = usize::MAX;
    assert_eq!(padded(1, Padding { low: 1, high: 1, interior }, 3), [9.0, 1.0, 9.0]);
    assert_eq!(padded(1, Padding { low: -1, high: 2, interior }, 2), [9.0; 2]);
    assert_eq!(padded(1, Padding { low: -3, high: 4, interior }, 2), [9.0; 2]);
    // All elements are removed, and as many are added after them.
    for low in [i64::MIN, i64::MIN + 1] {
        assert_eq!(
            padded(3, Padding { low, high: i64::MAX, interior: 0 }, (low - i64::MIN) as usize + 2),
            vec![9.0; (low - i64::MIN) as usize + 2]
        );
    }
    assert_eq!(padded(2, Padding { low: i64::MIN, high: i64::MAX, interior: 7 }, 8), [9.0; 8]);
}

#[test]
fn refuses_invalid_arguments() {
    let one = |dtype, shape: &[usize]| Source::new(dtype, contiguous(shape), &[Number::Integer(1)]);
    let (a, value) = (one(F32, &[2, 3]), one(F32, &[]));
    let (a, value) = (a.buffer(), value.buffer());
    let none = Padding { low: 0, high: 0, interior: 0 };
    let refused = |shape: &[usize], value: &_, paddings: &[Padding]| {
        output(F32, shape, |out| pad(out, &a, value, paddings)).expect_err("refused").to_string()
    };
    assert_eq!(refused(&[2, 3], &value, &[none]), "pad: needs a padding for each of 2 axes, got 1");
    assert_eq!(
        refused(&[2, 4], &value, &[none, none]),
        "pad: shapes {2, 3} and {2, 4} don't go together with the padding"
    );
    assert_eq!(refused(&[2, 3], &a, &[none, none]), "pad: the padding value must be a scalar");
    let far = Padding { low: i64::MAX, high: i64::MAX, interior: usize::MAX };
    assert_eq!(
        refused(&[2, 4], &value, &[none, far]),
        "pad: shapes {2, 3} and {2, 4} don't go together with the padding"
    );
    let cut = Padding { low: -5, high: 0, interior: 0 };
    assert_eq!(
        refused(&[2, 0], &value, &[none, cut]),
        "pad: shapes {2, 3} and {2, 0} don't go together with the padding"
    );
}
