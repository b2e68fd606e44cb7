//! How a member of a cluster is computed for a block of rows.
//!
//! What does not change from block to block is decided once a run: the kernel, for operands that are numbers perhaps a
//! simpler one, and the conversions and copies of the others.

use smallvec::SmallVec;

use super::registers::Registers;
use super::vector_kernel::VectorKernel;
use super::{Call, Extent, Fold, Member, MemberOperand, Register, misplaced};
use crate::cost::MIN_SINGLE_ROW_ELEMENTS;
use crate::exec::convert::{self, Conversion, Convert};
use crate::exec::copy;
use crate::exec::elementwise::scratch::{aligned, take};
use crate::exec::elementwise::{self, MAX_ELEMENT_BYTES, MAX_OPERANDS, Operand, Plan, Source};
use crate::graph::rows::{copies_of_row, repeat_elements};
use crate::ops;
use crate::ops::reduce::ReductionSizes;
use crate::tensor::Tensor;
use crate::{Error, Fault, dispatch};

/// How a member is computed in each block of a run: what does not change from block to block.
pub(super) enum MemberLoop<'a> {
    Kernel(KernelLoop<'a>),
    Convert(Option<Convert>),
    Fold {
        fold: Fold,
        reduced: usize,
    },
    /// By [`compute_tensors`].
    General,
    /// The first member of a kernel, which computes all of its members.
    Vectors(&'a VectorKernel),
    /// Another member of a kernel: there is nothing left to do.
    Computed,
}

pub(super) type Loops<'a> = SmallVec<[MemberLoop<'a>; 8]>;

/// How the members are computed in some trips of a loop.
pub(super) struct TripLoops<'a> {
    /// In the first trip.
    pub(super) loops: Loops<'a>,
    /// For each member, whether it reads numbers that change from trip to trip.
    pub(super) varies: SmallVec<[bool; 16]>,
    /// For each trip, the loops of the members that do.
    pub(super) of_trips: Vec<Loops<'a>>,
}

/// A kernel, called on the operands in place or converted.
pub(super) struct KernelLoop<'a> {
    plan: &'a Plan,
    operands: SmallVec<[KernelOperand<'a>; MAX_OPERANDS]>,
    /// The number of elements in a row.
    elements: usize,
    /// The number of rows that the kernel is called for at once; `None` for all rows of a block.
    rows_at_once: Option<usize>,
}

/// An operand of a kernel.
pub(super) enum KernelOperand<'a> {
    /// A number, in the type of the kernel.
    Number(SmallVec<[u8; MAX_ELEMENT_BYTES]>),
    /// The elements of rows, with the conversion to the type of the kernel.
    Elements(&'a MemberOperand, Option<Conversion>),
    /// The element of a row.
    Element(&'a MemberOperand),
    /// The element of a row, or the same row for all rows, copied to each element of a block, with the
    /// conversion to the type of the kernel.
    Repeated(&'a MemberOperand, Option<Conversion>),
}

impl<'a> MemberLoop<'a> {
    pub(super) fn new(member: &'a Member, inputs: &[&[u8]]) -> Self {
        let sources = member.operands.iter().map(|operand| {
            let width = operand.dtype.width();
            match (operand.register, operand.extent) {
                (Register::Input(index), Extent::SameElement) => Source::Scalar(&inputs[index][..width]),
                _ => Source::Dense { bytes: &[], width },
            }
        });
        let sources: Sources<'_> = sources.collect();
        let operands = &member.operands;
        let dtype_of = |index: usize| operands[index].dtype;
        match (&member.call, &sources[..]) {
            (Call::Binary(op, plan), &[left, right]) => {
                let given = [(dtype_of(0), left), (dtype_of(1), right)];
                let mut numbers = Default::default();
                match ops::binary::simplified(*op, member.dtype, given, &mut numbers) {
                    Some(simpler) => {
                        let plan = simpler.plan(member.dtype).unwrap_or(plan);
                        let simpler =
                            simpler.operands.map(|operand| (&operands[operand.index], operand.source));
                        KernelLoop::of(member, plan, &simpler)
                    }
                    None => KernelLoop::of(member, plan, &[(&operands[0], left), (&operands[1], right)]),
                }
            }
            (Call::Unary(op, ..), _) if ops::unary::has_table(*op, member.dtype, dtype_of(0)) => {
                MemberLoop::General
            }
            (Call::Unary(_, _, plan), &[source]) => KernelLoop::of(member, plan, &[(&operands[0], source)]),
            (Call::Ternary(_, plan), &[a, b, c]) => {
                KernelLoop::of(member, plan, &[(&operands[0], a), (&operands[1], b), (&operands[2], c)])
            }
            (Call::Convert, _) => MemberLoop::Convert(convert::conversion(dtype_of(0), member.dtype)),
            (&Call::Reduce { fold, reduced }, _) => MemberLoop::Fold { fold, reduced },
            _ => MemberLoop::General,
        }
    }

    /// The number of bytes for conversions of some elements.
    pub(super) fn lane_bytes(&self, elements: usize) -> usize {
        let MemberLoop::Kernel(kernel) = self else { return 0 };
        let lane =
            |load: Option<Conversion>| load.map_or(0, |conversion| aligned(elements * conversion.lane));
        let loads = kernel.operands.iter().map(|operand| match *operand {
            KernelOperand::Elements(_, load) => lane(load),
            KernelOperand::Repeated(operand, load) => {
                let width = load.map_or(operand.dtype.width(), |conversion| conversion.lane);
                aligned(elements * width) + lane(load)
            }
            _ => 0,
        });
        loads.chain([lane(kernel.plan.store)]).sum()
    }

    /// Computes a member. The error is boxed: a large result would wait for what the kernel has stored.
    pub(super) fn run(
        &self,
        member: &Member,
        rows: usize,
        registers: &mut Registers<'_>,
        lanes: &mut [u8],
    ) -> Result<(), Box<Error>> {
        match self {
            MemberLoop::Vectors(kernel) => return Ok(kernel.run(rows, registers, lanes)?),
            MemberLoop::Computed => return Ok(()),
            _ => {}
        }
        let bytes = rows * member.elements * member.dtype.width();
        // The result is taken out, so that the operands can be borrowed beside it.
        let out = std::mem::take(registers.memory(member.to)?);
        let result = self.compute(member, rows, registers, lanes, &mut out[..bytes]);
        *registers.memory(member.to)? = out;
        result
    }

    fn compute(
        &self,
        member: &Member,
        rows: usize,
        registers: &Registers<'_>,
        lanes: &mut [u8],
        out: &mut [u8],
    ) -> Result<(), Box<Error>> {
        let elements = member.elements;
        match (self, &member.operands[..]) {
            (&MemberLoop::Fold { fold, reduced }, [operand]) => {
                let sizes = ReductionSizes { before: rows * elements, reduced, after: 1 };
                let length = sizes.size() * operand.dtype.width();
                let input = (operand.dtype, &registers.bytes(operand.register)[..length]);
                match fold {
                    Fold::Value(op) => ops::reduce::reduce_dense(op, input, sizes, member.dtype, out)?,
                    Fold::Index(op, tie_break) => {
                        ops::reduce::arg_reduce_dense(op, input, sizes, tie_break, member.dtype, out)?;
                    }
                }
                Ok(())
            }
            (MemberLoop::Convert(convert), [operand]) => {
                let source = rows_of(operand, elements, (0, rows), registers);
                match convert {
                    Some(convert) => convert(source, out),
                    None => out.copy_from_slice(source),
                }
                Ok(())
            }
            (MemberLoop::Kernel(kernel @ KernelLoop { rows_at_once: None, .. }), _) => {
                let source = |operand: &MemberOperand| rows_of(operand, elements, (0, rows), registers);
                kernel.run(rows * elements, source, lanes, out).map_err(|fault| member.error(fault).into())
            }
            (MemberLoop::Kernel(kernel @ KernelLoop { rows_at_once: Some(at_once), .. }), _) => {
                let row_bytes = elements * member.dtype.width();
                for (index, out) in out.chunks_mut((at_once * row_bytes).max(1)).enumerate() {
                    let at = (index * at_once, out.len() / row_bytes);
                    let source = |operand: &MemberOperand| match operand.extent {
                        // As many copies of the row.
                        Extent::SameRow | Extent::BlockRow => {
                            &registers.bytes(operand.register)[..at.1 * elements * operand.dtype.width()]
                        }
                        _ => rows_of(operand, elements, at, registers),
                    };
                    kernel.run(at.1 * elements, source, lanes, out).map_err(|fault| member.error(fault))?;
                }
                Ok(())
            }
            (MemberLoop::General, _) => Ok(compute_tensors(member, rows, registers, out)?),
            _ => Err(misplaced().into()),
        }
    }
}

impl<'a> KernelLoop<'a> {
    /// The loop of a member over its operands, given as sources where they are numbers.
    fn of(
        member: &'a Member,
        plan: &'a Plan,
        operands: &[(&'a MemberOperand, Source<'_>)],
    ) -> MemberLoop<'a> {
        let is_repeated = |operand: &MemberOperand| operand.is_repeated(member.elements);
        let repeated = || operands.iter().map(|&(operand, _)| operand).filter(|operand| is_repeated(operand));
        if plan.narrowing.is_some() {
            return MemberLoop::General;
        }
        let rows_at_once = if repeated().next().is_none() {
            None
        } else if repeated().all(|operand| operand.extent != Extent::Element) {
            Some(copies_of_row(member.elements))
        } else {
            (member.elements >= MIN_SINGLE_ROW_ELEMENTS).then_some(1)
        };
        let is_copied = |operand: &MemberOperand, load: Option<Conversion>| match rows_at_once {
            None => is_repeated(operand),
            Some(_) => operand.extent == Extent::Element && is_repeated(operand) && load.is_some(),
        };
        let mut kernel_operands = SmallVec::new();
        for (&(operand, source), load) in operands.iter().zip(plan.loads) {
            kernel_operands.push(match (source, load) {
                (Source::Scalar(number), _) => KernelOperand::Number(match load {
                    Some(load) => {
                        let mut converted = SmallVec::from_elem(0, load.lane);
                        (load.convert)(number, &mut converted);
                        converted
                    }
                    None => SmallVec::from_slice(number),
                }),
                (_, load) if is_copied(operand, load) => KernelOperand::Repeated(operand, load),
                _ if operand.extent == Extent::Element && is_repeated(operand) => {
                    KernelOperand::Element(operand)
                }
                _ => KernelOperand::Elements(operand, load),
            });
        }
        let (operands, elements) = (kernel_operands, member.elements);
        MemberLoop::Kernel(KernelLoop { plan, operands, elements, rows_at_once })
    }

    /// Computes `size` elements; `rows` gives the bytes of an operand.
    #[inline]
    fn run<'r>(
        &'r self,
        size: usize,
        rows: impl Fn(&MemberOperand) -> &'r [u8],
        mut lanes: &'r mut [u8],
        out: &mut [u8],
    ) -> Result<(), Fault> {
        let mut operands = [Operand::Scalar(&[]); MAX_OPERANDS];
        for (to, operand) in operands.iter_mut().zip(&self.operands) {
            *to = match operand {
                KernelOperand::Number(number) => Operand::Scalar(number),
                KernelOperand::Element(operand) => Operand::Scalar(rows(operand)),
                KernelOperand::Elements(operand, None) => Operand::Slice(rows(operand)),
                KernelOperand::Elements(operand, Some(Conversion { lane, convert })) => {
                    let converted = take(&mut lanes, size * lane);
                    convert(rows(operand), converted);
                    Operand::Slice(converted)
                }
                KernelOperand::Repeated(operand, load) => {
                    let (mut elements, mut width) = (rows(operand), operand.dtype.width());
                    if let Some(Conversion { lane, convert }) = *load {
                        let converted = take(&mut lanes, elements.len() / width * lane);
                        convert(elements, converted);
                        (elements, width) = (converted, lane);
                    }
                    let repeated = take(&mut lanes, size * width);
                    match operand.extent {
                        Extent::Element => repeat_elements(width, elements, self.elements, repeated),
                        _ => repeat_row(width, elements, repeated),
                    }
                    Operand::Slice(repeated)
                }
            };
        }
        self.plan.compute(size, out, &operands[..self.operands.len()], lanes)
    }
}

/// Fills `out` with copies of a row.
fn repeat_row(width: usize, row: &[u8], out: &mut [u8]) {
    dispatch!(width width, N => {
        copy::repeat_row(row.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    });
}

type Sources<'a> = SmallVec<[Source<'a>; 3]>;

fn source<'a>(bytes: &'a [u8], operand: &MemberOperand, is_number: bool) -> Source<'a> {
    if is_number { Source::Scalar(bytes) } else { Source::Dense { bytes, width: operand.dtype.width() } }
}

/// Calls the kernel of an elementwise member on sources of some shape.
fn call(member: &Member, shape: &[usize], out: &mut [u8], sources: &[Source<'_>]) -> Result<(), Error> {
    let dtype_of = |index: usize| member.operands[index].dtype;
    match (&member.call, sources) {
        (Call::Binary(op, plan), &[left, right]) => {
            let operands = [(dtype_of(0), left), (dtype_of(1), right)];
            ops::binary::run(*op, plan, (member.dtype, shape), out, operands)
        }
        (Call::Unary(op, _, plan), &[input]) => {
            ops::unary::run(*op, plan, (member.dtype, shape), out, (dtype_of(0), input))
        }
        (Call::Ternary(_, plan), _) => {
            elementwise::run(plan, shape, out, sources).map_err(|fault| member.error(fault))
        }
        _ => Err(misplaced()),
    }
}

/// The bytes of `rows` rows of an operand from the row `first` of the block on.
#[inline]
fn rows_of<'r>(
    operand: &MemberOperand,
    elements: usize,
    (first, rows): (usize, usize),
    registers: &'r Registers<'_>,
) -> &'r [u8] {
    let (all, width) = (registers.bytes(operand.register), operand.dtype.width());
    match operand.extent {
        Extent::Row => &all[first * elements * width..][..rows * elements * width],
        Extent::Element => &all[first * width..][..rows * width],
        Extent::SameRow | Extent::BlockRow => &all[..elements * width],
        Extent::SameElement => &all[..width],
    }
}

/// Computes a member whose operands have to be broadcast, or whose kernel is chosen by their values.
fn compute_tensors(
    member: &Member,
    rows: usize,
    registers: &Registers<'_>,
    out: &mut [u8],
) -> Result<(), Error> {
    let elements = member.elements;
    if !member.operands.iter().any(|operand| operand.is_repeated(elements)) {
        let sources = member.operands.iter().map(|operand| {
            let bytes = rows_of(operand, elements, (0, rows), registers);
            let is_number = !matches!(operand.extent, Extent::Row | Extent::Element);
            source(bytes, operand, is_number)
        });
        return call(member, &[rows * elements], out, &sources.collect::<Sources<'_>>());
    }
    let shape = [rows, elements];
    let mut shapes: SmallVec<[[usize; 2]; 3]> = SmallVec::new();
    for operand in &member.operands {
        shapes.push(match operand.extent {
            Extent::Row => [rows, elements],
            Extent::Element => [rows, 1],
            Extent::SameRow | Extent::BlockRow => [1, elements],
            Extent::SameElement => [1, 1],
        });
    }
    let mut tensors: SmallVec<[Tensor<'_>; 3]> = SmallVec::new();
    for (operand, shape) in member.operands.iter().zip(&shapes) {
        let bytes = rows_of(operand, elements, (0, rows), registers);
        tensors.push(Tensor::new("program", operand.dtype, shape, bytes)?);
    }
    let sources = tensors.iter().map(|tensor| Source::new(tensor, &shape).ok_or_else(misplaced));
    call(member, &shape, out, &sources.collect::<Result<Sources<'_>, Error>>()?)
}
