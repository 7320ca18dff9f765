//! Work of models, as operations and bytes.

use std::collections::HashMap;

use galatea_graph::{Dim, Fact, Graph, GraphError, infer};

use crate::work::NodeWork;

/// Work of one operator of a graph for one row of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperatorWork {
    /// Its name.
    pub operator: String,
    /// Multiplications and additions.
    pub operations: f64,
    /// Bytes of its constants, which the rows of a batch share.
    pub weight_bytes: f64,
    /// Bytes that it reads and writes besides.
    pub moved_bytes: f64,
}

/// Work of a graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphWork {
    /// Its operators.
    pub operators: Vec<OperatorWork>,
}

impl GraphWork {
    /// Returns the work of a sorted graph for one row. Lengths that are not known count as 1, except those in
    /// `lengths`.
    ///
    /// # Errors
    /// Fails when shapes cannot be inferred.
    pub fn of(graph: &Graph, lengths: &HashMap<String, usize>) -> Result<Self, GraphError> {
        let mut known = HashMap::new();
        for &input in &graph.inputs {
            let Some(mut fact) = graph.value(input).declared.clone() else { continue };
            for dim in fact.shape.iter_mut().flatten() {
                *dim = match dim {
                    Dim::Known(length) => Dim::Known(*length),
                    Dim::Symbol(name) => Dim::Known(*lengths.get(&**name).unwrap_or(&1)),
                    Dim::Unknown => Dim::Known(1),
                };
            }
            known.insert(input, fact);
        }
        let facts = infer::facts(graph, &known)?;
        let fact = |id: galatea_graph::ValueId| facts.get(id.index())?.as_ref();
        let is_constant = |slot: &Option<galatea_graph::ValueId>| {
            let fact: Option<&Fact> = slot.and_then(fact);
            slot.is_some_and(|id| graph.value(id).initializer.is_some())
                || fact.is_some_and(|fact| fact.value.is_some())
        };
        let operator = |node: &galatea_graph::Node| {
            let work = NodeWork::of(node, &fact);
            let reads = node.inputs.iter().zip(&work.reads);
            let (held, moved): (Vec<_>, Vec<_>) = reads.partition(|(slot, _)| is_constant(slot));
            let sum = |all: Vec<(_, &u64)>| all.into_iter().map(|(_, &bytes)| bytes).sum::<u64>();
            let weights = sum(held).saturating_add(work.weights);
            let moved = sum(moved).saturating_add(work.writes.iter().sum());
            OperatorWork {
                operator: node.op_type.clone(),
                operations: float(work.operations),
                weight_bytes: float(weights),
                moved_bytes: float(moved),
            }
        };
        Ok(Self { operators: graph.nodes.iter().map(operator).collect() })
    }

    /// Returns the work of a model of which only the totals are known, divided evenly among `operators`
    /// operators.
    #[must_use]
    pub fn alike(operators: usize, all: &OperatorWork) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "operators are few")]
        let count = operators.max(1) as f64;
        let one = OperatorWork {
            operator: all.operator.clone(),
            operations: all.operations / count,
            weight_bytes: all.weight_bytes / count,
            moved_bytes: all.moved_bytes / count,
        };
        Self { operators: vec![one; operators.max(1)] }
    }

    /// Bytes of all constants.
    #[must_use]
    pub fn weight_bytes(&self) -> f64 {
        self.operators.iter().map(|operator| operator.weight_bytes).sum()
    }
}

/// Work of a decoder of texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecoderWork {
    /// Numbers in its matrices, each of which a token multiplies once.
    pub parameters: f64,
    /// Bytes of them as they are stored.
    pub weight_bytes: f64,
    /// Layers.
    pub layers: f64,
    /// Length of a token's row.
    pub hidden: f64,
    /// Bytes of the keys and values of a token in all layers.
    pub kv_bytes_per_token: f64,
}

impl DecoderWork {
    /// Multiplications and additions for `tokens` tokens that stand behind `past` others of one text.
    #[must_use]
    pub fn operations(&self, tokens: f64, past: f64) -> f64 {
        // Each token meets those before it twice: for the score and for the sum of values.
        let met = tokens * (past + tokens / 2.0);
        2.0 * self.parameters * tokens + 4.0 * met * self.hidden * self.layers
    }
}

#[allow(clippy::cast_precision_loss, reason = "a prediction")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use galatea_graph::Attributes;
    use galatea_tensor::{DataType, Tensor};

    use super::*;

    #[test]
    fn rows_share_constants_and_unknown_lengths_are_one() {
        let mut graph = Graph::new("test");
        graph.opsets.insert(String::new(), 17);
        let [x, w, y] = ["x", "w", "y"].map(|name| graph.value_named(name));
        let mut fact = Fact::fixed(DataType::Fp32, &[1, 8]);
        fact.shape = Some(vec![Dim::Symbol("batch".into()), Dim::Known(8)]);
        graph.value_mut(x).declared = Some(fact);
        let weights = Tensor::from_vec(&[8, 4], vec![0.0_f32; 32]).unwrap();
        graph.value_mut(w).initializer = Some(weights);
        graph.inputs = vec![x];
        graph.outputs = vec![y];
        let inputs = vec![Some(x), Some(w)];
        let outputs = vec![Some(y)];
        graph.add_node("", "MatMul", "n", &Attributes::new(), inputs, outputs).unwrap();
        let expected = OperatorWork {
            operator: "MatMul".to_owned(),
            operations: 64.0,
            weight_bytes: 128.0,
            moved_bytes: 48.0,
        };
        let work = GraphWork::of(&graph, &HashMap::new()).unwrap();
        assert_eq!(work.operators, [expected]);
        let lengths = HashMap::from([("batch".to_owned(), 3)]);
        let three = GraphWork::of(&graph, &lengths).unwrap();
        assert!((three.operators[0].operations - 192.0).abs() < 1e-9);
        assert!((three.weight_bytes() - 128.0).abs() < 1e-9);
    }
}
