//! What was measured, in a file that can be read, shipped and merged.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::measure::Outcome;
use super::space::Space;

/// What the first line of a file says.
const FORMAT: &str = "galatea tuning";
/// The version of the format.
const VERSION: u64 = 1;
/// The most bytes of a file that is read.
const MOST_BYTES: u64 = 1 << 26;

/// What a record is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The operator or family of kernels, such as `gemm-f32`.
    pub family: String,
    /// The lengths, each rounded: see [`bucket`].
    pub bucket: String,
    /// Chip and build of the operating system: what is fast elsewhere says nothing here.
    pub machine: String,
    /// A number for the names of all candidates: with other candidates another may be the best.
    pub candidates: u64,
}

impl Key {
    /// The key of a choice.
    #[must_use]
    pub fn new(family: &str, bucket: String, machine: &str, space: &Space) -> Self {
        let (family, machine) = (family.to_owned(), machine.to_owned());
        Self { family, bucket, machine, candidates: hash(&space.names()) }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.family, self.bucket)
    }
}

/// Lengths by name, each rounded up to a power of two or one and a half of one: `m128 k768 n3072`.
/// What is fast for one length is fast for those near it.
#[must_use]
pub fn bucket(lengths: &[(&str, usize)]) -> String {
    let round = |len: usize| {
        let power = len.max(1).checked_next_power_of_two().unwrap_or(usize::MAX);
        if power >= 4 && len <= power / 4 * 3 { power / 4 * 3 } else { power }
    };
    let part = |(name, len): &(&str, usize)| format!("{name}{}", round(*len));
    lengths.iter().map(part).collect::<Vec<_>>().join(" ")
}

/// FNV-1a of all names.
///
/// Source: G. Fowler, L. Noll, K. Vo, "The FNV Non-Cryptographic Hash Algorithm".
fn hash(names: &[String]) -> u64 {
    let bytes = names.iter().flat_map(|name| name.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The best of some candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its name.
    pub choice: String,
    /// Its time, in nanoseconds.
    pub time_ns: f64,
    /// The default's time, in nanoseconds.
    pub default_ns: f64,
    /// How many candidates were measured.
    pub trials: u64,
    /// Names and times of the other candidates; no time for those that failed.
    pub others: Vec<(String, Option<f64>)>,
    /// Candidates that failed or computed something else, with the reason.
    pub refused: Vec<(String, String)>,
}

impl Record {
    /// What a search found.
    #[must_use]
    pub fn new(space: &Space, outcome: &Outcome) -> Self {
        let others = outcome.trials.iter().filter(|trial| trial.candidate != outcome.best);
        let refused = outcome.refused.iter();
        Self {
            choice: space.name(outcome.best),
            time_ns: outcome.best_ns,
            default_ns: outcome.default_ns,
            trials: outcome.trials.len() as u64,
            others: others.map(|trial| (space.name(trial.candidate), trial.time_ns)).collect(),
            refused: refused.map(|r| (space.name(r.candidate), r.reason.clone())).collect(),
        }
    }
}

/// Records by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Database {
    records: BTreeMap<Key, Record>,
}

/// What is wrong with a file of records.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{file}{place}: {what}", place = line.map_or(String::new(), |line| format!(", line {line}")))]
pub struct DatabaseError {
    /// The file.
    pub file: String,
    /// The line, from one on.
    pub line: Option<usize>,
    /// What is wrong there.
    pub what: String,
}

impl Database {
    /// Which of the candidates is known to be the fastest. Measures nothing.
    #[must_use]
    pub fn choose(&self, key: &Key, space: &Space) -> Option<usize> {
        let record = self.records.get(key)?;
        (0..space.len()).find(|&candidate| space.name(candidate) == record.choice)
    }

    /// Remembers a record in the place of an older one.
    pub fn insert(&mut self, key: Key, record: Record) {
        self.records.insert(key, record);
    }

    /// The record of a key.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&Record> {
        self.records.get(key)
    }

    /// All records in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Record)> {
        self.records.iter()
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Takes the records of another database. Of two for one key, the one of more trials stays; of
    /// equal ones, the faster.
    pub fn merge(&mut self, other: Self) {
        for (key, record) in other.records {
            let better =
                |old: &Record| (record.trials, -record.time_ns) > (old.trials, -old.time_ns);
            if self.records.get(&key).is_none_or(better) {
                self.records.insert(key, record);
            }
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is of another format or version, or has a broken line.
    pub fn load(path: &Path) -> Result<Self, DatabaseError> {
        let file = path.display().to_string();
        let failed = |what: String| DatabaseError { file: file.clone(), line: None, what };
        let found =
            fs::metadata(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
        if found.len() > MOST_BYTES {
            let text = format!("has {} bytes, the most is {MOST_BYTES}", found.len());
            return Err(failed(text));
        }
        let text =
            fs::read_to_string(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
        Self::parse(&text).map_err(|error| DatabaseError { file, ..error })
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// As [`Database::load`].
    pub fn parse(text: &str) -> Result<Self, DatabaseError> {
        let wrong = |line: usize, what: String| DatabaseError {
            file: "tuning database".to_owned(),
            line: Some(line + 1),
            what,
        };
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let json = |(at, line): (usize, &str)| {
            let value: Result<Value, _> = serde_json::from_str(line);
            value.map(|value| (at, value)).map_err(|error| wrong(at, format!("no JSON: {error}")))
        };
        let Some(head) = lines.next() else {
            return Err(wrong(0, format!("is empty, expected {{\"format\":\"{FORMAT}\", …}}")));
        };
        let (at, head) = json(head)?;
        let (format, version) = (head["format"].as_str(), head["version"].as_u64());
        if format != Some(FORMAT) || version != Some(VERSION) {
            let text = format!(
                "found format {format:?}, version {version:?}; expected \
                                \"{FORMAT}\", {VERSION}"
            );
            return Err(wrong(at, text));
        }
        let mut database = Self::default();
        for line in lines {
            let (at, value) = json(line)?;
            let (key, record) = read_record(&value).map_err(|what| wrong(at, what))?;
            database.records.insert(key, record);
        }
        Ok(database)
    }

    /// The text of a file: a head, and a line for each record.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n", json!({"format": FORMAT, "version": VERSION}));
        for (key, record) in &self.records {
            let line = json!({
                "family": key.family,
                "bucket": key.bucket,
                "machine": key.machine,
                "candidates": format!("{:016x}", key.candidates),
                "choice": record.choice,
                "time_ns": record.time_ns,
                "default_ns": record.default_ns,
                "trials": record.trials,
                "others": record.others,
                "refused": record.refused,
            });
            text.push_str(&format!("{line}\n"));
        }
        text
    }

    /// Writes a file, all of it or nothing.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), DatabaseError> {
        let failed = |error: &std::io::Error| DatabaseError {
            file: path.display().to_string(),
            line: None,
            what: format!("cannot be written: {error}"),
        };
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(name);
        let written = (|| {
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                fs::create_dir_all(folder)?;
            }
            let mut to = BufWriter::new(File::create(&part)?);
            to.write_all(self.to_text().as_bytes())?;
            to.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
            fs::rename(&part, path)
        })();
        written.map_err(|error| {
            fs::remove_file(&part).ok();
            failed(&error)
        })
    }
}

fn read_record(value: &Value) -> Result<(Key, Record), String> {
    let text = |name: &str| {
        let found = value[name].as_str().map(str::to_owned);
        found.ok_or_else(|| format!("'{name}' is {}, expected a text", value[name]))
    };
    let time = |name: &str| {
        let found = value[name].as_f64().filter(|time| time.is_finite() && *time >= 0.0);
        found.ok_or_else(|| format!("'{name}' is {}, expected nanoseconds", value[name]))
    };
    let candidates = text("candidates")?;
    let candidates = u64::from_str_radix(&candidates, 16)
        .map_err(|_| format!("'candidates' is '{candidates}', expected 16 hexadecimal digits"))?;
    let key = Key {
        family: text("family")?,
        bucket: text("bucket")?,
        machine: text("machine")?,
        candidates,
    };
    let pairs = |name: &str| {
        let all = value[name].as_array().map(Vec::as_slice).unwrap_or_default();
        all.iter()
            .filter_map(|pair| Some((pair[0].as_str()?.to_owned(), pair[1].clone())))
            .collect::<Vec<(String, Value)>>()
    };
    let record = Record {
        choice: text("choice")?,
        time_ns: time("time_ns")?,
        default_ns: time("default_ns")?,
        trials: value["trials"].as_u64().unwrap_or(0),
        others: pairs("others").into_iter().map(|(name, time)| (name, time.as_f64())).collect(),
        refused: pairs("refused")
            .into_iter()
            .map(|(name, why)| (name, why.as_str().unwrap_or_default().to_owned()))
            .collect(),
    };
    Ok((key, record))
}

#[cfg(test)]
mod tests {
    use super::super::space::Axis;
    use super::*;

    fn record(choice: &str, time_ns: f64, trials: u64) -> Record {
        let others = vec![("threads=2".to_owned(), Some(5.5)), ("threads=4".to_owned(), None)];
        let refused =
            vec![("threads=4".to_owned(), "result 3 is 1, the default's is 2".to_owned())];
        Record { choice: choice.to_owned(), time_ns, default_ns: 9.0, trials, others, refused }
    }

    fn key(bucket: &str, space: &Space) -> Key {
        Key::new("gemm-f32", bucket.to_owned(), "chip, build 1", space)
    }

    #[test]
    fn lengths_share_a_bucket_with_those_near_them() {
        assert_eq!(bucket(&[("m", 1), ("k", 768), ("n", 3072)]), "m1 k768 n3072");
        assert_eq!(bucket(&[("m", 100), ("k", 700), ("n", 3000)]), "m128 k768 n3072");
        assert_eq!(bucket(&[("m", 0), ("k", 3), ("n", 5)]), "m1 k3 n6");
        assert_eq!(bucket(&[("m", usize::MAX)]), format!("m{}", usize::MAX));
    }

    #[test]
    fn a_file_is_read_as_it_was_written_and_chooses_without_measuring() {
        let space = Space::new(vec![Axis::numbers("threads", &[2, 1])]);
        let mut database = Database::default();
        database.insert(key("m64", &space), record("threads=1", 4.25, 2));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deeper/tuning.jsonl");
        database.save(&path).unwrap();
        let again = Database::load(&path).unwrap();
        assert_eq!(again, database);
        assert_eq!(again.choose(&key("m64", &space), &space), Some(1));
        assert_eq!(again.choose(&key("m128", &space), &space), None);
        let other = Space::new(vec![Axis::numbers("threads", &[4, 1])]);
        assert_eq!(again.choose(&key("m64", &other), &other), None);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn of_two_records_the_better_founded_one_stays() {
        let space = Space::new(vec![Axis::numbers("threads", &[2, 1])]);
        let made = |all: &[(&str, f64, u64)]| {
            let mut database = Database::default();
            for (bucket, time, trials) in all {
                database.insert(key(bucket, &space), record("threads=1", *time, *trials));
            }
            database
        };
        let mut first = made(&[("m1", 5.0, 8), ("m2", 5.0, 8), ("m3", 5.0, 8)]);
        first.merge(made(&[("m1", 4.0, 8), ("m2", 4.0, 7), ("m4", 1.0, 1)]));
        let times: Vec<f64> = first.iter().map(|(_, record)| record.time_ns).collect();
        assert_eq!(times, [4.0, 5.0, 5.0, 1.0]);
    }

    #[test]
    fn broken_files_are_named_with_their_line() {
        let error = |text: &str| Database::parse(text).unwrap_err().to_string();
        assert!(error("").contains("line 1: is empty"));
        assert!(error("{\"format\":\"x\"}").contains("found format Some(\"x\")"));
        assert!(error("{\"format\":\"galatea tuning\",\"version\":2}").contains("version Some(2)"));
        let head = "{\"format\":\"galatea tuning\",\"version\":1}\n";
        assert!(error(&format!("{head}\n{{")).contains("line 3: no JSON"));
        let text = error(&format!("{head}{{\"family\":3,\"candidates\":\"0\"}}"));
        assert!(text.contains("line 2: 'family' is 3, expected a text"), "{text}");
        assert!(
            Database::load(Path::new("/nowhere/x"))
                .unwrap_err()
                .to_string()
                .contains("cannot be read")
        );
    }
}
