//! The bindings against doubles of macOS's functions, on several Macs.
#![cfg(apple_doubles)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod arithmetic;
mod machine;
mod power;

use galatea_doubles::c::{PlayedMac, VARIABLE};

/// Runs `work` on a Mac, with the calling thread.
fn on<R>(mac: &str, work: impl FnOnce() -> R) -> R {
    PlayedMac::parse(mac).unwrap().play(work)
}

/// Runs an ignored test of this program in a process that is on a Mac as a whole: what is looked up once in a process is
/// looked up there anew.
fn passes_on(mac: &str, test: &str) {
    let program = std::env::current_exe().unwrap();
    let mut command = std::process::Command::new(program);
    let output = command.args([test, "--exact", "--ignored"]).env(VARIABLE, mac).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let whole = format!("{mac}: {said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{whole}");
}
