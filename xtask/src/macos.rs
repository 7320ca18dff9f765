//! Type-checks, lints and links the workspace for macOS on Apple chips, on any machine.
//!
//! Two toolchains serve: rustup's with its `aarch64-apple-darwin` target, or Debian's `rustc-web`
//! with the standard library's source, which it compiles for the target itself.

mod compiler;
mod linker;
mod oldest;
mod stubs;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::debian;
use crate::process::{cargo, run};
use crate::python;
use crate::scope::CheckScope;
use crate::workspace::WorkspaceFolders;

pub(crate) use compiler::compile_with_zig;
pub(crate) use linker::{link_with_zig, write_script};

const TARGET: &str = "aarch64-apple-darwin";

/// Paths of cargo and its lints in Debian's packages.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_CLIPPY: &str = "/usr/bin/cargo-clippy";

const HOW: &str = "no toolchain for aarch64-apple-darwin. Either `rustup target add \
    aarch64-apple-darwin`, or on Debian `apt install rustc-web cargo-web rust-web-src \
    rust-web-clippy`";

/// Checks crates with the first toolchain found.
pub(crate) fn check(workspace: &WorkspaceFolders, scope: &CheckScope) -> Result<(), String> {
    let Some(packages) = scope.cargo_packages() else { return Ok(()) };
    let rustup = debian::rustup_has(TARGET)?;
    let lints = rustup || Path::new(DEBIAN_CLIPPY).exists();
    let python = python::environment(workspace)?;
    compiler::write(&compiler_path(workspace), &python)?;
    let mut command = for_target(workspace, if lints { "clippy" } else { "check" })?;
    command.args(packages).arg("--all-targets");
    if lints {
        command.args(["--", "-D", "warnings"]);
    } else {
        command.env("RUSTFLAGS", "-D warnings");
    }
    run(&mut command)
}

/// Links the program against stand-ins for macOS's libraries, which know what it uses and no more.
pub(crate) fn link(workspace: &WorkspaceFolders) -> Result<(), String> {
    let python = python::environment(workspace)?;
    let root = system_root(workspace);
    stubs::write(&root)?;
    linker::write(&linker_path(workspace), &python, &root)?;
    linker::prove(&linker_path(workspace), &root)?;
    compiler::write(&compiler_path(workspace), &python)?;
    let mut command = for_target(workspace, "build")?;
    // The example goes through every door to Core ML, which the program need not.
    command.args(["--package", "galatea-cli", "--bins", "--package", "galatea-apple"]);
    command.args(["--example", "coreml"]);
    run(&mut command)
}

/// The folder that stands for a Mac's root.
fn system_root(workspace: &WorkspaceFolders) -> PathBuf {
    workspace.target.join("macos-root")
}

/// The program that rustc calls to link.
fn linker_path(workspace: &WorkspaceFolders) -> PathBuf {
    workspace.target.join("macos-linker")
}

/// The program that build scripts call to compile C.
fn compiler_path(workspace: &WorkspaceFolders) -> PathBuf {
    workspace.target.join("macos-compiler")
}

/// A command of cargo's for the target.
fn for_target(workspace: &WorkspaceFolders, name: &str) -> Result<Command, String> {
    let rustup = debian::rustup_has(TARGET)?;
    let mut command = if rustup {
        cargo(&workspace.root)
    } else if debian::is_installed() {
        let program = if name == "clippy" { DEBIAN_CLIPPY } else { DEBIAN_CARGO };
        debian::command(program, &workspace.root)
    } else {
        return Err(HOW.to_owned());
    };
    command.args([name, "--target", TARGET]);
    if !rustup {
        command.arg("-Zbuild-std=std,panic_abort,test");
    }
    // All commands have these, since a change of any compiles the standard library anew. Nothing is
    // run, so nothing need be fast; with a root, rustc does not ask Xcode for one.
    command
        .env("CARGO_TARGET_DIR", workspace.target.join("macos"))
        .env("CARGO_TARGET_AARCH64_APPLE_DARWIN_LINKER", linker_path(workspace))
        .env("CC_aarch64_apple_darwin", compiler_path(workspace))
        .env("CARGO_PROFILE_DEV_DEBUG", "none")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        // Debian has no `rust-objcopy` to strip with.
        .env("CARGO_PROFILE_DEV_STRIP", "false")
        .env("SDKROOT", system_root(workspace));
    Ok(command)
}
