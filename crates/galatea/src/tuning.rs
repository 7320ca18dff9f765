//! Measurements of kernels, in a file that can be read, shipped and merged: a head, then a line of JSON for
//! each record.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::time::SystemTime;

use galatea_runtime::tune::{
    ConfigSpace, MachineTuning, TuningCache, TuningDatabase, TuningKey, TuningProblem, TuningRecord,
};
use galatea_serving::model_cache::ModelCache;
use galatea_tensor::read_plain_text;
use serde_json::{Value, json};

/// Format name in the first line of a file.
const FORMAT: &str = "galatea tuning";
/// The version of the format.
const VERSION: u64 = 1;
/// The most bytes of a file that is read.
const MAX_BYTES: u64 = 1 << 26;

/// The file that sessions look at, beside the cache of prepared models; `None` where the system has no
/// such folder.
pub fn usual_file() -> Option<PathBuf> {
    Some(ModelCache::default_folder()?.with_file_name("tuning.jsonl"))
}

/// The machine of keys: chip, instruction set, cores and system, and the version of the program, whose kernels are those
/// that were measured.
#[must_use]
pub fn machine() -> String {
    format!("{}; {}", galatea_providers::machine(), env!("CARGO_PKG_VERSION"))
}

/// Records of this machine that grow while sessions look at them. Each new one is written to the file at once.
#[derive(Debug)]
pub struct TuningRecords {
    /// File beside the cache of prepared models; `None` where records live as long as the process.
    path: Option<PathBuf>,
    machine: String,
    known: RwLock<KnownRecords>,
}

/// Records, and the file that they were read from.
#[derive(Debug, Default)]
struct KnownRecords {
    database: TuningDatabase,
    /// Time at which the file was written that was read last.
    read: Option<SystemTime>,
}

impl TuningRecords {
    /// Reads the records of a file. They are empty if it is missing, or broken, which is logged.
    #[must_use]
    pub fn at(path: Option<PathBuf>) -> Self {
        let records = Self { path, machine: machine(), known: RwLock::default() };
        records.refresh();
        records
    }

    /// Reads the file again where somebody has written it since.
    pub fn refresh(&self) {
        let Some(path) = &self.path else { return };
        let Ok(written) = fs::metadata(path).and_then(|found| found.modified()) else { return };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.read == Some(written) {
            return;
        }
        known.read = Some(written);
        match load(path) {
            Ok(database) => known.database.merge(database),
            Err(error) => tracing::warn!("the tuning database is left out: {error}"),
        }
    }

    /// Returns the number of records of this machine.
    #[must_use]
    pub fn count(&self) -> usize {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mine = |key: &TuningKey| {
            let rest = key.machine.strip_prefix(&self.machine);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("; "))
        };
        known.database.iter().filter(|(key, _)| mine(key)).count()
    }

    /// Returns the record of a problem.
    #[must_use]
    pub fn find(&self, problem: &TuningProblem) -> Option<TuningRecord> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.database.get(&problem.key(&self.machine)).cloned()
    }

    fn choose_for(
        &self,
        machine: &str,
        family: &str,
        bucket: &str,
        space: &ConfigSpace,
    ) -> Option<usize> {
        let key = TuningKey::new(family, bucket.to_owned(), machine, space);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.database.choose(&key, space)
    }
}

impl TuningCache for TuningRecords {
    fn choose(&self, family: &str, bucket: &str, space: &ConfigSpace) -> Option<usize> {
        self.choose_for(&self.machine, family, bucket, space)
    }

    fn choose_on(
        &self,
        unit: &str,
        family: &str,
        bucket: &str,
        space: &ConfigSpace,
    ) -> Option<usize> {
        let machine = MachineTuning::machine_of(&self.machine, Some(unit));
        self.choose_for(&machine, family, bucket, space)
    }

    fn keep(&self, problem: &TuningProblem, record: TuningRecord) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.database.insert(problem.key(&self.machine), record.clone());
        let Some(path) = &self.path else { return };
        // Another process may have written meanwhile, and records of other machines stay.
        let there = if path.exists() { load(path) } else { Ok(TuningDatabase::default()) };
        let saved = there.and_then(|mut all| {
            all.insert(problem.key(&self.machine), record);
            save(&all, path)
        });
        match saved {
            Ok(()) => known.read = fs::metadata(path).and_then(|found| found.modified()).ok(),
            Err(error) => tracing::warn!("a record of the tuner is not kept: {error}"),
        }
    }
}

/// Reads a file.
///
/// # Errors
/// Fails when the file cannot be read, has another format or version, or has a broken line.
pub fn load(path: &Path) -> Result<TuningDatabase, String> {
    let failed = |what: String| format!("'{}' {what}", path.display());
    let found = fs::metadata(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
    if found.len() > MAX_BYTES {
        return Err(failed(format!("has {} bytes, the most is {MAX_BYTES}", found.len())));
    }
    let text = read_plain_text(path);
    let text = text.map_err(|error| failed(format!("cannot be read: {error}")))?;
    parse(&text).map_err(|error| format!("'{}', {error}", path.display()))
}

/// Reads the text of a file.
fn parse(text: &str) -> Result<TuningDatabase, String> {
    let wrong = |line: usize, what: String| format!("line {}: {what}", line + 1);
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let json = |(at, line): (usize, &str)| {
        let value: Result<Value, _> = serde_json::from_str(line);
        value.map(|value| (at, value)).map_err(|error| wrong(at, format!("no JSON: {error}")))
    };
    let Some(head) = lines.next() else {
        return Err(wrong(0, format!("is empty, expected {{\"format\":\"{FORMAT}\", …}}")));
    };
    let (at, head) = json(head)?;
    let format = head["format"].as_str();
    let version = head["version"].as_u64();
    if format != Some(FORMAT) || version != Some(VERSION) {
        let text = format!(
            "found format {format:?}, version {version:?}; expected \"{FORMAT}\", {VERSION}"
        );
        return Err(wrong(at, text));
    }
    let mut database = TuningDatabase::default();
    for line in lines {
        let (at, value) = json(line)?;
        let (key, record) = read_record(&value).map_err(|what| wrong(at, what))?;
        database.insert(key, record);
    }
    Ok(database)
}

/// The text of a file: a head, and a line for each record.
fn text(database: &TuningDatabase) -> String {
    let mut text = format!("{}\n", json!({"format": FORMAT, "version": VERSION}));
    for (key, record) in database.iter() {
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
/// Fails when it cannot be written.
pub fn save(database: &TuningDatabase, path: &Path) -> Result<(), String> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = (|| {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let mut to = BufWriter::new(File::create(&part)?);
        to.write_all(text(database).as_bytes())?;
        to.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&part, path)
    })();
    written.map_err(|error| {
        fs::remove_file(&part).ok();
        format!("'{}' cannot be written: {error}", path.display())
    })
}

fn read_record(value: &Value) -> Result<(TuningKey, TuningRecord), String> {
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
    let key = TuningKey {
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
    let record = TuningRecord {
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
    use galatea_runtime::tune::{ConfigAxis, TuningTarget};

    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let space = ConfigSpace::new(vec![ConfigAxis::numbers("threads", &[2, 1])]);
        let key = TuningKey::new("gemm-f32", "m64".to_owned(), "chip, build 1", &space);
        let record = TuningRecord {
            choice: "threads=1".to_owned(),
            time_ns: 4.25,
            default_ns: 9.0,
            trials: 3,
            others: vec![("threads=2".to_owned(), Some(5.5)), ("threads=4".to_owned(), None)],
            refused: vec![("threads=4".to_owned(), "result 3 is 1".to_owned())],
        };
        let mut database = TuningDatabase::default();
        database.insert(key.clone(), record);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deeper/tuning.jsonl");
        save(&database, &path).unwrap();
        let again = load(&path).unwrap();
        assert_eq!(again, database);
        assert_eq!(again.choose(&key, &space), Some(1));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    fn problem(unit: Option<&str>) -> TuningProblem {
        struct Nothing;
        impl TuningTarget for Nothing {
            fn compute(&mut self, _: usize) -> Result<Vec<f32>, String> {
                Err("nothing runs here".to_owned())
            }

            fn sample(&mut self, _: usize) -> Result<f64, String> {
                Err("nothing runs here".to_owned())
            }
        }
        TuningProblem {
            node: "n".to_owned(),
            unit: unit.map(str::to_owned),
            family: "gemm-f32".to_owned(),
            bucket: "m64".to_owned(),
            space: ConfigSpace::new(vec![ConfigAxis::numbers("threads", &[2, 1])]),
            device: Box::new(Nothing),
        }
    }

    fn record() -> TuningRecord {
        TuningRecord {
            choice: "threads=1".to_owned(),
            time_ns: 1.0,
            default_ns: 2.0,
            trials: 2,
            others: Vec::new(),
            refused: Vec::new(),
        }
    }

    #[test]
    fn new_records_hold_at_once_and_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tuning.jsonl");
        let records = TuningRecords::at(Some(path.clone()));
        for unit in [None, Some("gpu; driver 1")] {
            let problem = problem(unit);
            assert!(!records.knows(&problem));
            records.keep(&problem, record());
            assert!(records.knows(&problem));
            let again = TuningRecords::at(Some(path.clone()));
            assert!(again.knows(&problem));
            assert_eq!(again.find(&problem), Some(record()));
        }
        assert_eq!(records.count(), 2);
        assert!(!records.knows(&problem(Some("gpu; driver 2"))));
    }

    #[test]
    fn records_of_another_chip_or_version_are_not_used_and_stay_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tuning.jsonl");
        let problem = problem(None);
        let here = machine();
        let version = env!("CARGO_PKG_VERSION");
        assert!(here.ends_with(version), "{here}");
        let mut database = TuningDatabase::default();
        for other in [format!("another chip; {version}"), here.replace(version, "0.0.0")] {
            database.insert(problem.key(&other), record());
        }
        save(&database, &path).unwrap();
        let records = TuningRecords::at(Some(path.clone()));
        assert!(!records.knows(&problem));
        assert_eq!(records.count(), 0);
        records.keep(&problem, record());
        assert_eq!((records.count(), load(&path).unwrap().len()), (1, 3));
    }

    #[test]
    fn what_another_process_writes_is_found_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tuning.jsonl");
        let first = TuningRecords::at(Some(path.clone()));
        let second = TuningRecords::at(Some(path.clone()));
        second.keep(&problem(None), record());
        assert!(!first.knows(&problem(None)));
        first.keep(&problem(Some("gpu")), record());
        assert_eq!(load(&path).unwrap().len(), 2);
        let third = TuningRecords::at(Some(path));
        third.refresh();
        assert_eq!(third.count(), 2);
    }

    #[test]
    fn broken_files_are_named_with_their_line() {
        let error = |text: &str| parse(text).unwrap_err();
        assert!(error("").contains("line 1: is empty"));
        assert!(error("{\"format\":\"x\"}").contains("found format Some(\"x\")"));
        assert!(error("{\"format\":\"galatea tuning\",\"version\":2}").contains("version Some(2)"));
        let head = "{\"format\":\"galatea tuning\",\"version\":1}\n";
        assert!(error(&format!("{head}\n{{")).contains("line 3: no JSON"));
        let text = error(&format!("{head}{{\"family\":3,\"candidates\":\"0\"}}"));
        assert!(text.contains("line 2: 'family' is 3, expected a text"), "{text}");
        assert!(load(Path::new("/nowhere/x")).unwrap_err().contains("cannot be read"));
    }
}
