//! The CPU affinity of the pool's threads, as the system reports it.
#![cfg(target_os = "linux")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, process, thread};

use ferrox_core::DType::F32;
use ferrox_core::exec::threads::parallel;
use ferrox_core::ops::unary::{UnaryOp, unary};
use ferrox_core::{Output, Tensor};
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

const SIZE: usize = 1_000_000;

fn exp() {
    let (shape, input, mut out) = ([SIZE], vec![0; 4 * SIZE], vec![0; 4 * SIZE]);
    let input = Tensor::new("exp", F32, &shape, &input).expect("a tensor");
    let out = Output::new("exp", F32, &shape, &mut out).expect("a tensor");
    unary(UnaryOp::Exp, out, &input).expect("values");
}

fn members(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect()
}

/// The cores that each thread of the pool may use.
fn pool() -> Vec<Vec<usize>> {
    let tasks =
        fs::read_dir("/proc/self/task").expect("the threads").map(|task| task.expect("a thread").path());
    let of_the_pool = tasks
        .filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.starts_with("ferrox-")));
    of_the_pool
        .map(|task| {
            let name = task.file_name().expect("a name").to_string_lossy();
            let id = Pid::from_raw(name.parse().expect("a number"));
            members(&sched_getaffinity(id).expect("cores"))
        })
        .collect()
}

/// Calls `again` repeatedly until `so` is true. A thread that has not started yet has the affinity
/// of the thread that made it, and a late thread releases the affinity of all threads for a while.
fn until(so: impl Fn() -> bool, again: impl Fn()) {
    let end = Instant::now() + Duration::from_secs(20);
    while !so() {
        assert!(Instant::now() < end, "{:?}", pool());
        again();
    }
}

fn on(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}

#[test]
fn threads_are_on_other_cores_than_who_calls() {
    let process = Pid::from_raw(process::id().cast_signed());
    let cores = members(&sched_getaffinity(process).expect("cores"));
    if cores.len() < 2 {
        return;
    }
    // Two threads in the pool, and the calling thread.
    parallel::set_threads(3);
    // The thread that makes the pool is bound to a core, but the pool's threads must not be.
    thread::spawn(move || {
        for &core in cores.iter().chain(&cores) {
            sched_setaffinity(None, &on(core)).expect("a core of the process");
            let others: Vec<usize> = cores.iter().copied().filter(|&other| other != core).collect();
            let expected = [others.clone(), others];
            until(|| pool() == expected, exp);
        }
        // A caller that sleeps lets the pool's threads use its core.
        let begun = AtomicBool::new(false);
        parallel::join(
            || {
                while !begun.load(Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            },
            || {
                begun.store(true, Ordering::Relaxed);
                until(|| pool() == [cores.clone(), cores.clone()], thread::yield_now);
            },
        );
        until(|| pool() != [cores.clone(), cores.clone()], exp);
    })
    .join()
    .expect("no panic");
}
