//! Workers of the Python backend.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use galatea::serving::CoreOptions;
use galatea::{RepositoryOptions, Server, Tensor};

use super::line::{SubjectOutcome, SubjectReport};
use super::task::SubjectTask;
use crate::engine;

/// Configuration of a model in Python.
const CONFIG: &str = r#"
backend: "python"
max_batch_size: 0
input [{ name: "x" data_type: TYPE_FP32 dims: [ 4 ] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [ 4 ] }]
"#;

/// A model that adds one.
const MODEL: &str = r#"
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", request.inputs()[0].as_numpy() + 1)])
                for request in requests]
"#;

/// Requests that are timed.
const REQUESTS: usize = 20;

/// Returns whether python3 has what workers need.
fn has_numpy() -> Result<bool, String> {
    let status = Command::new("python3")
        .args(["-c", "import numpy"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.map(|status| status.success()).map_err(|error| error.to_string())
}

fn written(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder.join("1"))?;
    std::fs::write(folder.join("config.pbtxt"), CONFIG)?;
    std::fs::write(folder.join("1/model.py"), MODEL)
}

/// Serves a model in Python and asks it.
pub(super) fn python(task: &SubjectTask) -> SubjectOutcome {
    match has_numpy() {
        Err(error) => return Ok(SubjectReport::skipped(format!("there is no python3: {error}"))),
        Ok(false) => return Ok(SubjectReport::skipped("python3 has no NumPy")),
        Ok(true) => {}
    }
    let repository = task.folder.join("models");
    written(&repository.join("adds_one")).map_err(|error| error.to_string())?;
    let core = CoreOptions { repositories: vec![repository], ..CoreOptions::default() };
    let device = "cpu".to_owned();
    let options = RepositoryOptions { core, device, ..RepositoryOptions::default() };
    let started = Instant::now();
    let server = Server::start(engine(), options).map_err(|error| error.to_string())?;
    let load_ms = started.elapsed().as_secs_f64() * 1e3;
    let asked = Instant::now();
    for _ in 0..REQUESTS {
        let x = Tensor::vector(vec![1.0_f32, 2.0, 3.0, 4.0]);
        let found = server.infer("adds_one", &[("x", x)]).map_err(|error| error.to_string())?;
        let y = found.first().map(|(_, tensor)| tensor.to_vec::<f32>());
        if !matches!(&y, Some(Ok(y)) if *y == [2.0, 3.0, 4.0, 5.0]) {
            return Ok(SubjectReport::failed(format!("the worker's answer is {y:?}")));
        }
    }
    let each_us = asked.elapsed().as_secs_f64() * 1e6 / REQUESTS as f64;
    let ended = server.stop(Duration::from_secs(10)).complete;
    let report = SubjectReport::passed().figure("load_ms", load_ms).figure("request_us", each_us);
    Ok(report.checked((!ended).then(|| "the worker did not end".to_owned())))
}
