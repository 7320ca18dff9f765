//! `square`: a decoupled model that answers the number `IN` (INT32) that many times with `OUT` = `IN`; the completion
//! flag comes alone behind the last response.
//!
//! Parameter `custom_infer_delay_ns`, `custom_output_delay_ns` (before and after the making of each response), and
//! `custom_empty_delay_ns` (before the completion flag), all 0 by default.

use std::time::{Duration, Instant};

use galatea_tensor::Tensor;

use super::delay;
use super::repeat::values;
use crate::backend::{
    ActiveRequest, BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles,
    ModelInstance, ModelIo,
};
use crate::error::ServingError;
use crate::statistics::ResponseKind;

/// Most responses to one request.
const MAX_RESPONSES: i32 = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct SquareBackend;

impl ModelBackend for SquareBackend {
    fn name(&self) -> &'static str {
        "square"
    }

    fn default_model_filename(&self) -> &'static str {
        ""
    }

    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        let policy = files.config.model_transaction_policy.as_ref();
        if !policy.is_some_and(|policy| policy.decoupled) {
            return Err(ServingError::invalid_arg(format!(
                "model '{}' must have a decoupled transaction policy to use the square backend",
                files.name
            )));
        }
        let delay = |name| Ok::<_, ServingError>(Duration::from_nanos(delay::number(files, name)?));
        Ok(Box::new(SquareModel {
            infer: delay("custom_infer_delay_ns")?,
            output: delay("custom_output_delay_ns")?,
            empty: delay("custom_empty_delay_ns")?,
        }))
    }
}

#[derive(Clone, Copy)]
struct SquareModel {
    infer: Duration,
    output: Duration,
    empty: Duration,
}

impl BackendModel for SquareModel {
    fn io(&self) -> Option<&ModelIo> {
        None
    }

    fn instance(
        &self,
        _placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError> {
        Ok(Box::new(*self))
    }
}

impl ModelInstance for SquareModel {
    fn execute(&mut self, payload: BatchPayload) {
        for request in payload.detach() {
            self.answer(request);
        }
    }
}

fn count(request: &ActiveRequest) -> Result<i32, ServingError> {
    let count = values(request, "IN")?.to_vec::<i32>()?.first().copied().unwrap_or(0);
    if (0..=MAX_RESPONSES).contains(&count) {
        return Ok(count);
    }
    Err(ServingError::invalid_arg(format!(
        "input 'IN' must be between 0 and {MAX_RESPONSES}, found {count}"
    )))
}

impl SquareModel {
    fn answer(self, mut request: ActiveRequest) {
        let count = match count(&request) {
            Ok(count) => count,
            Err(error) => return request.finish_with(Err(error)),
        };
        let mut from = Instant::now();
        for _ in 0..count {
            delay::wait_while(self.infer, || !request.is_cancelled());
            if request.is_cancelled() {
                request.count_response(ResponseKind::Cancel, from, Instant::now());
                break;
            }
            let made = Instant::now();
            let shape: &[usize] = if request.config().max_batch_size > 0 { &[1, 1] } else { &[1] };
            let response = Tensor::from_vec(shape, vec![count])
                .map_err(ServingError::from)
                .and_then(|tensor| request.wanted(vec![("OUT".to_owned(), tensor)]));
            delay::wait_while(self.output, || !request.is_cancelled());
            let kind = if response.is_ok() { ResponseKind::Success } else { ResponseKind::Fail };
            request.count_response(kind, from, made);
            request.respond(response);
            from = Instant::now();
        }
        delay::wait_while(self.empty, || !request.is_cancelled());
        if !request.is_cancelled() {
            request.count_response(ResponseKind::Empty, from, Instant::now());
        }
        request.finish();
    }
}
