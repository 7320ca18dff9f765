//! Processes that end in every way that there is.

use std::io::{self, BufRead, BufReader, PipeReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

/// Longer than anything here takes where all is well.
const LONG: Duration = Duration::from_secs(60);

/// A shell that runs a script, and its output.
fn shell(script: &str) -> (ProcessGroup, BufReader<PipeReader>) {
    let (output, input) = io::pipe().unwrap();
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(script).stdin(Stdio::null()).stdout(input);
    let group = ProcessGroup::spawn(&mut command).unwrap();
    (group, BufReader::new(output))
}

fn line(output: &mut impl BufRead) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// Whether a process has not been reaped.
fn is_known(process: u32) -> bool {
    let pid = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    rustix::process::test_kill_process(pid).is_ok()
}

#[test]
fn a_worker_that_ends_by_itself_says_how() {
    let (group, _output) = shell("exit 3");
    assert!(group.ends_within(LONG));
    assert!(group.has_ended());
    assert_eq!(group.status().unwrap().code(), Some(3));
    assert_eq!(group.status().unwrap().to_string(), "exit status: 3");
    assert!(!is_known(group.number()));
}

#[test]
fn a_worker_that_a_signal_ends_says_which() {
    let (group, _output) = shell("kill -SEGV $$; sleep 600");
    group.wait();
    assert_eq!(group.status().unwrap().signal(), Some(11));
}

#[test]
fn a_worker_that_runs_has_no_status() {
    let (group, mut output) = shell("echo up; sleep 600");
    assert_eq!(line(&mut output), "up");
    assert!(!group.has_ended());
    assert!(group.status().is_none());
    group.kill();
    assert_eq!(group.status().unwrap().signal(), Some(9));
}

#[test]
fn a_worker_that_ignores_a_polite_end_is_killed() {
    let (group, mut output) = shell("trap '' TERM; echo up; while :; do sleep 0.01; done");
    assert_eq!(line(&mut output), "up");
    let leader = i32::try_from(group.number()).ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(leader.unwrap(), rustix::process::Signal::TERM).unwrap();
    assert!(!group.ends_within(Duration::from_millis(200)));
    group.kill();
    assert!(group.has_ended());
    assert!(!is_known(group.number()));
}

#[test]
fn processes_that_a_worker_has_started_end_with_it() {
    // The child holds the output, which ends only when both are gone.
    for script in ["sleep 600 & echo up; wait", "sleep 600 & echo up; exit 0"] {
        let (group, mut output) = shell(script);
        assert_eq!(line(&mut output), "up");
        if script.ends_with('0') {
            group.wait();
        }
        group.kill();
        let before = Instant::now();
        assert_eq!(line(&mut output), "");
        assert!(before.elapsed() < LONG);
    }
}

#[test]
fn many_threads_end_a_worker_and_one_reaps_it() {
    for _ in 0..20 {
        let (group, _output) = shell("sleep 600");
        thread::scope(|scope| {
            scope.spawn(|| group.wait());
            for _ in 0..3 {
                scope.spawn(|| group.kill());
                scope.spawn(|| group.status());
            }
        });
        assert_eq!(group.status().unwrap().signal(), Some(9));
        assert!(!is_known(group.number()));
    }
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    let error = ProcessGroup::spawn(&mut Command::new("/nowhere/at/all")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn lines_come_one_by_one_without_their_ends() {
    let (group, output) = shell("printf 'one\\r\\n\\ntwo \\377\\nrest'");
    let mut lines = Vec::new();
    relay_lines(output, |line| lines.push(line.to_owned()));
    assert_eq!(lines, ["one", "", "two \u{fffd}", "rest"]);
    group.kill();
}

#[test]
fn a_line_that_is_too_long_comes_in_pieces() {
    let mut lengths = Vec::new();
    relay_lines(vec![b'x'; (64 << 10) + 5].as_slice(), |line| lengths.push(line.len()));
    assert_eq!(lengths, [64 << 10, 5]);
}

#[test]
fn a_stray_process_is_ended_and_the_first_process_never() {
    let (group, mut output) = shell("echo up; sleep 600");
    assert_eq!(line(&mut output), "up");
    end_stray(group.number()).unwrap();
    group.wait();
    assert_eq!(group.status().unwrap().signal(), Some(9));
    for number in [0, 1, u32::MAX] {
        assert_eq!(end_stray(number).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
