//! The steps of `cargo xtask test`, in order.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::process::{cargo, run};
use crate::workspace::Workspace;
use crate::{arrows, chips, dependencies, gpu, macos, neon, python, sizes};

/// One check that can run alone.
pub(crate) struct Step {
    /// The command's name.
    pub(crate) name: &'static str,
    /// What it checks, in one line.
    pub(crate) what: &'static str,
    /// Runs it; the error says what is wrong.
    pub(crate) run: fn(&Workspace) -> Result<(), String>,
}

/// Every step. The cheap ones come first.
pub(crate) const STEPS: &[Step] = &[
    Step { name: "fmt", what: "rustfmt's form of every file", run: fmt },
    Step {
        name: "arrows",
        what: "crate dependencies against the house's table",
        run: arrows::check,
    },
    Step { name: "sizes", what: "no source file over 800 lines", run: sizes::check },
    Step { name: "chips", what: "data/chips: complete and with provenance", run: chips::check },
    Step {
        name: "dependencies",
        what: "docs/dependencies.md against the Cargo.toml files",
        run: dependencies::check,
    },
    Step { name: "clippy", what: "lints of the workspace, warnings denied", run: clippy },
    Step {
        name: "unit",
        what: "cargo test of the workspace, ONNX's own cases included",
        run: unit,
    },
    Step { name: "gpu", what: "the GPU provider's tests on a Vulkan device", run: gpu::test },
    Step { name: "quickstart", what: "the README's first command, once", run: python::quickstart },
    Step { name: "python", what: "the stock Triton client against the program", run: python::test },
    Step { name: "neon", what: "the kernels' tests as an emulated ARM program", run: neon::test },
    Step { name: "check-macos", what: "lints for aarch64-apple-darwin", run: macos::check },
    Step {
        name: "link-macos",
        what: "the program for macOS, linked against what macOS has",
        run: macos::link,
    },
];

/// The feature that builds the program with GPUs on every system.
pub(crate) const GPU: &str = "galatea/gpu";

/// What a run of `test` was asked for.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    only: Vec<String>,
    skip: Vec<String>,
    keep_going: bool,
}

impl Plan {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut plan = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--keep-going" => plan.keep_going = true,
                "--skip" => plan.skip.push(known(rest.next().ok_or("--skip needs a step")?)?),
                name => plan.only.push(known(name)?),
            }
        }
        Ok(plan)
    }

    fn wants(&self, step: &Step) -> bool {
        let named = |list: &[String]| list.iter().any(|name| name == step.name);
        (self.only.is_empty() || named(&self.only)) && !named(&self.skip)
    }
}

fn known(name: &str) -> Result<String, String> {
    if STEPS.iter().any(|step| step.name == name) {
        return Ok(name.to_owned());
    }
    let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    Err(format!("unknown step `{name}`; the steps are {}", names.join(", ")))
}

/// Runs the steps that `arguments` ask for and prints a summary of times.
pub(crate) fn test(workspace: &Workspace, arguments: &[String]) -> Result<(), String> {
    let plan = Plan::parse(arguments)?;
    let mut done: Vec<(&str, Duration, Result<(), String>)> = Vec::new();
    for step in STEPS.iter().filter(|step| plan.wants(step)) {
        println!("\n==== {}: {}", step.name, step.what);
        let start = Instant::now();
        let result = (step.run)(workspace);
        let failed = result.is_err();
        if let Err(message) = &result {
            println!("FAILED {}: {message}", step.name);
        }
        done.push((step.name, start.elapsed(), result));
        if failed && !plan.keep_going {
            break;
        }
    }
    summary(&done)
}

fn summary(done: &[(&str, Duration, Result<(), String>)]) -> Result<(), String> {
    println!("\n==== summary");
    for (name, time, result) in done {
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        println!("{name:<12} {:>8.1} s  {verdict}", time.as_secs_f64());
    }
    let total: Duration = done.iter().map(|(_, time, _)| *time).sum();
    println!("{:<12} {:>8.1} s", "total", total.as_secs_f64());
    let failed: Vec<&str> =
        done.iter().filter(|(_, _, result)| result.is_err()).map(|(name, _, _)| *name).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

fn fmt(workspace: &Workspace) -> Result<(), String> {
    run(cargo(&workspace.root).args(["fmt", "--all", "--check"]))
}

fn clippy(workspace: &Workspace) -> Result<(), String> {
    let gpu = ["clippy", "--workspace", "--all-targets", "--features", GPU, "--", "-D", "warnings"];
    run(cargo(&workspace.root).args(gpu))?;
    let without = ["clippy", "--package", "galatea", "--", "-D", "warnings"];
    run(cargo(&workspace.root).args(without))
}

/// The folder of the cases of the `onnx` package, which is filled where it is not.
pub(crate) fn onnx_cases(workspace: &Workspace) -> Result<PathBuf, String> {
    let python = python::environment(workspace)?;
    let cases = workspace.target.join("onnx-node");
    // The second script ends with this file.
    if !cases.join("LIGHT").exists() {
        for script in ["python/contrib_node_cases.py", "python/onnx_node_cases.py"] {
            let mut write = Command::new(&python);
            write.current_dir(&workspace.root).arg(script).arg(&cases);
            run(&mut write)?;
        }
    }
    Ok(cases)
}

/// Every Rust test but the GPU provider's, the conformance suite on the cases of the `onnx` package among them.
fn unit(workspace: &Workspace) -> Result<(), String> {
    let cases = onnx_cases(workspace)?;
    let mut command = cargo(&workspace.root);
    command.args(["test", "--workspace", "--exclude", "galatea-gpu", "--no-fail-fast"]);
    command.args(["--features", GPU]).env("GALATEA_ONNX_NODE_DATA", &cases);
    if let Some(library) = python::foreign_blas(&python::environment(workspace)?) {
        command.env("GALATEA_CBLAS", library);
    }
    run(&mut command)
}

/// Writes the page of operators.
pub(crate) fn operators(workspace: &Workspace) -> Result<(), String> {
    let cases = onnx_cases(workspace)?;
    let test = ["test", "-p", "galatea-providers", "--test", "onnx_nodes", "docs/operators.md"];
    run(cargo(&workspace.root)
        .args(test)
        .env("GALATEA_ONNX_NODE_DATA", &cases)
        .env("GALATEA_WRITE_OPERATORS", "1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(arguments: &[&str]) -> Result<Plan, String> {
        let owned: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
        Plan::parse(&owned)
    }

    #[test]
    fn without_arguments_every_step_runs() {
        let plan = plan(&[]).unwrap();
        assert!(STEPS.iter().all(|step| plan.wants(step)));
    }

    #[test]
    fn named_steps_run_alone_and_skipped_steps_do_not() {
        let plan = plan(&["fmt", "python", "--skip", "python"]).unwrap();
        let names: Vec<_> = STEPS.iter().filter(|s| plan.wants(s)).map(|s| s.name).collect();
        assert_eq!(names, ["fmt"]);
    }

    #[test]
    fn an_unknown_step_lists_the_known_ones() {
        assert!(plan(&["lint"]).unwrap_err().contains("clippy"));
    }
}
