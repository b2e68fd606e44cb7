//! One function a family of operations: the core called on decoded terms, and
//! its result as a term.

mod indexed;

use ferrox_core::exec::elementwise::Operand as Elements;
use ferrox_core::exec::threads::parallel;
use ferrox_core::exec::threads::parallel::{Cost, Work};
use ferrox_core::ops::all_close::Tolerance;
use ferrox_core::ops::binary::BinaryOp;
use ferrox_core::ops::conv::Options;
use ferrox_core::ops::cumulative::CumulativeOp;
use ferrox_core::ops::dot::Side;
use ferrox_core::ops::plan::Direct;
use ferrox_core::ops::reduce::{Along, Few, FewSearched, ReduceOp, TieBreak};
use ferrox_core::ops::unary::UnaryOp;
use ferrox_core::ops::window::{WindowOp, Windows};
use ferrox_core::ops::window_scatter::Choice;
use ferrox_core::ops::{self, cast, window_elements};
use ferrox_core::promotion::SYSTEMS;
use ferrox_core::{DType, Error, Output, Tensor, layout};
use rustler::{Atom, Decoder, Encoder, Env, NifResult, Term};

pub use self::indexed::{
    Paddings, argsort, gather, indexed, pad, put_slice, sort, take, take_along_axis, top_k,
};
use crate::atom_table::NameTable;
use crate::entry::{Tuple, bad_argument, bytes, pair};
use crate::scheduling::Call;
use crate::term::{
    self, Axes, Dims, Elementwise, Extent, Operand, Operands, Type, elements, fits, whole_bytes,
};

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

/// The work of computing every element of a shape.
fn work(shape: &[usize], cost: Cost) -> Work {
    parallel::work(layout::size(shape).unwrap_or(usize::MAX), cost)
}

/// A few elements from operands of some types.
#[inline(always)]
fn few<'a, const N: usize>(
    call: Call<'a>,
    op: &'static str,
    direct: &Direct<N>,
    size: usize,
    dtype: DType,
    operands: [(DType, Elements<'_>); N],
) -> Option<Term<'a>> {
    if !direct.takes(size) {
        return None;
    }
    let work = parallel::work(size, direct.cost());
    call.few(work, size.checked_mul(dtype.width())?, |out| {
        let run = direct.run(size, out, operands.map(|(_, elements)| elements));
        let dtypes = || operands.iter().map(|(dtype, _)| *dtype).collect();
        run.map_err(|fault| Error::Element { op, dtypes: dtypes(), fault })
    })
}

#[inline(always)]
pub fn binary<'a>(
    call: Call<'a>,
    op: Binary,
    dtype: Type,
    shape: Extent<'a>,
    left: Term<'a>,
    right: Term<'a>,
) -> NifResult<Term<'a>> {
    if let Some((rank, size)) = shape.rank_and_size()
        && let Some(left) = elements(left, dtype.0, rank, size)
        && let Some(right) = elements(right, dtype.0, rank, size)
        && let Some(direct) = ops::binary::direct(op.0, dtype.0, [left.0, right.0])
        && let Some(answer) = few(call, op.0.name(), direct, size, dtype.0, [left, right])
    {
        return Ok(answer);
    }
    Ok(many_of_two(call, op, dtype, &shape.dims()?, left.decode()?, right.decode()?))
}

/// `binary` of operands of the result's shape, in the type that Nx gives the result, and that type:
/// `{type, data}`. On few elements asking for the type takes as long as the operation.
#[inline(always)]
pub fn merged<'a>(
    call: Call<'a>,
    op: Binary,
    shape: Extent<'a>,
    left_type: Term<'a>,
    left: Term<'a>,
    right_type: Term<'a>,
    right: Term<'a>,
) -> NifResult<Term<'a>> {
    let types = (term::dtype(left_type), term::dtype(right_type));
    let ((Some(left_dtype), Some(right_dtype)), Some(left), Some(right)) = (types, bytes(left), bytes(right))
    else {
        return Err(rustler::Error::BadArg);
    };
    // The default system is Nx's.
    let Ok(merged) = SYSTEMS[0].merge(left_dtype, right_dtype) else {
        return Err(rustler::Error::BadArg);
    };
    let dtype = op.0.result(merged);
    let data = if let Some((_, size)) = shape.rank_and_size()
        && let Some(few_left) = fits(left_dtype, size, left)
        && let Some(few_right) = fits(right_dtype, size, right)
        && let Some(direct) = ops::binary::direct(op.0, dtype, [left_dtype, right_dtype])
        && let operands = [(left_dtype, Elements::Slice(few_left)), (right_dtype, Elements::Slice(few_right))]
        && let Some(answer) = few(call, op.0.name(), direct, size, dtype, operands)
    {
        answer
    } else {
        let left = Elementwise::Typed(left_dtype, left);
        let right = Elementwise::Typed(right_dtype, right);
        many_of_two(call, op, Type(dtype), &shape.dims()?, left, right)
    };
    if !data.is_binary() {
        return Ok(data);
    }
    // An operand's own term is there already.
    let term = if dtype == left_dtype {
        left_type
    } else if dtype == right_dtype {
        right_type
    } else {
        Type(dtype).encode(data.get_env())
    };
    Ok(pair(term, data))
}

#[inline(never)]
fn many_of_two<'a>(
    call: Call<'a>,
    op: Binary,
    dtype: Type,
    shape: &[usize],
    left: Elementwise<'a>,
    right: Elementwise<'a>,
) -> Term<'a> {
    let (name, dtype) = (op.0.name(), dtype.0);
    let work = work(shape, ops::binary::cost(op.0, dtype, [left.dtype(dtype), right.dtype(dtype)]));
    call.tensor(work, name, dtype, shape, |out| {
        let (left, right) = (left.tensor(name, dtype, shape)?, right.tensor(name, dtype, shape)?);
        ops::binary::binary(op.0, out, &left, &right)
    })
}

#[inline(always)]
pub fn unary<'a>(
    call: Call<'a>,
    op: Unary,
    dtype: Type,
    shape: Extent<'a>,
    input: Term<'a>,
) -> NifResult<Term<'a>> {
    if let Some((rank, size)) = shape.rank_and_size()
        && let Some(input) = elements(input, dtype.0, rank, size)
        && let Some(direct) = ops::unary::direct(op.0, dtype.0, input.0)
        && let Some(answer) = few(call, op.0.name(), direct, size, dtype.0, [input])
    {
        return Ok(answer);
    }
    Ok(many_of_one(call, op, dtype, &shape.dims()?, input.decode()?))
}

#[inline(never)]
fn many_of_one<'a>(
    call: Call<'a>,
    op: Unary,
    dtype: Type,
    shape: &[usize],
    input: Elementwise<'a>,
) -> Term<'a> {
    let (name, dtype) = (op.0.name(), dtype.0);
    let work = work(shape, ops::unary::cost(op.0, dtype, input.dtype(dtype)));
    call.tensor(work, name, dtype, shape, |out| {
        ops::unary::unary(op.0, out, &input.tensor(name, dtype, shape)?)
    })
}

#[inline(always)]
pub fn as_type<'a>(call: Call<'a>, dtype: Type, shape: Extent<'a>, input: Term<'a>) -> NifResult<Term<'a>> {
    if let Some((rank, size)) = shape.rank_and_size()
        && let Some((from, Elements::Slice(input))) = elements(input, dtype.0, rank, size)
        && let Some(convert) = cast::direct(from, dtype.0)
        && let Some(length) = size.checked_mul(dtype.0.width())
        && let work = parallel::work(size, cast::cost(from, dtype.0))
        && let Some(answer) = call.few(work, length, |out| {
            convert(input, out);
            Ok(())
        })
    {
        return Ok(answer);
    }
    Ok(many_as_type(call, dtype, &shape.dims()?, input.decode()?))
}

#[inline(never)]
fn many_as_type<'a>(call: Call<'a>, dtype: Type, shape: &[usize], input: Elementwise<'a>) -> Term<'a> {
    const OP: &str = "as_type";
    let dtype = dtype.0;
    let work = work(shape, cast::cost(input.dtype(dtype), dtype));
    call.tensor(work, OP, dtype, shape, |out| cast::as_type(out, &input.tensor(OP, dtype, shape)?))
}

/// Of `[before, reduced, after]` elements those of the middle axis, as most reductions are: what
/// there is of shapes and axes takes longer to decode than few elements to reduce.
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
    let bytes = whole_bytes(data)?;
    let along = Along { before, reduced, after };
    if let Some(few) = Few::new(op.0, dtype.0, from.0, bytes, along)
        && let Some(answer) = call.at_once(few.results() * dtype.0.width(), |out| few.run(out))
    {
        return Ok(answer);
    }
    Ok(reduce_many(call, op, dtype, &[before, after], &[1], Operand::along(from.0, along, bytes)))
}

pub fn reduce_axes<'a>(
    call: Call<'a>,
    op: Reduce,
    dtype: Type,
    shape: Dims,
    axes: Axes,
    input: Operand<'a>,
) -> Term<'a> {
    reduce_many(call, op, dtype, &shape.0, &axes, input)
}

#[inline(never)]
fn reduce_many<'a>(
    call: Call<'a>,
    op: Reduce,
    dtype: Type,
    shape: &[usize],
    axes: &[usize],
    input: Operand<'a>,
) -> Term<'a> {
    let name = op.0.name();
    let work = work(input.shape(), ops::reduce::cost(input.dtype()));
    call.tensor(work, name, dtype.0, shape, |out| ops::reduce::reduce(op.0, out, &input.tensor(name)?, axes))
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
    let bytes = whole_bytes(data)?;
    let along = Along { before, reduced, after };
    let tie_break = if high { TieBreak::High } else { TieBreak::Low };
    if let Some(few) = FewSearched::new(op.0, dtype.0, from.0, bytes, along, tie_break)
        && let Some(answer) = call.at_once(few.results() * dtype.0.width(), |out| few.run(out))
    {
        return Ok(answer);
    }
    Ok(search_many(call, op, dtype, &[before, after], tie_break, Operand::along(from.0, along, bytes)))
}

#[inline(never)]
fn search_many<'a>(
    call: Call<'a>,
    op: Reduce,
    dtype: Type,
    shape: &[usize],
    tie_break: TieBreak,
    input: Operand<'a>,
) -> Term<'a> {
    let name = if op.0 == ReduceOp::ReduceMin { "argmin" } else { "argmax" };
    let work = ops::reduce::arg_work(input.dtype(), input.size(), layout::size(shape).unwrap_or(usize::MAX));
    call.tensor(work, name, dtype.0, shape, |out| {
        ops::reduce::arg_reduce(op.0, out, &input.tensor(name)?, Some(1), tie_break)
    })
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

/// `{tensor, axes to sum over, axes of the batch}`
pub struct DotSide<'a> {
    operand: Operand<'a>,
    contract: Axes,
    batch: Axes,
}

impl<'a> Decoder<'a> for DotSide<'a> {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        let [operand, contract, batch] = Tuple::of(term).and_then(Tuple::array).ok_or_else(bad_argument)?;
        Ok(DotSide { operand: operand.decode()?, contract: contract.decode()?, batch: batch.decode()? })
    }
}

impl DotSide<'_> {
    /// How many elements some axes have together.
    fn along(&self, axes: &[usize]) -> usize {
        axes.iter().filter_map(|&axis| self.operand.shape().get(axis)).product()
    }
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

pub fn dot<'a>(call: Call<'a>, dtype: Type, shape: Dims, left: DotSide<'a>, right: DotSide<'a>) -> Term<'a> {
    const OP: &str = "dot";
    let elements = layout::size(&shape.0).unwrap_or(usize::MAX);
    let read = read(dtype.0, [&left.operand, &right.operand].map(extent));
    let work = ops::dot::work(dtype.0, elements, left.along(&left.contract), read, left.along(&left.batch));
    call.tensor(work, OP, dtype.0, &shape.0, |out| {
        let tensors = [left.operand.tensor(OP)?, right.operand.tensor(OP)?];
        let left = Side { tensor: &tensors[0], contract: &left.contract, batch: &left.batch };
        let right = Side { tensor: &tensors[1], contract: &right.contract, batch: &right.batch };
        ops::dot::dot(out, left, right)
    })
}

/// `batches` of matrices of `m` by `k`, and of `k` by `n`.
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
    if let (Some(left), Some(right)) = (bytes(left), bytes(right))
        && let Some(few) = ops::dot::Few::new(dtype.0, batches, [m, k, n], left, right)
        && let Some(answer) = call.at_once(few.results() * dtype.0.width(), |out| few.run(out))
    {
        return Ok(answer);
    }
    let shapes = [[batches, m, k], [batches, k, n], [batches, m, n]];
    Ok(matmul_many(call, dtype, &shapes, left.decode()?, right.decode()?))
}

#[inline(never)]
fn matmul_many<'a>(
    call: Call<'a>,
    dtype: Type,
    shapes: &[[usize; 3]; 3],
    left: Elementwise<'a>,
    right: Elementwise<'a>,
) -> Term<'a> {
    const OP: &str = "dot";
    let [left_size, right_size, elements] = shapes.map(|shape| layout::size(&shape).unwrap_or(usize::MAX));
    let read = read(dtype.0, [(left.dtype(dtype.0), left_size), (right.dtype(dtype.0), right_size)]);
    let [batches, _, k] = shapes[0];
    let work = ops::dot::work(dtype.0, elements, k, read, batches);
    call.tensor(work, OP, dtype.0, &shapes[2], |out| {
        let left = left.tensor(OP, dtype.0, &shapes[0])?;
        ops::dot::matmul(out, &left, &right.tensor(OP, dtype.0, &shapes[1])?)
    })
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
    fn windows(&self) -> Windows<'_> {
        let Over { shape, padding, strides, dilations } = self;
        Windows { shape: &shape.0, padding, strides, dilations }
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
    let results = layout::size(&shape.0).unwrap_or(usize::MAX);
    let work = ops::conv::work(dtype.0, results, depth, read(dtype.0, [&input, &kernel].map(extent)));
    call.tensor(work, OP, dtype.0, &shape.0, |out| {
        ops::conv::conv(out, &input.tensor(OP)?, &kernel.tensor(OP)?, options)
    })
}

/// `select` and `clip`.
fn ternary<'a>(
    call: Call<'a>,
    (op, cost): (&'static str, Cost),
    (dtype, shape): (Type, Dims),
    operands: [Elementwise<'a>; 3],
    run: fn(Output<'_>, &Tensor<'_>, &Tensor<'_>, &Tensor<'_>) -> Result<(), Error>,
) -> Term<'a> {
    let (dtype, shape) = (dtype.0, &shape.0);
    call.tensor(work(shape, cost), op, dtype, shape, |out| {
        let [a, b, c] = operands.each_ref().map(|operand| operand.tensor(op, dtype, shape));
        run(out, &a?, &b?, &c?)
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
    let op = ("select", ops::ternary::select_cost(dtype.0));
    ternary(call, op, (dtype, shape), [predicate, on_true, on_false], ops::ternary::select)
}

pub fn clip<'a>(
    call: Call<'a>,
    dtype: Type,
    shape: Dims,
    input: Elementwise<'a>,
    min: Elementwise<'a>,
    max: Elementwise<'a>,
) -> Term<'a> {
    ternary(call, ("clip", ops::ternary::CLIP_COST), (dtype, shape), [input, min, max], ops::ternary::clip)
}

/// The result has the type of the tensor.
fn rearranged<'a>(
    call: Call<'a>,
    op: &'static str,
    shape: &[usize],
    input: &Operand<'a>,
    run: impl FnOnce(Output<'_>, &Tensor<'_>) -> Result<(), Error>,
) -> Term<'a> {
    call.tensor(work(shape, ops::shape::FAR_COST), op, input.dtype(), shape, |out| {
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
    let work = work(&shape.0, ops::create::COST);
    call.tensor(work, "iota", dtype.0, &shape.0, |out| ops::create::iota(out, axis))
}

pub fn eye<'a>(call: Call<'a>, dtype: Type, shape: Dims) -> Term<'a> {
    call.tensor(work(&shape.0, ops::create::COST), "eye", dtype.0, &shape.0, ops::create::eye)
}

/// Panics, for the test that a panic reaches Elixir as an exception.
pub fn panic<'a>(_call: Call<'a>, message: String) -> Term<'a> {
    std::panic::panic_any(message)
}
