//! Times every variant of a matrix product on a device: one JSON line each.
//!
//! `matmul M N K [f32|f16] [nn|nt|tn|tt] [FILTER] [STACK] [SHARES]`, on the device that `GALATEA_GPU_DEVICE` numbers.
//! Variants are named as they print themselves; FILTER is a part of such a name. SHARES workgroups share a tile.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for measurements")]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "rates")]

use galatea_gpu::matmul::{Turns, Variant};
use galatea_gpu::{Device, Shapes, Trial};
use galatea_tensor::{DataType, f16};

/// Bytes of operands that do not fit into a cache.
const ROTATED: usize = 256 << 20;
/// Seconds that a measurement is to take, about.
const SECONDS: f64 = 0.2;

fn random(count: usize, dtype: DataType) -> Vec<u8> {
    let mut state = 0x2545_f491_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from((state >> 16) as u16) / 32_768.0 - 1.0
    };
    match dtype {
        DataType::Fp16 => (0..count).flat_map(|_| f16::from_f32(next()).to_le_bytes()).collect(),
        _ => (0..count).flat_map(|_| next().to_le_bytes()).collect(),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: usize| args.get(at).map_or(usual, |text| text.parse().unwrap());
    let (m, n, k) = (number(0, 1024), number(1, 1024), number(2, 1024));
    let dtype = match args.get(3).map(String::as_str) {
        Some("f16") => DataType::Fp16,
        _ => DataType::Fp32,
    };
    let order = args.get(4).map_or("nn", String::as_str);
    let turns = Turns { a: order.starts_with('t'), b: order.ends_with('t'), halves: false };
    let filter = args.get(5).map_or("", String::as_str);
    let stack = number(6, 1);
    let index = std::env::var("GALATEA_GPU_DEVICE").map_or(0, |text| text.parse().unwrap());
    let device = Device::open(index).unwrap();

    let of = |rows: usize, columns: usize, turned: bool| match turned {
        true => vec![stack, columns, rows],
        false => vec![stack, rows, columns],
    };
    let shapes = Shapes {
        inputs: vec![Some((dtype, of(m, k, turns.a))), Some((dtype, of(k, n, turns.b)))],
        outputs: vec![Some((dtype, vec![stack, m, n]))],
        constants: vec![None, None],
    };
    let (a, b) = (random(stack * m * k, dtype), random(stack * k * n, dtype));
    let inputs = [Some(a.as_slice()), Some(b.as_slice())];
    let output_bytes = (stack * m * n * dtype.size_bytes().unwrap()) as u64;
    let copies = (ROTATED / (a.len() + b.len())).clamp(1, 8);
    let chosen = Variant::chosen(&shapes, turns, device.capabilities()).unwrap();
    let mut variants = vec![chosen];
    variants.extend(Variant::few(&shapes, turns, device.capabilities()).unwrap());
    let all = Variant::all(device.capabilities());
    variants.extend(all.into_iter().map(|variant| variant.shared(number(7, 1))));
    for (at, variant) in variants.into_iter().enumerate() {
        let name = format!("{variant:?}");
        if !name.contains(filter) {
            continue;
        }
        let measured = || -> Result<(f64, f64), String> {
            let step = variant.step(&shapes, turns, device.capabilities())?;
            let start = std::time::Instant::now();
            let trial = Trial::new(&device, &step, &inputs, &[output_bytes], copies);
            let trial = trial.map_err(|error| error.to_string())?;
            let compiled = start.elapsed().as_secs_f64();
            let once = trial.run(1).map_err(|error| error.to_string())?;
            let times = ((SECONDS * 1e9 / once.max(1.0)) as usize).clamp(1, 2000);
            let mut all = (0..3).map(|_| trial.run(times).map_err(|error| error.to_string()));
            let best = all.try_fold(f64::MAX, |best, time| time.map(|time| best.min(time)))?;
            Ok((best, compiled))
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
