use std::sync::mpsc::{Receiver, channel};

use galatea_tensor::{ByteString, DataType, Tensor};

use super::all;
use crate::backend::{
    BatchPayload, ExecutionContext, HostLink, InstancePlacement, ModelFiles, ModelInstance,
    PlacementKind,
};
use crate::config::{self, ModelConfig};
use crate::error::ServingError;
use crate::payload::ActiveRequest;
use crate::request::{InferenceRequest, InputData, InputTensor, SinkAnswer};
use crate::trace::{RequestTrace, TraceEntry, TraceEvent, TraceLevel, TraceSink};
use std::sync::Arc;

fn files(config: &str) -> ModelFiles {
    let config: ModelConfig = config::from_text(config).unwrap();
    ModelFiles {
        name: "m".to_owned(),
        version: 1,
        model_dir: "/nowhere".into(),
        version_dir: "/nowhere/1".into(),
        config: Arc::new(config),
        settings: galatea_tensor::OrderedMap::new(),
        metal: Arc::default(),
        auto_complete: true,
        host: HostLink::default(),
    }
}

fn load(
    backend: &str,
    config: &str,
) -> Result<(Box<dyn ModelInstance>, Arc<ModelConfig>), ServingError> {
    let files = files(config);
    let backend = all().into_iter().find(|one| one.name() == backend).unwrap();
    let model = backend.load(&files)?;
    let placement = InstancePlacement {
        name: "m_0_2".to_owned(),
        kind: PlacementKind::Cpu,
        config: Arc::clone(&files.config),
    };
    Ok((model.instance(&placement)?, files.config))
}

fn input(name: &str, tensor: Tensor) -> InputTensor {
    InputTensor {
        name: name.to_owned(),
        datatype: tensor.dtype(),
        shape: tensor.shape().iter().map(|&dim| i64::try_from(dim).unwrap()).collect(),
        data: InputData::Tensor(tensor),
    }
}

fn run(
    instance: &mut dyn ModelInstance,
    config: &Arc<ModelConfig>,
    inputs: Vec<InputTensor>,
) -> (Receiver<SinkAnswer>, Arc<ExecutionContext>) {
    let context = ExecutionContext::new("m", 1, Arc::clone(config));
    let (to, from) = channel();
    let request = InferenceRequest { inputs, ..InferenceRequest::default() };
    let sink = Box::new(move |answer| to.send(answer).unwrap());
    let active = ActiveRequest::new(request, 1, Arc::clone(&context), sink);
    instance.execute(BatchPayload::new(vec![active], Arc::clone(&context)));
    (from, context)
}

fn ints(answer: &SinkAnswer, name: &str) -> Vec<i32> {
    let response = answer.result.as_ref().unwrap().as_ref().unwrap();
    let output = response.outputs.iter().find(|output| output.name == name).unwrap();
    output.tensor.to_vec::<i32>().unwrap()
}

fn vector<const N: usize>(values: [i32; N]) -> Tensor {
    Tensor::from_vec(&[N], values.to_vec()).unwrap()
}

fn unsigned<const N: usize>(values: [u32; N]) -> Tensor {
    Tensor::from_vec(&[N], values.to_vec()).unwrap()
}

const REPEAT: &str = "name: 'm' backend: 'repeat' model_transaction_policy { decoupled: true } \
    input [ { name: 'IN' data_type: TYPE_INT32 dims: -1 }, { name: 'DELAY' data_type: TYPE_UINT32 dims: -1 }, \
    { name: 'WAIT' data_type: TYPE_UINT32 dims: 1 } ] \
    output [ { name: 'OUT' data_type: TYPE_INT32 dims: 1 }, { name: 'IDX' data_type: TYPE_UINT32 dims: 1 } ]";

#[test]
fn repeat_answers_each_element_and_then_says_that_it_is_done() {
    for (extra, last_is_empty) in [
        ("", true),
        (" parameters { key: 'final_with_response' value { string_value: 'true' } }", false),
    ] {
        let (mut instance, config) = load("repeat", &format!("{REPEAT}{extra}")).unwrap();
        let inputs = vec![
            input("IN", vector([7, 8, 9])),
            input("DELAY", unsigned([0, 1, 0])),
            input("WAIT", unsigned([0])),
        ];
        let (from, context) = run(instance.as_mut(), &config, inputs);
        let answers: Vec<SinkAnswer> = from.iter().collect();
        assert_eq!(answers.len(), 3 + usize::from(last_is_empty));
        assert_eq!(answers.iter().filter(|answer| answer.is_final).count(), 1);
        let last = answers.last().unwrap();
        assert!(last.is_final && matches!(last.result, Ok(None)) == last_is_empty);
        let values: Vec<i32> = answers[..3].iter().flat_map(|one| ints(one, "OUT")).collect();
        assert_eq!(values, [7, 8, 9]);
        let stats = context.statistics.snapshot("m", "1");
        assert_eq!((stats.inference_count, stats.execution_count), (1, 1));
        assert_eq!((stats.inference_stats.success.count, context.unanswered()), (1, 0));
    }
}

#[test]
fn repeat_without_elements_is_only_done() {
    let (mut instance, config) = load("repeat", REPEAT).unwrap();
    let empty = || Tensor::from_vec(&[0], Vec::<u32>::new()).unwrap();
    let none = Tensor::from_vec(&[0], Vec::<i32>::new()).unwrap();
    let inputs = vec![input("IN", none), input("DELAY", empty()), input("WAIT", unsigned([0]))];
    let (from, _) = run(instance.as_mut(), &config, inputs);
    let answers: Vec<SinkAnswer> = from.iter().collect();
    assert!(matches!(answers[..], [SinkAnswer { result: Ok(None), is_final: true }]));
}

#[test]
fn square_counts_its_responses_by_index() {
    let config = "name: 'm' backend: 'square' model_transaction_policy { decoupled: true } \
        input { name: 'IN' data_type: TYPE_INT32 dims: 1 } output { name: 'OUT' data_type: TYPE_INT32 dims: 1 }";
    let (mut instance, config) = load("square", config).unwrap();
    let (from, context) = run(instance.as_mut(), &config, vec![input("IN", vector([2]))]);
    let answers: Vec<SinkAnswer> = from.try_iter().collect();
    assert_eq!(answers.len(), 3);
    assert_eq!(ints(&answers[1], "OUT"), [2]);
    let stats = context.statistics.snapshot("m", "1").response_stats;
    let successes: Vec<u64> = stats.values().map(|one| one.success.count).collect();
    assert_eq!((successes, stats["2"].empty_response.count), (vec![1, 1, 0], 1));
    let (from, _) = run(
        instance.as_mut(),
        &load("square", &text(&config)).unwrap().1,
        vec![input("IN", vector([-1]))],
    );
    assert!(from.recv().unwrap().result.is_err());
}

fn text(_: &ModelConfig) -> String {
    "name: 'm' backend: 'square' model_transaction_policy { decoupled: true } \
     input { name: 'IN' data_type: TYPE_INT32 dims: 1 } output { name: 'OUT' data_type: TYPE_INT32 dims: 1 }"
        .to_owned()
}

#[test]
fn decoupled_backends_refuse_other_models() {
    let config = "name: 'm' backend: 'square' input { name: 'IN' data_type: TYPE_INT32 dims: 1 } \
        output { name: 'OUT' data_type: TYPE_INT32 dims: 1 }";
    let error = load("square", config).err().unwrap();
    assert!(error.message.contains("decoupled"), "{error}");
}

#[test]
fn repeat_gives_a_model_that_is_not_decoupled_its_one_answer() {
    let config = REPEAT.replace("model_transaction_policy { decoupled: true }", "");
    let (mut instance, config) = load("repeat", &config).unwrap();
    let mut ask = |values: Tensor, delays: Tensor| {
        let wait = input("WAIT", unsigned([0]));
        let inputs = vec![input("IN", values), input("DELAY", delays), wait];
        let (from, _) = run(instance.as_mut(), &config, inputs);
        let answer = from.recv().unwrap();
        assert!(answer.is_final);
        answer
    };
    assert_eq!(ints(&ask(vector([7]), unsigned([0])), "OUT"), [7]);
    let error = |answer: SinkAnswer| answer.result.unwrap_err().message;
    let text = error(ask(vector([7, 8]), unsigned([0, 0])));
    assert!(text.contains("IN must have 1 element, found 2"), "{text}");
    let text = error(ask(vector([1]), unsigned([0, 0])));
    assert_eq!(text, "expected IN and DELAY shape to match, got [1] and [2]");
}

#[test]
fn repeat_takes_its_next_request_while_it_answers() {
    let (mut instance, config) = load("repeat", REPEAT).unwrap();
    let inputs = |delay| {
        vec![
            input("IN", vector([7])),
            input("DELAY", unsigned([delay])),
            input("WAIT", unsigned([0])),
        ]
    };
    // The first one would answer in an hour.
    let (slow, _kept) = run(instance.as_mut(), &config, inputs(3_600_000));
    let (from, _) = run(instance.as_mut(), &config, inputs(0));
    assert_eq!(ints(&from.recv().unwrap(), "OUT"), [7]);
    assert!(slow.try_recv().is_err());
}

#[test]
fn identity_pairs_by_number_and_gives_what_is_there() {
    let config = "name: 'm' backend: 'identity' \
        input [ { name: 'INPUT1' data_type: TYPE_INT32 dims: -1 optional: true }, { name: 'INPUT0' data_type: TYPE_INT32 dims: -1 } ] \
        output [ { name: 'OUTPUT0' data_type: TYPE_INT32 dims: -1 }, { name: 'OUTPUT1' data_type: TYPE_INT32 dims: -1 } ]";
    let (mut instance, config) = load("identity", config).unwrap();
    assert!(instance.time_depends_on_sizes_only());
    let both = vec![input("INPUT1", vector([1])), input("INPUT0", vector([0]))];
    let (from, _) = run(instance.as_mut(), &config, both);
    let answer = from.recv().unwrap();
    assert_eq!((ints(&answer, "OUTPUT0"), ints(&answer, "OUTPUT1")), (vec![0], vec![1]));
    let (from, _) = run(instance.as_mut(), &config, vec![input("INPUT0", vector([5]))]);
    let answer = from.recv().unwrap();
    assert_eq!((ints(&answer, "OUTPUT0"), ints(&answer, "OUTPUT1")), (vec![5], vec![0]));
}

#[test]
fn identity_gives_zeros_of_every_type_for_an_absent_input() {
    for (config_type, dims, shape) in [
        ("TYPE_FP64", "[2, 3]", vec![1, 2, 3]),
        ("TYPE_STRING", "[-1, 2]", vec![1, 1, 2]),
        ("TYPE_BOOL", "[1]", vec![1, 1]),
    ] {
        let config = format!(
            "name: 'm' backend: 'identity' max_batch_size: 4 \
            input [ {{ name: 'INPUT0' data_type: TYPE_INT32 dims: 1 }}, \
            {{ name: 'INPUT1' data_type: {config_type} dims: {dims} optional: true }} ] \
            output [ {{ name: 'OUTPUT0' data_type: TYPE_INT32 dims: 1 }}, \
            {{ name: 'OUTPUT1' data_type: {config_type} dims: {dims} }} ]"
        );
        let (mut instance, config) = load("identity", &config).unwrap();
        let given = Tensor::from_vec(&[1, 1], vec![5]).unwrap();
        let (from, _) = run(instance.as_mut(), &config, vec![input("INPUT0", given)]);
        let response = from.recv().unwrap().result.unwrap().unwrap();
        let zeros = &response.outputs[1].tensor;
        assert_eq!(zeros.shape(), shape);
        let empty = match zeros.dtype() {
            DataType::Bytes => {
                zeros.to_vec::<ByteString>().unwrap().iter().all(|text| text.as_bytes().is_empty())
            }
            _ => zeros.as_bytes().unwrap().iter().all(|&byte| byte == 0),
        };
        assert!(empty, "{config_type}");
    }
}

/// Runs requests with such inputs as one batch.
fn run_batch(
    instance: &mut dyn ModelInstance,
    config: &Arc<ModelConfig>,
    requests: Vec<Vec<InputTensor>>,
) -> Vec<SinkAnswer> {
    let context = ExecutionContext::new("m", 1, Arc::clone(config));
    let (receivers, active): (Vec<_>, Vec<_>) = requests
        .into_iter()
        .map(|inputs| {
            let (to, from) = channel();
            let request = InferenceRequest { inputs, ..InferenceRequest::default() };
            let sink = Box::new(move |answer| to.send(answer).unwrap());
            (from, ActiveRequest::new(request, 1, Arc::clone(&context), sink))
        })
        .unzip();
    instance.execute(BatchPayload::new(active, context));
    receivers.iter().map(|from: &Receiver<SinkAnswer>| from.recv().unwrap()).collect()
}

#[test]
fn ragged_inputs_keep_their_shapes() {
    let row = |values: &[i32]| Tensor::from_vec(&[1, values.len()], values.to_vec()).unwrap();
    let config = "name: 'm' backend: 'identity' max_batch_size: 4 \
        input { name: 'INPUT0' data_type: TYPE_INT32 dims: -1 allow_ragged_batch: true } \
        output { name: 'OUTPUT0' data_type: TYPE_INT32 dims: -1 }";
    let (mut instance, config) = load("identity", config).unwrap();
    let given = [&[1, 2, 3][..], &[4], &[]];
    let requests = given.iter().map(|values| vec![input("INPUT0", row(values))]).collect();
    let answers = run_batch(instance.as_mut(), &config, requests);
    for (answer, values) in answers.iter().zip(given) {
        let response = answer.result.as_ref().unwrap().as_ref().unwrap();
        assert_eq!(response.outputs[0].tensor.shape(), [1, values.len()]);
        assert_eq!(ints(answer, "OUTPUT0"), values);
    }
    let config = SEQUENCE
        .replace("max_batch_size: 0", "max_batch_size: 4")
        .replace("TYPE_INT32 dims: 1 }     output", "TYPE_INT32 dims: -1 }     output")
        .replace(
            "data_type: TYPE_INT32 dims: 1 }",
            "data_type: TYPE_INT32 dims: -1 allow_ragged_batch: true }",
        );
    let config = config.replacen(
        "name: 'OUTPUT' data_type: TYPE_INT32 dims: -1 allow_ragged_batch: true",
        "name: 'OUTPUT' data_type: TYPE_INT32 dims: -1",
        1,
    );
    for backend in ["sequence", "dyna_sequence"] {
        let (mut instance, config) = load(backend, &config).unwrap();
        let requests = vec![vec![input("INPUT", row(&[1, 2]))], vec![input("INPUT", row(&[5]))]];
        let answers = run_batch(instance.as_mut(), &config, requests);
        let sums: Vec<Vec<i32>> = answers.iter().map(|answer| ints(answer, "OUTPUT")).collect();
        assert_eq!(sums, [vec![3, 3], vec![5]], "{backend}");
    }
}

#[test]
fn identity_refuses_what_it_cannot_repeat() {
    let config = "name: 'm' backend: 'identity' input { name: 'A' data_type: TYPE_INT32 dims: 1 } \
        output { name: 'B' data_type: TYPE_FP32 dims: 1 }";
    let error = load("identity", config).err().unwrap();
    assert!(error.message.contains("'B'") && error.message.contains("INT32"), "{error}");
    let delay = config.replace("FP32", "INT32")
        + " parameters { key: 'execute_delay_ms' value { string_value: 'x' } }";
    let error = load("identity", &delay).err().unwrap();
    assert!(
        error.message.contains("'execute_delay_ms'") && error.message.contains("'x'"),
        "{error}"
    );
}

#[test]
fn the_delay_grows_with_the_number_of_the_instance() {
    let files = files(
        "name: 'm' parameters [ { key: 'execute_delay_ms' value { string_value: '10' } }, \
         { key: 'instance_wise_delay_multiplier' value { string_value: '4' } } ]",
    );
    let delay = super::delay::ExecuteDelay::from_files(&files).unwrap();
    let millis = |name: &str| {
        let placement = InstancePlacement {
            name: name.to_owned(),
            kind: PlacementKind::Cpu,
            config: Arc::clone(&files.config),
        };
        delay.of(&placement).as_millis()
    };
    assert_eq!((millis("m_0_0"), millis("m_0_1"), millis("m_0_2")), (10, 40, 80));
}

#[test]
fn a_version_gives_the_parameters_on_which_the_configuration_is_silent() {
    let folder = std::env::temp_dir().join(format!("galatea-parameters-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut files = files("name: 'm' parameters { key: 'said' value { string_value: '1' } }");
    files.version_dir = folder.clone();
    let number = |name| super::delay::number(&files, name).map_err(|error| error.message);
    assert_eq!((number("said"), number("silent")), (Ok(1), Ok(0)));
    let write = |text: &str| std::fs::write(folder.join("parameters.json"), text).unwrap();
    write("{\"said\": 2, \"silent\": 3, \"text\": \"4\", \"list\": [5]}");
    assert_eq!((number("said"), number("silent"), number("text")), (Ok(1), Ok(3), Ok(4)));
    assert!(number("list").unwrap_err().contains("found '[5]'"));
    write("[]");
    assert!(number("silent").unwrap_err().contains("must be an object of parameters"));
    std::fs::remove_dir_all(folder).unwrap();
}

const SEQUENCE: &str = "name: 'm' backend: 'sequence' max_batch_size: 0 input { name: 'INPUT' data_type: TYPE_INT32 dims: 1 } \
    output { name: 'OUTPUT' data_type: TYPE_INT32 dims: 1 } sequence_batching { control_input [ \
    { name: 'START' control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } }, \
    { name: 'END' control { kind: CONTROL_SEQUENCE_END int32_false_true: [0, 1] } }, \
    { name: 'READY' control { kind: CONTROL_SEQUENCE_READY int32_false_true: [0, 1] } }, \
    { name: 'CORRID' control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } } ] }";

#[test]
fn an_unfit_scheduler_is_refused() {
    let config =
        "name: 'm' backend: 'sequence' input { name: 'INPUT' data_type: TYPE_INT32 dims: 1 }";
    assert!(load("sequence", config).err().unwrap().message.contains("'sequence_batching'"));
    let config = SEQUENCE.replace("{ name: 'CORRID'", "{ name: 'OTHER'").replace(
        "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64",
        "kind: CONTROL_SEQUENCE_READY int32_false_true: [0, 1]",
    );
    assert!(load("dyna_sequence", &config).err().unwrap().message.contains("CORRID"));
}

#[test]
fn a_request_that_cannot_run_again_says_so() {
    let config = "name: 'm' backend: 'iterative_sequence' model_transaction_policy { decoupled: true } \
        input { name: 'INPUT' data_type: TYPE_INT32 dims: 1 } output { name: 'OUTPUT' data_type: TYPE_INT32 dims: 1 }";
    let (mut instance, config) = load("iterative_sequence", config).unwrap();
    let (from, _) = run(instance.as_mut(), &config, vec![input("INPUT", vector([3]))]);
    let answers: Vec<SinkAnswer> = from.try_iter().collect();
    assert_eq!(ints(&answers[0], "OUTPUT"), [2]);
    let error = answers[1].result.as_ref().unwrap_err();
    assert!(
        error.message.contains("TRITONSERVER_REQUEST_RELEASE_RESCHEDULE") && answers[1].is_final
    );
    assert_eq!(DataType::Int32.wire_name(), "INT32");
}

#[derive(Debug, Default)]
struct KeptTrace(std::sync::Mutex<Vec<&'static str>>);

impl TraceSink for KeptTrace {
    fn finished(&self, entries: Vec<TraceEntry>) {
        let stamps = entries.into_iter().filter_map(|entry| match entry.event {
            TraceEvent::Stamp { name, .. } => Some(name),
            _ => None,
        });
        self.0.lock().unwrap().extend(stamps.filter(|name| name.starts_with("CUSTOM_")));
    }
}

/// Stages that the backend adds to the trace of one request.
fn activities(parameters: &[(&str, &str)]) -> Result<Vec<&'static str>, ServingError> {
    let mut config = "input { name: \"INPUT0\" data_type: TYPE_INT32 dims: -1 } \
                      output { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: -1 }"
        .to_owned();
    for (name, value) in parameters {
        config +=
            &format!(" parameters {{ key: \"{name}\" value {{ string_value: \"{value}\" }} }}");
    }
    let (mut instance, config) = load("identity", &config)?;
    let kept = Arc::new(KeptTrace::default());
    let level = TraceLevel { timestamps: true, tensors: false };
    let trace = RequestTrace::new(level, kept.clone());
    let inputs = vec![input("INPUT0", Tensor::from_vec(&[1], vec![7_i32]).unwrap())];
    let request = InferenceRequest { inputs, trace: Some(trace), ..InferenceRequest::default() };
    let context = ExecutionContext::new("m", 1, Arc::clone(&config));
    let (to, from) = channel();
    let sink = Box::new(move |answer| to.send(answer).unwrap());
    if let Some(trace) = &request.trace {
        trace.begin("m", "1", &request);
    }
    let active = ActiveRequest::new(request, 1, Arc::clone(&context), sink);
    instance.execute(BatchPayload::new(vec![active], context));
    assert_eq!(ints(&from.recv().unwrap(), "OUTPUT0"), [7]);
    let found = kept.0.lock().unwrap().clone();
    Ok(found)
}

#[test]
fn identity_adds_activities_to_traces() {
    assert_eq!(activities(&[]).unwrap(), [""; 0]);
    let enabled = ("enable_custom_tracing", "true");
    let first = ["CUSTOM_ACTIVITY_START", "CUSTOM_ACTIVITY_END", "CUSTOM_SINGLE_ACTIVITY"];
    assert_eq!(activities(&[enabled]).unwrap(), first);
    let nested =
        activities(&[enabled, ("nested_span_count", "3"), ("single_activity_frequency", "2")]);
    let expected = [
        &first[..],
        &["CUSTOM_ACTIVITY0_START", first[2], "CUSTOM_ACTIVITY1_START", "CUSTOM_ACTIVITY2_START"],
        &[first[2], "CUSTOM_ACTIVITY2_END", "CUSTOM_ACTIVITY1_END", "CUSTOM_ACTIVITY0_END"],
    ];
    assert_eq!(nested.unwrap(), expected.concat());
    for name in [enabled.0, "nested_span_count"] {
        let error = activities(&[(name, "11")]).unwrap_err();
        assert!(error.message.contains(&format!("parameter '{name}'")), "{error}");
    }
}
