//! The `batch_size` of a model.

use super::{MetalConfig, MetalSetting};
use crate::config::ModelConfig;
use crate::config::inference::ModelDynamicBatching;
use crate::config::inference::model_config::SchedulingChoice;
use crate::config::inference::model_sequence_batching::StrategyChoice;
use crate::error::ServingError;

impl MetalConfig {
    /// The largest batch that completion gives a model whose configuration is silent about it.
    pub(crate) fn completed_batch(&self, usual: i32) -> i32 {
        self.batch_size().map_or(usual, |(_, size)| size.max(usual))
    }

    fn batch_size(&self) -> Option<(&MetalSetting, i32)> {
        let setting = self.find("batch_size")?;
        Some((setting, setting.text.parse().ok()?))
    }

    /// Makes `batch_size` the preferred batch where the configuration names none; call it once the configuration is
    /// completed and before it is normalised.
    ///
    /// # Errors
    /// INVALID_ARG where the model itself asks for a batch that it cannot have.
    pub(crate) fn prefer_batch(&self, config: &mut ModelConfig) -> Result<(), ServingError> {
        let Some((setting, size)) = self.batch_size() else { return Ok(()) };
        match prefer(config, size) {
            Ok(()) => {
                let model = &config.name;
                tracing::info!(%model, place = %setting.place, "metal_config: batch_size {size} is the preferred batch");
                Ok(())
            }
            Err(_) if size == 1 => Ok(()),
            Err(why) if setting.is_own() => {
                let refused = setting.refused(&why);
                Err(ServingError::invalid_arg(format!("model '{}': {refused}", config.name)))
            }
            Err(why) => {
                tracing::warn!(model = %config.name, "metal_config: {}", setting.refused(&why));
                Ok(())
            }
        }
    }
}

/// Makes a size the preferred batch of a model.
///
/// # Errors
/// Why it cannot be.
fn prefer(config: &mut ModelConfig, size: i32) -> Result<(), String> {
    let most = config.max_batch_size;
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
        Some(SchedulingChoice::DynamicBatching(batching)) => &mut batching.preferred_batch_size,
        Some(SchedulingChoice::SequenceBatching(batching)) => match &mut batching.strategy_choice {
            Some(StrategyChoice::Oldest(oldest)) => &mut oldest.preferred_batch_size,
            _ => return Err("expected none: each sequence has its place in the batch".to_owned()),
        },
        _ => return Err("expected 1: requests of the model are not put together".to_owned()),
    };
    if preferred.is_empty() {
        preferred.push(size);
    } else if !preferred.contains(&size) {
        return Err(format!("expected one of preferred_batch_size {preferred:?}"));
    }
    Ok(())
}
