//! Products of matrices.
//!
//! Large products of floats are the gemm crate's. Integers, and products too
//! small for gemm to pay, use a kernel that adds up each element of the result
//! in order, as `Nx.BinaryBackend` does.

#![allow(unsafe_code, reason = "takes bytes that are aligned for numbers")]

use std::borrow::Cow;
use std::collections::TryReserveError;
use std::convert::Infallible;
use std::ops::Range;

use num_complex::Complex;

use crate::DType;
use crate::dtype::Lane;
use crate::exec::gemm::blocked;
use crate::exec::gemm::blocked::{Number, Update, View};
#[cfg(target_arch = "x86_64")]
use crate::exec::gemm::{gemv_simd, integer};
use crate::exec::memory::recycling_allocator::filled;
#[cfg(target_arch = "x86_64")]
use crate::exec::simd::{Avx2, Avx512, InstructionSet};
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::parallel::Cost;
use crate::exec::threads::{cooperative_yield, parallel};

/// What a multiplication and addition of eight bytes costs in `ordered`.
const ORDERED: Cost = 60;

/// And an element of the result, which has to be written. (`kernels`: dot_of_tall_f32, conv_f32.)
pub const WRITTEN: Cost = 200;

/// What a multiplication and addition of elements costs, at most.
#[must_use]
pub fn cost(dtype: DType) -> Cost {
    ORDERED * dtype.width() as Cost / 8 + blocked::float_cost(size_of::<f32>())
}

/// What it costs where enough are multiplied that floats needn't be added up in order.
#[must_use]
pub fn large_cost(dtype: DType) -> Cost {
    match dtype {
        DType::F32 | DType::F64 => blocked::float_cost(dtype.width()),
        // Four products of real numbers.
        DType::C64 | DType::C128 => 4 * blocked::float_cost(dtype.width() / 2),
        other => cost(other),
    }
}

/// A matrix in memory: the element at (row, column) is
/// `row * strides[0] + column * strides[1]` elements from the first.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// From the first element on.
    pub bytes: &'a [u8],
    /// Of rows and of columns, in elements, not negative.
    pub strides: [usize; 2],
}

impl Matrix<'_> {
    /// The same elements with rows for columns.
    #[must_use]
    pub fn transposed(self) -> Self {
        let [row, column] = self.strides;
        Matrix { strides: [column, row], ..self }
    }

    /// Whether every element of `rows` by `columns` lies within the bytes.
    fn holds(&self, rows: usize, columns: usize, width: usize) -> bool {
        let bytes = self.extent(rows, columns).and_then(|elements| elements.checked_mul(width));
        bytes.is_some_and(|bytes| bytes <= self.bytes.len())
    }

    /// Elements from the first to the last of `rows` by `columns`.
    fn extent(&self, rows: usize, columns: usize) -> Option<usize> {
        let last = (rows - 1).checked_mul(self.strides[0])?;
        last.checked_add((columns - 1).checked_mul(self.strides[1])?)?.checked_add(1)
    }
}

/// Where a product goes, as a `Matrix` to write to.
#[derive(Debug)]
pub struct Target<'a> {
    /// From the first element on. What lies between elements is left alone.
    pub bytes: &'a mut [u8],
    /// Of rows and of columns; no two elements may be the same.
    pub strides: [usize; 2],
    /// Whether to keep to the calling thread, which is one of several.
    pub alone: bool,
}

/// `out = left * right` for floats: `[m, k]` by `[k, n]`. All dimensions are
/// at least one.
///
/// # Errors
///
/// If there is no memory for a copy of operands that are not aligned.
pub fn float(
    dtype: DType,
    [m, k, n]: [usize; 3],
    left: Matrix<'_>,
    right: Matrix<'_>,
    out: Target<'_>,
) -> Result<(), TryReserveError> {
    match dtype {
        DType::F32 => product::<f32>([m, k, n], left, right, out),
        DType::F64 => product::<f64>([m, k, n], left, right, out),
        DType::C64 => product::<Complex<f32>>([m, k, n], left, right, out),
        DType::C128 => product::<Complex<f64>>([m, k, n], left, right, out),
        other => unreachable!("{other} is converted before"),
    }
}

fn product<T: Number + Lane>(
    [m, k, n]: [usize; 3],
    left: Matrix<'_>,
    right: Matrix<'_>,
    out: Target<'_>,
) -> Result<(), TryReserveError> {
    let width = size_of::<T>();
    assert!(left.holds(m, k, width) && right.holds(k, n, width));
    let Target { bytes: out, strides, alone } = out;
    let (lhs, rhs) = (aligned::<T>(left.bytes)?, aligned::<T>(right.bytes)?);
    let view = |data, strides| View { data, strides, conjugate: false };
    let (lhs, rhs) = (view(&lhs, left.strides), view(&rhs, right.strides));
    let multiply = |out: &mut [T], strides| {
        blocked::multiply_at([m, k, n], Update::Replace, lhs, rhs, (out, strides), alone);
    };
    // SAFETY: `T` has no invalid bit patterns, and the middle part of
    // `align_to_mut` is aligned.
    let (before, aligned, after) = unsafe { out.align_to_mut::<T>() };
    if before.is_empty() && after.is_empty() {
        multiply(aligned, strides);
    } else {
        let mut own = filled(m * n, T::default())?;
        multiply(&mut own, [n, 1]);
        let out = T::view_mut(out);
        for (row, values) in own.chunks_exact(n).enumerate() {
            for (column, value) in values.iter().enumerate() {
                out[row * strides[0] + column * strides[1]] = value.store();
            }
        }
    }
    Ok(())
}

/// The elements in place where they are aligned, else a copy.
fn aligned<T: Number + Lane>(bytes: &[u8]) -> Result<Cow<'_, [T]>, TryReserveError> {
    // SAFETY: `T` has no invalid bit patterns, and the middle part of
    // `align_to` is aligned.
    let (before, aligned, _) = unsafe { bytes.align_to::<T>() };
    if before.is_empty() {
        return Ok(Cow::Borrowed(aligned));
    }
    let elements = T::view(bytes);
    let mut own = Vec::new();
    own.try_reserve_exact(elements.len())?;
    own.extend(elements.iter().map(|&b| T::load(b)));
    Ok(Cow::Owned(own))
}

/// A lane that `ordered` multiplies and adds up.
pub trait Ring: Lane {
    /// Zero.
    const ZERO: Self;
    /// Whether the order of a sum makes no difference.
    const ANY_ORDER: bool;
    /// `self + left * right`; the product is rounded first.
    #[must_use]
    fn add_product(self, left: Self, right: Self) -> Self;
    /// The sum.
    #[must_use]
    fn add(self, other: Self) -> Self;
    /// Whether it is zero; NaN is not.
    fn is_zero(self) -> bool;

    /// `ordered` for several rows with the vectors that the processor has; `false` if it has none
    /// for them.
    fn tiles(_sizes: [usize; 2], _left: &[u8], _right: &[u8], _out: &mut [u8]) -> bool {
        false
    }

    /// Rows of a matrix with a vector, by the lines they lie in: those for which that pays.
    fn lines(
        _stride: usize,
        _matrix: &[Self::Bytes],
        _vector: &[Self::Bytes],
        _out: &mut [Self::Bytes],
    ) -> Range<usize> {
        0..0
    }
}

/// `Ring::tiles` with the module's vectors, or without.
macro_rules! tiled {
    () => {
        #[cfg(target_arch = "x86_64")]
        fn tiles(sizes: [usize; 2], left: &[u8], right: &[u8], out: &mut [u8]) -> bool {
            integer::multiply::<Self>(sizes, left, right, out)
        }
    };
}
macro_rules! untiled {
    () => {};
}

/// `Ring::lines` for types of which a vector of 64 bytes has so many lanes, a chunk of stripes so
/// many vectors, and registers so many rows of sums; and then the same for one of 32 bytes.
macro_rules! lined {
    ([$($wide:literal),*], [$($narrow:literal),*]) => {
        #[cfg(target_arch = "x86_64")]
        fn lines(
            stride: usize,
            matrix: &[Self::Bytes],
            vector: &[Self::Bytes],
            out: &mut [Self::Bytes],
        ) -> Range<usize> {
            if let Some(set) = Avx512::detect() {
                gemv_simd::multiply::<_, Self, $($wide),*>(set, stride, matrix, vector, out)
            } else if let Some(set) = Avx2::detect() {
                gemv_simd::multiply::<_, Self, $($narrow),*>(set, stride, matrix, vector, out)
            } else {
                0..0
            }
        }
    };
}
macro_rules! lined_f32 {
    () => {
        lined!([16, 2, 4], [8, 4, 2]);
    };
}
macro_rules! lined_f64 {
    () => {
        lined!([8, 4, 4], [4, 8, 1]);
    };
}

macro_rules! ring {
    ($($t:ty),* ; $tiles:ident, $any_order:literal, $zero:expr, $c:ident, $a:ident, $b:ident => $body:expr, $sum:expr) => {$(
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
            $tiles!();
        }
    )*};
}
ring!(u8, u16, u32, u64; tiled, true, 0, c, a, b => c.wrapping_add(a.wrapping_mul(b)), c.wrapping_add(a));
ring!(f64; lined_f64, false, 0.0, c, a, b => c + a * b, c + a);
ring!(f32; lined_f32, false, 0.0, c, a, b => c + a * b, c + a);
ring!(Complex<f32>, Complex<f64>; untiled, false, Complex::ZERO, c, a, b => c + a * b, c + a);

/// `out = left * right` for dense matrices, `[m, k]` by `[k, n]`, each element added up in order,
/// on the calling thread.
pub fn ordered<T: Ring>([_, k, n]: [usize; 3], left: &[u8], right: &[u8], out: &mut [u8]) {
    let width = size_of::<T>();
    for (i, out) in out.chunks_mut(TOGETHER * n * width).enumerate() {
        let left = &left[i * TOGETHER * k * width..][..out.len() / n * k];
        if n <= 1 || !T::tiles([k, n], left, right, out) {
            vectorize(Ordered::<T> { k, n, left, right, out, lane: std::marker::PhantomData });
        }
    }
}

/// The same for unsigned integers of a type, in parallel if it pays; `alone` if the other threads
/// have work of their own.
pub fn integers(lane: DType, sizes: [usize; 3], left: &[u8], right: &[u8], out: &mut [u8], alone: bool) {
    match lane {
        DType::U8 => shared::<u8>(sizes, left, right, out, alone),
        DType::U16 => shared::<u16>(sizes, left, right, out, alone),
        DType::U32 => shared::<u32>(sizes, left, right, out, alone),
        _ => shared::<u64>(sizes, left, right, out, alone),
    }
}

fn shared<T: Ring>([m, k, n]: [usize; 3], left: &[u8], right: &[u8], out: &mut [u8], alone: bool) {
    let rows = |first: usize, out: &mut [u8]| {
        let left = &left[first * k * size_of::<T>()..];
        ordered::<T>([out.len() / n / size_of::<T>(), k, n], left, right, out);
        Ok(())
    };
    let cost = if alone { 0 } else { ordered_cost::<T>(k, n) };
    let Ok(()) = parallel::try_fill_shares::<Infallible>(out, m, cost, rows);
}

/// What a row of the result costs, in the order of its steps.
pub(in crate::exec) fn ordered_cost<T>(k: usize, n: usize) -> Cost {
    ORDERED * (k * n * size_of::<T>()) as Cost / 8 + ROW
}

/// What it costs apart from its steps.
const ROW: Cost = 2_000;

/// Rows for which the right matrix of integers is laid out: that takes a hundredth of the time.
const TOGETHER: usize = 512;

struct Ordered<'a, T> {
    k: usize,
    n: usize,
    left: &'a [u8],
    right: &'a [u8],
    out: &'a mut [u8],
    lane: std::marker::PhantomData<T>,
}

/// Columns of the result that are added up at a time, so that they stay in the
/// first-level cache.
const COLUMNS: usize = 1024;

/// Rows of the right matrix that are added in one pass over those columns.
pub(in crate::exec) const STEPS: usize = 4;

/// Rows of the left matrix that are multiplied with a vector side by side: enough
/// to hide the latency of an addition.
const ROWS: usize = 8;

impl<T: Ring> Vectorized for Ordered<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (k, n) = (self.k, self.n);
        let (left, right) = (T::view(self.left), T::view(self.right));
        if n == 1 {
            return with_vector::<T>(left, &right[..k], T::view_mut(self.out));
        }
        for (left, out) in left.chunks_exact(k).zip(T::view_mut(self.out).chunks_exact_mut(n)) {
            add_rows::<T>(left, right, n, out);
            cooperative_yield::after(ordered_cost::<T>(k, n));
        }
    }
}

/// The sum of the rows of a matrix, which begin `stride` elements apart, each times its
/// factor; added up in order.
#[inline(always)]
pub(in crate::exec) fn add_rows<T: Ring>(
    factors: &[T::Bytes],
    matrix: &[T::Bytes],
    stride: usize,
    out: &mut [T::Bytes],
) {
    for (block, out) in out.chunks_mut(COLUMNS).enumerate() {
        out.fill(T::ZERO.store());
        add_to::<T>(factors, &matrix[block * COLUMNS..], stride, out);
    }
}

/// The same, added to what `out` holds.
#[inline(always)]
pub(in crate::exec) fn add_to<T: Ring>(
    factors: &[T::Bytes],
    matrix: &[T::Bytes],
    stride: usize,
    out: &mut [T::Bytes],
) {
    let columns = out.len();
    let row = |step: usize| &matrix[step * stride..][..columns];
    let (steps, rest) = factors.as_chunks::<STEPS>();
    for (group, a) in steps.iter().enumerate() {
        let [a0, a1, a2, a3] = a.map(T::load);
        let [b0, b1, b2, b3] = [0, 1, 2, 3].map(|i| row(group * STEPS + i));
        for ((((sum, &b0), &b1), &b2), &b3) in out.iter_mut().zip(b0).zip(b1).zip(b2).zip(b3) {
            let total = T::load(*sum)
                .add_product(a0, T::load(b0))
                .add_product(a1, T::load(b1))
                .add_product(a2, T::load(b2))
                .add_product(a3, T::load(b3));
            *sum = total.store();
        }
    }
    for (step, &a) in rest.iter().enumerate() {
        let a = T::load(a);
        for (sum, &b) in out.iter_mut().zip(row(steps.len() * STEPS + step)) {
            *sum = T::load(*sum).add_product(a, T::load(b)).store();
        }
    }
}

/// `Ordered` for a right matrix of one column.
#[inline(always)]
fn with_vector<T: Ring>(matrix: &[T::Bytes], vector: &[T::Bytes], out: &mut [T::Bytes]) {
    let k = vector.len();
    for (matrix, out) in matrix.chunks(ROWS * k).zip(out.chunks_mut(ROWS)) {
        let mut sums = [T::ZERO; ROWS];
        if out.len() == ROWS {
            let rows: [&[T::Bytes]; ROWS] = std::array::from_fn(|i| &matrix[i * k..][..k]);
            for (j, &x) in vector.iter().enumerate() {
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = sum.add_product(T::load(row[j]), T::load(x));
                }
            }
        } else {
            for (sum, row) in sums.iter_mut().zip(matrix.chunks_exact(k)) {
                for (&a, &x) in row.iter().zip(vector) {
                    *sum = sum.add_product(T::load(a), T::load(x));
                }
            }
        }
        for (slot, sum) in out.iter_mut().zip(sums) {
            *slot = sum.store();
        }
        cooperative_yield::after(ordered_cost::<T>(k, ROWS));
    }
}
