//! `galatea quickstart` away from the sources.

use std::fs;
use std::process::{Command, Output};

fn quickstart(folder: &std::path::Path, arguments: &[&str]) -> Output {
    let ports = ["--once", "--http-port=0", "--grpc-port=0", "--metrics-port=0"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_galatea"));
    command.current_dir(folder).arg("quickstart").args(ports).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_samples_are_part_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let program = folder.path().join("galatea");
    // As from a package: the program alone.
    fs::copy(env!("CARGO_BIN_EXE_galatea"), &program).unwrap();
    let mut command = Command::new(&program);
    command.current_dir(folder.path()).env("TMPDIR", &temporary).arg("quickstart");
    command.args(["--once", "--http-port=0", "--grpc-port=0", "--metrics-port=0"]);
    let found = command.output().unwrap();
    let page = text(&found.stdout);
    assert!(found.status.success(), "{page}{}", text(&found.stderr));
    for wanted in
        ["| digits ", "samples answered as expected.", "9 of 9 chats", "/v1/chat/completions"]
    {
        assert!(page.contains(wanted), "{wanted} is not in\n{page}");
    }
    let left: Vec<_> = fs::read_dir(&temporary).unwrap().flatten().map(|one| one.path()).collect();
    let left = left.iter().filter(|path| path.to_string_lossy().contains("galatea-samples"));
    assert_eq!(left.count(), 0, "the samples go at the end");
}

#[test]
fn models_without_samples_are_served_too() {
    let folder = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/models/simple/1/model.onnx");
    fs::copy(source, folder.path().join("plain.onnx")).unwrap();
    for given in ["plain.onnx", "."] {
        let found = quickstart(folder.path(), &["--model-repository", given]);
        let page = text(&found.stdout);
        assert!(found.status.success(), "{given}: {page}{}", text(&found.stderr));
        for wanted in ["sample_input.json", "/v2/models/plain/config"] {
            assert!(page.contains(wanted), "{given}: {wanted} is not in\n{page}");
        }
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ports = ["--http-port", &port, "--grpc-port=0", "--metrics-port=0", "--once"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_galatea"));
    command.current_dir(folder.path()).args(["quickstart", "--model-repository=."]).args(ports);
    let found = command.output().unwrap();
    let error = text(&found.stderr);
    assert!(!found.status.success() && error.contains("already in use"), "{error}");
}
