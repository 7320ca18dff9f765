//! Choice of the compute device for each run. It predicts the time of each placement of a model and the load of
//! each device, and takes the placement that is done first, or needs the least energy.
//!
//! A placement (`way` in the code) is one division of a model among devices. For each [`ShapeBucket`] of input
//! shapes a [`DeviceSelector`] knows the predicted time of every placement and, once measured, its real time.
//! Predictions for a device whose runs were measured elsewhere are corrected by the error found there. A
//! [`ComputeDevice`] is a device and knows the work that it still owes to all models; work therefore goes where it is
//! done first, not where it runs fastest. A `ComputeDevice` also limits the runs under way to the number it can usefully
//! execute ([`DeviceLanes`]). Others wait for a turn, those with the earliest deadline first. A router has neither a
//! thread nor a clock: times are given to it.

mod compute_device;
mod device_queue;
mod objective;
mod placement_history;
mod selector;
mod shape_bucket;

pub use compute_device::{ComputeDevice, ComputeDevices, DeviceReport, OccupiedDevice};
pub use device_queue::DeviceLanes;
pub use objective::ExecutionGoal;
pub use placement_history::{
    PlacementHistory, PlacementHistorySource, PlacementRecordKey, PlacementTime,
};
pub use selector::{DeviceSelector, Objective, PlacementCost, PlacementEstimate, PlanSegment};
pub use shape_bucket::ShapeBucket;

#[cfg(test)]
mod tests;
