//! `galatea chat --url`: talks with a model of a running server.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::{Fixture, flags, samples};

fn chat(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_galatea"));
    command.arg("chat").args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = command.spawn().unwrap();
    program.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    program.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_model_of_a_server_answers_as_one_that_is_loaded_here() {
    let fixture = Fixture::on(samples(&["chat"]), &flags(&[]));
    let url = format!("--url=http://{}/v1", fixture.http());
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/models/chat/1");
    let question = "What is Galatea?";
    let told = |arguments: &[&str], input: &str| {
        let found = chat(arguments, input);
        assert!(found.status.success(), "{arguments:?}: {}", text(&found.stderr));
        text(&found.stdout)
    };
    let expected = told(&[here, "--prompt", question], "");
    assert!(expected.contains("inference server"), "{expected}");
    for arguments in [&[&*url][..], &[&*url, "chat"]] {
        assert_eq!(told(&[arguments, &["--prompt", question]].concat(), ""), expected);
    }
    // A conversation: the second question stands behind the first answer.
    let lines = format!("{question}\n/reset\n\"\"\"\n{question}\n\"\"\"\n");
    assert_eq!(told(&[&url], &lines), expected.repeat(2));
    let found = chat(&[&url, "--stats", "--prompt", question], "");
    assert!(text(&found.stderr).contains("tokens/s"), "{}", text(&found.stderr));
    for (arguments, wanted) in [
        (&[&*url, "nobody"][..], "has no model 'nobody'; it serves chat"),
        (&[&*url, "--dtype=float16"], "--dtype is about loading a model"),
        (&["--url=127.0.0.1:1"], "no server answers at 127.0.0.1:1"),
        (&[here, "--insecure"], "give --url"),
        (&[], "MODEL is missing"),
    ] {
        let found = chat(arguments, "");
        let error = text(&found.stderr);
        assert!(!found.status.success() && error.contains(wanted), "{arguments:?}: {error}");
    }
    assert!(fixture.stop());
}
