//! Placements in which the channels of big matrix products are divided between two devices that compute them at the
//! same time.

use std::collections::HashMap;

use galatea_graph::channels::{self, DividedNode, NodeOrigin};
use galatea_graph::{Fact, Graph, infer};

use super::plan::{PlacementPlan, node_times};
use super::split::share;
use super::{Placement, PlacementSet, PlacementState};
use crate::device_selector::{PlacementCost, PlacementEstimate, PlanSegment, ShapeBucket};
use crate::partition::Partition;
use crate::provider::ProviderClaims;

/// Nanoseconds to begin a second thread and to join what two units computed.
const DIVIDING_NS: f64 = 30_000.0;
/// Products are divided where that is expected to take at most this share of the time without.
const PROMISING: f64 = 0.9;
/// Number of such placements of a session at most.
const MOST: usize = 2;
/// Channels are divided at multiples of this, as kernels compute so many at once.
const STEP: usize = 16;

/// A graph whose big products are divided.
#[derive(Debug)]
pub(super) struct HybridGraph {
    pub(super) graph: Graph,
    pub(super) facts: Vec<Option<Fact>>,
    /// The provider of each node of the session's graph.
    base: Vec<usize>,
    divided: Vec<DividedProduct>,
    origins: Vec<NodeOrigin>,
    /// For each partition, whether it runs at the same time as the one before it.
    pub(super) beside: Vec<bool>,
}

/// A product that is divided: its node, its channels, and the unit that computes the second part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DividedProduct {
    cut: DividedNode,
    channels: usize,
    other: usize,
}

impl DividedProduct {
    /// The share of the first part.
    #[allow(clippy::cast_precision_loss, reason = "a share of channels")]
    fn part(&self) -> f64 {
        self.cut.first as f64 / self.channels.max(1) as f64
    }
}

/// Predicted times of the devices for a bucket, as far as they are known.
struct DevicePredictions<'p> {
    claims: &'p [ProviderClaims],
    live: &'p [f64],
    /// For each provider the nanoseconds of each node that it claims, as far off as its predictions were.
    nodes: Vec<HashMap<usize, f64>>,
    /// For each provider by which factor these were off.
    off: Vec<f64>,
}

impl<'p> DevicePredictions<'p> {
    fn of(plan: &'p PlacementPlan, state: &PlacementState) -> Self {
        let mut nodes = node_times(&plan.claims);
        let off: Vec<f64> = (0..nodes.len()).map(|unit| state.selector.correction(unit)).collect();
        for (times, factor) in nodes.iter_mut().zip(&off) {
            times.values_mut().for_each(|ns| *ns *= factor);
        }
        Self { claims: &plan.claims, live: &plan.live, nodes, off }
    }

    /// A part of a way, of which the work takes `ns`.
    fn stop(&self, unit: usize, ns: f64, start_ns: f64) -> PlanSegment {
        let off = self.off.get(unit).copied().unwrap_or(1.0);
        PlanSegment { unit, ns: ns / off, start_ns }
    }

    fn of_node(&self, provider: usize, node: usize) -> Option<f64> {
        self.nodes.get(provider)?.get(&node).copied()
    }

    /// Bytes around some nodes.
    fn around(&self, first: usize, last: usize) -> f64 {
        let live = |place: usize| self.live.get(place).copied().unwrap_or(0.0);
        live(first) + live(last + 1)
    }

    /// Returns the time that it takes to begin a partition with so many bytes around it.
    fn entry(&self, provider: usize, bytes: f64) -> f64 {
        self.claims.get(provider).map_or(0.0, |claims| {
            claims.launch_ns.max(0.0) + claims.transfer_ns_per_byte.max(0.0) * bytes
        })
    }

    /// Returns the best division of a node between its provider and another one, if that saves time.
    fn divide(&self, graph: &Graph, node: usize, provider: usize) -> Option<(DividedProduct, f64)> {
        let count = channels::divisible(graph, node)?;
        let own = self.of_node(provider, node)?;
        let bytes = self.around(node, node);
        let units = 0..self.claims.len();
        let others = units.filter(|&other| other != provider).filter_map(|other| {
            let whole = self.of_node(other, node)?;
            let first = share(count, [own, whole])?;
            let first = if count >= 4 * STEP { first.div_ceil(STEP) * STEP } else { first };
            if first >= count {
                return None;
            }
            let divided =
                DividedProduct { cut: DividedNode { node, first }, channels: count, other };
            let part = divided.part();
            let ns = [
                own * part + self.entry(provider, bytes),
                whole * (1.0 - part) + self.entry(other, bytes),
            ];
            let gain = own - ns[0].max(ns[1]) - self.entry(provider, bytes) - DIVIDING_NS;
            Some((divided, gain))
        });
        others.filter(|(_, gain)| *gain > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// For each partition its provider and nodes, and what the ways of it are predicted to take.
struct LaidPartitions {
    partitions: Vec<Partition>,
    beside: Vec<bool>,
    cost: PlacementCost,
}

/// Lays the nodes of a divided graph out: each part of a product is a partition, the others stay where they were.
fn lay(
    times: &DevicePredictions<'_>,
    base: &[usize],
    origins: &[NodeOrigin],
    divided: &[DividedProduct],
) -> LaidPartitions {
    let of = |node: usize| divided.iter().find(|one| one.cut.node == node);
    let part_of = |node: usize| of(node).map_or(1.0, DividedProduct::part);
    let mut laid = LaidPartitions {
        partitions: Vec::new(),
        beside: Vec::new(),
        cost: PlacementCost::default(),
    };
    let mut stages: Vec<Vec<PlanSegment>> = Vec::new();
    let mut open = None;
    for (at, origin) in origins.iter().enumerate() {
        let (node, provider, share) = match *origin {
            NodeOrigin::Whole(node) => (node, base[node], 1.0),
            NodeOrigin::Joined(node) => (node, base[node], 0.0),
            NodeOrigin::First(node) => (node, base[node], part_of(node)),
            NodeOrigin::Second(node) => {
                (node, of(node).map_or(0, |one| one.other), 1.0 - part_of(node))
            }
        };
        let ns = match share > 0.0 {
            true => times.of_node(provider, node).unwrap_or(f64::INFINITY) * share,
            false => 0.0,
        };
        let part = matches!(origin, NodeOrigin::First(_) | NodeOrigin::Second(_));
        if let Some(last) = laid.partitions.last_mut()
            && open == Some(provider)
            && !part
        {
            last.nodes.end = at + 1;
            if let Some(stop) = stages.last_mut().and_then(|stage| stage.last_mut()) {
                stop.ns += times.stop(provider, ns, 0.0).ns;
            }
            continue;
        }
        let beside = matches!(origin, NodeOrigin::Second(_));
        let thread = if beside { DIVIDING_NS } else { 0.0 };
        let entry = times.entry(provider, times.around(node, node)) + thread;
        let stop = times.stop(provider, ns, entry);
        match stages.last_mut().filter(|_| beside) {
            Some(stage) => stage.push(stop),
            None => stages.push(vec![stop]),
        }
        laid.partitions.push(Partition { provider, nodes: at..at + 1 });
        laid.beside.push(beside);
        open = (!part).then_some(provider);
    }
    laid.cost = PlacementCost::of_stages(stages);
    laid
}

impl PlacementSet {
    /// Predicts the time of placements in which matrix products are divided, and adds one in which the big products of
    /// the fastest placement are divided between two devices, where that is expected to be faster. Like any other it is
    /// used where it was measured to be so.
    pub(super) fn add_hybrid(&self, bucket: &ShapeBucket, plan: &PlacementPlan) {
        let mut state = self.state();
        state.expect_hybrids(bucket, plan);
        let Some(best) = state.fastest_whole(bucket) else { return };
        let own = &self.graph;
        let base: Vec<usize> = state.placements[best.way]
            .partitions
            .iter()
            .flat_map(|part| part.nodes.clone().map(|_| part.provider))
            .collect();
        let hybrids = state.placements.iter().filter(|one| one.hybrid.is_some()).count();
        if base.len() != own.graph.nodes.len() || hybrids >= MOST {
            return;
        }
        let times = DevicePredictions::of(plan, &state);
        let found: Vec<(DividedProduct, f64)> = base
            .iter()
            .enumerate()
            .filter_map(|(node, &provider)| times.divide(&own.graph, node, provider))
            .collect();
        let gain: f64 = found.iter().map(|(_, gain)| gain).sum();
        if gain < best.ns * (1.0 - PROMISING) {
            return;
        }
        let divided: Vec<DividedProduct> = found.into_iter().map(|(one, _)| one).collect();
        let known = |one: &Placement| one.hybrid.as_ref().is_some_and(|own| own.divided == divided);
        if state.placements.iter().any(known) {
            return;
        }
        let cuts: Vec<DividedNode> = divided.iter().map(|one| one.cut).collect();
        let Ok((graph, origins)) = channels::divided(&own.graph, &own.facts, &cuts) else {
            return;
        };
        let Ok(facts) = infer::facts(&graph, &HashMap::new()) else { return };
        let LaidPartitions { partitions, beside, cost } = lay(&times, &base, &origins, &divided);
        let hybrid = HybridGraph { graph, facts, base, divided, origins, beside };
        let at = state.placements.len();
        let placement = Placement { hybrid: Some(hybrid.into()), ..Placement::new(partitions) };
        state.placements.push(placement);
        state.selector.set_cost(bucket, at, cost);
    }
}

impl PlacementState {
    /// Returns the fastest measured placement that divides neither rows nor matrix products.
    fn fastest_whole(&self, bucket: &ShapeBucket) -> Option<PlacementEstimate> {
        let whole = |one: &PlacementEstimate| {
            let own = self.placements.get(one.way);
            one.measured && own.is_some_and(|own| own.failed.is_none() && own.is_whole())
        };
        let all = self.selector.estimates(bucket).into_iter();
        all.filter(whole).min_by(|a, b| a.ns.total_cmp(&b.ns))
    }

    /// Predicts the time of placements whose matrix products are divided, in a bucket where they were not measured;
    /// those that are predicted to be slower than what was measured there are not used.
    fn expect_hybrids(&mut self, bucket: &ShapeBucket, plan: &PlacementPlan) {
        let all = self.selector.estimates(bucket);
        let measured = all.iter().filter(|one| one.measured).map(|one| one.ns);
        let best = measured.fold(f64::INFINITY, f64::min);
        let is_new = |at: usize| all.get(at).is_none_or(|one| !one.measured);
        let times = DevicePredictions::of(plan, self);
        let costs: Vec<(usize, PlacementCost)> = self
            .placements
            .iter()
            .enumerate()
            .filter(|(at, one)| is_new(*at) && one.failed.is_none())
            .filter_map(|(at, one)| {
                let own = one.hybrid.as_ref()?;
                Some((at, lay(&times, &own.base, &own.origins, &own.divided).cost))
            })
            .collect();
        for (at, cost) in costs {
            self.selector.set_cost(bucket, at, cost);
            let faster = self.selector.estimates(bucket).get(at).is_some_and(|one| one.ns < best);
            if !faster {
                self.selector.set_cost(bucket, at, PlacementCost::unusable());
            }
        }
    }
}
