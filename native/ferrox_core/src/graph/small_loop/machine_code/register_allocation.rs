//! Which numbers of a loop are in registers of the processor.
//!
//! Problem: a number that goes through memory from one instruction to the next takes longer than the addition
//! that gives it. Technique: registers are given to the numbers that gain most for the time that they keep one
//! (priority-based coloring, Chow and Hennessy 1990). A number that only the instructions of one basic block
//! write and read keeps a register from where it is written to where it is read last, and needs no memory. Others
//! that have a register keep it everywhere, and are written to memory too, so that other functions find them there
//! and a loop can stop.

use std::ops::Range;

use super::super::super::machine_code::processor::{CACHE, FLOAT_CACHE, Float, Fpr, Gpr};
use super::super::code::{Code, REGISTERS, Register};
use crate::DType;

/// The depth of loops from which on all instructions count the same.
const MAX_COUNTED_DEPTH: u32 = 5;

/// How much more a number that changes gains than a constant: who reads it waits until it is written.
const CHANGED_WEIGHT: u64 = 4;

/// The registers of the processor that keep numbers.
#[derive(Debug)]
pub(super) struct Allocation {
    cached: Vec<Cached>,
    /// For each number, whether only registers of the processor keep it.
    is_local: Vec<bool>,
    /// The numbers that have a register everywhere.
    pub(super) everywhere: Vec<Register>,
}

/// The register of the processor that keeps a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cached {
    No,
    Integer(Gpr),
    Float(Fpr),
}

/// How often a number is used, and by which kind of instructions.
#[derive(Clone, Copy, Default)]
struct Uses {
    all: u64,
    floats: u64,
    integers: u64,
    is_changed: bool,
}

/// The type of an instruction's numbers.
enum Numbers {
    Integers,
    Floats,
    /// They are moved only.
    Any,
}

/// Where a number is written and read.
#[derive(Clone, Debug)]
enum Extent {
    Nowhere,
    /// In one block only, from the instruction that writes it first to the one that reads it last, which is not
    /// part of the range: its result may have the same register, since a template keeps its result after it has
    /// read all operands ([`Translator::keep`](super::translator::Translator::keep)).
    Block(usize, Range<usize>),
    Everywhere,
}

impl Allocation {
    /// No number is in a register.
    pub(super) fn none() -> Self {
        Allocation {
            cached: vec![Cached::No; REGISTERS],
            is_local: vec![false; REGISTERS],
            everywhere: Vec::new(),
        }
    }

    /// The registers of the numbers of a loop, of which those of `results` are read after its end. `templates`
    /// says for each instruction whether it has a template, so that it calls no function.
    pub(super) fn new(codes: &mut [Code], templates: &[bool], results: &[Register]) -> Self {
        let mut allocation = Allocation::none();
        let uses = count_uses(codes);
        let extents = extents(codes, templates, results);
        let mut order = Vec::new();
        for number in (0..REGISTERS).filter(|&number| uses[number].all > 0) {
            let (range, is_local) = match &extents[number] {
                Extent::Block(_, range) => (range.start..range.end.max(range.start + 1), true),
                Extent::Everywhere => (0..codes.len(), false),
                Extent::Nowhere => continue,
            };
            let weight = uses[number].all * if uses[number].is_changed { CHANGED_WEIGHT } else { 1 };
            order.push((weight * codes.len() as u64 / range.len() as u64, number, range, is_local));
        }
        order.sort_by_key(|&(gain, ..)| std::cmp::Reverse(gain));
        let (mut integers, mut floats) =
            (CACHE.map(|to| (to, Vec::new())), FLOAT_CACHE.map(|to| (to, Vec::new())));
        for (_, number, range, is_local) in order {
            let cached = if uses[number].floats > uses[number].integers {
                free(&mut floats, &range).map(Cached::Float)
            } else {
                free(&mut integers, &range).map(Cached::Integer)
            };
            if let Some(cached) = cached {
                allocation.cached[number] = cached;
                allocation.is_local[number] = is_local;
                if !is_local {
                    allocation.everywhere.push(number as Register);
                }
            }
        }
        allocation
    }

    /// The register that keeps a number.
    pub(super) fn cached(&self, register: Register) -> Cached {
        self.cached[usize::from(register) % REGISTERS]
    }

    /// Whether only a register of the processor keeps a number.
    pub(super) fn is_local(&self, register: Register) -> bool {
        self.is_local[usize::from(register) % REGISTERS]
    }
}

/// A register that keeps no other number in some instructions.
fn free<R: Copy>(registers: &mut [(R, Vec<Range<usize>>)], range: &Range<usize>) -> Option<R> {
    let overlaps = |taken: &Range<usize>| taken.start < range.end && range.start < taken.end;
    let (register, ranges) = registers.iter_mut().find(|(_, ranges)| !ranges.iter().any(overlaps))?;
    ranges.push(range.clone());
    Some(*register)
}

/// The targets of jumps.
fn target(code: &Code) -> Option<usize> {
    match *code {
        Code::Jump { target } | Code::JumpIf { target, .. } | Code::JumpIfBinary { target, .. } => {
            Some(target)
        }
        _ => None,
    }
}

/// Where the numbers of a loop are written and read.
fn extents(codes: &mut [Code], templates: &[bool], results: &[Register]) -> Vec<Extent> {
    let mut is_target = vec![false; codes.len() + 1];
    for target in codes.iter().filter_map(target) {
        is_target[target.min(codes.len())] = true;
    }
    let mut extents = vec![Extent::Nowhere; REGISTERS];
    let mut block = 0;
    for (at, code) in codes.iter_mut().enumerate() {
        block += usize::from(is_target[at]);
        // After these, the loop may stop, and then goes on without the registers of the processor. (It may stop at
        // a jump back too, which writes no number.)
        let can_stop = code.codes_of_call().is_some() || matches!(code, Code::Yield(_));
        let ends_block = can_stop || code.is_jump() || !templates.get(at).is_some_and(|&has_one| has_one);
        let [read, written] = code.registers();
        for register in read {
            extents[usize::from(*register) % REGISTERS].read(block, at);
        }
        block += usize::from(ends_block);
        for register in written {
            let extent = &mut extents[usize::from(*register) % REGISTERS];
            if can_stop { *extent = Extent::Everywhere } else { extent.write(block, at) }
        }
    }
    for &register in results {
        extents[usize::from(register) % REGISTERS] = Extent::Everywhere;
    }
    extents
}

impl Extent {
    fn read(&mut self, block: usize, at: usize) {
        match self {
            Extent::Block(only, range) if *only == block => range.end = at,
            _ => *self = Extent::Everywhere,
        }
    }

    fn write(&mut self, block: usize, at: usize) {
        match self {
            Extent::Nowhere => *self = Extent::Block(block, at..at),
            Extent::Block(only, range) if *only == block => range.end = at + 1,
            _ => *self = Extent::Everywhere,
        }
    }
}

/// How instructions on numbers use the numbers of a loop.
fn count_uses(codes: &mut [Code]) -> Vec<Uses> {
    let mut depths = vec![0_u32; codes.len()];
    for (at, code) in codes.iter().enumerate() {
        if let Some(target) = target(code)
            && let Some(trip) = depths.get_mut(target..=at)
        {
            trip.iter_mut().for_each(|depth| *depth += 1);
        }
    }
    let mut uses = vec![Uses::default(); REGISTERS];
    for (code, depth) in codes.iter_mut().zip(depths) {
        let weight = 8_u64.pow(depth.min(MAX_COUNTED_DEPTH));
        let kind =
            |dtype: DType| if Float::of(dtype).is_some() { Numbers::Floats } else { Numbers::Integers };
        let [read, written] = match code {
            Code::Binary { by, .. } => {
                let result = if by.op.is_predicate() { Numbers::Integers } else { kind(by.dtype) };
                [kind(by.dtype), result]
            }
            Code::JumpIfBinary { by, .. } => [kind(by.dtype), Numbers::Any],
            Code::Convert { dtypes: [from, to], .. } => [kind(*from), kind(*to)],
            Code::Function { .. } => [Numbers::Floats, Numbers::Floats],
            Code::Load(_) | Code::Store(_) | Code::JumpIf { .. } => [Numbers::Integers, Numbers::Any],
            Code::Move { .. } | Code::Select { .. } => [Numbers::Any, Numbers::Any],
            _ => continue,
        };
        for (is_changed, (numbers, registers)) in [read, written].iter().zip(code.registers()).enumerate() {
            for register in registers {
                let uses = &mut uses[usize::from(*register) % REGISTERS];
                uses.all += weight;
                uses.is_changed |= is_changed == 1;
                match numbers {
                    Numbers::Floats => uses.floats += weight,
                    Numbers::Integers => uses.integers += weight,
                    Numbers::Any => {}
                }
            }
        }
    }
    uses
}
