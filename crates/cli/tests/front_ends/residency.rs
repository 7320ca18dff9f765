//! Language models that share less memory than they need together.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use galatea::Engine;
use galatea::models::{CheckpointDefaults, ModelMachine};
use galatea_serving::core::VersionState;
use galatea_serving::{Core, CoreOptions};
use serde_json::{Value, json};

use crate::client::{exchange, json_of, post, request};
use crate::speller::{core_within, write_checkpoint};
use crate::{Fixture, flags};

const COMPLETIONS: &str = "/v1/completions";

/// Two spellers of 1000 bytes each.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        write_checkpoint(&folder.path().join(name));
        fs::write(folder.path().join(name).join("model.safetensors"), [b' '; 1000]).unwrap();
    }
    folder
}

fn serve(core: Arc<Core>) -> Fixture {
    Fixture::on(core, &flags(&[]))
}

fn ask(address: SocketAddr, model: &str) -> (u16, String) {
    let body = json!({"model": model, "prompt": "w", "max_tokens": 3, "temperature": 0});
    let (status, _, body) = post(address, COMPLETIONS, &body);
    (status, body)
}

fn said(address: SocketAddr, model: &str) -> String {
    let (status, body) = ask(address, model);
    assert_eq!(status, 200, "{body}");
    json_of(&body)["choices"][0]["text"].as_str().unwrap().to_owned()
}

/// The models that are not in memory, as the index has it.
fn absent(core: &Core) -> Vec<String> {
    let index = core.repository_index(true).into_iter();
    assert!(index.clone().all(|line| line.state == Some(VersionState::Ready)));
    index.filter(|line| line.reason.is_some()).map(|line| line.name).collect()
}

#[test]
fn an_idle_model_makes_room_and_comes_back_when_it_is_asked_for() {
    let folder = repository();
    let (core, loads) = core_within(folder.path(), 1500);
    let fixture = serve(Arc::clone(&core));
    let address = fixture.server.addresses().http.unwrap();
    // Both were loaded at the start, one after the other.
    assert_eq!((loads.load(Ordering::SeqCst), absent(&core).len()), (2, 1));
    for model in ["a", "b", "a"] {
        assert_eq!(said(address, model), "xyz");
        let other = if model == "a" { "b" } else { "a" };
        assert_eq!(absent(&core), [other]);
        let page =
            exchange(fixture.server.addresses().metrics.unwrap(), &request("GET", "/metrics", ""));
        for (name, bytes) in [(model, 1000), (other, 0)] {
            let line = format!("galatea_model_memory_bytes{{model_name=\"{name}\"}} {bytes}\n");
            assert!(page.contains(&line), "{page}");
        }
    }
    // Triton's front end brings a model in as well, and all are told of.
    let body = json!({"text_input": "w", "parameters": {"max_tokens": 3, "temperature": 0}});
    let (status, _, body) = post(address, "/v2/models/b/generate", &body);
    assert_eq!((status, json_of(&body)["text_output"].as_str()), (200, Some("wxyz")), "{body}");
    assert_eq!(absent(&core), ["a"]);
    let listed = exchange(address, &request("GET", "/v1/models", ""));
    let listed: Value = json_of(listed.split_once("\r\n\r\n").unwrap().1);
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);
    assert!(core.model_ready("a", "").unwrap() && core.is_ready());
}

#[test]
fn requests_for_a_model_that_is_being_loaded_wait_for_that_one_load() {
    let folder = repository();
    let (core, loads) = core_within(folder.path(), 1500);
    let fixture = serve(Arc::clone(&core));
    let address = fixture.server.addresses().http.unwrap();
    assert_eq!(said(address, "a"), "xyz");
    let before = loads.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..6).map(|_| scope.spawn(|| said(address, "b"))).collect();
        for asked in asked {
            assert_eq!(asked.join().unwrap(), "xyz");
        }
    });
    assert_eq!(loads.load(Ordering::SeqCst), before + 1);
}

#[test]
fn a_model_with_requests_is_not_unloaded_and_the_other_is_refused_until_they_end() {
    let folder = repository();
    let (core, _) = core_within(folder.path(), 1500);
    let fixture = serve(Arc::clone(&core));
    let address = fixture.server.addresses().http.unwrap();
    let held = core.resolve("a", "").unwrap().checkpoint().unwrap().unwrap();
    let (status, body) = ask(address, "b");
    let why = "model 'b' needs 1000 bytes of memory, but models that answer requests now have 1000 of the 1500 for all \
               language models; it can be loaded when these have ended";
    assert_eq!((status, json_of(&body)["error"]["message"].as_str()), (503, Some(why)));
    let body = json!({"text_input": "w"});
    let (status, _, body) = post(address, "/v2/models/b/generate", &body);
    // Triton's `generate` has this status for whatever goes wrong inside.
    assert_eq!((status, json_of(&body)["error"].as_str()), (400, Some(why)));
    assert_eq!(said(address, "a"), "xyz");
    drop(held);
    assert_eq!(said(address, "b"), "xyz");
}

#[test]
fn a_model_that_never_has_room_is_said_so_at_the_start() {
    let folder = repository();
    let (core, loads) = core_within(folder.path(), 999);
    let failures = core.load_failures();
    assert_eq!((failures.len(), loads.load(Ordering::SeqCst)), (2, 0));
    let why = "needs 1000 bytes of memory, more than the limit for all language models, 999";
    assert!(failures.iter().all(|failure| failure.reason.contains(why)), "{failures:?}");
}

#[test]
fn two_checkpoints_take_turns_in_the_memory_of_one() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models/chat");
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        copy(&sample, &folder.path().join(name));
        // It names the sample, and these have names of their own.
        fs::remove_file(folder.path().join(name).join("config.pbtxt")).unwrap();
    }
    let start = |limit| {
        let options =
            CoreOptions { repositories: vec![folder.path().to_owned()], ..CoreOptions::default() };
        Core::start(
            options,
            Engine::new().backends_with(
                None,
                CheckpointDefaults::default(),
                limit,
                ModelMachine::default(),
            ),
        )
        .unwrap()
    };
    let core = start(Some(u64::MAX / 2));
    let one = core.checkpoints()[0].memory_bytes.unwrap();
    assert!(one > 100_000 && core.checkpoints().iter().all(|listed| listed.loaded.is_some()));
    drop(core);
    let core = start(Some(one + one / 2));
    let fixture = serve(Arc::clone(&core));
    let address = fixture.server.addresses().http.unwrap();
    let body = |model: &str| {
        json!({"model": model, "temperature": 0, "max_tokens": 8,
               "messages": [{"role": "user", "content": "hello"}]})
    };
    let mut said = Vec::new();
    for model in ["a", "b", "a", "b"] {
        let (status, _, answer) = post(address, "/v1/chat/completions", &body(model));
        assert_eq!(status, 200, "{answer}");
        said.push(json_of(&answer)["choices"][0]["message"]["content"].clone());
        assert_eq!(absent(&core), [if model == "a" { "b" } else { "a" }]);
    }
    assert!(said.iter().all(|text| *text == said[0] && text.is_string()), "{said:?}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => {
                fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        }
    }
}
