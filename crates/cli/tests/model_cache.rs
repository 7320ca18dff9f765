//! The cache of prepared models: what comes from it is what the model gives, whatever happened to the
//! files in between.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use galatea_formats::onnx::proto::type_proto::{self, Value};
use galatea_formats::onnx::proto::{
    DataLocation, Dimension, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, dimension,
};
use galatea_providers::by_name;
use galatea_runtime::{ExecutionProvider, Run, Session, SessionOptions};
use galatea_serving::model_cache::{ModelCache, SessionOrigin, session};
use galatea_tensor::Tensor;
use prost::Message;

const ROWS: usize = 256;
const COLUMNS: usize = 320;
const WORDS: usize = 700;

fn values(count: usize, seed: usize) -> Vec<u8> {
    let value = |at: usize| ((at * 7919 + seed * 104_729) % 1000) as f32 / 500.0 - 1.0;
    (0..count).flat_map(|at| value(at).to_le_bytes()).collect()
}

fn constant(name: &str, dims: &[usize], raw: Option<Vec<u8>>) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        dims: dims.iter().map(|&len| len as i64).collect(),
        data_type: 1,
        raw_data: raw.map(Bytes::from),
        ..TensorProto::default()
    }
}

fn port(name: &str, elem_type: i32, width: Option<i64>) -> ValueInfoProto {
    let rows = dimension::Value::DimParam("n".to_owned());
    let all = std::iter::once(rows).chain(width.map(dimension::Value::DimValue));
    let dim = all.map(|value| Dimension { value: Some(value) }).collect();
    let shape = Some(TensorShapeProto { dim });
    let value = Some(Value::Tensor(type_proto::Tensor { elem_type, shape }));
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { value }) }
}

fn node(op: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: op.to_owned(),
        input: inputs.iter().map(|&name| name.to_owned()).collect(),
        output: vec![output.to_owned()],
        ..NodeProto::default()
    }
}

/// `(relu(x · a + b) · cᵀ) + words[id]`, with `c` in another file: constants that are packed, folded,
/// gathered and added.
fn write_model(folder: &Path, seed: usize) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("c.bin"), values(ROWS * COLUMNS, seed + 1)).unwrap();
    let entry = |key: &str, value: &str| StringStringEntryProto {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let outside = TensorProto {
        data_location: i32::from(DataLocation::External),
        external_data: vec![entry("location", "c.bin")],
        ..constant("c", &[ROWS, COLUMNS], None)
    };
    let graph = GraphProto {
        // The length of the name decides how the constants behind it are aligned.
        name: "cached!".to_owned(),
        node: vec![
            node("MatMul", &["x", "a"], "xa"),
            node("Add", &["xa", "b"], "xab"),
            node("Relu", &["xab"], "hidden"),
            node("Neg", &["c"], "negative"),
            node("Transpose", &["negative"], "turned"),
            node("MatMul", &["hidden", "turned"], "product"),
            node("Gather", &["words", "id"], "word"),
            node("Add", &["product", "word"], "y"),
        ],
        initializer: vec![
            constant("a", &[ROWS, COLUMNS], Some(values(ROWS * COLUMNS, seed))),
            constant("b", &[COLUMNS], Some(values(COLUMNS, seed + 2))),
            constant("words", &[WORDS, ROWS], Some(values(WORDS * ROWS, seed + 3))),
            outside,
        ],
        input: vec![port("x", 1, Some(ROWS as i64)), port("id", 7, None)],
        output: vec![port("y", 1, Some(ROWS as i64))],
        ..GraphProto::default()
    };
    let opset = OperatorSetIdProto { domain: String::new(), version: 17 };
    let model = ModelProto {
        ir_version: 8,
        graph: Some(Box::new(graph)),
        opset_import: vec![opset],
        ..ModelProto::default()
    };
    let path = folder.join("model.onnx");
    fs::write(&path, model.encode_to_vec()).unwrap();
    path
}

struct Fixture {
    _folder: tempfile::TempDir,
    root: PathBuf,
    model: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        let model = write_model(&root.join("model"), 1);
        Self { _folder: folder, root, model }
    }

    fn cache_folder(&self) -> PathBuf {
        self.root.join("cache")
    }

    fn cache(&self) -> ModelCache {
        ModelCache::new(self.cache_folder(), 1 << 30).settled_after(Duration::ZERO)
    }

    /// Files of the cache with this end.
    fn files(&self, end: &str) -> Vec<PathBuf> {
        let all = fs::read_dir(self.cache_folder()).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.extension().is_some_and(|found| found == end)).collect()
    }
}

fn load(cache: Option<&ModelCache>, model: &Path) -> (Session, SessionOrigin) {
    let providers: [Arc<dyn ExecutionProvider>; 1] = [by_name("cpu").unwrap()];
    let options = SessionOptions { threads: 2, ..SessionOptions::default() };
    session(cache, model, &providers, &options).unwrap()
}

fn run(session: &Session) -> Vec<Vec<u8>> {
    let x: Vec<f32> = (0..3 * ROWS).map(|at| (at % 17) as f32 / 17.0).collect();
    let x = Tensor::from_vec(&[3, ROWS], x).unwrap();
    let id = Tensor::vector(vec![5_i64, 699, 0]);
    let outputs = session.run_tensors(Run::named(&[("x", x), ("id", id)])).unwrap();
    outputs.iter().map(|output| output.as_bytes().unwrap().to_vec()).collect()
}

/// Returns the outputs of the model without a cache.
fn plain(model: &Path) -> Vec<Vec<u8>> {
    run(&load(None, model).0)
}

#[test]
fn the_second_load_gives_the_same_bits_and_shares_the_weights() {
    let fixture = Fixture::new();
    let expected = plain(&fixture.model);
    let cache = fixture.cache();
    for source in [SessionOrigin::Added, SessionOrigin::Cache, SessionOrigin::Cache] {
        let (session, found) = load(Some(&cache), &fixture.model);
        assert_eq!(found, source);
        assert_eq!(run(&session), expected);
        let memory = session.report().memory;
        assert!(memory.initializer_bytes < 10_000, "{memory:?}");
        assert!(memory.mapped_bytes > 2 * ROWS * COLUMNS * 4, "{memory:?}");
    }
    assert_eq!((fixture.files("model").len(), fixture.files("tmp").len()), (1, 0));
    // Without the note the content is read again, and the same entry found.
    fixture.files("note").iter().for_each(|note| fs::remove_file(note).unwrap());
    assert_eq!(load(Some(&cache), &fixture.model).1, SessionOrigin::Cache);
    assert_eq!(fixture.files("note").len(), 1);
}

#[test]
fn damaged_entries_and_notes_are_made_anew() {
    let fixture = Fixture::new();
    let expected = plain(&fixture.model);
    let cache = fixture.cache();
    load(Some(&cache), &fixture.model);
    let path = fixture.files("model").remove(0);
    let whole = fs::read(&path).unwrap();
    let step = whole.len() / 40;
    let flipped = (0..32).step_by(5).chain((32..whole.len()).step_by(step)).map(|at| {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        damaged
    });
    let cut = (0..whole.len()).step_by(step * 5).map(|len| whole[..len].to_vec());
    let longer = [[whole.as_slice(), &[0; 9]].concat(), vec![0; whole.len()]];
    let (mut found, mut all) = (0, 0);
    for damaged in flipped.chain(cut).chain(longer) {
        fs::remove_file(&path).unwrap();
        fs::write(&path, damaged).unwrap();
        let (session, source) = load(Some(&cache), &fixture.model);
        assert_eq!(run(&session), expected);
        found += usize::from(source == SessionOrigin::Added);
        all += 1;
    }
    // The rest hit the space between two parts.
    assert!(found * 10 >= all * 9, "{found} of {all}");
    for text in ["", "00000000\n{}", "nonsense", "ffffffff\n{\"content\":\"x\",\"files\":[]}"] {
        fs::write(&fixture.files("note")[0], text).unwrap();
        let (session, source) = load(Some(&cache), &fixture.model);
        assert_eq!((run(&session), source), (expected.clone(), SessionOrigin::Cache));
    }
}

#[test]
fn a_model_that_changed_is_found_whatever_its_times_say() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    let first = plain(&fixture.model);
    load(Some(&cache), &fixture.model);
    assert_eq!(load(Some(&cache), &fixture.model).1, SessionOrigin::Cache);
    for name in ["model.onnx", "c.bin"] {
        let file = fixture.model.with_file_name(name);
        let before = file.metadata().unwrap();
        let other = write_model(&fixture.root.join("other"), 9).with_file_name(name);
        let other = fs::read(other).unwrap();
        let same_clock = || {
            let now = file.metadata().unwrap();
            (now.ctime(), now.ctime_nsec()) == (before.ctime(), before.ctime_nsec())
        };
        // Until the file system's clock has moved on.
        while same_clock() {
            fs::write(&file, &other).unwrap();
            let opened = fs::File::options().append(true).open(&file).unwrap();
            opened.set_modified(before.modified().unwrap()).unwrap();
        }
        let after = file.metadata().unwrap();
        assert_eq!((after.len(), after.mtime_nsec()), (before.len(), before.mtime_nsec()));
        let (session, source) = load(Some(&cache), &fixture.model);
        assert_eq!(source, SessionOrigin::Added, "{name}");
        assert_eq!(run(&session), plain(&fixture.model));
        assert_ne!(run(&session), first);
    }
}

#[test]
fn a_link_that_leads_elsewhere_is_another_model() {
    let fixture = Fixture::new();
    let weights = fixture.model.with_file_name("c.bin");
    let (one, two) = (weights.with_file_name("1.bin"), weights.with_file_name("2.bin"));
    fs::rename(&weights, &one).unwrap();
    fs::write(&two, values(ROWS * COLUMNS, 77)).unwrap();
    symlink("1.bin", &weights).unwrap();
    let cache = fixture.cache();
    load(Some(&cache), &fixture.model);
    assert_eq!(load(Some(&cache), &fixture.model).1, SessionOrigin::Cache);
    fs::remove_file(&weights).unwrap();
    symlink("2.bin", &weights).unwrap();
    let (session, source) = load(Some(&cache), &fixture.model);
    assert_eq!((run(&session), source), (plain(&fixture.model), SessionOrigin::Added));
}

#[test]
fn many_loads_at_once_give_one_entry() {
    let fixture = Fixture::new();
    let expected = plain(&fixture.model);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert_eq!(run(&load(Some(&fixture.cache()), &fixture.model).0), expected)
            });
        }
    });
    assert_eq!((fixture.files("model").len(), fixture.files("tmp").len()), (1, 0));
    fixture.files("model").iter().for_each(|entry| fs::remove_file(entry).unwrap());
    let start = || {
        Command::new(env!("CARGO_BIN_EXE_galatea"))
            .args(["bench", "--json", "--seconds", "0", "--shape", "x=3,256", "--model-cache-dir"])
            .args([fixture.cache_folder(), fixture.model.clone()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    for child in [start(), start()] {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().contains("loaded_from"));
    }
    let third = start().wait_with_output().unwrap();
    let text = String::from_utf8(third.stdout).unwrap();
    assert!(text.contains("\"loaded_from\":\"cache\""), "{text}");
    assert_eq!((fixture.files("model").len(), fixture.files("tmp").len()), (1, 0));
}

/// Names of the files and folders below a folder.
fn below(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).map_or_else(|_| Vec::new(), |found| found.collect());
    let mut names: Vec<String> = entries
        .into_iter()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn commands_keep_everything_in_the_folder_that_they_are_told() {
    let fixture = Fixture::new();
    let home = fixture.root.join("home");
    fs::create_dir(&home).unwrap();
    let model = fixture.model.to_str().unwrap();
    let galatea = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_galatea"));
        command.args(arguments).current_dir(&fixture.root);
        let output = command.env("HOME", &home).env("XDG_CACHE_HOME", &home).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {told}");
        String::from_utf8(output.stdout).unwrap()
    };
    let bench = ["bench", "--json", "--seconds", "0", "--shape", "x=3,256", model];
    // A path that is not absolute is one of the folder in which the command runs.
    let kept = [&bench[..], &["--cache-dir", "kept"]].concat();
    assert!(galatea(&kept).contains("\"loaded_from\":\"model"));
    assert!(galatea(&kept).contains("\"loaded_from\":\"cache\""));
    let tune = ["tune", model, "--samples", "1", "--trials", "1", "--seconds", "1"];
    galatea(&[&tune[..], &["--cache-dir", "kept"]].concat());
    assert_eq!(below(&fixture.root.join("kept")), ["models", "tuning.jsonl"]);
    assert_eq!(below(&home), Vec::<String>::new());
    // A folder for prepared models alone goes before it.
    let apart = [&kept[..], &["--model-cache-dir", "apart"]].concat();
    assert!(!galatea(&apart).contains("\"loaded_from\":\"cache\""));
    assert!(!below(&fixture.root.join("apart")).is_empty());
    // Without the option everything is in the system's folder.
    galatea(&bench);
    assert_eq!(below(&home), ["galatea"]);
}

#[test]
fn without_room_or_folder_models_load_all_the_same() {
    let fixture = Fixture::new();
    let expected = plain(&fixture.model);
    let blocked = ModelCache::new(fixture.model.join("cache"), 1 << 30);
    let small = ModelCache::new(fixture.cache_folder(), 1 << 19);
    for cache in [blocked, small] {
        let (session, source) = load(Some(&cache), &fixture.model);
        assert_eq!((run(&session), source), (expected.clone(), SessionOrigin::Model));
    }
    assert_eq!((fixture.files("model").len(), fixture.files("tmp").len()), (0, 0));
    // A young file may change again at the same time.
    let careful = ModelCache::new(fixture.cache_folder(), 1 << 30);
    assert_eq!(load(Some(&careful), &fixture.model).1, SessionOrigin::Added);
    assert_eq!(fixture.files("note").len(), 0);
}

#[test]
fn the_entry_that_was_not_used_for_the_longest_time_makes_room() {
    let fixture = Fixture::new();
    let others = [2, 3].map(|seed| write_model(&fixture.root.join(format!("model{seed}")), seed));
    load(Some(&fixture.cache()), &fixture.model);
    let entry = fixture.files("model").remove(0);
    let limit = entry.metadata().unwrap().len() * 5 / 2;
    let long_ago = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let cache = ModelCache::new(fixture.cache_folder(), limit).settled_after(Duration::ZERO);
    load(Some(&cache), &others[0]);
    let unused = fixture.files("model").into_iter().find(|path| *path != entry).unwrap();
    fs::File::options().append(true).open(&unused).unwrap().set_modified(long_ago).unwrap();
    load(Some(&cache), &others[1]);
    assert_eq!(fixture.files("model").len(), 2);
    assert!(entry.exists() && !unused.exists());
}
