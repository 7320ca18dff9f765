//! Fields of a configuration that are read, kept and shown, and that nothing here acts on.

use super::inference::model_optimization_policy::ModelPriority;
use super::inference::{ModelConfig, ModelInstanceGroup, ModelOptimizationPolicy};

/// A field that a configuration has and that has no effect here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleField {
    /// Its place, such as `instance_group[0].host_policy`.
    pub field: String,
    /// Why it has none.
    pub reason: &'static str,
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
    for (at, group) in config.instance_group.iter().enumerate() {
        take(&format!("instance_group[{at}]."), &of_group(group));
    }
    let files = !config.cc_model_filenames.is_empty();
    let libraries =
        config.model_operations.as_ref().is_some_and(|all| !all.op_library_filename.is_empty());
    take(
        "",
        &[
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

fn of_optimization(wishes: &ModelOptimizationPolicy) -> [FieldRow; 4] {
    let ranked = wishes.priority() != ModelPriority::PriorityDefault;
    [
        ("priority", ranked, "threads have no priorities; the rate limiter's priority acts"),
        ("cuda", wishes.cuda.is_some(), "there is no CUDA device"),
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
    fn fields_that_act_and_usual_values_are_not_told() {
        let text = "name: 'm' max_batch_size: 8 dynamic_batching {} response_cache { enable: true } \
                    input { name: 'x' data_type: TYPE_FP32 dims: 1 optional: true } \
                    optimization { graph { level: 1 } priority: PRIORITY_DEFAULT \
                    input_pinned_memory { enable: true } output_pinned_memory { enable: false } \
                    execution_accelerators { gpu_execution_accelerator { name: 'coreml' } } } \
                    instance_group { name: 'a' kind: KIND_CPU count: 2 gpus: [] \
                    rate_limiter { resources { name: 'r' count: 1 } priority: 2 } }";
        assert_eq!(idle_fields(&from_text(text).unwrap()), []);
    }
}
