//! Runs clusters: blocks of rows, one after the other, in parts that threads share.

use std::cell::Cell;

use smallvec::SmallVec;

use super::member_loop::{Loops, MemberLoop, TripLoops};
use super::registers::{BlockInput, Registers, Rows, Run};
use super::vector_kernel::VectorKernel;
use super::{AssembledInput, Cluster, Extent, Member, Overwritten, Register};
use crate::Error;
use crate::cost::{self, CLUSTER_BLOCK_BYTES, CLUSTER_BLOCKS_PER_PART, Cost};
use crate::exec::elementwise::scratch::{aligned, take, with_kept};
use crate::exec::memory::streaming_stores;
use crate::exec::threads::parallel;
use crate::graph::operand::REGISTER_BYTES;
use crate::graph::rows::copies_of_row;

thread_local! {
    /// The memory of the buffers of a thread's last cluster.
    static BUFFERS: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// The memory of the copies of rows of a thread's last cluster.
    static COPIES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Trips of a loop.
#[derive(Clone, Copy)]
pub(in crate::graph) struct Trips<'a> {
    pub(in crate::graph) count: usize,
    /// Where each input comes from.
    pub(in crate::graph) inputs: &'a [TripInput],
    /// The numbers of each trip, as many for each.
    pub(in crate::graph) numbers: &'a [[u8; REGISTER_BYTES]],
}

impl Trips<'_> {
    /// The bytes of an input that is not carried, given those of the first trip.
    fn input<'b>(&'b self, index: usize, trip: usize, first: &'b [u8]) -> &'b [u8] {
        match self.inputs[index] {
            TripInput::Number(number) => &self.numbers[trip * (self.numbers.len() / self.count) + number],
            _ => first,
        }
    }
}

/// Where an input of a trip comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum TripInput {
    /// The same bytes in all trips.
    Fixed,
    /// A result of the trip before, by its number.
    Carried(usize),
    /// A number of the trip.
    Number(usize),
}

/// The results of some rows.
pub(super) struct Part<'a> {
    pub(super) first: usize,
    pub(super) rows: usize,
    pub(super) outputs: SmallVec<[&'a mut [u8]; 4]>,
}

impl Cluster {
    /// Computes the results by one call of machine code, without blocks and buffers.
    fn run_at_once<'b>(
        &self,
        kernel: &VectorKernel,
        inputs: &[&'b [u8]],
        outputs: &'b mut [&mut [u8]],
    ) -> Result<(), Error> {
        let in_place = self.inputs.iter().zip(inputs).map(|(input, bytes)| {
            let start = input.rows.as_ref().map_or(0, |rows| rows.start(0));
            BlockInput::InPlace(bytes.get(start..).unwrap_or_default())
        });
        let mut registers = Registers {
            inputs: in_place.collect(),
            buffers: SmallVec::new(),
            outputs: outputs.iter_mut().map(|rest| Rows { rest, stage: None, is_streamed: false }).collect(),
        };
        kernel.run(self.rows, &mut registers, &mut [])
    }

    /// The number of rows in a block: as many as the cache has room for in all registers.
    pub(in crate::graph) fn block_rows(&self) -> usize {
        let inputs = self.inputs.iter().filter_map(|input| Some(input.rows.as_ref()?.width));
        let row_bytes: usize = inputs.chain(self.buffers.iter().chain(&self.outputs).copied()).sum();
        self.rows_of_block(CLUSTER_BLOCK_BYTES / row_bytes.max(1), 0, self.rows)
    }

    /// The number of rows, at least one, of the block that begins with row `first`, before `end`, of at most
    /// `block` rows. Inputs that are not gathered can be read in place.
    fn rows_of_block(&self, block: usize, first: usize, end: usize) -> usize {
        let inputs = self.inputs.iter().filter_map(|input| Some(input.rows.as_ref()?.rows_in_place(first)));
        let folds = self.folds.iter().map(|fold| fold.rows - first % fold.rows);
        inputs.chain(folds).fold(block.min(end - first), usize::min).max(1)
    }

    /// The number of bytes that [`Cluster::gathered`] takes.
    fn gathered_bytes(&self, block: usize) -> usize {
        self.inputs.iter().filter_map(|input| input.gathered_bytes(block)).map(aligned).sum()
    }

    /// Memory for the inputs that are gathered.
    fn gathered<'m: 'b, 'b>(&self, block: usize, memory: &mut &'m mut [u8]) -> SmallVec<[BlockInput<'b>; 8]> {
        self.inputs
            .iter()
            .map(|input| match input.gathered_bytes(block) {
                Some(bytes) => BlockInput::Gathered(take(memory, bytes)),
                None => BlockInput::InPlace(&[]),
            })
            .collect()
    }

    /// Calls `run` with the bytes of the inputs, of which those of one row that kernels read beside several rows
    /// are copied as often.
    fn with_copies<T>(&self, inputs: &[&[u8]], run: impl FnOnce(&[&[u8]]) -> T) -> T {
        // The number of each such input, with the bytes of its row and of all copies.
        let mut copied: SmallVec<[(usize, usize, usize); 4]> = SmallVec::new();
        for member in &self.members {
            for operand in &member.operands {
                if let (Register::Input(index), Extent::SameRow) = (operand.register, operand.extent)
                    && operand.is_repeated(member.elements)
                    && copied.iter().all(|&(known, ..)| known != index)
                {
                    let bytes = member.elements * operand.dtype.width();
                    copied.push((index, bytes, bytes * copies_of_row(member.elements)));
                }
            }
        }
        if copied.is_empty() {
            return run(inputs);
        }
        let length = copied.iter().map(|&(_, _, all)| aligned(all)).sum();
        with_kept(&COPIES, length, |mut memory| {
            let mut inputs: SmallVec<[&[u8]; 8]> = inputs.iter().copied().collect();
            for &(index, row, all) in &copied {
                let rows = take(&mut memory, all);
                rows.chunks_exact_mut(row).for_each(|copy| copy.copy_from_slice(&inputs[index][..row]));
                inputs[index] = rows;
            }
            run(&inputs)
        })
    }

    /// Goes to the block of some rows from the row `first` on. Products have rows from the row `origin` on.
    fn begin_block<'b>(
        &self,
        inputs: &[&'b [u8]],
        (origin, first, rows): (usize, usize, usize),
        to: &mut [BlockInput<'b>],
    ) {
        for ((input, &bytes), to) in self.inputs.iter().zip(inputs).zip(to) {
            let first = if input.product.is_some() { first - origin } else { first };
            match (&input.rows, to) {
                (_, BlockInput::Overwritten(_)) => {}
                (Some(of), BlockInput::Gathered(out)) if of.is_gathered => {
                    let out = &mut out[..rows * of.width];
                    match &input.assembled {
                        None => of.gather(bytes, first, out),
                        Some(AssembledInput { value, sources }) => {
                            let sources = sources.iter().map(|&source| inputs[source]);
                            value.gather(&sources.collect::<SmallVec<[&[u8]; 4]>>(), first * of.width, out);
                        }
                    }
                }
                (Some(of), BlockInput::Gathered(copies)) => {
                    let row = &bytes[of.start(first)..][..of.width];
                    copies.chunks_exact_mut(of.width).for_each(|copy| copy.copy_from_slice(row));
                }
                (Some(_), to) if input.in_runs => *to = BlockInput::InRuns(Run { bytes, first }),
                (Some(of), to) => *to = BlockInput::InPlace(&bytes[of.start(first)..]),
                (None, to) => *to = BlockInput::InPlace(bytes),
            }
        }
    }

    /// Computes the results from the bytes of the inputs. Those of inputs that are overwritten are in `outputs`.
    pub(in crate::graph) fn run(
        &self,
        inputs: &[&[u8]],
        overwritten: &[Overwritten],
        outputs: &mut [&mut [u8]],
    ) -> Result<(), Error> {
        if self.runs_at_once
            && let [kernel] = &self.kernels[..]
        {
            return self.run_at_once(kernel, inputs, outputs);
        }
        let loops = self.loops(inputs, |_| true);
        let block = self.block_rows();
        self.with_copies(inputs, |inputs| {
            let mut run = |_, members: usize| match self.product_rows() {
                Some(rows) => self.in_product_parts(rows, &mut *outputs, |part| {
                    self.run_product_part(&loops[..members], inputs, block, part)
                }),
                None => self.in_parts(block * CLUSTER_BLOCKS_PER_PART, self.cost, &mut *outputs, |part| {
                    self.run_part(&loops[..members], (inputs, overwritten), block, part)
                }),
            };
            run(1, self.members.len()).or_else(|error| self.first_error(error, 1, run))
        })
    }

    /// The error of the first member that fails in the first trip in which one does, given the first error that a
    /// block of rows came to. `run` computes some trips, in the last of them only the first members.
    #[cold]
    fn first_error(
        &self,
        error: Error,
        trips: usize,
        mut run: impl FnMut(usize, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let can_fail = |&at: &usize| self.members[at].can_fail();
        let failing: SmallVec<[usize; 4]> = (0..self.members.len()).filter(can_fail).collect();
        if failing.len() > 1 {
            (1..=trips).try_for_each(|trips| failing.iter().try_for_each(|at| run(trips, at + 1)))?;
        }
        Err(error)
    }

    /// Computes the results of several trips of a loop, those of the last trip, all trips for some rows
    /// before the next rows. `inputs` has the bytes of the first trip, but for those of carried inputs whose
    /// results are in `overwritten`: `outputs` has them.
    pub(in crate::graph) fn run_trips(
        &self,
        inputs: &[&[u8]],
        overwritten: &[usize],
        outputs: &mut [&mut [u8]],
        trips: Trips<'_>,
    ) -> Result<(), Error> {
        let cost = self.cost.saturating_mul(trips.count as Cost);
        let block = self.block_rows();
        let first: SmallVec<[&[u8]; 8]> =
            inputs.iter().enumerate().map(|(index, bytes)| trips.input(index, 0, bytes)).collect();
        let loops = self.loops(&first, |_| true);
        let has_number = |member: &Member| {
            member.operands.iter().any(|operand| match operand.register {
                Register::Input(index) => matches!(trips.inputs[index], TripInput::Number(_)),
                _ => false,
            })
        };
        let varies: SmallVec<[bool; 16]> = self.members.iter().map(has_number).collect();
        let of_trips = (0..trips.count).map(|trip| -> Loops<'_> {
            let inputs = inputs.iter().enumerate().map(|(index, bytes)| trips.input(index, trip, bytes));
            let inputs: SmallVec<[&[u8]; 8]> = inputs.collect();
            self.loops(&inputs, |at| varies[at])
        });
        let of_trips = of_trips.collect();
        let loops = TripLoops { loops, varies, of_trips };
        self.with_copies(inputs, |inputs| {
            let mut run = |count: usize, last_members: usize| {
                self.in_parts(block, cost, &mut *outputs, |part| {
                    self.run_part_trips(
                        &loops,
                        (inputs, overwritten),
                        block,
                        part,
                        (trips, count, last_members),
                    )
                })
            };
            let (count, all) = (trips.count, self.members.len());
            run(count, all).or_else(|error| self.first_error(error, count, run))
        })
    }

    /// How the members that are `wanted` are computed.
    fn loops(&self, inputs: &[&[u8]], wanted: impl Fn(usize) -> bool) -> Loops<'_> {
        let mut loops = Loops::new();
        for (at, member) in self.members.iter().enumerate().filter(|(at, _)| wanted(*at)) {
            loops.push(match self.kernel(at) {
                Some(kernel) if kernel.members().start == at => MemberLoop::Vectors(kernel),
                Some(_) => MemberLoop::Computed,
                None => MemberLoop::new(member, inputs),
            });
        }
        loops
    }

    /// Calls `run` for parts of some rows, which threads share, or for all rows if that pays more.
    fn in_parts<'a>(
        &self,
        part_rows: usize,
        cost: Cost,
        outputs: &'a mut [&mut [u8]],
        run: impl Fn(Part<'a>) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let parts = parallel::parts(cost::work(self.rows, cost), false);
        let part_rows = part_rows.min(self.rows.div_ceil(parts)).max(1);
        // A result of a fold belongs to one part.
        let part_rows = self.folds.first().map_or(part_rows, |fold| part_rows.next_multiple_of(fold.rows));
        if self.rows <= part_rows || !parallel::pays(self.rows, cost) {
            let outputs = outputs.iter_mut().map(|output| &mut **output);
            return run(Part { first: 0, rows: self.rows, outputs: outputs.collect() });
        }
        let parts = self.parts(outputs, |first| part_rows.min(self.rows - first));
        parallel::try_each(self.rows, cost, parts.into_iter(), run)
    }

    /// The parts of all rows; `rows_from` gives the number of rows of the part that begins with a row.
    pub(super) fn parts<'a>(
        &self,
        outputs: &'a mut [&mut [u8]],
        rows_from: impl Fn(usize) -> usize,
    ) -> Vec<Part<'a>> {
        let mut rests: SmallVec<[&'a mut [u8]; 4]> = outputs.iter_mut().map(|output| &mut **output).collect();
        let mut parts = Vec::new();
        let mut first = 0;
        while first < self.rows {
            let rows = rows_from(first);
            let outputs = rests.iter_mut().enumerate().map(|(index, rest)| {
                let (part, after) = std::mem::take(rest).split_at_mut(self.result_bytes(index, rows));
                *rest = after;
                part
            });
            parts.push(Part { first, rows, outputs: outputs.collect() });
            first += rows;
        }
        parts
    }

    /// The number of bytes of a result, of those of rows or of a fold, for some rows from the start of a part on.
    fn result_bytes(&self, result: usize, rows: usize) -> usize {
        match result.checked_sub(self.outputs.len()) {
            None => rows * self.result_row_bytes(result),
            Some(fold) => {
                let fold = &self.folds[fold];
                rows.div_ceil(fold.rows) * fold.accumulation.result_bytes()
            }
        }
    }

    /// Computes a part, one block after the other.
    pub(super) fn run_part(
        &self,
        loops: &[MemberLoop<'_>],
        (inputs, overwritten): (&[&[u8]], &[Overwritten]),
        block: usize,
        part: Part<'_>,
    ) -> Result<(), Error> {
        // Results that are too large to stay in a cache are computed in buffers too, and copied past it, but for
        // the left operand of a product. So are those whose memory an input still has.
        let result = self.product.as_ref().map(|(result, _)| *result);
        let over = |index: usize| overwritten.iter().find(|pair| pair.output == index);
        let is_over = |index: usize| over(index).is_some();
        let is_staged = |(index, width): (usize, &usize)| match over(index) {
            Some(pair) => !pair.at_once,
            None => result != Some(index) && streaming_stores::is_large(width * self.rows),
        };
        // Where no value is kept for another member, rows need not stay in a cache.
        let is_one_pass = self.is_one_kernel()
            && !self.outputs.iter().enumerate().any(is_staged)
            && self.gathered_bytes(1) == 0
            && self.kernels.iter().all(|kernel| kernel.copied_bytes(part.rows) <= CLUSTER_BLOCK_BYTES);
        let block = if is_one_pass { part.rows } else { block };
        let buffered = |width: &usize| width * block;
        let staged = self.outputs.iter().enumerate().filter(|&output| is_staged(output));
        let staged = staged.map(|(_, width)| buffered(width));
        let states = self.folds.iter().map(|fold| fold.accumulation.state_bytes());
        let lengths = self.buffers.iter().map(buffered).chain(staged).chain(states);
        let length = lengths.map(aligned).sum::<usize>() + self.gathered_bytes(block);
        with_kept(&BUFFERS, length + self.lane_bytes(loops, block), |mut memory| {
            let mut block_inputs = self.gathered(block, &mut memory);
            for pair in overwritten {
                block_inputs[pair.input] = BlockInput::Overwritten(pair.output);
            }
            let buffers = self.buffers.iter().map(|width| take(&mut memory, buffered(width))).collect();
            let mut outputs = part.outputs.into_iter();
            let rows = outputs.by_ref().take(self.outputs.len());
            let outputs_of_rows = rows
                .zip(self.outputs.iter().enumerate())
                .map(|(rest, output)| {
                    let stage = is_staged(output).then(|| take(&mut memory, buffered(output.1)));
                    Rows { rest, stage, is_streamed: !is_over(output.0) }
                })
                .collect();
            let mut folds: SmallVec<[(&mut [u8], &mut [u8]); 2]> = outputs
                .zip(&self.folds)
                .map(|(out, fold)| (out, take(&mut memory, fold.accumulation.state_bytes())))
                .collect();
            let mut registers = Registers { inputs: block_inputs, buffers, outputs: outputs_of_rows };
            let mut done = 0;
            while done < part.rows {
                let rows = self.rows_of_block(block, part.first + done, part.first + part.rows);
                self.begin_block(inputs, (part.first, part.first + done, rows), &mut registers.inputs);
                for (member, member_loop) in self.members.iter().zip(loops) {
                    member_loop.run(member, rows, &mut registers, memory).map_err(|error| *error)?;
                }
                let block_rows = (part.first + done, rows, self.rows);
                for (fold, (out, state)) in self.folds.iter().zip(&mut folds) {
                    fold.add(registers.bytes(fold.operand), block_rows, state, out);
                }
                for (output, width) in registers.outputs.iter_mut().zip(&self.outputs) {
                    output.advance(rows * width);
                }
                done += rows;
            }
            Ok(())
        })
    }

    /// Computes `count` of the trips of a part, in the last of them the first members only, one block after the
    /// other. What a trip computes of a block, the next trip reads while it is in the cache.
    fn run_part_trips<'m>(
        &'m self,
        TripLoops { loops, varies, of_trips }: &TripLoops<'m>,
        (inputs, overwritten): (&[&[u8]], &[usize]),
        block: usize,
        part: Part<'_>,
        (trips, count, last_members): (Trips<'_>, usize, usize),
    ) -> Result<(), Error> {
        let buffered = |width: &usize| width * block;
        let buffers = self.buffers.iter().map(buffered);
        let carried = self.outputs.iter().map(buffered);
        let length = buffers.chain(carried.clone()).chain(carried).map(aligned).sum::<usize>();
        let length = length + self.gathered_bytes(block) + self.lane_bytes(loops, block);
        with_kept(&BUFFERS, length, |mut memory| {
            let mut block_inputs = self.gathered(block, &mut memory);
            for (input, of) in block_inputs.iter_mut().zip(trips.inputs) {
                if let TripInput::Carried(output) = of
                    && overwritten.contains(output)
                {
                    *input = BlockInput::Overwritten(*output);
                }
            }
            let mut buffers: SmallVec<[&mut [u8]; 16]> =
                self.buffers.iter().map(|width| take(&mut memory, buffered(width))).collect();
            let mut next: SmallVec<[&mut [u8]; 4]> =
                self.outputs.iter().map(|width| take(&mut memory, buffered(width))).collect();
            let mut previous: SmallVec<[&mut [u8]; 4]> =
                self.outputs.iter().map(|width| take(&mut memory, buffered(width))).collect();
            let mut outputs: SmallVec<[&mut [u8]; 4]> =
                part.outputs.into_iter().map(|output| -> &mut [u8] { output }).collect();
            let mut done = 0;
            while done < part.rows {
                let rows = self.rows_of_block(block, part.first + done, part.first + part.rows);
                self.begin_block(inputs, (part.first, part.first + done, rows), &mut block_inputs);
                // What the first trip reads is as what a trip before it would have written.
                for &output in overwritten {
                    let bytes = rows * self.outputs[output];
                    next[output][..bytes].copy_from_slice(&outputs[output][..bytes]);
                }
                for (trip, of_trip) in of_trips.iter().enumerate().take(count) {
                    std::mem::swap(&mut next, &mut previous);
                    let is_last = trip + 1 == count;
                    let members = if is_last { last_members } else { self.members.len() };
                    let results = if is_last { &mut outputs } else { &mut next };
                    let inputs = block_inputs.iter().enumerate();
                    let inputs = inputs.map(|(index, input)| match trips.inputs[index] {
                        TripInput::Carried(output) if trip > 0 || overwritten.contains(&output) => {
                            &*previous[output]
                        }
                        _ => trips.input(index, trip, input.bytes()),
                    });
                    let inputs: SmallVec<[&[u8]; 8]> = inputs.collect();
                    let mut registers = Registers {
                        inputs: inputs.iter().map(|bytes| BlockInput::InPlace(bytes)).collect(),
                        buffers: buffers.iter_mut().map(|buffer| &mut **buffer).collect(),
                        outputs: results
                            .iter_mut()
                            .map(|rest| Rows { rest, stage: None, is_streamed: false })
                            .collect(),
                    };
                    let mut of_trip = of_trip.iter();
                    for ((member, member_loop), &varies) in
                        self.members.iter().zip(loops).zip(varies).take(members)
                    {
                        let of_trip = if varies { of_trip.next() } else { None };
                        let member_loop = of_trip.unwrap_or(member_loop);
                        member_loop.run(member, rows, &mut registers, memory).map_err(|error| *error)?;
                    }
                }
                for (output, width) in outputs.iter_mut().zip(&self.outputs) {
                    *output = &mut std::mem::take(output)[rows * width..];
                }
                done += rows;
            }
            Ok(())
        })
    }

    /// The number of bytes for conversions and copies of elements in a block.
    fn lane_bytes(&self, loops: &[MemberLoop<'_>], block: usize) -> usize {
        let bytes = self.members.iter().zip(loops).map(|(member, member_loop)| match member_loop {
            MemberLoop::Vectors(kernel) => kernel.copied_bytes(block),
            _ => member_loop.lane_bytes(block * member.elements),
        });
        bytes.max().unwrap_or(0)
    }
}
