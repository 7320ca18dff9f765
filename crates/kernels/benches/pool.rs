//! Cost of sharing a loop: loops of two tasks for each thread, one after the other, each of which
//! takes some time alone.
//!
//! `cargo bench --bench pool -- 2`; an argument is the number of threads.

#![allow(clippy::print_stdout, reason = "figures are what a bench is for")]

use std::hint::black_box;
use std::time::Instant;

use galatea_kernels::ThreadPool;

mod timing;

/// Loops one after the other.
const LOOPS: usize = 2_000;

/// Keeps a thread busy for a while.
fn work(rounds: u32) {
    let mut x = 1_u32;
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(3));
    }
}

/// Seconds of a loop, the median of some hundred: other programs' time is none of the pool's.
fn median(mut one: impl FnMut()) -> f64 {
    let mut all: Vec<f64> = (0..LOOPS)
        .map(|_| {
            let start = Instant::now();
            one();
            start.elapsed().as_secs_f64()
        })
        .collect();
    all.sort_unstable_by(f64::total_cmp);
    all[all.len() / 2]
}

fn main() {
    let threads = timing::threads();
    let pool = ThreadPool::new(threads);
    for rounds in [0, 500, 2_000, 8_000, 32_000] {
        let alone = median(|| work(rounds));
        let shared = median(|| pool.run(2 * threads, |_| work(rounds)));
        let more = (shared - 2.0 * alone) * 1e6;
        println!("tasks of {:8.2} us: a loop takes {more:6.2} us more", alone * 1e6);
        let mean = Instant::now();
        for _ in 0..LOOPS {
            pool.run(2 * threads, |_| work(rounds));
        }
        let mean = mean.elapsed().as_secs_f64() / LOOPS as f64;
        let more = (mean - 2.0 * alone) * 1e6;
        println!("                        {more:6.2} us more on average");
    }
}
