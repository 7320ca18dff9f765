//! Gated recurrent units and the simple recurrent network.

use std::sync::Arc;

use galatea_graph::ONNX_DOMAIN;
use galatea_graph::ops::recurrent::{
    CellActivation, Gru, RecurrentAttributes, RecurrentDirection, Rnn,
};
use galatea_kernels::recurrent::{GatedCell, GatedLayer, GatedOutputs, GatedPass, recurrent};
use galatea_kernels::{PackedB, Transposition};

use crate::cpu::packing::ConstantMatrix;
use crate::cpu::{CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes, WeightBytes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "gru-f32-packed",
        domain: ONNX_DOMAIN,
        ops: &["GRU"],
        supports: |view| supports(view, gru_cell(view)?, &view.operator::<Gru>()?.recurrence),
        build: |view| recurrent_kernel(view, gru_cell(view)?, &view.operator::<Gru>()?.recurrence),
    },
    CpuKernelRow {
        name: "rnn-f32-packed",
        domain: ONNX_DOMAIN,
        ops: &["RNN"],
        supports: |view| supports(view, rnn_cell(view)?, &view.operator::<Rnn>()?.recurrence),
        build: |view| recurrent_kernel(view, rnn_cell(view)?, &view.operator::<Rnn>()?.recurrence),
    },
];

fn gru_cell(view: &CpuNodeView<'_>) -> Result<GatedCell, String> {
    let op = view.operator::<Gru>()?;
    let functions = [CellActivation::Sigmoid, CellActivation::Tanh];
    if op.recurrence.activations.chunks(2).any(|chunk| *chunk != functions) {
        return Err("the kernel runs the standard cell".into());
    }
    Ok(match op.linear_before_reset {
        true => GatedCell::ResetProduct,
        false => GatedCell::ResetState,
    })
}

fn rnn_cell(view: &CpuNodeView<'_>) -> Result<GatedCell, String> {
    let activations = &view.operator::<Rnn>()?.recurrence.activations;
    let all = |one: CellActivation| activations.iter().all(|function| *function == one);
    match activations.first() {
        Some(CellActivation::Tanh) if all(CellActivation::Tanh) => Ok(GatedCell::Tanh),
        Some(CellActivation::Relu) if all(CellActivation::Relu) => Ok(GatedCell::Relu),
        other => Err(format!("no kernel for cells of {other:?}")),
    }
}

fn supports(
    view: &CpuNodeView<'_>,
    _: GatedCell,
    recurrence: &RecurrentAttributes,
) -> Result<(), String> {
    if recurrence.clip.is_some() || recurrence.batch_first {
        return Err("the kernel runs cells without bounds, steps first".into());
    }
    if view.has(4) {
        return Err("the kernel takes no sequence lengths".into());
    }
    if view.has(3) && view.constant(3).is_none() {
        return Err("the biases are no constant".into());
    }
    view.constant(1).and(view.constant(2)).ok_or("the weights are no constant")?;
    view.floats(&[0, 1, 2, 3, 5])
}

/// Weights of one direction.
struct GatedWeights {
    input: PackedB,
    state: PackedB,
    kept: Option<PackedB>,
    bias: Vec<f32>,
    state_bias: Vec<f32>,
    reversed: bool,
}

struct RecurrentKernel {
    cell: GatedCell,
    hidden: usize,
    input: usize,
    directions: Arc<Vec<GatedWeights>>,
}

fn recurrent_kernel(
    view: &CpuNodeView<'_>,
    cell: GatedCell,
    recurrence: &RecurrentAttributes,
) -> Result<Box<dyn CpuKernel>, String> {
    let shape = view.constant(1).map(|tensor| tensor.shape().to_vec()).unwrap_or_default();
    let [count, rows, input] = *shape else { return Err(format!("weights of shape {shape:?}")) };
    let gates = cell.gates();
    let hidden = rows / gates;
    let expected = [count, rows, hidden];
    if view.constant(2).is_none_or(|tensor| tensor.shape() != expected)
        || !rows.is_multiple_of(gates)
        || hidden == 0
        || count != recurrence.direction.count()
    {
        return Err(format!("recurrent weights for {shape:?}"));
    }
    let biases = if view.has(3) { view.constant_floats(3)? } else { vec![0.0; count * rows * 2] };
    if biases.len() != count * rows * 2 {
        return Err(format!("{} biases", biases.len()));
    }
    let matrix = |at: usize, start: usize, k: usize, n: usize| {
        let (trans, factor) = (Transposition::Yes, 1.0);
        ConstantMatrix { input: at, start, k, n, trans, factor }.packed(view)
    };
    let pass = |at: usize| -> Result<GatedWeights, String> {
        let (of_input, of_state) = biases[at * rows * 2..(at + 1) * rows * 2].split_at(rows);
        let mut bias: Vec<f32> = of_input.iter().zip(of_state).map(|(a, b)| a + b).collect();
        let hidden_gate = (gates - 1) * hidden..;
        let mut state_bias = Vec::new();
        if cell == GatedCell::ResetProduct {
            bias[hidden_gate.clone()].copy_from_slice(&of_input[hidden_gate.clone()]);
            state_bias = of_state[hidden_gate].to_vec();
        }
        let (start, own) = (at * rows * hidden, cell.state_gates() * hidden);
        let kept = match cell {
            GatedCell::ResetState => Some(matrix(2, start + own * hidden, hidden, hidden)?),
            _ => None,
        };
        Ok(GatedWeights {
            input: matrix(1, at * rows * input, input, rows)?,
            state: matrix(2, start, hidden, own)?,
            kept,
            bias,
            state_bias,
            reversed: recurrence.direction == RecurrentDirection::Reverse || at == 1,
        })
    };
    let directions = Arc::new((0..count).map(pass).collect::<Result<Vec<_>, _>>()?);
    Ok(Box::new(RecurrentKernel { cell, hidden, input, directions }))
}

/// The weights as the kernel takes them.
fn passes(directions: &[GatedWeights]) -> Vec<GatedPass<'_>> {
    directions
        .iter()
        .map(|w| GatedPass {
            input: &w.input,
            state: &w.state,
            kept: w.kept.as_ref(),
            bias: &w.bias,
            state_bias: &w.state_bias,
            reversed: w.reversed,
        })
        .collect()
}

impl CpuKernel for RecurrentKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let [steps, batch, input] = *shapes.input(0)? else {
            return Err("X has no three axes".into());
        };
        if input != self.input {
            return Err(format!("X has {input} columns, the weights {}", self.input));
        }
        let (cell, hidden, count) = (self.cell, self.hidden, self.directions.len());
        let state = [count, batch, hidden];
        let all = [steps, count, batch, hidden];
        let expected =
            [(shapes.input(5), &state[..]), (shapes.output(0), &all), (shapes.output(1), &state)];
        for (shape, wanted) in expected {
            if let Ok(shape) = shape
                && shape != wanted
            {
                return Err(format!("a value of shape {shape:?}, expected {wanted:?}"));
            }
        }
        if batch * steps == 0 {
            return Err("nothing to do".into());
        }
        let directions = Arc::clone(&self.directions);
        let layer = GatedLayer { cell, steps, batch, hidden, passes: &passes(&directions) };
        let elements = layer.scratch_len();
        let wants = [shapes.wants(0), shapes.wants(1)];
        let directions = Arc::clone(&self.directions);
        let step = CpuStep::new(move |call| {
            let layer = GatedLayer { cell, steps, batch, hidden, passes: &passes(&directions) };
            let mut scratch = call.scratch_if(elements)?;
            let (x, initial) = (call.input::<f32>(0)?, call.optional::<f32>(5)?);
            let mut y = wants[0].then(|| call.output::<f32>(0)).transpose()?;
            let mut h = wants[1].then(|| call.output::<f32>(1)).transpose()?;
            let outputs =
                GatedOutputs { y: y.as_mut().map(|y| y.slice()), h: h.as_mut().map(|h| h.slice()) };
            recurrent(call.exec, &layer, x, initial, outputs, scratch.split(elements).0);
            Ok(())
        });
        Ok(step.with_scratch(elements).without(&[1, 2, 3]))
    }

    fn weight_bytes(&self) -> WeightBytes {
        let all = self.directions.iter();
        let matrices =
            all.flat_map(|pass| [Some(&pass.input), Some(&pass.state), pass.kept.as_ref()]);
        let bytes = |packed: &PackedB| WeightBytes::new(packed.size_bytes(), packed.is_mapped());
        matrices.flatten().map(bytes).sum()
    }
}
