//! Which nodes the provider claims, and at what cost.
//!
//! With an engine, a node is claimed where the rules let the engine take every operation that it becomes,
//! and where the nodes around it have enough work for a start. Without one, everything that has a form in a
//! program is claimed by whoever insists, for the interpreter; nothing otherwise.

use std::collections::HashMap;

use galatea_graph::{Fact, Graph, Node, ValueId};
use galatea_runtime::{
    ClaimRefusal, NodeClaim, NodeWork, ProviderClaims, product_operations, typical_shapes,
};
use galatea_tensor::OrderedSet;

use super::compatibility_check::{CompatibilityCheck, is_constant};
use super::convert::probe;
use super::convert_options::ConvertOptions;
use super::neural_engine::NeuralEngine;
use super::planned_elsewhere::PlannedElsewhere;
use super::rules::{EngineRules, RulePlace, rules};

/// How claims are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClaimOptions<'a> {
    pub(super) options: &'a ConvertOptions,
    pub(super) engine: Option<&'a NeuralEngine>,
    /// Claims whatever can be run, however soon another provider would be done.
    pub(super) insists: bool,
    /// Lengths that open axes are padded up to; none where there are only the usual ones.
    pub(super) buckets: &'a [usize],
    /// The plans that Core ML has made on this machine.
    pub(super) measured: &'a PlannedElsewhere,
}

impl ClaimOptions<'_> {
    /// The largest bucket, where there are any.
    fn largest(&self) -> &[usize] {
        self.buckets.last().map_or(&[], std::slice::from_ref)
    }
}

/// Decision about a node.
#[derive(Clone, Debug)]
enum NodeVerdict {
    /// The engine takes it, in about so many nanoseconds for usual lengths, with so many bytes of weights.
    Taken { work_ns: f64, weight_bytes: f64 },
    /// The node is known before a run, or gives its input another name.
    Free,
    /// Another device takes it, for this reason.
    Left(String),
}

/// The claims on a graph, whose facts are those of any run, with costs for runs of `usual` lengths.
pub(super) fn claims(
    asked: ClaimOptions<'_>,
    graph: &Graph,
    facts: &[Option<Fact>],
    usual: &[Option<Fact>],
) -> ProviderClaims {
    let Some(engine) = asked.engine else { return without_engine(asked, graph, facts) };
    let Some(nominal) = typical_shapes(graph, facts, asked.largest()) else {
        let reason =
            "rule 'open-lengths': no lengths were found for which the shapes of this model fit";
        return all_refused(graph, reason);
    };
    let mut verdicts = verdicts(asked, engine, graph, &nominal);
    leave_small(&mut verdicts, rules(), asked.insists);
    limit_weights(&mut verdicts, rules());
    let mut claims = ProviderClaims {
        launch_ns: if asked.insists { 0.0 } else { engine.dispatch_ms * 1e6 },
        // Once from one memory to the other, which reads and writes.
        transfer_ns_per_byte: if asked.insists { 0.0 } else { 2.0 / engine.memory_gb_per_s },
        ..ProviderClaims::default()
    };
    for (index, verdict) in verdicts.into_iter().enumerate() {
        let (cost_ns, kernel) = match verdict {
            // As others count: their lengths are not those of the buckets.
            NodeVerdict::Taken { .. } => {
                (work(graph, &graph.nodes[index], usual, rules(), engine).0, "neural-engine")
            }
            NodeVerdict::Free => (0.0, "known"),
            NodeVerdict::Left(reason) => {
                claims.refusals.push(ClaimRefusal { node: index, reason });
                continue;
            }
        };
        let cost_ns = if asked.insists { 0.0 } else { cost_ns };
        claims.claims.push(NodeClaim { nodes: vec![index], cost_ns, kernel: kernel.to_owned() });
    }
    claims
}

fn all_refused(graph: &Graph, reason: &str) -> ProviderClaims {
    let refusal = |node| ClaimRefusal { node, reason: reason.to_owned() };
    ProviderClaims {
        refusals: (0..graph.nodes.len()).map(refusal).collect(),
        ..ProviderClaims::default()
    }
}

/// The claims for the interpreter.
fn without_engine(
    asked: ClaimOptions<'_>,
    graph: &Graph,
    facts: &[Option<Fact>],
) -> ProviderClaims {
    if !asked.insists {
        return all_refused(graph, "this machine has no Neural Engine");
    }
    let mut claims = ProviderClaims::default();
    let (probed, _) = probe(graph, facts, asked.options);
    for (index, probed) in probed.into_iter().enumerate() {
        match probed.refused {
            Some(reason) => claims.refusals.push(ClaimRefusal { node: index, reason }),
            None => claims.claims.push(NodeClaim {
                nodes: vec![index],
                cost_ns: 0.0,
                kernel: super::NAME.to_owned(),
            }),
        }
    }
    claims
}

/// An order of the nodes in which what the engine takes lies together: what others must do goes before,
/// as far as it does not wait for the engine. None where there is no engine.
pub(super) fn order(
    asked: ClaimOptions<'_>,
    graph: &Graph,
    facts: &[Option<Fact>],
) -> Option<Vec<usize>> {
    let engine = asked.engine?;
    let nominal = typical_shapes(graph, facts, asked.largest())?;
    let mut verdicts = verdicts(asked, engine, graph, &nominal);
    let first = grouped(graph, &lefts(&verdicts));
    // What is too little in this order is left to others, which may bring the rest together.
    let mut ordered: Vec<NodeVerdict> = first.iter().map(|&node| verdicts[node].clone()).collect();
    leave_small(&mut ordered, rules(), asked.insists);
    for (node, verdict) in first.into_iter().zip(ordered) {
        verdicts[node] = verdict;
    }
    Some(grouped(graph, &lefts(&verdicts)))
}

fn lefts(verdicts: &[NodeVerdict]) -> Vec<bool> {
    verdicts.iter().map(is_left).collect()
}

/// A running order in which nodes of one kind follow each other as long as any of them can run, in their old
/// order, those that are `left` first.
fn grouped(graph: &Graph, left: &[bool]) -> Vec<usize> {
    let mut waits = vec![0_usize; graph.nodes.len()];
    let mut readers: HashMap<ValueId, Vec<usize>> = HashMap::new();
    let written: OrderedSet<ValueId> =
        graph.nodes.iter().flat_map(|node| node.outputs.iter().flatten().copied()).collect();
    for (index, node) in graph.nodes.iter().enumerate() {
        for id in node.inputs.iter().flatten().filter(|id| written.contains(id)) {
            readers.entry(*id).or_default().push(index);
            waits[index] += 1;
        }
    }
    let mut ready = [OrderedSet::new(), OrderedSet::new()];
    for index in (0..waits.len()).filter(|&index| waits[index] == 0) {
        ready[usize::from(!left[index])].insert(index);
    }
    let mut order = Vec::with_capacity(waits.len());
    let mut kind = 0;
    while order.len() < waits.len() {
        let Some(index) = ready[kind].pop_first() else {
            kind = 1 - kind;
            if ready[kind].is_empty() {
                // A circle, which no graph in running order has.
                return (0..waits.len()).collect();
            }
            continue;
        };
        order.push(index);
        let given = graph.nodes[index].outputs.iter().flatten();
        for &reader in given.filter_map(|id| readers.get(id)).flatten() {
            waits[reader] -= 1;
            if waits[reader] == 0 {
                ready[usize::from(!left[reader])].insert(reader);
            }
        }
    }
    order
}

fn verdicts(
    asked: ClaimOptions<'_>,
    engine: &NeuralEngine,
    graph: &Graph,
    facts: &[Option<Fact>],
) -> Vec<NodeVerdict> {
    let (probed, function) = probe(graph, facts, asked.options);
    let judge = CompatibilityCheck::of(
        rules(),
        RulePlace::of(asked.options, engine),
        asked.measured,
        &function,
    );
    let each = graph.nodes.iter().zip(probed).map(|(node, probed)| {
        if let Some(reason) = probed.refused {
            return NodeVerdict::Left(reason);
        }
        let written = function.block.operations.get(probed.operations).unwrap_or(&[]);
        let mut real = written.iter().filter(|operation| !is_constant(operation)).peekable();
        if real.peek().is_none() {
            return NodeVerdict::Free;
        }
        match real.find_map(|operation| judge.refusal(operation)) {
            Some(reason) => NodeVerdict::Left(reason),
            None => {
                let (work_ns, weight_bytes) = work(graph, node, facts, rules(), engine);
                NodeVerdict::Taken { work_ns, weight_bytes }
            }
        }
    });
    let mut verdicts = each.collect::<Vec<_>>();
    leave_preparations(graph, facts, &mut verdicts);
    verdicts
}

/// Leaves to others what they need themselves before the first product, such as masks and positions: the engine
/// begins behind it.
fn leave_preparations(graph: &Graph, facts: &[Option<Fact>], verdicts: &mut [NodeVerdict]) {
    let mut heavy: OrderedSet<ValueId> = OrderedSet::new();
    let mut before = vec![false; graph.nodes.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        before[index] = product_operations(node, facts) == 0
            && node.inputs.iter().flatten().all(|id| !heavy.contains(id));
        if !before[index] {
            heavy.extend(node.outputs.iter().flatten());
        }
    }
    let mut needed: OrderedSet<ValueId> = OrderedSet::new();
    for (index, node) in graph.nodes.iter().enumerate().rev().filter(|(index, _)| before[*index]) {
        let feeds = node.outputs.iter().flatten().any(|id| needed.contains(id));
        if feeds && matches!(verdicts[index], NodeVerdict::Taken { .. }) {
            let reason = "others need it before the engine begins".to_owned();
            verdicts[index] = NodeVerdict::Left(reason);
        }
        if feeds || is_left(&verdicts[index]) {
            needed.extend(node.inputs.iter().flatten());
        }
    }
}

/// Nanoseconds of a graph on the engine, without starts.
pub(super) fn work_ns(graph: &Graph, facts: &[Option<Fact>], engine: &NeuralEngine) -> f64 {
    graph.nodes.iter().map(|node| work(graph, node, facts, rules(), engine).0).sum()
}

/// Nanoseconds of a node on the engine, for its arithmetic or its bytes, whichever takes longer, and the bytes of
/// its weights. Values are halves.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn work(
    graph: &Graph,
    node: &Node,
    facts: &[Option<Fact>],
    rules: &EngineRules,
    engine: &NeuralEngine,
) -> (f64, f64) {
    let fact = |id: ValueId| facts.get(id.index()).and_then(Option::as_ref);
    let work = NodeWork::of(node, &fact);
    let halves = |id: ValueId, bytes: u64| {
        let element = fact(id).and_then(|fact| fact.dtype.size_bytes()).unwrap_or(2).max(1);
        bytes as f64 / element as f64 * 2.0
    };
    let reads = node.inputs.iter().zip(&work.reads).filter_map(|(id, bytes)| id.zip(Some(*bytes)));
    let mut moved = 0.0;
    let mut weight_bytes = 0.0;
    for (id, bytes) in reads {
        moved += halves(id, bytes);
        if graph.constant(id).is_some() {
            weight_bytes += halves(id, bytes);
        }
    }
    for (id, bytes) in node.outputs.iter().zip(&work.writes).filter_map(|(id, b)| id.zip(Some(*b)))
    {
        moved += halves(id, bytes);
    }
    let arithmetic =
        work.operations as f64 / (engine.halves_per_second() * rules.cost.share_of_peak);
    let seconds = arithmetic.max(moved / (rules.cost.bandwidth_gb_per_s * 1e9));
    (seconds * 1e9, weight_bytes)
}

/// The share of the largest stretch's work that another one must have where somebody insists.
const MIN_SHARE: f64 = 0.1;

/// Leaves stretches of neighbours to others that have less work than a start is worth, and where somebody insists
/// those that have next to none beside the largest.
fn leave_small(verdicts: &mut [NodeVerdict], rules: &EngineRules, insists: bool) {
    let stretches = |verdicts: &mut [NodeVerdict],
                     each: &mut dyn FnMut(&mut [NodeVerdict], f64)| {
        for stretch in verdicts.chunk_by_mut(|a, b| is_left(a) == is_left(b)) {
            let work_ns: f64 = stretch.iter().map(work_of).sum();
            if !stretch.first().is_none_or(is_left) {
                each(stretch, work_ns);
            }
        }
    };
    let mut largest_ns = 0.0_f64;
    stretches(verdicts, &mut |_, work_ns| largest_ns = largest_ns.max(work_ns));
    let least_ns = match insists {
        true => largest_ns * MIN_SHARE,
        false => rules.cost.least_work_ms * 1e6,
    };
    stretches(verdicts, &mut |stretch, work_ns| {
        if work_ns < least_ns {
            let reason = format!(
                "{:.3} ms of work in this stretch of {} nodes, a start is worth {:.1} ms at least",
                work_ns / 1e6,
                stretch.len(),
                least_ns / 1e6
            );
            stretch.fill(NodeVerdict::Left(reason));
        }
    });
}

/// Leaves to others what lies behind the weights that a program may have.
fn limit_weights(verdicts: &mut [NodeVerdict], rules: &EngineRules) {
    let most = rules.cost.most_weight_bytes;
    let mut sum = 0.0;
    for verdict in verdicts {
        match verdict {
            NodeVerdict::Left(_) => sum = 0.0,
            NodeVerdict::Free => {}
            NodeVerdict::Taken { weight_bytes, .. } => {
                sum += *weight_bytes;
                if sum > most {
                    let reason = format!("weights of more than {most:.0} bytes in one program");
                    *verdict = NodeVerdict::Left(reason);
                    sum = 0.0;
                }
            }
        }
    }
}

fn is_left(verdict: &NodeVerdict) -> bool {
    matches!(verdict, NodeVerdict::Left(_))
}

fn work_of(verdict: &NodeVerdict) -> f64 {
    match verdict {
        NodeVerdict::Taken { work_ns, .. } => *work_ns,
        NodeVerdict::Free | NodeVerdict::Left(_) => 0.0,
    }
}
