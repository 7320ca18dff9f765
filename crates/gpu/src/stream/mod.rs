//! Models whose weights are more than the device has room for.
//!
//! Weights that lie on a [`WeightResidency`](crate::buffers::WeightResidency) are brought to slots of device memory before the
//! dispatches that read them: [`layout`] makes regions of them, the policy of
//! [`galatea_runtime::prefetch`] says which comes next and what goes for it, and threads of
//! [`slots`] fill staging buffers and hand copies over. The queue keeps the order: a copy to a slot comes
//! behind whatever was handed over before and reads the slot.

mod layout;
mod pages;
mod slots;
mod staging;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use galatea_runtime::prefetch::{PrefetchPolicy, PrefetchStatistics};

use self::layout::StreamLayout;
pub(crate) use self::pages::ConstantPages;
use self::slots::SlotsWatch;
pub(crate) use self::slots::{HeldRegions, StreamSlots};
pub use crate::buffers::StreamStatistics;
use crate::buffers::WeightStream;
use crate::device::GpuDevice;
use crate::error::GpuError;
use crate::memory::DeviceBlock;

/// Streamer of the weights of one partition; one run at a time submits its commands.
#[derive(Debug)]
pub(crate) struct WeightStreamer {
    device: Arc<GpuDevice>,
    policy: PrefetchPolicy,
    active: Mutex<Option<StreamSlots>>,
    counted: Mutex<StreamCounts>,
}

/// Statistics, which can be read while a run has the slots.
#[derive(Debug, Default)]
struct StreamCounts {
    /// Statistics of slots that are gone.
    past: PrefetchStatistics,
    now: Option<SlotsWatch>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WeightStreamer {
    pub(crate) fn new(device: &Arc<GpuDevice>, policy: PrefetchPolicy) -> Arc<Self> {
        let (active, counted) = Default::default();
        let made = Arc::new(Self { device: Arc::clone(device), policy, active, counted });
        let mut all = lock(&device.shelves.streams);
        all.retain(|one| one.strong_count() > 0);
        let stream: Weak<Self> = Arc::downgrade(&made);
        all.push(stream);
        drop(all);
        made
    }

    /// The slots for a run that needs these blocks, in this order; no other run has them meanwhile.
    ///
    /// # Errors
    /// Fails when there is no room even for the largest.
    pub(crate) fn ready(&self, blocks: &[Arc<DeviceBlock>]) -> Result<StreamedRun<'_>, GpuError> {
        let mut active = lock(&self.active);
        if !active.as_ref().is_some_and(|slots| slots.layout.has(blocks)) {
            let known = active.as_ref().map(|slots| slots.layout.blocks()).unwrap_or_default();
            self.end(&mut active);
            let mut all: Vec<Arc<DeviceBlock>> = known;
            for block in blocks {
                if !all.iter().any(|known| Arc::ptr_eq(known, block)) {
                    all.push(Arc::clone(block));
                }
            }
            let layout = StreamLayout::new(all, room(&self.device), &self.device)?;
            let slots = StreamSlots::start(&self.device, layout, self.policy)?;
            lock(&self.counted).now = Some(slots.watch());
            *active = Some(slots);
        }
        Ok(StreamedRun { streamer: self, active })
    }

    fn end(&self, active: &mut Option<StreamSlots>) -> bool {
        let Some(slots) = active.take() else { return false };
        let mut counted = lock(&self.counted);
        counted.past = counted.past.plus(slots.watch().statistics());
        counted.now = None;
        true
    }

    /// Gives the slots back until the next run, and says whether there were any.
    pub(crate) fn clear(&self) -> bool {
        self.end(&mut lock(&self.active))
    }
}

impl WeightStream for WeightStreamer {
    fn statistics(&self) -> StreamStatistics {
        let counted = lock(&self.counted);
        match &counted.now {
            Some(now) => StreamStatistics {
                streamed_bytes: now.streamed_bytes(),
                slot_bytes: now.slot_bytes(),
                prefetch: counted.past.plus(now.statistics()),
            },
            None => StreamStatistics { prefetch: counted.past, ..StreamStatistics::default() },
        }
    }
}

impl Drop for WeightStreamer {
    fn drop(&mut self) {
        self.clear();
        let mut ended = lock(&self.device.shelves.ended);
        // What is no more has no distance.
        *ended = PrefetchStatistics { distance: 0, ..ended.plus(lock(&self.counted).past) };
    }
}

/// Bytes that slots may take: what runs have not taken yet, less some for longer ones.
fn room(device: &GpuDevice) -> u64 {
    let memory = device.memory();
    match memory.budget_bytes {
        Some(budget) => budget.saturating_sub(memory.used_bytes).saturating_sub(budget / 16),
        // A device that does not say what it has was full when as much was in use.
        None => memory.peak_bytes / 4,
    }
}

/// The slots of one run.
pub(crate) struct StreamedRun<'a> {
    streamer: &'a WeightStreamer,
    active: MutexGuard<'a, Option<StreamSlots>>,
}

impl StreamedRun<'_> {
    /// The slots.
    pub(crate) fn slots(&self) -> Option<&StreamSlots> {
        self.active.as_ref()
    }

    /// Ends the slots after something failed: nobody knows what they hold.
    pub(crate) fn abandon(mut self) {
        self.streamer.end(&mut self.active);
    }
}
