//! A/B tests of models that serve: their variants, which are versions or versions with other settings.

use std::sync::Arc;

use super::Core;
use super::ab_variants::{LiveAbTest, PlannedAbTest};
use super::change::{ChangeExtent, ModelChange};
use super::load::drain;
use super::load_record::PolledModel;
use super::models::{LoadEpoch, parse_version};
use crate::ab_test::{AbReport, AbTest, AbTestPlan, AbVariant, VariantPlan, check_compatible};
use crate::config::inference::model_config::SchedulingChoice;
use crate::error::ServingError;
use crate::repository::ModelId;

impl Core {
    /// The A/B test of a model, as it stands.
    ///
    /// # Errors
    /// Fails when the model is unknown or not ready, and when it has no test.
    pub fn ab_report(&self, name: &str) -> Result<AbReport, ServingError> {
        let wanted = parse_version("")?;
        let models = self.models();
        let loaded = models.find(name, wanted)?;
        match models.ab_test(&loaded.id) {
            Some(live) => Ok(live.test.report()),
            None => Err(ServingError::not_found(format!(
                "model '{name}' has no A/B test; the parameter 'ab_test' of its configuration begins one"
            ))),
        }
    }

    /// All A/B tests, as they stand.
    #[must_use]
    pub fn ab_reports(&self) -> Vec<AbReport> {
        self.models().ab_tests().map(|live| live.test.report()).collect()
    }

    /// Makes the variants of a new test that are no plain versions; nothing where the test that runs goes on, or there
    /// is none. Their requests count in the statistics of their version.
    ///
    /// # Errors
    /// Fails when a variant cannot be loaded.
    pub(super) fn plan_ab_test(
        &self,
        polled: &mut PolledModel,
        plan: Option<AbTestPlan>,
        change: &ModelChange,
    ) -> Result<Option<PlannedAbTest>, ServingError> {
        let Some(plan) = plan else { return Ok(None) };
        if self.continues(polled, &plan, change) {
            return Ok(None);
        }
        let mut own = [None, None];
        for (variant, place) in AbVariant::ALL.into_iter().zip(&mut own) {
            let settings = &plan.variants[variant.index()];
            let version = settings.version;
            if settings.is_plain() {
                continue;
            }
            let counters = match self.serving(&polled.id, version) {
                Some(serving)
                    if change.of(version, &serving.context.config) != ChangeExtent::Model =>
                {
                    Arc::clone(&serving.context.statistics)
                }
                _ => polled.counters.get(&version).cloned().unwrap_or_default(),
            };
            polled.counters.insert(version, counters);
            let changed = PolledModel {
                id: polled.id.clone(),
                dir: polled.dir.clone(),
                config: settings.config(&polled.config),
                versions: vec![version],
                stamps: polled.stamps.clone(),
                counters: polled.counters.clone(),
                before: galatea_tensor::OrderedMap::new(),
            };
            match self.build_version(&changed, version) {
                Ok(loaded) => *place = Some(Arc::new(loaded)),
                Err(error) => {
                    PlannedAbTest { plan, own }.drop_instances();
                    let name = variant.name();
                    return Err(ServingError::new(
                        error.code,
                        format!("parameter 'ab_test': {name}: {}", error.message),
                    ));
                }
            }
        }
        Ok(Some(PlannedAbTest { plan, own }))
    }

    /// Whether the test that runs is the one that is asked for, over versions that stay as they are.
    fn continues(&self, polled: &PolledModel, plan: &AbTestPlan, change: &ModelChange) -> bool {
        let models = self.models();
        let same = models.ab_test(&polled.id).is_some_and(|live| live.test.plan() == plan);
        let stays = |variant: &VariantPlan| {
            let mut ready = models.ready_of(&polled.id);
            ready.find(|(number, _)| *number == variant.version).is_some_and(|(number, serving)| {
                change.of(number, &serving.context.config) == ChangeExtent::Nothing
            })
        };
        same && plan.variants.iter().all(stays)
    }

    /// Begins a test over versions that serve, in the place of the one that ran.
    ///
    /// # Errors
    /// Fails when its variants do not take and give the same tensors. No test runs then.
    pub(super) fn begin_ab_test(
        &self,
        id: &ModelId,
        epoch: LoadEpoch,
        planned: PlannedAbTest,
    ) -> Result<(), ServingError> {
        let result = self.live(id, &planned);
        let live = match result {
            Ok(live) => live,
            Err(error) => {
                planned.drop_instances();
                self.end_ab_test(id, epoch);
                return Err(error);
            }
        };
        let old = self.write_models(|models| models.set_ab_test(id, epoch, Some(live)));
        old.into_iter().for_each(|old| drain(old, || {}));
        Ok(())
    }

    fn live(&self, id: &ModelId, planned: &PlannedAbTest) -> Result<LiveAbTest, ServingError> {
        let PlannedAbTest { plan, own } = planned;
        let side = |variant: AbVariant| {
            let version = plan.variants[variant.index()].version;
            let own = own[variant.index()].clone();
            own.or_else(|| self.serving(id, version)).ok_or_else(|| {
                let text = format!("version {version} of model '{id}' has left the service");
                ServingError::unavailable(text)
            })
        };
        let sides = [side(AbVariant::A)?, side(AbVariant::B)?];
        let [a, b] = sides.each_ref().map(|side| &side.context.config);
        check_compatible(a, b).map_err(|error| {
            ServingError::invalid_arg(format!("model '{id}': parameter 'ab_test': {error}"))
        })?;
        let sequences = matches!(a.scheduling_choice, Some(SchedulingChoice::SequenceBatching(_)));
        let test = Arc::new(AbTest::new(&id.to_string(), plan.clone(), sequences));
        let own = own.iter().flatten().cloned().collect();
        Ok(LiveAbTest { test, sides, own })
    }

    /// Ends the test of a model that asks for none any more.
    pub(super) fn end_ab_test(&self, id: &ModelId, epoch: LoadEpoch) {
        let old = self.write_models(|models| models.set_ab_test(id, epoch, None));
        old.into_iter().for_each(|old| drain(old, || {}));
    }
}
