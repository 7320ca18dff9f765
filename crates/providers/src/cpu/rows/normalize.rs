//! Normalisation of rows, and of channels that come first.

use galatea_graph::ONNX_DOMAIN;
use galatea_graph::ops::normalize::{
    BatchNormalization, GroupNormalization, InstanceNormalization, LayerNormalization,
    RmsNormalization,
};
use galatea_kernels::norm::{NormKind, RowNormalization, normalize_reals};
use galatea_kernels::norm_channels::{
    BatchNormParameters, ChannelGroups, normalize_batch, normalize_groups,
};

use super::rowwise::resolve_axis;
use crate::cpu::{Bf16Operands, CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "layer_norm-f32",
        domain: ONNX_DOMAIN,
        ops: &["LayerNormalization"],
        supports,
        build: |view| {
            let op = view.operator::<LayerNormalization>()?;
            let axis = op.axis;
            let epsilon = op.epsilon;
            Ok(Box::new(RowNorm { kind: NormKind::Layer, axis, epsilon }))
        },
    },
    CpuKernelRow {
        name: "rms_norm-f32",
        domain: ONNX_DOMAIN,
        ops: &["RMSNormalization"],
        supports,
        build: |view| {
            let op = view.operator::<RmsNormalization>()?;
            let axis = op.axis;
            let epsilon = op.epsilon;
            Ok(Box::new(RowNorm { kind: NormKind::RootMeanSquare, axis, epsilon }))
        },
    },
    CpuKernelRow {
        name: "instance_norm-f32",
        domain: ONNX_DOMAIN,
        ops: &["InstanceNormalization"],
        supports,
        build: |view| {
            let epsilon = view.operator::<InstanceNormalization>()?.epsilon;
            Ok(Box::new(GroupNormKernel { groups: None, epsilon, per_group: false }))
        },
    },
    CpuKernelRow {
        name: "group_norm-f32",
        domain: ONNX_DOMAIN,
        ops: &["GroupNormalization"],
        supports,
        build: |view| {
            let op = view.operator::<GroupNormalization>()?;
            let groups = Some(op.num_groups);
            let epsilon = op.epsilon;
            let per_group = op.per_group;
            Ok(Box::new(GroupNormKernel { groups, epsilon, per_group }))
        },
    },
    CpuKernelRow {
        name: "batch_norm-f32",
        domain: ONNX_DOMAIN,
        ops: &["BatchNormalization"],
        supports: |view| {
            view.floats(&[0, 1, 2, 3, 4])?;
            let op = view.operator::<BatchNormalization>()?;
            if op.training > 0 || op.each_element {
                return Err("the kernel takes given statistics of whole channels".into());
            }
            Ok(())
        },
        build: |view| {
            let epsilon = view.operator::<BatchNormalization>()?.epsilon;
            Ok(Box::new(BatchNormKernel { epsilon }))
        },
    },
];

/// Channels of a shape, and elements of a channel.
fn channels(shape: &[usize]) -> Result<[usize; 2], String> {
    match shape {
        [_] => Ok([1, 1]),
        [_, channels, inner @ ..] => Ok([*channels, inner.iter().product()]),
        [] => Err("a scalar has no channels".into()),
    }
}

struct GroupNormKernel {
    /// Each channel by itself where absent.
    groups: Option<usize>,
    epsilon: f32,
    /// True if scale and bias have one element per group.
    per_group: bool,
}

impl CpuKernel for GroupNormKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let [channels, columns] = channels(shapes.input(0)?)?;
        let groups = self.groups.unwrap_or(channels);
        if groups == 0 || !channels.is_multiple_of(groups) {
            return Err(format!("{channels} channels in {groups} groups"));
        }
        let parameters = if self.per_group { groups } else { channels };
        for index in [1, 2] {
            if shapes.input(index)? != [parameters] {
                return Err(format!("input {index} has shape {:?}", shapes.input(index)?));
            }
        }
        let epsilon = self.epsilon;
        let copies = channels / parameters;
        Ok(CpuStep::new(move |call| {
            let spread = |parameter: &[f32]| -> Vec<f32> {
                parameter.iter().flat_map(|&p| std::iter::repeat_n(p, copies)).collect()
            };
            let x = call.input::<f32>(0)?;
            let scale = spread(call.input::<f32>(1)?);
            let bias = spread(call.input::<f32>(2)?);
            let scale = scale.as_slice();
            let bias = bias.as_slice();
            let g = ChannelGroups { channels, groups, columns, scale, bias, epsilon };
            let mut y = call.output::<f32>(0)?;
            normalize_groups(call.exec, &g, x, y.slice());
            Ok(())
        }))
    }
}

struct BatchNormKernel {
    epsilon: f32,
}

impl CpuKernel for BatchNormKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let [channels, columns] = channels(shapes.input(0)?)?;
        for index in 1..5 {
            if shapes.input(index)? != [channels] {
                return Err(format!("input {index} has shape {:?}", shapes.input(index)?));
            }
        }
        let epsilon = self.epsilon;
        Ok(CpuStep::new(move |call| {
            let p = BatchNormParameters {
                scale: call.input::<f32>(1)?,
                bias: call.input::<f32>(2)?,
                mean: call.input::<f32>(3)?,
                variance: call.input::<f32>(4)?,
                epsilon,
            };
            let x = call.input::<f32>(0)?;
            let mut y = call.output::<f32>(0)?;
            normalize_batch(call.exec, &p, columns, x, y.slice());
            Ok(())
        }))
    }
}

fn supports(view: &CpuNodeView<'_>) -> Result<(), String> {
    view.floats(&[0, 1, 2])?;
    if view.node.outputs.iter().skip(1).any(Option::is_some) {
        return Err("the statistics are wanted too".into());
    }
    Ok(())
}

struct RowNorm {
    kind: NormKind,
    axis: i64,
    epsilon: f32,
}

impl CpuKernel for RowNorm {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let shape = shapes.input(0)?;
        let axis = resolve_axis(self.axis, shape.len())?;
        let columns: usize = shape[axis..].iter().product();
        for index in 1..shapes.inputs.len().min(3) {
            if let Ok(parameter) = shapes.input(index)
                && parameter.iter().product::<usize>() != columns
            {
                return Err(format!("input {index} has shape {parameter:?} for rows of {columns}"));
            }
        }
        let kind = self.kind;
        let epsilon = self.epsilon;
        Ok(CpuStep::new(move |call| {
            let x = call.reals(0)?;
            let scale = call.optional::<f32>(1)?;
            let bias = call.optional::<f32>(2)?;
            let mut y = call.output_reals(0)?;
            let norm = RowNormalization { kind, scale, bias, epsilon };
            normalize_reals(call.exec, norm, x, columns, y.reals());
            Ok(())
        }))
    }

    fn halves(&self, _shapes: &NodeShapes) -> Bf16Operands {
        Bf16Operands { inputs: &[0], output: true, together: false }
    }
}
