//! How a graph could be divided when the shapes of a run are known.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use galatea_graph::{Datum, Fact, infer};

use super::super::{Session, lock};
use crate::partition::{Partition, live_bytes, partition};
use crate::provider::{Claim, Claims, ExecutionProvider};
use crate::route::{Cost, Stop};
use crate::usual::sized;

/// What providers offer for a run's shapes, and how the graph could be divided.
pub(super) struct Plan {
    pub(super) claims: Vec<Claims>,
    pub(super) live: Vec<f64>,
    /// Each with the provider that runs whatever it can, where it is made for the sake of one.
    pub(super) divisions: Vec<(Option<usize>, Vec<Partition>)>,
}

/// Claims as far off as predictions of their units were.
fn corrected(claims: &[Claims], known: &[f64]) -> Vec<Claims> {
    let each = claims.iter().zip(known).map(|(offer, factor)| {
        let mut offer = offer.clone();
        offer.claims.iter_mut().for_each(|claim| claim.cost_ns *= factor);
        offer
    });
    each.collect()
}

/// How many times as long others seem to take for what a provider is to run.
const INSISTENCE: f64 = 1e6;

/// Claims as if others took very long for what a provider can run, and that one no time, so that it gets
/// whatever it can run in as many partitions as there may be.
fn insisting(claims: &[Claims], provider: usize) -> Vec<Claims> {
    let own = claims.get(provider).map_or(&[][..], |own| &own.claims);
    let mine: HashSet<usize> = own.iter().flat_map(|claim| claim.nodes.iter().copied()).collect();
    let free = |claims: &Claims| Claims {
        claims: claims.claims.iter().map(|one| Claim { cost_ns: 0.0, ..one.clone() }).collect(),
        ..Claims::default()
    };
    let dear = |claim: &Claim| {
        let both = claim.nodes.iter().filter(|node| mine.contains(node)).count();
        let times = if both > 0 { INSISTENCE } else { 1.0 };
        Claim { cost_ns: (claim.cost_ns + 1.0) * times, ..claim.clone() }
    };
    let others = |offer: &Claims| Claims {
        claims: offer.claims.iter().map(dear).collect(),
        refusals: Vec::new(),
        ..*offer
    };
    let all = claims.iter().enumerate();
    all.map(|(at, offer)| if at == provider { free(offer) } else { others(offer) }).collect()
}

/// For each provider the nanoseconds that each node it claims is predicted to take: an equal share of its claim.
pub(super) fn node_times(claims: &[Claims]) -> Vec<HashMap<usize, f64>> {
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

/// What partitions are predicted to take, each as a part that follows the one before. A node that its provider
/// does not claim makes the time infinite.
pub(super) fn cost(claims: &[Claims], live: &[f64], partitions: &[Partition]) -> Cost {
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
        Stop { unit: provider, ns, start_ns: entry }
    };
    Cost::of_sequence(partitions.iter().map(stop))
}

impl Session {
    /// What the providers offer when the shapes are those of these inputs, less what failed, and the divisions that
    /// come of it: the one predicted to be the fastest, and for each provider the one where it runs whatever it can.
    pub(super) fn plan(&self, inputs: &[Datum]) -> Plan {
        let given = self.graph.inputs.iter().zip(inputs).filter_map(|(&id, datum)| {
            let tensor = datum.as_tensor()?;
            Some((id, Fact::fixed(tensor.dtype(), tensor.shape())))
        });
        let given: HashMap<_, _> = given.collect();
        // Shapes that contradict the graph are refused when it runs.
        let facts = infer::facts(&self.graph, &given);
        let facts = facts.unwrap_or_else(|_| sized(&self.facts));
        // What can be run is what can be compiled for any run.
        let claim = |provider: &Arc<dyn ExecutionProvider>| {
            provider.claim_usual(&self.graph, &self.facts, &facts)
        };
        let mut claims: Vec<Claims> = self.providers.iter().map(claim).collect();
        let mut known = vec![1.0; claims.len()];
        if let Some(routes) = &self.routes {
            let inner = lock(&routes.inner);
            inner.corrections.apply(&self.graph, &mut claims);
            known = (0..claims.len()).map(|unit| inner.router.correction(unit)).collect();
        }
        let failed = lock(&self.offers).failed.clone();
        for (provider, nodes) in failed {
            if let Some(offer) = claims.get_mut(provider) {
                offer.withdraw(&nodes);
            }
        }
        let live = live_bytes(&self.graph, &facts);
        let (count, most) = (self.graph.nodes.len(), self.options.max_partitions);
        let divided = |claims: &[Claims]| partition(count, claims, &live, most).ok();
        let fastest = divided(&corrected(&claims, &known)).map(|partitions| (None, partitions));
        let own = |provider: &usize| !self.providers[*provider].stands_in();
        let each = (0..claims.len()).filter(own).filter_map(|provider| {
            let partitions = divided(&insisting(&claims, provider))?;
            let takes = partitions.iter().any(|one| one.provider == provider);
            takes.then_some((Some(provider), partitions))
        });
        let divisions = fastest.into_iter().chain(each).collect();
        Plan { claims, live, divisions }
    }
}
