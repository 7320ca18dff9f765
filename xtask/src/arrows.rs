//! Table of allowed dependencies between crates, compared with each `Cargo.toml`.

use crate::workspace::{WorkspaceFolders, WorkspacePackage};

/// One crate's row.
struct CrateArrow {
    folder: &'static str,
    /// Folders it may depend on; `None` means any.
    may_use: Option<&'static [&'static str]>,
    /// True if it may contain `unsafe`.
    unsafe_code: bool,
}

const fn safe(folder: &'static str, may_use: &'static [&'static str]) -> CrateArrow {
    CrateArrow { folder, may_use: Some(may_use), unsafe_code: false }
}

const fn with_unsafe(folder: &'static str, may_use: &'static [&'static str]) -> CrateArrow {
    CrateArrow { folder, may_use: Some(may_use), unsafe_code: true }
}

/// Crates that the library unites.
const LIBRARY: &[&str] = &[
    "serving",
    "llm",
    "coreml",
    "providers",
    "gpu",
    "runtime",
    "formats",
    "graph",
    "apple",
    "tensor",
];

/// The table, in ARCHITECTURE.md's order.
const ARROWS: &[CrateArrow] = &[
    with_unsafe("tensor", &[]),
    with_unsafe("kernels", &["tensor"]),
    with_unsafe("apple", &["tensor"]),
    safe("graph", &["tensor"]),
    safe("formats", &["tensor", "graph"]),
    safe("runtime", &["tensor", "graph"]),
    with_unsafe("gpu", &["runtime", "graph", "tensor"]),
    safe("providers", &["runtime", "graph", "formats", "kernels", "apple", "tensor"]),
    safe("coreml", &["providers", "runtime", "graph", "formats", "apple", "tensor"]),
    safe("llm", &["runtime", "graph", "formats", "tensor"]),
    safe("serving", &["llm", "runtime", "formats", "graph", "tensor"]),
    safe("galatea", LIBRARY),
    safe(
        "server",
        &["galatea", "serving", "llm", "coreml", "providers", "gpu", "runtime", "apple", "tensor"],
    ),
    with_unsafe("c", &["galatea", "server", "tensor"]),
    CrateArrow { folder: "cli", may_use: None, unsafe_code: false },
    safe("testkit", &["runtime", "graph", "formats", "tensor"]),
    with_unsafe("doubles", &[]),
    safe("played", &["doubles", "coreml", "formats", "tensor"]),
];

/// Crates that only some folders may use.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("tokio", &["server", "cli"]),
    ("hyper", &["server", "cli"]),
    ("axum", &["server", "cli"]),
    ("tonic", &["server", "cli"]),
    ("wgpu", &["gpu"]),
];

/// Folders that tests of every crate may use.
const TEST_ONLY: &[&str] = &["testkit", "doubles", "played"];

/// Compares every package with the table.
pub(crate) fn check(workspace: &WorkspaceFolders) -> Result<(), String> {
    let packages = workspace.packages()?;
    let problems: Vec<String> = packages.iter().flat_map(problems).collect();
    if problems.is_empty() {
        println!("{} crates keep to the table", packages.len());
        return Ok(());
    }
    for problem in &problems {
        println!("{problem}");
    }
    Err(format!("{} arrows point the wrong way", problems.len()))
}

/// Returns the folder of one of this workspace's packages.
fn folder_of(package: &str) -> Option<&str> {
    if package == "galatea" { Some(package) } else { package.strip_prefix("galatea-") }
}

fn problems(package: &WorkspacePackage) -> Vec<String> {
    let folder = package.folder.as_str();
    let Some(arrow) = ARROWS.iter().find(|arrow| arrow.folder == folder) else {
        return vec![format!("crates/{folder}: no row in xtask/src/arrows.rs")];
    };
    let mut found = Vec::new();
    for used in package.dependencies.iter().filter_map(|name| folder_of(name)) {
        if TEST_ONLY.contains(&used) && !TEST_ONLY.contains(&folder) {
            found.push(format!("crates/{folder}: `{used}` is for [dev-dependencies] only"));
        } else if arrow.may_use.is_some_and(|allowed| !allowed.contains(&used)) {
            found.push(format!("crates/{folder}: may not depend on `{used}`"));
        }
    }
    for used in package.dev_dependencies.iter().filter_map(|name| folder_of(name)) {
        let allowed = arrow.may_use.is_none_or(|allowed| allowed.contains(&used));
        if !TEST_ONLY.contains(&used) && !allowed {
            found.push(format!("crates/{folder}: its tests may not depend on `{used}`"));
        }
    }
    for (name, folders) in ONLY_IN {
        if package.dependencies.iter().any(|used| used == name) && !folders.contains(&folder) {
            found.push(format!("crates/{folder}: `{name}` is for {} only", folders.join(", ")));
        }
    }
    if !arrow.unsafe_code && !package.root_source.contains("#![forbid(unsafe_code)]") {
        found.push(format!("crates/{folder}: the root file lacks #![forbid(unsafe_code)]"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &str, dependencies: &[&str], dev_dependencies: &[&str]) -> WorkspacePackage {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        WorkspacePackage {
            folder: folder.to_owned(),
            dependencies: owned(dependencies),
            dev_dependencies: owned(dev_dependencies),
            root_source: "#![forbid(unsafe_code)]".to_owned(),
        }
    }

    #[test]
    fn a_downward_arrow_passes() {
        assert!(
            problems(&package("graph", &["galatea-tensor", "half"], &["galatea-testkit"]))
                .is_empty()
        );
    }

    #[test]
    fn an_upward_arrow_is_named() {
        let found = problems(&package("graph", &["galatea-runtime"], &[]));
        assert_eq!(found, ["crates/graph: may not depend on `runtime`"]);
    }

    #[test]
    fn async_below_the_server_is_named() {
        let found = problems(&package("serving", &["tokio"], &[]));
        assert_eq!(found, ["crates/serving: `tokio` is for server, cli only"]);
    }

    #[test]
    fn testkit_outside_tests_is_named() {
        let found = problems(&package("server", &["galatea-testkit"], &[]));
        assert_eq!(found, ["crates/server: `testkit` is for [dev-dependencies] only"]);
    }

    #[test]
    fn crates_for_tests_may_use_each_other() {
        assert!(problems(&package("played", &["galatea-doubles"], &[])).is_empty());
        let found = problems(&package("testkit", &["galatea-played"], &[]));
        assert_eq!(found, ["crates/testkit: may not depend on `played`"]);
    }

    #[test]
    fn a_missing_forbid_is_named() {
        let mut package = package("graph", &[], &[]);
        package.root_source.clear();
        assert_eq!(problems(&package).len(), 1);
    }

    #[test]
    fn an_unlisted_crate_is_named() {
        assert_eq!(problems(&package("extras", &[], &[])).len(), 1);
    }
}
