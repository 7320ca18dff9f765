//! Products of bytes and of weights in blocks: GFLOP/s, and the bytes of weights read a second.
//!
//! `cargo bench -p galatea-kernels --bench int8 [-- THREADS]`

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]
#![allow(clippy::cast_possible_truncation, reason = "numbers of few bits")]

mod timing;

use galatea_kernels::blocks::{BlockAccuracy, BlockFormat, PackedBlocks, StoredZeros, gemm_blocks};
use galatea_kernels::conv::{ConvParams, ImageBatch};
use galatea_kernels::int8::{
    ByteForm, ColumnScales, Int8Conv, Int8ConvWeights, Int8Summand, Int8Target, PackedInt8,
    QuantizedBytes, SummandScales, conv_int8, gemm_int8,
};
use galatea_kernels::isa::DotIsa;
use galatea_kernels::{GemmEpilogue, Isa, KernelContext, MatrixSize, StridedMatrix, ThreadPool};

/// Products of whole matrices with every set of integer instructions.
fn products(exec: KernelContext<'_>) {
    let shapes = [
        (128, 768, 768),
        (128, 768, 3072),
        (128, 3072, 768),
        (512, 512, 512),
        (1024, 1024, 1024),
        (2048, 2048, 2048),
    ];
    for dot in DotIsa::available().into_iter().filter(|dot| dot.name() != "portable") {
        let peak = timing::peak_gops(dot) * exec.pool.threads() as f64;
        println!("{:12} peak {peak:.0} GOP/s", dot.name());
        for (m, k, n) in shapes {
            // Unsigned, signed, and with a zero point for each column.
            for (signed, zeros) in [(false, vec![0]), (true, vec![0]), (false, vec![1; n])] {
                let a = vec![3_u8; m * k];
                let b =
                    PackedInt8::pack(dot, k, n, true, |row, column| ((row ^ column) & 63) as u8);
                let columns = ColumnScales::new(&b, ByteForm { signed, zero: 128 }, &zeros)
                    .with_scales(|_| 0.5);
                let mut c = vec![0.0; m * n];
                let seconds = timing::best(|| {
                    let a = QuantizedBytes { data: &a, signed, zero: 128 };
                    gemm_int8(exec, m, a, &b, &columns, Int8Target::Floats(&mut c));
                });
                let form = match (signed, zeros.len()) {
                    (true, _) => "s8",
                    (false, 1) => "u8",
                    (false, _) => "u8 zeros",
                };
                let name = format!("{} {form} {m}x{k}x{n}", dot.name());
                timing::report(&name, 2.0 * (m * k * n) as f64, seconds, peak);
            }
        }
    }
}

/// Convolutions of images with the channels last, alone and with a sum behind them.
fn convolutions(exec: KernelContext<'_>) {
    // Channels, kernel, stride, size of the image.
    let kinds = [
        ((3, 64), 7, 2, 224),
        ((64, 64), 1, 1, 56),
        ((64, 64), 3, 1, 56),
        ((64, 256), 1, 1, 56),
        ((256, 64), 1, 1, 56),
        ((128, 128), 3, 1, 28),
        ((128, 512), 1, 1, 28),
        ((256, 256), 3, 1, 14),
        ((512, 512), 3, 1, 7),
        ((16, 96), 1, 1, 112),
        ((96, 24), 1, 1, 56),
    ];
    for dot in DotIsa::available().into_iter().filter(|dot| dot.name() != "portable") {
        let peak = timing::peak_gops(dot) * exec.pool.threads() as f64;
        for ((cin, cout), kernel, stride, size) in kinds {
            let batch = 8;
            let pad = (kernel - 1) / 2;
            let p = ConvParams {
                stride: [1, stride, stride],
                pads_begin: [0, pad, pad],
                pads_end: [0, pad, pad],
                ..ConvParams::new_2d(cin, cout, [kernel, kernel])
            };
            let data: Vec<u8> = (0..cout * cin * kernel * kernel).map(|i| (i % 61) as u8).collect();
            let weights = Int8ConvWeights { data: &data, signed: true, zeros: &[0] };
            let packed = Int8Conv::pack(dot, p, weights, true);
            let image = ByteForm { signed: false, zero: 120 };
            let columns = packed.columns(image, &[0], None, |_| 0.001);
            let x = vec![100_u8; batch * size * size * cin];
            let pixels = p.output_size([1, size, size]).iter().product::<usize>() * batch;
            let mut y = vec![0_u8; pixels * cout];
            let (zero, low, high) = (3, 0, 255);
            let mut run = |sum: bool| {
                timing::best(|| {
                    let x = QuantizedBytes { data: &x, signed: false, zero: 120 };
                    let form = ByteForm { signed: false, zero: 7 };
                    let scales = SummandScales { own: 0.3, other: 0.4, result: 0.5 };
                    let result = ByteForm { signed: false, zero: 9 };
                    let beside = Int8Summand { data: None, form, scales, result };
                    let target = match sum {
                        true => Int8Target::Sum { out: &mut y, zero, low, high, beside },
                        false => Int8Target::Bytes { out: &mut y, zero, low, high },
                    };
                    let image = ImageBatch { batch, size: [1, size, size] };
                    conv_int8(exec, &packed, x, image, &columns, target);
                })
            };
            let work = 2.0 * (pixels * cout * cin * kernel * kernel) as f64;
            for (sum, name) in [(false, ""), (true, " and sum")] {
                let name =
                    format!("{} {cin}>{cout} {kernel}x{kernel}/{stride} {size}{name}", dot.name());
                let seconds = run(sum);
                timing::report(&name, work, seconds, peak);
            }
        }
    }
}

/// One row and some rows times weights of few bits.
fn blocks(exec: KernelContext<'_>) {
    let (k, n) = (4096, 11_008);
    for (bits, block) in [(2, 32), (3, 32), (4, 32), (4, 128), (5, 32), (6, 32), (8, 32)] {
        let Some(format) = BlockFormat::new(bits, block) else { continue };
        let scales = vec![0.01; n * k / block];
        let number = |row: usize, column: usize| ((row ^ column) & 3) as u8;
        let size = MatrixSize { rows: k, columns: n };
        let zeros = StoredZeros::One(1.0);
        let b = PackedBlocks::pack(exec.pool, format, size, number, &scales, zeros);
        for accuracy in [BlockAccuracy::Full, BlockAccuracy::Reduced] {
            for m in [1, 4, 128] {
                let (a, mut c) = (timing::Floats::new(m * k, 0.5), vec![0.0; m * n]);
                let seconds = timing::best(|| {
                    let epilogue = GemmEpilogue::default();
                    let from = StridedMatrix::new(&a[..], k);
                    let to = StridedMatrix::new(&mut c[..], n);
                    gemm_blocks(exec, m, from, &b, to, &epilogue, accuracy);
                });
                let gflops = 2.0 * (m * k * n) as f64 / seconds / 1e9;
                let name =
                    format!("{bits} bits / {block}, {m} rows, {accuracy:?} {gflops:.0} GFLOP/s");
                timing::report_bytes(&name, b.size_bytes() as f64, seconds);
            }
        }
    }
}

fn main() {
    let pool = ThreadPool::new(timing::threads());
    let exec = KernelContext { pool: &pool, isa: Isa::detect() };
    convolutions(exec);
    products(exec);
    blocks(exec);
}
