//! What tests of models in Python share: the interpreter, models on disk, a core that serves them, and requests.

#![allow(dead_code, reason = "each of the tests needs a part of it")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use galatea_serving::backend::ModelBackend;
use galatea_serving::request::{InputData, InputTensor};
use galatea_serving::{
    ControlMode, Core, CoreOptions, InferenceRequest, InferenceResponse, ServingError, SinkAnswer,
};
use galatea_tensor::{DataType, OrderedMap, Tensor, encode_byte_strings};
use tempfile::TempDir;

/// Long enough for any machine, also to import torch; a test that reaches it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The configuration of a model with one input and one output of integers.
pub(crate) const ONE_IN_ONE_OUT: &str = "max_batch_size: 0 input { name: \"IN\" data_type: TYPE_INT32 dims: -1 } \
    output { name: \"OUT\" data_type: TYPE_INT32 dims: -1 }";

/// An interpreter with NumPy: that of `GALATEA_PYTHON`, of the environment of `cargo xtask python`, or `python3`. Where
/// there is none, it says so.
pub(crate) fn python() -> Option<&'static str> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let own = std::env::var("GALATEA_PYTHON").ok();
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../venv/bin/python");
        let built = Some(built.to_string_lossy().into_owned());
        let candidates = [own, built, Some("python3".to_owned())];
        candidates.into_iter().flatten().find(|python| {
            let imported = Command::new(python).args(["-c", "import numpy"]).output();
            imported.is_ok_and(|output| output.status.success())
        })
    });
    if found.is_none() {
        eprintln!("left out: there is no Python with NumPy; name one in GALATEA_PYTHON");
    }
    found.as_deref()
}

/// Writes version 1 of a model; where the text is empty, without a `model.py`.
pub(crate) fn write_model(repository: &Path, name: &str, config: &str, text: &str) {
    let folder = repository.join(name);
    fs::create_dir_all(folder.join("1")).unwrap();
    fs::write(folder.join("config.pbtxt"), config).unwrap();
    if !text.is_empty() {
        fs::write(folder.join("1/model.py"), text).unwrap();
    }
}

/// A core and the folder with its models.
pub(crate) struct PythonModels {
    pub(crate) core: Arc<Core>,
    pub(crate) folder: TempDir,
}

impl PythonModels {
    /// Serves all models of a folder with a backend and its settings, whether all load or not.
    pub(crate) fn start(
        folder: TempDir,
        backends: Vec<Arc<dyn ModelBackend>>,
        settings: &[(&str, &str)],
    ) -> Self {
        let options = options(folder.path(), &backends, settings);
        Self { core: Core::start(options, backends).unwrap(), folder }
    }
}

/// Options for all models of a folder, with settings of the first backend.
pub(crate) fn options(
    repository: &Path,
    backends: &[Arc<dyn ModelBackend>],
    settings: &[(&str, &str)],
) -> CoreOptions {
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let settings: OrderedMap<String, String> = settings.collect();
    CoreOptions {
        repositories: vec![repository.to_owned()],
        control_mode: ControlMode::Explicit { load: vec!["*".to_owned()] },
        exit_on_error: false,
        backend_config: OrderedMap::from([(backends[0].name().to_owned(), settings)]),
        ..CoreOptions::default()
    }
}

/// An input as it comes over the wire.
pub(crate) fn input(name: &str, tensor: &Tensor) -> InputTensor {
    let raw = match tensor.dtype() {
        DataType::Bytes => encode_byte_strings(&tensor.to_vec().unwrap()).unwrap(),
        _ => tensor.as_bytes().unwrap().to_vec(),
    };
    InputTensor {
        name: name.to_owned(),
        datatype: tensor.dtype(),
        shape: tensor.shape().iter().map(|&dim| i64::try_from(dim).unwrap()).collect(),
        data: InputData::Raw(raw.into()),
    }
}

/// A request with these inputs.
pub(crate) fn request(model: &str, inputs: &[(&str, &Tensor)]) -> InferenceRequest {
    InferenceRequest {
        model_name: model.to_owned(),
        inputs: inputs.iter().map(|(name, tensor)| input(name, tensor)).collect(),
        ..InferenceRequest::default()
    }
}

/// Integers in one dimension.
pub(crate) fn ints(values: &[i32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

/// Where the answers to a request come.
pub(crate) fn send(core: &Core, request: InferenceRequest) -> Receiver<SinkAnswer> {
    let (to, from) = channel();
    // A test that has failed does not listen any more.
    core.infer(request, Box::new(move |answer| drop(to.send(answer)))).unwrap();
    from
}

/// The next answer.
pub(crate) fn answer(from: &Receiver<SinkAnswer>) -> SinkAnswer {
    from.recv_timeout(PATIENCE).expect("an answer")
}

/// The response in the next answer.
pub(crate) fn response(from: &Receiver<SinkAnswer>) -> Result<InferenceResponse, ServingError> {
    answer(from).result.map(|response| response.expect("a response"))
}

/// What is there some time, as things that nobody tells of are.
pub(crate) fn until<T>(what: &str, found: impl Fn() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "{what} does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}
