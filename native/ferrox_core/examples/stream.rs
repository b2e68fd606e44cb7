//! The speed that memory allows: `c = a + b` on f32, as plain as it can be, with stores that go
//! past the cache.
//!
//! `cargo run --release --example stream -- THREADS ELEMENTS` reads lines of two numbers from
//! standard input: of how many elements, at most `ELEMENTS`, and how many passes. It answers each
//! with the seconds they took. It runs beside what is compared with it, so that both have the
//! machine as it is at the time.

#![allow(unsafe_code, reason = "no safe function stores past the cache, which is what this program is for")]

use std::io::{self, BufRead, Write};
use std::time::Instant;

/// Elements of a cache line: threads divide the arrays at its multiples.
const LINE: usize = 16;

/// An array whose chunks of `LINE` elements begin at a cache line.
#[derive(Clone)]
#[repr(align(64))]
struct Line([f32; LINE]);

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<usize>());
    let mut next = |default| arguments.next().map_or(default, |word| word.expect("a number"));
    let threads = next(1).max(1);
    let lines = next(10_000_000).div_ceil(LINE);

    let a = vec![Line([1.0; LINE]); lines];
    let b = vec![Line([2.0; LINE]); lines];
    let mut c = vec![Line([0.0; LINE]); lines];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    for line in io::stdin().lock().lines() {
        let line = line.expect("text");
        let mut numbers = line.split_whitespace().map(|word| word.parse::<usize>().expect("a number"));
        let (Some(elements), Some(count)) = (numbers.next(), numbers.next()) else {
            panic!("{line:?} is not how many elements and how many passes")
        };
        let used = elements.div_ceil(LINE);
        assert!(0 < used && used <= lines, "1 to {} elements, not {elements}", lines * LINE);
        let start = Instant::now();
        for _ in 0..count {
            pass(&pool, used.div_ceil(threads), &a[..used], &b[..used], &mut c[..used]);
        }
        println!("{:?}", start.elapsed().as_secs_f64());
        io::stdout().flush().expect("somewhere to write");
    }
    assert!(c.iter().all(|line| matches!(line.0[0], 0.0 | 3.0)), "1 + 2 is 3");
}

fn pass(pool: &rayon::ThreadPool, share: usize, a: &[Line], b: &[Line], c: &mut [Line]) {
    pool.scope(|scope| {
        for ((a, b), c) in a.chunks(share).zip(b.chunks(share)).zip(c.chunks_mut(share)) {
            scope.spawn(move |_| add(a, b, c));
        }
    });
}

#[cfg(target_arch = "x86_64")]
fn add(a: &[Line], b: &[Line], c: &mut [Line]) {
    use std::arch::x86_64::{_mm_add_ps, _mm_loadu_ps, _mm_sfence, _mm_stream_ps};

    for ((a, b), c) in a.iter().zip(b).zip(c) {
        for k in (0..LINE).step_by(4) {
            // SAFETY: every x86_64 has SSE; four elements from `k` are in each line, since `LINE`
            // is a multiple of four; a line is aligned to 64 bytes, so its quarters are to 16.
            unsafe {
                let x = _mm_loadu_ps(a.0.as_ptr().add(k));
                let y = _mm_loadu_ps(b.0.as_ptr().add(k));
                _mm_stream_ps(c.0.as_mut_ptr().add(k), _mm_add_ps(x, y));
            }
        }
    }
    // SAFETY: every x86_64 has SSE. Streamed stores are ordered before what the thread does next.
    unsafe { _mm_sfence() };
}

/// Elsewhere stable Rust has no such store.
#[cfg(not(target_arch = "x86_64"))]
fn add(a: &[Line], b: &[Line], c: &mut [Line]) {
    for ((a, b), c) in a.iter().zip(b).zip(c) {
        for k in 0..LINE {
            c.0[k] = a.0[k] + b.0[k];
        }
    }
}
