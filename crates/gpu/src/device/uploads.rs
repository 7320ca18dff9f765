//! Uploads for the device that wait in the host's memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::GpuDevice;
use super::line::QueuedSubmission;

/// Bytes of a piece: so many are written before they are handed over.
const PIECE: u64 = 32 << 20;
/// Number of such pieces that may wait for the device.
const MAX_PIECES: usize = 4;

/// Bytes on their way.
#[derive(Debug, Default)]
pub(super) struct PendingUploads {
    /// Written since something was handed over.
    waiting: AtomicU64,
    /// Handed over, the oldest first.
    handed: Mutex<VecDeque<QueuedSubmission>>,
}

impl PendingUploads {
    /// Everything that was written is handed over.
    pub(super) fn handed_over(&self) {
        self.waiting.store(0, Ordering::Relaxed);
    }
}

impl GpuDevice {
    /// Counts bytes that were written by the queue. What is not handed over lies in the host's memory a second
    /// time, and so does what the device has not copied yet: neither grows beyond some pieces.
    pub(crate) fn written(&self, bytes: u64) {
        let uploads = &self.uploads;
        if uploads.waiting.fetch_add(bytes, Ordering::Relaxed) + bytes < PIECE {
            return;
        }
        uploads.handed_over();
        let mut handed = uploads.handed.lock().unwrap_or_else(PoisonError::into_inner);
        // It takes the device its time, which must not be counted for the work behind it.
        handed.push_back(self.submit_some(None));
        let oldest = if handed.len() > MAX_PIECES { handed.pop_front() } else { None };
        drop(handed);
        if let Some(oldest) = oldest {
            self.wait_for_room(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn some_pieces_are_on_their_way_and_a_lost_device_holds_nobody_up() {
        if crate::devices().is_empty() {
            eprintln!("skipped: this host has no GPU and no software one");
            return;
        }
        let device = GpuDevice::open(0).unwrap();
        let handed = || device.uploads.handed.lock().unwrap().len();
        device.written(PIECE - 1);
        assert_eq!(handed(), 0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..8).for_each(|_| device.written(PIECE)));
            }
        });
        assert_eq!(handed(), MAX_PIECES);
        // Those that were waited for hold up nobody in the line.
        let (first, _) = device.life.line.first().unwrap();
        assert!(first.place >= 4, "{first:?}");
        device.give_up("a test");
        device.written(PIECE);
        assert_eq!(handed(), MAX_PIECES);
        assert!(device.alive().is_err());
    }
}
