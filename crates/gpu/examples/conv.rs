//! Times every way to compute a convolution on a device: one JSON line each.
//!
//! `conv N C H W M R [STRIDE] [f32|f16] [FILTER] [GROUP] [nchw|nhwc|back] [tiles]`, on the device that `GALATEA_GPU_DEVICE` numbers: `M`
//! windows of `R × R`, with pads that keep the image's lengths where the stride is 1. Ways are named as they print
//! themselves; FILTER is a part of such a name. The line with `"chosen":true` is the way that is taken unasked;
//! With `back`, images grow: a transposed convolution with as many channels in and out as said.
//! `estimate_us` is what that choice goes by. With `tiles`, plain products are computed by every tile and share. Rates count the arithmetic of plain windows, whatever a way saves.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for measurements")]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "rates")]
#![allow(clippy::cast_sign_loss, reason = "a count")]

use std::sync::Arc;

use galatea_gpu::conv::{ConvAlgorithm, GpuConvKernel};
use galatea_gpu::matmul::MatMulVariant;
use galatea_gpu::{DispatchStep, GpuDevice, GpuKernel, StepTrial};
use galatea_graph::ops::convolution::{Conv, ConvTranspose, FusedConv, WindowPadding};
use galatea_graph::ops::fused::FusedActivation;
use galatea_runtime::Precision;
use galatea_runtime::{NodeShapes, ValueShape};
use galatea_tensor::{DataType, Tensor, f16};

/// Bytes of images that do not fit into a cache.
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

/// A convolution and an image.
struct Subject {
    device: Arc<GpuDevice>,
    conv: FusedConv,
    back: Option<ConvTranspose>,
    weights: Tensor,
    shapes: NodeShapes,
    precision: Precision,
}

impl Subject {
    fn new(args: &[String]) -> Self {
        let number =
            |at: usize, usual: usize| args.get(at).map_or(usual, |text| text.parse().unwrap());
        let [n, c, h, w] = [number(0, 1), number(1, 64), number(2, 56), number(3, 56)];
        let (m, r, stride, group) = (number(4, 64), number(5, 3), number(6, 1), number(9, 1));
        let half = args.get(7).is_some_and(|text| text == "f16");
        let channels_last = args.get(10).is_some_and(|text| text == "nhwc");
        let (dtype, precision) = match half {
            true => (DataType::Fp16, Precision::Fp16),
            false => (DataType::Fp32, Precision::Fp32),
        };
        let conv = Conv {
            group,
            strides: vec![stride; 2],
            dilations: vec![1; 2],
            pads: WindowPadding::Explicit(vec![r / 2; 4]),
            kernel_shape: None,
            channels_last,
        };
        let conv = FusedConv { conv, activation: FusedActivation::None };
        let grows = args.get(10).is_some_and(|text| text == "back");
        let back = grows.then(|| ConvTranspose {
            kernel_shape: None,
            strides: vec![stride; 2],
            dilations: vec![1; 2],
            pads: WindowPadding::Explicit(vec![r / 2; 4]),
            output_padding: Vec::new(),
            output_shape: None,
            group,
        });
        let [oh, ow] = [h, w].map(|len| match grows {
            true => (len - 1) * stride + r - r / 2 * 2,
            false => (len + r / 2 * 2 - r) / stride + 1,
        });
        let image = |c, h, w| if channels_last { vec![n, h, w, c] } else { vec![n, c, h, w] };
        let windows = if grows { vec![c, m / group, r, r] } else { vec![m, c / group, r, r] };
        let bytes = random(windows.iter().product(), dtype);
        let weights = Tensor::from_bytes(dtype, &windows, &bytes).unwrap();
        let shapes = NodeShapes {
            inputs: vec![
                Some(ValueShape::new(dtype, image(c, h, w))),
                Some(ValueShape::new(dtype, windows)),
            ],
            outputs: vec![Some(ValueShape::new(dtype, image(m, oh, ow)))],
            constants: vec![None, Some(weights.clone())],
        };
        let index = std::env::var("GALATEA_GPU_DEVICE").map_or(0, |text| text.parse().unwrap());
        Self { device: GpuDevice::open(index).unwrap(), conv, back, weights, shapes, precision }
    }

    /// Returns the kernels for the plain matrix multiplications of an algorithm: the chosen one, and all if
    /// `every` is set.
    fn tiles(&self, way: ConvAlgorithm, every: bool) -> Vec<Option<MatMulVariant>> {
        let plain =
            matches!(way, ConvAlgorithm::Product | ConvAlgorithm::Windows | ConvAlgorithm::Columns);
        let all = if every && plain {
            MatMulVariant::all(self.device.capabilities())
        } else {
            Vec::new()
        };
        let shared = |one: MatMulVariant| [1, 2, 4, 8].map(|shares| Some(one.shared(shares)));
        std::iter::once(None).chain(all.into_iter().flat_map(shared)).collect()
    }

    fn kernel(&self) -> GpuConvKernel {
        let (weights, device) = (&self.weights, &self.device);
        match &self.back {
            Some(back) => GpuConvKernel::transposed(back, weights, device, self.precision),
            None => GpuConvKernel::new(&self.conv, weights, device, self.precision),
        }
    }

    /// Nanoseconds, and seconds until shaders were compiled.
    fn measured(
        &self,
        way: ConvAlgorithm,
        by: Option<MatMulVariant>,
    ) -> Result<(f64, f64), String> {
        let mut step = DispatchStep::default();
        let kernel = self.kernel().forcing(way);
        let kernel = by.into_iter().fold(kernel, GpuConvKernel::by);
        kernel.bind(&self.shapes, &mut step)?;
        let bytes = |slot: &Option<ValueShape>| {
            let ValueShape { dtype, shape } = slot.as_ref().unwrap();
            shape.iter().product::<usize>() * dtype.size_bytes().unwrap()
        };
        let dtype = self.shapes.dtype(0)?;
        let x = random(self.shapes.input(0)?.iter().product(), dtype);
        let weights = self.weights.as_bytes().map_err(|error| error.to_string())?;
        let inputs = [Some(x.as_slice()), Some(weights)];
        let outputs = [bytes(&self.shapes.outputs[0]) as u64];
        let copies = (ROTATED / x.len().max(1)).clamp(1, 8);
        let start = std::time::Instant::now();
        let trial = StepTrial::new(&self.device, &step, &inputs, &outputs, copies);
        let trial = trial.map_err(|error| error.to_string())?;
        let compiled = start.elapsed().as_secs_f64();
        let once = trial.run(1).map_err(|error| error.to_string())?;
        let times = ((SECONDS * 1e9 / once.max(1.0)) as usize).clamp(1, 2000);
        let mut all = (0..3).map(|_| trial.run(times).map_err(|error| error.to_string()));
        let best = all.try_fold(f64::MAX, |best, time| time.map(|time| best.min(time)))?;
        Ok((best, compiled))
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let filter = args.get(8).map_or("", String::as_str);
    let subject = Subject::new(&args);
    let shape = |of: &[usize]| of.iter().product::<usize>() as f64;
    let windows = subject.shapes.input(1).unwrap();
    let seen =
        if subject.back.is_some() { subject.shapes.input(0) } else { subject.shapes.output(0) };
    let operations = 2.0 * shape(seen.unwrap()) * shape(&windows[1..]);
    let operands = [subject.shapes.input(0), subject.shapes.input(1), subject.shapes.output(0)];
    let element = subject.shapes.dtype(0).unwrap().size_bytes().unwrap() as f64;
    let bytes: f64 = operands.into_iter().map(|of| shape(of.unwrap()) * element).sum();
    let what = args.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(" ");
    let mut best: Option<(f64, String)> = None;
    for (at, (way, estimate)) in
        subject.kernel().ways(&subject.shapes).unwrap().into_iter().enumerate()
    {
        let name = format!("{way:?}");
        if !name.contains(filter) {
            continue;
        }
        for by in subject.tiles(way, args.get(11).is_some_and(|text| text == "tiles")) {
            let name = by.map_or_else(|| name.clone(), |by| format!("{name} {by:?}"));
            match subject.measured(way, by) {
                Ok((nanoseconds, seconds)) => {
                    println!(
                        "{{\"conv\":\"{what}\",\"way\":\"{name}\",\"chosen\":{},\"us\":{:.1},\"estimate_us\":{:.1},\"tflops\":{:.2},\"gbps\":{:.0},\"compile_s\":{seconds:.2}}}",
                        at == 0 && by.is_none(),
                        nanoseconds / 1e3,
                        estimate / 1e3,
                        operations / nanoseconds / 1e3,
                        bytes / nanoseconds,
                    );
                    if best.as_ref().is_none_or(|(least, _)| nanoseconds < *least) {
                        best = Some((nanoseconds, name));
                    }
                }
                Err(error) => {
                    println!("{{\"conv\":\"{what}\",\"way\":\"{name}\",\"error\":{error:?}}}")
                }
            }
        }
    }
    if let Some((nanoseconds, name)) = best {
        println!("{{\"conv\":\"{what}\",\"best\":\"{name}\",\"us\":{:.1}}}", nanoseconds / 1e3);
    }
}
