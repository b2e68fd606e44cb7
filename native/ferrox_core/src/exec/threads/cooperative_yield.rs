//! Cooperative yielding: long computations pause, so that the schedulers of the VM can run.
//!
//! Problem: a scheduler of the VM that runs out of work spins, and yields its core a hundred times
//! before it sleeps. Linux treats each yield as a time slice given away, and runs the computing
//! thread on that core, often until the next timer tick: the scheduler checks its timers again only
//! after about 25 ticks.
//! Technique: a computing thread yields too, after each time slice, and repeats that as long as
//! other threads answer, which means that they run when it yields. A spinning scheduler goes to
//! sleep within a fraction of a millisecond. A scheduler that works keeps the core as long as Linux
//! lets it, and the following time slice is longer.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::cost::{
    ANSWERED_YIELD_RATIO, FIRST_TIME_SLICE, MAX_TIME_SLICE, MAX_UNANSWERED_YIELDS, MAX_YIELDS_PER_PAUSE,
    MIN_BUSY_DURATION, MIN_TIME_SLICE, TIME_SLICE_TO_PAUSE_RATIO, WORK_PER_CLOCK_CHECK, Work,
};

/// The duration of the fastest yield so far, in nanoseconds.
static FASTEST_YIELD_NANOS: AtomicU64 = AtomicU64::new(u64::MAX);

thread_local! {
    /// When the time slice of this thread ends; `None` if the thread doesn't pause.
    static SLICE_END: Cell<Option<Instant>> = const { Cell::new(None) };
    /// The work that this thread has done since it read the clock.
    static WORK_SINCE_CLOCK_CHECK: Cell<Work> = const { Cell::new(0) };
}

/// When a time slice ends; `None` inside if the thread doesn't pause.
#[derive(Clone, Copy, Debug)]
pub struct TimeSlice(Option<Instant>);

/// The work of a call, which pauses. When it is dropped, also by a panic, the calling thread doesn't pause
/// until the next `begin`.
#[derive(Debug)]
#[must_use = "the thread pauses until this is dropped"]
pub struct PausingCall {
    /// The call stays on its thread.
    thread: PhantomData<*const ()>,
}

impl Drop for PausingCall {
    fn drop(&mut self) {
        SLICE_END.set(None);
    }
}

/// Begins the first time slice of a call on the calling thread. Calls that are too short to need pauses
/// skip it.
pub fn begin() -> PausingCall {
    follow(TimeSlice(Some(Instant::now() + FIRST_TIME_SLICE)));
    PausingCall { thread: PhantomData }
}

/// The current time slice of the calling thread.
pub fn time_slice() -> TimeSlice {
    TimeSlice(SLICE_END.get())
}

/// Continues the time slice of a thread that shares its work with the calling thread.
pub fn follow(TimeSlice(end): TimeSlice) {
    SLICE_END.set(SLICE_END.get().max(end));
}

/// Pauses if the time slice is over, after some work has been done. The clock is only read after
/// `WORK_PER_CLOCK_CHECK`, so that this may be called for small pieces of work, such as single
/// rows.
#[inline]
pub fn after(work: Work) {
    let done = WORK_SINCE_CLOCK_CHECK.get().saturating_add(work);
    if done < WORK_PER_CLOCK_CHECK {
        return WORK_SINCE_CLOCK_CHECK.set(done);
    }
    WORK_SINCE_CLOCK_CHECK.set(0);
    pause();
}

/// If the calling thread's time slice is over, lets other threads run and begins the next one.
pub fn pause() {
    let Some(end) = SLICE_END.get() else { return };
    let start = Instant::now();
    if start < end {
        return;
    }
    let (mut last, mut unanswered) = (start, 0);
    for _ in 0..MAX_YIELDS_PER_PAUSE {
        std::thread::yield_now();
        let now = Instant::now();
        let took = now - last;
        last = now;
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let fastest = FASTEST_YIELD_NANOS.fetch_min(nanos, Ordering::Relaxed);
        unanswered = if nanos <= fastest.saturating_mul(ANSWERED_YIELD_RATIO) { unanswered + 1 } else { 0 };
        if unanswered == MAX_UNANSWERED_YIELDS || took > MIN_BUSY_DURATION {
            break;
        }
    }
    SLICE_END
        .set(Some(last + (TIME_SLICE_TO_PAUSE_RATIO * (last - start)).clamp(MIN_TIME_SLICE, MAX_TIME_SLICE)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_comes_after_a_time_slice_and_the_next_not_soon() {
        let call = begin();
        let end = SLICE_END.get();
        pause();
        if Instant::now() < end.expect("a time slice") {
            assert_eq!(SLICE_END.get(), end, "a pause within a time slice");
        }
        SLICE_END.set(Some(Instant::now()));
        let start = Instant::now();
        pause();
        let took = start.elapsed();
        let next = SLICE_END.get().expect("a time slice") - start;
        assert!(next >= MIN_TIME_SLICE, "the next time slice ends after {next:?}");
        assert!(
            next <= took + (TIME_SLICE_TO_PAUSE_RATIO * took).clamp(MIN_TIME_SLICE, MAX_TIME_SLICE),
            "after {next:?}, for a pause of {took:?}"
        );
        let end = SLICE_END.get();
        let following = begin();
        assert!(SLICE_END.get() >= end, "work that follows comes no sooner to a pause");
        drop((call, following));
        pause();
        assert_eq!(SLICE_END.get(), None, "a pause of work that hasn't begun");
    }

    #[test]
    fn a_call_that_panics_pauses_no_more() {
        let result = std::panic::catch_unwind(|| {
            let _call = begin();
            assert!(SLICE_END.get().is_none(), "as it should");
        });
        assert!(result.is_err());
        assert_eq!(SLICE_END.get(), None);
    }

    #[test]
    fn work_adds_up_until_the_clock_is_read() {
        SLICE_END.set(Some(Instant::now()));
        let end = SLICE_END.get();
        for _ in 0..9 {
            after(WORK_PER_CLOCK_CHECK / 10);
        }
        assert_eq!(SLICE_END.get(), end);
        after(WORK_PER_CLOCK_CHECK / 10);
        assert!(SLICE_END.get() > end, "no pause after work of {WORK_PER_CLOCK_CHECK} ps");
    }
}
