//! Models in Python that call the server and other models.
//!
//! They need a Python with NumPy: that of `GALATEA_PYTHON`, of the environment of `cargo xtask python`, or `python3`.
//! Where there is none, each says so and does nothing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it leaves out"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use galatea_serving::backend::python::PythonBackend;
use galatea_serving::request::{InputData, InputTensor};
use galatea_serving::{
    Answer, ControlMode, Core, CoreOptions, Error, InferenceRequest, InferenceResponse,
};
use galatea_tensor::Tensor;
use tempfile::TempDir;

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// An interpreter with NumPy.
fn python() -> Option<&'static str> {
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

struct Served {
    core: Arc<Core>,
    _folder: TempDir,
}

const HEAD: &str = "import os\nimport threading\nimport numpy as np\nimport galatea_calls\n\
    import triton_python_backend_utils as pb_utils\n\n";
const ONE_IN_ONE_OUT: &str = "max_batch_size: 0 input { name: \"IN\" data_type: TYPE_INT32 dims: -1 } \
    output { name: \"OUT\" data_type: TYPE_INT32 dims: -1 }";

/// A core with the models `(name, configuration, class)`; `None` without a Python.
fn serve(models: &[(&str, &str, &str)]) -> Option<Served> {
    let python = python()?;
    let folder = tempfile::tempdir().unwrap();
    for (name, config, class) in models {
        let version = folder.path().join(name).join("1");
        fs::create_dir_all(&version).unwrap();
        let backend = if class.is_empty() { "" } else { "backend: \"python\" " };
        let config = format!("{backend}{config}");
        fs::write(folder.path().join(name).join("config.pbtxt"), config).unwrap();
        fs::write(version.join("model.py"), format!("{HEAD}{class}")).unwrap();
    }
    let settings = [("python-executable".to_owned(), python.to_owned())];
    let options = CoreOptions {
        repositories: vec![folder.path().to_owned()],
        control_mode: ControlMode::Explicit { load: vec!["*".to_owned()] },
        backend_config: BTreeMap::from([("python".to_owned(), BTreeMap::from(settings))]),
        ..CoreOptions::default()
    };
    let core = Core::start(options, vec![Arc::new(PythonBackend::default())]).unwrap();
    Some(Served { core, _folder: folder })
}

fn request(model: &str, values: &[i32]) -> InferenceRequest {
    let tensor = Tensor::from_slice(&[values.len()], values).unwrap();
    InferenceRequest {
        model_name: model.to_owned(),
        inputs: vec![InputTensor {
            name: "IN".to_owned(),
            datatype: tensor.dtype(),
            shape: vec![i64::try_from(values.len()).unwrap()],
            data: InputData::Tensor(tensor),
        }],
        ..InferenceRequest::default()
    }
}

fn send(core: &Core, request: InferenceRequest) -> Receiver<Answer> {
    let (to, from) = channel();
    // A test that has failed does not listen any more.
    core.infer(request, Box::new(move |answer| drop(to.send(answer)))).unwrap();
    from
}

fn answered(from: &Receiver<Answer>) -> Result<InferenceResponse, Error> {
    let answer = from.recv_timeout(PATIENCE).expect("an answer");
    answer.result.map(|response| response.expect("a response"))
}

fn infer(core: &Core, model: &str, values: &[i32]) -> Result<Vec<i32>, Error> {
    let response = answered(&send(core, request(model, values)))?;
    Ok(response.outputs[0].tensor.to_vec().unwrap())
}

#[test]
fn a_model_calls_from_its_beginning_to_its_end_and_from_any_thread() {
    let class = "class TritonPythonModel:
    def initialize(self, args):
        print('on the way to the log')
        self.first = galatea_calls.call('echo', value=3)['value']

    def execute(self, requests):
        found = []
        def call(value):
            found.append(galatea_calls.call('echo', value=value)['value'])
        threads = [threading.Thread(target=call, args=(value,)) for value in range(40)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        try:
            galatea_calls.call('nothing')
        except pb_utils.TritonModelException as error:
            assert \"'nothing' found\" in str(error) and error.code == pb_utils.TritonError.UNSUPPORTED
        out = np.array([self.first, sum(found)], np.int32)
        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', out)]) for r in requests]

    def finalize(self):
        assert galatea_calls.call('echo', value=4)['value'] == 4
";
    let Some(served) = serve(&[("m", ONE_IN_ONE_OUT, class)]) else { return };
    assert_eq!(infer(&served.core, "m", &[0]).unwrap(), [3, 780]);
}
