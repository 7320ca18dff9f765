//! Chains of element-wise functions.

use galatea_graph::GALATEA_DOMAIN;
use galatea_graph::ops::fused::{ElementFunction, ElementStep, FusedElementwise, Operand};
use galatea_graph::ops::math::{BinaryKind, VariadicKind};
use galatea_kernels::Activation;
use galatea_kernels::elementwise::{
    Binary, Chain, ChainInput, ChainOperand, ChainSpread, ChainStep, Unary, chain,
};

use super::elementwise::{activation, unary_kind};
use crate::cpu::{Kernel, KernelRow, NodeView, Shapes, Step};

/// The family's rows.
pub(super) const ROWS: &[KernelRow] = &[KernelRow {
    name: "elementwise-f32-chain",
    domain: GALATEA_DOMAIN,
    ops: &["FusedElementwise"],
    supports: |view| {
        view.floats(&(0..view.node.inputs.len()).collect::<Vec<_>>())?;
        compiled(view).map(drop)
    },
    build: |view| Ok(Box::new(ChainKernel(compiled(view)?))),
}];

fn compiled(view: &NodeView<'_>) -> Result<Chain, String> {
    let steps = &view.operator::<FusedElementwise>()?.steps;
    let steps = steps.iter().map(step).collect::<Result<Vec<_>, _>>()?;
    Chain::new(steps, view.node.inputs.len()).ok_or_else(|| "a chain of too many inputs".into())
}

fn step(step: &ElementStep) -> Result<ChainStep, String> {
    let operand = |slot: usize| match step.operands.get(slot) {
        Some(Operand::Input(input)) => Ok(ChainOperand::Input(*input)),
        Some(Operand::Step(step)) => Ok(ChainOperand::Step(*step)),
        None => Err(format!("{:?} has too few operands", step.function)),
    };
    let unary = |function: Unary| Ok(ChainStep::Unary(function, operand(0)?));
    let binary = |function: Binary| Ok(ChainStep::Binary(function, operand(0)?, operand(1)?));
    match step.function {
        ElementFunction::Unary(kind) => unary(unary_kind(kind)?),
        ElementFunction::Activation(kind) => unary(activation(kind)?),
        ElementFunction::Clip { min, max } => {
            unary(Unary::Activation(Activation::Clip { min, max }))
        }
        ElementFunction::Binary(BinaryKind::Add) | ElementFunction::Variadic(VariadicKind::Sum) => {
            binary(Binary::Add)
        }
        ElementFunction::Binary(BinaryKind::Sub) => binary(Binary::Sub),
        ElementFunction::Binary(BinaryKind::Mul) => binary(Binary::Mul),
        ElementFunction::Binary(BinaryKind::Div) => binary(Binary::Div),
        ElementFunction::Variadic(VariadicKind::Max) => binary(Binary::Max),
        ElementFunction::Variadic(VariadicKind::Min) => binary(Binary::Min),
        ElementFunction::Pow => binary(Binary::Pow),
        other => Err(format!("no vector form of {other:?}")),
    }
}

struct ChainKernel(Chain);

impl Kernel for ChainKernel {
    fn bind(&self, shapes: &Shapes) -> Result<Step, String> {
        let result = shapes.output(0)?;
        let spreads: Vec<ChainSpread> = (0..shapes.inputs.len())
            .map(|index| {
                ChainSpread::new(shapes.input(index)?, result)
                    .ok_or_else(|| format!("input {index} does not broadcast to {result:?}"))
            })
            .collect::<Result<_, String>>()?;
        let same: Vec<usize> =
            (0..spreads.len()).filter(|&index| spreads[index] == ChainSpread::Same).collect();
        let program = self.0.clone();
        let step = Step::new(move |call| {
            let mut inputs = Vec::with_capacity(spreads.len());
            for (index, spread) in spreads.iter().enumerate() {
                inputs.push(ChainInput { data: call.optional::<f32>(index)?, spread });
            }
            let mut y = call.output::<f32>(0)?;
            chain(call.exec, &program, &inputs, y.slice());
            Ok(())
        });
        Ok(same.into_iter().fold(step, |step, input| step.in_place(input, 0)))
    }
}
