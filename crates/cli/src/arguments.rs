//! Arguments of the commands other than `serve`, parsed by clap from a table of options for each command.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::usage::explain;

/// Names of the values that are no options, in their order.
const VALUES: &[&str] = &["first value", "second value"];

/// An option of a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandOption {
    /// Name without the dashes.
    pub(super) name: &'static str,
    /// Form of its value, such as `N` or `fp16|fp32`; empty for none.
    pub(super) value: &'static str,
    /// Purpose, with the default in brackets. An option whose text says `repeatable` may be given several times.
    pub(super) sentence: &'static str,
}

impl CommandOption {
    fn is_repeatable(&self) -> bool {
        self.sentence.contains("repeatable")
    }

    fn arg(&self) -> Arg {
        let arg = Arg::new(self.name).long(self.name).help(self.sentence);
        if self.value.is_empty() {
            return arg.action(ArgAction::SetTrue);
        }
        let action = if self.is_repeatable() { ArgAction::Append } else { ArgAction::Set };
        // A negative number and a name that begins with a dash are values too.
        let arg = arg.value_name(self.value).action(action).allow_hyphen_values(true);
        match self.value {
            "N" => arg.value_parser(|text: &str| number::<u64>(text)),
            "S" | "W" => arg.value_parser(|text: &str| number::<f64>(text)),
            _ => arg,
        }
    }
}

/// Checks that a text is a number, and keeps the text: commands choose the type.
fn number<T: std::str::FromStr>(text: &str) -> Result<String, String> {
    match text.parse::<T>() {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(format!("expects a number, got '{text}'")),
    }
}

/// Reads whole numbers with commas between.
fn numbers(text: &str) -> Result<Vec<usize>, String> {
    let numbers: Result<Vec<usize>, _> = text.split(',').map(|one| one.trim().parse()).collect();
    numbers.map_err(|_| format!("expects a number, or N,N…, got '{text}'"))
}

/// Describes a command to clap. `values` is the part of its usage that is no option, such as `MODEL [OUTPUT]`: what
/// stands in brackets may be absent, and a word that ends in `…` may be repeated.
pub(super) fn describe(
    name: &'static str,
    values: &'static str,
    options: &[CommandOption],
) -> Command {
    let positional = values.split_whitespace().zip(VALUES).map(|(form, id)| {
        let word = form.trim_start_matches('[').trim_end_matches(']');
        let argument =
            Arg::new(*id).value_name(word.trim_end_matches('…')).required(!form.starts_with('['));
        if word.ends_with('…') { argument.num_args(0..) } else { argument }
    });
    Command::new(name).args(positional).args(options.iter().map(CommandOption::arg))
}

/// A command line that was parsed.
#[derive(Debug, Default, Clone)]
pub(super) struct CommandArguments {
    values: Vec<String>,
    options: BTreeMap<&'static str, Vec<String>>,
}

impl CommandArguments {
    /// Takes what clap has parsed.
    pub(super) fn new(matches: &ArgMatches, options: &[CommandOption]) -> Self {
        let texts = |name: &str| -> Vec<String> {
            let found = matches.try_get_many::<String>(name).ok().flatten();
            found.into_iter().flatten().cloned().collect()
        };
        let values = VALUES.iter().flat_map(|id| texts(id)).collect();
        let mut parsed = Self { values, options: BTreeMap::new() };
        for option in options {
            let given = match option.value.is_empty() {
                true if matches.get_flag(option.name) => vec![String::new()],
                true => Vec::new(),
                false => texts(option.name),
            };
            if !given.is_empty() {
                parsed.options.insert(option.name, given);
            }
        }
        parsed
    }

    /// Parses a command line without its name, which may have values.
    ///
    /// # Errors
    /// Fails when an option is unknown, lacks its value or has one too many.
    #[cfg(test)]
    pub(super) fn parse(arguments: &[String], options: &[CommandOption]) -> Result<Self, String> {
        let command = describe("command", "[VALUE…]", options).no_binary_name(true);
        let matches = command.try_get_matches_from(arguments).map_err(|e| explain(&e, "option"))?;
        Ok(Self::new(&matches, options))
    }

    /// Replaces the value of an option.
    pub(super) fn set(&mut self, name: &'static str, value: &str) {
        self.options.insert(name, vec![value.to_owned()]);
    }

    /// Returns the only value that is no option.
    ///
    /// # Errors
    /// Fails when there is none, or more than one.
    pub(super) fn only(&self, what: &str) -> Result<&str, String> {
        match self.values.as_slice() {
            [value] => Ok(value),
            [] => Err(format!("{what} is missing")),
            [_, extra, ..] => Err(format!("unexpected argument '{extra}'")),
        }
    }

    /// Returns the values that are no option.
    pub(super) fn values(&self) -> &[String] {
        &self.values
    }

    /// Refuses values that are no option.
    ///
    /// # Errors
    /// Fails when there is one.
    pub(super) fn none(&self) -> Result<(), String> {
        match self.values.first() {
            Some(extra) => Err(format!("unexpected argument '{extra}'")),
            None => Ok(()),
        }
    }

    /// Returns whether an option was given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// Returns all values of an option.
    pub(super) fn all(&self, name: &str) -> &[String] {
        self.options.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the last value of an option.
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        self.all(name).last().map(String::as_str)
    }

    /// Returns the last value of an option, as a number.
    ///
    /// # Errors
    /// Fails when it is none, or beyond the type.
    pub(super) fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> Result<T, String> {
        match self.last(name) {
            None => Ok(default),
            Some(text) => {
                text.parse().map_err(|_| format!("--{name} expects a number, got '{text}'"))
            }
        }
    }

    /// Returns the last value of an option, as numbers with commas between.
    ///
    /// # Errors
    /// Fails when it is no such list.
    pub(super) fn numbers(&self, name: &str, default: usize) -> Result<Vec<usize>, String> {
        let Some(text) = self.last(name) else { return Ok(vec![default]) };
        numbers(text).map_err(|error| format!("--{name} {error}"))
    }
}

/// Parses the whole command line of the program.
///
/// # Errors
/// Fails with one line about the first mistake, or with clap's own error where a help text is to be printed.
pub(super) fn matches(
    program: Command,
    arguments: &[OsString],
) -> Result<ArgMatches, ParseFailure> {
    program.try_get_matches_from(arguments).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            ParseFailure::Print(error.to_string())
        }
        _ => ParseFailure::Mistake(explain(&error, "option")),
    })
}

/// Outcome of a command line that names no command to run.
#[derive(Debug)]
pub(super) enum ParseFailure {
    /// A help text is asked for.
    Print(String),
    /// The command line is wrong.
    Mistake(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &[CommandOption] = &[
        CommandOption { name: "inputs", value: "FILE", sentence: "files; repeatable" },
        CommandOption { name: "precision", value: "fp16|fp32", sentence: "" },
        CommandOption { name: "threads", value: "N", sentence: "" },
        CommandOption { name: "json", value: "", sentence: "" },
    ];

    fn parse(arguments: &[&str]) -> Result<CommandArguments, String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        CommandArguments::parse(&arguments, OPTIONS)
    }

    #[test]
    fn options_stand_anywhere_and_repeat() {
        let parsed = parse(&["--inputs", "a", "m.onnx", "--inputs=b", "--json"]).unwrap();
        assert_eq!(parsed.all("inputs"), ["a", "b"]);
        assert!(parsed.has("json"));
        assert_eq!(parsed.only("MODEL").unwrap(), "m.onnx");
    }

    #[test]
    fn mistakes_are_named_in_one_line() {
        for (arguments, text) in [
            (&["--thread=1"][..], "unknown option --thread; did you mean --threads?"),
            (&["--nope"], "unknown option --nope"),
            (&["--inputs"], "--inputs needs a value: FILE"),
            (&["--json=1"], "--json takes no value, got '1'"),
            (
                &["--threads=1", "--threads=2"],
                "--threads is given more than once; it takes one value",
            ),
            (&["--threads=many"], "--threads expects a number, got 'many'"),
            (&["--threads=-1"], "--threads expects a number, got '-1'"),
            (&["--threads=99999999999999999999"], "--threads expects a number"),
        ] {
            let error = parse(arguments).unwrap_err();
            assert!(error.contains(text) && !error.contains('\n'), "{arguments:?}: {error}");
        }
        assert!(parse(&[]).unwrap().only("MODEL").unwrap_err().contains("MODEL is missing"));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_text_is_refused() {
        use std::os::unix::ffi::OsStringExt;
        let arguments = vec![OsString::from("command"), OsString::from_vec(vec![b'm', 0xff])];
        let failure = matches(describe("command", "VALUE", OPTIONS), &arguments).unwrap_err();
        assert!(matches!(failure, ParseFailure::Mistake(text) if text.contains("no UTF-8 text")));
    }
}
