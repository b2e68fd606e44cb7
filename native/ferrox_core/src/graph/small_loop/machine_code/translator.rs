//! The function of a loop: its begin and end, its jumps, and calls of kernels of numbers and of the interpreter's
//! function.

use smallvec::SmallVec;

use super::super::super::machine_code::processor::{
    ARGUMENTS, ARRAYS, Assembler, Condition, Fpr, Gpr, LEFT, Label, OTHER_WORD, Operand, REGISTER_MEMORY,
    RUN, SMALL, THIRD_WORD, WORD,
};
use super::super::super::operand::REGISTER_BYTES;
use super::super::code::{Code, REGISTERS, Register};
use super::register_allocation::{Allocation, Cached};
use super::run::{self, END, FAILURE, LOOK, YIELD};

/// The register of the processor that has a number before it is kept.
#[derive(Clone, Copy)]
pub(super) enum Kept {
    Integer(Gpr),
    Float(Fpr),
}

impl From<Kept> for Operand {
    fn from(kept: Kept) -> Self {
        match kept {
            Kept::Integer(register) => Operand::Gpr(register),
            Kept::Float(register) => Operand::Fpr(register),
        }
    }
}

/// Where a result is before it is stored.
pub(super) enum Computed {
    /// In `WORD`.
    Integer,
    /// In `FLOAT`.
    Float,
}

/// An index in `OTHER_WORD` that is moved into an array if it is outside.
pub(super) struct Clamp {
    /// Where it is moved.
    pub(super) outside: Label,
    /// Where the code goes on.
    pub(super) back: Label,
    pub(super) last: u64,
    pub(super) is_signed: bool,
}

/// Turns instructions of loops into those of the processor.
pub(super) struct Translator {
    pub(super) assembler: Assembler,
    allocation: Allocation,
    /// For each number, whether only a register of the processor has it, at this place of the code.
    is_only_cached: Vec<bool>,
    /// For each instruction, whether it has a template.
    templates: Vec<bool>,
    /// The places of instructions, and of the end.
    pub(super) labels: Vec<Label>,
    leave: Label,
    /// Places where the function ends, and its results there.
    exits: Vec<(Label, u64)>,
    /// The indices of arrays so far.
    pub(super) clamps: Vec<Clamp>,
    pub(super) tensors: usize,
    pub(super) lengths: Vec<usize>,
    pub(super) small_bytes: usize,
}

impl Translator {
    /// The function of a loop, with labels in it. See `MachineCode::new`.
    pub(super) fn new(
        codes: &mut [Code],
        results: &[Register],
        arrays: [usize; 2],
        small_bytes: usize,
    ) -> Option<Self> {
        // Which instructions have a template does not depend on where their numbers are.
        let Translator { templates, .. } = Self::translate(codes, Allocation::none(), arrays, small_bytes)?;
        let allocation = Allocation::new(codes, &templates, results);
        Self::translate(codes, allocation, arrays, small_bytes)
    }

    fn translate(
        codes: &mut [Code],
        allocation: Allocation,
        arrays: [usize; 2],
        small_bytes: usize,
    ) -> Option<Self> {
        let mut assembler = Assembler::default();
        let labels = (0..=codes.len()).map(|_| assembler.label()).collect();
        let leave = assembler.label();
        let mut translator = Translator {
            assembler,
            allocation,
            is_only_cached: vec![false; REGISTERS],
            templates: Vec::new(),
            labels,
            leave,
            exits: Vec::new(),
            clamps: Vec::new(),
            tensors: arrays[0],
            lengths: vec![0; arrays[0] + arrays[1]],
            small_bytes,
        };
        translator.function(codes)?;
        Some(translator)
    }

    /// The function of a loop.
    fn function(&mut self, codes: &mut [Code]) -> Option<()> {
        self.enter();
        for (at, code) in codes.iter_mut().enumerate() {
            self.assembler.bind(self.labels[at]);
            let translated = self.jump(at, code).or_else(|| self.template(code));
            let translated = translated.or_else(|| self.array_template(at, code));
            self.templates.push(translated.is_some());
            if translated.or_else(|| self.scalar_kernel(code)).is_none() {
                self.call(at, code)?;
            }
        }
        self.assembler.bind(self.labels[codes.len()]);
        self.assembler.constant(WORD, outcome(END, codes.len()));
        self.leave();
        self.finish_clamps();
        for (exit, result) in std::mem::take(&mut self.exits) {
            self.assembler.bind(exit);
            self.assembler.constant(WORD, result);
            self.assembler.jump(self.leave);
        }
        Some(())
    }

    /// Moves indices that are outside, after the code of all instructions.
    fn finish_clamps(&mut self) {
        for Clamp { outside, back, last, is_signed } in std::mem::take(&mut self.clamps) {
            let assembler = &mut self.assembler;
            assembler.bind(outside);
            if is_signed {
                assembler.test(OTHER_WORD, OTHER_WORD);
                assembler.constant(OTHER_WORD, last);
                assembler.constant(THIRD_WORD, 0);
                assembler.load_if(Condition::Negative, OTHER_WORD, THIRD_WORD);
            } else {
                assembler.constant(OTHER_WORD, last);
            }
            assembler.jump(back);
        }
    }

    /// The begin of the function. Its arguments: the address of an instruction to begin with, of the memory of
    /// registers, of the run, and the number of instructions that are left.
    fn enter(&mut self) {
        let assembler = &mut self.assembler;
        assembler.save_registers();
        for (to, from) in [WORD, REGISTER_MEMORY, RUN, LEFT].into_iter().zip(ARGUMENTS) {
            assembler.load(to, Operand::Gpr(from));
        }
        assembler.load(ARRAYS, Operand::Memory(RUN, 0));
        assembler.load(SMALL, Operand::Memory(RUN, 8));
        self.load_cached();
        self.assembler.jump_to(WORD);
    }

    /// The end of the function, with its result in `WORD`.
    fn leave(&mut self) {
        self.assembler.bind(self.leave);
        self.assembler.restore_registers();
        self.assembler.return_();
    }

    /// Loads the numbers that registers of the processor keep everywhere.
    fn load_cached(&mut self) {
        for index in 0..self.allocation.everywhere.len() {
            let register = self.allocation.everywhere[index];
            self.cache(register, memory(register));
        }
    }

    /// The register of the processor that keeps a number.
    pub(super) fn cached(&self, register: Register) -> Cached {
        self.allocation.cached(register)
    }

    /// Stores a number in memory, unless only a register of the processor keeps it, and loads it into that. A
    /// template does so once, after it has read its operands.
    pub(super) fn keep(&mut self, register: Register, from: Kept) {
        if self.allocation.is_local(register) {
            self.is_only_cached[usize::from(register) % REGISTERS] = true;
        } else {
            self.write(register, from);
        }
        self.cache(register, from.into());
    }

    /// Writes a number to memory.
    fn write(&mut self, register: Register, from: Kept) {
        match from {
            Kept::Integer(from) => self.assembler.store(REGISTER_BYTES, location(register), from),
            Kept::Float(from) => self.assembler.store_float(location(register), from),
        }
    }

    /// A number in memory, where it is written first if only a register of the processor has it. A template asks
    /// for it where none of its own jumps goes past.
    pub(super) fn in_memory(&mut self, register: Register) -> Operand {
        if std::mem::take(&mut self.is_only_cached[usize::from(register) % REGISTERS]) {
            match self.cached(register) {
                // Such a number has a register.
                Cached::No => {}
                Cached::Integer(from) => self.write(register, Kept::Integer(from)),
                Cached::Float(from) => self.write(register, Kept::Float(from)),
            }
        }
        memory(register)
    }

    /// Loads a number into the register of the processor that keeps it, if there is one.
    fn cache(&mut self, register: Register, from: Operand) {
        match self.cached(register) {
            Cached::No => {}
            Cached::Integer(to) => self.assembler.load(to, from),
            Cached::Float(to) => self.assembler.load_float(to, from),
        }
    }

    /// A place where the function ends.
    fn exit(&mut self, how: u64, next: usize) -> Label {
        let label = self.assembler.label();
        self.exits.push((label, outcome(how, next)));
        label
    }

    /// Calls the kernel of an operation on numbers, if it has one.
    fn scalar_kernel(&mut self, code: &Code) -> Option<()> {
        let (kernel, operands, to) = match *code {
            Code::Binary { by, operands, to } => (by.kernel, operands, to),
            Code::Function { by, from, to } => (by.kernel, [from; 2], to),
            _ => return None,
        };
        let [first, second, third, address] = ARGUMENTS;
        // The second argument may replace a number that a register of the processor keeps.
        self.load(third, operands[1]);
        self.load(second, operands[0]);
        self.assembler.constant(first, kernel as usize as u64);
        self.assembler.constant(address, run::scalar_kernel_function());
        self.assembler.call(address);
        self.load_cached();
        self.keep(to, Kept::Integer(WORD));
        Some(())
    }

    /// Lets the interpreter's function run an instruction.
    fn call(&mut self, at: usize, code: &mut Code) -> Option<()> {
        if code.is_jump() {
            return None;
        }
        let [read, written] = code.registers();
        let written: SmallVec<[Register; 4]> = written.into_iter().map(|register| *register).collect();
        for register in read {
            self.in_memory(*register);
        }
        if let Code::Yield(_) = code {
            let exit = self.exit(YIELD, at + 1);
            self.assembler.jump(exit);
            return Some(());
        }
        let failure = self.exit(FAILURE, at + 1);
        let assembler = &mut self.assembler;
        assembler.load(ARGUMENTS[0], Operand::Gpr(RUN));
        assembler.constant(ARGUMENTS[1], at as u64);
        assembler.constant(THIRD_WORD, run::function());
        assembler.call(THIRD_WORD);
        assembler.test(WORD, WORD);
        assembler.jump_if(Condition::NotEqual, failure);
        self.load_cached();
        for register in written {
            if self.allocation.is_local(register) {
                self.is_only_cached[usize::from(register) % REGISTERS] = false;
                self.cache(register, memory(register));
            }
        }
        if let Some(codes) = code.codes_of_call() {
            self.count(at + 1, codes);
        }
        Some(())
    }

    /// Counts instructions, and stops before the instruction `next` if none are left.
    pub(super) fn count(&mut self, next: usize, codes: isize) {
        let look = self.exit(LOOK, next);
        self.assembler.subtract_number(LEFT, i32::try_from(codes).unwrap_or(i32::MAX));
        self.assembler.jump_if(Condition::Negative, look);
    }

    /// A jump, if the instruction is one.
    fn jump(&mut self, at: usize, code: &Code) -> Option<()> {
        let (target, past) = match *code {
            Code::Jump { target } => (target, None),
            Code::JumpIf { truth, expected, target } => {
                self.test(truth);
                (target, Some(self.past_unless(Condition::NotEqual, expected)))
            }
            Code::JumpIfBinary { by, operands, expected, target } => {
                let condition = match self.compare(by, operands) {
                    Some(condition) => condition,
                    None => {
                        let Computed::Integer = self.compute(by, operands)? else { return None };
                        self.assembler.test(WORD, WORD);
                        Condition::NotEqual
                    }
                };
                (target, Some(self.past_unless(condition, expected)))
            }
            _ => return None,
        };
        let label = *self.labels.get(target)?;
        if target <= at {
            self.count(target, (at + 1 - target) as isize);
        }
        self.assembler.jump(label);
        past.into_iter().for_each(|past| self.assembler.bind(past));
        Some(())
    }

    /// Goes past the next jump, to a label that is returned, if a condition isn't as expected.
    fn past_unless(&mut self, condition: Condition, expected: bool) -> Label {
        let past = self.assembler.label();
        self.assembler.jump_if(if expected { condition.not() } else { condition }, past);
        past
    }
}

/// The distance of a number from the address of the memory of registers.
fn location(register: Register) -> (Gpr, i32) {
    (REGISTER_MEMORY, (usize::from(register) % REGISTERS * REGISTER_BYTES) as i32)
}

/// A number in the memory of registers.
pub(super) fn memory(register: Register) -> Operand {
    let (base, distance) = location(register);
    Operand::Memory(base, distance)
}

/// The result of the function of a loop.
fn outcome(how: u64, next: usize) -> u64 {
    (next as u64) << 2 | how
}
