//! One function a family of operations: the core called on decoded terms, and
//! its result as a term.

mod indexed;

use ferrox_core::cost::{self, Cost, Work};
use ferrox_core::exec::convert;
use ferrox_core::exec::elementwise::{Plan, Source};
use ferrox_core::exec::threads::parallel;
use ferrox_core::ops::all_close::Tolerance;
use ferrox_core::ops::binary::BinaryOp;
use ferrox_core::ops::conv::Options;
use ferrox_core::ops::cumulative::CumulativeOp;
use ferrox_core::ops::dot::Side;
use ferrox_core::ops::reduce::{ReduceOp, ReductionSizes, TieBreak};
use ferrox_core::ops::unary::UnaryOp;
use ferrox_core::ops::window::{SlidingWindows, WindowOp};
use ferrox_core::ops::window_scatter::Choice;
use ferrox_core::ops::{self, cast, window_elements};
use ferrox_core::promotion::SYSTEMS;
use ferrox_core::{DType, Error, Output, Tensor, layout};
use rustler::{Atom, Decoder, Encoder, Env, NifResult, Term};

pub use self::indexed::{
    Paddings, argsort, gather, indexed, pad, put_slice, sort, take, take_along_axis, top_k,
};
use crate::atom_table::NameTable;
use crate::entry::{bad_argument, pair};
use crate::scheduling::Call;
use crate::term::{self, Axes, Dims, Elementwise, Operand, Operands, Type, whole_bytes};

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

/// The type of a result: given, or to be found by Nx's promotion of the operands' types.
#[derive(Clone, Copy)]
pub enum ResultType {
    Given(DType),
    Merged,
}

impl<'a> Decoder<'a> for ResultType {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        match term::dtype(term) {
            Some(dtype) => Ok(ResultType::Given(dtype)),
            None if term.is_atom() => Ok(ResultType::Merged),
            None => Err(bad_argument()),
        }
    }
}

impl ResultType {
    fn given(self) -> Option<DType> {
        match self {
            ResultType::Given(dtype) => Some(dtype),
            ResultType::Merged => None,
        }
    }

    /// The type for operands of some types.
    #[inline(always)]
    fn of(self, op: BinaryOp, left: DType, right: DType) -> Option<DType> {
        match self {
            ResultType::Given(dtype) => Some(dtype),
            // The default system is Nx's.
            ResultType::Merged => SYSTEMS[0].merge(left, right).ok().map(|merged| op.result(merged)),
        }
    }

    /// What is answered: the data, and where the type was to be found `{type, data}`.
    #[inline(always)]
    fn answer(self, dtype: DType, data: Term<'_>) -> Term<'_> {
        match self {
            ResultType::Merged if data.is_binary() => pair(Type(dtype).encode(data.get_env()), data),
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
    if let Some((rank, size)) = term::rank_and_size(shape)
        && let Some(left) = term::source(left, result.given(), rank, size)
        && let Some(right) = term::source(right, result.given(), rank, size)
        && let Some(dtype) = result.of(op.0, left.0, right.0)
        && !dtype.is_packed()
    {
        let op = op.0;
        let plan = match ops::binary::plan(op, dtype, [left.0, right.0]) {
            Ok(plan) => plan,
            Err(error) => return Ok(call.error(&error)),
        };
        let data = call.elements(cost::work(size, plan.cost), op.name(), dtype, size, |out| {
            ops::binary::run(op, plan, (dtype, &[size]), out, [left, right])
        });
        return Ok(result.answer(dtype, data));
    }
    binary_of_tensors(call, op, result, shape, left, right)
}

#[inline(never)]
fn binary_of_tensors<'a>(
    call: Call<'a>,
    op: Binary,
    result: ResultType,
    shape: Term<'a>,
    left: Term<'a>,
    right: Term<'a>,
) -> NifResult<Term<'a>> {
    let (op, name) = (op.0, op.0.name());
    let Dims(shape) = shape.decode()?;
    let (left, right): (Elementwise<'_>, Elementwise<'_>) = (left.decode()?, right.decode()?);
    let own = |operand: &Elementwise<'_>| operand.own_dtype().or(result.given()).ok_or_else(bad_argument);
    let dtypes = [own(&left)?, own(&right)?];
    let dtype = result.of(op, dtypes[0], dtypes[1]).ok_or_else(bad_argument)?;
    let plan = match ops::binary::plan(op, dtype, dtypes) {
        Ok(plan) => plan,
        Err(error) => return Ok(call.error(&error)),
    };
    let data = call.tensor(work(&shape, plan.cost), name, dtype, &shape, |out| {
        let (left, right) = (left.tensor(name, dtype, &shape)?, right.tensor(name, dtype, &shape)?);
        ops::binary::binary(op, out, &left, &right)
    });
    Ok(result.answer(dtype, data))
}

#[inline(always)]
pub fn unary<'a>(
    call: Call<'a>,
    op: Unary,
    dtype: Type,
    shape: Term<'a>,
    input: Term<'a>,
) -> NifResult<Term<'a>> {
    let (op, name, dtype) = (op.0, op.0.name(), dtype.0);
    if let Some((rank, size)) = term::rank_and_size(shape)
        && let Some((from, input @ Source::Dense { .. })) = term::source(input, Some(dtype), rank, size)
        && !dtype.is_packed()
    {
        return Ok(match ops::unary::plan(op, dtype, from) {
            Ok(plan) => call.elements(cost::work(size, plan.cost), name, dtype, size, |out| {
                ops::unary::run(op, plan, (dtype, &[size]), out, (from, input))
            }),
            Err(error) => call.error(&error),
        });
    }
    let (Dims(shape), input): (Dims, Elementwise<'_>) = (shape.decode()?, input.decode()?);
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

/// Reduces the middle axis of `[before, reduced, after]` elements, which most reductions are: shapes
/// and axes take longer to decode than few elements to reduce.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // each is quicker to decode than what has several
pub fn reduce<'a>(
    call: Call<'a>,
    op: Reduce,
    dtype: Type,
    before: usize,
    reduced: usize,
    after: usize,
    from: Type,
    data: Term<'a>,
) -> NifResult<Term<'a>> {
    let (op, dtype, from, data) = (op.0, dtype.0, from.0, whole_bytes(data)?);
    let shape = [before, reduced, after];
    let work = work(&shape, ops::reduce::cost(from));
    if !dtype.is_packed() && term::dense(from, size(&shape), data).is_some() {
        let along = ReductionSizes { before, reduced, after };
        return Ok(call.elements(work, op.name(), dtype, before * after, |out| {
            ops::reduce::reduce_dense(op, (from, data), along, dtype, out)
        }));
    }
    Ok(call.tensor(work, op.name(), dtype, &[before, after], |out| {
        ops::reduce::reduce(op, out, &Tensor::new(op.name(), from, &shape, data)?, &[1])
    }))
}

pub fn reduce_axes<'a>(
    call: Call<'a>,
    op: Reduce,
    dtype: Type,
    shape: Dims,
    axes: Axes,
    input: Operand<'a>,
) -> Term<'a> {
    let name = op.0.name();
    let work = work(input.shape(), ops::reduce::cost(input.dtype()));
    call.tensor(work, name, dtype.0, &shape.0, |out| {
        ops::reduce::reduce(op.0, out, &input.tensor(name)?, &axes)
    })
}

/// As `reduce`; an axis, or all of them, is always in the middle.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // as above
pub fn arg_reduce<'a>(
    call: Call<'a>,
    op: Reduce,
    dtype: Type,
    before: usize,
    reduced: usize,
    after: usize,
    high: bool,
    from: Type,
    data: Term<'a>,
) -> NifResult<Term<'a>> {
    let (op, dtype, from, data) = (op.0, dtype.0, from.0, whole_bytes(data)?);
    let tie_break = if high { TieBreak::High } else { TieBreak::Low };
    let (name, shape) = (ops::reduce::arg_name(op), [before, reduced, after]);
    let work = ops::reduce::arg_work(from, size(&shape), size(&[before, after]));
    if !dtype.is_packed() && term::dense(from, size(&shape), data).is_some() {
        let along = ReductionSizes { before, reduced, after };
        return Ok(call.elements(work, name, dtype, before * after, |out| {
            ops::reduce::arg_reduce_dense(op, (from, data), along, tie_break, dtype, out)
        }));
    }
    Ok(call.tensor(work, name, dtype, &[before, after], |out| {
        let input = Tensor::new(name, from, &shape, data)?;
        ops::reduce::arg_reduce(op, out, &input, Some(1), tie_break)
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
    call.tensor(work(shape, ops::shape::FAR_ELEMENT_COST), op, input.dtype(), shape, |out| {
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
