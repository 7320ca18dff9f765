//! Loading, unloading and changing models while they serve, over a backend that answers with what its file says.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use galatea_serving::backend::{
    BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles, ModelInstance, ModelIo,
};
use galatea_serving::config::inference::model_version_policy::PolicyChoice;
use galatea_serving::core::{LoadOverrides, UnloadDependents, VersionState};
use galatea_serving::request::{InputData, InputTensor};
use galatea_serving::{
    ControlMode, Core, CoreOptions, ErrorCode, InferenceRequest, InferenceResponse, ResponseSink,
    ServingError, batch,
};
use galatea_tensor::{DataType, OrderedMap, Tensor};

mod handles;
mod places;

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

const CONFIG: &str = "backend: 'told' max_batch_size: 4 version_policy { all {} } \
                      input { name: 'IN' data_type: TYPE_INT32 dims: 1 } \
                      output { name: 'OUT' data_type: TYPE_INT32 dims: 1 }";

/// A model whose file holds a number adds it to its input; other files do not load.
#[derive(Debug, Default)]
struct Told {
    loads: Arc<AtomicUsize>,
    /// A load of a model with the parameter `wait` reports itself and waits to be let go.
    gate: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl ModelBackend for Told {
    fn name(&self) -> &str {
        "told"
    }
    fn default_model_filename(&self) -> &str {
        "model.told"
    }
    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        let text = fs::read_to_string(files.version_dir.join("model.told"));
        let text = text.map_err(|error| ServingError::internal(error.to_string()))?;
        if files.parameter("wait").is_some()
            && let Some((entered, leave)) = &*self.gate.lock().unwrap()
        {
            entered.send(()).unwrap();
            leave.recv_timeout(PATIENCE).unwrap();
        }
        let add = text.trim().parse().map_err(|_| ServingError::internal("the file is broken"))?;
        Ok(Box::new(Add(add)))
    }
}

#[derive(Clone, Copy)]
struct Add(i32);

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

/// A repository whose every change has a time of its own, however coarse the clock of the file system is.
struct Repository {
    folder: tempfile::TempDir,
    clock: AtomicU64,
}

impl Repository {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), clock: AtomicU64::new(1) }
    }

    fn path(&self, inner: &str) -> PathBuf {
        self.folder.path().join(inner)
    }

    fn write(&self, inner: &str, content: &str) {
        let path = self.path(inner);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        self.date(inner, SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000));
    }

    fn date(&self, inner: &str, from: SystemTime) {
        let later = Duration::from_secs(self.clock.fetch_add(1, Ordering::SeqCst));
        File::options()
            .append(true)
            .open(self.path(inner))
            .unwrap()
            .set_modified(from + later)
            .unwrap();
    }

    fn model(self, name: &str, versions: &[(i64, i32)]) -> Self {
        self.write(&format!("{name}/config.pbtxt"), CONFIG);
        for (version, add) in versions {
            self.write(&format!("{name}/{version}/model.told"), &add.to_string());
        }
        self
    }

    fn start(&self, control_mode: ControlMode) -> ServedModels {
        let ((entered_to, entered), (leave, leave_from)) = (channel(), channel());
        let loads = Arc::new(AtomicUsize::new(0));
        let gate = Mutex::new(Some((entered_to, leave_from)));
        let told = Told { loads: Arc::clone(&loads), gate };
        let options = CoreOptions {
            repositories: vec![self.folder.path().to_owned()],
            control_mode,
            exit_on_error: false,
            ..CoreOptions::default()
        };
        let core = Core::start(options, vec![Arc::new(told)]).unwrap();
        ServedModels { core, loads, entered: Mutex::new(entered), leave }
    }

    fn explicit(&self, load: &[&str]) -> ServedModels {
        let load = load.iter().map(|&name| name.to_owned()).collect();
        self.start(ControlMode::Explicit { load })
    }
}

struct ServedModels {
    core: Arc<Core>,
    loads: Arc<AtomicUsize>,
    entered: Mutex<Receiver<()>>,
    leave: Sender<()>,
}

impl ServedModels {
    fn load(&self, name: &str) -> Result<(), ServingError> {
        self.core.load_model(name, LoadOverrides::default())
    }

    fn unload(&self, name: &str) {
        self.core.unload_model(name, UnloadDependents::Keep).unwrap();
    }

    /// What the model's version adds to 0.
    fn added(&self, model: &str, version: &str) -> Result<i32, ServingError> {
        added(&self.core, model, version)
    }

    fn loads(&self) -> usize {
        self.loads.load(Ordering::SeqCst)
    }

    /// Lines of the index as `version state reason`.
    fn index(&self, model: &str) -> Vec<String> {
        let lines = self.core.repository_index(false).into_iter();
        let of_model = lines.filter(|line| line.name == model);
        of_model
            .map(|line| {
                let state = line.state.map_or("", VersionState::name);
                let parts = [line.version.unwrap_or_default(), state.to_owned()];
                let reason = line.reason.unwrap_or_default();
                format!("{} {reason}", parts.join(" ")).trim().to_owned()
            })
            .collect()
    }
}

/// A request with the input 0.
fn of_zero(model: &str, version: &str) -> InferenceRequest {
    let input = InputTensor {
        name: "IN".to_owned(),
        datatype: DataType::Int32,
        shape: vec![1, 1],
        data: InputData::Raw(Bytes::from_static(&[0; 4])),
    };
    InferenceRequest {
        model_name: model.to_owned(),
        model_version: version.to_owned(),
        inputs: vec![input],
        ..InferenceRequest::default()
    }
}

fn added(core: &Core, model: &str, version: &str) -> Result<i32, ServingError> {
    let request = of_zero(model, version);
    answer(|sink| core.infer(request, sink)).map(|response| sum(&response))
}

/// The one answer to a request that is begun so.
fn answer(
    begin: impl FnOnce(ResponseSink) -> Result<(), ServingError>,
) -> Result<InferenceResponse, ServingError> {
    let (sender, receiver) = channel::<Result<InferenceResponse, ServingError>>();
    begin(Box::new(move |answer| sender.send(answer.result.map(Option::unwrap)).unwrap()))?;
    let response = receiver.recv_timeout(PATIENCE).expect("an answer")?;
    assert!(receiver.recv_timeout(Duration::ZERO).is_err(), "a second answer");
    Ok(response)
}

fn sum(response: &InferenceResponse) -> i32 {
    response.outputs.first().unwrap().tensor.to_vec::<i32>().unwrap()[0]
}

#[test]
fn states_follow_loads_and_unloads() {
    let repository = Repository::new().model("m", &[(1, 10), (2, 20)]).model("other", &[(1, 1)]);
    let served = repository.explicit(&[]);
    assert_eq!(served.index("m"), [""]);
    assert_eq!(
        served.added("m", "").unwrap_err(),
        ServingError::not_found("Request for unknown model: 'm' is not found")
    );
    served.load("m").unwrap();
    assert_eq!(served.index("m"), ["1 READY", "2 READY"]);
    assert_eq!((served.added("m", "").unwrap(), served.added("m", "1").unwrap()), (20, 10));
    let count = |served: &ServedModels| {
        let all = served.core.model_statistics(Some("m"), "1").unwrap();
        all[0].inference_count
    };
    assert_eq!(count(&served), 1);
    served.unload("m");
    let gone = |text: &str| format!("Request for unknown model: 'm' {text}");
    assert_eq!(served.added("m", "").unwrap_err().message, gone("has no available versions"));
    assert_eq!(
        served.added("m", "1").unwrap_err(),
        ServingError::unavailable(gone("version 1 is not at ready state"))
    );
    wait_until(|| served.index("m") == ["1 UNAVAILABLE unloaded", "2 UNAVAILABLE unloaded"]);
    assert!(served.core.is_ready());
    served.load("m").unwrap();
    assert_eq!(count(&served), 0, "counters begin anew");
    served.unload("nothing of this name");
    assert_eq!(served.index("other"), [""]);
}

#[test]
fn only_what_changed_is_loaded_again() {
    let repository = Repository::new().model("m", &[(1, 10), (2, 20)]);
    let served = repository.explicit(&["m"]);
    assert_eq!(served.loads(), 2);
    served.load("m").unwrap();
    assert_eq!(served.loads(), 2, "nothing changed");
    repository.write("m/2/model.told", "21");
    served.load("m").unwrap();
    assert_eq!((served.loads(), served.added("m", "2").unwrap()), (3, 21));
    repository.write("m/labels.txt", "outside of the versions");
    served.load("m").unwrap();
    assert_eq!(served.loads(), 5);
    repository.write("m/config.pbtxt", CONFIG);
    served.load("m").unwrap();
    assert_eq!(served.loads(), 5, "the same content");
    repository.write("m/3/model.told", "30");
    fs::remove_dir_all(repository.path("m/1")).unwrap();
    served.load("m").unwrap();
    assert_eq!((served.loads(), served.added("m", "").unwrap()), (6, 30));
    wait_until(|| served.index("m") == ["1 UNAVAILABLE unloaded", "2 READY", "3 READY"]);
}

#[test]
fn other_instances_let_the_counters_count_on() {
    let repository = Repository::new().model("m", &[(1, 10)]);
    let served = repository.explicit(&["m"]);
    served.added("m", "").unwrap();
    repository.write("m/config.pbtxt", &format!("{CONFIG} instance_group {{ count: 2 }}"));
    served.load("m").unwrap();
    assert_eq!(served.core.resolve("m", "").unwrap().config().instance_group[0].count, 2);
    served.added("m", "").unwrap();
    let counted = || served.core.model_statistics(Some("m"), "").unwrap()[0].inference_count;
    assert_eq!(counted(), 2);
    repository.write("m/config.pbtxt", &CONFIG.replace("size: 4", "size: 8"));
    served.load("m").unwrap();
    assert_eq!(counted(), 0);
}

#[test]
fn a_reload_serves_the_old_until_the_new_is_ready_and_when_it_fails() {
    let repository = Repository::new().model("m", &[(1, 10)]);
    let served = repository.explicit(&["m"]);
    let waits = format!("{CONFIG} parameters {{ key: 'wait' value {{ string_value: '1' }} }}");
    repository.write("m/config.pbtxt", &waits);
    repository.write("m/1/model.told", "11");
    std::thread::scope(|scope| {
        let load = scope.spawn(|| served.load("m"));
        served.entered.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        assert_eq!((served.added("m", "").unwrap(), served.index("m")), (10, one("1 READY")));
        assert!(served.core.is_ready());
        served.leave.send(()).unwrap();
        load.join().unwrap().unwrap();
    });
    assert_eq!(served.added("m", "").unwrap(), 11);
    repository.write("m/config.pbtxt", CONFIG);
    repository.write("m/1/model.told", "broken");
    let error = served.load("m").unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            ErrorCode::InvalidArg,
            "load failed for model 'm': version 1 is at UNAVAILABLE state: Internal: the file is broken;\n"
        )
    );
    assert_eq!((served.added("m", "").unwrap(), served.index("m")), (11, one("1 READY")));
    repository.write("m/config.pbtxt", "max_batch_size: eight");
    assert_eq!(served.load("m").unwrap_err(), poll_failed("m"));
    assert_eq!(served.added("m", "").unwrap(), 11);
    assert!(served.core.is_ready());
}

#[test]
fn reloads_lose_no_request() {
    let repository = Repository::new().model("m", &[(1, 0)]);
    let served = repository.explicit(&["m"]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ask = || {
            let mut last = 0;
            while !stop.load(Ordering::Acquire) {
                let now = served.added("m", "").unwrap();
                assert!(now >= last, "{now} after {last}");
                last = now;
            }
        };
        let clients = [(); 3].map(|()| scope.spawn(ask));
        for number in 1..150 {
            repository.write("m/1/model.told", &number.to_string());
            served.load("m").unwrap();
        }
        stop.store(true, Ordering::Release);
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
    assert_eq!(served.added("m", "1").unwrap(), 149);
}

#[test]
fn an_unload_during_a_load_waits_for_it_and_a_shutdown_does_not() {
    let repository = Repository::new().model("m", &[(1, 10)]);
    let waits = format!("{CONFIG} parameters {{ key: 'wait' value {{ string_value: '1' }} }}");
    repository.write("m/config.pbtxt", &waits);
    let served = repository.explicit(&[]);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| served.load("m"));
        served.entered.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        assert_eq!(served.index("m"), ["1 LOADING"]);
        assert!(!served.core.is_ready());
        let unload = scope.spawn(|| served.unload("m"));
        assert_eq!(served.index("m"), ["1 LOADING"]);
        served.leave.send(()).unwrap();
        load.join().unwrap().unwrap();
        unload.join().unwrap();
        wait_until(|| served.index("m") == ["1 UNAVAILABLE unloaded"]);
        let load = scope.spawn(|| served.load("m"));
        served.entered.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        assert!(served.core.shutdown(PATIENCE).complete);
        served.leave.send(()).unwrap();
        load.join().unwrap().unwrap_err();
    });
}

#[test]
fn versions_of_a_load_serve_together_or_not_at_all() {
    let repository = Repository::new().model("m", &[(1, 10), (2, 20)]);
    repository.write("m/2/model.told", "broken");
    let served = repository.explicit(&[]);
    let broken = "version 2 is at UNAVAILABLE state: Internal: the file is broken;";
    let error = served.load("m").unwrap_err().message;
    assert_eq!(error, format!("load failed for model 'm': {broken}\n"));
    assert_eq!(
        served.index("m"),
        ["1 UNAVAILABLE unloaded", "2 UNAVAILABLE Internal: the file is broken"]
    );
    assert!(served.added("m", "1").is_err() && !served.core.is_ready());
    repository.write("m/2/model.told", "20");
    served.load("m").unwrap();
    // What serves goes on whole: version 1 would have loaded anew.
    repository.write("m/1/model.told", "11");
    repository.write("m/2/model.told", "broken");
    repository.write("m/3/model.told", "30");
    assert!(served.load("m").unwrap_err().message.contains(broken));
    assert_eq!((served.added("m", "1").unwrap(), served.added("m", "2").unwrap()), (10, 20));
    assert_eq!(served.index("m"), ["1 READY", "2 READY", "3 UNAVAILABLE unloaded"]);
    repository.write("m/2/model.told", "22");
    served.load("m").unwrap();
    assert_eq!((served.added("m", "1").unwrap(), served.added("m", "3").unwrap()), (11, 30));
}

#[test]
fn loads_of_different_models_go_side_by_side_and_of_one_model_in_turn() {
    let repository = Repository::new().model("a", &[(1, 1)]).model("b", &[(1, 2)]);
    let waits = format!("{CONFIG} parameters {{ key: 'wait' value {{ string_value: '1' }} }}");
    repository.write("a/config.pbtxt", &waits);
    let served = repository.explicit(&[]);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| served.load("a"));
        served.entered.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        let second = scope.spawn(|| served.load("a"));
        served.load("b").unwrap();
        assert_eq!(served.added("b", "").unwrap(), 2);
        served.leave.send(()).unwrap();
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
    });
    assert_eq!(served.loads(), 2, "the second load of a model finds the work done");
}

#[test]
fn a_given_configuration_holds_on_until_the_one_on_disk_is_newer() {
    let repository = Repository::new().model("m", &[(1, 10)]);
    let served = repository.explicit(&["m"]);
    let batch = || served.core.resolve("m", "").unwrap().config().max_batch_size;
    served.core.load_model("m", given(2, &[])).unwrap();
    assert_eq!(batch(), 2);
    served.load("m").unwrap();
    assert_eq!(batch(), 2);
    repository.date("m/config.pbtxt", SystemTime::now() + Duration::from_secs(60));
    served.load("m").unwrap();
    assert_eq!(batch(), 4);
    served.core.load_model("m", given(3, &[])).unwrap();
    served.unload("m");
    served.load("m").unwrap();
    assert_eq!(batch(), 4);
    for wrong in ["{bad", "", r#"{"no_such":1}"#, r#"{"backend":"told","name":"other"}"#] {
        let overrides = LoadOverrides { config: Some(wrong.to_owned()), files: Vec::new() };
        assert_eq!(
            served.core.load_model("m", overrides).unwrap_err(),
            poll_failed("m"),
            "{wrong}"
        );
    }
    assert_eq!(served.added("m", "").unwrap(), 10);
}

#[test]
fn given_files_are_the_whole_model_and_leave_no_trace() {
    let repository = Repository::new().model("m", &[(1, 10), (2, 20)]);
    let served = repository.explicit(&["m"]);
    served.core.load_model("m", given(2, &[("7/model.told", "70")])).unwrap();
    assert_eq!(served.added("m", "").unwrap(), 70);
    wait_until(|| served.index("m")[..2] == ["1 UNAVAILABLE unloaded", "2 UNAVAILABLE unloaded"]);
    served.core.load_model("new", given(2, &[("5/model.told", "50")])).unwrap();
    assert_eq!(served.added("new", "5").unwrap(), 50);
    served.load("m").unwrap();
    assert_eq!(served.added("m", "").unwrap(), 20, "back to the folder");
    let files = vec![("1/model.told".to_owned(), Bytes::from_static(b"1"))];
    let without = LoadOverrides { config: None, files };
    assert_eq!(served.core.load_model("m", without).unwrap_err(), poll_failed("m"));
    let outside = repository.path("outside");
    let long = format!("1/{}", "x".repeat(300));
    for path in ["../outside", "/outside", &outside.to_string_lossy(), &long, "1/../../outside"] {
        let error = served.core.load_model("m", given(2, &[(path, "1")])).unwrap_err();
        assert!(error.message.starts_with("failed to load 'm'"), "{error}");
    }
    assert!(!outside.exists() && !Path::new("/outside").exists());
    assert_eq!(served.added("m", "").unwrap(), 20);
}

#[test]
fn a_failed_load_is_told_and_a_good_one_mends_it() {
    let repository = Repository::new().model("m", &[(1, 10)]).model("none", &[]);
    repository.write("m/1/model.told", "broken");
    let served = repository.explicit(&[]);
    assert!(served.core.is_ready());
    let error = served.load("none").unwrap_err().message;
    assert_eq!(
        error,
        "load failed for model 'none': at least one version must be available under the version policy of model 'none'\n"
    );
    assert_eq!(served.index("none"), Vec::<String>::new());
    served.load("m").unwrap_err();
    assert_eq!(served.index("m"), ["1 UNAVAILABLE Internal: the file is broken"]);
    served.unload("m");
    assert_eq!(served.index("m"), ["1 UNAVAILABLE Internal: the file is broken"]);
    assert!(!served.core.is_ready(), "an unload does not mend a failure");
    repository.write("m/1/model.told", "11");
    repository.write("none/1/model.told", "1");
    served.load("m").unwrap();
    assert!(!served.core.is_ready());
    served.load("none").unwrap();
    assert!(served.core.is_ready());
    for (name, text) in [
        ("nope", "failed to load 'nope', failed to poll from model repository"),
        ("", "failed to load '', failed to poll from model repository"),
        (
            "../m",
            "invalid model name '../m', model name must not contain path traversal characters",
        ),
    ] {
        assert_eq!(served.load(name).unwrap_err().message, text);
    }
    let fixed = repository.start(ControlMode::None);
    let refused = ServingError::unavailable(
        "explicit model load / unload is not allowed if polling is enabled",
    );
    assert_eq!(fixed.load("m").unwrap_err(), refused);
    assert_eq!(fixed.core.unload_model("m", UnloadDependents::Keep).unwrap_err(), refused);
}

#[test]
fn a_version_policy_that_alone_changes_is_shown_and_loads_nothing() {
    let repository = Repository::new().model("m", &[(1, 10), (2, 20)]);
    let served = repository.explicit(&["m"]);
    let policy = || {
        let config = served.core.resolve("m", "2").unwrap().config();
        config.version_policy.clone().unwrap().policy_choice.unwrap()
    };
    assert!(matches!(policy(), PolicyChoice::All(_)));
    let change = |text: &str| {
        let config = CONFIG.replace("version_policy { all {} }", text);
        repository.write("m/config.pbtxt", &config);
        served.load("m").unwrap();
    };
    change("version_policy { specific { versions: [ 2 ] } }");
    assert!(matches!(policy(), PolicyChoice::Specific(all) if all.versions == [2]));
    wait_until(|| served.index("m") == ["1 UNAVAILABLE unloaded", "2 READY"]);
    change("");
    assert!(matches!(policy(), PolicyChoice::Latest(latest) if latest.num_versions == 1));
    assert_eq!((served.loads(), served.added("m", "").unwrap()), (2, 20));
    change("version_policy { all {} }");
    assert!(matches!(policy(), PolicyChoice::All(_)));
    assert_eq!(served.loads(), 3, "the first version comes back");
}

#[test]
fn polling_follows_the_repository() {
    let repository = Repository::new().model("m", &[(1, 10)]).model("leaves", &[(1, 1)]);
    let served = repository.start(ControlMode::Poll { interval: Duration::from_millis(5) });
    assert_eq!(served.added("m", "").unwrap(), 10);
    let add = |served: &ServedModels, name: &str| served.added(name, "").ok();
    repository.write("m/1/model.told", "11");
    wait_until(|| add(&served, "m") == Some(11));
    repository.write("comes/config.pbtxt", CONFIG);
    repository.write("comes/1/model.told", "5");
    wait_until(|| add(&served, "comes") == Some(5));
    fs::remove_dir_all(repository.path("leaves")).unwrap();
    wait_until(|| add(&served, "leaves").is_none());
    let loads = served.loads();
    repository.write("m/1/model.told", "broken");
    wait_until(|| served.loads() > loads);
    repository.write("m/config.pbtxt", "max_batch_size: eight");
    repository.write("comes/1/model.told", "6");
    wait_until(|| add(&served, "comes") == Some(6));
    assert_eq!(add(&served, "m"), Some(11), "what cannot be loaded changes nothing");
    repository.write("m/config.pbtxt", CONFIG);
    repository.write("m/1/model.told", "12");
    wait_until(|| add(&served, "m") == Some(12));
    assert!(served.load("m").is_err());
}

#[test]
fn a_server_without_its_repository_is_up_and_not_live_where_errors_do_not_end_it() {
    let repository = Repository::new();
    let options = |exit_on_error| CoreOptions {
        repositories: vec![repository.path("nowhere")],
        exit_on_error,
        strict_readiness: false,
        ..CoreOptions::default()
    };
    assert!(Core::start(options(true), Vec::new()).is_err());
    let core = Core::start(options(false), Vec::new()).unwrap();
    assert!(!core.is_live() && !core.is_ready());
    assert_eq!(core.metadata().name, "triton");
    assert_eq!(added(&core, "m", "").unwrap_err().code, ErrorCode::Unavailable);
    assert!(core.shutdown(PATIENCE).complete);
}

/// A model as the rules have it.
#[derive(Clone, Debug, Default)]
struct Expected {
    /// What is on disk: none, a configuration that does not parse, or the content of the model's file.
    disk: Option<Result<String, ()>>,
    serves: Option<i32>,
    failed: bool,
    known: bool,
}

impl Expected {
    fn load(&mut self) -> bool {
        let Some(Ok(content)) = &self.disk else { return false };
        self.known = true;
        match content.parse() {
            Ok(add) => {
                self.serves = Some(add);
                self.failed = false;
                true
            }
            Err(_) => {
                self.failed = self.serves.is_none();
                false
            }
        }
    }

    fn line(&self) -> Option<&'static str> {
        match (self.known, self.serves, self.failed) {
            (false, ..) => None,
            (true, Some(_), _) => Some("1 READY"),
            (true, None, true) => Some("1 UNAVAILABLE Internal: the file is broken"),
            (true, None, false) => Some("1 UNAVAILABLE unloaded"),
        }
    }
}

/// One step of a script on one model, in the repository and in the rules.
fn step(draw: u64, name: &str, served: &ServedModels, disk: &Repository, model: &mut Expected) {
    let file = format!("{name}/1/model.told");
    match draw % 7 {
        0 | 1 => assert_eq!(served.load(name).is_ok(), model.load(), "load of {name}"),
        2 => {
            served.unload(name);
            model.serves = None;
        }
        3 | 4 => {
            let content = (draw / 7 % 1000).to_string();
            disk.write(&format!("{name}/config.pbtxt"), CONFIG);
            disk.write(&file, &content);
            model.disk = Some(Ok(content));
        }
        5 => {
            disk.write(&format!("{name}/config.pbtxt"), CONFIG);
            disk.write(&file, "broken");
            model.disk = Some(Ok("broken".to_owned()));
        }
        _ if draw.is_multiple_of(2) => {
            disk.write(&format!("{name}/config.pbtxt"), "max_batch_size: eight");
            model.disk = Some(Err(()));
        }
        _ => {
            let _absent = fs::remove_dir_all(disk.path(name));
            model.disk = None;
        }
    }
}

#[test]
fn random_scripts_keep_to_the_rules() {
    let mut random = 1_u64;
    let mut draw = || {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    for script in 0..60 {
        let disk = Repository::new();
        let served = disk.explicit(&[]);
        let mut models = OrderedMap::from(["a", "b", "c"].map(|name| (name, Expected::default())));
        for number in 0..40 {
            let name = ["a", "b", "c"][usize::try_from(draw() % 3).unwrap()];
            step(draw(), name, &served, &disk, models.get_mut(name).unwrap());
            for (name, model) in &models {
                let told = format!("script {script}, step {number}, model {name}: {model:?}");
                assert_eq!(served.added(name, "").ok(), model.serves, "{told}");
                match model.line() {
                    _ if model.disk.is_none() => assert!(served.index(name).is_empty(), "{told}"),
                    Some(line) => wait_until(|| served.index(name) == [line]),
                    None => assert_eq!(served.index(name), [""], "{told}"),
                }
            }
            let fails =
                models.values().any(|model| model.line().is_some_and(|l| l.contains("file")));
            assert_eq!(served.core.is_ready(), !fails, "script {script}, step {number}");
        }
    }
}

#[test]
fn requests_amid_loads_and_unloads_are_answered_once_or_refused() {
    let repository = Repository::new().model("m", &[(1, 10)]);
    let served = repository.explicit(&["m"]);
    let (answered, changers) = (AtomicUsize::new(0), AtomicUsize::new(2));
    std::thread::scope(|scope| {
        for changer in 0..2 {
            let (served, repository, changers) = (&served, &repository, &changers);
            scope.spawn(move || {
                for round in 0..60 {
                    if round % 3 == changer {
                        served.unload("m");
                    } else if changer == 0 {
                        repository.date("m/1/model.told", SystemTime::UNIX_EPOCH);
                    }
                    served.load("m").unwrap();
                }
                changers.fetch_sub(1, Ordering::SeqCst);
            });
        }
        for _ in 0..2 {
            // The last change is a load, so that answers come in the end.
            scope.spawn(|| {
                while changers.load(Ordering::SeqCst) > 0 || answered.load(Ordering::SeqCst) < 20 {
                    match served.added("m", "") {
                        Ok(add) => {
                            assert_eq!(add, 10);
                            answered.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(error) => assert!(
                            matches!(error.code, ErrorCode::NotFound | ErrorCode::Unavailable),
                            "{error}"
                        ),
                    }
                }
            });
        }
    });
    assert!(served.core.shutdown(PATIENCE).complete);
}

fn one(text: &str) -> Vec<String> {
    vec![text.to_owned()]
}

fn poll_failed(name: &str) -> ServingError {
    ServingError::internal(format!("failed to load '{name}', failed to poll from model repository"))
}

/// A load with a configuration of this batch size, and files.
fn given(max_batch_size: i32, files: &[(&str, &str)]) -> LoadOverrides {
    let tensor = |name: &str| format!(r#"{{"name":"{name}","data_type":"TYPE_INT32","dims":[1]}}"#);
    let config = format!(
        r#"{{"backend":"told","max_batch_size":{max_batch_size},"input":[{}],"output":[{}]}}"#,
        tensor("IN"),
        tensor("OUT")
    );
    let file = |(path, content): &(&str, &str)| {
        ((*path).to_owned(), Bytes::copy_from_slice(content.as_bytes()))
    };
    LoadOverrides { config: Some(config), files: files.iter().map(file).collect() }
}

fn wait_until(holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "it did not come about");
        std::thread::yield_now();
    }
}
