//! CPU affinity: keeps the threads of the pool off the core of the thread that shares its work.
//!
//! Problem: a scheduler of the VM that has handed a call to another scheduler spins for a while. On
//! a machine with two cores, Linux then finds no idle core, wakes the pool's thread on the core of
//! the thread that woke it, and leaves it there until the call is over: two threads take as long as
//! one.
//! Technique: the pool's threads may run on every core that the process may use, except the
//! caller's. A spinning scheduler yields its core repeatedly, and a thread of the pool takes it.
//!
//! Limits: only on Linux, and only for pools of up to `MAX_PINNED_THREADS` threads. A system that
//! refuses to change the affinity leaves the threads wherever it puts them.

#[cfg(target_os = "linux")]
pub(in crate::exec) use linux::{keep_off_caller_core, register, release};

#[cfg(not(target_os = "linux"))]
pub(in crate::exec) use elsewhere::{keep_off_caller_core, register, release};

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Mutex, PoisonError};

    use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

    use crate::cost::MAX_PINNED_THREADS;

    /// Stands for no core in `AVOIDED_CORE`.
    const NO_CORE: usize = usize::MAX;

    /// The core that the pool's threads are kept off.
    static AVOIDED_CORE: AtomicUsize = AtomicUsize::new(NO_CORE);

    static PINNED_POOL: Mutex<PinnedPool> =
        Mutex::new(PinnedPool { threads: Vec::new(), cores: None, released: 0 });

    struct PinnedPool {
        threads: Vec<Pid>,
        /// The cores that the process may use; `None` if the system doesn't tell.
        cores: Option<CpuSet>,
        /// The number of callers that have a `Released`: while there are any, no core is avoided.
        released: usize,
    }

    impl PinnedPool {
        /// Moves `threads` off a core. A refusal by the system is ignored.
        fn move_off(&self, core: usize, threads: &[Pid]) {
            let Some(mut cores) = self.cores else { return };
            if core < CpuSet::MAX_CPU {
                cores.unset(core);
            }
            if cores.count() > 0 {
                for &thread in threads {
                    let _ = sched_setaffinity(Some(thread), &cores);
                }
            }
        }

        /// Moves all threads of the pool off a core.
        fn avoid(&self, core: usize) {
            AVOIDED_CORE.store(core, Ordering::Relaxed);
            self.move_off(core, &self.threads);
        }
    }

    fn with_pinned_pool(run: impl FnOnce(&mut PinnedPool)) {
        run(&mut PINNED_POOL.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Adds the calling thread to the pool. Each thread of the pool calls this when it starts.
    pub fn register() {
        with_pinned_pool(|pool| {
            // The thread that starts the pool may be a scheduler that is bound to a core. The main
            // thread of the process isn't bound.
            let process = Pid::from_raw(std::process::id().cast_signed());
            pool.cores = pool.cores.or_else(|| sched_getaffinity(process).ok());
            let thread = gettid();
            pool.threads.push(thread);
            pool.move_off(AVOIDED_CORE.load(Ordering::Relaxed), &[thread]);
        });
    }

    /// Keeps the `threads` threads of the pool off the core of the calling thread, which must not
    /// belong to the pool.
    #[inline]
    pub fn keep_off_caller_core(threads: usize) {
        if threads > MAX_PINNED_THREADS {
            return;
        }
        let core = sched_getcpu();
        if AVOIDED_CORE.load(Ordering::Relaxed) != core {
            with_pinned_pool(|pool| {
                if pool.released == 0 {
                    pool.avoid(core);
                }
            });
        }
    }

    /// While a value of this type exists, the pool's threads may run on any core.
    pub struct Released;

    /// Lets the pool's threads run on any core, since the calling thread is about to sleep until
    /// they are done.
    pub fn release() -> Released {
        with_pinned_pool(|pool| {
            pool.released += 1;
            if AVOIDED_CORE.load(Ordering::Relaxed) != NO_CORE {
                pool.avoid(NO_CORE);
            }
        });
        Released
    }

    impl Drop for Released {
        fn drop(&mut self) {
            with_pinned_pool(|pool| pool.released -= 1);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    pub struct Released;

    pub fn register() {}

    pub fn keep_off_caller_core(_threads: usize) {}

    pub fn release() -> Released {
        Released
    }
}
