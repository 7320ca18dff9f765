//! Type-checks and lints the workspace for macOS on Apple chips.
//!
//! Two toolchains serve: rustup's with its `aarch64-apple-darwin` target, or Debian's `rustc-web`
//! with the standard library's source, which it compiles for the target itself.

use std::path::Path;
use std::process::Command;

use crate::debian;
use crate::process::{cargo, run};
use crate::workspace::Workspace;

const TARGET: &str = "aarch64-apple-darwin";

/// Where Debian's packages put cargo and its lints.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_CLIPPY: &str = "/usr/bin/cargo-clippy";

const HOW: &str = "no toolchain for aarch64-apple-darwin. Either `rustup target add \
    aarch64-apple-darwin`, or on Debian `apt install rustc-web cargo-web rust-web-src \
    rust-web-clippy`";

/// Checks every crate with the first toolchain found.
pub(crate) fn check(workspace: &Workspace) -> Result<(), String> {
    let mut command = if debian::rustup_has(TARGET)? {
        let mut command = cargo(&workspace.root);
        command.args(["clippy", "--workspace", "--all-targets", "--target", TARGET]);
        command.args(["--", "-D", "warnings"]);
        command
    } else if debian::is_installed() {
        with_debian(workspace)
    } else {
        return Err(HOW.to_owned());
    };
    command.env("CARGO_TARGET_DIR", workspace.target.join("macos"));
    run(&mut command)
}

/// Debian's cargo compiles the standard library for the target.
fn with_debian(workspace: &Workspace) -> Command {
    let lints = Path::new(DEBIAN_CLIPPY).exists();
    let program = if lints { DEBIAN_CLIPPY } else { DEBIAN_CARGO };
    let mut command = debian::command(program, &workspace.root);
    command.arg(if lints { "clippy" } else { "check" });
    command.args(["--workspace", "--all-targets", "-Zbuild-std=std,panic_abort,test"]);
    command.args(["--target", TARGET]);
    if lints {
        command.args(["--", "-D", "warnings"]);
    } else {
        command.env("RUSTFLAGS", "-D warnings");
    }
    command
}
