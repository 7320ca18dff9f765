//! Responses of the core to messages.

use std::collections::HashMap;

use galatea_serving::statistics::{DurationStatistic, ModelStatistics};
use galatea_serving::{InferenceResponse, ModelHandle, ParameterValue, ServingError};

use super::decode::OutputForms;
use super::proto::inference::infer_parameter::ParameterChoice;
use super::proto::inference::model_infer_response::InferOutputTensor;
use super::proto::inference::{self, InferParameter, ModelInferResponse, StatisticDuration};
use crate::classification;
use crate::tensor_wire::wire_bytes;

/// Encodes a response of a model; tensors go out raw.
pub(super) fn response(
    model: &ModelHandle,
    response: InferenceResponse,
    forms: &OutputForms,
) -> Result<ModelInferResponse, ServingError> {
    let mut message = ModelInferResponse::default();
    for output in &response.outputs {
        let tensor = match forms.classes.get(&output.name) {
            Some(&count) => classification::output(model, &response, output, count)?,
            None => output.tensor.clone(),
        };
        message.outputs.push(InferOutputTensor {
            name: output.name.clone(),
            datatype: tensor.dtype().wire_name().to_owned(),
            shape: tensor.shape().iter().map(|&dim| dim as i64).collect(),
            parameters: HashMap::new(),
            contents: None,
        });
        let mut bytes = wire_bytes(&tensor)?;
        if let Some(place) = forms.places.get(&output.name) {
            place.write(&output.name, &bytes)?;
            bytes.clear();
        }
        message.raw_output_contents.push(bytes);
    }
    message.parameters =
        response.parameters.into_iter().map(|(name, value)| (name, parameter(value))).collect();
    message.model_name = response.model_name;
    message.model_version = response.model_version;
    message.id = response.id;
    Ok(message)
}

fn parameter(value: ParameterValue) -> InferParameter {
    InferParameter {
        parameter_choice: Some(match value {
            ParameterValue::Bool(value) => ParameterChoice::BoolParam(value),
            ParameterValue::Int(value) => ParameterChoice::Int64Param(value),
            ParameterValue::Uint(value) => ParameterChoice::Uint64Param(value),
            ParameterValue::Double(value) => ParameterChoice::DoubleParam(value),
            ParameterValue::String(value) => ParameterChoice::StringParam(value),
        }),
    }
}

fn duration(value: DurationStatistic) -> Option<StatisticDuration> {
    Some(StatisticDuration { count: value.count, ns: value.ns })
}

/// Counters of a model version.
pub(super) fn statistics(stats: ModelStatistics) -> inference::ModelStatistics {
    let infer = &stats.inference_stats;
    inference::ModelStatistics {
        last_inference: stats.last_inference_ms,
        inference_count: stats.inference_count,
        execution_count: stats.execution_count,
        inference_stats: Some(inference::InferStatistics {
            success: duration(infer.success),
            fail: duration(infer.fail),
            queue: duration(infer.queue),
            compute_input: duration(infer.compute_input),
            compute_infer: duration(infer.compute_infer),
            compute_output: duration(infer.compute_output),
            cache_hit: duration(infer.cache_hit),
            cache_miss: duration(infer.cache_miss),
        }),
        batch_stats: stats
            .batch_stats
            .iter()
            .map(|batch| inference::InferBatchStatistics {
                batch_size: batch.batch_size,
                compute_input: duration(batch.compute_input),
                compute_infer: duration(batch.compute_infer),
                compute_output: duration(batch.compute_output),
            })
            .collect(),
        memory_usage: stats
            .memory_usage
            .into_iter()
            .map(|memory| inference::MemoryUsage {
                r#type: memory.kind,
                id: memory.id,
                byte_size: memory.byte_size,
            })
            .collect(),
        response_stats: stats
            .response_stats
            .into_iter()
            .map(|(index, response)| {
                let message = inference::InferResponseStatistics {
                    compute_infer: duration(response.compute_infer),
                    compute_output: duration(response.compute_output),
                    success: duration(response.success),
                    fail: duration(response.fail),
                    empty_response: duration(response.empty_response),
                    cancel: duration(response.cancel),
                };
                (index, message)
            })
            .collect(),
        name: stats.name,
        version: stats.version,
    }
}
