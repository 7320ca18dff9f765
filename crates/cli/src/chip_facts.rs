//! Chips by name or by file, for the commands that plan with them.

use std::fs;

use galatea_runtime::chips::{self, ChipFacts, ChipFigure, FIGURES};
use galatea_runtime::cost::CostModel;
use serde_json::{Map, Value, json};

use crate::table::table;

/// A chip that was asked for.
#[derive(Debug, Clone)]
pub(super) struct AskedChip {
    /// Name as the user gave it, such as `Apple M6 Pro`.
    pub(super) name: String,
    /// Facts of this chip, or of its nearest relative.
    pub(super) facts: ChipFacts,
    /// True if the facts are this chip's own.
    pub(super) exact: bool,
    /// Its size, counted from the smallest; the largest where none was named.
    pub(super) size: usize,
}

impl AskedChip {
    /// Finds `NAME`, `NAME:CORES` with the cores of its GPU, or a file `FILE.toml`.
    ///
    /// # Errors
    /// Fails for a damaged file, a chip of an unknown family, and a number of cores that no size of it has.
    pub(super) fn find(text: &str) -> Result<Self, String> {
        if text.ends_with(".toml") {
            let file = fs::read_to_string(text).map_err(|error| format!("'{text}': {error}"))?;
            let facts = ChipFacts::read(&file).map_err(|error| format!("'{text}': {error}"))?;
            let name = facts.name.clone();
            return Ok(Self { name, facts, exact: true, size: usize::MAX });
        }
        let (name, cores) = match text.split_once(':') {
            Some((name, cores)) => (name, Some(cores)),
            None => (text, None),
        };
        let name = chips::full_name(name);
        let known = chips::find(&name).ok_or_else(|| {
            let names: Vec<&str> = chips::chips().iter().map(|chip| chip.name.as_str()).collect();
            format!(
                "chip '{text}' found, expected a file that ends with .toml or one of {}",
                names.join(", ")
            )
        })?;
        let size = match cores {
            None => usize::MAX,
            Some(cores) => size(known.facts, cores).map_err(|expected| {
                format!("chip '{text}' found, expected {expected} cores of the GPU")
            })?,
        };
        Ok(Self { name, facts: known.facts.clone(), exact: known.exact, size })
    }

    /// Returns the cost model of the chip.
    pub(super) fn cost(&self) -> CostModel {
        CostModel::of(&self.facts, self.size)
    }

    /// Returns the number of Neural Engines, each of which runs its own programs.
    pub(super) fn engines(&self) -> usize {
        let two =
            self.facts.of_size(ChipFigure::Engines, self.size).is_some_and(|count| count >= 2.0);
        if two { 2 } else { 1 }
    }

    /// Its name, and whose facts stand for it.
    pub(super) fn label(&self) -> String {
        match self.exact {
            true => self.name.clone(),
            false => format!("{} (facts of the nearest known, {})", self.name, self.facts.name),
        }
    }
}

/// The size with so many cores of its GPU, or else the counts that there are.
fn size(facts: &ChipFacts, cores: &str) -> Result<usize, String> {
    let all = facts.list(ChipFigure::GpuCores);
    let wanted = cores.parse::<f64>().ok();
    let found = all.iter().position(|count| wanted == Some(*count));
    found.ok_or_else(|| all.iter().map(f64::to_string).collect::<Vec<_>>().join(" or "))
}

/// A chip's figures for people.
pub(super) fn as_text(asked: &AskedChip) -> String {
    let facts = &asked.facts;
    let mut text = format!("{}\n", asked.label());
    let word = |name: &str, value: Option<&str>| {
        value.map(|value| format!("{name} {value}\n")).unwrap_or_default()
    };
    text += &word("Matrix unit", facts.matrix_unit.map(|unit| unit.name()));
    text += &word("Instructions of the matrix unit", facts.matrix_version.as_deref());
    text += &word("Metal family", facts.metal_family.as_deref());
    for (name, narrow) in ["INT8", "INT4"].into_iter().zip(facts.narrow) {
        text += &word(&format!("Neural Engine's {name}"), narrow.map(|narrow| narrow.name()));
    }
    let rows = FIGURES.iter().filter(|row| !facts.list(row.figure).is_empty()).map(|row| {
        let values: Vec<String> = facts.list(row.figure).iter().map(f64::to_string).collect();
        let source = facts.source_of(row.figure);
        vec![
            row.title.to_owned(),
            format!("{} {}", values.join(" | "), row.unit).trim().to_owned(),
            source.confidence.name().to_owned(),
            source.provenance.clone(),
        ]
    });
    text + table(&["Figure", "By size", "Confidence", "From"], rows).trim_end()
}

/// The same for programs.
pub(super) fn as_json(asked: &AskedChip) -> Value {
    let facts = &asked.facts;
    let figures = FIGURES.iter().filter(|row| !facts.list(row.figure).is_empty()).map(|row| {
        let source = facts.source_of(row.figure);
        let figure = json!({
            "values": facts.list(row.figure), "unit": row.unit,
            "confidence": source.confidence.name(), "provenance": source.provenance,
        });
        (row.key.to_owned(), figure)
    });
    let mut all = json!({
        "chip": asked.name,
        "facts_of": facts.name,
        "exact": asked.exact,
        "matrix_unit": facts.matrix_unit.map(|unit| unit.name()),
        "matrix_version": facts.matrix_version,
        "metal_family": facts.metal_family,
        "features": facts.features,
        "figures": figures.collect::<Map<String, Value>>(),
    });
    if let Some(all) = all.as_object_mut() {
        all.retain(|_, value| !value.is_null());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_are_found_by_name_size_and_file() {
        let asked = AskedChip::find("m4-max:32").unwrap();
        assert_eq!((asked.size, asked.exact), (0, true));
        assert!(as_text(&asked).contains("410 | 546 GB/s"));
        let relative = AskedChip::find("M6 Pro").unwrap();
        assert!(!relative.exact && relative.label().contains("nearest known, Apple M5 Pro"));
        assert_eq!(as_json(&relative)["exact"], false);
        for (text, part) in [
            ("m4-max:33", "expected 32 or 40 cores"),
            ("xeon", "expected a file"),
            ("/nowhere/host.toml", "/nowhere/host.toml"),
        ] {
            let error = AskedChip::find(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        fs::write(file.path(), asked.facts.write()).unwrap();
        let again = AskedChip::find(file.path().to_str().unwrap()).unwrap();
        assert_eq!(again.facts, asked.facts);
    }
}
