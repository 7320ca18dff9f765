//! The Python environment under `target/` and the tests that use the stock clients.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::run;
use crate::programs;
use crate::workspace::{WorkspaceFolders, read};

const REQUIREMENTS: &str = "python/requirements-test.txt";

/// Runs the client tests against the program built in the test profile.
pub(crate) fn test(workspace: &WorkspaceFolders) -> Result<(), String> {
    let python = environment(workspace)?;
    programs::build(workspace)?;
    let mut command = Command::new(python);
    command.current_dir(&workspace.root).args(["-m", "pytest", "-q", "python/tests"]);
    command.env("GALATEA", program(workspace));
    run(&mut command)
}

/// Serves the sample repository, sends each model its sample and exits.
pub(crate) fn quickstart(workspace: &WorkspaceFolders) -> Result<(), String> {
    programs::build(workspace)?;
    let mut command = Command::new(program(workspace));
    run(command.current_dir(&workspace.root).args(["quickstart", "--once"]))
}

/// The built program.
fn program(workspace: &WorkspaceFolders) -> PathBuf {
    workspace.target.join("debug").join(format!("galatea{}", std::env::consts::EXE_SUFFIX))
}

/// The BLAS with 64-bit integers that NumPy brings, where it does.
pub(crate) fn foreign_blas(python: &Path) -> Option<PathBuf> {
    let site = python.parent()?.parent()?.join("lib");
    let pythons = fs::read_dir(site).ok()?.flatten();
    let libraries = pythons.map(|entry| entry.path().join("site-packages/numpy.libs"));
    let files = libraries.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    files
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|n| n.to_string_lossy().contains("openblas64")))
}

/// The environment's interpreter; makes the environment when its list of packages has changed.
pub(crate) fn environment(workspace: &WorkspaceFolders) -> Result<PathBuf, String> {
    let folder = workspace.target.join("venv");
    let python = folder.join("bin/python");
    let wanted = read(&workspace.root.join(REQUIREMENTS))?;
    let stamp = folder.join("installed.txt");
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(&python).current_dir(&workspace.root).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--requirement",
        REQUIREMENTS,
    ]))?;
    fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))?;
    Ok(python)
}
