//! The command line as clap describes it, and what is made of that: help, completions of shells, manual pages and the
//! page about commands.

use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};
use clap_complete::Shell;

use super::{COMMANDS, CliCommand, arguments, say, triton_name};
use crate::flags;

/// Describes the whole program.
pub(super) fn program() -> Command {
    let serve = flags::command("serve")
        .about("serve a model repository over HTTP and gRPC")
        .before_help(flags::SERVED_PATHS);
    Command::new("galatea")
        .about("Inference server for Apple chips, and its tools")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .max_term_width(120)
        .subcommand(serve)
        .subcommands(COMMANDS.iter().map(command))
        .subcommand(Command::new("completions").about("print completions for a shell").arg(shell()))
        .subcommand(
            Command::new("man")
                .about("write manual pages to a folder")
                .arg(Arg::new("folder").value_name("FOLDER").required(true)),
        )
        .subcommand(
            Command::new("alias")
                .about(
                    "make a program tritonserver that is this one, in a folder [that of this one]",
                )
                .arg(Arg::new("folder").value_name("FOLDER")),
        )
        .subcommand(Command::new("version").about("print the version"))
}

fn shell() -> Arg {
    Arg::new("shell")
        .value_name("SHELL")
        .required(true)
        .value_parser(clap::builder::EnumValueParser::<Shell>::new())
}

/// Describes a command of the table.
fn command(row: &CliCommand) -> Command {
    let command = arguments::uniform((row.describe)(Command::new(row.name))).about(row.sentence);
    match row.notes {
        "" => command,
        notes => command.after_help(notes),
    }
}

/// Runs a command that is about the command line itself.
///
/// # Errors
/// Fails when a folder or a file cannot be written.
pub(super) fn run(name: &str, matches: &ArgMatches) -> Result<ExitCode, String> {
    match name {
        "completions" => {
            if let Some(shell) = matches.get_one::<Shell>("shell") {
                let mut text = Vec::new();
                clap_complete::generate(*shell, &mut program(), "galatea", &mut text);
                say(String::from_utf8_lossy(&text).trim_end());
            }
        }
        "man" => {
            let folder = matches.get_one::<String>("folder").map_or(".", String::as_str);
            write_pages(Path::new(folder))?;
        }
        "alias" => {
            let folder = matches.get_one::<String>("folder").map(Path::new);
            say(&triton_name::link(folder)?.display().to_string());
        }
        _ => say(concat!("galatea ", env!("CARGO_PKG_VERSION"))),
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a manual page for the program and one for each command.
fn write_pages(folder: &Path) -> Result<(), String> {
    let failed =
        |error: std::io::Error| format!("'{}' cannot be written: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(program(), folder).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// Returns the page about commands, `docs/cli.md`.
    fn page() -> String {
        let mut text = String::from(
            "# Commands\n\nWritten from the program's own description of its command line. `galatea COMMAND --help` prints the same. \
             `galatea completions SHELL` prints completions, `galatea man FOLDER` writes manual pages. \
             A wrong command line ends with exit status 2, any other failure with 1.\n",
        );
        for command in program().get_subcommands() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            // Writing to a string cannot fail.
            write!(text, "\n## `galatea {}`\n\n{about}\n", command.get_name()).ok();
            if let Some(forms) = command.get_before_help() {
                write!(text, "\n{forms}\n").ok();
            }
            let arguments: Vec<&Arg> =
                command.get_arguments().filter(|argument| argument.get_long().is_some()).collect();
            if !arguments.is_empty() {
                text.push_str("\n| option | what it is for |\n|---|---|\n");
            }
            for argument in arguments {
                let name = argument.get_long().unwrap_or_default();
                let takes = argument.get_action().takes_values();
                let form = argument.get_value_names().filter(|_| takes);
                let form = form
                    .and_then(|names| names.first())
                    .map_or_else(String::new, |form| format!(" {form}"));
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let cell = |text: &str| text.replace('|', "\\|");
                writeln!(text, "| `--{name}{}` | {} |", cell(&form), cell(&help)).ok();
            }
        }
        text
    }

    #[test]
    fn the_description_is_sound() {
        program().debug_assert();
    }

    /// `GALATEA_WRITE_DOCS=1` writes the page anew.
    #[test]
    fn the_page_about_commands_is_current() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
        if std::env::var_os("GALATEA_WRITE_DOCS").is_some() {
            std::fs::write(&path, page()).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == page(), "docs/cli.md is old: run this test with GALATEA_WRITE_DOCS=1");
    }

    #[test]
    fn every_shell_has_completions_and_every_command_a_manual_page() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut program(), "galatea", &mut text);
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains("quantize") && text.contains("model-repository"), "{shell}");
        }
        let folder = tempfile::tempdir().unwrap();
        write_pages(folder.path()).unwrap();
        for command in program().get_subcommands() {
            let page = folder.path().join(format!("galatea-{}.1", command.get_name()));
            assert!(page.exists(), "{}", page.display());
        }
    }
}
