//! Times every variant of a matrix product on a device: one JSON line each.
//!
//! `matmul M N K [f32|f16] [nn|nt|tn|tt] [FILTER] [STACK] [SHARES]`, on the device that `GALATEA_GPU_DEVICE` numbers.
//! Variants are named as they print themselves; FILTER is a part of such a name. SHARES workgroups share a tile.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a program for measurements"
)]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "rates")]

mod measuring;

use galatea_gpu::StepTrial;
use galatea_gpu::matmul::{MatMulVariant, TransposedOperands};
use galatea_runtime::{NodeShapes, ValueShape};
use galatea_tensor::DataType;
use measuring::{Arguments, best, device, random};

/// Bytes of operands that do not fit into a cache.
const ROTATED: usize = 256 << 20;

fn main() {
    let args = Arguments::new();
    let number = |at: usize, usual: usize| args.number(at, usual);
    let (m, n, k) = (number(0, 1024), number(1, 1024), number(2, 1024));
    let dtype = match args.word(3, "f32") {
        "f16" => DataType::Fp16,
        _ => DataType::Fp32,
    };
    let order = args.word(4, "nn");
    let turns =
        TransposedOperands { a: order.starts_with('t'), b: order.ends_with('t'), halves: false };
    let filter = args.word(5, "");
    let stack = number(6, 1);
    let device = device();

    let of = |rows: usize, columns: usize, turned: bool| match turned {
        true => vec![stack, columns, rows],
        false => vec![stack, rows, columns],
    };
    let shapes = NodeShapes {
        inputs: vec![
            Some(ValueShape::new(dtype, of(m, k, turns.a))),
            Some(ValueShape::new(dtype, of(k, n, turns.b))),
        ],
        outputs: vec![Some(ValueShape::new(dtype, vec![stack, m, n]))],
        constants: vec![None, None],
    };
    let (a, b) = (random(stack * m * k, dtype), random(stack * k * n, dtype));
    let inputs = [Some(a.as_slice()), Some(b.as_slice())];
    let output_bytes = (stack * m * n * dtype.size_bytes().unwrap()) as u64;
    let copies = (ROTATED / (a.len() + b.len())).clamp(1, 8);
    let chosen = MatMulVariant::chosen(&shapes, turns, device.capabilities()).unwrap();
    let mut variants = vec![chosen];
    variants.extend(MatMulVariant::few(&shapes, turns, device.capabilities()).unwrap());
    let all = MatMulVariant::all(device.capabilities());
    variants.extend(all.into_iter().map(|variant| variant.shared(number(7, 1))));
    for (at, variant) in variants.into_iter().enumerate() {
        let name = format!("{variant:?}");
        if !name.contains(filter) {
            continue;
        }
        let measured = || -> Result<(f64, f64), String> {
            let step = variant.step(&shapes, turns, device.capabilities())?;
            let start = std::time::Instant::now();
            let trial = StepTrial::new(&device, &step, &inputs, &[output_bytes], copies);
            let trial = trial.map_err(|error| error.to_string())?;
            let compiled = start.elapsed().as_secs_f64();
            Ok((best(&trial).map_err(|error| error.to_string())?, compiled))
        };
        let chosen = at == 0;
        match measured() {
            Ok((nanoseconds, seconds)) => {
                let work = 2.0 * (stack * m * n) as f64 * k as f64;
                let bytes = (a.len() + b.len()) as f64 + output_bytes as f64;
                println!(
                    "{{\"m\":{m},\"n\":{n},\"k\":{k},\"stack\":{stack},\"dtype\":\"{dtype}\",\"order\":\"{order}\",\"variant\":\"{name}\",\"chosen\":{chosen},\"us\":{:.1},\"tflops\":{:.2},\"gbps\":{:.0},\"compile_s\":{seconds:.2}}}",
                    nanoseconds / 1e3,
                    work / nanoseconds / 1e3,
                    bytes / nanoseconds,
                );
            }
            Err(error) => println!("{{\"variant\":\"{name}\",\"error\":{error:?}}}"),
        }
    }
}
