//! Starts and stops profiles while the server runs.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use galatea_llm::observe::{EngineObserver, RequestRecord, StepRecord};
use galatea_runtime::{
    IntervalKind, IntervalSource, RecordedInterval, RunObserver, RunWatch, WatchSource,
};
use galatea_serving::trace::unix_ns;
use serde_json::{Value, json};

use super::chrome::ChromeSink;
use super::host_peaks::processor_peaks;
use crate::gpus::GpuCapture;

use super::{KernelCounts, ProfileSources, RunningProfile, signposts};

/// Events that a profile in memory keeps where nobody says how many.
pub const USUAL_EVENTS: u64 = 100_000;
/// The most that may be asked for.
pub const MAX_EVENTS: u64 = 1_000_000;
/// The most runs of a GPU that may be captured, each of which keeps all memory that it reads.
pub const MAX_CAPTURED_RUNS: u64 = 1000;

/// Request for a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileRequest {
    /// Names of models; all where there are none.
    pub models: Vec<String>,
    /// Time after which it ends by itself.
    pub time: Option<Duration>,
    /// The most events that are kept in memory.
    pub events: u64,
    /// True if the peaks of GPUs are measured first, so that the bounds of kernels are known.
    pub peaks: bool,
    /// A file for the events, in place of memory.
    pub file: Option<PathBuf>,
    /// Runs of the first GPU that is open to be captured for Xcode, from 1 to [`MAX_CAPTURED_RUNS`]; 0 for none. The file
    /// lies in the folder of [`Profiler::keep_captures`].
    pub captured_runs: u64,
}

impl Default for ProfileRequest {
    fn default() -> Self {
        Self {
            models: Vec::new(),
            time: None,
            events: USUAL_EVENTS,
            peaks: false,
            file: None,
            captured_runs: 0,
        }
    }
}

/// A profile that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedProfile {
    /// Summary, a JSON object.
    pub summary: Value,
    /// Chrome's trace events as JSON, where they were kept in memory.
    pub trace: Option<String>,
}

/// Returns the state of profiling.
#[derive(Debug, Clone)]
pub struct ProfilerStatus {
    /// Summary so far of the profile under way.
    pub current: Option<Value>,
    /// The one that ended last.
    pub last: Option<Arc<FinishedProfile>>,
}

/// A profile under way.
#[derive(Debug)]
struct ProfileUnderWay {
    profile: Arc<RunningProfile>,
    /// Tells the thread that ends it after a time that it has ended; nothing where it has no end of its own.
    _timer: Option<Sender<()>>,
    number: u64,
    /// The capture that it began.
    capture: Option<GpuCapture>,
}

#[derive(Debug, Default)]
struct ProfilerState {
    running: Option<ProfileUnderWay>,
    last: Option<Arc<FinishedProfile>>,
    /// True if the last one ended by itself, and nobody has stopped it yet.
    waits: bool,
    started: u64,
}

/// Starts and stops profiles: one at a time.
#[derive(Debug, Default)]
pub struct Profiler {
    sources: ProfileSources,
    /// True while a profile is under way. While none is, this check is the only cost.
    on: AtomicBool,
    runs: Arc<RunWatch>,
    intervals: IntervalSource,
    /// Folder of captures, where they are kept.
    captures: Mutex<Option<PathBuf>>,
    state: Mutex<ProfilerState>,
    /// Held by who starts or stops.
    turn: Mutex<()>,
}

impl Profiler {
    /// Makes a profiler that asks these about GPUs and power.
    #[must_use]
    pub fn new(sources: ProfileSources) -> Self {
        Self::recorded(sources, signposts::source())
    }

    /// Makes a profiler like [`Profiler::new`], whose watch tells this recorder of begins and ends.
    #[must_use]
    pub fn recorded(sources: ProfileSources, intervals: IntervalSource) -> Self {
        let runs = Arc::new(RunWatch::recorded(intervals.clone()));
        Self { sources, runs, intervals, ..Self::default() }
    }

    /// Returns the recorder that is told of begins and ends of work: the system's, where it has one.
    #[must_use]
    pub fn intervals(&self) -> &IntervalSource {
        &self.intervals
    }

    pub(super) fn sources(&self) -> &ProfileSources {
        &self.sources
    }

    /// Returns the source by which sessions of a model ask whether they are watched.
    #[must_use]
    pub fn watch(&self, model: &str) -> WatchSource {
        WatchSource { watch: Some(Arc::clone(&self.runs)), model: model.into() }
    }

    /// Returns the observer of a model's engine.
    #[must_use]
    pub fn of_model(self: &Arc<Self>, model: &str) -> Arc<dyn EngineObserver> {
        Arc::new(OfModel { profiler: Arc::clone(self), model: model.into() })
    }

    /// Returns whether a profile is under way.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// The profile that is under way.
    pub fn current(&self) -> Option<Arc<RunningProfile>> {
        if !self.is_on() {
            return None;
        }
        self.state().running.as_ref().map(|running| Arc::clone(&running.profile))
    }

    /// Returns the state of profiling.
    #[must_use]
    pub fn status(&self) -> ProfilerStatus {
        let current = self.current().map(|profile| profile.summary(Instant::now()));
        ProfilerStatus { current, last: self.state().last.clone() }
    }

    /// Returns how often each kernel was started in the profile under way; nothing if there is none.
    pub fn kernels(&self) -> KernelCounts {
        self.current().map(|profile| profile.kernels()).unwrap_or_default()
    }

    /// Starts a profile. May take as long as GPUs need to report their clocks, or to show their peaks.
    ///
    /// # Errors
    /// Fails when one is under way, or the file cannot be written.
    pub fn start(self: &Arc<Self>, wish: &ProfileRequest) -> Result<(), String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_on() {
            return Err("a profile is under way; stop it before another one is started".to_owned());
        }
        // Of the CPU they are measured once on a host.
        processor_peaks();
        if wish.peaks {
            self.sources.gpus.measure_peaks();
        }
        // Refused before anything is begun.
        let capture = self.capture(wish)?;
        let sources = self.sources.clone();
        let (file, models) = (wish.file.as_deref(), wish.models.clone());
        let profile = RunningProfile::of(sources, file, wish.events, models);
        let profile = profile.inspect_err(|_| self.end_capture(capture.as_ref()))?;
        let mut state = self.state();
        state.started += 1;
        let number = state.started;
        // It waits for its turn, should the time be short.
        let timer = wish.time.map(|time| self.end_after(time, number)).transpose();
        let timer = timer.inspect_err(|_| self.end_capture(capture.as_ref()))?;
        // A host without GPUs has other units to watch.
        if let Err(why) = self.sources.gpus.observe(&profile) {
            tracing::info!("The profile has no runs of GPUs: {why}.");
        }
        state.running =
            Some(ProfileUnderWay { profile: Arc::clone(&profile), _timer: timer, number, capture });
        state.waits = false;
        drop(state);
        self.runs.start(profile as Arc<dyn RunObserver>);
        self.on.store(true, Ordering::Release);
        Ok(())
    }

    /// Keeps captures of GPUs in a folder. Without one, none is made.
    pub fn keep_captures(&self, folder: PathBuf) {
        *self.captures.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
    }

    /// Starts the capture that a profile asks for.
    fn capture(&self, wish: &ProfileRequest) -> Result<Option<GpuCapture>, String> {
        if wish.captured_runs == 0 {
            return Ok(None);
        }
        let folder = self.captures.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let none = "captures have no folder, expected a server that was started with --metal-capture-folder";
        let folder = folder.ok_or(none)?;
        let name = format!("capture-{}.gputrace", unix_ns(Instant::now()) / 1_000_000);
        let capture = GpuCapture { file: folder.join(name), runs: wish.captured_runs };
        self.sources.gpus.capture(&capture)?;
        Ok(Some(capture))
    }

    /// Ends a capture whose profile did not begin.
    fn end_capture(&self, capture: Option<&GpuCapture>) {
        if let Some(capture) = capture {
            self.sources.gpus.stop_capture(capture);
        }
    }

    /// Ends the profile, and returns its results. One that has ended by itself can be fetched this way once.
    ///
    /// # Errors
    /// Fails when none is under way.
    pub fn stop(&self) -> Result<Arc<FinishedProfile>, String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let running = self.state().running.take();
        if let Some(running) = running {
            return Ok(self.finish(&running, false));
        }
        let mut state = self.state();
        match (state.waits, state.last.clone()) {
            (true, Some(last)) => {
                state.waits = false;
                Ok(last)
            }
            _ => Err("no profile is under way; start one first".to_owned()),
        }
    }

    /// Ends the profile, if one is under way.
    pub fn close(&self) {
        if self.is_on() {
            self.stop().ok();
        }
    }

    /// A thread that ends a profile after a time, unless it is told before that it has ended.
    fn end_after(self: &Arc<Self>, time: Duration, number: u64) -> Result<Sender<()>, String> {
        let (sender, told) = mpsc::channel::<()>();
        let profiler: Weak<Self> = Arc::downgrade(self);
        let wait = move || {
            if told.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
                && let Some(profiler) = profiler.upgrade()
            {
                profiler.expire(number);
            }
        };
        let thread = std::thread::Builder::new().name("profile-timer".to_owned()).spawn(wait);
        let failed = |error| format!("cannot start the thread that ends the profile: {error}");
        thread.map(|_| sender).map_err(failed)
    }

    /// Ends the profile of this number, if it is still under way.
    fn expire(&self, number: u64) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = self.state().running.take_if(|running| running.number == number);
        if let Some(running) = mine {
            self.finish(&running, true);
        }
    }

    /// Takes everybody off a profile and adds it up.
    fn finish(&self, running: &ProfileUnderWay, by_itself: bool) -> Arc<FinishedProfile> {
        let profile = &running.profile;
        self.on.store(false, Ordering::Release);
        self.runs.stop();
        self.sources.gpus.forget();
        let mut summary = profile.summary(Instant::now());
        let dropped = profile.dropped.load(Ordering::Relaxed);
        let mut put = |name: &str, value: Value| {
            if let Some(fields) = summary.as_object_mut() {
                fields.insert(name.to_owned(), value);
            }
        };
        if let Some(capture) = &running.capture {
            let left = self.sources.gpus.stop_capture(capture);
            let file = capture.file.display().to_string();
            put("capture", json!({"file": file, "runs": capture.runs - left.min(capture.runs)}));
        }
        let trace = match profile.end() {
            Some(ChromeSink::Text(text)) => {
                let [events, left_out] = text.counts();
                put("events", json!({"kept": events, "left_out": left_out, "dropped": dropped}));
                Some(text.end(dropped))
            }
            Some(ChromeSink::File(_)) | None => {
                put("events", json!({"dropped": dropped}));
                None
            }
        };
        let finished = Arc::new(FinishedProfile { summary, trace });
        let mut state = self.state();
        (state.last, state.waits) = (Some(Arc::clone(&finished)), by_itself);
        finished
    }

    fn state(&self) -> MutexGuard<'_, ProfilerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells a profile what the engine of a model does.
struct OfModel {
    profiler: Arc<Profiler>,
    model: Arc<str>,
}

impl EngineObserver for OfModel {
    fn wants(&self) -> bool {
        self.profiler.is_on()
    }

    fn begins(&self) -> Option<RecordedInterval> {
        self.profiler.intervals.begin(IntervalKind::EngineStep, &self.model)
    }

    fn stepped(&self, step: StepRecord) {
        self.profiler
            .current()
            .iter()
            .for_each(|profile| profile.stepped(&self.model, step.clone()));
    }

    fn ended(&self, request: RequestRecord) {
        if let Some(profile) = self.profiler.current() {
            profile.ended(&self.model, request);
        }
    }
}

#[cfg(test)]
mod tests {
    use galatea_runtime::PartRun;

    use super::*;

    fn ran(profile: &RunningProfile, model: &str) {
        let begin = Instant::now();
        let time = Duration::from_micros(5);
        let run = PartRun { model: model.into(), provider: "cpu", begin, time, rows: Vec::new() };
        RunObserver::ran(profile, run);
    }

    #[test]
    fn one_profile_at_a_time_is_started_and_stopped() {
        let profiler = Arc::new(Profiler::default());
        assert!(profiler.stop().unwrap_err().contains("no profile is under way"));
        assert!(profiler.current().is_none());
        profiler.start(&ProfileRequest::default()).unwrap();
        assert!(profiler.start(&ProfileRequest::default()).unwrap_err().contains("is under way"));
        let profile = profiler.current().unwrap();
        ran(&profile, "m");
        assert_eq!(profiler.status().current.unwrap()["units"][0]["runs"], 1);
        let found = profiler.stop().unwrap();
        assert_eq!(found.summary["models"][0]["model"], "m");
        let trace: Value = serde_json::from_str(found.trace.as_deref().unwrap()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        assert!(events.iter().any(|event| event["name"] == "m"), "{trace}");
        assert_eq!(profiler.status().last, Some(found));
        assert!(profiler.stop().is_err());
        // What comes late has nowhere to go, and does no harm.
        ran(&profile, "m");
    }

    #[test]
    fn a_profile_ends_by_itself_and_waits_for_who_asks() {
        let profiler = Arc::new(Profiler::default());
        let time = Some(Duration::from_millis(1));
        profiler.start(&ProfileRequest { time, ..ProfileRequest::default() }).unwrap();
        let begin = Instant::now();
        while profiler.is_on() || profiler.status().last.is_none() {
            assert!(begin.elapsed() < Duration::from_secs(60));
            std::thread::yield_now();
        }
        assert!(profiler.stop().is_ok());
        assert!(profiler.stop().is_err(), "it was asked for");
    }

    #[test]
    fn a_capture_that_cannot_be_made_refuses_the_profile() {
        let profiler = Arc::new(Profiler::default());
        let wish = ProfileRequest { captured_runs: 2, ..ProfileRequest::default() };
        let error = profiler.start(&wish).unwrap_err();
        assert!(error.contains("--metal-capture-folder"), "{error}");
        assert!(!profiler.is_on());
        profiler.keep_captures(PathBuf::from("/nowhere"));
        let error = profiler.start(&wish).unwrap_err();
        assert!(error.contains("no GPU is open") || error.contains("without GPUs"), "{error}");
        assert!(!profiler.is_on());
        profiler.start(&ProfileRequest::default()).unwrap();
        assert!(profiler.stop().unwrap().summary.get("capture").is_none());
    }

    #[test]
    fn only_models_that_were_asked_for_are_watched() {
        let profiler = Arc::new(Profiler::default());
        let models = vec!["mine".to_owned()];
        profiler.start(&ProfileRequest { models, ..ProfileRequest::default() }).unwrap();
        let profile = profiler.current().unwrap();
        assert!(RunObserver::wants(&*profile, "mine") && !RunObserver::wants(&*profile, "other"));
        profiler.close();
        assert!(!profiler.is_on());
    }
}
