//! The rules that a configuration must keep, with Triton's texts. Every function reports all problems together.

use std::path::{Component, Path};

use galatea_tensor::{OrderedMap, OrderedSet};

use super::inference::model_config::SchedulingChoice;
use super::inference::model_instance_group::Kind as GroupKind;
use super::inference::model_queue_policy::TimeoutAction;
use super::inference::model_sequence_batching::control::Kind as ControlKind;
use super::inference::model_sequence_batching::{Control, StrategyChoice};
use super::inference::{
    ModelDynamicBatching, ModelEnsembling, ModelInstanceGroup, ModelSequenceBatching,
    ModelTensorReshape, model_input,
};
use super::normalise::ENSEMBLE;
use super::{ModelConfig, datatype, inference};
use crate::error::ServingError;

fn report(problems: Vec<String>) -> Result<(), ServingError> {
    if problems.is_empty() { Ok(()) } else { Err(ServingError::invalid_arg(problems.join("; "))) }
}

/// Checks everything but tensors and instance groups; a model that fails here is not loaded at all.
///
/// # Errors
/// INVALID_ARG with all problems.
pub fn validate(config: &ModelConfig) -> Result<(), ServingError> {
    let name = &config.name;
    let mut problems = Vec::new();
    if name.is_empty() {
        problems.push("model configuration must specify 'name'".to_owned());
    }
    if config.platform.is_empty() && config.backend.is_empty() {
        problems.push(format!("must specify 'platform' or 'backend' for '{name}'"));
    }
    if config.max_batch_size < 0 {
        problems.push(format!("'max_batch_size' must be non-negative value for {name}"));
    }
    let file = &config.default_model_filename;
    if !file.is_empty() && !stays_in_folder(file) {
        problems.push(format!(
            "'default_model_filename' must name a file in the version folder for {name}, found '{file}'"
        ));
    }
    warm_ups(config, &mut problems);
    match &config.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(batching)) => {
            dynamic(config, batching, &mut problems)
        }
        Some(SchedulingChoice::SequenceBatching(batching)) => {
            sequence(config, batching, &mut problems)
        }
        Some(SchedulingChoice::EnsembleScheduling(ensemble)) => {
            ensembling(config, ensemble, &mut problems)
        }
        None if config.platform == ENSEMBLE => {
            problems.push(format!(
                "ensemble scheduling must be set for ensemble {name} whose platform is ensemble"
            ));
        }
        None => {}
    }
    response_cache(config, &mut problems);
    report(problems)
}

/// The most runs of a warm-up sample, and the most requests of a batch of one.
const MAX_WARM_UPS: u32 = 65_536;

/// Checks that warm-up ends.
fn warm_ups(config: &ModelConfig, problems: &mut Vec<String>) {
    let name = &config.name;
    for sample in &config.model_warmup {
        for (field, found) in [("count", sample.count), ("batch_size", sample.batch_size)] {
            if found > MAX_WARM_UPS {
                problems.push(format!(
                    "'{field}' of warmup sample '{}' must be <= {MAX_WARM_UPS} for {name}, found {found}",
                    sample.name
                ));
            }
        }
    }
}

/// Returns whether a path that a configuration gives names something in a folder and not beside it.
fn stays_in_folder(name: &str) -> bool {
    let stays = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    !name.contains('\0') && Path::new(name).components().all(stays)
}

fn preferred(sizes: &[i32], kind: &str, config: &ModelConfig, problems: &mut Vec<String>) {
    let name = &config.name;
    if sizes.iter().any(|&size| size <= 0) {
        problems.push(format!("{kind} must be positive for {name}"));
    }
    if sizes.iter().any(|&size| size > config.max_batch_size) {
        problems.push(format!("{kind} must be <= max batch size for {name}"));
    }
}

fn dynamic(config: &ModelConfig, batching: &ModelDynamicBatching, problems: &mut Vec<String>) {
    let name = &config.name;
    preferred(&batching.preferred_batch_size, "dynamic batching preferred size", config, problems);
    let levels = batching.priority_levels;
    let default = batching.default_priority_level;
    if levels > 0 && (default == 0 || default > levels) {
        problems.push(format!("default priority level must be in range [1, {levels}] for {name}"));
    }
    if batching.priority_queue_policy.keys().any(|&level| level == 0 || level > levels) {
        problems.push(format!(
            "priority queue policy must have priority level in range [1, {levels}] for {name}"
        ));
    }
    if !batching.preserve_ordering {
        return;
    }
    if levels > 1 {
        problems.push(format!(
            "Only one priority level is allowed when 'preserve_ordering' is true for {name}"
        ));
    }
    let mut policies =
        batching.priority_queue_policy.values().chain(&batching.default_queue_policy);
    if policies.any(|policy| policy.timeout_action() == TimeoutAction::Delay) {
        problems.push(format!(
            "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for {name}"
        ));
    }
}

fn sequence(config: &ModelConfig, batching: &ModelSequenceBatching, problems: &mut Vec<String>) {
    let name = &config.name;
    match &batching.strategy_choice {
        Some(StrategyChoice::Oldest(oldest)) => {
            preferred(
                &oldest.preferred_batch_size,
                "sequence batching preferred batch size",
                config,
                problems,
            );
        }
        Some(StrategyChoice::Direct(direct))
            if !(0.0..=1.0).contains(&direct.minimum_slot_utilization) =>
        {
            problems.push(format!(
                "sequence batching minimum slot utilization must be in range (0.0, 1.0] for {name}"
            ));
        }
        _ => {}
    }
    let mut tensors: OrderedMap<ControlKind, &str> = OrderedMap::new();
    for input in &batching.control_input {
        let tensor = input.name.as_str();
        if tensor.is_empty() {
            problems.push(format!("sequence batching control tensor must have a name for {name}"));
        }
        if input.control.len() > 1 {
            problems.push(format!(
                "sequence batching control tensor '{tensor}' is specified for multiple control kinds for {name}"
            ));
        }
        for control in &input.control {
            let kind = control.kind();
            if tensors.insert(kind, tensor).is_some() {
                let kind = kind.as_str_name();
                problems.push(format!(
                    "sequence batching specifies multiple {kind} tensors for {name}"
                ));
            }
            control_values(config, control, problems);
        }
    }
}

fn control_values(config: &ModelConfig, control: &Control, problems: &mut Vec<String>) {
    let name = &config.name;
    let kind = control.kind().as_str_name();
    let counts = [
        ("int32_false_true", control.int32_false_true.len()),
        ("fp32_false_true", control.fp32_false_true.len()),
        ("bool_false_true", control.bool_false_true.len()),
    ];
    let given = counts.iter().filter(|(_, count)| *count > 0).count();
    if control.kind() == ControlKind::ControlSequenceCorrid {
        let allowed = [
            inference::DataType::TypeUint64,
            inference::DataType::TypeInt64,
            inference::DataType::TypeUint32,
            inference::DataType::TypeInt32,
            inference::DataType::TypeString,
        ];
        if !allowed.contains(&control.data_type()) {
            problems.push(format!(
                "unexpected data type for control {kind} for {name}. Allowed data types are TYPE_UINT64, TYPE_INT64, \
                 TYPE_UINT32, TYPE_INT32 and TYPE_STRING"
            ));
        }
        if given > 0 {
            problems.push(format!(
                "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' \
                 for {kind} for {name}"
            ));
        }
        return;
    }
    if given == 0 {
        problems.push(format!(
            "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for \
             {kind} for {name}"
        ));
    } else if given > 1 {
        problems.push(format!(
            "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and \
             'bool_false_true' for {kind} for {name}"
        ));
    }
    for (field, count) in counts {
        if count > 0 && count != 2 {
            problems.push(format!(
                "sequence batching control '{field}' must have exactly 2 entries for {kind} for {name}"
            ));
        }
    }
}

fn ensembling(config: &ModelConfig, ensemble: &ModelEnsembling, problems: &mut Vec<String>) {
    let name = &config.name;
    if config.platform != ENSEMBLE {
        problems.push(format!(
            "ensemble scheduling cannot be set for model '{name}' whose platform is not ensemble"
        ));
    } else if !config.backend.is_empty() {
        problems.push(format!(
            "Ensemble model '{name}' must have platform type 'ensemble' and empty backend type"
        ));
    }
    if !config.instance_group.is_empty() {
        problems.push(format!("instance group should not be specified for ensemble '{name}'"));
    }
    if config.optimization.is_some() {
        problems.push(format!("optimization should not be specified for ensemble '{name}'"));
    }
    if !config.model_warmup.is_empty() {
        problems.push(format!("model_warmup can not be specified for ensemble '{name}'"));
    }
    if ensemble.step.is_empty() {
        problems.push(format!("must specify 'step' for ensemble '{name}'"));
    }
    for (at, step) in ensemble.step.iter().enumerate() {
        let missing = [
            ("model_name", step.model_name.is_empty()),
            ("input_map", step.input_map.is_empty()),
            ("output_map", step.output_map.is_empty()),
        ];
        for (field, _) in missing.into_iter().filter(|(_, missing)| *missing) {
            problems.push(format!("must specify '{field}' in step {at} of ensemble '{name}'"));
        }
    }
    if problems.is_empty() {
        problems.extend(super::wiring::problems(config, ensemble));
    }
}

fn response_cache(config: &ModelConfig, problems: &mut Vec<String>) {
    let name = &config.name;
    if !config.response_cache.as_ref().is_some_and(|cache| cache.enable) {
        return;
    }
    if matches!(config.scheduling_choice, Some(SchedulingChoice::SequenceBatching(_))) {
        problems.push(format!(
            "Response Cache does not currently support model {name} with sequence batching scheduler. Please disable \
             the response cache."
        ));
    }
    if config.model_transaction_policy.as_ref().is_some_and(|policy| policy.decoupled) {
        problems.push(format!(
            "Response Cache does not currently support model {name} with 'decoupled' transaction policy. Please \
             disable the response cache."
        ));
    }
}

/// Checks inputs, outputs and the tensors made for batches, once the configuration is complete.
///
/// # Errors
/// INVALID_ARG with all problems.
pub fn validate_tensors(config: &ModelConfig) -> Result<(), ServingError> {
    let mut problems = Vec::new();
    for input in &config.input {
        let tensor = DeclaredTensor {
            kind: "input",
            name: &input.name,
            data_type: input.data_type,
            dims: &input.dims,
            reshape: input.reshape.as_ref(),
        };
        tensor_rules(config, &tensor, &mut problems);
        if input.format() != model_input::Format::None && input.dims.len() != 3 {
            problems.push(format!("model input NHWC/NCHW require 3 dims for {}", config.name));
        }
    }
    for output in &config.output {
        let tensor = DeclaredTensor {
            kind: "output",
            name: &output.name,
            data_type: output.data_type,
            dims: &output.dims,
            reshape: output.reshape.as_ref(),
        };
        tensor_rules(config, &tensor, &mut problems);
    }
    batch_tensors(config, &mut problems);
    report(problems)
}

/// Checks the tensors that are made of a batch and the outputs that are split by one.
fn batch_tensors(config: &ModelConfig, problems: &mut Vec<String>) {
    let mut sources = |kind: &str, name: &str, sources: &[String]| {
        if sources.len() != 1 {
            let found = sources.len();
            problems
                .push(format!("batch {kind} kind '{name}' expects 1 source input, got {found}"));
        }
        for source in sources {
            if config.input.iter().all(|input| input.name != *source) {
                problems.push(format!("unknown source input name '{source}'"));
            }
        }
    };
    for made in &config.batch_input {
        sources("input", made.kind().as_str_name(), &made.source_input);
    }
    for split in &config.batch_output {
        sources("output", split.kind().as_str_name(), &split.source_input);
    }
    let mut targets = OrderedSet::new();
    for target in config.batch_output.iter().flat_map(|split| &split.target_name) {
        if config.output.iter().all(|output| output.name != *target) {
            problems.push(format!("unknown target output name '{target}'"));
        } else if !targets.insert(target) {
            problems.push(format!("target output name '{target}' can only be specified once"));
        }
    }
}

/// An input or an output as a configuration declares it.
struct DeclaredTensor<'a> {
    /// `input` or `output`.
    kind: &'static str,
    name: &'a str,
    data_type: i32,
    dims: &'a [i64],
    reshape: Option<&'a ModelTensorReshape>,
}

fn tensor_rules(config: &ModelConfig, tensor: &DeclaredTensor<'_>, problems: &mut Vec<String>) {
    let DeclaredTensor { kind, name, data_type, dims, reshape } = *tensor;
    let model = &config.name;
    if name.is_empty() {
        problems.push(format!("model {kind} must specify 'name' for {model}"));
        return;
    }
    let mut problem =
        |text: &str| problems.push(format!("model {kind} '{name}' {text} for {model}"));
    if datatype(data_type).is_none() {
        problem("must specify 'data_type'");
    }
    if dims.is_empty() {
        problem("must specify 'dims'");
    }
    if dims.iter().any(|&dim| dim < 1 && dim != -1) {
        problem("dimension must be integer >= 1, or -1 to indicate a variable-size dimension");
    }
    let Some(reshape) = reshape else { return };
    if reshape.shape.is_empty() && config.max_batch_size == 0 {
        problem(
            "cannot have empty reshape for non-batching model as scalar tensors are not supported",
        );
    }
    if reshape.shape.iter().any(|&dim| dim < 1 && dim != -1) {
        problem(
            "reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension",
        );
    }
    if runs(dims) != runs(&reshape.shape) {
        problem("has different size for dims and reshape");
    }
}

/// The element counts of the runs of fixed dimensions between variable ones. Two shapes hold the same elements when
/// these agree.
fn runs(dims: &[i64]) -> Vec<i64> {
    let mut runs = vec![1_i64];
    for &dim in dims {
        match (dim, runs.last_mut()) {
            (-1, _) => runs.push(1),
            (dim, Some(run)) => *run = run.saturating_mul(dim),
            (_, None) => {}
        }
    }
    runs
}

/// Checks the instance groups, once they are normalised.
///
/// # Errors
/// INVALID_ARG with all problems.
pub fn validate_instances(config: &ModelConfig, gpus: u32) -> Result<(), ServingError> {
    let model = &config.name;
    let mut problems = Vec::new();
    for group in &config.instance_group {
        let name = &group.name;
        let mut problem =
            |text: &str| problems.push(format!("instance group {name} of model {model} {text}"));
        match group.kind() {
            GroupKind::Gpu if gpus == 0 => problem("has kind KIND_GPU but no GPUs are available"),
            GroupKind::Gpu => {
                let unknown = |&&gpu: &&i32| u32::try_from(gpu).map_or(true, |gpu| gpu >= gpus);
                if let Some(gpu) = group.gpus.iter().find(unknown) {
                    problem(&format!("specifies invalid or unsupported gpu id {gpu}"));
                }
            }
            GroupKind::Cpu if !group.gpus.is_empty() => {
                problem("has kind KIND_CPU but specifies one or more GPUs")
            }
            GroupKind::Cpu | GroupKind::Auto | GroupKind::Model => {}
        }
        if group.count > MAX_INSTANCES {
            problem(&format!(
                "has {} instances, but at most {MAX_INSTANCES} are possible",
                group.count
            ));
        }
    }
    let all = instances(config, gpus);
    if all > MAX_INSTANCES.into() && problems.is_empty() {
        problems.push(format!(
            "the instance groups of model {model} have {all} instances together, but at most {MAX_INSTANCES} are \
             possible"
        ));
    }
    report(problems)
}

/// Returns how many instances all groups have.
fn instances(config: &ModelConfig, gpus: u32) -> i64 {
    let places = |group: &ModelInstanceGroup| match group.kind() {
        GroupKind::Gpu if group.gpus.is_empty() => i64::from(gpus),
        GroupKind::Gpu => i64::try_from(group.gpus.len()).unwrap_or(i64::MAX),
        GroupKind::Cpu | GroupKind::Auto | GroupKind::Model => 1,
    };
    let counts = config.instance_group.iter();
    counts.fold(0, |all: i64, group| {
        all.saturating_add(places(group).saturating_mul(i64::from(group.count)))
    })
}

/// Each instance is a thread, so that a slip of the pen must not be taken at its word.
const MAX_INSTANCES: i32 = 1024;
