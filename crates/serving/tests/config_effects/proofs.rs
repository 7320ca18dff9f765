//! The table of proofs.

use super::scheduled::{limited, scheduled};
use super::served::{served, whole};
use ProofKind::{Elsewhere, Idle, Label};

/// Proof that a field does something, or that the log says that it does not.
#[derive(Clone, Copy)]
pub(super) enum ProofKind {
    /// Something is seen to differ between two texts, of which only the second has the field, or another value of it.
    Differs { seen: fn(&str) -> String, without: &'static str, with: &'static str },
    /// A text whose only field without effect it is.
    Idle(&'static str),
    /// A name that is shown and stands for nothing.
    Label(&'static str),
    /// Another test, of this name, shows what it does.
    Elsewhere(&'static str),
}

/// A field, `MESSAGE.FIELD`, and its proof.
#[derive(Clone, Copy)]
pub(super) struct FieldProof {
    pub(super) field: &'static str,
    pub(super) kind: ProofKind,
}

/// A model without inputs.
const IN: &str = "backend: 'probe' output { name: 'OUT' data_type: TYPE_INT32 dims: 1 }";

macro_rules! table {
    ($($field:literal: $kind:expr;)*) => {
        &[$(FieldProof { field: $field, kind: $kind }),*]
    };
}

const fn differs(seen: fn(&str) -> String, without: &'static str, with: &'static str) -> ProofKind {
    ProofKind::Differs { seen, without, with }
}

/// Beside [`IN`], with an input.
fn with_input(text: &str) -> String {
    whole(&format!("{IN} {text}"))
}

/// In the input `IN` of a model that makes batches.
fn in_batched_input(text: &str) -> String {
    with_input(&format!("max_batch_size: 4 input {{ name: 'IN' data_type: TYPE_INT32 {text} }}"))
}

/// In the only input.
fn in_input(text: &str) -> String {
    with_input(&format!("input {{ {text} }}"))
}

/// In the only output.
fn in_output(text: &str) -> String {
    whole(&format!(
        "backend: 'probe' input {{ name: 'IN' data_type: TYPE_INT32 dims: 1 }} output {{ {text} }}"
    ))
}

/// In the only output of a model that makes batches.
fn in_batched_output(text: &str) -> String {
    whole(&format!(
        "backend: 'probe' max_batch_size: 4 input {{ name: 'IN' data_type: TYPE_INT32 dims: 1 }} \
         output {{ name: 'OUT' data_type: TYPE_INT32 dims: 1 {text} }}"
    ))
}

/// In a made input of a model that makes batches.
fn in_batch_input(text: &str) -> String {
    served(&format!("max_batch_size: 4 batch_input {{ {text} }}"))
}

/// In an output of a ragged batch.
fn in_batch_output(text: &str) -> String {
    whole(&format!(
        "backend: 'probe' max_batch_size: 4 \
         input {{ name: 'IN' data_type: TYPE_INT32 dims: 1 allow_ragged_batch: true }} \
         output {{ name: 'OUT' data_type: TYPE_INT32 dims: 1 }} batch_output {{ {text} }}"
    ))
}

/// In the dynamic batcher.
fn batched(text: &str) -> String {
    scheduled(&format!("dynamic_batching {{ {text} }}"))
}

/// In the queue policy of all requests.
fn queued(text: &str) -> String {
    batched(&format!("default_queue_policy {{ {text} }}"))
}

/// In the sequence batcher.
fn sequences(text: &str) -> String {
    scheduled(&format!("sequence_batching {{ {text} }}"))
}

/// In the sequence batcher of a served model.
fn steps(text: &str) -> String {
    served(&format!("max_batch_size: 4 sequence_batching {{ {text} }}"))
}

/// In a control of a sequence, of which `kind` is to be given.
fn control(text: &str) -> String {
    steps(&format!("control_input {{ name: 'C' control {{ {text} }} }}"))
}

/// In a state of a sequence.
fn state(text: &str) -> String {
    steps(&format!("state {{ {text} }}"))
}

/// In the initial state.
fn initial(text: &str) -> String {
    state(&format!(
        "input_name: 'LAST' output_name: 'NEXT' data_type: TYPE_INT32 dims: 1 initial_state {{ {text} }}"
    ))
}

/// In a step of an ensemble.
fn step(text: &str) -> String {
    whole(&format!(
        "platform: 'ensemble' input {{ name: 'IN' data_type: TYPE_INT32 dims: 1 }} \
         output {{ name: 'OUT' data_type: TYPE_INT32 dims: 1 }} ensemble_scheduling {{ step {{ {text} }} }}"
    ))
}

/// In a warm-up sample.
fn warm(text: &str) -> String {
    served(&format!("max_batch_size: 4 model_warmup {{ name: 's' {text} }}"))
}

/// In the input of a warm-up sample.
fn warm_input(text: &str) -> String {
    warm(&format!("inputs {{ key: 'IN' value {{ {text} }} }}"))
}

/// In the instance group.
fn group(text: &str) -> String {
    served(&format!("instance_group {{ {text} }}"))
}

/// In a control of metrics.
fn metric(text: &str) -> String {
    served(&format!("model_metrics {{ metric_control {{ {text} }} }}"))
}

/// Family whose buckets can be chosen.
const BUCKETS: &str =
    "metric_identifier { family: 'nv_inference_first_response_histogram_ms' } histogram_options {";

fn buckets(text: &str) -> String {
    metric(&format!("{BUCKETS} {text} }}"))
}

pub(super) fn proofs() -> Vec<FieldProof> {
    let parts = [MODELS, TENSORS, INSTANCES, OPTIMIZATION, QUEUES, SEQUENCES, ENSEMBLES, WARM_UPS];
    parts.into_iter().flatten().copied().collect()
}

const MODELS: &[FieldProof] = table! {
    "ModelConfig.name": differs(served, "name: 'm'", "name: 'n'");
    "ModelConfig.platform": differs(
        whole,
        "input { name: 'IN' data_type: TYPE_INT32 dims: 1 }",
        "input { name: 'IN' data_type: TYPE_INT32 dims: 1 } platform: 'probe_memory'",
    );
    "ModelConfig.backend": differs(whole, "backend: 'nobody'", "backend: 'probe'");
    "ModelConfig.runtime": Idle("runtime: 'libtriton_probe.so'");
    "ModelConfig.max_batch_size": differs(served, "", "max_batch_size: 1");
    "ModelConfig.default_model_filename": differs(
        served, "", "default_model_filename: 'other.probe'",
    );
    "ModelConfig.cc_model_filenames": Idle("cc_model_filenames { key: '8.0' value: 'a.onnx' }");
    "ModelConfig.metric_tags": differs(served, "", "metric_tags { key: 'team' value: 'red' }");
    "ModelConfig.parameters": differs(served, "", "parameters { key: 'x' value {} }");
    "ModelParameter.string_value": differs(
        served,
        "parameters { key: 'x' value {} }",
        "parameters { key: 'x' value { string_value: 'v' } }",
    );
    "Latest.num_versions": differs(
        served,
        "version_policy { latest { num_versions: 1 } }",
        "version_policy { latest { num_versions: 2 } }",
    );
    "ModelVersionPolicy.all": differs(served, "", "version_policy { all {} }");
    "Specific.versions": differs(
        served,
        "version_policy { specific { versions: 2 } }",
        "version_policy { specific { versions: [ 1, 3 ] } }",
    );
    "ModelOperations.op_library_filename": Idle("model_operations { op_library_filename: 'a.so' }");
    "ModelTransactionPolicy.decoupled": Elsewhere(
        "each_response_of_a_decoupled_model_goes_through_the_steps_behind_it"
    );
    "Agent.name": differs(
        served,
        "model_repository_agents { agents { name: 'checksum' } }",
        "model_repository_agents { agents { name: 'relocate' } }",
    );
    "Agent.parameters": differs(
        served,
        "model_repository_agents { agents { name: 'checksum' } }",
        "model_repository_agents { agents { name: 'checksum' parameters { key: 'MD5:labels.txt' value: '00' } } }",
    );
    "ModelResponseCache.enable": differs(served, "", "response_cache { enable: true }");
    "MetricIdentifier.family": differs(
        metric,
        "metric_identifier { family: 'other' } histogram_options { buckets: [ 1, 2 ] }",
        "metric_identifier { family: 'nv_inference_first_response_histogram_ms' } \
         histogram_options { buckets: [ 1, 2 ] }",
    );
    "HistogramOptions.buckets": differs(buckets, "buckets: 1", "buckets: [ 1, 2 ]");
};

const TENSORS: &[FieldProof] = table! {
    "ModelInput.name": differs(
        in_input, "data_type: TYPE_INT32 dims: 1 name: 'IN'", "data_type: TYPE_INT32 dims: 1 name: 'X'",
    );
    "ModelInput.data_type": differs(
        in_input, "name: 'IN' dims: 1 data_type: TYPE_INT32", "name: 'IN' dims: 1 data_type: TYPE_FP32",
    );
    // What is said is checked, and tensors lie as clients send them.
    "ModelInput.format": differs(
        in_input,
        "name: 'IN' data_type: TYPE_INT32 dims: 1",
        "name: 'IN' data_type: TYPE_INT32 dims: 1 format: FORMAT_NHWC",
    );
    "ModelInput.dims": differs(
        in_input, "name: 'IN' data_type: TYPE_INT32 dims: 1", "name: 'IN' data_type: TYPE_INT32 dims: 2",
    );
    "ModelTensorReshape.shape": differs(
        in_input,
        "name: 'IN' data_type: TYPE_INT32 dims: 1 reshape { shape: 1 }",
        "name: 'IN' data_type: TYPE_INT32 dims: 1 reshape { shape: [ 1, 1 ] }",
    );
    "ModelInput.is_shape_tensor": differs(in_batched_input, "dims: 1", "dims: 1 is_shape_tensor: true");
    "ModelInput.allow_ragged_batch": differs(
        in_batched_input, "dims: -1", "dims: -1 allow_ragged_batch: true",
    );
    "ModelInput.optional": differs(
        in_input,
        "name: 'IN' data_type: TYPE_INT32 dims: 1",
        "name: 'IN' data_type: TYPE_INT32 dims: 1 optional: true",
    );
    "ModelInput.is_non_linear_format_io": Idle("input { name: 'x' is_non_linear_format_io: true }");
    "ModelOutput.name": differs(
        in_output, "data_type: TYPE_INT32 dims: 1 name: 'OUT'", "data_type: TYPE_INT32 dims: 1 name: 'X'",
    );
    "ModelOutput.data_type": differs(
        in_output, "name: 'OUT' dims: 1 data_type: TYPE_INT32", "name: 'OUT' dims: 1 data_type: TYPE_FP32",
    );
    "ModelOutput.dims": differs(
        in_output, "name: 'OUT' data_type: TYPE_INT32 dims: 1", "name: 'OUT' data_type: TYPE_INT32 dims: 2",
    );
    "ModelOutput.label_filename": differs(
        in_output,
        "name: 'OUT' data_type: TYPE_INT32 dims: 1",
        "name: 'OUT' data_type: TYPE_INT32 dims: 1 label_filename: 'labels.txt'",
    );
    "ModelOutput.is_shape_tensor": differs(in_batched_output, "", "is_shape_tensor: true");
    "ModelOutput.is_non_linear_format_io": Idle("output { name: 'y' is_non_linear_format_io: true }");
    "BatchInput.kind": differs(
        in_batch_input,
        "target_name: 'N' data_type: TYPE_INT32 source_input: 'IN' kind: BATCH_ELEMENT_COUNT",
        "target_name: 'N' data_type: TYPE_INT32 source_input: 'IN' kind: BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
    );
    "BatchInput.target_name": differs(
        in_batch_input,
        "data_type: TYPE_INT32 source_input: 'IN' target_name: 'N'",
        "data_type: TYPE_INT32 source_input: 'IN' target_name: 'M'",
    );
    "BatchInput.data_type": differs(
        in_batch_input,
        "target_name: 'N' source_input: 'IN' data_type: TYPE_INT32",
        "target_name: 'N' source_input: 'IN' data_type: TYPE_FP32",
    );
    "BatchInput.source_input": differs(
        in_batch_input,
        "target_name: 'N' data_type: TYPE_INT32 source_input: 'IN'",
        "target_name: 'N' data_type: TYPE_INT32 source_input: 'X'",
    );
    "BatchOutput.target_name": differs(
        in_batch_output, "source_input: 'IN' target_name: 'NO'", "source_input: 'IN' target_name: 'OUT'",
    );
    "BatchOutput.source_input": differs(
        in_batch_output, "target_name: 'OUT' source_input: 'IN'", "target_name: 'OUT' source_input: 'X'",
    );
};

const INSTANCES: &[FieldProof] = table! {
    "ModelInstanceGroup.name": differs(group, "", "name: 'g'");
    "ModelInstanceGroup.kind": differs(group, "kind: KIND_CPU", "kind: KIND_MODEL");
    "ModelInstanceGroup.count": differs(group, "count: 1", "count: 3");
    "ModelInstanceGroup.gpus": differs(group, "kind: KIND_GPU", "kind: KIND_GPU gpus: 1");
    "SecondaryDevice.device_id": Idle("instance_group { secondary_devices { device_id: 1 } }");
    "ModelInstanceGroup.profile": Idle("instance_group { profile: '1' }");
    "ModelInstanceGroup.passive": Idle("instance_group { passive: true }");
    "ModelInstanceGroup.host_policy": Idle("instance_group { host_policy: 'numa_0' }");
    "Resource.name": differs(
        limited, "resources { count: 2 name: 'R' }", "resources { count: 2 name: 'S' }",
    );
    "Resource.global": differs(
        limited, "resources { name: 'R' count: 1 }", "resources { name: 'R' count: 1 global: true }",
    );
    "Resource.count": differs(
        limited, "resources { name: 'R' count: 1 }", "resources { name: 'R' count: 2 }",
    );
    "ModelRateLimiter.priority": differs(
        limited,
        "resources { name: 'R' count: 2 } priority: 1",
        "resources { name: 'R' count: 2 } priority: 7",
    );
};

const OPTIMIZATION: &[FieldProof] = table! {
    "Graph.level": Elsewhere("the_level_of_the_graph_says_how_far_it_is_rewritten");
    "ModelOptimizationPolicy.priority": Idle("optimization { priority: PRIORITY_MAX }");
    "Cuda.graphs": Idle("optimization { cuda { graphs: true } }");
    "Cuda.busy_wait_events": Idle("optimization { cuda { busy_wait_events: true } }");
    "Cuda.output_copy_stream": Idle("optimization { cuda { output_copy_stream: true } }");
    "GraphSpec.batch_size": Idle("optimization { cuda { graph_spec { batch_size: 1 } } }");
    "GraphSpec.input": Idle("optimization { cuda { graph_spec { input { key: 'x' value {} } } } }");
    "Shape.dim": Idle(
        "optimization { cuda { graph_spec { input { key: 'x' value { dim: 1 } } } } }"
    );
    "LowerBound.batch_size": Idle(
        "optimization { cuda { graph_spec { graph_lower_bound { batch_size: 1 } } } }"
    );
    "LowerBound.input": Idle(
        "optimization { cuda { graph_spec { graph_lower_bound { input { key: 'x' value {} } } } } }"
    );
    "Accelerator.name": Elsewhere("the_neural_engine_is_the_first_provider_of_the_model_that_names_it");
    "Accelerator.parameters": Elsewhere("a_wrong_parameter_is_named_with_its_field_and_model");
    "PinnedMemoryBuffer.enable": Idle("optimization { input_pinned_memory { enable: false } }");
    "ModelOptimizationPolicy.gather_kernel_buffer_threshold": Idle(
        "optimization { gather_kernel_buffer_threshold: 1 }"
    );
    "ModelOptimizationPolicy.eager_batching": Idle("optimization { eager_batching: true }");
};

const QUEUES: &[FieldProof] = table! {
    "ModelQueuePolicy.timeout_action": differs(
        queued,
        "default_timeout_microseconds: 50 timeout_action: REJECT",
        "default_timeout_microseconds: 50 timeout_action: DELAY",
    );
    "ModelQueuePolicy.default_timeout_microseconds": differs(
        queued, "", "default_timeout_microseconds: 50",
    );
    "ModelQueuePolicy.allow_timeout_override": differs(
        queued,
        "default_timeout_microseconds: 1000",
        "default_timeout_microseconds: 1000 allow_timeout_override: true",
    );
    "ModelQueuePolicy.max_queue_size": differs(queued, "", "max_queue_size: 1");
    "ModelDynamicBatching.preferred_batch_size": differs(
        batched,
        "max_queue_delay_microseconds: 500 preferred_batch_size: 4",
        "max_queue_delay_microseconds: 500 preferred_batch_size: 2",
    );
    "ModelDynamicBatching.max_queue_delay_microseconds": differs(
        batched, "", "max_queue_delay_microseconds: 500",
    );
    "ModelDynamicBatching.preserve_ordering": differs(batched, "", "preserve_ordering: true");
    "ModelDynamicBatching.priority_levels": differs(
        batched, "", "priority_levels: 2 default_priority_level: 1",
    );
    "ModelDynamicBatching.default_priority_level": differs(
        batched,
        "priority_levels: 2 default_priority_level: 1",
        "priority_levels: 2 default_priority_level: 2",
    );
    "ModelDynamicBatching.priority_queue_policy": differs(
        batched,
        "priority_levels: 2 default_priority_level: 1",
        "priority_levels: 2 default_priority_level: 1 \
         priority_queue_policy { key: 2 value { max_queue_size: 1 } }",
    );
};

const SEQUENCES: &[FieldProof] = table! {
    "ModelSequenceBatching.max_sequence_idle_microseconds": differs(
        sequences, "", "max_sequence_idle_microseconds: 200",
    );
    "ModelSequenceBatching.iterative_sequence": differs(sequences, "", "iterative_sequence: true");
    "StrategyDirect.max_queue_delay_microseconds": differs(
        sequences,
        "direct { minimum_slot_utilization: 1.0 }",
        "direct { minimum_slot_utilization: 1.0 max_queue_delay_microseconds: 300 }",
    );
    "StrategyDirect.minimum_slot_utilization": differs(
        sequences,
        "direct { max_queue_delay_microseconds: 300 minimum_slot_utilization: 0.25 }",
        "direct { max_queue_delay_microseconds: 300 minimum_slot_utilization: 1.0 }",
    );
    "StrategyOldest.max_candidate_sequences": differs(
        sequences, "oldest { max_candidate_sequences: 4 }", "oldest { max_candidate_sequences: 1 }",
    );
    "StrategyOldest.preferred_batch_size": differs(
        sequences,
        "oldest { max_candidate_sequences: 4 max_queue_delay_microseconds: 500 preferred_batch_size: 4 }",
        "oldest { max_candidate_sequences: 4 max_queue_delay_microseconds: 500 preferred_batch_size: 2 }",
    );
    "StrategyOldest.max_queue_delay_microseconds": differs(
        sequences,
        "oldest { max_candidate_sequences: 4 preferred_batch_size: 4 }",
        "oldest { max_candidate_sequences: 4 preferred_batch_size: 4 max_queue_delay_microseconds: 500 }",
    );
    "StrategyOldest.preserve_ordering": differs(
        sequences,
        "oldest { max_candidate_sequences: 4 }",
        "oldest { max_candidate_sequences: 4 preserve_ordering: true }",
    );
    "ControlInput.name": differs(
        steps,
        "control_input { control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } name: 'C' }",
        "control_input { control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } name: 'D' }",
    );
    "Control.kind": differs(
        control,
        "int32_false_true: [ 0, 1 ] kind: CONTROL_SEQUENCE_START",
        "int32_false_true: [ 0, 1 ] kind: CONTROL_SEQUENCE_READY",
    );
    "Control.int32_false_true": differs(
        control,
        "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ]",
        "kind: CONTROL_SEQUENCE_START int32_false_true: [ 5, 6 ]",
    );
    "Control.fp32_false_true": differs(
        control,
        "kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ]",
        "kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0.5, 1.5 ]",
    );
    "Control.bool_false_true": differs(
        control,
        "kind: CONTROL_SEQUENCE_START bool_false_true: [ false, true ]",
        "kind: CONTROL_SEQUENCE_START bool_false_true: [ true, false ]",
    );
    "Control.data_type": differs(
        control,
        "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64",
        "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32",
    );
    "State.input_name": differs(
        state,
        "output_name: 'NEXT' data_type: TYPE_INT32 dims: 1 input_name: 'LAST'",
        "output_name: 'NEXT' data_type: TYPE_INT32 dims: 1 input_name: 'X'",
    );
    "State.output_name": differs(
        state,
        "input_name: 'LAST' data_type: TYPE_INT32 dims: 1 output_name: 'NEXT'",
        "input_name: 'LAST' data_type: TYPE_INT32 dims: 1 output_name: 'OUT'",
    );
    "State.data_type": differs(
        state,
        "input_name: 'X' output_name: 'NEXT' dims: 1 data_type: TYPE_INT32",
        "input_name: 'X' output_name: 'NEXT' dims: 1 data_type: TYPE_INT64",
    );
    "State.dims": differs(
        state,
        "input_name: 'LAST' output_name: 'NEXT' data_type: TYPE_INT32 dims: 1",
        "input_name: 'LAST' output_name: 'NEXT' data_type: TYPE_INT32 dims: 2",
    );
    "State.use_same_buffer_for_input_output": Idle(
        "sequence_batching { state { use_same_buffer_for_input_output: true } }"
    );
    // Refused: it needs a GPU build of Triton.
    "State.use_growable_memory": differs(
        state,
        "input_name: 'LAST' output_name: 'NEXT' data_type: TYPE_INT32 dims: 1",
        "input_name: 'LAST' output_name: 'NEXT' data_type: TYPE_INT32 dims: 1 use_growable_memory: true",
    );
    "InitialState.name": Label("an initial state is found by its state");
    "InitialState.data_type": differs(
        initial,
        "zero_data: true dims: 1 data_type: TYPE_INT32",
        "zero_data: true dims: 1 data_type: TYPE_FP32",
    );
    "InitialState.dims": differs(
        initial,
        "zero_data: true data_type: TYPE_INT32 dims: 1",
        "zero_data: true data_type: TYPE_INT32 dims: 2",
    );
    "InitialState.zero_data": differs(
        initial, "data_type: TYPE_INT32 dims: 1", "data_type: TYPE_INT32 dims: 1 zero_data: true",
    );
    "InitialState.data_file": differs(
        initial,
        "data_type: TYPE_INT32 dims: 1 zero_data: true",
        "data_type: TYPE_INT32 dims: 1 data_file: 'seven'",
    );
};

const ENSEMBLES: &[FieldProof] = table! {
    "Step.model_name": differs(
        step,
        "model_version: -1 input_map { key: 'IN' value: 'IN' } output_map { key: 'OUT' value: 'OUT' } \
         model_name: 'a'",
        "model_version: -1 input_map { key: 'IN' value: 'IN' } output_map { key: 'OUT' value: 'OUT' } \
         model_name: 'b'",
    );
    "Step.model_version": differs(
        step,
        "model_name: 'a' input_map { key: 'IN' value: 'IN' } output_map { key: 'OUT' value: 'OUT' } \
         model_version: -1",
        "model_name: 'a' input_map { key: 'IN' value: 'IN' } output_map { key: 'OUT' value: 'OUT' } \
         model_version: 1",
    );
    "Step.input_map": differs(
        step,
        "model_name: 'a' model_version: 1 output_map { key: 'OUT' value: 'OUT' } \
         input_map { key: 'IN' value: 'IN' }",
        "model_name: 'a' model_version: 1 output_map { key: 'OUT' value: 'OUT' } \
         input_map { key: 'IN' value: 'X' }",
    );
    "Step.output_map": differs(
        step,
        "model_name: 'a' model_version: 1 input_map { key: 'IN' value: 'IN' } \
         output_map { key: 'OUT' value: 'OUT' }",
        "model_name: 'a' model_version: 1 input_map { key: 'IN' value: 'IN' } \
         output_map { key: 'OUT' value: 'X' }",
    );
    "Step.model_namespace": Elsewhere(
        "the_steps_of_an_ensemble_are_looked_for_in_its_own_namespace_first"
    );
    "ModelEnsembling.max_inflight_requests": Elsewhere("executions_over_max_inflight_requests_wait");
};

const WARM_UPS: &[FieldProof] = table! {
    "ModelWarmup.name": Label("errors and lines of the log name the sample");
    "ModelWarmup.batch_size": differs(
        warm,
        "inputs { key: 'IN' value { data_type: TYPE_INT32 dims: 1 zero_data: true } }",
        "inputs { key: 'IN' value { data_type: TYPE_INT32 dims: 1 zero_data: true } } batch_size: 3",
    );
    "ModelWarmup.inputs": differs(
        warm,
        "inputs { key: 'IN' value { data_type: TYPE_INT32 dims: 1 zero_data: true } }",
        "inputs { key: 'X' value { data_type: TYPE_INT32 dims: 1 zero_data: true } }",
    );
    "ModelWarmup.count": differs(
        warm,
        "inputs { key: 'IN' value { data_type: TYPE_INT32 dims: 1 zero_data: true } }",
        "inputs { key: 'IN' value { data_type: TYPE_INT32 dims: 1 zero_data: true } } count: 2",
    );
    "Input.data_type": differs(
        warm_input, "dims: 1 zero_data: true data_type: TYPE_INT32", "dims: 1 zero_data: true data_type: TYPE_FP32",
    );
    "Input.dims": differs(
        warm_input, "data_type: TYPE_INT32 zero_data: true dims: 1", "data_type: TYPE_INT32 zero_data: true dims: 2",
    );
    "Input.zero_data": differs(
        warm_input, "data_type: TYPE_INT32 dims: 1", "data_type: TYPE_INT32 dims: 1 zero_data: true",
    );
    // The first number of all may be 0.
    "Input.random_data": differs(
        warm,
        "batch_size: 4 inputs { key: 'IN' value { data_type: TYPE_INT32 dims: 1 zero_data: true } }",
        "batch_size: 4 inputs { key: 'IN' value { data_type: TYPE_INT32 dims: 1 random_data: true } }",
    );
    "Input.input_data_file": differs(
        warm_input,
        "data_type: TYPE_INT32 dims: 1 zero_data: true",
        "data_type: TYPE_INT32 dims: 1 input_data_file: 'seven'",
    );
};
