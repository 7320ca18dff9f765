//! Everything in `triton_python_backend_utils`, called rightly and wrongly by a model.
//!
//! It needs a Python with NumPy: that of `GALATEA_PYTHON`, of the environment of `cargo xtask python`, or `python3`.
//! Where there is none, it says so and does nothing.

use std::sync::Arc;

use galatea_serving::backend::python::PythonBackend;
use galatea_serving::backend::{ModelBackend, builtin};
use galatea_serving::request::{CorrelationId, ParameterValue};
use galatea_serving::{ControlMode, Core, CoreOptions, InferenceRequest};
use galatea_tensor::ByteString;

use crate::python::{ONE_IN_ONE_OUT, ints, options, python, request, response, send, write_model};

/// Fewest calls of the walk; with less it has not been all the way.
const MIN_CALLS: u64 = 150;

const WALK: &str = "backend: \"python\" input { name: \"IN\" data_type: TYPE_INT32 dims: 1 } \
    output { name: \"OUT\" data_type: TYPE_STRING dims: 1 } instance_group { kind: KIND_CPU count: 1 }";

const MANY: &str = "backend: \"repeat\" model_transaction_policy { decoupled: true } \
    input [{ name: \"IN\" data_type: TYPE_INT32 dims: -1 }, { name: \"DELAY\" data_type: TYPE_UINT32 dims: -1 }, \
    { name: \"WAIT\" data_type: TYPE_UINT32 dims: 1 }] \
    output [{ name: \"OUT\" data_type: TYPE_INT32 dims: 1 }, { name: \"IDX\" data_type: TYPE_UINT32 dims: 1 }]";

#[test]
fn every_call_of_a_model_does_what_tritons_does() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let identity = format!("backend: \"identity\" {ONE_IN_ONE_OUT}");
    let walk = include_str!("python/api_walk.py");
    for (name, config, text) in [
        ("walk", WALK, walk),
        ("echo", &identity, ""),
        ("later", &identity, ""),
        ("many", MANY, ""),
    ] {
        write_model(folder.path(), name, config, text);
    }
    let python_backend: Arc<dyn ModelBackend> = Arc::new(PythonBackend::default());
    let backends: Vec<_> = std::iter::once(python_backend).chain(builtin::all()).collect();
    let settings = [("python-executable", python)];
    let load = ["walk", "echo", "many"].map(str::to_owned).to_vec();
    let options = CoreOptions {
        control_mode: ControlMode::Explicit { load },
        ..options(folder.path(), &backends, &settings)
    };
    let core = Core::start(options, backends).unwrap();
    assert!(core.load_failures().is_empty(), "{:?}", core.load_failures());
    let text = |text: &str| ParameterValue::String(text.to_owned());
    let parameters = [
        ("p", ParameterValue::Int(1)),
        ("s", text("x")),
        ("b", ParameterValue::Bool(true)),
        ("d", ParameterValue::Double(1.5)),
    ];
    let asked = InferenceRequest {
        id: "walk".to_owned(),
        correlation: CorrelationId::Uint(77),
        sequence_start: true,
        sequence_end: true,
        timeout_us: 5000,
        parameters: parameters.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        ..request("walk", &[("IN", &ints(&[1]))])
    };
    let response = response(&send(&core, asked)).unwrap();
    let found: Vec<ByteString> = response.outputs[0].tensor.to_vec().unwrap();
    let (calls, wrong): (u64, Vec<String>) = serde_json::from_slice(found[0].as_bytes()).unwrap();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(calls >= MIN_CALLS, "{calls}");
}
