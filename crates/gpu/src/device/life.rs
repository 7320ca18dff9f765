//! From when to when a device is there: watching it, and opening it again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use wgpu::{PollError, PollType};

use super::line::{QueuedSubmission, SubmissionLine};
use super::{DeviceCounters, GpuDevice};
use crate::buffers::PoolConfig;
use crate::error::GpuError;

/// Time after which unfinished work makes the device count as hung.
const WATCHDOG: Duration = Duration::from_secs(120);

/// The same for a device that the processor plays: it compiles kernels while it works, and shares its
/// cores with everything else that runs.
const SOFTWARE_WATCHDOG: Duration = Duration::from_secs(600);

/// Number of times that a lost device is opened again. More losses point to a lasting cause.
const MAX_TIMES: u32 = 8;

/// Origin of a device, from which it can be opened again.
#[derive(Clone, Debug)]
pub(super) enum DeviceOrigin {
    /// By its number.
    Number(usize, PoolConfig),
    /// It is not there.
    Imagined(PoolConfig),
}

/// Loss of a device.
#[derive(Debug)]
struct DeviceLoss {
    reason: String,
    /// The place of the work that did not end, and the time that it had.
    hung: Option<(u64, Duration)>,
}

impl DeviceLoss {
    /// Creates a loss with the reason that the device reports.
    fn told(reason: String) -> Self {
        Self { reason, hung: None }
    }
}

/// State of a device's life: its origin, its loss and its successor.
#[derive(Debug)]
pub(super) struct DeviceLife {
    origin: DeviceOrigin,
    /// Reason why the device is gone, once it is.
    lost: Arc<OnceLock<DeviceLoss>>,
    /// Work in progress.
    pub(super) line: SubmissionLine,
    /// The latest error that no scope caught.
    uncaught: Arc<Mutex<Option<String>>>,
    watchdog_ns: AtomicU64,
    /// Number of predecessors of this device that were lost.
    before: AtomicU64,
    /// The device that was opened in its place.
    next: Mutex<Option<Arc<GpuDevice>>>,
}

impl DeviceLife {
    /// Begins the life of an open device, which is watched from now on for its loss and for errors that no
    /// scope catches.
    pub(super) fn of(device: &wgpu::Device, software: bool, origin: DeviceOrigin) -> Self {
        let lost = Arc::new(OnceLock::new());
        let uncaught = Arc::new(Mutex::new(None));
        let note: Arc<OnceLock<DeviceLoss>> = Arc::clone(&lost);
        device.set_device_lost_callback(move |reason, message| {
            if reason != wgpu::DeviceLostReason::Destroyed {
                tracing::error!(?reason, message, "the GPU was lost");
            }
            drop(note.set(DeviceLoss::told(format!("{reason:?}: {message}"))));
        });
        let note: Arc<Mutex<Option<String>>> = Arc::clone(&uncaught);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            tracing::error!(%error, "the GPU refused work");
            *note.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }));
        let watchdog = if software { SOFTWARE_WATCHDOG } else { WATCHDOG };
        let watchdog_ns = AtomicU64::new(nanoseconds(watchdog));
        let before = AtomicU64::new(0);
        let next = Mutex::new(None);
        let line = SubmissionLine::default();
        Self { origin, lost, line, uncaught, watchdog_ns, before, next }
    }

    fn watchdog(&self) -> Duration {
        Duration::from_nanos(self.watchdog_ns.load(Ordering::Relaxed))
    }
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl GpuDevice {
    /// Refuses work for a device that is gone.
    ///
    /// # Errors
    /// Returns the reason of the loss.
    pub fn alive(&self) -> Result<(), GpuError> {
        match self.life.lost.get() {
            Some(loss) => Err(GpuError::Lost(loss.reason.clone())),
            None => Ok(()),
        }
    }

    /// Sets how long work may take before the device counts as hung: two minutes at first, ten on a device
    /// that the processor plays.
    pub fn set_watchdog(&self, limit: Duration) {
        self.life.watchdog_ns.store(nanoseconds(limit), Ordering::Relaxed);
    }

    /// Gives the device up: from now on it refuses work, as one that went away by itself.
    pub fn give_up(&self, reason: &str) {
        drop(self.life.lost.set(DeviceLoss::told(reason.to_owned())));
        self.device.destroy();
    }

    /// Gives the device up because a run on it did not come to its end, and returns the error of that run.
    pub(crate) fn lose(&self, reason: String) -> GpuError {
        DeviceCounters::add(&self.counters.lost_runs, 1);
        tracing::error!(
            name = self.capabilities().name,
            reason,
            "the GPU lost a run without a word"
        );
        // Others may still read what their runs wrote on it: its memory is not destroyed here.
        drop(self.life.lost.set(DeviceLoss::told(reason.clone())));
        GpuError::Lost(reason)
    }

    /// Returns whether runs compute anything.
    pub(crate) fn computes(&self) -> bool {
        !matches!(self.life.origin, DeviceOrigin::Imagined(_))
    }

    /// The device itself, or where it was lost and another one was opened in its place, that one. Nothing is
    /// opened: it may be lost too.
    #[must_use]
    pub fn latest(self: &Arc<Self>) -> Arc<Self> {
        let mut device = Arc::clone(self);
        loop {
            let next = device.life.next.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match next {
                Some(next) => device = next,
                None => return device,
            }
        }
    }

    /// The device itself, or where it was lost the one in its place, which is opened if nobody has done so.
    ///
    /// # Errors
    /// Fails when it cannot be opened again, or was lost too often.
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
        if before > u64::from(MAX_TIMES) {
            return Err(GpuError::Lost(format!("'{name}' {before} times, the last time: {lost}")));
        }
        let opened = match &self.life.origin {
            DeviceOrigin::Number(index, pool) => Self::open_with(*index, pool)?,
            DeviceOrigin::Imagined(pool) => Self::imagined(self.capabilities().clone(), pool)?,
        };
        if opened.capabilities().name != *name {
            return Err(GpuError::Lost(format!("'{name}' is no longer there: {lost}")));
        }
        opened.life.before.store(before, Ordering::Relaxed);
        opened.set_watchdog(self.life.watchdog());
        let bound = self.submission_ns.load(Ordering::Relaxed);
        opened.submission_ns.store(bound, Ordering::Relaxed);
        self.fault.hand_on(&opened.fault);
        let lost_runs = self.counters.lost_runs.load(Ordering::Relaxed);
        opened.counters.lost_runs.store(lost_runs, Ordering::Relaxed);
        opened.stamps_doubted.store(self.stamps_doubted.load(Ordering::Relaxed), Ordering::Relaxed);
        if self.meter.usage().is_some() {
            opened.measure_use();
        }
        if let Some(observer) = self.observers.get().filter(|_| opened.trusts_stamps()) {
            opened.observe(observer)?;
        }
        tracing::warn!(name, "a GPU that was lost is open again");
        Ok(opened)
    }

    /// Refuses to wait for work on a device that is gone: with the time that it had where it hung the device.
    fn alive_for(&self, work: &QueuedSubmission) -> Result<(), GpuError> {
        match self.life.lost.get() {
            Some(DeviceLoss { hung: Some((place, limit)), .. }) if work.has(*place) => {
                Err(GpuError::Hung { limit: *limit })
            }
            _ => self.alive(),
        }
    }

    /// Waits until the work is done and callbacks have run.
    ///
    /// # Errors
    /// Fails when the device was lost, hangs, or refused something on the way.
    pub(crate) fn wait(&self, work: &QueuedSubmission) -> Result<(), GpuError> {
        let mut patience = self.life.watchdog();
        loop {
            let submission_index = Some(work.index.clone());
            let wait = PollType::Wait { submission_index, timeout: Some(patience) };
            let polled = self.device.poll(wait);
            self.alive_for(work)?;
            let mut uncaught = self.life.uncaught.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(error) = uncaught.take() {
                return Err(GpuError::Refusal(error));
            }
            drop(uncaught);
            match polled {
                Ok(_) => {
                    self.life.line.leave(work.place);
                    return self.check_copies(work.place);
                }
                Err(PollError::Timeout) => patience = self.suspect(work)?,
                Err(error) => return Err(GpuError::Refusal(error.to_string())),
            }
        }
    }

    /// Waits for work that nobody asks for: what the device refused is told to who waits next.
    pub(super) fn wait_for_room(&self, work: &QueuedSubmission) {
        // A device that is gone makes no room.
        if self.alive().is_ok()
            && let Err(GpuError::Refusal(error)) = self.wait(work)
        {
            let mut uncaught = self.life.uncaught.lock().unwrap_or_else(PoisonError::into_inner);
            uncaught.get_or_insert(error);
        }
    }

    /// Looks for what holds the device up: the first work that is not done, which need not be this one. Gives the
    /// time that it still has.
    ///
    /// # Errors
    /// Fails if no time is left: the device is lost then, as the queue is stuck behind that work.
    fn suspect(&self, own: &QueuedSubmission) -> Result<Duration, GpuError> {
        let limit = self.life.watchdog();
        while let Some((first, since)) = self.life.line.first() {
            let submission_index = Some(first.index.clone());
            let look = PollType::Wait { submission_index, timeout: Some(Duration::ZERO) };
            if self.device.poll(look).is_ok() {
                // Nobody has waited for it yet.
                self.life.line.leave(first.place);
                continue;
            }
            let left = limit.saturating_sub(since.elapsed());
            if !left.is_zero() {
                return Ok(left);
            }
            let reason = format!("work on it did not finish within {limit:?}");
            tracing::error!(name = self.capabilities().name, "the GPU hangs: {reason}");
            // It may have been lost for another reason meanwhile.
            drop(self.life.lost.set(DeviceLoss { reason, hung: Some((first.place, limit)) }));
            self.alive_for(own)?;
        }
        Ok(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::KernelShader;

    /// Turns through memory, one after the other.
    const TURNS: &str = "
        @group(0) @binding(0) var<storage, read_write> sums: array<u32>;

        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) lane: u32) {
            let turns = sums[64];
            for (var turn = 0u; turn < turns; turn++) {
                sums[lane] = sums[lane] * 1664525u + turn;
            }
        }";

    /// Commands that take a device so many turns.
    fn turns(device: &GpuDevice, count: u32) -> wgpu::CommandBuffer {
        let pipeline = device.pipeline(&KernelShader::new("turns", TURNS)).unwrap();
        let buffer = device.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 512,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        device.queue.write_buffer(&buffer, 256, &count.to_le_bytes());
        let entry = wgpu::BindGroupEntry { binding: 0, resource: buffer.as_entire_binding() };
        let group = device.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.layout,
            entries: &[entry],
        });
        let mut encoder = device.device.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&pipeline.pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
        drop(pass);
        encoder.finish()
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn who_waits_behind_what_hangs_is_not_to_blame() {
        if crate::devices().is_empty() {
            eprintln!("skipped: this host has no GPU and no software one");
            return;
        }
        let device = GpuDevice::open(0).unwrap();
        // Who waits for the last has waited for all.
        let first = device.submit(turns(&device, 9));
        let last = device.submit(turns(&device, 9));
        device.wait(&last).unwrap();
        device.wait(&first).unwrap();
        assert!(device.life.line.first().is_none());
        let hanging = device.submit(turns(&device, 1_000_000));
        // Some devices take nothing more before they are done: this is known by the same.
        let behind = device.life.line.enter(|| hanging.index.clone());
        let limit = Duration::from_millis(5);
        device.set_watchdog(limit);
        let lost = device.wait(&behind).unwrap_err();
        let blamed = matches!(&lost, GpuError::Lost(why) if why.contains("work on it did not"));
        assert!(blamed, "{lost}");
        assert_eq!(device.wait(&hanging).unwrap_err(), GpuError::Hung { limit });
        assert_eq!(device.wait(&behind).unwrap_err(), lost);
        device.settle();
    }
}
