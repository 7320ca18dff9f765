//! Recurrent layers beside their reference: every operator, attribute and input, in every way.

use std::sync::Arc;

use galatea_gpu::recurrent::{GpuRecurrentKernel, RecurrentWay};
use galatea_gpu::{DispatchStep, GpuDevice, GpuKernel, StepTrial};
use galatea_graph::{AttributeValue, Attributes, infer};
use galatea_runtime::{NodeShapes, ValueShape};
use galatea_tensor::{ByteString, Tensor};

use crate::support::node::{Node, floats};
use crate::support::{claims, device};

/// A layer under test.
#[derive(Clone)]
struct RecurrentCase {
    op: &'static str,
    gates: usize,
    steps: usize,
    batch: usize,
    input: usize,
    hidden: usize,
    passes: usize,
    attributes: Attributes,
    bias: bool,
    lengths: Option<Vec<i32>>,
    states: bool,
    peepholes: bool,
}

fn int(value: i64) -> AttributeValue {
    AttributeValue::Int(value)
}

impl RecurrentCase {
    fn new(op: &'static str, gates: usize) -> Self {
        Self {
            op,
            gates,
            steps: 5,
            batch: 3,
            input: 6,
            hidden: 8,
            passes: 1,
            attributes: Attributes::new(),
            bias: true,
            lengths: None,
            states: false,
            peepholes: false,
        }
    }

    fn all() -> [Self; 3] {
        [Self::new("LSTM", 4), Self::new("GRU", 3), Self::new("RNN", 1)]
    }

    fn with(mut self, name: &str, value: AttributeValue) -> Self {
        self.attributes.insert(name.to_owned(), value);
        self
    }

    fn directed(mut self, direction: &str) -> Self {
        self.passes = if direction == "bidirectional" { 2 } else { 1 };
        self.with("direction", AttributeValue::String(direction.into()))
    }

    fn sized(self, hidden: usize, batch: usize) -> Self {
        Self { hidden, batch, ..self }
    }

    fn activated(self, names: &[&str], alphas: &[f32], betas: &[f32]) -> Self {
        let names = names.iter().map(|&name| ByteString::from(name)).collect();
        self.with("activations", AttributeValue::Strings(names))
            .with("activation_alpha", AttributeValue::Floats(alphas.to_vec()))
            .with("activation_beta", AttributeValue::Floats(betas.to_vec()))
    }

    fn by_batch(&self) -> bool {
        matches!(self.attributes.get("layout"), Some(AttributeValue::Int(1)))
    }

    /// The inputs, weights last but one.
    fn inputs(&self) -> Vec<Option<Tensor>> {
        let &Self { gates, steps, batch, input, hidden, passes, .. } = self;
        let (x, state) = match self.by_batch() {
            true => ([batch, steps, input], [batch, passes, hidden]),
            false => ([steps, batch, input], [passes, batch, hidden]),
        };
        let small = 1.0 / (hidden as f32).sqrt();
        let mut all = vec![
            Some(floats(&x, 1.0)),
            Some(floats(&[passes, gates * hidden, input], 0.5)),
            Some(floats(&[passes, gates * hidden, hidden], small)),
            self.bias.then(|| floats(&[passes, 2 * gates * hidden], 0.3)),
            self.lengths.clone().map(Tensor::vector),
            self.states.then(|| floats(&state, 0.7)),
        ];
        if self.op == "LSTM" {
            all.push(self.states.then(|| floats(&state, 0.9)));
            all.push(self.peepholes.then(|| floats(&[passes, 3 * hidden], 0.4)));
        }
        all
    }

    fn node(&self, constant: bool) -> Node {
        let hidden = int(i64::try_from(self.hidden).unwrap());
        let mut attributes = self.attributes.clone();
        attributes.insert("hidden_size".into(), hidden);
        let mut node = Node::new("", self.op).opset(14).with(attributes);
        for (index, input) in self.inputs().into_iter().enumerate() {
            node = match input {
                None => node.absent(),
                Some(tensor) if constant && [1, 2, 3, 7].contains(&index) => node.constant(tensor),
                Some(tensor) => node.input(tensor),
            };
        }
        node.outputs(if self.op == "LSTM" { 3 } else { 2 })
    }

    fn check(self) {
        self.node(true).near(2e-5, 4e-3);
    }

    /// Compares every way to compute it with the first.
    fn check_ways(&self, device: &Arc<GpuDevice>, room: Option<usize>) {
        let (graph, fed) = self.node(false).graph(false);
        let facts = infer::facts(&graph, &std::collections::HashMap::new()).unwrap();
        let shapes = NodeShapes::known(&graph.nodes[0], &facts).unwrap();
        let kernel = || {
            let kernel = GpuRecurrentKernel::of(&graph.nodes[0], device).unwrap();
            room.into_iter().fold(kernel, GpuRecurrentKernel::within)
        };
        let mut fed = fed.into_iter();
        let inputs: Vec<Option<Tensor>> = graph.nodes[0]
            .inputs
            .iter()
            .map(|input| input.and_then(|_| fed.next()).map(|(_, tensor)| tensor))
            .collect();
        let tensors: Vec<Tensor> = inputs.iter().flatten().cloned().collect();
        let expected = galatea_graph::evaluate::run(&graph, &tensors).unwrap();
        let ways = kernel().ways(&shapes).unwrap();
        assert!(ways.contains(&RecurrentWay::Products), "{ways:?}");
        for way in ways {
            let found = run(device, &kernel().forcing(way), &shapes, &inputs);
            for (found, expected) in found.iter().zip(&expected) {
                let expected = expected.to_vec::<f32>().unwrap();
                let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
                let worst = worst.fold(0.0, f32::max);
                assert!(worst < 2e-5, "{} of {shapes:?} by {way:?}: {worst}", self.op);
            }
        }
    }
}

/// Runs a kernel outside of a plan.
fn run(
    device: &Arc<GpuDevice>,
    kernel: &GpuRecurrentKernel,
    shapes: &NodeShapes,
    inputs: &[Option<Tensor>],
) -> Vec<Vec<f32>> {
    let mut step = DispatchStep::default();
    kernel.bind(shapes, &mut step).unwrap();
    let bytes: Vec<Option<&[u8]>> = inputs
        .iter()
        .map(|input| input.as_ref().map(|tensor| tensor.as_bytes().unwrap()))
        .collect();
    let elements = |shape: &Option<ValueShape>| shape.as_ref().map_or(0, ValueShape::elements);
    let sizes: Vec<u64> =
        shapes.outputs.iter().map(|shape| (elements(shape) * 4) as u64 + 16).collect();
    let trial = StepTrial::new(device, &step, &bytes, &sizes, 1).unwrap();
    trial.run(1).unwrap();
    let read = |at: usize| {
        let bytes = trial.output(at, elements(&shapes.outputs[at]) * 4).unwrap();
        let floats = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
        floats.collect()
    };
    (0..shapes.outputs.len()).map(read).collect()
}

#[test]
fn layers_of_every_direction_and_layout_are_those_of_the_reference() {
    for direction in ["forward", "reverse", "bidirectional"] {
        for layout in [0, 1] {
            for layer in RecurrentCase::all() {
                let layer = layer.directed(direction).with("layout", int(layout));
                layer.clone().check();
                RecurrentCase { bias: false, states: true, ..layer.clone() }.check();
                let lengths = Some(vec![5, 0, 2]);
                RecurrentCase { lengths, states: true, ..layer }.check();
            }
        }
    }
}

#[test]
fn peepholes_and_coupled_gates_apply() {
    for direction in ["forward", "bidirectional"] {
        for coupled in [0, 1] {
            let layer = RecurrentCase::new("LSTM", 4).directed(direction);
            let layer = layer.with("input_forget", int(coupled));
            RecurrentCase { peepholes: true, states: true, ..layer.clone() }.check();
            RecurrentCase { states: true, ..layer }.check();
        }
    }
}

#[test]
fn the_reset_gate_applies_before_or_behind_the_product() {
    for linear in [0, 1] {
        for direction in ["forward", "reverse", "bidirectional"] {
            let layer = RecurrentCase::new("GRU", 3).directed(direction);
            let layer = layer.with("linear_before_reset", int(linear));
            RecurrentCase { states: true, ..layer.clone() }.check();
            RecurrentCase { bias: false, lengths: Some(vec![1, 5, 3]), ..layer }.check();
        }
    }
}

#[test]
fn every_function_of_cells_is_there_with_its_constants() {
    let functions: [(&str, &[f32], &[f32]); 11] = [
        ("Relu", &[], &[]),
        ("Tanh", &[], &[]),
        ("Sigmoid", &[], &[]),
        ("Affine", &[0.5], &[0.1]),
        ("LeakyRelu", &[0.2], &[]),
        ("ThresholdedRelu", &[0.05], &[]),
        ("ScaledTanh", &[0.9], &[0.7]),
        ("HardSigmoid", &[0.3], &[0.4]),
        ("Elu", &[0.8], &[]),
        ("Softsign", &[], &[]),
        ("Softplus", &[], &[]),
    ];
    for (name, alphas, betas) in functions {
        let layer = RecurrentCase::new("RNN", 1).directed("bidirectional");
        layer.activated(&["Tanh", name], alphas, betas).check();
        RecurrentCase::new("GRU", 3)
            .activated(
                &["HardSigmoid", name],
                &[&[0.2], alphas].concat(),
                &[&[0.5], betas].concat(),
            )
            .check();
        RecurrentCase::new("LSTM", 4).activated(&["Sigmoid", name, "Tanh"], alphas, betas).check();
    }
}

#[test]
fn arguments_of_functions_are_clipped() {
    for layer in RecurrentCase::all() {
        layer.clone().with("clip", AttributeValue::Float(0.2)).check();
        let layer = layer.directed("bidirectional").with("clip", AttributeValue::Float(0.4));
        RecurrentCase { peepholes: layer.op == "LSTM", states: true, ..layer }.check();
    }
}

#[test]
fn lengths_of_no_vectors_and_of_nothing_are_computed() {
    for layer in RecurrentCase::all() {
        layer.clone().sized(7, 1).check();
        layer.clone().sized(1, 2).check();
        layer.clone().sized(130, 5).check();
        RecurrentCase { input: 1, ..layer.clone() }.check();
        RecurrentCase { input: 5, ..layer.clone() }.check();
        RecurrentCase { steps: 1, ..layer.clone() }.check();
        RecurrentCase { states: true, steps: 0, ..layer.clone() }.check();
        RecurrentCase { batch: 0, ..layer }.check();
    }
}

#[test]
fn weights_may_be_known_only_in_a_run() {
    let Some(device) = device() else { return };
    for layer in RecurrentCase::all() {
        let layer = RecurrentCase { lengths: Some(vec![5, 4, 1]), states: true, ..layer };
        let (graph, _) = layer.node(false).graph(false);
        assert!(claims(&device, &graph, &galatea_runtime::SessionOptions::default()));
        layer.node(false).near(2e-5, 4e-3);
    }
}

#[test]
fn every_way_gives_the_same() {
    let Some(device) = device() else { return };
    for layer in RecurrentCase::all() {
        let lengths = Some((0..5).collect());
        let both = layer.clone().sized(12, 5).directed("bidirectional");
        RecurrentCase { lengths, states: true, ..both }.check_ways(&device, None);
        let back = layer.sized(33, 2).directed("reverse").with("layout", int(1));
        back.check_ways(&device, None);
    }
    let linear = RecurrentCase::new("GRU", 3).with("linear_before_reset", int(1)).sized(20, 3);
    linear.check_ways(&device, None);
}

#[test]
fn outputs_that_nobody_wants_are_not_written() {
    for layer in RecurrentCase::all() {
        let mut node = layer.node(true);
        node = node.outputs(1);
        node.near(2e-5, 4e-3);
    }
}

/// Steps whose products with inputs do not fit into memory together.
#[test]
fn long_sequences_are_computed_in_parts() {
    let Some(device) = device() else { return };
    for layer in RecurrentCase::all() {
        for (direction, layout) in [("bidirectional", 0), ("reverse", 1)] {
            let layer = RecurrentCase { steps: 5, lengths: Some(vec![5, 4, 1]), ..layer.clone() };
            let layer = layer.directed(direction).with("layout", int(layout));
            // Room for two steps, and for one even where there is none.
            let room = 2 * 4 * layer.passes * layer.gates * 3 * 8;
            layer.check_ways(&device, Some(if layout == 0 { room } else { 0 }));
        }
    }
}
