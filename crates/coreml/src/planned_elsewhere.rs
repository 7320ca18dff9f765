//! Kinds of operations that Core ML has planned on another unit than the rules say, as noted on this machine.

use galatea_tensor::OrderedMap;

use galatea_apple::ChipIdentity;

use super::engine::{TextRecords, facts, records};
use super::neural_engine::NeuralEngine;

/// Kind of the files with noted kinds of operations.
const KIND: &str = "plan";
/// Separator of a kind and its device.
const ON: &str = " => ";
/// The most kinds; where there are more, no others are noted.
const MAX_KINDS: usize = 4096;

/// Returns whether a unit, as Core ML or a note names it, is the Neural Engine.
pub(super) fn is_engine(unit: &str) -> bool {
    unit.starts_with("Neural Engine")
}

/// The kinds of operations that were planned on another unit than the rules say, with that unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PlannedElsewhere(OrderedMap<String, String>);

impl PlannedElsewhere {
    /// Returns the notes for an engine; none if it is not the engine of this machine.
    pub(super) fn of(engine: Option<&NeuralEngine>) -> Self {
        let here = ChipIdentity::detect()
            .is_ok_and(|chip| engine.is_some_and(|one| one.chip == chip.name));
        let records = records().filter(|_| here);
        records.map_or_else(Self::default, |records| Self::read(&records))
    }

    pub(super) fn read(records: &TextRecords) -> Self {
        let text = records.read(KIND, number(records)).unwrap_or_default();
        let row = |line: &str| {
            let (kind, unit) = line.split_once(ON)?;
            Some((kind.to_owned(), unit.to_owned()))
        };
        // A line that was cut off is left out, and found out anew.
        Self(text.lines().filter_map(row).take(MAX_KINDS).collect())
    }

    pub(super) fn write(&self, records: &TextRecords) {
        let lines: Vec<String> =
            self.0.iter().map(|(kind, unit)| format!("{kind}{ON}{unit}\n")).collect();
        records.write(KIND, number(records), &lines.concat());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The unit that a kind of operation was planned on, where that was noted.
    pub(super) fn unit(&self, kind: &str) -> Option<&str> {
        self.0.get(kind).map(String::as_str)
    }

    /// Notes the unit of a kind of operation. Returns whether that changes anything.
    pub(super) fn note(&mut self, kind: String, unit: &str) -> bool {
        let room = self.0.len() < MAX_KINDS;
        room && self.0.insert(kind, unit.to_owned()).as_deref() != Some(unit)
    }

    /// Drops the note of a kind of operation. Returns whether there was one.
    pub(super) fn forget(&mut self, kind: &str) -> bool {
        self.0.remove(kind).is_some()
    }
}

/// The number of this machine's file.
fn number(records: &TextRecords) -> u128 {
    records.digest(&|to| to.write(facts().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::CompiledCache;

    #[test]
    fn notes_are_read_by_the_next_load_and_broken_lines_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let records =
            TextRecords::beside(&CompiledCache::new(folder.path().join("cache"), 1 << 20));
        let records = records.unwrap();
        assert!(PlannedElsewhere::read(&records).is_empty());
        let mut measured = PlannedElsewhere::default();
        assert!(measured.note("tanh fp16[1] from fp16[1]".to_owned(), "CPU"));
        measured.write(&records);
        assert_eq!(PlannedElsewhere::read(&records), measured);
        records.write(KIND, number(&records), "no unit\nconv x => CPU\n\0\n");
        assert_eq!(PlannedElsewhere::read(&records).unit("conv x"), Some("CPU"));
    }
}
