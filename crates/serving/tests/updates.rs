//! Models whose files are replaced while they are asked: by `cp`, `rsync`, `mv` and `git`, in each control mode. Every
//! answer is that of one version of the files as a whole, and none is an error.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use galatea_runtime::SessionOptions;
use galatea_serving::backend::graph::GraphBackend;
use galatea_serving::core::LoadOverrides;
use galatea_serving::request::{InputData, InputTensor};
use galatea_serving::{ControlMode, Core, CoreOptions, InferenceRequest, ServingError};
use galatea_tensor::DataType;

use crate::messages::ProtoMessage;
use crate::plain::Plain;

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Elements of a file that is read into memory.
const SMALL: usize = 1000;
/// Elements of a file that is mapped.
const LARGE: usize = 1_200_000;

fn value(name: &str, elements: usize) -> ProtoMessage {
    let dim = ProtoMessage::default().number(1, u64::try_from(elements).unwrap());
    let shape = ProtoMessage::default().message(1, dim);
    let tensor = ProtoMessage::default().number(1, 1).message(2, shape);
    ProtoMessage::default()
        .bytes(1, name.as_bytes())
        .message(2, ProtoMessage::default().message(1, tensor))
}

/// A tensor whose elements lie in a file of its name.
fn external(name: &str, elements: usize) -> ProtoMessage {
    let file = format!("{name}.bin");
    let entry = ProtoMessage::default().bytes(1, b"location").bytes(2, file.as_bytes());
    ProtoMessage::default()
        .number(1, u64::try_from(elements).unwrap())
        .number(2, 1)
        .bytes(8, name.as_bytes())
        .message(13, entry)
        .number(14, 1)
}

fn sum(weights: &str) -> ProtoMessage {
    ProtoMessage::default()
        .bytes(1, b"x")
        .bytes(1, weights.as_bytes())
        .bytes(2, format!("of_{weights}").as_bytes())
        .bytes(4, b"Add")
}

/// A model of two outputs, the input plus the elements of one file and plus those of another one.
fn model(elements: usize) -> Vec<u8> {
    let graph = ProtoMessage::default()
        .message(1, sum("a"))
        .message(1, sum("b"))
        .bytes(2, b"sums")
        .message(5, external("a", elements))
        .message(5, external("b", elements))
        .message(11, value("x", 1))
        .message(12, value("of_a", elements))
        .message(12, value("of_b", elements));
    let opset = ProtoMessage::default().number(2, 17);
    ProtoMessage::default().number(1, 8).message(7, graph).message(8, opset).0
}

/// Distance of the second file's numbers from the first one's. Files of the same bytes are one constant once loaded, so
/// that a mixture of two versions of them could not be seen.
const SECOND_FILE: f32 = 0.5;

/// Writes a model folder whose weights are all the same number, those of the second file `SECOND_FILE` more.
fn write(folder: &Path, elements: usize, number: f32) {
    let version = folder.join("1");
    std::fs::create_dir_all(&version).unwrap();
    std::fs::write(folder.join("config.pbtxt"), "backend: \"onnxruntime\"\n").unwrap();
    std::fs::write(version.join("model.onnx"), model(elements)).unwrap();
    for (name, value) in [("a.bin", number), ("b.bin", number + SECOND_FILE)] {
        let bytes: Vec<u8> = std::iter::repeat_n(value.to_le_bytes(), elements).flatten().collect();
        std::fs::write(version.join(name), bytes).unwrap();
    }
}

/// The number that all weights of an answer are from.
fn ask(core: &Core) -> Result<f32, ServingError> {
    let (to, from) = channel();
    let input = InputTensor {
        name: "x".to_owned(),
        datatype: DataType::Fp32,
        shape: vec![1],
        data: InputData::Raw(0_f32.to_le_bytes().to_vec().into()),
    };
    let request = InferenceRequest {
        model_name: "m".to_owned(),
        inputs: vec![input],
        ..InferenceRequest::default()
    };
    core.infer(request, Box::new(move |answer| to.send(answer.result).unwrap()))?;
    let answer = from.recv_timeout(PATIENCE).expect("an answer")?.expect("a response");
    assert_eq!(answer.outputs.len(), 2);
    let mut found = None;
    for output in &answer.outputs {
        let offset = if output.name == "of_b" { SECOND_FILE } else { 0.0 };
        for element in output.tensor.to_vec::<f32>().unwrap() {
            let number = element - offset;
            assert_eq!(*found.get_or_insert(number), number, "a mixture of two versions");
        }
    }
    Ok(found.unwrap())
}

/// Ways to replace a folder by another one.
#[derive(Clone, Copy, Debug)]
enum UpdateWay {
    Cp,
    CpKeepingTimes,
    Rsync,
    RsyncInPlace,
    Mv,
    Git,
}

const WAYS: [UpdateWay; 6] = [
    UpdateWay::Cp,
    UpdateWay::CpKeepingTimes,
    UpdateWay::Rsync,
    UpdateWay::RsyncInPlace,
    UpdateWay::Mv,
    UpdateWay::Git,
];

/// Runs a program; `false` where there is none of this name.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        done => {
            let done = done.unwrap();
            assert!(done.status.success(), "{program} {arguments:?}: {done:?}");
            true
        }
    }
}

/// A repository of a model `m`, and folders beside it.
struct UpdatedRepository {
    root: tempfile::TempDir,
    elements: usize,
}

impl UpdatedRepository {
    fn repository(&self) -> PathBuf {
        self.root.path().join("models")
    }

    /// Replaces the model; `false` where the program is not here.
    fn update(&self, way: UpdateWay, number: f32) -> bool {
        let root = self.root.path();
        let next = root.join(format!("next{number}"));
        write(&next, self.elements, number);
        let from = format!("{}/.", next.display());
        match way {
            UpdateWay::Cp => run(root, "cp", &["-r", &from, "models/m"]),
            UpdateWay::CpKeepingTimes => run(root, "cp", &["-rp", &from, "models/m"]),
            UpdateWay::Rsync => run(root, "rsync", &["-a", &from, "models/m"]),
            UpdateWay::RsyncInPlace => run(root, "rsync", &["-a", "--inplace", &from, "models/m"]),
            UpdateWay::Mv => {
                run(root, "mv", &["models/m", &format!("old{number}")])
                    && run(root, "mv", &[&next.display().to_string(), "models/m"])
            }
            UpdateWay::Git => self.checkout(number),
        }
    }

    /// Commits what is there and the next version, and checks the next version out over it.
    fn checkout(&self, number: f32) -> bool {
        let models = self.repository();
        let git = |arguments: &[&str]| run(&models, "git", arguments);
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let commit = |text: &str| {
            git(&["add", "-A"]) && git(&[&identity[..], &["commit", "-qm", text]].concat())
        };
        if !git(&["init", "-q"]) {
            return false;
        }
        commit("now");
        // The next version is committed in a clone, so that nothing changes here before the checkout.
        let clone = self.root.path().join(format!("clone{number}"));
        run(self.root.path(), "git", &["clone", "-q", "models", &clone.display().to_string()]);
        write(&clone.join("m"), self.elements, number);
        run(&clone, "git", &["add", "-A"]);
        run(&clone, "git", &[&identity[..], &["commit", "-qm", "next"]].concat());
        git(&["fetch", "-q", &clone.display().to_string(), "HEAD"]);
        git(&["checkout", "-q", "--detach", "FETCH_HEAD"])
    }
}

fn start(control_mode: ControlMode, elements: usize) -> (UpdatedRepository, Arc<Core>) {
    let served = UpdatedRepository { root: tempfile::tempdir().unwrap(), elements };
    write(&served.repository().join("m"), elements, 1.0);
    let options = CoreOptions {
        repositories: vec![served.repository()],
        control_mode,
        ..CoreOptions::default()
    };
    let backend = GraphBackend::onnx(vec![Arc::new(Plain)], SessionOptions::default());
    let core = Core::start(options, vec![Arc::new(backend)]).unwrap();
    (served, core)
}

/// Replaces the files in every way while three clients ask. `after` is called after each update with the number that
/// the model has now.
fn under_load(
    mode: ControlMode,
    elements: usize,
    after: impl Fn(&Core, f32),
    stays: impl Fn(f32) -> bool + Sync,
) {
    let (served, core) = start(mode, elements);
    let over = AtomicBool::new(false);
    let answers = AtomicUsize::new(0);
    let last = AtomicU16::new(1);
    std::thread::scope(|scope| {
        /// Ends the clients, also where the test fails.
        struct EndAtDrop<'a>(&'a AtomicBool);
        impl Drop for EndAtDrop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _end = EndAtDrop(&over);
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let number = ask(&core).unwrap();
                    let newest = f32::from(last.load(Ordering::Relaxed));
                    assert!(number >= 1.0 && number <= newest, "{number} of {newest}");
                    assert!(stays(number), "{number}");
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for (at, way) in (2_u16..).zip(WAYS) {
            last.store(at, Ordering::Relaxed);
            let number = f32::from(at);
            let before = answers.load(Ordering::Relaxed);
            if !served.update(way, number) {
                eprintln!("skipped {way:?}: the program is not here");
                continue;
            }
            after(&core, number);
            let asked = Instant::now();
            while answers.load(Ordering::Relaxed) < before + 3 {
                assert!(asked.elapsed() < PATIENCE, "no answers after {way:?}");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    });
}

/// Waits until the model answers with a number.
fn wait_for(core: &Core, number: f32) {
    let asked = Instant::now();
    while ask(core).unwrap() != number {
        assert!(asked.elapsed() < PATIENCE, "the update to {number} is not seen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn poll() -> ControlMode {
    ControlMode::Poll { interval: Duration::from_millis(50) }
}

fn explicit() -> ControlMode {
    ControlMode::Explicit { load: vec!["m".to_owned()] }
}

/// Loads the model at once, also while files are still warm from the update.
fn load(core: &Core, number: f32) {
    core.load_model("m", LoadOverrides::default()).unwrap();
    assert_eq!(ask(core).unwrap(), number);
}

#[test]
fn small_files_that_are_replaced_while_they_are_polled_give_old_or_new_answers() {
    under_load(poll(), SMALL, wait_for, |_| true);
}

#[test]
fn large_files_that_are_replaced_while_they_are_polled_give_old_or_new_answers() {
    under_load(poll(), LARGE, wait_for, |_| true);
}

#[test]
fn small_files_that_are_replaced_before_a_load_give_old_or_new_answers() {
    under_load(explicit(), SMALL, load, |_| true);
}

#[test]
fn large_files_that_are_replaced_before_a_load_give_old_or_new_answers() {
    under_load(explicit(), LARGE, load, |_| true);
}

#[test]
fn small_files_that_are_replaced_and_never_loaded_change_no_answer() {
    under_load(ControlMode::None, SMALL, |_, _| (), |number| number == 1.0);
}

#[test]
fn large_files_that_are_written_to_are_loaded_again_where_nothing_else_loads() {
    under_load(ControlMode::None, LARGE, |_, _| (), |_| true);
}

#[test]
fn a_mapped_file_that_is_cut_off_takes_its_model_out_of_service_until_it_is_whole_again() {
    let (served, core) = start(ControlMode::None, LARGE);
    assert_eq!(ask(&core).unwrap(), 1.0);
    // Both files hold the same numbers, of which the model keeps one.
    for name in ["a.bin", "b.bin"] {
        let file = served.repository().join("m/1").join(name);
        let cut = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
        cut.set_len(4096).unwrap();
    }
    let error = ask(&core).unwrap_err().message;
    assert!(error.contains("files of model 'm' were changed"), "{error}");
    assert!(!core.model_ready("m", "").unwrap());
    assert!(core.is_live());
    write(&served.repository().join("m"), LARGE, 2.0);
    let asked = Instant::now();
    while !core.model_ready("m", "").unwrap() {
        assert!(asked.elapsed() < PATIENCE, "the model is not loaded again");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(ask(&core).unwrap(), 2.0);
}
