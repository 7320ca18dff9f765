//! How fast a GPU multiplies rows with matrices of few bits: a line of JSON for each configuration.
//!
//! `gemv FORMAT OUTPUTS INPUTS ROWS [DEVICE] [gated]`, where the format is a name such as `q4_0`, `q4_k`, `mlx4`
//! or `f16`. Copies of the matrix that together are larger than caches are multiplied one after the other.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a program for people who measure"
)]

#[path = "../tests/support/matrices.rs"]
mod matrices;

use std::sync::Arc;

use galatea_gpu::blocks::{self, BlockProducts, Choice, GEMV_CONFIGS};
use galatea_gpu::measure::{Job, times};
use galatea_gpu::{Block, Device, Kernel, Shapes, Step};
use galatea_graph::blocks::BlockWeights;
use galatea_graph::ops::fused::{BlockMatMul, FusedActivation};
use galatea_tensor::DataType;
use matrices::{Made, formats};

/// Bytes that no cache holds.
const ALL_BYTES: usize = 384 << 20;
const RUNS: usize = 12;

fn kernels(
    device: &Arc<Device>,
    op: &BlockMatMul,
    copies: usize,
    choice: Choice,
) -> Vec<BlockProducts> {
    let one = |_| blocks::kernel(device, op, choice);
    (0..copies).map(one).collect::<Result<_, String>>().expect("a kernel")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| {
        arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let wanted = arguments.first().map_or("q4_0", String::as_str);
    let (n, k, m) = (number(1, 4096), number(2, 4096), number(3, 1));
    let device = Device::open(number(4, 0)).expect("a device");
    let gated = arguments.iter().any(|text| text == "gated");
    let found = formats().into_iter().find(|(name, ..)| *name == wanted);
    let (_, format, scales) = found.expect("a known format");
    let made: Arc<dyn BlockWeights> =
        Arc::new(Made { rows: n, columns: k, format, scales, seed: 7 });
    let op = if gated {
        BlockMatMul::gated([Arc::clone(&made), made], FusedActivation::Silu).unwrap()
    } else {
        BlockMatMul::new(vec![made]).unwrap()
    };
    let capabilities = device.capabilities();
    let first = kernels(&device, &op, 1, Choice::default());
    let bytes = first[0].weight_bytes();
    let copies = ALL_BYTES.div_ceil(usize::try_from(bytes).unwrap()).clamp(2, 64);
    // Kernels of all configurations have the same weights: only the choice differs.
    let all = kernels(&device, &op, copies, Choice::default());
    let x = Arc::new(Block::new(&device, (m * k * 4) as u64).unwrap());
    let y = Arc::new(Block::new(&device, (m * n * 4) as u64).unwrap());
    let shapes = Shapes {
        inputs: vec![Some((DataType::Fp32, vec![m, k]))],
        outputs: vec![Some((DataType::Fp32, vec![m, n]))],
        constants: vec![None],
    };
    let mut choices = vec![Choice::default()];
    let valid = GEMV_CONFIGS.iter().filter(|config| config.is_valid(capabilities));
    choices.extend(valid.map(|&config| Choice { gemv: Some(config) }));
    for choice in choices {
        let jobs: Vec<Job> = all
            .iter()
            .map(|kernel| {
                let mut step = Step::default();
                kernel.bind_as(&shapes, &mut step, choice).unwrap();
                Job { step, inputs: vec![Arc::clone(&x)], outputs: vec![Arc::clone(&y)] }
            })
            .collect();
        let found = times(&device, &jobs, RUNS).map(|mut all| {
            all.sort_by(|a, b| {
                a.device_ns.unwrap_or(a.wall_ns).total_cmp(&b.device_ns.unwrap_or(b.wall_ns))
            });
            all[RUNS / 2]
        });
        let config = format!("{choice:?}");
        match found {
            Ok(found) => {
                let ns = found.device_ns.unwrap_or(found.wall_ns) / copies as f64;
                println!(
                    "{{\"format\":\"{wanted}\",\"n\":{n},\"k\":{k},\"m\":{m},\"gated\":{gated},\"copies\":{copies},\"bytes\":{bytes},\"us\":{:.2},\"wall_us\":{:.2},\"gb_s\":{:.0},\"gflops\":{:.0},\"config\":\"{config}\"}}",
                    ns / 1e3,
                    found.wall_ns / 1e3 / copies as f64,
                    bytes as f64 / ns,
                    2.0 * (m * n * k) as f64 * if gated { 2.0 } else { 1.0 } / ns,
                );
            }
            Err(error) => println!("{{\"config\":\"{config}\",\"error\":{:?}}}", error.to_string()),
        }
    }
}
