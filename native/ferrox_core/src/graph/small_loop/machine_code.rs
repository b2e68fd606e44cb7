//! Machine code of loops over small values.
//!
//! Problem: what runs an instruction of a loop must find out which one it is, and where its numbers are; for
//! an operation on two numbers, this takes longer than the operation. Technique: instructions are translated
//! one by one, by templates, as the BEAM's are (Larsson and Högberg 2021, "BeamAsm"). Numbers are where the
//! interpreter has them, in the memory of registers; those that gain most are in registers of the processor too
//! (`register_allocation`), or only there from one instruction to another without a stop between them. So the
//! interpreter's function runs an instruction without a template, a loop can stop where it jumps back, and the
//! interpreter could go on from there.
//! Limits: x86-64 and AArch64, with bytes in little-endian order. Elsewhere, and where the system allows no
//! memory with new instructions, loops are interpreted.

#![allow(unsafe_code, reason = "calls machine code with the addresses of what it reads and writes")]

mod register_allocation;
mod run;
mod templates;
mod translator;
mod vectors;

use std::panic::resume_unwind;

use smallvec::SmallVec;

use self::run::{END, Failure, LOOK, Run, YIELD};
use self::translator::Translator;
use super::super::machine_code::executable::Executable;
use super::code::{Code, Context, Register, Stop, misplaced};
use crate::Error;

/// A loop as a function of machine code.
#[derive(Debug)]
pub(super) struct MachineCode {
    executable: Executable,
    /// The distance in bytes of each instruction of the loop, and of its end, from the first byte.
    places: Box<[usize]>,
    /// The least number of bytes of each array: of those that are only read, then of those that are replaced.
    lengths: Box<[usize]>,
    small_bytes: usize,
}

impl MachineCode {
    /// The machine code of a loop with some numbers of arrays that are only read and that are replaced, and
    /// with some bytes of small arrays; `None` if it is interpreted. After its end, `results` are read.
    pub(super) fn new(
        codes: &mut [Code],
        results: &[Register],
        arrays: [usize; 2],
        small_bytes: usize,
    ) -> Option<Self> {
        if cfg!(target_endian = "big") {
            return None;
        }
        let Translator { assembler, labels, lengths, .. } =
            Translator::new(codes, results, arrays, small_bytes)?;
        let places = labels.iter().map(|&label| assembler.place(label)).collect::<Option<_>>()?;
        let executable = Executable::new(&assembler.finish()?)?;
        Some(MachineCode { executable, places, lengths: lengths.into(), small_bytes })
    }

    /// Runs from an instruction on, for about `left` instructions, as the interpreter does. `None` if the
    /// arrays are not those that the code was made for.
    pub(super) fn run(
        &self,
        codes: &[Code],
        next: &mut usize,
        context: Context<'_, '_, '_>,
        left: isize,
    ) -> Option<Result<Stop, Error>> {
        let Context { registers, small, arrays } = context;
        let lengths = arrays.tensors.iter().map(|array| array.len());
        let lengths = lengths.chain(arrays.replaced.iter().map(|array| array.len()));
        let have_length = self.lengths.iter().zip(lengths).all(|(&least, length)| least <= length);
        if arrays.tensors.len() + arrays.replaced.len() != self.lengths.len()
            || small.len() != self.small_bytes
            || !have_length
        {
            return None;
        }
        let tensors = arrays.tensors.iter().map(|array| array.as_ptr().cast_mut());
        let replaced = arrays.replaced.iter_mut().map(|array| array.as_mut_ptr());
        let pointers: SmallVec<[*mut u8; 8]> = tensors.chain(replaced).collect();
        let numbers = registers.memory();
        let mut run = Run {
            arrays: pointers.as_ptr(),
            small: small.as_mut_ptr(),
            codes,
            context: Context { registers, small, arrays },
            failure: None,
        };
        let entry = *self.places.get(*next)?;
        // SAFETY: the translator makes such a function, which begins with `enter` and ends with `leave`, and
        // calls nothing but `run_code` and, with the kernels of `codes`, `call_scalar_kernel`. It reads and
        // writes numbers below `REGISTERS`, which `numbers` has; parts of arrays that lie within the lengths that
        // have been compared, since indices are moved into them; and of `small`, within `small_bytes`. It has
        // exclusive access to all of these through `run`, which nothing else uses until it returns, and which
        // has the type that `run_code` expects.
        let result = unsafe { self.executable.call(entry, numbers, (&raw mut run).cast(), left as i64) }?;
        *next = (result >> 2) as usize;
        Some(match (result & 3, run.failure) {
            (_, Some(Failure::Error(error))) => Err(error),
            (_, Some(Failure::Panic(payload))) => resume_unwind(payload),
            (END, None) => Ok(Stop::End),
            (LOOK, None) => Ok(Stop::Look),
            (YIELD, None) => Ok(Stop::Yield),
            _ => Err(misplaced()),
        })
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::super::super::operand::REGISTER_BYTES;
    use super::super::code::{
        Array, Arrays, Bytes, Checked, Index, Load, NumberFunction, NumberOperation, Packing, Part,
        REGISTERS, Registers, Small, Store, Truth, Typed,
    };
    use super::*;
    use crate::exec::convert;
    use crate::ops::binary::{BinaryOp, scalar_kernel};
    use crate::ops::math::Math;
    use crate::ops::unary::UnaryOp;
    use crate::{DType, Fault};

    const DTYPES: [DType; 10] = [
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::S8,
        DType::S16,
        DType::S32,
        DType::S64,
        DType::F32,
        DType::F64,
    ];

    /// The numbers of trips so far, of one, and of all trips.
    const COUNTER: [Register; 3] = [100, 101, 102];
    const TRIPS: u64 = 3;

    struct Random(u64);

    impl Random {
        fn below(&mut self, count: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % count
        }

        /// A number of a type, often a special one, as a word.
        fn number(&mut self, dtype: DType) -> u64 {
            let special =
                [0.0, -0.0, 1.0, -1.5, f64::INFINITY, f64::NEG_INFINITY, -f64::NAN, 1e-40, 1e-310, 3e38];
            let float = match self.below(3) {
                0 => special[self.below(special.len())],
                _ => (self.below(2001) as f64 - 1000.0) / 64.0,
            };
            match dtype {
                DType::F32 => u64::from((float as f32).to_bits()),
                DType::F64 => float.to_bits(),
                _ => {
                    let integers = [0, 1, u64::MAX, 1 << 31, 1 << 63, (1 << 31) - 1, 127, 128, 31, 64, 200];
                    let number = match self.below(3) {
                        0 => integers[self.below(integers.len())],
                        _ => self.below(20) as u64,
                    };
                    number & (u64::MAX >> (64 - 8 * dtype.width()))
                }
            }
        }
    }

    /// Registers, each of which has numbers of one type.
    fn register(random: &mut Random, dtype: DType) -> Register {
        let kind = DTYPES.iter().position(|&other| other == dtype).expect("one of them");
        (kind * 8 + random.below(8)) as Register
    }

    fn bytes(random: &mut Random, length: usize, width: usize) -> Bytes {
        let dtype = DTYPES[random.below(8)];
        let register = register(random, dtype);
        let is_signed = dtype.kind() == crate::Kind::Signed;
        let last = length / width - 1;
        let width_of_index = dtype.width() as u8;
        let index = Index { register, is_signed, width: width_of_index, last, stride: width };
        if random.below(4) == 0 {
            return Bytes { first: random.below(last + 1) * width, length: width, indices: smallvec![] };
        }
        Bytes { first: 0, length: width, indices: smallvec![index] }
    }

    fn random_code(random: &mut Random, at: usize, count: usize) -> Code {
        let dtype = DTYPES[random.below(DTYPES.len())];
        let to = register(random, dtype);
        let operands = [(); 2].map(|()| register(random, dtype));
        let target = at + 1 + random.below(count - at);
        match random.below(14) {
            // Instructions without a template, on integers: of two NaN, it is not defined which one an operation gives.
            12 if dtype.is_integer() => {
                let elements: Box<[Register]> = (0..3).map(|_| register(random, dtype)).collect();
                let (width, small) = (dtype.width(), Small { at: 8, bytes: 3 * dtype.width() });
                let packing = Box::new(Packing { elements, width, small });
                if random.below(2) == 0 { Code::Pack(packing) } else { Code::Unpack(packing) }
            }
            13 if dtype.is_integer() => Code::Checked(Box::new(Checked {
                op: BinaryOp::Quotient,
                dtypes: [dtype; 2],
                kernel: |a, b| if b == 0 { a } else { b },
                is_faulty: |_| false,
                fault: Fault::DivisionByZero,
                operands,
                to,
            })),
            0 => Code::Move { from: operands[0], to },
            1 => {
                let truth = Truth::new(register(random, dtype), dtype).expect("a number");
                Code::Select { truth, operands, to }
            }
            2 => {
                let other = DTYPES[random.below(DTYPES.len())];
                let from = Typed::new(register(random, other), other);
                match convert::conversion(other, dtype) {
                    Some(convert) => {
                        Code::Convert { convert, dtypes: [other, dtype], from, to: Typed::new(to, dtype) }
                    }
                    None => Code::Move { from: operands[0], to },
                }
            }
            3 => {
                let dtype = [DType::F32, DType::F64][random.below(2)];
                let [from, to] = [(); 2].map(|()| register(random, dtype));
                let op = UnaryOp::ALL[random.below(UnaryOp::ALL.len())];
                let by = NumberFunction::new(op, Math::Exact, dtype).filter(|_| random.below(2) == 0);
                let by = by.or_else(|| NumberFunction::new(UnaryOp::Sqrt, Math::Exact, dtype));
                Code::Function { by: by.expect("a kernel"), from, to }
            }
            4 | 5 => {
                let width = dtype.width();
                let array = [Array::Tensor(0), Array::Small(Small { at: 16, bytes: 48 }), Array::Replaced(0)];
                // Floats are read from an array in which all are numbers: of two others, it is not defined which
                // one the result of an operation is.
                let array = if dtype.is_integer() { array[random.below(3)] } else { array[0] };
                let bytes = bytes(random, 48, width);
                if random.below(2) == 0 || matches!(array, Array::Tensor(_)) {
                    Code::Load(Box::new(Load { from: Part { array, bytes }, to }))
                } else {
                    Code::Store(Box::new(Store { array, bytes, from: to }))
                }
            }
            6 => {
                let truth = Truth::new(register(random, dtype), dtype).expect("a number");
                Code::JumpIf { truth, expected: random.below(2) == 0, target }
            }
            kind => {
                let op = BinaryOp::ALL[random.below(BinaryOp::ALL.len())];
                let out = if op.is_predicate() { DType::U8 } else { dtype };
                let Some((kernel, None)) = scalar_kernel(op, out, dtype) else {
                    return Code::Move { from: operands[0], to };
                };
                let by = NumberOperation { op, dtype, kernel };
                if kind == 7 && op.is_predicate() {
                    Code::JumpIfBinary { by, operands, expected: random.below(2) == 0, target }
                } else {
                    Code::Binary { by, operands, to: register(random, out) }
                }
            }
        }
    }

    /// The results, small arrays and replaced arrays after instructions, which are interpreted or run by
    /// `machine_code`, some of them at a time.
    fn after(
        codes: &[Code],
        results: &[Register],
        machine_code: Option<(&MachineCode, isize)>,
        seed: u64,
    ) -> (Vec<u64>, Vec<u8>, Vec<u8>) {
        let random = &mut Random(seed);
        let mut registers = Registers::new();
        for number in 0..8 * DTYPES.len() {
            registers.set(number as Register, random.number(DTYPES[number / 8]));
        }
        for (register, value) in COUNTER.into_iter().zip([0, 1, TRIPS]) {
            registers.set(register, value);
        }
        let mut array = |length: usize| -> Vec<u8> { (0..length).map(|_| random.below(64) as u8).collect() };
        let (tensor, mut small, mut replaced) = (array(48), array(80), array(48));
        let mut arrays = Arrays { tensors: &[&tensor], replaced: &mut [&mut replaced] };
        let mut context = Context { registers: &mut registers, small: &mut small, arrays: &mut arrays };
        match machine_code {
            Some((machine_code, left)) => {
                let mut next = 0;
                let mut looks = 0;
                loop {
                    let Context { registers, small, arrays } = &mut context;
                    let context = Context { registers, small, arrays };
                    match machine_code.run(codes, &mut next, context, left).expect("the arrays fit") {
                        Ok(Stop::Look) => looks += 1,
                        stop => break assert_eq!(stop, Ok(Stop::End)),
                    }
                }
                assert_eq!(next, codes.len());
                assert!(left > 0 || looks == TRIPS - 1, "{looks} looks");
            }
            None => {
                let mut next = 0;
                while let Some(code) = codes.get(next) {
                    next += 1;
                    match *code {
                        Code::JumpIf { truth, expected, target } => {
                            if truth.holds(context.registers) == expected {
                                next = target;
                            }
                        }
                        Code::JumpIfBinary { by, operands, expected, target } => {
                            let [a, b] = operands.map(|operand| context.registers.get(operand));
                            if ((by.kernel)(a, b) != 0) == expected {
                                next = target;
                            }
                        }
                        _ => code.run(&mut context).expect("no fault"),
                    }
                }
            }
        }
        (results.iter().map(|&register| registers.get(register)).collect(), small, replaced)
    }

    /// Random instructions on numbers of all types, with jumps forward, in a loop of some trips, compared with the
    /// interpreter's.
    #[test]
    fn machine_code_gives_the_bits_of_the_interpreter() {
        assert!(8 * DTYPES.len() < REGISTERS && size_of::<u64>() == REGISTER_BYTES);
        for seed in 0..30_000 {
            let random = &mut Random(seed);
            let count = random.below(30) + 1;
            let mut codes: Vec<Code> = (0..count).map(|at| random_code(random, at, count)).collect();
            let [trip, one, trips] = COUNTER;
            let by = |op| NumberOperation::new(op, DType::S32).expect("a kernel");
            codes.push(Code::Binary { by: by(BinaryOp::Add), operands: [trip, one], to: trip });
            let (kernel, _) = scalar_kernel(BinaryOp::Less, DType::U8, DType::S32).expect("a kernel");
            let by = NumberOperation { op: BinaryOp::Less, dtype: DType::S32, kernel };
            codes.push(Code::JumpIfBinary { by, operands: [trip, trips], expected: true, target: 0 });
            // Others are in registers of the processor only, or have any value at the end.
            let numbers = (0..8 * DTYPES.len()).map(|number| number as Register);
            let results: Vec<Register> = numbers.filter(|_| random.below(4) == 0).collect();
            let machine_code = MachineCode::new(&mut codes, &results, [1, 1], 80).expect("machine code");
            for run in 0..2 {
                let seed = seed * 2 + run;
                let expected = after(&codes, &results, None, seed);
                let left = [0, 1_000_000][run as usize];
                let values = after(&codes, &results, Some((&machine_code, left)), seed);
                let differs = |number: &usize| values.0[*number] != expected.0[*number];
                let numbers: Vec<usize> = (0..values.0.len()).filter(differs).collect();
                assert!(values == expected, "{seed}, numbers {numbers:?}: {codes:#?}");
            }
        }
    }
}
