//! Recurrent operators.

use std::sync::Arc;

use galatea_graph::ops::recurrent::{CellActivation, Lstm as LstmOperator, RecurrentDirection};
use galatea_graph::{ONNX_DOMAIN, OpError};
use galatea_kernels::lstm::{
    InitialStates, LstmLayer, LstmOutputs, LstmPass, interleave_gates, lstm,
};
use galatea_kernels::{Isa, PackedB};

use crate::cpu::packing;
use crate::cpu::{
    CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes, StepCall, WeightBytes,
};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[CpuKernelRow {
    name: "lstm-f32-packed",
    domain: ONNX_DOMAIN,
    ops: &["LSTM"],
    supports: |view| {
        let op = view.operator::<LstmOperator>()?;
        let functions = [CellActivation::Sigmoid, CellActivation::Tanh, CellActivation::Tanh];
        if op.recurrence.activations.chunks(3).any(|chunk| *chunk != functions)
            || op.recurrence.clip.is_some()
            || op.recurrence.batch_first
            || op.input_forget
        {
            return Err("the kernel runs the standard cell, steps first".into());
        }
        if view.has(4) || view.has(7) {
            return Err("the kernel takes neither sequence lengths nor peepholes".into());
        }
        if view.has(3) && view.constant(3).is_none() {
            return Err("the biases are no constant".into());
        }
        view.constant(2).ok_or("the weights are no constant")?;
        view.constant(1).ok_or("the weights are no constant")?;
        view.floats(&[0, 1, 2, 3, 5, 6])
    },
    build: lstm_kernel,
}];

/// Weights of one direction, as `kernels::lstm` multiplies them.
struct DirectionWeights {
    input: PackedB,
    state: PackedB,
    /// The sum of both biases.
    bias: Vec<f32>,
    reversed: bool,
}

struct LstmKernel {
    isa: Isa,
    hidden: usize,
    input: usize,
    directions: Arc<Vec<DirectionWeights>>,
}

fn lstm_kernel(view: &CpuNodeView<'_>) -> Result<Box<dyn CpuKernel>, String> {
    let direction = view.operator::<LstmOperator>()?.recurrence.direction;
    let shape = view.constant(1).map(|tensor| tensor.shape().to_vec()).unwrap_or_default();
    let [count, gates, input] = *shape else { return Err(format!("weights of shape {shape:?}")) };
    let hidden = gates / 4;
    let expected = [count, gates, hidden];
    if view.constant(2).is_none_or(|tensor| tensor.shape() != expected)
        || gates % 4 != 0
        || hidden == 0
        || count != direction.count()
    {
        return Err(format!("recurrent weights for {shape:?}"));
    }
    let biases = if view.has(3) { view.constant_floats(3)? } else { vec![0.0; count * gates * 2] };
    if biases.len() != count * gates * 2 {
        return Err(format!("{} biases", biases.len()));
    }
    let pass = |at: usize| -> Result<DirectionWeights, String> {
        let (of_input, of_state) = biases[at * gates * 2..].split_at(gates);
        let bias: Vec<f32> = of_input.iter().zip(of_state).map(|(a, b)| a + b).collect();
        Ok(DirectionWeights {
            input: packing::gates(view, 1, at * gates * input, input, hidden)?,
            state: packing::gates(view, 2, at * gates * hidden, hidden, hidden)?,
            bias: interleave_gates(view.device.isa, hidden, 1, &bias),
            reversed: direction == RecurrentDirection::Reverse || at == 1,
        })
    };
    let directions = Arc::new((0..count).map(pass).collect::<Result<Vec<_>, _>>()?);
    Ok(Box::new(LstmKernel { isa: view.device.isa, hidden, input, directions }))
}

/// The weights as the kernel takes them.
fn passes(directions: &[DirectionWeights]) -> Vec<LstmPass<'_>> {
    directions
        .iter()
        .map(|w| LstmPass { input: &w.input, state: &w.state, bias: &w.bias, reversed: w.reversed })
        .collect()
}

impl CpuKernel for LstmKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let [steps, batch, input] = *shapes.input(0)? else {
            return Err("X has no three axes".into());
        };
        if input != self.input {
            return Err(format!("X has {input} columns, the weights {}", self.input));
        }
        let hidden = self.hidden;
        let state = [self.directions.len(), batch, hidden];
        for index in [5, 6] {
            if let Ok(shape) = shapes.input(index)
                && *shape != state
            {
                return Err(format!("input {index} has shape {shape:?}, expected {state:?}"));
            }
        }
        let all = [steps, self.directions.len(), batch, hidden];
        for (index, wanted) in [&all[..], &state, &state].into_iter().enumerate() {
            if let Ok(shape) = shapes.output(index)
                && shape != wanted
            {
                return Err(format!("output {index} has shape {shape:?}, expected {wanted:?}"));
            }
        }
        if batch * steps == 0 {
            return Err("nothing to do".into());
        }
        let layer = LstmLayer { steps, batch, hidden, passes: &passes(&self.directions) };
        let elements = layer.scratch_len(self.isa);
        let directions = Arc::clone(&self.directions);
        let step = CpuStep::new(move |call| {
            let layer = LstmLayer { steps, batch, hidden, passes: &passes(&directions) };
            run(call, &layer, elements)
        });
        Ok(step.with_scratch(elements).without(&[1, 2, 3]))
    }

    fn weight_bytes(&self) -> WeightBytes {
        let matrices = self.directions.iter().flat_map(|pass| [&pass.input, &pass.state]);
        matrices.map(|packed| WeightBytes::new(packed.size_bytes(), packed.is_mapped())).sum()
    }
}

fn run(call: &mut StepCall<'_>, layer: &LstmLayer<'_>, elements: usize) -> Result<(), OpError> {
    let mut scratch = call.scratch_if(elements)?;
    let x = call.input::<f32>(0)?;
    let exec = call.exec;
    let initial = InitialStates { h: call.optional::<f32>(5)?, c: call.optional::<f32>(6)? };
    let mut wanted = |index: usize| {
        let present = matches!(call.outputs.get(index), Some(Some(_)));
        present.then(|| call.output::<f32>(index)).transpose()
    };
    let mut y = wanted(0)?;
    let mut h = wanted(1)?;
    let mut c = wanted(2)?;
    let outputs = LstmOutputs {
        y: y.as_mut().map(|y| y.slice()),
        h: h.as_mut().map(|h| h.slice()),
        c: c.as_mut().map(|c| c.slice()),
    };
    lstm(exec, layer, x, initial, outputs, scratch.split(elements).0);
    Ok(())
}
