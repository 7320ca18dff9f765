//! Processes of a selftest: one for each subject and unit, and one that removes the files of a run that is killed.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::line::{SelftestLine, SelftestVerdict, SubjectReport};
use super::task::SubjectTask;

/// Hidden command that tests one subject.
pub(crate) const SUBJECT: &str = "selftest-subject";
/// Hidden command that removes the files of a run once that has ended.
pub(crate) const SWEEPER: &str = "selftest-sweeper";

/// File of a task's folder that its process writes the result to.
const RESULT: &str = "result.json";
/// File of a task's folder with what its process complains of.
const COMPLAINTS: &str = "complaints.txt";
/// Beginning of the names of folders that a sweeper removes.
const PREFIX: &str = "galatea-selftest-";
/// Most bytes of a complaint that a report has.
const MAX_COMPLAINT: usize = 600;
/// Times that a sweeper tries to remove a folder, which processes may still write to.
const SWEEPS: usize = 100;
const BETWEEN_SWEEPS: Duration = Duration::from_millis(50);
const BETWEEN_LOOKS: Duration = Duration::from_millis(4);

/// A folder that goes away with its owner, also if that is killed: a process waits for its end.
#[derive(Debug)]
pub(super) struct ScratchFolder {
    path: PathBuf,
    sweeper: Option<Child>,
}

impl ScratchFolder {
    /// Makes the folder under a name that nobody can guess.
    pub(super) fn new(program: &Path) -> Result<Self, String> {
        let random = RandomState::new().build_hasher().finish();
        let path = std::env::temp_dir().join(format!("{PREFIX}{random:016x}"));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut command = Command::new(program);
        command.arg(SWEEPER).arg(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C in a terminal ends the processes of its group.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Ok(Self { path, sweeper: command.spawn().ok() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).ok();
        if let Some(mut sweeper) = self.sweeper.take() {
            drop(sweeper.stdin.take());
            sweeper.wait().ok();
        }
    }
}

/// Waits until the process at the other end of the standard input has ended.
fn wait_for_owner() {
    let mut buffer = [0; 64];
    while std::io::stdin().read(&mut buffer).is_ok_and(|count| count > 0) {}
}

/// Removes a folder of a run once the process at the other end of the standard input has ended.
pub(crate) fn sweep(folder: &Path) -> Result<(), String> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    if !name.starts_with(PREFIX) {
        return Err(format!("'{SWEEPER}' is started by galatea itself"));
    }
    wait_for_owner();
    for _ in 0..SWEEPS {
        fs::remove_dir_all(folder).ok();
        if !folder.exists() {
            break;
        }
        std::thread::sleep(BETWEEN_SWEEPS);
    }
    Ok(())
}

/// Ends this process when the run that it belongs to has ended.
pub(super) fn end_with_owner() {
    std::thread::spawn(|| {
        wait_for_owner();
        std::process::exit(1);
    });
}

/// Writes the result of this process's task, whole or not at all.
pub(super) fn write_result(folder: &Path, report: &SubjectReport) -> Result<(), String> {
    let text = serde_json::to_string(report).map_err(|error| error.to_string())?;
    let beside = folder.join("result.part");
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, folder.join(RESULT)));
    written.map_err(|error| format!("{}: {error}", folder.display()))
}

/// Tests a subject in a process of its own and waits for its end, for so long at most.
pub(super) fn run(program: &Path, task: &SubjectTask, limit: Duration) -> SelftestLine {
    let started = Instant::now();
    let report = tested(program, task, limit).unwrap_or_else(SubjectReport::failed);
    fs::remove_dir_all(&task.folder).ok();
    SelftestLine {
        subject: task.subject.clone(),
        unit: task.unit.clone(),
        report,
        seconds: started.elapsed().as_secs_f64(),
    }
}

fn tested(program: &Path, task: &SubjectTask, limit: Duration) -> Result<SubjectReport, String> {
    fs::create_dir_all(&task.folder).map_err(|error| error.to_string())?;
    let complaints = task.folder.join(COMPLAINTS);
    let errors = File::create(&complaints).map_err(|error| error.to_string())?;
    let text = serde_json::to_string(task).map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .arg(SUBJECT)
        .arg(text)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .map_err(|error| format!("no process was started: {error}"))?;
    let status = match ended(&mut child, limit) {
        Some(status) => status,
        None => {
            child.kill().ok();
            child.wait().ok();
            let reason = format!("did not end within {} s", limit.as_secs_f64());
            return Ok(told(SelftestVerdict::TimedOut, reason, &complaints));
        }
    };
    let result = fs::read(task.folder.join(RESULT)).ok();
    let result = result.and_then(|bytes| serde_json::from_slice::<SubjectReport>(&bytes).ok());
    match result {
        Some(report) if status.success() => Ok(report),
        Some(_) => {
            let reason = format!("{} after its result", end(status));
            Ok(told(SelftestVerdict::Crashed, reason, &complaints))
        }
        None => Ok(told(SelftestVerdict::Crashed, end(status), &complaints)),
    }
}

/// Waits for the end of a process, for so long at most.
fn ended(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let started = Instant::now();
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if started.elapsed() >= limit {
            return None;
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// Says how a process ended.
fn end(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("ended by signal {signal}{}", signal_name(signal));
    }
    format!("ended with {status}")
}

/// Names the signals that faults end with; their numbers are the same on Linux and macOS unless left out here.
#[cfg(unix)]
fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL)",
        5 => " (SIGTRAP)",
        6 => " (SIGABRT)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

/// Makes a report of an end without a result, with the last of what the process complained of.
fn told(outcome: SelftestVerdict, reason: String, complaints: &Path) -> SubjectReport {
    let text = fs::read(complaints).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let text = text.trim();
    let start = text.len().saturating_sub(MAX_COMPLAINT);
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let reason = match &text[start..] {
        "" => reason,
        last => format!("{reason}: {last}"),
    };
    SubjectReport { outcome, ..SubjectReport::failed(reason) }
}
