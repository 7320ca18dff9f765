//! What is known about chips beyond what they say themselves: the files of `data/chips`, which are
//! part of the program.

use std::sync::OnceLock;

use toml::{Table, Value};

/// The files, in the order of their names.
const FILES: &[&str] = &[
    include_str!("../../../data/chips/apple-m1-max.toml"),
    include_str!("../../../data/chips/apple-m1-pro.toml"),
    include_str!("../../../data/chips/apple-m1-ultra.toml"),
    include_str!("../../../data/chips/apple-m1.toml"),
    include_str!("../../../data/chips/apple-m2-max.toml"),
    include_str!("../../../data/chips/apple-m2-pro.toml"),
    include_str!("../../../data/chips/apple-m2-ultra.toml"),
    include_str!("../../../data/chips/apple-m2.toml"),
    include_str!("../../../data/chips/apple-m3.toml"),
    include_str!("../../../data/chips/apple-m4-max.toml"),
    include_str!("../../../data/chips/apple-m4-pro.toml"),
    include_str!("../../../data/chips/apple-m4.toml"),
];

/// The matrix unit of a chip's processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatrixUnit {
    /// Apple's own, which Accelerate alone may use.
    Amx,
    /// The scalable matrix extension.
    Sme,
}

impl MatrixUnit {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Amx => "AMX",
            Self::Sme => "SME",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Amx, Self::Sme].into_iter().find(|unit| unit.name() == text)
    }
}

/// What is known about a chip. Where it is sold in several sizes, a list has a figure for each; a
/// figure that nobody knows is absent.
#[derive(Debug, Clone, PartialEq)]
pub struct ChipFacts {
    /// As `machdep.cpu.brand_string` gives it.
    pub name: String,
    /// Where the figures come from.
    pub provenance: String,
    /// Cores of the fastest kind.
    pub performance_cores: Vec<f64>,
    /// Cores of the other kind.
    pub efficiency_cores: Vec<f64>,
    /// The matrix unit.
    pub matrix_unit: Option<MatrixUnit>,
    /// FP32 Gflop/s of the matrix units of the fast cores.
    pub matrix_gflops_f32: Vec<f64>,
    /// FP32 Gflop/s of the vectors of one fast core.
    pub vector_gflops_f32: Vec<f64>,
    /// 10¹² FP32 operations a second of the GPU.
    pub gpu_tflops_f32: Vec<f64>,
    /// 10⁹ bytes of memory a second.
    pub bandwidth_gb_per_s: Vec<f64>,
    /// Cores of the neural engine.
    pub neural_engine_cores: Option<f64>,
    /// What Apple states about it, 10¹² operations a second.
    pub stated_tops: Option<f64>,
    /// How many engines there are, each with its share of cores and operations.
    pub neural_engines: Option<f64>,
    /// 10¹² operations on halves a second, of all engines.
    pub fp16_tops: Option<f64>,
    /// Milliseconds that a start on the engine takes.
    pub dispatch_ms: Option<f64>,
    /// What the engine does with weights of 8 bits, and with those of 4.
    pub narrow: [Option<Narrow>; 2],
}

/// What a neural engine does with numbers of few bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Narrow {
    /// Multiplies them.
    Arithmetic,
    /// Widens them before.
    Storage,
}

impl Narrow {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Arithmetic => "arithmetic",
            Self::Storage => "storage",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Arithmetic, Self::Storage].into_iter().find(|kind| kind.name() == text)
    }
}

/// What is known about a chip, or about its nearest relative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known<'a> {
    /// The facts.
    pub facts: &'a ChipFacts,
    /// Whether they are this chip's own.
    pub exact: bool,
}

/// Every chip that there is a file of.
#[must_use]
pub fn chips() -> &'static [ChipFacts] {
    static ALL: OnceLock<Vec<ChipFacts>> = OnceLock::new();
    ALL.get_or_init(|| FILES.iter().filter_map(|text| parse(text)).collect())
}

/// What is known about the chip of this name; else about the nearest of its family, if it is of one:
/// the same generation before others, then the same size, then the plain one.
#[must_use]
pub fn find(name: &str) -> Option<Known<'static>> {
    if let Some(facts) = chips().iter().find(|chip| chip.name == name) {
        return Some(Known { facts, exact: true });
    }
    nearest(name, chips())
}

/// A figure of the nearest chip of the family that has it: of this one, if it does.
#[must_use]
pub fn figure(name: &str, of: fn(&ChipFacts) -> &[f64]) -> Option<f64> {
    let having: Vec<&ChipFacts> = chips().iter().filter(|chip| !of(chip).is_empty()).collect();
    let own = having.iter().find(|chip| chip.name == name).copied();
    let found = own.or_else(|| {
        let place = |chip: &&ChipFacts| distance(name, &chip.name);
        having.into_iter().filter(|chip| place(chip).is_some()).min_by_key(place)
    });
    // The least of several sizes is not promised too much.
    found.map(|chip| of(chip).iter().copied().fold(f64::INFINITY, f64::min))
}

fn nearest<'a>(name: &str, chips: &'a [ChipFacts]) -> Option<Known<'a>> {
    let place = |chip: &&ChipFacts| distance(name, &chip.name);
    let family = chips.iter().filter(|chip| place(chip).is_some());
    family.min_by_key(place).map(|facts| Known { facts, exact: false })
}

/// The generation in a chip's name: 4 of `Apple M4 Pro`.
#[must_use]
pub fn generation(name: &str) -> Option<u32> {
    parts(name).map(|(_, _, generation, _)| generation)
}

/// A name's maker, family, generation and size: `Apple`, `M`, 4, `Pro`.
fn parts(name: &str) -> Option<(&str, &str, u32, &str)> {
    let mut words = name.splitn(3, ' ');
    let (maker, model, size) = (words.next()?, words.next()?, words.next().unwrap_or(""));
    let digits = model.find(|c: char| c.is_ascii_digit())?;
    let (family, generation) = model.split_at(digits);
    Some((maker, family, generation.parse().ok()?, size))
}

/// How far apart two chips are: generations, then whether the size is another one, then whether it is
/// a special one; `None` where they are of no common family.
fn distance(wanted: &str, other: &str) -> Option<(u32, bool, bool)> {
    let (a, b) = (parts(wanted)?, parts(other)?);
    ((a.0, a.1) == (b.0, b.1)).then(|| (a.2.abs_diff(b.2), a.3 != b.3, !b.3.is_empty()))
}

fn parse(text: &str) -> Option<ChipFacts> {
    let chip: Table = text.parse().ok()?;
    let text_of = |key: &str| Some(chip.get(key)?.as_str()?.to_owned());
    let value = |section: &str, key: &str| chip.get(section)?.as_table()?.get(key);
    let numbers = |section: &str, key: &str| -> Vec<f64> {
        let all = value(section, key).and_then(Value::as_array);
        all.into_iter().flatten().filter_map(number).collect()
    };
    let narrow = |key: &str| Narrow::parse(value("neural_engine", key)?.as_str()?);
    Some(ChipFacts {
        name: text_of("name")?,
        provenance: text_of("provenance")?,
        performance_cores: numbers("cpu", "performance_cores"),
        efficiency_cores: numbers("cpu", "efficiency_cores"),
        matrix_unit: value("matrix", "unit").and_then(Value::as_str).and_then(MatrixUnit::parse),
        matrix_gflops_f32: numbers("matrix", "gflops_f32"),
        vector_gflops_f32: numbers("cpu", "vector_gflops_f32"),
        gpu_tflops_f32: numbers("gpu", "tflops_f32"),
        bandwidth_gb_per_s: numbers("memory", "bandwidth_gb_per_s"),
        neural_engine_cores: value("neural_engine", "cores").and_then(number),
        stated_tops: value("neural_engine", "stated_tops").and_then(number),
        neural_engines: value("neural_engine", "engines").and_then(number),
        fp16_tops: value("neural_engine", "fp16_tops").and_then(number),
        dispatch_ms: value("neural_engine", "dispatch_ms").and_then(number),
        narrow: [narrow("int8"), narrow("int4")],
    })
}

#[allow(clippy::cast_precision_loss, reason = "figures of data sheets are small")]
fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
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
        assert_eq!(chips().len(), FILES.len());
        assert!(chips().iter().all(|chip| chip.matrix_unit.is_some()));
        let whole = |chip: &ChipFacts| {
            chip.neural_engines.zip(chip.fp16_tops).is_some()
                && chip.narrow.iter().all(Option::is_some)
        };
        assert!(chips().iter().all(whole));
    }

    #[test]
    fn a_chip_that_is_not_known_is_like_the_nearest_of_its_family() {
        let found = find("Apple M4 Pro").unwrap();
        assert_eq!((found.exact, found.facts.matrix_unit), (true, Some(MatrixUnit::Sme)));
        let name = |wanted: &str| find(wanted).map(|known| known.facts.name.as_str());
        assert_eq!(name("Apple M3 Pro"), Some("Apple M3"));
        assert_eq!(name("Apple M9 Max"), Some("Apple M4 Max"));
        assert_eq!(name("Apple M4 Ultra"), Some("Apple M4"));
        assert!(!find("Apple M5").unwrap().exact);
        assert_eq!(name("Apple A17 Pro"), None);
        assert_eq!(name("Intel(R) Xeon(R)"), None);
        assert_eq!(name(""), None);
    }

    #[test]
    fn a_figure_comes_from_the_nearest_chip_that_has_it() {
        let matrix = |name: &str| figure(name, |chip| &chip.matrix_gflops_f32);
        assert_eq!(matrix("Apple M1"), Some(1200.0));
        // Its own file has none.
        assert_eq!(matrix("Apple M2 Ultra"), Some(1600.0));
        assert_eq!(matrix("Apple A17 Pro"), None);
        let start = |name: &str| figure(name, |chip| chip.dispatch_ms.as_slice());
        assert_eq!((start("Apple M1 Ultra"), start("Apple M4 Pro")), (Some(0.23), Some(0.1)));
        assert_eq!((generation("Apple M4 Pro"), generation("Xeon")), (Some(4), None));
        let gpu = |name: &str| figure(name, |chip| &chip.gpu_tflops_f32);
        assert_eq!((gpu("Apple M4 Max"), gpu("Apple M3 Pro")), (Some(14.0), Some(3.5)));
        assert!(figure("Apple M3", |chip| &chip.vector_gflops_f32).is_some());
    }
}
