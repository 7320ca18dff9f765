//! Chains of element-wise functions.

use galatea_graph::GALATEA_DOMAIN;
use galatea_graph::ops::fused::{ChainStepOperand, ElementFunction, ElementStep, FusedElementwise};
use galatea_graph::ops::math::{BinaryKind, VariadicKind};
use galatea_kernels::ActivationFunction;
use galatea_kernels::elementwise::{
    BinaryFunction, ChainInput, ChainOperand, ChainSpread, ChainStep, FunctionChain,
    ScalarFunction, chain,
};

use super::elementwise::{activation, unary_kind};
use crate::cpu::{CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[CpuKernelRow {
    name: "elementwise-f32-chain",
    domain: GALATEA_DOMAIN,
    ops: &["FusedElementwise"],
    supports: |view| {
        view.floats(&(0..view.node.inputs.len()).collect::<Vec<_>>())?;
        compiled(view).map(drop)
    },
    build: |view| Ok(Box::new(ElementwiseChain(compiled(view)?))),
}];

fn compiled(view: &CpuNodeView<'_>) -> Result<FunctionChain, String> {
    let steps = &view.operator::<FusedElementwise>()?.steps;
    let steps = steps.iter().map(step).collect::<Result<Vec<_>, _>>()?;
    FunctionChain::new(steps, view.node.inputs.len())
        .ok_or_else(|| "a chain of too many inputs".into())
}

fn step(step: &ElementStep) -> Result<ChainStep, String> {
    let operand = |slot: usize| match step.operands.get(slot) {
        Some(ChainStepOperand::Input(input)) => Ok(ChainOperand::Input(*input)),
        Some(ChainStepOperand::Step(step)) => Ok(ChainOperand::Step(*step)),
        None => Err(format!("{:?} has too few operands", step.function)),
    };
    let unary = |function: ScalarFunction| Ok(ChainStep::Unary(function, operand(0)?));
    let binary =
        |function: BinaryFunction| Ok(ChainStep::Binary(function, operand(0)?, operand(1)?));
    match step.function {
        ElementFunction::Unary(kind) => unary(unary_kind(kind)?),
        ElementFunction::Activation(kind) => unary(activation(kind)?),
        ElementFunction::Clip { min, max } => {
            unary(ScalarFunction::Activation(ActivationFunction::Clip { min, max }))
        }
        ElementFunction::Binary(BinaryKind::Add) | ElementFunction::Variadic(VariadicKind::Sum) => {
            binary(BinaryFunction::Add)
        }
        ElementFunction::Binary(BinaryKind::Sub) => binary(BinaryFunction::Sub),
        ElementFunction::Binary(BinaryKind::Mul) => binary(BinaryFunction::Mul),
        ElementFunction::Binary(BinaryKind::Div) => binary(BinaryFunction::Div),
        ElementFunction::Variadic(VariadicKind::Max) => binary(BinaryFunction::Max),
        ElementFunction::Variadic(VariadicKind::Min) => binary(BinaryFunction::Min),
        ElementFunction::Pow => binary(BinaryFunction::Pow),
        other => Err(format!("no vector form of {other:?}")),
    }
}

/// Kernel of a chain over all inputs that are present.
pub(super) struct ElementwiseChain(pub(super) FunctionChain);

impl CpuKernel for ElementwiseChain {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let result = shapes.output(0)?;
        let spreads: Vec<ChainSpread> = (0..shapes.inputs.len())
            .take_while(|&index| shapes.has(index))
            .map(|index| {
                ChainSpread::new(shapes.input(index)?, result)
                    .ok_or_else(|| format!("input {index} does not broadcast to {result:?}"))
            })
            .collect::<Result<_, String>>()?;
        let same: Vec<usize> =
            (0..spreads.len()).filter(|&index| spreads[index] == ChainSpread::Same).collect();
        let program = self.0.clone();
        let step = CpuStep::new(move |call| {
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
