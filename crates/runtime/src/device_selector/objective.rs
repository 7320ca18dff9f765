//! Goals of a choice between devices.

use std::fmt;
use std::str::FromStr;

use crate::power::UnitChoice;

/// Goal by which a placement is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ExecutionGoal {
    /// Each run is done as soon as possible: what units still owe counts.
    #[default]
    Latency,
    /// Completes as many runs as possible: takes the placement that keeps its busiest device the shortest,
    /// given the work that devices still owe.
    Throughput,
    /// Uses as little energy as possible, unless that takes four times as long.
    Power,
}

/// The goals and their names in configurations.
const NAMES: [(ExecutionGoal, &str); 3] = [
    (ExecutionGoal::Latency, "latency"),
    (ExecutionGoal::Throughput, "throughput"),
    (ExecutionGoal::Power, "power"),
];

impl fmt::Display for ExecutionGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = NAMES.iter().find(|(goal, _)| goal == self);
        f.write_str(own.map_or("", |(_, name)| name))
    }
}

impl FromStr for ExecutionGoal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let own = NAMES.iter().find(|(_, name)| *name == text.trim());
        own.map(|(goal, _)| *goal)
            .ok_or_else(|| format!("'{text}' found, expected latency, throughput or power"))
    }
}

/// Limits on a placement that needs less energy: its time as a multiple of the fastest placement's, and its
/// energy as a share of the fastest placement's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EnergyPolicy {
    pub(super) longer: f64,
    pub(super) energy: f64,
}

impl EnergyPolicy {
    /// Returns what a goal allows, given what the machine's power allows.
    pub(super) fn of(goal: ExecutionGoal, units: UnitChoice) -> Option<Self> {
        match (goal, units) {
            (ExecutionGoal::Power, _) | (_, UnitChoice::Frugal) => {
                Some(Self { longer: 4.0, energy: 1.0 })
            }
            (_, UnitChoice::Balanced) => Some(Self { longer: 1.25, energy: 0.7 }),
            (_, UnitChoice::Fastest) => None,
        }
    }
}
