//! Runs of fuzz targets: built with counters of the code that they reach, run side by side, counted.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::plan::{FuzzPlan, corpus_name};
use crate::process::{cargo, output, run};
use crate::workspace::WorkspaceFolders;

/// Flags that make the compiler count the code that an input reaches, for libFuzzer.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
/// Longest input, in bytes.
const MAX_INPUT_BYTES: usize = 1 << 16;
/// Memory of a target beyond which an input is a finding, in MiB.
const MAX_MEMORY_MIB: usize = 2048;
/// Time of an input beyond which it is a finding, in seconds.
const MAX_INPUT_SECONDS: u32 = 20;
/// Time between two looks at the processor time of a target.
const LOOK: Duration = Duration::from_millis(500);
/// Least time of a round, in seconds.
const MIN_ROUND_SECONDS: u64 = 2;
/// Line of libFuzzer's that says how many inputs were tried.
const EXECUTIONS: &str = "stat::number_of_executed_units:";

/// Folders of a run.
struct FuzzFolders {
    /// Committed inputs.
    committed: PathBuf,
    /// Inputs that reached new code, by target.
    found: PathBuf,
    /// Inputs that are findings, by target.
    findings: PathBuf,
    /// Built programs.
    programs: PathBuf,
}

/// Outcome of a target.
#[derive(Debug, Default)]
struct TargetOutcome {
    name: String,
    time: Duration,
    executions: u64,
    /// Places in the code that inputs have reached, as libFuzzer counts them.
    coverage: u64,
    findings: Vec<PathBuf>,
    failure: Option<String>,
}

/// Runs fuzz targets as the arguments ask, and prints a table.
///
/// # Errors
/// Fails when an option is wrong, a target does not build, or there are findings.
pub(crate) fn campaign(workspace: &WorkspaceFolders, arguments: &[String]) -> Result<(), String> {
    let plan = FuzzPlan::parse(arguments)?;
    let targets = plan.targets(workspace)?;
    let folders = build(workspace, &targets)?;
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs.min(targets.len()) {
            scope.spawn(|| {
                while let Some(name) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = fuzz(&folders, name, plan.time);
                    println!("{}", row(&outcome));
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push(outcome);
                    }
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().map_err(|_| "a thread has ended early".to_owned())?;
    outcomes.sort_by_key(|outcome| targets.iter().position(|name| *name == outcome.name));
    if plan.keep {
        targets.iter().try_for_each(|name| keep(&folders, name))?;
    }
    report(&outcomes)
}

/// Builds the targets, and names the folders.
fn build(workspace: &WorkspaceFolders, targets: &[String]) -> Result<FuzzFolders, String> {
    let folder = super::write_manifest(workspace)?;
    let host = output(Command::new("rustc").args(["--print", "host-tuple"]))?;
    let host = host.trim();
    let programs = folder.join("build");
    let mut command = cargo(&folder);
    // Naming the target keeps the flags from programs of the build itself.
    command.args(["build", "--release", "--target", host]);
    for name in targets {
        command.args(["--bin", name]);
    }
    command.env("CARGO_TARGET_DIR", &programs).env("RUSTFLAGS", COVERAGE.join(" "));
    run(&mut command)?;
    Ok(FuzzFolders {
        committed: workspace.root.join("fuzz/corpus"),
        found: folder.join("corpus"),
        findings: folder.join("findings"),
        programs: programs.join(host).join("release"),
    })
}

fn made(folder: PathBuf) -> Result<PathBuf, String> {
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Runs a target in rounds until it has had its time, or has a finding.
fn fuzz(folders: &FuzzFolders, name: &str, time: Duration) -> TargetOutcome {
    let mut outcome = TargetOutcome { name: name.to_owned(), ..TargetOutcome::default() };
    while outcome.time < time && outcome.failure.is_none() {
        let left = (time - outcome.time).as_secs().max(MIN_ROUND_SECONDS);
        if let Err(why) = round(folders, left, &mut outcome) {
            outcome.failure = Some(why);
        }
    }
    outcome
}

fn round(folders: &FuzzFolders, seconds: u64, outcome: &mut TargetOutcome) -> Result<(), String> {
    let name = outcome.name.clone();
    let found = made(folders.found.join(&name))?;
    let findings = made(folders.findings.join(&name))?;
    let committed = folders.committed.join(corpus_name(&name));
    let mut command = Command::new(folders.programs.join(&name));
    command.arg(found).args(committed.is_dir().then_some(committed)).args([
        format!("-max_total_time={seconds}"),
        format!("-max_len={MAX_INPUT_BYTES}"),
        format!("-rss_limit_mb={MAX_MEMORY_MIB}"),
        format!("-timeout={MAX_INPUT_SECONDS}"),
        format!("-artifact_prefix={}/", findings.display()),
        "-print_final_stats=1".to_owned(),
    ]);
    let begun = Instant::now();
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("`{name}` does not start: {error}"))?;
    let stderr = child.stderr.take();
    let said = std::thread::spawn(move || last_lines(stderr.map(BufReader::new)));
    let used = wait(&mut child)?;
    outcome.time += used.time.unwrap_or_else(|| begun.elapsed());
    let said = said.join().map_err(|_| "the output was not read".to_owned())?;
    let counted = said.iter().find_map(|line| line.strip_prefix(EXECUTIONS)?.trim().parse().ok());
    outcome.executions += counted.unwrap_or(0);
    outcome.coverage =
        said.iter().filter_map(|line| coverage(line)).fold(outcome.coverage, u64::max);
    outcome.findings = files(&findings);
    match used.success {
        true => Ok(()),
        false => Err(said.join("\n")),
    }
}

/// Finds the count of reached places in a line of libFuzzer's: `#16 DONE cov: 5 ft: 7 ...`.
fn coverage(line: &str) -> Option<u64> {
    let (_, rest) = line.strip_prefix('#')?.split_once(" cov: ")?;
    rest.split(' ').next()?.parse().ok()
}

/// Reads all that a target says; keeps the end of it, which has the finding or the counts.
fn last_lines(output: Option<impl BufRead>) -> Vec<String> {
    const KEPT: usize = 60;
    let mut kept = std::collections::VecDeque::new();
    let lines = output.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
    // The dictionary that libFuzzer recommends stands behind the counts and can have hundreds of lines.
    for line in lines.filter(|line| !line.starts_with('"')) {
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(line);
    }
    kept.into()
}

/// End of a process.
struct ProcessEnd {
    success: bool,
    /// Processor time, where the system tells it.
    time: Option<Duration>,
}

fn wait(child: &mut Child) -> Result<ProcessEnd, String> {
    let mut time = None;
    loop {
        time = processor_time(child.id()).or(time);
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(ProcessEnd { success: status.success(), time });
        }
        std::thread::sleep(LOOK);
    }
}

/// Reads the processor time of a process from Linux's `/proc`; none elsewhere.
fn processor_time(process: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    ticks(&text).map(|ticks| Duration::from_millis(ticks * 10))
}

/// Finds the ticks of a hundredth second in user and system mode. The name before them may have spaces.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
    Some(fields.next()?? + fields.next()??)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Takes inputs that reach code which no committed one reaches into the committed corpus.
fn keep(folders: &FuzzFolders, name: &str) -> Result<(), String> {
    let committed = made(folders.committed.join(corpus_name(name)))?;
    let mut command = Command::new(folders.programs.join(name));
    command.args(["-merge=1", "-max_len=4096"]).arg(committed).arg(folders.found.join(name));
    run(command.stderr(Stdio::null()))
}

fn row(outcome: &TargetOutcome) -> String {
    let TargetOutcome { name, time, executions, coverage, findings, .. } = outcome;
    let minutes = time.as_secs_f64() / 60.0;
    let count = findings.len();
    format!("{name:<18} {minutes:>9.1} {executions:>12} {coverage:>9} {count:>8}")
}

fn report(outcomes: &[TargetOutcome]) -> Result<(), String> {
    println!(
        "\n{:<18} {:>9} {:>12} {:>9} {:>8}",
        "target", "CPU-min", "executions", "coverage", "findings"
    );
    for outcome in outcomes {
        println!("{}", row(outcome));
    }
    let mut failed = Vec::new();
    for outcome in outcomes {
        let TargetOutcome { name, findings, failure, .. } = outcome;
        if failure.is_none() && findings.is_empty() {
            continue;
        }
        failed.push(name.as_str());
        println!("\n---- {name}\n{}", failure.as_deref().unwrap_or("findings of an earlier run"));
        findings.iter().for_each(|file| println!("{}", file.display()));
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("findings in {}", failed.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_the_sum_of_both_modes() {
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20";
        assert_eq!(ticks(stat), Some(300));
        assert_eq!(ticks("12 (a) S 1"), None);
    }

    #[test]
    fn coverage_is_what_the_fuzzer_counts() {
        let line =
            "#65536\tDONE   cov: 541 ft: 902 corp: 31/310b lim: 4096 exec/s: 32768 rss: 61Mb";
        assert_eq!(coverage(line), Some(541));
        assert_eq!(coverage("INFO: 3 files cov: 7"), None);
    }

    #[test]
    fn the_end_of_what_is_said_is_kept() {
        let text = (0..100).map(|n| format!("{n}\n")).collect::<String>();
        let kept = last_lines(Some(text.as_bytes()));
        assert_eq!((kept.len(), kept.first().map(String::as_str)), (60, Some("40")));
        assert!(last_lines(None::<&[u8]>).is_empty());
    }
}
