//! Weights that lie outside the device until a run needs them.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use galatea_runtime::prefetch::PrefetchStatistics;
use galatea_tensor::Tensor;

use super::budget::MemoryBudget;
use crate::error::GpuError;

/// Bytes that are brought from a file at a time.
const PIECE: usize = 256 << 10;
/// Weights with fewer bytes stay on the device in any case: between these the limit follows the budget.
const SMALL: (u64, u64) = (16 << 10, 1 << 20);

/// Place of weights that are not on the device.
#[derive(Debug)]
pub(crate) enum WeightResidency {
    /// Unchanged in a tensor, mostly one of a mapped file.
    Tensor(Tensor),
    /// In a file that the device has for weights that it packed.
    Spilled { file: Arc<SpillFile>, start: u64, bytes: u64 },
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> GpuError {
    GpuError::Shelf(format!("{what}: {error}"))
}

impl WeightResidency {
    /// Returns the number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Tensor(tensor) => tensor.unaligned_bytes().map_or(0, |bytes| bytes.len() as u64),
            Self::Spilled { bytes, .. } => *bytes,
        }
    }

    /// Writes bytes from `offset` on.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), GpuError> {
        match self {
            Self::Tensor(_) => Err(GpuError::Shelf("a tensor of a model is not written".into())),
            Self::Spilled { file, start, .. } => file.write(start + offset, bytes),
        }
    }

    /// Hands all bytes over, piece by piece with the place of each.
    pub(crate) fn read(&self, mut put: impl FnMut(usize, &[u8])) -> Result<(), GpuError> {
        match self {
            Self::Tensor(tensor) => {
                tensor.will_need();
                let bytes = tensor.unaligned_bytes();
                put(0, bytes.map_err(|error| failed("a weight is not read", &error))?);
            }
            Self::Spilled { file, start, bytes } => {
                let bytes = usize::try_from(*bytes).unwrap_or(usize::MAX);
                let mut piece = vec![0; PIECE.min(bytes)];
                for at in (0..bytes).step_by(PIECE) {
                    let piece = &mut piece[..PIECE.min(bytes - at)];
                    file.read(start + at as u64, piece)?;
                    put(at, piece);
                }
            }
        }
        Ok(())
    }
}

/// A file without a name: it is gone when nobody has it any more.
#[derive(Debug)]
pub(crate) struct SpillFile {
    file: File,
    end: AtomicU64,
}

impl SpillFile {
    fn create(folder: &Path) -> Result<Self, GpuError> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("galatea-weights-{}-{number}", std::process::id()));
        let what = format!("no file for weights in '{}'", folder.display());
        let options = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = options.map_err(|error| failed(&what, &error))?;
        std::fs::remove_file(&path).map_err(|error| failed(&what, &error))?;
        Ok(Self { file, end: AtomicU64::new(0) })
    }

    #[cfg(unix)]
    fn read(&self, at: u64, out: &mut [u8]) -> Result<(), GpuError> {
        use std::os::unix::fs::FileExt;
        let read = self.file.read_exact_at(out, at);
        read.map_err(|error| failed("packed weights cannot be read back", &error))
    }

    #[cfg(unix)]
    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), GpuError> {
        use std::os::unix::fs::FileExt;
        let written = self.file.write_all_at(bytes, at);
        written.map_err(|error| failed("packed weights cannot be kept in a file", &error))
    }
}

/// Statistics of streaming on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamStatistics {
    /// Bytes of weights that have no place of their own on the device.
    pub streamed_bytes: u64,
    /// Bytes of the memory that they take turns in.
    pub slot_bytes: u64,
    /// Statistics of the prefetch policy.
    pub prefetch: PrefetchStatistics,
}

impl StreamStatistics {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            streamed_bytes: self.streamed_bytes + other.streamed_bytes,
            slot_bytes: self.slot_bytes + other.slot_bytes,
            prefetch: self.prefetch.plus(other.prefetch),
        }
    }
}

/// Stream of weights to a device that has no room for all of them.
pub(crate) trait WeightStream: fmt::Debug + Send + Sync {
    /// Returns the statistics of the stream so far.
    fn statistics(&self) -> StreamStatistics;
}

/// Handling of weights that a device has no room for.
#[derive(Debug, Default)]
pub(crate) struct ResidencyPolicy {
    /// Models that are being compiled and do not fit.
    beyond: AtomicUsize,
    file: Mutex<Weak<SpillFile>>,
    folder: Option<PathBuf>,
    /// Touches ahead at most.
    ahead: Option<usize>,
    budget: MemoryBudget,
    pub(crate) streams: Mutex<Vec<Weak<dyn WeightStream>>>,
    /// Statistics of streaming for sessions that are gone.
    pub(crate) ended: Mutex<PrefetchStatistics>,
}

/// While it lives, weights are made that do not fit the device.
#[derive(Debug)]
pub(crate) struct OversubscribedScope<'a>(&'a ResidencyPolicy);

impl Drop for OversubscribedScope<'_> {
    fn drop(&mut self) {
        self.0.beyond.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ResidencyPolicy {
    pub(crate) fn new(
        folder: Option<PathBuf>,
        ahead: Option<usize>,
        budget_bytes: Option<u64>,
    ) -> Self {
        Self { folder, ahead, budget: MemoryBudget::new(budget_bytes), ..Self::default() }
    }

    /// Limits the budget, as [`super::BufferPool::limit`] does.
    pub(crate) fn limit(&self, bytes: u64) {
        self.budget.limit(bytes);
    }

    /// Returns statistics of all streams, including those that are gone.
    pub(crate) fn stream_statistics(&self) -> StreamStatistics {
        let all = self.streams.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Those that live until the end of this are not among what ended.
        let living: Vec<_> = all.iter().filter_map(Weak::upgrade).collect();
        let ended = *self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let each = living.iter().map(|stream| stream.statistics());
        let living = each.fold(StreamStatistics::default(), StreamStatistics::plus);
        StreamStatistics { prefetch: ended.plus(living.prefetch), ..living }
    }

    /// Touches ahead at most; where nobody said, as many as times of loads ask for.
    pub(crate) fn ahead(&self) -> usize {
        self.ahead.unwrap_or(16)
    }

    /// Says that the weights made from now on belong to a model that does not fit.
    pub(crate) fn begin(&self) -> OversubscribedScope<'_> {
        self.beyond.fetch_add(1, Ordering::Relaxed);
        OversubscribedScope(self)
    }

    /// Returns whether weights are put aside while they are made.
    pub(crate) fn is_beyond(&self) -> bool {
        self.beyond.load(Ordering::Relaxed) > 0
    }

    /// Returns whether weights of so many bytes are worth putting aside.
    pub(crate) fn takes(&self, bytes: u64) -> bool {
        let (least, most) = SMALL;
        bytes > self.budget.bytes().map_or(least, |budget| (budget / 4096).clamp(least, most))
    }

    /// The most bytes of a piece of weights that can be cut: a few of them must be on the device at once.
    pub(crate) fn piece_bytes(&self) -> u64 {
        /// Bytes that are brought in well under the time that somebody notices.
        const MOST: u64 = 32 << 20;
        match self.budget.bytes() {
            Some(budget) if self.is_beyond() => (budget / 16).clamp(64 << 10, MOST),
            _ => u64::MAX,
        }
    }

    /// Room for so many bytes in the file.
    pub(crate) fn spilled(&self, bytes: u64) -> Result<WeightResidency, GpuError> {
        let mut known = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match known.upgrade() {
            Some(file) => file,
            None => {
                let folder = self.folder.clone().unwrap_or_else(std::env::temp_dir);
                let file = Arc::new(SpillFile::create(&folder)?);
                *known = Arc::downgrade(&file);
                file
            }
        };
        let start = file.end.fetch_add(bytes, Ordering::Relaxed);
        // What nobody writes is read as zeros.
        let end = start + bytes;
        let grown = file.file.set_len(end);
        grown.map_err(|error| failed("the file for packed weights cannot grow", &error))?;
        Ok(WeightResidency::Spilled { file, start, bytes })
    }
}
