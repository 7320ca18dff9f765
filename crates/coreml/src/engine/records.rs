//! Findings about partitions on this machine that are worth keeping: short texts in files beside
//! the compiled packages. They only save time: a record that is missing or broken is found out
//! anew.

use std::fs::{self, DirBuilder};
use std::hash::Hasher;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use siphasher::sip128::{Hasher128, SipHasher13};

use super::CompiledCache;
use super::plain_file::open_plain;

/// The most bytes of a text.
const MAX_BYTES: u64 = 1 << 20;
/// The most files; the older half goes where there are more.
const MAX_FILES: usize = 4096;

/// A folder of texts.
#[derive(Clone, Debug)]
pub(crate) struct TextRecords {
    folder: PathBuf,
    key: (u64, u64),
}

impl TextRecords {
    /// Returns the records beside a cache of compiled packages; `None` if its folder cannot be
    /// used.
    pub(crate) fn beside(cache: &CompiledCache) -> Option<Self> {
        let (folder, key) = cache.records().ok()?;
        Some(Self { folder, key })
    }

    /// A digest of what is written, of which nobody without the folder can make a second.
    pub(crate) fn digest(&self, write: &dyn Fn(&mut dyn Hasher)) -> u128 {
        let mut hasher = SipHasher13::new_with_keys(self.key.0, self.key.1);
        write(&mut hasher);
        hasher.finish128().as_u128()
    }

    fn path(&self, kind: &str, number: u128) -> PathBuf {
        self.folder.join(format!("{kind}-{number:032x}"))
    }

    /// A text, where there is one.
    pub(crate) fn read(&self, kind: &str, number: u128) -> Option<String> {
        let mut text = String::new();
        let file = open_plain(&self.path(kind, number)).ok()?;
        file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Keeps a text in the place of an older one.
    pub(crate) fn write(&self, kind: &str, number: u128, text: &str) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let own = NEXT.fetch_add(1, Ordering::Relaxed);
        let passing = self.folder.join(format!("{}-{own}.tmp", std::process::id()));
        let path = self.path(kind, number);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        let written = made
            .and_then(|()| fs::write(&passing, text))
            .and_then(|()| fs::rename(&passing, &path));
        if let Err(error) = written {
            tracing::debug!(path = %path.display(), %error, "a record was not kept");
        }
        make_room(&self.folder);
    }
}

fn make_room(folder: &Path) {
    let Ok(listing) = fs::read_dir(folder) else { return };
    let aged = |path: PathBuf| -> (SystemTime, PathBuf) {
        let when = path.metadata().and_then(|found| found.modified());
        (when.unwrap_or(SystemTime::UNIX_EPOCH), path)
    };
    let paths: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
    if paths.len() <= MAX_FILES {
        return;
    }
    let mut all: Vec<_> = paths.into_iter().map(aged).collect();
    all.sort();
    for (_, path) in all.iter().take(MAX_FILES / 2) {
        // Somebody else may have been sooner.
        drop(fs::remove_file(path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_by_what_they_are_about() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CompiledCache::new(folder.path().join("cache"), 1 << 20);
        let records = TextRecords::beside(&cache).unwrap();
        let about = |text: &'static str| move |to: &mut dyn Hasher| to.write(text.as_bytes());
        let a = records.digest(&about("a"));
        let b = records.digest(&about("b"));
        assert_ne!(a, b);
        assert_eq!(records.read("verdict", a), None);
        records.write("verdict", a, "right");
        records.write("verdict", b, "wrong");
        records.write("verdict", b, "wrong by far");
        // Another run of the program has the same.
        let again = TextRecords::beside(&cache).unwrap();
        assert_eq!(again.digest(&about("a")), a);
        assert_eq!(again.read("verdict", a).as_deref(), Some("right"));
        assert_eq!(again.read("verdict", b).as_deref(), Some("wrong by far"));
        assert_eq!(again.read("plan", a), None);
        // Another folder's numbers are others.
        let other = CompiledCache::new(folder.path().join("other"), 1 << 20);
        assert_ne!(TextRecords::beside(&other).unwrap().digest(&about("a")), a);
    }
}
