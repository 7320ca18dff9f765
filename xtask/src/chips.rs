//! Every file of `data/chips` is readable, names its chip as its file does and says where its
//! facts come from.

use std::fs;

use crate::workspace::{WorkspaceFolders, read};

/// Keys that each section of a chip file must hold. The family of a GPU is absent where no source names it.
const REQUIRED: &[(&str, &[&str])] = &[
    ("cpu", &["performance_cores", "efficiency_cores", "features"]),
    ("gpu", &["cores", "tflops_f32"]),
    ("neural_engine", &["cores", "engines", "fp16_tops", "int8", "int4"]),
    ("memory", &["bandwidth_gb_per_s", "max_gb"]),
];

/// Lists what is wrong with the chip files.
pub(crate) fn check(workspace: &WorkspaceFolders) -> Result<(), String> {
    let folder = workspace.root.join("data/chips");
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files = 0;
    let mut problems = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| format!("{}: {e}", folder.display()))?.path();
        let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_owned();
        problems.extend(wrong(&stem, &read(&path)?));
        files += 1;
    }
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("{files} chips");
        return Ok(());
    }
    Err(format!("{} mistakes in data/chips", problems.len()))
}

fn wrong(stem: &str, text: &str) -> Vec<String> {
    let chip: toml::Table = match text.parse() {
        Ok(chip) => chip,
        Err(error) => return vec![format!("data/chips/{stem}.toml: {error}")],
    };
    let text_of = |key: &str| chip.get(key).and_then(toml::Value::as_str).unwrap_or_default();
    let mut found = Vec::new();
    if text_of("name").to_lowercase().replace(' ', "-") != stem {
        found.push(format!("data/chips/{stem}.toml: `name` is `{}`", text_of("name")));
    }
    for key in ["provenance", "confidence"].into_iter().filter(|key| text_of(key).is_empty()) {
        found.push(format!("data/chips/{stem}.toml: no `{key}`"));
    }
    for (section, keys) in REQUIRED {
        let table = chip.get(*section).and_then(toml::Value::as_table);
        for key in keys.iter().filter(|key| table.is_none_or(|table| !table.contains_key(**key))) {
            found.push(format!("data/chips/{stem}.toml: no `{section}.{key}`"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_fact_is_named() {
        let text = "name = \"Apple M1\"\nprovenance = \"a page\"\n[memory]\nmax_gb = 16\n";
        let found = wrong("apple-m1", text);
        assert!(
            found.contains(&"data/chips/apple-m1.toml: no `memory.bandwidth_gb_per_s`".to_owned())
        );
        assert!(!found.iter().any(|problem| problem.contains("max_gb")));
    }

    #[test]
    fn a_file_named_for_another_chip_is_named() {
        assert!(wrong("apple-m2", "name = \"Apple M1\"\n")[0].contains("`name` is `Apple M1`"));
    }
}
