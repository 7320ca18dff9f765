//! A program with GPUs: open devices are shared by all sessions, and watched where somebody asks for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use galatea_gpu::{BufferReach, GpuDevice, MemoryLimit, PoolConfig, TimingObserver};
use galatea_runtime::DevicePeaks;

use super::{GpuMemory, GpuPrefetch, GpuUse};
use crate::memory_limit::MemoryBound;
use crate::profile::RunningProfile;

/// Open devices, and what is done with those that are opened later.
struct OpenGpus {
    /// All sessions on a GPU share its compiled kernels.
    devices: Vec<(usize, Weak<GpuDevice>)>,
    profile: Option<Weak<RunningProfile>>,
    measured: bool,
    /// Limit on the memory of a GPU.
    limit: Option<MemoryLimit>,
}

static OPEN: Mutex<OpenGpus> =
    Mutex::new(OpenGpus { devices: Vec::new(), profile: None, measured: false, limit: None });

impl OpenGpus {
    fn get() -> MutexGuard<'static, Self> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.devices.retain(|(_, device)| device.strong_count() > 0);
        open
    }

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
        let observer: Arc<dyn TimingObserver> = profile;
        if let Err(error) = device.observe(observer) {
            tracing::warn!("--metal-profile: {error}");
        }
    }
}

/// The device with this number, opened if it is not, and again if it was lost.
///
/// # Errors
/// Fails when there is no such device.
pub(crate) fn device(number: usize) -> Result<Arc<GpuDevice>, String> {
    let mut open = OpenGpus::get();
    if let Some((_, device)) = open.all().find(|(known, _)| *known == number) {
        return Ok(device.living().unwrap_or(device));
    }
    let pool = PoolConfig::default();
    let pool = open.limit.map_or(pool.clone(), |limit| pool.limited(limit));
    let device = GpuDevice::open_with(number, &pool).map_err(|error| error.to_string())?;
    open.watch(&device);
    open.devices.push((number, Arc::downgrade(&device)));
    Ok(device)
}

/// Lets models take no more of the memory of GPUs that are opened from now on, or all of it that they recommend.
#[allow(clippy::unnecessary_wraps, reason = "a program without GPUs refuses a limit")]
pub(crate) fn limit_memory(limit: Option<MemoryBound>) -> Result<(), String> {
    OpenGpus::get().limit = limit.map(|limit| match limit {
        MemoryBound::Bytes(bytes) => MemoryLimit::Bytes(bytes),
        MemoryBound::Percent(percent) => MemoryLimit::Percent(percent),
    });
    Ok(())
}

/// The name of an open device.
pub(crate) fn name(number: usize) -> String {
    let found = OpenGpus::get().all().find(|(known, _)| *known == number);
    found.map(|(_, device)| device.capabilities().name.clone()).unwrap_or_default()
}

/// Measures from now on how busy GPUs are, those too that are opened later.
pub(crate) fn measure_use() {
    let mut open = OpenGpus::get();
    open.measured = true;
    open.all().for_each(|(_, device)| device.measure_use());
}

/// Returns the activity of the open GPUs that are measured.
pub(crate) fn uses() -> Vec<GpuUse> {
    let of = |(number, device): (usize, Arc<GpuDevice>)| {
        let usage = device.usage()?;
        let name = device.capabilities().name.clone();
        Some(GpuUse { number, name, busy: usage.busy, bytes: usage.work.bytes })
    };
    OpenGpus::get().all().filter_map(of).collect()
}

/// Memory of the GPUs that are open, in the order of their numbers.
pub(crate) fn memory() -> Vec<GpuMemory> {
    let mut all: Vec<GpuMemory> =
        OpenGpus::get().all().map(|(number, device)| memory_of(number, &device)).collect();
    all.sort_by_key(|gpu| gpu.number);
    all
}

/// Gives memory back that the open GPUs only keep for reuse, and says how many bytes that were.
pub(crate) fn trim() -> u64 {
    OpenGpus::get().all().map(|(_, device)| device.trim()).sum()
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
    GpuMemory { number, name, bytes, buffers: buffers.collect(), prefetch: prefetch_of(device) }
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

/// Writes all runs on GPUs to a profile, also on GPUs that are opened later.
///
/// # Errors
/// Fails when this host has no GPU.
pub(crate) fn observe(profile: &Arc<RunningProfile>) -> Result<(), String> {
    if galatea_gpu::devices().is_empty() {
        return Err("this host has no GPU".to_owned());
    }
    let mut open = OpenGpus::get();
    open.profile = Some(Arc::downgrade(profile));
    open.all().for_each(|(_, device)| open.watch(&device));
    Ok(())
}

/// Writes runs on GPUs to no profile any more.
pub(crate) fn forget() {
    let mut open = OpenGpus::get();
    open.profile = None;
    open.all().for_each(|(_, device)| device.forget_observer());
}

/// Returns the peaks of an open GPU, if they were measured before.
pub(crate) fn known_peaks(number: usize) -> Option<DevicePeaks> {
    let (_, device) = OpenGpus::get().all().find(|(known, _)| *known == number)?;
    device.known_peaks()
}

/// Measures what the open GPUs reach at most, about a second for each that was not measured before.
pub(crate) fn measure_peaks() {
    let all: Vec<(usize, Arc<GpuDevice>)> = OpenGpus::get().all().collect();
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
pub(crate) fn peaks(number: usize) -> Result<(String, DevicePeaks), String> {
    let device = device(number)?;
    let peaks = device.peaks().map_err(|error| error.to_string())?;
    Ok((device.capabilities().name.clone(), peaks))
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
        let first = device(0).unwrap();
        measure_use();
        first.give_up("pulled out");
        assert!(memory().iter().any(|gpu| gpu.number == 0) && !name(0).is_empty());
        assert_eq!(uses().len(), 1);
        assert!(Arc::ptr_eq(&first.latest(), &first), "looking has opened it");
        // Whoever wants to work on it does.
        let second = device(0).unwrap();
        assert!(second.alive().is_ok() && Arc::ptr_eq(&first.latest(), &second));
    }
}
