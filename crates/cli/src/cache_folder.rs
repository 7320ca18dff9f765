//! The option for the folder of what the program keeps from one start to the next.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};
use galatea_serving::model_cache;

use crate::arguments::path as path_of;

const ID: &str = "cache_dir";

/// Adds the option to a command that keeps or reads something there.
pub(super) fn option(command: Command) -> Command {
    let help = "keep prepared models, compiled packages, tuning records and placements there [the system's folder for caches]";
    command.arg(Arg::new(ID).long("cache-dir").value_name("DIR").value_parser(path_of).help(help))
}

/// Uses the folder that a command line names, before anything looks for the system's.
///
/// # Errors
/// Fails when the path has no absolute form.
pub(super) fn apply(matches: &ArgMatches) -> Result<(), String> {
    match matches.try_get_one::<PathBuf>(ID) {
        Ok(Some(folder)) => use_folder(folder),
        // Other commands have no such option.
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Uses a folder in place of the system's.
///
/// # Errors
/// Fails when the path has no absolute form.
pub(super) fn use_folder(folder: &Path) -> Result<(), String> {
    let absolute = std::path::absolute(folder);
    let absolute =
        absolute.map_err(|error| format!("--cache-dir '{}': {error}", folder.display()))?;
    model_cache::use_folder(absolute);
    Ok(())
}
