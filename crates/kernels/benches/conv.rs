//! Convolutions of ResNet-50 and MobileNetV2 at batch 1: GFLOP/s and share of the peak.
//!
//! `cargo bench -p galatea-kernels --bench conv [-- THREADS]`

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod timing;

use galatea_kernels::conv::{ConvParams, PackedConv, conv};
use galatea_kernels::{Activation, Epilogue, Exec, Isa, ThreadPool};

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
    ("resnet 5 shortcut s2", 1024, 2048, 1, 2, 1, 14),
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
    let threads = timing::threads();
    let pool = ThreadPool::new(threads);
    let isa = Isa::detect();
    let exec = Exec { pool: &pool, isa };
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
        let weights = timing::Floats::new(cout * cin / groups * kernel * kernel, 0.01);
        let packed = PackedConv::pack(isa, params, &weights);
        let out = params.output_size([1, size, size]);
        let x = timing::Floats::new(size * size * cin, 0.5);
        let bias = timing::Floats::new(cout, 0.0);
        let mut y = timing::Floats::new(out[1] * out[2] * cout, 0.0);
        let epilogue = Epilogue::bias(&bias).with_activation(Activation::Relu);
        let seconds = timing::best(|| {
            conv(exec, &packed, &x, 1, [1, size, size], &mut y, &epilogue);
        });
        let flops = 2.0 * (y.len() * cin / groups * kernel * kernel) as f64;
        timing::report(name, flops, seconds, peak);
    }
}
