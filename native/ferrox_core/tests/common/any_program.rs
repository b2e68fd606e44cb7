//! A program of any bytes: of every step and operation, most with operands, options and results that
//! fit each other, some with others.

use ferrox_core::DType::{self, *};
use ferrox_core::cost::Work;
use ferrox_core::graph::source::{Branch, Clause, Operand, Place, Region, ReverseLoop, Slot, Step, Target};
use ferrox_core::graph::{
    ConvOptions, Execution, Host, Operation, Outcome, Program, Start, WindowOptions, Wish,
};
use ferrox_core::layout::{self, Shape};
use ferrox_core::ops::all_close::Tolerance;
use ferrox_core::ops::binary::BinaryOp;
use ferrox_core::ops::cumulative::CumulativeOp;
use ferrox_core::ops::fft::Transform;
use ferrox_core::ops::indexed::Update;
use ferrox_core::ops::linalg::{MatrixTransform, Method, NxAlgorithm, Problem, Triangular};
use ferrox_core::ops::math::Math;
use ferrox_core::ops::pad::Padding;
use ferrox_core::ops::reduce::{ReduceOp, TieBreak};
use ferrox_core::ops::sort::Direction;
use ferrox_core::ops::unary::UnaryOp;
use ferrox_core::ops::window::WindowOp;
use ferrox_core::ops::window_scatter::Choice;
use ferrox_core::{Error, ops, tensor};

use super::choices::Choices;
use super::number::{self, cast, from_bytes, to_bytes};
use super::programs::Builder;
use super::{Random, values};

/// The most elements of a value that is meant to fit.
const MAX_ELEMENTS: usize = 1 << 12;

/// The most bytes that the host has for a value.
const MAX_BYTES: usize = 1 << 24;

/// The most pieces of work between which a program may pause; then it is given up.
const MAX_PIECES: usize = 2_000;

/// The estimated work after which a program is given up, in picoseconds.
const MAX_WORK: Work = 2_000_000_000;

/// The shape that two shapes broadcast to, or the first one.
fn broadcast(a: &[usize], b: &[usize]) -> Shape {
    let rank = a.len().max(b.len());
    let size =
        |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis]);
    (0..rank).map(|axis| if size(a, axis) == 1 { size(b, axis) } else { size(a, axis) }).collect()
}

fn without(shape: &[usize], axes: &[usize]) -> Shape {
    (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect()
}

/// The number of positions of a window in padded elements.
fn positions(size: usize, window: usize, (low, high): (i64, i64), stride: usize, dilation: usize) -> usize {
    let padded = size as i128 + i128::from(low) + i128::from(high);
    let reach = (window.max(1) as i128 - 1) * dilation as i128 + 1;
    usize::try_from((padded - reach) / stride.max(1) as i128 + 1).unwrap_or(0)
}

/// A program, and what it is run with.
#[derive(Debug)]
pub struct AnyProgram {
    pub regions: Vec<Region>,
    pub literals: Vec<Vec<u8>>,
    pub arguments: Vec<Vec<u8>>,
    /// The types of its results.
    pub dtypes: Vec<DType>,
    /// The number of bytes of the result of each call.
    pub calls: Vec<usize>,
    /// Whether the program may be wrong, as one that writes a slot twice is: then its results have no
    /// meaning.
    pub wrong: bool,
}

/// What a program is drawn with.
struct Draw<'a> {
    choices: Choices<'a>,
    /// Regions but the first, which are there when all of those that they run are.
    regions: Vec<Region>,
    literals: Vec<Vec<u8>>,
    /// The number of bytes of the result of each call.
    calls: Vec<usize>,
}

impl AnyProgram {
    /// The program that the bytes choose.
    pub fn of(bytes: &[u8]) -> Self {
        let mut draw = Draw {
            choices: Choices::new(bytes),
            regions: Vec::new(),
            literals: Vec::new(),
            calls: Vec::new(),
        };
        let parameters: Vec<_> =
            (0..draw.choices.below(4)).map(|_| (draw.choices.dtype(), draw.choices.shape())).collect();
        let arguments = parameters.iter().map(|(dtype, shape)| draw.data(*dtype, shape)).collect();
        let count = draw.choices.below(3) + 1;
        let first = draw.region(&parameters, &vec![None; count], 0);
        let dtypes = first.results.iter().map(|result| result.dtype).collect();
        // Loops lead to later regions: those that were drawn first are the innermost.
        let last = draw.regions.len();
        let mut regions = vec![first];
        regions.extend(draw.regions.into_iter().rev());
        for region in &mut regions {
            renumber(&mut region.steps, last);
        }
        AnyProgram {
            regions,
            literals: draw.literals,
            arguments,
            dtypes,
            calls: draw.calls,
            wrong: draw.choices.wrong,
        }
    }
}

/// Numbers of regions in the order that they were drawn in become those of the reverse order, after the
/// first region. Numbers beyond the last region stay wrong.
fn renumber(steps: &mut [Step], last: usize) {
    let number = |region: &mut usize| *region = last.checked_sub(*region).unwrap_or(*region);
    for step in steps {
        match step {
            Step::Cond { clauses, otherwise, .. } => {
                for clause in clauses {
                    renumber(&mut clause.steps, last);
                    renumber(&mut clause.branch.steps, last);
                }
                renumber(&mut otherwise.steps, last);
            }
            Step::Unless { steps, .. } => renumber(steps, last),
            Step::While { condition, body, .. } => [condition, body].into_iter().for_each(number),
            Step::ReverseLoop(reverse) => {
                [&mut reverse.forward, &mut reverse.backward].into_iter().for_each(number);
            }
            Step::Fold { body, .. } => number(body),
            Step::Operation { .. } | Step::Call { .. } | Step::Cluster { .. } => {}
        }
    }
}

impl Draw<'_> {
    /// The data of a value, seldom of another size. Of a large value there are none.
    fn data(&mut self, dtype: DType, shape: &[usize]) -> Vec<u8> {
        let size = layout::size(shape).filter(|&size| size <= 1 << 16).unwrap_or(0);
        let random = &mut Random(self.choices.byte() as u64);
        let elements: Vec<u128> = if self.choices.below(3) == 0 {
            values(dtype, size, random).into_iter().map(|value| cast(value, dtype)).collect()
        } else {
            let small =
                |_| number::Number::Integer(random.below(7) as i128 - if dtype == U8 { 0 } else { 3 });
            (0..size).map(small).map(|value| cast(value, dtype)).collect()
        };
        let mut bytes = to_bytes(&elements, dtype);
        if self.choices.wrong(128) {
            bytes.pop();
        }
        bytes
    }

    fn literal(&mut self, dtype: DType, shape: &[usize]) -> Operand {
        let data = self.data(dtype, shape);
        self.literals.push(data);
        Operand { place: Place::Literal(self.literals.len() - 1), dtype, shape: Shape::from_slice(shape) }
    }

    /// A value that is there, or a literal; seldom with another type, shape or place.
    fn value(&mut self, values: &[Operand]) -> Operand {
        let recent = values.len().min(6);
        let mut value = if recent == 0 || self.choices.below(8) == 7 {
            let (dtype, shape) = (self.choices.dtype(), self.choices.shape());
            self.literal(dtype, &shape)
        } else {
            values[values.len() - 1 - self.choices.below(recent)].clone()
        };
        if self.choices.wrong(128) {
            match self.choices.below(4) {
                0 => value.dtype = self.choices.dtype(),
                1 => value.shape = self.choices.shape(),
                2 => value.place = Place::Slot(self.choices.number()),
                _ => value.place = Place::Literal(self.choices.number()),
            }
        }
        value
    }

    /// A value of a type and shape, the last one if there is any.
    fn value_like(&mut self, dtype: DType, shape: &[usize], values: &[Operand]) -> Operand {
        let skip = self.choices.below(2);
        let mut alike = values.iter().rev().filter(|value| value.dtype == dtype && value.shape[..] == *shape);
        let value = alike.clone().nth(skip).or_else(|| alike.next()).cloned();
        value.unwrap_or_else(|| self.literal(dtype, shape))
    }

    /// A number that indexes elements.
    fn indices(&mut self, shape: &[usize]) -> Operand {
        let dtype = *self.choices.pick(&[S32, S64, U8, U32]);
        let size = layout::size(shape).filter(|&size| size <= MAX_ELEMENTS).unwrap_or(0);
        let elements: Vec<u128> = (0..size).map(|_| self.choices.below(3) as u128).collect();
        self.literals.push(to_bytes(&elements, dtype));
        Operand { place: Place::Literal(self.literals.len() - 1), dtype, shape: Shape::from_slice(shape) }
    }

    /// A region with some parameters, whose results have these types and shapes, or any.
    fn region(
        &mut self,
        parameters: &[(DType, Shape)],
        results: &[Option<(DType, Shape)>],
        depth: usize,
    ) -> Region {
        let mut builder = Builder::default();
        let mut values: Vec<Operand> =
            parameters.iter().map(|(dtype, shape)| builder.parameter(*dtype, shape)).collect();
        let count = self.choices.below(if depth == 0 { 14 } else { 6 });
        self.steps(&mut builder, &mut values, count, depth);
        let results: Vec<Operand> = results
            .iter()
            .map(|result| match result {
                Some((dtype, shape)) => self.value_like(*dtype, shape, &values),
                None => self.value(&values),
            })
            .collect();
        builder.region(&results.iter().collect::<Vec<_>>())
    }

    fn steps(&mut self, builder: &mut Builder, values: &mut Vec<Operand>, count: usize, depth: usize) {
        for _ in 0..count {
            match self.choices.below(if depth < 3 { 24 } else { 18 }) {
                18 => self.cond(builder, values, depth),
                19 => self.repeat(builder, values, depth),
                20 => self.fold(builder, values, depth),
                21 => self.reverse_loop(builder, values, depth),
                22 => self.call(builder, values),
                23 => self.unless(builder, values, depth),
                _ => self.operation(builder, values),
            }
        }
    }

    /// A branch that begins with some steps, and the values that are there at its end.
    fn branch(
        &mut self,
        builder: &mut Builder,
        (first, values): (Vec<Step>, &[Operand]),
        depth: usize,
        results: impl FnOnce(&mut Self, &[Operand]) -> Vec<Operand>,
    ) -> (Branch, Vec<Operand>) {
        let before = std::mem::replace(&mut builder.steps, first);
        let mut values = values.to_vec();
        let count = self.choices.below(4);
        self.steps(builder, &mut values, count, depth + 1);
        let results = results(self, &values);
        (Branch { steps: std::mem::replace(&mut builder.steps, before), results }, values)
    }

    /// An operation that a branch may have computed before.
    fn unless(&mut self, builder: &mut Builder, values: &mut Vec<Operand>, depth: usize) {
        let before = std::mem::take(&mut builder.steps);
        let first = builder.slots;
        let test = self.value_like(U8, &[], values);
        self.operation(builder, values);
        let steps = std::mem::replace(&mut builder.steps, before);
        let computed = if self.choices.wrong(32) { self.choices.below(first + 1) } else { first };
        let unless = Step::Unless { computed, steps };
        if self.choices.below(2) == 0 {
            let (mut branch, _) = self.branch(builder, (vec![], &[]), depth, |_, _| vec![]);
            branch.steps.push(unless.clone());
            let clauses = vec![Clause { steps: vec![], predicate: test, branch }];
            let otherwise = Branch { steps: vec![], results: vec![] };
            builder.steps.push(Step::Cond { clauses, otherwise, outputs: vec![] });
        }
        builder.steps.push(unless);
    }

    fn cond(&mut self, builder: &mut Builder, values: &mut Vec<Operand>, depth: usize) {
        let count = self.choices.below(2) + 1;
        let types: Vec<(DType, Shape)> =
            (0..count).map(|_| self.value(values)).map(|value| (value.dtype, value.shape)).collect();
        let results = |this: &mut Self, values: &[Operand]| {
            types.iter().map(|(dtype, shape)| this.value_like(*dtype, shape, values)).collect()
        };
        // Branches that begin with the same steps have the same slots for their results.
        let (steps, common) = if self.choices.below(2) == 0 {
            let (first, common) = self.branch(builder, (vec![], values), depth, |_, _| vec![]);
            (first.steps, common)
        } else {
            (vec![], values.clone())
        };
        let mut inner = Vec::new();
        let clauses = (0..self.choices.below(2) + 1)
            .map(|_| {
                let (test, _) = self.branch(builder, (vec![], values), depth, |this, values| {
                    let dtype = *this.choices.pick(&[U8, S32, F32]);
                    vec![this.value_like(dtype, &[], values)]
                });
                let Branch { steps: before, results: mut predicate } = test;
                let predicate = predicate.swap_remove(0);
                let (branch, of_branch) = self.branch(builder, (steps.clone(), &common), depth, results);
                inner.extend_from_slice(of_branch.get(values.len()..).unwrap_or_default());
                Clause { steps: before, predicate, branch }
            })
            .collect();
        let (otherwise, of_branch) = self.branch(builder, (steps.clone(), &common), depth, results);
        inner.extend_from_slice(of_branch.get(values.len()..).unwrap_or_default());
        let outputs: Vec<Slot> = types.iter().map(|_| builder.slot()).collect();
        let ends = outputs.iter().zip(types);
        values.extend(ends.map(|(&slot, (dtype, shape))| Operand { place: Place::Slot(slot), dtype, shape }));
        builder.steps.push(Step::Cond { clauses, otherwise, outputs });
        if self.choices.wrong(4) {
            // Values that only one branch gives.
            values.append(&mut inner);
        }
        // The first of these steps reads no value of the others, and may be needed again.
        if let (Some(step @ Step::Operation { outputs, .. }), 0) = (steps.first(), self.choices.below(2))
            && let Some(first) = outputs.first()
        {
            let again = Step::Unless { computed: first.slot, steps: vec![step.clone()] };
            builder.steps.push(again);
            values.extend(outputs.iter().map(|output| Operand {
                place: Place::Slot(output.slot),
                dtype: output.dtype,
                shape: output.shape.clone(),
            }));
        }
    }

    /// The number of a region that is drawn, seldom another one.
    fn number(&mut self, region: Region) -> usize {
        self.regions.push(region);
        if self.choices.wrong(128) { self.choices.number() } else { self.regions.len() - 1 }
    }

    /// A loop, most often of a few trips that its first value counts.
    fn repeat(&mut self, builder: &mut Builder, values: &mut Vec<Operand>, depth: usize) {
        let counter = *self.choices.pick(&[S32, S32, U8, S64, F32]);
        let mut initial = vec![self.literal(counter, &[])];
        let count = self.choices.below(3);
        initial.extend((0..count).map(|_| self.value(values)));
        let types: Vec<_> = initial.iter().map(|value| (value.dtype, value.shape.clone())).collect();
        let wanted: Vec<_> = types.iter().cloned().map(Some).collect();
        let mut body = self.region(&types, &wanted, depth + 1);
        let mut condition = self.region(&types, &[Some((U8, Shape::new()))], depth + 1);
        if !self.choices.seldom(16) {
            let one = self.literal_number(counter, 1);
            let last = self.choices.below(12);
            let last = self.literal_number(counter, last);
            let first = Operand { place: Place::Slot(0), dtype: counter, shape: Shape::new() };
            body.results[0] = extend(&mut body, Operation::Binary(BinaryOp::Add), &[&first, &one], counter);
            condition.results[0] =
                extend(&mut condition, Operation::Binary(BinaryOp::Less), &[&first, &last], U8);
        }
        let body = self.number(body);
        let condition = self.number(condition);
        let outputs: Vec<Slot> = initial.iter().map(|_| builder.slot()).collect();
        for (&slot, (dtype, shape)) in outputs.iter().zip(types) {
            values.push(Operand { place: Place::Slot(slot), dtype, shape });
        }
        builder.steps.push(Step::While { condition, body, initial, outputs });
    }

    fn literal_number(&mut self, dtype: DType, number: usize) -> Operand {
        let bits = cast(number::Number::Integer(number as i128), dtype);
        self.literals.push(to_bytes(&[bits], dtype));
        Operand { place: Place::Literal(self.literals.len() - 1), dtype, shape: Shape::new() }
    }

    fn fold(&mut self, builder: &mut Builder, values: &mut Vec<Operand>, depth: usize) {
        let mut input = self.value(values);
        let is_matrix = input.shape.len() == 2 && !input.dtype.is_packed();
        if !is_matrix && !self.choices.wrong(16) {
            let dtype = *self.choices.pick(&[F32, S32, U8, F64, BF16, C64]);
            let (rows, columns) = (self.choices.below(9) + 1, self.choices.below(9) + 1);
            input = self.literal(dtype, &[rows, columns]);
        }
        let other = *self.choices.pick(&[F32, S32, U8, F64]);
        let accumulator = if self.choices.below(2) == 0 { input.dtype } else { other };
        let initial = self.value_like(accumulator, &[], values);
        let parameters = [(input.dtype, Shape::new()), (accumulator, Shape::new())];
        let body = self.region(&parameters, &[Some((accumulator, Shape::new()))], depth + 1);
        let body = self.number(body);
        let shape = Shape::from_slice(&input.shape[..input.shape.len().min(1)]);
        let output = self.target(builder, values, accumulator, shape);
        builder.steps.push(Step::Fold { body, input, initial, output });
    }

    fn reverse_loop(&mut self, builder: &mut Builder, values: &mut Vec<Operand>, depth: usize) {
        let some = |this: &mut Self, most: usize| -> Vec<Operand> {
            (0..this.choices.below(most)).map(|_| this.value(values)).collect()
        };
        let (initial, gradients, invariants) = (some(self, 3), some(self, 3), some(self, 2));
        let types = |values: &[Operand]| -> Vec<(DType, Shape)> {
            values.iter().map(|value| (value.dtype, value.shape.clone())).collect()
        };
        let (own, gradient, fixed) = (types(&initial), types(&gradients), types(&invariants));
        let wanted = |types: &[(DType, Shape)]| types.iter().cloned().map(Some).collect::<Vec<_>>();
        let forward = self.region(&[&own[..], &fixed].concat(), &wanted(&own), depth + 1);
        let backward = self.region(&[&own[..], &gradient, &fixed].concat(), &wanted(&gradient), depth + 1);
        let forward = self.number(forward);
        let backward = self.number(backward);
        let trips = self.choices.below(9);
        let dtype = *self.choices.pick(&[S32, S64, U8]);
        let trips = self.literal_number(dtype, trips);
        let outputs: Vec<Slot> = gradients.iter().map(|_| builder.slot()).collect();
        for (&slot, (dtype, shape)) in outputs.iter().zip(gradient) {
            values.push(Operand { place: Place::Slot(slot), dtype, shape });
        }
        builder.steps.push(Step::ReverseLoop(Box::new(ReverseLoop {
            forward,
            backward,
            trips,
            initial,
            gradients,
            invariants,
            outputs,
        })));
    }

    fn call(&mut self, builder: &mut Builder, values: &mut Vec<Operand>) {
        let inputs = (0..self.choices.below(3)).map(|_| self.value(values)).collect();
        let (dtype, shape) = (self.choices.dtype(), self.choices.shape());
        let output = self.target(builder, values, dtype, shape);
        self.calls.push(tensor::byte_size("call", output.dtype, &output.shape).unwrap_or(0));
        let callback = self.calls.len() - 1;
        builder.steps.push(Step::Call { callback, inputs, outputs: vec![output] });
    }

    /// A slot for a result, which is a value from now on. Seldom another slot, type or shape.
    fn target(
        &mut self,
        builder: &mut Builder,
        values: &mut Vec<Operand>,
        dtype: DType,
        shape: Shape,
    ) -> Target {
        let mut target = Target { slot: builder.slot(), dtype, shape };
        if self.choices.wrong(128) {
            match self.choices.below(3) {
                0 => target.slot = self.choices.below(builder.slots + 2),
                1 => target.dtype = self.choices.dtype(),
                _ => target.shape = self.choices.shape(),
            }
        }
        if layout::size(&target.shape).is_some_and(|size| size <= MAX_ELEMENTS) {
            values.push(Operand {
                place: Place::Slot(target.slot),
                dtype: target.dtype,
                shape: target.shape.clone(),
            });
        }
        target
    }

    fn operation(&mut self, builder: &mut Builder, values: &mut Vec<Operand>) {
        let (operation, inputs, results) = self.drawn(values);
        let outputs =
            results.into_iter().map(|(dtype, shape)| self.target(builder, values, dtype, shape)).collect();
        builder.steps.push(Step::Operation { operation, inputs, outputs });
    }

    fn windows(&mut self, shape: &[usize]) -> WindowOptions {
        let rank = shape.len();
        let mut windows = WindowOptions {
            sizes: self.choices.each(rank, Choices::step),
            padding: self.choices.each(rank, |choices| (choices.padding(), choices.padding())),
            strides: self.choices.each(rank, Choices::step),
            dilations: self.choices.each(rank, Choices::step),
        };
        if !self.choices.wrong(8) {
            // A window that doesn't fit has one element, or its axis no padding.
            for (axis, &size) in shape.iter().enumerate().take(windows.padding.len()) {
                let (low, high) = windows.padding[axis];
                if size as i128 + i128::from(low) + i128::from(high) < 1 {
                    windows.padding[axis] = (0, 0);
                }
                if Self::slid(shape, &windows).get(axis).is_some_and(|&positions| positions == 0) {
                    windows.sizes[axis] = 1;
                }
            }
        }
        windows
    }

    fn slid(shape: &[usize], windows: &WindowOptions) -> Shape {
        let WindowOptions { sizes, padding, strides, dilations } = windows;
        let axes = shape.iter().zip(sizes).zip(padding).zip(strides).zip(dilations);
        axes.map(|((((&size, &window), &padding), &stride), &dilation)| {
            positions(size, window, padding, stride, dilation)
        })
        .collect()
    }

    fn starts(&mut self, rank: usize, inputs: &mut Vec<Operand>) -> Vec<Start> {
        let count = if self.choices.wrong(64) { self.choices.below(4) } else { rank };
        (0..count)
            .map(|_| match self.choices.below(4) {
                0 => {
                    inputs.push(self.indices(&[]));
                    Start::Input(inputs.len() - 1)
                }
                1 if self.choices.seldom(16) => Start::Input(self.choices.number()),
                _ => Start::At(self.choices.number()),
            })
            .collect()
    }

    /// An operation, its operands, and the types and shapes of its results.
    fn drawn(&mut self, values: &[Operand]) -> (Operation, Vec<Operand>, Vec<(DType, Shape)>) {
        let a = self.value(values);
        let (dtype, shape, rank) = (a.dtype, a.shape.clone(), a.shape.len());
        let same = |operation| (operation, vec![a.clone()], vec![(dtype, shape.clone())]);
        let partner = |this: &mut Self| {
            if this.choices.below(2) == 0 {
                this.value_like(dtype, &shape, values)
            } else {
                this.value(values)
            }
        };
        let float = if dtype.is_float() || dtype.is_complex() { dtype } else { F32 };
        let kind = self.choices.below(44);
        let needs_axis = matches!(kind, 20..=22 | 28 | 29 | 37..=40);
        match if rank == 0 && needs_axis && !self.choices.wrong(8) { kind % 16 } else { kind } {
            0..8 => {
                let op = *self.choices.pick(BinaryOp::ALL);
                let b = partner(self);
                let result = match self.choices.below(4) {
                    _ if op.is_predicate() => U8,
                    0 => self.choices.dtype(),
                    1 => b.dtype,
                    _ => dtype,
                };
                if !self.choices.wrong(8) && ops::binary::plan(op, result, [dtype, b.dtype]).is_err() {
                    return (Operation::AsType, vec![b.clone()], vec![(result, b.shape)]);
                }
                let shape = broadcast(&shape, &b.shape);
                (Operation::Binary(op), vec![a, b], vec![(result, shape)])
            }
            8..13 => {
                let op = *self.choices.pick(UnaryOp::ALL);
                let math = *self.choices.pick(&[Math::Exact, Math::Fast]);
                let result = match self.choices.below(4) {
                    0 => self.choices.dtype(),
                    1 => dtype,
                    _ => float,
                };
                if !self.choices.wrong(8) && ops::unary::plan(op, math, result, dtype).is_err() {
                    return (Operation::AsType, vec![a], vec![(result, shape)]);
                }
                (Operation::Unary(op, math), vec![a], vec![(result, shape)])
            }
            14 => {
                let (b, c) = (partner(self), partner(self));
                let shape = broadcast(&broadcast(&shape, &b.shape), &c.shape);
                let dtype = b.dtype;
                (Operation::Select, vec![a, b, c], vec![(dtype, shape)])
            }
            15 if !dtype.is_complex() => {
                let (low, high) = (self.value_like(dtype, &[], values), self.value_like(dtype, &[], values));
                (Operation::Clip, vec![a, low, high], vec![(dtype, shape)])
            }
            13 | 15 => (Operation::AsType, vec![a], vec![(self.choices.dtype(), shape)]),
            16 => {
                let axes = self.choices.permutation(rank);
                let result = axes.iter().map(|&axis| shape[axis]).collect();
                (Operation::Transpose(axes), vec![a], vec![(dtype, result)])
            }
            17 => {
                let mut result = self.choices.shape();
                let first = result.len();
                result.extend(
                    shape.iter().map(|&size| if size == 1 { self.choices.below(5) + 1 } else { size }),
                );
                let axes = (first..result.len()).collect();
                (Operation::Broadcast(axes), vec![a], vec![(dtype, result)])
            }
            18 => same(Operation::Reverse(self.choices.axes(rank))),
            19 => {
                let lengths: Shape =
                    shape.iter().map(|&size| self.choices.below(size.min(256)) + 1).collect();
                let strides: Shape = self.choices.each(rank, Choices::step);
                let result = lengths.iter().zip(&strides);
                let result = result.map(|(&length, &stride)| length.div_ceil(stride.max(1))).collect();
                let mut inputs = vec![a];
                let starts = self.starts(rank, &mut inputs);
                (Operation::Slice { starts, lengths, strides }, inputs, vec![(dtype, result)])
            }
            20 => {
                let part: Shape = shape.iter().map(|&size| self.choices.below(size.min(256)) + 1).collect();
                let mut inputs = vec![a, self.value_like(dtype, &part, values)];
                let starts = self.starts(rank, &mut inputs);
                (Operation::PutSlice(starts), inputs, vec![(dtype, shape)])
            }
            21 => {
                let axis = self.choices.axis(rank);
                let count = self.choices.below(3) + 1;
                let mut result = shape.clone();
                if let Some(size) = result.get_mut(axis) {
                    *size = size.saturating_mul(count);
                }
                let inputs = (0..count).map(|_| self.value_like(dtype, &shape, values)).collect();
                (Operation::Concatenate(axis), inputs, vec![(dtype, result)])
            }
            22 => {
                let axis = (self.choices.below(2) == 0).then(|| self.choices.axis(rank));
                (Operation::Iota(axis), vec![], vec![(dtype, shape)])
            }
            23 => {
                let n = self.choices.below(9) + 1;
                (Operation::Eye, vec![], vec![(dtype, Shape::from_slice(&[n, n]))])
            }
            24 => {
                let padding: Vec<Padding> = self.choices.each(rank, |choices| Padding {
                    low: choices.padding(),
                    high: choices.padding(),
                    interior: choices.below(3),
                });
                let result = shape.iter().zip(&padding).map(|(&size, padding)| {
                    let between = (size.max(1) as i128 - 1) * padding.interior as i128;
                    let size = size as i128 + between + i128::from(padding.low) + i128::from(padding.high);
                    usize::try_from(size).unwrap_or(0)
                });
                let result = result.collect();
                (Operation::Pad(padding), vec![a, self.value_like(dtype, &[], values)], vec![(dtype, result)])
            }
            25..28 => {
                let (op, axes) = (*self.choices.pick(ReduceOp::ALL), self.choices.axes(rank));
                let result = without(&shape, &axes);
                let output = match op {
                    ReduceOp::All | ReduceOp::Any => U8,
                    _ if self.choices.below(3) == 0 => self.choices.dtype(),
                    _ => dtype,
                };
                (Operation::Reduce(op, axes), vec![a], vec![(output, result)])
            }
            28 => {
                let op = *self.choices.pick(&[ReduceOp::ReduceMax, ReduceOp::ReduceMin, ReduceOp::Sum]);
                let axis = (self.choices.below(3) > 0).then(|| self.choices.axis(rank));
                let result = axis.map_or_else(Shape::new, |axis| without(&shape, &[axis]));
                let tie_break = *self.choices.pick(&[TieBreak::Low, TieBreak::High]);
                let output = *self.choices.pick(&[S32, S64, U8]);
                (Operation::ArgReduce(op, axis, tie_break), vec![a], vec![(output, result)])
            }
            29 => {
                let op = *self.choices.pick(CumulativeOp::ALL);
                same(Operation::Cumulative(op, self.choices.axis(rank), self.choices.below(2) == 0))
            }
            30 => {
                let tolerance =
                    Tolerance { relative: 1e-3, absolute: 1e-3, equal_nan: self.choices.below(2) == 0 };
                let b = partner(self);
                (Operation::AllClose(tolerance), vec![a, b], vec![(U8, Shape::new())])
            }
            31 | 32 => self.dot(a, values),
            33 => self.conv(a),
            34 => {
                let windows = self.windows(&shape);
                let result = Self::slid(&shape, &windows);
                let op = *self.choices.pick(WindowOp::ALL);
                (Operation::Window(op, windows), vec![a], vec![(dtype, result)])
            }
            35 => {
                let windows = self.windows(&shape);
                let slid = Self::slid(&shape, &windows);
                let choice = *self.choices.pick(Choice::ALL);
                let inputs =
                    vec![a, self.value_like(dtype, &slid, values), self.value_like(dtype, &[], values)];
                (Operation::WindowScatter(choice, windows), inputs, vec![(dtype, shape)])
            }
            36 => {
                let windows = self.windows(&shape);
                let pad = self.value_like(dtype, &[], values);
                let mut result = Self::slid(&shape, &windows);
                result.extend_from_slice(&windows.sizes);
                (Operation::WindowElements(windows), vec![a, pad], vec![(dtype, result)])
            }
            37 => {
                let (axis, direction) = (
                    self.choices.axis(rank),
                    *self.choices.pick(&[Direction::Ascending, Direction::Descending]),
                );
                match self.choices.below(3) {
                    0 => same(Operation::Sort(axis, direction)),
                    1 => (Operation::Argsort(axis, direction), vec![a], vec![(S32, shape)]),
                    _ => {
                        let mut result = shape.clone();
                        if let Some(last) = result.last_mut() {
                            *last = self.choices.below((*last).min(256)) + 1;
                        }
                        (Operation::TopK, vec![a], vec![(S32, result)])
                    }
                }
            }
            38 | 39 => self.indexed(a, values),
            40 => {
                let transform = *self.choices.pick(&[
                    Transform::Forward,
                    Transform::Inverse,
                    Transform::RealForward,
                    Transform::RealInverse,
                ]);
                let count = (self.choices.below(2) + 1).min(rank.max(1));
                let mut result = shape.clone();
                let first = self.choices.axis(rank);
                let second = if rank == 0 { 0 } else { (first % rank + 1) % rank };
                let axes: Vec<(usize, usize)> = [first, second][..count]
                    .iter()
                    .map(|&axis| {
                        let length = self.choices.below(12) + 1;
                        if let Some(size) = result.get_mut(axis) {
                            *size = if transform == Transform::RealForward { length / 2 + 1 } else { length };
                        }
                        (axis, length)
                    })
                    .collect();
                let output = match (transform, dtype) {
                    (Transform::RealInverse, C128) => F64,
                    (Transform::RealInverse, _) => F32,
                    (_, F64 | C128) => C128,
                    _ => C64,
                };
                (Operation::Fourier { transform, axes, eps: 1e-10 }, vec![a], vec![(output, result)])
            }
            _ => self.linear(values),
        }
    }

    fn dot(&mut self, a: Operand, values: &[Operand]) -> (Operation, Vec<Operand>, Vec<(DType, Shape)>) {
        let rank = a.shape.len();
        let (contract, batch) = (self.choices.axes(rank), self.choices.below(3).min(rank));
        let contract: Shape = contract.into_iter().filter(|&axis| axis >= batch && axis < rank).collect();
        let batch: Shape = (0..batch).collect();
        // The axes of the right side: those of the batch, others, and those to sum over in any order.
        let others: Vec<usize> = (0..self.choices.below(2)).map(|_| self.choices.below(9) + 1).collect();
        let first = batch.len() + others.len();
        let order = self.choices.permutation(contract.len());
        let mut right: Vec<usize> =
            batch.iter().map(|&axis| a.shape[axis]).chain(others.iter().copied()).collect();
        let mut right_contract: Shape = (0..contract.len()).collect();
        for (place, &of) in order.iter().enumerate() {
            right.push(a.shape[contract[of]]);
            right_contract[of] = first + place;
        }
        if layout::size(&right).is_none_or(|size| size > MAX_ELEMENTS) {
            right.clear();
        }
        let b = self.value_like(a.dtype, &right, values);
        let summed: Shape = batch.iter().chain(&contract).copied().collect();
        let mut result: Shape = batch.iter().map(|&axis| a.shape[axis]).collect();
        result.extend(without(&a.shape, &summed));
        result.extend(others);
        let output = if self.choices.below(4) == 0 { self.choices.dtype() } else { a.dtype };
        let operation =
            Operation::Dot { contract: [contract, right_contract], batch: [batch.clone(), batch] };
        (operation, vec![a, b], vec![(output, result)])
    }

    fn conv(&mut self, a: Operand) -> (Operation, Vec<Operand>, Vec<(DType, Shape)>) {
        let spatial = self.choices.below(3);
        let dtype = a.dtype;
        let small = |this: &mut Self| this.choices.below(4) + 1;
        let [features, batches] = [self.choices.below(2) + 1, 1];
        let groups = if self.choices.seldom(8) { [1, 2] } else { [features, batches] };
        let (images, depth, filters) =
            (small(self) * groups[1], small(self), small(self) * groups[0] * groups[1]);
        let mut input = vec![images, depth * groups[0]];
        let mut kernel = vec![filters, depth];
        input.extend((0..spatial).map(|_| self.choices.below(12) + 1));
        kernel.extend((0..spatial).map(|_| small(self)));
        let options = ConvOptions {
            strides: self.choices.each(spatial, Choices::step),
            padding: self.choices.each(spatial, |choices| (choices.padding(), choices.padding())),
            input_dilation: self.choices.each(spatial, Choices::step),
            kernel_dilation: self.choices.each(spatial, Choices::step),
            groups: if self.choices.wrong(64) {
                [self.choices.number(), self.choices.number()]
            } else {
                groups
            },
            permutations: [(); 3].map(|()| self.choices.permutation(spatial + 2)),
        };
        let mut result = vec![images / groups[1], filters];
        for axis in 0..spatial {
            let at = |list: &[usize]| list.get(axis).copied().unwrap_or(1);
            let dilated = (input[axis + 2] - 1).saturating_mul(at(&options.input_dilation)).saturating_add(1);
            let padding = options.padding.get(axis).copied().unwrap_or_default();
            result.push(positions(
                dilated,
                kernel[axis + 2],
                padding,
                at(&options.strides),
                at(&options.kernel_dilation),
            ));
        }
        // A permutation says which axis each of the batch, the channels and the others is.
        let placed = |shape: &[usize], axes: &[usize]| -> Shape {
            let mut placed = Shape::from_elem(1, shape.len());
            axes.iter().zip(shape).for_each(|(&axis, &size)| placed[axis] = size);
            placed
        };
        let [of_input, of_kernel, of_output] = &options.permutations;
        let (input, kernel) = (placed(&input, of_input), placed(&kernel, of_kernel));
        let inverse: Shape = (0..of_output.len())
            .map(|axis| of_output.iter().position(|&at| at == axis).unwrap_or(0))
            .collect();
        let of_output = if self.choices.below(2) == 0 { of_output } else { &inverse };
        let result = placed(&result, of_output);
        let inputs = vec![self.literal(dtype, &input), self.literal(dtype, &kernel)];
        (Operation::Conv(Box::new(options)), inputs, vec![(dtype, result)])
    }

    fn indexed(&mut self, a: Operand, values: &[Operand]) -> (Operation, Vec<Operand>, Vec<(DType, Shape)>) {
        let (dtype, shape, rank) = (a.dtype, a.shape.clone(), a.shape.len());
        let axis = self.choices.axis(rank);
        match self.choices.below(4) {
            0 => {
                let count = Shape::from_slice(&[self.choices.below(5) + 1]);
                let mut result = shape.clone();
                if axis < rank {
                    result[axis] = count[0];
                }
                (Operation::Take(axis), vec![a, self.indices(&count)], vec![(dtype, result)])
            }
            1 => {
                let mut result = shape.clone();
                if axis < rank {
                    result[axis] = self.choices.below(5) + 1;
                }
                let indices = self.indices(&result);
                (Operation::TakeAlongAxis(axis), vec![a, indices], vec![(dtype, result)])
            }
            kind => {
                let axes = self.choices.axes(rank);
                let count = self.choices.below(5) + 1;
                let indices = self.indices(&[count, axes.len()]);
                let mut part = Shape::from_slice(&[count]);
                part.extend(without(&shape, &axes));
                if kind == 2 {
                    return (Operation::Gather(axes), vec![a, indices], vec![(dtype, part)]);
                }
                let updates = self.value_like(dtype, &part, values);
                let update = *self.choices.pick(Update::ALL);
                (Operation::Indexed(update, axes), vec![a, indices, updates], vec![(dtype, shape)])
            }
        }
    }

    /// A factorization of matrices, or a system of equations.
    fn linear(&mut self, values: &[Operand]) -> (Operation, Vec<Operand>, Vec<(DType, Shape)>) {
        let dtype = *self.choices.pick(&[F32, F64, C64, S32, F16]);
        let batch: Vec<usize> = (0..self.choices.below(2)).map(|_| self.choices.below(3) + 1).collect();
        let n = self.choices.below(9) + 1;
        let m = if self.choices.below(2) == 0 { n } else { self.choices.below(9) + 1 };
        let with = |ends: &[usize]| Shape::from_slice(&[&batch[..], ends].concat());
        let float = if dtype == S32 { F32 } else { dtype };
        let real = if float == C64 { F32 } else { float };
        let algorithm = *self.choices.pick(&[NxAlgorithm::Current, NxAlgorithm::ThinSvd, NxAlgorithm::V0_9]);
        let factor = |problem, results| (Operation::Factor { problem, algorithm, eps: 1e-10 }, results);
        let k = n.min(m);
        let (operation, results) = match self.choices.below(8) {
            0 => factor(Problem::Determinant, vec![(float, with(&[]))]),
            1 => factor(Problem::Cholesky, vec![(float, with(&[n, n]))]),
            2 => factor(
                Problem::Lu,
                vec![(float, with(&[n, n])), (float, with(&[n, n])), (float, with(&[n, n]))],
            ),
            3 => {
                let columns = if self.choices.below(2) == 0 { k } else { m };
                factor(Problem::Qr, vec![(float, with(&[m, columns])), (float, with(&[columns, n]))])
            }
            4 => factor(Problem::Eigh, vec![(real, with(&[n])), (float, with(&[n, n]))]),
            5 => {
                factor(Problem::Svd, vec![(float, with(&[m, k])), (real, with(&[k])), (float, with(&[k, n]))])
            }
            kind => {
                let columns: Vec<usize> =
                    (0..self.choices.below(2)).map(|_| self.choices.below(4) + 1).collect();
                let right = with(&[&[n][..], &columns].concat());
                let inputs = vec![
                    self.value_like(dtype, &with(&[n, n]), values),
                    self.value_like(dtype, &right, values),
                ];
                let operation = if kind == 6 {
                    Operation::Solve(*self.choices.pick(&[Method::Lu, Method::Qr]))
                } else {
                    let transforms = [MatrixTransform::None, MatrixTransform::Transpose];
                    Operation::TriangularSolve(Triangular {
                        lower: self.choices.below(2) == 0,
                        left_side: self.choices.below(4) > 0,
                        transform: *self.choices.pick(&transforms),
                    })
                };
                return (operation, inputs, vec![(float, right)]);
            }
        };
        let is_square = !matches!(operation, Operation::Factor { problem: Problem::Qr | Problem::Svd, .. });
        let a = self.value_like(dtype, &with(&[if is_square { n } else { m }, n]), values);
        (operation, vec![a], results)
    }
}

/// Adds an operation of numbers to a region, and returns its result.
fn extend(region: &mut Region, operation: Operation, inputs: &[&Operand], dtype: DType) -> Operand {
    let target = Target { slot: region.slots, dtype, shape: Shape::new() };
    region.slots += 1;
    let result = Operand { place: Place::Slot(target.slot), dtype, shape: Shape::new() };
    let inputs = inputs.iter().map(|&operand| operand.clone()).collect();
    region.steps.push(Step::Operation { operation, inputs, outputs: vec![target] });
    result
}

/// A host that refuses large values, and gives a program up that works for long.
struct Limited {
    pieces: usize,
    work: Work,
}

impl Host for Limited {
    type Block = Vec<u8>;

    fn allocate(&mut self, bytes: usize, _is_result: bool) -> Option<Vec<u8>> {
        (bytes <= MAX_BYTES).then(|| vec![0xa5; bytes])
    }

    fn before(&mut self, work: Work) -> Wish {
        self.pieces += 1;
        self.work = self.work.saturating_add(work);
        if self.is_over() { Wish::Pause } else { Wish::Continue }
    }
}

impl Limited {
    fn is_over(&self) -> bool {
        self.pieces > MAX_PIECES || self.work > MAX_WORK
    }
}

/// The bytes of the results, or nothing if the program was given up.
fn run(program: &Program, arguments: &[&[u8]], calls: &[usize]) -> Result<Option<Vec<Vec<u8>>>, Error> {
    let mut host = Limited { pieces: 0, work: 0 };
    let mut execution = Execution::new(program, arguments)?;
    loop {
        match execution.resume(program, arguments, &mut host)? {
            Outcome::Done(values) => {
                let bytes = values.iter().map(|value| value.bytes(arguments, program.literals()).to_vec());
                return Ok(Some(bytes.collect()));
            }
            Outcome::Paused if host.is_over() => return Ok(None),
            Outcome::Paused => {}
            Outcome::Call { callback, values } => {
                // The bytes of the first value, again and again.
                let value = values.first().map(|value| value.bytes(arguments, program.literals()));
                let bytes = value.unwrap_or_default().iter().chain(&[0]).cycle();
                let size = calls[callback];
                if size > MAX_BYTES {
                    return Ok(None);
                }
                execution.answer(program, vec![bytes.take(size).copied().collect()])?;
            }
        }
    }
}

/// What became of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is none.
    Refused,
    /// An operation failed.
    Failed,
    /// It was given up.
    GivenUp,
    /// It has results.
    Finished,
}

impl AnyProgram {
    /// Runs the program with fusion and without, and compares the results of one that is not wrong.
    ///
    /// # Panics
    ///
    /// If the results differ, or only the one without fusion has any.
    pub fn compare(&self) -> Fate {
        let plain = Program::without_fusion(&self.regions, self.literals.clone());
        let fused = Program::new(&self.regions, self.literals.clone());
        let (plain, fused) = match (plain, fused) {
            (Ok(plain), Ok(fused)) => (plain, fused),
            (Err(_), Err(_)) => return Fate::Refused,
            (plain, fused) => panic!("one is a program: {:?}, {:?}", plain.err(), fused.err()),
        };
        let arguments: Vec<&[u8]> = self.arguments.iter().map(Vec::as_slice).collect();
        let expected = run(&plain, &arguments, &self.calls);
        let got = run(&fused, &arguments, &self.calls);
        match (expected, got) {
            (Ok(Some(_)), Ok(Some(_))) if self.wrong => Fate::Finished,
            (Ok(Some(expected)), Ok(Some(got))) => {
                for (number, (expected, got)) in expected.iter().zip(&got).enumerate() {
                    let dtype = self.dtypes[number];
                    let elements = |bytes: &[u8]| {
                        let size = bytes.len() * 8 / dtype.bits();
                        from_bytes(bytes, dtype, size)
                    };
                    let (expected, got) = (elements(expected), elements(got));
                    assert_eq!(expected.len(), got.len(), "result {number}");
                    for (element, (&a, &b)) in expected.iter().zip(&got).enumerate() {
                        assert!(
                            number::same(a, b, dtype),
                            "result {number} ({dtype}), element {element}: {b:#x} in place of {a:#x}"
                        );
                    }
                }
                Fate::Finished
            }
            (Ok(None), _) | (_, Ok(None)) => Fate::GivenUp,
            // Other errors are those of programs that Nx does not make.
            (
                Err(expected @ (Error::Element { .. } | Error::Index { .. })),
                Err(got @ (Error::Element { .. } | Error::Index { .. })),
            ) if !self.wrong => {
                assert_eq!(expected, got, "another error");
                Fate::Failed
            }
            (Err(_), _) => Fate::Failed,
            (Ok(Some(_)), Err(_)) if self.wrong => Fate::Failed,
            (Ok(Some(_)), Err(error)) => panic!("only the program with fusion fails: {error}"),
        }
    }
}
