//! Constant folding: small values that depend on no argument are computed when the program is made, and
//! become literals.
//!
//! Without it, a loop would count up the same indices, or fill the same mask, in every trip.

use std::collections::{HashMap, HashSet};

use super::operand::{Operand, Place, Slot, Target};
use super::operation::{Operation, Outputs};
use super::source::{Branch, Clause, Region, ReverseLoop, Step, each};
use crate::cost::MAX_CONSTANT_BYTES;
use crate::exec::elementwise::Source;
use crate::layout;
use crate::ops;
use crate::ops::binary::BinaryOp;
use crate::tensor::{Output, Tensor, byte_size};
use crate::{DType, Kind};

/// The regions with their constants as literals, which are added to `literals`.
pub(super) fn fold(regions: &[Region], literals: &mut Vec<Vec<u8>>) -> Vec<Region> {
    regions
        .iter()
        .map(|region| {
            // The slots that a step asks for whether they have a value, and those that loops in several
            // branches give. Their operations and loops stay.
            let mut guarded = HashSet::new();
            let mut looped = HashSet::new();
            each(&region.steps, &mut |step| match step {
                Step::Unless { computed, .. } => {
                    guarded.insert(*computed);
                }
                Step::While { outputs, .. } => {
                    guarded.extend(outputs.iter().filter(|&&output| !looped.insert(output)));
                }
                _ => {}
            });
            let slots = region.slots;
            let mut folding = Folding { regions, literals, guarded, slots, known: HashMap::new() };
            let steps = folding.steps(&region.steps);
            let results = folding.operands(&region.results);
            Region { steps, results, slots: folding.slots, ..region.clone() }
        })
        .collect()
}

/// The constants of a region.
pub(super) struct Folding<'a> {
    pub(super) regions: &'a [Region],
    pub(super) literals: &'a mut Vec<Vec<u8>>,
    pub(super) guarded: HashSet<Slot>,
    /// The number of slots of the region.
    pub(super) slots: usize,
    /// The places of values that slots have no more: literals, and slots of other values.
    pub(super) known: HashMap<Slot, Place>,
}

impl Folding<'_> {
    fn steps(&mut self, steps: &[Step]) -> Vec<Step> {
        let mut folded = Vec::with_capacity(steps.len());
        for step in steps {
            if let Step::While { condition, body, initial, outputs } = step
                && let Some(trips) = self.unrolled([*condition, *body], initial, outputs)
            {
                folded.extend(trips);
            } else {
                folded.extend(self.step(step));
            }
        }
        folded
    }

    /// The step with literals in place of constants; `None` if it only computes a constant.
    fn step(&mut self, step: &Step) -> Option<Step> {
        Some(match step {
            Step::Operation { operation, inputs, outputs } => {
                let inputs = self.operands(inputs);
                return self.operation(operation, inputs, outputs.clone());
            }
            Step::Cond { clauses, otherwise, outputs } => {
                let clauses = clauses.iter().map(|clause| Clause {
                    steps: self.steps(&clause.steps),
                    predicate: self.operand(&clause.predicate),
                    branch: self.branch(&clause.branch),
                });
                let clauses = clauses.collect();
                Step::Cond { clauses, otherwise: self.branch(otherwise), outputs: outputs.clone() }
            }
            Step::Unless { computed, steps } => {
                Step::Unless { computed: *computed, steps: self.steps(steps) }
            }
            Step::While { condition, body, initial, outputs } => {
                let (initial, outputs) = (self.operands(initial), outputs.clone());
                Step::While { condition: *condition, body: *body, initial, outputs }
            }
            Step::ReverseLoop(reverse) => {
                let ReverseLoop { trips, initial, gradients, invariants, .. } = &**reverse;
                let [initial, gradients, invariants] =
                    [initial, gradients, invariants].map(|operands| self.operands(operands));
                let trips = self.operand(trips);
                let reverse = ReverseLoop { trips, initial, gradients, invariants, ..(**reverse).clone() };
                Step::ReverseLoop(Box::new(reverse))
            }
            Step::Fold { body, input, initial, output } => {
                let (input, initial) = (self.operand(input), self.operand(initial));
                Step::Fold { body: *body, input, initial, output: output.clone() }
            }
            Step::Call { callback, inputs, outputs } => {
                let (inputs, outputs) = (self.operands(inputs), outputs.clone());
                Step::Call { callback: *callback, inputs, outputs }
            }
            Step::Cluster { .. } => step.clone(),
        })
    }

    /// The step of an operation, whose operands are as they are; `None` if it only computes a constant.
    pub(super) fn operation(
        &mut self,
        operation: &Operation,
        inputs: Vec<Operand>,
        outputs: Vec<Target>,
    ) -> Option<Step> {
        if let [output] = &outputs[..]
            && !self.guarded.contains(&output.slot)
            && let Some(value) = self.constant(operation, &inputs, output)
        {
            let literal = Place::Literal(self.literal(value));
            self.known.insert(output.slot, literal);
            return None;
        }
        let (operation, inputs) = match &outputs[..] {
            [output] => self.simplified(operation, inputs, output.dtype),
            _ => (operation.clone(), inputs),
        };
        Some(Step::Operation { operation, inputs, outputs })
    }

    fn branch(&mut self, branch: &Branch) -> Branch {
        let steps = self.steps(&branch.steps);
        Branch { steps, results: self.operands(&branch.results) }
    }

    pub(super) fn operands(&self, operands: &[Operand]) -> Vec<Operand> {
        operands.iter().map(|operand| self.operand(operand)).collect()
    }

    pub(super) fn operand(&self, operand: &Operand) -> Operand {
        let known = match operand.place {
            Place::Slot(slot) => self.known.get(&slot),
            Place::Literal(_) => None,
        };
        Operand { place: known.copied().unwrap_or(operand.place), ..operand.clone() }
    }

    /// The operation and its operands, or a simpler one that gives the same bits because an operand is a
    /// certain number.
    fn simplified(
        &mut self,
        operation: &Operation,
        inputs: Vec<Operand>,
        output: DType,
    ) -> (Operation, Vec<Operand>) {
        let inputs = self.in_type_of_result(operation, inputs, output);
        let Operation::Binary(op) = operation else { return (operation.clone(), inputs) };
        let is_packed = inputs.iter().any(|input| input.dtype.is_packed());
        let ([left, right], true, false) = (&inputs[..], operation.is_total(output), is_packed) else {
            return (operation.clone(), inputs);
        };
        let source = |operand: &Operand| match operand.place {
            Place::Literal(index) if layout::size(&operand.shape) == Some(1) => {
                Source::Scalar(self.literals.get(index).map_or(&[], |literal| &literal[..]))
            }
            _ => Source::Dense { bytes: &[], width: operand.dtype.width() },
        };
        let given = [left, right].map(|operand| (operand.dtype, source(operand)));
        let mut numbers = Default::default();
        let Some(simpler) = ops::binary::simplified(*op, output, given, &mut numbers) else {
            return (operation.clone(), inputs);
        };
        let op = simpler.op;
        let operands = simpler.operands.map(|operand| {
            let number = operand.converted(inputs[operand.index].dtype);
            (operand.index, operand.dtype, number.map(<[u8]>::to_vec))
        });
        let operands = operands.map(|(index, dtype, number)| {
            let place = number.map_or(inputs[index].place, |number| Place::Literal(self.literal(number)));
            Operand { place, dtype, shape: inputs[index].shape.clone() }
        });
        (Operation::Binary(op), operands.into())
    }

    /// The operands, with numbers in the type of the result where that gives the same bits: those that
    /// `select` and `clip` choose from, and the counts of shifts of unsigned integers.
    fn in_type_of_result(
        &mut self,
        operation: &Operation,
        mut inputs: Vec<Operand>,
        output: DType,
    ) -> Vec<Operand> {
        let is_unsigned = output.kind() == Kind::Unsigned;
        let converted = match operation {
            Operation::Select | Operation::Clip => 1..3,
            Operation::Binary(BinaryOp::LeftShift | BinaryOp::RightShift) if is_unsigned => 1..2,
            _ => return inputs,
        };
        if output.is_packed() || inputs.len() < converted.end {
            return inputs;
        }
        for operand in &mut inputs[converted] {
            let Place::Literal(index) = operand.place else { continue };
            if operand.dtype == output || operand.dtype.is_packed() || layout::size(&operand.shape) != Some(1)
            {
                continue;
            }
            let mut buffer = Default::default();
            let number = self.literals.get(index).and_then(|number| {
                ops::binary::exact(operand.dtype, number, output, &mut buffer).map(<[u8]>::to_vec)
            });
            if let Some(number) = number {
                operand.place = Place::Literal(self.literal(number));
                operand.dtype = output;
            }
        }
        inputs
    }

    /// The number of a literal with some bytes.
    fn literal(&mut self, value: Vec<u8>) -> usize {
        let literal = self.literals.iter().position(|literal| *literal == value);
        literal.unwrap_or_else(|| {
            self.literals.push(value);
            self.literals.len() - 1
        })
    }

    /// The bytes of a result, if all operands are small literals, and the result is small too. An operation
    /// that has no result for them stays, and raises its error when it runs.
    fn constant(&self, operation: &Operation, inputs: &[Operand], output: &Target) -> Option<Vec<u8>> {
        let Target { dtype, shape, .. } = output;
        let op = operation.name();
        let small = |bytes: &usize| *bytes <= MAX_CONSTANT_BYTES;
        let size = byte_size(op, *dtype, shape).ok().filter(small)?;
        let tensors = inputs.iter().map(|operand| {
            let Place::Literal(literal) = operand.place else { return None };
            let bytes = self.literals.get(literal).filter(|bytes| small(&bytes.len()))?;
            Tensor::new(op, operand.dtype, &operand.shape, bytes).ok()
        });
        let tensors = tensors.collect::<Option<Vec<_>>>()?;
        let mut bytes = vec![0; size];
        let output = Output { dtype: *dtype, shape, bytes: &mut bytes };
        operation.run(Outputs::from_buf([output]), &tensors).ok()?;
        Some(bytes)
    }
}
