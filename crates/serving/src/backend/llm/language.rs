//! Language models under names of tensors: those of Triton's vLLM backend, as [`super::request`] reads and
//! [`super::reply`] writes them.

use std::sync::Arc;

use galatea_llm::model::LanguageModel;
use galatea_tensor::DataType;

use super::prompts::{RequestLink, submit};
use super::residency::InUse;
use super::{reply, reply::ResponseMaker, request};
use crate::backend::{ActiveRequest, ModelIo, ModelTensor};

/// Inputs and outputs of Triton's vLLM backend.
pub(super) fn io() -> ModelIo {
    let tensor = |&(name, datatype, dim): &(&str, DataType, i64), optional| ModelTensor {
        name: name.to_owned(),
        datatype,
        dims: vec![dim],
        ranked: true,
        optional,
    };
    ModelIo {
        inputs: request::INPUTS
            .iter()
            .map(|input| tensor(&(input.0, input.1, 1), input.0 != request::TEXT))
            .collect(),
        outputs: reply::OUTPUTS.iter().map(|output| tensor(output, false)).collect(),
        ..ModelIo::default()
    }
}

/// Hands a request with tensors to the engine, whose thread answers it.
pub(super) fn start(model: &LanguageModel, in_use: Arc<InUse>, request: ActiveRequest) {
    let prepared = request::read(&request);
    let prepared = prepared.and_then(|asked| asked.prepare(model, &request.request.id));
    let (asked, generation) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return request.finish_with(Err(error)),
    };
    let link = RequestLink::of(&request.request);
    let tokens = generation.prompt.len();
    let reply = ResponseMaker::new(request, asked, tokens, Arc::clone(model.tokenizer()));
    submit(model, in_use, vec![generation], link, reply);
}
