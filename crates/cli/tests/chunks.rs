//! Trained decoders as chunks of Core ML's functions, run by the interpreter beside what was recorded.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use galatea::chunks::{ChunkOptions, ChunkRunner, write_chunks};
use galatea_coreml::ConvertOptions;
use galatea_coreml::engine::{
    self, CompiledCache, CoreMlEngine, ProgramInterpreter, WorkerCommand, WorkerEngine,
    WorkerLimits,
};
use galatea_formats::coreml;
use galatea_graph::rewrite::RewriteLevel;
use galatea_llm::chunked::ChunkModel;
use galatea_llm::engine::{
    EngineOptions, GenerationEvent, GenerationRequest, RequestTicket, StepBatch, StepModel,
    TokenUsage,
};
use galatea_llm::model::{CheckpointOptions, LanguageModel};
use galatea_llm::sampling::{LogitNeed, SamplingParameters};
use galatea_llm::tokens::SpecialTokens;
use serde_json::Value;

fn shared() -> Option<PathBuf> {
    let Some(shared) = std::env::var_os("GALATEA_SHARED") else {
        eprintln!("skipped: GALATEA_SHARED does not say where the recorded checkpoints are");
        return None;
    };
    Some(PathBuf::from(shared).join("models"))
}

fn ids(value: &Value, key: &str) -> Vec<u32> {
    let ids = value[key].as_array().unwrap().iter();
    ids.map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect()
}

/// A checkpoint as chunks in a folder, of states with so many positions.
fn chunks(source: &Path, target: &Path, context: usize, half: bool) -> LanguageModel {
    let options = ChunkOptions {
        convert: ConvertOptions { half, ..ChunkOptions::default().convert },
        context: Some(context),
        prefill: Some(vec![8, 32]),
        // A few layers in each.
        chunk_bytes: 500_000,
        ..ChunkOptions::default()
    };
    let manifest = write_chunks(source, target, &options).unwrap();
    assert!(manifest.chunks.len() > 1 && manifest.rows == [1, 8, 32], "{manifest:?}");
    LanguageModel::load(target, &load_options()).unwrap()
}

fn load_options() -> CheckpointOptions {
    let engine = EngineOptions { max_sequences: 3, ..EngineOptions::default() };
    CheckpointOptions { engine, ..CheckpointOptions::new(galatea_providers::all()) }
}

type Asked = (RequestTicket, Receiver<GenerationEvent>);

fn ask(model: &LanguageModel, prompt: Vec<u32>, tokens: u32) -> Asked {
    let (to, events) = mpsc::channel();
    let request = GenerationRequest {
        prompt,
        sampling: SamplingParameters {
            temperature: 0.0,
            max_tokens: Some(tokens),
            ignore_eos: true,
            ..SamplingParameters::default()
        },
        constraint: None,
        priority: 0,
        client: 0,
        salt: 0,
        id: String::new(),
    };
    let sink = Box::new(move |event| drop(to.send(event)));
    (model.engine().submit(request, sink).unwrap(), events)
}

fn answer((_ticket, events): Asked) -> (Vec<u32>, TokenUsage) {
    let mut tokens = Vec::new();
    for event in events {
        match event {
            GenerationEvent::Started { .. } => {}
            GenerationEvent::Delta(delta) => tokens.extend(delta.tokens),
            GenerationEvent::Finished(usage) => return (tokens, usage),
            GenerationEvent::Failed(error) => panic!("{error}"),
        }
    }
    panic!("no last event came");
}

/// Recorded prompts all at once, and one longer than all windows beside what the checkpoint itself says.
fn check(name: &str, half: bool) {
    let Some(models) = shared() else { return };
    let golden = std::fs::read(models.join("golden.json")).unwrap();
    let golden: Value = serde_json::from_slice(&golden).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let model = chunks(&models.join(name), folder.path(), 96, half);
    let cases: Vec<(Vec<u32>, Vec<u32>)> = golden[name]["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| {
            let prompt = ids(case, "ids");
            let mut greedy = ids(case, "greedy_ids").split_off(prompt.len());
            greedy.truncate(12);
            (prompt, greedy)
        })
        .collect();
    let asked: Vec<Asked> = cases
        .iter()
        .map(|(prompt, greedy)| ask(&model, prompt.clone(), greedy.len().try_into().unwrap()))
        .collect();
    for ((_, greedy), asked) in cases.iter().zip(asked) {
        assert_eq!(answer(asked).0, *greedy, "{name}");
    }
    let text = std::fs::read_to_string(models.join("val.txt")).unwrap();
    let text: String = text.chars().take(2000).collect();
    let mut prompt = model.tokenizer().encode(&text, SpecialTokens::Omit).unwrap();
    prompt.truncate(75);
    assert_eq!(prompt.len(), 75);
    let whole = LanguageModel::load(&models.join(name), &load_options()).unwrap();
    let (expected, _) = answer(ask(&whole, prompt.clone(), 8));
    assert_eq!(answer(ask(&model, prompt, 8)).0, expected, "{name}");
}

#[test]
fn a_small_qwen2_in_chunks_writes_the_recorded_tokens() {
    check("books-qwen2-draft-2m", true);
}

#[test]
fn a_larger_qwen2_in_chunks_writes_the_recorded_tokens() {
    // In FP16 a token comes whose logit is 0.004 less.
    check("books-qwen2-13m", false);
}

#[test]
fn gpt2_in_chunks_writes_the_recorded_tokens() {
    // In FP16 a token comes whose logit is 0.002 less.
    check("books-gpt2-5m", false);
}

#[test]
fn answers_end_and_prompts_are_refused_where_the_state_is_full() {
    let Some(models) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let model = chunks(&models.join("books-qwen2-draft-2m"), folder.path(), 40, true);
    assert_eq!(model.context(), 40);
    let (tokens, usage) = answer(ask(&model, vec![5; 36], 100));
    assert_eq!((tokens.len(), usage.prompt_tokens), (4, 36));
    let (to, _events) = mpsc::channel();
    let sink = Box::new(move |event: GenerationEvent| drop(to.send(event)));
    let request = GenerationRequest {
        prompt: vec![5; 40],
        sampling: SamplingParameters::default(),
        constraint: None,
        priority: 0,
        client: 0,
        salt: 0,
        id: String::new(),
    };
    let error = model.engine().submit(request, sink).unwrap_err().to_string();
    assert!(error.contains("expected at most 39"), "{error}");
}

/// The program as a worker.
fn worker() -> Arc<WorkerEngine> {
    let command = WorkerCommand {
        program: env!("CARGO_BIN_EXE_galatea").into(),
        arguments: vec!["core-ml-worker".to_owned()],
    };
    Arc::new(WorkerEngine::new(command, WorkerLimits::default()))
}

/// Chunks in an engine instead of sessions.
fn in_engine(folder: &Path, cache: &Path, engine: Arc<dyn CoreMlEngine>) -> LanguageModel {
    let cache = CompiledCache::new(cache.to_owned(), 1 << 30);
    let runner = ChunkRunner::new(engine, cache, engine::EngineLoadOptions::default());
    let options = CheckpointOptions { chunk_engine: Some(Arc::new(runner)), ..load_options() };
    LanguageModel::load(folder, &options).unwrap()
}

#[test]
fn engines_write_what_sessions_write_and_go_on_when_their_worker_ends() {
    let Some(models) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let sessions = chunks(&models.join("books-qwen2-draft-2m"), folder.path(), 96, true);
    let prompts = ["It was a dark and stormy night", "The", "Of all the things that she had said,"];
    let encode = |text: &str| sessions.tokenizer().encode(text, SpecialTokens::Omit).unwrap();
    let all = |model: &LanguageModel| {
        let asked = prompts.map(|text| ask(model, encode(text), 12));
        asked.map(|asked| answer(asked).0)
    };
    let expected = all(&sessions);
    let here = in_engine(folder.path(), cache.path(), Arc::new(ProgramInterpreter));
    assert_eq!(all(&here), expected);
    let worker = worker();
    let there =
        in_engine(folder.path(), cache.path(), Arc::clone(&worker) as Arc<dyn CoreMlEngine>);
    assert_eq!(all(&there), expected);
    // In the middle of an answer: what the worker had is computed anew.
    let (long, _) = answer(ask(&sessions, encode(prompts[0]), 40));
    let (_ticket, events) = ask(&there, encode(prompts[0]), 40);
    let (mut tokens, process) = (Vec::new(), worker.process().unwrap());
    for event in events {
        match event {
            GenerationEvent::Delta(delta) => {
                if tokens.is_empty() {
                    let kill = format!("kill -9 {process}");
                    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
                }
                tokens.extend(delta.tokens);
            }
            GenerationEvent::Failed(error) => panic!("{error}"),
            GenerationEvent::Started { .. } | GenerationEvent::Finished(_) => {}
        }
    }
    assert_eq!(tokens, long);
    assert_ne!(worker.process(), Some(process));
}

#[test]
fn sessions_run_chunks_that_an_engine_refuses() {
    let Some(models) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let sessions = chunks(&models.join("books-qwen2-draft-2m"), folder.path(), 40, true);
    let nowhere = WorkerCommand { program: "/nowhere/galatea".into(), arguments: Vec::new() };
    let engine = Arc::new(WorkerEngine::new(nowhere, WorkerLimits::default()));
    let other = in_engine(folder.path(), cache.path(), engine);
    let prompt = vec![5; 20];
    let expected = answer(ask(&sessions, prompt.clone(), 4)).0;
    assert_eq!(answer(ask(&other, prompt, 4)).0, expected);
}

#[test]
fn folders_with_something_else_are_not_written_over() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models/chat/1");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("letter.txt"), "dear").unwrap();
    let error = write_chunks(&source, folder.path(), &ChunkOptions::default()).unwrap_err();
    assert!(error.contains("holds no chunks"), "{error}");
}

/// Chunks of a small recorded checkpoint, in FP32, and the logits of a prompt and of four tokens behind it.
fn logits(name: &str, level: RewriteLevel) -> Vec<f32> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/llm").join(name);
    let folder = tempfile::tempdir().unwrap();
    let options = ChunkOptions {
        convert: ConvertOptions { half: false, level, ..ChunkOptions::default().convert },
        context: Some(32),
        prefill: Some(vec![8]),
        ..ChunkOptions::default()
    };
    let manifest = write_chunks(&source, folder.path(), &options).unwrap();
    for file in &manifest.chunks {
        let program = coreml::load_program(&folder.path().join(file)).unwrap();
        for (function, operation) in program.functions.values().flat_map(|function| {
            function.block.operations.iter().map(move |operation| (function, operation))
        }) {
            let types = operation.outputs.iter().filter_map(|(_, kind)| kind.as_tensor());
            let most = types.filter_map(|kind| Some(kind.shape.as_ref()?.len())).max();
            assert!(most <= Some(4), "{name}: {} of {} axes", operation.place(), function.opset);
        }
    }
    let mut model = ChunkModel::load(folder.path(), &load_options().chunks()).unwrap();
    let vocabulary = i64::try_from(manifest.vocabulary).unwrap();
    let tokens: Vec<i64> = (0..19).map(|at| (at * 7 + 3) % vocabulary).collect();
    let mut all = Vec::new();
    for (first, count) in [(0, 15), (15, 1), (16, 1), (17, 1), (18, 1)] {
        let last = first + count;
        let batch = StepBatch {
            tokens: tokens[first..last].to_vec(),
            positions: (first..last).map(|at| i64::try_from(at).unwrap()).collect(),
            starts: vec![0, i64::try_from(count).unwrap()],
            lengths: vec![i64::try_from(last).unwrap()],
            blocks: vec![0],
            most_blocks: 1,
            wanted: vec![i64::try_from(count).unwrap() - 1],
            need: LogitNeed::Logits,
        };
        let mut logits = model.step(&batch).unwrap();
        all.extend_from_slice(logits.row(0).unwrap());
    }
    all
}

#[test]
fn chunks_in_the_favoured_forms_give_the_same_logits() {
    for name in ["llama", "qwen2", "qwen3", "gpt2", "gemma3"] {
        let (plain, favoured) = (logits(name, RewriteLevel::O2), logits(name, RewriteLevel::O3));
        assert_eq!(plain.len(), favoured.len());
        let largest = plain.iter().fold(0.0_f32, |most, one| most.max(one.abs()));
        let far = plain.iter().zip(&favoured).fold(0.0_f32, |most, (a, b)| {
            let far = (a - b).abs();
            if far.is_nan() { f32::INFINITY } else { most.max(far) }
        });
        // Sums in another order, and states of FP16.
        assert!(far <= largest * 2e-3, "{name}: off by {far} of {largest}");
    }
}

/// Returns the output of a command, and whether it succeeds.
fn galatea(cache: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_galatea"));
    command.env("XDG_CACHE_HOME", cache).env("HOME", cache);
    let output = command.args(arguments).output().unwrap();
    let success = output.status.success();
    let text = if success { output.stdout } else { output.stderr };
    (success, String::from_utf8(text).unwrap())
}

#[test]
fn commands_know_folders_of_chunks() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models/chat/1");
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let chunks = folder.path().join("chat");
    let options = ChunkOptions {
        context: Some(40),
        prefill: Some(vec![8]),
        chunk_bytes: 500_000,
        ..ChunkOptions::default()
    };
    let manifest = write_chunks(&source, &chunks, &options).unwrap();
    // Lengths of states are multiples of 32, which the Neural Engine needs.
    assert_eq!((manifest.context, manifest.state_positions), (40, 64));
    let path = chunks.to_str().unwrap();
    let run = |arguments: &[&str]| galatea(cache.path(), arguments);
    let said = |arguments: &[&str]| {
        let (success, text) = run(arguments);
        assert!(success, "{arguments:?}: {text}");
        text
    };
    let text = said(&["inspect", path]);
    for part in ["layers_0.mlpackage", "prefill_8", "key fp16[", "head.mlpackage", "embeddings"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let found: Value = serde_json::from_str(&said(&["inspect", path, "--json"])).unwrap();
    let elements = manifest.head_size.next_multiple_of(32);
    let halves = 2 * 2 * manifest.layers * manifest.kv_heads * 64 * elements;
    assert_eq!(found["state_bytes"], halves, "{found}");
    let packages = found["packages"].as_array().unwrap();
    assert_eq!(packages.len(), manifest.chunks.len() + 1);
    assert_eq!(packages[0]["functions"], serde_json::json!(["decode", "prefill_8"]));
    assert!(packages[0]["weight_bytes"].as_u64().unwrap() > 100_000);
    let text = said(&["explain", path, "--provider", "coreml:M4"]);
    for part in ["predicted for Apple M4", "layers_0.mlpackage", "prefill_8: ", "tokens/s"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("slice_update"), "states are written where they are: {text}");
    let refused = |arguments: &[&str], part: &str| {
        let (success, text) = run(arguments);
        assert!(!success && text.contains(part), "{arguments:?}: {text}");
    };
    refused(&["explain", path, "--provider", "coreml:Z1"], "nothing is known of this chip");
    refused(&["explain", path, "--provider", "cpu"], "expected coreml:CHIP");
    refused(&["quantize", path, "--output", "x.onnx"], "quantize takes ONNX models");
    refused(&["tune", path], "tune takes checkpoints");
    refused(&["bench", path, "--perplexity", path], "--perplexity takes checkpoints");
    let prompt = ["run", path, "--prompt", "Hello", "--max-tokens", "8"];
    let engine = [&prompt[..], &["--provider", "coreml"]].concat();
    assert_eq!(said(&engine), said(&prompt));
    let compiled = std::fs::read_dir(cache.path().join("galatea/core-ml")).unwrap().count();
    assert!(compiled > packages.len(), "{compiled} entries");
}
