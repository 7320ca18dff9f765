//! Ways of running a graph in which the channels of big products are divided between two units that compute them at
//! the same time.

use std::collections::HashMap;

use galatea_graph::channels::{self, Cut, Origin};
use galatea_graph::{Fact, Graph, infer};

use super::super::{Compiled, Session, lock};
use super::plan::{Plan, node_times};
use super::split::share;
use super::{Inner, Recipe, Routes, Way};
use crate::partition::Partition;
use crate::provider::Claims;
use crate::route::{Bucket, Cost, Estimate, Stop};

/// Nanoseconds to begin a second thread and to join what two units computed.
const DIVIDING_NS: f64 = 30_000.0;
/// Products are divided where that is expected to take at most this share of the time without.
const PROMISING: f64 = 0.9;
/// Such ways of a session at most.
const MOST: usize = 2;
/// Channels are divided at multiples of this, as kernels compute so many at once.
const STEP: usize = 16;

/// A graph whose big products are divided.
#[derive(Debug)]
pub(super) struct Hybrid {
    graph: Graph,
    facts: Vec<Option<Fact>>,
    cuts: Vec<Cut>,
    /// For each partition, whether it runs at the same time as the one before it.
    beside: Vec<bool>,
}

/// A product that is divided: its node and the other unit, with what each part is predicted to take.
#[derive(Clone, Copy, Debug)]
struct Divided {
    cut: Cut,
    other: usize,
    ns: [f64; 2],
}

/// What the units are predicted to take for a bucket, as far as is known.
struct Times<'p> {
    claims: &'p [Claims],
    live: &'p [f64],
    /// For each provider the nanoseconds of each node that it claims.
    nodes: Vec<HashMap<usize, f64>>,
}

impl<'p> Times<'p> {
    /// Times of a plan, each unit's as far off as its predictions were.
    fn of(plan: &'p Plan, inner: &Inner) -> Self {
        let mut nodes = node_times(&plan.claims);
        for (unit, times) in nodes.iter_mut().enumerate() {
            let factor = inner.router.correction(unit);
            times.values_mut().for_each(|ns| *ns *= factor);
        }
        Self { claims: &plan.claims, live: &plan.live, nodes }
    }

    fn of_node(&self, provider: usize, node: usize) -> Option<f64> {
        self.nodes.get(provider)?.get(&node).copied()
    }

    /// Bytes around some nodes.
    fn around(&self, first: usize, last: usize) -> f64 {
        let live = |place: usize| self.live.get(place).copied().unwrap_or(0.0);
        live(first) + live(last + 1)
    }

    /// What it takes to begin a partition with so many bytes around it.
    fn entry(&self, provider: usize, bytes: f64) -> f64 {
        self.claims.get(provider).map_or(0.0, |claims| {
            claims.launch_ns.max(0.0) + claims.transfer_ns_per_byte.max(0.0) * bytes
        })
    }

    /// How a node that a provider has is best divided between it and another one, where that saves time.
    fn divide(&self, graph: &Graph, node: usize, provider: usize) -> Option<(Divided, f64)> {
        let count = channels::divisible(graph, node)?;
        let own = self.of_node(provider, node)?;
        let (bytes, units) = (self.around(node, node), 0..self.claims.len());
        let others = units.filter(|&other| other != provider).filter_map(|other| {
            let whole = self.of_node(other, node)?;
            let first = share(count, [own, whole])?;
            let first = if count >= 4 * STEP { first.div_ceil(STEP) * STEP } else { first };
            if first >= count {
                return None;
            }
            #[allow(clippy::cast_precision_loss, reason = "a share of channels")]
            let part = first as f64 / count as f64;
            let ns = [
                own * part + self.entry(provider, bytes),
                whole * (1.0 - part) + self.entry(other, bytes),
            ];
            let gain = own - ns[0].max(ns[1]) - self.entry(provider, bytes) - DIVIDING_NS;
            Some((Divided { cut: Cut { node, first }, other, ns }, gain))
        });
        others.filter(|(_, gain)| *gain > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// For each partition its provider and nodes, and what the ways of it are predicted to take.
struct Laid {
    partitions: Vec<Partition>,
    beside: Vec<bool>,
    cost: Cost,
}

/// Lays the nodes of a divided graph out: each part of a product is a partition, the others stay where they were.
fn lay(times: &Times<'_>, base: &[usize], origins: &[Origin], divided: &[Divided]) -> Laid {
    let of = |node: usize| divided.iter().find(|one| one.cut.node == node);
    let mut laid = Laid { partitions: Vec::new(), beside: Vec::new(), cost: Cost::default() };
    let mut stages: Vec<Vec<Stop>> = Vec::new();
    let mut open = None;
    for (at, origin) in origins.iter().enumerate() {
        let (node, provider, ns) = match *origin {
            Origin::Whole(node) => {
                let provider = base[node];
                (node, provider, times.of_node(provider, node).unwrap_or(0.0))
            }
            Origin::Joined(node) => (node, base[node], 0.0),
            Origin::First(node) => (node, base[node], of(node).map_or(0.0, |one| one.ns[0])),
            Origin::Second(node) => {
                let one = of(node);
                (node, one.map_or(0, |one| one.other), one.map_or(0.0, |one| one.ns[1]))
            }
        };
        let part = matches!(origin, Origin::First(_) | Origin::Second(_));
        if let Some(last) = laid.partitions.last_mut()
            && open == Some(provider)
            && !part
        {
            last.nodes.end = at + 1;
            if let Some(stop) = stages.last_mut().and_then(|stage| stage.last_mut()) {
                stop.ns += ns;
            }
            continue;
        }
        let entry = if part { 0.0 } else { times.entry(provider, times.around(node, node)) };
        let stop = Stop { unit: provider, ns: ns + entry };
        let beside = matches!(origin, Origin::Second(_));
        match stages.last_mut().filter(|_| beside) {
            Some(stage) => stage.push(stop),
            None => stages.push(vec![stop]),
        }
        laid.partitions.push(Partition { provider, nodes: at..at + 1 });
        laid.beside.push(beside);
        open = (!part).then_some(provider);
    }
    laid.cost = Cost::of_stages(stages);
    laid
}

impl Session {
    /// Adds a way in which the big products of the fastest one are divided between two units, where that is expected to
    /// be faster. Like any other it is used where it was measured to be so.
    pub(super) fn add_hybrid(&self, routes: &Routes, bucket: &Bucket, plan: &Plan) {
        let mut inner = lock(&routes.inner);
        let whole = |one: &&Estimate| {
            let way = inner.ways.get(one.way);
            one.measured && way.is_some_and(|way| way.failed.is_none() && way.is_whole())
        };
        let all = inner.router.estimates(bucket);
        let best = all.iter().filter(whole).min_by(|a, b| a.ns.total_cmp(&b.ns));
        let Some(best) = best else { return };
        let base: Vec<usize> = inner.ways[best.way]
            .partitions
            .iter()
            .flat_map(|part| part.nodes.clone().map(|_| part.provider))
            .collect();
        if base.len() != self.graph.nodes.len() {
            return;
        }
        let times = Times::of(plan, &inner);
        let found: Vec<(Divided, f64)> = base
            .iter()
            .enumerate()
            .filter_map(|(node, &provider)| times.divide(&self.graph, node, provider))
            .collect();
        let gain: f64 = found.iter().map(|(_, gain)| gain).sum();
        if gain < best.ns * (1.0 - PROMISING) {
            return;
        }
        let divided: Vec<Divided> = found.into_iter().map(|(one, _)| one).collect();
        let cuts: Vec<Cut> = divided.iter().map(|one| one.cut).collect();
        let known = |way: &Way| way.hybrid.as_ref().is_some_and(|own| own.cuts == cuts);
        let hybrids = inner.ways.iter().filter(|way| way.hybrid.is_some()).count();
        if hybrids >= MOST || inner.ways.iter().any(known) {
            return;
        }
        let Ok((graph, origins)) = channels::divided(&self.graph, &self.facts, &cuts) else {
            return;
        };
        let Ok(facts) = infer::facts(&graph, &HashMap::new()) else { return };
        let Laid { partitions, beside, cost } = lay(&times, &base, &origins, &divided);
        let hybrid = Hybrid { graph, facts, cuts, beside };
        let at = inner.ways.len();
        inner.ways.push(Way { hybrid: Some(hybrid.into()), ..Way::new(partitions) });
        inner.router.set_cost(bucket, at, cost);
    }

    /// Compiles what a way is made of.
    pub(super) fn compile_recipe(
        &self,
        recipe: &Recipe,
    ) -> Result<Compiled, crate::error::RuntimeError> {
        let Recipe { partitions, hybrid } = recipe;
        let (graph, facts) = match hybrid {
            Some(hybrid) => (&hybrid.graph, &hybrid.facts),
            None => (&self.graph, &self.facts),
        };
        let mut compiled =
            self.compile_of((graph, facts), partitions).map_err(|(_, error)| error)?;
        if let Some(hybrid) = hybrid {
            for (part, beside) in compiled.parts.iter_mut().zip(&hybrid.beside) {
                part.beside = *beside;
            }
        }
        Ok(compiled)
    }
}
