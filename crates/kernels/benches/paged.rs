//! Attention over blocks of caches: GB/s of keys and values where sequences go on by one row each,
//! GFLOP/s of prompts.
//!
//! `cargo bench -p galatea-kernels --bench paged [-- THREADS]`

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod timing;

use galatea_kernels::attention::AttentionRows;
use galatea_kernels::paged_attention::{PagedAttentionStep, PagedCaches, paged_attention};
use galatea_kernels::{Isa, KernelContext, ThreadPool};
use galatea_tensor::{Element, OwnedTensor, bf16, f16};

/// Positions of a block.
const BLOCK: usize = 16;

/// Query heads, key heads and the length of a vector.
type Shape = (usize, usize, usize);

fn main() {
    let threads = timing::threads();
    let pool = ThreadPool::new(threads);
    let isa = Isa::detect();
    let exec = KernelContext { pool: &pool, isa };
    let peak = timing::peak_gflops(isa) * threads as f64;
    println!("{} x {threads}: multiply-add peak {peak:.0} GFLOP/s", isa.name());
    for shape in [(14, 2, 64), (28, 4, 128), (16, 16, 64)] {
        for sizes in [(1, 8192), (16, 8192), (16, 128)] {
            for kind in ["fp32", "fp16", "bf16", "int8"] {
                decode(exec, shape, sizes, kind);
            }
        }
        for (rows, before) in [(512, 0), (2048, 0), (32, 4096), (5, 4096)] {
            prompt(exec, shape, (rows, before), peak);
        }
    }
}

/// A cache as a model has it.
fn filled<T: Element>(elements: usize, value: T) -> OwnedTensor {
    let tensor = OwnedTensor::zeroed(T::DTYPE, &[elements]);
    let Ok(mut tensor) = tensor else { unreachable!("the sizes are small") };
    if let Ok(all) = tensor.as_mut_slice::<T>() {
        all.fill(value);
    }
    tensor
}

/// Runs a step of sequences that each have `rows` new rows and so many positions; gives seconds.
fn run(
    exec: KernelContext<'_>,
    (heads, kv_heads, size): Shape,
    (sequences, rows, length): (usize, usize, usize),
    kind: &str,
) -> f64 {
    let most = length.div_ceil(BLOCK);
    let count = sequences * most;
    // Neighbours in a sequence are no neighbours in memory.
    let blocks: Vec<i64> = (0..count).map(|i| (i * 7919 % count) as i64).collect();
    let starts: Vec<usize> = (0..=sequences).map(|i| i * rows).collect();
    let lengths = vec![length; sequences];
    let a = PagedAttentionStep {
        heads,
        kv_heads,
        head_size: size,
        value_size: size,
        block_size: BLOCK,
        scale: 0.125,
        window: 0,
        softcap: 0.0,
        starts: &starts,
        lengths: &lengths,
        blocks: &blocks,
    };
    let q = timing::Floats::new(sequences * rows * heads * size, 0.1);
    let k = timing::Floats::new(sequences * rows * kv_heads * size, 0.1);
    let mut y = timing::Floats::new(q.len(), 0.0);
    let x = AttentionRows { q: &q[..], k: &k[..], v: &k[..] };
    let vectors = count * kv_heads * BLOCK;
    let n = vectors * size;
    macro_rules! time {
        ($kind:ident, $one:expr) => {{
            let (mut keys, mut values) = (filled(n, $one), filled(n, $one));
            let (Ok(keys), Ok(values)) = (keys.as_mut_slice(), values.as_mut_slice()) else {
                unreachable!("they were filled with such elements");
            };
            timing::best(|| {
                let caches = PagedCaches::$kind([&mut *keys, &mut *values]);
                paged_attention(exec, &a, x, caches, &mut y);
            })
        }};
    }
    match kind {
        "fp32" => time!(Fp32, 0.1_f32),
        "fp16" => time!(Fp16, f16::from_f32(0.1)),
        "bf16" => time!(Bf16, bf16::from_f32(0.1)),
        _ => {
            let (mut keys, mut values) = (filled(n, 9_i8), filled(n, 9_i8));
            let (Ok(keys), Ok(values)) = (keys.as_mut_slice(), values.as_mut_slice()) else {
                unreachable!("they were filled with such elements");
            };
            let (mut first, mut second) = (vec![0.01_f32; vectors], vec![0.01_f32; vectors]);
            timing::best(|| {
                let (caches, scales) = ([&mut *keys, &mut *values], [&mut first[..], &mut second]);
                let caches = PagedCaches::Int8 { caches, scales };
                paged_attention(exec, &a, x, caches, &mut y);
            })
        }
    }
}

fn decode(exec: KernelContext<'_>, shape: Shape, (sequences, length): (usize, usize), kind: &str) {
    let (heads, kv_heads, size) = shape;
    let seconds = run(exec, shape, (sequences, 1, length), kind);
    let vector = match kind {
        "fp32" => 4 * size,
        "int8" => size + 4,
        _ => 2 * size,
    };
    let bytes = 2 * sequences * length * kv_heads * vector;
    let name = format!("decode {sequences}x{length} {heads}/{kv_heads}x{size} {kind}");
    timing::report_bytes(&name, bytes as f64, seconds);
}

fn prompt(exec: KernelContext<'_>, shape: Shape, (rows, before): (usize, usize), peak: f64) {
    let (heads, kv_heads, size) = shape;
    let seconds = run(exec, shape, (1, rows, before + rows), "fp32");
    let seen = rows * before + rows * (rows + 1) / 2;
    let name = format!("prompt {rows}+{before} {heads}/{kv_heads}x{size}");
    timing::report(&name, (4 * heads * size * seen) as f64, seconds, peak);
}
