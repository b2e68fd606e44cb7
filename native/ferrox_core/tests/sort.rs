//! Sorts, compared with an insertion sort of decoded values.

mod common;

use std::cmp::Ordering;

use common::number::{Number, cast};
use common::{Bound, Random, Source, all_values, check, contiguous, indices, output, views};
use ferrox_core::DType::{self, *};
use ferrox_core::ops::sort::{Direction, argsort, sort, top_k};

const SHAPES: &[&[usize]] =
    &[&[], &[1], &[7], &[3, 4], &[2, 3, 4], &[3, 1, 2, 5], &[0, 3], &[2, 0, 4], &[3, 131], &[131, 3]];

fn reals() -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|dtype| !dtype.is_complex())
}

/// The order of two numbers: NaN is above all others, and zeros are equal.
fn order(a: Number, b: Number) -> Ordering {
    if let (Number::Integer(a), Number::Integer(b)) = (a, b) {
        return a.cmp(&b);
    }
    let (a, b) = (a.re(), b.re());
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The indices of the elements of a row in sorted order; equal elements keep their order.
fn sorted(row: &[Number], direction: Direction) -> Vec<usize> {
    let mut order_indices: Vec<usize> = Vec::new();
    for (i, &x) in row.iter().enumerate() {
        let after = |&j: &usize| match direction {
            Direction::Ascending => order(row[j], x).is_le(),
            Direction::Descending => order(row[j], x).is_ge(),
        };
        // The sorted elements that stay before this one are a prefix.
        let order_index = order_indices.partition_point(after);
        order_indices.insert(order_index, i);
    }
    order_indices
}

fn run(source: &Source, axis: usize, direction: Direction, index_type: DType) -> usize {
    let shape = source.shape();
    let dtype = source.dtype;
    let buffer = source.buffer();
    let tensor = source.see(&buffer);
    let what = |op: &str| format!("{op} {direction:?} along {axis} of {source}");
    let values = output(dtype, shape, |out| sort(out, &tensor, axis, direction));
    let order_indices = output(index_type, shape, |out| argsort(out, &tensor, axis, direction));
    let length = shape.get(axis).copied().unwrap_or(1);
    // The sorted rows by their indices of the other axes.
    let mut rows = std::collections::HashMap::new();
    let expected: Vec<(u128, u128)> = indices(shape)
        .map(|mut index| {
            let along = if index.is_empty() { 0 } else { std::mem::take(&mut index[axis]) };
            let (row, order_indices) = rows.entry(index.clone()).or_insert_with(|| {
                let at = |i: usize| {
                    let mut index = index.clone();
                    if let Some(axis_index) = index.get_mut(axis) {
                        *axis_index = i;
                    }
                    source.at(&index)
                };
                let row: Vec<Number> = (0..length).map(at).collect();
                let order_indices = sorted(&row, direction);
                (row, order_indices)
            });
            let order_index = order_indices[along];
            (cast(row[order_index], dtype), cast(Number::Integer(order_index as i128), index_type))
        })
        .collect();
    check(|| what("sort"), dtype, shape, values, |i| expected[i].0, Bound::Bits)
        + check(|| what("argsort"), index_type, shape, order_indices, |i| expected[i].1, Bound::Bits)
}

const DIRECTIONS: [Direction; 2] = [Direction::Ascending, Direction::Descending];

#[test]
fn sorts_every_type_and_view() {
    let (mut compared, mut random) = (0, Random(1));
    for dtype in reals() {
        for shape in SHAPES {
            for view in views(shape) {
                let source = Source::random(dtype, view, &mut random);
                let axis = random.below(shape.len().max(1));
                let index_type = *random.pick(&[S32, S32, S64, U8, U2, F32, BF16, C64]);
                compared += run(&source, axis, *random.pick(&DIRECTIONS), index_type);
            }
        }
    }
    println!("sort: {compared} elements compared");
}

#[test]
fn sorts_long_rows() {
    let (mut compared, mut random) = (0, Random(2));
    for dtype in reals() {
        for direction in DIRECTIONS {
            for shape in [&[1000_usize][..], &[5003], &[40, 500], &[500, 40], &[3, 500, 7]] {
                let source = Source::random(dtype, contiguous(shape), &mut random);
                compared += run(&source, random.below(shape.len()), direction, S32);
            }
        }
    }
    println!("sort of long rows: {compared} elements compared");
}

#[test]
fn sorts_numbers_that_differ_in_their_last_bits() {
    let far = [i64::MIN, i64::MAX];
    for dtype in [S64, F64] {
        for length in [300_usize, 5_000] {
            let near = (0..length as i64).map(|i| (i * 40_503 % 997) % 61 - 30 + (1 << 52));
            let all: Vec<Number> = near.chain(far).map(|x| Number::Integer(i128::from(x))).collect();
            let source = Source::new(dtype, contiguous(&[all.len()]), &all);
            for direction in DIRECTIONS {
                run(&source, 0, direction, S64);
            }
        }
    }
}

#[test]
fn sorts_rows_shared_by_threads() {
    // Values in pseudo-random order. In some rows the first value is far from the others, whose
    // keys have the same prefix in the bits that fit beside an index.
    let length = 1 << 18;
    let near = [U8, S16, F32, F64, S64, BF16].map(|dtype| (dtype, false));
    for (dtype, far) in near.into_iter().chain([(F64, true), (S64, true)]) {
        let step = 40_503_usize;
        let mut numbers: Vec<Number> =
            (0..length).map(|i| Number::Integer((i * step % length) as i128 % 251 - 125)).collect();
        if far {
            numbers[0] = Number::Integer(1 << 62);
        }
        let source = Source::new(dtype, contiguous(&[length]), &numbers);
        let buffer = source.buffer();
        for direction in DIRECTIONS {
            let mut expected: Vec<(Number, usize)> =
                source.elements().into_iter().enumerate().map(|(i, x)| (x, i)).collect();
            expected.sort_by(|a, b| match direction {
                Direction::Ascending => order(a.0, b.0),
                Direction::Descending => order(b.0, a.0),
            });
            let values = output(dtype, &[length], |out| sort(out, &buffer, 0, direction)).expect("sorted");
            let order_indices =
                output(S64, &[length], |out| argsort(out, &buffer, 0, direction)).expect("sorted");
            let kept = length / 2;
            if direction == Direction::Descending {
                let first = output(S64, &[kept], |out| top_k(out, &buffer, kept)).expect("found");
                assert_eq!(first, order_indices[..kept], "{dtype}");
            }
            for (i, (value, order_index)) in expected.iter().enumerate() {
                assert_eq!(values[i], cast(*value, dtype), "{dtype} {direction:?} {i}");
                assert_eq!(order_indices[i], *order_index as u128, "{dtype} {direction:?} {i}");
            }
        }
    }
}

#[test]
fn sorts_rows_of_equal_prefixes() {
    let length = (1 << 17) + 5;
    let row = |last: i64| (1..length).map(|i| i * 40_503 % 1_009 % 7 + (1 << 52)).chain([last]);
    let all: Vec<Number> = [i64::MAX, 1 << 52, i64::MIN, 0]
        .into_iter()
        .flat_map(row)
        .map(|x| Number::Integer(i128::from(x)))
        .collect();
    for dtype in [S64, F64] {
        let source = Source::new(dtype, contiguous(&[4, length as usize]), &all);
        for direction in DIRECTIONS {
            run(&source, 1, direction, S64);
        }
    }
}

#[test]
fn sorts_all_values_of_narrow_types() {
    for dtype in reals().filter(|dtype| (4..=16).contains(&dtype.bits())) {
        let numbers = all_values(dtype);
        let source = Source::new(dtype, contiguous(&[numbers.len()]), &numbers);
        for direction in DIRECTIONS {
            run(&source, 0, direction, S32);
        }
    }
}

#[test]
fn keeps_the_bits_and_the_order_of_equal_elements() {
    let nans = [0x7fc0_0001_u32, 0xff80_0003, 0x7f80_0002];
    let bits = [nans[0], 0x8000_0000, 0, nans[1], 0x3f80_0000, 0x8000_0000, nans[2], 0xff80_0000];
    let bytes: Vec<u8> = bits.iter().flat_map(|b| b.to_ne_bytes()).collect();
    let tensor = ferrox_core::Tensor::new("test", F32, &[8], &bytes).expect("a tensor");
    let sorted = |direction| output(F32, &[8], |out| sort(out, &tensor, 0, direction)).expect("sorted");
    let zeros = [0x8000_0000, 0, 0x8000_0000];
    let expected = |parts: &[&[u32]]| parts.concat().into_iter().map(u128::from).collect::<Vec<_>>();
    assert_eq!(sorted(Direction::Ascending), expected(&[&[0xff80_0000], &zeros, &[0x3f80_0000], &nans]));
    assert_eq!(sorted(Direction::Descending), expected(&[&nans, &[0x3f80_0000], &zeros, &[0xff80_0000]]));
}

#[test]
fn finds_the_top_k() {
    let (mut compared, mut random) = (0, Random(3));
    for dtype in reals() {
        for shape in [&[1_usize][..], &[9], &[3, 40], &[2, 3, 5], &[5003], &[0, 4], &[30, 700]] {
            for view in views(shape) {
                let source = Source::random(dtype, view, &mut random);
                let length = *shape.last().expect("a last axis");
                let max_k = if random.below(2) == 0 { length } else { 5.min(length) };
                let k = 1 + random.below(max_k);
                let mut kept = shape.to_vec();
                *kept.last_mut().expect("a last axis") = k;
                let buffer = source.buffer();
                let tensor = source.see(&buffer);
                let got = output(S32, &kept, |out| top_k(out, &tensor, k));
                let elements = source.elements();
                let expected: Vec<usize> = elements
                    .chunks(length)
                    .flat_map(|row| sorted(row, Direction::Descending).into_iter().take(k))
                    .collect();
                let what = || format!("top {k} of {source}");
                compared += check(what, S32, &kept, got, |i| expected[i] as u128, Bound::Bits);
            }
        }
    }
    println!("top_k: {compared} elements compared");
}

#[test]
fn refuses_invalid_arguments() {
    let one = |dtype, shape: &[usize]| Source::new(dtype, contiguous(shape), &[Number::Integer(1)]);
    let (real, complex) = (one(F32, &[2, 3]), one(C64, &[2, 3]));
    let (real, complex) = (real.buffer(), complex.buffer());
    let refused = |dtype, shape: &[usize], input: &_, axis| {
        let error = output(dtype, shape, |out| sort(out, input, axis, Direction::Ascending));
        error.expect_err("refused").to_string()
    };
    assert_eq!(refused(C64, &[2, 3], &complex, 0), "sort is not defined for c64");
    assert_eq!(refused(F32, &[2, 3], &real, 2), "sort: axis 2 is out of range for rank 2");
    assert_eq!(refused(F32, &[3, 2], &real, 0), "sort: shapes {2, 3} and {3, 2} differ");
    assert_eq!(refused(F64, &[2, 3], &real, 0), "sort is not defined for f32 and f64");
    let error = output(S32, &[2, 4], |out| top_k(out, &real, 4)).expect_err("refused");
    assert_eq!(error.to_string(), "top_k: k is 4, but the last axis has a size of 3");
    let none = output(S32, &[2, 0], |out| top_k(out, &real, 0));
    assert_eq!(none, Ok(vec![]));
    let scalar = one(F32, &[]);
    let error = output(S32, &[], |out| top_k(out, &scalar.buffer(), 1)).expect_err("refused");
    assert_eq!(error.to_string(), "top_k: a scalar has no axis to take elements of");
}
