//! The Galatea program; see [`galatea_cli`].

#[cfg(not(apple_doubles))]
fn main() -> std::process::ExitCode {
    galatea_cli::main(std::env::args_os().collect())
}

// On doubles of macOS's functions, which only tests depend on, the test `played_mac` is the program.
#[cfg(apple_doubles)]
fn main() {}
