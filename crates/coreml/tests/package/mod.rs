//! Graphs through packages: converted, written, read again, and evaluated as the interpreter has them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of this")]

use std::collections::HashMap;

use galatea_coreml::{ConvertError, ConvertOptions, convert};
use galatea_formats::coreml::{self, FeatureType};
use galatea_graph::{
    AttributeValue, Attributes, Dim, Fact, Graph, ValueId, converted, evaluate, infer,
};
use galatea_tensor::{DataType, Tensor};

/// Why a graph gives nothing through a package.
#[derive(Clone, Debug)]
pub enum Failure {
    /// It is refused as it is converted.
    Refused(ConvertError),
    /// The package cannot be written, read or run.
    Broken(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "refused: {error}"),
            Self::Broken(text) => f.write_str(text),
        }
    }
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::Broken(error.to_string())
}

/// Computes the outputs of a package of the graph, in the types of the graph's outputs.
pub fn through(
    graph: &Graph,
    options: &ConvertOptions,
    inputs: &[Tensor],
) -> Result<Vec<Tensor>, Failure> {
    let package = convert(graph, options).map_err(Failure::Refused)?;
    let folder = tempfile::tempdir().map_err(broken)?;
    let path = folder.path().join("model.mlpackage");
    coreml::write_package(&path, &package).map_err(broken)?;
    let model = coreml::load(&path).map_err(broken)?;
    let function = model.function(None).map_err(broken)?;
    let fed = function.inputs.iter().zip(inputs).map(|(feature, tensor)| {
        let dtype = match &feature.kind {
            FeatureType::Array { dtype, .. } => *dtype,
            other => return Err(broken(format!("input '{}' is {other:?}", feature.name))),
        };
        let shape = if tensor.rank() == 0 { vec![1] } else { tensor.shape().to_vec() };
        feature.check_shape(&shape).map_err(broken)?;
        numbers(tensor, dtype)?.reshape(&shape).map_err(broken)
    });
    let fed = fed.collect::<Result<Vec<Tensor>, Failure>>()?;
    let found = evaluate::run(&function.graph, &fed).map_err(broken)?;
    let facts = infer::facts(graph, &HashMap::new()).map_err(broken)?;
    let given = graph.outputs.iter().zip(found).map(|(id, tensor)| {
        let fact = facts.get(id.index()).and_then(Option::as_ref);
        let fact = fact.ok_or_else(|| broken("an output of which nothing is known"))?;
        let shape = if fact.rank() == Some(0) { Vec::new() } else { tensor.shape().to_vec() };
        numbers(&tensor, fact.dtype)?.reshape(&shape).map_err(broken)
    });
    given.collect()
}

/// The tensor in another type; truth values are 0 and 1.
fn numbers(tensor: &Tensor, dtype: DataType) -> Result<Tensor, Failure> {
    let tensor = tensor.contiguous().map_err(broken)?;
    match tensor.dtype() == dtype {
        true => Ok(tensor),
        false => converted(&tensor, dtype).map_err(broken),
    }
}

/// A node as a graph of its own: inputs whose lengths are symbols, then constants.
pub fn node(
    op: &str,
    attributes: &[(&str, AttributeValue)],
    inputs: &[Tensor],
    constants: &[Tensor],
    outputs: usize,
) -> Case {
    let mut graph = Graph::new("test");
    graph.opsets.insert(String::new(), 20);
    let mut ids: Vec<Option<ValueId>> = Vec::new();
    for (index, tensor) in inputs.iter().enumerate() {
        let name = format!("x{index}");
        let id = graph.value_named(&name);
        let dim = |axis: usize| Dim::symbol(&format!("{name}_{axis}"));
        let dims = (0..tensor.rank()).map(dim).collect();
        graph.value_mut(id).declared = Some(Fact::new(tensor.dtype(), dims));
        graph.inputs.push(id);
        ids.push(Some(id));
    }
    for tensor in constants {
        ids.push(Some(graph.add_constant("c", tensor.clone())));
    }
    let attributes: Attributes =
        attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let made: Vec<ValueId> = (0..outputs).map(|_| graph.fresh_value("y")).collect();
    let slots = made.iter().copied().map(Some).collect();
    graph.add_node("", op, "", &attributes, ids, slots).unwrap();
    graph.outputs = made;
    Case { graph, inputs: inputs.to_vec(), name: format!("{op} {attributes:?}") }
}

/// A graph and what it is given.
#[derive(Clone, Debug)]
pub struct Case {
    pub graph: Graph,
    pub inputs: Vec<Tensor>,
    pub name: String,
}

/// Loss of FP16 on a number near 1, through a few operations.
pub const HALF: f64 = 4e-3;

impl Case {
    /// The options of a package: for the shapes of the inputs alone, or for any.
    fn options(&self, half: bool, fixed: bool) -> ConvertOptions {
        let mut options = ConvertOptions { half, longest: 64, ..ConvertOptions::default() };
        for (tensor, &id) in self.inputs.iter().zip(&self.graph.inputs) {
            if fixed {
                let name = self.graph.value(id).name.clone();
                options.shapes.insert(name, tensor.shape().to_vec());
            }
        }
        options
    }

    fn compare(&self, options: &ConvertOptions, tolerance: f64) {
        let place = format!("{} with half {}", self.name, options.half);
        let expected = evaluate::run(&self.graph, &self.inputs).unwrap();
        let found = through(&self.graph, options, &self.inputs)
            .unwrap_or_else(|failure| panic!("{place}: {failure}"));
        assert_eq!(found.len(), expected.len(), "{place}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.shape(), expected.shape(), "{place}");
            assert_eq!(found.dtype(), expected.dtype(), "{place}");
            let wide = |tensor: &Tensor| -> Vec<f64> {
                let wide = converted(&tensor.contiguous().unwrap(), DataType::Fp64);
                wide.unwrap().to_vec().unwrap()
            };
            for (a, b) in wide(found).into_iter().zip(wide(expected)) {
                let near = a == b || (a - b).abs() <= tolerance * b.abs().max(1.0);
                assert!(near || (a.is_nan() && b.is_nan()), "{place}: {a}, expected {b}");
            }
        }
    }

    /// The package for these shapes gives what the graph does, in FP32 and in FP16.
    pub fn fixed(self) -> Self {
        self.compare(&self.options(false, true), 1e-5);
        self.compare(&self.options(true, true), HALF);
        self
    }

    /// Checks the package for any shapes like [`Case::fixed`].
    pub fn flexible(self) -> Self {
        self.compare(&self.options(false, false), 1e-5);
        self.compare(&self.options(true, false), HALF);
        self
    }

    /// Checks like [`Case::fixed`], in FP32 alone: for results that jump between inputs that FP16
    /// does not tell apart.
    pub fn fixed32(self) -> Self {
        self.compare(&self.options(false, true), 1e-5);
        self
    }

    /// Checks like [`Case::flexible`], in FP32 alone.
    pub fn flexible32(self) -> Self {
        self.compare(&self.options(false, false), 1e-5);
        self
    }

    /// The package for any shapes is refused, with this in the reason.
    pub fn refused_flexible(self, reason: &str) -> Self {
        self.refuses(&self.options(false, false), reason);
        self
    }

    /// The package for these shapes is refused, with this in the reason.
    pub fn refused(self, reason: &str) -> Self {
        self.refuses(&self.options(false, true), reason);
        self
    }

    fn refuses(&self, options: &ConvertOptions, reason: &str) {
        match through(&self.graph, options, &self.inputs) {
            Err(Failure::Refused(error)) => {
                let text = error.to_string();
                assert!(text.contains(reason), "{}: refused with '{text}'", self.name);
            }
            other => panic!("{}: {other:?}, expected a refusal", self.name),
        }
    }
}
