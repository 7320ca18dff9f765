//! A worker's process and the requests that it has yet to answer.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use galatea_runtime::worker::ProcessGroup;
use galatea_tensor::{SharedBlock, Tensor};

use super::blocks::{LeasedBlock, WorkerBlockPool};
use super::wire::{self, WorkerAnswer, WorkerAsk, WorkerHello, WorkerReply, WorkerRequest};
use super::{EngineError, EngineErrorKind};

/// How a worker is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// How long a worker may take, and how often it may end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerLimits {
    /// From its start to its first word.
    pub start: Duration,
    /// A prediction, and whatever else is over at once.
    pub prediction: Duration,
    /// Compiling and loading: the Neural Engine's compiler takes minutes for large models.
    pub preparation: Duration,
    /// Number of workers that may end within `window` while a model predicted, before that model is
    /// refused.
    pub most_ends: usize,
    /// How long an end counts.
    pub window: Duration,
    /// From the second end within `window` on, the next worker starts so much later, doubled by each
    /// further one.
    pub rest: Duration,
}

impl Default for WorkerLimits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(20),
            prediction: Duration::from_secs(60),
            preparation: Duration::from_secs(3600),
            most_ends: 3,
            window: Duration::from_secs(600),
            rest: Duration::from_millis(250),
        }
    }
}

/// Told once what the worker has answered, by the number of the request.
pub(super) type AnswerCallback = Box<dyn FnOnce(u64, Result<WorkerReply, EngineError>) + Send>;

struct AnswerWaiter {
    deadline: Instant,
    answered: AnswerCallback,
}

#[derive(Default)]
struct WaitingAnswers {
    by_id: HashMap<u64, AnswerWaiter>,
    ended: Option<(EngineError, Instant)>,
}

struct ConnectionState {
    socket: Mutex<UnixStream>,
    process: ProcessGroup,
    waiting: Mutex<WaitingAnswers>,
    next: AtomicU64,
    pool: WorkerBlockPool,
}

/// A worker's process. It ends when this is dropped.
pub(super) struct WorkerConnection {
    shared: Arc<ConnectionState>,
    engine: String,
    number: u32,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn died(what: impl std::fmt::Display) -> EngineError {
    EngineError::new(EngineErrorKind::Died, format!("the worker for packages {what}"))
}

fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

impl WorkerConnection {
    /// Starts a process and waits for its first word.
    pub(super) fn start(
        command: &WorkerCommand,
        limits: &WorkerLimits,
    ) -> Result<Self, EngineError> {
        let failed = |error: &dyn std::fmt::Display| {
            died(format!("does not start: '{}': {error}", command.program.display()))
        };
        let (mut ours, theirs) = UnixStream::pair().map_err(|error| failed(&error))?;
        let mut started = Command::new(&command.program);
        started
            .args(&command.arguments)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            // What libraries print must not come among other output.
            .stdout(Stdio::null());
        let process = ProcessGroup::spawn(&mut started).map_err(|error| failed(&error))?;
        // The command holds the worker's end of the socket.
        drop(started);
        let number = process.number();
        let mut process = Some(process);
        let mut incoming = wire::IncomingWire::default();
        let greeted = greeted(&mut ours, &mut incoming, limits.start);
        let prepared = greeted.and_then(|hello| {
            // So often somebody looks whether an answer is overdue.
            let look =
                (limits.prediction / 8).clamp(Duration::from_millis(5), Duration::from_secs(1));
            let set = ours.set_read_timeout(Some(look));
            let set = set.and_then(|()| ours.set_write_timeout(Some(limits.prediction)));
            let socket = set.and_then(|()| ours.try_clone()).map_err(|error| error.to_string());
            Ok((hello, socket?))
        });
        let started = prepared.and_then(|(hello, socket)| {
            let process = process.take().ok_or("it was started once")?;
            let shared = Arc::new(ConnectionState {
                socket: Mutex::new(socket),
                process,
                waiting: Mutex::default(),
                next: AtomicU64::new(1),
                pool: WorkerBlockPool::default(),
            });
            let listening = Arc::clone(&shared);
            let listen = move || listen(&listening, ours, incoming);
            let spawned = thread::Builder::new().name("worker-answers".to_owned()).spawn(listen);
            match spawned {
                Ok(_) => Ok(Self { shared, engine: hello.engine, number }),
                Err(error) => {
                    shared.end(died(&error));
                    Err(error.to_string())
                }
            }
        });
        started.map_err(|error| {
            if let Some(process) = process {
                process.kill();
            }
            failed(&error)
        })
    }

    /// The engine that it has.
    pub(super) fn engine(&self) -> &str {
        &self.engine
    }

    /// The process's number.
    pub(super) fn process(&self) -> u32 {
        self.number
    }

    /// When it ended, where it has.
    pub(super) fn ended(&self) -> Option<Instant> {
        locked(&self.shared.waiting).ended.as_ref().map(|(_, when)| *when)
    }

    /// Asks, and tells `answered` the reply or why there is none; at once where the process is gone.
    pub(super) fn ask(&self, ask: WorkerAsk, limit: Duration, answered: AnswerCallback) {
        self.shared.ask(ask, limit, answered);
    }

    /// Asks and waits. Not for the thread that listens to this worker.
    pub(super) fn call(&self, ask: WorkerAsk, limit: Duration) -> Result<WorkerReply, EngineError> {
        let (sender, receiver) = mpsc::channel();
        // Nobody waits any more only when this thread is gone.
        self.ask(ask, limit, Box::new(move |_, reply| drop(sender.send(reply))));
        receiver.recv().unwrap_or_else(|_| Err(died("forgot a request")))
    }

    /// Ends the process; what it has yet to answer fails.
    pub(super) fn end(&self, error: EngineError) {
        self.shared.end(error);
    }

    /// A block that the worker has too, and nobody uses.
    pub(super) fn lease(self: &Arc<Self>, bytes: usize) -> Result<RequestBlock, EngineError> {
        use galatea_tensor::Allocation;
        let LeasedBlock { block, new, closed } = self.shared.pool.lease(bytes)?;
        let soon = Duration::from_secs(60);
        for number in closed {
            self.ask(WorkerAsk::Close(number), soon, Box::new(|_, _| ()));
        }
        if let Some(name) = new {
            let number = block.number();
            let bytes = block.len_bytes() as u64;
            let open = wire::BlockMessage { number, name: name.clone(), bytes };
            // Requests are read in their order, so what follows finds the block; without it, fails.
            let opened = Box::new(move |_, _| SharedBlock::unlink(&name));
            self.ask(WorkerAsk::Open(open), soon, opened);
        }
        Ok(RequestBlock { block, connection: Some(Arc::clone(self)) })
    }

    /// The block that a tensor lies in and the byte that it begins at, where the worker has that block.
    pub(super) fn holds(&self, tensor: &Tensor) -> Option<(RequestBlock, usize)> {
        let (block, offset) = self.shared.pool.holds(tensor)?;
        Some((RequestBlock { block, connection: None }, offset))
    }
}

impl Drop for WorkerConnection {
    fn drop(&mut self) {
        // The worker ends with its socket, and the listener sees to the rest.
        drop(locked(&self.shared.socket).shutdown(std::net::Shutdown::Both));
    }
}

/// A block that a request has. Afterwards it goes to the next one, once nobody reads what lies in it.
pub(super) struct RequestBlock {
    pub(super) block: Arc<SharedBlock>,
    /// Where it goes back to; nowhere, where it is only held.
    connection: Option<Arc<WorkerConnection>>,
}

impl Drop for RequestBlock {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            connection.shared.pool.keep(&self.block);
        }
    }
}

/// Waits for the first word.
fn greeted(
    socket: &mut UnixStream,
    incoming: &mut wire::IncomingWire,
    limit: Duration,
) -> Result<WorkerHello, String> {
    let deadline = Instant::now() + limit;
    loop {
        let answer: Option<WorkerAnswer> = incoming.next().map_err(|error| error.to_string())?;
        match answer.map(|answer| answer.reply) {
            Some(Some(WorkerReply::Hello(hello))) if hello.version == wire::VERSION => {
                return Ok(hello);
            }
            Some(Some(WorkerReply::Hello(hello))) => {
                let found = hello.version;
                let expected = wire::VERSION;
                return Err(format!("it speaks version {found}, expected {expected}"));
            }
            Some(_) => return Err("it begins with an answer that nobody asked for".to_owned()),
            None => {}
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(format!("it says nothing for {} seconds", limit.as_secs_f32()));
        }
        socket.set_read_timeout(Some(left)).map_err(|error| error.to_string())?;
        match incoming.fill(socket) {
            Ok(0) => return Err("it ended before its first word".to_owned()),
            Ok(_) => {}
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Hands answers to those who wait for them, until the worker ends or must be ended.
fn listen(shared: &ConnectionState, mut socket: UnixStream, mut incoming: wire::IncomingWire) {
    loop {
        match incoming.next::<WorkerAnswer>() {
            Ok(Some(answer)) => {
                shared.give(answer);
                continue;
            }
            Ok(None) => {}
            Err(error) => return shared.end(died(format!("says what is no answer: {error}"))),
        }
        match incoming.fill(&mut socket) {
            Ok(0) => return shared.end(died("ended")),
            Ok(_) => {}
            Err(error) if is_timeout(&error) => {}
            Err(error) => return shared.end(died(format!("cannot be heard: {error}"))),
        }
        if shared.is_overdue() {
            return shared.end(died("was ended: it did not answer in time"));
        }
    }
}

impl ConnectionState {
    fn ask(&self, ask: WorkerAsk, limit: Duration, answered: AnswerCallback) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut waiting = locked(&self.waiting);
        if let Some((error, _)) = &waiting.ended {
            let error = error.clone();
            drop(waiting);
            return answered(id, Err(error));
        }
        let deadline = Instant::now() + limit;
        waiting.by_id.insert(id, AnswerWaiter { deadline, answered });
        drop(waiting);
        let request = WorkerRequest { id, ask: Some(ask) };
        let written = wire::write(&mut *locked(&self.socket), &request);
        if let Err(error) = written {
            self.end(died(format!("takes no requests: {error}")));
        }
    }

    fn give(&self, answer: WorkerAnswer) {
        let Some(waiter) = locked(&self.waiting).by_id.remove(&answer.id) else {
            return self.end(died(format!("answers request {}, which waits for none", answer.id)));
        };
        let result = match answer.reply {
            Some(WorkerReply::Failed(failed)) => Err(failed.error()),
            Some(reply) => Ok(reply),
            None => Err(died("gives an empty answer")),
        };
        (waiter.answered)(answer.id, result);
    }

    fn is_overdue(&self) -> bool {
        let now = Instant::now();
        locked(&self.waiting).by_id.values().any(|waiter| waiter.deadline <= now)
    }

    /// Ends the process, once, and then tells those who wait.
    fn end(&self, error: EngineError) {
        {
            let mut waiting = locked(&self.waiting);
            if waiting.ended.is_some() {
                return;
            }
            waiting.ended = Some((error.clone(), Instant::now()));
        }
        // Whoever writes to it is told so.
        self.process.kill();
        let all: Vec<(u64, AnswerWaiter)> = locked(&self.waiting).by_id.drain().collect();
        let now = Instant::now();
        for (id, waiter) in all {
            let error = match waiter.deadline <= now {
                true => EngineError::new(EngineErrorKind::Hung, error.text.clone()),
                false => error.clone(),
            };
            (waiter.answered)(id, Err(error));
        }
    }
}
