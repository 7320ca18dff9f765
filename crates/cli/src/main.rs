//! The Galatea program; see [`galatea_cli`].

use std::process::ExitCode;

// In tests that play a Mac on Linux, its libraries are these.
#[cfg(apple_doubles)]
use galatea_doubles as _;

fn main() -> ExitCode {
    galatea_cli::main(std::env::args_os().collect())
}
