//! Options of `cargo xtask fuzz --minutes N`, and the targets that they name.

use std::time::Duration;

use crate::workspace::{WorkspaceFolders, read};

/// Options that the command takes.
const OPTIONS: &str = "it takes --minutes N, --target TARGET, --jobs N and --keep";
/// Targets whose inputs are models, which share a corpus.
const OF_MODELS: &[&str] = &["import", "rewriting", "plan"];

/// Plan of a run.
#[derive(Debug, PartialEq)]
pub(super) struct FuzzPlan {
    /// Time of the processor for each target.
    pub(super) time: Duration,
    /// Names of targets; empty for all.
    pub(super) only: Vec<String>,
    /// Targets that run at the same time.
    pub(super) jobs: usize,
    /// True if inputs that reach new code go to the committed corpus.
    pub(super) keep: bool,
}

impl FuzzPlan {
    /// Reads the options.
    pub(super) fn parse(arguments: &[String]) -> Result<Self, String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut plan = Self { time: Duration::ZERO, only: Vec::new(), jobs: cores, keep: false };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (argument.as_str(), None),
            };
            if name == "--keep" && value.is_none() {
                plan.keep = true;
                continue;
            }
            let value = value.or_else(|| rest.next().map(String::as_str));
            let value = value.ok_or_else(|| format!("`{name}` without a value; {OPTIONS}"))?;
            match name {
                "--minutes" => plan.time = minutes(value)?,
                "--target" => plan.only.push(value.to_owned()),
                "--jobs" => plan.jobs = jobs(value)?,
                _ => return Err(format!("unknown option `{argument}`; {OPTIONS}")),
            }
        }
        if plan.time.is_zero() {
            return Err(format!("no --minutes; {OPTIONS}"));
        }
        Ok(plan)
    }

    /// Finds the targets that the plan names, in the order of the manifest.
    pub(super) fn targets(&self, workspace: &WorkspaceFolders) -> Result<Vec<String>, String> {
        let all = target_names(&read(&workspace.root.join("fuzz/Cargo.toml"))?)?;
        if let Some(unknown) = self.only.iter().find(|name| !all.contains(name)) {
            return Err(format!("unknown target `{unknown}`; the targets are {}", all.join(", ")));
        }
        let wanted = |name: &String| self.only.is_empty() || self.only.contains(name);
        Ok(all.into_iter().filter(wanted).collect())
    }
}

fn minutes(value: &str) -> Result<Duration, String> {
    let found: Option<f64> = value.parse().ok();
    let found = found.filter(|minutes| *minutes > 0.0 && *minutes <= 100_000.0);
    found
        .map(|minutes| Duration::from_secs_f64(minutes * 60.0))
        .ok_or_else(|| format!("`{value}` found for --minutes, expected a number above 0"))
}

fn jobs(value: &str) -> Result<usize, String> {
    let found: Option<usize> = value.parse().ok();
    found
        .filter(|jobs| (1..=1024).contains(jobs))
        .ok_or_else(|| format!("`{value}` found for --jobs, expected a number from 1 to 1024"))
}

/// Finds the names of the programs of a manifest.
fn target_names(manifest: &str) -> Result<Vec<String>, String> {
    let table: toml::Table = manifest.parse().map_err(|e| format!("fuzz/Cargo.toml: {e}"))?;
    let programs = table.get("bin").and_then(toml::Value::as_array);
    let names = programs.into_iter().flatten().filter_map(|one| one.get("name")?.as_str());
    Ok(names.map(str::to_owned).collect())
}

/// Names the folder of the committed inputs of a target.
pub(super) fn corpus_name(target: &str) -> &str {
    if OF_MODELS.contains(&target) { "models" } else { target }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(arguments: &[&str]) -> Result<FuzzPlan, String> {
        let owned: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
        FuzzPlan::parse(&owned)
    }

    #[test]
    fn options_say_how_long_and_which() {
        let found = plan(&["--minutes=0.5", "--target", "npy", "--jobs", "3", "--keep"]).unwrap();
        let time = Duration::from_secs(30);
        assert_eq!(found, FuzzPlan { time, only: vec!["npy".to_owned()], jobs: 3, keep: true });
        for wrong in [
            &[][..],
            &["--minutes"],
            &["--minutes", "0"],
            &["--minutes", "x"],
            &["--minutes", "1", "--jobs", "0"],
            &["--minutes", "1", "--hours", "2"],
            &["--minutes", "1", "--keep=yes"],
        ] {
            assert!(plan(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn targets_are_those_of_the_manifest() {
        let manifest = "[[bin]]\nname = \"b\"\npath = \"x\"\n[[bin]]\nname = \"a\"\n";
        assert_eq!(target_names(manifest).unwrap(), ["b", "a"]);
        assert_eq!((corpus_name("plan"), corpus_name("npy")), ("models", "npy"));
    }
}
