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

    /// The same for a unit of the machine that is not its processor, such as a GPU with its driver.
    fn choose_on(&self, _unit: &str, family: &str, bucket: &str, space: &Space) -> Option<usize> {
        self.choose(family, bucket, space)
    }
}

/// What was measured, asked on one machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tuning {
    /// The records, of any machines.
    pub database: Database,
    /// Chip and build of the operating system of this one.
    pub machine: String,
}

impl Tuning {
    /// The machine of a key: this one, or a unit of it that is not its processor.
    #[must_use]
    pub fn machine_of(machine: &str, unit: Option<&str>) -> String {
        unit.map_or_else(|| machine.to_owned(), |unit| format!("{machine}; {unit}"))
    }
}

impl Chooser for Tuning {
    fn choose(&self, family: &str, bucket: &str, space: &Space) -> Option<usize> {
        let key = Key::new(family, bucket.to_owned(), &self.machine, space);
        self.database.choose(&key, space)
    }

    fn choose_on(&self, unit: &str, family: &str, bucket: &str, space: &Space) -> Option<usize> {
        let machine = Self::machine_of(&self.machine, Some(unit));
        self.database.choose(&Key::new(family, bucket.to_owned(), &machine, space), space)
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
    /// What runs it, where that is not the machine's processor.
    pub unit: Option<String>,
    /// As in [`Key`].
    pub family: String,
    /// As in [`Key`].
    pub bucket: String,
    /// The candidates.
    pub space: Space,
    /// Who runs them.
    pub device: Box<dyn Device>,
}

impl Problem {
    /// The key of its record on a machine.
    #[must_use]
    pub fn key(&self, machine: &str) -> Key {
        let machine = Tuning::machine_of(machine, self.unit.as_deref());
        Key::new(&self.family, self.bucket.clone(), &machine, &self.space)
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, family, bucket, .. } = self;
        write!(f, "{family} {bucket} of {node}")
    }
}
