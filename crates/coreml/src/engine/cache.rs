//! Compiled packages on disk, found by what they were made of.
//!
//! An entry is a folder named by a digest of the package's model and weights, of the system's build and of
//! the chip: another system compiles anew. It holds the compiled model and a seal, which lists its files
//! with their lengths and digests; they are compared before an entry is used, and one that is damaged is
//! made anew. Entries appear by renaming finished folders, so processes need not agree on who compiles.
//! Whoever uses one holds a shared lock on its seal; the entries that were not used for the longest time go
//! when all together take too much room, unless somebody has them.
//!
//! The folder stays at one path for as long as it lives, as the system keeps what it prepares for the Neural
//! Engine by that path.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use galatea_apple::ChipIdentity;
use galatea_tensor::read_plain_text;
use siphasher::sip128::{Hasher128, SipHasher13};

use super::plain_file::open_plain;
use super::{CoreMlEngine, EngineError, counts};

/// The compiled model in an entry.
const MODEL: &str = "model.mlmodelc";
/// Name of the file that lists the files of an entry.
const SEAL: &str = "seal";
/// Suffix of folders that are being made or removed.
const PASSING: &str = "tmp";
/// Age from which such folders count as abandoned.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);
/// The most files of a compiled model.
const MAX_FILES: usize = 4096;
/// The most bytes of a seal.
const MAX_SEAL_BYTES: u64 = 1 << 20;

/// The most bytes of all entries, where nobody says otherwise.
pub const DEFAULT_LIMIT_BYTES: u64 = 16 << 30;

/// A folder of compiled packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledCache {
    folder: PathBuf,
    limit_bytes: u64,
}

/// A compiled package, which stays where it is for as long as this value lives.
#[derive(Debug)]
pub struct CompiledPackage {
    path: PathBuf,
    /// Has a shared lock until it is closed.
    _seal: File,
}

impl CompiledPackage {
    /// Form of package that [`CoreMlEngine::load`] takes.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns the facts that compiled packages depend on besides the package: the system's build and
/// the chip.
#[must_use]
pub fn facts() -> String {
    match ChipIdentity::detect() {
        Ok(chip) => format!("Core ML of macOS {:?} on {}", chip.system, chip.name),
        // What the interpreter reads is the package itself.
        Err(_) => "package".to_owned(),
    }
}

/// A keyed digest, so that nobody can make two packages of one name.
type PackageDigest = (u64, u64);

fn hasher(key: PackageDigest) -> SipHasher13 {
    SipHasher13::new_with_keys(key.0, key.1)
}

/// The digest of a file and its length.
fn digest(path: &Path, key: PackageDigest) -> io::Result<(u128, u64)> {
    let mut file = open_plain(path)?;
    let mut hasher = hasher(key);
    let mut len = 0;
    let mut part = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut part)?;
        if count == 0 {
            return Ok((hasher.finish128().as_u128(), len));
        }
        hasher.write(&part[..count]);
        len += count as u64;
    }
}

/// All files below a folder by their path in it, in order; the file itself, where it is one.
fn files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(inner) = waiting.pop() {
        let path = if inner.as_os_str().is_empty() { root.to_owned() } else { root.join(&inner) };
        if !fs::metadata(&path)?.is_dir() {
            found.push(inner);
        } else {
            for entry in fs::read_dir(&path)? {
                waiting.push(inner.join(entry?.file_name()));
            }
        }
        if found.len() + waiting.len() > MAX_FILES {
            return Err(io::Error::other(format!("more than {MAX_FILES} files")));
        }
    }
    found.sort();
    Ok(found)
}

/// The files of a package that make what it is: its manifest has other names each time it is written.
fn content(package: &Path, key: PackageDigest) -> io::Result<u128> {
    let mut all = hasher(key);
    for inner in files(package)? {
        if inner == Path::new("Manifest.json") {
            continue;
        }
        let path =
            if inner.as_os_str().is_empty() { package.to_owned() } else { package.join(&inner) };
        let (digest, len) = digest(&path, key)?;
        all.write(format!("{digest:032x} {len} ").as_bytes());
        all.write(inner.as_os_str().as_encoded_bytes());
    }
    Ok(all.finish128().as_u128())
}

impl CompiledCache {
    /// The cache in a folder, which is made when it is needed.
    #[must_use]
    pub fn new(folder: PathBuf, limit_bytes: u64) -> Self {
        Self { folder, limit_bytes }
    }

    fn failed(&self, error: impl std::fmt::Display) -> EngineError {
        EngineError::file(&self.folder, error)
    }

    /// A new folder under a name of its own, for what passes.
    ///
    /// # Errors
    /// Fails when it cannot be made.
    pub fn passing(&self) -> Result<PathBuf, EngineError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let own = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{}-{own}.{PASSING}", std::process::id(), started.as_nanos());
        let path = self.folder.join(name);
        // Others must not write what this user runs.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| self.failed(error))?;
        Ok(path)
    }

    /// A folder for what else is known of packages, which need not be there yet, and a number that is made once.
    ///
    /// # Errors
    /// Fails when the cache's folder cannot be written.
    pub(super) fn records(&self) -> io::Result<(PathBuf, (u64, u64))> {
        Ok((self.folder.join("records"), self.key()?))
    }

    /// A number that is made once for the folder.
    fn key(&self) -> io::Result<PackageDigest> {
        let path = self.folder.join("secret");
        let parse = |text: String| -> Option<PackageDigest> {
            let (a, b) = text.trim().split_once(' ')?;
            Some((u64::from_str_radix(a, 16).ok()?, u64::from_str_radix(b, 16).ok()?))
        };
        let read = || read_plain_text(&path).map(parse);
        let damaged = match read() {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => true,
            Err(error) => error.kind() == io::ErrorKind::InvalidData,
        };
        let random = || RandomState::new().build_hasher().finish();
        let passing = self.passing().map_err(io::Error::other)?;
        let own = passing.join("secret");
        fs::write(&own, format!("{:016x} {:016x}\n", random(), random()))?;
        // Whoever comes second takes the first one's number; only what is damaged is replaced.
        let linked = fs::hard_link(&own, &path);
        if damaged || linked.is_err_and(|error| error.kind() != io::ErrorKind::AlreadyExists) {
            fs::rename(&own, &path)?;
        }
        drop(fs::remove_dir_all(&passing));
        read()?.ok_or_else(|| io::Error::other("the cache's secret cannot be read back"))
    }

    /// The package as the engine compiles it: found, or compiled and added. `facts` is what the result
    /// depends on besides the package.
    ///
    /// # Errors
    /// Fails when the package cannot be read or compiled, or the folder not be written.
    pub fn compiled(
        &self,
        engine: &dyn CoreMlEngine,
        package: &Path,
        facts: &str,
    ) -> Result<CompiledPackage, EngineError> {
        let key = self.key().map_err(|error| self.failed(error))?;
        let content = content(package, key).map_err(|error| EngineError::file(package, error))?;
        let mut name = hasher(key);
        name.write(format!("{content:032x} {facts}").as_bytes());
        let entry = self.folder.join(format!("{:032x}", name.finish128().as_u128()));
        if let Some(found) = self.found(&entry, key) {
            counts::hit();
            return Ok(found);
        }
        let passing = self.passing()?;
        let made = engine.compile(package, &passing.join(MODEL)).and_then(|()| {
            seal(&passing, key).map_err(|error| self.failed(error))?;
            counts::compile();
            self.install(&passing, &entry, key)
        });
        // Nothing is there any more where it was installed.
        drop(fs::remove_dir_all(&passing));
        let made = made?;
        self.make_room(&entry);
        Ok(made)
    }

    /// Gives a finished folder its name. Somebody else's, who was sooner, is as good.
    fn install(
        &self,
        passing: &Path,
        entry: &Path,
        key: PackageDigest,
    ) -> Result<CompiledPackage, EngineError> {
        let mut last = None;
        for _ in 0..3 {
            if let Err(error) = fs::rename(passing, entry) {
                last = Some(error);
            }
            if let Some(found) = self.found(entry, key) {
                return Ok(found);
            }
        }
        let text = last.map_or("the new entry cannot be read back".to_owned(), |e| e.to_string());
        Err(EngineError::file(entry, text))
    }

    /// An entry that is whole. One that is damaged is taken away.
    fn found(&self, entry: &Path, key: PackageDigest) -> Option<CompiledPackage> {
        let seal = open_plain(&entry.join(SEAL)).ok()?;
        seal.lock_shared().ok()?;
        match whole(entry, &seal, key) {
            Ok(()) => {
                // Where the time cannot be set, nothing is removed either.
                drop(seal.set_modified(SystemTime::now()));
                Some(CompiledPackage { path: entry.join(MODEL), _seal: seal })
            }
            Err(error) => {
                tracing::warn!(entry = %entry.display(), %error, "removed a damaged entry of the cache of compiled models");
                drop(seal);
                self.remove(entry);
                None
            }
        }
    }

    /// Takes an entry away, at once for those who look there.
    fn remove(&self, entry: &Path) {
        let Ok(passing) = self.passing() else { return };
        // Somebody else may have been sooner.
        drop(fs::rename(entry, passing.join("entry")));
        drop(fs::remove_dir_all(passing));
    }

    /// Removes the entries that were not used for the longest time until the others fit, but never `newest`
    /// and none that somebody has; and what was left unfinished.
    fn make_room(&self, newest: &Path) {
        let Ok(listing) = fs::read_dir(&self.folder) else { return };
        let mut entries = Vec::new();
        let mut total = 0_u64;
        for path in listing.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|end| end == PASSING) {
                let age = path.metadata().and_then(|found| found.modified());
                if age.is_ok_and(|when| when.elapsed().is_ok_and(|age| age > ABANDONED)) {
                    drop(fs::remove_dir_all(&path));
                }
                continue;
            }
            let Ok(seal) = open_plain(&path.join(SEAL)) else { continue };
            let used = seal.metadata().and_then(|found| found.modified());
            let bytes = read_seal(&seal).map_or(0, |rows| rows.iter().map(|row| row.len).sum());
            total = total.saturating_add(bytes);
            if path != newest {
                entries.push((used.unwrap_or(SystemTime::UNIX_EPOCH), bytes, path, seal));
            }
        }
        entries.sort_by(|a, b| (a.0, &a.2).cmp(&(b.0, &b.2)));
        for (_, bytes, path, seal) in entries {
            if total <= self.limit_bytes {
                break;
            }
            if seal.try_lock().is_ok() {
                self.remove(&path);
                total = total.saturating_sub(bytes);
            }
        }
    }
}

/// A file of an entry.
struct CachedFile {
    digest: u128,
    len: u64,
    path: PathBuf,
}

/// Lists the files of a folder in its seal.
fn seal(folder: &Path, key: PackageDigest) -> io::Result<()> {
    let mut text = String::new();
    for inner in files(folder)? {
        let (digest, len) = digest(&folder.join(&inner), key)?;
        let name = inner.to_str().filter(|name| !name.contains('\n'));
        let name = name.ok_or_else(|| io::Error::other(format!("the name {inner:?}")))?;
        text.push_str(&format!("{digest:032x} {len} {name}\n"));
    }
    let path = folder.join(SEAL);
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn read_seal(seal: &File) -> io::Result<Vec<CachedFile>> {
    let mut text = String::new();
    seal.take(MAX_SEAL_BYTES).read_to_string(&mut text)?;
    let row = |line: &str| {
        let mut parts = line.splitn(3, ' ');
        let digest = u128::from_str_radix(parts.next()?, 16).ok()?;
        Some(CachedFile { digest, len: parts.next()?.parse().ok()?, path: parts.next()?.into() })
    };
    let rows: Option<Vec<CachedFile>> = text.lines().map(row).collect();
    rows.filter(|rows| !rows.is_empty()).ok_or_else(|| io::Error::other("the seal is broken"))
}

/// Returns whether an entry has the files of its seal and no others.
fn whole(entry: &Path, seal: &File, key: PackageDigest) -> io::Result<()> {
    let rows = read_seal(seal)?;
    let mut there = files(entry)?;
    there.retain(|path| path != Path::new(SEAL));
    let listed: Vec<&PathBuf> = rows.iter().map(|row| &row.path).collect();
    if there.iter().collect::<Vec<_>>() != listed {
        return Err(io::Error::other(format!("{} files, expected {}", there.len(), listed.len())));
    }
    for row in &rows {
        if digest(&entry.join(&row.path), key)? != (row.digest, row.len) {
            return Err(io::Error::other(format!("{} has other bytes", row.path.display())));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::super::{EngineLoadOptions, EngineModel, EnginePlannedOperator, ProgramInterpreter};
    use super::*;

    /// Copies packages as the interpreter does, and counts.
    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);

    impl CoreMlEngine for Counting {
        fn name(&self) -> &'static str {
            "counting"
        }

        fn compile(&self, package: &Path, into: &Path) -> Result<(), EngineError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            ProgramInterpreter.compile(package, into)
        }

        fn load(
            &self,
            compiled: &Path,
            options: &EngineLoadOptions,
        ) -> Result<Arc<dyn EngineModel>, EngineError> {
            ProgramInterpreter.load(compiled, options)
        }

        fn plan(
            &self,
            compiled: &Path,
            options: &EngineLoadOptions,
        ) -> Result<Vec<EnginePlannedOperator>, EngineError> {
            ProgramInterpreter.plan(compiled, options)
        }
    }

    fn package(root: &Path, name: &str, weights: &[u8]) -> PathBuf {
        let path = root.join(name);
        fs::create_dir_all(path.join("Data/weights")).unwrap();
        fs::write(path.join("Manifest.json"), name).unwrap();
        fs::write(path.join("Data/model.mlmodel"), "model").unwrap();
        fs::write(path.join("Data/weights/weight.bin"), weights).unwrap();
        path
    }

    struct Case {
        root: tempfile::TempDir,
        cache: CompiledCache,
        engine: Counting,
    }

    fn case(limit_bytes: u64) -> Case {
        let root = tempfile::tempdir().unwrap();
        let cache = CompiledCache::new(root.path().join("cache"), limit_bytes);
        Case { root, cache, engine: Counting::default() }
    }

    impl Case {
        fn compiled(&self, name: &str, weights: &[u8], facts: &str) -> CompiledPackage {
            let package = package(self.root.path(), name, weights);
            self.cache.compiled(&self.engine, &package, facts).unwrap()
        }

        fn compiles(&self) -> usize {
            self.engine.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_package_is_compiled_once_for_a_system_whatever_its_manifest_says() {
        let case = case(DEFAULT_LIMIT_BYTES);
        let first = case.compiled("a.mlpackage", &[1; 100], "system 1");
        let again = case.compiled("b.mlpackage", &[1; 100], "system 1");
        assert_eq!((first.path(), case.compiles()), (again.path(), 1));
        assert_eq!(fs::read(first.path().join("Data/weights/weight.bin")).unwrap(), [1; 100]);
        let other = case.compiled("a.mlpackage", &[1; 100], "system 2");
        assert_ne!(first.path(), other.path());
        case.compiled("a.mlpackage", &[2; 100], "system 1");
        assert_eq!(case.compiles(), 3);
        let left = fs::read_dir(case.root.path().join("cache")).unwrap();
        let ends = left.flatten().filter(|one| one.path().extension().is_some());
        assert_eq!(ends.count(), 0, "nothing passing is left");
    }

    #[test]
    fn a_damaged_entry_is_compiled_anew() {
        type Damage = fn(&Path);
        let damages: [Damage; 4] = [
            |model| fs::write(model.join("Data/weights/weight.bin"), [9; 100]).unwrap(),
            |model| fs::remove_file(model.join("Data/model.mlmodel")).unwrap(),
            |model| fs::write(model.join("more"), "").unwrap(),
            |model| fs::write(model.parent().unwrap().join(SEAL), "no seal").unwrap(),
        ];
        for (at, damage) in damages.into_iter().enumerate() {
            let case = case(DEFAULT_LIMIT_BYTES);
            let first = case.compiled("a.mlpackage", &[1; 100], "");
            damage(first.path());
            let again = case.compiled("a.mlpackage", &[1; 100], "");
            assert_eq!(case.compiles(), 2, "damage {at}");
            assert_eq!(fs::read(again.path().join("Data/weights/weight.bin")).unwrap(), [1; 100]);
        }
    }

    #[test]
    fn the_entries_that_nobody_used_for_the_longest_time_go_first() {
        let case = case(400);
        let old = case.compiled("a.mlpackage", &[1; 150], "");
        let path = old.path().to_owned();
        let held = case.compiled("b.mlpackage", &[2; 150], "");
        // Somebody has both, so none of them goes.
        case.compiled("c.mlpackage", &[3; 150], "");
        assert!(path.exists() && held.path().exists());
        drop(old);
        case.compiled("d.mlpackage", &[4; 150], "");
        assert!(!path.exists() && held.path().exists());
        case.compiled("b.mlpackage", &[2; 150], "");
        assert_eq!(case.compiles(), 4);
    }

    #[test]
    fn whoever_comes_at_the_same_time_gets_the_same_entry() {
        let case = case(DEFAULT_LIMIT_BYTES);
        let package = package(case.root.path(), "a.mlpackage", &[1; 1000]);
        let paths: Vec<PathBuf> = std::thread::scope(|scope| {
            let one = || case.cache.compiled(&case.engine, &package, "").unwrap().path().to_owned();
            let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(paths.iter().all(|path| *path == paths[0] && path.exists()), "{paths:?}");
    }

    #[test]
    fn what_cannot_be_compiled_leaves_nothing() {
        let case = case(DEFAULT_LIMIT_BYTES);
        let missing = case.root.path().join("none.mlpackage");
        assert!(case.cache.compiled(&case.engine, &missing, "").is_err());
        assert_eq!(case.compiles(), 0);
    }
}
