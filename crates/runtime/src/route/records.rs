//! What ways took, for sessions that are made later.

use std::fmt;
use std::sync::Arc;

/// What a record is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WayKey {
    /// A number for the operators of a graph in their order, with what is known of their values. Weights do not count.
    pub graph: u64,
    /// The units, and what else changes times: precision, optimisation and threads.
    pub how: String,
    /// The shapes of inputs: what [`Bucket`](super::Bucket) prints.
    pub bucket: String,
}

/// What a way took.
#[derive(Clone, Debug, PartialEq)]
pub struct WayTime {
    /// The units and their nodes in running order: `gpu 0..41 cpu 41..77`.
    pub way: String,
    /// Nanoseconds of a run that had its units for itself.
    pub ns: f64,
}

/// Remembers what ways took on this machine.
pub trait WayRecords: fmt::Debug + Send + Sync {
    /// What is remembered; nothing where nothing is.
    fn find(&self, key: &WayKey) -> Vec<WayTime>;

    /// Remembers this in the place of what was known.
    fn keep(&self, key: &WayKey, times: &[WayTime]);
}

/// Who remembers, if anybody.
#[derive(Clone, Debug, Default)]
pub struct WaySource(pub Option<Arc<dyn WayRecords>>);

impl PartialEq for WaySource {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for WaySource {}
