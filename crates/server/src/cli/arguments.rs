//! Arguments of the commands other than `serve`: values in order, and options `--name value` or `--name=value`.

use std::collections::BTreeMap;

/// An option of a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandOption {
    /// Name without the dashes.
    pub(super) name: &'static str,
    /// What stands behind it; empty for none.
    pub(super) value: &'static str,
    /// What it is for.
    pub(super) sentence: &'static str,
}

/// A command line that was read.
#[derive(Debug, Default)]
pub(super) struct CommandArguments {
    values: Vec<String>,
    options: BTreeMap<&'static str, Vec<String>>,
}

impl CommandArguments {
    /// Reads a command line.
    ///
    /// # Errors
    /// When an option is unknown, lacks its value or has one too many.
    pub(super) fn parse(arguments: &[String], choices: &[CommandOption]) -> Result<Self, String> {
        let mut parsed = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let Some(body) = argument.strip_prefix("--") else {
                parsed.values.push(argument.clone());
                continue;
            };
            let (name, inline) = match body.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (body, None),
            };
            let choice = choices.iter().find(|choice| choice.name == name).ok_or_else(|| {
                let names: Vec<String> =
                    choices.iter().map(|choice| format!("--{}", choice.name)).collect();
                format!("unknown option --{name}; there are {}", names.join(", "))
            })?;
            let value = match (choice.value.is_empty(), inline) {
                (true, None) => String::new(),
                (true, Some(_)) => return Err(format!("--{name} takes no value")),
                (false, Some(value)) => value,
                (false, None) => rest
                    .next()
                    .cloned()
                    .ok_or_else(|| format!("--{name} needs a value: {}", choice.value))?,
            };
            parsed.options.entry(choice.name).or_default().push(value);
        }
        Ok(parsed)
    }

    /// The only value that is no option.
    ///
    /// # Errors
    /// When there is none, or more than one.
    pub(super) fn only(&self, what: &str) -> Result<&str, String> {
        match self.values.as_slice() {
            [value] => Ok(value),
            [] => Err(format!("{what} is missing")),
            [_, extra, ..] => Err(format!("unexpected argument '{extra}'")),
        }
    }

    /// The values that are no option.
    pub(super) fn values(&self) -> &[String] {
        &self.values
    }

    /// Refuses values that are no option.
    ///
    /// # Errors
    /// When there is one.
    pub(super) fn none(&self) -> Result<(), String> {
        match self.values.first() {
            Some(extra) => Err(format!("unexpected argument '{extra}'")),
            None => Ok(()),
        }
    }

    /// Whether an option was given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// All values of an option.
    pub(super) fn all(&self, name: &str) -> &[String] {
        self.options.get(name).map_or(&[], Vec::as_slice)
    }

    /// The last value of an option.
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        self.all(name).last().map(String::as_str)
    }

    /// The last value of an option, as a number.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> Result<T, String> {
        match self.last(name) {
            None => Ok(default),
            Some(text) => {
                text.parse().map_err(|_| format!("--{name} expects a number, got '{text}'"))
            }
        }
    }

    /// The last value of an option, as numbers with commas between.
    ///
    /// # Errors
    /// When it is no such list.
    pub(super) fn numbers(&self, name: &str, default: usize) -> Result<Vec<usize>, String> {
        let Some(text) = self.last(name) else { return Ok(vec![default]) };
        let numbers: Result<Vec<usize>, _> =
            text.split(',').map(|number| number.trim().parse()).collect();
        numbers.map_err(|_| format!("--{name} expects a number, or N,N…, got '{text}'"))
    }
}

/// Lines about the options for the help of a command.
pub(super) fn help(usage: &str, choices: &[CommandOption]) -> String {
    let mut text = format!("Usage: {usage}\n");
    for choice in choices {
        let left = format!("--{} {}", choice.name, choice.value);
        text.push_str(&format!("\n  {left:<24}{}", choice.sentence));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICES: &[CommandOption] = &[
        CommandOption { name: "inputs", value: "FILE", sentence: "" },
        CommandOption { name: "json", value: "", sentence: "" },
    ];

    fn parse(arguments: &[&str]) -> Result<CommandArguments, String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        CommandArguments::parse(&arguments, CHOICES)
    }

    #[test]
    fn options_stand_anywhere_and_repeat() {
        let parsed = parse(&["--inputs", "a", "m.onnx", "--inputs=b", "--json"]).unwrap();
        assert_eq!(parsed.all("inputs"), ["a", "b"]);
        assert!(parsed.has("json"));
        assert_eq!(parsed.only("MODEL").unwrap(), "m.onnx");
    }

    #[test]
    fn mistakes_are_named() {
        assert!(parse(&["--nope"]).unwrap_err().contains("there are --inputs, --json"));
        assert!(parse(&["--inputs"]).unwrap_err().contains("needs a value"));
        assert!(parse(&["--json=1"]).unwrap_err().contains("takes no value"));
        assert!(parse(&[]).unwrap().only("MODEL").unwrap_err().contains("MODEL is missing"));
    }
}
