//! Log messages that say where operators run.

use std::collections::BTreeMap;

use super::placements::Placement;
use super::{CompiledPartitions, Session};
use crate::device_selector::{DeviceSelector, ShapeBucket};

impl Session {
    /// Says which operators go to which unit, a line for each part.
    pub(super) fn tell_parts(&self, compiled: &CompiledPartitions) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        let model = &self.graph.name;
        for (number, part) in compiled.parts.iter().enumerate() {
            let mut operators: BTreeMap<String, usize> = BTreeMap::new();
            for node in self.graph.nodes.get(part.nodes.clone()).unwrap_or_default() {
                *operators.entry(node.operator_name()).or_default() += 1;
            }
            let each = operators.iter().map(|(name, count)| match count {
                1 => name.clone(),
                _ => format!("{count} {name}"),
            });
            let each = each.collect::<Vec<String>>().join(", ");
            let unit = self.providers[part.provider].name();
            tracing::debug!(%model, part = number, %unit, nodes = part.nodes.len(), "runs {each}");
        }
    }

    /// Says which way a run takes, with what it was chosen by.
    pub(super) fn tell_way(
        &self,
        router: &DeviceSelector,
        bucket: &ShapeBucket,
        (number, way): (usize, Option<&Placement>),
    ) {
        if !tracing::enabled!(tracing::Level::TRACE) {
            return;
        }
        let parts = way.map_or(&[][..], |way| &way.partitions);
        let parts = parts.iter().map(|part| self.providers[part.provider].name());
        let parts = parts.collect::<Vec<&str>>().join(", ");
        let units = if parts.is_empty() { "several" } else { &parts };
        let estimates = router.estimates(bucket);
        let Some(estimate) = estimates.get(number) else { return };
        let model = &self.graph.name;
        let us = estimate.end_ns / 1e3;
        let known = if estimate.measured { "measured" } else { "predicted" };
        tracing::trace!(%model, way = number, %units, "a run takes this way, {known} to be done in {us:.0} us");
    }
}
