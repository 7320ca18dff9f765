//! Assignment of nodes to providers.

use std::ops::Range;

use galatea_graph::{Dim, Fact, Graph};

use crate::provider::ProviderClaims;

/// A run of neighbouring nodes, in topological order, on one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Position in the list of providers.
    pub provider: usize,
    /// Positions in [`Graph::nodes`].
    pub nodes: Range<usize>,
}

/// For each place between nodes (before node 0, …, after the last), the bytes of the values that
/// are written before it and read after it. Lengths that are not known count as 1.
#[must_use]
pub fn live_bytes(graph: &Graph, facts: &[Option<Fact>]) -> Vec<f64> {
    let count = graph.nodes.len();
    let mut written = vec![None; graph.values().len()];
    let mut read = vec![0; graph.values().len()];
    for input in &graph.inputs {
        written[input.index()] = Some(0);
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        for input in node.inputs.iter().flatten() {
            read[input.index()] = index;
        }
        for output in node.outputs.iter().flatten() {
            written[output.index()] = Some(index + 1);
        }
    }
    for output in &graph.outputs {
        read[output.index()] = count;
    }
    let mut changes = vec![0.0; count + 2];
    for (index, fact) in facts.iter().enumerate() {
        let (Some(from), Some(fact)) = (written[index], fact) else { continue };
        if from <= read[index] {
            changes[from] += size_bytes(fact);
            changes[read[index] + 1] -= size_bytes(fact);
        }
    }
    let mut live = 0.0;
    changes[..=count]
        .iter()
        .map(|change| {
            live += change;
            live
        })
        .collect()
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn size_bytes(fact: &Fact) -> f64 {
    let element = fact.dtype.size_bytes().unwrap_or(16) as f64;
    let lengths = fact.shape.iter().flatten();
    lengths.map(|dim| Dim::known(dim).unwrap_or(1) as f64).product::<f64>() * element
}

/// Predicted nanoseconds of each node on each provider; infinite where it is not claimed.
pub(crate) fn costs(nodes: usize, offers: &[ProviderClaims]) -> Vec<Vec<f64>> {
    let mut costs = vec![vec![f64::INFINITY; offers.len()]; nodes];
    for (provider, offer) in offers.iter().enumerate() {
        for claim in &offer.claims {
            #[allow(clippy::cast_precision_loss, reason = "a count of nodes")]
            let each = claim.cost_ns.max(0.0) / claim.nodes.len().max(1) as f64;
            for &node in &claim.nodes {
                if let Some(cost) = costs.get_mut(node)
                    && cost[provider].is_infinite()
                {
                    cost[provider] = each;
                }
            }
        }
    }
    costs
}

/// The cheapest way to reach a state, and the provider of the node before.
#[derive(Clone, Copy)]
struct CheapestPath {
    cost: f64,
    previous: usize,
}

const UNREACHED: CheapestPath = CheapestPath { cost: f64::INFINITY, previous: usize::MAX };

/// Predicted time of entering provider `to` (from `from`, or from the host) at a place where
/// `bytes` are live: its start, and the transfers on both sides.
fn entry_ns(offers: &[ProviderClaims], from: Option<usize>, to: usize, bytes: f64) -> f64 {
    let transfer = |provider: usize| offers[provider].transfer_ns_per_byte.max(0.0) * bytes;
    offers[to].launch_ns.max(0.0) + from.map_or(0.0, transfer) + transfer(to)
}

/// Predicted nanoseconds of partitions that cover a graph, with their starts and the transfers at their borders.
#[must_use]
pub fn predicted_ns(partitions: &[Partition], offers: &[ProviderClaims], live: &[f64]) -> f64 {
    let nodes = partitions.last().map_or(0, |last| last.nodes.end);
    let costs = costs(nodes, offers);
    let bytes = |place: usize| live.get(place).copied().unwrap_or(0.0);
    let mut total = 0.0;
    let mut from = None;
    for part in partitions {
        total += entry_ns(offers, from, part.provider, bytes(part.nodes.start));
        total += costs[part.nodes.clone()].iter().map(|row| row[part.provider]).sum::<f64>();
        from = Some(part.provider);
    }
    let last = from.map_or(0.0, |last| offers[last].transfer_ns_per_byte.max(0.0) * bytes(nodes));
    total + last
}

/// Gives every node to one provider that claims it, in the way whose predicted time, with the
/// starts of partitions and the transfers at their borders, is least among those with at most
/// `limit` partitions; the limit is raised where nothing else covers the graph. Partitions are
/// runs of neighbours in topological order, so that they never wait for each other in a circle.
///
/// `live` is [`live_bytes`]. Where times are equal the earlier provider is taken.
///
/// # Errors
/// The first node that no provider claims.
pub fn partition(
    nodes: usize,
    offers: &[ProviderClaims],
    live: &[f64],
    limit: usize,
) -> Result<Vec<Partition>, usize> {
    let costs = costs(nodes, offers);
    if let Some(node) = costs.iter().position(|cost| cost.iter().all(|c| c.is_infinite())) {
        return Err(node);
    }
    let mut limit = limit.max(1);
    loop {
        if let Some(chosen) = choose(&costs, offers, live, limit) {
            return Ok(runs(&chosen));
        }
        limit *= 2;
    }
}

/// Dynamic programming over (node, partitions so far, provider).
fn choose(
    costs: &[Vec<f64>],
    offers: &[ProviderClaims],
    live: &[f64],
    limit: usize,
) -> Option<Vec<usize>> {
    let width = offers.len();
    let bytes = |place: usize| live.get(place).copied().unwrap_or(0.0);
    let mut table: Vec<Vec<CheapestPath>> = Vec::with_capacity(costs.len());
    for (node, cost) in costs.iter().enumerate() {
        let mut row = vec![UNREACHED; limit * width];
        for (to, &here) in cost.iter().enumerate().filter(|(_, here)| here.is_finite()) {
            let Some(before) = table.last() else {
                let entry = entry_ns(offers, None, to, bytes(node));
                row[to] = CheapestPath { cost: here + entry, previous: to };
                continue;
            };
            for used in 0..limit {
                let slot = used * width;
                let mut best = CheapestPath { cost: before[slot + to].cost + here, previous: to };
                for from in (0..width).filter(|&from| from != to && used > 0) {
                    let entry = entry_ns(offers, Some(from), to, bytes(node));
                    let total = before[slot - width + from].cost + entry + here;
                    if total < best.cost {
                        best = CheapestPath { cost: total, previous: from };
                    }
                }
                row[slot + to] = best;
            }
        }
        table.push(row);
    }
    let Some(last) = table.last() else { return Some(Vec::new()) };
    let end = |slot: usize| {
        last[slot].cost + offers[slot % width].transfer_ns_per_byte.max(0.0) * bytes(costs.len())
    };
    let mut slot = (0..last.len()).min_by(|&a, &b| end(a).total_cmp(&end(b)))?;
    if last[slot].cost.is_infinite() {
        return None;
    }
    let mut chosen = vec![0; costs.len()];
    for (node, row) in table.iter().enumerate().rev() {
        let provider = slot % width;
        chosen[node] = provider;
        let previous = row[slot].previous;
        slot = if previous == provider { slot } else { slot - width - provider + previous };
    }
    Some(chosen)
}

fn runs(chosen: &[usize]) -> Vec<Partition> {
    let mut partitions: Vec<Partition> = Vec::new();
    for (node, &provider) in chosen.iter().enumerate() {
        match partitions.last_mut() {
            Some(last) if last.provider == provider => last.nodes.end = node + 1,
            _ => partitions.push(Partition { provider, nodes: node..node + 1 }),
        }
    }
    partitions
}

#[cfg(test)]
#[allow(clippy::cast_precision_loss, reason = "small numbers")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::provider::NodeClaim;

    fn offer(costs: &[Option<u32>], launch: u32, transfer: u32) -> ProviderClaims {
        let claims = costs.iter().enumerate().filter_map(|(node, cost)| {
            let cost_ns = f64::from((*cost)?);
            Some(NodeClaim { nodes: vec![node], cost_ns, kernel: String::new() })
        });
        ProviderClaims {
            claims: claims.collect(),
            refusals: Vec::new(),
            launch_ns: f64::from(launch),
            transfer_ns_per_byte: f64::from(transfer),
            order: None,
        }
    }

    /// The predicted time of an assignment, from the definition.
    fn price(chosen: &[usize], offers: &[ProviderClaims], live: &[f64]) -> f64 {
        let table = costs(chosen.len(), offers);
        let mut total = 0.0;
        for (node, &provider) in chosen.iter().enumerate() {
            total += table[node][provider];
            let before = node.checked_sub(1).map(|node| chosen[node]);
            if before != Some(provider) {
                total += offers[provider].launch_ns
                    + offers[provider].transfer_ns_per_byte * live[node]
                    + before.map_or(0.0, |from| offers[from].transfer_ns_per_byte * live[node]);
            }
        }
        chosen
            .last()
            .map_or(total, |&last| total + offers[last].transfer_ns_per_byte * live[chosen.len()])
    }

    fn flat(partitions: &[Partition]) -> Vec<usize> {
        partitions.iter().flat_map(|p| p.nodes.clone().map(|_| p.provider)).collect()
    }

    fn case() -> impl Strategy<Value = (Vec<ProviderClaims>, Vec<f64>, usize)> {
        (1_usize..7).prop_flat_map(|nodes| {
            let costs = prop::collection::vec(prop::option::weighted(0.8, 0_u32..50), nodes);
            let offers = prop::collection::vec((costs, 0_u32..30, 0_u32..4), 1..4);
            let live = prop::collection::vec(0_u8..10, nodes + 1);
            (offers, live, 1_usize..6).prop_map(|(offers, live, limit)| {
                let offers = offers.iter().map(|(c, l, t)| offer(c, *l, *t)).collect();
                (offers, live.into_iter().map(f64::from).collect(), limit)
            })
        })
    }

    proptest! {
        #[test]
        fn every_node_is_covered_once_by_a_claimant_at_least_cost((offers, live, limit) in case()) {
            let nodes = live.len() - 1;
            match partition(nodes, &offers, &live, limit) {
                Err(node) => {
                    prop_assert!(offers.iter().all(|o| o.claims.iter().all(|c| c.nodes != [node])));
                }
                Ok(partitions) => {
                    let covered: Vec<usize> =
                        partitions.iter().flat_map(|p| p.nodes.clone()).collect();
                    prop_assert_eq!(covered, (0..nodes).collect::<Vec<_>>());
                    let found = price(&flat(&partitions), &offers, &live);
                    prop_assert!(found.is_finite());
                    let predicted = predicted_ns(&partitions, &offers, &live);
                    prop_assert!((found - predicted).abs() < 1e-6, "{} is not {}", predicted, found);
                    let mut least = f64::INFINITY;
                    for code in 0..offers.len().pow(u32::try_from(nodes).unwrap()) {
                        let digit = |node: usize| {
                            code / offers.len().pow(u32::try_from(node).unwrap()) % offers.len()
                        };
                        let chosen: Vec<usize> = (0..nodes).map(digit).collect();
                        if runs(&chosen).len() <= limit {
                            least = least.min(price(&chosen, &offers, &live));
                        }
                    }
                    if least.is_finite() {
                        prop_assert!(partitions.len() <= limit);
                        prop_assert!((found - least).abs() < 1e-6, "{} is not {}", found, least);
                    }
                }
            }
        }
    }

    #[test]
    fn a_fast_island_is_left_alone_when_reaching_it_costs_more_than_it_saves() {
        let host = offer(&[Some(10), Some(10), Some(10)], 0, 0);
        let island = |launch| offer(&[None, Some(1), None], launch, 0);
        let live = [0.0; 4];
        assert_eq!(partition(3, &[host.clone(), island(20)], &live, 9).unwrap().len(), 1);
        assert_eq!(partition(3, &[host, island(2)], &live, 9).unwrap().len(), 3);
    }
}
