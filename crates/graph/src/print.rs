//! Graphs for people: a line per node, or Graphviz's DOT.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::fact::Fact;
use crate::graph::{Graph, Node, ValueId};
use crate::infer;

/// Longer attributes are cut in the text of a graph.
const MAX_ATTRIBUTES: usize = 160;

/// The graph as text: inputs, one line per node with types and shapes of what it writes, outputs.
/// Subgraphs follow their node, further in.
/// `facts` is what [`crate::infer::facts`] says about the graph.
#[must_use]
pub fn text(graph: &Graph, facts: &[Option<Fact>]) -> String {
    let mut text = String::new();
    lines(&mut text, graph, facts, 1);
    text
}

/// The lines of a graph, and further in those of the bodies of its nodes.
fn lines(text: &mut String, graph: &Graph, facts: &[Option<Fact>], depth: usize) {
    let indent = "  ".repeat(depth);
    for &input in &graph.inputs {
        let _ = writeln!(text, "{indent}input {}", named(graph, facts, input));
    }
    for node in &graph.nodes {
        let outputs: Vec<String> = node
            .outputs
            .iter()
            .map(|slot| slot.map_or("_".into(), |id| named(graph, facts, id)))
            .collect();
        let inputs: Vec<String> =
            node.inputs.iter().map(|slot| slot.map_or("_".into(), |id| read(graph, id))).collect();
        let outputs = outputs.join(", ");
        let inputs = inputs.join(", ");
        let _ = writeln!(
            text,
            "{indent}{outputs} = {}({inputs}){}",
            node.operator_name(),
            attributes(node)
        );
        for body in node.operator.bodies() {
            let _ = writeln!(text, "{indent}  {}:", body.name());
            let inner = infer::facts(body.graph(), &HashMap::new()).unwrap_or_default();
            lines(text, body.graph(), &inner, depth + 2);
        }
    }
    for &output in &graph.outputs {
        let _ = writeln!(text, "{indent}output {}", graph.value(output).name);
    }
}

/// A value with its type and shape.
fn named(graph: &Graph, facts: &[Option<Fact>], id: ValueId) -> String {
    let name = &graph.value(id).name;
    match facts.get(id.index()).and_then(Option::as_ref) {
        Some(fact) => format!("{name}: {fact}"),
        None => name.clone(),
    }
}

/// A value as a node reads it: small constants by their elements.
fn read(graph: &Graph, id: ValueId) -> String {
    match graph.constant(id) {
        Some(tensor) if tensor.elements() <= 4 => format!("{tensor:?}"),
        _ => graph.value(id).name.clone(),
    }
}

/// The operator's attributes as its fields, where it has any.
fn attributes(node: &Node) -> String {
    let text = format!("{:?}", node.operator);
    match text.split_once('{') {
        None => String::new(),
        Some((_, fields)) => {
            let fields = fields.trim_end_matches('}').trim();
            let cut: String = fields.chars().take(MAX_ATTRIBUTES).collect();
            let dots = if cut.len() < fields.len() { " …" } else { "" };
            format!(" {{{cut}{dots}}}")
        }
    }
}

/// The graph in Graphviz's language: a box per node, an edge per value that one node writes and
/// another reads, labelled with type and shape. Constants are left out.
#[must_use]
pub fn dot(graph: &Graph, facts: &[Option<Fact>]) -> String {
    let mut text = String::from("digraph model {\n  node [shape=box];\n");
    let producers = graph.producers();
    let label = |id: ValueId| {
        facts.get(id.index()).and_then(Option::as_ref).map_or_else(String::new, Fact::to_string)
    };
    for (at, &input) in graph.inputs.iter().enumerate() {
        let name = quoted(&graph.value(input).name);
        let _ = writeln!(text, "  in{at} [label={name} shape=ellipse];");
    }
    for (at, node) in graph.nodes.iter().enumerate() {
        let _ = writeln!(text, "  n{at} [label={}];", quoted(&node.operator_name()));
    }
    let source = |id: ValueId| match producers[id.index()] {
        Some(at) => Some(format!("n{at}")),
        None => graph.inputs.iter().position(|&input| input == id).map(|at| format!("in{at}")),
    };
    for (at, node) in graph.nodes.iter().enumerate() {
        for &id in node.inputs.iter().flatten() {
            if let Some(from) = source(id) {
                let _ = writeln!(text, "  {from} -> n{at} [label={}];", quoted(&label(id)));
            }
        }
    }
    for (at, &output) in graph.outputs.iter().enumerate() {
        let name = quoted(&graph.value(output).name);
        let _ = writeln!(text, "  out{at} [label={name} shape=ellipse];");
        if let Some(from) = source(output) {
            let _ = writeln!(text, "  {from} -> out{at} [label={}];", quoted(&label(output)));
        }
    }
    text.push_str("}\n");
    text
}

/// A DOT string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use galatea_tensor::{DataType, Tensor};

    use super::*;
    use crate::{Attributes, infer};

    fn small() -> (Graph, Vec<Option<Fact>>) {
        let mut graph = Graph::new("small");
        graph.opsets.insert(String::new(), 17);
        let x = graph.value_named("a \"quoted\" name");
        graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, &[2, 3]));
        graph.inputs.push(x);
        let one = graph.add_constant("one", Tensor::scalar(1.5_f32));
        let y = graph.value_named("y");
        let inputs = vec![Some(x), Some(one)];
        graph.add_node("", "Add", "sum", &Attributes::new(), inputs, vec![Some(y)]).unwrap();
        graph.outputs.push(y);
        let facts = infer::facts(&graph, &HashMap::new()).unwrap();
        (graph, facts)
    }

    #[test]
    fn a_line_says_what_a_node_reads_and_writes() {
        let (graph, facts) = small();
        let text = text(&graph, &facts);
        assert!(
            text.contains("y: FP32[2,3] = Add(a \"quoted\" name, Tensor(FP32[] [1.5]))"),
            "{text}"
        );
        assert!(text.contains("output y"), "{text}");
    }

    #[test]
    fn dot_quotes_names_and_has_an_edge_for_each_value() {
        let (graph, facts) = small();
        let dot = dot(&graph, &facts);
        assert!(dot.contains(r#"in0 [label="a \"quoted\" name" shape=ellipse];"#), "{dot}");
        assert!(dot.contains("in0 -> n0 [label=\"FP32[2,3]\"];"), "{dot}");
        assert!(dot.contains("n0 -> out0"), "{dot}");
    }
}
