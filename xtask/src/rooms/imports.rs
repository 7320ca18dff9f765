//! Which rooms of a crate use which, read from the files that each file uses. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::files::{CrateFiles, FileUses, is_for_tests, parse};

/// A room and one that it uses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RoomPair {
    /// Room whose files name the other one.
    pub(super) user: String,
    /// Room that is named.
    pub(super) used: String,
}

/// Rooms of a crate, and how they use each other.
#[derive(Debug, Default)]
pub(super) struct CrateImports {
    /// Modules of the root file, without those for tests.
    pub(super) rooms: BTreeSet<String>,
    /// Number of files of a room that use another one.
    pub(super) uses: BTreeMap<RoomPair, usize>,
}

/// Reads a crate by its `src` folder.
///
/// # Errors
/// Fails when a file cannot be read, is no Rust, or is missing.
pub(super) fn of_crate(source: &Path) -> Result<CrateImports, String> {
    let rooms = rooms(&parse(&source.join("lib.rs"))?);
    Ok(CrateImports { rooms, uses: between_rooms(&CrateFiles::read(source)?.uses()) })
}

/// Returns the modules of a root file that are compiled outside tests.
fn rooms(root: &syn::File) -> BTreeSet<String> {
    let modules = root.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if !is_for_tests(&module.attrs) => Some(module.ident.to_string()),
        _ => None,
    });
    modules.collect()
}

/// Counts the files of each room that use another one.
fn between_rooms(uses: &FileUses) -> BTreeMap<RoomPair, usize> {
    let mut found = BTreeMap::new();
    for (file, used) in uses {
        let Some(user) = file.first() else { continue };
        let rooms: BTreeSet<&String> = used.keys().filter_map(|file| file.first()).collect();
        for room in rooms.into_iter().filter(|room| *room != user) {
            let pair = RoomPair { user: user.clone(), used: room.clone() };
            *found.entry(pair).or_default() += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_the_modules_of_the_root_outside_tests() {
        let text = "mod fact;\npub mod ops;\n#[cfg(test)]\nmod support;\npub use fact::Dim;\n";
        let rooms = rooms(&syn::parse_file(text).unwrap());
        assert_eq!(rooms.iter().map(String::as_str).collect::<Vec<_>>(), ["fact", "ops"]);
    }

    #[test]
    fn files_count_once_for_each_room_that_they_name_in_any_way() {
        let files = [
            ["", "mod fact; mod limits; mod ops; pub use fact::Fact;"],
            ["fact", "use super::limits::Limit;\npub struct Fact;"],
            ["limits", "pub struct Limit;"],
            ["ops", "mod add; mod sum; use crate::Fact;"],
            ["ops::add", "use super::super::limits::Limit;\nfn f(_: crate::fact::Fact) {}"],
            ["ops::sum", "use super::add;\n#[cfg(test)]\nmod tests { use crate::limits::Limit; }"],
        ];
        let mut all = CrateFiles::default();
        for [module, text] in files {
            let module = module.split("::").filter(|name| !name.is_empty()).map(str::to_owned);
            all.add(module.collect(), &syn::parse_file(text).unwrap());
        }
        let found = between_rooms(&all.uses());
        let found =
            found.iter().map(|(pair, count)| format!("{} {} {count}", pair.user, pair.used));
        assert_eq!(found.collect::<Vec<_>>(), ["fact limits 1", "ops fact 2", "ops limits 1"]);
    }
}
