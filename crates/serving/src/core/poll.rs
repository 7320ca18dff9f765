//! Poll mode: models that appear, change or go in the repositories are loaded, loaded anew or unloaded.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::load::LoadError;
use super::load_record::ModelSource;
use super::models::WantedBy;
use super::{ControlMode, Core};
use crate::error::ServingError;
use crate::repository::{self, FolderStamp, FoundModel, ModelId};

/// A folder that is gone for so short a time may be on its way to be replaced.
const SETTLING: Duration = Duration::from_millis(500);

/// Results of earlier looks.
#[derive(Default)]
struct PollMemory {
    /// Folders as they were when they were tried, so that a model that cannot be loaded is tried again only when it has
    /// changed.
    tried: HashMap<ModelId, FolderStamp>,
    /// When models were first seen without their folders.
    missing: HashMap<ModelId, Instant>,
}

impl PollMemory {
    /// Returns the models of these that were without folders for a while, and whether there are others.
    fn gone(&mut self, absent: Vec<ModelId>) -> (Vec<ModelId>, bool) {
        self.missing.retain(|id, _| absent.contains(id));
        let now = Instant::now();
        let all = absent.len();
        let mut gone = absent;
        gone.retain(|id| {
            let since = *self.missing.entry(id.clone()).or_insert(now);
            now.duration_since(since) >= SETTLING
        });
        let waits = gone.len() < all;
        (gone, waits)
    }
}

/// The thread that looks at the repositories.
#[derive(Debug)]
pub(super) struct RepositoryPoller {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl RepositoryPoller {
    /// Starts to look, if the control mode asks for it.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn start(core: &Arc<Core>) -> Result<(), ServingError> {
        let ControlMode::Poll { interval } = core.options.control_mode else { return Ok(()) };
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let watched = Arc::clone(&stop);
        let core_of_thread = Arc::downgrade(core);
        let thread = std::thread::Builder::new()
            .name("poll".to_owned())
            .spawn(move || run(&core_of_thread, &watched, interval))
            .map_err(|error| {
                ServingError::internal(format!("cannot start the polling thread: {error}"))
            })?;
        let poller = Self { stop, thread: Some(thread) };
        *core.poller.lock().unwrap_or_else(PoisonError::into_inner) = Some(poller);
        Ok(())
    }
}

impl Drop for RepositoryPoller {
    fn drop(&mut self) {
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_all();
        // The last owner of the core may be the thread itself, which then ends by itself.
        let thread = self.thread.take();
        if let Some(thread) = thread.filter(|one| one.thread().id() != std::thread::current().id())
            && thread.join().is_err()
        {
            tracing::error!("the polling thread panicked");
        }
    }
}

fn run(core: &Weak<Core>, stop: &(Mutex<bool>, Condvar), interval: Duration) {
    let mut memory = PollMemory::default();
    let mut wait = interval;
    loop {
        let stopped = stop.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = |stopped: &mut bool| !*stopped;
        let (stopped, _) =
            stop.1.wait_timeout_while(stopped, wait, ended).unwrap_or_else(PoisonError::into_inner);
        if *stopped {
            return;
        }
        drop(stopped);
        let Some(core) = core.upgrade() else { return };
        let unsettled = core.look(&mut memory);
        wait = if unsettled { SETTLING.min(interval) } else { interval };
    }
}

impl Core {
    /// Brings the models in line with the repositories. Tells whether some files were still being written, or some
    /// folders may be on their way.
    fn look(&self, memory: &mut PollMemory) -> bool {
        let found = match repository::scan(&self.repositories(), self.options.naming) {
            Ok(found) => found,
            Err(error) => {
                tracing::error!("failed to poll the model repositories: {error}");
                return false;
            }
        };
        let exists = |id: &ModelId| found.iter().any(|model| model.id == *id && !model.ambiguous);
        self.write_models(|models| {
            models.forget_unless(exists);
            found.iter().for_each(|model| models.know(&model.id));
        });
        let gone: Vec<ModelId> = self.models().attempted().filter(|id| !exists(id)).collect();
        let gone: Vec<ModelId> = gone.into_iter().filter(|id| self.models().is_named(id)).collect();
        let (gone, mut unsettled) = memory.gone(gone);
        for id in &gone {
            self.take_down(id);
            self.forget_failures(id);
            memory.tried.remove(id);
        }
        // Their ensembles may find a model of the same name in another namespace.
        gone.iter().for_each(|id| self.revive_ensembles_over(id));
        for model in found.iter().filter(|model| !model.ambiguous) {
            unsettled |= self.look_at(model, &mut memory.tried);
        }
        unsettled
    }

    /// Loads a model if it is new or has changed; `true` if its files are still being written.
    fn look_at(&self, model: &FoundModel, tried: &mut HashMap<ModelId, FolderStamp>) -> bool {
        let id = &model.id;
        let Ok(stamps) = FolderStamp::of(&model.dir) else { return false };
        let record = self.models().record(id);
        let known = record.map(|record| record.stamps.clone());
        if known.as_ref() == Some(&stamps) || tried.get(id) == Some(&stamps) {
            return false;
        }
        if !stamps.is_settled() {
            return true;
        }
        let turn = self.turns.take(id);
        let source = ModelSource { dir: model.dir.clone(), given_config: None, given_files: None };
        let result = self.bring_up(id, source, WantedBy::Name);
        drop(turn);
        match result {
            Ok(()) => self.revive_ensembles_over(id),
            Err(LoadError::Poll(error) | LoadError::Load(error)) => {
                tracing::error!(model = %id, reason = %error.message, "a changed model could not be loaded");
            }
        }
        // What changed during the load is not what was loaded: the next look finds it.
        tried.insert(id.clone(), stamps);
        false
    }
}
