//! Reductions in fixed blocks.
//!
//! Problem: the same bits however many threads and whatever the vector width.
//! Technique: a long row is cut into blocks of a fixed length; a block is
//! folded into a fixed number of stripes, element `i` into stripe
//! `i % STRIPES`, and the stripes are folded in order. Rows shorter than that
//! are folded from left to right, as Nx's own backend does.

use crate::dtype::{Element, Lane};
use crate::exec::simd::{Vectorized, dispatch as vectorize, prefetch_row};
use crate::lane::Map;

/// Accumulators side by side: enough vectors to hide the latency of an addition.
const STRIPES: usize = 32;

/// Elements folded one after the other, before results are folded in turn.
pub const BLOCK: usize = 1 << 16;

/// Rows of columns that span more bytes come from memory, which is too far for the processor
/// to look ahead: so many rows are.
pub(crate) const FAR: usize = 1 << 20;
pub(crate) const AHEAD: usize = 2;

/// What an operation folds with.
pub trait Fold<L: Lane>: 'static {
    /// Whether `Rows` may take the elements in any order.
    const ANY_ORDER: bool = false;
    /// The neutral element.
    fn start() -> L;
    /// One more element, on the right.
    fn fold(accumulated: L, next: L) -> L;
}

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
    let get = |&element: &S::Bytes| M::map(S::load(element));
    // In any order, the compiler finds better stripes.
    if F::ANY_ORDER || row.len() < 2 * STRIPES {
        return row.iter().fold(F::start(), |total, x| F::fold(total, get(x)));
    }
    let mut stripes = [F::start(); STRIPES];
    let (chunks, rest) = row.as_chunks::<STRIPES>();
    for chunk in chunks {
        for (stripe, x) in stripes.iter_mut().zip(chunk) {
            *stripe = F::fold(*stripe, get(x));
        }
    }
    let total = stripes[1..].iter().fold(stripes[0], |total, &stripe| F::fold(total, stripe));
    rest.iter().fold(total, |total, x| F::fold(total, get(x)))
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
        let fold = |lane: L, x: &S::Bytes| F::fold(lane, M::map(S::load(*x)));
        lanes.fill(F::start().store());
        // Wide lanes are read and written less often for four rows at a time. The last row may end
        // with the last column.
        let wide = const { size_of::<L::Bytes>() >= 8 && size_of::<L::Bytes>() > size_of::<S::Bytes>() };
        let (length, stride) = (lanes.len(), self.stride);
        let mut rows = S::view(self.elements);
        while wide && rows.len() >= 3 * stride + length {
            let [a, b, c, d] = [0, 1, 2, 3].map(|i| &rows[i * stride..][..length]);
            for ((((lane, a), b), c), d) in lanes.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *lane = fold(fold(fold(fold(L::load(*lane), a), b), c), d).store();
            }
            rows = rows.get(4 * stride..).unwrap_or(&[]);
        }
        let far = size_of_val(rows) > FAR;
        for (i, row) in rows.chunks(stride).enumerate() {
            if far {
                prefetch_row(rows, (i + AHEAD) * stride, length);
            }
            for (lane, x) in lanes.iter_mut().zip(row) {
                *lane = fold(L::load(*lane), x).store();
            }
        }
    }
}
