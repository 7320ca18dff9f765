//! The page of Triton's rules names tests; each of them is there.

use std::fs;
use std::path::Path;

use galatea_tensor::OrderedSet;

/// Adds the names of functions in the sources below a folder.
fn functions(folder: &Path, into: &mut OrderedSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split('(').next());
            into.extend(names.map(str::to_owned));
        }
    }
}

#[test]
fn every_rule_of_the_page_has_tests_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut known = OrderedSet::new();
    for part in ["cli", "server", "serving"] {
        functions(&root.join("crates").join(part), &mut known);
    }
    let page = fs::read_to_string(root.join("docs/triton-rules.md")).unwrap();
    let mut rules = 0;
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let tests = line.trim_end_matches(" |").rsplit("| ").next().unwrap();
        if tests == "tests" {
            continue;
        }
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test: {line}");
        for name in names {
            assert!(known.contains(name), "there is no test '{name}': {line}");
        }
        rules += 1;
    }
    assert!(rules > 80, "{rules}");
}
