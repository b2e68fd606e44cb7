//! One function a family of operations: the core called on decoded terms, and
//! its result as a term.

use std::sync::OnceLock;

use ferrox_core::exec::parallel;
use ferrox_core::ops::binary::BinaryOp;
use ferrox_core::ops::dot::Side;
use ferrox_core::ops::reduce::{ReduceOp, TieBreak};
use ferrox_core::ops::unary::UnaryOp;
use ferrox_core::ops::{self, cast};
use ferrox_core::{Error, Output, Tensor};
use rustler::{Atom, Decoder, Env, NifResult, Term};

use crate::term::{Dims, Elementwise, Operand, Type, result};

/// Runs when the VM loads the library; `threads` is zero for one a core.
pub fn load(env: Env<'_>, threads: Term<'_>) -> bool {
    let Ok(threads) = threads.decode::<usize>() else { return false };
    parallel::set_threads(threads);
    BINARY.fill(env) && UNARY.fill(env) && REDUCE.fill(env)
}

/// Operations by the atoms of their names.
struct Names<T: 'static> {
    all: &'static [T],
    name: fn(T) -> &'static str,
    atoms: OnceLock<Vec<Atom>>,
}

impl<T: Copy> Names<T> {
    const fn new(all: &'static [T], name: fn(T) -> &'static str) -> Self {
        Names { all, name, atoms: OnceLock::new() }
    }

    fn fill(&self, env: Env<'_>) -> bool {
        let atoms: Result<Vec<Atom>, _> =
            self.all.iter().map(|&op| Atom::from_str(env, (self.name)(op))).collect();
        // Loading again, as an upgrade does, finds the same atoms.
        atoms.is_ok_and(|atoms| self.atoms.get_or_init(|| atoms).len() == self.all.len())
    }

    fn decode(&self, term: Term<'_>) -> NifResult<T> {
        let name: Atom = term.decode()?;
        let index = self.atoms.get().and_then(|atoms| atoms.iter().position(|&atom| atom == name));
        index.map(|index| self.all[index]).ok_or(rustler::Error::BadArg)
    }
}

static BINARY: Names<BinaryOp> = Names::new(BinaryOp::ALL, BinaryOp::name);
static UNARY: Names<UnaryOp> = Names::new(UnaryOp::ALL, UnaryOp::name);
static REDUCE: Names<ReduceOp> = Names::new(ReduceOp::ALL, ReduceOp::name);

/// The names of the operations, one list a family that has several.
pub fn operations() -> Vec<Vec<Atom>> {
    [BINARY.atoms.get(), UNARY.atoms.get(), REDUCE.atoms.get()]
        .map(|names| names.cloned().unwrap_or_default())
        .into()
}

pub struct Binary(BinaryOp);

impl<'a> Decoder<'a> for Binary {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        BINARY.decode(term).map(Binary)
    }
}

pub struct Unary(UnaryOp);

impl<'a> Decoder<'a> for Unary {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        UNARY.decode(term).map(Unary)
    }
}

pub struct Reduce(ReduceOp);

impl<'a> Decoder<'a> for Reduce {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        REDUCE.decode(term).map(Reduce)
    }
}

pub fn binary<'a>(
    env: Env<'a>,
    op: Binary,
    dtype: Type,
    shape: Dims,
    left: Elementwise<'a>,
    right: Elementwise<'a>,
) -> Term<'a> {
    let (name, dtype, shape) = (op.0.name(), dtype.0, &shape.0);
    result(env, name, dtype, shape, |out| {
        let (left, right) = (left.tensor(name, dtype, shape)?, right.tensor(name, dtype, shape)?);
        ops::binary::binary(op.0, out, &left, &right)
    })
}

pub fn unary<'a>(env: Env<'a>, op: Unary, dtype: Type, input: Operand<'a>) -> Term<'a> {
    let name = op.0.name();
    result(env, name, dtype.0, input.shape(), |out| ops::unary::unary(op.0, out, &input.tensor(name)?))
}

pub fn as_type<'a>(env: Env<'a>, dtype: Type, input: Operand<'a>) -> Term<'a> {
    result(env, "as_type", dtype.0, input.shape(), |out| cast::as_type(out, &input.tensor("as_type")?))
}

pub fn reduce<'a>(
    env: Env<'a>,
    op: Reduce,
    dtype: Type,
    shape: Dims,
    axes: Vec<usize>,
    input: Operand<'a>,
) -> Term<'a> {
    let name = op.0.name();
    result(env, name, dtype.0, &shape.0, |out| ops::reduce::reduce(op.0, out, &input.tensor(name)?, &axes))
}

/// `axis` is nil for all of the tensor.
pub fn arg_reduce<'a>(
    env: Env<'a>,
    op: Reduce,
    dtype: Type,
    shape: Dims,
    axis: Option<usize>,
    high: bool,
    input: Operand<'a>,
) -> Term<'a> {
    let tie_break = if high { TieBreak::High } else { TieBreak::Low };
    result(env, "argmax", dtype.0, &shape.0, |out| {
        ops::reduce::arg_reduce(op.0, out, &input.tensor("argmax")?, axis, tie_break)
    })
}

/// `{tensor, axes to sum over, axes of the batch}`
pub type DotSide<'a> = (Operand<'a>, Vec<usize>, Vec<usize>);

pub fn dot<'a>(
    env: Env<'a>,
    dtype: Type,
    shape: Dims,
    (left, left_contract, left_batch): DotSide<'a>,
    (right, right_contract, right_batch): DotSide<'a>,
) -> Term<'a> {
    result(env, "dot", dtype.0, &shape.0, |out| {
        let (left, right) = (left.tensor("dot")?, right.tensor("dot")?);
        let left = Side { tensor: &left, contract: &left_contract, batch: &left_batch };
        let right = Side { tensor: &right, contract: &right_contract, batch: &right_batch };
        ops::dot::dot(out, left, right)
    })
}

pub fn select<'a>(
    env: Env<'a>,
    dtype: Type,
    shape: Dims,
    predicate: Elementwise<'a>,
    on_true: Elementwise<'a>,
    on_false: Elementwise<'a>,
) -> Term<'a> {
    const OP: &str = "select";
    let (dtype, shape) = (dtype.0, &shape.0);
    result(env, OP, dtype, shape, |out| {
        let (on_true, on_false) = (on_true.tensor(OP, dtype, shape)?, on_false.tensor(OP, dtype, shape)?);
        ops::ternary::select(out, &predicate.tensor(OP, dtype, shape)?, &on_true, &on_false)
    })
}

pub fn clip<'a>(
    env: Env<'a>,
    dtype: Type,
    shape: Dims,
    input: Elementwise<'a>,
    min: Elementwise<'a>,
    max: Elementwise<'a>,
) -> Term<'a> {
    const OP: &str = "clip";
    let (dtype, shape) = (dtype.0, &shape.0);
    result(env, OP, dtype, shape, |out| {
        let (min, max) = (min.tensor(OP, dtype, shape)?, max.tensor(OP, dtype, shape)?);
        ops::ternary::clip(out, &input.tensor(OP, dtype, shape)?, &min, &max)
    })
}

/// The result has the type of the tensor.
fn rearranged<'a>(
    env: Env<'a>,
    op: &'static str,
    shape: &[usize],
    input: &Operand<'a>,
    run: impl FnOnce(Output<'_>, &Tensor<'_>) -> Result<(), Error>,
) -> Term<'a> {
    result(env, op, input.dtype(), shape, |out| run(out, &input.tensor(op)?))
}

pub fn transpose<'a>(env: Env<'a>, shape: Dims, axes: Vec<usize>, input: Operand<'a>) -> Term<'a> {
    rearranged(env, "transpose", &shape.0, &input, |out, input| ops::shape::transpose(out, input, &axes))
}

pub fn broadcast<'a>(env: Env<'a>, shape: Dims, axes: Vec<usize>, input: Operand<'a>) -> Term<'a> {
    rearranged(env, "broadcast", &shape.0, &input, |out, input| ops::shape::broadcast(out, input, &axes))
}

pub fn reverse<'a>(env: Env<'a>, shape: Dims, axes: Vec<usize>, input: Operand<'a>) -> Term<'a> {
    rearranged(env, "reverse", &shape.0, &input, |out, input| ops::shape::reverse(out, input, &axes))
}

pub fn slice<'a>(
    env: Env<'a>,
    shape: Dims,
    starts: Vec<usize>,
    lengths: Vec<usize>,
    strides: Vec<usize>,
    input: Operand<'a>,
) -> Term<'a> {
    rearranged(env, "slice", &shape.0, &input, |out, input| {
        ops::shape::slice(out, input, &starts, &lengths, &strides)
    })
}

/// The tensors have the type of the result.
pub fn concatenate<'a>(
    env: Env<'a>,
    dtype: Type,
    shape: Dims,
    axis: usize,
    inputs: Vec<Operand<'a>>,
) -> Term<'a> {
    const OP: &str = "concatenate";
    result(env, OP, dtype.0, &shape.0, |out| {
        let tensors = inputs.iter().map(|input| input.tensor(OP)).collect::<Result<Vec<_>, _>>()?;
        ops::shape::concatenate(out, &tensors, axis)
    })
}

pub fn iota<'a>(env: Env<'a>, dtype: Type, shape: Dims, axis: Option<usize>) -> Term<'a> {
    result(env, "iota", dtype.0, &shape.0, |out| ops::create::iota(out, axis))
}

pub fn eye<'a>(env: Env<'a>, dtype: Type, shape: Dims) -> Term<'a> {
    result(env, "eye", dtype.0, &shape.0, ops::create::eye)
}

/// Panics, for the test that a panic reaches Elixir as an exception.
pub fn panic<'a>(_env: Env<'a>, message: String) -> Term<'a> {
    std::panic::panic_any(message)
}
