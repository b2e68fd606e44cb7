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
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::cost::Work;

/// The shortest time slice: how long a thread computes between two pauses.
pub const TURN: Duration = Duration::from_millis(1);

/// The time slice before the first pause of a call. Shorter calls don't pause: the VM's schedulers
/// run between them anyway, even if there are many.
const FIRST_SLICE: Duration = Duration::from_millis(3);

/// The number of bytes of a result that are written between pauses (at most twice as many), however
/// cheap the computation is: the system provides new memory page by page at the first write, which
/// takes up to forty times as long where a virtual machine has to ask its host for the pages. A
/// quarter of this size makes casts slower by a tenth. (`kernels`: cast.)
pub const PIECE: usize = 1 << 20;

/// The estimated work between two reads of the clock, so that reading it takes a thousandth of the
/// time.
const WORK_PER_CLOCK_CHECK: Work = 50_000_000;

/// The ratio of a time slice to the pause before it. A scheduler that runs out of work spins for up
/// to half a millisecond before it sleeps: with a ratio of 2, calls of a millisecond or two take up
/// to 30% longer; with a ratio of 16, timers are several times as late. (bench/timer.exs.)
const SLICE_TO_PAUSE_RATIO: u32 = 8;

/// The longest time slice: another thread may have used the last pause for its work while a
/// scheduler is still waiting, and a time slice in proportion to that pause would delay timers.
/// The price is paid where every core runs a loop of Elixir: a product of two 2048 by 2048 matrices
/// takes a tenth longer than without this limit. (bench/timer.exs.)
const MAX_SLICE: Duration = Duration::from_millis(2);

/// The maximum number of yields in one pause.
const MAX_YIELDS_PER_PAUSE: usize = 1000;

/// The number of consecutive unanswered yields that end a pause. The first of them doesn't prove
/// that no thread is waiting: Linux may only have evened out the threads' shares of the core.
const MAX_UNANSWERED_YIELDS: usize = 8;

/// A yield is answered if it takes more than this many times as long as the fastest yield.
const ANSWERED_YIELD_RATIO: u64 = 4;

/// A thread that keeps the core for longer than this is working, not spinning.
const MIN_BUSY_DURATION: Duration = Duration::from_micros(200);

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
pub struct Turn(Option<Instant>);

/// Begins the first time slice of a call on the calling thread.
pub fn begin() {
    follow(Turn(Some(Instant::now() + FIRST_SLICE)));
}

/// Ends the work of a call: the calling thread doesn't pause until the next `begin`. Calls that are
/// too short to need pauses skip `begin`.
pub fn end() {
    SLICE_END.set(None);
}

/// The current time slice of the calling thread.
pub fn turn() -> Turn {
    Turn(SLICE_END.get())
}

/// Continues the time slice of a thread that shares its work with the calling thread.
pub fn follow(Turn(end): Turn) {
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
    SLICE_END.set(Some(last + (SLICE_TO_PAUSE_RATIO * (last - start)).clamp(TURN, MAX_SLICE)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_comes_after_a_turn_and_the_next_not_soon() {
        begin();
        let end = SLICE_END.get();
        pause();
        if Instant::now() < end.expect("a turn") {
            assert_eq!(SLICE_END.get(), end, "a pause within a turn");
        }
        SLICE_END.set(Some(Instant::now()));
        let start = Instant::now();
        pause();
        let took = start.elapsed();
        let next = SLICE_END.get().expect("a turn") - start;
        assert!(next >= TURN, "the next turn ends after {next:?}");
        assert!(
            next <= took + (SLICE_TO_PAUSE_RATIO * took).clamp(TURN, MAX_SLICE),
            "after {next:?}, for a pause of {took:?}"
        );
        let end = SLICE_END.get();
        begin();
        assert!(SLICE_END.get() >= end, "work that follows comes no sooner to a pause");
        super::end();
        pause();
        assert_eq!(SLICE_END.get(), None, "a pause of work that hasn't begun");
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
