//! The instructions on vectors of 16 bytes (NEON) with three operands.
//!
//! Reference: Arm Architecture Reference Manual for A-profile architecture, section C7.2 (the SIMD and
//! floating-point instructions that the functions name).

use super::super::{
    Assembler, Comparison, Element, ElementOperation, Extreme, Float, Fpr, Gpr, Operand, Sign,
    float_registers,
};
use super::{LOAD, OF_FLOATS, OF_VECTORS, registers};

/// The number of bytes in a vector.
pub(in crate::graph) const WIDE_BYTES: usize = 16;

/// The registers of vectors that a function may use.
pub(in crate::graph) const WIDE_REGISTERS: [Fpr; 22] = float_registers(0);

/// Registers for addresses.
pub(in crate::graph) const POINTERS: [Gpr; 12] =
    [Gpr(3), Gpr(4), Gpr(5), Gpr(6), Gpr(7), Gpr(8), Gpr(9), Gpr(10), Gpr(11), Gpr(12), Gpr(13), Gpr(14)];

/// The number of these that a function need not leave as they were: all.
pub(in crate::graph) const UNSAVED_POINTERS: usize = POINTERS.len();

// The registers of the loop of a function on vectors: its arguments, and the distance of the next vectors.
pub(in crate::graph) const POINTER_MEMORY: Gpr = Gpr(0);
pub(in crate::graph) const ALL_BYTES: Gpr = Gpr(1);
pub(in super::super) const DISTANCE: Gpr = Gpr(2);

// The registers for the steps of an instruction that takes several.
const STEP: Fpr = Fpr(30);
const OTHER_STEP: Fpr = Fpr(31);

/// The bit of a load or a store at an address and a register's distance.
const BY_REGISTER: u32 = 0x3820_6800;

/// Whether this processor has the instructions.
pub(in crate::graph) fn has_wide_vectors() -> bool {
    true
}

impl Assembler {
    fn wide(&mut self, opcode: u32, Fpr(to): Fpr, [Fpr(left), Fpr(right)]: [Fpr; 2]) {
        self.instruction(opcode | registers(to, left, right));
    }

    /// An instruction on one vector.
    fn wide_of_one(&mut self, opcode: u32, Fpr(to): Fpr, Fpr(from): Fpr) {
        self.instruction(opcode | registers(to, from, 0));
    }

    /// Ends the use of vectors: nothing, on this processor.
    pub(in crate::graph) fn end_wide(&mut self) {}

    // Memory.

    /// The next vector at an address.
    pub(in crate::graph) fn wide_load(&mut self, to: Fpr, from: Gpr) {
        let bits = BY_REGISTER | OF_FLOATS | OF_VECTORS | LOAD;
        self.instruction(bits | registers(to.0, from.0, DISTANCE.0));
    }

    /// A vector to the place of the next one at an address.
    pub(in crate::graph) fn wide_store(&mut self, to: Gpr, from: Fpr) {
        let bits = BY_REGISTER | OF_FLOATS | OF_VECTORS;
        self.instruction(bits | registers(from.0, to.0, DISTANCE.0));
    }

    /// The bytes at an address, one for each element, as integers of four bytes.
    pub(in crate::graph) fn wide_load_bytes(&mut self, to: Fpr, from: Gpr) {
        // LDR of four bytes, USHLL to eight and to sixteen.
        self.instruction(0xbd40_0000 | registers(to.0, from.0, 0));
        self.wide_of_one(0x2f08_a400, to, to);
        self.wide_of_one(0x2f10_a400, to, to);
    }

    /// Truths of elements of four bytes as bytes, ones or zeros, to an address.
    pub(in crate::graph) fn wide_store_truths(&mut self, to: Gpr, from: Fpr) {
        // USHR by 31 bits, XTN to eight bytes and to four, STR.
        self.wide_of_one(0x6f21_0400, STEP, from);
        self.wide_of_one(0x0e61_2800, STEP, STEP);
        self.wide_of_one(0x0e21_2800, STEP, STEP);
        self.instruction(0xbd00_0000 | registers(STEP.0, to.0, 0));
    }

    /// A number in all elements.
    pub(in crate::graph) fn wide_number(&mut self, element: Element, to: Fpr, from: (Gpr, i32)) {
        let float = if element.bytes() == 4 { Float::F32 } else { Float::F64 };
        self.load_element(float, to, from);
        self.repeat(float, to);
    }

    /// The count of a shift, of eight bytes in memory, as `wide_shift` takes it: to the left in each element.
    pub(in crate::graph) fn wide_count(&mut self, is_left: bool, to: Fpr, from: (Gpr, i32)) {
        self.wide_number(Element::Unsigned, to, from);
        if !is_left {
            // NEG.
            self.wide_of_one(0x6ea0_b800, to, to);
        }
    }

    // Elements.

    /// An operation on two vectors.
    pub(in crate::graph) fn wide_operation(
        &mut self,
        op: ElementOperation,
        element: Element,
        to: Fpr,
        operands: [Fpr; 2],
    ) {
        let of_floats = |opcode: u32| match element {
            Element::Float(float) => Some(opcode | float.bits()),
            _ => None,
        };
        let opcode = match op {
            ElementOperation::Add => of_floats(0x4e20_d400).unwrap_or(0x4ea0_8400),
            ElementOperation::Subtract => of_floats(0x4ea0_d400).unwrap_or(0x6ea0_8400),
            ElementOperation::Multiply => of_floats(0x6e20_dc00).unwrap_or(0x4ea0_9c00),
            ElementOperation::Divide => of_floats(0x6e20_fc00).unwrap_or(0x6e20_fc00),
            ElementOperation::And => 0x4e20_1c00,
            ElementOperation::Or => 0x4ea0_1c00,
            ElementOperation::Xor => 0x6e20_1c00,
        };
        self.wide(opcode, to, operands);
    }

    /// The square roots of floats.
    pub(in crate::graph) fn wide_square_root(&mut self, float: Float, to: Fpr, from: Fpr) {
        self.wide_of_one(0x6ea1_f800 | float.bits(), to, from);
    }

    /// Floats with other signs.
    pub(in crate::graph) fn wide_sign(&mut self, sign: Sign, float: Float, to: Fpr, from: Fpr) {
        // FNEG or FABS.
        let opcode = if sign == Sign::Negate { 0x6ea0_f800 } else { 0x4ea0_f800 };
        self.wide_of_one(opcode | float.bits(), to, from);
    }

    /// Unsigned integers, shifted by the count that `wide_count` has loaded.
    pub(in crate::graph) fn wide_shift(&mut self, _is_left: bool, to: Fpr, from: Fpr, count: Fpr) {
        // USHL.
        self.wide(0x6ea0_4400, to, [from, count]);
    }

    /// Ones in all bits of the elements for which a comparison is true, zeros in others.
    pub(in crate::graph) fn wide_comparison(
        &mut self,
        comparison: Comparison,
        element: Element,
        to: Fpr,
        [left, right]: [Fpr; 2],
    ) {
        let (comparison, operands) = match comparison {
            Comparison::Less => (Comparison::Greater, [right, left]),
            Comparison::LessOrEqual => (Comparison::GreaterOrEqual, [right, left]),
            other => (other, [left, right]),
        };
        let opcode = match (comparison, element) {
            (Comparison::Greater, Element::Float(float)) => 0x6ea0_e400 | float.bits(),
            (Comparison::GreaterOrEqual, Element::Float(float)) => 0x6e20_e400 | float.bits(),
            (_, Element::Float(float)) => 0x4e20_e400 | float.bits(),
            (Comparison::Greater, Element::Signed) => 0x4ea0_3400,
            (Comparison::Greater, Element::Unsigned) => 0x6ea0_3400,
            (Comparison::GreaterOrEqual, Element::Signed) => 0x4ea0_3c00,
            (Comparison::GreaterOrEqual, Element::Unsigned) => 0x6ea0_3c00,
            _ => 0x6ea0_8c00,
        };
        self.wide(opcode, to, operands);
        if comparison == Comparison::NotEqual {
            // MVN.
            self.wide_of_one(0x6e20_5800, to, to);
        }
    }

    /// Ones in all bits of the integers that are not zero.
    pub(in crate::graph) fn wide_truths(&mut self, to: Fpr, from: Fpr) {
        // CMTST.
        self.wide(0x4ea0_8c00, to, [from, from]);
    }

    /// The elements of `yes` where a comparison was true, those of `no` elsewhere.
    pub(in crate::graph) fn wide_select(
        &mut self,
        _element: Element,
        to: Fpr,
        truth: Fpr,
        operands: [Fpr; 2],
    ) {
        // BSL, which replaces what it selects by.
        self.load_float(OTHER_STEP, Operand::Fpr(truth));
        self.wide(0x6e60_1c00, OTHER_STEP, operands);
        self.load_float(to, Operand::Fpr(OTHER_STEP));
    }

    /// The greater or the lesser elements. Of floats, those of `right` that are not numbers; else those of `left`
    /// that are not numbers or that are equal.
    pub(in crate::graph) fn wide_extreme(
        &mut self,
        op: Extreme,
        element: Element,
        to: Fpr,
        [left, right]: [Fpr; 2],
    ) {
        let is_max = op == Extreme::Max;
        let opcode = match element {
            Element::Float(_) => {
                let comparison = if is_max { Comparison::Greater } else { Comparison::Less };
                self.wide_comparison(comparison, element, STEP, [right, left]);
                self.wide_select(element, STEP, STEP, [right, left]);
                self.wide_comparison(Comparison::Equal, element, OTHER_STEP, [right, right]);
                return self.wide_select(element, to, OTHER_STEP, [STEP, right]);
            }
            Element::Signed => {
                if is_max {
                    0x4ea0_6400
                } else {
                    0x4ea0_6c00
                }
            }
            Element::Unsigned => {
                if is_max {
                    0x6ea0_6400
                } else {
                    0x6ea0_6c00
                }
            }
        };
        self.wide(opcode, to, [left, right]);
    }

    /// Signed integers as floats of four bytes.
    pub(in crate::graph) fn wide_to_floats(&mut self, to: Fpr, from: Fpr) {
        self.wide_of_one(0x4e21_d800, to, from);
    }
}
