//! The NIFs of type promotion.
//!
//! They are called before every operation of the direct API. Therefore a system is an atom that is
//! looked up in a table, or `{system, options}` with the bits of the options; and errors are atoms,
//! whose messages are made in Elixir.

use ferrox_core::DType;
use ferrox_core::exec::elementwise::Source;
use ferrox_core::ops::result_type::{Operation, Undefined};
use ferrox_core::promotion::{Mode, Node, Number, PromotionOperand, Refusal, SYSTEMS, Scalars, System};
use rustler::{Atom, Encoder, Env, NifResult, Term, TermType};
use smallvec::SmallVec;

use crate::atom_table::AtomTable;
use crate::entry::{Tuple, natural, nif};
use crate::families;
use crate::scheduling::Scheduler;
use crate::term::{Type, elements, type_terms};

mod atoms {
    rustler::atoms! {
        error, mode, left, right, operand, empty, unknown, pair, alone, range, absent, array,
        bool, int, float, complex, nil, undefined, types, values, adopt, dirty
    }
}

/// The most operands that are decoded on a normal scheduler: they take a third of a millisecond.
const MAX_OPERANDS: usize = 2_000;

static SYSTEMS_BY_NAME: AtomTable<&System> = AtomTable::new();
static NODES: AtomTable<Node> = AtomTable::new();

/// Runs when the VM loads the library.
pub fn load(env: Env<'_>) -> bool {
    let types = DType::ALL.iter().map(|&dtype| (type_terms(env, dtype), Node::Type(dtype)));
    let others = [Node::Bool, Node::Int, Node::Float, Node::Complex];
    let others = others.map(|node| ([NodeTerm(node).encode(env); 2], node));
    NODES.fill(types.chain(others).map(Ok))
        && SYSTEMS_BY_NAME.fill_named(env, SYSTEMS.iter().map(|system| (system.name, system)))
}

/// The rules of a system, given its name or `{name, options}`. Returns `:mode` for an unknown one.
#[inline(always)]
fn find_mode(mode: Term<'_>) -> Result<&'static Mode, Atom> {
    let find = || match SYSTEMS_BY_NAME.find([mode, mode]) {
        Some(system) => system.mode(0),
        None => {
            let [name, options] = Tuple::of(mode)?.array()?;
            SYSTEMS_BY_NAME.find([name, name])?.mode(natural(options)?)
        }
    };
    find().ok_or_else(atoms::mode)
}

/// Decodes a node: the tuple of a type, `:bool`, or one of the weak types `:int`, `:float` and
/// `:complex`.
#[inline(always)]
fn decode_node(term: Term<'_>) -> Option<Node> {
    NODES.find(Tuple::of(term).map_or(Some([term, term]), Tuple::array)?)
}

/// A node that is encoded as `decode_node` reads it.
struct NodeTerm(Node);

impl Encoder for NodeTerm {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        match self.0 {
            Node::Type(dtype) => Type(dtype).encode(env),
            Node::Bool => atoms::bool().encode(env),
            Node::Int => atoms::int().encode(env),
            Node::Float => atoms::float().encode(env),
            Node::Complex => atoms::complex().encode(env),
        }
    }
}

/// The term of a type, or `{:error, reason}` with the reason of a refusal.
fn encode_result(env: Env<'_>, merged: Result<Node, Refusal>) -> Term<'_> {
    let reason = match merged {
        Ok(node) => return NodeTerm(node).encode(env),
        Err(Refusal::Empty) => atoms::empty().encode(env),
        Err(Refusal::Unknown(node)) => (atoms::unknown(), NodeTerm(node)).encode(env),
        Err(Refusal::Pair(..)) => atoms::pair().encode(env),
        Err(Refusal::Absent) => atoms::absent().encode(env),
        Err(Refusal::Alone(_)) => atoms::alone().encode(env),
        Err(Refusal::Range(_, node)) => (atoms::range(), NodeTerm(node)).encode(env),
    };
    (atoms::error(), reason).encode(env)
}

/// The result of a NIF, or `{:error, argument}` with the name of an invalid argument; or `:dirty`.
#[inline(always)]
fn answer<'a>(env: Env<'a>, result: Result<Term<'a>, Atom>) -> NifResult<Term<'a>> {
    Ok(result.unwrap_or_else(|argument| {
        if argument == atoms::dirty() { argument.encode(env) } else { (atoms::error(), argument).encode(env) }
    }))
}

/// Decodes a number. Terms that are not real numbers count as complex numbers: in Nx, types that
/// accept complex numbers accept any term, even `nil`. Returns `None` for integers outside of
/// -2^63..2^64-1.
fn number(term: Term) -> Option<Number> {
    match term.get_type() {
        TermType::Float => Some(Number::Float(term.decode().ok()?)),
        TermType::Integer => {
            let integer = term.decode::<i64>().map(i128::from);
            integer.or_else(|_| term.decode::<u64>().map(i128::from)).ok().map(Number::Integer)
        }
        _ => Some(Number::Complex(0.0, 0.0)),
    }
}

/// The type that Nx gives an operand of type `dtype` with a plain number, and the number as an
/// operand: in a type that keeps its value, or as an f32 if it is a float and the result has less than
/// 64 bits, as in Nx. Its element is written to `element`. Returns `None` for other terms than numbers
/// of 64 bits.
#[inline(always)]
pub fn nx_number<'a>(
    dtype: DType,
    term: Term<'_>,
    element: &'a mut [u8; 8],
) -> Option<(DType, (DType, Source<'a>))> {
    let number = number(term)?;
    let Ok(Node::Type(merged)) = Mode::nx().merge_number(dtype.into(), number) else { return None };
    let (dtype, bytes) = match number {
        Number::Complex(..) => return None,
        Number::Float(x) if merged.bits() >= 64 || x.abs() >= MAX_ROUNDED => (DType::F64, x.to_ne_bytes()),
        Number::Float(x) => (DType::F32, first_four((x as f32).to_ne_bytes())),
        Number::Integer(n) if merged == DType::F32 && n.unsigned_abs() <= 1 << f32::MANTISSA_DIGITS => {
            (DType::F32, first_four((n as f32).to_ne_bytes()))
        }
        Number::Integer(n) => match (i32::try_from(n), i64::try_from(n)) {
            (Ok(n), _) if merged == DType::S32 => (DType::S32, first_four(n.to_ne_bytes())),
            (_, Ok(n)) => (DType::S64, n.to_ne_bytes()),
            _ => (DType::U64, u64::try_from(n).ok()?.to_ne_bytes()),
        },
    };
    *element = bytes;
    Some((merged, (dtype, Source::Scalar(&element[..dtype.width()]))))
}

/// Floats from this magnitude on stay f64 beside narrower types, so that they don't become infinite.
const MAX_ROUNDED: f64 = 3.4e38;

fn first_four([a, b, c, d]: [u8; 4]) -> [u8; 8] {
    [a, b, c, d, 0, 0, 0, 0]
}

/// All systems with their options, as `[{system, [{flag, key, off, on}]}]`. The options are in the
/// order of their bits.
#[rustler::nif]
#[allow(clippy::type_complexity, reason = "read in one place, which takes it apart")]
fn promotion_systems(env: Env) -> NifResult<Vec<(Atom, Vec<(&'static str, Atom, Atom, Atom)>)>> {
    let atom = |name| Atom::from_str(env, name);
    let systems = SYSTEMS.iter().map(|system| {
        let options = system.options.iter().map(|switch| {
            let [off, on] = switch.values;
            Ok((switch.flag, atom(switch.key)?, atom(off)?, atom(on)?))
        });
        Ok((atom(system.name)?, options.collect::<NifResult<Vec<_>>>()?))
    });
    systems.collect()
}

// The types of a system.
nif!("promotion_types", Normal, |env, [mode]| {
    answer(env, find_mode(mode).map(|mode| mode.types().map(NodeTerm).collect::<Vec<_>>().encode(env)))
});

// The lattice of a system as `{edges, positions}`, or `nil` if the system is not a lattice.
nif!("promotion_lattice", Normal, |env, [mode]| {
    let nodes = |nodes: &[Node]| nodes.iter().copied().map(NodeTerm).collect::<Vec<_>>();
    let lattice = find_mode(mode).map(|mode| {
        let lattice = mode.lattice()?;
        let edges: Vec<_> = lattice.edges.iter().map(|(from, to)| (NodeTerm(*from), nodes(to))).collect();
        let positions = lattice.positions.iter().map(|&(node, x, y)| (NodeTerm(node), x, y));
        Some((edges, positions.collect::<Vec<_>>()))
    });
    answer(env, lattice.map(|lattice| lattice.encode(env)))
});

// Properties of a system: `{what tensors without axes count as, whether results may be weak, the type
// of truth values, the type of indices}`.
nif!("promotion_facts", Normal, |env, [mode]| {
    let facts = find_mode(mode).map(|mode| {
        let scalars = match mode.scalars() {
            Scalars::Types => atoms::types(),
            Scalars::Values => atoms::values(),
            Scalars::Adopt => atoms::adopt(),
        };
        (scalars, mode.keeps_weak(), NodeTerm(mode.predicate()), NodeTerm(mode.index())).encode(env)
    });
    answer(env, facts)
});

nif!("promotion_concrete", Normal, |env, [mode, node]| answer(env, concrete(mode, node)));
nif!("merge", Normal, |env, [mode, left, right]| answer(env, merge(mode, left, right)));
nif!("merge_number", Normal, |env, [mode, left, right]| answer(env, merge_number(mode, left, right)));
nif!("result_type_normal", Normal, |env, [mode, operands]| {
    answer(env, result_type(mode, operands, Scheduler::Normal))
});
nif!("result_type_dirty", DirtyCpu, |env, [mode, operands]| {
    answer(env, result_type(mode, operands, Scheduler::Dirty))
});
nif!("operation_normal", Normal, |env, [mode, op, operands]| {
    let asked = families::operation(op)?;
    answer(env, operation(mode, (asked, op), operands, Scheduler::Normal))
});
nif!("operation_dirty", DirtyCpu, |env, [mode, op, operands]| {
    let asked = families::operation(op)?;
    answer(env, operation(mode, (asked, op), operands, Scheduler::Dirty))
});

/// The final type of a result: a weak type becomes the default type of its kind.
fn concrete<'a>(mode: Term<'a>, node: Term<'a>) -> Result<Term<'a>, Atom> {
    let mode = find_mode(mode)?;
    let decoded = decode_node(node).ok_or_else(atoms::left)?;
    Ok(NodeTerm(mode.concrete(decoded)).encode(node.get_env()))
}

/// The result type of two types, or the system's refusal. The error is `:mode`, `:left` or `:right`
/// for an invalid argument.
fn merge<'a>(mode: Term<'a>, left: Term<'a>, right: Term<'a>) -> Result<Term<'a>, Atom> {
    let mode = find_mode(mode)?;
    let left_node = decode_node(left).ok_or_else(atoms::left)?;
    let right_node = decode_node(right).ok_or_else(atoms::right)?;
    // If the result is the type of an operand, its term is returned without encoding it again.
    Ok(match mode.merge(left_node, right_node) {
        Ok(merged) if merged == left_node => left,
        Ok(merged) if merged == right_node => right,
        merged => encode_result(left.get_env(), merged),
    })
}

/// The result type of a type and a number. Returns the same errors as `merge`.
fn merge_number<'a>(mode: Term<'a>, left: Term<'a>, right: Term<'a>) -> Result<Term<'a>, Atom> {
    let mode = find_mode(mode)?;
    let left_node = decode_node(left).ok_or_else(atoms::left)?;
    let number = number(right).ok_or_else(atoms::right)?;
    Ok(match mode.merge_number(left_node, number) {
        Ok(merged) if merged == left_node => left,
        merged => encode_result(left.get_env(), merged),
    })
}

/// The result type of a list of operands: types, `{:array, type}`, numbers, `{:complex, re, im}`,
/// `{:int, sign}` for integers of more than 64 bits, booleans, and `nil`. The error is `:mode` or
/// `:operand` for an invalid argument.
fn result_type<'a>(mode: Term<'a>, operands: Term<'a>, scheduler: Scheduler) -> Result<Term<'a>, Atom> {
    let mode = find_mode(mode)?;
    let result = mode.result_type(decode_operands(mode, operands, scheduler)?.iter().copied());
    Ok(encode_result(operands.get_env(), result))
}

/// What a system computes for an operation, as `{operation, type of the result, whether it is weak,
/// type of the operand}`. Returns the same errors as `result_type`, and `{:error, {:undefined, type}}`
/// if the system does not define the operation for the type that the operands have together.
fn operation<'a>(
    mode: Term<'a>,
    (asked, op): (Operation, Term<'a>),
    operands: Term<'a>,
    scheduler: Scheduler,
) -> Result<Term<'a>, Atom> {
    let (env, mode) = (op.get_env(), find_mode(mode)?);
    let resolved = match asked.resolve(mode, &decode_operands(mode, operands, scheduler)?) {
        Ok(resolved) => resolved,
        Err(Undefined::Operands(refusal)) => return Ok(encode_result(env, Err(refusal))),
        Err(Undefined::Type(node)) => {
            return Ok((atoms::error(), (atoms::undefined(), NodeTerm(node))).encode(env));
        }
    };
    let named =
        |name| Atom::from_str(env, name).map_or_else(|_| Err(atoms::operand()), |atom| Ok(atom.to_term(env)));
    let computed = match resolved.operation {
        same if same == asked => op,
        Operation::Binary(other) => named(other.name())?,
        Operation::Unary(other) => named(other.name())?,
        _ => op,
    };
    let concrete = |node| NodeTerm(mode.concrete(node));
    let weak = mode.keeps_weak() && resolved.result.is_weak();
    Ok((computed, concrete(resolved.result), weak, concrete(resolved.operand)).encode(env))
}

/// Returns `:operand` if a term of the list is no operand, and `:dirty` if the list is too long for a normal
/// scheduler.
fn decode_operands(
    mode: &Mode,
    operands: Term<'_>,
    scheduler: Scheduler,
) -> Result<SmallVec<[PromotionOperand; 4]>, Atom> {
    let mut decoded = SmallVec::new();
    for element in elements(operands) {
        if decoded.len() == MAX_OPERANDS && scheduler == Scheduler::Normal {
            return Err(atoms::dirty());
        }
        decoded.try_reserve(1).map_err(|_| atoms::operand())?;
        decoded.push(element.ok().and_then(|element| operand(mode, element)).ok_or_else(atoms::operand)?);
    }
    Ok(decoded)
}

fn operand(mode: &Mode, term: Term) -> Option<PromotionOperand> {
    if let Some(node) = decode_node(term) {
        return Some(PromotionOperand::Type(node));
    }
    match term.get_type() {
        TermType::Integer | TermType::Float => number(term).map(PromotionOperand::Number),
        TermType::Atom => match term.decode::<bool>() {
            Ok(_) if mode.knows(Node::Bool) => Some(PromotionOperand::Type(Node::Bool)),
            // In systems without bool, as in Nx, true and false are numbers.
            Ok(truth) => Some(PromotionOperand::Number(Number::Integer(truth.into()))),
            Err(_) => (atoms::nil() == term).then_some(PromotionOperand::Absent),
        },
        _ => match term.decode::<(Atom, Term)>() {
            Ok((tag, node)) if tag == atoms::array() => decode_node(node).map(PromotionOperand::Array),
            Ok((tag, sign)) if tag == atoms::int() => {
                let integer = i128::from(sign.decode::<i64>().ok()?) << 64;
                Some(PromotionOperand::Number(Number::Integer(integer)))
            }
            _ => {
                let (tag, re, im): (Atom, f64, f64) = term.decode().ok()?;
                (tag == atoms::complex()).then_some(PromotionOperand::Number(Number::Complex(re, im)))
            }
        },
    }
}
