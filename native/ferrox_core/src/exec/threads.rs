//! Threads: sharing work among them, and leaving time to the schedulers of the VM.

mod affinity;
pub mod cooperative_yield;
mod fork_join;
pub mod parallel;
pub mod pool;
mod team;
