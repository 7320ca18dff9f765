//! Command line of `galatea tune`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use galatea_runtime::tune::{SearchLimits, StrategyKind};

use super::arguments::{choice, number, path, time};
use super::tune_subject::SubjectChoices;

/// Command line of `galatea tune`.
#[derive(Debug, Args)]
pub(super) struct TuneArguments {
    #[arg(value_name = "MODEL|FILE", value_parser = path, num_args = 0..)]
    pub(super) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) subject: SubjectChoices,
    #[arg(
        long,
        value_name = "NAME",
        value_parser = choice(&StrategyKind::ALL),
        help = "exhaustive, grid, adaptive or genetic [exhaustive up to 16 candidates and for lists, else adaptive]"
    )]
    pub(super) strategy: Option<StrategyKind>,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        default_value_t = SearchLimits::default().trials,
        help = "the most candidates of a choice [64]"
    )]
    pub(super) trials: usize,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        help = "times that a candidate is run [9]"
    )]
    pub(super) samples: Option<usize>,
    #[arg(
        long = "seconds",
        value_name = "S",
        value_parser = time,
        default_value = "60",
        help = "the most time for all choices [60]"
    )]
    pub(super) time: Duration,
    #[arg(
        long,
        value_name = "FILE",
        value_parser = path,
        help = "add the records to this file [the one that sessions look at]"
    )]
    pub(super) database: Option<PathBuf>,
    #[arg(
        long = "family",
        value_name = "TEXT",
        help = "only choices whose family has this in its name; repeatable"
    )]
    pub(super) families: Vec<String>,
    #[arg(long, help = "measure choices that have a record, too")]
    pub(super) again: bool,
    #[arg(long, help = "print the choices and their candidates")]
    pub(super) list: bool,
    #[arg(
        long,
        value_name = "A/B",
        help = "compare two candidates, by number or name, wherever a choice has both"
    )]
    pub(super) compare: Option<String>,
    #[arg(long, requires_all = ["files", "output"], help = "put the records of FILE … into --output")]
    pub(super) merge: bool,
    #[arg(long, value_name = "FILE", value_parser = path, help = "where --merge writes")]
    pub(super) output: Option<PathBuf>,
    #[arg(long, value_name = "FILE", value_parser = path, help = "print the records of a file")]
    pub(super) inspect: Option<PathBuf>,
    #[arg(
        long,
        value_name = "FILE.svg",
        value_parser = path,
        help = "draw the best time so far over the candidates of each choice"
    )]
    pub(super) plot: Option<PathBuf>,
    #[arg(
        long,
        value_name = "FILE.toml",
        value_parser = path,
        help = "instead, without MODEL: write a file of facts about this host, measured here"
    )]
    pub(super) write_chip: Option<PathBuf>,
    #[arg(long, help = "print one line of JSON for each record")]
    pub(super) json: bool,
}

impl TuneArguments {
    /// Refuses files.
    ///
    /// # Errors
    /// Fails when there is one.
    pub(super) fn without_files(&self) -> Result<(), String> {
        self.files.first().map_or(Ok(()), |extra| Err(unexpected(extra)))
    }

    /// Returns the only file, which is a model.
    ///
    /// # Errors
    /// Fails when there is none, or more than one.
    pub(super) fn model(&self) -> Result<&Path, String> {
        match self.files.as_slice() {
            [model] => Ok(model),
            [] => Err("MODEL is missing".to_owned()),
            [_, extra, ..] => Err(unexpected(extra)),
        }
    }
}

fn unexpected(file: &Path) -> String {
    format!("unexpected argument '{}'", file.display())
}

#[cfg(test)]
mod tests {
    use super::super::arguments::parse;
    use super::*;

    #[test]
    fn merging_needs_files_and_an_output() {
        for (arguments, text) in [
            (&["--merge", "--output", "all"][..], "MODEL|FILE is missing"),
            (&["--merge", "one"], "--output is missing"),
        ] {
            assert_eq!(parse::<TuneArguments>(arguments).unwrap_err(), text);
        }
        let both = parse::<TuneArguments>(&["--merge", "one", "two", "--output", "all"]).unwrap();
        assert_eq!(both.files, ["one", "two"].map(PathBuf::from));
        let neither = parse::<TuneArguments>(&["--merge"]).unwrap_err();
        assert!(neither.contains("MODEL|FILE") && neither.contains("--output"), "{neither}");
    }
}
