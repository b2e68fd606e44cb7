//! One function a family of operations: the core called on decoded terms, and
//! its result as a term.

mod indexed;

use ferrox_core::cost::{self, Cost, Work};
use ferrox_core::exec::convert;
use ferrox_core::exec::elementwise::{Plan, Source};
use ferrox_core::exec::threads::parallel;
use ferrox_core::layout::{self, Shape};
use ferrox_core::ops::all_close::Tolerance;
use ferrox_core::ops::binary::BinaryOp;
use ferrox_core::ops::conv::Options;
use ferrox_core::ops::cumulative::CumulativeOp;
use ferrox_core::ops::dot::Side;
use ferrox_core::ops::reduce::{ReduceOp, TieBreak};
use ferrox_core::ops::result_type::{Operation, Resolved};
use ferrox_core::ops::unary::UnaryOp;
use ferrox_core::ops::window::{SlidingWindows, WindowOp};
use ferrox_core::ops::window_scatter::Choice;
use ferrox_core::ops::{self, cast, window_elements};
use ferrox_core::promotion::{Mode, Node};
use ferrox_core::{DType, Error, Output, Tensor};
use rustler::{Atom, Decoder, Encoder, Env, NifResult, Term};

pub use self::indexed::{
    Paddings, argsort, gather, indexed, pad, put_slice, sort, take, take_along_axis, top_k,
};
use crate::atom_table::NameTable;
use crate::entry::{bad_argument, pair};
use crate::promotion;
use crate::scheduling::Call;
use crate::term::{self, Axes, Dims, Elementwise, Operand, Operands, Type};

/// Runs when the VM loads the library; `threads` is zero for one a core.
pub fn load(env: Env<'_>, threads: Term<'_>) -> bool {
    let Ok(threads) = threads.decode::<usize>() else { return false };
    parallel::set_threads(threads);
    term::load(env)
        && BINARY.fill(env)
        && UNARY.fill(env)
        && REDUCE.fill(env)
        && CUMULATIVE.fill(env)
        && WINDOW.fill(env)
        && SCATTER.fill(env)
}

/// The operations of families: how an argument that names one is decoded, and their names.
macro_rules! families {
    ($($Family:ident($Op:ty), $NAMES:ident;)*) => {$(
        static $NAMES: NameTable<$Op> = NameTable::new(<$Op>::ALL, <$Op>::name);

        pub struct $Family($Op);

        impl<'a> Decoder<'a> for $Family {
            #[inline(always)]
            fn decode(term: Term<'a>) -> NifResult<Self> {
                $NAMES.decode(term).map($Family)
            }
        }
    )*};
}
families! {
    Binary(BinaryOp), BINARY;
    Unary(UnaryOp), UNARY;
    Reduce(ReduceOp), REDUCE;
    Window(WindowOp), WINDOW;
    Scatter(Choice), SCATTER;
    Cumulative(CumulativeOp), CUMULATIVE;
}

/// The names of the operations, one list a family that has several.
pub fn operations(env: Env<'_>) -> NifResult<Vec<Vec<Atom>>> {
    fn atoms<T: Copy>(env: Env<'_>, names: &NameTable<T>) -> NifResult<Vec<Atom>> {
        names.names().map(|name| Atom::from_str(env, name)).collect()
    }
    Ok(vec![atoms(env, &BINARY)?, atoms(env, &UNARY)?, atoms(env, &REDUCE)?, atoms(env, &CUMULATIVE)?])
}

/// The operation with a name, as far as the type of its result is concerned.
pub fn operation(name: Term<'_>) -> NifResult<Operation> {
    let operations = [
        BINARY.decode(name).map(Operation::Binary),
        UNARY.decode(name).map(Operation::Unary),
        REDUCE.decode(name).map(Operation::Reduce),
    ];
    if let Some(operation) = operations.into_iter().find_map(Result::ok) {
        return Ok(operation);
    }
    match name.atom_to_string()?.as_str() {
        "mean" => Ok(Operation::Mean),
        "argmax" | "argmin" => Ok(Operation::ArgReduce),
        "dot" => Ok(Operation::Dot),
        "clip" => Ok(Operation::Clip),
        "select" | "concatenate" | "stack" => Ok(Operation::Join),
        _ => Err(bad_argument()),
    }
}

/// The number of elements of a shape.
#[inline]
fn size(shape: &[usize]) -> usize {
    layout::size(shape).unwrap_or(usize::MAX)
}

/// The work of computing every element of a shape.
#[inline]
fn work(shape: &[usize], cost: Cost) -> Work {
    cost::work(size(shape), cost)
}

/// The type of a result: given, or the one that Nx's rules give for the operands.
#[derive(Clone, Copy)]
pub enum ResultType {
    Given(DType),
    Nx,
}

impl<'a> Decoder<'a> for ResultType {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        match term::dtype(term) {
            Some(dtype) => Ok(ResultType::Given(dtype)),
            None if term.is_atom() => Ok(ResultType::Nx),
            None => Err(bad_argument()),
        }
    }
}

impl ResultType {
    #[inline(always)]
    fn given(self) -> Option<DType> {
        match self {
            ResultType::Given(dtype) => Some(dtype),
            ResultType::Nx => None,
        }
    }

    /// The type for operands that have a type together, if Nx defines the operation for it.
    #[inline(always)]
    fn of(self, operation: Operation, merged: DType) -> NifResult<DType> {
        match self {
            ResultType::Given(dtype) => Ok(dtype),
            ResultType::Nx => match operation.of(Mode::nx(), merged.into()) {
                Some(Resolved { result: Node::Type(dtype), .. }) => Ok(dtype),
                _ => Err(bad_argument()),
            },
        }
    }

    /// What is answered: the data, in `{type, data}` if the type was to be found and isn't that of the
    /// first operand.
    #[inline(always)]
    fn answer(self, dtype: DType, first: DType, data: Term<'_>) -> Term<'_> {
        match self {
            ResultType::Nx if dtype != first && data.is_binary() => {
                pair(Type(dtype).encode(data.get_env()), data)
            }
            _ => data,
        }
    }
}

// Most operands of the operations on elements lie as the result does, or are numbers: what is needed
// of them is decoded at once. Others become tensors, which are decoded, and then broadcast.

#[inline(always)]
pub fn binary<'a>(
    call: Call<'a>,
    op: Binary,
    result: ResultType,
    shape: Term<'a>,
    left: Term<'a>,
    right: Term<'a>,
) -> NifResult<Term<'a>> {
    let (op, mut number) = (op.0, [0; 8]);
    if let Some((rank, size)) = term::rank_and_size(shape)
        && let Some(([merged, first], operands)) = sources(result, left, right, (rank, size), &mut number)
    {
        let dtypes = operands.map(|(dtype, _)| dtype);
        let dtype = result.of(Operation::Binary(op), merged)?;
        if !dtype.is_packed() {
            let plan = match ops::binary::plan(op, dtype, dtypes) {
                Ok(plan) => plan,
                Err(error) => return Ok(call.error(&error)),
            };
            let data = call.elements(cost::work(size, plan.cost), op.name(), dtype, size, |out| {
                ops::binary::run(op, plan, (dtype, &[size]), out, operands)
            });
            return Ok(result.answer(dtype, first, data));
        }
    }
    binary_of_tensors(call, op, result, shape, left, right)
}

/// A source and its type.
type TypedSource<'a> = (DType, Source<'a>);

/// Two operands as sources; and, for Nx's rules, the type that they have together and that of the first
/// operand that has one. A right operand without a type then has the left one's, and one of both may be a
/// number, whose value is written to `number`.
#[inline(always)]
fn sources<'a: 's, 's>(
    result: ResultType,
    left: Term<'a>,
    right: Term<'a>,
    (rank, size): (usize, usize),
    number: &'s mut [u8; 8],
) -> Option<([DType; 2], [TypedSource<'s>; 2])> {
    let given = result.given();
    let left_source = term::source(left, given, rank, size);
    let left_dtype = given.or(left_source.map(|(dtype, _)| dtype));
    match (left_source, term::source(right, left_dtype, rank, size)) {
        (Some(left), Some(right)) if given.is_some() || left.0 == right.0 => {
            Some(([left.0; 2], [left, right]))
        }
        (Some(left), Some(right)) => match Mode::nx().merge(left.0.into(), right.0.into()) {
            Ok(Node::Type(merged)) => Some(([merged, left.0], [left, right])),
            _ => None,
        },
        (Some(left), None) => {
            let (merged, right) = promotion::nx_number(left.0, right, number)?;
            Some(([merged, left.0], [left, right]))
        }
        (None, Some(right)) => {
            let (merged, left) = promotion::nx_number(right.0, left, number)?;
            Some(([merged, right.0], [left, right]))
        }
        (None, None) => None,
    }
}

#[inline(never)]
fn binary_of_tensors<'a>(
    call: Call<'a>,
    op: BinaryOp,
    result: ResultType,
    shape: Term<'a>,
    left: Term<'a>,
    right: Term<'a>,
) -> NifResult<Term<'a>> {
    let (name, Dims(shape)) = (op.name(), shape.decode()?);
    let ResultType::Given(dtype) = result else {
        return malformed(call, name, &shape, [left, right]);
    };
    let (left, right): (Elementwise<'_>, Elementwise<'_>) = (left.decode()?, right.decode()?);
    let plan = match ops::binary::plan(op, dtype, [left.dtype(dtype), right.dtype(dtype)]) {
        Ok(plan) => plan,
        Err(error) => return Ok(call.error(&error)),
    };
    Ok(call.tensor(work(&shape, plan.cost), name, dtype, &shape, |out| {
        let (left, right) = (left.tensor(name, dtype, &shape)?, right.tensor(name, dtype, &shape)?);
        ops::binary::binary(op, out, &left, &right)
    }))
}

/// The error of operands for Nx's rules whose data don't fit the shape: all others have sources.
#[cold]
fn malformed<'a, const N: usize>(
    call: Call<'a>,
    op: &'static str,
    shape: &[usize],
    operands: [Term<'a>; N],
) -> NifResult<Term<'a>> {
    for operand in operands.into_iter().filter_map(|term| term.decode::<Elementwise<'_>>().ok()) {
        if let Some(dtype) = operand.own_dtype()
            && let Err(error) = operand.tensor(op, dtype, shape)
        {
            return Ok(call.error(&error));
        }
    }
    Err(bad_argument())
}

#[inline(always)]
pub fn unary<'a>(
    call: Call<'a>,
    op: Unary,
    result: ResultType,
    shape: Term<'a>,
    input: Term<'a>,
) -> NifResult<Term<'a>> {
    let (op, name) = (op.0, op.0.name());
    if let Some((rank, size)) = term::rank_and_size(shape)
        && let Some((from, input @ Source::Dense { .. })) = term::source(input, result.given(), rank, size)
    {
        let dtype = result.of(Operation::Unary(op), from)?;
        if !dtype.is_packed() {
            let plan = match ops::unary::plan(op, dtype, from) {
                Ok(plan) => plan,
                Err(error) => return Ok(call.error(&error)),
            };
            let data = call.elements(cost::work(size, plan.cost), name, dtype, size, |out| {
                ops::unary::run(op, plan, (dtype, &[size]), out, (from, input))
            });
            return Ok(result.answer(dtype, from, data));
        }
    }
    let Dims(shape) = shape.decode()?;
    let ResultType::Given(dtype) = result else {
        return malformed(call, name, &shape, [input]);
    };
    let input: Elementwise<'_> = input.decode()?;
    let cost = ops::unary::plan(op, dtype, input.dtype(dtype)).map_or(0, |plan| plan.cost);
    Ok(call.tensor(work(&shape, cost), name, dtype, &shape, |out| {
        ops::unary::unary(op, out, &input.tensor(name, dtype, &shape)?)
    }))
}

#[inline(always)]
pub fn as_type<'a>(call: Call<'a>, dtype: Type, shape: Term<'a>, input: Term<'a>) -> NifResult<Term<'a>> {
    const OP: &str = "as_type";
    let dtype = dtype.0;
    if let Some((rank, size)) = term::rank_and_size(shape)
        && let Some((from, Source::Dense { bytes, .. })) = term::source(input, Some(dtype), rank, size)
        && !dtype.is_packed()
    {
        return Ok(call.elements(cost::work(size, convert::cost(from, dtype)), OP, dtype, size, |out| {
            convert::convert_all(from, bytes, dtype, size, out);
            Ok(())
        }));
    }
    let (Dims(shape), input): (Dims, Elementwise<'_>) = (shape.decode()?, input.decode()?);
    let work = work(&shape, convert::cost(input.dtype(dtype), dtype));
    Ok(call.tensor(work, OP, dtype, &shape, |out| cast::as_type(out, &input.tensor(OP, dtype, &shape)?)))
}

/// An operation on three operands, computed by what `plan` makes of their types.
#[inline(always)]
fn ternary<'a>(
    call: Call<'a>,
    op: &'static str,
    dtype: DType,
    shape: &[usize],
    operands: [Elementwise<'a>; 3],
    plan: impl FnOnce([DType; 3]) -> Result<Plan, Error>,
) -> Term<'a> {
    let plan = match plan(operands.each_ref().map(|operand| operand.dtype(dtype))) {
        Ok(plan) => plan,
        Err(error) => return call.error(&error),
    };
    call.tensor(work(shape, plan.cost), op, dtype, shape, |out| {
        let [a, b, c] = operands.each_ref().map(|operand| operand.tensor(op, dtype, shape));
        plan.run(op, out, &[&a?, &b?, &c?])
    })
}

pub fn select<'a>(
    call: Call<'a>,
    dtype: Type,
    shape: Dims,
    predicate: Elementwise<'a>,
    on_true: Elementwise<'a>,
    on_false: Elementwise<'a>,
) -> Term<'a> {
    let plan = |dtypes| Ok(ops::ternary::select_plan(dtype.0, dtypes));
    ternary(call, "select", dtype.0, &shape.0, [predicate, on_true, on_false], plan)
}

pub fn clip<'a>(
    call: Call<'a>,
    dtype: Type,
    shape: Dims,
    input: Elementwise<'a>,
    min: Elementwise<'a>,
    max: Elementwise<'a>,
) -> Term<'a> {
    let plan = |dtypes| ops::ternary::clip_plan(dtype.0, dtypes);
    ternary(call, "clip", dtype.0, &shape.0, [input, min, max], plan)
}

/// A reduction of the axes in a list, or of all for `nil`. Most are of adjacent axes: few elements are
/// reduced sooner than their shape becomes a tensor's.
#[inline(always)]
pub fn reduce<'a>(
    call: Call<'a>,
    op: Reduce,
    result: ResultType,
    axes: Term<'a>,
    input: Term<'a>,
) -> NifResult<Term<'a>> {
    let (op, name) = (op.0, op.0.name());
    let (from, along, data) = term::reduction(input, axes)?;
    let dtype = result.of(Operation::Reduce(op), from)?;
    let cost = ops::reduce::cost(from);
    let data = match along {
        Some(along) if !dtype.is_packed() => {
            call.elements(cost::work(along.size(), cost), name, dtype, along.results(), |out| {
                ops::reduce::reduce_dense(op, (from, data), along, dtype, out)
            })
        }
        _ => {
            let (input, axes): (Operand<'_>, Option<Axes>) = (input.decode()?, axes.decode()?);
            let axes = axes.map_or_else(|| (0..input.shape().len()).collect(), Axes::into_inner);
            let kept = (0..input.shape().len()).filter(|axis| !axes.contains(axis));
            let shape: Shape = kept.map(|axis| input.shape()[axis]).collect();
            call.tensor(work(input.shape(), cost), name, dtype, &shape, |out| {
                ops::reduce::reduce(op, out, &input.tensor(name)?, &axes)
            })
        }
    };
    Ok(result.answer(dtype, from, data))
}

/// The search for an extreme element along an axis, or among all for `nil`.
#[inline(always)]
pub fn arg_reduce<'a>(
    call: Call<'a>,
    op: Reduce,
    dtype: Type,
    axis: Term<'a>,
    high: bool,
    input: Term<'a>,
) -> NifResult<Term<'a>> {
    let (op, dtype) = (op.0, dtype.0);
    let name = ops::reduce::arg_name(op);
    let tie_break = if high { TieBreak::High } else { TieBreak::Low };
    let (from, along, data) = term::reduction(input, axis)?;
    if let Some(along) = along
        && !dtype.is_packed()
    {
        let work = ops::reduce::arg_work(from, along.size(), along.results());
        return Ok(call.elements(work, name, dtype, along.results(), |out| {
            ops::reduce::arg_reduce_dense(op, (from, data), along, tie_break, dtype, out)
        }));
    }
    let (input, axis): (Operand<'_>, Option<usize>) = (input.decode()?, axis.decode()?);
    let mut shape = Shape::from_slice(input.shape());
    match axis {
        Some(axis) if axis < shape.len() => shape[axis] = 1,
        _ => shape.fill(1),
    }
    let work = ops::reduce::arg_work(from, input.size(), size(&shape));
    Ok(call.tensor(work, name, dtype, &shape, |out| {
        ops::reduce::arg_reduce(op, out, &input.tensor(name)?, axis, tie_break)
    }))
}

pub fn cumulative<'a>(
    call: Call<'a>,
    op: Cumulative,
    axis: usize,
    reverse: bool,
    input: Operand<'a>,
) -> Term<'a> {
    let (name, dtype) = (op.0.name(), input.dtype());
    let work = work(input.shape(), ops::cumulative::cost(dtype));
    call.tensor(work, name, dtype, input.shape(), |out| {
        ops::cumulative::cumulative(op.0, out, &input.tensor(name)?, axis, reverse)
    })
}

/// Relative, absolute, and whether NaN equals NaN.
pub type Tolerances = (f64, f64, bool);

pub fn all_close<'a>(
    call: Call<'a>,
    shape: Dims,
    (relative, absolute, equal_nan): Tolerances,
    left: Operand<'a>,
    right: Operand<'a>,
) -> Term<'a> {
    const OP: &str = "all_close";
    let work = ops::all_close::work([left.dtype(), right.dtype()], left.shape(), right.shape());
    call.tensor(work, OP, DType::U8, &shape.0, |out| {
        let tolerance = Tolerance { relative, absolute, equal_nan };
        ops::all_close::all_close(out, &left.tensor(OP)?, &right.tensor(OP)?, tolerance)
    })
}

/// Sizes, strides, dilations and padding of windows, one for each axis.
pub type WindowOptions = (Axes, Axes, Axes, Vec<(isize, isize)>);

pub fn window_elements<'a>(
    call: Call<'a>,
    shape: Dims,
    (sizes, strides, dilations, padding): WindowOptions,
    input: Operand<'a>,
    pad: Operand<'a>,
) -> Term<'a> {
    const OP: &str = "window_reduce";
    let dtype = input.dtype();
    let work = work(&shape.0, ops::window_elements::cost(dtype));
    call.tensor(work, OP, dtype, &shape.0, |out| {
        let windows = window_elements::Windows {
            sizes: &sizes,
            strides: &strides,
            dilations: &dilations,
            padding: &padding,
        };
        ops::window_elements::window_elements(out, &input.tensor(OP)?, &pad.tensor(OP)?, windows)
    })
}

/// Elements of operands, given their types and sizes, and of those that have another type
/// than the result.
fn read(dtype: DType, operands: [(DType, usize); 2]) -> [usize; 2] {
    operands.into_iter().fold([0, 0], |[all, converted], (own, size)| {
        let other = if own == dtype { 0 } else { size };
        [usize::saturating_add(all, size), usize::saturating_add(converted, other)]
    })
}

fn extent(operand: &Operand<'_>) -> (DType, usize) {
    (operand.dtype(), operand.size())
}

#[inline(always)]
#[allow(clippy::too_many_arguments)] // each is quicker to decode than what has several
pub fn dot<'a>(
    call: Call<'a>,
    dtype: Type,
    shape: Dims,
    left: Operand<'a>,
    left_contract: Axes,
    left_batch: Axes,
    right: Operand<'a>,
    right_contract: Axes,
    right_batch: Axes,
) -> Term<'a> {
    const OP: &str = "dot";
    let operands = [&left, &right].map(|operand| (operand.dtype(), operand.shape()));
    let work = ops::dot::work(dtype.0, operands, &left_contract, &left_batch);
    call.tensor(work, OP, dtype.0, &shape.0, |out| {
        let (left, right) = (left.tensor(OP)?, right.tensor(OP)?);
        let left = Side { tensor: &left, contract: &left_contract, batch: &left_batch };
        ops::dot::dot(out, left, Side { tensor: &right, contract: &right_contract, batch: &right_batch })
    })
}

/// `dot` of `batches` of dense matrices of `m` by `k` and of `k` by `n`, which most products are: a
/// side of the result's type is its data, another `{type, data}`.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // each is quicker to decode than what has several
pub fn matmul<'a>(
    call: Call<'a>,
    dtype: Type,
    batches: usize,
    m: usize,
    k: usize,
    n: usize,
    left: Term<'a>,
    right: Term<'a>,
) -> NifResult<Term<'a>> {
    const OP: &str = "dot";
    let dtype = dtype.0;
    let shapes = [[batches, m, k], [batches, k, n], [batches, m, n]];
    let (left_size, right_size, result_size) = (size(&shapes[0]), size(&shapes[1]), size(&shapes[2]));
    if let Some((from_left, Source::Dense { bytes: left, .. })) =
        term::source(left, Some(dtype), 0, left_size)
        && let Some((from_right, Source::Dense { bytes: right, .. })) =
            term::source(right, Some(dtype), 0, right_size)
        && !dtype.is_packed()
    {
        let strategy = match ops::dot::strategy(dtype, [from_left, from_right], [m, k, n]) {
            Ok(strategy) => strategy,
            Err(error) => return Ok(call.error(&error)),
        };
        let work = strategy.work(batches, [from_left, from_right]);
        return Ok(call.elements(work, OP, dtype, result_size, |out| {
            ops::dot::matmul(&strategy, dtype, out, batches, [(from_left, left), (from_right, right)])
        }));
    }
    let (left, right): (Elementwise<'_>, Elementwise<'_>) = (left.decode()?, right.decode()?);
    let operands = [(left.dtype(dtype), &shapes[0][..]), (right.dtype(dtype), &shapes[1][..])];
    let work = ops::dot::work(dtype, operands, &[2], &[0]);
    Ok(call.tensor(work, OP, dtype, &shapes[2], |out| {
        let left = left.tensor(OP, dtype, &shapes[0])?;
        let right = right.tensor(OP, dtype, &shapes[1])?;
        let left = Side { tensor: &left, contract: &[2], batch: &[0] };
        ops::dot::dot(out, left, Side { tensor: &right, contract: &[1], batch: &[0] })
    }))
}

type Padding = Vec<(i64, i64)>;

/// `{window shape, padding, strides, dilations}`
pub struct Over {
    shape: Dims,
    padding: Padding,
    strides: Axes,
    dilations: Axes,
}

impl<'a> Decoder<'a> for Over {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        let (shape, padding, strides, dilations) = term.decode()?;
        Ok(Over { shape, padding, strides, dilations })
    }
}

impl Over {
    fn windows(&self) -> SlidingWindows<'_> {
        let Over { shape, padding, strides, dilations } = self;
        SlidingWindows { shape: &shape.0, padding, strides, dilations }
    }
}

pub fn window<'a>(
    call: Call<'a>,
    op: Window,
    dtype: Type,
    shape: Dims,
    over: Over,
    input: Operand<'a>,
) -> Term<'a> {
    let (name, windows) = (op.0.name(), over.windows());
    let work = ops::window::work(op.0, dtype.0, input.shape(), windows);
    call.tensor(work, name, dtype.0, &shape.0, |out| {
        ops::window::window(op.0, out, &input.tensor(name)?, windows)
    })
}

/// The result has the shape of the tensor.
pub fn window_scatter<'a>(
    call: Call<'a>,
    op: Scatter,
    dtype: Type,
    over: Over,
    input: Operand<'a>,
    source: Operand<'a>,
    init: Operand<'a>,
) -> Term<'a> {
    let (name, windows) = (op.0.name(), over.windows());
    let work = ops::window_scatter::work(op.0, input.dtype(), input.shape(), windows);
    call.tensor(work, name, dtype.0, input.shape(), |out| {
        let [input, source, init] = [&input, &source, &init].map(|operand| operand.tensor(name));
        ops::window_scatter::window_scatter(op.0, out, &input?, &source?, &init?, windows)
    })
}

/// `{strides, padding, input dilation, kernel dilation, {feature groups, batch
/// groups}, {input, kernel and output permutation}}`
pub type ConvOptions = (Axes, Padding, Axes, Axes, (usize, usize), (Axes, Axes, Axes));

pub fn conv<'a>(
    call: Call<'a>,
    dtype: Type,
    shape: Dims,
    input: Operand<'a>,
    kernel: Operand<'a>,
    (strides, padding, input_dilation, kernel_dilation, groups, permutations): ConvOptions,
) -> Term<'a> {
    const OP: &str = "conv";
    let options = Options {
        strides: &strides,
        padding: &padding,
        input_dilation: &input_dilation,
        kernel_dilation: &kernel_dilation,
        feature_groups: groups.0,
        batch_groups: groups.1,
        input_permutation: &permutations.0,
        kernel_permutation: &permutations.1,
        output_permutation: &permutations.2,
    };
    let filters = permutations.1.first().and_then(|&axis| kernel.shape().get(axis));
    let depth = kernel.size() / filters.map_or(1, |&filters| filters.max(1));
    let results = size(&shape.0);
    let work = ops::conv::work(dtype.0, results, depth, read(dtype.0, [&input, &kernel].map(extent)));
    call.tensor(work, OP, dtype.0, &shape.0, |out| {
        ops::conv::conv(out, &input.tensor(OP)?, &kernel.tensor(OP)?, options)
    })
}

/// The result has the type of the tensor.
fn rearranged<'a>(
    call: Call<'a>,
    op: &'static str,
    shape: &[usize],
    input: &Operand<'a>,
    run: impl FnOnce(Output<'_>, &Tensor<'_>) -> Result<(), Error>,
) -> Term<'a> {
    call.tensor(work(shape, cost::FAR_ELEMENT_COST), op, input.dtype(), shape, |out| {
        run(out, &input.tensor(op)?)
    })
}

pub fn transpose<'a>(call: Call<'a>, shape: Dims, axes: Axes, input: Operand<'a>) -> Term<'a> {
    rearranged(call, "transpose", &shape.0, &input, |out, input| ops::shape::transpose(out, input, &axes))
}

pub fn broadcast<'a>(call: Call<'a>, shape: Dims, axes: Axes, input: Operand<'a>) -> Term<'a> {
    rearranged(call, "broadcast", &shape.0, &input, |out, input| ops::shape::broadcast(out, input, &axes))
}

pub fn reverse<'a>(call: Call<'a>, shape: Dims, axes: Axes, input: Operand<'a>) -> Term<'a> {
    rearranged(call, "reverse", &shape.0, &input, |out, input| ops::shape::reverse(out, input, &axes))
}

pub fn slice<'a>(
    call: Call<'a>,
    shape: Dims,
    starts: Axes,
    lengths: Axes,
    strides: Axes,
    input: Operand<'a>,
) -> Term<'a> {
    rearranged(call, "slice", &shape.0, &input, |out, input| {
        ops::shape::slice(out, input, &starts, &lengths, &strides)
    })
}

/// The tensors have the type of the result.
pub fn concatenate<'a>(
    call: Call<'a>,
    dtype: Type,
    shape: Dims,
    axis: usize,
    Operands(inputs): Operands<'a>,
) -> Term<'a> {
    const OP: &str = "concatenate";
    call.tensor(work(&shape.0, ops::shape::cost(dtype.0)), OP, dtype.0, &shape.0, |out| {
        let mut tensors = Vec::with_capacity(inputs.len());
        for input in &inputs {
            tensors.push(input.tensor(OP)?);
        }
        ops::shape::concatenate(out, &tensors, axis)
    })
}

pub fn iota<'a>(call: Call<'a>, dtype: Type, shape: Dims, axis: Option<usize>) -> Term<'a> {
    let work = work(&shape.0, cost::IOTA_ELEMENT_COST);
    call.tensor(work, "iota", dtype.0, &shape.0, |out| ops::create::iota(out, axis))
}

pub fn eye<'a>(call: Call<'a>, dtype: Type, shape: Dims) -> Term<'a> {
    call.tensor(work(&shape.0, cost::IOTA_ELEMENT_COST), "eye", dtype.0, &shape.0, ops::create::eye)
}
