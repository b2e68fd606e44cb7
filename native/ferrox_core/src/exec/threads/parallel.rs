//! Splits work into parts and shares them among threads (data parallelism by dynamic
//! self-scheduling: each thread takes the next part when it is done with one). Decides when sharing
//! pays, and when work is too long for a normal scheduler of the VM.
//!
//! Work is measured in picoseconds of one thread, estimated as the number of elements times the
//! cost of an element. The way in which work is split never changes a result.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon_core::ThreadPool;

use crate::cost::{
    BYTES_PER_PAUSE, Cost, MAX_PART_WORK, MAX_SHORT_WORK, MIN_COST_OF_UNALIGNED_PARTS, MIN_WORK_PER_THREAD,
    PARTS_PER_THREAD, TILE_ELEMENTS, Work, work,
};
use crate::exec::threads::cooperative_yield::{self, pause};
use crate::exec::threads::fork_join::offer;
use crate::exec::threads::pool::{lock, pool};
pub use crate::exec::threads::pool::{set_threads, threads};
use crate::exec::threads::team;
pub use crate::exec::threads::team::Team;

/// A number of threads of the pool that help the calling thread.
#[derive(Clone, Copy)]
struct Helpers {
    pool: &'static ThreadPool,
    threads: usize,
}

impl Helpers {
    /// The helpers for an operation with this much work; `None` if sharing doesn't pay.
    fn with(work: Work) -> Option<Self> {
        let threads = max_threads(work) - 1;
        (threads > 0).then(pool).flatten().map(|pool| Helpers { pool, threads })
    }
}

/// The number of threads that pay for this much work, including the calling thread.
fn max_threads(work: Work) -> usize {
    let woken = usize::try_from(work / MIN_WORK_PER_THREAD).unwrap_or(usize::MAX);
    woken.max(team::max_threads(work)).clamp(1, threads().max(1))
}

/// The estimated time until some work is done, in picoseconds. Most work that pays to share is
/// shared by at least two threads.
#[must_use]
pub fn duration(work: Work) -> Work {
    if work >= 2 * MIN_WORK_PER_THREAD && threads() > 1 { work / 2 } else { work }
}

/// Returns whether some work is too long for a normal scheduler of the VM.
#[inline]
#[must_use]
pub fn is_long(work: Work) -> bool {
    work > MAX_SHORT_WORK && duration(work) > MAX_SHORT_WORK
}

/// Returns whether several threads finish this much work sooner than one thread.
#[inline]
#[must_use]
pub fn is_worth_sharing(elements: usize, cost: Cost) -> bool {
    let work = work(elements, cost);
    work >= 2 * MIN_WORK_PER_THREAD || team::max_threads(work) > 1
}

/// Returns whether an operation with this much work should use the pool.
#[inline]
#[must_use]
pub fn pays(elements: usize, cost: Cost) -> bool {
    is_worth_sharing(elements, cost) && threads() > 1
}

/// The number of parts that work should be split into: several for each thread that shares it, and
/// none of them longer than a time slice. With `alone`, the other threads are busy, and the parts
/// are for one thread.
#[must_use]
pub fn parts(work: Work, alone: bool) -> usize {
    shares(work, alone).max(usize::try_from(work.div_ceil(MAX_PART_WORK)).unwrap_or(usize::MAX))
}

/// The number of parts that balance the load of the threads that share some work.
fn shares(work: Work, alone: bool) -> usize {
    if !alone && pays(1, work) { max_threads(work) * PARTS_PER_THREAD } else { 1 }
}

/// The number of threads that share an operation, including the calling thread.
pub fn threads_for(elements: usize, cost: Cost) -> usize {
    Helpers::with(work(elements, cost)).map_or(1, |help| help.threads + 1)
}

/// Runs two closures in parallel, the first of them on the calling thread.
pub fn join(mut a: impl FnMut() + Send, mut b: impl FnMut() + Send) {
    let jobs: [JoinClosure<'_>; 2] = [&mut a, &mut b];
    let help = pool().map(|pool| Helpers { pool, threads: 1 });
    let Ok(()) = share::<_, Infallible>(help, &mut jobs.into_iter(), &|job| {
        job();
        Ok(())
    });
}

/// A queue of tasks, each of which may add further tasks.
pub struct Tasks<T> {
    waiting: Mutex<VecDeque<T>>,
    /// The number of tasks that are waiting or running.
    left: AtomicUsize,
}

impl<T> Tasks<T> {
    /// Adds a task, which the next free thread runs.
    pub fn push(&self, task: T) {
        self.left.fetch_add(1, Ordering::Relaxed);
        lock(&self.waiting).push_back(task);
    }

    /// Runs tasks until none is waiting or running.
    fn work(&self, next: fn(&mut VecDeque<T>) -> Option<T>, mut run: impl FnMut(T)) {
        /// Counts a task as done when dropped, also after a panic: the other threads wait for it.
        struct Done<'a>(&'a AtomicUsize);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Release);
            }
        }
        while self.left.load(Ordering::Acquire) > 0 {
            // The lock is released before the task runs.
            if let Some(task) = { next(&mut lock(&self.waiting)) } {
                let _done = Done(&self.left);
                run(task);
            } else {
                // The next task comes sooner than a sleeping thread could wake up.
                for _ in 0..8 {
                    std::hint::spin_loop();
                }
            }
            pause();
        }
    }
}

/// Runs a task and all tasks that it adds. The calling thread always takes the newest task; the
/// helping threads, one for each state of `states`, take the oldest, which is the largest one where
/// tasks divide work (the order of work stealing: Blumofe and Leiserson 1999, "Scheduling
/// Multithreaded Computations by Work Stealing").
pub fn divide<S: Send, T: Send>(
    first: T,
    mut state: S,
    states: &mut (dyn ExactSizeIterator<Item = S> + Send),
    run: &(dyn Fn(&mut S, T, &Tasks<T>) + Sync),
) {
    let tasks = &Tasks { waiting: Mutex::new(VecDeque::from([first])), left: AtomicUsize::new(1) };
    let time_slice = cooperative_yield::time_slice();
    let mut work = || tasks.work(VecDeque::pop_back, |task| run(&mut state, task, tasks));
    let Some(pool) = pool() else { return work() };
    let threads = states.len();
    let states = Mutex::new(states);
    let help = || {
        let state = { lock(&states).next() };
        if let Some(mut state) = state {
            cooperative_yield::follow(time_slice);
            tasks.work(VecDeque::pop_front, |task| run(&mut state, task, tasks));
        }
    };
    offer(pool, threads, &help, work);
}

/// Fills `out`, which has `size` elements, by calling `fill(first element, part)` for parts of it,
/// in parallel if that pays.
pub fn fill(out: &mut [u8], size: usize, cost: Cost, fill: impl Fn(usize, &mut [u8]) + Sync) {
    let Ok(()) = try_fill::<Infallible>(out, size, cost, |start, part| {
        fill(start, part);
        Ok(())
    });
}

/// `fill` with a closure that may fail.
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
    let parts = parts(work(size, cost), false).max(out.len() / BYTES_PER_PAUSE);
    // Parts of cheap elements begin at a tile.
    let align = if cost < MIN_COST_OF_UNALIGNED_PARTS { TILE_ELEMENTS } else { 1 };
    fill_parts(out, size, cost, size.div_ceil(parts).next_multiple_of(align), &fill)
}

/// `try_fill` with as few parts as balance the load of the threads, for closures that take some
/// time to begin a part. `fill` has to pause by itself, since its parts may be long.
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

/// `try_fill_shares` with parts of a multiple of `multiple` elements, which are best computed
/// together, unless a thread would get no part then.
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

/// Calls `each` with every part, in parallel if that pays for `elements` elements of the given
/// cost.
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

// The functions below take trait objects: generic functions would be compiled for every closure.

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

/// Lets each thread take the next part when it is done with one: the calling thread takes parts
/// from the front, helping threads from the back. So with two threads, data that are read
/// repeatedly stay in the cache of the core that has read them before.
fn share<T, E: Send>(
    help: Option<Helpers>,
    parts: &mut (dyn DoubleEndedIterator<Item = T> + Send),
    each: &(dyn Fn(T) -> Result<(), E> + Sync),
) -> Result<(), E> {
    let parts = Mutex::new(parts);
    let failure = Mutex::new(None);
    let work = |next: fn(&mut (dyn DoubleEndedIterator<Item = T> + Send)) -> Option<T>| {
        // The lock is released before `each` is called.
        while let Some(part) = { next(*lock(&parts)) } {
            if let Err(error) = each(part) {
                *lock(&failure) = Some(error);
                return;
            }
            pause();
        }
    };
    let time_slice = cooperative_yield::time_slice();
    let own = || work(|parts| parts.next());
    match help {
        // The calling thread works as well.
        Some(Helpers { pool, threads }) => {
            let theirs = || {
                cooperative_yield::follow(time_slice);
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
        for size in [BYTES_PER_PAUSE, 10 * BYTES_PER_PAUSE, 10 * BYTES_PER_PAUSE + 1000] {
            let largest = AtomicUsize::new(0);
            fill(&mut vec![0; size], size, 0, |_, part| {
                largest.fetch_max(part.len(), Ordering::Relaxed);
            });
            assert!(largest.load(Ordering::Relaxed) < 2 * BYTES_PER_PAUSE, "{largest:?} of {size}");
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
