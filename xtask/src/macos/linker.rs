//! zig as rustc's linker for macOS: it brings Apple's format, the symbols of `libSystem`, and needs no
//! file of Apple's.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::oldest;
use crate::process::run;

/// Writes the program that rustc calls.
pub(super) fn write(script: &Path, python: &Path, root: &Path) -> Result<(), String> {
    write_script(script, &[Path::new("zig-link"), python, root])
}

/// Writes a program that calls this one with words before its own arguments.
pub(crate) fn write_script(script: &Path, words: &[&Path]) -> Result<(), String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let words = std::iter::once(this.as_path()).chain(words.iter().copied());
    let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    let text = format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" "));
    let wrong = |error: std::io::Error| format!("{}: {error}", script.display());
    fs::write(script, text).map_err(wrong)?;
    fs::set_permissions(script, Permissions::from_mode(0o755)).map_err(wrong)
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// `cargo xtask zig-link PYTHON ROOT ARGUMENT...`, which rustc calls.
pub(crate) fn link_with_zig(arguments: &[String]) -> Result<(), String> {
    let [python, root, rest @ ..] = arguments else {
        return Err("zig-link: expected Python, a folder and a linker's arguments".to_owned());
    };
    let root = Path::new(root);
    let mut command = Command::new(python);
    command.args(["-m", "ziglang", "cc", "-target", &oldest::zig_target()?]);
    for (flag, folder) in [("-F", "System/Library/Frameworks"), ("-L", "usr/lib")] {
        let mut argument = OsString::from(flag);
        argument.push(root.join(folder));
        command.arg(argument);
    }
    let cache = root.with_file_name("zig-cache");
    command.args(kept(rest)).env("ZIG_GLOBAL_CACHE_DIR", &cache).env("ZIG_LOCAL_CACHE_DIR", cache);
    let status = command.status().map_err(|error| format!("{python}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("zig cc: {status}")) }
}

/// The arguments that zig takes. Libraries are named once: macOS refuses a program that loads one
/// twice.
fn kept(arguments: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut libraries: Vec<String> = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "-arch" | "-isysroot" | "-target" => drop(rest.next()),
            "-framework" => {
                let Some(name) = rest.next() else { continue };
                if !libraries.contains(name) {
                    libraries.push(name.clone());
                    kept.extend([argument.clone(), name.clone()]);
                }
            }
            name if name.starts_with("--target=") || name.starts_with("-mmacosx-version-min") => {}
            name if name.starts_with("-l") => {
                if !libraries.contains(argument) {
                    libraries.push(argument.clone());
                    kept.push(argument.clone());
                }
            }
            _ => kept.push(argument.clone()),
        }
    }
    kept
}

/// Links two little programs: one that calls what a framework has, and one that calls what none has,
/// which must fail. So a linker that takes everything is noticed.
pub(super) fn prove(script: &Path, root: &Path) -> Result<(), String> {
    let source = root.with_file_name("macos-linker.c");
    let link = |symbol: &str| -> Result<Command, String> {
        let text = format!("void {symbol}(void);\nint main(void) {{ {symbol}(); }}\n");
        fs::write(&source, text).map_err(|error| format!("{}: {error}", source.display()))?;
        let mut command = Command::new(script);
        command.arg(&source).args(["-framework", "CoreFoundation", "-o"]);
        command.arg(source.with_extension("out"));
        Ok(command)
    };
    run(&mut link("CFRelease")?)?;
    let mut misspelt = link("CFReleese")?;
    let status = misspelt.stderr(Stdio::null()).status().map_err(|error| error.to_string())?;
    if status.success() {
        return Err("the linker takes a symbol that no library has".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_named_once_and_apples_words_go() {
        let given = "-arch arm64 -mmacosx-version-min=11.0 a.o -framework Metal -lobjc -isysroot /x \
                     -framework Metal -framework CoreML -lobjc -lSystem -o out -target t";
        let given: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
        assert_eq!(
            kept(&given).join(" "),
            "a.o -framework Metal -lobjc -framework CoreML -lSystem -o out"
        );
    }

    #[test]
    fn words_keep_their_quotes() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
