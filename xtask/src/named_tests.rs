//! Tests that the documentation names: each must be there.

use crate::workspace::{WorkspaceFolders, read};

/// Pages with tables of tests.
const PAGES: &[&str] = &["docs/security.md"];

/// Looks for every test that a page names as `` `FILE` `` or `` `FILE::BEGINNING_OF_ITS_NAME` ``.
pub(crate) fn check(workspace: &WorkspaceFolders) -> Result<(), String> {
    let mut missing = Vec::new();
    for page in PAGES {
        let names = named_tests(&read(&workspace.root.join(page))?);
        if names.is_empty() {
            return Err(format!("{page} names no tests"));
        }
        for name in names {
            if let Err(why) = find(workspace, &name) {
                println!("{page}: `{name}`: {why}");
                missing.push(name);
            }
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(format!("{} tests are not there", missing.len())) }
}

/// Returns the names of tests in the last columns of tables.
fn named_tests(page: &str) -> Vec<String> {
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let spans = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let is_test = |span: &&str| {
        let file = span.split("::").next().unwrap_or_default();
        file.contains('/') && (file.ends_with(".rs") || file.ends_with(".py"))
    };
    spans.filter(is_test).map(str::to_owned).collect()
}

fn find(workspace: &WorkspaceFolders, name: &str) -> Result<(), String> {
    let (file, test) = name.split_once("::").unwrap_or((name, ""));
    let text = read(&workspace.root.join(file))?;
    let keyword = if file.ends_with(".py") { "def" } else { "fn" };
    match test {
        "" if has_tests(&text) => Ok(()),
        "" => Err("the file has no tests".to_owned()),
        test if text.contains(&format!("{keyword} {test}")) => Ok(()),
        _ => Err("no test has such a name".to_owned()),
    }
}

/// Returns whether a file has tests, or takes others that have.
fn has_tests(text: &str) -> bool {
    ["#[test]", "#[tokio::test", "def test_", "mod "].iter().any(|part| text.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tests_are_found_in_tables_alone() {
        let page =
            "`a/b.rs::c` outside\n| what | `--flag` | `a/b.rs`, `python/tests/t.py::test_x` |\n";
        assert_eq!(named_tests(page), ["a/b.rs", "python/tests/t.py::test_x"]);
    }

    #[test]
    fn the_pages_name_tests_that_are_there() {
        check(&WorkspaceFolders::find().unwrap()).unwrap();
    }

    #[test]
    fn a_test_that_is_not_there_is_told() {
        let workspace = WorkspaceFolders::find().unwrap();
        for name in ["xtask/src/none.rs", "xtask/src/named_tests.rs::no_such", "docs/security.md"] {
            assert!(find(&workspace, name).is_err(), "{name}");
        }
    }
}
