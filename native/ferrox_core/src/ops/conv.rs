//! Convolutions: `Nx.conv/3`.
//!
//! What is computed in which type is as for `dot`: few multiplications, and
//! operands that f32 can't hold, in f64; other floats in f32; integers wrap.
//! Each result is rounded once. Padding is zeros.

use std::borrow::Cow;

use num_complex::Complex;

use crate::cost::{self, Cost, Work};
use crate::error::ShapeDisplay;
use crate::exec::convert::conversion;
use crate::exec::copy::{self, gather};
use crate::exec::gemm::blocked::{self, product_cost};
use crate::exec::gemm::matrix::{MatrixBytes, ProductTarget};
use crate::exec::gemm::strategy::{MAX_ORDERED_PRODUCTS, PRODUCT_WRITE_COST, lane};
use crate::exec::gemm::{in_order, indirect};
use crate::exec::im2col;
use crate::exec::im2col::{Axis, Patches};
use crate::exec::memory::scratch;
use crate::exec::threads::cooperative_yield::pause;
use crate::exec::threads::parallel;
use crate::layout::{Layout, MAX_EXTENT, Shape};
use crate::ops::cast::cast_tensor;
use crate::tensor::{Output, Tensor};
use crate::{DType, Error};

mod planes;

use planes::Planes;

const OP: &str = "conv";

/// Bytes of patches that are laid out at a time: they stay in the cache while
/// they are multiplied, and bound the memory that a convolution takes.
const BLOCK: usize = 1 << 20;

/// Fewer filters than this in a group are multiplied without patches.
const FEW: usize = 4;

/// What `Nx.conv/3` is told. Lists have an entry for each spatial axis.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// From one position to the next.
    pub strides: &'a [usize],
    /// Padding before and behind, negative to leave elements out.
    pub padding: &'a [(i64, i64)],
    /// From one element of the input to the next.
    pub input_dilation: &'a [usize],
    /// From one place of the kernel to the next.
    pub kernel_dilation: &'a [usize],
    /// Groups of channels, each with filters of its own.
    pub feature_groups: usize,
    /// Groups of the batch, each with filters of its own.
    pub batch_groups: usize,
    /// Which axis of the input is its batch, its channels, and its spatial axes.
    pub input_permutation: &'a [usize],
    /// Which axis of the kernel is its filters, its channels, and so on.
    pub kernel_permutation: &'a [usize],
    /// Where the batch, the filters and the spatial axes of the result go.
    pub output_permutation: &'a [usize],
}

/// The work of a convolution of so many results, each the sum of `depth`
/// products, that reads so many elements, some of them of another type.
#[must_use]
pub fn work(out: DType, results: usize, depth: usize, [read, converted]: [usize; 2]) -> Work {
    const MOVED: Cost = 200;
    const CONVERTED: Cost = 2_000;
    let each = if out.is_float() {
        indirect::cost(out.width().max(4), depth)
    } else {
        product_cost(out).saturating_mul(depth as Cost)
    };
    cost::work(results, each.saturating_add(PRODUCT_WRITE_COST))
        .saturating_add(cost::work(read, MOVED))
        .saturating_add(cost::work(converted, CONVERTED))
}

/// Slides the filters of `kernel` over `input`.
///
/// # Errors
///
/// `Error::Argument` or `Error::Shape` if the options don't go together or
/// don't fit the shapes, `Error::UnsupportedType`, and `Error::TooLarge` if
/// there is no memory for an intermediate result.
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
            // Sums of nothing, or of padding.
            bytes.fill(0);
            return Ok(());
        }
        let job = Job::new(sizes, lane, dtype, input, kernel, &options)?;
        let layout = Layout::contiguous(shape).transpose(options.output_permutation);
        match Place::of(&layout).filter(|place| job.writes_to(place)) {
            Some(place) => job.run(place, bytes),
            None => {
                let dense = Layout::contiguous(&layout.shape);
                let mut result = scratch(OP, dtype, &layout.shape, bytes.len())?;
                job.run(Place::of(&dense).unwrap_or_default(), &mut result)?;
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

/// How many of what there are.
struct Sizes {
    /// Of the result.
    batch: usize,
    filters: usize,
    /// Channels that a filter meets.
    channels: usize,
    feature_groups: usize,
    batch_groups: usize,
    /// `step` is filled in later.
    axes: Vec<Axis>,
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
            let (size, places, stride) = (input[axis + 2], kernel[axis + 2], options.strides[axis]);
            let [input_dilation, kernel_dilation] =
                [options.input_dilation[axis], options.kernel_dilation[axis]];
            let spread = |size: usize, dilation: usize| match size {
                0 => 0,
                _ => (size as i128 - 1) * dilation as i128 + 1,
            };
            let padded = spread(size, input_dilation) + i128::from(low) + i128::from(high);
            let extent = spread(places, kernel_dilation);
            if padded > MAX_EXTENT || i128::from(low).abs() > MAX_EXTENT {
                return problem(format!("padding {{{low}, {high}}} is out of range"));
            }
            if extent > padded || places == 0 {
                return problem(format!(
                    "a kernel of {places} places is larger than the padded input, or empty, in spatial axis {axis}"
                ));
            }
            let positions = (padded - extent) as usize / stride + 1;
            // Where there is one of something, any distance is as good.
            let one = |count: usize, distance: usize| if count == 1 { 1 } else { distance };
            axes.push(Axis {
                size,
                positions,
                places,
                stride: one(positions, stride),
                kernel_dilation: one(places, kernel_dilation),
                input_dilation: one(size, input_dilation),
                low: low as isize,
                step: 0,
            });
        }
        let batch = input[0] / batch_groups;
        Ok(Sizes { batch, filters, channels: kernel[1], feature_groups, batch_groups, axes })
    }

    /// The shape of the result, not permuted.
    fn result(&self) -> Vec<usize> {
        [self.batch, self.filters].into_iter().chain(self.axes.iter().map(|axis| axis.positions)).collect()
    }

    fn positions(&self) -> usize {
        self.axes.iter().map(|axis| axis.positions).product()
    }

    fn places(&self) -> usize {
        self.axes.iter().map(|axis| axis.places).product()
    }

    /// Products that a result is the sum of.
    fn depth(&self) -> usize {
        self.channels * self.places()
    }

    fn groups(&self) -> usize {
        self.feature_groups.max(self.batch_groups)
    }
}

/// The strides of a result's batch, filters and positions, in elements.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    batch: usize,
    filter: usize,
    position: usize,
}

impl Place {
    /// If the spatial axes are one.
    fn of(layout: &Layout) -> Option<Self> {
        let (shape, strides) = (&layout.shape[2..], &layout.strides[2..]);
        let (dims, collapsed) = crate::layout::collapse(shape, strides);
        let position = match dims.len() {
            0 => 1,
            1 => collapsed[0] as usize,
            _ => return None,
        };
        Some(Place { batch: layout.strides[0] as usize, filter: layout.strides[1] as usize, position })
    }
}

/// How patches are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// None are: the input is multiplied where it lies.
    Direct,
    /// A row for each channel and place.
    ByPlace,
    /// A row for each position.
    ByPosition,
}

/// A convolution with its operands in the type that is computed with.
struct Job<'a> {
    sizes: Sizes,
    lane: DType,
    dtype: DType,
    order: Order,
    /// Instead of patches.
    planes: Option<Planes>,
    input: Cow<'a, Tensor<'a>>,
    /// Of the batch and of the channels.
    strides: [isize; 2],
    offset: usize,
    /// The filters, one a row.
    filters: Cow<'a, [u8]>,
}

impl<'a> Job<'a> {
    fn new(
        mut sizes: Sizes,
        lane: DType,
        dtype: DType,
        input: &'a Tensor<'a>,
        kernel: &'a Tensor<'a>,
        options: &Options<'_>,
    ) -> Result<Self, Error> {
        let input = in_lane(input, lane)?;
        let mut layout = input.layout().transpose(options.input_permutation);
        let rank = layout.rank();
        let few = sizes.filters / sizes.groups() < FEW;
        let total = sizes.batch * sizes.filters * sizes.positions();
        let order = if few || total.saturating_mul(sizes.depth()) <= MAX_ORDERED_PRODUCTS {
            Order::Direct
        } else if layout.strides[1] == 1 && sizes.channels > 1 {
            Order::ByPosition
        } else {
            Order::ByPlace
        };
        let mut input = input;
        if order == Order::Direct && rank > 2 && layout.strides[rank - 1] != 1 && sizes.places() > 1 {
            // It is read once for each place.
            let bytes = copy::dense(OP, &input.view(layout.clone()))?.into_owned();
            layout = Layout::contiguous(&layout.shape);
            input = Cow::Owned(Tensor::computed(lane, &layout.shape, bytes));
        }
        for (axis, &stride) in sizes.axes.iter_mut().zip(&layout.strides[2..]) {
            axis.step = stride;
        }
        let kernel = in_lane(kernel, lane)?;
        // Channels change fastest where they do in patches.
        let mut axes = options.kernel_permutation.to_vec();
        if order == Order::ByPosition {
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
            _ if order != Order::ByPlace => None,
            DType::F32 => Planes::new::<f32>(&sizes.axes, sizes.channels, strides[1]),
            DType::F64 => Planes::new::<f64>(&sizes.axes, sizes.channels, strides[1]),
            _ => None,
        };
        let offset = layout.offset;
        Ok(Job { sizes, lane, dtype, order, planes, input, strides, offset, filters })
    }

    /// Whether results can be written there without another copy.
    fn writes_to(&self, place: &Place) -> bool {
        let one = place.position == 1 || self.sizes.positions() == 1;
        let by_patches = self.order != Order::Direct && self.planes.is_none();
        by_patches || one && place.filter == self.sizes.positions()
    }

    /// Of one element of the result's batch, and one group.
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

    fn run(&self, place: Place, out: &mut [u8]) -> Result<(), Error> {
        let Sizes { batch, filters, .. } = self.sizes;
        let (positions, depth, width) = (self.sizes.positions(), self.sizes.depth(), self.dtype.width());
        let each = (depth as Cost).saturating_mul(self.lane.width() as Cost);
        if self.order == Order::Direct {
            let cost = each.saturating_mul(30).saturating_add(200).saturating_mul(positions as Cost);
            return parallel::try_fill(out, batch * filters, cost, |first, out| self.direct(first, out));
        }
        if let Some(planes) = &self.planes {
            return self.by_planes(planes, out);
        }
        let each = each.saturating_mul(if self.lane.is_integer() { 12 } else { 6 });
        let whole = filters * positions;
        let cost = each.saturating_mul(whole as Cost);
        let alone = batch >= 2 * parallel::threads() && place.batch == whole && parallel::pays(batch, cost);
        if alone {
            return parallel::try_fill(out, batch, cost, |first, out| {
                for (i, out) in out.chunks_mut(whole * width).enumerate() {
                    self.one(first + i, place, out, true)?;
                }
                Ok(())
            });
        }
        for index in 0..batch {
            self.one(index, place, &mut out[index * place.batch * width..], false)?;
        }
        Ok(())
    }

    /// Rows of the result from `first` on, one a filter of an element of the
    /// batch.
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

    /// One element of the batch, on the calling thread or on all.
    fn one(&self, batch: usize, place: Place, out: &mut [u8], alone: bool) -> Result<(), Error> {
        let (lane, groups) = (self.lane, self.sizes.groups());
        let (positions, depth) = (self.sizes.positions(), self.sizes.depth());
        let filters = self.sizes.filters / groups;
        let block = (BLOCK / (depth * lane.width())).next_multiple_of(64).clamp(64, positions.max(64));
        let block = block.min(positions);
        let width = lane.width();
        let mut laid = scratch(OP, lane, &[block, depth], block * depth * width)?;
        // gemm writes to the result itself, if that has its type.
        let store = conversion(lane, self.dtype);
        let through = store.is_some() || lane.is_integer();
        let result = if through { filters * block } else { 0 };
        let mut result = scratch(OP, lane, &[filters, block], result * width)?;
        let narrow = if store.is_some() { filters * block * self.dtype.width() } else { 0 };
        let mut narrow = scratch(OP, self.dtype, &[filters, block], narrow)?;
        for group in 0..groups {
            let patches = self.patches(batch, group);
            let weights = &self.filters[group * filters * depth * width..][..filters * depth * width];
            for from in (0..positions).step_by(block) {
                pause();
                let count = block.min(positions - from);
                let laid = &mut laid[..count * depth * width];
                self.lay_out(&patches, (from, from + count), laid, alone);
                let start = group * filters * place.filter + from * place.position;
                let out = &mut out[start * self.dtype.width()..];
                let product = Product { filters, depth, count, weights, laid, alone };
                if !through {
                    let strides = [place.filter, place.position];
                    let last = (filters - 1) * strides[0] + (count - 1) * strides[1] + 1;
                    self.multiply(&product, &mut out[..last * width], strides)?;
                    continue;
                }
                // Dense, the way that the elements lie in the result.
                let by_filter = self.order == Order::ByPlace || place.position == 1;
                let by_filter = by_filter && (!lane.is_integer() || self.order == Order::ByPlace);
                let (columns, strides) = if by_filter {
                    (count, [place.filter, place.position])
                } else {
                    (filters, [place.position, place.filter])
                };
                let result = &mut result[..filters * count * width];
                self.multiply(&product, result, if by_filter { [count, 1] } else { [1, filters] })?;
                let result = match store {
                    Some(convert) => {
                        let narrow = &mut narrow[..filters * count * self.dtype.width()];
                        convert(result, narrow);
                        &*narrow
                    }
                    None => &*result,
                };
                im2col::scatter(self.dtype.width(), result, columns, out, strides);
            }
        }
        Ok(())
    }

    /// The patches of some positions.
    fn lay_out(&self, patches: &Patches<'_>, positions: (usize, usize), laid: &mut [u8], alone: bool) {
        let (width, depth, count) = (self.lane.width(), self.sizes.depth(), positions.1 - positions.0);
        let fill = |first: usize, part: &mut [u8]| match self.order {
            Order::ByPosition => patches.by_position(width, positions.0 + first, part),
            _ => patches.by_place(width, first, positions, part),
        };
        let rows = if self.order == Order::ByPosition { count } else { depth };
        if alone {
            fill(0, laid);
            return;
        }
        parallel::fill(laid, rows, (100 * count * depth / rows) as Cost, fill);
    }

    /// Filters times patches, to where strides of filters and positions say;
    /// integers only to a dense matrix, with a row for each of what patches
    /// have one.
    fn multiply(&self, product: &Product<'_>, out: &mut [u8], strides: [usize; 2]) -> Result<(), Error> {
        let Product { filters, depth, count, weights, laid, alone } = *product;
        let by_place = self.order == Order::ByPlace;
        let too_large = |_| Error::TooLarge { op: OP, dtype: self.lane, shape: vec![filters, depth, count] };
        if !self.lane.is_integer() {
            let laid_strides = if by_place { [count, 1] } else { [1, depth] };
            let left = MatrixBytes { bytes: weights, strides: [depth, 1] };
            let right = MatrixBytes { bytes: laid, strides: laid_strides };
            let out = ProductTarget { bytes: out, strides, alone };
            return blocked::multiply_floats(self.lane, [filters, depth, count], left, right, out)
                .map_err(too_large);
        }
        let width = self.lane.width();
        let (sizes, left, right): (_, &[u8], Cow<'_, [u8]>) = if by_place {
            ([filters, depth, count], weights, Cow::Borrowed(laid))
        } else {
            let mut turned = scratch(OP, self.lane, &[depth, filters], weights.len())?;
            let layout = Layout::contiguous(&Shape::from_slice(&[filters, depth])).transpose(&[1, 0]);
            gather(width, weights, &layout, 0, &mut turned);
            ([count, depth, filters], laid, Cow::Owned(turned))
        };
        in_order::integers(self.lane, sizes, left, &right, out, alone);
        Ok(())
    }
}

/// The operands of one product of matrices.
struct Product<'a> {
    filters: usize,
    depth: usize,
    count: usize,
    weights: &'a [u8],
    laid: &'a [u8],
    alone: bool,
}

/// The tensor in a lane, as it is if it has its bits.
fn in_lane<'a>(tensor: &'a Tensor<'a>, lane: DType) -> Result<Cow<'a, Tensor<'a>>, Error> {
    Ok(match conversion(tensor.dtype(), lane) {
        None => Cow::Borrowed(tensor),
        Some(_) => Cow::Owned(cast_tensor(OP, tensor, lane)?),
    })
}
