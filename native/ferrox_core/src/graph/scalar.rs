//! Loops over numbers, as code for a register machine.
//!
//! Problem: a loop whose values are numbers, such as a counter or a sum, takes longer to prepare each
//! operation than to compute it. Technique: where all operations of a loop are on single elements, they
//! are instructions on registers of eight bytes, without slots, tensors or frames (`ops::binary::scalar`
//! has most of the kernels; others are called on one element). Values of other shapes can be passed
//! through, and single elements can be read from them, or be replaced one by one (`put_slice`), in memory
//! that belongs to the loop. A loop that has anything else stays as it is.
//!
//! An array whose elements are replaced has one memory for all its values, which come one after the other:
//! a program that reads a value after an element of it has been replaced has no such loop.

use smallvec::{SmallVec, smallvec};

use super::operand::{Memory, Operand, Place, REGISTER_BYTES, Slot, Target, integer, word};
use super::operation::{Operation, Start};
use super::source::{Branch, Clause, Region, Step};
use crate::cost::{SCALAR_CODE_WORK, Work};
use crate::exec::convert::{self, Convert};
use crate::exec::elementwise::{self, MAX_OPERANDS, Plan, Source};
use crate::layout;
use crate::ops;
use crate::ops::binary::{BinaryOp, IsFaulty, ScalarKernel};
use crate::{DType, Error, Fault};

/// The number of registers: those that a byte can name, so that no index is out of bounds.
const REGISTERS: usize = 256;

/// The number of instructions until a loop asks whether it may run on.
const CODES_PER_LOOK: isize = 4_096;

/// The maximum number of instructions of a loop.
const MAX_CODES: usize = 4_096;

/// The maximum depth of loops in loops.
const MAX_DEPTH: usize = 8;

/// The number of a register.
type Register = u8;

/// A loop over numbers.
#[derive(Debug)]
pub(super) struct ScalarLoop {
    /// The numbers of the regions of the condition and the body.
    pub(super) regions: [usize; 2],
    /// The values of registers at the start: those of constants.
    constants: Vec<(Register, u64)>,
    /// The registers of values from the region around.
    pub(super) inputs: Vec<(Place, Register)>,
    /// The tensors that elements are read from.
    pub(super) tensors: Vec<Place>,
    /// The arrays whose elements are replaced: their places at the start, and their memory.
    pub(super) arrays: Vec<(Place, Memory)>,
    codes: Vec<Code>,
    /// The other values at the end.
    pub(super) outputs: Vec<(Slot, Output)>,
}

/// A value at the end of a loop.
#[derive(Clone, Copy, Debug)]
pub(super) enum Output {
    /// The first bytes of a register.
    Register(Register, usize),
    /// The value at the start.
    Unchanged(Place),
}

/// The arrays of a run of a loop.
#[derive(Debug)]
pub(super) struct Arrays<'a, 'b> {
    /// Those that are only read.
    pub(super) tensors: &'a [&'b [u8]],
    /// Those whose elements are replaced.
    pub(super) replaced: &'a mut [&'b mut [u8]],
}

/// How far a loop has come.
#[derive(Debug)]
pub(super) struct State {
    registers: Box<[u64; REGISTERS]>,
    next: usize,
}

/// An instruction. Targets of jumps are numbers of instructions.
#[derive(Debug)]
enum Code {
    Move {
        from: Register,
        to: Register,
    },
    Binary {
        kernel: ScalarKernel,
        operands: [Register; 2],
        to: Register,
    },
    Checked(Box<Checked>),
    Call(Box<KernelCall>),
    Convert {
        convert: Convert,
        from: Typed,
        to: Typed,
    },
    Select {
        truth: Truth,
        operands: [Register; 2],
        to: Register,
    },
    Load(Box<Load>),
    Store(Box<Store>),
    /// A stop at which the registers are read.
    Yield(Box<[Register]>),
    Jump {
        target: usize,
    },
    JumpIf {
        truth: Truth,
        expected: bool,
        target: usize,
    },
    JumpIfBinary {
        kernel: ScalarKernel,
        operands: [Register; 2],
        expected: bool,
        target: usize,
    },
}

/// A register with the number of bytes of its element.
#[derive(Clone, Copy, Debug)]
struct Typed {
    register: Register,
    width: u8,
}

/// A register, and the bits of it that are not all zero if it is true.
#[derive(Clone, Copy, Debug)]
struct Truth {
    register: Register,
    mask: u64,
}

/// An operation that is not defined for some right operands.
#[derive(Debug)]
struct Checked {
    op: BinaryOp,
    /// The types of the operands before conversions.
    dtypes: [DType; 2],
    kernel: ScalarKernel,
    is_faulty: IsFaulty,
    operands: [Register; 2],
    to: Register,
}

/// A kernel that is called on one element.
#[derive(Debug)]
struct KernelCall {
    op: &'static str,
    /// The types of the operands before conversions.
    dtypes: SmallVec<[DType; MAX_OPERANDS]>,
    plan: Plan,
    operands: SmallVec<[Typed; MAX_OPERANDS]>,
    to: Register,
}

/// An element of an array that is read.
#[derive(Debug)]
struct Load {
    array: Array,
    element: Element,
    to: Register,
}

/// An element of an array that is replaced.
#[derive(Debug)]
struct Store {
    array: usize,
    element: Element,
    from: Register,
}

/// An array of a loop.
#[derive(Clone, Copy, Debug)]
enum Array {
    /// Among the tensors that are only read.
    Tensor(usize),
    /// Among those whose elements are replaced.
    Replaced(usize),
}

/// Where an element of an array is.
#[derive(Debug)]
struct Element {
    /// For each axis, the register of the index with its type, the last index, and the distance of
    /// elements in bytes.
    axes: SmallVec<[(Index, usize, usize); 4]>,
    width: u8,
}

#[derive(Clone, Copy, Debug)]
enum Index {
    At(usize),
    Register { register: Register, is_signed: bool, width: u8 },
}

impl ScalarLoop {
    /// The loop from these values, if it is one over numbers. `memories` are those of its results.
    pub(super) fn new(
        regions: &[Region],
        literals: &[Vec<u8>],
        (condition, body): (usize, usize),
        initial: &[Operand],
        outputs: &[Slot],
        memories: &[Memory],
    ) -> Option<Self> {
        let numbers = (condition, regions.get(body)?, body);
        ScalarLoop::assemble(regions, literals, numbers, (initial, &[]), (outputs, memories), None)
    }

    /// The numbers of a loop that has arrays too: those at the positions `arrays` change. The body of the
    /// region `number` is `body` without the steps on arrays, and a trip yields the values of `yields`.
    /// `None` if the arrays have an influence on the numbers.
    pub(super) fn beside_arrays(
        regions: &[Region],
        literals: &[Vec<u8>],
        (condition, body, number): (usize, &Region, usize),
        (initial, arrays): (&[Operand], &[usize]),
        outputs: &[Slot],
        yields: &[Operand],
    ) -> Option<Self> {
        let numbers = (condition, body, number);
        ScalarLoop::assemble(regions, literals, numbers, (initial, arrays), (outputs, &[]), Some(yields))
    }

    fn assemble(
        regions: &[Region],
        literals: &[Vec<u8>],
        (condition, body, number): (usize, &Region, usize),
        (initial, arrays): (&[Operand], &[usize]),
        (slots, memories): (&[Slot], &[Memory]),
        yields: Option<&[Operand]>,
    ) -> Option<Self> {
        let mut assembler = Assembler { regions, literals, ..Assembler::default() };
        let (mut homes, mut inputs, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        let mut replaced = Vec::new();
        let is_unchanged = |position: usize| {
            body.results.get(position).is_none_or(|result| result.place == Place::Slot(position))
        };
        for ((position, operand), &slot) in initial.iter().enumerate().zip(slots) {
            let place = operand.place;
            homes.push(if arrays.contains(&position) {
                Home::Array
            } else if is_number(operand) {
                let register = assembler.register()?;
                inputs.push((place, register));
                outputs.push((slot, Output::Register(register, operand.dtype.width())));
                Home::Register(register)
            } else if !is_unchanged(position)
                && let Some(memory) = memories.get(position)
            {
                replaced.push((place, memory.clone()));
                Home::Replaced(replaced.len() - 1)
            } else {
                outputs.push((slot, Output::Unchanged(place)));
                assembler.tensor(place)
            });
        }
        assembler.repeat(condition, body, yields, &homes)?;
        let Assembler { codes, constants, tensors, .. } = assembler;
        let regions = [condition, number];
        Some(ScalarLoop { regions, constants, inputs, tensors, arrays: replaced, codes, outputs })
    }

    /// The number of instructions.
    pub(super) fn len(&self) -> usize {
        self.codes.len()
    }

    /// The state at the start, given the bytes of the inputs.
    pub(super) fn start<'b>(&self, inputs: impl Iterator<Item = &'b [u8]>) -> State {
        let mut registers = Box::new([0; REGISTERS]);
        for &(register, value) in &self.constants {
            registers[usize::from(register)] = value;
        }
        for ((_, register), bytes) in self.inputs.iter().zip(inputs) {
            registers[usize::from(*register)] = word(bytes);
        }
        State { registers, next: 0 }
    }

    /// Runs until the end, or until `may_go_on` of some work returns false; returns whether it has come to
    /// the end.
    pub(super) fn run(
        &self,
        state: &mut State,
        mut arrays: Arrays<'_, '_>,
        mut may_go_on: impl FnMut(Work) -> bool,
    ) -> Result<bool, Error> {
        loop {
            if !may_go_on(CODES_PER_LOOK as Work * SCALAR_CODE_WORK) {
                return Ok(false);
            }
            if self.run_some(state, &mut arrays)? == Stop::End {
                return Ok(true);
            }
        }
    }

    /// Runs at most `most` trips, and adds the numbers that they yield to `numbers`. Returns how many
    /// trips there were, and where it stopped: at a yield after the last of these trips, at the end,
    /// because `may_go_on` returned false, or with the error of the trip after these.
    pub(super) fn run_trips(
        &self,
        state: &mut State,
        tensors: &[&[u8]],
        most: usize,
        numbers: &mut Vec<[u8; REGISTER_BYTES]>,
        mut may_go_on: impl FnMut(Work) -> bool,
    ) -> (usize, Result<Stop, Error>) {
        let mut trips = 0;
        let mut arrays = Arrays { tensors, replaced: &mut [] };
        while trips < most {
            match self.run_some(state, &mut arrays) {
                Ok(Stop::Yield) => {
                    if let Some(Code::Yield(registers)) = self.codes.get(state.next - 1) {
                        numbers.extend(registers.iter().map(|&register| state.element(register)));
                    }
                    trips += 1;
                }
                Ok(Stop::Look) if may_go_on(CODES_PER_LOOK as Work * SCALAR_CODE_WORK) => {}
                stop => return (trips, stop),
            }
        }
        (trips, Ok(Stop::Yield))
    }

    /// Runs for some time.
    fn run_some(&self, state: &mut State, arrays: &mut Arrays<'_, '_>) -> Result<Stop, Error> {
        let State { registers, next: position } = state;
        let mut next = *position;
        let mut left = CODES_PER_LOOK;
        let get = |registers: &[u64; REGISTERS], register: Register| registers[usize::from(register)];
        while let Some(code) = self.codes.get(next) {
            next += 1;
            let target = match code {
                Code::Binary { kernel, operands: [a, b], to } => {
                    registers[usize::from(*to)] = kernel(get(registers, *a), get(registers, *b));
                    continue;
                }
                Code::Move { from, to } => {
                    registers[usize::from(*to)] = get(registers, *from);
                    continue;
                }
                Code::Select { truth, operands: [a, b], to } => {
                    let chosen = if truth.holds(registers) { *a } else { *b };
                    registers[usize::from(*to)] = get(registers, chosen);
                    continue;
                }
                Code::Convert { convert, from, to } => {
                    let mut bytes = [0; REGISTER_BYTES];
                    let from_bytes = get(registers, from.register).to_ne_bytes();
                    convert(&from_bytes[..usize::from(from.width)], &mut bytes[..usize::from(to.width)]);
                    registers[usize::from(to.register)] = u64::from_ne_bytes(bytes);
                    continue;
                }
                Code::Checked(checked) => {
                    let [a, b] = checked.operands.map(|register| get(registers, register));
                    if (checked.is_faulty)(b) {
                        return Err(checked.error());
                    }
                    registers[usize::from(checked.to)] = (checked.kernel)(a, b);
                    continue;
                }
                Code::Call(call) => {
                    registers[usize::from(call.to)] = call.run(registers)?;
                    continue;
                }
                Code::Load(load) => {
                    let element = load.run(registers, arrays);
                    registers[usize::from(load.to)] = word(element.ok_or_else(misplaced)?);
                    continue;
                }
                Code::Store(store) => {
                    store.run(registers, arrays).ok_or_else(misplaced)?;
                    continue;
                }
                Code::Yield(_) => {
                    *position = next;
                    return Ok(Stop::Yield);
                }
                Code::Jump { target } => *target,
                Code::JumpIf { truth, expected, target } => {
                    if truth.holds(registers) != *expected {
                        continue;
                    }
                    *target
                }
                Code::JumpIfBinary { kernel, operands: [a, b], expected, target } => {
                    if (kernel(get(registers, *a), get(registers, *b)) != 0) != *expected {
                        continue;
                    }
                    *target
                }
            };
            // Jumps back are the trips of loops.
            left -= next as isize - target as isize;
            next = target;
            if left < 0 {
                *position = next;
                return Ok(Stop::Look);
            }
        }
        *position = next;
        Ok(Stop::End)
    }
}

/// Where a loop stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// After some time, to ask whether it may go on.
    Look,
    /// After the numbers of a trip.
    Yield,
    End,
}

impl State {
    /// The bytes of a register, the first of which are an element.
    pub(super) fn element(&self, register: Register) -> [u8; REGISTER_BYTES] {
        self.registers[usize::from(register)].to_ne_bytes()
    }
}

impl Truth {
    /// The truth of a register of some type; `None` if it depends on more than some bits.
    fn new(register: Register, dtype: DType) -> Option<Self> {
        // Zero and minus zero are false.
        let sign = match dtype {
            _ if dtype.is_complex() => return None,
            _ if dtype.is_integer() => 0,
            DType::F8 | DType::F8E4M3FN => word(&[0x80]),
            DType::F16 | DType::BF16 => word(&0x8000_u16.to_ne_bytes()),
            DType::F32 => word(&0x8000_0000_u32.to_ne_bytes()),
            DType::F64 => 1 << 63,
            _ => return None,
        };
        Some(Truth { register, mask: !sign })
    }

    #[inline(always)]
    fn holds(self, registers: &[u64; REGISTERS]) -> bool {
        registers[usize::from(self.register)] & self.mask != 0
    }
}

impl Checked {
    #[cold]
    fn error(&self) -> Error {
        // The operations with faults here are divisions.
        Error::Element { op: self.op.name(), dtypes: self.dtypes.to_vec(), fault: Fault::DivisionByZero }
    }
}

impl KernelCall {
    fn run(&self, registers: &[u64; REGISTERS]) -> Result<u64, Error> {
        let mut bytes = [[0; REGISTER_BYTES]; MAX_OPERANDS];
        for (bytes, operand) in bytes.iter_mut().zip(&self.operands) {
            *bytes = registers[usize::from(operand.register)].to_ne_bytes();
        }
        let mut sources = [Source::Scalar(&[]); MAX_OPERANDS];
        for ((source, bytes), operand) in sources.iter_mut().zip(&bytes).zip(&self.operands) {
            let width = usize::from(operand.width);
            *source = Source::Dense { bytes: &bytes[..width], width };
        }
        let mut out = [0; REGISTER_BYTES];
        elementwise::run(&self.plan, &[1], &mut out[..self.plan.width], &sources[..self.operands.len()])
            .map_err(|fault| self.error(fault))?;
        Ok(u64::from_ne_bytes(out))
    }

    #[cold]
    fn error(&self, fault: Fault) -> Error {
        Error::Element { op: self.op, dtypes: self.dtypes.to_vec(), fault }
    }
}

impl Load {
    /// The bytes of the element.
    #[inline]
    fn run<'t>(&self, registers: &[u64; REGISTERS], arrays: &'t Arrays<'_, '_>) -> Option<&'t [u8]> {
        let array = match self.array {
            Array::Tensor(index) => arrays.tensors.get(index)?,
            Array::Replaced(index) => &**arrays.replaced.get(index)?,
        };
        array.get(self.element.bytes(registers))
    }
}

impl Store {
    #[inline]
    fn run(&self, registers: &[u64; REGISTERS], arrays: &mut Arrays<'_, '_>) -> Option<()> {
        let bytes = arrays.replaced.get_mut(self.array)?.get_mut(self.element.bytes(registers))?;
        bytes.copy_from_slice(&registers[usize::from(self.from)].to_ne_bytes()[..bytes.len()]);
        Some(())
    }
}

impl Element {
    /// The bytes of the element, whose indices are moved into the array.
    #[inline]
    fn bytes(&self, registers: &[u64; REGISTERS]) -> std::ops::Range<usize> {
        let mut offset = 0;
        for &(index, last, stride) in &self.axes {
            let at = match index {
                Index::At(at) => at,
                Index::Register { register, is_signed, width } => {
                    integer(registers[usize::from(register)], is_signed, width)
                }
            };
            offset += at.min(last) * stride;
        }
        offset..offset + usize::from(self.width)
    }

    /// The registers of the indices.
    fn indices(&mut self) -> impl Iterator<Item = &mut Register> {
        self.axes.iter_mut().filter_map(|(index, ..)| match index {
            Index::Register { register, .. } => Some(register),
            Index::At(_) => None,
        })
    }
}

#[cold]
fn misplaced() -> Error {
    Error::Argument { op: "program", problem: "a loop is not well-formed".into() }
}

/// Whether two values of a loop are the same array, whose elements can't be replaced for one of them only.
fn is_shared(homes: &[Home]) -> bool {
    let is_array = |home: &Home| matches!(home, Home::Replaced(_));
    homes.iter().enumerate().any(|(index, home)| is_array(home) && homes[..index].contains(home))
}

/// Whether an operand is one element that fits a register.
fn is_number(operand: &Operand) -> bool {
    is_scalar(operand.dtype, &operand.shape)
}

fn is_scalar(dtype: DType, shape: &[usize]) -> bool {
    !dtype.is_packed() && dtype.width() <= REGISTER_BYTES && layout::size(shape) == Some(1)
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Register(Register),
    /// Among the tensors of the loop.
    Tensor(usize),
    /// The latest value of an array whose elements are replaced.
    Replaced(usize),
    /// An array that changes, outside of the loop over numbers.
    Array,
}

/// The values of a region.
struct Scope {
    homes: Vec<Option<Home>>,
    /// For each slot that a step asks for whether it has been computed, the register that tells.
    flags: Vec<(Slot, Register)>,
}

/// Turns regions into instructions.
#[derive(Default)]
struct Assembler<'a> {
    regions: &'a [Region],
    literals: &'a [Vec<u8>],
    codes: Vec<Code>,
    constants: Vec<(Register, u64)>,
    tensors: Vec<Place>,
    /// The number of registers that are in use, from the first on.
    used: usize,
    /// The number of loops around the next instruction.
    depth: usize,
    /// The last instruction that a jump goes to.
    last_target: usize,
    /// The arrays whose elements have been replaced so far, once for each instruction that does.
    stores: Vec<usize>,
    /// Whether no element may be replaced: the next instructions run or not, and what reads the array
    /// later would not know.
    is_guarded: bool,
}

impl<'a> Assembler<'a> {
    /// A register that is not in use. Constants are in the last registers.
    fn register(&mut self) -> Option<Register> {
        let register = self.used;
        self.used += 1;
        (self.used + self.constants.len() <= REGISTERS).then_some(register as Register)
    }

    fn constant(&mut self, value: u64) -> Option<Register> {
        if let Some(&(register, _)) = self.constants.iter().find(|constant| constant.1 == value) {
            return Some(register);
        }
        let register = REGISTERS.checked_sub(self.constants.len() + 1)?;
        (register >= self.used).then(|| {
            self.constants.push((register as Register, value));
            register as Register
        })
    }

    /// A home for a tensor at a place in the region around the loop.
    fn tensor(&mut self, place: Place) -> Home {
        self.tensors.push(place);
        Home::Tensor(self.tensors.len() - 1)
    }

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
        let used = self.used;
        let leave = self.condition(condition, homes, false)?;
        self.used = used;
        let start = self.label();
        let mut scope = self.scope(body, homes)?;
        self.steps(&mut scope, &body.steps)?;
        if let Some(operands) = yields {
            let registers = operands.iter().map(|operand| self.number(&scope, operand));
            let code = Code::Yield(registers.collect::<Option<_>>()?);
            self.codes.push(code);
        }
        let mut results = Vec::with_capacity(homes.len());
        for (operand, &home) in body.results.iter().zip(homes) {
            results.push(if home == Home::Array { home } else { self.home(&scope, operand)? });
        }
        self.assign(start, &results, homes)?;
        self.used = used;
        let again = self.condition(condition, homes, true)?;
        self.land_at(again, start);
        self.land(leave);
        self.used = used;
        self.depth -= 1;
        Some(())
    }

    /// The condition of a loop, and a jump, to be landed, if it is as expected.
    fn condition(&mut self, condition: usize, homes: &[Home], expected: bool) -> Option<usize> {
        let region = self.regions.get(condition)?;
        let mut scope = self.scope(region, homes)?;
        self.guarded(|assembler| assembler.steps(&mut scope, &region.steps))?;
        let [result] = &region.results[..] else { return None };
        let jump = self.jump_if(&scope, result, expected)?;
        // A comparison right before the jump, and which nothing else reads, is part of it.
        if let [.., Code::Binary { kernel, operands, to }, Code::JumpIf { truth, .. }] = &self.codes[..]
            && *to == truth.register
            && self.last_target < jump
        {
            let code = Code::JumpIfBinary { kernel: *kernel, operands: *operands, expected, target: 0 };
            self.codes.truncate(jump - 1);
            return Some(self.push(code));
        }
        Some(jump)
    }

    /// Adds instructions that replace no element.
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
        let mut scope = Scope { homes: homes.iter().copied().map(Some).collect(), flags: Vec::new() };
        scope.homes.resize(region.slots, None);
        self.find_flags(&region.steps, &mut scope)?;
        let zero = self.constant(0)?;
        for &(_, to) in &scope.flags {
            self.codes.push(Code::Move { from: zero, to });
        }
        Some(scope)
    }

    fn find_flags(&mut self, steps: &[Step], scope: &mut Scope) -> Option<()> {
        for step in steps {
            match step {
                Step::Unless { computed, steps } => {
                    let register = self.register()?;
                    scope.flags.push((*computed, register));
                    self.find_flags(steps, scope)?;
                }
                Step::Cond { clauses, otherwise, .. } => {
                    for Clause { steps, branch, .. } in clauses {
                        self.find_flags(steps, scope)?;
                        self.find_flags(&branch.steps, scope)?;
                    }
                    self.find_flags(&otherwise.steps, scope)?;
                }
                _ => {}
            }
        }
        Some(())
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

    fn push(&mut self, code: Code) -> usize {
        self.codes.push(code);
        self.codes.len() - 1
    }

    fn home(&mut self, scope: &Scope, operand: &Operand) -> Option<Home> {
        match operand.place {
            Place::Slot(slot) => *scope.homes.get(slot)?,
            Place::Literal(index) if is_number(operand) => {
                let bytes = self.literals.get(index).filter(|bytes| bytes.len() == operand.dtype.width())?;
                Some(Home::Register(self.constant(word(bytes))?))
            }
            Place::Literal(_) => Some(self.tensor(operand.place)),
        }
    }

    /// The register of a number.
    fn number(&mut self, scope: &Scope, operand: &Operand) -> Option<Register> {
        match self.home(scope, operand)? {
            Home::Register(register) if is_number(operand) => Some(register),
            _ => None,
        }
    }

    /// The register of a slot that gets a value.
    fn define(&mut self, scope: &mut Scope, slot: Slot) -> Option<Register> {
        match *scope.homes.get(slot)? {
            Some(Home::Register(register)) => Some(register),
            Some(Home::Tensor(_) | Home::Replaced(_) | Home::Array) => None,
            None => {
                let register = self.register()?;
                scope.homes[slot] = Some(Home::Register(register));
                Some(register)
            }
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
                if !is_scalar(output.dtype, &output.shape) {
                    return self.store(scope, operation, inputs, output);
                }
                let mut code = self.operation(scope, operation, inputs, output.dtype)?;
                code.set_result(self.define(scope, output.slot)?);
                self.codes.push(code);
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
                let mut homes = Vec::with_capacity(initial.len());
                for operand in initial {
                    homes.push(match self.home(scope, operand)? {
                        Home::Register(from) => {
                            let to = self.register()?;
                            self.codes.push(Code::Move { from, to });
                            Home::Register(to)
                        }
                        tensor => tensor,
                    });
                }
                let body = self.regions.get(*body)?;
                let stores = self.stores.len();
                self.repeat(*condition, body, None, &homes)?;
                self.forget_replaced(scope, stores);
                for (&slot, &home) in outputs.iter().zip(&homes) {
                    match home {
                        Home::Register(from) => {
                            let to = self.define(scope, slot)?;
                            self.codes.push(Code::Move { from, to });
                        }
                        tensor => *scope.homes.get_mut(slot)? = Some(tensor),
                    }
                    self.flag(scope, slot)?;
                }
                Some(())
            }
            Step::ReverseLoop(_) | Step::Fold { .. } | Step::Cluster { .. } | Step::Call { .. } => None,
        }
    }

    /// A branch. `arrays` gets, for each of its results, the array whose elements are replaced that it is;
    /// every branch has the same. What is known of arrays stays as it was before the branch.
    fn branch(
        &mut self,
        scope: &mut Scope,
        branch: &Branch,
        outputs: &[Slot],
        arrays: &mut Option<Vec<Option<usize>>>,
    ) -> Option<()> {
        let before = scope.homes.clone();
        self.steps(scope, &branch.steps)?;
        let mut results = Vec::with_capacity(outputs.len());
        for (operand, &slot) in branch.results.iter().zip(outputs) {
            if let Home::Replaced(array) = self.home(scope, operand)? {
                results.push(Some(array));
                continue;
            }
            let from = self.number(scope, operand)?;
            let to = self.define(scope, slot)?;
            self.codes.push(Code::Move { from, to });
            results.push(None);
        }
        for (home, before) in scope.homes.iter_mut().zip(before) {
            if matches!(home, Some(Home::Replaced(_))) || matches!(before, Some(Home::Replaced(_))) {
                *home = before;
            }
        }
        (*arrays.get_or_insert_with(|| results.clone()) == results).then_some(())
    }

    /// Replaces an element of an array.
    fn store(
        &mut self,
        scope: &mut Scope,
        operation: &Operation,
        inputs: &[Operand],
        output: &Target,
    ) -> Option<()> {
        let (Operation::PutSlice(starts), [array, value, ..], false) = (operation, inputs, self.is_guarded)
        else {
            return None;
        };
        let Home::Replaced(index) = self.home(scope, array)? else { return None };
        let is_whole = array.shape == output.shape && starts.len() == array.shape.len();
        if [array.dtype, value.dtype] != [output.dtype; 2] || !is_whole {
            return None;
        }
        let from = self.number(scope, value)?;
        let element = self.element(scope, array, starts, inputs)?;
        let stores = self.stores.len();
        self.codes.push(Code::Store(Box::new(Store { array: index, element, from })));
        self.stores.push(index);
        self.forget_replaced(scope, stores);
        let home = scope.homes.get_mut(output.slot)?;
        let is_new = home.is_none() && !scope.flags.iter().any(|flag| flag.0 == output.slot);
        *home = Some(Home::Replaced(index));
        is_new.then_some(())
    }

    /// Forgets the earlier values of the arrays whose elements have been replaced since there were as many
    /// stores.
    fn forget_replaced(&self, scope: &mut Scope, stores: usize) {
        let replaced = &self.stores[stores..];
        for home in &mut scope.homes {
            if let Some(Home::Replaced(array)) = home
                && replaced.contains(array)
            {
                *home = None;
            }
        }
    }

    /// The instruction of an operation. Its result goes to no register yet.
    fn operation(
        &mut self,
        scope: &Scope,
        operation: &Operation,
        inputs: &[Operand],
        out: DType,
    ) -> Option<Code> {
        if let Operation::Slice { starts, .. } = operation {
            return self.load(scope, starts, inputs);
        }
        let mut registers = SmallVec::<[Register; MAX_OPERANDS]>::new();
        for operand in inputs {
            registers.push(self.number(scope, operand)?);
        }
        let dtypes: SmallVec<[DType; MAX_OPERANDS]> = inputs.iter().map(|input| input.dtype).collect();
        let call = |plan: &Plan, operands: &[(Register, DType)]| {
            let operands =
                operands.iter().map(|&(register, dtype)| Typed { register, width: dtype.width() as u8 });
            let (op, operands) = (operation.name(), operands.collect());
            Code::Call(Box::new(KernelCall { op, dtypes: dtypes.clone(), plan: *plan, operands, to: 0 }))
        };
        Some(match (operation, &registers[..], &dtypes[..]) {
            (Operation::Binary(op), &[a, b], &[from, other]) => {
                let source = |index: usize| match inputs[index].place {
                    Place::Literal(literal) => Source::Scalar(&self.literals[literal]),
                    Place::Slot(_) => Source::Dense { bytes: &[], width: dtypes[index].width() },
                };
                let given = [(from, source(0)), (other, source(1))];
                let (mut op, mut operands) = (*op, [(a, from), (b, other)]);
                let mut numbers = Default::default();
                if let Some(simpler) = ops::binary::simplified(op, out, given, &mut numbers) {
                    op = simpler.op;
                    for (operand, simpler) in operands.iter_mut().zip(simpler.operands) {
                        let is_converted = simpler.dtype != dtypes[simpler.index];
                        *operand = match simpler.source.scalar() {
                            Some(number) if is_converted => (self.constant(word(number))?, simpler.dtype),
                            _ => (registers[simpler.index], simpler.dtype),
                        };
                    }
                }
                self.binary(op, out, operands, [from, other], call)?
            }
            (Operation::Unary(op, math), &[a], &[from]) => {
                call(ops::unary::plan(*op, *math, out, from).ok()?, &[(a, from)])
            }
            (Operation::AsType, &[from], &[dtype]) => match convert::conversion(dtype, out) {
                Some(convert) => {
                    let [from, to] = [(from, dtype), (0, out)]
                        .map(|(register, dtype)| Typed { register, width: dtype.width() as u8 });
                    Code::Convert { convert, from, to }
                }
                None => Code::Move { from, to: 0 },
            },
            (Operation::Select, &[p, a, b], &[predicate, x, y]) => {
                let is_same = |dtype| dtype == out || convert::conversion(dtype, out).is_none();
                match Truth::new(p, predicate) {
                    Some(truth) if is_same(x) && is_same(y) => {
                        Code::Select { truth, operands: [a, b], to: 0 }
                    }
                    _ => {
                        let plan = ops::ternary::select_plan(out, [predicate, x, y]);
                        call(&plan, &[(p, predicate), (a, x), (b, y)])
                    }
                }
            }
            (Operation::Clip, &[a, b, c], &[x, y, z]) => {
                call(&ops::ternary::clip_plan(out, [x, y, z]).ok()?, &[(a, x), (b, y), (c, z)])
            }
            _ => return None,
        })
    }

    fn binary(
        &self,
        op: BinaryOp,
        out: DType,
        [(a, from), (b, other)]: [(Register, DType); 2],
        dtypes: [DType; 2],
        call: impl Fn(&Plan, &[(Register, DType)]) -> Code,
    ) -> Option<Code> {
        let kernel = if from == other { ops::binary::scalar_kernel(op, out, from) } else { None };
        Some(match kernel {
            Some((kernel, None)) => Code::Binary { kernel, operands: [a, b], to: 0 },
            Some((kernel, Some(is_faulty))) => {
                let operands = [a, b];
                Code::Checked(Box::new(Checked { op, dtypes, kernel, is_faulty, operands, to: 0 }))
            }
            None => call(ops::binary::plan(op, out, [from, other]).ok()?, &[(a, from), (b, other)]),
        })
    }

    /// A slice of one element.
    fn load(&mut self, scope: &Scope, starts: &[Start], inputs: &[Operand]) -> Option<Code> {
        let [tensor, ..] = inputs else { return None };
        let array = match self.home(scope, tensor)? {
            Home::Tensor(index) => Array::Tensor(index),
            Home::Replaced(index) => Array::Replaced(index),
            Home::Register(from) => return Some(Code::Move { from, to: 0 }),
            Home::Array => return None,
        };
        let element = self.element(scope, tensor, starts, inputs)?;
        Some(Code::Load(Box::new(Load { array, element, to: 0 })))
    }

    /// The element of an array at some starts.
    fn element(
        &mut self,
        scope: &Scope,
        array: &Operand,
        starts: &[Start],
        inputs: &[Operand],
    ) -> Option<Element> {
        let width = array.dtype.width();
        if array.dtype.is_packed() || width > REGISTER_BYTES {
            return None;
        }
        let mut axes = SmallVec::new();
        let mut stride = width;
        for (start, &size) in starts.iter().zip(&array.shape).rev() {
            let at = match *start {
                Start::At(at) => Index::At(at),
                Start::Input(input) => {
                    let operand = inputs.get(input)?;
                    if !operand.dtype.is_integer() {
                        return None;
                    }
                    let register = self.number(scope, operand)?;
                    let is_signed = operand.dtype.kind() == crate::Kind::Signed;
                    Index::Register { register, is_signed, width: operand.dtype.width() as u8 }
                }
            };
            axes.push((at, size.checked_sub(1)?, stride));
            stride = stride.checked_mul(size)?;
        }
        Some(Element { axes, width: width as u8 })
    }

    /// Assigns the results of a body, whose instructions begin with `start`, to the values of its loop, all
    /// at once.
    fn assign(&mut self, start: usize, results: &[Home], homes: &[Home]) -> Option<()> {
        let mut moves: Vec<(Register, Register)> = Vec::new();
        for (&result, &home) in results.iter().zip(homes) {
            match (result, home) {
                _ if result == home => {}
                (Home::Register(from), Home::Register(to)) => moves.push((from, to)),
                // A tensor that changes.
                _ => return None,
            }
        }
        moves.retain(|&(from, to)| !self.compute_in_place(start, from, to, results));
        // What a move would overwrite before it is read is copied first.
        for index in 0..moves.len() {
            let to = moves[index].1;
            let is_read_later = moves[index + 1..].iter().any(|later| later.0 == to);
            if is_read_later {
                let copy = self.register()?;
                self.codes.push(Code::Move { from: to, to: copy });
                moves[index + 1..].iter_mut().filter(|later| later.0 == to).for_each(|later| later.0 = copy);
            }
        }
        self.codes.extend(moves.into_iter().map(|(from, to)| Code::Move { from, to }));
        Some(())
    }

    /// Lets the instruction that computes `from` write to `to`, if nothing reads the value in `to` after it.
    fn compute_in_place(&mut self, start: usize, from: Register, to: Register, results: &[Home]) -> bool {
        let uses = results.iter().filter(|&&result| result == Home::Register(from)).count();
        if uses != 1 || results.contains(&Home::Register(to)) {
            return false;
        }
        let codes = &mut self.codes[start..];
        let mut writers =
            (0..codes.len()).filter(|&at| codes[at].registers().1.is_some_and(|to| *to == from));
        let (Some(writer), None) = (writers.next(), writers.next()) else { return false };
        let is_straight = !codes.iter().any(Code::is_jump);
        let is_free = codes[writer + 1..].iter_mut().all(|code| {
            let (reads, result) = code.registers();
            result.is_none_or(|register| *register != to) && reads.iter().all(|register| **register != to)
        });
        if !is_straight || !is_free {
            return false;
        }
        codes[writer].set_result(to);
        for code in &mut codes[writer + 1..] {
            code.registers().0.into_iter().filter(|register| **register == from).for_each(|read| *read = to);
        }
        true
    }
}

impl Code {
    fn is_jump(&self) -> bool {
        matches!(self, Code::Jump { .. } | Code::JumpIf { .. } | Code::JumpIfBinary { .. })
    }

    fn set_result(&mut self, register: Register) {
        if let Some(to) = self.registers().1 {
            *to = register;
        }
    }

    /// The registers that are read, and the register of the result.
    fn registers(&mut self) -> (SmallVec<[&mut Register; 4]>, Option<&mut Register>) {
        match self {
            Code::Move { from, to } => (smallvec![from], Some(to)),
            Code::Binary { operands, to, .. } => (operands.iter_mut().collect(), Some(to)),
            Code::Checked(checked) => (checked.operands.iter_mut().collect(), Some(&mut checked.to)),
            Code::Call(call) => {
                let operands = call.operands.iter_mut().map(|operand| &mut operand.register);
                (operands.collect(), Some(&mut call.to))
            }
            Code::Convert { from, to, .. } => (smallvec![&mut from.register], Some(&mut to.register)),
            Code::Select { truth, operands, to } => {
                (operands.iter_mut().chain([&mut truth.register]).collect(), Some(to))
            }
            Code::Load(load) => (load.element.indices().collect(), Some(&mut load.to)),
            Code::Store(store) => (store.element.indices().chain([&mut store.from]).collect(), None),
            Code::Yield(registers) => (registers.iter_mut().collect(), None),
            Code::Jump { .. } => (SmallVec::new(), None),
            Code::JumpIf { truth, .. } => (smallvec![&mut truth.register], None),
            Code::JumpIfBinary { operands, .. } => (operands.iter_mut().collect(), None),
        }
    }
}
