//! An assembler for the few instructions of AArch64 that loops over numbers need.
//!
//! Reference: Arm Architecture Reference Manual for A-profile architecture, part C (the A64 instruction set):
//! each instruction is one word, with its opcode in the bits that the constants here have. All of them are in
//! the baseline of the architecture (ARMv8.0-A).

mod neon;

pub(in crate::graph) use self::neon::*;
use super::{
    Arithmetic, Assembler, Comparison, Condition, Extreme, Float, Fpr, Gpr, Integer, Label, Operand, Size,
    float_registers,
};

// The registers for the steps of a template. The first one is that of a function's result, too; the second
// one that of the counts of shifts.
pub(in crate::graph) const WORD: Gpr = Gpr(0);
pub(in crate::graph) const OTHER_WORD: Gpr = Gpr(1);
pub(in crate::graph) const THIRD_WORD: Gpr = Gpr(2);
pub(in crate::graph) const OTHER_ADDRESS: Gpr = Gpr(3);

/// The registers of a function's arguments, by the Procedure Call Standard for the Arm 64-bit Architecture.
pub(in crate::graph) const ARGUMENTS: [Gpr; 4] = [Gpr(0), Gpr(1), Gpr(2), Gpr(3)];

// The registers of a run.
pub(in crate::graph) const REGISTER_MEMORY: Gpr = Gpr(19);
pub(in crate::graph) const RUN: Gpr = Gpr(20);
pub(in crate::graph) const ARRAYS: Gpr = Gpr(21);
pub(in crate::graph) const SMALL: Gpr = Gpr(22);
pub(in crate::graph) const LEFT: Gpr = Gpr(23);

// The registers that keep numbers: those that a function may change.
pub(in crate::graph) const CACHE: [Gpr; 12] =
    [Gpr(4), Gpr(5), Gpr(6), Gpr(7), Gpr(8), Gpr(9), Gpr(10), Gpr(11), Gpr(12), Gpr(13), Gpr(14), Gpr(15)];
pub(in crate::graph) const FLOAT_CACHE: [Fpr; 20] = float_registers(3);

/// The number of the first register of floats that a function leaves as it was, and that of the first one
/// after these.
pub(super) const SAVED_FLOATS: [u8; 2] = [8, 16];

/// Pairs of registers that a function leaves as they were; the first one is the frame pointer and the link
/// register.
const SAVED: [[Gpr; 2]; 4] = [[Gpr(29), LINK], [REGISTER_MEMORY, RUN], [ARRAYS, SMALL], [LEFT, Gpr(24)]];

/// Where the address is to which a function returns.
const LINK: Gpr = Gpr(30);

// The registers for the steps of an instruction that takes several.
const STEP: Gpr = Gpr(16);
const STEP_ADDRESS: Gpr = Gpr(17);
const STEP_FLOAT: Fpr = Fpr(31);

/// A register that is always zero, or as the base of an address, the stack pointer.
const ZERO: Gpr = Gpr(31);
const STACK: Gpr = Gpr(31);

/// A jump, without its distance.
const B: u32 = 0x1400_0000;

// The conditions that `set_conditions` leaves.
pub(super) const FLOAT_GREATER: Condition = Condition::Greater;
pub(super) const FLOAT_GREATER_OR_EQUAL: Condition = Condition::GreaterOrEqual;

/// The condition that one of two floats was not a number.
const UNORDERED: u32 = 0x6;

/// The bit of an integer instruction on eight bytes.
const EIGHT_BYTES: u32 = 1 << 31;

// The bits of what loads and stores do, and of the registers that they take.
const STORE: u32 = 0;
const LOAD: u32 = 1 << 22;
const LOAD_SIGNED: u32 = 2 << 22;
const OF_FLOATS: u32 = 1 << 26;
/// With `OF_FLOATS`, of 16 bytes.
const OF_VECTORS: u32 = 2 << 22;

impl Condition {
    /// The number of the condition in opcodes.
    fn code(self) -> u32 {
        match self {
            Condition::Equal | Condition::FloatsEqual => 0x0,
            Condition::NotEqual | Condition::FloatsNotEqual => 0x1,
            Condition::AboveOrEqual => 0x2,
            Condition::Below => 0x3,
            Condition::Negative => 0x4,
            Condition::NotNegative => 0x5,
            Condition::Above => 0x8,
            Condition::BelowOrEqual => 0x9,
            Condition::GreaterOrEqual => 0xa,
            Condition::Less => 0xb,
            Condition::Greater => 0xc,
            Condition::LessOrEqual => 0xd,
        }
    }
}

impl Integer {
    /// The opcode for registers of four bytes.
    fn opcode(self) -> u32 {
        match self {
            Integer::Add => 0x0b00_0000,
            Integer::Subtract => 0x4b00_0000,
            Integer::And => 0x0a00_0000,
            Integer::Or => 0x2a00_0000,
            Integer::Xor => 0x4a00_0000,
            Integer::Compare => 0x6b00_0000,
        }
    }
}

impl Size {
    fn bits(self) -> u32 {
        match self {
            Size::Four => 0,
            Size::Eight => EIGHT_BYTES,
        }
    }
}

impl Float {
    /// The bit of an instruction on floats of eight bytes.
    fn bits(self) -> u32 {
        match self {
            Float::F32 => 0,
            Float::F64 => 1 << 22,
        }
    }
}

/// An instruction's bits of three registers: the result, and the operands.
fn registers(to: u8, first: u8, second: u8) -> u32 {
    u32::from(second) << 16 | u32::from(first) << 5 | u32::from(to)
}

impl Assembler {
    /// Writes the distance of a label from a jump into the latter.
    pub(super) fn set_distance(&mut self, at: usize, distance: i64) -> Option<()> {
        let bytes = self.bytes.get_mut(at..at + 4)?;
        let instruction = u32::from_le_bytes((&*bytes).try_into().ok()?);
        // Distances are in instructions, of 26 bits in B and of 19 in B.cond.
        let (bits, shift) = if instruction >> 26 == B >> 26 { (26, 0) } else { (19, 5) };
        let distance = distance / 4;
        let half = 1 << (bits - 1);
        if !(-half..half).contains(&distance) {
            return None;
        }
        let distance = distance as u32 & ((1 << bits) - 1);
        bytes.copy_from_slice(&(instruction | distance << shift).to_le_bytes());
        Some(())
    }

    fn instruction(&mut self, instruction: u32) {
        self.bytes.extend(instruction.to_le_bytes());
    }

    /// A load or a store, of `1 << scale` bytes, of a register's number.
    fn transfer(&mut self, bits: u32, scale: u32, register: u8, (base, distance): (Gpr, i32)) {
        // The distance is a number of elements, if there is a bit pattern for it; else it is added before.
        let number = u32::try_from(distance).ok().filter(|distance| distance.trailing_zeros() >= scale);
        let number = number.map(|distance| distance >> scale).filter(|&number| number < 1 << 12);
        let base = if number.is_none() {
            self.constant(STEP_ADDRESS, i64::from(distance) as u64);
            self.integer(Integer::Add, Size::Eight, STEP_ADDRESS, Operand::Gpr(base));
            STEP_ADDRESS
        } else {
            base
        };
        // The size of a vector is not among those of four that two bits name.
        let size = (scale & 3) << 30;
        let number = number.unwrap_or(0) << 10;
        self.instruction(0x3900_0000 | bits | size | number | registers(register, base.0, 0));
    }

    /// An operand in a register, which is `STEP` if the operand is not in a general register.
    fn in_register(&mut self, operand: Operand) -> u8 {
        if let Operand::Gpr(register) = operand {
            return register.0;
        }
        self.load(STEP, operand);
        STEP.0
    }

    /// An operand in a register of floats, which is `STEP_FLOAT` if the operand is not in one.
    fn in_float_register(&mut self, operand: Operand) -> u8 {
        if let Operand::Fpr(register) = operand {
            return register.0;
        }
        self.load_float(STEP_FLOAT, operand);
        STEP_FLOAT.0
    }

    // Functions.

    /// The begin of a function that calls others.
    pub(in crate::graph) fn save_registers(&mut self) {
        for [first, second] in SAVED {
            // STP, to 16 bytes below the stack pointer, which moves there.
            self.instruction(0xa9bf_0000 | u32::from(second.0) << 10 | registers(first.0, STACK.0, 0));
        }
    }

    /// The end of a function, before it returns.
    pub(in crate::graph) fn restore_registers(&mut self) {
        for [first, second] in SAVED.into_iter().rev() {
            // LDP, from the stack pointer, which moves 16 bytes up.
            self.instruction(0xa8c1_0000 | u32::from(second.0) << 10 | registers(first.0, STACK.0, 0));
        }
    }

    /// Calls the function whose address is in a register.
    pub(in crate::graph) fn call(&mut self, register: Gpr) {
        self.instruction(0xd63f_0000 | registers(0, register.0, 0));
    }

    pub(in crate::graph) fn return_(&mut self) {
        self.instruction(0xd65f_0000 | registers(0, LINK.0, 0));
    }

    // Jumps.

    pub(in crate::graph) fn jump(&mut self, label: Label) {
        self.jumps.push((self.bytes.len(), label));
        self.instruction(B);
    }

    pub(in crate::graph) fn jump_if(&mut self, condition: Condition, label: Label) {
        self.jumps.push((self.bytes.len(), label));
        self.instruction(0x5400_0000 | condition.code());
    }

    /// Jumps to the address in a register.
    pub(in crate::graph) fn jump_to(&mut self, register: Gpr) {
        self.instruction(0xd61f_0000 | registers(0, register.0, 0));
    }

    // Integers.

    /// Eight bytes to a register.
    pub(in crate::graph) fn load(&mut self, to: Gpr, from: Operand) {
        match from {
            Operand::Gpr(from) if from == to => {}
            Operand::Gpr(_) => self.load_unsigned(8, to, from),
            Operand::Fpr(from) => self.instruction(0x9e66_0000 | registers(to.0, from.0, 0)),
            Operand::Memory(base, distance) => self.transfer(LOAD, 3, to.0, (base, distance)),
        }
    }

    /// An integer of some bytes to a register, filled with zeros.
    pub(in crate::graph) fn load_unsigned(&mut self, bytes: usize, to: Gpr, from: Operand) {
        let from = match from {
            Operand::Memory(base, distance) => {
                return self.transfer(LOAD, bytes.ilog2(), to.0, (base, distance));
            }
            _ => self.in_register(from),
        };
        self.instruction(match bytes {
            // UXTB, UXTH, and ORR with zero.
            1 => 0x5300_1c00 | registers(to.0, from, 0),
            2 => 0x5300_3c00 | registers(to.0, from, 0),
            4 => 0x2a00_0000 | registers(to.0, ZERO.0, from),
            _ => 0xaa00_0000 | registers(to.0, ZERO.0, from),
        });
    }

    /// An integer of some bytes to a register, filled with copies of the sign.
    pub(in crate::graph) fn load_signed(&mut self, bytes: usize, to: Gpr, from: Operand) {
        match (bytes, from) {
            (8, _) => self.load(to, from),
            (_, Operand::Memory(base, distance)) => {
                self.transfer(LOAD_SIGNED, bytes.ilog2(), to.0, (base, distance));
            }
            _ => {
                let from = self.in_register(from);
                // SXTB, SXTH or SXTW.
                let last_bit = 8 * bytes as u32 - 1;
                self.instruction(0x9340_0000 | last_bit << 10 | registers(to.0, from, 0));
            }
        }
    }

    pub(in crate::graph) fn store(&mut self, bytes: usize, to: (Gpr, i32), from: Gpr) {
        self.transfer(STORE, bytes.ilog2(), from.0, to);
    }

    /// A number to a register. Conditions stay.
    pub(in crate::graph) fn constant(&mut self, to: Gpr, value: u64) {
        // MOVZ of 16 bits, or MOVN of what is not zero but one in all bits before them; then MOVK of others.
        let is_negative = (value as i64) < 0;
        let (first, filling) = if is_negative { (0x9280_0000, 0xffff) } else { (0xd280_0000, 0) };
        let parts = [0, 1, 2, 3].map(|part| (part, (value >> (16 * part)) as u32 & 0xffff));
        let mut parts = parts.into_iter().filter(|&(_, bits)| bits != filling);
        let (part, bits) = parts.next().unwrap_or((0, filling));
        let bits = if is_negative { bits ^ 0xffff } else { bits };
        self.instruction(first | part << 21 | bits << 5 | u32::from(to.0));
        for (part, bits) in parts {
            self.instruction(0xf280_0000 | part << 21 | bits << 5 | u32::from(to.0));
        }
    }

    pub(in crate::graph) fn integer(&mut self, op: Integer, size: Size, to: Gpr, from: Operand) {
        let from = self.in_register(from);
        let result = if let Integer::Compare = op { ZERO } else { to };
        self.instruction(op.opcode() | size.bits() | registers(result.0, to.0, from));
    }

    pub(in crate::graph) fn multiply(&mut self, size: Size, to: Gpr, from: Operand) {
        let from = self.in_register(from);
        self.instruction(0x1b00_7c00 | size.bits() | registers(to.0, to.0, from));
    }

    /// The product of a register and a number, of eight bytes.
    pub(in crate::graph) fn multiply_by(&mut self, to: Gpr, factor: i32) {
        self.constant(STEP, i64::from(factor) as u64);
        self.multiply(Size::Eight, to, Operand::Gpr(STEP));
    }

    /// Subtracts a number from a register of eight bytes.
    pub(in crate::graph) fn subtract_number(&mut self, to: Gpr, number: i32) {
        match u32::try_from(number) {
            Ok(number) if number < 1 << 12 => {
                self.instruction(0xf100_0000 | number << 10 | registers(to.0, to.0, 0));
            }
            _ => {
                self.constant(STEP, i64::from(number) as u64);
                // SUBS: as a comparison, but with a result.
                let compare = Integer::Compare.opcode() | EIGHT_BYTES;
                self.instruction(compare | registers(to.0, to.0, STEP.0));
            }
        }
    }

    /// Shifts eight bytes by the count in `OTHER_WORD`, modulo 64, to the left, or to the right with zeros.
    pub(in crate::graph) fn shift(&mut self, is_left: bool, to: Gpr) {
        let opcode = if is_left { 0x9ac0_2000 } else { 0x9ac0_2400 };
        self.instruction(opcode | registers(to.0, to.0, OTHER_WORD.0));
    }

    /// Compares the bits that two registers of eight bytes have in common with zero.
    pub(in crate::graph) fn test(&mut self, register: Gpr, other: Gpr) {
        self.instruction(0xea00_0000 | registers(ZERO.0, register.0, other.0));
    }

    /// Eight bytes to a register if a condition of integers holds.
    pub(in crate::graph) fn load_if(&mut self, condition: Condition, to: Gpr, from: Gpr) {
        self.instruction(0x9a80_0000 | condition.code() << 12 | registers(to.0, from.0, to.0));
    }

    /// One in a register if a condition holds, zero if not.
    pub(in crate::graph) fn set_if(&mut self, condition: Condition, to: Gpr) {
        // CSINC: zero, or one more than zero if the opposite condition does not hold.
        let opposite = condition.not().code();
        self.instruction(0x9a80_0400 | opposite << 12 | registers(to.0, ZERO.0, ZERO.0));
    }

    // Floats.

    /// The first eight bytes of a register of floats, with zeros after them, or all of another one.
    pub(in crate::graph) fn load_float(&mut self, to: Fpr, from: Operand) {
        match from {
            Operand::Fpr(from) if from == to => {}
            // ORR of a vector with itself.
            Operand::Fpr(from) => self.instruction(0x4ea0_1c00 | registers(to.0, from.0, from.0)),
            Operand::Gpr(from) => self.instruction(0x9e67_0000 | registers(to.0, from.0, 0)),
            Operand::Memory(base, distance) => self.transfer(OF_FLOATS | LOAD, 3, to.0, (base, distance)),
        }
    }

    /// One element, with zeros after it, from memory.
    pub(in crate::graph) fn load_element(&mut self, float: Float, to: Fpr, from: (Gpr, i32)) {
        self.transfer(OF_FLOATS | LOAD, float.bytes().ilog2(), to.0, from);
    }

    /// The first eight bytes of a register of floats to memory.
    pub(in crate::graph) fn store_float(&mut self, to: (Gpr, i32), from: Fpr) {
        self.transfer(OF_FLOATS | STORE, 3, from.0, to);
    }

    /// One element to memory.
    pub(in crate::graph) fn store_element(&mut self, float: Float, to: (Gpr, i32), from: Fpr) {
        self.transfer(OF_FLOATS | STORE, float.bytes().ilog2(), from.0, to);
    }

    /// An operation on one element.
    pub(in crate::graph) fn arithmetic(&mut self, op: Arithmetic, float: Float, to: Fpr, from: Operand) {
        let from = self.in_float_register(from);
        self.instruction(
            float.bits()
                | match op {
                    Arithmetic::Add => 0x1e20_2800 | registers(to.0, to.0, from),
                    Arithmetic::Subtract => 0x1e20_3800 | registers(to.0, to.0, from),
                    Arithmetic::Multiply => 0x1e20_0800 | registers(to.0, to.0, from),
                    Arithmetic::Divide => 0x1e20_1800 | registers(to.0, to.0, from),
                    Arithmetic::SquareRoot => 0x1e21_c000 | registers(to.0, from, 0),
                },
        );
    }

    /// The greater or the lesser of `to` and `other`: `to` if that is not a number; `other` if that is not a
    /// number, or if they are equal.
    pub(in crate::graph) fn extreme(&mut self, op: Extreme, float: Float, to: Fpr, other: Fpr) {
        let comparison = if op == Extreme::Max { Comparison::Greater } else { Comparison::Less };
        let condition = self.compare_floats(comparison, float, [to, other]);
        self.float_if(condition.code(), float, STEP_FLOAT, [to, other]);
        self.set_conditions(float, [to, to]);
        self.float_if(UNORDERED, float, to, [to, STEP_FLOAT]);
    }

    /// FCSEL: the first of two floats if a condition holds.
    fn float_if(&mut self, condition: u32, float: Float, to: Fpr, [yes, no]: [Fpr; 2]) {
        self.instruction(0x1e20_0c00 | float.bits() | condition << 12 | registers(to.0, yes.0, no.0));
    }

    /// FCMP. Where one float is not a number, none of the conditions but inequality holds.
    pub(super) fn set_conditions(&mut self, float: Float, [left, right]: [Fpr; 2]) {
        self.instruction(0x1e20_2000 | float.bits() | registers(0, left.0, right.0));
    }

    /// A signed integer of eight bytes as a float, with zeros after it.
    pub(in crate::graph) fn integer_to_float(&mut self, float: Float, to: Fpr, from: Gpr) {
        self.instruction(0x9e22_0000 | float.bits() | registers(to.0, from.0, 0));
    }

    /// A float of the type `from` as one of the other type, with zeros after it, in another register.
    pub(in crate::graph) fn float_to_float(&mut self, from: Float, to: Fpr, operand: Operand) {
        let operand = self.in_float_register(operand);
        let opcode = match from {
            Float::F32 => 0x1e22_c000,
            Float::F64 => 0x1e62_4000,
        };
        self.instruction(opcode | registers(to.0, operand, 0));
    }

    // Vectors.

    /// An operation on vectors of 16 bytes.
    pub(in crate::graph) fn vector_arithmetic(&mut self, op: Arithmetic, float: Float, to: Fpr, from: Fpr) {
        self.instruction(
            float.bits()
                | match op {
                    Arithmetic::Add => 0x4e20_d400 | registers(to.0, to.0, from.0),
                    Arithmetic::Subtract => 0x4ea0_d400 | registers(to.0, to.0, from.0),
                    Arithmetic::Multiply => 0x6e20_dc00 | registers(to.0, to.0, from.0),
                    Arithmetic::Divide => 0x6e20_fc00 | registers(to.0, to.0, from.0),
                    Arithmetic::SquareRoot => 0x6ea1_f800 | registers(to.0, from.0, 0),
                },
        );
    }

    /// The first element as all elements of a vector.
    pub(in crate::graph) fn repeat(&mut self, float: Float, register: Fpr) {
        let opcode = match float {
            Float::F32 => 0x4e04_0400,
            Float::F64 => 0x4e08_0400,
        };
        self.instruction(opcode | registers(register.0, register.0, 0));
    }

    /// A vector from memory.
    pub(in crate::graph) fn load_vector(&mut self, to: Fpr, from: (Gpr, i32)) {
        self.transfer(OF_FLOATS | OF_VECTORS | LOAD, 4, to.0, from);
    }

    /// A vector to memory.
    pub(in crate::graph) fn store_vector(&mut self, to: (Gpr, i32), from: Fpr) {
        self.transfer(OF_FLOATS | OF_VECTORS | STORE, 4, from.0, to);
    }
}
