//! What servers leave behind that were killed: folders, names of shared memory, and workers that cannot hear that they
//! are to end.
//!
//! Every server locks a file in its folder, so whoever gets the lock knows that its owner is dead, in whatever container
//! it was. The file says how the names of shared memory began.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use galatea_tensor::SharedBlock;
use tempfile::TempDir;

use super::folder::WORKER;
use super::group;

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
pub(super) struct Home {
    // Goes before the lock does.
    folder: TempDir,
    owner: Mutex<(File, Vec<String>)>,
}

impl Home {
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
            let path = folder.path().join(OWNER);
            let owner = File::create_new(&path)?;
            // Somebody who removes what is left behind may have come in between.
            if owner.try_lock().is_ok() && path.exists() {
                return Ok(Self { folder, owner: Mutex::new((owner, Vec::new())) });
            }
        }
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The beginning of all names of shared memory of this process that begin with `prefix`, which is noted.
    pub(super) fn names(&self, prefix: &str) -> String {
        let names = format!("{prefix}{:x}_", std::process::id());
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        if !owner.1.contains(&names) {
            if let Err(error) = owner.0.write_all(format!("{names}\n").as_bytes()) {
                tracing::warn!("the names of shared memory are not noted: {error}");
            }
            owner.1.push(names.clone());
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
        match group::end_stray(process) {
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
    for worker in 0..TRIED.0 {
        SharedBlock::unlink(&format!("{names}{worker:x}f"));
        for block in 1..=TRIED.1 {
            SharedBlock::unlink(&format!("{names}{worker:x}i{block:x}"));
            SharedBlock::unlink(&format!("{names}{worker:x}o{block:x}"));
        }
    }
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
        let dead = Home::make_in(temporary.path()).unwrap();
        let living = Home::make_in(temporary.path()).unwrap();
        let name = format!("{}0i1", dead.names("/gls"));
        let block = SharedBlock::create(&name, 100, 1).unwrap();
        let path = dead.path().to_owned();
        fs::write(path.join(WORKER), "import time; time.sleep(600)").unwrap();
        let stray = std::process::Command::new("python3")
            .args(["-u".as_ref(), path.join(WORKER).as_os_str()])
            .spawn();
        // As the system does when a process ends.
        let Home { folder, owner } = dead;
        let _ = folder.keep();
        drop(owner);
        sweep(temporary.path());
        assert!(!path.exists() && living.path().exists());
        assert!(SharedBlock::open(&name, 100, 1).is_err());
        drop(block);
        if let Ok(mut stray) = stray {
            assert!(!stray.wait().unwrap().success());
        }
        assert_eq!(living.names("/a"), format!("/a{:x}_", std::process::id()));
    }
}
