//! Windows of every type over every view, compared with a naive computation of each element.

mod common;

use common::number::Number;
use common::{Bound, Random, Source, check_numbers, contiguous, output, views};
use ferrox_core::ops::window_elements::{Windows, window_elements};
use ferrox_core::{DType, Error};

fn run(source: &Source, pad: Number, windows: Windows<'_>, positions: &[usize]) -> usize {
    let (dtype, shape) = (source.dtype, source.shape());
    let rank = shape.len();
    let out: Vec<usize> = positions.iter().chain(windows.sizes).copied().collect();
    let value = Source::new(dtype, contiguous(&[]), &[pad]);
    let (buffer, pad_buffer) = (source.buffer(), value.buffer());
    let what = || format!("{windows:?} of {source}");
    let got = output(dtype, &out, |out| window_elements(out, &source.see(&buffer), &pad_buffer, windows));
    let expected = |index: Vec<usize>| {
        let element_index: Vec<isize> = (0..rank)
            .map(|a| {
                (index[a] * windows.strides[a] + index[rank + a] * windows.dilations[a]) as isize
                    - windows.padding[a].0
            })
            .collect();
        let inside = element_index.iter().zip(shape).all(|(&i, &dim)| i >= 0 && (i as usize) < dim);
        let element_index: Vec<usize> = element_index.iter().map(|&i| i as usize).collect();
        if inside { source.at(&element_index) } else { pad }
    };
    check_numbers(what, dtype, &out, got, expected, Bound::Bits)
}

fn positions(shape: &[usize], windows: Windows<'_>) -> Option<Vec<usize>> {
    (0..shape.len())
        .map(|a| {
            let padded = shape[a] as isize + windows.padding[a].0 + windows.padding[a].1;
            let reach = ((windows.sizes[a] - 1) * windows.dilations[a] + 1) as isize;
            (padded >= reach).then(|| (padded - reach) as usize / windows.strides[a] + 1)
        })
        .collect()
}

#[test]
fn windows_of_every_type_and_view() {
    let (mut compared, mut refused, mut random) = (0, 0, Random(1));
    for shape in [&[][..], &[1], &[9], &[4, 5], &[2, 3, 4], &[1, 1, 7], &[60, 90]] {
        for view in views(shape) {
            for _ in 0..12 {
                let dtype = *random.pick(DType::ALL);
                let mut some = |low: isize, high: isize| -> Vec<isize> {
                    shape.iter().map(|_| low + random.below((high - low + 1) as usize) as isize).collect()
                };
                let positive =
                    |values: Vec<isize>| -> Vec<usize> { values.into_iter().map(|v| v as usize).collect() };
                let (sizes, strides) = (positive(some(1, 3)), positive(some(1, 3)));
                let dilations = positive(some(1, 2));
                let padding: Vec<(isize, isize)> = some(-1, 3).into_iter().zip(some(-1, 3)).collect();
                let windows =
                    Windows { sizes: &sizes, strides: &strides, dilations: &dilations, padding: &padding };
                let source = Source::random(dtype, view.clone(), &mut random);
                let pad = source.elements().first().copied().unwrap_or(Number::Integer(1));
                if let Some(positions) = positions(shape, windows) {
                    compared += run(&source, pad, windows, &positions);
                } else {
                    refused += 1;
                    let (buffer, value) = (source.buffer(), Source::new(dtype, contiguous(&[]), &[pad]));
                    let error = output(dtype, shape, |out| {
                        window_elements(out, &source.see(&buffer), &value.buffer(), windows)
                    });
                    assert!(matches!(error, Err(Error::Argument { .. })), "{error:?}");
                }
            }
        }
    }
    println!("window elements: {compared} compared, {refused} refused");
    assert!(compared > 10_000 && refused > 0);
}

#[test]
fn refuses_invalid_windows() {
    let source = Source::new(DType::F32, contiguous(&[4]), &[Number::Real(1.0)]);
    let (buffer, pad) = (source.buffer(), Source::new(DType::F32, contiguous(&[]), &[Number::Real(0.0)]));
    let run = |shape: &[usize], sizes: &[usize], strides: &[usize], dilations: &[usize]| {
        let windows = Windows { sizes, strides, dilations, padding: &[(0, 0)] };
        output(DType::F32, shape, |out| window_elements(out, &buffer, &pad.buffer(), windows))
            .expect_err("wrong")
    };
    assert!(matches!(run(&[3, 2], &[2], &[0], &[1]), Error::Argument { .. }));
    assert!(matches!(run(&[3, 2], &[2], &[1], &[0]), Error::Argument { .. }));
    assert!(matches!(run(&[0, 5], &[5], &[1], &[1]), Error::Argument { .. }));
    assert!(matches!(run(&[3, 2], &[2, 1], &[1], &[1]), Error::Argument { .. }));
    assert!(matches!(run(&[4, 2], &[2], &[1], &[1]), Error::Shape { .. }));
    assert!(matches!(run(&[1, 2], &[2], &[usize::MAX], &[usize::MAX]), Error::Argument { .. }));
}

/// Between one window or element and the next there is a distance only if there are two, and padding
/// counts from the axis.
#[test]
fn distances_of_any_size() {
    const MAX: usize = usize::MAX;
    let numbers: Vec<Number> = (1..5).map(Number::Integer).collect();
    let source = Source::new(DType::S32, contiguous(&[4]), &numbers);
    let (buffer, pad) = (source.buffer(), Source::new(DType::S32, contiguous(&[]), &[Number::Integer(9)]));
    let run = |shape: &[usize], size: usize, stride: usize, dilation: usize, padding: (isize, isize)| {
        let windows =
            Windows { sizes: &[size], strides: &[stride], dilations: &[dilation], padding: &[padding] };
        output(DType::S32, shape, |out| window_elements(out, &buffer, &pad.buffer(), windows))
    };
    assert_eq!(run(&[4, 1], 1, 1, MAX, (0, 0)), Ok(vec![1, 2, 3, 4]));
    assert_eq!(run(&[1, 4], 4, MAX, 1, (0, 0)), Ok(vec![1, 2, 3, 4]));
    assert_eq!(run(&[1, 1], 1, MAX, MAX, (-3, 0)), Ok(vec![4]));
    assert_eq!(run(&[2, 2], 2, MAX / 4, 1, (2, (MAX / 4) as isize - 4)), Ok(vec![9; 4]));
    assert!(matches!(run(&[2, 1], 1, 1, 1, (isize::MIN, isize::MAX)), Err(Error::Argument { .. })));
}
