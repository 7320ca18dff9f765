//! Settings of an A/B test, as the parameter `ab_test` of a model's configuration gives them.

use galatea_tensor::OrderedMap;

use serde_json::Value;

use super::PARAMETER;
use super::fields::StrictObject;
use crate::config::ModelConfig;
use crate::config::inference::ModelParameter;
use crate::config::inference::model_config::SchedulingChoice;
use crate::config::metal::{self, MetalConfig, MetalSource};
use crate::error::ServingError;

/// The parameter of models that a variant's `metal_config` becomes.
const METAL: &str = "metal_config";
/// Requests of each variant before the first comparison, where nothing is said.
const USUAL_MIN: u64 = 100;
/// Requests of both after which the test ends, where nothing is said.
const USUAL_MAX: u64 = 100_000;
/// The fewest requests of each on which a comparison may rest.
const LEAST_MIN: u64 = 10;
/// The most requests of a test.
const MOST_MAX: u64 = 1_000_000_000;
/// The longest latency that a rule may name, in milliseconds: an hour.
const MAX_MS: f64 = 3_600_000.0;

/// One of the two variants of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AbVariant {
    /// The one that serves where nothing is decided.
    A,
    /// The one on trial.
    B,
}

impl AbVariant {
    /// Both, in their order.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// Its name: `a` or `b`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }

    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// Its place in arrays of both.
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }
}

/// Attribute of requests by which they stay together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StickyKey {
    /// Nothing: each request is assigned on its own.
    #[default]
    None,
    /// The client's id of the request.
    RequestId,
    /// The id of the sequence (correlation id).
    Correlation,
}

impl StickyKey {
    /// Its name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::RequestId => "request_id",
            Self::Correlation => "correlation",
        }
    }
}

/// Rules by which a test ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StopRules {
    /// Confidence that a decision needs, over all comparisons of the test together.
    pub confidence: f64,
    /// Requests of each variant before the first comparison.
    pub min_requests: u64,
    /// Requests of both variants after which the test ends without a decision.
    pub max_requests: u64,
    /// Share of failures of a variant above which the other one wins at once.
    pub max_error_rate: Option<f64>,
    /// Latency at the 95th percentile, in milliseconds, above which the other variant wins at once.
    pub max_latency_ms: Option<f64>,
}

impl Default for StopRules {
    fn default() -> Self {
        Self {
            confidence: 0.95,
            min_requests: USUAL_MIN,
            max_requests: USUAL_MAX,
            max_error_rate: None,
            max_latency_ms: None,
        }
    }
}

/// A version with changed settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantPlan {
    /// Version.
    pub version: i64,
    /// Parameters of the configuration that it has in place of the model's.
    pub parameters: OrderedMap<String, String>,
    /// Fields of `metal_config` that it has in place of the model's, as JSON.
    pub metal_config: Option<String>,
}

impl VariantPlan {
    /// Whether it is the version as it serves, without an instance of its own.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.parameters.is_empty() && self.metal_config.is_none()
    }

    /// Configuration of the variant, made of the model's.
    #[must_use]
    pub fn config(&self, model: &ModelConfig) -> ModelConfig {
        let mut config = model.clone();
        config.parameters.remove(PARAMETER);
        let set = |config: &mut ModelConfig, name: &str, text: String| {
            let parameter = ModelParameter { string_value: text };
            config.parameters.insert(name.to_owned(), parameter);
        };
        for (name, text) in &self.parameters {
            set(&mut config, name, text.clone());
        }
        if let Some(fields) = &self.metal_config {
            let own = config.parameters.get(METAL).map(|own| own.string_value.clone());
            set(&mut config, METAL, metal::merged(own.as_deref(), fields));
        }
        config
    }

    fn parse(name: &str, value: &Value, latest: i64) -> Result<Self, String> {
        let object = StrictObject::of(name, value, &["version", "parameters", METAL])?;
        let most = i64::MAX.unsigned_abs();
        let version = match object.whole("version", 1, most)? {
            Some(version) => i64::try_from(version).unwrap_or(i64::MAX),
            None => latest,
        };
        let parameters = match object.member("parameters") {
            None => OrderedMap::new(),
            Some(found) => parameters(found).ok_or_else(|| {
                object.wrong("parameters", found, "an object of texts, numbers and switches")
            })?,
        };
        if let Some(taken) =
            [PARAMETER, METAL].into_iter().find(|one| parameters.contains_key(*one))
        {
            return Err(format!("{name}: parameters: '{taken}' found, expected other parameters"));
        }
        let metal_config = match object.member(METAL) {
            None => None,
            Some(fields) => {
                let text = fields.to_string();
                MetalConfig::parse(&text, MetalSource::Parameter)
                    .map_err(|error| format!("{name}: {error}"))?;
                Some(text)
            }
        };
        Ok(Self { version, parameters, metal_config })
    }
}

/// Texts of parameters: numbers and switches as they are written.
fn parameters(value: &Value) -> Option<OrderedMap<String, String>> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let members = value.as_object()?.iter();
    members.map(|(name, value)| Some((name.clone(), text(value)?))).collect()
}

/// Versions of a model, as a plan is checked against them.
#[derive(Clone, Copy, Debug)]
pub struct ModelVersions<'a> {
    /// Versions that have a folder.
    pub present: &'a [i64],
    /// Versions that the version policy chooses.
    pub chosen: &'a [i64],
}

/// An A/B test as the configuration asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct AbTestPlan {
    /// The variants, A first.
    pub variants: [VariantPlan; 2],
    /// Share of requests that B gets, from 0 to 1.
    pub share: f64,
    /// Attribute that keeps requests together.
    pub sticky: StickyKey,
    /// Rules by which it ends.
    pub stop: StopRules,
}

impl AbTestPlan {
    /// Reads the parameter of a configuration; `None` where there is none.
    ///
    /// # Errors
    /// INVALID_ARG with the member, what was found and what was expected; also for versions that do not exist, that
    /// the version policy does not load, and for variants that do not differ.
    pub fn of_model(
        config: &ModelConfig,
        versions: ModelVersions<'_>,
    ) -> Result<Option<Self>, ServingError> {
        let Some(parameter) = config.parameters.get(PARAMETER) else { return Ok(None) };
        let named = |error: String| {
            ServingError::invalid_arg(format!(
                "model '{}': parameter '{PARAMETER}': {error}",
                config.name
            ))
        };
        let plan = Self::parse(&parameter.string_value, config, versions).map_err(named)?;
        Ok(Some(plan))
    }

    fn parse(
        text: &str,
        config: &ModelConfig,
        versions: ModelVersions<'_>,
    ) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
        let object = StrictObject::of("", &value, &["a", "b", "share", "sticky", "stop"])?;
        let latest = versions.chosen.last().copied().unwrap_or(1);
        let nothing = Value::Object(serde_json::Map::new());
        let of = |name: &str, value: &Value| VariantPlan::parse(name, value, latest);
        let second = object
            .member("b")
            .ok_or_else(|| "'b' is missing, expected a version or settings to try".to_owned())?;
        let variants = [of("a", object.member("a").unwrap_or(&nothing))?, of("b", second)?];
        let share = object.number("share", 0.0, 1.0)?.unwrap_or(0.5);
        let sticky = sticky(&object, config)?;
        let stop = match object.member("stop") {
            None => StopRules::default(),
            Some(rules) => stop_rules(rules)?,
        };
        let plan = Self { variants, share, sticky, stop };
        plan.check(config, versions)?;
        Ok(plan)
    }

    fn check(&self, config: &ModelConfig, versions: ModelVersions<'_>) -> Result<(), String> {
        let ensemble =
            matches!(config.scheduling_choice, Some(SchedulingChoice::EnsembleScheduling(_)));
        for (variant, plan) in AbVariant::ALL.iter().zip(&self.variants) {
            let name = variant.name();
            let VariantPlan { version, .. } = plan;
            let listed =
                |all: &[i64]| all.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            if !versions.present.contains(version) {
                return Err(format!(
                    "{name}: version {version} does not exist, expected one of {}",
                    listed(versions.present)
                ));
            }
            if !versions.chosen.contains(version) {
                return Err(format!(
                    "{name}: version {version} is not loaded by version_policy, which chooses {}; \
                     write version_policy {{ specific {{ versions: [{}, {}] }} }} or {{ all {{ }} }}",
                    listed(versions.chosen),
                    self.variants[0].version,
                    self.variants[1].version,
                ));
            }
            if ensemble && !plan.is_plain() {
                return Err(format!(
                    "{name}: settings found, expected a version: an ensemble runs other models"
                ));
            }
            plan.check_accelerator(name, config)?;
        }
        if self.variants[0] == self.variants[1] {
            return Err(format!(
                "a and b are both version {} with the same settings, expected two that differ",
                self.variants[0].version
            ));
        }
        Ok(())
    }
}

impl VariantPlan {
    /// Refuses fields that the execution accelerator `metal` sets too, since that would win.
    fn check_accelerator(&self, name: &str, config: &ModelConfig) -> Result<(), String> {
        let Some(text) = &self.metal_config else { return Ok(()) };
        let own = MetalConfig::parse(text, MetalSource::Parameter)?;
        let wishes =
            config.optimization.as_ref().and_then(|one| one.execution_accelerators.as_ref());
        let wishes = wishes.into_iter().flat_map(|all| &all.gpu_execution_accelerator);
        let mut names = wishes
            .filter(|wish| wish.name == metal::ACCELERATOR)
            .flat_map(|wish| wish.parameters.keys());
        match names.find(|field| own.find(field).is_some()) {
            Some(field) => Err(format!(
                "{name}: {METAL}: '{field}' found, but the execution accelerator '{}' of the model sets it, which wins",
                metal::ACCELERATOR
            )),
            None => Ok(()),
        }
    }
}

fn sticky(object: &StrictObject<'_>, config: &ModelConfig) -> Result<StickyKey, String> {
    let sequences = matches!(config.scheduling_choice, Some(SchedulingChoice::SequenceBatching(_)));
    let Some(value) = object.member("sticky") else {
        return Ok(if sequences { StickyKey::Correlation } else { StickyKey::None });
    };
    let all = [StickyKey::None, StickyKey::RequestId, StickyKey::Correlation];
    let found = all.into_iter().find(|one| value.as_str() == Some(one.name()));
    let found =
        found.ok_or_else(|| object.wrong("sticky", value, "none, request_id or correlation"))?;
    match sequences && found != StickyKey::Correlation {
        true => Err(object.wrong(
            "sticky",
            value,
            "correlation: the requests of a sequence go to the same instance",
        )),
        false => Ok(found),
    }
}

fn stop_rules(value: &Value) -> Result<StopRules, String> {
    let known = ["confidence", "min_requests", "max_requests", "max_error_rate", "max_latency_ms"];
    let object = StrictObject::of("stop", value, &known)?;
    let usual = StopRules::default();
    let confidence = object.number("confidence", 0.5, 0.9999)?.unwrap_or(usual.confidence);
    let min_requests =
        object.whole("min_requests", LEAST_MIN, MOST_MAX / 2)?.unwrap_or(usual.min_requests);
    let least = 2 * min_requests;
    let max_requests =
        object.whole("max_requests", least, MOST_MAX)?.unwrap_or(usual.max_requests.max(least));
    let max_latency_ms = object.number("max_latency_ms", 0.0, MAX_MS)?;
    if let Some(found) = object.member("max_latency_ms").filter(|_| max_latency_ms == Some(0.0)) {
        let expected = format!("milliseconds above 0 and up to {MAX_MS}");
        return Err(object.wrong("max_latency_ms", found, &expected));
    }
    Ok(StopRules {
        confidence,
        min_requests,
        max_requests,
        max_error_rate: object.number("max_error_rate", 0.0, 1.0)?,
        max_latency_ms,
    })
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
