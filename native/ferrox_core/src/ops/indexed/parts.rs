//! Updates of a large target, partitioned by the part of the target that they are for.
//!
//! Problem: updates anywhere in a large target miss the cache, each of them twice, and two threads
//! may not write to one element. Technique: propagation blocking (S. Beamer, K. Asanović, D.
//! Patterson, Reducing PageRank Communication via Propagation Blocking, 2017). The updates of each
//! part are first moved next to each other, in their order; a part fits into the cache of a core,
//! and one thread at a time writes to it.

use std::ops::Range;

use super::{Indices, Window, for_each_update};
use crate::cost::SCATTER_COST;
use crate::exec::memory::{scratch, scratch_of};
use crate::exec::threads::parallel;
use crate::{DType, Error, dispatch};

/// The number of elements in a part of the target: a position in a part fits into 16 bits, and
/// totals of eight bytes fill half a megabyte.
pub const PARTITION_ELEMENTS: usize = 1 << 16;

/// Updates, partitioned by parts of the target.
pub struct PartitionedUpdates {
    /// The position of each update's element in its part.
    positions: Vec<u16>,
    values: Vec<u8>,
    width: usize,
    /// The end of each part's updates.
    ends: Vec<usize>,
}

/// The memory for the updates of one part that one thread distributes.
type UpdateSlots<'a, const N: usize> =
    std::iter::Zip<std::slice::IterMut<'a, u16>, std::slice::IterMut<'a, [u8; N]>>;

impl PartitionedUpdates {
    /// Partitions the updates of `window` at `rows` of a target of `size` elements.
    pub fn new(
        rows: &Indices<'_>,
        window: &Window,
        (dtype, updates): (DType, &[u8]),
        size: usize,
    ) -> Result<Self, Error> {
        let (width, count, parts) =
            (dtype.width(), rows.count * window.size, size.div_ceil(PARTITION_ELEMENTS));
        let mut positions = scratch_of::<u16>(rows.op, DType::U16, &[count], count)?;
        let mut values = scratch(rows.op, dtype, &[count], count * width)?;
        let share_rows = rows.count.div_ceil(parallel::threads_for(count, SCATTER_COST)).max(1);
        let partitioning = Partitioning { rows, window, updates, share_rows };
        let mut counts = vec![0; rows.count.div_ceil(share_rows) * parts];
        partitioning.count(parts, &mut counts)?;
        dispatch!(width width, N => {
            partitioning.distribute::<N>(parts, &counts, &mut positions, &mut values)
        })?;
        let mut end = 0;
        let ends = (0..parts).map(|part| {
            end += counts.iter().skip(part).step_by(parts).sum::<usize>();
            end
        });
        Ok(PartitionedUpdates { ends: ends.collect(), positions, values, width })
    }

    /// The positions and the bytes of a part's updates.
    pub fn get(&self, part: usize) -> (&[u16], &[u8]) {
        let start = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        let range = start..self.ends[part];
        (&self.positions[range.clone()], &self.values[range.start * self.width..range.end * self.width])
    }
}

/// The partitioning of updates, in a counting pass and a moving pass, with a share of the rows for
/// each thread.
struct Partitioning<'a> {
    rows: &'a Indices<'a>,
    window: &'a Window,
    updates: &'a [u8],
    /// The number of rows in a share.
    share_rows: usize,
}

impl Partitioning<'_> {
    fn rows_of_share(&self, i: usize) -> Range<usize> {
        i * self.share_rows..self.rows.count.min((i + 1) * self.share_rows)
    }

    /// Counts the updates of each share for each part.
    fn count(&self, parts: usize, counts: &mut [usize]) -> Result<(), Error> {
        let shares = counts.chunks_mut(parts).enumerate();
        let counted =
            parallel::try_each(self.rows.count * self.window.size, SCATTER_COST, shares, |(i, counts)| {
                self.rows.for_each_tile(0, self.rows_of_share(i), |_, offsets, _| {
                    for_each_update(self.window, offsets, |offset, _| {
                        counts[offset / PARTITION_ELEMENTS] += 1
                    });
                    self.window.yield_after(offsets.len());
                })
            });
        counted.map_err(|_| self.rows.out_of_bounds(0))
    }

    fn distribute<const N: usize>(
        &self,
        parts: usize,
        counts: &[usize],
        mut positions: &mut [u16],
        values: &mut [u8],
    ) -> Result<(), Error> {
        let (updates, mut values) = (self.updates.as_chunks::<N>().0, values.as_chunks_mut::<N>().0);
        let mut slots: Vec<Vec<UpdateSlots<'_, N>>> = counts.chunks(parts).map(|_| Vec::new()).collect();
        for part in 0..parts {
            for (slots, counts) in slots.iter_mut().zip(counts.chunks(parts)) {
                let (position, value);
                (position, positions) = positions.split_at_mut(counts[part]);
                (value, values) = values.split_at_mut(counts[part]);
                slots.push(position.iter_mut().zip(value));
            }
        }
        let shares = slots.into_iter().enumerate();
        parallel::try_each(self.rows.count * self.window.size, SCATTER_COST, shares, |(i, mut slots)| {
            self.rows.for_each_tile(0, self.rows_of_share(i), |start, offsets, _| {
                let updates = &updates[start * self.window.size..];
                for_each_update(self.window, offsets, |offset, i| {
                    if let Some((slot, value)) = slots[offset / PARTITION_ELEMENTS].next() {
                        (*slot, *value) = ((offset % PARTITION_ELEMENTS) as u16, updates[i]);
                    }
                });
                self.window.yield_after(offsets.len());
            })
        })
    }
}
