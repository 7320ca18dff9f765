//! Which compute unit a run goes to: what each way of running a model takes, what each unit has to do,
//! and which way is done first, or takes the least energy.
//!
//! A *way* is one division of a model among units. A [`Router`] knows for each [`Bucket`] of input shapes
//! what every way is predicted to take and, once it was measured, what it took; predictions of a unit whose
//! runs were measured elsewhere are corrected by how far those were off. A [`Unit`] knows what it still owes
//! to all models, so that work goes where it is done first and not where it runs fastest. A `Unit` also
//! has as many runs under way as it is good for ([`Lanes`]): others wait for a turn, those with the earliest deadline
//! first. A router has neither a thread nor a clock: times are given to it.

mod bucket;
mod goal;
mod records;
mod router;
mod turn;
mod unit;

pub use bucket::Bucket;
pub use goal::Goal;
pub use records::{WayKey, WayRecords, WaySource, WayTime};
pub use router::{Aim, Cost, Estimate, Router, Stop};
pub use turn::Lanes;
pub use unit::{Occupied, Unit, UnitReport, Units};

#[cfg(test)]
mod tests;
