//! The tests of models in Python under interpreters of several versions. Their environments lie under `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{output, run};
use crate::programs;
use crate::workspace::WorkspaceFolders;

/// The oldest version that workers run on.
const OLDEST: (u32, u32) = (3, 9);
/// Packages that workers and their tests need.
const PACKAGES: &[&str] = &["numpy", "pytest", "pytest-asyncio", "pytest-timeout"];
/// Modules of tests that start workers, as the test program filters by them.
const TESTS: &[&str] =
    &["python_backend::", "python_bls::", "python_environments::", "python_metrics::"];
/// Tests of the worker alone, without what the others of their folder need.
const WORKER: &str = "python/tests/test_python_worker.py";
const VERSION: &str = "import sys; print('.'.join(map(str, sys.version_info[:3])))";

/// Runs the tests under each interpreter, `python3` where none is named, and says which have failed.
pub(crate) fn test(workspace: &WorkspaceFolders, pythons: &[String]) -> Result<(), String> {
    let usual = ["python3".to_owned()];
    let pythons = if pythons.is_empty() { &usual[..] } else { pythons };
    let mut failed = Vec::new();
    for python in pythons {
        println!("\n==== {python}");
        if let Err(why) = test_under(workspace, python) {
            println!("FAILED {python}: {why}");
            failed.push(python.as_str());
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

fn test_under(workspace: &WorkspaceFolders, python: &str) -> Result<(), String> {
    let python = environment(workspace, python)?;
    let mut programs = programs::build(workspace)?;
    programs.retain(|program| program.name() == "serving/integration");
    let tests = programs::run_all(&programs, |program| {
        let mut command = program.command(None);
        command.args(TESTS).env("GALATEA_PYTHON", &python);
        command
    });
    let mut worker = Command::new(&python);
    worker.current_dir(&workspace.root).args(["-m", "pytest", "-q", "--noconftest", WORKER]);
    tests.and(run(&mut worker))
}

/// The interpreter of an environment with what is needed, which is made where it is not there.
fn environment(workspace: &WorkspaceFolders, python: &str) -> Result<PathBuf, String> {
    let printed = output(Command::new(python).args(["-c", VERSION]))?;
    let version = printed.trim();
    if !is_supported(version) {
        let (major, minor) = OLDEST;
        return Err(format!("it is Python {version}, expected {major}.{minor} or later"));
    }
    let folder = workspace.target.join("pythons").join(version);
    let own = folder.join("bin/python");
    let wanted = PACKAGES.join("\n");
    let stamp = folder.join("installed.txt");
    if own.exists() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(own);
    }
    run(Command::new(python).args(["-m", "venv", "--clear"]).arg(&folder))?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(Command::new(&own).args(install).args(PACKAGES))?;
    write(&stamp, &wanted)?;
    Ok(own)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn is_supported(version: &str) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    numbers.next().zip(numbers.next()).is_some_and(|found| found >= OLDEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let versions = ["3.9.18", "3.13.0", "4.0.0", "3.8.18", "2.7.18", "", "3"];
        let found = versions.map(is_supported);
        assert_eq!(found, [true, true, true, false, false, false, false]);
    }
}
