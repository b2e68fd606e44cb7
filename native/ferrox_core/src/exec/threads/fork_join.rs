//! Work that threads of a pool may join in, as long as it isn't done.
//!
//! Problem: who shares work of some microseconds, and waits until every thread of the pool has seen
//! to its share, waits for the last one to wake up: a fraction of a millisecond, or several where
//! others keep the cores busy. Technique: who comes late finds the offer closed and touches nothing;
//! only those that have begun are waited for.

#![allow(unsafe_code, reason = "threads borrow work that may be gone when they come")]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rayon_core::ThreadPool;

use crate::exec::threads::affinity;
use crate::exec::threads::pool::lock;

/// How long a thread looks whether others are done before it sleeps: as long as it takes to wake up.
/// (`kernels`: dot_with_vector_f32; benches/linalg.rs: qr and eigh, which share hundreds of products,
/// take a tenth less than if it slept at once.)
const SPIN_DURATION: Duration = Duration::from_micros(50);

/// Set in `Offer::inside` once nobody may begin.
const OFFER_CLOSED: usize = 1 << (usize::BITS - 1);

struct Offer {
    work: *const (dyn Fn() + Sync),
    /// How many have begun and aren't done, and `OFFER_CLOSED`.
    running: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    owner: Thread,
    /// Whether that is none of the pool.
    is_owner_outside: bool,
}

// SAFETY: `work` points to what is Sync, and is only followed by `join_in`, while it is there.
unsafe impl Send for Offer {}
// SAFETY: as above.
unsafe impl Sync for Offer {}

impl Offer {
    /// Joins in, unless it is too late.
    fn join_in(&self) {
        let begin = |running| (running & OFFER_CLOSED == 0).then_some(running + 1);
        if self.running.fetch_update(Ordering::Acquire, Ordering::Relaxed, begin).is_err() {
            return;
        }
        // SAFETY: the offer isn't closed, and `close`, which is called before `work` goes, waits for
        // who is inside.
        let work = unsafe { &*self.work };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
            let mut first = lock(&self.panic);
            match &*first {
                None => *first = Some(panic),
                // To drop it might panic.
                Some(_) => std::mem::forget(panic),
            }
        }
        if self.running.fetch_sub(1, Ordering::Release) == OFFER_CLOSED + 1 {
            self.owner.unpark();
        }
    }

    /// Lets nobody begin any more, and waits for those that have.
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
            // They may have work for more than one thread.
            let _released = self.is_owner_outside.then(affinity::release);
            while is_any_running() {
                thread::park();
            }
        }
    }
}

/// Does `own` work, while so many threads of a pool, if it has them, do `work` as they come. Returns
/// when they are done, too, and panics if one of them has.
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
    // SAFETY: only the lifetime changes, and nobody follows it when `Close` has been dropped, which
    // is before `work` goes, after a panic too.
    let work = unsafe { std::mem::transmute::<&(dyn Fn() + Sync), *const (dyn Fn() + Sync)>(work) };
    let offer = Arc::new(Offer {
        work,
        running: AtomicUsize::new(0),
        panic: Mutex::new(None),
        owner: thread::current(),
        is_owner_outside,
    });
    let close = Close(&offer);
    for _ in 0..threads {
        let offer = Arc::clone(&offer);
        pool.spawn(move || offer.join_in());
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

    use super::*;

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
        // The thread has other work, so that it can't begin.
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
}
