//! The command line.

#![forbid(unsafe_code)]
#![allow(clippy::cast_precision_loss, reason = "numbers for people are doubles")]

// Tests link the doubles.
#[cfg(all(test, apple_doubles))]
use galatea_doubles as _;

mod arguments;
mod bench;
mod bench_language;
mod cache_folder;
mod chat;
mod chip;
mod chip_facts;
mod chunk_facts;
mod convert;
mod convert_choices;
mod convert_fitting;
mod core_ml_worker;
mod describe;
mod explain;
mod explain_kernels;
mod explain_settings;
pub mod flags;
mod generate;
pub mod grpc_client;
mod http_client;
mod hwbench;
mod inspect;
mod inspect_checkpoint;
mod language_choices;
mod layers;
mod measurement;
mod model;
mod picture;
mod plot;
mod precision;
mod precision_choices;
mod progress;
mod quantize;
mod quantize_choices;
mod quickstart;
mod report;
mod run;
mod run_checkpoint;
mod sample;
mod sample_chat;
mod sample_models;
mod selftest;
mod serve;
mod served_paths;
pub mod server_options;
mod server_place;
mod signals;
mod simulate;
mod simulate_arguments;
mod simulate_report;
mod simulate_trace;
pub mod startup;
mod step_profile;
mod sweep;
mod table;
mod top;
mod triton_name;
mod tune;
mod tune_arguments;
mod tune_compare;
mod tune_subject;
mod usage;
mod write_chip;

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::{ArgMatches, Args, Command};
use galatea::Engine;
use galatea_graph::limits::{self, GraphLimits};

use arguments::ParseFailure;

/// Returns the engine of the program: its commands share open devices, queues and power.
fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(Engine::new)
}

/// A command. Its module has the struct of its arguments.
struct CliCommand {
    name: &'static str,
    /// Purpose, without a full stop.
    sentence: &'static str,
    /// Text behind the options in the help.
    notes: &'static str,
    /// Adds its arguments.
    describe: fn(Command) -> Command,
    run: fn(&ArgMatches) -> Result<ExitCode, String>,
}

/// The commands in the order of the help, behind `serve`, whose flags are Triton's.
const COMMANDS: &[CliCommand] = &[
    CliCommand {
        name: "quickstart",
        sentence: "serve the sample models, send them their samples and chat",
        notes: "",
        describe: |command| {
            cache_folder::option(quickstart::QuickstartArguments::augment_args(command))
        },
        run: |matches| arguments::start(matches, quickstart::quickstart),
    },
    CliCommand {
        name: "inspect",
        sentence: "describe a model or a checkpoint: what it is, and its memory",
        notes: "A checkpoint of a language model or an encoder has --json only.",
        describe: inspect::InspectArguments::augment_args,
        run: |matches| arguments::start(matches, inspect::inspect),
    },
    CliCommand {
        name: "chat",
        sentence: "talk with a language model in the terminal",
        notes: chat::COMMANDS,
        describe: |command| cache_folder::option(chat::ChatArguments::augment_args(command)),
        run: |matches| arguments::start(matches, chat::chat),
    },
    CliCommand {
        name: "run",
        sentence: "run a model on inputs from NumPy archives",
        notes: "",
        describe: |command| cache_folder::option(run::RunArguments::augment_args(command)),
        run: |matches| arguments::start(matches, run::run),
    },
    CliCommand {
        name: "bench",
        sentence: "measure how long a run of a model takes",
        notes: "",
        describe: |command| cache_folder::option(bench::BenchArguments::augment_args(command)),
        run: |matches| arguments::start(matches, bench::bench),
    },
    CliCommand {
        name: "report",
        sentence: "write a page about a model here, or about two beside each other",
        notes: "",
        describe: |command| cache_folder::option(report::ReportArguments::augment_args(command)),
        run: |matches| arguments::start(matches, report::report),
    },
    CliCommand {
        name: "quantize",
        sentence: "write a model with fewer bits, and what that costs",
        notes: "",
        describe: |command| {
            cache_folder::option(quantize::QuantizeArguments::augment_args(command))
        },
        run: |matches| arguments::start(matches, quantize::quantize),
    },
    CliCommand {
        name: "convert",
        sentence: "write a model as a Core ML package, or as ONNX",
        notes: "",
        describe: |command| cache_folder::option(convert::ConvertArguments::augment_args(command)),
        run: |matches| arguments::start(matches, convert::convert),
    },
    CliCommand {
        name: "explain",
        sentence: "say which provider runs which part of a model, and why",
        notes: "",
        describe: |command| cache_folder::option(explain::ExplainArguments::augment_args(command)),
        run: |matches| arguments::start(matches, explain::explain),
    },
    CliCommand {
        name: "top",
        sentence: "show what a server does, in the terminal",
        notes: "",
        describe: top::TopArguments::augment_args,
        run: |matches| arguments::start(matches, top::top),
    },
    CliCommand {
        name: "tune",
        sentence: "measure which kernels are the fastest here for a model",
        notes: "",
        describe: |command| {
            cache_folder::option(tune_arguments::TuneArguments::augment_args(command))
        },
        run: |matches| arguments::start(matches, tune::tune),
    },
    CliCommand {
        name: "hwbench",
        sentence: "time every GEMM kernel at a shape",
        notes: "",
        describe: hwbench::HwbenchArguments::augment_args,
        run: |matches| arguments::start(matches, hwbench::hwbench),
    },
    CliCommand {
        name: "chip",
        sentence: "what this machine can do: cores, instruction sets, peaks; or facts about a chip",
        notes: "",
        describe: chip::ChipArguments::augment_args,
        run: |matches| arguments::start(matches, chip::chip),
    },
    CliCommand {
        name: "simulate",
        sentence: "replay a trace of requests on machines of any chip, predicted",
        notes: "",
        describe: simulate_arguments::SimulateArguments::augment_args,
        run: |matches| arguments::start(matches, simulate::simulate),
    },
    CliCommand {
        name: "selftest",
        sentence: "test what this machine can do on every device, as a report to send in",
        notes: "",
        describe: selftest::SelftestArguments::augment_args,
        run: |matches| arguments::start(matches, selftest::selftest),
    },
];

/// Exit status of a command line that is wrong.
const USAGE: u8 = 2;

/// Runs the program with its arguments, the name first. A name of `tritonserver` serves, as Triton's program does.
#[must_use]
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    limit_values();
    let program = arguments.first().map(Path::new).and_then(Path::file_stem);
    let rest = arguments.get(1..).unwrap_or(&[]);
    if program.is_some_and(|stem| stem == triton_name::NAME) {
        return finish(serve::serve_as_triton(rest));
    }
    match rest.first().and_then(|name| name.to_str()) {
        Some("serve") => finish(serve::serve(&rest[1..])),
        Some(triton_name::NAME) => finish(serve::serve_as_triton(&rest[1..])),
        Some(core_ml_worker::NAME) => finish(core_ml_worker::serve()),
        Some(selftest::SUBJECT) => {
            core_ml_worker::announce();
            finish(selftest::test_subject(rest.get(1).and_then(|task| task.to_str())))
        }
        Some(selftest::SWEEPER) => {
            finish(selftest::sweep(rest.get(1).and_then(|one| one.to_str())))
        }
        None if rest.is_empty() => run(&[OsString::from("galatea"), OsString::from("help")]),
        _ => run(&arguments),
    }
}

/// Parses a command line and runs its command.
fn run(arguments: &[OsString]) -> ExitCode {
    let matches = match arguments::matches(describe::program(), arguments) {
        Ok(matches) => matches,
        Err(ParseFailure::Print(text)) => {
            say(text.trim_end());
            return ExitCode::SUCCESS;
        }
        Err(ParseFailure::Mistake(text)) => return mistake(&text, named(arguments)),
    };
    let Some((name, matches)) = matches.subcommand() else { return ExitCode::SUCCESS };
    if let Some(command) = COMMANDS.iter().find(|command| command.name == name) {
        return finish(cache_folder::apply(matches).and_then(|()| {
            core_ml_worker::announce();
            (command.run)(matches)
        }));
    }
    finish(describe::run(name, matches))
}

/// Returns the command that a wrong command line names, where it is one.
fn named(arguments: &[OsString]) -> Option<&'static str> {
    let given = arguments.get(1)?;
    COMMANDS.iter().map(|command| command.name).find(|name| given == name)
}

/// Complains about a command line in one line that says how to see the help.
fn mistake(text: &str, command: Option<&str>) -> ExitCode {
    let help = match command {
        Some(name) => format!("'galatea {name} --help' shows its options"),
        None => "'galatea help' lists the commands".to_owned(),
    };
    let end = if text.ends_with('?') { "" } else { ";" };
    complain(&format!("Error: {text}{end} {help}"));
    ExitCode::from(USAGE)
}

fn finish(result: Result<ExitCode, String>) -> ExitCode {
    result.unwrap_or_else(|error| {
        complain(&format!("Error: {error}"));
        ExitCode::FAILURE
    })
}

/// No value of a model may take more memory than the machine has.
fn limit_values() {
    let memory = galatea::host::machine_memory_bytes();
    let memory = memory.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
    let usual = GraphLimits::default();
    // Set already where a program calls this twice.
    limits::set(GraphLimits { value_bytes: usual.value_bytes.min(memory), ..usual }).ok();
}

/// Returns a text without control characters but line breaks and tabs: names in files of models, and texts that models
/// write, must not steer the terminal. Each becomes a form that can be read, such as `\u{1b}`.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let steers = |sign: char| sign.is_control() && !matches!(sign, '\n' | '\t');
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for sign in text.chars() {
        match steers(sign) {
            true => shown.extend(sign.escape_default()),
            false => shown.push(sign),
        }
    }
    Cow::Owned(shown)
}

/// Prints for the user. A closed standard output is not an error of the program.
pub(crate) fn say(text: &str) {
    let text = harmless(text);
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).ok();
    out.flush().ok();
}

/// Prints a complaint for the user.
pub(crate) fn complain(text: &str) {
    let text = harmless(text);
    let mut out = std::io::stderr().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).ok();
}
