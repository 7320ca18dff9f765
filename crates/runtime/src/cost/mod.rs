//! How long work takes on the units of a chip, and what it draws, predicted from facts about the chip and
//! corrected by measurements.
//!
//! A [`CostModel`] is a roofline for each unit ([`UnitCost`]): what takes longer of arithmetic and of bytes,
//! beside what starts take. [`GraphWork`] and [`DecoderWork`] say what models have to do. It measures
//! nothing and knows no clock; who measures tells it ([`CostModel::correct`]). Providers predict what nodes take from
//! the same facts, as long as nothing was measured.

mod chip;
mod correction;
#[cfg(test)]
mod published;
mod workload;

pub use chip::{ComputeUnit, CostModel, Product, UnitCost};
pub use correction::Corrections;
pub use workload::{DecoderWork, GraphWork, OperatorWork};
