//! Test programs of the workspace. All steps use one build of them, because features of dependencies are resolved
//! anew for each selection of packages, and everything above a crate whose features differ is then compiled again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::failures::FailureReport;
use crate::process::{cargo, run_watched, show};
use crate::steps::GPU;
use crate::workspace::WorkspaceFolders;

/// One program with tests.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestProgram {
    /// Folder of its crate under `crates`, or `xtask`.
    pub(crate) folder: String,
    /// Name of the test target; that of the crate for its unit tests.
    pub(crate) target: String,
    /// Folder in which its tests expect to run.
    root: PathBuf,
    /// The program itself.
    path: PathBuf,
}

/// Wall time of one program.
struct ProgramTime {
    name: String,
    time: Duration,
}

impl TestProgram {
    /// Returns crate and target, as tables show them.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.folder, self.target)
    }

    /// Returns whether the program's tests need a Vulkan device.
    pub(crate) fn needs_gpu(&self) -> bool {
        self.folder == "gpu" || (self.folder == "cli" && self.target == "gpu")
    }

    /// Returns the command that runs the tests, behind `runner` where there is one.
    pub(crate) fn command(&self, runner: Option<&str>) -> Command {
        let mut command = match runner {
            Some(runner) => {
                let mut command = Command::new(runner);
                command.arg(&self.path);
                command
            }
            None => Command::new(&self.path),
        };
        command.current_dir(&self.root);
        command
    }
}

/// Builds the tests of all crates, and the program beside them.
///
/// # Errors
/// Fails when they do not compile.
pub(crate) fn build(workspace: &WorkspaceFolders) -> Result<Vec<TestProgram>, String> {
    let mut command = cargo(&workspace.root);
    command.args(["test", "--workspace", "--features", GPU, "--no-run"]);
    command.args(["--message-format", "json-render-diagnostics"]);
    command.stdout(Stdio::piped());
    let shown = show(&command);
    println!("$ {shown}");
    let child = command.spawn().map_err(|e| format!("cannot run `{shown}`: {e}"))?;
    let result = child.wait_with_output().map_err(|e| format!("`{shown}`: {e}"))?;
    if !result.status.success() {
        return Err(format!("`{shown}`: {}", result.status));
    }
    let text = String::from_utf8(result.stdout).map_err(|e| format!("`{shown}`: {e}"))?;
    let mut programs: Vec<TestProgram> = text.lines().filter_map(read_message).collect();
    programs.sort_by_key(TestProgram::name);
    Ok(programs)
}

/// Reads a line of cargo's messages; `None` where it tells of no test program.
fn read_message(line: &str) -> Option<TestProgram> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_test = message.get("profile")?.get("test")?.as_bool()?;
    if message.get("reason")? != "compiler-artifact" || !is_test {
        return None;
    }
    let root = Path::new(message.get("manifest_path")?.as_str()?).parent()?.to_path_buf();
    Some(TestProgram {
        folder: root.file_name()?.to_str()?.to_owned(),
        target: message.get("target")?.get("name")?.as_str()?.to_owned(),
        path: message.get("executable")?.as_str()?.into(),
        root,
    })
}

/// Runs programs one after the other with what `prepare` makes of each. A failure lets the others run.
///
/// # Errors
/// Fails with the names of the programs that failed, each with what it said of its failures.
pub(crate) fn run_all(
    programs: &[TestProgram],
    prepare: impl Fn(&TestProgram) -> Command,
) -> Result<(), String> {
    let mut times = Vec::new();
    let mut failed = Vec::new();
    for program in programs {
        let start = Instant::now();
        let mut report = FailureReport::default();
        if run_watched(&mut prepare(program), |line| report.take_line(line)).is_err() {
            failed.push(format!("{}\n{}", program.name(), report.text()));
        }
        times.push(ProgramTime { name: program.name(), time: start.elapsed() });
    }
    times.sort_by_key(|program| std::cmp::Reverse(program.time));
    for program in times.iter().take(SLOWEST) {
        println!("{:<32} {:>8.1} s", program.name, program.time.as_secs_f64());
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("tests failed in {}", failed.join("and in ")))
    }
}

/// Programs whose times are printed.
const SLOWEST: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/gpu/Cargo.toml",
        "target":{"name":"metal"},"profile":{"test":true},"executable":"/w/target/debug/deps/metal-1"}"#;

    #[test]
    fn test_programs_are_read_from_messages_and_nothing_else_is() {
        let program = read_message(&MESSAGE.replace('\n', "")).unwrap();
        assert_eq!(program.name(), "gpu/metal");
        assert!(program.needs_gpu());
        assert_eq!(read_message(&MESSAGE.replace("true", "false")), None);
        assert_eq!(read_message("{\"reason\":\"build-finished\",\"success\":true}"), None);
        assert_eq!(read_message("warning: no JSON"), None);
    }
}
