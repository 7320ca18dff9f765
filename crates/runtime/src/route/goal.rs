//! What a user wants of a choice between units.

use std::fmt;
use std::str::FromStr;

use crate::power::UnitChoice;

/// What a way is chosen by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Goal {
    /// Each run is done as soon as possible: what units still owe counts.
    #[default]
    Latency,
    /// As many runs as possible: the way that keeps its busiest unit the shortest, given what units owe.
    Throughput,
    /// As little energy as possible, unless that takes four times as long.
    Power,
}

/// The goals and their names in configurations.
const NAMES: [(Goal, &str); 3] =
    [(Goal::Latency, "latency"), (Goal::Throughput, "throughput"), (Goal::Power, "power")];

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = NAMES.iter().find(|(goal, _)| goal == self);
        f.write_str(own.map_or("", |(_, name)| name))
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let own = NAMES.iter().find(|(_, name)| *name == text.trim());
        own.map(|(goal, _)| *goal)
            .ok_or_else(|| format!("'{text}' found, expected latency, throughput or power"))
    }
}

/// How much longer than the fastest a way may take that needs less energy, and how much of the fastest way's energy
/// it may need at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Thrift {
    pub(super) longer: f64,
    pub(super) energy: f64,
}

impl Thrift {
    /// What a goal allows under what the machine's power allows.
    pub(super) fn of(goal: Goal, units: UnitChoice) -> Option<Self> {
        match (goal, units) {
            (Goal::Power, _) | (_, UnitChoice::Frugal) => Some(Self { longer: 4.0, energy: 1.0 }),
            (_, UnitChoice::Balanced) => Some(Self { longer: 1.25, energy: 0.7 }),
            (_, UnitChoice::Fastest) => None,
        }
    }
}
