//! Attention, softmax, norms and activations of transformers: GFLOP/s or GB/s.
//!
//! `cargo bench -p galatea-kernels --bench transformer [-- THREADS]`

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod timing;

use galatea_kernels::attention::{
    AttentionRows, AttentionSizes, HeadRows, HeadStrides, VisibleKeys, attention,
};
use galatea_kernels::elementwise::{BinaryFunction, OperandBroadcast, activate_inplace, binary};
use galatea_kernels::norm::{NormKind, RowNormalization, SkipConnection, normalize};
use galatea_kernels::permute::transpose;
use galatea_kernels::softmax::{SoftmaxForm, softmax_inplace};
use galatea_kernels::{ActivationFunction, Isa, KernelContext, ThreadPool};

fn main() {
    let threads = timing::threads();
    let pool = ThreadPool::new(threads);
    let isa = Isa::detect();
    let exec = KernelContext { pool: &pool, isa };
    let peak = timing::peak_gflops(isa) * threads as f64;
    println!("{} x {threads}: multiply-add peak {peak:.0} GFLOP/s", isa.name());
    let shapes = [
        (12, 128, 64, VisibleKeys::All),
        (12, 128, 32, VisibleKeys::All),
        (12, 512, 64, VisibleKeys::All),
        (4, 2048, 64, VisibleKeys::All),
        (4, 2048, 64, VisibleKeys::Causal),
        (2, 2048, 128, VisibleKeys::All),
        (12, 1, 64, VisibleKeys::All),
    ];
    for (heads, rows, size, sight) in shapes {
        let keys = rows.max(128);
        let a = AttentionSizes {
            batch: 1,
            heads,
            kv_heads: heads,
            queries: rows,
            keys,
            head_size: size,
            value_size: size,
            scale: 0.125,
            sight,
        };
        let data = timing::Floats::new(heads * keys * size, 0.1);
        let x =
            |rows| HeadRows { data: &data, strides: HeadStrides::rows_first(heads, rows, size) };
        let mut y = timing::Floats::new(heads * rows * size, 0.0);
        let out = HeadStrides::rows_first(heads, rows, size);
        let seconds = timing::best(|| {
            let x = AttentionRows { q: x(rows), k: x(keys), v: x(keys) };
            attention(exec, &a, x, None, &mut y, out);
        });
        // A causal query sees half of the keys on average.
        let share = if sight == VisibleKeys::Causal { 0.5 } else { 1.0 };
        let flops = 4.0 * share * (heads * rows * keys * size) as f64;
        let name = format!("attention {heads}x{rows}x{keys}x{size} {sight:?}");
        timing::report(&name, flops, seconds, peak);
    }
    let len = 128 * 3072;
    let source = timing::Floats::new(len, 0.3);
    let bytes = (len * 8) as f64;
    let mut x = timing::Floats::new(len, 0.3);
    let activations = [
        ("relu", ActivationFunction::Relu),
        ("gelu", ActivationFunction::Gelu),
        ("gelu tanh", ActivationFunction::GeluTanh),
        ("sigmoid", ActivationFunction::Sigmoid),
        ("tanh", ActivationFunction::Tanh),
    ];
    for (name, activation) in activations {
        let seconds = timing::best(|| activate_inplace(exec, activation, &mut x));
        timing::report_bytes(name, bytes, seconds);
    }
    let seconds = timing::best(|| softmax_inplace(exec, SoftmaxForm::Softmax, &mut x, 128, None));
    timing::report_bytes("softmax rows of 128", bytes, seconds);
    let mut y = timing::Floats::new(len, 0.0);
    let (scale, bias) = (timing::Floats::new(768, 1.0), timing::Floats::new(768, 0.0));
    let norm = RowNormalization {
        kind: NormKind::Layer,
        scale: Some(&scale),
        bias: Some(&bias),
        epsilon: 1e-5,
    };
    let seconds =
        timing::best(|| normalize(exec, norm, &source, 768, SkipConnection::default(), &mut y));
    timing::report_bytes("layer norm rows of 768", bytes, seconds);
    let seconds = timing::best(|| {
        binary(exec, BinaryFunction::Add, &source, &x, OperandBroadcast::Same, &mut y)
    });
    timing::report_bytes("add", bytes * 1.5, seconds);
    let seconds = timing::best(|| transpose(exec, &source, 1, 128, 3072, &mut y));
    timing::report_bytes("transpose 128x3072", bytes, seconds);
}
