//! A/B tests on live requests: two versions or settings of a model, each with its share of requests, until one proves
//! better.
//!
//! An [`AbTestPlan`] is what the parameter `ab_test` says. An [`AbTest`] assigns requests and hears how they ended. Its
//! [`AbRecord`] is a state machine without lock or clock, which ends the test by the [`StopRules`].

mod compatible;
mod fields;
mod live;
mod plan;
mod record;
mod sequences;

pub(crate) use compatible::check_compatible;
pub use live::{AbReport, AbTest, VariantReport};
pub use plan::{AbTestPlan, AbVariant, ModelVersions, StickyKey, StopRules, VariantPlan};
pub use record::{AbOutcome, AbRecord, AbStatistics, StopReason, VariantStatistics};

/// The parameter of models.
pub(crate) const PARAMETER: &str = "ab_test";
