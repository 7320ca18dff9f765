//! Debian's Rust, which can compile the standard library for targets that rustup has not installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::output;

/// Paths of the programs and of the standard library's source in Debian's packages.
const CARGO: &str = "/usr/bin/cargo";
const RUSTC: &str = "/usr/bin/rustc";
const SOURCE: &str = "/usr/lib/rustlib/src/rust/library/std";

/// Returns whether the compiler and the standard library's source are installed.
pub(crate) fn is_installed() -> bool {
    [CARGO, RUSTC, SOURCE].iter().all(|path| Path::new(path).exists())
}

/// Returns whether the toolchain that built xtask has the standard library for `target`.
pub(crate) fn rustup_has(target: &str) -> Result<bool, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let folder =
        output(Command::new(rustc).args(["--print", "target-libdir", "--target", target]))?;
    Ok(PathBuf::from(folder.trim()).is_dir())
}

/// `program` (cargo, or one of its commands) in `folder`. rustup's variables and its folder of
/// programs are kept out, since its proxies would answer instead.
pub(crate) fn command(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    for name in ["RUSTUP_TOOLCHAIN", "RUSTC_WORKSPACE_WRAPPER", "RUSTDOC"] {
        command.env_remove(name);
    }
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO", CARGO)
        .env("RUSTC", RUSTC)
        .env("PATH", "/usr/bin:/bin");
    command
}

/// Debian's `cargo` in `folder`.
pub(crate) fn cargo(folder: &Path) -> Command {
    command(CARGO, folder)
}
