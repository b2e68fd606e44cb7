//! Reductions over every set of axes, and the indices of extremes.

mod common;

use common::number::{Number, bounds, cast};
use common::{Bound, Random, Source, check, contiguous, indices, output, special, values, views};
use ferrox_core::DType::{self, *};
use ferrox_core::exec::simd::{self, Level};
use ferrox_core::ops::reduce::{ReduceOp, TieBreak, arg_reduce, reduce};
use ferrox_core::{Error, Kind, Tensor};

/// The type of the result in Nx.
fn result_type(op: ReduceOp, dtype: DType) -> DType {
    match op {
        ReduceOp::All | ReduceOp::Any => U8,
        ReduceOp::Sum | ReduceOp::Product if dtype.is_integer() && dtype.bits() < 32 => match dtype.kind() {
            Kind::Unsigned => U32,
            _ => S32,
        },
        _ => dtype,
    }
}

fn defined(op: ReduceOp, dtype: DType) -> bool {
    !dtype.is_complex() || !matches!(op, ReduceOp::ReduceMax | ReduceOp::ReduceMin)
}

/// Folds from left to right, integers exactly and floats in `f64`.
fn expected(op: ReduceOp, dtype: DType, numbers: impl Iterator<Item = Number>) -> Number {
    use ReduceOp::*;
    let numbers: Vec<Number> = numbers.collect();
    let truth = |holds: bool| Number::Integer(i128::from(holds));
    let extreme = |further: fn(f64, f64) -> bool| {
        let reals = numbers.iter().map(|n| n.re());
        Number::Real(reals.reduce(|a, b| if further(b, a) || b.is_nan() { b } else { a }).unwrap_or(f64::NAN))
    };
    match op {
        All => truth(numbers.iter().all(|n| !n.is_zero())),
        Any => truth(numbers.iter().any(|n| !n.is_zero())),
        ReduceMax | ReduceMin if dtype.is_integer() => {
            let integers = numbers.iter().map(|n| n.integer());
            let extreme = if op == ReduceMax { integers.max() } else { integers.min() };
            Number::Integer(extreme.expect("not empty"))
        }
        ReduceMax => extreme(|a, b| a > b),
        ReduceMin => extreme(|a, b| a < b),
        Sum | Product if dtype.is_integer() => {
            let fold = if op == Sum { i128::wrapping_add } else { i128::wrapping_mul };
            Number::Integer(
                numbers.iter().fold(i128::from(op == Product), |total, n| fold(total, n.integer())),
            )
        }
        Sum => {
            let total = numbers.iter().fold([0.0, 0.0], |[re, im], n| [re + n.re(), im + n.im()]);
            Number::Complex(total[0], total[1])
        }
        Product => {
            let times = |[a, b]: [f64; 2], n: &Number| match n {
                Number::Complex(c, d) => [a * c - b * d, a * d + b * c],
                real => [a * real.re(), b],
            };
            let product = numbers.iter().fold([1.0, 0.0], times);
            Number::Complex(product[0], product[1])
        }
    }
}

/// The bits of an expected result of type `out`.
fn rounded(number: Number, out: DType) -> u128 {
    let number = if out.is_complex() {
        number
    } else if let Number::Complex(re, _) = number {
        Number::Real(re)
    } else {
        number
    };
    cast(number, out)
}

/// Values whose sums and products are exact in an f64 in any order, so that there is one right
/// result.
fn exact_values(op: ReduceOp, dtype: DType, count: usize, random: &mut Random) -> Vec<Number> {
    if dtype.is_integer() || !matches!(op, ReduceOp::Sum | ReduceOp::Product) {
        return values(dtype, count, random);
    }
    // Numbers of 24 bits leave 29 bits for the number of terms.
    let mut fraction = || (random.unit() * 2f64.powi(23)).round() / 2f64.powi(20);
    // Most factors are 1 or -1, so that products stay in range.
    let factors = [2.0, -0.5, -2.0, 0.5];
    let one = |i: usize| match (op, dtype) {
        (ReduceOp::Product, C64 | C128) => {
            [Number::Complex(0.0, 1.0), Number::Complex(1.0, 0.0), Number::Complex(0.0, -1.0)][i % 3]
        }
        (ReduceOp::Product, _) => Number::Real(factors.get(i).copied().unwrap_or(fraction().signum())),
        (_, C64 | C128) => Number::Complex(fraction(), fraction()),
        _ => Number::Real(fraction()),
    };
    (0..count).map(one).collect()
}

/// The axes whose bits are set in a mask.
fn axes_of(mask: usize, rank: usize) -> Vec<usize> {
    (0..rank).filter(|axis| mask >> axis & 1 == 1).collect()
}

fn run(op: ReduceOp, source: &Source, axes: &[usize], out: DType) -> usize {
    let shape = source.shape();
    let kept: Vec<usize> = (0..shape.len()).filter(|a| !axes.contains(a)).collect();
    let out_shape: Vec<usize> = kept.iter().map(|&axis| shape[axis]).collect();
    let buffer = source.buffer();
    let what = || format!("{} of {source} over {axes:?}", op.name());
    let got = output(out, &out_shape, |out| reduce(op, out, &source.see(&buffer), axes));
    let mut groups: Vec<Vec<Number>> = vec![Vec::new(); out_shape.iter().product()];
    for (index, number) in indices(shape).zip(source.elements()) {
        let position = kept.iter().fold(0, |position, &axis| position * shape[axis] + index[axis]);
        groups[position].push(number);
    }
    let expected =
        |position: usize| rounded(expected(op, source.dtype, groups[position].iter().copied()), out);
    // The signs of zeros that are extremes or parts of complex products depend on the stripes.
    let exact = op == ReduceOp::Sum || op == ReduceOp::Product && !source.dtype.is_complex();
    let bound = if exact { Bound::Bits } else { Bound::Value };
    check(what, out, &out_shape, got, expected, bound)
}

#[test]
fn every_type_over_every_set_of_axes_of_every_view() {
    let (mut compared, mut random) = (0, Random(1));
    for &op in ReduceOp::ALL {
        for &dtype in DType::ALL.iter().filter(|&&d| defined(op, d)) {
            for shape in [&[3, 4, 5][..], &[1, 70, 2], &[2, 1, 3], &[5], &[]] {
                for view in views(shape) {
                    let numbers = exact_values(op, dtype, 251, &mut random);
                    let source = Source::new(dtype, view, &numbers);
                    for mask in 0..1 << shape.len() {
                        let mut axes = axes_of(mask, shape.len());
                        if random.below(3) == 0 {
                            axes.reverse();
                        }
                        compared += run(op, &source, &axes, result_type(op, dtype));
                    }
                }
            }
        }
    }
    println!("reduce, views: {compared} results compared");
}

/// Rows of at least 64 elements are folded in stripes, and more than 65536 elements in blocks.
#[test]
fn rows_and_columns_past_stripes_and_blocks() {
    let (mut compared, mut random) = (0, Random(2));
    let types = [U8, S4, S32, U64, F8, F16, BF16, F32, F64, C64];
    for &op in ReduceOp::ALL {
        for (shape, axes) in [
            (&[131_075][..], &[0][..]),
            (&[65_536], &[0]),
            (&[2, 65_537], &[1]),
            (&[66_000, 3], &[0]),
            (&[2, 3000, 50], &[1]),
            (&[17, 400, 40], &[1]),
            (&[3, 70, 1100], &[1]),
            (&[40, 33, 50], &[0, 2]),
            (&[2, 1031, 64], &[1, 2]),
            (&[1500, 63], &[1]),
            (&[1500, 65], &[1]),
            (&[3, 65, 1025], &[2]),
        ] {
            for _ in 0..4 {
                let dtype = *random.pick(&types);
                if !defined(op, dtype) {
                    continue;
                }
                let view = random.pick(&views(shape)).clone();
                let numbers = exact_values(op, dtype, 5003, &mut random);
                compared += run(op, &Source::new(dtype, view, &numbers), axes, result_type(op, dtype));
            }
        }
    }
    println!("reduce, large: {compared} results compared");
}

/// The errors of a sum in f64 are far below the last bit of the narrower types, so that one value
/// is right except for ties.
#[test]
fn sums_of_narrow_floats_round_once() {
    let mut random = Random(3);
    for dtype in [F8, F8E4M3FN, F16, BF16, F32] {
        for count in [7, 100, 3001] {
            let numbers: Vec<Number> = (0..count).map(|_| Number::Real(random.unit() * 0.01)).collect();
            let source = Source::new(dtype, contiguous(&[count]), &numbers);
            run(ReduceOp::Sum, &source, &[0], dtype);
        }
    }
    // In bf16, most additions of 1 would change nothing.
    let ones = Source::new(BF16, contiguous(&[4096]), &[Number::Real(1.0)]);
    let got = output(BF16, &[], |out| reduce(ReduceOp::Sum, out, &ones.buffer(), &[0]));
    assert_eq!(got, Ok(vec![cast(Number::Real(4096.0), BF16)]));
}

/// Narrow floats are widened in chunks, or two at a time, but added up in the order of f32. The
/// sums of bf16 depend on the order, which a result of f64 shows; the sums of other types are
/// exact.
#[test]
fn narrow_floats_are_added_in_the_order_of_wide_ones() {
    let mut random = Random(5);
    for dtype in [F8, F8E4M3FN, F16, BF16] {
        let exponents = if dtype == BF16 { 200 } else { 24 };
        for (rows, length) in [
            (70, 10),
            (9, 63),
            (9, 64),
            (9, 65),
            (7, 257),
            (3, 511),
            (3, 512),
            (3, 513),
            (2, 1300),
            (1, 70_001),
        ] {
            let spread = |random: &mut Random| {
                2f64.powi(random.below(exponents) as i32 - exponents as i32 / 2) * random.unit()
            };
            let numbers: Vec<Number> =
                (0..rows * length).map(|_| Number::Real(spread(&mut random))).collect();
            let narrow = Source::new(dtype, contiguous(&[rows, length]), &numbers);
            let same = narrow.elements();
            let wide = Source::new(F32, contiguous(&[rows, length]), &same);
            let sum = |source: &Source| {
                output(F64, &[rows], |out| reduce(ReduceOp::Sum, out, &source.see(&source.buffer()), &[1]))
            };
            assert_eq!(sum(&narrow), sum(&wide), "{dtype} {rows}x{length}");
            let in_order = same.chunks(length).map(|row| row.iter().map(|x| x.re()).sum::<f64>());
            let in_order: Vec<u128> = in_order.map(|sum| cast(Number::Real(sum), F64)).collect();
            let differs = sum(&wide) != Ok(in_order);
            assert_eq!(differs, dtype == BF16 && length >= 64, "{dtype} {rows}x{length} from left to right");
        }
    }
}

/// Infinities and NaN anywhere in a long row or column.
#[test]
fn infinities_and_nan_spread() {
    let mut random = Random(4);
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for dtype in [F8, F16, BF16, F32, F64] {
        for shape in [[2, 700], [700, 2], [3, 5], [66_000, 1]] {
            for found in [&[inf][..], &[-inf], &[nan], &[inf, -inf], &[nan, inf]] {
                let mut numbers = vec![Number::Real(1.0); shape[0] * shape[1]];
                for &x in found {
                    numbers[random.below(shape[0] * shape[1])] = Number::Real(x);
                }
                let source = Source::new(dtype, contiguous(&shape), &numbers);
                for op in [ReduceOp::Sum, ReduceOp::Product, ReduceOp::ReduceMax, ReduceOp::ReduceMin] {
                    for axes in [&[0][..], &[1], &[0, 1]] {
                        run(op, &source, axes, dtype);
                    }
                }
            }
        }
    }
}

/// The first of several zeros that are the extreme is the result, and NaN of either sign is more
/// extreme than infinity.
#[test]
fn extremes_that_comparisons_do_not_order() {
    const NAN: u128 = u128::MAX;
    let mut random = Random(12);
    for (dtype, width) in [(F16, 2), (BF16, 2), (F32, 4)] {
        let bits = |x: f64| cast(Number::Real(x), dtype);
        let negative = 1_u128 << (8 * width - 1);
        for shape in [[5, 3], [70, 40], [300, 7], [4, 700], [130, 1100], [3000, 2]] {
            for (op, beyond) in [(ReduceOp::ReduceMax, -1.0), (ReduceOp::ReduceMin, 1.0)] {
                for rare_zeros in [false, true] {
                    let mut words: Vec<u128> = (0..shape[0] * shape[1])
                        .map(|_| match random.below(if rare_zeros { 500 } else { 5 }) {
                            0 => bits(0.0),
                            1 => negative,
                            _ => bits(beyond * (1.0 + random.unit().abs())),
                        })
                        .collect();
                    let nan_index = random.below(words.len());
                    words[nan_index] = bits(f64::INFINITY) + 1 + [0, negative][random.below(2)];
                    let bytes: Vec<u8> = words
                        .iter()
                        .flat_map(|&word| match width {
                            2 => (word as u16).to_ne_bytes().to_vec(),
                            _ => (word as u32).to_ne_bytes().to_vec(),
                        })
                        .collect();
                    let tensor = Tensor::new("test", dtype, &shape, &bytes).expect("fits");
                    for axis in [0, 1] {
                        let of = |kept: usize| -> u128 {
                            let line = (0..shape[axis]).map(|i| {
                                let (row, column) = if axis == 0 { (i, kept) } else { (kept, i) };
                                row * shape[1] + column
                            });
                            let words: Vec<u128> = line.clone().map(|at| words[at]).collect();
                            if line.into_iter().any(|at| at == nan_index) {
                                return NAN;
                            }
                            let zero = words.iter().find(|&&word| word & !negative == 0);
                            // All have one sign, so that the number nearest to zero has the
                            // smallest bit pattern.
                            zero.copied().unwrap_or_else(|| words.into_iter().min().expect("not empty"))
                        };
                        let kept = shape[1 - axis];
                        let mut got =
                            output(dtype, &[kept], |out| reduce(op, out, &tensor, &[axis])).expect("sound");
                        for word in &mut got {
                            *word = if *word & !negative > bits(f64::INFINITY) { NAN } else { *word };
                        }
                        let expected: Vec<u128> = (0..kept).map(of).collect();
                        assert_eq!(got, expected, "{} of {dtype} {shape:?} over {axis}", op.name());
                    }
                }
            }
        }
    }
}

/// Integers that are summed to floats keep their sign, as `mean` needs.
#[test]
fn results_of_types_that_nx_would_not_choose() {
    let mut random = Random(5);
    for from in [S2, S8, S16, S32, S64, U4, U32] {
        let (low, high) = bounds(from);
        let limit = high.min(1000);
        let numbers: Vec<Number> = (0..200)
            .map(|_| Number::Integer((random.unit() * limit as f64) as i128))
            .map(|n| Number::Integer(n.integer().max(low)))
            .collect();
        let source = Source::new(from, contiguous(&[4, 50]), &numbers);
        for to in [F32, F64, BF16, C64, S64, U8] {
            run(ReduceOp::Sum, &source, &[1], to);
            run(ReduceOp::ReduceMin, &source, &[0], if to.is_complex() { F32 } else { to });
        }
    }
}

#[test]
fn empty_folds_return_the_neutral_element() {
    let empty = Source::new(F32, contiguous(&[2, 0, 3]), &[]);
    let buffer = empty.buffer();
    for (op, expected) in
        [(ReduceOp::Sum, 0.0), (ReduceOp::Product, 1.0), (ReduceOp::All, 1.0), (ReduceOp::Any, 0.0)]
    {
        let out = result_type(op, F32);
        for (axes, shape) in [(&[1][..], &[2, 3][..]), (&[0, 1], &[3]), (&[0, 1, 2], &[]), (&[0], &[0, 3])] {
            let got = output(out, shape, |out| reduce(op, out, &buffer, axes));
            let size = shape.iter().product();
            assert_eq!(got, Ok(vec![cast(Number::Real(expected), out); size]), "{} over {axes:?}", op.name());
        }
    }
}

#[test]
fn large_enough_for_several_threads() {
    let mut random = Random(6);
    for (op, dtype, shape, axes) in [
        (ReduceOp::Sum, F32, [3, 400_000], &[1][..]),
        (ReduceOp::Sum, F16, [1000, 700], &[0]),
        (ReduceOp::ReduceMax, F32, [700, 1000], &[1]),
        (ReduceOp::Any, U8, [300_000, 4], &[0]),
        (ReduceOp::Product, U32, [300_000, 4], &[1]),
        (ReduceOp::Sum, S64, [2, 400_000], &[0, 1]),
    ] {
        for view in views(&shape) {
            let numbers = exact_values(op, dtype, 5003, &mut random);
            run(op, &Source::new(dtype, view, &numbers), axes, result_type(op, dtype));
        }
    }
}

/// The index of the last NaN, else of the first or last extreme.
fn expected_index(op: ReduceOp, tie_break: TieBreak, row: &[Number]) -> usize {
    if let Some(nan) = row.iter().rposition(|n| n.is_nan()) {
        return nan;
    }
    let further = |a: Number, b: Number| match (a, b) {
        (Number::Integer(a), Number::Integer(b)) if op == ReduceOp::ReduceMin => a < b,
        (Number::Integer(a), Number::Integer(b)) => a > b,
        _ if op == ReduceOp::ReduceMin => a.re() < b.re(),
        _ => a.re() > b.re(),
    };
    (1..row.len()).fold(0, |best, i| {
        let replaces =
            if tie_break == TieBreak::Low { further(row[i], row[best]) } else { !further(row[best], row[i]) };
        if replaces { i } else { best }
    })
}

fn run_index(op: ReduceOp, tie_break: TieBreak, source: &Source, axis: Option<usize>, out: DType) -> usize {
    let shape = source.shape();
    let kept: Vec<usize> = (0..shape.len()).filter(|&a| axis.is_some_and(|axis| axis != a)).collect();
    let out_shape: Vec<usize> = kept.iter().map(|&a| shape[a]).collect();
    let buffer = source.buffer();
    let what = || format!("arg {} of {source} along {axis:?}, tie break {tie_break:?}", op.name());
    let got = output(out, &out_shape, |out| arg_reduce(op, out, &source.see(&buffer), axis, tie_break));
    let mut rows: Vec<Vec<Number>> = vec![Vec::new(); out_shape.iter().product()];
    for (index, number) in indices(shape).zip(source.elements()) {
        rows[kept.iter().fold(0, |position, &a| position * shape[a] + index[a])].push(number);
    }
    let expected =
        |position: usize| cast(Number::Integer(expected_index(op, tie_break, &rows[position]) as i128), out);
    check(what, out, &out_shape, got, expected, Bound::Bits)
}

#[test]
fn indices_of_extremes() {
    let (mut compared, mut random) = (0, Random(7));
    for &dtype in DType::ALL.iter().filter(|d| !d.is_complex()) {
        for shape in [&[3, 4, 5][..], &[70, 3], &[1], &[], &[3, 200], &[129]] {
            for view in views(shape) {
                // A small number of distinct values makes ties; NaN is sometimes among them.
                let mut distinct: Vec<Number> = special(dtype).into_iter().filter(|n| !n.is_nan()).collect();
                while distinct.len() > 3 {
                    distinct.swap_remove(random.below(distinct.len()));
                }
                let mut numbers: Vec<Number> = (0..997).map(|_| *random.pick(&distinct)).collect();
                if random.below(3) == 0 {
                    (0..20).for_each(|_| numbers[random.below(997)] = Number::Real(f64::NAN));
                }
                let source = Source::new(dtype, view, &numbers);
                for op in [ReduceOp::ReduceMax, ReduceOp::ReduceMin] {
                    for tie_break in [TieBreak::Low, TieBreak::High] {
                        for axis in (0..shape.len()).map(Some).chain([None]) {
                            compared +=
                                run_index(op, tie_break, &source, axis, *random.pick(&[S32, S64, U32, U16]));
                        }
                    }
                }
            }
        }
    }
    // The tensor is large enough for several threads.
    let source = Source::random(F32, contiguous(&[900, 1000]), &mut random);
    compared += run_index(ReduceOp::ReduceMax, TieBreak::High, &source, Some(0), S32);
    compared += run_index(ReduceOp::ReduceMin, TieBreak::Low, &source, Some(1), U64);
    // The row is longer than a block, with equal extremes far from each other.
    for dtype in [U8, S32, BF16, F32, F64] {
        let numbers: Vec<Number> = [1, 3, 2, 3, 1, 0].map(Number::Integer).to_vec();
        let mut numbers: Vec<Number> = numbers.into_iter().cycle().take(10_000).collect();
        if !dtype.is_integer() {
            numbers = numbers.into_iter().map(|n| Number::Real(n.re())).collect();
        }
        for nan in [false, true] {
            if nan && !dtype.is_integer() {
                [4_000, 7_000].into_iter().for_each(|i| numbers[i] = Number::Real(f64::NAN));
            }
            let source = Source::new(dtype, contiguous(&[10_000]), &numbers);
            for op in [ReduceOp::ReduceMax, ReduceOp::ReduceMin] {
                for tie_break in [TieBreak::Low, TieBreak::High] {
                    compared += run_index(op, tie_break, &source, None, S64);
                }
            }
        }
    }
    // Several blocks with extremes and NaN, and adjacent columns.
    for (dtype, nan) in [(U8, false), (S64, false), (F16, true), (F32, false), (F32, true), (F64, true)] {
        for (shape, axis) in [
            (&[200_000][..], None),
            (&[3, 70_001], Some(1)),
            (&[70_001, 3], Some(0)),
            (&[9_000, 17], Some(0)),
            (&[2, 600, 256], Some(1)),
        ] {
            let size: usize = shape.iter().product();
            let mut numbers: Vec<Number> = (0..size).map(|i| Number::Integer((i % 5 % 4) as i128)).collect();
            if !dtype.is_integer() {
                numbers = numbers.into_iter().map(|n| Number::Real(n.re())).collect();
            }
            if nan {
                (0..20).for_each(|_| numbers[random.below(size)] = Number::Real(f64::NAN));
            }
            let source = Source::new(dtype, contiguous(shape), &numbers);
            for op in [ReduceOp::ReduceMax, ReduceOp::ReduceMin] {
                for tie_break in [TieBreak::Low, TieBreak::High] {
                    compared += run_index(op, tie_break, &source, axis, S64);
                }
            }
        }
    }
    // An empty axis has no extreme.
    for (shape, axis) in [([0, 70_001], 1), ([70_001, 0], 0)] {
        let source = Source::new(F32, contiguous(&shape), &[Number::Real(1.0)]);
        assert_eq!(run_index(ReduceOp::ReduceMax, TieBreak::Low, &source, Some(axis), S64), 0);
    }
    println!("argmax and argmin: {compared} results compared");
}

/// Rows of lengths around the vector lengths, with equal extremes, zeros of both signs and, in one
/// row, NaN.
#[test]
fn indices_with_every_instruction_set() {
    let (mut compared, mut random) = (0, Random(11));
    for level in [Level::Baseline, Level::V3, Level::V4] {
        simd::limit(level);
        for dtype in [F32, F64] {
            for length in 1..=150 {
                let distinct: Vec<Number> = [1.0, 2.0, 0.0, -0.0, -1.0].map(Number::Real).to_vec();
                let ends = [distinct[1], distinct[4], Number::Real(f64::INFINITY)];
                let mut numbers: Vec<Number> =
                    (0..5 * length).map(|_| *random.pick(&distinct[2..4])).collect();
                // Every row except the first has one or two extremes, and the last one has NaN.
                for row in 1..5 {
                    for _ in 0..row / 2 + 1 {
                        numbers[row * length + random.below(length)] = *random.pick(&ends);
                    }
                }
                numbers[4 * length + random.below(length)] = Number::Real(f64::NAN);
                let source = Source::new(dtype, contiguous(&[5, length]), &numbers);
                for op in [ReduceOp::ReduceMax, ReduceOp::ReduceMin] {
                    for tie_break in [TieBreak::Low, TieBreak::High] {
                        compared += run_index(op, tie_break, &source, Some(1), S64);
                    }
                }
            }
        }
    }
    println!("argmax and argmin, instruction sets: {compared} results compared");
}

#[test]
fn refuses_invalid_arguments() {
    let source = Source::new(F32, contiguous(&[2, 3]), &[Number::Real(1.0)]);
    let complex = Source::new(C64, contiguous(&[2, 3]), &[Number::Real(1.0)]);
    let (buffer, complex) = (source.buffer(), complex.buffer());
    let message = |result: Result<Vec<u128>, Error>| result.expect_err("refused").to_string();
    let got = output(F32, &[2], |out| reduce(ReduceOp::Sum, out, &buffer, &[2]));
    assert_eq!(message(got), "sum: axis 2 is out of range for rank 2");
    let got = output(F32, &[3], |out| reduce(ReduceOp::Product, out, &buffer, &[1]));
    assert_eq!(message(got), "product: shapes {2, 3} and {3} differ in the axes that are kept");
    let got = output(C64, &[3], |out| reduce(ReduceOp::ReduceMax, out, &complex, &[0]));
    assert_eq!(message(got), "reduce_max is not defined for c64");
    let got = output(F32, &[3], |out| reduce(ReduceOp::Sum, out, &complex, &[0]));
    assert_eq!(message(got), "sum is not defined for c64");
    let index = |dtype, shape: &[usize], tensor, axis| {
        output(dtype, shape, |out| arg_reduce(ReduceOp::ReduceMax, out, tensor, axis, TieBreak::Low))
    };
    assert_eq!(message(index(S32, &[2], &buffer, Some(5))), "argmax: axis 5 is out of range for rank 2");
    assert_eq!(message(index(S32, &[3], &complex, Some(0))), "argmax is not defined for c64");
    let empty = Source::new(F32, contiguous(&[2, 0]), &[]);
    assert_eq!(message(index(S32, &[2], &empty.buffer(), Some(1))), "argmax: an empty axis has no extreme");
}
