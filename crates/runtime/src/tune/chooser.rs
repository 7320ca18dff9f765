//! Where those who have a choice ask, and what they offer to be measured.

use std::fmt;
use std::sync::Arc;

use super::database::{Database, Key};
use super::measure::Device;
use super::space::Space;

/// Answers questions about which candidate to take.
pub trait Chooser: fmt::Debug + Send + Sync {
    /// The candidate to take, where one is known to be the fastest. Measures nothing.
    fn choose(&self, family: &str, bucket: &str, space: &Space) -> Option<usize>;
}

/// What was measured, asked on one machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tuning {
    /// The records, of any machines.
    pub database: Database,
    /// Chip and build of the operating system of this one.
    pub machine: String,
}

impl Chooser for Tuning {
    fn choose(&self, family: &str, bucket: &str, space: &Space) -> Option<usize> {
        let key = Key::new(family, bucket.to_owned(), &self.machine, space);
        self.database.choose(&key, space)
    }
}

/// Whom a session asks, if anybody.
#[derive(Clone, Debug, Default)]
pub struct ChoiceSource(pub Option<Arc<dyn Chooser>>);

impl PartialEq for ChoiceSource {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for ChoiceSource {}

/// A choice that a session has, with what is needed to measure it.
pub struct Problem {
    /// The node that has it, for people.
    pub node: String,
    /// As in [`Key`].
    pub family: String,
    /// As in [`Key`].
    pub bucket: String,
    /// The candidates.
    pub space: Space,
    /// Who runs them.
    pub device: Box<dyn Device>,
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, family, bucket, .. } = self;
        write!(f, "{family} {bucket} of {node}")
    }
}
