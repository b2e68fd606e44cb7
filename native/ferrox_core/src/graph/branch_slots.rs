//! Slots of their own for what only one branch of a condition reads (live-range splitting).
//!
//! What several branches compute has the same slot in each, so that a later step can find it computed. If
//! no later step reads it, each branch gets another slot for it. Then all reads of a slot are of one
//! value, and fusion sees which values a branch alone reads: a cluster doesn't have to write these.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::source::{Branch, Clause, Operand, Place, Region, Slot, Step, Target, each};

/// The region with these slots split.
pub(super) fn split(mut region: Region) -> Region {
    let mut has_condition = false;
    each(&region.steps, &mut |step| has_condition |= matches!(step, Step::Cond { .. }));
    if !has_condition {
        return region;
    }
    let mut uses = vec![Uses::default(); region.slots];
    visit(&mut region.steps, &mut |slot, access| uses[*slot].add(access));
    operands(&mut region.results, &mut |slot, access| uses[*slot].add(access));
    let mut splitting = Splitting { uses };
    splitting.steps(&mut region.steps);
    region.slots = splitting.uses.len();
    region
}

/// What a step does with a slot.
#[derive(Clone, Copy)]
pub(super) enum Access {
    Read,
    Write,
}

/// How often a slot is read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Uses {
    reads: usize,
    writes: usize,
}

impl Uses {
    fn add(&mut self, access: Access) {
        match access {
            Access::Read => self.reads += 1,
            Access::Write => self.writes += 1,
        }
    }
}

struct Splitting {
    /// The uses of each slot in the region.
    uses: Vec<Uses>,
}

impl Splitting {
    fn steps(&mut self, steps: &mut [Step]) {
        for step in steps {
            match step {
                Step::Cond { clauses, otherwise, .. } => {
                    let branches = clauses.iter_mut().map(|clause| &mut clause.branch);
                    self.branches(branches.chain([&mut *otherwise]).collect());
                    for Clause { steps, branch, .. } in clauses {
                        self.steps(steps);
                        self.steps(&mut branch.steps);
                    }
                    self.steps(&mut otherwise.steps);
                }
                Step::Unless { steps, .. } => self.steps(steps),
                _ => {}
            }
        }
    }

    /// Splits the slots that several of these branches write, and that only those branches use.
    fn branches(&mut self, branches: Vec<&mut Branch>) {
        let mut in_branches = Vec::with_capacity(branches.len());
        let mut in_writers: HashMap<Slot, Uses> = HashMap::new();
        for branch in branches {
            let mut uses: BTreeMap<Slot, Uses> = BTreeMap::new();
            visit_branch(branch, &mut |slot, access| uses.entry(*slot).or_default().add(access));
            uses.retain(|_, uses| uses.writes > 0);
            for (&slot, Uses { reads, writes }) in &uses {
                let sum = in_writers.entry(slot).or_default();
                *sum = Uses { reads: sum.reads + reads, writes: sum.writes + writes };
            }
            in_branches.push((branch, uses));
        }
        let private: HashSet<Slot> = in_writers
            .into_iter()
            .filter(|(slot, uses)| self.uses[*slot] == *uses)
            .map(|(slot, _)| slot)
            .collect();
        // The first branch that writes a slot keeps it.
        let mut kept = HashSet::new();
        for (branch, uses) in in_branches {
            let mut numbers = HashMap::new();
            for (slot, uses) in uses {
                if private.contains(&slot) && !kept.insert(slot) {
                    numbers.insert(slot, self.uses.len());
                    self.uses.push(uses);
                    let all = &mut self.uses[slot];
                    *all = Uses { reads: all.reads - uses.reads, writes: all.writes - uses.writes };
                }
            }
            if !numbers.is_empty() {
                visit_branch(branch, &mut |slot, _| *slot = numbers.get(slot).copied().unwrap_or(*slot));
            }
        }
    }
}

fn visit_branch(Branch { steps, results }: &mut Branch, see: &mut impl FnMut(&mut Slot, Access)) {
    visit(steps, see);
    operands(results, see);
}

/// Calls a function with each slot that steps read or write.
pub(super) fn visit(steps: &mut [Step], see: &mut impl FnMut(&mut Slot, Access)) {
    for step in steps {
        match step {
            Step::Operation { inputs, outputs, .. } | Step::Call { inputs, outputs, .. } => {
                operands(inputs, see);
                targets(outputs, see);
            }
            Step::Cluster { cluster, outputs } => {
                cluster.inputs.iter_mut().for_each(|input| operand(&mut input.operand, see));
                targets(outputs, see);
            }
            Step::Cond { clauses, otherwise, outputs } => {
                for Clause { steps, predicate, branch } in clauses {
                    visit(steps, see);
                    operand(predicate, see);
                    visit_branch(branch, see);
                }
                visit_branch(otherwise, see);
                slots(outputs, see);
            }
            Step::Unless { computed, steps } => {
                see(computed, Access::Read);
                visit(steps, see);
            }
            Step::While { initial, outputs, .. } => {
                operands(initial, see);
                slots(outputs, see);
            }
            Step::ReverseLoop(reverse) => {
                operand(&mut reverse.trips, see);
                operands(&mut reverse.initial, see);
                operands(&mut reverse.gradients, see);
                operands(&mut reverse.invariants, see);
                slots(&mut reverse.outputs, see);
            }
            Step::Fold { input, initial, output, .. } => {
                operand(input, see);
                operand(initial, see);
                see(&mut output.slot, Access::Write);
            }
        }
    }
}

pub(super) fn operands(operands: &mut [Operand], see: &mut impl FnMut(&mut Slot, Access)) {
    operands.iter_mut().for_each(|one| operand(one, see));
}

fn operand(operand: &mut Operand, see: &mut impl FnMut(&mut Slot, Access)) {
    if let Place::Slot(slot) = &mut operand.place {
        see(slot, Access::Read);
    }
}

fn targets(targets: &mut [Target], see: &mut impl FnMut(&mut Slot, Access)) {
    targets.iter_mut().for_each(|target| see(&mut target.slot, Access::Write));
}

fn slots(slots: &mut [Slot], see: &mut impl FnMut(&mut Slot, Access)) {
    slots.iter_mut().for_each(|slot| see(slot, Access::Write));
}
