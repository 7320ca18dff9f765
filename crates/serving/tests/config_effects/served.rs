//! Effects of a configuration on a server: how the model loads, what its instances see, and what clients get.

use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use galatea_serving::backend::{
    BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles, ModelInstance, ModelIo,
};
use galatea_serving::batch::{self, NamedTensors};
use galatea_serving::config::from_text;
use galatea_serving::latency::LatencyOptions;
use galatea_serving::request::{InputData, InputTensor};
use galatea_serving::{
    Core, CoreOptions, CorrelationId, InferenceRequest, ServingError, SinkAnswer,
};
use galatea_tensor::{DataType, Tensor};

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Input and output of the model where a text has none.
const ENDS: &str = "backend: 'probe' input { name: 'IN' data_type: TYPE_INT32 dims: 1 } \
                    output { name: 'OUT' data_type: TYPE_INT32 dims: 1 }";

/// Models that tell what they see. `OUT` is the first input, and `NEXT` the sum of `IN` and `LAST`.
#[derive(Clone, Debug, Default)]
struct ProbeBackend {
    log: Arc<Mutex<Vec<String>>>,
    model: String,
}

impl ProbeBackend {
    fn tell(&self, line: String) {
        self.log.lock().unwrap().push(line);
    }

    /// The lines since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }
}

impl ModelBackend for ProbeBackend {
    fn name(&self) -> &str {
        "probe"
    }
    fn platform(&self) -> &str {
        "probe_memory"
    }
    fn default_model_filename(&self) -> &str {
        "model.probe"
    }
    fn default_instance_count(&self, _: galatea_serving::backend::PlacementKind) -> i32 {
        1
    }
    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        let file = files.version_dir.join(&files.config.default_model_filename);
        let text = fs::read_to_string(file).map_err(|e| ServingError::internal(e.to_string()))?;
        let parameter = files.parameter("x");
        self.tell(format!("{} version {} is '{text}', x {parameter:?}", files.name, files.version));
        Ok(Box::new(Self { model: files.name.clone(), ..self.clone() }))
    }
}

impl BackendModel for ProbeBackend {
    fn io(&self) -> Option<&ModelIo> {
        None
    }
    fn instance(&self, at: &InstancePlacement) -> Result<Box<dyn ModelInstance>, ServingError> {
        self.tell(format!("{} instance {} on {:?}", self.model, at.name, at.kind));
        Ok(Box::new(self.clone()))
    }
}

/// A tensor with its values.
fn shown(name: &str, tensor: &Tensor) -> String {
    let bytes = tensor.as_bytes().map(<[u8]>::to_vec).unwrap_or_default();
    format!("{name} {:?} {:?} {bytes:?}", tensor.dtype(), tensor.shape())
}

impl ModelInstance for ProbeBackend {
    fn execute(&mut self, payload: BatchPayload) {
        let version = payload.context().version.clone();
        batch::execute(payload, |inputs| {
            let all: Vec<String> = inputs.iter().map(|(name, one)| shown(name, one)).collect();
            self.tell(format!("{} {version} sees {}", self.model, all.join(", ")));
            let of =
                |name: &str| inputs.iter().find(|(known, _)| known == name).map(|(_, one)| one);
            let (_, first) =
                inputs.first().ok_or_else(|| ServingError::internal("there is no input"))?;
            let mut outputs = NamedTensors::from([("OUT".to_owned(), first.clone())]);
            if let (Some(given), Some(last)) = (of("IN"), of("LAST")) {
                let last = last.to_vec::<i32>()?;
                let sums = given.to_vec::<i32>()?.into_iter().zip(last).map(|(a, b)| a + b);
                let next = Tensor::from_vec(given.shape(), sums.collect())?;
                outputs.push(("NEXT".to_owned(), next));
            }
            Ok(outputs)
        });
    }
}

/// A repository with the model `m`, and two others that ensembles may name.
fn write(root: &Path, config: &str) {
    for version in ["1", "2", "3"] {
        let folder = root.join("m").join(version);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("model.probe"), "usual").unwrap();
        fs::write(folder.join("other.probe"), "other").unwrap();
    }
    fs::write(root.join("m/config.pbtxt"), config).unwrap();
    fs::write(root.join("m/labels.txt"), "cat\ndog\n").unwrap();
    for folder in ["warmup", "initial_state"] {
        fs::create_dir_all(root.join("m").join(folder)).unwrap();
        fs::write(root.join("m").join(folder).join("seven"), 7_i32.to_le_bytes()).unwrap();
    }
    if !config.contains("ensemble_scheduling") {
        return;
    }
    for name in ["a", "b"] {
        for version in ["1", "2"] {
            fs::create_dir_all(root.join(name).join(version)).unwrap();
            fs::write(root.join(name).join(version).join("model.probe"), "step").unwrap();
        }
        let text = format!("{ENDS} version_policy {{ all {{}} }} name: '{name}'");
        fs::write(root.join(name).join("config.pbtxt"), text).unwrap();
    }
}

fn input(name: &str, datatype: DataType, shape: &[i64]) -> InputTensor {
    let count = usize::try_from(shape.iter().product::<i64>()).unwrap();
    let bytes: Vec<u8> = std::iter::repeat_n(3_i32.to_le_bytes(), count).flatten().collect();
    InputTensor {
        name: name.to_owned(),
        datatype,
        shape: shape.to_vec(),
        data: InputData::Raw(bytes.into()),
    }
}

/// The requests that every model gets, one after the other.
fn requests(batching: bool) -> Vec<InferenceRequest> {
    let shape = |len: i64| if batching { vec![len, 1] } else { vec![len] };
    let one = || input("IN", DataType::Int32, &shape(1));
    let inputs = [
        vec![one()],
        vec![one()],
        vec![input("IN", DataType::Int32, &shape(2))],
        vec![input("IN", DataType::Int32, &[1])],
        vec![input("IN", DataType::Fp32, &shape(1))],
        vec![],
        vec![one(), input("IN2", DataType::Int32, &shape(1))],
        vec![one()],
    ];
    let last = inputs.len() - 1;
    let made = inputs.into_iter().enumerate().map(|(at, inputs)| InferenceRequest {
        model_name: "m".to_owned(),
        inputs,
        correlation: CorrelationId::Uint(9),
        sequence_start: at == 0,
        sequence_end: at == last,
        ..InferenceRequest::default()
    });
    made.collect()
}

/// All that comes back for a request.
fn answers(core: &Core, request: InferenceRequest) -> String {
    let (to, from) = channel();
    let sink = move |answer: SinkAnswer| to.send(answer).unwrap();
    if let Err(error) = core.infer(request, Box::new(sink)) {
        return format!("refused: {}", error.message);
    }
    let mut all = Vec::new();
    loop {
        let answer = from.recv_timeout(PATIENCE).expect("an answer");
        all.push(match answer.result {
            Ok(Some(response)) => {
                let outputs = response.outputs.iter().map(|one| shown(&one.name, &one.tensor));
                outputs.collect::<Vec<_>>().join(", ")
            }
            Ok(None) => "nothing".to_owned(),
            Err(error) => format!("failed: {}", error.message),
        });
        if answer.is_final {
            return all.join(" and ");
        }
    }
}

/// Returns what a server does with a configuration that adds this text to an input and an output.
pub(super) fn served(text: &str) -> String {
    whole(&format!("{ENDS} {text}"))
}

/// Returns what a server does with this configuration.
pub(super) fn whole(text: &str) -> String {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), text);
    let probe = ProbeBackend::default();
    let options = CoreOptions {
        repositories: vec![root.path().to_owned()],
        exit_on_error: false,
        auto_complete: false,
        gpus: 2,
        latencies: LatencyOptions { summaries: None, histograms: true },
        rate_limits: Some(Vec::new()),
        response_cache_bytes: Some(1 << 16),
        ..CoreOptions::default()
    };
    let core = Core::start(options, vec![Arc::new(probe.clone())]).unwrap();
    // Versions load side by side.
    let mut log = probe.take();
    log.sort();
    let failures = core.load_failures().into_iter().map(|one| one.reason);
    log.extend(failures.map(|why| why.replace(&root.path().display().to_string(), "ROOT")));
    for line in core.repository_index(true) {
        log.push(format!("ready {} {:?}", line.name, line.version));
    }
    if let Ok(model) = core.resolve("m", "") {
        log.push(format!("{:?} {:?}", model.metadata(), model.labels("OUT")));
    }
    let batching = from_text(text).is_ok_and(|config| config.max_batch_size > 0);
    for request in requests(batching) {
        let answer = answers(&core, request);
        log.extend(probe.take());
        log.push(answer);
    }
    for row in core.metrics_snapshot().into_iter().filter(|row| row.model == "m") {
        let bounds = row.first_response.map(|all| all.buckets.len());
        log.push(format!("tags {:?}, buckets {bounds:?}", row.tags));
    }
    core.shutdown(PATIENCE);
    log.join("\n")
}

/// The sources of this crate and of its tests.
pub(super) fn sources() -> String {
    let mut all = String::new();
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![crate_folder.join("src"), crate_folder.join("tests")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|end| end.to_str()) {
                _ if path.is_dir() => folders.push(path),
                Some("rs") => all += &fs::read_to_string(&path).unwrap(),
                _ => {}
            }
        }
    }
    all
}
