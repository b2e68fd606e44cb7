//! Determinants: those of two and three rows from all products, with twice the digits, and those of
//! more by elimination. The exponent is kept beside the number, so that none over- or underflows on
//! the way.

use super::scalar::{Precision, Scalar};
use super::scaled::{exponent, power};
use crate::ops::linalg::lu::lu;
use crate::ops::linalg::matrix::Matrix;

/// A number as the unevaluated sum of two, the second of which is a rounding of the first.
type Double = [f64; 2];

/// Elements between these need no scaling: neither do products of two of them over- or underflow.
const SAFE: std::ops::RangeInclusive<f64> = 1e-140..=1e140;

/// How often rows and columns are scaled in turn.
const SWEEPS: usize = 4;

/// What is farther below another exponent is nothing beside it.
const FAR: i64 = 1_000;

/// How many roundings for each row the determinant of Nx's steps may be off.
const ROUNDINGS: f64 = 2.0;

/// The determinant of a square matrix. Of more than three rows, Nx's steps in single precision give its
/// last digits, where they are good for them.
pub fn determinant<T: Scalar>(a: Matrix<T>, precision: Precision) -> T {
    if precision == Precision::Single && a.rows > 3 && a.is_finite() {
        let steps = precision.round(lu(a.clone(), precision).determinant().number());
        let limit = ROUNDINGS * f64::from(f32::EPSILON) * a.rows as f64;
        let accurate = in_double(a);
        return if (steps - accurate).abs() <= limit * accurate.abs() { steps } else { accurate };
    }
    in_double(a)
}

fn in_double<T: Scalar>(mut a: Matrix<T>) -> T {
    if !a.is_finite() {
        return lu(a, Precision::Double).determinant().number();
    }
    match a.rows {
        2 => of_products(&a, &[([0, 1, 2], false), ([1, 0, 2], true)]),
        3 => of_products(
            &a,
            &[
                ([0, 1, 2], false),
                ([1, 2, 0], false),
                ([2, 0, 1], false),
                ([2, 1, 0], true),
                ([1, 0, 2], true),
                ([0, 2, 1], true),
            ],
        ),
        _ => {
            let exponent = balance(&mut a);
            lu(a, Precision::Double).determinant().times_power(exponent).number()
        }
    }
}

/// Scales rows and columns by powers of two so that the elements are of about the same magnitude, where
/// some are so large or small that products would over- or underflow; the exponent that the determinant
/// must be multiplied with.
fn balance<T: Scalar>(a: &mut Matrix<T>) -> i64 {
    let n = a.rows;
    if a.data.iter().all(|value| *value == T::ZERO || SAFE.contains(&value.abs())) {
        return 0;
    }
    let sizes: Vec<Option<i64>> = a
        .data
        .iter()
        .map(|&value| if value == T::ZERO { None } else { Some(exponent(value.abs())) })
        .collect();
    let (mut rows, mut columns) = (vec![0_i64; n], vec![0_i64; n]);
    let mean = |sizes: &mut dyn Iterator<Item = i64>| {
        let (sum, count) = sizes.fold((0, 0), |(sum, count), size| (sum + size, count + 1));
        if count == 0 { 0 } else { sum / count }
    };
    for _ in 0..SWEEPS {
        for (i, row) in rows.iter_mut().enumerate() {
            *row = mean(&mut (0..n).filter_map(|j| sizes[i * n + j].map(|size| size - columns[j])));
        }
        for (j, column) in columns.iter_mut().enumerate() {
            *column = mean(&mut (0..n).filter_map(|i| sizes[i * n + j].map(|size| size - rows[i])));
        }
    }
    for (i, row) in rows.iter_mut().enumerate() {
        // The largest of each row becomes about one.
        *row = (0..n).filter_map(|j| sizes[i * n + j].map(|size| size - columns[j])).max().unwrap_or(0);
    }
    for (i, row) in a.data.chunks_exact_mut(n).enumerate() {
        for (value, column) in row.iter_mut().zip(&columns) {
            *value = power(*value, -(rows[i] + column));
        }
    }
    rows.iter().chain(&columns).sum()
}

/// The sum of the products of an element of each row, in these columns, some of them negative.
fn of_products<T: Scalar>(a: &Matrix<T>, products: &[([usize; 3], bool)]) -> T {
    let mut terms = [([[0.0; 2]; 2], i64::MIN); 6];
    for (term, &(columns, negative)) in terms.iter_mut().zip(products) {
        let elements = columns[..a.rows].iter().enumerate().map(|(i, &j)| a.at(i, j));
        if elements.clone().any(|value| value == T::ZERO) {
            continue;
        }
        let mut product = [[if negative { -1.0 } else { 1.0 }, 0.0], [0.0; 2]];
        let mut total = 0;
        for value in elements {
            let by = exponent(value.abs());
            let value = power(value, -by);
            product = multiply::<T>(product, value);
            total += by;
        }
        *term = (product, total);
    }
    let most = terms.iter().fold(i64::MIN, |most, term| most.max(term.1));
    if most == i64::MIN {
        return T::ZERO;
    }
    let mut sum = [[0.0; 2]; 2];
    for (term, size) in terms {
        if size != i64::MIN && most - size < FAR {
            for (sum, part) in sum.iter_mut().zip(term) {
                *sum = add(*sum, part.map(|part| power(part, size - most)));
            }
        }
    }
    power(T::from_parts(sum[0][0] + sum[0][1], sum[1][0] + sum[1][1]), most)
}

/// The product of a complex number, each part with twice the digits, and another.
fn multiply<T: Scalar>([re, im]: [Double; 2], by: T) -> [Double; 2] {
    if !T::COMPLEX {
        return [times(re, by.re()), im];
    }
    [add(times(re, by.re()), times(im, -by.im())), add(times(re, by.im()), times(im, by.re()))]
}

fn times([high, low]: Double, by: f64) -> Double {
    let product = high * by;
    let rounded = high.mul_add(by, -product);
    normal(product, low.mul_add(by, rounded))
}

fn add([a, a_low]: Double, [b, b_low]: Double) -> Double {
    let [high, low] = two_sum(a, b);
    let [low_high, low_low] = two_sum(a_low, b_low);
    let [high, low] = normal(high, low + low_high);
    normal(high, low + low_low)
}

/// The sum, and what rounding it has left.
fn two_sum(a: f64, b: f64) -> Double {
    let sum = a + b;
    let of_b = sum - a;
    [sum, (a - (sum - of_b)) + (b - of_b)]
}

/// The same, the first being the greater.
fn normal(a: f64, b: f64) -> Double {
    let sum = a + b;
    [sum, b - (sum - a)]
}
