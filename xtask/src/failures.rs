//! Failures that a test program printed, kept for the end of a run: the tail of a log is what people see first.

use std::collections::VecDeque;

/// Lines that are kept of one program.
const KEPT: usize = 40;

/// Bytes of a line that are kept.
const LINE: usize = 400;

/// The part of a test program's output that says what failed.
#[derive(Debug, Default)]
pub(crate) struct FailureReport {
    /// Lines behind the first `failures:`.
    failures: Vec<String>,
    /// Whether that part has begun.
    begun: bool,
    /// The newest lines, for programs that end without saying what failed.
    newest: VecDeque<String>,
}

impl FailureReport {
    /// Takes the next line of output.
    pub(crate) fn take_line(&mut self, line: &str) {
        let line = cut(line);
        if line == "failures:" {
            self.begun = true;
        } else if line.starts_with("test result:") {
            self.begun = false;
        } else if self.begun && !line.trim().is_empty() {
            // Frames of a stack say little more than the line of the panic.
            if self.failures.len() < KEPT && !is_frame(line) {
                self.failures.push(line.to_owned());
            }
            return;
        }
        if self.newest.len() == KEPT / 4 {
            self.newest.pop_front();
        }
        self.newest.push_back(line.to_owned());
    }

    /// Returns what failed; the newest lines where the program has not said.
    pub(crate) fn text(&self) -> String {
        if self.failures.is_empty() {
            self.newest.iter().map(|line| format!("    {line}\n")).collect()
        } else {
            self.failures.iter().map(|line| format!("    {line}\n")).collect()
        }
    }
}

/// Returns the beginning of a line, at a character's boundary.
fn cut(line: &str) -> &str {
    let mut end = line.len().min(LINE);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

/// Returns whether a line is a frame of a stack: `12: core::panicking::panic_fmt`, `at ./src/main.rs:1:2`.
fn is_frame(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.split_once(": ").is_some_and(|(n, _)| n.parse::<u32>().is_ok());
    number || line.starts_with("at ") || line == "stack backtrace:"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(output: &str) -> String {
        let mut report = FailureReport::default();
        output.lines().for_each(|line| report.take_line(line));
        report.text()
    }

    #[test]
    fn failed_tests_are_kept_with_their_reasons_and_without_frames() {
        let output = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\n\
                      thread 'b' panicked at src/b.rs:1:2:\nleft is 1\nstack backtrace:\n   0: rust_begin\n\
                      \x20            at ./src/b.rs\n\nfailures:\n    b\n\ntest result: FAILED. 1 passed\n";
        let text = report(output);
        assert!(text.contains("left is 1") && text.contains("src/b.rs:1:2"), "{text}");
        assert!(!text.contains("rust_begin") && !text.contains("at ./src"), "{text}");
        assert!(!text.contains("test a"), "{text}");
    }

    #[test]
    fn a_program_that_dies_leaves_its_newest_lines() {
        let output: String = (0..100).map(|n| format!("test t{n} ... ok\n")).collect();
        let text = report(&output);
        assert!(text.contains("t99") && !text.contains("t80 "), "{text}");
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let line = "é".repeat(1000);
        assert!(report(&line).chars().count() < 1000);
    }
}
