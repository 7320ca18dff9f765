//! The checks of the house, run as `cargo xtask STEP`.
//!
//! `cargo xtask test` runs all of them in order and prints how long each took.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool reports on its terminal"
)]

mod arrows;
mod c_library;
mod chips;
mod debian;
mod dependencies;
mod doubles;
mod examples;
mod failures;
mod fuzz;
mod gpu;
mod macos;
mod msl;
mod named_tests;
mod names;
mod neon;
mod process;
mod programs;
mod python;
mod pythons;
mod rooms;
mod scope;
mod sizes;
mod soak;
mod steps;
mod targets;
mod workspace;

use std::process::ExitCode;

use scope::CheckScope;
use workspace::WorkspaceFolders;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let Some((command, rest)) = arguments.split_first() else {
        print!("{}", usage());
        return Err("no command given".to_owned());
    };
    match command.as_str() {
        "test" => steps::test(&WorkspaceFolders::find()?, rest),
        "operators" if rest.is_empty() => steps::operators(&WorkspaceFolders::find()?),
        // Called by rustc, where `link-macos` has named it as its linker.
        "zig-link" => macos::link_with_zig(rest),
        // Called by build scripts that compile C for macOS.
        "zig-compile" => macos::compile_with_zig(rest),
        // Called by cargo in the place of rustc, in the step `doubles`.
        "doubles-rustc" => doubles::compile(rest),
        "measure" if rest.is_empty() => names::measure(&WorkspaceFolders::find()?),
        "arrows" if rest == ["--settle"] => rooms::settle(&WorkspaceFolders::find()?),
        "names" if rest == ["--settle"] => names::settle(&WorkspaceFolders::find()?),
        "pythons" => pythons::test(&WorkspaceFolders::find()?, rest),
        "c-header" if rest.is_empty() => c_library::write_header(&WorkspaceFolders::find()?),
        "c-package" => c_library::build_package(&WorkspaceFolders::find()?, rest),
        "fuzz" if !rest.is_empty() => fuzz::campaign(&WorkspaceFolders::find()?, rest),
        "soak" => soak::soak(&WorkspaceFolders::find()?, rest),
        "metal" if rest.is_empty() => gpu::write_metal(&WorkspaceFolders::find()?),
        "help" | "--help" | "-h" => {
            print!("{}", usage());
            Ok(())
        }
        name => match steps::STEPS.iter().find(|step| step.name == name) {
            Some(step) if rest.is_empty() => {
                (step.run)(&WorkspaceFolders::find()?, &CheckScope::Everything)
            }
            Some(_) => Err(format!("`{name}` takes no arguments, found: {}", rest.join(" "))),
            None => Err(format!("unknown command `{name}`; `cargo xtask help` lists them")),
        },
    }
}

fn usage() -> String {
    let mut text = String::from(
        "usage: cargo xtask test [--only STEP]... [--skip STEP]... [--keep-going] [--changed[=REVISION]]\n       \
                                                                     every step, or those named; with --changed for the\n       \
                                                                     crates that differ from a revision and their users\n       \
         cargo xtask STEP                                             one step\n       \
         cargo xtask operators                                        write docs/operators.md\n       \
         cargo xtask c-header                                         write crates/c/include/galatea.h\n       \
         cargo xtask c-package FOLDER [PROFILE]                       the library for C, with headers and what CMake reads\n       \
         cargo xtask fuzz --minutes N [--target T]... [--jobs N] [--keep]  so many CPU-minutes for each fuzz target\n       \
         cargo xtask soak --minutes N [--program P] [--pace N]        traffic of all protocols, every answer known\n       \
         cargo xtask metal                                            write golden/metal\n       \
         cargo xtask measure                                          how far names and texts are from the house's goals\n       \
         cargo xtask arrows --settle                                  take from the list of upward imports what is mended\n       \
         cargo xtask names --settle                                   take from the list of known offences what is mended\n       \
         cargo xtask pythons [PYTHON]...                              tests of models in Python under each interpreter\n\nsteps:\n",
    );
    for step in steps::STEPS {
        text.push_str(&format!("  {:<12} {}\n", step.name, step.what));
    }
    text
}
