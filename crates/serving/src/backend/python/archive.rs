//! Unpacks the archive of an environment into a folder that nothing in it can leave.
//!
//! Every folder of a path is made or seen here and is no link, so nothing is ever written through one. Where links lead
//! is looked at when all is there.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use flate2::bufread::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::archive_bounds::{ArchiveBounds, HeaderBudget, MAX_HEADER_BYTES, MAX_REST_BYTES};
use crate::error::ServingError;

/// Accepted forms, for errors.
const ACCEPTED: &str =
    "expected a tar archive, compressed with gzip (.tar.gz, .tgz) or not at all (.tar)";
/// Where tar archives name their format, and how.
const TAR_MARK: (usize, &[u8]) = (257, b"ustar");
/// First bytes of what people pack as well.
const OTHERS: &[(&[u8], &str)] = &[
    (b"BZh", "compressed with bzip2"),
    (b"PK", "a zip archive"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
    (b"\xfd7zXZ", "compressed with xz"),
    (b"7z\xbc\xaf", "a 7-zip archive"),
];
/// The most folders in folders: what removes them goes as deep.
const MAX_DEPTH: usize = 128;
/// Remedy for archives with sparse files in a form that is not read, for errors.
const WHOLE_FILES: &str = "expected one packed without --sparse, or with --format=gnu";
/// Copied at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Unpacks an archive into a folder that exists and is empty.
///
/// # Errors
/// INVALID_ARG with what is wrong with the archive, INTERNAL where the folder cannot be written. What is unpacked by
/// then stays.
pub(super) fn unpack(archive: &Path, folder: &Path) -> Result<(), ServingError> {
    let bounds = ArchiveBounds::of(folder).map_err(|error| {
        let folder = folder.display();
        ServingError::internal(format!("the disk of '{folder}' does not say what it has: {error}"))
    })?;
    let mut unpacking =
        ArchiveUnpacking { archive, folder, folders: HashSet::new(), links: Vec::new(), bounds };
    let budget = HeaderBudget::new();
    let mut tar = Archive::new(budget.bound(unpacking.open()?));
    let entries = tar.entries().map_err(|error| unpacking.damaged(0, &error))?;
    let mut count = 0;
    for entry in entries {
        let entry = entry.map_err(|error| unpacking.damaged(count, &error))?;
        // The bytes of a file are counted by its size.
        budget.allow(u64::MAX);
        unpacking.entry(entry)?;
        budget.allow(MAX_HEADER_BYTES);
        count += 1;
    }
    // The checksum stands behind the end of the archive.
    budget.allow(MAX_REST_BYTES);
    let rest = io::copy(&mut tar.into_inner(), &mut io::sink());
    rest.map_err(|error| unpacking.damaged(count, &error))?;
    if count == 0 {
        return Err(unpacking.wrong("is empty"));
    }
    unpacking.check_links()
}

struct ArchiveUnpacking<'a> {
    archive: &'a Path,
    folder: &'a Path,
    /// Folders that are there, from the archive's top.
    folders: HashSet<PathBuf>,
    /// Links, with where they lead.
    links: Vec<(PathBuf, PathBuf)>,
    bounds: ArchiveBounds,
}

impl ArchiveUnpacking<'_> {
    fn wrong(&self, what: impl Display) -> ServingError {
        ServingError::invalid_arg(format!("the archive '{}' {what}", self.archive.display()))
    }

    fn damaged(&self, count: usize, error: &io::Error) -> ServingError {
        match count {
            0 => self.wrong(format_args!("holds no tar archive: {error}; {ACCEPTED}")),
            _ => self.wrong(format_args!("is truncated or damaged after {count} entries: {error}")),
        }
    }

    fn unwritten(&self, path: &Path, error: &io::Error) -> ServingError {
        let archive = self.archive.display();
        let path = path.display();
        ServingError::internal(format!(
            "the archive '{archive}' is not unpacked: '{path}' cannot be written: {error}"
        ))
    }

    /// The bytes of the tar archive.
    fn open(&self) -> Result<Box<dyn Read>, ServingError> {
        let unread = |error: io::Error| self.wrong(format_args!("cannot be read: {error}"));
        let mut file = File::open(self.archive).map_err(unread)?;
        let (at, mark) = TAR_MARK;
        let mut head = Vec::new();
        let most = at + mark.len();
        let taken = u64::try_from(most).unwrap_or(u64::MAX);
        (&file).take(taken).read_to_end(&mut head).map_err(unread)?;
        file.rewind().map_err(unread)?;
        let file = BufReader::with_capacity(PIECE_BYTES, file);
        if head.starts_with(b"\x1f\x8b") {
            return Ok(Box::new(MultiGzDecoder::new(file)));
        }
        if head.get(at..most) == Some(mark) {
            return Ok(Box::new(file));
        }
        let other = OTHERS.iter().find(|(first, _)| head.starts_with(first));
        let first = head.get(..8).unwrap_or(&head);
        Err(match other {
            _ if head.is_empty() => self.wrong(format_args!("is an empty file, {ACCEPTED}")),
            Some((_, what)) => self.wrong(format_args!("is {what}, {ACCEPTED}")),
            None => self.wrong(format_args!("begins with the bytes {first:02x?}, {ACCEPTED}")),
        })
    }

    fn entry<R: Read>(&mut self, mut entry: Entry<'_, R>) -> Result<(), ServingError> {
        let damaged = |error: io::Error| self.wrong(format_args!("is damaged: {error}"));
        let named = entry.path().map_err(damaged)?.into_owned();
        let shown = named.display();
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            return Ok(());
        }
        let Some(path) = inner(&named) else {
            let text = format!("holds the path '{shown}', which leads out of it");
            return Err(self.wrong(text));
        };
        if path.components().count() > MAX_DEPTH {
            let shown: String = shown.to_string().chars().take(200).collect();
            let text = format!("holds folders in folders more than {MAX_DEPTH} deep: '{shown}…'");
            return Err(self.wrong(text));
        }
        if is_sparse_by_attributes(&mut entry).map_err(damaged)? {
            let text = format!("holds '{shown}' as a sparse file of attributes, {WHOLE_FILES}");
            return Err(self.wrong(text));
        }
        let mode = entry.header().mode().map_err(damaged)?;
        let target = entry.link_name().map_err(damaged)?.map(Cow::into_owned).unwrap_or_default();
        if kind == EntryType::Directory || kind.is_file() && entry.path_bytes().ends_with(b"/") {
            self.make_folder(&path)?;
            // Whoever removes it must be able to.
            let at = self.folder.join(&path);
            let mode = mode & 0o777 | 0o700;
            let set = fs::set_permissions(&at, Permissions::from_mode(mode));
            return set.map_err(|error| self.unwritten(&at, &error));
        }
        if path.as_os_str().is_empty() {
            return Err(self.wrong(format_args!("holds the file '{shown}', which has no name")));
        }
        self.bounds.take_entry(&path).map_err(|over| self.wrong(over))?;
        self.clear(&path)?;
        match kind {
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                self.file(&path, mode, &mut entry)
            }
            EntryType::Symlink | EntryType::Link => self.link(path, target, kind),
            _ => Err(self.wrong(format_args!(
                "holds '{shown}', which is neither a file nor a folder nor a link"
            ))),
        }
    }

    /// Makes the folder and those above it where they are missing.
    fn make_folder(&mut self, path: &Path) -> Result<(), ServingError> {
        if path.as_os_str().is_empty() || self.folders.contains(path) {
            return Ok(());
        }
        if let Some(above) = path.parent() {
            self.make_folder(above)?;
        }
        let at = self.folder.join(path);
        match fs::symlink_metadata(&at) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                let path = path.display();
                let text = format!("holds something in '{path}', which is no folder");
                return Err(self.wrong(text));
            }
            Err(_) => fs::create_dir(&at).map_err(|error| self.unwritten(&at, &error))?,
        }
        self.bounds.take_entry(path).map_err(|over| self.wrong(over))?;
        self.folders.insert(path.to_owned());
        Ok(())
    }

    /// Takes away what has the name, as the last of several entries counts, and makes the folder that it is in.
    fn clear(&mut self, path: &Path) -> Result<(), ServingError> {
        self.make_folder(path.parent().unwrap_or(Path::new("")))?;
        let at = self.folder.join(path);
        match fs::symlink_metadata(&at) {
            Err(_) => Ok(()),
            Ok(found) if found.is_dir() => {
                let path = path.display();
                Err(self.wrong(format_args!("holds '{path}' both as a folder and otherwise")))
            }
            Ok(_) => {
                self.links.retain(|(link, _)| link != path);
                fs::remove_file(&at).map_err(|error| self.unwritten(&at, &error))
            }
        }
    }

    fn file<R: Read>(
        &mut self,
        path: &Path,
        mode: u32,
        entry: &mut Entry<'_, R>,
    ) -> Result<(), ServingError> {
        self.bounds.take_file(entry.size()).map_err(|over| self.wrong(over))?;
        let at = self.folder.join(path);
        let unwritten = |error: io::Error| self.unwritten(&at, &error);
        let truncated = |why: &dyn Display| {
            self.wrong(format_args!("is truncated or damaged in '{}': {why}", path.display()))
        };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&at);
        let file = file.as_mut().map_err(|error| self.unwritten(&at, error))?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut left = entry.size();
        loop {
            let count = entry.read(&mut piece).map_err(|error| truncated(&error))?;
            if count == 0 {
                break;
            }
            left = left.saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
            file.write_all(piece.get(..count).unwrap_or_default()).map_err(unwritten)?;
        }
        if left > 0 {
            return Err(truncated(&format_args!("{left} bytes are missing")));
        }
        // Compiled modules are thrown away where those that they were made from are younger.
        let time = entry.header().mtime().ok().map(Duration::from_secs);
        if let Some(time) = time.and_then(|time| SystemTime::UNIX_EPOCH.checked_add(time)) {
            file.set_modified(time).map_err(unwritten)?;
        }
        file.set_permissions(Permissions::from_mode(mode & 0o777 | 0o600)).map_err(unwritten)
    }

    fn link(
        &mut self,
        path: PathBuf,
        target: PathBuf,
        kind: EntryType,
    ) -> Result<(), ServingError> {
        let at = self.folder.join(&path);
        if kind == EntryType::Symlink {
            symlink(&target, &at).map_err(|error| self.unwritten(&at, &error))?;
            self.links.push((path, target));
            return Ok(());
        }
        let original = inner(&target).filter(|original| self.has(original)).ok_or_else(|| {
            let path = path.display();
            let target = target.display();
            self.wrong(format_args!(
                "holds the hard link '{path}' to '{target}', expected a file that stands before it in the archive"
            ))
        })?;
        let linked = fs::hard_link(self.folder.join(&original), &at);
        linked.map_err(|error| self.unwritten(&at, &error))?;
        if let Some((_, target)) = self.links.iter().find(|(link, _)| *link == original) {
            let target = target.clone();
            self.links.push((path, target));
        }
        Ok(())
    }

    /// Whether there is such a file, not behind a link.
    fn has(&self, path: &Path) -> bool {
        let above = path.parent().unwrap_or(Path::new(""));
        let found = fs::symlink_metadata(self.folder.join(path));
        (above.as_os_str().is_empty() || self.folders.contains(above))
            && found.is_ok_and(|found| !found.is_dir())
    }

    fn check_links(&self) -> Result<(), ServingError> {
        let root =
            self.folder.canonicalize().map_err(|error| self.unwritten(self.folder, &error))?;
        for (path, target) in &self.links {
            let shown = path.display();
            let leads = target.display();
            let found = self.folder.join(path).canonicalize();
            let inside = match &found {
                Ok(found) => found.starts_with(&root),
                // What leads nowhere is judged by its text.
                Err(_) => stays_inside(path, target),
            };
            let outside = "which leads out of it; expected links inside the archive";
            match found {
                _ if inside => {}
                Ok(found) if is_interpreter(path) && found.is_file() => {}
                Err(_) if is_interpreter(path) => {
                    let text = "an interpreter that is not on this host";
                    return Err(
                        self.wrong(format_args!("holds the link '{shown}' to '{leads}', {text}"))
                    );
                }
                _ => {
                    return Err(self
                        .wrong(format_args!("holds the link '{shown}' to '{leads}', {outside}")));
                }
            }
        }
        Ok(())
    }
}

/// Returns whether an entry holds a sparse file in the form of PAX attributes: its map would be taken for its bytes.
fn is_sparse_by_attributes<R: Read>(entry: &mut Entry<'_, R>) -> io::Result<bool> {
    let Some(attributes) = entry.pax_extensions()? else { return Ok(false) };
    for attribute in attributes {
        if attribute?.key_bytes().starts_with(b"GNU.sparse") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The path from the archive's top; none where it leads out of it.
fn inner(path: &Path) -> Option<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.map(|part| matches!(part, Component::Normal(_)).then_some(part)).collect()
}

/// Whether a link at `path` stays in the archive, as far as its text says.
fn stays_inside(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    target.components().all(|part| match part {
        Component::ParentDir => {
            let inside = depth > 0;
            depth = depth.saturating_sub(1);
            inside
        }
        Component::Normal(_) => {
            depth += 1;
            true
        }
        Component::CurDir => true,
        Component::RootDir | Component::Prefix(_) => false,
    })
}

/// Virtual environments link the interpreter that they were made from, which is run but never written.
fn is_interpreter(path: &Path) -> bool {
    path.parent() == Some(Path::new("bin"))
        && path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"python"))
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, Header};
    use tempfile::TempDir;

    use super::*;

    /// An entry, whose names may be such as a careful writer refuses.
    fn entry(kind: EntryType, name: &str, target: &str, text: &str) -> Vec<u8> {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o751);
        header.set_mtime(1_000_000);
        header.set_size(text.len().try_into().unwrap());
        header.set_cksum();
        let mut tar = Builder::new(Vec::new());
        tar.append(&header, text.as_bytes()).unwrap();
        let mut bytes = tar.into_inner().unwrap();
        bytes.truncate(bytes.len() - 1024);
        bytes
    }

    fn file(name: &str, text: &str) -> Vec<u8> {
        entry(EntryType::Regular, name, "", text)
    }

    fn link(name: &str, target: &str) -> Vec<u8> {
        entry(EntryType::Symlink, name, target, "")
    }

    fn tar(entries: &[Vec<u8>]) -> Vec<u8> {
        [entries.concat(), vec![0; 1024]].concat()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    /// Unpacks into the folder `in` of the one that comes back.
    fn unpacked(bytes: &[u8]) -> (TempDir, Result<(), String>) {
        let home = tempfile::tempdir().unwrap();
        let archive = home.path().join("a.tar.gz");
        let folder = home.path().join("in");
        fs::write(&archive, bytes).unwrap();
        fs::create_dir(&folder).unwrap();
        let found = unpack(&archive, &folder).map_err(|error| {
            let begin = format!("the archive '{}' ", archive.display());
            error.message.strip_prefix(&begin).unwrap_or(&error.message).to_owned()
        });
        (home, found)
    }

    #[test]
    fn files_links_permissions_and_times_come_out() {
        let entries = [
            entry(EntryType::XGlobalHeader, "pax", "", ""),
            entry(EntryType::Directory, "./", "", ""),
            file("./bin/tool", "old"),
            file("./bin/tool", &"tool".repeat(50_000)),
            entry(EntryType::Directory, "lib/", "", ""),
            link("lib64", "lib"),
            link("lib/deep/up", "../../bin/tool"),
            link("nowhere", "lib/missing"),
            entry(EntryType::Link, "lib/same", "bin/tool", ""),
        ];
        for bytes in [tar(&entries), gzip(&tar(&entries))] {
            let (home, found) = unpacked(&bytes);
            assert_eq!(found, Ok(()));
            let tool = home.path().join("in/bin/tool");
            let found = fs::metadata(&tool).unwrap();
            assert_eq!((found.len(), found.permissions().mode() & 0o777), (200_000, 0o751));
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
            assert_eq!(found.modified().unwrap(), time);
            for same in ["lib/same", "lib64/same", "lib/deep/up"] {
                let same = fs::read(home.path().join("in").join(same)).unwrap();
                assert_eq!(same.len(), 200_000);
            }
        }
    }

    #[test]
    fn nothing_leads_out() {
        let evil: [(Vec<Vec<u8>>, &str); 12] = [
            (vec![file("../evil", "")], "holds the path '../evil', which leads out of it"),
            (vec![file("a/../../evil", "")], "holds the path"),
            (vec![file("/tmp/evil", "")], "holds the path '/tmp/evil'"),
            (vec![link("a", "/etc")], "holds the link 'a' to '/etc', which leads out of it"),
            (vec![link("a/b", "../../x")], "holds the link 'a/b'"),
            (vec![link("a", "/missing")], "holds the link 'a' to '/missing'"),
            (
                vec![link("a", ".."), file("a/evil", "")],
                "holds something in 'a', which is no folder",
            ),
            (vec![link("a/b/c", "../.."), link("d", "a/b/c/..")], "holds the link 'd'"),
            (vec![entry(EntryType::Link, "a", "../a.tar.gz", "")], "holds the hard link 'a'"),
            (
                vec![link("a", "/etc"), entry(EntryType::Link, "b", "a/passwd", "")],
                "holds the hard link 'b' to 'a/passwd'",
            ),
            (vec![entry(EntryType::Fifo, "a", "", "")], "holds 'a', which is neither"),
            (vec![link("bin/python", "/no/such")], "holds the link 'bin/python' to '/no/such', an"),
        ];
        for (entries, expected) in evil {
            let (home, found) = unpacked(&gzip(&tar(&entries)));
            let found = found.unwrap_err();
            assert!(found.starts_with(expected), "{found}");
            assert!(!home.path().join("evil").exists());
        }
        // A link is replaced by what has its name, not written through.
        let outside = tempfile::NamedTempFile::new().unwrap();
        let target = outside.path().to_str().unwrap();
        let (home, found) = unpacked(&tar(&[link("bin/python", target), file("bin/python", "x")]));
        assert_eq!(found, Ok(()));
        assert_eq!(fs::read(home.path().join("in/bin/python")).unwrap(), b"x");
        assert_eq!(fs::read(outside.path()).unwrap(), b"");
        // The interpreter of a virtual environment.
        let links = [link("bin/python", target), link("bin/python3", "python")];
        assert_eq!(unpacked(&tar(&links)).1, Ok(()));
    }

    #[test]
    fn folders_in_folders_without_end_are_refused() {
        let deep = "d/".repeat(40);
        assert_eq!(unpacked(&tar(&[file(&format!("{deep}f"), "x")])).1, Ok(()));
        // Each folder is an entry of its own, as is the last one alone.
        let mut builder = Builder::new(Vec::new());
        for depth in [100, 3000] {
            let mut header = Header::new_gnu();
            header.set_entry_type(EntryType::Directory);
            header.set_size(0);
            header.set_mode(0o755);
            builder.append_data(&mut header, "d/".repeat(depth), &[][..]).unwrap();
        }
        let found = unpacked(&builder.into_inner().unwrap()).1.unwrap_err();
        assert!(found.starts_with("holds folders in folders more than"), "{found}");
        assert!(found.len() < 400);
    }

    /// A sparse file in GNU's form: `text` at an offset, and nothing else.
    fn sparse(name: &str, offset: u64, size: u64, text: &str) -> Vec<u8> {
        // Octal digits, or GNU's binary form for what has too many.
        let number = |number: u64, field: &mut [u8; 12]| {
            if number < 1 << 33 {
                field.copy_from_slice(format!("{number:011o}\0").as_bytes());
            } else {
                field[0] = 0x80;
                field[4..].copy_from_slice(&number.to_be_bytes());
            }
        };
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::GNUSparse);
        header.set_size(u64::try_from(text.len()).unwrap());
        header.set_mode(0o644);
        let gnu = header.as_gnu_mut().unwrap();
        number(offset, &mut gnu.sparse[0].offset);
        number(u64::try_from(text.len()).unwrap(), &mut gnu.sparse[0].numbytes);
        // The map ends with an empty piece at the end of the file.
        number(size, &mut gnu.sparse[1].offset);
        number(0, &mut gnu.sparse[1].numbytes);
        number(size, &mut gnu.realsize);
        let mut builder = Builder::new(Vec::new());
        builder.append_data(&mut header, name, text.as_bytes()).unwrap();
        builder.into_inner().unwrap()
    }

    #[test]
    fn sparse_files_and_long_names_come_out_whole() {
        let (home, found) = unpacked(&sparse("holes", 5000, 9000, "text"));
        assert_eq!(found, Ok(()));
        let read = fs::read(home.path().join("in/holes")).unwrap();
        assert_eq!(read.len(), 9000);
        assert_eq!(read.get(5000..5004), Some(&b"text"[..]));
        assert_eq!(read.iter().filter(|&&byte| byte != 0).count(), 4);
        let name = format!("{}/file", "folder".repeat(40));
        let mut header = Header::new_gnu();
        header.set_size(1);
        header.set_mode(0o644);
        let mut builder = Builder::new(Vec::new());
        builder.append_data(&mut header, &name, &b"x"[..]).unwrap();
        let (home, found) = unpacked(&gzip(&builder.into_inner().unwrap()));
        assert_eq!(found, Ok(()));
        assert_eq!(fs::read(home.path().join("in").join(name)).unwrap(), b"x");
    }

    #[test]
    fn what_would_fill_memory_or_the_disk_is_refused_before() {
        let (home, found) = unpacked(&gzip(&sparse("holes", 0, 1 << 60, "text")));
        let found = found.unwrap_err();
        assert!(found.contains("bytes or more, where the disk has"), "{found}");
        assert!(!home.path().join("in/holes").exists());
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::GNULongName);
        let bytes = vec![b'n'; 3 << 20];
        header.set_size(u64::try_from(bytes.len()).unwrap());
        let mut builder = Builder::new(Vec::new());
        builder.append_data(&mut header, "././@LongLink", &bytes[..]).unwrap();
        let found = unpacked(&gzip(&builder.into_inner().unwrap())).1.unwrap_err();
        assert!(found.contains("headers of more than 1048576 bytes"), "{found}");
    }

    #[test]
    fn what_is_no_archive_is_named_for_what_it_is() {
        let whole = gzip(&tar(&[file("a", "x"), file("b", &"text".repeat(9_999))]));
        let cases: [(&[u8], &str); 10] = [
            (b"", "is an empty file, expected a tar archive, compressed with gzip (.tar.gz, .tgz)"),
            (b"BZh91AY", "is compressed with bzip2, expected"),
            (b"PK\x03\x04", "is a zip archive, expected"),
            (b"\x28\xb5\x2f\xfd\x04", "is compressed with zstd, expected"),
            (b"hello", "begins with the bytes [68, 65, 6c, 6c, 6f], expected"),
            (&gzip(b""), "is empty"),
            (&gzip(&tar(&[])), "is empty"),
            (&gzip(&[b'x'; 2000]), "holds no tar archive: "),
            (whole.get(..whole.len() - 4).unwrap(), "is truncated or damaged after 2 entries: "),
            (whole.get(..whole.len() / 2).unwrap(), "is truncated or damaged in 'b': "),
        ];
        for (bytes, expected) in cases {
            let found = unpacked(bytes).1.unwrap_err();
            assert!(found.starts_with(expected), "{found}");
        }
        let half = tar(&[file("a", &"text".repeat(9_999))]);
        let found = unpacked(&gzip(half.get(..9_000).unwrap())).1.unwrap_err();
        assert!(found.starts_with("is truncated or damaged in 'a'"), "{found}");
        let mut damaged = whole.clone();
        let last = damaged.len() - 6;
        *damaged.get_mut(last).unwrap() ^= 1;
        let found = unpacked(&damaged).1.unwrap_err();
        assert!(found.starts_with("is truncated or damaged after 2 entries"), "{found}");
    }
}
