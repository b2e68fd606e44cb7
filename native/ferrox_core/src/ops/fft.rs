//! Discrete Fourier transforms of any length along one or two axes.
//!
//! The transforms are the rustfft crate's, in f64 for every type: only so are
//! results of single precision within a rounding of the exact ones, and the
//! zeros among them below `eps`.

mod long;

use std::sync::{Arc, Mutex, PoisonError};

use num_complex::Complex;
use rustfft::{Fft, FftDirection, FftPlanner};

use self::long::{Long, TILE, TOGETHER};
use crate::cost::{self, Cost, Work};
use crate::dtype::Lane;
use crate::exec::convert::{Convert, conversion};
use crate::exec::copy;
use crate::exec::memory::{scratch, scratch_of};
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::{cooperative_yield, parallel};
use crate::layout::{Layout, Shape};
use crate::tensor::{Output, Tensor};
use crate::{DType, Error};

/// Plans for lengths whose sum is more than this are not kept.
const KEPT: usize = 1 << 20;

/// Which transform, and what it is told.
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
    /// As Nx names it.
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

/// The work for one row: about 5 n log n operations, and a plan.
fn cost(length: usize) -> Cost {
    (length as u64).saturating_mul(u64::from(length.max(1).ilog2()) * 300 + 5_000).saturating_add(200_000)
}

/// The work for so many elements, transformed along axes of these sizes.
#[must_use]
pub fn work(size: usize, lengths: &[usize]) -> Work {
    let rows = |length: &usize| cost::work(size / length.max(&1), cost(*length));
    lengths.iter().map(rows).fold(0, u64::saturating_add)
}

/// Transforms along `axis`, whose elements are cut or filled up with zeros to
/// `length`; parts no greater than `eps` become zero. The result is complex,
/// but for `RealInverse`.
///
/// # Errors
///
/// `Error::Argument` and `Error::Shape` if axis, length and the shape of `out`
/// don't go together, `Error::TooLarge` if there is no memory for
/// intermediate results.
pub fn fft(
    transform: Transform,
    out: Output<'_>,
    input: &Tensor<'_>,
    (axis, length): (usize, usize),
    eps: f64,
) -> Result<(), Error> {
    let op = transform.name();
    check(op, out.shape, input, &[(axis, transform.output_length(length))])?;
    if !(out.dtype.is_complex() || transform == Transform::RealInverse && out.dtype.is_float()) {
        return Err(Error::UnsupportedType { op, dtypes: vec![out.dtype] });
    }
    let dtype = out.dtype;
    out.write(op, |bytes| along(transform, dtype, bytes, input, (axis, length), eps))
}

/// Transforms along the second of two axes, then along the first, rounding
/// once.
///
/// # Errors
///
/// As those of `fft`.
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
    check(op, out.shape, input, &[(axis1, length1), (axis2, length2)])?;
    if !out.dtype.is_complex() {
        return Err(Error::UnsupportedType { op, dtypes: vec![out.dtype] });
    }
    let mut shape = input.shape().to_vec();
    shape[axis2] = length2;
    let length = crate::tensor::byte_size(op, DType::C128, &shape)?;
    let mut rows = scratch(op, DType::C128, &shape, length)?;
    along(transform, DType::C128, &mut rows, input, (axis2, length2), eps)?;
    let rows = Tensor::computed(DType::C128, &shape, rows);
    let dtype = out.dtype;
    out.write(op, |bytes| along(transform, dtype, bytes, &rows, (axis1, length1), eps))
}

/// Whether `out` is the input's shape with the axes of the given sizes.
fn check(op: &'static str, out: &[usize], input: &Tensor<'_>, axes: &[(usize, usize)]) -> Result<(), Error> {
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

/// The axes with `axis` moved last, and the layout that undoes it for lines of
/// `length` along it.
fn lines(input: &Tensor<'_>, axis: usize, length: usize) -> (Layout, Layout) {
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

/// One axis, written to bytes in the storage type `dtype`.
fn along(
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
    let job = Job::new(transform, input, (input.shape()[axis], length), dtype, eps)?;
    if axis + 1 == input.rank() {
        return job.run(&copy::dense(op, input)?, out);
    }
    let (moved, back) = lines(input, axis, out_length);
    let view = input.view(moved);
    let rows = copy::dense(op, &view)?;
    let mut transformed = scratch(op, dtype, &back.shape, out.len())?;
    job.run(&rows, &mut transformed)?;
    copy::gather_all(dtype.width(), &transformed, &back, out);
    Ok(())
}

/// Transforms of rows that lie one after the other.
struct Job {
    transform: Transform,
    from: DType,
    to: DType,
    /// Elements of a row before and while it is transformed.
    size: usize,
    length: usize,
    eps: f64,
    plan: Plan,
}

impl Job {
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
        Ok(Job { transform, from: input.dtype(), to, size, length, eps, plan })
    }

    fn run(&self, rows: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let out_row = self.transform.output_length(self.length) * self.to.width();
        let in_row = self.size * self.from.width();
        let count = out.len() / out_row;
        let (convert, taken) = (conversion(self.from, DType::C128), self.taken() * self.from.width());
        let back = conversion(DType::C128, self.to);
        let row = |index: usize| Row { job: self, convert, back, bytes: &rows[index * in_row..][..taken] };
        match &self.plan {
            Plan::Long(long) if count < parallel::threads() => {
                let cost = cost(self.length) / self.length as Cost;
                let mut rows = out.chunks_exact_mut(out_row).enumerate();
                rows.try_for_each(|(i, out)| long.run(&row(i), out, cost))
            }
            plan => parallel::try_fill_shares(out, count, cost(self.length), |first, part| {
                let mut rows = part.chunks_exact_mut(out_row).zip(first..);
                match plan {
                    Plan::Long(long) => rows.try_for_each(|(out, i)| long.run(&row(i), out, 0)),
                    Plan::Short(plan) => {
                        let mut line = Line::new(self, plan)?;
                        for (out, i) in rows {
                            line.transform(&row(i), out);
                            cooperative_yield::after(cost(self.length));
                        }
                        Ok(())
                    }
                }
            }),
        }
    }

    /// How many elements of a row are transformed.
    fn taken(&self) -> usize {
        match self.transform {
            Transform::RealInverse => self.size.min(self.length / 2 + 1),
            _ => self.size.min(self.length),
        }
    }

    fn memory(&self, length: usize) -> Result<Vec<Complex<f64>>, Error> {
        scratch_of(self.transform.name(), DType::C128, &[length], length)
    }

    /// Writes elements of a result, by so many bytes of what they are.
    #[inline(always)]
    fn write<const BYTES: usize>(&self, convert: Option<Convert>, elements: &[Complex<f64>], out: &mut [u8]) {
        let inverse = self.transform.direction() == FftDirection::Inverse;
        let (n, eps) = (if inverse { self.length as f64 } else { 1.0 }, self.eps);
        let Some(convert) = convert else {
            return vectorize(Finish { elements, n, eps, out });
        };
        let (mut tile, count) = ([0; BYTES], BYTES / 16);
        for (elements, out) in elements.chunks(count).zip(out.chunks_mut(count * self.to.width())) {
            let tile = &mut tile[..elements.len() * 16];
            vectorize(Finish { elements, n, eps, out: tile });
            convert(tile, out);
        }
    }
}

/// Divides by `n`, makes zeros of parts up to `eps`, and writes the elements.
struct Finish<'a> {
    elements: &'a [Complex<f64>],
    n: f64,
    eps: f64,
    out: &'a mut [u8],
}

impl Vectorized for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Finish { elements, n, eps, out } = self;
        let clean = |part: f64| if part.abs() <= eps { 0.0 } else { part };
        let out = Complex::<f64>::view_mut(out).iter_mut().zip(elements);
        if n == 1.0 {
            out.for_each(|(out, z)| *out = Complex::new(clean(z.re), clean(z.im)).store());
        } else {
            out.for_each(|(out, z)| *out = Complex::new(clean(z.re / n), clean(z.im / n)).store());
        }
    }
}

/// One row of a job.
struct Row<'a> {
    job: &'a Job,
    /// To what is computed with, and back.
    convert: Option<Convert>,
    back: Option<Convert>,
    /// What is transformed of it.
    bytes: &'a [u8],
}

impl long::Row for Row<'_> {
    #[inline(always)]
    fn read(&self, first: usize) -> [Complex<f64>; TOGETHER] {
        let Row { job, convert, bytes, .. } = self;
        let (width, mut elements) = (job.from.width(), [Complex::ZERO; TOGETHER]);
        let given = bytes.get(first * width..).unwrap_or_default();
        if given.len() >= TOGETHER * width {
            load::<{ 16 * TOGETHER }>(*convert, &given[..TOGETHER * width], &mut elements);
            return elements;
        }
        let count = given.len() / width;
        load::<{ 16 * TOGETHER }>(*convert, given, &mut elements[..count]);
        if job.transform == Transform::RealInverse {
            // As `mirror` has it.
            for (z, i) in elements[count..].iter_mut().zip(first + count..job.length) {
                let place = job.length - i;
                if let Some(bytes) = bytes.get(place * width..).filter(|bytes| !bytes.is_empty() && place < i)
                {
                    load::<16>(*convert, &bytes[..width], std::slice::from_mut(z));
                    *z = z.conj();
                }
            }
        }
        elements
    }

    fn width(&self) -> usize {
        self.job.to.width()
    }

    #[inline(always)]
    fn write(&self, elements: &[Complex<f64>], out: &mut [u8]) {
        self.job.write::<{ 16 * TILE }>(self.back, elements, out);
    }

    fn memory(&self, length: usize) -> Result<Vec<Complex<f64>>, Error> {
        self.job.memory(length)
    }
}

/// Reads elements of a row, by so many bytes of what they become.
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

/// The memory that one thread needs.
struct Line<'a> {
    plan: &'a Arc<dyn Fft<f64>>,
    line: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
}

impl<'a> Line<'a> {
    fn new(job: &Job, plan: &'a Arc<dyn Fft<f64>>) -> Result<Self, Error> {
        let (line, scratch) = (job.memory(job.length)?, job.memory(plan.get_inplace_scratch_len())?);
        Ok(Line { plan, line, scratch })
    }

    fn transform(&mut self, row: &Row<'_>, out: &mut [u8]) {
        let Line { plan, line, scratch } = self;
        let Row { job, convert, back, bytes } = row;
        // The row, cut or filled up with zeros.
        let (given, rest) = line.split_at_mut(job.taken());
        load::<{ 16 * TILE }>(*convert, bytes, given);
        rest.fill(Complex::ZERO);
        if job.transform == Transform::RealInverse {
            mirror(line);
        }
        plan.process_with_scratch(line, scratch);
        let length = job.transform.output_length(job.length);
        job.write::<{ 16 * TILE }>(*back, &line[..length], out);
    }
}

/// Fills the second half of a transform with what it must be if the numbers
/// that it is of are real.
fn mirror(line: &mut [Complex<f64>]) {
    let n = line.len();
    for i in 1..n.div_ceil(2) {
        line[n - i] = line[i].conj();
    }
}

/// How to transform rows of a length.
#[derive(Clone)]
enum Plan {
    Short(Arc<dyn Fft<f64>>),
    Long(Arc<Long>),
}

/// A plan, kept for the next call unless it is large; `None` if memory for it can't be had.
fn plan(length: usize, direction: FftDirection) -> Option<Plan> {
    /// The planner, and the plans that it has made, of so many elements.
    type Known = (FftPlanner<f64>, Vec<(usize, FftDirection, Plan)>);
    static PLANNER: Mutex<Option<Known>> = Mutex::new(None);

    let mut kept = PLANNER.lock().unwrap_or_else(PoisonError::into_inner);
    let (planner, plans) = kept.get_or_insert_with(|| (FftPlanner::new(), Vec::new()));
    let known = plans.iter().find(|plan| (plan.0, plan.1) == (length, direction));
    if let Some((_, _, plan)) = known {
        return Some(plan.clone());
    }
    // A plan's tables take up to about this much, and to make them can't fail.
    let tables = length.checked_mul(8 * size_of::<Complex<f64>>())?;
    Vec::<u8>::new().try_reserve_exact(tables).ok()?;
    let plan = match Long::new(planner, length, direction) {
        Some(long) => Plan::Long(Arc::new(long)),
        None => Plan::Short(planner.plan_fft(length, direction)),
    };
    plans.push((length, direction, plan.clone()));
    if plans.len() > 64 || plans.iter().fold(0, |sum: usize, plan| sum.saturating_add(plan.0)) > KEPT {
        *kept = None;
    }
    Some(plan)
}
