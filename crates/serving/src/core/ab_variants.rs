//! Variants of A/B tests: versions that serve, or instances of their own.

use std::sync::{Arc, Weak};

use super::loaded::LoadedVersion;
use crate::ab_test::{AbTest, AbTestPlan, AbVariant};

/// A test with its variants, which live as long as it.
#[derive(Debug)]
pub(super) struct LiveAbTest {
    pub(super) test: Arc<AbTest>,
    pub(super) sides: [Arc<LoadedVersion>; 2],
    /// Variants that are no version of the model as it serves, but instances of their own.
    pub(super) own: Vec<Arc<LoadedVersion>>,
}

impl LiveAbTest {
    /// Instances of its own: they serve and are drained as versions are.
    pub(super) fn own(&self) -> &[Arc<LoadedVersion>] {
        &self.own
    }

    /// Ends the test: its own instances leave the service and are to be drained.
    pub(super) fn retire(self) -> Vec<Arc<LoadedVersion>> {
        self.own.iter().for_each(|loaded| loaded.leave_service());
        self.own
    }

    /// The same as a request looks at it, which keeps no instances.
    pub(super) fn tested(&self) -> TestedVariants {
        let sides = self.sides.each_ref().map(Arc::downgrade);
        TestedVariants { test: Arc::clone(&self.test), sides }
    }
}

/// A test as handles have it.
#[derive(Clone, Debug)]
pub(super) struct TestedVariants {
    pub(super) test: Arc<AbTest>,
    sides: [Weak<LoadedVersion>; 2],
}

impl TestedVariants {
    /// A variant, unless it has left the service.
    pub(super) fn find(&self, variant: AbVariant) -> Option<Arc<LoadedVersion>> {
        let [a, b] = &self.sides;
        let side = match variant {
            AbVariant::A => a,
            AbVariant::B => b,
        };
        side.upgrade().filter(|loaded| !loaded.has_left())
    }
}

/// A test under construction: its plan, and the variants that are no plain version.
pub(super) struct PlannedAbTest {
    pub(super) plan: AbTestPlan,
    pub(super) own: [Option<Arc<LoadedVersion>>; 2],
}

impl PlannedAbTest {
    /// Ends the instances that were made for a test which does not begin.
    pub(super) fn drop_instances(&self) {
        self.own.iter().flatten().for_each(|loaded| loaded.remove());
    }
}
