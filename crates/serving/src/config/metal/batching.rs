//! The rule for `batch_size`: what the configuration says on batches holds, and the field fills what that leaves open.

use super::{MetalConfig, MetalSetting};
use crate::config::ModelConfig;
use crate::config::inference::ModelDynamicBatching;
use crate::config::inference::model_config::SchedulingChoice;
use crate::config::inference::model_sequence_batching::StrategyChoice;
use crate::error::ServingError;

/// Effect of `batch_size` on a model.
#[derive(Debug, PartialEq, Eq)]
enum BatchEffect {
    /// It acts, in these words.
    Acts(String),
    /// The configuration's own sizes hold in its place, for this reason.
    Yields(String),
}

impl MetalConfig {
    /// The largest batch that completion gives a model whose configuration is silent about it.
    pub(crate) fn completed_batch(&self, usual: i32) -> i32 {
        self.batch_size().map_or(usual, |(_, size)| size.max(usual))
    }

    fn batch_size(&self) -> Option<(&MetalSetting, i32)> {
        let setting = self.find("batch_size")?;
        Some((setting, setting.text.parse().ok()?))
    }

    /// Refuses `batch_size` for a model whose requests run through other models.
    ///
    /// # Errors
    /// INVALID_ARG where the model itself asks for it.
    pub(crate) fn refuse_batch(&self, model: &str) -> Result<(), ServingError> {
        let Some((setting, _)) = self.batch_size() else { return Ok(()) };
        let refused = setting.refused("expected none: the steps of an ensemble have their own");
        if setting.is_own() {
            return Err(ServingError::invalid_arg(format!("model '{model}': {refused}")));
        }
        tracing::warn!(%model, "metal_config: {refused}");
        Ok(())
    }

    /// Makes `batch_size` the preferred batch where the configuration names none; call it once the configuration is
    /// completed and before it is normalised. A line in the log says what holds.
    ///
    /// # Errors
    /// INVALID_ARG where the model itself asks for a batch that it cannot have.
    pub(crate) fn prefer_batch(&self, config: &mut ModelConfig) -> Result<(), ServingError> {
        let Some((setting, size)) = self.batch_size() else { return Ok(()) };
        let effect = prefer(config, size);
        let model = &config.name;
        match effect {
            Ok(BatchEffect::Acts(how)) => {
                tracing::info!(%model, place = %setting.place, "metal_config: batch_size {size} {how}");
            }
            Ok(BatchEffect::Yields(why)) => {
                tracing::warn!(%model, "metal_config: {}", setting.refused(&why));
            }
            Err(why) if setting.is_own() => {
                let refused = setting.refused(&why);
                return Err(ServingError::invalid_arg(format!("model '{model}': {refused}")));
            }
            Err(why) => tracing::warn!(%model, "metal_config: {}", setting.refused(&why)),
        }
        Ok(())
    }
}

/// Applies the rule to a model. Its configuration's limits come first, then its preferred sizes, then the size.
///
/// # Errors
/// Says why the model cannot have such a batch.
fn prefer(config: &mut ModelConfig, size: i32) -> Result<BatchEffect, String> {
    let single = || BatchEffect::Acts("puts no requests together".to_owned());
    let most = config.max_batch_size;
    if most == 0 && size == 1 {
        return Ok(single());
    }
    if most == 0 {
        return Err("expected 1: the model has no batches (max_batch_size 0)".to_owned());
    }
    if size > most {
        return Err(format!("expected at most the {most} of max_batch_size"));
    }
    if config.scheduling_choice.is_none() && size > 1 {
        config.scheduling_choice =
            Some(SchedulingChoice::DynamicBatching(ModelDynamicBatching::default()));
    }
    let preferred = match &mut config.scheduling_choice {
        None => return Ok(single()),
        Some(SchedulingChoice::DynamicBatching(batching)) => &mut batching.preferred_batch_size,
        Some(SchedulingChoice::SequenceBatching(batching)) => match &mut batching.strategy_choice {
            Some(StrategyChoice::Oldest(oldest)) => &mut oldest.preferred_batch_size,
            _ => return Err("expected none: each sequence has its place in the batch".to_owned()),
        },
        Some(SchedulingChoice::EnsembleScheduling(_)) => {
            return Err("expected none: requests of the model are not put together".to_owned());
        }
    };
    if preferred.contains(&size) {
        return Ok(BatchEffect::Acts(format!(
            "is one of the model's own preferred_batch_size {preferred:?}"
        )));
    }
    if !preferred.is_empty() {
        let why = format!("but the model's own preferred_batch_size {preferred:?} holds");
        return Ok(BatchEffect::Yields(why));
    }
    preferred.push(size);
    Ok(match size {
        1 => single(),
        _ => BatchEffect::Acts("is the preferred batch".to_owned()),
    })
}

#[cfg(test)]
#[path = "batching_tests.rs"]
mod tests;
