//! Rules that turn a graph into an equal one that runs faster.
//!
//! [`RULES`] lists them in the order in which they run; a later rule sees what an earlier one made.
//! A rule looks at one node and may put other nodes in its place, or it looks at the whole graph;
//! nodes that nobody needs any more are dropped after each rule. Rules that tidy up run again until
//! nothing changes, before the fusions and after them; they inline branches whose condition is known
//! too. The bodies of loops and of other branches are rewritten last. [`channels_last`] and
//! [`conv_chains`] are apart: a provider asks for them when its convolutions want their channels last,
//! and when it computes some together.

mod attention;
mod blocked_channels;
mod bodies;
mod channels_last;
mod common_subexpression;
mod constant_folding;
mod contrib_attention;
mod contrib_parts;
mod conv_batch_norm;
mod conv_chain;
mod einsum;
mod elementwise_chain;
mod equal_lengths;
mod flat_mat_mul;
mod fuse_conv;
mod fuse_mat_mul;
mod fused_activation;
mod gating;
mod gelu;
mod inline_if;
mod known_shape;
mod layer_norm;
mod level;
mod match_graph;
mod merge_views;
mod onnx_attention;
mod quantized;
mod quantized_conv;
mod quantized_elementwise;
mod quantized_function;
mod quantized_mat_mul;
mod remove_identity;
mod repeated_heads;
mod rms_norm;
mod rotary;
mod text_labels;

use std::collections::HashMap;

pub use channels_last::channels_last;
pub use conv_chain::conv_chains;
pub use level::RewriteLevel;
pub use match_graph::ValueMaps;

use crate::error::GraphError;
use crate::graph::{Graph, Node};
use crate::infer;

/// A rule about one node: gives the nodes to put in its place, the outputs of the old node among
/// theirs.
pub type OnNode = fn(&mut Graph, &ValueMaps, usize) -> Result<Option<Vec<Node>>, GraphError>;

/// A rule about the whole graph: gives how often it applied.
pub type OnGraph = fn(&mut Graph, &ValueMaps) -> Result<usize, GraphError>;

/// Function of a rule.
#[derive(Clone, Copy, Debug)]
pub enum RuleFunction {
    /// Node by node.
    Node(OnNode),
    /// All at once.
    Graph(OnGraph),
}

/// A row of [`RULES`].
#[derive(Clone, Copy, Debug)]
pub struct RewriteRule {
    /// The name in reports and logs.
    pub name: &'static str,
    /// The lowest level that runs the rule.
    pub level: RewriteLevel,
    /// The function of the rule.
    pub apply: RuleFunction,
}

const fn tidy(name: &'static str, apply: OnGraph) -> RewriteRule {
    RewriteRule { name, level: RewriteLevel::O1, apply: RuleFunction::Graph(apply) }
}

const fn fuse(name: &'static str, apply: OnNode) -> RewriteRule {
    RewriteRule { name, level: RewriteLevel::O2, apply: RuleFunction::Node(apply) }
}

/// The rules that run until nothing changes, before [`RULES`] and after them.
pub const TIDYING: &[RewriteRule] = &[
    RewriteRule {
        name: "inline-if",
        level: RewriteLevel::O1,
        apply: RuleFunction::Node(inline_if::apply),
    },
    tidy("remove-identity", remove_identity::apply),
    tidy("constant-folding", constant_folding::apply),
    tidy("equal-lengths", equal_lengths::apply),
    tidy("common-subexpression", common_subexpression::apply),
    tidy("known-shape", known_shape::apply),
    tidy("merge-views", merge_views::apply),
];

/// The rules that run once, in their order.
pub const RULES: &[RewriteRule] = &[
    // Before rules that look for products.
    fuse("einsum", einsum::apply),
    fuse("blocked-convolution", blocked_channels::convolution),
    fuse("blocked-image", blocked_channels::image),
    fuse("contrib-quantized", contrib_parts::quantised),
    fuse("contrib-embedding", contrib_parts::embedding),
    fuse("quantized-limits", quantized_elementwise::limits),
    fuse("quantized-moves", quantized_elementwise::moves),
    fuse("quantized-conv", quantized_conv::apply),
    fuse("quantized-mat-mul", quantized_mat_mul::into_integers),
    fuse("quantized-function", quantized_function::apply),
    fuse("quantized-pair", quantized_elementwise::pairs),
    fuse("quantized-mat-mul-float", quantized_mat_mul::into_floats),
    fuse("dynamic-mat-mul", quantized_mat_mul::dynamic),
    fuse("split-dynamic-mat-mul", quantized_mat_mul::split_dynamic),
    fuse("quantized-mat-mul-bias", quantized_mat_mul::bias),
    // Weights that no rule has taken as integers.
    tidy("fold-dequantized", constant_folding::dequantized),
    RewriteRule {
        name: "conv-batch-norm",
        level: RewriteLevel::O1,
        apply: RuleFunction::Node(conv_batch_norm::apply),
    },
    RewriteRule {
        name: "text-labels",
        level: RewriteLevel::O1,
        apply: RuleFunction::Node(text_labels::apply),
    },
    fuse("gelu", gelu::apply),
    fuse("gating", gating::apply),
    fuse("layer-norm", layer_norm::apply),
    fuse("rms-norm", rms_norm::apply),
    fuse("attention", attention::apply),
    fuse("onnx-attention", onnx_attention::apply),
    fuse("contrib-attention", contrib_attention::apply),
    fuse("attention-output", attention::absorb_output),
    fuse("repeated-heads", repeated_heads::apply),
    fuse("rotary", rotary::from_halves),
    fuse("onnx-rotary", rotary::from_onnx),
    fuse("mat-mul", fuse_mat_mul::from_onnx),
    fuse("flat-mat-mul", flat_mat_mul::apply),
    fuse("mat-mul-bias", fuse_mat_mul::bias),
    fuse("mat-mul-residual", fuse_mat_mul::residual),
    fuse("mat-mul-activation", fuse_mat_mul::activation),
    fuse("mat-mul-gate", fuse_mat_mul::gate),
    fuse("conv-residual", fuse_conv::residual),
    fuse("conv-activation", fuse_conv::activation),
    RewriteRule {
        name: "elementwise-chain",
        level: RewriteLevel::O3,
        apply: RuleFunction::Node(elementwise_chain::apply),
    },
];

/// Tidying ends after this many rounds, whatever is left: each round makes the graph smaller, and
/// real models need two or three.
const MAX_ROUNDS: usize = 8;

/// How often each rule applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RewriteReport {
    /// `(rule, times)` of the rules that did something, in order.
    pub applied: Vec<(&'static str, usize)>,
}

/// Rewrites a graph with every rule up to a level.
///
/// # Errors
/// Fails when an operator refuses its inputs: the model is wrong, with or without rewriting.
pub fn optimise(graph: &mut Graph, level: RewriteLevel) -> Result<RewriteReport, GraphError> {
    optimise_watched(graph, level, &mut |_, _, _| {})
}

/// Optimises like [`optimise`], and shows the graph after each rule that did something: the rule's
/// name, how often it applied, the graph.
///
/// # Errors
/// Fails like [`optimise`].
pub fn optimise_watched(
    graph: &mut Graph,
    level: RewriteLevel,
    watch: &mut dyn FnMut(&'static str, usize, &Graph),
) -> Result<RewriteReport, GraphError> {
    let mut report = RewriteReport::default();
    let mut step = |graph: &mut Graph, rule: &RewriteRule| -> Result<usize, GraphError> {
        let times = if rule.level <= level { run(graph, rule.apply)? } else { 0 };
        if times > 0 {
            report.applied.push((rule.name, times));
            watch(rule.name, times, graph);
        }
        Ok(times)
    };
    let tidy_up = |graph: &mut Graph, step: &mut dyn FnMut(&mut Graph, &RewriteRule) -> _| {
        for _ in 0..MAX_ROUNDS {
            let mut times = 0;
            for rule in TIDYING {
                times += step(graph, rule)?;
            }
            if times == 0 {
                break;
            }
        }
        Ok(())
    };
    tidy_up(graph, &mut step)?;
    for rule in RULES {
        step(graph, rule)?;
    }
    tidy_up(graph, &mut step)?;
    let times = if level == RewriteLevel::O0 { 0 } else { bodies::optimise(graph, level)? };
    if times > 0 {
        report.applied.push(("bodies", times));
        watch("bodies", times, graph);
    }
    Ok(report)
}

/// Runs the rules of these names, once each and in the order of the names; a name without a rule
/// does nothing. Returns how often they applied.
///
/// # Errors
/// Fails like [`optimise`].
pub fn run_named(graph: &mut Graph, names: &[&str]) -> Result<usize, GraphError> {
    let mut times = 0;
    for name in names {
        for rule in TIDYING.iter().chain(RULES).filter(|rule| rule.name == *name) {
            times += run(graph, rule.apply)?;
        }
    }
    Ok(times)
}

/// Runs one rule over all nodes, and over the nodes it makes.
pub(crate) fn run(graph: &mut Graph, apply: RuleFunction) -> Result<usize, GraphError> {
    let facts = infer::facts(graph, &HashMap::new())?;
    let mut maps = ValueMaps::new(graph, facts);
    let times = match apply {
        RuleFunction::Graph(apply) => apply(graph, &maps)?,
        RuleFunction::Node(apply) => each_node(graph, &mut maps, apply)?,
    };
    if times > 0 {
        graph.remove_unused();
    }
    Ok(times)
}

fn each_node(graph: &mut Graph, maps: &mut ValueMaps, apply: OnNode) -> Result<usize, GraphError> {
    let mut times = 0;
    let mut index = 0;
    while index < graph.nodes.len() {
        match apply(graph, maps, index)? {
            None => index += 1,
            Some(nodes) => {
                times += 1;
                index += replace(graph, maps, index, nodes);
            }
        }
    }
    Ok(times)
}

/// Puts nodes in the place of one and returns how many they are. One for one is the rule, and takes
/// no walk over the other nodes: unrolled loops have tens of thousands.
fn replace(graph: &mut Graph, maps: &mut ValueMaps, index: usize, mut nodes: Vec<Node>) -> usize {
    let made = nodes.len();
    match nodes.pop() {
        Some(node) if nodes.is_empty() && node.outputs == graph.nodes[index].outputs => {
            let old = std::mem::replace(&mut graph.nodes[index], node);
            maps.replaced(graph, index, &old);
        }
        last => {
            graph.nodes.splice(index..=index, nodes.into_iter().chain(last));
            maps.refresh(graph);
        }
    }
    made
}
