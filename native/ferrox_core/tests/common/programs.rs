//! What the tests of programs share: a host, and a builder of regions.

use ferrox_core::cost::Work;
use ferrox_core::graph::source::{Operand, Place, Region, Slot, Step, Target};
use ferrox_core::graph::{Execution, Host, Operation, Outcome, Program, Wish};
use ferrox_core::layout::Shape;
use ferrox_core::ops::binary::BinaryOp;
use ferrox_core::{DType, Error};

/// A host that counts the blocks that are alive, and pauses when it is told to.
pub struct TestHost {
    pub pauses: bool,
    pub paused: bool,
    pub allocated: usize,
}

impl Host for TestHost {
    type Block = Vec<u8>;

    fn allocate(&mut self, bytes: usize, _is_result: bool) -> Option<Vec<u8>> {
        self.allocated += 1;
        Some(vec![0xa5; bytes])
    }

    fn before(&mut self, _work: Work) -> Wish {
        self.paused = self.pauses && !self.paused;
        if self.paused { Wish::Pause } else { Wish::Continue }
    }
}

/// Runs a program to its end; `answer` gives the results of calls.
pub fn run_with(
    program: &Program,
    arguments: &[&[u8]],
    host: &mut TestHost,
    mut answer: impl FnMut(usize, Vec<Vec<u8>>) -> Vec<Vec<u8>>,
) -> Result<Vec<Vec<u8>>, Error> {
    let mut execution = Execution::new(program, arguments)?;
    loop {
        match execution.resume(program, arguments, host)? {
            Outcome::Done(values) => {
                let bytes = values.iter().map(|value| value.bytes(arguments, program.literals()).to_vec());
                return Ok(bytes.collect());
            }
            Outcome::Paused => {}
            Outcome::Call { callback, values } => {
                let values = values.iter().map(|value| value.bytes(arguments, program.literals()).to_vec());
                let answers = answer(callback, values.collect());
                execution.answer(program, answers)?;
            }
        }
    }
}

/// A host without pauses.
pub fn host() -> TestHost {
    TestHost { pauses: false, paused: false, allocated: 0 }
}

/// Runs a program without calls.
pub fn run(program: &Program, arguments: &[&[u8]]) -> Result<Vec<Vec<u8>>, Error> {
    run_with(program, arguments, &mut host(), |_, _| unreachable!("no calls"))
}

/// Builds the steps of a region.
#[derive(Clone, Default)]
pub struct Builder {
    pub parameters: Vec<(DType, Shape)>,
    pub slots: usize,
    pub steps: Vec<Step>,
}

impl Builder {
    /// Adds a parameter.
    pub fn parameter(&mut self, dtype: DType, shape: &[usize]) -> Operand {
        let shape = Shape::from_slice(shape);
        self.parameters.push((dtype, shape.clone()));
        Operand { place: Place::Slot(self.slot()), dtype, shape }
    }

    /// Adds a slot.
    pub fn slot(&mut self) -> Slot {
        self.slots += 1;
        self.slots - 1
    }

    /// Adds an operation.
    pub fn add(
        &mut self,
        operation: Operation,
        inputs: &[&Operand],
        dtype: DType,
        shape: &[usize],
    ) -> Operand {
        let (slot, shape) = (self.slot(), Shape::from_slice(shape));
        let inputs = inputs.iter().map(|&operand| operand.clone()).collect();
        let outputs = vec![Target { slot, dtype, shape: shape.clone() }];
        self.steps.push(Step::Operation { operation, inputs, outputs });
        Operand { place: Place::Slot(slot), dtype, shape }
    }

    /// A loop with the regions 1 and 2, and its values at the end.
    pub fn repeat(&mut self, initial: Vec<Operand>) -> Vec<Operand> {
        let outputs: Vec<Slot> = initial.iter().map(|_| self.slot()).collect();
        let ends = outputs.iter().zip(&initial);
        let ends = ends.map(|(&slot, value)| Operand { place: Place::Slot(slot), ..value.clone() }).collect();
        self.steps.push(Step::While { condition: 1, body: 2, initial, outputs });
        ends
    }

    /// The region with these results.
    pub fn region(self, results: &[&Operand]) -> Region {
        let results = results.iter().map(|&operand| operand.clone()).collect();
        Region { parameters: self.parameters, slots: self.slots, steps: self.steps, results }
    }
}

/// A literal as an operand.
pub fn literal(number: usize, dtype: DType, shape: &[usize]) -> Operand {
    Operand { place: Place::Literal(number), dtype, shape: Shape::from_slice(shape) }
}

/// The bytes of numbers.
pub fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// The operation `add`.
pub fn add() -> Operation {
    Operation::Binary(BinaryOp::Add)
}

/// Results in which NaN has no bits: which of two NaN an operation returns depends on the instructions. A result
/// beyond the `dtypes` is a number of one of these types.
pub fn without_nan(results: &Result<Vec<Vec<u8>>, Error>, dtypes: &[DType]) -> Result<Vec<Vec<u8>>, Error> {
    let mut results = results.clone();
    for (index, bytes) in results.iter_mut().flatten().enumerate() {
        let width = dtypes.get(index).map_or(bytes.len(), |dtype| dtype.width());
        let is_float =
            dtypes.get(index).is_none_or(|dtype| [DType::BF16, DType::F32, DType::F64].contains(dtype));
        for element in bytes.chunks_exact_mut(width.max(1)).filter(|_| is_float) {
            let is_nan = match element[..] {
                [a, b] => half::bf16::from_ne_bytes([a, b]).is_nan(),
                [a, b, c, d] => f32::from_ne_bytes([a, b, c, d]).is_nan(),
                [a, b, c, d, e, f, g, h] => f64::from_ne_bytes([a, b, c, d, e, f, g, h]).is_nan(),
                _ => false,
            };
            if is_nan {
                element.fill(0xff);
            }
        }
    }
    results
}
