//! The flags as clap describes them, and their list for people.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command};

use super::{FLAGS, FlagKind, FlagSupport, ServerFlag};

/// Describes a command that takes all flags.
///
/// Triton's forms hold: a value stands behind `=` or a space, true and false need none, and of several values of a flag
/// that takes one the last counts. The beginning of a name stands for it where no other begins alike.
pub(crate) fn command(name: &'static str) -> Command {
    Command::new(name)
        .infer_long_args(true)
        .override_help(help())
        .args(FLAGS.iter().map(ServerFlag::arg))
}

impl ServerFlag {
    fn arg(&self) -> Arg {
        let arg = Arg::new(self.name)
            .long(self.name)
            .help(self.purpose())
            .help_heading(self.group)
            .value_name(clap::builder::Str::from(self.kind.to_string()))
            .action(ArgAction::Append);
        match self.kind {
            // It never takes what stands behind a space.
            FlagKind::Switch => {
                arg.num_args(0..=1).require_equals(true).default_missing_value("true")
            }
            FlagKind::Bool => arg.num_args(0..=1).default_missing_value("true"),
            _ => arg.allow_hyphen_values(true),
        }
    }

    /// Returns what the flag is for, its default, and why it has no effect where it has none.
    fn purpose(&self) -> String {
        let default = match self.default {
            "" => String::new(),
            default => format!(" [{default}]"),
        };
        match self.support {
            FlagSupport::Yes => format!("{}{default}", self.sentence),
            FlagSupport::Ignored(why) => {
                format!("{}{default} (accepted without effect: {why})", self.sentence)
            }
        }
    }
}

/// Forms of the command beside `--model-repository`.
pub const SERVED_PATHS: &str = "galatea serve FILE serves a model's file or package under its name; galatea serve FOLDER serves \
     the models in a folder of files, the folder of one model, a checkpoint, or a repository. Several paths may be \
     given, all of them before the flags.";

/// Returns the list of flags, by group.
#[must_use]
pub fn help() -> String {
    let mut text = format!(
        "Usage: galatea serve --model-repository=DIR …\n       galatea serve FILE|FOLDER … [--FLAG=VALUE …]\n\n{SERVED_PATHS}\n"
    );
    let mut group = "";
    for flag in FLAGS {
        if flag.group != group {
            group = flag.group;
            // Writing to a string cannot fail.
            writeln!(text, "\n{group}").ok();
        }
        let default =
            if flag.default.is_empty() { String::new() } else { format!(" [{}]", flag.default) };
        write!(text, "  --{} <{}>{default}\n      {}", flag.name, flag.kind, flag.sentence).ok();
        if let FlagSupport::Ignored(why) = flag.support {
            write!(text, " (accepted without effect: {why})").ok();
        }
        text.push('\n');
    }
    text
}
