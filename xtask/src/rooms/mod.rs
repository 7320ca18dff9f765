//! Imports between the rooms of a crate, which are the modules of its root file. A room uses those below it only.
//!
//! `order.txt` has the rooms of each crate from the bottom to the top. `known.txt` lists the upward imports that there
//! are still; it may only become shorter. Files of a crate that use each other in a circle are refused.

mod circles;
mod files;
mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::workspace::{WorkspaceFolders, read};

/// Number of files of a room that use another one, by crate, room and used room.
type UpwardImports = BTreeMap<String, usize>;

/// Rooms of each crate from the bottom to the top.
type RoomOrder = BTreeMap<String, Vec<String>>;

/// Compares the imports between rooms with their order, and refuses circles of files.
///
/// # Errors
/// Returns how many imports are not known, that their list is old, or how many circles there are.
pub(crate) fn check(workspace: &WorkspaceFolders) -> Result<(), String> {
    check_imports(workspace)?;
    circles::check(workspace)
}

fn check_imports(workspace: &WorkspaceFolders) -> Result<(), String> {
    let found = upward(workspace)?;
    let known = parse_known(&read(&list(workspace))?)?;
    let mut problems = 0;
    for (import, count) in &found {
        let allowed = known.get(import).copied().unwrap_or(0);
        if *count > allowed {
            println!("{import}: {count} files, {allowed} known; a room uses those below it only");
            problems += 1;
        }
    }
    if problems > 0 {
        return Err(format!("{problems} imports point upwards between the rooms of a crate"));
    }
    let gone = known.iter().filter(|(import, count)| found.get(*import).unwrap_or(&0) < count);
    match gone.count() {
        0 => {
            println!("{} known upward imports between rooms, no new one", known.len());
            Ok(())
        }
        gone => Err(format!(
            "{gone} lines of rooms/known.txt are settled: `cargo xtask arrows --settle`"
        )),
    }
}

/// Returns how many circles of files there are.
///
/// # Errors
/// Fails when a file cannot be read.
pub(crate) fn count_circles(workspace: &WorkspaceFolders) -> Result<usize, String> {
    Ok(circles::all(workspace)?.len())
}

/// Writes the list of upward imports anew; nothing is added to it.
///
/// # Errors
/// Fails when a file cannot be read or written.
pub(crate) fn settle(workspace: &WorkspaceFolders) -> Result<(), String> {
    let found = upward(workspace)?;
    let path = list(workspace);
    let known = match path.exists() {
        true => Some(parse_known(&read(&path)?)?),
        false => None,
    };
    let mut text = String::from(
        "# Written by `cargo xtask arrows --settle`: an upward import, and its files.\n",
    );
    for (import, count) in &found {
        let allowed =
            known.as_ref().map_or(*count, |known| known.get(import).copied().unwrap_or(0));
        if allowed > 0 {
            text.push_str(&format!("{import} {}\n", allowed.min(*count)));
        }
    }
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
}

fn list(workspace: &WorkspaceFolders) -> PathBuf {
    workspace.root.join("xtask/src/rooms/known.txt")
}

/// Collects the imports of all crates that point upwards.
fn upward(workspace: &WorkspaceFolders) -> Result<UpwardImports, String> {
    let order = parse_order(&read(&workspace.root.join("xtask/src/rooms/order.txt"))?)?;
    let mut found = UpwardImports::new();
    for package in workspace.packages()? {
        let name = &package.folder;
        let source = workspace.root.join("crates").join(name).join("src");
        let crate_imports = imports::of_crate(&source)?;
        let rooms = order.get(name).map_or(&[][..], Vec::as_slice);
        compare_rooms(name, rooms, &crate_imports.rooms)?;
        for (pair, count) in crate_imports.uses {
            let floor = |room: &str| rooms.iter().position(|one| one == room);
            if floor(&pair.used) > floor(&pair.user) {
                found.insert(format!("{name}: {} -> {}", pair.user, pair.used), count);
            }
        }
    }
    Ok(found)
}

/// Checks that the order names exactly the rooms that a crate has.
fn compare_rooms(name: &str, order: &[String], rooms: &BTreeSet<String>) -> Result<(), String> {
    let listed: BTreeSet<String> = order.iter().cloned().collect();
    if let Some(missing) = rooms.difference(&listed).next() {
        return Err(format!("rooms/order.txt: {name} has a room '{missing}' that is not listed"));
    }
    if let Some(gone) = listed.difference(rooms).next() {
        return Err(format!("rooms/order.txt: {name} has no room '{gone}'"));
    }
    if listed.len() < order.len() {
        return Err(format!("rooms/order.txt: {name} lists a room twice"));
    }
    Ok(())
}

/// Reads lines such as `graph: fact length ops`.
fn parse_order(text: &str) -> Result<RoomOrder, String> {
    lines(text)
        .map(|line| {
            let (name, rooms) =
                line.split_once(':').ok_or_else(|| format!("order.txt: no crate in `{line}`"))?;
            Ok((name.to_owned(), rooms.split_whitespace().map(str::to_owned).collect()))
        })
        .collect()
}

/// Reads lines such as `graph: fact -> ops 2`.
fn parse_known(text: &str) -> Result<UpwardImports, String> {
    lines(text)
        .map(|line| {
            let number = || format!("rooms/known.txt: no number in `{line}`");
            let (import, count) = line.rsplit_once(' ').ok_or_else(number)?;
            Ok((import.to_owned(), count.parse().map_err(|_| number())?))
        })
        .collect()
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_known_imports_are_read() {
        let order = parse_order("# rooms\ngraph: fact ops\n").unwrap();
        assert_eq!(order["graph"], ["fact", "ops"]);
        assert_eq!(parse_known("graph: fact -> ops 2\n").unwrap()["graph: fact -> ops"], 2);
        assert!(parse_known("graph: fact -> ops\n").is_err());
        assert!(parse_order("graph\n").is_err());
    }

    #[test]
    fn rooms_that_are_missing_or_gone_are_named() {
        let rooms: BTreeSet<String> = ["fact", "ops"].map(str::to_owned).into();
        let order = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        assert!(compare_rooms("graph", &order(&["fact", "ops"]), &rooms).is_ok());
        let text = compare_rooms("graph", &order(&["fact"]), &rooms).unwrap_err();
        assert!(text.contains("a room 'ops' that is not listed"));
        let text = compare_rooms("graph", &order(&["fact", "ops", "old"]), &rooms).unwrap_err();
        assert!(text.contains("no room 'old'"));
    }
}
