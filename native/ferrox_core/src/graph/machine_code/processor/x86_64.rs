//! An assembler for the few instructions of x86-64 that loops over numbers need.
//!
//! Reference: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 (the formats
//! of instructions) and the opcodes of the instructions that the functions name. All of them are in the
//! baseline of the architecture (SSE2).

mod avx2;

pub(in crate::graph) use self::avx2::*;
use super::{
    Arithmetic, Assembler, Condition, Extreme, Float, Fpr, Gpr, Integer, Label, Operand, Size,
    float_registers,
};

const RAX: Gpr = Gpr(0);
const RCX: Gpr = Gpr(1);
const RDX: Gpr = Gpr(2);
const RBX: Gpr = Gpr(3);
const RSP: Gpr = Gpr(4);
const RBP: Gpr = Gpr(5);
const RSI: Gpr = Gpr(6);
const RDI: Gpr = Gpr(7);
const R8: Gpr = Gpr(8);
const R9: Gpr = Gpr(9);
const R10: Gpr = Gpr(10);
const R11: Gpr = Gpr(11);
const R12: Gpr = Gpr(12);
const R13: Gpr = Gpr(13);
const R14: Gpr = Gpr(14);
const R15: Gpr = Gpr(15);

// The registers for the steps of a template. The first one is that of a function's result, too; the second
// one that of the counts of shifts.
pub(in crate::graph) const WORD: Gpr = RAX;
pub(in crate::graph) const OTHER_WORD: Gpr = RCX;
pub(in crate::graph) const THIRD_WORD: Gpr = RDX;
pub(in crate::graph) const OTHER_ADDRESS: Gpr = RDI;

/// The registers of a function's arguments, by the System V ABI.
pub(in crate::graph) const ARGUMENTS: [Gpr; 4] = [RDI, RSI, RDX, RCX];

// The registers of a run.
pub(in crate::graph) const REGISTER_MEMORY: Gpr = RBX;
pub(in crate::graph) const RUN: Gpr = RBP;
pub(in crate::graph) const ARRAYS: Gpr = R13;
pub(in crate::graph) const SMALL: Gpr = R14;
pub(in crate::graph) const LEFT: Gpr = R15;

// The registers that keep numbers.
pub(in crate::graph) const CACHE: [Gpr; 6] = [R12, RSI, R8, R9, R10, R11];
pub(in crate::graph) const FLOAT_CACHE: [Fpr; 13] = float_registers(3);

/// The number of the first register of floats that a function leaves as it was, and that of the first one
/// after these: there is none.
pub(super) const SAVED_FLOATS: [u8; 2] = [16, 16];

/// Those of the registers above that a function leaves as they were.
const SAVED: [Gpr; 6] = [RBX, RBP, R12, R13, R14, R15];

// The conditions that `set_conditions` leaves.
pub(super) const FLOAT_GREATER: Condition = Condition::Above;
pub(super) const FLOAT_GREATER_OR_EQUAL: Condition = Condition::AboveOrEqual;

// The numbers of conditions in opcodes that no comparison of integers leaves.
const PARITY: u8 = 0xa;
const NO_PARITY: u8 = 0xb;

impl Condition {
    /// The number of the condition in opcodes.
    fn code(self) -> u8 {
        match self {
            Condition::Below => 0x2,
            Condition::AboveOrEqual => 0x3,
            Condition::Equal | Condition::FloatsEqual => 0x4,
            Condition::NotEqual | Condition::FloatsNotEqual => 0x5,
            Condition::BelowOrEqual => 0x6,
            Condition::Above => 0x7,
            Condition::Negative => 0x8,
            Condition::NotNegative => 0x9,
            Condition::Less => 0xc,
            Condition::GreaterOrEqual => 0xd,
            Condition::LessOrEqual => 0xe,
            Condition::Greater => 0xf,
        }
    }
}

impl Integer {
    /// The opcode for a register and an operand.
    fn opcode(self) -> u8 {
        match self {
            Integer::Add => 0x03,
            Integer::Or => 0x0b,
            Integer::And => 0x23,
            Integer::Subtract => 0x2b,
            Integer::Xor => 0x33,
            Integer::Compare => 0x3b,
        }
    }
}

impl Arithmetic {
    fn opcode(self) -> u8 {
        match self {
            Arithmetic::SquareRoot => 0x51,
            Arithmetic::Add => 0x58,
            Arithmetic::Multiply => 0x59,
            Arithmetic::Subtract => 0x5c,
            Arithmetic::Divide => 0x5e,
        }
    }
}

impl Float {
    /// The prefix of an instruction on one element.
    fn prefix(self) -> u8 {
        match self {
            Float::F32 => 0xf3,
            Float::F64 => 0xf2,
        }
    }

    /// The prefix of an instruction on vectors, and of a comparison.
    fn vector_prefix(self) -> Option<u8> {
        (self == Float::F64).then_some(0x66)
    }
}

impl Assembler {
    /// Writes the distance of a label from an instruction's distance into the latter.
    pub(super) fn set_distance(&mut self, at: usize, distance: i64) -> Option<()> {
        // Distances begin after the instruction, which ends with them.
        let distance = i32::try_from(distance - 4).ok()?;
        self.bytes.get_mut(at..at + 4)?.copy_from_slice(&distance.to_le_bytes());
        Some(())
    }

    /// An instruction with a register, or a part of the opcode in its place, and an operand.
    fn instruction(&mut self, prefix: Option<u8>, size: Size, opcode: &[u8], register: u8, operand: Operand) {
        let base = match operand {
            Operand::Gpr(Gpr(base)) | Operand::Fpr(Fpr(base)) | Operand::Memory(Gpr(base), _) => base,
        };
        self.bytes.extend(prefix);
        let rex = u8::from(size == Size::Eight) << 3 | (register >> 3) << 2 | base >> 3;
        if rex != 0 {
            self.bytes.push(0x40 | rex);
        }
        self.bytes.extend(opcode);
        let [register, low] = [register, base].map(|number| number & 7);
        match operand {
            Operand::Gpr(_) | Operand::Fpr(_) => self.bytes.push(0xc0 | register << 3 | low),
            Operand::Memory(_, distance) => {
                self.bytes.push(0x80 | register << 3 | low);
                if low == RSP.0 {
                    // A base without an index.
                    self.bytes.push(0x24);
                }
                self.bytes.extend(distance.to_le_bytes());
            }
        }
    }

    // Functions.

    /// The begin of a function that calls others.
    pub(in crate::graph) fn save_registers(&mut self) {
        for register in SAVED {
            self.instruction(None, Size::Four, &[0xff], 6, Operand::Gpr(register));
        }
        // The stack is aligned to 16 bytes again for calls.
        self.subtract_number(RSP, 8);
    }

    /// The end of a function, before it returns.
    pub(in crate::graph) fn restore_registers(&mut self) {
        self.subtract_number(RSP, -8);
        for register in SAVED.into_iter().rev() {
            self.instruction(None, Size::Four, &[0x8f], 0, Operand::Gpr(register));
        }
    }

    /// Calls the function whose address is in a register.
    pub(in crate::graph) fn call(&mut self, register: Gpr) {
        self.instruction(None, Size::Four, &[0xff], 2, Operand::Gpr(register));
    }

    pub(in crate::graph) fn return_(&mut self) {
        self.bytes.push(0xc3);
    }

    // Jumps.

    fn distance(&mut self, label: Label) {
        self.jumps.push((self.bytes.len(), label));
        self.bytes.extend([0; 4]);
    }

    pub(in crate::graph) fn jump(&mut self, label: Label) {
        self.bytes.push(0xe9);
        self.distance(label);
    }

    pub(in crate::graph) fn jump_if(&mut self, condition: Condition, label: Label) {
        // Floats of which one is not a number count as equal, with parity.
        match condition {
            Condition::FloatsEqual => {
                let past = self.label();
                self.jump_if_code(PARITY, past);
                self.jump_if_code(condition.code(), label);
                self.bind(past);
            }
            Condition::FloatsNotEqual => {
                self.jump_if_code(PARITY, label);
                self.jump_if_code(condition.code(), label);
            }
            _ => self.jump_if_code(condition.code(), label),
        }
    }

    fn jump_if_code(&mut self, code: u8, label: Label) {
        self.bytes.extend([0x0f, 0x80 | code]);
        self.distance(label);
    }

    /// Jumps to the address in a register.
    pub(in crate::graph) fn jump_to(&mut self, register: Gpr) {
        self.instruction(None, Size::Four, &[0xff], 4, Operand::Gpr(register));
    }

    // Integers.

    /// Eight bytes to a register.
    pub(in crate::graph) fn load(&mut self, to: Gpr, from: Operand) {
        match from {
            Operand::Gpr(from) if from == to => {}
            Operand::Fpr(Fpr(from)) => {
                self.instruction(Some(0x66), Size::Eight, &[0x0f, 0x7e], from, Operand::Gpr(to));
            }
            _ => self.instruction(None, Size::Eight, &[0x8b], to.0, from),
        }
    }

    /// An integer of some bytes to a register, filled with zeros.
    pub(in crate::graph) fn load_unsigned(&mut self, bytes: usize, to: Gpr, from: Operand) {
        match bytes {
            1 => self.instruction(None, Size::Eight, &[0x0f, 0xb6], to.0, from),
            2 => self.instruction(None, Size::Eight, &[0x0f, 0xb7], to.0, from),
            4 => self.instruction(None, Size::Four, &[0x8b], to.0, from),
            _ => self.load(to, from),
        }
    }

    /// An integer of some bytes to a register, filled with copies of the sign.
    pub(in crate::graph) fn load_signed(&mut self, bytes: usize, to: Gpr, from: Operand) {
        match bytes {
            1 => self.instruction(None, Size::Eight, &[0x0f, 0xbe], to.0, from),
            2 => self.instruction(None, Size::Eight, &[0x0f, 0xbf], to.0, from),
            4 => self.instruction(None, Size::Eight, &[0x63], to.0, from),
            _ => self.load(to, from),
        }
    }

    pub(in crate::graph) fn store(&mut self, bytes: usize, (base, distance): (Gpr, i32), from: Gpr) {
        let to = Operand::Memory(base, distance);
        match bytes {
            // All registers' low bytes have names with the prefix of a size of eight, which has no other
            // effect.
            1 => self.instruction(None, Size::Eight, &[0x88], from.0, to),
            2 => self.instruction(Some(0x66), Size::Four, &[0x89], from.0, to),
            4 => self.instruction(None, Size::Four, &[0x89], from.0, to),
            _ => self.instruction(None, Size::Eight, &[0x89], from.0, to),
        }
    }

    /// A number to a register. Conditions stay.
    pub(in crate::graph) fn constant(&mut self, Gpr(to): Gpr, value: u64) {
        let wide = u32::try_from(value).is_err();
        let rex = u8::from(wide) << 3 | to >> 3;
        if rex != 0 {
            self.bytes.push(0x40 | rex);
        }
        self.bytes.push(0xb8 | to & 7);
        match u32::try_from(value) {
            Ok(value) => self.bytes.extend(value.to_le_bytes()),
            Err(_) => self.bytes.extend(value.to_le_bytes()),
        }
    }

    pub(in crate::graph) fn integer(&mut self, op: Integer, size: Size, to: Gpr, from: Operand) {
        self.instruction(None, size, &[op.opcode()], to.0, from);
    }

    pub(in crate::graph) fn multiply(&mut self, size: Size, to: Gpr, from: Operand) {
        self.instruction(None, size, &[0x0f, 0xaf], to.0, from);
    }

    /// The product of a register and a number, of eight bytes.
    pub(in crate::graph) fn multiply_by(&mut self, to: Gpr, factor: i32) {
        self.instruction(None, Size::Eight, &[0x69], to.0, Operand::Gpr(to));
        self.bytes.extend(factor.to_le_bytes());
    }

    /// Subtracts a number from a register of eight bytes.
    pub(in crate::graph) fn subtract_number(&mut self, to: Gpr, number: i32) {
        self.instruction(None, Size::Eight, &[0x81], 5, Operand::Gpr(to));
        self.bytes.extend(number.to_le_bytes());
    }

    /// Shifts eight bytes by the count in `OTHER_WORD`, modulo 64, to the left, or to the right with zeros.
    pub(in crate::graph) fn shift(&mut self, is_left: bool, to: Gpr) {
        self.instruction(None, Size::Eight, &[0xd3], if is_left { 4 } else { 5 }, Operand::Gpr(to));
    }

    /// Compares the bits that two registers of eight bytes have in common with zero.
    pub(in crate::graph) fn test(&mut self, register: Gpr, other: Gpr) {
        self.instruction(None, Size::Eight, &[0x85], other.0, Operand::Gpr(register));
    }

    /// Eight bytes to a register if a condition of integers holds.
    pub(in crate::graph) fn load_if(&mut self, condition: Condition, to: Gpr, from: Gpr) {
        self.instruction(None, Size::Eight, &[0x0f, 0x40 | condition.code()], to.0, Operand::Gpr(from));
    }

    /// One in `WORD` or `OTHER_WORD` if a condition holds, zero if not. One of floats also changes
    /// `THIRD_WORD`.
    pub(in crate::graph) fn set_if(&mut self, condition: Condition, to: Gpr) {
        self.set_if_code(condition.code(), to);
        match condition {
            Condition::FloatsEqual => {
                self.set_if_code(NO_PARITY, THIRD_WORD);
                self.integer(Integer::And, Size::Four, to, Operand::Gpr(THIRD_WORD));
            }
            Condition::FloatsNotEqual => {
                self.set_if_code(PARITY, THIRD_WORD);
                self.integer(Integer::Or, Size::Four, to, Operand::Gpr(THIRD_WORD));
            }
            _ => {}
        }
        self.load_unsigned(1, to, Operand::Gpr(to));
    }

    fn set_if_code(&mut self, code: u8, to: Gpr) {
        self.instruction(None, Size::Four, &[0x0f, 0x90 | code], 0, Operand::Gpr(to));
    }

    // Floats.

    /// The first eight bytes of a register of floats, with zeros after them, or all of another one.
    pub(in crate::graph) fn load_float(&mut self, Fpr(to): Fpr, from: Operand) {
        match from {
            Operand::Fpr(Fpr(from)) if from == to => {}
            // MOVAPS.
            Operand::Fpr(_) => self.instruction(None, Size::Four, &[0x0f, 0x28], to, from),
            // MOVQ from a general register.
            Operand::Gpr(_) => self.instruction(Some(0x66), Size::Eight, &[0x0f, 0x6e], to, from),
            Operand::Memory(..) => self.instruction(Some(0xf3), Size::Four, &[0x0f, 0x7e], to, from),
        }
    }

    /// One element, with zeros after it, from memory.
    pub(in crate::graph) fn load_element(&mut self, float: Float, Fpr(to): Fpr, from: (Gpr, i32)) {
        let from = Operand::Memory(from.0, from.1);
        self.instruction(Some(float.prefix()), Size::Four, &[0x0f, 0x10], to, from);
    }

    /// The first eight bytes of a register of floats to memory.
    pub(in crate::graph) fn store_float(&mut self, (base, distance): (Gpr, i32), Fpr(from): Fpr) {
        self.instruction(Some(0x66), Size::Four, &[0x0f, 0xd6], from, Operand::Memory(base, distance));
    }

    /// One element to memory.
    pub(in crate::graph) fn store_element(&mut self, float: Float, to: (Gpr, i32), Fpr(from): Fpr) {
        let to = Operand::Memory(to.0, to.1);
        self.instruction(Some(float.prefix()), Size::Four, &[0x0f, 0x11], from, to);
    }

    /// An operation on one element.
    pub(in crate::graph) fn arithmetic(&mut self, op: Arithmetic, float: Float, Fpr(to): Fpr, from: Operand) {
        self.instruction(Some(float.prefix()), Size::Four, &[0x0f, op.opcode()], to, from);
    }

    /// The greater or the lesser of `to` and `other`: `to` if that is not a number; `other` if that is not a
    /// number, or if they are equal.
    pub(in crate::graph) fn extreme(&mut self, op: Extreme, float: Float, to: Fpr, other: Fpr) {
        let past = self.label();
        self.set_conditions(float, [to, to]);
        self.jump_if_code(PARITY, past);
        let opcode = if op == Extreme::Max { 0x5f } else { 0x5d };
        self.instruction(Some(float.prefix()), Size::Four, &[0x0f, opcode], to.0, Operand::Fpr(other));
        self.bind(past);
    }

    /// UCOMISS or UCOMISD. Where one float is not a number, the first counts as below the second as well as equal
    /// to it.
    pub(super) fn set_conditions(&mut self, float: Float, [Fpr(left), right]: [Fpr; 2]) {
        self.instruction(float.vector_prefix(), Size::Four, &[0x0f, 0x2e], left, Operand::Fpr(right));
    }

    /// A signed integer of eight bytes as a float, with zeros after it.
    pub(in crate::graph) fn integer_to_float(&mut self, float: Float, to: Fpr, from: Gpr) {
        self.clear(to);
        self.instruction(Some(float.prefix()), Size::Eight, &[0x0f, 0x2a], to.0, Operand::Gpr(from));
    }

    /// A float of the type `from` as one of the other type, with zeros after it, in another register.
    pub(in crate::graph) fn float_to_float(&mut self, from: Float, to: Fpr, operand: Operand) {
        self.clear(to);
        self.instruction(Some(from.prefix()), Size::Four, &[0x0f, 0x5a], to.0, operand);
    }

    fn clear(&mut self, register: Fpr) {
        self.instruction(None, Size::Four, &[0x0f, 0x57], register.0, Operand::Fpr(register));
    }

    // Vectors.

    /// An operation on vectors of 16 bytes.
    pub(in crate::graph) fn vector_arithmetic(
        &mut self,
        op: Arithmetic,
        float: Float,
        Fpr(to): Fpr,
        from: Fpr,
    ) {
        self.instruction(float.vector_prefix(), Size::Four, &[0x0f, op.opcode()], to, Operand::Fpr(from));
    }

    /// The first element as all elements of a vector.
    pub(in crate::graph) fn repeat(&mut self, float: Float, register: Fpr) {
        let operand = Operand::Fpr(register);
        match float {
            Float::F32 => {
                self.instruction(None, Size::Four, &[0x0f, 0xc6], register.0, operand);
                self.bytes.push(0);
            }
            Float::F64 => self.instruction(Some(0x66), Size::Four, &[0x0f, 0x14], register.0, operand),
        }
    }

    /// A vector from memory.
    pub(in crate::graph) fn load_vector(&mut self, Fpr(to): Fpr, (base, distance): (Gpr, i32)) {
        self.instruction(None, Size::Four, &[0x0f, 0x10], to, Operand::Memory(base, distance));
    }

    /// A vector to memory.
    pub(in crate::graph) fn store_vector(&mut self, (base, distance): (Gpr, i32), Fpr(from): Fpr) {
        self.instruction(None, Size::Four, &[0x0f, 0x11], from, Operand::Memory(base, distance));
    }
}
