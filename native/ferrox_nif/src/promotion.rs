//! The NIFs of type promotion.
//!
//! They are called before every operation of the direct API. So they take the system as an atom that
//! is compared with known ones, or as `{system, options}` with the bits of the options; and they
//! return errors as atoms, whose messages are made in Elixir, off the fast path.

use std::sync::OnceLock;

use ferrox_core::DType;
use ferrox_core::exec::elementwise::Source;
use ferrox_core::ops::result_type::{Operation, Undefined};
use ferrox_core::promotion::{Mode, Node, Number, PromotionOperand, Refusal, SYSTEMS, Scalars};
use rustler::types::tuple::get_tuple;
use rustler::{Atom, Decoder, Encoder, Env, NifResult, Term, TermType};

use crate::entry::nif;
use crate::families;
use crate::term::Type;

mod atoms {
    rustler::atoms! {
        error, mode, left, right, operand, empty, unknown, pair, alone, range, absent, array,
        bool, int, float, complex, nil, undefined, types, values, adopt, yes = "true", no = "false"
    }
}

static SYSTEM_NAMES: OnceLock<Vec<Atom>> = OnceLock::new();

/// The atoms of the systems' names, in the order of `SYSTEMS`.
fn system_names(env: Env) -> NifResult<&'static [Atom]> {
    if let Some(system_names) = SYSTEM_NAMES.get() {
        return Ok(system_names);
    }
    let system_names =
        SYSTEMS.iter().map(|system| Atom::from_str(env, system.name)).collect::<NifResult<Vec<_>>>()?;
    Ok(SYSTEM_NAMES.get_or_init(|| system_names))
}

fn find_mode<'a>(env: Env<'a>, mode: Term<'a>) -> Option<&'static Mode> {
    let (name, options) = match mode.decode::<Atom>() {
        Ok(name) => (name, 0),
        Err(_) => mode.decode::<(Atom, usize)>().ok()?,
    };
    let system_names = system_names(env).ok()?;
    SYSTEMS.get(system_names.iter().position(|known| *known == name)?)?.mode(options)
}

/// A node as a term: the tuple of a type, `:bool`, or one of the weak types `:int`, `:float` and
/// `:complex`.
struct NodeTerm(Node);

impl<'a> Decoder<'a> for NodeTerm {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        if let Ok(Type(dtype)) = term.decode() {
            return Ok(NodeTerm(Node::Type(dtype)));
        }
        let atom: Atom = term.decode()?;
        let node = if atom == atoms::bool() {
            Node::Bool
        } else if atom == atoms::int() {
            Node::Int
        } else if atom == atoms::float() {
            Node::Float
        } else if atom == atoms::complex() {
            Node::Complex
        } else {
            return Err(rustler::Error::BadArg);
        };
        Ok(NodeTerm(node))
    }
}

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

fn encode_result(env: Env<'_>, merged: Result<Node, Refusal>) -> Term<'_> {
    let refusal = match merged {
        Ok(node) => return NodeTerm(node).encode(env),
        Err(refusal) => refusal,
    };
    let reason = match refusal {
        Refusal::Empty => atoms::empty().encode(env),
        Refusal::Unknown(node) => (atoms::unknown(), NodeTerm(node)).encode(env),
        Refusal::Pair(..) => atoms::pair().encode(env),
        Refusal::Absent => atoms::absent().encode(env),
        Refusal::Alone(_) => atoms::alone().encode(env),
        Refusal::Range(_, node) => (atoms::range(), NodeTerm(node)).encode(env),
    };
    (atoms::error(), reason).encode(env)
}

fn argument_error(env: Env<'_>, what: Atom) -> Term<'_> {
    (atoms::error(), what).encode(env)
}

/// Decodes a number. Terms that are not real numbers count as complex numbers: in Nx, types that
/// accept complex numbers accept any term, even `nil`. Returns `None` for integers outside of
/// -2^63..2^64-1.
fn number(term: Term) -> Option<Number> {
    match term.get_type() {
        TermType::Float => Some(Number::Float(term.decode().ok()?)),
        TermType::Integer => match (term.decode::<i64>(), term.decode::<u64>()) {
            (Ok(integer), _) => Some(Number::Integer(integer.into())),
            (_, Ok(integer)) => Some(Number::Integer(integer.into())),
            _ => None,
        },
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
#[allow(clippy::type_complexity)] // read in one place, which takes it apart
fn promotion_systems(env: Env) -> NifResult<Vec<(Atom, Vec<(&'static str, Atom, Atom, Atom)>)>> {
    let named = SYSTEMS.iter().zip(system_names(env)?);
    named
        .map(|(system, name)| {
            let options = system.options.iter().map(|switch| {
                let atom = |name| Atom::from_str(env, name);
                let [off, on] = switch.values;
                Ok((switch.flag, atom(switch.key)?, atom(off)?, atom(on)?))
            });
            Ok((*name, options.collect::<NifResult<Vec<_>>>()?))
        })
        .collect()
}

/// The types of a system, or `{:error, :mode}` for an unknown one.
#[rustler::nif]
fn promotion_types<'a>(env: Env<'a>, mode: Term<'a>) -> Term<'a> {
    match find_mode(env, mode) {
        Some(mode) => mode.types().map(NodeTerm).collect::<Vec<_>>().encode(env),
        None => argument_error(env, atoms::mode()),
    }
}

/// The lattice of a system as `{edges, positions}`. Returns `nil` if the system is not a lattice.
#[rustler::nif]
fn promotion_lattice<'a>(env: Env<'a>, mode: Term<'a>) -> Term<'a> {
    let Some(mode) = find_mode(env, mode) else { return argument_error(env, atoms::mode()) };
    mode.lattice()
        .map(|lattice| {
            let edges: Vec<(NodeTerm, Vec<NodeTerm>)> = lattice
                .edges
                .iter()
                .map(|(from, to)| (NodeTerm(*from), to.iter().copied().map(NodeTerm).collect()))
                .collect();
            let positions: Vec<(NodeTerm, f64, f64)> =
                lattice.positions.iter().map(|&(node, x, y)| (NodeTerm(node), x, y)).collect();
            (edges, positions)
        })
        .encode(env)
}

/// The final type of a result: a weak type becomes the default type of its kind.
#[rustler::nif]
fn promotion_concrete<'a>(env: Env<'a>, mode: Term<'a>, node: Term<'a>) -> Term<'a> {
    match (find_mode(env, mode), node.decode()) {
        (None, _) => argument_error(env, atoms::mode()),
        (_, Err(_)) => argument_error(env, atoms::left()),
        (Some(mode), Ok(NodeTerm(node))) => NodeTerm(mode.concrete(node)).encode(env),
    }
}

/// Properties of a system: `{what tensors without axes count as, whether results may be weak, the
/// type of truth values, the type of indices}`.
#[rustler::nif]
fn promotion_facts<'a>(env: Env<'a>, mode: Term<'a>) -> Term<'a> {
    let Some(mode) = find_mode(env, mode) else { return argument_error(env, atoms::mode()) };
    let scalars = match mode.scalars() {
        Scalars::Types => atoms::types(),
        Scalars::Values => atoms::values(),
        Scalars::Adopt => atoms::adopt(),
    };
    (scalars, mode.keeps_weak(), NodeTerm(mode.predicate()), NodeTerm(mode.index())).encode(env)
}

nif!(merge, Normal, |env, mode: Term<'_>, left: Term<'_>, right: Term<'_>| merge(env, mode, left, right));
nif!(merge_number, Normal, |env, mode: Term<'_>, left: Term<'_>, right: Term<'_>| {
    merge_number(env, mode, left, right)
});
nif!(result_type, Normal, |env, mode: Term<'_>, operands: Term<'_>| result_type(env, mode, operands));
nif!(operation, Normal, |env, mode: Term<'_>, op: Term<'_>, operands: Term<'_>| {
    operation(env, mode, op, operands)
});

/// The result type of two types, or `{:error, reason}`. The reason is `:mode`, `:left` or `:right`
/// for an invalid argument, or the system's refusal.
fn merge<'a>(env: Env<'a>, mode: Term<'a>, left: Term<'a>, right: Term<'a>) -> Term<'a> {
    let Some(mode) = find_mode(env, mode) else {
        return argument_error(env, atoms::mode());
    };
    let Ok(NodeTerm(left_node)) = left.decode() else {
        return argument_error(env, atoms::left());
    };
    let Ok(NodeTerm(right_node)) = right.decode() else {
        return argument_error(env, atoms::right());
    };
    // If the result is the type of an operand, its term is returned without encoding it again.
    match mode.merge(left_node, right_node) {
        Ok(merged) if merged == left_node => left,
        Ok(merged) if merged == right_node => right,
        merged => encode_result(env, merged),
    }
}

/// The result type of a type and a number. Returns the same errors as `merge`.
fn merge_number<'a>(env: Env<'a>, mode: Term<'a>, left: Term<'a>, right: Term<'a>) -> Term<'a> {
    let Some(mode) = find_mode(env, mode) else {
        return argument_error(env, atoms::mode());
    };
    let Ok(NodeTerm(left_node)) = left.decode() else {
        return argument_error(env, atoms::left());
    };
    let Some(number) = number(right) else {
        return argument_error(env, atoms::right());
    };
    match mode.merge_number(left_node, number) {
        Ok(merged) if merged == left_node => left,
        merged => encode_result(env, merged),
    }
}

/// The result type of a list of operands: types, `{:array, type}`, numbers, `{:complex, re, im}`,
/// `{:int, sign}` for integers of more than 64 bits, booleans, and `nil`. Returns the same errors as
/// `merge`.
fn result_type<'a>(env: Env<'a>, mode: Term<'a>, operands: Term<'a>) -> Term<'a> {
    match mode_and_operands(env, mode, operands) {
        Ok((mode, operands)) => encode_result(env, mode.result_type(operands)),
        Err(argument) => argument_error(env, argument),
    }
}

/// What a system computes for an operation, as `{operation, type of the result, whether it is weak,
/// type of the operand}`. Returns the same errors as `result_type`, and `{:error, {:undefined, type}}`
/// if the system does not define the operation for the type that the operands have together.
fn operation<'a>(env: Env<'a>, mode: Term<'a>, op: Term<'a>, operands: Term<'a>) -> NifResult<Term<'a>> {
    let asked = families::operation(op)?;
    let (mode, operands) = match mode_and_operands(env, mode, operands) {
        Ok(decoded) => decoded,
        Err(argument) => return Ok(argument_error(env, argument)),
    };
    let resolved = match asked.resolve(mode, operands) {
        Ok(resolved) => resolved,
        Err(Undefined::Operands(refusal)) => return Ok(encode_result(env, Err(refusal))),
        Err(Undefined::Type(node)) => {
            return Ok((atoms::error(), (atoms::undefined(), NodeTerm(node))).encode(env));
        }
    };
    let computed = match resolved.operation {
        same if same == asked => op,
        Operation::Binary(op) => Atom::from_str(env, op.name())?.to_term(env),
        Operation::Unary(op) => Atom::from_str(env, op.name())?.to_term(env),
        _ => op,
    };
    let concrete = |node| NodeTerm(mode.concrete(node));
    let weak = mode.keeps_weak() && resolved.result.is_weak();
    Ok((computed, concrete(resolved.result), weak, concrete(resolved.operand)).encode(env))
}

/// Decodes a mode and a list of operands. Returns the name of the argument that is invalid.
fn mode_and_operands<'a>(
    env: Env<'a>,
    mode: Term<'a>,
    operands: Term<'a>,
) -> Result<(&'static Mode, impl Iterator<Item = PromotionOperand> + Clone), Atom> {
    let mode = find_mode(env, mode).ok_or_else(atoms::mode)?;
    let operands = ListElements(operands);
    if operands.clone().any(|term| operand(mode, term).is_none()) {
        return Err(atoms::operand());
    }
    Ok((mode, operands.filter_map(|term| operand(mode, term))))
}

/// The elements of a list, which can be gone through several times.
#[derive(Clone)]
struct ListElements<'a>(Term<'a>);

impl<'a> Iterator for ListElements<'a> {
    type Item = Term<'a>;

    fn next(&mut self) -> Option<Term<'a>> {
        let (head, tail) = self.0.list_get_cell().ok()?;
        self.0 = tail;
        Some(head)
    }
}

fn operand(mode: &Mode, term: Term) -> Option<PromotionOperand> {
    match term.get_type() {
        TermType::Integer | TermType::Float => number(term).map(PromotionOperand::Number),
        TermType::Atom => {
            let atom: Atom = term.decode().ok()?;
            if atom == atoms::nil() {
                Some(PromotionOperand::Absent)
            } else if atom == atoms::yes() || atom == atoms::no() {
                // In systems without bool, as in Nx, true and false are numbers.
                let integer = PromotionOperand::Number(Number::Integer(i128::from(atom == atoms::yes())));
                Some(if mode.knows(Node::Bool) { PromotionOperand::Type(Node::Bool) } else { integer })
            } else {
                term.decode().ok().map(|NodeTerm(node)| PromotionOperand::Type(node))
            }
        }
        TermType::Tuple => {
            if let Ok(NodeTerm(node)) = term.decode() {
                return Some(PromotionOperand::Type(node));
            }
            let parts = get_tuple(term).ok()?;
            let tag: Atom = parts.first()?.decode().ok()?;
            match parts[1..] {
                [node] if tag == atoms::array() => {
                    node.decode().ok().map(|NodeTerm(node)| PromotionOperand::Array(node))
                }
                [re, im] if tag == atoms::complex() => {
                    Some(PromotionOperand::Number(Number::Complex(re.decode().ok()?, im.decode().ok()?)))
                }
                [sign] if tag == atoms::int() => {
                    let sign: i64 = sign.decode().ok()?;
                    Some(PromotionOperand::Number(Number::Integer(i128::from(sign) << 64)))
                }
                _ => None,
            }
        }
        _ => None,
    }
}
