//! Blocks of MobileNetV2 one convolution after the other and in bands: microseconds, GFLOP/s and
//! share of the multiply-add peak.
//!
//! `cargo bench -p galatea-kernels --bench chain [-- --threads=N --batch=N NAME]`

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod timing;

use galatea_kernels::conv::{
    ChainLink, ConvChainSpec, ConvParams, CpuConvAlgorithm, PackedConv, conv, conv_chain,
};
use galatea_kernels::{ActivationFunction, GemmEpilogue, Isa, KernelContext, ThreadPool};

/// Name, channels of image, wide image and result, stride, image size. A block of 3 channels begins
/// with the model's first convolution, one of 0 with the depthwise one.
type Block = (&'static str, usize, usize, usize, usize, usize);

const BLOCKS: &[Block] = &[
    ("stem", 3, 32, 16, 1, 224),
    ("block 1", 0, 32, 16, 1, 112),
    ("block 2 s2", 16, 96, 24, 2, 112),
    ("block 3", 24, 144, 24, 1, 56),
    ("block 4 s2", 24, 144, 32, 2, 56),
    ("block 5", 32, 192, 32, 1, 28),
    ("block 7 s2", 32, 192, 64, 2, 28),
    ("block 8", 64, 384, 64, 1, 14),
    ("block 11", 64, 384, 96, 1, 14),
    ("block 12", 96, 576, 96, 1, 14),
    ("block 14 s2", 96, 576, 160, 2, 14),
    ("block 15", 160, 960, 160, 1, 7),
    ("block 17", 160, 960, 320, 1, 7),
];

/// A convolution with what follows it.
struct Part {
    packed: PackedConv,
    bias: timing::Floats,
    activation: ActivationFunction,
}

impl Part {
    fn new(isa: Isa, params: ConvParams, activation: ActivationFunction) -> Self {
        let cin = params.in_channels / params.groups;
        let count = params.out_channels * cin * params.kernel.iter().product::<usize>();
        let weights: Vec<f32> = (0..count).map(|i| (i % 17) as f32 * 0.01 - 0.08).collect();
        let algorithm = if params.kernel == [1; 3] {
            CpuConvAlgorithm::Packed
        } else {
            CpuConvAlgorithm::for_any_size(&params)
        };
        let packed = PackedConv::pack_with(isa, params, &weights, algorithm);
        Self { packed, bias: timing::Floats::new(params.out_channels, 0.1), activation }
    }

    fn link(&self) -> ChainLink<'_> {
        let epilogue = GemmEpilogue::bias(&self.bias).with_activation(self.activation);
        ChainLink { packed: &self.packed, epilogue }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |flag: &str| {
        let at = words.iter().position(|word| word.starts_with(flag))?;
        words[at].split_once('=')?.1.parse().ok()
    };
    let (threads, batch) = (number("--threads").unwrap_or(1), number("--batch").unwrap_or(1));
    let wanted: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let pool = ThreadPool::new(threads);
    let isa = Isa::detect();
    let exec = KernelContext { pool: &pool, isa };
    let peak = timing::peak_gflops(isa) * threads as f64;
    println!("{} x {threads}: multiply-add peak {peak:.0} GFLOP/s", isa.name());
    for block in BLOCKS {
        if wanted.iter().all(|word| block.0.contains(word.as_str())) {
            time(exec, block, batch, peak);
        }
    }
}

fn time(
    exec: KernelContext<'_>,
    &(name, cin, wide, cout, stride, size): &Block,
    batch: usize,
    peak: f64,
) {
    let clip = ActivationFunction::Clip { min: 0.0, max: 6.0 };
    let padded = |params: ConvParams, stride| ConvParams {
        stride: [1, stride, stride],
        pads_begin: [0, 1, 1],
        pads_end: [0, 1, 1],
        ..params
    };
    let dense = |cin, cout| ConvParams::new_2d(cin, cout, [1, 1]);
    let first = match cin {
        0 => None,
        3 => Some(padded(ConvParams::new_2d(3, wide, [3, 3]), 2)),
        _ => Some(dense(cin, wide)),
    };
    let filter = ConvParams { groups: wide, ..ConvParams::new_2d(wide, wide, [3, 3]) };
    let first = first.map(|params| Part::new(exec.isa, params, clip));
    let filter = Part::new(exec.isa, padded(filter, stride), clip);
    let last = Part::new(exec.isa, dense(wide, cout), ActivationFunction::None);
    let size = [1, size, size];
    let parts: Vec<&Part> = first.iter().chain([&filter, &last]).collect();
    let channels = parts[0].packed.params().in_channels;
    let mut values = vec![timing::Floats::new(batch * size[1] * size[2] * channels, 0.5)];
    let (mut at, mut flops, mut sizes) = (size, 0, Vec::new());
    for part in &parts {
        let p = part.packed.params();
        sizes.push(at);
        at = p.output_size(at);
        let count = batch * at[1] * at[2] * p.out_channels;
        flops += 2 * count * p.in_channels / p.groups * p.kernel[1] * p.kernel[2];
        values.push(timing::Floats::new(count, 0.0));
    }
    let mut each = vec![f64::INFINITY; parts.len()];
    let mut together = f64::INFINITY;
    let chain = ConvChainSpec {
        first: first.as_ref().map(Part::link),
        depthwise: filter.link(),
        last: Some(last.link()),
    };
    let mut y = timing::Floats::new(values[parts.len()].len(), 0.0);
    for _ in 0..40 {
        for (i, part) in parts.iter().enumerate() {
            let (x, y) = values.split_at_mut(i + 1);
            let epilogue = part.link().epilogue;
            let start = std::time::Instant::now();
            conv(exec, &part.packed, &x[i], batch, sizes[i], &mut y[0], &epilogue);
            each[i] = each[i].min(start.elapsed().as_secs_f64());
        }
        let start = std::time::Instant::now();
        conv_chain(exec, &chain, &values[0], batch, size, &mut y);
        together = together.min(start.elapsed().as_secs_f64());
    }
    let micros: Vec<String> = each.iter().map(|time| format!("{:.0}", time * 1e6)).collect();
    let flops = flops as f64;
    timing::report(&format!("{name} apart {}", micros.join(" + ")), flops, each.iter().sum(), peak);
    timing::report(&format!("{name} in bands"), flops, together, peak);
}
