//! Recurrent layers, on blobs `[sequence, batch, size, 1, 1]`.

use galatea_graph::{AttributeValue, ValueId};
use galatea_tensor::{ByteString, Tensor};

use super::convolution::NodeAttributes;
use super::elementwise::or_default;
use super::lower::{LayerCall, LayerOutputs, NetworkLowering, ScopeBlob, int, size, text};
use super::weights;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::layers::{
    BiDirectionalLstm, GruLayerProto, LstmParams, LstmWeights, SimpleRecurrent, UniDirectionalLstm,
};
use crate::coreml::proto::network::{
    AlphaBeta, NetworkActivationKindProto, NetworkActivationProto, NetworkWeightsProto,
};

/// Limit of the arguments of activations, and of the state of a cell unless it states another.
const CLIP: f32 = 50.0;

/// Constants that belong together: their name and what the file has.
type NamedConstants<'w> = (&'static str, Option<&'w NetworkWeightsProto>);

/// Matrices `[rows, columns]`, or vectors where `columns` is 1 and `flat`, one behind the other.
fn together(all: &[NamedConstants<'_>], shape: &[usize]) -> Result<Vec<f32>, CoreMlError> {
    let mut values = Vec::new();
    for (what, found) in all {
        values.extend(weights::tensor(*found, what, shape)?.to_vec::<f32>()?);
    }
    Ok(values)
}

/// An activation with two numbers. Core ML has one pair of them for cells, which files leave out.
fn pair(
    name: &'static str,
    found: AlphaBeta,
    default: (f32, f32),
) -> (&'static str, Option<f32>, Option<f32>) {
    let set = found.alpha.abs() > 0.0 || found.beta.abs() > 0.0;
    let (alpha, beta) = if set { (found.alpha, found.beta) } else { default };
    (name, Some(alpha), Some(beta))
}

/// The activations of a cell: their attributes, and whether they are as good as constant where
/// arguments are limited.
fn activations(all: &[&NetworkActivationProto]) -> Result<NodeAttributes, CoreMlError> {
    let mut names = Vec::new();
    let mut alphas = Vec::new();
    let mut betas = Vec::new();
    let mut saturated = true;
    for activation in all {
        let missing = || CoreMlError::invalid("it does not say which activation");
        let (name, alpha, beta) = match activation.kind.as_ref().ok_or_else(missing)? {
            NetworkActivationKindProto::Linear(p) => pair("Affine", *p, (1.0, 0.0)),
            NetworkActivationKindProto::Relu(_) => ("Relu", None, None),
            NetworkActivationKindProto::LeakyRelu(p) => ("LeakyRelu", Some(p.alpha), None),
            NetworkActivationKindProto::ThresholdedRelu(p) => {
                ("ThresholdedRelu", Some(p.alpha), None)
            }
            NetworkActivationKindProto::Tanh(_) => ("Tanh", None, None),
            NetworkActivationKindProto::ScaledTanh(p) => {
                pair("ScaledTanh", *p, (1.7159, 2.0 / 3.0))
            }
            NetworkActivationKindProto::Sigmoid(_) => ("Sigmoid", None, None),
            NetworkActivationKindProto::SigmoidHard(p) => pair("HardSigmoid", *p, (0.2, 0.5)),
            NetworkActivationKindProto::Elu(p) => ("Elu", Some(p.alpha), None),
            NetworkActivationKindProto::Softsign(_) => ("Softsign", None, None),
            NetworkActivationKindProto::Softplus(_) => ("Softplus", None, None),
            NetworkActivationKindProto::Prelu(_)
            | NetworkActivationKindProto::ParametricSoftplus(_) => {
                return Err(CoreMlError::invalid("a cell has no activation with weights"));
            }
        };
        saturated &= matches!(name, "Tanh" | "Sigmoid");
        names.push(ByteString::from(name));
        alphas.extend(alpha);
        betas.extend(beta);
    }
    let mut attributes: NodeAttributes = vec![("activations", AttributeValue::Strings(names))];
    if !alphas.is_empty() {
        attributes.push(("activation_alpha", AttributeValue::Floats(alphas)));
    }
    if !betas.is_empty() {
        attributes.push(("activation_beta", AttributeValue::Floats(betas)));
    }
    // Beyond the limit these are 0 or ±1 in single precision, so that it changes nothing.
    if !saturated {
        attributes.push(("clip", CLIP.into()));
    }
    Ok(attributes)
}

fn activation(
    found: Option<&NetworkActivationProto>,
) -> Result<&NetworkActivationProto, CoreMlError> {
    found.ok_or_else(|| CoreMlError::invalid("an activation is missing"))
}

fn functions(
    all: &[NetworkActivationProto],
    count: usize,
) -> Result<Vec<&NetworkActivationProto>, CoreMlError> {
    match all.len() == count {
        true => Ok(all.iter().collect()),
        false => Err(CoreMlError::invalid(format!("{} activations, expected {count}", all.len()))),
    }
}

/// The constants of a node: of all gates, for one direction after the other.
struct GateConstants {
    directions: usize,
    gates: usize,
    input: usize,
    hidden: usize,
    w: Vec<f32>,
    r: Vec<f32>,
    b: Vec<f32>,
    peepholes: Vec<f32>,
}

/// A recurrent node.
struct RecurrentNode {
    operator: &'static str,
    attributes: NodeAttributes,
    constants: GateConstants,
    sequence: bool,
    /// Number of states: hidden, and that of the cell.
    states: usize,
}

impl RecurrentNode {
    fn tensor(&self, rest: &[usize], values: &[f32]) -> Result<Tensor, CoreMlError> {
        let mut shape = vec![self.constants.directions];
        shape.extend_from_slice(rest);
        Ok(Tensor::from_vec(&shape, values.to_vec())?)
    }

    /// Initial states `[directions, batch, hidden]`: input `1 + state + direction · states`.
    fn initial(
        &self,
        cx: &mut NetworkLowering,
        call: &LayerCall,
    ) -> Result<Vec<Option<ValueId>>, CoreMlError> {
        let expected = self.states * self.constants.directions;
        let given = call.inputs.len() - 1;
        if given == 0 {
            return Ok(vec![None; self.states]);
        }
        if given != expected {
            let text = format!("{given} states among the inputs, expected none or {expected}");
            return Err(CoreMlError::invalid(text));
        }
        let mut all = Vec::with_capacity(self.states);
        for state in 0..self.states {
            let mut directions = Vec::new();
            for direction in 0..self.constants.directions {
                let exact = cx.exact(call.input(1 + state + direction * self.states)?)?;
                directions.push(cx.squeeze(exact, &[-2, -1])?);
            }
            all.push(Some(cx.node("Concat", &directions, &[("axis", 0_i64.into())])?));
        }
        Ok(all)
    }

    /// Adds the node and makes its results blobs: the output, then the states of each direction.
    fn lower(&self, cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
        let GateConstants { gates, input, hidden, directions, .. } = self.constants;
        let exact = cx.exact(call.input(0)?)?;
        let x = cx.squeeze(exact, &[-2, -1])?;
        let mut inputs = vec![Some(x)];
        let w = self.tensor(&[gates * hidden, input], &self.constants.w)?;
        inputs.push(Some(cx.constant(w)));
        let r = self.tensor(&[gates * hidden, hidden], &self.constants.r)?;
        inputs.push(Some(cx.constant(r)));
        inputs.push(match self.constants.b.is_empty() {
            true => None,
            false => {
                let b = self.tensor(&[2 * gates * hidden], &self.constants.b)?;
                Some(cx.constant(b))
            }
        });
        inputs.push(None);
        inputs.extend(self.initial(cx, call)?);
        if !self.constants.peepholes.is_empty() {
            let p = self.tensor(&[3 * hidden], &self.constants.peepholes)?;
            inputs.push(Some(cx.constant(p)));
        }
        while inputs.last() == Some(&None) {
            inputs.pop();
        }
        let mut attributes = self.attributes.clone();
        attributes.push(("hidden_size", int(hidden).into()));
        let found = cx.nodes(self.operator, inputs, &attributes, 1 + self.states)?;
        let (&all, states) =
            found.split_first().ok_or_else(|| CoreMlError::invalid("no result"))?;
        let last = states.first().copied().unwrap_or(all);
        // Directions come before the batch, and lie behind one another in a vector of the output.
        let output = if self.sequence {
            let turned = cx.transpose(all, &[0, 2, 1, 3])?;
            cx.reshape(turned, &[0, 0, int(directions * hidden)])?
        } else {
            let turned = cx.transpose(last, &[1, 0, 2])?;
            let flat = cx.reshape(turned, &[0, int(directions * hidden)])?;
            cx.unsqueeze(flat, &[0])?
        };
        let mut blobs = vec![ScopeBlob::exact(cx.unsqueeze(output, &[3, 4])?)];
        for direction in 0..int(directions) {
            for &state in states {
                let one = cx.slice(state, &[(0, direction, direction + 1, 1)])?;
                blobs.push(ScopeBlob::exact(cx.unsqueeze(one, &[3, 4])?));
            }
        }
        blobs.truncate(call.outputs);
        Ok(blobs)
    }
}

fn direction(reverse: bool) -> (&'static str, AttributeValue) {
    ("direction", text(if reverse { "reverse" } else { "forward" }))
}

/// Biases of the input, and zeros for those of the state.
fn with_zeros(mut biases: Vec<f32>) -> Vec<f32> {
    biases.resize(2 * biases.len(), 0.0);
    biases
}

/// `simpleRecurrent`.
pub(super) fn simple(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let p: SimpleRecurrent = call.read()?;
    let input = size(p.input_vector_size)?;
    let hidden = size(p.output_vector_size)?;
    let mut attributes = activations(&[activation(p.activation.as_ref())?])?;
    attributes.push(direction(p.reverse_input));
    let mut b = Vec::new();
    if p.has_bias_vector {
        b = with_zeros(together(&[("biasVector", p.bias_vector.as_ref())], &[hidden])?);
    }
    let constants = GateConstants {
        directions: 1,
        gates: 1,
        input,
        hidden,
        w: together(&[("weightMatrix", p.weight_matrix.as_ref())], &[hidden, input])?,
        r: together(&[("recursionMatrix", p.recursion_matrix.as_ref())], &[hidden, hidden])?,
        b,
        peepholes: Vec::new(),
    };
    let sequence = p.sequence_output;
    RecurrentNode { operator: "RNN", attributes, constants, sequence, states: 1 }.lower(cx, call)
}

/// `gru`.
pub(super) fn gru(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let p: GruLayerProto = call.read()?;
    let input = size(p.input_vector_size)?;
    let hidden = size(p.output_vector_size)?;
    let mut attributes = activations(&functions(&p.activations, 2)?)?;
    attributes.push(direction(p.reverse_input));
    let w = [
        ("updateGateWeightMatrix", p.update_gate_weight_matrix.as_ref()),
        ("resetGateWeightMatrix", p.reset_gate_weight_matrix.as_ref()),
        ("outputGateWeightMatrix", p.output_gate_weight_matrix.as_ref()),
    ];
    let r = [
        ("updateGateRecursionMatrix", p.update_gate_recursion_matrix.as_ref()),
        ("resetGateRecursionMatrix", p.reset_gate_recursion_matrix.as_ref()),
        ("outputGateRecursionMatrix", p.output_gate_recursion_matrix.as_ref()),
    ];
    let mut b = Vec::new();
    if p.has_bias_vectors {
        let all = [
            ("updateGateBiasVector", p.update_gate_bias_vector.as_ref()),
            ("resetGateBiasVector", p.reset_gate_bias_vector.as_ref()),
            ("outputGateBiasVector", p.output_gate_bias_vector.as_ref()),
        ];
        b = with_zeros(together(&all, &[hidden])?);
    }
    let constants = GateConstants {
        directions: 1,
        gates: 3,
        input,
        hidden,
        w: together(&w, &[hidden, input])?,
        r: together(&r, &[hidden, hidden])?,
        b,
        peepholes: Vec::new(),
    };
    let sequence = p.sequence_output;
    RecurrentNode { operator: "GRU", attributes, constants, sequence, states: 1 }.lower(cx, call)
}

/// The constants of LSTMs, in ONNX's order of gates: input, output, forget, cell.
fn lstm_constants(
    all: &[&LstmWeights],
    params: &LstmParams,
    input: usize,
    hidden: usize,
) -> Result<GateConstants, CoreMlError> {
    let mut constants = GateConstants {
        directions: all.len(),
        gates: 4,
        input,
        hidden,
        w: Vec::new(),
        r: Vec::new(),
        b: Vec::new(),
        peepholes: Vec::new(),
    };
    for p in all {
        let w = [
            ("inputGateWeightMatrix", p.input_gate_weight_matrix.as_ref()),
            ("outputGateWeightMatrix", p.output_gate_weight_matrix.as_ref()),
            ("forgetGateWeightMatrix", p.forget_gate_weight_matrix.as_ref()),
            ("blockInputWeightMatrix", p.block_input_weight_matrix.as_ref()),
        ];
        let r = [
            ("inputGateRecursionMatrix", p.input_gate_recursion_matrix.as_ref()),
            ("outputGateRecursionMatrix", p.output_gate_recursion_matrix.as_ref()),
            ("forgetGateRecursionMatrix", p.forget_gate_recursion_matrix.as_ref()),
            ("blockInputRecursionMatrix", p.block_input_recursion_matrix.as_ref()),
        ];
        let biases = [
            ("inputGateBiasVector", p.input_gate_bias_vector.as_ref()),
            ("outputGateBiasVector", p.output_gate_bias_vector.as_ref()),
            ("forgetGateBiasVector", p.forget_gate_bias_vector.as_ref()),
            ("blockInputBiasVector", p.block_input_bias_vector.as_ref()),
        ];
        let peepholes = [
            ("inputGatePeepholeVector", p.input_gate_peephole_vector.as_ref()),
            ("outputGatePeepholeVector", p.output_gate_peephole_vector.as_ref()),
            ("forgetGatePeepholeVector", p.forget_gate_peephole_vector.as_ref()),
        ];
        constants.w.extend(together(&w, &[hidden, input])?);
        constants.r.extend(together(&r, &[hidden, hidden])?);
        if params.has_bias_vectors || params.forget_bias {
            let mut b = match params.has_bias_vectors {
                true => together(&biases, &[hidden])?,
                // As many zeros as the matrices just now had rows.
                false => vec![0.0; 4 * hidden],
            };
            if params.forget_bias {
                b.iter_mut().skip(2 * hidden).take(hidden).for_each(|one| *one += 1.0);
            }
            constants.b.extend(with_zeros(b));
        }
        if params.has_peephole_vectors {
            constants.peepholes.extend(together(&peepholes, &[hidden])?);
        }
    }
    Ok(constants)
}

/// Weights of an LSTM layer's directions, its settings, and the lengths of its vectors.
struct LstmLayerParts<'a> {
    all: &'a [&'a LstmWeights],
    params: Option<&'a LstmParams>,
    input: u64,
    hidden: u64,
}

fn lstm(
    cx: &mut NetworkLowering,
    call: &LayerCall,
    LstmLayerParts { all, params, input, hidden }: LstmLayerParts<'_>,
    mut attributes: NodeAttributes,
) -> LayerOutputs {
    let params = params.copied().unwrap_or_default();
    let input = size(input)?;
    let hidden = size(hidden)?;
    let limit = or_default(params.cell_clip_threshold, CLIP);
    if limit < CLIP {
        let text = format!("a cell whose state is limited to {limit}, which is less than {CLIP}");
        return Err(CoreMlError::unsupported(text));
    }
    attributes.push(("input_forget", params.coupled_input_and_forget_gate.into()));
    let constants = lstm_constants(all, &params, input, hidden)?;
    let sequence = params.sequence_output;
    RecurrentNode { operator: "LSTM", attributes, constants, sequence, states: 2 }.lower(cx, call)
}

/// `uniDirectionalLSTM`. The state of a cell is not limited at 50 and above: what passes that has
/// been saturated for as many steps.
pub(super) fn uni_lstm(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let p: UniDirectionalLstm = call.read()?;
    let missing = || CoreMlError::invalid("'weightParams': it is missing");
    let all = [p.weight_params.as_ref().ok_or_else(missing)?];
    let mut attributes = activations(&functions(&p.activations, 3)?)?;
    attributes.push(direction(p.reverse_input));
    let parts = LstmLayerParts {
        all: &all,
        params: p.params.as_ref(),
        input: p.input_vector_size,
        hidden: p.output_vector_size,
    };
    lstm(cx, call, parts, attributes)
}

/// `biDirectionalLSTM`.
pub(super) fn bi_lstm(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let p: BiDirectionalLstm = call.read()?;
    let [forward, backward] = &p.weight_params[..] else {
        let found = p.weight_params.len();
        return Err(CoreMlError::invalid(format!("weights of {found} directions, expected 2")));
    };
    let mut functions = functions(&p.activations_forward, 3)?;
    functions.extend(match p.activations_backward.is_empty() {
        true => p.activations_forward.iter().collect(),
        false => self::functions(&p.activations_backward, 3)?,
    });
    let mut attributes = activations(&functions)?;
    attributes.push(("direction", text("bidirectional")));
    let parts = LstmLayerParts {
        all: &[forward, backward],
        params: p.params.as_ref(),
        input: p.input_vector_size,
        hidden: p.output_vector_size,
    };
    lstm(cx, call, parts, attributes)
}
