//! Convolutions: `Nx.conv/3`.
//!
//! The types to compute in are chosen as for `dot`: f64 for few multiplications and for operands
//! that f32 can't represent, f32 for other floats; integers wrap. Each result is rounded once.
//! Padding consists of zeros.
//!
//! There are three algorithms: direct convolution, im2col with a product of matrices
//! (`exec/im2col.rs`), and a product that reads overlapping rows of the padded input without
//! patches (`ops/conv/planes.rs`).

use std::borrow::Cow;

use num_complex::Complex;

use crate::cost::{
    self, CONV_CHANNEL_COST, CONV_CONVERT_COST, CONV_READ_COST, Cost, DIRECT_CONV_BYTE_COST,
    FLOAT_PATCH_BYTE_COST, INTEGER_PATCH_BYTE_COST, PATCH_ELEMENT_COST, PATCH_SEGMENT_COST,
    PRODUCT_WRITE_COST, SEPARATED_BYTE_COST, Work,
};
use crate::error::ShapeDisplay;
use crate::exec::convert::conversion;
use crate::exec::copy::{self, gather};
use crate::exec::gemm::blocked::{self, product_cost};
use crate::exec::gemm::matrix::{MatrixBytes, ProductTarget};
use crate::exec::gemm::strategy::{MAX_ORDERED_PRODUCTS, lane};
use crate::exec::gemm::{in_order, indirect};
use crate::exec::im2col;
use crate::exec::im2col::{ConvAxis, Patches};
use crate::exec::memory::scratch;
use crate::exec::threads::cooperative_yield::pause;
use crate::exec::threads::parallel;
use crate::layout::{self, Layout, MAX_EXTENT, Shape};
use crate::ops::cast::cast_tensor;
use crate::tensor::{Output, Tensor};
use crate::{DType, Error};

mod planes;

use planes::Planes;

const OP: &str = "conv";

/// The bytes of patches that are computed at a time. They stay in the cache while they are
/// multiplied, and limit the memory that a convolution takes.
const PATCH_BLOCK_BYTES: usize = 1 << 20;

/// Groups of fewer filters than this are multiplied without patches.
const MIN_FILTERS_FOR_PATCHES: usize = 4;

/// The options of `Nx.conv/3`. Lists have an entry for each spatial axis.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The distance from one position to the next, in elements of the padded input.
    pub strides: &'a [usize],
    /// The padding before and after the elements; a negative number removes elements.
    pub padding: &'a [(i64, i64)],
    /// The distance from one element of the input to the next.
    pub input_dilation: &'a [usize],
    /// The distance from one tap (element of the kernel) to the next.
    pub kernel_dilation: &'a [usize],
    /// The number of groups of channels, each with its own filters.
    pub feature_groups: usize,
    /// The number of groups of the batch, each with its own filters.
    pub batch_groups: usize,
    /// The axes of the input for the batch, the channels and each spatial axis.
    pub input_permutation: &'a [usize],
    /// The axes of the kernel for the filters, the channels and each spatial axis.
    pub kernel_permutation: &'a [usize],
    /// The axes of the result for the batch, the filters and each spatial axis.
    pub output_permutation: &'a [usize],
}

/// Returns the work of a convolution of an input and a kernel, given the types and shapes of the result
/// and of both.
#[must_use]
pub fn work(
    (out, shape): (DType, &[usize]),
    operands: [(DType, &[usize]); 2],
    input_permutation: &[usize],
    kernel_permutation: &[usize],
) -> Work {
    let size = |shape: &[usize]| layout::size(shape).unwrap_or(usize::MAX);
    let kernel = operands[1].1;
    let filters = kernel_permutation.first().and_then(|&axis| kernel.get(axis));
    let depth = size(kernel) / filters.map_or(1, |&filters| filters.max(1));
    let read = operands.iter().fold(0, |sum: usize, (_, shape)| sum.saturating_add(size(shape)));
    let others = operands.iter().filter(|(dtype, _)| *dtype != out);
    let converted = others.fold(0, |sum: usize, (_, shape)| sum.saturating_add(size(shape)));
    let result_cost = if out.is_float() {
        indirect::cost(out.width().max(4), depth)
    } else {
        product_cost(out).saturating_mul(depth as Cost)
    };
    let input = operands[0].1;
    let images = input_permutation.iter().take(2).filter_map(|&axis| input.get(axis));
    let channels = images.fold(1, |product: usize, &size| product.saturating_mul(size));
    let separated_cost = if out.is_complex() { SEPARATED_BYTE_COST * out.width() as Cost } else { 0 };
    cost::work(size(shape), result_cost.saturating_add(PRODUCT_WRITE_COST + separated_cost))
        .saturating_add(cost::work(read, CONV_READ_COST))
        .saturating_add(cost::work(channels, CONV_CHANNEL_COST))
        .saturating_add(cost::work(converted, CONV_CONVERT_COST))
}

/// Slides the filters of `kernel` over `input`.
///
/// # Errors
///
/// `Error::Argument` or `Error::Shape` if the options contradict each other or don't fit the
/// shapes, `Error::UnsupportedType`, and `Error::TooLarge` if there is no memory for an
/// intermediate result.
pub fn conv(
    out: Output<'_>,
    input: &Tensor<'_>,
    kernel: &Tensor<'_>,
    options: Options<'_>,
) -> Result<(), Error> {
    let rank = input.rank();
    for (name, permutation) in [
        ("input_permutation", options.input_permutation),
        ("kernel_permutation", options.kernel_permutation),
        ("output_permutation", options.output_permutation),
    ] {
        check_permutation(name, permutation, rank)?;
    }
    if rank < 2 || kernel.rank() != rank || out.shape.len() != rank {
        let shapes = vec![input.shape().to_vec(), kernel.shape().to_vec(), out.shape.to_vec()];
        return Err(Error::Shape {
            op: OP,
            shapes,
            problem: "must have the same rank, of at least 2".into(),
        });
    }
    let sizes = Sizes::new(&input.shape_of(options.input_permutation), kernel, &options)?;
    let expected = sizes.result();
    let given: Vec<usize> = options.output_permutation.iter().map(|&axis| out.shape[axis]).collect();
    if expected != given {
        let shapes = vec![input.shape().to_vec(), kernel.shape().to_vec()];
        let (expected, given) = (ShapeDisplay(&expected), ShapeDisplay(&given));
        let problem = format!("give a result of shape {expected} before its permutation, not {given}");
        return Err(Error::Shape { op: OP, shapes, problem });
    }
    let dtypes = [input.dtype(), kernel.dtype()];
    let work = [sizes.batch * sizes.filters, sizes.depth(), sizes.positions()];
    let Some(lane) = lane(out.dtype, dtypes, work) else {
        return Err(Error::UnsupportedType { op: OP, dtypes: dtypes.to_vec() });
    };
    let dtype = out.dtype;
    let shape = out.shape;
    out.write(OP, |bytes| {
        if bytes.is_empty() {
            return Ok(());
        }
        if sizes.depth() == 0 || input.size() == 0 {
            // There are no products, or only products with padding.
            bytes.fill(0);
            return Ok(());
        }
        let convolution = Convolution::new(sizes, lane, dtype, input, kernel, &options)?;
        let layout = Layout::contiguous(shape).transpose(options.output_permutation);
        match OutputStrides::of(&layout).filter(|out_strides| convolution.can_write_to(out_strides)) {
            Some(out_strides) => convolution.run(out_strides, bytes),
            None => {
                let dense = Layout::contiguous(&layout.shape);
                let mut result = scratch(OP, dtype, &layout.shape, bytes.len())?;
                convolution.run(OutputStrides::of(&dense).unwrap_or_default(), &mut result)?;
                let mut axes: Vec<usize> = (0..shape.len()).collect();
                axes.sort_by_key(|&axis| options.output_permutation[axis]);
                let view = dense.transpose(&axes);
                copy::gather_all(dtype.width(), &result, &view, bytes);
                Ok(())
            }
        }
    })
}

fn check_permutation(name: &str, permutation: &[usize], rank: usize) -> Result<(), Error> {
    let mut sorted = permutation.to_vec();
    sorted.sort_unstable();
    if sorted.iter().copied().eq(0..rank) {
        return Ok(());
    }
    let problem = format!("{name} {permutation:?} is not a permutation of {rank} axes");
    Err(Error::Argument { op: OP, problem })
}

impl Tensor<'_> {
    fn shape_of(&self, axes: &[usize]) -> Vec<usize> {
        axes.iter().map(|&axis| self.shape()[axis]).collect()
    }
}

/// The sizes of a convolution.
struct Sizes {
    /// The batch size of the result.
    batch: usize,
    filters: usize,
    /// The number of input channels that each filter reads.
    channels: usize,
    feature_groups: usize,
    batch_groups: usize,
    /// The spatial axes; `memory_stride` is set by `Convolution::new`.
    axes: Vec<ConvAxis>,
}

impl Sizes {
    fn new(input: &[usize], kernel: &Tensor<'_>, options: &Options<'_>) -> Result<Self, Error> {
        let problem = |problem: String| Err(Error::Argument { op: OP, problem });
        let kernel = kernel.shape_of(options.kernel_permutation);
        let Options { feature_groups, batch_groups, .. } = *options;
        let spatial = input.len() - 2;
        let lists = [options.strides, options.input_dilation, options.kernel_dilation];
        if lists.iter().any(|list| list.len() != spatial) || options.padding.len() != spatial {
            return problem(format!(
                "strides, padding and dilations must have an entry for each of {spatial} spatial axes"
            ));
        }
        if lists.iter().any(|list| list.contains(&0)) {
            return problem("strides and dilations must be at least 1".into());
        }
        if feature_groups == 0 || batch_groups == 0 || feature_groups > 1 && batch_groups > 1 {
            return problem("one of feature groups and batch groups must be 1, the other at least 1".into());
        }
        let (filters, groups) = (kernel[0], feature_groups.max(batch_groups));
        if !filters.is_multiple_of(groups) || !input[0].is_multiple_of(batch_groups) {
            return problem(format!(
                "{groups} groups don't divide {filters} filters or a batch of {}",
                input[0]
            ));
        }
        if kernel[1].checked_mul(feature_groups) != Some(input[1]) {
            let groups = feature_groups;
            let problem = format!("have channels that don't go together, with {groups} feature groups");
            return Err(Error::Shape { op: OP, shapes: vec![input.to_vec(), kernel], problem });
        }
        let mut axes = Vec::with_capacity(spatial);
        for axis in 0..spatial {
            let (low, high) = options.padding[axis];
            let (size, taps, stride) = (input[axis + 2], kernel[axis + 2], options.strides[axis]);
            let [input_dilation, kernel_dilation] =
                [options.input_dilation[axis], options.kernel_dilation[axis]];
            let dilated_size = |size: usize, dilation: usize| match size {
                0 => 0,
                _ => (size as i128 - 1) * dilation as i128 + 1,
            };
            let padded = dilated_size(size, input_dilation) + i128::from(low) + i128::from(high);
            let extent = dilated_size(taps, kernel_dilation);
            if padded > MAX_EXTENT || i128::from(low).abs() > MAX_EXTENT {
                return problem(format!("padding {{{low}, {high}}} is out of range"));
            }
            if extent > padded || taps == 0 {
                return problem(format!(
                    "a kernel of {taps} places is larger than the padded input, or empty, in spatial axis {axis}"
                ));
            }
            let positions = (padded - extent) as usize / stride + 1;
            // With a single element the stride has no effect; 1 suits the fastest loops.
            let stride_or_one = |count: usize, distance: usize| if count == 1 { 1 } else { distance };
            axes.push(ConvAxis {
                size,
                positions,
                taps,
                stride: stride_or_one(positions, stride),
                kernel_dilation: stride_or_one(taps, kernel_dilation),
                input_dilation: stride_or_one(size, input_dilation),
                low: low as isize,
                memory_stride: 0,
            });
        }
        let batch = input[0] / batch_groups;
        Ok(Sizes { batch, filters, channels: kernel[1], feature_groups, batch_groups, axes })
    }

    /// The shape of the result before its permutation.
    fn result(&self) -> Vec<usize> {
        [self.batch, self.filters].into_iter().chain(self.axes.iter().map(|axis| axis.positions)).collect()
    }

    fn positions(&self) -> usize {
        self.axes.iter().map(|axis| axis.positions).product()
    }

    fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.taps).product()
    }

    /// The number of products in the sum of a result.
    fn depth(&self) -> usize {
        self.channels * self.taps()
    }

    fn groups(&self) -> usize {
        self.feature_groups.max(self.batch_groups)
    }
}

/// The strides of the batch, the filters and the positions of a result, in elements.
#[derive(Clone, Copy, Debug, Default)]
struct OutputStrides {
    batch: usize,
    filter: usize,
    position: usize,
}

impl OutputStrides {
    /// Returns `None` if no single stride reaches all positions.
    fn of(layout: &Layout) -> Option<Self> {
        let (shape, strides) = (&layout.shape[2..], &layout.strides[2..]);
        let (dims, collapsed) = crate::layout::collapse(shape, strides);
        let position = match dims.len() {
            0 => 1,
            1 => collapsed[0] as usize,
            _ => return None,
        };
        Some(OutputStrides {
            batch: layout.strides[0] as usize,
            filter: layout.strides[1] as usize,
            position,
        })
    }
}

/// The order of patches in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatchOrder {
    /// No patches: the input is multiplied where it is in memory (direct convolution).
    Direct,
    /// A matrix with a row for each channel and tap.
    ByTap,
    /// A matrix with a row for each position; the channels of each tap are adjacent.
    ByPosition,
    /// A matrix with a row for each position; the taps of each channel are adjacent.
    ByPositionAndChannel,
}

/// A convolution whose operands have the type that is computed with.
struct Convolution<'a> {
    sizes: Sizes,
    lane: DType,
    dtype: DType,
    order: PatchOrder,
    /// The layout of the padded input, if it is multiplied instead of patches.
    planes: Option<Planes>,
    input: Cow<'a, Tensor<'a>>,
    /// The strides of the batch and of the channels of the input.
    strides: [isize; 2],
    offset: usize,
    /// The filters: a dense matrix with a row for each filter.
    filters: Cow<'a, [u8]>,
}

impl<'a> Convolution<'a> {
    fn new(
        mut sizes: Sizes,
        lane: DType,
        dtype: DType,
        input: &'a Tensor<'a>,
        kernel: &'a Tensor<'a>,
        options: &Options<'_>,
    ) -> Result<Self, Error> {
        let input = cast_to_lane(input, lane)?;
        let mut layout = input.layout().transpose(options.input_permutation);
        let rank = layout.rank();
        let has_few_filters = sizes.filters / sizes.groups() < MIN_FILTERS_FOR_PATCHES;
        let total = sizes.batch * sizes.filters * sizes.positions();
        let mut order = if has_few_filters || total.saturating_mul(sizes.depth()) <= MAX_ORDERED_PRODUCTS {
            PatchOrder::Direct
        } else if layout.strides[1] == 1 && sizes.channels > 1 {
            PatchOrder::ByPosition
        } else {
            PatchOrder::ByTap
        };
        let mut input = input;
        if order == PatchOrder::Direct && rank > 2 && layout.strides[rank - 1] != 1 && sizes.taps() > 1 {
            // The input is read once for each tap.
            let bytes = copy::dense(OP, &input.view(layout.clone()))?.into_owned();
            layout = Layout::contiguous(&layout.shape);
            input = Cow::Owned(Tensor::computed(lane, &layout.shape, bytes));
        }
        for (axis, &stride) in sizes.axes.iter_mut().zip(&layout.strides[2..]) {
            axis.memory_stride = stride;
        }
        let kernel = cast_to_lane(kernel, lane)?;
        // The order of the filters' elements must be that of the patches: in patches with a row for
        // each position, channels change fastest.
        let mut axes = options.kernel_permutation.to_vec();
        if order == PatchOrder::ByPosition {
            axes[1..].rotate_left(1);
        }
        let identity = axes.iter().copied().eq(0..axes.len());
        let filters = match kernel {
            Cow::Borrowed(kernel) if identity => copy::dense(OP, kernel)?,
            kernel => {
                Cow::Owned(copy::dense(OP, &kernel.view(kernel.layout().transpose(&axes)))?.into_owned())
            }
        };
        let strides = [layout.strides[0], layout.strides[1]];
        let planes = match lane {
            _ if order != PatchOrder::ByTap => None,
            DType::F32 => Planes::new::<f32>(&sizes.axes, sizes.channels, strides[1])?,
            DType::F64 => Planes::new::<f64>(&sizes.axes, sizes.channels, strides[1])?,
            _ => None,
        };
        let last = sizes.axes.last();
        if order == PatchOrder::ByTap
            && planes.is_none()
            && last.is_some_and(|axis| axis.positions < axis.taps)
        {
            order = PatchOrder::ByPositionAndChannel;
        }
        let offset = layout.offset;
        Ok(Convolution { sizes, lane, dtype, order, planes, input, strides, offset, filters })
    }

    /// Returns whether results can be written with these strides without another copy.
    fn can_write_to(&self, out_strides: &OutputStrides) -> bool {
        let adjacent = out_strides.position == 1 || self.sizes.positions() == 1;
        let by_patches = self.order != PatchOrder::Direct && self.planes.is_none();
        by_patches || adjacent && out_strides.filter == self.sizes.positions()
    }

    /// Returns the input of one element of the result's batch and one group of filters.
    fn patches(&self, batch: usize, group: usize) -> Patches<'_> {
        let Sizes { feature_groups, batch_groups, channels, .. } = self.sizes;
        let batch = if batch_groups > 1 { group * self.sizes.batch + batch } else { batch };
        let first = if feature_groups > 1 { group * channels } else { 0 };
        let start = batch as isize * self.strides[0] + first as isize * self.strides[1];
        Patches {
            axes: &self.sizes.axes,
            channels: (channels, self.strides[1]),
            bytes: self.input.bytes(),
            offset: (self.offset as isize + start) as usize,
        }
    }

    fn run(&self, out_strides: OutputStrides, out: &mut [u8]) -> Result<(), Error> {
        let Sizes { batch, filters, .. } = self.sizes;
        let (positions, depth, width) = (self.sizes.positions(), self.sizes.depth(), self.dtype.width());
        let depth_bytes = (depth as Cost).saturating_mul(self.lane.width() as Cost);
        if self.order == PatchOrder::Direct {
            let cost = depth_bytes
                .saturating_mul(DIRECT_CONV_BYTE_COST)
                .saturating_add(PRODUCT_WRITE_COST)
                .saturating_mul(positions as Cost);
            return parallel::try_fill(out, batch * filters, cost, |first, out| self.direct(first, out));
        }
        if let Some(planes) = &self.planes {
            return self.convolve_planes(planes, out);
        }
        let byte_cost = if self.lane.is_integer() { INTEGER_PATCH_BYTE_COST } else { FLOAT_PATCH_BYTE_COST };
        let result_cost = depth_bytes.saturating_mul(byte_cost);
        let image_size = filters * positions;
        let cost = result_cost.saturating_mul(image_size as Cost);
        let alone = batch >= 2 * parallel::threads()
            && out_strides.batch == image_size
            && parallel::pays(batch, cost);
        if alone {
            return parallel::try_fill(out, batch, cost, |first, out| {
                for (i, out) in out.chunks_mut(image_size * width).enumerate() {
                    self.convolve_images(first + i, 1, out_strides, out, true)?;
                }
                Ok(())
            });
        }
        let images = self.images_at_a_time();
        for first in (0..batch).step_by(images) {
            let out = &mut out[first * out_strides.batch * width..];
            self.convolve_images(first, images.min(batch - first), out_strides, out, false)?;
        }
        Ok(())
    }

    /// The number of columns of a product that fill a block of patches.
    fn columns_of_block(&self) -> usize {
        (PATCH_BLOCK_BYTES / (self.sizes.depth() * self.lane.width())).next_multiple_of(64).max(64)
    }

    /// The number of elements of the batch whose patches are multiplied at a time: as many as a block
    /// has room for, or one where a single element has enough positions for an efficient product.
    fn images_at_a_time(&self) -> usize {
        let positions = self.sizes.positions();
        if self.order != PatchOrder::ByPositionAndChannel || positions >= 64 {
            return 1;
        }
        let image_bytes = positions.saturating_mul(self.sizes.depth()).saturating_mul(self.lane.width());
        (PATCH_BLOCK_BYTES / image_bytes.max(1)).max(1)
    }

    /// Computes rows of the result from `first` on; there is a row for each filter of each element
    /// of the batch.
    fn direct(&self, first: usize, out: &mut [u8]) -> Result<(), Error> {
        let Sizes { filters, .. } = self.sizes;
        let (positions, depth) = (self.sizes.positions(), self.sizes.depth());
        let multiply = match self.lane {
            DType::U8 => im2col::direct::<u8>,
            DType::U16 => im2col::direct::<u16>,
            DType::U32 => im2col::direct::<u32>,
            DType::U64 => im2col::direct::<u64>,
            DType::F32 => im2col::direct::<f32>,
            DType::C64 => im2col::direct::<Complex<f32>>,
            DType::C128 => im2col::direct::<Complex<f64>>,
            _ => im2col::direct::<f64>,
        };
        let store = conversion(self.lane, self.dtype);
        let width = self.lane.width();
        let length = if store.is_some() { positions * width } else { 0 };
        let mut wide = scratch(OP, self.lane, &[positions], length)?;
        for (i, out) in out.chunks_exact_mut(positions * self.dtype.width()).enumerate() {
            let (batch, filter) = ((first + i) / filters, (first + i) % filters);
            let patches = self.patches(batch, filter / (filters / self.sizes.groups()));
            let weights = &self.filters[filter * depth * width..][..depth * width];
            match store {
                None => multiply(&patches, weights, out),
                Some(convert) => {
                    multiply(&patches, weights, &mut wide);
                    convert(&wide, out);
                }
            }
        }
        Ok(())
    }

    /// Convolves elements of the batch from `first` on: one, or as many as `images_at_a_time`.
    /// `alone` says that only this thread works on them.
    fn convolve_images(
        &self,
        first: usize,
        images: usize,
        out_strides: OutputStrides,
        out: &mut [u8],
        alone: bool,
    ) -> Result<(), Error> {
        let (lane, groups) = (self.lane, self.sizes.groups());
        let (positions, depth) = (self.sizes.positions(), self.sizes.depth());
        let filters = self.sizes.filters / groups;
        let columns = images * positions;
        let block = if images > 1 { columns } else { self.columns_of_block().min(columns) };
        let width = lane.width();
        let mut patch_matrix = scratch(OP, lane, &[block, depth], block * depth * width)?;
        // The product of matrices writes to the result itself if that has the lane's type, and the
        // columns of several elements of the batch are as far apart as those of one.
        let store = conversion(lane, self.dtype);
        let is_even = images == 1 || out_strides.batch == positions * out_strides.position;
        let needs_scratch = store.is_some() || lane.is_integer() || !is_even;
        let result = if needs_scratch { filters * block } else { 0 };
        let mut result = scratch(OP, lane, &[filters, block], result * width)?;
        let converted_result = if store.is_some() { filters * block * self.dtype.width() } else { 0 };
        let mut converted_result = scratch(OP, self.dtype, &[filters, block], converted_result)?;
        for group in 0..groups {
            let weights = &self.filters[group * filters * depth * width..][..filters * depth * width];
            for from in (0..columns).step_by(block) {
                pause();
                let count = block.min(columns - from);
                let patch_matrix = &mut patch_matrix[..count * depth * width];
                self.fill_patches((first, group), (from, from + count), patch_matrix, alone);
                let start = group * filters * out_strides.filter + from * out_strides.position;
                let out = &mut out[start * self.dtype.width()..];
                let product = PatchProduct { filters, depth, count, weights, patch_matrix, alone };
                if !needs_scratch {
                    let strides = [out_strides.filter, out_strides.position];
                    let last = (filters - 1) * strides[0] + (count - 1) * strides[1] + 1;
                    self.multiply(&product, &mut out[..last * width], strides)?;
                    continue;
                }
                // The product is dense, in the order in which the result's elements are in memory.
                let by_filter = self.order == PatchOrder::ByTap || out_strides.position == 1 && images == 1;
                let by_filter = by_filter && (!lane.is_integer() || self.order == PatchOrder::ByTap);
                let (columns, strides) = if by_filter {
                    (count, [out_strides.filter, out_strides.position])
                } else {
                    (filters, [out_strides.position, out_strides.filter])
                };
                let result = &mut result[..filters * count * width];
                self.multiply(&product, result, if by_filter { [count, 1] } else { [1, filters] })?;
                let result = match store {
                    Some(convert) => {
                        let converted_result = &mut converted_result[..filters * count * self.dtype.width()];
                        convert(result, converted_result);
                        &*converted_result
                    }
                    None => &*result,
                };
                let width = self.dtype.width();
                for (i, image) in result.chunks_exact(result.len() / images).enumerate() {
                    im2col::scatter(
                        width,
                        image,
                        columns,
                        &mut out[i * out_strides.batch * width..],
                        strides,
                    );
                }
            }
        }
        Ok(())
    }

    /// Fills `patch_matrix` with the patches of some columns. They are the positions of one element
    /// of the batch, or of several one after the other, from `first` on.
    fn fill_patches(
        &self,
        (first, group): (usize, usize),
        columns: (usize, usize),
        patch_matrix: &mut [u8],
        alone: bool,
    ) {
        let (width, depth, count) = (self.lane.width(), self.sizes.depth(), columns.1 - columns.0);
        let positions = self.sizes.positions();
        let fill = |from: usize, part: &mut [u8]| match self.order {
            PatchOrder::ByPosition => {
                self.patches(first, group).by_position(width, columns.0 + from, part);
            }
            PatchOrder::ByPositionAndChannel => {
                let mut column = columns.0 + from;
                let mut part = part;
                while !part.is_empty() {
                    let (image, position) = (first + column / positions, column % positions);
                    let rows = (positions - position) * depth * width;
                    let (rows, rest) = part.split_at_mut(rows.min(part.len()));
                    self.patches(image, group).by_position_and_channel(width, position, rows);
                    column += positions - position;
                    part = rest;
                }
            }
            _ => self.patches(first, group).by_tap(width, from, columns, part),
        };
        if alone {
            fill(0, patch_matrix);
            return;
        }
        let last = |dim: fn(&ConvAxis) -> usize| self.sizes.axes.last().map_or(1, dim);
        let (rows, row, segment) = match self.order {
            PatchOrder::ByTap | PatchOrder::Direct => (depth, count, last(|axis| axis.positions)),
            PatchOrder::ByPosition => (count, depth, self.sizes.channels),
            PatchOrder::ByPositionAndChannel => (count, depth, last(|axis| axis.taps)),
        };
        let cost = PATCH_ELEMENT_COST * row as Cost + PATCH_SEGMENT_COST * row.div_ceil(segment) as Cost;
        parallel::fill(patch_matrix, rows, cost, fill);
    }

    /// Multiplies filters and patches. `strides` are those of filters and positions in `out`.
    /// Integers are only written to a dense matrix, with a row for each position if patches have
    /// one, else with a row for each filter.
    fn multiply(&self, product: &PatchProduct<'_>, out: &mut [u8], strides: [usize; 2]) -> Result<(), Error> {
        let PatchProduct { filters, depth, count, weights, patch_matrix, alone } = *product;
        let by_tap = self.order == PatchOrder::ByTap;
        let too_large = |_| Error::TooLarge { op: OP, dtype: self.lane, shape: vec![filters, depth, count] };
        if !self.lane.is_integer() {
            let patch_strides = if by_tap { [count, 1] } else { [1, depth] };
            let left = MatrixBytes { bytes: weights, strides: [depth, 1] };
            let right = MatrixBytes { bytes: patch_matrix, strides: patch_strides };
            let out = ProductTarget { bytes: out, strides, alone };
            return blocked::multiply_floats(self.lane, [filters, depth, count], left, right, out)
                .map_err(too_large);
        }
        let width = self.lane.width();
        let (sizes, left, right): (_, &[u8], Cow<'_, [u8]>) = if by_tap {
            ([filters, depth, count], weights, Cow::Borrowed(patch_matrix))
        } else {
            let mut transposed_filters = scratch(OP, self.lane, &[depth, filters], weights.len())?;
            let layout = Layout::contiguous(&Shape::from_slice(&[filters, depth])).transpose(&[1, 0]);
            gather(width, weights, &layout, 0, &mut transposed_filters);
            ([count, depth, filters], patch_matrix, Cow::Owned(transposed_filters))
        };
        in_order::integers(self.lane, sizes, left, &right, out, alone);
        Ok(())
    }
}

/// The operands of one product of filters and patches.
struct PatchProduct<'a> {
    filters: usize,
    depth: usize,
    count: usize,
    weights: &'a [u8],
    patch_matrix: &'a [u8],
    alone: bool,
}

/// Returns the tensor cast to a lane's type, borrowed if the elements have the same bits.
fn cast_to_lane<'a>(tensor: &'a Tensor<'a>, lane: DType) -> Result<Cow<'a, Tensor<'a>>, Error> {
    Ok(match conversion(tensor.dtype(), lane) {
        None => Cow::Borrowed(tensor),
        Some(_) => Cow::Owned(cast_tensor(OP, tensor, lane)?),
    })
}
