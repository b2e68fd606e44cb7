//! The NIF that asks an operation which types it is defined on.

use ferrox_core::ops::supports::{Operation, supports as core_supports};
use rustler::{Atom, Env, NifResult};

use crate::term::Type;

/// Whether the operation is defined on tensors of these types with a result of
/// type `out`; nil for a name that no operation has, or another number of tensors.
#[rustler::nif]
fn supports(env: Env, op: Atom, out: Type, operands: Vec<Type>) -> NifResult<Option<bool>> {
    let name = op.to_term(env).atom_to_string()?;
    let operands: Vec<_> = operands.into_iter().map(|operand| operand.0).collect();
    Ok(Operation::named(&name).and_then(|op| core_supports(op, out.0, &operands)))
}
