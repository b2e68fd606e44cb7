//! Fusion: gathers operations into clusters, which are computed together.
//!
//! Technique: steps are taken in order, and operations that a cluster can have are held back. An
//! operation joins the clusters that its operands come from if all their operations still have the same
//! rows then (`cluster` says what a row is). A cluster is added to the steps when another step needs
//! one of its values, or when control flow follows; before that, later operations that read its values and
//! don't depend on that step join it. A cluster that can fail is also added before a step that can fail, or
//! that has effects or no end, as a loop may. No clusters that are held back depend on each other. Slices, transposes and reversals are held back too: a cluster that is the only reader reads
//! their operand in their place (`rows`). A fold of many rows becomes two: the cluster folds blocks of them
//! to lanes (`ops::reduce::Accumulation`), and a step after it folds these.
//!
//! Rematerialization (Briggs, Cooper and Torczon 1992): a value that takes one cheap operation and reads one
//! tensor of its size, such as `x - mean`, is computed again by a later cluster instead of read, so that no
//! memory is written for it.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use smallvec::SmallVec;

use super::assembled::Assembled;
use super::cluster::{
    AssembledInput, Call, Cluster, Fold, Input, Member, MemberOperand, Register, RowsFold, leading_axes,
    possible_rows,
};
use super::operation::Operation;
use super::rows::{Extent, InputRows};
use super::source::{Operand, Place, Region, Slot, Step, Target, reads, with_inner};
use super::views::{Elements, View, Views};
use crate::DType;
use crate::cost::{
    Cost, MAX_CLUSTER_ROW_BYTES, MIN_CLUSTER_BYTES, MIN_CLUSTER_FOLD_BLOCKS, MIN_SMALL_CLUSTER_BYTES,
};
use crate::exec::convert;
use crate::layout::{self, Shape};
use crate::ops;
use crate::ops::binary::BinaryOp;
use crate::ops::reduce::Accumulation;
use crate::tensor::byte_size;

/// The maximum number of operations in a cluster, which bounds the time to find clusters.
pub(super) const MAX_MEMBERS: usize = 64;

/// The number of steps among which operations are looked for that can join a cluster before it is added to the
/// steps, which bounds the time to find them.
const MAX_STEPS_AHEAD: usize = 128;

/// The maximum number of operations that are computed again for one value.
const MAX_CHEAP_OPERATIONS: usize = 3;

/// How often smaller than the result the other operands of an operation are that is computed again.
const MIN_REPEATS_OF_CHEAP: usize = 8;

/// The region, with operations in clusters.
pub(super) fn fuse(region: &Region) -> Region {
    fuse_with(region, false)
}

/// The region, with as many operations in one cluster as can be computed by rows, whatever their size.
pub(super) fn fuse_all(region: &Region) -> Region {
    fuse_with(region, true)
}

fn fuse_with(region: &Region, all: bool) -> Region {
    let reads = reads(region);
    let slots = &Cell::new(region.slots);
    let again = if all { Vec::new() } else { read_by_clusters(region) };
    let (steps, pending, views, cheap, rest, taken) = Default::default();
    let mut fusion =
        Fusion { reads: &reads, all, slots, again: &again, steps, pending, views, cheap, rest, taken };
    fusion.run(&region.steps);
    let Fusion { steps, cheap, .. } = fusion;
    let region = Region { steps, slots: slots.get(), ..region.clone() };
    if cheap.is_empty() { region } else { without_unread(region) }
}

/// For each slot, whether it is read only by operations that clusters have, outside of branches.
fn read_by_clusters(region: &Region) -> Vec<bool> {
    let mut reads = reads(region);
    for step in &region.steps {
        if let Step::Operation { operation, inputs, outputs } = step
            && let [output] = &outputs[..]
            && Candidate::new(operation, inputs, output).is_possible()
        {
            for operand in inputs {
                if let Place::Slot(slot) = operand.place {
                    reads[slot] -= 1;
                }
            }
        }
    }
    reads.iter().map(|&others| others == 0).collect()
}

/// The region without values that clusters compute for nobody.
fn without_unread(mut region: Region) -> Region {
    let reads = reads(&region);
    let is_read = |target: &Target| reads[target.slot] > 0;
    region.steps.retain_mut(|step| match step {
        // A small one is compiled already, and computes nothing again.
        Step::Cluster { cluster, outputs } if !cluster.runs_at_once => {
            for index in (0..cluster.outputs.len()).rev() {
                if !is_read(&outputs[index]) {
                    cluster.keep_in_buffer(index);
                    outputs.remove(index);
                }
            }
            true
        }
        Step::Operation { operation, outputs, .. } => {
            !is_cheap_operation(operation) || outputs.iter().any(is_read)
        }
        _ => true,
    });
    region
}

/// Whether an operation takes less time than to read an element of its result from memory. It can't fail.
fn is_cheap_operation(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Binary(
            BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::Max | BinaryOp::Min
        )
    )
}

struct Fusion<'a> {
    reads: &'a [usize],
    /// Whether small operations begin clusters, and join clusters that they don't depend on.
    all: bool,
    /// The number of slots of the region.
    slots: &'a Cell<usize>,
    /// For each slot, whether only clusters read it, which can compute it again; no slot if that isn't asked.
    again: &'a [bool],
    steps: Vec<Step>,
    pending: Vec<Pending>,
    views: Views,
    /// The operations that can be computed again, of clusters that are no longer held back, by their slots.
    cheap: HashMap<Slot, Cheap>,
    /// The steps from the current one on.
    rest: &'a [Step],
    /// The results of later operations that have joined clusters already.
    taken: HashSet<Slot>,
}

/// An operation that is computed again rather than read.
#[derive(Clone)]
struct Cheap {
    candidate: Candidate,
    /// The number of operations, with those that its operands are computed by.
    operations: usize,
}

/// The step of a cluster, which is small, if it takes one call of machine code: small operations take less time one by
/// one than in a cluster with blocks and buffers.
fn one_call(mut steps: Vec<Step>) -> Option<Vec<Step>> {
    let [Step::Cluster { cluster, .. }] = &mut steps[..] else { return None };
    cluster.compile();
    cluster.runs_at_once.then_some(steps)
}

/// A cluster that is held back.
#[derive(Clone)]
struct Pending {
    rows: Rows,
    candidates: Vec<Candidate>,
}

/// An operation that a cluster can have.
#[derive(Clone)]
struct Candidate {
    operation: Operation,
    inputs: Vec<Operand>,
    output: Target,
    /// The fold of rows, if it is one.
    accumulation: Option<Accumulation>,
    /// The slot of the value that it computes again, if it does.
    again: Option<Slot>,
}

impl<'a> Fusion<'a> {
    fn run(&mut self, steps: &'a [Step]) {
        self.rest = steps;
        while let [step, rest @ ..] = self.rest {
            let is_taken = match step {
                Step::Operation { outputs, .. } => {
                    outputs.iter().any(|output| self.taken.remove(&output.slot))
                }
                _ => false,
            };
            if !is_taken {
                self.step(step);
            }
            self.rest = rest;
        }
        self.flush_all();
    }

    /// Holds an operation back that is a view; returns whether it is one.
    fn hold_back(&mut self, operation: &Operation, inputs: &[Operand], outputs: &[Target]) -> bool {
        let reads = outputs.first().and_then(|output| self.reads.get(output.slot)).copied().unwrap_or(0);
        // A loop over rows computes each row from the same row of the trip before.
        let Some(view) = self.views.view((operation, inputs, outputs), reads, !self.all) else {
            return false;
        };
        self.look_ahead(inputs);
        self.flush_owners(inputs);
        let is_assembled = matches!(view.elements(), Elements::Assembled(..));
        for input in inputs {
            if !is_assembled || self.views.read_through(input).is_none() {
                self.finish_views(std::slice::from_ref(input));
            }
        }
        self.views.push(view);
        true
    }

    fn inner(&self, steps: &[Step]) -> Vec<Step> {
        let (inner, pending, views, cheap, taken) = Default::default();
        let mut fusion = Fusion { again: &[], steps: inner, pending, views, cheap, taken, ..*self };
        fusion.run(steps);
        fusion.steps
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Operation { operation, inputs, outputs } => {
                if self.hold_back(operation, inputs, outputs) {
                    return;
                }
                if !outputs.iter().all(|output| operation.is_total(output.dtype)) {
                    self.flush_failing(inputs);
                }
                if let [output] = &outputs[..] {
                    let candidate = Candidate::new(operation, inputs, output);
                    let is_possible = candidate.is_possible();
                    if is_possible
                        && (self.join_again(&candidate)
                            || self.join(&candidate)
                            || self.finish_views(inputs) && self.join(&candidate))
                    {
                        return;
                    }
                }
                self.look_ahead(inputs);
                self.flush_for(inputs);
                self.steps.push(step.clone());
            }
            Step::Fold { input, initial, .. } => self.run_region(step, &[input.clone(), initial.clone()]),
            Step::While { initial, .. } => self.run_region(step, initial),
            Step::ReverseLoop(reverse) => {
                self.run_region(step, &reverse.inputs().cloned().collect::<Vec<_>>());
            }
            Step::Call { .. } | Step::Cluster { .. } => {
                self.flush_all();
                self.steps.push(step.clone());
            }
            Step::Cond { .. } | Step::Unless { .. } => {
                self.flush_all();
                self.steps.push(with_inner(step, &|steps| self.inner(steps)));
            }
        }
    }

    /// Adds a step that runs regions, and reads some operands.
    fn run_region(&mut self, step: &Step, operands: &[Operand]) {
        self.flush_failing(&[]);
        self.flush_for(operands);
        self.steps.push(step.clone());
    }

    /// The numbers of the clusters that operands come from.
    fn owners(&self, operands: &[Operand]) -> SmallVec<[usize; 3]> {
        let mut owners = SmallVec::new();
        for operand in operands {
            let Place::Slot(slot) = operand.place else { continue };
            let owner = self.pending.iter().position(|pending| pending.produces(slot));
            if let Some(owner) = owner
                && !owners.contains(&owner)
            {
                owners.push(owner);
            }
        }
        owners.sort_unstable();
        owners
    }

    /// Adds an operation to a cluster; returns whether it can be in one.
    fn join(&mut self, candidate: &Candidate) -> bool {
        if self.join_pending(candidate) {
            return true;
        }
        let Some(alone) = self.alone(candidate) else { return false };
        self.look_ahead(&candidate.inputs);
        self.flush_owners(&candidate.inputs);
        if !self.join_again(candidate) {
            self.pending.push(alone);
        }
        true
    }

    /// Adds an operation to clusters that are held back; returns whether it can be in one of them.
    fn join_pending(&mut self, candidate: &Candidate) -> bool {
        let owners = self.owners(&candidate.inputs);
        if candidate.accumulation.is_some() {
            // A fold alone is not faster by blocks.
            return !self.all && self.merge(&owners, candidate);
        }
        let every: SmallVec<[usize; 3]> = (0..self.pending.len()).collect();
        self.all && self.merge(&every, candidate)
            || self.merge(&owners, candidate)
            || self.join_one(&owners, candidate)
    }

    /// A cluster that begins with an operation.
    fn alone(&self, candidate: &Candidate) -> Option<Pending> {
        if candidate.accumulation.is_some() || !self.all && candidate.bytes() < MIN_SMALL_CLUSTER_BYTES {
            return None;
        }
        let rows = Rows::common(&[candidate], candidate, usize::MAX, &self.views)?;
        Some(Pending { rows, candidates: vec![candidate.clone()] })
    }

    /// Adds an operation to a cluster that computes cheap operands again; returns whether there are any, and
    /// it can be in one.
    fn join_again(&mut self, candidate: &Candidate) -> bool {
        let is_cheap = |operand: &Operand| match operand.place {
            Place::Slot(slot) => self.cheap.contains_key(&slot),
            Place::Literal(_) => false,
        };
        if !candidate.inputs.iter().any(is_cheap) {
            return false;
        }
        let before = (self.pending.clone(), self.views.clone(), self.cheap.clone());
        let steps = self.steps.len();
        let mut candidate = candidate.clone();
        let joins = candidate.inputs.iter_mut().all(|operand| self.compute_again(operand))
            && self.join_pending(&candidate);
        if !joins {
            self.steps.truncate(steps);
            (self.pending, self.views, self.cheap) = before;
        }
        joins
    }

    /// Adds the cheap operations that an operand comes from to the clusters again, and reads their result;
    /// returns whether they can be in one.
    fn compute_again(&mut self, operand: &mut Operand) -> bool {
        let Place::Slot(slot) = operand.place else { return true };
        let Some(Cheap { candidate, .. }) = self.cheap.get(&slot) else { return true };
        let known = self.pending.iter().flat_map(|pending| &pending.candidates);
        if let Some(known) = known.clone().find(|known| known.again == Some(slot)) {
            operand.place = Place::Slot(known.output.slot);
            return true;
        }
        let mut candidate = Candidate { again: Some(slot), ..candidate.clone() };
        candidate.output.slot = self.slots.get();
        self.slots.set(self.slots.get() + 1);
        operand.place = Place::Slot(candidate.output.slot);
        if !candidate.inputs.iter_mut().all(|operand| self.compute_again(operand)) {
            return false;
        }
        self.join_pending(&candidate) || {
            let alone = self.alone(&candidate).filter(|_| self.owners(&candidate.inputs).is_empty());
            alone.map(|alone| self.pending.push(alone)).is_some()
        }
    }

    /// Adds an operation to the largest of some clusters that it can be in without the others, which go
    /// before; returns whether there is one.
    fn join_one(&mut self, numbers: &[usize], candidate: &Candidate) -> bool {
        let bytes = |&number: &usize| self.pending[number].candidates.iter().map(Candidate::bytes).max();
        let mut numbers: SmallVec<[usize; 3]> = numbers.iter().copied().collect();
        numbers.sort_by_key(|number| Reverse(bytes(number)));
        if numbers.len() < 2 || !numbers.iter().any(|&number| self.merge(&[number], candidate)) {
            return false;
        }
        let merged = self.pending.pop();
        self.flush_owners(&candidate.inputs);
        self.pending.extend(merged);
        true
    }

    /// Adds an operation to some clusters together, given by ascending numbers; returns whether there is
    /// one, and they can be one with the operation.
    fn merge(&mut self, numbers: &[usize], candidate: &Candidate) -> bool {
        let Some((&first, others)) = numbers.split_first() else { return false };
        let clusters = || numbers.iter().map(|&number| &self.pending[number]);
        let members: usize = clusters().map(|pending| pending.candidates.len()).sum();
        if members >= MAX_MEMBERS {
            return false;
        }
        let kept = if others.is_empty() { self.pending[first].with(candidate, &self.views) } else { None };
        let rows = kept.or_else(|| {
            let most = clusters().map(|pending| pending.rows.count).min()?;
            let together: Vec<&Candidate> =
                clusters().flat_map(|pending| &pending.candidates).chain([candidate]).collect();
            Rows::common(&together, candidate, most, &self.views)
        });
        let Some(rows) = rows else { return false };
        let mut joined = Vec::new();
        for &number in numbers.iter().rev() {
            joined.push(self.pending.remove(number).candidates);
        }
        let mut candidates = joined.pop().unwrap_or_default();
        candidates.extend(joined.into_iter().rev().flatten());
        candidates.push(candidate.clone());
        self.pending.push(Pending { rows, candidates });
        true
    }

    /// Adds later operations to the clusters that operands of the current step come from, before these are added
    /// to the steps: those that read a value of them, don't depend on this step, and can't fail.
    fn look_ahead(&mut self, operands: &[Operand]) {
        if self.all || self.owners(operands).is_empty() {
            return;
        }
        let Some((Step::Operation { outputs, .. }, later)) = self.rest.split_first() else { return };
        let mut missing: HashSet<Slot> = outputs.iter().map(|output| output.slot).collect();
        for step in later.iter().take(MAX_STEPS_AHEAD) {
            match step {
                Step::Operation { operation, inputs, outputs } => {
                    let is_taken = outputs.iter().any(|output| self.taken.contains(&output.slot));
                    if !is_taken && !self.takes(operation, inputs, outputs, (operands, &missing)) {
                        missing.extend(outputs.iter().map(|output| output.slot));
                    }
                }
                Step::Fold { output, .. } => {
                    missing.insert(output.slot);
                }
                _ => return,
            }
        }
    }

    /// Adds a later operation to the clusters that its operands come from, if it reads a value of those that
    /// `operands` come from, and none that is missing; returns whether it is in one.
    fn takes(
        &mut self,
        operation: &Operation,
        inputs: &[Operand],
        outputs: &[Target],
        (operands, missing): (&[Operand], &HashSet<Slot>),
    ) -> bool {
        let [output] = outputs else { return false };
        let is_missing = |operand: &Operand| match operand.place {
            Place::Slot(slot) => missing.contains(&slot),
            Place::Literal(_) => false,
        };
        if !operation.is_total(output.dtype) || inputs.iter().any(is_missing) {
            return false;
        }
        let (owners, flushed) = (self.owners(inputs), self.owners(operands));
        if !owners.iter().any(|owner| flushed.contains(owner)) {
            return false;
        }
        let candidate = Candidate::new(operation, inputs, output);
        let takes = candidate.is_possible() && self.merge(&owners, &candidate);
        if takes {
            self.taken.insert(output.slot);
        }
        takes
    }

    /// Adds what operands come from to the steps.
    fn flush_for(&mut self, operands: &[Operand]) {
        self.flush_owners(operands);
        self.finish_views(operands);
    }

    /// Adds the views that operands come from to the steps; returns whether there are any.
    fn finish_views(&mut self, operands: &[Operand]) -> bool {
        let mut any = false;
        for operand in operands {
            if let Place::Slot(slot) = operand.place {
                any |= self.finish_view(slot);
            }
        }
        any
    }

    /// Adds the view of a slot to the steps, after those that it reads; returns whether there is one.
    fn finish_view(&mut self, slot: Slot) -> bool {
        let Some(view) = self.views.take(slot) else { return false };
        self.finish_views(view.inputs());
        self.steps.push(view.step());
        true
    }

    fn flush_owners(&mut self, operands: &[Operand]) {
        let owners = self.owners(operands).into_iter().rev();
        let pending = owners.map(|owner| self.pending.remove(owner)).collect();
        self.flush_together(pending);
    }

    /// Adds clusters, as one those that read a tensor in common.
    fn flush_together(&mut self, all: Vec<Pending>) {
        let mut together: Vec<Pending> = Vec::new();
        for pending in all.into_iter().rev() {
            match together.iter_mut().find(|other| other.shares_rows(&pending)) {
                Some(other) => other.candidates.extend(pending.candidates),
                None => together.push(pending),
            }
        }
        together.into_iter().for_each(|pending| self.flush(pending));
    }

    /// Adds the cluster that can fail, of which there is at most one, before a step that can fail too: its error
    /// is the first. A cluster that `operands` of the step come from stays, since the step may join it.
    fn flush_failing(&mut self, operands: &[Operand]) {
        let owners = self.owners(operands);
        let fails = |(number, pending): (usize, &Pending)| pending.can_fail() && !owners.contains(&number);
        if !self.all
            && let Some(number) = self.pending.iter().enumerate().position(fails)
        {
            let pending = self.pending.remove(number);
            self.flush(pending);
        }
    }

    fn flush_all(&mut self) {
        let pending = std::mem::take(&mut self.pending).into_iter().rev().collect();
        self.flush_together(pending);
        for slot in self.views.slots() {
            self.finish_view(slot);
        }
    }

    fn flush(&mut self, pending: Pending) {
        let reads = pending.reads();
        let count = |slot: Slot| reads.get(&slot).copied().unwrap_or(0);
        let (in_place, steps) = self.views.read_by(count);
        for slot in steps {
            self.finish_view(slot);
        }
        let is_small = pending.candidates.iter().all(|candidate| candidate.bytes() < MIN_CLUSTER_BYTES);
        if !self.again.is_empty() && !is_small {
            self.note_cheap(&pending, &in_place);
        }
        let pays = self.all || pending.candidates.len() > 1 || !is_small && !in_place.is_empty();
        let slots = self.slots.get();
        let steps = if pays { pending.cluster((self.reads, slots), &reads, &in_place) } else { None };
        let steps = steps.and_then(|steps| if self.all || !is_small { Some(steps) } else { one_call(steps) });
        match steps {
            Some(steps) => {
                // Folds have a slot for lanes.
                self.slots.set(slots + steps.len() - 1);
                self.steps.extend(steps);
                for slot in in_place.slots() {
                    self.views.release(slot, reads.get(&slot).copied().unwrap_or(0));
                }
            }
            None => {
                for slot in in_place.slots() {
                    self.finish_view(slot);
                }
                self.steps.extend(pending.candidates.into_iter().map(|candidate| Step::Operation {
                    operation: candidate.operation,
                    inputs: candidate.inputs,
                    outputs: vec![candidate.output],
                }));
            }
        }
    }

    /// Notes which operations of a cluster can be computed again by others.
    fn note_cheap(&mut self, pending: &Pending, views: &Views) {
        for candidate in &pending.candidates {
            let produced = |slot: Slot| pending.produces(slot) || views.has(slot);
            let operations = candidate.inputs.iter().map(|operand| match operand.place {
                Place::Slot(slot) if let Some(cheap) = self.cheap.get(&slot) => Some(cheap.operations),
                Place::Slot(slot) if produced(slot) => None,
                _ => Some(0),
            });
            let Some(operations) = operations.sum::<Option<usize>>() else { continue };
            let slot = candidate.output.slot;
            let only_clusters = self.again.get(slot).copied().unwrap_or(false);
            if only_clusters && operations < MAX_CHEAP_OPERATIONS && candidate.is_cheap() {
                let cheap = Cheap { candidate: candidate.clone(), operations: operations + 1 };
                self.cheap.insert(slot, cheap);
            }
        }
    }
}

/// The rows of a cluster.
#[derive(Clone, Copy)]
struct Rows {
    count: usize,
    /// The number of operands that are gathered.
    gathered: usize,
}

impl Rows {
    /// A number of rows up to `most` that all operations can have together, the last of which is `last`: the
    /// largest with which the fewest operands are gathered.
    fn common(together: &[&Candidate], last: &Candidate, most: usize, views: &Views) -> Option<Self> {
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

impl Candidate {
    fn new(operation: &Operation, inputs: &[Operand], output: &Target) -> Self {
        let accumulation = match (operation, inputs) {
            (Operation::Reduce(op, axes), [input]) => {
                ops::reduce::accumulation(*op, (input.dtype, &input.shape), axes, MIN_CLUSTER_FOLD_BLOCKS)
            }
            _ => None,
        };
        let (operation, inputs, output) = (operation.clone(), inputs.to_vec(), output.clone());
        Candidate { operation, inputs, output, accumulation, again: None }
    }

    /// Whether the operation takes less time than to read its result from memory, and reads one tensor of
    /// this size at most.
    fn is_cheap(&self) -> bool {
        let Some(bytes) = self.output_bytes() else { return false };
        let mut large: SmallVec<[Place; 2]> = SmallVec::new();
        for operand in &self.inputs {
            let Ok(read) = byte_size(self.operation.name(), operand.dtype, &operand.shape) else {
                return false;
            };
            if read > bytes {
                return false;
            }
            if read > bytes / MIN_REPEATS_OF_CHEAP && !large.contains(&operand.place) {
                large.push(operand.place);
            }
        }
        is_cheap_operation(&self.operation) && large.len() == 1 && self.again.is_none()
    }

    /// The shape whose leading axes are the rows.
    fn shape(&self) -> &[usize] {
        match &self.operation {
            Operation::Reduce(..) | Operation::ArgReduce(..) => {
                self.inputs.first().map_or(&[], |input| &input.shape)
            }
            _ => &self.output.shape,
        }
    }

    /// The axes that the operation folds; `None` if it is not a fold.
    fn folded(&self) -> Option<Shape> {
        match &self.operation {
            Operation::Reduce(_, axes) => Some(axes.clone()),
            Operation::ArgReduce(_, Some(axis), _) => Some(Shape::from_elem(*axis, 1)),
            Operation::ArgReduce(..) => Some((0..self.shape().len()).collect()),
            _ => None,
        }
    }

    /// The number of elements that the operation folds to one; `None` if it is not a fold.
    fn reduced(&self) -> Option<usize> {
        Some(self.folded()?.iter().map(|&axis| self.shape()[axis]).product())
    }

    /// Whether the operation is one that clusters have.
    fn is_possible(&self) -> bool {
        let fits = match &self.operation {
            Operation::Binary(_) | Operation::Unary(..) | Operation::Select | Operation::Clip => true,
            // A number is converted where it is used.
            Operation::AsType => true,
            Operation::Reduce(..) | Operation::ArgReduce(..) => {
                // The last axes, in order.
                let (rank, axes) = (self.shape().len(), self.folded().unwrap_or_default());
                !axes.is_empty()
                    && axes.iter().rev().enumerate().all(|(i, &axis)| axis.checked_add(i + 1) == Some(rank))
                    || self.accumulation.is_some()
            }
            _ => false,
        };
        fits && !self.dtypes().any(DType::is_packed)
    }

    /// The number of rows in a block, if it is a fold of rows whose blocks don't end within one.
    fn folded_rows(&self, rows: usize) -> Option<usize> {
        let elements = layout::size(self.shape())? / rows.max(1);
        RowsFold::rows(self.accumulation.as_ref()?, elements)
    }

    /// The number of bytes of the largest value if all were of one shape. Small operations don't begin
    /// clusters, but join others.
    fn bytes(&self) -> usize {
        let widest = self.dtypes().map(DType::width).max().unwrap_or(0);
        self.shape().iter().product::<usize>() * widest
    }

    fn dtypes(&self) -> impl Iterator<Item = DType> {
        self.inputs.iter().map(|input| input.dtype).chain([self.output.dtype])
    }

    /// The number of bytes of the result, if it has rows.
    fn row_bytes(&self) -> Option<usize> {
        self.output_bytes().filter(|_| self.accumulation.is_none())
    }

    /// The number of bytes of the result.
    fn output_bytes(&self) -> Option<usize> {
        byte_size(self.operation.name(), self.output.dtype, &self.output.shape).ok()
    }

    /// The number of operands that are gathered if the operation is computed by rows, given the slots that
    /// are computed with it, with the bytes of those that have rows, and the views that it may read; `None` if
    /// it can't be.
    fn gathered(
        &self,
        rows: usize,
        produced: impl Fn(Slot) -> Option<Option<usize>>,
        views: &Views,
    ) -> Option<usize> {
        let shape = self.shape();
        let leading = leading_axes(shape, rows)?;
        let elements: usize = shape[leading..].iter().product();
        let width = self.inputs.iter().map(|input| input.dtype.width()).max().unwrap_or(1);
        let row_bytes = elements * width.max(self.output.dtype.width());
        if elements == 0 || row_bytes > MAX_CLUSTER_ROW_BYTES {
            return None;
        }
        let folds_rows = self.accumulation.is_some();
        if let Some(axes) = self.folded()
            && !folds_rows
            && axes.first().is_none_or(|&first| first < leading)
        {
            return None;
        }
        let reads_rows =
            matches!(self.operation, Operation::AsType | Operation::Unary(..)) || self.folded().is_some();
        let gathered = self.inputs.iter().map(|input| {
            let (extent, rows) = views.rows(input, shape, leading)?;
            let produced = match input.place {
                Place::Slot(slot) => produced(slot),
                Place::Literal(_) => None,
            };
            // The result of a fold of rows is not there before the end of the cluster.
            let bytes = byte_size(self.operation.name(), input.dtype, &input.shape).ok();
            if produced.is_some_and(|produced| produced != bytes) {
                return None;
            }
            // The rows of a value of the cluster are those of the block.
            let is_produced = produced.is_some();
            let fits = (extent == Extent::Row || !reads_rows)
                && (is_produced || !folds_rows)
                && (!is_produced || rows.as_ref().is_some_and(InputRows::are_adjacent));
            fits.then(|| usize::from(rows.is_some_and(|rows| rows.is_gathered)))
        });
        gathered.sum()
    }
}

impl Pending {
    /// The rows with another operation, if they are seen at once: those of the others, which are the most that there
    /// can be, where nothing is gathered.
    fn with(&self, candidate: &Candidate, views: &Views) -> Option<Rows> {
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
    fn can_fail(&self) -> bool {
        let mut candidates = self.candidates.iter();
        candidates.any(|Candidate { operation, output, .. }| !operation.is_total(output.dtype))
    }

    /// Whether two clusters, of which none reads a value of the other, have the same rows and read those of a tensor.
    fn shares_rows(&self, other: &Pending) -> bool {
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

    fn produces(&self, slot: Slot) -> bool {
        self.candidates.iter().any(|candidate| candidate.output.slot == slot)
    }

    /// How often each slot is read.
    fn reads(&self) -> HashMap<Slot, usize> {
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
    fn cluster(
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

impl Candidate {
    /// The kernel, and the cost of an element of the shape that is divided into rows.
    fn call(&self) -> Option<(Call, Cost)> {
        let dtypes: SmallVec<[_; 3]> = self.inputs.iter().map(|input| input.dtype).collect();
        let to = self.output.dtype;
        Some(match (&self.operation, &dtypes[..]) {
            (Operation::Binary(op), &[a, b]) => {
                let plan = ops::binary::plan(*op, to, [a, b]).ok()?;
                (Call::Binary(*op, plan), plan.cost)
            }
            (Operation::Unary(op, math), &[a]) => {
                let plan = ops::unary::plan(*op, *math, to, a).ok()?;
                (Call::Unary(*op, *math, plan), plan.cost)
            }
            (Operation::Select, &[p, a, b]) => {
                let plan = ops::ternary::select_plan(to, [p, a, b]);
                let cost = plan.cost;
                (Call::Ternary("select", Box::new(plan)), cost)
            }
            (Operation::Clip, &[a, b, c]) => {
                let plan = ops::ternary::clip_plan(to, [a, b, c]).ok()?;
                let cost = plan.cost;
                (Call::Ternary("clip", Box::new(plan)), cost)
            }
            (Operation::AsType, &[a]) => (Call::Convert, convert::cost(a, to)),
            (&Operation::Reduce(op, _), &[a]) => {
                (Call::Reduce { fold: Fold::Value(op), reduced: self.reduced()? }, ops::reduce::cost(a))
            }
            (&Operation::ArgReduce(op, _, tie_break), &[a]) if !a.is_complex() && !to.is_complex() => {
                let (fold, reduced) = (Fold::Index(op, tie_break), self.reduced()?);
                (Call::Reduce { fold, reduced }, ops::reduce::arg_cost(a, reduced))
            }
            _ => return None,
        })
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
