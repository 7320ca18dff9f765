//! `docs/dependencies.md` names every crate that the workspace uses, and no other.

use std::collections::BTreeSet;

use crate::workspace::{WorkspaceFolders, read};

const PAGE: &str = "docs/dependencies.md";

/// Compares the page's table with the `Cargo.toml` files.
pub(crate) fn check(workspace: &WorkspaceFolders) -> Result<(), String> {
    let mut used = BTreeSet::new();
    for package in workspace.packages()?.into_iter().chain([workspace.own_package()?]) {
        used.extend(package.dependencies);
        used.extend(package.dev_dependencies);
    }
    used.retain(|name| !name.starts_with("galatea"));
    let page = read(&workspace.root.join(PAGE))?;
    let problems = differences(&used, &named(&page));
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("{} crates, each with its reason", used.len());
        return Ok(());
    }
    Err(format!("{PAGE} differs from the Cargo.toml files"))
}

/// The first cells of the table's rows.
fn named(page: &str) -> BTreeSet<String> {
    let cells = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    cells.filter(|cell| *cell != "crate").map(str::to_owned).collect()
}

fn differences(used: &BTreeSet<String>, named: &BTreeSet<String>) -> Vec<String> {
    let unexplained = used.difference(named).map(|name| format!("{PAGE}: no row for `{name}`"));
    let unused = named.difference(used).map(|name| format!("{PAGE}: nothing uses `{name}`"));
    unexplained.chain(unused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_reported() {
        let page = "| crate | why |\n|---|---|\n| half | FP16. |\n| rand | Gone. |\n";
        let used = BTreeSet::from(["half".to_owned(), "bytes".to_owned()]);
        let found = differences(&used, &named(page));
        assert_eq!(
            found,
            [
                "docs/dependencies.md: no row for `bytes`",
                "docs/dependencies.md: nothing uses `rand`"
            ]
        );
    }
}
