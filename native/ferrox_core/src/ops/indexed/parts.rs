//! Updates, by the part of the target that they are for.
//!
//! Problem: updates anywhere in a large target miss the cache, each twice, and
//! two threads may not write to one target. Technique: updates are first moved
//! next to others for the same part, in their order; a part fits into the cache
//! of a core, and one thread at a time writes to it.

use std::ops::Range;

use super::{Indices, WRITE, Window, each_update};
use crate::exec::memory::{scratch, scratch_of};
use crate::exec::threads::parallel;
use crate::{DType, Error};

/// Elements of a part: totals of eight bytes are half a megabyte.
pub const PART: usize = 1 << 16;

/// Elements by their places in their parts.
pub struct Parts {
    places: Vec<u16>,
    values: Vec<u8>,
    width: usize,
    /// Where each part ends.
    ends: Vec<usize>,
}

/// Where the updates of some rows go that are for one part.
type Slots<'a, const N: usize> =
    std::iter::Zip<std::slice::IterMut<'a, u16>, std::slice::IterMut<'a, [u8; N]>>;

impl Parts {
    /// The updates of `window` at `rows` of a target of some size.
    pub fn new(
        rows: &Indices<'_>,
        window: &Window,
        (dtype, updates): (DType, &[u8]),
        size: usize,
    ) -> Result<Self, Error> {
        let (width, count, parts) = (dtype.width(), rows.count * window.size, size.div_ceil(PART));
        let mut places = scratch_of::<u16>(rows.op, DType::U16, &[count], count)?;
        let mut values = scratch(rows.op, dtype, &[count], count * width)?;
        let share = rows.count.div_ceil(parallel::threads_for(count, WRITE)).max(1);
        let job = Job { rows, window, updates, share };
        let mut counts = vec![0; rows.count.div_ceil(job.share) * parts];
        job.count(parts, &mut counts)?;
        match width {
            1 => job.distribute::<1>(parts, &counts, &mut places, &mut values),
            2 => job.distribute::<2>(parts, &counts, &mut places, &mut values),
            4 => job.distribute::<4>(parts, &counts, &mut places, &mut values),
            8 => job.distribute::<8>(parts, &counts, &mut places, &mut values),
            _ => job.distribute::<16>(parts, &counts, &mut places, &mut values),
        }?;
        let mut end = 0;
        let ends = (0..parts).map(|part| {
            end += counts.iter().skip(part).step_by(parts).sum::<usize>();
            end
        });
        Ok(Parts { ends: ends.collect(), places, values, width })
    }

    /// The places of a part, and the bytes of the updates for them.
    pub fn get(&self, part: usize) -> (&[u16], &[u8]) {
        let start = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        let range = start..self.ends[part];
        (&self.places[range.clone()], &self.values[range.start * self.width..range.end * self.width])
    }
}

struct Job<'a> {
    rows: &'a Indices<'a>,
    window: &'a Window,
    updates: &'a [u8],
    /// How many rows a thread distributes.
    share: usize,
}

impl Job<'_> {
    /// The rows that a thread distributes.
    fn rows_of(&self, i: usize) -> Range<usize> {
        i * self.share..self.rows.count.min((i + 1) * self.share)
    }

    /// How many updates of each share are for each part.
    fn count(&self, parts: usize, counts: &mut [usize]) -> Result<(), Error> {
        let shares = counts.chunks_mut(parts).enumerate();
        let counted = parallel::try_each(self.rows.count * self.window.size, WRITE, shares, |(i, counts)| {
            self.rows.each_tile(0, self.rows_of(i), |_, offsets, _| {
                each_update(self.window, offsets, |place, _| counts[place / PART] += 1);
                self.window.pause_after(offsets.len());
            })
        });
        // The first index that is out of bounds, whichever thread has met one.
        counted.map_err(|_| self.rows.outside(0))
    }

    fn distribute<const N: usize>(
        &self,
        parts: usize,
        counts: &[usize],
        mut places: &mut [u16],
        values: &mut [u8],
    ) -> Result<(), Error> {
        let (updates, mut values) = (self.updates.as_chunks::<N>().0, values.as_chunks_mut::<N>().0);
        let mut slots: Vec<Vec<Slots<'_, N>>> = counts.chunks(parts).map(|_| Vec::new()).collect();
        for part in 0..parts {
            for (slots, counts) in slots.iter_mut().zip(counts.chunks(parts)) {
                let (place, value);
                (place, places) = places.split_at_mut(counts[part]);
                (value, values) = values.split_at_mut(counts[part]);
                slots.push(place.iter_mut().zip(value));
            }
        }
        let shares = slots.into_iter().enumerate();
        parallel::try_each(self.rows.count * self.window.size, WRITE, shares, |(i, mut slots)| {
            self.rows.each_tile(0, self.rows_of(i), |start, offsets, _| {
                let updates = &updates[start * self.window.size..];
                each_update(self.window, offsets, |place, i| {
                    if let Some((slot, value)) = slots[place / PART].next() {
                        (*slot, *value) = ((place % PART) as u16, updates[i]);
                    }
                });
                self.window.pause_after(offsets.len());
            })
        })
    }
}
