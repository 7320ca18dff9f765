//! Events of a simulation, in the order of their times.

use std::cmp::Ordering;

/// Event of the simulation.
#[derive(Clone, Copy, Debug)]
pub(super) enum SimulatedEventKind {
    /// A piece ends, if the unit still has this stamp.
    End { unit: usize, stamp: u32 },
    /// A request reaches its machine.
    Delivered { unit: usize, request: u32 },
    /// A model is in memory, or its compiled form is there.
    Ready { model: u32 },
}

/// Something that happens at a machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedEvent {
    pub(super) at: u64,
    /// The order among those at the same time.
    pub(super) number: u64,
    pub(super) machine: usize,
    pub(super) what: SimulatedEventKind,
}

impl PartialEq for SimulatedEvent {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SimulatedEvent {}

impl PartialOrd for SimulatedEvent {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SimulatedEvent {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
