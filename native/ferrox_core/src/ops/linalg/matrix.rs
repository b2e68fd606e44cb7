//! Dense matrices in row-major order, and the loops that run over their rows.

use super::scalar::Scalar;
use crate::Error;
use crate::exec::simd::{Vectorized, dispatch as vectorize};

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

impl<T: Scalar> Matrix<T> {
    /// Of zeros.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory.
    pub fn zeros(op: &'static str, rows: usize, columns: usize) -> Result<Self, Error> {
        let error = || Error::TooLarge { op, dtype: T::DTYPE, shape: vec![rows, columns] };
        let length = rows.checked_mul(columns).ok_or_else(error)?;
        let mut data = Vec::new();
        data.try_reserve_exact(length).map_err(|_| error())?;
        data.resize(length, T::ZERO);
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
        for (i, row) in self.data.chunks_exact(self.columns.max(1)).enumerate() {
            for (j, &value) in row.iter().enumerate() {
                transpose.data[j * self.rows + i] = value;
            }
        }
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

/// What rounding leaves of a zero in a matrix of norm one: so little that all of it
/// together is not more than a rounding of the norm.
pub fn noise(rows: usize, columns: usize) -> f64 {
    f64::EPSILON * (16.0 / (rows * columns) as f64).min(1.0)
}

/// The Euclidean norm, without overflow.
pub fn norm<T: Scalar>(values: &[T]) -> f64 {
    let largest = values.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    // The reciprocal of a subnormal number may be infinite.
    largest * values.iter().map(|v| (v.abs() / largest).powi(2)).sum::<f64>().sqrt()
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
#[inline]
pub fn rotate<T: Scalar>(a: &mut [T], b: &mut [T], c: f64, s: f64) {
    vectorize(Rotate { a, b, c, s });
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

/// A reflection `I - tau v vᴴ` with `v[0] = 1` that maps `x` to `beta e₁`, `x`
/// being overwritten by `v`; none if `x` is that already.
///
/// `beta` is what the caller makes of the first element and the norm of all; it
/// must have that norm, and `beta / x[0]` must be real.
pub fn reflector<T: Scalar>(x: &mut [T], beta: impl FnOnce(T, f64) -> T) -> Option<(T, T)> {
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
    let tau = 2.0 / (1.0 + ratio * ratio);
    for value in &mut x[1..] {
        *value = value.over(v0);
    }
    x[0] = T::ONE;
    Some((T::real(tau), beta))
}
