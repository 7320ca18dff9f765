//! Recurrent layers. Programs have the sequence first and the states of both directions side by side.

use galatea_formats::coreml::mil::{MilArg, MilVar};
use galatea_graph::ops::recurrent::{
    CellActivation, Gru, Lstm, RecurrentAttributes, RecurrentDirection, Rnn,
};
use galatea_graph::{Dim, Node};

use super::EmitRow;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, UnwritableNode, refuse, small, small_all};

pub(super) const ROWS: &[EmitRow] =
    &[EmitRow::onnx("LSTM", lstm), EmitRow::onnx("GRU", gru), EmitRow::onnx("RNN", rnn)];

/// The first set of operators whose layers take FP16.
const HALVES_SINCE: u32 = 7;
/// The first set in which a reset gate may apply behind the product.
const RESET_AFTER_SINCE: u32 = 8;

/// A layer that is being written.
struct RecurrentLayer<'n> {
    node: &'n Node,
    direction: RecurrentDirection,
    hidden: usize,
    /// The sequence, first step first.
    x: MilVar,
    /// Where the parts of programs are found among ONNX's, gate by gate.
    gates: &'static [usize],
    /// The batch, and elements of a step.
    batch: Dim,
}

impl<'n> RecurrentLayer<'n> {
    fn read(
        emit: &mut ProgramEmitter<'_>,
        node: &'n Node,
        shared: &RecurrentAttributes,
        gates: &'static [usize],
    ) -> Result<Self> {
        if emit.opset() < HALVES_SINCE {
            emit.widen();
        }
        if shared.clip.is_some() {
            return refuse("arguments of activations that are limited (clip)");
        }
        if node.input(4).is_some() {
            return refuse("sequences of several lengths (sequence_lens)");
        }
        let weights = emit.shape(emit.input(node, 2)?)?;
        let &[_, _, hidden] = weights.as_slice() else {
            return refuse(format!("weights of the state of shape {weights:?}"));
        };
        let dims = emit.dims(emit.input(node, 0)?)?;
        let mut x = emit.var(node, 0)?;
        if shared.batch_first {
            x = emit.transpose(&x, &[1, 0, 2])?;
        }
        let batch = dims.get(usize::from(!shared.batch_first)).cloned().unwrap_or(Dim::Unknown);
        if shared.direction == RecurrentDirection::Reverse {
            x = reversed(emit, &x)?;
        }
        Ok(Self { node, direction: shared.direction, hidden, x, gates, batch })
    }

    fn passes(&self) -> usize {
        self.direction.count()
    }

    /// Rows of a parameter of a pass, `[passes, parts · hidden, …]`, in the order of programs; `first`
    /// is the part that they begin with.
    fn rows(
        &self,
        emit: &ProgramEmitter<'_>,
        at: usize,
        pass: usize,
        first: usize,
        order: &[usize],
    ) -> Result<(Vec<f32>, usize)> {
        let shape = emit.shape(emit.input(self.node, at)?)?;
        let all = emit.numbers(self.node, at)?;
        let lost = || UnwritableNode(format!("input {at} has the shape {shape:?}"));
        let rows = shape.get(1).copied().ok_or_else(lost)?;
        let width: usize = shape.iter().skip(2).product();
        let mut found = Vec::with_capacity(order.len() * self.hidden * width);
        for &gate in order {
            let start = (pass * rows + (first + gate) * self.hidden) * width;
            let part = all.get(start..start + self.hidden * width).ok_or_else(lost)?;
            found.extend_from_slice(part);
        }
        Ok((found, width))
    }

    /// The weights of a pass for the input or for the state.
    fn weights(&self, emit: &mut ProgramEmitter<'_>, at: usize, pass: usize) -> Result<MilVar> {
        let (all, width) = self.rows(emit, at, pass, 0, self.gates)?;
        emit.floats(&[self.gates.len() * self.hidden, width], all)
    }

    /// The biases of a pass: of the input, and of the state.
    fn biases(&self, emit: &ProgramEmitter<'_>, pass: usize) -> Result<[Vec<f32>; 2]> {
        let count = self.gates.len();
        if self.node.input(3).is_none() {
            return Ok([0, 1].map(|_| vec![0.0; count * self.hidden]));
        }
        let input = self.rows(emit, 3, pass, 0, self.gates)?.0;
        Ok([input, self.rows(emit, 3, pass, count, self.gates)?.0])
    }

    /// The sum of both.
    fn bias(&self, emit: &mut ProgramEmitter<'_>, pass: usize) -> Result<MilVar> {
        let [input, state] = self.biases(emit, pass)?;
        let sum: Vec<f32> = input.iter().zip(&state).map(|(a, b)| a + b).collect();
        emit.floats(&[sum.len()], sum)
    }

    /// The first state `[batch, passes · hidden]`.
    fn state(&self, emit: &mut ProgramEmitter<'_>, at: usize, batch_first: bool) -> Result<MilVar> {
        let width = self.passes() * self.hidden;
        let Some(id) = self.node.input(at) else {
            if let Some(batch) = self.batch.known() {
                return emit.floats(&[batch, width], vec![0.0; batch * width]);
            }
            let batch = emit.length_of(&self.x, 1)?;
            let axes = MilArg::Ints(vec![0]);
            let batch = emit.op("expand_dims", vec![("x", MilArg::Var(batch)), ("axes", axes)])?;
            let width = emit.table(&[1], vec![small(width)?])?;
            let shape = emit.joined(vec![batch, width], 0)?;
            let zero = emit.float(0.0);
            return emit.op("fill", vec![("shape", MilArg::Var(shape)), ("value", zero)]);
        };
        let mut state = emit.value(id)?;
        if !batch_first {
            state = emit.transpose(&state, &[1, 0, 2])?;
        }
        let from = [self.batch.clone(), Dim::Known(self.passes()), Dim::Known(self.hidden)];
        emit.reshape_dims(&state, &from, &[self.batch.clone(), Dim::Known(width)])
    }

    /// The words of activations, which must be the same in both directions.
    fn words(&self, shared: &RecurrentAttributes, each: usize) -> Result<Vec<&'static str>> {
        let all = shared.activations.iter().map(|&one| word(one)).collect::<Result<Vec<_>>>()?;
        let (first, second) = all.split_at(each.min(all.len()));
        match second.is_empty() || first == second {
            true => Ok(first.to_vec()),
            false => refuse("activations that differ by direction"),
        }
    }

    /// The outputs of the node, from steps `[steps, batch, passes · hidden]` and last states
    /// `[batch, passes · hidden]`.
    fn give(
        &self,
        emit: &mut ProgramEmitter<'_>,
        shared: &RecurrentAttributes,
        steps: &MilVar,
        last: &[MilVar],
    ) -> Result<Vec<MilVar>> {
        let sequence = emit.dims(emit.input(self.node, 0)?)?;
        let length = sequence.get(usize::from(shared.batch_first)).cloned();
        let length = length.unwrap_or(Dim::Unknown);
        let width = Dim::Known(self.passes() * self.hidden);
        let cut = [Dim::Known(self.passes()), Dim::Known(self.hidden)];
        let mut steps = steps.clone();
        if self.direction == RecurrentDirection::Reverse {
            steps = reversed(emit, &steps)?;
        }
        let from = [length.clone(), self.batch.clone(), width.clone()];
        let to = [&[length, self.batch.clone()][..], &cut].concat();
        let steps = emit.reshape_dims(&steps, &from, &to)?;
        // Steps, batch, passes, hidden so far.
        let order = if shared.batch_first { [1, 0, 2, 3] } else { [0, 2, 1, 3] };
        let mut results = vec![emit.transpose(&steps, &order)?];
        for state in last {
            let to = [&[self.batch.clone()][..], &cut].concat();
            let state = emit.reshape_dims(state, &[self.batch.clone(), width.clone()], &to)?;
            results.push(match shared.batch_first {
                true => state,
                false => emit.transpose(&state, &[1, 0, 2])?,
            });
        }
        Ok(results)
    }
}

/// The last step first.
fn reversed(emit: &mut ProgramEmitter<'_>, x: &MilVar) -> Result<MilVar> {
    emit.op("reverse", vec![("x", x.into()), ("axes", MilArg::Ints(vec![0]))])
}

/// Returns the name in programs of an activation that they compute like ONNX.
fn word(activation: CellActivation) -> Result<&'static str> {
    Ok(match activation {
        CellActivation::Tanh => "tanh",
        CellActivation::Sigmoid => "sigmoid",
        CellActivation::Relu => "relu",
        other => return refuse(format!("a layer with the activation {other:?}")),
    })
}

/// Gates are input, forget, output, cell; in ONNX input, output, forget, cell.
fn lstm(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Lstm>() else { return refuse("another kind of layer") };
    let shared = &operator.recurrence;
    if operator.input_forget {
        return refuse("a layer whose forget gate is what the input gate leaves");
    }
    let layer = RecurrentLayer::read(emit, node, shared, &[0, 2, 1, 3])?;
    let words = layer.words(shared, 3)?;
    let &[gate, cell, output] = words.as_slice() else {
        return refuse("a layer without three activations");
    };
    let hidden = layer.state(emit, 5, shared.batch_first)?;
    let state = layer.state(emit, 6, shared.batch_first)?;
    let direction = if layer.passes() == 2 { "bidirectional" } else { "forward" };
    let mut inputs = vec![
        ("x", (&layer.x).into()),
        ("initial_h", MilArg::Var(hidden)),
        ("initial_c", MilArg::Var(state)),
        ("direction", MilArg::Text(direction)),
        ("output_sequence", MilArg::Bool(true)),
        ("recurrent_activation", MilArg::Text(gate)),
        ("cell_activation", MilArg::Text(cell)),
        ("activation", MilArg::Text(output)),
    ];
    let names = [
        ["weight_ih", "weight_hh", "bias", "peephole"],
        ["weight_ih_back", "weight_hh_back", "bias_back", "peephole_back"],
    ];
    for (pass, [input, state, bias, peephole]) in names.into_iter().enumerate().take(layer.passes())
    {
        inputs.push((input, MilArg::Var(layer.weights(emit, 1, pass)?)));
        inputs.push((state, MilArg::Var(layer.weights(emit, 2, pass)?)));
        inputs.push((bias, MilArg::Var(layer.bias(emit, pass)?)));
        if node.input(7).is_some() {
            let (all, _) = layer.rows(emit, 7, pass, 0, &[0, 2, 1])?;
            inputs.push((peephole, MilArg::Var(emit.floats(&[all.len()], all)?)));
        }
    }
    match emit.op_of("lstm", inputs, 3)?.as_slice() {
        [steps, last @ ..] => layer.give(emit, shared, steps, last),
        [] => refuse("a layer without results"),
    }
}

/// A layer that programs have for one direction: its passes one by one, side by side. `parameters` are
/// those of a pass.
fn passes(
    emit: &mut ProgramEmitter<'_>,
    layer: &RecurrentLayer<'_>,
    shared: &RecurrentAttributes,
    operator: &str,
    parameters: impl Fn(&mut ProgramEmitter<'_>, usize) -> Result<Vec<(&'static str, MilArg)>>,
) -> Result<Vec<MilVar>> {
    let first = layer.state(emit, 5, shared.batch_first)?;
    let mut steps = Vec::new();
    let mut last = Vec::new();
    for pass in 0..layer.passes() {
        let state = match layer.passes() {
            1 => first.clone(),
            _ => columns(emit, &first, pass * layer.hidden, (pass + 1) * layer.hidden)?,
        };
        // The second pass reads the last step first, and so it gives its steps.
        let x = if pass == 1 { reversed(emit, &layer.x)? } else { layer.x.clone() };
        let mut inputs = parameters(emit, pass)?;
        inputs.extend([
            ("x", MilArg::Var(x)),
            ("initial_h", MilArg::Var(state)),
            ("weight_ih", MilArg::Var(layer.weights(emit, 1, pass)?)),
            ("weight_hh", MilArg::Var(layer.weights(emit, 2, pass)?)),
            ("direction", MilArg::Text("forward")),
            ("output_sequence", MilArg::Bool(true)),
        ]);
        let mut found = emit.op_of(operator, inputs, 2)?.into_iter();
        let (Some(all), Some(end)) = (found.next(), found.next()) else {
            return refuse("a layer without results");
        };
        steps.push(if pass == 1 { reversed(emit, &all)? } else { all });
        last.push(end);
    }
    let steps = emit.joined(steps, 2)?;
    let last = emit.joined(last, 1)?;
    layer.give(emit, shared, &steps, &[last])
}

/// Columns of a matrix.
fn columns(emit: &mut ProgramEmitter<'_>, x: &MilVar, from: usize, to: usize) -> Result<MilVar> {
    let inputs = vec![
        ("x", x.into()),
        ("begin", MilArg::Ints(small_all(&[0, from])?)),
        ("end", MilArg::Ints(small_all(&[0, to])?)),
        ("stride", MilArg::Ints(vec![1, 1])),
        ("begin_mask", MilArg::Bools(vec![true, false])),
        ("end_mask", MilArg::Bools(vec![true, false])),
        ("squeeze_mask", MilArg::Bools(vec![false, false])),
    ];
    emit.op("slice_by_index", inputs)
}

/// Gates are reset, output, update; in ONNX update, reset, output.
fn gru(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Gru>() else { return refuse("another kind of layer") };
    let shared = &operator.recurrence;
    let after = operator.linear_before_reset;
    if after && emit.opset() < RESET_AFTER_SINCE {
        return refuse("a reset gate behind the product, which programs of macOS 15 have");
    }
    let layer = RecurrentLayer::read(emit, node, shared, &[1, 2, 0])?;
    let words = layer.words(shared, 2)?;
    let &[gate, output] = words.as_slice() else {
        return refuse("a layer without two activations");
    };
    passes(emit, &layer, shared, "gru", |emit, pass| {
        let mut inputs = vec![
            ("recurrent_activation", MilArg::Text(gate)),
            ("activation", MilArg::Text(output)),
        ];
        if after {
            let [input, state] = layer.biases(emit, pass)?;
            inputs.push(("input_bias", MilArg::Var(emit.floats(&[input.len()], input)?)));
            inputs.push(("bias", MilArg::Var(emit.floats(&[state.len()], state)?)));
            inputs.push(("reset_after", MilArg::Bool(true)));
        } else {
            inputs.push(("bias", MilArg::Var(layer.bias(emit, pass)?)));
        }
        Ok(inputs)
    })
}

fn rnn(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Rnn>() else { return refuse("another kind of layer") };
    let shared = &operator.recurrence;
    let layer = RecurrentLayer::read(emit, node, shared, &[0])?;
    let words = layer.words(shared, 1)?;
    let &[activation] = words.as_slice() else {
        return refuse("a layer without an activation");
    };
    passes(emit, &layer, shared, "rnn", |emit, pass| {
        let bias = layer.bias(emit, pass)?;
        Ok(vec![("activation", MilArg::Text(activation)), ("bias", MilArg::Var(bias))])
    })
}
