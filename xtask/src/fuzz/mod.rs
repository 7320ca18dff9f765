//! Fuzz targets, which are a workspace of their own: their type check, and runs of them.

mod campaign;
mod plan;

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{cargo, run};
use crate::scope::CheckScope;
use crate::workspace::{WorkspaceFolders, read};

pub(crate) use campaign::campaign;

/// Crates that fuzz targets use.
const USED: &[&str] =
    &["coreml", "formats", "graph", "llm", "providers", "runtime", "server", "serving", "testkit"];

/// Returns whether a change of these crates, or of the targets, can change the result.
pub(crate) fn concerns(scope: &CheckScope) -> bool {
    USED.iter().any(|folder| scope.has_tests(folder))
}

/// Checks the types of every fuzz target, with the versions of dependencies that the workspace has.
///
/// Compiled dependencies are those of the other checks. The fuzzer's C++ is not compiled, since nothing is linked.
///
/// # Errors
/// Fails when a target does not compile.
pub(crate) fn check(workspace: &WorkspaceFolders) -> Result<(), String> {
    let folder = write_manifest(workspace)?;
    let mut command = cargo(&folder);
    command.args(["check", "--quiet", "--bins"]);
    command.env("CARGO_TARGET_DIR", &workspace.target);
    command.env("CUSTOM_LIBFUZZER_PATH", folder.join("libfuzzer.a"));
    run(&mut command)
}

/// Writes a manifest of the targets into the target folder, with the workspace's lock file, and returns its folder.
/// Cargo changes the lock file beside a manifest.
fn write_manifest(workspace: &WorkspaceFolders) -> Result<PathBuf, String> {
    let folder = workspace.target.join("fuzz");
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let given = read(&workspace.root.join("fuzz/Cargo.toml"))?;
    let own = read(&workspace.root.join("Cargo.toml"))?;
    write("Cargo.toml", manifest(&given, &own, &workspace.root))?;
    write("Cargo.lock", read(&workspace.root.join("Cargo.lock"))?)?;
    Ok(folder)
}

/// Returns the manifest of the fuzz targets for another folder, with the workspace's profile for tests.
fn manifest(given: &str, workspace: &str, root: &Path) -> String {
    let root = root.display();
    let mut made = given
        .replace("path = \"../", &format!("path = \"{root}/"))
        .replace("path = \"fuzz_targets/", &format!("path = \"{root}/fuzz/fuzz_targets/"));
    made.push_str(&format!("\n[lib]\npath = \"{root}/fuzz/src/lib.rs\"\n\n"));
    let mut is_profile = false;
    for line in workspace.lines() {
        if line.starts_with('[') {
            is_profile = line.starts_with("[profile.dev");
        }
        if is_profile {
            made.push_str(line);
            made.push('\n');
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_names_files_from_the_root_and_has_the_profile_of_tests() {
        let given = "[dependencies]\nserde_json = \"1\"\ngalatea-llm = { path = \"../crates/llm\" }\n\
                     [workspace]\n[[bin]]\nname = \"npy\"\npath = \"fuzz_targets/npy.rs\"\n";
        let workspace = "[workspace]\nresolver = \"3\"\n[profile.dev]\nopt-level = 3\n\
                         [profile.release]\nlto = \"off\"\n";
        let made: toml::Table = manifest(given, workspace, Path::new("/root")).parse().unwrap();
        assert_eq!(made["bin"][0]["path"].as_str(), Some("/root/fuzz/fuzz_targets/npy.rs"));
        let llm = &made["dependencies"]["galatea-llm"];
        assert_eq!(llm["path"].as_str(), Some("/root/crates/llm"));
        assert_eq!(made["lib"]["path"].as_str(), Some("/root/fuzz/src/lib.rs"));
        assert_eq!(made["profile"]["dev"]["opt-level"].as_integer(), Some(3));
        assert!(made["profile"].get("release").is_none());
        assert!(made["workspace"].get("resolver").is_none());
    }
}
