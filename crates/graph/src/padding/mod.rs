//! Analysis of whether the inputs of a graph may be padded: zeros stand behind the real positions,
//! and the front of each output equals the output without padding.
//!
//! Every axis of a length is followed through the graph, with the values behind the real positions
//! along it ([`PaddingContent`]). Most operators keep positions apart. Some combine them, such as keys that
//! a query looks at, or a mean over a sequence. There the padding must be known to count for
//! nothing: a factor of 0, or a score so low that its share is 0. Masks achieve this: an input of
//! zeros behind the tokens, of which a model makes zeros or numbers of -10,000 and less. An
//! operator that is not known to keep to this is an error that names the node.

mod elementwise;
mod moves;
mod products;

use std::collections::HashMap;

use galatea_tensor::OrderedMap;

use crate::collect::collected;
use crate::{Dim, Fact, GALATEA_DOMAIN, Graph, Node, ValueId};

/// Number added to a score so that its share is 0 whatever the score was: scores differ by less
/// than this.
const HIDING: f64 = -9e3;

/// Which axes of a graph's inputs may be longer than what they hold, and what has to be cut off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphPadding {
    /// For each input, the axes that have the length.
    pub inputs: Vec<Vec<usize>>,
    /// The same for each output.
    pub outputs: Vec<Vec<usize>>,
    /// Places of the inputs of which masks are made: along the length each row must have an element that is not 0,
    /// or all that it hides would count the same.
    pub masks: Vec<usize>,
}

/// Values behind the real positions along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PaddingContent {
    /// Something finite.
    Any,
    /// This number, which comes of these inputs.
    Number(f64, InputPlaces),
    /// Scores whose share is 0, because of what comes of these inputs.
    Hidden(InputPlaces),
}

impl PaddingContent {
    /// Returns whether it is so low that its share of a softmax is 0, and because of which inputs.
    fn hides(self) -> Option<InputPlaces> {
        match self {
            Self::Hidden(by) => Some(by),
            Self::Number(number, by) if number <= HIDING => Some(by),
            _ => None,
        }
    }

    fn is_zero(self) -> bool {
        matches!(self, Self::Number(number, _) if number == 0.0)
    }
}

/// A set of inputs, by their places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct InputPlaces(u128);

impl InputPlaces {
    fn of(input: usize) -> Option<Self> {
        let bit = u32::try_from(input).ok()?;
        1_u128.checked_shl(bit).filter(|bit| *bit != 0).map(Self)
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// For each axis of the length, what stands behind.
type PaddedValueAxes = OrderedMap<usize, PaddingContent>;

/// Axes and what stands behind each. Collecting would sort first, which is much code for each type
/// of iterator.
fn padded_axes(all: impl IntoIterator<Item = (usize, PaddingContent)>) -> PaddedValueAxes {
    let mut axes = PaddedValueAxes::new();
    for (axis, content) in all {
        axes.insert(axis, content);
    }
    axes
}

/// Kind of a value in the walk through the graph.
#[derive(Clone, Debug, PartialEq)]
enum PaddedValue {
    /// A tensor; without axes it does not depend on the length.
    Data(PaddedValueAxes),
    /// Lengths, which become others where inputs are longer.
    Lengths,
}

/// State of the walk through a graph.
struct PaddingWalk<'g> {
    graph: &'g Graph,
    facts: &'g [Option<Fact>],
    name: &'g str,
    kinds: HashMap<ValueId, PaddedValue>,
    /// The inputs that some value comes of.
    sources: HashMap<ValueId, InputPlaces>,
    /// The inputs that softmaxes and maxima rely on.
    masks: InputPlaces,
}

/// An operator's rule: what its outputs are, or why that is not known.
type PaddingRule = fn(&mut PaddingWalk<'_>, &Node) -> Result<Vec<PaddedValue>, String>;

/// Operators that keep positions apart or know what they put together.
const RULES: &[(&str, PaddingRule)] = &[
    ("Attention", products::attention),
    ("Concat", moves::concat),
    ("ConstantOfShape", moves::filled),
    ("Expand", moves::expand),
    ("Flatten", moves::reshape),
    ("FusedElementwise", elementwise::map),
    ("FusedMatMul", products::mat_mul),
    ("Gather", moves::gather),
    ("Gemm", products::gemm),
    ("LayerNormalization", products::normalize),
    ("MatMul", products::mat_mul),
    ("RMSNormalization", products::normalize),
    ("Range", moves::filled),
    ("ReduceL1", products::reduce),
    ("ReduceL2", products::reduce),
    ("ReduceMax", products::reduce),
    ("ReduceMean", products::reduce),
    ("ReduceMin", products::reduce),
    ("ReduceSum", products::reduce),
    ("ReduceSumSquare", products::reduce),
    ("Reshape", moves::reshape),
    ("Shape", moves::shape),
    ("Slice", moves::slice),
    ("Softmax", products::softmax),
    ("Split", moves::split),
    ("Squeeze", moves::reshape),
    ("Transpose", moves::transpose),
    ("Unsqueeze", moves::reshape),
];

/// Which axes may be padded that have the length of this name.
///
/// # Errors
/// Why they may not, with the node.
pub fn padding(graph: &Graph, facts: &[Option<Fact>], name: &str) -> Result<GraphPadding, String> {
    let mut walk = PaddingWalk {
        graph,
        facts,
        name,
        kinds: HashMap::new(),
        sources: HashMap::new(),
        masks: InputPlaces::default(),
    };
    let mut inputs = Vec::new();
    for (at, &id) in graph.inputs.iter().enumerate() {
        let axes =
            walk.axes(id).map_err(|why| format!("input '{}': {why}", graph.value(id).name))?;
        let source = InputPlaces::of(at).ok_or_else(|| format!("more than {at} inputs"))?;
        let zeros = axes.iter().map(|&axis| (axis, PaddingContent::Number(0.0, source)));
        walk.kinds.insert(id, PaddedValue::Data(padded_axes(zeros)));
        walk.sources.insert(id, source);
        inputs.push(axes);
    }
    if inputs.iter().all(Vec::is_empty) {
        return Err(format!("no input has the length '{name}'"));
    }
    for (at, node) in graph.nodes.iter().enumerate() {
        walk.follow(node).map_err(|why| format!("{}: {why}", graph.place(at)))?;
    }
    let output = |&id: &ValueId| match walk.kinds.get(&id) {
        Some(PaddedValue::Lengths) => Err(format!("output '{}' is a length", graph.value(id).name)),
        _ => walk.axes(id),
    };
    let outputs = collected(&mut graph.outputs.iter().map(output))?;
    let mask = |at: &usize| InputPlaces::of(*at).is_some_and(|one| walk.masks.0 & one.0 != 0);
    let masks = (0..graph.inputs.len()).filter(mask).collect();
    Ok(GraphPadding { inputs, outputs, masks })
}

impl<'g> PaddingWalk<'g> {
    fn fact(&self, id: ValueId) -> Option<&'g Fact> {
        self.facts.get(id.index()).and_then(Option::as_ref)
    }

    /// The axes of a value whose length this is.
    fn axes(&self, id: ValueId) -> Result<Vec<usize>, String> {
        let fact = self.fact(id).filter(|fact| fact.is_tensor());
        let shape = fact.and_then(|fact| fact.shape.as_ref());
        let shape = shape.ok_or("its shape is not known")?;
        let mut axes = Vec::new();
        for (axis, dim) in shape.iter().enumerate() {
            match dim {
                Dim::Unknown => return Err(format!("the length of axis {axis} is not known")),
                Dim::Symbol(own) if **own == *self.name => axes.push(axis),
                other if other.names().iter().any(|one| one == self.name) => {
                    return Err(format!(
                        "axis {axis} has a length that is made of '{}'",
                        self.name
                    ));
                }
                _ => {}
            }
        }
        Ok(axes)
    }

    /// The lengths of a value.
    fn dims(&self, id: ValueId) -> Result<&'g [Dim], String> {
        let shape = self.fact(id).and_then(|fact| fact.shape.as_deref());
        shape.ok_or_else(|| "a shape is not known".to_owned())
    }

    /// Returns an input of a node and its kind; `None` if it is absent.
    fn given(&self, node: &Node, at: usize) -> Option<(ValueId, PaddedValue)> {
        let id = node.input(at)?;
        Some((id, self.kind(id)))
    }

    fn kind(&self, id: ValueId) -> PaddedValue {
        self.kinds.get(&id).cloned().unwrap_or(PaddedValue::Data(PaddedValueAxes::new()))
    }

    /// The axes of an input that is a tensor.
    fn data(&self, node: &Node, at: usize) -> Result<(ValueId, PaddedValueAxes), String> {
        match self.given(node, at) {
            Some((id, PaddedValue::Data(axes))) => Ok((id, axes)),
            Some((_, PaddedValue::Lengths)) => Err(format!("input {at} is computed of lengths")),
            None => Err(format!("input {at} is absent")),
        }
    }

    /// Returns whether all inputs from a place on are the same whatever the length.
    fn is_free_from(&self, node: &Node, first: usize) -> bool {
        let free = |id: &ValueId| self.kind(*id) == PaddedValue::Data(PaddedValueAxes::new());
        node.inputs.iter().skip(first).flatten().all(free)
    }

    /// The integers of a value that is known.
    fn integers(&self, node: &Node, at: usize) -> Option<Vec<i64>> {
        let id = node.input(at)?;
        let known = self.fact(id).and_then(|fact| fact.value.as_ref());
        self.graph.constant(id).or(known)?.to_i64_vec().ok()
    }

    /// The axes of an output, behind which stands anything.
    fn anything(&self, node: &Node) -> Result<PaddedValue, String> {
        let id = node.outputs.first().copied().flatten().ok_or("it gives nothing")?;
        Ok(PaddedValue::Data(padded_axes(
            self.axes(id)?.into_iter().map(|axis| (axis, PaddingContent::Any)),
        )))
    }

    /// Takes note of what a node gives.
    fn follow(&mut self, node: &Node) -> Result<(), String> {
        let from = node.inputs.iter().flatten().filter_map(|id| self.sources.get(id));
        let from = from.fold(InputPlaces::default(), |sum, one| sum.with(*one));
        for &id in node.outputs.iter().flatten() {
            self.sources.insert(id, from);
        }
        let open = |id: &ValueId| self.fact(*id).is_none_or(|fact| fact.value.is_none());
        let open: Vec<Option<ValueId>> = node.outputs.iter().map(|id| id.filter(open)).collect();
        if open.iter().all(Option::is_none) {
            return Ok(());
        }
        // What the length does not reach is the same with any.
        let kinds = match self.is_free_from(node, 0) {
            true => vec![PaddedValue::Data(PaddedValueAxes::new())],
            false => self.rule(node)?(self, node)?,
        };
        for (at, id) in open.into_iter().enumerate() {
            let Some(id) = id else { continue };
            let kind = kinds.get(at).or(kinds.first()).cloned();
            let kind = kind.ok_or("nothing is known of what it gives")?;
            self.check(id, &kind)?;
            self.kinds.insert(id, kind);
        }
        Ok(())
    }

    fn rule(&self, node: &Node) -> Result<PaddingRule, String> {
        let op = node.op_type.as_str();
        let own = node.domain.is_empty() || node.domain == GALATEA_DOMAIN;
        let found = RULES.iter().find(|(name, _)| own && *name == op).map(|(_, rule)| *rule);
        let by_element = node.traits().elementwise.is_some();
        let map = by_element.then_some(elementwise::map as PaddingRule);
        found.or(map).ok_or_else(|| format!("'{op}' may put positions together"))
    }

    /// Returns whether what is said of a value has its axes.
    fn check(&self, id: ValueId, kind: &PaddedValue) -> Result<(), String> {
        let PaddedValue::Data(said) = kind else { return Ok(()) };
        let axes = self.axes(id)?;
        match said.keys().eq(axes.iter()) {
            true => Ok(()),
            false => {
                Err(format!("its axes of the length are {axes:?}, followed were {:?}", said.keys()))
            }
        }
    }
}

/// An axis that may count from the end.
fn resolved(axis: i64, rank: usize) -> Result<usize, String> {
    let rank_i64 = i64::try_from(rank).unwrap_or(i64::MAX);
    let at = if axis < 0 { axis + rank_i64 } else { axis };
    usize::try_from(at).ok().filter(|&at| at < rank).ok_or_else(|| format!("axis {axis} of {rank}"))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
