//! Files of caches, which may have been replaced by something that has no end or no writer.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Opens a file for reading.
///
/// # Errors
/// Returns the error of the system, and refuses pipes, devices and folders, which would never be read to their end.
pub(super) fn open_plain(path: &Path) -> io::Result<File> {
    match fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        assert!(open_plain(&file).is_ok());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [folder.path(), &link, &folder.path().join("none")] {
            assert!(open_plain(path).is_err(), "{}", path.display());
        }
    }
}
