//! Models in Python whose workers end and do not start again, or not where somebody has cleaned up.
//!
//! They need a Python with NumPy: that of `GALATEA_PYTHON`, of the environment of `cargo xtask python`, or `python3`.
//! Where there is none, each says so and does nothing.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use galatea_serving::SinkAnswer;
use galatea_serving::backend::python::PythonBackend;
use galatea_serving::core::UnloadDependents;
use galatea_serving::error::ErrorCode;

use crate::python::{
    ONE_IN_ONE_OUT, PythonModels, answer, ints, python, request, send, until, write_model,
};

/// How long a worker may take to start, in seconds.
const START: &str = "6";

/// Its worker ends when it is asked with a number below 0, with -2 after it has removed the backend's own files, and the
/// next one hangs and leaves its number, once there is a file `hang` beside the model. Asked with -3 it answers its number.
const MODEL: &str = "import os, shutil, time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        folder = pb_utils.get_model_dir()
        if os.path.exists(os.path.join(folder, 'hang')):
            with open(os.path.join(folder, 'part'), 'w') as file:
                file.write(str(os.getpid()))
            os.rename(file.name, os.path.join(folder, 'hangs'))
            while True:
                time.sleep(1)

    def execute(self, requests):
        answers = []
        for request in requests:
            value = request.inputs()[0].as_numpy()[0]
            if value == -2:
                shutil.rmtree(os.path.dirname(pb_utils.__file__))
            if value in (-1, -2):
                os._exit(1)
            number = np.array([os.getpid()], np.int32)
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor('OUT', number)] if value == -3 else []))
            sender = request.get_response_sender()
            if DECOUPLED:
                sender.send(answers[-1], pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None if DECOUPLED else answers
";

/// The model, served.
struct RestartedModel(PythonModels);

impl RestartedModel {
    fn new(decoupled: bool) -> Option<Self> {
        Self::with_patience(decoupled, START)
    }

    fn with_patience(decoupled: bool, seconds: &str) -> Option<Self> {
        let python = python()?;
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "backend: \"python\" {ONE_IN_ONE_OUT} model_transaction_policy {{ decoupled: {decoupled} }}"
        );
        let word = if decoupled { "True" } else { "False" };
        write_model(folder.path(), "m", &config, &format!("{MODEL}\nDECOUPLED = {word}\n"));
        let settings = [("python-executable", python), ("stub-timeout-seconds", seconds)];
        let backend = Arc::new(PythonBackend::default());
        Some(Self(PythonModels::start(folder, vec![backend], &settings)))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.folder.path().join("m/1").join(name)
    }

    fn send(&self, value: i32) -> Receiver<SinkAnswer> {
        send(&self.0.core, request("m", &[("IN", &ints(&[value]))]))
    }

    /// The number of the worker that hangs, once it does.
    fn hang(&self) -> String {
        fs::write(self.file("hang"), "").unwrap();
        let lost = answer(&self.send(-1));
        assert!(lost.result.unwrap_err().message.contains("is not healthy"));
        until("the next worker", || fs::read_to_string(self.file("hangs")).ok())
    }
}

/// Whether there is such a process.
fn runs(process: &str) -> bool {
    let mut kill = Command::new("kill");
    kill.args(["-0", process]).stderr(Stdio::null());
    kill.status().unwrap().success()
}

fn ends(process: &str) {
    until("the end of the worker", || (!runs(process)).then_some(()));
}

#[test]
fn a_worker_that_does_not_start_holds_up_no_unload() {
    for decoupled in [false, true] {
        let Some(served) = RestartedModel::new(decoupled) else { return };
        let hangs = served.hang();
        let waiting = [served.send(1), served.send(2)];
        assert!(runs(&hangs));
        served.0.core.unload_model("m", UnloadDependents::Keep).unwrap();
        for from in waiting {
            let error = answer(&from).result.unwrap_err();
            assert_eq!(
                (error.code, error.message.as_str()),
                (ErrorCode::Unavailable, "'m_0' is being unloaded")
            );
        }
        ends(&hangs);
    }
}

#[test]
fn a_worker_that_does_not_start_ends_with_an_idle_model_and_with_the_server() {
    for unloads in [true, false] {
        let Some(served) = RestartedModel::new(false) else { return };
        let hangs = served.hang();
        if unloads {
            served.0.core.unload_model("m", UnloadDependents::Keep).unwrap();
            ends(&hangs);
        } else {
            let waiting = served.send(1);
            let report = served.0.core.shutdown(Duration::from_millis(100));
            assert!(!report.complete);
            let error = answer(&waiting).result.unwrap_err();
            assert!(error.message.contains("is being unloaded"), "{error}");
            ends(&hangs);
        }
    }
}

#[test]
fn a_worker_starts_again_where_somebody_has_removed_the_backends_files() {
    let Some(served) = RestartedModel::new(false) else { return };
    for _ in 0..2 {
        let lost = answer(&served.send(-2));
        assert!(lost.result.unwrap_err().message.contains("is not healthy"));
        answer(&served.send(1)).result.unwrap();
    }
}

#[test]
fn a_worker_that_a_signal_has_stopped_is_followed_by_another() {
    let asked: Vec<_> = [false, true]
        .into_iter()
        .map(|decoupled| std::thread::spawn(move || stopped(decoupled)))
        .collect();
    asked.into_iter().for_each(|one| one.join().unwrap());
}

fn stopped(decoupled: bool) {
    let Some(served) = RestartedModel::with_patience(decoupled, "3") else { return };
    let pid = |from: &Receiver<SinkAnswer>| {
        let response = answer(from).result.unwrap().unwrap();
        response.outputs[0].tensor.to_vec::<i32>().unwrap()[0].to_string()
    };
    let first = pid(&served.send(-3));
    assert!(Command::new("kill").args(["-STOP", &first]).status().unwrap().success());
    let lost = answer(&served.send(1)).result.unwrap_err();
    assert!(lost.message.contains("did not answer in time and was ended"), "{lost}");
    ends(&first);
    assert_ne!(pid(&served.send(-3)), first);
    // One that goes on in time loses nothing.
    let second = pid(&served.send(-3));
    assert!(Command::new("kill").args(["-STOP", &second]).status().unwrap().success());
    let waiting = served.send(-3);
    assert!(Command::new("kill").args(["-CONT", &second]).status().unwrap().success());
    assert_eq!(pid(&waiting), second);
}
