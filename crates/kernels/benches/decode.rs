//! One row of a language model's step: weights of few bits stream past once.
//!
//! `cargo bench --bench decode -- 2`; an argument is the number of threads, another the only type
//! that is measured.

#![allow(clippy::print_stdout, reason = "figures are what a bench is for")]

use galatea_kernels::bf16::{PackedBf16, gemm_bf16};
use galatea_kernels::blocks::{
    BlockAccuracy, BlockFormat, BlockStorage, FactorForm, HalfKind, PackedBlocks, StoredShift,
    gemm_blocks,
};
use galatea_kernels::gemm::Transposition;
use galatea_kernels::isa::Isa;
use galatea_kernels::{GemmEpilogue, KernelContext, StridedMatrix, ThreadPool};

mod timing;

/// Types of ggml, with their packed form.
const TYPES: &[(&str, u32, usize, FactorForm, StoredShift)] = &[
    ("Q4_0", 4, 32, FactorForm::Fp16, StoredShift::Zero(8.0)),
    ("Q8_0", 8, 32, FactorForm::Fp16, StoredShift::Zero(128.0)),
    ("Q4_K", 4, 32, FactorForm::Nested(256), StoredShift::Offsets),
    ("Q5_K", 5, 32, FactorForm::Nested(256), StoredShift::Offsets),
    ("Q6_K", 6, 16, FactorForm::Nested(256), StoredShift::Zero(32.0)),
    ("Q3_K", 3, 16, FactorForm::Nested(256), StoredShift::Zero(4.0)),
    ("Q2_K", 2, 16, FactorForm::Nested(256), StoredShift::Offsets),
];

/// The products of a layer as Qwen2.5 of 1.5 billion weights has them, with repeats: rows, columns.
const LAYER: &[(usize, usize)] = &[(1536, 2048), (1536, 1536), (1536, 17_920), (8960, 1536)];
const LAYERS: usize = 14;

/// Reads every byte once.
fn read(pool: &ThreadPool, data: &[u8]) {
    let total = std::sync::atomic::AtomicU64::new(0);
    pool.run_ranges(data.len() / 4096, 64, |pages| {
        let bytes = &data[pages.start * 4096..pages.end * 4096];
        let mut sums = [0_u64; 64];
        for words in bytes.as_chunks::<512>().0 {
            for (sum, word) in sums.iter_mut().zip(words.as_chunks::<8>().0) {
                *sum = sum.wrapping_add(u64::from_le_bytes(*word));
            }
        }
        let sum = sums.iter().fold(0, |all: u64, sum| all.wrapping_add(*sum));
        total.fetch_add(sum, std::sync::atomic::Ordering::Relaxed);
    });
}

/// A matrix of some type, full of numbers.
fn packed(pool: &ThreadPool, storage: BlockStorage, (k, n): (usize, usize)) -> PackedBlocks {
    let packed: Result<PackedBlocks, std::convert::Infallible> =
        PackedBlocks::pack_columns(pool, storage, k, n, |column, to| {
            let mask = usize::from(u8::MAX >> (8 - storage.format.bits()));
            for (row, to) in to.numbers.iter_mut().enumerate() {
                *to = u8::try_from((row ^ column) & mask).unwrap_or(0);
            }
            to.scales.fill(0.01);
            to.super_scales.fill(0.01);
            Ok(())
        });
    match packed {
        Ok(packed) => packed,
        Err(never) => match never {},
    }
}

/// A row times a matrix that stays in the caches: what memory must not bring faster.
fn near(exec: KernelContext<'_>, name: &str, storage: BlockStorage) {
    let (k, n) = (1536, 512);
    let b = packed(exec.pool, storage, (k, n));
    let (a, mut c) = (timing::Floats::new(k, 0.5), vec![0.0; n]);
    let seconds = timing::best(|| {
        let epilogue = GemmEpilogue::default();
        let from = StridedMatrix::new(&a[..], k);
        let to = StridedMatrix::new(&mut c[..], n);
        gemm_blocks(exec, 1, from, &b, to, &epilogue, BlockAccuracy::Reduced);
    });
    timing::report_bytes(&format!("{name}, in the caches"), b.size_bytes() as f64, seconds);
}

/// A step's products one after the other, in turns with reading as many bytes: the medians.
fn step(exec: KernelContext<'_>, name: &str, storage: BlockStorage) {
    let matrices: Vec<PackedBlocks> =
        (0..LAYERS).flat_map(|_| LAYER).map(|&sizes| packed(exec.pool, storage, sizes)).collect();
    let bytes: usize = matrices.iter().map(PackedBlocks::size_bytes).sum();
    let data = vec![1_u8; bytes];
    let (a, mut c) = (timing::Floats::new(8960, 0.5), vec![0.0; 17_920]);
    let (mut reading, mut multiplying) = (Vec::new(), Vec::new());
    for _ in 0..25 {
        let start = std::time::Instant::now();
        read(exec.pool, &data);
        reading.push(start.elapsed().as_secs_f64());
        let start = std::time::Instant::now();
        for b in &matrices {
            let (k, n) = (b.k(), b.n());
            let epilogue = GemmEpilogue::default();
            let from = StridedMatrix::new(&a[..k], k);
            let to = StridedMatrix::new(&mut c[..n], n);
            gemm_blocks(exec, 1, from, b, to, &epilogue, BlockAccuracy::Reduced);
        }
        multiplying.push(start.elapsed().as_secs_f64());
    }
    let medians = [reading, multiplying].map(|mut all| {
        all.sort_unstable_by(f64::total_cmp);
        all[all.len() / 2]
    });
    timing::report_bytes(&format!("{name}, a step"), bytes as f64, medians[1]);
    println!("{:32} {:9.2} of reading", "", medians[0] / medians[1]);
}

fn main() {
    let pool = ThreadPool::new(timing::threads());
    let exec = KernelContext { pool: &pool, isa: Isa::detect() };
    let only = std::env::args().skip(1).find(|a| a.starts_with('Q'));
    if only.is_none() {
        floats(exec);
    }
    for &(name, bits, block, factors, shift) in TYPES {
        let Some(format) = BlockFormat::new(bits, block) else { continue };
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let storage = BlockStorage { format, factors, shift };
        let start = std::time::Instant::now();
        let b = packed(&pool, storage, SIZES);
        println!("packing {:.2} GB/s", b.size_bytes() as f64 / 1e9 / start.elapsed().as_secs_f64());
        let (k, n) = SIZES;
        for m in [1, 8, 16, 64, 512] {
            let (a, mut c) = (timing::Floats::new(m * k, 0.5), vec![0.0; m * n]);
            let seconds = timing::best(|| {
                let epilogue = GemmEpilogue::default();
                let from = StridedMatrix::new(&a[..], k);
                let to = StridedMatrix::new(&mut c[..], n);
                gemm_blocks(exec, m, from, &b, to, &epilogue, BlockAccuracy::Reduced);
            });
            let gflops = 2.0 * (m * k * n) as f64 / seconds / 1e9;
            let name = format!("{name}, {m} rows, {gflops:.0} GFLOP/s");
            timing::report_bytes(&name, b.size_bytes() as f64, seconds);
        }
        drop(b);
        near(exec, name, storage);
        step(exec, name, storage);
    }
}

/// Size of a matrix inside a model of 7 billion weights: no cache holds it.
const SIZES: (usize, usize) = (3584, 18_944 * 2);

/// Reading alone, and products with floats of 16 bits.
fn floats(exec: KernelContext<'_>) {
    let (k, n) = SIZES;
    let pool = exec.pool;
    let data = vec![1_u8; 512 << 20];
    let seconds = timing::best(|| read(pool, &data));
    timing::report_bytes("reading", data.len() as f64, seconds);
    let whole = PackedBf16::pack(k, n, &timing::Floats::new(k * n, 0.01), n, Transposition::No);
    for m in [1, 16, 64, 512] {
        let (a, mut c) = (timing::Floats::new(m * k, 0.5), vec![0.0; m * n]);
        let seconds = timing::best(|| {
            gemm_bf16(exec, m, &a, k, &whole, &mut c, n, &GemmEpilogue::default());
        });
        let gflops = 2.0 * (m * k * n) as f64 / seconds / 1e9;
        let name = format!("BF16, {m} rows, {gflops:.0} GFLOP/s");
        timing::report_bytes(&name, (2 * k * n) as f64, seconds);
    }
    let storage = BlockStorage {
        format: BlockFormat::halves(HalfKind::Bf16),
        factors: FactorForm::Fp32,
        shift: StoredShift::Zero(0.0),
    };
    let packed: Result<PackedBlocks, ()> =
        PackedBlocks::pack_columns(pool, storage, k, n, |_, to| {
            to.numbers.fill(0x3c);
            Ok(())
        });
    for m in [1, 4, 8, 16, 64, 512] {
        let (Ok(b), (a, mut c)) = (&packed, (timing::Floats::new(m * k, 0.5), vec![0.0; m * n]))
        else {
            break;
        };
        let seconds = timing::best(|| {
            let epilogue = GemmEpilogue::default();
            let from = StridedMatrix::new(&a[..], k);
            let to = StridedMatrix::new(&mut c[..], n);
            gemm_blocks(exec, m, from, b, to, &epilogue, BlockAccuracy::Full);
        });
        let gflops = 2.0 * (m * k * n) as f64 / seconds / 1e9;
        let name = format!("exact BF16, {m} rows, {gflops:.0} GFLOP/s");
        timing::report_bytes(&name, b.size_bytes() as f64, seconds);
    }
}
