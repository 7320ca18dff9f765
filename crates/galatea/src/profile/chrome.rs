//! Chrome's trace events, in a file that is whole at any time or as a text in memory.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The most bytes of a file; events beyond are counted.
const MAX_BYTES: u64 = 1 << 30;
/// The most bytes of a text.
const MAX_TEXT_BYTES: u64 = 256 << 20;
/// The most bytes of events that wait.
const WAITING: usize = 1 << 20;
/// Longest time that events wait while others come.
const LAG: Duration = Duration::from_secs(2);

/// A JSON object with the array `traceEvents`. Events are written together with what ends it, which the next ones
/// are written over.
#[derive(Debug)]
pub(super) struct ChromeFile {
    file: File,
    /// Events that are not in the file yet.
    waiting: Vec<u8>,
    /// Bytes of all events.
    bytes: u64,
    most: u64,
    empty: bool,
    flushed: Instant,
    /// Events that found no place.
    left_out: u64,
}

impl ChromeFile {
    /// Creates the file, without events.
    ///
    /// # Errors
    /// Fails when the file cannot be created.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Self::within(path, MAX_BYTES)
    }

    fn within(path: &Path, most: u64) -> io::Result<Self> {
        let waiting = b"{\"traceEvents\":[".to_vec();
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        // Names of models and of requests are in it.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let bytes = waiting.len() as u64;
        let empty = true;
        let flushed = Instant::now();
        let left_out = 0;
        let mut file = Self { file, waiting, bytes, most, empty, flushed, left_out };
        file.flush(0)?;
        Ok(file)
    }

    /// Adds an event.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub(super) fn add(&mut self, event: &Value) -> io::Result<()> {
        let mut text = if self.empty { "\n".to_owned() } else { ",\n".to_owned() };
        text.push_str(&event.to_string());
        if self.bytes + text.len() as u64 > self.most {
            if self.left_out == 0 {
                tracing::warn!("the profile has {} bytes and grows no more", self.bytes);
            }
            self.left_out += 1;
            return Ok(());
        }
        self.waiting.extend_from_slice(text.as_bytes());
        self.empty = false;
        self.bytes += text.len() as u64;
        if self.waiting.len() > WAITING || self.flushed.elapsed() > LAG {
            self.flush(0)?;
        }
        Ok(())
    }

    /// Completes the file. `dropped` is the number of items that never came.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub(super) fn flush(&mut self, dropped: u64) -> io::Result<()> {
        let other = json!({"dropped": dropped, "left_out": self.left_out});
        write!(self.waiting, "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{other}}}")?;
        let waiting = std::mem::take(&mut self.waiting);
        self.file.write_all(&waiting)?;
        self.file.seek(SeekFrom::Start(self.bytes))?;
        self.flushed = Instant::now();
        Ok(())
    }
}

/// Destination of events.
#[derive(Debug)]
pub(super) enum ChromeSink {
    /// A file.
    File(ChromeFile),
    /// Memory.
    Text(ChromeText),
}

impl ChromeSink {
    /// Adds an event.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub(super) fn add(&mut self, event: &Value) -> io::Result<()> {
        match self {
            Self::File(file) => file.add(event),
            Self::Text(text) => {
                text.add(event);
                Ok(())
            }
        }
    }

    /// Completes a file. `dropped` is the number of items that never came.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub(super) fn flush(&mut self, dropped: u64) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(dropped),
            Self::Text(_) => Ok(()),
        }
    }
}

/// The same JSON object as that of a file, of so many events at most.
#[derive(Debug)]
pub(super) struct ChromeText {
    events: String,
    count: u64,
    most: u64,
    /// Events that found no place.
    left_out: u64,
}

impl ChromeText {
    pub(super) fn new(most: u64) -> Self {
        Self { events: String::new(), count: 0, most, left_out: 0 }
    }

    fn add(&mut self, event: &Value) {
        let full = self.events.len() as u64 > MAX_TEXT_BYTES;
        if self.count >= self.most || full {
            self.left_out += 1;
            return;
        }
        self.events.push_str(if self.count == 0 { "\n" } else { ",\n" });
        self.events.push_str(&event.to_string());
        self.count += 1;
    }

    /// Returns the number of events, and the number that found no place.
    pub(super) fn counts(&self) -> [u64; 2] {
        [self.count, self.left_out]
    }

    /// Returns the whole text. `dropped` is the number of items that never came.
    pub(super) fn end(self, dropped: u64) -> String {
        let other = json!({"dropped": dropped, "left_out": self.left_out});
        let mut text = self.events;
        text.insert_str(0, "{\"traceEvents\":[");
        text.push_str(&format!("\n],\"displayTimeUnit\":\"ns\",\"otherData\":{other}}}"));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> Value {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    #[test]
    fn a_file_is_whole_whenever_it_is_flushed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile.json");
        let mut file = ChromeFile::create(&path).unwrap();
        assert_eq!(read(&path)["traceEvents"], json!([]));
        for at in 0..3 {
            file.add(&json!({"name": "\"é\"", "ts": at})).unwrap();
            file.flush(at).unwrap();
            let found = read(&path);
            let count = usize::try_from(at).unwrap() + 1;
            assert_eq!(found["traceEvents"].as_array().unwrap().len(), count);
            assert_eq!(found["otherData"]["dropped"], json!(at));
        }
    }

    #[test]
    fn a_text_has_so_many_events_at_most() {
        let mut text = ChromeText::new(2);
        for at in 0..5 {
            text.add(&json!({"name": "é", "ts": at}));
        }
        assert_eq!(text.counts(), [2, 3]);
        let found: Value = serde_json::from_str(&text.end(1)).unwrap();
        assert_eq!(found["traceEvents"].as_array().unwrap().len(), 2);
        assert_eq!(found["otherData"], json!({"dropped": 1, "left_out": 3}));
        let none: Value = serde_json::from_str(&ChromeText::new(0).end(0)).unwrap();
        assert_eq!(none["traceEvents"], json!([]));
    }

    #[test]
    fn a_file_grows_to_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile.json");
        let mut file = ChromeFile::within(&path, 60).unwrap();
        for _ in 0..9 {
            file.add(&json!({"name": "long enough"})).unwrap();
        }
        file.flush(0).unwrap();
        let found = read(&path);
        let count = found["traceEvents"].as_array().unwrap().len();
        assert!(count > 0 && count < 9);
        assert_eq!(found["otherData"]["left_out"], json!(9 - count));
    }
}
