//! Models in Python as newcomers write them: the first example of the documentation, an output that the configuration
//! lacks, an interpreter without NumPy.

use std::fs;
use std::sync::Arc;

use galatea_serving::backend::python::PythonBackend;
use galatea_tensor::Tensor;

use crate::python::{
    ONE_IN_ONE_OUT, PythonModels, answer, ints, python, request, send, write_model,
};

/// Text of the n-th block of code with a language of the documentation.
fn block(page: &str, language: &str, number: usize) -> String {
    let begin = format!("```{language}\n");
    let rest = page.split(&begin).nth(number + 1).expect("a block of code");
    rest.split("```").next().unwrap().to_owned()
}

fn serve(config: &str, model: &str) -> Option<PythonModels> {
    let python = python()?;
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path(), "m", config, model);
    let settings = [("python-executable", python)];
    Some(PythonModels::start(folder, vec![Arc::new(PythonBackend::default())], &settings))
}

#[test]
fn the_first_model_of_the_documentation_answers() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/python-backend.md");
    let page = fs::read_to_string(page).unwrap();
    let model = block(&page, "python", 0);
    let config = page.split("```\n").find(|text| text.starts_with("backend: \"python\"")).unwrap();
    let Some(served) = serve(config, &model) else { return };
    let row = |values: &[f32]| Tensor::from_slice(&[1, values.len()], values).unwrap();
    let (one, other) = (row(&[1.0, 2.0]), row(&[10.0, 20.0]));
    let asked = send(&served.core, request("m", &[("A", &one), ("B", &other)]));
    let response = answer(&asked).result.unwrap().unwrap();
    assert_eq!(response.outputs[0].name, "SUM");
    assert_eq!(response.outputs[0].tensor.to_vec::<f32>().unwrap(), [11.0, 22.0]);
}

#[test]
fn outputs_that_the_configuration_lacks_are_left_out() {
    // Small outputs and large ones go different ways.
    for more in [0, 100_000] {
        let model = format!(
            "import numpy as np\nimport triton_python_backend_utils as pb_utils\n\nclass TritonPythonModel:
    def execute(self, requests):
        def response(r):
            x = np.concatenate([r.inputs()[0].as_numpy(), np.zeros({more}, np.int32)])
            return pb_utils.InferenceResponse([pb_utils.Tensor('OTHER', x), pb_utils.Tensor('OUT', x)])
        return [response(r) for r in requests]
"
        );
        let Some(served) = serve(&format!("backend: \"python\" {ONE_IN_ONE_OUT}"), &model) else {
            return;
        };
        for _ in 0..2 {
            let asked = send(&served.core, request("m", &[("IN", &ints(&[7]))]));
            let response = answer(&asked).result.unwrap().unwrap();
            let names: Vec<&str> = response.outputs.iter().map(|one| one.name.as_str()).collect();
            assert_eq!(names, ["OUT"]);
        }
    }
}

#[test]
fn an_interpreter_without_numpy_is_named() {
    use std::os::unix::fs::PermissionsExt;

    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bare = folder.path().join("bare-python");
    // Without the folders of packages.
    fs::write(&bare, format!("#!/bin/sh\nexec '{python}' -I -S \"$@\"\n")).unwrap();
    fs::set_permissions(&bare, fs::Permissions::from_mode(0o755)).unwrap();
    let models = tempfile::tempdir().unwrap();
    let model = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n";
    write_model(models.path(), "m", &format!("backend: \"python\" {ONE_IN_ONE_OUT}"), model);
    let executable = bare.display().to_string();
    let backends: Vec<Arc<dyn galatea_serving::backend::ModelBackend>> =
        vec![Arc::new(PythonBackend::default())];
    let served = PythonModels::start(models, backends, &[("python-executable", &executable)]);
    let failures = served.core.load_failures();
    let reason = &failures.first().expect("the model fails").reason;
    for wanted in ["numpy", &executable, "pip install", "python-executable"] {
        assert!(reason.contains(wanted), "{wanted} is not in {reason}");
    }
}
