//! The instances of a version: which there are, which go on from the version before, and how the others are made.

use std::path::Path;
use std::sync::Arc;

use super::loaded::{LoadedVersion, VersionExecutor};
use super::warmup::{self, WarmupPlace};
use crate::backend::{BackendModel, InstancePlacement, ModelInstance, PlacementKind};
use crate::config::ModelConfig;
use crate::config::inference::ModelRateLimiter;
use crate::config::inference::model_instance_group::Kind;
use crate::driver::{InstanceSeat, SeatedInstance};
use crate::error::ServingError;
use crate::rate_limiter::ResourceDevice;
use crate::schedule::InstanceMoves;
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

/// The instances of a version: those of its configuration in their order, and behind them those of the version before
/// that only end what was begun on them.
pub(super) struct TakenSeats {
    pub(super) seats: Vec<InstanceSeat>,
    /// Places of the instances of the version before; empty where none goes on.
    pub(super) moves: InstanceMoves,
}

/// Properties that an instance must have to take a place.
#[derive(Clone, Debug, PartialEq)]
struct SeatKind {
    device: PlacementKind,
    limits: Option<ModelRateLimiter>,
}

/// An instance of the version before.
struct SeatBefore {
    /// Its place there.
    at: usize,
    name: String,
    /// Its kind; none where it leaves already.
    kind: Option<SeatKind>,
    instance: SeatedInstance,
}

/// An instance that takes a place in the new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeptInstance {
    /// Number among the instances of the version before.
    from: usize,
    /// Place in the new version.
    to: usize,
}

impl SeatsWanted<'_> {
    /// Takes instances over from the version before, as far as they are of the kinds that are wanted, and makes the
    /// others, which run their warm-up.
    ///
    /// # Errors
    /// When an instance cannot be made or its warm-up fails; the version before is as it was then.
    pub(super) fn seats(
        &self,
        model: &dyn BackendModel,
        before: Option<&LoadedVersion>,
    ) -> Result<TakenSeats, ServingError> {
        let wanted = placements(self.config, self.gpus);
        let there = before.map(|before| self.of_version(before)).unwrap_or_default();
        let kinds: Vec<SeatKind> = wanted.iter().map(SeatKind::of).collect();
        let known: Vec<Option<SeatKind>> = there.iter().map(|one| one.kind.clone()).collect();
        let kept = kept_instances(&known, &kinds);
        let source = |to: usize| kept.iter().find(|kept| kept.to == to).map(|kept| kept.from);
        let missing: Vec<&InstancePlacement> = wanted
            .iter()
            .enumerate()
            .filter(|(to, _)| source(*to).is_none())
            .map(|(_, (placement, _))| placement)
            .collect();
        let mut made = self.make_all(model, &missing)?.into_iter();
        let mut seats = Vec::with_capacity(wanted.len());
        let mut moves = InstanceMoves { seated: wanted.len(), ..InstanceMoves::default() };
        for (to, (placement, _)) in wanted.into_iter().enumerate() {
            let taken = source(to).and_then(|from| there.get(from));
            taken.iter().for_each(|one| note(&mut moves, one.at, to));
            let new = || made.next().map(SeatedInstance::new);
            let Some(instance) = taken.map(|one| one.instance.clone()).or_else(new) else {
                continue;
            };
            let kind = kinds.get(to).cloned();
            seats.push(seat(placement.name, instance, kind));
        }
        let stays = |from: usize| kept.iter().any(|kept| kept.from == from);
        for (_, one) in there.into_iter().enumerate().filter(|(from, _)| !stays(*from)) {
            note(&mut moves, one.at, seats.len());
            seats.push(leaving_seat(one));
        }
        moves.instances = seats.len();
        Ok(TakenSeats { seats, moves })
    }

    /// The instances of a version that serves.
    fn of_version(&self, before: &LoadedVersion) -> Vec<SeatBefore> {
        let VersionExecutor::Instances(handle) = &before.executor else { return Vec::new() };
        let places = placements(&before.context.config, self.gpus);
        let staying = places.into_iter().enumerate().map(|(at, place)| {
            let kind = Some(SeatKind::of(&place));
            (at, place.0.name, kind)
        });
        let leaving = handle.leaving().into_iter();
        let leaving = leaving.map(|at| (at, format!("{}_leaving_{at}", self.config.name), None));
        let with_instance = |(at, name, kind): (usize, String, Option<SeatKind>)| {
            let instance = handle.instances().get(at)?.clone();
            Some(SeatBefore { at, name, kind, instance })
        };
        staying.chain(leaving).filter_map(with_instance).collect()
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
        let wanted = WarmupPlace {
            model_dir: self.dir,
            config: self.config,
            sequences: self.sequences,
            instance: &place.name,
        };
        warmup::run(&wanted, instance.as_mut())?;
        Ok(instance)
    }
}

impl SeatKind {
    fn of(place: &(InstancePlacement, Option<ModelRateLimiter>)) -> Self {
        Self { device: place.0.kind, limits: place.1.clone() }
    }
}

fn leaving_seat(one: SeatBefore) -> InstanceSeat {
    InstanceSeat { leaves: true, ..seat(one.name, one.instance, one.kind) }
}

fn seat(name: String, instance: SeatedInstance, kind: Option<SeatKind>) -> InstanceSeat {
    let device = match kind.as_ref().map(|kind| kind.device) {
        Some(PlacementKind::Gpu(number)) => ResourceDevice::Gpu(number),
        Some(PlacementKind::Cpu | PlacementKind::Model) | None => ResourceDevice::Host,
    };
    let limits = kind.and_then(|kind| kind.limits);
    InstanceSeat { name, instance, limits, device, leaves: false }
}

/// Notes where an instance of the version before is now.
fn note(moves: &mut InstanceMoves, from: usize, to: usize) {
    if moves.places.len() <= from {
        moves.places.resize(from + 1, None);
    }
    if let Some(place) = moves.places.get_mut(from) {
        *place = Some(to);
    }
}

/// Instances that go on: each place takes the first one of its kind that no other has.
fn kept_instances(there: &[Option<SeatKind>], wanted: &[SeatKind]) -> Vec<KeptInstance> {
    let mut taken = vec![false; there.len()];
    let mut kept = Vec::new();
    for (to, kind) in wanted.iter().enumerate() {
        let mut free = there.iter().zip(&mut taken).enumerate();
        let found = free.find(|(_, (other, taken))| other.as_ref() == Some(kind) && !**taken);
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
    use crate::config::inference::model_rate_limiter::Resource;

    fn kind(device: PlacementKind) -> SeatKind {
        SeatKind { device, limits: None }
    }

    #[test]
    fn instances_go_on_where_their_devices_are_wanted() {
        use PlacementKind::{Cpu, Gpu, Model};
        let kept = |there: &[PlacementKind], wanted: &[PlacementKind]| -> Vec<[usize; 2]> {
            let there: Vec<_> = there.iter().map(|&device| Some(kind(device))).collect();
            let wanted: Vec<_> = wanted.iter().map(|&device| kind(device)).collect();
            kept_instances(&there, &wanted).iter().map(|kept| [kept.from, kept.to]).collect()
        };
        assert_eq!(kept(&[Cpu; 2], &[Cpu; 3]), [[0, 0], [1, 1]]);
        assert_eq!(kept(&[Cpu; 3], &[Cpu; 1]), [[0, 0]]);
        assert_eq!(kept(&[Cpu, Gpu(0), Gpu(1)], &[Gpu(1), Model, Cpu]), [[2, 0], [0, 2]]);
        assert!(kept(&[], &[Cpu]).is_empty() && kept(&[Gpu(0)], &[Gpu(1)]).is_empty());
    }

    #[test]
    fn instances_that_need_other_resources_or_leave_already_do_not_go_on() {
        let with = |count| {
            let resource = Resource { name: "R".to_owned(), count, ..Resource::default() };
            let limits = ModelRateLimiter { resources: vec![resource], priority: 0 };
            SeatKind { limits: Some(limits), ..kind(PlacementKind::Cpu) }
        };
        assert_eq!(kept_instances(&[Some(with(2))], &[with(2)]), [KeptInstance { from: 0, to: 0 }]);
        assert!(kept_instances(&[Some(with(2))], &[with(8)]).is_empty());
        assert!(kept_instances(&[None], &[kind(PlacementKind::Cpu)]).is_empty());
    }

    #[test]
    fn places_of_instances_are_noted_whatever_their_order() {
        let mut moves = InstanceMoves::default();
        note(&mut moves, 2, 0);
        note(&mut moves, 0, 5);
        assert_eq!(moves.places, [Some(5), None, Some(0)]);
        assert_eq!((moves.to(2), moves.to(1), moves.to(9)), (Some(0), None, None));
    }
}
