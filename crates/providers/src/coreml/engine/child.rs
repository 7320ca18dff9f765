//! The worker's side: answers requests until the socket closes.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use galatea_apple::qos::Qos;
use galatea_tensor::{SharedBlock, Tensor};

use super::wire::{self, Answer, Ask, Failed, Hello, Nothing, Predict, Reply, Request, Room};
use super::{
    CoreMl, Done, Engine, EngineError, EngineErrorKind, EngineModel, Interpreter, Named, blocks,
};

/// Threads that start predictions; the engines have threads of their own to compute.
const THREADS: usize = 4;

/// Serves this machine's engine, Core ML on macOS and elsewhere the interpreter, to the process that has
/// started this one, until that process lets go of it.
///
/// # Errors
/// When standard input is no socket, or what comes from it is no message.
pub fn serve_here() -> io::Result<()> {
    if cfg!(target_os = "macos") { serve(Arc::new(CoreMl)) } else { serve(Arc::new(Interpreter)) }
}

/// Serves an engine to the process that has started this one, by the socket that is standard input.
///
/// # Errors
/// As [`serve_here`].
pub fn serve(engine: Arc<dyn Engine>) -> io::Result<()> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    answer(engine, UnixStream::from(socket))
}

struct Held {
    model: Arc<dyn EngineModel>,
    qos: Qos,
}

/// What the requests share.
struct Child {
    engine: Arc<dyn Engine>,
    models: Mutex<HashMap<u64, Arc<Held>>>,
    blocks: Mutex<HashMap<u64, Arc<SharedBlock>>>,
    /// Outputs that had no room, by prediction.
    kept: Mutex<BTreeMap<u64, Vec<Named>>>,
    socket: Mutex<UnixStream>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

/// The answer to a request, which is given once: where a thread ends before, as an error.
struct Answering {
    child: Arc<Child>,
    id: u64,
    open: bool,
}

impl Answering {
    fn give(mut self, result: Result<Reply, EngineError>) {
        self.open = false;
        self.child.say(self.id, result);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if self.open {
            let text = "the worker's thread ended without an answer";
            self.child.say(self.id, Err(EngineError::new(EngineErrorKind::Predict, text)));
        }
    }
}

pub(super) fn answer(engine: Arc<dyn Engine>, mut socket: UnixStream) -> io::Result<()> {
    let writer = Mutex::new(socket.try_clone()?);
    let (models, blocks, kept) = (Mutex::default(), Mutex::default(), Mutex::default());
    let name = engine.name().to_owned();
    let child = Arc::new(Child { engine, models, blocks, kept, socket: writer });
    child.say(0, Ok(Reply::Hello(Hello { version: wire::VERSION, engine: name })));
    let (jobs, queue) = mpsc::channel();
    let queue = Arc::new(Mutex::new(queue));
    for number in 0..THREADS {
        let (child, queue) = (Arc::clone(&child), Arc::clone(&queue));
        let name = format!("predict-{number}");
        thread::Builder::new().name(name).spawn(move || predict_all(&child, &queue))?;
    }
    let mut incoming = wire::Incoming::default();
    loop {
        while let Some(Request { id, ask }) = incoming.next()? {
            let answering = Answering { child: Arc::clone(&child), id, open: true };
            match ask {
                None => answering.give(Err(EngineError::argument("an unknown request"))),
                Some(Ask::Predict(predict)) => {
                    // The threads that take jobs live as long as the process.
                    drop(jobs.send((answering, predict)));
                }
                Some(ask @ (Ask::Compile(_) | Ask::Load(_) | Ask::Plan(_))) => {
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

fn predict_all(child: &Arc<Child>, queue: &Mutex<Receiver<(Answering, Predict)>>) {
    loop {
        let Ok((answering, predict)) = locked(queue).recv() else { return };
        // A panic answers by the drop of what was to answer, and the thread goes on.
        drop(catch_unwind(AssertUnwindSafe(|| child.predict(answering, predict))));
    }
}

impl Child {
    fn say(&self, id: u64, result: Result<Reply, EngineError>) {
        let reply = result.unwrap_or_else(|error| Reply::Failed(Failed::of(&error)));
        // Where the other side is gone, the reader of requests sees the end.
        drop(wire::write(&mut *locked(&self.socket), &Answer { id, reply: Some(reply) }));
    }

    fn model(&self, number: u64) -> Result<Arc<Held>, EngineError> {
        let none = || EngineError::argument(format!("there is no model {number}"));
        locked(&self.models).get(&number).cloned().ok_or_else(none)
    }

    /// What takes long.
    fn prepare(&self, ask: Ask) -> Result<Reply, EngineError> {
        match ask {
            Ask::Compile(ask) => {
                self.engine.compile(&path(ask.package), &path(ask.into))?;
                Ok(Reply::Done(Nothing {}))
            }
            Ask::Load(ask) => {
                let options = ask.options();
                let model = match ask.beside {
                    None => self.engine.load(&path(ask.path), &options)?,
                    Some(other) => self.model(other)?.model.beside(&options)?,
                };
                let loaded = wire::Loaded::of(model.interface());
                let held = Held { model, qos: options.qos };
                locked(&self.models).insert(ask.model, Arc::new(held));
                Ok(Reply::Loaded(loaded))
            }
            Ask::Plan(ask) => {
                let options = ask.options();
                let rows = self.engine.plan(&path(ask.path), &options)?;
                let operators = rows.into_iter().map(wire::Operator::of).collect();
                Ok(Reply::Planned(wire::Planned { operators }))
            }
            _ => Err(EngineError::argument("an unknown request")),
        }
    }

    /// What is over at once.
    fn keep(&self, ask: Ask) -> Result<Reply, EngineError> {
        match ask {
            Ask::Open(ask) => {
                let memory = |error: &dyn std::fmt::Display| {
                    EngineError::new(EngineErrorKind::Memory, format!("'{}': {error}", ask.name))
                };
                let bytes = usize::try_from(ask.bytes).map_err(|error| memory(&error))?;
                let block = SharedBlock::open(&ask.name, bytes, ask.number);
                let block = block.map_err(|error| memory(&error))?;
                locked(&self.blocks).insert(ask.number, Arc::new(block));
            }
            Ask::Close(number) => drop(locked(&self.blocks).remove(&number)),
            Ask::Unload(model) => drop(locked(&self.models).remove(&model)),
            Ask::NewState(model) => {
                return Ok(Reply::State(self.model(model)?.model.new_state()?));
            }
            Ask::DropState(ask) => self.model(ask.model)?.model.drop_state(ask.state),
            Ask::CopyState(ask) => self.model(ask.model)?.model.copy_state(ask.from, ask.to)?,
            Ask::Collect(ask) => {
                let none = || {
                    let number = ask.prediction;
                    EngineError::argument(format!("nothing is kept of prediction {number}"))
                };
                let outputs = locked(&self.kept).remove(&ask.prediction).ok_or_else(none)?;
                return self.put(ask.prediction, outputs, &ask.rooms);
            }
            _ => return Err(EngineError::argument("an unknown request")),
        }
        Ok(Reply::Done(Nothing {}))
    }

    fn predict(self: &Arc<Self>, answering: Answering, ask: Predict) {
        let found = self.model(ask.model).and_then(|held| Ok((held, self.inputs(&ask)?)));
        let (held, inputs) = match found {
            Ok(found) => found,
            Err(error) => return answering.give(Err(error)),
        };
        // Without such classes a thread runs as it does.
        let _ = held.qos.set();
        let (rooms, child) = (ask.rooms, Arc::clone(self));
        let done: Done = Box::new(move |result| {
            let reply = result.and_then(|outputs| child.put(answering.id, outputs, &rooms));
            answering.give(reply);
        });
        held.model.submit(inputs, ask.state, done);
    }

    fn inputs(&self, ask: &Predict) -> Result<Vec<Named>, EngineError> {
        let blocks = locked(&self.blocks);
        let input = |placed: &wire::Placed| {
            let none = || EngineError::argument(format!("block {} is not open", placed.block));
            let block = blocks.get(&placed.block).ok_or_else(none)?;
            Ok((placed.name.clone(), blocks::found(placed, block)?))
        };
        ask.inputs.iter().map(input).collect()
    }

    /// Puts the outputs of a prediction where there is room for them; where there is too little, keeps all
    /// of them and says how much it takes.
    fn put(
        &self,
        prediction: u64,
        outputs: Vec<Named>,
        rooms: &[Room],
    ) -> Result<Reply, EngineError> {
        use galatea_tensor::Allocation;
        let mut needs = Vec::with_capacity(outputs.len());
        let mut short = false;
        for (name, tensor) in &outputs {
            let bytes = blocks::payload_bytes(tensor)?;
            let room = rooms.iter().find(|room| room.name == *name);
            let room = room.and_then(|room| {
                locked(&self.blocks).get(&room.block).map(|block| block.len_bytes())
            });
            short |= room.is_none_or(|room| room < bytes);
            needs.push(wire::Need { name: name.clone(), bytes: bytes as u64 });
        }
        if short {
            locked(&self.kept).insert(prediction, outputs);
            return Ok(Reply::NeedsRoom(wire::Needs { outputs: needs }));
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
        Ok(Reply::Predicted(wire::Predicted { outputs }))
    }
}
