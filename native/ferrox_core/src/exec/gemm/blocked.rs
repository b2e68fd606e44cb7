//! Blocked products of large matrices, which large factorizations use as well.
//!
//! Technique: packing and register tiles as in GotoBLAS and BLIS (Goto and van de Geijn 2008,
//! "Anatomy of High-Performance Matrix Multiplication"), by the gemm crates for f32 and f64. This
//! file splits products into parts, one after the other or on several threads, such that threads
//! can pause between parts and the bits of a result don't depend on the number of threads. A
//! complex product is four real products, of the real and imaginary parts: gemm's own crates for
//! complex numbers would add a tenth to the compile time.

#![allow(
    unsafe_code,
    reason = "calls gemm, which takes pointers, and takes bytes that are aligned for numbers"
)]

use std::borrow::Cow;
use std::collections::TryReserveError;
use std::ops::{Add, Range};

use gemm_common::Parallelism;
use gemm_common::cache::CACHE_INFO;
use num_complex::Complex;

use crate::DType;
use crate::cost::{
    self, BLOCKED_F32_PRODUCT_COST, Cost, MAX_GEMM_PART_WORK, MEMORY_BYTE_COST, MIN_GEMM_ROWS_TO_SPLIT,
    ORDERED_WORD_COST, Work,
};
use crate::dtype::Lane;
use crate::exec::gemm::matrix::{MatrixBytes, ProductTarget};
use crate::exec::memory::{check_available, try_filled};
use crate::exec::simd::{self, CACHE_LINE_BYTES};
use crate::exec::threads::cooperative_yield::pause;
use crate::exec::threads::{cooperative_yield, parallel};

/// The cost of a multiplication and addition of floats of `width` bytes.
pub(in crate::exec) fn float_cost(width: usize) -> Cost {
    simd::vector_cost(BLOCKED_F32_PRODUCT_COST) * width as Cost / 4
}

/// An upper bound for the cost of a multiplication and addition of elements of a type.
#[must_use]
pub fn product_cost(dtype: DType) -> Cost {
    ORDERED_WORD_COST * dtype.width() as Cost / 8 + float_cost(size_of::<f32>())
}

/// A type of numbers that blocked products multiply.
pub trait Number: Copy + Send + Sync + Default + 'static {
    /// Computes a product; with `alone`, on the calling thread only.
    ///
    /// # Errors
    ///
    /// If there is no memory for copies of the operands. Then the elements of `out` are undetermined.
    ///
    /// # Safety
    ///
    /// All elements that the sizes and strides reach must be in memory. The elements of `out` must
    /// be distinct, and no other reference to them may be in use.
    unsafe fn product(operands: Operands<Self>, alone: bool) -> Result<(), TryReserveError>;
}

/// A matrix that is read: its first element, its strides, and whether its elements are conjugated.
type StridedOperand<T> = (*const T, [usize; 2], bool);

/// The operands and the result of a product.
#[derive(Clone, Copy, Debug)]
pub struct Operands<T> {
    sizes: [usize; 3],
    left: StridedOperand<T>,
    right: StridedOperand<T>,
    out: (*mut T, [usize; 2]),
    /// Whether the product is added to the elements of `out`, or replaces them.
    adds: bool,
    /// Whether the product is negated.
    negates: bool,
}

// SAFETY: the pointers stand for slices that stay borrowed, shared or mutably as they are used,
// while other threads have a copy, and `T` is `Send` and `Sync`.
unsafe impl<T: Number> Send for Operands<T> {}
// SAFETY: as above; threads write to disjoint parts of `out`.
unsafe impl<T: Number> Sync for Operands<T> {}

/// The maximum number of steps (terms of each sum) in one call of gemm. For up to so many steps,
/// gemm adds up each sum as one; for more, it splits sums in a way that depends on the sizes of the
/// product and of the machine's caches.
const MAX_STEPS_PER_GEMM_CALL: usize = 512;

/// gemm adds up the sums of a result with at most this many elements in another order where their terms are
/// next to each other, and also the sums of a single row or column. So no part is that small, unless the
/// whole result is.
const MAX_UNSPLIT_RESULT_ELEMENTS: usize = 256;

/// Whether gemm adds up each sum of a result of these sizes one term after the other, given for each operand
/// whether the terms of a sum are next to each other in memory.
pub(in crate::exec) fn adds_in_order([rows, columns]: [usize; 2], adjacent: [bool; 2]) -> bool {
    let is_small = rows.saturating_mul(columns) <= MAX_UNSPLIT_RESULT_ELEMENTS;
    rows > 1 && columns > 1 && !(is_small && adjacent == [true; 2])
}

/// gemm copies whole panels of at most this many rows or columns.
const GEMM_PANEL_ELEMENTS: usize = 128;

/// The grid of parts that the rows and columns of a result are split into.
#[derive(Clone, Copy)]
struct PartGrid {
    sizes: [usize; 2],
    cuts: [usize; 2],
    /// The number of elements in a cache line; parts begin at multiples of it.
    line: usize,
}

impl PartGrid {
    /// At least one part for each thread, and more parts if a part would be more work than
    /// `MAX_GEMM_PART_WORK`, where `cost` is the cost of an element of the result. Fewer parts if
    /// they would be too small.
    fn new(sizes: [usize; 2], line: usize, cost: Cost, threads: usize) -> Self {
        // The number of parts is a power of two. If the number of threads isn't, twice as many
        // parts balance the load.
        let least = if threads.is_power_of_two() { threads } else { 2 * threads };
        let mut grid = PartGrid { sizes, cuts: [1, 1], line };
        while let [rows, columns] = [0, 1].map(|axis| sizes[axis] / grid.cuts[axis])
            && (grid.parts() < least || cost::work(rows * columns, cost) > MAX_GEMM_PART_WORK)
        {
            let mut finer = grid;
            finer.cuts[usize::from(rows <= columns.min(MIN_GEMM_ROWS_TO_SPLIT))] *= 2;
            if finer.is_too_fine() {
                break;
            }
            grid = finer;
        }
        grid
    }

    fn parts(&self) -> usize {
        self.cuts[0] * self.cuts[1]
    }

    /// The start of the `number`-th part along an axis, which is the end of the part before it: the
    /// multiple of a line that is nearest to even parts.
    fn cut(&self, axis: usize, number: usize) -> usize {
        let (size, cuts, line) = (self.sizes[axis], self.cuts[axis], self.line);
        if number == cuts { size } else { (number * size / cuts + line / 2) / line * line }
    }

    fn is_too_fine(&self) -> bool {
        let [rows, columns] = [0, 1].map(|axis| {
            let sizes = (0..self.cuts[axis]).map(|i| self.cut(axis, i + 1).saturating_sub(self.cut(axis, i)));
            sizes.min().unwrap_or(0)
        });
        let short = |axis: usize, least: usize| self.cuts[axis] > 1 && least < self.line;
        short(0, rows) || short(1, columns) || rows * columns <= MAX_UNSPLIT_RESULT_ELEMENTS
    }

    /// The rows and columns of a part.
    fn part(&self, number: usize) -> [Range<usize>; 2] {
        let place = [number / self.cuts[1], number % self.cuts[1]];
        [0, 1].map(|axis| self.cut(axis, place[axis])..self.cut(axis, place[axis] + 1))
    }
}

impl<T: Number> Operands<T> {
    /// Calls `multiply` for the parts of the product, one after the other or on several threads.
    /// The order in which each sum is added up is the same either way.
    ///
    /// # Errors
    ///
    /// If there is no memory for the copies that gemm makes of parts of the operands.
    fn in_parts(self, alone: bool, multiply: impl Fn(Self) + Sync) -> Result<(), TryReserveError> {
        let [m, k, n] = self.sizes;
        let steps = k.div_ceil(k.div_ceil(MAX_STEPS_PER_GEMM_CALL));
        let multiply = |[rows, columns]: [&Range<usize>; 2], step: usize| {
            let part = self.part(rows, &(step..k.min(step + steps)), columns);
            part.check_memory()?;
            multiply(part);
            Ok(())
        };
        let cost = cost::<T>(k);
        if !parallel::is_worth_sharing(m * n, cost) {
            return (0..k).step_by(steps).try_for_each(|step| multiply([&(0..m), &(0..n)], step));
        }
        let threads = if alone { 1 } else { parallel::threads_for(m * n, cost) };
        let grid = PartGrid::new([m, n], CACHE_LINE_BYTES / size_of::<T>(), self::cost::<T>(steps), threads);
        let each = |part: usize| {
            let [rows, columns] = grid.part(part);
            for step in (0..k).step_by(steps) {
                multiply([&rows, &columns], step)?;
                pause();
            }
            Ok(())
        };
        let cost = if alone { 0 } else { cost };
        parallel::try_each(m * n, cost, 0..grid.parts(), each)
    }

    /// Checks that there is memory for the copies that gemm makes of the operands.
    ///
    /// # Errors
    ///
    /// If there is too little memory.
    fn check_memory(&self) -> Result<(), TryReserveError> {
        let [m, k, n] = self.sizes;
        let lines = m.saturating_add(n).saturating_add(2 * GEMM_PANEL_ELEMENTS);
        let copies = lines.saturating_mul(k).saturating_mul(size_of::<T>());
        // Each thread has a buffer for parts of large copies, which its first such product allocates.
        let buffer = CACHE_INFO[1].cache_bytes;
        check_available(if copies < buffer / 4 { copies } else { copies.saturating_add(buffer) })
    }

    /// The product of some rows and columns over some steps, added to the steps before.
    fn part(self, rows: &Range<usize>, steps: &Range<usize>, columns: &Range<usize>) -> Self {
        let (from, strides, is_transposed) = self.left;
        let left =
            (from.wrapping_add(rows.start * strides[0] + steps.start * strides[1]), strides, is_transposed);
        let (from, strides, is_transposed) = self.right;
        let right = (
            from.wrapping_add(steps.start * strides[0] + columns.start * strides[1]),
            strides,
            is_transposed,
        );
        let (to, strides) = self.out;
        Operands {
            sizes: [rows.len(), steps.len(), columns.len()],
            left,
            right,
            out: (to.wrapping_add(rows.start * strides[0] + columns.start * strides[1]), strides),
            adds: self.adds || steps.start > 0,
            ..self
        }
    }

    /// The transposed product: the same elements, with rows and columns swapped.
    fn transposed(self) -> Self {
        let [m, k, n] = self.sizes;
        let transpose =
            |(first, [row, column], conjugate): StridedOperand<T>| (first, [column, row], conjugate);
        let (out, [row, column]) = self.out;
        Operands {
            sizes: [n, k, m],
            left: transpose(self.right),
            right: transpose(self.left),
            out: (out, [column, row]),
            ..self
        }
    }
}

macro_rules! number {
    ($($t:ty, $gemm:path;)*) => {$(
        impl Number for $t {
            unsafe fn product(operands: Operands<Self>, alone: bool) -> Result<(), TryReserveError> {
                // gemm's inner loops go down the columns of the result.
                let is_transposed = operands.out.1[1] < operands.out.1[0];
                let operands = if is_transposed { operands.transposed() } else { operands };
                operands.in_parts(alone, |Operands { sizes: [m, k, n], left, right, out, adds, negates }| {
                    let strides = |strides: [usize; 2]| strides.map(|stride| stride as isize);
                    let ([lr, lc], [rr, rc], [or, oc]) = (strides(left.1), strides(right.1), strides(out.1));
                    let factor = if negates { -1.0 } else { 1.0 };
                    // SAFETY: the caller's contract holds for the parts of its product, too.
                    unsafe {
                        $gemm()(
                            m, n, k, out.0, oc, or, adds, left.0, lc, lr, right.0, rc, rr, 1.0, factor,
                            false, false, false, Parallelism::None,
                        );
                    }
                })
            }
        }
    )*};
}
number! {
    f32, gemm_f32::gemm::f32::get_gemm_fn;
    f64, gemm_f64::gemm::f64::get_gemm_fn;
}

/// Complex products of fewer multiplications read and write real and imaginary parts in place, with
/// strides; larger products copy them to separate matrices first.
const MIN_PRODUCTS_TO_SEPARATE: usize = 1 << 14;

impl<R: Number + Add<Output = R>> Number for Complex<R> {
    unsafe fn product(operands: Operands<Self>, alone: bool) -> Result<(), TryReserveError> {
        let Operands { sizes: [m, k, n], left, right, out: (out, strides), adds, negates } = operands;
        let separate = m * k * n >= MIN_PRODUCTS_TO_SEPARATE;
        let mut memory = [Vec::new(), Vec::new(), Vec::new()];
        let [of_left, of_right, totals] = &mut memory;
        // SAFETY: the caller's contract covers every element of both operands.
        let (lefts, rights) =
            unsafe { (parts(left, [m, k], separate, of_left)?, parts(right, [k, n], separate, of_right)?) };
        let twice = strides.map(|stride| 2 * stride);
        let here = [0, 1].map(|part| (out.cast::<R>().wrapping_add(part), twice));
        let outs = if separate {
            *totals = try_filled(2 * m * n, R::default())?;
            let first = totals.as_mut_ptr();
            [0, m * n].map(|part| (first.wrapping_add(part), [n, 1]))
        } else {
            here
        };
        // The products of both real parts, of both imaginary parts, and of one of each.
        for (l, r) in [(0, 0), (1, 1), (0, 1), (1, 0)] {
            let product = Operands {
                sizes: [m, k, n],
                left: lefts[l],
                right: rights[r],
                out: outs[usize::from(l != r)],
                adds: adds && !separate || l == 1,
                // The square of the imaginary unit is negative, and so are conjugated imaginary
                // parts.
                negates: negates ^ (l == 1 && r == 1) ^ (l == 1 && left.2) ^ (r == 1 && right.2),
            };
            // SAFETY: the elements are those of the caller's contract, or in memory that has just
            // been allocated for them.
            unsafe { R::product(product, alone)? };
        }
        if separate {
            let (re, im) = totals.split_at(m * n);
            for (i, (re, im)) in re.chunks_exact(n).zip(im.chunks_exact(n)).enumerate() {
                let put = |step: usize| {
                    for (j, (&re, &im)) in re.iter().zip(im).enumerate() {
                        // SAFETY: the caller's contract covers every element of `out`.
                        let slot = unsafe { &mut *out.add(i * strides[0] + j * step) };
                        let sum = |slot: Complex<R>| Complex::new(slot.re + re, slot.im + im);
                        *slot = if adds { sum(*slot) } else { Complex::new(re, im) };
                    }
                };
                if strides[1] == 1 {
                    put(1)
                } else {
                    put(strides[1])
                }
                cooperative_yield::after(separation_cost::<R>(n));
            }
        }
        Ok(())
    }
}

/// The cost of separating `length` complex numbers into real and imaginary parts, or of combining
/// them again.
fn separation_cost<R>(length: usize) -> Work {
    cost::work(length, (4 * MEMORY_BYTE_COST) * size_of::<R>() as Cost)
}

/// The real and the imaginary parts of a matrix as two matrices: with `separate`, copied to `own`
/// without gaps; otherwise in place.
///
/// # Errors
///
/// If there is no memory for the copy: sums of parts in place have another order.
///
/// # Safety
///
/// All elements that the sizes and strides reach must be in memory.
unsafe fn parts<R: Number>(
    (first, strides, _): StridedOperand<Complex<R>>,
    [rows, columns]: [usize; 2],
    separate: bool,
    own: &mut Vec<R>,
) -> Result<[StridedOperand<R>; 2], TryReserveError> {
    let size = rows * columns;
    if !separate {
        let twice = strides.map(|stride| 2 * stride);
        return Ok([0, 1].map(|part| (first.cast::<R>().wrapping_add(part), twice, false)));
    }
    own.try_reserve_exact(2 * size)?;
    let [row, column] = strides;
    let (lines, length, line, step, strides) = if row >= column {
        (rows, columns, row, column, [columns, 1])
    } else {
        (columns, rows, column, row, [1, rows])
    };
    for part in 0..2 {
        let first = first.cast::<R>().wrapping_add(part);
        for i in 0..lines {
            // SAFETY: the caller's contract covers the element, and a complex number is its real
            // part followed by its imaginary part.
            let at = |j: usize, step: usize| unsafe { *first.add(2 * (i * line + j * step)) };
            // The compiler vectorizes the loop with the constant step.
            if step == 1 {
                own.extend((0..length).map(|j| at(j, 1)));
            } else {
                own.extend((0..length).map(|j| at(j, step)));
            }
            cooperative_yield::after(separation_cost::<R>(length));
        }
    }
    let first = own.as_ptr();
    Ok([0, size].map(|part| (first.wrapping_add(part), strides, false)))
}

/// How a product changes the elements of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// The product replaces them.
    Replace,
    /// The product is added to them.
    Add,
    /// The product is subtracted from them.
    Subtract,
}

/// A block of a row-major matrix: a range of rows and a range of columns.
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

    /// The index of the first element in a matrix of `length` elements, with rows of `stride`
    /// elements. Returns `None` if the block isn't within the matrix.
    fn within(&self, length: usize, stride: usize) -> Option<usize> {
        let first = self.rows.start.checked_mul(stride)?.checked_add(self.columns.start)?;
        let last = self.rows.end.checked_sub(1)?.checked_mul(stride)?.checked_add(self.columns.end)?;
        (self.columns.end <= stride && last <= length).then_some(first)
    }

    /// Returns whether two blocks overlap.
    fn meets(&self, other: &Self) -> bool {
        let disjoint = |a: &Range<usize>, b: &Range<usize>| a.end <= b.start || b.end <= a.start;
        !disjoint(&self.rows, &other.rows) && !disjoint(&self.columns, &other.columns)
    }
}

/// How the right operand of a product is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// As it is.
    Plain,
    /// As its conjugate transpose.
    Adjoint,
}

/// `out -= left * right` for blocks of one matrix, whose rows begin `stride` elements apart.
///
/// # Errors
///
/// If there is no memory for copies of the operands.
///
/// # Panics
///
/// If a block isn't within the matrix, `out` overlaps another block, or the sizes don't match.
pub fn subtract_within<T: Number>(
    data: &mut [T],
    stride: usize,
    out: &Block,
    left: &Block,
    right: (&Block, Right),
) -> Result<(), TryReserveError> {
    let ([m, n], [rows, k]) = (out.sizes(), left.sizes());
    let (right, how) = right;
    let is_transposed = how == Right::Adjoint;
    let [mut inner, mut columns] = right.sizes();
    if is_transposed {
        (inner, columns) = (columns, inner);
    }
    assert!(rows == m && inner == k && columns == n && !out.meets(left) && !out.meets(right));
    if m == 0 || n == 0 || k == 0 {
        return Ok(());
    }
    let place = |block: &Block| {
        let place = block.within(data.len(), stride);
        assert!(place.is_some());
        place.unwrap_or_default()
    };
    let (first, left, right) = (place(out), place(left), place(right));
    let data = data.as_mut_ptr();
    // SAFETY: the blocks are within `data`, as just checked, and so are their first elements.
    let (out, left, right) = unsafe { (data.add(first), data.add(left), data.add(right)) };
    let right_strides = if is_transposed { [1, stride] } else { [stride, 1] };
    let operands = Operands {
        sizes: [m, k, n],
        left: (left.cast_const(), [stride, 1], false),
        right: (right.cast_const(), right_strides, is_transposed),
        out: (out, [stride, 1]),
        adds: true,
        negates: true,
    };
    // SAFETY: every element that the sizes and strides reach is in a block, the blocks are within
    // `data`, which is borrowed mutably, and `out` overlaps no other block.
    unsafe { T::product(operands, false) }
}

/// A matrix in memory: the element at (row, column) has the index
/// `row * strides[0] + column * strides[1]`.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    /// The elements, from the first one on.
    pub data: &'a [T],
    /// The distance between rows and between columns, in elements.
    pub strides: [usize; 2],
    /// Whether the elements are conjugated when they are read.
    pub conjugate: bool,
}

impl<'a, T> View<'a, T> {
    /// A row-major matrix whose rows begin `stride` elements apart.
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

    /// Returns whether all elements of a matrix of this size are within `data`.
    fn holds(&self, rows: usize, columns: usize) -> bool {
        extent(self.strides, rows, columns).is_some_and(|extent| extent <= self.data.len())
    }
}

/// The number of elements from the first to the last one; `None` if it overflows.
fn extent([row, column]: [usize; 2], rows: usize, columns: usize) -> Option<usize> {
    let last = (rows - 1).checked_mul(row)?.checked_add((columns - 1).checked_mul(column)?)?;
    last.checked_add(1)
}

/// Updates `out` with `left * right`, matrices of `[m, k]` and `[k, n]`. `out` is the memory of the
/// result and its strides; memory between its elements isn't written.
///
/// # Errors
///
/// If there is no memory for copies of the operands.
///
/// # Panics
///
/// If a matrix is smaller than its size, or two elements of `out` are the same.
pub fn multiply<T: Number>(
    sizes: [usize; 3],
    update: Update,
    left: View<'_, T>,
    right: View<'_, T>,
    out: (&mut [T], [usize; 2]),
) -> Result<(), TryReserveError> {
    multiply_at(sizes, update, left, right, out, false)
}

/// `multiply`; with `alone`, on the calling thread only.
///
/// # Errors
///
/// As `multiply`.
///
/// # Panics
///
/// As `multiply`.
pub(in crate::exec) fn multiply_at<T: Number>(
    [m, k, n]: [usize; 3],
    update: Update,
    left: View<'_, T>,
    right: View<'_, T>,
    (out, strides): (&mut [T], [usize; 2]),
    alone: bool,
) -> Result<(), TryReserveError> {
    if m == 0 || n == 0 || k == 0 {
        return Ok(());
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
    // SAFETY: every element that the sizes and strides reach is within the slices, as just checked.
    // The elements of `out` are distinct, and `out` is borrowed mutably, so that it overlaps
    // neither operand.
    unsafe { T::product(operands, alone) }
}

/// `out = left * right` for floats and complex numbers, matrices of `[m, k]` and `[k, n]`. All
/// sizes are at least one.
///
/// # Errors
///
/// If there is no memory for copies of the operands.
pub fn multiply_floats(
    dtype: DType,
    [m, k, n]: [usize; 3],
    left: MatrixBytes<'_>,
    right: MatrixBytes<'_>,
    out: ProductTarget<'_>,
) -> Result<(), TryReserveError> {
    match dtype {
        DType::F32 => multiply_bytes::<f32>([m, k, n], left, right, out),
        DType::F64 => multiply_bytes::<f64>([m, k, n], left, right, out),
        DType::C64 => multiply_bytes::<Complex<f32>>([m, k, n], left, right, out),
        DType::C128 => multiply_bytes::<Complex<f64>>([m, k, n], left, right, out),
        other => unreachable!("{other} is converted before"),
    }
}

fn multiply_bytes<T: Number + Lane>(
    [m, k, n]: [usize; 3],
    left: MatrixBytes<'_>,
    right: MatrixBytes<'_>,
    out: ProductTarget<'_>,
) -> Result<(), TryReserveError> {
    let width = size_of::<T>();
    assert!(left.holds(m, k, width) && right.holds(k, n, width));
    let ProductTarget { bytes: out, strides, alone } = out;
    let (lhs, rhs) = (aligned::<T>(left.bytes)?, aligned::<T>(right.bytes)?);
    let view = |data, strides| View { data, strides, conjugate: false };
    let (lhs, rhs) = (view(&lhs, left.strides), view(&rhs, right.strides));
    let multiply =
        |out: &mut [T], strides| multiply_at([m, k, n], Update::Replace, lhs, rhs, (out, strides), alone);
    // SAFETY: `T` has no invalid bit patterns, and the middle part of `align_to_mut` is aligned.
    let (before, aligned, after) = unsafe { out.align_to_mut::<T>() };
    if before.is_empty() && after.is_empty() {
        multiply(aligned, strides)?;
    } else {
        let mut own = try_filled(m * n, T::default())?;
        multiply(&mut own, [n, 1])?;
        let out = T::view_mut(out);
        for (row, values) in own.chunks_exact(n).enumerate() {
            for (column, value) in values.iter().enumerate() {
                out[row * strides[0] + column * strides[1]] = value.store();
            }
        }
    }
    Ok(())
}

/// The elements in place if they are aligned, else a copy.
fn aligned<T: Number + Lane>(bytes: &[u8]) -> Result<Cow<'_, [T]>, TryReserveError> {
    // SAFETY: `T` has no invalid bit patterns, and the middle part of `align_to` is aligned.
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

/// The cost of an element of the result over `k` steps.
fn cost<T>(k: usize) -> Cost {
    float_cost(size_of::<T>()) * k as Cost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_of_a_result_and_none_is_too_small() {
        for sizes in
            [[1, 5000], [17, 33], [63, 63], [64, 64], [65, 257], [94, 300], [1000, 1000], [5, 90_001]]
        {
            for line in [8, 16] {
                for (cost, threads) in [(1, 1), (1, 2), (1, 6), (1, 500), (1_000_000, 4)] {
                    let grid = PartGrid::new(sizes, line, cost, threads);
                    let mut elements = 0;
                    for part in (0..grid.parts()).map(|part| grid.part(part)) {
                        let [rows, columns] = [part[0].len(), part[1].len()];
                        elements += rows * columns;
                        for (part, size) in part.iter().zip(sizes) {
                            assert!(part.len() == size || part.len() >= line, "{part:?} of {sizes:?}");
                            assert_eq!(part.start % line, 0);
                        }
                        assert!(
                            grid.parts() == 1 || rows * columns > MAX_UNSPLIT_RESULT_ELEMENTS,
                            "{part:?} of {sizes:?}"
                        );
                    }
                    assert_eq!(elements, sizes[0] * sizes[1]);
                }
            }
        }
        assert_eq!(PartGrid::new([1000, 1000], 16, 1, 3).parts(), 8);
        assert_eq!(PartGrid::new([94, 94], 16, 1, 2).part(1), [0..94, 48..94]);
        assert_eq!(PartGrid::new([63, 63], 16, 1, 2).parts(), 2);
        assert_eq!(PartGrid::new([1000, 1000], 16, MAX_GEMM_PART_WORK / 250_000, 1).parts(), 4);
    }
}
