//! Folders of temporary files that go with their server, also where it is killed.
//!
//! Every folder is locked for as long as its owner lives. Whoever gets the lock knows that the owner is dead, in whatever
//! container it was, and removes the folder.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Once;

use tempfile::TempDir;

/// Beginning of the names of all such folders.
const PREFIX: &str = "galatea-held-";

/// A folder that goes when this is dropped or, where the process is killed, when the next server starts.
#[derive(Debug)]
pub struct LockedFolder {
    // Goes before the lock does.
    folder: TempDir,
    _lock: File,
}

impl LockedFolder {
    /// Makes a folder, whose name says what for.
    ///
    /// # Errors
    /// Returns the error of the system's folder for temporary files, which `TMPDIR` names.
    pub fn make(purpose: &str) -> io::Result<Self> {
        Self::make_in(&std::env::temp_dir(), purpose)
    }

    fn make_in(temporary: &Path, purpose: &str) -> io::Result<Self> {
        loop {
            let prefix = format!("{PREFIX}{purpose}-");
            let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(temporary)?;
            let lock = File::open(folder.path());
            // Somebody who removes what is left behind may have come in between.
            match lock {
                Ok(lock) if lock.try_lock().is_ok() && folder.path().exists() => {
                    return Ok(Self { folder, _lock: lock });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of dead processes of this user, once in a process.
pub fn remove_leftovers() {
    static REMOVED: Once = Once::new();
    REMOVED.call_once(|| remove_leftovers_in(&std::env::temp_dir()));
}

fn remove_leftovers_in(temporary: &Path) {
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let path = entry.path();
        // The lock is held until the folder is gone.
        let removed = lock_of_dead(&path).and_then(|lock| match lock {
            Some(_lock) => fs::remove_dir_all(&path).map(|()| true),
            None => Ok(false),
        });
        match removed {
            Ok(true) => {
                tracing::info!(
                    "'{}' was left behind by a server that was killed; it is removed",
                    path.display()
                );
            }
            Ok(false) => {}
            Err(error) => tracing::debug!("'{}' stays: {error}", path.display()),
        }
    }
}

/// Locks a folder of this user whose owner is dead.
fn lock_of_dead(path: &Path) -> io::Result<Option<File>> {
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    let folder = File::open(path)?;
    Ok(folder.try_lock().is_ok().then_some(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_dead_go_and_those_of_the_living_stay() {
        let temporary = tempfile::tempdir().unwrap();
        let living = LockedFolder::make_in(temporary.path(), "model").unwrap();
        let dead = LockedFolder::make_in(temporary.path(), "links").unwrap();
        let path = dead.path().to_owned();
        fs::create_dir(path.join("1")).unwrap();
        fs::write(path.join("1/model.onnx"), "x").unwrap();
        // As the system does when a process ends.
        let LockedFolder { folder, _lock } = dead;
        let _ = folder.keep();
        drop(_lock);
        let foreign = temporary.path().join("galatea-other");
        fs::create_dir(&foreign).unwrap();
        let linked = temporary.path().join(format!("{PREFIX}link"));
        std::os::unix::fs::symlink(&foreign, &linked).unwrap();
        // A process that another test is starting has the lock until it runs its own program.
        let is_gone = || {
            remove_leftovers_in(temporary.path());
            std::thread::yield_now();
            !path.exists()
        };
        assert!(std::iter::repeat_with(is_gone).take(10_000).any(|gone| gone));
        assert!(living.path().exists() && foreign.exists() && linked.is_symlink());
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }
}
