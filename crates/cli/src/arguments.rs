//! Arguments of the commands other than `serve`: clap parses each command line into the struct of its command.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command, FromArgMatches};

use galatea_runtime::MAX_SESSION_THREADS;

use crate::usage::explain;

/// Runs a command with its parsed arguments.
///
/// # Errors
/// Fails as the command does.
pub(super) fn start<A: FromArgMatches>(
    matches: &ArgMatches,
    command: fn(&A) -> Result<ExitCode, String>,
) -> Result<ExitCode, String> {
    command(&A::from_arg_matches(matches).map_err(|error| explain(&error, "option"))?)
}

/// Gives the arguments of a command what is the same for all commands.
pub(super) fn uniform(command: Command) -> Command {
    command.mut_args(|arg| match arg.get_long().is_some() && arg.get_action().takes_values() {
        // A negative number and a name that begins with a dash are values too. The text of an option tells its
        // choices and its default.
        true => arg.allow_hyphen_values(true).hide_default_value(true).hide_possible_values(true),
        false => arg,
    })
}

/// Makes a change of the purpose of an argument, where a command flattens the options of several.
pub(super) fn purpose(id: &'static str, help: &'static str) -> impl FnMut(Arg) -> Arg {
    move |arg| if arg.get_id() == id { arg.help(help) } else { arg }
}

/// Parses a number.
///
/// # Errors
/// Fails when the text is none, or beyond the type.
pub(super) fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expects a number, got '{text}'"))
}

/// Parses a number of threads inside an operator.
///
/// # Errors
/// Fails when the text is no number, or more than a session may have.
pub(super) fn threads(text: &str) -> Result<usize, String> {
    let threads = number(text)?;
    if threads > MAX_SESSION_THREADS {
        return Err(format!("expects a number up to {MAX_SESSION_THREADS}, got '{text}'"));
    }
    Ok(threads)
}

/// Parses a value whose own parser says what is wrong.
///
/// # Errors
/// Fails as that parser does.
pub(super) fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!(": {error}"))
}

/// Parses a time in seconds.
///
/// # Errors
/// Fails when the text is no number, or no time.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let seconds = number(text)?;
    let time = Duration::try_from_secs_f64(seconds);
    time.map_err(|_| format!("expects a time, got '{seconds}'"))
}

/// Parses a path, which is text as all arguments are.
///
/// # Errors
/// Never fails.
pub(super) fn path(text: &str) -> Result<PathBuf, Infallible> {
    text.parse()
}

/// Parser of words that each stand for a value.
#[derive(Clone)]
pub(super) struct WordParser<T: 'static> {
    words: &'static [(&'static str, T)],
    /// Says what is wrong with another word, where that is not said in the usual way.
    wrong: Option<fn(&str) -> String>,
}

/// Makes a parser of words that each stand for a value.
pub(super) fn choice<T>(words: &'static [(&'static str, T)]) -> WordParser<T> {
    WordParser { words, wrong: None }
}

/// Makes such a parser that says in its own words what is wrong with another one.
pub(super) fn worded_choice<T>(
    words: &'static [(&'static str, T)],
    wrong: fn(&str) -> String,
) -> WordParser<T> {
    WordParser { words, wrong: Some(wrong) }
}

impl<T: Clone + Send + Sync> WordParser<T> {
    fn find(&self, given: &str) -> Result<T, String> {
        let found = self.words.iter().find(|(word, _)| *word == given);
        found.map(|(_, value)| value.clone()).ok_or_else(|| match self.wrong {
            Some(wrong) => wrong(given),
            None => {
                let words: Vec<&str> = self.words.iter().map(|(word, _)| *word).collect();
                format!("expects one of {}, got '{given}'", words.join(", "))
            }
        })
    }
}

impl<T: Clone + Send + Sync> TypedValueParser for WordParser<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let parser = self.clone();
        let find = move |given: &str| parser.find(given);
        find.parse_ref(command, arg, value)
    }

    /// Lists the words, which shells complete.
    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.words.iter().map(|(word, _)| PossibleValue::new(*word))))
    }
}

/// A length that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedLength {
    pub(super) name: String,
    pub(super) length: usize,
}

/// Parses `NAME=N`.
///
/// # Errors
/// Fails for any other text.
pub(super) fn named_length(text: &str) -> Result<NamedLength, String> {
    let found = text.split_once('=').and_then(|(name, length)| {
        let length = length.trim().parse().ok()?;
        Some(NamedLength { name: name.trim().to_owned(), length })
    });
    found.ok_or_else(|| format!(": '{text}' found, expected NAME=N"))
}

/// Parses a command line without its name.
///
/// # Errors
/// Fails with one line about the first mistake.
#[cfg(test)]
pub(super) fn parse<A: clap::Args>(arguments: &[&str]) -> Result<A, String> {
    let command = A::augment_args(Command::new("command").no_binary_name(true));
    let matches = uniform(command).try_get_matches_from(arguments);
    let matches = matches.map_err(|error| explain(&error, "option"))?;
    A::from_arg_matches(&matches).map_err(|error| explain(&error, "option"))
}

/// Whole numbers of an option that takes one or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NumberList(Vec<usize>);

impl NumberList {
    /// Parses numbers with commas between.
    ///
    /// # Errors
    /// Fails when the text is no such list.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<usize>, _> =
            text.split(',').map(|one| one.trim().parse()).collect();
        numbers.map(Self).map_err(|_| format!("expects a number, or N,N…, got '{text}'"))
    }

    /// Returns the numbers.
    pub(super) fn numbers(&self) -> &[usize] {
        &self.0
    }
}

impl fmt::Display for NumberList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join(","))
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
    use clap::Args;

    use super::*;

    #[derive(Debug, Args)]
    #[group(skip)]
    struct SampleArguments {
        #[arg(value_name = "MODEL")]
        model: String,
        #[arg(long, value_name = "FILE", value_parser = path)]
        inputs: Vec<PathBuf>,
        #[arg(long, value_name = "a|b", value_parser = choice(WORDS), default_value = "a")]
        form: u8,
        #[arg(long, value_name = "N", value_parser = threads)]
        threads: Option<usize>,
        #[arg(long = "length", value_name = "NAME=N", value_parser = named_length)]
        lengths: Vec<NamedLength>,
        #[arg(long, value_name = "S", value_parser = time, conflicts_with = "json")]
        seconds: Option<Duration>,
        #[arg(long)]
        json: bool,
    }

    const WORDS: &[(&str, u8)] = &[("a", 1), ("b", 2)];

    #[test]
    fn options_stand_anywhere_and_repeat() {
        let given = ["--inputs", "a", "m.onnx", "--inputs=-b", "--json", "--length", "n= 3"];
        let parsed: SampleArguments = parse(&given).unwrap();
        assert_eq!(parsed.inputs, [PathBuf::from("a"), PathBuf::from("-b")]);
        assert_eq!(parsed.lengths, [NamedLength { name: "n".to_owned(), length: 3 }]);
        assert!(parsed.json && parsed.threads.is_none() && parsed.seconds.is_none());
        assert_eq!((parsed.model.as_str(), parsed.form), ("m.onnx", 1));
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
            (&["--threads=1025"], "--threads expects a number up to 1024, got '1025'"),
            (&["--form=c"], "--form expects one of a, b, got 'c'"),
            (&["--length=n"], "--length: 'n' found, expected NAME=N"),
            (&["--seconds=-1"], "--seconds expects a time, got '-1'"),
            (&["m", "--seconds=1", "--json"], "--seconds and --json exclude each other"),
            (&["m", "n"], "unexpected argument 'n'"),
            (&[], "MODEL is missing"),
        ] {
            let error = parse::<SampleArguments>(arguments).unwrap_err();
            assert!(error.contains(text) && !error.contains('\n'), "{arguments:?}: {error}");
        }
    }

    #[test]
    fn all_that_is_missing_is_named() {
        #[derive(Debug, Args)]
        #[group(skip)]
        struct PairArguments {
            #[arg(value_name = "MODEL")]
            model: String,
            #[arg(value_name = "OUTPUT")]
            output: String,
        }
        assert_eq!(parse::<PairArguments>(&[]).unwrap_err(), "MODEL and OUTPUT are missing");
        assert_eq!(parse::<PairArguments>(&["m"]).unwrap_err(), "OUTPUT is missing");
        let whole: PairArguments = parse(&["m", "o"]).unwrap();
        assert_eq!((whole.model.as_str(), whole.output.as_str()), ("m", "o"));
    }

    #[test]
    fn lists_have_one_number_or_several() {
        assert_eq!(NumberList::parse("1, 2").unwrap().numbers(), [1, 2]);
        assert_eq!(NumberList::parse("1,2").unwrap().to_string(), "1,2");
        assert!(NumberList::parse("1,x").unwrap_err().contains("got '1,x'"));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_text_is_refused() {
        use std::os::unix::ffi::OsStringExt;
        let no_text = || OsString::from_vec(vec![b'm', 0xff]);
        let command = || SampleArguments::augment_args(Command::new("command"));
        for before in [&["command"][..], &["command", "m", "--inputs"]] {
            let mut arguments: Vec<OsString> = before.iter().map(OsString::from).collect();
            arguments.push(no_text());
            let failure = matches(command(), &arguments).unwrap_err();
            assert!(
                matches!(failure, ParseFailure::Mistake(text) if text.contains("no UTF-8 text"))
            );
        }
    }
}
