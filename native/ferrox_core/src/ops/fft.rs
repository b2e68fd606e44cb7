//! Discrete Fourier transforms of any length along one or two axes.
//!
//! The transforms are the rustfft crate's, in f64 for every type: only so are
//! results of single precision within a rounding of the exact ones, and the
//! zeros among them below `eps`.

use std::sync::{Arc, Mutex, PoisonError};

use num_complex::Complex;
use rustfft::{Fft, FftDirection, FftPlanner};

use crate::dtype::Lane;
use crate::exec::parallel::{self, Cost, Work};
use crate::exec::pause;
use crate::lane::conversion;
use crate::layout::{self, Layout, Shape};
use crate::tensor::{Output, Tensor, scratch, scratch_of};
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
    let rows = |length: &usize| parallel::work(size / length.max(&1), cost(*length));
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
        return job.run(&input.dense(op)?, out);
    }
    let (moved, back) = lines(input, axis, out_length);
    let view = input.view(moved);
    let rows = view.dense(op)?;
    let mut transformed = scratch(op, dtype, &back.shape, out.len())?;
    job.run(&rows, &mut transformed)?;
    layout::gather(dtype.width(), &transformed, &back, 0, out);
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
    plan: Arc<dyn Fft<f64>>,
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
        parallel::try_fill_shares(out, count, cost(self.length), |first, part| {
            let mut line = Line::new(self)?;
            for (i, row) in part.chunks_exact_mut(out_row).enumerate() {
                line.transform(self, &rows[(first + i) * in_row..][..in_row], row);
                pause::after(cost(self.length));
            }
            Ok(())
        })
    }
}

/// The memory that one thread needs.
struct Line {
    bytes: Vec<u8>,
    line: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
}

impl Line {
    fn new(job: &Job) -> Result<Self, Error> {
        let complex = |length: usize| scratch_of(job.transform.name(), DType::C128, &[length], length);
        let wide = job.size.max(job.transform.output_length(job.length));
        let bytes = scratch(job.transform.name(), DType::C128, &[wide], wide * DType::C128.width())?;
        Ok(Line { bytes, line: complex(job.length)?, scratch: complex(job.plan.get_inplace_scratch_len())? })
    }

    fn transform(&mut self, job: &Job, row: &[u8], out: &mut [u8]) {
        self.load(job, row);
        let Line { bytes, line, scratch } = self;
        if job.transform == Transform::RealInverse {
            mirror(line);
        }
        job.plan.process_with_scratch(line, scratch);
        if job.transform.direction() == FftDirection::Inverse {
            let n = job.length as f64;
            line.iter_mut().for_each(|z| *z = Complex::new(z.re / n, z.im / n));
        }
        let clean = |part: f64| if part.abs() <= job.eps { 0.0 } else { part };
        let width = DType::C128.width();
        let length = job.transform.output_length(job.length);
        let wide = &mut bytes[..length * width];
        for (bytes, z) in Complex::<f64>::view_mut(wide).iter_mut().zip(line.iter()) {
            *bytes = Complex::new(clean(z.re), clean(z.im)).store();
        }
        match conversion(DType::C128, job.to) {
            Some(convert) => convert(wide, out),
            None => out.copy_from_slice(wide),
        }
    }

    /// The row, cut or filled up with zeros.
    fn load(&mut self, job: &Job, row: &[u8]) {
        let taken = match job.transform {
            Transform::RealInverse => job.size.min(job.length / 2 + 1),
            _ => job.size.min(job.length),
        };
        let row = &row[..taken * job.from.width()];
        let wide = &mut self.bytes[..taken * DType::C128.width()];
        let read = match conversion(job.from, DType::C128) {
            Some(convert) => {
                convert(row, wide);
                &*wide
            }
            None => row,
        };
        for (z, bytes) in self.line.iter_mut().zip(Complex::<f64>::view(read)) {
            *z = Complex::load(*bytes);
        }
        self.line[taken..].fill(Complex::ZERO);
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

/// A plan, kept for the next call unless it is large; `None` if memory for it can't be had.
fn plan(length: usize, direction: FftDirection) -> Option<Arc<dyn Fft<f64>>> {
    /// The planner, and the plans that it has made.
    type Known = (FftPlanner<f64>, Vec<Arc<dyn Fft<f64>>>);
    static PLANNER: Mutex<Option<Known>> = Mutex::new(None);

    let mut kept = PLANNER.lock().unwrap_or_else(PoisonError::into_inner);
    let (planner, plans) = kept.get_or_insert_with(|| (FftPlanner::new(), Vec::new()));
    let known = plans.iter().find(|plan| plan.len() == length && plan.fft_direction() == direction);
    if let Some(plan) = known {
        return Some(Arc::clone(plan));
    }
    // A plan's tables take up to about this much, and to make them can't fail.
    let tables = length.checked_mul(8 * size_of::<Complex<f64>>())?;
    Vec::<u8>::new().try_reserve_exact(tables).ok()?;
    let plan = planner.plan_fft(length, direction);
    plans.push(Arc::clone(&plan));
    if plans.len() > 64 || plans.iter().fold(0, |sum: usize, plan| sum.saturating_add(plan.len())) > KEPT {
        *kept = None;
    }
    Some(plan)
}
