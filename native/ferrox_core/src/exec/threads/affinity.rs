//! Keeps the pool's threads off the core of the thread that shares its work with them.
//!
//! Problem: a scheduler of the VM that has handed a call to another waits busily for a while. On
//! a machine of two cores Linux then finds none idle, wakes the thread on the core of who
//! woke it, and leaves it there until the call is over: two threads take as long as one.
//! Technique: the pool's threads may be on all cores that the process may use, but the caller's.
//! A scheduler that waits yields again and again, and one of these threads takes its place.
//!
//! Of sixty rounds of calls between which other processes had the cores, two threads on two
//! cores took as long as one in ten: exp of a million f32 took 0.44 ms on average, and takes
//! 0.39; nine rounds of ten were below 0.62 ms, and are below 0.42.

#[cfg(target_os = "linux")]
pub(in crate::exec) use linux::{keep_off_caller_core, register, release};

#[cfg(not(target_os = "linux"))]
pub(in crate::exec) use elsewhere::{keep_off_caller_core, register, release};

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Mutex, PoisonError};

    use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// Threads of a pool that is kept apart, at most: each is told by a call of a microsecond,
    /// and with more of them one that is late costs little. On two cores, telling eight is
    /// not felt, even if two callers have it done again and again; on more it was not seen.
    const MAX_PINNED_THREADS: usize = 8;

    /// No core.
    const NO_CORE: usize = usize::MAX;

    /// The core that the pool's threads are kept off.
    static AVOIDED_CORE: AtomicUsize = AtomicUsize::new(NO_CORE);

    static PINNED_POOL: Mutex<PinnedPool> =
        Mutex::new(PinnedPool { threads: Vec::new(), cores: None, released: 0 });

    struct PinnedPool {
        threads: Vec<Pid>,
        /// What the process may use; none if the system doesn't say.
        cores: Option<CpuSet>,
        /// How many wait for threads that may be anywhere.
        released: usize,
    }

    impl PinnedPool {
        /// Moves threads off a core. Where that isn't allowed, they are where Linux puts them.
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

        /// Moves all threads off a core.
        fn avoid(&self, core: usize) {
            AVOIDED_CORE.store(core, Ordering::Relaxed);
            self.move_off(core, &self.threads);
        }
    }

    fn with_pinned_pool(run: impl FnOnce(&mut PinnedPool)) {
        run(&mut PINNED_POOL.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// To be called by each thread of the pool when it starts.
    pub fn register() {
        with_pinned_pool(|pool| {
            // Who starts the pool may be a scheduler that is bound to a core; the first thread of
            // the process isn't.
            let process = Pid::from_raw(std::process::id().cast_signed());
            pool.cores = pool.cores.or_else(|| sched_getaffinity(process).ok());
            let thread = gettid();
            pool.threads.push(thread);
            pool.move_off(AVOIDED_CORE.load(Ordering::Relaxed), &[thread]);
        });
    }

    /// Keeps the `threads` of the pool off the core of the calling thread, which is none of them.
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

    /// Lets the pool's threads be on any core until this is dropped.
    pub struct Released;

    /// Lets them, since the calling thread is going to wait for them.
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
