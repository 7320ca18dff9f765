//! Crates that a run of the checks covers: all, or those that a change touches and their users.

use std::collections::BTreeSet;
use std::process::Command;

use crate::process::output;
use crate::workspace::{WorkspaceFolders, WorkspacePackage};

/// Crates that are checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum CheckScope {
    /// Every crate and everything beside them.
    #[default]
    Everything,
    /// Crates by their folders under `crates`, and whether the client tests in Python are touched.
    Crates {
        /// Folders, `xtask` among them where it is touched.
        folders: BTreeSet<String>,
        /// A file outside crates that tests read has changed.
        data: bool,
    },
}

/// Files at the root and in folders that every crate depends on.
const COMMON: &[&str] = &["Cargo.toml", "Cargo.lock", ".cargo/", "rustfmt.toml", "clippy.toml"];

/// Folders whose files tests of the whole program read.
const DATA: &[&str] = &["python/", "examples/", "golden/", "data/", "fuzz/"];

impl CheckScope {
    /// Finds what differs from `base`: committed since then, not committed yet, or not known to git.
    ///
    /// # Errors
    /// Fails when git fails, such as for an unknown revision.
    pub(crate) fn changed_since(workspace: &WorkspaceFolders, base: &str) -> Result<Self, String> {
        let git = |arguments: &[&str]| {
            output(Command::new("git").current_dir(&workspace.root).args(arguments))
        };
        let mut files = git(&["diff", "--name-only", base, "--"])?;
        files.push_str(&git(&["ls-files", "--others", "--exclude-standard"])?);
        let files: Vec<&str> = files.lines().collect();
        Ok(Self::of_files(&files, &workspace.packages()?))
    }

    /// Finds the crates that files belong to and those that use them, however far up.
    fn of_files(files: &[&str], packages: &[WorkspacePackage]) -> Self {
        let starts = |prefixes: &[&str], file: &str| prefixes.iter().any(|p| file.starts_with(p));
        if files.iter().any(|file| starts(COMMON, file)) {
            return Self::Everything;
        }
        let mut folders: BTreeSet<String> = files
            .iter()
            .filter_map(|file| match file.strip_prefix("crates/") {
                Some(rest) => rest.split('/').next().map(str::to_owned),
                None => file.starts_with("xtask/").then(|| "xtask".to_owned()),
            })
            .collect();
        loop {
            let users: Vec<String> = packages
                .iter()
                .filter(|package| !folders.contains(&package.folder))
                .filter(|package| package.uses().any(|used| folders.contains(used)))
                .map(|package| package.folder.clone())
                .collect();
            if users.is_empty() {
                break;
            }
            folders.extend(users);
        }
        Self::Crates { folders, data: files.iter().any(|file| starts(DATA, file)) }
    }

    /// Returns whether a crate is in it, by its folder.
    pub(crate) fn has(&self, folder: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Crates { folders, .. } => folders.contains(folder),
        }
    }

    /// Returns whether the tests of a crate are in it, by its folder.
    pub(crate) fn has_tests(&self, folder: &str) -> bool {
        self.has(folder) || matches!(self, Self::Crates { data: true, .. })
    }

    /// Returns whether the whole program is in it: its crate, or data that its tests read.
    pub(crate) fn has_program(&self) -> bool {
        match self {
            Self::Everything => true,
            Self::Crates { data, .. } => *data || self.has("cli"),
        }
    }

    /// Returns cargo's arguments that select the crates; `None` where there are none.
    pub(crate) fn cargo_packages(&self) -> Option<Vec<String>> {
        match self {
            Self::Everything => Some(vec!["--workspace".to_owned()]),
            Self::Crates { folders, .. } if folders.is_empty() => None,
            Self::Crates { folders, .. } => {
                let name = |folder: &String| match folder.as_str() {
                    "galatea" | "xtask" => folder.clone(),
                    other => format!("galatea-{other}"),
                };
                Some(folders.iter().flat_map(|f| ["--package".to_owned(), name(f)]).collect())
            }
        }
    }
}

impl std::fmt::Display for CheckScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Everything => f.write_str("every crate"),
            Self::Crates { folders, data } => {
                let names: Vec<&str> = folders.iter().map(String::as_str).collect();
                let crates =
                    if names.is_empty() { "no crate".to_owned() } else { names.join(", ") };
                f.write_str(&crates)?;
                if *data { f.write_str(" and files that tests read") } else { Ok(()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(files: &[&str]) -> CheckScope {
        CheckScope::of_files(files, &WorkspaceFolders::find().unwrap().packages().unwrap())
    }

    #[test]
    fn a_change_reaches_the_users_of_its_crate_and_not_those_below() {
        let scope = scope(&["crates/serving/src/lib.rs"]);
        assert!(scope.has("serving") && scope.has("server") && scope.has("cli"));
        assert!(!scope.has("graph") && !scope.has("gpu") && !scope.has("xtask"));
    }

    #[test]
    fn a_change_at_the_bottom_reaches_every_crate() {
        let scope = scope(&["crates/tensor/src/lib.rs"]);
        let packages = WorkspaceFolders::find().unwrap().packages().unwrap();
        // Doubles of another system's libraries use nothing of the house.
        let concerned = |folder: &str| scope.has(folder) || folder == "doubles";
        assert!(packages.iter().all(|package| concerned(&package.folder)));
    }

    #[test]
    fn the_manifest_of_the_workspace_concerns_everything() {
        assert_eq!(scope(&["docs/gpu.md", "Cargo.lock"]), CheckScope::Everything);
    }

    #[test]
    fn docs_concern_no_crate_and_samples_concern_the_program() {
        assert_eq!(scope(&["docs/gpu.md"]).cargo_packages(), None);
        assert!(!scope(&["docs/gpu.md"]).has_program());
        let samples = scope(&["examples/models/digits/config.pbtxt"]);
        assert!(samples.has_program() && !samples.has("cli"));
    }

    #[test]
    fn crates_are_named_as_cargo_knows_them() {
        let scope = scope(&["crates/server/src/lib.rs", "xtask/src/main.rs"]);
        let arguments = scope.cargo_packages().unwrap();
        let packages = ["galatea-c", "galatea-cli", "galatea-server", "xtask"];
        assert_eq!(arguments, packages.map(|name| ["--package", name]).concat());
    }
}
