//! Models with wishes of their own on power: each has a gate, which a governor sets by what the model's runs make the
//! machine draw.

use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use galatea_apple::qos::ThreadQos;
use galatea_coreml as coreml;
use galatea_providers::cpu;
use galatea_runtime::power::{
    ModelAllowance, ModelGovernor, PaceSource, PowerDraw, PowerLimit, PowerSettings, SensorReading,
    Throttle, attributed,
};
use galatea_serving::backend::graph::ModelPower;
use galatea_serving::config::MetalConfig;

use super::PowerControl;

/// Time that runs took on each unit.
type UnitTimes = Vec<(String, Duration)>;

/// A model with wishes.
#[derive(Debug)]
pub(super) struct PowerBudgetModel {
    name: String,
    settings: PowerSettings,
    pace: Weak<Throttle>,
    governor: ModelGovernor,
    /// Times that its runs had taken at the last look.
    spent: UnitTimes,
    report: Option<ModelPowerReport>,
}

/// Power that a model draws, and its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelPowerReport {
    /// The model.
    pub name: String,
    /// Watts that it is charged with.
    pub watts: f64,
    /// Watts that it may draw, where it has a target.
    pub target: Option<f64>,
    /// The share of its full pace that it may have.
    pub pace: f64,
}

impl PowerControl {
    /// Returns the models that are still loaded.
    fn loaded(&self) -> MutexGuard<'_, Vec<PowerBudgetModel>> {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        models.retain(|model| model.pace.strong_count() > 0);
        models
    }

    /// Makes the pace of a model's runs from its `metal_config`, if that has settings of power. Versions of a
    /// model with the same settings share one pace. Settings that cannot hold are logged.
    ///
    /// # Errors
    /// Names the field, what was found and what was expected.
    pub fn of_model(&self, name: &str, metal: &MetalConfig) -> Result<ModelPower, String> {
        let server = self.settings();
        let mut settings = PowerSettings { target_watts: None, ..server };
        let mut wishes = Vec::new();
        for wish in metal.power() {
            settings.set(wish.field, &wish.text)?;
            let refused = match wish.field {
                "enable_thermal_protection"
                    if server.thermal_protection && !settings.thermal_protection =>
                {
                    Some("but the server protects the machine: --enable-thermal-protection=false")
                }
                "adaptive_frequency"
                    if settings.adaptive_frequency && ThreadQos::current().is_err() =>
                {
                    Some("but this system has no classes of threads, by which clocks are chosen")
                }
                "efficiency_core_offload"
                    if settings.efficiency_core_offload && ThreadQos::current().is_err() =>
                {
                    Some("but this system runs all that an instance does on one class of threads")
                }
                _ => None,
            };
            match refused {
                Some(why) if wish.is_own() && wish.field == "enable_thermal_protection" => {
                    return Err(wish.refused(why));
                }
                Some(why) => tracing::warn!(model = %name, "metal_config: {}", wish.refused(why)),
                None => wishes.push(format!("{} {}", wish.field, wish.text)),
            }
        }
        if !wishes.is_empty() {
            tracing::info!(model = %name, "metal_config: {}", wishes.join("; "));
        }
        let asked = metal.power().any(|wish| wish.field == "efficiency_core_offload");
        let aside: Option<fn()> = (asked && settings.efficiency_core_offload).then_some(aside);
        let paced = metal.power().any(|wish| wish.field != "efficiency_core_offload");
        let own = paced.then(|| self.pace_of(name, settings));
        Ok(ModelPower { pace: PaceSource { own, all: Some(Arc::clone(&self.pace)) }, aside })
    }

    /// Makes the pace of a checkpoint as [`of_model`] does. Its engine has one thread, which waits for kernels
    /// and hands over the next ones.
    ///
    /// # Errors
    /// Fails as [`of_model`] does.
    pub fn of_checkpoint(&self, name: &str, metal: &MetalConfig) -> Result<PaceSource, String> {
        const OFFLOAD: &str = "efficiency_core_offload";
        if let Some(wish) = metal.find(OFFLOAD).filter(|wish| wish.text == "true") {
            let why = "but what an engine does between two steps everybody waits for";
            tracing::warn!(model = %name, "metal_config: {}", wish.refused(why));
        }
        Ok(self.of_model(name, &metal.without(OFFLOAD))?.pace)
    }

    /// The pace of a model with these settings.
    fn pace_of(&self, name: &str, settings: PowerSettings) -> Arc<Throttle> {
        let mut models = self.loaded();
        let same = models.iter().find(|model| model.name == name && model.settings == settings);
        if let Some(pace) = same.and_then(|model| model.pace.upgrade()) {
            return pace;
        }
        let pace = Arc::new(Throttle::new());
        // Twice as careful would be too slow.
        let guarded = self.settings().thermal_protection;
        let own = PowerSettings {
            thermal_protection: settings.thermal_protection && !guarded,
            ..settings
        };
        models.push(PowerBudgetModel {
            name: name.to_owned(),
            settings,
            pace: Arc::downgrade(&pace),
            governor: ModelGovernor::new(own),
            spent: Vec::new(),
            report: None,
        });
        pace
    }

    /// Guards models that ask for it against heat where the server does not any more, or leaves that to the server.
    pub(super) fn guard_models(&self, guarded: bool) {
        for model in self.loaded().iter_mut() {
            let own = PowerSettings {
                thermal_protection: model.settings.thermal_protection && !guarded,
                ..model.settings
            };
            model.governor = ModelGovernor::new(own);
        }
    }

    /// Reports the draw and the limits of models; those without a sensor are left out.
    #[must_use]
    pub fn reports(&self) -> Vec<ModelPowerReport> {
        self.loaded().iter().filter_map(|model| model.report.clone()).collect()
    }

    /// Says of every model with a target that nobody holds it: the machine has no sensors.
    pub(super) fn tell_without_sensors(&self) {
        for model in self.loaded().iter() {
            if let Some(watts) = model.settings.target_watts {
                not_held(&model.name, watts);
            }
        }
    }

    /// Lets all models run at their full pace: nobody watches any more.
    pub(super) fn release(&self) {
        let paces =
            self.loaded().iter().filter_map(|model| model.pace.upgrade()).collect::<Vec<_>>();
        paces.iter().for_each(|pace| pace.gate().set_pace(1.0));
    }
}

/// Leaves the fast cores to kernels: what an instance does beside them needs none. Kernels raise the class of the
/// thread while they run.
fn aside() {
    // Where the system takes no such wish the thread runs as any other.
    let _ = ThreadQos::Utility.set();
}

/// Returns the watts of a device, by the name of its provider.
fn part(unit: &str, draw: &PowerDraw) -> Option<f64> {
    match unit {
        cpu::NAME => draw.cpu,
        "gpu" => draw.gpu,
        coreml::NAME => draw.engine,
        _ => None,
    }
}

/// Returns the times spent since `before`, and stores the present times there.
fn since(before: &mut UnitTimes, now: UnitTimes) -> UnitTimes {
    let old = std::mem::replace(before, now);
    let past = |unit: &str| old.iter().find(|(name, _)| name == unit).map(|(_, time)| *time);
    let now = before.iter();
    now.map(|(unit, time)| (unit.clone(), time.saturating_sub(past(unit).unwrap_or_default())))
        .collect()
}

/// Sets the paces of models, once for every reading.
#[derive(Debug, Default)]
pub(super) struct PowerMeter {
    spent: UnitTimes,
    /// Models of which it was said that nobody holds their target.
    told: Vec<String>,
}

impl PowerMeter {
    /// Takes note of a reading that says what was drawn in the time before it.
    pub(super) fn note(
        &mut self,
        control: &PowerControl,
        elapsed: Duration,
        reading: &SensorReading,
    ) {
        let all = since(&mut self.spent, control.pace.spent());
        for model in control.loaded().iter_mut() {
            let Some(pace) = model.pace.upgrade() else { continue };
            let own = since(&mut model.spent, pace.spent());
            let watts = attributed(&own, &all, &reading.draw, part);
            let used = pace.gate().used();
            let allowed = model.governor.step(elapsed, watts, reading.thermal, used);
            pace.gate().set_pace(allowed.pace);
            pace.set_class(allowed.threads);
            self.report(model, watts, &allowed);
        }
    }

    fn report(
        &mut self,
        model: &mut PowerBudgetModel,
        watts: Option<f64>,
        allowed: &ModelAllowance,
    ) {
        let name = &model.name;
        let target = model.settings.target_watts;
        let first = !self.told.contains(name);
        if let (Some(target), true) =
            (target, first && (watts.is_none() || allowed.limit == PowerLimit::Target))
        {
            match watts {
                Some(_) => {
                    tracing::info!(model = %name, "its runs are slowed down to hold {target} W")
                }
                None => not_held(name, target),
            }
            self.told.push(name.clone());
        }
        let name = name.clone();
        model.report =
            watts.map(|watts| ModelPowerReport { name, watts, target, pace: allowed.pace });
    }
}

fn not_held(name: &str, watts: f64) {
    tracing::warn!(
        model = %name,
        "metal_config: power_target_watts {watts} found, but this machine does not say what it draws"
    );
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use galatea_serving::config::metal::MetalSource;

    use super::*;

    fn metal(text: &str) -> MetalConfig {
        MetalConfig::parse(text, MetalSource::Parameter).unwrap()
    }

    #[test]
    fn a_models_target_sets_its_own_pace_and_no_other() {
        let control = PowerControl::new(Arc::default());
        let power = control.of_model("thrifty", &metal(r#"{"power_target_watts": 3}"#)).unwrap();
        let own = power.pace.own.clone().unwrap();
        let again = control.of_model("thrifty", &metal(r#"{"power_target_watts": 3}"#)).unwrap();
        assert!(Arc::ptr_eq(&own, &again.pace.own.unwrap()), "versions share a pace");
        let other = control.of_model("fast", &metal(r#"{"power_target_watts": 900}"#)).unwrap();
        let mut meter = PowerMeter::default();
        let draw = PowerDraw { package: Some(12.0), ..PowerDraw::default() };
        let reading = SensorReading { draw, ..SensorReading::default() };
        // All runs of this time are the model's.
        let spent = power.pace.counting("cpu");
        for _ in 0..5 {
            let begin = Instant::now();
            let permit = own.gate().enter();
            std::thread::sleep(Duration::from_millis(2));
            drop(permit);
            spent.since(begin);
            meter.note(&control, Duration::from_secs(1), &reading);
        }
        let all = control.reports();
        let mine = all.iter().find(|report| report.name == "thrifty").unwrap();
        assert!(mine.pace < 0.6 && mine.watts > 1.0 && mine.target == Some(3.0), "{mine:?}");
        let free = all.iter().find(|report| report.name == "fast").unwrap();
        assert!((free.pace - 1.0).abs() < 1e-9 || free.watts < 1.0, "{free:?}");
        drop(other);
    }

    #[test]
    fn a_model_cannot_take_the_machines_protection_away() {
        let control = PowerControl::new(Arc::default());
        let error =
            control.of_model("m", &metal(r#"{"enable_thermal_protection": false}"#)).unwrap_err();
        assert!(error.contains("enable_thermal_protection false found, but the server"), "{error}");
        let kept = control.of_model("m", &metal(r#"{"enable_thermal_protection": true}"#)).unwrap();
        assert!(kept.pace.own.is_some() && kept.aside.is_none());
        let aside = control.of_model("m", &metal(r#"{"efficiency_core_offload": true}"#)).unwrap();
        assert!(aside.pace.own.is_none() && aside.aside.is_some());
    }
}
