//! Stand-ins for macOS's libraries: text files that tell a linker which symbols a library has.
//!
//! They list what the program uses and no more, so a misspelt symbol is found on any machine.

use std::fs;
use std::path::Path;

use super::oldest::{self, SystemVersion};

/// Symbols of macOS that the program may use, by library.
const SYMBOLS: &str = include_str!("symbols.txt");

/// A library and its symbols, without the underscore that a linker puts before them.
#[derive(Debug, PartialEq)]
struct StubLibrary<'a> {
    name: &'a str,
    is_framework: bool,
    symbols: Vec<&'a str>,
}

impl StubLibrary<'_> {
    /// Returns the path of its stub below the folder that stands for the system's root.
    fn path(&self) -> String {
        let name = self.name;
        if self.is_framework {
            format!("System/Library/Frameworks/{name}.framework/{name}.tbd")
        } else {
            format!("usr/lib/lib{}.tbd", name.split('.').next().unwrap_or(name))
        }
    }

    /// Returns its path on a Mac.
    fn install_name(&self) -> String {
        let name = self.name;
        if self.is_framework {
            format!("/System/Library/Frameworks/{name}.framework/Versions/A/{name}")
        } else {
            format!("/usr/lib/lib{name}.dylib")
        }
    }

    /// The stand-in. Source: LLVM, `llvm/lib/TextAPI`, version 4 of the format.
    fn text(&self) -> String {
        let quoted: Vec<String> = self.symbols.iter().map(|name| format!("'_{name}'")).collect();
        let mut text = format!(
            "--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-macos ]\ninstall-name: '{}'\n\
             current-version: 1\ncompatibility-version: 1\n",
            self.install_name()
        );
        if !quoted.is_empty() {
            let symbols = quoted.join(", ");
            let exports =
                format!("exports:\n  - targets: [ arm64-macos ]\n    symbols: [ {symbols} ]\n");
            text.push_str(&exports);
        }
        text.push_str("...\n");
        text
    }
}

/// Reads the list: `framework NAME` or `library NAME.VERSION`, then a symbol a line, `SYMBOL since VERSION` where it
/// came with a version. Symbols that are newer than the oldest system are refused: a program that is linked with
/// one does not start there.
fn parse<'a>(text: &'a str, oldest: &SystemVersion) -> Result<Vec<StubLibrary<'a>>, String> {
    let mut libraries: Vec<StubLibrary<'a>> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (line, since) = match line.split_once(" since ") {
            Some((symbol, version)) => (symbol, Some(SystemVersion::parse(version)?)),
            None => (line, None),
        };
        if since.is_some_and(|since| since > *oldest) {
            let text = "is newer than the oldest macOS that programs run on: it must be looked up";
            return Err(format!("line {}: `{line}` {text}", index + 1));
        }
        match line.split_once(' ') {
            Some((kind @ ("framework" | "library"), name)) => libraries.push(StubLibrary {
                name,
                is_framework: kind == "framework",
                symbols: Vec::new(),
            }),
            Some(_) => {
                return Err(format!("line {}: expected one word, found `{line}`", index + 1));
            }
            None => {
                let library = libraries.last_mut();
                let library = library
                    .ok_or_else(|| format!("line {}: `{line}` is of no library", index + 1))?;
                library.symbols.push(line);
            }
        }
    }
    Ok(libraries)
}

/// Writes the stand-ins below `root`.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    let oldest = SystemVersion::parse(&oldest::text()?)?;
    for library in parse(SYMBOLS, &oldest)? {
        let path = root.join(library.path());
        let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(wrong)?;
        }
        fs::write(&path, library.text()).map_err(wrong)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<StubLibrary<'_>>, String> {
        parse(text, &SystemVersion::parse("13.0").unwrap())
    }

    #[test]
    fn a_list_is_read_library_by_library() {
        let text =
            "# note\nframework CoreML\n  MLOne\n\nlibrary objc.A\n  objc_release\n  sel_two\n";
        let found = read(text).unwrap();
        assert_eq!(found[0].symbols, ["MLOne"]);
        assert_eq!(found[1].symbols, ["objc_release", "sel_two"]);
        assert_eq!(found[0].path(), "System/Library/Frameworks/CoreML.framework/CoreML.tbd");
        assert_eq!(found[1].path(), "usr/lib/libobjc.tbd");
        assert_eq!(found[1].install_name(), "/usr/lib/libobjc.A.dylib");
    }

    #[test]
    fn a_stand_in_names_its_library_and_symbols() {
        let text = read("library objc.A\nobjc_release\n").unwrap()[0].text();
        assert!(text.contains("install-name: '/usr/lib/libobjc.A.dylib'"));
        assert!(text.contains("symbols: [ '_objc_release' ]"));
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        assert_eq!(read("lost\n").unwrap_err(), "line 1: `lost` is of no library");
        let two = read("framework A\none two\n").unwrap_err();
        assert_eq!(two, "line 2: expected one word, found `one two`");
    }

    #[test]
    fn a_symbol_that_the_oldest_system_lacks_is_refused() {
        let list = |since: &str| format!("framework Accelerate\nold_one\nnew_one since {since}\n");
        assert_eq!(read(&list("12.3")).unwrap()[0].symbols, ["old_one", "new_one"]);
        let refused = read(&list("13.3")).unwrap_err();
        assert!(refused.starts_with("line 3: `new_one` is newer"), "{refused}");
        assert!(read(&list("now")).is_err());
    }

    #[test]
    fn every_symbol_is_listed_once() {
        let libraries = read(SYMBOLS).unwrap();
        let mut all: Vec<&str> = libraries.iter().flat_map(|l| l.symbols.clone()).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
