//! Measures the speed at which a GPU multiplies rows with quantized matrices. Prints a line of JSON for each
//! configuration.
//!
//! `gemv FORMAT OUTPUTS INPUTS ROWS [gated]`, on the device that `GALATEA_GPU_DEVICE` numbers. The format is a
//! name such as `q4_0`, `q4_k`, `mlx4` or `f16`. Copies of the matrix that together are larger than caches are
//! multiplied one after the other.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a program for people who measure"
)]

#[path = "../tests/support/matrices.rs"]
mod matrices;
mod measuring;

use std::sync::Arc;

use galatea_gpu::blocks::{self, BlockKernelChoice, BlockProducts, GEMV_CONFIGS, TILED_CONFIGS};
use galatea_gpu::{DispatchStep, GpuDevice, GpuKernel, StepTrial};
use galatea_graph::blocks::BlockWeights;
use galatea_graph::ops::fused::{BlockMatMul, FusedActivation};
use galatea_runtime::Precision;
use galatea_runtime::{NodeShapes, ValueShape};
use galatea_tensor::DataType;
use matrices::{Made, formats};
use measuring::{Arguments, device, middle};

/// Bytes that no cache holds.
const ALL_BYTES: u64 = 384 << 20;

fn kernels(
    device: &Arc<GpuDevice>,
    op: &dyn Fn(u64) -> BlockMatMul,
    copies: u64,
    choice: BlockKernelChoice,
) -> Vec<BlockProducts> {
    // Kernels share a matrix that is the same.
    let one = |seed| blocks::kernel(device, &op(seed), Precision::Fp16, choice);
    (0..copies).map(one).collect::<Result<_, String>>().expect("a kernel")
}

fn main() {
    let args = Arguments::new();
    let number = |at: usize, usual: usize| args.number(at, usual);
    let wanted = args.word(0, "q4_0");
    let (n, k, m) = (number(1, 4096), number(2, 4096), number(3, 1));
    let device = device();
    let gated = args.has("gated");
    let found = formats().into_iter().find(|(name, ..)| *name == wanted);
    let (_, format, scales) = found.expect("a known format");
    let op = |seed: u64| {
        let made = |seed| -> Arc<dyn BlockWeights> {
            Arc::new(Made { rows: n, columns: k, format, scales, seed, at: None })
        };
        let op = match gated {
            true => BlockMatMul::gated([made(seed), made(seed)], FusedActivation::Silu).unwrap(),
            false => BlockMatMul::new(vec![made(seed)]).unwrap(),
        };
        op.with_rounded_rows(true)
    };
    let capabilities = device.capabilities();
    let first = kernels(&device, &op, 1, BlockKernelChoice::default());
    let bytes = first[0].weight_bytes();
    let copies = ALL_BYTES.div_ceil(bytes).clamp(2, 64);
    // Kernels of all configurations have the same weights: only the choice differs.
    let all = kernels(&device, &op, copies, BlockKernelChoice::default());
    let x = vec![0_u8; m * k * 4];
    let shapes = NodeShapes {
        inputs: vec![Some(ValueShape::new(DataType::Fp32, vec![m, k]))],
        outputs: vec![Some(ValueShape::new(DataType::Fp32, vec![m, n]))],
        constants: vec![None],
    };
    let mut choices = vec![BlockKernelChoice::default()];
    // Few rows never need workgroups that take more, and many take long.
    let valid = GEMV_CONFIGS
        .iter()
        .filter(|config| m <= 64 && (config.most == 8 || m >= 4) && config.is_valid(capabilities));
    choices.extend(valid.map(|&config| BlockKernelChoice {
        gemv: Some(config),
        many: Some(usize::MAX),
        ..BlockKernelChoice::default()
    }));
    let valid = TILED_CONFIGS.iter().filter(|config| m > 4 && config.is_valid(capabilities));
    choices.extend(valid.map(|&config| BlockKernelChoice {
        tiled: Some(config),
        many: Some(0),
        ..BlockKernelChoice::default()
    }));
    for choice in choices {
        let bound = all.iter().map(|kernel| {
            let mut step = DispatchStep::default();
            kernel.bind_as(&shapes, &mut step, choice).map(|()| step)
        });
        let steps = bound.collect::<Result<Vec<DispatchStep>, String>>().expect("bound kernels");
        let steps: Vec<&DispatchStep> = steps.iter().collect();
        let trial = StepTrial::of_steps(&device, &steps, &[Some(&x)], &[(m * n * 4) as u64]);
        let found = trial.and_then(|trial| middle(&trial, all.len()));
        let config = format!("{choice:?}");
        match found {
            Ok(ns) => {
                println!(
                    "{{\"format\":\"{wanted}\",\"n\":{n},\"k\":{k},\"m\":{m},\"gated\":{gated},\"copies\":{copies},\"bytes\":{bytes},\"us\":{:.2},\"gb_s\":{:.0},\"gflops\":{:.0},\"config\":\"{config}\"}}",
                    ns / 1e3,
                    bytes as f64 / ns,
                    2.0 * (m * n * k) as f64 * if gated { 2.0 } else { 1.0 } / ns,
                );
            }
            Err(error) => println!("{{\"config\":\"{config}\",\"error\":{:?}}}", error.to_string()),
        }
    }
}
