//! BF16 matrix products: GFLOP/s and share of the peak that a loop over registers reaches.
//!
//! `cargo bench -p galatea-kernels --bench bf16 [-- THREADS]`

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod timing;

use half::bf16;

use std::time::Instant;

use galatea_kernels::bf16::{BatchedReals, PackedBf16, gemm_bf16, gemm_reals, matmul_batched_bf16};
use galatea_kernels::gemm::{
    BatchedOperand, GemmEpilogue, PackedB, Transposition, gemm, matmul_batched,
};
use galatea_kernels::isa::Bf16Isa;
use galatea_kernels::{Isa, KernelContext, ProductSize, StridedMatrix, ThreadPool};

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
    for (batch, m, k, n) in [
        (1, 1, 64, 512),
        (12, 4, 64, 512),
        (12, 8, 64, 512),
        (12, 16, 64, 512),
        (12, 32, 64, 512),
        (12, 128, 64, 128),
        (12, 512, 64, 512),
        (12, 128, 128, 64),
        (12, 512, 512, 64),
        (1, 8, 1024, 1024),
        (1, 32, 1024, 1024),
        (1, 128, 1024, 1024),
        (1, 512, 1024, 1024),
    ] {
        compare_batched(exec, batch, ProductSize { m, k, n });
    }
    compare_constant(exec);
}

/// The time that a fifth of the runs keeps below.
fn low(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 5]
}

fn seconds(run: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    run();
    begin.elapsed().as_secs_f64()
}

/// Products of two matrices of a run in FP32 and in BF16, which take turns.
fn compare_batched(exec: KernelContext<'_>, batch: usize, size: ProductSize) {
    let ProductSize { m, k, n } = size;
    let a = timing::Floats::new(batch * m * k, 0.5);
    let b = timing::Floats::new(batch * k * n, 0.25);
    let mut c = timing::Floats::new(batch * m * n, 0.0);
    let offsets = |len: usize| -> Vec<usize> { (0..batch).map(|i| i * len).collect() };
    let (a_at, b_at) = (offsets(m * k), offsets(k * n));
    let none = GemmEpilogue::default();
    for trans in [Transposition::No, Transposition::Yes] {
        let ld = if trans == Transposition::No { n } else { k };
        let mut times: [Vec<f64>; 2] = Default::default();
        for _ in 0..60 {
            let rows = Transposition::No;
            let x = BatchedOperand { data: &a, offsets: &a_at, ld: k, trans: rows };
            let y = BatchedOperand { data: &b, offsets: &b_at, ld, trans };
            times[0].push(seconds(|| matmul_batched(exec, size, x, y, &mut c, &none)));
            let x = BatchedReals { data: a[..].into(), offsets: &a_at, ld: k, trans: rows };
            let y = BatchedReals { data: b[..].into(), offsets: &b_at, ld, trans };
            let to = (&mut c[..]).into();
            times[1].push(seconds(|| matmul_batched_bf16(exec, size, x, y, to, &none, None)));
        }
        let [wide, short] = times.map(low);
        println!(
            "two variables {batch} x {m}x{k}x{n} {trans:?}: FP32 {:.1} us, BF16 {:.1} us, {:.2} times as fast",
            wide * 1e6,
            short * 1e6,
            wide / short
        );
    }
}

/// Products with constant weights in FP32 and BF16, which take turns: what sparse weights must beat.
fn compare_constant(exec: KernelContext<'_>) {
    for (m, k, n) in [(1, 1024, 1024), (8, 1024, 1024), (128, 1024, 1024), (512, 1024, 1024)] {
        let a = timing::Floats::new(m * k, 0.5);
        let b = timing::Floats::new(k * n, 0.25);
        let mut c = timing::Floats::new(m * n, 0.0);
        let wide = PackedB::pack(exec.isa, k, n, &b, n, Transposition::No);
        let short = PackedBf16::pack(k, n, &b, n, Transposition::No);
        let none = GemmEpilogue::default();
        let mut times: [Vec<f64>; 2] = Default::default();
        for _ in 0..100 {
            times[0].push(seconds(|| gemm(exec, m, &a, k, &wide, &mut c, n, &none)));
            times[1].push(seconds(|| gemm_bf16(exec, m, &a, k, &short, &mut c, n, &none)));
        }
        let [wide, short] = times.map(low);
        println!("constant {m}x{k}x{n}: BF16 is {:.2} times as fast as FP32", wide / short);
    }
}
