//! Clusters that are held back, and the steps that they become.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use smallvec::SmallVec;

use super::MAX_MEMBERS;
use super::candidate::Candidate;
use crate::cost::Cost;
use crate::graph::assembled::Assembled;
use crate::graph::cluster::{
    AssembledInput, Call, Cluster, Input, Member, MemberOperand, Register, RowsFold,
};
use crate::graph::operation::Operation;
use crate::graph::rows::{Extent, InputRows, leading_axes, possible_rows};
use crate::graph::source::{Operand, Place, Slot, Step, Target};
use crate::graph::views::{Elements, View, Views};
use crate::layout::{self, Shape};
use crate::ops;

/// A cluster that is held back.
#[derive(Clone)]
pub(super) struct Pending {
    pub(super) rows: Rows,
    pub(super) candidates: Vec<Candidate>,
}

/// The rows of a cluster.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) count: usize,
    /// The number of operands that are gathered.
    pub(super) gathered: usize,
}

impl Rows {
    /// A number of rows up to `most` that all operations can have together, the last of which is `last`: the
    /// largest with which the fewest operands are gathered.
    pub(super) fn common(
        together: &[&Candidate],
        last: &Candidate,
        most: usize,
        views: &Views,
    ) -> Option<Self> {
        let produced: HashMap<Slot, Option<usize>> =
            together.iter().map(|candidate| (candidate.output.slot, candidate.row_bytes())).collect();
        let gathered = |rows| -> Option<usize> {
            // All folds end their blocks together.
            let mut folds = together.iter().filter(|candidate| candidate.accumulation.is_some());
            if let Some(first) = folds.next() {
                let block = first.folded_rows(rows)?;
                if folds.any(|other| other.folded_rows(rows) != Some(block)) {
                    return None;
                }
            }
            let produced = |slot| produced.get(&slot).copied();
            together.iter().map(|candidate| candidate.gathered(rows, produced, views)).sum()
        };
        let possible = possible_rows(last.shape()).into_iter().filter(|&rows| rows <= most && rows > 1);
        let fitting = possible.filter_map(|count| Some(Rows { gathered: gathered(count)?, count }));
        fitting.min_by_key(|rows| (rows.gathered, Reverse(rows.count)))
    }
}

impl Pending {
    /// The rows with another operation, if they are seen at once: those of the others, which are the most that there
    /// can be, where nothing is gathered.
    pub(super) fn with(&self, candidate: &Candidate, views: &Views) -> Option<Rows> {
        let has_folds = |candidate: &Candidate| candidate.accumulation.is_some();
        if self.rows.gathered != 0 || has_folds(candidate) || self.candidates.iter().any(has_folds) {
            return None;
        }
        let produced = |slot| {
            let mut candidates = self.candidates.iter();
            Some(candidates.find(|candidate| candidate.output.slot == slot)?.row_bytes())
        };
        let gathered = candidate.gathered(self.rows.count, produced, views)?;
        (gathered == 0).then_some(self.rows)
    }

    /// Whether an operation can fail when it runs.
    pub(super) fn can_fail(&self) -> bool {
        let mut candidates = self.candidates.iter();
        candidates.any(|Candidate { operation, output, .. }| !operation.is_total(output.dtype))
    }

    /// Whether two clusters, of which none reads a value of the other, have the same rows and read those of a tensor.
    pub(super) fn shares_rows(&self, other: &Pending) -> bool {
        let has_folds = |pending: &Pending| pending.candidates.iter().any(|one| one.accumulation.is_some());
        let tensors = |pending: &Pending| -> HashSet<Place> {
            let operands = pending.candidates.iter().flat_map(|candidate| &candidate.inputs);
            let has_rows = |operand: &&Operand| {
                layout::size(&operand.shape).is_some_and(|size| size >= pending.rows.count.max(2))
                    && matches!(operand.place, Place::Slot(slot) if !pending.produces(slot))
            };
            operands.filter(has_rows).map(|operand| operand.place).collect()
        };
        self.rows.count == other.rows.count
            && self.candidates.len() + other.candidates.len() <= MAX_MEMBERS
            && !(has_folds(self) && has_folds(other))
            && !tensors(self).is_disjoint(&tensors(other))
    }

    pub(super) fn produces(&self, slot: Slot) -> bool {
        self.candidates.iter().any(|candidate| candidate.output.slot == slot)
    }

    /// How often each slot is read.
    pub(super) fn reads(&self) -> HashMap<Slot, usize> {
        let mut reads: HashMap<Slot, usize> = HashMap::new();
        for operand in self.candidates.iter().flat_map(|candidate| &candidate.inputs) {
            if let Place::Slot(slot) = operand.place {
                *reads.entry(slot).or_default() += 1;
            }
        }
        reads
    }

    /// The step of the cluster, and the steps that end folds of rows, given how often slots are read in the
    /// region, the number of the region's slots, how often slots are read in the cluster, and the views
    /// that it reads in place. Returns `None` if an operation has no kernel for its types, which is reported
    /// where it is alone.
    pub(super) fn cluster(
        &self,
        (reads, slots): (&[usize], usize),
        inner_reads: &HashMap<Slot, usize>,
        views: &Views,
    ) -> Option<Vec<Step>> {
        let mut registers = Registers::default();
        let mut left = inner_reads.clone();
        let mut members = Vec::with_capacity(self.candidates.len());
        let mut outputs = Vec::new();
        let mut cost: Cost = 0;
        let mut folds = Vec::new();
        let mut lanes = Vec::new();
        let mut ends = Vec::new();
        for candidate in &self.candidates {
            let shape = candidate.shape();
            let leading = leading_axes(shape, self.rows.count)?;
            let row_elements: usize = shape[leading..].iter().product();
            let Target { slot, dtype, .. } = candidate.output;
            if let (Some(accumulation), [input]) = (&candidate.accumulation, &candidate.inputs[..]) {
                // The operand is read at the end of each block, so that its register stays taken.
                let register = registers.of(input, input, None, 0);
                let element_cost = ops::reduce::cost(input.dtype);
                cost = cost.saturating_add(element_cost.saturating_mul(row_elements as Cost));
                let (op, lane, width) = (accumulation.op(), accumulation.lane(), accumulation.width());
                let fold = RowsFold::new(accumulation.clone(), register, input.dtype, row_elements)?;
                let shape: Shape = [self.rows.count.div_ceil(fold.rows), width].into_iter().collect();
                let target = Target { slot: slots + folds.len(), dtype: lane, shape };
                let Target { dtype, shape, slot } = target.clone();
                ends.push(Step::Operation {
                    operation: Operation::Reduce(op, Shape::from_elem(0, 1)),
                    inputs: vec![Operand { place: Place::Slot(slot), dtype, shape }],
                    outputs: vec![candidate.output.clone()],
                });
                folds.push(fold);
                lanes.push(target);
                continue;
            }
            let (call, element_cost) = candidate.call()?;
            let elements = match call {
                Call::Reduce { reduced, .. } => row_elements / reduced.max(1),
                _ => row_elements,
            };
            let mut operands = SmallVec::new();
            for input in &candidate.inputs {
                let (extent, rows) = views.rows(input, shape, leading)?;
                let same_bytes =
                    if extent == Extent::SameRow { row_elements * input.dtype.width() } else { 0 };
                let register = match views.of(input).map(View::elements) {
                    Some(Elements::Assembled(assembled, sources)) => {
                        registers.assembled((assembled, sources), rows)?
                    }
                    Some(Elements::Of(source, _)) => registers.of(input, source, rows, same_bytes),
                    None => registers.of(input, input, rows, same_bytes),
                };
                operands.push(MemberOperand { register, dtype: input.dtype, extent });
            }
            let used = inner_reads.get(&slot).copied().unwrap_or(0);
            let width = elements * dtype.width();
            let to = if reads.get(slot).copied().unwrap_or(0) > used {
                outputs.push(candidate.output.clone());
                registers.output(slot, width)
            } else {
                registers.buffer(slot, width)
            };
            for input in &candidate.inputs {
                if let Place::Slot(slot) = input.place
                    && let Some(left) = left.get_mut(&slot)
                {
                    *left -= 1;
                    if *left == 0 {
                        registers.free(slot);
                    }
                }
            }
            let row_cost = element_cost.saturating_mul(row_elements as Cost);
            cost = cost.saturating_add(row_cost);
            members.push(Member { call, operands, dtype, elements, to, cost: row_cost });
        }
        let Registers { inputs, buffers, outputs: widths, .. } = registers;
        let (rows, kernels, product, runs_at_once) = (self.rows.count, Vec::new(), None, false);
        let cluster = Cluster {
            rows,
            inputs,
            members,
            buffers,
            outputs: widths,
            folds,
            product,
            cost,
            kernels,
            runs_at_once,
        };
        outputs.extend(lanes);
        let mut steps = vec![Step::Cluster { cluster: Box::new(cluster), outputs }];
        steps.extend(ends);
        Some(steps)
    }
}

/// Gives each value of a cluster its place.
#[derive(Default)]
struct Registers {
    places: HashMap<Slot, Register>,
    inputs: Vec<Input>,
    buffers: Vec<usize>,
    /// The buffers whose value is not read again.
    unused: Vec<usize>,
    outputs: Vec<usize>,
}

impl Registers {
    /// The register of an operand, which is read from these rows of `source` if it comes from outside;
    /// `same_bytes` as in [`Input`].
    fn of(
        &mut self,
        operand: &Operand,
        source: &Operand,
        rows: Option<InputRows>,
        same_bytes: usize,
    ) -> Register {
        if let Place::Slot(slot) = operand.place
            && let Some(&register) = self.places.get(&slot)
        {
            return register;
        }
        // A row that all rows have is copied, and its copies are those of one length.
        let is_known = |Input { operand, rows: known, same_bytes: known_bytes, assembled, .. }: &Input| {
            let is_same = operand.dtype == source.dtype && operand.shape == source.shape;
            assembled.is_none()
                && operand.place == source.place
                && is_same
                && *known == rows
                && *known_bytes == same_bytes
        };
        Register::Input(self.inputs.iter().position(is_known).unwrap_or_else(|| {
            self.inputs.push(Input { rows, same_bytes, ..Input::whole(source.clone()) });
            self.inputs.len() - 1
        }))
    }

    /// The register of rows that are assembled from sources.
    fn assembled(
        &mut self,
        (assembled, sources): (&Arc<Assembled>, &[Operand]),
        rows: Option<InputRows>,
    ) -> Option<Register> {
        let is_known = |Input { assembled: known, rows: known_rows, .. }: &Input| {
            known.as_ref().is_some_and(|known| Arc::ptr_eq(&known.value, assembled)) && *known_rows == rows
        };
        if let Some(index) = self.inputs.iter().position(is_known) {
            return Some(Register::Input(index));
        }
        let first = sources.first()?;
        let whole = sources.iter().map(|source| {
            self.inputs.push(Input::whole(source.clone()));
            self.inputs.len() - 1
        });
        let sources = whole.collect();
        let value = assembled.clone();
        self.inputs.push(Input {
            rows,
            assembled: Some(AssembledInput { value, sources }),
            ..Input::whole(first.clone())
        });
        Some(Register::Input(self.inputs.len() - 1))
    }

    fn output(&mut self, slot: Slot, width: usize) -> Register {
        self.outputs.push(width);
        let register = Register::Output(self.outputs.len() - 1);
        self.places.insert(slot, register);
        register
    }

    /// A buffer for a value; one whose value has been read, if there is one.
    fn buffer(&mut self, slot: Slot, width: usize) -> Register {
        let index = self.unused.pop().unwrap_or_else(|| {
            self.buffers.push(0);
            self.buffers.len() - 1
        });
        self.buffers[index] = self.buffers[index].max(width);
        let register = Register::Buffer(index);
        self.places.insert(slot, register);
        register
    }

    fn free(&mut self, slot: Slot) {
        if let Some(&Register::Buffer(index)) = self.places.get(&slot) {
            self.unused.push(index);
        }
    }
}
