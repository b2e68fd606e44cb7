//! Where the values of a loop are: in registers, in small arrays, or in tensors around the loop.

use std::collections::HashSet;
use std::sync::Arc;

use super::super::operand::{Operand, Place, REGISTER_BYTES, Slot, Target, word};
use super::super::source::Region;
use super::code::{
    Array, Code, Copying, Elements, Location, Packing, Part, REGISTERS, Register, Small, Typed,
};
use crate::DType;
use crate::cost::{MAX_ELEMENTS_IN_REGISTERS, MAX_SMALL_LOOP_BYTES, MIN_CLUSTER_BYTES};
use crate::layout::{self};
use crate::tensor::byte_size;

/// The distance of small arrays in bytes is a multiple of this.
const SMALL_ALIGNMENT: usize = 16;

/// Whether a value has so few elements that each is in a register.
pub(in super::super) fn is_few(dtype: DType, shape: &[usize]) -> bool {
    let fits = !dtype.is_packed() && dtype.width() <= REGISTER_BYTES;
    fits && layout::size(shape).is_some_and(|size| (1..=MAX_ELEMENTS_IN_REGISTERS).contains(&size))
}

/// Where a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// In registers, which other values may have too.
    Elements(Elements),
    /// Among the tensors of the loop.
    Tensor(usize),
    /// A small array.
    Small(Small),
    /// The latest value of an array of which parts are replaced, which is small or has memory outside.
    Replaced(Array),
    /// In an array that stays as it is as long as the value is read.
    Part(Arc<Part>),
    /// An array that changes, outside of the loop.
    Array,
}

impl Home {
    /// The array that is here and can be read.
    fn array(&self) -> Option<Array> {
        match *self {
            Home::Small(small) => Some(Array::Small(small)),
            Home::Tensor(index) => Some(Array::Tensor(index)),
            Home::Replaced(array) => Some(array),
            Home::Elements(_) | Home::Part(_) | Home::Array => None,
        }
    }

    /// The place of the array, or part of one, that is here and can be read.
    fn location(&self) -> Option<Location> {
        match self {
            Home::Part(part) => Some(Location::Part(part.clone())),
            home => home.array().map(Location::Array),
        }
    }
}

/// The values of a region.
pub(super) struct Scope {
    pub(super) homes: Vec<Option<Home>>,
    /// For each slot that a step asks for whether it has been computed, the register that tells.
    pub(super) flags: Vec<(Slot, Register)>,
    /// For each slot, how often it is read when parts of arrays may have been replaced already.
    pub(super) late_reads: Vec<usize>,
}

/// Turns regions into instructions.
#[derive(Default)]
pub(super) struct Assembler<'a> {
    pub(super) regions: &'a [Region],
    pub(super) literals: &'a [Vec<u8>],
    pub(super) codes: Vec<Code>,
    pub(super) constants: Vec<(Register, u64)>,
    pub(super) tensors: Vec<Place>,
    /// Elements that are in a tensor too, with the bytes of each there.
    pub(super) same: Vec<(Elements, usize, usize)>,
    /// The number of registers that are in use, from the first on, and the most so far.
    pub(super) used: usize,
    pub(super) most_used: usize,
    /// The number of bytes that small arrays use now, and the most so far.
    pub(super) small_used: usize,
    pub(super) small_bytes: usize,
    /// The number of loops around the next instruction.
    pub(super) depth: usize,
    /// The last instruction that a jump goes to.
    pub(super) last_target: usize,
    /// The arrays of which parts have been replaced so far, once for each instruction that does.
    pub(super) stores: Vec<Array>,
    /// Whether loops in the loop replace parts of small arrays in place.
    pub(super) replaces_in_loops: bool,
    /// Whether loops of a known number of trips are written out.
    pub(super) unrolls: bool,
    /// The bodies of loops that can't be.
    pub(super) rolled: HashSet<usize>,
    /// Whether nothing may be replaced: the next instructions run or not, and what reads the array
    /// later would not know.
    pub(super) is_guarded: bool,
}

impl Assembler<'_> {
    /// A register that is not in use. Constants are in the last registers.
    pub(super) fn register(&mut self) -> Option<Register> {
        let register = self.used;
        self.used += 1;
        self.most_used = self.most_used.max(self.used);
        (self.used + self.constants.len() <= REGISTERS).then_some(register as Register)
    }

    /// A register for each element of a value.
    pub(super) fn registers(&mut self, dtype: DType, shape: &[usize]) -> Option<Elements> {
        let size = if is_few(dtype, shape) { layout::size(shape)? } else { return None };
        (0..size).map(|_| self.register()).collect()
    }

    /// The register of a constant.
    pub(super) fn constant(&mut self, value: u64) -> Option<Register> {
        if let Some(&(register, _)) = self.constants.iter().find(|constant| constant.1 == value) {
            return Some(register);
        }
        let register = REGISTERS.checked_sub(self.constants.len() + 1)?;
        (register >= self.most_used).then(|| {
            self.constants.push((register as Register, value));
            register as Register
        })
    }

    /// Memory for an array that is not in use, if it is a small one.
    pub(super) fn small(&mut self, dtype: DType, shape: &[usize]) -> Option<Small> {
        let bytes =
            byte_size("while", dtype, shape).ok().filter(|bytes| (1..MIN_CLUSTER_BYTES).contains(bytes))?;
        self.small_of(bytes)
    }

    /// Memory of some bytes that is not in use.
    pub(super) fn small_of(&mut self, bytes: usize) -> Option<Small> {
        let at = self.small_used.next_multiple_of(SMALL_ALIGNMENT);
        self.small_used = at + bytes;
        self.small_bytes = self.small_bytes.max(self.small_used);
        (self.small_bytes <= MAX_SMALL_LOOP_BYTES).then_some(Small { at, bytes })
    }

    /// The number of a tensor at a place in the region around the loop.
    pub(super) fn tensor(&mut self, place: Place) -> usize {
        self.tensors.push(place);
        self.tensors.len() - 1
    }

    /// Where a value is.
    pub(super) fn home(&mut self, scope: &Scope, operand: &Operand) -> Option<Home> {
        match operand.place {
            Place::Slot(slot) => scope.homes.get(slot)?.clone(),
            Place::Literal(index) if is_few(operand.dtype, &operand.shape) => {
                let width = operand.dtype.width();
                let elements = self.literals.get(index)?.chunks_exact(width);
                let elements: Elements =
                    elements.map(|bytes| self.constant(word(bytes))).collect::<Option<_>>()?;
                Some(Home::Elements(elements))
            }
            Place::Literal(_) => Some(Home::Tensor(self.tensor(operand.place))),
        }
    }

    /// The registers of the elements of a value.
    pub(super) fn elements(&mut self, scope: &Scope, operand: &Operand) -> Option<Elements> {
        match self.home(scope, operand)? {
            Home::Elements(elements) if layout::size(&operand.shape) == Some(elements.len()) => {
                Some(elements)
            }
            _ => None,
        }
    }

    /// The register of a number.
    pub(super) fn number(&mut self, scope: &Scope, operand: &Operand) -> Option<Register> {
        match self.elements(scope, operand)?[..] {
            [register] => Some(register),
            _ => None,
        }
    }

    /// The place of a value that a kernel reads.
    pub(super) fn location(&mut self, scope: &Scope, operand: &Operand) -> Option<Location> {
        if let Some(register) = self.number(scope, operand) {
            return Some(Location::Register(Typed::new(register, operand.dtype)));
        }
        match self.home(scope, operand)? {
            Home::Part(part) => Some(Location::Part(part)),
            _ => self.array(scope, operand).map(Location::Array),
        }
    }

    /// The memory of a value.
    pub(super) fn array(&mut self, scope: &Scope, operand: &Operand) -> Option<Array> {
        let elements = match self.home(scope, operand)? {
            Home::Elements(elements) => elements,
            home => return self.whole(home)?.array(),
        };
        if let Place::Literal(_) = operand.place {
            return Some(Array::Tensor(self.tensor(operand.place)));
        }
        // A wider integer may be in the same register.
        let width = operand.dtype.width();
        let same = self.same.iter().find(|same| same.0 == elements && same.1 == width);
        if let Some(&(_, _, tensor)) = same {
            return Some(Array::Tensor(tensor));
        }
        let packing = self.packing(&elements, operand.dtype)?;
        let small = packing.small;
        self.codes.push(Code::Pack(Box::new(packing)));
        Some(Array::Small(small))
    }

    /// The home of a value, which is no part of an array.
    pub(super) fn whole(&mut self, home: Home) -> Option<Home> {
        let Home::Part(part) = &home else { return Some(home) };
        let copy = Home::Small(self.small_of(part.bytes.length)?);
        self.copy(&home, &copy)?;
        Some(copy)
    }

    /// Registers, and memory for an array of their elements.
    pub(super) fn packing(&mut self, elements: &Elements, dtype: DType) -> Option<Packing> {
        let width = dtype.width();
        let small = self.small_of(elements.len() * width)?;
        Some(Packing { elements: elements[..].into(), width, small })
    }

    /// The home of a slot that gets a small value; no other slot has it.
    pub(super) fn define(
        &mut self,
        scope: &mut Scope,
        slot: Slot,
        dtype: DType,
        shape: &[usize],
    ) -> Option<Home> {
        let home = match scope.homes.get(slot)? {
            Some(home @ (Home::Elements(_) | Home::Small(_))) => home.clone(),
            Some(Home::Tensor(_) | Home::Replaced(_) | Home::Part(_) | Home::Array) => return None,
            None if is_few(dtype, shape) => Home::Elements(self.registers(dtype, shape)?),
            None => Home::Small(self.small(dtype, shape)?),
        };
        scope.homes[slot] = Some(home.clone());
        Some(home)
    }

    /// Whether several steps may give a slot its value, so that it needs a home of its own.
    pub(super) fn needs_home(&self, scope: &Scope, slot: Slot) -> bool {
        scope.flags.iter().any(|flag| flag.0 == slot) || scope.homes.get(slot).is_none_or(Option::is_some)
    }

    /// Gives a slot elements that are in registers.
    pub(super) fn alias(&mut self, scope: &mut Scope, target: &Target, elements: Elements) -> Option<()> {
        let Target { slot, dtype, shape } = target;
        if self.needs_home(scope, *slot) {
            let to = self.define(scope, *slot, *dtype, shape)?;
            return self.copy(&Home::Elements(elements), &to);
        }
        scope.homes[*slot] = Some(Home::Elements(elements));
        Some(())
    }

    /// Copies a value to a home.
    pub(super) fn copy(&mut self, from: &Home, to: &Home) -> Option<()> {
        match (from, to) {
            (Home::Elements(from), Home::Elements(to)) if from.len() == to.len() => {
                let moves = from.iter().zip(&to[..]).map(|(&from, &to)| Code::Move { from, to });
                self.codes.extend(moves);
            }
            (from, &Home::Small(to)) => {
                self.codes.push(Code::Copy(Box::new(Copying { from: from.location()?, to })));
            }
            _ => return None,
        }
        Some(())
    }

    /// The value of a constant.
    pub(super) fn value_of(&self, register: Register) -> Option<u64> {
        let index = REGISTERS.checked_sub(usize::from(register) + 1)?;
        self.constants.get(index).map(|constant| constant.1)
    }

    /// Adds an instruction, and returns its number.
    pub(super) fn push(&mut self, code: Code) -> usize {
        self.codes.push(code);
        self.codes.len() - 1
    }
}
