//! Times every way to compute attention on a device: one JSON line each.
//!
//! `attention BATCH HEADS QUERIES KEYS WIDTH [f16|f32] [FILTER]`, on the device that `GALATEA_GPU_DEVICE` numbers.
//! Ways are named as they print themselves; FILTER is a part of such a name. Operands lie as layers of encoders
//! leave them: `[batch, position, head, element]`.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a program for measurements")]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "rates")]

mod measuring;

use galatea_gpu::attention::{DenseAttentionMethod, FLASH_CONFIGS, TILES_CONFIGS, whole};
use galatea_gpu::{DispatchStep, StepTrial};
use galatea_graph::ops::fused::FusedAttention;
use galatea_runtime::{NodeShapes, ValueShape};
use galatea_tensor::DataType;
use measuring::{Arguments, best, device, random};

fn main() {
    let args = Arguments::new();
    let number = |at: usize, usual: usize| args.number(at, usual);
    let (batch, heads) = (number(0, 32), number(1, 12));
    let (queries, keys, width) = (number(2, 128), number(3, 128), number(4, 64));
    let dtype = match args.word(5, "f16") {
        "f32" => DataType::Fp32,
        _ => DataType::Fp16,
    };
    let filter = args.word(6, "");
    let device = device();

    let order = [0, 2, 1, 3];
    let op = FusedAttention {
        scale: 1.0 / (width as f32).sqrt(),
        q_perm: order,
        k_perm: order,
        v_perm: order,
        out_perm: order,
        masked_to_zero: false,
        causal: false,
    };
    let of = |positions: usize| vec![batch, positions, heads, width];
    let typed = |positions: usize| Some(ValueShape::new(dtype, of(positions)));
    let shapes = NodeShapes {
        inputs: vec![typed(queries), typed(keys), typed(keys)],
        outputs: vec![typed(queries)],
        constants: vec![None; 3],
    };
    let bytes = [queries, keys, keys].map(|len| random(of(len).iter().product(), dtype));
    let inputs = bytes.each_ref().map(|bytes| Some(bytes.as_slice()));
    let capabilities = device.capabilities();
    let flash = FLASH_CONFIGS.iter().filter(|config| config.fits(capabilities, [width; 2]));
    let ways = flash.map(|&config| DenseAttentionMethod::Flash(config));
    let work = 4.0 * (batch * heads * queries * width) as f64 * keys as f64;
    for way in ways.chain(TILES_CONFIGS.iter().map(|&config| DenseAttentionMethod::Tiles(config))) {
        let name = format!("{way:?}");
        if !name.contains(filter) {
            continue;
        }
        let measured = || -> Result<(f64, f64), String> {
            let mut step = DispatchStep::default();
            whole(&device, op.clone(), way).bind(&shapes, &mut step)?;
            let start = std::time::Instant::now();
            let trial = StepTrial::new(&device, &step, &inputs, &[bytes[0].len() as u64], 1);
            let trial = trial.map_err(|error| error.to_string())?;
            let compiled = start.elapsed().as_secs_f64();
            Ok((best(&trial).map_err(|error| error.to_string())?, compiled))
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
