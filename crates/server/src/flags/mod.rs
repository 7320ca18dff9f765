//! Command-line flags of `serve`: one table, and a reader for both `--flag=value` and `--flag value`.

mod table;

use std::collections::BTreeMap;
use std::fmt::Write as _;

pub use table::{FLAGS, Flag, Kind, Support};

/// Values by flag, in the order given.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    values: BTreeMap<&'static str, Vec<String>>,
    bind_all: bool,
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Parsed {
    /// To serve.
    Serve(Flags),
    /// To print the list of flags.
    Help,
}

impl Flags {
    /// Reads a command line. `bind_all`: the default address is 0.0.0.0, as Triton's, and not the loopback.
    ///
    /// # Errors
    /// A sentence about the first flag that is unknown, has a wrong value, or asks for what this server cannot do.
    pub fn parse(arguments: &[String], bind_all: bool) -> Result<Parsed, String> {
        let mut flags = Self { bind_all, ..Self::default() };
        let mut rest = arguments.iter().peekable();
        while let Some(argument) = rest.next() {
            if argument == "-h" || argument == "--help" {
                return Ok(Parsed::Help);
            }
            let Some(body) = argument.strip_prefix("--") else {
                return Err(format!("unexpected argument '{argument}'; flags start with '--'"));
            };
            let (name, inline) = match body.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (body, None),
            };
            let flag = find(name)?;
            let bare = flag.kind == Kind::Switch
                || (flag.kind == Kind::Bool
                    && rest.peek().is_none_or(|next| next.starts_with("--")));
            let value = match inline {
                Some(value) => value,
                None if bare => "true".to_owned(),
                None => rest.next().cloned().ok_or_else(|| format!("--{name} needs a value"))?,
            };
            flag.check(&value)?;
            flags.values.entry(flag.stands_for()).or_default().push(value);
        }
        flags.check_together()?;
        Ok(Parsed::Serve(flags))
    }

    /// Rules over several flags.
    fn check_together(&self) -> Result<(), String> {
        if self.is_set("load-model")
            && !self.text("model-control-mode").eq_ignore_ascii_case("explicit")
        {
            return Err("Use of '--load-model' requires setting '--model-control-mode=explicit' \
                        as well."
                .to_owned());
        }
        let doors = [
            ("HTTP", "allow-http", "http-address", "http-port"),
            ("GRPC", "allow-grpc", "grpc-address", "grpc-port"),
            ("metrics", "allow-metrics", "metrics-address", "metrics-port"),
        ];
        for (index, a) in doors.iter().enumerate() {
            for b in doors.iter().skip(index + 1) {
                let same = self.text(a.2) == self.text(b.2) && self.number(a.3) == self.number(b.3);
                if self.bool(a.1) && self.bool(b.1) && same && self.number(a.3) != 0 {
                    return Err(format!(
                        "The server cannot listen to {} requests and {} requests at the same \
                         address and port: {}:{}",
                        a.0,
                        b.0,
                        self.text(a.2),
                        self.number(a.3)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether the flag was given.
    #[must_use]
    pub fn is_set(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// All values of a flag that may be repeated.
    #[must_use]
    pub fn all(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// The last value given, or the default.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        if let Some(value) = self.all(name).last() {
            return value;
        }
        match name {
            "metrics-address" => self.text("http-address"),
            "http-address" | "grpc-address" if self.bind_all => "0.0.0.0",
            _ => FLAGS.iter().find(|flag| flag.name == name).map_or("", |flag| flag.default),
        }
    }

    /// A value that is true or false.
    #[must_use]
    pub fn bool(&self, name: &str) -> bool {
        truth(self.text(name)).unwrap_or(false)
    }

    /// A value that is a number.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }

    /// Flags given that have no effect, with the reason.
    pub fn without_effect(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        FLAGS.iter().filter_map(|flag| match flag.support {
            Support::Ignored(why) if self.is_set(flag.name) => Some((flag.name, why)),
            _ => None,
        })
    }
}

impl Flag {
    /// The flag whose value an alias sets.
    fn stands_for(&self) -> &'static str {
        if self.name == "model-store" { "model-repository" } else { self.name }
    }

    fn check(&self, value: &str) -> Result<(), String> {
        let name = self.name;
        let fits = match self.kind {
            Kind::Switch | Kind::Bool => truth(value).is_some(),
            Kind::Number => value.parse::<u64>().is_ok(),
            Kind::Text | Kind::Texts => true,
            Kind::Choice(names) => names.iter().any(|name| name.eq_ignore_ascii_case(value)),
        };
        if !fits {
            return Err(format!("--{name} expects {}, got '{value}'", self.kind));
        }
        if self.kind == Kind::Number && name.ends_with("-port") && value.parse::<u16>().is_err() {
            return Err(format!("--{name} expects a port from 0 to 65535, got '{value}'"));
        }
        let as_default = value.eq_ignore_ascii_case(self.default)
            || (truth(value).is_some() && truth(value) == truth(self.default));
        match self.support {
            Support::Refused(why) if !as_default => {
                Err(format!("--{name}={value} is not supported: {why}"))
            }
            Support::Only(values, why) if !as_default => {
                if values.iter().any(|known| known.eq_ignore_ascii_case(value)) {
                    Ok(())
                } else {
                    Err(format!("--{name}={value} is not supported: {why}"))
                }
            }
            _ => Ok(()),
        }
    }
}

fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Some(true),
        "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn find(name: &str) -> Result<&'static Flag, String> {
    if let Some(flag) = FLAGS.iter().find(|flag| flag.name == name) {
        return Ok(flag);
    }
    let nearest = FLAGS.iter().min_by_key(|flag| distance(flag.name, name));
    let hint = nearest
        .filter(|flag| distance(flag.name, name) <= name.len().div_ceil(3))
        .map(|flag| format!("; did you mean --{}?", flag.name))
        .unwrap_or_default();
    Err(format!("unknown flag --{name}{hint}"))
}

/// Insertions, deletions and replacements between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (above, y) in row.iter().skip(1).zip(&b) {
            left = (diagonal + usize::from(x != *y)).min(left + 1).min(above + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

/// The list of flags for people.
#[must_use]
pub fn help() -> String {
    let mut text = String::new();
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
        match flag.support {
            Support::Yes => {}
            Support::Ignored(why) => {
                write!(text, " (accepted without effect: {why})").ok();
            }
            Support::Refused(why) | Support::Only(_, why) => {
                write!(text, " (limited: {why})").ok();
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Flags, String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        match Flags::parse(&arguments, false)? {
            Parsed::Serve(flags) => Ok(flags),
            Parsed::Help => Err("help".to_owned()),
        }
    }

    #[test]
    fn both_spellings_and_repetition_work() {
        let flags = parse(&[
            "--model-repository=/a",
            "--model-store",
            "/b",
            "--http-port",
            "0",
            "--allow-grpc=OFF",
            "--disable-auto-complete-config",
            "--strict-readiness",
            "--log-info",
            "false",
        ])
        .unwrap();
        assert_eq!(flags.all("model-repository"), ["/a", "/b"]);
        assert_eq!(flags.number("http-port"), 0);
        assert!(!flags.bool("allow-grpc"));
        assert!(flags.bool("disable-auto-complete-config"));
        assert!(flags.bool("strict-readiness"));
        assert!(!flags.bool("log-info"));
        assert_eq!(flags.number("exit-timeout-secs"), 30);
        assert_eq!(flags.text("metrics-address"), "127.0.0.1");
    }

    #[test]
    fn mistakes_are_named() {
        for (argument, text) in [
            ("--http-prot=1", "did you mean --http-port?"),
            ("--qwertyuiop=1", "unknown flag --qwertyuiop"),
            ("--http-port=70000", "expects a port"),
            ("--allow-http=maybe", "expects true or false, got 'maybe'"),
            ("--rate-limit=execution_count", "is not supported"),
            ("--model-control-mode=poll", "is not supported"),
            ("--load-model=x", "--model-control-mode=explicit"),
            ("--http-port=8001", "at the same address and port"),
            ("serve", "unexpected argument"),
        ] {
            let error = parse(&[argument]).unwrap_err();
            assert!(error.contains(text), "{argument}: {error}");
        }
    }

    #[test]
    fn defaults_of_refused_flags_are_accepted() {
        parse(&["--rate-limit=off", "--allow-sagemaker=false", "--model-control-mode=EXPLICIT"])
            .unwrap();
    }

    #[test]
    fn called_as_triton_every_address_is_bound() {
        let Ok(Parsed::Serve(flags)) = Flags::parse(&[], true) else { panic!("serves") };
        assert_eq!(flags.text("http-address"), "0.0.0.0");
        assert_eq!(flags.text("metrics-address"), "0.0.0.0");
    }

    #[test]
    fn every_flag_has_a_valid_default_and_stands_in_the_help() {
        for flag in FLAGS {
            assert!(help().contains(flag.name));
            if !flag.default.is_empty() {
                flag.check(flag.default).unwrap();
            }
        }
    }
}
