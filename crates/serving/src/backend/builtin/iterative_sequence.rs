//! `iterative_sequence`: a decoupled model that counts `INPUT` (INT32) down to 0, one response `OUTPUT` and one
//! execution for each number. Between two executions the request goes back to the scheduler, so the model needs
//! `iterative_sequence: true` in its `sequence_batching`. Parameter: `execute_delay_ms`.

use std::time::Duration;

use galatea_tensor::Tensor;

use super::delay::{self, ExecuteDelay};
use super::repeat::values;
use crate::backend::{
    ActiveRequest, BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles,
    ModelInstance, ModelIo,
};
use crate::error::ServingError;

/// See the module.
#[derive(Debug)]
pub(super) struct IterativeSequenceBackend;

impl ModelBackend for IterativeSequenceBackend {
    fn name(&self) -> &'static str {
        "iterative_sequence"
    }

    fn default_model_filename(&self) -> &'static str {
        ""
    }

    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        Ok(Box::new(IterativeModel { delay: ExecuteDelay::from_files(files)? }))
    }
}

struct IterativeModel {
    delay: ExecuteDelay,
}

impl BackendModel for IterativeModel {
    fn io(&self) -> Option<&ModelIo> {
        None
    }

    fn instance(
        &self,
        placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError> {
        Ok(Box::new(IterativeSequence { delay: self.delay.of(placement) }))
    }
}

struct IterativeSequence {
    delay: Duration,
}

impl ModelInstance for IterativeSequence {
    fn execute(&mut self, payload: BatchPayload) {
        delay::wait(self.delay, &payload);
        for request in payload.detach() {
            step(request);
        }
    }
}

/// Each execution answers one number less than the last.
fn step(mut request: ActiveRequest) {
    let next = values(&request, "INPUT")
        .and_then(|input| Ok(input.to_vec::<i32>()?.first().copied().unwrap_or(0)))
        .map(|start| {
            let done = i32::try_from(request.iteration()).unwrap_or(i32::MAX);
            start.saturating_sub(done).saturating_sub(1)
        });
    let next = match next {
        Ok(next) => next,
        Err(error) => return request.finish_with(Err(error)),
    };
    let shape: &[usize] = if request.config().max_batch_size > 0 { &[1, 1] } else { &[1] };
    let response = Tensor::from_vec(shape, vec![next])
        .map_err(ServingError::from)
        .and_then(|tensor| request.wanted(vec![("OUTPUT".to_owned(), tensor)]));
    if next <= 0 || response.is_err() {
        return request.finish_with(response);
    }
    request.respond(response);
    request.reschedule();
}
