//! Vector kernels: members of a cluster that machine code computes together.
//!
//! Problem: each member of a cluster reads its operands from the cache and writes its result there, which takes
//! longer than to add or to multiply. Technique: members in a row that have an instruction of the processor
//! become one loop, in which the values of the next few elements go from member to member in vector registers;
//! only results that something else reads are written. Results have the bits that the kernels of the members
//! give. Limits: floats and integers of 32 bits, and f64; beside elements of 32 bits bytes, which are truths that are
//! read or written, or numbers that are read.

mod code;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use self::code::{Code, Elements, MAX_ARRAYS, VECTOR_BYTES};
use super::super::machine_code;
use super::super::machine_code::processor::{
    Comparison, Element, ElementOperation, Extreme, Float, Sign, has_wide_vectors,
};
use super::super::operand::word;
use super::super::rows::{Extent, InputRows, copies_of_row, repeat_elements};
use super::registers::Registers;
use super::{Call, Cluster, Member, MemberOperand, Register, misplaced};
use crate::cost::{
    Cost, MIN_KERNEL_VECTORS, MIN_UNEVEN_KERNEL_VECTORS, VECTOR_BYTE_COST, VECTOR_DIVISION_BYTE_COST,
};
use crate::exec::elementwise::scratch::{aligned, take};
use crate::ops::binary::BinaryOp;
use crate::ops::unary::{UnaryOp, is_fast};
use crate::{DType, Error, Kind};

/// The maximum number of members of a kernel.
const MAX_MEMBERS: usize = 64;

/// The number of bytes of an element beside which bytes are truths or numbers.
const TRUTH_BYTES: usize = 4;

/// The number of ends that are tried for a kernel one by one; then its length is halved.
const MAX_TRIED_ENDS: usize = 8;

/// Members of a cluster that are computed together.
#[derive(Clone, Debug)]
pub(in crate::graph) struct VectorKernel {
    members: Range<usize>,
    arrays: Box<[Array]>,
    numbers: Box<[Number]>,
    /// The number of elements in a row of each array.
    elements: usize,
    /// The number of bytes in an element.
    width: usize,
    /// The number of rows of a call; `None` for all.
    call_rows: Option<usize>,
    /// The inputs that are read in runs, with their rows.
    runs: Vec<(Register, InputRows)>,
    code: Arc<Code>,
    /// The cost of the instructions for a byte of an element.
    byte_cost: Cost,
}

/// An array that a kernel reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Array {
    register: Register,
    rows: ArrayRows,
    is_written: bool,
    /// Whether elements are bytes.
    has_bytes: bool,
}

/// The rows of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArrayRows {
    /// Those of the register.
    Each,
    /// One row for all.
    Same,
    /// Copies of the one element that each row of the register has: rows are too short for a call each.
    Repeated,
}

/// A number that a kernel reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    /// The number one.
    One(Element),
    /// What is true for all elements.
    True,
    /// A byte as a truth, one for each row or for all.
    Truth { register: Register, has_rows: bool },
    /// A number of some bytes, one for each row or for all.
    Operand { register: Register, width: usize, has_rows: bool },
    /// The count of a shift.
    Count { register: Register, width: usize, is_left: bool },
}

/// What a kernel computes of each element.
#[derive(Debug, Default)]
struct Formula {
    /// For each array, whether it is written.
    written: Vec<bool>,
    /// For each array, whether it has bytes.
    has_bytes: Vec<bool>,
    /// The number of numbers.
    numbers: usize,
    instructions: Vec<Instruction>,
}

#[derive(Debug)]
struct Instruction {
    operation: Operation,
    element: Element,
    operands: SmallVec<[Operand; 3]>,
    /// The array that the value is written to.
    stored: Option<usize>,
}

impl Instruction {
    /// The cost for a byte of an element.
    fn byte_cost(&self) -> Cost {
        match self.operation {
            Operation::Arithmetic(ElementOperation::Divide) | Operation::SquareRoot(_) => {
                VECTOR_DIVISION_BYTE_COST
            }
            _ => VECTOR_BYTE_COST,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operand {
    Array(usize),
    Number(usize),
    /// The value of an instruction.
    Value(usize),
}

/// What an instruction computes.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Arithmetic(ElementOperation),
    Extreme(Extreme),
    /// Of the first operand, by a count.
    Shift {
        is_left: bool,
    },
    /// Gives a truth: ones or zeros in all bits.
    Compare(Comparison),
    /// A truth as one or zero, given the number one.
    NumberOfTruth,
    /// The second or the third operand, by a truth.
    Select,
    SquareRoot(Float),
    Sign(Sign, Float),
    /// Floats of four bytes from signed integers.
    ToFloats,
    /// Whether bytes are not zero.
    Truth,
}

impl VectorKernel {
    /// The kernels of a cluster, in the order of their members.
    pub(super) fn all(cluster: &Cluster) -> Vec<Self> {
        let mut kernels = Vec::new();
        if !machine_code::is_used() || !has_wide_vectors() {
            return kernels;
        }
        let mut first = 0;
        while first < cluster.members.len() {
            first = match Self::longest(cluster, first) {
                Some(kernel) => {
                    let end = kernel.members.end;
                    kernels.push(kernel);
                    end
                }
                None => first + 1,
            };
        }
        kernels
    }

    /// The kernel of as many members as possible, at least two, from one on.
    fn longest(cluster: &Cluster, first: usize) -> Option<Self> {
        let mut draft = Draft::new(cluster.rows, cluster.members.get(first)?);
        let members = cluster.members[first..].iter().take(MAX_MEMBERS);
        let is_result = |member: &Member| matches!(member.to, Register::Output(_));
        let count = members.take_while(|member| draft.add(member, is_result(member)).is_some()).count();
        let counts = (2..=count).rev().take(MAX_TRIED_ENDS);
        let halves = (1..).map(|shift| count >> shift).take_while(|&count| count >= 2);
        counts.chain(halves).find_map(|count| Self::new(cluster, first..first + count))
    }

    /// The kernel of some members, if they have one.
    fn new(cluster: &Cluster, members: Range<usize>) -> Option<Self> {
        let mut draft = Draft::new(cluster.rows, cluster.members.get(members.start)?);
        for at in members.clone() {
            let member = cluster.members.get(at)?;
            draft.add(member, is_read_later(cluster, at, members.end))?;
        }
        let Draft { elements, width, arrays, numbers, mut formula, call_rows, .. } = draft;
        let call_rows = call_rows.count(elements);
        // A row that is the same for all is read again: no earlier row may overwrite it. Numbers are copied before.
        let is_changed = |register: Register| {
            arrays.iter().any(|array: &Array| array.is_written && array.register == register)
        };
        if arrays.iter().any(|array| array.rows == ArrayRows::Same && is_changed(array.register)) {
            return None;
        }
        formula.written = arrays.iter().map(|array| array.is_written).collect();
        formula.has_bytes = arrays.iter().map(|array| array.has_bytes).collect();
        formula.numbers = numbers.len();
        let code = Arc::new(Code::new(&formula)?);
        let byte_cost = formula.instructions.iter().map(Instruction::byte_cost).sum();
        let (arrays, numbers, runs) = (arrays.into(), numbers.into(), Vec::new());
        Some(VectorKernel { members, arrays, numbers, elements, width, call_rows, runs, code, byte_cost })
    }

    /// Whether nothing else is read of a register than its rows.
    pub(super) fn reads_rows_alone(&self, register: Register) -> bool {
        self.arrays.iter().all(|array| array.register != register || array.rows == ArrayRows::Each)
            && self.numbers.iter().all(|number| number.register() != Some(register))
    }

    /// Whether one call computes all rows, without copies of elements.
    pub(super) fn is_one_call(&self) -> bool {
        let is_repeated = |array: &Array| array.rows == ArrayRows::Repeated;
        let has_rows = |number: &Number| {
            matches!(number, Number::Operand { has_rows: true, .. } | Number::Truth { has_rows: true, .. })
        };
        self.call_rows.is_none() && !self.arrays.iter().any(is_repeated) && !self.numbers.iter().any(has_rows)
    }

    /// Whether a result may be written over the rows of an input without a copy.
    pub(super) fn can_overwrite(&self, input: Register, output: Register) -> bool {
        let index = |register| self.arrays.iter().position(|array| array.register == register);
        self.reads_rows_alone(input)
            && matches!((index(input), index(output)), (Some(input), Some(output))
                if self.code.can_overwrite(input, output))
    }

    /// Reads the rows of an input where they are, one run of them after the other.
    pub(super) fn read_in_runs(&mut self, register: Register, rows: &InputRows) {
        if self.arrays.iter().any(|array| array.register == register) {
            self.runs.push((register, rows.clone()));
        }
    }

    /// The members, by their numbers.
    pub(in crate::graph) fn members(&self) -> Range<usize> {
        self.members.clone()
    }

    /// The registers of the cluster that are read or written.
    pub(super) fn registers(&self) -> impl Iterator<Item = Register> {
        let numbers = self.numbers.iter().filter_map(Number::register);
        self.arrays.iter().map(|array| array.register).chain(numbers)
    }

    /// The number of bytes that [`VectorKernel::run`] needs for copies of elements of some rows.
    pub(super) fn copied_bytes(&self, rows: usize) -> usize {
        let repeated = self.arrays.iter().filter(|array| array.rows == ArrayRows::Repeated).count();
        let numbers = self.numbers.iter().map(|number| match number {
            Number::Operand { width, has_rows: true, .. } => aligned(rows * width),
            Number::Truth { has_rows: true, .. } => aligned(rows * self.width),
            _ => 0,
        });
        repeated * aligned(rows * self.row_bytes()) + numbers.sum::<usize>()
    }

    /// The number of bytes of arrays that a row reads and writes.
    pub(super) fn array_bytes(&self) -> Cost {
        let advances = self.arrays.iter().filter(|array| array.rows != ArrayRows::Same);
        let bytes = advances.map(|array| self.elements * if array.has_bytes { 1 } else { self.width });
        bytes.sum::<usize>() as Cost
    }

    /// The cost of the instructions for a row.
    pub(super) fn instruction_cost(&self) -> Cost {
        self.byte_cost.saturating_mul(self.row_bytes() as Cost)
    }

    fn row_bytes(&self) -> usize {
        self.elements * self.width
    }

    /// Computes the members for some rows, given memory for copies of elements.
    pub(super) fn run(
        &self,
        rows: usize,
        registers: &mut Registers<'_>,
        mut memory: &mut [u8],
    ) -> Result<(), Error> {
        let repeated = self.repeated(rows, registers, &mut memory).ok_or_else(misplaced)?;
        let numbers = self.numbers.iter().map(|number| number.of(rows, registers, &mut memory));
        let numbers = numbers.collect::<Option<SmallVec<[_; 8]>>>().ok_or_else(misplaced)?;
        // What is written is taken out, so that the rest can be borrowed beside it.
        let written = self.arrays.iter().filter(|array| array.is_written);
        let mut taken: SmallVec<[&mut [u8]; 4]> = SmallVec::new();
        for array in written.clone() {
            taken.push(std::mem::take(registers.memory(array.register)?));
        }
        let computed = self.compute(rows, registers, (&repeated, &numbers), &mut taken);
        for (array, taken) in written.zip(taken) {
            *registers.memory(array.register)? = taken;
        }
        computed.ok_or_else(misplaced)
    }

    /// Copies of the elements of some rows, for each array that has such.
    fn repeated<'m>(
        &self,
        rows: usize,
        registers: &Registers<'_>,
        memory: &mut &'m mut [u8],
    ) -> Option<SmallVec<[&'m [u8]; 2]>> {
        let mut repeated = SmallVec::new();
        for array in self.arrays.iter().filter(|array| array.rows == ArrayRows::Repeated) {
            let width = if array.has_bytes { 1 } else { self.width };
            let copies = take(memory, rows * self.elements * width);
            let elements = registers.bytes(array.register).get(..rows * width)?;
            repeat_elements(width, elements, self.elements, copies);
            repeated.push(&*copies);
        }
        Some(repeated)
    }

    /// The number of the array that is written over an array without a copy.
    fn overwriting(&self, array: &Array, registers: &Registers<'_>) -> Option<usize> {
        let output = registers.overwriting(array.register)?;
        self.arrays.iter().position(|array| array.register == output)
    }

    /// Computes the rows of a block, those together that are adjacent in all inputs.
    fn compute(
        &self,
        rows: usize,
        registers: &Registers<'_>,
        (repeated, numbers): (&[&[u8]], &[code::Number<'_>]),
        written: &mut [&mut [u8]],
    ) -> Option<()> {
        let runs = self.runs.iter().map(|(register, rows)| Some((rows, registers.run(*register)?)));
        let runs = runs.collect::<Option<SmallVec<[_; 8]>>>()?;
        let mut first = 0;
        while first < rows {
            let adjacent = runs.iter().map(|(rows, run)| rows.rows_in_run(run.first + first));
            let count = adjacent.fold(rows - first, usize::min);
            let (mut repeated, mut written) = (repeated.iter(), written.iter_mut());
            let mut arrays: SmallVec<[code::Array<'_>; 8]> = SmallVec::new();
            for array in &self.arrays {
                let start = first * if array.has_bytes { self.elements } else { self.row_bytes() };
                let elements = if let Some(by) = self.overwriting(array, registers) {
                    Elements::Overwritten(by)
                } else if array.is_written {
                    Elements::Written(written.next()?.get_mut(start..)?)
                } else if array.rows == ArrayRows::Repeated {
                    Elements::Read(repeated.next()?.get(start..)?)
                } else if let Some(at) = self.runs.iter().position(|run| run.0 == array.register) {
                    let (rows, run) = &runs[at];
                    Elements::Read(run.bytes.get(rows.start(run.first + first)..)?)
                } else {
                    let start = if array.rows == ArrayRows::Same { 0 } else { start };
                    Elements::Read(registers.bytes(array.register).get(start..)?)
                };
                let (advances, has_bytes) = (array.rows != ArrayRows::Same, array.has_bytes);
                arrays.push(code::Array { elements, advances, has_bytes });
            }
            let numbers: SmallVec<[code::Number<'_>; 8]> =
                numbers.iter().map(|number| number.at_row(first)).collect();
            let call_rows = self.call_rows.unwrap_or(count);
            self.code.run(&mut arrays, &numbers, call_rows * self.row_bytes(), count * self.row_bytes())?;
            first += count;
        }
        Some(())
    }
}

/// Whether the result of a member of a kernel is read by something that is not in the kernel.
fn is_read_later(cluster: &Cluster, at: usize, end: usize) -> bool {
    let Some(&Member { to, .. }) = cluster.members.get(at) else { return true };
    let Register::Buffer(_) = to else { return true };
    if cluster.members[at + 1..end].iter().any(|later| later.to == to) {
        return false;
    }
    for later in &cluster.members[end..] {
        if later.operands.iter().any(|operand| operand.register == to) {
            return true;
        }
        if later.to == to {
            return false;
        }
    }
    cluster.folds.iter().any(|fold| fold.operand == to)
}

impl Number {
    fn register(&self) -> Option<Register> {
        match *self {
            Number::One(_) | Number::True => None,
            Number::Operand { register, .. }
            | Number::Count { register, .. }
            | Number::Truth { register, .. } => Some(register),
        }
    }

    /// The number of all calls, or copies of those of each, one for each row.
    fn of<'m>(
        &self,
        rows: usize,
        registers: &Registers<'_>,
        memory: &mut &'m mut [u8],
    ) -> Option<code::Number<'m>> {
        let read = |register, width| registers.bytes(register).get(..width).map(word);
        let bits = match *self {
            Number::One(Element::Float(Float::F32)) => 1_f32.to_bits().into(),
            Number::One(Element::Float(Float::F64)) => 1_f64.to_bits(),
            Number::One(_) => 1,
            Number::True => u64::MAX,
            Number::Operand { register, width, has_rows: true } => {
                let copies = take(memory, rows * width);
                copies.copy_from_slice(registers.bytes(register).get(..rows * width)?);
                return Some(code::Number::Each(copies, width));
            }
            Number::Operand { register, width, has_rows: false } => read(register, width)?,
            Number::Truth { register, has_rows: true } => {
                let width = TRUTH_BYTES;
                let copies = take(memory, rows * width);
                for (copy, &byte) in
                    copies.chunks_exact_mut(width).zip(registers.bytes(register).get(..rows)?)
                {
                    copy.fill(if byte == 0 { 0 } else { u8::MAX });
                }
                return Some(code::Number::Each(copies, width));
            }
            Number::Truth { register, has_rows: false } => {
                if read(register, 1)? == 0 {
                    0
                } else {
                    u64::MAX
                }
            }
            // All bits are shifted out by any larger count.
            Number::Count { register, width, .. } => read(register, width)?.min(63),
        };
        Some(code::Number::Same(bits))
    }
}

/// How a kernel reads an operand.
enum Reading {
    /// An array.
    Rows(ArrayRows),
    /// One number for each row, or for all.
    Number { has_rows: bool },
}

/// How many rows a call of a kernel computes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CallRows {
    All,
    /// As many as there are copies of the same row (`copies_of_row`).
    Copies,
    One,
}

impl CallRows {
    /// The number of rows of some elements; `None` for all.
    fn count(self, elements: usize) -> Option<usize> {
        match self {
            CallRows::All => None,
            CallRows::Copies => Some(copies_of_row(elements)),
            CallRows::One => Some(1),
        }
    }
}

/// A kernel to which members are added.
struct Draft {
    rows: usize,
    /// The number of elements in a row.
    elements: usize,
    /// The number of bytes in an element.
    width: usize,
    arrays: Vec<Array>,
    numbers: Vec<Number>,
    formula: Formula,
    call_rows: CallRows,
    /// The values of registers that members have written.
    values: HashMap<Register, usize>,
    /// The values that are truths.
    truths: Vec<usize>,
    /// The values of registers that are read as truths.
    read_truths: HashMap<Register, usize>,
}

impl Draft {
    /// A kernel without members, for rows as those of `member`.
    fn new(rows: usize, member: &Member) -> Self {
        Draft {
            rows,
            elements: member.elements,
            width: member
                .operands
                .iter()
                .map(|operand| operand.dtype)
                .chain([member.dtype])
                .map(DType::width)
                .max()
                .unwrap_or(0),
            arrays: Vec::new(),
            numbers: Vec::new(),
            formula: Formula::default(),
            call_rows: CallRows::All,
            values: HashMap::new(),
            truths: Vec::new(),
            read_truths: HashMap::new(),
        }
    }

    /// Has a call compute no more rows than these, if that is worth a call. Returns whether it is.
    fn limit(&mut self, call_rows: CallRows) -> bool {
        let call_rows = self.call_rows.max(call_rows);
        let rows = call_rows.count(self.elements).unwrap_or(self.rows).min(self.rows);
        let bytes = rows.saturating_mul(self.elements).saturating_mul(self.width);
        let least =
            if bytes.is_multiple_of(VECTOR_BYTES) { MIN_KERNEL_VECTORS } else { MIN_UNEVEN_KERNEL_VECTORS };
        let is_worth_a_call = bytes / VECTOR_BYTES >= least;
        if is_worth_a_call {
            self.call_rows = call_rows;
        }
        is_worth_a_call
    }

    /// Adds a member, if it has instructions. Its result is written if it is `stored`.
    fn add(&mut self, member: &Member, stored: bool) -> Option<()> {
        if member.elements != self.elements {
            return None;
        }
        let value = self.value(member)?;
        if stored {
            let array = match self.truths.contains(&value) {
                true if self.width == TRUTH_BYTES => self.bytes(member.to, ArrayRows::Each)?,
                true => return None,
                false => self.array(member.to, ArrayRows::Each)?,
            };
            self.arrays[array].is_written = true;
            self.formula.instructions[value].stored = Some(array);
        }
        self.values.insert(member.to, value);
        Some(())
    }

    /// The instructions of a member. Returns the number of the one that has its value.
    fn value(&mut self, member: &Member) -> Option<usize> {
        match (&member.call, &member.operands[..]) {
            (Call::Binary(op, _), [left, right]) => self.binary(*op, member.dtype, [left, right]),
            (Call::Unary(UnaryOp::LogicalNot, ..), [operand]) => {
                let operands = smallvec![Operand::Value(self.truth(operand)?), self.number(Number::True)];
                Some(self.logical(ElementOperation::Xor, operands))
            }
            (Call::Unary(op, math, _), [operand]) if operand.dtype == member.dtype => {
                self.unary(*op, is_fast(*op, *math, member.dtype, operand.dtype), operand)
            }
            (Call::Ternary("select", _), [truth, yes, no]) => {
                let element = self.element(member.dtype)?;
                let truth = Operand::Value(self.truth(truth)?);
                if yes.dtype != member.dtype || no.dtype != member.dtype {
                    return None;
                }
                let operands = smallvec![truth, self.operand(yes, element)?, self.operand(no, element)?];
                Some(self.push(Operation::Select, element, operands))
            }
            (Call::Ternary("clip", _), [x, min, max]) => {
                let element = self.element(member.dtype)?;
                if [x, min, max].iter().any(|operand| operand.dtype != member.dtype) {
                    return None;
                }
                let operands = smallvec![self.operand(min, element)?, self.operand(x, element)?];
                let raised = Operand::Value(self.push(Operation::Extreme(Extreme::Max), element, operands));
                let operands = smallvec![self.operand(max, element)?, raised];
                Some(self.push(Operation::Extreme(Extreme::Min), element, operands))
            }
            (Call::Convert, [from]) if from.dtype == member.dtype => {
                let element = self.element(member.dtype)?;
                let from = self.operand(from, element)?;
                let copy = Operation::Arithmetic(ElementOperation::Or);
                Some(self.push(copy, element, smallvec![from, from]))
            }
            (Call::Convert, [from]) => {
                let element = self.element(member.dtype)?;
                if let Some(truth) = self.known_truth(from) {
                    return Some(self.number_of_truth(truth, element));
                }
                if from.dtype == DType::U8 {
                    return self.number_of_byte(from, element);
                }
                if (from.dtype, element) != (DType::S32, Element::Float(Float::F32)) {
                    return None;
                }
                let from = self.operand(from, Element::Signed)?;
                Some(self.push(Operation::ToFloats, element, smallvec![from]))
            }
            _ => None,
        }
    }

    fn unary(&mut self, op: UnaryOp, is_fast: bool, operand: &MemberOperand) -> Option<usize> {
        let element = self.element(operand.dtype)?;
        let Element::Float(float) = element else { return None };
        let from = self.operand(operand, element)?;
        let operation = match op {
            UnaryOp::Negate => Operation::Sign(Sign::Negate, float),
            UnaryOp::Abs => Operation::Sign(Sign::Clear, float),
            UnaryOp::Sqrt => Operation::SquareRoot(float),
            UnaryOp::Rsqrt if is_fast => {
                let root = self.push(Operation::SquareRoot(float), element, smallvec![from]);
                let operands = smallvec![self.number(Number::One(element)), Operand::Value(root)];
                let divide = Operation::Arithmetic(ElementOperation::Divide);
                return Some(self.push(divide, element, operands));
            }
            _ => return None,
        };
        Some(self.push(operation, element, smallvec![from]))
    }

    /// A truth that is computed from others.
    fn logical(&mut self, op: ElementOperation, operands: SmallVec<[Operand; 3]>) -> usize {
        let float = if self.width == 4 { Float::F32 } else { Float::F64 };
        let truth = self.push(Operation::Arithmetic(op), Element::Float(float), operands);
        self.truths.push(truth);
        truth
    }

    fn binary(&mut self, op: BinaryOp, dtype: DType, [left, right]: [&MemberOperand; 2]) -> Option<usize> {
        use ElementOperation::{Add, And, Divide, Multiply, Or, Subtract, Xor};
        if let Some(comparison) = Comparison::of(op) {
            if left.dtype != right.dtype {
                return None;
            }
            let element = self.element(left.dtype)?;
            let operands = smallvec![self.operand(left, element)?, self.operand(right, element)?];
            let truth = self.push(Operation::Compare(comparison), element, operands);
            self.truths.push(truth);
            return Some(truth);
        }
        let logical = match op {
            BinaryOp::LogicalAnd => Some(And),
            BinaryOp::LogicalOr => Some(Or),
            BinaryOp::LogicalXor => Some(Xor),
            _ => None,
        };
        if let Some(op) = logical {
            let operands = smallvec![Operand::Value(self.truth(left)?), Operand::Value(self.truth(right)?)];
            return Some(self.logical(op, operands));
        }
        let element = self.element(dtype)?;
        if let BinaryOp::LeftShift | BinaryOp::RightShift = op {
            if element != Element::Unsigned || left.dtype != dtype {
                return None;
            }
            let is_left = op == BinaryOp::LeftShift;
            let operands = smallvec![self.operand(left, element)?, self.count(right, is_left)?];
            return Some(self.push(Operation::Shift { is_left }, element, operands));
        }
        let is_float = matches!(element, Element::Float(_));
        let operation = match op {
            BinaryOp::Add => Operation::Arithmetic(Add),
            BinaryOp::Subtract => Operation::Arithmetic(Subtract),
            BinaryOp::Multiply => Operation::Arithmetic(Multiply),
            BinaryOp::Divide if is_float => Operation::Arithmetic(Divide),
            BinaryOp::BitwiseAnd if !is_float => Operation::Arithmetic(And),
            BinaryOp::BitwiseOr if !is_float => Operation::Arithmetic(Or),
            BinaryOp::BitwiseXor if !is_float => Operation::Arithmetic(Xor),
            BinaryOp::Max => Operation::Extreme(Extreme::Max),
            BinaryOp::Min => Operation::Extreme(Extreme::Min),
            _ => return None,
        };
        let operands = smallvec![self.term(left, dtype, element)?, self.term(right, dtype, element)?];
        Some(self.push(operation, element, operands))
    }

    /// An operand of arithmetic: of the result's type, or a truth as a number of it.
    fn term(&mut self, operand: &MemberOperand, dtype: DType, element: Element) -> Option<Operand> {
        if let Some(truth) = self.known_truth(operand) {
            return Some(Operand::Value(self.number_of_truth(truth, element)));
        }
        if operand.dtype == DType::U8 {
            return self.number_of_byte(operand, element).map(Operand::Value);
        }
        if operand.dtype == dtype { self.operand(operand, element) } else { None }
    }

    /// The elements of a type, if they have instructions and are as wide as others.
    fn element(&self, dtype: DType) -> Option<Element> {
        let element = match dtype {
            DType::S32 => Element::Signed,
            DType::U32 => Element::Unsigned,
            _ => Element::Float(Float::of(dtype)?),
        };
        (element.bytes() == self.width).then_some(element)
    }

    /// The value of an operand that is a truth, computed or read.
    fn truth(&mut self, operand: &MemberOperand) -> Option<usize> {
        let MemberOperand { register, dtype, .. } = *operand;
        if let Some(truth) = self.known_truth(operand) {
            return Some(truth);
        }
        if dtype != DType::U8 || self.width != TRUTH_BYTES || self.values.contains_key(&register) {
            return None;
        }
        if let Some(&truth) = self.read_truths.get(&register) {
            return Some(truth);
        }
        let operand = match self.reading(operand)? {
            Reading::Number { has_rows } => self.number(Number::Truth { register, has_rows }),
            Reading::Rows(rows) => Operand::Array(self.bytes(register, rows)?),
        };
        // A number is a truth as it is.
        let (operation, operands) = match operand {
            Operand::Array(_) => (Operation::Truth, smallvec![operand]),
            number => (Operation::Arithmetic(ElementOperation::Or), smallvec![number, number]),
        };
        let truth = self.push(operation, Element::Signed, operands);
        self.truths.push(truth);
        self.read_truths.insert(register, truth);
        Some(truth)
    }

    /// The value of an operand that is a truth which a member has computed.
    fn known_truth(&self, operand: &MemberOperand) -> Option<usize> {
        let value = *self.values.get(&operand.register)?;
        let is_truth = self.truths.contains(&value) && operand.dtype == DType::U8;
        (is_truth && self.is_row(operand)).then_some(value)
    }

    /// The value of a byte that is read, as a number.
    fn number_of_byte(&mut self, operand: &MemberOperand, element: Element) -> Option<usize> {
        if self.width != TRUTH_BYTES || self.values.contains_key(&operand.register) {
            return None;
        }
        let Reading::Rows(rows) = self.reading(operand)? else { return None };
        let byte = Operand::Array(self.bytes(operand.register, rows)?);
        Some(match element {
            Element::Float(_) => self.push(Operation::ToFloats, element, smallvec![byte]),
            _ => self.push(Operation::Arithmetic(ElementOperation::Or), element, smallvec![byte, byte]),
        })
    }

    fn number_of_truth(&mut self, truth: usize, element: Element) -> usize {
        let one = self.number(Number::One(element));
        self.push(Operation::NumberOfTruth, element, smallvec![Operand::Value(truth), one])
    }

    /// Whether each row of an operand has all elements.
    fn is_row(&self, operand: &MemberOperand) -> bool {
        operand.extent == Extent::Row || operand.extent == Extent::Element && self.elements == 1
    }

    /// An operand of some elements.
    fn operand(&mut self, operand: &MemberOperand, element: Element) -> Option<Operand> {
        let MemberOperand { register, dtype, .. } = *operand;
        if dtype.width() != element.bytes() {
            return None;
        }
        if let Some(&value) = self.values.get(&register) {
            let is_number = !self.truths.contains(&value);
            return (is_number && self.is_row(operand)).then_some(Operand::Value(value));
        }
        match self.reading(operand)? {
            Reading::Number { has_rows } => {
                Some(self.number(Number::Operand { register, width: dtype.width(), has_rows }))
            }
            Reading::Rows(rows) => self.array(register, rows).map(Operand::Array),
        }
    }

    /// How an operand that no member has computed is read, if that is worth a call of some rows.
    fn reading(&mut self, operand: &MemberOperand) -> Option<Reading> {
        if self.is_row(operand) {
            return Some(Reading::Rows(ArrayRows::Each));
        }
        let one_element = self.elements == 1;
        match operand.extent {
            Extent::SameRow | Extent::BlockRow if !one_element => {
                let has_copies = matches!(operand.register, Register::Input(_));
                let is_worth_it = self.limit(if has_copies { CallRows::Copies } else { CallRows::One });
                is_worth_it.then_some(Reading::Rows(ArrayRows::Same))
            }
            Extent::Element if self.limit(CallRows::One) => Some(Reading::Number { has_rows: true }),
            Extent::Element => Some(Reading::Rows(ArrayRows::Repeated)),
            _ => Some(Reading::Number { has_rows: false }),
        }
    }

    /// The count of a shift: an unsigned number.
    fn count(&mut self, operand: &MemberOperand, is_left: bool) -> Option<Operand> {
        let MemberOperand { register, dtype, extent } = *operand;
        let is_unsigned = dtype.kind() == Kind::Unsigned && !dtype.is_packed();
        if !is_unsigned || extent != Extent::SameElement || self.values.contains_key(&register) {
            return None;
        }
        let width = dtype.width();
        Some(self.number(Number::Count { register, width, is_left }))
    }

    /// The number of an array of elements.
    fn array(&mut self, register: Register, rows: ArrayRows) -> Option<usize> {
        self.array_of(register, rows, false)
    }

    /// The number of an array of bytes.
    fn bytes(&mut self, register: Register, rows: ArrayRows) -> Option<usize> {
        self.array_of(register, rows, true)
    }

    /// The number of an array. One whose register has elements of another width would be overwritten by it.
    fn array_of(&mut self, register: Register, rows: ArrayRows, has_bytes: bool) -> Option<usize> {
        let mut of_register = self.arrays.iter().filter(|array| array.register == register);
        if of_register.any(|array| array.has_bytes != has_bytes) {
            return None;
        }
        let mut arrays = self.arrays.iter();
        if let Some(known) = arrays.position(|array| array.register == register && array.rows == rows) {
            return Some(known);
        }
        if self.arrays.len() == MAX_ARRAYS {
            return None;
        }
        self.arrays.push(Array { register, rows, is_written: false, has_bytes });
        Some(self.arrays.len() - 1)
    }

    fn number(&mut self, number: Number) -> Operand {
        let known = self.numbers.iter().position(|known| *known == number);
        Operand::Number(known.unwrap_or_else(|| {
            self.numbers.push(number);
            self.numbers.len() - 1
        }))
    }

    fn push(&mut self, operation: Operation, element: Element, operands: SmallVec<[Operand; 3]>) -> usize {
        self.formula.instructions.push(Instruction { operation, element, operands, stored: None });
        self.formula.instructions.len() - 1
    }
}
