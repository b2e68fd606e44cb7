//! Small operands of large elementwise operations, repeated once instead of element by element.
//!
//! Problem: an operand such as a factor for each column of an image, of the shape `{1, columns, 1}`, is read a few
//! elements at a time by a result of the shape `{rows, columns, 3}`, since each of its elements is repeated three
//! times, and the whole again for each row. Technique: a broadcast before the operation gives the operand the
//! result's axes after those that repeat the whole, here `{1, columns, 3}`: what remains is read in long runs.

use std::cell::Cell;
use std::collections::HashMap;

use super::operand::{Operand, Place, Slot, Target};
use super::operation::Operation;
use super::source::{Region, Step, with_inner};
use crate::DType;
use crate::cost::{MAX_REPEATED_BYTES, MIN_CLUSTER_BYTES, MIN_CLUSTER_RUN_BYTES, MIN_REPETITIONS};
use crate::layout::Shape;
use crate::tensor::byte_size;

/// The region with such broadcasts.
pub(super) fn expand(region: &Region) -> Region {
    let slots = &Cell::new(region.slots);
    let steps = Expansion { slots, known: HashMap::new() }.steps(&region.steps);
    Region { steps, slots: slots.get(), ..region.clone() }
}

struct Expansion<'a> {
    /// The number of slots of the region.
    slots: &'a Cell<usize>,
    /// The slots of operands, of some place, type and shape, that have been expanded to a shape.
    known: HashMap<(Place, DType, [Shape; 2]), Slot>,
}

impl Expansion<'_> {
    fn steps(&mut self, steps: &[Step]) -> Vec<Step> {
        let mut expanded = Vec::with_capacity(steps.len());
        for step in steps {
            let step = match step {
                Step::Operation { operation, inputs, outputs }
                    if matches!(operation, Operation::Binary(_) | Operation::Select | Operation::Clip)
                        && let [result] = &outputs[..] =>
                {
                    let inputs =
                        inputs.iter().map(|input| self.operand(input.clone(), result, &mut expanded));
                    let inputs = inputs.collect();
                    Step::Operation { operation: operation.clone(), inputs, outputs: outputs.clone() }
                }
                // What a branch expands, which may not run, is not there for others.
                step => with_inner(step, &|steps| {
                    Expansion { slots: self.slots, known: self.known.clone() }.steps(steps)
                }),
            };
            expanded.push(step);
        }
        expanded
    }

    /// The operand, or what a broadcast, which is added to the steps, makes of it.
    fn operand(&mut self, operand: Operand, result: &Target, steps: &mut Vec<Step>) -> Operand {
        let Some(shape) = expanded(&operand, result) else { return operand };
        let known = (operand.place, operand.dtype, [operand.shape.clone(), shape.clone()]);
        let slot = *self.known.entry(known).or_insert_with(|| {
            let to = self.slots.replace(self.slots.get() + 1);
            let first = shape.len() - operand.shape.len();
            let output = Target { slot: to, dtype: operand.dtype, shape: shape.clone() };
            steps.push(Step::Operation {
                operation: Operation::Broadcast((first..shape.len()).collect()),
                inputs: vec![operand.clone()],
                outputs: vec![output],
            });
            to
        });
        Operand { place: Place::Slot(slot), dtype: operand.dtype, shape }
    }
}

/// The shape to which an operand is expanded, if it is worth it.
fn expanded(operand: &Operand, result: &Target) -> Option<Shape> {
    let bytes = byte_size("program", result.dtype, &result.shape).ok()?;
    if operand.dtype.is_packed() || bytes < MIN_CLUSTER_BYTES || operand.shape.len() > result.shape.len() {
        return None;
    }
    let ones = result.shape.len() - operand.shape.len();
    let dim = |axis: usize| axis.checked_sub(ones).map_or(1, |axis| operand.shape[axis]);
    let is_repeated = |axis: usize| dim(axis) != result.shape[axis];
    let mut axes = (0..result.shape.len()).filter(|&axis| result.shape[axis] != 1).rev();
    // The last axes are all repeated or all not.
    let last = axes.next()?;
    let run = axes
        .clone()
        .take_while(|&axis| is_repeated(axis) == is_repeated(last))
        .map(|axis| result.shape[axis])
        .product::<usize>();
    let run = run.checked_mul(result.shape[last])?;
    // The first axes repeat what comes after them.
    let first = axes.chain([last]).filter(|&axis| !is_repeated(axis)).min()?;
    let mut shape: Shape = result.shape.clone();
    shape[..first].fill(1);
    let [given, expanded, all] =
        [&operand.shape, &shape, &result.shape].map(|shape| shape.iter().product::<usize>());
    let width = operand.dtype.width();
    let is_worth_it = run * width < MIN_CLUSTER_RUN_BYTES
        && expanded * width <= MAX_REPEATED_BYTES
        && expanded <= all / MIN_REPETITIONS
        && expanded > given;
    is_worth_it.then_some(shape)
}
