//! From when to when a device is there: watching it, and opening it again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use wgpu::{PollType, SubmissionIndex};

use super::Device;
use crate::error::GpuError;
use crate::memory::PoolConfig;

/// How long work may take before the device counts as hung. Software devices are slow, and the work of
/// one step is not.
const WATCHDOG: Duration = Duration::from_secs(120);

/// How often a device that was lost is opened again. What is lost more often has a cause that stays.
const MOST_TIMES: u32 = 8;

/// How a device was opened.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// By its number.
    Number(usize, PoolConfig),
    /// It is not there.
    Imagined(PoolConfig),
}

/// What is known of a device's fate.
#[derive(Debug)]
pub(super) struct Life {
    origin: Origin,
    /// Why the device is gone, once it is.
    lost: Arc<OnceLock<String>>,
    /// The latest error that no scope caught.
    uncaught: Arc<Mutex<Option<String>>>,
    watchdog_ns: AtomicU64,
    /// How many devices in its place were lost before it.
    before: AtomicU64,
    /// The device that was opened in its place.
    next: Mutex<Option<Arc<Device>>>,
}

impl Life {
    /// That of a device that is open, which is watched from now on: whether it goes away, and errors that nobody
    /// waits for.
    pub(super) fn of(device: &wgpu::Device, origin: Origin) -> Self {
        let (lost, uncaught) = (Arc::new(OnceLock::new()), Arc::new(Mutex::new(None)));
        let note: Arc<OnceLock<String>> = Arc::clone(&lost);
        device.set_device_lost_callback(move |reason, message| {
            if reason != wgpu::DeviceLostReason::Destroyed {
                tracing::error!(?reason, message, "the GPU was lost");
            }
            drop(note.set(format!("{reason:?}: {message}")));
        });
        let note: Arc<Mutex<Option<String>>> = Arc::clone(&uncaught);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            tracing::error!(%error, "the GPU refused work");
            *note.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }));
        let watchdog_ns = AtomicU64::new(nanoseconds(WATCHDOG));
        let (before, next) = (AtomicU64::new(0), Mutex::new(None));
        Self { origin, lost, uncaught, watchdog_ns, before, next }
    }

    fn watchdog(&self) -> Duration {
        Duration::from_nanos(self.watchdog_ns.load(Ordering::Relaxed))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Device {
    /// Refuses work for a device that is gone.
    ///
    /// # Errors
    /// Why it is.
    pub fn alive(&self) -> Result<(), GpuError> {
        match self.life.lost.get() {
            Some(reason) => Err(GpuError::Lost(reason.clone())),
            None => Ok(()),
        }
    }

    /// Sets how long work may take before the device counts as hung: two minutes at first.
    pub fn set_watchdog(&self, limit: Duration) {
        self.life.watchdog_ns.store(nanoseconds(limit), Ordering::Relaxed);
    }

    /// Gives the device up: from now on it refuses work, as one that went away by itself.
    pub fn give_up(&self, reason: &str) {
        drop(self.life.lost.set(reason.to_owned()));
        self.device.destroy();
    }

    /// The device itself, or where it was lost the one in its place, which is opened if nobody has done so.
    ///
    /// # Errors
    /// When it cannot be opened again, or was lost too often.
    pub fn living(self: &Arc<Self>) -> Result<Arc<Self>, GpuError> {
        let mut device = Arc::clone(self);
        while let Err(lost) = device.alive() {
            let mut next = device.life.next.lock().unwrap_or_else(PoisonError::into_inner);
            let found = match &*next {
                Some(next) => Arc::clone(next),
                None => {
                    let opened = device.open_again(&lost)?;
                    *next = Some(Arc::clone(&opened));
                    opened
                }
            };
            drop(next);
            device = found;
        }
        Ok(device)
    }

    fn open_again(&self, lost: &GpuError) -> Result<Arc<Self>, GpuError> {
        let before = self.life.before.load(Ordering::Relaxed) + 1;
        let name = &self.capabilities().name;
        if before > u64::from(MOST_TIMES) {
            return Err(GpuError::Lost(format!("'{name}' {before} times, the last time: {lost}")));
        }
        let opened = match &self.life.origin {
            Origin::Number(index, pool) => Self::open_with(*index, pool)?,
            Origin::Imagined(pool) => Self::imagined(self.capabilities().clone(), pool)?,
        };
        if opened.capabilities().name != *name {
            return Err(GpuError::Lost(format!("'{name}' is no longer there: {lost}")));
        }
        opened.life.before.store(before, Ordering::Relaxed);
        opened.set_watchdog(self.life.watchdog());
        if self.meter.usage().is_some() {
            opened.measure_use();
        }
        if let Some(observer) = self.observers.get() {
            opened.observe(Arc::clone(observer))?;
        }
        tracing::warn!(name, "a GPU that was lost is open again");
        Ok(opened)
    }

    /// Waits until the work is done and callbacks have run.
    ///
    /// # Errors
    /// When the device was lost, hangs, or refused something on the way.
    pub(crate) fn wait(&self, submission: SubmissionIndex) -> Result<(), GpuError> {
        let limit = self.life.watchdog();
        let wait = PollType::Wait { submission_index: Some(submission), timeout: Some(limit) };
        let polled = self.device.poll(wait);
        self.alive()?;
        let mut uncaught = self.life.uncaught.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = uncaught.take() {
            return Err(GpuError::Refusal(error));
        }
        drop(uncaught);
        match polled {
            Ok(_) => Ok(()),
            Err(wgpu::PollError::Timeout) => {
                // What hangs once is not asked again: the queue is stuck behind it.
                let reason = format!("it did not finish within {limit:?}");
                tracing::error!(name = self.capabilities().name, "the GPU hangs: {reason}");
                match self.life.lost.set(reason) {
                    Ok(()) => Err(GpuError::Hung { limit }),
                    // Somebody else's work was the one that did not end.
                    Err(_) => self.alive(),
                }
            }
            Err(error) => Err(GpuError::Refusal(error.to_string())),
        }
    }
}
