//! Corrections of predicted operator times, from profiles of runs.

use std::collections::{HashMap, HashSet};

use galatea_graph::Graph;

use super::plan::node_times;
use crate::profile::ProfileRow;
use crate::provider::ProviderClaims;

/// A prediction is corrected by this factor at most, one way or the other.
const MOST: f64 = 1e3;
/// Operators that take less of a run than this are too short to be timed well.
const SHARE: f64 = 0.01;

/// By which factors predictions for operators are longer or shorter than others of their provider. The mean of a
/// provider's factors over a run is 1: how far all its predictions are off together is the router's to know.
#[derive(Debug, Default)]
pub(super) struct OperatorCorrections {
    factors: HashMap<(usize, String), f64>,
    /// The providers of which profiles were seen.
    seen: HashSet<usize>,
}

impl OperatorCorrections {
    /// Returns whether no profile of a provider was seen.
    pub(super) fn lacks(&self, provider: usize) -> bool {
        !self.seen.contains(&provider)
    }

    /// Learns from a provider's rows of a profile, of which the graph's operators were predicted to take what
    /// its claims say. Operators that went into others' kernels have no time of their own and are left as they are.
    pub(super) fn learn(
        &mut self,
        graph: &Graph,
        provider: usize,
        claims: &ProviderClaims,
        rows: &[&ProfileRow],
    ) {
        self.seen.insert(provider);
        let mut predicted: HashMap<String, f64> = HashMap::new();
        for (node, ns) in node_times(std::slice::from_ref(claims)).into_iter().flatten() {
            if let Some(node) = graph.nodes.get(node) {
                *predicted.entry(node.operator_name()).or_default() += ns;
            }
        }
        let mut measured: HashMap<&str, f64> = HashMap::new();
        for row in rows {
            *measured.entry(&row.op).or_default() += row.time.as_secs_f64() * 1e9;
        }
        measured.retain(|op, ns| *ns > 0.0 && predicted.get(*op).is_some_and(|ns| *ns > 0.0));
        let all: f64 = measured.values().sum();
        let expected: f64 = measured.keys().filter_map(|op| predicted.get(*op)).sum();
        for (op, ns) in measured.into_iter().filter(|(_, ns)| *ns >= all * SHARE) {
            let Some(own) = predicted.get(op) else { continue };
            let factor = (ns / all) / (own / expected);
            self.factors.insert((provider, op.to_owned()), factor.clamp(1.0 / MOST, MOST));
        }
    }

    /// Claims with what is known now.
    pub(super) fn apply(&self, graph: &Graph, claims: &mut [ProviderClaims]) {
        if self.factors.is_empty() {
            return;
        }
        for (provider, offer) in claims.iter_mut().enumerate() {
            for claim in &mut offer.claims {
                let factor = |node: &usize| {
                    let op = graph.nodes.get(*node)?.operator_name();
                    self.factors.get(&(provider, op)).copied()
                };
                let sum: f64 = claim.nodes.iter().map(|node| factor(node).unwrap_or(1.0)).sum();
                #[allow(clippy::cast_precision_loss, reason = "a count of nodes")]
                let count = claim.nodes.len().max(1) as f64;
                claim.cost_ns *= sum / count;
            }
        }
    }
}
