//! The thread that writes the log: whoever logs hands it a line and never waits for a disk, a pipe or a terminal.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use galatea_serving::text_beginning;

/// Lines that may wait to be written.
const MAX_LINES: usize = 4096;
/// Longest line, in bytes.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// Longest wait for the lines that are left when the program ends.
const PARTING: Duration = Duration::from_secs(2);

/// Stream that a line goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogStream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// Place of the log; a file has all lines.
#[derive(Debug, Clone, Default)]
pub(super) struct LogPlace {
    pub(super) file: Option<Arc<Mutex<File>>>,
}

impl LogPlace {
    fn write(&self, stream: LogStream, text: &str) -> io::Result<()> {
        let bytes = text.as_bytes();
        match (&self.file, stream) {
            (Some(file), _) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.write_all(bytes).and_then(|()| file.flush())
            }
            (None, LogStream::Error) => io::stderr().write_all(bytes),
            (None, LogStream::Output) => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
        }
    }

    /// Writes a line for which no thread waits. There is no place left to report that the log cannot be written.
    fn write_at_once(&self, stream: LogStream, text: &str) {
        self.write(stream, text).ok();
    }
}

enum LogTask {
    Line(LogStream, String),
    /// All lines before this are written once the sender is dropped.
    Flush(SyncSender<()>),
}

/// The way of lines to the log.
#[derive(Debug)]
pub(super) struct LogWriter {
    place: LogPlace,
    /// The thread's queue; none where lines are written at once.
    queue: Option<SyncSender<LogTask>>,
    lost: Arc<AtomicU64>,
}

impl LogWriter {
    /// Writes lines at once.
    pub(super) fn immediate() -> Self {
        Self { place: LogPlace::default(), queue: None, lost: Arc::default() }
    }

    /// Starts a thread that writes lines. Without one, where the system gives none, lines are written at once.
    pub(super) fn start(place: LogPlace) -> Self {
        let lost = Arc::<AtomicU64>::default();
        let (queue, tasks) = sync_channel(MAX_LINES);
        let to = place.clone();
        let counted = Arc::clone(&lost);
        let write = move |stream, text: &str| to.write(stream, text);
        let thread = std::thread::Builder::new().name("log-writer".to_owned());
        let started = thread.spawn(move || run(&tasks, &counted, write)).is_ok();
        Self { place, queue: started.then_some(queue), lost }
    }

    /// Hands over a line. Where too many wait, it is lost, which the log tells later.
    pub(super) fn put(&self, stream: LogStream, mut line: String) {
        if line.len() > MAX_LINE_BYTES {
            line.truncate(text_beginning(&line, MAX_LINE_BYTES).len());
            line.push_str("…\n");
        }
        let Some(queue) = &self.queue else { return self.place.write_at_once(stream, &line) };
        match queue.try_send(LogTask::Line(stream, line)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
            Err(TrySendError::Disconnected(LogTask::Line(stream, line))) => {
                self.place.write_at_once(stream, &line);
            }
            Err(TrySendError::Disconnected(LogTask::Flush(_))) => {}
        }
    }

    /// Waits until the lines before are written, but not for long.
    pub(super) fn flush(&self) {
        let Some(queue) = &self.queue else { return };
        let (done, written) = sync_channel(0);
        // A full queue is that of a reader who has stalled.
        if queue.try_send(LogTask::Flush(done)).is_ok() {
            // The thread drops its end, which ends the wait.
            written.recv_timeout(PARTING).ok();
        }
    }
}

/// Writes lines until all senders are gone. A file whose disk is full loses lines, which is told once there is room.
fn run(
    tasks: &Receiver<LogTask>,
    lost: &AtomicU64,
    write: impl Fn(LogStream, &str) -> io::Result<()>,
) {
    let mut unwritten = 0_u64;
    let mut reason = String::new();
    for task in tasks {
        match task {
            LogTask::Line(stream, line) => match write(stream, &line) {
                Ok(()) if unwritten > 0 => {
                    let text = format!("{unwritten} lines of the log are lost: {reason}\n");
                    unwritten = if write(LogStream::Error, &text).is_ok() { 0 } else { unwritten };
                }
                Ok(()) => {}
                Err(error) => {
                    unwritten += 1;
                    reason = error.to_string();
                }
            },
            LogTask::Flush(done) => drop(done),
        }
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let text = format!("{lost} lines of the log are lost: its reader is too slow\n");
            write(LogStream::Error, &text).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// A writer whose lines are taken one by one.
    fn stalled() -> (LogWriter, Receiver<String>, SyncSender<()>) {
        let (queue, tasks) = sync_channel(4);
        let (to, lines) = channel();
        let (go, gate) = sync_channel::<()>(0);
        let gate = Mutex::new(gate);
        let lost = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&lost);
        std::thread::spawn(move || {
            run(&tasks, &counted, |_, text| {
                gate.lock().unwrap().recv().ok();
                to.send(text.to_owned()).map_err(io::Error::other)
            });
        });
        (LogWriter { place: LogPlace::default(), queue: Some(queue), lost }, lines, go)
    }

    #[test]
    fn a_log_that_nobody_reads_holds_nobody_up_and_tells_what_it_lost() {
        let (writer, lines, go) = stalled();
        for number in 0..100 {
            writer.put(LogStream::Output, format!("{number}\n"));
        }
        writer.flush();
        drop(go);
        drop(writer);
        let lines: Vec<String> = lines.iter().collect();
        let whole = lines.iter().filter(|line| !line.contains("lost")).count();
        let lost: usize = lines
            .iter()
            .filter_map(|line| {
                line.strip_suffix(" lines of the log are lost: its reader is too slow\n")
            })
            .map(|count| count.parse::<usize>().unwrap())
            .sum();
        assert_eq!(whole + lost, 100, "{lines:?}");
        assert!((4..=6).contains(&whole), "{lines:?}");
        assert_eq!(lines.first().map(String::as_str), Some("0\n"));
    }

    #[test]
    fn lines_that_a_full_disk_takes_are_counted_and_told_when_there_is_room() {
        let (queue, tasks) = sync_channel(100);
        for number in 0..8 {
            queue.send(LogTask::Line(LogStream::Output, format!("{number}\n"))).unwrap();
        }
        drop(queue);
        let written = Mutex::new(Vec::new());
        run(&tasks, &AtomicU64::new(0), |_, text| {
            if ["2\n", "3\n", "4\n"].contains(&text) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            written.lock().unwrap().push(text.to_owned());
            Ok(())
        });
        let told = "3 lines of the log are lost: no storage space\n";
        assert_eq!(written.into_inner().unwrap(), ["0\n", "1\n", "5\n", told, "6\n", "7\n"]);
    }

    #[test]
    fn a_flush_waits_for_the_lines_before_and_long_lines_are_cut() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let place = LogPlace { file: Some(Arc::new(Mutex::new(file.reopen().unwrap()))) };
        let writer = LogWriter::start(place);
        writer.put(LogStream::Output, "é".repeat(MAX_LINE_BYTES));
        writer.put(LogStream::Error, "last\n".to_owned());
        writer.flush();
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(text.ends_with("é…\nlast\n"));
        assert!(text.len() <= MAX_LINE_BYTES + 10);
    }
}
