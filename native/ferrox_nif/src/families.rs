//! The NIFs of tensor operations, one family each: the core called on decoded terms.

mod indexed;

use ferrox_core::cost::{self, Cost, Work, axes_work};
use ferrox_core::exec::convert;
use ferrox_core::exec::elementwise::{Plan, Source};
use ferrox_core::exec::threads::parallel;
use ferrox_core::graph;
use ferrox_core::layout::{self, Shape};
use ferrox_core::ops::all_close::Tolerance;
use ferrox_core::ops::binary::BinaryOp;
use ferrox_core::ops::conv::Options;
use ferrox_core::ops::cumulative::CumulativeOp;
use ferrox_core::ops::dot::Side;
use ferrox_core::ops::math::Math;
use ferrox_core::ops::reduce::{ReduceOp, ReductionSizes, TieBreak};
use ferrox_core::ops::result_type::{Operation, Resolved};
use ferrox_core::ops::unary::UnaryOp;
use ferrox_core::ops::window::{SlidingWindows, WindowOp};
use ferrox_core::ops::window_elements::Windows;
use ferrox_core::ops::window_scatter::Choice;
use ferrox_core::ops::{self, cast};
use ferrox_core::promotion::{Mode, Node};
use ferrox_core::{DType, Error, Output, Tensor, tensor};
use rustler::{Atom, Decoder, Encoder, Env, NifResult, Term};

use crate::atom_table::AtomTable;
use crate::entry::bad_argument;
use crate::scheduling::{Call, Failure, family};
use crate::term::{Axes, Dims, Elementwise, List, Operand, Type, elements, push, rank_and_size};
use crate::{promotion, term};

/// Runs when the VM loads the library. `options` are the number of threads, or zero for one per core,
/// whether compiled functions get machine code, and the most bytes of a result, zero for any number.
pub fn load(env: Env<'_>, options: Term<'_>) -> bool {
    let Ok((threads, machine_code, max_bytes)) = options.decode::<(usize, bool, usize)>() else {
        return false;
    };
    parallel::set_threads(threads);
    tensor::set_max_result_bytes(if max_bytes == 0 { usize::MAX } else { max_bytes });
    graph::set_machine_code(machine_code);
    term::load(env) && promotion::load(env) && load_names(env) && OTHERS.fill_named(env, OTHER_OPERATIONS)
}

/// The arguments that name an operation.
macro_rules! named_operations {
    ($($Argument:ident($Op:ty), $TABLE:ident;)*) => {
        $(
            static $TABLE: AtomTable<$Op> = AtomTable::new();

            /// The operation that an argument names.
            pub struct $Argument(pub $Op);

            impl<'a> Decoder<'a> for $Argument {
                #[inline(always)]
                fn decode(term: Term<'a>) -> NifResult<Self> {
                    $TABLE.find([term, term]).map($Argument).ok_or_else(bad_argument)
                }
            }
        )*

        fn load_names(env: Env<'_>) -> bool {
            true $(&& $TABLE.fill_named(env, <$Op>::ALL.iter().map(|&op| (op.name(), op))))*
        }
    };
}
named_operations! {
    Binary(BinaryOp), BINARY;
    Unary(UnaryOp), UNARY;
    Reduce(ReduceOp), REDUCE;
    Window(WindowOp), WINDOW;
    Scatter(Choice), SCATTER;
    Cumulative(CumulativeOp), CUMULATIVE;
}

/// The names of the binary, unary, reducing and cumulative operations.
#[rustler::nif]
fn operations(env: Env) -> NifResult<Vec<Vec<Atom>>> {
    fn atoms<T: Copy>(env: Env, all: &[T], name: fn(T) -> &'static str) -> NifResult<Vec<Atom>> {
        all.iter().map(|&op| Atom::from_str(env, name(op))).collect()
    }
    Ok(vec![
        atoms(env, BinaryOp::ALL, BinaryOp::name)?,
        atoms(env, UnaryOp::ALL, UnaryOp::name)?,
        atoms(env, ReduceOp::ALL, ReduceOp::name)?,
        atoms(env, CumulativeOp::ALL, CumulativeOp::name)?,
    ])
}

/// The operations that are in none of the tables above, as far as the types of their results are
/// concerned.
static OTHERS: AtomTable<Operation> = AtomTable::new();

const OTHER_OPERATIONS: [(&str, Operation); 8] = [
    ("mean", Operation::Mean),
    ("argmax", Operation::ArgReduce),
    ("argmin", Operation::ArgReduce),
    ("dot", Operation::Dot),
    ("clip", Operation::Clip),
    ("select", Operation::Join),
    ("concatenate", Operation::Join),
    ("stack", Operation::Join),
];

/// The operation with a name, as far as the type of its result is concerned.
pub fn operation(name: Term) -> NifResult<Operation> {
    let key = [name, name];
    None.or_else(|| BINARY.find(key).map(Operation::Binary))
        .or_else(|| UNARY.find(key).map(Operation::Unary))
        .or_else(|| REDUCE.find(key).map(Operation::Reduce))
        .or_else(|| OTHERS.find(key))
        .ok_or_else(bad_argument)
}

/// The number of elements of a shape.
#[inline]
pub fn size(shape: &[usize]) -> usize {
    layout::size(shape).unwrap_or(usize::MAX)
}

/// The work of computing every element of a shape.
#[inline]
fn work(shape: &[usize], cost: Cost) -> Work {
    cost::work(size(shape), cost)
}

/// The type that the rules of Nx give the result of an operation on operands that have the type `merged`
/// together.
#[inline(always)]
fn nx_type(operation: Operation, merged: DType) -> Result<DType, Failure> {
    match operation.of(Mode::nx(), merged.into()) {
        Some(Resolved { result: Node::Type(dtype), .. }) => Ok(dtype),
        _ => Err(Failure::BadArgument),
    }
}

/// The answer where the rules of Nx give the type: the data, or `{type, data}` if the type is not the
/// given one.
#[inline(always)]
fn nx_answer(dtype: DType, given: DType, data: Term<'_>) -> Term<'_> {
    if dtype == given || !data.is_binary() { data } else { (Type(dtype), data).encode(data.get_env()) }
}

// Most operands of elementwise operations have the layout of the result, or are numbers. They are
// passed to the core as sources; other operands as tensors, which the core broadcasts.

family!(binary, |call, op: Binary, dtype: Type, shape: Term, left: Elementwise, right: Elementwise| {
    binary_of(call.named(op.0.name()), op.0, dtype.0, dtype.0, shape, left, right)
});

// `binary` in the type that the rules of Nx give. Operands without a type have the given one; one operand
// may be a number.
family!(nx_binary, |call, op: Binary, given: Type, shape: Term, left: Term, right: Term| {
    let (op, call, given) = (op.0, call.named(op.0.name()), given.0);
    let (Ok(left), Ok(right)) = (left.decode::<Elementwise>(), right.decode::<Elementwise>()) else {
        return nx_binary_with_number(call, op, given, shape, left, right);
    };
    let (left_dtype, right_dtype) = (left.dtype(given), right.dtype(given));
    let merged = if left_dtype == right_dtype {
        left_dtype
    } else {
        let Ok(Node::Type(merged)) = Mode::nx().merge(left_dtype.into(), right_dtype.into()) else {
            return Err(Failure::BadArgument);
        };
        merged
    };
    let dtype = nx_type(Operation::Binary(op), merged)?;
    Ok(nx_answer(dtype, given, binary_of(call, op, dtype, given, shape, left, right)?))
});

/// A binary operation with a result of type `dtype`. Operands without a type have the given one.
#[inline(always)]
fn binary_of<'a>(
    call: Call<'a>,
    op: BinaryOp,
    dtype: DType,
    given: DType,
    shape: Term<'a>,
    left: Elementwise<'a>,
    right: Elementwise<'a>,
) -> Result<Term<'a>, Failure> {
    if !dtype.is_packed()
        && let Some((rank, size)) = rank_and_size(shape)
        && let Some(left) = left.source(Some(given), rank, size)
        && let Some(right) = right.source(Some(given), rank, size)
    {
        return binary_of_sources(call, op, dtype, size, [left, right]);
    }
    binary_of_tensors(call, op, dtype, given, shape, left, right)
}

#[inline(always)]
fn binary_of_sources<'a>(
    call: Call<'a>,
    op: BinaryOp,
    dtype: DType,
    size: usize,
    operands: [(DType, Source<'_>); 2],
) -> Result<Term<'a>, Failure> {
    let plan = ops::binary::plan(op, dtype, [operands[0].0, operands[1].0])?;
    call.elements(cost::work(size, plan.cost), dtype, size, |out| {
        ops::binary::run(op, plan, (dtype, &[size]), out, operands)
    })
}

#[inline(never)]
fn binary_of_tensors<'a>(
    call: Call<'a>,
    op: BinaryOp,
    dtype: DType,
    given: DType,
    shape: Term<'a>,
    left: Elementwise<'a>,
    right: Elementwise<'a>,
) -> Result<Term<'a>, Failure> {
    let Dims(shape) = shape.decode()?;
    let (left, right) = (left.operand(given, &shape)?, right.operand(given, &shape)?);
    let plan = ops::binary::plan(op, dtype, [left.dtype(), right.dtype()])?;
    let has_short_rows = ops::shape::has_short_rows(&shape);
    let is_gathered =
        |operand: &Operand<'_>| has_short_rows && operand.shape() != &*shape && operand.size() != 1;
    let operands = [&left, &right].into_iter().filter(|operand| is_gathered(operand)).count() as Cost;
    let cost = plan.cost.saturating_add(operands * cost::SHORT_ROW_ELEMENT_COST);
    call.tensor(work(&shape, cost), dtype, &shape, |out| {
        ops::binary::run_tensors(op, plan, out, &left.tensor(call.op)?, &right.tensor(call.op)?)
    })
}

/// `nx_binary` of a tensor of the given type and a number, on either side.
#[inline(never)]
fn nx_binary_with_number<'a>(
    call: Call<'a>,
    op: BinaryOp,
    given: DType,
    shape: Term<'a>,
    left: Term<'a>,
    right: Term<'a>,
) -> Result<Term<'a>, Failure> {
    let size = rank_and_size(shape).ok_or(Failure::BadArgument)?.1;
    let (tensor, number, is_left) = match left.decode::<Elementwise>() {
        Ok(tensor) => (tensor, right, false),
        Err(_) => (right.decode::<Elementwise>()?, left, true),
    };
    if tensor.dtype(given) != given {
        return Err(Failure::BadArgument);
    }
    let mut element = [0; 8];
    let (merged, number) = promotion::nx_number(given, number, &mut element).ok_or(Failure::BadArgument)?;
    let Some(bytes) = tensor.dense(given, size) else {
        let Dims(shape) = shape.decode()?;
        tensor.operand(given, &shape)?.tensor(call.op)?;
        return Err(Failure::BadArgument);
    };
    let tensor = (given, Source::Dense { bytes, width: given.width() });
    let operands = if is_left { [number, tensor] } else { [tensor, number] };
    let dtype = nx_type(Operation::Binary(op), merged)?;
    Ok(nx_answer(dtype, given, binary_of_sources(call, op, dtype, size, operands)?))
}

family!(unary, |call, op: Unary, dtype: Type, shape: Term, input: Elementwise| {
    unary_of(call.named(op.0.name()), op.0, dtype.0, dtype.0, shape, input)
});

// `unary` of the given type, in the type that the rules of Nx give.
family!(nx_unary, |call, op: Unary, given: Type, shape: Term, input: Elementwise| {
    let (op, call, given) = (op.0, call.named(op.0.name()), given.0);
    let dtype = nx_type(Operation::Unary(op), given)?;
    Ok(nx_answer(dtype, given, unary_of(call, op, dtype, given, shape, input)?))
});

/// A unary operation with a result of type `dtype`. An operand without a type has the given one.
#[inline(always)]
fn unary_of<'a>(
    call: Call<'a>,
    op: UnaryOp,
    dtype: DType,
    given: DType,
    shape: Term<'a>,
    input: Elementwise<'a>,
) -> Result<Term<'a>, Failure> {
    let from = input.dtype(given);
    let plan = ops::unary::plan(op, Math::Exact, dtype, from)?;
    if !dtype.is_packed()
        && let Some((_, size)) = rank_and_size(shape)
        && let Some(bytes) = input.dense(from, size)
    {
        let input = Source::Dense { bytes, width: from.width() };
        return call.elements(cost::work(size, plan.cost), dtype, size, |out| {
            ops::unary::run(op, plan, (dtype, &[size]), out, (from, input))
        });
    }
    let Dims(shape) = shape.decode()?;
    let input = input.operand(given, &shape)?;
    call.tensor(work(&shape, plan.cost), dtype, &shape, |out| {
        ops::unary::run_tensor(op, plan, out, &input.tensor(call.op)?)
    })
}

family!(as_type, |call, dtype: Type, shape: Term, input: Elementwise| {
    let (dtype, from) = (dtype.0, input.dtype(dtype.0));
    let cost = convert::cost(from, dtype);
    if !dtype.is_packed()
        && let Some((_, size)) = rank_and_size(shape)
        && let Some(bytes) = input.dense(from, size)
    {
        return call.elements(cost::work(size, cost), dtype, size, |out| {
            convert::convert_all(from, bytes, dtype, size, out);
            Ok(())
        });
    }
    let Dims(shape) = shape.decode()?;
    let input = input.operand(dtype, &shape)?;
    call.tensor(work(&shape, cost), dtype, &shape, |out| cast::as_type(out, &input.tensor(call.op)?))
});

/// An operation on three operands, computed by the plan that `plan` returns for their types.
#[inline(always)]
fn ternary<'a>(
    call: Call<'a>,
    dtype: DType,
    shape: &[usize],
    operands: [Elementwise<'_>; 3],
    plan: impl FnOnce(DType, [DType; 3]) -> Result<Plan, Error>,
) -> Result<Term<'a>, Failure> {
    let [a, b, c] = &operands;
    let (a, b, c) = (a.operand(dtype, shape)?, b.operand(dtype, shape)?, c.operand(dtype, shape)?);
    let plan = plan(dtype, [a.dtype(), b.dtype(), c.dtype()])?;
    call.tensor(work(shape, plan.cost), dtype, shape, |out| {
        plan.run(call.op, out, &[&a.tensor(call.op)?, &b.tensor(call.op)?, &c.tensor(call.op)?])
    })
}

family!(select, |call,
                 dtype: Type,
                 shape: Dims,
                 predicate: Elementwise,
                 on_true: Elementwise,
                 on_false: Elementwise| {
    let plan = |dtype, dtypes| Ok(ops::ternary::select_plan(dtype, dtypes));
    ternary(call, dtype.0, &shape.0, [predicate, on_true, on_false], plan)
});

family!(clip, |call, dtype: Type, shape: Dims, input: Elementwise, min: Elementwise, max: Elementwise| {
    ternary(call, dtype.0, &shape.0, [input, min, max], ops::ternary::clip_plan)
});

// The axes of a reduction are a list, or `nil` for all axes. Most are adjacent: a few elements are
// reduced sooner than their shape is decoded into a tensor's.
family!(reduce, |call, op: Reduce, dtype: Type, axes: Term, input: Term| {
    let (from, sizes, data) = term::reduction(input, axes)?;
    reduce_of(call.named(op.0.name()), op.0, dtype.0, (from, sizes, data), axes, input)
});

// `reduce` in the type that the rules of Nx give; the given type is that of the input.
family!(nx_reduce, |call, op: Reduce, axes: Term, input: Term| {
    let (from, sizes, data) = term::reduction(input, axes)?;
    let dtype = nx_type(Operation::Reduce(op.0), from)?;
    let data = reduce_of(call.named(op.0.name()), op.0, dtype, (from, sizes, data), axes, input)?;
    Ok(nx_answer(dtype, from, data))
});

#[inline(always)]
fn reduce_of<'a>(
    call: Call<'a>,
    op: ReduceOp,
    dtype: DType,
    (from, sizes, data): (DType, Option<ReductionSizes>, &[u8]),
    axes: Term<'a>,
    input: Term<'a>,
) -> Result<Term<'a>, Failure> {
    if let Some(sizes) = sizes
        && !dtype.is_packed()
    {
        let work = ops::reduce::work(from, sizes.size(), sizes.results());
        return call.elements(work, dtype, sizes.results(), |out| {
            ops::reduce::reduce_dense(op, (from, data), sizes, dtype, out)
        });
    }
    let (input, axes): (Operand, Option<Axes>) = (input.decode()?, axes.decode()?);
    let rank = input.shape().len();
    let axes: Shape = axes.map_or_else(|| (0..rank).collect(), |axes| Shape::from_slice(&axes));
    let kept = layout::other_axes(rank, &axes);
    let shape: Shape = kept.iter().map(|&axis| input.shape()[axis]).collect();
    let work =
        ops::reduce::work_of_view(op, from, input.shape(), &axes).saturating_add(axes_work(input.shape()));
    call.tensor(work, dtype, &shape, |out| ops::reduce::reduce(op, out, &input.tensor(call.op)?, &axes))
}

// The axis is `nil` for the search among all elements.
family!(arg_reduce, |call, op: Reduce, dtype: Type, axis: Term, high: bool, input: Term| {
    let (op, call, dtype) = (op.0, call.named(ops::reduce::arg_name(op.0)), dtype.0);
    let tie_break = if high { TieBreak::High } else { TieBreak::Low };
    let (from, sizes, data) = term::reduction(input, axis)?;
    if let Some(sizes) = sizes
        && !dtype.is_packed()
    {
        let work = ops::reduce::arg_work(from, sizes.size(), sizes.results());
        return call.elements(work, dtype, sizes.results(), |out| {
            ops::reduce::arg_reduce_dense(op, (from, data), sizes, tie_break, dtype, out)
        });
    }
    let (input, axis): (Operand, Option<usize>) = (input.decode()?, axis.decode()?);
    let mut shape = Shape::from_slice(input.shape());
    match axis.and_then(|axis| shape.get_mut(axis)) {
        Some(size) => *size = 1,
        None => shape.fill(1),
    }
    let work = ops::reduce::arg_work(from, input.size(), size(&shape));
    call.tensor(work, dtype, &shape, |out| {
        ops::reduce::arg_reduce(op, out, &input.tensor(call.op)?, axis, tie_break)
    })
});

family!(cumulative, |call, op: Cumulative, axis: usize, reverse: bool, input: Operand| {
    let (op, call) = (op.0, call.named(op.0.name()));
    let work = work(input.shape(), ops::cumulative::cost(input.dtype()));
    call.tensor(work, input.dtype(), input.shape(), |out| {
        ops::cumulative::cumulative(op, out, &input.tensor(call.op)?, axis, reverse)
    })
});

/// The relative and the absolute tolerance, and whether NaN equals NaN.
type Tolerances = (f64, f64, bool);

family!(all_close, |call, shape: Dims, tolerances: Tolerances, left: Operand, right: Operand| {
    let (relative, absolute, equal_nan) = tolerances;
    let work = ops::all_close::work([left.dtype(), right.dtype()], left.shape(), right.shape())
        .saturating_add(axes_work(left.shape()))
        .saturating_add(axes_work(right.shape()));
    call.tensor(work, DType::U8, &shape.0, |out| {
        let tolerance = Tolerance { relative, absolute, equal_nan };
        ops::all_close::all_close(out, &left.tensor(call.op)?, &right.tensor(call.op)?, tolerance)
    })
});

family!(dot, |call,
              dtype: Type,
              shape: Dims,
              left: Operand,
              left_contract: Axes,
              left_batch: Axes,
              right: Operand,
              right_contract: Axes,
              right_batch: Axes| {
    let operands = [&left, &right].map(|operand| (operand.dtype(), operand.shape()));
    let work = ops::dot::work(dtype.0, operands, &left_contract, &left_batch)
        .saturating_add(axes_work(left.shape()))
        .saturating_add(axes_work(right.shape()));
    call.tensor(work, dtype.0, &shape.0, |out| {
        let (left, right) = (left.tensor(call.op)?, right.tensor(call.op)?);
        let left = Side { tensor: &left, contract: &left_contract, batch: &left_batch };
        ops::dot::dot(out, left, Side { tensor: &right, contract: &right_contract, batch: &right_batch })
    })
});

// The `dot` of `batches` of dense matrices, `m` by `k` and `k` by `n`, which most products are.
family!(matmul, |call,
                 dtype: Type,
                 batches: usize,
                 m: usize,
                 k: usize,
                 n: usize,
                 left: Elementwise,
                 right: Elementwise| {
    let (call, dtype) = (call.named("dot"), dtype.0);
    let (left_dtype, right_dtype) = (left.dtype(dtype), right.dtype(dtype));
    let [left_shape, right_shape, shape] = [[batches, m, k], [batches, k, n], [batches, m, n]];
    let strategy = ops::dot::strategy(dtype, [left_dtype, right_dtype], [m, k, n])?;
    let work = strategy.work(batches, [left_dtype, right_dtype]);
    if !dtype.is_packed()
        && let Some(left) = left.dense(left_dtype, size(&left_shape))
        && let Some(right) = right.dense(right_dtype, size(&right_shape))
    {
        return call.elements(work, dtype, size(&shape), |out| {
            ops::dot::matmul(&strategy, dtype, out, batches, [(left_dtype, left), (right_dtype, right)])
        });
    }
    let (left, right) = (left.operand(dtype, &left_shape)?, right.operand(dtype, &right_shape)?);
    call.tensor(work, dtype, &shape, |out| {
        let (left, right) = (left.tensor(call.op)?, right.tensor(call.op)?);
        let left = Side { tensor: &left, contract: &[2], batch: &[0] };
        ops::dot::dot(out, left, Side { tensor: &right, contract: &[1], batch: &[0] })
    })
});

type Padding = List<(i64, i64)>;

/// The shape, padding, strides and dilations of windows.
type Over = (Dims, Padding, Axes, Axes);

fn sliding((shape, padding, strides, dilations): &Over) -> SlidingWindows<'_> {
    SlidingWindows { shape: &shape.0, padding, strides, dilations }
}

family!(window, |call, op: Window, dtype: Type, shape: Dims, over: Over, input: Operand| {
    let (op, call, windows) = (op.0, call.named(op.0.name()), sliding(&over));
    let work = ops::window::work(op, dtype.0, input.shape(), windows);
    call.tensor(work, dtype.0, &shape.0, |out| ops::window::window(op, out, &input.tensor(call.op)?, windows))
});

family!(window_scatter, |call,
                         op: Scatter,
                         dtype: Type,
                         over: Over,
                         input: Operand,
                         source: Operand,
                         init: Operand| {
    let (op, call, windows) = (op.0, call.named(op.0.name()), sliding(&over));
    let work = ops::window_scatter::work(op, input.dtype(), input.shape(), windows);
    call.tensor(work, dtype.0, input.shape(), |out| {
        let [input, source, init] = [&input, &source, &init].map(|operand| operand.tensor(call.op));
        ops::window_scatter::window_scatter(op, out, &input?, &source?, &init?, windows)
    })
});

/// The sizes, strides, dilations and padding of windows, one for each axis.
type WindowOptions = (Axes, Axes, Axes, List<(isize, isize)>);

family!(window_elements, |call, shape: Dims, windows: WindowOptions, input: Operand, pad: Operand| {
    let (call, (sizes, strides, dilations, padding)) = (call.named("window_reduce"), &windows);
    let work = ops::window_elements::work(input.dtype(), &shape.0);
    call.tensor(work, input.dtype(), &shape.0, |out| {
        let windows = Windows { sizes, strides, dilations, padding };
        ops::window_elements::window_elements(out, &input.tensor(call.op)?, &pad.tensor(call.op)?, windows)
    })
});

/// `{strides, padding, input dilation, kernel dilation, {feature groups, batch groups}, {input,
/// kernel and output permutation}}`
type ConvOptions = (Axes, Padding, Axes, Axes, (usize, usize), (Axes, Axes, Axes));

family!(conv, |call, dtype: Type, shape: Dims, input: Operand, kernel: Operand, options: ConvOptions| {
    let (strides, padding, input_dilation, kernel_dilation, groups, permutations) = &options;
    let options = Options {
        strides,
        padding,
        input_dilation,
        kernel_dilation,
        feature_groups: groups.0,
        batch_groups: groups.1,
        input_permutation: &permutations.0,
        kernel_permutation: &permutations.1,
        output_permutation: &permutations.2,
    };
    let operands = [&input, &kernel].map(|operand| (operand.dtype(), operand.shape()));
    let [of_input, of_kernel] = [options.input_permutation, options.kernel_permutation];
    let work = ops::conv::work((dtype.0, &shape.0), operands, of_input, of_kernel);
    call.tensor(work, dtype.0, &shape.0, |out| {
        ops::conv::conv(out, &input.tensor(call.op)?, &kernel.tensor(call.op)?, options)
    })
});

/// Moves elements. The result has the type of the tensor.
fn rearranged<'a>(
    call: Call<'a>,
    shape: &[usize],
    input: &Operand<'_>,
    run: impl FnOnce(Output<'_>, &Tensor<'_>) -> Result<(), Error>,
) -> Result<Term<'a>, Failure> {
    call.tensor(ops::shape::rearrange_work(shape), input.dtype(), shape, |out| {
        run(out, &input.tensor(call.op)?)
    })
}

family!(transpose, |call, shape: Dims, axes: Axes, input: Operand| {
    rearranged(call, &shape.0, &input, |out, input| ops::shape::transpose(out, input, &axes))
});

family!(broadcast, |call, shape: Dims, axes: Axes, input: Operand| {
    rearranged(call, &shape.0, &input, |out, input| ops::shape::broadcast(out, input, &axes))
});

family!(reverse, |call, shape: Dims, axes: Axes, input: Operand| {
    rearranged(call, &shape.0, &input, |out, input| ops::shape::reverse(out, input, &axes))
});

family!(slice, |call, shape: Dims, starts: Axes, lengths: Axes, strides: Axes, input: Operand| {
    rearranged(call, &shape.0, &input, |out, input| {
        ops::shape::slice(out, input, &starts, &lengths, &strides)
    })
});

// The inputs have the type of the result.
family!(concatenate, |call, dtype: Type, shape: Dims, axis: usize, inputs: Term| {
    let mut operands = Vec::new();
    for input in elements(inputs) {
        push(&mut operands, input?.decode::<Operand>()?)?;
        // Decoding many operands is long work too.
        if call.is_too_long(ops::shape::tensors_work(operands.len())) {
            return Ok(call.dirty());
        }
    }
    let work = ops::shape::concatenate_work(dtype.0, &shape.0, axis, operands.len());
    call.tensor(work, dtype.0, &shape.0, |out| {
        let error = |_| Error::TooLarge { op: call.op, dtype: dtype.0, shape: shape.0.to_vec() };
        let mut tensors = Vec::new();
        tensors.try_reserve_exact(operands.len()).map_err(error)?;
        for operand in operands.iter() {
            tensors.push(operand.tensor(call.op)?);
        }
        ops::shape::concatenate(out, &tensors, axis)
    })
});

type Axis = Option<usize>;

family!(iota, |call, dtype: Type, shape: Dims, axis: Axis| {
    call.tensor(work(&shape.0, cost::IOTA_ELEMENT_COST), dtype.0, &shape.0, |out| {
        ops::create::iota(out, axis)
    })
});

family!(eye, |call, dtype: Type, shape: Dims| {
    call.tensor(ops::create::eye_work(&shape.0), dtype.0, &shape.0, ops::create::eye)
});
