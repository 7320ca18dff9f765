//! Compiles the Metal texts of `golden/metal` with clang, against a stand-in for Metal's standard library.
//!
//! Apple's compiler is on no machine of the checks. What this shows is that a text is well-formed C++14 with Metal's
//! names, types and conversions, and that texts compute what the reference computes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::process::run;
use crate::programs;
use crate::workspace::WorkspaceFolders;

const COMPILER: &str = "clang++";

const HOW: &str = "the Metal texts are read by clang. On Debian `apt install clang`";

/// Folder of the headers that stand in for Metal's.
const HEADERS: &str = "crates/gpu/tests/metal/shim";

/// Folder of the texts.
const TEXTS: &str = "golden/metal";

/// The tests that run texts, the variable that gives them a folder for programs, and the file there in which they
/// leave how many texts ran.
const PROGRAM: &str = "gpu/metal";
const FOLDER: &str = "GALATEA_METAL_PROGRAMS";
const COUNT: &str = "run.txt";

/// Clang's options for a text: Metal is C++14 without `double`, and its attributes are unknown elsewhere.
const OPTIONS: &[&str] = &[
    "-x",
    "c++",
    "-std=c++14",
    "-Xclang",
    "-cl-single-precision-constant",
    "-Wall",
    "-Werror",
    "-Wno-unknown-attributes",
    "-Wno-unused",
];

/// Most characters of the compiler's message that are shown.
const MAX_MESSAGE: usize = 2000;

/// Has every text read.
pub(crate) fn test(workspace: &WorkspaceFolders) -> Result<(), String> {
    let found = Command::new(COMPILER).arg("--version").output();
    if !found.is_ok_and(|version| version.status.success()) {
        return Err(HOW.to_owned());
    }
    let texts = texts(&workspace.root.join(TEXTS))?;
    if texts.is_empty() {
        return Err(format!("no texts in {TEXTS}; `cargo xtask metal` writes them"));
    }
    let headers = workspace.root.join(HEADERS);
    let refused = refused(&texts, &headers);
    if !refused.is_empty() {
        return Err(format!("{} texts are refused:\n{}", refused.len(), refused.join("\n")));
    }
    let run = run_texts(workspace)?;
    let all = texts.len();
    let RunTexts { kept, others } = run;
    println!("{all} texts that are kept: all parsed, {kept} run; {others} others parsed and run");
    Ok(())
}

/// Numbers of texts that ran.
struct RunTexts {
    /// Texts that are kept in their folder.
    kept: usize,
    /// Others, of which digests are kept.
    others: usize,
}

/// Runs texts as programs of the CPU, beside the reference.
fn run_texts(workspace: &WorkspaceFolders) -> Result<RunTexts, String> {
    let programs = programs::build(workspace)?;
    let program = programs.iter().find(|program| program.name() == PROGRAM);
    let program = program.ok_or_else(|| format!("there are no tests {PROGRAM}"))?;
    let folder = workspace.target.join("msl");
    let count = folder.join(COUNT);
    // What an earlier run left says nothing of this one.
    if count.exists() {
        fs::remove_file(&count).map_err(|error| format!("{}: {error}", count.display()))?;
    }
    let mut command = program.command(None);
    run(command.args(["computed::", "--nocapture"]).env(FOLDER, &folder))?;
    let text = fs::read_to_string(&count);
    let text = text.map_err(|error| format!("{}: {error}", count.display()))?;
    let wrong = || format!("{}: `{}`, expected two numbers", count.display(), text.trim());
    let numbers: Option<Vec<usize>> = text.split_whitespace().map(|one| one.parse().ok()).collect();
    match numbers.ok_or_else(wrong)?[..] {
        [kept, others] => Ok(RunTexts { kept, others }),
        _ => Err(wrong()),
    }
}

/// Returns the texts of all families, in order.
fn texts(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        if path.is_dir() {
            found.extend(texts(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "metal") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns what the compiler says of the texts that it refuses. It runs once for each core at a time.
fn refused(texts: &[PathBuf], headers: &Path) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let refused = Mutex::new(Vec::new());
    let work = || {
        while let Some(text) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(message) = parse(text, headers)
                && let Ok(mut refused) = refused.lock()
            {
                refused.push(message);
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    let mut refused = refused.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    refused.sort();
    refused
}

/// Has the compiler read a text.
fn parse(text: &Path, headers: &Path) -> Result<(), String> {
    let mut command = Command::new(COMPILER);
    command.arg("-fsyntax-only").args(OPTIONS).arg("-isystem").arg(headers).arg(text);
    let result = command.output().map_err(|error| format!("cannot run `{COMPILER}`: {error}"))?;
    if result.status.success() {
        return Ok(());
    }
    let message: String =
        String::from_utf8_lossy(&result.stderr).chars().take(MAX_MESSAGE).collect();
    Err(format!("{}: {}\n{message}", text.display(), result.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses the text of softmax after `change`; `None` where there is no compiler.
    fn parsed(name: &str, change: impl Fn(&str) -> String) -> Option<Result<(), String>> {
        if Command::new(COMPILER).arg("--version").output().is_err() {
            eprintln!("skipped: {HOW}");
            return None;
        }
        let root = WorkspaceFolders::find().unwrap().root;
        let kept = fs::read_to_string(root.join(TEXTS).join("softmax/softmax-halves.metal"));
        let kept = kept.unwrap();
        let changed = change(&kept);
        assert!(name == "whole" || changed != kept, "the text of softmax is another one now");
        let path = std::env::temp_dir().join(format!("{name}-{}.metal", std::process::id()));
        fs::write(&path, changed).unwrap();
        let result = parse(&path, &root.join(HEADERS));
        fs::remove_file(&path).unwrap();
        Some(result)
    }

    #[test]
    fn a_text_is_accepted_as_it_is_kept() {
        let Some(result) = parsed("whole", str::to_owned) else { return };
        result.unwrap();
    }

    #[test]
    fn a_broken_text_is_refused_with_its_name_and_the_message() {
        let broken = |text: &str| text.replace("metal::fma(", "metal::fuse(");
        let Some(result) = parsed("unknown-name", broken) else { return };
        let message = result.unwrap_err();
        assert!(message.contains("unknown-name"), "{message}");
        assert!(message.contains("no member named 'fuse'"), "{message}");
    }

    #[test]
    fn a_text_that_ends_early_is_refused() {
        let broken = |text: &str| text.chars().take(text.len() / 2).collect();
        let Some(result) = parsed("half", broken) else { return };
        assert!(result.unwrap_err().contains("error"));
    }

    #[test]
    fn a_text_that_mixes_types_of_vectors_is_refused() {
        let broken = |text: &str| text.replace("near * 1.442695", "near * metal::int4(1)");
        let Some(result) = parsed("mixed", broken) else { return };
        assert!(result.unwrap_err().contains("error"));
    }
}
