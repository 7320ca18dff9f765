//! Subgraphs as the operators that run them hold them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use super::Graph;
use super::attribute::SubgraphAttribute;
use crate::collect::collected;
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::Fact;

impl fmt::Debug for OperatorBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} nodes", self.graph.nodes.len())
    }
}

/// Runs a prepared body in place of the reference evaluation.
pub trait BodyRunner: fmt::Debug + Send + Sync {
    /// Computes the outputs of the body's graph from its inputs.
    ///
    /// # Errors
    /// Fails when an operator inside refuses its inputs.
    fn run(&self, inputs: Vec<Datum>) -> Result<Vec<Datum>, OpError>;
}

/// A subgraph of an operator. What it reads of the graphs around it are inputs of the node.
#[derive(Clone)]
pub struct OperatorBody {
    name: &'static str,
    graph: Arc<Graph>,
    captures: Vec<usize>,
    /// Runs the body in place of the reference evaluation.
    pub(crate) runner: Option<Arc<dyn BodyRunner>>,
    height: usize,
    /// Recent results of inference: rewriting infers a graph after every rule, mostly with the same
    /// facts for its bodies.
    pub(crate) inferred: Arc<Mutex<VecDeque<InferredBody>>>,
}

/// Facts of all inputs of a body, and those of its outputs that follow from them.
type InferredBody = (Vec<Option<Fact>>, Vec<Fact>);

impl OperatorBody {
    /// The body that an attribute gives to a node which reads the captured values from input
    /// `first` on.
    pub(crate) fn new(name: &'static str, subgraph: SubgraphAttribute, first: usize) -> Self {
        let SubgraphAttribute { graph, captured } = subgraph;
        let captures = (first..first + captured).collect();
        Self::of(name, Arc::new(graph), captures)
    }

    fn of(name: &'static str, graph: Arc<Graph>, captures: Vec<usize>) -> Self {
        let inner = graph.nodes.iter().flat_map(|node| node.operator.bodies());
        let height = 1 + inner.map(|body| body.height).max().unwrap_or(0);
        Self { name, graph, captures, runner: None, height, inferred: Arc::default() }
    }

    /// The attribute's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The nodes. The inputs are the body's own, followed by the captured values.
    #[must_use]
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Positions of the captured values among the inputs of the node, in the order in which they
    /// are inputs of the graph.
    #[must_use]
    pub fn captures(&self) -> &[usize] {
        &self.captures
    }

    /// How many inputs are the body's own.
    #[must_use]
    pub fn own_inputs(&self) -> usize {
        self.graph.inputs.len() - self.captures.len()
    }

    /// Returns the number of outputs.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.graph.outputs.len()
    }

    /// How deep subgraphs are nested, this one included.
    pub(crate) fn height(&self) -> usize {
        self.height
    }

    /// The body with another graph, whose last inputs are captured from these inputs of the node.
    #[must_use]
    pub fn with_graph(&self, graph: Graph, captures: Vec<usize>) -> Self {
        Self::of(self.name, Arc::new(graph), captures)
    }

    /// The body, run by something else than the reference evaluation.
    #[must_use]
    pub fn with_runner(&self, runner: Arc<dyn BodyRunner>) -> Self {
        Self { runner: Some(runner), ..self.clone() }
    }

    /// Refuses another number of inputs or outputs.
    pub(crate) fn check(&self, inputs: usize, outputs: usize) -> Result<(), OpError> {
        let found = (self.own_inputs(), self.outputs());
        if found == (inputs, outputs) {
            return Ok(());
        }
        Err(OpError::new(format!(
            "'{}' takes {} inputs and gives {} outputs, expected {inputs} and {outputs}",
            self.name, found.0, found.1
        )))
    }

    /// Takes the captured values from the inputs of the node.
    pub(crate) fn capture(&self, inputs: &mut [Option<Datum>]) -> Result<Vec<Datum>, OpError> {
        let take = |&at: &usize| {
            inputs.get_mut(at).and_then(Option::take).ok_or_else(|| {
                OpError::new(format!("'{}' reads a value that is absent here", self.name))
            })
        };
        collected(&mut self.captures.iter().map(take))
    }

    /// Returns the fact that the model declares for an output.
    pub(crate) fn declared_output(&self, at: usize) -> Option<&Fact> {
        let id = *self.graph.outputs.get(at)?;
        self.graph.value(id).declared.as_ref()
    }
}
