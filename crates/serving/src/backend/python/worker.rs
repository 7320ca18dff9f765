//! The start of a worker's process, and its output.

use std::fmt::Display;
use std::io::{self, IoSlice, PipeReader};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use galatea_runtime::worker::{ProcessGroup, relay_lines};
use galatea_tensor::SharedBlock;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use socket2::SockRef;

use super::blocks::{ServerBlocks, SharedFlagPage, WorkerBlocks};
use super::bls;
use super::bls_callee::BlsCallee;
use super::bls_socket::BlsSocket;
use super::folder;
use super::locked;
use super::own_files::WORKER;
use super::settings::WorkerSettings;
use super::stale_resources::ServerFolder;
use super::wire;
use super::worker_process::{LOOK, MessageReader, WorkerLoss, WorkerProcess};
use crate::error::ServingError;

/// Bytes that fit the socket.
const SOCKET_BYTES: usize = 192 << 10;

/// A worker that has started, with its model.
#[derive(Debug)]
pub(super) struct StartedWorker {
    pub(super) process: Arc<WorkerProcess>,
    pub(super) reader: MessageReader,
    pub(super) flags: Arc<SharedFlagPage>,
    /// Beginning of the names of its shared memory.
    pub(super) prefix: String,
}

/// Reasons for which a worker is started.
#[derive(Debug)]
pub(super) struct WorkerStart<'a> {
    /// The model's name.
    pub(super) model: &'a str,
    pub(super) settings: &'a WorkerSettings,
    /// The folder with the backend's own files.
    pub(super) home: &'a ServerFolder,
    /// The model's file.
    pub(super) path: &'a Path,
    /// Receiver of its calls.
    pub(super) callee: &'a Arc<BlsCallee>,
    /// The file that the model runs, where it is part of the program.
    pub(super) data: Option<&'a Path>,
}

impl WorkerStart<'_> {
    /// Starts a worker for an instance and lets it initialise its model, for which `begun` is told of the process.
    ///
    /// # Errors
    /// INTERNAL with what the model raised, or why there is no process.
    pub(super) fn instance(
        &self,
        args: &serde_json::Value,
        begun: &dyn Fn(&Arc<WorkerProcess>),
    ) -> Result<StartedWorker, ServingError> {
        let failed = |error: &dyn Display| self.failed(error);
        let prefix = self.prefix();
        let page = format!("{prefix}f");
        let flags = SharedFlagPage::create(&page).map_err(|error| failed(&error))?;
        let called = format!("{prefix}c");
        let called_page = format!("{prefix}cf");
        let memory = SharedFlagPage::create(&called_page).map_err(|error| {
            SharedBlock::unlink(&page);
            failed(&error)
        })?;
        let given = ServerBlocks::new(&memory, &called, self.settings.least);
        let theirs = WorkerBlocks::new(&memory, &called);
        let start = serde_json::json!({
            "path": self.path, "complete": false, "args": args, "flags": page, "prefix": prefix,
            "least": self.settings.least, "calls": { "flags": called_page, "prefix": called },
        });
        let running = self.begin(&start, Some((given, theirs)));
        let ready = running.and_then(|(process, mut reader)| {
            begun(&process);
            let kind = match reader.next(None) {
                Ok([wire::READY, ..]) => Ok(()),
                Ok([wire::FAILED, text @ ..]) => Err(self.raised(lossy(text))),
                Ok(_) => Err(failed(&"it says what nobody asked")),
                Err(lost) => Err(self.lost(&process, &lost)),
            };
            kind.inspect_err(|_| process.kill())?;
            Ok((process, reader))
        });
        SharedBlock::unlink(&page);
        SharedBlock::unlink(&called_page);
        let (process, reader) = ready?;
        Ok(StartedWorker { process, reader, flags, prefix })
    }

    /// Lets a worker complete a configuration, or describe the file that its model runs, and end.
    ///
    /// # Errors
    /// Fails like [`WorkerStart::instance`].
    pub(super) fn complete(&self, config: &str) -> Result<Option<serde_json::Value>, ServingError> {
        let mut start =
            serde_json::json!({ "path": self.path, "complete": true, "model_config": config });
        if let (Some(data), Some(start)) = (self.data, start.as_object_mut()) {
            start.insert("model_file".to_owned(), serde_json::json!(data));
        }
        let (process, mut reader) = self.begin(&start, None)?;
        let completed = match reader.next(None) {
            Ok([wire::CONFIG]) => Ok(None),
            Ok([wire::CONFIG, text @ ..]) => {
                serde_json::from_slice(text).map(Some).map_err(|error| self.failed(&error))
            }
            Ok([wire::FAILED, text @ ..]) => Err(self.raised(lossy(text))),
            Ok(_) => Err(self.failed(&"it says what nobody asked")),
            Err(lost) => Err(self.lost(&process, &lost)),
        };
        process.stop();
        completed
    }

    fn failed(&self, error: &dyn Display) -> ServingError {
        ServingError::internal(format!(
            "the worker of model '{}' does not start: {error}",
            self.model
        ))
    }

    fn lost(&self, process: &WorkerProcess, lost: &WorkerLoss) -> ServingError {
        match lost {
            WorkerLoss::Ended(why) => {
                let last = process.last_words();
                let advice = self.missing_module(&last).map(|text| format!("; {text}"));
                self.failed(&format!("{why}{last}{}", advice.unwrap_or_default()))
            }
            WorkerLoss::Late => {
                let seconds = self.settings.timeout.as_secs_f32();
                let last = process.last_words();
                self.failed(&format!("it says nothing for {seconds} seconds{last}"))
            }
        }
    }

    /// Error that the model raised, as it is. The log says which interpreter lacks a module that it wants.
    fn raised(&self, text: String) -> ServingError {
        if let Some(advice) = self.missing_module(&text) {
            tracing::warn!(model = %self.model, "{advice}");
        }
        ServingError::internal(text)
    }

    /// Says which interpreter lacks the module that an error speaks of, and what helps.
    fn missing_module(&self, error: &str) -> Option<String> {
        let (_, rest) = error.split_once("No module named '")?;
        let (module, _) = rest.split_once('\'')?;
        let interpreter = found_in_path(&self.settings.interpreter);
        let interpreter = interpreter.display();
        Some(format!(
            "the interpreter '{interpreter}' has no module '{module}': install it there ({interpreter} -m pip install \
             {module}), or name another interpreter by --backend-config=python,python-executable=PATH or the parameter \
             PYTHON_EXECUTABLE of the model"
        ))
    }

    /// A beginning of names that nobody else has.
    fn prefix(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        format!("{}{number:x}", self.home.names(&self.settings.prefix))
    }

    /// Starts a process, waits for its first word and says what it is for.
    fn begin(
        &self,
        start: &serde_json::Value,
        memory: Option<(ServerBlocks, WorkerBlocks)>,
    ) -> Result<(Arc<WorkerProcess>, MessageReader), ServingError> {
        let (given, inputs) = memory.unzip();
        let failed = |error: &dyn Display| self.failed(error);
        folder::restore(self.home).map_err(|error| failed(&error))?;
        let (ours, theirs) = UnixStream::pair().map_err(|error| failed(&error))?;
        let (answers, answering) = UnixStream::pair().map_err(|error| failed(&error))?;
        let (called, calling) = UnixStream::pair().map_err(|error| failed(&error))?;
        for socket in [&ours, &theirs, &answers, &answering, &called, &calling] {
            // As on Linux, where it is no less: some systems have room for a message or two only.
            let _ = SockRef::from(socket).set_send_buffer_size(SOCKET_BYTES);
            let _ = SockRef::from(socket).set_recv_buffer_size(SOCKET_BYTES);
        }
        let calls =
            BlsSocket::new(called, self.settings.timeout, given).map_err(|error| failed(&error))?;
        let (output, input) = io::pipe().map_err(|error| failed(&error))?;
        let mut command = Command::new(&self.settings.interpreter);
        command
            .arg("-u")
            .arg(self.home.path().join(WORKER))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            // Its socket for calls, in whose place the worker puts its errors' way at once.
            .stdout(Stdio::from(OwnedFd::from(calling)))
            .stderr(input);
        if let Some(environment) = &self.settings.environment {
            environment.apply(&mut command);
        }
        let group = ProcessGroup::spawn(&mut command).map_err(|error| {
            failed(&format!("'{}': {error}", self.settings.interpreter.display()))
        })?;
        // The command holds its ends of the pipe.
        drop(command);
        // Who is not read from has hung.
        let written = ours.set_write_timeout(Some(self.settings.timeout));
        let written = written.and_then(|()| hand_over(&ours, &answering));
        let last = Arc::default();
        let process = WorkerProcess {
            model: self.model.to_owned(),
            group,
            socket: ours,
            answers,
            calls,
            last: Arc::clone(&last),
            timeout: self.settings.timeout,
        };
        let process = Arc::new(process);
        let begun = written.map_err(|error| failed(&error));
        let begun = begun.and_then(|()| self.greet(&process, output, last, start, inputs));
        begun.inspect_err(|_| process.kill()).map(|reader| (process, reader))
    }

    fn greet(
        &self,
        process: &Arc<WorkerProcess>,
        output: PipeReader,
        last: Arc<Mutex<String>>,
        start: &serde_json::Value,
        theirs: Option<WorkerBlocks>,
    ) -> Result<MessageReader, ServingError> {
        let failed = |error: &dyn Display| self.failed(error);
        let model = self.model.to_owned();
        let pump = move || log(&model, output, &last);
        let pump = std::thread::Builder::new().name("worker-output".to_owned()).spawn(pump);
        pump.map_err(|error| failed(&error))?;
        bls::start(self.callee, process, theirs).map_err(|error| failed(&error))?;
        let socket = process.answers.try_clone().map_err(|error| failed(&error))?;
        socket.set_read_timeout(Some(LOOK)).map_err(|error| failed(&error))?;
        let mut reader = MessageReader::new(socket, process, 1 << 18);
        let deadline = Instant::now() + self.settings.timeout;
        let greeting = reader.next(Some(deadline)).map(<[u8]>::to_vec);
        let _ = reader.socket.set_read_timeout(Some(LOOK));
        match greeting.as_deref() {
            Ok([wire::HELLO, wire::VERSION]) => {}
            Ok(other) => {
                return Err(failed(&format!("{other:?} found as its first word")));
            }
            Err(lost) => return Err(self.lost(&reader.process, lost)),
        }
        let mut message = wire::begin(wire::START);
        message.raw(start.to_string().as_bytes());
        let sent = reader.process.send(&wire::end(message));
        sent.map_err(|unsent| failed(&unsent.error))?;
        Ok(reader)
    }
}

/// Gives whoever reads from a socket another one, with a byte that says nothing.
fn hand_over(to: &UnixStream, socket: &UnixStream) -> io::Result<()> {
    let sockets = [socket.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&sockets));
    sendmsg(to, &[IoSlice::new(b"\n")], &mut control, SendFlags::empty())?;
    Ok(())
}

/// File that a name of a program stands for, as far as it is found.
fn found_in_path(program: &Path) -> PathBuf {
    if program.components().count() > 1 {
        return program.to_owned();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&folders).map(|folder| folder.join(program));
    places.find(|place| place.is_file()).unwrap_or_else(|| program.to_owned())
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Logs what a worker writes, line by line, until it and its children have ended.
fn log(model: &str, output: PipeReader, last: &Mutex<String>) {
    relay_lines(output, |text| {
        // The mark of the model's logger, and the level behind it.
        let Some(marked) = text.strip_prefix('\x1e') else {
            if !text.is_empty() {
                tracing::info!(%model, "{text}");
                text.clone_into(&mut locked(last));
            }
            return;
        };
        let mut letters = marked.chars();
        let level = letters.next();
        let text = unescaped(letters.as_str());
        match level {
            Some('E') => tracing::error!(%model, "{text}"),
            Some('W') => tracing::warn!(%model, "{text}"),
            Some('V') => tracing::debug!(%model, "{text}"),
            _ => tracing::info!(%model, "{text}"),
        }
    });
}

/// A text as the model gave it, whose lines and backslashes are written as in a literal.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n') => plain.push('\n'),
                Some(other) => plain.push(other),
                None => {}
            },
            (letter, false) => plain.push(letter),
        }
    }
    plain
}
