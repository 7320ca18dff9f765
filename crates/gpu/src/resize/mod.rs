//! Images of another size.

use std::sync::Arc;

use galatea_graph::ops::resize::{Resize, ResizeInterpolation};
use galatea_tensor::DataType;

use crate::cell::ElementCell;
use crate::device::GpuDevice;
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding};
use crate::movement::sampled::{AxisSamples, OutsideFill, SampledMovement};
use galatea_runtime::NodeShapes;

/// This family's kernels.
pub(crate) const ROWS: &[GpuKernelRow] =
    &[GpuKernelRow { name: "resize", domain: "", ops: &["Resize", "Upsample"], supports, build }];

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    let op = view.operator::<Resize>()?;
    let dtype = view.input(0).ok_or("the input is missing")?.dtype;
    for index in 1..view.node.inputs.len() {
        if view.has(index) && view.constant(index).is_none() && !view.is_known(index) {
            return Err(format!("input {index} is known only in a run"));
        }
    }
    match op.interpolation {
        ResizeInterpolation::Nearest(_) => ElementCell::supports(view, dtype),
        _ => view.floats_throughout(&[0]),
    }
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    let op = view.operator::<Resize>()?.clone();
    Ok(Box::new(ResizeKernel { op, device: Arc::clone(view.device) }))
}

struct ResizeKernel {
    op: Resize,
    device: Arc<GpuDevice>,
}

impl GpuKernel for ResizeKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let op = &self.op;
        let shape = shapes.input(0)?;
        let known = |index: Option<usize>| {
            index.and_then(|index| shapes.constants.get(index)).and_then(Option::as_ref)
        };
        let scales = known(op.scales_input);
        let sizes = known(op.sizes_input);
        let samples = op.samples(shape, scales, sizes, known(op.roi_input));
        let samples = samples.map_err(|error| error.to_string())?;
        #[allow(clippy::cast_possible_truncation, reason = "weights are of the size of 1")]
        let place = |sample: Option<Vec<(usize, f64)>>| -> AxisSamples {
            let all = sample.unwrap_or_default().into_iter();
            all.map(|(from, weight)| (from, weight as f32)).collect()
        };
        let axes = samples.into_iter().map(|axis| axis.into_iter().map(place).collect()).collect();
        let from = shapes.dtype(0)?;
        let to = shapes.output_dtype(0)?;
        let weighed = !matches!(op.interpolation, ResizeInterpolation::Nearest(_));
        #[allow(clippy::cast_possible_truncation, reason = "the attribute is a float of 32 bits")]
        let value = op.extrapolation_value as f32;
        let fill = match (weighed, from, to) {
            (true, ..) | (false, DataType::Fp32, _) | (false, DataType::Fp16, DataType::Fp32) => {
                OutsideFill::Float(value)
            }
            (false, DataType::Fp16, _) => {
                OutsideFill::Bits(half::f16::from_f32(value).to_bits().into())
            }
            (false, ..) => OutsideFill::Zero,
        };
        let from = (ShaderBinding::Input(0), from);
        let to = (ShaderBinding::Output(0), to);
        SampledMovement { axes, fill, weighed }.write(shape, from, to, &self.device, step)
    }
}
