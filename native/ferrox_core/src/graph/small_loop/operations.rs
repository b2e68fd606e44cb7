//! The instructions of operations: of one on few elements, an instruction for each element or none, where
//! elements only change their places; of another one, the call of its kernel.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::super::cluster::Cluster;
use super::super::kernel::Kernel;
use super::super::operand::{Memory, Operand, REGISTER_BYTES, Target, integer, word};
use super::super::operation::{Operation, Start};
use super::code::{
    Array, Bytes, Checked, ClusterCall, Code, Destination, Elements, Index, KernelCall, Load, Location,
    NumberCall, NumberFunction, NumberOperation, Part, Register, Small, Store, Truth, Typed, Write,
};
use super::homes::{Assembler, Home, Scope, is_few};
use crate::cost::{INSTRUCTION_WORK, MAX_SMALL_LOOP_KERNEL_WORK, SMALL_LOOP_CODE_WORK};
use crate::exec::convert::{self, Convert};
use crate::exec::elementwise::{MAX_OPERANDS, Plan, Source};
use crate::layout::{self, Layout, Shape};
use crate::ops;
use crate::ops::binary::BinaryOp;
use crate::ops::unary::UnaryOp;
use crate::tensor::{Output, Tensor, byte_size};
use crate::{DType, Kind};

/// An operation with one result.
#[derive(Clone, Copy)]
pub(super) struct Calculation<'a> {
    pub(super) operation: &'a Operation,
    pub(super) inputs: &'a [Operand],
    pub(super) output: &'a Target,
}

impl Assembler<'_> {
    /// Computes an operation.
    pub(super) fn calculate(&mut self, scope: &mut Scope, calculation: Calculation<'_>) -> Option<()> {
        let Target { dtype, shape, .. } = calculation.output;
        if is_few(*dtype, shape)
            && let Some(()) = self.few(scope, calculation)
        {
            return Some(());
        }
        if let Some(part) = self.part(scope, calculation) {
            *scope.homes.get_mut(calculation.output.slot)? = Some(Home::Part(Arc::new(part)));
            return Some(());
        }
        match self.replaced(scope, calculation) {
            Some(array) => self.replace(scope, array, calculation),
            None => self.kernel(scope, calculation),
        }
    }

    /// The array of which an operation replaces a part in place.
    fn replaced(&mut self, scope: &Scope, calculation: Calculation<'_>) -> Option<Array> {
        let Calculation { operation, inputs, output } = calculation;
        let ([array, others @ ..], false) = (inputs, self.is_guarded) else { return None };
        let Home::Replaced(replaced) = self.home(scope, array)? else { return None };
        let is_update = operation.is_update(output.dtype, inputs)
            && (array.dtype, &array.shape) == (output.dtype, &output.shape)
            && others.iter().all(|other| other.place != array.place);
        (is_update && !self.needs_home(scope, output.slot)).then_some(replaced)
    }

    /// Replaces a part of an array.
    fn replace(&mut self, scope: &mut Scope, array: Array, calculation: Calculation<'_>) -> Option<()> {
        let Calculation { operation, inputs, output } = calculation;
        let is_array = |location: &Location| match location {
            Location::Register(_) => false,
            Location::Array(read) => *read == array,
            Location::Part(part) => part.array == array,
        };
        match (operation, inputs) {
            (Operation::PutSlice(starts), [target, value, ..])
                if value.dtype == output.dtype && is_few(value.dtype, &value.shape) =>
            {
                let ones = Shape::from_elem(1, starts.len());
                let elements = self.elements_of(scope, target, (starts, &value.shape, &ones), inputs)?;
                for (bytes, &from) in elements.into_iter().zip(&self.elements(scope, value)?[..]) {
                    self.codes.push(Code::Store(Box::new(Store { array, bytes, from })));
                }
            }
            (Operation::PutSlice(starts), [target, value, ..])
                if value.dtype == output.dtype && is_run(&value.shape, &target.shape) =>
            {
                let bytes = self.bytes_from(scope, target, (starts, &value.shape), inputs)?;
                let length = byte_size("while", value.dtype, &value.shape).ok()?;
                let from = self.location(scope, value)?;
                if is_array(&from) {
                    return None;
                }
                let bytes = Bytes { length, ..bytes };
                self.codes.push(Code::Write(Box::new(Write { array, bytes, from })));
            }
            _ => {
                let code = self.call(scope, calculation, Destination::Replaced(array))?;
                self.codes.push(code);
            }
        }
        let stores = self.stores.len();
        self.stores.push(array);
        self.forget_replaced(scope, stores);
        *scope.homes.get_mut(output.slot)? = Some(Home::Replaced(array));
        Some(())
    }

    /// Calls the kernel of an operation on arrays.
    fn kernel(&mut self, scope: &mut Scope, calculation: Calculation<'_>) -> Option<()> {
        let Target { slot, dtype, shape } = calculation.output;
        let (to, unpacked) = match self.define(scope, *slot, *dtype, shape)? {
            Home::Elements(elements) => match elements[..] {
                [register] => (Destination::Register(Typed::new(register, *dtype)), None),
                _ => {
                    let packing = self.packing(&elements, *dtype)?;
                    (Destination::Small(packing.small), Some(packing))
                }
            },
            Home::Small(small) => (Destination::Small(small), None),
            Home::Tensor(_) | Home::Replaced(_) | Home::Part(_) | Home::Array => return None,
        };
        let code = self.call(scope, calculation, to)?;
        self.codes.push(code);
        self.codes.extend(unpacked.map(|packing| Code::Unpack(Box::new(packing))));
        Some(())
    }

    /// The call of the kernel of an operation, if it takes little time.
    fn call(&mut self, scope: &Scope, calculation: Calculation<'_>, to: Destination) -> Option<Code> {
        let Calculation { operation, inputs, output: Target { slot, dtype, shape } } = calculation;
        let operands = inputs.iter().map(|operand| self.location(scope, operand));
        let operands = operands.collect::<Option<SmallVec<[Location; MAX_OPERANDS]>>>()?;
        let is_target = |operand: &Location| match (operand, to) {
            (Location::Array(array), Destination::Replaced(target)) => *array == target,
            (Location::Part(part), Destination::Replaced(target)) => part.array == target,
            _ => false,
        };
        if operands.iter().skip(1).any(is_target) {
            return None;
        }
        let bytes = byte_size("while", *dtype, shape).ok()?;
        let memory = Memory { slot: *slot, dtype: *dtype, shape: shape.clone(), bytes, is_result: false };
        let kernel = Kernel::new(operation, inputs, Box::new([memory]), None).ok()?;
        let work = match to {
            Destination::Replaced(_) => {
                let inputs: Vec<_> = inputs.iter().map(|input| (input.dtype, &input.shape[..])).collect();
                operation.update_work(&inputs)
            }
            Destination::Register(_) | Destination::Small(_) => kernel.work.saturating_sub(INSTRUCTION_WORK),
        };
        let codes = 1 + isize::try_from(work / SMALL_LOOP_CODE_WORK).ok()?;
        let is_small = work <= MAX_SMALL_LOOP_KERNEL_WORK;
        is_small.then(|| Code::Kernel(Box::new(KernelCall { kernel, operands, to, codes })))
    }

    /// Computes a cluster, if one call of machine code does, in little time. Those that one does are compiled already.
    pub(super) fn cluster(&mut self, scope: &mut Scope, cluster: &Cluster, outputs: &[Target]) -> Option<()> {
        let work = cluster.work();
        if !cluster.runs_at_once || work > MAX_SMALL_LOOP_KERNEL_WORK {
            return None;
        }
        let operands = cluster.inputs.iter().map(|input| self.location(scope, &input.operand));
        let operands = operands.collect::<Option<SmallVec<[Location; 8]>>>()?;
        // New memory, of one result after the other.
        let mut memories: SmallVec<[Small; 4]> = SmallVec::new();
        for Target { slot, dtype, shape } in outputs {
            if self.needs_home(scope, *slot) || is_few(*dtype, shape) {
                return None;
            }
            let small = self.small(*dtype, shape)?;
            scope.homes[*slot] = Some(Home::Small(small));
            memories.push(small);
        }
        let (first, last) = (memories.first()?, memories.last()?);
        let to = Small { at: first.at, bytes: last.at + last.bytes - first.at };
        let results = memories.iter().map(|small| (small.at - to.at, small.bytes)).collect();
        let codes = 1 + isize::try_from(work / SMALL_LOOP_CODE_WORK).ok()?;
        let cluster = cluster.clone();
        self.codes.push(Code::Cluster(Box::new(ClusterCall { cluster, operands, to, results, codes })));
        Some(())
    }

    /// Forgets the earlier values of the arrays of which parts have been replaced since there were as many
    /// stores.
    pub(super) fn forget_replaced(&self, scope: &mut Scope, stores: usize) {
        let replaced = &self.stores[stores..];
        for home in &mut scope.homes {
            if let Some(Home::Replaced(array)) = home
                && replaced.contains(array)
            {
                *home = None;
            }
        }
    }

    /// Computes an operation with a result of few elements, if each takes an instruction.
    fn few(&mut self, scope: &mut Scope, calculation: Calculation<'_>) -> Option<()> {
        match calculation.operation {
            Operation::Binary(_)
            | Operation::Unary(..)
            | Operation::AsType
            | Operation::Select
            | Operation::Clip => self.elementwise(scope, calculation),
            Operation::Transpose(_)
            | Operation::Broadcast(_)
            | Operation::Reverse(_)
            | Operation::Concatenate(_) => {
                let elements = self.rearranged(scope, calculation)?;
                self.alias(scope, calculation.output, elements)
            }
            Operation::Slice { starts, lengths, strides } => {
                if let Some(elements) = self.rearranged(scope, calculation) {
                    return self.alias(scope, calculation.output, elements);
                }
                self.load(scope, (starts, lengths, strides), calculation)
            }
            Operation::Reduce(..) | Operation::Dot { .. } => self.fold(scope, calculation),
            _ => None,
        }
    }

    /// The elements of a result that has those of its operands in another order.
    fn rearranged(&mut self, scope: &Scope, calculation: Calculation<'_>) -> Option<Elements> {
        let Calculation { operation, inputs, output: Target { shape, .. } } = calculation;
        // The operation moves the numbers of registers as it moves elements.
        let starts = match operation {
            Operation::Slice { .. } => 1,
            _ => inputs.len(),
        };
        let mut operands: Vec<(DType, &[usize], Vec<u8>)> = Vec::with_capacity(inputs.len());
        for (index, operand) in inputs.iter().enumerate() {
            operands.push(if index < starts {
                let elements = self.elements(scope, operand)?;
                let numbers = elements.iter().flat_map(|register| register.to_ne_bytes()).collect();
                (DType::U16, &operand.shape, numbers)
            } else {
                let register = self.number(scope, operand)?;
                let start = self.value_of(register)?.to_ne_bytes();
                (operand.dtype, &operand.shape, start[..operand.dtype.width()].to_vec())
            });
        }
        let tensors = operands.iter().map(|(dtype, shape, bytes)| Tensor::new("while", *dtype, shape, bytes));
        let tensors = tensors.collect::<Result<Vec<_>, _>>().ok()?;
        let mut numbers = vec![0; layout::size(shape)? * DType::U16.width()];
        let out = Output { dtype: DType::U16, shape, bytes: &mut numbers };
        operation.run(smallvec![out], &tensors).ok()?;
        Some(numbers.chunks_exact(2).map(|bytes| Register::from_ne_bytes([bytes[0], bytes[1]])).collect())
    }

    /// Computes an elementwise operation, if each element takes an instruction.
    fn elementwise(&mut self, scope: &mut Scope, calculation: Calculation<'_>) -> Option<()> {
        let Calculation { operation, inputs, output } = calculation;
        let mut operands = SmallVec::<[Elements; MAX_OPERANDS]>::new();
        for operand in inputs {
            let elements = self.elements(scope, operand)?;
            operands.push(broadcast(&elements, &operand.shape, &output.shape)?);
        }
        let size = layout::size(&output.shape)?;
        let mut computed = SmallVec::<[Computed; 4]>::new();
        for index in 0..size {
            let registers = operands.iter().map(|elements| elements[index]).collect();
            let code = self.element_code(operation, inputs, registers, output.dtype)?;
            // A kernel computes several elements in the time of one.
            if size > 1 && matches!(code, Code::Call(_)) {
                return None;
            }
            computed.push(self.known(code)?);
        }
        let elements = computed.into_iter().map(|computed| self.register_of(computed));
        let elements = elements.collect::<Option<Elements>>()?;
        self.alias(scope, output, elements)
    }

    /// The register with the result of an instruction, which is added if it has to be.
    pub(super) fn computed(&mut self, code: Code) -> Option<Register> {
        let computed = self.known(code)?;
        self.register_of(computed)
    }

    /// A number as one of another type.
    pub(super) fn converted(&mut self, register: Register, from: DType, to: DType) -> Option<Register> {
        let Some(convert) = conversion(from, to) else { return Some(register) };
        let dtypes = [from, to];
        let [from, to] = [Typed::new(register, from), Typed::new(0, to)];
        self.computed(Code::Convert { convert, dtypes, from, to })
    }

    fn register_of(&mut self, computed: Computed) -> Option<Register> {
        match computed {
            Computed::Here(register) => Some(register),
            Computed::By(code) => {
                let to = self.register()?;
                self.codes.push(code.with_result(to));
                Some(to)
            }
        }
    }

    /// The register in which the result of an instruction is already, or the instruction.
    fn known(&mut self, code: Code) -> Option<Computed> {
        let value = match code {
            Code::Move { from, .. } => return Some(Computed::Here(from)),
            Code::Select { truth, operands: [a, b], .. } => match self.value_of(truth.register) {
                Some(value) => return Some(Computed::Here(if truth.holds_for(value) { a } else { b })),
                None => None,
            },
            Code::Binary { by, operands: [a, b], .. } => {
                self.value_of(a).zip(self.value_of(b)).map(|(a, b)| (by.kernel)(a, b))
            }
            Code::Function { by, from, .. } => self.value_of(from).map(|value| (by.kernel)(value, 0)),
            Code::Checked(ref checked) => {
                let [a, b] = checked.operands;
                let values = self.value_of(a).zip(self.value_of(b));
                values.filter(|&(_, b)| !(checked.is_faulty)(b)).map(|(a, b)| (checked.kernel)(a, b))
            }
            Code::Convert { convert, from, to, .. } => self.value_of(from.register).map(|value| {
                let mut bytes = [0; REGISTER_BYTES];
                let from = &value.to_ne_bytes()[..usize::from(from.width)];
                convert(from, &mut bytes[..usize::from(to.width)]);
                u64::from_ne_bytes(bytes)
            }),
            _ => None,
        };
        Some(match value {
            Some(value) => Computed::Here(self.constant(value)?),
            None => Computed::By(code),
        })
    }

    /// The instruction that computes an element of an elementwise operation. Its result goes to no register
    /// yet.
    fn element_code(
        &mut self,
        operation: &Operation,
        inputs: &[Operand],
        registers: SmallVec<[Register; MAX_OPERANDS]>,
        out: DType,
    ) -> Option<Code> {
        let dtypes: SmallVec<[DType; MAX_OPERANDS]> = inputs.iter().map(|input| input.dtype).collect();
        let call = |plan: &Plan, operands: &[(Register, DType)]| {
            let operands = operands.iter().map(|&(register, dtype)| Typed::new(register, dtype));
            let (op, operands) = (operation.name(), operands.collect());
            Code::Call(Box::new(NumberCall { op, dtypes: dtypes.clone(), plan: *plan, operands, to: 0 }))
        };
        Some(match (operation, &registers[..], &dtypes[..]) {
            (Operation::Binary(op), &[a, b], &[from, other]) => {
                let constants: [Option<u64>; 2] = [a, b].map(|register| self.value_of(register));
                let bytes = constants.map(|value| value.unwrap_or(0).to_ne_bytes());
                let source = |index: usize| match constants[index] {
                    Some(_) => Source::Scalar(&bytes[index][..dtypes[index].width()]),
                    None => Source::Dense { bytes: &[], width: dtypes[index].width() },
                };
                let given = [(from, source(0)), (other, source(1))];
                let (mut op, mut operands) = (*op, [(a, from), (b, other)]);
                let mut numbers = Default::default();
                if let Some(simpler) = ops::binary::simplified(op, out, given, &mut numbers) {
                    op = simpler.op;
                    for (operand, simpler) in operands.iter_mut().zip(simpler.operands) {
                        let register = match simpler.converted(dtypes[simpler.index]) {
                            Some(number) => self.constant(word(number))?,
                            None => registers[simpler.index],
                        };
                        *operand = (register, simpler.dtype);
                    }
                }
                self.binary(op, out, operands, [from, other], call)?
            }
            (Operation::Unary(UnaryOp::Negate, _), &[a], &[from])
                if from == out && !from.is_packed() && from.is_integer() =>
            {
                let by = NumberOperation::new(BinaryOp::Subtract, out)?;
                Code::Binary { by, operands: [self.constant(0)?, a], to: 0 }
            }
            (Operation::Unary(op @ (UnaryOp::Negate | UnaryOp::Abs), _), &[a], &[from])
                if from == out && matches!(from, DType::F32 | DType::F64) =>
            {
                let sign = if from == DType::F64 { 1 << 63 } else { word(&(1_u32 << 31).to_ne_bytes()) };
                let (op, mask) = match op {
                    UnaryOp::Negate => (BinaryOp::BitwiseXor, sign),
                    _ => (BinaryOp::BitwiseAnd, !sign),
                };
                let by = NumberOperation::new(op, DType::U64)?;
                Code::Binary { by, operands: [a, self.constant(mask)?], to: 0 }
            }
            (Operation::Unary(op, math), &[a], &[from]) => {
                match NumberFunction::new(*op, *math, from).filter(|_| from == out) {
                    Some(by) => Code::Function { by, from: a, to: 0 },
                    None => call(ops::unary::plan(*op, *math, out, from).ok()?, &[(a, from)]),
                }
            }
            (Operation::AsType, &[from], &[dtype]) => match conversion(dtype, out) {
                Some(convert) => {
                    let [from, to] =
                        [(from, dtype), (0, out)].map(|(register, dtype)| Typed::new(register, dtype));
                    Code::Convert { convert, dtypes: [dtype, out], from, to }
                }
                None => Code::Move { from, to: 0 },
            },
            (Operation::Select, &[p, a, b], &[predicate, x, y]) => {
                let is_same = |dtype| dtype == out || convert::conversion(dtype, out).is_none();
                match Truth::new(p, predicate) {
                    Some(truth) if is_same(x) && is_same(y) => {
                        Code::Select { truth, operands: [a, b], to: 0 }
                    }
                    _ => {
                        let plan = ops::ternary::select_plan(out, [predicate, x, y]);
                        call(&plan, &[(p, predicate), (a, x), (b, y)])
                    }
                }
            }
            (Operation::Clip, &[a, min, max], &[x, y, z]) => {
                let by = |op| NumberOperation::new(op, out).filter(|_| [x, y, z] == [out; 3]);
                match (by(BinaryOp::Max), by(BinaryOp::Min)) {
                    (Some(larger), Some(smaller)) => {
                        let raised = self.computed(Code::Binary { by: larger, operands: [min, a], to: 0 })?;
                        Code::Binary { by: smaller, operands: [max, raised], to: 0 }
                    }
                    _ => call(&ops::ternary::clip_plan(out, [x, y, z]).ok()?, &[(a, x), (min, y), (max, z)]),
                }
            }
            _ => return None,
        })
    }

    /// The operands of an integer operation, of which one has another type than the result, in the result's
    /// type, if that gives the same bits.
    fn in_one_type(
        &mut self,
        op: BinaryOp,
        out: DType,
        operands: [(Register, DType); 2],
    ) -> Option<[Register; 2]> {
        use BinaryOp::{Add, BitwiseAnd, BitwiseOr, BitwiseXor, LeftShift, Multiply, RightShift, Subtract};
        let is_integer = |dtype: DType| dtype.is_integer() && !dtype.is_packed();
        let [left, right] = operands.map(|operand| operand.1);
        let is_modular = match op {
            Add | Subtract | Multiply | BitwiseAnd | BitwiseOr | BitwiseXor => true,
            // The number of bits stays the same number.
            LeftShift => right == out || right.kind() == Kind::Unsigned && right.embeds_in(out),
            RightShift => left == out && right.kind() == Kind::Unsigned && right.embeds_in(out),
            _ => false,
        };
        if !is_modular || ![out, left, right].into_iter().all(is_integer) || [left, right] == [out; 2] {
            return None;
        }
        let mut registers = [0; 2];
        for (register, (from, dtype)) in registers.iter_mut().zip(operands) {
            *register = self.converted(from, dtype, out)?;
        }
        Some(registers)
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        out: DType,
        [(a, from), (b, other)]: [(Register, DType); 2],
        dtypes: [DType; 2],
        call: impl Fn(&Plan, &[(Register, DType)]) -> Code,
    ) -> Option<Code> {
        let ([a, b], dtype) = match self.in_one_type(op, out, [(a, from), (b, other)]) {
            Some(registers) => (registers, Some(out)),
            None => ([a, b], (from == other).then_some(from)),
        };
        let kernel = dtype.and_then(|dtype| Some((dtype, ops::binary::scalar_kernel(op, out, dtype)?)));
        Some(match kernel {
            Some((dtype, (kernel, None))) => {
                Code::Binary { by: NumberOperation { op, dtype, kernel }, operands: [a, b], to: 0 }
            }
            Some((_, (kernel, Some((is_faulty, fault))))) => {
                let operands = [a, b];
                Code::Checked(Box::new(Checked { op, dtypes, kernel, is_faulty, fault, operands, to: 0 }))
            }
            None => call(ops::binary::plan(op, out, [from, other]).ok()?, &[(a, from), (b, other)]),
        })
    }

    /// Reads the elements of a slice of few elements.
    fn load(
        &mut self,
        scope: &mut Scope,
        part: (&[Start], &[usize], &[usize]),
        Calculation { inputs, output, .. }: Calculation<'_>,
    ) -> Option<()> {
        let [tensor, ..] = inputs else { return None };
        let elements = self.elements_of(scope, tensor, part, inputs)?;
        let array = self.array(scope, tensor)?;
        let Home::Elements(to) = self.define(scope, output.slot, output.dtype, &output.shape)? else {
            return None;
        };
        for (bytes, &to) in elements.into_iter().zip(&to[..]) {
            self.codes.push(Code::Load(Box::new(Load { from: Part { array, bytes }, to })));
        }
        Some(())
    }

    /// A slice that is read where it is: its elements are next to each other in an array that stays as it is
    /// as long as the slice is read.
    fn part(&mut self, scope: &Scope, calculation: Calculation<'_>) -> Option<Part> {
        let Calculation { operation, inputs, output } = calculation;
        let (Operation::Slice { starts, lengths, strides }, [tensor, ..]) = (operation, inputs) else {
            return None;
        };
        if self.is_guarded || is_few(output.dtype, &output.shape) || self.needs_home(scope, output.slot) {
            return None;
        }
        let array = match self.home(scope, tensor)? {
            Home::Tensor(index) => Array::Tensor(index),
            Home::Small(small) => Array::Small(small),
            Home::Replaced(array) if scope.late_reads.get(output.slot) == Some(&0) => array,
            _ => return None,
        };
        if strides.iter().any(|&stride| stride != 1) || !is_run(lengths, &tensor.shape) {
            return None;
        }
        let length = byte_size("while", output.dtype, &output.shape).ok()?;
        let bytes = self.bytes_from(scope, tensor, (starts, lengths), inputs)?;
        Some(Part { array, bytes: Bytes { length, ..bytes } })
    }

    /// The bytes of each element of a part of an array.
    fn elements_of(
        &mut self,
        scope: &Scope,
        array: &Operand,
        (starts, lengths, strides): (&[Start], &[usize], &[usize]),
        inputs: &[Operand],
    ) -> Option<Vec<Bytes>> {
        let first = self.bytes_from(scope, array, (starts, lengths), inputs)?;
        let mut distances = vec![0];
        let mut distance = array.dtype.width();
        for ((&dim, &length), &stride) in array.shape.iter().zip(lengths).zip(strides).rev() {
            let steps = (0..length).step_by(stride.max(1)).map(|step| step * distance);
            distances =
                steps.flat_map(|step| distances.iter().map(move |distance| distance + step)).collect();
            distance = distance.checked_mul(dim)?;
        }
        Some(
            distances
                .into_iter()
                .map(|distance| Bytes { first: first.first + distance, ..first.clone() })
                .collect(),
        )
    }

    /// The bytes of the first element of a part of an array.
    fn bytes_from(
        &mut self,
        scope: &Scope,
        array: &Operand,
        (starts, lengths): (&[Start], &[usize]),
        inputs: &[Operand],
    ) -> Option<Bytes> {
        let rank = array.shape.len();
        if array.dtype.is_packed() || [starts.len(), lengths.len()] != [rank; 2] {
            return None;
        }
        let length = array.dtype.width();
        let mut bytes = Bytes { first: 0, length, indices: SmallVec::new() };
        let mut stride = length;
        for axis in (0..rank).rev() {
            let last = array.shape[axis].checked_sub(lengths[axis])?;
            match starts[axis] {
                Start::At(at) => bytes.first += at.min(last) * stride,
                Start::Input(input) => {
                    let operand = inputs.get(input)?;
                    if !operand.dtype.is_integer() {
                        return None;
                    }
                    let register = self.number(scope, operand)?;
                    let is_signed = operand.dtype.kind() == Kind::Signed;
                    let width = operand.dtype.width() as u8;
                    match self.value_of(register) {
                        Some(at) => bytes.first += integer(at, is_signed, width).min(last) * stride,
                        None => bytes.indices.push(Index { register, is_signed, width, last, stride }),
                    }
                }
            }
            stride = stride.checked_mul(array.shape[axis])?;
        }
        bytes.indices.retain(|index| index.last > 0);
        Some(bytes)
    }
}

/// The result of an instruction.
enum Computed {
    /// In a register already.
    Here(Register),
    /// By the instruction.
    By(Code),
}

/// The conversion of a number in a register to another type; `None` if the register stays as it is.
fn conversion(from: DType, to: DType) -> Option<Convert> {
    // The bytes after an unsigned integer are zero.
    let is_wider = from.kind() == Kind::Unsigned && to.is_integer() && from.width() <= to.width();
    if is_wider && cfg!(target_endian = "little") { None } else { convert::conversion(from, to) }
}

/// Whether the elements of a part of an array, given its lengths, are next to each other.
fn is_run(lengths: &[usize], shape: &[usize]) -> bool {
    lengths
        .iter()
        .zip(shape)
        .skip_while(|(length, _)| **length == 1)
        .skip(1)
        .all(|(length, dim)| length == dim)
}

/// The elements of a value that is broadcast to a shape.
fn broadcast(elements: &Elements, from: &[usize], to: &[usize]) -> Option<Elements> {
    if from == to {
        return Some(elements.clone());
    }
    if let [element] = elements[..] {
        return Some(vec![element; layout::size(to)?].into());
    }
    let layout = Layout::contiguous(from).broadcast_right(to)?;
    let mut offsets = vec![layout.offset as isize];
    for (&count, &stride) in layout.shape.iter().zip(&layout.strides) {
        let steps = |offset: isize| (0..count as isize).map(move |step| offset + step * stride);
        offsets = offsets.into_iter().flat_map(steps).collect();
    }
    offsets.into_iter().map(|offset| elements.get(usize::try_from(offset).ok()?).copied()).collect()
}
