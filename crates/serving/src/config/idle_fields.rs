//! Fields of a configuration that are read, kept and shown, and that nothing here acts on.

use super::inference::model_config::SchedulingChoice;
use super::inference::model_optimization_policy::{ModelPriority, PinnedMemoryBuffer};
use super::inference::model_sequence_batching::StrategyChoice;
use super::inference::{
    ModelConfig, ModelDynamicBatching, ModelInstanceGroup, ModelOptimizationPolicy,
    ModelSequenceBatching,
};

/// A field that a configuration has and that has no effect here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleField {
    /// Its place, such as `instance_group[0].host_policy`.
    pub field: String,
    /// Why it has none.
    pub reason: &'static str,
}

/// Abilities of a server that fields of configurations depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerAbilities {
    /// It keeps responses.
    pub response_cache: bool,
    /// It limits executions by resources.
    pub rate_limits: bool,
    /// It keeps histograms of latencies.
    pub histograms: bool,
}

/// Returns the given fields that have no effect since this server does not do what they are for.
#[must_use]
pub fn idle_here(config: &ModelConfig, server: ServerAbilities) -> Vec<IdleField> {
    let mut found = Vec::new();
    let cache = config.response_cache.as_ref().is_some_and(|cache| cache.enable);
    if cache && !server.response_cache {
        let reason = "the server has no response cache (--cache-config)";
        found.push(IdleField { field: "response_cache.enable".to_owned(), reason });
    }
    if config.model_metrics.is_some() && !server.histograms {
        let reason = "the server keeps no histograms (--metrics-config=histogram_latencies=true)";
        found.push(IdleField { field: "model_metrics".to_owned(), reason });
    }
    let groups = config.instance_group.iter().enumerate();
    for (at, _) in groups.filter(|(_, group)| group.rate_limiter.is_some() && !server.rate_limits) {
        let reason = "the server limits nothing (--rate-limit=execution_count)";
        found.push(IdleField { field: format!("instance_group[{at}].rate_limiter"), reason });
    }
    found
}

/// A field, whether it is given, and why it has no effect.
type FieldRow = (&'static str, bool, &'static str);

/// Returns the given fields that have no effect, in the order of the configuration.
#[must_use]
pub fn idle_fields(config: &ModelConfig) -> Vec<IdleField> {
    let mut found = Vec::new();
    let mut take = |at: &str, rows: &[FieldRow]| {
        let given = rows.iter().filter(|(_, given, _)| *given);
        found.extend(
            given.map(|&(name, _, reason)| IdleField { field: format!("{at}{name}"), reason }),
        );
    };
    for (list, tensors) in [
        ("input", config.input.iter().map(|one| one.is_non_linear_format_io).collect::<Vec<_>>()),
        ("output", config.output.iter().map(|one| one.is_non_linear_format_io).collect()),
    ] {
        for (at, given) in tensors.into_iter().enumerate() {
            let reason = "tensors lie row by row for every backend here";
            take(&format!("{list}[{at}]."), &[("is_non_linear_format_io", given, reason)]);
        }
    }
    if let Some(wishes) = &config.optimization {
        take("optimization.", &of_optimization(wishes));
    }
    match &config.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(batching)) => {
            take("dynamic_batching.", &of_batching(batching));
        }
        Some(SchedulingChoice::SequenceBatching(batching)) => {
            take("sequence_batching.", &of_sequences(batching));
            for (at, state) in batching.state.iter().enumerate() {
                let given = state.use_same_buffer_for_input_output;
                let reason = "each step gives its state new memory";
                let row = ("use_same_buffer_for_input_output", given, reason);
                take(&format!("sequence_batching.state[{at}]."), &[row]);
            }
        }
        Some(SchedulingChoice::EnsembleScheduling(_)) | None => {}
    }
    for (at, group) in config.instance_group.iter().enumerate() {
        take(&format!("instance_group[{at}]."), &of_group(group));
    }
    let files = !config.cc_model_filenames.is_empty();
    let libraries =
        config.model_operations.as_ref().is_some_and(|all| !all.op_library_filename.is_empty());
    take(
        "",
        &[
            (
                "runtime",
                !config.runtime.is_empty(),
                "backends are parts of this program: 'backend' chooses one",
            ),
            ("cc_model_filenames", files, "no device here has a CUDA compute capability"),
            (
                "model_operations.op_library_filename",
                libraries,
                "operators of libraries are not loaded",
            ),
        ],
    );
    found
}

fn of_batching(batching: &ModelDynamicBatching) -> [FieldRow; 1] {
    let given = batching.default_priority_level > 0 && batching.priority_levels == 0;
    [("default_priority_level", given, "there are no priority_levels")]
}

fn of_sequences(batching: &ModelSequenceBatching) -> [FieldRow; 1] {
    let given = match &batching.strategy_choice {
        Some(StrategyChoice::Direct(direct)) => {
            direct.minimum_slot_utilization > 0.0 && direct.max_queue_delay_microseconds == 0
        }
        _ => false,
    };
    let reason = "nothing waits for slots without max_queue_delay_microseconds";
    [("direct.minimum_slot_utilization", given, reason)]
}

fn of_optimization(wishes: &ModelOptimizationPolicy) -> [FieldRow; 6] {
    // What is not said is true, as Triton shows it.
    let refused = |buffer: &Option<PinnedMemoryBuffer>| buffer.is_some_and(|buffer| !buffer.enable);
    let unpinned = "tensors are used where they lie, and no memory is pinned for them";
    let ranked = wishes.priority() != ModelPriority::PriorityDefault;
    [
        ("priority", ranked, "threads have no priorities; the rate limiter's priority acts"),
        ("cuda", wishes.cuda.is_some(), "there is no CUDA device"),
        ("input_pinned_memory.enable", refused(&wishes.input_pinned_memory), unpinned),
        ("output_pinned_memory.enable", refused(&wishes.output_pinned_memory), unpinned),
        (
            "gather_kernel_buffer_threshold",
            wishes.gather_kernel_buffer_threshold > 0,
            "inputs are gathered without a kernel",
        ),
        (
            "eager_batching",
            wishes.eager_batching,
            "a batch is gathered when an instance is free for it",
        ),
    ]
}

fn of_group(group: &ModelInstanceGroup) -> [FieldRow; 4] {
    [
        ("secondary_devices", !group.secondary_devices.is_empty(), "there are no NVDLA cores"),
        ("profile", !group.profile.is_empty(), "only TensorRT has optimization profiles"),
        ("passive", group.passive, "instances of every group take requests"),
        ("host_policy", !group.host_policy.is_empty(), "instances are not bound to NUMA nodes"),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::from_text;
    use super::*;

    /// Fields and texts that give them.
    const GIVEN: &[(&str, &str)] = &[
        ("input[0].is_non_linear_format_io", "input { name: 'x' is_non_linear_format_io: true }"),
        ("output[0].is_non_linear_format_io", "output { name: 'y' is_non_linear_format_io: true }"),
        ("optimization.priority", "optimization { priority: PRIORITY_MAX }"),
        ("optimization.cuda", "optimization { cuda { graphs: true } }"),
        (
            "optimization.gather_kernel_buffer_threshold",
            "optimization { gather_kernel_buffer_threshold: 1 }",
        ),
        ("optimization.eager_batching", "optimization { eager_batching: true }"),
        (
            "instance_group[1].secondary_devices",
            "instance_group [ {}, { secondary_devices { device_id: 1 } } ]",
        ),
        ("instance_group[0].profile", "instance_group { profile: '1' }"),
        ("instance_group[0].passive", "instance_group { passive: true }"),
        ("instance_group[0].host_policy", "instance_group { host_policy: 'numa_0' }"),
        ("runtime", "runtime: 'libtriton_x.so'"),
        (
            "optimization.input_pinned_memory.enable",
            "optimization { input_pinned_memory { enable: false } }",
        ),
        (
            "optimization.output_pinned_memory.enable",
            "optimization { output_pinned_memory { enable: false } }",
        ),
        (
            "dynamic_batching.default_priority_level",
            "dynamic_batching { default_priority_level: 1 }",
        ),
        (
            "sequence_batching.direct.minimum_slot_utilization",
            "sequence_batching { direct { minimum_slot_utilization: 0.5 } }",
        ),
        (
            "sequence_batching.state[0].use_same_buffer_for_input_output",
            "sequence_batching { state { use_same_buffer_for_input_output: true } }",
        ),
        ("cc_model_filenames", "cc_model_filenames { key: '8.0' value: 'a.onnx' }"),
        (
            "model_operations.op_library_filename",
            "model_operations { op_library_filename: 'a.so' }",
        ),
    ];

    #[test]
    fn a_field_without_effect_is_told_with_its_place() {
        for (field, text) in GIVEN {
            let found = idle_fields(&from_text(text).unwrap());
            let fields: Vec<&str> = found.iter().map(|one| one.field.as_str()).collect();
            assert_eq!(fields, [*field], "{text}");
            assert!(!found[0].reason.is_empty());
        }
    }

    #[test]
    fn a_field_for_what_the_server_does_not_do_is_told() {
        let all = ServerAbilities { response_cache: true, rate_limits: true, histograms: true };
        let config = from_text(
            "response_cache { enable: true } model_metrics {} \
             instance_group [ {}, { rate_limiter { priority: 2 } } ]",
        )
        .unwrap();
        let fields = |server| -> Vec<String> {
            idle_here(&config, server).into_iter().map(|one| one.field).collect()
        };
        assert!(fields(all).is_empty());
        let without = ServerAbilities { response_cache: false, ..all };
        assert_eq!(fields(without), ["response_cache.enable"]);
        assert_eq!(fields(ServerAbilities { histograms: false, ..all }), ["model_metrics"]);
        let without = ServerAbilities { rate_limits: false, ..all };
        assert_eq!(fields(without), ["instance_group[1].rate_limiter"]);
        // What is switched off needs nothing.
        let off = from_text("response_cache { enable: false } instance_group {}").unwrap();
        let none = ServerAbilities { response_cache: false, rate_limits: false, histograms: false };
        assert_eq!(idle_here(&off, none), []);
    }

    #[test]
    fn fields_that_act_and_usual_values_are_not_told() {
        let text = "name: 'm' max_batch_size: 8 dynamic_batching {} response_cache { enable: true } \
                    input { name: 'x' data_type: TYPE_FP32 dims: 1 optional: true } \
                    optimization { graph { level: 1 } priority: PRIORITY_DEFAULT \
                    input_pinned_memory { enable: true } output_pinned_memory { enable: true } \
                    execution_accelerators { gpu_execution_accelerator { name: 'coreml' } } } \
                    instance_group { name: 'a' kind: KIND_CPU count: 2 gpus: [] \
                    rate_limiter { resources { name: 'r' count: 1 } priority: 2 } }";
        assert_eq!(idle_fields(&from_text(text).unwrap()), []);
    }
}
