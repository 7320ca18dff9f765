//! Power and heat: how much of its pace a server may use.
//!
//! No program sets watts or clocks on a Mac. What one can choose is how much work runs at once, how long
//! it rests in between, on which units it runs and how urgent its threads are. A [`PowerGovernor`] looks at
//! what sensors say ([`SensorReading`]) and at how busy the server is, and answers with an [`PowerAllowance`] of
//! these; a [`PowerGate`] keeps work to it. A [`WattsLoop`] holds a target, a [`HeatGuard`] keeps the machine
//! out of throttling. A [`ModelGovernor`] does that for one model, whose runs are charged with what they
//! make the machine draw ([`attributed`]). All of them are told the time, so that they run in simulated time as they do on a
//! machine; [`ThermalModel`] is a machine to run them against.

mod energy;
mod gate;
mod governor;
mod heat;
mod linux;
mod model;
mod pace;
mod reading;
mod settings;
mod thermal_model;
mod watts;

pub use energy::{EnergyMeter, EnergyReport};
pub use gate::{PowerGate, PowerPermit, WorkBudget};
pub use governor::{PowerAllowance, PowerGovernor, PowerLimit, ThreadClass, UnitChoice};
pub use heat::HeatGuard;
pub use linux::SystemSensors;
pub use model::{ModelAllowance, ModelGovernor};
pub use pace::{BusyTime, PaceSource, Throttle, attributed};
pub use reading::{
    Battery, GovernedDraw, MeterScope, PowerDraw, SensorReading, SensorSource, ThermalState,
};
pub use settings::{PowerPolicy, PowerSettings};
pub use thermal_model::{MachineModel, ThermalModel};
pub use watts::{IdleDraw, WattsLoop};
