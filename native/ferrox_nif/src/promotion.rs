//! The NIFs that ask for promotions.
//!
//! They are called before every operation of the direct API, so they take the
//! system as an atom that is compared with known ones, and what isn't an answer
//! is named by position for Elixir to explain, off the fast path.

use std::sync::OnceLock;

use ferrox_core::promotion::{Number, SYSTEMS, System, Undefined};
use rustler::{Atom, Encoder, Env, NifResult, Term, TermType};

use crate::term::Type;

mod atoms {
    rustler::atoms! { error, system, left, right }
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

fn find(env: Env, name: Term) -> Option<&'static System> {
    let name: Atom = name.decode().ok()?;
    let names = names(env).ok()?;
    SYSTEMS.get(names.iter().position(|known| *known == name)?)
}

fn answer(env: Env<'_>, merged: Result<ferrox_core::DType, Undefined>) -> Term<'_> {
    match merged {
        Ok(dtype) => Type(dtype).encode(env),
        Err(undefined) => (atoms::error(), undefined.to_string()).encode(env),
    }
}

/// `[{system, types}]`
#[rustler::nif]
fn promotion_systems(env: Env) -> NifResult<Vec<(Atom, Vec<Type>)>> {
    let types = SYSTEMS.iter().map(|system| system.types().map(Type).collect());
    Ok(names(env)?.iter().copied().zip(types).collect())
}

/// The type that results from two, `{:error, message}` where the system leaves
/// it open, or `{:error, :system | :left | :right}`, the argument that is none.
#[rustler::nif]
fn merge<'a>(env: Env<'a>, system: Term<'a>, left: Term<'a>, right: Term<'a>) -> Term<'a> {
    let Some(system) = find(env, system) else {
        return (atoms::error(), atoms::system()).encode(env);
    };
    let Ok(Type(left_type)) = left.decode() else {
        return (atoms::error(), atoms::left()).encode(env);
    };
    let Ok(Type(right_type)) = right.decode() else {
        return (atoms::error(), atoms::right()).encode(env);
    };
    // An operand's own term is there already.
    match system.merge(left_type, right_type) {
        Ok(merged) if merged == left_type => left,
        Ok(merged) if merged == right_type => right,
        merged => answer(env, merged),
    }
}

/// The type that results from a type and a number; answers as `merge` does.
/// Integers must lie in -2^63..2^64-1. What is no real number is taken for a
/// complex one: types that take those take anything in Nx, even `nil`.
#[rustler::nif]
fn merge_number<'a>(env: Env<'a>, system: Term<'a>, left: Term<'a>, number: Term<'a>) -> Term<'a> {
    let Some(system) = find(env, system) else {
        return (atoms::error(), atoms::system()).encode(env);
    };
    let Ok(Type(left_type)) = left.decode() else {
        return (atoms::error(), atoms::left()).encode(env);
    };
    let number = match number.get_type() {
        TermType::Float => Number::Float,
        TermType::Integer => match (number.decode::<i64>(), number.decode::<u64>()) {
            (Ok(integer), _) => Number::Integer(integer.into()),
            (_, Ok(integer)) => Number::Integer(integer.into()),
            _ => return (atoms::error(), atoms::right()).encode(env),
        },
        _ => Number::Complex,
    };
    match system.merge_number(left_type, number) {
        Ok(merged) if merged == left_type => left,
        merged => answer(env, merged),
    }
}
