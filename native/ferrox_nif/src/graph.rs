//! The NIFs of compiled programs.
//!
//! A program is a resource: it is code, not data. A run that pauses is kept in a resource too, without
//! its arguments, which are passed again when it goes on. `Ferrox.Defn.Program` has the other side.

mod decode;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ferrox_core::cost::{self, COPIED_BYTE_COST, MAX_KEPT_BLOCK_BYTES, Work};
use ferrox_core::exec::memory::scratch;
use ferrox_core::exec::threads::cooperative_yield::{self, PausingCall};
use ferrox_core::exec::threads::parallel;
use ferrox_core::graph::{Execution, Host, Outcome, Program, Times, Value, Wish};
use ferrox_core::{DType, Error};
use rustler::schedule::consume_timeslice;
use rustler::{Encoder, Env, LocalPid, NifResult, OwnedBinary, Resource, ResourceArc, Term};

use crate::entry::{Tuple, bad_argument, bytes, nif, take_over as take_over_type};
use crate::scheduling::{Call, Failure, Scheduler, TIMESLICE, UNNOTICED, allocate, answer, copy};
use crate::term::list;

mod atoms {
    rustler::atoms! { call, paused, measured }
}

struct Compiled(Program);

#[rustler::resource_impl]
impl Resource for Compiled {}

/// A run that has paused; taken out when it goes on.
struct Paused {
    program: ResourceArc<Compiled>,
    run: Mutex<Option<Run>>,
}

/// A run between two calls of NIFs.
struct Run {
    execution: Execution<Block>,
    /// What the run has come to, if its values are yet to be copied.
    outcome: Option<Outcome<Block>>,
}

impl Run {
    fn new(execution: Execution<Block>) -> Self {
        Run { execution, outcome: None }
    }
}

#[rustler::resource_impl]
impl Resource for Paused {}

/// Memory for a value of a program.
enum Block {
    /// A binary of the VM, for a result or a very large value.
    Binary(OwnedBinary),
    Scratch(Vec<u8>),
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        match self {
            Block::Binary(binary) => binary.as_slice(),
            Block::Scratch(bytes) => bytes,
        }
    }
}

impl AsMut<[u8]> for Block {
    fn as_mut(&mut self) -> &mut [u8] {
        match self {
            Block::Binary(binary) => binary.as_mut_slice(),
            Block::Scratch(bytes) => bytes,
        }
    }
}

/// Makes the new version of the module the owner of programs and runs.
pub fn take_over(env: Env<'_>) -> bool {
    take_over_type::<Compiled>(env) && take_over_type::<Paused>(env)
}

fn scratch_block(length: usize) -> Option<Vec<u8>> {
    scratch("program", DType::U8, &[length], length).ok()
}

/// The results up to this size are written to a binary on the heap of the process in any case.
const MAX_HEAP_BINARY_BYTES: usize = 64;

/// Work of a dirty scheduler between two looks whether the process is still alive.
const WORK_PER_LOOK: Work = TIMESLICE;

/// The VM as the host of a program.
struct Vm<'a> {
    env: Env<'a>,
    scheduler: Scheduler,
    pid: LocalPid,
    done: Work,
    /// The work after which a dirty scheduler looks whether the process is alive.
    next_look: Work,
    /// The run pauses once it has done some work.
    pausing: Option<PausingCall>,
}

impl<'a> Vm<'a> {
    fn new(call: Call<'a>) -> Self {
        let (env, scheduler) = (call.env, call.scheduler);
        Vm { env, scheduler, pid: env.pid(), done: 0, next_look: WORK_PER_LOOK, pausing: None }
    }

    fn end(&mut self) {
        self.pausing = None;
        if self.done > UNNOTICED && self.scheduler == Scheduler::Normal {
            let percent = self.done / (TIMESLICE / 100);
            consume_timeslice(self.env, i32::try_from(percent).unwrap_or(100).clamp(1, 100));
        }
    }
}

impl Host for Vm<'_> {
    type Block = Block;

    fn allocate(&mut self, length: usize, is_result: bool) -> Option<Block> {
        // The allocator of the VM keeps the pages of large blocks, which ours gives back to the system.
        let is_binary = length > if is_result { MAX_HEAP_BINARY_BYTES } else { MAX_KEPT_BLOCK_BYTES };
        if is_binary {
            allocate(length).map(Block::Binary)
        } else {
            scratch_block(length).map(Block::Scratch)
        }
    }

    fn can_be_result(block: &Block) -> bool {
        matches!(block, Block::Binary(_))
    }

    #[inline]
    fn before(&mut self, work: Work) -> Wish {
        let done = self.done.saturating_add(work);
        if done > UNNOTICED && !self.before_long(done) {
            return Wish::Pause;
        }
        self.done = done;
        Wish::Continue
    }
}

impl Vm<'_> {
    /// Whether the run goes on, when all its work on this scheduler would be `done`.
    fn before_long(&mut self, done: Work) -> bool {
        if self.scheduler == Scheduler::Normal && parallel::is_long(done) {
            return false;
        }
        if self.scheduler == Scheduler::Dirty && done >= self.next_look {
            self.next_look = done.saturating_add(WORK_PER_LOOK);
            if !self.env.is_process_alive(self.pid) {
                return false;
            }
        }
        self.pausing.get_or_insert_with(cooperative_yield::begin);
        true
    }
}

fn data(term: Term<'_>) -> NifResult<&[u8]> {
    bytes(term).ok_or_else(bad_argument)
}

/// The bytes of the arguments, which are a tuple of binaries.
fn arguments<'a>(terms: Term<'a>) -> Result<Vec<&'a [u8]>, Failure> {
    let tuple = Tuple::of(terms).ok_or(Failure::BadArgument)?;
    Ok(tuple.terms().map(data).collect::<NifResult<_>>()?)
}

fn compile<'a>(call: Call<'a>, source: Term<'a>) -> Result<Term<'a>, Failure> {
    let (regions, literals) = decode::program(source)?;
    let program = Program::new(&regions, literals)?;
    Ok(ResourceArc::new(Compiled(program)).encode(call.env))
}

fn explain<'a>(call: Call<'a>, program: Term<'a>) -> Result<Term<'a>, Failure> {
    let program: ResourceArc<Compiled> = program.decode()?;
    Ok(program.0.to_string().encode(call.env))
}

fn start<'a>(call: Call<'a>, program: Term<'a>, terms: Term<'a>) -> Result<Term<'a>, Failure> {
    let program: ResourceArc<Compiled> = program.decode()?;
    let arguments = arguments(terms)?;
    let execution = Execution::new(&program.0, &arguments)?;
    go_on(call, &program, Run::new(execution), &arguments, terms)
}

/// Runs as often as asked, up to the first pause or call, and measures the times of the instructions.
fn measure<'a>(
    call: Call<'a>,
    program: Term<'a>,
    terms: Term<'a>,
    runs: Term<'a>,
) -> Result<Term<'a>, Failure> {
    let program: ResourceArc<Compiled> = program.decode()?;
    let runs: u32 = runs.decode()?;
    let arguments = arguments(terms)?;
    let mut times = Times::new(&program.0);
    for _ in 1..runs {
        let mut execution = Execution::new(&program.0, &arguments)?.measured(times);
        let mut vm = Vm::new(call);
        let outcome = execution.resume(&program.0, &arguments, &mut vm);
        vm.end();
        if !matches!(outcome?, Outcome::Done(_)) {
            // The times have a part of a run.
            times = Times::new(&program.0);
            break;
        }
        times = execution.take_times().unwrap_or_else(|| Times::new(&program.0));
    }
    let execution = Execution::new(&program.0, &arguments)?.measured(times);
    go_on(call, &program, Run::new(execution), &arguments, terms)
}

/// Goes on with a run that has paused, or that waits for `answers`: the list of what a function gave.
fn resume<'a>(
    call: Call<'a>,
    program: Term<'a>,
    paused: Term<'a>,
    terms: Term<'a>,
    answers: Term<'a>,
) -> Result<Term<'a>, Failure> {
    let (program, paused): (ResourceArc<Compiled>, ResourceArc<Paused>) =
        (program.decode()?, paused.decode()?);
    let arguments = arguments(terms)?;
    let refused = |problem: &str| Error::Argument { op: "program", problem: problem.into() };
    if !std::ptr::eq(&*paused.program, &*program) {
        return Err(refused("the run is of another program").into());
    }
    program.0.check_arguments(&arguments)?;
    let answers = if answers.is_list() { Some(list(answers, data)?) } else { None };
    let lengths = answers.iter().flatten().map(|answer| answer.len());
    if call.is_too_long(cost::work(lengths.fold(0, usize::saturating_add), COPIED_BYTE_COST)) {
        return Ok(call.dirty());
    }
    let run = paused.run.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut run = run.ok_or_else(|| refused("the run has gone on already"))?;
    if let Some(answers) = answers {
        if run.outcome.is_some() {
            return Err(refused("the run does not wait for a function").into());
        }
        let mut blocks = Vec::with_capacity(answers.len());
        for bytes in answers {
            let mut block = scratch("program", DType::U8, &[bytes.len()], bytes.len())?;
            block.copy_from_slice(bytes);
            blocks.push(Block::Scratch(block));
        }
        run.execution.answer(&program.0, blocks)?;
    }
    go_on(call, &program, run, &arguments, terms)
}

/// Runs to the end: the list of results, or `{:measured, text, results}` if times are measured; to a
/// pause: `{:paused, run}`; or to a call: `{:call, run, number, values}`.
fn go_on<'a>(
    call: Call<'a>,
    compiled: &ResourceArc<Compiled>,
    mut run: Run,
    arguments: &[&[u8]],
    terms: Term<'a>,
) -> Result<Term<'a>, Failure> {
    let (env, program) = (call.env, &compiled.0);
    let mut vm = Vm::new(call);
    let outcome = match run.outcome.take() {
        Some(outcome) => Ok(outcome),
        None => run.execution.resume(program, arguments, &mut vm),
    };
    let copying = outcome.as_ref().map_or(0, |outcome| match outcome {
        Outcome::Done(values) | Outcome::Call { values, .. } => copying(program, values),
        Outcome::Paused => 0,
    });
    let may_copy = vm.before(copying) == Wish::Continue;
    let paused = |run| ResourceArc::new(Paused { program: compiled.clone(), run: Mutex::new(Some(run)) });
    let answer = match outcome {
        Ok(outcome @ (Outcome::Done(_) | Outcome::Call { .. })) if !may_copy => {
            Ok((atoms::paused(), paused(Run { outcome: Some(outcome), ..run })).encode(env))
        }
        Ok(Outcome::Done(values)) => {
            encode(env, program, terms, values).map(|values| match run.execution.take_times() {
                None => values.encode(env),
                Some(times) => (atoms::measured(), program.with_times(&times), values).encode(env),
            })
        }
        Ok(Outcome::Paused) => Ok((atoms::paused(), paused(run)).encode(env)),
        Ok(Outcome::Call { callback, values }) => encode(env, program, terms, values)
            .map(|values| (atoms::call(), paused(run), callback, values).encode(env)),
        Err(error) => Err(error.into()),
    };
    vm.end();
    answer
}

/// How often each block that is referred to several times is among some values.
fn uses(values: &[Value<Block>]) -> HashMap<*const Block, usize> {
    let mut uses = HashMap::new();
    for value in values {
        if let Value::Block(block) = value
            && Arc::strong_count(block) > 1
        {
            *uses.entry(Arc::as_ptr(block)).or_default() += 1;
        }
    }
    uses
}

/// The work of copying what `encode` copies.
fn copying(program: &Program, values: &[Value<Block>]) -> Work {
    let uses = uses(values);
    let lengths = values.iter().map(|value| match value {
        Value::Argument(_) => 0,
        Value::Block(block) => match **block {
            Block::Binary(_) if uses.get(&Arc::as_ptr(block)).unwrap_or(&1) == &Arc::strong_count(block) => 0,
            _ => (**block).as_ref().len(),
        },
        other => other.bytes(&[], program.literals()).len(),
    });
    cost::work(lengths.fold(0, usize::saturating_add), COPIED_BYTE_COST)
}

/// The values as binaries. Binaries that nothing else refers to are not copied, and what is there several
/// times is one term.
fn encode<'a>(
    env: Env<'a>,
    program: &Program,
    arguments: Term<'a>,
    values: Vec<Value<Block>>,
) -> Result<Vec<Term<'a>>, Failure> {
    let mut uses = uses(&values);
    let mut of_blocks: HashMap<*const Block, Term<'a>> = HashMap::new();
    // A block becomes a term where it is used for the last time: then nothing else may refer to it.
    let mut terms = Vec::with_capacity(values.len());
    for value in values {
        terms.push(match value {
            Value::Argument(index) => {
                let term = Tuple::of(arguments).and_then(|tuple| tuple.terms().nth(index));
                Ok(term.ok_or(Failure::BadArgument)?)
            }
            Value::Block(block) => {
                let address = Arc::as_ptr(&block);
                let left = uses.get_mut(&address).map(|left| {
                    *left -= 1;
                    *left
                });
                if left.is_some_and(|left| left > 0) {
                    Err(address)
                } else {
                    let term = match Arc::try_unwrap(block) {
                        Ok(Block::Binary(binary)) => binary.release(env).into(),
                        Ok(Block::Scratch(bytes)) => copy(env, "program", &bytes)?,
                        Err(shared) => copy(env, "program", (*shared).as_ref())?,
                    };
                    if left.is_some() {
                        of_blocks.insert(address, term);
                    }
                    Ok(term)
                }
            }
            other => Ok(copy(env, "program", other.bytes(&[], program.literals()))?),
        });
    }
    let terms = terms
        .into_iter()
        .map(|term| term.or_else(|block| of_blocks.get(&block).copied().ok_or(Failure::BadArgument)));
    terms.collect()
}

nif!("graph_compile", DirtyCpu, |env, [source]| answer(env, "program", Scheduler::Dirty, |call| compile(
    call, source
)));
nif!("graph_explain", DirtyCpu, |env, [program]| answer(env, "program", Scheduler::Dirty, |call| explain(
    call, program
)));
nif!("graph_measure", DirtyCpu, |env, [program, arguments, runs]| {
    answer(env, "program", Scheduler::Dirty, |call| measure(call, program, arguments, runs))
});
nif!("graph_run_normal", Normal, |env, [program, arguments]| {
    answer(env, "program", Scheduler::Normal, |call| start(call, program, arguments))
});
nif!("graph_resume_normal", Normal, |env, [program, paused, arguments, answers]| {
    answer(env, "program", Scheduler::Normal, |call| resume(call, program, paused, arguments, answers))
});
nif!("graph_resume_dirty", DirtyCpu, |env, [program, paused, arguments, answers]| {
    answer(env, "program", Scheduler::Dirty, |call| resume(call, program, paused, arguments, answers))
});
