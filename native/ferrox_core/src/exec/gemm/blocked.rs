//! Products of blocks of matrices: what large products and factorizations spend
//! their time in.
//!
//! They are those of the gemm crates for f32 and f64. A product of complex numbers is
//! four of them, of real and imaginary parts: gemm's own crates for them would take a
//! tenth of the time that all of this takes to compile.

#![allow(unsafe_code, reason = "calls gemm, which takes pointers")]

use std::convert::Infallible;
use std::ops::{Add, Range};

use gemm_common::Parallelism;
use num_complex::Complex;

use crate::exec::memory::recycling_allocator::filled;
use crate::exec::simd::{self, CACHE_LINE_BYTES};
use crate::exec::threads::cooperative_yield::pause;
use crate::exec::threads::parallel::{BYTE, Cost, Work};
use crate::exec::threads::{cooperative_yield, parallel};

/// What a multiplication and addition of so many bytes costs.
pub(in crate::exec) fn float_cost(width: usize) -> Cost {
    simd::vector_cost(10) * width as Cost / 4
}

/// A number that blocks hold.
pub trait Number: Copy + Send + Sync + Default + 'static {
    /// Computes a product, on the calling thread if it is `alone`.
    ///
    /// # Safety
    ///
    /// What the sizes and strides reach must be there, and nothing else may refer to
    /// what is reached of `out`, whose elements are distinct.
    unsafe fn product(operands: Operands<Self>, alone: bool);
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
// other threads have it; and `T` may be shared.
unsafe impl<T: Number> Send for Operands<T> {}
// SAFETY: as above; no part of `out` is another's.
unsafe impl<T: Number> Sync for Operands<T> {}

/// Steps that are added up at a time, at most. Of no more than these, gemm makes one sum each, and
/// of more as many as suit the sizes of the product and of the machine's caches.
const STEPS: usize = 512;

/// Work of a part of a product over so many steps, at most, so that a thread can pause between
/// two. The fewer parts the better, as each packs what it needs of both sides: those of 2048 rows and
/// columns take 5% longer than the whole, and those of half the size 8%.
const PART: Work = 1_500_000_000;

/// Elements of a result of which gemm makes sums in an order of its own, at most. It does so for
/// one row or column, too: no part is as small, unless the whole is.
const FEW: usize = 256;

/// Rows that are cut, at least, where the rest of a part has more columns: of these, gemm packs more.
const ROWS: usize = 128;

/// How rows and columns of a result are cut into parts.
#[derive(Clone, Copy)]
struct Grid {
    sizes: [usize; 2],
    cuts: [usize; 2],
    /// Elements of 64 bytes; parts begin at multiples of it.
    line: usize,
}

impl Grid {
    /// Parts for some threads, and more where these are more work than `PART`, if an element costs
    /// so much; fewer where these would be too small.
    fn new(sizes: [usize; 2], line: usize, cost: Cost, threads: usize) -> Self {
        // Parts are doubled: where they can't be as many as threads, more even these out.
        let least = if threads.is_power_of_two() { threads } else { 2 * threads };
        let mut grid = Grid { sizes, cuts: [1, 1], line };
        while let [rows, columns] = [0, 1].map(|axis| sizes[axis] / grid.cuts[axis])
            && (grid.parts() < least || parallel::work(rows * columns, cost) > PART)
        {
            let mut finer = grid;
            finer.cuts[usize::from(rows <= columns.min(ROWS))] *= 2;
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

    /// Where the part of this number along an axis begins, and the one before it ends: at a multiple
    /// of a line, as near as can be to even parts.
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
        short(0, rows) || short(1, columns) || rows * columns <= FEW
    }

    /// Rows and columns of a part.
    fn part(&self, number: usize) -> [Range<usize>; 2] {
        let place = [number / self.cuts[1], number % self.cuts[1]];
        [0, 1].map(|axis| self.cut(axis, place[axis])..self.cut(axis, place[axis] + 1))
    }
}

impl<T: Number> Operands<T> {
    /// Multiplies parts, one after the other or on several threads, which changes nothing in how a
    /// sum is made.
    fn in_parts(self, alone: bool, multiply: impl Fn(Self) + Sync) {
        let [m, k, n] = self.sizes;
        let steps = k.div_ceil(k.div_ceil(STEPS));
        let multiply = |[rows, columns]: [&Range<usize>; 2], step: usize| {
            multiply(self.part(rows, &(step..k.min(step + steps)), columns));
        };
        let cost = cost::<T>(k);
        if !parallel::is_worth_sharing(m * n, cost) {
            return (0..k).step_by(steps).for_each(|step| multiply([&(0..m), &(0..n)], step));
        }
        let threads = if alone { 1 } else { parallel::sharers(m * n, cost) };
        let grid = Grid::new([m, n], CACHE_LINE_BYTES / size_of::<T>(), self::cost::<T>(steps), threads);
        let each = |part: usize| {
            let [rows, columns] = grid.part(part);
            for step in (0..k).step_by(steps) {
                multiply([&rows, &columns], step);
                pause();
            }
            Ok(())
        };
        let cost = if alone { 0 } else { cost };
        let Ok(()) = parallel::try_each::<_, Infallible>(m * n, cost, 0..grid.parts(), each);
    }

    /// Some rows, steps and columns of it.
    fn part(self, rows: &Range<usize>, steps: &Range<usize>, columns: &Range<usize>) -> Self {
        let (from, strides, turned) = self.left;
        let left = (from.wrapping_add(rows.start * strides[0] + steps.start * strides[1]), strides, turned);
        let (from, strides, turned) = self.right;
        let right =
            (from.wrapping_add(steps.start * strides[0] + columns.start * strides[1]), strides, turned);
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

    /// The same elements with rows for columns.
    fn transposed(self) -> Self {
        let [m, k, n] = self.sizes;
        let turn = |(first, [row, column], conjugate): Side<T>| (first, [column, row], conjugate);
        let (out, [row, column]) = self.out;
        Operands {
            sizes: [n, k, m],
            left: turn(self.right),
            right: turn(self.left),
            out: (out, [column, row]),
            ..self
        }
    }
}

macro_rules! number {
    ($($t:ty, $gemm:path;)*) => {$(
        impl Number for $t {
            unsafe fn product(operands: Operands<Self>, alone: bool) {
                // Its loops go down the columns of the result.
                let turned = operands.out.1[1] < operands.out.1[0];
                let operands = if turned { operands.transposed() } else { operands };
                operands.in_parts(alone, |Operands { sizes: [m, k, n], left, right, out, adds, negates }| {
                    let strides = |strides: [usize; 2]| strides.map(|stride| stride as isize);
                    let ([lr, lc], [rr, rc], [or, oc]) = (strides(left.1), strides(right.1), strides(out.1));
                    let factor = if negates { -1.0 } else { 1.0 };
                    // SAFETY: as the caller promises, of parts of what it has.
                    unsafe {
                        $gemm()(
                            m, n, k, out.0, oc, or, adds, left.0, lc, lr, right.0, rc, rr, 1.0, factor,
                            false, false, false, Parallelism::None,
                        );
                    }
                });
            }
        }
    )*};
}
number! {
    f32, gemm_f32::gemm::f32::get_gemm_fn;
    f64, gemm_f64::gemm::f64::get_gemm_fn;
}

/// Products of fewer steps read parts where they are, rather than from matrices of their own.
const APART: usize = 1 << 14;

impl<R: Number + Add<Output = R>> Number for Complex<R> {
    unsafe fn product(operands: Operands<Self>, alone: bool) {
        let Operands { sizes: [m, k, n], left, right, out: (out, strides), adds, negates } = operands;
        let apart = m * k * n >= APART;
        let mut memory = [Vec::new(), Vec::new(), Vec::new()];
        let [of_left, of_right, totals] = &mut memory;
        // SAFETY: as the caller promises.
        let (lefts, rights) =
            unsafe { (parts(left, [m, k], apart, of_left), parts(right, [k, n], apart, of_right)) };
        let twice = strides.map(|stride| 2 * stride);
        let here = [0, 1].map(|part| (out.cast::<R>().wrapping_add(part), twice));
        let own = apart && filled(2 * m * n, R::default()).map(|zeros| *totals = zeros).is_ok();
        let outs = if own {
            let first = totals.as_mut_ptr();
            [0, m * n].map(|part| (first.wrapping_add(part), [n, 1]))
        } else {
            here
        };
        // Of real parts, of imaginary ones, and of each with the other.
        for (l, r) in [(0, 0), (1, 1), (0, 1), (1, 0)] {
            let product = Operands {
                sizes: [m, k, n],
                left: lefts[l],
                right: rights[r],
                out: outs[usize::from(l != r)],
                adds: adds && !own || l == 1,
                // The square of the imaginary unit is negative, and so is its conjugate.
                negates: negates ^ (l == 1 && r == 1) ^ (l == 1 && left.2) ^ (r == 1 && right.2),
            };
            // SAFETY: as the caller promises, or in memory that has just been taken for it.
            unsafe { R::product(product, alone) };
        }
        if own {
            let (re, im) = totals.split_at(m * n);
            for (i, (re, im)) in re.chunks_exact(n).zip(im.chunks_exact(n)).enumerate() {
                let put = |step: usize| {
                    for (j, (&re, &im)) in re.iter().zip(im).enumerate() {
                        // SAFETY: as the caller promises.
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
                cooperative_yield::after(line_cost::<R>(n));
            }
        }
    }
}

/// What it costs to take so many complex numbers apart, or to put them together.
fn line_cost<R>(length: usize) -> Work {
    parallel::work(length, (4 * BYTE) * size_of::<R>() as Cost)
}

/// The real and the imaginary parts of a matrix: in `own`, line by line, or where they are if not
/// `apart`, or without memory.
///
/// # Safety
///
/// What the sizes and strides reach must be there.
unsafe fn parts<R: Number>(
    (first, strides, _): Side<Complex<R>>,
    [rows, columns]: [usize; 2],
    apart: bool,
    own: &mut Vec<R>,
) -> [Side<R>; 2] {
    let size = rows * columns;
    if !apart || own.try_reserve_exact(2 * size).is_err() {
        let twice = strides.map(|stride| 2 * stride);
        return [0, 1].map(|part| (first.cast::<R>().wrapping_add(part), twice, false));
    }
    let [row, column] = strides;
    let (lines, length, line, step, strides) = if row >= column {
        (rows, columns, row, column, [columns, 1])
    } else {
        (columns, rows, column, row, [1, rows])
    };
    for part in 0..2 {
        let first = first.cast::<R>().wrapping_add(part);
        for i in 0..lines {
            // SAFETY: as the caller promises; a complex number is its two parts.
            let at = |j: usize, step: usize| unsafe { *first.add(2 * (i * line + j * step)) };
            // Where the compiler knows that they lie side by side, it makes vectors of them.
            if step == 1 {
                own.extend((0..length).map(|j| at(j, 1)));
            } else {
                own.extend((0..length).map(|j| at(j, step)));
            }
            cooperative_yield::after(line_cost::<R>(length));
        }
    }
    let first = own.as_ptr();
    [0, size].map(|part| (first.wrapping_add(part), strides, false))
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
    unsafe { T::product(operands, false) }
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
    multiply_at(sizes, update, left, right, out, false);
}

/// `multiply`, on the calling thread if it is `alone`.
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
    unsafe { T::product(operands, alone) }
}

/// What an element of a product of `k` steps costs.
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
                    let grid = Grid::new(sizes, line, cost, threads);
                    let mut elements = 0;
                    for part in (0..grid.parts()).map(|part| grid.part(part)) {
                        let [rows, columns] = [part[0].len(), part[1].len()];
                        elements += rows * columns;
                        for (part, size) in part.iter().zip(sizes) {
                            assert!(part.len() == size || part.len() >= line, "{part:?} of {sizes:?}");
                            assert_eq!(part.start % line, 0);
                        }
                        assert!(grid.parts() == 1 || rows * columns > FEW, "{part:?} of {sizes:?}");
                    }
                    assert_eq!(elements, sizes[0] * sizes[1]);
                }
            }
        }
        assert_eq!(Grid::new([1000, 1000], 16, 1, 3).parts(), 8);
        assert_eq!(Grid::new([94, 94], 16, 1, 2).part(1), [0..94, 48..94]);
        assert_eq!(Grid::new([63, 63], 16, 1, 2).parts(), 2);
        assert_eq!(Grid::new([1000, 1000], 16, PART / 250_000, 1).parts(), 4);
    }
}
