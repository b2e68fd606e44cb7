//! Products of blocks of matrices: what large products and factorizations spend
//! their time in.
//!
//! They are those of the gemm crates for f32 and f64. A product of complex numbers is
//! four of them, of real and imaginary parts, each a matrix whose elements lie two
//! apart: gemm's own crates for them would take a tenth of the time that all of
//! this takes to compile.

#![allow(unsafe_code, reason = "calls gemm, which takes pointers")]

use std::ops::Range;

use gemm_common::Parallelism;
use num_complex::Complex;

use crate::exec::parallel::{self, Cost};

/// What a multiplication and addition of four bytes costs.
pub(super) const FLOAT: Cost = 10;

/// A number that blocks hold.
pub trait Number: Copy + Send + Sync + Default + 'static {
    /// Computes a product.
    ///
    /// # Safety
    ///
    /// What the sizes and strides reach must be there, and nothing else may refer to
    /// what is reached of `out`, whose elements are distinct.
    unsafe fn product(operands: Operands<Self>, parallelism: Parallelism);
}

/// A matrix that is read: its first element, its strides, and whether it stands for
/// its complex conjugate.
type Side<T> = (*const T, [usize; 2], bool);

/// Where a product is read and written.
#[derive(Clone, Copy, Debug)]
pub struct Operands<T> {
    sizes: [usize; 3],
    left: Side<T>,
    right: Side<T>,
    out: (*mut T, [usize; 2]),
    /// Whether to add to what is there, and whether to negate what is added.
    adds: bool,
    negates: bool,
}

// SAFETY: it stands for slices that are alive, and borrowed as it uses them, while
// another thread has it; and `T` may be shared.
unsafe impl<T: Number> Send for Operands<T> {}

macro_rules! number {
    ($($t:ty, $gemm:path;)*) => {$(
        impl Number for $t {
            unsafe fn product(operands: Operands<Self>, parallelism: Parallelism) {
                let Operands { sizes: [mut m, k, mut n], mut left, mut right, mut out, adds, negates } = operands;
                // Its loops go down the columns of the result.
                if out.1[1] < out.1[0] {
                    (m, n, left, right) = (n, m, right, left);
                    for strides in [&mut left.1, &mut right.1, &mut out.1] {
                        strides.reverse();
                    }
                }
                let strides = |strides: [usize; 2]| strides.map(|stride| stride as isize);
                let ([lr, lc], [rr, rc], [or, oc]) = (strides(left.1), strides(right.1), strides(out.1));
                let factor = if negates { -1.0 } else { 1.0 };
                // SAFETY: as the caller promises.
                unsafe {
                    $gemm()(
                        m, n, k, out.0, oc, or, adds, left.0, lc, lr, right.0, rc, rr, 1.0, factor, false,
                        false, false, parallelism,
                    );
                }
            }
        }

        impl Number for Complex<$t> {
            unsafe fn product(operands: Operands<Self>, parallelism: Parallelism) {
                let Operands { sizes, left, right, out, adds, negates } = operands;
                let twice = |strides: [usize; 2]| strides.map(|stride| 2 * stride);
                let part = |(first, strides, _): Side<Self>, imaginary: bool| {
                    (first.cast::<$t>().wrapping_add(usize::from(imaginary)), twice(strides), false)
                };
                // Of real parts, of imaginary ones, and of each with the other.
                for (l, r) in [(false, false), (true, true), (false, true), (true, false)] {
                    let imaginary = l != r;
                    let product = Operands {
                        sizes,
                        left: part(left, l),
                        right: part(right, r),
                        out: (out.0.cast::<$t>().wrapping_add(usize::from(imaginary)), twice(out.1)),
                        adds: adds || l,
                        // The square of the imaginary unit is negative, and so is its conjugate.
                        negates: negates ^ (l && r) ^ (l && left.2) ^ (r && right.2),
                    };
                    // SAFETY: as the caller promises; a part lies within its number.
                    unsafe { <$t>::product(product, parallelism) };
                }
            }
        }
    )*};
}
number! {
    f32, gemm_f32::gemm::f32::get_gemm_fn;
    f64, gemm_f64::gemm::f64::get_gemm_fn;
}

/// What becomes of the elements that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// The product takes their place.
    Replace,
    /// It is added to them.
    Add,
    /// It is subtracted from them.
    Subtract,
}

/// A block of a matrix in row-major order: its rows and columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The rows.
    pub rows: Range<usize>,
    /// The columns.
    pub columns: Range<usize>,
}

impl Block {
    /// The block of these rows and columns.
    #[must_use]
    pub fn new(rows: Range<usize>, columns: Range<usize>) -> Self {
        Block { rows, columns }
    }

    fn sizes(&self) -> [usize; 2] {
        [self.rows.len(), self.columns.len()]
    }

    /// The place of its first element, where all of it lies within `length` elements.
    fn within(&self, length: usize, stride: usize) -> Option<usize> {
        let first = self.rows.start.checked_mul(stride)?.checked_add(self.columns.start)?;
        let last = self.rows.end.checked_sub(1)?.checked_mul(stride)?.checked_add(self.columns.end)?;
        (self.columns.end <= stride && last <= length).then_some(first)
    }

    fn meets(&self, other: &Self) -> bool {
        let apart = |a: &Range<usize>, b: &Range<usize>| a.end <= b.start || b.end <= a.start;
        !apart(&self.rows, &other.rows) && !apart(&self.columns, &other.columns)
    }
}

/// The right side of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// As it is.
    Plain,
    /// Its conjugate transpose.
    Adjoint,
}

/// `out -= left * right` within one matrix of rows of `stride` elements; `out` must not
/// overlap the others.
///
/// # Panics
///
/// If a block isn't within the matrix, or the sizes do not go together.
pub fn subtract_within<T: Number>(
    data: &mut [T],
    stride: usize,
    out: &Block,
    left: &Block,
    right: (&Block, Right),
) {
    let ([m, n], [rows, k]) = (out.sizes(), left.sizes());
    let (right, how) = right;
    let turned = how == Right::Adjoint;
    let [mut inner, mut columns] = right.sizes();
    if turned {
        (inner, columns) = (columns, inner);
    }
    assert!(rows == m && inner == k && columns == n && !out.meets(left) && !out.meets(right));
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    let place = |block: &Block| {
        let place = block.within(data.len(), stride);
        assert!(place.is_some());
        place.unwrap_or_default()
    };
    let (first, left, right) = (place(out), place(left), place(right));
    let data = data.as_mut_ptr();
    // SAFETY: the blocks lie within `data`, as just checked, so their first elements do.
    let (out, left, right) = unsafe { (data.add(first), data.add(left), data.add(right)) };
    let right_strides = if turned { [1, stride] } else { [stride, 1] };
    let operands = Operands {
        sizes: [m, k, n],
        left: (left.cast_const(), [stride, 1], false),
        right: (right.cast_const(), right_strides, turned),
        out: (out, [stride, 1]),
        adds: true,
        negates: true,
    };
    // SAFETY: every element that the sizes and strides reach lies in a block, and the
    // blocks within `data`, which is borrowed mutably; `out` overlaps none of the
    // others.
    unsafe { operands.multiply(cost::<T>(k)) }
}

/// A matrix in memory: the element at (row, column) is
/// `row * strides[0] + column * strides[1]` elements from the first.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    /// From the first element on.
    pub data: &'a [T],
    /// Of rows and of columns.
    pub strides: [usize; 2],
    /// Whether it stands for its complex conjugate.
    pub conjugate: bool,
}

impl<'a, T> View<'a, T> {
    /// Rows that begin `stride` elements apart.
    #[must_use]
    pub fn rows(data: &'a [T], stride: usize) -> Self {
        View { data, strides: [stride, 1], conjugate: false }
    }

    /// The transpose.
    #[must_use]
    pub fn transposed(self) -> Self {
        let [row, column] = self.strides;
        View { strides: [column, row], ..self }
    }

    /// The complex conjugate.
    #[must_use]
    pub fn conjugated(self) -> Self {
        View { conjugate: !self.conjugate, ..self }
    }

    fn holds(&self, rows: usize, columns: usize) -> bool {
        extent(self.strides, rows, columns).is_some_and(|extent| extent <= self.data.len())
    }
}

/// Elements from the first to the last.
fn extent([row, column]: [usize; 2], rows: usize, columns: usize) -> Option<usize> {
    let last = (rows - 1).checked_mul(row)?.checked_add((columns - 1).checked_mul(column)?)?;
    last.checked_add(1)
}

/// Writes `left * right` to `out`: `[m, k]` by `[k, n]`; the rows and columns of `out` are
/// `strides` apart. What lies between them is left alone.
///
/// # Panics
///
/// If the matrices don't hold so many elements, or elements of `out` aren't distinct.
pub fn multiply<T: Number>(
    sizes: [usize; 3],
    update: Update,
    left: View<'_, T>,
    right: View<'_, T>,
    out: (&mut [T], [usize; 2]),
) {
    let cost = cost::<T>(sizes[1]);
    multiply_at(sizes, update, left, right, out, cost);
}

/// `multiply` where an element of the result costs `cost`; on the calling thread if that is none.
///
/// # Panics
///
/// As `multiply`.
pub(super) fn multiply_at<T: Number>(
    [m, k, n]: [usize; 3],
    update: Update,
    left: View<'_, T>,
    right: View<'_, T>,
    (out, strides): (&mut [T], [usize; 2]),
    cost: Cost,
) {
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    assert!(left.holds(m, k) && right.holds(k, n));
    assert!(extent(strides, m, n).is_some_and(|extent| extent <= out.len()));
    let [row, column] = strides;
    let distinct = (m == 1 || row > 0) && (n == 1 || column > 0);
    assert!(distinct && (m == 1 || n == 1 || row > (n - 1) * column || column > (m - 1) * row));
    let operands = Operands {
        sizes: [m, k, n],
        left: (left.data.as_ptr(), left.strides, left.conjugate),
        right: (right.data.as_ptr(), right.strides, right.conjugate),
        out: (out.as_mut_ptr(), strides),
        adds: update != Update::Replace,
        negates: update == Update::Subtract,
    };
    // SAFETY: every element that the sizes and strides reach lies within the slices, as
    // just checked; those of `out` are distinct, and it is borrowed mutably, so that it
    // overlaps none of the others.
    unsafe { operands.multiply(cost) }
}

/// What an element of a product of `k` steps costs.
pub(super) fn cost<T>(k: usize) -> Cost {
    FLOAT * (k * size_of::<T>() / 4) as Cost
}

impl<T: Number> Operands<T> {
    /// # Safety
    ///
    /// As of `Number::product`.
    unsafe fn multiply(self, cost: Cost) {
        let [m, _, n] = self.sizes;
        parallel::install(m * n, cost, move |threads| {
            let parallelism = if threads > 1 { Parallelism::Rayon(threads) } else { Parallelism::None };
            // SAFETY: as the caller promises.
            unsafe { T::product(self, parallelism) };
        });
    }
}
