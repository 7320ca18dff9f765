//! Prefetching of weights that do not all fit on the device that uses them.
//!
//! An [`AccessOrder`] watches which regions are touched and predicts which come next. With that a [`Prefetcher`]
//! decides what to load, what to evict for it, and how far ahead to be. Neither has a thread, a lock or a
//! clock: the code that moves the bytes reports what happened and when.

mod ahead;
mod distance;
mod order;
mod policy;
#[cfg(test)]
mod tests;

pub use ahead::PrefetchPolicy;
pub use order::AccessOrder;
pub use policy::{PendingLoad, PrefetchLimits, PrefetchStatistics, Prefetcher, TouchOutcome};
