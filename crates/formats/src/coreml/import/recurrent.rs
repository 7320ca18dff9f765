//! Recurrent layers: a sequence comes first, then the batch.

use galatea_graph::{AttributeValue, Attributes, Fact, ONNX_DOMAIN, ValueId};
use galatea_tensor::{ByteString, DataType, Tensor};

use super::LoweringRow;
use super::activation::single;
use super::lowering::{ProgramLowering, Result, attributes, text};
use super::operation::LoweredOperation;
use super::shape::signed;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] =
    &[LoweringRow::new("lstm", lstm), LoweringRow::new("gru", gru), LoweringRow::new("rnn", rnn)];

/// In which order the steps of a sequence are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepOrder {
    Forward,
    Reverse,
    Bidirectional,
}

impl StepOrder {
    fn read(low: &mut ProgramLowering, op: &LoweredOperation<'_>, both: bool) -> Result<Self> {
        let names = ["forward", "reverse", "bidirectional"];
        let known = if both { &names[..] } else { &names[..2] };
        let all = [Self::Forward, Self::Reverse, Self::Bidirectional];
        let chosen = low.choice(op, "direction", known)?;
        Ok(all.get(chosen).copied().unwrap_or(Self::Forward))
    }
}

/// A layer that is being lowered.
struct LoweredRecurrence {
    x: ValueId,
    dtype: DataType,
    /// Length of a state in one direction.
    hidden: usize,
    direction: StepOrder,
    /// Where the parts for each gate are found, in ONNX's order.
    gates: &'static [usize],
    /// True if every step is an output, false for the last alone.
    every: bool,
}

impl LoweredRecurrence {
    /// Reads what all layers have. A layer that goes backwards is one that goes forwards over the
    /// reversed sequence: its first result is that of the last step.
    fn read(
        low: &mut ProgramLowering,
        op: &LoweredOperation<'_>,
        gates: &'static [usize],
        both: bool,
    ) -> Result<Self> {
        let mut x = low.required(op, "x")?;
        if low.rank(x)? != 3 {
            return Err(CoreMlError::invalid(format!("x has {} axes, expected 3", low.rank(x)?)));
        }
        let weights = low.required(op, "weight_hh")?;
        // What is no constant may be said to have any length.
        let held = low.fact(weights)?.value.as_ref().map(Tensor::shape);
        let Some(&[rows, hidden]) = held else {
            let found = low.fact(weights)?;
            let text = format!("input 'weight_hh' is {found}, expected a constant of two axes");
            return Err(CoreMlError::invalid(text));
        };
        if Some(rows) != hidden.checked_mul(gates.len()) || hidden == 0 {
            let count = gates.len();
            let text = format!("weights [{rows}, {hidden}] of the state, expected {count} gates");
            return Err(CoreMlError::invalid(text));
        }
        let direction = StepOrder::read(low, op, both)?;
        if direction == StepOrder::Reverse {
            let last = low.integers(&[-1]);
            let before = low.integers(&[i64::MIN]);
            let axis = low.integers(&[0]);
            let step = low.integers(&[-1]);
            x = low.plain("Slice", &[x, last, before, axis, step])?;
        }
        let every = low.flag(op, "output_sequence", false)?;
        Ok(Self { x, dtype: low.dtype(x)?, hidden, direction, gates, every })
    }

    fn passes(&self) -> usize {
        if self.direction == StepOrder::Bidirectional { 2 } else { 1 }
    }

    /// A parameter with a part for each gate, the parts in ONNX's order.
    fn reordered(
        &self,
        low: &mut ProgramLowering,
        found: ValueId,
        order: &[usize],
    ) -> Result<ValueId> {
        let found = low.cast(found, self.dtype)?;
        if order.is_sorted() {
            return Ok(found);
        }
        let rows = order.iter().flat_map(|gate| gate * self.hidden..(gate + 1) * self.hidden);
        let rows: Vec<i64> = rows.map(signed).collect();
        let rows = low.integers(&rows);
        low.node("Gather", &attributes([("axis", 0_i64.into())]), &[found, rows])
    }

    /// A parameter of all passes along a new first axis, in ONNX's order of gates.
    fn parameter(
        &self,
        low: &mut ProgramLowering,
        op: &LoweredOperation<'_>,
        forward: &'static str,
        back: &'static str,
        order: &[usize],
    ) -> Result<Option<ValueId>> {
        let mut each = Vec::new();
        for name in [forward, back].into_iter().take(self.passes()) {
            let Some(found) = low.optional(op, name)? else { continue };
            let found = self.reordered(low, found, order)?;
            each.push(low.unsqueeze(found, &[0])?);
        }
        if self.passes() == 1 && !back.is_empty() {
            // It is there for both directions alone.
            op.ignore(back);
        }
        match each.as_slice() {
            [] => Ok(None),
            [one] if self.passes() == 1 => Ok(Some(*one)),
            [_, _] => Ok(Some(low.node("Concat", &attributes([("axis", 0_i64.into())]), &each)?)),
            _ => {
                let text = format!("there is one of the inputs '{forward}' and '{back}' alone");
                Err(CoreMlError::invalid(text))
            }
        }
    }

    /// Returns the parameter like [`LoweredRecurrence::parameter`]; it must be there.
    fn weights(
        &self,
        low: &mut ProgramLowering,
        op: &LoweredOperation<'_>,
        names: [&'static str; 2],
    ) -> Result<ValueId> {
        let found = self.parameter(low, op, names[0], names[1], self.gates)?;
        found.ok_or_else(|| CoreMlError::invalid(format!("input '{}' is missing", names[0])))
    }

    /// Biases of the input and of the state, side by side; zeros for one that is missing.
    fn biases(
        &self,
        low: &mut ProgramLowering,
        input: Option<ValueId>,
        state: Option<ValueId>,
    ) -> Result<Option<ValueId>> {
        if input.is_none() && state.is_none() {
            return Ok(None);
        }
        let shape = [self.passes(), self.gates.len() * self.hidden];
        let mut zeros = || Tensor::zeros(self.dtype, &shape).map(|zeros| low.constant(zeros));
        let input = input.map_or_else(&mut zeros, Ok)?;
        let state = state.map_or_else(&mut zeros, Ok)?;
        low.node("Concat", &attributes([("axis", 1_i64.into())]), &[input, state]).map(Some)
    }

    /// A state `[batch, passes · hidden]` as `[passes, batch, hidden]`.
    fn state(
        &self,
        low: &mut ProgramLowering,
        op: &LoweredOperation<'_>,
        name: &'static str,
    ) -> Result<ValueId> {
        let found = low.required(op, name)?;
        if self.passes() == 1 {
            return low.unsqueeze(found, &[0]);
        }
        let cut = low.reshape(found, &[-1, 2, signed(self.hidden)])?;
        low.transpose(cut, &[1, 0, 2])
    }

    /// The other way: passes side by side.
    fn side_by_side(&self, low: &mut ProgramLowering, found: ValueId) -> Result<ValueId> {
        if self.passes() == 1 {
            return low.squeeze(found, &[0]);
        }
        let turned = low.transpose(found, &[1, 0, 2])?;
        self.joined(low, turned, 1)
    }

    /// `[…, passes, hidden]` as `[…, passes · hidden]` behind `kept` axes.
    fn joined(&self, low: &mut ProgramLowering, found: ValueId, kept: usize) -> Result<ValueId> {
        let mut shape = vec![0; kept];
        shape.push(signed(self.hidden).saturating_mul(2));
        let shape = low.integers(&shape);
        low.plain("Reshape", &[found, shape])
    }

    /// Gives the steps `[steps, passes, batch, hidden]` and the last states.
    fn give(
        &self,
        low: &mut ProgramLowering,
        op: &LoweredOperation<'_>,
        steps: ValueId,
        last: &[ValueId],
    ) -> Result<()> {
        let last = last.iter().map(|&state| self.side_by_side(low, state));
        let last = last.collect::<Result<Vec<_>>>()?;
        let first = match (self.every, last.first()) {
            (false, Some(&state)) => low.unsqueeze(state, &[0])?,
            _ if self.passes() == 1 => low.squeeze(steps, &[1])?,
            _ => {
                let turned = low.transpose(steps, &[0, 2, 1, 3])?;
                self.joined(low, turned, 2)?
            }
        };
        let results: Vec<ValueId> = std::iter::once(first).chain(last).collect();
        low.give(op, &results)
    }

    /// The attributes that ONNX's layers share.
    fn attributes(&self, functions: &[&'static str]) -> Attributes {
        let direction = if self.passes() == 1 { text("forward") } else { text("bidirectional") };
        let each = functions.iter().map(|name| ByteString::from(*name));
        let all = each.cycle().take(functions.len() * self.passes()).collect();
        attributes([
            ("hidden_size", signed(self.hidden).into()),
            ("direction", direction),
            ("activations", AttributeValue::Strings(all)),
        ])
    }
}

/// ONNX's name of an activation; the numbers that it has are those of ONNX.
fn function(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
    default: &str,
) -> Result<&'static str> {
    let found = low.word(op, name)?.unwrap_or_else(|| default.to_owned());
    match found.to_ascii_lowercase().as_str() {
        "tanh" => Ok("Tanh"),
        "scaled_tanh" => Ok("ScaledTanh"),
        "sigmoid" => Ok("Sigmoid"),
        "hard_sigmoid" | "sigmoid_hard" => Ok("HardSigmoid"),
        "relu" => Ok("Relu"),
        "linear" => Ok("Affine"),
        _ => Err(CoreMlError::invalid(format!("input '{name}' is '{found}', no known activation"))),
    }
}

fn rnn(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let layer = LoweredRecurrence::read(low, op, &[0], false)?;
    let activation = function(low, op, "activation", "tanh")?;
    let w = layer.weights(low, op, ["weight_ih", ""])?;
    let r = layer.weights(low, op, ["weight_hh", ""])?;
    let bias = layer.parameter(low, op, "bias", "", layer.gates)?;
    let bias = layer.biases(low, bias, None)?;
    let state = layer.state(low, op, "initial_h")?;
    let inputs = [Some(layer.x), Some(w), Some(r), bias, None, Some(state)];
    let named = layer.attributes(&[activation]);
    match low.node_of((ONNX_DOMAIN, "RNN"), &named, &inputs, 2)?.as_slice() {
        &[steps, last] => layer.give(low, op, steps, &[last]),
        _ => Err(CoreMlError::invalid("a layer without results")),
    }
}

/// Gates are reset, output, update; in ONNX update, reset, output.
fn gru(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let layer = LoweredRecurrence::read(low, op, &[2, 0, 1], false)?;
    let gate = function(low, op, "recurrent_activation", "sigmoid")?;
    let activation = function(low, op, "activation", "tanh")?;
    let w = layer.weights(low, op, ["weight_ih", ""])?;
    let r = layer.weights(low, op, ["weight_hh", ""])?;
    let of_state = layer.parameter(low, op, "bias", "", layer.gates)?;
    let mut of_input = None;
    let mut named = layer.attributes(&[gate, activation]);
    if op.opset >= 8 {
        of_input = layer.parameter(low, op, "input_bias", "", layer.gates)?;
        let after = low.flag(op, "reset_after", false)?;
        named.insert("linear_before_reset".to_owned(), after.into());
    }
    let bias = layer.biases(low, of_input, of_state)?;
    let state = layer.state(low, op, "initial_h")?;
    let inputs = [Some(layer.x), Some(w), Some(r), bias, None, Some(state)];
    match low.node_of((ONNX_DOMAIN, "GRU"), &named, &inputs, 2)?.as_slice() {
        &[steps, last] => layer.give(low, op, steps, &[last]),
        _ => Err(CoreMlError::invalid("a layer without results")),
    }
}

/// Gates are input, forget, output, cell; in ONNX input, output, forget, cell.
fn lstm(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let layer = LoweredRecurrence::read(low, op, &[0, 2, 1, 3], true)?;
    let functions = [
        function(low, op, "recurrent_activation", "sigmoid")?,
        function(low, op, "cell_activation", "tanh")?,
        function(low, op, "activation", "tanh")?,
    ];
    let w = layer.weights(low, op, ["weight_ih", "weight_ih_back"])?;
    let r = layer.weights(low, op, ["weight_hh", "weight_hh_back"])?;
    let bias = layer.parameter(low, op, "bias", "bias_back", layer.gates)?;
    let bias = layer.biases(low, bias, None)?;
    let peepholes = layer.parameter(low, op, "peephole", "peephole_back", &[0, 2, 1])?;
    let states = [layer.state(low, op, "initial_h")?, layer.state(low, op, "initial_c")?];
    if let Some(clip) = low.float(op, "clip")? {
        let cell = ClippedCell { functions, clip, w, r, bias, peepholes, states };
        let (steps, last) = cell.lower(low, &layer)?;
        return layer.give(low, op, steps, &last);
    }
    let [hidden, cell] = states.map(Some);
    let inputs = [Some(layer.x), Some(w), Some(r), bias, None, hidden, cell, peepholes];
    let named = layer.attributes(&functions);
    match low.node_of((ONNX_DOMAIN, "LSTM"), &named, &inputs, 3)?.as_slice() {
        [steps, last @ ..] => layer.give(low, op, *steps, last),
        [] => Err(CoreMlError::invalid("a layer without results")),
    }
}

/// An `lstm` that limits its cell, which ONNX's operator does not: it is spelled out, step by step.
/// Parameters are those of ONNX's operator.
struct ClippedCell {
    functions: [&'static str; 3],
    clip: f64,
    w: ValueId,
    r: ValueId,
    bias: Option<ValueId>,
    peepholes: Option<ValueId>,
    states: [ValueId; 2],
}

impl ClippedCell {
    /// Steps `[steps, passes, batch, hidden]`, and the last states `[passes, batch, hidden]`.
    fn lower(
        &self,
        low: &mut ProgramLowering,
        layer: &LoweredRecurrence,
    ) -> Result<(ValueId, Vec<ValueId>)> {
        let mut results: [Vec<ValueId>; 3] = Default::default();
        for pass in 0..layer.passes() {
            let found = self.pass(low, layer, pass)?;
            for ((list, id), axis) in results.iter_mut().zip(found).zip([0, 0, 1]) {
                list.push(low.unsqueeze(id, &[axis])?);
            }
        }
        let mut join = |all: &[ValueId], axis: i64| match all {
            [one] => Ok(*one),
            all => low.node("Concat", &attributes([("axis", axis.into())]), all),
        };
        let [hidden, cell, steps] = &results;
        let last = vec![join(hidden, 0)?, join(cell, 0)?];
        Ok((join(steps, 1)?, last))
    }

    /// The last states and the steps of one pass.
    fn pass(
        &self,
        low: &mut ProgramLowering,
        layer: &LoweredRecurrence,
        pass: usize,
    ) -> Result<Vec<ValueId>> {
        let part = |low: &mut ProgramLowering, all: ValueId| -> Result<ValueId> {
            let at = low.scalar(signed(pass));
            low.node("Gather", &attributes([("axis", 0_i64.into())]), &[all, at])
        };
        let w = part(low, self.w)?;
        let w = low.transpose(w, &[1, 0])?;
        let r = part(low, self.r)?;
        let r = low.transpose(r, &[1, 0])?;
        let peepholes = match self.peepholes {
            Some(all) => {
                let found = part(low, all)?;
                split(low, found, 0, 3)?
            }
            None => Vec::new(),
        };
        // What the input gives is computed for all steps at once.
        let mut gates = low.plain("MatMul", &[layer.x, w])?;
        if let Some(all) = self.bias {
            let both = part(low, all)?;
            for bias in split(low, both, 0, 2)? {
                gates = low.plain("Add", &[gates, bias])?;
            }
        }
        let [hidden, cell] = self.states;
        let states = [part(low, hidden)?, part(low, cell)?];
        let facts = self.facts(low, states, gates)?;
        let step = |low: &mut ProgramLowering, own: &[ValueId]| self.step(low, own, r, &peepholes);
        let body = low.subgraph(&facts, step)?;
        let backwards = AttributeValue::Ints(vec![i64::from(pass == 1)]);
        let named = attributes([
            ("body", body),
            ("num_scan_inputs", 1_i64.into()),
            ("scan_input_directions", backwards.clone()),
            ("scan_output_directions", backwards),
        ]);
        let inputs = [Some(states[0]), Some(states[1]), Some(gates)];
        low.node_of((ONNX_DOMAIN, "Scan"), &named, &inputs, 3)
    }

    /// Returns the facts of the states and of one step's gates.
    fn facts(
        &self,
        low: &ProgramLowering,
        states: [ValueId; 2],
        gates: ValueId,
    ) -> Result<Vec<Fact>> {
        let mut facts = Vec::with_capacity(3);
        for state in states {
            facts.push(Fact::new(low.dtype(state)?, low.dims(state)?));
        }
        let one = low.dims(gates)?.get(1..).unwrap_or(&[]).to_vec();
        facts.push(Fact::new(low.dtype(gates)?, one));
        Ok(facts)
    }

    /// One step: from the states and what the input gives to the states, and the first of them.
    fn step(
        &self,
        low: &mut ProgramLowering,
        own: &[ValueId],
        r: ValueId,
        peepholes: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let &[hidden, cell, gates] = own else {
            return Err(CoreMlError::invalid("a step without its states"));
        };
        let r = low.captured(r)?;
        let outer = low.plain("MatMul", &[hidden, r])?;
        let sum = low.plain("Add", &[gates, outer])?;
        let gates = split(low, sum, 1, 4)?;
        let &[input, output, forget, fresh] = gates.as_slice() else {
            return Err(CoreMlError::invalid("a step without its gates"));
        };
        let seen = |low: &mut ProgramLowering, gate: ValueId, which: usize, of: ValueId| {
            let Some(&weight) = peepholes.get(which) else { return Ok(gate) };
            let weight = low.captured(weight)?;
            let seen = low.plain("Mul", &[weight, of])?;
            low.plain("Add", &[gate, seen])
        };
        let [gate, of_cell, of_output] = self.functions;
        let input = seen(low, input, 0, cell)?;
        let forget = seen(low, forget, 2, cell)?;
        let input = apply(low, gate, input)?;
        let forget = apply(low, gate, forget)?;
        let fresh = apply(low, of_cell, fresh)?;
        let kept = low.plain("Mul", &[forget, cell])?;
        let added = low.plain("Mul", &[input, fresh])?;
        let next = low.plain("Add", &[kept, added])?;
        let dtype = low.dtype(next)?;
        let least = low.number(-self.clip, dtype)?;
        let most = low.number(self.clip, dtype)?;
        let next = low.plain("Clip", &[next, least, most])?;
        let output = seen(low, output, 1, next)?;
        let output = apply(low, gate, output)?;
        let shown = apply(low, of_output, next)?;
        let hidden = low.plain("Mul", &[output, shown])?;
        Ok(vec![hidden, next, hidden])
    }
}

/// Equal parts along an axis.
fn split(low: &mut ProgramLowering, id: ValueId, axis: i64, parts: usize) -> Result<Vec<ValueId>> {
    let named = attributes([("axis", axis.into()), ("num_outputs", signed(parts).into())]);
    low.node_of((ONNX_DOMAIN, "Split"), &named, &[Some(id)], parts)
}

/// An activation of a cell as a node, with the numbers that ONNX's layers use.
fn apply(low: &mut ProgramLowering, function: &str, x: ValueId) -> Result<ValueId> {
    match function {
        "Affine" => Ok(x),
        "ScaledTanh" => low.plain("Tanh", &[x]),
        "HardSigmoid" => {
            let named = attributes([("alpha", single(0.2).into()), ("beta", single(0.5).into())]);
            low.node("HardSigmoid", &named, &[x])
        }
        other => low.plain(other, &[x]),
    }
}
