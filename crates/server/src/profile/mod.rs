//! The profile of `--metal-profile`: what GPUs, the host, engines and requests did when, as a file for
//! `chrome://tracing` and Perfetto.

mod chrome;
mod events;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use galatea_llm::observe::{Observer, RequestRecord, StepRecord};
use galatea_serving::trace::{Entry, TraceSink};

use crate::gpus;
use chrome::ChromeFile;
use events::Events;

/// Runs and requests that may wait for the disk; those beyond are left out and counted.
const QUEUE: usize = 512;
/// How long the file may lag behind.
const LAG: Duration = Duration::from_millis(500);

/// Something for the file.
enum Item {
    #[cfg(any(target_os = "macos", feature = "gpu"))]
    Run(Box<galatea_gpu::RunRecord>, Host),
    Request(Vec<Entry>),
    /// A step of a model's engine, on its thread.
    Step(Arc<str>, StepRecord, Host),
    /// A request that a model's engine has done with.
    Generation(Arc<str>, Box<RequestRecord>),
}

/// The thread that waited for a run, or that of an engine.
#[derive(Debug, Clone)]
struct Host {
    id: std::thread::ThreadId,
    name: String,
}

impl Host {
    /// The thread that asks.
    fn current() -> Self {
        let thread = std::thread::current();
        Self { id: thread.id(), name: thread.name().unwrap_or("thread").to_owned() }
    }
}

/// Writes what the engine of a model does to a profile.
struct OfModel {
    profile: Arc<Profile>,
    model: Arc<str>,
}

impl Observer for OfModel {
    fn stepped(&self, step: StepRecord) {
        self.profile.give(Item::Step(Arc::clone(&self.model), step, Host::current()));
    }

    fn ended(&self, request: RequestRecord) {
        self.profile.give(Item::Generation(Arc::clone(&self.model), Box::new(request)));
    }
}

/// A profile that is being written, by a thread of its own.
#[derive(Debug)]
pub struct Profile {
    queue: Mutex<Option<SyncSender<Item>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    dropped: Arc<AtomicU64>,
}

impl Profile {
    /// Creates the file and watches all GPUs, those too that are opened later.
    ///
    /// The file is whole at any time, though it may lag behind by some seconds.
    ///
    /// # Errors
    /// When the file cannot be written, there is no thread for it, or there are no GPUs.
    pub fn start(path: &Path) -> Result<Arc<Self>, String> {
        let file = ChromeFile::create(path)
            .map_err(|error| format!("--metal-profile-output '{}': {error}", path.display()))?;
        let (queue, inbox) = sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let (lost, place) = (Arc::clone(&dropped), path.display().to_string());
        let thread = std::thread::Builder::new()
            .name("profile-writer".to_owned())
            .spawn(move || write(file, &inbox, &lost, &place))
            .map_err(|error| format!("cannot start the thread that writes the profile: {error}"))?;
        let (queue, thread) = (Mutex::new(Some(queue)), Mutex::new(Some(thread)));
        let profile = Arc::new(Self { queue, thread, dropped });
        gpus::observe(&profile).map_err(|why| format!("--metal-profile: {why}"))?;
        Ok(profile)
    }

    /// Who watches the engine of a model, so that its steps and requests are written too.
    #[must_use]
    pub fn of_model(self: &Arc<Self>, model: &str) -> Arc<dyn Observer> {
        Arc::new(OfModel { profile: Arc::clone(self), model: model.into() })
    }

    /// Writes what waits and ends the file. What happens later is not in it.
    pub fn close(&self) {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that writes the profile panicked");
        }
    }

    fn give(&self, item: Item) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(Err(TrySendError::Full(_))) = queue.map(|queue| queue.try_send(item)) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        self.close();
    }
}

impl TraceSink for Profile {
    fn finished(&self, entries: Vec<Entry>) {
        self.give(Item::Request(entries));
    }
}

#[cfg(any(target_os = "macos", feature = "gpu"))]
impl galatea_gpu::Observer for Profile {
    fn ran(&self, run: galatea_gpu::RunRecord) {
        self.give(Item::Run(Box::new(run), Host::current()));
    }
}

/// Writes until nobody has anything more. The file can be read at any time.
fn write(mut file: ChromeFile, inbox: &Receiver<Item>, dropped: &AtomicU64, path: &str) {
    let mut events = Events::new();
    let mut failed = false;
    loop {
        let written = match inbox.recv_timeout(LAG) {
            Ok(item) => events.of(item).iter().try_for_each(|event| file.add(event)),
            Err(RecvTimeoutError::Timeout) => file.flush(dropped.load(Ordering::Relaxed)),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if let Err(error) = written
            && !std::mem::replace(&mut failed, true)
        {
            tracing::error!("the profile '{path}' cannot be written: {error}");
        }
    }
    if let Err(error) = file.flush(dropped.load(Ordering::Relaxed)) {
        tracing::error!("the profile '{path}' cannot be written: {error}");
    }
}
