//! `repeat`: a decoupled model that gives one response for each element of `IN`.
//!
//! Inputs: `IN` (INT32, N elements), `DELAY` (UINT32, N elements, milliseconds before each response), `WAIT` (UINT32,
//! milliseconds before the first). Response i has `OUT` = `IN[i]` and `IDX` = i (UINT32). The completion flag comes
//! alone behind the last response; with the parameter `final_with_response` = `true` it comes with it.

use std::time::Duration;

use galatea_tensor::Tensor;

use super::delay;
use crate::backend::{
    ActiveRequest, BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles,
    ModelInstance, ModelIo,
};
use crate::batch;
use crate::error::ServingError;

/// See the module.
#[derive(Debug)]
pub(super) struct RepeatBackend;

impl ModelBackend for RepeatBackend {
    fn name(&self) -> &'static str {
        "repeat"
    }

    fn default_model_filename(&self) -> &'static str {
        ""
    }

    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        let policy = files.config.model_transaction_policy.as_ref();
        if !policy.is_some_and(|policy| policy.decoupled) {
            return Err(ServingError::invalid_arg(format!(
                "model '{}' must have a decoupled transaction policy to use the repeat backend",
                files.name
            )));
        }
        let joined = files.parameter("final_with_response").is_some_and(|text| text == "true");
        Ok(Box::new(RepeatModel { joined }))
    }
}

#[derive(Clone, Copy)]
struct RepeatModel {
    joined: bool,
}

impl BackendModel for RepeatModel {
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

impl ModelInstance for RepeatModel {
    fn execute(&mut self, payload: BatchPayload) {
        for request in payload.detach() {
            self.answer(request);
        }
    }
}

/// Parameters of a request.
struct RepeatPlan {
    values: Vec<i32>,
    delays: Vec<u32>,
    wait: u32,
}

fn plan(request: &ActiveRequest) -> Result<RepeatPlan, ServingError> {
    Ok(RepeatPlan {
        values: values(request, "IN")?.to_vec()?,
        delays: values(request, "DELAY")?.to_vec()?,
        wait: values(request, "WAIT")?.to_vec()?.first().copied().unwrap_or(0),
    })
}

/// An input with all its elements in a row.
pub(super) fn values(request: &ActiveRequest, name: &str) -> Result<Tensor, ServingError> {
    let inputs = batch::gather(request.config(), std::slice::from_ref(request))?;
    let found = inputs.into_iter().find(|(input, _)| input == name);
    let Some((_, tensor)) = found else {
        return Err(ServingError::invalid_arg(format!("the request has no input '{name}'")));
    };
    Ok(tensor.contiguous()?.reshape(&[tensor.elements()])?)
}

impl RepeatModel {
    fn answer(self, mut request: ActiveRequest) {
        let plan = match plan(&request) {
            Ok(plan) => plan,
            Err(error) => return request.finish_with(Err(error)),
        };
        pause(plan.wait, &request);
        let last = plan.values.len().checked_sub(1);
        for (at, &value) in plan.values.iter().enumerate() {
            pause(plan.delays.get(at).copied().unwrap_or(0), &request);
            if request.is_cancelled() {
                break;
            }
            let response = response(&request, value, at);
            if self.joined && Some(at) == last {
                return request.finish_with(response);
            }
            request.respond(response);
        }
        request.finish();
    }
}

fn pause(millis: u32, request: &ActiveRequest) {
    delay::wait_while(Duration::from_millis(u64::from(millis)), || !request.is_cancelled());
}

fn response(
    request: &ActiveRequest,
    value: i32,
    at: usize,
) -> Result<Vec<crate::request::OutputTensor>, ServingError> {
    let shape: &[usize] = if request.config().max_batch_size > 0 { &[1, 1] } else { &[1] };
    let index = u32::try_from(at).unwrap_or(u32::MAX);
    let outputs = vec![
        ("OUT".to_owned(), Tensor::from_vec(shape, vec![value])?),
        ("IDX".to_owned(), Tensor::from_vec(shape, vec![index])?),
    ];
    request.wanted(outputs)
}
