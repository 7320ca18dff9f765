//! Predictions of the time and the power that work takes on the devices of a chip, made from facts about the
//! chip and corrected by measurements.
//!
//! A [`CostModel`] is a roofline for each device ([`UnitCost`]): the longer of the times for arithmetic and for
//! bytes, plus the time of starts. [`GraphWork`] and [`DecoderWork`] describe the work of models. The cost
//! model measures nothing and reads no clock; measurements are passed to it ([`CostModel::correct`]). Until
//! something is measured, providers predict the times of nodes from the same facts.

mod chip;
mod correction;
#[cfg(test)]
mod published;
mod unit;
mod workload;

pub use chip::{ArithmeticClass, CostModel, UnitCost};
pub use correction::CostCorrections;
pub use unit::ComputeUnit;
pub use workload::{DecoderWork, GraphWork, OperatorWork};
