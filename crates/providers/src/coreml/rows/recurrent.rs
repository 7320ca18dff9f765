//! Recurrent layers. Programs have the sequence first and the states of both directions side by side.

use galatea_formats::coreml::mil::{Arg, Var};
use galatea_graph::ops::recurrent::{CellActivation, Direction, Gru, Lstm, Recurrence, Rnn};
use galatea_graph::{Dim, Node};

use super::Row;
use crate::coreml::emit::{Emit, Refused, Result, refuse, small, small_all};

pub(super) const ROWS: &[Row] =
    &[Row::onnx("LSTM", lstm), Row::onnx("GRU", gru), Row::onnx("RNN", rnn)];

/// The first set of operators whose layers take FP16.
const HALVES_SINCE: u32 = 7;
/// The first set in which a reset gate may apply behind the product.
const RESET_AFTER_SINCE: u32 = 8;

/// A layer that is being written.
struct Layer<'n> {
    node: &'n Node,
    direction: Direction,
    hidden: usize,
    /// The sequence, first step first.
    x: Var,
    /// Where the parts of programs are found among ONNX's, gate by gate.
    gates: &'static [usize],
    /// The batch, and elements of a step.
    batch: Dim,
}

impl<'n> Layer<'n> {
    fn read(
        emit: &mut Emit<'_>,
        node: &'n Node,
        shared: &Recurrence,
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
        if shared.direction == Direction::Reverse {
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
        emit: &Emit<'_>,
        at: usize,
        (pass, first): (usize, usize),
        order: &[usize],
    ) -> Result<(Vec<f32>, usize)> {
        let shape = emit.shape(emit.input(self.node, at)?)?;
        let all = emit.numbers(self.node, at)?;
        let lost = || Refused(format!("input {at} has the shape {shape:?}"));
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
    fn weights(&self, emit: &mut Emit<'_>, at: usize, pass: usize) -> Result<Var> {
        let (all, width) = self.rows(emit, at, (pass, 0), self.gates)?;
        emit.floats(&[self.gates.len() * self.hidden, width], all)
    }

    /// The biases of a pass: of the input, and of the state.
    fn biases(&self, emit: &Emit<'_>, pass: usize) -> Result<[Vec<f32>; 2]> {
        let count = self.gates.len();
        if self.node.input(3).is_none() {
            return Ok([0, 1].map(|_| vec![0.0; count * self.hidden]));
        }
        let input = self.rows(emit, 3, (pass, 0), self.gates)?.0;
        Ok([input, self.rows(emit, 3, (pass, count), self.gates)?.0])
    }

    /// The sum of both.
    fn bias(&self, emit: &mut Emit<'_>, pass: usize) -> Result<Var> {
        let [input, state] = self.biases(emit, pass)?;
        let sum: Vec<f32> = input.iter().zip(&state).map(|(a, b)| a + b).collect();
        emit.floats(&[sum.len()], sum)
    }

    /// The first state `[batch, passes · hidden]`.
    fn state(&self, emit: &mut Emit<'_>, at: usize, batch_first: bool) -> Result<Var> {
        let width = self.passes() * self.hidden;
        let Some(id) = self.node.input(at) else {
            if let Some(batch) = self.batch.known() {
                return emit.floats(&[batch, width], vec![0.0; batch * width]);
            }
            let batch = emit.length_of(&self.x, 1)?;
            let axes = Arg::Ints(vec![0]);
            let batch = emit.op("expand_dims", vec![("x", Arg::Var(batch)), ("axes", axes)])?;
            let width = emit.table(&[1], vec![small(width)?])?;
            let shape = emit.joined(vec![batch, width], 0)?;
            let zero = emit.float(0.0);
            return emit.op("fill", vec![("shape", Arg::Var(shape)), ("value", zero)]);
        };
        let mut state = emit.value(id)?;
        if !batch_first {
            state = emit.transpose(&state, &[1, 0, 2])?;
        }
        let from = [self.batch.clone(), Dim::Known(self.passes()), Dim::Known(self.hidden)];
        emit.reshape_dims(&state, &from, &[self.batch.clone(), Dim::Known(width)])
    }

    /// The words of activations, which must be the same in both directions.
    fn words(&self, shared: &Recurrence, each: usize) -> Result<Vec<&'static str>> {
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
        emit: &mut Emit<'_>,
        shared: &Recurrence,
        steps: &Var,
        last: &[Var],
    ) -> Result<Vec<Var>> {
        let sequence = emit.dims(emit.input(self.node, 0)?)?;
        let length = sequence.get(usize::from(shared.batch_first)).cloned();
        let length = length.unwrap_or(Dim::Unknown);
        let width = Dim::Known(self.passes() * self.hidden);
        let cut = [Dim::Known(self.passes()), Dim::Known(self.hidden)];
        let mut steps = steps.clone();
        if self.direction == Direction::Reverse {
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
fn reversed(emit: &mut Emit<'_>, x: &Var) -> Result<Var> {
    emit.op("reverse", vec![("x", x.into()), ("axes", Arg::Ints(vec![0]))])
}

/// What programs call an activation that they compute as ONNX does.
fn word(activation: CellActivation) -> Result<&'static str> {
    Ok(match activation {
        CellActivation::Tanh => "tanh",
        CellActivation::Sigmoid => "sigmoid",
        CellActivation::Relu => "relu",
        other => return refuse(format!("a layer with the activation {other:?}")),
    })
}

/// Gates are input, forget, output, cell; in ONNX input, output, forget, cell.
fn lstm(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    let Some(operator) = node.operator::<Lstm>() else { return refuse("another kind of layer") };
    let shared = &operator.recurrence;
    if operator.input_forget {
        return refuse("a layer whose forget gate is what the input gate leaves");
    }
    let layer = Layer::read(emit, node, shared, &[0, 2, 1, 3])?;
    let words = layer.words(shared, 3)?;
    let &[gate, cell, output] = words.as_slice() else {
        return refuse("a layer without three activations");
    };
    let hidden = layer.state(emit, 5, shared.batch_first)?;
    let state = layer.state(emit, 6, shared.batch_first)?;
    let direction = if layer.passes() == 2 { "bidirectional" } else { "forward" };
    let mut inputs = vec![
        ("x", (&layer.x).into()),
        ("initial_h", Arg::Var(hidden)),
        ("initial_c", Arg::Var(state)),
        ("direction", Arg::Text(direction)),
        ("output_sequence", Arg::Bool(true)),
        ("recurrent_activation", Arg::Text(gate)),
        ("cell_activation", Arg::Text(cell)),
        ("activation", Arg::Text(output)),
    ];
    let names = [
        ["weight_ih", "weight_hh", "bias", "peephole"],
        ["weight_ih_back", "weight_hh_back", "bias_back", "peephole_back"],
    ];
    for (pass, [input, state, bias, peephole]) in names.into_iter().enumerate().take(layer.passes())
    {
        inputs.push((input, Arg::Var(layer.weights(emit, 1, pass)?)));
        inputs.push((state, Arg::Var(layer.weights(emit, 2, pass)?)));
        inputs.push((bias, Arg::Var(layer.bias(emit, pass)?)));
        if node.input(7).is_some() {
            let (all, _) = layer.rows(emit, 7, (pass, 0), &[0, 2, 1])?;
            inputs.push((peephole, Arg::Var(emit.floats(&[all.len()], all)?)));
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
    emit: &mut Emit<'_>,
    (layer, shared): (&Layer<'_>, &Recurrence),
    operator: &str,
    parameters: impl Fn(&mut Emit<'_>, usize) -> Result<Vec<(&'static str, Arg)>>,
) -> Result<Vec<Var>> {
    let first = layer.state(emit, 5, shared.batch_first)?;
    let (mut steps, mut last) = (Vec::new(), Vec::new());
    for pass in 0..layer.passes() {
        let state = match layer.passes() {
            1 => first.clone(),
            _ => columns(emit, &first, pass * layer.hidden, (pass + 1) * layer.hidden)?,
        };
        // The second pass reads the last step first, and so it gives its steps.
        let x = if pass == 1 { reversed(emit, &layer.x)? } else { layer.x.clone() };
        let mut inputs = parameters(emit, pass)?;
        inputs.extend([
            ("x", Arg::Var(x)),
            ("initial_h", Arg::Var(state)),
            ("weight_ih", Arg::Var(layer.weights(emit, 1, pass)?)),
            ("weight_hh", Arg::Var(layer.weights(emit, 2, pass)?)),
            ("direction", Arg::Text("forward")),
            ("output_sequence", Arg::Bool(true)),
        ]);
        let mut found = emit.op_of(operator, inputs, 2)?.into_iter();
        let (Some(all), Some(end)) = (found.next(), found.next()) else {
            return refuse("a layer without results");
        };
        steps.push(if pass == 1 { reversed(emit, &all)? } else { all });
        last.push(end);
    }
    let (steps, last) = (emit.joined(steps, 2)?, emit.joined(last, 1)?);
    layer.give(emit, shared, &steps, &[last])
}

/// Columns of a matrix.
fn columns(emit: &mut Emit<'_>, x: &Var, from: usize, to: usize) -> Result<Var> {
    let inputs = vec![
        ("x", x.into()),
        ("begin", Arg::Ints(small_all(&[0, from])?)),
        ("end", Arg::Ints(small_all(&[0, to])?)),
        ("stride", Arg::Ints(vec![1, 1])),
        ("begin_mask", Arg::Bools(vec![true, false])),
        ("end_mask", Arg::Bools(vec![true, false])),
        ("squeeze_mask", Arg::Bools(vec![false, false])),
    ];
    emit.op("slice_by_index", inputs)
}

/// Gates are reset, output, update; in ONNX update, reset, output.
fn gru(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    let Some(operator) = node.operator::<Gru>() else { return refuse("another kind of layer") };
    let shared = &operator.recurrence;
    let after = operator.linear_before_reset;
    if after && emit.opset() < RESET_AFTER_SINCE {
        return refuse("a reset gate behind the product, which programs of macOS 15 have");
    }
    let layer = Layer::read(emit, node, shared, &[1, 2, 0])?;
    let words = layer.words(shared, 2)?;
    let &[gate, output] = words.as_slice() else {
        return refuse("a layer without two activations");
    };
    passes(emit, (&layer, shared), "gru", |emit, pass| {
        let mut inputs =
            vec![("recurrent_activation", Arg::Text(gate)), ("activation", Arg::Text(output))];
        if after {
            let [input, state] = layer.biases(emit, pass)?;
            inputs.push(("input_bias", Arg::Var(emit.floats(&[input.len()], input)?)));
            inputs.push(("bias", Arg::Var(emit.floats(&[state.len()], state)?)));
            inputs.push(("reset_after", Arg::Bool(true)));
        } else {
            inputs.push(("bias", Arg::Var(layer.bias(emit, pass)?)));
        }
        Ok(inputs)
    })
}

fn rnn(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    let Some(operator) = node.operator::<Rnn>() else { return refuse("another kind of layer") };
    let shared = &operator.recurrence;
    let layer = Layer::read(emit, node, shared, &[0])?;
    let words = layer.words(shared, 1)?;
    let &[activation] = words.as_slice() else {
        return refuse("a layer without an activation");
    };
    passes(emit, (&layer, shared), "rnn", |emit, pass| {
        let bias = layer.bias(emit, pass)?;
        Ok(vec![("activation", Arg::Text(activation)), ("bias", Arg::Var(bias))])
    })
}
