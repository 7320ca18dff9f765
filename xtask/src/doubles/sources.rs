//! Copies of other people's crates without what rustc refuses off macOS.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Beginnings of the names of crates that are copied.
const CRATES: &[&str] = &["block2-", "core-foundation-", "macmon-", "objc2-"];

/// Name of the crate that reads sensors. It calls macOS by the crate `libc`, which knows those functions on macOS alone.
const SENSORS: &str = "macmon-";

/// Declarations of these functions.
const DECLARATIONS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/doubles/src/c/darwin.rs");

/// Name of the crate whose build script compiles a function of Objective-C. The doubles have the function.
const HELPER: &str = "objc2-exception-helper-";

/// Words of attributes that name a library which the doubles stand for.
const LIBRARIES: &[&str] = &[
    "kind = \"framework\"",
    "link(name = \"objc\"",
    "link(name = \"gnustep-base\"",
    "link(name = \"IOReport\"",
];

/// Returns the copy of a crate's root file, where rustc is to read one in the place of `argument`.
pub(super) fn replaced(folder: &Path, argument: &str) -> Result<Option<PathBuf>, String> {
    let root = Path::new(argument);
    if root.extension().is_none_or(|extension| extension != "rs") || !root.is_absolute() {
        return Ok(None);
    }
    for package in root.ancestors().skip(1) {
        let Some(name) = package.file_name().and_then(|name| name.to_str()) else { continue };
        if !CRATES.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        let Ok(inner) = root.strip_prefix(package) else { continue };
        let copy = folder.join(name);
        let wrong = |error: io::Error| format!("{}: {error}", copy.display());
        copy_folder(package, &copy).map_err(wrong)?;
        if name.starts_with(SENSORS) {
            declare(&copy.join("src")).map_err(wrong)?;
        }
        if name.starts_with(HELPER) && inner == Path::new("build.rs") {
            fs::write(copy.join(inner), "fn main() {}\n").map_err(wrong)?;
        }
        return Ok(Some(copy.join(inner)));
    }
    Ok(None)
}

/// Copies a folder; sources lose the attributes of [`LIBRARIES`].
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let path = entry.path();
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&path, &target)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = unlinked(&fs::read_to_string(&path)?);
            let is_version = path.ends_with(VERSION_FILE);
            fs::write(target, if is_version { versioned(&source) } else { source })?;
        } else {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

/// File of objc2 that looks whether this is a version of macOS.
const VERSION_FILE: &str = "__macro_helpers/os_version.rs";

/// Returns the source of [`VERSION_FILE`] so that it asks the doubles, where it is off macOS.
fn versioned(source: &str) -> String {
    source.replace("if cfg!(target_os = \"macos\")", "if true").replace(
        "    return true;\n}",
        "    return unsafe { galatea_double_has_version(version.to_u32()) };\n}\n\n\
             extern \"C\" {\n    fn galatea_double_has_version(version: u32) -> bool;\n}",
    )
}

/// Returns a source without attributes that name libraries. Lines keep their numbers.
fn unlinked(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    for line in source.lines() {
        let code = line.trim_start();
        let names = LIBRARIES.iter().any(|library| line.contains(library));
        let names = names && !code.starts_with("//");
        let begun = code.starts_with("#[");
        match (names, begun) {
            (false, _) => text.push_str(line),
            // The attribute is this line.
            (true, true) => {}
            // The attribute, of several lines, keeps its condition.
            (true, false) => text.push_str("allow(unused)"),
        }
        text.push('\n');
    }
    text
}

/// Lets the sources of a crate take functions of macOS from [`DECLARATIONS`] in the place of the crate `libc`.
fn declare(sources: &Path) -> io::Result<()> {
    for file in ["clpc.rs", "lib.rs", "metrics.rs", "shared.rs", "sources.rs"] {
        let path = sources.join(file);
        let mut text = fs::read_to_string(&path)?.replace("libc::", "crate::darwin::");
        if file == "lib.rs" {
            text.push_str(&format!("#[path = {DECLARATIONS:?}]\nmod darwin;\n"));
        }
        fs::write(path, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_that_name_libraries_go_and_lines_keep_their_numbers() {
        let source = "// kind = \"framework\"\n#[link(name = \"CoreML\", kind = \"framework\")]\nextern \"C\" {}\n\
                      #[cfg_attr(\n    all(x),\n    link(name = \"gnustep-base\", kind = \"dylib\")\n)]\n";
        let expected = "// kind = \"framework\"\n\nextern \"C\" {}\n#[cfg_attr(\n    all(x),\nallow(unused)\n)]\n";
        assert_eq!(unlinked(source), expected);
    }

    #[test]
    fn other_arguments_of_rustc_stay() {
        let folder = Path::new("/nowhere");
        for argument in ["--edition=2021", "src/lib.rs", "/w/serde-1.0/src/lib.rs", "objc2"] {
            assert_eq!(replaced(folder, argument), Ok(None));
        }
    }
}
