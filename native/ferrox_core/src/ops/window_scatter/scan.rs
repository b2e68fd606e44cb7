//! Scatters that compare the elements of each window in order.
//!
//! Problem: the general technique gives every element a lane of 16 bytes, and takes several passes
//! over them. Technique: where few elements are in several windows and no window covers padding, as
//! in the gradient of a max-pooling, the elements of each window are compared one after the other,
//! and its value is added at once, to totals that stay in the cache. Limit: the time grows with the
//! number of elements of a window, so that long windows that overlap are not for this technique.

use super::{Choice, ScatterTotal, advance, key};
use crate::cost::{self, Cost, WINDOW_SCAN_ELEMENT_COST, WINDOW_SCATTER_COST, Work};
use crate::dtype::{Class, Element};
use crate::exec::convert::conversion;
use crate::exec::memory::filled;
use crate::exec::threads::{cooperative_yield, parallel};
use crate::exec::window::WindowAxis;
use crate::layout::row_major;
use crate::{DType, Error, dispatch};

/// The most elements that all windows have together, as a multiple of the elements of the tensor.
const MAX_READS_PER_ELEMENT: usize = 4;

/// The most elements of a window, whose indices are kept.
const MAX_TAPS: usize = 1024;

/// The windows of a slab, the elements of the axes from the first one that windows slide along on.
pub(super) struct WindowScan {
    choice: Choice,
    axes: Vec<WindowAxis>,
    strides: Vec<usize>,
    /// The indices of the elements of the first window.
    taps: Vec<usize>,
    slabs: usize,
    /// The number of elements and of windows in a slab.
    size: usize,
    windows: usize,
}

/// The bytes of dense operands. The values, and the number that totals start with, have the type of
/// the totals.
#[derive(Clone, Copy)]
pub(super) struct ScanOperands<'a> {
    pub(super) dtype: DType,
    pub(super) elements: &'a [u8],
    pub(super) values: &'a [u8],
    pub(super) start: [u8; 8],
}

impl WindowScan {
    /// Returns `None` for windows that are better scattered another way.
    pub(super) fn new(choice: Choice, axes: &[WindowAxis]) -> Option<Self> {
        let is_padded = |axis: &WindowAxis| {
            axis.low > 0 || axis.span(axis.windows) as isize - axis.low > axis.size as isize
        };
        if axes.iter().any(|axis| axis.windows == 0 || axis.taps == 0 || is_padded(axis)) {
            return None;
        }
        let slides = |axis: &WindowAxis| !axis.is_trivial();
        let first = axes.iter().position(slides)?;
        let product = |axes: &[WindowAxis], dim: fn(&WindowAxis) -> usize| {
            axes.iter().try_fold(1_usize, |product, axis| product.checked_mul(dim(axis)))
        };
        let (outer, axes) = axes.split_at(first);
        let [slabs, size] = [product(outer, |axis| axis.size)?, product(axes, |axis| axis.size)?];
        let [windows, taps] = [product(axes, |axis| axis.windows)?, product(axes, |axis| axis.taps)?];
        if taps > MAX_TAPS || windows.checked_mul(taps)? > MAX_READS_PER_ELEMENT.saturating_mul(size) {
            return None;
        }
        let dims: Vec<usize> = axes.iter().map(|axis| axis.size).collect();
        let strides: Vec<usize> = row_major(&dims).iter().map(|&stride| stride as usize).collect();
        let mut offsets = vec![0];
        for (axis, stride) in axes.iter().zip(&strides) {
            let along = |base: &usize| {
                let base = base + axis.low.min(0).unsigned_abs() * stride;
                (0..axis.taps).map(move |tap| base + tap * axis.dilation * stride)
            };
            offsets = offsets.iter().flat_map(along).collect();
        }
        Some(WindowScan { choice, axes: axes.to_vec(), strides, taps: offsets, slabs, size, windows })
    }

    /// The work of all slabs.
    pub(super) fn work(&self) -> Work {
        cost::work(self.slabs, self.cost())
    }

    /// The cost of a slab.
    fn cost(&self) -> Cost {
        let read = WINDOW_SCAN_ELEMENT_COST.saturating_mul(self.taps.len() as Cost);
        let windows = read.saturating_add(WINDOW_SCATTER_COST).saturating_mul(self.windows as Cost);
        windows.saturating_add(WINDOW_SCAN_ELEMENT_COST.saturating_mul(self.size as Cost))
    }

    /// Scatters to `out`, a tensor of the type `dtype`, which isn't packed.
    pub(super) fn run<T: ScatterTotal>(
        &self,
        operands: ScanOperands<'_>,
        lane: DType,
        dtype: DType,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let cost = self.cost();
        let store = conversion(lane, dtype);
        parallel::try_fill(out, self.slabs, cost, |first, part| {
            let start = T::load(operands.start);
            let mut totals = filled(self.choice.name(), lane, &[self.size], self.size, start.store())?;
            for (slab, out) in (first..).zip(part.chunks_exact_mut(self.size * dtype.width())) {
                totals.fill(start.store());
                dispatch!(real operands.dtype, E => match self.choice {
                    Choice::Max => self.scan::<E, T, false>(slab, operands, &mut totals),
                    Choice::Min => self.scan::<E, T, true>(slab, operands, &mut totals),
                }, else => {});
                match store {
                    Some(convert) => convert(totals.as_flattened(), out),
                    None => out.copy_from_slice(totals.as_flattened()),
                }
                cooperative_yield::after(cost::work(1, cost));
            }
            Ok(())
        })
    }

    /// Adds the value of each window of a slab to the total of the element that it chooses.
    fn scan<E: Element, T: ScatterTotal, const SMALLEST: bool>(
        &self,
        slab: usize,
        operands: ScanOperands<'_>,
        totals: &mut [[u8; 8]],
    ) {
        let elements = &E::view(operands.elements)[slab * self.size..][..self.size];
        let values = &operands.values.as_chunks::<8>().0[slab * self.windows..][..self.windows];
        let Some((last, outer)) = self.axes.split_last() else { return };
        let mut position = vec![0; outer.len()];
        for row in values.chunks_exact(last.windows) {
            let starts = outer.iter().zip(&self.strides).zip(&position);
            let start: usize = starts.map(|((axis, stride), at)| at * axis.stride * stride).sum();
            for (window, &value) in row.iter().enumerate() {
                let start = start + window * last.stride;
                let chosen = start + self.chosen::<E, SMALLEST>(&elements[start..]);
                totals[chosen] = T::load(totals[chosen]).plus(T::load(value)).store();
            }
            advance(outer, &mut position);
        }
    }

    /// The index of the element that a window chooses; `elements` begins where the window does.
    #[inline(always)]
    fn chosen<E: Element, const SMALLEST: bool>(&self, elements: &[E::Bytes]) -> usize {
        let [first, rest @ ..] = &self.taps[..] else { return 0 };
        let (mut chosen, mut best) = (*first, E::load(elements[*first]));
        for &tap in rest {
            let element = E::load(elements[tap]);
            if replaces::<E, SMALLEST>(element, best) {
                (chosen, best) = (tap, element);
            }
        }
        chosen
    }
}

/// Whether an element is chosen after `best`. The first element of a window stays if it is NaN, and
/// other NaN are not chosen.
#[inline(always)]
fn replaces<E: Element, const SMALLEST: bool>(element: E, best: E) -> bool {
    match (E::CLASS, SMALLEST) {
        (Class::Integer, false) => key(element) >= key(best),
        (Class::Integer, true) => key(element) <= key(best),
        (_, false) => element.to_f64() >= best.to_f64(),
        (_, true) => element.to_f64() <= best.to_f64(),
    }
}
