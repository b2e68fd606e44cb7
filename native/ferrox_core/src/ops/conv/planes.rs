//! Convolutions without patches.
//!
//! Problem: patches are as many times larger than the input as the kernel has places, and
//! laying them out takes as long as multiplying them with a few filters. Technique: where the
//! input is padded, and its elements are sorted by what they leave when divided by the stride,
//! the elements that a place of the kernel meets at successive positions lie side by side, at a
//! distance that only the place decides. Only at the end of a line do they run into the next:
//! there, sums are made that are not written.

use std::borrow::Cow;

use super::{Job, OP, Sizes};
use crate::cost::{self, Cost};
use crate::exec::convert::conversion;
use crate::exec::gemm::indirect;
use crate::exec::gemm::indirect::{Kernel, PANEL_ROW_MULTIPLE, Panel, PanelFloat, columns};
use crate::exec::im2col::{Axis, Patches, count_up};
use crate::exec::memory::scratch;
use crate::exec::threads::parallel;
use crate::{DType, Error};

/// What an element costs that is padded.
const PADDED: Cost = 500;

/// Rows of a part at most: the sums of a few columns of each take memory.
const ROWS: usize = 512;

impl Job<'_> {
    /// An image, all groups of its channels, at a time.
    pub(super) fn by_planes(&self, planes: &Planes, out: &mut [u8]) -> Result<(), Error> {
        let Sizes { batch, filters, channels, feature_groups, batch_groups, .. } = self.sizes;
        let (positions, depth, lane) = (self.sizes.positions(), self.sizes.depth(), self.lane);
        let rows = filters / batch_groups;
        let store = conversion(lane, self.dtype);
        let one = |index: usize, out: &mut [u8], alone: bool| {
            let (batch, group) = (index / batch_groups, index % batch_groups);
            let mut image = self.patches(batch, group);
            image.channels.0 = channels * feature_groups;
            let filters = &self.filters[group * rows * depth * lane.width()..];
            let convolve = |out: &mut [u8]| match lane {
                DType::F32 => planes.convolve::<f32>((&image, lane), feature_groups, filters, out, alone),
                _ => planes.convolve::<f64>((&image, lane), feature_groups, filters, out, alone),
            };
            let Some(convert) = store else { return convolve(out) };
            let mut wide = scratch(OP, lane, &[rows, positions], rows * positions * lane.width())?;
            convolve(&mut wide)?;
            convert(&wide, out);
            Ok(())
        };
        let (images, size) = (batch * batch_groups, rows * positions);
        let cost = indirect::cost(lane.width(), depth).saturating_mul(size as Cost);
        let length = size * self.dtype.width();
        if images >= 2 * parallel::threads() && parallel::pays(images, cost) {
            return parallel::try_fill(out, images, cost, |first, out| {
                let mut images = out.chunks_exact_mut(length).enumerate();
                images.try_for_each(|(i, out)| one(first + i, out, true))
            });
        }
        out.chunks_exact_mut(length).enumerate().try_for_each(|(i, out)| one(i, out, false))
    }
}

/// How the padded input of a convolution lies.
#[derive(Debug)]
pub(super) struct Planes {
    kernel: Kernel,
    /// The axes as those of a convolution that pads: its places are the rests of a division by
    /// the stride, and make a plane each.
    axes: Vec<Axis>,
    /// Planes of a channel, and elements of a plane.
    planes: usize,
    size: usize,
    /// Channels of a filter, and from one to the next.
    channels: usize,
    channel: usize,
    /// Where the elements of each channel and place of a filter begin.
    steps: Vec<usize>,
    /// Which elements of each vector are at a position.
    lanes: Vec<u16>,
    /// Whether the input is its own plane.
    in_place: bool,
}

impl Planes {
    /// For filters of so many channels, which are some distance apart in memory; `None` where
    /// there are no instructions for it, or most sums would not be written.
    pub(super) fn new<T: PanelFloat>(axes: &[Axis], channels: usize, distance: isize) -> Option<Self> {
        let kernel = Kernel::of::<T>()?;
        let vector = kernel.vector;
        let mut dense = 1;
        let mut in_place = true;
        for axis in axes.iter().rev() {
            let Axis { size, positions, places, stride, input_dilation, low, step, .. } = *axis;
            in_place &= (places, stride, input_dilation, low) == (1, 1, 1, 0) && positions == size;
            in_place &= step == dense || size == 1;
            dense *= size as isize;
        }
        in_place &= distance >= dense;
        let padded = |axis: &Axis| {
            let extent = (axis.places - 1) * axis.kernel_dilation;
            let positions = axis.positions + extent / axis.stride;
            Axis { positions, places: axis.stride.min(extent + 1), kernel_dilation: 1, ..*axis }
        };
        let planes: Vec<Axis> = axes.iter().map(padded).collect();
        let product = |dim: fn(&Axis) -> usize| {
            planes.iter().map(dim).try_fold(1, |product: usize, dim| product.checked_mul(dim))
        };
        let (count, size) = (product(|axis| axis.places)?, product(|axis| axis.positions)?);
        let channel = if in_place { distance.cast_unsigned() } else { count.checked_mul(size)? };
        let positions: usize = axes.iter().map(|axis| axis.positions).product();
        // The last position, and those of the lines before.
        let last = axes
            .iter()
            .zip(&planes)
            .fold(0, |last, (axis, padded)| last * padded.positions + axis.positions - 1);
        let vectors = last / vector + 1;
        if vectors > 1 && positions < vectors * vector / 3 {
            return None;
        }
        let mut lanes = vec![0; vectors];
        let length = axes.last().map_or(1, |axis| axis.positions);
        let mut line = vec![0; axes.len()];
        for _ in 0..positions / length {
            let mut from = line.iter().zip(&planes).fold(0, |from, (i, padded)| from * padded.positions + i);
            let end = from + length;
            while from < end {
                let (number, first) = (from / vector, from % vector);
                let count = (vector - first).min(end - from);
                lanes[number] |= (((1_u32 << count) - 1) << first) as u16;
                from += count;
            }
            let outer = axes.len().saturating_sub(1);
            count_up(&axes[..outer], |axis| axis.positions, &mut line[..outer]);
        }
        let places: usize = axes.iter().map(|axis| axis.places).product();
        let mut steps = Vec::with_capacity(channels * places);
        let mut place = vec![0; axes.len()];
        for _ in 0..places {
            let (mut plane, mut start) = (0, 0);
            for ((axis, padded), place) in axes.iter().zip(&planes).zip(&place) {
                let at = place * axis.kernel_dilation;
                plane = plane * padded.places + at % axis.stride;
                start = start * padded.positions + at / axis.stride;
            }
            steps.push(plane * size + start);
            count_up(axes, |axis| axis.places, &mut place);
        }
        for c in 1..channels {
            steps.extend_from_within(..places);
            steps[c * places..].iter_mut().for_each(|step| *step += c * channel);
        }
        Some(Planes { kernel, axes: planes, planes: count, size, channels, channel, steps, lanes, in_place })
    }

    /// Convolves one image, of the channels of all groups, with the filters of each group: the
    /// rows of the result.
    pub(super) fn convolve<T: PanelFloat>(
        &self,
        (image, dtype): (&Patches<'_>, DType),
        groups: usize,
        filters: &[u8],
        out: &mut [u8],
        alone: bool,
    ) -> Result<(), Error> {
        let mut memory = Vec::new();
        let sections = self.sections::<T>((image, dtype), &mut memory, alone)?;
        let (filters, depth) = (T::view(filters), self.steps.len());
        let positions = columns(&self.lanes);
        let mut rows: Vec<&mut [T::Bytes]> = T::view_mut(out).chunks_exact_mut(positions).collect();
        let each = rows.len() / groups;
        let (size, cost) = (rows.len() * positions, indirect::cost(size_of::<T>(), depth));
        let aim = parallel::parts(cost::work(size, cost), alone);
        let strips = self.lanes.len().div_ceil(self.kernel.strip);
        let width = strips.div_ceil(aim) * self.kernel.strip;
        let height =
            each.div_ceil(aim.div_ceil(strips * groups)).next_multiple_of(PANEL_ROW_MULTIPLE).min(ROWS);
        let mut parts = Vec::new();
        for (group, rows) in rows.chunks_mut(each).enumerate() {
            for (block, rows) in rows.chunks_mut(height).enumerate() {
                let left = &filters[(group * each + block * height) * depth..];
                for section in &sections {
                    let right = &section.right[group * section.group..];
                    for (i, lanes) in section.lanes.chunks(width).enumerate() {
                        let count = columns(lanes);
                        let mut out = Vec::with_capacity(rows.len());
                        for row in rows.iter_mut() {
                            out.extend(row.split_off_mut(..count));
                        }
                        parts.push((
                            left,
                            &section.steps[..],
                            &right[i * width * self.kernel.vector..],
                            lanes,
                            out,
                        ));
                    }
                }
            }
        }
        let cost = if alone { 0 } else { cost };
        parallel::try_each(size, cost, parts.into_iter(), |(left, steps, right, lanes, mut out)| {
            self.kernel.run(Panel::<T> { left, steps, right, lanes, out: &mut out });
            Ok(())
        })
    }

    /// The padded image, in one section or two.
    fn sections<'a, T: PanelFloat>(
        &'a self,
        (image, dtype): (&Patches<'a>, DType),
        memory: &'a mut Vec<u8>,
        alone: bool,
    ) -> Result<Vec<Section<'a, T>>, Error> {
        let Planes { kernel: Kernel { vector, .. }, size, channel, ref lanes, ref steps, .. } = *self;
        let (channels, width) = (image.channels.0, size_of::<T>());
        let sized = |rows: usize, columns: usize, more: usize| {
            let length =
                rows.checked_mul(columns).and_then(|size| size.checked_add(more)?.checked_mul(width));
            scratch(OP, dtype, &[rows, columns], length.unwrap_or(usize::MAX))
        };
        let group = self.channels * channel;
        if !self.in_place {
            let rows = channels * self.planes;
            // The last vector reaches beyond the last plane.
            *memory = sized(rows, size, vector)?;
            let patches = Patches { axes: &self.axes, ..*image };
            let pad = |first: usize, part: &mut [u8]| patches.by_place(width, first, (0, size), part);
            let padded = &mut memory[..rows * size * width];
            if alone {
                pad(0, padded);
            } else {
                parallel::fill(padded, rows, PADDED * size as Cost, pad);
            }
            return Ok(vec![Section { lanes, steps: steps.into(), right: T::view(memory), group }]);
        }
        let right = &T::view(image.bytes)[image.offset..];
        let whole = size / vector;
        let (lanes, rest) = lanes.split_at(whole);
        let mut sections = vec![Section { lanes, steps: steps.into(), right, group }];
        if !rest.is_empty() {
            // A vector that not all of the channels fill.
            *memory = sized(channels, vector, 0)?;
            let from = right[whole * vector..].chunks(channel);
            for (slots, from) in T::view_mut(memory).chunks_exact_mut(vector).zip(from) {
                slots[..size % vector].copy_from_slice(&from[..size % vector]);
            }
            let steps: Vec<usize> = (0..self.channels).map(|channel| channel * vector).collect();
            let group = self.channels * vector;
            sections.push(Section { lanes: rest, steps: steps.into(), right: T::view(memory), group });
        }
        Ok(sections)
    }
}

/// Some columns of the right side.
struct Section<'a, T: PanelFloat> {
    lanes: &'a [u16],
    steps: Cow<'a, [usize]>,
    right: &'a [T::Bytes],
    /// From one group to the next.
    group: usize,
}
