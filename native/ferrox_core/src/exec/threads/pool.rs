//! The pool of threads, and how many of them there are.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rayon_core::ThreadPool;

use crate::exec::threads::affinity;

static THREADS: AtomicUsize = AtomicUsize::new(0);
/// Asking the system takes longer than many an operation.
static CORES: OnceLock<usize> = OnceLock::new();
static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();

/// Sets the number of threads; zero means one for each core. More than that have no effect once
/// the pool is in use.
pub fn set_threads(threads: usize) {
    THREADS.store(threads, Ordering::Relaxed);
}

/// The number of threads that large operations use.
#[inline]
#[must_use]
pub fn threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from)),
        n => n,
    }
}

/// The pool, of a thread less than may work, since who calls works as well. One more, with nothing
/// to do, would look for work on the core of one that has some. None with one thread, or where
/// threads can't be had.
pub(in crate::exec) fn pool() -> Option<&'static ThreadPool> {
    POOL.get_or_init(|| {
        let others = threads().checked_sub(1).filter(|&others| others > 0)?;
        let builder = rayon_core::ThreadPoolBuilder::new()
            .num_threads(others)
            .thread_name(|i| format!("ferrox-{i}"))
            .start_handler(|_| affinity::register());
        builder.build().ok()
    })
    .as_ref()
}

/// The lock, after a panic of who had it too.
pub(in crate::exec) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
