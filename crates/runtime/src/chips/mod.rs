//! Database of chips: the files of `data/chips`, which are compiled into the program, and files in the same
//! form that were measured on a host.
//!
//! A chip is looked up by its name. One without a file takes the figures of the nearest of its family, and
//! wherever these figures are shown, that is stated.

mod facts;
mod figure;

use std::sync::OnceLock;

pub use facts::{
    ChipFacts, FigureConfidence, FigureSource, LowBitSupport, MachineSize, MatrixUnit,
};
pub use figure::{ChipFigure, FIGURES, FigureRow};

/// The files, in the order of their names.
const FILES: &[&str] = &[
    include_str!("../../chips/apple-m1-max.toml"),
    include_str!("../../chips/apple-m1-pro.toml"),
    include_str!("../../chips/apple-m1-ultra.toml"),
    include_str!("../../chips/apple-m1.toml"),
    include_str!("../../chips/apple-m2-max.toml"),
    include_str!("../../chips/apple-m2-pro.toml"),
    include_str!("../../chips/apple-m2-ultra.toml"),
    include_str!("../../chips/apple-m2.toml"),
    include_str!("../../chips/apple-m3-max.toml"),
    include_str!("../../chips/apple-m3-pro.toml"),
    include_str!("../../chips/apple-m3-ultra.toml"),
    include_str!("../../chips/apple-m3.toml"),
    include_str!("../../chips/apple-m4-max.toml"),
    include_str!("../../chips/apple-m4-pro.toml"),
    include_str!("../../chips/apple-m4.toml"),
    include_str!("../../chips/apple-m5-max.toml"),
    include_str!("../../chips/apple-m5-pro.toml"),
    include_str!("../../chips/apple-m5-ultra.toml"),
    include_str!("../../chips/apple-m5.toml"),
    include_str!("../../chips/apple-m6.toml"),
];

/// Facts about a chip, or about its nearest relative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownChip<'a> {
    /// The facts.
    pub facts: &'a ChipFacts,
    /// True if the facts are this chip's own.
    pub exact: bool,
}

/// Every chip that there is a file of.
#[must_use]
pub fn chips() -> &'static [ChipFacts] {
    static ALL: OnceLock<Vec<ChipFacts>> = OnceLock::new();
    ALL.get_or_init(|| FILES.iter().filter_map(|text| ChipFacts::read(text).ok()).collect())
}

/// Returns the facts about the chip of this name, else about the nearest chip of its family, if it belongs to
/// one. Chips of the same size come before others, then the nearest generation, then the plain one.
#[must_use]
pub fn find(name: &str) -> Option<KnownChip<'static>> {
    let own = chips().iter().find(|chip| chip.name == name);
    let own = own.map(|facts| KnownChip { facts, exact: true });
    own.or_else(|| nearest(name, |_| true).map(|facts| KnownChip { facts, exact: false }))
}

/// The name of a chip as a user writes it, such as `m2-pro` or `M2 Pro`, as the chip has it itself.
#[must_use]
pub fn full_name(given: &str) -> String {
    let given = given.trim().replace(['-', '_'], " ");
    let words = given.split_whitespace().map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters.map(|letter| letter.to_ascii_lowercase())).collect()
    });
    let words: Vec<String> = words.collect();
    let known = words.first().is_some_and(|first| parts(&format!("Apple {first}")).is_some());
    let full = words.join(" ");
    if known { format!("Apple {full}") } else { full }
}

/// A figure of the nearest chip of the family that has it: of this one, if it does; the least of several
/// sizes.
#[must_use]
pub fn figure(name: &str, figure: ChipFigure) -> Option<f64> {
    having(name, figure)?.least(figure)
}

/// FP32 Gflop/s of a chip's matrix units; where only relatives' are known, those of the nearest generation by
/// the number of fast cores, since each cluster of them has one.
#[must_use]
pub fn matrix_gflops(facts: &ChipFacts, size: usize) -> Option<f64> {
    if let Some(own) = facts.of_size(ChipFigure::MatrixGflops, size) {
        return Some(own);
    }
    let known = chips().iter().filter(|chip| !chip.list(ChipFigure::MatrixGflops).is_empty());
    let place = |chip: &&ChipFacts| {
        distance(&facts.name, &chip.name)
            .map(|(size, generations, special)| (generations, size, special))
    };
    let relative = known.filter(|chip| place(chip).is_some()).min_by_key(place)?;
    let last = |figure| relative.list(figure).last().copied();
    let cores = facts.of_size(ChipFigure::PerformanceCores, size)?;
    Some(last(ChipFigure::MatrixGflops)? * cores / last(ChipFigure::PerformanceCores)?.max(1.0))
}

fn having(name: &str, figure: ChipFigure) -> Option<&'static ChipFacts> {
    let has = |chip: &ChipFacts| !chip.list(figure).is_empty();
    let own = chips().iter().find(|chip| chip.name == name && has(chip));
    own.or_else(|| nearest(name, has))
}

fn nearest(name: &str, fits: impl Fn(&ChipFacts) -> bool) -> Option<&'static ChipFacts> {
    let place = |chip: &&ChipFacts| distance(name, &chip.name);
    let family = chips().iter().filter(|chip| fits(chip) && place(chip).is_some());
    family.min_by_key(place)
}

/// The generation in a chip's name: 4 of `Apple M4 Pro`.
#[must_use]
pub fn generation(name: &str) -> Option<u32> {
    parts(name).map(|(_, _, generation, _)| generation)
}

/// A name's maker, family, generation and size: `Apple`, `M`, 4, `Pro`.
fn parts(name: &str) -> Option<(&str, &str, u32, &str)> {
    let mut words = name.splitn(3, ' ');
    let maker = words.next()?;
    let model = words.next()?;
    let size = words.next().unwrap_or("");
    let digits = model.find(|c: char| c.is_ascii_digit())?;
    let (family, generation) = model.split_at(digits);
    Some((maker, family, generation.parse().ok()?, size))
}

/// Returns the distance between two chips: whether the sizes differ, then the difference in generations, then
/// whether the other is a special variant. Returns `None` if they have no family in common.
fn distance(wanted: &str, other: &str) -> Option<(bool, u32, bool)> {
    let a = parts(wanted)?;
    let b = parts(other)?;
    ((a.0, a.1) == (b.0, b.1)).then(|| (a.3 != b.3, a.2.abs_diff(b.2), !b.3.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_in_the_table_and_can_be_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/chips");
        let mut texts: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
            .collect();
        let mut known: Vec<String> = FILES.iter().map(|&text| text.to_owned()).collect();
        texts.sort();
        known.sort();
        assert!(texts == known, "the table and data/chips differ");
        for text in FILES {
            ChipFacts::read(text).unwrap();
        }
        for chip in chips() {
            assert!(chip.matrix_unit.is_some() && chip.narrow.iter().all(Option::is_some));
            for figure in [
                ChipFigure::PerformanceCores,
                ChipFigure::EfficiencyCores,
                ChipFigure::GpuCores,
                ChipFigure::GpuTflops,
                ChipFigure::EngineCores,
                ChipFigure::Engines,
                ChipFigure::Fp16Tops,
                ChipFigure::Bandwidth,
                ChipFigure::MaxGb,
            ] {
                let list = chip.list(figure);
                assert!(!list.is_empty(), "{}: no {}", chip.name, figure.key());
                assert!(list.is_sorted(), "{}: {} falls", chip.name, figure.key());
            }
        }
    }

    #[test]
    fn versions_of_matrix_units_are_told_apart() {
        let version = |name: &str| find(name).unwrap().facts.matrix_version.as_deref();
        assert_eq!((version("Apple M1 Ultra"), version("Apple M2")), (Some("M1"), Some("M2")));
        assert_eq!((version("Apple M4 Pro"), version("Apple M5")), (Some("SME2"), Some("SME2p1")));
        // What nobody has described is not guessed.
        assert_eq!(version("Apple M3 Max"), None);
    }

    #[test]
    fn a_chip_that_is_not_known_is_like_the_nearest_of_its_family() {
        let found = find("Apple M4 Pro").unwrap();
        assert_eq!((found.exact, found.facts.matrix_unit), (true, Some(MatrixUnit::Sme)));
        let name = |wanted: &str| find(wanted).map(|known| known.facts.name.as_str());
        assert_eq!(name("Apple M6 Pro"), Some("Apple M5 Pro"));
        assert_eq!(name("Apple M9 Max"), Some("Apple M5 Max"));
        assert_eq!(name("Apple M4 Ultra"), Some("Apple M3 Ultra"));
        assert_eq!(name("Apple M7"), Some("Apple M6"));
        assert!(find("Apple M6").unwrap().exact && !find("Apple M7").unwrap().exact);
        for other in ["Apple A17 Pro", "Intel(R) Xeon(R)", ""] {
            assert_eq!(name(other), None);
        }
    }

    #[test]
    fn names_are_taken_as_people_write_them() {
        for (given, full) in [
            ("m2-pro", "Apple M2 Pro"),
            ("M4", "Apple M4"),
            ("apple-m1-max", "Apple M1 Max"),
            ("Apple M3 Ultra", "Apple M3 Ultra"),
            ("xeon", "Xeon"),
        ] {
            assert_eq!(full_name(given), full);
        }
    }

    #[test]
    fn a_figure_comes_from_the_nearest_chip_that_has_it() {
        let start = |name: &str| figure(name, ChipFigure::DispatchMs);
        assert_eq!((start("Apple M1 Ultra"), start("Apple M4 Pro")), (Some(0.23), Some(0.1)));
        assert_eq!(figure("Apple M4 Max", ChipFigure::Bandwidth), Some(410.0));
        assert_eq!((generation("Apple M4 Pro"), generation("Xeon")), (Some(4), None));
        assert!(figure("Apple M3", ChipFigure::VectorGflops).is_some());
        let matrix = |name: &str| matrix_gflops(find(name).unwrap().facts, 0);
        assert_eq!(matrix("Apple M1 Max"), Some(2626.0));
        // Their own files have none; one has half the fast cores of the M1 Max, the other three times those of the M4.
        assert_eq!(matrix("Apple M1"), Some(1313.0));
        assert_eq!(matrix("Apple M4 Max"), Some(5000.0));
    }
}
