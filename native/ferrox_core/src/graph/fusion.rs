//! Fusion: gathers operations into clusters, which are computed together.
//!
//! Technique: steps are taken in order, and operations that a cluster can have are held back. An
//! operation joins the clusters that its operands come from if all their operations still have the same
//! rows then (`cluster` says what a row is). A cluster is added to the steps when another step needs
//! one of its values, or when control flow follows; before that, later operations that read its values and
//! don't depend on that step join it. A cluster that can fail is also added before a step that can fail, or
//! that has effects or no end, as a loop may. No clusters that are held back depend on each other: those that end
//! together, and read a tensor in common, become one. Operations that only rearrange elements are held back too
//! (`views`): a cluster reads their operands in their place. A fold of many rows becomes two: the cluster folds blocks
//! of them to lanes (`ops::reduce::Accumulation`), and a step after it folds these.
//!
//! Rematerialization (Briggs, Cooper and Torczon 1992): a value that takes one cheap operation and reads one
//! tensor of its size, such as `x - mean`, is computed again by a later cluster instead of read, so that no
//! memory is written for it.

mod candidate;
mod pending;

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use smallvec::SmallVec;

use self::candidate::{Candidate, is_cheap_operation};
use self::pending::{Pending, Rows};
use super::operation::Operation;
use super::source::{Operand, Place, Region, Slot, Step, Target, reads, with_inner};
use super::views::{Elements, Views};
use crate::cost::{MIN_CLUSTER_BYTES, MIN_SMALL_CLUSTER_BYTES};

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
        let is_read = |pending: &mut Pending| {
            operands
                .iter()
                .any(|operand| matches!(operand.place, Place::Slot(slot) if pending.produces(slot)))
        };
        let ended = self.pending.extract_if(.., is_read).collect();
        self.flush_together(ended);
    }

    /// Adds clusters, as one those that read a tensor in common.
    fn flush_together(&mut self, all: Vec<Pending>) {
        let mut together: Vec<Pending> = Vec::new();
        for pending in all {
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
        let ended = std::mem::take(&mut self.pending);
        self.flush_together(ended);
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
