//! Buffers by size, kept for reuse, within a budget.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::budget::MemoryBudget;
use super::{ResidencyPolicy, STEP};
use crate::error::GpuError;

/// One size of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolClass {
    /// Bytes of each; a multiple of 256.
    pub bytes: u64,
    /// Number of buffers that are made when the device is opened.
    pub initial: usize,
    /// Most buffers that the pool has, used ones included; more are made and given back one by one.
    pub most: usize,
}

/// Side that addresses a buffer: the device, the CPU or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BufferReach {
    /// The device alone.
    Device,
    /// The processor too, of the device's own memory.
    Host,
    /// Both, for inputs and outputs that pass: no part of the budget.
    Passing,
}

/// Limit on the use of a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLimit {
    /// Limit in bytes.
    Bytes(u64),
    /// Limit in percent of what the device recommends.
    Percent(u64),
}

/// The sizes that a pool keeps, and what else a device is told when it is opened or configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    classes: Vec<PoolClass>,
    limit: Option<MemoryLimit>,
    spill_folder: Option<PathBuf>,
    ahead: Option<usize>,
    unified_bytes: Option<u64>,
    binding_bytes: Option<u64>,
    submission: Option<Duration>,
}

impl Default for PoolConfig {
    /// Powers of two from 64 KiB to 1 GiB, none made beforehand, within what the device recommends.
    fn default() -> Self {
        let most = Self::USUAL_MOST;
        let class = |power: u32| PoolClass { bytes: 1 << power, initial: 0, most };
        Self {
            classes: (16..=30).map(class).collect(),
            limit: None,
            spill_folder: None,
            ahead: None,
            unified_bytes: None,
            binding_bytes: None,
            submission: None,
        }
    }
}

impl PoolConfig {
    /// Buffers of a size that are kept at most, where nobody says how many.
    pub(crate) const USUAL_MOST: usize = 8;

    /// The bytes of all sizes.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        self.classes.iter().map(|class| class.bytes).collect()
    }

    /// Returns the number of buffers of each size that are made at once, and the most that are kept.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> Vec<(usize, usize)> {
        self.classes.iter().map(|class| (class.initial, class.most)).collect()
    }

    /// Classes of these sizes in bytes, with how many of each are made at once and kept at most. Absent lists are
    /// none at once and at most 8.
    ///
    /// # Errors
    /// Fails when sizes do not grow, the lists differ in length, or more are made at once than are kept.
    pub fn new(sizes: &[u64], initial: &[usize], most: &[usize]) -> Result<Self, String> {
        for (name, list) in [("initial_pool_sizes", initial), ("max_pool_sizes", most)] {
            if !list.is_empty() && list.len() != sizes.len() {
                return Err(format!(
                    "{name} has {} counts, expected one for each of {} memory_pool_sizes",
                    list.len(),
                    sizes.len()
                ));
            }
        }
        let mut classes: Vec<PoolClass> = Vec::with_capacity(sizes.len());
        for (at, &bytes) in sizes.iter().enumerate() {
            let before = classes.last().map_or(0, |class: &PoolClass| class.bytes);
            let size = bytes.checked_next_multiple_of(STEP).unwrap_or(u64::MAX);
            if size <= before || bytes == 0 {
                return Err(format!("memory_pool_sizes {sizes:?}, expected sizes that grow"));
            }
            let count = |list: &[usize], absent| list.get(at).copied().unwrap_or(absent);
            let class = PoolClass {
                bytes: size,
                initial: count(initial, 0),
                most: count(most, Self::USUAL_MOST),
            };
            if class.initial > class.most {
                return Err(format!(
                    "initial_pool_sizes has {} of {bytes} bytes, more than the {} of max_pool_sizes",
                    class.initial, class.most
                ));
            }
            classes.push(class);
        }
        Ok(Self { classes, ..Self::default() })
    }

    /// The same with a budget of its own in place of what the device recommends.
    #[must_use]
    pub fn within(self, budget_bytes: u64) -> Self {
        self.limited(MemoryLimit::Bytes(budget_bytes))
    }

    /// Works like [`PoolConfig::within`], with a limit of any kind.
    #[must_use]
    pub fn limited(self, limit: MemoryLimit) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// The same with packed weights that do not fit in a file in this folder, in place of the system's for such
    /// files.
    #[must_use]
    pub fn spilling_to(self, folder: &Path) -> Self {
        Self { spill_folder: Some(folder.to_path_buf()), ..self }
    }

    /// The same with weights that do not fit brought so many touches ahead at most; 0 brings them when
    /// they are needed.
    #[must_use]
    pub fn reading_ahead(self, most: usize) -> Self {
        Self { ahead: Some(most), ..self }
    }

    /// The same on a device that shows a kernel at most so many bytes of a value, where it shows more by itself.
    #[must_use]
    pub fn showing(self, bytes: u64) -> Self {
        Self { binding_bytes: Some(bytes), ..self }
    }

    /// The most bytes that a kernel sees of a value, on a device that shows so many.
    pub(crate) fn binding_bytes(&self, shown: u64) -> u64 {
        self.binding_bytes.map_or(shown, |bytes| bytes.min(shown))
    }

    /// Creates the shelves for weights, within so many bytes.
    pub(crate) fn shelves(&self, budget_bytes: Option<u64>) -> ResidencyPolicy {
        ResidencyPolicy::new(self.spill_folder.clone(), self.ahead, budget_bytes)
    }

    /// Bytes that may be taken of a device that recommends so many.
    ///
    /// # Errors
    /// Fails when the limit is a share and the device recommends nothing.
    pub(crate) fn budget_bytes(&self, recommended: Option<u64>) -> Result<Option<u64>, GpuError> {
        match (self.limit, recommended) {
            (None, recommended) => Ok(recommended),
            (Some(MemoryLimit::Bytes(bytes)), _) => Ok(Some(bytes)),
            (Some(MemoryLimit::Percent(percent)), Some(whole)) => {
                Ok(Some((whole / 100).saturating_mul(percent)))
            }
            (Some(MemoryLimit::Percent(percent)), None) => Err(GpuError::Refusal(format!(
                "{percent}% of its memory may be taken, but the device does not say how much it has"
            ))),
        }
    }

    /// The same, with submissions that are predicted to take at most so long.
    #[must_use]
    pub fn submitting(self, bound: Duration) -> Self {
        Self { submission: Some(bound), ..self }
    }

    /// Returns the predicted time of a submission at most, if one was set.
    pub(crate) fn submission(&self) -> Option<Duration> {
        self.submission
    }

    /// Bytes that may be taken, where the limit says so by itself.
    pub(crate) fn limit_bytes(&self) -> Option<u64> {
        match self.limit {
            Some(MemoryLimit::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// The same with unified memory, where the device has it, for buffers of at most so many bytes; without this
    /// for all. With 0 everything is copied as on a device that has memory of its own.
    #[must_use]
    pub fn unified_up_to(self, bytes: u64) -> Self {
        Self { unified_bytes: Some(bytes), ..self }
    }

    pub(crate) fn unified_bytes(&self) -> u64 {
        self.unified_bytes.unwrap_or(u64::MAX)
    }
}

/// Memory of a device at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatistics {
    /// Bytes of the device in use.
    pub used_bytes: u64,
    /// Bytes that are kept for reuse.
    pub free_bytes: u64,
    /// The most bytes in use so far.
    pub peak_bytes: u64,
    /// Limit on the bytes in use; `None` if the device does not state one.
    pub budget_bytes: Option<u64>,
    /// Buffers in use.
    pub buffers: u64,
    /// Requests that a kept buffer served, and such that made a new one.
    pub reused: u64,
    /// See `reused`.
    pub made: u64,
    /// Times that kept buffers were given back to make room.
    pub trims: u64,
    /// Bytes in use that the CPU addresses too.
    pub host_bytes: u64,
    /// Every class, for the device alone and for the processor too.
    pub classes: Vec<ClassStatistics>,
}

/// A class of buffers at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassStatistics {
    /// Side that addresses the buffers.
    pub reach: BufferReach,
    /// Bytes of each.
    pub bytes: u64,
    /// Number of buffers in use.
    pub used: usize,
    /// Number of free buffers that are kept.
    pub free: usize,
}

/// The buffers of one class.
struct BufferClass<B> {
    reach: BufferReach,
    config: PoolClass,
    free: Vec<B>,
    used: usize,
}

struct PoolState<B> {
    classes: Vec<BufferClass<B>>,
    statistics: MemoryStatistics,
}

/// A pool of buffers of type `B`, which it makes by a function that it is given each time.
pub(crate) struct BufferPool<B> {
    state: Mutex<PoolState<B>>,
    budget: MemoryBudget,
    /// True if memory that the CPU addresses is the device's.
    unified: bool,
}

impl<B> std::fmt::Debug for BufferPool<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("statistics", &self.statistics()).finish()
    }
}

/// A buffer that was taken, with what the pool must know when it comes back.
#[derive(Debug)]
pub(crate) struct TakenBuffer<B> {
    pub(crate) buffer: B,
    pub(crate) place: BufferClassKey,
}

/// Class and kind of memory that a buffer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferClassKey {
    pub(crate) bytes: u64,
    reach: BufferReach,
    class: Option<usize>,
}

/// Request for a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferRequest {
    pub(crate) bytes: u64,
    pub(crate) reach: BufferReach,
}

impl<B> BufferPool<B> {
    /// A pool of these classes within a budget.
    pub(crate) fn new(config: &PoolConfig, budget_bytes: Option<u64>, unified: bool) -> Self {
        let mut state = PoolState { classes: Vec::new(), statistics: MemoryStatistics::default() };
        state.extend(config);
        Self { state: Mutex::new(state), budget: MemoryBudget::new(budget_bytes), unified }
    }

    /// Lets no more bytes be taken than these from now on; what is taken stays.
    pub(crate) fn limit(&self, bytes: u64) {
        self.budget.limit(bytes);
    }

    fn lock(&self) -> MutexGuard<'_, PoolState<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds classes. Where there is one of that size, the larger counts hold.
    pub(crate) fn extend(&self, config: &PoolConfig) {
        self.lock().extend(config);
    }

    /// Makes the buffers that are wanted from the start, where `reach` says who addresses those of a size.
    pub(crate) fn fill(
        &self,
        reach: impl Fn(u64) -> BufferReach,
        make: impl Fn(BufferRequest) -> Result<B, GpuError>,
    ) -> Result<(), GpuError> {
        let state = &mut *self.lock();
        for class in &mut state.classes {
            let BufferClass { reach: own, config, .. } = *class;
            while reach(config.bytes) == own && class.used + class.free.len() < config.initial {
                class.free.push(make(BufferRequest { bytes: config.bytes, reach: own })?);
                state.statistics.free_bytes += config.bytes;
            }
        }
        Ok(())
    }

    /// A buffer of at least so many bytes: one that is kept, or a new one of its class.
    pub(crate) fn take(
        &self,
        wanted: BufferRequest,
        make: impl Fn(BufferRequest) -> Result<B, GpuError>,
    ) -> Result<TakenBuffer<B>, GpuError> {
        let BufferRequest { bytes, reach } = wanted;
        let mut state = self.lock();
        let fits = |class: &BufferClass<B>| class.reach == reach && class.config.bytes >= bytes;
        let fitting = (0..state.classes.len()).filter(|&at| fits(&state.classes[at]));
        let class = fitting.min_by_key(|&at| state.classes[at].config.bytes);
        if let Some(index) = class
            && let Some(buffer) = state.classes[index].free.pop()
        {
            let place = BufferClassKey { bytes: state.classes[index].config.bytes, reach, class };
            state.classes[index].used += 1;
            state.statistics.free_bytes -= place.bytes;
            state.statistics.reused += 1;
            state.count(place, self.unified);
            return Ok(TakenBuffer { buffer, place });
        }
        let room = self.budget.bytes().filter(|_| self.counts(reach));
        let room = room.map(|budget| budget.saturating_sub(state.statistics.used_bytes));
        let class = class.filter(|&index| {
            let class = &state.classes[index];
            // Where the class has too much for what is left, what is asked for may be less.
            class.used < class.config.most && room.is_none_or(|room| class.config.bytes <= room)
        });
        let bytes = class.map_or(bytes, |index| state.classes[index].config.bytes);
        drop(state);
        let place = BufferClassKey { bytes, reach, class };
        let buffer = self.make(place, make)?;
        if let Some(index) = class {
            self.lock().classes[index].used += 1;
        }
        Ok(TakenBuffer { buffer, place })
    }

    /// A buffer of just so many bytes, which is given back and not kept.
    pub(crate) fn take_exact(
        &self,
        wanted: BufferRequest,
        make: impl Fn(BufferRequest) -> Result<B, GpuError>,
    ) -> Result<TakenBuffer<B>, GpuError> {
        let place = BufferClassKey { bytes: wanted.bytes, reach: wanted.reach, class: None };
        let buffer = self.make(place, make)?;
        Ok(TakenBuffer { buffer, place })
    }

    /// Returns whether such memory counts towards the device's budget.
    fn counts(&self, reach: BufferReach) -> bool {
        reach == BufferReach::Device || reach == BufferReach::Host && self.unified
    }

    /// Makes a buffer; where there is no room, what is kept goes first.
    fn make(
        &self,
        place: BufferClassKey,
        make: impl Fn(BufferRequest) -> Result<B, GpuError>,
    ) -> Result<B, GpuError> {
        let BufferClassKey { bytes, reach, .. } = place;
        let mut state = self.lock();
        if let Some(budget) = self.budget.bytes().filter(|_| self.counts(reach)) {
            let used = state.statistics.used_bytes;
            if used.saturating_add(bytes) > budget {
                let reason = format!("{used} of the {budget} that may be taken are in use");
                return Err(GpuError::Memory { bytes, reason });
            }
            if used.saturating_add(state.statistics.free_bytes).saturating_add(bytes) > budget {
                state.trim();
            }
        }
        let mut made = make(BufferRequest { bytes, reach });
        if matches!(made, Err(GpuError::Memory { .. })) && state.statistics.free_bytes > 0 {
            state.trim();
            made = make(BufferRequest { bytes, reach });
        }
        let buffer = made?;
        state.statistics.made += 1;
        state.count(place, self.unified);
        Ok(buffer)
    }

    /// Takes a buffer back, and keeps it where its class has room.
    pub(crate) fn give_back(&self, buffer: B, place: BufferClassKey) {
        let counts = self.counts(place.reach);
        let state = &mut *self.lock();
        let statistics = &mut state.statistics;
        if counts {
            statistics.used_bytes = statistics.used_bytes.saturating_sub(place.bytes);
        }
        if place.reach != BufferReach::Device {
            statistics.host_bytes = statistics.host_bytes.saturating_sub(place.bytes);
        }
        statistics.buffers = statistics.buffers.saturating_sub(1);
        let Some(class) = place.class.and_then(|index| state.classes.get_mut(index)) else {
            return;
        };
        class.used = class.used.saturating_sub(1);
        if class.used + class.free.len() < class.config.most {
            class.free.push(buffer);
            state.statistics.free_bytes += place.bytes;
        }
    }

    /// Gives everything back that is kept, and says how many bytes that were.
    pub(crate) fn trim(&self) -> u64 {
        self.lock().trim()
    }

    pub(crate) fn statistics(&self) -> MemoryStatistics {
        let state = self.lock();
        let class = |class: &BufferClass<B>| ClassStatistics {
            reach: class.reach,
            bytes: class.config.bytes,
            used: class.used,
            free: class.free.len(),
        };
        let classes = state.classes.iter().map(class).collect();
        let budget_bytes = self.budget.bytes();
        MemoryStatistics { classes, budget_bytes, ..state.statistics.clone() }
    }
}

impl<B> PoolState<B> {
    fn extend(&mut self, config: &PoolConfig) {
        for reach in [BufferReach::Device, BufferReach::Host, BufferReach::Passing] {
            for &config in &config.classes {
                let same = |class: &&mut BufferClass<B>| {
                    class.reach == reach && class.config.bytes == config.bytes
                };
                match self.classes.iter_mut().find(same) {
                    Some(known) => {
                        known.config.initial = known.config.initial.max(config.initial);
                        known.config.most = known.config.most.max(config.most);
                    }
                    // Behind the others: who has a buffer knows its class by its place.
                    None => {
                        self.classes.push(BufferClass { reach, config, free: Vec::new(), used: 0 });
                    }
                }
            }
        }
    }

    fn count(&mut self, place: BufferClassKey, unified: bool) {
        let statistics = &mut self.statistics;
        if place.reach != BufferReach::Device {
            statistics.host_bytes += place.bytes;
        }
        if place.reach == BufferReach::Device || place.reach == BufferReach::Host && unified {
            statistics.used_bytes += place.bytes;
        }
        statistics.buffers += 1;
        statistics.peak_bytes = statistics.peak_bytes.max(statistics.used_bytes);
    }

    fn trim(&mut self) -> u64 {
        for class in &mut self.classes {
            class.free.clear();
        }
        self.statistics.trims += 1;
        std::mem::take(&mut self.statistics.free_bytes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn pool(most: usize, budget: Option<u64>) -> BufferPool<u64> {
        let config = PoolConfig::new(&[256, 1024], &[0, 1], &[most, most]).unwrap();
        let pool = BufferPool::new(&config, budget, false);
        pool.fill(|_| BufferReach::Device, size).unwrap();
        pool
    }

    /// A buffer that is as long as it was asked to be.
    fn size(wanted: BufferRequest) -> Result<u64, GpuError> {
        Ok(wanted.bytes)
    }

    fn own(bytes: u64) -> BufferRequest {
        BufferRequest { bytes, reach: BufferReach::Device }
    }

    #[test]
    fn a_buffer_that_came_back_is_given_out_again() {
        let pool = pool(2, None);
        let first = pool.take(own(700), size).unwrap();
        assert_eq!((first.buffer, pool.statistics().reused), (1024, 1));
        pool.give_back(7, first.place);
        assert_eq!(pool.take(own(1024), size).unwrap().buffer, 7);
    }

    #[test]
    fn a_class_keeps_no_more_than_it_may() {
        let pool = pool(1, None);
        let all: Vec<_> = (0..3).map(|_| pool.take(own(100), size).unwrap()).collect();
        // Beyond the class's count buffers have the size that was asked for.
        assert_eq!(all.iter().map(|taken| taken.buffer).collect::<Vec<_>>(), [256, 100, 100]);
        for taken in all {
            pool.give_back(taken.buffer, taken.place);
        }
        let statistics = pool.statistics();
        assert_eq!((statistics.used_bytes, statistics.buffers), (0, 0));
        let class = ClassStatistics { reach: BufferReach::Device, bytes: 256, used: 0, free: 1 };
        assert_eq!(statistics.classes[0], class);
    }

    #[test]
    fn what_is_kept_makes_room_for_what_is_asked_for() {
        let pool = pool(4, Some(2000));
        assert_eq!(pool.statistics().free_bytes, 1024);
        let large = pool.take(own(1900), size).unwrap();
        let statistics = pool.statistics();
        assert_eq!((statistics.free_bytes, statistics.trims, large.buffer), (0, 1, 1900));
        assert_eq!(pool.take(own(90), size).unwrap().buffer, 90);
        let error = pool.take(own(256), size).unwrap_err().to_string();
        assert!(error.contains("1990 of the 2000"), "{error}");
    }

    #[test]
    fn a_device_without_memory_is_asked_once_more_when_all_is_given_back() {
        let pool = pool(4, None);
        let asked = Cell::new(0);
        let scarce = |BufferRequest { bytes, .. }: BufferRequest| {
            asked.set(asked.get() + 1);
            match asked.get() {
                1 => Err(GpuError::Memory { bytes, reason: "full".into() }),
                _ => Ok(bytes),
            }
        };
        assert_eq!(pool.take(own(256), scarce).unwrap().buffer, 256);
        assert_eq!((pool.statistics().trims, asked.get()), (1, 2));
    }

    #[test]
    fn memory_of_the_host_is_kept_apart_and_counts_where_it_is_shared() {
        for (unified, used) in [(false, 256), (true, 512)] {
            let config = PoolConfig::new(&[256], &[], &[]).unwrap();
            let pool = BufferPool::new(&config, Some(512), unified);
            let first = pool.take(own(1), size).unwrap();
            let beside =
                pool.take(BufferRequest { reach: BufferReach::Host, ..own(1) }, size).unwrap();
            let statistics = pool.statistics();
            assert_eq!((statistics.used_bytes, statistics.host_bytes), (used, 256));
            assert_eq!(
                pool.take(BufferRequest { reach: BufferReach::Host, ..own(1) }, size).is_ok(),
                !unified
            );
            pool.give_back(first.buffer, first.place);
            pool.give_back(beside.buffer, beside.place);
            assert_eq!(pool.statistics().free_bytes, 512);
            // What is kept of one kind serves no other.
            assert_eq!(pool.take(own(1), size).unwrap().place, first.place);
            assert_eq!(pool.statistics().classes[1].free, 1);
        }
    }

    #[test]
    fn classes_that_are_added_serve_what_fits_them_best() {
        let pool = pool(1, None);
        let early = pool.take(own(200), size).unwrap();
        pool.extend(&PoolConfig::new(&[512, 1024], &[2, 0], &[2, 5]).unwrap());
        pool.fill(|_| BufferReach::Device, size).unwrap();
        assert_eq!(pool.statistics().free_bytes, 1024 + 2 * 512);
        assert_eq!(pool.take(own(300), size).unwrap().buffer, 512);
        assert_eq!(pool.statistics().reused, 1);
        pool.give_back(early.buffer, early.place);
        assert_eq!(pool.take(own(200), size).unwrap().place, early.place);
    }

    #[test]
    fn a_limit_is_bytes_or_a_share_of_what_the_device_recommends() {
        let config = |limit| PoolConfig::default().limited(limit);
        let bytes = config(MemoryLimit::Bytes(7));
        assert_eq!(bytes.budget_bytes(Some(500)).unwrap(), Some(7));
        let share = config(MemoryLimit::Percent(30));
        assert_eq!(share.budget_bytes(Some(1000)).unwrap(), Some(300));
        assert!(share.budget_bytes(None).unwrap_err().to_string().contains("30%"));
        assert_eq!(PoolConfig::default().budget_bytes(Some(500)).unwrap(), Some(500));
    }

    #[test]
    fn the_smallest_limit_holds_and_what_is_taken_stays() {
        let pool = pool(4, Some(4000));
        let taken = pool.take(own(1024), size).unwrap();
        pool.limit(1300);
        pool.limit(2000);
        assert_eq!(pool.statistics().budget_bytes, Some(1300));
        assert!(pool.take(own(1024), size).is_err());
        assert_eq!(pool.take(own(200), size).unwrap().buffer, 256);
        pool.give_back(taken.buffer, taken.place);
    }

    #[test]
    fn wrong_sizes_are_named() {
        let error = |sizes: &[u64], initial: &[usize], most: &[usize]| {
            PoolConfig::new(sizes, initial, most).unwrap_err()
        };
        assert!(error(&[512, 512], &[], &[]).contains("grow"));
        assert!(error(&[512], &[1, 2], &[]).contains("initial_pool_sizes has 2"));
        assert!(error(&[512], &[3], &[2]).contains("more than the 2"));
    }
}
