//! Checkpoints in memory: those that have requests stay, others make room where memory is limited.
//!
//! A version that serves has a [`ResidentCheckpoint`]. Whoever has a request asks it for the checkpoint, which is loaded where
//! it is not in memory; [`InUse`] keeps it there until the request ends. Requests that come meanwhile wait for the one
//! load.

mod ledger;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use galatea_tensor::{MappedFileSet, collect_mapped_files};

use crate::backend::CheckpointHandle;
use crate::error::ServingError;
use crate::generate::MemoryUse;
use ledger::{MemoryLedger, NoRoom, TenantId};

/// How long a load waits for requests of other models to end.
const PATIENCE: Duration = Duration::from_secs(2);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The memory that the checkpoints of a process share.
#[derive(Debug)]
pub struct ModelMemory {
    state: Mutex<ResidencyState>,
    /// Told when the last request of a model ends.
    idle: Condvar,
    /// Whoever loads under a limit, so that what a load needs is known before the next one.
    loading: Mutex<()>,
    limit: Option<u64>,
}

#[derive(Debug)]
struct ResidencyState {
    ledger: MemoryLedger,
    loaded: HashMap<TenantId, CheckpointHandle>,
}

impl ModelMemory {
    /// Memory of at most so many bytes, or without a limit.
    #[must_use]
    pub fn new(limit: Option<u64>) -> Arc<Self> {
        let ledger = MemoryLedger::new(limit.unwrap_or(u64::MAX));
        let state = Mutex::new(ResidencyState { ledger, loaded: HashMap::new() });
        Arc::new(Self { state, idle: Condvar::new(), loading: Mutex::new(()), limit })
    }

    /// Makes room for a model, and unloads others for it. This waits a little for requests that end just now.
    fn take_room(&self, id: TenantId, name: &str, bytes: u64) -> Result<(), ServingError> {
        let deadline = Instant::now() + PATIENCE;
        let mut state = lock(&self.state);
        let unloaded = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match state.ledger.take_room(id, bytes) {
                Ok(unloaded) => break unloaded,
                Err(NoRoom::Busy { .. }) if !left.is_zero() => {
                    let waited = self.idle.wait_timeout(state, left);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Err(why) => return Err(no_room(name, why)),
            }
        };
        let unloaded: Vec<CheckpointHandle> =
            unloaded.into_iter().filter_map(|other| state.loaded.remove(&other)).collect();
        drop(state);
        if !unloaded.is_empty() {
            tracing::info!(model = name, count = unloaded.len(), "unloads others to make room");
        }
        // Their engines end here.
        drop(unloaded);
        Ok(())
    }
}

fn no_room(name: &str, why: NoRoom) -> ServingError {
    ServingError::unavailable(match why {
        NoRoom::TooLarge { needed, limit } => format!(
            "model '{name}' needs {needed} bytes of memory, more than the limit for all language models, {limit}"
        ),
        NoRoom::Busy { needed, busy, limit } => format!(
            "model '{name}' needs {needed} bytes of memory, but models that answer requests now have {busy} of the \
             {limit} for all language models; it can be loaded when these have ended"
        ),
    })
}

/// A checkpoint as far as it is known while it is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointTraits {
    /// Whether it continues texts; else it makes vectors or scores of them.
    pub writes: bool,
    /// The most tokens of a prompt and its answer, or of a text.
    pub context: usize,
}

impl CheckpointTraits {
    fn of(checkpoint: &CheckpointHandle) -> Self {
        match checkpoint {
            CheckpointHandle::Language(model) => Self { writes: true, context: model.context() },
            CheckpointHandle::Encoder(engine) => {
                Self { writes: false, context: engine.model().encoder().context() }
            }
        }
    }
}

/// Loads a checkpoint, also again when it has left memory.
type CheckpointLoader = Box<dyn Fn() -> Result<CheckpointHandle, ServingError> + Send + Sync>;

/// How often files are read to which somebody writes meanwhile.
const MAX_ATTEMPTS: usize = 3;

/// The checkpoint of a version, in memory or not. When this is dropped the checkpoint leaves memory.
pub struct ResidentCheckpoint {
    residency: Arc<ModelMemory>,
    id: TenantId,
    name: String,
    /// Least bytes that it takes, as long as nobody knows more.
    file_bytes: u64,
    load: CheckpointLoader,
    /// Files that it was made of, which may be mapped.
    files: Mutex<MappedFileSet>,
    /// Whoever loads it.
    loading: Mutex<()>,
    traits: OnceLock<CheckpointTraits>,
}

impl ResidentCheckpoint {
    /// Loads a checkpoint whose files have so many bytes.
    ///
    /// # Errors
    /// When it cannot be loaded, or there is no room for it.
    pub(super) fn load(
        residency: &Arc<ModelMemory>,
        name: &str,
        file_bytes: u64,
        load: CheckpointLoader,
    ) -> Result<(Arc<Self>, CheckpointHandle), ServingError> {
        let id = lock(&residency.state).ledger.enter();
        let residency = Arc::clone(residency);
        let name = name.to_owned();
        let loading = Mutex::new(());
        let traits = OnceLock::new();
        let files = Mutex::default();
        let resident = Self { residency, id, name, file_bytes, load, files, loading, traits };
        let loaded = resident.bring_in()?;
        Ok((Arc::new(resident), loaded))
    }

    /// The checkpoint, which stays in memory as long as the second of the two lives. This waits until it is loaded.
    ///
    /// # Errors
    /// When it cannot be loaded, or there is no room for it.
    pub fn ask(&self) -> Result<(CheckpointHandle, InUse), ServingError> {
        let in_use = InUse::new(self);
        if let Some(found) = self.loaded() {
            return Ok((found, in_use));
        }
        // Those who want it too wait here, and find it.
        let _own = lock(&self.loading);
        if let Some(found) = self.loaded() {
            return Ok((found, in_use));
        }
        Ok((self.bring_in()?, in_use))
    }

    /// The checkpoint where it is in memory. It may leave it at any time.
    #[must_use]
    pub fn loaded(&self) -> Option<CheckpointHandle> {
        lock(&self.residency.state).loaded.get(&self.id).cloned()
    }

    /// Name of its model.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Facts about it.
    #[must_use]
    pub fn traits(&self) -> Option<CheckpointTraits> {
        self.traits.get().copied()
    }

    /// Bytes of memory that it takes now.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        lock(&self.residency.state).ledger.bytes(self.id)
    }

    /// Whether memory is limited, so that it may be out of it.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.residency.limit.is_some()
    }

    /// Loads the checkpoint where that has room.
    fn bring_in(&self) -> Result<CheckpointHandle, ServingError> {
        let _all = self.residency.limit.map(|_| lock(&self.residency.loading));
        let loaded = self.load_within_limit();
        if loaded.is_err() {
            lock(&self.residency.state).ledger.give_room_back(self.id);
        }
        loaded
    }

    fn load_within_limit(&self) -> Result<CheckpointHandle, ServingError> {
        self.residency.take_room(self.id, &self.name, self.file_bytes)?;
        let loaded = self.load_unwritten()?;
        // Now it is known.
        self.residency.take_room(self.id, &self.name, self.bytes_of(&loaded))?;
        self.traits.get_or_init(|| CheckpointTraits::of(&loaded));
        lock(&self.residency.state).loaded.insert(self.id, loaded.clone());
        if self.is_limited() {
            tracing::info!(model = self.name, bytes = self.memory_bytes(), "in memory");
        }
        Ok(loaded)
    }

    /// Loads it of files to which nobody writes meanwhile.
    fn load_unwritten(&self) -> Result<CheckpointHandle, ServingError> {
        let mut attempt = 1;
        loop {
            let (loaded, files) = collect_mapped_files(|| (self.load)());
            let unwritten = files.check_unwritten();
            match (loaded, unwritten) {
                (loaded, Ok(())) => {
                    *lock(&self.files) = files;
                    return loaded;
                }
                (Err(error), Err(_)) if attempt == MAX_ATTEMPTS => return Err(error),
                (Ok(_), Err(error)) if attempt == MAX_ATTEMPTS => {
                    return Err(ServingError::unavailable(error.to_string()));
                }
                _ => attempt += 1,
            }
        }
    }

    /// Whether files that it has mapped were written to, so that it must be loaded again.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        lock(&self.files).check().is_err()
    }

    fn bytes_of(&self, checkpoint: &CheckpointHandle) -> u64 {
        let known = match checkpoint {
            CheckpointHandle::Language(model) => model.memory_bytes(),
            CheckpointHandle::Encoder(_) => 0,
        };
        u64::try_from(known).unwrap_or(u64::MAX).max(self.file_bytes)
    }
}

impl Drop for ResidentCheckpoint {
    fn drop(&mut self) {
        let mut state = lock(&self.residency.state);
        state.ledger.leave(self.id);
        let loaded = state.loaded.remove(&self.id);
        drop(state);
        // Its engine ends here.
        drop(loaded);
    }
}

impl fmt::Debug for ResidentCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resident").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Keeps a checkpoint in memory for a request. It holds no model, so it may be dropped on the thread of its engine.
#[derive(Debug)]
pub struct InUse {
    residency: Arc<ModelMemory>,
    id: TenantId,
}

impl InUse {
    fn new(resident: &ResidentCheckpoint) -> Self {
        let residency = Arc::clone(&resident.residency);
        lock(&residency.state).ledger.begin(resident.id);
        Self { residency, id: resident.id }
    }
}

impl MemoryUse for InUse {}

impl Drop for InUse {
    fn drop(&mut self) {
        lock(&self.residency.state).ledger.end(self.id);
        self.residency.idle.notify_all();
    }
}
