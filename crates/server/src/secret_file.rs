//! Files that hold secrets: read only where nobody but their owner can read them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest file of secrets, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Reads a text file of secrets. `flag` names the flag that gives its path.
///
/// # Errors
/// Returns a sentence that names the flag and the file: it cannot be read, is no regular file, is too long, is no
/// text, or is open to other users than its owner.
pub fn read_secret_file(flag: &str, path: &Path) -> Result<String, String> {
    let unusable = |why: &dyn std::fmt::Display| format!("--{flag}={}: {why}", path.display());
    // A pipe would keep the program waiting for a writer.
    let named = std::fs::metadata(path).map_err(|error| unusable(&error))?;
    if !named.is_file() {
        return Err(unusable(&"not a regular file"));
    }
    let file = File::open(path).map_err(|error| unusable(&error))?;
    // The file that is read is the one that is looked at.
    let facts = file.metadata().map_err(|error| unusable(&error))?;
    check_mode(&facts).map_err(|why| unusable(&why))?;
    if facts.len() > MAX_BYTES {
        return Err(unusable(&format!("the file has more than {MAX_BYTES} bytes")));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(|error| unusable(&error))?;
    Ok(text)
}

/// Lines of a file of secrets with their numbers from 1, without comments and blank lines.
pub fn secret_lines(text: &str) -> impl Iterator<Item = NumberedLine<'_>> {
    let lines =
        text.lines().zip(1..).map(|(line, number)| NumberedLine { number, text: line.trim() });
    lines.filter(|line| !line.text.is_empty() && !line.text.starts_with('#'))
}

/// A line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberedLine<'a> {
    /// Number from 1.
    pub number: usize,
    /// The line without blanks around it.
    pub text: &'a str,
}

#[cfg(unix)]
fn check_mode(facts: &std::fs::Metadata) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = facts.permissions().mode() & 0o777;
    // An owner who may only read it keeps the secrets as well.
    if matches!(mode, 0o600 | 0o400) {
        return Ok(());
    }
    Err(format!(
        "the file holds secrets and has the mode {mode:04o}, expected 0600: chmod 600 makes it so"
    ))
}

/// Other systems have no modes.
#[cfg(not(unix))]
fn check_mode(_: &std::fs::Metadata) -> Result<(), String> {
    Ok(())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn read(mode: u32, bytes: &[u8]) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        read_secret_file("api-key-file", &path)
    }

    #[test]
    fn files_that_others_can_read_are_refused() {
        assert_eq!(read(0o600, b"secret").unwrap(), "secret");
        assert_eq!(read(0o400, b"secret").unwrap(), "secret");
        for mode in [0o644, 0o640, 0o604, 0o660, 0o602, 0o700] {
            let error = read(mode, b"secret").unwrap_err();
            let text = format!("has the mode {mode:04o}, expected 0600");
            assert!(error.contains(&text) && error.starts_with("--api-key-file="), "{error}");
        }
    }

    #[test]
    fn what_is_no_text_file_is_refused() {
        assert!(read(0o600, b"\xff\xfe").unwrap_err().contains("UTF-8"));
        let folder = tempfile::tempdir().unwrap();
        let error = read_secret_file("api-key-file", folder.path()).unwrap_err();
        assert!(error.ends_with("not a regular file"), "{error}");
        let missing = read_secret_file("api-key-file", &folder.path().join("none")).unwrap_err();
        assert!(missing.contains("No such file"), "{missing}");
    }

    #[test]
    fn comments_and_blank_lines_are_left_out_and_counted() {
        let lines: Vec<NumberedLine<'_>> = secret_lines("# a\n\n  b \r\n\t# c\nd#e").collect();
        let expected =
            [NumberedLine { number: 3, text: "b" }, NumberedLine { number: 5, text: "d#e" }];
        assert_eq!(lines, expected);
    }
}
