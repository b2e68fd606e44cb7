//! Teams: threads of the pool that wait actively for the next operation of a program.
//!
//! Problem: to wake up a thread takes as long as an operation of some ten microseconds, so that
//! alone such an operation does not pay to be shared. A program is a sequence of operations.
//! Technique: a thread that has shared an operation of a program spins for a bounded time until the
//! program offers the next one (the active wait policy and the block time of OpenMP). While threads
//! wait, smaller operations pay to be shared. A thread that waits leaves its team for the work of
//! others.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::cost::{MIN_WORK_PER_TEAM_MEMBER, TEAM_SPIN_DURATION, TEAM_WAIT_DURATION, Work};
use crate::exec::threads::pool::lock;

thread_local! {
    /// The team of the program that the thread runs.
    static TEAM: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

/// Work that threads may join in until it is done.
pub(super) trait Offer: Send + Sync {
    /// Does some of the work, if there is any left.
    fn join_in(&self);
}

/// The number of offers that the pool has been given and no thread has taken yet.
static QUEUED: AtomicUsize = AtomicUsize::new(0);

/// While it exists, operations of the calling thread are shared with threads that wait for them.
#[derive(Debug)]
pub struct Team(PhantomData<*const ()>);

impl Team {
    /// A team without members for the calling thread.
    #[must_use]
    pub fn new() -> Self {
        TEAM.set(Some(Arc::default()));
        Team(PhantomData)
    }
}

impl Default for Team {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        if let Some(team) = TEAM.take() {
            team.has_ended.store(true, Ordering::Release);
        }
    }
}

/// What a program shares with the members of its team.
#[derive(Default)]
pub(super) struct Shared {
    /// The number of threads that wait for offers, or work on the last one.
    members: AtomicUsize,
    /// Offers that no member has taken yet. They may be closed.
    offers: Mutex<Vec<Arc<dyn Offer>>>,
    /// The number of these offers.
    waiting_offers: AtomicUsize,
    has_ended: AtomicBool,
}

/// The team of the calling thread's program.
pub(super) fn current() -> Option<Arc<Shared>> {
    TEAM.with_borrow(Clone::clone)
}

/// The number of threads, including the calling thread, that pay for some work of the calling thread's
/// program: those that wait, and one more, which will wait afterwards.
pub(super) fn max_threads(work: Work) -> usize {
    let most = usize::try_from(work / MIN_WORK_PER_TEAM_MEMBER).unwrap_or(usize::MAX);
    if most < 2 {
        return 1;
    }
    TEAM.with_borrow(|team| match team {
        Some(team) => {
            let may_grow = QUEUED.load(Ordering::Relaxed) == 0;
            most.min(1 + team.members.load(Ordering::Relaxed) + usize::from(may_grow))
        }
        None => 1,
    })
}

/// Counts an offer that is given to the pool.
pub(super) fn queue() {
    QUEUED.fetch_add(1, Ordering::Relaxed);
}

/// Joins in an offer that the pool was given, and in those that follow if the owner has a team.
pub(super) fn join_in(offer: &dyn Offer, team: Option<&Shared>) {
    QUEUED.fetch_sub(1, Ordering::Relaxed);
    let Some(team) = team else { return offer.join_in() };
    team.members.fetch_add(1, Ordering::SeqCst);
    offer.join_in();
    loop {
        team.wait();
        team.members.fetch_sub(1, Ordering::SeqCst);
        // The owner has seen that the thread is gone, or the thread sees what the owner has offered.
        let Some(offer) = team.next() else { return };
        team.members.fetch_add(1, Ordering::SeqCst);
        offer.join_in();
    }
}

impl Shared {
    /// Offers work to at most `threads` members; returns the number of them that are still there.
    pub(super) fn post(&self, offer: &Arc<dyn Offer>, threads: usize) -> usize {
        let count = self.members.load(Ordering::Relaxed).min(threads);
        if count == 0 {
            return 0;
        }
        let mut offers = lock(&self.offers);
        // What members have not taken by now is closed.
        offers.clear();
        offers.extend(std::iter::repeat_with(|| Arc::clone(offer)).take(count));
        self.waiting_offers.store(count, Ordering::SeqCst);
        drop(offers);
        self.members.load(Ordering::SeqCst).min(count)
    }

    /// Joins in the offers of the program until it ends, or makes none for some time, or others need the
    /// thread.
    fn wait(&self) {
        let mut start = Instant::now();
        while !self.has_ended.load(Ordering::Acquire) {
            if let Some(offer) = self.next() {
                offer.join_in();
                start = Instant::now();
                continue;
            }
            let waited = start.elapsed();
            if waited > TEAM_WAIT_DURATION || QUEUED.load(Ordering::Relaxed) > 0 {
                return;
            }
            spin(waited);
        }
    }

    fn next(&self) -> Option<Arc<dyn Offer>> {
        if self.waiting_offers.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let mut offers = lock(&self.offers);
        let next = offers.pop();
        self.waiting_offers.store(offers.len(), Ordering::SeqCst);
        next
    }
}

/// Spins for a moment, or, after some time, lets another thread have the core if one wants it.
fn spin(waited: Duration) {
    if waited > TEAM_SPIN_DURATION {
        return std::thread::yield_now();
    }
    for _ in 0..8 {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_work_is_shared_in_a_team_only() {
        assert_eq!(max_threads(2 * MIN_WORK_PER_TEAM_MEMBER), 1);
        let _team = Team::new();
        assert_eq!(max_threads(2 * MIN_WORK_PER_TEAM_MEMBER - 1), 1);
        assert!(max_threads(2 * MIN_WORK_PER_TEAM_MEMBER) <= 2);
    }
}
