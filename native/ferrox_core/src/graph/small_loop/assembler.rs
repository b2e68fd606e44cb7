//! Which loops are over small values, and their instructions.

use super::super::machine_code::is_used;
use super::super::operand::{Operand, Place, Slot};
use super::super::source::{Branch, Clause, Loop, Region, Step, each, reads_from};
use super::super::unrolling::MAX_UNROLLED_TRIPS;
use super::code::{Array, Code, Register, Small, Truth};
use super::homes::{Assembler, Home, Scope, is_few};
use super::machine::{Output as LoopOutput, SmallLoop};
use super::machine_code::MachineCode;
use super::operations::Calculation;

/// The maximum number of instructions of a loop.
const MAX_CODES: usize = 4_096;

/// The maximum number of instructions of all trips of a loop that is written out.
const MAX_UNROLLED_CODES: usize = 512;

/// The maximum depth of loops in loops.
const MAX_DEPTH: usize = 8;

impl SmallLoop {
    /// The loop, if it is one over numbers and small arrays.
    pub(in super::super) fn new(source: Loop<'_>) -> Option<Self> {
        let body = source.regions.get(source.body)?;
        let origins = Origins::of(body);
        let replaces =
            (0..body.results.len()).any(|at| !is_unchanged(body, at) && origins.is_update(body, at));
        let mut has_loops = false;
        each(&body.steps, &mut |step| has_loops |= matches!(step, Step::While { .. }));
        // A loop without such arrays, or without loops in it, has fewer forms.
        let choices = |is_possible: bool| if is_possible { &[true, false][..] } else { &[false] };
        let (of_loop, of_inner) = (choices(replaces), choices(has_loops));
        let forms = of_loop.iter().flat_map(|&replaces| {
            of_inner.iter().flat_map(move |&replaces_in_loops| {
                let form = move |&unrolls| Form { yields: None, replaces, replaces_in_loops, unrolls };
                of_inner.iter().map(form)
            })
        });
        forms.into_iter().find_map(|form| assemble(source, body, &[], form))
    }

    /// The small values of a loop that has larger arrays too: those at the positions `arrays` change. `body`
    /// is its body without the steps on these, and a trip yields the numbers `yields`. `None` if the arrays
    /// have an influence on the small values.
    pub(in super::super) fn beside_arrays(
        source: Loop<'_>,
        body: &Region,
        arrays: &[usize],
        yields: &[Operand],
    ) -> Option<Self> {
        let form = Form { yields: Some(yields), replaces: false, replaces_in_loops: false, unrolls: true };
        assemble(source, body, arrays, form)
    }
}

/// The form of the instructions of a loop.
#[derive(Clone, Copy)]
struct Form<'a> {
    /// The numbers that a trip yields.
    yields: Option<&'a [Operand]>,
    /// Whether parts of arrays are replaced in the memory of the loop's results.
    replaces: bool,
    /// Whether loops in the loop replace parts of small arrays in place, rather than in a copy.
    replaces_in_loops: bool,
    /// Whether loops in the loop that have a few trips, whose number is known, are written out.
    unrolls: bool,
}

/// A loop with a certain body, if it is one over small values. Those at the positions `arrays` are no values
/// of it.
fn assemble(
    Loop { regions, literals, condition, body: number, initial, outputs: slots, memories }: Loop<'_>,
    body: &Region,
    arrays: &[usize],
    Form { yields, replaces, replaces_in_loops, unrolls }: Form<'_>,
) -> Option<SmallLoop> {
    let mut assembler = Assembler { regions, literals, replaces_in_loops, unrolls, ..Assembler::default() };
    let (mut homes, mut inputs, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut small_inputs, mut replaced) = (Vec::new(), Vec::new());
    let origins = Origins::of(body);
    for (position, (operand, &slot)) in initial.iter().zip(slots).enumerate() {
        let place = operand.place;
        homes.push(if arrays.contains(&position) {
            Home::Array
        } else if is_few(operand.dtype, &operand.shape) {
            let elements = assembler.registers(operand.dtype, &operand.shape)?;
            let width = operand.dtype.width();
            if is_unchanged(body, position) {
                outputs.push((slot, LoopOutput::Unchanged(place)));
                let tensor = assembler.tensor(place);
                assembler.same.push((elements.clone(), width, tensor));
            } else {
                outputs.push((
                    slot,
                    LoopOutput::Elements(elements.clone(), width, memories.get(position)?.clone()),
                ));
            }
            inputs.push((place, elements.clone(), width));
            Home::Elements(elements)
        } else if is_unchanged(body, position) {
            outputs.push((slot, LoopOutput::Unchanged(place)));
            Home::Tensor(assembler.tensor(place))
        } else if replaces && origins.is_update(body, position) {
            replaced.push((place, memories.get(position)?.clone()));
            Home::Replaced(Array::Replaced(replaced.len() - 1))
        } else {
            let small = assembler.small(operand.dtype, &operand.shape)?;
            let part = small.at..small.at + small.bytes;
            small_inputs.push((place, part.clone()));
            outputs.push((slot, LoopOutput::Small(part, memories.get(position)?.clone())));
            Home::Small(small)
        });
    }
    assembler.repeat(condition, body, yields, &homes)?;
    let Assembler { mut codes, constants, tensors, small_bytes, .. } = assembler;
    let arrays = [tensors.len(), replaced.len()];
    let results = outputs.iter().filter_map(|(_, output)| match output {
        LoopOutput::Elements(elements, ..) => Some(elements),
        LoopOutput::Small(..) | LoopOutput::Unchanged(_) => None,
    });
    let results: Vec<Register> = results.flat_map(|elements| elements.iter().copied()).collect();
    let machine_code =
        if is_used() { MachineCode::new(&mut codes, &results, arrays, small_bytes) } else { None };
    let regions = [condition, number];
    Some(SmallLoop {
        regions,
        constants,
        inputs,
        small_inputs,
        small_bytes,
        tensors,
        replaced,
        codes,
        machine_code,
        outputs,
    })
}

/// Whether a value of a loop is the same after each trip.
fn is_unchanged(body: &Region, position: usize) -> bool {
    body.results.get(position).is_none_or(|result| result.place == Place::Slot(position))
}

/// For each slot of a region, the parameter that its value is but for parts that steps have replaced, if there
/// is one.
struct Origins(Vec<Option<Slot>>);

impl Origins {
    fn of(body: &Region) -> Self {
        let mut origins = Origins(vec![None; body.slots]);
        for (slot, origin) in origins.0.iter_mut().enumerate().take(body.parameters.len()) {
            *origin = Some(slot);
        }
        origins.find(&body.steps);
        origins
    }

    fn find(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Operation { operation, inputs, outputs } => {
                    if let ([array, ..], [output]) = (&inputs[..], &outputs[..])
                        && operation.is_update(output.dtype, inputs)
                    {
                        self.set(output.slot, self.get(array.place));
                    }
                }
                Step::Cond { clauses, otherwise, outputs } => {
                    for Clause { steps, branch, .. } in clauses {
                        self.find(steps);
                        self.find(&branch.steps);
                    }
                    self.find(&otherwise.steps);
                    for (index, &slot) in outputs.iter().enumerate() {
                        let origin = |branch: &Branch| self.get(branch.results.get(index)?.place);
                        let first = origin(otherwise);
                        let is_same = clauses.iter().all(|clause| origin(&clause.branch) == first);
                        self.set(slot, first.filter(|_| is_same));
                    }
                }
                Step::Unless { steps, .. } => self.find(steps),
                Step::While { initial, outputs, .. } => {
                    for (operand, &slot) in initial.iter().zip(outputs) {
                        self.set(slot, self.get(operand.place));
                    }
                }
                _ => {}
            }
        }
    }

    fn get(&self, place: Place) -> Option<Slot> {
        match place {
            Place::Slot(slot) => *self.0.get(slot)?,
            Place::Literal(_) => None,
        }
    }

    fn set(&mut self, slot: Slot, origin: Option<Slot>) {
        if let Some(known) = self.0.get_mut(slot) {
            *known = origin;
        }
    }

    /// Whether a trip only replaces parts of the value at a position.
    fn is_update(&self, body: &Region, position: usize) -> bool {
        body.results.get(position).is_some_and(|result| self.get(result.place) == Some(position))
    }
}

/// For each slot of a region, how often it is read in the first step that may replace a part of an array, and
/// from there on.
fn late_reads(region: &Region) -> Vec<usize> {
    let may_replace = |step: &Step| match step {
        Step::Operation { operation, inputs, outputs } => {
            outputs.iter().any(|output| operation.is_update(output.dtype, inputs))
        }
        Step::Cluster { .. } => false,
        _ => true,
    };
    let first = region.steps.iter().position(may_replace).unwrap_or(region.steps.len());
    reads_from(region, first)
}

/// Whether two values of a loop are the same array, whose elements can't be replaced for one of them only.
fn is_shared(homes: &[Home]) -> bool {
    let is_array = |home: &Home| matches!(home, Home::Replaced(_));
    homes.iter().enumerate().any(|(index, home)| is_array(home) && homes[..index].contains(home))
}

impl<'a> Assembler<'a> {
    /// A loop whose values are in these places, at the start as well as at the end. A trip yields the
    /// values of `yields`.
    fn repeat(
        &mut self,
        condition: usize,
        body: &Region,
        yields: Option<&[Operand]>,
        homes: &[Home],
    ) -> Option<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH || body.results.len() != homes.len() || is_shared(homes) {
            return None;
        }
        let used = (self.used, self.small_used);
        let leave = self.condition(condition, homes, false)?;
        (self.used, self.small_used) = used;
        let start = self.label();
        let mut scope = self.scope(body, homes)?;
        self.steps(&mut scope, &body.steps)?;
        if let Some(operands) = yields {
            let registers = operands.iter().map(|operand| self.number(&scope, operand));
            let code = Code::Yield(registers.collect::<Option<_>>()?);
            self.codes.push(code);
        }
        let mut results = Vec::with_capacity(homes.len());
        for (operand, home) in body.results.iter().zip(homes) {
            results.push(if *home == Home::Array {
                Home::Array
            } else {
                let result = self.home(&scope, operand)?;
                self.whole(result)?
            });
        }
        self.assign(start, &results, homes)?;
        (self.used, self.small_used) = used;
        let again = self.condition(condition, homes, true)?;
        self.land_at(again, start);
        self.land(leave);
        (self.used, self.small_used) = used;
        self.depth -= 1;
        Some(())
    }

    /// The condition of a loop, and a jump, to be landed, if it is as expected.
    fn condition(&mut self, condition: usize, homes: &[Home], expected: bool) -> Option<usize> {
        let region = self.regions.get(condition)?;
        let first = self.codes.len();
        let mut scope = self.scope(region, homes)?;
        self.guarded(|assembler| assembler.steps(&mut scope, &region.steps))?;
        let [result] = &region.results[..] else { return None };
        let jump = self.jump_if(&scope, result, expected)?;
        // A comparison of the condition right before the jump, so that nothing else reads it, is part of it.
        if let [.., Code::Binary { by, operands, to }, Code::JumpIf { truth, .. }] = &self.codes[first..]
            && by.op.is_predicate()
            && *to == truth.register
            && self.last_target < jump
        {
            let code = Code::JumpIfBinary { by: *by, operands: *operands, expected, target: 0 };
            self.codes.truncate(jump - 1);
            return Some(self.push(code));
        }
        Some(jump)
    }

    /// Adds instructions that replace nothing.
    fn guarded(&mut self, add: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        let around = std::mem::replace(&mut self.is_guarded, true);
        let added = add(self);
        self.is_guarded = around;
        added
    }

    fn scope(&mut self, region: &Region, homes: &[Home]) -> Option<Scope> {
        if region.parameters.len() != homes.len() {
            return None;
        }
        let homes = homes.iter().cloned().map(Some).collect();
        let mut scope = Scope { homes, flags: Vec::new(), late_reads: late_reads(region) };
        scope.homes.resize(region.slots, None);
        let mut computed = Vec::new();
        each(&region.steps, &mut |step| {
            if let Step::Unless { computed: slot, .. } = step {
                computed.push(*slot);
            }
        });
        for slot in computed {
            let (from, to) = (self.constant(0)?, self.register()?);
            scope.flags.push((slot, to));
            self.codes.push(Code::Move { from, to });
        }
        Some(scope)
    }

    /// The number of the next instruction, which a jump will go to.
    fn label(&mut self) -> usize {
        self.last_target = self.codes.len();
        self.last_target
    }

    fn land(&mut self, jump: usize) {
        let target = self.label();
        self.land_at(jump, target);
    }

    fn land_at(&mut self, jump: usize, to: usize) {
        if let Some(Code::Jump { target } | Code::JumpIf { target, .. } | Code::JumpIfBinary { target, .. }) =
            self.codes.get_mut(jump)
        {
            *target = to;
        }
    }

    /// Notes that a slot has its value.
    fn flag(&mut self, scope: &Scope, slot: Slot) -> Option<()> {
        for &(_, to) in scope.flags.iter().filter(|flag| flag.0 == slot) {
            let from = self.constant(1)?;
            self.codes.push(Code::Move { from, to });
        }
        Some(())
    }

    /// A jump to a target that is not known yet, if an operand is true or not, as expected.
    fn jump_if(&mut self, scope: &Scope, operand: &Operand, expected: bool) -> Option<usize> {
        let register = self.number(scope, operand)?;
        let truth = Truth::new(register, operand.dtype)?;
        Some(self.push(Code::JumpIf { truth, expected, target: 0 }))
    }

    fn steps(&mut self, scope: &mut Scope, steps: &[Step]) -> Option<()> {
        steps.iter().try_for_each(|step| {
            self.step(scope, step)?;
            (self.codes.len() <= MAX_CODES).then_some(())
        })
    }

    fn step(&mut self, scope: &mut Scope, step: &Step) -> Option<()> {
        match step {
            Step::Operation { operation, inputs, outputs } => {
                let [output] = &outputs[..] else { return None };
                self.calculate(scope, Calculation { operation, inputs, output })?;
                self.flag(scope, output.slot)
            }
            Step::Cond { clauses, otherwise, outputs } => {
                let mut ends = Vec::new();
                let (stores, mut arrays) = (self.stores.len(), None);
                for Clause { steps, predicate, branch } in clauses {
                    self.guarded(|assembler| assembler.steps(scope, steps))?;
                    let next = self.jump_if(scope, predicate, false)?;
                    self.branch(scope, branch, outputs, &mut arrays)?;
                    ends.push(self.push(Code::Jump { target: 0 }));
                    self.land(next);
                }
                self.branch(scope, otherwise, outputs, &mut arrays)?;
                ends.into_iter().for_each(|end| self.land(end));
                self.forget_replaced(scope, stores);
                for (&slot, array) in outputs.iter().zip(arrays?) {
                    if let Some(array) = array {
                        *scope.homes.get_mut(slot)? = Some(Home::Replaced(array));
                    }
                }
                outputs.iter().try_for_each(|&slot| self.flag(scope, slot))
            }
            Step::Unless { computed, steps } => {
                let register = scope.flags.iter().find(|flag| flag.0 == *computed)?.1;
                let truth = Truth { register, mask: u64::MAX };
                let jump = self.push(Code::JumpIf { truth, expected: true, target: 0 });
                self.guarded(|assembler| assembler.steps(scope, steps))?;
                self.land(jump);
                Some(())
            }
            Step::While { condition, body, initial, outputs } => {
                if let Some(homes) = self.unrolled(scope, [*condition, *body], initial) {
                    return self.end_loop(scope, outputs, homes, initial);
                }
                let body = self.regions.get(*body)?;
                let origins = Origins::of(body);
                let (mut homes, mut kept) = (Vec::with_capacity(initial.len()), Vec::new());
                for (position, operand) in initial.iter().enumerate() {
                    let from = self.home(scope, operand)?;
                    let is_kept = match from {
                        _ if is_unchanged(body, position) => true,
                        Home::Replaced(_) => origins.is_update(body, position),
                        _ => false,
                    };
                    if is_kept {
                        // What lies in an array is copied once, rather than in every trip.
                        homes.push(self.whole(from)?);
                        kept.push(position);
                        continue;
                    }
                    let to = match self.registers(operand.dtype, &operand.shape) {
                        Some(elements) => Home::Elements(elements),
                        None => Home::Small(self.small(operand.dtype, &operand.shape)?),
                    };
                    self.copy(&from, &to)?;
                    homes.push(match to {
                        Home::Small(small)
                            if self.replaces_in_loops
                                && !self.is_guarded
                                && origins.is_update(body, position) =>
                        {
                            Home::Replaced(Array::Small(small))
                        }
                        to => to,
                    });
                }
                let stores = self.stores.len();
                self.repeat(*condition, body, None, &homes)?;
                self.forget_replaced(scope, stores);
                // Nothing else has the memory of arrays that the loop has begun with.
                for (position, home) in homes.iter_mut().enumerate() {
                    if let &mut Home::Replaced(Array::Small(small)) = home
                        && !kept.contains(&position)
                    {
                        *home = Home::Small(small);
                    }
                }
                self.end_loop(scope, outputs, homes, initial)
            }
            Step::Cluster { cluster, outputs } => self.cluster(scope, cluster, outputs),
            Step::ReverseLoop(_) | Step::Fold { .. } | Step::Call { .. } => None,
        }
    }

    /// Gives the slots of a loop's results their values.
    fn end_loop(
        &mut self,
        scope: &mut Scope,
        outputs: &[Slot],
        homes: Vec<Home>,
        values: &[Operand],
    ) -> Option<()> {
        for ((&slot, home), value) in outputs.iter().zip(homes).zip(values) {
            let to = match home {
                Home::Elements(_) | Home::Small(_) if self.needs_home(scope, slot) => {
                    let to = self.define(scope, slot, value.dtype, &value.shape)?;
                    self.copy(&home, &to)?;
                    to
                }
                home => home,
            };
            *scope.homes.get_mut(slot)? = Some(to);
            self.flag(scope, slot)?;
        }
        Some(())
    }

    /// Writes the trips of a loop one after the other, if their number is known and small. Returns the values
    /// at the end.
    fn unrolled(
        &mut self,
        scope: &mut Scope,
        [condition, body]: [usize; 2],
        initial: &[Operand],
    ) -> Option<Vec<Home>> {
        if !self.unrolls || self.rolled.contains(&body) {
            return None;
        }
        let (codes, stores) = (self.codes.len(), self.stores.len());
        let in_use = (self.used, self.small_used, self.small_bytes);
        let (last_target, depth) = (self.last_target, self.depth);
        self.depth += 1;
        let homes = self.trips(scope, [condition, body], initial);
        self.depth = depth;
        if homes.is_some() {
            self.forget_replaced(scope, stores);
        } else {
            self.codes.truncate(codes);
            self.stores.truncate(stores);
            (self.used, self.small_used, self.small_bytes) = in_use;
            self.last_target = last_target;
            self.rolled.insert(body);
        }
        homes
    }

    /// The values after the last of the trips, which are added one after the other.
    fn trips(
        &mut self,
        scope: &Scope,
        [condition, body]: [usize; 2],
        initial: &[Operand],
    ) -> Option<Vec<Home>> {
        let (condition, body) = (self.regions.get(condition)?, self.regions.get(body)?);
        let [result] = &condition.results[..] else { return None };
        let most = self.codes.len() + MAX_UNROLLED_CODES;
        let mut homes = initial.iter().map(|value| self.home(scope, value)).collect::<Option<Vec<_>>>()?;
        for _ in 0..=MAX_UNROLLED_TRIPS {
            if self.depth > MAX_DEPTH || is_shared(&homes) {
                return None;
            }
            let mut values = self.scope(condition, &homes)?;
            self.guarded(|assembler| assembler.steps(&mut values, &condition.steps))?;
            let register = self.number(&values, result)?;
            let truth = Truth::new(register, result.dtype)?;
            if !truth.holds_for(self.value_of(register)?) {
                return Some(homes);
            }
            let mut values = self.scope(body, &homes)?;
            self.steps(&mut values, &body.steps)?;
            let ends = body.results.iter().map(|value| self.home(&values, value));
            homes = ends.collect::<Option<Vec<_>>>()?;
            if self.codes.len() > most {
                return None;
            }
        }
        None
    }

    /// A branch. `arrays` gets, for each of its results, the array of which parts are replaced that it is;
    /// every branch has the same. What is known of arrays stays as it was before the branch.
    fn branch(
        &mut self,
        scope: &mut Scope,
        branch: &Branch,
        outputs: &[Slot],
        arrays: &mut Option<Vec<Option<Array>>>,
    ) -> Option<()> {
        let before = scope.homes.clone();
        self.steps(scope, &branch.steps)?;
        let mut results = Vec::with_capacity(outputs.len());
        for (operand, &slot) in branch.results.iter().zip(outputs) {
            let from = self.home(scope, operand)?;
            if let Home::Replaced(array) = from {
                results.push(Some(array));
                continue;
            }
            let to = self.define(scope, slot, operand.dtype, &operand.shape)?;
            self.copy(&from, &to)?;
            results.push(None);
        }
        for (home, before) in scope.homes.iter_mut().zip(before) {
            if matches!(home, Some(Home::Replaced(_))) || matches!(before, Some(Home::Replaced(_))) {
                *home = before;
            }
        }
        (*arrays.get_or_insert_with(|| results.clone()) == results).then_some(())
    }

    /// Assigns the results of a body, whose instructions begin with `start`, to the values of its loop, all
    /// at once.
    fn assign(&mut self, start: usize, results: &[Home], homes: &[Home]) -> Option<()> {
        let registers = |homes: &[Home]| -> Vec<Register> {
            let lists = homes.iter().filter_map(|home| match home {
                Home::Elements(elements) => Some(elements),
                _ => None,
            });
            lists.flat_map(|elements| elements.iter().copied()).collect()
        };
        let [all_results, all_homes] = [results, homes].map(registers);
        if all_results.len() != all_homes.len() {
            return None;
        }
        let moves = all_results.iter().copied().zip(all_homes).filter(|(from, to)| from != to);
        let moves: Vec<(Register, Register)> =
            moves.filter(|&(from, to)| !self.compute_in_place(start, from, to, &all_results)).collect();
        let mut copies: Vec<(Home, Home)> = Vec::new();
        for (result, home) in results.iter().zip(homes) {
            match (result, home) {
                (Home::Elements(from), Home::Elements(to)) if from.len() == to.len() => {}
                _ if result == home => {}
                (_, Home::Small(_)) => copies.push((result.clone(), home.clone())),
                // A tensor that changes.
                _ => return None,
            }
        }
        let keep = |assembler: &mut Self, register| {
            let kept = assembler.register()?;
            assembler.codes.push(Code::Move { from: register, to: kept });
            Some(kept)
        };
        for (from, to) in self.in_order(moves, keep)? {
            self.codes.push(Code::Move { from, to });
        }
        let keep = |assembler: &mut Self, home: Home| {
            let Home::Small(Small { bytes, .. }) = home else { return None };
            let kept = Home::Small(assembler.small_of(bytes)?);
            assembler.copy(&home, &kept)?;
            Some(kept)
        };
        for (from, to) in self.in_order(copies, keep)? {
            self.copy(&from, &to)?;
        }
        Some(())
    }

    /// Copies that can be done one after the other: what one of them would overwrite before another reads it
    /// is kept elsewhere first.
    fn in_order<T: Clone + PartialEq>(
        &mut self,
        mut copies: Vec<(T, T)>,
        keep: impl Fn(&mut Self, T) -> Option<T>,
    ) -> Option<Vec<(T, T)>> {
        for index in 0..copies.len() {
            let to = copies[index].1.clone();
            if copies[index + 1..].iter().any(|later| later.0 == to) {
                let kept = keep(self, to.clone())?;
                let later = copies[index + 1..].iter_mut().filter(|later| later.0 == to);
                later.for_each(|later| later.0 = kept.clone());
            }
        }
        Some(copies)
    }

    /// Lets the instruction that computes `from` write to `to`, if nothing reads the value in `to` after it.
    fn compute_in_place(&mut self, start: usize, from: Register, to: Register, results: &[Register]) -> bool {
        let uses = results.iter().filter(|&&result| result == from).count();
        if uses != 1 || results.contains(&to) {
            return false;
        }
        let codes = &mut self.codes[start..];
        let mut writers =
            (0..codes.len()).filter(|&at| codes[at].registers()[1].iter().any(|to| **to == from));
        let (Some(writer), None) = (writers.next(), writers.next()) else { return false };
        let is_straight = !codes.iter().any(Code::is_jump);
        let is_free = codes[writer + 1..].iter_mut().all(|code| {
            let [reads, writes] = code.registers();
            reads.iter().chain(&writes).all(|register| **register != to)
        });
        if !is_straight || !is_free {
            return false;
        }
        let [_, written] = codes[writer].registers();
        written.into_iter().filter(|register| **register == from).for_each(|register| *register = to);
        for code in &mut codes[writer + 1..] {
            let [reads, _] = code.registers();
            reads.into_iter().filter(|register| **register == from).for_each(|read| *read = to);
        }
        true
    }
}
