//! The machine code of a vector kernel.
//!
//! Problem: the values of a kernel are in registers of the processor, of which there are few. Technique: the
//! instructions are in order, so that a register is free again after the last instruction that reads its value
//! (linear scan, Poletto and Sarkar 1999). Numbers that don't change have registers of their own as long as
//! there are some left; others are loaded where they are read. Limits: a kernel with more values than registers
//! has no code; it is divided.

#![allow(unsafe_code, reason = "calls machine code with the addresses of what it reads and writes")]

use std::ops::Range;

use smallvec::SmallVec;

use super::super::super::machine_code::executable::{self, Executable};
use super::super::super::machine_code::processor::{
    self, Assembler, Condition, ElementOperation, Fpr, Gpr, POINTER_MEMORY, POINTERS, UNSAVED_POINTERS,
    WIDE_BYTES, WIDE_REGISTERS,
};
use super::super::super::operand::word;
use super::{Formula, Instruction, Operand, Operation};

/// The number of bytes in a vector.
pub(super) const VECTOR_BYTES: usize = WIDE_BYTES;

/// The maximum number of arrays that a kernel reads and writes.
pub(super) const MAX_ARRAYS: usize = POINTERS.len();

/// A function that computes a formula for all elements of arrays.
#[derive(Debug)]
pub(super) struct Code {
    executable: Executable,
    /// For each array, whether it is written.
    written: Box<[bool]>,
    /// For each array, whether it has bytes.
    has_bytes: Box<[bool]>,
    /// The number of numbers.
    numbers: usize,
    /// Whether elements may be computed twice: no array is read that is written.
    repeats: bool,
    /// For each array, the number of the last instruction that reads it.
    last_reads: Box<[Option<usize>]>,
    /// For each array, the number of the first instruction that writes it.
    writes: Box<[Option<usize>]>,
}

impl Code {
    /// `None` if there are too few registers, or no memory for instructions.
    pub(super) fn new(formula: &Formula) -> Option<Self> {
        // What is left of the registers is for numbers.
        let Translator { assembler, .. } = Translator::new(formula, formula.numbers).or_else(|| {
            let without_numbers = Translator::new(formula, 0)?;
            Translator::new(formula, WIDE_REGISTERS.len() - without_numbers.most)
        })?;
        let executable = Executable::new(&assembler.finish()?)?;
        let mut operands = formula.instructions.iter().flat_map(|instruction| &instruction.operands);
        let repeats = !operands.any(|operand| match *operand {
            Operand::Array(array) => formula.written.get(array) == Some(&true),
            _ => false,
        });
        let (written, has_bytes) = (formula.written.as_slice().into(), formula.has_bytes.as_slice().into());
        let arrays = 0..formula.written.len();
        let reads = |array: usize| {
            let reads = |instruction: &Instruction| instruction.operands.contains(&Operand::Array(array));
            formula.instructions.iter().rposition(reads)
        };
        let writes = |array: usize| {
            formula.instructions.iter().position(|instruction| instruction.stored == Some(array))
        };
        let (last_reads, writes) = (arrays.clone().map(reads).collect(), arrays.map(writes).collect());
        Some(Code { executable, written, has_bytes, numbers: formula.numbers, repeats, last_reads, writes })
    }

    /// Whether an array may be written over another one, each element over that of the same number.
    pub(super) fn can_overwrite(&self, read: usize, written: usize) -> bool {
        let [is_byte, other_is_byte] = [read, written].map(|array| self.has_bytes.get(array));
        is_byte == other_is_byte
            && self.written.get(read) == Some(&false)
            && matches!((self.last_reads.get(read), self.writes.get(written)),
                (Some(Some(read)), Some(Some(write))) if read <= write)
    }

    /// Computes some bytes of each array, given the arrays and numbers of the formula, by calls for at most
    /// `call_bytes` of them; of arrays of bytes a quarter as many. `None` if the arrays and numbers are others.
    pub(super) fn run(
        &self,
        arrays: &mut [Array<'_>],
        numbers: &[Number<'_>],
        call_bytes: usize,
        bytes: usize,
    ) -> Option<()> {
        if bytes == 0 {
            return Some(());
        }
        let calls = bytes.div_ceil(call_bytes.max(1));
        let fits = |(array, &is_written): (&Array<'_>, &bool)| {
            let needed = array.place(if array.advances { bytes } else { call_bytes.min(bytes) });
            match &array.elements {
                Elements::Read(elements) => !is_written && elements.len() >= needed,
                Elements::Written(elements) => is_written && elements.len() >= needed,
                &Elements::Overwritten(by) => {
                    let by = arrays.get(by).filter(|by| matches!(by.elements, Elements::Written(_)));
                    !is_written
                        && by.is_some_and(|by| {
                            (by.advances, by.has_bytes) == (array.advances, array.has_bytes)
                        })
                }
            }
        };
        let overwrites = arrays.iter().any(|array| matches!(array.elements, Elements::Overwritten(_)));
        let repeats = self.repeats && !overwrites;
        let have_widths = arrays.iter().map(|array| array.has_bytes).eq(self.has_bytes.iter().copied());
        let have_numbers = numbers.iter().all(|number| match number {
            Number::Same(_) => true,
            Number::Each(bytes, width) => bytes.len() / width >= calls,
        });
        if arrays.len() != self.written.len()
            || numbers.len() != self.numbers
            || !arrays.iter().zip(&self.written).all(fits)
            || !have_numbers
            || !have_widths
        {
            return None;
        }
        let mut arguments: SmallVec<[u64; 20]> = SmallVec::from_elem(0, arrays.len() + numbers.len());
        for (argument, number) in arguments[arrays.len()..].iter_mut().zip(numbers) {
            if let Number::Same(bits) = number {
                *argument = *bits;
            }
        }
        let mut has_addresses = false;
        executable::begin();
        for call in 0..calls {
            let first = call * call_bytes;
            let length = call_bytes.min(bytes - first);
            if !has_addresses {
                for (argument, array) in arguments.iter_mut().zip(&mut *arrays) {
                    *argument = array.address(first);
                }
                for (index, array) in arrays.iter().enumerate().filter(|_| overwrites) {
                    if let Elements::Overwritten(by) = array.elements {
                        arguments[index] = arguments[by];
                    }
                }
                has_addresses = true;
            }
            for (argument, number) in arguments[arrays.len()..].iter_mut().zip(numbers) {
                if let Number::Each(bytes, width) = number {
                    *argument = word(&bytes[call * width..][..*width]);
                }
            }
            let whole = length / VECTOR_BYTES * VECTOR_BYTES;
            if whole > 0 {
                // SAFETY: the translator makes such a function. It reads as many arguments as the formula has, and
                // reads and writes the vectors of arrays up to `whole` bytes, a quarter of it where they have bytes,
                // which all of them have from these addresses on. What it writes is borrowed exclusively.
                unsafe { self.executable.call_wide(arguments.as_ptr(), whole) };
            }
            if whole < length {
                if whole > 0 && repeats {
                    // The last vector overlaps the one before.
                    let last = length - VECTOR_BYTES;
                    for (argument, array) in arguments.iter_mut().zip(&*arrays) {
                        *argument += array.place(last) as u64;
                    }
                    // SAFETY: as above, for the last vector of each array.
                    unsafe { self.executable.call_wide(arguments.as_ptr(), VECTOR_BYTES) };
                    for (argument, array) in arguments.iter_mut().zip(&*arrays) {
                        *argument -= array.place(last) as u64;
                    }
                } else {
                    self.run_last(arrays, &arguments[arrays.len()..], first, whole..length);
                    has_addresses = false;
                }
            }
            if call + 1 < calls {
                for (argument, array) in arguments.iter_mut().zip(&*arrays) {
                    *argument += if array.advances { array.place(call_bytes) as u64 } else { 0 };
                }
            }
        }
        Some(())
    }

    /// Computes elements that don't fill a vector, in vectors that have zeros after them.
    fn run_last(&self, arrays: &mut [Array<'_>], numbers: &[u64], first: usize, range: Range<usize>) {
        let place = |array: &Array<'_>| {
            let first = if array.advances { first } else { 0 };
            array.place(first + range.start)..array.place(first + range.end)
        };
        let mut vectors = [[0_u8; VECTOR_BYTES]; MAX_ARRAYS];
        for (vector, array) in vectors.iter_mut().zip(&*arrays) {
            let place = place(array);
            let bytes = match &array.elements {
                Elements::Read(bytes) => bytes,
                Elements::Written(bytes) => &**bytes,
                &Elements::Overwritten(by) => match &arrays[by].elements {
                    Elements::Written(bytes) => &**bytes,
                    _ => &[],
                },
            };
            vector[..place.len()].copy_from_slice(&bytes[place]);
        }
        let pointers = vectors.iter_mut().take(arrays.len()).map(|vector| vector.as_mut_ptr() as u64);
        let arguments: SmallVec<[u64; 20]> = pointers.chain(numbers.iter().copied()).collect();
        // SAFETY: as above, for one vector of each array.
        unsafe { self.executable.call_wide(arguments.as_ptr(), VECTOR_BYTES) };
        for (vector, array) in vectors.iter().zip(arrays) {
            let place = place(array);
            if let Elements::Written(bytes) = &mut array.elements {
                let length = place.len();
                bytes[place].copy_from_slice(&vector[..length]);
            }
        }
    }
}

/// An array of a formula.
pub(super) struct Array<'a> {
    pub(super) elements: Elements<'a>,
    /// Whether each call takes the next elements; if not, all take the first.
    pub(super) advances: bool,
    /// Whether elements are bytes, beside elements of four bytes.
    pub(super) has_bytes: bool,
}

/// The elements of an array.
pub(super) enum Elements<'a> {
    Read(&'a [u8]),
    /// Written, and perhaps read before.
    Written(&'a mut [u8]),
    /// Read where the array with this number is written.
    Overwritten(usize),
}

impl Array<'_> {
    /// The place of what is at some distance in other arrays.
    fn place(&self, distance: usize) -> usize {
        if self.has_bytes { distance / 4 } else { distance }
    }

    /// The address of the first element of a call that begins at a distance, if the array has memory of its own.
    fn address(&mut self, first: usize) -> u64 {
        let first = self.place(if self.advances { first } else { 0 });
        match &mut self.elements {
            Elements::Read(bytes) => bytes[first..].as_ptr() as u64,
            Elements::Written(bytes) => bytes[first..].as_mut_ptr() as u64,
            Elements::Overwritten(_) => 0,
        }
    }
}

/// A number of a formula.
pub(super) enum Number<'a> {
    /// The bits of the same number for all calls.
    Same(u64),
    /// The numbers of calls, of some bytes each.
    Each(&'a [u8], usize),
}

impl<'a> Number<'a> {
    /// The numbers of the calls from a row on, each of which computes one row.
    pub(super) fn at_row(&self, row: usize) -> Number<'a> {
        match *self {
            Number::Same(bits) => Number::Same(bits),
            Number::Each(bytes, width) => Number::Each(&bytes[row * width..], width),
        }
    }
}

/// Turns a formula into instructions of the processor.
struct Translator<'a> {
    assembler: Assembler,
    formula: &'a Formula,
    free: Vec<Fpr>,
    /// The most registers that were in use.
    most: usize,
    /// The registers of numbers that have some.
    pinned: Vec<Option<Fpr>>,
    /// The register of the value of each instruction so far.
    values: Vec<Option<Fpr>>,
    /// The last instruction that reads the value of each instruction.
    last_reads: Vec<usize>,
}

/// A register that an operand is in, and whether it is free after the instruction.
type Loaded = (Fpr, bool);

impl<'a> Translator<'a> {
    fn new(formula: &'a Formula, pinned: usize) -> Option<Self> {
        let mut last_reads: Vec<usize> = (0..formula.instructions.len()).collect();
        for (at, instruction) in formula.instructions.iter().enumerate() {
            for operand in &instruction.operands {
                if let Operand::Value(value) = *operand {
                    *last_reads.get_mut(value)? = at;
                }
            }
        }
        let mut translator = Translator {
            assembler: Assembler::default(),
            formula,
            free: WIDE_REGISTERS.iter().rev().copied().collect(),
            most: 0,
            pinned: vec![None; formula.numbers],
            values: Vec::new(),
            last_reads,
        };
        translator.function(pinned)?;
        Some(translator)
    }

    fn function(&mut self, pinned: usize) -> Option<()> {
        let formula = self.formula;
        let saves = formula.written.len() > UNSAVED_POINTERS;
        if saves {
            self.assembler.save_registers();
        }
        for (array, &pointer) in POINTERS.iter().take(formula.written.len()).enumerate() {
            let (base, distance) = argument(array);
            self.assembler.load(pointer, processor::Operand::Memory(base, distance));
        }
        for number in 0..formula.numbers.min(pinned) {
            let register = self.take()?;
            self.load_number(number, register)?;
            self.pinned[number] = Some(register);
        }
        self.assembler.begin_wide();
        let next = self.assembler.label();
        self.assembler.bind(next);
        for (at, instruction) in formula.instructions.iter().enumerate() {
            self.instruction(at, instruction)?;
        }
        for (&has_bytes, &pointer) in formula.has_bytes.iter().zip(&POINTERS) {
            if has_bytes {
                self.assembler.next_bytes(pointer);
            }
        }
        self.assembler.next_wide();
        self.assembler.jump_if(Condition::Below, next);
        self.assembler.end_wide();
        if saves {
            self.assembler.restore_registers();
        }
        self.assembler.return_();
        Some(())
    }

    fn take(&mut self) -> Option<Fpr> {
        let register = self.free.pop()?;
        self.most = self.most.max(WIDE_REGISTERS.len() - self.free.len());
        Some(register)
    }

    /// Loads a number as the operand of the instructions that read it.
    fn load_number(&mut self, number: usize, to: Fpr) -> Option<()> {
        let place = argument(self.formula.written.len() + number);
        let operand = Operand::Number(number);
        let mut readers = self.formula.instructions.iter();
        let reader = readers.find(|reader| reader.operands.contains(&operand))?;
        match reader.operation {
            Operation::Shift { is_left } if reader.operands.get(1) == Some(&operand) => {
                self.assembler.wide_count(is_left, to, place);
            }
            _ => self.assembler.wide_number(reader.element, to, place),
        }
        Some(())
    }

    fn operand(&mut self, at: usize, operand: Operand) -> Option<Loaded> {
        match operand {
            Operand::Value(value) => Some(((*self.values.get(value)?)?, self.last_reads[value] == at)),
            Operand::Number(number) => {
                if let Some(register) = *self.pinned.get(number)? {
                    return Some((register, false));
                }
                let register = self.take()?;
                self.load_number(number, register)?;
                Some((register, true))
            }
            Operand::Array(array) => {
                let (register, pointer) = (self.take()?, *POINTERS.get(array)?);
                match *self.formula.has_bytes.get(array)? {
                    true => self.assembler.wide_load_bytes(register, pointer),
                    false => self.assembler.wide_load(register, pointer),
                }
                Some((register, true))
            }
        }
    }

    fn instruction(&mut self, at: usize, instruction: &Instruction) -> Option<()> {
        let Instruction { operation, element, operands, stored } = instruction;
        let mut loaded: SmallVec<[Loaded; 3]> = SmallVec::new();
        for &operand in operands {
            loaded.push(self.operand(at, operand)?);
        }
        for (index, operand) in loaded.iter().enumerate() {
            // Several operands may be the same value.
            if operand.1 && !loaded[..index].contains(operand) {
                self.free.push(operand.0);
            }
        }
        let to = self.take()?;
        let assembler = &mut self.assembler;
        let registers = |index: usize| loaded.get(index).map(|operand| operand.0);
        let pair = || Some([registers(0)?, registers(1)?]);
        match *operation {
            Operation::Arithmetic(op) => assembler.wide_operation(op, *element, to, pair()?),
            Operation::Extreme(op) => assembler.wide_extreme(op, *element, to, pair()?),
            Operation::Shift { is_left } => {
                let [from, count] = pair()?;
                assembler.wide_shift(is_left, to, from, count);
            }
            Operation::Compare(comparison) => assembler.wide_comparison(comparison, *element, to, pair()?),
            Operation::NumberOfTruth => {
                assembler.wide_operation(ElementOperation::And, *element, to, pair()?);
            }
            Operation::Select => {
                let operands = [registers(1)?, registers(2)?];
                assembler.wide_select(*element, to, registers(0)?, operands);
            }
            Operation::SquareRoot(float) => assembler.wide_square_root(float, to, registers(0)?),
            Operation::Sign(sign, float) => assembler.wide_sign(sign, float, to, registers(0)?),
            Operation::ToFloats => assembler.wide_to_floats(to, registers(0)?),
            Operation::Truth => assembler.wide_truths(to, registers(0)?),
        }
        if let Some(array) = *stored {
            let pointer = *POINTERS.get(array)?;
            match *self.formula.has_bytes.get(array)? {
                true => self.assembler.wide_store_truths(pointer, to),
                false => self.assembler.wide_store(pointer, to),
            }
        }
        if self.last_reads[at] == at {
            self.free.push(to);
        }
        self.values.push(Some(to));
        Some(())
    }
}

/// The place of an argument.
fn argument(index: usize) -> (Gpr, i32) {
    (POINTER_MEMORY, (size_of::<u64>() * index) as i32)
}
