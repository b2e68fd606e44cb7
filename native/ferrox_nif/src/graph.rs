//! The NIFs of compiled programs.
//!
//! A program is a resource: it is code, not data. A run that pauses is kept in a resource too, without
//! its arguments, which are passed again when it goes on. `Ferrox.Defn.Program` has the other side.

mod decode;

use std::sync::{Arc, Mutex, PoisonError};

use ferrox_core::cost::{MAX_KEPT_BLOCK_BYTES, Work};
use ferrox_core::exec::memory::scratch;
use ferrox_core::exec::threads::cooperative_yield::{self, PausingCall};
use ferrox_core::exec::threads::parallel;
use ferrox_core::graph::{Execution, Host, Outcome, Program, Times, Value, Wish};
use ferrox_core::{DType, Error};
use rustler::schedule::consume_timeslice;
use rustler::{Encoder, Env, LocalPid, OwnedBinary, Resource, ResourceArc, Term};

use crate::entry::{Tuple, binary, bytes, nif, take_over as take_over_type};
use crate::scheduling::{Call, Failure, Scheduler, TIMESLICE, UNNOTICED, allocate, answer};
use crate::term::elements;

mod atoms {
    rustler::atoms! { call, paused, measured }
}

struct Compiled(Program);

#[rustler::resource_impl]
impl Resource for Compiled {}

/// A run that has paused; taken out when it goes on.
struct Paused {
    program: ResourceArc<Compiled>,
    execution: Mutex<Option<Execution<Block>>>,
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

/// The bytes of the arguments, which are a tuple of binaries.
fn arguments<'a>(terms: Term<'a>) -> Result<Vec<&'a [u8]>, Failure> {
    let tuple = Tuple::of(terms).ok_or(Failure::BadArgument)?;
    tuple.terms().map(|term| bytes(term).ok_or(Failure::BadArgument)).collect()
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
    go_on(call, &program, execution, &arguments, terms)
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
    go_on(call, &program, execution, &arguments, terms)
}

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
    let execution = paused.execution.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut execution = execution.ok_or_else(|| refused("the run has gone on already"))?;
    if answers.is_list() {
        let mut blocks = Vec::new();
        for answer in elements(answers) {
            let bytes = bytes(answer?).ok_or(Failure::BadArgument)?;
            let mut block = scratch("program", DType::U8, &[bytes.len()], bytes.len())?;
            block.copy_from_slice(bytes);
            blocks.push(Block::Scratch(block));
        }
        execution.answer(&program.0, blocks)?;
    }
    go_on(call, &program, execution, &arguments, terms)
}

/// Runs to the end: the list of results, or `{:measured, text, results}` if times are measured; to a
/// pause: `{:paused, run}`; or to a call: `{:call, run, number, values}`.
fn go_on<'a>(
    call: Call<'a>,
    compiled: &ResourceArc<Compiled>,
    mut execution: Execution<Block>,
    arguments: &[&[u8]],
    terms: Term<'a>,
) -> Result<Term<'a>, Failure> {
    let (env, program) = (call.env, &compiled.0);
    let mut vm = Vm::new(call);
    let outcome = execution.resume(program, arguments, &mut vm);
    vm.end();
    let paused = |execution| {
        ResourceArc::new(Paused { program: compiled.clone(), execution: Mutex::new(Some(execution)) })
    };
    match outcome? {
        Outcome::Done(values) => {
            let values = encode(env, program, terms, values)?;
            Ok(match execution.take_times() {
                None => values.encode(env),
                Some(times) => (atoms::measured(), program.with_times(&times), values).encode(env),
            })
        }
        Outcome::Paused => Ok((atoms::paused(), paused(execution)).encode(env)),
        Outcome::Call { callback, values } => {
            let values = encode(env, program, terms, values)?;
            Ok((atoms::call(), paused(execution), callback, values).encode(env))
        }
    }
}

/// The values as binaries. Blocks that nothing else refers to are not copied.
fn encode<'a>(
    env: Env<'a>,
    program: &Program,
    arguments: Term<'a>,
    values: Vec<Value<Block>>,
) -> Result<Vec<Term<'a>>, Failure> {
    let copy = |bytes: &[u8]| {
        binary(env, bytes.len(), |out| {
            out.copy_from_slice(bytes);
            Ok::<(), Failure>(())
        })
    };
    let mut shared: Vec<(*const Block, Term<'a>)> = Vec::new();
    let mut terms = Vec::with_capacity(values.len());
    for value in values {
        terms.push(match value {
            Value::Argument(index) => {
                Tuple::of(arguments).and_then(|tuple| tuple.terms().nth(index)).ok_or(Failure::BadArgument)?
            }
            Value::Block(block) => match Arc::try_unwrap(block) {
                Ok(Block::Binary(binary)) => binary.release(env).into(),
                Ok(Block::Scratch(bytes)) => copy(&bytes)?,
                Err(block) => {
                    let address = Arc::as_ptr(&block);
                    match shared.iter().find(|known| known.0 == address) {
                        Some(&(_, term)) => term,
                        None => {
                            let term = copy((*block).as_ref())?;
                            shared.push((address, term));
                            term
                        }
                    }
                }
            },
            other => copy(other.bytes(&[], program.literals()))?,
        });
    }
    Ok(terms)
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
