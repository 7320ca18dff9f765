//! An engine in a process of its own, which is started anew when it ends.
//!
//! A prediction that its worker did not survive is tried once on the next one, unless it had a state: states
//! are lost with their process. A model during whose predictions several workers end is refused from then
//! on, and between such ends the next start waits longer and longer.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use galatea_runtime::worker::{
    OnDemandSupervisor, RestartCounter, RestartHistory, RestartPolicy, RestartRest,
    SharedWorkerKind, WorkerGeneration, WorkerKind,
};
use galatea_tensor::OrderedMap;

use super::connection::{
    AnswerCallback, RequestBlock, WorkerCommand, WorkerConnection, WorkerLimits,
};
use super::wire::{self, OutputRoom, WorkerAsk, WorkerReply};
use super::{
    CoreMlEngine, EngineError, EngineErrorKind, EngineInterface, EngineLoadOptions, EngineModel,
    EnginePlannedOperator, NamedTensor, PredictionCallback, StateNumber, blocks, check,
};

/// The most doublings of the rest between two starts.
const MAX_DOUBLINGS: u32 = 7;

/// An engine in another process.
#[derive(Debug)]
pub struct WorkerEngine {
    keeper: Arc<CoreMlSupervisor>,
}

/// Keeps a worker running.
struct CoreMlSupervisor {
    workers: OnDemandSupervisor<CoreMlWorkers>,
    limits: WorkerLimits,
}

/// The workers of an engine.
struct CoreMlWorkers {
    command: WorkerCommand,
    limits: WorkerLimits,
}

impl fmt::Debug for CoreMlSupervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper")
            .field("command", &self.workers.kind().command)
            .finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_gone(error: &EngineError) -> bool {
    error.kind == EngineErrorKind::Died
}

fn unexpected(connection: &WorkerConnection) -> EngineError {
    let text = "the worker for packages gives an answer to something else";
    let error = EngineError::new(EngineErrorKind::Died, text);
    connection.end(error.clone());
    error
}

impl WorkerLimits {
    /// When the next worker starts. One end may be bad luck; after further ones it waits.
    fn worker_restarts(&self) -> RestartPolicy {
        RestartPolicy {
            window: Some(self.window),
            free_ends: 1,
            first_rest: self.rest,
            max_rest: self.rest.saturating_mul(1 << MAX_DOUBLINGS),
            max_ends: None,
        }
    }

    /// How often workers may end while a model runs. The rests between them are the worker's.
    fn model_restarts(&self) -> RestartPolicy {
        RestartPolicy { max_ends: Some(self.most_ends), ..self.worker_restarts() }
    }
}

impl WorkerKind for CoreMlWorkers {
    type Process = WorkerConnection;
    type Worker = Arc<WorkerConnection>;
    type Error = EngineError;

    fn policy(&self) -> RestartPolicy {
        self.limits.worker_restarts()
    }

    // Those who ask wait for the start, which has a limit of its own.
    fn start(
        &self,
        _: &dyn Fn(&Arc<WorkerConnection>),
    ) -> Result<Arc<WorkerConnection>, EngineError> {
        let connection = WorkerConnection::start(&self.command, &self.limits)?;
        let process = connection.process();
        let engine = connection.engine();
        tracing::info!(process, engine, "started a worker for packages");
        Ok(Arc::new(connection))
    }

    fn restart_counter(&self) -> RestartCounter {
        Box::new(super::counts::restart)
    }
}

impl SharedWorkerKind for CoreMlWorkers {
    fn ended(worker: &WorkerConnection) -> Option<Instant> {
        worker.ended()
    }

    fn resting(&self, rest: &RestartRest) -> EngineError {
        let text = format!(
            "the worker for packages has ended {} times and starts again within {} seconds",
            rest.ends,
            rest.rest.as_secs_f32()
        );
        EngineError::new(EngineErrorKind::Resting, text)
    }

    fn refused(&self) -> EngineError {
        let text = "the worker for packages is not started again";
        EngineError::new(EngineErrorKind::Refused, text)
    }
}

impl CoreMlSupervisor {
    /// The worker that runs and its number among all; a new one where none runs.
    fn connection(&self) -> Result<WorkerGeneration<WorkerConnection>, EngineError> {
        self.workers.take()
    }

    /// Asks for what takes long, once more where the worker ends: that may have been another one's fault.
    fn prepare(&self, ask: &WorkerAsk) -> Result<WorkerReply, EngineError> {
        let limit = self.limits.preparation;
        let connection = self.connection()?.worker;
        match connection.call(ask.clone(), limit) {
            Err(error) if is_gone(&error) => {
                let connection = self.connection().map_err(|_| error)?.worker;
                connection.call(ask.clone(), limit)
            }
            result => result,
        }
    }
}

impl WorkerEngine {
    /// An engine whose worker starts when it is first needed.
    #[must_use]
    pub fn new(command: WorkerCommand, limits: WorkerLimits) -> Self {
        let workers = CoreMlWorkers { command, limits: limits.clone() };
        let workers = OnDemandSupervisor::new(workers);
        Self { keeper: Arc::new(CoreMlSupervisor { workers, limits }) }
    }

    /// The number of the process that runs; none where none does.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        self.keeper.workers.running().map(|worker| worker.process())
    }
}

fn bytes(path: &Path) -> Vec<u8> {
    // The worker may have another folder than this process.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.as_os_str().as_bytes().to_vec()
}

impl CoreMlEngine for WorkerEngine {
    fn name(&self) -> &'static str {
        "worker"
    }

    fn compile(&self, package: &Path, into: &Path) -> Result<(), EngineError> {
        let ask = wire::CompileCommand { package: bytes(package), into: bytes(into) };
        match self.keeper.prepare(&WorkerAsk::Compile(ask))? {
            WorkerReply::Done(_) => Ok(()),
            _ => Err(unexpected(&self.keeper.connection()?.worker)),
        }
    }

    fn load(
        &self,
        compiled: &Path,
        options: &EngineLoadOptions,
    ) -> Result<Arc<dyn EngineModel>, EngineError> {
        let ends = RestartHistory::new(self.keeper.limits.model_restarts());
        let model = SupervisedModel {
            keeper: Arc::clone(&self.keeper),
            path: compiled.to_owned(),
            options: options.clone(),
            number: SupervisedModel::next(),
            beside: None,
            loaded: Mutex::new(None),
            ends: Arc::new(Mutex::new(ends)),
            sizes: Mutex::default(),
            kept: Arc::default(),
        };
        WorkerModel::load(model)
    }

    fn plan(
        &self,
        compiled: &Path,
        options: &EngineLoadOptions,
    ) -> Result<Vec<EnginePlannedOperator>, EngineError> {
        let ask = wire::LoadCommand::of(0, bytes(compiled), options);
        match self.keeper.prepare(&WorkerAsk::Plan(ask))? {
            WorkerReply::Planned(found) => {
                Ok(found.operators.into_iter().map(wire::OperatorMessage::row).collect())
            }
            _ => Err(unexpected(&self.keeper.connection()?.worker)),
        }
    }
}

/// A model as one worker has loaded it.
#[derive(Clone)]
struct WorkerModelHandle {
    generation: u64,
    connection: Arc<WorkerConnection>,
    interface: EngineInterface,
}

struct SupervisedModel {
    keeper: Arc<CoreMlSupervisor>,
    path: PathBuf,
    options: EngineLoadOptions,
    number: u64,
    /// The function that was loaded first, where this is another one with its states.
    beside: Option<Arc<SupervisedModel>>,
    loaded: Mutex<Option<WorkerModelHandle>>,
    /// Ends of workers while one of the model's functions predicted or was loaded.
    ends: Arc<Mutex<RestartHistory>>,
    /// The most bytes that each output has had.
    sizes: Mutex<OrderedMap<String, usize>>,
    kept: Arc<WorkerStates>,
}

/// The states of a model's functions.
#[derive(Default)]
struct WorkerStates {
    /// The worker and its number of each.
    states: Mutex<OrderedMap<StateNumber, (u64, StateNumber)>>,
    last: AtomicU64,
}

impl SupervisedModel {
    fn next() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// The model in a worker that runs: loaded anew where that is another one than before.
    fn ready(&self) -> Result<WorkerModelHandle, EngineError> {
        if locked(&self.ends).is_refused() {
            let text = format!(
                "'{}' is not tried again: {} workers ended while it ran",
                self.path.display(),
                self.keeper.limits.most_ends
            );
            return Err(EngineError::new(EngineErrorKind::Refused, text));
        }
        let first = self.beside.as_ref().map(|first| first.ready()).transpose()?;
        let mut loaded = locked(&self.loaded);
        let WorkerGeneration { generation, worker: connection } = match first {
            // Both are in one worker.
            Some(first) => {
                WorkerGeneration { generation: first.generation, worker: first.connection }
            }
            None => self.keeper.connection()?,
        };
        if let Some(ready) = loaded.as_ref().filter(|ready| ready.generation == generation) {
            return Ok(ready.clone());
        }
        *loaded = None;
        let mut ask = wire::LoadCommand::of(self.number, bytes(&self.path), &self.options);
        ask.beside = self.beside.as_ref().map(|first| first.number);
        let reply = connection.call(WorkerAsk::Load(ask), self.keeper.limits.preparation);
        let interface = match reply {
            Ok(WorkerReply::Loaded(found)) => found.interface().map_err(|text| {
                EngineError::new(
                    EngineErrorKind::Load,
                    format!("'{}': {text}", self.path.display()),
                )
            })?,
            Ok(_) => return Err(unexpected(&connection)),
            Err(error) => {
                self.note(&error);
                return Err(error);
            }
        };
        let ready = WorkerModelHandle { generation, connection, interface };
        *loaded = Some(ready.clone());
        Ok(ready)
    }

    /// Counts the end of a worker; after too many of them the model is refused.
    fn note(&self, error: &EngineError) {
        if !matches!(error.kind, EngineErrorKind::Died | EngineErrorKind::Hung) {
            return;
        }
        if locked(&self.ends).note_end(Instant::now()) {
            tracing::warn!(model = %self.path.display(), "a model is left to others: {error}");
        }
    }

    /// The number that the worker knows a state by.
    fn state(&self, generation: u64, state: StateNumber) -> Result<StateNumber, EngineError> {
        match locked(&self.kept.states).get(&state) {
            Some((of, number)) if *of == generation => Ok(*number),
            Some(_) => {
                let text = format!("state {state} was lost with the worker that had it");
                Err(EngineError::new(EngineErrorKind::StateLost, text))
            }
            None => Err(EngineError::argument(format!("there is no state {state}"))),
        }
    }

    /// Blocks for the outputs, where their sizes are known.
    fn rooms(
        &self,
        ready: &WorkerModelHandle,
    ) -> Result<Vec<(OutputRoom, RequestBlock)>, EngineError> {
        let sizes = locked(&self.sizes).clone();
        let mut rooms = Vec::new();
        for feature in &ready.interface.outputs {
            let fixed = || {
                let elements = check::fixed_shape(feature)?.iter().product::<usize>();
                Some(elements * check::element(feature)?.size_bytes()?)
            };
            let Some(bytes) = sizes.get(&feature.name).copied().or_else(fixed) else { continue };
            let lease = ready.connection.lease(bytes)?;
            rooms.push((
                OutputRoom { name: feature.name.clone(), block: lease.block.number() },
                lease,
            ));
        }
        Ok(rooms)
    }
}

impl Drop for SupervisedModel {
    fn drop(&mut self) {
        if let Some(ready) = locked(&self.loaded).take() {
            let limit = self.keeper.limits.prediction;
            ready.connection.ask(WorkerAsk::Unload(self.number), limit, Box::new(|_, _| ()));
        }
    }
}

/// A model in a worker.
struct WorkerModel {
    model: Arc<SupervisedModel>,
    interface: EngineInterface,
}

impl WorkerModel {
    fn load(model: SupervisedModel) -> Result<Arc<dyn EngineModel>, EngineError> {
        let model = Arc::new(model);
        let loaded = match model.ready() {
            Err(error) if is_gone(&error) => model.ready().map_err(|_| error)?,
            result => result?,
        };
        Ok(Arc::new(Self { interface: loaded.interface, model }))
    }
}

impl fmt::Debug for WorkerModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerModel").field("path", &self.model.path).finish_non_exhaustive()
    }
}

/// A prediction on its way.
struct PredictionAttempt {
    model: Arc<SupervisedModel>,
    inputs: Vec<NamedTensor>,
    state: Option<StateNumber>,
    /// True if a worker has ended during it already.
    again: bool,
    done: PredictionCallback,
}

/// Shared memory of a prediction until it is answered: it is not written to before.
struct LentBlocks {
    ready: WorkerModelHandle,
    leases: Vec<RequestBlock>,
}

/// Offers of room for the outputs of a prediction, of which each may meet a block that the engine still holds.
const MAX_COLLECTS: usize = 64;

impl PredictionAttempt {
    fn start(self) {
        let prepared = self.model.ready().and_then(|ready| self.placed(ready));
        let (ask, lent) = match prepared {
            Ok(prepared) => prepared,
            Err(error) if is_gone(&error) && !self.again => {
                return Self { again: true, ..self }.start();
            }
            Err(error) => return (self.done)(Err(error)),
        };
        let connection = Arc::clone(&lent.ready.connection);
        let limit = self.model.keeper.limits.prediction;
        let answered = Box::new(move |id, reply| self.answered(lent, id, reply));
        connection.ask(WorkerAsk::Predict(ask), limit, answered);
    }

    /// Puts the inputs where the worker finds them.
    fn placed(
        &self,
        ready: WorkerModelHandle,
    ) -> Result<(wire::PredictCommand, LentBlocks), EngineError> {
        let state =
            self.state.map(|state| self.model.state(ready.generation, state)).transpose()?;
        let connection = &ready.connection;
        let mut inputs = Vec::new();
        let mut leases = Vec::new();
        for (name, tensor) in &self.inputs {
            // What the worker gave before lies there already.
            if let Some((lease, offset)) = connection.holds(tensor) {
                let at = (lease.block.number(), offset, tensor.size_bytes());
                inputs.push(blocks::placed(name, tensor, at));
                leases.push(lease);
                continue;
            }
            let mut lease = connection.lease(blocks::payload_bytes(tensor)?)?;
            let taken = || EngineError::new(EngineErrorKind::Memory, "a block is used twice");
            let block = Arc::get_mut(&mut lease.block).ok_or_else(taken)?;
            inputs.push(blocks::put(name, tensor, block)?);
            leases.push(lease);
        }
        let (rooms, given): (Vec<_>, Vec<_>) = self.model.rooms(&ready)?.into_iter().unzip();
        leases.extend(given);
        let ask = wire::PredictCommand { model: self.model.number, state, inputs, rooms };
        Ok((ask, LentBlocks { ready, leases }))
    }

    fn answered(self, lent: LentBlocks, id: u64, reply: Result<WorkerReply, EngineError>) {
        match reply {
            Ok(WorkerReply::Predicted(found)) => {
                let outputs = found.outputs.iter().map(|placed| lent.output(placed)).collect();
                (self.done)(outputs);
            }
            Ok(WorkerReply::NeedsRoom(needs)) => self.collect(lent, id, &needs, 1),
            Ok(_) => (self.done)(Err(unexpected(&lent.ready.connection))),
            Err(error) => {
                self.model.note(&error);
                if is_gone(&error) && self.state.is_none() && !self.again {
                    drop(lent);
                    return Self { again: true, ..self }.start();
                }
                (self.done)(Err(error));
            }
        }
    }

    /// Asks for outputs that had no room, and remembers how much they take. Blocks that were offered before stay
    /// lent, so that others are offered now.
    fn collect(
        self,
        mut lent: LentBlocks,
        prediction: u64,
        needs: &wire::OutputNeeds,
        attempt: usize,
    ) {
        let mut rooms = Vec::with_capacity(needs.outputs.len());
        for need in &needs.outputs {
            let bytes = usize::try_from(need.bytes).unwrap_or(usize::MAX);
            match lent.ready.connection.lease(bytes) {
                Ok(lease) => {
                    rooms.push(OutputRoom { name: need.name.clone(), block: lease.block.number() });
                    lent.leases.push(lease);
                }
                Err(error) => return (self.done)(Err(error)),
            }
            let mut sizes = locked(&self.model.sizes);
            let size = sizes.entry(need.name.clone()).or_default();
            *size = bytes.max(*size);
        }
        let connection = Arc::clone(&lent.ready.connection);
        let limit = self.model.keeper.limits.prediction;
        let answered: AnswerCallback = Box::new(move |id, reply| match reply {
            Ok(WorkerReply::NeedsRoom(_)) if attempt == MAX_COLLECTS => {
                (self.done)(Err(unexpected(&lent.ready.connection)))
            }
            Ok(WorkerReply::NeedsRoom(needs)) => {
                self.collect(lent, prediction, &needs, attempt + 1);
            }
            reply => self.answered(lent, id, reply),
        });
        connection.ask(
            WorkerAsk::Collect(wire::CollectCommand { prediction, rooms }),
            limit,
            answered,
        );
    }
}

impl LentBlocks {
    fn output(&self, placed: &wire::PlacedTensor) -> Result<NamedTensor, EngineError> {
        let lease = self.leases.iter().find(|lease| lease.block.number() == placed.block);
        let Some(lease) = lease else { return Err(unexpected(&self.ready.connection)) };
        Ok((placed.name.clone(), blocks::found(placed, &lease.block)?))
    }
}

impl EngineModel for WorkerModel {
    fn interface(&self) -> &EngineInterface {
        &self.interface
    }

    fn submit(
        &self,
        inputs: Vec<NamedTensor>,
        state: Option<StateNumber>,
        done: PredictionCallback,
    ) {
        let checked = check::state(&self.interface, state);
        if let Err(error) = checked.and_then(|()| check::inputs(&self.interface, inputs.clone())) {
            return done(Err(error));
        }
        PredictionAttempt { model: Arc::clone(&self.model), inputs, state, again: false, done }
            .start();
    }

    fn new_state(&self) -> Result<StateNumber, EngineError> {
        let ready = self.model.ready()?;
        let limit = self.model.keeper.limits.prediction;
        match ready.connection.call(WorkerAsk::NewState(self.model.number), limit)? {
            WorkerReply::State(number) => {
                let own = self.model.kept.last.fetch_add(1, Ordering::Relaxed) + 1;
                locked(&self.model.kept.states).insert(own, (ready.generation, number));
                Ok(own)
            }
            _ => Err(unexpected(&ready.connection)),
        }
    }

    fn drop_state(&self, state: StateNumber) {
        let removed = locked(&self.model.kept.states).remove(&state);
        let Some((generation, state)) = removed else { return };
        let loaded = locked(&self.model.loaded).clone();
        if let Some(ready) = loaded.filter(|ready| ready.generation == generation) {
            let ask = WorkerAsk::DropState(wire::StateOf { model: self.model.number, state });
            let limit = self.model.keeper.limits.prediction;
            ready.connection.ask(ask, limit, Box::new(|_, _| ()));
        }
    }

    fn copy_state(&self, from: StateNumber, to: StateNumber) -> Result<(), EngineError> {
        let ready = self.model.ready()?;
        let of = |state| self.model.state(ready.generation, state);
        let from = of(from)?;
        let to = of(to)?;
        let ask = WorkerAsk::CopyState(wire::CopyState { model: self.model.number, from, to });
        match ready.connection.call(ask, self.model.keeper.limits.prediction)? {
            WorkerReply::Done(_) => Ok(()),
            _ => Err(unexpected(&ready.connection)),
        }
    }

    fn beside(&self, options: &EngineLoadOptions) -> Result<Arc<dyn EngineModel>, EngineError> {
        let own = &self.model;
        Self::load(SupervisedModel {
            keeper: Arc::clone(&own.keeper),
            path: own.path.clone(),
            options: options.clone(),
            number: SupervisedModel::next(),
            beside: Some(Arc::clone(own.beside.as_ref().unwrap_or(own))),
            loaded: Mutex::new(None),
            ends: Arc::clone(&own.ends),
            sizes: Mutex::default(),
            kept: Arc::clone(&own.kept),
        })
    }
}
