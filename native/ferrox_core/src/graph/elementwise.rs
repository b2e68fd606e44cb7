//! Elementwise operations, prepared for the types and shapes of their operands.
//!
//! Problem: to find out how operands broadcast takes longer than to compute a few elements. Technique: it
//! is found out when the program is made. Operands that are numbers or dense are read in place; a small
//! operand that is repeated is gathered first, by a copy that is prepared too (`moves`).

use std::cell::Cell;

use smallvec::SmallVec;

use super::moves::Move;
use super::operand::Operand;
use super::operation::{Operation, Typed};
use crate::cost::{self, MIN_BYTES_TO_ALIGN, MIN_WORK_PER_THREAD};
use crate::exec::elementwise::scratch::{aligned, take, with_kept};
use crate::exec::elementwise::{self, Kernel, MAX_OPERANDS, Operand as KernelOperand, Plan, Source};
use crate::layout;
use crate::ops;
use crate::ops::binary::BinaryOp;
use crate::ops::unary::UnaryOp;
use crate::{DType, Error, Fault};

thread_local! {
    /// The memory in which a thread gathered its last operands.
    static GATHERED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// An elementwise operation with a dense result.
#[derive(Debug)]
pub(super) struct Elementwise {
    call: Call,
    accesses: SmallVec<[Access; MAX_OPERANDS]>,
    /// The number of bytes of all operands that are gathered.
    gathered_bytes: usize,
    /// The kernel, if it can always be called at once: one thread computes the few elements, and operands are
    /// read in the types that they have.
    direct: Option<Kernel>,
}

#[derive(Debug)]
enum Call {
    Binary(BinaryOp, &'static Plan),
    Unary(UnaryOp, &'static Plan),
    /// `select` or `clip`, by its name.
    Ternary(&'static str, Box<Plan>),
}

/// How an operand is read.
#[derive(Debug)]
enum Access {
    /// One element for each element of the result, in the same order.
    Dense,
    /// One element for all elements of the result.
    Scalar,
    /// Elements that are repeated.
    Repeated(Box<Move>),
}

impl Elementwise {
    /// An operation with one result, if its operands can be read in one of these ways.
    pub(super) fn new(
        operation: &Operation,
        (dtype, shape): Typed<'_>,
        inputs: &[Operand],
    ) -> Result<Option<Self>, Error> {
        if dtype.is_packed() || inputs.iter().any(|input| input.dtype.is_packed()) {
            return Ok(None);
        }
        let call = match (operation, inputs) {
            (Operation::Binary(op), [a, b]) => {
                Call::Binary(*op, ops::binary::plan(*op, dtype, [a.dtype, b.dtype])?)
            }
            (Operation::Unary(op, math), [a]) if *a.shape == *shape => {
                Call::Unary(*op, ops::unary::plan(*op, *math, dtype, a.dtype)?)
            }
            (Operation::Select, [a, b, c]) => {
                let plan = ops::ternary::select_plan(dtype, [a.dtype, b.dtype, c.dtype]);
                Call::Ternary(operation.name(), Box::new(plan))
            }
            (Operation::Clip, [a, b, c]) => {
                let plan = ops::ternary::clip_plan(dtype, [a.dtype, b.dtype, c.dtype])?;
                Call::Ternary(operation.name(), Box::new(plan))
            }
            _ => return Ok(None),
        };
        let (mut accesses, mut gathered_bytes) = (SmallVec::new(), 0);
        for (index, Operand { dtype, shape: own, .. }) in inputs.iter().enumerate() {
            accesses.push(if **own == *shape {
                Access::Dense
            } else if own.len() > shape.len() {
                return Ok(None);
            } else if layout::size(own) == Some(1) {
                Access::Scalar
            } else {
                let Some(repeated) = Move::broadcast(index, *dtype, own, shape) else { return Ok(None) };
                let size: usize = shape.iter().product();
                gathered_bytes += aligned(size * dtype.width());
                Access::Repeated(Box::new(repeated))
            });
        }
        let direct = gathered_bytes == 0 && call.is_direct(dtype, shape, inputs);
        let direct = direct.then_some(call.plan().kernel);
        Ok(Some(Elementwise { call, accesses, gathered_bytes, direct }))
    }

    /// Computes the result, given its operands and their bytes.
    pub(super) fn run<'b>(
        &self,
        output: Typed<'_>,
        inputs: &[Operand],
        bytes: impl Fn(usize) -> &'b [u8],
        out: &mut [u8],
    ) -> Result<(), Error> {
        if let Some(kernel) = self.direct {
            let mut operands = [KernelOperand::Scalar(&[]); MAX_OPERANDS];
            for ((index, access), operand) in self.accesses.iter().enumerate().zip(&mut operands) {
                *operand = match access {
                    Access::Scalar => KernelOperand::Scalar(bytes(index)),
                    Access::Dense | Access::Repeated(_) => KernelOperand::Slice(bytes(index)),
                };
            }
            return kernel(out, &operands[..self.accesses.len()])
                .map_err(|fault| self.call.error(inputs, fault));
        }
        let mut sources = [Source::Scalar(&[]); MAX_OPERANDS];
        let width = |index: usize| inputs[index].dtype.width();
        for ((index, access), source) in self.accesses.iter().enumerate().zip(&mut sources) {
            match access {
                Access::Dense => *source = Source::Dense { bytes: bytes(index), width: width(index) },
                Access::Scalar => *source = Source::Scalar(bytes(index)),
                Access::Repeated(_) => {}
            }
        }
        if self.gathered_bytes == 0 {
            return self.compute(output, inputs, sources, out);
        }
        let size = out.len() / output.0.width();
        with_kept(&GATHERED, self.gathered_bytes, |mut memory| {
            // Those above live longer than the memory.
            let mut sources = sources;
            for ((index, access), source) in self.accesses.iter().enumerate().zip(&mut sources) {
                if let Access::Repeated(elements) = access {
                    let gathered = take(&mut memory, size * width(index));
                    elements.run(&bytes, gathered);
                    *source = Source::Dense { bytes: gathered, width: width(index) };
                }
            }
            self.compute(output, inputs, sources, out)
        })
    }

    #[inline(always)]
    fn compute(
        &self,
        output: Typed<'_>,
        inputs: &[Operand],
        sources: [Source<'_>; MAX_OPERANDS],
        out: &mut [u8],
    ) -> Result<(), Error> {
        let operand = |index: usize| (inputs[index].dtype, sources[index]);
        match &self.call {
            Call::Binary(op, plan) => ops::binary::run(*op, plan, output, out, [operand(0), operand(1)]),
            Call::Unary(op, plan) => ops::unary::run(*op, plan, output, out, operand(0)),
            Call::Ternary(_, plan) => {
                let sources = &sources[..inputs.len()];
                elementwise::run(plan, output.1, out, sources).map_err(|fault| self.call.error(inputs, fault))
            }
        }
    }
}

impl Call {
    fn plan(&self) -> &Plan {
        match self {
            Call::Binary(_, plan) | Call::Unary(_, plan) => plan,
            Call::Ternary(_, plan) => plan,
        }
    }

    /// Whether the kernel computes a result of this type and shape, which is small, from its operands as they
    /// are.
    fn is_direct(&self, dtype: DType, shape: &[usize], inputs: &[Operand]) -> bool {
        let plan = self.plan();
        let may_be_simpler = match (self, inputs) {
            (Call::Binary(op, _), [a, b]) => {
                let has_number = inputs.iter().any(|operand| layout::size(&operand.shape) == Some(1));
                ops::binary::may_be_simpler(*op, dtype, [a.dtype, b.dtype], has_number)
            }
            _ => false,
        };
        let is_small = layout::size(shape).is_some_and(|size| {
            let bytes = 1..MIN_BYTES_TO_ALIGN;
            bytes.contains(&(size * dtype.width())) && cost::work(size, plan.cost) < MIN_WORK_PER_THREAD
        });
        let loads = &plan.loads[..inputs.len()];
        is_small && !may_be_simpler && plan.store.is_none() && loads.iter().all(Option::is_none)
    }

    #[cold]
    fn error(&self, inputs: &[Operand], fault: Fault) -> Error {
        let op = match self {
            Call::Binary(op, _) => op.name(),
            Call::Unary(op, _) => op.name(),
            Call::Ternary(name, _) => name,
        };
        Error::Element { op, dtypes: inputs.iter().map(|input| input.dtype).collect(), fault }
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::super::operand::Place;
    use super::*;
    use crate::ops::math::Math;
    use crate::tensor::{Output, Tensor};

    /// Compares prepared operations with operations on tensors, for operands of all ways to broadcast.
    #[test]
    fn prepared_operations_give_the_bits_of_operations() {
        let shapes: [&[usize]; 9] =
            [&[], &[1], &[5], &[1, 5], &[3, 1], &[3, 5], &[2, 3, 5], &[2, 1, 1], &[2, 1, 5]];
        let operations = [
            Operation::Binary(BinaryOp::Subtract),
            Operation::Binary(BinaryOp::Less),
            Operation::Unary(UnaryOp::Exp, Math::Exact),
            Operation::Select,
            Operation::Clip,
        ];
        let mut repeated = 0;
        for operation in &operations {
            let arity = match operation {
                Operation::Unary(..) => 1,
                Operation::Binary(_) => 2,
                _ => 3,
            };
            for code in 0..shapes.len().pow(arity) {
                let own: Vec<&[usize]> =
                    (0..arity).map(|i| shapes[code / shapes.len().pow(i) % shapes.len()]).collect();
                for (from, to) in
                    [(DType::F32, DType::F32), (DType::S32, DType::F32), (DType::S32, DType::S64)]
                {
                    let output = (to, &[2, 3, 5][..]);
                    let inputs: Vec<Operand> = own
                        .iter()
                        .map(|&own| Operand { place: Place::Slot(0), dtype: from, shape: own.into() })
                        .collect();
                    let Ok(Some(prepared)) = Elementwise::new(operation, output, &inputs) else { continue };
                    let bytes: Vec<Vec<u8>> = (0..)
                        .zip(&own)
                        .map(|(seed, own)| {
                            let size = own.iter().product::<usize>();
                            let number = |i: usize| ((i * 7 + seed * 3) % 11) as i32 - 5;
                            let element = |i: usize| match from {
                                DType::F32 => (number(i) as f32).to_ne_bytes(),
                                _ => number(i).to_ne_bytes(),
                            };
                            (0..size).flat_map(element).collect()
                        })
                        .collect();
                    let tensors: Vec<Tensor<'_>> = own
                        .iter()
                        .zip(&bytes)
                        .map(|(own, bytes)| Tensor::new("test", from, own, bytes).expect("as many bytes"))
                        .collect();
                    let (mut got, mut expected) = (vec![7; 30 * to.width()], vec![8; 30 * to.width()]);
                    let output = Output { dtype: to, shape: &[2, 3, 5], bytes: &mut expected };
                    operation.run(smallvec![output], &tensors).expect("no fault");
                    let output = (to, &[2, 3, 5][..]);
                    prepared.run(output, &inputs, |index| &bytes[index], &mut got).expect("no fault");
                    assert_eq!(got, expected, "{operation:?} {own:?} {from:?}");
                    repeated += usize::from(prepared.gathered_bytes > 0);
                }
            }
        }
        assert!(repeated > 500, "only {repeated} operations with operands that are repeated");
    }
}
