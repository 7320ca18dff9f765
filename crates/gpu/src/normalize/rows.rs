//! Operators that normalise rows of adjacent elements.

use std::sync::Arc;

use galatea_graph::ops::contrib::SkipNormalization;
use galatea_graph::ops::normalize::{
    GroupNormalization, InstanceNormalization, LayerNormalization, RmsNormalization,
};
use galatea_tensor::DataType;

use super::generate::{At, Beside, Rows, dispatch};
use crate::device::Device;
use crate::elementwise::broadcast::{contiguous, merge, steps};
use crate::kernel::{Kernel, KernelRow, NodeView, Shapes, Step};
use crate::movement::position;

pub(super) const ONNX: KernelRow = KernelRow {
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

pub(super) const CONTRIB: KernelRow = KernelRow {
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
enum Form {
    Layer(LayerNormalization),
    Rms(RmsNormalization),
    Skip(SkipNormalization),
    Instance(InstanceNormalization),
    Group { epsilon: f32, groups: usize, per_group: bool },
}

fn form(view: &NodeView<'_>) -> Result<Form, String> {
    let node = view.node;
    if let Some(op) = node.operator::<LayerNormalization>() {
        return Ok(Form::Layer(*op));
    }
    if let Some(op) = node.operator::<RmsNormalization>() {
        return Ok(Form::Rms(*op));
    }
    if let Some(op) = node.operator::<SkipNormalization>() {
        return Ok(Form::Skip(*op));
    }
    if let Some(op) = node.operator::<InstanceNormalization>() {
        return Ok(Form::Instance(*op));
    }
    let op = view.operator::<GroupNormalization>()?;
    let (epsilon, groups, per_group) = (op.epsilon, op.num_groups, op.per_group);
    Ok(Form::Group { epsilon, groups, per_group })
}

fn supports(view: &NodeView<'_>) -> Result<(), String> {
    form(view)?;
    view.rank(0)?;
    for index in 0..view.node.outputs.len() {
        if view.output(index).is_some_and(|fact| !view.is_float(fact.dtype)) {
            return Err(format!("output {index} is no float of this device"));
        }
    }
    view.floats(&(0..view.node.inputs.len()).collect::<Vec<_>>())
}

fn build(view: &NodeView<'_>) -> Result<Box<dyn Kernel>, String> {
    Ok(Box::new(Normal { form: form(view)?, device: Arc::clone(view.device) }))
}

struct Normal {
    form: Form,
    device: Arc<Device>,
}

/// A parameter that broadcasts to the axes of a row.
fn along(shapes: &Shapes, input: usize, row: &[usize]) -> Result<Beside, String> {
    let shape = shapes.input(input)?;
    // Leading axes of length 1 do not count.
    let shape = &shape[shape.len().saturating_sub(row.len())..];
    let (lengths, mut all) = merge(row, &[steps(shape, row)]);
    let steps = all.pop().unwrap_or_default();
    let same = steps == contiguous(&lengths) && lengths.iter().product::<usize>() > 1;
    let at = match same {
        true => At::Position,
        false => At::Axes(lengths.into_iter().zip(steps).collect()),
    };
    Ok(Beside { input, dtype: shapes.dtype(input)?, at })
}

fn at(shapes: &Shapes, input: usize, at: At) -> Result<Beside, String> {
    Ok(Beside { input, dtype: shapes.dtype(input)?, at })
}

impl Normal {
    fn rows(&self, shapes: &Shapes) -> Result<Rows, String> {
        let shape = shapes.input(0)?;
        let rank = shape.len();
        let first = match self.form {
            Form::Layer(op) => position(op.axis, rank)?,
            Form::Rms(op) => position(op.axis, rank)?,
            Form::Skip(_) => rank.checked_sub(1).ok_or("the input is a scalar")?,
            Form::Instance(_) | Form::Group { .. } => 2,
        };
        let (outer, row) = shape.split_at(first);
        let optional = |input: usize| match shapes.has(input) {
            true => along(shapes, input, row).map(Some),
            false => Ok(None),
        };
        let output = |index: usize| -> Option<(usize, DataType)> {
            Some((index, shapes.output_dtype(index).ok()?))
        };
        let plain = |epsilon: f32, scale: Beside, shift: Option<Beside>| -> Result<Rows, String> {
            Ok(Rows {
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
            Form::Layer(op) => {
                let rows = plain(op.epsilon, along(shapes, 1, row)?, optional(2)?)?;
                Ok(Rows { mean: output(1), inverse: output(2), ..rows })
            }
            Form::Rms(op) => {
                Ok(Rows { centred: false, ..plain(op.epsilon, along(shapes, 1, row)?, None)? })
            }
            Form::Skip(op) => {
                let (beta, bias) = if op.simplified { (None, 3) } else { (optional(3)?, 4) };
                let rows = plain(op.epsilon, along(shapes, 2, row)?, beta)?;
                let skip = Some(along(shapes, 1, shape)?);
                let (mean, inverse, sum) = (output(1), output(2), output(3));
                let (bias, centred) = (optional(bias)?, !op.simplified);
                Ok(Rows { skip, bias, centred, mean, inverse, sum, ..rows })
            }
            Form::Instance(op) => {
                let own = |input| at(shapes, input, At::Row(shape[1]));
                plain(op.epsilon, own(1)?, Some(own(2)?))
            }
            Form::Group { epsilon, groups, per_group } => {
                let (inner, channels) = (row.iter().product::<usize>(), shape[1] / groups);
                let own = |input| match per_group {
                    true => at(shapes, input, At::Row(groups)),
                    false => at(shapes, input, At::Channel { groups, channels, inner }),
                };
                let rows = plain(epsilon, own(1)?, Some(own(2)?))?;
                Ok(Rows { rows: shape[0] * groups, len: channels * inner, ..rows })
            }
        }
    }
}

impl Kernel for Normal {
    fn bind(&self, shapes: &Shapes, step: &mut Step) -> Result<(), String> {
        let rows = self.rows(shapes)?;
        if rows.dtype == rows.output {
            // Threads that share a row have read it before they write it.
            step.in_place(0, 0);
        }
        dispatch(&rows, self.device.capabilities(), step)
    }
}
