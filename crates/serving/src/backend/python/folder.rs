//! Folder of the backend's own Python files.

use std::io;
use std::sync::{Arc, Mutex};

use super::locked;
use super::own_files::FILES;
use super::stale_resources::ServerFolder;

/// A folder of this process with the files, made when the first model is loaded. It goes with the last that has it.
#[derive(Debug, Default)]
pub(super) struct BackendFolder(Mutex<Option<Arc<ServerFolder>>>);

impl BackendFolder {
    /// The folder.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn get(&self) -> io::Result<Arc<ServerFolder>> {
        let mut made = locked(&self.0);
        let home = match &*made {
            Some(home) => Arc::clone(home),
            None => Arc::clone(made.insert(Arc::new(ServerFolder::make()?))),
        };
        restore(&home)?;
        Ok(home)
    }
}

/// Writes the files that are not there, or not any more.
///
/// # Errors
/// When they cannot be written.
pub(super) fn restore(home: &ServerFolder) -> io::Result<()> {
    home.restore(FILES)
}
