//! Frames around a value.

use std::sync::Arc;

use galatea_graph::ops::shape::{Pad, PadMode};
use galatea_tensor::DataType;

use super::sampled::{AxisSamples, OutsideFill, SampledMovement};
use crate::axis::position;
use crate::cell::ElementCell;
use crate::device::GpuDevice;
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding};
use galatea_runtime::NodeShapes;

pub(super) const ROW: GpuKernelRow =
    GpuKernelRow { name: "pad", domain: "", ops: &["Pad"], supports, build };

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    let op = view.operator::<Pad>()?;
    let dtype = view.input(0).ok_or("the input is missing")?.dtype;
    ElementCell::supports(view, dtype)?;
    if op.pads.is_none() && !(view.is_known(1) && view.is_known(3)) {
        return Err("lengths or axes are known only in a run".into());
    }
    #[allow(clippy::float_cmp, reason = "a value that was never set")]
    let valued = op.value != 0.0;
    if valued && !view.is_float(dtype) {
        return Err(format!("a frame of {} around {dtype}", op.value));
    }
    Ok(())
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    let op = view.operator::<Pad>()?.clone();
    Ok(Box::new(PadKernel { op, device: Arc::clone(view.device) }))
}

struct PadKernel {
    op: Pad,
    device: Arc<GpuDevice>,
}

/// Returns the source of each position of an axis of length `len`. Negative pads cut first, and the frame is
/// drawn around what is left.
fn places(mode: PadMode, len: usize, begin: i64, end: i64) -> Result<Vec<AxisSamples>, String> {
    let wrong = || format!("pads {begin} and {end} do not fit an axis of length {len}");
    let signed = i64::try_from(len).map_err(|_| wrong())?;
    let total = signed.checked_add(begin).and_then(|all| all.checked_add(end));
    let total = total.filter(|&total| total >= 0).ok_or_else(wrong)?;
    let first = begin.saturating_neg().max(0);
    let kept = signed - first - end.saturating_neg().max(0);
    if kept <= 0 && mode != PadMode::Constant && total > 0 {
        return Err(wrong());
    }
    let place = |at: i64| {
        let from = at - begin.max(0);
        let inside = match mode {
            PadMode::Constant => Some(from).filter(|from| (0..kept).contains(from)),
            PadMode::Edge => Some(from.clamp(0, kept - 1)),
            PadMode::Wrap => Some(from.rem_euclid(kept)),
            PadMode::Reflect if kept == 1 => Some(0),
            PadMode::Reflect => {
                let period = 2 * (kept - 1);
                let folded = from.rem_euclid(period);
                Some(folded.min(period - folded))
            }
        };
        let inside = inside.and_then(|inside| usize::try_from(inside + first).ok());
        inside.map(|inside| vec![(inside, 1.0)]).unwrap_or_default()
    };
    Ok((0..total).map(place).collect())
}

impl GpuKernel for PadKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let shape = shapes.input(0)?;
        let rank = shape.len();
        let given = match &self.op.pads {
            Some(pads) => Some(pads.clone()),
            None => shapes.integers(1),
        };
        let pads = given.ok_or("the lengths are not known")?;
        let axes: Vec<usize> = match shapes.has(3).then(|| shapes.integers(3)) {
            Some(Some(axes)) => {
                axes.into_iter().map(|axis| position(axis, rank)).collect::<Result<_, _>>()?
            }
            Some(None) => return Err("the axes are not known".into()),
            None => (0..rank).collect(),
        };
        if pads.len() != 2 * axes.len() {
            return Err(format!("{} pads for {} axes", pads.len(), axes.len()));
        }
        let mut pairs = vec![(0, 0); rank];
        for (at, &axis) in axes.iter().enumerate() {
            pairs[axis] = (pads[at], pads[at + axes.len()]);
        }
        let lengths = shape.iter().zip(pairs);
        let axes = lengths.map(|(&len, (begin, end))| places(self.op.mode, len, begin, end));
        let axes: Vec<Vec<AxisSamples>> = axes.collect::<Result<_, _>>()?;
        let from = shapes.dtype(0)?;
        let to = shapes.output_dtype(0)?;
        let valued = self.op.pads.is_none()
            && shapes.has(2)
            && shapes.input(2)?.iter().product::<usize>() > 0;
        let fill = match (valued, from) {
            (true, _) => OutsideFill::Value((ShaderBinding::Input(2), shapes.dtype(2)?)),
            (false, DataType::Fp32) => OutsideFill::Float(self.op.value),
            (false, DataType::Fp16) if to == DataType::Fp32 => OutsideFill::Float(self.op.value),
            (false, DataType::Fp16) => return self.halves(shapes, axes, step),
            (false, _) => OutsideFill::Zero,
        };
        let from = (ShaderBinding::Input(0), from);
        let to = (ShaderBinding::Output(0), to);
        SampledMovement { axes, fill, weighed: false }.write(shape, from, to, &self.device, step)
    }
}

impl PadKernel {
    /// Halves travel as their bits.
    fn halves(
        &self,
        shapes: &NodeShapes,
        axes: Vec<Vec<AxisSamples>>,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let bits = half::f16::from_f32(self.op.value).to_bits();
        let fill = if bits == 0 { OutsideFill::Zero } else { OutsideFill::Bits(u32::from(bits)) };
        let from = (ShaderBinding::Input(0), DataType::Fp16);
        let to = (ShaderBinding::Output(0), DataType::Fp16);
        SampledMovement { axes, fill, weighed: false }.write(
            shapes.input(0)?,
            from,
            to,
            &self.device,
            step,
        )
    }
}
