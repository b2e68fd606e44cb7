//! Threads: how work is shared among them, and how they get on with the VM's schedulers.

mod affinity;
pub mod cooperative_yield;
mod fork_join;
pub mod parallel;
pub mod pool;
