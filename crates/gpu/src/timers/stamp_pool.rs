//! Room for stamps of the device's clock, kept from run to run.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of stamp sets that are kept for the next runs.
const KEPT: usize = 8;

/// Room for the stamps of one run.
#[derive(Debug)]
pub(crate) struct StampBuffers {
    pub(crate) sets: Vec<wgpu::QuerySet>,
    pub(crate) resolved: wgpu::Buffer,
    pub(crate) read: wgpu::Buffer,
    pub(crate) count: u32,
}

/// Room that no run uses now.
#[derive(Debug, Default)]
pub(crate) struct StampPool(Mutex<Vec<StampBuffers>>);

impl StampPool {
    fn lock(&self) -> MutexGuard<'_, Vec<StampBuffers>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the smallest room for so many stamps, if there is any.
    pub(crate) fn take(&self, stamps: u32) -> Option<StampBuffers> {
        let mut kept = self.lock();
        let fitting = (0..kept.len()).filter(|&at| kept[at].count >= stamps);
        fitting.min_by_key(|&at| kept[at].count).map(|at| kept.swap_remove(at))
    }

    /// Keeps room for the next runs, unless there is enough.
    pub(crate) fn give_back(&self, buffers: StampBuffers) {
        let mut kept = self.lock();
        if kept.len() < KEPT {
            kept.push(buffers);
        }
    }
}
