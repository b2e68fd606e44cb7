//! Decides when several threads share work, when work is too long for a scheduler that others wait
//! for, and splits it.
//!
//! Work is measured in picoseconds of one thread, estimated as elements times
//! cost per element. How work is split never changes a result.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon_core::ThreadPool;

use crate::cost::{Cost, TILE_ELEMENTS, Work, work};
use crate::exec::threads::cooperative_yield::{self, PIECE, TURN, pause};
use crate::exec::threads::fork_join::offer;
use crate::exec::threads::pool::{lock, pool};
pub use crate::exec::threads::pool::{set_threads, threads};

/// What is estimated to take longer is long. Estimates lean to too much: of what is short, the
/// longest takes 350 us here, and a millisecond, which is what the VM asks of a call, on a machine
/// three times slower. To change the scheduler and come back takes 20 to 50 us. (bench/timer.exs.)
const MAX_SHORT_WORK: Work = 500_000_000;

/// Work of a thread, at least, where several share some: less is done by the calling thread sooner.
/// With another that is awake, `exp` and `erfc` of f32 take two threads as long as one from 5 to
/// 10 us of it on. To wake one up takes the calling thread 7 us, which is of no use then. (`kernels`:
/// share.)
const MIN_WORK_PER_THREAD: Work = 27_500_000;

/// Parts for each thread: enough to even out threads that are late.
const PARTS_PER_THREAD: usize = 4;

/// Work of a part, at most, so that a thread can pause between two.
const MAX_PART_WORK: Work = TURN.as_nanos() as Work * 1_000;

/// Parts of elements that cost less than this start where a tile does.
const MIN_COST_OF_UNALIGNED_PARTS: Cost = 20_000;

/// Threads of the pool that help the one that calls.
#[derive(Clone, Copy)]
struct Helpers {
    pool: &'static ThreadPool,
    threads: usize,
}

impl Helpers {
    /// For an operation of that much work, where it pays.
    fn with(work: Work) -> Option<Self> {
        let threads = max_threads(work) - 1;
        (threads > 0).then(pool).flatten().map(|pool| Helpers { pool, threads })
    }
}

/// How many threads are worth having for so much work.
fn max_threads(work: Work) -> usize {
    usize::try_from(work / MIN_WORK_PER_THREAD).unwrap_or(usize::MAX).clamp(1, threads().max(1))
}

/// Estimated picoseconds until work is done. Most work that pays is shared, by two threads
/// at least.
#[must_use]
pub fn duration(work: Work) -> Work {
    if pays(1, work) { work / 2 } else { work }
}

/// Whether work should not be done where others wait for the thread.
#[inline]
#[must_use]
pub fn is_long(work: Work) -> bool {
    work > MAX_SHORT_WORK && duration(work) > MAX_SHORT_WORK
}

/// Whether several threads do that much work sooner than one.
#[inline]
#[must_use]
pub fn is_worth_sharing(elements: usize, cost: Cost) -> bool {
    work(elements, cost) >= 2 * MIN_WORK_PER_THREAD
}

/// Whether an operation of that much work should use the pool.
#[inline]
#[must_use]
pub fn pays(elements: usize, cost: Cost) -> bool {
    is_worth_sharing(elements, cost) && threads() > 1
}

/// Parts that work should be done in: some for each thread that shares it, and none of them longer
/// than a turn. `alone` if the other threads have work of their own.
#[must_use]
pub fn parts(work: Work, alone: bool) -> usize {
    shares(work, alone).max(usize::try_from(work.div_ceil(MAX_PART_WORK)).unwrap_or(usize::MAX))
}

/// Parts for the threads that share so much work.
fn shares(work: Work, alone: bool) -> usize {
    if !alone && pays(1, work) { max_threads(work) * PARTS_PER_THREAD } else { 1 }
}

/// How many threads an operation may share its work among.
pub fn threads_for(elements: usize, cost: Cost) -> usize {
    Helpers::with(work(elements, cost)).map_or(1, |help| help.threads + 1)
}

/// Runs two closures side by side, the first on the thread that calls: it is awake already.
pub fn join(mut a: impl FnMut() + Send, mut b: impl FnMut() + Send) {
    let jobs: [JoinClosure<'_>; 2] = [&mut a, &mut b];
    let help = pool().map(|pool| Helpers { pool, threads: 1 });
    let Ok(()) = share::<_, Infallible>(help, &mut jobs.into_iter(), &|job| {
        job();
        Ok(())
    });
}

/// Tasks of which each may give rise to others.
pub struct Tasks<T> {
    waiting: Mutex<VecDeque<T>>,
    /// Those that wait and those that are being done.
    left: AtomicUsize,
}

impl<T> Tasks<T> {
    /// Leaves a task to whoever is done with theirs.
    pub fn push(&self, task: T) {
        self.left.fetch_add(1, Ordering::Relaxed);
        lock(&self.waiting).push_back(task);
    }

    /// Does tasks until all are done.
    fn work(&self, next: fn(&mut VecDeque<T>) -> Option<T>, mut run: impl FnMut(T)) {
        /// Counts a task as done, after a panic too: the others wait for it.
        struct Done<'a>(&'a AtomicUsize);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Release);
            }
        }
        while self.left.load(Ordering::Acquire) > 0 {
            // The lock is released before the task is done.
            if let Some(task) = { next(&mut lock(&self.waiting)) } {
                let _done = Done(&self.left);
                run(task);
            } else {
                // The next comes within microseconds; to sleep and wake up takes fifty.
                for _ in 0..8 {
                    std::hint::spin_loop();
                }
            }
            pause();
        }
    }
}

/// Does a task and those that it gives rise to. The calling thread, which is awake, begins at
/// once, and takes the task next that came last; threads of the pool, one for each of their
/// states, take the first, which are the largest where tasks are divided.
pub fn divide<S: Send, T: Send>(
    first: T,
    mut state: S,
    states: &mut (dyn ExactSizeIterator<Item = S> + Send),
    run: &(dyn Fn(&mut S, T, &Tasks<T>) + Sync),
) {
    let tasks = &Tasks { waiting: Mutex::new(VecDeque::from([first])), left: AtomicUsize::new(1) };
    let turn = cooperative_yield::turn();
    let mut work = || tasks.work(VecDeque::pop_back, |task| run(&mut state, task, tasks));
    let Some(pool) = pool() else { return work() };
    let threads = states.len();
    let states = Mutex::new(states);
    let help = || {
        let state = { lock(&states).next() };
        if let Some(mut state) = state {
            cooperative_yield::follow(turn);
            tasks.work(VecDeque::pop_front, |task| run(&mut state, task, tasks));
        }
    };
    offer(pool, threads, &help, work);
}

/// Fills `out`, of `size` elements, by calling `fill(first element, part)` on
/// parts of it, in parallel if it pays.
pub fn fill(out: &mut [u8], size: usize, cost: Cost, fill: impl Fn(usize, &mut [u8]) + Sync) {
    let Ok(()) = try_fill::<Infallible>(out, size, cost, |start, part| {
        fill(start, part);
        Ok(())
    });
}

/// `fill` with parts that may fail.
///
/// # Errors
///
/// One of the errors of `fill`.
pub fn try_fill<E: Send>(
    out: &mut [u8],
    size: usize,
    cost: Cost,
    fill: impl Fn(usize, &mut [u8]) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let parts = parts(work(size, cost), false).max(out.len() / PIECE);
    // Parts of small elements start where a tile does.
    let align = if cost < MIN_COST_OF_UNALIGNED_PARTS { TILE_ELEMENTS } else { 1 };
    fill_parts(out, size, cost, size.div_ceil(parts).next_multiple_of(align), &fill)
}

/// `try_fill` in as few parts as evens out threads, where each takes a while to begin: `fill` pauses.
///
/// # Errors
///
/// One of the errors of `fill`.
pub fn try_fill_shares<E: Send>(
    out: &mut [u8],
    size: usize,
    cost: Cost,
    fill: impl Fn(usize, &mut [u8]) -> Result<(), E> + Sync,
) -> Result<(), E> {
    fill_parts(out, size, cost, size.div_ceil(shares(work(size, cost), false)), &fill)
}

/// `try_fill_shares` of elements that are best computed so many together, where each thread gets some.
pub fn fill_in_multiples(
    out: &mut [u8],
    size: usize,
    cost: Cost,
    multiple: usize,
    fill: impl Fn(usize, &mut [u8]) + Sync,
) {
    let shares = shares(work(size, cost), false);
    let chunk = match size.div_ceil(shares) {
        few if few < multiple => size.div_ceil(threads_for(size, cost)).min(multiple),
        many => many.next_multiple_of(multiple),
    };
    let Ok(()) = fill_parts::<Infallible>(out, size, cost, chunk, &|start, part| {
        fill(start, part);
        Ok(())
    });
}

/// Calls `each` with every part in turn, in parallel if so many elements of such
/// cost make that pay.
///
/// # Errors
///
/// One of the errors of `each`.
pub fn try_each<T, E: Send>(
    elements: usize,
    cost: Cost,
    mut parts: impl DoubleEndedIterator<Item = T> + Send,
    each: impl Fn(T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    share(Helpers::with(work(elements, cost)), &mut parts, &each)
}

// What follows would be compiled for every closure, if it took the closures themselves.

type JoinClosure<'a> = &'a mut (dyn FnMut() + Send);
type FillPart<'a, E> = &'a (dyn Fn(usize, &mut [u8]) -> Result<(), E> + Sync);

fn fill_parts<E: Send>(
    out: &mut [u8],
    size: usize,
    cost: Cost,
    chunk: usize,
    fill: FillPart<'_, E>,
) -> Result<(), E> {
    if size == 0 {
        return Ok(());
    }
    if chunk >= size {
        return fill(0, out);
    }
    let width = out.len() / size;
    share(Helpers::with(work(size, cost)), &mut out.chunks_mut(chunk * width).enumerate(), &|(i, part)| {
        fill(i * chunk, part)
    })
}

/// Lets each thread of a pool take another of the parts when it is done with one: the calling
/// thread the first that is left, others the last. So what is read again and again stays, with two
/// threads, in the cache of the core that read it before.
fn share<T, E: Send>(
    help: Option<Helpers>,
    parts: &mut (dyn DoubleEndedIterator<Item = T> + Send),
    each: &(dyn Fn(T) -> Result<(), E> + Sync),
) -> Result<(), E> {
    let parts = Mutex::new(parts);
    let failure = Mutex::new(None);
    let work = |next: fn(&mut (dyn DoubleEndedIterator<Item = T> + Send)) -> Option<T>| {
        // The lock is released before the part is worked on.
        while let Some(part) = { next(*lock(&parts)) } {
            if let Err(error) = each(part) {
                *lock(&failure) = Some(error);
                return;
            }
            pause();
        }
    };
    let turn = cooperative_yield::turn();
    let own = || work(|parts| parts.next());
    match help {
        // The calling thread works as well: it is awake already.
        Some(Helpers { pool, threads }) => {
            let theirs = || {
                cooperative_yield::follow(turn);
                work(|parts| parts.next_back());
            };
            offer(pool, threads, &theirs, own);
        }
        None => own(),
    }
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_large_result_are_small_however_little_they_cost() {
        for size in [PIECE, 10 * PIECE, 10 * PIECE + 1000] {
            let largest = AtomicUsize::new(0);
            fill(&mut vec![0; size], size, 0, |_, part| {
                largest.fetch_max(part.len(), Ordering::Relaxed);
            });
            assert!(largest.load(Ordering::Relaxed) < 2 * PIECE, "{largest:?} of {size}");
        }
    }

    #[test]
    fn tasks_are_done_once_each_however_many_threads() {
        for threads in 1..5 {
            let done: Vec<AtomicUsize> = (0..1000).map(|_| AtomicUsize::new(0)).collect();
            divide(0..done.len(), (), &mut (1..threads).map(|_| ()), &|(), mut range, tasks| {
                while range.len() > 1 {
                    let middle = range.start + range.len() / 2;
                    tasks.push(middle..range.end);
                    range.end = middle;
                }
                done[range.start].fetch_add(1, Ordering::Relaxed);
            });
            assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == 1), "{threads}");
        }
    }

    #[test]
    fn a_task_that_panics_keeps_nobody_waiting() {
        let result = std::panic::catch_unwind(|| {
            divide(8, (), &mut (1..3).map(|_| ()), &|(), left: usize, tasks| {
                assert!(left > 0, "as it should");
                tasks.push(left - 1);
            });
        });
        assert!(result.is_err());
    }
}
