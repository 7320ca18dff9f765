//! Buffers by size, kept for reuse, within a budget.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Shelves;
use super::block::STEP;
use crate::error::GpuError;

/// One size of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolClass {
    /// Bytes of each; a multiple of 256.
    pub bytes: u64,
    /// How many are made when the device is opened.
    pub initial: usize,
    /// How many the pool has at most, used ones included; more are made and given back one by one.
    pub most: usize,
}

/// The sizes that a pool keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    classes: Vec<PoolClass>,
    budget_bytes: Option<u64>,
    spill_folder: Option<PathBuf>,
    ahead: Option<usize>,
}

impl Default for PoolConfig {
    /// Powers of two from 64 KiB to 1 GiB, none made beforehand, within what the device recommends.
    fn default() -> Self {
        let class = |power: u32| PoolClass { bytes: 1 << power, initial: 0, most: 8 };
        Self {
            classes: (16..=30).map(class).collect(),
            budget_bytes: None,
            spill_folder: None,
            ahead: None,
        }
    }
}

impl PoolConfig {
    /// Classes of these sizes in bytes, with how many of each are made at once and kept at most. Absent lists are
    /// none at once and at most 8.
    ///
    /// # Errors
    /// When sizes do not grow, the lists differ in length, or more are made at once than are kept.
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
            let class = PoolClass { bytes: size, initial: count(initial, 0), most: count(most, 8) };
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
        Self { budget_bytes: Some(budget_bytes), ..self }
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

    /// What is done with weights, within so many bytes.
    pub(crate) fn shelves(&self, budget_bytes: Option<u64>) -> Shelves {
        Shelves::new(self.spill_folder.clone(), self.ahead, budget_bytes)
    }

    pub(crate) fn budget_bytes(&self) -> Option<u64> {
        self.budget_bytes
    }
}

/// Memory of a device at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatistics {
    /// Bytes in use.
    pub used_bytes: u64,
    /// Bytes that are kept for reuse.
    pub free_bytes: u64,
    /// The most bytes in use so far.
    pub peak_bytes: u64,
    /// What may be taken; `None` where the device does not say.
    pub budget_bytes: Option<u64>,
    /// Buffers in use.
    pub buffers: u64,
    /// Requests that a kept buffer served, and such that made a new one.
    pub reused: u64,
    /// See `reused`.
    pub made: u64,
    /// Times that kept buffers were given back to make room.
    pub trims: u64,
    /// For each class: its bytes, buffers in use, and buffers kept.
    pub classes: Vec<(u64, usize, usize)>,
}

/// The buffers of one class.
struct Class<B> {
    config: PoolClass,
    free: Vec<B>,
    used: usize,
}

struct State<B> {
    classes: Vec<Class<B>>,
    statistics: MemoryStatistics,
}

/// A pool of buffers of type `B`, which it makes by a function that it is given each time.
pub(crate) struct Pool<B> {
    state: Mutex<State<B>>,
    budget_bytes: Option<u64>,
}

impl<B> std::fmt::Debug for Pool<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("statistics", &self.statistics()).finish()
    }
}

/// A buffer that was taken, with what the pool must know when it comes back.
#[derive(Debug)]
pub(crate) struct Taken<B> {
    pub(crate) buffer: B,
    pub(crate) place: Place,
}

/// Where a buffer belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) bytes: u64,
    class: Option<usize>,
}

impl<B> Pool<B> {
    /// A pool of these classes within a budget.
    pub(crate) fn new(config: &PoolConfig, budget_bytes: Option<u64>) -> Self {
        let class = |&config: &PoolClass| Class { config, free: Vec::new(), used: 0 };
        let classes = config.classes.iter().map(class).collect();
        let statistics = MemoryStatistics { budget_bytes, ..MemoryStatistics::default() };
        Self { state: Mutex::new(State { classes, statistics }), budget_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the buffers that are wanted from the start.
    pub(crate) fn fill(&self, make: impl Fn(u64) -> Result<B, GpuError>) -> Result<(), GpuError> {
        let state = &mut *self.lock();
        for class in &mut state.classes {
            while class.free.len() < class.config.initial {
                class.free.push(make(class.config.bytes)?);
                state.statistics.free_bytes += class.config.bytes;
            }
        }
        Ok(())
    }

    /// A buffer of at least so many bytes: one that is kept, or a new one of its class.
    pub(crate) fn take(
        &self,
        bytes: u64,
        make: impl Fn(u64) -> Result<B, GpuError>,
    ) -> Result<Taken<B>, GpuError> {
        let mut state = self.lock();
        let class = state.classes.iter().position(|class| class.config.bytes >= bytes);
        if let Some(index) = class
            && let Some(buffer) = state.classes[index].free.pop()
        {
            let bytes = state.classes[index].config.bytes;
            state.classes[index].used += 1;
            state.statistics.free_bytes -= bytes;
            state.statistics.reused += 1;
            state.count(bytes);
            return Ok(Taken { buffer, place: Place { bytes, class } });
        }
        let class = class.filter(|&index| {
            let class = &state.classes[index];
            class.used < class.config.most
        });
        let bytes = class.map_or(bytes, |index| state.classes[index].config.bytes);
        drop(state);
        let buffer = self.make(bytes, make)?;
        if let Some(index) = class {
            self.lock().classes[index].used += 1;
        }
        Ok(Taken { buffer, place: Place { bytes, class } })
    }

    /// A buffer of just so many bytes, which is given back and not kept.
    pub(crate) fn take_exact(
        &self,
        bytes: u64,
        make: impl Fn(u64) -> Result<B, GpuError>,
    ) -> Result<Taken<B>, GpuError> {
        let buffer = self.make(bytes, make)?;
        Ok(Taken { buffer, place: Place { bytes, class: None } })
    }

    /// Makes a buffer; where there is no room, what is kept goes first.
    fn make(&self, bytes: u64, make: impl Fn(u64) -> Result<B, GpuError>) -> Result<B, GpuError> {
        let mut state = self.lock();
        if let Some(budget) = self.budget_bytes {
            let used = state.statistics.used_bytes;
            if used.saturating_add(bytes) > budget {
                let reason = format!("{used} of the {budget} that may be taken are in use");
                return Err(GpuError::Memory { bytes, reason });
            }
            if used + state.statistics.free_bytes + bytes > budget {
                state.trim();
            }
        }
        let mut made = make(bytes);
        if matches!(made, Err(GpuError::Memory { .. })) && state.statistics.free_bytes > 0 {
            state.trim();
            made = make(bytes);
        }
        let buffer = made?;
        state.statistics.made += 1;
        state.count(bytes);
        Ok(buffer)
    }

    /// Takes a buffer back, and keeps it where its class has room.
    pub(crate) fn give_back(&self, buffer: B, place: Place) {
        let state = &mut *self.lock();
        state.statistics.used_bytes = state.statistics.used_bytes.saturating_sub(place.bytes);
        state.statistics.buffers = state.statistics.buffers.saturating_sub(1);
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
        let class = |class: &Class<B>| (class.config.bytes, class.used, class.free.len());
        let classes = state.classes.iter().map(class).collect();
        MemoryStatistics { classes, ..state.statistics.clone() }
    }
}

impl<B> State<B> {
    fn count(&mut self, bytes: u64) {
        let statistics = &mut self.statistics;
        statistics.used_bytes += bytes;
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

    fn pool(most: usize, budget: Option<u64>) -> Pool<u64> {
        let config = PoolConfig::new(&[256, 1024], &[0, 1], &[most, most]).unwrap();
        let pool = Pool::new(&config, budget);
        pool.fill(Ok).unwrap();
        pool
    }

    #[test]
    fn a_buffer_that_came_back_is_given_out_again() {
        let pool = pool(2, None);
        let first = pool.take(700, Ok).unwrap();
        assert_eq!((first.buffer, pool.statistics().reused), (1024, 1));
        pool.give_back(7, first.place);
        assert_eq!(pool.take(1024, Ok).unwrap().buffer, 7);
    }

    #[test]
    fn a_class_keeps_no_more_than_it_may() {
        let pool = pool(1, None);
        let all: Vec<_> = (0..3).map(|_| pool.take(100, Ok).unwrap()).collect();
        // Beyond the class's count buffers have the size that was asked for.
        assert_eq!(all.iter().map(|taken| taken.buffer).collect::<Vec<_>>(), [256, 100, 100]);
        for taken in all {
            pool.give_back(taken.buffer, taken.place);
        }
        let statistics = pool.statistics();
        assert_eq!((statistics.used_bytes, statistics.buffers), (0, 0));
        assert_eq!(statistics.classes[0], (256, 0, 1));
    }

    #[test]
    fn what_is_kept_makes_room_for_what_is_asked_for() {
        let pool = pool(4, Some(2000));
        assert_eq!(pool.statistics().free_bytes, 1024);
        let large = pool.take(1900, Ok).unwrap();
        let statistics = pool.statistics();
        assert_eq!((statistics.free_bytes, statistics.trims, large.buffer), (0, 1, 1900));
        let error = pool.take(256, Ok).unwrap_err().to_string();
        assert!(error.contains("1900 of the 2000"), "{error}");
    }

    #[test]
    fn a_device_without_memory_is_asked_once_more_when_all_is_given_back() {
        let pool = pool(4, None);
        let asked = Cell::new(0);
        let scarce = |bytes: u64| {
            asked.set(asked.get() + 1);
            match asked.get() {
                1 => Err(GpuError::Memory { bytes, reason: "full".into() }),
                _ => Ok(bytes),
            }
        };
        assert_eq!(pool.take(256, scarce).unwrap().buffer, 256);
        assert_eq!((pool.statistics().trims, asked.get()), (1, 2));
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
