//! Settings of a side of a report: how its model runs.

use std::path::Path;

use clap::{Arg, ArgAction, Args, Command, FromArgMatches};
use galatea::Model;

use crate::arguments::{number, threads, uniform};
use crate::bench::several_providers;
use crate::bench_language::CheckpointJob;
use crate::generate::{FreeLengths, ShapeChoices};
use crate::language_choices::{TokenCounts, WeightChoices};
use crate::model::{self, CacheChoices, GpuMemoryChoice, SessionChoices};
use crate::usage::explain;

/// Options for how a model runs.
#[derive(Debug, Clone, Default, Args)]
#[command(mut_args(several_providers))]
pub(super) struct ReportSettings {
    // None of them has a value that is not given: one side changes what is given for the other.
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        help = "length of the batch axis [1]"
    )]
    batch: Option<usize>,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        help = "length of axes along a sequence that the model leaves open [128]"
    )]
    sequence: Option<usize>,
    #[command(flatten)]
    pub(super) shapes: ShapeChoices,
    #[arg(
        long,
        value_name = "N",
        value_parser = threads,
        help = "threads inside an operator, 0 for all fast cores [0]"
    )]
    threads: Option<usize>,
    #[command(flatten)]
    pub(super) session: SessionChoices,
    #[command(flatten)]
    pub(super) gpu_memory: GpuMemoryChoice,
    #[command(flatten)]
    counts: TokenCounts,
    #[command(flatten)]
    weights: WeightChoices,
    #[command(flatten)]
    cache: CacheChoices,
}

/// A setting of the other side, `NAME=VALUE`.
#[derive(Debug, Clone)]
pub(super) struct ChangedSetting(String);

impl ChangedSetting {
    /// Parses a setting.
    ///
    /// # Errors
    /// Fails when there is no such setting, or it does not take the value.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let setting = Self(text.to_owned());
        ReportSettings::default().with(std::slice::from_ref(&setting)).map(|_| setting)
    }

    /// Returns the setting as it was given.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Returns the option and its value as a command line has them.
    fn words(&self, command: &Command) -> Result<[String; 2], String> {
        let text = &self.0;
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("expects NAME=VALUE, got '{text}'"))?;
        let takes_value = |arg: &&Arg| arg.get_action().takes_values();
        let names = command.get_arguments().filter(takes_value).filter_map(Arg::get_long);
        let names: Vec<&str> = names.collect();
        match names.contains(&name) {
            true => Ok([format!("--{name}"), value.to_owned()]),
            false => {
                let names = names.join(", ");
                Err(format!(": there is no setting '{name}'; there are {names}"))
            }
        }
    }
}

impl ReportSettings {
    /// Returns the settings with some of them changed.
    ///
    /// # Errors
    /// Fails when there is no such setting, or it does not take the value.
    pub(super) fn with(&self, changes: &[ChangedSetting]) -> Result<Self, String> {
        let command = Command::new("against").no_binary_name(true).args_override_self(true);
        let command = uniform(Self::augment_args_for_update(command));
        let words: Result<Vec<[String; 2]>, String> =
            changes.iter().map(|change| change.words(&command)).collect();
        // A flag that is not given has a value for clap, which would be put in place of this side's.
        let command = command.mut_args(|arg| match arg.get_action().takes_values() {
            true => arg,
            false => arg.action(ArgAction::Set),
        });
        let failed = |error: clap::Error| format!(": {}", explain(&error, "setting"));
        let matches = command.try_get_matches_from(words?.as_flattened()).map_err(failed)?;
        let mut changed = self.clone();
        changed.update_from_arg_matches(&matches).map_err(failed)?;
        Ok(changed)
    }

    /// Prepares the model.
    ///
    /// # Errors
    /// Fails as [`model::cached_model`] does.
    pub(super) fn model(&self, path: &Path) -> Result<Model, String> {
        model::cached_model(path, &self.session, self.threads.unwrap_or(0), &self.cache)
    }

    /// Returns the lengths of axes that have none of their own.
    pub(super) fn lengths(&self) -> FreeLengths {
        FreeLengths { batch: self.batch.unwrap_or(1), sequence: self.sequence }
    }

    /// Returns how a checkpoint is measured.
    pub(super) fn checkpoint_job<'a>(&'a self, path: &'a Path) -> CheckpointJob<'a> {
        CheckpointJob {
            path,
            counts: &self.counts,
            weights: &self.weights,
            provider: self.session.provider.as_deref(),
            threads: self.threads.unwrap_or(0),
            concurrency: 1,
            profile: false,
        }
    }

    /// Returns the settings of the session that are given, by name.
    pub(super) fn given(&self) -> Vec<(&'static str, String)> {
        let SessionChoices { provider, precision, level, .. } = &self.session;
        let rows = [
            ("provider", provider.clone()),
            ("precision", precision.map(|precision| precision.to_string())),
            ("level", level.map(|level| level.to_string())),
            ("threads", self.threads.map(|threads| threads.to_string())),
        ];
        rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::parse;

    fn changed(given: &[&str], changes: &[&str]) -> [ReportSettings; 2] {
        let settings: ReportSettings = parse(given).unwrap();
        let changes: Vec<ChangedSetting> =
            changes.iter().map(|text| ChangedSetting::parse(text).unwrap()).collect();
        let changed = settings.with(&changes).unwrap();
        [settings, changed]
    }

    #[test]
    fn the_other_side_keeps_what_is_not_changed() {
        let given = ["--no-model-cache", "--shape=x=1,2", "--threads=2", "--batch=3"];
        let [own, other] = changed(&given, &["level=O0", "batch=4", "batch=5"]);
        assert_eq!((own.batch, other.batch, other.threads), (Some(3), Some(5), Some(2)));
        assert_eq!(other.shapes.by_input(), own.shapes.by_input());
        assert_eq!(other.given().len(), own.given().len() + 1);
        let [own, other] = [own, other].map(|settings| format!("{:?}", settings.cache));
        assert!(own == other && own.contains("true"), "{own} {other}");
    }

    #[test]
    fn shapes_of_the_other_side_are_put_in_place_of_those_given() {
        let [_, other] = changed(&["--shape=x=1,2"], &["shape=y=3", "provider=-x"]);
        let shapes: Vec<(String, Vec<usize>)> = other.shapes.by_input().into_iter().collect();
        assert_eq!(shapes, [("y".to_owned(), vec![3])]);
        assert_eq!(other.session.provider.as_deref(), Some("-x"));
    }
}
