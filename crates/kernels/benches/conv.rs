//! Convolutions of image models: GFLOP/s (of the sums as the definition has them) and share of the
//! multiply-add peak by every algorithm, the chosen one with a star. The weights come from beyond
//! the second-level cache, as they do in a model.
//!
//! `cargo bench -p galatea-kernels --bench conv [-- --threads=N --batch=N NAME ALGORITHM]`

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod timing;

use std::cell::Cell;

use galatea_kernels::conv::{ConvParams, CpuConvAlgorithm, PackedConv, candidates, choose, conv};
use galatea_kernels::{ActivationFunction, GemmEpilogue, Isa, KernelContext, ThreadPool};

/// Name, in and out channels, kernel, stride, groups, image size.
type Layer = (&'static str, usize, usize, usize, usize, usize, usize);

const LAYERS: &[Layer] = &[
    ("resnet conv1", 3, 64, 7, 2, 1, 224),
    ("resnet 2 reduce", 256, 64, 1, 1, 1, 56),
    ("resnet 2 3x3", 64, 64, 3, 1, 1, 56),
    ("resnet 2 expand", 64, 256, 1, 1, 1, 56),
    ("resnet 3 3x3 s2", 128, 128, 3, 2, 1, 56),
    ("resnet 3 3x3", 128, 128, 3, 1, 1, 28),
    ("resnet 3 expand", 128, 512, 1, 1, 1, 28),
    ("resnet 4 3x3", 256, 256, 3, 1, 1, 14),
    ("resnet 4 expand", 256, 1024, 1, 1, 1, 14),
    ("resnet 5 3x3", 512, 512, 3, 1, 1, 7),
    ("resnet 5 expand", 512, 2048, 1, 1, 1, 7),
    ("resnet 3 reduce", 512, 128, 1, 1, 1, 28),
    ("resnet 4 reduce", 1024, 256, 1, 1, 1, 14),
    ("resnet 5 reduce", 2048, 512, 1, 1, 1, 7),
    ("resnet 3 shortcut s2", 256, 512, 1, 2, 1, 56),
    ("resnet 5 shortcut s2", 1024, 2048, 1, 2, 1, 14),
    ("resnet 5 3x3 s2", 512, 512, 3, 2, 1, 14),
    ("vgg stem", 3, 64, 3, 1, 1, 224),
    ("yolo stem", 3, 32, 3, 2, 1, 320),
    ("yolo 64", 64, 64, 3, 1, 1, 80),
    ("yolo 32", 32, 32, 3, 1, 1, 160),
    ("yolo down s2", 64, 128, 3, 2, 1, 80),
    ("resnext 32 groups", 128, 128, 3, 1, 32, 56),
    ("mobilenet stem", 3, 32, 3, 2, 1, 224),
    ("mobilenet dw 32", 32, 32, 3, 1, 32, 112),
    ("mobilenet dw 96 s2", 96, 96, 3, 2, 96, 112),
    ("mobilenet dw 144", 144, 144, 3, 1, 144, 56),
    ("mobilenet dw 192", 192, 192, 3, 1, 192, 28),
    ("mobilenet dw 384", 384, 384, 3, 1, 384, 14),
    ("mobilenet dw 576", 576, 576, 3, 1, 576, 14),
    ("mobilenet dw 960", 960, 960, 3, 1, 960, 7),
    ("mobilenet expand 24", 24, 144, 1, 1, 1, 56),
    ("mobilenet project 144", 144, 24, 1, 1, 1, 56),
    ("mobilenet expand 96", 96, 576, 1, 1, 1, 14),
    ("mobilenet head", 320, 1280, 1, 1, 1, 7),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |flag: &str| {
        let at = words.iter().position(|word| word.starts_with(flag))?;
        words[at].split_once('=')?.1.parse().ok()
    };
    let (threads, batch) = (number("--threads").unwrap_or(1), number("--batch").unwrap_or(1));
    let is_name = |word: &&String| !word.starts_with('-');
    let wanted: Vec<&String> = words.iter().filter(is_name).collect();
    let pool = ThreadPool::new(threads);
    let isa = Isa::detect();
    let exec = KernelContext { pool: &pool, isa };
    let peak = timing::peak_gflops(isa) * threads as f64;
    println!("{} x {threads}: multiply-add peak {peak:.0} GFLOP/s", isa.name());
    for &(name, cin, cout, kernel, stride, groups, size) in LAYERS {
        let pad = kernel / 2;
        let params = ConvParams {
            stride: [1, stride, stride],
            pads_begin: [0, pad, pad],
            pads_end: [0, pad, pad],
            groups,
            ..ConvParams::new_2d(cin, cout, [kernel, kernel])
        };
        let weights = random(cout * cin / groups * kernel * kernel, 0.01);
        let image = [1, size, size];
        let out = params.output_size(image);
        let x = random(batch * size * size * cin, 0.5);
        let bias = timing::Floats::new(cout, 0.0);
        let mut y = timing::Floats::new(batch * out[1] * out[2] * cout, 0.0);
        let epilogue = GemmEpilogue::bias(&bias).with_activation(ActivationFunction::Relu);
        let chosen = choose(isa, &params, batch, image);
        for algorithm in candidates(isa, &params, batch, image) {
            let title = format!("{name} {}", algorithm.name());
            if !wanted.iter().all(|word| title.contains(word.as_str())) {
                continue;
            }
            let copies = copies(isa, params, &weights, algorithm);
            let turn = Cell::new(0);
            let seconds = timing::best(|| {
                turn.set((turn.get() + 1) % copies.len());
                conv(exec, &copies[turn.get()], &x, batch, image, &mut y, &epilogue);
            });
            let flops = 2.0 * (y.len() * cin / groups * kernel * kernel) as f64;
            let star = if algorithm == chosen { "*" } else { "" };
            timing::report(&format!("{title}{star}"), flops, seconds, peak);
        }
    }
}

/// Returns enough copies of the packed weights to exceed the caches near a core.
fn copies(
    isa: Isa,
    p: ConvParams,
    weights: &[f32],
    algorithm: CpuConvAlgorithm,
) -> Vec<PackedConv> {
    let pack = || PackedConv::pack_with(isa, p, weights, algorithm);
    let first = pack();
    let count = (16 << 20) / first.size_bytes().max(1);
    let mut all = vec![first];
    all.extend((0..count.min(20)).map(|_| pack()));
    all
}

/// Values between plus and minus `most`.
fn random(len: usize, most: f32) -> timing::Floats {
    let mut values = timing::Floats::new(len, 0.0);
    let mut state = 1_u32;
    for value in values.iter_mut() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *value = (f32::from((state >> 16) as u16) / 32_768.0 - 1.0) * most;
    }
    values
}
