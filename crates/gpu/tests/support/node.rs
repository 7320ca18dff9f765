//! One node on the device beside its reference.

#![allow(dead_code, reason = "each test uses some of it")]

use std::collections::BTreeMap;

use galatea_graph::{Attributes, Dim, Fact, Graph, evaluate};
use galatea_runtime::{Precision, Run, SessionOptions};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};

use super::{device, session};

/// Floats that look random, between `-size` and `size`.
pub(crate) fn floats(shape: &[usize], size: f32) -> Tensor {
    let count: usize = shape.iter().product();
    let mut state = 0x9e37_79b9_u32 ^ u32::try_from(count).unwrap();
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        #[allow(clippy::cast_precision_loss, reason = "24 bits fit")]
        let unit = (state >> 8) as f32 / (1 << 24) as f32;
        (unit * 2.0 - 1.0) * size
    };
    Tensor::from_vec(shape, (0..count).map(|_| next()).collect::<Vec<_>>()).unwrap()
}

/// A node under test. Its inputs are of the run, with lengths that the session does not know, or
/// constants.
#[derive(Clone)]
pub(crate) struct Node {
    name: (&'static str, &'static str),
    attributes: Attributes,
    inputs: Vec<(Option<Tensor>, bool)>,
    repeated: Vec<usize>,
    outputs: usize,
    opset: i64,
}

impl Node {
    /// A node of an operator of a domain.
    pub(crate) fn new(domain: &'static str, op: &'static str) -> Self {
        let (attributes, inputs) = (Attributes::new(), Vec::new());
        let repeated = Vec::new();
        Self { name: (domain, op), attributes, inputs, repeated, outputs: 1, opset: 21 }
    }

    /// With these attributes.
    pub(crate) fn with(mut self, attributes: Attributes) -> Self {
        self.attributes.extend(attributes);
        self
    }

    /// With an input of the run.
    pub(crate) fn input(mut self, tensor: Tensor) -> Self {
        self.inputs.push((Some(tensor), false));
        self
    }

    /// With a constant as the next input.
    pub(crate) fn constant(mut self, tensor: Tensor) -> Self {
        self.inputs.push((Some(tensor), true));
        self
    }

    /// Without the next input.
    pub(crate) fn absent(mut self) -> Self {
        self.inputs.push((None, false));
        self
    }

    /// With an earlier input once more behind all others.
    pub(crate) fn again(mut self, index: usize) -> Self {
        self.repeated.push(index);
        self
    }

    /// With so many outputs.
    pub(crate) fn outputs(mut self, count: usize) -> Self {
        self.outputs = count;
        self
    }

    /// In this version of ONNX's operators.
    pub(crate) fn opset(mut self, opset: i64) -> Self {
        self.opset = opset;
        self
    }

    /// The same of FP16 where it is of FP32.
    pub(crate) fn narrowed(&self) -> Self {
        let narrow = |tensor: &Tensor| match tensor.dtype() {
            DataType::Fp32 => {
                let all = tensor.to_vec::<f32>().unwrap().into_iter();
                let all = all.map(galatea_tensor::f16::from_f32).collect();
                Tensor::from_vec(tensor.shape(), all).unwrap()
            }
            _ => tensor.clone(),
        };
        let inputs = self.inputs.iter();
        let inputs = inputs.map(|(tensor, fixed)| (tensor.as_ref().map(narrow), *fixed)).collect();
        Self { inputs, ..self.clone() }
    }

    /// Converts the node to a graph. `around` puts a multiplication by the identity before and behind it, which
    /// moves its own values to the inside of the partition.
    pub(crate) fn graph(&self, around: bool) -> (Graph, Vec<(String, Tensor)>) {
        let mut graph = Graph::new("node");
        graph.opsets = BTreeMap::from([
            (String::new(), self.opset),
            ("com.microsoft".into(), 1),
            ("ai.galatea".into(), 1),
        ])
        .into_iter()
        .collect();
        let mut fed = Vec::new();
        let mut ids = Vec::new();
        for (at, (tensor, fixed)) in self.inputs.iter().enumerate() {
            let Some(tensor) = tensor else {
                ids.push(None);
                continue;
            };
            if *fixed {
                ids.push(Some(graph.add_constant("weight", tensor.clone())));
                continue;
            }
            let name = format!("x{at}");
            let id = graph.value_named(&name);
            let dims = (0..tensor.rank()).map(|axis| Dim::symbol(&format!("n{at}_{axis}")));
            let dims = match self.symbolic() {
                true => dims.collect(),
                false => tensor.shape().iter().map(|&len| Dim::Known(len)).collect(),
            };
            graph.value_mut(id).declared = Some(Fact::new(tensor.dtype(), dims));
            graph.inputs.push(id);
            fed.push((name, tensor.clone()));
            let inner = around && tensor.dtype() == DataType::Fp32;
            ids.push(Some(if inner { halved(&mut graph, id, 0.5) } else { id }));
        }
        ids.extend(self.repeated.iter().map(|&index| ids[index]).collect::<Vec<_>>());
        let outputs: Vec<_> =
            (0..self.outputs).map(|at| graph.value_named(&format!("y{at}"))).collect();
        let wanted = outputs.iter().map(|&id| Some(id)).collect();
        graph.add_node(self.name.0, self.name.1, "node", &self.attributes, ids, wanted).unwrap();
        graph.outputs = outputs;
        (graph, fed)
    }

    /// Lengths are symbols where there is one input: where lengths of several must agree, names that
    /// differ would not.
    fn symbolic(&self) -> bool {
        self.inputs.iter().filter(|(tensor, fixed)| tensor.is_some() && !fixed).count() == 1
    }

    fn run(&self, around: bool, precision: Precision, tolerance: Tolerance) {
        let Some(device) = device() else { return };
        let (graph, fed) = self.graph(around);
        let tensors: Vec<Tensor> = fed.iter().map(|(_, tensor)| tensor.clone()).collect();
        let expected = evaluate::run(&graph, &tensors).unwrap();
        let options = SessionOptions { precision, ..SessionOptions::default() };
        let op = self.name.1;
        let session = session(&device, &graph, &options);
        assert!(session.is_ok(), "{op}: {:?}", session.err());
        let session = session.unwrap();
        let bound: Vec<(&str, Tensor)> =
            fed.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
        let found = session.run_tensors(Run::named(&bound)).unwrap();
        let shapes: Vec<_> = tensors.iter().map(|tensor| tensor.shape().to_vec()).collect();
        for (found, expected) in found.iter().zip(&expected) {
            let same = compare(found, expected, tolerance);
            assert!(same.is_ok(), "{op} of {shapes:?} in {precision:?}: {same:?}");
        }
    }

    /// Runs it in FP32 and compares.
    pub(crate) fn compare(self, tolerance: Tolerance) {
        self.run(false, Precision::Fp32, tolerance);
    }

    /// Equal results in FP32, and where no float is touched in FP16 too.
    pub(crate) fn exact(self) {
        self.run(false, Precision::Fp32, Tolerance::Exact);
    }

    /// Results within distances, in FP32 and where values inside the partition lie as FP16.
    pub(crate) fn near(self, wide: f64, narrow: f64) {
        self.run(false, Precision::Fp32, Tolerance::Within(wide));
        self.run(true, Precision::Fp16, Tolerance::Within(narrow));
    }
}

/// The value times a factor, as a node of its own.
fn halved(graph: &mut Graph, id: galatea_graph::ValueId, factor: f32) -> galatea_graph::ValueId {
    let factor = graph.add_constant("factor", Tensor::scalar(factor));
    let result = graph.fresh_value("inner");
    let inputs = vec![Some(id), Some(factor)];
    graph.add_node("", "Mul", "", &Attributes::new(), inputs, vec![Some(result)]).unwrap();
    result
}

/// Bytes that differ.
pub(crate) fn bytes(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let all: Vec<u8> = (0..count).map(|at| u8::try_from(at * 37 % 251).unwrap()).collect();
    Tensor::from_vec(shape, all).unwrap()
}

/// Integers of 64 bits, beyond 32.
pub(crate) fn wide(shape: &[usize]) -> Tensor {
    let count = i64::try_from(shape.iter().product::<usize>()).unwrap();
    Tensor::from_vec(shape, (0..count).map(|at| (at - 9) << 33).collect::<Vec<_>>()).unwrap()
}

/// Floats of 16 bits.
pub(crate) fn halves(shape: &[usize]) -> Tensor {
    let wide = floats(shape, 2.0).to_vec::<f32>().unwrap();
    let all: Vec<galatea_tensor::f16> =
        wide.into_iter().map(galatea_tensor::f16::from_f32).collect();
    Tensor::from_vec(shape, all).unwrap()
}
