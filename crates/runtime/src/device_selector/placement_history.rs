//! Records of measured times of placements, for sessions that are made later.

use std::fmt;
use std::sync::Arc;

/// Key of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlacementRecordKey {
    /// A number for the operators of a graph in their order, with what is known of their values. Weights do not count.
    pub graph: u64,
    /// The units, and what else changes times: precision, optimisation and threads.
    pub how: String,
    /// The shapes of inputs: what [`Bucket`](super::Bucket) prints.
    pub bucket: String,
}

/// Measured time of a placement.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementTime {
    /// The units and their nodes in running order: `gpu 0..41 cpu 41..77`.
    pub way: String,
    /// Nanoseconds of a run that had its units for itself.
    pub ns: f64,
}

/// Remembers what ways took on this machine.
pub trait PlacementHistory: fmt::Debug + Send + Sync {
    /// Returns the times on record; empty if there are none.
    fn find(&self, key: &PlacementRecordKey) -> Vec<PlacementTime>;

    /// Remembers this in the place of what was known.
    fn keep(&self, key: &PlacementRecordKey, times: &[PlacementTime]);
}

/// Store of the records, if any.
#[derive(Clone, Debug, Default)]
pub struct PlacementHistorySource(pub Option<Arc<dyn PlacementHistory>>);

impl PartialEq for PlacementHistorySource {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for PlacementHistorySource {}
