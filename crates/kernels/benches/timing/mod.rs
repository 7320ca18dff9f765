//! Shared by the benches: best of many runs, the multiply-add peak, one line a figure.

#![allow(dead_code, reason = "each bench uses a part")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use galatea_kernels::Isa;
use galatea_kernels::isa::{DotInstructions, DotIsa, DotKernel, IsaKernel, Simd};

/// Threads from the first argument that is a number; 1 without.
pub(crate) fn threads() -> usize {
    std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(1)
}

/// Seconds of the fastest of many runs: other programs only ever add time.
pub(crate) fn best(mut body: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let start = Instant::now();
    let mut runs = 0;
    while runs < 5 || (start.elapsed() < Duration::from_millis(400) && runs < 2_000) {
        let begin = Instant::now();
        body();
        best = best.min(begin.elapsed().as_secs_f64());
        runs += 1;
    }
    best
}

struct Peak(f32);

impl IsaKernel for Peak {
    type Output = f32;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f32 {
        let x = s.splat(self.0);
        let mut sums = [s.splat(0.0); 12];
        for _ in 0..100_000 {
            for sum in &mut sums {
                *sum = s.fma(*sum, x, x);
            }
        }
        let mut total = sums[0];
        for &sum in &sums[1..] {
            total = s.add(total, sum);
        }
        s.reduce_add(total)
    }
}

/// GFLOP/s that one thread keeps up when it only multiplies and adds in registers: the median of
/// runs over half a second, as processors lower their clock under wide instructions after a while.
pub(crate) fn peak_gflops(isa: Isa) -> f64 {
    let start = Instant::now();
    let mut runs = Vec::new();
    while start.elapsed() < Duration::from_millis(500) {
        let begin = Instant::now();
        black_box(isa.run(Peak(black_box(0.5))));
        runs.push(begin.elapsed().as_secs_f64());
    }
    runs.sort_unstable_by(f64::total_cmp);
    let seconds = runs[runs.len() / 2];
    2.0 * 12.0 * 100_000.0 * isa.lanes() as f64 / seconds / 1e9
}

/// Integer products in registers, `ROUNDS` times [`SUMS`] instructions.
struct DotPeak(i32);

const ROUNDS: usize = 50_000;
const SUMS: usize = 12;

impl DotKernel for DotPeak {
    type Output = (f32, usize);
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) -> (f32, usize) {
        let s = d.simd();
        let x = s.splat_i(self.0);
        let mut sums = [x; SUMS];
        for _ in 0..ROUNDS {
            for sum in &mut sums {
                *sum = d.dot(*sum, x, x);
            }
        }
        let total = sums.into_iter().reduce(|a, b| s.add_i(a, b));
        let total = total.map_or(0.0, |total| s.reduce_add(s.to_float(total)));
        (total, <D::S as Simd>::LANES * D::TERMS)
    }
}

/// GOP/s that one thread keeps up in products of integers, as [`peak_gflops`].
pub(crate) fn peak_gops(dot: DotIsa) -> f64 {
    if dot.name() == "amx-int8" {
        return tiles_peak(64, true);
    }
    let (_, products) = dot.run(DotPeak(1));
    let seconds = median(|| {
        black_box(dot.run(DotPeak(black_box(0x0101_0101))));
    });
    2.0 * (SUMS * ROUNDS * products) as f64 / seconds / 1e9
}

/// GFLOP/s that one thread keeps up in products of BF16 by tiles.
pub(crate) fn tiles_bf16_gflops() -> f64 {
    tiles_peak(32, false)
}

/// Median of runs over half a second, in seconds.
fn median(mut body: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut runs = Vec::new();
    while start.elapsed() < Duration::from_millis(500) {
        let begin = Instant::now();
        body();
        runs.push(begin.elapsed().as_secs_f64());
    }
    runs.sort_unstable_by(f64::total_cmp);
    runs[runs.len() / 2]
}

/// Measures the peak of multiplications of tiles, of 16 rows of `terms`, with nothing loaded.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn tiles_peak(terms: usize, bytes: bool) -> f64 {
    use std::arch::asm;
    let mut config = [0_u8; 64];
    config[0] = 1;
    for tile in 0..8 {
        config[16 + 2 * tile] = 64;
        config[48 + tile] = 16;
    }
    macro_rules! run {
        ($dot:literal) => {
            // SAFETY: the caller has seen that there are tiles; the configuration is of palette 1.
            unsafe {
                asm!(
                    "ldtilecfg [{c}]",
                    "tilezero tmm4", "tilezero tmm5", "tilezero tmm6", "tilezero tmm7",
                    "2:",
                    concat!($dot, " tmm0, tmm4, tmm6"),
                    concat!($dot, " tmm1, tmm4, tmm7"),
                    concat!($dot, " tmm2, tmm5, tmm6"),
                    concat!($dot, " tmm3, tmm5, tmm7"),
                    "dec {n}",
                    "jnz 2b",
                    "tilerelease",
                    c = in(reg) config.as_ptr(),
                    n = inout(reg) ROUNDS / 10 => _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        };
    }
    let seconds = median(|| if bytes { run!("tdpbusd") } else { run!("tdpbf16ps") });
    2.0 * (ROUNDS / 10 * 4 * 16 * 16 * terms) as f64 / seconds / 1e9
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn tiles_peak(_terms: usize, _bytes: bool) -> f64 {
    f64::NAN
}

/// Floats that start on a cache line, as tensors do.
pub(crate) struct Floats {
    data: Vec<f32>,
    start: usize,
    len: usize,
}

impl Floats {
    pub(crate) fn new(len: usize, value: f32) -> Self {
        let data = vec![value; len + 16];
        let start = data.as_ptr().align_offset(64);
        Self { data, start, len }
    }
}

impl std::ops::Deref for Floats {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        &self.data[self.start..self.start + self.len]
    }
}

impl std::ops::DerefMut for Floats {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.data[self.start..self.start + self.len]
    }
}

/// Prints one figure.
pub(crate) fn report(name: &str, flops: f64, seconds: f64, peak: f64) {
    let gflops = flops / seconds / 1e9;
    println!(
        "{name:32} {:9.1} us {gflops:8.1} GFLOP/s {:4.0} % of peak",
        seconds * 1e6,
        gflops / peak * 100.0
    );
}

/// Prints one figure in bytes.
pub(crate) fn report_bytes(name: &str, bytes: f64, seconds: f64) {
    println!("{name:32} {:9.1} us {:8.1} GB/s", seconds * 1e6, bytes / seconds / 1e9);
}
