//! Errors of graphs, with the node that is at fault.

use std::fmt;

use galatea_tensor::TensorError;

/// Error of an operator in its attributes or inputs; the code that walks the graph adds the node
/// that holds the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpError(String);

impl OpError {
    /// An error with this text: what was found and what was expected.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OpError {}

impl From<TensorError> for OpError {
    fn from(error: TensorError) -> Self {
        Self(error.to_string())
    }
}

/// Which node an error is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlace {
    /// Position in the graph.
    pub index: usize,
    /// The node's name; often empty.
    pub name: String,
    /// The operator with its domain, such as `Conv` or `com.acme:Foo`.
    pub operator: String,
}

impl fmt::Display for NodePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} '{}' ({})", self.index, self.name, self.operator)
    }
}

/// Kind of an error of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphErrorKind {
    /// No such operator in this domain and opset version.
    UnknownOperator(String),
    /// An operator refuses its attributes or inputs.
    Operator(OpError),
    /// The graph does not hang together: a missing value, a cycle, a value written twice.
    Structure(String),
    /// Inputs given to a run that the graph does not accept.
    Input(String),
}

/// An error of a graph, with the node it is about where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphError {
    /// The kind of the error.
    pub kind: GraphErrorKind,
    /// The node that is at fault.
    pub node: Option<NodePlace>,
}

impl GraphError {
    /// An error about the graph as a whole.
    pub fn structure(text: impl Into<String>) -> Self {
        Self { kind: GraphErrorKind::Structure(text.into()), node: None }
    }

    /// An error about the inputs of a run.
    pub fn input(text: impl Into<String>) -> Self {
        Self { kind: GraphErrorKind::Input(text.into()), node: None }
    }

    /// An operator's error at its node.
    #[must_use]
    pub fn at(node: NodePlace, error: OpError) -> Self {
        Self { kind: GraphErrorKind::Operator(error), node: Some(node) }
    }
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(node) = &self.node {
            write!(f, "{node}: ")?;
        }
        match &self.kind {
            GraphErrorKind::Operator(error) => error.fmt(f),
            GraphErrorKind::UnknownOperator(text)
            | GraphErrorKind::Structure(text)
            | GraphErrorKind::Input(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for GraphError {}
