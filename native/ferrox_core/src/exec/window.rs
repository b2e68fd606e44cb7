//! Folds the windows that slide along one axis.
//!
//! Problem: a window of `k` elements in each of several axes, without `k`
//! operations an element for long ones. Technique: axes are folded one after
//! the other, so that a window costs the sum of its sides and not their
//! product. Short windows are folded place by place, a whole stretch of the
//! result at a time. Of long ones those of twice, four times and eight times the
//! length are folded from one another, and a window from those that its length is
//! the sum of. That takes passes over whole stretches, a few more where the
//! length doubles; where axes after this one make stretches anyway, or lengths
//! are extreme, windows are cut at multiples of their length instead: what is
//! before a cut is a fold from the left, what is behind it one from the right,
//! and a window is one of each (van Herk, 1992), three operations however long
//! it is. Cuts lie at fixed places of the axis, so that the bits do not depend on
//! how the work is split. Padding is neutral, and left out.

use crate::cost::{Cost, work};
use crate::dtype::Lane;
use crate::exec::reduce::fold::Fold;
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::cooperative_yield;

/// Windows shorter than this are folded place by place.
const LONG: usize = 8;

/// Long windows of up to so many places are doubled where stretches after the
/// axis are shorter than `NARROW`.
const DOUBLED: usize = 1 << 12;
const NARROW: usize = 16;

/// Windows that are folded side by side, where all of their places are there.
pub(crate) const SIDE_BY_SIDE: usize = 8;

/// Elements of a result that are folded at a time, so that they stay in the
/// first-level cache.
const TILE: usize = 1024;

/// The windows along an axis, cut to where any of them meets an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Elements along the axis.
    pub size: usize,
    /// Windows along the axis.
    pub windows: usize,
    /// Places of a window; none if no window meets an element.
    pub places: usize,
    /// From one window to the next.
    pub stride: usize,
    /// From one place of a window to the next.
    pub dilation: usize,
    /// Padding before the first element, negative where elements are left out.
    pub low: isize,
}

impl Axis {
    /// Leaves out the places of the windows that only meet padding.
    #[must_use]
    pub fn trimmed(self) -> Self {
        let Axis { size, windows, places, stride, dilation, low } = self;
        if size == 0 || windows == 0 {
            return Axis { places: 0, ..self };
        }
        // With one window, or one place, any distance to the next is as good.
        let stride = if windows == 1 { 1 } else { stride };
        let dilation = if places == 1 { 1 } else { dilation };
        let step = dilation as isize;
        let last_start = ((windows - 1) * stride) as isize;
        let first = (low - last_start).max(0).cast_unsigned().div_ceil(dilation);
        let end = match size as isize - 1 + low {
            last @ 0.. => (last / step) as usize + 1,
            _ => 0,
        };
        let places = end.min(places).saturating_sub(first);
        let low = if places == 0 { 0 } else { low - first as isize * step };
        Axis { size, windows, places, stride, dilation: if places <= 1 { 1 } else { dilation }, low }
    }

    /// Elements from the first place of a window to its last.
    #[must_use]
    pub fn extent(&self) -> usize {
        self.places.saturating_sub(1) * self.dilation
    }

    /// Elements that a run of windows reaches over.
    #[must_use]
    pub fn reach(&self, windows: usize) -> usize {
        (windows - 1) * self.stride + self.extent() + 1
    }

    /// Whether each window is the element at its own place.
    #[must_use]
    pub fn is_trivial(&self) -> bool {
        self.size == self.windows && self.places == 1 && self.stride == 1 && self.low == 0
    }

    /// Whether windows are cut; a choice for all of the axis.
    #[must_use]
    pub fn is_long(&self) -> bool {
        let reach = self.reach(self.windows.max(1));
        self.places >= LONG
            && reach / 4 <= self.size + self.windows
            && self.windows.saturating_mul(self.places) / 4 > reach
    }

    /// The elements that windows `from..to` meet.
    #[must_use]
    pub fn elements(&self, from: usize, to: usize) -> (usize, usize) {
        let bound = |index: isize| index.clamp(0, self.size as isize) as usize;
        if self.places == 0 {
            return (0, 0);
        }
        let first = bound((from * self.stride) as isize - self.low);
        let end = bound(((to - 1) * self.stride + self.extent()) as isize + 1 - self.low);
        (first, end.max(first))
    }
}

/// One axis of dense elements: any number of times `[rows, after]` lanes are
/// read, and `[windows, after]` written.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The axis. Its size is that of all of it.
    pub axis: Axis,
    /// Elements that are there, and the first of them.
    pub rows: (usize, usize),
    /// Windows to fold, and the first of them.
    pub windows: (usize, usize),
    /// The axes after.
    pub after: usize,
    /// The lane that stands for padding.
    pub neutral: [u8; 16],
}

impl Pass {
    /// The row of the first place of the first window.
    fn shift(&self) -> isize {
        (self.windows.1 * self.axis.stride) as isize - self.axis.low - self.rows.1 as isize
    }

    /// Lanes of one stretch that is read, and of one that is written.
    fn stretches(&self) -> (usize, usize) {
        (self.rows.0 * self.after, self.windows.0 * self.after)
    }

    /// Lanes that the loops need to work with.
    #[must_use]
    pub fn workspace(&self) -> usize {
        if self.axis.is_long() { 3 * self.axis.reach(self.windows.0) * self.after } else { 0 }
    }
}

/// The loops of an operation for a lane: the pass, what is read, what is
/// written, and memory to work with.
pub type Folder = fn(&Pass, &[u8], &mut [u8], &mut [u8]);

/// Folds windows by `F`.
pub(crate) fn fold<L: Lane, F: Fold<L>>(pass: &Pass, source: &[u8], target: &mut [u8], memory: &mut [u8]) {
    let neutral = L::load(L::view(&pass.neutral)[0]);
    let (_, to) = pass.stretches();
    let (source, target) = (L::view(source), L::view_mut(target));
    // There may be no stretch, or nothing in one.
    if source.is_empty() || target.is_empty() || pass.axis.places == 0 {
        target.fill(neutral.store());
        return;
    }
    let memory = L::view_mut(memory);
    let kind = std::marker::PhantomData::<F>;
    let Axis { places, stride, .. } = pass.axis;
    if pass.axis.is_long() && pass.after < NARROW && places <= DOUBLED {
        doubled::<L, F>(pass, source, target, memory, neutral);
    } else if pass.axis.is_long() {
        cut::<L, F>(pass, source, target, memory, neutral);
    } else if stride == 1 && to >= NARROW {
        vectorize(Dense { pass, source, target, neutral, kind });
    } else {
        vectorize(Strided { pass, source, target, neutral, kind });
    }
}

/// Folds a stretch of one pass into another; the loops around it are compiled once.
struct Stretch<'a, L: Lane, F> {
    left: &'a mut [L::Bytes],
    right: &'a [L::Bytes],
    kind: std::marker::PhantomData<F>,
}

impl<L: Lane, F: Fold<L>> Vectorized for Stretch<'_, L, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        fold_into::<L, F>(self.left, self.right);
    }
}

/// What folding a byte costs.
pub(crate) const BYTE: Cost = 12;

/// As `fold_into`, for loops that are compiled for no level of their own.
#[inline(never)]
fn fold_stretch<L: Lane, F: Fold<L>>(left: &mut [L::Bytes], right: &[L::Bytes]) {
    if left.len() < NARROW {
        return fold_into::<L, F>(left, right);
    }
    let bytes = size_of_val(left);
    vectorize(Stretch::<L, F> { left, right, kind: std::marker::PhantomData });
    cooperative_yield::after(work(bytes, BYTE));
}

/// Folds `right` into `left`, element by element.
#[inline(always)]
fn fold_into<L: Lane, F: Fold<L>>(left: &mut [L::Bytes], right: &[L::Bytes]) {
    for (a, &b) in left.iter_mut().zip(right) {
        *a = F::fold(L::load(*a), L::load(b)).store();
    }
}

/// Windows at every element: the axis and those after it are one stretch.
struct Dense<'a, L: Lane, F> {
    pass: &'a Pass,
    source: &'a [L::Bytes],
    target: &'a mut [L::Bytes],
    neutral: L,
    kind: std::marker::PhantomData<F>,
}

impl<L: Lane, F: Fold<L>> Vectorized for Dense<'_, L, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Axis { places, dilation, .. } = self.pass.axis;
        let (after, shift) = (self.pass.after as isize, self.pass.shift());
        let (from, to) = self.pass.stretches();
        let end = from as isize;
        for (source, target) in self.source.chunks_exact(from).zip(self.target.chunks_exact_mut(to)) {
            for (tile, target) in target.chunks_mut(TILE).enumerate() {
                target.fill(self.neutral.store());
                let (first, length) = ((tile * TILE) as isize, target.len() as isize);
                for place in 0..places {
                    // The element that meets the first of the tile.
                    let start = first + (shift + (place * dilation) as isize) * after;
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

/// Windows some elements apart.
struct Strided<'a, L: Lane, F> {
    pass: &'a Pass,
    source: &'a [L::Bytes],
    target: &'a mut [L::Bytes],
    neutral: L,
    kind: std::marker::PhantomData<F>,
}

impl<L: Lane, F: Fold<L>> Vectorized for Strided<'_, L, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Axis { places, dilation, stride, .. } = self.pass.axis;
        let (after, shift, rows) = (self.pass.after, self.pass.shift(), self.pass.rows.0 as isize);
        // Windows that lie within the elements.
        let inner = (-shift).max(0).cast_unsigned().div_ceil(stride);
        let last = rows - 1 - shift - self.pass.axis.extent() as isize;
        let inner = inner..if last < 0 { 0 } else { last as usize / stride + 1 };
        let (mut from, mut to) = self.pass.stretches();
        // To the next window; one that is alone is followed by that of the next stretch.
        let step = if to == 1 { from } else { stride };
        let mut whole = inner.start..inner.end.min(to);
        if after > 1 || whole.len() < NARROW && whole != (0..to) {
            whole = 0..0;
        } else if whole == (0..to) && from == step * to {
            // One stretch goes on where the one before has ended.
            (from, to) = (self.source.len(), self.target.len());
            whole = 0..to;
        }
        for (source, target) in self.source.chunks_exact(from).zip(self.target.chunks_exact_mut(to)) {
            if !whole.is_empty() {
                let first = ((whole.start * step) as isize + shift) as usize;
                let (source, target) = (&source[first..], &mut target[whole.clone()]);
                if step == 2 {
                    fold_pairs::<L, F>(source, target, places, dilation, self.neutral);
                } else {
                    fold_apart::<L, F>(source, target, places, dilation, step, self.neutral);
                }
            }
            for window in (0..whole.start).chain(whole.end..to / after) {
                let target = &mut target[window * after..][..after];
                let start = (window * stride) as isize + shift;
                let (from, to) = if inner.contains(&window) {
                    (0, places)
                } else {
                    let from = (-start).max(0).cast_unsigned().div_ceil(dilation);
                    let room = rows - 1 - start;
                    let to = if room < 0 { 0 } else { room as usize / dilation + 1 };
                    (from.min(places), to.min(places))
                };
                if from >= to {
                    target.fill(self.neutral.store());
                    continue;
                }
                let first = (start + (from * dilation) as isize) as usize;
                if after == 1 {
                    let fold = |total, &x: &L::Bytes| F::fold(total, L::load(x));
                    let places = source[first..].iter().step_by(dilation).take(to - from);
                    let total = places.fold(self.neutral, fold);
                    target[0] = total.store();
                    continue;
                }
                target.fill(self.neutral.store());
                for place in 0..to - from {
                    fold_into::<L, F>(target, &source[(first + place * dilation) * after..][..after]);
                }
            }
        }
    }
}

/// Windows two elements apart, of which all places are there: those that a place meets are
/// taken from pairs, which the compiler does in vectors.
#[inline(always)]
fn fold_pairs<L: Lane, F: Fold<L>>(
    source: &[L::Bytes],
    target: &mut [L::Bytes],
    places: usize,
    dilation: usize,
    neutral: L,
) {
    for (tile, target) in target.chunks_mut(TILE).enumerate() {
        target.fill(neutral.store());
        for place in 0..places {
            let (pairs, rest) = source[2 * tile * TILE + place * dilation..].as_chunks::<2>();
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

/// Windows any number of elements apart, of which all places are there: several side by side, so
/// that one doesn't wait for itself.
#[inline(always)]
fn fold_apart<L: Lane, F: Fold<L>>(
    source: &[L::Bytes],
    target: &mut [L::Bytes],
    places: usize,
    dilation: usize,
    step: usize,
    neutral: L,
) {
    let extent = (places - 1) * dilation + 1;
    let (groups, rest) = target.as_chunks_mut::<SIDE_BY_SIDE>();
    let done = groups.len() * SIDE_BY_SIDE;
    for (group, slots) in groups.iter_mut().enumerate() {
        let source = &source[group * SIDE_BY_SIDE * step..];
        *slots = fold_some::<L, F, SIDE_BY_SIDE>(source, step, extent, dilation, neutral);
    }
    for (i, slot) in rest.iter_mut().enumerate() {
        [*slot] = fold_some::<L, F, 1>(&source[(done + i) * step..], step, extent, dilation, neutral);
    }
}

/// Some windows, `step` elements apart.
#[inline(always)]
fn fold_some<L: Lane, F: Fold<L>, const N: usize>(
    source: &[L::Bytes],
    step: usize,
    extent: usize,
    dilation: usize,
    neutral: L,
) -> [L::Bytes; N] {
    let windows: [&[L::Bytes]; N] = std::array::from_fn(|i| &source[i * step..][..extent]);
    let mut totals = [neutral; N];
    for place in (0..extent).step_by(dilation) {
        for (total, window) in totals.iter_mut().zip(&windows) {
            *total = F::fold(*total, L::load(window[place]));
        }
    }
    totals.map(L::store)
}

/// Counts along the axis: the place within a stretch from one cut to the next,
/// and the element within that place.
#[derive(Clone, Copy)]
struct Cursor {
    place: usize,
    within: usize,
    places: usize,
    dilation: usize,
}

impl Cursor {
    #[inline(always)]
    fn new(index: usize, axis: &Axis) -> Self {
        let Axis { places, dilation, .. } = *axis;
        Cursor { place: index / dilation % places, within: index % dilation, places, dilation }
    }

    #[inline(always)]
    fn advance(&mut self, by: usize) {
        self.within += by;
        while self.within >= self.dilation {
            self.within -= self.dilation;
            self.place = if self.place + 1 == self.places { 0 } else { self.place + 1 };
        }
    }
}

/// Windows cut in two.
fn cut<L: Lane, F: Fold<L>>(
    pass: &Pass,
    source: &[L::Bytes],
    target: &mut [L::Bytes],
    memory: &mut [L::Bytes],
    neutral: L,
) {
    let Axis { stride, dilation, places, .. } = pass.axis;
    let (after, shift) = (pass.after, pass.shift());
    let (count, first) = pass.windows;
    let reach = pass.axis.reach(count);
    let rows = pass.rows.0 as isize;
    let start = first * stride;
    let (from, to) = pass.stretches();
    for (source, target) in source.chunks_exact(from).zip(target.chunks_exact_mut(to)) {
        // Elements without padding, by their place along the reach.
        let there = |index: usize| {
            let row = index as isize + shift;
            (0..rows).contains(&row).then(|| &source[row as usize * after..][..after])
        };
        let (lefts, rest) = memory.split_at_mut(reach * after);
        let rights = &mut rest[..reach * after];
        let mut cursor = Cursor::new(start, &pass.axis);
        for index in 0..reach {
            let (done, left) = lefts.split_at_mut(index * after);
            let left = &mut left[..after];
            if cursor.place == 0 || index < dilation {
                left.fill(neutral.store());
            } else {
                left.copy_from_slice(&done[(index - dilation) * after..][..after]);
            }
            if let Some(elements) = there(index) {
                fold_stretch::<L, F>(left, elements);
            }
            cursor.advance(1);
        }
        let mut ends = Cursor::new(start + reach - 1, &pass.axis);
        for index in (0..reach).rev() {
            let (right, done) = rights[index * after..].split_at_mut(after);
            match there(index) {
                Some(elements) => right.copy_from_slice(elements),
                None => right.fill(neutral.store()),
            }
            if ends.place != places - 1 && index + dilation < reach {
                fold_stretch::<L, F>(right, &done[(dilation - 1) * after..][..after]);
            }
            // One back.
            if ends.within > 0 {
                ends.within -= 1;
            } else {
                ends.within = dilation - 1;
                ends.place = if ends.place == 0 { places - 1 } else { ends.place - 1 };
            }
        }
        let mut cursor = Cursor::new(start, &pass.axis);
        for (window, target) in target.chunks_exact_mut(after).enumerate() {
            let index = window * stride;
            let left = &lefts[(index + (places - 1) * dilation) * after..][..after];
            if cursor.place == 0 {
                target.copy_from_slice(left);
            } else {
                target.copy_from_slice(&rights[index * after..][..after]);
                fold_stretch::<L, F>(target, left);
            }
            cursor.advance(stride);
        }
    }
}

/// Windows made of shorter ones.
fn doubled<L: Lane, F: Fold<L>>(
    pass: &Pass,
    source: &[L::Bytes],
    target: &mut [L::Bytes],
    memory: &mut [L::Bytes],
    neutral: L,
) {
    let Axis { stride, dilation, places, .. } = pass.axis;
    let (after, shift) = (pass.after, pass.shift());
    let count = pass.windows.0;
    let reach = pass.axis.reach(count) * after;
    let (from, to) = pass.stretches();
    // Elements that are left of the padding, and the first one behind it.
    let lead = (-shift).clamp(0, (reach / after) as isize) as usize * after;
    let first = shift.max(0) as usize * after;
    let (padded, rest) = memory.split_at_mut(reach);
    let (spare, rest) = rest.split_at_mut(reach);
    let totals = &mut rest[..((count - 1) * stride + 1) * after];
    for (source, target) in source.chunks_exact(from).zip(target.chunks_exact_mut(to)) {
        let (mut folds, mut next) = (&mut *padded, &mut *spare);
        let there = from.saturating_sub(first).min(reach - lead);
        folds.fill(neutral.store());
        if there > 0 {
            folds[lead..lead + there].copy_from_slice(&source[first..first + there]);
        }
        totals.fill(neutral.store());
        // Places that each fold is made of, and each total so far.
        let (mut length, mut done) = (1, 0);
        loop {
            if places & length != 0 {
                fold_stretch::<L, F>(totals, &folds[done * dilation * after..]);
                done += length;
            }
            if done == places {
                break;
            }
            let distance = length * dilation * after;
            next.copy_from_slice(folds);
            fold_stretch::<L, F>(next, &folds[distance..]);
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
    fn trimming_keeps_the_places_that_meet_elements() {
        let axis = Axis { size: 3, windows: 5, places: 9, stride: 1, dilation: 1, low: 5 };
        let trimmed = axis.trimmed();
        assert_eq!((trimmed.places, trimmed.low), (7, 4));
        // Far more padding than elements.
        let far = Axis { size: 2, windows: 1, places: 1 << 40, stride: 7, dilation: 1, low: 1 << 39 };
        assert_eq!(far.trimmed(), Axis { places: 2, stride: 1, low: 0, ..far });
        let none = Axis { size: 4, windows: 2, places: 2, stride: 10, dilation: 1, low: 5 };
        // Places 0 and 10 of the padded axis are before and behind the elements.
        assert_eq!(Axis { places: 1, ..none }.trimmed().places, 1);
        assert_eq!(Axis { low: -9, windows: 1, ..none }.trimmed().places, 0);
    }
}
