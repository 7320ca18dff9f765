//! Possible divisions of a graph when the shapes of a run are known.

use std::collections::{HashMap, HashSet};

use galatea_graph::{Datum, Fact, infer};

use super::super::compiled_graph::lock;
use super::PlacementSet;
use crate::device_selector::{PlacementCost, PlanSegment};
use crate::partition::{Partition, live_bytes, partition};
use crate::provider::{ClaimRequest, NodeClaim, ProviderClaims};
use crate::typical_shapes::sized;

/// Claims of the providers for a run's shapes, and the possible divisions of the graph.
pub(super) struct PlacementPlan {
    pub(super) claims: Vec<ProviderClaims>,
    pub(super) live: Vec<f64>,
    pub(super) divisions: Vec<GraphDivision>,
}

/// A division of a graph between providers.
pub(super) struct GraphDivision {
    /// The provider that runs whatever it can, where the division is made for the sake of one.
    pub(super) location: Option<usize>,
    pub(super) partitions: Vec<Partition>,
}

/// Claims as far off as predictions of their units were.
fn corrected(claims: &[ProviderClaims], known: &[f64]) -> Vec<ProviderClaims> {
    let each = claims.iter().zip(known).map(|(offer, factor)| {
        let mut offer = offer.clone();
        offer.claims.iter_mut().for_each(|claim| claim.cost_ns *= factor);
        offer
    });
    each.collect()
}

/// Factor by which the other providers appear slower for nodes that a provider is to run.
const INSISTENCE: f64 = 1e6;

/// Claims as if others took very long for what a provider can run, and that one no time, so that it gets
/// whatever it can run in as many partitions as there may be.
fn forced_claims(claims: &[ProviderClaims], provider: usize) -> Vec<ProviderClaims> {
    let own = claims.get(provider).map_or(&[][..], |own| &own.claims);
    let mine: HashSet<usize> = own.iter().flat_map(|claim| claim.nodes.iter().copied()).collect();
    let free = |claims: &ProviderClaims| ProviderClaims {
        claims: claims.claims.iter().map(|one| NodeClaim { cost_ns: 0.0, ..one.clone() }).collect(),
        ..ProviderClaims::default()
    };
    let dear = |claim: &NodeClaim| {
        let both = claim.nodes.iter().filter(|node| mine.contains(node)).count();
        let times = if both > 0 { INSISTENCE } else { 1.0 };
        NodeClaim { cost_ns: (claim.cost_ns + 1.0) * times, ..claim.clone() }
    };
    let others = |offer: &ProviderClaims| ProviderClaims {
        claims: offer.claims.iter().map(dear).collect(),
        refusals: Vec::new(),
        order: None,
        ..*offer
    };
    let all = claims.iter().enumerate();
    all.map(|(at, offer)| if at == provider { free(offer) } else { others(offer) }).collect()
}

/// For each provider the nanoseconds that each node it claims is predicted to take: an equal share of its claim.
pub(super) fn node_times(claims: &[ProviderClaims]) -> Vec<HashMap<usize, f64>> {
    let times = claims.iter().map(|offer| {
        let mut own = HashMap::new();
        for claim in &offer.claims {
            #[allow(clippy::cast_precision_loss, reason = "a count of nodes")]
            let each = claim.cost_ns.max(0.0) / claim.nodes.len().max(1) as f64;
            claim.nodes.iter().for_each(|&node| {
                own.entry(node).or_insert(each);
            });
        }
        own
    });
    times.collect()
}

/// Returns the predicted time of partitions, each as a part that follows the one before. A node that its
/// provider does not claim makes the time infinite.
pub(super) fn cost(
    claims: &[ProviderClaims],
    live: &[f64],
    partitions: &[Partition],
) -> PlacementCost {
    let times = node_times(claims);
    let border = |place: usize| live.get(place).copied().unwrap_or(0.0);
    let stop = |partition: &Partition| {
        let provider = partition.provider;
        let own = times.get(provider);
        let of_node = |node: usize| own.and_then(|own| own.get(&node)).copied();
        let nodes: Option<f64> = partition.nodes.clone().map(of_node).sum();
        let around = border(partition.nodes.start) + border(partition.nodes.end);
        let entry = claims.get(provider).map_or(0.0, |claims| {
            claims.launch_ns.max(0.0) + claims.transfer_ns_per_byte.max(0.0) * around
        });
        // What nothing is predicted for can still be corrected by what is measured.
        let ns = nodes.map_or(f64::INFINITY, |nodes| nodes.max(1.0));
        PlanSegment { unit: provider, ns, start_ns: entry }
    };
    PlacementCost::of_sequence(partitions.iter().map(stop))
}

impl PlacementSet {
    /// Returns the providers' claims for the shapes of these inputs, less those that failed, and the divisions
    /// that result. These are the one predicted to be the fastest, and for each provider the one in which it
    /// runs every node that it can.
    pub(super) fn plan(&self, inputs: &[Datum]) -> PlacementPlan {
        let own = &self.graph;
        let given = own.graph.inputs.iter().zip(inputs).filter_map(|(&id, datum)| {
            let tensor = datum.as_tensor()?;
            Some((id, Fact::fixed(tensor.dtype(), tensor.shape())))
        });
        let given: HashMap<_, _> = given.collect();
        // Shapes that contradict the graph are refused when it runs.
        let facts = infer::facts(&own.graph, &given);
        let facts = facts.unwrap_or_else(|_| sized(&own.facts));
        // What can be run is what can be compiled for any run.
        let request = ClaimRequest {
            graph: &own.graph,
            facts: &own.facts,
            typical: &facts,
            with_order: false,
            precision: own.options.precision,
        };
        let mut claims: Vec<ProviderClaims> =
            own.providers.iter().map(|provider| provider.claim(&request)).collect();
        let known: Vec<f64> = {
            let state = self.state();
            state.corrections.apply(&own.graph, &mut claims);
            (0..claims.len()).map(|provider| state.selector.correction(provider)).collect()
        };
        let failed = lock(&own.claims).failed.clone();
        for (provider, nodes) in failed {
            if let Some(offer) = claims.get_mut(provider) {
                offer.withdraw(&nodes);
            }
        }
        let live = live_bytes(&own.graph, &facts);
        let divisions = self.divisions(&claims, &known, &live);
        PlacementPlan { claims, live, divisions }
    }

    /// Returns the fastest division by claims that were off by `known` factors, and that of each provider.
    fn divisions(
        &self,
        claims: &[ProviderClaims],
        known: &[f64],
        live: &[f64],
    ) -> Vec<GraphDivision> {
        let count = self.graph.graph.nodes.len();
        let most = self.graph.options.max_partitions;
        let divided = |claims: &[ProviderClaims]| partition(count, claims, live, most).ok();
        let fastest = divided(&corrected(claims, known))
            .map(|partitions| GraphDivision { location: None, partitions });
        let own = |provider: &usize| !self.graph.providers[*provider].traits().is_fallback;
        let each = (0..claims.len()).filter(own).filter_map(|provider| {
            let partitions = divided(&forced_claims(claims, provider))?;
            let takes = partitions.iter().any(|one| one.provider == provider);
            takes.then_some(GraphDivision { location: Some(provider), partitions })
        });
        fastest.into_iter().chain(each).collect()
    }
}
