//! Normalisation of rows.

use galatea_graph::ONNX_DOMAIN;
use galatea_graph::ops::normalize::{LayerNormalization, RmsNormalization};
use galatea_kernels::norm::{Norm, NormKind, Skip, normalize};

use super::rowwise::resolve_axis;
use crate::cpu::{Kernel, KernelRow, NodeView, Shapes, Step};

/// The family's rows.
pub(super) const ROWS: &[KernelRow] = &[
    KernelRow {
        name: "layer_norm-f32",
        domain: ONNX_DOMAIN,
        ops: &["LayerNormalization"],
        supports,
        build: |view| {
            let op = view.operator::<LayerNormalization>()?;
            let (axis, epsilon) = (op.axis, op.epsilon);
            Ok(Box::new(RowNorm { kind: NormKind::Layer, axis, epsilon }))
        },
    },
    KernelRow {
        name: "rms_norm-f32",
        domain: ONNX_DOMAIN,
        ops: &["RMSNormalization"],
        supports,
        build: |view| {
            let op = view.operator::<RmsNormalization>()?;
            let (axis, epsilon) = (op.axis, op.epsilon);
            Ok(Box::new(RowNorm { kind: NormKind::RootMeanSquare, axis, epsilon }))
        },
    },
];

fn supports(view: &NodeView<'_>) -> Result<(), String> {
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

impl Kernel for RowNorm {
    fn bind(&self, shapes: &Shapes) -> Result<Step, String> {
        let shape = shapes.input(0)?;
        let axis = resolve_axis(self.axis, shape.len())?;
        let columns: usize = shape[axis..].iter().product();
        for index in 1..shapes.inputs.len().min(3) {
            if let Some((_, parameter)) = &shapes.inputs[index]
                && parameter.iter().product::<usize>() != columns
            {
                return Err(format!("input {index} has shape {parameter:?} for rows of {columns}"));
            }
        }
        let (kind, epsilon) = (self.kind, self.epsilon);
        Ok(Step::new(move |call| {
            let x = call.input::<f32>(0)?;
            let (scale, bias) = (call.optional::<f32>(1)?, call.optional::<f32>(2)?);
            let mut y = call.output::<f32>(0)?;
            let norm = Norm { kind, scale, bias, epsilon };
            normalize(call.exec, norm, x, columns, Skip::default(), y.slice());
            Ok(())
        }))
    }
}
