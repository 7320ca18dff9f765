//! Profiles: what units, the host, engines and requests did when, for `chrome://tracing` and Perfetto, and what that
//! adds up to.

mod bottlenecks;
mod chrome;
mod events;
mod host_peaks;
mod occupied;
mod profiler;
mod signposts;
mod spread;
mod summary;
mod tally;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use galatea_llm::observe::{RequestRecord, StepRecord};
use galatea_runtime::power::EnergyReport;
use galatea_runtime::{PartRun, RunObserver};
use galatea_serving::trace::{TraceEntry, TraceEvent, TraceSink};
use serde_json::Value;

use crate::gpus::GpuPool;
use crate::power::PowerControl;
pub use bottlenecks::bottlenecks;
use chrome::{ChromeFile, ChromeSink, ChromeText};
use events::EventMaker;
pub use host_peaks::processor_peaks;
pub use profiler::{
    FinishedProfile, MAX_CAPTURED_RUNS, MAX_EVENTS, ProfileRequest, Profiler, ProfilerStatus,
    USUAL_EVENTS,
};
use summary::{ProfileWindow, SummaryFacts, known_peaks, summary};
pub use tally::KernelCounts;
use tally::ProfileSums;

/// Runs and requests that may wait to be written; those beyond are left out of the events and counted.
const QUEUE: usize = 4096;
/// Longest time that the file lags behind.
const LAG: Duration = Duration::from_millis(500);

/// Sources of what a profile tells beside runs: names and peaks of GPUs, and power.
#[derive(Debug, Clone)]
pub struct ProfileSources {
    /// GPUs.
    pub gpus: Arc<GpuPool>,
    /// Power.
    pub power: Arc<PowerControl>,
}

impl Default for ProfileSources {
    fn default() -> Self {
        Self { gpus: Arc::default(), power: Arc::new(PowerControl::new(Arc::default())) }
    }
}

/// Something for the events.
enum ProfileItem {
    #[cfg(any(target_os = "macos", feature = "gpu"))]
    Run(Box<galatea_gpu::RunRecord>, WaitingThread),
    /// A partition that is not a GPU's.
    Part(Box<PartRun>, WaitingThread),
    Request(Vec<TraceEntry>),
    /// A step of a model's engine, on its thread.
    Step(Arc<str>, StepRecord, WaitingThread),
    /// A request that a model's engine has done with.
    Generation(Arc<str>, Box<RequestRecord>),
}

/// The thread that waited for a run, or that of an engine.
#[derive(Debug, Clone)]
struct WaitingThread {
    id: std::thread::ThreadId,
    name: String,
}

impl WaitingThread {
    /// The thread that asks.
    fn current() -> Self {
        let thread = std::thread::current();
        Self { id: thread.id(), name: thread.name().unwrap_or("thread").to_owned() }
    }
}

/// A profile that is being made: events are written by a thread of its own.
#[derive(Debug)]
pub struct RunningProfile {
    sources: ProfileSources,
    begin: Instant,
    energy: Option<EnergyReport>,
    /// The models that are of interest; all where there are none.
    models: Vec<String>,
    tally: Mutex<ProfileSums>,
    queue: Mutex<Option<SyncSender<ProfileItem>>>,
    thread: Mutex<Option<JoinHandle<ChromeSink>>>,
    dropped: Arc<AtomicU64>,
}

impl RunningProfile {
    /// Creates the file and watches all GPUs, also those that are opened later.
    ///
    /// The file is whole at any time, though it may lag behind by some seconds.
    ///
    /// # Errors
    /// Fails when the file cannot be written, there is no thread for it, or there are no GPUs.
    pub fn start(profiler: &Profiler, path: &Path) -> Result<Arc<Self>, String> {
        let sources = profiler.sources().clone();
        let gpus = Arc::clone(&sources.gpus);
        let profile = Self::of(sources, Some(path), 0, Vec::new())?;
        gpus.observe(&profile).map_err(|why| format!("--metal-profile: {why}"))?;
        Ok(profile)
    }

    /// A profile of some models, or of all, that nobody tells anything yet; in a file, or with so many events in
    /// memory.
    fn of(
        sources: ProfileSources,
        path: Option<&Path>,
        events: u64,
        models: Vec<String>,
    ) -> Result<Arc<Self>, String> {
        let sink = match path {
            None => ChromeSink::Text(ChromeText::new(events)),
            Some(path) => ChromeSink::File(ChromeFile::create(path).map_err(|error| {
                format!("--metal-profile-output '{}': {error}", path.display())
            })?),
        };
        let (queue, inbox) = sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let place = path.map_or(String::new(), |path| path.display().to_string());
        let lost = Arc::clone(&dropped);
        let gpus = Arc::clone(&sources.gpus);
        let thread = std::thread::Builder::new()
            .name("profile-writer".to_owned())
            .spawn(move || write(sink, gpus, &inbox, &lost, &place))
            .map_err(|error| format!("cannot start the thread that writes the profile: {error}"))?;
        Ok(Arc::new(Self {
            begin: Instant::now(),
            energy: sources.power.state().map(|state| state.energy),
            sources,
            models,
            tally: Mutex::default(),
            queue: Mutex::new(Some(queue)),
            thread: Mutex::new(Some(thread)),
            dropped,
        }))
    }

    /// Writes what waits and ends the file. What happens later is not in it.
    pub fn close(&self) {
        drop(self.end());
    }

    /// Writes what waits; what it was written to, where that was not asked before.
    fn end(&self) -> Option<ChromeSink> {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let ended = thread.join();
        if ended.is_err() {
            tracing::error!("the thread that writes the profile panicked");
        }
        ended.ok()
    }

    /// Returns the summary of the profile so far.
    fn summary(&self, end: Instant) -> Value {
        let begin = self.begin;
        let energy = self.energy;
        let models = self.models.clone();
        let window = ProfileWindow { begin, end, energy, models };
        // Runs go on being told to it meanwhile.
        let tally = self.tally().clone();
        let sources = &self.sources;
        let facts = SummaryFacts {
            peaks: &|place| known_peaks(sources, place),
            gpu_name: &|number| sources.gpus.name(number),
            power: sources.power.state(),
        };
        summary(&tally, &window, &facts)
    }

    /// Returns how often each kernel was started, and its time.
    fn kernels(&self) -> KernelCounts {
        self.tally().kernels()
    }

    fn tally(&self) -> MutexGuard<'_, ProfileSums> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_wanted(&self, model: &str) -> bool {
        self.models.is_empty() || self.models.iter().any(|own| own == model)
    }

    fn give(&self, item: ProfileItem) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(Err(TrySendError::Full(_))) = queue.map(|queue| queue.try_send(item)) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A step of a model's engine.
    fn stepped(&self, model: &Arc<str>, step: StepRecord) {
        if self.is_wanted(model) {
            self.give(ProfileItem::Step(Arc::clone(model), step, WaitingThread::current()));
        }
    }

    /// A request that a model's engine has done with.
    fn ended(&self, model: &Arc<str>, request: RequestRecord) {
        if self.is_wanted(model) {
            self.tally().generation(model, &request);
            self.give(ProfileItem::Generation(Arc::clone(model), Box::new(request)));
        }
    }
}

impl Drop for RunningProfile {
    fn drop(&mut self) {
        self.close();
    }
}

impl TraceSink for RunningProfile {
    fn finished(&self, entries: Vec<TraceEntry>) {
        let model = entries.iter().find_map(|entry| match &entry.event {
            TraceEvent::Began { model, .. } => Some(model),
            _ => None,
        });
        if model.is_some_and(|model| self.is_wanted(model)) {
            self.tally().request(&entries, |model| self.is_wanted(model));
            self.give(ProfileItem::Request(entries));
        }
    }
}

impl RunObserver for RunningProfile {
    fn wants(&self, model: &str) -> bool {
        self.is_wanted(model)
    }

    fn ran(&self, run: PartRun) {
        self.tally().part(&run);
        // A GPU's run tells what the host did around it.
        if run.provider != tally::GPU {
            self.give(ProfileItem::Part(Box::new(run), WaitingThread::current()));
        }
    }
}

#[cfg(any(target_os = "macos", feature = "gpu"))]
impl galatea_gpu::TimingObserver for RunningProfile {
    fn ran(&self, mut run: galatea_gpu::RunRecord) {
        // The device knows the name of the graph.
        match galatea_runtime::watched_model() {
            Some(model) => run.model = model.to_string(),
            None if self.models.is_empty() => {}
            None => return,
        }
        self.tally().device(&run);
        self.give(ProfileItem::Run(Box::new(run), WaitingThread::current()));
    }
}

/// Writes until nobody has anything more. A file can be read at any time.
fn write(
    mut sink: ChromeSink,
    gpus: Arc<GpuPool>,
    inbox: &Receiver<ProfileItem>,
    dropped: &AtomicU64,
    path: &str,
) -> ChromeSink {
    let mut events = EventMaker::new(gpus);
    let mut failed = false;
    loop {
        let written = match inbox.recv_timeout(LAG) {
            Ok(item) => events.of(item).iter().try_for_each(|event| sink.add(event)),
            Err(RecvTimeoutError::Timeout) => sink.flush(dropped.load(Ordering::Relaxed)),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if let Err(error) = written
            && !std::mem::replace(&mut failed, true)
        {
            tracing::error!("the profile '{path}' cannot be written: {error}");
        }
    }
    if let Err(error) = sink.flush(dropped.load(Ordering::Relaxed)) {
        tracing::error!("the profile '{path}' cannot be written: {error}");
    }
    sink
}
