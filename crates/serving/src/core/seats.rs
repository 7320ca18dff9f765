//! The instances of a version: which there are, which go on from the version before, and how the others are made.

use std::path::Path;
use std::sync::Arc;

use super::loaded::{KeptInstance, LoadedVersion, VersionExecutor};
use super::warmup;
use crate::backend::{BackendModel, InstancePlacement, ModelInstance, PlacementKind};
use crate::config::ModelConfig;
use crate::config::inference::ModelRateLimiter;
use crate::config::inference::model_instance_group::Kind;
use crate::driver::{InstanceSeat, SeatedInstance};
use crate::error::ServingError;
use crate::rate_limiter::ResourceDevice;
use crate::sequence::SequencePlan;

/// Most instances that are made at the same time.
/// Source: more than any example has; each may be a process that starts.
const MAX_MADE_TOGETHER: usize = 64;

/// The instances of all groups, by name, and the resources that each needs.
pub(super) fn placements(
    config: &Arc<ModelConfig>,
    gpus: u32,
) -> Vec<(InstancePlacement, Option<ModelRateLimiter>)> {
    let mut placements = Vec::new();
    for group in &config.instance_group {
        let kinds: Vec<PlacementKind> = match group.kind() {
            Kind::Gpu if group.gpus.is_empty() => (0..gpus).map(PlacementKind::Gpu).collect(),
            Kind::Gpu => group
                .gpus
                .iter()
                .filter_map(|&gpu| Some(PlacementKind::Gpu(gpu.try_into().ok()?)))
                .collect(),
            Kind::Model => vec![PlacementKind::Model],
            Kind::Auto | Kind::Cpu => vec![PlacementKind::Cpu],
        };
        let count = usize::try_from(group.count).unwrap_or(1);
        let all = kinds.iter().flat_map(|&kind| std::iter::repeat_n(kind, count));
        for (number, kind) in all.enumerate() {
            let name = format!("{}_{number}", group.name);
            let placement = InstancePlacement { name, kind, config: Arc::clone(config) };
            placements.push((placement, group.rate_limiter.clone()));
        }
    }
    placements
}

/// Description of the instances that a version is to have.
pub(super) struct SeatsWanted<'a> {
    /// Folder of the model.
    pub(super) dir: &'a Path,
    /// Completed configuration.
    pub(super) config: &'a Arc<ModelConfig>,
    pub(super) sequences: Option<&'a Arc<SequencePlan>>,
    /// GPUs of the machine.
    pub(super) gpus: u32,
}

/// The instances of a version, in the order of its configuration.
pub(super) struct TakenSeats {
    pub(super) seats: Vec<InstanceSeat>,
    /// Instances that the version before has, too.
    pub(super) kept: Vec<KeptInstance>,
}

impl SeatsWanted<'_> {
    /// Takes instances over from the version before, as far as they are on the same devices, and makes the others,
    /// which run their warm-up.
    ///
    /// # Errors
    /// When an instance cannot be made or its warm-up fails; the version before is as it was then.
    pub(super) fn seats(
        &self,
        model: &dyn BackendModel,
        before: Option<&LoadedVersion>,
    ) -> Result<TakenSeats, ServingError> {
        let wanted = placements(self.config, self.gpus);
        let kinds: Vec<PlacementKind> = wanted.iter().map(|(place, _)| place.kind).collect();
        let there = before.map(|before| self.of_version(before)).unwrap_or_default();
        let kept = kept_instances(&there.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), &kinds);
        let source = |to: usize| kept.iter().find(|kept| kept.to == to).map(|kept| kept.from);
        let missing: Vec<&InstancePlacement> = wanted
            .iter()
            .enumerate()
            .filter(|(to, _)| source(*to).is_none())
            .map(|(_, (placement, _))| placement)
            .collect();
        let mut made = self.make_all(model, &missing)?.into_iter();
        let mut seats = Vec::with_capacity(wanted.len());
        for (to, (placement, limits)) in wanted.iter().enumerate() {
            let taken = source(to).and_then(|from| there.get(from)).map(|(_, one)| one.clone());
            let new = || made.next().map(SeatedInstance::new);
            let Some(instance) = taken.or_else(new) else { continue };
            let device = match placement.kind {
                PlacementKind::Gpu(number) => ResourceDevice::Gpu(number),
                PlacementKind::Cpu | PlacementKind::Model => ResourceDevice::Host,
            };
            let name = placement.name.clone();
            seats.push(InstanceSeat { name, instance, limits: limits.clone(), device });
        }
        Ok(TakenSeats { seats, kept })
    }

    /// The instances of a version that serves, with their devices.
    fn of_version(&self, before: &LoadedVersion) -> Vec<(PlacementKind, SeatedInstance)> {
        let VersionExecutor::Instances(handle) = &before.executor else { return Vec::new() };
        let places = placements(&before.context.config, self.gpus).into_iter();
        places.map(|(place, _)| place.kind).zip(handle.instances().iter().cloned()).collect()
    }

    fn make_all(
        &self,
        model: &dyn BackendModel,
        places: &[&InstancePlacement],
    ) -> Result<Vec<Box<dyn ModelInstance>>, ServingError> {
        if !model.makes_instances_together() {
            return places.iter().map(|place| self.make(model, place)).collect();
        }
        let mut made = Vec::with_capacity(places.len());
        for part in places.chunks(MAX_MADE_TOGETHER) {
            let results: Vec<_> = std::thread::scope(|scope| {
                let makers: Vec<_> =
                    part.iter().map(|place| scope.spawn(|| self.make(model, place))).collect();
                let ended = || ServingError::internal("the making of an instance panicked");
                makers.into_iter().map(|one| one.join().unwrap_or_else(|_| Err(ended()))).collect()
            });
            made.extend(results);
        }
        made.into_iter().collect()
    }

    fn make(
        &self,
        model: &dyn BackendModel,
        place: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError> {
        let mut instance = model.instance(place)?;
        warmup::run(self.dir, self.config, self.sequences, instance.as_mut())?;
        Ok(instance)
    }
}

/// Which instances go on: each place takes the first one on its kind of device that no other has.
fn kept_instances(there: &[PlacementKind], wanted: &[PlacementKind]) -> Vec<KeptInstance> {
    let mut taken = vec![false; there.len()];
    let mut kept = Vec::new();
    for (to, kind) in wanted.iter().enumerate() {
        let mut free = there.iter().zip(&mut taken).enumerate();
        let found = free.find(|(_, (other, taken))| *other == kind && !**taken);
        if let Some((from, (_, taken))) = found {
            *taken = true;
            kept.push(KeptInstance { from, to });
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_go_on_where_their_devices_are_wanted() {
        use PlacementKind::{Cpu, Gpu, Model};
        let kept = |there: &[PlacementKind], wanted: &[PlacementKind]| -> Vec<[usize; 2]> {
            kept_instances(there, wanted).iter().map(|kept| [kept.from, kept.to]).collect()
        };
        assert_eq!(kept(&[Cpu; 2], &[Cpu; 3]), [[0, 0], [1, 1]]);
        assert_eq!(kept(&[Cpu; 3], &[Cpu; 1]), [[0, 0]]);
        assert_eq!(kept(&[Cpu, Gpu(0), Gpu(1)], &[Gpu(1), Model, Cpu]), [[2, 0], [0, 2]]);
        assert!(kept(&[], &[Cpu]).is_empty() && kept(&[Gpu(0)], &[Gpu(1)]).is_empty());
    }
}
