//! The NIFs: each family twice, for the normal and for the dirty CPU schedulers.
//! The first answers `:dirty` where the work is too long for it.

use rustler::{Atom, Env, NifResult, Term};

use crate::entry::nif;
use crate::families::{
    self, Binary, ConvOptions, Cumulative, Over, Paddings, Reduce, ResultType, Scatter, Tolerances, Unary,
    Window, WindowOptions,
};
use crate::linalg::{self, Factorization, FourierTransform, Solver};
use crate::scheduling::{Call, Scheduler};
use crate::term::{Axes, Dims, Elementwise, Operand, Operands, Type};

type Lengths = Vec<(usize, usize)>;
type Results = Vec<(Type, Dims)>;
type Axis = Option<usize>;

macro_rules! nifs {
    ($module:ident: $(fn $name:ident, $normal:ident, $dirty:ident($($arg:ident: $type:ty),*);)*) => {$(
        nif!($normal, Normal, |env, $($arg: $type),*| {
            $module::$name(Call::new(env, Scheduler::Normal), $($arg),*)
        });
        nif!($dirty, DirtyCpu, |env, $($arg: $type),*| {
            $module::$name(Call::new(env, Scheduler::Dirty), $($arg),*)
        });
    )*};
}

nifs! { families:
    fn binary, binary_normal, binary_dirty(op: Binary, result: ResultType, shape: Term<'_>, left: Term<'_>, right: Term<'_>);
    fn unary, unary_normal, unary_dirty(op: Unary, result: ResultType, shape: Term<'_>, input: Term<'_>);
    fn as_type, as_type_normal, as_type_dirty(dtype: Type, shape: Term<'_>, input: Term<'_>);
    fn reduce, reduce_normal, reduce_dirty(op: Reduce, result: ResultType, axes: Term<'_>, input: Term<'_>);
    fn arg_reduce, arg_reduce_normal, arg_reduce_dirty(op: Reduce, dtype: Type, axis: Term<'_>, high: bool, input: Term<'_>);
    fn dot, dot_normal, dot_dirty(dtype: Type, shape: Dims, left: Operand<'_>, left_contract: Axes, left_batch: Axes, right: Operand<'_>, right_contract: Axes, right_batch: Axes);
    fn matmul, matmul_normal, matmul_dirty(dtype: Type, batches: usize, m: usize, k: usize, n: usize, left: Term<'_>, right: Term<'_>);
    fn window, window_normal, window_dirty(op: Window, dtype: Type, shape: Dims, over: Over, input: Operand<'_>);
    fn window_scatter, window_scatter_normal, window_scatter_dirty(op: Scatter, dtype: Type, over: Over, input: Operand<'_>, source: Operand<'_>, init: Operand<'_>);
    fn conv, conv_normal, conv_dirty(dtype: Type, shape: Dims, input: Operand<'_>, kernel: Operand<'_>, options: ConvOptions);
    fn select, select_normal, select_dirty(dtype: Type, shape: Dims, predicate: Elementwise<'_>, on_true: Elementwise<'_>, on_false: Elementwise<'_>);
    fn clip, clip_normal, clip_dirty(dtype: Type, shape: Dims, input: Elementwise<'_>, min: Elementwise<'_>, max: Elementwise<'_>);
    fn transpose, transpose_normal, transpose_dirty(shape: Dims, axes: Axes, input: Operand<'_>);
    fn broadcast, broadcast_normal, broadcast_dirty(shape: Dims, axes: Axes, input: Operand<'_>);
    fn reverse, reverse_normal, reverse_dirty(shape: Dims, axes: Axes, input: Operand<'_>);
    fn slice, slice_normal, slice_dirty(shape: Dims, starts: Axes, lengths: Axes, strides: Axes, input: Operand<'_>);
    fn concatenate, concatenate_normal, concatenate_dirty(dtype: Type, shape: Dims, axis: usize, inputs: Operands<'_>);
    fn iota, iota_normal, iota_dirty(dtype: Type, shape: Dims, axis: Axis);
    fn eye, eye_normal, eye_dirty(dtype: Type, shape: Dims);
    fn pad, pad_normal, pad_dirty(dtype: Type, shape: Dims, paddings: Paddings, input: Operand<'_>, value: Operand<'_>);
    fn sort, sort_normal, sort_dirty(axis: usize, descending: bool, input: Operand<'_>);
    fn argsort, argsort_normal, argsort_dirty(dtype: Type, axis: usize, descending: bool, input: Operand<'_>);
    fn top_k, top_k_normal, top_k_dirty(dtype: Type, shape: Dims, input: Operand<'_>);
    fn gather, gather_normal, gather_dirty(shape: Dims, axes: Axes, input: Operand<'_>, indices: Operand<'_>);
    fn take, take_normal, take_dirty(shape: Dims, axis: usize, input: Operand<'_>, indices: Operand<'_>);
    fn take_along_axis, take_along_axis_normal, take_along_axis_dirty(axis: usize, input: Operand<'_>, indices: Operand<'_>);
    fn indexed, indexed_normal, indexed_dirty(add: bool, dtype: Type, axes: Axes, target: Operand<'_>, indices: Operand<'_>, updates: Operand<'_>);
    fn put_slice, put_slice_normal, put_slice_dirty(dtype: Type, starts: Axes, input: Operand<'_>, slice: Operand<'_>);
    fn cumulative, cumulative_normal, cumulative_dirty(op: Cumulative, axis: usize, reverse: bool, input: Operand<'_>);
    fn all_close, all_close_normal, all_close_dirty(shape: Dims, tolerances: Tolerances, left: Operand<'_>, right: Operand<'_>);
    fn window_elements, window_elements_normal, window_elements_dirty(shape: Dims, windows: WindowOptions, input: Operand<'_>, pad: Operand<'_>);
}

nifs! { linalg:
    fn fourier, fourier_normal, fourier_dirty(transform: FourierTransform, dtype: Type, shape: Dims, axes: Lengths, eps: f64, input: Operand<'_>);
    fn solve, solve_normal, solve_dirty(solver: Solver, dtype: Type, a: Operand<'_>, b: Operand<'_>);
    fn factor, factor_normal, factor_dirty(op: Factorization, results: Results, eps: f64, input: Operand<'_>);
}

/// The names of the binary, unary, reducing and cumulative operations.
#[rustler::nif]
fn operations(env: Env) -> NifResult<Vec<Vec<Atom>>> {
    families::operations(env)
}

/// Does nothing, for measuring what a call costs.
#[rustler::nif]
fn empty() -> bool {
    true
}
