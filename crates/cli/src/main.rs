//! The Galatea program; see [`galatea_cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    galatea_cli::main(std::env::args_os().collect())
}
