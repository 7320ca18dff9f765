//! Images of another size.

use std::sync::Arc;

use galatea_graph::ops::resize::{Interpolation, Resize};
use galatea_tensor::DataType;

use crate::cell::Cell;
use crate::device::Device;
use crate::kernel::{Binding, Kernel, KernelRow, NodeView, Shapes, Step};
use crate::movement::sampled::{Fill, Place, Sampled};

/// This family's kernels.
pub(crate) const ROWS: &[KernelRow] =
    &[KernelRow { name: "resize", domain: "", ops: &["Resize", "Upsample"], supports, build }];

fn supports(view: &NodeView<'_>) -> Result<(), String> {
    let op = view.operator::<Resize>()?;
    let dtype = view.input(0).ok_or("the input is missing")?.dtype;
    for index in 1..view.node.inputs.len() {
        if view.has(index) && view.constant(index).is_none() && !view.is_known(index) {
            return Err(format!("input {index} is known only in a run"));
        }
    }
    match op.interpolation {
        Interpolation::Nearest(_) => Cell::supports(view, dtype),
        _ => view.floats(&[0]),
    }
}

fn build(view: &NodeView<'_>) -> Result<Box<dyn Kernel>, String> {
    let op = view.operator::<Resize>()?.clone();
    Ok(Box::new(Resized { op, device: Arc::clone(view.device) }))
}

struct Resized {
    op: Resize,
    device: Arc<Device>,
}

impl Kernel for Resized {
    fn bind(&self, shapes: &Shapes, step: &mut Step) -> Result<(), String> {
        let op = &self.op;
        let shape = shapes.input(0)?;
        let known = |index: Option<usize>| {
            index.and_then(|index| shapes.constants.get(index)).and_then(Option::as_ref)
        };
        let (scales, sizes) = (known(op.scales_input), known(op.sizes_input));
        let samples = op.samples(shape, scales, sizes, known(op.roi_input));
        let samples = samples.map_err(|error| error.to_string())?;
        #[allow(clippy::cast_possible_truncation, reason = "weights are of the size of 1")]
        let place = |sample: Option<Vec<(usize, f64)>>| -> Place {
            let all = sample.unwrap_or_default().into_iter();
            all.map(|(from, weight)| (from, weight as f32)).collect()
        };
        let axes = samples.into_iter().map(|axis| axis.into_iter().map(place).collect()).collect();
        let (from, to) = (shapes.dtype(0)?, shapes.output_dtype(0)?);
        let weighed = !matches!(op.interpolation, Interpolation::Nearest(_));
        #[allow(clippy::cast_possible_truncation, reason = "the attribute is a float of 32 bits")]
        let value = op.extrapolation_value as f32;
        let fill = match (weighed, from, to) {
            (true, ..) | (false, DataType::Fp32, _) | (false, DataType::Fp16, DataType::Fp32) => {
                Fill::Float(value)
            }
            (false, DataType::Fp16, _) => Fill::Bits(half::f16::from_f32(value).to_bits().into()),
            (false, ..) => Fill::Zero,
        };
        let bound = ((Binding::Input(0), from), (Binding::Output(0), to));
        Sampled { axes, fill, weighed }.write(shape, bound, &self.device, step)
    }
}
