//! Sentences about wrong command lines.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Complaint about an argument that is no UTF-8.
pub(crate) const NO_TEXT: &str = "an argument is no UTF-8 text, which paths and names must be";

/// Returns the name of an argument that clap shows with the form of its value.
fn name_of(argument: &str) -> &str {
    let name = argument.split([' ', '=']).next().unwrap_or_default();
    name.trim_end_matches('.').trim_matches(['<', '>', '[', ']'])
}

/// Returns the first text of a context.
fn first(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(all) => all.first().cloned(),
        _ => None,
    }
}

/// Returns the argument that the wrong one does not go with, where that is what is wrong.
fn excluded(error: &clap::Error) -> Option<String> {
    let other = first(error, ContextKind::PriorArg)?;
    let argument = first(error, ContextKind::InvalidArg);
    (error.kind() == ErrorKind::ArgumentConflict && argument.as_ref() != Some(&other))
        .then_some(other)
}

/// Says in one line what is wrong with a command line: what was found, and what is allowed. `noun` is the word for
/// what begins with dashes.
pub(crate) fn explain(error: &clap::Error, noun: &str) -> String {
    let text = |kind: ContextKind| first(error, kind);
    let all = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::Strings(all)) => all.join("|"),
        _ => String::new(),
    };
    let argument = text(ContextKind::InvalidArg).unwrap_or_default();
    let name = name_of(&argument);
    let found = text(ContextKind::InvalidValue).unwrap_or_default();
    let hint = |kind: ContextKind, dashes: &str| {
        let near = text(kind).map(|near| near.trim_start_matches("--").to_owned());
        near.map_or_else(String::new, |near| format!("; did you mean {dashes}{near}?"))
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let found = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            format!("unknown command '{found}'{}", hint(ContextKind::SuggestedSubcommand, ""))
        }
        ErrorKind::UnknownArgument if name.starts_with('-') => {
            format!("unknown {noun} {name}{}", hint(ContextKind::SuggestedArg, "--"))
        }
        ErrorKind::UnknownArgument => format!("unexpected argument '{argument}'"),
        ErrorKind::InvalidValue if found.is_empty() => {
            let form = argument.split_once(' ').map_or("", |(_, form)| form);
            format!("{name} needs a value: {}", form.trim_matches(['<', '>']))
        }
        ErrorKind::InvalidValue => {
            format!("{name} expects {}, got '{found}'", all(ContextKind::ValidValue))
        }
        ErrorKind::ValueValidation => {
            let why = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
            match (name.starts_with('-'), why.starts_with(':')) {
                // What is no option says what it expects by its own name.
                (false, _) => why,
                (true, true) => format!("{name}{why}"),
                (true, false) => format!("{name} {why}"),
            }
        }
        ErrorKind::MissingRequiredArgument => {
            let names: Vec<&str> = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::Strings(missing)) => {
                    missing.iter().map(|one| name_of(one)).collect()
                }
                _ => Vec::new(),
            };
            let verb = if names.len() == 1 { "is" } else { "are" };
            format!("{} {verb} missing", names.join(" and "))
        }
        ErrorKind::ArgumentConflict => match excluded(error) {
            Some(other) => format!("{name} and {} exclude each other", name_of(&other)),
            None => format!("{name} is given more than once; it takes one value"),
        },
        ErrorKind::TooManyValues | ErrorKind::WrongNumberOfValues => {
            format!("{name} takes no value, got '{found}'")
        }
        ErrorKind::InvalidUtf8 => NO_TEXT.to_owned(),
        _ => error
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned(),
    }
}
