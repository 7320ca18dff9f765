//! Nodes of operators that are named, appended to graphs.

use std::sync::Arc;

use crate::error::{GraphError, NodePlace};
use crate::graph::attribute::{AttributeValue, Attributes};
use crate::graph::operator::Operator;
use crate::graph::{Graph, Node, ParsedOperator, ValueId};

impl Graph {
    /// Parses and appends a node of an operator in this module. What its subgraphs read of this
    /// graph becomes inputs of the node, behind its own.
    ///
    /// # Errors
    /// Fails when the operator is unknown or refuses the attributes.
    pub fn add_node(
        &mut self,
        domain: &str,
        op_type: &str,
        name: &str,
        attributes: &Attributes,
        mut inputs: Vec<Option<ValueId>>,
        outputs: Vec<Option<ValueId>>,
    ) -> Result<(), GraphError> {
        let opset = self.opsets.get(domain).copied();
        let operator =
            super::parse(domain, op_type, opset, attributes, inputs.len(), outputs.len()).map_err(
                |kind| GraphError {
                    kind,
                    node: Some(NodePlace {
                        index: self.nodes.len(),
                        name: name.to_owned(),
                        operator: if domain.is_empty() {
                            op_type.to_owned()
                        } else {
                            format!("{domain}:{op_type}")
                        },
                    }),
                },
            )?;
        for value in attributes.values() {
            let AttributeValue::Graph(subgraph) = value else { continue };
            let inner = &subgraph.graph;
            let own = inner.inputs.len().saturating_sub(subgraph.captured);
            let captured = inner.inputs[own..].iter();
            inputs.extend(captured.map(|&id| Some(self.value_named(&inner.value(id).name))));
        }
        let operator: Arc<dyn Operator> = Arc::from(operator);
        let plain =
            |(_, value): &(&String, &AttributeValue)| !matches!(value, AttributeValue::Graph(_));
        let plain =
            attributes.iter().filter(plain).map(|(name, value)| (name.clone(), value.clone()));
        let attributes = Arc::new(plain.collect());
        let parsed = Some(ParsedOperator { operator: Arc::clone(&operator), opset, attributes });
        self.nodes.push(Node {
            name: name.to_owned(),
            domain: domain.to_owned(),
            op_type: op_type.to_owned(),
            inputs,
            outputs,
            operator,
            parsed,
        });
        Ok(())
    }
}
