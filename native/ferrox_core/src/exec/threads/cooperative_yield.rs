//! Pauses of long work, in which the VM's schedulers get their turn.
//!
//! Problem: a scheduler of the VM that runs out of work waits busily, and yields its core
//! a hundred times before it sleeps. Linux takes each time as a slice given away, and runs
//! whoever computes on that core, often until the next tick: the scheduler comes to look
//! at its timers again after 25 ticks.
//! Technique: who computes yields as well, every now and then, and goes on doing so while
//! that is answered. A scheduler that waits is done within a fraction of a millisecond; one
//! that works takes as long as Linux lets it, and is asked less often.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::cost::Work;

/// How long a thread computes between pauses.
pub const TURN: Duration = Duration::from_millis(1);

/// How long before the first pause. Who calls has the VM's schedulers come around between what
/// is done by then, again and again too.
const FIRST_SLICE: Duration = Duration::from_millis(3);

/// Bytes of a result that are written between pauses, or up to twice as many, whatever they cost:
/// what is new comes page by page as it is first written to, in a tenth of a millisecond, or in
/// three or four where a virtual machine has to ask its host for the pages. A quarter of it costs a
/// cast a tenth more.
pub const PIECE: usize = 1 << 20;

/// Work after which the clock is read: that takes a thousandth of the time.
const WORK_PER_CLOCK_CHECK: Work = 50_000_000;

/// How many times as long as a pause it is until the next. A scheduler that runs out of work takes
/// up to half a millisecond of its core before it sleeps. With twice as long, what takes a
/// millisecond or two took up to 30% longer; with 16 times, timers were 7 to 18 ms late.
const SLICE_TO_PAUSE_RATIO: u32 = 8;

/// How long until the next pause, at most: others may have worked in the last, and a scheduler
/// still wait. Without a limit, timers were up to 19 ms late where another worked for 2 ms. Beside
/// a loop of Elixir on each of two cores, where Linux gives everyone ticks of 4 ms, a product of
/// 2048 by 2048 takes 131 ms, with twice as long as much, and 118 without a limit; alone they are
/// equal.
const MAX_SLICE: Duration = Duration::from_millis(2);

/// Yields of a pause, at most.
const MAX_YIELDS_PER_PAUSE: usize = 1000;

/// Yields that nobody has answered, after which nobody waits: the first may only have
/// evened out what each has had of the core.
const MAX_UNANSWERED_YIELDS: usize = 8;

/// A yield that takes so many times as long as one that nobody has answered, has been.
const ANSWERED_YIELD_RATIO: u64 = 4;

/// Who keeps the core for so long works, and does not wait.
const MIN_BUSY_DURATION: Duration = Duration::from_micros(200);

/// Nanoseconds of the fastest yield so far.
static FASTEST_YIELD_NANOS: AtomicU64 = AtomicU64::new(u64::MAX);

thread_local! {
    /// When the turn of this thread is over.
    static SLICE_END: Cell<Option<Instant>> = const { Cell::new(None) };
    /// What it has done since the clock was read.
    static WORK_SINCE_CLOCK_CHECK: Cell<Work> = const { Cell::new(0) };
}

/// When a turn is over.
#[derive(Clone, Copy, Debug)]
pub struct Turn(Option<Instant>);

/// Begins the calling thread's work for a call.
pub fn begin() {
    follow(Turn(Some(Instant::now() + FIRST_SLICE)));
}

/// Ends it: what is too short to begin does not pause.
pub fn end() {
    SLICE_END.set(None);
}

/// The turn of the calling thread.
pub fn turn() -> Turn {
    Turn(SLICE_END.get())
}

/// Goes on with the turn of a thread that has shared its work.
pub fn follow(Turn(end): Turn) {
    SLICE_END.set(SLICE_END.get().max(end));
}

/// `pause`, where so much work has been done: it may be little, as a row of many.
#[inline]
pub fn after(work: Work) {
    let done = WORK_SINCE_CLOCK_CHECK.get().saturating_add(work);
    if done < WORK_PER_CLOCK_CHECK {
        return WORK_SINCE_CLOCK_CHECK.set(done);
    }
    WORK_SINCE_CLOCK_CHECK.set(0);
    pause();
}

/// Lets others go on, if the turn of the calling thread is over; the next one begins.
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
