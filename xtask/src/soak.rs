//! The soak: a server with models of several kinds and traffic of all protocols, for as long as asked.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{cargo, run};
use crate::python;
use crate::workspace::WorkspaceFolders;

/// Options that the command takes.
const OPTIONS: &str = "it takes --minutes N, --program PATH and --pace N";

/// Plan of a soak.
#[derive(Debug, PartialEq)]
struct SoakPlan {
    /// Minutes of traffic, as given.
    minutes: String,
    /// The program; none for one that is built with optimizations.
    program: Option<PathBuf>,
    /// Steps a second of a kind of traffic of weight one, as given.
    pace: Option<String>,
}

impl SoakPlan {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut minutes = None;
        let mut plan = Self { minutes: String::new(), program: None, pace: None };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (argument.as_str(), rest.next().cloned()),
            };
            let value = value.ok_or_else(|| format!("`{name}` without a value; {OPTIONS}"))?;
            match name {
                "--minutes" => minutes = Some(positive(name, value)?),
                "--pace" => plan.pace = Some(positive(name, value)?),
                "--program" => plan.program = Some(value.into()),
                _ => return Err(format!("unknown option `{argument}`; {OPTIONS}")),
            }
        }
        let minutes = minutes.ok_or_else(|| format!("no --minutes; {OPTIONS}"))?;
        Ok(Self { minutes, ..plan })
    }
}

fn positive(name: &str, value: String) -> Result<String, String> {
    let number: Option<f64> = value.parse().ok();
    match number.filter(|number| *number > 0.0 && number.is_finite()) {
        Some(_) => Ok(value),
        None => Err(format!("`{value}` found for {name}, expected a number above 0")),
    }
}

/// Runs a soak as the arguments ask.
///
/// # Errors
/// Fails when an option is wrong, an answer is lost or wrong, or the server holds more and more.
pub(crate) fn soak(workspace: &WorkspaceFolders, arguments: &[String]) -> Result<(), String> {
    let plan = SoakPlan::parse(arguments)?;
    let python = python::environment(workspace)?;
    let program = match &plan.program {
        Some(program) => program.clone(),
        None => build(workspace)?,
    };
    run(&mut command(&python, &program, &plan, workspace))
}

fn build(workspace: &WorkspaceFolders) -> Result<PathBuf, String> {
    run(cargo(&workspace.root).args(["build", "--release", "-p", "galatea-cli"]))?;
    let name = format!("galatea{}", std::env::consts::EXE_SUFFIX);
    Ok(workspace.target.join("release").join(name))
}

fn command(
    python: &Path,
    program: &Path,
    plan: &SoakPlan,
    workspace: &WorkspaceFolders,
) -> Command {
    let mut command = Command::new(python);
    command.arg(workspace.root.join("python/soak")).arg("--program").arg(program);
    command.args(["--minutes", &plan.minutes]);
    command.arg("--folder").arg(workspace.target.join("soak"));
    if let Some(pace) = &plan.pace {
        command.args(["--pace", pace]);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(arguments: &[&str]) -> Result<SoakPlan, String> {
        let owned: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
        SoakPlan::parse(&owned)
    }

    #[test]
    fn options_say_how_long_and_which_program() {
        let found = plan(&["--minutes=0.5", "--program", "p", "--pace", "3"]).unwrap();
        let expected = SoakPlan {
            minutes: "0.5".to_owned(),
            program: Some("p".into()),
            pace: Some("3".to_owned()),
        };
        assert_eq!(found, expected);
        for wrong in [
            &[][..],
            &["--minutes"],
            &["--minutes", "0"],
            &["--minutes", "x"],
            &["--minutes", "inf"],
            &["--minutes", "1", "--pace", "-1"],
            &["--minutes", "1", "--hours", "2"],
        ] {
            assert!(plan(wrong).is_err(), "{wrong:?}");
        }
    }
}
