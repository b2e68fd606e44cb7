//! A run of a program, which can pause between instructions and go on later, on another thread.
//!
//! Each region that is being run has a frame with its slots. The body of a loop runs in the frame
//! above the loop's, and the frame of the body gives its slots to the condition and takes them back, so
//! that a trip of a loop allocates no frame. Blocks that die are kept for the next result of the same
//! size.

use std::sync::Arc;

use smallvec::SmallVec;

use super::cluster::{Overwritten, TripInput, Trips};
use super::kernel::Kernel;
use super::operand::Memory;
use super::operation::Outputs;
use super::program::{ClusterCall, Fold, Instruction, Program};
use super::reverse_loop::{Next, Progress};
use super::row_loop::RowLoop;
use super::small_loop::{self, Output as LoopOutput, SmallLoop, Stop};
use super::source::Place;
use super::times::Times;
use super::value::{MAX_SMALL_BYTES, Value};
use super::well_formed::invalid;
use crate::cost::{
    self, COPIED_BYTE_COST, INSTRUCTION_WORK, MIN_WORK_AHEAD_OF_TEAM, MIN_WORK_BEFORE_TEAM, Work,
};
use crate::exec::convert::Compute;
use crate::exec::threads::parallel::Team;
use crate::tensor::Output;
use crate::{DType, Error};

/// The maximum number of dead blocks that are kept for later results.
const MAX_KEPT_BLOCKS: usize = 16;

/// What runs a program: it provides memory, and decides how long the program runs at a time.
pub trait Host {
    /// Memory for a value.
    type Block: AsRef<[u8]> + AsMut<[u8]> + Send + Sync;

    /// Allocates memory of any contents. `is_result` tells that the value will probably be a result of
    /// the program. Returns `None` if there is not enough memory.
    fn allocate(&mut self, bytes: usize, is_result: bool) -> Option<Self::Block>;

    /// Whether a block can be a result of the program without a copy.
    fn can_be_result(_block: &Self::Block) -> bool {
        true
    }

    /// Called before some work.
    fn before(&mut self, work: Work) -> Wish;
}

/// The wish of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The program runs on.
    Continue,
    /// The program pauses.
    Pause,
}

/// How far a run has come.
#[derive(Debug)]
pub enum Outcome<B> {
    /// To its end. The results may be arguments or literals.
    Done(Vec<Value<B>>),
    /// To a pause that the host wished. [`Execution::resume`] goes on.
    Paused,
    /// To a call: the host computes something from the values, hands its results to
    /// [`Execution::answer`], and resumes.
    Call {
        /// The host's number of the call.
        callback: usize,
        /// The values.
        values: Vec<Value<B>>,
    },
}

/// A run of a program.
#[derive(Debug)]
pub struct Execution<B> {
    frames: Vec<Frame<B>>,
    /// Dead blocks for later values, none of which is meant to be a result.
    kept: Vec<Arc<B>>,
    /// How far the loop has come at which the run has paused.
    paused_loop: Option<PausedLoop<B>>,
    /// The times of the instructions, if they are measured.
    times: Option<Times>,
}

/// The state of a loop over small values or rows between two trips.
#[derive(Debug)]
struct PausedLoop<B> {
    numbers: small_loop::State,
    /// The arrays of a loop over rows, or those of which parts are replaced.
    arrays: SmallVec<[Value<B>; 4]>,
}

/// A region that is being run.
#[derive(Debug)]
struct Frame<B> {
    region: usize,
    /// The number of the next instruction.
    next: usize,
    slots: Vec<Value<B>>,
    task: Task<B>,
}

/// The team of threads of a program that has done some work, or has more ahead.
#[derive(Default)]
struct LazyTeam {
    work: Work,
    team: Option<Team>,
}

impl LazyTeam {
    /// The team of a run that goes on with these instructions. If their work is certain to be enough for a
    /// team, the first of them has it.
    fn ahead_of(instructions: &[Instruction]) -> Self {
        let mut ahead: Work = 0;
        for instruction in instructions {
            match instruction {
                Instruction::Kernel(kernel) => ahead = ahead.saturating_add(kernel.work),
                Instruction::Cluster(call) => ahead = ahead.saturating_add(call.work),
                Instruction::Free(_) | Instruction::Copy { .. } => {}
                _ => break,
            }
            if ahead >= MIN_WORK_AHEAD_OF_TEAM {
                return LazyTeam { work: MIN_WORK_BEFORE_TEAM, team: None };
            }
        }
        LazyTeam::default()
    }

    /// Called before some work.
    #[inline]
    fn before(&mut self, work: Work) {
        if self.work >= MIN_WORK_BEFORE_TEAM && self.team.is_none() {
            self.team = Some(Team::new());
        }
        self.work = self.work.saturating_add(work);
    }
}

/// What happens when a region has ended.
#[derive(Debug)]
enum Task<B> {
    /// The program ends.
    Program,
    /// The body of a loop follows, or the loop ends. Meanwhile the body's slots are kept.
    Condition { spare: Vec<Value<B>> },
    /// The condition of a loop follows. Meanwhile its slots are kept.
    Body { spare: Vec<Value<B>> },
    /// The next region of a loop in reverse order follows, or the loop ends.
    Reverse(Progress<B>),
    /// The next element of a fold follows. The results of the rows before are at the start of the block.
    Fold { element: usize, results: B },
}

impl<B: AsRef<[u8]> + AsMut<[u8]> + Send + Sync> Execution<B> {
    /// Begins a run.
    ///
    /// # Errors
    ///
    /// `Error::Argument` if the arguments have other sizes or another number than the parameters.
    pub fn new(program: &Program, arguments: &[&[u8]]) -> Result<Self, Error> {
        program.check_arguments(arguments)?;
        let code = &program.regions[0];
        let mut slots = Vec::with_capacity(code.slots);
        slots.extend((0..arguments.len()).map(Value::Argument));
        slots.resize_with(code.slots, Value::default);
        let frame = Frame { region: 0, next: 0, slots, task: Task::Program };
        Ok(Execution { frames: vec![frame], kept: Vec::new(), paused_loop: None, times: None })
    }

    /// The run, which adds the times of its instructions to `times`.
    #[must_use]
    pub fn measured(self, times: Times) -> Self {
        Execution { times: Some(times), ..self }
    }

    /// The times of the instructions so far; `None` if they are not measured.
    pub fn take_times(&mut self) -> Option<Times> {
        self.times.take()
    }

    /// Runs until the end, a pause or a call. The arguments are those of `new`.
    ///
    /// # Errors
    ///
    /// The error of an operation, or `Error::TooLarge` if there is not enough memory. The run can't go
    /// on after an error.
    pub fn resume<H: Host<Block = B>>(
        &mut self,
        program: &Program,
        arguments: &[&[u8]],
        host: &mut H,
    ) -> Result<Outcome<B>, Error> {
        let outcome = self.run(&Context { program, arguments }, host);
        if let Some(times) = &mut self.times {
            times.stop();
        }
        outcome
    }

    fn run<H: Host<Block = B>>(&mut self, context: &Context<'_>, host: &mut H) -> Result<Outcome<B>, Error> {
        let program = context.program;
        let ahead =
            self.frames.last().and_then(|frame| program.regions[frame.region].instructions.get(frame.next..));
        let mut team = LazyTeam::ahead_of(ahead.unwrap_or_default());
        loop {
            let Some(frame) = self.frames.last_mut() else { return Err(ended()) };
            let code = &program.regions[frame.region];
            if let Some(times) = &mut self.times {
                times.start(frame.region, frame.next);
            }
            let Some(instruction) = code.instructions.get(frame.next) else {
                // Regions without kernels ask the host too, so that loops of them can be stopped.
                if !matches!(frame.task, Task::Program) && host.before(INSTRUCTION_WORK) == Wish::Pause {
                    return Ok(Outcome::Paused);
                }
                if let Some(results) = self.end_region(context)? {
                    return Ok(Outcome::Done(results));
                }
                continue;
            };
            match instruction {
                Instruction::Kernel(kernel) => {
                    if host.before(kernel.work) == Wish::Pause {
                        return Ok(Outcome::Paused);
                    }
                    frame.next += 1;
                    team.before(kernel.work);
                    run_kernel(context, kernel, &mut frame.slots, &mut self.kept, host)?;
                }
                Instruction::Cluster(call) => {
                    if host.before(call.work) == Wish::Pause {
                        return Ok(Outcome::Paused);
                    }
                    frame.next += 1;
                    team.before(call.work);
                    run_cluster(context, call, &mut frame.slots, &mut self.kept, host)?;
                }
                Instruction::Free(slots) => {
                    frame.next += 1;
                    for &slot in slots {
                        let value = std::mem::take(&mut frame.slots[slot]);
                        free(value, &mut self.kept);
                    }
                }
                Instruction::Jump(target) => frame.next = *target,
                Instruction::JumpIfZero { predicate, dtype, target } => {
                    has_value(*predicate, &frame.slots)?;
                    let is_zero = is_zero(*dtype, context.bytes(*predicate, &frame.slots));
                    frame.next = if is_zero { *target } else { frame.next + 1 };
                }
                Instruction::JumpIfComputed { slot, target } => {
                    let is_computed = !frame.slots[*slot].is_empty();
                    frame.next = if is_computed { *target } else { frame.next + 1 };
                }
                Instruction::Copy { from, to } => {
                    frame.next += 1;
                    frame.slots[*to] = value(*from, &frame.slots)?;
                }
                Instruction::While { condition, body, initial, .. } => {
                    let (condition, body) = (*condition, *body);
                    let [of_condition, of_body] =
                        [condition, body].map(|region| program.regions[region].slots);
                    let mut slots = Vec::with_capacity(of_condition);
                    for &place in initial {
                        slots.push(value(place, &frame.slots)?);
                    }
                    slots.resize_with(of_condition, Value::default);
                    let mut spare = Vec::new();
                    spare.resize_with(of_body, Value::default);
                    self.frames.push(Frame {
                        region: condition,
                        next: 0,
                        slots,
                        task: Task::Condition { spare },
                    });
                }
                Instruction::Small(small) => {
                    let paused = &mut self.paused_loop;
                    if !run_loop(context, small, &mut frame.slots, &mut self.kept, paused, host)? {
                        return Ok(Outcome::Paused);
                    }
                    frame.next += 1;
                }
                Instruction::Rows(rows) => {
                    let paused = &mut self.paused_loop;
                    if !run_rows(context, rows, &mut frame.slots, &mut self.kept, paused, host)? {
                        return Ok(Outcome::Paused);
                    }
                    frame.next += 1;
                }
                Instruction::Reverse(reversal) => {
                    has_value(reversal.trips.place, &frame.slots)?;
                    let trips = reversal.trips.read(context.bytes(reversal.trips.place, &frame.slots));
                    let values = |places: &[Place]| -> Result<_, Error> {
                        places.iter().map(|&place| value(place, &frame.slots)).collect()
                    };
                    let (initial, gradients) = (values(&reversal.initial)?, values(&reversal.gradients)?);
                    let progress = Progress::new(reversal, trips, initial, gradients);
                    self.reverse(context, progress, Vec::new())?;
                }
                Instruction::Fold(fold) => {
                    if fold.count == 0 || fold.output.bytes == 0 {
                        return Err(Error::Argument { op: "reduce", problem: "has no elements".into() });
                    }
                    let Memory { bytes, is_result, .. } = fold.output;
                    let results =
                        host.allocate(bytes, is_result).ok_or_else(|| fold.output.refused("reduce"))?;
                    let mut slots = Vec::new();
                    slots.resize_with(program.regions[fold.body].slots, Value::default);
                    has_value(fold.input, &frame.slots)?;
                    let initial = value(fold.initial, &frame.slots)?;
                    begin_element(context, fold, 0, initial, &frame.slots, &mut slots);
                    let task = Task::Fold { element: 0, results };
                    self.frames.push(Frame { region: fold.body, next: 0, slots, task });
                }
                Instruction::Call { callback, inputs, .. } => {
                    let values = inputs.iter().map(|&place| value(place, &frame.slots));
                    let values = values.collect::<Result<_, Error>>()?;
                    return Ok(Outcome::Call { callback: *callback, values });
                }
            }
        }
    }

    /// Hands over the results of the call at which the run waits.
    ///
    /// # Errors
    ///
    /// `Error::Argument` if the run does not wait for a call, or for other results.
    pub fn answer(&mut self, program: &Program, results: Vec<B>) -> Result<(), Error> {
        let problem = |problem: String| Error::Argument { op: "runtime_call", problem };
        let waiting = self.frames.last_mut().and_then(|frame| {
            match program.regions[frame.region].instructions.get(frame.next)? {
                Instruction::Call { outputs, .. } => Some((frame, outputs)),
                _ => None,
            }
        });
        let Some((frame, outputs)) = waiting else {
            return Err(problem("the program does not wait for a function".into()));
        };
        let sizes: Vec<usize> = results.iter().map(|result| result.as_ref().len()).collect();
        let expected: Vec<usize> = outputs.iter().map(|output| output.1).collect();
        if sizes != expected {
            return Err(problem(format!("the function gave {sizes:?} bytes in place of {expected:?}")));
        }
        for (&(slot, _), result) in outputs.iter().zip(results) {
            frame.slots[slot] = Value::of(result);
        }
        frame.next += 1;
        Ok(())
    }

    /// Ends the region of the topmost frame; returns the results of the program at its end.
    fn end_region(&mut self, context: &Context<'_>) -> Result<Option<Vec<Value<B>>>, Error> {
        let Some(mut frame) = self.frames.pop() else { return Err(ended()) };
        let code = &context.program.regions[frame.region];
        match frame.task {
            Task::Program => {
                let results = code.results.iter();
                let results = results.map(|result| take(result.place, result.is_last, &mut frame.slots));
                return Ok(Some(results.collect::<Result<_, Error>>()?));
            }
            Task::Condition { mut spare } => {
                let (outputs, body) = match self.waiting(context) {
                    Some((_, Instruction::While { outputs, body, .. })) => (outputs, *body),
                    _ => return Err(ended()),
                };
                let [result] = &code.results[..] else { return Err(ended()) };
                has_value(result.place, &frame.slots)?;
                let is_zero = is_zero(result.dtype, context.bytes(result.place, &frame.slots));
                if is_zero {
                    if let Some(parent) = self.frames.last_mut() {
                        for (&slot, value) in outputs.iter().zip(&mut frame.slots) {
                            parent.slots[slot] = std::mem::take(value);
                        }
                        parent.next += 1;
                    }
                    free_all(&mut frame.slots, &mut self.kept);
                    free_all(&mut spare, &mut self.kept);
                    return Ok(None);
                }
                for (to, from) in spare.iter_mut().zip(&mut frame.slots[..outputs.len()]) {
                    *to = std::mem::take(from);
                }
                free_all(&mut frame.slots, &mut self.kept);
                let task = Task::Body { spare: frame.slots };
                self.frames.push(Frame { region: body, next: 0, slots: spare, task });
            }
            Task::Body { mut spare } => {
                let Some((_, Instruction::While { condition, .. })) = self.waiting(context) else {
                    return Err(ended());
                };
                for (to, result) in spare.iter_mut().zip(&code.results) {
                    *to = take(result.place, result.is_last, &mut frame.slots)?;
                }
                free_all(&mut frame.slots, &mut self.kept);
                let task = Task::Condition { spare: frame.slots };
                self.frames.push(Frame { region: *condition, next: 0, slots: spare, task });
            }
            Task::Reverse(mut progress) => {
                let results = code.results.iter();
                let results = results.map(|result| take(result.place, result.is_last, &mut frame.slots));
                progress.take(results.collect::<Result<_, Error>>()?)?;
                free_all(&mut frame.slots, &mut self.kept);
                self.reverse(context, progress, frame.slots)?;
            }
            Task::Fold { element, mut results } => {
                let Some((parent, Instruction::Fold(fold))) = self.waiting(context) else {
                    return Err(ended());
                };
                let [result] = &code.results[..] else { return Err(ended()) };
                let mut accumulator = take(result.place, true, &mut frame.slots)?;
                let next = element + 1;
                if next.is_multiple_of(fold.count) {
                    let folded = accumulator.bytes(context.arguments, &context.program.literals);
                    let end = next / fold.count * folded.len();
                    results.as_mut()[end - folded.len()..end].copy_from_slice(folded);
                    if end == fold.output.bytes {
                        if let Some(parent) = self.frames.last_mut() {
                            parent.slots[fold.output.slot] = Value::of(results);
                            parent.next += 1;
                        }
                        return Ok(None);
                    }
                    accumulator = value(fold.initial, &parent.slots)?;
                }
                frame.slots.fill_with(Value::default);
                begin_element(context, fold, next, accumulator, &parent.slots, &mut frame.slots);
                let task = Task::Fold { element: next, results };
                self.frames.push(Frame { region: frame.region, next: 0, slots: frame.slots, task });
            }
        }
        Ok(None)
    }

    /// Begins the next region of the loop in reverse order at which the topmost frame waits, or ends the
    /// loop. `slots` are memory for the region's slots.
    fn reverse(
        &mut self,
        context: &Context<'_>,
        mut progress: Progress<B>,
        mut slots: Vec<Value<B>>,
    ) -> Result<(), Error> {
        let Some((_, Instruction::Reverse(reversal))) = self.waiting(context) else { return Err(ended()) };
        let Some(parent) = self.frames.last_mut() else { return Err(ended()) };
        match progress.next(reversal)? {
            Next::Run(region, values) => {
                slots.clear();
                slots.extend(values);
                for &place in &reversal.invariants {
                    slots.push(value(place, &parent.slots)?);
                }
                slots.resize_with(context.program.regions[region].slots, Value::default);
                self.frames.push(Frame { region, next: 0, slots, task: Task::Reverse(progress) });
            }
            Next::End(gradients) => {
                for (&slot, gradient) in reversal.outputs.iter().zip(gradients) {
                    parent.slots[slot] = gradient;
                }
                parent.next += 1;
            }
        }
        Ok(())
    }

    /// The topmost frame and the instruction at which it waits for the region above it.
    fn waiting<'p>(&self, context: &Context<'p>) -> Option<(&Frame<B>, &'p Instruction)> {
        let frame = self.frames.last()?;
        Some((frame, context.program.regions[frame.region].instructions.get(frame.next)?))
    }
}

#[cold]
fn ended() -> Error {
    Error::Argument { op: "program", problem: "the run has ended".into() }
}

/// What the values of a run refer to.
struct Context<'a> {
    program: &'a Program,
    arguments: &'a [&'a [u8]],
}

impl Context<'_> {
    #[inline]
    fn bytes<'b, B: AsRef<[u8]>>(&'b self, place: Place, slots: &'b [Value<B>]) -> &'b [u8] {
        match place {
            Place::Slot(slot) => slots[slot].bytes(self.arguments, &self.program.literals),
            Place::Literal(index) => &self.program.literals[index],
        }
    }
}

// Which steps a run takes is not known before: that each branch gives the slots values that later steps
// read is up to whoever makes a program.

/// Checks that there is a value at a place.
#[inline]
fn has_value<B>(place: Place, slots: &[Value<B>]) -> Result<(), Error> {
    match place {
        Place::Slot(slot) if matches!(slots[slot], Value::Empty) => {
            Err(invalid(format!("{place:?} has no value on the way that a run took")))
        }
        _ => Ok(()),
    }
}

/// Checks that there are values at all places.
#[inline]
fn have_values<B>(mut places: impl Iterator<Item = Place>, slots: &[Value<B>]) -> Result<(), Error> {
    places.try_for_each(|place| has_value(place, slots))
}

/// The value at a place, which stays there.
fn value<B>(place: Place, slots: &[Value<B>]) -> Result<Value<B>, Error> {
    has_value(place, slots)?;
    Ok(match place {
        Place::Slot(slot) => slots[slot].clone(),
        Place::Literal(index) => Value::Literal(index),
    })
}

/// The value at a place, which is emptied if this is its last use.
fn take<B>(place: Place, is_last: bool, slots: &mut [Value<B>]) -> Result<Value<B>, Error> {
    match place {
        Place::Slot(slot) if is_last => {
            has_value(place, slots)?;
            Ok(std::mem::take(&mut slots[slot]))
        }
        _ => value(place, slots),
    }
}

/// Keeps the block of a dead value that no other slot shares.
fn free<B: AsRef<[u8]>>(value: Value<B>, kept: &mut Vec<Arc<B>>) {
    if let Value::Block(mut block) = value
        && kept.len() < MAX_KEPT_BLOCKS
        && Arc::get_mut(&mut block).is_some()
    {
        kept.push(block);
    }
}

fn free_all<B: AsRef<[u8]>>(slots: &mut [Value<B>], kept: &mut Vec<Arc<B>>) {
    for slot in slots {
        free(std::mem::take(slot), kept);
    }
}

/// Passes an element and the accumulator to the body of a fold.
fn begin_element<B: AsRef<[u8]>>(
    context: &Context<'_>,
    fold: &Fold,
    element: usize,
    accumulator: Value<B>,
    parent: &[Value<B>],
    slots: &mut [Value<B>],
) {
    let bytes = &context.bytes(fold.input, parent)[element * fold.width..][..fold.width];
    slots[0] = Value::small(bytes);
    slots[1] = accumulator;
}

/// A value of these bytes.
fn store<H: Host>(
    op: &'static str,
    memory: &Memory,
    bytes: &[u8],
    host: &mut H,
) -> Result<Value<H::Block>, Error> {
    if bytes.len() <= MAX_SMALL_BYTES {
        return Ok(Value::small(bytes));
    }
    let mut block = allocate(op, memory, &mut Vec::new(), host)?;
    if let Some(block) = Arc::get_mut(&mut block) {
        block.as_mut().copy_from_slice(bytes);
    }
    Ok(Value::Block(block))
}

/// Memory for a result, which nothing else refers to.
fn allocate<H: Host>(
    op: &'static str,
    memory: &Memory,
    kept: &mut Vec<Arc<H::Block>>,
    host: &mut H,
) -> Result<Arc<H::Block>, Error> {
    let fits = |block: &Arc<H::Block>| {
        (**block).as_ref().len() == memory.bytes && (!memory.is_result || H::can_be_result(block))
    };
    if let Some(index) = kept.iter().rposition(fits) {
        return Ok(kept.swap_remove(index));
    }
    host.allocate(memory.bytes, memory.is_result).map(Arc::new).ok_or_else(|| memory.refused(op))
}

/// Takes the block of a value for a result that is written over it, if nothing else has the block.
fn take_block<H: Host>(value: &mut Value<H::Block>, memory: &Memory) -> Option<Arc<H::Block>> {
    let Value::Block(block) = value else { return None };
    let is_free = Arc::get_mut(block).is_some() && (!memory.is_result || H::can_be_result(block));
    match std::mem::take(value) {
        Value::Block(block) if is_free => Some(block),
        other => {
            *value = other;
            None
        }
    }
}

/// Memory for results, allocated where there is none yet, which `write` has written.
fn write_blocks<'m, H: Host>(
    op: &'static str,
    memories: impl Iterator<Item = (&'m Memory, Option<Arc<H::Block>>)>,
    kept: &mut Vec<Arc<H::Block>>,
    host: &mut H,
    write: impl FnOnce(&mut [&mut [u8]]) -> Result<(), Error>,
) -> Result<SmallVec<[Arc<H::Block>; 4]>, Error> {
    let mut blocks = SmallVec::<[Arc<H::Block>; 4]>::new();
    for (memory, block) in memories {
        blocks.push(match block {
            Some(block) => block,
            None => allocate(op, memory, kept, host)?,
        });
    }
    let results = blocks.iter_mut().map(|block| Some(Arc::get_mut(block)?.as_mut()));
    let mut results = results.collect::<Option<SmallVec<[&mut [u8]; 4]>>>().ok_or_else(ended)?;
    write(&mut results)?;
    drop(results);
    Ok(blocks)
}

/// Runs a kernel on values in slots, and puts its results into slots.
fn run_kernel<H: Host>(
    context: &Context<'_>,
    kernel: &Kernel,
    slots: &mut [Value<H::Block>],
    kept: &mut Vec<Arc<H::Block>>,
    host: &mut H,
) -> Result<(), Error> {
    let op = kernel.operation.name();
    have_values(kernel.inputs.iter().map(|input| input.place), slots)?;
    if let (Some(slot), [memory]) = (kernel.over, &kernel.outputs[..]) {
        let mut value = std::mem::take(&mut slots[slot]);
        if let Value::Block(block) = &mut value
            && let Some(bytes) = Arc::get_mut(block)
        {
            kernel.update(operands(context, kernel, slots), bytes.as_mut())?;
            slots[memory.slot] = value;
            return Ok(());
        }
        slots[slot] = value;
    }
    if let [memory] = &kernel.outputs[..] {
        if memory.bytes <= MAX_SMALL_BYTES {
            let mut bytes = [0; MAX_SMALL_BYTES];
            kernel.compute(operands(context, kernel, slots), &mut bytes[..memory.bytes])?;
            slots[memory.slot] = Value::Small { length: memory.bytes as u8, bytes };
            return Ok(());
        }
        let mut block = allocate(op, memory, kept, host)?;
        let Some(bytes) = Arc::get_mut(&mut block) else { return Err(ended()) };
        kernel.compute(operands(context, kernel, slots), bytes.as_mut())?;
        slots[memory.slot] = Value::Block(block);
        return Ok(());
    }
    let mut blocks = SmallVec::<[H::Block; 3]>::new();
    for memory in &kernel.outputs {
        let block = host.allocate(memory.bytes, memory.is_result);
        blocks.push(block.ok_or_else(|| memory.refused(op))?);
    }
    let mut outputs = Outputs::new();
    for (memory, block) in kernel.outputs.iter().zip(&mut blocks) {
        outputs.push(Output { dtype: memory.dtype, shape: &memory.shape, bytes: block.as_mut() });
    }
    kernel.compute_all(operands(context, kernel, slots), outputs)?;
    for (memory, block) in kernel.outputs.iter().zip(blocks) {
        slots[memory.slot] = Value::Block(Arc::new(block));
    }
    Ok(())
}

/// The bytes of the operands of a kernel.
fn operands<'b, B: AsRef<[u8]>>(
    context: &'b Context<'_>,
    kernel: &'b Kernel,
    slots: &'b [Value<B>],
) -> impl Fn(usize) -> &'b [u8] {
    |index| context.bytes(kernel.inputs[index].place, slots)
}

/// The state of a loop over small values at its start.
fn start<B: AsRef<[u8]>>(context: &Context<'_>, small: &SmallLoop, slots: &[Value<B>]) -> small_loop::State {
    small.start(|place| context.bytes(place, slots))
}

/// The tensors that a loop over small values reads.
fn loop_tensors<'b, B: AsRef<[u8]>>(
    context: &'b Context<'_>,
    small: &SmallLoop,
    slots: &'b [Value<B>],
) -> SmallVec<[&'b [u8]; 4]> {
    small.tensors.iter().map(|&place| context.bytes(place, slots)).collect()
}

/// Puts the small values at the end of a loop into slots, and the values that it has not changed.
fn finish_loop<H: Host>(
    small: &SmallLoop,
    state: &small_loop::State,
    slots: &mut [Value<H::Block>],
    host: &mut H,
) -> Result<(), Error> {
    for (slot, output) in &small.outputs {
        slots[*slot] = match output {
            LoopOutput::Elements(elements, width, memory) => {
                store("while", memory, &state.elements(elements, *width), host)?
            }
            LoopOutput::Small(part, memory) => store("while", memory, state.small(part.clone()), host)?,
            LoopOutput::Unchanged(place) => value(*place, slots)?,
        };
    }
    Ok(())
}

/// Runs a loop over small values, from where it has paused; returns whether it has come to its end.
fn run_loop<H: Host>(
    context: &Context<'_>,
    small: &SmallLoop,
    slots: &mut [Value<H::Block>],
    kept: &mut Vec<Arc<H::Block>>,
    paused: &mut Option<PausedLoop<H::Block>>,
    host: &mut H,
) -> Result<bool, Error> {
    let mut state = match paused.take() {
        Some(state) => state,
        None => {
            have_values(small.places(), slots)?;
            let copied = small.replaced.iter().fold(0, |sum: usize, array| sum.saturating_add(array.1.bytes));
            if copied > 0 && host.before(cost::work(copied, COPIED_BYTE_COST)) == Wish::Pause {
                return Ok(false);
            }
            let memories = small.replaced.iter().map(|array| (&array.1, None));
            let arrays = write_blocks("while", memories, kept, host, |blocks| {
                for (block, &(place, _)) in blocks.iter_mut().zip(&small.replaced) {
                    block.copy_from_slice(context.bytes(place, slots));
                }
                Ok(())
            })?;
            let arrays = arrays.into_iter().map(Value::Block).collect();
            PausedLoop { numbers: start(context, small, slots), arrays }
        }
    };
    let tensors = loop_tensors(context, small, slots);
    let blocks = state.arrays.iter_mut().map(|array| match array {
        Value::Block(block) => Some(Arc::get_mut(block)?.as_mut()),
        _ => None,
    });
    let mut replaced = blocks.collect::<Option<SmallVec<[&mut [u8]; 4]>>>().ok_or_else(ended)?;
    let arrays = small_loop::Arrays { tensors: &tensors, replaced: &mut replaced };
    let is_done = small.run(&mut state.numbers, arrays, |work| host.before(work) == Wish::Continue)?;
    drop((tensors, replaced));
    if !is_done {
        *paused = Some(state);
        return Ok(false);
    }
    finish_loop(small, &state.numbers, slots, host)?;
    for ((_, memory), array) in small.replaced.iter().zip(state.arrays) {
        slots[memory.slot] = array;
    }
    Ok(true)
}

/// Runs a loop over rows, from where it has paused; returns whether it has come to its end.
fn run_rows<H: Host>(
    context: &Context<'_>,
    rows: &RowLoop,
    slots: &mut [Value<H::Block>],
    kept: &mut Vec<Arc<H::Block>>,
    paused: &mut Option<PausedLoop<H::Block>>,
    host: &mut H,
) -> Result<bool, Error> {
    let mut state = match paused.take() {
        Some(state) => state,
        None => {
            let places = rows.numbers.places().chain(rows.places.iter().copied().flatten());
            have_values(places, slots)?;
            let numbers = start(context, &rows.numbers, slots);
            let arrays = rows.arrays.iter().map(|array| take(array.initial, array.is_last, slots));
            PausedLoop { numbers, arrays: arrays.collect::<Result<_, Error>>()? }
        }
    };
    let mut numbers = Vec::new();
    loop {
        if host.before(rows.work) == Wish::Pause {
            *paused = Some(state);
            return Ok(false);
        }
        numbers.clear();
        let tensors = loop_tensors(context, &rows.numbers, slots);
        let may_go_on = |work| host.before(work) == Wish::Continue;
        let (count, stop) =
            rows.numbers.run_trips(&mut state.numbers, &tensors, rows.trips, &mut numbers, may_go_on);
        drop(tensors);
        if count > 0 {
            let mut overwritten = SmallVec::<[usize; 4]>::new();
            let mut memories = SmallVec::<[_; 4]>::new();
            for (index, (array, value)) in rows.arrays.iter().zip(&mut state.arrays).enumerate() {
                let block = if array.is_overwritten { take_block::<H>(value, &array.memory) } else { None };
                overwritten.extend(block.is_some().then_some(index));
                memories.push((&array.memory, block));
            }
            let blocks = write_blocks("while", memories.into_iter(), kept, host, |results| {
                let inputs =
                    rows.inputs.iter().zip(&rows.places).map(|(&input, &place)| match (input, place) {
                        (TripInput::Carried(index), _) => {
                            state.arrays[index].bytes(context.arguments, &context.program.literals)
                        }
                        (_, Some(place)) => context.bytes(place, slots),
                        (_, None) => &[],
                    });
                let trips = Trips { count, inputs: &rows.inputs, numbers: &numbers };
                let inputs = inputs.collect::<SmallVec<[&[u8]; 8]>>();
                rows.cluster.run_trips(&inputs, &overwritten, results, trips)
            })?;
            for (array, block) in state.arrays.iter_mut().zip(blocks) {
                free(std::mem::replace(array, Value::Block(block)), kept);
            }
        }
        match stop? {
            Stop::Yield => {}
            Stop::Look => {
                *paused = Some(state);
                return Ok(false);
            }
            Stop::End => break,
        }
    }
    finish_loop(&rows.numbers, &state.numbers, slots, host)?;
    for (array, value) in rows.arrays.iter().zip(state.arrays) {
        slots[array.memory.slot] = value;
    }
    Ok(true)
}

/// Runs a cluster on values in slots, and puts its results into slots.
fn run_cluster<H: Host>(
    context: &Context<'_>,
    ClusterCall { cluster, outputs, overwritten, .. }: &ClusterCall,
    slots: &mut [Value<H::Block>],
    kept: &mut Vec<Arc<H::Block>>,
    host: &mut H,
) -> Result<(), Error> {
    have_values(cluster.inputs.iter().map(|input| input.operand.place), slots)?;
    let mut taken = SmallVec::<[Overwritten; 2]>::new();
    let mut blocks = SmallVec::<[Option<Arc<H::Block>>; 4]>::new();
    blocks.resize_with(outputs.len(), || None);
    for pair in overwritten {
        if let Place::Slot(slot) = cluster.inputs[pair.input].operand.place
            && let Some(block) = take_block::<H>(&mut slots[slot], &outputs[pair.output])
        {
            blocks[pair.output] = Some(block);
            taken.push(*pair);
        }
    }
    let blocks = write_blocks("program", outputs.iter().zip(blocks), kept, host, |results| {
        let inputs = cluster.inputs.iter().map(|input| context.bytes(input.operand.place, slots));
        cluster.run(&inputs.collect::<SmallVec<[&[u8]; 8]>>(), &taken, results)
    })?;
    for (memory, block) in outputs.iter().zip(blocks) {
        slots[memory.slot] = Value::Block(block);
    }
    Ok(())
}

/// Whether a scalar counts as false: a number that is zero. A complex number is never equal to zero in
/// Elixir.
fn is_zero(dtype: DType, bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(dtype.width())];
    if dtype.is_packed() {
        return bytes.iter().all(|&byte| byte & ((1 << dtype.bits()) - 1) == 0);
    }
    if dtype.is_complex() {
        return false;
    }
    let mut truth = [0];
    match Compute::Truth.load(dtype) {
        Some(conversion) if !bytes.is_empty() => (conversion.convert)(bytes, &mut truth),
        _ => truth[0] = bytes.first().copied().unwrap_or(0),
    }
    truth == [0]
}
