//! Verdicts about whether a partition gives right results, found out before: in this program, or on
//! this machine.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, OnceLock, PoisonError};

use galatea_graph::Graph;

use super::{TextRecords, facts};

/// Kind of the files of verdicts.
const KIND: &str = "verdict";
/// Content of a file whose partition is right.
const RIGHT: &str = "right";

/// Result of a comparison: an error says how results differ.
pub(crate) type ValidationResult = Result<(), String>;

/// Returns the comparisons made in this program.
fn known_here() -> &'static Mutex<HashMap<u128, ValidationResult>> {
    static ALL: OnceLock<Mutex<HashMap<u128, ValidationResult>>> = OnceLock::new();
    ALL.get_or_init(Mutex::default)
}

/// The verdict on a partition, which may not be there yet.
#[derive(Clone, Debug)]
pub(crate) struct ValidationEntry {
    number: u128,
    records: Option<TextRecords>,
}

/// This build of the program, whose kernels and conversions may give other results than another one's.
fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let file = std::env::current_exe().and_then(|path| path.metadata());
        let file = file.map(|found| (found.size(), found.mtime(), found.mtime_nsec())).ok();
        format!("galatea {} {file:?}", env!("CARGO_PKG_VERSION"))
    })
}

impl ValidationEntry {
    /// That on a graph. `setting` is all that results depend on besides the graph, the program, the system and the
    /// chip.
    pub(crate) fn of(graph: &Graph, setting: &str, records: Option<TextRecords>) -> Self {
        let write = |to: &mut dyn Hasher| {
            to.write(format!("{} {} {setting}", program(), facts()).as_bytes());
            write_graph(graph, to);
        };
        let number = match &records {
            Some(records) => records.digest(&write),
            None => {
                let mut hasher = DefaultHasher::new();
                write(&mut hasher);
                u128::from(hasher.finish())
            }
        };
        Self { number, records }
    }

    /// Returns the result of an earlier comparison, if there was one.
    pub(crate) fn known(&self) -> Option<ValidationResult> {
        let mut all = known_here().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&self.number) {
            return Some(known.clone());
        }
        let text = self.records.as_ref()?.read(KIND, self.number)?;
        let found = match text.trim() {
            RIGHT => Ok(()),
            // What was cut off says nothing.
            "" => return None,
            wrong => Err(wrong.to_owned()),
        };
        all.insert(self.number, found.clone());
        Some(found)
    }

    /// Keeps what was found out.
    pub(crate) fn keep(&self, found: &ValidationResult) {
        let mut all = known_here().lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(self.number, found.clone());
        if let Some(records) = &self.records {
            records.write(KIND, self.number, found.as_ref().err().map_or(RIGHT, String::as_str));
        }
    }
}

/// The content of a graph.
fn write_graph(graph: &Graph, to: &mut dyn Hasher) {
    for value in graph.values() {
        to.write(value.name.as_bytes());
        to.write(format!("{:?}", value.declared).as_bytes());
        if let Some(bytes) = value.initializer.as_ref().and_then(|one| one.unaligned_bytes().ok()) {
            to.write_u64(bytes.len() as u64);
            to.write(bytes);
        }
    }
    for node in &graph.nodes {
        let text =
            format!("{} {:?} {:?} {:?}", node.op_type, node.operator, node.inputs, node.outputs);
        to.write(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::CompiledCache;
    use super::*;

    #[test]
    fn a_verdict_outlives_the_program_and_is_one_of_a_graph_and_a_setting() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CompiledCache::new(folder.path().join("cache"), 1 << 20);
        let records = TextRecords::beside(&cache);
        let graph = Graph::new("verdict of a test");
        let verdict = |setting: &str| ValidationEntry::of(&graph, setting, records.clone());
        assert_eq!(verdict("a").known(), None);
        verdict("a").keep(&Ok(()));
        verdict("b").keep(&Err("off by 2".to_owned()));
        // As if the program had been started anew.
        known_here().lock().unwrap().clear();
        assert_eq!(verdict("a").known(), Some(Ok(())));
        assert_eq!(verdict("b").known(), Some(Err("off by 2".to_owned())));
        assert_eq!(verdict("c").known(), None);
        // Without a folder the program remembers.
        let here = ValidationEntry::of(&graph, "d", None);
        here.keep(&Ok(()));
        assert_eq!(ValidationEntry::of(&graph, "d", None).known(), Some(Ok(())));
    }
}
