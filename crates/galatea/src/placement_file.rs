//! Times that models took on the devices of this machine, in a file beside the tuner's records. The file has
//! a head, then a line of JSON for each model and set of shapes. A restarted server begins with these times.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use galatea_runtime::device_selector::{
    PlacementHistory, PlacementHistorySource, PlacementRecordKey, PlacementTime,
};
use galatea_tensor::{OrderedMap, read_plain_text};
use serde_json::{Value, json};

use crate::tuning;

/// Format name in the first line of a file.
const FORMAT: &str = "galatea placements";
/// The version of the format.
const VERSION: u64 = 1;
/// The most bytes of a file that is read.
const MAX_BYTES: u64 = 1 << 24;
/// The most records of a file; beyond that those go that were made first.
const MAX_RECORDS: usize = 4096;

/// The records of this machine, for sessions; nobody to ask where the system has no folder for them.
pub fn records() -> PlacementHistorySource {
    let path = tuning::usual_file().map(|path| path.with_file_name("placements.jsonl"));
    PlacementHistorySource(
        path.map(|path| Arc::new(PlacementFile::at(path)) as Arc<dyn PlacementHistory>),
    )
}

/// Records in a file, which is read when somebody asks.
#[derive(Debug)]
struct PlacementFile {
    path: PathBuf,
    machine: String,
    /// None until it was read.
    known: Mutex<Option<PlacementRecords>>,
}

/// Records by key, each with the place at which it was made, so that the oldest may go.
#[derive(Debug, Default, PartialEq)]
struct PlacementRecords {
    all: OrderedMap<PlacementSubject, (u64, Vec<PlacementTime>)>,
    made: u64,
}

/// The machine and the key of a record.
type PlacementSubject = (String, PlacementRecordKey);

impl PlacementRecords {
    fn insert(&mut self, subject: PlacementSubject, times: Vec<PlacementTime>) {
        self.made += 1;
        self.all.insert(subject, (self.made, times));
        while self.all.len() > MAX_RECORDS {
            let oldest = self.all.iter().min_by_key(|(_, (made, _))| *made);
            let Some(oldest) = oldest.map(|(subject, _)| subject.clone()) else { return };
            self.all.remove(&oldest);
        }
    }
}

impl PlacementFile {
    fn at(path: PathBuf) -> Self {
        // Other versions of the program have other kernels.
        let machine = format!("{}; {}", galatea_providers::machine(), env!("CARGO_PKG_VERSION"));
        Self { path, machine, known: Mutex::new(None) }
    }

    fn subject(&self, key: &PlacementRecordKey) -> PlacementSubject {
        (self.machine.clone(), key.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut PlacementRecords) -> T) -> T {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        act(known.get_or_insert_with(|| read(&self.path)))
    }
}

impl PlacementHistory for PlacementFile {
    fn find(&self, key: &PlacementRecordKey) -> Vec<PlacementTime> {
        self.with(|known| known.all.get(&self.subject(key)).map(|(_, times)| times.clone()))
            .unwrap_or_default()
    }

    fn keep(&self, key: &PlacementRecordKey, times: &[PlacementTime]) {
        let saved = self.with(|known| {
            // Another server may have written meanwhile.
            for (subject, (_, times)) in read(&self.path).all {
                if !known.all.contains_key(&subject) {
                    known.insert(subject, times);
                }
            }
            known.insert(self.subject(key), times.to_vec());
            save(known, &self.path)
        });
        if let Err(error) = saved {
            tracing::warn!("what units took is not kept: '{}': {error}", self.path.display());
        }
    }
}

/// Reads a file; a file that is not there has no records, nor has one that is broken, which is logged.
fn read(path: &Path) -> PlacementRecords {
    let Ok(found) = fs::metadata(path) else { return PlacementRecords::default() };
    let text = match found.len() {
        0..=MAX_BYTES => read_plain_text(path).map_err(|error| error.to_string()),
        bytes => Err(format!("has {bytes} bytes, the most is {MAX_BYTES}")),
    };
    text.and_then(|text| parse(&text)).unwrap_or_else(|error| {
        tracing::warn!("what units took is left out: '{}': {error}", path.display());
        PlacementRecords::default()
    })
}

/// Reads the text of a file.
fn parse(text: &str) -> Result<PlacementRecords, String> {
    let mut records = PlacementRecords::default();
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    for (place, (at, line)) in lines.enumerate() {
        let wrong = |what: String| format!("line {}: {what}", at + 1);
        let value: Value =
            serde_json::from_str(line).map_err(|error| wrong(format!("no JSON: {error}")))?;
        if place == 0 {
            let format = value["format"].as_str();
            let version = value["version"].as_u64();
            if format != Some(FORMAT) || version != Some(VERSION) {
                let text = format!(
                    "found format {format:?}, version {version:?}; expected \"{FORMAT}\", {VERSION}"
                );
                return Err(wrong(text));
            }
            continue;
        }
        let (subject, times) = record(&value).map_err(wrong)?;
        records.insert(subject, times);
    }
    Ok(records)
}

fn record(value: &Value) -> Result<(PlacementSubject, Vec<PlacementTime>), String> {
    let text = |name: &str| {
        let found = value[name].as_str().map(str::to_owned);
        found.ok_or_else(|| format!("'{name}' is {}, expected a text", value[name]))
    };
    let graph = text("graph")?;
    let graph = u64::from_str_radix(&graph, 16)
        .map_err(|_| format!("'graph' is '{graph}', expected 16 hexadecimal digits"))?;
    let key = PlacementRecordKey { graph, how: text("how")?, bucket: text("bucket")? };
    let time = |pair: &Value| {
        let ns = pair[1].as_f64().filter(|ns| ns.is_finite() && *ns > 0.0);
        let way = pair[0].as_str().map(str::to_owned);
        let both = way.zip(ns).map(|(way, ns)| PlacementTime { way, ns });
        both.ok_or_else(|| format!("'ways' has {pair}, expected a way and nanoseconds"))
    };
    let times = value["ways"].as_array().map(Vec::as_slice).unwrap_or_default();
    let times: Result<Vec<PlacementTime>, String> = times.iter().map(time).collect();
    Ok(((text("machine")?, key), times?))
}

/// Writes a file, all of it or nothing.
fn save(records: &PlacementRecords, path: &Path) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let write = || {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let mut to = BufWriter::new(File::create(&part)?);
        writeln!(to, "{}", json!({"format": FORMAT, "version": VERSION}))?;
        let mut all: Vec<_> = records.all.iter().collect();
        all.sort_by_key(|(_, (made, _))| *made);
        for ((machine, key), (_, times)) in all {
            let ways: Vec<Value> = times.iter().map(|one| json!([one.way, one.ns])).collect();
            let line = json!({
                "machine": machine,
                "graph": format!("{:016x}", key.graph),
                "how": key.how,
                "bucket": key.bucket,
                "ways": ways,
            });
            writeln!(to, "{line}")?;
        }
        to.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&part, path)
    };
    write().inspect_err(|_| {
        fs::remove_file(&part).ok();
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(bucket: &str) -> PlacementRecordKey {
        PlacementRecordKey { graph: 7, how: "gpu cpu; fp32".to_owned(), bucket: bucket.to_owned() }
    }

    fn times(ns: f64) -> Vec<PlacementTime> {
        let way = |way: &str, ns| PlacementTime { way: way.to_owned(), ns };
        vec![way("gpu 0..7", ns), way("gpu 0..3 cpu 3..7", 2.0 * ns)]
    }

    #[test]
    fn what_ways_took_is_known_after_a_restart_and_to_a_second_server() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deeper/placements.jsonl");
        let first = PlacementFile::at(path.clone());
        let second = PlacementFile::at(path.clone());
        assert!(first.find(&key("1x8")).is_empty() && second.find(&key("1x8")).is_empty());
        first.keep(&key("1x8"), &times(100.5));
        second.keep(&key("2x8"), &times(200.0));
        let third = PlacementFile::at(path);
        assert_eq!(third.find(&key("1x8")), times(100.5));
        assert_eq!(third.find(&key("2x8")), times(200.0));
        third.keep(&key("1x8"), &times(50.0));
        assert_eq!(third.find(&key("1x8")), times(50.0));
        let elsewhere = PlacementFile { machine: "another".to_owned(), ..third };
        assert!(elsewhere.find(&key("1x8")).is_empty());
    }

    #[test]
    fn the_oldest_records_go_first() {
        let mut records = PlacementRecords::default();
        for at in 0..MAX_RECORDS + 2 {
            records.insert((String::new(), key(&at.to_string())), times(1.0));
        }
        assert_eq!(records.all.len(), MAX_RECORDS);
        let has = |bucket: &str| records.all.contains_key(&(String::new(), key(bucket)));
        assert!(!has("0") && !has("1") && has("2"));
    }

    #[test]
    fn broken_files_are_named_with_their_line_and_left_out() {
        let error = |text: &str| parse(text).unwrap_err();
        assert!(error("{\"format\":\"x\"}").contains("line 1: found format Some(\"x\")"));
        let head = "{\"format\":\"galatea placements\",\"version\":1}\n";
        assert!(error(&format!("{head}{{")).contains("line 2: no JSON"));
        let line = "{\"machine\":\"m\",\"graph\":\"xyz\",\"how\":\"h\",\"bucket\":\"b\"}";
        assert!(error(&format!("{head}{line}")).contains("'graph' is 'xyz'"));
        let line = line.replace("xyz", "7").replace("\"b\"", "\"b\",\"ways\":[[\"gpu 0..1\",-1]]");
        assert!(error(&format!("{head}{line}")).contains("expected a way and nanoseconds"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("placements.jsonl");
        fs::write(&path, "what").unwrap();
        assert_eq!(read(&path), PlacementRecords::default());
    }
}
