//! Generalized dot products, compared with sums of single products.

mod common;

use common::number::{Number, sum_of_products};
use common::{Bound, Random, Source, check_numbers, contiguous, indices, merge, output, views};
use ferrox_core::DType::{self, *};
use ferrox_core::Error;
use ferrox_core::ops::dot::{Side, dot};

/// The axes of both sides that are contracted, and their batch axes.
#[derive(Clone, Debug)]
struct Axes {
    contract: [Vec<usize>; 2],
    batch: [Vec<usize>; 2],
}

fn axes(contract: [&[usize]; 2], batch: [&[usize]; 2]) -> Axes {
    Axes { contract: contract.map(<[usize]>::to_vec), batch: batch.map(<[usize]>::to_vec) }
}

/// Whole numbers for floats, so that every sum is exact in every type that gemm multiplies in,
/// except for the sign of zero; integers of any size for integers.
fn numbers(dtype: DType, random: &mut Random) -> Vec<Number> {
    let mut one = || {
        let mut whole = || (random.unit() * 4.0).round();
        match dtype {
            C64 | C128 => Number::Complex(whole(), whole()),
            _ if dtype.is_integer() => common::number::value(random.bits(dtype), dtype),
            _ => Number::Real(whole()),
        }
    };
    (0..997).map(|_| one()).collect()
}

/// The index in one side, from the indices of the sum, the batch and the free axes.
fn side_index(rank: usize, axes: &Axes, side: usize, [sum, batch, free]: [&[usize]; 3]) -> Vec<usize> {
    let mut index = vec![usize::MAX; rank];
    let fixed = axes.contract[side].iter().zip(sum).chain(axes.batch[side].iter().zip(batch));
    fixed.for_each(|(&axis, &i)| index[axis] = i);
    index.iter_mut().filter(|i| **i == usize::MAX).zip(free).for_each(|(slot, &i)| *slot = i);
    index
}

fn run(left: &Source, right: &Source, axes: &Axes, out: DType, bound: Bound) -> usize {
    let (l_shape, r_shape) = (left.shape(), right.shape());
    let free = |shape: &[usize], side: usize| -> Vec<usize> {
        let named = [&axes.contract[side][..], &axes.batch[side]].concat();
        (0..shape.len()).filter(|a| !named.contains(a)).map(|a| shape[a]).collect()
    };
    let batch: Vec<usize> = axes.batch[0].iter().map(|&a| l_shape[a]).collect();
    let summed: Vec<usize> = axes.contract[0].iter().map(|&a| l_shape[a]).collect();
    let (l_free, r_free) = (free(l_shape, 0), free(r_shape, 1));
    let shape = [&batch[..], &l_free, &r_free].concat();
    let (l_buffer, r_buffer) = (left.buffer(), right.buffer());
    let (l, r) = (left.see(&l_buffer), right.see(&r_buffer));
    let what = || format!("dot of {left} and {right}, {axes:?}");
    let side =
        |tensor, side: usize| Side { tensor, contract: &axes.contract[side], batch: &axes.batch[side] };
    let got = output(out, &shape, |out| dot(out, side(&l, 0), side(&r, 1)));
    let sums: Vec<Vec<usize>> = indices(&summed).collect();
    let expected = |index: Vec<usize>| {
        let (of_batch, rest) = index.split_at(batch.len());
        let (of_left, of_right) = rest.split_at(l_free.len());
        let factors = sums.iter().map(|sum| {
            let a = left.at(&side_index(l_shape.len(), axes, 0, [sum, of_batch, of_left]));
            (a, right.at(&side_index(r_shape.len(), axes, 1, [sum, of_batch, of_right])))
        });
        sum_of_products(factors, out)
    };
    check_numbers(what, out, &shape, got, expected, bound)
}

/// Tests shapes and axes of all kinds; products with at most 4096 multiplications use another
/// technique than larger ones.
fn cases() -> Vec<([Vec<usize>; 2], Axes)> {
    let none: [&[usize]; 2] = [&[], &[]];
    let case = |left: &[usize], right: &[usize], contract, batch| {
        ([left.to_vec(), right.to_vec()], axes(contract, batch))
    };
    vec![
        case(&[], &[], none, none),
        case(&[3], &[], none, none),
        case(&[3], &[2], none, none),
        case(&[5], &[5], [&[0], &[0]], none),
        case(&[3, 4], &[4, 5], [&[1], &[0]], none),
        case(&[4, 3], &[4, 5], [&[0], &[0]], none),
        case(&[3, 4], &[5, 4], [&[1], &[1]], none),
        case(&[1, 4], &[4, 1], [&[1], &[0]], none),
        case(&[3, 0], &[0, 2], [&[1], &[0]], none),
        case(&[0, 3], &[3, 2], [&[1], &[0]], none),
        case(&[2, 3, 4], &[2, 4, 5], [&[2], &[1]], [&[0], &[0]]),
        case(&[3, 2, 4], &[2, 5, 4], [&[2], &[2]], [&[1], &[0]]),
        case(&[2, 3, 4, 5], &[4, 2, 3, 6], [&[2], &[0]], [&[0, 1], &[1, 2]]),
        case(&[3, 2, 4], &[2, 3, 4], [&[2], &[2]], [&[1, 0], &[0, 1]]),
        case(&[2, 3, 4], &[3, 4, 5], [&[1, 2], &[0, 1]], none),
        case(&[2, 3, 4], &[4, 3, 5], [&[2, 1], &[0, 1]], none),
        case(&[4, 2, 3], &[3, 5, 4], [&[0, 2], &[2, 0]], none),
        case(&[3, 4, 5], &[3, 4, 5], [&[0, 1, 2], &[0, 1, 2]], none),
        case(&[5, 3, 4], &[4, 5, 3], [&[1, 2, 0], &[2, 0, 1]], none),
        case(&[17, 33], &[33, 19], [&[1], &[0]], none),
        case(&[33, 17], &[19, 33], [&[0], &[1]], none),
        case(&[40, 50], &[50], [&[1], &[0]], none),
        case(&[5000], &[5000], [&[0], &[0]], none),
        case(&[3, 20, 30], &[3, 30, 21], [&[2], &[1]], [&[0], &[0]]),
        case(&[2, 3, 0], &[2, 0, 4], [&[2], &[1]], [&[0], &[0]]),
        case(&[0, 3, 2], &[0, 2, 4], [&[2], &[1]], [&[0], &[0]]),
        case(&[2, 1, 7], &[2, 7, 1], [&[2], &[1]], [&[0], &[0]]),
        case(&[1, 70, 80], &[1, 80, 1], [&[2], &[1]], [&[0], &[0]]),
        case(&[1, 1, 80], &[1, 80, 70], [&[2], &[1]], [&[0], &[0]]),
        case(&[20, 3, 30], &[30, 21, 3], [&[2], &[0]], [&[1], &[2]]),
        case(&[9, 7, 11], &[11, 13, 9], [&[0, 2], &[2, 0]], none),
    ]
}

#[test]
fn every_type_with_every_sort_of_axes() {
    let (mut compared, mut random) = (0, Random(1));
    for &dtype in DType::ALL {
        for ([left, right], axes) in cases() {
            for other in [dtype, *random.pick(DType::ALL)] {
                let l = Source::new(dtype, contiguous(&left), &numbers(dtype, &mut random));
                let r = Source::new(other, contiguous(&right), &numbers(other, &mut random));
                // Large integers aren't exact in a float type; another test covers them.
                if dtype.is_integer() == other.is_integer() {
                    compared += run(&l, &r, &axes, merge(dtype, other), Bound::Value);
                }
            }
        }
    }
    println!("dot, types: {compared} elements compared");
}

#[test]
fn every_view_with_every_view() {
    let (mut compared, mut random) = (0, Random(2));
    let types = [F32, F64, C64, S32, U8, F16, S64];
    for ([left, right], axes) in cases() {
        for l_view in views(&left) {
            for _ in 0..4 {
                let dtype = *random.pick(&types);
                let r_view = random.pick(&views(&right)).clone();
                let l = Source::new(dtype, l_view.clone(), &numbers(dtype, &mut random));
                let r = Source::new(dtype, r_view, &numbers(dtype, &mut random));
                compared += run(&l, &r, &axes, dtype, Bound::Value);
            }
        }
    }
    println!("dot, views: {compared} elements compared");
}

/// Large complex products are computed from separate real and imaginary parts.
#[test]
fn large_complex_products() {
    let mut random = Random(5);
    for dtype in [C64, C128] {
        for (left, right, contract) in [([40, 30], [30, 50], [1, 0]), ([30, 41], [53, 30], [0, 1])] {
            for l_view in views(&left) {
                let r_view = random.pick(&views(&right)).clone();
                let l = Source::new(dtype, l_view, &numbers(dtype, &mut random));
                let r = Source::new(dtype, r_view, &numbers(dtype, &mut random));
                let axes = axes([&contract[..1], &contract[1..]], [&[], &[]]);
                run(&l, &r, &axes, dtype, Bound::Value);
            }
        }
    }
}

/// Integers of one side are converted exactly, or rounded as in other operations.
#[test]
fn integers_with_floats() {
    let (mut compared, mut random) = (0, Random(3));
    for (integer, float) in [(U8, F32), (S4, BF16), (S16, F16), (U32, F32), (S64, F64), (U2, C64)] {
        for ([left, right], axes) in cases() {
            let values: Vec<Number> = (0..97)
                .map(|i| Number::Integer(i % 3 - i128::from(integer.kind() == ferrox_core::Kind::Signed)))
                .collect();
            let l = Source::new(integer, contiguous(&left), &values);
            let r = Source::new(float, contiguous(&right), &numbers(float, &mut random));
            compared += run(&l, &r, &axes, merge(integer, float), Bound::Value);
        }
    }
    println!("dot, integers with floats: {compared} elements compared");
}

/// Small products are added up in order in f64 and rounded once: with whole and partial register
/// tiles, with one row or column, and several products in a batch.
#[test]
fn small_products_of_any_floats() {
    let (mut compared, mut random) = (0, Random(4));
    let shapes = [[7, 11, 17], [8, 8, 1], [13, 19, 1], [64, 64, 1], [20, 9, 1], [9, 7, 1], [7, 9, 1]];
    let rows = [[1, 30, 70], [1, 20, 63], [1, 5, 130], [9, 16, 16], [16, 16, 16], [17, 40, 5], [3, 70, 19]];
    for dtype in [F8, F8E4M3FN, F16, BF16, F32, F64] {
        for [m, k, n] in shapes.into_iter().chain(rows) {
            for batches in [1, 2, 5] {
                let fractions: Vec<Number> = (0..5003).map(|_| Number::Real(random.unit())).collect();
                let l = Source::new(dtype, contiguous(&[batches, m, k]), &fractions);
                let r = Source::new(dtype, contiguous(&[batches, k, n]), &fractions[77..]);
                let axes = axes([&[2], &[1]], [&[0], &[0]]);
                compared += run(&l, &r, &axes, dtype, Bound::Bits);
            }
        }
    }
    println!("dot, small products: {compared} elements compared");
}

/// Large products of any floats, within the error that the order of the sum may cause.
#[test]
fn large_products_of_any_floats() {
    let mut random = Random(5);
    for (dtype, bound) in [(F16, 1e-3), (BF16, 8e-3), (F32, 1e-5), (F64, 1e-13), (C64, 1e-5), (C128, 1e-13)] {
        // The numbers are positive, so that the sums don't cancel.
        let numbers: Vec<Number> =
            (0..1000).map(|_| random.unit().abs() + 0.1).map(|x| Number::Complex(x, 0.0)).collect();
        let l = Source::new(dtype, contiguous(&[45, 60]), &numbers);
        let r = Source::new(dtype, contiguous(&[60, 50]), &numbers);
        run(&l, &r, &axes([&[1], &[0]], [&[], &[]]), dtype, Bound::Relative(bound));
    }
}

/// Tests products that are large enough to be shared among threads.
#[test]
fn large_enough_to_be_split() {
    let mut random = Random(6);
    for dtype in [S32, F32, U8] {
        for view in [0, 2, 9] {
            let l = Source::new(dtype, views(&[90, 130])[view].clone(), &numbers(dtype, &mut random));
            let r = Source::new(dtype, views(&[130, 110])[view].clone(), &numbers(dtype, &mut random));
            run(&l, &r, &axes([&[1], &[0]], [&[], &[]]), dtype, Bound::Bits);
        }
    }
}

/// Tests products with parts of uneven sizes, over more steps than one call of gemm adds up.
#[test]
fn in_parts_and_steps() {
    let (mut compared, mut random) = (0, Random(9));
    for dtype in [F32, F64, C64] {
        for [m, k, n] in [[77, 1_100, 75], [3, 1_500, 1_201], [1_201, 1_500, 3], [4_001, 31, 33]] {
            for view in [0, 2, 9] {
                let l = Source::new(dtype, views(&[m, k])[view].clone(), &numbers(dtype, &mut random));
                let r = Source::new(dtype, views(&[k, n])[view].clone(), &numbers(dtype, &mut random));
                compared += run(&l, &r, &axes([&[1], &[0]], [&[], &[]]), dtype, Bound::Value);
            }
        }
    }
    println!("dot, in parts and steps: {compared} elements compared");
}

/// Tests a matrix with a vector on either side: with more columns than stripes and chunks, and rows
/// and columns that are dense or not.
#[test]
fn with_a_vector() {
    let (mut compared, mut random) = (0, Random(8));
    for dtype in [U8, S16, U32, S64, F8, F16, F32, F64, C64, C128] {
        for [m, k] in [[70, 203], [203, 70], [131, 140], [5, 2600], [2600, 5]] {
            for view in 0..views(&[m, k]).len() {
                let matrix = Source::new(dtype, views(&[m, k])[view].clone(), &numbers(dtype, &mut random));
                for (side, contract) in [(k, 1), (m, 0)] {
                    let vectors = views(&[side]);
                    let vector = vectors[view % vectors.len()].clone();
                    let vector = Source::new(dtype, vector, &numbers(dtype, &mut random));
                    let (right, left) =
                        (axes([&[contract], &[0]], [&[], &[]]), axes([&[0], &[contract]], [&[], &[]]));
                    compared += run(&matrix, &vector, &right, dtype, Bound::Value);
                    compared += run(&vector, &matrix, &left, dtype, Bound::Value);
                }
            }
        }
    }
    println!("dot, with a vector: {compared} elements compared");
}

/// Narrow elements that are converted while they are multiplied give the same bits as elements that
/// are converted before.
#[test]
fn mixed_widths_with_a_vector() {
    let mut random = Random(9);
    // Sums of these numbers depend on the order of addition.
    let mut fractions = || -> Vec<Number> { (0..997).map(|_| Number::Real(100.0 * random.unit())).collect() };
    for dtype in [BF16, F16, F8, F8E4M3FN, U8, S8, U16, S16, S4, F32, S32] {
        let long = [[129, 203], [203, 129], [131, 9000], [2600, 150], [1, 9000], [9000, 1], [150, 128]];
        let short = [[1030, 64], [64, 1030], [300, 33], [33, 300], [900, 32], [900, 31]];
        for [m, k] in long.into_iter().chain(short) {
            let shape = [2, m, k];
            let narrow = Source::new(dtype, contiguous(&shape), &fractions());
            let lane = if dtype == S32 { F64 } else { F32 };
            let wide = Source::new(lane, contiguous(&shape), &narrow.elements());
            let vectors = [k, m].map(|size| Source::new(F32, contiguous(&[2, size]), &fractions()));
            let [right, left] = vectors.each_ref().map(Source::buffer);
            let products = [&narrow, &wide].map(|matrix| {
                let matrix = matrix.buffer();
                let side = |tensor, contract| Side { tensor, contract, batch: &[0] };
                let by_rows = output(F32, &[2, m], |out| dot(out, side(&matrix, &[2]), side(&right, &[1])));
                let by_columns = output(F32, &[2, k], |out| dot(out, side(&left, &[1]), side(&matrix, &[1])));
                [by_rows.expect("a product"), by_columns.expect("a product")]
            });
            assert!(products[0] == products[1], "{dtype} of {shape:?}");
        }
    }
}

/// Tests matrices that are converted part by part, multiplied with a small number of rows or
/// columns.
#[test]
fn mixed_widths_with_small_matrices() {
    let (mut compared, mut random) = (0, Random(10));
    let many = axes([&[1], &[0]], [&[], &[]]);
    for (dtype, other) in [(BF16, BF16), (F16, F32), (F8, F8), (U8, F32)] {
        let out = if other == F8 { F32 } else { other };
        for [m, k, n] in [[3, 2600, 300], [2, 140, 4000]] {
            for transposed in [false, true] {
                let name = if transposed { "transposed" } else { "offset" };
                let view = |shape: &[usize]| views(shape).into_iter().find(|view| view.name == name);
                let view = |shape: &[usize]| view(shape).expect("one of them");
                let narrow = Source::new(dtype, view(&[k, n]), &numbers(dtype, &mut random));
                let small = Source::new(other, view(&[m, k]), &numbers(other, &mut random));
                compared += run(&small, &narrow, &many, out, Bound::Value);
                let narrow = Source::new(dtype, view(&[n, k]), &numbers(dtype, &mut random));
                let small = Source::new(other, view(&[k, m]), &numbers(other, &mut random));
                compared += run(&narrow, &small, &many, out, Bound::Value);
            }
        }
    }
    println!("dot, mixed widths: {compared} elements compared");
}

#[test]
fn refuses_invalid_arguments() {
    let one = |dtype, shape: &[usize]| Source::new(dtype, contiguous(shape), &[Number::Integer(1)]);
    let (a, b, c) = (one(F32, &[2, 3]), one(F32, &[4, 5]), one(C64, &[2, 3]));
    let (a, b, c) = (a.buffer(), b.buffer(), c.buffer());
    let message = |result: Result<Vec<u128>, Error>| result.expect_err("refused").to_string();
    let try_dot = |out, shape: &[usize], (left, l): (_, &[usize]), (right, r): (_, &[usize])| {
        let side = |tensor, contract| Side { tensor, contract, batch: &[] };
        message(output(out, shape, |out| dot(out, side(left, l), side(right, r))))
    };
    let differ = "dot: shapes {2, 3} and {4, 5} differ in the sizes of the axes to sum over or of the batch";
    assert_eq!(try_dot(F32, &[2, 5], (&a, &[1]), (&b, &[0])), differ);
    assert_eq!(try_dot(F32, &[2, 5], (&a, &[1]), (&b, &[])), differ);
    assert_eq!(try_dot(F32, &[2], (&a, &[2]), (&a, &[0])), "dot: axis 2 is out of range for rank 2");
    assert_eq!(try_dot(F32, &[2], (&a, &[1, 1]), (&a, &[0])), "dot: axis 1 is named twice");
    for axes in [&[usize::MAX][..], &[usize::MAX - 1, usize::MAX], &[usize::MAX, 0]] {
        let problem = format!("dot: axis {} is out of range for rank 2", axes[0]);
        assert_eq!(try_dot(F32, &[2], (&a, axes), (&a, axes)), problem);
    }
    assert_eq!(
        try_dot(F32, &[2, 3], (&a, &[1]), (&a, &[1])),
        "dot: shapes {2, 3} and {2, 3} give a product of shape {2, 2}, not {2, 3}"
    );
    assert_eq!(try_dot(F32, &[2, 2], (&a, &[1]), (&c, &[1])), "dot is not defined for f32 and c64");
    assert_eq!(try_dot(S32, &[2, 2], (&a, &[1]), (&a, &[1])), "dot is not defined for f32 and f32");
}

/// Tests a batch whose products are shared among threads, each too small to be shared itself.
#[test]
fn many_products() {
    let (mut compared, mut random) = (0, Random(7));
    for (dtype, [batch, m, k, n]) in [(F32, [80, 16, 16, 28]), (S64, [300, 12, 12, 8])] {
        let l = Source::new(dtype, contiguous(&[batch, m, k]), &numbers(dtype, &mut random));
        let r = Source::new(dtype, contiguous(&[batch, k, n]), &numbers(dtype, &mut random));
        compared += run(&l, &r, &axes([&[2], &[1]], [&[0], &[0]]), dtype, Bound::Value);
    }
    println!("dot, many products: {compared} elements compared");
}
