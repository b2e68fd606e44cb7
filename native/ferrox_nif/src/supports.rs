//! The NIF that says whether an operation is defined on some types.

use ferrox_core::ops::supports::{Operation, supports as core_supports};
use rustler::{Atom, Env, NifResult};

use crate::term::{List, Type};

/// Whether the operation is defined on tensors of these types with a result of type `out`. Returns
/// `nil` for an unknown name, or if the operation has another number of operands.
#[rustler::nif]
fn supports(env: Env, op: Atom, out: Type, operands: List<Type>) -> NifResult<Option<bool>> {
    let name = op.to_term(env).atom_to_string()?;
    let operands: Vec<_> = operands.iter().map(|operand| operand.0).collect();
    Ok(Operation::named(&name).and_then(|op| core_supports(op, out.0, &operands)))
}
