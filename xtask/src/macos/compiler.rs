//! zig as the compiler of C for macOS: one dependency has a function in Objective-C, which catches exceptions and
//! includes no header.

use std::path::Path;
use std::process::Command;

use super::linker::write_script;
use super::oldest;

/// Writes the program that build scripts call.
pub(super) fn write(script: &Path, python: &Path) -> Result<(), String> {
    let cache = script.with_file_name("zig-cache");
    write_script(script, &[Path::new("zig-compile"), python, &cache])
}

/// `cargo xtask zig-compile PYTHON CACHE ARGUMENT...`, which build scripts call.
pub(crate) fn compile_with_zig(arguments: &[String]) -> Result<(), String> {
    let [python, cache, rest @ ..] = arguments else {
        return Err("zig-compile: expected Python, a folder and a compiler's arguments".to_owned());
    };
    let mut command = Command::new(python);
    command.args(["-m", "ziglang", "cc", "-target", &oldest::zig_target()?]).args(kept(rest));
    command.env("ZIG_GLOBAL_CACHE_DIR", cache).env("ZIG_LOCAL_CACHE_DIR", cache);
    let status = command.status().map_err(|error| format!("{python}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("zig cc: {status}")) }
}

/// The arguments that zig takes: the target is named once, and nothing of Apple's is looked for.
fn kept(arguments: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "-arch" | "-isysroot" | "-target" => drop(rest.next()),
            name if name.starts_with("--target=") || name.starts_with("-mmacosx-version-min") => {}
            _ => kept.push(argument.clone()),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_is_given_one_target_and_no_kit_of_apples() {
        let given = "-O0 -arch arm64 -isysroot /x --target=arm64-apple-macosx -fPIC \
                     -mmacosx-version-min=11.0 -xobjective-c -o a.o -c a.m";
        let given: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
        assert_eq!(kept(&given).join(" "), "-O0 -fPIC -xobjective-c -o a.o -c a.m");
    }
}
