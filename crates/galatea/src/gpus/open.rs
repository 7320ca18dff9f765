//! A program with GPUs: open devices are shared by all sessions, and watched where somebody asks for it.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use galatea_gpu::{
    BufferReach, CaptureRequest, GpuDevice, MemoryLimit, PoolConfig, TimingObserver,
};
use galatea_runtime::DevicePeaks;

use super::{GpuCapture, GpuMemory, GpuPrefetch, GpuUse};
use crate::memory_limit::MemoryBound;

/// Open devices, and what is done with those that are opened later.
#[derive(Default)]
struct OpenGpus {
    /// All sessions on a GPU share its compiled kernels.
    devices: Vec<(usize, Weak<GpuDevice>)>,
    profile: Option<Weak<dyn TimingObserver>>,
    measured: bool,
    /// Limit on the memory of a GPU.
    limit: Option<MemoryLimit>,
    /// Predicted time of a submission at most.
    submission: Option<Duration>,
}

/// The GPUs that an engine has opened.
#[derive(Default)]
pub struct GpuPool(Mutex<OpenGpus>);

impl fmt::Debug for GpuPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<usize> = self.open().devices.iter().map(|(number, _)| *number).collect();
        f.debug_tuple("GpuPool").field(&numbers).finish()
    }
}

impl OpenGpus {
    /// The devices as they are now. One that was lost stays lost: whoever only looks opens nothing.
    fn all(&self) -> impl Iterator<Item = (usize, Arc<GpuDevice>)> + '_ {
        let open = |(number, device): &(usize, Weak<GpuDevice>)| {
            Some((*number, device.upgrade()?.latest()))
        };
        self.devices.iter().filter_map(open)
    }

    fn watch(&self, device: &GpuDevice) {
        if self.measured {
            device.measure_use();
        }
        let Some(profile) = self.profile.as_ref().and_then(Weak::upgrade) else { return };
        if let Err(error) = device.observe(profile) {
            tracing::warn!("--metal-profile: {error}");
        }
    }
}

impl GpuPool {
    fn open(&self) -> MutexGuard<'_, OpenGpus> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.devices.retain(|(_, device)| device.strong_count() > 0);
        open
    }

    /// The device with this number, opened if it is not, and again if it was lost.
    ///
    /// # Errors
    /// Fails when there is no such device.
    pub fn device(&self, number: usize) -> Result<Arc<GpuDevice>, String> {
        let mut open = self.open();
        if let Some((_, device)) = open.all().find(|(known, _)| *known == number) {
            return Ok(device.living().unwrap_or(device));
        }
        let pool = PoolConfig::default();
        let pool = open.limit.map_or(pool.clone(), |limit| pool.limited(limit));
        let pool = open.submission.map_or(pool.clone(), |bound| pool.submitting(bound));
        let device = GpuDevice::open_with(number, &pool).map_err(|error| error.to_string())?;
        open.watch(&device);
        open.devices.push((number, Arc::downgrade(&device)));
        Ok(device)
    }

    /// Lets models take no more of the memory of GPUs that are opened from now on, or all of it that they recommend.
    #[allow(clippy::unnecessary_wraps, reason = "a program without GPUs refuses a limit")]
    pub fn limit_memory(&self, limit: Option<MemoryBound>) -> Result<(), String> {
        self.open().limit = limit.map(|limit| match limit {
            MemoryBound::Bytes(bytes) => MemoryLimit::Bytes(bytes),
            MemoryBound::Percent(percent) => MemoryLimit::Percent(percent),
        });
        Ok(())
    }

    /// Bounds the predicted time of a submission to GPUs that are opened from now on, where no model sets a bound.
    #[allow(clippy::unnecessary_wraps, reason = "a program without GPUs refuses a bound")]
    pub fn bound_submissions(&self, bound: Option<Duration>) -> Result<(), String> {
        self.open().submission = bound;
        Ok(())
    }

    /// The name of an open device.
    pub fn name(&self, number: usize) -> String {
        let found = self.open().all().find(|(known, _)| *known == number);
        found.map(|(_, device)| device.capabilities().name.clone()).unwrap_or_default()
    }

    /// Measures from now on how busy GPUs are, those too that are opened later.
    pub fn measure_use(&self) {
        let mut open = self.open();
        open.measured = true;
        open.all().for_each(|(_, device)| device.measure_use());
    }

    /// Returns the activity of the open GPUs that are measured.
    pub fn uses(&self) -> Vec<GpuUse> {
        let of = |(number, device): (usize, Arc<GpuDevice>)| {
            let usage = device.usage()?;
            let name = device.capabilities().name.clone();
            Some(GpuUse { number, name, busy: usage.busy, bytes: usage.work.bytes })
        };
        self.open().all().filter_map(of).collect()
    }

    /// Memory of the GPUs that are open, in the order of their numbers.
    pub fn memory(&self) -> Vec<GpuMemory> {
        let mut all: Vec<GpuMemory> =
            self.open().all().map(|(number, device)| memory_of(number, &device)).collect();
        all.sort_by_key(|gpu| gpu.number);
        all
    }

    /// Gives memory back that the open GPUs only keep for reuse, and says how many bytes that were.
    pub fn trim(&self) -> u64 {
        self.open().all().map(|(_, device)| device.trim()).sum()
    }

    /// Writes all runs on GPUs to a profile, also on GPUs that are opened later.
    ///
    /// # Errors
    /// Fails when this host has no GPU.
    pub fn observe<P: TimingObserver + 'static>(&self, profile: &Arc<P>) -> Result<(), String> {
        if galatea_gpu::devices().is_empty() {
            return Err("this host has no GPU".to_owned());
        }
        let mut open = self.open();
        let observer: Arc<dyn TimingObserver> = Arc::clone(profile) as Arc<dyn TimingObserver>;
        open.profile = Some(Arc::downgrade(&observer));
        open.all().for_each(|(_, device)| open.watch(&device));
        Ok(())
    }

    /// Captures the next runs of the GPU that is open and has the lowest number.
    ///
    /// # Errors
    /// Fails when no GPU is open, the file or the number of runs makes no sense, or the system captures nothing.
    pub fn capture(&self, capture: &GpuCapture) -> Result<(), String> {
        let first = self.open().all().min_by_key(|(number, _)| *number);
        let none = "no GPU is open, expected a model that has run on one before it is captured";
        let (_, device) = first.ok_or(none)?;
        let GpuCapture { file, runs } = capture.clone();
        let request = CaptureRequest { file, runs };
        device.start_capture(&request).map_err(|error| error.to_string())
    }

    /// Ends a capture, if it still goes on, and returns how many runs it waited for.
    pub fn stop_capture(&self, capture: &GpuCapture) -> u64 {
        let is_it = |device: &GpuDevice| {
            device.capture_progress().is_some_and(|found| found.file == capture.file)
        };
        let found = self.open().all().find(|(_, device)| is_it(device));
        found.and_then(|(_, device)| device.stop_capture()).map_or(0, |progress| progress.left)
    }

    /// Writes runs on GPUs to no profile any more.
    pub fn forget(&self) {
        let mut open = self.open();
        open.profile = None;
        open.all().for_each(|(_, device)| device.forget_observer());
    }

    /// Returns the peaks of an open GPU, if they were measured before.
    pub fn known_peaks(&self, number: usize) -> Option<DevicePeaks> {
        let (_, device) = self.open().all().find(|(known, _)| *known == number)?;
        device.known_peaks()
    }

    /// Measures what the open GPUs reach at most, about a second for each that was not measured before.
    pub fn measure_peaks(&self) {
        let all: Vec<(usize, Arc<GpuDevice>)> = self.open().all().collect();
        for (number, device) in all {
            if let Err(error) = device.peaks() {
                tracing::warn!("the peaks of GPU {number} are not known: {error}");
            }
        }
    }

    /// Returns the name of a GPU and its peaks, which are measured the first time.
    ///
    /// # Errors
    /// Fails when there is no such GPU, or it fails.
    pub fn peaks(&self, number: usize) -> Result<(String, DevicePeaks), String> {
        let device = self.device(number)?;
        let peaks = device.peaks().map_err(|error| error.to_string())?;
        Ok((device.capabilities().name.clone(), peaks))
    }
}

fn memory_of(number: usize, device: &GpuDevice) -> GpuMemory {
    let found = device.memory();
    let mut bytes = vec![
        ("used", found.used_bytes),
        ("kept", found.free_bytes),
        ("peak", found.peak_bytes),
        ("shared", found.host_bytes),
    ];
    bytes.extend(found.budget_bytes.map(|budget| ("budget", budget)));
    let reach = |reach| match reach {
        BufferReach::Device => "device",
        BufferReach::Passing => "passing",
        _ => "shared",
    };
    let classes = found.classes.into_iter().filter(|class| class.used + class.free > 0);
    let buffers = classes.map(|class| (reach(class.reach), class.bytes, class.used, class.free));
    let name = device.capabilities().name.clone();
    GpuMemory {
        lost_runs: device.counters.lost_runs.load(Ordering::Relaxed),
        number,
        name,
        bytes,
        buffers: buffers.collect(),
        prefetch: prefetch_of(device),
    }
}

fn prefetch_of(device: &GpuDevice) -> Option<GpuPrefetch> {
    let found = device.streams().prefetch;
    let made = GpuPrefetch {
        hits: found.hits,
        late: found.late,
        misses: found.misses,
        loaded_bytes: found.loaded_bytes,
        stall_ns: found.stall_ns,
        distance: found.distance,
    };
    (found.hits + found.late + found.misses > 0).then_some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn who_looks_at_a_lost_gpu_does_not_open_it_again() {
        if galatea_gpu::devices().is_empty() {
            eprintln!("skipped: this host has no GPU and no software one");
            return;
        }
        let pool = GpuPool::default();
        let first = pool.device(0).unwrap();
        pool.measure_use();
        first.give_up("pulled out");
        assert!(pool.memory().iter().any(|gpu| gpu.number == 0) && !pool.name(0).is_empty());
        assert_eq!(pool.uses().len(), 1);
        assert!(Arc::ptr_eq(&first.latest(), &first), "looking has opened it");
        // Whoever wants to work on it does.
        let second = pool.device(0).unwrap();
        assert!(second.alive().is_ok() && Arc::ptr_eq(&first.latest(), &second));
    }
}
