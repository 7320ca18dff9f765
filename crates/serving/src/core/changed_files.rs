//! Models whose mapped files change while they serve: they are loaded again, and their requests wait for that.
//!
//! A backend sees before and after a run that a file of its model was written to, and gives the requests back. They
//! wait here while a thread loads the model again, as soon as nobody writes to its files any more. Where it cannot be
//! loaded, it leaves the service, and the thread tries again whenever its files change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::load::LoadError;
use super::load_record::LoadRecord;
use super::loaded::LoadedVersion;
use super::models::WantedBy;
use super::{ControlMode, Core};
use crate::error::ServingError;
use crate::payload::{ExecutionContext, HandedRequest};
use crate::repository::{FolderStamp, ModelId};
use crate::request::SinkAnswer;

/// The most requests of a model that wait until it is loaded again.
const MAX_WAITING: usize = 4096;
/// Time between two looks at the files of a model that cannot be loaded.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The longest wait for files to which somebody writes on and on.
const MAX_SETTLING: Duration = Duration::from_secs(20);

/// The longest wait of who asks for a checkpoint.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A request that waits, and the version that it asks for.
#[derive(Debug)]
struct WaitingRequest {
    version: String,
    handed: HandedRequest,
}

/// Models that are being loaded again.
#[derive(Debug, Default)]
pub(super) struct ChangedModels {
    /// Requests that wait, by model.
    waiting: Mutex<HashMap<ModelId, Vec<WaitingRequest>>>,
}

impl ChangedModels {
    fn lock(&self) -> MutexGuard<'_, HashMap<ModelId, Vec<WaitingRequest>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a model must be made anew, whatever its folder looks like.
    pub(super) fn contains(&self, id: &ModelId) -> bool {
        self.lock().contains_key(id)
    }
}

impl Core {
    /// Lets requests wait until the model of a version is loaded again, which begins with the first of them. Requests
    /// of a version that has left the service go to its successor at once.
    pub(super) fn load_changed(&self, version: &Arc<ExecutionContext>, handed: Vec<HandedRequest>) {
        let serving = {
            let models = self.models();
            let mut ready = models.all_ready();
            ready.find(|loaded| Arc::ptr_eq(&loaded.context, version)).map(|one| one.id.clone())
        };
        let Some(id) = serving else {
            let all = handed.into_iter();
            return all.for_each(|one| self.hand_to_successor(version.version.clone(), one));
        };
        let mut waiting = self.changed.lock();
        let first = !waiting.contains_key(&id);
        let list = waiting.entry(id.clone()).or_default();
        let room = MAX_WAITING.saturating_sub(list.len());
        let mut handed = handed.into_iter();
        let number = &version.version;
        list.extend(
            handed
                .by_ref()
                .take(room)
                .map(|handed| WaitingRequest { version: number.clone(), handed }),
        );
        drop(waiting);
        let text = format!("model '{id}' is being loaded again, and too many requests wait for it");
        handed.for_each(|one| refuse(one, ServingError::unavailable(text.clone())));
        if first {
            self.spawn_reload(id);
        }
    }

    /// Lets a version be loaded again whose files have changed, and waits until that has ended.
    pub(super) fn wait_for_reload(&self, loaded: &LoadedVersion) {
        self.load_changed(&loaded.context, Vec::new());
        let start = Instant::now();
        while self.changed.contains(&loaded.id) && start.elapsed() < MAX_WAIT {
            std::thread::sleep(LOOK_EVERY / 10);
        }
    }

    fn spawn_reload(&self, id: ModelId) {
        tracing::warn!(model = %id, "files of a model were changed while it served: it is loaded again");
        let core = Weak::clone(&self.this);
        let of_thread = id.clone();
        let reload = move || reload(&core, &of_thread);
        let spawned = std::thread::Builder::new().name("reload".to_owned()).spawn(reload);
        if let Err(error) = spawned {
            let text = format!("cannot start a thread that loads model '{id}' again: {error}");
            self.release_waiting(&id, Err(&ServingError::internal(text)));
        }
    }

    /// Hands the requests that wait for a model on, or answers them with an error.
    fn release_waiting(&self, id: &ModelId, result: Result<(), &ServingError>) {
        let waiting = self.changed.lock().remove(id).unwrap_or_default();
        for WaitingRequest { version, handed } in waiting {
            match result {
                Ok(()) => self.hand_to_successor(version, handed),
                Err(error) => refuse(handed, error.clone()),
            }
        }
    }

    /// Hands a request to what serves now under the name and version that it was made for.
    fn hand_to_successor(&self, version: String, handed: HandedRequest) {
        let HandedRequest { request, sink } = handed;
        if request.cancel.is_cancelled() {
            let error = ServingError::cancelled("Request was cancelled");
            return refuse(HandedRequest { request, sink }, error);
        }
        // The version that was asked for, or where that is gone the latest.
        let name = &request.model_name;
        let found = self.resolve(name, &version).or_else(|_| self.resolve(name, ""));
        let model = match found {
            Ok(model) => model,
            Err(error) => return refuse(HandedRequest { request, sink }, error),
        };
        let sink = Arc::new(Mutex::new(sink));
        let told = Arc::clone(&sink);
        let tell = move |answer: SinkAnswer| {
            (*told.lock().unwrap_or_else(PoisonError::into_inner))(answer);
        };
        if let Err(error) = model.infer_for_model(request, Box::new(tell)) {
            let answer = SinkAnswer { result: Err(error), is_final: true };
            (*sink.lock().unwrap_or_else(PoisonError::into_inner))(answer);
        }
    }

    /// Loads a model again whose files settled, and says how that ended. `Ok(false)` says that it is not wanted any
    /// more.
    fn load_settled(&self, id: &ModelId, record: &LoadRecord) -> Result<bool, ServingError> {
        let _turn = self.turns.take(id);
        if self.models().record(id).is_none() {
            return Ok(false);
        }
        match self.bring_up(id, record.source.clone(), WantedBy::Ensemble) {
            Ok(()) => Ok(true),
            Err(LoadError::Poll(error) | LoadError::Load(error)) => Err(error),
        }
    }
}

/// Answers a request with an error.
fn refuse(handed: HandedRequest, error: ServingError) {
    let HandedRequest { request, mut sink } = handed;
    sink(SinkAnswer { result: Err(error), is_final: true });
    drop(request);
}

/// Loads a model again, at first when its files have settled, and later whenever they have changed.
fn reload(core: &Weak<Core>, id: &ModelId) {
    let mut tried: Option<FolderStamp> = None;
    loop {
        // Nobody keeps the server for this.
        let Some(here) = core.upgrade() else { return };
        let Some(record) = here.models().record(id) else {
            let text = format!("model '{id}' was unloaded");
            return here.release_waiting(id, Err(&ServingError::unavailable(text)));
        };
        let dir = record.source.dir.clone();
        drop(here);
        let stamps = FolderStamp::settled(&dir, MAX_SETTLING);
        let Some(here) = core.upgrade() else { return };
        if tried.is_some() && tried == stamps {
            drop(here);
            std::thread::sleep(LOOK_EVERY);
            continue;
        }
        match here.load_settled(id, &record) {
            Ok(loaded) => {
                here.release_waiting(id, Ok(()));
                if loaded {
                    here.revive_ensembles_over(id);
                }
                return;
            }
            Err(error) => {
                tracing::error!(model = %id, reason = %error.message, "a model whose files were changed cannot be loaded");
                let text = format!("files of model '{id}' were changed: {}", error.message);
                here.retire(id, |_| false);
                here.write_models(|models| models.set_unusable(id, Some(text.clone())));
                here.release_waiting(id, Err(&ServingError::unavailable(text)));
                if matches!(here.options.control_mode, ControlMode::Poll { .. }) {
                    // The poller looks at the folder anyway.
                    return;
                }
            }
        }
        tried = stamps;
    }
}
