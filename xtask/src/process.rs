//! Running other programs.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Runs the command; a failing exit status is an error that names the program and its arguments.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let shown = show(command);
    println!("$ {shown}");
    let status = command.status().map_err(|e| format!("cannot run `{shown}`: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}`: {status}")) }
}

/// Time that standard output may stay open behind a command: a program that it has left behind may hold it.
const LEFT_OPEN: Duration = Duration::from_secs(1);

/// Runs the command as `run` does, and hands each line of its standard output to `watch` too.
pub(crate) fn run_watched(
    command: &mut Command,
    mut watch: impl FnMut(&str),
) -> Result<(), String> {
    let shown = show(command);
    println!("$ {shown}");
    let cannot = |e: std::io::Error| format!("cannot run `{shown}`: {e}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(cannot)?;
    let (send, lines) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || send_lines(output, &send));
    }
    let mut status = None;
    loop {
        let wait = if status.is_some() { LEFT_OPEN } else { Duration::from_millis(100) };
        match lines.recv_timeout(wait) {
            Ok(line) => {
                println!("{line}");
                watch(&line);
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) if status.is_some() => break,
            Err(mpsc::RecvTimeoutError::Timeout) => status = child.try_wait().map_err(cannot)?,
        }
    }
    let status = child.wait().map_err(cannot)?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}`: {status}")) }
}

/// Sends each line of `output`, which need not be text, until it or the receiver ends.
fn send_lines(output: impl Read, send: &mpsc::Sender<String>) {
    for line in BufReader::new(output).split(b'\n') {
        let Ok(line) = line else { return };
        if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
            return;
        }
    }
}

/// Standard output of a command that must succeed.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let shown = show(command);
    let result = command.output().map_err(|e| format!("cannot run `{shown}`: {e}"))?;
    if !result.status.success() {
        return Err(format!("`{shown}`: {}", result.status));
    }
    String::from_utf8(result.stdout).map_err(|e| format!("`{shown}`: {e}"))
}

/// `cargo` of the toolchain that built xtask, in `folder`.
pub(crate) fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder);
    command
}

/// Text of a command, its program without the folder.
pub(crate) fn show(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = Path::new(program.as_ref()).file_name().map(|n| n.to_string_lossy().into_owned());
    let mut text = name.unwrap_or_else(|| program.into_owned());
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(script: &str) -> (Vec<String>, Result<(), String>) {
        let mut lines = Vec::new();
        let result = run_watched(Command::new("sh").args(["-c", script]), |line| {
            lines.push(line.to_owned());
        });
        (lines, result)
    }

    #[test]
    fn every_line_of_a_failing_command_is_seen() {
        let (lines, result) = lines_of("echo one; printf '\\377two\\nthree'; exit 3");
        assert_eq!(lines, ["one", "\u{fffd}two", "three"]);
        assert!(result.unwrap_err().contains("exit status: 3"));
    }

    #[test]
    fn a_program_left_behind_with_the_output_open_does_not_hold_the_run() {
        let (lines, result) = lines_of("echo one; sleep 9 & exit 0");
        assert_eq!(lines, ["one"]);
        result.unwrap();
    }
}
