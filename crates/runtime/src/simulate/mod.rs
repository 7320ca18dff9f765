//! Servers that do not exist: a trace of requests replayed on machines of any chip, in simulated time.
//!
//! Every time comes from a [`CostModel`](crate::cost::CostModel), every watt from a
//! [`ThermalModel`](crate::power::ThermalModel) that a [`Governor`](crate::power::Governor) watches, as on a
//! real machine. Each unit of a machine runs one piece of work after the other: a batch of a graph, a piece
//! of a prompt, or steps of all texts that it writes. Requests go where they are predicted to be done first,
//! or where they need less energy, as the policy says. Models may have to be brought into memory first, and
//! requests and answers to cross a network. What comes out is a prediction and nothing that was
//! measured.

mod delivery;
mod device;
mod event;
mod fleet;
mod machine;
mod placement;
#[cfg(test)]
mod properties;
mod report;
mod residence;
mod run;
mod table;
#[cfg(test)]
mod tests;
mod units;

pub use fleet::{
    Fleet, FleetNetwork, MachineCooling, MachineKind, ModelLoading, ModelWork, RequestKind,
    SimulatedModel, SimulatedRequest, SimulationFault, USUAL_DISK_BYTES,
};
pub use report::{
    MachineReport, SimulatedDeviceReport, SimulatedModelReport, SimulationReport, TimeQuantiles,
};
pub use run::simulate;
