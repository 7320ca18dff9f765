//! Runs the code for macOS on Linux, on the doubles of `crates/doubles`.
//!
//! The cfg `apple_doubles` chooses that code and the doubles. Crates that bind macOS's libraries name frameworks to
//! link, which rustc refuses elsewhere. So cargo calls this program in the place of rustc (`RUSTC_WRAPPER`), and it
//! hands rustc copies of those crates' sources that name none. `Cargo.lock` stays as it is.

mod probes;
mod sources;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::macos::write_script;
use crate::process::{cargo, run};
use crate::workspace::WorkspaceFolders;
use probes::WatchedCrate;

/// Crates with code for macOS, below the program.
const BELOW: &[&str] = &[
    "--package",
    "galatea-doubles",
    "--package",
    "galatea-played",
    "--package",
    "galatea-apple",
    "--package",
    "galatea-coreml",
];

/// Tests of these crates, and of the program: some start it, so that all of it is built. One command builds what they
/// share once.
const TESTS: &[&str] = &[
    "--package",
    "galatea-cli",
    "--lib",
    "--test",
    "core_ml",
    "--test",
    "doubles",
    "--test",
    "played_mac",
];

/// Folders of what is built here, and the program that cargo calls in the place of rustc.
struct DoublesBuild<'w> {
    workspace: &'w WorkspaceFolders,
    target: PathBuf,
    sources: PathBuf,
    wrapper: PathBuf,
}

impl<'w> DoublesBuild<'w> {
    fn new(workspace: &'w WorkspaceFolders) -> Result<Self, String> {
        let target = workspace.target.join("doubles");
        let sources = target.join("sources");
        std::fs::create_dir_all(&sources)
            .map_err(|error| format!("{}: {error}", sources.display()))?;
        let wrapper = target.join("rustc");
        write_script(&wrapper, &[Path::new("doubles-rustc"), &sources])?;
        Ok(Self { workspace, target, sources, wrapper })
    }

    /// Runs a command of cargo's with the doubles.
    fn cargo(&self, command: &str, arguments: &[&[&str]]) -> Result<(), String> {
        let mut cargo = cargo(&self.workspace.root);
        cargo
            .arg(command)
            .args(arguments.concat())
            .env("CARGO_TARGET_DIR", &self.target)
            .env("RUSTC_WRAPPER", &self.wrapper)
            .env("RUSTFLAGS", "--cfg apple_doubles")
            // Nothing here takes time to run, only to compile.
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_DEV_DEBUG", "none");
        run(&mut cargo)
    }
}

/// Has clippy read the code for macOS, and runs the tests.
pub(crate) fn test(workspace: &WorkspaceFolders) -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        println!("nothing to do: the doubles are for Linux");
        return Ok(());
    }
    let build = DoublesBuild::new(workspace)?;
    build.cargo("clippy", &[BELOW, &["--all-targets", "--", "-D", "warnings"]])?;
    for (name, _) in probes::WATCHED {
        let seen = build.sources.join(format!("{name}.seen"));
        std::fs::write(&seen, "").map_err(|error| format!("{}: {error}", seen.display()))?;
    }
    build.cargo("test", &[BELOW, TESTS])?;
    probes::report(&build.sources)
}

/// `cargo xtask doubles-rustc SOURCES RUSTC ARGUMENT...`, which cargo calls.
pub(crate) fn compile(arguments: &[String]) -> Result<(), String> {
    let [folder, rustc, rest @ ..] = arguments else {
        return Err("doubles-rustc: expected a folder, rustc and its arguments".to_owned());
    };
    let folder = Path::new(folder);
    let mut command = Command::new(rustc);
    let mut watched = None;
    // What clippy reads is as it was written.
    let lints = Path::new(rustc).file_stem().is_some_and(|name| name == LINTS);
    for argument in rest {
        if let Some(found) = WatchedCrate::of(argument, folder).filter(|_| !lints) {
            found.copy()?;
            command.arg(found.to.join("lib.rs"));
            watched = Some(found);
            continue;
        }
        match sources::replaced(folder, argument)? {
            Some(copy) => command.arg(copy),
            None => command.arg(argument),
        };
    }
    let status = command.status().map_err(|error| format!("{rustc}: {error}"))?;
    if !status.success() {
        // rustc has said why.
        std::process::exit(status.code().unwrap_or(1));
    }
    match (watched, listed(rest)) {
        (Some(watched), Some(list)) if list.exists() => watched.correct(&list),
        _ => Ok(()),
    }
}

/// Name of clippy, where cargo calls it in the place of rustc.
const LINTS: &str = "clippy-driver";

/// File in which rustc, called with these arguments, lists the sources that it read.
fn listed(arguments: &[String]) -> Option<PathBuf> {
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    let extra = arguments.iter().find_map(|argument| argument.strip_prefix("extra-filename="))?;
    let name = after("--crate-name")?;
    Some(Path::new(after("--out-dir")?).join(format!("{name}{extra}.d")))
}
