//! Repositories that are namespaces: models of one name side by side, and ensembles between them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use bytes::Bytes;
use galatea_serving::backend::{
    BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles, ModelInstance, ModelIo,
};
use galatea_serving::config::inference::model_config::SchedulingChoice;
use galatea_serving::core::{LoadOverrides, UnloadDependents, VersionState};
use galatea_serving::repository::NameMeaning;
use galatea_serving::request::{InputData, InputTensor};
use galatea_serving::{
    ControlMode, Core, CoreOptions, ErrorCode, InferenceRequest, ServingError, SinkAnswer, batch,
};
use galatea_tensor::{DataType, Tensor};

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Models that add their parameter `add` to `IN`; those that add a word do not load.
#[derive(Debug)]
struct Adds;

#[derive(Clone, Copy)]
struct Add(i32);

impl ModelBackend for Adds {
    fn name(&self) -> &str {
        "adds"
    }
    fn default_model_filename(&self) -> &str {
        ""
    }
    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        let add = files.parameter("add").unwrap_or_default().parse();
        Ok(Box::new(Add(add.map_err(|_| ServingError::internal("nothing to add"))?)))
    }
}

impl BackendModel for Add {
    fn io(&self) -> Option<&ModelIo> {
        None
    }
    fn instance(
        &self,
        _placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError> {
        Ok(Box::new(*self))
    }
}

impl ModelInstance for Add {
    fn execute(&mut self, payload: BatchPayload) {
        batch::execute(payload, |inputs| {
            let tensor = &inputs.first().expect("checked by the core").1;
            let sums = tensor.to_vec::<i32>()?.iter().map(|value| value + self.0).collect();
            Ok(vec![("OUT".to_owned(), Tensor::from_vec(tensor.shape(), sums)?)])
        });
    }
}

const ENDS: &str = "input { name: 'IN' data_type: TYPE_INT32 dims: 1 } \
                    output { name: 'OUT' data_type: TYPE_INT32 dims: 1 }";

/// Two repositories, `a` and `b`.
struct Repositories(tempfile::TempDir);

impl Repositories {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for repository in ["a", "b"] {
            fs::create_dir(folder.path().join(repository)).unwrap();
        }
        Self(folder)
    }

    fn path(&self, inner: &str) -> PathBuf {
        self.0.path().join(inner)
    }

    fn namespace(&self, repository: &str) -> String {
        self.path(repository).display().to_string()
    }

    fn write(self, model: &str, config: &str) -> Self {
        fs::create_dir_all(self.path(model).join("1")).unwrap();
        fs::write(self.path(model).join("config.pbtxt"), config).unwrap();
        self
    }

    fn adds(self, model: &str, add: &str) -> Self {
        let parameter = format!("parameters {{ key: 'add' value {{ string_value: '{add}' }} }}");
        self.write(model, &format!("backend: 'adds' {ENDS} {parameter}"))
    }

    /// An ensemble of one step.
    fn ensemble(self, name: &str, step: &str, namespace: &str) -> Self {
        let maps = "input_map { key: 'IN' value: 'IN' } output_map { key: 'OUT' value: 'OUT' }";
        let space = match namespace {
            "" => String::new(),
            space => format!("model_namespace: '{}'", self.namespace(space)),
        };
        let step = format!("step {{ model_name: '{step}' model_version: -1 {space} {maps} }}");
        let text = format!("platform: 'ensemble' {ENDS} ensemble_scheduling {{ {step} }}");
        self.write(name, &text)
    }

    fn start(&self, control_mode: ControlMode) -> Arc<Core> {
        let options = CoreOptions {
            repositories: vec![self.path("a"), self.path("b")],
            naming: NameMeaning::Namespaced,
            control_mode,
            exit_on_error: false,
            ..CoreOptions::default()
        };
        Core::start(options, vec![Arc::new(Adds)]).unwrap()
    }

    fn explicit(&self) -> Arc<Core> {
        self.start(ControlMode::Explicit { load: Vec::new() })
    }

    /// Lines of the index as `repository name state`.
    fn index(&self, core: &Core) -> Vec<String> {
        let lines = core.repository_index(false).into_iter();
        let root = format!("{}/", self.0.path().display());
        lines
            .map(|line| {
                let space = line.namespace.strip_prefix(&root).unwrap().to_owned();
                let state = line.state.map_or("", VersionState::name);
                format!("{space} {} {state}", line.name).trim_end().to_owned()
            })
            .collect()
    }
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "it never holds");
        std::thread::yield_now();
    }
}

/// What a model makes of 0.
fn ask(core: &Core, model: &str) -> Result<i32, ServingError> {
    let input = InputTensor {
        name: "IN".to_owned(),
        datatype: DataType::Int32,
        shape: vec![1],
        data: InputData::Raw(Bytes::from_static(&[0; 4])),
    };
    let request = InferenceRequest {
        model_name: model.to_owned(),
        inputs: vec![input],
        ..InferenceRequest::default()
    };
    let (to, from) = channel();
    core.infer(request, Box::new(move |answer: SinkAnswer| to.send(answer).unwrap()))?;
    let answer = from.recv_timeout(PATIENCE).expect("an answer").result?;
    Ok(answer.expect("a response").outputs[0].tensor.to_vec::<i32>().unwrap()[0])
}

fn ambiguous(model: &str) -> ServingError {
    ServingError::invalid_arg(format!(
        "There are 2 identifiers of model '{model}' in global map, model namespace must be provided to resolve \
         ambiguity."
    ))
}

fn load(core: &Core, model: &str) -> Result<(), ServingError> {
    core.load_model(model, LoadOverrides::default())
}

#[test]
fn a_bare_name_works_where_it_means_one_model() {
    let all = Repositories::new().adds("a/both", "1").adds("a/one", "2");
    let all = all.adds("b/both", "3").adds("b/two", "4");
    let core = all.start(ControlMode::None);
    assert!(core.is_ready());
    assert_eq!(all.index(&core), ["a both READY", "a one READY", "b both READY", "b two READY"]);
    assert_eq!((ask(&core, "one").unwrap(), ask(&core, "two").unwrap()), (2, 4));
    assert_eq!(ask(&core, "both").unwrap_err(), ambiguous("both"));
    assert_eq!(core.resolve("both", "1").unwrap_err(), ambiguous("both"));
    assert_eq!(core.resolve("both", "").unwrap_err(), ambiguous("both"));
    assert!(!core.model_ready("both", "").unwrap() && core.model_ready("one", "1").unwrap());
    let unknown = ServingError::invalid_arg("Request for unknown model: 'none' is not found");
    assert_eq!(ask(&core, "none").unwrap_err(), unknown);
    let text = |name| core.model_statistics(Some(name), "").unwrap_err().message;
    assert_eq!(text("both"), "requested model 'both' is not available");
    assert_eq!(core.model_statistics(None, "").unwrap().len(), 4);
    let mut rows: Vec<(String, String)> =
        core.metrics_snapshot().into_iter().map(|row| (row.model, row.namespace)).collect();
    rows.sort();
    let row = |model: &str, space| (model.to_owned(), all.namespace(space));
    assert_eq!(rows, [row("both", "a"), row("both", "b"), row("one", "a"), row("two", "b")]);
}

#[test]
fn the_steps_of_an_ensemble_are_looked_for_in_its_own_namespace_first() {
    let all = Repositories::new().adds("a/both", "1").adds("b/both", "2").adds("b/only", "3");
    let all = all.ensemble("a/e", "both", "").ensemble("b/f", "both", "");
    let all = all.ensemble("a/far", "only", "").ensemble("a/named", "both", "b");
    let all = all.ensemble("b/e", "both", "");
    let core = all.start(ControlMode::None);
    assert_eq!(core.load_failures(), []);
    assert_eq!(ask(&core, "f").unwrap(), 2);
    assert_eq!((ask(&core, "far").unwrap(), ask(&core, "named").unwrap()), (3, 2));
    assert_eq!(ask(&core, "e").unwrap_err(), ambiguous("e"));
    let config = core.resolve("far", "").unwrap().config();
    let Some(SchedulingChoice::EnsembleScheduling(steps)) = &config.scheduling_choice else {
        panic!("an ensemble");
    };
    assert_eq!(steps.step[0].model_namespace, all.namespace("b"));
}

#[test]
fn a_step_that_only_other_namespaces_have_must_be_unique() {
    let all = Repositories::new().adds("b/only", "3").ensemble("a/e", "only", "");
    let all = all.ensemble("a/lost", "only", "a");
    let core = all.start(ControlMode::None);
    assert_eq!(ask(&core, "e").unwrap(), 3);
    let failures = core.load_failures();
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].model, format!("{}::lost", all.namespace("a")));
    let text = format!(
        "ensemble {}::lost contains models that are not available or ambiguous: only",
        all.namespace("a")
    );
    assert_eq!(failures[0].reason, text);
}

#[test]
fn loads_and_unloads_by_name_concern_every_namespace() {
    let all = Repositories::new().adds("a/both", "1").adds("b/both", "2").adds("b/one", "5");
    let all = all.ensemble("b/e", "both", "");
    let core = all.explicit();
    assert_eq!(all.index(&core), ["a both", "b both", "b e", "b one"]);
    load(&core, "both").unwrap();
    load(&core, "e").unwrap();
    assert_eq!(all.index(&core), ["a both READY", "b both READY", "b e READY", "b one"]);
    assert_eq!(ask(&core, "e").unwrap(), 2);
    core.unload_model("both", UnloadDependents::Keep).unwrap();
    let gone = ["a both UNAVAILABLE", "b both UNAVAILABLE", "b e UNAVAILABLE", "b one"];
    wait_until(|| all.index(&core) == gone);
    let text = "Identifier of model 'both' is not found in global map";
    assert_eq!(ask(&core, "both").unwrap_err(), ServingError::not_found(text));
    load(&core, "both").unwrap();
    assert_eq!(ask(&core, "e").unwrap(), 2, "it waited for its step");
    let text = "failed to load 'none', failed to poll from model repository";
    assert_eq!(load(&core, "none").unwrap_err(), ServingError::internal(text));
}

#[test]
fn an_ensemble_brings_the_step_of_its_namespace_and_takes_it_along() {
    let all = Repositories::new().adds("a/both", "1").adds("b/both", "2");
    let all = all.ensemble("b/e", "both", "");
    let core = all.explicit();
    load(&core, "e").unwrap();
    assert_eq!(all.index(&core), ["a both", "b both READY", "b e READY"]);
    assert_eq!(ask(&core, "both").unwrap(), 2, "the only one that is loaded");
    core.unload_model("e", UnloadDependents::Unload).unwrap();
    wait_until(|| all.index(&core) == ["a both", "b both UNAVAILABLE", "b e UNAVAILABLE"]);
}

#[test]
fn a_failed_load_names_the_namespace_and_leaves_the_others_alone() {
    let all = Repositories::new().adds("a/both", "nothing").adds("b/both", "2");
    let core = all.explicit();
    let error = load(&core, "both").unwrap_err();
    let text = format!(
        "load failed for model '{}::both': version 1 is at UNAVAILABLE state: Internal: nothing to add;\n",
        all.namespace("a")
    );
    assert_eq!((error.code, error.message), (ErrorCode::InvalidArg, text));
    assert_eq!(all.index(&core), ["a both UNAVAILABLE", "b both READY"]);
    assert_eq!(ask(&core, "both").unwrap_err(), ambiguous("both"));
}

#[test]
fn a_step_that_goes_or_comes_changes_which_model_an_ensemble_means() {
    let all = Repositories::new().adds("a/both", "1").adds("b/both", "2");
    let all = all.ensemble("a/e", "both", "").ensemble("b/f", "both", "");
    let core = all.start(ControlMode::Poll { interval: Duration::from_millis(5) });
    assert_eq!((ask(&core, "e").unwrap(), ask(&core, "f").unwrap()), (1, 2));
    let (here, away) = (all.path("a/both"), all.path("away"));
    fs::rename(&here, &away).unwrap();
    wait_until(|| ask(&core, "e") == Ok(2));
    assert_eq!((ask(&core, "both").unwrap(), ask(&core, "f").unwrap()), (2, 2));
    fs::rename(&away, &here).unwrap();
    wait_until(|| ask(&core, "e") == Ok(1));
    assert_eq!(ask(&core, "f").unwrap(), 2);
    assert_eq!(ask(&core, "both").unwrap_err(), ambiguous("both"));
}

#[test]
fn a_load_of_an_ensemble_looks_again_which_model_it_means() {
    let all = Repositories::new().adds("a/both", "1").adds("b/both", "2");
    let all = all.ensemble("a/e", "both", "");
    let (here, away) = (all.path("a/both"), all.path("away"));
    fs::rename(&here, &away).unwrap();
    let core = all.explicit();
    load(&core, "e").unwrap();
    assert_eq!((ask(&core, "e").unwrap(), ask(&core, "both").unwrap()), (2, 2));
    fs::rename(&away, &here).unwrap();
    assert_eq!(ask(&core, "e").unwrap(), 2, "nobody asked for a load");
    load(&core, "e").unwrap();
    assert_eq!(ask(&core, "e").unwrap(), 1);
    assert_eq!(ask(&core, "both").unwrap_err(), ambiguous("both"));
}
