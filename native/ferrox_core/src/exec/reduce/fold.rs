//! Reductions in fixed blocks.
//!
//! Problem: the same bits however many threads and whatever the vector width.
//! Technique: a long row is cut into blocks of a fixed length; a block is
//! folded into a fixed number of stripes, element `i` into stripe
//! `i % STRIPES`, and the stripes are folded, the first half of them with the
//! second, and so on. Rows shorter than that are folded from left to right, as
//! Nx's own backend does.

use crate::dtype::minifloat::BF16;
use crate::dtype::{Element, Lane};
use crate::exec::convert::{CastOf, Map, NarrowFloat};
use crate::exec::simd::{Vectorized, dispatch as vectorize, prefetch, prefetch_row, read_ahead};

/// Accumulators side by side: enough vectors to hide the latency of an addition.
pub(in crate::exec) const STRIPES: usize = 32;

/// Elements folded one after the other, before results are folded in turn.
pub const BLOCK: usize = 1 << 16;

/// What an operation folds with.
pub trait Fold<L: Lane>: 'static {
    /// Whether `Rows` may take the elements in any order.
    const ANY_ORDER: bool = false;
    /// The neutral element.
    fn start() -> L;
    /// One more element, on the right.
    fn fold(accumulated: L, next: L) -> L;
}

/// A float, or NaN if another is one: of what a comparison has chosen between the two.
pub(crate) trait OrNan {
    /// By setting all bits. To choose NaN would be as good, but where that is what was there before,
    /// the compiler stores the others under a mask, which takes some processors ten times as long.
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

/// Folds rows of a given length: elements, their number, a lane for each row.
pub type Rows = fn(&[u8], usize, &mut [u8]);

/// Folds columns: elements from the first of the first column, elements from
/// one row to the next, a lane for each column.
pub type Columns = fn(&[u8], usize, &mut [u8]);

/// `Rows` for elements `S` folded by `F` in lanes `L`.
pub(crate) fn rows<S: Element, L: Lane, M: Map<S, L>, F: Fold<L>>(
    elements: &[u8],
    length: usize,
    lanes: &mut [u8],
) {
    vectorize(RowLoop::<S, L, M, F> { elements, length, lanes, kinds: std::marker::PhantomData });
}

struct RowLoop<'a, S, L, M, F> {
    elements: &'a [u8],
    length: usize,
    lanes: &'a mut [u8],
    kinds: std::marker::PhantomData<(S, L, M, F)>,
}

impl<S: Element, L: Lane, M: Map<S, L>, F: Fold<L>> Vectorized for RowLoop<'_, S, L, M, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let elements = S::view(self.elements);
        for (lane, row) in L::view_mut(self.lanes).iter_mut().zip(elements.chunks_exact(self.length)) {
            *lane = fold_row::<S, L, M, F>(row).store();
        }
    }
}

#[inline(always)]
pub(crate) fn fold_row<S: Element, L: Lane, M: Map<S, L>, F: Fold<L>>(row: &[S::Bytes]) -> L {
    // In any order, the compiler finds better stripes.
    if F::ANY_ORDER || row.len() < 2 * STRIPES {
        return fold_on::<S, L, M, F>(F::start(), row);
    }
    let mut stripes = [F::start(); STRIPES];
    let rest = fold_chunks(&mut stripes, row, |stripe, x| F::fold(stripe, M::map(S::load(x))));
    fold_on::<S, L, M, F>(by_halves(from_memory(stripes), F::fold), rest)
}

/// Elements, from left to right.
#[inline(always)]
fn fold_on<S: Element, L: Lane, M: Map<S, L>, F: Fold<L>>(total: L, elements: &[S::Bytes]) -> L {
    elements.iter().fold(total, |total, &x| F::fold(total, M::map(S::load(x))))
}

/// An element for each stripe, as often as there are so many; the rest.
#[inline(always)]
pub(in crate::exec) fn fold_chunks<'a, L: Copy, E: Copy, const STRIPES: usize>(
    stripes: &mut [L; STRIPES],
    elements: &'a [E],
    fold: impl Fn(L, E) -> L,
) -> &'a [E] {
    let (chunks, rest) = elements.as_chunks::<STRIPES>();
    for chunk in chunks {
        read_ahead(chunk);
        for (stripe, &x) in stripes.iter_mut().zip(chunk) {
            *stripe = fold(*stripe, x);
        }
    }
    rest
}

/// The compiler would keep stripes as their sum needs them otherwise, which makes the loop slow.
#[inline(always)]
pub(in crate::exec) fn from_memory<T>(stripes: T) -> T {
    std::hint::black_box(stripes)
}

/// Stripes folded, the first half of them with the second, and so on: in a few steps.
#[inline(always)]
pub(in crate::exec) fn by_halves<L: Copy, const STRIPES: usize>(
    mut stripes: [L; STRIPES],
    fold: impl Fn(L, L) -> L,
) -> L {
    const { assert!(STRIPES.is_power_of_two()) };
    let mut half = STRIPES / 2;
    while half > 0 {
        let (first, second) = stripes.split_at_mut(half);
        for (lane, &mut other) in first.iter_mut().zip(second) {
            *lane = fold(*lane, other);
        }
        half /= 2;
    }
    stripes[0]
}

/// `rows` of bf16 in f64, with the same results.
///
/// Problem: to widen elements by four takes three shuffles of each vector. Technique: two
/// neighbours are a word of 32 bits, of which a shift makes one of them an f32, and a mask the
/// other; even elements have their stripes apart from odd ones.
pub(crate) fn bfloat_rows<F: Fold<f64>>(elements: &[u8], length: usize, lanes: &mut [u8]) {
    vectorize(PairLoop::<F> { elements, length, lanes, fold: std::marker::PhantomData });
}

struct PairLoop<'a, F> {
    elements: &'a [u8],
    length: usize,
    lanes: &'a mut [u8],
    fold: std::marker::PhantomData<F>,
}

impl<F: Fold<f64>> Vectorized for PairLoop<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let rows = BF16::view(self.elements).chunks_exact(self.length);
        for (lane, row) in f64::view_mut(self.lanes).iter_mut().zip(rows) {
            *lane = fold_pairs::<F>(row).store();
        }
    }
}

#[inline(always)]
fn fold_pairs<F: Fold<f64>>(row: &[[u8; 2]]) -> f64 {
    if row.len() < 2 * STRIPES {
        return fold_on::<BF16, f64, CastOf, F>(F::start(), row);
    }
    let mut halves = [[F::start(); STRIPES / 2]; 2];
    let (chunks, rest) = row.as_chunks();
    for chunk in chunks {
        read_ahead(chunk);
        halves = fold_words::<F>(halves, chunk);
    }
    let stripes = in_order(from_memory(halves));
    fold_on::<BF16, f64, CastOf, F>(by_halves(stripes, F::fold), rest)
}

/// An element for each stripe: those whose bits are the low ones of words, and the others.
#[inline(always)]
fn fold_words<F: Fold<f64>>(
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
fn halves_of(block: &[[u8; 8]; STRIPES]) -> [[f64; STRIPES / 2]; 2] {
    let mut halves = [[0.0; STRIPES / 2]; 2];
    for (folded, &lane) in halves.as_flattened_mut().iter_mut().zip(block) {
        *folded = f64::load(lane);
    }
    halves
}

/// What has been folded of each element.
#[inline(always)]
fn in_order([low, high]: [[f64; STRIPES / 2]; 2]) -> [f64; STRIPES] {
    let (even, odd) = if cfg!(target_endian = "little") { (low, high) } else { (high, low) };
    std::array::from_fn(|i| if i % 2 == 0 { even[i / 2] } else { odd[i / 2] })
}

/// `columns` of bf16 in f64, with the same results, by words as `bfloat_rows`.
pub(crate) fn bfloat_columns<F: Fold<f64>>(elements: &[u8], stride: usize, lanes: &mut [u8]) {
    vectorize(PairColumns::<F> { elements, stride, lanes, fold: std::marker::PhantomData });
}

struct PairColumns<'a, F> {
    elements: &'a [u8],
    stride: usize,
    lanes: &'a mut [u8],
    fold: std::marker::PhantomData<F>,
}

impl<F: Fold<f64>> Vectorized for PairColumns<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // Rows for which lanes are read and written once.
        const ROWS: usize = 8;
        let (elements, lanes) = (BF16::view(self.elements), f64::view_mut(self.lanes));
        lanes.fill(F::start().store());
        let length = lanes.len();
        let (blocks, rest) = lanes.as_chunks_mut::<STRIPES>();
        for rows in elements.chunks(ROWS * self.stride) {
            for (i, block) in blocks.iter_mut().enumerate() {
                let first = i * STRIPES;
                let mut halves = halves_of(block);
                for row in rows.chunks(self.stride) {
                    prefetch(row, ROWS * self.stride + first);
                    let Some(elements) = row[first..].first_chunk() else { break };
                    halves = fold_words::<F>(halves, elements);
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
            let folded = in_order(halves_of(block));
            for (lane, folded) in block.iter_mut().zip(folded) {
                *lane = folded.store();
            }
        }
    }
}

/// Elements of 16 bits and less that are widened at once.
const PIECE: usize = 16 * STRIPES;

/// `rows` of narrow floats in f64, with the same results.
///
/// Problem: to widen a float by eight times takes three shuffles of each vector, and an f16 a
/// dozen instructions. Technique: a piece of a row, or some short rows, become f32 first, which
/// are widened as they are read.
pub(crate) fn narrow_rows<S: NarrowFloat, F: Fold<f64>>(elements: &[u8], length: usize, lanes: &mut [u8]) {
    vectorize(NarrowLoop::<S, F> { elements, length, lanes, kinds: std::marker::PhantomData });
}

#[inline(always)]
fn widened<'a, S: NarrowFloat>(buffer: &'a mut [[u8; 4]; PIECE], piece: &[S::Bytes]) -> &'a [[u8; 4]] {
    let buffer = &mut buffer[..piece.len()];
    S::widen(piece, buffer);
    buffer
}

struct NarrowLoop<'a, S, F> {
    elements: &'a [u8],
    length: usize,
    lanes: &'a mut [u8],
    kinds: std::marker::PhantomData<(S, F)>,
}

impl<S: NarrowFloat, F: Fold<f64>> Vectorized for NarrowLoop<'_, S, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (elements, lanes) = (S::view(self.elements), f64::view_mut(self.lanes));
        let mut buffer = [[0; 4]; PIECE];
        if self.length <= PIECE {
            let few = PIECE / self.length;
            for (lanes, rows) in lanes.chunks_mut(few).zip(elements.chunks(few * self.length)) {
                let rows = widened::<S>(&mut buffer, rows).chunks_exact(self.length);
                for (lane, row) in lanes.iter_mut().zip(rows) {
                    *lane = fold_row::<f32, f64, CastOf, F>(row).store();
                }
            }
            return;
        }
        for (lane, row) in lanes.iter_mut().zip(elements.chunks_exact(self.length)) {
            let mut stripes = [F::start(); STRIPES];
            let fold = |stripe, x| F::fold(stripe, CastOf::map(f32::load(x)));
            let (pieces, rest) = row.as_chunks::<PIECE>();
            for piece in pieces {
                fold_chunks(&mut stripes, widened::<S>(&mut buffer, piece), fold);
            }
            let rest = fold_chunks(&mut stripes, widened::<S>(&mut buffer, rest), fold);
            *lane = fold_on::<f32, f64, CastOf, F>(by_halves(from_memory(stripes), F::fold), rest).store();
        }
    }
}

/// `Columns` for elements `S` folded by `F` in lanes `L`.
pub(crate) fn columns<S: Element, L: Lane, M: Map<S, L>, F: Fold<L>>(
    elements: &[u8],
    stride: usize,
    lanes: &mut [u8],
) {
    vectorize(ColumnLoop::<S, L, M, F> { elements, stride, lanes, kinds: std::marker::PhantomData });
}

struct ColumnLoop<'a, S, L, M, F> {
    elements: &'a [u8],
    stride: usize,
    lanes: &'a mut [u8],
    kinds: std::marker::PhantomData<(S, L, M, F)>,
}

impl<S: Element, L: Lane, M: Map<S, L>, F: Fold<L>> Vectorized for ColumnLoop<'_, S, L, M, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let lanes = L::view_mut(self.lanes);
        lanes.fill(F::start().store());
        let elements = S::view(self.elements);
        fold_columns(lanes, elements, self.stride, is_far(elements), |lane, x| {
            F::fold(L::load(lane), M::map(S::load(x))).store()
        });
    }
}

/// Rows of columns that span more bytes come from memory, and the next ones have to be brought
/// near, since they are too far apart for the processor to look ahead.
const FAR: usize = 1 << 20;

#[inline(always)]
pub(crate) fn is_far<E>(elements: &[E]) -> bool {
    size_of_val(elements) > FAR
}

/// Folds each column into its lane, and brings rows near that come next if `ahead`.
#[inline(always)]
pub(crate) fn fold_columns<T: Copy, E: Copy>(
    lanes: &mut [T],
    elements: &[E],
    stride: usize,
    ahead: bool,
    fold: impl Fn(T, E) -> T,
) {
    // Lanes are read and written once for four rows, which come from memory side by side.
    let mut rows = elements;
    while let Some(four) = next_four(&mut rows, stride, lanes.len()) {
        let done = match size_of::<E>() {
            _ if !ahead => 0,
            1 | 2 => fold_parts::<T, E, 128>(lanes, four, rows, stride, &fold),
            _ => fold_parts::<T, E, 64>(lanes, four, rows, stride, &fold),
        };
        fold_four(&mut lanes[done..], four.map(|row| &row[done..]), &fold);
    }
    for row in rows.chunks(stride) {
        for (lane, &x) in lanes.iter_mut().zip(row) {
            *lane = fold(*lane, x);
        }
    }
}

/// The first elements of four rows, if there are so many; `rows` is then what comes after them. The
/// last row may end with the last of its elements.
#[inline(always)]
pub(in crate::exec) fn next_four<'a, E>(
    rows: &mut &'a [E],
    stride: usize,
    length: usize,
) -> Option<[&'a [E]; 4]> {
    let all = *rows;
    if all.len() < 3 * stride + length {
        return None;
    }
    *rows = all.get(4 * stride..).unwrap_or(&[]);
    Some([0, 1, 2, 3].map(|i| &all[i * stride..][..length]))
}

/// Folds the first of four rows, `PART` by `PART`, and brings those of the next four near: how many.
#[inline(always)]
fn fold_parts<T: Copy, E: Copy, const PART: usize>(
    lanes: &mut [T],
    four: [&[E]; 4],
    next: &[E],
    stride: usize,
    fold: impl Fn(T, E) -> T,
) -> usize {
    let mut done = 0;
    for lanes in lanes.as_chunks_mut::<PART>().0 {
        (0..4).for_each(|row| prefetch_row(next, row * stride + done, PART));
        fold_four(lanes, four.map(|row| &row[done..][..PART]), &fold);
        done += PART;
    }
    done
}

#[inline(always)]
fn fold_four<T: Copy, E: Copy>(lanes: &mut [T], [a, b, c, d]: [&[E]; 4], fold: impl Fn(T, E) -> T) {
    for ((((lane, &a), &b), &c), &d) in lanes.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        *lane = fold(fold(fold(fold(*lane, a), b), c), d);
    }
}
