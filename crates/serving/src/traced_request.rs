//! Stages of a request in its trace, with its tensors.

use std::time::Instant;

use crate::request::{InferenceRequest, OutputTensor};
use crate::trace::{
    COMPUTE_START, INFER_RESPONSE_COMPLETE, QUEUE_START, REQUEST_START, RequestTrace, TraceEvent,
};
use crate::traced_tensor;

/// An input as it entered the queue.
const TENSOR_QUEUE_INPUT: &str = "TENSOR_QUEUE_INPUT";
/// An input as the backend sees it.
const TENSOR_BACKEND_INPUT: &str = "TENSOR_BACKEND_INPUT";
/// An output as the backend gave it.
const TENSOR_BACKEND_OUTPUT: &str = "TENSOR_BACKEND_OUTPUT";

impl RequestTrace {
    /// The core has accepted the request and queues it.
    pub(crate) fn begin(&self, model: &str, version: &str, request: &InferenceRequest) {
        // A request that is handed on with its trace begins once.
        if self.has_begun() {
            return;
        }
        self.push(TraceEvent::Began {
            model: model.to_owned(),
            version: version.to_owned(),
            request_id: request.id.clone(),
            parent: self.parent(),
        });
        self.stamp(REQUEST_START);
        self.inputs(TENSOR_QUEUE_INPUT, request);
        self.stamp(QUEUE_START);
    }

    /// An instance begins with the request.
    pub(crate) fn start_compute(&self, request: &InferenceRequest, at: Instant) {
        self.stamp_at(COMPUTE_START, at);
        self.inputs(TENSOR_BACKEND_INPUT, request);
    }

    /// A response leaves the core.
    pub(crate) fn respond(&self, outputs: &[OutputTensor]) {
        if self.level().tensors {
            for output in outputs {
                let tensor = traced_tensor::output(output);
                self.push(TraceEvent::Tensor { activity: TENSOR_BACKEND_OUTPUT, tensor });
            }
        }
        self.stamp(INFER_RESPONSE_COMPLETE);
    }

    fn inputs(&self, activity: &'static str, request: &InferenceRequest) {
        if self.level().tensors {
            for input in &request.inputs {
                self.push(TraceEvent::Tensor { activity, tensor: traced_tensor::input(input) });
            }
        }
    }
}
