//! Outputs beside the logits, from which tokens are chosen without all of them.

use galatea_graph::{AttributeValue, Attributes, Graph, ONNX_DOMAIN, ValueId};
use galatea_tensor::Tensor;

use crate::error::{LlmError, LlmErrorKind, Result};
use crate::sampling::TOP;

/// The outputs behind the caches: the number of the first largest logit of each wanted row and that logit, then
/// the largest logits and their numbers, of equal ones the first. A NaN counts as the largest of all.
pub const CHOICES: [&str; 4] = ["best", "best_logit", "top_logits", "top"];

/// Adds [`CHOICES`] to a step's graph, so that a device that computes it need not give all logits away: the best is
/// `[wanted, 1]`, and the top `[wanted, TOP]`, or as many as there are tokens.
///
/// # Errors
/// When the graph has no logits.
pub fn add_choices(graph: &mut Graph, vocabulary: usize) -> Result<()> {
    let failed = |text: String| LlmError::new(LlmErrorKind::Model, "choices", text);
    let logits = graph.find_value("logits").filter(|id| graph.outputs.contains(id));
    let logits = logits.ok_or_else(|| failed("the graph gives no logits".to_owned()))?;
    let count = i64::try_from(TOP.min(vocabulary)).unwrap_or(i64::MAX);
    let count = graph.add_constant("top_k", Tensor::vector(vec![count]));
    let [best, best_logit, top_logits, top] = CHOICES.map(|name| graph.value_named(name));
    let attributes: Attributes =
        [("axis".to_owned(), AttributeValue::Int(1))].into_iter().collect();
    let mut add = |op: &str, inputs: &[ValueId], outputs: &[ValueId]| {
        let inputs = inputs.iter().copied().map(Some).collect();
        let outputs = outputs.iter().copied().map(Some).collect();
        let added = graph.add_node(ONNX_DOMAIN, op, "", &attributes, inputs, outputs);
        added.map_err(|error| failed(error.to_string()))
    };
    add("ArgMax", &[logits], &[best])?;
    add("GatherElements", &[logits, best], &[best_logit])?;
    add("TopK", &[logits, count], &[top_logits, top])?;
    graph.outputs.extend([best, best_logit, top_logits, top]);
    Ok(())
}
