//! The Galatea program; see [`galatea::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    galatea::cli::main(std::env::args_os().collect())
}
