//! The folder: names, notes about files, room.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use galatea_formats::onnx::OnnxFile;
use galatea_tensor::read_plain_text;
use serde_json::{Value, json};
use siphasher::sip128::{Hasher128, SipHasher13};

use super::content::FileIdentity;
use super::entry::EntryRefusal;

/// Ends of names.
const ENTRY: &str = "model";
const NOTE: &str = "note";
const LINE: &str = "line";
const TEMPORARY: &str = "tmp";

/// Unfinished files of this age were left behind.
const ABANDONED: Duration = Duration::from_secs(3600);

/// More notes are not kept; a note is a few hundred bytes.
const MAX_NOTES: usize = 4096;

/// A note about a model's files.
pub(super) struct FileNote {
    /// The digest of the content.
    pub(super) content: String,
    /// The files, that of the model first.
    pub(super) files: Vec<(PathBuf, FileIdentity)>,
}

#[derive(Debug)]
pub(super) struct CacheFolder {
    path: PathBuf,
    limit_bytes: u64,
}

impl CacheFolder {
    pub(super) fn new(path: PathBuf, limit_bytes: u64) -> Self {
        Self { path, limit_bytes }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    fn named(&self, text: &[u8], end: &str) -> PathBuf {
        let mut hasher = SipHasher13::new();
        hasher.write(text);
        self.path.join(format!("{:032x}.{end}", hasher.finish128().as_u128()))
    }

    /// Where the entry of this text is.
    pub(super) fn entry(&self, text: &str) -> PathBuf {
        self.named(text.as_bytes(), ENTRY)
    }

    fn make(&self) -> io::Result<()> {
        // Others must not write what this user runs.
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path)
    }

    /// A number that is made once for the folder.
    pub(super) fn secret(&self) -> io::Result<(u64, u64)> {
        let path = self.path.join("secret");
        let parse = |text: String| -> Option<(u64, u64)> {
            let (a, b) = text.trim().split_once(' ')?;
            Some((u64::from_str_radix(a, 16).ok()?, u64::from_str_radix(b, 16).ok()?))
        };
        let read = || read_plain_text(&path).map(parse);
        let damaged = match read() {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => true,
            Err(error) => error.kind() == io::ErrorKind::InvalidData,
        };
        self.make()?;
        let random = || RandomState::new().build_hasher().finish();
        let (mut file, temporary) = self.create()?;
        file.write_all(format!("{:016x} {:016x}\n", random(), random()).as_bytes())?;
        // Whoever comes second takes the first one's number, so the name must not be replaced; only
        // what is damaged is, and where the file system has no links.
        if damaged || fs::hard_link(&temporary, &path).is_err_and(|e| !already_there(&e)) {
            fs::rename(&temporary, &path)?;
        } else {
            self.remove(&temporary);
        }
        read()?.ok_or_else(|| io::Error::other("the cache's secret cannot be read back"))
    }

    /// A new file under a name of its own.
    pub(super) fn create(&self) -> io::Result<(File, PathBuf)> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        self.make()?;
        let own = NEXT.fetch_add(1, Ordering::Relaxed);
        let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let name = format!("{}-{}-{own}.{TEMPORARY}", std::process::id(), started.as_nanos());
        let path = self.path.join(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok((file, path))
    }

    /// Gives a finished file its name, and makes room.
    pub(super) fn publish(&self, temporary: &Path, text: &str) -> Result<(), EntryRefusal> {
        let path = self.entry(text);
        fs::rename(temporary, &path).map_err(|error| {
            self.remove(temporary);
            EntryRefusal::Io(error)
        })?;
        self.make_room(&path);
        Ok(())
    }

    pub(super) fn remove(&self, path: &Path) {
        // Gone is gone, whoever removed it.
        let _ = fs::remove_file(path);
    }

    /// Marks an entry as used now; where the folder cannot be written, nothing is removed from it
    /// either.
    pub(super) fn touch(&self, path: &Path) {
        if let Ok(file) = OpenOptions::new().append(true).open(path) {
            let _ = file.set_modified(SystemTime::now());
        }
    }

    /// Removes the entries that were not used for the longest time until the others fit, but never
    /// `newest`; and what was left unfinished.
    fn make_room(&self, newest: &Path) {
        let Ok(listing) = fs::read_dir(&self.path) else { return };
        let mut entries = Vec::new();
        let mut notes = Vec::new();
        for path in listing.flatten().map(|entry| entry.path()) {
            let Ok(found) = path.metadata() else { continue };
            let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let end = path.extension().and_then(|end| end.to_str());
            match end {
                Some(ENTRY) if path != newest => entries.push((used, found.len(), path)),
                Some(NOTE) => notes.push((used, path)),
                Some(LINE) if path != newest.with_extension(LINE) && is_orphan(&path) => {
                    self.remove(&path);
                }
                Some(TEMPORARY) if used.elapsed().is_ok_and(|age| age > ABANDONED) => {
                    self.remove(&path);
                }
                _ => {}
            }
        }
        notes.sort();
        let too_many = notes.len().saturating_sub(MAX_NOTES);
        notes.iter().take(too_many).for_each(|(_, path)| self.remove(path));
        entries.sort();
        let own = newest.metadata().map_or(0, |found| found.len());
        let mut total: u64 = own + entries.iter().map(|(_, bytes, _)| bytes).sum::<u64>();
        for (_, bytes, path) in entries {
            if total <= self.limit_bytes {
                break;
            }
            self.remove(&path);
            total = total.saturating_sub(bytes);
        }
    }

    /// Line about the change that an entry was made with.
    pub(super) fn line(&self, text: &str) -> Option<String> {
        let found = read_plain_text(&self.named(text.as_bytes(), LINE)).ok()?;
        found.strip_suffix('\n').map(str::to_owned)
    }

    /// Writes the line about the change that an entry is made with.
    pub(super) fn write_line(&self, text: &str, line: &str) -> io::Result<()> {
        let (mut file, temporary) = self.create()?;
        let path = self.named(text.as_bytes(), LINE);
        let written = file
            .write_all(format!("{}\n", line.replace('\n', " ")).as_bytes())
            .and_then(|()| fs::rename(&temporary, &path));
        written.inspect_err(|_| self.remove(&temporary))
    }

    fn note_path(&self, model: &Path) -> Option<PathBuf> {
        Some(self.named(place(model)?.as_os_str().as_encoded_bytes(), NOTE))
    }

    /// Note about a model.
    pub(super) fn note(&self, model: &Path) -> Option<FileNote> {
        let text = read_plain_text(&self.note_path(model)?).ok()?;
        let (sum, body) = text.split_once('\n')?;
        if u32::from_str_radix(sum, 16).ok()? != crc32fast::hash(body.as_bytes()) {
            return None;
        }
        let note: Value = serde_json::from_str(body).ok()?;
        let content = note.get("content")?.as_str()?.to_owned();
        let files = note.get("files")?.as_array()?.iter().map(read_file);
        let files: Vec<_> = files.collect::<Option<_>>()?;
        (!files.is_empty()).then_some(FileNote { content, files })
    }

    /// Notes the content of a model's files.
    pub(super) fn write_note(
        &self,
        model: &Path,
        files: &[OnnxFile],
        content: &str,
    ) -> io::Result<()> {
        let Some(path) = self.note_path(model) else { return Ok(()) };
        let mut noted = Vec::with_capacity(files.len());
        for file in files {
            // Names that are no text cannot be noted; such models are read each time.
            let found = place(&file.path);
            let Some(name) = found.as_deref().and_then(Path::to_str) else { return Ok(()) };
            let found = FileIdentity::of(file.memory.metadata());
            noted.push(json!({
                "path": name,
                "device": found.device,
                "inode": found.inode,
                "bytes": found.bytes,
                "modified": [found.modified.0, found.modified.1],
                "changed": [found.changed.0, found.changed.1],
            }));
        }
        let body = json!({ "content": content, "files": noted }).to_string();
        let (mut file, temporary) = self.create()?;
        let sum = crc32fast::hash(body.as_bytes());
        let written = file
            .write_all(format!("{sum:08x}\n{body}").as_bytes())
            .and_then(|()| fs::rename(&temporary, &path));
        written.inspect_err(|_| self.remove(&temporary))
    }
}

/// Whether the entry of a line is gone.
fn is_orphan(line: &Path) -> bool {
    !line.with_extension(ENTRY).exists()
}

fn already_there(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AlreadyExists
}

/// A file in its real folder: a link may lead to another file later, and the folder is where the
/// model's other files are looked for.
fn place(file: &Path) -> Option<PathBuf> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    Some(folder.unwrap_or(Path::new(".")).canonicalize().ok()?.join(file.file_name()?))
}

fn read_file(noted: &Value) -> Option<(PathBuf, FileIdentity)> {
    let number = |name: &str| noted.get(name)?.as_u64();
    let time = |name: &str| {
        let pair = noted.get(name)?.as_array()?;
        Some((pair.first()?.as_i64()?, pair.get(1)?.as_i64()?))
    };
    let identity = FileIdentity {
        device: number("device")?,
        inode: number("inode")?,
        bytes: number("bytes")?,
        modified: time("modified")?,
        changed: time("changed")?,
    };
    Some((PathBuf::from(noted.get("path")?.as_str()?), identity))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn all_who_come_at_once_have_one_secret() {
        let root = tempfile::tempdir().unwrap();
        for round in 0..50 {
            let folder = CacheFolder::new(root.path().join(round.to_string()), 1);
            let found: Vec<(u64, u64)> = std::thread::scope(|scope| {
                let all: Vec<_> =
                    (0..4).map(|_| scope.spawn(|| folder.secret().unwrap())).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect()
            });
            assert!(found.iter().all(|one| *one == folder.secret().unwrap()), "{found:?}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_damaged_secret_is_made_anew() {
        let root = tempfile::tempdir().unwrap();
        let folder = CacheFolder::new(root.path().to_owned(), 1);
        for damaged in [&b"no number"[..], b"", b"\xff\xfe\0", &[0xa0; 34]] {
            fs::write(root.path().join("secret"), damaged).unwrap();
            let made = folder.secret().unwrap();
            assert_eq!(folder.secret().unwrap(), made);
        }
    }
}
