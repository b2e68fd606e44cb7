//! The NIFs that ask for promotions.
//!
//! They are called before every operation of the direct API, so they take the
//! system as an atom that is compared with known ones, or `{system, options}`
//! with the options' bits, and what isn't an answer is named for Elixir to
//! explain, off the fast path.

use std::sync::OnceLock;

use ferrox_core::promotion::{Mode, Node, Number, PromotionOperand, Refusal, SYSTEMS};
use rustler::types::tuple::get_tuple;
use rustler::{Atom, Decoder, Encoder, Env, NifResult, Term, TermType};

use crate::entry::nif;
use crate::term::Type;

mod atoms {
    rustler::atoms! {
        error, mode, left, right, operand, empty, unknown, pair, alone, range, absent, array,
        bool, int, float, complex, nil, yes = "true", no = "false"
    }
}

static NAMES: OnceLock<Vec<Atom>> = OnceLock::new();

/// The atoms of the systems' names, in the order of `SYSTEMS`.
fn names(env: Env) -> NifResult<&'static [Atom]> {
    if let Some(names) = NAMES.get() {
        return Ok(names);
    }
    let names =
        SYSTEMS.iter().map(|system| Atom::from_str(env, system.name)).collect::<NifResult<Vec<_>>>()?;
    Ok(NAMES.get_or_init(|| names))
}

fn find<'a>(env: Env<'a>, mode: Term<'a>) -> Option<&'static Mode> {
    let (name, options) = match mode.decode::<Atom>() {
        Ok(name) => (name, 0),
        Err(_) => mode.decode::<(Atom, usize)>().ok()?,
    };
    let names = names(env).ok()?;
    SYSTEMS.get(names.iter().position(|known| *known == name)?)?.mode(options)
}

/// A type's tuple, `:bool`, or `:int`, `:float` or `:complex` of plain numbers.
struct Any(Node);

impl<'a> Decoder<'a> for Any {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        if let Ok(Type(dtype)) = term.decode() {
            return Ok(Any(Node::Type(dtype)));
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
        Ok(Any(node))
    }
}

impl Encoder for Any {
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

fn answer(env: Env<'_>, merged: Result<Node, Refusal>) -> Term<'_> {
    let refusal = match merged {
        Ok(node) => return Any(node).encode(env),
        Err(refusal) => refusal,
    };
    let reason = match refusal {
        Refusal::Empty => atoms::empty().encode(env),
        Refusal::Unknown(node) => (atoms::unknown(), Any(node)).encode(env),
        Refusal::Pair(..) => atoms::pair().encode(env),
        Refusal::Absent => atoms::absent().encode(env),
        Refusal::Alone(_) => atoms::alone().encode(env),
        Refusal::Range(_, node) => (atoms::range(), Any(node)).encode(env),
    };
    (atoms::error(), reason).encode(env)
}

fn wrong(env: Env<'_>, what: Atom) -> Term<'_> {
    (atoms::error(), what).encode(env)
}

/// What is no real number is taken for a complex one: types that take those
/// take anything in Nx, even `nil`. Integers must lie in -2^63..2^64-1.
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

/// `[{system, [{flag, key, off, on}]}]`, the options in the order of their bits.
#[rustler::nif]
#[allow(clippy::type_complexity)] // read in one place, which takes it apart
fn promotion_systems(env: Env) -> NifResult<Vec<(Atom, Vec<(&'static str, Atom, Atom, Atom)>)>> {
    let named = SYSTEMS.iter().zip(names(env)?);
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

/// The types of a system, or `{:error, :mode}`.
#[rustler::nif]
fn promotion_types<'a>(env: Env<'a>, mode: Term<'a>) -> Term<'a> {
    match find(env, mode) {
        Some(mode) => mode.types().map(Any).collect::<Vec<_>>().encode(env),
        None => wrong(env, atoms::mode()),
    }
}

/// `{edges, positions}` of the lattice that the results are joins of, `nil` for
/// a plain table.
#[rustler::nif]
fn promotion_lattice<'a>(env: Env<'a>, mode: Term<'a>) -> Term<'a> {
    let Some(mode) = find(env, mode) else { return wrong(env, atoms::mode()) };
    mode.lattice()
        .map(|lattice| {
            let edges: Vec<(Any, Vec<Any>)> = lattice
                .edges
                .iter()
                .map(|(from, to)| (Any(*from), to.iter().copied().map(Any).collect()))
                .collect();
            let positions: Vec<(Any, f64, f64)> =
                lattice.positions.iter().map(|&(node, x, y)| (Any(node), x, y)).collect();
            (edges, positions)
        })
        .encode(env)
}

/// The type of the default size of a weak one, others as they are.
#[rustler::nif]
fn promotion_concrete<'a>(env: Env<'a>, mode: Term<'a>, node: Term<'a>) -> Term<'a> {
    match (find(env, mode), node.decode()) {
        (None, _) => wrong(env, atoms::mode()),
        (_, Err(_)) => wrong(env, atoms::left()),
        (Some(mode), Ok(Any(node))) => Any(mode.concrete(node)).encode(env),
    }
}

nif!(merge, Normal, |env, mode: Term<'_>, left: Term<'_>, right: Term<'_>| merge(env, mode, left, right));
nif!(merge_number, Normal, |env, mode: Term<'_>, left: Term<'_>, right: Term<'_>| {
    merge_number(env, mode, left, right)
});
nif!(result_type, Normal, |env, mode: Term<'_>, operands: Term<'_>| result_type(env, mode, operands));

/// The type that results from two, or `{:error, reason}`: `:mode`, `:left` or
/// `:right` for the argument that is none, or why the system has no answer.
fn merge<'a>(env: Env<'a>, mode: Term<'a>, left: Term<'a>, right: Term<'a>) -> Term<'a> {
    let Some(mode) = find(env, mode) else {
        return wrong(env, atoms::mode());
    };
    let Ok(Any(left_node)) = left.decode() else {
        return wrong(env, atoms::left());
    };
    let Ok(Any(right_node)) = right.decode() else {
        return wrong(env, atoms::right());
    };
    // An operand's own term is there already.
    match mode.merge(left_node, right_node) {
        Ok(merged) if merged == left_node => left,
        Ok(merged) if merged == right_node => right,
        merged => answer(env, merged),
    }
}

/// The type that results from a type and a number; answers as `merge` does.
fn merge_number<'a>(env: Env<'a>, mode: Term<'a>, left: Term<'a>, right: Term<'a>) -> Term<'a> {
    let Some(mode) = find(env, mode) else {
        return wrong(env, atoms::mode());
    };
    let Ok(Any(left_node)) = left.decode() else {
        return wrong(env, atoms::left());
    };
    let Some(number) = number(right) else {
        return wrong(env, atoms::right());
    };
    match mode.merge_number(left_node, number) {
        Ok(merged) if merged == left_node => left,
        merged => answer(env, merged),
    }
}

/// The type that results from a list of types, `{:array, type}`, numbers,
/// `{:complex, re, im}`, `{:int, sign}` for what has more than 64 bits, booleans
/// and `nil`; answers as `merge` does.
fn result_type<'a>(env: Env<'a>, mode: Term<'a>, operands: Term<'a>) -> Term<'a> {
    let Some(mode) = find(env, mode) else {
        return wrong(env, atoms::mode());
    };
    let operands = Cells(operands);
    if operands.clone().any(|term| operand(mode, term).is_none()) {
        return wrong(env, atoms::operand());
    }
    answer(env, mode.result_type(operands.filter_map(|term| operand(mode, term))))
}

/// The elements of a list, which can be gone through several times.
#[derive(Clone)]
struct Cells<'a>(Term<'a>);

impl<'a> Iterator for Cells<'a> {
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
                // Without a bool, truth is a number, as in Nx.
                let integer = PromotionOperand::Number(Number::Integer(i128::from(atom == atoms::yes())));
                Some(if mode.knows(Node::Bool) { PromotionOperand::Type(Node::Bool) } else { integer })
            } else {
                term.decode().ok().map(|Any(node)| PromotionOperand::Type(node))
            }
        }
        TermType::Tuple => {
            if let Ok(Any(node)) = term.decode() {
                return Some(PromotionOperand::Type(node));
            }
            let parts = get_tuple(term).ok()?;
            let tag: Atom = parts.first()?.decode().ok()?;
            match parts[1..] {
                [node] if tag == atoms::array() => {
                    node.decode().ok().map(|Any(node)| PromotionOperand::Array(node))
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
