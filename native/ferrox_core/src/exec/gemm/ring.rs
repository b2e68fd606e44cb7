//! Multiplication and addition of lanes, and sums of scaled rows in order.

use num_complex::Complex;

use crate::cost::{COLUMNS_PER_PASS, Cost, ORDERED_ROW_COST, ORDERED_WORD_COST};
use crate::dtype::Lane;

/// A lane whose products are added up.
pub trait Ring: Lane {
    /// Zero.
    const ZERO: Self;
    /// Whether the order of a sum doesn't change its value, as for integers.
    const ANY_ORDER: bool;
    /// `self + left * right`; the product is rounded first.
    #[must_use]
    fn add_product(self, left: Self, right: Self) -> Self;
    /// The sum.
    #[must_use]
    fn add(self, other: Self) -> Self;
    /// Returns whether the value is zero; NaN isn't.
    fn is_zero(self) -> bool;
}

macro_rules! ring {
    ($($t:ty),* ; $any_order:literal, $zero:expr, $c:ident, $a:ident, $b:ident => $body:expr, $sum:expr) => {$(
        impl Ring for $t {
            const ZERO: Self = $zero;
            const ANY_ORDER: bool = $any_order;
            #[inline(always)]
            fn add_product(self, $a: Self, $b: Self) -> Self {
                let $c = self;
                $body
            }
            #[inline(always)]
            fn add(self, $a: Self) -> Self {
                let $c = self;
                $sum
            }
            #[inline(always)]
            fn is_zero(self) -> bool {
                self == <Self as Ring>::ZERO
            }
        }
    )*};
}
ring!(u8, u16, u32, u64; true, 0, c, a, b => c.wrapping_add(a.wrapping_mul(b)), c.wrapping_add(a));
ring!(f32, f64; false, 0.0, c, a, b => c + a * b, c + a);
ring!(Complex<f32>, Complex<f64>; false, Complex::ZERO, c, a, b => c + a * b, c + a);

/// The cost of a row of the result with `n` elements of `k` products each, added up in order.
pub(in crate::exec) fn ordered_cost<T>(k: usize, n: usize) -> Cost {
    ORDERED_WORD_COST * (k * n * size_of::<T>()) as Cost / 8 + ORDERED_ROW_COST
}

/// The number of rows of the right matrix that are added in one pass over the columns.
pub(in crate::exec) const ROWS_PER_PASS: usize = 4;

/// Adds up the rows of a matrix, which begin `stride` elements apart, each scaled by its factor, in
/// order, and writes the sum to `out`.
#[inline(always)]
pub(in crate::exec) fn sum_rows<T: Ring>(
    factors: &[T::Bytes],
    matrix: &[T::Bytes],
    stride: usize,
    out: &mut [T::Bytes],
) {
    sum_rows_of::<T, T::Bytes>(factors, matrix, T::load, stride, out);
}

/// [`sum_rows`] of a matrix with elements of another type, which `load` converts.
#[inline(always)]
pub(in crate::exec) fn sum_rows_of<T: Ring, B: Copy>(
    factors: &[T::Bytes],
    matrix: &[B],
    load: impl Fn(B) -> T + Copy,
    stride: usize,
    out: &mut [T::Bytes],
) {
    for (block, out) in out.chunks_mut(COLUMNS_PER_PASS).enumerate() {
        out.fill(T::ZERO.store());
        add_rows_of::<T, B>(factors, &matrix[block * COLUMNS_PER_PASS..], load, stride, out);
    }
}

/// Adds the rows of a matrix, each scaled by its factor, to the elements of `out`, in order.
#[inline(always)]
pub(in crate::exec) fn add_rows<T: Ring>(
    factors: &[T::Bytes],
    matrix: &[T::Bytes],
    stride: usize,
    out: &mut [T::Bytes],
) {
    add_rows_of::<T, T::Bytes>(factors, matrix, T::load, stride, out);
}

/// [`add_rows`] of a matrix with elements of another type, which `load` converts.
#[inline(always)]
fn add_rows_of<T: Ring, B: Copy>(
    factors: &[T::Bytes],
    matrix: &[B],
    load: impl Fn(B) -> T,
    stride: usize,
    out: &mut [T::Bytes],
) {
    let columns = out.len();
    let row = |step: usize| &matrix[step * stride..][..columns];
    let (steps, rest) = factors.as_chunks::<ROWS_PER_PASS>();
    for (group, a) in steps.iter().enumerate() {
        let [a0, a1, a2, a3] = a.map(T::load);
        let [b0, b1, b2, b3] = [0, 1, 2, 3].map(|i| row(group * ROWS_PER_PASS + i));
        for ((((sum, &b0), &b1), &b2), &b3) in out.iter_mut().zip(b0).zip(b1).zip(b2).zip(b3) {
            let total = T::load(*sum)
                .add_product(a0, load(b0))
                .add_product(a1, load(b1))
                .add_product(a2, load(b2))
                .add_product(a3, load(b3));
            *sum = total.store();
        }
    }
    for (step, &a) in rest.iter().enumerate() {
        let a = T::load(a);
        for (sum, &b) in out.iter_mut().zip(row(steps.len() * ROWS_PER_PASS + step)) {
            *sum = T::load(*sum).add_product(a, load(b)).store();
        }
    }
}

/// The accumulator of a sum of products of elements `T`. It may have more bits than `T`.
pub(in crate::exec) trait Sum<T: Lane>: Copy {
    /// The sum without products.
    const EMPTY: Self;
    /// The sum with another product, `a * b`.
    fn add_product(self, a: T, b: T) -> Self;
    /// The total of two sums.
    fn add(self, other: Self) -> Self;
    /// The sum as an element, rounded if necessary.
    fn element(self) -> T;
}

impl<T: Ring> Sum<T> for T {
    const EMPTY: T = T::ZERO;
    #[inline(always)]
    fn add_product(self, a: T, b: T) -> T {
        Ring::add_product(self, a, b)
    }
    #[inline(always)]
    fn add(self, other: T) -> T {
        Ring::add(self, other)
    }
    #[inline(always)]
    fn element(self) -> T {
        self
    }
}

/// The dot products of rows with a vector, given the totals of their stripes: adds the products of the
/// elements after the last whole chunk of `STRIPES` elements, which no stripe has. Each row's are added in
/// order, those of all rows side by side. `load` converts the elements of the rows.
#[inline(always)]
pub(in crate::exec) fn with_rests<T: Lane, S: Sum<T>, B: Copy, const STRIPES: usize, const N: usize>(
    mut totals: [S; N],
    rows: [&[B]; N],
    load: impl Fn(B) -> T,
    vector: &[T::Bytes],
) -> [T::Bytes; N] {
    let rest = vector.as_chunks::<STRIPES>().1;
    let rows = rows.map(|row| &row[row.len() - rest.len()..]);
    for (i, &b) in rest.iter().enumerate() {
        for (total, row) in totals.iter_mut().zip(&rows) {
            *total = total.add_product(load(row[i]), T::load(b));
        }
    }
    totals.map(|total| total.element().store())
}
