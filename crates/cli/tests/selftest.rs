//! `galatea selftest`: processes that panic, hang, and are killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A folder for the temporary files of a run, and its report.
struct RunFolder(tempfile::TempDir);

impl RunFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        Self(folder)
    }

    fn report(&self) -> PathBuf {
        self.0.path().join("report.jsonl")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_galatea"));
        command.arg("selftest").args(arguments).env("TMPDIR", self.0.path().join("tmp"));
        command.arg("--output").arg(self.report()).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn lines(&self) -> Vec<Value> {
        lines(&self.report())
    }

    /// Folders that a run has left.
    fn left(&self) -> usize {
        fs::read_dir(self.0.path().join("tmp")).unwrap().count()
    }
}

fn lines(report: &Path) -> Vec<Value> {
    let text = fs::read_to_string(report).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn wait(what: impl Fn() -> bool) {
    let started = Instant::now();
    while !what() {
        assert!(started.elapsed() < Duration::from_secs(60), "it takes too long");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn subjects_that_panic_abort_and_hang_are_lines_of_the_report() {
    let folder = RunFolder::new();
    let given = ["test-panic", "test-abort", "test-hang", "test-pass"]
        .map(|name| format!("--subject={name}"));
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    let done = folder.run(&[&given[..], &["--limit=3"]].concat());
    assert_eq!(done.status.code(), Some(1));
    let lines = folder.lines();
    let outcomes: Vec<&str> = lines.iter().map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["crashed", "crashed", "timed_out", "passed"], "{lines:?}");
    let reason = |at: usize| lines[at]["reason"].as_str().unwrap();
    assert!(reason(0).contains("a subject that panics"), "{}", reason(0));
    assert!(reason(1).contains("signal 6 (SIGABRT)"), "{}", reason(1));
    assert!(reason(2).contains("3 s"), "{}", reason(2));
    assert!(lines.iter().all(|line| line["unit"] == "host" && line["seconds"].is_number()));
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(text.contains("1 passed, 0 failed, 2 crashed, 1 timed out"), "{text}");
    assert_eq!(folder.left(), 0);
}

#[test]
fn a_run_that_is_killed_keeps_its_lines_and_leaves_no_files() {
    let folder = RunFolder::new();
    let mut run = folder
        .command(&["--subject=test-pass", "--subject=test-hang"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait(|| folder.lines().len() == 1);
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(folder.lines()[0]["outcome"], "passed");
    wait(|| folder.left() == 0);
}

#[test]
fn packages_pass_here_and_the_pages_and_reports_are_written() {
    let folder = RunFolder::new();
    let file = |name: &str| folder.0.path().join(name).to_string_lossy().into_owned();
    let given = [
        "--unit=cpu",
        "--subject=layers",
        "--subject=peaks",
        "--json",
        &file("all.json"),
        "--html",
        &file("page.html"),
    ];
    let done = folder.run(&given);
    let text = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{text}");
    assert!(text.contains("2 passed, 0 failed") && text.contains("peak_core_gflops"), "{text}");
    let all: Value = serde_json::from_str(&fs::read_to_string(file("all.json")).unwrap()).unwrap();
    assert_eq!(all["results"][0]["package"], "layers");
    assert_eq!(all["results"][0]["passed"], true);
    assert_eq!(all["subjects"][0]["subject"], "peaks");
    assert!(fs::read_to_string(file("page.html")).unwrap().contains("<td>layers</td>"));
    let report = folder.report().to_string_lossy().into_owned();
    let mut compare = Command::new(env!("CARGO_BIN_EXE_galatea"));
    let compared = compare.args(["selftest", "--compare", &report, &report]).output().unwrap();
    assert_eq!(compared.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&compared.stdout).contains("Outcomes that differ: 0"));
}

#[test]
fn features_of_core_ml_pass_through_a_worker_of_the_interpreter() {
    let folder = RunFolder::new();
    let done = folder.run(&["--unit=interpreter"]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stdout));
    let lines = folder.lines();
    let states = lines.iter().find(|line| line["subject"] == "worker-states");
    let steps = lines.iter().find(|line| line["subject"] == "worker-language-model").unwrap();
    assert!(lines.len() >= 8 && states.is_some_and(|line| line["outcome"] == "passed"));
    assert!(steps["figures"]["difference"].as_f64().unwrap() < 3e-2, "{steps}");
}

#[test]
fn mistakes_of_usage_have_a_status_of_their_own() {
    let folder = RunFolder::new();
    for given in [&["--unit=npu"][..], &["--subject=none"], &["--quick", "--full"], &["--nothing"]]
    {
        let done = folder.run(given);
        assert_eq!(done.status.code(), Some(2), "{given:?}");
        let told = String::from_utf8_lossy(&done.stderr);
        assert_eq!(told.lines().count(), 1, "{told}");
    }
    assert_eq!(folder.left(), 0);
}

#[test]
fn a_report_that_cannot_be_written_is_one_clear_line() {
    let run = Command::new(env!("CARGO_BIN_EXE_galatea"))
        .args(["selftest", "--subject=test-pass", "--output=/nowhere/a.jsonl"])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(1));
    let told = String::from_utf8_lossy(&run.stderr);
    assert!(told.lines().count() == 1 && told.contains("'/nowhere/a.jsonl'"), "{told}");
}
