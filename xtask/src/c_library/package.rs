//! Packages of the library for C: headers, libraries, and what CMake and pkg-config read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{cargo, run};
use crate::workspace::{WorkspaceFolders, read};

use super::header::CRATE;

/// Templates of what CMake and pkg-config read, and where they go.
const TEMPLATES: [(&str, &str); 3] = [
    ("packaging/c/galatea.pc.in", "lib/pkgconfig/galatea.pc"),
    ("packaging/c/galatea-config.cmake.in", "lib/cmake/galatea/galatea-config.cmake"),
    (
        "packaging/c/galatea-config-version.cmake.in",
        "lib/cmake/galatea/galatea-config-version.cmake",
    ),
];

/// Files that are copied as they are.
const DOCUMENTS: [(&str, &str); 2] =
    [("docs/c-api.md", "share/doc/galatea/c-api.md"), ("LICENSE", "share/doc/galatea/LICENSE")];

/// Folders that are copied as they are.
const FOLDERS: [(&str, &str); 3] = [
    ("crates/c/include", "include"),
    ("examples/c", "share/galatea/examples/c"),
    ("examples/cpp", "share/galatea/examples/cpp"),
];

/// Names of the shared library: as programs are linked with it, and as they ask for it when they start.
pub(super) struct LibraryNames {
    pub(super) built: &'static str,
    link: &'static str,
    load: &'static str,
}

/// Names on the system that runs the checks.
pub(super) const NAMES: LibraryNames = match cfg!(target_os = "macos") {
    true => LibraryNames {
        built: "libgalatea_c.dylib",
        link: "libgalatea.dylib",
        load: "libgalatea.1.dylib",
    },
    false => {
        LibraryNames { built: "libgalatea_c.so", link: "libgalatea.so", load: "libgalatea.so.1" }
    }
};

/// Parts of a package that a build makes.
pub(super) struct PackageParts<'a> {
    /// The shared library.
    pub(super) shared: &'a Path,
    /// The static library, if there is one.
    pub(super) archive: Option<&'a Path>,
    /// Options for linking with the static library.
    pub(super) archive_options: &'a str,
}

/// Builds both libraries in a profile and lays out a package in a folder: `FOLDER [PROFILE]`.
///
/// # Errors
/// Fails when they do not compile, or a file cannot be written.
pub(crate) fn build(workspace: &WorkspaceFolders, arguments: &[String]) -> Result<(), String> {
    let (folder, profile) = match arguments {
        [folder] => (folder, "dist"),
        [folder, profile] => (folder, profile.as_str()),
        _ => return Err("usage: cargo xtask c-package FOLDER [PROFILE]".to_owned()),
    };
    let mut command = cargo(&workspace.root);
    command.args(["rustc", "--package", "galatea-c", "--lib", "--features", "gpu"]);
    command.args(["--profile", profile, "--crate-type", "cdylib,staticlib"]);
    let options = workspace.target.join("c-link-options");
    let options_argument = format!("native-static-libs={}", options.display());
    run(command.args(["--", "--print", &options_argument]))?;
    let built = workspace.target.join(if profile == "dev" { "debug" } else { profile });
    let link_options = read(&options)?;
    let parts = PackageParts {
        shared: &built.join(NAMES.built),
        archive: Some(&built.join("libgalatea_c.a")),
        archive_options: link_options.trim(),
    };
    lay_out(workspace, Path::new(folder), &parts)?;
    println!("package in {folder}");
    Ok(())
}

/// Lays out a package in a folder. Files of an earlier one are replaced.
///
/// # Errors
/// Fails when a file cannot be read or written.
pub(super) fn lay_out(
    workspace: &WorkspaceFolders,
    folder: &Path,
    parts: &PackageParts<'_>,
) -> Result<(), String> {
    let version = version(workspace)?;
    let lib = folder.join("lib");
    make_folder(&lib)?;
    copy(parts.shared, &lib.join(NAMES.load))?;
    let link = lib.join(NAMES.link);
    if link.symlink_metadata().is_ok() {
        fs::remove_file(&link).map_err(|error| format!("{}: {error}", link.display()))?;
    }
    symlink(NAMES.load, &link)?;
    if let Some(archive) = parts.archive {
        copy(archive, &lib.join("libgalatea.a"))?;
    }
    for (from, to) in TEMPLATES {
        let text = read(&workspace.root.join(from))?;
        let text = text.replace("@VERSION@", &version).replace("@SHARED@", NAMES.load);
        // CMake divides lists by semicolons.
        let options = match to.ends_with(".cmake") {
            true => parts.archive_options.split_whitespace().collect::<Vec<_>>().join(";"),
            false => parts.archive_options.to_owned(),
        };
        let to = folder.join(to);
        make_folder(to.parent().unwrap_or(folder))?;
        fs::write(&to, text.replace("@STATIC_LIBS@", &options))
            .map_err(|error| format!("{}: {error}", to.display()))?;
    }
    for (from, to) in DOCUMENTS {
        copy(&workspace.root.join(from), &folder.join(to))?;
    }
    for (from, to) in FOLDERS {
        for file in files(&workspace.root.join(from))? {
            let below = file.strip_prefix(workspace.root.join(from)).unwrap_or(&file);
            copy(&file, &folder.join(to).join(below))?;
        }
    }
    Ok(())
}

/// Returns the version of the workspace.
fn version(workspace: &WorkspaceFolders) -> Result<String, String> {
    let manifest = read(&workspace.root.join("Cargo.toml"))?;
    let manifest: toml::Table = manifest.parse().map_err(|error| format!("Cargo.toml: {error}"))?;
    let package = manifest.get("workspace").and_then(|workspace| workspace.get("package"));
    let version = package.and_then(|package| package.get("version"));
    let version = version.and_then(toml::Value::as_str).map(str::to_owned);
    version.ok_or_else(|| format!("{CRATE}: the workspace has no version"))
}

fn make_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    make_folder(to.parent().unwrap_or(to))?;
    let copied = fs::copy(from, to);
    copied.map(drop).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

#[cfg(unix)]
fn symlink(to: &str, link: &Path) -> Result<(), String> {
    std::os::unix::fs::symlink(to, link).map_err(|error| format!("{}: {error}", link.display()))
}

#[cfg(not(unix))]
fn symlink(_to: &str, link: &Path) -> Result<(), String> {
    Err(format!("{}: packages are made on Unix", link.display()))
}

/// Returns all files below a folder, in order.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        match path.is_dir() {
            true => found.extend(files(&path)?),
            false => found.push(path),
        }
    }
    found.sort();
    Ok(found)
}

/// Returns whether a program is there.
pub(super) fn is_there(program: &str) -> bool {
    let version = Command::new(program).arg("--version").output();
    version.is_ok_and(|version| version.status.success())
}
