//! Recurrent operators: the input's part of all steps in one product, then a product and the
//! cell's functions per step.

use galatea_graph::ops::recurrent::{CellActivation, Direction, Lstm};
use galatea_graph::{ONNX_DOMAIN, OpError};
use galatea_kernels::elementwise::{Unary, unary, unary_inplace};
use galatea_kernels::gemm::gemm;
use galatea_kernels::{Activation, Epilogue, Exec, PackedB, ThreadPool, Trans};

use crate::cpu::packing::Matrix;
use crate::cpu::{Call, Kernel, KernelRow, NodeView, Shapes, Step, WeightBytes};

/// The family's rows.
pub(super) const ROWS: &[KernelRow] = &[KernelRow {
    name: "lstm-f32-packed",
    domain: ONNX_DOMAIN,
    ops: &["LSTM"],
    supports: |view| {
        let op = view.operator::<Lstm>()?;
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

/// Weights of one direction. Gates are in ONNX's order: input, output, forget, cell.
struct Weights {
    /// `[input, 4 · hidden]`.
    input: PackedB,
    /// `[hidden, 4 · hidden]`.
    state: PackedB,
    /// The sum of both biases, `[4 · hidden]`.
    bias: Vec<f32>,
    reversed: bool,
}

struct LstmKernel {
    hidden: usize,
    input: usize,
    directions: std::sync::Arc<Vec<Weights>>,
}

/// Steps with fewer products than this run on the calling thread alone: handing a part to another
/// thread takes some microseconds, in which a core does about this many.
const SHARED_PRODUCTS: usize = 1 << 18;

fn lstm_kernel(view: &NodeView<'_>) -> Result<Box<dyn Kernel>, String> {
    let direction = view.operator::<Lstm>()?.recurrence.direction;
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
    let matrix = |slot: usize, at: usize, k: usize| {
        let start = at * gates * k;
        Matrix { input: slot, start, k, n: gates, trans: Trans::Yes, factor: 1.0 }.packed(view)
    };
    let pass = |at: usize| -> Result<Weights, String> {
        let (of_input, of_state) = biases[at * gates * 2..].split_at(gates);
        Ok(Weights {
            input: matrix(1, at, input)?,
            state: matrix(2, at, hidden)?,
            bias: of_input.iter().zip(of_state).map(|(a, b)| a + b).collect(),
            reversed: direction == Direction::Reverse || at == 1,
        })
    };
    let directions = (0..count).map(pass).collect::<Result<_, _>>()?;
    let directions = std::sync::Arc::new(directions);
    Ok(Box::new(LstmKernel { hidden, input, directions }))
}

/// Lengths of one run.
#[derive(Clone, Copy)]
struct Lengths {
    steps: usize,
    batch: usize,
    hidden: usize,
    directions: usize,
}

/// Memory of one pass.
struct Memory<'a> {
    /// The input's part of all steps' gates, `[steps, batch, 4 · hidden]`.
    projected: &'a mut [f32],
    /// The gates of a step, `[batch, 4 · hidden]`.
    gates: &'a mut [f32],
    /// `[batch, hidden]`.
    h: &'a mut [f32],
    /// `[batch, hidden]`.
    c: &'a mut [f32],
    /// `tanh` of `c`.
    squashed: &'a mut [f32],
}

impl<'a> Memory<'a> {
    fn elements(l: Lengths) -> usize {
        l.batch * l.hidden * (4 * l.steps + 4 + 3)
    }

    fn new(l: Lengths, all: &'a mut [f32]) -> Self {
        let state = l.batch * l.hidden;
        let (projected, rest) = all.split_at_mut(4 * state * l.steps);
        let (gates, rest) = rest.split_at_mut(4 * state);
        let (h, rest) = rest.split_at_mut(state);
        let (c, squashed) = rest.split_at_mut(state);
        Self { projected, gates, h, c, squashed }
    }
}

impl Kernel for LstmKernel {
    fn bind(&self, shapes: &Shapes) -> Result<Step, String> {
        let [steps, batch, input] = *shapes.input(0)? else {
            return Err("X has no three axes".into());
        };
        if input != self.input {
            return Err(format!("X has {input} columns, the weights {}", self.input));
        }
        let lengths =
            Lengths { steps, batch, hidden: self.hidden, directions: self.directions.len() };
        let state = [lengths.directions, batch, self.hidden];
        for index in [5, 6] {
            if let Some(Some((_, shape))) = shapes.inputs.get(index)
                && *shape != state
            {
                return Err(format!("input {index} has shape {shape:?}, expected {state:?}"));
            }
        }
        let all = [steps, lengths.directions, batch, self.hidden];
        for (index, wanted) in [&all[..], &state, &state].into_iter().enumerate() {
            if let Some(Some((_, shape))) = shapes.outputs.get(index)
                && shape != wanted
            {
                return Err(format!("output {index} has shape {shape:?}, expected {wanted:?}"));
            }
        }
        if batch * steps == 0 {
            return Err("nothing to do".into());
        }
        let directions = std::sync::Arc::clone(&self.directions);
        let products = batch * 4 * self.hidden * self.hidden;
        let alone = (products < SHARED_PRODUCTS).then(|| ThreadPool::new(1));
        let elements = Memory::elements(lengths);
        let step = Step::new(move |call| {
            let of_steps = Exec { pool: alone.as_ref().unwrap_or(call.exec.pool), ..call.exec };
            run(call, of_steps, lengths, &directions)
        });
        Ok(step.with_scratch(elements).without(&[1, 2, 3]))
    }

    fn weight_bytes(&self) -> WeightBytes {
        let matrices = self.directions.iter().flat_map(|pass| [&pass.input, &pass.state]);
        matrices.map(|packed| WeightBytes::new(packed.size_bytes(), packed.is_mapped())).sum()
    }
}

fn run(
    call: &mut Call<'_>,
    of_steps: Exec<'_>,
    l: Lengths,
    directions: &[Weights],
) -> Result<(), OpError> {
    let elements = Memory::elements(l);
    let mut scratch = call.scratch_if(elements)?;
    let mut memory = Memory::new(l, scratch.split(elements).0);
    let (x, exec) = (call.input::<f32>(0)?, call.exec);
    let (h0, c0) = (call.optional::<f32>(5)?, call.optional::<f32>(6)?);
    let mut wanted = |index: usize| {
        let present = matches!(call.outputs.get(index), Some(Some(_)));
        present.then(|| call.output::<f32>(index)).transpose()
    };
    let (mut y, mut last_h, mut last_c) = (wanted(0)?, wanted(1)?, wanted(2)?);
    let state = l.batch * l.hidden;
    for (number, weights) in directions.iter().enumerate() {
        let own = number * state..(number + 1) * state;
        let start = |to: &mut [f32], from: Option<&[f32]>| match from {
            Some(from) => to.copy_from_slice(&from[own.clone()]),
            None => to.fill(0.0),
        };
        start(memory.h, h0);
        start(memory.c, c0);
        let (gates, rows) = (4 * l.hidden, l.steps * l.batch);
        let bias = Epilogue::bias(&weights.bias);
        let k = weights.input.k();
        gemm(exec, rows, x, k, &weights.input, memory.projected, gates, &bias);
        for index in 0..l.steps {
            let at = if weights.reversed { l.steps - 1 - index } else { index };
            cell(of_steps, l, weights, &mut memory, at);
            if let Some(y) = &mut y {
                let to = (at * l.directions + number) * state;
                y.slice()[to..to + state].copy_from_slice(memory.h);
            }
        }
        if let Some(last) = &mut last_h {
            last.slice()[own.clone()].copy_from_slice(memory.h);
        }
        if let Some(last) = &mut last_c {
            last.slice()[own].copy_from_slice(memory.c);
        }
    }
    Ok(())
}

/// One step of one pass: new `h` and `c`.
fn cell(exec: Exec<'_>, l: Lengths, weights: &Weights, memory: &mut Memory<'_>, step: usize) {
    let (hidden, gates) = (l.hidden, 4 * l.hidden);
    let projected = &memory.projected[step * l.batch * gates..(step + 1) * l.batch * gates];
    let sum = Epilogue::default().with_residual(projected, gates);
    gemm(exec, l.batch, memory.h, hidden, &weights.state, memory.gates, gates, &sum);
    for row in memory.gates.chunks_exact_mut(gates) {
        let (sigmoid, tanh) = row.split_at_mut(3 * hidden);
        unary_inplace(exec, Unary::Activation(Activation::Sigmoid), sigmoid);
        unary_inplace(exec, Unary::Activation(Activation::Tanh), tanh);
    }
    for (row, c) in memory.gates.chunks_exact(gates).zip(memory.c.chunks_exact_mut(hidden)) {
        for (at, c) in c.iter_mut().enumerate() {
            *c = row[2 * hidden + at] * *c + row[at] * row[3 * hidden + at];
        }
    }
    unary(exec, Unary::Activation(Activation::Tanh), memory.c, memory.squashed);
    let rows = memory.gates.chunks_exact(gates).zip(memory.squashed.chunks_exact(hidden));
    for ((row, squashed), h) in rows.zip(memory.h.chunks_exact_mut(hidden)) {
        let output = &row[hidden..2 * hidden];
        for ((h, output), squashed) in h.iter_mut().zip(output).zip(squashed) {
            *h = output * squashed;
        }
    }
}
