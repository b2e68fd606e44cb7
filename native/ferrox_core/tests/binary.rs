//! Binary operations: every operation on every pair of types and every combination of views,
//! compared with an oracle that computes element by element.

mod common;

use common::number::{Number, bounds, cast, value};
use common::{
    Bound, Random, Source, all_or_some_values, all_values, check, contiguous, exact, indices, output,
    result_type, special, values, views,
};
use ferrox_core::DType::{self, *};
use ferrox_core::ops::binary::{BinaryOp, binary};
use ferrox_core::{Error, Fault};
use num_complex::Complex;

/// Returns whether Nx defines the operation for these types.
fn defined(op: BinaryOp, left: DType, right: DType) -> bool {
    use BinaryOp::*;
    match op {
        Quotient | BitwiseAnd | BitwiseOr | BitwiseXor | LeftShift | RightShift => {
            left.is_integer() && right.is_integer()
        }
        Remainder | Atan2 | Min | Max | Greater | Less | GreaterEqual | LessEqual => {
            !left.is_complex() && !right.is_complex()
        }
        _ => true,
    }
}

/// Returns the fault of an integer operation for a right operand.
fn fault(op: BinaryOp, out: DType, right: Number) -> Option<Fault> {
    use BinaryOp::*;
    let Number::Integer(right) = right else { return None };
    match op {
        _ if !out.is_integer() => None,
        Quotient | Remainder if right == 0 => Some(Fault::DivisionByZero),
        Pow if right < 0 => Some(Fault::NegativeExponent),
        LeftShift | RightShift if right < 0 => Some(Fault::NegativeShift),
        _ => None,
    }
}

/// The result before it is rounded or truncated to its type.
fn expected(op: BinaryOp, left: Number, right: Number, out: DType) -> Number {
    use BinaryOp::*;
    let truth = |holds: bool| Number::Integer(i128::from(holds));
    let order = compare(left, right);
    match op {
        Equal => truth(equal(left, right)),
        NotEqual => truth(!equal(left, right)),
        Greater => truth(order == Some(std::cmp::Ordering::Greater)),
        Less => truth(order == Some(std::cmp::Ordering::Less)),
        GreaterEqual => truth(order.is_some_and(|o| o.is_ge())),
        LessEqual => truth(order.is_some_and(|o| o.is_le())),
        LogicalAnd => truth(!left.is_zero() && !right.is_zero()),
        LogicalOr => truth(!left.is_zero() || !right.is_zero()),
        LogicalXor => truth(left.is_zero() != right.is_zero()),
        _ if out.is_integer() => Number::Integer(integer(op, left.integer(), right.integer())),
        _ if out.is_complex() => complex(op, [left.re(), left.im()], [right.re(), right.im()]),
        _ if out.precision() <= F32.precision() => rounded_once(op, left, right),
        _ => Number::Real(real(op, left.re(), right.re())),
    }
}

/// Returns a number that rounds to the same bits as the exact result.
fn rounded_once(op: BinaryOp, left: Number, right: Number) -> Number {
    use BinaryOp::*;
    let exact = match op {
        Add => exact::add(left, right),
        Subtract => exact::add(left, right.negated()),
        Multiply => exact::multiply(left, right),
        Divide => exact::divide(left, right),
        Remainder if right.re().is_infinite() && left.re().is_finite() => return left,
        Remainder => exact::remainder(left, right),
        Min | Max if left.is_nan() || right.is_nan() => None,
        Min => return if compare(right, left) == Some(std::cmp::Ordering::Less) { right } else { left },
        Max => return if compare(right, left) == Some(std::cmp::Ordering::Greater) { right } else { left },
        _ => None,
    };
    // Results of infinities are the plain ones. So are zeros, for their sign, except zeros of
    // remainders.
    let exact = exact.filter(|&x| x != 0.0 || op == Remainder);
    Number::Real(exact.unwrap_or_else(|| real(op, left.re(), right.re())))
}

fn integer(op: BinaryOp, left: i128, right: i128) -> i128 {
    use BinaryOp::*;
    match op {
        Add => left + right,
        Subtract => left - right,
        Multiply => left.wrapping_mul(right),
        Pow => (0..128).rev().fold(1i128, |power, bit| {
            let square = power.wrapping_mul(power);
            if right >> bit & 1 == 1 { square.wrapping_mul(left) } else { square }
        }),
        Remainder => left % right,
        Quotient => left / right,
        Min => left.min(right),
        Max => left.max(right),
        BitwiseAnd => left & right,
        BitwiseOr => left | right,
        BitwiseXor => left ^ right,
        LeftShift if right >= 64 => 0,
        LeftShift => left << right,
        RightShift => left >> right.min(127),
        other => panic!("{other:?} of integers is no integer"),
    }
}

fn real(op: BinaryOp, left: f64, right: f64) -> f64 {
    use BinaryOp::*;
    match op {
        Add => left + right,
        Subtract => left - right,
        Multiply => left * right,
        Divide => left / right,
        Pow => left.powf(right),
        Remainder => left % right,
        Atan2 => left.atan2(right),
        Min | Max if left.is_nan() || right.is_nan() => f64::NAN,
        // Of two equal numbers the left one, also if these are zeros of different signs.
        Min => {
            if right < left {
                right
            } else {
                left
            }
        }
        Max => {
            if right > left {
                right
            } else {
                left
            }
        }
        other => panic!("{other:?} of floats is no float"),
    }
}

fn complex(op: BinaryOp, [a, b]: [f64; 2], [c, d]: [f64; 2]) -> Number {
    use BinaryOp::*;
    match op {
        Add => Number::Complex(a + c, b + d),
        Subtract => Number::Complex(a - c, b - d),
        Multiply => Number::Complex(a * c - b * d, a * d + b * c),
        // Smith's algorithm, which the crate doesn't use.
        Divide if c.abs() >= d.abs() => {
            let (ratio, scale) = (d / c, c + d * (d / c));
            Number::Complex((a + b * ratio) / scale, (b - a * ratio) / scale)
        }
        Divide => {
            let (ratio, scale) = (c / d, c * (c / d) + d);
            Number::Complex((a * ratio + b) / scale, (b * ratio - a) / scale)
        }
        // A part that is zero stays zero, however large the other part is.
        Pow if d == 0.0 && c.fract() == 0.0 && c.abs() <= 64.0 => {
            let power = Complex::new(a, b).powi(c as i32);
            Number::Complex(power.re, power.im)
        }
        Pow => {
            let (log, angle) = (a.hypot(b).ln(), b.atan2(a));
            let (size, turn) = ((c * log - d * angle).exp(), d * log + c * angle);
            Number::Complex(size * turn.cos(), size * turn.sin())
        }
        other => panic!("{other:?} of complex numbers is not complex"),
    }
}

/// Compares complex numbers if one of the operands is complex, otherwise real values.
fn equal(left: Number, right: Number) -> bool {
    match (left, right) {
        (Number::Complex(..), _) | (_, Number::Complex(..)) => {
            left.re() == right.re() && left.im() == right.im()
        }
        _ => compare(left, right) == Some(std::cmp::Ordering::Equal),
    }
}

/// Compares the values, without rounding integers to floats.
fn compare(left: Number, right: Number) -> Option<std::cmp::Ordering> {
    match (left, right) {
        (Number::Integer(l), Number::Integer(r)) => Some(l.cmp(&r)),
        (Number::Integer(_), Number::Real(_)) => compare(right, left).map(std::cmp::Ordering::reverse),
        (Number::Real(l), Number::Integer(_)) if l.is_nan() || l.abs() > 2f64.powi(100) => {
            l.partial_cmp(&0.0)
        }
        (Number::Real(l), Number::Integer(r)) => {
            // If the integer parts are equal, the fraction decides.
            Some((l.floor() as i128).cmp(&r).then(l.partial_cmp(&l.floor())?))
        }
        _ => left.re().partial_cmp(&right.re()),
    }
}

fn bound(op: BinaryOp, out: DType) -> Bound {
    match op {
        // Both the crate and the oracle compute in f64, but in different ways.
        BinaryOp::Pow | BinaryOp::Atan2 if out.is_float() => Bound::Ulps(1),
        BinaryOp::Divide if out == C128 => Bound::Relative(1e-14),
        BinaryOp::Divide if out == C64 => Bound::Relative(2e-7),
        BinaryOp::Pow if out == C128 => Bound::Relative(1e-12),
        BinaryOp::Pow if out == C64 => Bound::Relative(2e-7),
        _ => Bound::Bits,
    }
}

/// Returns whether the oracle's formulas of complex division and powers are valid. They aren't for
/// zeros and infinities, and where an intermediate result overflows.
fn regular(op: BinaryOp, left: Number, right: Number, out: DType) -> bool {
    if !out.is_complex() || !matches!(op, BinaryOp::Divide | BinaryOp::Pow) {
        return true;
    }
    // They aren't valid either where one part overflows and the other part is a rounding error
    // beside it.
    let growth = right.re() * left.re().hypot(left.im()).ln();
    if op == BinaryOp::Pow && out == C64 && growth.abs() + right.im().abs() * std::f64::consts::PI > 80.0 {
        return false;
    }
    let limit = if op == BinaryOp::Pow { 1e2 } else { 1e30 };
    [left, right].iter().all(|n| {
        let magnitude = n.re().hypot(n.im());
        (1.0 / limit..=limit).contains(&magnitude)
    })
}

/// Runs the operation and compares the result. Returns the number of elements.
fn run(op: BinaryOp, left: &Source, right: &Source, shape: &[usize]) -> usize {
    let dtype = result_type(op, left.dtype, right.dtype);
    let (l, r) = (left.buffer(), right.buffer());
    let (l, r) = (left.see(&l), right.see(&r));
    let what = || format!("{} of {left} and {right}", op.name());
    let got =
        output(dtype, shape, |out| binary(op, out, &l, &r)).unwrap_or_else(|e| panic!("{}: {e}", what()));
    let (l, r) = (left.broadcast_to(shape), right.broadcast_to(shape));
    let what_at = |position: usize| (l[position], r[position]);
    let expected = |position: usize| {
        let (l, r) = what_at(position);
        if regular(op, l, r, dtype) { cast(expected(op, l, r, dtype), dtype) } else { got[position] }
    };
    check(what, dtype, shape, Ok(got.clone()), expected, bound(op, dtype))
}

/// Returns the right operands that are not faults.
fn sound(op: BinaryOp, left: DType, right: DType, numbers: Vec<Number>) -> Vec<Number> {
    let out = result_type(op, left, right);
    numbers.into_iter().filter(|&n| fault(op, out, n).is_none()).collect()
}

#[test]
fn every_operation_on_every_pair_of_types() {
    let mut compared = 0;
    for &op in BinaryOp::ALL {
        for &left in DType::ALL {
            for &right in DType::ALL {
                if defined(op, left, right) {
                    compared += pairs(op, left, right);
                } else if op == BinaryOp::Atan2 {
                    angles(left, right);
                } else {
                    refuses(op, left, right);
                }
            }
        }
    }
    println!("binary, pairs of types: {compared} elements compared");
    assert!(compared > 5_000_000, "{compared}");
}

/// Tests all pairs of special and random values: broadcast with each other, then with a scalar on
/// either side. A scalar may take another path if its value fits the type of the result.
fn pairs(op: BinaryOp, left: DType, right: DType) -> usize {
    let mut random = Random(op as u64 * 400 + left as u64 * 20 + right as u64);
    let mut mixed = |dtype| {
        let mut numbers = special(dtype);
        while numbers.len() > 20 {
            numbers.swap_remove(random.below(numbers.len()));
        }
        numbers.extend(values(dtype, 12, &mut random));
        numbers
    };
    let (lefts, rights) = (mixed(left), sound(op, left, right, mixed(right)));
    let (rows, columns) = (lefts.len(), rights.len());
    let column = Source::new(left, contiguous(&[rows, 1]), &lefts);
    let row = Source::new(right, contiguous(&[columns]), &rights);
    let mut compared = run(op, &column, &row, &[rows, columns]);
    for number in &rights {
        let scalar = Source::new(right, contiguous(&[]), &[*number]);
        compared += run(op, &column, &scalar, &[rows, 1]);
    }
    for number in lefts.iter().step_by(2) {
        let scalar = Source::new(left, contiguous(&[1, 1]), &[*number]);
        compared += run(op, &scalar, &row, &[1, columns]);
    }
    compared
}

/// The angle of complex numbers without imaginary parts is that of their real parts.
fn angles(left: DType, right: DType) {
    let out = result_type(BinaryOp::Atan2, left, right);
    let numbers = |dtype, re: f64, im: f64| {
        let number =
            if DType::is_complex(dtype) { Number::Complex(re, im) } else { Number::Integer(re as i128) };
        Source::new(dtype, contiguous(&[]), &[number])
    };
    let angle = |left: &Source, right: &Source| {
        let (l, r) = (left.buffer(), right.buffer());
        output(out, &[], |out| binary(BinaryOp::Atan2, out, &left.see(&l), &right.see(&r)))
    };
    let got = angle(&numbers(left, 1.0, 0.0), &numbers(right, 1.0, 0.0));
    assert_eq!(
        got,
        Ok(vec![cast(Number::Complex(std::f64::consts::FRAC_PI_4, 0.0), out)]),
        "{left}, {right}"
    );
    let fault = Fault::ImaginaryAngle;
    let error = Err(Error::Element { op: "atan2", dtypes: vec![left, right], fault });
    assert_eq!(angle(&numbers(left, 1.0, 1.0), &numbers(right, 1.0, 1.0)), error);
}

fn refuses(op: BinaryOp, left: DType, right: DType) {
    let (l, r) = (
        Source::new(left, contiguous(&[2]), &[Number::Integer(1)]),
        Source::new(right, contiguous(&[]), &[Number::Integer(1)]),
    );
    let (l_buffer, r_buffer) = (l.buffer(), r.buffer());
    let result = output(result_type(op, left, right), &[2], |out| binary(op, out, &l_buffer, &r_buffer));
    let error = Error::UnsupportedType { op: op.name(), dtypes: vec![left, right] };
    assert_eq!(result, Err(error.clone()), "{} of {left} and {right}", op.name());
    assert_eq!(error.to_string(), format!("{} is not defined for {left} and {right}", op.name()));
}

/// Tests integers of the full width of their type with floats, and with integers of any magnitude.
/// Many results are midpoints of two values of the result type, or close to one.
#[test]
fn integers_beside_floats_round_once() {
    use BinaryOp::*;
    let mut random = Random(64);
    let mut compared = 0;
    for integer in [S32, U32, S64, U64] {
        for float in [F32, F16, BF16] {
            let (low, high) = bounds(integer);
            let clamp = |i: i128| Number::Integer(i.clamp(low, high));
            let mut integers: Vec<Number> = vec![];
            let mut floats: Vec<Number> = vec![];
            for _ in 0..150 {
                // 25 bits at any position, the last of which is set, and that number plus or minus
                // one.
                let halfway = i128::from(random.next() >> 40 | 1 << 24 | 1);
                let place = random.below(integer.bits() - 24);
                let sign = if random.below(2) == 0 { 1 } else { -1 };
                let near = random.below(3) as i128 - 1;
                integers.push(clamp(sign * ((halfway << place) + near)));
                integers.push(clamp(i128::from(random.next().cast_signed() >> random.below(63))));
                let small = 2f64.powi(random.below(40) as i32 - 20);
                let x = (random.below(1 << 24) as f64 - 2f64.powi(23)) * small;
                floats.push(value(cast(Number::Real(x), float), float));
                floats.push(value(cast(Number::Real(small), float), float));
            }
            for op in [Add, Subtract, Multiply, Divide, Remainder, Min, Max] {
                for (left, lefts, right, rights) in
                    [(integer, &integers, float, &floats), (float, &floats, integer, &integers)]
                {
                    let rights = sound(op, left, right, rights.clone());
                    let column = Source::new(left, contiguous(&[lefts.len(), 1]), lefts);
                    let row = Source::new(right, contiguous(&[rights.len()]), &rights);
                    compared += run(op, &column, &row, &[lefts.len(), rights.len()]);
                }
            }
        }
        for other in [S32, U32, S64, U64] {
            let numbers = |dtype: DType, random: &mut Random| -> Vec<Number> {
                let (low, high) = bounds(dtype);
                (0..250)
                    .map(|_| {
                        let i = i128::from(random.next()) >> random.below(64);
                        Number::Integer(if random.below(2) == 0 { i } else { -i }.clamp(low, high))
                    })
                    .collect()
            };
            let (lefts, rights) = (numbers(integer, &mut random), numbers(other, &mut random));
            let column = Source::new(integer, contiguous(&[lefts.len(), 1]), &lefts);
            let row = Source::new(other, contiguous(&[rights.len()]), &rights);
            compared += run(Divide, &column, &row, &[lefts.len(), rights.len()]);
        }
    }
    println!("binary, integers beside floats: {compared} elements compared");
    assert!(compared > 15_000_000, "{compared}");
}

#[test]
fn all_values_of_small_types() {
    let mut compared = 0;
    let types = [
        (U8, U8),
        (S8, S8),
        (U8, S8),
        (S4, U4),
        (F8, F8),
        (F8E4M3FN, F8E4M3FN),
        (F8E4M3FN, F8),
        (F8, F8E4M3FN),
        (S8, F8E4M3FN),
        (F8, U8),
    ];
    for (left, right) in types {
        let (lefts, rights) = (all_values(left), all_values(right));
        for &op in BinaryOp::ALL.iter().filter(|&&op| defined(op, left, right)) {
            let rights = sound(op, left, right, rights.clone());
            let column = Source::new(left, contiguous(&[lefts.len(), 1]), &lefts);
            let row = Source::new(right, contiguous(&[rights.len()]), &rights);
            compared += run(op, &column, &row, &[lefts.len(), rights.len()]);
        }
    }
    println!("binary, all values: {compared} elements compared");
}

#[test]
fn sixteen_bit_floats() {
    let mut compared = 0;
    let mut random = Random(16);
    for (left, right) in
        [(F16, F16), (BF16, BF16), (F16, BF16), (BF16, F16), (F8, BF16), (U8, F16), (BF16, U16)]
    {
        for &op in BinaryOp::ALL.iter().filter(|&&op| defined(op, left, right)) {
            let l = Source::random(left, contiguous(&[40_009]), &mut random);
            let r = Source::random(right, contiguous(&[40_009]), &mut random);
            compared += run(op, &l, &r, &[40_009]);
        }
    }
    println!("binary, 16-bit floats: {compared} elements compared");
}

/// Pairs of types that take different paths: no operand, one operand or both operands are
/// converted, the result is converted too, packed types, and 128-bit lanes.
const MIXES: &[(DType, DType)] = &[
    (F32, F32),
    (F64, F64),
    (S32, S32),
    (U8, U8),
    (U8, F32),
    (F32, S64),
    (S64, U64),
    (F16, BF16),
    (U4, S4),
    (U2, U2),
    (C64, F32),
    (C128, C64),
];

/// An operand whose right values are moderate, and not faults.
fn operand(
    op: BinaryOp,
    types: (DType, DType),
    is_right: bool,
    view: common::View,
    random: &mut Random,
) -> Source {
    let dtype = if is_right { types.1 } else { types.0 };
    let count = view.base.iter().product::<usize>().clamp(4, 5003);
    let numbers = values(dtype, count, random);
    let numbers = if is_right { sound(op, types.0, types.1, numbers) } else { numbers };
    let numbers = if numbers.is_empty() { vec![Number::Integer(1)] } else { numbers };
    Source::new(dtype, view, &numbers)
}

#[test]
fn every_view_with_every_view() {
    let (mut compared, mut random) = (0, Random(1));
    for &op in BinaryOp::ALL {
        for &types in MIXES.iter().filter(|&&(l, r)| defined(op, l, r)) {
            for shape in [&[][..], &[1], &[7], &[2, 3, 4], &[1, 5, 1], &[0, 3], &[2, 0, 4]] {
                for left in views(shape) {
                    for right in views(shape) {
                        let l = operand(op, types, false, left.clone(), &mut random);
                        let r = operand(op, types, true, right, &mut random);
                        compared += run(op, &l, &r, shape);
                    }
                }
            }
        }
    }
    println!("binary, views: {compared} elements compared");
}

/// Tiles have 1024 elements, rows of at least 128 elements are passed without a copy, and patterns
/// of at most 8192 elements are copied once. The shapes are on both sides of each limit.
#[test]
fn views_past_tiles_rows_and_periods() {
    let (mut compared, mut random) = (0, Random(2));
    for &op in BinaryOp::ALL {
        for shape in [
            &[3, 1030][..],
            &[1025],
            &[9, 131],
            &[127, 9],
            &[9, 1700],
            &[2, 9000],
            &[11, 13, 17],
            &[2, 129, 5],
        ] {
            for _ in 0..12 {
                let types = *random.pick(MIXES);
                if !defined(op, types.0, types.1) {
                    continue;
                }
                let (left, right) = (random.pick(&views(shape)).clone(), random.pick(&views(shape)).clone());
                let l = operand(op, types, false, left, &mut random);
                let r = operand(op, types, true, right, &mut random);
                compared += run(op, &l, &r, shape);
            }
        }
    }
    println!("binary, large views: {compared} elements compared");
}

/// Returns the shape with the size 1 for the axes in `mask`. Removes leading axes of size 1 if
/// `drop`.
fn flattened(shape: &[usize], mask: usize, drop: bool) -> Vec<usize> {
    let dims: Vec<usize> =
        shape.iter().enumerate().map(|(a, &d)| if mask >> a & 1 == 1 { 1 } else { d }).collect();
    let leading = if drop { dims.iter().take_while(|&&d| d == 1).count() } else { 0 };
    dims[leading..].to_vec()
}

/// Tests scalars, rows, columns, matrices and planes on either side.
#[test]
fn every_broadcast_with_every_broadcast() {
    let (mut compared, mut random) = (0, Random(3));
    for &op in BinaryOp::ALL {
        for (shape, keep) in [(&[3, 4, 5], 1), (&[2, 130, 9], 8), (&[3, 40, 150], 32)] {
            for left in 0..8 {
                for right in 0..8 {
                    let types = *random.pick(MIXES);
                    if !defined(op, types.0, types.1) || random.below(keep) != 0 {
                        continue;
                    }
                    let (l, r) =
                        (flattened(shape, left, random.below(2) == 0), flattened(shape, right, false));
                    let (l, r) = (random.pick(&views(&l)).clone(), random.pick(&views(&r)).clone());
                    let l = operand(op, types, false, l, &mut random);
                    let r = operand(op, types, true, r, &mut random);
                    // Axes that have the size 1 on both sides have it in the result.
                    let out = flattened(shape, left & right, false);
                    compared += run(op, &l, &r, &out);
                }
            }
        }
    }
    println!("binary, broadcasts: {compared} elements compared");
}

/// The operands are large enough for several threads.
#[test]
fn large_enough_to_be_split() {
    let (mut compared, mut random) = (0, Random(4));
    let shape = [3, 100_003];
    for (op, types, left, right) in [
        (BinaryOp::Add, (F32, F32), 0, 0),
        (BinaryOp::Subtract, (F32, F32), 0, 5),
        (BinaryOp::Multiply, (U8, F32), 6, 4),
        (BinaryOp::Quotient, (S64, U64), 9, 2),
        (BinaryOp::Pow, (S32, U8), 3, 7),
        (BinaryOp::LessEqual, (U64, F64), 0, 8),
        (BinaryOp::BitwiseXor, (U4, U4), 0, 1),
    ] {
        let l = operand(op, types, false, views(&shape)[left].clone(), &mut random);
        let r = operand(op, types, true, views(&shape)[right].clone(), &mut random);
        compared += run(op, &l, &r, &shape);
    }
    println!("binary, split: {compared} elements compared");
}

/// Integers that f32 represents exactly are computed in f32, tile by tile. Other integers need f64.
#[test]
fn integers_with_f32_tile_by_tile() {
    let (mut compared, mut random) = (0, Random(9));
    let size = 3 * 1024 + 5;
    let floats = values(F32, size, &mut random);
    let floats = Source::new(F32, contiguous(&[size]), &floats);
    for dtype in [U8, S32, U32, S64, U64] {
        let (least, most) = bounds(dtype);
        let edge = most.min(1 << 24);
        let small = |i: usize, random: &mut Random| match i % 7 {
            0 => edge - 1,
            1 => least.max(-edge),
            _ => random.below(2_000) as i128 % (edge - 1) + if least < 0 { -500 } else { 0 },
        };
        // The second tile has an integer that f32 doesn't represent, or that it does by chance.
        for large in [0, most, least, edge + 1, -edge - 1, most - (1 << 20)] {
            let large = large.clamp(least, most);
            let at = 1024 + random.below(1024);
            let integers: Vec<Number> = (0..size)
                .map(|i| Number::Integer(if i == at { large } else { small(i, &mut random) }))
                .collect();
            let integers = Source::new(dtype, contiguous(&[size]), &integers);
            let scalar = |dtype, number| Source::new(dtype, contiguous(&[]), &[number]);
            use BinaryOp::{Add, Divide, Max, Min, Multiply, Subtract};
            for op in [Add, Subtract, Multiply, Divide, Max, Min] {
                compared += run(op, &integers, &floats, &[size]);
                compared += run(op, &floats, &integers, &[size]);
                compared += run(op, &integers, &scalar(F32, Number::Real(0.1_f32.into())), &[size]);
                compared += run(op, &scalar(dtype, Number::Integer(large)), &floats, &[size]);
                compared += run(Divide, &integers, &scalar(S32, Number::Integer(3)), &[size]);
            }
        }
    }
    println!("binary, integers with f32: {compared} elements compared");
}

/// Quotients of integers that f32 represents have their own loop.
#[test]
fn quotients_of_short_integers() {
    const MOST: i128 = 1 << 24;
    let (mut compared, mut random) = (0, Random(5));
    for dtype in [S32, S64] {
        let mut numbers: Vec<i128> = (0..3000).map(|_| random.below(MOST as usize) as i128).collect();
        numbers.extend([0, 1, MOST - 1, MOST]);
        numbers.extend(numbers.clone().iter().map(|x| -x));
        for outside in [None, Some(MOST + 1), Some(-MOST - 1), Some(i128::from(i32::MIN))] {
            let left: Vec<_> = numbers.iter().copied().chain(outside).map(Number::Integer).collect();
            let mut right = left.clone();
            right.rotate_left(7);
            let shape = [left.len()];
            let [left, right] = [left, right].map(|numbers| Source::new(dtype, contiguous(&shape), &numbers));
            compared += run(BinaryOp::Divide, &left, &right, &shape);
            for number in [3, -MOST, MOST + 1] {
                let scalar = Source::new(dtype, contiguous(&[]), &[Number::Integer(number)]);
                compared += run(BinaryOp::Divide, &left, &scalar, &shape);
                compared += run(BinaryOp::Divide, &scalar, &right, &shape);
            }
        }
    }
    println!("binary, quotients: {compared} elements compared");
}

/// Compares powers of c64 with those of c128, which are computed element by element.
#[test]
fn powers_of_c64() {
    let (mut compared, mut random) = (0, Random(6));
    let mut numbers = |scale: f64, count: usize| -> Vec<Number> {
        let mut part = || scale * (2.0 * random.unit() - 1.0);
        (0..count).map(|_| Number::Complex(part(), part())).collect()
    };
    let mut bases = numbers(3.0, 700);
    let mut exponents = numbers(30.0, 700);
    for x in [0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 1e-44, 3e38, 1e9, f64::INFINITY, f64::NAN] {
        for y in [0.0, -0.0, 1.0, -3.0] {
            bases.extend([Number::Complex(x, y), Number::Complex(y, x)]);
            exponents.extend([Number::Complex(x, y), Number::Complex(y, -x)]);
        }
    }
    for turn in [0, 1, 5, 89] {
        exponents.rotate_left(turn);
        let shape = [bases.len()];
        let sides = [&bases, &exponents].map(|numbers| Source::new(C64, contiguous(&shape), numbers));
        let wide = sides.each_ref().map(|side| Source::new(C128, contiguous(&shape), &side.elements()));
        let [narrow, wide] = [(C64, &sides), (C128, &wide)].map(|(dtype, [left, right])| {
            let (left, right) = (left.buffer(), right.buffer());
            let got =
                output(dtype, &shape, |out| binary(BinaryOp::Pow, out, &left, &right)).expect("a power");
            got.into_iter().map(|bits| value(bits, dtype)).collect::<Vec<_>>()
        });
        for (i, (got, expected)) in narrow.into_iter().zip(wide).enumerate() {
            // A part may cancel, and c64 has a smaller range.
            let size = expected.re().hypot(expected.im());
            let near = |got: f64, expected: f64| {
                let most = f64::from(f32::MAX);
                let (got, expected) = (got.clamp(-most, most), f64::from(expected as f32).clamp(-most, most));
                got == expected || (got - expected).abs() <= 1.2e-7 * expected.abs() + 1e-44 + 1e-13 * size
            };
            let same = near(got.re(), expected.re()) && near(got.im(), expected.im());
            // Both are NaN where f64 overflows.
            let undefined = [got, expected].map(|z| z.re().is_nan() || z.im().is_nan()) == [true; 2];
            assert!(same || undefined, "{:?} to {:?}: {got:?}, {expected:?}", bases[i], exponents[i]);
            compared += 1;
        }
    }
    println!("binary, powers of c64: {compared} elements compared");
}

/// Compares powers of f32, up to the ends of its range, with rounded powers of f64.
#[test]
fn powers_of_f32() {
    let mut random = Random(7);
    let (mut bases, mut exponents) = (Vec::new(), Vec::new());
    for i in 0..20_000 {
        // Bases of any magnitude, near one, near sqrt(1/2) (where the terms of the logarithm
        // cancel), and integers.
        let base = match i % 4 {
            0 => 2f64.powf(127.0 * random.unit()),
            1 => 1.0 + random.unit() * 2f64.powi(-(1 + random.below(23) as i32)),
            2 => std::f64::consts::FRAC_1_SQRT_2 * (1.0 + 0.01 * random.unit()),
            _ => (1 + random.below(5000)) as f64,
        };
        let base = f64::from(base as f32);
        let exponent = 150.0 * random.unit() / base.log2();
        let exponent = if i % 8 < 4 { exponent } else { exponent.round() };
        bases.push(Number::Real(base));
        exponents.push(Number::Real(f64::from(exponent as f32)));
    }
    // The squares are midpoints of two f32 values, the roots are 2^-51 below a midpoint.
    for (base, exponent) in [(4097.0, 2.0), (4099.0, 2.0), (16_777_215.0, 0.5), (16_777_213.0, 0.5)] {
        bases.push(Number::Real(base));
        exponents.push(Number::Real(exponent));
    }
    let shape = [bases.len()];
    let [left, right] = [&bases, &exponents].map(|numbers| Source::new(F32, contiguous(&shape), numbers));
    let (l, r) = (left.buffer(), right.buffer());
    let got = output(F32, &shape, |out| binary(BinaryOp::Pow, out, &l, &r)).expect("powers");
    for ((base, exponent), bits) in bases.iter().zip(&exponents).zip(got) {
        let (base, exponent) = (base.re(), exponent.re());
        let (got, expected) = (value(bits, F32).re() as f32, base.powf(exponent) as f32);
        assert!(got == expected, "{base:e} to {exponent:e}: {got:e}, {expected:e}");
    }
}

/// Powers whose exponents are small multiples of 1/2 are correctly rounded, beside others and among themselves.
#[test]
fn powers_that_are_products() {
    let mut random = Random(9);
    let special = [0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45, 3e38, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let mut bases: Vec<f64> = special.iter().map(|&base| f64::from(base)).collect();
    bases.extend((0..990).map(|i| {
        let size =
            if i % 2 == 0 { 2_f64.powf(20.0 * random.unit()) } else { (1 + random.below(5000)) as f64 };
        f64::from((if i % 3 == 0 { -size } else { size }) as f32)
    }));
    let compute = |dtype, pairs: &[(f64, f64)]| {
        let shape = [pairs.len()];
        let [left, right]: [Vec<Number>; 2] = [
            pairs.iter().map(|pair| Number::Real(pair.0)).collect(),
            pairs.iter().map(|pair| Number::Real(pair.1)).collect(),
        ];
        let [left, right] = [&left, &right].map(|numbers| Source::new(dtype, contiguous(&shape), numbers));
        output(dtype, &shape, |out| binary(BinaryOp::Pow, out, &left.buffer(), &right.buffer()))
            .expect("supported")
    };
    let check = |dtype, pairs: &[(f64, f64)]| {
        for (&(base, exponent), bits) in pairs.iter().zip(compute(dtype, pairs)) {
            let (got, expected) = (value(bits, dtype).re(), base.powf(exponent));
            let expected = if dtype == F32 { f64::from(expected as f32) } else { expected };
            let same = got == expected && got.is_sign_negative() == expected.is_sign_negative();
            let near = dtype == F64 && (got - expected).abs() <= 2_f64.powi(-52) * expected.abs();
            let undefined = got.is_nan() && expected.is_nan();
            assert!(same || near || undefined, "{base:e} to {exponent}: {got:e}, {expected:e}");
        }
    };
    let mut mixed = Vec::new();
    for k in -34..=34 {
        let exponent = f64::from(k) / 2.0;
        let pairs: Vec<_> = bases.iter().map(|&base| (base, exponent)).collect();
        check(F32, &pairs);
        check(F64, &pairs);
        mixed.extend(pairs.iter().map(|&(base, _)| (base, exponent)));
        mixed.extend(pairs.iter().step_by(7).map(|&(base, _)| (base, exponent + 0.3)));
    }
    for i in (1..mixed.len()).rev() {
        mixed.swap(i, random.below(i + 1));
    }
    let alone = |dtype, pair| compute(dtype, &[pair])[0];
    for dtype in [F32, F64] {
        for (&pair, bits) in mixed.iter().zip(compute(dtype, &mixed)) {
            let both = [alone(dtype, pair), bits];
            let are_nan = both.map(|bits| value(bits, dtype).is_nan());
            assert!(both[0] == both[1] || are_nan == [true; 2], "{pair:?}");
        }
    }
    println!("binary, powers that are products: {} compared", mixed.len());
}

/// Powers and angles of a few f32, which are computed one by one, have the results of many.
#[test]
fn few_powers_and_angles_as_many() {
    let mut random = Random(8);
    let mut operand = || -> Vec<Number> {
        let numbers = (0..6_000).map(|i| match i % 3 {
            0 => random.unit() as f32,
            1 => (random.unit() * 100.0) as f32,
            _ => [0.0, -0.0, 1.0, -3.0, 2.0, f32::INFINITY, 0.5, 1e-45][random.below(8)],
        });
        numbers.map(|number| Number::Real(f64::from(number))).collect()
    };
    let operands = [operand(), operand()];
    let compute = |op, range: std::ops::Range<usize>| {
        let shape = [range.len()];
        let [left, right] = [0, 1].map(|i| Source::new(F32, contiguous(&shape), &operands[i][range.clone()]));
        output(F32, &shape, |out| binary(op, out, &left.buffer(), &right.buffer())).expect("supported")
    };
    for op in [BinaryOp::Pow, BinaryOp::Atan2] {
        let many = compute(op, 0..6_000);
        for start in (0..6_000).step_by(4) {
            for (k, few) in compute(op, start..start + 1 + start / 4 % 4).into_iter().enumerate() {
                let many = many[start + k];
                let is_nan = [few, many].map(|bits| value(bits, F32).is_nan());
                assert!(few == many || is_nan == [true; 2], "{}, {}", op.name(), start + k);
            }
        }
    }
}

#[test]
fn a_single_faulty_element_is_found_wherever_it_is() {
    let mut random = Random(5);
    for op in
        [BinaryOp::Quotient, BinaryOp::Remainder, BinaryOp::Pow, BinaryOp::LeftShift, BinaryOp::RightShift]
    {
        for &left in DType::ALL.iter().filter(|d| d.is_integer()) {
            for &right in DType::ALL.iter().filter(|d| d.is_integer()) {
                let zero = matches!(op, BinaryOp::Quotient | BinaryOp::Remainder);
                let bad = Number::Integer(if zero { 0 } else { bounds(right).0 });
                let Some(fault) = fault(op, result_type(op, left, right), bad) else { continue };
                let size = *random.pick(&[1, 5, 1500, 3000]);
                let mut numbers = vec![Number::Integer(1); size];
                numbers[random.below(size)] = bad;
                let l = Source::new(left, contiguous(&[size]), &[Number::Integer(1)]);
                // Contiguous and reversed views read the whole buffer. A view with an offset may not
                // read the element at a random position, so all elements of its buffer are faulty.
                let view = random.pick(&views(&[size])[..3]).clone();
                let numbers = if view.name == "offset" { vec![bad] } else { numbers };
                let r = Source::new(right, view, &numbers);
                let (l_buffer, r_buffer) = (l.buffer(), r.buffer());
                let r_tensor = r.see(&r_buffer);
                let result = output(result_type(op, left, right), &[size], |out| {
                    binary(op, out, &l_buffer, &r_tensor)
                });
                let error = Error::Element { op: op.name(), dtypes: vec![left, right], fault };
                assert_eq!(result, Err(error), "{} of {l} and {r}", op.name());
            }
        }
    }
    let message = |fault| Error::Element { op: "pow", dtypes: vec![S32, S8], fault }.to_string();
    assert_eq!(
        message(Fault::NegativeExponent),
        "pow on s32 and s8: an integer can't be raised to a negative exponent; cast the base to a float"
    );
    assert_eq!(message(Fault::DivisionByZero), "pow on s32 and s8: integer division by zero");
    assert_eq!(message(Fault::NegativeShift), "pow on s32 and s8: can't shift by a negative number of bits");
}

/// A faulty element that isn't in any pair causes no error.
#[test]
fn nothing_is_wrong_with_elements_that_are_not_used() {
    let l = Source::new(S32, contiguous(&[0, 3]), &[]);
    let zeros = Source::new(S32, contiguous(&[3]), &[Number::Integer(0)]);
    let (l_buffer, zeros_buffer) = (l.buffer(), zeros.buffer());
    assert_eq!(
        output(S32, &[0, 3], |out| binary(BinaryOp::Quotient, out, &l_buffer, &zeros_buffer)),
        Ok(vec![])
    );
    // The strides of the view skip the zero.
    let mixed = Source::new(S32, views(&[3])[3].clone(), &[Number::Integer(0), Number::Integer(2)]);
    let buffer = mixed.buffer();
    let ones = Source::new(S32, contiguous(&[3]), &[Number::Integer(7)]);
    let ones = ones.buffer();
    let result = output(S32, &[3], |out| binary(BinaryOp::Quotient, out, &ones, &mixed.see(&buffer)));
    assert_eq!(result, Ok(vec![3; 3]), "{mixed}");
}

#[test]
fn shapes_that_do_not_broadcast() {
    for (left, right, out) in [
        (&[2, 3][..], &[2, 4][..], &[2, 4][..]),
        (&[3], &[2, 2], &[2, 2]),
        (&[0], &[2], &[2]),
        (&[2, 1, 1], &[3], &[1, 3]),
    ] {
        let (l, r) = (
            Source::new(F32, contiguous(left), &[Number::Real(1.0)]),
            Source::new(U8, contiguous(right), &[Number::Integer(1)]),
        );
        let (l, r) = (l.buffer(), r.buffer());
        for &op in &[BinaryOp::Add, BinaryOp::Equal, BinaryOp::LogicalAnd] {
            let dtype = result_type(op, F32, U8);
            let error = output(dtype, out, |out| binary(op, out, &l, &r)).expect_err("shapes don't fit");
            let shape = |shape: &[usize]| {
                format!("{{{}}}", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
            };
            assert_eq!(
                error.to_string(),
                format!(
                    "{}: shapes {} and {} don't broadcast together: each axis, counted from the last, must be equal or one",
                    op.name(),
                    shape(left),
                    shape(right)
                )
            );
        }
    }
}

/// Known results, for errors that the oracle could have too.
#[test]
fn known_answers() {
    let cases: &[(BinaryOp, DType, i128, DType, i128, i128)] = &[
        (BinaryOp::Add, U8, 200, U8, 100, 44),
        (BinaryOp::Multiply, S64, i64::MAX as i128, S64, 3, i64::MAX as i128 - 2),
        (BinaryOp::Pow, S32, -2, U8, 31, i32::MIN as i128),
        (BinaryOp::Pow, U64, 3, U64, u64::MAX as i128, 0xaaaa_aaaa_aaaa_aaab),
        (BinaryOp::Quotient, S8, -7, S8, 2, -3),
        (BinaryOp::Quotient, S8, -128, S8, -1, -128),
        (BinaryOp::Remainder, S8, -7, S8, 2, -1),
        (BinaryOp::LeftShift, U8, 1, U8, 8, 0),
        (BinaryOp::LeftShift, S64, 1, U64, u64::MAX as i128, 0),
        (BinaryOp::RightShift, S8, -1, S8, 100, -1),
        (BinaryOp::RightShift, S16, i16::MIN as i128, U8, 15, -1),
        (BinaryOp::RightShift, U64, u64::MAX as i128, U64, 64, 0),
        (BinaryOp::Less, S64, -1, U64, u64::MAX as i128, 1),
        (BinaryOp::Equal, S64, -1, U64, u64::MAX as i128, 0),
        (BinaryOp::Max, U2, 3, S2, -2, 3),
    ];
    for &(op, left, l, right, r, expected) in cases {
        let (l, r) = (
            Source::new(left, contiguous(&[2]), &[Number::Integer(l)]),
            Source::new(right, contiguous(&[2]), &[Number::Integer(r)]),
        );
        let dtype = result_type(op, left, right);
        let got = output(dtype, &[2], |out| binary(op, out, &l.buffer(), &r.buffer()));
        assert_eq!(
            got,
            Ok(vec![cast(Number::Integer(expected), dtype); 2]),
            "{} {l:?} {r:?}",
            op.name(),
            l = l.at(&[0]),
            r = r.at(&[0])
        );
    }
    assert_eq!(indices(&[2, 2]).collect::<Vec<_>>(), [[0, 0], [0, 1], [1, 0], [1, 1]]);
}

/// Squares by a number are products, and have the bits of powers element by element.
#[test]
fn squares_by_a_number_are_powers() {
    let mut random = Random(29);
    for dtype in [U8, S32, S64, F8, F8E4M3FN, BF16, F16, F32] {
        let numbers = all_or_some_values(dtype, 1 << 18, &mut random);
        let count = numbers.len();
        let bases = Source::new(dtype, contiguous(&[count]), &numbers);
        for exponent in [dtype, S32] {
            let two = [Number::Integer(2)];
            let power = |shape: &[usize]| {
                let exponents = Source::new(exponent, contiguous(shape), &two);
                output(dtype, &[count], |out| {
                    binary(
                        BinaryOp::Pow,
                        out,
                        &bases.see(&bases.buffer()),
                        &exponents.see(&exponents.buffer()),
                    )
                })
            };
            let (by_number, by_elements) = (power(&[]).expect("powers"), power(&[count]).expect("powers"));
            for (i, (a, b)) in by_number.iter().zip(&by_elements).enumerate() {
                assert_eq!(a, b, "{dtype} {:?} squared", numbers[i]);
            }
        }
    }
}
