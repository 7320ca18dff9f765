//! Graphs as packages are made of them.

use std::collections::HashMap;

use galatea_graph::rewrite::{self, RewriteLevel};
use galatea_graph::{Dim, Fact, Graph, ValueId, infer};
use galatea_tensor::{OrderedMap, OrderedSet};

use super::convert_error::ConvertError;
use super::convert_options::ConvertOptions;
use super::{activations, early_scales};

/// Fusions whose results programs have operators for, in their order.
const FUSIONS: &[&str] = &[
    "contrib-embedding",
    "gelu",
    "gating",
    "layer-norm",
    "rms-norm",
    "attention",
    "onnx-attention",
    "contrib-attention",
    "attention-output",
    "onnx-rotary",
    "mat-mul",
    "mat-mul-bias",
];

/// Tidying ends after this many rounds, whatever is left.
const ROUNDS: usize = 8;

/// Runs the rules of tidying until nothing changes. Weights of few bits stay what they are, which
/// packages store.
fn tidy_up(graph: &mut Graph) -> Result<(), galatea_graph::GraphError> {
    let names: Vec<&str> = rewrite::TIDYING.iter().map(|rule| rule.name).collect();
    for _ in 0..ROUNDS {
        if rewrite::run_named(graph, &names)? == 0 {
            break;
        }
    }
    Ok(())
}

/// The graph as a package is made of it: with known shapes, tidied up, with what programs have
/// operators for in one node.
///
/// # Errors
/// Fails when shapes do not fit, or the graph is wrong.
pub(crate) fn prepared(
    graph: &Graph,
    options: &ConvertOptions,
) -> Result<(Graph, Vec<Option<Fact>>), ConvertError> {
    let failed = |error: galatea_graph::GraphError| ConvertError::Graph(error.to_string());
    let mut graph = graph.clone();
    graph.sort().map_err(failed)?;
    check_names(&graph, options)?;
    for id in graph.inputs.clone() {
        let fact = known_input(&graph, id, options)?;
        graph.value_mut(id).declared = Some(fact);
    }
    if options.level != RewriteLevel::O0 {
        tidy_up(&mut graph).map_err(failed)?;
        rewrite::run_named(&mut graph, &["conv-batch-norm"]).map_err(failed)?;
    }
    if options.level >= RewriteLevel::O2 {
        rewrite::run_named(&mut graph, FUSIONS).map_err(failed)?;
        if options.level == RewriteLevel::O3 {
            rewrite::run_named(&mut graph, &["repeated-heads", "rotary"]).map_err(failed)?;
        }
        if options.half {
            early_scales::move_scales(&mut graph);
        }
        tidy_up(&mut graph).map_err(failed)?;
    }
    let facts = infer::facts(&graph, &HashMap::new()).map_err(failed)?;
    let facts = activations::insert(&mut graph, facts, options).map_err(failed)?;
    Ok((graph, facts))
}

/// The number of nodes that a package is made of.
///
/// # Errors
/// Fails when shapes do not fit, or the graph is wrong.
pub fn prepared_nodes(graph: &Graph, options: &ConvertOptions) -> Result<usize, ConvertError> {
    Ok(prepared(graph, options)?.0.nodes.len())
}

/// Returns the names of the nodes of a package's graph: their own, those of their first results and
/// of the constants that they read.
///
/// # Errors
/// Fails like [`prepared_nodes`].
pub fn node_names(
    graph: &Graph,
    options: &ConvertOptions,
) -> Result<OrderedSet<String>, ConvertError> {
    let (graph, _) = prepared(graph, options)?;
    let mut names = OrderedSet::new();
    for node in graph.nodes.iter().filter(|node| !node.name.is_empty()) {
        names.insert(node.name.clone());
    }
    for node in &graph.nodes {
        let constants = node.inputs.iter().flatten().filter(|&&id| graph.constant(id).is_some());
        let all = constants.copied().chain(node.output(0));
        names.extend(all.map(|id| graph.value(id).name.clone()));
    }
    Ok(names)
}

/// Refuses shapes of inputs and numbers for lengths that there are not.
fn check_names(graph: &Graph, options: &ConvertOptions) -> Result<(), ConvertError> {
    let values = || graph.inputs.iter().map(|&id| graph.value(id));
    let inputs: Vec<&str> = values().map(|value| value.name.as_str()).collect();
    if let Some(name) = options.shapes.keys().find(|name| !inputs.contains(&name.as_str())) {
        let text = format!("there is no input '{name}', only {inputs:?}");
        return Err(ConvertError::Graph(text));
    }
    let dims = values().filter_map(|value| value.declared.as_ref()?.shape.as_ref()).flatten();
    let mut lengths: Vec<String> = dims.flat_map(Dim::names).collect();
    lengths.sort();
    lengths.dedup();
    let given = options.buckets.iter().chain([&options.lengths]).flat_map(OrderedMap::keys);
    match given.into_iter().find(|name| !lengths.contains(name)) {
        None => Ok(()),
        Some(name) => Err(ConvertError::Graph(format!(
            "no input has a length '{name}', the lengths that have names are {lengths:?}"
        ))),
    }
}

/// Returns the fact of an input once its shape is chosen.
fn known_input(graph: &Graph, id: ValueId, options: &ConvertOptions) -> Result<Fact, ConvertError> {
    let value = graph.value(id);
    let refuse = |text: String| Err(ConvertError::Graph(format!("input '{}': {text}", value.name)));
    let Some(fact) = value.declared.clone() else { return refuse("it has no type".to_owned()) };
    if !fact.is_tensor() {
        return refuse(format!("it is {fact}, a package takes tensors"));
    }
    let dims = match options.shapes.get(&value.name) {
        Some(shape) => {
            let fits = fact.shape.as_ref().is_none_or(|dims| {
                dims.len() == shape.len()
                    && dims
                        .iter()
                        .zip(shape)
                        .all(|(dim, len)| dim.known().is_none_or(|one| one == *len))
            });
            if !fits {
                return refuse(format!("shape {shape:?} is given, it is {fact}"));
            }
            shape.iter().map(|&len| Dim::Known(len)).collect()
        }
        None => {
            let Some(dims) = fact.shape.clone() else {
                return refuse("its number of axes is not known; give its shape".to_owned());
            };
            let number = |name: &str| options.lengths.get(name).copied();
            let known = |(axis, dim): (usize, Dim)| match dim.evaluate(&number) {
                Some(len) => Dim::Known(len),
                // What has no name gets one, so that values which keep the length are seen to.
                None if dim == Dim::Unknown => Dim::symbol(&format!("{}.{axis}", value.name)),
                None => dim,
            };
            dims.into_iter().enumerate().map(known).collect()
        }
    };
    Ok(Fact::new(fact.dtype, dims))
}
