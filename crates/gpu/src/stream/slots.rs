//! Slots of device memory and the threads that fill them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use galatea_runtime::prefetch::{PrefetchLimits, PrefetchPolicy, PrefetchStatistics, Prefetcher};

use super::layout::{BlockSpot, StreamLayout};
use super::staging::StagingBuffer;
use crate::device::GpuDevice;
use crate::error::GpuError;
use crate::memory::DeviceBlock;

/// Threads that fill staging buffers: one alone does not read memory as fast as a bus takes it.
const THREADS: usize = 4;

/// The slots of a partition.
#[derive(Debug)]
pub(crate) struct StreamSlots {
    pub(crate) layout: Arc<StreamLayout>,
    shared: Arc<SharedSlots>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct SharedSlots {
    device: Arc<GpuDevice>,
    layout: Arc<StreamLayout>,
    slots: Vec<DeviceBlock>,
    state: Mutex<SlotsState>,
    /// Something was loaded, released or failed.
    changed: Condvar,
    start: Instant,
}

#[derive(Debug)]
struct SlotsState {
    policy: Prefetcher,
    slot_of: Vec<Option<usize>>,
    free: Vec<usize>,
    failed: Option<GpuError>,
    ended: bool,
}

/// A region to bring to a slot.
struct UploadJob {
    region: usize,
    slot: usize,
}

/// Reader of the statistics of slots, for code that does not use them; it keeps them alive.
#[derive(Debug)]
pub(super) struct SlotsWatch(Arc<SharedSlots>);

impl SlotsWatch {
    /// Bytes of weights that take turns.
    pub(super) fn streamed_bytes(&self) -> u64 {
        self.0.layout.streamed_bytes()
    }

    /// Bytes of device memory.
    pub(super) fn slot_bytes(&self) -> u64 {
        self.0.slots.iter().map(DeviceBlock::bytes).sum()
    }

    /// Returns the statistics of the prefetch policy.
    pub(super) fn statistics(&self) -> PrefetchStatistics {
        self.0.lock().policy.statistics()
    }
}

/// Regions that stay in their slots for as long as this lives.
pub(crate) struct HeldRegions<'a> {
    shared: &'a SharedSlots,
    /// Each region with its slot.
    regions: Vec<(usize, usize)>,
}

impl StreamSlots {
    /// Takes device memory for as many slots as there is room for.
    pub(super) fn start(
        device: &Arc<GpuDevice>,
        layout: StreamLayout,
        policy: PrefetchPolicy,
    ) -> Result<Self, GpuError> {
        let layout = Arc::new(layout);
        let mut slots = Vec::new();
        while slots.len() < layout.slots() {
            match DeviceBlock::lasting(device, layout.slot_bytes()) {
                Ok(slot) => slots.push(slot),
                Err(GpuError::Memory { .. }) if !slots.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        let bytes = layout.slot_bytes();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let [_, ahead] = policy.touches(device.shelves.ahead());
        let count = if ahead == 0 { 1 } else { THREADS.min(processors).min(slots.len()) };
        // Farther ahead than threads are at work nothing comes sooner, and what could have stayed from one
        // run to the next goes. Half of the slots are left for that.
        let most = (count + 2).min((slots.len() / 2).max(1));
        let [least_ahead, most_ahead] = policy.touches(ahead.min(most));
        let limits = PrefetchLimits {
            capacity_bytes: bytes * slots.len() as u64,
            flight_bytes: bytes * count as u64,
            most_ahead,
            least_ahead,
        };
        tracing::info!(
            weights = layout.streamed_bytes(),
            slots = slots.len(),
            slot_bytes = bytes,
            %policy,
            "weights beyond the GPU's memory are streamed"
        );
        let regions = layout.region_count();
        let state = SlotsState {
            policy: Prefetcher::new(&vec![bytes; regions], limits),
            slot_of: vec![None; regions],
            free: (0..slots.len()).rev().collect(),
            failed: None,
            ended: false,
        };
        let shared = Arc::new(SharedSlots {
            device: Arc::clone(device),
            layout: Arc::clone(&layout),
            slots,
            state: Mutex::new(state),
            changed: Condvar::new(),
            start: Instant::now(),
        });
        let spawn = |_| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("gpu-stream".into())
                .spawn(move || shared.work())
                .map_err(|error| GpuError::Shelf(format!("no thread reads weights: {error}")))
        };
        let threads = (0..count).map(spawn).collect::<Result<_, _>>()?;
        Ok(Self { layout, shared, threads })
    }

    /// Returns a reader of their statistics.
    pub(super) fn watch(&self) -> SlotsWatch {
        SlotsWatch(Arc::clone(&self.shared))
    }

    /// Waits until regions are on the device, or on their way in the queue, and keeps them there.
    ///
    /// # Errors
    /// Fails when one cannot be brought, or there are more than slots.
    pub(crate) fn hold(&self, regions: &[usize]) -> Result<HeldRegions<'_>, GpuError> {
        let shared = &*self.shared;
        if regions.len() > shared.slots.len() {
            let bytes = self.layout.slot_bytes() * regions.len() as u64;
            let have = self.watch().slot_bytes();
            let reason = format!("weights of one step are streamed through {have} bytes");
            return Err(GpuError::Memory { bytes, reason });
        }
        let mut state = shared.lock();
        let now = shared.now();
        for &region in regions {
            state.policy.touch(region, now);
        }
        shared.changed.notify_all();
        loop {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            if regions.iter().all(|&region| state.policy.is_near(region)) {
                break;
            }
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let held = regions.iter().filter_map(|&region| Some((region, state.slot_of[region]?)));
        Ok(HeldRegions { shared, regions: held.collect() })
    }

    /// The buffer that holds a block, and where the block starts in it.
    pub(crate) fn find<'a>(
        &'a self,
        block: &Arc<DeviceBlock>,
        held: Option<&HeldRegions<'_>>,
    ) -> Option<(&'a wgpu::Buffer, u64)> {
        match self.layout.spot(block)? {
            BlockSpot::Stays(own) => Some((&own.buffer, 0)),
            BlockSpot::Region(region, offset) => {
                let (_, slot) = held?.regions.iter().find(|(held, _)| held == region)?;
                Some((&self.shared.slots[*slot].buffer, *offset))
            }
        }
    }
}

impl Drop for StreamSlots {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // One that failed has said so.
            drop(thread.join());
        }
    }
}

impl Drop for HeldRegions<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        for (region, _) in &self.regions {
            state.policy.release(*region);
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl SharedSlots {
    fn lock(&self) -> MutexGuard<'_, SlotsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Loads until the end.
    fn work(&self) {
        let mut staging = None;
        while let Some(job) = self.next_job() {
            let brought = self.bring(&job, &mut staging);
            let mut state = self.lock();
            match brought {
                Ok(()) => state.policy.loaded(job.region, self.now()),
                Err(error) => {
                    state.policy.failed(job.region);
                    state.failed = Some(error);
                }
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Waits for something to load; none at the end.
    fn next_job(&self) -> Option<UploadJob> {
        let mut state = self.lock();
        loop {
            if state.ended || state.failed.is_some() {
                return None;
            }
            let SlotsState { policy, slot_of, free, .. } = &mut *state;
            if let Some(load) = policy.next_load(self.now()) {
                free.extend(load.evicted.iter().filter_map(|&gone| slot_of[gone].take()));
                let slot = free.pop()?;
                slot_of[load.region] = Some(slot);
                return Some(UploadJob { region: load.region, slot });
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Brings a region to its slot.
    fn bring(&self, job: &UploadJob, staging: &mut Option<StagingBuffer>) -> Result<(), GpuError> {
        let mut own = match staging.take() {
            Some(own) => own,
            None => StagingBuffer::new(&self.device, self.layout.slot_bytes())?,
        };
        own.copy(&self.device, self.layout.region(job.region), &self.slots[job.slot])?;
        *staging = Some(own);
        Ok(())
    }
}
