//! Indexed operations, compared with a naive computation of each element.

mod common;

use common::number::{Number, cast};
use common::{Bound, Random, Source, check_numbers, contiguous, indices, output, views};
use ferrox_core::DType::{self, *};
use ferrox_core::ops::indexed::{
    Update, gather, indexed, indexed_in_place, is_in_place, put_slice, take, take_along_axis,
};
use ferrox_core::{Error, Output, Tensor};

const SHAPES: &[&[usize]] = &[&[1], &[7], &[3, 4], &[2, 3, 4], &[3, 1, 2, 5], &[9, 131]];
const INDICES: [DType; 12] = [U2, U4, U8, U16, U32, U64, S2, S4, S8, S16, S32, S64];

/// A tensor of indices. The indices along the last axis are for axes of sizes `dims`.
fn random_indices(shape: &[usize], dims: &[usize], random: &mut Random) -> Source {
    let dtype = *random.pick(&INDICES);
    let largest = common::number::bounds(dtype).1;
    let count = shape.iter().product::<usize>().max(1);
    let index = |i: usize, random: &mut Random| {
        let dim = dims.get(i % dims.len().max(1)).copied().unwrap_or(1);
        Number::Integer((random.below(dim) as i128).min(largest))
    };
    let numbers: Vec<Number> = (0..count).map(|i| index(i, random)).collect();
    Source::new(dtype, contiguous(shape), &numbers)
}

fn some_axes(rank: usize, random: &mut Random) -> Vec<usize> {
    (0..rank).filter(|_| random.below(2) == 0).collect()
}

fn each_view(random: &mut Random, mut test: impl FnMut(&Source, &mut Random) -> usize) -> usize {
    let mut compared = 0;
    for shape in SHAPES {
        for view in views(shape) {
            for dtype in [*random.pick(DType::ALL), *random.pick(&[U8, F16, F32, C64, C128, S4])] {
                compared += test(&Source::random(dtype, view.clone(), random), random);
            }
        }
    }
    compared
}

fn index_at(index_tensor: &Source, index: &[usize]) -> usize {
    index_tensor.at(index).integer() as usize
}

fn run_gather(source: &Source, batch: &[usize], axes: &[usize], random: &mut Random) -> usize {
    let shape = source.shape();
    let dims: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
    let index_tensor = random_indices(&[batch, &[axes.len()]].concat(), &dims, random);
    let rest: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
    let whole: Vec<usize> = batch.iter().copied().chain(rest.iter().map(|&axis| shape[axis])).collect();
    let (buffer, index_buffer) = (source.buffer(), index_tensor.buffer());
    let got = output(source.dtype, &whole, |out| gather(out, &source.see(&buffer), &index_buffer, axes));
    let what = || format!("gather of {source} by {index_tensor} along {axes:?}");
    let expected = |index: Vec<usize>| {
        let (row, inner) = index.split_at(batch.len());
        let mut from = vec![0; shape.len()];
        for (i, &axis) in axes.iter().enumerate() {
            from[axis] = index_at(&index_tensor, &[row, &[i]].concat());
        }
        rest.iter().zip(inner).for_each(|(&axis, &i)| from[axis] = i);
        source.at(&from)
    };
    check_numbers(what, source.dtype, &whole, got, expected, Bound::Bits)
}

#[test]
fn gathers() {
    let mut compared = each_view(&mut Random(1), |source, random| {
        let batch = *random.pick(&[&[][..], &[5], &[2, 3], &[0], &[300]]);
        let axes = some_axes(source.shape().len(), random);
        run_gather(source, batch, &axes, random)
    });
    // The tensors are large enough for several threads.
    let mut random = Random(2);
    for axes in [&[0][..], &[1], &[0, 1]] {
        let source = Source::random(F32, contiguous(&[100, 30]), &mut random);
        compared += run_gather(&source, &[20_000], axes, &mut random);
    }
    println!("gather: {compared} elements compared");
}

fn run_take(source: &Source, batch: &[usize], axis: usize, random: &mut Random) -> usize {
    let shape = source.shape();
    let index_tensor = random_indices(batch, &shape[axis..=axis], random);
    let whole = [&shape[..axis], batch, &shape[axis + 1..]].concat();
    let (buffer, index_buffer) = (source.buffer(), index_tensor.buffer());
    let got = output(source.dtype, &whole, |out| take(out, &source.see(&buffer), &index_buffer, axis));
    let what = || format!("take of {source} by {index_tensor} along {axis}");
    let expected = |index: Vec<usize>| {
        let (before, rest) = index.split_at(axis);
        let (row, after) = rest.split_at(batch.len());
        source.at(&[before, &[index_at(&index_tensor, row)], after].concat())
    };
    check_numbers(what, source.dtype, &whole, got, expected, Bound::Bits)
}

#[test]
fn takes() {
    let mut compared = each_view(&mut Random(3), |source, random| {
        let batch = *random.pick(&[&[][..], &[5], &[2, 3], &[0], &[300]]);
        let axis = random.below(source.shape().len());
        run_take(source, batch, axis, random)
    });
    let mut random = Random(4);
    for (shape, axis) in [(&[100, 30][..], 0), (&[100, 30], 1), (&[30, 40, 50], 1), (&[30, 40, 50], 2)] {
        let source = Source::random(F16, contiguous(shape), &mut random);
        compared += run_take(&source, &[300], axis, &mut random);
    }
    println!("take: {compared} elements compared");
}

fn run_take_along(source: &Source, taken: usize, axis: usize, random: &mut Random) -> usize {
    let mut whole = source.shape().to_vec();
    let dim = std::mem::replace(&mut whole[axis], taken);
    let index_tensor = random_indices(&whole, &[dim], random);
    let (buffer, index_buffer) = (source.buffer(), index_tensor.buffer());
    let got =
        output(source.dtype, &whole, |out| take_along_axis(out, &source.see(&buffer), &index_buffer, axis));
    let what = || format!("take_along_axis of {source} by {index_tensor} along {axis}");
    let expected = |mut index: Vec<usize>| {
        index[axis] = index_at(&index_tensor, &index);
        source.at(&index)
    };
    check_numbers(what, source.dtype, &whole, got, expected, Bound::Bits)
}

#[test]
fn takes_along_an_axis() {
    let mut compared = each_view(&mut Random(5), |source, random| {
        let axis = random.below(source.shape().len());
        let taken = *random.pick(&[0, 1, 3, 40]);
        run_take_along(source, taken, axis, random)
    });
    let mut random = Random(6);
    for axis in 0..3 {
        let source = Source::random(F64, contiguous(&[40, 30, 50]), &mut random);
        compared += run_take_along(&source, 60, axis, &mut random);
    }
    println!("take_along_axis: {compared} elements compared");
}

fn plus(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Integer(a), Number::Integer(b)) => Number::Integer(a + b),
        (Number::Complex(..), _) | (_, Number::Complex(..)) => {
            Number::Complex(a.re() + b.re(), a.im() + b.im())
        }
        _ => Number::Real(a.re() + b.re()),
    }
}

fn run_indexed(
    update: Update,
    types: [DType; 3],
    (shape, rows, axes): (&[usize], usize, &[usize]),
    smaller: bool,
    random: &mut Random,
) -> usize {
    let [target_type, updates_type, dtype] = types;
    let view = random.pick(&views(shape)).clone();
    let target = Source::random(target_type, view, random);
    let dims: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
    let index_tensor = random_indices(&[rows, axes.len()], &dims, random);
    let rest: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
    let window: Vec<usize> =
        rest.iter().map(|&axis| if smaller { 1 + random.below(shape[axis]) } else { shape[axis] }).collect();
    let updates_shape = [&[rows], &window[..]].concat();
    let view = random.pick(&views(&updates_shape)).clone();
    let updates = Source::random(updates_type, view, random);
    let (target_buffer, index_buffer, updates_buffer) =
        (target.buffer(), index_tensor.buffer(), updates.buffer());
    let got = output(dtype, shape, |out| {
        let (target, updates) = (target.see(&target_buffer), updates.see(&updates_buffer));
        indexed(update, out, &target, &index_buffer, &updates, axes)
    });
    let size = shape.iter().product();
    if target_type == dtype && is_in_place(update, (dtype, size), rows * window.iter().product::<usize>()) {
        let in_place = output(dtype, shape, |out| {
            let target = target.see(&target_buffer);
            let copy = Output { dtype, shape, bytes: &mut *out.bytes };
            put_slice(copy, &target, &vec![0; shape.len()], &target)?;
            indexed_in_place(update, out, &index_buffer, &updates.see(&updates_buffer), axes)
        });
        assert_eq!(in_place, got, "{} in place of {target}", update.name());
    }
    let what = || format!("{} to {target} at {index_tensor} along {axes:?} of {updates}", update.name());
    // The sum of the updates of an element, or its last update.
    let mut totals = std::collections::HashMap::new();
    for row in 0..rows {
        for inner in indices(&window) {
            let mut to = vec![0; shape.len()];
            for (i, &axis) in axes.iter().enumerate() {
                to[axis] = index_at(&index_tensor, &[row, i]);
            }
            rest.iter().zip(&inner).for_each(|(&axis, &i)| to[axis] = i);
            let new = wide(updates.at(&[&[row], &inner[..]].concat()), dtype);
            totals
                .entry(to)
                .and_modify(|total| *total = if update == Update::Add { plus(*total, new) } else { new })
                .or_insert(new);
        }
    }
    let expected = |index: Vec<usize>| match (totals.get(&index), update) {
        (None, _) => target.at(&index),
        (Some(&new), Update::Put) => new,
        (Some(&new), Update::Add) => plus(wide(target.at(&index), dtype), new),
    };
    // The signs of zeros may differ.
    check_numbers(what, dtype, shape, got, expected, Bound::Value)
}

/// The number as an integer, real or complex number, as the type is.
fn wide(number: Number, dtype: DType) -> Number {
    if dtype.is_integer() || dtype.is_complex() { number } else { Number::Real(number.re()) }
}

#[test]
fn updates_elements() {
    let (mut compared, mut random) = (0, Random(7));
    let shapes: &[&[usize]] = &[&[1], &[7], &[3, 4], &[2, 3, 4], &[3, 1, 2, 5], &[40, 31]];
    for update in [Update::Add, Update::Put] {
        for &dtype in DType::ALL {
            for shape in shapes {
                let axes = some_axes(shape.len(), &mut random);
                let rows = 1 + random.below(60);
                let given = (*shape, rows, &axes[..]);
                compared += run_indexed(update, [dtype; 3], given, random.below(2) == 0, &mut random);
            }
        }
        let types = [[S32, F32, F32], [F32, S32, F32], [U8, S32, S32], [C64, F32, C64], [F64, C64, C128]];
        for types in types.into_iter().chain([[BF16, F32, F32], [S4, U8, S16], [U8, U2, U8]]) {
            for shape in shapes {
                let axes = some_axes(shape.len(), &mut random);
                compared += run_indexed(update, types, (shape, 9, &axes), false, &mut random);
            }
        }
        // More updates than a tile, and enough for a radix sort.
        for (shape, axes) in [(&[500][..], &[0][..]), (&[70, 3], &[0]), (&[70, 3], &[1]), (&[9, 8], &[0, 1])]
        {
            for dtype in [F32, F64, S16, C64, BF16] {
                compared += run_indexed(update, [dtype; 3], (shape, 3000, axes), false, &mut random);
            }
        }
        // More totals than the cache of a core holds.
        for (shape, axes, rows) in [(&[150_000][..], &[0][..], 40_000), (&[50_000, 3], &[0], 15_000)] {
            for types in [[F32; 3], [C64; 3], [S64, BF16, F32]] {
                compared += run_indexed(update, types, (shape, rows, axes), false, &mut random);
            }
        }
        compared += run_indexed(update, [F32; 3], (&[4], 0, &[0]), false, &mut random);
    }
    println!("indexed: {compared} elements compared");
}

#[test]
fn puts_slices() {
    let compared = each_view(&mut Random(8), |source, random| {
        let shape = source.shape();
        let lengths: Vec<usize> = shape.iter().map(|&dim| random.below(dim + 1)).collect();
        let starts: Vec<usize> =
            shape.iter().zip(&lengths).map(|(&dim, &length)| random.below(dim - length + 1)).collect();
        let view = random.pick(&views(&lengths)).clone();
        let other = *random.pick(DType::ALL);
        let slice = Source::random(other, view, random);
        let dtype = match (source.dtype.is_complex(), other.is_complex()) {
            (false, true) => other,
            _ => source.dtype,
        };
        let (buffer, slice_buffer) = (source.buffer(), slice.buffer());
        let got = output(dtype, shape, |out| {
            put_slice(out, &source.see(&buffer), &starts, &slice.see(&slice_buffer))
        });
        let what = || format!("put_slice of {slice} to {source} at {starts:?}");
        let expected = |index: Vec<usize>| {
            let within = index.iter().zip(&starts).zip(&lengths);
            let inner: Option<Vec<usize>> =
                within.map(|((&i, &start), &length)| i.checked_sub(start).filter(|&i| i < length)).collect();
            inner.map_or_else(|| source.at(&index), |inner| slice.at(&inner))
        };
        check_numbers(what, dtype, shape, got, expected, Bound::Bits)
    });
    println!("put_slice: {compared} elements compared");
}

/// A tensor of some integers, repeated.
fn source(dtype: DType, shape: &[usize], numbers: &[i128]) -> Source {
    let numbers: Vec<Number> = numbers.iter().map(|&n| Number::Integer(n)).collect();
    Source::new(dtype, contiguous(shape), &numbers)
}

/// Enough updates for several threads: each element counts its updates.
#[test]
fn many_updates() {
    const UPDATES: usize = 100_000;
    for size in [7, 1_000, 90_000] {
        let index_tensor: Vec<i128> = (0..UPDATES as i128).map(|i| (i * i + 3 * i) % size as i128).collect();
        let (index_tensor, ones) = (source(S64, &[UPDATES, 1], &index_tensor), source(U8, &[UPDATES], &[1]));
        for dtype in [U8, S16, U32, S64, F64] {
            let numbers: Vec<i128> = (0..size as i128).map(|i| i % 50).collect();
            let target = source(dtype, &[size], &numbers);
            let bits = output(dtype, &[size], |out| {
                indexed(Update::Add, out, &target.buffer(), &index_tensor.buffer(), &ones.buffer(), &[0])
            });
            let mut expected = numbers;
            for i in 0..UPDATES {
                expected[index_at(&index_tensor, &[i, 0])] += 1;
            }
            for (bits, expected) in bits.expect("sound").into_iter().zip(expected) {
                assert_eq!(bits, cast(Number::Integer(expected), dtype), "{dtype}, {size} elements");
            }
        }
    }
}

/// Enough rows of updates for several threads, whose shares of the target begin within rows.
#[test]
fn many_rows() {
    let few =
        [(40_000, 61, 61, 2_000), (2_000, 300, 300, 130), (2_000, 300, 290, 130), (90_000, 4, 4, 9_000)];
    let many = [(37, 61, 61), (37, 61, 50), (1500, 4, 4), (5, 5, 5)];
    let many = many.map(|(rows, width, written)| (rows, width, written, 300_000 / written));
    for (rows, width, written, updates) in many.into_iter().chain(few) {
        let index_tensor: Vec<i128> = (0..updates as i128).map(|i| (i * i + 3 * i) % rows as i128).collect();
        let number = |i: usize| (i * 7919 % 100_003) as f64 / 7.0 - 7000.0;
        let targets: Vec<f32> = (0..rows * width).map(|i| number(i + 5) as f32).collect();
        let elements: Vec<f32> = (0..updates * written).map(|i| number(i) as f32).collect();
        let mut sums: Vec<Option<f64>> = vec![None; rows * width];
        for (i, &element) in elements.iter().enumerate() {
            let sum = &mut sums[index_tensor[i / written] as usize * width + i % written];
            *sum = Some(sum.unwrap_or(0.0) + f64::from(element));
        }
        let expected = targets
            .iter()
            .zip(sums)
            .map(|(&target, sum)| sum.map_or(target, |sum| (f64::from(target) + sum) as f32));
        let expected: Vec<u8> = expected.flat_map(f32::to_ne_bytes).collect();
        let bytes = |numbers: &[f32]| numbers.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>();
        let (target, elements) = (bytes(&targets), bytes(&elements));
        let (shape, own) = ([rows, width], [updates, written]);
        let target = Tensor::new("test", F32, &shape, &target).expect("as many bytes");
        let elements = Tensor::new("test", F32, &own, &elements).expect("as many bytes");
        let mut got = vec![0; expected.len()];
        let out = Output { dtype: F32, shape: &shape, bytes: &mut got };
        let indices = source(S32, &[updates, 1], &index_tensor);
        indexed(Update::Add, out, &target, &indices.buffer(), &elements, &[0]).expect("is sound");
        assert!(got == expected, "{updates} rows of {written} to {shape:?}");
    }
}

#[test]
fn scalars() {
    let one = |n: i128| Source::new(F32, contiguous(&[]), &[Number::Integer(n)]);
    let (a, b) = (one(3), one(5));
    let (a, b) = (a.buffer(), b.buffer());
    let five = cast(Number::Real(5.0), F32);
    assert_eq!(output(F32, &[], |out| put_slice(out, &a, &[], &b)), Ok(vec![five]));
}

#[test]
fn refuses_invalid_arguments() {
    let tensor = source(F32, &[2, 3], &[1]);
    let tensor = tensor.buffer();
    let error = |dtype, n: &[i128], op: &dyn Fn(&ferrox_core::Tensor<'_>) -> Error| {
        let index_tensor = source(dtype, &[n.len(), 1], n);
        op(&index_tensor.buffer()).to_string()
    };
    let gathered = |index_tensor: &ferrox_core::Tensor<'_>| {
        output(F32, &[index_tensor.shape()[0], 2], |out| gather(out, &tensor, index_tensor, &[1]))
            .expect_err("refused")
    };
    assert_eq!(error(S32, &[2, 1, 3, 4], &gathered), "index 3 is out of bounds for axis 1 in shape {2, 3}");
    assert_eq!(error(S8, &[0, -1], &gathered), "index -1 is out of bounds for axis 1 in shape {2, 3}");
    let largest = i128::from(u64::MAX);
    assert_eq!(
        error(U64, &[largest], &gathered),
        "index 18446744073709551615 is out of bounds for axis 1 in shape {2, 3}"
    );
    assert_eq!(error(F32, &[1], &gathered), "gather: indices must be integers, got f32");
    // The error is that of the first index, for any number of threads.
    let along = |index_tensor: &ferrox_core::Tensor<'_>| {
        let column = source(F32, &[3, 1], &[1]);
        output(F32, index_tensor.shape(), |out| take_along_axis(out, &column.buffer(), index_tensor, 0))
            .expect_err("refused")
    };
    let mut many = vec![0; 100_000];
    (many[777], many[99_999]) = (-5, 7);
    assert_eq!(error(S64, &many, &along), "index -5 is out of bounds for axis 0 in shape {3, 1}");
    let taken = |index_tensor: &ferrox_core::Tensor<'_>| {
        let shape = [2, index_tensor.shape()[0], 1];
        output(F32, &shape, |out| take(out, &tensor, index_tensor, 1)).expect_err("refused")
    };
    assert_eq!(error(U8, &[0, 5], &taken), "index 5 is out of bounds for axis 1 in shape {2, 3}");
    for update in [Update::Add, Update::Put] {
        let updated = |index_tensor: &ferrox_core::Tensor<'_>| {
            let updates = source(F32, &[2, 3], &[1]);
            output(F32, &[2, 3], |out| indexed(update, out, &tensor, index_tensor, &updates.buffer(), &[0]))
                .expect_err("refused")
        };
        assert_eq!(error(S32, &[0, 2], &updated), "index 2 is out of bounds for axis 0 in shape {2, 3}");
        assert_eq!(
            error(S32, &[0], &updated),
            format!(
                "{}: shapes {{2, 3}}, {{1, 1}}, {{2, 3}} and {{2, 3}} don't go together with axes [0]",
                update.name()
            )
        );
    }
    let large = source(F32, &[150_000], &[1]);
    let added = |index_tensor: &ferrox_core::Tensor<'_>| {
        let updates = source(F32, &[100_000], &[1]);
        output(F32, &[150_000], |out| {
            indexed(Update::Add, out, &large.buffer(), index_tensor, &updates.buffer(), &[0])
        })
        .expect_err("refused")
    };
    many[777] = 150_000;
    assert_eq!(error(S64, &many, &added), "index 150000 is out of bounds for axis 0 in shape {150000}");
    let counted = |index_tensor: &ferrox_core::Tensor<'_>| {
        let (ones, updates) = (source(S16, &[900], &[1]), source(S16, &[100_000], &[1]));
        output(S16, &[900], |out| {
            indexed(Update::Add, out, &ones.buffer(), index_tensor, &updates.buffer(), &[0])
        })
        .expect_err("refused")
    };
    many[777] = 900;
    assert_eq!(error(S64, &many, &counted), "index 900 is out of bounds for axis 0 in shape {900}");
    for (target, updates) in [(&[0][..], &[1][..]), (&[0, 3], &[1, 3]), (&[0, 3], &[1, 2])] {
        let (empty, updates) = (source(F32, target, &[]), source(F32, updates, &[1]));
        let index_tensor = source(S64, &[1, 1], &[0]);
        let error = output(F32, target, |out| {
            indexed(Update::Add, out, &empty.buffer(), &index_tensor.buffer(), &updates.buffer(), &[0])
        });
        assert!(matches!(error, Err(Error::Index { index: 0, axis: 0, .. })), "{target:?}: {error:?}");
    }
    let index_tensor = source(S32, &[1, 2], &[0, 0]);
    let index_tensor = index_tensor.buffer();
    let axes = output(F32, &[1], |out| gather(out, &tensor, &index_tensor, &[1, 0])).expect_err("refused");
    assert_eq!(axes.to_string(), "gather: axes [1, 0] must ascend and be less than the rank, 2");
    let axes = output(F32, &[1], |out| take(out, &tensor, &index_tensor, 2)).expect_err("refused");
    assert_eq!(axes.to_string(), "take: axes [2] must ascend and be less than the rank, 2");
    let slice = source(F32, &[2, 2], &[1]);
    let past = output(F32, &[2, 3], |out| put_slice(out, &tensor, &[0, 2], &slice.buffer()));
    assert_eq!(
        past.expect_err("refused").to_string(),
        "put_slice: start 2 with length 2 reaches past axis 1 of size 3"
    );
    let other = output(S32, &[1], |out| gather(out, &tensor, &index_tensor, &[0, 1])).expect_err("refused");
    assert_eq!(other.to_string(), "gather is not defined for f32 and s32");
}
