//! Products of blocks of matrices of f64 and complex numbers, added to what is
//! there: what factorizations spend their time in. They are the gemm crate's.

#![allow(unsafe_code, reason = "calls gemm, which takes pointers")]

use std::ops::Range;

use gemm::Parallelism;
use num_complex::Complex;

use crate::exec::matmul::FLOAT;
use crate::exec::parallel::{self, Cost};

/// A number that blocks hold.
pub trait Number: Copy + Send + Sync + Default + std::ops::Neg<Output = Self> + 'static {
    /// One.
    const UNIT: Self;
}
impl Number for f64 {
    const UNIT: Self = 1.0;
}
impl Number for Complex<f64> {
    const UNIT: Self = Complex::ONE;
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
        left: (left.cast_const(), [stride, 1], false),
        right: (right.cast_const(), right_strides, turned),
        out: (out, [stride, 1]),
        factor: -T::UNIT,
    };
    // SAFETY: every element that the sizes and strides reach lies in a block, and the
    // blocks within `data`, which is borrowed mutably; `out` overlaps none of the
    // others.
    unsafe { operands.add_product([m, k, n]) }
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

/// `out += factor * left * right`: `[m, k]` by `[k, n]`; the rows of `out` begin `stride`
/// elements apart.
///
/// # Panics
///
/// If the matrices don't hold so many elements.
pub fn add_product<T: Number>(
    [m, k, n]: [usize; 3],
    factor: T,
    left: View<'_, T>,
    right: View<'_, T>,
    (out, stride): (&mut [T], usize),
) {
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    assert!(left.holds(m, k) && right.holds(k, n) && (m == 1 || stride >= n));
    assert!(extent([stride, 1], m, n).is_some_and(|extent| extent <= out.len()));
    let operands = Operands {
        left: (left.data.as_ptr(), left.strides, left.conjugate),
        right: (right.data.as_ptr(), right.strides, right.conjugate),
        out: (out.as_mut_ptr(), [stride, 1]),
        factor,
    };
    // SAFETY: every element that the sizes and strides reach lies within the slices, as
    // just checked; those of `out` are distinct, and it is borrowed mutably, so that it
    // overlaps none of the others.
    unsafe { operands.add_product([m, k, n]) }
}

/// Where a product is read and written.
#[derive(Clone, Copy)]
struct Operands<T> {
    left: (*const T, [usize; 2], bool),
    right: (*const T, [usize; 2], bool),
    out: (*mut T, [usize; 2]),
    factor: T,
}

// SAFETY: it stands for slices that are alive, and borrowed as it uses them, while
// another thread has it; and `T` may be shared.
unsafe impl<T: Number> Send for Operands<T> {}

impl<T: Number> Operands<T> {
    /// # Safety
    ///
    /// What the sizes and strides reach must be there, and nothing else may refer to
    /// what is reached of `out`, whose elements are distinct.
    unsafe fn add_product(self, [m, k, n]: [usize; 3]) {
        let cost = FLOAT * (k * size_of::<T>() / 4) as Cost;
        parallel::install(m * n, cost, move |threads| {
            let Operands { left, right, out, factor } = { self };
            let parallelism = if threads > 1 { Parallelism::Rayon(threads) } else { Parallelism::None };
            let strides = |strides: [usize; 2]| strides.map(|stride| stride as isize);
            let ([lr, lc], [rr, rc], [or, oc]) = (strides(left.1), strides(right.1), strides(out.1));
            // SAFETY: as the caller promises; `T` is one of the types that gemm accepts.
            unsafe {
                gemm::gemm(
                    m,
                    n,
                    k,
                    out.0,
                    oc,
                    or,
                    true,
                    left.0,
                    lc,
                    lr,
                    right.0,
                    rc,
                    rr,
                    T::UNIT,
                    factor,
                    false,
                    left.2,
                    right.2,
                    parallelism,
                );
            }
        });
    }
}
