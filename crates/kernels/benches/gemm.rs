//! Matrix products: GFLOP/s and share of the measured multiply-add peak.
//!
//! `cargo bench -p galatea-kernels --bench gemm [-- THREADS [M,K,N …]]`

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod timing;

use galatea_kernels::gemm::{GemmEpilogue, PackedB, Transposition, gemm};
use galatea_kernels::{Isa, KernelContext, ThreadPool};

fn main() {
    let threads = timing::threads();
    let pool = ThreadPool::new(threads);
    let usual = [
        (128, 768, 768),
        (128, 768, 3072),
        (128, 3072, 768),
        (128, 384, 384),
        (128, 384, 1536),
        (1024, 1024, 1024),
        (2048, 2048, 2048),
        (4096, 4096, 4096),
        (32, 32, 32),
        (64, 64, 64),
        (1, 768, 3072),
        (1, 1024, 1024),
        (8, 768, 768),
    ];
    let shapes = shapes_of_arguments().unwrap_or_else(|| usual.to_vec());
    for isa in Isa::available().into_iter().filter(|isa| isa.name() != "portable") {
        let exec = KernelContext { pool: &pool, isa };
        let peak = timing::peak_gflops(isa) * threads as f64;
        println!("{} x {threads}: multiply-add peak {peak:.0} GFLOP/s", isa.name());
        for &(m, k, n) in &shapes {
            let a = timing::Floats::new(m * k, 0.5);
            let b =
                PackedB::pack(isa, k, n, &timing::Floats::new(k * n, 0.25), n, Transposition::No);
            let bias = timing::Floats::new(n, 0.0);
            let mut c = timing::Floats::new(m * n, 0.0);
            let seconds = timing::best(|| {
                gemm(exec, m, &a, k, &b, &mut c, n, &GemmEpilogue::bias(&bias));
            });
            let name = format!("gemm {m}x{k}x{n}");
            timing::report(&name, 2.0 * (m * k * n) as f64, seconds, peak);
        }
    }
}

/// Shapes from arguments like `128,768,3072`.
fn shapes_of_arguments() -> Option<Vec<(usize, usize, usize)>> {
    let shape = |a: String| {
        let sizes: Vec<usize> = a.split(',').map_while(|x| x.parse().ok()).collect();
        <[usize; 3]>::try_from(sizes).ok().map(|[m, k, n]| (m, k, n))
    };
    let found: Vec<_> = std::env::args().skip(1).filter_map(shape).collect();
    (!found.is_empty()).then_some(found)
}
