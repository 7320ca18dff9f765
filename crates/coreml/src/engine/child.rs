//! The worker's side: answers requests until the socket closes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use galatea_apple::qos::ThreadQos;
use galatea_tensor::{OrderedMap, SharedBlock, Tensor};

use super::wire::{
    self, EmptyReply, FailedReply, OutputRoom, PredictCommand, WorkerAnswer, WorkerAsk,
    WorkerHello, WorkerReply, WorkerRequest,
};
use super::{
    CoreMl, CoreMlEngine, EngineError, EngineErrorKind, EngineModel, NamedTensor,
    PredictionCallback, ProgramInterpreter, blocks,
};

/// Threads that start predictions; the engines have threads of their own to compute.
const THREADS: usize = 4;

/// Serves this machine's engine, Core ML on macOS and elsewhere the interpreter, to the process that has
/// started this one, until that process lets go of it.
///
/// # Errors
/// Fails when standard input is no socket, or what comes from it is no message.
pub fn serve_here() -> io::Result<()> {
    if cfg!(any(target_os = "macos", apple_doubles)) {
        serve(Arc::new(CoreMl))
    } else {
        serve(Arc::new(ProgramInterpreter))
    }
}

/// Serves an engine to the process that has started this one, by the socket that is standard input.
///
/// # Errors
/// Fails like [`serve_here`].
pub fn serve(engine: Arc<dyn CoreMlEngine>) -> io::Result<()> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    answer(engine, UnixStream::from(socket))
}

struct HeldBlocks {
    model: Arc<dyn EngineModel>,
    qos: ThreadQos,
}

/// State that all requests share.
struct WorkerChild {
    engine: Arc<dyn CoreMlEngine>,
    models: Mutex<HashMap<u64, Arc<HeldBlocks>>>,
    blocks: Mutex<HashMap<u64, Arc<SharedBlock>>>,
    /// Outputs that had no room, by prediction.
    kept: Mutex<OrderedMap<u64, Vec<NamedTensor>>>,
    socket: Mutex<UnixStream>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

/// The answer to a request, which is given once: where a thread ends before, as an error.
struct PendingAnswer {
    child: Arc<WorkerChild>,
    id: u64,
    open: bool,
}

impl PendingAnswer {
    fn give(mut self, result: Result<WorkerReply, EngineError>) {
        self.open = false;
        self.child.say(self.id, result);
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        if self.open {
            let text = "the worker's thread ended without an answer";
            self.child.say(self.id, Err(EngineError::new(EngineErrorKind::Predict, text)));
        }
    }
}

pub(super) fn answer(engine: Arc<dyn CoreMlEngine>, mut socket: UnixStream) -> io::Result<()> {
    let writer = Mutex::new(socket.try_clone()?);
    let models = Mutex::default();
    let blocks = Mutex::default();
    let kept = Mutex::default();
    let name = engine.name().to_owned();
    let child = Arc::new(WorkerChild { engine, models, blocks, kept, socket: writer });
    child.say(0, Ok(WorkerReply::Hello(WorkerHello { version: wire::VERSION, engine: name })));
    let (jobs, queue) = mpsc::channel();
    let queue = Arc::new(Mutex::new(queue));
    for number in 0..THREADS {
        let child = Arc::clone(&child);
        let queue = Arc::clone(&queue);
        let name = format!("predict-{number}");
        thread::Builder::new().name(name).spawn(move || predict_all(&child, &queue))?;
    }
    let mut incoming = wire::IncomingWire::default();
    loop {
        while let Some(WorkerRequest { id, ask }) = incoming.next()? {
            let answering = PendingAnswer { child: Arc::clone(&child), id, open: true };
            match ask {
                None => answering.give(Err(EngineError::argument("an unknown request"))),
                Some(WorkerAsk::Predict(predict)) => {
                    // The threads that take jobs live as long as the process.
                    drop(jobs.send((answering, predict)));
                }
                Some(ask @ (WorkerAsk::Compile(_) | WorkerAsk::Load(_) | WorkerAsk::Plan(_))) => {
                    let work = move || {
                        let reply = answering.child.prepare(ask);
                        answering.give(reply);
                    };
                    thread::Builder::new().name("prepare".to_owned()).spawn(work)?;
                }
                Some(ask) => {
                    let reply = child.keep(ask);
                    answering.give(reply);
                }
            }
        }
        if incoming.fill(&mut socket)? == 0 {
            return Ok(());
        }
    }
}

fn predict_all(child: &Arc<WorkerChild>, queue: &Mutex<Receiver<(PendingAnswer, PredictCommand)>>) {
    loop {
        let Ok((answering, predict)) = locked(queue).recv() else { return };
        // A panic answers by the drop of what was to answer, and the thread goes on.
        drop(catch_unwind(AssertUnwindSafe(|| child.predict(answering, predict))));
    }
}

impl WorkerChild {
    fn say(&self, id: u64, result: Result<WorkerReply, EngineError>) {
        let reply = result.unwrap_or_else(|error| WorkerReply::Failed(FailedReply::of(&error)));
        // Where the other side is gone, the reader of requests sees the end.
        drop(wire::write(&mut *locked(&self.socket), &WorkerAnswer { id, reply: Some(reply) }));
    }

    fn model(&self, number: u64) -> Result<Arc<HeldBlocks>, EngineError> {
        let none = || EngineError::argument(format!("there is no model {number}"));
        locked(&self.models).get(&number).cloned().ok_or_else(none)
    }

    /// Answers a request that takes long.
    fn prepare(&self, ask: WorkerAsk) -> Result<WorkerReply, EngineError> {
        match ask {
            WorkerAsk::Compile(ask) => {
                self.engine.compile(&path(ask.package), &path(ask.into))?;
                Ok(WorkerReply::Done(EmptyReply {}))
            }
            WorkerAsk::Load(ask) => {
                let options = ask.options();
                let model = match ask.beside {
                    None => self.engine.load(&path(ask.path), &options)?,
                    Some(other) => self.model(other)?.model.beside(&options)?,
                };
                let loaded = wire::LoadedReply::of(model.interface());
                let held = HeldBlocks { model, qos: options.qos };
                locked(&self.models).insert(ask.model, Arc::new(held));
                Ok(WorkerReply::Loaded(loaded))
            }
            WorkerAsk::Plan(ask) => {
                let options = ask.options();
                let rows = self.engine.plan(&path(ask.path), &options)?;
                let operators = rows.into_iter().map(wire::OperatorMessage::of).collect();
                Ok(WorkerReply::Planned(wire::PlannedReply { operators }))
            }
            _ => Err(EngineError::argument("an unknown request")),
        }
    }

    /// Answers a request that is done at once.
    fn keep(&self, ask: WorkerAsk) -> Result<WorkerReply, EngineError> {
        match ask {
            WorkerAsk::Open(ask) => {
                let memory = |error: &dyn std::fmt::Display| {
                    EngineError::new(EngineErrorKind::Memory, format!("'{}': {error}", ask.name))
                };
                let bytes = usize::try_from(ask.bytes).map_err(|error| memory(&error))?;
                let block = SharedBlock::open(&ask.name, bytes, ask.number);
                let block = block.map_err(|error| memory(&error))?;
                locked(&self.blocks).insert(ask.number, Arc::new(block));
            }
            WorkerAsk::Close(number) => drop(locked(&self.blocks).remove(&number)),
            WorkerAsk::Unload(model) => drop(locked(&self.models).remove(&model)),
            WorkerAsk::NewState(model) => {
                return Ok(WorkerReply::State(self.model(model)?.model.new_state()?));
            }
            WorkerAsk::DropState(ask) => self.model(ask.model)?.model.drop_state(ask.state),
            WorkerAsk::CopyState(ask) => {
                self.model(ask.model)?.model.copy_state(ask.from, ask.to)?
            }
            WorkerAsk::Collect(ask) => {
                let none = || {
                    let number = ask.prediction;
                    EngineError::argument(format!("nothing is kept of prediction {number}"))
                };
                let outputs = locked(&self.kept).remove(&ask.prediction).ok_or_else(none)?;
                return self.put(ask.prediction, outputs, &ask.rooms);
            }
            _ => return Err(EngineError::argument("an unknown request")),
        }
        Ok(WorkerReply::Done(EmptyReply {}))
    }

    fn predict(self: &Arc<Self>, answering: PendingAnswer, ask: PredictCommand) {
        let found = self.model(ask.model).and_then(|held| Ok((held, self.inputs(&ask)?)));
        let (held, inputs) = match found {
            Ok(found) => found,
            Err(error) => return answering.give(Err(error)),
        };
        // Without such classes a thread runs as it does.
        let _ = held.qos.set();
        let rooms = ask.rooms;
        let child = Arc::clone(self);
        let done: PredictionCallback = Box::new(move |result| {
            let reply = result.and_then(|outputs| child.put(answering.id, outputs, &rooms));
            answering.give(reply);
        });
        held.model.submit(inputs, ask.state, done);
    }

    fn inputs(&self, ask: &PredictCommand) -> Result<Vec<NamedTensor>, EngineError> {
        let blocks = locked(&self.blocks);
        let input = |placed: &wire::PlacedTensor| {
            let none = || EngineError::argument(format!("block {} is not open", placed.block));
            let block = blocks.get(&placed.block).ok_or_else(none)?;
            Ok((placed.name.clone(), blocks::found(placed, block)?))
        };
        ask.inputs.iter().map(input).collect()
    }

    /// Puts the outputs of a prediction where there is room for them; where there is too little or somebody
    /// holds it, keeps all of them and says how much it takes.
    fn put(
        &self,
        prediction: u64,
        outputs: Vec<NamedTensor>,
        rooms: &[OutputRoom],
    ) -> Result<WorkerReply, EngineError> {
        use galatea_tensor::Allocation;
        let mut needs = Vec::with_capacity(outputs.len());
        let mut short = false;
        for (name, tensor) in &outputs {
            let bytes = blocks::payload_bytes(tensor)?;
            let room = rooms.iter().find(|room| room.name == *name);
            // An engine may hold the inputs of a prediction for a while after its end. The other side takes their
            // blocks for free then, but what is held is no room.
            let room = room.and_then(|room| {
                let mut blocks = locked(&self.blocks);
                let block = blocks.get_mut(&room.block).and_then(Arc::get_mut);
                block.map(|block| block.len_bytes())
            });
            short |= room.is_none_or(|room| room < bytes);
            needs.push(wire::OutputNeed { name: name.clone(), bytes: bytes as u64 });
        }
        if short {
            locked(&self.kept).insert(prediction, outputs);
            return Ok(WorkerReply::NeedsRoom(wire::OutputNeeds { outputs: needs }));
        }
        let put = |(name, tensor): &(String, Tensor)| {
            let room = rooms.iter().find(|room| room.name == *name);
            let number = room.map_or(0, |room| room.block);
            let none = || EngineError::argument(format!("block {number} is not there to write"));
            // Nobody else may find the block while it is written.
            let mut block = locked(&self.blocks).remove(&number).ok_or_else(none)?;
            let placed = match Arc::get_mut(&mut block) {
                Some(block) => blocks::put(name, tensor, block),
                None => Err(none()),
            };
            locked(&self.blocks).insert(number, block);
            placed
        };
        let outputs = outputs.iter().map(put).collect::<Result<_, _>>()?;
        Ok(WorkerReply::Predicted(wire::PredictedReply { outputs }))
    }
}
