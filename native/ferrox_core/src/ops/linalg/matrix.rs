//! Dense matrices in row-major order, and the loops that run over their rows.

use crate::Error;
use crate::cost::{self, Cost};
use crate::exec::gemm::blocked::View;
use crate::exec::memory::filled;
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::cooperative_yield;
use crate::ops::linalg::scalar::Scalar;

/// A matrix in row-major order.
#[derive(Clone, Debug)]
pub struct Matrix<T> {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// Row after row.
    pub data: Vec<T>,
}

/// What it costs to multiply an element of a matrix and add it to another, at most: where a column
/// or row at a time passes all of a matrix.
const STEP: Cost = 500;

/// To be called after so many of these, in a factorization that goes on.
pub fn pause_after(rows: usize, columns: usize) {
    cooperative_yield::after(cost::work(rows.saturating_mul(columns), STEP));
}

/// Rows and columns of the squares that are transposed one after the other.
const SQUARE: usize = 8;

impl<T: Scalar> Matrix<T> {
    /// Of zeros.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn zeros(op: &'static str, rows: usize, columns: usize) -> Result<Self, Error> {
        let error = || Error::TooLarge { op, dtype: T::DTYPE, shape: vec![rows, columns] };
        let length = rows.checked_mul(columns).ok_or_else(error)?;
        let data = filled(op, T::DTYPE, &[rows, columns], length, T::ZERO)?;
        Ok(Matrix { rows, columns, data })
    }

    /// With ones on its diagonal.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn eye(op: &'static str, rows: usize, columns: usize) -> Result<Self, Error> {
        let mut eye = Self::zeros(op, rows, columns)?;
        for i in 0..rows.min(columns) {
            *eye.at_mut(i, i) = T::ONE;
        }
        Ok(eye)
    }

    /// Another with the same elements.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn copy(&self, op: &'static str) -> Result<Self, Error> {
        let mut copy = Self::zeros(op, self.rows, self.columns)?;
        copy.data.copy_from_slice(&self.data);
        Ok(copy)
    }

    /// The transpose.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn transpose(&self, op: &'static str) -> Result<Self, Error> {
        let mut transpose = Self::zeros(op, self.columns, self.rows)?;
        vectorize(Transpose { from: self, out: &mut transpose.data });
        Ok(transpose)
    }

    /// The conjugate transpose.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn adjoint(&self, op: &'static str) -> Result<Self, Error> {
        let mut adjoint = self.transpose(op)?;
        adjoint.map(T::conj);
        Ok(adjoint)
    }

    /// The product.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn times(&self, op: &'static str, other: &Self) -> Result<Self, Error> {
        let mut product = Self::zeros(op, self.rows, other.columns)?;
        for i in 0..self.rows {
            let (row, out) = (self.row(i), product.row_mut(i));
            add_rows(out, row, &other.data, other.columns);
        }
        Ok(product)
    }

    /// All of it, to multiply with.
    pub fn view(&self) -> View<'_, T> {
        View::rows(&self.data, self.columns)
    }

    /// An element.
    #[inline(always)]
    pub fn at(&self, row: usize, column: usize) -> T {
        self.data[row * self.columns + column]
    }

    /// The same, to write to.
    #[inline(always)]
    pub fn at_mut(&mut self, row: usize, column: usize) -> &mut T {
        &mut self.data[row * self.columns + column]
    }

    /// A row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &[T] {
        &self.data[row * self.columns..][..self.columns]
    }

    /// The same, to write to.
    #[inline(always)]
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        &mut self.data[row * self.columns..][..self.columns]
    }

    /// Two different rows, to write to.
    pub fn two_rows(&mut self, first: usize, second: usize) -> (&mut [T], &mut [T]) {
        let n = self.columns;
        if first < second {
            let (head, tail) = self.data.split_at_mut(second * n);
            (&mut head[first * n..][..n], &mut tail[..n])
        } else {
            let (head, tail) = self.data.split_at_mut(first * n);
            (&mut tail[..n], &mut head[second * n..][..n])
        }
    }

    /// Swaps two rows.
    pub fn swap_rows(&mut self, first: usize, second: usize) {
        if first != second {
            let (a, b) = self.two_rows(first, second);
            a.swap_with_slice(b);
        }
    }

    /// Every element changed.
    pub fn map(&mut self, change: impl Fn(T) -> T) {
        self.data.iter_mut().for_each(|value| *value = change(*value));
    }

    /// Whether all of it is finite.
    pub fn is_finite(&self) -> bool {
        self.data.iter().all(|value| value.is_finite())
    }

    /// The square root of the sum of the squared magnitudes, without overflow.
    pub fn norm(&self) -> f64 {
        norm(&self.data)
    }
}

struct Transpose<'a, T> {
    from: &'a Matrix<T>,
    out: &'a mut [T],
}

impl<T: Scalar> Vectorized for Transpose<'_, T> {
    type Output = ();

    /// Square by square, so that a line of the cache is read and written once.
    #[inline(always)]
    fn run(self) {
        let Transpose { from: &Matrix { rows, columns, ref data }, out } = self;
        let (down, across) = (rows / SQUARE * SQUARE, columns / SQUARE * SQUARE);
        for first in (0..down).step_by(SQUARE) {
            for start in (0..across).step_by(SQUARE) {
                let mut square = [[T::ZERO; SQUARE]; SQUARE];
                for (i, line) in square.iter_mut().enumerate() {
                    line.copy_from_slice(&data[(first + i) * columns + start..][..SQUARE]);
                }
                for j in 0..SQUARE {
                    let line = square.map(|line| line[j]);
                    out[(start + j) * rows + first..][..SQUARE].copy_from_slice(&line);
                }
            }
        }
        for i in 0..rows {
            for j in if i < down { across } else { 0 }..columns {
                out[j * rows + i] = data[i * columns + j];
            }
        }
    }
}

/// Below this share of the largest magnitude, squares would underflow.
pub const TINY: f64 = 1e-290;

/// A power of two that makes the largest magnitude about one, so that no square over- or
/// underflows.
#[derive(Clone, Copy, Debug)]
pub struct Scaling {
    /// Each as two factors, which are in the range of f64.
    down: [f64; 2],
    up: [f64; 2],
}

/// The exponent of the largest magnitude after `Scaling::high`: sums of its square don't overflow by far,
/// and what is smaller than it by the factor 1e400 is still a normal number.
const HIGH: i32 = 330;

impl Scaling {
    /// For that largest magnitude; of what is zero or not finite, the number one.
    pub fn of(largest: f64) -> Self {
        Self::to(0, largest)
    }

    /// The same to a magnitude that leaves room for elements that are far smaller.
    pub fn high(largest: f64) -> Self {
        Self::to(HIGH, largest)
    }

    fn to(exponent: i32, largest: f64) -> Self {
        let of_largest = largest > 0.0 && largest.is_finite();
        let exponent = if of_largest { largest.log2().floor() as i32 - exponent } else { 0 };
        let factors = |exponent: i32| [2f64.powi(exponent / 2), 2f64.powi(exponent - exponent / 2)];
        Scaling { down: factors(-exponent), up: factors(exponent) }
    }

    /// Scaled.
    #[inline(always)]
    pub fn down<T: Scalar>(self, value: T) -> T {
        value.scale(self.down[0]).scale(self.down[1])
    }

    /// As it was.
    #[inline(always)]
    pub fn up<T: Scalar>(self, value: T) -> T {
        value.scale(self.up[0]).scale(self.up[1])
    }
}

/// How many times the smallest row of a matrix the largest is if the matrix is graded.
const GRADED: f64 = 1e4;

/// The order of rows that makes them descending by size, which is given: none if they are all of much
/// the same size, but for zeros.
///
/// Reflections mix the rows that are left with the first of them. Where that is the largest, its
/// roundings don't drown the others.
pub fn descending(sizes: &[f64]) -> Option<Vec<usize>> {
    let largest = largest(sizes);
    let least = sizes.iter().copied().filter(|&size| size > 0.0).fold(largest, f64::min);
    if largest / GRADED <= least {
        return None;
    }
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|&a, &b| sizes[b].total_cmp(&sizes[a]));
    Some(order)
}

/// What rounding leaves of a zero in a matrix of norm one: so little that all of it
/// together is not more than a rounding of the norm.
pub fn noise(rows: usize, columns: usize) -> f64 {
    f64::EPSILON * (16.0 / (rows * columns) as f64).min(1.0)
}

/// Squares of magnitudes between these neither over- nor underflow, nor do sums of them.
const SQUARES: std::ops::RangeInclusive<f64> = 1e-120..=1e120;

/// A number of magnitude one in the direction of another, which isn't zero.
pub fn direction<T: Scalar>(value: T) -> T {
    // The reciprocal of a subnormal number may be infinite.
    let up = if value.abs() < *SQUARES.start() { 2f64.powi(500) } else { 1.0 };
    let value = value.scale(up);
    value.scale(1.0 / value.abs())
}

/// The Euclidean norm, without overflow.
pub fn norm<T: Scalar>(values: &[T]) -> f64 {
    let largest = largest(values);
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    if SQUARES.contains(&largest) {
        return vectorize(Squares { values }).sqrt();
    }
    // The reciprocal of a subnormal number may be infinite.
    largest * values.iter().map(|v| (v.abs() / largest).powi(2)).sum::<f64>().sqrt()
}

/// Lanes of a sum or a maximum.
const LANES: usize = 16;

struct Squares<'a, T> {
    values: &'a [T],
}

impl<T: Scalar> Vectorized for Squares<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut sums = [0.0; LANES];
        let (chunks, rest) = self.values.as_chunks::<LANES>();
        for chunk in chunks {
            for (sum, value) in sums.iter_mut().zip(chunk) {
                *sum += value.abs_sq();
            }
        }
        rest.iter().map(|value| value.abs_sq()).sum::<f64>() + sums.iter().sum::<f64>()
    }
}

struct Largest<'a, T> {
    values: &'a [T],
}

impl<T: Scalar> Vectorized for Largest<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut most = [0.0; LANES];
        let (chunks, rest) = self.values.as_chunks::<LANES>();
        for chunk in chunks {
            for (most, value) in most.iter_mut().zip(chunk) {
                let size = value.abs();
                *most = if size > *most { size } else { *most };
            }
        }
        most.into_iter().chain(rest.iter().map(|value| value.abs())).fold(0.0, f64::max)
    }
}

/// The largest magnitude, those that are NaN left out; zero of none.
pub fn largest<T: Scalar>(values: &[T]) -> f64 {
    vectorize(Largest { values })
}

struct Divide<'a, T> {
    values: &'a mut [T],
    by: T,
}

impl<T: Scalar> Vectorized for Divide<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.values.iter_mut().for_each(|value| *value = value.over(self.by));
    }
}

/// Each divided by the same.
pub fn divide<T: Scalar>(values: &mut [T], by: T) {
    vectorize(Divide { values, by });
}

struct Clean<'a, T> {
    values: &'a mut [T],
    eps: f64,
}

impl<T: Scalar> Vectorized for Clean<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.values.iter_mut().for_each(|value| *value = value.clean(self.eps));
    }
}

/// `Scalar::clean` of each.
pub fn clean<T: Scalar>(values: &mut [T], eps: f64) {
    vectorize(Clean { values, eps });
}

/// The square root of the sum of two squares. As accurate as the standard library's, which
/// takes three times as long, is not needed of a rotation.
#[inline]
pub fn hypotenuse(a: f64, b: f64) -> f64 {
    let squares = a * a + b * b;
    if SQUARES.contains(&squares) { squares.sqrt() } else { a.hypot(b) }
}

/// A rotation that maps `(f, g)` to `(r, 0)`: `(c, s, r)`.
#[inline]
pub fn rotation(f: f64, g: f64) -> (f64, f64, f64) {
    let r = hypotenuse(f, g);
    if r > TINY {
        return (f / r, g / r, r);
    }
    if r == 0.0 {
        return (1.0, 0.0, 0.0);
    }
    // Of what is so small that it has few digits, too.
    let up = 2f64.powi(500);
    let (f, g) = (f * up, g * up);
    let scaled = f.hypot(g);
    (f / scaled, g / scaled, r)
}

struct AddScaled<'a, T> {
    out: &'a mut [T],
    row: &'a [T],
    by: T,
}

impl<T: Scalar> Vectorized for AddScaled<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (out, &value) in self.out.iter_mut().zip(self.row) {
            *out = *out + value * self.by;
        }
    }
}

/// `out += row * by`
#[inline]
pub fn add_scaled<T: Scalar>(out: &mut [T], row: &[T], by: T) {
    vectorize(AddScaled { out, row, by });
}

struct AddRows<'a, T> {
    out: &'a mut [T],
    by: &'a [T],
    rows: &'a [T],
    stride: usize,
}

impl<T: Scalar> Vectorized for AddRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let AddRows { out, by, rows, stride } = self;
        let n = out.len();
        let mut k = 0;
        // Four at a time, in order, so that each element is read and written
        // once for four.
        while k + 4 <= by.len() {
            let (a, b, c, d) = (by[k], by[k + 1], by[k + 2], by[k + 3]);
            let r0 = &rows[k * stride..][..n];
            let r1 = &rows[(k + 1) * stride..][..n];
            let r2 = &rows[(k + 2) * stride..][..n];
            let r3 = &rows[(k + 3) * stride..][..n];
            for ((((out, &r0), &r1), &r2), &r3) in out.iter_mut().zip(r0).zip(r1).zip(r2).zip(r3) {
                *out = *out + r0 * a + r1 * b + r2 * c + r3 * d;
            }
            k += 4;
        }
        for (k, &by) in by.iter().enumerate().skip(k) {
            for (out, &value) in out.iter_mut().zip(&rows[k * stride..]) {
                *out = *out + value * by;
            }
        }
    }
}

/// `out += by[0] * rows[0] + by[1] * rows[1] + ...`, in that order; the rows are
/// `stride` apart.
#[inline]
pub fn add_rows<T: Scalar>(out: &mut [T], by: &[T], rows: &[T], stride: usize) {
    vectorize(AddRows { out, by, rows, stride });
}

struct Rotate<'a, T> {
    a: &'a mut [T],
    b: &'a mut [T],
    c: f64,
    s: f64,
}

impl<T: Scalar> Vectorized for Rotate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (c, s) = (self.c, self.s);
        for (a, b) in self.a.iter_mut().zip(self.b) {
            let (x, y) = (*a, *b);
            *a = x.scale(c) + y.scale(s);
            *b = y.scale(c) - x.scale(s);
        }
    }
}

/// `(a, b) = (c a + s b, c b - s a)`
pub fn rotate<T: Scalar>(a: &mut [T], b: &mut [T], c: f64, s: f64) {
    vectorize(Rotate { a, b, c, s });
}

struct UpdateAndMultiply<'a, T> {
    rows: &'a mut [T],
    stride: usize,
    pairs: [(&'a [T], &'a [T]); 2],
    v: (&'a [T], &'a [T]),
    out: &'a mut [T],
}

/// Rows that `update_and_multiply` reads together, and elements of each.
const TOGETHER: usize = 4;
const WIDTH: usize = 8;

impl<T: Scalar> Vectorized for UpdateAndMultiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let UpdateAndMultiply { rows, stride, pairs: [(a, p), (b, q)], v: (v, conj), out } = self;
        let n = out.len();
        let (a, b, p, q, v, conj) = (&a[..n], &b[..n], &p[..n], &q[..n], &v[..n], &conj[..n]);
        for (group, rows) in rows.chunks_mut(TOGETHER * stride).enumerate() {
            let (first, mut sums) = (group * TOGETHER, [T::ZERO; TOGETHER]);
            let count = TOGETHER.min(n - first);
            let corner = if count == TOGETHER { first + TOGETHER } else { n };
            let mut rows = rows.chunks_mut(stride);
            let mut rows: [&mut [T]; TOGETHER] = std::array::from_fn(|_| rows.next().unwrap_or_default());
            for (i, (row, sum)) in rows.iter_mut().zip(&mut sums).take(count).enumerate() {
                let i = first + i;
                for j in i..corner {
                    row[j] = row[j] - a[i] * p[j] - b[i] * q[j];
                    out[j] = out[j] + conj[i] * row[j];
                    if j > i {
                        *sum = *sum + v[j] * row[j];
                    }
                }
            }
            if count == TOGETHER {
                let rows = rows.map(|row| &mut row[corner..n]);
                let factors = std::array::from_fn(|i| [a[first + i], b[first + i], conj[first + i]]);
                let more =
                    four(rows, factors, [&p[corner..], &q[corner..], &v[corner..]], &mut out[corner..]);
                sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = *sum + more);
            }
            for (out, sum) in out[first..].iter_mut().zip(sums) {
                *out = *out + sum.conj();
            }
        }
    }
}

/// Updates four rows, adds their multiples to `out`, and gives their products with `v`.
#[inline(always)]
fn four<T: Scalar>(
    rows: [&mut [T]; TOGETHER],
    factors: [[T; 3]; TOGETHER],
    [p, q, v]: [&[T]; 3],
    out: &mut [T],
) -> [T; TOGETHER] {
    let [a, b, c] = [0, 1, 2].map(|k| factors.map(|factors| factors[k]));
    let mut sums = [[T::ZERO; WIDTH]; TOGETHER];
    let [r0, r1, r2, r3] = rows.map(|row| row.as_chunks_mut::<WIDTH>());
    let (outs, out) = out.as_chunks_mut::<WIDTH>();
    let [p, q, v] = [p, q, v].map(|values| values.as_chunks::<WIDTH>());
    let operands = outs.iter_mut().zip(p.0).zip(q.0).zip(v.0);
    let rows = r0.0.iter_mut().zip(r1.0).zip(r2.0).zip(r3.0);
    for ((((out, p), q), v), (((r0, r1), r2), r3)) in operands.zip(rows) {
        // Arrays by value, which the compiler keeps in vectors.
        let (p, q, v, mut total) = (*p, *q, *v, *out);
        for (i, row) in [r0, r1, r2, r3].into_iter().enumerate() {
            let mut values = *row;
            for k in 0..WIDTH {
                values[k] = values[k] - a[i] * p[k] - b[i] * q[k];
            }
            for k in 0..WIDTH {
                total[k] = total[k] + values[k] * c[i];
            }
            for k in 0..WIDTH {
                sums[i][k] = sums[i][k] + values[k] * v[k];
            }
            *row = values;
        }
        *out = total;
    }
    let mut totals = sums.map(|sums| sums.into_iter().fold(T::ZERO, |total, sum| total + sum));
    for (i, row) in [r0.1, r1.1, r2.1, r3.1].into_iter().enumerate() {
        for ((((value, &p), &q), &v), out) in row.iter_mut().zip(p.1).zip(q.1).zip(v.1).zip(out.iter_mut()) {
            *value = *value - a[i] * p - b[i] * q;
            *out = *out + *value * c[i];
            totals[i] = totals[i] + *value * v;
        }
    }
    totals
}

/// Of a Hermitian matrix of which only the upper triangle is kept, its rows `stride`
/// apart: `row[i] -= a[i] p + b[i] q` for the pairs `(a, p)` and `(b, q)`, and with these
/// `out += vᴴ A`, in one pass. `v` comes with its conjugate.
pub fn update_and_multiply<T: Scalar>(
    rows: &mut [T],
    stride: usize,
    pairs: [(&[T], &[T]); 2],
    v: (&[T], &[T]),
    out: &mut [T],
) {
    vectorize(UpdateAndMultiply { rows, stride, pairs, v, out });
}

struct ReflectRows<'a, T> {
    rows: &'a mut [T],
    stride: usize,
    along: (&'a [T], &'a [T]),
    right: (&'a [T], T),
}

impl<T: Scalar> Vectorized for ReflectRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let ReflectRows { rows, stride, along: (by, along), right } = self;
        let (groups, rest) = by.as_chunks::<TOGETHER>();
        let mut rows = rows.chunks_mut(stride);
        let mut next = || &mut rows.next().unwrap_or_default()[..along.len()];
        for by in groups {
            reflect(std::array::from_fn::<_, TOGETHER, _>(|_| next()), by, along, right);
        }
        for &by in rest {
            reflect([next()], &[by], along, right);
        }
    }
}

/// `reflect_rows` of a few.
#[inline(always)]
fn reflect<T: Scalar, const N: usize>(
    rows: [&mut [T]; N],
    by: &[T; N],
    along: &[T],
    (right, tau): (&[T], T),
) {
    let mut sums = [[T::ZERO; WIDTH]; N];
    let ((alongs, last_along), (rights, last_right)) =
        (along.as_chunks::<WIDTH>(), right.as_chunks::<WIDTH>());
    for (place, (along, right)) in alongs.iter().zip(rights).enumerate() {
        for i in 0..N {
            let row = &mut rows[i][place * WIDTH..][..WIDTH];
            let mut values = *along;
            for k in 0..WIDTH {
                values[k] = row[k] + along[k] * by[i];
                sums[i][k] = sums[i][k] + right[k].conj() * values[k];
            }
            row.copy_from_slice(&values);
        }
    }
    for i in 0..N {
        let row = &mut rows[i][alongs.len() * WIDTH..];
        let mut sum = sums[i].into_iter().fold(T::ZERO, |sum, value| sum + value);
        for ((value, &along), &right) in row.iter_mut().zip(last_along).zip(last_right) {
            *value = *value + along * by[i];
            sum = sum + right.conj() * *value;
        }
        let by = -(tau * sum);
        for (value, &right) in rows[i].iter_mut().zip(right) {
            *value = *value + right * by;
        }
    }
}

/// Of rows that begin `stride` apart: `row[i] += by[i] along`, and from that its product with
/// `right`, `tau` times, is taken away along `right`.
pub fn reflect_rows<T: Scalar>(rows: &mut [T], stride: usize, along: (&[T], &[T]), right: (&[T], T)) {
    vectorize(ReflectRows { rows, stride, along, right });
}

struct Dot<'a, T> {
    a: &'a [T],
    b: &'a [T],
}

impl<T: Scalar> Vectorized for Dot<'_, T> {
    type Output = T;

    #[inline(always)]
    fn run(self) -> T {
        let mut sums = [T::ZERO; 8];
        let (a, b) = (self.a.chunks_exact(8), self.b.chunks_exact(8));
        let rest = a.remainder().iter().zip(b.remainder());
        let rest = rest.fold(T::ZERO, |sum, (&a, &b)| sum + a.conj() * b);
        for (a, b) in a.zip(b) {
            for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
                *sum = *sum + a.conj() * b;
            }
        }
        let [a, b, c, d, e, f, g, h] = sums;
        ((a + b) + (c + d)) + ((e + f) + (g + h)) + rest
    }
}

/// The sum of `conj(a) b`.
#[inline]
pub fn dot<T: Scalar>(a: &[T], b: &[T]) -> T {
    vectorize(Dot { a, b })
}

/// How many times the first element of `v` the others may be: its square is the reciprocal of `tau`.
const MOST: f64 = 1e140;

/// A reflection `I - tau v vᴴ` with `v[0] = 1` that maps `x` to `beta e₁`, `x`
/// being overwritten by `v`; none if `x` is that already, or so nearly that all below is nothing.
///
/// `beta` is what the caller makes of the first element and the norm of all; it
/// must have that norm, and `beta / x[0]` must be real.
pub fn reflector<T: Scalar>(x: &mut [T], beta: impl FnOnce(T, f64) -> T) -> Option<(T, T)> {
    let most = largest(x);
    if most > 0.0 && most < *SQUARES.start() {
        // What rounding has left of zeros may be so small that it has few digits; as many
        // would `v` have.
        let (up, down) = (2f64.powi(500), 2f64.powi(-500));
        x.iter_mut().for_each(|value| *value = value.scale(up));
        let reflection = scaled_reflector(x, beta).map(|(tau, beta)| (tau, beta.scale(down)));
        if reflection.is_none() {
            x.iter_mut().for_each(|value| *value = value.scale(down));
        }
        return reflection;
    }
    scaled_reflector(x, beta)
}

/// `reflector` of numbers that are not too small.
fn scaled_reflector<T: Scalar>(x: &mut [T], beta: impl FnOnce(T, f64) -> T) -> Option<(T, T)> {
    let (&first, tail) = x.split_first()?;
    let below = norm(tail);
    let all = first.abs().hypot(below);
    let beta = beta(first, all);
    // x - beta e₁, its first element without cancellation: |x₀|² - |beta|² is
    // minus what lies below.
    let v0 = if (beta * first.conj()).re() > 0.0 {
        -(T::real((below / (first.abs() + all)) * below)) * beta.scale(1.0 / all)
    } else {
        first - beta
    };
    let size = v0.abs();
    if size == 0.0 || all == 0.0 || !all.is_finite() {
        return None;
    }
    // tau = 2 |v₀|² / |v|², v scaled so that its first element is one.
    let ratio = below / size;
    if ratio > MOST {
        return None;
    }
    let tau = 2.0 / (1.0 + ratio * ratio);
    for value in &mut x[1..] {
        *value = value.over(v0);
    }
    x[0] = T::ONE;
    Some((T::real(tau), beta))
}
