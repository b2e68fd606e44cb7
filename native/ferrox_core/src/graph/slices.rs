//! Slices taken before elementwise operations instead of after them.
//!
//! Problem: a tensor that is converted or scaled as a whole, and then only read by its slices, as an image is by its
//! channels, is written to memory and read again, in its new type. Technique: a slice commutes with what is computed
//! element by element from one tensor and numbers, so that the operation moves to the slices, where a cluster computes
//! it with what comes after. Limits: every reader is a slice of known starts, and the slices together have no more
//! elements than the tensor.

use std::collections::{HashMap, HashSet};

use super::operand::{Operand, Place, Slot, Target};
use super::operation::{Operation, Start};
use super::source::{Region, Step, each, reads};
use crate::cost::MIN_CLUSTER_BYTES;
use crate::layout::{self, Shape};
use crate::tensor::byte_size;

/// The region with slices first.
pub(super) fn first(region: Region) -> Region {
    let moved = moved(&region);
    if moved.is_empty() {
        return region;
    }
    let Region { steps, mut slots, .. } = region;
    let mut all = Vec::with_capacity(steps.len());
    for step in steps {
        match step {
            Step::Operation { outputs, .. }
                if outputs.iter().any(|output| moved.contains_key(&output.slot)) => {}
            Step::Operation { operation, inputs, outputs } if is_slice(&operation) => {
                slice(&moved, &mut slots, (operation, inputs, outputs), &mut all);
            }
            step => all.push(step),
        }
    }
    Region { steps: all, slots, ..region }
}

/// An elementwise operation that moves to the slices of its result.
struct Moved {
    operation: Operation,
    inputs: Vec<Operand>,
    /// The number of the operand that is sliced.
    sliced: usize,
    output: Target,
}

/// Adds the slice of what moved operations read, and these operations after it.
fn slice(
    moved: &HashMap<Slot, Moved>,
    slots: &mut usize,
    (operation, mut inputs, mut outputs): (Operation, Vec<Operand>, Vec<Target>),
    to: &mut Vec<Step>,
) {
    let after = match (&inputs[..], &mut outputs[..]) {
        ([Operand { place: Place::Slot(slot), .. }], [output]) => moved.get(slot).map(|moved| {
            let Moved { operation, inputs, sliced, output: whole } = moved;
            let result = output.clone();
            let read = &inputs[*sliced];
            // The operand has the shape of the result, but for its type.
            let operand =
                Operand { place: Place::Slot(*slots), dtype: read.dtype, shape: output.shape.clone() };
            *output = Target { slot: *slots, dtype: read.dtype, shape: output.shape.clone() };
            *slots += 1;
            let whole = Operand { shape: whole.shape.clone(), ..read.clone() };
            let mut inputs = inputs.clone();
            inputs[*sliced] = operand;
            (whole, Step::Operation { operation: operation.clone(), inputs, outputs: vec![result] })
        }),
        _ => None,
    };
    match after {
        Some((whole, step)) => {
            inputs = vec![whole];
            slice(moved, slots, (operation, inputs, outputs), to);
            to.push(step);
        }
        None => to.push(Step::Operation { operation, inputs, outputs }),
    }
}

/// The operations that move, by the slots of their results.
fn moved(region: &Region) -> HashMap<Slot, Moved> {
    let mut moved = HashMap::new();
    // For each slot that slices read, and the shape that they read it with, their number and that of their elements.
    let mut slices: HashMap<(Slot, Shape), (usize, usize)> = HashMap::new();
    for step in &region.steps {
        if let Step::Operation { operation, inputs, outputs } = step
            && is_slice(operation)
            && let ([Operand { place: Place::Slot(slot), shape, .. }], [output]) = (&inputs[..], &outputs[..])
        {
            let (count, elements) = slices.entry((*slot, shape.clone())).or_default();
            *count += 1;
            *elements = elements.saturating_add(layout::size(&output.shape).unwrap_or(usize::MAX));
        }
    }
    if slices.is_empty() {
        return moved;
    }
    let mut reads = reads(region);
    // Whether these have a value decides what runs.
    let mut asked = HashSet::new();
    each(&region.steps, &mut |step| {
        if let Step::Unless { computed, .. } = step {
            asked.insert(*computed);
        }
    });
    // An operation after the ones that it reads, so that a slice goes past several.
    for step in region.steps.iter().rev() {
        let Step::Operation { operation, inputs, outputs } = step else { continue };
        let [output] = &outputs[..] else { continue };
        let Some(&(count, elements)) = slices.get(&(output.slot, output.shape.clone())) else { continue };
        let size = layout::size(&output.shape).unwrap_or(0);
        let bytes = byte_size(operation.name(), output.dtype, &output.shape).unwrap_or(0);
        let Some(sliced) = sliced_operand(operation, inputs, output) else { continue };
        let is_read_otherwise = reads.get(output.slot) != Some(&count) || asked.contains(&output.slot);
        if is_read_otherwise || elements > size || bytes < MIN_CLUSTER_BYTES {
            continue;
        }
        if let Place::Slot(slot) = inputs[sliced].place
            && let Some(read) = reads.get_mut(slot)
        {
            *read += count - 1;
            let (known, known_elements) = slices.entry((slot, output.shape.clone())).or_default();
            *known += count;
            *known_elements = known_elements.saturating_add(elements);
        }
        let (operation, inputs, output) = (operation.clone(), inputs.clone(), output.clone());
        moved.insert(output.slot, Moved { operation, inputs, sliced, output });
    }
    moved
}

/// Whether an operation is a slice of known starts.
fn is_slice(operation: &Operation) -> bool {
    match operation {
        Operation::Slice { starts, .. } => starts.iter().all(|start| matches!(start, Start::At(_))),
        _ => false,
    }
}

/// The number of the one operand of an elementwise operation that is not a number, if the operation can't fail.
fn sliced_operand(operation: &Operation, inputs: &[Operand], output: &Target) -> Option<usize> {
    let is_elementwise = matches!(operation, Operation::AsType | Operation::Unary(..) | Operation::Binary(_));
    let is_number = |input: &Operand| layout::size(&input.shape) == Some(1);
    let mut tensors = (0..inputs.len()).filter(|&index| !is_number(&inputs[index]));
    let sliced = tensors.next().filter(|_| tensors.next().is_none())?;
    let are_alike = inputs[sliced].shape == output.shape && !output.dtype.is_packed();
    let is_packed = inputs.iter().any(|input| input.dtype.is_packed());
    let fits = is_elementwise && operation.is_total(output.dtype) && are_alike && !is_packed;
    fits.then_some(sliced)
}
