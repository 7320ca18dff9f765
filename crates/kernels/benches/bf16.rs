//! BF16 matrix products: GFLOP/s and share of the peak that a loop over registers reaches.
//!
//! `cargo bench -p galatea-kernels --bench bf16 [-- THREADS]`

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod timing;

use galatea_kernels::bf16::{PackedBf16, gemm_bf16};
use galatea_kernels::gemm::{Epilogue, Trans};
use galatea_kernels::isa::Bf16Isa;
use galatea_kernels::{Exec, Isa, ThreadPool};

fn main() {
    let threads = timing::threads();
    let pool = ThreadPool::new(threads);
    let shapes = [
        (128, 768, 768),
        (128, 768, 3072),
        (128, 3072, 768),
        (128, 384, 1536),
        (1024, 768, 768),
        (1024, 768, 3072),
        (1024, 3072, 768),
        (1024, 1024, 1024),
        (2048, 2048, 2048),
        (4096, 4096, 4096),
        (3136, 64, 64),
        (784, 512, 128),
        (196, 1024, 256),
        (49, 2048, 512),
        (1, 768, 3072),
        (8, 768, 3072),
    ];
    let exec = Exec { pool: &pool, isa: Isa::detect() };
    println!("{} x {threads}", Bf16Isa::of(exec.isa).name());
    for (m, k, n) in shapes {
        let a = timing::Floats::new(m * k, 0.5);
        let b = PackedBf16::pack(k, n, &timing::Floats::new(k * n, 0.25), n, Trans::No);
        let bias = timing::Floats::new(n, 0.0);
        let mut c = timing::Floats::new(m * n, 0.0);
        let seconds = timing::best(|| {
            gemm_bf16(exec, m, &a, k, &b, &mut c, n, &Epilogue::bias(&bias));
        });
        let gflops = 2.0 * (m * k * n) as f64 / seconds / 1e9;
        println!("gemm {m}x{k}x{n:<8} {:9.1} us {gflops:8.1} GFLOP/s", seconds * 1e6);
    }
}
