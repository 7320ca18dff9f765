//! Compute units, and what they have to do.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::device_queue::{DeviceLanes, DeviceQueue, QueueGrant};
use crate::power::UnitChoice;

/// A multiple of a time in [`ComputeDevice::slow_by`] is kept in thousandths.
const WHOLE: u32 = 1000;

/// A compute unit that models share.
#[derive(Debug)]
pub struct ComputeDevice {
    name: String,
    /// Nanoseconds that runs which have begun are predicted to take.
    owed: AtomicU64,
    running: AtomicU64,
    busy: AtomicU64,
    work: Mutex<DeviceWork>,
    runs: AtomicU64,
    /// True if runs are divided between this device and others.
    divided: AtomicBool,
    slowness: AtomicU32,
    closed: AtomicBool,
    /// Milliwatts while it works; 0 where nobody knows.
    milliwatts: AtomicU32,
}

/// Work that is under way.
#[derive(Debug, Default)]
struct DeviceWork {
    /// Since when it has been busy without a pause, and how many runs keep it so.
    since: Option<Instant>,
    under_way: u64,
    turns: DeviceQueue,
}

/// Statistics and load of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReport {
    /// Its name.
    pub name: String,
    /// Runs that were handed to it, parts of runs counted each.
    pub runs: u64,
    /// Runs under way.
    pub running: u64,
    /// Runs that wait for their turn.
    pub waiting: u64,
    /// Time during which at least one run was under way.
    pub busy: Duration,
    /// Predicted time left of them.
    pub owed: Duration,
    /// True if the device takes work.
    pub open: bool,
}

impl ComputeDevice {
    /// A unit with nothing to do.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            owed: AtomicU64::new(0),
            running: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            work: Mutex::default(),
            runs: AtomicU64::new(0),
            divided: AtomicBool::new(false),
            slowness: AtomicU32::new(WHOLE),
            closed: AtomicBool::new(false),
            milliwatts: AtomicU32::new(0),
        }
    }

    /// Its name, such as `cpu`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Has it run as much at a time as it is good for.
    pub fn set_lanes(&self, lanes: DeviceLanes) {
        let mut work = self.work();
        for _ in 0..work.turns.set_lanes(lanes) {
            self.start(&mut work);
        }
    }

    /// Hands it a run that is predicted to take so long, until what is given back is dropped, whatever else is under
    /// way.
    #[must_use]
    pub fn begin(self: &Arc<Self>, predicted: Duration) -> OccupiedDevice {
        let owed = self.owe(predicted);
        self.start(&mut self.work());
        OccupiedDevice { unit: Arc::clone(self), owed, turn: false, waited: false }
    }

    /// Waits for the turn of a run with this deadline, then does the same as [`ComputeDevice::begin`]. A thread that has
    /// a turn must not ask for another one before it is given back.
    #[must_use]
    pub fn enter(
        self: &Arc<Self>,
        predicted: Duration,
        deadline: Option<Instant>,
    ) -> OccupiedDevice {
        let owed = self.owe(predicted);
        let mut work = self.work();
        let turn = work.turns.ask(owed, deadline);
        let (turn, waited) = match turn {
            QueueGrant::Later(wait) => {
                drop(work);
                wait.wait();
                (true, true)
            }
            turn => {
                self.start(&mut work);
                (matches!(turn, QueueGrant::Taken), false)
            }
        };
        OccupiedDevice { unit: Arc::clone(self), owed, turn, waited }
    }

    fn owe(&self, predicted: Duration) -> u64 {
        let owed = u64::try_from(predicted.as_nanos()).unwrap_or(u64::MAX / 2);
        self.owed.fetch_add(owed, Ordering::Relaxed);
        self.runs.fetch_add(1, Ordering::Relaxed);
        owed
    }

    fn start(&self, work: &mut DeviceWork) {
        self.running.fetch_add(1, Ordering::Relaxed);
        work.under_way += 1;
        work.since.get_or_insert_with(Instant::now);
    }

    fn work(&self) -> MutexGuard<'_, DeviceWork> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether runs are under way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    /// Returns the time that a run handed over now would wait.
    #[must_use]
    pub fn wait(&self) -> Duration {
        let owed = self.owed.load(Ordering::Relaxed);
        Duration::from_nanos(owed).mul_f64(self.slowness())
    }

    /// The same for a run with this deadline, which is before those that wait and are due later.
    #[must_use]
    pub fn wait_until(&self, deadline: Option<Instant>) -> Duration {
        let behind = deadline.map_or(0, |deadline| self.work().turns.behind(deadline));
        let owed = self.owed.load(Ordering::Relaxed).saturating_sub(behind);
        Duration::from_nanos(owed).mul_f64(self.slowness())
    }

    /// Returns whether runs are divided between this device and others.
    #[must_use]
    pub fn is_divided(&self) -> bool {
        self.divided.load(Ordering::Relaxed)
    }

    /// Says that runs are divided between it and others.
    pub(crate) fn set_divided(&self) {
        self.divided.store(true, Ordering::Relaxed);
    }

    /// Returns the ratio of the present time of runs to their usual time.
    #[must_use]
    pub fn slowness(&self) -> f64 {
        f64::from(self.slowness.load(Ordering::Relaxed)) / f64::from(WHOLE)
    }

    /// Says that runs take so many times as long as usual, such as on a hot machine; from 1 to 1000.
    pub fn slow_by(&self, times: f64) {
        let times = if times.is_finite() { times.clamp(1.0, 1000.0) } else { 1.0 };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 1,000 to 1,000,000"
        )]
        self.slowness.store((times * f64::from(WHOLE)) as u32, Ordering::Relaxed);
    }

    /// Takes no more work where another unit can do it, or takes it again.
    pub fn set_open(&self, open: bool) {
        self.closed.store(!open, Ordering::Relaxed);
    }

    /// Returns whether the device takes work.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.closed.load(Ordering::Relaxed)
    }

    /// Says what it draws while it works, beyond what it draws without work.
    pub fn set_watts(&self, watts: f64) {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to what a unit can draw"
        )]
        self.milliwatts.store((watts.clamp(0.0, 1e6) * 1e3) as u32, Ordering::Relaxed);
    }

    /// Returns the watts that the device draws while it works, if known.
    #[must_use]
    pub fn watts(&self) -> Option<f64> {
        let milliwatts = self.milliwatts.load(Ordering::Relaxed);
        (milliwatts > 0).then(|| f64::from(milliwatts) / 1e3)
    }

    /// Returns the statistics and load of the device.
    #[must_use]
    pub fn report(&self) -> DeviceReport {
        let (since, waiting) = {
            let work = self.work();
            (work.since, work.turns.waiting())
        };
        let busy = Duration::from_nanos(self.busy.load(Ordering::Relaxed));
        DeviceReport {
            name: self.name.clone(),
            runs: self.runs.load(Ordering::Relaxed),
            running: self.running.load(Ordering::Relaxed),
            waiting: u64::try_from(waiting).unwrap_or(u64::MAX),
            busy: busy + since.map_or(Duration::ZERO, |begin| begin.elapsed()),
            owed: self.wait(),
            open: self.is_open(),
        }
    }

    fn end(&self, owed: u64, turn: bool) {
        self.owed.fetch_sub(owed, Ordering::Relaxed);
        let mut work = self.work();
        // Whoever has the turn next is under way in its place.
        if turn && work.turns.end() {
            return;
        }
        self.running.fetch_sub(1, Ordering::Relaxed);
        work.under_way = work.under_way.saturating_sub(1);
        if work.under_way == 0
            && let Some(begin) = work.since.take()
        {
            let busy = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(0);
            self.busy.fetch_add(busy, Ordering::Relaxed);
        }
    }
}

/// A run that a unit was handed.
#[derive(Debug)]
pub struct OccupiedDevice {
    unit: Arc<ComputeDevice>,
    owed: u64,
    turn: bool,
    waited: bool,
}

impl OccupiedDevice {
    /// Returns whether others were before it.
    #[must_use]
    pub fn waited(&self) -> bool {
        self.waited
    }
}

impl Drop for OccupiedDevice {
    fn drop(&mut self) {
        self.unit.end(self.owed, self.turn);
    }
}

/// The units of a process, by name, and what the machine's power allows.
#[derive(Debug, Default)]
pub struct ComputeDevices {
    all: Mutex<Vec<Arc<ComputeDevice>>>,
    preference: Mutex<Option<UnitChoice>>,
}

impl ComputeDevices {
    /// No units yet, and any of them allowed.
    #[must_use]
    pub const fn new() -> Self {
        Self { all: Mutex::new(Vec::new()), preference: Mutex::new(None) }
    }

    /// Returns the preference among devices where several can do the same.
    #[must_use]
    pub fn preference(&self) -> UnitChoice {
        let preference = *self.preference.lock().unwrap_or_else(PoisonError::into_inner);
        preference.unwrap_or(UnitChoice::Fastest)
    }

    /// Says which units are preferred from now on.
    pub fn prefer(&self, choice: UnitChoice) {
        *self.preference.lock().unwrap_or_else(PoisonError::into_inner) = Some(choice);
    }

    /// The unit of that name, the same for all who ask.
    #[must_use]
    pub fn named(&self, name: &str) -> Arc<ComputeDevice> {
        let mut units = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = units.iter().find(|unit| unit.name() == name) {
            return Arc::clone(known);
        }
        let new = Arc::new(ComputeDevice::new(name));
        units.push(Arc::clone(&new));
        new
    }

    /// All of them, in the order in which they were first asked for.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<ComputeDevice>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
