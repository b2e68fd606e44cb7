//! Loops of gradients: the trips of a loop in reverse order, each of which is passed the values that the
//! loop had at its start (reverse-mode differentiation).
//!
//! The loop's values are computed once from its start to its end and kept. If they are too many, only those
//! at some distance are kept, and those between two of them are computed again when their trips come, in
//! the same way (checkpointing; Griewank and Walther, "Evaluating Derivatives", chapter 12).

use std::mem::size_of;

use smallvec::SmallVec;

use super::operand::{Place, Slot, integer, word};
use super::value::Value;
use crate::cost::MAX_LOOP_HISTORY_BYTES;
use crate::{DType, Error};

/// A loop in reverse order, as [`super::source::ReverseLoop`] describes it.
#[derive(Debug)]
pub(super) struct Reversal {
    pub(super) forward: usize,
    pub(super) backward: usize,
    pub(super) trips: TripCount,
    pub(super) initial: Box<[Place]>,
    pub(super) gradients: Box<[Place]>,
    pub(super) invariants: Box<[Place]>,
    pub(super) outputs: Box<[Slot]>,
    /// The number of bytes that a trip adds to the values that are kept.
    pub(super) bytes: usize,
}

/// The operand that says how many trips there are, a scalar integer.
#[derive(Clone, Copy, Debug)]
pub(super) struct TripCount {
    pub(super) place: Place,
    pub(super) is_signed: bool,
    pub(super) width: u8,
}

impl TripCount {
    /// The number, or zero if it is negative.
    pub(super) fn read(&self, bytes: &[u8]) -> usize {
        integer(word(bytes), self.is_signed, self.width)
    }
}

/// The values of a loop.
pub(super) type Values<B> = SmallVec<[Value<B>; 4]>;

/// How far a loop in reverse order has come.
#[derive(Debug)]
pub(super) struct Progress<B> {
    /// The number of trips that are to be reversed.
    left: usize,
    /// The values at the starts of trips, with the numbers of the trips in ascending order.
    history: Vec<(usize, Values<B>)>,
    /// The maximum number of trips in the history.
    most: usize,
    gradients: Values<B>,
    /// The number of the trip whose values a region has got.
    trip: usize,
    /// The first trip that is taken forward at present, and the distance of trips whose values are kept.
    forward: Option<(usize, usize)>,
}

/// What comes next in a loop in reverse order.
pub(super) enum Next<B> {
    /// A region runs with these values as its first parameters.
    Run(usize, Values<B>),
    /// The loop ends with these gradients.
    End(Values<B>),
}

impl<B> Progress<B> {
    pub(super) fn new(
        reversal: &Reversal,
        trips: usize,
        initial: Values<B>,
        gradients: Values<B>,
    ) -> Progress<B> {
        let slots = initial.len() * size_of::<Value<B>>() + size_of::<(usize, Values<B>)>();
        let most = MAX_LOOP_HISTORY_BYTES / reversal.bytes.saturating_add(slots);
        Progress { left: trips, history: vec![(0, initial)], most, gradients, trip: 0, forward: None }
    }

    /// What comes next.
    ///
    /// # Errors
    ///
    /// `Error::TooLarge` if there is no memory for the history.
    pub(super) fn next(&mut self, reversal: &Reversal) -> Result<Next<B>, Error> {
        let Some((trip, mut values)) = self.history.pop().filter(|_| self.left > 0) else {
            return Ok(Next::End(std::mem::take(&mut self.gradients)));
        };
        self.trip = trip;
        let last = self.left - 1;
        if trip == last {
            self.forward = None;
            values.append(&mut self.gradients);
            return Ok(Next::Run(reversal.backward, values));
        }
        let room = self.most.saturating_sub(self.history.len());
        let (first, distance) = *self.forward.get_or_insert_with(|| {
            let between = last - trip;
            // Half of the room is for the trips between two of those that are kept.
            let distance =
                if between < room { 1 } else { between.checked_div(room / 2).map_or(usize::MAX, |d| d + 1) };
            (trip, distance)
        });
        if (trip - first).is_multiple_of(distance) {
            self.keep(trip, values.clone())?;
        }
        Ok(Next::Run(reversal.forward, values))
    }

    /// Takes the results of the region that `next` has let run.
    ///
    /// # Errors
    ///
    /// As `next`.
    pub(super) fn take(&mut self, results: Values<B>) -> Result<(), Error> {
        if self.trip + 1 == self.left {
            self.gradients = results;
            self.left -= 1;
            return Ok(());
        }
        self.keep(self.trip + 1, results)
    }

    fn keep(&mut self, trip: usize, values: Values<B>) -> Result<(), Error> {
        let length = self.history.len();
        self.history.try_reserve(1).map_err(|_| Error::TooLarge {
            op: "while",
            dtype: DType::U8,
            shape: vec![length, size_of::<(usize, Values<B>)>()],
        })?;
        self.history.push((trip, values));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: usize) -> Value<Vec<u8>> {
        Value::small(&number.to_ne_bytes())
    }

    #[test]
    fn trips_come_in_reverse_order_with_little_memory() {
        for most in [0, 1, 2, 3, 4, 10, 30, 1_000] {
            let bytes = MAX_LOOP_HISTORY_BYTES / (most + 1);
            let count = TripCount { place: Place::Literal(0), is_signed: false, width: 8 };
            let none = || Box::from([]);
            let reversal = Reversal {
                forward: 1,
                backward: 2,
                trips: count,
                initial: none(),
                gradients: none(),
                invariants: none(),
                outputs: Box::from([]),
                bytes,
            };
            for trips in [0, 1, 2, 3, 50, 500] {
                let values = Values::from_iter([number(0)]);
                let mut progress = Progress::new(&reversal, trips, values, Values::new());
                let (mut reversed, mut forward) = (Vec::new(), 0);
                while let Ok(Next::Run(region, values)) = progress.next(&reversal) {
                    let trip = word(values[0].bytes(&[], &[])) as usize;
                    if region == 2 {
                        reversed.push(trip);
                        progress.take(Values::new()).expect("memory");
                    } else {
                        forward += 1;
                        progress.take(Values::from_iter([number(trip + 1)])).expect("memory");
                    }
                    assert!(
                        progress.history.len() <= most.max(1) + 1,
                        "{} of {most}",
                        progress.history.len()
                    );
                }
                assert!(reversed.into_iter().eq((0..trips).rev()), "{trips} trips, {most}");
                let passes = if trips <= most {
                    1
                } else if most >= 30 {
                    3
                } else {
                    trips
                };
                assert!(forward <= passes * trips, "{forward} forward for {trips} trips, {most}");
            }
        }
    }
}
