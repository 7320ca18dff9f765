//! Random graphs of a few operators.

use std::collections::HashMap;

use galatea_graph::{AttributeValue, Attributes, Fact, Graph, ValueId, infer};
use galatea_tensor::{DataType, OrderedSet, Tensor};
use galatea_testkit::noise::NoiseGenerator;

use super::operators::FAMILIES;

/// A float value of the graph and its shape.
#[derive(Clone, Debug)]
pub(super) struct FloatValue {
    pub(super) id: ValueId,
    pub(super) shape: Vec<usize>,
}

impl FloatValue {
    pub(super) fn rank(&self) -> usize {
        self.shape.len()
    }

    pub(super) fn last(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }
}

/// Shapes of inputs: rows, sequences and images. Some rows are long.
const SHAPES: &[&[usize]] = &[
    &[4, 32],
    &[2, 6],
    &[1, 2048],
    &[3, 300],
    &[2, 5, 16],
    &[1, 8, 64],
    &[1, 4, 6, 6],
    &[2, 8, 5, 4],
    &[1, 16, 3, 7],
];

/// The most elements of a value.
const MAX_ELEMENTS: usize = 1 << 14;

/// A graph under construction.
#[derive(Clone)]
pub(super) struct Grower {
    pub(super) graph: Graph,
    pub(super) noise: NoiseGenerator,
    /// Float values so far; the first is the input.
    pub(super) values: Vec<FloatValue>,
    /// True if results jump between inputs that FP16 does not tell apart.
    pub(super) jumps: bool,
}

impl Grower {
    pub(super) fn new(seed: u64) -> Self {
        let mut noise = NoiseGenerator::new(seed);
        let shape = SHAPES[noise.below(SHAPES.len())].to_vec();
        let mut graph = Graph::new("half_fuzz");
        graph.opsets.insert(String::new(), 23);
        graph.opsets.insert("com.microsoft".to_owned(), 1);
        let id = graph.value_named("x");
        graph.value_mut(id).declared = Some(Fact::fixed(DataType::Fp32, &shape));
        graph.inputs.push(id);
        Self { graph, noise, values: vec![FloatValue { id, shape }], jumps: false }
    }

    /// Grows a graph with so many operators of any family.
    pub(super) fn grown(seed: u64) -> Self {
        let mut grower = Self::new(seed);
        let count = 1 + grower.noise.below(6);
        let mut tries = 0;
        while grower.values.len() <= count && tries < 40 {
            tries += 1;
            grower.step();
        }
        let last = grower.values[grower.values.len() - 1].id;
        grower.graph.outputs = vec![last];
        grower
    }

    /// Adds one operator, or nothing where it does not take the value that it got.
    fn step(&mut self) {
        let family = FAMILIES[self.noise.below(FAMILIES.len())];
        let make = family[self.noise.below(family.len())];
        let at = match self.noise.below(4) {
            0 => self.noise.below(self.values.len()),
            _ => self.values.len() - 1,
        };
        let x = self.values[at].clone();
        let mut tried = self.clone();
        let made = make(&mut tried, &x);
        self.noise = tried.noise.clone();
        let Some(id) = made else { return };
        let Ok(facts) = infer::facts(&tried.graph, &HashMap::new()) else { return };
        let fact = facts.get(id.index()).and_then(Option::as_ref);
        let Some(fact) = fact.filter(|fact| fact.dtype == DataType::Fp32) else { return };
        let Some(shape) = fact.known_shape() else { return };
        let elements: usize = shape.iter().product();
        if !(1..=MAX_ELEMENTS).contains(&elements) || shape.is_empty() || shape.len() > 5 {
            return;
        }
        tried.values.push(FloatValue { id, shape });
        *self = tried;
    }

    /// The domain and name of each operator of the graph.
    pub(super) fn operators(&self) -> OrderedSet<(String, String)> {
        let row = |node: &galatea_graph::Node| (node.domain.clone(), node.op_type.clone());
        self.graph.nodes.iter().map(row).collect()
    }

    pub(super) fn nodes(
        &mut self,
        name: &str,
        named: &[(&str, AttributeValue)],
        inputs: &[ValueId],
        outputs: usize,
    ) -> Option<Vec<ValueId>> {
        let inputs = inputs.iter().copied().map(Some).collect();
        self.sparse(name, named, inputs, outputs)
    }

    /// Adds a node some of whose inputs are absent.
    pub(super) fn sparse(
        &mut self,
        name: &str,
        named: &[(&str, AttributeValue)],
        inputs: Vec<Option<ValueId>>,
        outputs: usize,
    ) -> Option<Vec<ValueId>> {
        let (domain, name) = name.split_once(':').unwrap_or(("", name));
        let domain = if domain == "ms" { "com.microsoft" } else { domain };
        let attributes: Attributes =
            named.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let made: Vec<ValueId> = (0..outputs).map(|_| self.graph.fresh_value(name)).collect();
        let slots = made.iter().copied().map(Some).collect();
        self.graph.add_node(domain, name, "", &attributes, inputs, slots).ok()?;
        Some(made)
    }

    pub(super) fn node(
        &mut self,
        name: &str,
        named: &[(&str, AttributeValue)],
        inputs: &[ValueId],
    ) -> Option<ValueId> {
        self.nodes(name, named, inputs, 1)?.first().copied()
    }

    pub(super) fn op(&mut self, name: &str, inputs: &[ValueId]) -> Option<ValueId> {
        self.node(name, &[], inputs)
    }

    pub(super) fn constant(&mut self, tensor: Tensor) -> ValueId {
        self.graph.add_constant("c", tensor)
    }

    pub(super) fn number(&mut self, value: f32) -> ValueId {
        self.constant(Tensor::scalar(value))
    }

    pub(super) fn ints(&mut self, all: &[i64]) -> ValueId {
        self.constant(Tensor::vector(all.to_vec()))
    }

    /// A number from 0 to below 1.
    pub(super) fn share(&mut self) -> f32 {
        self.noise.below(1 << 16) as f32 / 65_536.0
    }

    /// Ten to a power between two limits.
    pub(super) fn power(&mut self, low: f32, high: f32) -> f32 {
        10.0_f32.powf(low + (high - low) * self.share())
    }

    pub(super) fn floats(&mut self, shape: &[usize], low: f32, high: f32) -> Tensor {
        let count = shape.iter().product();
        let all = (0..count).map(|_| low + (high - low) * self.share()).collect();
        Tensor::from_vec(shape, all).unwrap()
    }

    pub(super) fn weights(&mut self, shape: &[usize], reach: f32) -> ValueId {
        let tensor = self.floats(shape, -reach, reach);
        self.constant(tensor)
    }

    pub(super) fn codes(&mut self, shape: &[usize], signed: bool) -> ValueId {
        let count = shape.iter().product();
        let all: Vec<u8> = (0..count).map(|_| self.noise.below(256) as u8).collect();
        let tensor = match signed {
            true => {
                Tensor::from_vec(shape, all.into_iter().map(u8::cast_signed).collect::<Vec<_>>())
            }
            false => Tensor::from_vec(shape, all),
        };
        self.constant(tensor.unwrap())
    }

    pub(super) fn one_of<'a>(&mut self, names: &[&'a str]) -> &'a str {
        names[self.noise.below(names.len())]
    }

    /// Another value of the same shape, or a constant that broadcasts to it.
    pub(super) fn beside(&mut self, x: &FloatValue) -> ValueId {
        let same: Vec<ValueId> =
            self.values.iter().filter(|one| one.shape == x.shape).map(|one| one.id).collect();
        if self.noise.once_in(2) {
            return same[self.noise.below(same.len())];
        }
        let reach = self.power(-4.0, 4.0);
        let shape = if self.noise.once_in(2) { vec![] } else { vec![x.last()] };
        self.weights(&shape, reach)
    }
}
