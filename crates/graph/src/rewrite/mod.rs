//! Rules that turn a graph into an equal one that runs faster.
//!
//! [`RULES`] lists them in the order in which they run; a later rule sees what an earlier one made.
//! Each rule looks at one node and may put other nodes in its place; nodes that nobody needs any
//! more are dropped after the rule. Branches whose condition is known are inlined before all rules,
//! and the bodies of loops and other branches are rewritten after them. [`channels_last`] is apart: a provider asks for it when its
//! convolutions want their channels last.

mod attention;
mod bodies;
mod channels_last;
mod constant_folding;
mod conv_batch_norm;
mod fuse_conv;
mod fuse_mat_mul;
mod fused_activation;
mod gating;
mod gelu;
mod inline_if;
mod layer_norm;
mod match_graph;
mod remove_identity;

use std::collections::HashMap;

pub use channels_last::channels_last;
pub use match_graph::Maps;

use crate::error::GraphError;
use crate::graph::{Graph, Node};
use crate::infer;

/// How far rewriting goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// Not at all.
    None,
    /// Constants are folded and nodes without effect removed; every node left is the model's own.
    Basic,
    /// Everything, fused operators included.
    #[default]
    All,
}

/// A rule: looks at the node at an index and gives the nodes to put in its place, the outputs of
/// the old node among theirs.
pub type Apply = fn(&mut Graph, &Maps, usize) -> Result<Option<Vec<Node>>, GraphError>;

/// A row of [`RULES`].
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The name in reports and logs.
    pub name: &'static str,
    /// The lowest level that runs the rule.
    pub level: Level,
    /// What it does.
    pub apply: Apply,
}

/// Every rule, in the order in which they run.
pub const RULES: &[Rule] = &[
    Rule { name: "remove-identity", level: Level::Basic, apply: remove_identity::apply },
    Rule { name: "constant-folding", level: Level::Basic, apply: constant_folding::apply },
    Rule { name: "conv-batch-norm", level: Level::Basic, apply: conv_batch_norm::apply },
    Rule { name: "gelu", level: Level::All, apply: gelu::apply },
    Rule { name: "gating", level: Level::All, apply: gating::apply },
    Rule { name: "layer-norm", level: Level::All, apply: layer_norm::apply },
    Rule { name: "attention", level: Level::All, apply: attention::apply },
    Rule { name: "attention-output", level: Level::All, apply: attention::absorb_output },
    Rule { name: "mat-mul", level: Level::All, apply: fuse_mat_mul::from_onnx },
    Rule { name: "mat-mul-bias", level: Level::All, apply: fuse_mat_mul::bias },
    Rule { name: "mat-mul-residual", level: Level::All, apply: fuse_mat_mul::residual },
    Rule { name: "mat-mul-activation", level: Level::All, apply: fuse_mat_mul::activation },
    Rule { name: "conv-residual", level: Level::All, apply: fuse_conv::residual },
    Rule { name: "conv-activation", level: Level::All, apply: fuse_conv::activation },
];

/// How often each rule applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// `(rule, times)` of the rules that did something, in order.
    pub applied: Vec<(&'static str, usize)>,
}

/// Rewrites a graph with every rule up to a level.
///
/// # Errors
/// When an operator refuses its inputs: the model is wrong, with or without rewriting.
pub fn optimise(graph: &mut Graph, level: Level) -> Result<Report, GraphError> {
    let mut report = Report::default();
    let mut note = |name, times| {
        if times > 0 {
            report.applied.push((name, times));
        }
    };
    if level == Level::None {
        return Ok(report);
    }
    note("inline-if", inline_branches(graph)?);
    for rule in RULES.iter().filter(|rule| rule.level <= level) {
        note(rule.name, run(graph, rule.apply)?);
    }
    note("bodies", bodies::optimise(graph, level)?);
    Ok(report)
}

/// Inlines branches whose conditions are known until none is left: a branch may hold another `If`.
fn inline_branches(graph: &mut Graph) -> Result<usize, GraphError> {
    let mut all = 0;
    loop {
        let times = run(graph, inline_if::apply)?;
        all += times;
        if times == 0 {
            return Ok(all);
        }
    }
}

/// Runs one rule over all nodes, and over the nodes it makes.
pub(crate) fn run(graph: &mut Graph, apply: Apply) -> Result<usize, GraphError> {
    let facts = infer::facts(graph, &HashMap::new())?;
    let mut maps = Maps::new(graph, facts);
    let mut times = 0;
    let mut index = 0;
    while index < graph.nodes.len() {
        match apply(graph, &maps, index)? {
            None => index += 1,
            Some(nodes) => {
                times += 1;
                let made = nodes.len();
                graph.nodes.splice(index..=index, nodes);
                maps.refresh(graph);
                index += made;
            }
        }
    }
    if times > 0 {
        graph.remove_unused();
    }
    Ok(times)
}
