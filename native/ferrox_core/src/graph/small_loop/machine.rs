//! A loop over small values, and the machine that runs it.

use std::ops::Range;

use smallvec::SmallVec;

use super::super::operand::{Memory, Place, REGISTER_BYTES, Slot, word};
use super::code::{Arrays, Code, Context, Elements, Register, Registers, Stop};
use super::machine_code::MachineCode;
use crate::Error;
use crate::cost::{SMALL_LOOP_CODE_WORK, Work};

/// The number of instructions until a loop asks whether it may run on.
const CODES_PER_LOOK: isize = 4_096;

/// A loop over numbers and small arrays.
#[derive(Debug)]
pub(in super::super) struct SmallLoop {
    /// The numbers of the regions of the condition and the body.
    pub(in super::super) regions: [usize; 2],
    /// The values of registers at the start: those of constants.
    pub(super) constants: Vec<(Register, u64)>,
    /// The registers of the elements of values from the region around, and the number of bytes of each.
    pub(super) inputs: Vec<(Place, Elements, usize)>,
    /// The parts of the memory with arrays from the region around.
    pub(super) small_inputs: Vec<(Place, Range<usize>)>,
    /// The number of bytes of all small arrays.
    pub(super) small_bytes: usize,
    /// The tensors that are only read.
    pub(in super::super) tensors: Vec<Place>,
    /// The arrays of which parts are replaced: their places at the start, and their memory.
    pub(in super::super) replaced: Vec<(Place, Memory)>,
    pub(super) codes: Vec<Code>,
    /// The same as machine code, where there can be some.
    pub(super) machine_code: Option<MachineCode>,
    /// The other values at the end.
    pub(in super::super) outputs: Vec<(Slot, Output)>,
}

/// A value at the end of a loop.
#[derive(Clone, Debug)]
pub(in super::super) enum Output {
    /// Elements of some bytes each, in the first bytes of registers.
    Elements(Elements, usize, Memory),
    /// A small array.
    Small(Range<usize>, Memory),
    /// The value at the start.
    Unchanged(Place),
}

/// How far a loop has come.
#[derive(Debug)]
pub(in super::super) struct State {
    registers: Box<Registers>,
    small: Vec<u8>,
    next: usize,
}

impl SmallLoop {
    /// The number of instructions.
    pub(in super::super) fn len(&self) -> usize {
        self.codes.len()
    }

    /// The number of bytes of small arrays.
    pub(in super::super) fn small_bytes(&self) -> usize {
        self.small_bytes
    }

    /// The places of all values from the region around that the loop reads or hands on.
    pub(in super::super) fn places(&self) -> impl Iterator<Item = Place> {
        let unchanged = self.outputs.iter().filter_map(|(_, output)| match output {
            Output::Unchanged(place) => Some(*place),
            Output::Elements(..) | Output::Small(..) => None,
        });
        let inputs = self.inputs.iter().map(|input| input.0);
        inputs
            .chain(self.small_inputs.iter().map(|input| input.0))
            .chain(self.tensors.iter().copied())
            .chain(self.replaced.iter().map(|array| array.0))
            .chain(unchanged)
    }

    /// The state at the start, given the bytes of values.
    pub(in super::super) fn start<'b>(&self, bytes: impl Fn(Place) -> &'b [u8]) -> State {
        let mut registers = Registers::new();
        for &(register, value) in &self.constants {
            registers.set(register, value);
        }
        for (place, elements, width) in &self.inputs {
            for (&register, element) in elements.iter().zip(bytes(*place).chunks_exact(*width)) {
                registers.set(register, word(element));
            }
        }
        let mut small = vec![0; self.small_bytes];
        for (place, part) in &self.small_inputs {
            small[part.clone()].copy_from_slice(bytes(*place));
        }
        State { registers, small, next: 0 }
    }

    /// Runs until the end, or until `may_go_on` of some work returns false; returns whether it has come to
    /// the end.
    pub(in super::super) fn run(
        &self,
        state: &mut State,
        mut arrays: Arrays<'_, '_>,
        mut may_go_on: impl FnMut(Work) -> bool,
    ) -> Result<bool, Error> {
        loop {
            if !may_go_on(CODES_PER_LOOK as Work * SMALL_LOOP_CODE_WORK) {
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
    pub(in super::super) fn run_trips(
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
                Ok(Stop::Look) if may_go_on(CODES_PER_LOOK as Work * SMALL_LOOP_CODE_WORK) => {}
                stop => return (trips, stop),
            }
        }
        (trips, Ok(Stop::Yield))
    }

    /// Runs for some time.
    fn run_some(&self, state: &mut State, arrays: &mut Arrays<'_, '_>) -> Result<Stop, Error> {
        let State { registers, small, next } = state;
        if let Some(code) = &self.machine_code {
            let context = Context { registers, small, arrays };
            if let Some(stop) = code.run(&self.codes, next, context, CODES_PER_LOOK) {
                return stop;
            }
        }
        self.interpret(next, &mut Context { registers, small, arrays })
    }

    fn interpret(&self, position: &mut usize, context: &mut Context<'_, '_, '_>) -> Result<Stop, Error> {
        let mut next = *position;
        let mut left = CODES_PER_LOOK;
        while let Some(code) = self.codes.get(next) {
            next += 1;
            let target = match code {
                Code::Jump { target } => *target,
                Code::JumpIf { truth, expected, target } => {
                    if truth.holds(context.registers) != *expected {
                        continue;
                    }
                    *target
                }
                Code::JumpIfBinary { by, operands: [a, b], expected, target } => {
                    let [a, b] = [a, b].map(|operand| context.registers.get(*operand));
                    if ((by.kernel)(a, b) != 0) != *expected {
                        continue;
                    }
                    *target
                }
                Code::Yield(_) => {
                    *position = next;
                    return Ok(Stop::Yield);
                }
                code => {
                    code.run(context)?;
                    left -= code.codes_of_call().unwrap_or(0);
                    if left < 0 {
                        *position = next;
                        return Ok(Stop::Look);
                    }
                    continue;
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

impl State {
    /// The bytes of a register, the first of which are an element.
    fn element(&self, register: Register) -> [u8; REGISTER_BYTES] {
        *self.registers.bytes(register)
    }

    /// The bytes of elements of `width` bytes in registers.
    pub(in super::super) fn elements(&self, elements: &Elements, width: usize) -> SmallVec<[u8; 16]> {
        elements
            .iter()
            .flat_map(|&register| self.registers.bytes(register)[..width].iter().copied())
            .collect()
    }

    /// The bytes of a small array.
    pub(in super::super) fn small(&self, part: Range<usize>) -> &[u8] {
        &self.small[part]
    }
}
