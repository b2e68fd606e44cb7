//! Reductions along axes that have others between them, as one step for each group of neighbours.
//!
//! Problem: a sum of images over all axes but that of the channels is one operation, whose elements do not come row by
//! row. Technique: the operation itself folds one group of neighbours after the other (`ops::reduce`), so that the
//! first of these can be computed with the rows of a cluster.

use std::cell::Cell;

use super::operand::{Operand, Place, Target};
use super::operation::Operation;
use super::source::{Region, Step, with_inner};
use crate::cost::MIN_CLUSTER_BYTES;
use crate::ops::reduce::{Split, Stage};
use crate::tensor::byte_size;

/// The region with large reductions in steps.
pub(super) fn split(region: Region) -> Region {
    let slots = Cell::new(region.slots);
    let steps = split_steps(&region.steps, &slots);
    Region { steps, slots: slots.get(), ..region }
}

fn split_steps(steps: &[Step], slots: &Cell<usize>) -> Vec<Step> {
    let mut to = Vec::with_capacity(steps.len());
    for step in steps {
        match step {
            Step::Operation { operation, inputs, outputs } => {
                let mut operation = (operation.clone(), inputs.clone());
                while let Some((stage, rest)) = stage(&operation, slots) {
                    to.push(stage);
                    operation = rest;
                }
                let (operation, inputs) = operation;
                to.push(Step::Operation { operation, inputs, outputs: outputs.clone() });
            }
            step => to.push(with_inner(step, &|steps| split_steps(steps, slots))),
        }
    }
    to
}

/// The first step of a reduction in several, and the rest of the reduction, which reads its result.
fn stage(
    (operation, inputs): &(Operation, Vec<Operand>),
    slots: &Cell<usize>,
) -> Option<(Step, (Operation, Vec<Operand>))> {
    let (Operation::Reduce(op, axes), [input]) = (operation, &inputs[..]) else { return None };
    let bytes = byte_size(op.name(), input.dtype, &input.shape).ok()?;
    if bytes < MIN_CLUSTER_BYTES || input.dtype.is_packed() {
        return None;
    }
    let Split::Stage(Stage { axes, lane, shape, rest }) = Split::of(*op, input.dtype, &input.shape, axes)?
    else {
        return None;
    };
    let slot = slots.replace(slots.get() + 1);
    let result = Target { slot, dtype: lane, shape: shape.clone() };
    let first = Step::Operation {
        operation: Operation::Reduce(*op, axes),
        inputs: vec![input.clone()],
        outputs: vec![result],
    };
    let lanes = Operand { place: Place::Slot(slot), dtype: lane, shape };
    Some((first, (Operation::Reduce(*op, rest), vec![lanes])))
}
