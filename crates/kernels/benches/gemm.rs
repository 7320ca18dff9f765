//! Matrix products: GFLOP/s and share of the measured multiply-add peak.
//!
//! `cargo bench -p galatea-kernels --bench gemm [-- THREADS]`

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod timing;

use galatea_kernels::gemm::{Epilogue, PackedB, Trans, gemm};
use galatea_kernels::{Exec, Isa, ThreadPool};

fn main() {
    let threads = timing::threads();
    let pool = ThreadPool::new(threads);
    let shapes = [
        (128, 768, 768),
        (128, 768, 3072),
        (128, 3072, 768),
        (128, 384, 384),
        (128, 384, 1536),
        (1024, 1024, 1024),
        (1, 768, 3072),
        (1, 1024, 1024),
        (8, 768, 768),
    ];
    for isa in Isa::available().into_iter().filter(|isa| isa.name() != "portable") {
        let exec = Exec { pool: &pool, isa };
        let peak = timing::peak_gflops(isa) * threads as f64;
        println!("{} x {threads}: multiply-add peak {peak:.0} GFLOP/s", isa.name());
        for (m, k, n) in shapes {
            let a = timing::Floats::new(m * k, 0.5);
            let b = PackedB::pack(isa, k, n, &timing::Floats::new(k * n, 0.25), n, Trans::No);
            let bias = timing::Floats::new(n, 0.0);
            let mut c = timing::Floats::new(m * n, 0.0);
            let seconds = timing::best(|| {
                gemm(exec, m, &a, k, &b, &mut c, n, &Epilogue::bias(&bias));
            });
            let name = format!("gemm {m}x{k}x{n}");
            timing::report(&name, 2.0 * (m * k * n) as f64, seconds, peak);
        }
    }
}
