//! Dead code elimination: values that nothing reads are not computed, among them values that a loop
//! carries from trip to trip for nothing else.
//!
//! Nx writes only what is needed, except in loops, all of whose values are computed even if only one is read:
//! gradients count the trips of a loop by running it, and differentiate with respect to all that it is
//! passed.

use std::borrow::Cow;

use super::operand::{Operand, Place, Slot, Target};
use super::source::{Branch, Clause, Region, ReverseLoop, Step, each, inner_regions, owners};

/// The maximum number of times that all steps are walked to find what is read. A program that needs more
/// stays as it is.
const MAX_WALKS: usize = 32;

/// The regions without what nothing reads. Calls and operations that fail for some elements stay, and what
/// these read.
pub(super) fn remove(regions: &[Region]) -> Cow<'_, [Region]> {
    let has_loops = regions.len() > 1;
    match has_loops.then(|| Reads::of(regions)).flatten() {
        Some(reads) => (0..regions.len()).map(|number| reads.region(regions, number)).collect(),
        None => Cow::Borrowed(regions),
    }
}

/// What is read, found by walking steps from the last to the first until nothing is added.
struct Reads {
    /// For each slot of each region, whether something that stays reads it.
    slots: Vec<Vec<bool>>,
    /// For each result of each region, whether it is read.
    results: Vec<Vec<bool>>,
    /// For each region, whether it does something else than to compute results: it makes calls, or has
    /// operations that fail for some elements.
    has_effects: Vec<bool>,
    changed: bool,
}

impl Reads {
    /// What the regions read; `None` if a region belongs to several loops, or after [`MAX_WALKS`].
    fn of(regions: &[Region]) -> Option<Reads> {
        let mut reads = Reads {
            slots: regions.iter().map(|region| vec![false; region.slots]).collect(),
            results: regions.iter().map(|region| vec![false; region.results.len()]).collect(),
            has_effects: vec![false; regions.len()],
            changed: false,
        };
        // Loops lead to later regions.
        for (number, region) in regions.iter().enumerate().rev() {
            let mut has_effects = false;
            each(&region.steps, &mut |step| {
                has_effects |= reads.has_effects(step);
            });
            reads.has_effects[number] = has_effects;
        }
        if owners(regions).iter().any(|&owners| owners > 1) {
            return None;
        }
        reads.results[0].fill(true);
        for _ in 0..MAX_WALKS {
            reads.changed = false;
            for (number, region) in regions.iter().enumerate() {
                for (index, result) in region.results.iter().enumerate() {
                    if reads.results[number][index] {
                        reads.read(number, result);
                    }
                }
                reads.walk(number, &region.steps);
            }
            if !reads.changed {
                return Some(reads);
            }
        }
        None
    }

    fn slot(&mut self, region: usize, slot: Slot) {
        self.changed |= !self.slots[region][slot];
        self.slots[region][slot] = true;
    }

    fn result(&mut self, region: usize, index: usize) {
        self.changed |= !self.results[region][index];
        self.results[region][index] = true;
    }

    fn read(&mut self, region: usize, operand: &Operand) {
        if let Place::Slot(slot) = operand.place {
            self.slot(region, slot);
        }
    }

    /// Whether a step does something else than to compute its results; not asked of branches.
    fn has_effects(&self, step: &Step) -> bool {
        match step {
            Step::Call { .. } => true,
            Step::Operation { operation, outputs, .. } => {
                outputs.iter().any(|output| !operation.is_total(output.dtype))
            }
            _ => inner_regions(step).iter().any(|&region| self.has_effects[region]),
        }
    }

    /// Whether a step stays.
    fn stays(&self, region: usize, step: &Step) -> bool {
        let reads = |slot: &Slot| self.slots[region][*slot];
        let any_reads = |targets: &[Target]| targets.iter().any(|target| reads(&target.slot));
        let any_stays = |steps: &[Step]| steps.iter().any(|step| self.stays(region, step));
        self.has_effects(step)
            || match step {
                Step::Operation { outputs, .. } | Step::Call { outputs, .. } => any_reads(outputs),
                Step::Cluster { outputs, .. } => any_reads(outputs),
                Step::Cond { clauses, otherwise, outputs } => {
                    let mut inner = clauses.iter().flat_map(|clause| [&clause.steps, &clause.branch.steps]);
                    outputs.iter().any(reads)
                        || inner.any(|steps| any_stays(steps))
                        || any_stays(&otherwise.steps)
                }
                Step::Unless { steps, .. } => any_stays(steps),
                Step::Fold { output, .. } => reads(&output.slot),
                Step::While { outputs, .. } => outputs.iter().any(reads),
                Step::ReverseLoop(reverse) => reverse.outputs.iter().any(reads),
            }
    }

    fn walk(&mut self, region: usize, steps: &[Step]) {
        for step in steps.iter().rev() {
            if self.stays(region, step) {
                self.step(region, step);
            }
        }
    }

    /// Adds what a step reads that stays.
    fn step(&mut self, region: usize, step: &Step) {
        match step {
            Step::Operation { inputs, .. } | Step::Call { inputs, .. } => {
                inputs.iter().for_each(|operand| self.read(region, operand));
            }
            Step::Cluster { cluster, .. } => {
                cluster.inputs.iter().for_each(|input| self.read(region, &input.operand));
            }
            Step::Cond { clauses, otherwise, outputs } => {
                self.branch(region, otherwise, outputs);
                for Clause { steps, predicate, branch } in clauses.iter().rev() {
                    self.branch(region, branch, outputs);
                    self.read(region, predicate);
                    self.walk(region, steps);
                }
            }
            Step::Unless { computed, steps } => {
                self.slot(region, *computed);
                self.walk(region, steps);
            }
            Step::Fold { body, input, initial, output } => {
                self.read(region, input);
                self.read(region, initial);
                self.slot(region, output.slot);
                // The body has an element and the accumulator, whether it reads them or not.
                self.slot(*body, 0);
                self.slot(*body, 1);
                self.result(*body, 0);
            }
            Step::While { condition, body, initial, outputs } => {
                self.result(*condition, 0);
                for (index, (operand, &output)) in initial.iter().zip(outputs).enumerate() {
                    // A loop's value is read after the loop or in a trip.
                    if self.slots[region][output] || self.slots[*condition][index] || self.slots[*body][index]
                    {
                        self.slot(region, output);
                        self.read(region, operand);
                        self.slot(*condition, index);
                        self.slot(*body, index);
                        self.result(*body, index);
                    }
                }
            }
            Step::ReverseLoop(reverse) => self.reverse_loop(region, reverse),
        }
    }

    fn reverse_loop(&mut self, region: usize, reverse: &ReverseLoop) {
        let ReverseLoop { forward, backward, trips, initial, gradients, invariants, outputs } = reverse;
        self.read(region, trips);
        for (index, operand) in initial.iter().enumerate() {
            if self.slots[*forward][index] || self.slots[*backward][index] {
                self.read(region, operand);
                self.slot(*forward, index);
                self.slot(*backward, index);
                self.result(*forward, index);
            }
        }
        for (index, (operand, &output)) in gradients.iter().zip(outputs).enumerate() {
            let parameter = initial.len() + index;
            if self.slots[region][output] || self.slots[*backward][parameter] {
                self.slot(region, output);
                self.read(region, operand);
                self.slot(*backward, parameter);
                self.result(*backward, index);
            }
        }
        for (index, operand) in invariants.iter().enumerate() {
            let [of_forward, of_backward] = [0, gradients.len()].map(|others| initial.len() + others + index);
            if self.slots[*forward][of_forward] || self.slots[*backward][of_backward] {
                self.read(region, operand);
                self.slot(*forward, of_forward);
                self.slot(*backward, of_backward);
            }
        }
    }

    fn branch(&mut self, region: usize, branch: &Branch, outputs: &[Slot]) {
        for (operand, &output) in branch.results.iter().zip(outputs) {
            if self.slots[region][output] {
                self.read(region, operand);
            }
        }
        self.walk(region, &branch.steps);
    }

    /// A region with what stays, in slots without gaps.
    fn region(&self, regions: &[Region], number: usize) -> Region {
        let Region { parameters, steps, results, .. } = &regions[number];
        let mut kept = self.slots[number].clone();
        if number == 0 {
            kept[..parameters.len()].fill(true);
        }
        self.keep_written(number, steps, &mut kept);
        let mut next = 0;
        let numbers = kept.iter().map(|&is_kept| {
            next += usize::from(is_kept);
            next.saturating_sub(1)
        });
        let numbers: Vec<Slot> = numbers.collect();
        let rewriting = Rewriting { reads: self, region: number, numbers: &numbers };
        Region {
            parameters: of_kept(parameters, &kept),
            slots: next,
            steps: rewriting.steps(steps),
            results: rewriting.operands_of(results, &self.results[number]),
        }
    }

    /// Adds the slots that steps which stay write, whether something reads them or not.
    fn keep_written(&self, region: usize, steps: &[Step], kept: &mut [bool]) {
        for step in steps.iter().filter(|step| self.stays(region, step)) {
            match step {
                Step::Operation { outputs, .. }
                | Step::Cluster { outputs, .. }
                | Step::Call { outputs, .. } => {
                    outputs.iter().for_each(|output| kept[output.slot] = true);
                }
                Step::Cond { clauses, otherwise, .. } => {
                    for Clause { steps, branch, .. } in clauses {
                        self.keep_written(region, steps, kept);
                        self.keep_written(region, &branch.steps, kept);
                    }
                    self.keep_written(region, &otherwise.steps, kept);
                }
                Step::Unless { steps, .. } => self.keep_written(region, steps, kept),
                Step::Fold { .. } | Step::While { .. } | Step::ReverseLoop(_) => {}
            }
        }
    }
}

/// Writes the steps of a region with new numbers of slots.
struct Rewriting<'a> {
    reads: &'a Reads,
    region: usize,
    numbers: &'a [Slot],
}

impl Rewriting<'_> {
    fn steps(&self, steps: &[Step]) -> Vec<Step> {
        let staying = steps.iter().filter(|step| self.reads.stays(self.region, step));
        staying.map(|step| self.step(step)).collect()
    }

    fn step(&self, step: &Step) -> Step {
        match step {
            Step::Operation { operation, inputs, outputs } => Step::Operation {
                operation: operation.clone(),
                inputs: self.operands(inputs),
                outputs: self.targets(outputs),
            },
            Step::Cluster { cluster, outputs } => {
                let mut cluster = cluster.clone();
                for input in &mut cluster.inputs {
                    input.operand = self.operand(&input.operand);
                }
                Step::Cluster { cluster, outputs: self.targets(outputs) }
            }
            Step::Call { callback, inputs, outputs } => Step::Call {
                callback: *callback,
                inputs: self.operands(inputs),
                outputs: self.targets(outputs),
            },
            Step::Cond { clauses, otherwise, outputs } => {
                let read = self.read(outputs);
                let branch = |branch: &Branch| Branch {
                    steps: self.steps(&branch.steps),
                    results: self.operands_of(&branch.results, &read),
                };
                let clauses = clauses.iter().map(|clause| Clause {
                    steps: self.steps(&clause.steps),
                    predicate: self.operand(&clause.predicate),
                    branch: branch(&clause.branch),
                });
                let (clauses, otherwise) = (clauses.collect(), branch(otherwise));
                Step::Cond { clauses, otherwise, outputs: self.slots_of(outputs, &read) }
            }
            Step::Unless { computed, steps } => {
                Step::Unless { computed: self.numbers[*computed], steps: self.steps(steps) }
            }
            Step::Fold { body, input, initial, output } => Step::Fold {
                body: *body,
                input: self.operand(input),
                initial: self.operand(initial),
                output: self.target(output),
            },
            Step::While { condition, body, initial, outputs } => {
                let read = self.read(outputs);
                Step::While {
                    condition: *condition,
                    body: *body,
                    initial: self.operands_of(initial, &read),
                    outputs: self.slots_of(outputs, &read),
                }
            }
            Step::ReverseLoop(reverse) => {
                let ReverseLoop { forward, backward, trips, initial, gradients, invariants, outputs } =
                    &**reverse;
                let of_forward = &self.reads.slots[*forward];
                let read = self.read(outputs);
                Step::ReverseLoop(Box::new(ReverseLoop {
                    forward: *forward,
                    backward: *backward,
                    trips: self.operand(trips),
                    initial: self.operands_of(initial, of_forward),
                    gradients: self.operands_of(gradients, &read),
                    invariants: self.operands_of(invariants, &of_forward[initial.len()..]),
                    outputs: self.slots_of(outputs, &read),
                }))
            }
        }
    }

    /// Which slots are read.
    fn read(&self, slots: &[Slot]) -> Vec<bool> {
        slots.iter().map(|&slot| self.reads.slots[self.region][slot]).collect()
    }

    fn slots_of(&self, slots: &[Slot], kept: &[bool]) -> Vec<Slot> {
        of_kept(slots, kept).iter().map(|&slot| self.numbers[slot]).collect()
    }

    fn operands_of(&self, operands: &[Operand], kept: &[bool]) -> Vec<Operand> {
        self.operands(&of_kept(operands, kept))
    }

    fn operands(&self, operands: &[Operand]) -> Vec<Operand> {
        operands.iter().map(|operand| self.operand(operand)).collect()
    }

    fn operand(&self, operand: &Operand) -> Operand {
        let place = match operand.place {
            Place::Slot(slot) => Place::Slot(self.numbers[slot]),
            literal @ Place::Literal(_) => literal,
        };
        Operand { place, ..operand.clone() }
    }

    fn targets(&self, targets: &[Target]) -> Vec<Target> {
        targets.iter().map(|target| self.target(target)).collect()
    }

    fn target(&self, target: &Target) -> Target {
        Target { slot: self.numbers[target.slot], ..target.clone() }
    }
}

fn of_kept<T: Clone>(all: &[T], kept: &[bool]) -> Vec<T> {
    all.iter().zip(kept).filter(|(_, kept)| **kept).map(|(one, _)| one.clone()).collect()
}

/// The regions that the first one runs, numbered anew.
pub(super) fn without_unreached(mut regions: Vec<Region>) -> Vec<Region> {
    let mut is_reached = vec![false; regions.len()];
    let mut reached = vec![0];
    while let Some(number) = reached.pop() {
        if !std::mem::replace(&mut is_reached[number], true) {
            each(&regions[number].steps, &mut |step| reached.extend(inner_regions(step)));
        }
    }
    let mut next = 0..;
    let numbers: Vec<Option<usize>> =
        is_reached.iter().map(|is_reached| if *is_reached { next.next() } else { None }).collect();
    let mut is_reached = is_reached.into_iter();
    regions.retain(|_| is_reached.next() == Some(true));
    for region in &mut regions {
        renumber(&mut region.steps, &|number| numbers[number].unwrap_or(number));
    }
    regions
}

/// Gives the regions that steps run other numbers.
fn renumber(steps: &mut [Step], number: &impl Fn(usize) -> usize) {
    for step in steps {
        match step {
            Step::While { condition, body, .. } => {
                [*condition, *body] = [*condition, *body].map(number);
            }
            Step::ReverseLoop(reverse) => {
                [reverse.forward, reverse.backward] = [reverse.forward, reverse.backward].map(number);
            }
            Step::Fold { body, .. } => *body = number(*body),
            Step::Cond { clauses, otherwise, .. } => {
                for Clause { steps, branch, .. } in clauses {
                    renumber(steps, number);
                    renumber(&mut branch.steps, number);
                }
                renumber(&mut otherwise.steps, number);
            }
            Step::Unless { steps, .. } => renumber(steps, number),
            Step::Operation { .. } | Step::Cluster { .. } | Step::Call { .. } => {}
        }
    }
}
