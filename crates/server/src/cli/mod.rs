//! The command line.

mod arguments;
mod bench;
mod bench_language;
mod chat;
mod chip;
mod chip_facts;
mod chunk_facts;
mod convert;
mod core_ml_worker;
mod explain;
mod explain_settings;
mod generate;
mod http_client;
mod hwbench;
mod inspect;
mod inspect_checkpoint;
mod layers;
mod model;
mod picture;
mod plot;
mod precision;
mod quantize;
mod quickstart;
mod report;
mod run;
mod run_checkpoint;
mod sample;
mod sample_chat;
mod samples;
mod selftest;
mod selftest_suite;
mod selftest_units;
mod serve;
mod simulate;
mod simulate_report;
mod simulate_trace;
mod step_profile;
mod sweep;
mod top;
mod tune;
mod tune_compare;
mod tune_subject;
mod write_chip;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use galatea_graph::limits::{self, GraphLimits};

/// A command.
struct CliCommand {
    name: &'static str,
    sentence: &'static str,
    run: fn(&[String]) -> Result<ExitCode, String>,
}

/// The commands in the order of the help.
const COMMANDS: &[CliCommand] = &[
    CliCommand {
        name: "serve",
        sentence: "serve a model repository over HTTP and gRPC",
        run: serve::serve,
    },
    CliCommand {
        name: "quickstart",
        sentence: "serve the sample models, send them their samples and chat",
        run: quickstart::quickstart,
    },
    CliCommand {
        name: "inspect",
        sentence: "describe a model or a checkpoint: what it is, and its memory",
        run: inspect::inspect,
    },
    CliCommand {
        name: "chat",
        sentence: "talk with a language model in the terminal",
        run: chat::chat,
    },
    CliCommand {
        name: "run",
        sentence: "run a model on inputs from NumPy archives",
        run: run::run,
    },
    CliCommand {
        name: "bench",
        sentence: "measure how long a run of a model takes",
        run: bench::bench,
    },
    CliCommand {
        name: "report",
        sentence: "write a page about a model here, or about two beside each other",
        run: report::report,
    },
    CliCommand {
        name: "quantize",
        sentence: "write a model with fewer bits, and what that costs",
        run: quantize::quantize,
    },
    CliCommand {
        name: "convert",
        sentence: "write a model as a package of Core ML, or as ONNX",
        run: convert::convert,
    },
    CliCommand {
        name: "explain",
        sentence: "say which provider runs which part of a model, and why",
        run: explain::explain,
    },
    CliCommand { name: "top", sentence: "show what a server does, in the terminal", run: top::top },
    CliCommand {
        name: "tune",
        sentence: "measure which kernels are the fastest here for a model",
        run: tune::tune,
    },
    CliCommand {
        name: "hwbench",
        sentence: "time every kernel of matrix products at a shape",
        run: hwbench::hwbench,
    },
    CliCommand {
        name: "chip",
        sentence: "what this machine can do: cores, instruction sets, peaks; or facts about a chip",
        run: chip::chip,
    },
    CliCommand {
        name: "simulate",
        sentence: "replay a trace of requests on machines of any chip, predicted",
        run: simulate::simulate,
    },
    CliCommand {
        name: "selftest",
        sentence: "run packages on every compute unit here, as a report to send in",
        run: selftest::selftest,
    },
    CliCommand { name: "version", sentence: "print the version", run: version },
    CliCommand { name: "help", sentence: "print this list", run: help },
];

/// Commands that the program itself starts, which the help leaves out.
const HIDDEN: &[CliCommand] = &[CliCommand {
    name: core_ml_worker::NAME,
    sentence: "run packages of Core ML for another process",
    run: core_ml_worker::serve,
}];

/// Runs the program with its arguments, the name first. A name of `tritonserver` serves, as Triton's program does.
#[must_use]
pub fn main(arguments: Vec<String>) -> ExitCode {
    limit_values();
    core_ml_worker::announce();
    let program = arguments.first().map_or("", String::as_str);
    let rest = arguments.get(1..).unwrap_or(&[]);
    let is_triton = Path::new(program).file_stem().is_some_and(|stem| stem == "tritonserver");
    let result = if is_triton {
        serve::serve_as_triton(rest)
    } else {
        let (name, rest) = match rest.split_first() {
            Some((name, rest)) => (name.as_str(), rest),
            None => ("help", rest),
        };
        let name = match name {
            "-h" | "--help" => "help",
            "-V" | "--version" => "version",
            name => name,
        };
        match COMMANDS.iter().chain(HIDDEN).find(|command| command.name == name) {
            Some(command) => (command.run)(rest),
            None => Err(format!("unknown command '{name}'; 'galatea help' lists the commands")),
        }
    };
    result.unwrap_or_else(|error| {
        complain(&format!("Error: {error}"));
        ExitCode::FAILURE
    })
}

/// No value of a model may take more memory than the machine has.
fn limit_values() {
    let memory = crate::host::machine_memory_bytes();
    let memory = memory.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
    let usual = GraphLimits::default();
    // Set already where a program calls this twice.
    limits::set(GraphLimits { value_bytes: usual.value_bytes.min(memory), ..usual }).ok();
}

/// Prints for the user. A closed standard output is not an error of the program.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).ok();
    out.flush().ok();
}

/// Prints a complaint for the user.
pub(crate) fn complain(text: &str) {
    let mut out = std::io::stderr().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).ok();
}

fn version(_: &[String]) -> Result<ExitCode, String> {
    say(concat!("galatea ", env!("CARGO_PKG_VERSION")));
    Ok(ExitCode::SUCCESS)
}

fn help(_: &[String]) -> Result<ExitCode, String> {
    say("Usage: galatea COMMAND …\n\nCommands:");
    for command in COMMANDS {
        say(&format!("  {:<12}{}", command.name, command.sentence));
    }
    say("\n'galatea serve --help' lists the flags of the server.");
    Ok(ExitCode::SUCCESS)
}
