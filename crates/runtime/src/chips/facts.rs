//! Facts that are known about a chip, as read from its file.

use std::fmt::{self, Write as _};

use galatea_tensor::OrderedMap;
use toml::{Table, Value};

use super::figure::{ChipFigure, FIGURES};

/// The matrix unit of a chip's processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatrixUnit {
    /// Apple's own, which Accelerate alone may use.
    Amx,
    /// The scalable matrix extension.
    Sme,
}

/// Treatment of narrow (8-bit or 4-bit) numbers by a neural engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LowBitSupport {
    /// Multiplies them.
    Arithmetic,
    /// Widens them before.
    Storage,
}

/// Confidence in a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FigureConfidence {
    /// A guess, or a figure that is passed on without a source.
    Low,
    /// From one source, or derived from others.
    Medium,
    /// Published by who makes the chip, or measured on this host.
    High,
}

/// Names of a few values in files.
macro_rules! named {
    ($kind:ty, $($value:ident = $name:literal),+) => {
        impl $kind {
            const ALL: &'static [(Self, &'static str)] = &[$((Self::$value, $name)),+];

            /// Its name.
            #[must_use]
            pub fn name(self) -> &'static str {
                Self::ALL.iter().find(|(value, _)| *value == self).map_or("", |(_, name)| name)
            }

            fn parse(text: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().find(|(_, name)| *name == text);
                found.map(|(value, _)| *value).ok_or_else(|| {
                    let names: Vec<&str> = Self::ALL.iter().map(|(_, name)| *name).collect();
                    format!("'{text}' found, expected one of {}", names.join(", "))
                })
            }
        }
    };
}
named!(MatrixUnit, Amx = "AMX", Sme = "SME");
named!(LowBitSupport, Arithmetic = "arithmetic", Storage = "storage");
named!(FigureConfidence, Low = "low", Medium = "medium", High = "high");

/// Source of a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FigureSource {
    /// Confidence in the figure.
    pub confidence: FigureConfidence,
    /// Name of the source, or the derivation of the figure.
    pub provenance: String,
}

impl fmt::Display for FigureSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.confidence.name(), self.provenance)
    }
}

/// Facts by which a machine tells the size of its chip.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MachineSize {
    /// Cores of the fastest kind.
    pub fast_cores: Option<f64>,
    /// Cores of all other kinds.
    pub other_cores: Option<f64>,
    /// Memory in units of 2³⁰ bytes, which makers call GB.
    pub memory_gb: f64,
}

/// Facts that are known about a chip.
///
/// A chip that is sold in several sizes has one value of a figure for each size, or one for all. Unknown
/// figures are absent.
#[derive(Debug, Clone, PartialEq)]
pub struct ChipFacts {
    /// Name, as `machdep.cpu.brand_string` gives it.
    pub name: String,
    /// Source of the figures that have none of their own.
    pub source: FigureSource,
    /// The matrix unit of the processor.
    pub matrix_unit: Option<MatrixUnit>,
    /// Version of its instructions: the first chip that has them where they are Apple's own, or the architecture's
    /// name.
    pub matrix_version: Option<String>,
    /// Optional instructions, by the names of the architecture in lower case.
    pub features: Vec<String>,
    /// The family that Metal says of the GPU.
    pub metal_family: Option<String>,
    /// Treatment of 8-bit and of 4-bit weights by the engine.
    pub narrow: [Option<LowBitSupport>; 2],
    /// The figures, by size; none is empty.
    pub figures: OrderedMap<ChipFigure, Vec<f64>>,
    /// Sources of single figures.
    pub sources: OrderedMap<ChipFigure, FigureSource>,
}

impl ChipFacts {
    /// Reads a file.
    ///
    /// # Errors
    /// Bytes that are no TOML, keys that nobody knows, and values that are not what their key is for.
    pub fn read(text: &str) -> Result<Self, String> {
        let table: Table = text.parse().map_err(|error| format!("no chip file: {error}"))?;
        let mut facts = Self {
            name: text_of(&table, "name")?,
            source: FigureSource {
                confidence: FigureConfidence::parse(&text_of(&table, "confidence")?)
                    .map_err(|problem| format!("confidence: {problem}"))?,
                provenance: text_of(&table, "provenance")?,
            },
            matrix_unit: None,
            matrix_version: None,
            features: Vec::new(),
            metal_family: None,
            narrow: [None; 2],
            figures: OrderedMap::new(),
            sources: OrderedMap::new(),
        };
        for (section, value) in &table {
            match (section.as_str(), value) {
                ("name" | "confidence" | "provenance", _) => {}
                ("sources", Value::Table(sources)) => facts.take_sources(sources)?,
                (_, Value::Table(section_table)) => {
                    for (key, value) in section_table {
                        let key = format!("{section}.{key}");
                        facts.take(&key, value).map_err(|problem| format!("{key}: {problem}"))?;
                    }
                }
                (key, _) => return Err(format!("{key}: no key of a chip file")),
            }
        }
        let mut without = facts.sources.keys().filter(|figure| !facts.figures.contains_key(figure));
        if let Some(figure) = without.next() {
            return Err(format!("sources.\"{}\": there is no such figure", figure.key()));
        }
        facts.sizes().map(|_| facts)
    }

    fn take(&mut self, key: &str, value: &Value) -> Result<(), String> {
        let text =
            || value.as_str().ok_or_else(|| format!("{} found, expected a text", shown(value)));
        match key {
            "matrix.unit" => self.matrix_unit = Some(MatrixUnit::parse(text()?)?),
            "matrix.version" => self.matrix_version = Some(text()?.to_owned()),
            "neural_engine.int8" => self.narrow[0] = Some(LowBitSupport::parse(text()?)?),
            "neural_engine.int4" => self.narrow[1] = Some(LowBitSupport::parse(text()?)?),
            "gpu.metal_family" => self.metal_family = Some(text()?.to_owned()),
            "cpu.features" => {
                let list = value.as_array().into_iter().flatten();
                let names: Option<Vec<String>> =
                    list.map(|name| name.as_str().map(str::to_owned)).collect();
                self.features = names
                    .filter(|_| value.is_array())
                    .ok_or_else(|| format!("{} found, expected a list of texts", shown(value)))?;
            }
            _ => {
                let row =
                    FIGURES.iter().find(|row| row.key == key).ok_or("nobody knows this key")?;
                self.figures.insert(row.figure, numbers(value)?);
            }
        }
        Ok(())
    }

    fn take_sources(&mut self, sources: &Table) -> Result<(), String> {
        for (key, value) in sources {
            let wrong = |problem: String| format!("sources.\"{key}\": {problem}");
            let row = FIGURES.iter().find(|row| row.key == key);
            let row = row.ok_or_else(|| wrong("nobody knows this figure".to_owned()))?;
            let table = value.as_table().filter(|table| table.len() == 2);
            let table = table.ok_or_else(|| wrong("expected confidence and provenance".into()))?;
            let confidence = text_of(table, "confidence").map_err(wrong)?;
            let source = FigureSource {
                confidence: FigureConfidence::parse(&confidence).map_err(wrong)?,
                provenance: text_of(table, "provenance").map_err(wrong)?,
            };
            self.sources.insert(row.figure, source);
        }
        Ok(())
    }

    /// Returns the number of sizes.
    ///
    /// # Errors
    /// Fails when figures have lists of different lengths above one.
    pub fn sizes(&self) -> Result<usize, String> {
        let several = || self.figures.iter().filter(|(_, values)| values.len() > 1);
        let Some((first, values)) = several().next() else { return Ok(1) };
        match several().find(|(_, others)| others.len() != values.len()) {
            None => Ok(values.len()),
            Some((other, others)) => Err(format!(
                "{} has {} sizes and {} has {}: expected the same, or one figure for all",
                first.key(),
                values.len(),
                other.key(),
                others.len()
            )),
        }
    }

    /// A figure of every size, or of all of them; empty where nobody knows it.
    #[must_use]
    pub fn list(&self, figure: ChipFigure) -> &[f64] {
        self.figures.get(&figure).map_or(&[], Vec::as_slice)
    }

    /// The figure of a size, counted from the smallest; the largest where there are not as many.
    #[must_use]
    pub fn of_size(&self, figure: ChipFigure, size: usize) -> Option<f64> {
        let list = self.list(figure);
        list.get(size).or(list.last()).copied()
    }

    /// The figure of a machine, as far as its cores and memory tell the size; `None` where sizes that it may be differ.
    #[must_use]
    pub fn of_machine(&self, figure: ChipFigure, machine: &MachineSize) -> Option<f64> {
        let fits = |size: usize| {
            let same = |figure, count: Option<f64>| {
                let stated = self.of_size(figure, size);
                stated.is_none() || count.is_none() || stated == count
            };
            same(ChipFigure::PerformanceCores, machine.fast_cores)
                && same(ChipFigure::EfficiencyCores, machine.other_cores)
                && self
                    .of_size(ChipFigure::MaxGb, size)
                    .is_none_or(|most| machine.memory_gb <= most)
        };
        let sizes = self.sizes().unwrap_or(1);
        let mut found = (0..sizes).filter(|&size| fits(size));
        let value = self.of_size(figure, found.next()?)?;
        found.all(|size| self.of_size(figure, size) == Some(value)).then_some(value)
    }

    /// The least of all sizes, which promises none of them too much.
    #[must_use]
    pub fn least(&self, figure: ChipFigure) -> Option<f64> {
        self.list(figure).iter().copied().reduce(f64::min)
    }

    /// Returns the source of a figure.
    #[must_use]
    pub fn source_of(&self, figure: ChipFigure) -> &FigureSource {
        self.sources.get(&figure).unwrap_or(&self.source)
    }

    /// The file with these facts.
    #[must_use]
    pub fn write(&self) -> String {
        let mut text = format!(
            "name = {}\nprovenance = {}\nconfidence = {}\n",
            quoted(&self.name),
            quoted(&self.source.provenance),
            quoted(self.source.confidence.name())
        );
        let mut section = "";
        let words = [
            ("matrix.unit", self.matrix_unit.map(|unit| quoted(unit.name()))),
            ("matrix.version", self.matrix_version.as_deref().map(quoted)),
            ("gpu.metal_family", self.metal_family.as_deref().map(quoted)),
            ("neural_engine.int8", self.narrow[0].map(|narrow| quoted(narrow.name()))),
            ("neural_engine.int4", self.narrow[1].map(|narrow| quoted(narrow.name()))),
            (
                "cpu.features",
                (!self.features.is_empty()).then(|| {
                    let names: Vec<String> =
                        self.features.iter().map(|name| quoted(name)).collect();
                    format!("[{}]", names.join(", "))
                }),
            ),
        ];
        let figures = FIGURES.iter().filter_map(|row| {
            let values: Vec<String> =
                self.figures.get(&row.figure)?.iter().map(f64::to_string).collect();
            Some((row.key, format!("[{}]", values.join(", "))))
        });
        let mut lines: Vec<(&str, String)> = figures.collect();
        lines.extend(words.into_iter().filter_map(|(key, value)| Some((key, value?))));
        lines.sort_by_key(|(key, _)| key.split_once('.').map(|(section, _)| section));
        for (key, value) in lines {
            let (of, name) = key.split_once('.').unwrap_or(("", key));
            if of != section {
                section = of;
                write!(text, "\n[{section}]\n").ok();
            }
            writeln!(text, "{name} = {value}").ok();
        }
        if !self.sources.is_empty() {
            text.push_str("\n[sources]\n");
        }
        for (figure, FigureSource { confidence, provenance }) in &self.sources {
            let confidence = quoted(confidence.name());
            let provenance = quoted(provenance);
            let key = figure.key();
            writeln!(
                text,
                "\"{key}\" = {{ confidence = {confidence}, provenance = {provenance} }}"
            )
            .ok();
        }
        text
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            _ if letter.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(letter))),
            _ => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// A value in a complaint.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{text}'"),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        other => format!("a value of the type {}", other.type_str()),
    }
}

fn text_of(table: &Table, key: &str) -> Result<String, String> {
    let found = table.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    found.map(str::to_owned).ok_or_else(|| format!("{key}: expected a text"))
}

/// One number or a list of them, none below 0.
fn numbers(value: &Value) -> Result<Vec<f64>, String> {
    let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let numbers: Option<Vec<f64>> = list.iter().map(number).collect();
    numbers.filter(|numbers| !numbers.is_empty()).ok_or_else(|| {
        format!("{} found, expected a number from 0 on, or a list of them", shown(value))
    })
}

#[allow(clippy::cast_precision_loss, reason = "figures of data sheets are small")]
fn number(value: &Value) -> Option<f64> {
    let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name = \"X 1\"\nprovenance = \"a page\"\nconfidence = \"low\"\n";

    #[test]
    fn what_is_written_is_read_again() {
        let text = format!(
            "{HEAD}[cpu]\nfeatures = [\"bf16\"]\nperformance_cores = [4, 6]\n[matrix]\n\
             unit = \"SME\"\nversion = \"SME2\"\n[neural_engine]\nint8 = \"storage\"\nfp16_tops = 2.5\n[gpu]\n\
             metal_family = \"Apple7\"\n[sources]\n\
             \"cpu.performance_cores\" = {{ confidence = \"high\", provenance = \"a \\\"b\\\"\" }}\n"
        );
        let facts = ChipFacts::read(&text).unwrap();
        assert_eq!(facts.list(ChipFigure::PerformanceCores), [4.0, 6.0]);
        assert_eq!(facts.of_size(ChipFigure::Fp16Tops, 1), Some(2.5));
        assert_eq!(facts.source_of(ChipFigure::PerformanceCores).provenance, "a \"b\"");
        assert_eq!(facts.source_of(ChipFigure::Fp16Tops).confidence, FigureConfidence::Low);
        assert_eq!(ChipFacts::read(&facts.write()).unwrap(), facts);
    }

    #[test]
    fn a_machine_has_a_figure_where_the_sizes_that_it_may_be_agree() {
        let text = format!(
            "{HEAD}[cpu]\nperformance_cores = [10, 12, 12]\n[memory]\nbandwidth_gb_per_s = [300, 400, 500]\n\
             max_gb = [36, 64, 128]\n"
        );
        let facts = ChipFacts::read(&text).unwrap();
        let of = |fast: f64, memory_gb: f64| {
            let machine =
                MachineSize { fast_cores: Some(fast), memory_gb, ..MachineSize::default() };
            facts.of_machine(ChipFigure::Bandwidth, &machine)
        };
        assert_eq!((of(10.0, 36.0), of(12.0, 128.0)), (Some(300.0), Some(500.0)));
        // It may be either of two; there is none of the others.
        assert_eq!((of(12.0, 48.0), of(11.0, 16.0)), (None, None));
        assert_eq!(facts.of_machine(ChipFigure::GpuCores, &MachineSize::default()), None);
    }

    #[test]
    fn mistakes_are_named_with_their_keys() {
        let wrong = |more: &str, part: &str| {
            let error = ChipFacts::read(&format!("{HEAD}{more}")).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        wrong("speed = 3\n", "speed");
        wrong("[gpu]\ncores = -1\n", "gpu.cores: -1 found, expected a number");
        wrong("[gpu]\ncores = []\n", "gpu.cores");
        wrong("[gpu]\nfans = 3\n", "gpu.fans: nobody knows this key");
        wrong("[matrix]\nunit = \"ABC\"\n", "expected one of AMX, SME");
        wrong("[gpu]\ncores = [1, 2]\ntflops_f32 = [1, 2, 3]\n", "has 2 sizes");
        wrong("[sources]\n\"gpu.cores\" = 3\n", "gpu.cores");
        wrong(
            "[sources]\n\"gpu.cores\" = { confidence = \"low\", provenance = \"x\" }\n",
            "no such figure",
        );
        assert!(ChipFacts::read("name = ").unwrap_err().contains("no chip file"));
        assert!(ChipFacts::read("").unwrap_err().contains("name: expected a text"));
    }
}
