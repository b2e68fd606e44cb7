//! The pool of threads, and its size.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rayon_core::ThreadPool;

use crate::exec::threads::affinity;

/// The number of threads that `set_threads` asked for; zero means one for each core.
static THREADS: AtomicUsize = AtomicUsize::new(0);
/// The number of cores, cached because asking the system takes longer than many operations.
static CORES: OnceLock<usize> = OnceLock::new();
static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();

/// Sets the number of threads; zero means one for each core. Once the pool exists, a larger number
/// than it was made for has no effect.
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

/// The pool. It has one thread less than `threads()`, since the calling thread works as well: one
/// more thread would search for work on a core that another thread needs. Returns `None` if
/// `threads()` is one or the system refuses to start threads.
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

/// Locks a mutex, also if a thread has panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
