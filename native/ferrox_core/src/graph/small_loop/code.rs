//! The instructions of a loop over small values.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::super::cluster::Cluster;
use super::super::kernel::Kernel;
use super::super::operand::{REGISTER_BYTES, integer, word};
use crate::exec::convert::Convert;
use crate::exec::elementwise::{self, MAX_OPERANDS, Plan};
use crate::ops;
use crate::ops::binary::{BinaryOp, IsFaulty};
use crate::ops::math::Math;
use crate::ops::scalar::ScalarKernel;
use crate::ops::unary::UnaryOp;
use crate::{DType, Error, Fault};

/// The number of registers, a power of two.
pub(super) const REGISTERS: usize = 1 << 11;

/// The number of a register.
pub(super) type Register = u16;

/// The registers of the elements of a value.
pub(in super::super) type Elements = Arc<[Register]>;

/// The arrays of a run of a loop.
#[derive(Debug)]
pub(in super::super) struct Arrays<'a, 'b> {
    /// Those that are only read.
    pub(in super::super) tensors: &'a [&'b [u8]],
    /// Those of which parts are replaced.
    pub(in super::super) replaced: &'a mut [&'b mut [u8]],
}

/// Numbers, each in the first bytes of a register.
#[derive(Debug)]
pub(super) struct Registers([[u8; REGISTER_BYTES]; REGISTERS]);

impl Registers {
    pub(super) fn new() -> Box<Self> {
        Box::new(Registers([[0; REGISTER_BYTES]; REGISTERS]))
    }

    #[inline(always)]
    pub(super) fn bytes(&self, register: Register) -> &[u8; REGISTER_BYTES] {
        &self.0[usize::from(register) % REGISTERS]
    }

    #[inline(always)]
    pub(super) fn get(&self, register: Register) -> u64 {
        u64::from_ne_bytes(*self.bytes(register))
    }

    #[inline(always)]
    pub(super) fn set(&mut self, register: Register, value: u64) {
        self.0[usize::from(register) % REGISTERS] = value.to_ne_bytes();
    }

    /// The address of all numbers.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) fn memory(&mut self) -> *mut u64 {
        self.0.as_mut_ptr().cast()
    }
}

#[cold]
pub(super) fn misplaced() -> Error {
    Error::Argument { op: "program", problem: "a loop is not well-formed".into() }
}

/// Where a loop stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Stop {
    /// After some time, to ask whether it may go on.
    Look,
    /// After the numbers of a trip.
    Yield,
    End,
}

/// An instruction. Targets of jumps are numbers of instructions.
#[derive(Debug)]
pub(super) enum Code {
    Move {
        from: Register,
        to: Register,
    },
    Binary {
        by: NumberOperation,
        operands: [Register; 2],
        to: Register,
    },
    Function {
        by: NumberFunction,
        from: Register,
        to: Register,
    },
    Checked(Box<Checked>),
    Call(Box<NumberCall>),
    Convert {
        convert: Convert,
        #[cfg_attr(
            not(any(target_arch = "x86_64", target_arch = "aarch64")),
            allow(dead_code, reason = "machine code is made of it")
        )]
        dtypes: [DType; 2],
        from: Typed,
        to: Typed,
    },
    Select {
        truth: Truth,
        operands: [Register; 2],
        to: Register,
    },
    Load(Box<Load>),
    Store(Box<Store>),
    Write(Box<Write>),
    Copy(Box<Copying>),
    Pack(Box<Packing>),
    Unpack(Box<Packing>),
    Kernel(Box<KernelCall>),
    /// Computes several operations on arrays.
    Cluster(Box<ClusterCall>),
    /// A stop at which the registers are read.
    Yield(Box<[Register]>),
    Jump {
        target: usize,
    },
    JumpIf {
        truth: Truth,
        expected: bool,
        target: usize,
    },
    JumpIfBinary {
        by: NumberOperation,
        operands: [Register; 2],
        expected: bool,
        target: usize,
    },
}

/// An operation on two numbers of a type.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberOperation {
    pub(super) op: BinaryOp,
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64")),
        allow(dead_code, reason = "machine code is made of it")
    )]
    pub(super) dtype: DType,
    pub(super) kernel: ScalarKernel,
}

/// A function of a number of type f32 or f64, whose result has the same type.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, reason = "machine code is made of it")
)]
pub(super) struct NumberFunction {
    pub(super) op: UnaryOp,
    pub(super) dtype: DType,
    pub(super) kernel: ScalarKernel,
}

/// A register with the number of bytes of its element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Typed {
    pub(super) register: Register,
    pub(super) width: u8,
}

/// A register, and the bits of it that are not all zero if it is true.
#[derive(Clone, Copy, Debug)]
pub(super) struct Truth {
    pub(super) register: Register,
    pub(super) mask: u64,
}

/// An operation that is not defined for some right operands.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) op: BinaryOp,
    /// The types of the operands before conversions.
    pub(super) dtypes: [DType; 2],
    pub(super) kernel: ScalarKernel,
    pub(super) is_faulty: IsFaulty,
    pub(super) fault: Fault,
    pub(super) operands: [Register; 2],
    pub(super) to: Register,
}

/// A kernel that is called on one element.
#[derive(Debug)]
pub(super) struct NumberCall {
    pub(super) op: &'static str,
    /// The types of the operands before conversions.
    pub(super) dtypes: SmallVec<[DType; MAX_OPERANDS]>,
    pub(super) plan: Plan,
    pub(super) operands: SmallVec<[Typed; MAX_OPERANDS]>,
    pub(super) to: Register,
}

/// An element of an array that is read.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) from: Part,
    pub(super) to: Register,
}

/// An element of an array that is replaced.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) array: Array,
    pub(super) bytes: Bytes,
    pub(super) from: Register,
}

/// Elements of an array, next to each other, that are replaced.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) array: Array,
    pub(super) bytes: Bytes,
    pub(super) from: Location,
}

/// A copy of a value to a small array.
#[derive(Debug)]
pub(super) struct Copying {
    pub(super) from: Location,
    pub(super) to: Small,
}

/// Registers, and a small array with the same elements.
#[derive(Debug)]
pub(super) struct Packing {
    pub(super) elements: Box<[Register]>,
    pub(super) width: usize,
    pub(super) small: Small,
}

/// A kernel with arrays among its operands, or an array as its result.
#[derive(Debug)]
pub(super) struct KernelCall {
    pub(super) kernel: Kernel,
    pub(super) operands: SmallVec<[Location; MAX_OPERANDS]>,
    pub(super) to: Destination,
    /// The number of instructions on registers that take as long.
    pub(super) codes: isize,
}

/// A cluster of operations on arrays, which one call of machine code computes.
#[derive(Debug)]
pub(super) struct ClusterCall {
    pub(super) cluster: Cluster,
    pub(super) operands: SmallVec<[Location; 8]>,
    /// The memory of all results.
    pub(super) to: Small,
    /// For each result, in their order, where it begins in this memory, and the number of its bytes.
    pub(super) results: SmallVec<[(usize, usize); 4]>,
    /// The number of instructions on registers that take as long.
    pub(super) codes: isize,
}

/// Where an operand is.
#[derive(Clone, Debug)]
pub(super) enum Location {
    Register(Typed),
    Array(Array),
    Part(Arc<Part>),
}

/// Where the result of a kernel goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Destination {
    Register(Typed),
    Small(Small),
    /// Over the array that is its first operand, of which parts are replaced.
    Replaced(Array),
}

/// The part of a loop's memory that an array has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Small {
    pub(super) at: usize,
    pub(super) bytes: usize,
}

/// The values of a run of a loop.
pub(super) struct Context<'r, 'a, 'b> {
    pub(super) registers: &'r mut Registers,
    pub(super) small: &'r mut [u8],
    pub(super) arrays: &'r mut Arrays<'a, 'b>,
}

/// Values that are read while a small array is written.
struct Operands<'r, 'b> {
    registers: &'r Registers,
    /// The memory of small arrays before the one that is written.
    before: &'r [u8],
    /// The memory after it, and where that begins.
    after: (&'r [u8], usize),
    tensors: &'r [&'b [u8]],
    replaced: &'r [&'b mut [u8]],
}

/// An array of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Array {
    /// Among the tensors that are only read.
    Tensor(usize),
    /// Among the small ones.
    Small(Small),
    /// Among those whose elements are replaced.
    Replaced(usize),
}

/// Elements of an array that are next to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) array: Array,
    pub(super) bytes: Bytes,
}

/// Which bytes of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bytes {
    /// The first byte, if all indices are zero.
    pub(super) first: usize,
    pub(super) length: usize,
    /// The indices that are not known.
    pub(super) indices: SmallVec<[Index; 2]>,
}

/// An index along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) register: Register,
    pub(super) is_signed: bool,
    pub(super) width: u8,
    /// The most that it can be.
    pub(super) last: usize,
    /// The distance in bytes of elements along the axis.
    pub(super) stride: usize,
}

impl Truth {
    /// The truth of a register of some type; `None` if it depends on more than some bits.
    pub(super) fn new(register: Register, dtype: DType) -> Option<Self> {
        // Zero and minus zero are false.
        let sign = match dtype {
            _ if dtype.is_complex() => return None,
            _ if dtype.is_integer() => 0,
            DType::F8 | DType::F8E4M3FN => word(&[0x80]),
            DType::F16 | DType::BF16 => word(&0x8000_u16.to_ne_bytes()),
            DType::F32 => word(&0x8000_0000_u32.to_ne_bytes()),
            DType::F64 => 1 << 63,
            _ => return None,
        };
        Some(Truth { register, mask: !sign })
    }

    pub(super) fn holds_for(self, value: u64) -> bool {
        value & self.mask != 0
    }

    #[inline(always)]
    pub(super) fn holds(self, registers: &Registers) -> bool {
        self.holds_for(registers.get(self.register))
    }
}

impl NumberOperation {
    /// An operation whose result has the type of its operands, and that is defined for all of them.
    pub(super) fn new(op: BinaryOp, dtype: DType) -> Option<Self> {
        let (kernel, None) = ops::binary::scalar_kernel(op, dtype, dtype)? else { return None };
        Some(NumberOperation { op, dtype, kernel })
    }
}

impl NumberFunction {
    /// A function that has a kernel of one number.
    pub(super) fn new(op: UnaryOp, math: Math, dtype: DType) -> Option<Self> {
        Some(NumberFunction { op, dtype, kernel: ops::unary::scalar_kernel(op, math, dtype)? })
    }
}

impl Typed {
    pub(super) fn new(register: Register, dtype: DType) -> Self {
        Typed { register, width: dtype.width() as u8 }
    }

    #[inline(always)]
    pub(super) fn bytes(self, registers: &Registers) -> &[u8] {
        &registers.bytes(self.register)[..usize::from(self.width)]
    }
}

impl Checked {
    #[inline]
    pub(super) fn run(&self, registers: &Registers) -> Result<u64, Error> {
        let [a, b] = self.operands.map(|register| registers.get(register));
        if (self.is_faulty)(b) {
            return Err(self.error());
        }
        Ok((self.kernel)(a, b))
    }

    #[cold]
    fn error(&self) -> Error {
        Error::Element { op: self.op.name(), dtypes: self.dtypes.to_vec(), fault: self.fault }
    }
}

impl NumberCall {
    pub(super) fn run(&self, registers: &Registers) -> Result<u64, Error> {
        let mut elements: [&[u8]; MAX_OPERANDS] = [&[]; MAX_OPERANDS];
        for (element, operand) in elements.iter_mut().zip(&self.operands) {
            *element = operand.bytes(registers);
        }
        let mut out = [0; REGISTER_BYTES];
        let width = self.plan.width;
        elementwise::run_element(&self.plan, &mut out[..width], &elements[..self.operands.len()])
            .map_err(|fault| self.error(fault))?;
        Ok(word(&out[..width]))
    }

    #[cold]
    fn error(&self, fault: Fault) -> Error {
        Error::Element { op: self.op, dtypes: self.dtypes.to_vec(), fault }
    }
}

impl Location {
    /// The registers that are read.
    fn registers(&mut self) -> RegisterList<'_> {
        match self {
            Location::Register(Typed { register, .. }) => smallvec![register],
            Location::Array(_) => SmallVec::new(),
            Location::Part(part) => Arc::make_mut(part).bytes.indices().collect(),
        }
    }
}

impl<'r> Operands<'r, '_> {
    /// The bytes of an operand; none if there is no such operand.
    #[inline]
    fn bytes(&self, location: &Location) -> &'r [u8] {
        let bytes = match location {
            Location::Register(number) => return number.bytes(self.registers),
            Location::Array(array) => self.array(*array),
            Location::Part(part) => {
                self.array(part.array).and_then(|array| array.get(part.bytes.range(self.registers)))
            }
        };
        bytes.unwrap_or_default()
    }

    #[inline]
    fn array(&self, array: Array) -> Option<&'r [u8]> {
        match array {
            Array::Tensor(index) => self.tensors.get(index).copied(),
            Array::Small(Small { at, bytes }) => match at.checked_sub(self.after.1) {
                Some(at) => self.after.0.get(at..at + bytes),
                None => self.before.get(at..at + bytes),
            },
            Array::Replaced(index) => self.replaced.get(index).map(|bytes| &**bytes),
        }
    }
}

impl Copying {
    #[inline]
    pub(super) fn run(&self, context: &mut Context<'_, '_, '_>) -> Option<()> {
        let Small { at, bytes } = self.to;
        if let Location::Array(Array::Small(from)) = self.from {
            context.small.copy_within(from.at..from.at + bytes, at);
            return Some(());
        }
        let (operands, to) = context.around(self.to)?;
        let from = operands.bytes(&self.from);
        (from.len() == to.len()).then(|| to.copy_from_slice(from))
    }
}

impl Packing {
    /// Copies the registers to the array.
    #[inline]
    pub(super) fn pack(&self, registers: &Registers, small: &mut [u8]) -> Option<()> {
        let bytes = small.get_mut(self.small.at..self.small.at + self.small.bytes)?;
        for (element, &register) in bytes.chunks_exact_mut(self.width).zip(&self.elements[..]) {
            element.copy_from_slice(&registers.bytes(register)[..self.width]);
        }
        Some(())
    }

    /// Copies the array to the registers.
    #[inline]
    pub(super) fn unpack(&self, registers: &mut Registers, small: &[u8]) -> Option<()> {
        let bytes = small.get(self.small.at..self.small.at + self.small.bytes)?;
        for (element, &register) in bytes.chunks_exact(self.width).zip(&self.elements[..]) {
            registers.set(register, word(element));
        }
        Some(())
    }
}

impl KernelCall {
    #[inline]
    pub(super) fn run(&self, context: &mut Context<'_, '_, '_>) -> Result<(), Error> {
        match self.to {
            Destination::Small(part) => {
                let (operands, to) = context.around(part).ok_or_else(misplaced)?;
                self.kernel.compute(|index| operands.bytes(&self.operands[index]), to)
            }
            Destination::Register(Typed { register, width }) => {
                let mut bytes = [0; REGISTER_BYTES];
                let (operands, _) = context.around(Small { at: 0, bytes: 0 }).ok_or_else(misplaced)?;
                let to = &mut bytes[..usize::from(width)];
                self.kernel.compute(|index| operands.bytes(&self.operands[index]), to)?;
                context.registers.set(register, word(to));
                Ok(())
            }
            Destination::Replaced(array) => {
                let update = |operands: Operands<'_, '_>, to: &mut [u8]| {
                    self.kernel.update(|index| operands.bytes(&self.operands[index]), to)
                };
                context.replace(array, update).ok_or_else(misplaced)?
            }
        }
    }
}

impl ClusterCall {
    #[inline]
    fn run(&self, context: &mut Context<'_, '_, '_>) -> Result<(), Error> {
        let (operands, mut rest) = context.around(self.to).ok_or_else(misplaced)?;
        let inputs: SmallVec<[&[u8]; 8]> =
            self.operands.iter().map(|operand| operands.bytes(operand)).collect();
        let mut results: SmallVec<[&mut [u8]; 4]> = SmallVec::new();
        let mut at = 0;
        for &(first, bytes) in &self.results {
            let (result, after) =
                std::mem::take(&mut rest).split_at_mut_checked(first - at + bytes).ok_or_else(misplaced)?;
            results.push(&mut result[first - at..]);
            (rest, at) = (after, first + bytes);
        }
        self.cluster.run(&inputs, &[], &mut results)
    }
}

impl<'b> Context<'_, '_, 'b> {
    /// Lets a function write to an array of which parts are replaced, given the other values.
    #[inline]
    fn replace<T>(
        &mut self,
        array: Array,
        write: impl FnOnce(Operands<'_, '_>, &mut [u8]) -> T,
    ) -> Option<T> {
        match array {
            Array::Small(small) => {
                let (operands, to) = self.around(small)?;
                Some(write(operands, to))
            }
            Array::Replaced(index) => {
                let to = std::mem::take(self.arrays.replaced.get_mut(index)?);
                let others = self.around(Small { at: 0, bytes: 0 });
                let written = others.map(|(operands, _)| write(operands, to));
                self.arrays.replaced[index] = to;
                written
            }
            Array::Tensor(_) => None,
        }
    }

    /// The memory of a small array, and the other values.
    #[inline]
    fn around(&mut self, Small { at, bytes }: Small) -> Option<(Operands<'_, 'b>, &mut [u8])> {
        let (before, rest) = self.small.split_at_mut_checked(at)?;
        let (part, after) = rest.split_at_mut_checked(bytes)?;
        let Context { registers, arrays, .. } = self;
        let (tensors, replaced) = (arrays.tensors, &*arrays.replaced);
        let after = (&*after, at + bytes);
        Some((Operands { registers, before, after, tensors, replaced }, part))
    }
}

impl Load {
    #[inline]
    pub(super) fn run(&self, registers: &Registers, small: &[u8], arrays: &Arrays<'_, '_>) -> Option<u64> {
        let array = match self.from.array {
            Array::Tensor(index) => arrays.tensors.get(index)?,
            Array::Small(Small { at, bytes }) => small.get(at..at + bytes)?,
            Array::Replaced(index) => &**arrays.replaced.get(index)?,
        };
        array.get(self.from.bytes.range(registers)).map(word)
    }
}

impl Store {
    #[inline]
    pub(super) fn run(
        &self,
        registers: &Registers,
        small: &mut [u8],
        arrays: &mut Arrays<'_, '_>,
    ) -> Option<()> {
        let array = match self.array {
            Array::Replaced(index) => &mut **arrays.replaced.get_mut(index)?,
            Array::Small(Small { at, bytes }) => small.get_mut(at..at + bytes)?,
            Array::Tensor(_) => return None,
        };
        let bytes = array.get_mut(self.bytes.range(registers))?;
        bytes.copy_from_slice(&registers.bytes(self.from)[..bytes.len()]);
        Some(())
    }
}

impl Write {
    #[inline]
    pub(super) fn run(&self, context: &mut Context<'_, '_, '_>) -> Option<()> {
        let range = self.bytes.range(context.registers);
        let written = context.replace(self.array, |operands, to| {
            let (to, from) = (to.get_mut(range)?, operands.bytes(&self.from));
            (to.len() == from.len()).then(|| to.copy_from_slice(from))
        });
        written.flatten()
    }
}

impl Bytes {
    /// The bytes from the element at the indices on, which are moved into the array.
    #[inline]
    fn range(&self, registers: &Registers) -> std::ops::Range<usize> {
        let mut first = self.first;
        for index in &self.indices {
            let at = integer(registers.get(index.register), index.is_signed, index.width);
            first += at.min(index.last) * index.stride;
        }
        first..first + self.length
    }

    /// The registers of the indices.
    fn indices(&mut self) -> impl Iterator<Item = &mut Register> {
        self.indices.iter_mut().map(|index| &mut index.register)
    }
}

impl Code {
    pub(super) fn is_jump(&self) -> bool {
        matches!(self, Code::Jump { .. } | Code::JumpIf { .. } | Code::JumpIfBinary { .. })
    }

    /// Runs an instruction that is no jump and no yield.
    #[inline(always)]
    pub(super) fn run(&self, context: &mut Context<'_, '_, '_>) -> Result<(), Error> {
        let Context { registers, small, arrays } = context;
        let (to, value) = match self {
            Code::Binary { by, operands: [a, b], to } => {
                (*to, (by.kernel)(registers.get(*a), registers.get(*b)))
            }
            Code::Move { from, to } => (*to, registers.get(*from)),
            Code::Select { truth, operands: [a, b], to } => {
                (*to, registers.get(if truth.holds(registers) { *a } else { *b }))
            }
            Code::Function { by, from, to } => (*to, (by.kernel)(registers.get(*from), 0)),
            Code::Convert { convert, from, to, .. } => {
                let mut bytes = [0; REGISTER_BYTES];
                let bytes = &mut bytes[..usize::from(to.width)];
                convert(from.bytes(registers), bytes);
                (to.register, word(bytes))
            }
            Code::Checked(checked) => (checked.to, checked.run(registers)?),
            Code::Call(call) => (call.to, call.run(registers)?),
            Code::Load(load) => (load.to, load.run(registers, small, arrays).ok_or_else(misplaced)?),
            Code::Store(store) => return store.run(registers, small, arrays).ok_or_else(misplaced),
            Code::Write(write) => return write.run(context).ok_or_else(misplaced),
            Code::Copy(copy) => return copy.run(context).ok_or_else(misplaced),
            Code::Pack(packing) => return packing.pack(registers, small).ok_or_else(misplaced),
            Code::Unpack(packing) => return packing.unpack(registers, small).ok_or_else(misplaced),
            Code::Kernel(call) => return call.run(context),
            Code::Cluster(call) => return call.run(context),
            Code::Yield(_) | Code::Jump { .. } | Code::JumpIf { .. } | Code::JumpIfBinary { .. } => {
                return Err(misplaced());
            }
        };
        registers.set(to, value);
        Ok(())
    }

    /// The number of instructions on registers that a call of kernels takes as long as, after which a loop may stop.
    pub(super) fn codes_of_call(&self) -> Option<isize> {
        match self {
            Code::Kernel(call) => Some(call.codes),
            Code::Cluster(call) => Some(call.codes),
            _ => None,
        }
    }

    /// The instruction, with its result in a register.
    pub(super) fn with_result(mut self, register: Register) -> Self {
        let [_, written] = self.registers();
        for to in written {
            *to = register;
        }
        self
    }

    /// The registers that are read, and those that are written.
    pub(super) fn registers(&mut self) -> [RegisterList<'_>; 2] {
        match self {
            Code::Move { from, to } | Code::Function { from, to, .. } => [smallvec![from], smallvec![to]],
            Code::Binary { operands, to, .. } => [operands.iter_mut().collect(), smallvec![to]],
            Code::Checked(checked) => [checked.operands.iter_mut().collect(), smallvec![&mut checked.to]],
            Code::Call(call) => {
                let operands = call.operands.iter_mut().map(|operand| &mut operand.register);
                [operands.collect(), smallvec![&mut call.to]]
            }
            Code::Convert { from, to, .. } => [smallvec![&mut from.register], smallvec![&mut to.register]],
            Code::Select { truth, operands, to } => {
                [operands.iter_mut().chain([&mut truth.register]).collect(), smallvec![to]]
            }
            Code::Load(load) => [load.from.bytes.indices().collect(), smallvec![&mut load.to]],
            Code::Store(store) => [store.bytes.indices().chain([&mut store.from]).collect(), SmallVec::new()],
            Code::Write(write) => {
                [write.bytes.indices().chain(write.from.registers()).collect(), SmallVec::new()]
            }
            Code::Copy(copy) => [copy.from.registers(), SmallVec::new()],
            Code::Pack(packing) => [packing.elements.iter_mut().collect(), SmallVec::new()],
            Code::Unpack(packing) => [SmallVec::new(), packing.elements.iter_mut().collect()],
            Code::Kernel(call) => {
                let operands = call.operands.iter_mut().flat_map(Location::registers);
                let to = match &mut call.to {
                    Destination::Register(Typed { register, .. }) => smallvec![register],
                    Destination::Small(_) | Destination::Replaced(_) => SmallVec::new(),
                };
                [operands.collect(), to]
            }
            Code::Cluster(call) => {
                [call.operands.iter_mut().flat_map(Location::registers).collect(), SmallVec::new()]
            }
            Code::Yield(registers) => [registers.iter_mut().collect(), SmallVec::new()],
            Code::Jump { .. } => Default::default(),
            Code::JumpIf { truth, .. } => [smallvec![&mut truth.register], SmallVec::new()],
            Code::JumpIfBinary { operands, .. } => [operands.iter_mut().collect(), SmallVec::new()],
        }
    }
}

/// Registers of an instruction.
type RegisterList<'a> = SmallVec<[&'a mut Register; 4]>;
