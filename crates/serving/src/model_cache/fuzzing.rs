//! Entries of the cache for fuzz targets.

#![allow(clippy::expect_used, reason = "a panic is how a fuzz target reports")]

use std::fs;
use std::sync::Arc;

use galatea_tensor::MappedFile;

use super::entry::{self, CacheEntry};

/// Text that the entries of fuzz targets are of.
const TEXT: &str = "fuzz";

/// Reads bytes as an entry as they are, and as one whose checksums are right, which no mutation gets past.
pub fn cache_entry(data: &[u8]) {
    read(data);
    if let Some(sealed) = entry::sealed(data, TEXT) {
        read(&sealed);
    }
}

fn read(file: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("entry");
    fs::write(&path, file).expect("the entry");
    let Ok(memory) = MappedFile::open(&path) else { return };
    let opened = CacheEntry::open(Arc::new(memory), TEXT);
    let _ =
        opened.and_then(|entry| entry.read(Vec::new()).map(|(stored, _)| stored.constants.len()));
}
