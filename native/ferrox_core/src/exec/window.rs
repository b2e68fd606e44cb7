//! Folds the windows that slide along one axis.
//!
//! Problem: folding windows of `k` elements in each of several axes, without `k` operations for
//! each element where windows are long. Technique: axes are folded one after the other, so that a
//! window costs the sum of its side lengths, not their product. Short windows are folded tap by tap
//! (a tap is an element of the window), for many elements of the result at a time. Long windows are
//! folded by doubling: folds of 2, 4, 8, ... taps are computed from one another, and a window is
//! the fold of the powers of two that its length is the sum of. That takes passes over all elements
//! of a slab, a few more when the length doubles. Where the axes after this one have enough
//! elements for vector instructions, or windows are very long, the van Herk/Gil-Werman algorithm is
//! used instead (M. van Herk, A fast algorithm for local minimum and maximum filters on rectangular
//! and octagonal kernels, 1992; J. Gil, M. Werman, Computing 2-D min, median, and max filters,
//! 1993): the axis is cut at multiples of the window length into blocks, each block is folded from
//! its start and from its end, and a window is one fold of a block's end and one of the next
//! block's start: three operations for any length. Limits: cuts are at fixed elements of the axis,
//! so that the bits do not depend on how the work is split. Padding is neutral, and left out.

use crate::cost::{FOLD_BYTE_COST, WINDOW_TILE_LANES, work};
use crate::dtype::Lane;
use crate::exec::reduce::fold::Fold;
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::cooperative_yield;

/// Windows of fewer taps than this are folded tap by tap.
const MIN_TAPS_OF_LONG_WINDOW: usize = 8;

/// Long windows of at most this many taps are folded by doubling, if the axes after this one have
/// fewer than `MIN_LANES_FOR_VECTORS` elements.
const MAX_TAPS_FOR_DOUBLING: usize = 1 << 12;
const MIN_LANES_FOR_VECTORS: usize = 16;

/// The number of windows without padding that are folded at the same time.
pub(crate) const INTERLEAVED_WINDOWS: usize = 8;

/// The windows along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowAxis {
    /// The number of elements along the axis.
    pub size: usize,
    /// The number of windows along the axis.
    pub windows: usize,
    /// The number of taps of a window; after trimming, 0 if no window covers an element.
    pub taps: usize,
    /// The distance from one window to the next.
    pub stride: usize,
    /// The distance from one tap of a window to the next.
    pub dilation: usize,
    /// The padding before the first element; a negative number removes elements.
    pub low: isize,
}

impl WindowAxis {
    /// Removes the taps that cover only padding in every window.
    #[must_use]
    pub fn trimmed(self) -> Self {
        let WindowAxis { size, windows, taps, stride, dilation, low } = self;
        if size == 0 || windows == 0 {
            return WindowAxis { taps: 0, ..self };
        }
        // With a single window or tap, the distance has no effect; 1 suits the fastest loops.
        let stride = if windows == 1 { 1 } else { stride };
        let dilation = if taps == 1 { 1 } else { dilation };
        let step = dilation as isize;
        let last_start = ((windows - 1) * stride) as isize;
        let first = (low - last_start).max(0).cast_unsigned().div_ceil(dilation);
        let end = match size as isize - 1 + low {
            last @ 0.. => (last / step) as usize + 1,
            _ => 0,
        };
        let taps = end.min(taps).saturating_sub(first);
        let low = if taps == 0 { 0 } else { low - first as isize * step };
        WindowAxis { size, windows, taps, stride, dilation: if taps <= 1 { 1 } else { dilation }, low }
    }

    /// The distance from the first tap of a window to its last.
    #[must_use]
    pub fn extent(&self) -> usize {
        self.taps.saturating_sub(1) * self.dilation
    }

    /// The number of elements, with padding, from the first tap of the first of some adjacent
    /// windows to the last tap of the last one.
    #[must_use]
    pub fn span(&self, windows: usize) -> usize {
        (windows - 1) * self.stride + self.extent() + 1
    }

    /// Returns whether each window consists of the element with the same index.
    #[must_use]
    pub fn is_trivial(&self) -> bool {
        self.size == self.windows && self.taps == 1 && self.stride == 1 && self.low == 0
    }

    /// Returns whether windows are folded by doubling or cuts. That is decided for the whole axis,
    /// so that the bits do not depend on how the work is split.
    #[must_use]
    pub fn is_long(&self) -> bool {
        let span = self.span(self.windows.max(1));
        self.taps >= MIN_TAPS_OF_LONG_WINDOW
            && span / 4 <= self.size + self.windows
            && self.windows.saturating_mul(self.taps) / 4 > span
    }

    /// The range of elements that the windows `from..to` cover.
    #[must_use]
    pub fn elements(&self, from: usize, to: usize) -> (usize, usize) {
        let bound = |index: isize| index.clamp(0, self.size as isize) as usize;
        if self.taps == 0 {
            return (0, 0);
        }
        let first = bound((from * self.stride) as isize - self.low);
        let end = bound(((to - 1) * self.stride + self.extent()) as isize + 1 - self.low);
        (first, end.max(first))
    }
}

/// A pass over one axis of dense elements: reads any number of slabs of `[rows, after]` lanes, and
/// writes as many slabs of `[windows, after]` lanes.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The axis, with the size of the whole axis.
    pub axis: WindowAxis,
    /// The number of rows of a slab that is read, and the index of the first one.
    pub rows: (usize, usize),
    /// The number of windows to fold, and the index of the first one.
    pub windows: (usize, usize),
    /// The number of elements of the axes after this one.
    pub after: usize,
    /// The lane that padding counts as.
    pub neutral: [u8; 16],
}

impl Pass {
    /// The row, counted from the first one read, of the first tap of the first window. It is
    /// negative in padding.
    fn shift(&self) -> isize {
        (self.windows.1 * self.axis.stride) as isize - self.axis.low - self.rows.1 as isize
    }

    /// The lanes of one slab that is read, and of one that is written.
    fn slab_lanes(&self) -> (usize, usize) {
        (self.rows.0 * self.after, self.windows.0 * self.after)
    }

    /// The number of lanes of working memory that the loops need.
    #[must_use]
    pub fn workspace(&self) -> usize {
        if self.axis.is_long() { 3 * self.axis.span(self.windows.0) * self.after } else { 0 }
    }
}

/// The loops of an operation for a lane type. The arguments are the pass, the lanes to read, the
/// lanes to write, and working memory.
pub type FoldWindows = fn(&Pass, &[u8], &mut [u8], &mut [u8]);

/// Folds windows with `F`.
pub(crate) fn fold<L: Lane, F: Fold<L>>(pass: &Pass, source: &[u8], target: &mut [u8], memory: &mut [u8]) {
    let neutral = L::load(L::view(&pass.neutral)[0]);
    let (_, to) = pass.slab_lanes();
    let (source, target) = (L::view(source), L::view_mut(target));
    // There may be no slab, or slabs may be empty.
    if source.is_empty() || target.is_empty() || pass.axis.taps == 0 {
        target.fill(neutral.store());
        return;
    }
    let memory = L::view_mut(memory);
    let kind = std::marker::PhantomData::<F>;
    let WindowAxis { taps, stride, .. } = pass.axis;
    if pass.axis.is_long() && pass.after < MIN_LANES_FOR_VECTORS && taps <= MAX_TAPS_FOR_DOUBLING {
        fold_by_doubling::<L, F>(pass, source, target, memory, neutral);
    } else if pass.axis.is_long() {
        fold_van_herk::<L, F>(pass, source, target, memory, neutral);
    } else if stride == 1 && to >= MIN_LANES_FOR_VECTORS {
        vectorize(WindowsLoop::<_, _, true> { pass, source, target, neutral, kind });
    } else {
        vectorize(WindowsLoop::<_, _, false> { pass, source, target, neutral, kind });
    }
}

/// Arguments of `fold_into` for slices of slabs; only this loop is compiled for each instruction
/// set, not the loops around it.
struct FoldLoop<'a, L: Lane, F> {
    left: &'a mut [L::Bytes],
    right: &'a [L::Bytes],
    kind: std::marker::PhantomData<F>,
}

impl<L: Lane, F: Fold<L>> Vectorized for FoldLoop<'_, L, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        fold_into::<L, F>(self.left, self.right);
    }
}

/// As `fold_into`, for callers that are not compiled for an instruction set.
#[inline(never)]
fn fold_slice<L: Lane, F: Fold<L>>(left: &mut [L::Bytes], right: &[L::Bytes]) {
    if left.len() < MIN_LANES_FOR_VECTORS {
        return fold_into::<L, F>(left, right);
    }
    let bytes = size_of_val(left);
    vectorize(FoldLoop::<L, F> { left, right, kind: std::marker::PhantomData });
    cooperative_yield::after(work(bytes, FOLD_BYTE_COST));
}

/// Folds `right` into `left`, element by element.
#[inline(always)]
fn fold_into<L: Lane, F: Fold<L>>(left: &mut [L::Bytes], right: &[L::Bytes]) {
    for (a, &b) in left.iter_mut().zip(right) {
        *a = F::fold(L::load(*a), L::load(b)).store();
    }
}

/// Arguments of the loops over windows.
struct WindowsLoop<'a, L: Lane, F, const DENSE: bool> {
    pass: &'a Pass,
    source: &'a [L::Bytes],
    target: &'a mut [L::Bytes],
    neutral: L,
    kind: std::marker::PhantomData<F>,
}

/// The loop over windows at every element, along the axis and those after it.
impl<L: Lane, F: Fold<L>> Vectorized for WindowsLoop<'_, L, F, true> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let WindowAxis { taps, dilation, .. } = self.pass.axis;
        let (after, shift) = (self.pass.after as isize, self.pass.shift());
        let (from, to) = self.pass.slab_lanes();
        let end = from as isize;
        for (source, target) in self.source.chunks_exact(from).zip(self.target.chunks_exact_mut(to)) {
            for (tile, target) in target.chunks_mut(WINDOW_TILE_LANES).enumerate() {
                target.fill(self.neutral.store());
                let (first, length) = ((tile * WINDOW_TILE_LANES) as isize, target.len() as isize);
                for tap in 0..taps {
                    // The element that the tap of the first window of the tile covers.
                    let start = first + (shift + (tap * dilation) as isize) * after;
                    let (from, to) = ((-start).clamp(0, length), (end - start).clamp(0, length));
                    if from < to {
                        let source = &source[(start + from) as usize..(start + to) as usize];
                        fold_into::<L, F>(&mut target[from as usize..to as usize], source);
                    }
                }
            }
        }
    }
}

/// The loop over windows that are `stride` elements apart.
impl<L: Lane, F: Fold<L>> Vectorized for WindowsLoop<'_, L, F, false> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let WindowAxis { taps, dilation, stride, .. } = self.pass.axis;
        let (after, shift, rows) = (self.pass.after, self.pass.shift(), self.pass.rows.0 as isize);
        // The windows without padding.
        let inner = (-shift).max(0).cast_unsigned().div_ceil(stride);
        let last = rows - 1 - shift - self.pass.axis.extent() as isize;
        let inner = inner..if last < 0 { 0 } else { last as usize / stride + 1 };
        let (mut from, mut to) = self.pass.slab_lanes();
        // The distance to the next window: if slabs have a single window, to that of the next slab.
        let step = if to == 1 { from } else { stride };
        let mut whole = inner.start..inner.end.min(to);
        if after > 1 || whole.len() < MIN_LANES_FOR_VECTORS && whole != (0..to) {
            whole = 0..0;
        } else if whole == (0..to) && from == step * to {
            // All slabs are folded as one, since their windows are evenly spaced.
            (from, to) = (self.source.len(), self.target.len());
            whole = 0..to;
        }
        for (source, target) in self.source.chunks_exact(from).zip(self.target.chunks_exact_mut(to)) {
            if !whole.is_empty() {
                let first = ((whole.start * step) as isize + shift) as usize;
                let (source, target) = (&source[first..], &mut target[whole.clone()]);
                if step == 2 {
                    fold_pairs::<L, F>(source, target, taps, dilation, self.neutral);
                } else {
                    fold_strided::<L, F>(source, target, taps, dilation, step, self.neutral);
                }
            }
            for window in (0..whole.start).chain(whole.end..to / after) {
                let target = &mut target[window * after..][..after];
                let start = (window * stride) as isize + shift;
                let (from, to) = if inner.contains(&window) {
                    (0, taps)
                } else {
                    let from = (-start).max(0).cast_unsigned().div_ceil(dilation);
                    let room = rows - 1 - start;
                    let to = if room < 0 { 0 } else { room as usize / dilation + 1 };
                    (from.min(taps), to.min(taps))
                };
                if from >= to {
                    target.fill(self.neutral.store());
                    continue;
                }
                let first = (start + (from * dilation) as isize) as usize;
                if after == 1 {
                    let fold = |total, &x: &L::Bytes| F::fold(total, L::load(x));
                    let taps = source[first..].iter().step_by(dilation).take(to - from);
                    let total = taps.fold(self.neutral, fold);
                    target[0] = total.store();
                    continue;
                }
                target.fill(self.neutral.store());
                for tap in 0..to - from {
                    fold_into::<L, F>(target, &source[(first + tap * dilation) * after..][..after]);
                }
            }
        }
    }
}

/// Folds windows that are two elements apart and without padding. The elements that a tap covers
/// are the first ones of pairs, which the compiler reads with vector instructions.
#[inline(always)]
fn fold_pairs<L: Lane, F: Fold<L>>(
    source: &[L::Bytes],
    target: &mut [L::Bytes],
    taps: usize,
    dilation: usize,
    neutral: L,
) {
    for (tile, target) in target.chunks_mut(WINDOW_TILE_LANES).enumerate() {
        target.fill(neutral.store());
        for tap in 0..taps {
            let (pairs, rest) = source[2 * tile * WINDOW_TILE_LANES + tap * dilation..].as_chunks::<2>();
            let (most, last) = target.split_at_mut(pairs.len().min(target.len()));
            for (total, pair) in most.iter_mut().zip(pairs) {
                *total = F::fold(L::load(*total), L::load(pair[0])).store();
            }
            for (total, &x) in last.iter_mut().zip(rest) {
                *total = F::fold(L::load(*total), L::load(x)).store();
            }
        }
    }
}

/// Folds windows that are `step` elements apart and without padding, several at the same time,
/// so that the operations of one window can overlap with those of others.
#[inline(always)]
fn fold_strided<L: Lane, F: Fold<L>>(
    source: &[L::Bytes],
    target: &mut [L::Bytes],
    taps: usize,
    dilation: usize,
    step: usize,
    neutral: L,
) {
    let extent = (taps - 1) * dilation + 1;
    let (groups, rest) = target.as_chunks_mut::<INTERLEAVED_WINDOWS>();
    let done = groups.len() * INTERLEAVED_WINDOWS;
    for (group, slots) in groups.iter_mut().enumerate() {
        let source = &source[group * INTERLEAVED_WINDOWS * step..];
        *slots = fold_windows::<L, F, INTERLEAVED_WINDOWS>(source, step, extent, dilation, neutral);
    }
    for (i, slot) in rest.iter_mut().enumerate() {
        [*slot] = fold_windows::<L, F, 1>(&source[(done + i) * step..], step, extent, dilation, neutral);
    }
}

/// Folds `N` windows that are `step` elements apart.
#[inline(always)]
fn fold_windows<L: Lane, F: Fold<L>, const N: usize>(
    source: &[L::Bytes],
    step: usize,
    extent: usize,
    dilation: usize,
    neutral: L,
) -> [L::Bytes; N] {
    let windows: [&[L::Bytes]; N] = std::array::from_fn(|i| &source[i * step..][..extent]);
    let mut totals = [neutral; N];
    for tap in (0..extent).step_by(dilation) {
        for (total, window) in totals.iter_mut().zip(&windows) {
            *total = F::fold(*total, L::load(window[tap]));
        }
    }
    totals.map(L::store)
}

/// A position along the axis for van Herk's algorithm: the tap within its block (a block has as
/// many elements, `dilation` apart, as windows have taps), and the offset below `dilation`.
#[derive(Clone, Copy)]
struct Cursor {
    tap: usize,
    phase: usize,
    taps: usize,
    dilation: usize,
}

impl Cursor {
    #[inline(always)]
    fn new(index: usize, axis: &WindowAxis) -> Self {
        let WindowAxis { taps, dilation, .. } = *axis;
        Cursor { tap: index / dilation % taps, phase: index % dilation, taps, dilation }
    }

    #[inline(always)]
    fn advance(&mut self, by: usize) {
        self.phase += by;
        while self.phase >= self.dilation {
            self.phase -= self.dilation;
            self.tap = if self.tap + 1 == self.taps { 0 } else { self.tap + 1 };
        }
    }
}

/// Folds windows by van Herk's algorithm: cuts at multiples of the window length.
fn fold_van_herk<L: Lane, F: Fold<L>>(
    pass: &Pass,
    source: &[L::Bytes],
    target: &mut [L::Bytes],
    memory: &mut [L::Bytes],
    neutral: L,
) {
    let WindowAxis { stride, dilation, taps, .. } = pass.axis;
    let (after, shift) = (pass.after, pass.shift());
    let (count, first) = pass.windows;
    let span = pass.axis.span(count);
    let rows = pass.rows.0 as isize;
    let start = first * stride;
    let (from, to) = pass.slab_lanes();
    for (source, target) in source.chunks_exact(from).zip(target.chunks_exact_mut(to)) {
        // The row with an index in the span of the windows, or `None` for padding.
        let present = |index: usize| {
            let row = index as isize + shift;
            (0..rows).contains(&row).then(|| &source[row as usize * after..][..after])
        };
        let (prefixes, rest) = memory.split_at_mut(span * after);
        let suffixes = &mut rest[..span * after];
        let mut cursor = Cursor::new(start, &pass.axis);
        for index in 0..span {
            let (done, left) = prefixes.split_at_mut(index * after);
            let left = &mut left[..after];
            if cursor.tap == 0 || index < dilation {
                left.fill(neutral.store());
            } else {
                left.copy_from_slice(&done[(index - dilation) * after..][..after]);
            }
            if let Some(elements) = present(index) {
                fold_slice::<L, F>(left, elements);
            }
            cursor.advance(1);
        }
        let mut ends = Cursor::new(start + span - 1, &pass.axis);
        for index in (0..span).rev() {
            let (right, done) = suffixes[index * after..].split_at_mut(after);
            match present(index) {
                Some(elements) => right.copy_from_slice(elements),
                None => right.fill(neutral.store()),
            }
            if ends.tap != taps - 1 && index + dilation < span {
                fold_slice::<L, F>(right, &done[(dilation - 1) * after..][..after]);
            }
            // One element back.
            if ends.phase > 0 {
                ends.phase -= 1;
            } else {
                ends.phase = dilation - 1;
                ends.tap = if ends.tap == 0 { taps - 1 } else { ends.tap - 1 };
            }
        }
        let mut cursor = Cursor::new(start, &pass.axis);
        for (window, target) in target.chunks_exact_mut(after).enumerate() {
            let index = window * stride;
            let left = &prefixes[(index + (taps - 1) * dilation) * after..][..after];
            if cursor.tap == 0 {
                target.copy_from_slice(left);
            } else {
                target.copy_from_slice(&suffixes[index * after..][..after]);
                fold_slice::<L, F>(target, left);
            }
            cursor.advance(stride);
        }
    }
}

/// Folds windows by doubling: from windows of half the length.
fn fold_by_doubling<L: Lane, F: Fold<L>>(
    pass: &Pass,
    source: &[L::Bytes],
    target: &mut [L::Bytes],
    memory: &mut [L::Bytes],
    neutral: L,
) {
    let WindowAxis { stride, dilation, taps, .. } = pass.axis;
    let (after, shift) = (pass.after, pass.shift());
    let count = pass.windows.0;
    let span = pass.axis.span(count) * after;
    let (from, to) = pass.slab_lanes();
    // The lanes of padding before the elements, and the first lane that is not removed.
    let leading = (-shift).clamp(0, (span / after) as isize) as usize * after;
    let first = shift.max(0) as usize * after;
    let (padded, rest) = memory.split_at_mut(span);
    let (spare, rest) = rest.split_at_mut(span);
    let totals = &mut rest[..((count - 1) * stride + 1) * after];
    for (source, target) in source.chunks_exact(from).zip(target.chunks_exact_mut(to)) {
        let (mut folds, mut next) = (&mut *padded, &mut *spare);
        let present = from.saturating_sub(first).min(span - leading);
        folds.fill(neutral.store());
        if present > 0 {
            folds[leading..leading + present].copy_from_slice(&source[first..first + present]);
        }
        totals.fill(neutral.store());
        // The number of taps of `folds`, and of `totals` until now.
        let (mut length, mut done) = (1, 0);
        loop {
            if taps & length != 0 {
                fold_slice::<L, F>(totals, &folds[done * dilation * after..]);
                done += length;
            }
            if done == taps {
                break;
            }
            let distance = length * dilation * after;
            next.copy_from_slice(folds);
            fold_slice::<L, F>(next, &folds[distance..]);
            std::mem::swap(&mut folds, &mut next);
            length *= 2;
        }
        let totals = totals.chunks_exact(after).step_by(stride);
        for (target, total) in target.chunks_exact_mut(after).zip(totals) {
            target.copy_from_slice(total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trimming_keeps_the_taps_that_cover_elements() {
        let axis = WindowAxis { size: 3, windows: 5, taps: 9, stride: 1, dilation: 1, low: 5 };
        let trimmed = axis.trimmed();
        assert_eq!((trimmed.taps, trimmed.low), (7, 4));
        // Far more padding than elements.
        let low = isize::MAX / 64;
        let taps = 2 * low as usize;
        let far = WindowAxis { size: 2, windows: 1, taps, stride: 7, dilation: 1, low };
        assert_eq!(far.trimmed(), WindowAxis { taps: 2, stride: 1, low: 0, ..far });
        let none = WindowAxis { size: 4, windows: 2, taps: 2, stride: 10, dilation: 1, low: 5 };
        // Taps 0 and 10 of the padded axis are before and after the elements.
        assert_eq!(WindowAxis { taps: 1, ..none }.trimmed().taps, 1);
        assert_eq!(WindowAxis { low: -9, windows: 1, ..none }.trimmed().taps, 0);
    }
}
