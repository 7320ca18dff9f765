//! Measures the speed at which a GPU attends over long caches. Prints a line of JSON for each configuration.
//!
//! `decode_attention SEQUENCES CONTEXT [HEADS KV_HEADS WIDTH]`, on the device that `GALATEA_GPU_DEVICE`
//! numbers: one row of each sequence, caches of FP16 in blocks of 16 positions. Take enough sequences that the
//! KV caches exceed the device's hardware caches.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a program for people who measure"
)]

mod measuring;

use galatea_gpu::attention::{PAGED_CONFIGS, PagedSizes, paged};
use galatea_gpu::{DispatchStep, StepTrial};
use galatea_graph::ops::fused::PagedAttention;
use galatea_runtime::{NodeShapes, ValueShape};
use galatea_tensor::DataType::{Fp16, Fp32, Int64};
use measuring::{Arguments, device, middle};

const BLOCK: usize = 16;

fn numbers(all: impl Iterator<Item = usize>) -> Vec<u8> {
    all.flat_map(|number| (number as u64).to_le_bytes()).collect()
}

fn main() {
    let args = Arguments::new();
    let number = |at: usize, usual: usize| args.number(at, usual);
    let (sequences, context) = (number(0, 16), number(1, 8192));
    let (heads, kv_heads, width) = (number(2, 32), number(3, 8), number(4, 128));
    let device = device();
    let most = context.div_ceil(BLOCK);
    let count = sequences * most;
    let op = PagedAttention {
        num_heads: heads,
        kv_num_heads: kv_heads,
        scale: None,
        window: 0,
        softcap: 0.0,
    };
    let (q, kv) = (vec![sequences, heads * width], vec![sequences, kv_heads * width]);
    let keys = vec![count, kv_heads, width, BLOCK];
    let values = vec![count, kv_heads, BLOCK, width];
    let shapes = NodeShapes {
        inputs: vec![
            Some(ValueShape::new(Fp32, q.clone())),
            Some(ValueShape::new(Fp32, kv.clone())),
            Some(ValueShape::new(Fp32, kv)),
            Some(ValueShape::new(Fp16, keys.clone())),
            Some(ValueShape::new(Fp16, values.clone())),
            Some(ValueShape::new(Int64, vec![sequences + 1])),
            Some(ValueShape::new(Int64, vec![sequences])),
            Some(ValueShape::new(Int64, vec![sequences, most])),
        ],
        outputs: vec![
            Some(ValueShape::new(Fp32, q)),
            Some(ValueShape::new(Fp16, keys)),
            Some(ValueShape::new(Fp16, values)),
        ],
        constants: vec![None; 8],
    };
    let (rows, new) =
        (vec![0; sequences * heads * width * 4], vec![0; sequences * kv_heads * width * 4]);
    let starts = numbers(0..=sequences);
    let lengths = numbers((0..sequences).map(|_| context));
    // Neighbours in a sequence are no neighbours in memory.
    let blocks = numbers((0..count).map(|at| at % most * sequences + at / most));
    let inputs = [&rows, &new, &new, &new, &new, &starts, &lengths, &blocks];
    let inputs: Vec<Option<&[u8]>> = inputs.into_iter().map(|bytes| Some(&bytes[..])).collect();
    let cache_bytes = (count * kv_heads * width * BLOCK * 2) as u64;
    let outputs = [(sequences * heads * width * 4) as u64, cache_bytes, cache_bytes];
    let sizes = PagedSizes { shared_heads: heads / kv_heads, key_width: width, value_width: width };
    for config in PAGED_CONFIGS.iter().filter(|c| c.fits(device.capabilities(), &sizes)) {
        let mut step = DispatchStep::default();
        paged(&device, op, *config).bind(&shapes, &mut step).expect("a bound kernel");
        let trial = StepTrial::new(&device, &step, &inputs, &outputs, 1);
        match trial.and_then(|trial| middle(&trial, 4)) {
            Ok(ns) => println!(
                "{{\"sequences\":{sequences},\"context\":{context},\"us\":{:.1},\"gb_s\":{:.0},\"config\":\"{config:?}\"}}",
                ns / 1e3,
                (2 * cache_bytes) as f64 / ns
            ),
            Err(error) => println!("{{\"config\":\"{config:?}\",\"error\":\"{error}\"}}"),
        }
    }
}
