//! Fused operators of ONNX Runtime: activations behind a bias, normalisation of a sum.

use galatea_graph::ops::contrib::{BiasActivation, SkipNormalization};
use galatea_kernels::elementwise::{BinaryFunction, ChainOperand, ChainStep, FunctionChain};
use galatea_kernels::norm::{NormKind, RowNormalization, SkipConnection, normalize};

use super::CONTRIB_DOMAIN;
use super::chain::ElementwiseChain;
use super::elementwise::activation;
use crate::cpu::{CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "bias_activation-f32",
        domain: CONTRIB_DOMAIN,
        ops: &["BiasGelu", "FastGelu", "Gelu", "QuickGelu"],
        supports: |view| view.floats(&[0, 1]).and_then(|()| biased(view).map(drop)),
        build: |view| Ok(Box::new(ElementwiseChain(biased(view)?))),
    },
    CpuKernelRow {
        name: "skip_norm-f32",
        domain: CONTRIB_DOMAIN,
        ops: &["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"],
        supports: |view| {
            view.floats(&[0, 1, 2, 3, 4])?;
            let statistics = view.node.outputs.iter().skip(1).take(2);
            match statistics.flatten().next() {
                Some(_) => Err("the statistics are wanted too".into()),
                None => Ok(()),
            }
        },
        build: |view| Ok(Box::new(*view.operator::<SkipNormalization>()?)),
    },
];

/// The sum of input and bias, and the function of it.
fn biased(view: &CpuNodeView<'_>) -> Result<FunctionChain, String> {
    let function = activation(view.operator::<BiasActivation>()?.kind)?;
    let (steps, inputs) = match view.has(1) {
        false => (vec![ChainStep::Unary(function, ChainOperand::Input(0))], 1),
        true => {
            let (x, bias) = (ChainOperand::Input(0), ChainOperand::Input(1));
            let sum = ChainStep::Binary(BinaryFunction::Add, x, bias);
            (vec![sum, ChainStep::Unary(function, ChainOperand::Step(0))], 2)
        }
    };
    FunctionChain::new(steps, inputs).ok_or_else(|| "a chain of too many inputs".into())
}

impl CpuKernel for SkipNormalization {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let shape = shapes.input(0)?;
        let &columns = shape.last().ok_or("the input is a scalar")?;
        if shapes.input(1)? != shape {
            return Err(format!("{:?} is added to {shape:?}", shapes.input(1)?));
        }
        let (beta, bias) = self.optional();
        let vectors = [Some(2), beta, Some(bias)];
        for at in vectors.into_iter().flatten().filter(|&at| shapes.has(at)) {
            if shapes.input(at)? != [columns] {
                return Err(format!("input {at} has shape {:?}", shapes.input(at)?));
            }
        }
        let kind = if self.simplified { NormKind::RootMeanSquare } else { NormKind::Layer };
        let epsilon = self.epsilon;
        let wants_sum = shapes.wants(3);
        Ok(CpuStep::new(move |call| {
            let x = call.input::<f32>(0)?;
            let residual = Some(call.input::<f32>(1)?);
            let scale = call.optional::<f32>(2)?;
            let shift = beta.map(|at| call.optional::<f32>(at)).transpose()?.flatten();
            let input_bias = call.optional::<f32>(bias)?;
            let mut sum = wants_sum.then(|| call.output::<f32>(3)).transpose()?;
            let sum = sum.as_mut().map(|sum| sum.slice());
            let mut y = call.output::<f32>(0)?;
            let norm = RowNormalization { kind, scale, bias: shift, epsilon };
            let skip = SkipConnection { residual, input_bias, sum };
            normalize(call.exec, norm, x, columns, skip, y.slice());
            Ok(())
        }))
    }
}
