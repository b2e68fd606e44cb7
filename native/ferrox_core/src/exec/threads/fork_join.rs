//! Fork-join with closing offers: threads of the pool may join in some work until it is done.
//!
//! Problem: in a plain fork-join, a thread that shares work of a few microseconds waits until every
//! thread of the pool has woken up, which takes much longer than the work, above all where other
//! processes keep the cores busy.
//! Technique: the owner offers its work and works too. When it is done, it closes the offer and
//! only waits for the threads that have begun. A thread that wakes up later finds the offer closed
//! and doesn't touch the work.

#![allow(unsafe_code, reason = "threads borrow work that may be gone when they come")]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::Instant;

use rayon_core::ThreadPool;

use crate::cost::SPIN_DURATION;
use crate::exec::threads::pool::lock;
use crate::exec::threads::{affinity, team};

/// The bit of `Offer::running` that is set when the offer is closed and no thread may begin.
const OFFER_CLOSED: usize = 1 << (usize::BITS - 1);

struct Offer {
    work: *const (dyn Fn() + Sync),
    /// The number of threads that have begun and aren't done, and the bit `OFFER_CLOSED`.
    running: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    owner: Thread,
    /// Whether the owner is not a thread of the pool.
    is_owner_outside: bool,
}

// SAFETY: `work` points to a closure that is `Sync`, and only `join_in` dereferences it, while the
// closure is alive.
unsafe impl Send for Offer {}
// SAFETY: as above.
unsafe impl Sync for Offer {}

impl team::Offer for Offer {
    /// Does the work on the calling thread, unless the offer is closed.
    fn join_in(&self) {
        let begin = |running| (running & OFFER_CLOSED == 0).then_some(running + 1);
        if self.running.fetch_update(Ordering::Acquire, Ordering::Relaxed, begin).is_err() {
            return;
        }
        // SAFETY: the offer isn't closed, and `close`, which is called before the closure is
        // dropped, waits for the threads that have begun, as this one has.
        let work = unsafe { &*self.work };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
            let mut first = lock(&self.panic);
            match &*first {
                None => *first = Some(panic),
                // Dropping a second payload might panic.
                Some(_) => std::mem::forget(panic),
            }
        }
        if self.running.fetch_sub(1, Ordering::Release) == OFFER_CLOSED + 1 {
            self.owner.unpark();
        }
    }
}

impl Offer {
    /// Lets no further thread begin, and waits for the threads that have begun.
    fn close(&self) {
        if self.running.fetch_or(OFFER_CLOSED, Ordering::AcqRel) == 0 {
            return;
        }
        let is_any_running = || self.running.load(Ordering::Acquire) != OFFER_CLOSED;
        let mut until = None;
        while is_any_running() {
            let now = Instant::now();
            if now >= *until.get_or_insert(now + SPIN_DURATION) {
                break;
            }
            for _ in 0..8 {
                std::hint::spin_loop();
            }
        }
        if is_any_running() {
            // The other threads may need the caller's core, which is free while the caller sleeps.
            let _released = self.is_owner_outside.then(affinity::release);
            while is_any_running() {
                thread::park();
            }
        }
    }
}

/// Calls `own` on the calling thread, while up to `threads` threads of the pool call `work` as they
/// become free. Returns when the calling thread and every thread that has begun are done; panics if
/// one of them has panicked.
pub(in crate::exec) fn offer(
    pool: &ThreadPool,
    threads: usize,
    work: &(dyn Fn() + Sync),
    own: impl FnOnce(),
) {
    struct Close<'a>(&'a Offer);
    impl Drop for Close<'_> {
        fn drop(&mut self) {
            self.0.close();
        }
    }
    let is_owner_outside = pool.current_thread_index().is_none();
    let threads = threads.min(pool.current_num_threads() - usize::from(!is_owner_outside));
    if threads == 0 {
        return own();
    }
    if is_owner_outside {
        affinity::keep_off_caller_core(pool.current_num_threads());
    }
    // SAFETY: only the lifetime changes, and the pointer isn't dereferenced after `Close` has been
    // dropped, which happens before the closure is dropped, also if `own` panics.
    let work = unsafe { std::mem::transmute::<&(dyn Fn() + Sync), *const (dyn Fn() + Sync)>(work) };
    let offer = Arc::new(Offer {
        work,
        running: AtomicUsize::new(0),
        panic: Mutex::new(None),
        owner: thread::current(),
        is_owner_outside,
    });
    let close = Close(&offer);
    let shared: Arc<dyn team::Offer> = Arc::<Offer>::clone(&offer);
    let team = team::current();
    let waiting = team.as_ref().map_or(0, |team| team.post(&shared, threads));
    for _ in waiting..threads {
        let (shared, team) = (Arc::clone(&shared), team.clone());
        team::queue();
        pool.spawn(move || team::join_in(&*shared, team.as_deref()));
    }
    own();
    drop(close);
    let panic = lock(&offer.panic).take();
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;

    use std::time::Duration;

    use super::*;
    use crate::exec::threads::team::Team;

    fn pool(threads: usize) -> ThreadPool {
        rayon_core::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads")
    }

    #[test]
    fn those_that_have_begun_are_waited_for() {
        let (pool, both, done) = (pool(1), Barrier::new(2), AtomicBool::new(false));
        let help = || {
            both.wait();
            thread::sleep(Duration::from_millis(20));
            done.store(true, Ordering::Relaxed);
        };
        offer(&pool, 1, &help, || {
            both.wait();
        });
        assert!(done.load(Ordering::Relaxed));
    }

    #[test]
    fn those_that_come_late_are_not_waited_for_and_do_nothing() {
        let (pool, busy) = (pool(1), Arc::new(Barrier::new(2)));
        let others = Arc::clone(&busy);
        pool.spawn(move || {
            others.wait();
            others.wait();
        });
        busy.wait();
        // The pool's only thread is busy, so that it can't begin.
        offer(&pool, 1, &|| panic!("nobody should come"), || ());
        busy.wait();
        pool.install(|| ());
    }

    #[test]
    fn a_panic_of_either_reaches_who_offers_when_all_are_done() {
        let (pool, both) = (pool(1), Barrier::new(2));
        let meet = || {
            both.wait();
        };
        let caught = |theirs: bool| {
            catch_unwind(AssertUnwindSafe(|| {
                let help = || {
                    meet();
                    assert!(!theirs, "theirs");
                };
                offer(&pool, 1, &help, || {
                    meet();
                    assert!(theirs, "own");
                });
            }))
        };
        for theirs in [true, false] {
            let panic = caught(theirs).expect_err("a panic");
            assert_eq!(panic.downcast_ref(), Some(&if theirs { "theirs" } else { "own" }));
        }
    }

    /// Shares work that two threads must do.
    fn meet(pool: &ThreadPool) {
        let both = Barrier::new(2);
        let wait = || {
            both.wait();
        };
        offer(pool, 1, &wait, wait);
    }

    #[test]
    fn a_member_takes_the_next_offers_until_the_program_ends() {
        let pool = pool(1);
        let team = Team::new();
        for _ in 0..100 {
            meet(&pool);
        }
        drop(team);
        assert!(team::current().is_none());
        // The thread is free for others.
        pool.install(|| ());
    }

    #[test]
    fn a_member_leaves_for_the_work_of_others() {
        let pool = &pool(1);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let _team = Team::new();
                    let mut shared = 0;
                    // An offer that the member did not see before it left is not shared.
                    while shared < 20 {
                        let has_come = AtomicBool::new(false);
                        let come = || has_come.store(true, Ordering::Relaxed);
                        let start = Instant::now();
                        let wait = || {
                            while !has_come.load(Ordering::Relaxed)
                                && start.elapsed() < Duration::from_millis(1)
                            {
                                std::thread::yield_now();
                            }
                        };
                        offer(pool, 1, &come, wait);
                        shared += usize::from(has_come.into_inner());
                    }
                });
            }
        });
    }
}
