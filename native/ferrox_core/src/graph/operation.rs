//! The operations of programs with their options, and the kernel that each runs.

use smallvec::SmallVec;

use super::operand::Operand;
use crate::cost::{self, Cost, Work};
use crate::dtype::Lane;
use crate::layout::{self, Layout, Shape};
use crate::ops::all_close::Tolerance;
use crate::ops::binary::BinaryOp;
use crate::ops::cumulative::CumulativeOp;
use crate::ops::dot::Side;
use crate::ops::fft::Transform;
use crate::ops::indexed::Update;
use crate::ops::linalg::{Method, NxAlgorithm, Problem, Triangular};
use crate::ops::math::Math;
use crate::ops::pad::Padding;
use crate::ops::reduce::{ReduceOp, TieBreak};
use crate::ops::sort::Direction;
use crate::ops::unary::UnaryOp;
use crate::ops::window::{SlidingWindows, WindowOp};
use crate::ops::window_elements::Windows;
use crate::ops::window_scatter::Choice;
use crate::ops::{self, cast};
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, dispatch};

/// An operation of `Nx.Backend` with its options. Axes are not negative.
#[derive(Clone, Debug)]
pub enum Operation {
    /// An elementwise operation of two operands.
    Binary(BinaryOp),
    /// An elementwise operation of one operand.
    Unary(UnaryOp, Math),
    /// A cast to the type of the result.
    AsType,
    /// `select` of a predicate and two operands.
    Select,
    /// `clip` of an operand and two bounds.
    Clip,
    /// The axes of the result are these axes of the operand.
    Transpose(Shape),
    /// The axes of the operand become these axes of the result.
    Broadcast(Shape),
    /// The elements along these axes in reverse order.
    Reverse(Shape),
    /// A part of the operand.
    Slice {
        /// The first element along each axis.
        starts: Vec<Start>,
        /// The elements along each axis before the strides leave some out.
        lengths: Shape,
        /// The distance of elements.
        strides: Shape,
    },
    /// The operand with a second operand written at these starts.
    PutSlice(Vec<Start>),
    /// The operands, which have the type of the result, along an axis.
    Concatenate(usize),
    /// Counts along an axis, or all elements.
    Iota(Option<usize>),
    /// The identity matrix.
    Eye,
    /// The operand with a second operand, a scalar, around and between its elements.
    Pad(Vec<Padding>),
    /// A fold along axes.
    Reduce(ReduceOp, Shape),
    /// The index of the extreme along an axis, or of all elements.
    ArgReduce(ReduceOp, Option<usize>, TieBreak),
    /// A running fold along an axis, perhaps from its end.
    Cumulative(CumulativeOp, usize, bool),
    /// Whether two operands are equal within a tolerance.
    AllClose(Tolerance),
    /// A sum of products over axes of two operands.
    Dot {
        /// The axes to sum over, of each operand.
        contract: [Shape; 2],
        /// The axes of the batch, of each operand.
        batch: [Shape; 2],
    },
    /// A convolution of an operand with a kernel.
    Conv(Box<ConvOptions>),
    /// A fold of windows.
    Window(WindowOp, WindowOptions),
    /// A scatter of a second operand to the extremes of windows; the third is the start.
    WindowScatter(Choice, WindowOptions),
    /// The elements of each window; the second operand is the padding.
    WindowElements(WindowOptions),
    /// The elements in order along an axis.
    Sort(usize, Direction),
    /// The indices of the elements in order along an axis.
    Argsort(usize, Direction),
    /// The indices of the largest elements of rows.
    TopK,
    /// The elements at the indices in the second operand, along axes.
    Gather(Shape),
    /// The rows of an axis at the indices in the second operand.
    Take(usize),
    /// One element of an axis for each index in the second operand.
    TakeAlongAxis(usize),
    /// The operand, with the third operand added or put at the indices in the second, along axes.
    Indexed(Update, Shape),
    /// A Fourier transform along one axis or two, each with its length.
    Fourier {
        /// The transform.
        transform: Transform,
        /// The axes and their lengths.
        axes: Vec<(usize, usize)>,
        /// Parts up to this magnitude become zero.
        eps: f64,
    },
    /// The solution of a system of equations.
    Solve(Method),
    /// The solution of a triangular system.
    TriangularSolve(Triangular),
    /// A factorization, of which the number of results depends.
    Factor {
        /// The factorization.
        problem: Problem,
        /// The release of Nx whose results it gives.
        algorithm: NxAlgorithm,
        /// The tolerance of Nx's own algorithms.
        eps: f64,
    },
}

/// The first element of a slice along an axis. It is moved so that the slice lies in the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A number.
    At(usize),
    /// The value of an operand, an integer, by the number of the operand.
    Input(usize),
}

/// The options of windows, an entry for each axis.
#[derive(Clone, Debug)]
pub struct WindowOptions {
    /// The elements of a window.
    pub sizes: Shape,
    /// The padding before and after the elements.
    pub padding: Vec<(i64, i64)>,
    /// The distance of windows.
    pub strides: Shape,
    /// The distance of the elements of a window.
    pub dilations: Shape,
}

impl WindowOptions {
    fn sliding(&self) -> SlidingWindows<'_> {
        SlidingWindows {
            shape: &self.sizes,
            padding: &self.padding,
            strides: &self.strides,
            dilations: &self.dilations,
        }
    }
}

/// The options of a convolution, as [`ops::conv::Options`].
#[derive(Clone, Debug)]
pub struct ConvOptions {
    /// The distance of positions.
    pub strides: Shape,
    /// The padding before and after the elements.
    pub padding: Vec<(i64, i64)>,
    /// The distance of elements of the input.
    pub input_dilation: Shape,
    /// The distance of elements of the kernel.
    pub kernel_dilation: Shape,
    /// The number of groups of channels and of the batch.
    pub groups: [usize; 2],
    /// The axes of the input, the kernel and the result.
    pub permutations: [Shape; 3],
}

impl ConvOptions {
    fn options(&self) -> ops::conv::Options<'_> {
        ops::conv::Options {
            strides: &self.strides,
            padding: &self.padding,
            input_dilation: &self.input_dilation,
            kernel_dilation: &self.kernel_dilation,
            feature_groups: self.groups[0],
            batch_groups: self.groups[1],
            input_permutation: &self.permutations[0],
            kernel_permutation: &self.permutations[1],
            output_permutation: &self.permutations[2],
        }
    }
}

/// The memory for the results of an operation; most have one.
pub(super) type Outputs<'a> = SmallVec<[Output<'a>; 1]>;

/// A type and a shape.
pub(super) type Typed<'a> = (DType, &'a [usize]);

impl Operation {
    /// Whether the operation has a result of this type for all elements of its operands; else it may fail
    /// when it runs, as an integer division by zero does. Shapes aside, and without memory any may fail.
    #[must_use]
    pub fn is_total(&self, output: DType) -> bool {
        match self {
            Operation::Binary(
                BinaryOp::Quotient
                | BinaryOp::Remainder
                | BinaryOp::Pow
                | BinaryOp::Atan2
                | BinaryOp::LeftShift
                | BinaryOp::RightShift,
            ) => output.is_float(),
            Operation::Gather(_)
            | Operation::Take(_)
            | Operation::TakeAlongAxis(_)
            | Operation::Indexed(..)
            | Operation::Solve(_)
            | Operation::TriangularSolve(_)
            | Operation::Factor { .. } => false,
            _ => true,
        }
    }

    /// The name of the operation in error messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Binary(op) => op.name(),
            Operation::Unary(op, _) => op.name(),
            Operation::AsType => "as_type",
            Operation::Select => "select",
            Operation::Clip => "clip",
            Operation::Transpose(_) => "transpose",
            Operation::Broadcast(_) => "broadcast",
            Operation::Reverse(_) => "reverse",
            Operation::Slice { .. } => "slice",
            Operation::PutSlice(_) => "put_slice",
            Operation::Concatenate(_) => "concatenate",
            Operation::Iota(_) => "iota",
            Operation::Eye => "eye",
            Operation::Pad(_) => "pad",
            Operation::Reduce(op, _) => op.name(),
            Operation::ArgReduce(op, ..) => ops::reduce::arg_name(*op),
            Operation::Cumulative(op, ..) => op.name(),
            Operation::AllClose(_) => "all_close",
            Operation::Dot { .. } => "dot",
            Operation::Conv(_) => "conv",
            Operation::Window(op, _) => op.name(),
            Operation::WindowScatter(choice, _) => choice.name(),
            Operation::WindowElements(_) => "window_reduce",
            Operation::Sort(..) => "sort",
            Operation::Argsort(..) => "argsort",
            Operation::TopK => "top_k",
            Operation::Gather(_) => "gather",
            Operation::Take(_) => "take",
            Operation::TakeAlongAxis(_) => "take_along_axis",
            Operation::Indexed(update, _) => update.name(),
            Operation::Fourier { transform, .. } => transform.name(),
            Operation::Solve(_) => "solve",
            Operation::TriangularSolve(_) => "triangular_solve",
            Operation::Factor { problem, .. } => match problem {
                Problem::Determinant => "determinant",
                Problem::Cholesky => "cholesky",
                Problem::Lu => "lu",
                Problem::Qr => "qr",
                Problem::Eigh => "eigh",
                Problem::Svd => "svd",
                Problem::Triangular(_) => "triangular_solve",
                Problem::Solve(_) => "solve",
            },
        }
    }

    /// The estimated work for results and operands of some types and shapes.
    ///
    /// # Errors
    ///
    /// `Error::UnsupportedType` if there is no kernel for the types.
    pub(super) fn work(&self, outputs: &[Typed<'_>], inputs: &[Typed<'_>]) -> Result<Work, Error> {
        let Some(&(dtype, shape)) = outputs.first() else { return Ok(0) };
        let (from, input) = inputs.first().copied().unwrap_or((dtype, shape));
        let dtype_of = |index: usize| inputs.get(index).map_or(dtype, |&(dtype, _)| dtype);
        let shape_of = |index: usize| inputs.get(index).map_or(shape, |&(_, shape)| shape);
        let each = |cost: Cost| cost::work(size(shape), cost);
        let each_input = |cost: Cost| cost::work(size(input), cost);
        let work = match self {
            Operation::Binary(op) => each(ops::binary::plan(*op, dtype, [from, dtype_of(1)])?.cost),
            Operation::Unary(op, math) => each(ops::unary::plan(*op, *math, dtype, from)?.cost),
            Operation::AsType => each(crate::exec::convert::cost(from, dtype)),
            Operation::Select => {
                each(ops::ternary::select_plan(dtype, [from, dtype_of(1), dtype_of(2)]).cost)
            }
            Operation::Clip => each(ops::ternary::clip_plan(dtype, [from, dtype_of(1), dtype_of(2)])?.cost),
            Operation::Transpose(_)
            | Operation::Broadcast(_)
            | Operation::Reverse(_)
            | Operation::Slice { .. } => ops::shape::rearrange_work(shape),
            Operation::Concatenate(axis) => ops::shape::concatenate_work(dtype, shape, *axis, inputs.len()),
            Operation::Iota(_) => each(cost::IOTA_ELEMENT_COST),
            Operation::Eye => ops::create::eye_work(shape),
            Operation::Pad(_) => ops::pad::work((dtype, shape), (from, input)),
            Operation::Reduce(op, axes) => ops::reduce::work_along(*op, from, input, axes),
            Operation::ArgReduce(..) => ops::reduce::arg_work(from, size(input), size(shape)),
            Operation::Cumulative(..) => each_input(ops::cumulative::cost(from)),
            Operation::AllClose(_) => ops::all_close::work([from, dtype_of(1)], input, shape_of(1)),
            Operation::Dot { contract, batch } => {
                let operands = [(from, input), (dtype_of(1), shape_of(1))];
                ops::dot::work(dtype, operands, &contract[0], &batch[0])
            }
            Operation::Conv(options) => {
                let operands = [(from, input), (dtype_of(1), shape_of(1))];
                let [of_input, of_kernel, _] = &options.permutations;
                ops::conv::work((dtype, shape), operands, of_input, of_kernel)
            }
            Operation::Window(op, windows) => ops::window::work(*op, dtype, input, windows.sliding()),
            Operation::WindowScatter(choice, windows) => {
                ops::window_scatter::work(*choice, from, input, windows.sliding())
            }
            Operation::WindowElements(_) => ops::window_elements::work(from, shape),
            Operation::Sort(axis, _) => ops::sort::work(from, input, *axis),
            Operation::Argsort(axis, _) => ops::sort::argsort_work(from, input, *axis),
            Operation::TopK => ops::sort::top_work(from, input, shape.last().copied().unwrap_or(1)),
            Operation::Gather(_) => ops::indexed::read_work(from, size(shape), size(shape_of(1))),
            Operation::Take(axis) => {
                ops::indexed::take_work((from, input), size(shape_of(1)), *axis, size(shape))
            }
            Operation::TakeAlongAxis(axis) => ops::indexed::take_along_work(from, shape, *axis),
            Operation::PutSlice(_) => {
                let slice = (dtype_of(1), size(shape_of(1)));
                ops::indexed::write_work(Update::Put, (from, size(input)), slice, dtype)
            }
            Operation::Indexed(update, _) => {
                let updates = (dtype_of(2), size(shape_of(2)));
                ops::indexed::write_work(*update, (from, size(input)), updates, dtype)
            }
            Operation::Fourier { axes, .. } => {
                let lengths: Vec<usize> = axes.iter().map(|axis| axis.1).collect();
                ops::fft::work(size(shape).max(size(input)), &lengths)
            }
            Operation::Solve(_) => {
                Problem::Solve(ops::linalg::right_size(input, size(shape_of(1)))).work(dtype, input)
            }
            Operation::TriangularSolve(_) => {
                Problem::Triangular(ops::linalg::right_size(input, size(shape_of(1)))).work(dtype, input)
            }
            Operation::Factor { problem, .. } => problem.work(from, input),
        };
        let shapes = outputs.iter().chain(inputs).map(|&(_, shape)| shape);
        Ok(shapes.fold(work, |work, shape| work.saturating_add(cost::axes_work(shape))))
    }

    /// The estimated work of writing a part of the first operand over it, for operands of some types and
    /// shapes.
    pub(super) fn update_work(&self, inputs: &[Typed<'_>]) -> Work {
        match (self, inputs) {
            (Operation::PutSlice(_), [_, (_, slice), ..]) => ops::shape::rearrange_work(slice),
            (Operation::Indexed(update, _), [(dtype, _), _, (from, updates)]) => {
                ops::indexed::write_work(*update, (*dtype, 0), (*from, size(updates)), *dtype)
            }
            _ => Work::MAX,
        }
    }

    /// Computes the results.
    ///
    /// # Errors
    ///
    /// Those of the operation.
    pub(super) fn run(&self, mut outputs: Outputs<'_>, inputs: &[Tensor<'_>]) -> Result<(), Error> {
        if let Operation::Factor { problem, algorithm, eps } = self {
            return factor(*problem, *algorithm, *eps, outputs, inputs);
        }
        let (Some(out), true) = (outputs.pop(), outputs.is_empty()) else {
            return Err(self.argument("has one result".into()));
        };
        let starts = |starts: &[Start], input: &Tensor<'_>, lengths: &[usize]| {
            self.resolve_starts(starts, input.shape(), lengths, 0, inputs)
        };
        match (self, inputs) {
            (Operation::Binary(op), [a, b]) => {
                let plan = ops::binary::plan(*op, out.dtype, [a.dtype(), b.dtype()])?;
                ops::binary::run_tensors(*op, plan, out, a, b)
            }
            (Operation::Unary(op, math), [a]) => {
                let plan = ops::unary::plan(*op, *math, out.dtype, a.dtype())?;
                ops::unary::run_tensor(*op, plan, out, a)
            }
            (Operation::AsType, [a]) => cast::as_type(out, a),
            (Operation::Select, [a, b, c]) => ops::ternary::select(out, a, b, c),
            (Operation::Clip, [a, b, c]) => ops::ternary::clip(out, a, b, c),
            (Operation::Transpose(axes), [a]) => ops::shape::transpose(out, a, axes),
            (Operation::Broadcast(axes), [a]) => ops::shape::broadcast(out, a, axes),
            (Operation::Reverse(axes), [a]) => ops::shape::reverse(out, a, axes),
            (Operation::Slice { starts: at, lengths, strides }, [a, ..]) => {
                ops::shape::slice(out, a, &starts(at, a, lengths)?, lengths, strides)
            }
            (Operation::PutSlice(at), [a, slice, ..]) => {
                ops::indexed::put_slice(out, a, &starts(at, a, slice.shape())?, slice)
            }
            (Operation::Concatenate(axis), _) => ops::shape::concatenate(out, inputs, *axis),
            (Operation::Iota(axis), []) => ops::create::iota(out, *axis),
            (Operation::Eye, []) => ops::create::eye(out),
            (Operation::Pad(padding), [a, value]) => ops::pad::pad(out, a, value, padding),
            (Operation::Reduce(op, axes), [a]) => ops::reduce::reduce(*op, out, a, axes),
            (Operation::ArgReduce(op, axis, tie_break), [a]) => {
                ops::reduce::arg_reduce(*op, out, a, *axis, *tie_break)
            }
            (Operation::Cumulative(op, axis, reverse), [a]) => {
                ops::cumulative::cumulative(*op, out, a, *axis, *reverse)
            }
            (Operation::AllClose(tolerance), [a, b]) => ops::all_close::all_close(out, a, b, *tolerance),
            (Operation::Dot { contract, batch }, [a, b]) => {
                let left = Side { tensor: a, contract: &contract[0], batch: &batch[0] };
                ops::dot::dot(out, left, Side { tensor: b, contract: &contract[1], batch: &batch[1] })
            }
            (Operation::Conv(options), [a, kernel]) => ops::conv::conv(out, a, kernel, options.options()),
            (Operation::Window(op, windows), [a]) => ops::window::window(*op, out, a, windows.sliding()),
            (Operation::WindowScatter(choice, windows), [a, source, init]) => {
                ops::window_scatter::window_scatter(*choice, out, a, source, init, windows.sliding())
            }
            (Operation::WindowElements(windows), [a, pad]) => {
                let padding: Vec<_> =
                    windows.padding.iter().map(|&(low, high)| (low as isize, high as isize)).collect();
                let windows = Windows {
                    sizes: &windows.sizes,
                    strides: &windows.strides,
                    dilations: &windows.dilations,
                    padding: &padding,
                };
                ops::window_elements::window_elements(out, a, pad, windows)
            }
            (Operation::Sort(axis, direction), [a]) => ops::sort::sort(out, a, *axis, *direction),
            (Operation::Argsort(axis, direction), [a]) => ops::sort::argsort(out, a, *axis, *direction),
            (Operation::TopK, [a]) => {
                let k = out.shape.last().copied().unwrap_or(1);
                ops::sort::top_k(out, a, k)
            }
            (Operation::Gather(axes), [a, indices]) => ops::indexed::gather(out, a, indices, axes),
            (Operation::Take(axis), [a, indices]) => ops::indexed::take(out, a, indices, *axis),
            (Operation::TakeAlongAxis(axis), [a, indices]) => {
                ops::indexed::take_along_axis(out, a, indices, *axis)
            }
            (Operation::Indexed(update, axes), [a, indices, updates]) => {
                ops::indexed::indexed(*update, out, a, indices, updates, axes)
            }
            (Operation::Fourier { transform, axes, eps }, [a]) => match axes[..] {
                [axis] => ops::fft::fft(*transform, out, a, axis, *eps),
                [first, second] => ops::fft::fft2(*transform, out, a, [first, second], *eps),
                _ => Err(self.argument(format!("needs one axis or two, not {}", axes.len()))),
            },
            (Operation::Solve(method), [a, b]) => ops::linalg::solve(out, a, b, *method),
            (Operation::TriangularSolve(triangular), [a, b]) => {
                ops::linalg::triangular_solve(out, a, b, *triangular)
            }
            _ => Err(self.argument(format!("does not take {} operands", inputs.len()))),
        }
    }

    /// Whether the operation can write a result of some type over its first operand.
    pub(super) fn is_update(&self, dtype: DType, inputs: &[Operand]) -> bool {
        match (self, inputs) {
            (Operation::PutSlice(_), _) => !dtype.is_packed(),
            (Operation::Indexed(update, _), [target, _, updates]) => {
                ops::indexed::is_in_place(*update, (dtype, size(&target.shape)), size(&updates.shape))
            }
            _ => false,
        }
    }

    /// Computes the result over the first operand, given the others.
    ///
    /// # Errors
    ///
    /// Those of the operation.
    pub(super) fn update(&self, out: Output<'_>, others: &[Tensor<'_>]) -> Result<(), Error> {
        match (self, others) {
            (Operation::PutSlice(starts), [slice, ..]) => {
                let starts = self.resolve_starts(starts, out.shape, slice.shape(), 1, others)?;
                ops::indexed::put_slice_in_place(out, &starts, slice)
            }
            (Operation::Indexed(update, axes), [indices, updates]) => {
                ops::indexed::indexed_in_place(*update, out, indices, updates, axes)
            }
            _ => Err(self.argument("does not write over its operand".into())),
        }
    }

    /// The layout of the result in the memory of an operand of some shape, if the operation only rearranges
    /// elements, by numbers that are known.
    pub(super) fn view(&self, shape: &[usize]) -> Option<Layout> {
        let operand = Layout::contiguous(shape);
        let view = match self {
            Operation::Transpose(axes) => ops::shape::transpose_layout(&operand, axes),
            Operation::Reverse(axes) => ops::shape::reverse_layout(&operand, axes),
            Operation::Slice { starts, lengths, strides } => {
                let starts = self.resolve_starts(starts, shape, lengths, 0, &[]);
                starts.and_then(|starts| ops::shape::slice_layout(&operand, &starts, lengths, strides))
            }
            _ => return None,
        };
        view.ok()
    }

    /// The starts of a slice of some lengths, moved so that it lies within the shape. `inputs` are the
    /// operands from the one with the number `first` on.
    fn resolve_starts(
        &self,
        starts: &[Start],
        shape: &[usize],
        lengths: &[usize],
        first: usize,
        inputs: &[Tensor<'_>],
    ) -> Result<Shape, Error> {
        let axes = starts.iter().zip(shape).zip(lengths);
        axes.map(|((&start, &dim), &length)| {
            let last = dim.saturating_sub(length);
            Ok(match start {
                Start::At(start) => start.min(last),
                Start::Input(index) => {
                    let operand = index.checked_sub(first).and_then(|index| inputs.get(index));
                    let start = operand.and_then(integer);
                    let start = start.ok_or_else(|| self.argument("needs integers as starts".into()))?;
                    usize::try_from(start.max(0)).unwrap_or(usize::MAX).min(last)
                }
            })
        })
        .collect()
    }

    fn argument(&self, problem: String) -> Error {
        Error::Argument { op: self.name(), problem }
    }
}

fn size(shape: &[usize]) -> usize {
    layout::size(shape).unwrap_or(usize::MAX)
}

/// The value of an integer scalar.
fn integer(tensor: &Tensor<'_>) -> Option<i128> {
    let bytes = tensor.scalar()?;
    dispatch!(integer tensor.dtype(), T => T::view(bytes).first().map(|&bytes| i128::from(T::load(bytes))), else => None)
}

fn factor(
    problem: Problem,
    algorithm: NxAlgorithm,
    eps: f64,
    outputs: Outputs<'_>,
    inputs: &[Tensor<'_>],
) -> Result<(), Error> {
    let [a] = inputs else {
        return Err(Error::Argument { op: "factor", problem: "takes one operand".into() });
    };
    let count = outputs.len();
    let outputs = outputs.into_vec();
    let wrong = |_| Error::Argument { op: "factor", problem: format!("does not have {count} results") };
    match problem {
        Problem::Cholesky => {
            let [out] = outputs.try_into().map_err(wrong)?;
            ops::linalg::cholesky(out, a)
        }
        Problem::Determinant => {
            let [out] = outputs.try_into().map_err(wrong)?;
            ops::linalg::determinant(out, a)
        }
        Problem::Lu => ops::linalg::lu(outputs.try_into().map_err(wrong)?, a, algorithm),
        Problem::Qr => ops::linalg::qr(outputs.try_into().map_err(wrong)?, a, eps, algorithm),
        Problem::Eigh => ops::linalg::eigh(outputs.try_into().map_err(wrong)?, a, eps, algorithm),
        Problem::Svd => ops::linalg::svd(outputs.try_into().map_err(wrong)?, a, algorithm),
        Problem::Triangular(_) | Problem::Solve(_) => wrong_problem(),
    }
}

#[cold]
fn wrong_problem() -> Result<(), Error> {
    Err(Error::Argument { op: "factor", problem: "a system of equations is no factorization".into() })
}
