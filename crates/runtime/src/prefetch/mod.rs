//! What to bring near before it is needed: weights that do not all fit where they are used.
//!
//! An [`Order`] watches which regions are touched and says which come next; a [`Prefetcher`] decides with
//! that what to load, what to give up for it, and how far ahead to be. Neither has a thread, a lock or a
//! clock: whoever moves the bytes tells them what happened and when.

mod ahead;
mod distance;
mod order;
mod policy;
#[cfg(test)]
mod tests;

pub use ahead::PrefetchPolicy;
pub use order::Order;
pub use policy::{Limits, Load, Prefetcher, Statistics, Touch};
