//! The steps of `cargo xtask test`, in order.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::process::{cargo, run};
use crate::programs::{self, TestProgram};
use crate::scope::CheckScope;
use crate::workspace::WorkspaceFolders;
use crate::{
    arrows, c_library, chips, dependencies, doubles, examples, fuzz, gpu, macos, msl, named_tests,
    names, neon, python, rooms, sizes, targets,
};

/// One check that can run alone.
pub(crate) struct CheckStep {
    /// The command's name.
    pub(crate) name: &'static str,
    /// One-line description of the check.
    pub(crate) what: &'static str,
    /// Returns whether a change of these crates can change its result.
    pub(crate) concerns: fn(&CheckScope) -> bool,
    /// Runs it; the error says what is wrong.
    pub(crate) run: fn(&WorkspaceFolders, &CheckScope) -> Result<(), String>,
}

impl CheckStep {
    /// Makes a step that looks at the whole tree, whatever has changed.
    const fn of_tree(
        name: &'static str,
        what: &'static str,
        run: fn(&WorkspaceFolders, &CheckScope) -> Result<(), String>,
    ) -> Self {
        Self { name, what, concerns: |_| true, run }
    }
}

/// Every step. The cheap ones come first.
pub(crate) const STEPS: &[CheckStep] = &[
    CheckStep::of_tree("fmt", "rustfmt's form of every file", |workspace, _| fmt(workspace)),
    CheckStep::of_tree("arrows", "dependencies of crates and of their rooms", |workspace, _| {
        arrows::check(workspace)?;
        rooms::check(workspace)
    }),
    CheckStep::of_tree("sizes", "no source file over 800 lines", |workspace, _| {
        sizes::check(workspace)
    }),
    CheckStep::of_tree(
        "targets",
        "every file of tests is part of a test program, and those that pages name are there",
        |workspace, _| {
            targets::check(workspace)?;
            named_tests::check(workspace)
        },
    ),
    CheckStep::of_tree("names", "rules for names, comments and sentences", |workspace, _| {
        names::check(workspace)
    }),
    CheckStep::of_tree("chips", "data/chips: complete and with provenance", |workspace, _| {
        chips::check(workspace)
    }),
    CheckStep::of_tree(
        "dependencies",
        "docs/dependencies.md against the Cargo.toml files",
        |workspace, _| dependencies::check(workspace),
    ),
    CheckStep {
        name: "clippy",
        what: "lints of the workspace, warnings denied",
        concerns: |scope| scope.cargo_packages().is_some(),
        run: clippy,
    },
    CheckStep {
        name: "fuzz",
        what: "types of the fuzz targets, which are a workspace of their own",
        concerns: fuzz::concerns,
        run: |workspace, _| fuzz::check(workspace),
    },
    CheckStep {
        name: "unit",
        what: "tests of all crates, ONNX's own cases included",
        concerns: |scope| scope.cargo_packages().is_some() || scope.has_program(),
        run: unit,
    },
    CheckStep {
        name: "examples",
        what: "the programs that use the library, each once",
        concerns: CheckScope::has_program,
        run: |workspace, _| examples::run_all(workspace),
    },
    CheckStep {
        name: "c",
        what: "the header for C, and programs in C and C++ under sanitizers",
        concerns: |scope| scope.has("c") || scope.has_program(),
        run: |workspace, _| c_library::test(workspace),
    },
    CheckStep {
        name: "gpu",
        what: "the GPU provider's tests on a Vulkan device",
        concerns: |scope| scope.has("gpu") || scope.has_program(),
        run: gpu::test,
    },
    CheckStep {
        name: "msl",
        what: "the Metal texts of kernels, compiled by clang",
        concerns: |scope| scope.has_tests("gpu"),
        run: |workspace, _| msl::test(workspace),
    },
    CheckStep {
        name: "quickstart",
        what: "the README's first command, once",
        concerns: CheckScope::has_program,
        run: |workspace, _| python::quickstart(workspace),
    },
    CheckStep {
        name: "python",
        what: "the stock Triton client against the program",
        concerns: CheckScope::has_program,
        run: |workspace, _| python::test(workspace),
    },
    CheckStep {
        name: "neon",
        what: "the kernels' tests as an emulated ARM program",
        concerns: |scope| scope.has("kernels"),
        run: |workspace, _| neon::test(workspace),
    },
    CheckStep {
        name: "doubles",
        what: "the code for macOS, on doubles of macOS's libraries",
        concerns: |scope| scope.has("apple") || scope.has("coreml") || scope.has("doubles"),
        run: |workspace, _| doubles::test(workspace),
    },
    CheckStep {
        name: "check-macos",
        what: "lints for aarch64-apple-darwin",
        concerns: |scope| scope.cargo_packages().is_some(),
        run: macos::check,
    },
    CheckStep {
        name: "link-macos",
        what: "the program for macOS, linked against what macOS has",
        concerns: |scope| scope.has("cli"),
        run: |workspace, _| macos::link(workspace),
    },
];

/// The feature that builds the program with GPUs on every system.
pub(crate) const GPU: &str = "galatea-cli/gpu";

/// Options of `cargo xtask test`.
#[derive(Debug, Default, PartialEq)]
struct TestPlan {
    only: Vec<String>,
    skip: Vec<String>,
    keep_going: bool,
    /// Revision whose differences decide what is checked; `None` checks everything.
    changed_since: Option<String>,
}

impl TestPlan {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut plan = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (argument.as_str(), None),
            };
            let mut step = || {
                let found = value.or_else(|| rest.next().map(String::as_str));
                known(found.ok_or_else(|| format!("{name} needs a step"))?)
            };
            match name {
                "--only" => plan.only.push(step()?),
                "--skip" => plan.skip.push(step()?),
                "--keep-going" if value.is_none() => plan.keep_going = true,
                "--changed" => plan.changed_since = Some(value.unwrap_or(NEWEST).to_owned()),
                _ if name.starts_with('-') => {
                    return Err(format!("unknown option `{argument}`; {OPTIONS}"));
                }
                _ => plan.only.push(known(argument)?),
            }
        }
        Ok(plan)
    }

    fn wants(&self, step: &CheckStep) -> bool {
        let named = |list: &[String]| list.iter().any(|name| name == step.name);
        (self.only.is_empty() || named(&self.only)) && !named(&self.skip)
    }

    /// Finds the crates to check.
    fn scope(&self, workspace: &WorkspaceFolders) -> Result<CheckScope, String> {
        match &self.changed_since {
            Some(base) => CheckScope::changed_since(workspace, base),
            None => Ok(CheckScope::Everything),
        }
    }
}

/// Revision with which `--changed` compares where it names none: what is not committed counts.
const NEWEST: &str = "HEAD";

/// Options that `test` takes.
const OPTIONS: &str = "it takes --only STEP, --skip STEP, --keep-going and --changed[=REVISION]";

fn known(name: &str) -> Result<String, String> {
    if STEPS.iter().any(|step| step.name == name) {
        return Ok(name.to_owned());
    }
    let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    Err(format!("unknown step `{name}`; the steps are {}", names.join(", ")))
}

/// Result of a step.
struct StepResult {
    name: &'static str,
    time: Duration,
    result: Result<(), String>,
}

/// Runs the steps that `arguments` ask for and prints a table of steps and times.
pub(crate) fn test(workspace: &WorkspaceFolders, arguments: &[String]) -> Result<(), String> {
    let plan = TestPlan::parse(arguments)?;
    let scope = plan.scope(workspace)?;
    if plan.changed_since.is_some() {
        println!("checking {scope}");
    }
    let wanted = |step: &&CheckStep| plan.wants(step) && (step.concerns)(&scope);
    let mut done: Vec<StepResult> = Vec::new();
    for step in STEPS.iter().filter(wanted) {
        println!("\n==== {}: {}", step.name, step.what);
        let start = Instant::now();
        let result = (step.run)(workspace, &scope);
        let failed = result.is_err();
        if let Err(message) = &result {
            println!("FAILED {}: {message}", step.name);
        }
        done.push(StepResult { name: step.name, time: start.elapsed(), result });
        if failed && !plan.keep_going {
            break;
        }
    }
    summary(&done)
}

fn summary(done: &[StepResult]) -> Result<(), String> {
    println!("\n==== summary");
    for step in done {
        let verdict = if step.result.is_ok() { "ok" } else { "FAILED" };
        println!("{:<12} {:>8.1} s  {verdict}", step.name, step.time.as_secs_f64());
    }
    let total: Duration = done.iter().map(|step| step.time).sum();
    println!("{:<12} {:>8.1} s", "total", total.as_secs_f64());
    for step in done {
        if let Err(message) = &step.result {
            println!("\n---- {}\n{message}", step.name);
        }
    }
    let failed: Vec<&str> =
        done.iter().filter(|step| step.result.is_err()).map(|step| step.name).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

fn fmt(workspace: &WorkspaceFolders) -> Result<(), String> {
    run(cargo(&workspace.root).args(["fmt", "--all", "--check"]))
}

fn clippy(workspace: &WorkspaceFolders, scope: &CheckScope) -> Result<(), String> {
    let Some(packages) = scope.cargo_packages() else { return Ok(()) };
    // The feature is the program's, which need not be among the crates.
    let features: &[&str] = if scope.has("cli") { &["--features", GPU] } else { &[] };
    let mut all = cargo(&workspace.root);
    all.arg("clippy").args(packages).arg("--all-targets").args(features);
    run(all.args(["--", "-D", "warnings"]))?;
    if !scope.has("cli") {
        return Ok(());
    }
    let mut without = cargo(&workspace.root);
    without.arg("clippy");
    for package in ["galatea", "galatea-server", "galatea-cli"] {
        without.args(["--package", package]);
    }
    run(without.args(["--", "-D", "warnings"]))
}

/// The folder of the cases of the `onnx` package, which is filled where it is not, or by other scripts.
pub(crate) fn onnx_cases(workspace: &WorkspaceFolders) -> Result<PathBuf, String> {
    let python = python::environment(workspace)?;
    let cases = workspace.target.join("onnx-node");
    let scripts = case_scripts(workspace)?;
    let written_by = cases.join("SCRIPTS");
    if std::fs::read_to_string(&written_by).is_ok_and(|found| found == scripts) {
        return Ok(cases);
    }
    if cases.exists() {
        std::fs::remove_dir_all(&cases).map_err(|error| format!("{}: {error}", cases.display()))?;
    }
    for script in ["python/contrib_node_cases.py", "python/onnx_node_cases.py"] {
        let mut write = Command::new(&python);
        write.current_dir(&workspace.root).arg(script).arg(&cases);
        run(&mut write)?;
    }
    std::fs::write(&written_by, scripts)
        .map_err(|error| format!("{}: {error}", written_by.display()))?;
    Ok(cases)
}

/// The texts of the scripts that write cases, and of what they are written with.
fn case_scripts(workspace: &WorkspaceFolders) -> Result<String, String> {
    let files = [
        "contrib_node_cases.py",
        "ml_node_cases.py",
        "onnx_node_cases.py",
        "optimised_models.py",
        "stateful_cases.py",
        "translation_cases.py",
        "requirements-test.txt",
    ];
    let read = |file: &str| {
        let path = workspace.root.join("python").join(file);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    files.into_iter().map(read).collect()
}

/// Runs every Rust test but those on GPUs, the conformance suite on the cases of the `onnx` package among them.
fn unit(workspace: &WorkspaceFolders, scope: &CheckScope) -> Result<(), String> {
    let cases = onnx_cases(workspace)?;
    let blas = python::foreign_blas(&python::environment(workspace)?);
    let mut programs = programs::build(workspace)?;
    programs.retain(|program| !program.needs_gpu() && scope.has_tests(&program.folder));
    let prepare = |program: &TestProgram| {
        let mut command = program.command(None);
        command.env("GALATEA_ONNX_NODE_DATA", &cases);
        if let Some(library) = &blas {
            command.env("GALATEA_CBLAS", library);
        }
        command
    };
    let programs = programs::run_all(&programs, prepare);
    let documented = scope.has("cli").then(|| document_tests(workspace));
    programs.and(documented.unwrap_or(Ok(())))
}

/// Runs the examples in comments of every crate.
fn document_tests(workspace: &WorkspaceFolders) -> Result<(), String> {
    run(cargo(&workspace.root).args(["test", "--workspace", "--features", GPU, "--doc"]))
}

/// Writes the page of operators.
pub(crate) fn operators(workspace: &WorkspaceFolders) -> Result<(), String> {
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

    fn plan(arguments: &[&str]) -> Result<TestPlan, String> {
        let owned: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
        TestPlan::parse(&owned)
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
        assert!(plan(&["--only", "lint"]).unwrap_err().contains("clippy"));
        assert!(plan(&["--only"]).unwrap_err().contains("--only needs a step"));
    }

    #[test]
    fn an_unknown_option_lists_the_known_ones() {
        assert!(plan(&["--quick"]).unwrap_err().contains("--changed"));
        assert!(plan(&["--keep-going=yes"]).unwrap_err().contains("--keep-going"));
    }

    #[test]
    fn options_take_values_behind_a_space_and_behind_an_equals_sign() {
        assert_eq!(plan(&["--only=fmt"]), plan(&["--only", "fmt"]));
        assert_eq!(plan(&["--changed"]).unwrap().changed_since.unwrap(), "HEAD");
        assert_eq!(plan(&["--changed=main"]).unwrap().changed_since.unwrap(), "main");
    }

    #[test]
    fn a_change_of_docs_leaves_out_whatever_compiles() {
        let docs = CheckScope::Crates { folders: std::collections::BTreeSet::new(), data: false };
        let names: Vec<_> = STEPS.iter().filter(|s| (s.concerns)(&docs)).map(|s| s.name).collect();
        assert_eq!(names, ["fmt", "arrows", "sizes", "targets", "names", "chips", "dependencies"]);
    }
}
