//! A worker's process and its messages.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use galatea_runtime::worker::ProcessGroup;
use rustix::process::{Pid, WaitId, WaitIdOptions};

use super::bls_socket::BlsSocket;
use super::locked;
use super::wire;

/// Interval of looks at whether a silent process still runs.
pub(super) const LOOK: Duration = Duration::from_millis(500);
/// Why nothing more comes from a worker.
#[derive(Debug)]
pub(super) enum WorkerLoss {
    /// It ended, or cannot be heard any more.
    Ended(String),
    /// It took too long.
    Late,
}

/// A message that was not sent as a whole.
#[derive(Debug)]
pub(super) struct UnsentMessage {
    /// Number of bytes that were sent.
    pub(super) bytes: usize,
    pub(super) error: io::Error,
}

impl From<wire::MalformedMessage> for WorkerLoss {
    fn from(error: wire::MalformedMessage) -> Self {
        Self::Ended(format!("it says what is no message: {}", error.0))
    }
}

/// A process, whoever reads its messages.
#[derive(Debug)]
pub(super) struct WorkerProcess {
    /// The model's name.
    pub(super) model: String,
    pub(super) group: ProcessGroup,
    /// Socket to the worker.
    pub(super) socket: UnixStream,
    /// Socket from the worker, one of its own: on Linux whoever waits for a message on a socket also wakes up each
    /// time that the other end has read one.
    pub(super) answers: UnixStream,
    pub(super) calls: BlsSocket,
    /// The last line that it wrote.
    pub(super) last: Arc<Mutex<String>>,
    /// How long its end may take.
    pub(super) timeout: Duration,
}

impl WorkerProcess {
    /// Sends a message.
    ///
    /// # Errors
    /// When the process has ended, or does not read.
    pub(super) fn send(&self, message: &[u8]) -> Result<(), UnsentMessage> {
        let mut rest = message;
        while !rest.is_empty() {
            let bytes = message.len() - rest.len();
            match (&self.socket).write(rest) {
                Ok(0) => {
                    return Err(UnsentMessage { bytes, error: io::ErrorKind::WriteZero.into() });
                }
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(UnsentMessage { bytes, error }),
            }
        }
        Ok(())
    }

    /// Where it calls the server.
    pub(super) fn calls(&self) -> &BlsSocket {
        &self.calls
    }

    fn has_ended(&self) -> bool {
        self.group.has_ended()
    }

    /// Whether a signal has stopped it for longer than its end may take. `since` is when that was first seen.
    fn is_stuck(&self, since: &mut Option<Instant>) -> bool {
        if !is_stopped(self.group.number()) {
            *since = None;
            return false;
        }
        since.get_or_insert_with(Instant::now).elapsed() > self.timeout
    }

    /// Waits until the process has ended, and ends those that it has left behind.
    pub(super) fn wait(&self) {
        self.group.wait();
    }

    /// Ends the process and those that it has started, without asking them.
    pub(super) fn kill(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
        let _ = self.answers.shutdown(Shutdown::Both);
        self.calls.close();
        self.group.kill();
    }

    /// Asks the process to end, waits, and ends it where that takes too long.
    pub(super) fn stop(&self) {
        let asked = self.send(&wire::end(wire::begin(wire::STOP)));
        if asked.is_ok() && !self.group.ends_within(self.timeout) {
            tracing::warn!(model = %self.model, "a worker did not finalize in time and was ended");
        }
        self.kill();
    }

    /// How it ended, as far as that is known, with its last words.
    pub(super) fn last_words(&self) -> String {
        // What it wrote is on its way through a pipe.
        std::thread::sleep(Duration::from_millis(100));
        let status = self.group.status();
        let status = status.map_or_else(String::new, |status| format!(" ({status})"));
        match locked(&self.last).as_str() {
            "" => status,
            last => format!("{status}: {last}"),
        }
    }
}

/// Reads the messages of a process.
#[derive(Debug)]
pub(super) struct MessageReader {
    pub(super) socket: UnixStream,
    pub(super) process: Arc<WorkerProcess>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl MessageReader {
    /// Reads from a socket of the process, with a buffer of so many bytes at first.
    pub(super) fn new(socket: UnixStream, process: &Arc<WorkerProcess>, room: usize) -> Self {
        let process = Arc::clone(process);
        Self { socket, process, bytes: vec![0; room], start: 0, end: 0 }
    }

    /// The next message, which comes before the deadline if there is one.
    ///
    /// # Errors
    /// When the process ends, does not answer in time or says what is no message.
    pub(super) fn next(&mut self, deadline: Option<Instant>) -> Result<&[u8], WorkerLoss> {
        self.fill(wire::LENGTH_BYTES, deadline)?;
        let head = self.bytes.get(self.start..self.end).unwrap_or_default();
        let len = wire::FieldReader::new(head).len()?;
        if len == 0 || len > wire::MAX_MESSAGE_BYTES {
            return Err(WorkerLoss::Ended(format!("it sends a message of {len} bytes")));
        }
        self.start += wire::LENGTH_BYTES;
        self.fill(len, deadline)?;
        let start = self.start;
        self.start += len;
        Ok(self.bytes.get(start..self.start).unwrap_or_default())
    }

    fn fill(&mut self, wanted: usize, deadline: Option<Instant>) -> Result<(), WorkerLoss> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        let mut stopped = None;
        while self.end - self.start < wanted {
            if self.start + wanted > self.bytes.len() {
                self.bytes.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
                let room = self.bytes.len().max(wanted.next_multiple_of(1 << 16));
                self.bytes.resize(room, 0);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(WorkerLoss::Late);
            }
            if let Some(left) = left.filter(|left| *left < LOOK) {
                let _ = self.socket.set_read_timeout(Some(left));
            }
            let room = self.bytes.get_mut(self.end..).unwrap_or_default();
            match self.socket.read(room) {
                Ok(0) => return Err(WorkerLoss::Ended("it ended".to_owned())),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => {
                    // Its children may hold the socket when it is gone.
                    if self.process.has_ended() {
                        return Err(WorkerLoss::Ended("it ended".to_owned()));
                    }
                    if self.process.is_stuck(&mut stopped) {
                        tracing::error!(model = %self.process.model, "a worker is stopped by a signal");
                        return Err(WorkerLoss::Late);
                    }
                }
                Err(error) => return Err(WorkerLoss::Ended(error.to_string())),
            }
        }
        Ok(())
    }
}

/// Whether a signal has stopped a process of ours, which nothing has told to go on since. A debugger's stops do not count.
fn is_stopped(process: u32) -> bool {
    let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return false };
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let look = || rustix::process::waitid(WaitId::Pid(pid), options);
    matches!(rustix::io::retry_on_intr(look), Ok(Some(_)))
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
