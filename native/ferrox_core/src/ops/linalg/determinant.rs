//! Determinants. For two and three rows they are sums of products (the formula of Leibniz) in
//! double-word arithmetic, for more rows they come from an LU factorization. Each number has a
//! separate exponent, so that no intermediate value over- or underflows.

use super::scalar::{Precision, Scalar};
use super::scaled::{exponent, scale_by_power_of_two};
use crate::Error;
use crate::exec::memory::filled;
use crate::ops::linalg::lu::lu;
use crate::ops::linalg::matrix::{Matrix, vector};

const OP: &str = "determinant";

/// A number of twice the digits as the unevaluated sum of two f64: the second is a rounding error
/// of the first (Dekker, "A Floating-Point Technique for Extending the Available Precision", 1971).
type DoubleWord = [f64; 2];

/// Matrices whose elements are zero or have magnitudes in this range are not scaled: no product of
/// two of these over- or underflows.
const DETERMINANT_SAFE_RANGE: std::ops::RangeInclusive<f64> = 1e-140..=1e140;

/// The number of times that the rows and then the columns are scaled.
const BALANCING_SWEEPS: usize = 4;

/// A product whose exponent is lower than the largest one by at least this gap is left out of the
/// sum.
const MAX_EXPONENT_GAP: i64 = 1_000;

/// The number of rounding errors per row by which the determinant of Nx's algorithm may be wrong.
const MAX_NX_ROUNDINGS_PER_ROW: f64 = 2.0;

/// The determinant of a square matrix. In single precision and with more than three rows, the
/// result of Nx's algorithm is returned if it is accurate enough: then its last digits are Nx's.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn determinant<T: Scalar>(a: Matrix<T>, precision: Precision) -> Result<T, Error> {
    if precision == Precision::Single && a.rows > 3 && a.is_finite() {
        let nx_determinant = precision.round(lu(a.copy(OP)?, precision)?.determinant().to_number());
        let limit = MAX_NX_ROUNDINGS_PER_ROW * f64::from(f32::EPSILON) * a.rows as f64;
        let accurate = accurate_determinant(a)?;
        return Ok(if (nx_determinant - accurate).abs() <= limit * accurate.abs() {
            nx_determinant
        } else {
            accurate
        });
    }
    accurate_determinant(a)
}

fn accurate_determinant<T: Scalar>(mut a: Matrix<T>) -> Result<T, Error> {
    if !a.is_finite() {
        return Ok(lu(a, Precision::Double)?.determinant().to_number());
    }
    Ok(match a.rows {
        2 => leibniz_determinant(&a, &[([0, 1, 2], false), ([1, 0, 2], true)]),
        3 => leibniz_determinant(
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
            let exponent = balance(&mut a)?;
            lu(a, Precision::Double)?.determinant().times_power_of_two(exponent).to_number()
        }
    })
}

/// Scales rows and columns by powers of two so that the elements have about the same magnitude, if
/// products of some of them would over- or underflow. Returns the exponent of the power of two that
/// the determinant must be multiplied by.
fn balance<T: Scalar>(a: &mut Matrix<T>) -> Result<i64, Error> {
    let n = a.rows;
    if a.data.iter().all(|value| *value == T::ZERO || DETERMINANT_SAFE_RANGE.contains(&value.abs())) {
        return Ok(0);
    }
    let mut sizes = filled(OP, T::DTYPE, &[n, n], a.data.len(), None)?;
    for (size, &value) in sizes.iter_mut().zip(&a.data) {
        *size = if value == T::ZERO { None } else { Some(exponent(value.abs())) };
    }
    let (mut rows, mut columns) = (vector(OP, (0..n).map(|_| 0_i64))?, vector(OP, (0..n).map(|_| 0_i64))?);
    let mean = |sizes: &mut dyn Iterator<Item = i64>| {
        let (sum, count) = sizes.fold((0, 0), |(sum, count), size| (sum + size, count + 1));
        if count == 0 { 0 } else { sum / count }
    };
    for _ in 0..BALANCING_SWEEPS {
        for (i, row) in rows.iter_mut().enumerate() {
            *row = mean(&mut (0..n).filter_map(|j| sizes[i * n + j].map(|size| size - columns[j])));
        }
        for (j, column) in columns.iter_mut().enumerate() {
            *column = mean(&mut (0..n).filter_map(|i| sizes[i * n + j].map(|size| size - rows[i])));
        }
    }
    for (i, row) in rows.iter_mut().enumerate() {
        // The largest element of each row becomes about one.
        *row = (0..n).filter_map(|j| sizes[i * n + j].map(|size| size - columns[j])).max().unwrap_or(0);
    }
    for (i, row) in a.data.chunks_exact_mut(n).enumerate() {
        for (value, column) in row.iter_mut().zip(&columns) {
            *value = scale_by_power_of_two(*value, -(rows[i] + column));
        }
    }
    Ok(rows.iter().chain(&columns).sum())
}

/// The sum of signed products of one element of each row, from these columns; the flag says whether
/// a product is subtracted.
fn leibniz_determinant<T: Scalar>(a: &Matrix<T>, products: &[([usize; 3], bool)]) -> T {
    let mut terms = [([[0.0; 2]; 2], i64::MIN); 6];
    for (term, &(columns, negative)) in terms.iter_mut().zip(products) {
        let elements = columns[..a.rows].iter().enumerate().map(|(i, &j)| a.at(i, j));
        if elements.clone().any(|value| value == T::ZERO) {
            continue;
        }
        let mut product = [[if negative { -1.0 } else { 1.0 }, 0.0], [0.0; 2]];
        let mut total = 0;
        for value in elements {
            let shift = exponent(value.abs());
            let value = scale_by_power_of_two(value, -shift);
            product = multiply_complex::<T>(product, value);
            total += shift;
        }
        *term = (product, total);
    }
    let max_exponent = terms.iter().fold(i64::MIN, |max_exponent, term| max_exponent.max(term.1));
    if max_exponent == i64::MIN {
        return T::ZERO;
    }
    let mut sum = [[0.0; 2]; 2];
    for (term, size) in terms {
        if size != i64::MIN && max_exponent - size < MAX_EXPONENT_GAP {
            for (sum, part) in sum.iter_mut().zip(term) {
                *sum =
                    add_double_words(*sum, part.map(|part| scale_by_power_of_two(part, size - max_exponent)));
            }
        }
    }
    scale_by_power_of_two(T::from_parts(sum[0][0] + sum[0][1], sum[1][0] + sum[1][1]), max_exponent)
}

/// The product of a complex double-word number and a number of f64 parts.
fn multiply_complex<T: Scalar>([re, im]: [DoubleWord; 2], factor: T) -> [DoubleWord; 2] {
    if !T::COMPLEX {
        return [multiply_double_word(re, factor.re()), im];
    }
    [
        add_double_words(multiply_double_word(re, factor.re()), multiply_double_word(im, -factor.im())),
        add_double_words(multiply_double_word(re, factor.im()), multiply_double_word(im, factor.re())),
    ]
}

fn multiply_double_word([high, low]: DoubleWord, factor: f64) -> DoubleWord {
    let product = high * factor;
    let rounded = high.mul_add(factor, -product);
    fast_two_sum(product, low.mul_add(factor, rounded))
}

fn add_double_words([a, a_low]: DoubleWord, [b, b_low]: DoubleWord) -> DoubleWord {
    let [high, low] = two_sum(a, b);
    let [low_high, low_low] = two_sum(a_low, b_low);
    let [high, low] = fast_two_sum(high, low + low_high);
    fast_two_sum(high, low + low_low)
}

/// The sum and its rounding error (Knuth's 2Sum).
fn two_sum(a: f64, b: f64) -> DoubleWord {
    let sum = a + b;
    let of_b = sum - a;
    [sum, (a - (sum - of_b)) + (b - of_b)]
}

/// The sum and its rounding error, where `a` has the larger magnitude (Dekker's Fast2Sum).
fn fast_two_sum(a: f64, b: f64) -> DoubleWord {
    let sum = a + b;
    [sum, b - (sum - a)]
}
