//! Convolutions without patches.
//!
//! Problem: patches are larger than the input by the number of taps (elements of the kernel), and
//! copying them takes as long as multiplying them by a few filters. Technique: the input is copied
//! into padded planes. A plane holds the elements whose index leaves one remainder when divided by
//! the stride, so that the elements that a tap reads at successive positions are adjacent, and
//! start at an offset that depends only on the tap. The product (`exec/gemm/indirect.rs`) reads its
//! right side at a table of these offsets. Limit: the end of a row of positions is followed by the
//! start of the next padded row; the sums of these columns are computed but not written.

use std::borrow::Cow;

use super::{Convolution, OP, Sizes};
use crate::cost::{self, Cost, MAX_CONV_ROWS_PER_TASK, PADDED_ELEMENT_COST};
use crate::exec::convert::conversion;
use crate::exec::gemm::indirect;
use crate::exec::gemm::indirect::{Kernel, PANEL_ROW_MULTIPLE, Panel, PanelFloat, columns};
use crate::exec::im2col::{ConvAxis, Patches, advance_index};
use crate::exec::memory::{filled, scratch};
use crate::exec::threads::parallel;
use crate::{DType, Error};

impl Convolution<'_> {
    /// Convolves one image at a time, with all groups of its channels.
    pub(super) fn convolve_planes(&self, planes: &Planes, out: &mut [u8]) -> Result<(), Error> {
        let Sizes { batch, filters, channels, feature_groups, batch_groups, .. } = self.sizes;
        let (positions, depth, lane) = (self.sizes.positions(), self.sizes.depth(), self.lane);
        let rows = filters / batch_groups;
        let store = conversion(lane, self.dtype);
        let convolve_image = |index: usize, out: &mut [u8], alone: bool| {
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
                images.try_for_each(|(i, out)| convolve_image(first + i, out, true))
            });
        }
        out.chunks_exact_mut(length).enumerate().try_for_each(|(i, out)| convolve_image(i, out, false))
    }
}

/// The layout of the padded input of a convolution.
#[derive(Debug)]
pub(super) struct Planes {
    kernel: Kernel,
    /// The axes of a convolution that copies the input into planes: its taps are the remainders of
    /// a division by the stride, and each gives a plane.
    axes: Vec<ConvAxis>,
    /// The number of planes of a channel, and the number of elements of a plane.
    planes: usize,
    size: usize,
    /// The number of channels of a filter, and the distance from one channel to the next.
    channels: usize,
    channel_stride: usize,
    /// For each channel and tap of a filter, the offset of the first element it reads.
    steps: Vec<usize>,
    /// For each vector, a bit mask of the elements that are at a position.
    lanes: Vec<u16>,
    /// Whether the input needs no padding or division into planes, and is read where it is.
    in_place: bool,
}

impl Planes {
    /// Plans planes for filters of `channels` channels, which are `distance` apart in memory.
    /// Returns `None` where the processor lacks the instructions, or where most sums would be
    /// discarded.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory: other algorithms add up in another order.
    pub(super) fn new<T: PanelFloat>(
        axes: &[ConvAxis],
        channels: usize,
        distance: isize,
    ) -> Result<Option<Self>, Error> {
        let Some(kernel) = Kernel::of::<T>() else { return Ok(None) };
        let vector = kernel.vector;
        let mut dense = 1;
        let mut in_place = true;
        for axis in axes.iter().rev() {
            let ConvAxis { size, positions, taps, stride, input_dilation, low, memory_stride, .. } = *axis;
            in_place &= (taps, stride, input_dilation, low) == (1, 1, 1, 0) && positions == size;
            in_place &= memory_stride == dense || size == 1;
            dense *= size as isize;
        }
        in_place &= distance >= dense;
        let padded = |axis: &ConvAxis| {
            let extent = (axis.taps - 1) * axis.kernel_dilation;
            let positions = axis.positions + extent / axis.stride;
            ConvAxis { positions, taps: axis.stride.min(extent + 1), kernel_dilation: 1, ..*axis }
        };
        let planes: Vec<ConvAxis> = axes.iter().map(padded).collect();
        let product = |dim: fn(&ConvAxis) -> usize| {
            planes.iter().map(dim).try_fold(1, |product: usize, dim| product.checked_mul(dim))
        };
        let (Some(count), Some(size)) = (product(|axis| axis.taps), product(|axis| axis.positions)) else {
            return Ok(None);
        };
        let Some(stride) = count.checked_mul(size) else { return Ok(None) };
        let channel_stride = if in_place { distance.cast_unsigned() } else { stride };
        let positions: usize = axes.iter().map(|axis| axis.positions).product();
        // The index of the last position in a padded plane.
        let last = axes
            .iter()
            .zip(&planes)
            .fold(0, |last, (axis, padded)| last * padded.positions + axis.positions - 1);
        let vectors = last / vector + 1;
        if vectors > 1 && positions < vectors * vector / 3 {
            return Ok(None);
        }
        let mut lanes = filled(OP, DType::U16, &[vectors], vectors, 0)?;
        let length = axes.last().map_or(1, |axis| axis.positions);
        let mut row_index = vec![0; axes.len()];
        for _ in 0..positions / length {
            let mut from =
                row_index.iter().zip(&planes).fold(0, |from, (i, padded)| from * padded.positions + i);
            let end = from + length;
            while from < end {
                let (number, first) = (from / vector, from % vector);
                let count = (vector - first).min(end - from);
                lanes[number] |= (((1_u32 << count) - 1) << first) as u16;
                from += count;
            }
            let outer = axes.len().saturating_sub(1);
            advance_index(&axes[..outer], |axis| axis.positions, &mut row_index[..outer]);
        }
        let taps: usize = axes.iter().map(|axis| axis.taps).product();
        let mut steps = Vec::new();
        let memory = steps.try_reserve_exact(channels.saturating_mul(taps));
        memory.map_err(|_| Error::TooLarge { op: OP, dtype: DType::U64, shape: vec![channels, taps] })?;
        let mut tap = vec![0; axes.len()];
        for _ in 0..taps {
            let (mut plane, mut start) = (0, 0);
            for ((axis, padded), tap) in axes.iter().zip(&planes).zip(&tap) {
                let at = tap * axis.kernel_dilation;
                plane = plane * padded.taps + at % axis.stride;
                start = start * padded.positions + at / axis.stride;
            }
            steps.push(plane * size + start);
            advance_index(axes, |axis| axis.taps, &mut tap);
        }
        for c in 1..channels {
            steps.extend_from_within(..taps);
            steps[c * taps..].iter_mut().for_each(|memory_stride| *memory_stride += c * channel_stride);
        }
        Ok(Some(Planes {
            kernel,
            axes: planes,
            planes: count,
            size,
            channels,
            channel_stride,
            steps,
            lanes,
            in_place,
        }))
    }

    /// Convolves one image, with the channels of all groups, with the filters of each group. `out`
    /// is a dense matrix with a row for each filter.
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
        let mut rows = Vec::new();
        let refused = |shape: &[usize]| Error::TooLarge { op: OP, dtype, shape: shape.to_vec() };
        let count = out.len() / size_of::<T>() / positions;
        rows.try_reserve_exact(count).map_err(|_| refused(&[count, positions]))?;
        rows.extend(T::view_mut(out).chunks_exact_mut(positions));
        let each = rows.len() / groups;
        let (size, cost) = (rows.len() * positions, indirect::cost(size_of::<T>(), depth));
        let target_parts = parallel::parts(cost::work(size, cost), alone);
        let strips = self.lanes.len().div_ceil(self.kernel.strip);
        let width = strips.div_ceil(target_parts) * self.kernel.strip;
        let height = each
            .div_ceil(target_parts.div_ceil(strips * groups))
            .next_multiple_of(PANEL_ROW_MULTIPLE)
            .min(MAX_CONV_ROWS_PER_TASK);
        let mut parts = Vec::new();
        for (group, rows) in rows.chunks_mut(each).enumerate() {
            for (block, rows) in rows.chunks_mut(height).enumerate() {
                let left = &filters[(group * each + block * height) * depth..];
                for section in &sections {
                    let right = &section.right[group * section.group_stride..];
                    for (i, lanes) in section.lanes.chunks(width).enumerate() {
                        let count = columns(lanes);
                        let mut out = Vec::new();
                        let shape = [rows.len(), count];
                        out.try_reserve_exact(rows.len()).map_err(|_| refused(&shape))?;
                        for row in rows.iter_mut() {
                            out.extend(row.split_off_mut(..count));
                        }
                        parts.try_reserve(1).map_err(|_| refused(&shape))?;
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

    /// Returns the padded image, in one section or two.
    fn sections<'a, T: PanelFloat>(
        &'a self,
        (image, dtype): (&Patches<'a>, DType),
        memory: &'a mut Vec<u8>,
        alone: bool,
    ) -> Result<Vec<Section<'a, T>>, Error> {
        let Planes { kernel: Kernel { vector, .. }, size, channel_stride, ref lanes, ref steps, .. } = *self;
        let (channels, width) = (image.channels.0, size_of::<T>());
        let sized = |rows: usize, columns: usize, more: usize| {
            let length =
                rows.checked_mul(columns).and_then(|size| size.checked_add(more)?.checked_mul(width));
            scratch(OP, dtype, &[rows, columns], length.unwrap_or(usize::MAX))
        };
        let group_stride = self.channels * channel_stride;
        if !self.in_place {
            let rows = channels * self.planes;
            // The last vector reaches beyond the last plane.
            *memory = sized(rows, size, vector)?;
            let patches = Patches { axes: &self.axes, ..*image };
            let pad = |first: usize, part: &mut [u8]| patches.by_tap(width, first, (0, size), part);
            let padded = &mut memory[..rows * size * width];
            if alone {
                pad(0, padded);
            } else {
                parallel::fill(padded, rows, PADDED_ELEMENT_COST * size as Cost, pad);
            }
            return Ok(vec![Section { lanes, steps: steps.into(), right: T::view(memory), group_stride }]);
        }
        let right = &T::view(image.bytes)[image.offset..];
        let whole = size / vector;
        let (lanes, rest) = lanes.split_at(whole);
        let mut sections = vec![Section { lanes, steps: steps.into(), right, group_stride }];
        if !rest.is_empty() {
            // The last vector of each channel is incomplete: it is copied, and filled up with
            // zeros.
            *memory = sized(channels, vector, 0)?;
            let from = right[whole * vector..].chunks(channel_stride);
            for (slots, from) in T::view_mut(memory).chunks_exact_mut(vector).zip(from) {
                slots[..size % vector].copy_from_slice(&from[..size % vector]);
            }
            let steps: Vec<usize> = (0..self.channels).map(|channel| channel * vector).collect();
            let group_stride = self.channels * vector;
            sections.push(Section { lanes: rest, steps: steps.into(), right: T::view(memory), group_stride });
        }
        Ok(sections)
    }
}

/// Some columns of the right side of the product.
struct Section<'a, T: PanelFloat> {
    lanes: &'a [u16],
    steps: Cow<'a, [usize]>,
    right: &'a [T::Bytes],
    /// The distance from one group of channels to the next.
    group_stride: usize,
}
