//! Runs the tests of the kernels as an ARM program under an emulator, so that what the NEON forms
//! compute is known on a machine without them.

use std::path::Path;

use crate::debian;
use crate::process::{cargo, run};
use crate::workspace::WorkspaceFolders;

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// The linker of the C library that the program stands on, and the folder of that library.
const LINKER: &str = "/usr/bin/aarch64-linux-gnu-gcc";
const LIBRARY: &str = "/usr/aarch64-linux-gnu";

/// User-mode emulators, by Debian's packages: the static one and the other.
const EMULATORS: [&str; 2] = ["/usr/bin/qemu-aarch64-static", "/usr/bin/qemu-aarch64"];

const HOW: &str = "the tests of the NEON kernels need an emulator, a linker and a compiler for \
    aarch64-unknown-linux-gnu. On Debian `apt install qemu-user-static gcc-aarch64-linux-gnu \
    libc6-dev-arm64-cross`, and `rustup target add aarch64-unknown-linux-gnu` or `apt install \
    rustc-web cargo-web rust-web-src`";

/// Builds the tests of `galatea-kernels` for ARM and runs them.
pub(crate) fn test(workspace: &WorkspaceFolders) -> Result<(), String> {
    let emulator = EMULATORS.into_iter().find(|path| Path::new(path).exists()).ok_or(HOW)?;
    if !Path::new(LINKER).exists() {
        return Err(HOW.to_owned());
    }
    let mut command = if debian::rustup_has(TARGET)? {
        cargo(&workspace.root)
    } else if debian::is_installed() {
        debian::cargo(&workspace.root)
    } else {
        return Err(HOW.to_owned());
    };
    command.args(["test", "-p", "galatea-kernels", "--lib", "--target", TARGET]);
    if !debian::rustup_has(TARGET)? {
        command.arg("-Zbuild-std=std,panic_unwind,test");
    }
    // The emulated processor has every extension that the kernels ask for: dot products, 8-bit and
    // BF16 matrix products, FP16 arithmetic.
    let runner = format!("{emulator} -cpu max -L {LIBRARY}");
    command
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", runner)
        // An emulated program is slow: a few random cases a property, and optimised code.
        .env("PROPTEST_CASES", "4")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "2")
        .env("CARGO_TARGET_DIR", workspace.target.join("neon"));
    run(&mut command)
}
