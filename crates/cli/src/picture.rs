//! `galatea inspect --stage`, `--dot` and `--svg`: the graph of a model as text and as a drawing.

use std::collections::HashMap;
use std::fmt::Write as _;

use clap::Args;
use galatea_graph::{Graph, ValueId, infer, print, rewrite};
use galatea_runtime::OptimiseLevel;

use super::layers::{self, DrawnBox};

/// Form in which a graph is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrawingKind {
    /// Text after each rewrite.
    Stages,
    /// Graphviz's language, after all rewrites.
    Dot,
    /// A drawing, after all rewrites.
    Svg,
}

/// Options for a drawing of the graph.
#[derive(Debug, Args)]
pub(super) struct DrawingChoices {
    #[arg(
        long,
        conflicts_with_all = ["dot", "svg"],
        help = "print the graph after each rewrite"
    )]
    stage: bool,
    #[arg(long, conflicts_with = "svg", help = "print the rewritten graph for Graphviz")]
    dot: bool,
    #[arg(long, help = "print a drawing of the rewritten graph")]
    svg: bool,
}

impl DrawingChoices {
    /// Returns the drawing that is asked for, if any, with the name of its option.
    pub(super) fn kind(&self) -> Option<(&'static str, DrawingKind)> {
        let DrawingChoices { stage, dot, svg } = *self;
        let rows = [
            (stage, ("stage", DrawingKind::Stages)),
            (dot, ("dot", DrawingKind::Dot)),
            (svg, ("svg", DrawingKind::Svg)),
        ];
        rows.into_iter().find_map(|(given, found)| given.then_some(found))
    }
}

impl DrawingKind {
    /// The text that shows a graph rewritten up to a level.
    ///
    /// # Errors
    /// Fails when the model is invalid.
    pub(super) fn of(self, mut graph: Graph, level: OptimiseLevel) -> Result<String, String> {
        graph.sort().map_err(|error| error.to_string())?;
        let mut text = String::new();
        let mut failed = None;
        if self == Self::Stages {
            text = stage("as read", &graph)?;
        }
        rewrite::optimise_watched(&mut graph, level, &mut |rule, times, graph| {
            if self != Self::Stages {
                return;
            }
            // A rule may leave its nodes out of order; the session sorts once at the end.
            let mut sorted = graph.clone();
            let shown = sorted
                .sort()
                .map_err(|error| error.to_string())
                .and_then(|()| stage(&format!("{rule}, {times} times"), &sorted));
            match shown {
                Ok(shown) => text.push_str(&shown),
                Err(error) => failed = Some(error),
            }
        })
        .map_err(|error| error.to_string())?;
        if let Some(error) = failed {
            return Err(error);
        }
        graph.sort().map_err(|error| error.to_string())?;
        match self {
            Self::Stages => Ok(text),
            Self::Dot => dot(&graph),
            Self::Svg => svg(&graph),
        }
    }
}

fn stage(title: &str, graph: &Graph) -> Result<String, String> {
    let facts = infer::facts(graph, &HashMap::new()).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let _ = writeln!(text, "== {title}: {} nodes", graph.nodes.len());
    text.push_str(&print::text(graph, &facts));
    Ok(text)
}

fn dot(graph: &Graph) -> Result<String, String> {
    let facts = infer::facts(graph, &HashMap::new()).map_err(|error| error.to_string())?;
    Ok(print::dot(graph, &facts))
}

fn svg(graph: &Graph) -> Result<String, String> {
    let facts = infer::facts(graph, &HashMap::new()).map_err(|error| error.to_string())?;
    let label = |id: ValueId| match &facts[id.index()] {
        Some(fact) => format!("{}: {fact}", graph.value(id).name),
        None => graph.value(id).name.clone(),
    };
    let port = |&id: &ValueId| DrawnBox { label: label(id), is_port: true };
    let mut shapes: Vec<DrawnBox> = graph.inputs.iter().map(port).collect();
    let mut writers: HashMap<ValueId, usize> =
        graph.inputs.iter().enumerate().map(|(at, &id)| (id, at)).collect();
    let mut edges = Vec::new();
    for node in &graph.nodes {
        let at = shapes.len();
        shapes.push(DrawnBox { label: node.operator_name(), is_port: false });
        let mut read: Vec<ValueId> = node.inputs.iter().flatten().copied().collect();
        read.dedup();
        edges.extend(read.iter().filter_map(|id| Some((*writers.get(id)?, at, label(*id)))));
        writers.extend(node.outputs.iter().flatten().map(|&id| (id, at)));
    }
    for id in &graph.outputs {
        edges.extend(writers.get(id).map(|&from| (from, shapes.len(), label(*id))));
        shapes.push(port(id));
    }
    Ok(layers::svg(&shapes, &edges))
}

#[cfg(test)]
mod tests {
    use galatea_graph::{Attributes, Fact};
    use galatea_tensor::DataType;

    use super::*;

    fn twice() -> Graph {
        let mut graph = Graph::new("twice");
        graph.opsets.insert(String::new(), 17);
        let ids: Vec<_> = ["x", "kept", "y"].map(|name| graph.value_named(name)).to_vec();
        graph.value_mut(ids[0]).declared = Some(Fact::fixed(DataType::Fp32, &[4]));
        graph.inputs.push(ids[0]);
        for (name, from, to) in [("Identity", 0, 1), ("Relu", 1, 2)] {
            let inputs = vec![Some(ids[from])];
            let outputs = vec![Some(ids[to])];
            graph.add_node("", name, name, &Attributes::new(), inputs, outputs).unwrap();
        }
        graph.outputs.push(ids[2]);
        graph
    }

    #[test]
    fn each_rewrite_is_a_stage() {
        let text = DrawingKind::Stages.of(twice(), OptimiseLevel::O3).unwrap();
        let stages: Vec<&str> = text.lines().filter(|line| line.starts_with("==")).collect();
        assert_eq!(stages, ["== as read: 2 nodes", "== remove-identity, 1 times: 1 nodes"]);
    }

    #[test]
    fn drawings_show_the_nodes_of_the_level() {
        let dot = DrawingKind::Dot.of(twice(), OptimiseLevel::O0).unwrap();
        assert!(dot.contains("Identity") && dot.contains("Relu"), "{dot}");
        let svg = DrawingKind::Svg.of(twice(), OptimiseLevel::O1).unwrap();
        assert!(svg.starts_with("<?xml") && svg.contains("Relu"), "{svg}");
        assert!(!svg.contains("Identity"), "{svg}");
    }
}
