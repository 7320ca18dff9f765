//! Times of placements that were measured in earlier sessions.

use std::sync::Arc;
use std::time::Duration;

use super::super::compiled_graph::CompiledGraph;
use super::{Placement, PlacementState};
use crate::device_selector::{
    PlacementEstimate, PlacementHistory, PlacementRecordKey, PlacementTime, ShapeBucket,
};
use crate::partition::Partition;
use crate::tune::hash_of_names;

/// A placement that an earlier session measured.
pub(super) struct RecordedPlacement {
    pub(super) partitions: Vec<Partition>,
    /// Median time of a run.
    pub(super) time: Duration,
}

/// Store in which a session remembers its placements.
#[derive(Debug)]
pub(super) struct PlacementKey {
    records: Arc<dyn PlacementHistory>,
    graph: u64,
    how: String,
    /// The names of the providers, in their order.
    providers: Vec<&'static str>,
    nodes: usize,
}

impl PlacementKey {
    /// Creates the store of a session, if its options name one.
    pub(super) fn of(graph: &CompiledGraph) -> Option<Self> {
        let records = graph.options.ways.0.clone()?;
        let providers = graph.names.clone();
        let options = &graph.options;
        let how = format!(
            "{}; {}; {}; {} threads",
            providers.join(" "),
            options.precision,
            options.optimise,
            options.threads
        );
        let nodes = graph.graph.nodes.len();
        let graph = hash_of_names(&descriptions(graph));
        Some(Self { records, graph, how, providers, nodes })
    }

    fn key(&self, bucket: &ShapeBucket) -> PlacementRecordKey {
        PlacementRecordKey { graph: self.graph, how: self.how.clone(), bucket: bucket.to_string() }
    }

    /// Returns the placements that were measured for a bucket.
    pub(super) fn find(&self, bucket: &ShapeBucket) -> Vec<RecordedPlacement> {
        let all = self.records.find(&self.key(bucket));
        let read = |one: &PlacementTime| {
            let time = Duration::try_from_secs_f64(one.ns / 1e9).ok()?;
            Some(RecordedPlacement { partitions: self.partitions(&one.way)?, time })
        };
        all.iter().filter_map(read).collect()
    }

    /// Returns the times measured in a bucket. Placements that divide rows or matrix multiplications are found
    /// anew.
    pub(super) fn measured(
        &self,
        state: &PlacementState,
        bucket: &ShapeBucket,
    ) -> Vec<PlacementTime> {
        let all = state.selector.estimates(bucket);
        let measured = all.iter().filter(|one| one.measured);
        let time = |one: &PlacementEstimate| {
            let own = state.placements.get(one.way)?;
            let sound = own.is_whole() && own.failed.is_none();
            sound.then(|| PlacementTime { way: self.name(own), ns: one.ns })
        };
        measured.filter_map(time).collect()
    }

    /// Remembers what was measured in a bucket.
    pub(super) fn keep(&self, bucket: &ShapeBucket, times: &[PlacementTime]) {
        if !times.is_empty() {
            self.records.keep(&self.key(bucket), times);
        }
    }

    fn name(&self, placement: &Placement) -> String {
        let part = |one: &Partition| {
            let name = self.providers.get(one.provider).copied().unwrap_or_default();
            format!("{name} {}..{}", one.nodes.start, one.nodes.end)
        };
        placement.partitions.iter().map(part).collect::<Vec<_>>().join(" ")
    }

    /// Parses a name into partitions, if it covers the graph in its order.
    fn partitions(&self, name: &str) -> Option<Vec<Partition>> {
        let words: Vec<&str> = name.split(' ').collect();
        let mut partitions = Vec::with_capacity(words.len() / 2);
        let mut next = 0;
        for pair in words.chunks(2) {
            let [unit, nodes] = pair else { return None };
            let provider = self.providers.iter().position(|own| own == unit)?;
            let (start, end) = nodes.split_once("..")?;
            let nodes = start.parse::<usize>().ok()?..end.parse::<usize>().ok()?;
            if nodes.start != next || nodes.end <= next || nodes.end > self.nodes {
                return None;
            }
            next = nodes.end;
            partitions.push(Partition { provider, nodes });
        }
        (next == self.nodes).then_some(partitions)
    }
}

/// The operators of a session's graph, what they read and write, and what is known of it.
fn descriptions(compiled: &CompiledGraph) -> Vec<String> {
    let nodes = compiled.graph.nodes.iter().map(|node| {
        let ids = |slots: &[Option<galatea_graph::ValueId>]| {
            slots.iter().map(|slot| slot.map(galatea_graph::ValueId::index)).collect::<Vec<_>>()
        };
        format!("{} {:?} {:?}", node.operator_name(), ids(&node.inputs), ids(&node.outputs))
    });
    let facts = compiled.facts.iter().map(|fact| match fact {
        Some(fact) => format!("{} {:?}", fact.dtype, fact.shape),
        None => String::new(),
    });
    nodes.chain(facts).collect()
}
