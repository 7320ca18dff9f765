//! Requests and responses, as front ends make and read them.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use galatea_tensor::{DataType, Tensor};

use crate::cancel::CancelToken;
use crate::error::ServingError;
use crate::prepared::PreparedWork;
use crate::statistics::StageTimes;
use crate::trace::RequestTrace;
use crate::waiting_models::WaitingModels;

/// The parameter of models and requests that names a unit.
pub(crate) const EXECUTION_LOCATION: &str = "execution_location";

/// Value of a request or response parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterValue {
    /// `true` or `false`.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A real number.
    Double(f64),
    /// A text.
    String(String),
}

/// Values of an input.
#[derive(Clone, Debug)]
pub enum InputData {
    /// The bytes of the wire: little-endian elements in row-major order; BYTES elements each with a 4-byte
    /// little-endian length before them. The buffer is shared with the socket's, not copied.
    Raw(Bytes),
    /// A tensor; its shape must be that of the input.
    Tensor(Tensor),
}

impl InputData {
    /// Size in bytes; that of a tensor of strings without the strings.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        match self {
            Self::Raw(raw) => raw.len() as u64,
            Self::Tensor(tensor) => {
                let element = tensor.dtype().size_bytes().unwrap_or(size_of::<usize>());
                tensor.elements().saturating_mul(element) as u64
            }
        }
    }
}

/// An input of a request. `shape` holds the batch dimension where the model batches.
#[derive(Clone, Debug)]
pub struct InputTensor {
    /// Name in the model's configuration.
    pub name: String,
    /// Element type that the client gives.
    pub datatype: DataType,
    /// Shape that the client gives; any integer may come from the wire.
    pub shape: Vec<i64>,
    /// Values.
    pub data: InputData,
}

/// Inputs up to this number are compared one by one, which is quicker than a set.
const FEW_INPUTS: usize = 16;

/// Names of a request's inputs, each of which may come once. However many there are, a further one costs about the same.
#[derive(Debug, Default)]
pub struct DistinctNames {
    /// All names, once there are many.
    names: HashSet<String>,
}

impl DistinctNames {
    /// Adds the name of an input that comes behind those that are there; says whether none of them has it.
    pub fn insert(&mut self, name: &str, before: &[InputTensor]) -> bool {
        self.insert_name(name, before.iter().map(|input| input.name.as_str()))
    }

    /// Adds a name that comes behind others; says whether none of them is the same.
    pub fn insert_name<'a>(
        &mut self,
        name: &str,
        mut before: impl ExactSizeIterator<Item = &'a str>,
    ) -> bool {
        if before.len() < FEW_INPUTS {
            return before.all(|other| other != name);
        }
        if self.names.is_empty() {
            self.names.extend(before.map(str::to_owned));
        }
        self.names.insert(name.to_owned())
    }
}

/// To which sequence a request belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum CorrelationId {
    /// To none.
    #[default]
    None,
    /// A numbered sequence; 0 is none.
    Uint(u64),
    /// A named sequence; the empty name is none.
    String(String),
}

impl CorrelationId {
    /// Whether it stands for a sequence: neither 0 nor an empty name does.
    #[must_use]
    pub fn names_sequence(&self) -> bool {
        match self {
            Self::None => false,
            Self::Uint(number) => *number != 0,
            Self::String(name) => !name.is_empty(),
        }
    }
}

/// Counts the tokens that language models and encoders read and write for a client.
pub trait TokenMeter: fmt::Debug + Send + Sync {
    /// Counts tokens that were read or written. It is called on engines' threads and must not wait.
    fn count(&self, tokens: usize);
}

/// One inference asked for.
#[derive(Clone, Debug, Default)]
pub struct InferenceRequest {
    /// Model.
    pub model_name: String,
    /// Version in digits; empty for the latest one that is ready.
    pub model_version: String,
    /// The client's id of the request, given back in the response; may be empty.
    pub id: String,
    /// Inputs in order of arrival.
    pub inputs: Vec<InputTensor>,
    /// Work that a front end has prepared, in the place of inputs.
    pub prepared: PreparedWork,
    /// Outputs wanted; empty for all.
    pub requested_outputs: Vec<String>,
    /// Free parameters for the backend.
    pub parameters: Vec<(String, ParameterValue)>,
    /// Priority level: 1 is the most urgent, 0 the model's default.
    pub priority: u64,
    /// Longest wait in the queue in microseconds where the model's queue policy lets requests say so; 0 for none.
    pub timeout_us: u64,
    /// Sequence.
    pub correlation: CorrelationId,
    /// First request of its sequence.
    pub sequence_start: bool,
    /// Last request of its sequence.
    pub sequence_end: bool,
    /// The models that wait for the answer, where a model made the request.
    pub callers: WaitingModels,
    /// Cancellation by the client.
    pub cancel: CancelToken,
    /// Where the stages of the request are recorded, if they are.
    pub trace: Option<Arc<RequestTrace>>,
    /// Where the times of its stages are added up, if somebody wants to know them.
    pub stages: Option<Arc<StageTimes>>,
    /// Where tokens of prompts and answers are counted, if they are.
    pub token_meter: Option<Arc<dyn TokenMeter>>,
}

/// An output of a response; data type and shape are the tensor's.
#[derive(Clone, Debug)]
pub struct OutputTensor {
    /// Name in the model's configuration.
    pub name: String,
    /// Values, with the batch dimension where the model batches.
    pub tensor: Tensor,
}

/// One answer.
#[derive(Clone, Debug)]
pub struct InferenceResponse {
    /// Model.
    pub model_name: String,
    /// Version that answered.
    pub model_version: String,
    /// Id of the request.
    pub id: String,
    /// Free parameters from the backend.
    pub parameters: Vec<(String, ParameterValue)>,
    /// Outputs in the order of the model's configuration.
    pub outputs: Vec<OutputTensor>,
}

/// Arguments of a sink.
#[derive(Clone, Debug)]
pub struct SinkAnswer {
    /// A response, an error in the place of one, or nothing: then the model says only that it has finished.
    pub result: Result<Option<InferenceResponse>, ServingError>,
    /// Whether nothing more comes. An error of a decoupled model need not be the end.
    pub is_final: bool,
}

/// Receives the answers of one request, on an instance's thread: exactly one call for models that are not decoupled,
/// one or more for those that are. Exactly one call, the last, has [`SinkAnswer::is_final`]. A sink must not block.
pub type ResponseSink = Box<dyn FnMut(SinkAnswer) + Send>;

/// Words before texts about a request, which name it to its sender.
pub(crate) fn request_prefix(id: &str) -> RequestPrefix<'_> {
    RequestPrefix(id)
}

pub(crate) struct RequestPrefix<'a>(&'a str);

impl fmt::Display for RequestPrefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = if self.0.is_empty() { "<id_unknown>" } else { self.0 };
        write!(f, "[request id: {id}] ")
    }
}
