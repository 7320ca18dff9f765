//! Times every way to compute attention on a device: one JSON line each.
//!
//! `attention BATCH HEADS QUERIES KEYS WIDTH [f16|f32] [FILTER]`, on the device that `GALATEA_GPU_DEVICE` numbers.
//! Ways are named as they print themselves; FILTER is a part of such a name. Operands lie as layers of encoders
//! leave them: `[batch, position, head, element]`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for measurements")]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "rates")]

use galatea_gpu::attention::{FLASH_CONFIGS, TILES_CONFIGS, Way, whole};
use galatea_gpu::{Device, Shapes, Step, Trial};
use galatea_graph::ops::fused::Attention;
use galatea_tensor::{DataType, f16};

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
    let (batch, heads) = (number(0, 32), number(1, 12));
    let (queries, keys, width) = (number(2, 128), number(3, 128), number(4, 64));
    let dtype = match args.get(5).map(String::as_str) {
        Some("f32") => DataType::Fp32,
        _ => DataType::Fp16,
    };
    let filter = args.get(6).map_or("", String::as_str);
    let index = std::env::var("GALATEA_GPU_DEVICE").map_or(0, |text| text.parse().unwrap());
    let device = Device::open(index).unwrap();

    let order = [0, 2, 1, 3];
    let op = Attention {
        scale: 1.0 / (width as f32).sqrt(),
        q_perm: order,
        k_perm: order,
        v_perm: order,
        out_perm: order,
        masked_to_zero: false,
        causal: false,
    };
    let of = |positions: usize| vec![batch, positions, heads, width];
    let typed = |positions: usize| Some((dtype, of(positions)));
    let shapes = Shapes {
        inputs: vec![typed(queries), typed(keys), typed(keys)],
        outputs: vec![typed(queries)],
        constants: vec![None; 3],
    };
    let bytes = [queries, keys, keys].map(|len| random(of(len).iter().product(), dtype));
    let inputs = bytes.each_ref().map(|bytes| Some(bytes.as_slice()));
    let capabilities = device.capabilities();
    let flash = FLASH_CONFIGS.iter().filter(|config| config.fits(capabilities, [width; 2]));
    let ways = flash.map(|&config| Way::Flash(config));
    let work = 4.0 * (batch * heads * queries * width) as f64 * keys as f64;
    for way in ways.chain(TILES_CONFIGS.iter().map(|&config| Way::Tiles(config))) {
        let name = format!("{way:?}");
        if !name.contains(filter) {
            continue;
        }
        let measured = || -> Result<(f64, f64), String> {
            let mut step = Step::default();
            whole(&device, op.clone(), way).bind(&shapes, &mut step)?;
            let start = std::time::Instant::now();
            let trial = Trial::new(&device, &step, &inputs, &[bytes[0].len() as u64], 1);
            let trial = trial.map_err(|error| error.to_string())?;
            let compiled = start.elapsed().as_secs_f64();
            let once = trial.run(1).map_err(|error| error.to_string())?;
            let times = ((SECONDS * 1e9 / once.max(1.0)) as usize).clamp(1, 2000);
            let mut all = (0..3).map(|_| trial.run(times).map_err(|error| error.to_string()));
            let best = all.try_fold(f64::MAX, |best, time| time.map(|time| best.min(time)))?;
            Ok((best, compiled))
        };
        match measured() {
            Ok((nanoseconds, seconds)) => println!(
                "{{\"batch\":{batch},\"heads\":{heads},\"queries\":{queries},\"keys\":{keys},\"width\":{width},\"dtype\":\"{dtype}\",\"way\":\"{name}\",\"us\":{:.1},\"tflops\":{:.2},\"compile_s\":{seconds:.2}}}",
                nanoseconds / 1e3,
                work / nanoseconds / 1e3,
            ),
            Err(error) => println!("{{\"way\":\"{name}\",\"error\":{error:?}}}"),
        }
    }
}
