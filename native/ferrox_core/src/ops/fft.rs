//! Discrete Fourier transforms of any length along one or two axes.
//!
//! The transforms are those of the rustfft crate, in f64 for every type: only in f64 are results of
//! single precision within a rounding of the exact ones, and parts that should be zero below `eps`.

mod long;

use std::sync::{Arc, Mutex};

use num_complex::Complex;
use rustfft::{Fft, FftDirection, FftPlanner};

use self::long::{FFT_COLUMNS, FFT_TILE_ELEMENTS, SixStepPlan};
use crate::cost::{
    self, Cost, FFT_ELEMENT_COST, FFT_LEVEL_COST, FFT_ROW_COST, MAX_CACHED_FFT_ELEMENTS, Work,
};
use crate::dtype::Lane;
use crate::exec::convert::{Convert, conversion};
use crate::exec::copy;
use crate::exec::memory::{check_available, scratch, scratch_of};
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::{cooperative_yield, parallel, pool::lock};
use crate::layout::{Layout, Shape};
use crate::tensor::{Output, Tensor};
use crate::{DType, Error};

/// The kind of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// `Nx.fft/2` and `Nx.fft2/2`.
    Forward,
    /// `Nx.ifft/2` and `Nx.ifft2/2`, divided by the length.
    Inverse,
    /// `Nx.rfft/2`: the first half of the forward transform of real numbers.
    RealForward,
    /// `Nx.irfft/2`: real numbers from half of their transform.
    RealInverse,
}

impl Transform {
    /// The name of the operation in Nx.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Transform::Forward => "fft",
            Transform::Inverse => "ifft",
            Transform::RealForward => "rfft",
            Transform::RealInverse => "irfft",
        }
    }

    fn direction(self) -> FftDirection {
        match self {
            Transform::Forward | Transform::RealForward => FftDirection::Forward,
            Transform::Inverse | Transform::RealInverse => FftDirection::Inverse,
        }
    }

    /// The size of the axis in the result.
    fn output_length(self, length: usize) -> usize {
        if self == Transform::RealForward { length / 2 + 1 } else { length }
    }
}

/// The cost of transforming one row: about 5 n log n operations, and the plan.
fn row_cost(length: usize) -> Cost {
    (length as u64)
        .saturating_mul(u64::from(length.max(1).ilog2()) * FFT_LEVEL_COST + FFT_ELEMENT_COST)
        .saturating_add(FFT_ROW_COST)
}

/// The work of transforming `size` elements along axes of some lengths.
#[must_use]
pub fn work(size: usize, lengths: &[usize]) -> Work {
    let rows = |length: &usize| cost::work(size / length.max(&1), row_cost(*length));
    lengths.iter().map(rows).fold(0, u64::saturating_add)
}

/// Transforms along `axis`, whose elements are cut off or padded with zeros to `length`; real and
/// imaginary parts whose magnitude is at most `eps` become zero. The result is complex, except for
/// `RealInverse`.
///
/// # Errors
///
/// `Error::Argument` and `Error::Shape` if the axis, the length and the shape of `out` don't match,
/// `Error::TooLarge` if there is no memory for intermediate results.
pub fn fft(
    transform: Transform,
    out: Output<'_>,
    input: &Tensor<'_>,
    (axis, length): (usize, usize),
    eps: f64,
) -> Result<(), Error> {
    let op = transform.name();
    check_shape(op, out.shape, input, &[(axis, transform.output_length(length))])?;
    if !(out.dtype.is_complex() || transform == Transform::RealInverse && out.dtype.is_float()) {
        return Err(Error::UnsupportedType { op, dtypes: vec![out.dtype] });
    }
    let dtype = out.dtype;
    out.write(op, |bytes| transform_axis(transform, dtype, bytes, input, (axis, length), eps))
}

/// Transforms along the second of two axes, then along the first, and rounds once.
///
/// # Errors
///
/// The errors of [`fft`].
pub fn fft2(
    transform: Transform,
    out: Output<'_>,
    input: &Tensor<'_>,
    [(axis1, length1), (axis2, length2)]: [(usize, usize); 2],
    eps: f64,
) -> Result<(), Error> {
    let op = if transform == Transform::Forward { "fft2" } else { "ifft2" };
    if axis1 == axis2 || !matches!(transform, Transform::Forward | Transform::Inverse) {
        return Err(Error::Argument { op, problem: "needs two different axes".to_string() });
    }
    check_shape(op, out.shape, input, &[(axis1, length1), (axis2, length2)])?;
    if !out.dtype.is_complex() {
        return Err(Error::UnsupportedType { op, dtypes: vec![out.dtype] });
    }
    let mut shape = input.shape().to_vec();
    shape[axis2] = length2;
    let length = crate::tensor::byte_size(op, DType::C128, &shape)?;
    let mut rows = scratch(op, DType::C128, &shape, length)?;
    transform_axis(transform, DType::C128, &mut rows, input, (axis2, length2), eps)?;
    let rows = Tensor::computed(DType::C128, &shape, rows);
    let dtype = out.dtype;
    out.write(op, |bytes| transform_axis(transform, dtype, bytes, &rows, (axis1, length1), eps))
}

/// Checks that `out` is the shape of the input with other sizes of some axes.
fn check_shape(
    op: &'static str,
    out: &[usize],
    input: &Tensor<'_>,
    axes: &[(usize, usize)],
) -> Result<(), Error> {
    let mut shape = Shape::from_slice(input.shape());
    for &(axis, length) in axes {
        let rank = shape.len();
        let Some(size) = shape.get_mut(axis) else {
            let problem = format!("axis {axis} is out of range for rank {rank}");
            return Err(Error::Argument { op, problem });
        };
        *size = length;
    }
    if shape[..] != *out {
        let shapes = vec![input.shape().to_vec(), out.to_vec()];
        return Err(Error::Shape { op, shapes, problem: format!("should end as {shape:?}") });
    }
    Ok(())
}

/// The layout of the input with `axis` moved to the end, and the layout that moves the axis back in
/// the result, where it has `length` elements.
fn axis_last_layouts(input: &Tensor<'_>, axis: usize, length: usize) -> (Layout, Layout) {
    let layout = input.layout().into_owned();
    let (mut shape, mut strides) = (layout.shape.clone(), layout.strides.clone());
    let (size, stride) = (shape.remove(axis), strides.remove(axis));
    shape.push(size);
    strides.push(stride);
    let moved = Layout { shape: shape.clone(), strides, offset: layout.offset };
    let last = shape.len() - 1;
    shape[last] = length;
    let mut back = Layout::contiguous(&shape);
    let (size, stride) = (back.shape.remove(last), back.strides.remove(last));
    back.shape.insert(axis, size);
    back.strides.insert(axis, stride);
    (moved, back)
}

/// Transforms along one axis, and writes elements of type `dtype`.
fn transform_axis(
    transform: Transform,
    dtype: DType,
    out: &mut [u8],
    input: &Tensor<'_>,
    (axis, length): (usize, usize),
    eps: f64,
) -> Result<(), Error> {
    let op = transform.name();
    if out.is_empty() {
        return Ok(());
    }
    let out_length = transform.output_length(length);
    let transforms = RowTransforms::new(transform, input, (input.shape()[axis], length), dtype, eps)?;
    if axis + 1 == input.rank() {
        return transforms.run(&copy::dense(op, input)?, out);
    }
    let (moved, back) = axis_last_layouts(input, axis, out_length);
    let view = input.view(moved);
    let rows = copy::dense(op, &view)?;
    let mut transformed = scratch(op, dtype, &back.shape, out.len())?;
    transforms.run(&rows, &mut transformed)?;
    copy::gather_all(dtype.width(), &transformed, &back, out);
    Ok(())
}

/// Transforms of rows that are next to each other.
struct RowTransforms {
    transform: Transform,
    from: DType,
    to: DType,
    /// The number of elements in a row of the input.
    size: usize,
    /// The length of the transform.
    length: usize,
    eps: f64,
    plan: Plan,
}

impl RowTransforms {
    fn new(
        transform: Transform,
        input: &Tensor<'_>,
        (size, length): (usize, usize),
        to: DType,
        eps: f64,
    ) -> Result<Self, Error> {
        let op = transform.name();
        let plan = plan(length, transform.direction());
        let plan = plan.ok_or_else(|| Error::TooLarge { op, dtype: to, shape: vec![length] })?;
        Ok(RowTransforms { transform, from: input.dtype(), to, size, length, eps, plan })
    }

    fn run(&self, rows: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let out_row = self.transform.output_length(self.length) * self.to.width();
        let in_row = self.size * self.from.width();
        let count = out.len() / out_row;
        let convert = conversion(self.from, DType::C128);
        let input_bytes = self.input_length() * self.from.width();
        let back = conversion(DType::C128, self.to);
        let row = |index: usize| InputRow {
            transforms: self,
            convert,
            back,
            bytes: &rows[index * in_row..][..input_bytes],
        };
        match &self.plan {
            Plan::SixStep(plan) if count < parallel::threads() => {
                let cost = row_cost(self.length) / self.length as Cost;
                let mut rows = out.chunks_exact_mut(out_row).enumerate();
                rows.try_for_each(|(i, out)| plan.run(&row(i), out, cost))
            }
            plan => parallel::try_fill_shares(out, count, row_cost(self.length), |first, part| {
                let mut rows = part.chunks_exact_mut(out_row).zip(first..);
                match plan {
                    Plan::SixStep(plan) => rows.try_for_each(|(out, i)| plan.run(&row(i), out, 0)),
                    Plan::Direct(plan) => {
                        let mut line = DirectTransform::new(self, plan)?;
                        for (out, i) in rows {
                            line.transform(&row(i), out);
                            cooperative_yield::after(row_cost(self.length));
                        }
                        Ok(())
                    }
                }
            }),
        }
    }

    /// The number of elements of an input row that are transformed.
    fn input_length(&self) -> usize {
        match self.transform {
            Transform::RealInverse => self.size.min(self.length / 2 + 1),
            _ => self.size.min(self.length),
        }
    }

    fn memory(&self, length: usize) -> Result<Vec<Complex<f64>>, Error> {
        scratch_of(self.transform.name(), DType::C128, &[length], length)
    }

    /// Writes elements of the result, converted in tiles of `BYTES` bytes of complex numbers.
    #[inline(always)]
    fn write<const BYTES: usize>(&self, convert: Option<Convert>, elements: &[Complex<f64>], out: &mut [u8]) {
        let inverse = self.transform.direction() == FftDirection::Inverse;
        let (n, eps) = (if inverse { self.length as f64 } else { 1.0 }, self.eps);
        let Some(convert) = convert else {
            return vectorize(FinishLoop { elements, n, eps, out });
        };
        let (mut tile, count) = ([0; BYTES], BYTES / 16);
        for (elements, out) in elements.chunks(count).zip(out.chunks_mut(count * self.to.width())) {
            let tile = &mut tile[..elements.len() * 16];
            vectorize(FinishLoop { elements, n, eps, out: tile });
            convert(tile, out);
        }
    }
}

/// Divides by `n`, replaces parts whose magnitude is at most `eps` by zero, and writes the
/// elements.
struct FinishLoop<'a> {
    elements: &'a [Complex<f64>],
    n: f64,
    eps: f64,
    out: &'a mut [u8],
}

impl Vectorized for FinishLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let FinishLoop { elements, n, eps, out } = self;
        let clean = |part: f64| if part.abs() <= eps { 0.0 } else { part };
        let out = Complex::<f64>::view_mut(out).iter_mut().zip(elements);
        if n == 1.0 {
            out.for_each(|(out, z)| *out = Complex::new(clean(z.re), clean(z.im)).store());
        } else {
            out.for_each(|(out, z)| *out = Complex::new(clean(z.re / n), clean(z.im / n)).store());
        }
    }
}

/// One input row.
struct InputRow<'a> {
    transforms: &'a RowTransforms,
    /// Conversions from the type of the input to complex numbers in f64, and from these to the type
    /// of the result.
    convert: Option<Convert>,
    back: Option<Convert>,
    /// The elements that are transformed.
    bytes: &'a [u8],
}

impl long::RowAccess for InputRow<'_> {
    #[inline(always)]
    fn read(&self, first: usize) -> [Complex<f64>; FFT_COLUMNS] {
        let InputRow { transforms, convert, bytes, .. } = self;
        let (width, mut elements) = (transforms.from.width(), [Complex::ZERO; FFT_COLUMNS]);
        let given = bytes.get(first * width..).unwrap_or_default();
        if given.len() >= FFT_COLUMNS * width {
            load::<{ 16 * FFT_COLUMNS }>(*convert, &given[..FFT_COLUMNS * width], &mut elements);
            return elements;
        }
        let count = given.len() / width;
        load::<{ 16 * FFT_COLUMNS }>(*convert, given, &mut elements[..count]);
        if transforms.transform == Transform::RealInverse {
            // The conjugate elements that `mirror` would write.
            for (z, i) in elements[count..].iter_mut().zip(first + count..transforms.length) {
                let source = transforms.length - i;
                if let Some(bytes) =
                    bytes.get(source * width..).filter(|bytes| !bytes.is_empty() && source < i)
                {
                    load::<16>(*convert, &bytes[..width], std::slice::from_mut(z));
                    *z = z.conj();
                }
            }
        }
        elements
    }

    fn width(&self) -> usize {
        self.transforms.to.width()
    }

    #[inline(always)]
    fn write(&self, elements: &[Complex<f64>], out: &mut [u8]) {
        self.transforms.write::<{ 16 * FFT_TILE_ELEMENTS }>(self.back, elements, out);
    }

    fn memory(&self, length: usize) -> Result<Vec<Complex<f64>>, Error> {
        self.transforms.memory(length)
    }
}

/// Reads elements of a row, converted in tiles of `BYTES` bytes of complex numbers.
#[inline(always)]
fn load<const BYTES: usize>(convert: Option<Convert>, row: &[u8], to: &mut [Complex<f64>]) {
    let Some(convert) = convert else {
        for (z, bytes) in to.iter_mut().zip(Complex::<f64>::view(row)) {
            *z = Complex::load(*bytes);
        }
        return;
    };
    let mut tile = [0; BYTES];
    let (width, count) = (row.len() / to.len().max(1), BYTES / 16);
    for (to, row) in to.chunks_mut(count).zip(row.chunks((count * width).max(1))) {
        let tile = &mut tile[..to.len() * 16];
        convert(row, tile);
        for (z, bytes) in to.iter_mut().zip(Complex::<f64>::view(tile)) {
            *z = Complex::load(*bytes);
        }
    }
}

/// The plan and the memory of one thread for rows of a short length.
struct DirectTransform<'a> {
    plan: &'a Arc<dyn Fft<f64>>,
    line: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
}

impl<'a> DirectTransform<'a> {
    fn new(transforms: &RowTransforms, plan: &'a Arc<dyn Fft<f64>>) -> Result<Self, Error> {
        let (line, scratch) =
            (transforms.memory(transforms.length)?, transforms.memory(plan.get_inplace_scratch_len())?);
        Ok(DirectTransform { plan, line, scratch })
    }

    fn transform(&mut self, row: &InputRow<'_>, out: &mut [u8]) {
        let DirectTransform { plan, line, scratch } = self;
        let InputRow { transforms, convert, back, bytes } = row;
        // The row, cut off or padded with zeros.
        let (given, rest) = line.split_at_mut(transforms.input_length());
        load::<{ 16 * FFT_TILE_ELEMENTS }>(*convert, bytes, given);
        rest.fill(Complex::ZERO);
        if transforms.transform == Transform::RealInverse {
            mirror(line);
        }
        plan.process_with_scratch(line, scratch);
        let length = transforms.transform.output_length(transforms.length);
        transforms.write::<{ 16 * FFT_TILE_ELEMENTS }>(*back, &line[..length], out);
    }
}

/// Fills the second half of the transform of real numbers, which has Hermitian symmetry.
fn mirror(line: &mut [Complex<f64>]) {
    let n = line.len();
    for i in 1..n.div_ceil(2) {
        line[n - i] = line[i].conj();
    }
}

/// The plan for rows of a length.
#[derive(Clone)]
enum Plan {
    Direct(Arc<dyn Fft<f64>>),
    SixStep(Arc<SixStepPlan>),
}

/// The number of plans that are cached.
const MAX_CACHED_PLANS: usize = 64;

/// Returns a plan, which is cached for the next calls, or `None` if there is no memory for it.
fn plan(length: usize, direction: FftDirection) -> Option<Plan> {
    /// Plans with their lengths and directions.
    static PLANS: Mutex<Vec<(usize, FftDirection, Plan)>> = Mutex::new(Vec::new());

    // The lock is never held while a plan is made, which takes a second for millions of elements: short
    // transforms wait for it on the schedulers of the VM. Two threads may make the same plan.
    let find = |plans: &[(usize, FftDirection, Plan)]| {
        plans.iter().find(|plan| (plan.0, plan.1) == (length, direction)).map(|plan| plan.2.clone())
    };
    if let Some(plan) = find(&lock(&PLANS)) {
        return Some(plan);
    }
    // The tables of a plan take at most about this memory, and rustfft allocates them infallibly.
    let tables = length.checked_mul(8 * size_of::<Complex<f64>>())?;
    check_available(tables).ok()?;
    let mut planner = FftPlanner::new();
    let plan = match SixStepPlan::new(&mut planner, length, direction) {
        Some(plan) => Plan::SixStep(Arc::new(plan)),
        None => Plan::Direct(planner.plan_fft(length, direction)),
    };
    // A plan that is too long for the cache, and plans that leave it, are freed without the lock.
    if length > MAX_CACHED_FFT_ELEMENTS {
        return Some(plan);
    }
    let left = {
        let mut plans = lock(&PLANS);
        if let Some(plan) = find(&plans) {
            return Some(plan);
        }
        let size = plans.iter().fold(length, |sum, plan| sum.saturating_add(plan.0));
        let is_full = plans.len() == MAX_CACHED_PLANS || size > MAX_CACHED_FFT_ELEMENTS;
        let left = if is_full { std::mem::take(&mut *plans) } else { Vec::new() };
        plans.push((length, direction, plan.clone()));
        left
    };
    drop(left);
    Some(plan)
}
