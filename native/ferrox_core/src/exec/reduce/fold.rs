//! Folds of rows and columns, such as sums, in a fixed order.
//!
//! Problem: a result must have the same bits for any number of threads and any vector width.
//! Technique: the order of the operations depends only on the length of the row. A long row is cut
//! into blocks of a fixed length. A block is folded into a fixed number of stripes (accumulators):
//! element `i` into stripe `i % STRIPES`; then the stripes are folded as a binary tree, the first
//! half of them with the second half, and so on. The rounding errors of a sum grow as slowly as in
//! blocked and pairwise summation (Higham, "Accuracy and Stability of Numerical Algorithms",
//! chapter 4). Rows shorter than two elements per stripe are folded from left to right, as Nx's own
//! backend does.

use std::marker::PhantomData;

use crate::cost::{MIN_BYTES_FOR_COLUMN_PREFETCH, MIN_TRANSPOSED_ROW_ELEMENTS, MIN_TRANSPOSED_ROWS};
use crate::dtype::minifloat::BF16;
use crate::dtype::{Element, Lane};
use crate::exec::convert::{CastOf, Map, NarrowFloat};
use crate::exec::copy::transpose::{self, ROWS_PER_BLOCK};
use crate::exec::simd::{Vectorized, dispatch as vectorize, prefetch, prefetch_ahead, prefetch_row};

/// The number of stripes, accumulators side by side: enough vectors to hide the latency of an
/// addition.
pub(crate) const STRIPES: usize = 32;

/// The number of elements from which a row is folded in stripes; others are folded from left to right.
pub(crate) const MIN_STRIPED_ELEMENTS: usize = 2 * STRIPES;

/// The number of elements in a block of a long row; the results of blocks are folded afterwards.
pub const REDUCTION_BLOCK_ELEMENTS: usize = 1 << 16;

/// The binary operation that a reduction folds elements with.
pub trait Fold<L: Lane>: 'static {
    /// Whether the order of the elements makes no difference to the result.
    const ANY_ORDER: bool = false;
    /// The neutral element.
    fn start() -> L;
    /// Folds one more element, the right operand.
    fn fold(accumulated: L, next: L) -> L;
}

/// A float that becomes NaN if another float is NaN, for minima and maxima by comparisons.
pub(crate) trait OrNan {
    /// Returns the float, or NaN if `other` is NaN, by setting all bits. A selection of `other`
    /// would be equivalent, but where `other` is the value in memory, the compiler turns it into a
    /// masked store, which is much slower on some processors.
    fn or_nan(self, other: Self) -> Self;
}
macro_rules! or_nan {
    ($($t:ty, $bits:ty;)*) => {$(
        impl OrNan for $t {
            #[inline(always)]
            fn or_nan(self, other: $t) -> $t {
                <$t>::from_bits(self.to_bits() | if other.is_nan() { <$bits>::MAX } else { 0 })
            }
        }
    )*};
}
or_nan!(f32, u32; f64, u64;);

/// Folds rows. Takes the elements, the number of elements in a row, and one lane per row for the
/// results.
pub type FoldRows = fn(&[u8], usize, &mut [u8]);

/// Folds columns. Takes the elements from the first one of the first column on, the stride from one
/// row to the next in elements, and one lane per column for the results.
pub type FoldColumns = fn(&[u8], usize, &mut [u8]);

/// The arguments of a fold of rows or columns of the kind `K`. The stride of rows is their length.
pub(super) struct ReductionLoop<'a, K> {
    pub(super) elements: &'a [u8],
    pub(super) stride: usize,
    pub(super) lanes: &'a mut [u8],
    kind: PhantomData<K>,
}

impl<'a, K> ReductionLoop<'a, K>
where
    Self: Vectorized<Output = ()>,
{
    pub(super) fn fold(elements: &'a [u8], stride: usize, lanes: &'a mut [u8]) {
        vectorize(ReductionLoop { elements, stride, lanes, kind: PhantomData::<K> });
    }
}

/// [`FoldRows`] of elements `S`, mapped by `M`, and folded by `F` in lanes `L`.
pub(crate) fn rows<S: Element, L: Lane, M: Map<S, L>, F: Fold<L>>(
    elements: &[u8],
    length: usize,
    lanes: &mut [u8],
) {
    ReductionLoop::<RowFold<S, L, M, F>>::fold(elements, length, lanes);
}

struct RowFold<S, L, M, F>(PhantomData<(S, L, M, F)>);

impl<S: Element, L: Lane, M: Map<S, L>, F: Fold<L>> Vectorized for ReductionLoop<'_, RowFold<S, L, M, F>> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let elements = S::view(self.elements);
        for (lane, row) in L::view_mut(self.lanes).iter_mut().zip(elements.chunks_exact(self.stride)) {
            *lane = fold_row::<S, L, M, F>(row).store();
        }
    }
}

#[inline(always)]
pub(crate) fn fold_row<S: Element, L: Lane, M: Map<S, L>, F: Fold<L>>(row: &[S::Bytes]) -> L {
    // If the order makes no difference, the compiler chooses better stripes.
    if F::ANY_ORDER || row.len() < MIN_STRIPED_ELEMENTS {
        return fold_left::<S, L, M, F>(F::start(), row);
    }
    let mut stripes = [F::start(); STRIPES];
    let rest = fold_chunks(&mut stripes, row, |stripe, x| F::fold(stripe, M::map(S::load(x))));
    fold_left::<S, L, M, F>(fold_halves(through_memory(stripes), F::fold), rest)
}

/// Folds the stripes of a row further from what is in the lanes, given whole chunks of elements, as
/// [`columns_onto`] of as many columns would.
pub(crate) fn stripes_onto<S: Element, L: Lane, M: Map<S, L>, F: Fold<L>>(
    elements: &[u8],
    stride: usize,
    lanes: &mut [u8],
) {
    ReductionLoop::<StripeFold<S, L, M, F>>::fold(elements, stride, lanes);
}

struct StripeFold<S, L, M, F>(PhantomData<(S, L, M, F)>);

impl<S: Element, L: Lane, M: Map<S, L>, F: Fold<L>> Vectorized for ReductionLoop<'_, StripeFold<S, L, M, F>> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let lanes = L::view_mut(self.lanes);
        let mut stripes = [F::start(); STRIPES];
        for (stripe, &lane) in stripes.iter_mut().zip(&*lanes) {
            *stripe = L::load(lane);
        }
        fold_chunks(&mut stripes, S::view(self.elements), |stripe, x| F::fold(stripe, M::map(S::load(x))));
        for (lane, stripe) in lanes.iter_mut().zip(through_memory(stripes)) {
            *lane = stripe.store();
        }
    }
}

/// Folds elements into `total` from left to right.
#[inline(always)]
fn fold_left<S: Element, L: Lane, M: Map<S, L>, F: Fold<L>>(total: L, elements: &[S::Bytes]) -> L {
    elements.iter().fold(total, |total, &x| F::fold(total, M::map(S::load(x))))
}

/// Folds chunks of one element per stripe. Returns the elements after the last whole chunk.
#[inline(always)]
pub(in crate::exec) fn fold_chunks<'a, L: Copy, E: Copy, const STRIPES: usize>(
    stripes: &mut [L; STRIPES],
    elements: &'a [E],
    fold: impl Fn(L, E) -> L,
) -> &'a [E] {
    let (chunks, rest) = elements.as_chunks::<STRIPES>();
    for chunk in chunks {
        prefetch_ahead(chunk);
        for (stripe, &x) in stripes.iter_mut().zip(chunk) {
            *stripe = fold(*stripe, x);
        }
    }
    rest
}

/// Hides from the compiler how the stripes are used afterwards. Otherwise it keeps them in
/// registers in the order in which they are summed up, which makes the loop slow.
#[inline(always)]
fn through_memory<T>(stripes: T) -> T {
    std::hint::black_box(stripes)
}

/// Folds stripes to one as a binary tree: the first half of them with the second half, and so on.
#[inline(always)]
pub(in crate::exec) fn fold_halves<L: Copy, const STRIPES: usize>(
    mut stripes: [L; STRIPES],
    fold: impl Fn(L, L) -> L,
) -> L {
    const { assert!(STRIPES.is_power_of_two()) };
    fold_halves_down_to(&mut stripes, 1, fold);
    stripes[0]
}

/// Folds stripes to fewer, the first ones, as [`fold_halves`] does. Their number is a power of two.
#[inline(always)]
fn fold_halves_down_to<L: Copy>(stripes: &mut [L], fewer: usize, fold: impl Fn(L, L) -> L) {
    let mut half = stripes.len() / 2;
    while half >= fewer {
        let (first, second) = stripes.split_at_mut(half);
        for (lane, &mut other) in first.iter_mut().zip(second) {
            *lane = fold(*lane, other);
        }
        half /= 2;
    }
}

/// [`fold_halves`] of several rows of stripes: first within each row, by vectors, and then side by side.
#[inline(always)]
pub(in crate::exec) fn fold_halves_of_rows<L: Copy, const STRIPES: usize, const N: usize>(
    rows: [[L; STRIPES]; N],
    fold: impl Fn(L, L) -> L + Copy,
) -> [L; N] {
    /// The number of stripes from which on a row's are folded by vectors.
    const BY_VECTORS: usize = 4;
    const { assert!(STRIPES.is_power_of_two() && STRIPES >= BY_VECTORS) };
    let mut rows = through_memory(rows);
    for stripes in &mut rows {
        fold_halves_down_to(stripes, BY_VECTORS, fold);
    }
    let mut rows = through_memory(rows);
    let mut totals = [rows[0][0]; N];
    // Not by `map`, whose closure would be a function without the instruction set of this one.
    for (total, stripes) in totals.iter_mut().zip(&mut rows) {
        fold_halves_down_to(&mut stripes[..BY_VECTORS], 1, fold);
        *total = stripes[0];
    }
    totals
}

/// [`rows`] of bf16 in f64, with the same results.
///
/// Problem: widening bf16 to f64, four times its width, takes three shuffles per vector. Technique:
/// two neighbours are one 32-bit word; a shift makes one of them an f32, and a mask the other one.
/// So the stripes of even elements are kept separate from the stripes of odd elements.
pub(crate) fn bf16_rows<F: Fold<f64>>(elements: &[u8], length: usize, lanes: &mut [u8]) {
    ReductionLoop::<Bf16RowFold<F>>::fold(elements, length, lanes);
}

struct Bf16RowFold<F>(PhantomData<F>);

impl<F: Fold<f64>> Vectorized for ReductionLoop<'_, Bf16RowFold<F>> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let rows = BF16::view(self.elements).chunks_exact(self.stride);
        for (lane, row) in f64::view_mut(self.lanes).iter_mut().zip(rows) {
            *lane = fold_bf16_row::<F>(row).store();
        }
    }
}

#[inline(always)]
fn fold_bf16_row<F: Fold<f64>>(row: &[[u8; 2]]) -> f64 {
    if row.len() < MIN_STRIPED_ELEMENTS {
        return fold_left::<BF16, f64, CastOf, F>(F::start(), row);
    }
    let mut halves = [[F::start(); STRIPES / 2]; 2];
    let (chunks, rest) = row.as_chunks();
    for chunk in chunks {
        prefetch_ahead(chunk);
        halves = fold_bf16_pairs::<F>(halves, chunk);
    }
    let stripes = interleave_halves(through_memory(halves));
    fold_left::<BF16, f64, CastOf, F>(fold_halves(stripes, F::fold), rest)
}

/// Folds one element into each stripe. The first half of the stripes takes the elements in the low
/// bits of the words, the second half the elements in the high bits.
#[inline(always)]
fn fold_bf16_pairs<F: Fold<f64>>(
    [mut low, mut high]: [[f64; STRIPES / 2]; 2],
    elements: &[[u8; 2]; STRIPES],
) -> [[f64; STRIPES / 2]; 2] {
    let (words, _) = elements.as_flattened().as_chunks::<4>();
    for ((low, high), &word) in low.iter_mut().zip(&mut high).zip(words) {
        let word = u32::from_ne_bytes(word);
        *low = F::fold(*low, f32::from_bits(word << 16).into());
        *high = F::fold(*high, f32::from_bits(word & 0xffff_0000).into());
    }
    [low, high]
}

#[inline(always)]
fn load_halves(block: &[[u8; 8]; STRIPES]) -> [[f64; STRIPES / 2]; 2] {
    let mut halves = [[0.0; STRIPES / 2]; 2];
    for (folded, &lane) in halves.as_flattened_mut().iter_mut().zip(block) {
        *folded = f64::load(lane);
    }
    halves
}

/// The stripes in the order of the elements.
#[inline(always)]
fn interleave_halves([low, high]: [[f64; STRIPES / 2]; 2]) -> [f64; STRIPES] {
    let (even, odd) = if cfg!(target_endian = "little") { (low, high) } else { (high, low) };
    std::array::from_fn(|i| if i % 2 == 0 { even[i / 2] } else { odd[i / 2] })
}

/// [`columns`] of bf16 in f64, with the same results, by 32-bit words as in [`bf16_rows`].
pub(crate) fn bf16_columns<F: Fold<f64>>(elements: &[u8], stride: usize, lanes: &mut [u8]) {
    f64::view_mut(lanes).fill(F::start().store());
    bf16_columns_onto::<F>(elements, stride, lanes);
}

/// [`bf16_columns`] that are folded further from what is in the lanes.
pub(crate) fn bf16_columns_onto<F: Fold<f64>>(elements: &[u8], stride: usize, lanes: &mut [u8]) {
    ReductionLoop::<Bf16ColumnFold<F>>::fold(elements, stride, lanes);
}

struct Bf16ColumnFold<F>(PhantomData<F>);

impl<F: Fold<f64>> Vectorized for ReductionLoop<'_, Bf16ColumnFold<F>> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // The number of rows that are folded for each read and write of the lanes.
        const ROWS: usize = 8;
        let (elements, lanes) = (BF16::view(self.elements), f64::view_mut(self.lanes));
        let length = lanes.len();
        let (blocks, rest) = lanes.as_chunks_mut::<STRIPES>();
        for rows in elements.chunks(ROWS * self.stride) {
            for (i, block) in blocks.iter_mut().enumerate() {
                let first = i * STRIPES;
                let mut halves = load_halves(block);
                for row in rows.chunks(self.stride) {
                    prefetch(row, ROWS * self.stride + first);
                    let Some(elements) = row[first..].first_chunk() else { break };
                    halves = fold_bf16_pairs::<F>(halves, elements);
                }
                for (lane, folded) in block.iter_mut().zip(halves.as_flattened()) {
                    *lane = folded.store();
                }
            }
            for row in rows.chunks(self.stride) {
                for (lane, &x) in rest.iter_mut().zip(&row[length - length % STRIPES..]) {
                    *lane = F::fold(f64::load(*lane), CastOf::map(BF16::load(x))).store();
                }
            }
        }
        for block in blocks {
            let folded = interleave_halves(load_halves(block));
            for (lane, folded) in block.iter_mut().zip(folded) {
                *lane = folded.store();
            }
        }
    }
}

/// The number of elements of 16 bits or less that are widened to f32 at once.
const WIDEN_BUFFER_ELEMENTS: usize = 16 * STRIPES;

/// [`rows`] of floats of 8 and 16 bits in f64, with the same results.
///
/// Problem: widening an 8-bit float to f64 takes three shuffles per vector, and an f16 a dozen
/// instructions. Technique: a tile of a row, or some short rows, are converted to f32 in a buffer,
/// whose elements are widened to f64 as they are read.
pub(crate) fn widened_rows<S: NarrowFloat, F: Fold<f64>>(elements: &[u8], length: usize, lanes: &mut [u8]) {
    ReductionLoop::<WidenedRowFold<S, F>>::fold(elements, length, lanes);
}

#[inline(always)]
fn widen_into<'a, S: NarrowFloat>(
    buffer: &'a mut [[u8; 4]; WIDEN_BUFFER_ELEMENTS],
    tile: &[S::Bytes],
) -> &'a [[u8; 4]] {
    let buffer = &mut buffer[..tile.len()];
    S::widen(tile, buffer);
    buffer
}

struct WidenedRowFold<S, F>(PhantomData<(S, F)>);

impl<S: NarrowFloat, F: Fold<f64>> Vectorized for ReductionLoop<'_, WidenedRowFold<S, F>> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (elements, lanes) = (S::view(self.elements), f64::view_mut(self.lanes));
        let mut buffer = [[0; 4]; WIDEN_BUFFER_ELEMENTS];
        if self.stride <= WIDEN_BUFFER_ELEMENTS {
            let rows_per_buffer = WIDEN_BUFFER_ELEMENTS / self.stride;
            for (lanes, rows) in
                lanes.chunks_mut(rows_per_buffer).zip(elements.chunks(rows_per_buffer * self.stride))
            {
                let rows = widen_into::<S>(&mut buffer, rows).chunks_exact(self.stride);
                for (lane, row) in lanes.iter_mut().zip(rows) {
                    *lane = fold_row::<f32, f64, CastOf, F>(row).store();
                }
            }
            return;
        }
        for (lane, row) in lanes.iter_mut().zip(elements.chunks_exact(self.stride)) {
            let mut stripes = [F::start(); STRIPES];
            let fold = |stripe, x| F::fold(stripe, CastOf::map(f32::load(x)));
            let (tiles, rest) = row.as_chunks::<WIDEN_BUFFER_ELEMENTS>();
            for tile in tiles {
                fold_chunks(&mut stripes, widen_into::<S>(&mut buffer, tile), fold);
            }
            let rest = fold_chunks(&mut stripes, widen_into::<S>(&mut buffer, rest), fold);
            *lane =
                fold_left::<f32, f64, CastOf, F>(fold_halves(through_memory(stripes), F::fold), rest).store();
        }
    }
}

/// [`FoldColumns`] of elements `S`, mapped by `M`, and folded by `F` in lanes `L`.
pub(crate) fn columns<S: Element, L: Lane, M: Map<S, L>, F: Fold<L>>(
    elements: &[u8],
    stride: usize,
    lanes: &mut [u8],
) {
    L::view_mut(lanes).fill(F::start().store());
    columns_onto::<S, L, M, F>(elements, stride, lanes);
}

/// [`columns`] that are folded further from what is in the lanes.
pub(crate) fn columns_onto<S: Element, L: Lane, M: Map<S, L>, F: Fold<L>>(
    elements: &[u8],
    stride: usize,
    lanes: &mut [u8],
) {
    ReductionLoop::<ColumnFold<S, L, M, F>>::fold(elements, stride, lanes);
}

struct ColumnFold<S, L, M, F>(PhantomData<(S, L, M, F)>);

impl<S: Element, L: Lane, M: Map<S, L>, F: Fold<L>> Vectorized for ReductionLoop<'_, ColumnFold<S, L, M, F>> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let lanes = L::view_mut(self.lanes);
        let elements = S::view(self.elements);
        fold_columns(lanes, elements, self.stride, needs_prefetch(elements), |lane, x| {
            F::fold(L::load(lane), M::map(S::load(x))).store()
        });
    }
}

/// Whether some rows, of a number of elements, are many and short enough for [`short_rows`].
#[inline]
pub(crate) fn are_rows_short((rows, length): (usize, usize)) -> bool {
    (MIN_TRANSPOSED_ROW_ELEMENTS..MIN_STRIPED_ELEMENTS).contains(&length) && rows >= MIN_TRANSPOSED_ROWS
}

/// Folds short rows by a loop over columns, which gives the bits of [`rows`].
///
/// Problem: an element of a short row is folded after the one before it, and each waits for the last. Technique:
/// blocks of rows are transposed, and the lanes of a vector fold elements of different rows.
pub(crate) fn short_rows(
    columns: FoldColumns,
    elements: &[u8],
    (rows, length): (usize, usize),
    lanes: &mut [u8],
) {
    let (width, lane) = (elements.len() / (rows * length), lanes.len() / rows);
    transpose::for_blocks_of_rows(width, elements, (rows, length, length), |block, elements| {
        let end = (length - 1) * ROWS_PER_BLOCK + block.len();
        let lanes = &mut lanes[block.start * lane..block.end * lane];
        columns(&elements[..end * width], ROWS_PER_BLOCK, lanes);
    });
}

/// Whether folds of columns of these elements should prefetch.
#[inline(always)]
pub(crate) fn needs_prefetch<E>(elements: &[E]) -> bool {
    size_of_val(elements) > MIN_BYTES_FOR_COLUMN_PREFETCH
}

/// Folds each column into its lane. Prefetches the next rows if `prefetches`.
#[inline(always)]
pub(crate) fn fold_columns<T: Copy, E: Copy>(
    lanes: &mut [T],
    elements: &[E],
    stride: usize,
    prefetches: bool,
    fold: impl Fn(T, E) -> T,
) {
    // Lanes are read and written once for four rows.
    let mut rows = elements;
    while let Some(four) = next_four_rows(&mut rows, stride, lanes.len()) {
        let folded_elements = match size_of::<E>() {
            _ if !prefetches => 0,
            1 | 2 => fold_with_prefetch::<T, E, 128>(lanes, four, rows, stride, &fold),
            _ => fold_with_prefetch::<T, E, 64>(lanes, four, rows, stride, &fold),
        };
        fold_four_rows(&mut lanes[folded_elements..], four.map(|row| &row[folded_elements..]), &fold);
    }
    for row in rows.chunks(stride) {
        for (lane, &x) in lanes.iter_mut().zip(row) {
            *lane = fold(*lane, x);
        }
    }
}

/// Splits off the next four rows: returns the first `length` elements of each, and leaves the
/// elements after these rows in `rows`. Returns `None` if fewer rows are left. The last row may be
/// shorter than the stride.
#[inline(always)]
pub(in crate::exec) fn next_four_rows<'a, E>(
    rows: &mut &'a [E],
    stride: usize,
    length: usize,
) -> Option<[&'a [E]; 4]> {
    let all = *rows;
    if all.len() < 3 * stride + length {
        return None;
    }
    *rows = all.get(4 * stride..).unwrap_or(&[]);
    // `map` would be a call: it is not inlined.
    let row = |i: usize| &all[i * stride..][..length];
    Some([row(0), row(1), row(2), row(3)])
}

/// Folds the leading elements of four rows in tiles, and prefetches the same elements of the next
/// four rows. Returns the number of elements of each row in whole tiles.
#[inline(always)]
fn fold_with_prefetch<T: Copy, E: Copy, const TILE: usize>(
    lanes: &mut [T],
    four: [&[E]; 4],
    next: &[E],
    stride: usize,
    fold: impl Fn(T, E) -> T,
) -> usize {
    let mut folded_elements = 0;
    for lanes in lanes.as_chunks_mut::<TILE>().0 {
        (0..4).for_each(|row| prefetch_row(next, row * stride + folded_elements, TILE));
        fold_four_rows(lanes, four.map(|row| &row[folded_elements..][..TILE]), &fold);
        folded_elements += TILE;
    }
    folded_elements
}

#[inline(always)]
fn fold_four_rows<T: Copy, E: Copy>(lanes: &mut [T], [a, b, c, d]: [&[E]; 4], fold: impl Fn(T, E) -> T) {
    for ((((lane, &a), &b), &c), &d) in lanes.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        *lane = fold(fold(fold(fold(*lane, a), b), c), d);
    }
}
