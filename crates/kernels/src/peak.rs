//! Peaks of this host: multiplications and additions in registers alone, and reads of memory.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

use crate::isa::{Isa, IsaKernel, Simd};

/// Rounds of a measured loop.
const ROUNDS: usize = 100_000;
/// Sums that do not wait for each other.
const SUMS: usize = 12;
/// Loops of which the fastest counts.
const LOOPS: usize = 20;
/// Loops of a thread among others, beside which its start takes no time.
const REPEATS: usize = 20;

/// Bytes that all threads read together, and each one at least: more than caches hold.
const BYTES_READ: usize = 256 << 20;
const BYTES_OF_THREAD: usize = 64 << 20;
/// Reads of which the fastest counts.
const READS: usize = 7;

/// Multiplies and adds in registers only.
struct RegisterLoop(f32);

impl IsaKernel for RegisterLoop {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f32 {
        let x = s.splat(self.0);
        let mut sums = [s.splat(0.0); SUMS];
        for _ in 0..ROUNDS {
            for sum in &mut sums {
                *sum = s.fma(*sum, x, x);
            }
        }
        let total = sums.into_iter().reduce(|a, b| s.add(a, b));
        total.map_or(0.0, |total| s.reduce_add(total))
    }
}

/// Measures the FP32 operations in a nanosecond that one thread keeps up in registers, once in a process.
pub fn flops_per_ns() -> f64 {
    static FOUND: OnceLock<f64> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let isa = Isa::detect();
        let least_ns = least_ns(LOOPS, || {
            black_box(isa.run(RegisterLoop(black_box(0.5))));
        });
        2.0 * SUMS as f64 * ROUNDS as f64 * isa.lanes() as f64 / least_ns
    })
}

/// Measures the FP32 operations in a nanosecond that so many threads keep up in registers together.
pub fn flops_per_ns_of(threads: usize) -> f64 {
    let threads = threads.max(1);
    let isa = Isa::detect();
    let loops = LOOPS / 4;
    let least_ns = least_ns(loops, || {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..REPEATS {
                        black_box(isa.run(RegisterLoop(black_box(0.5))));
                    }
                });
            }
        });
    });
    let operations = 2.0 * SUMS as f64 * ROUNDS as f64 * isa.lanes() as f64;
    operations * (REPEATS * threads) as f64 / least_ns
}

/// Measures the bytes in a nanosecond (10⁹ a second) that so many threads read from memory together.
pub fn read_bytes_per_ns(threads: usize) -> f64 {
    let threads = threads.max(1);
    let bytes = (BYTES_READ / threads).max(BYTES_OF_THREAD);
    let words = bytes / size_of::<u64>();
    let blocks: Vec<Vec<u64>> = (0..threads).map(|at| vec![at as u64 + 1; words]).collect();
    let least_ns = least_ns(READS, || {
        std::thread::scope(|scope| {
            for block in &blocks {
                scope.spawn(|| black_box(sum(black_box(block))));
            }
        });
    });
    (threads * bytes) as f64 / least_ns
}

/// Runs something so often, and returns the nanoseconds of the fastest time.
fn least_ns(times: usize, run: impl Fn()) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..times {
        let start = Instant::now();
        run();
        least = least.min(start.elapsed().as_secs_f64() * 1e9);
    }
    least.max(1.0)
}

/// Sums words in lanes that do not wait for each other.
fn sum(words: &[u64]) -> u64 {
    const LANES: usize = 32;
    let mut sums = [0_u64; LANES];
    for words in words.chunks_exact(LANES) {
        for (sum, word) in sums.iter_mut().zip(words) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_measured_once_and_are_those_of_a_processor() {
        let flops = flops_per_ns();
        assert!(flops.is_finite() && flops > 0.0);
        assert_eq!(flops.to_bits(), flops_per_ns().to_bits());
        let both = flops_per_ns_of(2);
        assert!(both.is_finite() && both > 0.1 * flops, "{both} {flops}");
        let bytes = read_bytes_per_ns(1);
        assert!(bytes.is_finite() && bytes > 0.0);
    }

    #[test]
    fn sums_take_each_word_of_whole_lanes() {
        assert_eq!(sum(&[3; 64]), 192);
    }
}
