//! Programs as terms, which `Ferrox.Defn.Lower` makes.

use ferrox_core::graph::source::{Branch, Clause, Operand, Place, Region, ReverseLoop, Slot, Step, Target};
use ferrox_core::graph::{ConvOptions, Operation, Start, WindowOptions};
use ferrox_core::layout::Shape;
use ferrox_core::ops::all_close::Tolerance;
use ferrox_core::ops::indexed::Update;
use ferrox_core::ops::math::Math;
use ferrox_core::ops::pad::Padding;
use ferrox_core::ops::reduce::TieBreak;
use ferrox_core::ops::sort::Direction;
use rustler::{NifResult, Term};

use crate::entry::{Tuple, bad_argument, bytes, no_memory};
use crate::families::{Binary, Cumulative, Reduce, Scatter, Unary, Window};
use crate::linalg::{Solver, factorization, solver, transform};
use crate::term::{Axes, Dims, List, Type, list};

/// The maximum number of branches inside of each other, which the stack of a scheduler limits: 320 KB.
/// `Ferrox.Defn.Lower` has it as `@max_depth`.
const MAX_DEPTH: usize = 32;

/// The regions and literals of `{regions, literals}`.
pub fn program(term: Term<'_>) -> NifResult<(Vec<Region>, Vec<Vec<u8>>)> {
    let [regions, literals] = tuple(term)?;
    Ok((list(regions, region)?, list(literals, literal)?))
}

fn tuple<const N: usize>(term: Term<'_>) -> NifResult<[Term<'_>; N]> {
    Tuple::of(term).and_then(Tuple::array).ok_or_else(bad_argument)
}

fn literal(term: Term<'_>) -> NifResult<Vec<u8>> {
    let bytes = bytes(term).ok_or_else(bad_argument)?;
    let mut literal = Vec::new();
    literal.try_reserve_exact(bytes.len()).map_err(|_| no_memory())?;
    literal.extend_from_slice(bytes);
    Ok(literal)
}

fn shape(term: Term<'_>) -> NifResult<Shape> {
    Ok(term.decode::<Dims>()?.0)
}

fn axes(term: Term<'_>) -> NifResult<Shape> {
    Ok(Shape::from_slice(&term.decode::<Axes>()?))
}

fn region(term: Term<'_>) -> NifResult<Region> {
    let [parameters, slots, code, results] = tuple(term)?;
    let parameter = |term| {
        let [dtype, dims] = tuple(term)?;
        Ok((dtype.decode::<Type>()?.0, shape(dims)?))
    };
    Ok(Region {
        parameters: list(parameters, parameter)?,
        slots: slots.decode()?,
        steps: steps(code, 0)?,
        results: list(results, operand)?,
    })
}

/// A slot is its number, a literal -1 less its number.
fn place(term: Term<'_>) -> NifResult<Place> {
    let number: i64 = term.decode()?;
    let place = usize::try_from(number).map(Place::Slot);
    place.or_else(|_| usize::try_from(-1 - number).map(Place::Literal)).map_err(|_| bad_argument())
}

fn operand(term: Term<'_>) -> NifResult<Operand> {
    let [at, dtype, dims] = tuple(term)?;
    Ok(Operand { place: place(at)?, dtype: dtype.decode::<Type>()?.0, shape: shape(dims)? })
}

fn target(term: Term<'_>) -> NifResult<Target> {
    let [slot, dtype, dims] = tuple(term)?;
    Ok(Target { slot: slot.decode()?, dtype: dtype.decode::<Type>()?.0, shape: shape(dims)? })
}

fn slots(term: Term<'_>) -> NifResult<Vec<Slot>> {
    list(term, |slot| slot.decode())
}

fn steps(term: Term<'_>, depth: usize) -> NifResult<Vec<Step>> {
    if depth > MAX_DEPTH {
        return Err(bad_argument());
    }
    list(term, |term| step(term, depth))
}

fn branch(code: Term<'_>, results: Term<'_>, depth: usize) -> NifResult<Branch> {
    Ok(Branch { steps: steps(code, depth + 1)?, results: list(results, operand)? })
}

fn step(term: Term<'_>, depth: usize) -> NifResult<Step> {
    let (name, arguments) = named(term)?;
    match (&name[..], &arguments[..]) {
        ("run", &[operation_term, inputs, outputs]) => Ok(Step::Operation {
            operation: operation(operation_term)?,
            inputs: list(inputs, operand)?,
            outputs: list(outputs, target)?,
        }),
        ("cond", &[clauses, otherwise, outputs]) => {
            let clause = |term| {
                let [code, predicate, body, results] = tuple(term)?;
                let steps = steps(code, depth + 1)?;
                Ok(Clause { steps, predicate: operand(predicate)?, branch: branch(body, results, depth)? })
            };
            let [code, results] = tuple(otherwise)?;
            let otherwise = branch(code, results, depth)?;
            Ok(Step::Cond { clauses: list(clauses, clause)?, otherwise, outputs: slots(outputs)? })
        }
        ("unless", &[slot, code]) => {
            Ok(Step::Unless { computed: slot.decode()?, steps: steps(code, depth + 1)? })
        }
        ("while", &[condition, body, initial, outputs]) => Ok(Step::While {
            condition: condition.decode()?,
            body: body.decode()?,
            initial: list(initial, operand)?,
            outputs: slots(outputs)?,
        }),
        ("reverse_loop", &[forward, backward, trips, initial, gradients, invariants, outputs]) => {
            Ok(Step::ReverseLoop(Box::new(ReverseLoop {
                forward: forward.decode()?,
                backward: backward.decode()?,
                trips: operand(trips)?,
                initial: list(initial, operand)?,
                gradients: list(gradients, operand)?,
                invariants: list(invariants, operand)?,
                outputs: slots(outputs)?,
            })))
        }
        ("fold", &[body, input, initial, output]) => Ok(Step::Fold {
            body: body.decode()?,
            input: operand(input)?,
            initial: operand(initial)?,
            output: target(output)?,
        }),
        ("call", &[callback, inputs, outputs]) => Ok(Step::Call {
            callback: callback.decode()?,
            inputs: list(inputs, operand)?,
            outputs: list(outputs, target)?,
        }),
        _ => Err(bad_argument()),
    }
}

/// The name that a tuple begins with, and its other elements.
fn named(term: Term<'_>) -> NifResult<(String, Vec<Term<'_>>)> {
    let mut terms = Tuple::of(term).ok_or_else(bad_argument)?.terms();
    let name = terms.next().ok_or_else(bad_argument)?.atom_to_string()?;
    Ok((name, terms.collect()))
}

fn direction(descending: Term<'_>) -> NifResult<Direction> {
    Ok(if descending.decode()? { Direction::Descending } else { Direction::Ascending })
}

/// A start of a slice: a number, or the number of an operand as `{:input, number}`.
fn start(term: Term<'_>) -> NifResult<Start> {
    if let Ok(number) = term.decode() {
        return Ok(Start::At(number));
    }
    let [_, index] = tuple(term)?;
    Ok(Start::Input(index.decode()?))
}

fn windows(term: Term<'_>) -> NifResult<WindowOptions> {
    let [sizes, padding, strides, dilations] = tuple(term)?;
    Ok(WindowOptions {
        sizes: shape(sizes)?,
        padding: padding.decode::<List<_>>()?.0,
        strides: axes(strides)?,
        dilations: axes(dilations)?,
    })
}

fn conv(term: Term<'_>) -> NifResult<ConvOptions> {
    let [strides, padding, input_dilation, kernel_dilation, groups, permutations] = tuple(term)?;
    let ([features, batches], [input, kernel, output]) = (tuple(groups)?, tuple(permutations)?);
    Ok(ConvOptions {
        strides: axes(strides)?,
        padding: padding.decode::<List<_>>()?.0,
        input_dilation: axes(input_dilation)?,
        kernel_dilation: axes(kernel_dilation)?,
        groups: [features.decode()?, batches.decode()?],
        permutations: [axes(input)?, axes(kernel)?, axes(output)?],
    })
}

/// An operation: its name with its options.
fn operation(term: Term<'_>) -> NifResult<Operation> {
    let (name, options) = named(term)?;
    Ok(match (&name[..], &options[..]) {
        ("binary", &[op]) => Operation::Binary(op.decode::<Binary>()?.0),
        ("unary", &[op]) => Operation::Unary(op.decode::<Unary>()?.0, Math::Exact),
        ("fast_unary", &[op]) => Operation::Unary(op.decode::<Unary>()?.0, Math::Fast),
        ("as_type", &[]) => Operation::AsType,
        ("select", &[]) => Operation::Select,
        ("clip", &[]) => Operation::Clip,
        ("transpose", &[list]) => Operation::Transpose(axes(list)?),
        ("broadcast", &[list]) => Operation::Broadcast(axes(list)?),
        ("reverse", &[list]) => Operation::Reverse(axes(list)?),
        ("slice", &[starts, lengths, strides]) => Operation::Slice {
            starts: list(starts, start)?,
            lengths: axes(lengths)?,
            strides: axes(strides)?,
        },
        ("put_slice", &[starts]) => Operation::PutSlice(list(starts, start)?),
        ("concatenate", &[axis]) => Operation::Concatenate(axis.decode()?),
        ("iota", &[axis]) => Operation::Iota(axis.decode()?),
        ("eye", &[]) => Operation::Eye,
        ("pad", &[paddings]) => Operation::Pad(list(paddings, |term| {
            let (low, high, interior) = term.decode()?;
            Ok(Padding { low, high, interior })
        })?),
        ("reduce", &[op, list]) => Operation::Reduce(op.decode::<Reduce>()?.0, axes(list)?),
        ("arg_reduce", &[op, axis, high]) => {
            let tie_break = if high.decode()? { TieBreak::High } else { TieBreak::Low };
            Operation::ArgReduce(op.decode::<Reduce>()?.0, axis.decode()?, tie_break)
        }
        ("cumulative", &[op, axis, reverse]) => {
            Operation::Cumulative(op.decode::<Cumulative>()?.0, axis.decode()?, reverse.decode()?)
        }
        ("all_close", &[relative, absolute, equal_nan]) => Operation::AllClose(Tolerance {
            relative: relative.decode()?,
            absolute: absolute.decode()?,
            equal_nan: equal_nan.decode()?,
        }),
        ("dot", &[left, left_batch, right, right_batch]) => Operation::Dot {
            contract: [axes(left)?, axes(right)?],
            batch: [axes(left_batch)?, axes(right_batch)?],
        },
        ("conv", &[options]) => Operation::Conv(Box::new(conv(options)?)),
        ("window", &[op, over]) => Operation::Window(op.decode::<Window>()?.0, windows(over)?),
        ("window_scatter", &[op, over]) => {
            Operation::WindowScatter(op.decode::<Scatter>()?.0, windows(over)?)
        }
        ("window_elements", &[over]) => Operation::WindowElements(windows(over)?),
        ("sort", &[axis, descending]) => Operation::Sort(axis.decode()?, direction(descending)?),
        ("argsort", &[axis, descending]) => Operation::Argsort(axis.decode()?, direction(descending)?),
        ("top_k", &[]) => Operation::TopK,
        ("gather", &[list]) => Operation::Gather(axes(list)?),
        ("take", &[axis]) => Operation::Take(axis.decode()?),
        ("take_along_axis", &[axis]) => Operation::TakeAlongAxis(axis.decode()?),
        ("indexed_add", &[list]) => Operation::Indexed(Update::Add, axes(list)?),
        ("indexed_put", &[list]) => Operation::Indexed(Update::Put, axes(list)?),
        ("fourier", &[name, lengths, eps]) => Operation::Fourier {
            transform: transform(name.decode()?)?,
            axes: lengths.decode::<List<_>>()?.0,
            eps: eps.decode()?,
        },
        ("solve", &[how]) => match solver(how)? {
            Solver::General(method) => Operation::Solve(method),
            Solver::Triangular(triangular) => Operation::TriangularSolve(triangular),
        },
        ("factor", &[name, eps]) => {
            let (_, problem, algorithm) = factorization(name.decode()?)?;
            Operation::Factor { problem, algorithm, eps: eps.decode()? }
        }
        _ => return Err(bad_argument()),
    })
}
