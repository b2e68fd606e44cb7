//! Loops of gradients: the trips of a loop in reverse order, each of which is passed the values that the
//! loop had at its start (reverse-mode differentiation).
//!
//! The loop's values are computed once from its start to its end and kept. If there are too many bytes of
//! them, only every so many are kept, and those between two of them are computed again when their trips
//! come (checkpointing; Griewank and Walther, "Evaluating Derivatives", chapter 12, with one level).

use std::mem::size_of;

use smallvec::SmallVec;

use super::operand::{Place, Slot, integer, word};
use super::value::Value;
use crate::cost::MAX_LOOP_HISTORY_BYTES;

/// A loop in reverse order, as [`super::source::ReverseLoop`] describes it.
#[derive(Debug)]
pub(super) struct Reversal {
    pub(super) forward: usize,
    pub(super) backward: usize,
    pub(super) trips: Count,
    pub(super) initial: Box<[Place]>,
    pub(super) gradients: Box<[Place]>,
    pub(super) invariants: Box<[Place]>,
    pub(super) outputs: Box<[Slot]>,
    /// The number of bytes that a trip adds to the values that are kept.
    pub(super) bytes: usize,
}

/// A scalar integer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    pub(super) place: Place,
    pub(super) is_signed: bool,
    pub(super) width: u8,
}

impl Count {
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
    gradients: Values<B>,
    /// The values at the start of every trip with a multiple of this as its number are kept until the trip
    /// is reversed.
    interval: usize,
    /// The number of the trip whose values a region has got.
    trip: usize,
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
        let kept = reversal.bytes + initial.len() * size_of::<Value<B>>() + size_of::<(usize, Values<B>)>();
        let fits = trips.checked_mul(kept).is_some_and(|bytes| bytes <= MAX_LOOP_HISTORY_BYTES);
        let interval = if fits { trips.max(1) } else { trips.isqrt() + 1 };
        Progress { left: trips, history: vec![(0, initial)], gradients, interval, trip: 0 }
    }

    /// What comes next.
    pub(super) fn next(&mut self, reversal: &Reversal) -> Next<B> {
        let Some((trip, mut values)) = self.history.pop().filter(|_| self.left > 0) else {
            return Next::End(std::mem::take(&mut self.gradients));
        };
        self.trip = trip;
        let last = self.left - 1;
        if trip == last {
            values.append(&mut self.gradients);
            return Next::Run(reversal.backward, values);
        }
        if trip.is_multiple_of(self.interval) || trip / self.interval == last / self.interval {
            self.history.push((trip, values.clone()));
        }
        Next::Run(reversal.forward, values)
    }

    /// Takes the results of the region that `next` has let run.
    pub(super) fn take(&mut self, results: Values<B>) {
        if self.trip + 1 == self.left {
            self.gradients = results;
            self.left -= 1;
        } else {
            self.history.push((self.trip + 1, results));
        }
    }
}
