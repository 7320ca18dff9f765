//! A program with GPUs: open devices are shared by all sessions, and watched where somebody asks for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use galatea_gpu::{Device, MemoryLimit, Observer, PoolConfig, Reach};
use galatea_runtime::Peaks;

use super::{GpuMemory, GpuPrefetch, GpuUse};
use crate::memory_limit::Limit;
use crate::profile::Profile;

/// Open devices, and what is done with those that are opened later.
struct Open {
    /// All sessions on a GPU share its compiled kernels.
    devices: Vec<(usize, Weak<Device>)>,
    profile: Option<Weak<Profile>>,
    measured: bool,
    /// How much of a GPU's memory may be taken.
    limit: Option<MemoryLimit>,
}

static OPEN: Mutex<Open> =
    Mutex::new(Open { devices: Vec::new(), profile: None, measured: false, limit: None });

impl Open {
    fn get() -> MutexGuard<'static, Self> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.devices.retain(|(_, device)| device.strong_count() > 0);
        open
    }

    /// The devices as they are now. One that was lost stays lost: whoever only looks opens nothing.
    fn all(&self) -> impl Iterator<Item = (usize, Arc<Device>)> + '_ {
        let open =
            |(number, device): &(usize, Weak<Device>)| Some((*number, device.upgrade()?.latest()));
        self.devices.iter().filter_map(open)
    }

    fn watch(&self, device: &Device) {
        if self.measured {
            device.measure_use();
        }
        let Some(profile) = self.profile.as_ref().and_then(Weak::upgrade) else { return };
        let observer: Arc<dyn Observer> = profile;
        if let Err(error) = device.observe(observer) {
            tracing::warn!("--metal-profile: {error}");
        }
    }
}

/// The device with this number, opened if it is not, and again if it was lost.
///
/// # Errors
/// When there is none.
pub(crate) fn device(number: usize) -> Result<Arc<Device>, String> {
    let mut open = Open::get();
    if let Some((_, device)) = open.all().find(|(known, _)| *known == number) {
        return Ok(device.living().unwrap_or(device));
    }
    let pool = PoolConfig::default();
    let pool = open.limit.map_or(pool.clone(), |limit| pool.limited(limit));
    let device = Device::open_with(number, &pool).map_err(|error| error.to_string())?;
    open.watch(&device);
    open.devices.push((number, Arc::downgrade(&device)));
    Ok(device)
}

/// Lets models take no more of the memory of GPUs that are opened from now on, or all of it that they recommend.
#[allow(clippy::unnecessary_wraps, reason = "a program without GPUs refuses a limit")]
pub(crate) fn limit_memory(limit: Option<Limit>) -> Result<(), String> {
    Open::get().limit = limit.map(|limit| match limit {
        Limit::Bytes(bytes) => MemoryLimit::Bytes(bytes),
        Limit::Percent(percent) => MemoryLimit::Percent(percent),
    });
    Ok(())
}

/// The name of an open device.
pub(crate) fn name(number: usize) -> String {
    let found = Open::get().all().find(|(known, _)| *known == number);
    found.map(|(_, device)| device.capabilities().name.clone()).unwrap_or_default()
}

/// Measures from now on how busy GPUs are, those too that are opened later.
pub(crate) fn measure_use() {
    let mut open = Open::get();
    open.measured = true;
    open.all().for_each(|(_, device)| device.measure_use());
}

/// How busy the open GPUs were, where that is measured.
pub(crate) fn uses() -> Vec<GpuUse> {
    let of = |(number, device): (usize, Arc<Device>)| {
        let (usage, name) = (device.usage()?, device.capabilities().name.clone());
        Some(GpuUse { number, name, busy: usage.busy, bytes: usage.work.bytes })
    };
    Open::get().all().filter_map(of).collect()
}

/// Memory of the GPUs that are open, in the order of their numbers.
pub(crate) fn memory() -> Vec<GpuMemory> {
    let mut all: Vec<GpuMemory> =
        Open::get().all().map(|(number, device)| memory_of(number, &device)).collect();
    all.sort_by_key(|gpu| gpu.number);
    all
}

/// Gives memory back that the open GPUs only keep for reuse, and says how many bytes that were.
pub(crate) fn trim() -> u64 {
    Open::get().all().map(|(_, device)| device.trim()).sum()
}

fn memory_of(number: usize, device: &Device) -> GpuMemory {
    let found = device.memory();
    let mut bytes = vec![
        ("used", found.used_bytes),
        ("kept", found.free_bytes),
        ("peak", found.peak_bytes),
        ("shared", found.host_bytes),
    ];
    bytes.extend(found.budget_bytes.map(|budget| ("budget", budget)));
    let reach = |reach| match reach {
        Reach::Device => "device",
        Reach::Passing => "passing",
        _ => "shared",
    };
    let classes = found.classes.into_iter().filter(|class| class.used + class.free > 0);
    let buffers = classes.map(|class| (reach(class.reach), class.bytes, class.used, class.free));
    let name = device.capabilities().name.clone();
    GpuMemory { number, name, bytes, buffers: buffers.collect(), prefetch: prefetch_of(device) }
}

fn prefetch_of(device: &Device) -> Option<GpuPrefetch> {
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

/// Writes all runs on GPUs to a profile, those too that are opened later.
///
/// # Errors
/// When this host has none.
pub(crate) fn observe(profile: &Arc<Profile>) -> Result<(), String> {
    if galatea_gpu::devices().is_empty() {
        return Err("this host has no GPU".to_owned());
    }
    let mut open = Open::get();
    open.profile = Some(Arc::downgrade(profile));
    open.all().for_each(|(_, device)| open.watch(&device));
    Ok(())
}

/// Writes runs on GPUs to no profile any more.
pub(crate) fn forget() {
    let mut open = Open::get();
    open.profile = None;
    open.all().for_each(|(_, device)| device.forget_observer());
}

/// What an open GPU reaches at most, where that was measured before.
pub(crate) fn known_peaks(number: usize) -> Option<Peaks> {
    let (_, device) = Open::get().all().find(|(known, _)| *known == number)?;
    device.known_peaks()
}

/// Measures what the open GPUs reach at most, about a second for each that was not measured before.
pub(crate) fn measure_peaks() {
    let all: Vec<(usize, Arc<Device>)> = Open::get().all().collect();
    for (number, device) in all {
        if let Err(error) = device.peaks() {
            tracing::warn!("the peaks of GPU {number} are not known: {error}");
        }
    }
}

/// The name of a GPU and what it reaches at most: measured the first time.
///
/// # Errors
/// When there is no such GPU, or it fails.
pub(crate) fn peaks(number: usize) -> Result<(String, Peaks), String> {
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
