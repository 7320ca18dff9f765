//! Lookup of tuned choices, and problems that are offered for measuring.

use std::fmt;
use std::sync::Arc;

use super::config_space::ConfigSpace;
use super::database::{TuningDatabase, TuningKey, TuningRecord};
use super::measure::TuningTarget;

/// Answers questions about which candidate to take.
pub trait TuningCache: fmt::Debug + Send + Sync {
    /// The candidate to take, where one is known to be the fastest. Measures nothing.
    fn choose(&self, family: &str, bucket: &str, space: &ConfigSpace) -> Option<usize>;

    /// The same for a unit of the machine that is not its processor, such as a GPU with its driver.
    fn choose_on(
        &self,
        _unit: &str,
        family: &str,
        bucket: &str,
        space: &ConfigSpace,
    ) -> Option<usize> {
        self.choose(family, bucket, space)
    }

    /// Returns whether a problem has a record.
    fn knows(&self, problem: &TuningProblem) -> bool {
        let TuningProblem { unit, family, bucket, space, .. } = problem;
        let found = match unit {
            Some(unit) => self.choose_on(unit, family, bucket, space),
            None => self.choose(family, bucket, space),
        };
        found.is_some()
    }

    /// Takes a new record, where records can be added.
    fn keep(&self, _problem: &TuningProblem, _record: TuningRecord) {}
}

/// Measurements, looked up for one machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineTuning {
    /// The records, of any machines.
    pub database: TuningDatabase,
    /// Chip and build of the operating system of this one.
    pub machine: String,
}

impl MachineTuning {
    /// The machine of a key: this one, or a unit of it that is not its processor.
    #[must_use]
    pub fn machine_of(machine: &str, unit: Option<&str>) -> String {
        unit.map_or_else(|| machine.to_owned(), |unit| format!("{machine}; {unit}"))
    }
}

impl TuningCache for MachineTuning {
    fn choose(&self, family: &str, bucket: &str, space: &ConfigSpace) -> Option<usize> {
        let key = TuningKey::new(family, bucket.to_owned(), &self.machine, space);
        self.database.choose(&key, space)
    }

    fn choose_on(
        &self,
        unit: &str,
        family: &str,
        bucket: &str,
        space: &ConfigSpace,
    ) -> Option<usize> {
        let machine = Self::machine_of(&self.machine, Some(unit));
        self.database.choose(&TuningKey::new(family, bucket.to_owned(), &machine, space), space)
    }
}

/// Chooser that a session asks, if any.
#[derive(Clone, Debug, Default)]
pub struct ChoiceSource(pub Option<Arc<dyn TuningCache>>);

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
pub struct TuningProblem {
    /// The node that has it, for people.
    pub node: String,
    /// Name of the device that runs it, if that is not the machine's CPU.
    pub unit: Option<String>,
    /// Family, as in [`TuningKey`].
    pub family: String,
    /// Bucket, as in [`TuningKey`].
    pub bucket: String,
    /// The candidates.
    pub space: ConfigSpace,
    /// Device that runs the candidates.
    pub device: Box<dyn TuningTarget>,
}

impl TuningProblem {
    /// The key of its record on a machine.
    #[must_use]
    pub fn key(&self, machine: &str) -> TuningKey {
        let machine = MachineTuning::machine_of(machine, self.unit.as_deref());
        TuningKey::new(&self.family, self.bucket.clone(), &machine, &self.space)
    }

    /// Returns whether it is about the number of threads of a kernel, which is measured once the kernel is settled.
    #[must_use]
    pub fn is_about_threads(&self) -> bool {
        self.family.starts_with("threads ")
    }
}

impl fmt::Debug for TuningProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, family, bucket, .. } = self;
        write!(f, "{family} {bucket} of {node}")
    }
}
