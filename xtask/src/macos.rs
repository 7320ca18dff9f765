//! Type-checks and lints the workspace for macOS on Apple chips.
//!
//! Two toolchains serve: rustup's with its `aarch64-apple-darwin` target, or Debian's `rustc-web`
//! with the standard library's source, which it compiles for the target itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{cargo, output, run};
use crate::workspace::Workspace;

const TARGET: &str = "aarch64-apple-darwin";

/// Where Debian's packages put their programs and the standard library's source.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CLIPPY: &str = "/usr/bin/cargo-clippy";
const DEBIAN_SOURCE: &str = "/usr/lib/rustlib/src/rust/library/std";

const HOW: &str = "no toolchain for aarch64-apple-darwin. Either `rustup target add \
    aarch64-apple-darwin`, or on Debian `apt install rustc-web cargo-web rust-web-src \
    rust-web-clippy`";

/// Checks every crate with the first toolchain found.
pub(crate) fn check(workspace: &Workspace) -> Result<(), String> {
    let mut command = if installed_target()? {
        let mut command = cargo(&workspace.root);
        command.args(["clippy", "--workspace", "--all-targets", "--target", TARGET]);
        command.args(["--", "-D", "warnings"]);
        command
    } else if [DEBIAN_CARGO, DEBIAN_RUSTC, DEBIAN_SOURCE].iter().all(|p| Path::new(p).exists()) {
        debian(workspace)
    } else {
        return Err(HOW.to_owned());
    };
    command.env("CARGO_TARGET_DIR", workspace.target.join("macos"));
    run(&mut command)
}

fn installed_target() -> Result<bool, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let folder =
        output(Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]))?;
    Ok(PathBuf::from(folder.trim()).is_dir())
}

/// Debian's cargo compiles the standard library for the target. rustup's variables and its folder
/// of programs are kept out, since its proxies would answer instead.
fn debian(workspace: &Workspace) -> Command {
    let lints = Path::new(DEBIAN_CLIPPY).exists();
    let mut command = Command::new(if lints { DEBIAN_CLIPPY } else { DEBIAN_CARGO });
    command.current_dir(&workspace.root);
    command.arg(if lints { "clippy" } else { "check" });
    command.args(["--workspace", "--all-targets", "-Zbuild-std=std,panic_abort,test"]);
    command.args(["--target", TARGET]);
    if lints {
        command.args(["--", "-D", "warnings"]);
    } else {
        command.env("RUSTFLAGS", "-D warnings");
    }
    for name in ["RUSTUP_TOOLCHAIN", "RUSTC_WORKSPACE_WRAPPER", "RUSTDOC"] {
        command.env_remove(name);
    }
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO", DEBIAN_CARGO)
        .env("RUSTC", DEBIAN_RUSTC)
        .env("PATH", "/usr/bin:/bin");
    command
}
