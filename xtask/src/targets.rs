//! Test programs are named in each `Cargo.toml` (`autotests = false`), so a file of tests that none of them
//! takes as a module would never run.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::workspace::{WorkspaceFolders, read};

/// Lists the files under `tests` that are no part of a test program.
pub(crate) fn check(workspace: &WorkspaceFolders) -> Result<(), String> {
    let mut lost = Vec::new();
    for package in workspace.packages()? {
        let folder = workspace.root.join("crates").join(&package.folder);
        let manifest = read(&folder.join("Cargo.toml"))?;
        if manifest.contains("autotests = false") {
            let tests = folder.join("tests");
            let names = lost_files(&tests, &roots(&manifest)?)?;
            lost.extend(names.into_iter().map(|n| format!("crates/{}/tests/{n}", package.folder)));
        }
    }
    for file in &lost {
        println!("{file}: no test program has it as a module");
    }
    if lost.is_empty() { Ok(()) } else { Err(format!("{} files of tests never run", lost.len())) }
}

/// Returns the paths of test programs in a manifest, relative to the crate.
fn roots(manifest: &str) -> Result<Vec<String>, String> {
    let table: toml::Table = manifest.parse().map_err(|e| format!("Cargo.toml: {e}"))?;
    let tests = table.get("test").and_then(toml::Value::as_array);
    let path = |test: &toml::Value| Some(test.get("path")?.as_str()?.to_owned());
    Ok(tests.into_iter().flatten().filter_map(path).collect())
}

/// Returns the names of files directly in `tests` that are neither a root nor a module of one.
fn lost_files(tests: &Path, roots: &[String]) -> Result<Vec<String>, String> {
    let mut taken = BTreeSet::new();
    for root in roots {
        let name = root.strip_prefix("tests/").unwrap_or(root);
        taken.insert(name.to_owned());
        let text = read(&tests.join(name))?;
        taken.extend(text.lines().filter_map(module).map(|module| format!("{module}.rs")));
    }
    let entries = fs::read_dir(tests).map_err(|e| format!("{}: {e}", tests.display()))?;
    let mut lost: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".rs") && !taken.contains(name))
        .collect();
    lost.sort();
    Ok(lost)
}

/// Returns the name in a line such as `mod name;`.
fn module(line: &str) -> Option<&str> {
    line.strip_prefix("mod ")?.strip_suffix(';')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_root_names_is_found() {
        let folder = std::env::temp_dir().join(format!("galatea-targets-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("main.rs"), "//! Tests.\n\nmod near;\n").unwrap();
        for name in ["near.rs", "alone.rs", "lost.rs"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let roots = roots(
            "[[test]]\nname = 'a'\npath = 'tests/main.rs'\n[[test]]\nname = 'b'\npath = 'tests/alone.rs'\n",
        );
        assert_eq!(lost_files(&folder, &roots.unwrap()).unwrap(), ["lost.rs"]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
