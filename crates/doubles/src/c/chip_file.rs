//! Facts of a chip, from its file in `data/chips`.

use std::path::Path;

/// Folder of the files.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/chips");

/// Cores of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlayedCores {
    /// Name of the kind, as the kernel gives it.
    pub(super) name: &'static str,
    /// Number of cores.
    pub(super) cores: u32,
    /// Bytes of a core's instruction cache.
    pub(super) instruction_bytes: u32,
    /// Bytes of a core's data cache.
    pub(super) data_bytes: u32,
    /// Bytes of the second cache of a group.
    pub(super) second_bytes: u32,
}

/// Facts of a chip that the doubles need.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChipFile {
    /// Name, such as `Apple M2 Ultra`.
    pub(super) name: String,
    /// Kinds of core, the fastest first.
    pub(super) kinds: Vec<PlayedCores>,
    /// Optional instructions, by the names of the architecture in lower case.
    pub(super) features: Vec<String>,
    /// Cores of the GPU.
    pub(super) gpu_cores: u32,
}

impl ChipFile {
    /// Reads the file of a chip, such as `m2-ultra`. Of its sizes it is the largest.
    pub(super) fn find(chip: &str) -> Result<Self, String> {
        let path = Path::new(FOLDER).join(format!("apple-{chip}.toml"));
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("chip `{chip}`: {}: {error}", path.display()))?;
        Self::read(&text).ok_or_else(|| format!("{}: not as expected", path.display()))
    }

    fn read(text: &str) -> Option<Self> {
        let [mut name, mut section] = [String::new(), String::new()];
        let [mut fast, mut slow, mut gpu_cores] = [0, 0, 0];
        let mut features = Vec::new();
        for line in text.lines() {
            if let Some(found) = line.strip_prefix('[') {
                section = found.trim_end_matches(']').to_owned();
            }
            let Some((key, value)) = line.split_once(" = ") else { continue };
            // A comment begins behind the value; no value that is read here has its sign.
            let value = value.split('#').next()?.trim();
            match (section.as_str(), key) {
                ("", "name") => name = value.trim_matches('"').to_owned(),
                ("cpu", "performance_cores") => fast = largest(value)?,
                ("cpu", "efficiency_cores") => slow = largest(value)?,
                ("cpu", "features") => features = words(value).map(str::to_owned).collect(),
                ("gpu", "cores") => gpu_cores = largest(value)?,
                _ => {}
            }
        }
        let [fast_name, slow_name] = kind_names(&name);
        let kinds = vec![
            PlayedCores {
                name: fast_name,
                cores: fast,
                instruction_bytes: 192 << 10,
                data_bytes: 128 << 10,
                second_bytes: 12 << 20,
            },
            PlayedCores {
                name: slow_name,
                cores: slow,
                instruction_bytes: 128 << 10,
                data_bytes: 64 << 10,
                second_bytes: 4 << 20,
            },
        ];
        let whole = !name.is_empty() && fast > 0 && slow > 0;
        whole.then_some(Self { name, kinds, features, gpu_cores })
    }

    /// Returns whether the chip has optional instructions of this name.
    pub(super) fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|known| known == feature)
    }
}

/// The kernel's names of the kinds of core.
fn kind_names(chip: &str) -> [&'static str; 2] {
    match chip {
        "Apple M5 Pro" | "Apple M5 Max" | "Apple M5 Ultra" => ["Super", "Performance"],
        _ if chip.contains("M5") => ["Super", "Efficiency"],
        _ => ["Performance", "Efficiency"],
    }
}

/// The items of a list.
fn words(list: &str) -> impl Iterator<Item = &str> {
    let items = list.trim_matches(['[', ']']).split(',');
    items.map(|item| item.trim().trim_matches('"')).filter(|item| !item.is_empty())
}

fn largest(list: &str) -> Option<u32> {
    words(list).last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read() {
        let mut count = 0;
        for entry in std::fs::read_dir(FOLDER).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let chip = name.strip_prefix("apple-").and_then(|name| name.strip_suffix(".toml"));
            let found = ChipFile::find(chip.unwrap()).unwrap();
            assert!(found.name.starts_with("Apple M") && found.gpu_cores > 0, "{found:?}");
            count += 1;
        }
        assert!(count >= 20, "{count}");
    }

    #[test]
    fn figures_are_those_of_the_file() {
        let ultra = ChipFile::find("m2-ultra").unwrap();
        assert_eq!((ultra.kinds[0].cores, ultra.kinds[1].cores), (16, 8));
        assert!(ultra.has("bf16") && !ultra.has("sme"));
        let max = ChipFile::find("m5-max").unwrap();
        assert_eq!((max.kinds[0].name, max.kinds[1].name), ("Super", "Performance"));
        assert_eq!(max.gpu_cores, 40);
        assert!(ChipFile::find("z80").unwrap_err().contains("z80"));
    }
}
