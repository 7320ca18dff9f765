//! Resources of servers that were killed: folders, names of shared memory, and workers that cannot hear that they
//! are to end.
//!
//! Every server locks a file in its folder, so whoever gets the lock knows that its owner is dead, in whatever container
//! it was. The file says how the names of shared memory began: with letters of the folder's own name, as servers in
//! different containers may have one number and yet share memory.
//!
//! Folders of temporary files are cleaned up also while their owners run. What ages there is left alone by those who
//! see the lock on the folder (systemd does); what is missing all the same is made anew.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::sync::{Mutex, Once};
use std::time::Duration;

use galatea_runtime::worker::end_stray;
use galatea_tensor::SharedBlock;
use tempfile::TempDir;

use super::locked;
use super::own_files::WORKER;

/// Beginning of the names of folders.
const FOLDER: &str = "galatea-python-";
/// The file that the owner of a folder has locked.
const OWNER: &str = "owner";
/// A folder without an owner's file is left alone for so long: somebody may be making it.
const YOUNG: Duration = Duration::from_secs(3600);
/// Longest file of an owner that is read.
const MAX_OWNER_BYTES: u64 = 64 << 10;
/// Where names of shared memory cannot be listed, those of so many workers and blocks of each are tried.
const TRIED: (usize, usize) = (4096, 4);

/// A folder of this server, which goes with it or, where it is killed, when the next one starts.
#[derive(Debug)]
pub(super) struct ServerFolder {
    // Goes before the lock does.
    folder: TempDir,
    owner: Mutex<FolderOwner>,
}

#[derive(Debug)]
struct FolderOwner {
    /// Both locked for as long as they are open.
    folder: File,
    file: File,
    /// Beginnings of names of shared memory, which the file has.
    names: Vec<String>,
}

impl FolderOwner {
    /// Marks a folder as this server's; `None` where somebody who removes what is left behind has come in between.
    fn mark(folder: &Path, names: &[String]) -> io::Result<Option<Self>> {
        let path = folder.join(OWNER);
        let mut file = File::create_new(&path)?;
        if file.try_lock().is_err() || !path.exists() {
            return Ok(None);
        }
        let folder = File::open(folder)?;
        if let Err(error) = folder.try_lock() {
            tracing::debug!("the folder of the Python backend is not locked: {error}");
        }
        names.iter().try_for_each(|names| file.write_all(format!("{names}\n").as_bytes()))?;
        Ok(Some(Self { folder, file, names: names.to_vec() }))
    }

    /// Whether that is the folder.
    fn has(&self, path: &Path) -> io::Result<bool> {
        let own = self.folder.metadata()?;
        let found = fs::symlink_metadata(path)?;
        Ok((own.dev(), own.ino()) == (found.dev(), found.ino()))
    }
}

impl ServerFolder {
    /// Makes a folder, and removes what dead servers have left the first time.
    ///
    /// # Errors
    /// When there can be none.
    pub(super) fn make() -> io::Result<Self> {
        let temporary = std::env::temp_dir();
        let home = Self::make_in(&temporary)?;
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| sweep(&temporary));
        Ok(home)
    }

    fn make_in(temporary: &Path) -> io::Result<Self> {
        loop {
            let folder = tempfile::Builder::new().prefix(FOLDER).tempdir_in(temporary)?;
            if let Some(owner) = FolderOwner::mark(folder.path(), &[])? {
                return Ok(Self { folder, owner: Mutex::new(owner) });
            }
        }
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Makes what is missing of the folder and of files in it, given by name and text.
    ///
    /// # Errors
    /// When it cannot be written, or somebody else has made a folder of that name.
    pub(super) fn restore(&self, files: &[(&str, &str)]) -> io::Result<()> {
        let mut owner = locked(&self.owner);
        let path = self.path();
        match owner.has(path) {
            Ok(true) => {}
            Ok(false) => {
                return Err(io::Error::other(format!("'{}' is somebody else's", path.display())));
            }
            Err(_) => DirBuilder::new().mode(0o700).create(path)?,
        }
        if !path.join(OWNER).exists() {
            tracing::warn!("somebody has removed files from '{}', which is in use", path.display());
            let marked = FolderOwner::mark(path, &owner.names)?;
            *owner = marked.ok_or_else(|| io::Error::other("somebody removes it right now"))?;
        }
        let missing = files.iter().filter(|(name, _)| !path.join(name).exists());
        missing.into_iter().try_for_each(|(name, text)| fs::write(path.join(name), text))
    }

    /// The beginning of all names of shared memory of this folder's workers that begin with `prefix`, which is noted.
    pub(super) fn names(&self, prefix: &str) -> String {
        let own = self.path().file_name().unwrap_or_default().to_string_lossy();
        let names = format!("{prefix}{}_", own.strip_prefix(FOLDER).unwrap_or(&own));
        let mut owner = locked(&self.owner);
        if !owner.names.contains(&names) {
            if let Err(error) = owner.file.write_all(format!("{names}\n").as_bytes()) {
                tracing::warn!("the names of shared memory are not noted: {error}");
            }
            owner.names.push(names.clone());
        }
        names
    }
}

/// Removes what dead servers of this user have left in a folder of temporary files. Nobody has named any shared memory
/// in this process yet.
fn sweep(temporary: &Path) {
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(FOLDER)) {
        let path = entry.path();
        match is_dead(&path) {
            Ok(Some(owner)) => clear(&path, owner),
            Ok(None) => {}
            Err(error) => tracing::debug!("'{}' stays: {error}", path.display()),
        }
    }
}

/// The file of a folder's owner, locked and about to go, where the owner is dead.
fn is_dead(path: &Path) -> io::Result<Option<Option<File>>> {
    let found = fs::symlink_metadata(path)?;
    let own = tempfile::tempfile()?.metadata()?.uid();
    if !found.is_dir() || found.uid() != own {
        return Ok(None);
    }
    match OpenOptions::new().read(true).write(true).open(path.join(OWNER)) {
        Ok(file) => Ok(file.try_lock().is_ok().then_some(Some(file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let age = found.modified()?.elapsed().unwrap_or_default();
            Ok((age > YOUNG).then_some(None))
        }
        Err(error) => Err(error),
    }
}

fn clear(path: &Path, owner: Option<File>) {
    tracing::info!("'{}' was left behind by a server that was killed; it goes", path.display());
    for process in workers_of(path) {
        match end_stray(process) {
            Ok(()) => tracing::warn!("worker {process} of a dead server was ended"),
            Err(error) => tracing::warn!("worker {process} of a dead server stays: {error}"),
        }
    }
    let mut names = String::new();
    if let Some(owner) = owner.as_ref() {
        // What cannot be read names nothing.
        let _ = owner.take(MAX_OWNER_BYTES).read_to_string(&mut names);
    }
    names.lines().filter(|name| name.starts_with('/') && name.len() > 3).for_each(unlink_all);
    if let Err(error) = fs::remove_dir_all(path) {
        tracing::warn!("'{}' stays: {error}", path.display());
    }
}

/// Takes all names of shared memory away that begin so.
fn unlink_all(names: &str) {
    let listed = Path::new("/dev/shm");
    let Some(beginning) = names.strip_prefix('/') else { return };
    if let Ok(entries) = fs::read_dir(listed) {
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(beginning) {
                SharedBlock::unlink(&format!("/{name}"));
            }
        }
        return;
    }
    tried(names).for_each(|name| SharedBlock::unlink(&name));
}

/// Names that begin so and may be there: of pages of flags and of blocks, those for calls too.
fn tried(names: &str) -> impl Iterator<Item = String> {
    let workers = (0..TRIED.0).flat_map(move |worker| {
        ["", "c"].into_iter().map(move |calls| format!("{names}{worker:x}{calls}"))
    });
    workers.flat_map(|worker| {
        let blocks = (1..=TRIED.1).flat_map(|block| [format!("i{block:x}"), format!("o{block:x}")]);
        let ends = std::iter::once("f".to_owned()).chain(blocks);
        ends.map(move |end| format!("{worker}{end}"))
    })
}

/// The processes that run the worker's file of that folder.
fn workers_of(folder: &Path) -> Vec<u32> {
    let file = folder.join(WORKER);
    let Ok(entries) = fs::read_dir("/proc/self").and_then(|_| fs::read_dir("/proc")) else {
        return listed_by_ps(&file);
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let runs = |process: &u32| {
        let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let mut words = command.split(|byte| *byte == 0);
        words.nth(2).is_some_and(|word| word == file.as_os_str().as_encoded_bytes())
    };
    entries.flatten().filter_map(number).filter(runs).collect()
}

fn listed_by_ps(file: &Path) -> Vec<u32> {
    let command = std::process::Command::new("ps").args(["-axo", "pid=,command="]).output();
    let Ok(output) = command else { return Vec::new() };
    let ending = format!(" -u {}", file.display());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter(|line| line.ends_with(&ending));
    lines.filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_server_left_goes_and_a_living_one_keeps_all() {
        let temporary = tempfile::tempdir().unwrap();
        let dead = ServerFolder::make_in(temporary.path()).unwrap();
        let living = ServerFolder::make_in(temporary.path()).unwrap();
        let names = dead.names("/glstests");
        let living_names = living.names("/glstests");
        // No server has the other's, nor names that are too long for macOS.
        assert!(names != living_names && names.len() == 16, "{names}, {living_names}");
        let name = format!("{names}0i1");
        let block = SharedBlock::create(&name, 100, 1).unwrap();
        let path = dead.path().to_owned();
        fs::write(path.join(WORKER), "import time; time.sleep(600)").unwrap();
        let stray = std::process::Command::new("python3")
            .args(["-u".as_ref(), path.join(WORKER).as_os_str()])
            .spawn();
        // As the system does when a process ends.
        let ServerFolder { folder, owner } = dead;
        let _ = folder.keep();
        drop(owner);
        // A process that another test is starting has the lock until it runs its own program.
        let is_gone = || {
            sweep(temporary.path());
            std::thread::yield_now();
            !path.exists()
        };
        assert!(std::iter::repeat_with(is_gone).take(10_000).any(|gone| gone));
        assert!(living.path().exists());
        assert!(SharedBlock::open(&name, 100, 1).is_err());
        drop(block);
        if let Ok(mut stray) = stray {
            assert!(!stray.wait().unwrap().success());
        }
    }

    #[test]
    fn where_names_cannot_be_listed_those_of_calls_are_tried_too() {
        let tried: Vec<String> = tried("/gls_").collect();
        for name in ["/gls_0f", "/gls_0i1", "/gls_fffo4", "/gls_0cf", "/gls_1ci2", "/gls_fffco4"] {
            assert!(tried.iter().any(|tried| tried == name), "{name}");
        }
    }

    #[test]
    fn what_is_removed_of_a_folder_in_use_is_made_anew() {
        let temporary = tempfile::tempdir().unwrap();
        let home = ServerFolder::make_in(temporary.path()).unwrap();
        let names = home.names("/glr");
        let first = home.path().join("first");
        let second = home.path().join("second");
        let files = [("first", "1"), ("second", "2")];
        home.restore(&files).unwrap();
        fs::remove_file(&first).unwrap();
        home.restore(&files).unwrap();
        assert_eq!(fs::read_to_string(&first).unwrap(), "1");
        fs::remove_dir_all(home.path()).unwrap();
        home.restore(&files).unwrap();
        assert_eq!(fs::read_to_string(&second).unwrap(), "2");
        assert_eq!(fs::read_to_string(home.path().join(OWNER)).unwrap(), format!("{names}\n"));
        assert!(is_dead(home.path()).unwrap().is_none());
        // Somebody else's is not used.
        fs::remove_dir_all(home.path()).unwrap();
        fs::create_dir(home.path()).unwrap();
        assert!(home.restore(&files).unwrap_err().to_string().contains("is somebody else's"));
    }
}
