//! Operators that normalise rows of adjacent elements.

use std::sync::Arc;

use galatea_graph::ops::contrib::SkipNormalization;
use galatea_graph::ops::normalize::{
    GroupNormalization, InstanceNormalization, LayerNormalization, RmsNormalization,
};
use galatea_tensor::DataType;

use super::generate::{ParameterIndex, RowProgram, SideOperand, dispatch};
use crate::axis::position;
use crate::device::GpuDevice;
use crate::elementwise::broadcast::{contiguous, merge, steps};
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView};
use galatea_runtime::NodeShapes;

pub(super) const ONNX: GpuKernelRow = GpuKernelRow {
    name: "normalize",
    domain: "",
    ops: &[
        "GroupNormalization",
        "InstanceNormalization",
        "LayerNormalization",
        "RMSNormalization",
        "SimplifiedLayerNormalization",
    ],
    supports,
    build,
};

pub(super) const CONTRIB: GpuKernelRow = GpuKernelRow {
    name: "normalize",
    domain: "com.microsoft",
    ops: &[
        "SimplifiedLayerNormalization",
        "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization",
    ],
    supports,
    build,
};

/// The operator.
#[derive(Clone, Copy)]
enum NormalizationForm {
    Layer(LayerNormalization),
    Rms(RmsNormalization),
    Skip(SkipNormalization),
    Instance(InstanceNormalization),
    Group { epsilon: f32, groups: usize, per_group: bool },
}

fn form(view: &GpuNodeView<'_>) -> Result<NormalizationForm, String> {
    let node = view.node;
    if let Some(op) = node.operator::<LayerNormalization>() {
        return Ok(NormalizationForm::Layer(*op));
    }
    if let Some(op) = node.operator::<RmsNormalization>() {
        return Ok(NormalizationForm::Rms(*op));
    }
    if let Some(op) = node.operator::<SkipNormalization>() {
        return Ok(NormalizationForm::Skip(*op));
    }
    if let Some(op) = node.operator::<InstanceNormalization>() {
        return Ok(NormalizationForm::Instance(*op));
    }
    let op = view.operator::<GroupNormalization>()?;
    let epsilon = op.epsilon;
    let groups = op.num_groups;
    let per_group = op.per_group;
    Ok(NormalizationForm::Group { epsilon, groups, per_group })
}

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    form(view)?;
    view.rank(0)?;
    for index in 0..view.node.outputs.len() {
        if view.output(index).is_some_and(|fact| !view.is_float(fact.dtype)) {
            return Err(format!("output {index} is no float of this device"));
        }
    }
    view.floats_throughout(&(0..view.node.inputs.len()).collect::<Vec<_>>())
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    Ok(Box::new(NormalizationKernel { form: form(view)?, device: Arc::clone(view.device) }))
}

struct NormalizationKernel {
    form: NormalizationForm,
    device: Arc<GpuDevice>,
}

/// A parameter that broadcasts to the axes of a row.
fn along(shapes: &NodeShapes, input: usize, row: &[usize]) -> Result<SideOperand, String> {
    let shape = shapes.input(input)?;
    // Leading axes of length 1 do not count.
    let shape = &shape[shape.len().saturating_sub(row.len())..];
    let (lengths, mut all) = merge(row, &[steps(shape, row)]);
    let steps = all.pop().unwrap_or_default();
    let same = steps == contiguous(&lengths) && lengths.iter().product::<usize>() > 1;
    let at = match same {
        true => ParameterIndex::Position,
        false => ParameterIndex::Axes(lengths.into_iter().zip(steps).collect()),
    };
    Ok(SideOperand { input, dtype: shapes.dtype(input)?, at })
}

fn at(shapes: &NodeShapes, input: usize, at: ParameterIndex) -> Result<SideOperand, String> {
    Ok(SideOperand { input, dtype: shapes.dtype(input)?, at })
}

impl NormalizationKernel {
    fn rows(&self, shapes: &NodeShapes) -> Result<RowProgram, String> {
        let shape = shapes.input(0)?;
        let rank = shape.len();
        let first = match self.form {
            NormalizationForm::Layer(op) => position(op.axis, rank)?,
            NormalizationForm::Rms(op) => position(op.axis, rank)?,
            NormalizationForm::Skip(_) => rank.checked_sub(1).ok_or("the input is a scalar")?,
            NormalizationForm::Instance(_) | NormalizationForm::Group { .. } => 2,
        };
        let (outer, row) = shape.split_at(first);
        let optional = |input: usize| match shapes.has(input) {
            true => along(shapes, input, row).map(Some),
            false => Ok(None),
        };
        let output = |index: usize| -> Option<(usize, DataType)> {
            Some((index, shapes.output_dtype(index).ok()?))
        };
        let plain = |epsilon: f32,
                     scale: SideOperand,
                     shift: Option<SideOperand>|
         -> Result<RowProgram, String> {
            Ok(RowProgram {
                rows: outer.iter().product(),
                len: row.iter().product(),
                dtype: shapes.dtype(0)?,
                skip: None,
                bias: None,
                scale,
                shift,
                centred: true,
                epsilon,
                output: shapes.output_dtype(0)?,
                mean: None,
                inverse: None,
                sum: None,
            })
        };
        match self.form {
            NormalizationForm::Layer(op) => {
                let rows = plain(op.epsilon, along(shapes, 1, row)?, optional(2)?)?;
                Ok(RowProgram { mean: output(1), inverse: output(2), ..rows })
            }
            NormalizationForm::Rms(op) => Ok(RowProgram {
                centred: false,
                ..plain(op.epsilon, along(shapes, 1, row)?, None)?
            }),
            NormalizationForm::Skip(op) => {
                let (beta, bias) = if op.simplified { (None, 3) } else { (optional(3)?, 4) };
                let rows = plain(op.epsilon, along(shapes, 2, row)?, beta)?;
                let skip = Some(along(shapes, 1, shape)?);
                let mean = output(1);
                let inverse = output(2);
                let sum = output(3);
                let bias = optional(bias)?;
                let centred = !op.simplified;
                Ok(RowProgram { skip, bias, centred, mean, inverse, sum, ..rows })
            }
            NormalizationForm::Instance(op) => {
                let own = |input| at(shapes, input, ParameterIndex::Row(shape[1]));
                plain(op.epsilon, own(1)?, Some(own(2)?))
            }
            NormalizationForm::Group { epsilon, groups, per_group } => {
                let inner = row.iter().product::<usize>();
                let channels = shape[1] / groups;
                let own = |input| match per_group {
                    true => at(shapes, input, ParameterIndex::Row(groups)),
                    false => at(shapes, input, ParameterIndex::Channel { groups, channels, inner }),
                };
                let rows = plain(epsilon, own(1)?, Some(own(2)?))?;
                Ok(RowProgram { rows: shape[0] * groups, len: channels * inner, ..rows })
            }
        }
    }
}

impl GpuKernel for NormalizationKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let rows = self.rows(shapes)?;
        if rows.dtype == rows.output {
            // Threads that share a row have read it before they write it.
            step.in_place(0, 0);
        }
        dispatch(&rows, self.device.capabilities(), step)
    }
}
