//! BF16 matrix products: GFLOP/s and share of the peak that a loop over registers reaches.
//!
//! `cargo bench -p galatea-kernels --bench bf16 [-- THREADS]`

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod timing;

use half::bf16;

use galatea_kernels::bf16::{PackedBf16, gemm_bf16, gemm_reals};
use galatea_kernels::gemm::{GemmEpilogue, Transposition};
use galatea_kernels::isa::Bf16Isa;
use galatea_kernels::{Isa, KernelContext, StridedMatrix, ThreadPool};

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
    let exec = KernelContext { pool: &pool, isa: Isa::detect() };
    let isa = Bf16Isa::of(exec.isa);
    let tiles = isa.name() == "amx-bf16";
    let one = if tiles { timing::tiles_bf16_gflops() } else { timing::peak_gflops(exec.isa) };
    let peak = one * threads as f64;
    println!("{} x {threads}, peak {peak:.0} GFLOP/s", isa.name());
    for (m, k, n) in shapes {
        let a = timing::Floats::new(m * k, 0.5);
        let b = PackedBf16::pack(k, n, &timing::Floats::new(k * n, 0.25), n, Transposition::No);
        let bias = timing::Floats::new(n, 0.0);
        let mut c = timing::Floats::new(m * n, 0.0);
        let seconds = timing::best(|| {
            gemm_bf16(exec, m, &a, k, &b, &mut c, n, &GemmEpilogue::bias(&bias));
        });
        let flops = 2.0 * (m * k * n) as f64;
        timing::report(&format!("gemm {m}x{k}x{n}"), flops, seconds, peak);
        let half: Vec<bf16> = a.iter().map(|&x| bf16::from_f32(x)).collect();
        let mut c = vec![bf16::ZERO; m * n];
        let seconds = timing::best(|| {
            let a = StridedMatrix::new(half[..].into(), k);
            let c = StridedMatrix::new((&mut c[..]).into(), n);
            gemm_reals(exec, m, a, &b, c, &GemmEpilogue::bias(&bias), None);
        });
        timing::report(&format!("gemm {m}x{k}x{n} of BF16"), flops, seconds, peak);
    }
}
