//! Runs the code for macOS on Linux, on the doubles of `crates/doubles`.
//!
//! The cfg `apple_doubles` chooses that code and the doubles. Crates that bind macOS's libraries name frameworks to
//! link, which rustc refuses elsewhere. So cargo calls this program in the place of rustc (`RUSTC_WRAPPER`), and it
//! hands rustc copies of those crates' sources that name none. `Cargo.lock` stays as it is.

mod sources;

use std::path::Path;
use std::process::Command;

use crate::macos::write_script;
use crate::process::{cargo, run};
use crate::workspace::WorkspaceFolders;

/// Crates whose tests run.
const CRATES: &[&str] = &["galatea-doubles", "galatea-apple"];

/// Tests of the program: they start it, so that all of it is built, but its other tests are not.
const OF_PROGRAM: &[&str] = &["--package", "galatea-cli", "--test", "played_mac"];

/// Runs the tests.
pub(crate) fn test(workspace: &WorkspaceFolders) -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        println!("nothing to do: the doubles are for Linux");
        return Ok(());
    }
    let target = workspace.target.join("doubles");
    let sources = target.join("sources");
    std::fs::create_dir_all(&sources).map_err(|error| format!("{}: {error}", sources.display()))?;
    let wrapper = target.join("rustc");
    write_script(&wrapper, &[Path::new("doubles-rustc"), &sources])?;
    let of_crates = CRATES.iter().flat_map(|name| ["--package", *name]).chain(["--tests"]);
    for arguments in [of_crates.collect(), OF_PROGRAM.to_vec()] {
        let mut command = cargo(&workspace.root);
        command
            .arg("test")
            .args(arguments)
            .env("CARGO_TARGET_DIR", &target)
            .env("RUSTC_WRAPPER", &wrapper)
            .env("RUSTFLAGS", "--cfg apple_doubles")
            // Nothing here takes time to run, only to compile.
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_DEV_DEBUG", "none");
        run(&mut command)?;
    }
    Ok(())
}

/// `cargo xtask doubles-rustc SOURCES RUSTC ARGUMENT...`, which cargo calls.
pub(crate) fn compile(arguments: &[String]) -> Result<(), String> {
    let [folder, rustc, rest @ ..] = arguments else {
        return Err("doubles-rustc: expected a folder, rustc and its arguments".to_owned());
    };
    let mut command = Command::new(rustc);
    for argument in rest {
        match sources::replaced(Path::new(folder), argument)? {
            Some(copy) => command.arg(copy),
            None => command.arg(argument),
        };
    }
    let status = command.status().map_err(|error| format!("{rustc}: {error}"))?;
    // rustc has said why.
    if status.success() { Ok(()) } else { std::process::exit(status.code().unwrap_or(1)) }
}
