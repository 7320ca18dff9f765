//! Filling in what Triton shows for settings that a configuration leaves out.

use super::ModelConfig;
use super::inference::model_config::SchedulingChoice;
use super::inference::model_instance_group::Kind;
use super::inference::model_optimization_policy::PinnedMemoryBuffer;
use super::inference::model_sequence_batching::{StrategyChoice, StrategyDirect};
use super::inference::model_version_policy::{Latest, PolicyChoice};
use super::inference::{ModelInstanceGroup, ModelTransactionPolicy, ModelVersionPolicy};

/// Idle time after which a sequence ends, where the configuration gives none.
const DEFAULT_SEQUENCE_IDLE_US: u64 = 1_000_000;

/// The platform of ensembles, which have no backend.
pub(super) const ENSEMBLE: &str = "ensemble";

/// Names that a backend goes by in configurations.
#[derive(Clone, Copy, Debug)]
pub struct BackendNames<'a> {
    /// Name of the backend.
    pub backend: &'a str,
    /// Name of its models' form.
    pub platform: &'a str,
    /// Name of its models' file, where the configuration gives none.
    pub filename: &'a str,
}

/// Fills in whichever of backend, platform and file name is missing, as far as this backend is meant.
pub fn fill_backend(config: &mut ModelConfig, names: BackendNames<'_>) {
    let by_platform = !config.platform.is_empty() && config.platform == names.platform;
    // A name may stand for several backends, which their platforms tell apart.
    let other = !config.platform.is_empty() && !names.platform.is_empty() && !by_platform;
    let by_name = config.backend == names.backend && !other;
    let meant = if config.backend.is_empty() { by_platform } else { by_name };
    if !meant {
        return;
    }
    if config.backend.is_empty() {
        names.backend.clone_into(&mut config.backend);
    }
    if config.platform.is_empty() {
        names.platform.clone_into(&mut config.platform);
    }
    if config.default_model_filename.is_empty() {
        names.filename.clone_into(&mut config.default_model_filename);
    }
}

/// Fills in everything but instance groups. Call it after the configuration was completed from the model.
pub fn normalise(config: &mut ModelConfig) {
    let policy = config.version_policy.get_or_insert_with(ModelVersionPolicy::default);
    policy.policy_choice.get_or_insert(PolicyChoice::Latest(Latest { num_versions: 1 }));
    let max_batch_size = config.max_batch_size;
    let fill_preferred = |preferred: &mut Vec<i32>| {
        if preferred.is_empty() && max_batch_size > 0 {
            preferred.push(max_batch_size);
        }
    };
    match &mut config.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(batching)) => {
            fill_preferred(&mut batching.preferred_batch_size)
        }
        Some(SchedulingChoice::SequenceBatching(batching)) => {
            if batching.max_sequence_idle_microseconds == 0 {
                batching.max_sequence_idle_microseconds = DEFAULT_SEQUENCE_IDLE_US;
            }
            let direct = StrategyChoice::Direct(StrategyDirect::default());
            if let StrategyChoice::Oldest(oldest) = batching.strategy_choice.get_or_insert(direct) {
                fill_preferred(&mut oldest.preferred_batch_size);
            }
        }
        Some(SchedulingChoice::EnsembleScheduling(_)) => {
            config
                .model_transaction_policy
                .get_or_insert(ModelTransactionPolicy { decoupled: false });
            return;
        }
        None => {}
    }
    if config.platform != ENSEMBLE {
        let optimization = config.optimization.get_or_insert_with(Default::default);
        optimization.input_pinned_memory.get_or_insert(PinnedMemoryBuffer { enable: true });
        optimization.output_pinned_memory.get_or_insert(PinnedMemoryBuffer { enable: true });
    }
}

/// Defaults of instance groups that set nothing.
#[derive(Clone, Copy, Debug)]
pub struct InstanceDefaults {
    /// GPUs that instances may use.
    pub gpus: u32,
    /// Instances of a group on the processor.
    pub cpu_count: i32,
    /// Instances of a group on a GPU.
    pub gpu_count: i32,
}

/// Names the instance groups, decides their devices and counts.
pub fn normalise_instances(config: &mut ModelConfig, defaults: InstanceDefaults) {
    if config.platform == ENSEMBLE {
        return;
    }
    if config.instance_group.is_empty() {
        config
            .instance_group
            .push(ModelInstanceGroup { name: config.name.clone(), ..Default::default() });
    }
    for (at, group) in config.instance_group.iter_mut().enumerate() {
        if group.name.is_empty() {
            group.name = format!("{}_{at}", config.name);
        }
        if group.kind() == Kind::Auto {
            let here = |&gpu: &i32| u32::try_from(gpu).is_ok_and(|gpu| gpu < defaults.gpus);
            // As the field's own description says: where one of those listed is missing, the processor runs it.
            if defaults.gpus > 0 && group.gpus.iter().all(here) {
                group.set_kind(Kind::Gpu);
            } else {
                group.set_kind(Kind::Cpu);
                group.gpus.clear();
            }
        }
        if group.count < 1 {
            group.count = match group.kind() {
                Kind::Cpu => defaults.cpu_count,
                Kind::Gpu => defaults.gpu_count,
                Kind::Auto | Kind::Model => 1,
            };
        }
    }
}
