//! The program itself, in a process of its own.

use std::process::Command;

/// A command that runs it on the GPUs that the test sees: what shows the test a software device must show it to the
/// program too.
pub(crate) fn galatea() -> Command {
    let own = env!("CARGO_BIN_EXE_galatea");
    match std::env::var_os("GALATEA_VULKAN_RUNNER") {
        Some(runner) => {
            let mut command = Command::new(runner);
            command.arg(own);
            command
        }
        None => Command::new(own),
    }
}
