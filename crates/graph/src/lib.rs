//! Operator semantics: definitions, shape inference, reference evaluation, rewrites. This crate
//! knows no device.
//!
//! A [`Graph`] is a list of [`Node`]s in topological order over [`ValueId`]s; each node carries its
//! parsed [`Operator`]. [`ops::FAMILIES`] lists every operator there is; [`infer::facts`] derives
//! types, shapes and known values; [`evaluate::run`] computes a graph with the reference
//! evaluation of its operators, the oracle for every execution provider. What a subgraph of a
//! control-flow operator reads from outside is an input of the node, so whoever walks a graph's
//! nodes need not look into their [bodies](Body).

#![forbid(unsafe_code)]

pub mod blocks;
mod body;
pub mod channels;
mod collect;
mod datum;
mod error;
pub mod evaluate;
mod fact;
mod graph;
pub mod infer;
mod length;
pub mod limits;
mod map;
pub mod ops;
pub mod padding;
pub mod print;
pub mod rewrite;
pub mod rows;
mod traits;

use graph::{attribute, operator};

pub use datum::{Datum, TensorSequence};
pub use error::{GraphError, GraphErrorKind, NodePlace, OpError};
pub use fact::{Dim, Fact, FactKind};
pub use graph::attribute::{AttributeReader, AttributeValue, Attributes, SubgraphAttribute};
pub use graph::operator::{
    Arity, OpDef, Operator, OperatorInputs, ParseContext, onnx_data_type, onnx_number, tensors_only,
};
pub use graph::{BodyRunner, Graph, GraphValue, Node, OperatorBody, ParsedOperator, ValueId};
pub use map::{KeyedMap, MapKey};
pub use ops::cast::converted;
pub use traits::{DataMovement, ElementwiseInputs, NumericClass, OpTraits, RowIndependence};

/// The ONNX default operator domain.
pub const ONNX_DOMAIN: &str = "";
/// The domain of classical machine learning.
pub const ML_DOMAIN: &str = "ai.onnx.ml";
/// The domain of operators that only rewrites produce.
pub const GALATEA_DOMAIN: &str = "ai.galatea";
