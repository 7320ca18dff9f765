//! Checking a request against the model's configuration, with Triton's texts in Triton's order.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use galatea_tensor::DataType;

use crate::config::{ModelConfig, datatype, shape_text};
use crate::error::{ServingError, text_beginning};
use crate::latency_target::LatencyTargets;
use crate::request::{
    DistinctNames, EXECUTION_LOCATION, InferenceRequest, InputData, InputTensor, request_prefix,
};
use crate::schedule::{BatchKey, Nanos, ScheduleTicket, SequenceMark};

/// Longest name of a client's that an error repeats whole, in bytes.
const MAX_SHOWN_NAME_BYTES: usize = 256;
/// Length at which lists of names end in errors, in bytes: gRPC's clients take errors of a few KiB.
const MAX_LIST_BYTES: usize = 1024;

/// Bytes of the length before each string on the wire.
pub(crate) const LENGTH_BYTES: usize = 4;

const BATCH_NOTE: &str = "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to \
                          be prepended to each input shape. If you want to specify the full shape including the \
                          batch dim in your input dims config, try setting max_batch_size to zero. See the model \
                          configuration docs for more info on max_batch_size.";

#[derive(Clone, Debug)]
struct ExpectedInput {
    name: String,
    datatype: DataType,
    dims: Vec<i64>,
    optional: bool,
    /// Whether requests of one batch must have equal shapes here.
    shapes_matter: bool,
    /// It holds a shape, the same for the whole batch: it has no batch dimension, and its values must be equal.
    is_shape: bool,
}

/// Rules for requests to a model version.
#[derive(Clone, Debug)]
pub struct RequestChecker {
    model: String,
    max_batch_size: u64,
    inputs: Vec<ExpectedInput>,
    by_name: HashMap<String, usize>,
    required: usize,
    outputs: Vec<String>,
    goals: LatencyTargets,
    /// Whether a request has one answer, which a goal may be for.
    answers_once: bool,
    /// Whether the model is to find out which required inputs a request lacks, where the number of inputs permits it.
    leaves_missing: bool,
}

impl RequestChecker {
    /// Reads a completed configuration.
    #[must_use]
    pub fn new(config: &ModelConfig) -> Self {
        let inputs: Vec<ExpectedInput> = config
            .input
            .iter()
            .filter_map(|input| {
                Some(ExpectedInput {
                    name: input.name.clone(),
                    datatype: datatype(input.data_type)?,
                    dims: input.dims.clone(),
                    optional: input.optional,
                    shapes_matter: !input.allow_ragged_batch && input.dims.contains(&-1),
                    is_shape: input.is_shape_tensor,
                })
            })
            .collect();
        Self {
            model: config.name.clone(),
            max_batch_size: u64::try_from(config.max_batch_size).unwrap_or(0),
            by_name: inputs
                .iter()
                .enumerate()
                .map(|(at, input)| (input.name.clone(), at))
                .collect(),
            required: inputs.iter().filter(|input| !input.optional).count(),
            inputs,
            outputs: config.output.iter().map(|output| output.name.clone()).collect(),
            goals: LatencyTargets::default(),
            answers_once: !config
                .model_transaction_policy
                .as_ref()
                .is_some_and(|policy| policy.decoupled),
            leaves_missing: false,
        }
    }

    /// The same for a model that gets requests without some of their required inputs, as Triton's models do: the core
    /// counts inputs only.
    #[must_use]
    pub fn leaving_missing(self, leaves_missing: bool) -> Self {
        Self { leaves_missing, ..self }
    }

    /// The same with latency goals for requests that have none of their own.
    #[must_use]
    pub fn with_goals(self, goals: LatencyTargets) -> Self {
        Self { goals, ..self }
    }

    /// Whether requests have a latency goal where they say nothing.
    pub(crate) fn has_goal(&self) -> bool {
        self.goals.latency.is_some()
    }

    /// The latency goal of a request in nanoseconds.
    fn goal(&self, request: &InferenceRequest) -> Result<Option<Nanos>, ServingError> {
        let goal = self.goals.of_request(request).map_err(|error| {
            let prefix = request_prefix(&request.id);
            ServingError::invalid_arg(format!("{prefix}{}", error.message))
        })?;
        let nanos = |goal: Duration| u64::try_from(goal.as_nanos()).ok();
        Ok(goal.and_then(nanos).filter(|_| self.answers_once))
    }

    /// Checks a request and says what a scheduler must know of it.
    ///
    /// # Errors
    /// With the first thing that is wrong.
    pub fn check(&self, request: &mut InferenceRequest) -> Result<ScheduleTicket, RequestFault> {
        self.check_names(request)?;
        self.give_axes(request);
        let prefix = request_prefix(&request.id);
        // Triton walks a hash map here; its own tests expect the last input's fault to win.
        let inputs: Vec<(&InputTensor, &ExpectedInput)> = request
            .inputs
            .iter()
            .rev()
            .filter_map(|input| Some((input, self.expected(&input.name)?)))
            .collect();
        let batch_size = self
            .batch_size(&inputs)
            .map_err(|text| ServingError::invalid_arg(format!("{prefix}{text}")))?;
        for (input, expected) in &inputs {
            self.check_type_and_shape(input, expected)
                .map_err(|text| ServingError::invalid_arg(format!("{prefix}{text}")))?;
        }
        for (input, expected) in &inputs {
            let rows = batch_size.filter(|_| !expected.is_shape);
            self.check_data(input, rows).map_err(|fault| match fault {
                InputFault::OfRequest(text) => {
                    RequestFault::Refused(ServingError::invalid_arg(format!("{prefix}{text}")))
                }
                InputFault::OfData(text) => {
                    RequestFault::BrokenStrings(ServingError::invalid_arg(text))
                }
            })?;
        }
        Ok(ScheduleTicket { batch_size: batch_size.unwrap_or(1).max(1), ..self.ticket(request)? })
    }

    /// Says what a scheduler must know of a request without inputs.
    ///
    /// # Errors
    /// With the first thing that is wrong.
    pub fn ticket(&self, request: &InferenceRequest) -> Result<ScheduleTicket, ServingError> {
        Ok(ScheduleTicket {
            id: 0,
            batch_size: 1,
            priority: request.priority,
            timeout_us: request.timeout_us,
            goal: self.goal(request)?,
            patience: None,
            key: self.key(request),
            sequence: SequenceMark::default(),
        })
    }

    /// Gives a scalar the axis of the single element that is expected: a model's own scalar has it in its
    /// configuration, which knows none.
    fn give_axes(&self, request: &mut InferenceRequest) {
        for input in request.inputs.iter_mut().filter(|input| input.shape.is_empty()) {
            let expected = self.expected(&input.name);
            let batching = |expected: &ExpectedInput| self.max_batch_size > 0 && !expected.is_shape;
            if expected.is_some_and(|one| one.dims == [1] && !batching(one)) {
                input.shape = vec![1];
                if let InputData::Tensor(tensor) = &mut input.data
                    && let Ok(with_axis) = tensor.reshape(&[1])
                {
                    *tensor = with_axis;
                }
            }
        }
    }

    fn expected(&self, name: &str) -> Option<&ExpectedInput> {
        self.by_name.get(name).and_then(|&at| self.inputs.get(at))
    }

    fn check_names(&self, request: &InferenceRequest) -> Result<(), ServingError> {
        let prefix = request_prefix(&request.id);
        let mut names = DistinctNames::default();
        for (at, input) in request.inputs.iter().enumerate() {
            let before = request.inputs.get(..at).unwrap_or_default();
            if !names.insert(&input.name, before) {
                let name = shown(&input.name);
                let text = format!("{prefix}input '{name}' already exists in request");
                return Err(ServingError::invalid_arg(text));
            }
        }
        let mut names = DistinctNames::default();
        for (at, name) in request.requested_outputs.iter().enumerate() {
            let before = request.requested_outputs.get(..at).unwrap_or_default();
            if !names.insert_name(name, before.iter().map(String::as_str)) {
                let name = shown(name);
                let text = format!("{prefix}output '{name}' already exists in request");
                return Err(ServingError::invalid_arg(text));
            }
        }
        if let Some(name) =
            request.requested_outputs.iter().find(|name| !self.outputs.contains(name))
        {
            let name = shown(name);
            let text = format!("unexpected inference output '{name}' for model '{}'", self.model);
            return Err(ServingError::invalid_arg(text));
        }
        let given = request.inputs.len();
        if given < self.required || given > self.inputs.len() {
            return Err(ServingError::invalid_arg(format!("{prefix}{}", self.count_text(request))));
        }
        if let Some(input) =
            request.inputs.iter().rev().find(|input| !self.by_name.contains_key(&input.name))
        {
            let name = shown(&input.name);
            let text = format!("unexpected inference input '{name}' for model '{}'", self.model);
            return Err(ServingError::invalid_arg(text));
        }
        if !self.leaves_missing && self.missing(request).next().is_some() {
            return Err(ServingError::invalid_arg(format!("{prefix}{}", self.count_text(request))));
        }
        Ok(())
    }

    fn missing<'a>(&'a self, request: &'a InferenceRequest) -> impl Iterator<Item = &'a str> {
        let absent = |expected: &&ExpectedInput| {
            !expected.optional && request.inputs.iter().all(|input| input.name != expected.name)
        };
        self.inputs.iter().filter(absent).map(|expected| expected.name.as_str())
    }

    fn count_text(&self, request: &InferenceRequest) -> String {
        let required = self.required;
        let all = self.inputs.len();
        let given = request.inputs.len();
        let expected = match required == all {
            true => format!("{all} inputs"),
            false => format!("number of inputs between {required} and {all}"),
        };
        let got = quoted(request.inputs.iter().rev().map(|input| input.name.as_str()));
        // With nothing missing, Triton prints the closing bracket alone.
        let missing = match self.missing(request).next() {
            Some(_) => quoted(self.missing(request)),
            None => "]".to_owned(),
        };
        format!(
            "expected {expected} but got {given} inputs for model '{}'. Got input(s) {got}, but missing required \
             input(s) {missing}. Please provide all required input(s).",
            self.model
        )
    }

    /// The common first dimension of the inputs; `None` for models that do not batch.
    fn batch_size(&self, inputs: &[(&InputTensor, &ExpectedInput)]) -> Result<Option<u64>, String> {
        if self.max_batch_size == 0 {
            return Ok(None);
        }
        let mut common: Option<i64> = None;
        for (input, _) in inputs.iter().filter(|(_, expected)| !expected.is_shape) {
            let Some(&size) = input.shape.first() else {
                return Err(format!(
                    "input '{}' has no shape but model requires batch dimension for '{}'",
                    input.name, self.model
                ));
            };
            if common.is_some_and(|common| common != size) {
                return Err(format!(
                    "input '{}' batch size does not match other inputs for '{}'",
                    input.name, self.model
                ));
            }
            common = Some(size);
        }
        // A negative size is beyond every limit, as it is in Triton's unsigned arithmetic.
        let size = common.map_or(1, |size| u64::try_from(size).unwrap_or(u64::MAX));
        if size > self.max_batch_size {
            return Err(format!(
                "inference request batch-size must be <= {} for '{}'",
                self.max_batch_size, self.model
            ));
        }
        Ok(Some(size))
    }

    fn check_type_and_shape(
        &self,
        input: &InputTensor,
        expected: &ExpectedInput,
    ) -> Result<(), String> {
        if input.datatype != expected.datatype {
            return Err(format!(
                "inference input '{}' data-type is '{}', but model '{}' expects '{}'",
                input.name, input.datatype, self.model, expected.datatype
            ));
        }
        let batching = self.max_batch_size > 0 && !expected.is_shape;
        let dims = if batching { input.shape.get(1..).unwrap_or_default() } else { &input.shape };
        let fits = dims.len() == expected.dims.len()
            && dims
                .iter()
                .zip(&expected.dims)
                .all(|(&dim, &wanted)| dim >= 0 && (wanted == -1 || dim == wanted));
        if fits {
            return Ok(());
        }
        let full: Vec<i64> =
            batching.then_some(-1).into_iter().chain(expected.dims.iter().copied()).collect();
        Err(format!(
            "unexpected shape for input '{}' for model '{}'. Expected {}, got {}. {}",
            input.name,
            self.model,
            shape_text(&full),
            shape_text(&input.shape),
            if batching { BATCH_NOTE } else { "" }
        ))
    }

    fn check_data(&self, input: &InputTensor, batch_size: Option<u64>) -> Result<(), InputFault> {
        // An empty batch is measured as a batch of one, as Triton does it.
        let dims = if batch_size.is_some() {
            input.shape.get(1..).unwrap_or_default()
        } else {
            &input.shape
        };
        let elements = dims
            .iter()
            .try_fold(batch_size.unwrap_or(1).max(1), |product, &dim| {
                product.checked_mul(u64::try_from(dim).ok()?)
            })
            .filter(|&product| i64::try_from(product).is_ok());
        let Some(elements) = elements else {
            return Err(InputFault::OfRequest(format!(
                "invalid shape for input '{}': shape {} causes total element count to exceed maximum size of {}",
                input.name,
                shape_text(&input.shape),
                i64::MAX
            )));
        };
        match (&input.data, input.datatype.size_bytes()) {
            (InputData::Raw(raw), None) => self.check_strings(&input.name, raw, elements),
            (InputData::Raw(raw), Some(size)) => {
                let given = u64::try_from(raw.len()).unwrap_or(u64::MAX);
                let size = u64::try_from(size).unwrap_or(u64::MAX);
                let expected = elements.checked_mul(size).ok_or_else(|| {
                    InputFault::OfRequest(format!(
                        "byte size overflow for input '{}': {elements} elements of type {}",
                        input.name, input.datatype
                    ))
                })?;
                self.check_bytes(&input.name, expected, given)
            }
            (InputData::Tensor(tensor), size) => {
                let dims = tensor.shape().iter().map(|&dim| i64::try_from(dim).ok());
                let same = tensor.dtype() == input.datatype
                    && dims.eq(input.shape.iter().map(|&dim| Some(dim)));
                let given = u64::try_from(tensor.elements()).unwrap_or(u64::MAX);
                // A tensor of no rows is refused like its bytes: a batch would give it a row of its neighbours'.
                self.check_elements(input, size, elements, given)?;
                if same {
                    return Ok(());
                }
                let text = format!("input '{}' has the shape {:?}", input.name, tensor.shape());
                Err(InputFault::OfRequest(text))
            }
        }
    }

    /// Compares numbers of elements, in bytes where elements have a size.
    fn check_elements(
        &self,
        input: &InputTensor,
        size: Option<usize>,
        expected: u64,
        given: u64,
    ) -> Result<(), InputFault> {
        let Some(size) = size else { return self.check_count(&input.name, expected, given) };
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        self.check_bytes(&input.name, expected.saturating_mul(size), given.saturating_mul(size))
    }

    fn check_bytes(&self, name: &str, expected: u64, given: u64) -> Result<(), InputFault> {
        if expected == given {
            return Ok(());
        }
        Err(InputFault::OfRequest(format!(
            "input byte size mismatch for input '{name}' for model '{}'. Expected {expected}, got {given}",
            self.model
        )))
    }

    fn check_strings(&self, name: &str, raw: &Bytes, expected: u64) -> Result<(), InputFault> {
        let mut rest: &[u8] = raw;
        let mut count = 0_u64;
        while !rest.is_empty() {
            if count >= expected {
                return Err(InputFault::OfRequest(format!(
                    "unexpected number of string elements {} for inference input '{name}' for model '{}', expecting \
                     {expected}",
                    count + 1,
                    self.model
                )));
            }
            let Some((length, after)) = rest.split_first_chunk::<LENGTH_BYTES>() else {
                return Err(InputFault::OfRequest(format!(
                    "incomplete string length indicator for inference input '{name}' for model '{}', expecting \
                     {LENGTH_BYTES} bytes but only {} bytes available. Please make sure the string length indicator \
                     is in one buffer.",
                    self.model,
                    rest.len()
                )));
            };
            let length = u32::from_le_bytes(*length);
            let Some(after) = usize::try_from(length).ok().and_then(|length| after.get(length..))
            else {
                return Err(InputFault::OfData(format!(
                    "incomplete string data for inference input '{name}', expecting string of length {length} but \
                     only {} bytes available",
                    after.len()
                )));
            };
            rest = after;
            count += 1;
        }
        self.check_count(name, expected, count)
    }

    fn check_count(&self, name: &str, expected: u64, given: u64) -> Result<(), InputFault> {
        if expected == given {
            return Ok(());
        }
        Err(InputFault::OfRequest(format!(
            "expected {expected} string elements for inference input '{name}' for model '{}', got {given}",
            self.model
        )))
    }

    /// Shapes of the inputs that must be equal in a batch, the values of those that are shapes themselves, and which
    /// optional inputs are there.
    fn key(&self, request: &InferenceRequest) -> BatchKey {
        let mut key = Vec::new();
        let has_optional = self.required < self.inputs.len();
        let matters = |one: &&ExpectedInput| has_optional || one.shapes_matter || one.is_shape;
        for expected in self.inputs.iter().filter(matters) {
            let given = request.inputs.iter().find(|input| input.name == expected.name);
            if has_optional {
                key.push(i64::from(given.is_some()));
            }
            let Some(input) = given else { continue };
            if expected.is_shape {
                key.extend(&input.shape);
                key.extend(words(&input.data));
            } else if expected.shapes_matter {
                key.extend(input.shape.iter().skip(usize::from(self.max_batch_size > 0)));
            }
        }
        if let Some((_, place)) =
            request.parameters.iter().find(|(name, _)| name == EXECUTION_LOCATION)
        {
            // Requests for different units are different batches.
            let text = format!("{place:?}");
            key.extend(text.bytes().map(i64::from));
        }
        BatchKey(key)
    }
}

/// The bytes of an input in numbers, behind how many there are.
fn words(data: &InputData) -> Vec<i64> {
    let bytes = match data {
        InputData::Raw(raw) => raw.to_vec(),
        InputData::Tensor(tensor) => tensor
            .contiguous()
            .and_then(|tensor| tensor.as_bytes().map(<[u8]>::to_vec))
            .unwrap_or_default(),
    };
    let word = |part: &[u8]| {
        let mut word = [0; 8];
        word.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
        i64::from_le_bytes(word)
    };
    let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    std::iter::once(length).chain(bytes.chunks(8).map(word)).collect()
}

/// Reason why a request does not run.
#[derive(Debug)]
pub enum RequestFault {
    /// It does not fit the model, so that nobody takes it.
    Refused(ServingError),
    /// Its strings break off. Triton's models find that, not its core, so that clients see a request that failed.
    BrokenStrings(ServingError),
}

impl From<ServingError> for RequestFault {
    fn from(error: ServingError) -> Self {
        Self::Refused(error)
    }
}

impl From<RequestFault> for ServingError {
    fn from(fault: RequestFault) -> Self {
        match fault {
            RequestFault::Refused(error) | RequestFault::BrokenStrings(error) => error,
        }
    }
}

/// Fault of an input's data: said by the core, with the request's id, or by what reads the strings.
enum InputFault {
    OfRequest(String),
    OfData(String),
}

/// The beginning of a name that a client chose, which may be of any length.
fn shown(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_SHOWN_NAME_BYTES {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("{}…", text_beginning(name, MAX_SHOWN_NAME_BYTES)))
}

/// A list of names, as many as have room in an error.
fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut list = String::from("[");
    for name in names {
        if list.len() > 1 {
            list.push(',');
        }
        if list.len() > MAX_LIST_BYTES {
            list.push('…');
            break;
        }
        list.extend(["'", &shown(name), "'"]);
    }
    list.push(']');
    list
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
