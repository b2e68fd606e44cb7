//! `as_type` between all types.

mod common;

use common::number::{Number, cast, value};
use common::{
    Bound, Random, Source, all_or_some_values, all_values, check, contiguous, output, values, views,
};
use ferrox_core::DType::{self, *};
use ferrox_core::ops::cast::as_type;

fn run(source: &Source, to: DType) -> usize {
    let buffer = source.buffer();
    let what = || format!("as_type of {source}");
    let shape = source.shape();
    let got = output(to, shape, |out| as_type(out, &source.see(&buffer)));
    let elements = source.elements();
    check(what, to, shape, got, |position| cast(elements[position], to), Bound::Bits)
}

#[test]
fn every_type_to_every_type() {
    let (mut compared, mut random) = (0, Random(1));
    for &from in DType::ALL {
        let numbers = all_or_some_values(from, 4000, &mut random);
        for &to in DType::ALL {
            compared += run(&Source::new(from, contiguous(&[numbers.len()]), &numbers), to);
        }
    }
    println!("as_type, pairs of types: {compared} elements compared");
}

/// Tests values next to ties in every wider type: the bits that decide how they round are far below
/// the last bit that is kept.
#[test]
fn ties_and_their_neighbours_round_once() {
    let mut compared = 0;
    for to in [F8, F8E4M3FN, F16, BF16, F32, C64] {
        let ties = if to.bits() <= 16 { all_values(to) } else { values(to, 3000, &mut Random(2)) };
        let neighbours = |x: f64| [x, x.next_up(), x.next_down(), x * (1.0 + 1e-9), x * (1.0 - 1e-9)];
        let mut floats = Vec::new();
        for tie in ties.iter().map(|n| n.re()).filter(|x| x.is_finite()) {
            // Half of the distance to the next value of a float with this precision.
            for bits in [2, 3, 4, 8, 11, 24] {
                floats.extend(neighbours(tie * (1.0 + 2f64.powi(-bits))).map(Number::Real));
                floats.extend(neighbours(tie + common::number::landmarks(to)[2] / 2.0).map(Number::Real));
            }
        }
        compared += run(&Source::new(F64, contiguous(&[floats.len()]), &floats), to);
        compared += run(&Source::new(F32, contiguous(&[floats.len()]), &floats), to);
        let mut integers = Vec::new();
        for high in 8..63 {
            for low in 0..high {
                for (odd, least) in [(0, -1), (0, 0), (0, 1), (1, -1), (1, 0), (1, 1)] {
                    let i = (1i128 << high) + (odd << (low + 1)) + (1 << low) + least;
                    integers.extend([Number::Integer(i), Number::Integer(-i)]);
                }
            }
        }
        compared += run(&Source::new(S64, contiguous(&[integers.len()]), &integers), to);
        compared += run(&Source::new(U64, contiguous(&[integers.len()]), &integers), to);
        for (from, range) in [(S32, -1 << 31..1 << 31), (U32, 0..1_i128 << 32)] {
            let fits = |n: &&Number| matches!(n, Number::Integer(i) if range.contains(i));
            let words: Vec<Number> = integers.iter().filter(fits).copied().collect();
            compared += run(&Source::new(from, contiguous(&[words.len()]), &words), to);
        }
    }
    println!("as_type, ties: {compared} elements compared");
}

#[test]
fn integers_at_the_edge_of_a_fraction() {
    for bits in [50, 51, 52, 53, 62] {
        let edge = 1_i128 << bits;
        // All values have the same magnitude, so that one loop converts all of them.
        for least in [-1, 0, 1] {
            let integers = [edge - 1, edge + least, -edge - least, 1 - edge, 0, -1];
            let integers = integers.map(Number::Integer).repeat(100);
            for to in [F8, F16, BF16, F32, F64, C64] {
                run(&Source::new(S64, contiguous(&[integers.len()]), &integers), to);
            }
        }
    }
}

#[test]
fn every_view() {
    let (mut compared, mut random) = (0, Random(3));
    let types = [U2, S4, U8, S64, F8E4M3FN, BF16, F32, F64, C64, C128];
    for shape in [&[][..], &[1], &[2, 3, 4], &[1, 5, 1], &[0, 3], &[3, 1030], &[9, 131]] {
        for view in views(shape) {
            for from in types {
                let to = *random.pick(&types);
                compared += run(&Source::random(from, view.clone(), &mut random), to);
            }
        }
    }
    // The tensor is large enough to be shared among threads.
    for view in views(&[3, 100_003]) {
        compared += run(&Source::random(F64, view, &mut random), U4);
    }
    println!("as_type, views: {compared} elements compared");
}

/// Tests floats that fit into 32 bits, which have a separate loop, next to floats that don't.
#[test]
fn floats_to_integers() {
    let (mut compared, mut random) = (0, Random(4));
    let edge = 2f64.powi(31);
    let edges = [edge.next_down(), edge - 1.0, edge - 128.0, 0.999_999_94, 1.5, 8_388_607.5, 4e-45, 0.0];
    for from in [F32, F64, BF16, F16] {
        let rounded = |x: f64| value(cast(Number::Real(x), from), from);
        let mut numbers: Vec<Number> = edges.iter().flat_map(|&x| [rounded(x), rounded(-x)]).collect();
        numbers.extend(values(from, 4000, &mut random));
        numbers.retain(|number| number.re().abs() < edge);
        let within = numbers.len();
        // Each of the last chunks has one float that doesn't fit.
        for outside in [edge, -edge, edge * 2.0, f64::NAN, f64::INFINITY] {
            numbers.extend_from_within(..100);
            numbers.push(rounded(outside));
        }
        for to in DType::ALL.iter().copied().filter(|to| to.is_integer()) {
            for numbers in [&numbers[..within], &numbers[..]] {
                compared += run(&Source::new(from, contiguous(&[numbers.len()]), numbers), to);
            }
        }
    }
    println!("as_type, floats to integers: {compared} elements compared");
}

/// Tests cases that a mistake in the oracle could hide.
#[test]
fn known_answers() {
    let inf = f64::INFINITY;
    let reals: &[(DType, f64, DType, i128)] = &[
        (F32, inf, S2, 1),
        (F64, -inf, S2, -2),
        (F32, inf, S4, 7),
        (F16, -inf, S4, -8),
        (F32, inf, U4, 15),
        (F32, -inf, U4, 0),
        (BF16, inf, S8, 127),
        (F32, inf, S64, i64::MAX as i128),
        (F64, inf, U64, u64::MAX as i128),
        (F64, f64::NAN, S32, 0),
        (F32, -1.9, S8, -1),
        (F32, 300.7, U8, 44),
        (F32, -1.0, U8, 255),
        (F64, 1e19, U64, 10_000_000_000_000_000_000),
        (F64, 1e300, S64, 0),
        (F32, 9.0, S4, -7),
    ];
    for &(from, x, to, expected) in reals {
        let source = Source::new(from, contiguous(&[]), &[Number::Real(x)]);
        let got = output(to, &[], |out| as_type(out, &source.buffer()));
        assert_eq!(got, Ok(vec![cast(Number::Integer(expected), to)]), "{x:?} of {from} to {to}");
    }
    let floats: &[(DType, Number, DType, f64)] = &[
        (F64, Number::Real(448.1), F8E4M3FN, 448.0),
        (F64, Number::Real(-inf), F8E4M3FN, -448.0),
        (F64, Number::Real(61440.0), F8, inf),
        (F64, Number::Real(65519.99), F16, 65504.0),
        (F64, Number::Real(65520.0), F16, inf),
        (S64, Number::Integer(65519), F16, 65504.0),
        (S64, Number::Integer(1 << 62 | 1 << 38), F32, 2f64.powi(62)),
        (S64, Number::Integer(1 << 62 | 1 << 38 | 1), F32, 2f64.powi(62) + 2f64.powi(39)),
        (U64, Number::Integer(1 << 63 | 1 << 55 | 1), BF16, 2f64.powi(63) + 2f64.powi(56)),
        (C128, Number::Complex(1.5, inf), F32, 1.5),
    ];
    for &(from, number, to, expected) in floats {
        let source = Source::new(from, contiguous(&[1]), &[number]);
        let got = output(to, &[1], |out| as_type(out, &source.buffer()));
        assert_eq!(got, Ok(vec![cast(Number::Real(expected), to)]), "{number:?} of {from} to {to}");
    }
}
