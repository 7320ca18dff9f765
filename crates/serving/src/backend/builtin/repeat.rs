//! `repeat`: a model that gives one response for each element of `IN`.
//!
//! Inputs: `IN` (INT32, N elements), `DELAY` (UINT32, of the same shape, milliseconds before each response), `WAIT`
//! (UINT32, milliseconds until the instance takes its next request, whatever this one still answers). Response i has
//! `OUT` = `IN[i]` and `IDX` = i (UINT32). The completion flag comes alone behind the last response; with the parameter
//! `final_with_response` = `true` it comes with it. A model that is not decoupled has one response, so `IN` has one
//! element there.

use std::time::Duration;

use galatea_tensor::Tensor;

use super::delay;
use crate::backend::{
    ActiveRequest, BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles,
    ModelInstance, ModelIo,
};
use crate::batch;
use crate::config::shape_text;
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
        let decoupled = policy.is_some_and(|policy| policy.decoupled);
        let joined = files.parameter("final_with_response").is_some_and(|text| text == "true");
        Ok(Box::new(RepeatModel { decoupled, joined }))
    }
}

#[derive(Clone, Copy)]
struct RepeatModel {
    decoupled: bool,
    /// The last response says that it is the last.
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
            self.begin(request);
        }
    }
}

/// Parameters of a request.
struct RepeatPlan {
    values: Vec<i32>,
    delays: Vec<u32>,
    wait: u32,
}

impl RepeatPlan {
    fn of(request: &ActiveRequest) -> Result<Self, ServingError> {
        let shape = |name: &str| {
            let inputs = request.request.inputs.iter();
            inputs.clone().find(|input| input.name == name).map(|input| input.shape.as_slice())
        };
        if let (Some(elements), Some(delays)) = (shape("IN"), shape("DELAY"))
            && elements != delays
        {
            return Err(ServingError::invalid_arg(format!(
                "expected IN and DELAY shape to match, got {} and {}",
                shape_text(elements),
                shape_text(delays)
            )));
        }
        Ok(Self {
            values: values(request, "IN")?.to_vec()?,
            delays: values(request, "DELAY")?.to_vec()?,
            wait: values(request, "WAIT")?.to_vec()?.first().copied().unwrap_or(0),
        })
    }
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
    /// Answers on a thread of its own, so that the next request need not wait for the responses of this one.
    fn begin(self, request: ActiveRequest) {
        let plan = RepeatPlan::of(&request).and_then(|plan| match plan.values.len() {
            count if count != 1 && !self.decoupled => Err(ServingError::invalid_arg(format!(
                "model '{}' is not decoupled, so that IN must have 1 element, found {count}",
                request.config().name
            ))),
            _ => Ok(plan),
        });
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => return request.finish_with(Err(error)),
        };
        let wait = Duration::from_millis(u64::from(plan.wait));
        let cancel = request.request.cancel.clone();
        let answering = std::thread::Builder::new().name("repeat".to_owned());
        if let Err(error) = answering.spawn(move || self.answer(request, &plan)) {
            // The request that the thread was to have is answered when it is dropped.
            tracing::error!("cannot start a thread that answers a request: {error}");
        }
        delay::wait_while(wait, || !cancel.is_cancelled());
    }

    fn answer(self, mut request: ActiveRequest, plan: &RepeatPlan) {
        let last = plan.values.len().checked_sub(1);
        for (at, &value) in plan.values.iter().enumerate() {
            pause(plan.delays.get(at).copied().unwrap_or(0), &request);
            if request.is_cancelled() {
                break;
            }
            let response = response(&request, value, at);
            if (self.joined || !self.decoupled) && Some(at) == last {
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
