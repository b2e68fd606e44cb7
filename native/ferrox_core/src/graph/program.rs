//! A checked program: for each region flat instructions, whose jumps only go forward.

use std::collections::HashSet;

use super::branch_slots;
use super::cluster::{Cluster, Overwritten};
use super::constants;
use super::fusion;
use super::joined_products;
use super::kernel::Kernel;
use super::liveness::Deaths;
use super::operand::Memory;
use super::operation::Operation;
use super::products;
use super::reductions;
use super::repetition;
use super::reverse_loop::{Reversal, TripCount};
use super::row_loop::RowLoop;
use super::slices;
use super::small_loop::SmallLoop;
use super::source::{Branch, Clause, Loop, Operand, Place, Region, ReverseLoop, Slot, Step, Target, each};
use super::unused;
use super::value::MAX_SMALL_BYTES;
use super::vector_products;
use super::well_formed::{self, OP, invalid};
use crate::cost::{INSTRUCTION_WORK, Work};
use crate::layout;
use crate::tensor::{byte_size, check_result};
use crate::{DType, Error, Kind};

/// A program, ready to run any number of times.
#[derive(Debug)]
pub struct Program {
    pub(super) regions: Vec<Code>,
    pub(super) literals: Vec<Vec<u8>>,
}

/// The instructions of a region.
#[derive(Debug)]
pub(super) struct Code {
    /// The number of bytes of each parameter.
    pub(super) parameters: Vec<usize>,
    pub(super) slots: usize,
    pub(super) instructions: Vec<Instruction>,
    pub(super) results: Vec<RegionResult>,
}

/// A result of a region.
#[derive(Debug)]
pub(super) struct RegionResult {
    pub(super) place: Place,
    pub(super) dtype: DType,
    /// Whether no later result and no parameter that is still needed is in the same slot.
    pub(super) is_last: bool,
}

/// An instruction. Targets of jumps are numbers of instructions.
#[derive(Debug)]
pub(super) enum Instruction {
    Kernel(Box<Kernel>),
    Jump(usize),
    JumpIfZero { predicate: Place, dtype: DType, target: usize },
    JumpIfComputed { slot: Slot, target: usize },
    Copy { from: Place, to: Slot },
    While { condition: usize, body: usize, initial: Vec<Place>, outputs: Vec<Slot> },
    Small(Box<SmallLoop>),
    Rows(Box<RowLoop>),
    Reverse(Box<Reversal>),
    Fold(Box<Fold>),
    Cluster(Box<ClusterCall>),
    Call { callback: usize, inputs: Vec<Place>, outputs: Vec<(Slot, usize)> },
    Free(Box<[Slot]>),
}

/// Operations that are computed together.
#[derive(Debug)]
pub(super) struct ClusterCall {
    pub(super) cluster: Cluster,
    pub(super) outputs: Box<[Memory]>,
    pub(super) work: Work,
    /// The inputs that results are written over, if nothing else has them.
    pub(super) overwritten: Box<[Overwritten]>,
}

/// A fold with a region as its body.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) body: usize,
    pub(super) input: Place,
    pub(super) initial: Place,
    /// The number of bytes in an element.
    pub(super) width: usize,
    /// The number of elements that are folded to one.
    pub(super) count: usize,
    pub(super) output: Memory,
}

impl Program {
    /// Checks regions, of which the first is the whole program, and orders them into instructions.
    ///
    /// # Errors
    ///
    /// `Error::Argument` if slots, regions, numbers or sizes of values don't match each other,
    /// `Error::UnsupportedType` if an operation has no kernel for its types, `Error::TooLarge` if the size
    /// of a value overflows, and `Error::Limit` if it is more than results may have.
    pub fn new(regions: &[Region], mut literals: Vec<Vec<u8>>) -> Result<Self, Error> {
        well_formed::check(regions)?;
        // Checked as it is given: operations that are computed together are not seen one by one later.
        assemble(regions, &literals, None)?;
        let regions: Vec<Region> = unused::remove(regions).iter().map(repetition::expand).collect();
        let regions = constants::fold(&regions, &mut literals);
        let regions = unused::without_unreached(regions);
        let regions = vector_products::transpose_before_loops(regions).into_iter();
        let regions: Vec<Region> = regions.map(slices::first).map(reductions::split).collect();
        let regions = products::fold_transposes(&regions);
        let regions: Vec<Region> = regions.into_iter().map(branch_slots::split).collect();
        let fused: Vec<Region> =
            regions.iter().map(|region| joined_products::join(&fusion::fuse(region))).collect();
        let sources = Sources { operations: &regions, clusters: &fused };
        Ok(Program { regions: assemble(&fused, &literals, Some(sources))?, literals })
    }

    /// [`Program::new`] with each step, constant and loop as it is, to compare with.
    ///
    /// # Errors
    ///
    /// As `new`.
    pub fn without_fusion(regions: &[Region], literals: Vec<Vec<u8>>) -> Result<Self, Error> {
        well_formed::check(regions)?;
        Ok(Program { regions: assemble(regions, &literals, None)?, literals })
    }

    /// The literals.
    #[must_use]
    pub fn literals(&self) -> &[Vec<u8>] {
        &self.literals
    }

    /// The number of parameters.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.regions[0].parameters.len()
    }

    /// Checks the arguments of a run.
    ///
    /// # Errors
    ///
    /// `Error::Argument` if the arguments have other sizes or another number than the parameters.
    pub fn check_arguments(&self, arguments: &[&[u8]]) -> Result<(), Error> {
        let parameters = &self.regions[0].parameters;
        if arguments.iter().map(|argument| argument.len()).eq(parameters.iter().copied()) {
            return Ok(());
        }
        let sizes: Vec<usize> = arguments.iter().map(|argument| argument.len()).collect();
        Err(invalid(format!("takes arguments of {parameters:?} bytes, got {sizes:?}")))
    }
}

/// Checks regions and orders them into instructions. If there are `sources`, loops over small values and over
/// rows of arrays are instructions of their own.
fn assemble(
    regions: &[Region],
    literals: &[Vec<u8>],
    sources: Option<Sources<'_>>,
) -> Result<Vec<Code>, Error> {
    let signatures = regions.iter().map(Signature::of).collect::<Result<Vec<_>, Error>>()?;
    let mut is_condition = vec![false; regions.len()];
    for region in regions {
        each(&region.steps, &mut |step| {
            if let Step::While { condition, .. } = step
                && let Some(is_condition) = is_condition.get_mut(*condition)
            {
                *is_condition = true;
            }
        });
    }
    let numbered = regions.iter().enumerate();
    numbered
        .map(|(number, region)| {
            let deaths = Deaths::of(region, is_condition[number]);
            Assembler::region(number, region, deaths, &signatures, literals, sources)
        })
        .collect()
}

/// The regions of a program, which have the same numbers, parameters and results.
#[derive(Clone, Copy)]
struct Sources<'a> {
    /// With operations one by one.
    operations: &'a [Region],
    /// With operations in clusters.
    clusters: &'a [Region],
}

/// The number of bytes of each parameter and each result of a region.
struct Signature {
    parameters: Vec<usize>,
    results: Vec<usize>,
    /// The number of bytes of the results that are not parameters of the same number.
    changed: usize,
}

impl Signature {
    fn of(region: &Region) -> Result<Self, Error> {
        let parameters = region.parameters.iter().map(|(dtype, shape)| byte_size(OP, *dtype, shape));
        let results = region.results.iter().map(operand_bytes).collect::<Result<Vec<_>, _>>()?;
        let slots = (0..).map(Place::Slot);
        let changed = region.results.iter().zip(slots).zip(&results);
        let changed = changed.filter(|((result, slot), _)| result.place != *slot);
        let changed = changed.fold(0_usize, |sum, (_, &bytes)| sum.saturating_add(bytes));
        Ok(Signature { parameters: parameters.collect::<Result<_, _>>()?, results, changed })
    }
}

fn operand_bytes(operand: &Operand) -> Result<usize, Error> {
    byte_size(OP, operand.dtype, &operand.shape)
}

/// Orders the steps of a region into instructions.
struct Assembler<'a> {
    signatures: &'a [Signature],
    literals: &'a [Vec<u8>],
    /// The regions before fusion, if their loops may be instructions of their own.
    sources: Option<Sources<'a>>,
    deaths: Deaths,
    /// The number of blocks so far, counted as in [`Deaths`].
    blocks: usize,
    /// The number of bytes of each slot's value.
    bytes: Vec<Option<usize>>,
    instructions: Vec<Instruction>,
    /// The slots whose values become results of the program.
    results: Vec<bool>,
    /// The number of slots, the first ones, whose values are arguments of the program.
    arguments: usize,
}

impl<'a> Assembler<'a> {
    fn region(
        number: usize,
        region: &Region,
        deaths: Deaths,
        signatures: &'a [Signature],
        literals: &'a [Vec<u8>],
        sources: Option<Sources<'a>>,
    ) -> Result<Code, Error> {
        let Signature { parameters, .. } = &signatures[number];
        let mut bytes = vec![None; region.slots];
        for (bytes, &parameter) in bytes.iter_mut().zip(parameters) {
            *bytes = Some(parameter);
        }
        let results = if number == 0 { result_slots(region) } else { vec![false; region.slots] };
        let mut assembler = Assembler {
            signatures,
            literals,
            sources,
            deaths,
            blocks: 1,
            bytes,
            instructions: Vec::new(),
            results,
            arguments: if number == 0 { parameters.len() } else { 0 },
        };
        assembler.steps(0, &region.steps)?;
        let mut results = Vec::with_capacity(region.results.len());
        for (index, operand) in region.results.iter().enumerate() {
            assembler.check(operand)?;
            let later = &region.results[index + 1..];
            let is_last = !later.iter().any(|other| other.place == operand.place);
            results.push(RegionResult { place: operand.place, dtype: operand.dtype, is_last });
        }
        let mut instructions = assembler.instructions;
        mark_overwritten_by_results(&mut instructions);
        Ok(Code { parameters: parameters.clone(), slots: region.slots, instructions, results })
    }

    /// Checks that an operand is there and has the size of its type and shape.
    fn check(&self, operand: &Operand) -> Result<Place, Error> {
        let expected = operand_bytes(operand)?;
        let actual = match operand.place {
            Place::Slot(slot) => self.bytes.get(slot).copied().flatten(),
            Place::Literal(index) => self.literals.get(index).map(Vec::len),
        };
        match actual {
            Some(actual) if actual == expected => Ok(operand.place),
            Some(actual) => {
                let (dtype, shape) = (operand.dtype, operand.shape.to_vec());
                Err(Error::DataSize { op: OP, dtype, shape, expected, actual })
            }
            None => Err(invalid(format!("{:?} has no value", operand.place))),
        }
    }

    fn places(&self, operands: &[Operand]) -> Result<Vec<Place>, Error> {
        operands.iter().map(|operand| self.check(operand)).collect()
    }

    /// Gives a slot a value of some size.
    fn define(&mut self, slot: Slot, bytes: usize) -> Result<(), Error> {
        match self.bytes.get_mut(slot) {
            Some(size) if size.is_none_or(|size| size == bytes) => {
                *size = Some(bytes);
                Ok(())
            }
            Some(_) => Err(invalid(format!("slot {slot} has values of different sizes"))),
            None => Err(invalid(format!("there is no slot {slot}"))),
        }
    }

    fn memory(&mut self, target: &Target) -> Result<Memory, Error> {
        let (slot, dtype, shape) = (target.slot, target.dtype, target.shape.clone());
        let bytes = byte_size(OP, dtype, &shape)?;
        check_result(OP, dtype, &shape, bytes)?;
        self.define(slot, bytes)?;
        Ok(Memory { slot, dtype, shape, bytes, is_result: self.results[slot] && bytes > MAX_SMALL_BYTES })
    }

    fn steps(&mut self, block: usize, steps: &[Step]) -> Result<(), Error> {
        for (index, step) in steps.iter().enumerate() {
            self.step(step, (block, index))?;
            self.free(block, index);
        }
        Ok(())
    }

    /// Whether a slot has a value of the run, which nothing reads after a step.
    fn dies(&self, slot: Slot, position: (usize, usize)) -> bool {
        slot >= self.arguments && self.deaths.after(position).any(|dead| dead == slot)
    }

    /// Frees the slots that die after a step.
    fn free(&mut self, block: usize, step: usize) {
        let dead: Box<[Slot]> = self.deaths.after((block, step)).collect();
        if !dead.is_empty() {
            self.instructions.push(Instruction::Free(dead));
        }
    }

    /// Orders the steps of an inner block, and returns its number.
    fn inner(&mut self, steps: &[Step]) -> Result<usize, Error> {
        let block = self.blocks;
        self.blocks += 1;
        self.steps(block, steps)?;
        Ok(block)
    }

    /// Adds an instruction whose target is not known yet.
    fn jump(&mut self, instruction: Instruction) -> usize {
        self.instructions.push(instruction);
        self.instructions.len() - 1
    }

    /// Lets a jump go to the next instruction.
    fn land(&mut self, jump: usize) {
        let next = self.instructions.len();
        match &mut self.instructions[jump] {
            Instruction::Jump(target)
            | Instruction::JumpIfZero { target, .. }
            | Instruction::JumpIfComputed { target, .. } => *target = next,
            other => unreachable!("{other:?} is no jump"),
        }
    }

    fn step(&mut self, step: &Step, position: (usize, usize)) -> Result<(), Error> {
        match step {
            Step::Operation { operation, inputs, outputs } => {
                self.operation(operation, inputs, outputs, position)
            }
            Step::Cond { clauses, otherwise, outputs } => {
                let mut ends = Vec::with_capacity(clauses.len());
                for Clause { steps, predicate, branch } in clauses {
                    self.inner(steps)?;
                    let place = self.check(predicate)?;
                    let dtype = predicate.dtype;
                    if layout::size(&predicate.shape) != Some(1) {
                        return Err(invalid("a predicate is not a scalar"));
                    }
                    let next = self.jump(Instruction::JumpIfZero { predicate: place, dtype, target: 0 });
                    self.branch(branch, outputs)?;
                    ends.push(self.jump(Instruction::Jump(0)));
                    self.land(next);
                }
                self.branch(otherwise, outputs)?;
                ends.into_iter().for_each(|end| self.land(end));
                Ok(())
            }
            Step::Unless { computed, steps } => {
                let jump = self.jump(Instruction::JumpIfComputed { slot: *computed, target: 0 });
                self.inner(steps)?;
                self.land(jump);
                Ok(())
            }
            Step::While { condition, body, initial, outputs } => {
                let places = self.places(initial)?;
                let sizes = initial.iter().map(operand_bytes).collect::<Result<Vec<_>, _>>()?;
                for region in [condition, body] {
                    if self.signature(*region)?.parameters != sizes {
                        return Err(invalid("a loop's region has other parameters than the loop"));
                    }
                }
                if self.signature(*condition)?.results.len() != 1 || self.signature(*body)?.results != sizes {
                    return Err(invalid("a loop's region has other results than the loop"));
                }
                let memories = self.loop_results(initial, outputs)?;
                let regions = [*condition, *body];
                let dies = |slot| self.dies(slot, position);
                if let Some(instruction) = self.whole_loop(regions, initial, outputs, &memories, dies) {
                    self.instructions.push(instruction);
                    return Ok(());
                }
                let (condition, body, outputs) = (*condition, *body, outputs.clone());
                self.instructions.push(Instruction::While { condition, body, initial: places, outputs });
                Ok(())
            }
            Step::Cluster { cluster, outputs } => {
                for input in &cluster.inputs {
                    self.check(&input.operand)?;
                }
                let outputs: Box<[Memory]> =
                    outputs.iter().map(|target| self.memory(target)).collect::<Result<_, _>>()?;
                let (mut cluster, work) =
                    ((**cluster).clone(), cluster.work().saturating_add(INSTRUCTION_WORK));
                let work = outputs.iter().fold(work, |work, memory| work.saturating_add(memory.work()));
                cluster.compile();
                cluster.read_in_runs();
                let overwritten = cluster.overwritten(|slot| self.dies(slot, position));
                let call = ClusterCall { cluster, outputs, work, overwritten };
                self.instructions.push(Instruction::Cluster(Box::new(call)));
                Ok(())
            }
            Step::ReverseLoop(reverse) => self.reverse_loop(reverse),
            Step::Fold { body, input, initial, output } => self.fold(*body, input, initial, output),
            Step::Call { callback, inputs, outputs } => {
                let places = self.places(inputs)?;
                let mut slots = Vec::with_capacity(outputs.len());
                for target in outputs {
                    let memory = self.memory(target)?;
                    slots.push((memory.slot, memory.bytes));
                }
                let callback = *callback;
                self.instructions.push(Instruction::Call { callback, inputs: places, outputs: slots });
                Ok(())
            }
        }
    }

    /// The results of a loop whose values at the start are `initial`.
    fn loop_results(&mut self, initial: &[Operand], outputs: &[Slot]) -> Result<Vec<Memory>, Error> {
        if outputs.len() != initial.len() {
            return Err(invalid("a loop has another number of results"));
        }
        let targets = outputs.iter().zip(initial);
        targets
            .map(|(&slot, Operand { dtype, shape, .. })| {
                self.memory(&Target { slot, dtype: *dtype, shape: shape.clone() })
            })
            .collect()
    }

    fn reverse_loop(&mut self, reverse: &ReverseLoop) -> Result<(), Error> {
        let ReverseLoop { forward, backward, trips, initial, gradients, invariants, outputs } = reverse;
        let sizes = |operands: [&[Operand]; 3]| {
            operands.iter().copied().flatten().map(operand_bytes).collect::<Result<Vec<_>, _>>()
        };
        let (forward, backward) = (*forward, *backward);
        let [of_forward, of_backward] = [self.signature(forward)?, self.signature(backward)?];
        if of_forward.parameters != sizes([initial, &[], invariants])?
            || of_backward.parameters != sizes([initial, gradients, invariants])?
        {
            return Err(invalid("a region of a loop's gradient has other parameters than the loop"));
        }
        if of_forward.results != sizes([initial, &[], &[]])?
            || of_backward.results != sizes([&[], gradients, &[]])?
        {
            return Err(invalid("a region of a loop's gradient has other results than the loop"));
        }
        let width = trips.dtype.width();
        if !trips.dtype.is_integer() || trips.dtype.is_packed() || layout::size(&trips.shape) != Some(1) {
            return Err(invalid("the number of a loop's trips is not a scalar integer of whole bytes"));
        }
        let is_signed = trips.dtype.kind() == Kind::Signed;
        let trips = TripCount { place: self.check(trips)?, is_signed, width: width as u8 };
        let reversal = Reversal {
            forward,
            backward,
            trips,
            initial: self.places(initial)?.into(),
            gradients: self.places(gradients)?.into(),
            invariants: self.places(invariants)?.into(),
            outputs: outputs.as_slice().into(),
            bytes: of_forward.changed,
        };
        self.loop_results(gradients, outputs)?;
        self.instructions.push(Instruction::Reverse(Box::new(reversal)));
        Ok(())
    }

    /// A loop as one instruction, if it is one over small values or rows.
    fn whole_loop(
        &self,
        [condition, body]: [usize; 2],
        initial: &[Operand],
        outputs: &[Slot],
        memories: &[Memory],
        dies: impl Fn(Slot) -> bool,
    ) -> Option<Instruction> {
        let (Sources { operations, clusters }, literals) = (self.sources?, self.literals);
        let source = Loop { regions: operations, literals, condition, body, initial, outputs, memories };
        let mut has_clusters = false;
        each(&clusters.get(body)?.steps, &mut |step| has_clusters |= matches!(step, Step::Cluster { .. }));
        let with_clusters =
            if has_clusters { SmallLoop::new(Loop { regions: clusters, ..source }) } else { None };
        if let Some(small) = with_clusters.or_else(|| SmallLoop::new(source)) {
            return Some(Instruction::Small(Box::new(small)));
        }
        Some(Instruction::Rows(Box::new(RowLoop::new(source, dies)?)))
    }

    fn signature(&self, region: usize) -> Result<&'a Signature, Error> {
        self.signatures.get(region).ok_or_else(|| invalid(format!("there is no region {region}")))
    }

    fn branch(&mut self, branch: &Branch, outputs: &[Slot]) -> Result<(), Error> {
        let block = self.inner(&branch.steps)?;
        let places = self.places(&branch.results)?;
        if places.len() != outputs.len() {
            return Err(invalid("a branch has another number of results than its condition"));
        }
        for ((from, operand), &to) in places.into_iter().zip(&branch.results).zip(outputs) {
            self.define(to, operand_bytes(operand)?)?;
            self.instructions.push(Instruction::Copy { from, to });
        }
        self.free(block, branch.steps.len());
        Ok(())
    }

    fn operation(
        &mut self,
        operation: &Operation,
        inputs: &[Operand],
        outputs: &[Target],
        position: (usize, usize),
    ) -> Result<(), Error> {
        self.places(inputs)?;
        let over = match (inputs, outputs) {
            ([target, others @ ..], [output])
                if target.dtype == output.dtype
                    && operation.is_update(output.dtype, inputs)
                    && others.iter().all(|other| other.place != target.place) =>
            {
                self.deaths.after(position).find(|&slot| target.place == Place::Slot(slot))
            }
            _ => None,
        };
        let outputs = outputs.iter().map(|target| self.memory(target)).collect::<Result<Box<[_]>, _>>()?;
        let kernel = Kernel::new(operation, inputs, outputs, over)?;
        self.instructions.push(Instruction::Kernel(Box::new(kernel)));
        Ok(())
    }

    fn fold(
        &mut self,
        body: usize,
        input: &Operand,
        initial: &Operand,
        output: &Target,
    ) -> Result<(), Error> {
        let (place, initial_place) = (self.check(input)?, self.check(initial)?);
        let output = self.memory(output)?;
        let signature = self.signature(body)?;
        let (&[results, count], false) =
            (&input.shape[..], input.dtype.is_packed() || output.dtype.is_packed())
        else {
            return Err(invalid("a fold is of the rows of a matrix with elements in whole bytes"));
        };
        let (width, to) = (input.dtype.width(), output.dtype.width());
        if signature.parameters != [width, to]
            || signature.results != [to]
            || operand_bytes(initial)? != to
            || results.checked_mul(to) != Some(output.bytes)
        {
            return Err(invalid("the body of a fold has other types than the fold"));
        }
        let fold = Fold { body, input: place, initial: initial_place, width, count, output };
        self.instructions.push(Instruction::Fold(Box::new(fold)));
        Ok(())
    }
}

/// Marks the memory of operands that results of the program are written over: it is allocated as that of results.
fn mark_overwritten_by_results(instructions: &mut [Instruction]) {
    let mut taken: HashSet<Slot> = HashSet::new();
    let mut take = |memory: &mut Memory, from: Option<Place>| {
        memory.is_result |= taken.contains(&memory.slot);
        if let (true, Some(Place::Slot(slot))) = (memory.is_result, from) {
            taken.insert(slot);
        }
    };
    // Operands are computed by earlier instructions.
    for instruction in instructions.iter_mut().rev() {
        match instruction {
            Instruction::Kernel(kernel) => kernel.outputs.iter_mut().for_each(|memory| take(memory, None)),
            Instruction::Cluster(call) => {
                let ClusterCall { cluster, outputs, overwritten, .. } = &mut **call;
                for (output, memory) in outputs.iter_mut().enumerate() {
                    let pair = overwritten.iter().find(|pair| pair.output == output);
                    take(memory, pair.map(|pair| cluster.inputs[pair.input].operand.place));
                }
            }
            Instruction::Rows(rows) => {
                for array in &mut rows.arrays {
                    take(&mut array.memory, (array.is_last && array.is_overwritten).then_some(array.initial));
                }
            }
            _ => {}
        }
    }
}

/// For each slot of the first region, whether its value becomes a result, directly or through the
/// results of conditions.
fn result_slots(region: &Region) -> Vec<bool> {
    fn mark(operands: &[Operand], is_result: &mut [bool]) {
        for operand in operands {
            if let Place::Slot(slot) = operand.place
                && let Some(is_result) = is_result.get_mut(slot)
            {
                *is_result = true;
            }
        }
    }
    fn mark_steps(steps: &[Step], is_result: &mut [bool]) {
        // Values come from earlier steps, so that one pass from the end sees all.
        for step in steps.iter().rev() {
            match step {
                Step::Cond { clauses, otherwise, outputs } => {
                    for branch in clauses.iter().map(|clause| &clause.branch).chain([otherwise]) {
                        for (operand, &slot) in branch.results.iter().zip(outputs) {
                            if is_result.get(slot) == Some(&true) {
                                mark(std::slice::from_ref(operand), is_result);
                            }
                        }
                        mark_steps(&branch.steps, is_result);
                    }
                }
                Step::Unless { steps, .. } => mark_steps(steps, is_result),
                _ => {}
            }
        }
    }
    let mut is_result = vec![false; region.slots];
    mark(&region.results, &mut is_result);
    mark_steps(&region.steps, &mut is_result);
    is_result
}
