//! Which numbers of a loop are in registers of the processor, besides their memory.

use super::super::super::machine_code::processor::{CACHE, FLOAT_CACHE, Float, Fpr, Gpr};
use super::super::code::{Code, REGISTERS};
use crate::DType;

/// The depth of loops from which on all instructions count the same.
const MAX_COUNTED_DEPTH: u32 = 5;

/// Where a number is besides the memory of registers.
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
}

/// The type of an instruction's numbers.
enum Numbers {
    Integers,
    Floats,
    /// They are moved only.
    Any,
}

/// Where numbers are besides the memory of registers: those that are used most by instructions that have a
/// template, in inner loops above all, are in registers of the processor.
pub(super) fn cached_numbers(codes: &mut [Code]) -> Vec<Cached> {
    let mut depths = vec![0_u32; codes.len()];
    for (at, code) in codes.iter().enumerate() {
        if let Code::Jump { target } | Code::JumpIf { target, .. } | Code::JumpIfBinary { target, .. } = *code
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
            Code::SquareRoot { .. } | Code::Function { .. } => [Numbers::Floats, Numbers::Floats],
            Code::Load(_) | Code::Store(_) | Code::JumpIf { .. } => [Numbers::Integers, Numbers::Any],
            Code::Move { .. } | Code::Select { .. } => [Numbers::Any, Numbers::Any],
            _ => continue,
        };
        for (numbers, registers) in [read, written].iter().zip(code.registers()) {
            for register in registers {
                let uses = &mut uses[usize::from(*register) % REGISTERS];
                uses.all += weight;
                match numbers {
                    Numbers::Floats => uses.floats += weight,
                    Numbers::Integers => uses.integers += weight,
                    Numbers::Any => {}
                }
            }
        }
    }
    let mut order: Vec<usize> = (0..REGISTERS).filter(|&register| uses[register].all > 0).collect();
    order.sort_by_key(|&register| std::cmp::Reverse(uses[register].all));
    let (mut integers, mut floats) = (CACHE.into_iter(), FLOAT_CACHE.into_iter());
    let mut cached = vec![Cached::No; REGISTERS];
    for register in order {
        let cache = if uses[register].floats > uses[register].integers {
            floats.next().map(Cached::Float)
        } else {
            integers.next().map(Cached::Integer)
        };
        cached[register] = cache.unwrap_or(Cached::No);
    }
    cached
}
