//! Identity of models and programs.

use std::fs::Metadata;
use std::hash::Hasher;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use galatea_formats::onnx::OnnxFile;
use siphasher::sip128::{Hasher128, SipHasher13};

/// The state of a file: the same means the same content, as writing changes the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) bytes: u64,
    /// When the content changed, in seconds and nanoseconds.
    pub(super) modified: (i64, i64),
    /// When content or state changed; programs cannot set it.
    pub(super) changed: (i64, i64),
}

impl FileIdentity {
    pub(super) fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

/// Whether a file was last changed this long ago.
pub(super) fn is_older(found: &Metadata, age: Duration) -> bool {
    let Ok(now) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) else { return false };
    let changed = u64::try_from(found.ctime()).map(Duration::from_secs);
    changed.is_ok_and(|changed| changed.saturating_add(age) <= now)
}

/// Identity of this program among those that may write other entries: its version, and the file that
/// it runs from.
pub(super) fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let file = std::env::current_exe().and_then(|path| path.metadata());
        let file = file.map(|found| (found.size(), found.mtime(), found.mtime_nsec())).ok();
        format!("galatea {} {file:?}", env!("CARGO_PKG_VERSION"))
    })
}

/// The parts that are read side by side.
const PART_BYTES: usize = 1 << 22;

/// Most threads that read; more do not read faster.
const MAX_THREADS: usize = 4;

/// Runs `work` for 0 to `count` on several threads.
pub(super) fn side_by_side(count: usize, work: &(dyn Fn(usize) + Sync)) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let run = || {
        while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < count) {
            work(at);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..cores.min(MAX_THREADS).min(count) {
            scope.spawn(run);
        }
        run();
    });
}

/// A digest of the contents of files; the first says what the others are called. The secret keeps
/// others from making models that have the digest of another one.
pub(super) fn digest(secret: (u64, u64), files: &[OnnxFile]) -> String {
    let hasher = || SipHasher13::new_with_keys(secret.0, secret.1);
    let mut whole = hasher();
    for file in files {
        let bytes: &[u8] = (*file.memory).as_ref();
        let parts: Vec<&[u8]> = bytes.chunks(PART_BYTES).collect();
        let digests: Vec<OnceLock<u128>> = parts.iter().map(|_| OnceLock::new()).collect();
        side_by_side(parts.len(), &|at| {
            if let (Some(part), Some(slot)) = (parts.get(at), digests.get(at)) {
                let mut own = hasher();
                own.write(part);
                let _ = slot.set(own.finish128().as_u128());
            }
        });
        whole.write_usize(bytes.len());
        for digest in digests {
            whole.write_u128(digest.into_inner().unwrap_or_default());
        }
    }
    format!("{:032x}", whole.finish128().as_u128())
}
